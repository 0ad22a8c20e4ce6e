//! Files that statements read and write: those outside of the node's own folders, and temporary ones.
//!
//! A statement has one request about its file under way at a time. Whatever ends the statement discards the
//! file: it is closed when the request under way has been answered, and deleted if the statement has created
//! it. The name of a temporary file is deleted as soon as the file is open, so that the operating system
//! frees it even if the process is killed.

use std::sync::Arc;

use junctor_kernel::{FileId, FileLane, FileMode, FileOutcome, FileResult, WorldRequest};
use junctor_model::id::ConnectionId;
use junctor_signals::read_rows::OperationId;

pub use junctor_kernel::{FileBuffer, FileError};

use crate::event::Event;
use crate::gateway::Gateway;
use crate::operation::{Operation, Work};
use crate::turn_context::TurnContext;

/// Maximum number of files that the sessions of one block have open at a time, without temporary ones.
pub const FILES_MAX: usize = 64;
/// Maximum number of temporary files that the sessions of one block have open at a time.
pub const TEMPORARY_FILES_MAX: usize = 256;

/// The use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// The file exists and is read from its start.
    Read,
    /// The file does not exist and is written from its start.
    Create,
}

/// The effect of a request about a file of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// The file is open.
    Opened {
        /// Length in bytes.
        length: u64,
    },
    /// Bytes were read; none at the end of the file.
    Read,
    /// All bytes were written.
    Written,
    /// The file is closed, and the operation has ended.
    Closed,
    /// The file is closed, and deleted if it was created. The operation has ended.
    Discarded,
}

/// The answer to a request about a file of a statement.
pub type FileAnswer = Result<FileStep, FileError>;

/// A file that a statement uses.
#[derive(Debug)]
pub(crate) struct FileWork {
    folder: Arc<str>,
    path: Box<str>,
    /// `None` before the file is open, and after it is closed.
    file: Option<FileId>,
    file_use: FileUse,
    /// Whether the file has no name once it is open. It is then written and read at any place.
    is_temporary: bool,
    /// Whether the file must be deleted if the statement fails.
    is_created: bool,
    /// Whether the request under way deletes the name.
    is_unlinking: bool,
    /// Where the next bytes are read or written.
    position: u64,
    is_busy: bool,
    end: FileEnd,
}

/// Whether the use of a file is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileEnd {
    /// The statement uses the file.
    Open,
    /// The statement has asked for the close.
    Finishing,
    /// The file is closed and deleted when it is not busy. With true the statement awaits that.
    Discarding(bool),
}

impl Gateway {
    /// Opens a file in `folder`, which is absolute. [`Event::File`] with [`FileStep::Opened`] is the answer.
    /// If it is an error, the operation has ended.
    ///
    /// # Errors
    /// `TooManyOpen`; nothing was started.
    pub fn open_file(
        &mut self,
        session: ConnectionId,
        (folder, path): (&Arc<str>, &str),
        file_use: FileUse,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId, FileError> {
        if self.files_open >= FILES_MAX {
            return Err(FileError::TooManyOpen);
        }
        let work = FileWork {
            folder: Arc::clone(folder),
            path: path.into(),
            file: None,
            is_created: false,
            is_unlinking: false,
            file_use,
            is_temporary: false,
            position: 0,
            is_busy: true,
            end: FileEnd::Open,
        };
        let operation = self.open(session, Work::File(Box::new(work))).map_err(|_| FileError::TooManyOpen)?;
        self.files_open += 1;
        let mode = match file_use {
            FileUse::Read => FileMode::Read,
            FileUse::Create => FileMode::CreateNew,
        };
        let (folder, path, lane) = (Box::from(&**folder), path.into(), FileLane::Outside);
        turn.outbox.request(WorldRequest::OpenBeneath { folder, path, mode, lane, token: operation.0 });
        Ok(operation)
    }

    /// Creates a temporary file, whose path begins with `prefix`. [`Event::File`] with [`FileStep::Opened`]
    /// is the answer. If it is an error, the operation has ended.
    ///
    /// # Errors
    /// `TooManyOpen`; nothing was started.
    pub fn open_temporary(
        &mut self,
        session: ConnectionId,
        prefix: &Arc<str>,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId, FileError> {
        if self.temporary_files_open >= TEMPORARY_FILES_MAX {
            return Err(FileError::TooManyOpen);
        }
        let path = format!("{prefix}{}-{}", self.own.instance, self.temporary_files_opened);
        let work = FileWork {
            folder: Arc::clone(prefix),
            path: path.clone().into(),
            file: None,
            is_created: false,
            is_unlinking: false,
            file_use: FileUse::Create,
            is_temporary: true,
            position: 0,
            is_busy: true,
            end: FileEnd::Open,
        };
        let operation = self.open(session, Work::File(Box::new(work))).map_err(|_| FileError::TooManyOpen)?;
        self.temporary_files_open += 1;
        self.temporary_files_opened += 1;
        let (path, mode, lane) = (path.into(), FileMode::CreateNew, FileLane::Temporary);
        turn.outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: operation.0 });
        Ok(operation)
    }

