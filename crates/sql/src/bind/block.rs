//! The names of a query block with any number of relations, and the slots of its rows.
//!
//! A row of a block is a list of slots after the parameters of the statement. A slot is made when a name
//! first resolves to it. In bound expressions a slot is a column with the number of the slot.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use junctor_expression::{Expression, Kind, Node, ResultType};
use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::{ResultColumn, column_flag};
use junctor_model::schema::{ColumnDefinition, TableLayout};

use super::message;
use super::scope::{ColumnOwner, FoundColumn, shown};
use crate::access::SubjectNumber;
use crate::parse::expression::ColumnReference;

/// Maximum number of slots and parameters. Their numbers have 16 bits, and each row has an offset for each.
const SLOTS_MAX: usize = 16 * 1024;

/// The source of a slot's value.
#[derive(Clone, Debug)]
pub enum SlotOwner {
    /// A column of a relation, which is named by its number in the space.
    Column(u16, ColumnNumber),
    /// The instant in a TIMESTAMP column of a relation, as a DATETIME in UTC. The zone of the session may
    /// show two instants alike.
    Instant(u16, ColumnNumber),
    /// A value of the outer block's row, as an expression over that row.
    Outer(Expression),
    /// An operator computes the value.
    Computed,
}

/// The slots of a row, which one or several blocks use.
#[derive(Debug)]
pub struct SlotSpace {
    first: usize,
    owners: RefCell<Vec<SlotOwner>>,
    relations: RefCell<u16>,
}

impl SlotSpace {
    /// A space without slots, after `first` parameters.
    pub fn new(first: usize) -> SlotSpace {
        SlotSpace { first, owners: RefCell::new(Vec::new()), relations: RefCell::new(0) }
    }

    /// Adds a slot. Error: 1235 if there are too many.
    pub fn add(&self, owner: SlotOwner) -> Result<u16> {
        let mut owners = self.owners.borrow_mut();
        let slot = self.first + owners.len();
        if slot >= SLOTS_MAX {
            return Err(Error::not_supported("so many columns and parameters in a query of several tables"));
        }
        owners.push(owner);
        Ok(slot as u16)
    }

    /// A column whose value an operator computes.
    pub fn computed(&self, result: ResultType, name: &str) -> Result<Expression> {
        Ok(Expression::column_of_type(ColumnNumber(self.add(SlotOwner::Computed)?), result, name))
    }

    /// The source of a slot.
    pub fn owner(&self, slot: ColumnNumber) -> Option<SlotOwner> {
        let place = usize::from(slot.0).checked_sub(self.first)?;
        self.owners.borrow().get(place).cloned()
    }

    /// The number of parameters and slots.
    pub fn width(&self) -> usize {
        self.first + self.owners.borrow().len()
    }

    /// The slots that have values of the outer block, with these.
    pub fn outer_values(&self) -> Vec<(u16, Expression)> {
        let owners = self.owners.borrow();
        let outer = owners.iter().enumerate().filter_map(|(place, owner)| match owner {
            SlotOwner::Outer(value) => Some(((self.first + place) as u16, value.clone())),
            _ => None,
        });
        outer.collect()
    }

    /// A number for another relation.
    pub fn next_relation(&self) -> u16 {
        let mut next = self.relations.borrow_mut();
        *next += 1;
        *next - 1
    }

    /// The slots of a relation's columns, in the order in which they were made.
    pub fn columns_of(&self, relation: u16) -> Vec<(u16, ColumnNumber)> {
        let owners = self.owners.borrow();
        let columns = owners.iter().enumerate().filter_map(|(place, owner)| match owner {
            SlotOwner::Column(of, column) if *of == relation => Some(((self.first + place) as u16, *column)),
            _ => None,
        });
        columns.collect()
    }

    /// The slots of instants of a relation, with their columns.
    pub fn instants_of(&self, relation: u16) -> Vec<(u16, ColumnNumber)> {
        let owners = self.owners.borrow();
        let instants = owners.iter().enumerate().filter_map(|(place, owner)| match owner {
            SlotOwner::Instant(of, column) if *of == relation => Some(((self.first + place) as u16, *column)),
            _ => None,
        });
        instants.collect()
    }

    fn slot_of(&self, owner: &SlotOwner) -> Option<u16> {
        let is_it = |known: &SlotOwner| match (known, owner) {
            (SlotOwner::Column(left, column), SlotOwner::Column(right, other))
            | (SlotOwner::Instant(left, column), SlotOwner::Instant(right, other)) => left == right && column == other,
            (SlotOwner::Outer(left), SlotOwner::Outer(right)) => left == right,
            _ => false,
        };
        let place = self.owners.borrow().iter().position(is_it)?;
        Some((self.first + place) as u16)
    }

