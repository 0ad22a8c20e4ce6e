//! CHECKSUM TABLE: a query that adds up checksums of the rows. It does not depend on the order of the rows,
//! the session's settings, or the partitions.

use junctor_model::error::{Error, Result};
use junctor_model::quoted_name::{push_quoted_name, quoted_name};
use junctor_model::schema::{ColumnDefinition, SYSTEM_DATABASES};
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;

use super::statement::{Planned, QueryPlan, plan_query};
use super::virtual_table::FindVirtual;
use crate::access::TableAccess;
use crate::bind::{Environment, Modes, message};
use crate::parse::parse;
use crate::parse::statement::{ObjectName, Statement};

/// Plans CHECKSUM TABLE as the equivalent query. With `quick` the checksum is NULL, because none is kept.
///
/// # Errors
/// 1046, 1049, 1146, and 1235 for a computed one.
pub(super) fn plan_checksum(
    environment: &Environment<'_>,
    (tables, quick): (&[ObjectName], bool),
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<QueryPlan>> {
    let mut text = String::new();
    match tables {
        [table] => push_sum(environment, table, quick, ("", &mut text))?,
        _ => {
            // UNION ALL alone gives the rows no order.
            text.push_str("SELECT `Table`, `Checksum` FROM (");
            for (position, table) in tables.iter().enumerate() {
                text.push_str(if position > 0 { " UNION ALL " } else { "" });
                push_sum(environment, table, quick, (&format!("{position} AS `position`, "), &mut text))?;
            }
            text.push_str(") AS `sums` ORDER BY `position`");
        }
    }
    let parsed = parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?;
    match parsed.statement {
        Statement::Select(select) => {
            let modes = Modes { pads_char: false, ..environment.modes };
            plan_query(&Environment { modes, ..*environment }, &select, find_virtual)
        }
        _ => Err(Error::not_supported("CHECKSUM TABLE")),
    }
}

/// Appends the query of one table, with more columns in front. Errors: 1046, 1049, 1146, and 1235 for a
/// computed one.
fn push_sum(
    environment: &Environment<'_>,
    table: &ObjectName,
    quick: bool,
    (before, text): (&str, &mut String),
) -> Result<()> {
    let database = environment.database_of(table)?;
    if SYSTEM_DATABASES.iter().any(|name| name.eq_ignore_ascii_case(database)) {
        return Err(Error::not_supported("CHECKSUM TABLE of a computed table"));
    }
    let layout = environment.table(table, TableAccess::ReadWhole)?;
    let shown = format!("{database}.{}", table.name).replace('\\', "\\\\").replace('\'', "''");
    text.push_str(&format!("SELECT {before}'{shown}' AS `Table`, "));
    if quick {
        text.push_str("NULL AS `Checksum`");
        return Ok(());
    }
    text.push_str("IFNULL(CAST(SUM(CRC32(CONCAT(''");
    for column in layout.definition.columns.iter().filter(|column| !column.hidden) {
        push_value(column, text);
    }
    text.push_str("))) AS UNSIGNED), 0) & 0xFFFFFFFF AS `Checksum` FROM ");
    push_quoted_name(database, text);
    text.push('.');
    push_quoted_name(&table.name, text);
    Ok(())
}

/// Appends the column's value as bytes that no other value of the column has.
fn push_value(column: &ColumnDefinition, text: &mut String) {
    let name = quoted_name(&column.name);
    let value = match column.column_type.form() {
        // Its text depends on the time zone.
        Form::Temporal(TemporalKind::Timestamp) => format!("UNIX_TIMESTAMP({name})"),
        // The text of a FLOAT has six digits.
        Form::Float => format!("{name} + 0e0"),
        Form::Bit => format!("{name} + 0"),
        _ => name.clone(),
    };
    text.push_str(&format!(", IF({name} IS NULL, '-', CONCAT(LENGTH({value}), ':', CAST({value} AS BINARY)))"));
}
