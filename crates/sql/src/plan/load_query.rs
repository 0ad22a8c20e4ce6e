//! LOAD DATA: values of SET that need a query for each line, because they have subqueries, assign user
//! variables or wait.
//!
//! A query has one row. It reads the parameters of the line, and the columns of the row as the assignments
//! before it leave them. Its values are further parameters of the line. Several assignments share a query,
//! unless one reads what another assigns.

use junctor_expression::{ResultType, function};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::TableDefinition;

use super::insert::{check_not_generated, plan_source};
use super::modify::TargetCheck;
use super::statement::QueryPlan;
use super::tree::TreeTable;
use super::virtual_table::FindVirtual;
use crate::bind::{Environment, ParameterKind};
use crate::parse::expression::{Expression, ParameterNumber};
use crate::parse::limit::PARAMETERS_MAX;
use crate::parse::query::{DerivedSource, DerivedTable, FromItem};
use crate::parse::statement::{Select, SelectItem};

/// The queries of a LOAD DATA, each of which runs once for a line.
#[derive(Debug, Default)]
pub struct LineQueries {
    /// The queries, in the order of the assignments.
    pub queries: Vec<LineQuery>,
    /// The stored tables that they read.
    pub tables: Vec<TreeTable>,
    /// The user variables that SET assigns, in lower case.
    pub assigned: Vec<Box<str>>,
    /// Whether a query is valid for one execution only.
    pub is_volatile: bool,
}

/// A query that computes values of SET.
#[derive(Debug)]
pub struct LineQuery {
    /// Number of assignments before its first value.
    pub before: usize,
    /// The columns that it reads. Their values follow the parameters of the line.
    pub columns: Vec<ColumnNumber>,
    /// The query, which returns one row.
    pub query: QueryPlan,
    /// Whether its values are the same for all lines. It then runs for the first line only.
    pub is_constant: bool,
}

/// Collects the values of SET that need queries, and plans these.
pub(super) struct QueryMaker<'m> {
    environment: &'m Environment<'m>,
    definition: &'m TableDefinition,
    ignores: bool,
    find_virtual: &'m FindVirtual<'m>,
    made: LineQueries,
    /// The types of the values of the queries that are planned.
    types: Vec<ResultType>,
    /// The columns that are assigned, in the order of the statement.
    assigned: Vec<ColumnNumber>,
    /// The values of the next query, and the number of assignments before the first one.
    items: Vec<SelectItem>,
    before: usize,
    /// Whether these values are the same for all lines.
    is_constant: bool,
    /// Whether the value has a subquery that reads or assigns user variables. Subqueries run before the other
    /// values of their query, so such a value has a query of its own.
    is_alone: bool,
    /// Number of parameters of a line, from the first one on, that are fields.
    fields: usize,
    /// Number of values taken.
    taken: usize,
}

