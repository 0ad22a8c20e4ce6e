//! CREATE TABLE: checks the options, columns, keys, defaults and partitioning of a new table.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId, SchemaVersion, TableId};
use junctor_model::limit::{COLUMNS_MAX, INDEXES_MAX, PARTITIONS_PER_TABLE_MAX};
use junctor_model::schema::{
    ColumnDefinition, ExpressionKind, IndexDefinition, IndexKind, IndexState, Sharing, TableDefinition, TableKind,
};
use junctor_model::table_options::{COMPRESSIONS, KeptOption, KeptOptions, ROW_FORMATS};
use junctor_model::temporal::ValueRules;
use junctor_model::types::DataType;

use super::structure::{CheckedDefinition, DefinitionContext, check_name};
use super::{check, column, default_value, expression, foreign_key, index, message, own_table, time_to_live};
use crate::mysql_catalog::variable::{Note, collation_of};
use crate::parse::definition as ast;
use crate::parse::definition::TableOption;

/// Name of the hidden key column that a table without a primary key gets. Statements cannot see it.
pub const HIDDEN_KEY_NAME: &str = "#row";

const ROW_BYTES_MAX: usize = 65_535;
const COMMENT_CHARACTERS_MAX: usize = 2048;
const ENGINE_REPLACED: u16 = 1266;
const OWN_ENGINES: &[&str] = &["junctor", "ndb", "ndbcluster", "innodb"];
const OTHER_ENGINES: &[&str] =
    &["myisam", "memory", "heap", "aria", "rocksdb", "archive", "csv", "blackhole", "merge", "mrg_myisam", "federated"];

/// Checks CREATE TABLE and returns the table's definition. The table id, the version and the table ids of
/// unique entries are 0 until the main block assigns them. The id of an index is its position.
///
/// # Errors
/// MySQL's errors for an invalid definition; 1235 names an unsupported feature.
pub fn create_table(table: &ast::CreateTable, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let database = context.known_database(&table.name)?;
    let name = &table.name.name;
    check_name(name, ErrorCode::WrongTableName, "table")?;
    if let Some(unsupported) = table.unsupported.first() {
        return Err(Error::not_supported(unsupported.what));
    }
    let own = &table.columns;
    let merged;
    let table = match context.query {
        Some(columns) => {
            merged = own_table::with_query_columns(table, columns, context)?;
            &merged
        }
        None => table,
    };
    let mut notes = Vec::new();
    let options =
        Options::read((name, &table.options), (database.collation, KeptOptions::default()), context, &mut notes)?;
    // Keys come before defaults: a primary key makes its columns NOT NULL, which rules out DEFAULT NULL.
    let lenient = context.environment.modes.is_lenient;
    let mut columns = define_columns(table, (options.collation, lenient), &mut notes)?;
    if context.query.is_some() {
        // The collations of the query's columns are not written.
        let is_own = |column: &ColumnDefinition| own.iter().any(|own| own.name.eq_ignore_ascii_case(&column.name));
        columns.iter_mut().filter(|column| !is_own(column)).for_each(|column| column.has_collation = false);
    }
    let indexes = define_indexes(table, &mut columns, &mut notes, context)?;
    set_defaults(table, &mut columns, context.rules)?;
    check_auto_increment(&columns, &indexes)?;
    let has_hidden_key = columns.last().is_some_and(ColumnDefinition::is_hidden_key);
    check_row_bytes(&columns)?;
    let partitioning = table.partitioning.as_ref();
    let partition_columns = partition_columns(partitioning, &columns, &indexes[0], has_hidden_key)?;
    let mut definition = TableDefinition {
        id: TableId(0),
        version: SchemaVersion(0),
        database: database.name.clone(),
        name: name.as_str().into(),
        kind: TableKind::Base,
        sharing: if table.temporary { Sharing::Temporary(context.owner) } else { Sharing::Shared },
        columns,
        // The main block sets this to the id after the last index.
        next_index: IndexId(0),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        view: None,
        indexes,
        partition_columns,
        partition_count: partition_count(partitioning, context.default_partition_count)?,
        has_partition_clause: partitioning.is_some(),
        placement: None,
        collation: options.collation,
        comment: options.comment,
        options: options.kept,
    };
    foreign_key::add_foreign_keys(table, &mut definition, context)?;
    let mut checks = Vec::with_capacity(table.checks.len());
    for written in &table.checks {
        check::add(written, &definition, &mut checks, context)?;
    }
    definition.checks = checks;
    expression::check_table(&definition, context)?;
    time_to_live::check(&definition, context)?;
    own_table::checked(definition, table, (options.auto_increment, notes), context)
}

