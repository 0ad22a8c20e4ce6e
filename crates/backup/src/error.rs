//! Why a backup or a restore failed.

use std::fmt;
use std::path::Path;

/// Why a backup or a restore failed.
#[derive(Debug)]
pub enum BackupError {
    /// The store of the backups failed.
    Store(object_store::Error),
    /// A file of the data directory cannot be read or written.
    File(Box<Path>, std::io::Error),
    /// The server refused a statement, or the connection to it broke.
    Server(mysql::Error),
    /// Stored bytes are damaged, or the request contradicts what is stored. The text says what and where.
    Refused(Box<str>),
}

impl BackupError {
    pub(crate) fn refused(message: impl Into<Box<str>>) -> BackupError {
        BackupError::Refused(message.into())
    }

    /// Converts an error of this file.
    pub(crate) fn of_file(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
        move |error| BackupError::File(path.into(), error)
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Store(error) => write!(out, "the store of the backups: {error}"),
            BackupError::File(path, error) => write!(out, "{}: {error}", path.display()),
            BackupError::Server(error) => write!(out, "the server: {error}"),
            BackupError::Refused(message) => out.write_str(message),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<object_store::Error> for BackupError {
    fn from(error: object_store::Error) -> BackupError {
        BackupError::Store(error)
    }
}

impl From<mysql::Error> for BackupError {
    fn from(error: mysql::Error) -> BackupError {
        BackupError::Server(error)
    }
}
