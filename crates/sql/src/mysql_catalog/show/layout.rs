//! Virtual tables and their columns.

use junctor_model::collation::CollationId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::ColumnDefinition;
use junctor_model::types::DataType;
use junctor_model::value::Value;

/// A computed result set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VirtualTable {
    /// Columns as the client receives them.
    pub columns: Vec<ResultColumn>,
    /// Each row has one value for each column, of the column's type or NULL.
    pub rows: Vec<Vec<Value>>,
}

/// Type of a virtual table's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// VARCHAR with this maximum of characters; comparisons ignore case.
    Text(u16),
    /// VARCHAR(64) for names of databases and tables; comparisons respect case.
    Name,
    /// LONGTEXT; not a number.
    Long,
    /// MEDIUMTEXT.
    MediumText,
    /// MEDIUMBLOB.
    MediumBlob,
    /// TIMESTAMP(6). Its values are of DATETIME(6), in the time zone of the session.
    Timestamp,
    /// TIME(6).
    Time,
    /// Signed BIGINT.
    Number,
    /// BIGINT UNSIGNED.
    Unsigned,
    /// INT.
    Int,
    /// INT UNSIGNED.
    UnsignedInt,
    /// DOUBLE.
    Double,
}

/// The object that the values of a column name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedObject {
    /// The database of the row's table.
    Database,
    /// The row's table.
    Table,
}

/// A column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in MySQL's spelling.
    pub name: &'static str,
    /// Type.
    pub kind: FieldKind,
    /// Whether its values may be NULL.
    pub nullable: bool,
    /// The object that its values name, if the provider computes only the rows of the wanted ones.
    pub names: Option<NamedObject>,
}

impl Field {
    const fn new(name: &'static str, kind: FieldKind) -> Field {
        Field { name, kind, nullable: false, names: None }
    }

    /// Makes the column nullable.
    pub const fn or_null(mut self) -> Field {
        self.nullable = true;
        self
    }

    /// The definition that a base table's column of this type would have.
    pub fn definition(&self) -> ColumnDefinition {
        let collation = CollationId::UTF8MB4_GENERAL_CI;
        let column_type = match self.kind {
            FieldKind::Text(length) => DataType::varchar(length, collation),
            FieldKind::Name => DataType::varchar(64, CollationId::UTF8MB4_BIN),
            FieldKind::Long => DataType::text_or_blob(4, collation),
            FieldKind::MediumText => DataType::text_or_blob(3, collation),
            FieldKind::MediumBlob => DataType::text_or_blob(3, CollationId::BINARY),
            FieldKind::Timestamp => DataType::timestamp(6),
            FieldKind::Time => DataType::time(6),
            FieldKind::Number => DataType::integer(8, false),
            FieldKind::Unsigned => DataType::integer(8, true),
            FieldKind::Int => DataType::integer(4, false),
            FieldKind::UnsignedInt => DataType::integer(4, true),
            FieldKind::Double => DataType::double(),
        };
        let without_null = match self.kind {
            FieldKind::Text(_) | FieldKind::Name => Some(Value::Bytes(Vec::new())),
            FieldKind::Number | FieldKind::Unsigned | FieldKind::Int | FieldKind::UnsignedInt | FieldKind::Double => {
                Some(Value::Int(0))
            }
            _ => None,
        };
        ColumnDefinition {
            nullable: self.nullable,
            default: if self.nullable { Some(Value::Null) } else { without_null },
            ..ColumnDefinition::new(self.name, column_type)
        }
    }
}

pub(super) const fn text(name: &'static str, characters: u16) -> Field {
    Field::new(name, FieldKind::Text(characters))
}

pub(super) const fn name(name: &'static str) -> Field {
    Field::new(name, FieldKind::Name)
}

/// The column with the database of the row's table.
pub(super) const fn database_name(name: &'static str) -> Field {
    Field { names: Some(NamedObject::Database), ..Field::new(name, FieldKind::Name) }
}

/// The column with the name of the row's table.
pub(super) const fn table_name(name: &'static str) -> Field {
    Field { names: Some(NamedObject::Table), ..Field::new(name, FieldKind::Name) }
}

pub(super) const fn long(name: &'static str) -> Field {
    Field::new(name, FieldKind::Long)
}

/// A column of one of the other kinds.
pub(super) const fn field(name: &'static str, kind: FieldKind) -> Field {
    Field::new(name, kind)
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
    /// An empty table with these columns. Clients see `database` and `table` as the columns' origin.
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

    /// The result of a SHOW statement; its columns have no database or table.
    pub(super) fn of_show(fields: &[Field], rows: Vec<Vec<Value>>) -> VirtualTable {
        VirtualTable { rows, ..VirtualTable::new("", "", fields) }
    }

    /// Position of a column by name, ignoring case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// A string value.
pub(super) fn bytes(text: impl AsRef<str>) -> Value {
    Value::Bytes(text.as_ref().as_bytes().to_vec())
}

/// The string `YES` or `NO`.
pub(super) fn yes_no(yes: bool) -> Value {
    bytes(if yes { "YES" } else { "NO" })
}

/// Converts a number of items to an unsigned value.
pub(super) fn count(count: usize) -> Value {
    Value::UInt(count as u64)
}
