//! LOAD DATA: the target of each field of the file.

use junctor_expression::{Coercibility, Kind, ResultType, Scratch};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::store::StoreMode;

use super::insert::{ComputedDefaults, InsertValue, RowPlanner, Warnings, row_of_parameters, targets};
use super::load_query::{LineQueries, QueryMaker};
use super::virtual_table::FindVirtual;
use crate::bind::{Binder, Environment, ParameterKind, Scope, message};
use crate::parse::statement::{FileFormat, LoadData, LoadField};

/// The file of LOAD DATA, and the targets of its fields.
#[derive(Debug)]
pub struct LoadPlan {
    /// LOCAL: the client sends the file.
    pub is_local: bool,
    /// The name of the file as written.
    pub file: Box<[u8]>,
    /// How the bytes of a field become a value.
    pub encoding: FileEncoding,
    /// FIELDS and LINES.
    pub format: FileFormat,
    /// LOAD XML: the name of the elements that are rows, and those of the fields.
    pub xml: Option<XmlNames>,
    /// The widths of the fields, if nothing separates them; else empty.
    pub widths: Vec<FieldWidth>,
    /// Number of lines to skip at the beginning of the file.
    pub skipped_lines: u64,
    /// The target of each field of a line.
    pub fields: Vec<LoadTarget>,
    /// Whether the values of the session precede the fields among the parameters of a row. They follow the
    /// fields if the statement has a list of fields.
    pub session_values_first: bool,
    /// SET: values that replace those of the fields, in the order of the statement.
    pub assignments: Vec<(ColumnNumber, InsertValue)>,
    /// The queries that compute values of SET for each line, in their order.
    pub queries: LineQueries,
    /// Whether a value of SET is valid for one execution only.
    pub is_volatile: bool,
}

/// The names in the file of a LOAD XML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlNames {
    /// The elements that are rows.
    pub row: Box<[u8]>,
    /// The values of a row, in the order of the fields.
    pub fields: Vec<Box<[u8]>>,
}

/// The character set of a file, as far as its fields must be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEncoding {
    /// UTF-8, which needs no conversion.
    Utf8,
    /// Bytes, which are no text.
    Binary,
    /// One character a byte. MySQL's latin1 is Windows-1252.
    Latin1,
    /// One character a byte; bytes from 128 on are question marks.
    Ascii,
}

impl FileEncoding {
    /// The collation of a field that a user variable gets: as in MySQL, one of the file, not of the
    /// connection.
    pub(crate) fn collation(self) -> CollationId {
        if self == FileEncoding::Binary { CollationId::BINARY } else { CollationId::DEFAULT }
    }

    /// Appends the UTF-8 form of a field, unless its bytes are that form already.
    pub(crate) fn convert(self, field: &[u8], out: &mut Vec<u8>) -> bool {
        if matches!(self, FileEncoding::Utf8 | FileEncoding::Binary) || field.is_ascii() {
            return false;
        }
        let mut buffer = [0; 4];
        for byte in field {
            let character = match (byte, self) {
                (0x80..=0x9f, FileEncoding::Latin1) => WINDOWS_1252[usize::from(byte - 0x80)],
                (0x80.., FileEncoding::Ascii) => '?',
                _ => char::from(*byte),
            };
            out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
        true
    }
}

/// The characters of the bytes 0x80 to 0x9f. As in MySQL, the five bytes that Windows leaves free are control
/// characters.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The size of a field that nothing separates from the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldWidth {
    /// The bytes that the field adds to the size of a row.
    pub row_bytes: usize,
    /// Maximum bytes of the field.
    pub bytes_max: usize,
}

/// The bytes that a TEXT or BLOB column adds to the size of a row, as in MySQL.
const BLOB_ROW_BYTES: usize = 256;

/// Maximum length of a field in the type of its value, as for the text of a parameter.
const TEXT_CHARACTERS: u32 = 65_535;

/// The target of a field of LOAD DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    /// A column of the table.
    Column(ColumnNumber),
    /// The user variable of this name, in lower case.
    Variable(Box<str>),
}