    /// Reads bytes of a temporary file that is not busy, from an offset. [`Event::File`] with
    /// [`FileStep::Read`] is the answer.
    pub fn read_temporary(
        &mut self,
        operation: OperationId,
        (offset, length): (u64, u32),
        bytes: FileBuffer,
        turn: &mut TurnContext<'_>,
    ) {
        let Some((file, _)) = self.use_file(operation) else { return };
        turn.outbox.request(WorldRequest::ReadFile { file, offset, length, bytes, token: operation.0 });
    }

    /// Writes bytes of a temporary file that is not busy, at an offset. [`Event::File`] with
    /// [`FileStep::Written`] is the answer.
    pub fn write_temporary(
        &mut self,
        operation: OperationId,
        offset: u64,
        bytes: FileBuffer,
        turn: &mut TurnContext<'_>,
    ) {
        let Some((file, _)) = self.use_file(operation) else { return };
        turn.outbox.request(WorldRequest::WriteFile { file, offset, bytes, token: operation.0 });
    }

    /// Reads the next bytes of an open file that is not busy. [`Event::File`] with [`FileStep::Read`] is the
    /// answer.
    pub fn read_file(&mut self, operation: OperationId, length: u32, bytes: FileBuffer, turn: &mut TurnContext<'_>) {
        let Some((file, offset)) = self.use_file(operation) else { return };
        turn.outbox.request(WorldRequest::ReadFile { file, offset, length, bytes, token: operation.0 });
    }

    /// Writes the next bytes of an open file that is not busy. [`Event::File`] with [`FileStep::Written`] is
    /// the answer.
    pub fn write_file(&mut self, operation: OperationId, bytes: FileBuffer, turn: &mut TurnContext<'_>) {
        let Some((file, offset)) = self.use_file(operation) else { return };
        turn.outbox.request(WorldRequest::WriteFile { file, offset, bytes, token: operation.0 });
    }

    /// Closes an open file that is not busy. [`Event::File`] with [`FileStep::Closed`] is the answer.
    pub fn finish_file(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let Some((file, _)) = self.use_file(operation) else { return };
        if let Some(work) = self.file_work(operation) {
            work.file = None;
            work.end = FileEnd::Finishing;
        }
        turn.outbox.request(WorldRequest::CloseFile { file, token: operation.0 });
    }

    /// Ends the use of a file whose operation has not ended. Closes the file, and deletes it if this
    /// operation has created it. If `is_awaited`, [`Event::File`] with [`FileStep::Discarded`] is the answer.
    pub fn discard_file(&mut self, operation: OperationId, is_awaited: bool, turn: &mut TurnContext<'_>) {
        let Some(work) = self.file_work(operation) else { return };
        work.end = FileEnd::Discarding(is_awaited);
        if !work.is_busy {
            // A file that is not busy is open, so the answer to its close ends the operation.
            self.go_on_discarding(operation, turn);
        }
    }

