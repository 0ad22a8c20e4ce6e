//! Queries whose rows come from the session: a single row without FROM (SELECT 1), or the rows of a virtual
//! table.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_expression::{Coercibility, Expression, Kind, Node, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::decimal::DECIMAL_PRECISION_MAX;
use junctor_model::error::Result;
use junctor_model::row_encoding::{ResultColumn, column_flag, wire_type};
use junctor_model::schema::Dictionary;
use junctor_model::value::Value;
use junctor_signals::program::{Aggregate, Projection, SortKey};
use junctor_signals::read_status::StatusTable;

use super::operand::LimitTemplate;
use super::order::{bind_order_of, check_distinct_order};
use super::select::{check_lock_names, reject_unsupported};
use super::statement::{Planned, QueryPlan};
use super::virtual_table::{FindVirtual, VirtualColumns, VirtualRead, VirtualSource};
use crate::access::PlanRights;
use crate::bind::{Binder, Environment, RowSource, Scope, bind_select_list};
use crate::parse::statement::Select;
use crate::result::ResultHeader;

/// The source of the rows.
#[derive(Clone, Debug)]
pub enum ComputeSource {
    /// One row without columns.
    Nothing,
    /// Rows that are known when the statement is planned.
    Rows(Vec<Vec<Value>>),
    /// Rows that blocks of the data plane report at each execution, and what becomes of each.
    Status(StatusTable, Option<MakeRow>),
}

/// Makes a row of a virtual table from a row that a block has reported; `None` if it has none.
pub type MakeRow = fn(&Dictionary, Vec<Value>) -> Option<Vec<Value>>;

/// A query that the session answers without the storage engine. The columns of its rows are parameters of its
/// expressions.
#[derive(Debug)]
pub struct ComputePlan {
    /// The rights that the statement needs.
    pub rights: PlanRights,
    /// Whether truncation and division by zero are errors, because the statement writes in strict mode.
    pub is_strict: bool,
    /// The columns of the result.
    pub header: ResultHeader,
    /// The source of the rows.
    pub source: ComputeSource,
    /// The table's alias, or its name if it has none; empty without FROM.
    pub table_alias: Box<str>,
    /// WHERE and HAVING.
    pub filter: Option<Expression>,
    /// The values of a result row.
    pub projection: Projection,
    /// The aggregates. The projection reads their results as parameters.
    pub aggregates: Vec<Aggregate>,
    /// ORDER BY; empty for a query with aggregates, which has one row.
    pub sort: Vec<SortKey>,
    /// Whether equal result rows are returned once (DISTINCT).
    pub distinct: bool,
    /// LIMIT and OFFSET.
    pub limit: Option<LimitTemplate>,
    /// Whether the statement is SHOW or DESCRIBE.
    pub is_shown: bool,
    /// Number of the parameter for the first column of a row. The other columns follow it.
    pub first_column: u16,
    /// Number of the parameter for the first aggregate. The other aggregates follow it.
    pub first_aggregate: u16,
}

