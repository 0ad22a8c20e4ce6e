//! Views: merged into the statement if their rows are rows of one table, else computed like derived tables.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{SYSTEM_DATABASES, TableLayout, ViewAlgorithm, ViewCheck, ViewDefinition};
use junctor_model::value::Value;

use super::block::{CommonTables, conjuncts};
use super::from::{SourcePlan, bind_from};
use super::leaf::Localised;
use super::pushed::{FromScope, Pushed};
use super::{TreePlanner, TreeTable};
use crate::access::{NeedsCollector, TableAccess, invalid_view};
use crate::bind::block::{BlockScope, BlockView, MergedColumn, MergedView, Relation, RelationSource, SlotSpace};
use crate::bind::{Clause, Environment, as_condition, bind_item, message};
use crate::parse::expression::{ColumnReference, Expression as Written};
use crate::parse::query::{DerivedSource, DerivedTable, FromItem};
use crate::parse::session_value::{Lifting, lift_session_values};
use crate::parse::statement::{ObjectName, Select, SelectItem, Statement, TableReference};
use crate::parse::{Dialect, ParameterNumber, parse_in};
use crate::plan::statement::plan_query;
use crate::plan::virtual_table::FindVirtual;

/// The checks of rows that are changed through a view. Each fails with error 1369.
pub(in crate::plan) fn checks_of(view: &MergedView) -> Result<Vec<Expression>> {
    let check = |(condition, name): &(Expression, String)| {
        let name = Expression::constant(Value::Bytes(name.as_bytes().to_vec()), CollationId::DEFAULT);
        Expression::call("CHECK OPTION", vec![condition.clone(), name])
    };
    view.checks.iter().map(check).collect()
}

/// The query of a view. All its tables have their database.
fn query_of(layout: &TableLayout, view: &ViewDefinition) -> Result<Select> {
    let definition = &layout.definition;
    let invalid = || invalid_view(&definition.database, &definition.name);
    let parsed = parse_in(view.query.as_bytes(), Dialect::default()).map_err(|_| invalid())?;
    let mut statement = parsed.statement;
    // Functions get the settings of the session that they need.
    lift_session_values(&mut statement, ParameterNumber(0), &|_| Lifting::Operands);
    let Statement::Select(mut select) = statement else { return Err(invalid()) };
    qualify(&mut select, &definition.database);
    Ok(*select)
}

fn qualify(select: &mut Select, database: &str) {
    select.for_each_table_mut(&mut Vec::new(), &mut |name| {
        if name.database.is_none() {
            name.database = Some(database.to_owned());
        }
    });
}

/// The table of a query whose rows are rows of that table.
fn only_table(select: &Select) -> Option<&TableReference> {
    let is_plain = |item: &SelectItem| match item {
        SelectItem::Expression { expression, .. } => !expression.needs_tree() && !expression.has_aggregate(),
        SelectItem::All(_) => false,
    };
    let is_row = select.with.is_empty()
        && !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.order_by.is_empty()
        && select.limit.is_none()
        && select.windows.is_empty()
        && !select.is_stateful()
        && select.projection.iter().all(is_plain)
        && !select.filter.as_ref().is_some_and(Written::needs_tree);
    select.table().filter(|_| is_row)
}