impl<'m> QueryMaker<'m> {
    /// `environment` has the parameters of a line, of which the first `fields` are fields that variables get.
    /// `ignores` is IGNORE.
    pub fn new(
        (environment, fields): (&'m Environment<'m>, usize),
        definition: &'m TableDefinition,
        (ignores, find_virtual): (bool, &'m FindVirtual<'m>),
    ) -> QueryMaker<'m> {
        QueryMaker {
            environment,
            definition,
            ignores,
            find_virtual,
            made: LineQueries::default(),
            types: Vec::new(),
            assigned: Vec::new(),
            items: Vec::new(),
            before: 0,
            is_constant: false,
            is_alone: false,
            fields,
            taken: 0,
        }
    }

    /// Takes the next value of SET if it needs a query. Returns the number of its parameter.
    ///
    /// # Errors
    /// 1093 if it reads the table, 3105 for a generated column, those of planning a query.
    pub fn take(&mut self, column: ColumnNumber, value: &Expression) -> Result<Option<u16>> {
        let is_taken = value.needs_tree() || value.is_stateful();
        let place = self.assigned.len();
        self.assigned.push(column);
        if !is_taken {
            return Ok(None);
        }
        check_not_generated(self.definition, column)?;
        let unnoted = Environment { access: None, ..*self.environment };
        let targets = [self.definition.id];
        let check = TargetCheck { environment: &unnoted, targets: &targets, name: None, common: &[] };
        check.expressions(std::iter::once(value))?;
        let read = columns_of(self.definition, std::iter::once(value));
        let is_constant = read.is_empty() && self.is_constant(value);
        let depends = self.assigned[self.before..place].iter().any(|column| read.contains(column));
        let is_alone = has_stateful_subquery(value);
        if !self.items.is_empty() && (depends || is_constant != self.is_constant || is_alone || self.is_alone) {
            self.plan_query()?;
        }
        if self.items.is_empty() {
            (self.before, self.is_constant, self.is_alone) = (place, is_constant, is_alone);
        }
        value.visit_deep(&mut |inner| {
            if let Expression::AssignUserVariable { name, .. } = inner {
                self.made.assigned.push(name.to_lowercase().into());
            }
        });
        self.items.push(item(self.without_database(value)));
        let number = self.environment.parameters.len() + self.taken;
        self.taken += 1;
        match u16::try_from(number).ok().filter(|_| number < PARAMETERS_MAX as usize) {
            Some(number) => Ok(Some(number)),
            None => Err(Error::new(ErrorCode::TooManyParameters, "Prepared statement contains too many placeholders")),
        }
    }

    /// The queries.
    ///
    /// # Errors
    /// Errors of planning a query.
    pub fn finish(mut self) -> Result<LineQueries> {
        if !self.items.is_empty() {
            self.plan_query()?;
        }
        Ok(self.made)
    }

    /// Whether a value that reads no column is the same for all lines.
    fn is_constant(&self, value: &Expression) -> bool {
        let mut is_constant = true;
        value.visit_deep(&mut |inner| {
            is_constant &= match inner {
                Expression::Parameter(number) => number.0 as usize >= self.fields,
                Expression::AssignUserVariable { .. } => false,
                Expression::Function(call) => {
                    call.database.is_some() || function::find(&call.name).is_none_or(|known| !known.is_volatile())
                }
                _ => true,
            };
        });
        is_constant
    }

    /// A value whose columns name no database, because the row of a line is in none.
    fn without_database(&self, value: &Expression) -> Expression {
        let mut value = value.clone();
        value.replace(&mut |inner| {
            if let Expression::Column(reference) = inner
                && reference.table.as_deref() == Some(&self.definition.name)
                && reference.database.as_deref() == Some(&self.definition.database)
            {
                reference.database = None;
            }
            false
        });
        value
    }

    /// Plans the query of the items.
    fn plan_query(&mut self) -> Result<()> {
        let items = std::mem::take(&mut self.items);
        let values = items.iter().filter_map(|item| match item {
            SelectItem::Expression { expression, .. } => Some(expression),
            SelectItem::All(_) => None,
        });
        let columns = columns_of(self.definition, values);
        let mut kinds = self.environment.parameters.to_vec();
        kinds.extend(self.types.iter().copied().map(ParameterKind::exactly));
        let first = kinds.len();
        let definition = |column: &ColumnNumber| &self.definition.columns[usize::from(column.0)];
        let of_columns = columns.iter().map(|column| ResultType::of_column(definition(column)).with_nullable(true));
        kinds.extend(of_columns.map(ParameterKind::exactly));
        let row = (first..kinds.len()).map(|number| Expression::Parameter(ParameterNumber(number as u32)));
        let from = (!columns.is_empty()).then(|| {
            FromItem::Derived(Box::new(DerivedTable {
                source: DerivedSource::Values(vec![row.collect()]),
                alias: Some(self.definition.name.to_string()),
                columns: columns.iter().map(|column| definition(column).name.to_string()).collect(),
                lateral: false,
            }))
        });
        let select = Select { projection: items, from, ..Select::default() };
        // The values of the parameters are known only when a line has been read.
        let environment =
            Environment { parameters: &kinds, parameter_values: &[], execution_values: &[], ..*self.environment };
        let planned = plan_source(&environment, self.ignores, &select, self.find_virtual)?;
        self.made.is_volatile |= planned.is_volatile;
        self.types.extend(planned.plan.value_types());
        self.made.tables.extend_from_slice(planned.plan.tree_tables());
        let (before, is_constant) = (self.before, self.is_constant);
        self.made.queries.push(LineQuery { before, columns, query: planned.plan, is_constant });
        Ok(())
    }
}

/// The columns of the table that have the names of columns in these values, also in subqueries.
fn columns_of<'v>(definition: &TableDefinition, values: impl Iterator<Item = &'v Expression>) -> Vec<ColumnNumber> {
    let mut columns = Vec::new();
    for value in values {
        value.visit_deep(&mut |inner| {
            if let Expression::Column(reference) = inner
                && let Some(column) = definition.column(&reference.name)
                && !columns.contains(&column)
            {
                columns.push(column);
            }
        });
    }
    columns
}

/// Whether a subquery of the value assigns a user variable, or reads one that the statement assigns.
fn has_stateful_subquery(value: &Expression) -> bool {
    let mut has_one = false;
    value.visit_deep(&mut |inner| {
        if let Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } = inner {
            has_one |= query.is_stateful();
        }
    });
    has_one
}

fn item(expression: Expression) -> SelectItem {
    // With an empty alias, no expression of the query can refer to the item.
    SelectItem::Expression { expression, alias: Some(String::new()), text: String::new() }
}