/// The table options after the closing parenthesis.
pub(super) struct Options {
    pub collation: CollationId,
    pub comment: Box<str>,
    pub auto_increment: u64,
    /// Options that are only shown.
    pub kept: KeptOptions,
}

impl Options {
    pub(super) fn read(
        (name, written): (&str, &[TableOption]),
        (default, kept): (CollationId, KeptOptions),
        context: &DefinitionContext<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<Options> {
        let (mut character_set, mut collation) = (None, None);
        let mut options = Options { collation: default, comment: "".into(), auto_increment: 1, kept };
        for option in written {
            match option {
                TableOption::Engine(engine) => note_engine(engine, name, context, notes)?,
                TableOption::CharacterSet(set) => character_set = set.as_deref(),
                TableOption::Collation(name) => collation = name.as_deref(),
                TableOption::AutoIncrement(next) => options.auto_increment = (*next).max(1),
                TableOption::Comment(text) => {
                    options.comment = column::comment_text("table", name, Some(text), COMMENT_CHARACTERS_MAX)?;
                }
                TableOption::OnDisk(true) => return Err(Error::not_supported("STORAGE DISK")),
                TableOption::Tablespace(_) => return Err(Error::not_supported("TABLESPACE")),
                TableOption::Other { name, value } if name == "ENCRYPTION" && value.contains(['Y', 'y']) => {
                    return Err(Error::not_supported("ENCRYPTION"));
                }
                TableOption::RowFormat(format) => {
                    let value = ROW_FORMATS.iter().position(|name| name == format).map(|position| position as u64);
                    if value.is_none() && !format.eq_ignore_ascii_case("DEFAULT") {
                        return Err(message::wrong_option_value(format));
                    }
                    options.kept.set(KeptOption::RowFormat, value);
                }
                TableOption::Other { name, value } => options.keep(name, value)?,
                TableOption::OnDisk(false) => {}
            }
        }
        options.collation = collation_of(character_set, collation, default)?;
        Ok(options)
    }

    /// Keeps an option with a number, or DEFAULT; the others have no effect. Error 1064 for another value.
    fn keep(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(option) = KeptOption::named(name) else { return Ok(()) };
        if option == KeptOption::Compression {
            let written = value.trim_matches(['\'', '"']);
            let known = COMPRESSIONS.iter().position(|known| known.eq_ignore_ascii_case(written));
            self.kept.set(option, known.map(|position| position as u64));
            return Ok(());
        }
        let number = match value {
            _ if value.eq_ignore_ascii_case("DEFAULT") => None,
            _ => Some(value.parse().map_err(|_| message::wrong_option_value(value))?),
        };
        self.kept.set(option, option.kept(number).ok_or_else(|| message::wrong_option_value(value))?);
        Ok(())
    }
}

fn note_engine(engine: &str, table: &str, context: &DefinitionContext<'_>, notes: &mut Vec<Note>) -> Result<()> {
    let is_among = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(engine));
    if is_among(OWN_ENGINES) {
        return Ok(());
    }
    if !is_among(OTHER_ENGINES) {
        let text = format!("Unknown storage engine '{engine}'");
        if !context.replaces_unknown_engines {
            return Err(Error::new(ErrorCode::UnknownStorageEngine, text));
        }
        notes.push((ErrorCode::UnknownStorageEngine.errno(), text.into()));
    }
    // MySQL's other engines are replaced in every SQL mode, so that scripts for them run.
    notes.push((ENGINE_REPLACED, format!("Using storage engine Junctor for table '{table}'").into()));
    Ok(())
}

