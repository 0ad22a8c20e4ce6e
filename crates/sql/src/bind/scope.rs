//! Resolves the names in a statement to columns.

use std::sync::Arc;

use junctor_expression::{Expression, ResultType};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableLayout;

use super::block::BlockView;
use super::message;
use crate::parse::expression::ColumnReference;

/// The source of a statement's rows.
#[derive(Clone, Copy, Debug)]
pub enum RowSource<'a> {
    /// No table, but one row without columns: the statement has no FROM, or FROM DUAL.
    Nothing,
    /// The rows of a stored table.
    Table(&'a Arc<TableLayout>),
    /// Rows that the session computes. Their columns are bound as parameters.
    Virtual {
        /// The columns as a client sees them.
        columns: &'a [ResultColumn],
        /// The types of the columns, in the same order.
        types: &'a [ResultType],
        /// Number of the first column's parameter.
        first_parameter: u16,
    },
    /// The rows of a query block with any number of relations.
    Block(&'a BlockView<'a>),
}

/// A statement's rows and the names by which it refers to them.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The source of the rows.
    pub source: RowSource<'a>,
    /// The table's database.
    pub database: &'a str,
    /// The table's alias, or its name if it has none.
    pub table: &'a str,
    /// Whether the table has an alias. If so, a reference cannot qualify it by its database.
    pub has_alias: bool,
}

/// The column that a reference resolves to.
#[derive(Clone, Debug)]
pub struct FoundColumn {
    /// The column's position in its table.
    pub index: ColumnNumber,
    /// The reference as a typed expression.
    pub expression: Expression,
    /// The column's description for a client.
    pub column: ResultColumn,
    /// What somebody who reads the column needs a right on.
    pub owner: ColumnOwner,
}

/// What somebody who reads a column needs a right on.
#[derive(Clone, Debug)]
pub enum ColumnOwner {
    /// The table that the description names.
    Table,
    /// A view, by this column.
    View(Arc<TableLayout>, ColumnNumber),
    /// A query, which is checked where it is bound.
    Query,
}

impl<'a> Scope<'a> {
    /// The scope of a statement without rows: it has no columns.
    pub fn empty() -> Scope<'static> {
        Scope { source: RowSource::Nothing, database: "", table: "", has_alias: false }
    }

    /// The scope of a query block.
    pub fn of_block(view: &'a BlockView<'a>) -> Scope<'a> {
        Scope { source: RowSource::Block(view), ..Scope::empty() }
    }

    /// The scope of a statement on one table.
    pub fn of_table(table: &'a Arc<TableLayout>, alias: Option<&'a str>) -> Scope<'a> {
        let definition = &table.definition;
        Scope {
            source: RowSource::Table(table),
            database: &definition.database,
            table: alias.unwrap_or(&definition.name),
            has_alias: alias.is_some(),
        }
    }

    /// Whether a qualifier refers to this scope's table.
    pub fn is_named(&self, database: Option<&str>, table: &str) -> bool {
        // Names of system schemas and their tables are case-insensitive.
        let is_virtual = matches!(self.source, RowSource::Virtual { .. });
        let same = |left: &str, right: &str| left == right || is_virtual && left.eq_ignore_ascii_case(right);
        same(self.table, table) && database.is_none_or(|database| !self.has_alias && same(self.database, database))
    }

    /// The columns that `*` expands to, without hidden and invisible ones.
    pub fn visible_columns(&self) -> Vec<ColumnNumber> {
        let indexes = |count: usize| (0..count as u16).map(ColumnNumber);
        match self.source {
            RowSource::Nothing | RowSource::Block(_) => Vec::new(),
            RowSource::Table(table) => {
                let columns = &table.definition.columns;
                {
                    let is_shown =
                        |column: &junctor_model::schema::ColumnDefinition| !column.hidden && !column.invisible;
                    indexes(columns.len()).filter(|index| is_shown(&columns[usize::from(index.0)])).collect()
                }
            }
            RowSource::Virtual { columns, .. } => indexes(columns.len()).collect(),
        }
    }

    /// The column that a reference resolves to. Errors: 1052 and 1054, which name the clause.
    pub fn resolve(&self, reference: &ColumnReference, clause: &str) -> Result<FoundColumn> {
        if let RowSource::Block(view) = self.source {
            return view.resolve(reference, clause);
        }
        let qualifies = match &reference.table {
            Some(table) => self.is_named(reference.database.as_deref(), table),
            None => true,
        };
        self.position(&reference.name)
            .filter(|_| qualifies)
            .map(|index| self.column(index))
            .ok_or_else(|| message::unknown_column(&shown(reference), clause))
    }

    fn position(&self, name: &str) -> Option<ColumnNumber> {
        match self.source {
            RowSource::Nothing | RowSource::Block(_) => None,
            RowSource::Table(table) => table.definition.column(name),
            RowSource::Virtual { columns, .. } => {
                let position = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
                position.map(|position| ColumnNumber(position as u16))
            }
        }
    }

    /// The column at position `index`, which must exist.
    pub fn column(&self, index: ColumnNumber) -> FoundColumn {
        let position = usize::from(index.0);
        match self.source {
            RowSource::Table(table) => {
                let definition = &table.definition.columns[position];
                let shown = format!("`{}`.`{}`.`{}`", self.database, self.table, definition.name);
                let mut column = ResultColumn::of_table(&table.definition, index);
                column.table = self.table.into();
                let expression = Expression::column(index, definition, &shown);
                FoundColumn { index, expression, column, owner: ColumnOwner::Table }
            }
            RowSource::Virtual { columns, types, first_parameter } => {
                let mut column = columns[position].clone();
                column.table = self.table.into();
                let ordinal = first_parameter.saturating_add(index.0);
                let expression = Expression::parameter_of_type(ordinal, types[position]);
                FoundColumn { index, expression, column, owner: ColumnOwner::Table }
            }
            RowSource::Nothing | RowSource::Block(_) => {
                let expression = Expression::null();
                let column = expression.result.result_column("");
                FoundColumn { index, expression, column, owner: ColumnOwner::Query }
            }
        }
    }
}

/// A column reference as written, without quotes.
pub fn shown(reference: &ColumnReference) -> String {
    let parts = [reference.database.as_deref(), reference.table.as_deref(), Some(reference.name.as_str())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}
