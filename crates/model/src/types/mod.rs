//! The types of columns. A type is a file here, or a folder if it is long. It has the constructors of the
//! type and a static [`TypeDescriptor`] with all that the type decides. Other code asks [`DataType`], which
//! asks the descriptor (`docs/decisions/0023-types.md`).

mod bit;
mod blob;
mod choice;
mod decimal;
mod double;
mod geometry;
mod integer;
mod json;
mod members;
mod packed;
mod short_double;
mod string;
mod temporal;
mod vector;
mod year;

use std::sync::Arc;

use crate::collation::CollationId;
use crate::error::Result;
use crate::key::KeyPart;
use crate::row::SlotKind;
use crate::row_encoding::{DECIMALS_NOT_FIXED, column_flag};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::TemporalKind;
use crate::value::{Value, ValueRef};

pub use bit::BITS_MAX;
pub use choice::{ENUM_MEMBERS_MAX, SET_MEMBERS_MAX};
pub use members::Members;
pub use packed::Packed;
pub use vector::{VECTOR_ENTRIES_MAX, VECTOR_ENTRY_BYTES};

/// The type of a column's values. It is not `Copy`, because ENUM and SET will share their members by
/// reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataType {
    family: Family,
    /// UNSIGNED.
    unsigned: bool,
    /// ZEROFILL.
    zerofill: bool,
    /// Bytes of an integer, ENUM or SET; bytes of the stored length of a TEXT or BLOB; digits of a DECIMAL,
    /// and of a FLOAT or DOUBLE with fixed digits after the point, otherwise 0; bits of a BIT; the class of a
    /// spatial type.
    bytes: u8,
    /// The collation of a character type; [`CollationId::BINARY`] for every other type.
    collation: CollationId,
    /// Maximum number of characters of a character type, and of bytes of every other type.
    length: u32,
    /// Digits after the point of an exact number, and of the seconds of a temporal type.
    scale: u8,
    /// The members of an ENUM or SET.
    members: Option<Arc<Members>>,
    /// SRID of a spatial type.
    system: Option<u32>,
}

/// The index of a descriptor. Private, so that no other module can match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Integer,
    Double,
    Char,
    Binary,
    VarChar,
    VarBinary,
    Text,
    Blob,
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    Decimal,
    Float,
    Bit,
    Enum,
    Set,
    Json,
    Vector,
    Geometry,
}

/// The form in which expressions see a value that is not NULL. Several types share a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// [`ValueRef::Int`].
    Int,
    /// [`ValueRef::UInt`].
    UInt,
    /// [`ValueRef::Double`].
    Double,
    /// [`ValueRef::Bytes`].
    Bytes,
    /// [`ValueRef::Float`].
    Float,
    /// [`ValueRef::Decimal`].
    Decimal,
    /// [`ValueRef::Temporal`] of this kind.
    Temporal(TemporalKind),
    /// [`ValueRef::Bit`].
    Bit,
    /// [`ValueRef::Choice`] of one member: ENUM.
    Enum,
    /// [`ValueRef::Choice`] of any number of members: SET.
    Set,
    /// [`ValueRef::Json`].
    Json,
    /// [`ValueRef::Bytes`] with a reference system and WKB (`crate::geometry`).
    Geometry,
}

/// The description of a type in the protocol of MySQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireType {
    /// One of the codes in [`crate::row_encoding::wire_type`].
    pub code: u8,
    /// Maximum number of bytes of the value as text; 4 per character of utf8mb4.
    pub length: u32,
    /// Digits after the point; 31 if not fixed.
    pub decimals: u8,
    /// The bits of [`crate::row_encoding::column_flag`] that follow from the type.
    pub flags: u16,
}

/// A length that a type cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The greatest length that it can have.
    pub max: u32,
}

/// The behaviour of a column type. Each type has one static descriptor.
trait TypeDescriptor: Sync {
    /// The name without length and attributes, as `information_schema.COLUMNS.DATA_TYPE` shows it.
    fn name(&self, data_type: &DataType) -> &'static str;

