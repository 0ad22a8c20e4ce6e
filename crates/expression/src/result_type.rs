//! The static type of an expression: the kind of its value, and the column metadata that a client receives.

use junctor_model::collation::CollationId;
use junctor_model::decimal::{self, DECIMAL_SCALE_MAX};
use junctor_model::error::Result;
use junctor_model::row_encoding::{DECIMALS_NOT_FIXED, ResultColumn, append_text_in, column_flag, wire_type};
use junctor_model::schema::ColumnDefinition;
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;
use junctor_model::value::ValueRef;

use crate::scratch::{Scratch, to_text};

/// Maximum precision that the metadata of a DECIMAL announces.
pub const DECIMAL_PRECISION_MAX: u32 = decimal::DECIMAL_PRECISION_MAX as u32;
/// Number of digits that division adds after the decimal point: the default of MySQL's
/// `div_precision_increment`.
pub const DIVISION_SCALE_INCREMENT: u8 = 4;
/// Maximum bytes of an integer type that gives FLOAT with a FLOAT.
const NARROW_BYTES_MAX: usize = 3;

/// The class of types of the value that an expression yields. Each of its values is NULL or of this class.
/// The tables of [`crate::rules`] have a row and a column for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Always NULL.
    Null,
    /// A signed integer of 64 bits.
    Int,
    /// An unsigned integer of 64 bits.
    UInt,
    /// An exact number. The type's scale is the number of its digits after the decimal point.
    Decimal,
    /// A double: a binary floating-point number of 64 bits, never NaN or infinite.
    Double,
    /// Text, or bytes when the collation is binary.
    String,
    /// FLOAT.
    Float,
    /// YEAR.
    Year,
    /// BIT.
    Bit,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// DATETIME.
    DateTime,
    /// TIMESTAMP. Its values are those of DATETIME in the session's time zone.
    Timestamp,
    /// ENUM: text, and the position of the member as a number.
    Enum,
    /// SET: text, and the bits of the members as a number.
    Set,
    /// JSON.
    Json,
    /// A geometry: bytes with a reference system and WKB.
    Geometry,
}

impl Kind {
    /// All, in the order of the tables of rules.
    pub const ALL: [Kind; 17] = [
        Kind::Null,
        Kind::Int,
        Kind::UInt,
        Kind::Decimal,
        Kind::Double,
        Kind::String,
        Kind::Float,
        Kind::Year,
        Kind::Bit,
        Kind::Date,
        Kind::Time,
        Kind::DateTime,
        Kind::Timestamp,
        Kind::Enum,
        Kind::Set,
        Kind::Json,
        Kind::Geometry,
    ];

    /// Whether the kind is numeric. Days and times are; the kind of NULL is not.
    pub fn is_number(self) -> bool {
        !matches!(self, Kind::String | Kind::Null | Kind::Enum | Kind::Set | Kind::Json | Kind::Geometry)
    }

    /// The kind of temporal values that expressions of this class yield.
    pub fn temporal(self) -> Option<TemporalKind> {
        match self {
            Kind::Year => Some(TemporalKind::Year),
            Kind::Date => Some(TemporalKind::Date),
            Kind::Time => Some(TemporalKind::Time),
            Kind::DateTime | Kind::Timestamp => Some(TemporalKind::DateTime),
            _ => None,
        }
    }

    /// Whether values have a day: DATE, DATETIME and TIMESTAMP.
    pub fn has_day(self) -> bool {
        matches!(self, Kind::Date | Kind::DateTime | Kind::Timestamp)
    }

    /// Whether values are text: strings, ENUM, SET, and geometries as bytes.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::String | Kind::Enum | Kind::Set | Kind::Geometry)
    }
}

/// MySQL's coercibility: where two collations meet, the one with the lower coercibility wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// A COLLATE clause.
    Explicit,
    /// The result of an operation on strings whose collations conflict.
    NoCollation,
    /// A column.
    Implicit,
    /// A system constant such as USER().
    SystemConstant,
    /// A literal or parameter.
    Coercible,
    /// A number.
    Numeric,
    /// NULL.
    Ignorable,
}