    fn slot_for(&self, owner: SlotOwner) -> Result<u16> {
        match self.slot_of(&owner) {
            Some(slot) => Ok(slot),
            None => self.add(owner),
        }
    }
}

/// A relation of FROM.
#[derive(Clone, Debug)]
pub struct Relation<'a> {
    /// The number in the slot space.
    pub id: u16,
    /// The alias, or the table's name.
    pub name: String,
    /// The database; empty for a query.
    pub database: String,
    /// Whether the relation has an alias.
    pub has_alias: bool,
    /// The columns.
    pub source: RelationSource<'a>,
    /// Whether the relation is on the inner side of an outer join, so that its columns can be NULL.
    pub is_nullable: bool,
    /// The view whose rows these are.
    pub view: Option<&'a Arc<TableLayout>>,
}

/// The columns of a relation.
#[derive(Clone, Debug)]
pub enum RelationSource<'a> {
    /// The columns of a stored table.
    Table(&'a Arc<TableLayout>),
    /// The columns of a view that is merged into the block.
    View(Arc<MergedView>),
    /// The columns of a virtual table or of a query.
    Rows {
        /// The columns as a client sees them.
        columns: Vec<ResultColumn>,
        /// Their types.
        types: Vec<ResultType>,
        /// Whether this is a table of a system schema, whose names are case-insensitive.
        is_virtual: bool,
    },
}

/// A view whose rows are rows of one table.
#[derive(Debug)]
pub struct MergedView {
    /// The view.
    pub view: Arc<TableLayout>,
    /// The view beneath it, if it is over one.
    pub below: Option<Arc<MergedView>>,
    /// Whose rights to what is beneath the view count.
    pub subject: SubjectNumber,
    /// The table.
    pub layout: Arc<TableLayout>,
    /// The columns.
    pub columns: Vec<MergedColumn>,
    /// The conditions of the view and of those below it, over rows of the table.
    pub filters: Vec<Expression>,
    /// The conditions that WITH CHECK OPTION demands of changed rows, each with the name of its view.
    pub checks: Vec<(Expression, String)>,
}

/// A column of a merged view.
#[derive(Clone, Debug)]
pub struct MergedColumn {
    /// The name.
    pub name: String,
    /// The column beneath the view, if the value is one.
    pub below: Option<String>,
    /// The value, over rows of the table.
    pub value: Expression,
    /// Its description for a client.
    pub column: ResultColumn,
}

impl MergedView {
    /// Whether all columns are columns of the table.
    pub fn is_plain(&self) -> bool {
        self.columns.iter().all(|column| column.value.as_column().is_some())
    }
}

impl Relation<'_> {
    /// Whether a qualifier refers to this relation.
    pub fn is_named(&self, database: Option<&str>, table: &str) -> bool {
        let is_virtual = matches!(self.source, RelationSource::Rows { is_virtual: true, .. });
        let same = |left: &str, right: &str| left == right || is_virtual && left.eq_ignore_ascii_case(right);
        same(&self.name, table) && database.is_none_or(|database| !self.has_alias && same(&self.database, database))
    }

    fn position(&self, name: &str) -> Option<ColumnNumber> {
        match &self.source {
            RelationSource::Table(table) => table.definition.column(name),
            RelationSource::View(view) => {
                let place = view.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
                place.map(|place| ColumnNumber(place as u16))
            }
            RelationSource::Rows { columns, .. } => {
                let place = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
                place.map(|place| ColumnNumber(place as u16))
            }
        }
    }

    /// The columns that a statement can name, and whether `*` includes them.
    fn names(&self) -> Vec<(ColumnNumber, String, bool)> {
        let all = |names: &mut dyn Iterator<Item = String>| {
            names.zip(0..).map(|(name, number)| (ColumnNumber(number), name, true)).collect()
        };
        match &self.source {
            RelationSource::Table(table) => {
                let columns = table.definition.columns.iter().zip(0..).filter(|(column, _)| !column.hidden);
                let named = |(column, number): (&ColumnDefinition, u16)| {
                    (ColumnNumber(number), column.name.to_string(), !column.invisible)
                };
                columns.map(named).collect()
            }
            RelationSource::View(view) => all(&mut view.columns.iter().map(|column| column.name.clone())),
            RelationSource::Rows { columns, .. } => all(&mut columns.iter().map(|column| column.name.to_string())),
        }
    }
}

/// A column that an unqualified name can refer to.
#[derive(Clone, Debug)]
pub struct VisibleColumn {
    /// The name.
    pub name: String,
    /// The position of the relation in the block.
    pub relation: usize,
    /// The column.
    pub column: ColumnNumber,
    /// Whether `*` includes it.
    pub is_shown: bool,
}

