//! Columns of computed tables, and the table itself.

use junctor_model::collation::CollationId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{ColumnDefinition, ColumnType};
use junctor_model::value::Value;

/// A computed result: columns and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VirtualTable {
    /// The columns.
    pub columns: Vec<ResultColumn>,
    /// The rows; as many values each as there are columns, of the columns' types or NULL.
    pub rows: Vec<Vec<Value>>,
}

/// The type of a column of a computed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// VARCHAR of so many characters, compared without letter case.
    Text(u16),
    /// VARCHAR(64), compared with letter case: names of databases and tables.
    Name,
    /// LONGTEXT.
    Long,
    /// BIGINT.
    Number,
    /// BIGINT UNSIGNED.
    Unsigned,
    /// INT.
    Int,
    /// DOUBLE.
    Double,
}

/// A column of a computed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: FieldKind,
    /// Whether it may be NULL.
    pub nullable: bool,
}

impl Field {
    const fn new(name: &'static str, kind: FieldKind) -> Field {
        Field { name, kind, nullable: false }
    }

    /// The same column that may be NULL.
    pub const fn or_null(mut self) -> Field {
        self.nullable = true;
        self
    }

    /// The column as one of a table.
    pub fn definition(&self) -> ColumnDefinition {
        let collation = CollationId::UTF8MB4_GENERAL_CI;
        let column_type = match self.kind {
            FieldKind::Text(length) => ColumnType::VarChar { length, collation },
            FieldKind::Name => ColumnType::VarChar { length: 64, collation: CollationId::UTF8MB4_BIN },
            FieldKind::Long => ColumnType::Text { length_bytes: 4, collation },
            FieldKind::Number => ColumnType::Integer { bytes: 8, unsigned: false },
            FieldKind::Unsigned => ColumnType::Integer { bytes: 8, unsigned: true },
            FieldKind::Int => ColumnType::Integer { bytes: 4, unsigned: false },
            FieldKind::Double => ColumnType::Double,
        };
        let without_null = match self.kind {
            FieldKind::Text(_) | FieldKind::Name => Some(Value::Bytes(Vec::new())),
            _ => Some(Value::Int(0)).filter(|_| self.kind != FieldKind::Long),
        };
        ColumnDefinition {
            name: self.name.into(),
            column_type,
            nullable: self.nullable,
            default: if self.nullable { Some(Value::Null) } else { without_null },
            auto_increment: false,
            hidden: false,
            comment: "".into(),
            display_width: None,
        }
    }
}

pub(super) const fn text(name: &'static str, characters: u16) -> Field {
    Field::new(name, FieldKind::Text(characters))
}

pub(super) const fn name(name: &'static str) -> Field {
    Field::new(name, FieldKind::Name)
}

pub(super) const fn long(name: &'static str) -> Field {
    Field::new(name, FieldKind::Long)
}

pub(super) const fn number(name: &'static str) -> Field {
    Field::new(name, FieldKind::Number)
}

pub(super) const fn unsigned(name: &'static str) -> Field {
    Field::new(name, FieldKind::Unsigned)
}

pub(super) const fn int(name: &'static str) -> Field {
    Field::new(name, FieldKind::Int)
}

pub(super) const fn double(name: &'static str) -> Field {
    Field::new(name, FieldKind::Double)
}

impl VirtualTable {
    /// An empty table of these columns. `database` and `table` are what clients are told about the columns' origin.
    pub fn new(database: &str, table: &str, fields: &[Field]) -> VirtualTable {
        let column = |field: &Field| {
            let mut column = ResultColumn::of_definition(&field.definition());
            column.database = database.into();
            column.table = table.into();
            column.org_table = table.into();
            column
        };
        VirtualTable { columns: fields.iter().map(column).collect(), rows: Vec::new() }
    }

    /// The answer of a SHOW statement, whose columns come from no table.
    pub(super) fn of_show(fields: &[Field], rows: Vec<Vec<Value>>) -> VirtualTable {
        VirtualTable { rows, ..VirtualTable::new("", "", fields) }
    }

    /// The position of the column of that name in any letter case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// A text as a value.
pub(super) fn bytes(text: impl AsRef<str>) -> Value {
    Value::Bytes(text.as_ref().as_bytes().to_vec())
}

/// `YES` or `NO` as a value.
pub(super) fn yes_no(yes: bool) -> Value {
    bytes(if yes { "YES" } else { "NO" })
}

/// A count as a value.
pub(super) fn count(count: usize) -> Value {
    Value::UInt(count as u64)
}