/// The static type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultType {
    /// The kind of value.
    pub kind: Kind,
    /// The collation of a string. [`CollationId::BINARY`] for numbers.
    pub collation: CollationId,
    /// The precedence of the collation over others.
    pub coercibility: Coercibility,
    /// Maximum length of the value as text, including the sign and the decimal point, in characters; for
    /// binary strings, in bytes.
    pub length: u32,
    /// Digits after the decimal point; 31 for strings and for numbers without a fixed scale.
    pub decimals: u8,
    /// The width up to which zeros precede the number in its text; 0 without ZEROFILL. Only columns have it.
    pub zero_fill: u8,
    /// Whether the value is an integer of a TINYINT, SMALLINT or MEDIUMINT, which a FLOAT holds.
    pub is_narrow: bool,
    /// Whether it is a column of UNSIGNED DECIMAL, FLOAT or DOUBLE, or a decimal computed from unsigned
    /// numbers. An integer that is computed from it is unsigned.
    pub is_unsigned: bool,
    /// Whether the value can be NULL.
    pub nullable: bool,
}

impl ResultType {
    /// The type of the literal NULL.
    pub fn null() -> ResultType {
        ResultType { coercibility: Coercibility::Ignorable, nullable: true, ..ResultType::number(Kind::Null, 0, 0) }
    }

    /// An integer that prints in at most `length` characters.
    pub fn integer(unsigned: bool, length: u32) -> ResultType {
        ResultType::number(if unsigned { Kind::UInt } else { Kind::Int }, length, 0)
    }

    /// The type of conditions: 0 or 1.
    pub fn boolean() -> ResultType {
        ResultType::integer(false, 1)
    }

    /// FLOAT with all its digits.
    pub(crate) fn float() -> ResultType {
        ResultType::number(Kind::Float, 12, DECIMALS_NOT_FIXED)
    }

    /// DOUBLE.
    pub fn double() -> ResultType {
        ResultType::number(Kind::Double, 23, DECIMALS_NOT_FIXED)
    }

    /// DOUBLE as PI() has it, printed with six digits after the point.
    pub(crate) fn pi() -> ResultType {
        ResultType::number(Kind::Double, 8, 6)
    }

    /// DECIMAL(`precision`, `scale`), clamped to 65 and 30 digits.
    pub fn decimal(precision: u32, scale: u8) -> ResultType {
        ResultType::unbounded_decimal(precision.min(DECIMAL_PRECISION_MAX), scale)
    }

    /// As [`Self::decimal`] for literals, sums and averages, which clients see with more than 65 digits.
    pub(crate) fn unbounded_decimal(precision: u32, scale: u8) -> ResultType {
        let scale = scale.min(DECIMAL_SCALE_MAX);
        let precision = precision.max(u32::from(scale).max(1));
        ResultType::number(Kind::Decimal, precision + 1 + u32::from(scale > 0), scale)
    }

    /// A string of at most `length` characters.
    pub fn string(collation: CollationId, coercibility: Coercibility, length: u32) -> ResultType {
        ResultType {
            kind: Kind::String,
            collation,
            coercibility,
            length,
            decimals: DECIMALS_NOT_FIXED,
            zero_fill: 0,
            is_narrow: false,
            is_unsigned: false,
            nullable: false,
        }
    }

    /// YEAR, DATE, TIME, DATETIME or TIMESTAMP with this many digits after the point of the seconds.
    pub fn temporal(kind: Kind, digits: u8) -> ResultType {
        let whole = match kind {
            Kind::Year => 4,
            Kind::Date | Kind::Time => 10,
            _ => 19,
        };
        ResultType::number(kind, if digits > 0 { whole + 1 + u32::from(digits) } else { whole }, digits)
    }