    /// Handles the answer to a request about a file. Returns the event for the session, if it awaits one.
    pub fn on_file_done(
        &mut self,
        token: u64,
        (result, bytes): (FileResult, FileBuffer),
        turn: &mut TurnContext<'_>,
    ) -> Option<(ConnectionId, Event)> {
        let operation = OperationId(token);
        let session = self.session_of(operation)?;
        let work = self.file_work(operation)?;
        work.is_busy = false;
        let step = match result {
            Ok(FileOutcome::Opened { file, length, .. }) => {
                work.file = Some(file);
                work.is_created = work.file_use == FileUse::Create;
                if work.is_temporary && work.end == FileEnd::Open {
                    work.is_busy = true;
                    work.delete(operation, turn);
                    return None;
                }
                Ok(FileStep::Opened { length })
            }
            // If the name stays, it is deleted at the end.
            _ if std::mem::take(&mut work.is_unlinking) && work.file.is_some() => {
                work.is_created = result.is_err();
                Ok(FileStep::Opened { length: 0 })
            }
            Ok(FileOutcome::Read { length }) => {
                work.position += u64::from(length);
                Ok(FileStep::Read)
            }
            Ok(FileOutcome::Written { length, .. }) => {
                work.position += u64::from(length);
                Ok(FileStep::Written)
            }
            Ok(_) => Ok(FileStep::Closed),
            Err(error) => Err(error),
        };
        if let FileEnd::Discarding(is_awaited) = work.end {
            let has_ended = !self.go_on_discarding(operation, turn);
            let event = Event::File { operation, step: Ok(FileStep::Discarded), bytes };
            return (has_ended && is_awaited).then_some((session, event));
        }
        if work.file.is_none() {
            // The file could not be opened, or it is closed.
            self.close_file_operation(operation);
        }
        Some((session, Event::File { operation, step, bytes }))
    }

    /// Sends the next request that discards a file which is not busy. Returns false if none is left; the
    /// operation has then ended.
    fn go_on_discarding(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) -> bool {
        let Some(work) = self.file_work(operation) else { return false };
        if let Some(file) = work.file.take() {
            work.is_busy = true;
            turn.outbox.request(WorldRequest::CloseFile { file, token: operation.0 });
            return true;
        }
        if std::mem::take(&mut work.is_created) {
            work.is_busy = true;
            work.delete(operation, turn);
            return true;
        }
        self.close_file_operation(operation);
        false
    }

    /// The open file and the next position, for a request that makes the file busy.
    fn use_file(&mut self, operation: OperationId) -> Option<(FileId, u64)> {
        let work = self.file_work(operation)?;
        junctor_kernel::require!(!work.is_busy, "a statement has one request about its file under way");
        work.is_busy = true;
        Some((work.file?, work.position))
    }

    fn file_work(&mut self, operation: OperationId) -> Option<&mut FileWork> {
        let handle = self.handle_of(operation);
        match self.operations.get_mut(handle) {
            Some(Operation { work: Work::File(work), .. }) => Some(work),
            _ => None,
        }
    }

    fn close_file_operation(&mut self, operation: OperationId) {
        let is_temporary = self.file_work(operation).is_some_and(|work| work.is_temporary);
        self.close(operation);
        match is_temporary {
            true => self.temporary_files_open -= 1,
            false => self.files_open -= 1,
        }
    }
}

impl FileWork {
    /// Requests that the name of the file is deleted.
    fn delete(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let (path, token) = (self.path.clone(), operation.0);
        self.is_unlinking = self.is_temporary;
        turn.outbox.request(match self.is_temporary {
            true => WorldRequest::DeleteFile { path, lane: FileLane::Temporary, token },
            false => {
                let folder = Box::from(&*self.folder);
                WorldRequest::DeleteBeneath { folder, path, lane: FileLane::Outside, token }
            }
        });
    }
}

#[cfg(test)]
impl Gateway {
    /// Whether the gateway finds an operation with a file that it has opened.
    pub(crate) fn finds_its_file(&mut self) -> bool {
        let work = FileWork {
            folder: "folder".into(),
            path: "path".into(),
            file: None,
            file_use: FileUse::Create,
            is_temporary: false,
            is_created: true,
            is_unlinking: false,
            position: 0,
            is_busy: false,
            end: FileEnd::Open,
        };
        let operation = self.open(ConnectionId(1), Work::File(Box::new(work))).expect("a free record");
        self.file_work(operation).is_some()
    }
}
