//! Files of the server: the folder in which they are, and the errors about them in MySQL's words.

use std::sync::Arc;

use junctor_gateway::file::{FileError, FileUse};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::read_rows::OperationId;

use super::context::StatementContext;

/// Number of bytes after which rows are written, and that one request reads.
pub(super) const FILE_STEP_BYTES: usize = 256 << 10;

/// A use of a file, for the number of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAttempt {
    Create,
    Write,
    Open,
    Read,
}

impl StatementContext<'_, '_> {
    /// Opens a file of the server for the statement. Errors: 1290 if `secure_file_priv` is NULL; those of
    /// `file_error`.
    pub(super) fn open_server_file(&mut self, name: &str, file_use: FileUse) -> Result<OperationId> {
        let Some(folder) = self.engine.settings.secure_file_priv.clone() else { return Err(files_are_refused()) };
        let session = self.session.connection;
        let opened = self.engine.gateway.open_file(session, (&folder, name), file_use, self.turn);
        let attempt = if file_use == FileUse::Create { FileAttempt::Create } else { FileAttempt::Open };
        opened.map_err(|error| file_error(Some(&folder), name, attempt, error))
    }

    /// The error of a request about a file.
    pub(super) fn server_file_error(&self, name: &str, attempt: FileAttempt, error: FileError) -> Box<Error> {
        file_error(self.engine.settings.secure_file_priv.as_ref(), name, attempt, error)
    }
}

/// Error 1290 for a file out of the folder, 1085, 1086; 1, 2, 3, 13 or 29 with the number of the operating
/// system.
pub(super) fn file_error(folder: Option<&Arc<str>>, name: &str, attempt: FileAttempt, error: FileError) -> Box<Error> {
    match error {
        FileError::Outside => return files_are_refused(),
        FileError::Exists => return Error::new(ErrorCode::FileExists, format!("File '{name}' already exists")),
        FileError::NotAFile if attempt == FileAttempt::Open => {
            let text = format!("The file '{name}' must be in the database directory or be readable by all");
            return Error::new(ErrorCode::FileNotReadable, text);
        }
        _ => {}
    }
    let folder = folder.map_or("", |folder| folder.trim_end_matches('/'));
    let path = if name.starts_with('/') { name.to_owned() } else { format!("{folder}/{name}") };
    let (code, text) = match attempt {
        FileAttempt::Create => (ErrorCode::CreateFileFailed, format!("Can't create/write to file '{path}'")),
        FileAttempt::Write => (ErrorCode::WriteFileFailed, format!("Error writing file '{path}'")),
        FileAttempt::Read => (ErrorCode::ReadFileFailed, format!("Error reading file '{path}'")),
        FileAttempt::Open if error == FileError::NotFound => {
            (ErrorCode::FileStatusFailed, format!("Can't get stat of '{path}'"))
        }
        FileAttempt::Open => (ErrorCode::OpenFileFailed, format!("File '{path}' not found")),
    };
    let (number, reason) = cause(error);
    Error::new(code, format!("{text} (OS errno {number} - {reason})"))
}

/// The operating system's number and text of an error.
fn cause(error: FileError) -> (i32, String) {
    match error {
        FileError::NotFound => (2, "No such file or directory".into()),
        FileError::Denied => (13, "Permission denied".into()),
        FileError::TooManyOpen | FileError::QueueFull => (24, "Too many open files".into()),
        FileError::DiskFull => (28, "No space left on device".into()),
        FileError::System(number) => {
            let text = error.to_string();
            let end = text.rfind(" (os error").unwrap_or(text.len());
            (number, text[..end].to_owned())
        }
        other => (0, other.to_string()),
    }
}

/// Error 1290 of a file out of reach.
#[cold]
pub(super) fn files_are_refused() -> Box<Error> {
    let message = "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement";
    Error::new(ErrorCode::OptionPreventsStatement, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_mysql() {
        let folder: Arc<str> = "/files/".into();
        let said = |name: &str, attempt, error| {
            let error = file_error(Some(&folder), name, attempt, error);
            (error.code.errno(), error.message.into_string())
        };
        for (attempt, error, errno, expected) in [
            (
                FileAttempt::Create,
                FileError::Denied,
                1,
                "Can't create/write to file '/files/x' (OS errno 13 - Permission denied)",
            ),
            (
                FileAttempt::Create,
                FileError::NotFound,
                1,
                "Can't create/write to file '/files/x' (OS errno 2 - No such file or directory)",
            ),
            (FileAttempt::Create, FileError::Exists, 1086, "File 'x' already exists"),
            (
                FileAttempt::Write,
                FileError::DiskFull,
                3,
                "Error writing file '/files/x' (OS errno 28 - No space left on device)",
            ),
            (
                FileAttempt::Open,
                FileError::NotFound,
                13,
                "Can't get stat of '/files/x' (OS errno 2 - No such file or directory)",
            ),
            (FileAttempt::Open, FileError::Denied, 29, "File '/files/x' not found (OS errno 13 - Permission denied)"),
            (
                FileAttempt::Open,
                FileError::TooManyOpen,
                29,
                "File '/files/x' not found (OS errno 24 - Too many open files)",
            ),
            (
                FileAttempt::Read,
                FileError::System(5),
                2,
                "Error reading file '/files/x' (OS errno 5 - Input/output error)",
            ),
        ] {
            assert_eq!(said("x", attempt, error), (errno, expected.to_owned()));
        }
        assert_eq!(said("../x", FileAttempt::Create, FileError::Outside).0, 1290);
        assert_eq!(said("sub", FileAttempt::Open, FileError::NotAFile).0, 1085);
        let (_, text) = said("/files/sub/x", FileAttempt::Open, FileError::NotFound);
        assert_eq!(text, "Can't get stat of '/files/sub/x' (OS errno 2 - No such file or directory)");
    }
}
