//! The reads of tables. A leaf is a query of one table with the columns and conditions that the tree needs.

use std::sync::Arc;

use junctor_expression::{Expression, Kind, Node, ParametersBuilder};
use junctor_gateway::invariant;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{TableDefinition, TableLayout};
use junctor_model::value::Value;
use junctor_signals::program::{Projection, SortKey};

use super::{JoinKey, LeafPlan, NullMatch, TreePlanner, TreeTable};
use crate::bind::ParameterKind;
use crate::bind::block::{SlotOwner, SlotSpace};
use crate::parse::statement::{LockingClause, TableReference};
use crate::plan::index_share::index_share;
use crate::plan::restriction::restrictions_of;
use crate::plan::select::{LeafRequest, plan_leaf};
use crate::plan::statement::QueryPlan;
use crate::plan::time_to_live::{Living, living};
use crate::plan::virtual_table::{VirtualColumns, VirtualRead, VirtualSource};
use crate::plan::{AccessPath, ComputePlan, ComputeSource, KeyValues};
use crate::result::ResultHeader;

/// The slots of a relation's columns.
type Columns = [(u16, ColumnNumber)];
/// A stored table, its place in FROM, and the conditions of the view through which it is read.
pub(super) type Table<'t> = (&'t Arc<TableLayout>, &'t TableReference, &'t [Expression]);

/// How a leaf finds its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LeafAccess {
    /// By whole keys.
    Keys,
    /// By ranges of an index, with the share of the table's rows in them if the table was sampled.
    Ranges { share: Option<f64> },
    /// By a scan of all rows.
    Scan,
}

/// An expression over the columns of one table, and the values of the tree's row that it reads.
pub(super) struct Localised<'s> {
    pub space: &'s SlotSpace,
    pub layout: &'s TableLayout,
    /// The number of the table's relation; `None` if the expressions read no other table.
    pub of: Option<u16>,
    pub first_parameter: usize,
    pub parameters: Vec<Expression>,
}

impl Localised<'_> {
    /// Makes an assigned value one of columns of the table. The session computes a value that changes or
    /// reads its state, which becomes a parameter.
    pub fn localise_assigned(&mut self, value: &mut Expression) {
        if !value.is_stateful() {
            *value = self.localise(value);
            return;
        }
        match &mut value.node {
            Node::Convert(operand) => self.localise_assigned(operand),
            _ => {
                let ordinal = (self.first_parameter + self.parameters.len()) as u16;
                let parameter = Expression::parameter_of_type(ordinal, value.result.with_nullable(true));
                self.parameters.push(std::mem::replace(value, parameter));
            }
        }
    }

    /// Replaces slots by columns of the table. Values of the outer block become parameters.
    pub fn localise(&mut self, value: &Expression) -> Expression {
        let mut value = value.clone();
        value.rewrite(&mut |inner| {
            let slot = inner.as_column()?;
            match self.space.owner(slot)? {
                SlotOwner::Column(relation, column) if self.of.is_none_or(|of| of == relation) => {
                    let definition = &self.layout.definition.columns[usize::from(column.0)];
                    let name = match &inner.node {
                        Node::Column { name, .. } => name,
                        _ => "",
                    };
                    Some(Expression::column(column, definition, name))
                }
                SlotOwner::Instant(relation, column) if self.of.is_none_or(|of| of == relation) => {
                    Some(instant(&self.layout.definition, column))
                }
                SlotOwner::Column(..) | SlotOwner::Instant(..) | SlotOwner::Outer(_) | SlotOwner::Computed => {
                    let known = self.parameters.iter().position(|known| known == inner);
                    let place = known.unwrap_or_else(|| {
                        self.parameters.push(inner.clone());
                        self.parameters.len() - 1
                    });
                    let ordinal = (self.first_parameter + place) as u16;
                    Some(Expression::parameter_of_type(ordinal, inner.result.with_nullable(true)))
                }
            }
        });
        value
    }
}

