//! Checks a stopped data directory: every file that a start would read, and what belongs together.
//!
//! The check reads and changes nothing. It finds every damaged byte that has a checksum, and thus everything
//! at which a start would refuse the directory. Bytes that a start ignores are not examined.

mod checkpoint;
mod log;
mod pair;

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use junctor_model::stored_identity::{IDENTITY_USE, Identity};
use junctor_model::stored_manifest::{MANIFEST_USE, Manifest};
use junctor_model::stored_settings::{PersistedSettings, SETTINGS_USE};

use self::checkpoint::check_checkpoint;
use self::log::check_log;
use self::pair::check_pair;
use crate::BackupError;

/// Options of `junctor check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// The data directory
    #[arg(value_name = "DIR")]
    pub data_dir: PathBuf,
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Each damaged place: its file, its position there, and what is wrong.
    pub damage: Vec<String>,
    /// Facts about the directory that are no damage.
    pub notes: Vec<String>,
}

impl CheckReport {
    fn damaged(&mut self, place: impl std::fmt::Display, problem: impl std::fmt::Display) {
        self.damage.push(format!("{place}: {problem}"));
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

/// Checks the directory.
///
/// # Errors
/// A server uses the directory, or it is not a data directory, or a file cannot be read.
pub fn check(options: &CheckOptions) -> Result<CheckReport, BackupError> {
    let folder = &options.data_dir;
    if !folder.is_dir() {
        return Err(BackupError::refused(format!("{} is no folder; name a data directory", folder.display())));
    }
    let _lock = lock(folder)?;
    let mut report = CheckReport::default();
    let identity = check_pair(folder, "identity", IDENTITY_USE, &mut report)?;
    let settings = check_pair(folder, "settings", SETTINGS_USE, &mut report)?;
    let manifest = check_pair(folder, "manifest", MANIFEST_USE, &mut report)?;
    if let Some(settings) = settings
        && let Err(error) = PersistedSettings::decode(&settings.content)
    {
        report.damaged("settings", error);
    }
    let manifest = match manifest.map(|slot| Manifest::decode(&slot.content)) {
        Some(Ok(manifest)) => Some(manifest),
        Some(Err(error)) => {
            report.damaged("manifest", error);
            None
        }
        None => {
            report.note("no checkpoint: a start replays the whole log");
            None
        }
    };
    if let Some(manifest) = &manifest {
        check_checkpoint(folder, manifest, &mut report)?;
    }
    let Some(identity) = identity else {
        if report.damage.is_empty() {
            let text = format!("{} is not the data directory of a durable server", folder.display());
            return Err(BackupError::refused(text));
        }
        return Ok(report);
    };
    match Identity::decode(&identity.content) {
        Ok(identity) => check_log(folder, &identity, manifest.as_ref(), &mut report)?,
        Err(error) => report.damaged("identity", error),
    }
    Ok(report)
}

/// Locks the directory as a server does, so that none starts meanwhile. A directory without the file was
/// never used by a server.
fn lock(folder: &Path) -> Result<Option<File>, BackupError> {
    let path = folder.join("lock");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BackupError::of_file(&path)(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(BackupError::refused(format!("a server uses {}; stop it first", folder.display())))
        }
        Err(TryLockError::Error(error)) => Err(BackupError::of_file(&path)(error)),
    }
}