/// The view of a statement that changes one table by its name, merged with that table. `statement` is INSERT,
/// UPDATE or DELETE. `None` if the name is not a view.
///
/// # Errors
/// 1288 or 1471 for a view that cannot be changed; those of binding the view.
pub(in crate::plan) fn merged_target(
    environment: &Environment<'_>,
    name: &ObjectName,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Arc<MergedView>>> {
    let Some(view) = environment.view(name) else { return Ok(None) };
    environment.note_table(&view.definition, TableAccess::Insert)?;
    let planner = TreePlanner::new(environment, find_virtual);
    match planner.opened(view, || planner.merged(view))? {
        Some(merged) => Ok(Some(Arc::new(merged))),
        None => {
            let text = format!("The target table {} of the INSERT is not insertable-into", name.name);
            Err(Error::new(ErrorCode::NonInsertableTable, text))
        }
    }
}

/// A view that is being created.
#[derive(Debug)]
pub struct PlannedView {
    /// The query, with names of columns instead of `*`. Tables have their database.
    pub query: Select,
    /// The columns of the query.
    pub columns: Vec<ResultColumn>,
    /// Whether rows can be changed through the view.
    pub is_updatable: bool,
}

/// Plans the query of a view that is being created. Errors: those of planning a query; 1462 if the query
/// reads the view itself.
pub(crate) fn plan_view(
    environment: &Environment<'_>,
    (database, name): (&str, &str),
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<PlannedView> {
    let mut query = select.clone();
    let current = environment.database.unwrap_or(database);
    qualify(&mut query, current);
    let planner = TreePlanner::new(environment, find_virtual);
    if let Some(own) = environment.view(&ObjectName { database: Some(database.into()), name: name.into() }) {
        planner.views.borrow_mut().push(own.definition.id);
        planner.block(&query, None, &CommonTables::NONE, true)?;
        planner.views.borrow_mut().clear();
    }
    planner.freeze(&mut query)?;
    let planned = plan_query(environment, &query, find_virtual)?;
    let columns = planned.plan.header().columns.clone();
    let is_updatable = match only_table(&query) {
        None => false,
        Some(table) => match environment.view(&table.name) {
            Some(view) => view.definition.view.as_ref().is_some_and(|view| view.is_updatable),
            None => environment.table(&table.name, TableAccess::Read).is_ok(),
        },
    };
    Ok(PlannedView { query, columns, is_updatable })
}

impl<'a> TreePlanner<'a> {
    /// Runs a function while a view is being planned. Error 1462 if it is being planned already. Missing
    /// tables and columns of the view are error 1356.
    fn opened<T>(&self, view: &Arc<TableLayout>, plan: impl FnOnce() -> Result<T>) -> Result<T> {
        let definition = &view.definition;
        if self.views.borrow().contains(&definition.id) {
            let text = format!("`{}`.`{}` contains view recursion", definition.database, definition.name);
            return Err(Error::new(ErrorCode::ViewRecursion, text));
        }
        let access = self.environment.access;
        let before = access.map(|access| access.enter_view(definition)).transpose()?;
        self.views.borrow_mut().push(definition.id);
        let planned = plan();
        self.views.borrow_mut().pop();
        if let (Some(access), Some(before)) = (access, before) {
            access.act_as(before);
        }
        planned.map_err(|error| match error.code {
            ErrorCode::NoSuchTable
            | ErrorCode::UnknownColumn
            | ErrorCode::UnknownDatabase
            | ErrorCode::AmbiguousColumn
            | ErrorCode::UnknownTable
            | ErrorCode::WrongObject
            | ErrorCode::ColumnListMismatch
            | ErrorCode::TableAccessDenied
            | ErrorCode::ColumnAccessDenied
            | ErrorCode::ViewInvalid => invalid_view(&definition.database, &definition.name),
            _ => error,
        })
    }

    /// The relation of a view in FROM. A view that is not merged tests the conditions that it has received.
    pub(super) fn view_relation<'f>(
        &self,
        reference: &'f TableReference,
        view: &'f Arc<TableLayout>,
        (is_nullable, received): (bool, &[Expression]),
    ) -> Result<(Relation<'f>, SourcePlan<'f>)>
    where
        'a: 'f,
    {
        let definition = &view.definition;
        let name = reference.alias.as_deref().unwrap_or(&definition.name).to_owned();
        let database = if reference.alias.is_some() { String::new() } else { definition.database.to_string() };
        let has_alias = reference.alias.is_some();
        self.tables.borrow_mut().push(TreeTable {
            profile: None,
            layout: Arc::clone(view),
            alias: name.as_str().into(),
            locks: false,
            // The rows are those of the tables beneath, so their number never makes the plan outdated.
            rows: Some(0),
        });
        let merged = self.opened(view, || self.merged(view))?;
        if let Some(merged) = merged.filter(|merged| !is_nullable || merged.is_plain()) {
            let Some(layout) = self.environment.dictionary.table(merged.layout.definition.id) else {
                return Err(Error::table_definition_changed());
            };
            let filters = merged.filters.clone();
            let source = RelationSource::View(Arc::new(merged));
            let view = Some(view);
            let relation = Relation { id: 0, name, database, has_alias, source, is_nullable: false, view };
            return Ok((relation, SourcePlan::Table(layout, reference, filters)));
        }
        let block = self.opened(view, || {
            let Some(of_view) = definition.view.as_deref() else { return Err(Error::table_definition_changed()) };
            let select = query_of(view, of_view)?;
            self.query_block(&select, (None, &CommonTables::NONE), received)
        })?;
        let names: Vec<String> = definition.columns.iter().map(|column| column.name.to_string()).collect();
        let (relation, source) = self.opened(view, || self.query_relation(name, block, &names))?;
        Ok((Relation { database, has_alias, view: Some(view), ..relation }, source))
    }

    /// The view merged with its table; `None` if its rows are computed.
    fn merged(&self, view: &Arc<TableLayout>) -> Result<Option<MergedView>> {
        let definition = &view.definition;
        let Some(of_view) = definition.view.as_deref() else { return Ok(None) };
        if of_view.algorithm == ViewAlgorithm::Temptable {
            return Ok(None);
        }
        let select = query_of(view, of_view)?;
        let Some(reference) = only_table(&select) else { return Ok(None) };
        let environment = self.environment;
        let database = environment.database_of(&reference.name)?;
        if SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(database)) {
            return Ok(None);
        }
        let subject = environment.access.map(NeedsCollector::subject).unwrap_or_default();
        let inner = environment.view(&reference.name);
        let (source, layout, mut filters, below) = match inner {
            Some(inner) => {
                environment.note_table(&inner.definition, TableAccess::Read)?;
                let Some(merged) = self.opened(inner, || self.merged(inner))? else { return Ok(None) };
                let merged = Arc::new(merged);
                let (layout, filters) = (Arc::clone(&merged.layout), merged.filters.clone());
                (RelationSource::View(Arc::clone(&merged)), layout, filters, Some(merged))
            }
            None => {
                let layout = environment.table(&reference.name, TableAccess::Read)?;
                (RelationSource::Table(layout), Arc::clone(layout), Vec::new(), None)
            }
        };
        let name = reference.alias.as_deref().unwrap_or(&reference.name.name).to_owned();
        let database = match reference.alias {
            Some(_) => String::new(),
            None => reference.name.database.clone().unwrap_or_default(),
        };
        let space = SlotSpace::new(environment.parameters.len());
        let has_alias = reference.alias.is_some();
        let id = space.next_relation();
        let relation = Relation { id, name, database, has_alias, source, is_nullable: false, view: inner };
        let block = BlockScope::new(&space, vec![relation], None);
        let scope = BlockView { block: &block, names: block.names_of(0), relations: vec![0] };
        let mut binder = self.binder(&scope);
        let first_parameter = environment.parameters.len();
        let mut local = Localised { space: &space, layout: &layout, of: None, first_parameter, parameters: Vec::new() };
        let mut columns = Vec::new();
        for (item, column) in select.projection.iter().zip(&definition.columns) {
            let SelectItem::Expression { expression, .. } = item else { return Ok(None) };
            let named = (&*column.name, true);
            let (value, described) = bind_item(&mut binder, Clause::FieldList, expression, named)?;
            let value = local.localise(&value);
            let below = match expression {
                Written::Column(reference) => Some(reference.name.clone()),
                _ => None,
            };
            columns.push(MergedColumn { name: column.name.to_string(), below, value, column: described });
        }
        if columns.len() != definition.columns.len() {
            return Err(message::alias_column_count());
        }
        let mut own = Vec::new();
        for condition in select.filter.iter().flat_map(conjuncts) {
            let bound = as_condition(condition, binder.bind_in(Clause::Where, condition)?)?;
            own.extend(bound.conjuncts().iter().map(|bound| local.localise(bound)));
        }
        self.note(&binder);
        if !local.parameters.is_empty() {
            return Ok(None);
        }
        let shown = format!("{}.{}", definition.database, definition.name);
        let mut checks: Vec<(Expression, String)> = below.as_ref().map_or(Vec::new(), |below| below.checks.clone());
        match of_view.check {
            Some(ViewCheck::Cascaded) => {
                checks = filters.iter().chain(&own).map(|condition| (condition.clone(), shown.clone())).collect();
            }
            Some(ViewCheck::Local) => {
                checks.extend(own.iter().map(|condition| (condition.clone(), shown.clone())));
            }
            None => {}
        }
        filters.extend(own);
        Ok(Some(MergedView { view: Arc::clone(view), below, subject, layout, columns, filters, checks }))
    }

    /// Replaces `*` in the select list of a query, and of the operands of its set operations, by the columns
    /// that it has now.
    fn freeze(&self, select: &mut Select) -> Result<()> {
        if let [SelectItem::All(None)] = &select.projection[..]
            && let Some(FromItem::Derived(derived)) = &mut select.from
            && derived.alias.is_none()
        {
            return self.freeze_operands(derived);
        }
        if !select.projection.iter().any(|item| matches!(item, SelectItem::All(_))) {
            return Ok(());
        }
        let Some(from) = &select.from else {
            return Err(Error::new(ErrorCode::NoTablesUsed, "No tables used"));
        };
        let none = CommonTables::NONE;
        let tables = CommonTables { tables: &select.with, ..CommonTables::within(&none) };
        let space = SlotSpace::new(self.environment.parameters.len());
        let mut relations = Vec::new();
        let shape = {
            let scope = BlockScope::new(&space, Vec::new(), None);
            let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
            let scope = FromScope { space: &space, tables: &tables, outer: &view, pushed: Pushed::NONE };
            self.collect(from, false, scope, &mut relations)?
        };
        let (relations, _): (Vec<_>, Vec<_>) = relations.into_iter().unzip();
        let block = BlockScope::new(&space, relations, None);
        let joined = bind_from(self, &shape, &block, &tables)?;
        let view = BlockView { block: &block, names: joined.names, relations: (0..block.relations.len()).collect() };
        let mut frozen = Vec::new();
        for item in &select.projection {
            let SelectItem::All(named) = item else {
                frozen.push(item.clone());
                continue;
            };
            let columns = match named {
                Some(table) => view.columns_of(table.database.as_deref(), &table.name)?,
                None => view.names.iter().filter(|name| name.is_shown).cloned().collect(),
            };
            for column in columns {
                let of = &block.relations[column.relation];
                let reference =
                    ColumnReference { database: None, table: Some(of.name.clone()), name: column.name.clone() };
                frozen.push(SelectItem::Expression {
                    expression: Written::Column(Box::new(reference)),
                    alias: Some(column.name.clone()),
                    text: column.name,
                });
            }
        }
        drop(view);
        select.projection = frozen;
        Ok(())
    }

    fn freeze_operands(&self, derived: &mut DerivedTable) -> Result<()> {
        match &mut derived.source {
            DerivedSource::Select(query) => self.freeze(query),
            DerivedSource::Set { first, rest } => {
                self.freeze(first)?;
                rest.iter_mut().try_for_each(|operand| self.freeze(&mut operand.query))
            }
            DerivedSource::Values(_) | DerivedSource::JsonTable(_) => Ok(()),
        }
    }
}

/// The number of a column of the view in its table. Error 1348 for a computed column.
pub(in crate::plan) fn stored_number(view: &MergedView, name: &str) -> Result<ColumnNumber> {
    let column = view.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
    let column = column.ok_or_else(|| message::unknown_column(name, Clause::FieldList.name()))?;
    column.value.as_column().ok_or_else(|| message::column_not_updatable(name))
}