    /// Appends what follows the name in SHOW CREATE TABLE. `display_width` is the width as written
    /// (`INT(11)`).
    fn append_attributes(&self, _data_type: &DataType, _display_width: Option<u16>, _out: &mut String) {}

    /// The form of the values in expressions.
    fn form(&self, data_type: &DataType) -> Form;

    /// The place of a value in a row image.
    fn slot(&self, _data_type: &DataType) -> SlotKind {
        SlotKind::Packed
    }

    /// The form in the row of a type whose slot is [`SlotKind::Packed`].
    fn packed(&self, _data_type: &DataType) -> Option<Packed> {
        None
    }

    /// How keys are made from values of such a type.
    fn packed_key(&self, data_type: &DataType) -> KeyPart {
        KeyPart::Encoded(self.packed(data_type).unwrap_or(Packed::Year))
    }

    /// Maximum bytes of a value in an index key as MySQL counts them; `None` if a key holds only a prefix.
    fn key_bytes(&self, data_type: &DataType) -> Option<usize> {
        self.packed(data_type).map(Packed::bytes)
    }

    /// Bytes of a value that MySQL counts against its limit of 65,535 for a row.
    fn row_bytes(&self, data_type: &DataType) -> usize {
        self.key_bytes(data_type).unwrap_or(0)
    }

    /// The description for clients.
    fn wire(&self, data_type: &DataType) -> WireType;

    /// `NUMERIC_PRECISION` and `NUMERIC_SCALE` of `information_schema.COLUMNS`.
    fn digits(&self, _data_type: &DataType) -> (Option<u64>, Option<u64>) {
        (None, None)
    }

    /// Maximum lengths in characters and in bytes, as in `information_schema.COLUMNS`; `None` for a type that
    /// is not a string.
    fn text_lengths(&self, _data_type: &DataType) -> Option<(i64, i64)> {
        None
    }

    /// The value of a NOT NULL column for which a statement has none.
    fn implicit_default(&self, data_type: &DataType) -> Value;

    /// The value that a column stores for a value that is not NULL: see [`StoreTarget::convert`].
    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>>;

    /// The type as the stored schema has it.
    fn stored(&self, data_type: &DataType) -> StoredType;
}

impl DataType {
    /// A type with neither lengths nor attributes.
    const fn plain(family: Family) -> DataType {
        let collation = CollationId::BINARY;
        DataType {
            family,
            unsigned: false,
            zerofill: false,
            bytes: 0,
            collation,
            length: 0,
            scale: 0,
            members: None,
            system: None,
        }
    }

