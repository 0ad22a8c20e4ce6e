//! FROM: its relations, and the conditions of its joins.

use std::sync::Arc;

use junctor_expression::{CompareOperator, Expression, ResultType};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableLayout;

use super::block::{Applies, CommonTables, conjuncts};
use super::factor::conjuncts_of;
use super::join::JoinNode;
use super::pushed::FromScope;
use super::recursion::{Defining, WorkingTable, in_outer_join};
use super::subquery::BlockSubqueries;
use super::{BlockPlan, TreePlanner};
use crate::access::TableAccess;
use crate::bind::block::{BlockScope, BlockView, Relation, RelationSource, VisibleColumn};
use crate::bind::{Clause, as_condition, message};
use crate::parse::query::{DerivedSource, DerivedTable, FromItem, JoinCondition, JoinKind};
use crate::parse::statement::{CommonTable, TableReference};
use crate::plan::compute::type_of_column;
use crate::plan::virtual_table::{VirtualSource, virtual_source};

/// The rows of a relation.
pub(super) enum SourcePlan<'a> {
    /// A stored table, with the conditions of the view through which it is read.
    Table(&'a Arc<TableLayout>, &'a TableReference, Vec<Expression>),
    /// A virtual table.
    Virtual(VirtualSource),
    /// A query.
    Query(Arc<BlockPlan>),
    /// The rows of the last round of a recursive query, in these slots of its rows.
    Working(Vec<u16>),
}

/// The tree of joins as written. Relations are positions in the block.
pub(super) enum Shape<'a> {
    Relation(usize),
    Join { kind: JoinKind, left: Box<Shape<'a>>, right: Box<Shape<'a>>, condition: &'a JoinCondition },
}

/// A bound FROM.
pub(super) struct BoundFrom {
    pub node: JoinNode,
    /// The columns that unqualified names can refer to, in the order of `*`.
    pub names: Vec<VisibleColumn>,
    /// The subqueries in ON of inner joins, which are those of WHERE, and the conditions that read them.
    pub applies: Applies,
    pub conditions: Vec<Expression>,
    relations: Vec<usize>,
}

type Relations<'a> = Vec<(Relation<'a>, SourcePlan<'a>)>;

