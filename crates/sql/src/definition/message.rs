//! Errors of definition statements, with MySQL's texts.

use junctor_model::error::{Error, ErrorCode};
use junctor_model::limit::{INDEX_COLUMNS_MAX, INDEX_KEY_BYTES_MAX, INDEXES_MAX};
use junctor_model::types::{DataType, VECTOR_ENTRIES_MAX};

pub(super) fn identifier_too_long(name: &str) -> Box<Error> {
    Error::new(ErrorCode::IdentifierTooLong, format!("Identifier name '{name}' is too long"))
}

pub(super) fn no_such_table(database: &str, name: &str) -> Box<Error> {
    Error::new(ErrorCode::NoSuchTable, format!("Table '{database}.{name}' doesn't exist"))
}

pub(super) fn duplicate_column(name: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateColumn, format!("Duplicate column name '{name}'"))
}

pub(super) fn duplicate_key(name: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateKeyName, format!("Duplicate key name '{name}'"))
}

pub(super) fn wrong_specifier(name: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongFieldSpecification, format!("Incorrect column specifier for column '{name}'"))
}

pub(super) fn invalid_default(name: &str) -> Box<Error> {
    Error::new(ErrorCode::InvalidDefault, format!("Invalid default value for '{name}'"))
}

pub(super) fn blob_default(name: &str) -> Box<Error> {
    let text = format!("BLOB, TEXT, GEOMETRY or JSON column '{name}' can't have a default value");
    Error::new(ErrorCode::BlobDefault, text)
}

pub(super) fn too_big(name: &str, max: usize) -> Box<Error> {
    let text = format!("Column length too big for column '{name}' (max = {max}); use BLOB or TEXT instead");
    Error::new(ErrorCode::ColumnTooBig, text)
}

/// Error 1439.
pub(super) fn display_width(name: &str) -> Box<Error> {
    Error::new(ErrorCode::DisplayWidth, format!("Display width out of range for column '{name}' (max = 255)"))
}

/// Error 1064 for the value of a table option.
pub(super) fn wrong_option_value(value: &str) -> Box<Error> {
    Error::new(ErrorCode::SyntaxError, format!("You have an error in your SQL syntax near '{value}'"))
}

/// Error 1439 for the length of TEXT or BLOB.
pub(super) fn blob_length(name: &str) -> Box<Error> {
    let text = format!("Display width out of range for column '{name}' (max = {})", u32::MAX);
    Error::new(ErrorCode::DisplayWidth, text)
}

/// Error 1439 for the number of entries of a VECTOR.
pub(super) fn vector_entries(name: &str) -> Box<Error> {
    let text = format!("Display width out of range for column '{name}' (max = {VECTOR_ENTRIES_MAX})");
    Error::new(ErrorCode::DisplayWidth, text)
}

/// Error 1221 for the direction of a multi-valued key part.
pub(super) fn ordered_list() -> Box<Error> {
    Error::new(ErrorCode::WrongUsage, "Incorrect usage of multi-valued index and explicit index order")
}

pub(super) fn multiple_primary() -> Box<Error> {
    Error::new(ErrorCode::MultiplePrimaryKey, "Multiple primary key defined")
}

pub(super) fn virtual_primary() -> Box<Error> {
    let text = "'Defining a virtual generated column as primary key' is not supported for generated columns.";
    Error::new(ErrorCode::UnsupportedOnGeneratedColumn, text)
}

pub(super) fn too_many_keys() -> Box<Error> {
    let text = format!("Too many keys specified; max {INDEXES_MAX} keys allowed");
    Error::new(ErrorCode::TooManyKeys, text)
}

pub(super) fn too_many_parts() -> Box<Error> {
    let text = format!("Too many key parts specified; max {INDEX_COLUMNS_MAX} parts allowed");
    Error::new(ErrorCode::TooManyKeyParts, text)
}

pub(super) fn key_too_long() -> Box<Error> {
    let text = format!("Specified key was too long; max key length is {INDEX_KEY_BYTES_MAX} bytes");
    Error::new(ErrorCode::KeyTooLong, text)
}

pub(super) fn key_column_missing(name: &str) -> Box<Error> {
    Error::new(ErrorCode::KeyColumnMissing, format!("Key column '{name}' doesn't exist in table"))
}

fn blob_key(name: &str) -> Box<Error> {
    let text = format!("BLOB/TEXT column '{name}' used in key specification without a key length");
    Error::new(ErrorCode::BlobKeyWithoutLength, text)
}