/// The relations of a query block and the block around it.
#[derive(Debug)]
pub struct BlockScope<'a> {
    /// The slots of the block's rows.
    pub space: &'a SlotSpace,
    /// The relations of FROM, in their order.
    pub relations: Vec<Relation<'a>>,
    /// The names of the block around this one.
    pub outer: Option<&'a BlockView<'a>>,
    /// Whether the rows of the outer block are the beginning of this block's rows.
    pub shares_rows: bool,
    /// Whether names of TIMESTAMP columns stand for what the session's zone shows alone, not for instants.
    /// HAVING, ORDER BY of DISTINCT and WITH ROLLUP find their values among those of the select list.
    pub hides_instants: Cell<bool>,
}

/// The names that one clause of a block can use.
#[derive(Clone, Debug)]
pub struct BlockView<'a> {
    /// The block.
    pub block: &'a BlockScope<'a>,
    /// The columns that unqualified names can refer to, in the order of `*`.
    pub names: Vec<VisibleColumn>,
    /// The positions of the relations that qualified names can refer to.
    pub relations: Vec<usize>,
}

impl<'a> BlockScope<'a> {
    /// A block with rows of its own.
    pub fn new(space: &'a SlotSpace, relations: Vec<Relation<'a>>, outer: Option<&'a BlockView<'a>>) -> BlockScope<'a> {
        BlockScope { space, relations, outer, shares_rows: false, hides_instants: Cell::default() }
    }

    /// A block whose rows begin with those of the outer one.
    pub fn sharing_rows(
        space: &'a SlotSpace,
        relations: Vec<Relation<'a>>,
        outer: Option<&'a BlockView<'a>>,
    ) -> BlockScope<'a> {
        BlockScope { shares_rows: true, ..BlockScope::new(space, relations, outer) }
    }

    /// The columns of one relation.
    pub fn names_of(&self, relation: usize) -> Vec<VisibleColumn> {
        let names = self.relations[relation].names().into_iter();
        names.map(|(column, name, is_shown)| VisibleColumn { name, relation, column, is_shown }).collect()
    }

    /// The instant in a TIMESTAMP column of a stored table, as a DATETIME in UTC; `None` for other values.
    pub fn instant_of(&self, value: &Expression) -> Result<Option<Expression>> {
        let Node::Column { index, name } = &value.node else { return Ok(None) };
        if self.hides_instants.get() {
            return Ok(None);
        }
        let owner = match self.space.owner(*index) {
            Some(SlotOwner::Column(relation, column)) if self.is_stored(relation) => {
                SlotOwner::Instant(relation, column)
            }
            Some(SlotOwner::Outer(outer_value)) => match self.outer {
                // The value is over the rows of the block around both.
                Some(outer) if self.shares_rows => return outer.block.instant_of(value),
                Some(outer) => match outer.block.instant_of(&outer_value)? {
                    Some(instant) => SlotOwner::Outer(instant),
                    None => return Ok(None),
                },
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let result = ResultType::temporal(Kind::DateTime, value.result.scale()).with_nullable(true);
        Ok(Some(Expression::column_of_type(ColumnNumber(self.space.slot_for(owner)?), result, name)))
    }

    /// Whether a relation is a stored table or a merged view.
    fn is_stored(&self, relation: u16) -> bool {
        match self.relations.iter().find(|known| known.id == relation) {
            Some(known) => !matches!(known.source, RelationSource::Rows { .. }),
            None => self.shares_rows && self.outer.is_some_and(|outer| outer.block.is_stored(relation)),
        }
    }

    /// A column of the stored table of a relation.
    pub fn stored_column(&self, relation: usize, column: ColumnNumber) -> Result<Expression> {
        let of = &self.relations[relation];
        let RelationSource::View(view) = &of.source else { return Ok(self.column(relation, column)?.expression) };
        let definition = &view.layout.definition.columns[usize::from(column.0)];
        let slot = self.space.slot_for(SlotOwner::Column(of.id, column))?;
        let result = ResultType::of_column(definition);
        let result = result.with_nullable(result.nullable || of.is_nullable);
        let shown = format!("`{}`.`{}`", of.name, definition.name);
        Ok(Expression::column_of_type(ColumnNumber(slot), result, &shown))
    }

    /// A column of a merged view. The column has no number in the table if its value is computed.
    fn view_column(&self, relation: usize, column: &MergedColumn, view: &MergedView) -> Result<FoundColumn> {
        let of = &self.relations[relation];
        let mut expression = column.value.clone();
        let mut failed = None;
        expression.rewrite(&mut |inner| {
            let stored = inner.as_column()?;
            match self.stored_column(relation, stored) {
                Ok(slot) => Some(slot),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let index = column.value.as_column().unwrap_or(ColumnNumber(u16::MAX));
        let mut described = column.column.clone();
        described.name = column.name.as_str().into();
        described.table = of.name.as_str().into();
        if of.is_nullable {
            described.flags &= !column_flag::NOT_NULL;
        }
        if let (junctor_expression::Node::Column { .. }, Some(number)) = (&expression.node, column.value.as_column()) {
            described.org_name = view.layout.definition.columns[usize::from(number.0)].name.clone();
        }
        Ok(FoundColumn { index, expression, column: described, owner: ColumnOwner::Query })
    }

    /// A column of a relation.
    pub fn column(&self, relation: usize, column: ColumnNumber) -> Result<FoundColumn> {
        let of = &self.relations[relation];
        let owner = match (of.view, &of.source) {
            (Some(view), _) => ColumnOwner::View(Arc::clone(view), column),
            (None, RelationSource::Table(_) | RelationSource::Rows { is_virtual: true, .. }) => ColumnOwner::Table,
            (None, _) => ColumnOwner::Query,
        };
        if let RelationSource::View(view) = &of.source {
            let found = self.view_column(relation, &view.columns[usize::from(column.0)], view)?;
            return Ok(FoundColumn { owner, ..found });
        }
        let slot = self.space.slot_for(SlotOwner::Column(of.id, column))?;
        let place = usize::from(column.0);
        let (mut described, result) = match &of.source {
            RelationSource::Table(table) => {
                let definition = &table.definition;
                (ResultColumn::of_table(definition, column), ResultType::of_column(&definition.columns[place]))
            }
            RelationSource::View(_) => return Err(Error::table_definition_changed()),
            RelationSource::Rows { columns, types, is_virtual, .. } => {
                let result = types[place];
                (columns[place].clone(), if *is_virtual { result.of_system() } else { result })
            }
        };
        described.table = of.name.as_str().into();
        if of.is_nullable {
            described.flags &= !column_flag::NOT_NULL;
        }
        let shown = match of.database.as_str() {
            "" => format!("`{}`.`{}`", of.name, described.name),
            database => format!("`{database}`.`{}`.`{}`", of.name, described.name),
        };
        let result = result.with_nullable(result.nullable || of.is_nullable);
        let expression = Expression::column_of_type(ColumnNumber(slot), result, &shown);
        Ok(FoundColumn { index: column, expression, column: described, owner })
    }
}

impl BlockView<'_> {
    /// The column that a reference resolves to, in this block or in those around it. Errors: 1052, 1054.
    pub fn resolve(&self, reference: &ColumnReference, clause: &str) -> Result<FoundColumn> {
        if let Some(found) = self.find(reference, clause)? {
            return Ok(found);
        }
        let Some(outer) = self.block.outer else { return Err(message::unknown_column(&shown(reference), clause)) };
        let found = outer.resolve(reference, clause)?;
        if self.block.shares_rows {
            return Ok(found);
        }
        let FoundColumn { index, expression, column, owner } = found;
        let slot = self.block.space.slot_for(SlotOwner::Outer(expression.clone()))?;
        let name = match &expression.node {
            junctor_expression::Node::Column { name, .. } => name.to_string(),
            _ => String::new(),
        };
        let expression = Expression::column_of_type(ColumnNumber(slot), expression.result, &name);
        Ok(FoundColumn { index, expression, column, owner })
    }

    /// The column of this block that a reference resolves to. Error: 1052.
    pub fn find(&self, reference: &ColumnReference, clause: &str) -> Result<Option<FoundColumn>> {
        let ambiguous = || message::ambiguous_column(&shown(reference), clause);
        let place = match &reference.table {
            None => {
                let mut fitting = self.names.iter().filter(|name| name.name.eq_ignore_ascii_case(&reference.name));
                match (fitting.next(), fitting.next()) {
                    (Some(found), None) => Some((found.relation, found.column)),
                    (Some(_), Some(_)) => return Err(ambiguous()),
                    (None, _) => None,
                }
            }
            Some(table) => {
                let database = reference.database.as_deref();
                let mut fitting = self.relations.iter().filter_map(|relation| {
                    let of = &self.block.relations[*relation];
                    let column = of.is_named(database, table).then(|| of.position(&reference.name))??;
                    Some((*relation, column))
                });
                match (fitting.next(), fitting.next()) {
                    (Some(found), None) => Some(found),
                    (Some(_), Some(_)) => return Err(ambiguous()),
                    (None, _) => None,
                }
            }
        };
        place.map(|(relation, column)| self.block.column(relation, column)).transpose()
    }

    /// The columns of `table.*`. Error 1051 for an unknown table.
    pub fn columns_of(&self, database: Option<&str>, table: &str) -> Result<Vec<VisibleColumn>> {
        let mut of_table =
            self.relations.iter().filter(|place| self.block.relations[**place].is_named(database, table));
        let relation = of_table.next().ok_or_else(|| message::unknown_table(table))?;
        Ok(self.block.names_of(*relation).into_iter().filter(|column| column.is_shown).collect())
    }
}
