//! The columns that names of a statement can mean.

use std::sync::Arc;

use junctor_expression::{Expression, ResultType};
use junctor_model::error::Result;
use junctor_model::id::ColumnIndex;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableLayout;

use super::message;
use crate::parse::expression::ColumnReference;

/// Where the rows of a statement come from.
#[derive(Clone, Copy, Debug)]
pub enum RowSource<'a> {
    /// One empty row: no FROM, or DUAL.
    Nothing,
    /// A table.
    Table(&'a Arc<TableLayout>),
    /// Rows that the session makes. Their columns are bound as parameters from this ordinal on.
    Virtual {
        /// The columns.
        columns: &'a [ResultColumn],
        /// What they hold.
        types: &'a [ResultType],
        /// The ordinal of the first column.
        first_parameter: u16,
    },
}

/// The rows of a statement and what they are called in it.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The rows.
    pub source: RowSource<'a>,
    /// The database of the table.
    pub database: &'a str,
    /// The table's alias, or its name.
    pub table: &'a str,
    /// Whether the table has an alias, which hides its database.
    pub has_alias: bool,
}

/// A column that was found.
#[derive(Clone, Debug)]
pub struct FoundColumn {
    /// Its position.
    pub index: ColumnIndex,
    /// The typed reference.
    pub expression: Expression,
    /// What a client is told of it.
    pub column: ResultColumn,
}

impl<'a> Scope<'a> {
    /// The scope of a statement without rows.
    pub fn empty() -> Scope<'static> {
        Scope { source: RowSource::Nothing, database: "", table: "", has_alias: false }
    }

    /// The scope of a statement on a table.
    pub fn of_table(table: &'a Arc<TableLayout>, alias: Option<&'a str>) -> Scope<'a> {
        let definition = &table.definition;
        Scope {
            source: RowSource::Table(table),
            database: &definition.database,
            table: alias.unwrap_or(&definition.name),
            has_alias: alias.is_some(),
        }
    }

    /// Whether a qualifier names this scope's table.
    pub fn is_named(&self, database: Option<&str>, table: &str) -> bool {
        // The names of the schemas that the server makes are known in any letter case.
        let is_virtual = matches!(self.source, RowSource::Virtual { .. });
        let same = |left: &str, right: &str| left == right || is_virtual && left.eq_ignore_ascii_case(right);
        same(self.table, table) && database.is_none_or(|database| !self.has_alias && same(self.database, database))
    }

    /// How many columns a `*` stands for, hidden ones left out.
    pub fn visible_columns(&self) -> Vec<ColumnIndex> {
        let indexes = |count: usize| (0..count as u16).map(ColumnIndex);
        match self.source {
            RowSource::Nothing => Vec::new(),
            RowSource::Table(table) => {
                let columns = &table.definition.columns;
                indexes(columns.len()).filter(|index| !columns[usize::from(index.0)].hidden).collect()
            }
            RowSource::Virtual { columns, .. } => indexes(columns.len()).collect(),
        }
    }

    /// The column that a reference means. Error: 1054 with the clause.
    pub fn resolve(&self, reference: &ColumnReference, clause: &str) -> Result<FoundColumn> {
        let qualifies = match &reference.table {
            Some(table) => self.is_named(reference.database.as_deref(), table),
            None => true,
        };
        self.position(&reference.name)
            .filter(|_| qualifies)
            .map(|index| self.column(index))
            .ok_or_else(|| message::unknown_column(&shown(reference), clause))
    }

    fn position(&self, name: &str) -> Option<ColumnIndex> {
        match self.source {
            RowSource::Nothing => None,
            RowSource::Table(table) => table.definition.column(name),
            RowSource::Virtual { columns, .. } => {
                let position = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
                position.map(|position| ColumnIndex(position as u16))
            }
        }
    }

    /// The column at a position that exists.
    pub fn column(&self, index: ColumnIndex) -> FoundColumn {
        let position = usize::from(index.0);
        match self.source {
            RowSource::Table(table) => {
                let definition = &table.definition.columns[position];
                let shown = format!("`{}`.`{}`.`{}`", self.database, self.table, definition.name);
                let mut column = ResultColumn::of_table(&table.definition, index);
                column.table = self.table.into();
                FoundColumn { index, expression: Expression::column(index, definition, &shown), column }
            }
            RowSource::Virtual { columns, types, first_parameter } => {
                let mut column = columns[position].clone();
                column.table = self.table.into();
                let ordinal = first_parameter.saturating_add(index.0);
                FoundColumn { index, expression: Expression::parameter_of_type(ordinal, types[position]), column }
            }
            RowSource::Nothing => {
                let expression = Expression::null();
                let column = expression.result.result_column("");
                FoundColumn { index, expression, column }
            }
        }
    }
}

/// A column reference as written, without quotes.
pub fn shown(reference: &ColumnReference) -> String {
    let parts = [reference.database.as_deref(), reference.table.as_deref(), Some(reference.name.as_str())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}