fn define_columns(
    table: &ast::CreateTable,
    kind: (CollationId, bool),
    notes: &mut Vec<Note>,
) -> Result<Vec<ColumnDefinition>> {
    if table.columns.is_empty() {
        return Err(Error::new(ErrorCode::TableWithoutColumns, "A table must have at least 1 column"));
    }
    if table.columns.len() > COLUMNS_MAX {
        return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
    }
    let mut columns: Vec<ColumnDefinition> = Vec::with_capacity(table.columns.len() + 1);
    let mut names = std::collections::BTreeSet::new();
    for written in &table.columns {
        let column = column::define(written, kind, notes)?;
        if !names.insert(column.name.to_ascii_lowercase()) {
            return Err(message::duplicate_column(&written.name));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Defines the keys, the primary key first. The columns of the primary key become NOT NULL. Without a primary
/// key a hidden column is added.
fn define_indexes(
    table: &ast::CreateTable,
    columns: &mut Vec<ColumnDefinition>,
    notes: &mut Vec<Note>,
    context: &DefinitionContext<'_>,
) -> Result<Vec<IndexDefinition>> {
    let written = written_indexes(table);
    let table_name = (&*context.known_database(&table.name)?.name, table.name.name.as_str());
    let primaries = written.iter().filter(|index| index.kind == ast::IndexKind::Primary).count();
    if primaries > 1 {
        return Err(message::multiple_primary());
    }
    if written.len() + 1 - primaries > INDEXES_MAX {
        return Err(message::too_many_keys());
    }
    let mut indexes = Vec::with_capacity(written.len() + 1);
    for index in &written {
        columns.extend(index::hidden_columns(index, columns, context)?);
        let defined = index::define(index, columns, &indexes, notes)?;
        index::note_duplicate(&defined, &indexes, table_name, notes);
        match defined.kind {
            IndexKind::Primary { .. } => indexes.insert(0, defined),
            _ => indexes.push(defined),
        }
    }
    if primaries == 1 {
        for part in indexes[0].columns.clone() {
            let base = index::base_of(columns, part);
            if table.columns[base].nullable == Some(true) {
                return Err(message::primary_null());
            }
            (columns[base].nullable, columns[usize::from(part.0)].nullable) = (false, false);
            check_primary_column(&columns[base])?;
        }
    } else {
        indexes.insert(0, hidden_key(columns));
    }
    for (position, index) in indexes.iter_mut().enumerate() {
        index.id = IndexId(position as u16);
    }
    Ok(indexes)
}

/// Error 3106 for a virtual column in the primary key.
pub(super) fn check_primary_column(column: &ColumnDefinition) -> Result<()> {
    match column.expression.as_ref().is_some_and(|expression| expression.kind == ExpressionKind::Virtual) {
        true => Err(message::virtual_primary()),
        false => Ok(()),
    }
}

/// The keys in the order of the statement; keys from column attributes come before table keys.
fn written_indexes(table: &ast::CreateTable) -> Vec<ast::IndexDefinition> {
    let of_columns = table.columns.iter().flat_map(keys_of_column);
    of_columns.chain(table.indexes.iter().cloned()).collect()
}

/// The keys among the attributes of a column.
pub(super) fn keys_of_column(column: &ast::ColumnDefinition) -> Vec<ast::IndexDefinition> {
    let of_column = |name: &str, kind| ast::IndexDefinition {
        kind,
        name: None,
        algorithm: None,
        columns: vec![ast::IndexColumn {
            name: name.to_owned(),
            expression: None,
            prefix_length: None,
            descending: false,
        }],
        comment: None,
        invisible: false,
        key_block_size: 0,
    };
    let mut indexes = Vec::new();
    if column.primary_key {
        indexes.push(of_column(&column.name, ast::IndexKind::Primary));
    }
    if column.unique {
        indexes.push(of_column(&column.name, ast::IndexKind::Unique));
    }
    indexes
}

/// Error 1118 for a row above MySQL's limit, which does not count hidden columns.
pub(super) fn check_row_bytes(columns: &[ColumnDefinition]) -> Result<()> {
    let visible = columns.iter().filter(|column| !column.hidden);
    if column::row_bytes(visible) > ROW_BYTES_MAX { Err(message::row_too_large()) } else { Ok(()) }
}

/// Adds a hidden key column, and returns the primary key of it.
pub(super) fn hidden_key(columns: &mut Vec<ColumnDefinition>) -> IndexDefinition {
    columns.push(ColumnDefinition {
        auto_increment: true,
        hidden: true,
        ..ColumnDefinition::new(HIDDEN_KEY_NAME, DataType::integer(8, true))
    });
    IndexDefinition {
        id: IndexId(0),
        name: index::PRIMARY.into(),
        kind: IndexKind::Primary { ordered: true },
        columns: vec![ColumnNumber(columns.len() as u16 - 1)],
        state: IndexState::Online,
        attributes: Default::default(),
    }
}

fn set_defaults(table: &ast::CreateTable, columns: &mut [ColumnDefinition], rules: ValueRules) -> Result<()> {
    for (column, written) in columns.iter_mut().zip(&table.columns) {
        default_value::set_default(column, written.default.as_ref(), rules)?;
        column.on_update_now = default_value::is_updated_by_clock(column, written.on_update.as_ref())?;
    }
    Ok(())
}

/// Error 4028 unless the table has a visible column.
pub(super) fn check_visible(columns: &[ColumnDefinition]) -> Result<()> {
    match columns.iter().all(|column| column.hidden || column.invisible) {
        true => Err(Error::new(ErrorCode::NoVisibleColumn, "A table must have at least one visible column.")),
        false => Ok(()),
    }
}

/// Error 4028 unless the table has a visible column. Error 1075 unless it has at most one AUTO_INCREMENT
/// column, which some key begins with.
pub(super) fn check_auto_increment(columns: &[ColumnDefinition], indexes: &[IndexDefinition]) -> Result<()> {
    check_visible(columns)?;
    let mut automatic = columns.iter().enumerate().filter(|(_, column)| column.auto_increment && !column.hidden);
    let Some((position, _)) = automatic.next() else { return Ok(()) };
    let is_first = |index: &IndexDefinition| usize::from(index.columns[0].0) == position;
    if automatic.next().is_some() || !indexes.iter().any(is_first) {
        return Err(message::wrong_auto_key());
    }
    Ok(())
}

pub(super) fn partition_columns(
    written: Option<&ast::PartitionByKey>,
    columns: &[ColumnDefinition],
    primary: &IndexDefinition,
    has_hidden_key: bool,
) -> Result<Vec<ColumnNumber>> {
    let Some(written) = written.filter(|written| !written.columns.is_empty()) else {
        return Ok(primary.columns.clone());
    };
    let mut chosen = Vec::with_capacity(written.columns.len());
    for name in &written.columns {
        let found = columns.iter().position(|column| !column.hidden && column.name.eq_ignore_ascii_case(name));
        let Some(position) = found else {
            let text = "Field in list of fields for partition function not found in table";
            return Err(Error::new(ErrorCode::WrongPartition, text));
        };
        let position = ColumnNumber(position as u16);
        if chosen.contains(&position) {
            return Err(Error::new(ErrorCode::WrongPartition, format!("Duplicate partition field name '{name}'")));
        }
        chosen.push(position);
    }
    // Rows are found by primary key, so the key must determine the partition. No statement can name the
    // column of a hidden key.
    if has_hidden_key {
        return Err(Error::not_supported("PARTITION BY KEY of columns without a primary key"));
    }
    if chosen.iter().any(|column| !primary.columns.contains(column)) {
        return Err(partition_key_not_primary());
    }
    Ok(chosen)
}

pub(super) fn partition_count(written: Option<&ast::PartitionByKey>, default: u16) -> Result<u16> {
    match written.and_then(|written| written.partitions) {
        None => Ok(default.clamp(1, PARTITIONS_PER_TABLE_MAX)),
        Some(count) if count > u64::from(PARTITIONS_PER_TABLE_MAX) => Err(too_many_partitions()),
        Some(count) => Ok((count as u16).max(1)),
    }
}

#[cold]
pub(super) fn too_many_partitions() -> Box<Error> {
    Error::new(ErrorCode::TooManyPartitions, "Too many partitions (including subpartitions) were defined")
}

#[cold]
pub(super) fn partition_key_not_primary() -> Box<Error> {
    let text = "A PRIMARY KEY must include all columns in the table's partitioning function";
    Error::new(ErrorCode::WrongPartition, text)
}