pub(super) fn wrong_prefix() -> Box<Error> {
    let text = "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or \
                the storage engine doesn't support unique prefix keys";
    Error::new(ErrorCode::WrongSubKey, text)
}

pub(super) fn wrong_auto_key() -> Box<Error> {
    let text = "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    Error::new(ErrorCode::WrongAutoKey, text)
}

pub(super) fn primary_null() -> Box<Error> {
    let text = "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    Error::new(ErrorCode::PrimaryCannotHaveNull, text)
}

pub(super) fn row_too_large() -> Box<Error> {
    let text = "Row size too large. The maximum row size for the used table type, not counting BLOBs, is 65535. This \
                includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    Error::new(ErrorCode::RowTooLarge, text)
}

pub(super) fn wrong_key_name(name: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongKeyName, format!("Incorrect index name '{name}'"))
}

pub(super) fn comment_too_long(what: &str, name: &str, max: usize) -> Box<Error> {
    Error::new(ErrorCode::DataTooLong, format!("Comment for {what} '{name}' is too long (max = {max})"))
}

/// Error 1426.
pub(super) fn too_precise(column: &str, digits: u32, max: u32) -> Box<Error> {
    let text = format!("Too-big precision {digits} specified for '{column}'. Maximum is {max}.");
    Error::new(ErrorCode::TooBigPrecision, text)
}

/// Error 1425.
pub(super) fn too_big_scale(column: &str, scale: u32) -> Box<Error> {
    let text = format!("Too big scale {scale} specified for column '{column}'. Maximum is 30.");
    Error::new(ErrorCode::TooBigScale, text)
}

/// Error 1427.
pub(super) fn scale_above_precision(column: &str) -> Box<Error> {
    let text = format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').");
    Error::new(ErrorCode::ScaleAbovePrecision, text)
}

/// Error 1818.
pub(super) fn year_digits() -> Box<Error> {
    Error::new(ErrorCode::YearDigits, "Supports only YEAR or YEAR(4) column.")
}

/// Error 3013.
pub(super) fn invalid_size(column: &str) -> Box<Error> {
    Error::new(ErrorCode::InvalidFieldSize, format!("Invalid size for column '{column}'."))
}

/// Error 1439.
pub(super) fn bit_width(column: &str) -> Box<Error> {
    let text = format!("Display width out of range for column '{column}' (max = 64)");
    Error::new(ErrorCode::DisplayWidth, text)
}

/// Error 1097.
pub(super) fn too_many_members(column: &str, type_name: &str) -> Box<Error> {
    Error::new(ErrorCode::TooManyMembers, format!("Too many strings for column {column} and {type_name}"))
}

/// Error 1291.
pub(super) fn repeated_member(column: &str, member: &str, type_name: &str) -> Box<Error> {
    let text = format!("Column '{column}' has duplicated value '{member}' in {type_name}");
    Error::new(ErrorCode::RepeatedMember, text)
}

/// Error 1367.
pub(super) fn illegal_member(member: &str) -> Box<Error> {
    Error::new(ErrorCode::IllegalValue, format!("Illegal set '{member}' value found during parsing"))
}

/// Error 3728.
pub(super) fn spatial_unique() -> Box<Error> {
    Error::new(ErrorCode::SpatialUniqueKey, "Spatial indexes can't be primary or unique indexes.")
}

/// Error 1070 for a key of a spatial column and other columns.
pub(super) fn too_many_spatial_parts() -> Box<Error> {
    Error::new(ErrorCode::TooManyKeyParts, "Too many key parts specified; max 1 parts allowed")
}

/// Error 1235 for a key of a VECTOR, which MySQL does not have, either.
pub(super) fn vector_key() -> Box<Error> {
    Error::not_supported("a key of a VECTOR column")
}

/// Error 1235 for a VECTOR, 1170 for a TEXT or BLOB without a length in an index, 3152 for a JSON column.
pub(super) fn no_whole_key(column_type: &DataType, name: &str) -> Box<Error> {
    if column_type.is_vector() {
        return vector_key();
    }
    if !column_type.is_json() {
        return blob_key(name);
    }
    let text = format!("JSON column '{name}' supports indexing only via generated columns on a specified JSON path.");
    Error::new(ErrorCode::JsonAsKey, text)
}

/// Error 4092.
#[cold]
pub(super) fn too_many_row_forms(database: &str, table: &str) -> Box<Error> {
    let text = format!(
        "Maximum row versions reached for table {database}/{table}. No more columns can be added or dropped \
         instantly. Please use COPY/INPLACE."
    );
    Error::new(ErrorCode::TooManyRowForms, text)
}