    /// The type of this value where a number is wanted: an integer, an exact number or a double; NULL stays.
    pub fn as_number(&self) -> ResultType {
        let integer = |unsigned, length| ResultType::integer(unsigned, length).with_nullable(self.nullable);
        match self.kind {
            Kind::Null | Kind::Int | Kind::UInt | Kind::Decimal | Kind::Double => {
                ResultType { zero_fill: 0, is_narrow: false, ..*self }
            }
            Kind::Float | Kind::String | Kind::Enum | Kind::Set | Kind::Json | Kind::Geometry => {
                let is_unsigned = self.is_unsigned;
                ResultType { is_unsigned, nullable: self.nullable, ..ResultType::double() }
            }
            Kind::Year | Kind::Bit => integer(true, if self.kind == Kind::Year { 4 } else { 20 }),
            Kind::Date => integer(false, 8),
            Kind::Time | Kind::DateTime | Kind::Timestamp => {
                let digits = if self.kind == Kind::Time { 7 } else { 14 };
                match self.decimals {
                    0 => integer(false, digits + 1),
                    scale => ResultType::decimal(digits + u32::from(scale), scale).with_nullable(self.nullable),
                }
            }
        }
    }

    /// Whether it is a number whose type is unsigned.
    pub fn has_no_sign(&self) -> bool {
        self.is_unsigned || matches!(self.kind, Kind::UInt | Kind::Bit | Kind::Year)
    }

    /// A JSON document.
    pub fn json() -> ResultType {
        let text = ResultType::string(CollationId::UTF8MB4_BIN, Coercibility::Implicit, u32::MAX);
        ResultType { kind: Kind::Json, ..text }
    }

    /// A geometry.
    pub fn geometry() -> ResultType {
        let bytes = ResultType::string(CollationId::BINARY, Coercibility::Implicit, u32::MAX);
        ResultType { kind: Kind::Geometry, ..bytes }
    }

    /// Whether the values are text: strings, ENUM, SET, and geometries as bytes.
    pub fn is_text(&self) -> bool {
        self.kind.is_text()
    }

    /// The collation of a user variable with this value: a text of the system is utf8mb3 in MySQL, and counts
    /// as one of the connection here.
    pub fn variable_collation(&self, connection: CollationId) -> CollationId {
        let is_of_system = self.is_text() && self.coercibility == Coercibility::SystemConstant;
        if is_of_system { connection } else { self.collation }
    }

    /// The type of a column of a catalog table. Its text is utf8mb3 in MySQL, so the collation of any other
    /// utf8mb4 column or user variable prevails over it.
    pub fn of_system(self) -> ResultType {
        let gives_way = self.is_text()
            && self.collation == CollationId::UTF8MB4_GENERAL_CI
            && self.coercibility == Coercibility::Implicit;
        let coercibility = if gives_way { Coercibility::SystemConstant } else { self.coercibility };
        ResultType { coercibility, ..self }
    }

    /// The type of a table column's values.
    pub fn of_column(column: &ColumnDefinition) -> ResultType {
        let text = |collation, length| ResultType::string(collation, Coercibility::Implicit, length);
        let column_type = &column.column_type;
        let result = match column_type.form() {
            Form::Int | Form::UInt => {
                let integer = ResultType::integer(column_type.form() == Form::UInt, column_type.wire().length);
                ResultType {
                    is_narrow: column_type.key_bytes().is_some_and(|bytes| bytes <= NARROW_BYTES_MAX),
                    ..integer
                }
            }
            Form::Double if column_type.wire().decimals < DECIMALS_NOT_FIXED => {
                let wire = column_type.wire();
                ResultType::number(Kind::Double, wire.length, wire.decimals)
            }
            Form::Double => ResultType::double(),
            Form::Bytes => text(column_type.collation().unwrap_or_default(), column_type.length()),
            Form::Float => ResultType::number(Kind::Float, column_type.wire().length, column_type.wire().decimals),
            Form::Decimal => {
                // Results are signed, so that the length of an UNSIGNED column lacks the sign.
                ResultType::decimal(column_type.precision().into(), column_type.scale())
            }
            Form::Temporal(kind) => {
                let kind = match kind {
                    TemporalKind::Year => Kind::Year,
                    TemporalKind::Date => Kind::Date,
                    TemporalKind::Time => Kind::Time,
                    TemporalKind::DateTime => Kind::DateTime,
                    TemporalKind::Timestamp => Kind::Timestamp,
                };
                ResultType::temporal(kind, column_type.scale())
            }
            Form::Json => ResultType::json(),
            Form::Geometry => ResultType::geometry(),
            Form::Bit => {
                let number = ResultType::number(Kind::Bit, column_type.wire().length, 0);
                ResultType { coercibility: Coercibility::Implicit, ..number }
            }
            Form::Enum | Form::Set => {
                let kind = if column_type.form() == Form::Enum { Kind::Enum } else { Kind::Set };
                ResultType { kind, ..text(column_type.collation().unwrap_or_default(), column_type.length()) }
            }
        };
        let is_unsigned = matches!(result.kind, Kind::Decimal | Kind::Float | Kind::Double)
            && column_type.wire().flags & column_flag::UNSIGNED != 0;
        ResultType { nullable: column.nullable, zero_fill: column.zero_fill(), is_unsigned, ..result }
    }

