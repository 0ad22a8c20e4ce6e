//! Checks pair files.

use std::io::ErrorKind;
use std::path::Path;

use junctor_storage::log::{PairCopy, PairSlot, decode_slot, newest_slot};

use super::CheckReport;
use crate::BackupError;

/// Checks both files of a pair, and returns the newest content.
pub(super) fn check_pair(
    folder: &Path,
    name: &str,
    kind: u16,
    report: &mut CheckReport,
) -> Result<Option<PairSlot>, BackupError> {
    let zero = check_slot(folder, &format!("{name}.0"), kind, report)?;
    let one = check_slot(folder, &format!("{name}.1"), kind, report)?;
    Ok(newest_slot(zero, one))
}

fn check_slot(folder: &Path, name: &str, kind: u16, report: &mut CheckReport) -> Result<Option<PairSlot>, BackupError> {
    let path = folder.join(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BackupError::of_file(&path)(error)),
    };
    match decode_slot(kind, &bytes) {
        Ok(Some(slot)) => {
            let copies = match slot.damaged {
                None => None,
                Some(PairCopy::First) => Some(("first", "second")),
                Some(PairCopy::Second) => Some(("second", "first")),
            };
            if let Some((damaged, whole)) = copies {
                report.damaged(name, format!("the {damaged} copy is damaged; a start uses the {whole}"));
            }
            Ok(Some(slot))
        }
        Ok(None) => {
            report.damaged(name, "both copies are damaged");
            Ok(None)
        }
        Err(error) => {
            report.damaged(name, error);
            Ok(None)
        }
    }
}