/// Resolves the fields of a LOAD DATA, and binds its assignments in this mode.
///
/// # Errors
/// 1083 for a separator of several bytes, 1115 for a character set, 1084 and 1409 for rows of a fixed size,
/// errors of binding.
pub(super) fn plan_load(
    environment: &Environment<'_>,
    (load, definition, defaults): (&LoadData, &TableDefinition, &ComputedDefaults),
    (scope, mode): (Scope<'_>, StoreMode),
    (ignores, find_virtual): (bool, &FindVirtual<'_>),
) -> Result<LoadPlan> {
    check_format(&load.format)?;
    if !load.is_local {
        environment.access.inspect(|access| access.use_files());
    }
    let encoding = encoding_of(load.character_set.as_deref())?;
    let fields = field_targets(load, definition)?;
    let xml = load.xml_row.as_deref().map(|row| XmlNames { row: row.into(), fields: names(&fields, definition) });
    let widths =
        if xml.is_some() || has_separators(&load.format) { Vec::new() } else { widths(load, &fields, definition)? };
    let session_values_first = !load.has_field_list;
    let of_field = match encoding {
        FileEncoding::Binary => ParameterKind::exactly(
            ResultType::string(CollationId::BINARY, Coercibility::Implicit, TEXT_CHARACTERS).with_nullable(true),
        ),
        _ => ParameterKind::of(Kind::String),
    };
    let of_fields = std::iter::repeat_n(of_field, fields.len());
    let of_session = environment.parameters.iter().copied();
    let kinds: Vec<ParameterKind> = match session_values_first {
        true => of_session.chain(of_fields).collect(),
        false => of_fields.chain(of_session).collect(),
    };
    // The fields shift the numbers of the session's values.
    let environment = Environment { parameters: &kinds, numbers_of_execution: false, ..*environment };
    let variables = if session_values_first { 0 } else { fields.len() };
    let mut binder = Binder::new(&environment, scope);
    let mut scratch = Scratch::new();
    scratch.set_strict(mode == StoreMode::Strict);
    scratch.set_value_rules(environment.rules);
    let mut assignments = Vec::with_capacity(load.assignments.len());
    let mut queries = QueryMaker::new((&environment, variables), definition, (ignores, find_virtual));
    for assignment in &load.assignments {
        let column = definition
            .column(&assignment.column.name)
            .ok_or_else(|| message::unknown_column(&assignment.column.name, "field list"))?;
        if let Some(parameter) = queries.take(column, &assignment.value)? {
            assignments.push((column, InsertValue::Parameter(parameter)));
            continue;
        }
        let planner = RowPlanner { definition, binder: &mut binder, scratch: &scratch, row_number: 1, mode, defaults };
        // A default that is missing is reported for each row of the table, not for the statement.
        let value = planner.value(column, &assignment.value, &mut Vec::new())?;
        assignments.push((column, value));
    }
    Ok(LoadPlan {
        is_local: load.is_local,
        file: load.file.as_slice().into(),
        encoding,
        format: load.format.clone(),
        xml,
        widths,
        skipped_lines: load.skipped_lines,
        fields,
        session_values_first,
        assignments,
        queries: queries.finish()?,
        is_volatile: binder.is_volatile,
    })
}

impl LoadPlan {
    /// The columns that get fields, each once, with the parameter of the last field for it.
    /// `session_values` is the number of values that only the session knows.
    pub(super) fn column_parameters(&self, session_values: usize) -> Vec<(ColumnNumber, u16)> {
        let first = if self.session_values_first { session_values } else { 0 };
        let mut columns: Vec<(ColumnNumber, u16)> = Vec::with_capacity(self.fields.len());
        for (position, field) in self.fields.iter().enumerate() {
            let LoadTarget::Column(column) = field else { continue };
            columns.retain(|(known, _)| known != column);
            columns.push((*column, (first + position) as u16));
        }
        columns
    }
}

/// The row of LOAD DATA. A column that an assignment replaces has a value until then.
pub(super) fn loaded_row(
    definition: &TableDefinition,
    (plan, loaded): &(LoadPlan, Vec<(ColumnNumber, u16)>),
    omitted: Vec<Option<InsertValue>>,
    modes: (&ComputedDefaults, StoreMode),
    warnings: &mut Warnings,
) -> Result<Vec<InsertValue>> {
    let mut row = omitted;
    for (column, value) in &plan.assignments {
        let column = usize::from(column.0);
        row[column] = Some(match value {
            _ if definition.columns[column].auto_increment => InsertValue::Generated,
            InsertValue::Deferred(_) => value.clone(),
            _ => InsertValue::Stored(definition.columns[column].value_before_assignment()),
        });
    }
    // The fields of generated columns are read and have no effect.
    let is_given = |column: &ColumnNumber| !definition.columns[usize::from(column.0)].is_generated();
    let given: Vec<_> = loaded.iter().copied().filter(|(column, _)| is_given(column)).collect();
    row_of_parameters(definition, &given, row, modes, warnings)
}

fn field_targets(load: &LoadData, definition: &TableDefinition) -> Result<Vec<LoadTarget>> {
    let Some(fields) = &load.fields else {
        return Ok(targets(definition, None)?.into_iter().map(LoadTarget::Column).collect());
    };
    let target = |field: &LoadField| match field {
        LoadField::Variable(name) => Ok(LoadTarget::Variable(name.to_lowercase().into())),
        LoadField::Column(name) => match definition.column(name) {
            Some(column) => Ok(LoadTarget::Column(column)),
            None => Err(message::unknown_column(name, "field list")),
        },
    };
    fields.iter().map(target).collect()
}

/// The names of the columns and variables of fields.
fn names(fields: &[LoadTarget], definition: &TableDefinition) -> Vec<Box<[u8]>> {
    let name = |field: &LoadTarget| match field {
        LoadTarget::Column(column) => definition.columns[usize::from(column.0)].name.as_bytes().into(),
        LoadTarget::Variable(name) => name.as_bytes().into(),
    };
    fields.iter().map(name).collect()
}

/// The widths of fields that nothing separates. Errors: 1084 for a TEXT or BLOB column if nothing ends a line
/// either, 1409 for a variable.
fn widths(load: &LoadData, fields: &[LoadTarget], definition: &TableDefinition) -> Result<Vec<FieldWidth>> {
    let columns = fields.iter().filter_map(|field| match field {
        LoadTarget::Column(column) => Some(&definition.columns[usize::from(column.0)]),
        LoadTarget::Variable(_) => None,
    });
    let is_blob = |column: &&ColumnDefinition| {
        let column_type = &column.column_type;
        column_type.is_text_or_blob() || column_type.is_json() || column_type.geometry_kind().is_some()
    };
    if load.format.line_terminator.is_empty() && columns.clone().any(|column| is_blob(&column)) {
        let message = "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
        return Err(Error::new(ErrorCode::FixedSizeWithBlobs, message));
    }
    if columns.clone().count() < fields.len() {
        let message = "Can't load value from file with fixed size rows to variable";
        return Err(Error::new(ErrorCode::FixedSizeIntoVariable, message));
    }
    let width = |column: &ColumnDefinition| {
        let bytes_max = ResultColumn::of_definition(column).length as usize;
        FieldWidth { row_bytes: if is_blob(&column) { BLOB_ROW_BYTES } else { bytes_max }, bytes_max }
    };
    Ok(columns.map(width).collect())
}

/// Whether something separates the fields of a file. Otherwise each has the width of its column.
pub(super) fn has_separators(format: &FileFormat) -> bool {
    !format.field_terminator.is_empty() || !format.enclosed_by.is_empty()
}

/// Error 1083 for a format that no file can have.
pub(super) fn check_format(format: &FileFormat) -> Result<()> {
    if format.enclosed_by.len() > 1 || format.escaped_by.len() > 1 {
        let message = "Field separator argument is not what is expected; check the manual";
        return Err(Error::new(ErrorCode::WrongFieldTerminators, message));
    }
    Ok(())
}

/// The encoding of a file. Error 1115 for an unknown character set, 1235 for one that is not supported.
fn encoding_of(name: Option<&str>) -> Result<FileEncoding> {
    let Some(name) = name else { return Ok(FileEncoding::Utf8) };
    Ok(match CharacterSet::named(name)? {
        CharacterSet::Utf8mb4 | CharacterSet::Utf8mb3 => FileEncoding::Utf8,
        CharacterSet::Binary => FileEncoding::Binary,
        CharacterSet::Latin1 => FileEncoding::Latin1,
        CharacterSet::Ascii => FileEncoding::Ascii,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_character_sets_become_utf8() {
        let converted = |encoding: FileEncoding, field: &[u8]| {
            let mut out = Vec::new();
            encoding.convert(field, &mut out).then(|| String::from_utf8(out).expect("UTF-8"))
        };
        assert_eq!(converted(FileEncoding::Latin1, b"Zo\xeb \x80\x9f\xff"), Some("Zoë €Ÿÿ".into()));
        assert_eq!(converted(FileEncoding::Latin1, b"\x81"), Some("\u{81}".into()));
        assert_eq!(converted(FileEncoding::Ascii, b"a\xeb"), Some("a?".into()));
        assert_eq!(converted(FileEncoding::Latin1, b"plain"), None);
        assert_eq!(converted(FileEncoding::Utf8, "ë".as_bytes()), None);
    }
}