    /// The type of a literal or parameter with this value. `collation` applies to strings.
    pub fn of_value(value: ValueRef<'_>, collation: CollationId) -> ResultType {
        match value {
            ValueRef::Null => ResultType::null(),
            ValueRef::Int(value) => ResultType::integer(false, digits(value.unsigned_abs().into()) + 1),
            ValueRef::UInt(value) => ResultType::integer(true, digits(value.into())),
            ValueRef::Double(_) => ResultType::double(),
            ValueRef::Decimal(value) => {
                ResultType::unbounded_decimal(decimal::digits(value).max(value.scale().into()), value.scale())
            }
            ValueRef::Bytes(bytes) => {
                let length = collation.character_set().character_count(bytes) as u32;
                ResultType::string(collation, Coercibility::Coercible, length)
            }
            ValueRef::Float(_) => ResultType::float(),
            ValueRef::Temporal(value) => {
                let kind = match value.kind {
                    TemporalKind::Year => Kind::Year,
                    TemporalKind::Date => Kind::Date,
                    TemporalKind::Time => Kind::Time,
                    TemporalKind::DateTime | TemporalKind::Timestamp => Kind::DateTime,
                };
                ResultType::temporal(kind, value.digits)
            }
            ValueRef::Json(_) => ResultType::json(),
            ValueRef::Bit(value) => ResultType::number(Kind::Bit, u32::from(value.bytes) * 8, 0),
            ValueRef::Choice(choice) => {
                let text = choice.to_choice().text;
                let length = collation.character_set().character_count(&text) as u32;
                ResultType { kind: Kind::Enum, ..ResultType::string(collation, Coercibility::Coercible, length) }
            }
        }
    }

    /// The same type with the given nullability.
    pub fn with_nullable(self, nullable: bool) -> ResultType {
        ResultType { nullable, ..self }
    }

    /// Whether the text of a number depends on its type: leading zeros, or a fixed number of digits after
    /// the point of a double.
    pub fn is_formatted(&self) -> bool {
        self.zero_fill > 0 || matches!(self.kind, Kind::Double | Kind::Float) && self.decimals < DECIMALS_NOT_FIXED
    }

    /// The value of this type as text; NULL is empty. Error: 1041 when the strings of the row are too long.
    pub(crate) fn printed<'r>(&self, value: ValueRef<'r>, scratch: &'r Scratch) -> Result<&'r [u8]> {
        match self.is_formatted() {
            true => scratch.build_text(|buffer| append_text_in(value, self.decimals, self.zero_fill, buffer)),
            false => to_text(value, scratch),
        }
    }

    /// Whether the kind is numeric. The kind of NULL is not.
    pub fn is_number(&self) -> bool {
        self.kind.is_number()
    }

    /// Whether functions that compare several values take these for texts, such as FIELD: texts, documents,
    /// NULL, days and times.
    pub fn is_compared_as_text(&self) -> bool {
        self.is_text() || self.kind.has_day() || matches!(self.kind, Kind::Null | Kind::Time | Kind::Json)
    }

    /// Whether the values are integers.
    pub fn is_integer(&self) -> bool {
        matches!(self.kind, Kind::Int | Kind::UInt)
    }

    /// Whether the values are binary strings, as geometries are.
    pub fn is_bytes(&self) -> bool {
        matches!(self.kind, Kind::String | Kind::Geometry) && self.collation == CollationId::BINARY
    }

