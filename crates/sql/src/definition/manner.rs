//! ALGORITHM and LOCK of ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! INSTANT is a promise that no row is read or written, so it is refused where Junctor would. INPLACE and
//! LOCK=NONE promise that sessions use the table meanwhile. Every copy of Junctor keeps that promise unless
//! it generates numbers. The check of a new foreign key does not keep it. INPLACE is refused for the changes
//! that MySQL, too, makes only by COPY.

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{ColumnDefinition, ExpressionKind};

use crate::parse::definition::{AlterAlgorithm, AlterLock, AlterManner, AlterTable, TableChange};

const COLUMN_TYPE: &str = "Cannot change column type INPLACE";
const PRIMARY_KEY: &str = "Dropping a primary key is not allowed without also adding a new primary key";
const FOREIGN_KEYS: &str = "Adding foreign keys needs foreign_key_checks=OFF";
const NUMBERS: &str = "Adding an auto-increment column requires a lock";
const COPY: &str = "COPY algorithm requires a lock";

/// Why MySQL makes a change only by COPY: the text of its reason, if it gives one.
type OnlyByCopy = Option<&'static str>;

/// Checks ALGORITHM and LOCK against each other.
///
/// # Errors
/// 1221 for INSTANT with a LOCK, 1846 for COPY with LOCK=NONE.
pub(super) fn check_combination(manner: AlterManner) -> Result<()> {
    match (manner.algorithm, manner.lock) {
        (_, AlterLock::Default) => Ok(()),
        (AlterAlgorithm::Instant, _) => {
            let text = "Incorrect usage of ALGORITHM=INSTANT and LOCK=NONE/SHARED/EXCLUSIVE";
            Err(Error::new(ErrorCode::WrongUsage, text))
        }
        (AlterAlgorithm::Copy, AlterLock::None) => Err(not_supported("LOCK=NONE", Some(COPY), "LOCK=SHARED")),
        _ => Ok(()),
    }
}

/// Checks whether the alteration that results from a statement is made as the statement wants.
///
/// # Errors
/// 1845 and 1846.
pub(super) fn check(statement: &AlterTable, alteration: &Alteration) -> Result<()> {
    let is_copied = only_by_copy(statement, alteration);
    match (statement.manner.algorithm, is_copied) {
        (AlterAlgorithm::Instant, Some(reason)) => {
            return Err(not_supported("ALGORITHM=INSTANT", reason, "ALGORITHM=COPY"));
        }
        (AlterAlgorithm::Instant, None) if !is_instant(alteration) => {
            return Err(not_supported("ALGORITHM=INSTANT", None, "ALGORITHM=COPY/INPLACE"));
        }
        (AlterAlgorithm::InPlace, Some(reason)) => {
            return Err(not_supported("ALGORITHM=INPLACE", reason, "ALGORITHM=COPY"));
        }
        _ => {}
    }
    match statement.manner.lock == AlterLock::None && blocks_writes(alteration) {
        true => Err(not_supported("LOCK=NONE", is_copied.unwrap_or(Some(NUMBERS)), "LOCK=SHARED")),
        false => Ok(()),
    }
}

/// Whether the alteration neither reads nor writes rows or entries of indexes.
fn is_instant(alteration: &Alteration) -> bool {
    !alteration.has_several_steps() && alteration.drop_indexes.is_empty()
}

/// Whether writes wait for more than the last step.
fn blocks_writes(alteration: &Alteration) -> bool {
    let generates_numbers = alteration.copy().is_some_and(|(_, sources)| sources.contains(&ColumnSource::Numbers));
    generates_numbers || alteration.validates_rows()
}

/// Whether rows are copied or checked for a change that MySQL makes only by COPY.
fn only_by_copy(statement: &AlterTable, alteration: &Alteration) -> Option<OnlyByCopy> {
    if alteration.validates_rows() {
        return Some(Some(FOREIGN_KEYS));
    }
    let (redefinition, sources) = alteration.copy()?;
    let Redefinition { old, new, .. } = redefinition;
    let has_hidden_key = |columns: &[ColumnDefinition]| columns.last().is_some_and(ColumnDefinition::is_hidden_key);
    if has_hidden_key(&new.columns) && !has_hidden_key(&old.columns) {
        return Some(Some(PRIMARY_KEY));
    }
    let has_other_type = |(column, source): (&ColumnDefinition, &ColumnSource)| match source {
        ColumnSource::Column(from) if !column.hidden => {
            !column.column_type.has_values_of(&old.columns[usize::from(from.0)].column_type)
        }
        _ => false,
    };
    if new.columns.iter().zip(sources).any(has_other_type) {
        return Some(Some(COLUMN_TYPE));
    }
    let is_known = |column: &ColumnDefinition| {
        old.columns.iter().any(|old| old.name == column.name && old.expression == column.expression)
    };
    let is_stored = |(column, source): (&ColumnDefinition, &ColumnSource)| {
        let is_stored = column.expression.as_ref().is_some_and(|expression| expression.kind == ExpressionKind::Stored);
        is_stored && *source == ColumnSource::Computed && !is_known(column)
    };
    let is_enforced_before = |name: &str| old.checks.iter().any(|check| check.enforced && *check.name == *name);
    let partitions =
        |change: &TableChange| matches!(change, TableChange::PartitionBy(_) | TableChange::RemovePartitioning);
    let is_copied = new.columns.iter().zip(sources).any(is_stored)
        || new.checks.iter().any(|check| check.enforced && !is_enforced_before(&check.name))
        || statement.changes.iter().any(partitions);
    is_copied.then_some(None)
}

#[cold]
fn not_supported(wanted: &str, reason: Option<&str>, instead: &str) -> Box<Error> {
    match reason {
        Some(reason) => {
            let text = format!("{wanted} is not supported. Reason: {reason}. Try {instead}.");
            Error::new(ErrorCode::AlterNotSupportedReason, text)
        }
        None => {
            let text = format!("{wanted} is not supported for this operation. Try {instead}.");
            Error::new(ErrorCode::AlterNotSupported, text)
        }
    }
}