impl<'a> TreePlanner<'a> {
    /// Collects the relations of FROM and plans its queries. Error 1066 for a name that occurs twice.
    pub(super) fn collect<'f>(
        &self,
        item: &'f FromItem,
        is_nullable: bool,
        scope: FromScope<'_>,
        relations: &mut Relations<'f>,
    ) -> Result<Shape<'f>>
    where
        'a: 'f,
    {
        let FromScope { space, tables, outer, pushed } = scope;
        let received = pushed.of(relations.len());
        let named = match item {
            FromItem::Join(join) => {
                let left = is_nullable || join.kind == JoinKind::Right;
                let right = is_nullable || join.kind == JoinKind::Left;
                let left = Box::new(self.collect(&join.left, left, scope, relations)?);
                let right = Box::new(self.collect(&join.right, right, scope, relations)?);
                return Ok(Shape::Join { kind: join.kind, left, right, condition: &join.condition });
            }
            FromItem::Table(reference) => self.table(reference, tables, (is_nullable, received))?,
            FromItem::Derived(derived) => {
                let inside = CommonTables { changes: None, ..*tables };
                let block = match derived.lateral {
                    true => self.lateral(derived, FromScope { tables: &inside, ..scope }, relations)?,
                    false => self.derived(derived, &inside, outer, received)?,
                };
                let name = derived.alias.clone().unwrap_or_default();
                self.query_relation(name, block, &derived.columns)?
            }
        };
        let (mut relation, source) = named;
        (relation.id, relation.is_nullable) = (space.next_relation(), is_nullable);
        let is_same = |known: &Relation<'_>| {
            known.name.eq_ignore_ascii_case(&relation.name) && known.database == relation.database
        };
        if relations.iter().any(|(known, _)| is_same(known)) {
            let text = format!("Not unique table/alias: '{}'", relation.name);
            return Err(Error::new(ErrorCode::NonUniqueTable, text));
        }
        relations.push((relation, source));
        Ok(Shape::Relation(relations.len() - 1))
    }

    fn table<'f>(
        &self,
        reference: &'f TableReference,
        tables: &CommonTables<'_>,
        (is_nullable, received): (bool, &[Expression]),
    ) -> Result<(Relation<'f>, SourcePlan<'f>)>
    where
        'a: 'f,
    {
        let name = reference.alias.as_deref().unwrap_or(&reference.name.name).to_owned();
        if reference.name.database.is_none() {
            match find_common(tables, &reference.name.name) {
                Some(Common::Table(table, visible)) => {
                    let block = self.common_table(table, &visible, received)?;
                    return self.query_relation(name, block, &table.columns);
                }
                Some(Common::Working(working)) => return working_relation(name, working, is_nullable),
                None => {}
            }
        }
        let relation = |database: &str, source| Relation {
            id: 0,
            name: name.clone(),
            database: if reference.alias.is_some() { String::new() } else { database.to_owned() },
            has_alias: reference.alias.is_some(),
            source,
            is_nullable: false,
            view: None,
        };
        let environment = self.environment;
        if let Some(source) = virtual_source(environment, &reference.name, self.find_virtual)? {
            self.is_volatile.set(true);
            let types = source.columns.iter().map(type_of_column).collect();
            let rows = RelationSource::Rows { columns: source.columns.clone(), types, is_virtual: true };
            return Ok((relation(source.database, rows), SourcePlan::Virtual(source)));
        }
        let table_access = tables.changes.unwrap_or(TableAccess::Read);
        if let Some(view) = environment.view(&reference.name) {
            environment.note_table(&view.definition, table_access)?;
            return self.view_relation(reference, view, (is_nullable, received));
        }
        let layout: &'f Arc<TableLayout> = environment.table(&reference.name, table_access)?;
        let relation = relation(&layout.definition.database, RelationSource::Table(layout));
        Ok((relation, SourcePlan::Table(layout, reference, Vec::new())))
    }

    /// The block of a table of WITH. The tables before it are visible in it.
    fn common_table(
        &self,
        table: &CommonTable,
        visible: &CommonTables<'_>,
        received: &[Expression],
    ) -> Result<BlockPlan> {
        if table.recursive && table.query.references(&table.name).any() {
            let defining = Some(Defining::of(table)?);
            return self.query_block(&table.query, (None, &CommonTables { defining, ..*visible }), received);
        }
        let block = self.query_block(&table.query, (None, visible), received)?;
        if block.is_stateful {
            let mut known = self.stateful_tables.borrow_mut();
            if known.contains(&table.name) {
                let what = "a user variable that the statement assigns, in a query of WITH that is read twice";
                return Err(Error::not_supported(what));
            }
            known.push(table.name.clone());
        }
        Ok(block)
    }

    /// A relation of the result of a block. Errors: 1060, 1353.
    pub(super) fn query_relation<'f>(
        &self,
        name: String,
        mut block: BlockPlan,
        names: &[String],
    ) -> Result<(Relation<'f>, SourcePlan<'f>)> {
        let described = std::mem::take(&mut block.columns);
        if !names.is_empty() && names.len() != described.len() {
            return Err(message::alias_column_count());
        }
        let mut columns: Vec<ResultColumn> = Vec::with_capacity(described.len());
        for (place, mut column) in described.into_iter().enumerate() {
            if let Some(name) = names.get(place) {
                column.name = name.as_str().into();
            }
            let is_known = |known: &ResultColumn| known.name.eq_ignore_ascii_case(&column.name);
            if !name.is_empty() && columns.iter().any(is_known) {
                let text = format!("Duplicate column name '{}'", column.name);
                return Err(Error::new(ErrorCode::DuplicateColumn, text));
            }
            columns.push(column);
        }
        let types: Vec<ResultType> = block.values.iter().map(|value| value.result).collect();
        let source = RelationSource::Rows { columns, types, is_virtual: false };
        let relation =
            Relation { id: 0, name, database: String::new(), has_alias: true, source, is_nullable: false, view: None };
        Ok((relation, SourcePlan::Query(Arc::new(block))))
    }

    /// Plans a query that can name columns of the relations before it.
    fn lateral(
        &self,
        derived: &DerivedTable,
        FromScope { space, tables, outer, pushed }: FromScope<'_>,
        relations: &Relations<'_>,
    ) -> Result<BlockPlan> {
        let received = pushed.of(relations.len());
        let before = relations.iter().map(|(relation, _)| relation.clone()).collect();
        let block = BlockScope::new(space, before, outer.block.outer);
        let places: Vec<usize> = (0..block.relations.len()).collect();
        let names = places.iter().flat_map(|place| block.names_of(*place)).collect();
        let view = BlockView { block: &block, names, relations: places };
        self.derived(derived, tables, &view, received)
    }

    /// Plans a query in FROM. It can name columns of the blocks around the one that it belongs to.
    fn derived(
        &self,
        derived: &DerivedTable,
        tables: &CommonTables<'_>,
        outer: &BlockView<'_>,
        received: &[Expression],
    ) -> Result<BlockPlan> {
        match &derived.source {
            DerivedSource::Select(select) => self.query_block(select, (Some(outer), tables), received),
            DerivedSource::Set { first, rest } => {
                match tables.defining.and_then(|defining| defining.table_of(derived)) {
                    Some(table) => self.recursion(table, (first, rest), tables, outer),
                    None => self.set((first, rest), tables, outer, received),
                }
            }
            DerivedSource::Values(rows) => self.values(rows, outer),
            DerivedSource::JsonTable(table) => self.json_table(table, outer),
        }
    }
}