    /// Whether the values are exact numbers.
    pub fn is_exact(&self) -> bool {
        self.is_integer() || self.kind == Kind::Decimal
    }

    /// Maximum number of bytes of the value as text.
    pub fn bytes_max(&self) -> u32 {
        self.length.saturating_mul(self.collation.max_bytes_per_character() as u32)
    }

    /// Number of digits of an exact number, before and after the point.
    pub fn precision(&self) -> u32 {
        // The length includes the sign and the point.
        let sign = u32::from(self.kind != Kind::UInt);
        let point = u32::from(self.decimals > 0 && self.decimals < DECIMALS_NOT_FIXED);
        let most = if self.kind == Kind::Decimal { DECIMAL_PRECISION_MAX } else { u32::MAX };
        self.length.saturating_sub(sign + point).clamp(1, most)
    }

    /// Number of digits of an exact number before the point.
    pub fn integer_digits(&self) -> u32 {
        // Bounded, so that sums of the digits of long strings and JSON documents do not overflow.
        self.precision().saturating_sub(u32::from(self.scale())).min(u32::from(u16::MAX))
    }

    /// Number of digits after the point; 0 if it is not fixed.
    pub fn scale(&self) -> u8 {
        if self.decimals == DECIMALS_NOT_FIXED { 0 } else { self.decimals }
    }

    /// The metadata of a computed result column, which belongs to no table.
    pub fn result_column(&self, name: &str) -> ResultColumn {
        let bytes_per_character = self.collation.max_bytes_per_character() as u32;
        let length = self.length.saturating_mul(bytes_per_character);
        let (wire_type, length) = match self.kind {
            Kind::Null => (wire_type::NULL, 0),
            Kind::Int | Kind::UInt => (wire_type::LONGLONG, self.length),
            Kind::Decimal => (wire_type::NEWDECIMAL, self.length),
            Kind::Double => (wire_type::DOUBLE, self.length),
            // MySQL announces strings longer than 64 KiB as BLOB, and clients rely on that.
            Kind::String if length > 0xFFFF => (wire_type::BLOB, length),
            Kind::String => (wire_type::VAR_STRING, length),
            Kind::Float => (wire_type::FLOAT, self.length),
            Kind::Year => (wire_type::YEAR, self.length),
            Kind::Bit => (wire_type::BIT, self.length),
            Kind::Date => (wire_type::DATE, self.length),
            Kind::Time => (wire_type::TIME, self.length),
            Kind::DateTime => (wire_type::DATETIME, self.length),
            Kind::Timestamp => (wire_type::TIMESTAMP, self.length),
            Kind::Enum | Kind::Set => (wire_type::STRING, length),
            Kind::Json => (wire_type::JSON, u32::MAX),
            Kind::Geometry => (wire_type::GEOMETRY, u32::MAX),
        };
        let mut flags = if self.nullable { 0 } else { column_flag::NOT_NULL };
        if self.collation.is_code_point_order() {
            flags |= column_flag::BINARY;
        }
        flags |= match self.kind {
            Kind::UInt | Kind::Bit => column_flag::UNSIGNED,
            Kind::Year => column_flag::UNSIGNED | column_flag::ZEROFILL,
            Kind::Enum => column_flag::ENUM,
            Kind::Set => column_flag::SET,
            Kind::Json | Kind::Geometry => column_flag::BLOB | column_flag::BINARY,
            _ => 0,
        };
        ResultColumn {
            name: name.into(),
            org_name: "".into(),
            table: "".into(),
            org_table: "".into(),
            database: "".into(),
            wire_type,
            flags,
            charset: self.collation.number(),
            length,
            decimals: self.decimals,
        }
    }

    fn number(kind: Kind, length: u32, decimals: u8) -> ResultType {
        ResultType {
            kind,
            collation: CollationId::BINARY,
            coercibility: Coercibility::Numeric,
            length,
            decimals,
            zero_fill: 0,
            is_narrow: false,
            is_unsigned: false,
            nullable: false,
        }
    }
}

/// Number of decimal digits; 1 for 0.
fn digits(value: u128) -> u32 {
    value.checked_ilog10().unwrap_or(0) + 1
}