    fn descriptor(&self) -> &'static dyn TypeDescriptor {
        match self.family {
            Family::Integer => &integer::Integer,
            Family::Double => &double::DOUBLE,
            Family::Char => &string::CHAR,
            Family::Binary => &string::BINARY,
            Family::VarChar => &string::VARCHAR,
            Family::VarBinary => &string::VARBINARY,
            Family::Text => &blob::TEXT,
            Family::Blob => &blob::BLOB,
            Family::Year => &year::Year,
            Family::Date => &temporal::DATE,
            Family::Time => &temporal::TIME,
            Family::DateTime => &temporal::DATETIME,
            Family::Timestamp => &temporal::TIMESTAMP,
            Family::Decimal => &decimal::DecimalType,
            Family::Float => &double::FLOAT,
            Family::Bit => &bit::BitType,
            Family::Enum => &choice::ENUM,
            Family::Set => &choice::SET,
            Family::Json => &json::JsonType,
            Family::Vector => &vector::VectorType,
            Family::Geometry => &geometry::GeometryType,
        }
    }

    /// How keys are made from values.
    #[inline(always)]
    pub fn key_part(&self) -> KeyPart {
        match self.family {
            Family::Integer => KeyPart::Integer { bytes: self.bytes, unsigned: self.unsigned },
            Family::Double => KeyPart::Double,
            Family::Char
            | Family::Binary
            | Family::VarChar
            | Family::VarBinary
            | Family::Text
            | Family::Blob
            | Family::Json
            | Family::Vector
            | Family::Geometry => KeyPart::Text(self.collation),
            _ => self.packed_key_part(),
        }
    }

    // Outlined, so that the match above stays a jump.
    #[inline(never)]
    fn packed_key_part(&self) -> KeyPart {
        self.descriptor().packed_key(self)
    }

    /// Bytes and signedness of an integer type.
    #[inline(always)]
    pub fn as_integer(&self) -> Option<(u8, bool)> {
        match self.family {
            Family::Integer => Some((self.bytes, self.unsigned)),
            _ => None,
        }
    }

    /// The width up to which zeros precede a number; 0 without ZEROFILL.
    pub fn zero_fill(&self, display_width: Option<u16>) -> u8 {
        match self.zerofill {
            true => display_width.map_or(self.wire().length, u32::from).min(u8::MAX.into()) as u8,
            false => 0,
        }
    }

    /// The numeric type with ZEROFILL, which implies UNSIGNED.
    pub fn zero_filled(self) -> DataType {
        DataType { unsigned: true, zerofill: true, ..self }
    }

    /// The flags of a number's attributes for clients.
    fn number_flags(&self) -> u16 {
        let unsigned = if self.unsigned { column_flag::UNSIGNED } else { 0 };
        unsigned | if self.zerofill { column_flag::ZEROFILL } else { 0 }
    }

    /// Appends UNSIGNED and ZEROFILL as SHOW CREATE TABLE prints them.
    fn append_number_attributes(&self, out: &mut String) {
        if self.unsigned {
            out.push_str(" unsigned");
        }
        if self.zerofill {
            out.push_str(" zerofill");
        }
    }

    /// Whether every value of `other` that is not NULL is a value of this type, with the same image and the
    /// same key.
    pub fn has_values_of(&self, other: &DataType) -> bool {
        let is_same = |length: u32| DataType { length, ..self.clone() } == *other;
        match self.family {
            Family::VarChar | Family::VarBinary => self.length >= other.length && is_same(other.length),
            // New members come last, so the numbers of the others stay.
            Family::Enum | Family::Set => {
                let names = |data_type: &DataType| data_type.members.clone();
                let has_members =
                    names(self).zip(names(other)).is_some_and(|(new, old)| new.names().starts_with(old.names()));
                let with_members = DataType { members: other.members.clone(), length: other.length, ..self.clone() };
                has_members && with_members == *other
            }
            _ => self == other,
        }
    }

    /// Whether a NOT NULL column without DEFAULT has a default all the same: the first member of an ENUM.
    pub fn has_own_default(&self) -> bool {
        matches!(self.family, Family::Enum)
    }

    /// A character type with another collation; every other type unchanged.
    pub fn converted_to(&self, collation: CollationId) -> DataType {
        match self.family {
            Family::Char | Family::VarChar | Family::Text => DataType { collation, ..self.clone() },
            _ => self.clone(),
        }
    }

    /// The collation of a string type; `None` for numbers.
    #[inline]
    pub fn collation(&self) -> Option<CollationId> {
        match self.key_part() {
            KeyPart::Text(collation) => Some(collation),
            KeyPart::Integer { .. } if self.members.is_some() => Some(self.collation),
            KeyPart::Integer { .. } | KeyPart::Double | KeyPart::Encoded(_) => None,
        }
    }

    /// The members of an ENUM or SET.
    pub fn members(&self) -> Option<&Arc<Members>> {
        self.members.as_ref()
    }

    /// Digits after the point of an exact number, and of the seconds of a temporal type; 0 for others.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Maximum number of characters of a character type, and of bytes of a binary type or a TEXT; 0 for
    /// numbers.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Digits of an exact number, before and after the point; 0 for other types.
    pub fn precision(&self) -> u8 {
        match self.packed() {
            Some(Packed::Decimal { precision, .. } | Packed::WideDecimal { precision, .. }) => precision,
            _ => 0,
        }
    }

    /// Whether the type is TEXT or BLOB of any width, JSON, VECTOR or spatial: values of any length, without
    /// a default and without a key of the whole value.
    pub fn is_text_or_blob(&self) -> bool {
        matches!(self.family, Family::Text | Family::Blob | Family::Json | Family::Vector | Family::Geometry)
    }

    /// Whether the type is TIMESTAMP.
    pub fn is_timestamp(&self) -> bool {
        self.family == Family::Timestamp
    }

    /// Whether the type is JSON.
    pub fn is_json(&self) -> bool {
        self.family == Family::Json
    }

    /// Whether the type is CHAR, whose values lose the spaces at their end.
    pub fn is_char(&self) -> bool {
        matches!(self.family, Family::Char)
    }

    /// Whether values are shorter than the declared length: VARCHAR and VARBINARY.
    pub fn is_variable(&self) -> bool {
        matches!(self.family, Family::VarChar | Family::VarBinary)
    }

    /// The bytes that a value takes in the fixed part of a row; `None` for types in the variable part.
    pub fn fixed_bytes(&self) -> Option<usize> {
        self.packed().map(Packed::bytes).or_else(|| self.slot().fixed_bytes())
    }

    /// The form in the row of a type that is neither a plain integer, a double nor of variable length.
    pub(crate) fn packed(&self) -> Option<Packed> {
        self.descriptor().packed(self)
    }

    /// The name without length and attributes, as `information_schema.COLUMNS.DATA_TYPE` shows it.
    pub fn name(&self) -> &'static str {
        self.descriptor().name(self)
    }

    /// The type as SHOW CREATE TABLE prints it: `int unsigned`, `varchar(20)`, `tinyint(1)`.
    pub fn text(&self, display_width: Option<u16>) -> String {
        let mut text = self.name().to_owned();
        self.descriptor().append_attributes(self, display_width, &mut text);
        text
    }

    /// The form of the values in expressions.
    pub fn form(&self) -> Form {
        self.descriptor().form(self)
    }

    /// The place of a value in a row image.
    pub(crate) fn slot(&self) -> SlotKind {
        self.descriptor().slot(self)
    }

    /// Maximum bytes of a value in an index key as MySQL counts them; `None` if a key holds only a prefix.
    pub fn key_bytes(&self) -> Option<usize> {
        self.descriptor().key_bytes(self)
    }

    /// Bytes of a value that MySQL counts against its limit of 65,535 for a row.
    pub fn row_bytes(&self) -> usize {
        self.descriptor().row_bytes(self)
    }

    /// The description for clients.
    pub fn wire(&self) -> WireType {
        self.descriptor().wire(self)
    }

    /// Whether it is a FLOAT with a fixed number of digits after the point.
    pub fn is_fixed_float(&self) -> bool {
        self.form() == Form::Float && self.wire().decimals < DECIMALS_NOT_FIXED
    }

    /// `NUMERIC_PRECISION` and `NUMERIC_SCALE` of `information_schema.COLUMNS`.
    pub fn digits(&self) -> (Option<u64>, Option<u64>) {
        self.descriptor().digits(self)
    }

    /// Maximum lengths in characters and in bytes, as in `information_schema.COLUMNS`; `None` for a type that
    /// is not a string.
    pub fn text_lengths(&self) -> Option<(i64, i64)> {
        self.descriptor().text_lengths(self)
    }

    /// The value of a NOT NULL column for which a statement has none.
    pub fn implicit_default(&self) -> Value {
        self.descriptor().implicit_default(self)
    }

    /// The value that a column of this type stores for a value that is not NULL.
    #[inline]
    pub(crate) fn store<'r>(
        &self,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        match (self.family, value) {
            (Family::Integer, ValueRef::Int(number)) => integer::store(self, number.into(), target, scratch),
            (Family::Integer, ValueRef::UInt(number)) => integer::store(self, number.into(), target, scratch),
            _ => self.descriptor().store(self, value, target, scratch),
        }
    }

    /// The type as the stored schema has it.
    pub(crate) fn stored(&self) -> StoredType {
        self.descriptor().stored(self)
    }
}

#[cfg(test)]
mod tests;