/// A table of WITH.
enum Common<'t> {
    /// With the tables that are visible in it.
    Table(&'t CommonTable, CommonTables<'t>),
    /// Inside its own recursive queries.
    Working(&'t WorkingTable<'t>),
}

/// The table of WITH that has this name.
fn find_common<'t>(tables: &CommonTables<'t>, name: &str) -> Option<Common<'t>> {
    let mut scope = Some(*tables);
    while let Some(tables) = scope {
        if let Some(working) = tables.working.filter(|working| working.table.name.eq_ignore_ascii_case(name)) {
            return Some(Common::Working(working));
        }
        if let Some(place) = tables.tables.iter().position(|table| table.name.eq_ignore_ascii_case(name)) {
            let visible = CommonTables {
                tables: &tables.tables[..place],
                working: None,
                defining: None,
                changes: None,
                ..tables
            };
            return Some(Common::Table(&tables.tables[place], visible));
        }
        scope = tables.outer.copied();
    }
    None
}

/// A relation of the last round of a recursive query. Error: 3576.
fn working_relation<'f>(
    name: String,
    working: &WorkingTable<'_>,
    is_nullable: bool,
) -> Result<(Relation<'f>, SourcePlan<'f>)> {
    if is_nullable {
        return Err(in_outer_join(working.table));
    }
    let (columns, types) = (working.columns.clone(), working.types.clone());
    let source = RelationSource::Rows { columns, types, is_virtual: false };
    let relation =
        Relation { id: 0, name, database: String::new(), has_alias: true, source, is_nullable: false, view: None };
    Ok((relation, SourcePlan::Working(working.slots.clone())))
}