/// The instant in a TIMESTAMP column, as a DATETIME in UTC.
fn instant(definition: &TableDefinition, column: ColumnNumber) -> Expression {
    let own = &definition.columns[usize::from(column.0)];
    match Expression::call("AT TIME ZONE", vec![Expression::column(column, own, &own.name)]) {
        Ok(instant) => instant,
        Err(error) => invariant::fail("every TIMESTAMP has an instant", format_args!("{error}")),
    }
}

impl TreePlanner<'_> {
    /// Plans the read of a table. Returns the position of the leaf.
    pub(super) fn table_leaf(
        &self,
        table: Table<'_>,
        (space, columns): (&SlotSpace, &Columns),
        conditions: Vec<Expression>,
        lock: Option<LockingClause>,
    ) -> Result<usize> {
        self.leaf(table, (space, columns), (&conditions, &[]), lock)
    }

    /// Plans the read of a table by keys of a join that an index serves (see [`Self::serves_keys`]).
    pub(super) fn lookup_leaf(
        &self,
        table: Table<'_>,
        columns: &Columns,
        (space, conditions, keys): (&SlotSpace, &[Expression], &[&JoinKey]),
        lock: Option<LockingClause>,
    ) -> Result<usize> {
        self.leaf(table, (space, columns), (conditions, keys), lock)
    }

    /// Whether one index serves a read by the values of all these keys.
    pub(super) fn serves_keys(
        &self,
        table: Table<'_>,
        (space, conditions, keys): (&SlotSpace, &[Expression], &[&JoinKey]),
        lock: Option<LockingClause>,
    ) -> bool {
        let Ok((request, parameters)) = self.request(table, space, (conditions, keys), lock) else { return false };
        let first_list = self.environment.parameters.len() + parameters.len();
        let is_list = |values: &&KeyValues| match values {
            KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => usize::from(*ordinal) >= first_list,
            KeyValues::One(_) | KeyValues::List(_) | KeyValues::Null => false,
        };
        let uses_all = |parts: &[KeyValues]| parts.iter().filter(is_list).count() == keys.len();
        match request.path(self.environment) {
            Ok(AccessPath::PrimaryKeys(keys) | AccessPath::UniqueKeys { keys, .. }) => {
                keys.alternatives.iter().all(|key| uses_all(key))
            }
            Ok(AccessPath::Ranges { ranges, .. }) => uses_all(&ranges.prefix),
            _ => false,
        }
    }

    /// The columns of a table that conditions on it alone bind to values, and the number of values of each.
    pub(super) fn bound_columns(
        &self,
        table: Table<'_>,
        (space, conditions): (&SlotSpace, &[Expression]),
    ) -> Vec<(ColumnNumber, f64)> {
        let Ok((request, _)) = self.request(table, space, (conditions, &[]), None) else { return Vec::new() };
        request.bound_columns()
    }

    /// How the conditions find rows of the table.
    pub(super) fn access(&self, table: Table<'_>, (space, conditions): (&SlotSpace, &[Expression])) -> LeafAccess {
        let Ok((request, _)) = self.request(table, space, (conditions, &[]), None) else { return LeafAccess::Scan };
        match request.path(self.environment) {
            Ok(AccessPath::Nothing | AccessPath::PrimaryKeys(_) | AccessPath::UniqueKeys { .. }) => LeafAccess::Keys,
            Ok(AccessPath::Ranges { ranges, .. }) => {
                let profile = (self.environment.profile)(&table.0.definition);
                LeafAccess::Ranges { share: profile.and_then(|profile| index_share(&profile, &ranges)) }
            }
            _ => LeafAccess::Scan,
        }
    }

    /// The column of the table whose values are those of a join key, if a list of such values can restrict
    /// it.
    pub(super) fn key_column(&self, layout: &TableLayout, space: &SlotSpace, key: &JoinKey) -> Option<ColumnNumber> {
        // Keys of integers and decimals have the position of any number.
        let kinds = [key.left.result.kind, key.right.result.kind];
        let are_exact = kinds.iter().all(|kind| matches!(kind, Kind::Int | Kind::UInt | Kind::Decimal));
        if key.nulls != NullMatch::Nothing || kinds[0] != kinds[1] && !are_exact {
            return None;
        }
        let SlotOwner::Column(_, column) = space.owner(key.right.as_column()?)? else { return None };
        let definition = &layout.definition.columns[usize::from(column.0)];
        let has_collation = definition.column_type.collation().is_none_or(|of_column| of_column == key.collation);
        if !has_collation {
            return None;
        }
        let own = Expression::column(column, definition, &definition.name);
        let listed = Expression::in_parameters(false, own, 0, key.left.result.with_nullable(true)).ok()?;
        let restrictions = restrictions_of(&layout.definition, &[listed]);
        restrictions.first().map(|restriction| restriction.column)
    }

    fn leaf(
        &self,
        table: Table<'_>,
        (space, columns): (&SlotSpace, &Columns),
        (conditions, keys): (&[Expression], &[&JoinKey]),
        lock: Option<LockingClause>,
    ) -> Result<usize> {
        let (layout, reference, _) = table;
        let (mut request, parameters) = self.request(table, space, (conditions, keys), lock)?;
        let definition = &layout.definition;
        for (_, column) in columns {
            let own = &definition.columns[usize::from(column.0)];
            request.projection.values.push(Expression::column(*column, own, &own.name));
            request.projection.columns.push(ResultColumn::of_table(definition, *column));
        }
        let mut slots: Vec<Option<u16>> = columns.iter().map(|(slot, _)| Some(*slot)).collect();
        // The column of an instant has a slot, too.
        let relation = columns.first().and_then(|(slot, _)| space.owner(ColumnNumber(*slot)));
        if let Some(SlotOwner::Column(relation, _)) = relation {
            for (slot, column) in space.instants_of(relation) {
                let value = instant(definition, column);
                request.projection.columns.push(value.result.result_column(""));
                request.projection.values.push(value);
                slots.push(Some(slot));
            }
        }
        if slots.is_empty() {
            let one = Expression::constant(Value::Int(1), self.environment.collation);
            request.projection.columns.push(one.result.result_column("1"));
            request.projection.values.push(one);
            slots.push(None);
        }
        let (query, is_volatile) = plan_leaf(self.environment, request)?;
        self.is_volatile.set(self.is_volatile.get() || is_volatile);
        let alias: Box<str> = reference.alias.as_deref().unwrap_or(&definition.name).into();
        let locks = query.locking_program.is_some();
        let profile = (self.environment.profile)(&layout.definition);
        let rows = (self.environment.row_estimate)(definition);
        self.tables.borrow_mut().push(TreeTable {
            layout: Arc::clone(layout),
            alias: alias.clone(),
            locks,
            rows,
            profile,
        });
        let mut leaves = self.leaves.borrow_mut();
        let query = QueryPlan::Select(Arc::new(query));
        leaves.push(LeafPlan {
            query,
            slots,
            parameters,
            lists: keys.len(),
            key_filters: 0,
            locks,
            alias,
            rows: None,
            cost_ns: 0.0,
        });
        Ok(leaves.len() - 1)
    }

    fn request<'r>(
        &self,
        (layout, reference, of_view): Table<'r>,
        space: &SlotSpace,
        (conditions, keys): (&[Expression], &[&JoinKey]),
        lock: Option<LockingClause>,
    ) -> Result<(LeafRequest<'r>, Vec<Expression>)> {
        let first_parameter = self.environment.parameters.len();
        let mut local = Localised { space, layout, of: None, first_parameter, parameters: Vec::new() };
        let mut filter: Vec<Expression> = of_view.to_vec();
        filter.extend(conditions.iter().map(|condition| local.localise(condition)));
        let rights: Vec<Expression> = keys.iter().map(|key| local.localise(&key.right)).collect();
        let mut kinds = self.environment.parameters.to_vec();
        kinds.extend(local.parameters.iter().map(|value| ParameterKind::exactly(value.result)));
        let first_list = kinds.len() as u16;
        for (key, right) in keys.iter().zip(rights) {
            let ordinal = kinds.len() as u16;
            let item = key.left.result;
            kinds.push(ParameterKind { is_list: true, ..ParameterKind::exactly(item) });
            filter.push(Expression::in_parameters(false, right, ordinal, item.with_nullable(true))?);
        }
        let filter = match filter.len() {
            0 => None,
            1 => filter.pop(),
            _ => Some(Expression::and(filter)),
        };
        let Living { filter, is_volatile } = living(filter, self.environment, layout)?;
        self.is_volatile.set(self.is_volatile.get() || is_volatile);
        let projection = Projection::new(Vec::new(), Vec::new());
        let join_lists = first_list..kinds.len() as u16;
        let request = LeafRequest { layout, reference, filter, projection, kinds, lock, join_lists };
        Ok((request, local.parameters))
    }

    /// Plans the read of a virtual table. The conditions are those on its rows alone. Returns its node.
    pub(super) fn virtual_leaf(
        &self,
        source: &VirtualSource,
        columns: &Columns,
        conditions: &[Expression],
    ) -> Result<super::PlanNode> {
        let first_column = self.environment.parameters.len() as u16;
        let position = |expression: &Expression| {
            let slot = expression.as_column()?.0;
            columns.iter().find(|(known, _)| *known == slot).map(|(_, column)| column.0)
        };
        let names = VirtualColumns { position: &position, parameters: self.environment.readable_parameters() };
        let read = VirtualRead {
            source: source.clone(),
            columns: columns.iter().map(|(_, column)| column.0).collect(),
            equalities: names.equalities_of(conditions),
            sees_own_tables: false,
        };
        let types: Vec<_> = source.columns.iter().map(super::super::compute::type_of_column).collect();
        let mut projection = Projection::new(Vec::new(), Vec::new());
        for (_, column) in columns {
            let place = usize::from(column.0);
            projection.values.push(Expression::parameter_of_type(first_column + column.0, types[place]));
            projection.columns.push(source.columns[place].clone());
        }
        let mut slots: Vec<Option<u16>> = columns.iter().map(|(slot, _)| Some(*slot)).collect();
        if slots.is_empty() {
            let one = Expression::constant(Value::Int(1), self.environment.collation);
            projection.columns.push(one.result.result_column("1"));
            projection.values.push(one);
            slots.push(None);
        }
        let plan = ComputePlan {
            rights: crate::access::PlanRights::default(),
            is_strict: self.environment.is_strict,
            header: ResultHeader::new(projection.columns.clone()),
            // Its rows follow when all is planned: this leaf may be discarded.
            source: ComputeSource::Nothing,
            table_alias: "".into(),
            filter: None,
            projection,
            aggregates: Vec::new(),
            sort: Vec::<SortKey>::new(),
            distinct: false,
            limit: None,
            is_shown: false,
            first_column,
            first_aggregate: first_column + source.columns.len() as u16,
        };
        let query = QueryPlan::Compute(Arc::new(plan));
        let mut leaves = self.leaves.borrow_mut();
        self.virtual_reads.borrow_mut().push((leaves.len(), read));
        leaves.push(LeafPlan {
            query,
            slots,
            parameters: Vec::new(),
            lists: 0,
            key_filters: 0,
            locks: false,
            alias: "".into(),
            rows: None,
            cost_ns: 0.0,
        });
        Ok(super::PlanNode::Scan(leaves.len() - 1))
    }
}

/// The parameters of a leaf: those of the statement, then these values, then a list of keys.
pub(crate) fn leaf_parameters(own: &[u8], more: &mut ParametersBuilder) -> Result<Vec<u8>> {
    let mut added = Vec::new();
    more.append_to(&mut added)?;
    let own = junctor_expression::Parameters::from_bytes(own);
    let added = junctor_expression::Parameters::from_bytes(&added);
    let ((values, offsets), (more_values, more_offsets)) = (own.parts(), added.parts());
    let mut bytes = Vec::with_capacity(values.len() + more_values.len() + 4 * (offsets.len() + more_offsets.len()) + 2);
    bytes.extend_from_slice(values);
    bytes.extend_from_slice(more_values);
    offsets.iter().for_each(|offset| bytes.extend_from_slice(offset));
    for offset in more_offsets {
        let moved = u32::from_le_bytes(*offset) + values.len() as u32;
        bytes.extend_from_slice(&moved.to_le_bytes());
    }
    bytes.extend_from_slice(&((offsets.len() + more_offsets.len()) as u16).to_le_bytes());
    Ok(bytes)
}