/// Plans a query without a table or of a virtual table. Errors: the same as for a query of a stored table.
pub(super) fn plan_compute(
    environment: &Environment<'_>,
    select: &Select,
    source: Option<(&VirtualSource, &FindVirtual<'_>)>,
) -> Result<Planned<QueryPlan>> {
    reject_unsupported(select)?;
    let first_column = environment.parameters.len() as u16;
    let columns = source.map_or(&[][..], |(source, _)| &source.columns);
    let types: Vec<ResultType> = columns.iter().map(type_of_column).collect();
    let reference = select.table();
    let table = reference.map_or("", |reference| reference.alias.as_deref().unwrap_or(&reference.name.name));
    let scope = Scope {
        source: match source {
            Some(_) => RowSource::Virtual { columns, types: &types, first_parameter: first_column },
            None => RowSource::Nothing,
        },
        database: source.map_or("", |(source, _)| source.database),
        table,
        has_alias: reference.is_some_and(|reference| reference.alias.is_some()),
    };
    let first_aggregate = first_column.saturating_add(columns.len() as u16);
    let mut binder = Binder::new(environment, scope);
    let count = usize::from(source.is_some());
    check_lock_names(&select.locks, count, |_, name| binder.scope.is_named(name.database.as_deref(), &name.name))?;
    let list = bind_select_list(&mut binder, &select.projection, first_aggregate)?;
    let filter = binder.bind_conditions(select, &list)?;
    let sort = bind_order_of(&mut binder, select, &list)?;
    if select.distinct {
        check_distinct_order(&sort, &list.projection)?;
    }
    let is_volatile = binder.is_volatile;
    let values = filter.iter().chain(&list.projection.values).chain(sort.iter().map(|key| &key.value));
    let arguments = list.aggregates.iter().filter_map(|aggregate| aggregate.argument.as_ref());
    let rows = source.map_or(ComputeSource::Nothing, |(source, find_virtual)| {
        let read = virtual_read(source, (environment, filter.as_slice()), values.chain(arguments));
        find_virtual.rows(&read)
    });
    let plan = ComputePlan {
        rights: PlanRights::default(),
        is_strict: environment.is_strict,
        header: ResultHeader::new(list.projection.columns.clone()),
        table_alias: table.into(),
        filter,
        projection: list.projection,
        aggregates: list.aggregates,
        sort,
        distinct: select.distinct,
        limit: select.limit.map(LimitTemplate::of).transpose()?,
        is_shown: false,
        first_column,
        first_aggregate,
        source: rows,
    };
    Ok(Planned { plan: QueryPlan::Compute(Arc::new(plan)), is_volatile })
}

/// The read of a virtual table whose columns are the parameters after those of the environment.
fn virtual_read<'e>(
    source: &VirtualSource,
    (environment, conditions): (&Environment<'_>, &[Expression]),
    values: impl Iterator<Item = &'e Expression>,
) -> VirtualRead {
    let (first_column, count) = (environment.parameters.len() as u16, source.columns.len() as u16);
    let position = |expression: &Expression| match expression.node {
        Node::Parameter(number) => number.checked_sub(first_column).filter(|place| *place < count),
        _ => None,
    };
    let mut columns = BTreeSet::new();
    values.for_each(|value| value.visit(&mut |inner| columns.extend(position(inner))));
    let names = VirtualColumns { position: &position, parameters: environment.readable_parameters() };
    let equalities = names.equalities_of(conditions);
    VirtualRead { source: source.clone(), columns: columns.into_iter().collect(), equalities, sees_own_tables: false }
}

/// The type of a column's values, derived from its wire description.
pub fn type_of_column(column: &ResultColumn) -> ResultType {
    let nullable = column.flags & column_flag::NOT_NULL == 0;
    let unsigned = column.flags & column_flag::UNSIGNED != 0;
    let collation = CollationId::from_number(column.charset).unwrap_or(CollationId::DEFAULT);
    let result = match column.wire_type {
        wire_type::TINY | wire_type::SHORT | wire_type::INT24 | wire_type::LONG | wire_type::LONGLONG => {
            ResultType::integer(unsigned, column.length)
        }
        wire_type::DOUBLE => ResultType::double(),
        wire_type::NEWDECIMAL => {
            // Results are signed; the length of an UNSIGNED column lacks the sign.
            let length = column.length + u32::from(unsigned);
            ResultType { length, ..ResultType::decimal(DECIMAL_PRECISION_MAX.into(), column.decimals) }
        }
        wire_type::NULL => ResultType::null(),
        wire_type::TIMESTAMP | wire_type::DATETIME => ResultType::temporal(Kind::DateTime, column.decimals),
        wire_type::TIME => ResultType::temporal(Kind::Time, column.decimals),
        wire_type::GEOMETRY => ResultType::geometry(),
        _ => {
            let characters = column.length / collation.max_bytes_per_character() as u32;
            ResultType::string(collation, Coercibility::Implicit, characters)
        }
    };
    debug_assert!(result.kind != Kind::Null || nullable);
    result.with_nullable(nullable)
}