/// Binds the conditions of the joins. Errors: 1052, 1054.
pub(super) fn bind_from<'s>(
    planner: &TreePlanner<'_>,
    shape: &Shape<'_>,
    block: &'s BlockScope<'s>,
    tables: &CommonTables<'_>,
) -> Result<BoundFrom> {
    let (kind, left, right, condition) = match shape {
        Shape::Relation(relation) => {
            let names = block.names_of(*relation);
            let (applies, conditions) = (Vec::new(), Vec::new());
            let (node, relations) = (JoinNode::Relation(*relation), vec![*relation]);
            return Ok(BoundFrom { node, names, applies, conditions, relations });
        }
        Shape::Join { kind, left, right, condition } => (*kind, left, right, *condition),
    };
    let left = bind_from(planner, left, block, tables)?;
    let right = bind_from(planner, right, block, tables)?;
    let mut relations = left.relations;
    relations.extend(&right.relations);
    let mut conditions = Vec::new();
    let mut subqueries = Vec::new();
    let all = || left.names.iter().chain(&right.names).cloned().collect::<Vec<_>>();
    let names = match condition {
        JoinCondition::Always => all(),
        JoinCondition::On(condition) => {
            let view = BlockView { block, names: all(), relations: relations.clone() };
            let of_condition = BlockSubqueries::new(planner, &view, tables);
            let mut binder = planner.binder(&view);
            binder.subqueries = Some(&of_condition);
            for conjunct in conjuncts(condition) {
                let bound = as_condition(conjunct, binder.bind_in(Clause::On, conjunct)?)?;
                let applies = of_condition.take();
                match applies.is_empty() {
                    true => conditions.extend(conjuncts_of(&bound)),
                    false => subqueries.push((bound, applies)),
                }
            }
            planner.note(&binder);
            all()
        }
        JoinCondition::Using(columns) => {
            note_common(planner, block, (&left.names, &right.names), columns)?;
            merge(block, (&left.names, &right.names), columns, kind, &mut conditions)?
        }
        JoinCondition::Natural => {
            let is_common = |name: &&VisibleColumn| {
                let in_right = |other: &VisibleColumn| other.is_shown && other.name.eq_ignore_ascii_case(&name.name);
                name.is_shown && right.names.iter().any(in_right)
            };
            let columns: Vec<String> = left.names.iter().filter(is_common).map(|name| name.name.clone()).collect();
            note_common(planner, block, (&left.names, &right.names), &columns)?;
            merge(block, (&left.names, &right.names), &columns, kind, &mut conditions)?
        }
    };
    let is_inner = matches!(kind, JoinKind::Inner | JoinKind::Straight);
    let (outer, inner) = match kind {
        JoinKind::Right => ((right.node, right.applies, right.conditions), (left.node, left.applies, left.conditions)),
        _ => ((left.node, left.applies, left.conditions), (right.node, right.applies, right.conditions)),
    };
    let (mut applies, mut above) = (outer.1, outer.2);
    let (outer, inner) = match inner {
        (node, of_inner, conditions) if !is_inner && !of_inner.is_empty() => {
            (outer.0, JoinNode::Applied { node: Box::new(node), applies: of_inner, conditions })
        }
        (node, of_inner, conditions) => {
            applies.extend(of_inner);
            above.extend(conditions);
            (outer.0, node)
        }
    };
    let node = match is_inner {
        true => {
            for (condition, of_condition) in subqueries {
                applies.extend(of_condition);
                above.push(condition);
            }
            JoinNode::inner(outer, inner, conditions, kind == JoinKind::Straight)
        }
        false => JoinNode::outer((outer, inner), conditions, subqueries, block)?,
    };
    Ok(BoundFrom { node, names, applies, conditions: above, relations })
}

/// Notes that the columns of USING are read on both sides.
fn note_common(
    planner: &TreePlanner<'_>,
    block: &BlockScope<'_>,
    (left, right): (&[VisibleColumn], &[VisibleColumn]),
    columns: &[String],
) -> Result<()> {
    for name in columns {
        for column in left.iter().chain(right).filter(|column| column.name.eq_ignore_ascii_case(name)) {
            planner.environment.note_read(&block.column(column.relation, column.column)?);
        }
    }
    Ok(())
}

/// Makes the columns of USING equal. Returns the names of the join: first the common columns, once.
fn merge(
    block: &BlockScope<'_>,
    (left, right): (&[VisibleColumn], &[VisibleColumn]),
    columns: &[String],
    kind: JoinKind,
    conditions: &mut Vec<Expression>,
) -> Result<Vec<VisibleColumn>> {
    let clause = "from clause";
    let find = |names: &[VisibleColumn], name: &str| {
        let mut fitting = names.iter().filter(|column| column.name.eq_ignore_ascii_case(name));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found.clone()),
            (Some(_), Some(_)) => Err(message::ambiguous_column(name, clause)),
            (None, _) => Err(message::unknown_column(name, clause)),
        }
    };
    let mut names = Vec::new();
    for name in columns {
        let (of_left, of_right) = (find(left, name)?, find(right, name)?);
        let value = |column: &VisibleColumn| block.column(column.relation, ColumnNumber(column.column.0));
        let operands = (value(&of_left)?.expression, value(&of_right)?.expression);
        conditions.push(Expression::comparison(CompareOperator::Equal, operands.0, operands.1)?);
        names.push(if kind == JoinKind::Right { of_right } else { of_left });
    }
    let is_other = |column: &&VisibleColumn| !columns.iter().any(|name| name.eq_ignore_ascii_case(&column.name));
    names.extend(left.iter().filter(is_other).cloned());
    names.extend(right.iter().filter(is_other).cloned());
    Ok(names)
}
