//! Files: opened, read, written and synced on the thread for files, never interpreted.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::buffer::{Buffer, BufferPool};
use crate::scheduler::run::Services;
use crate::world::{FileError, FileId, FileMode, FileOutcome, FileResult, WorldEvent, WorldRequest};

/// Maximum number of open files on a node.
const OPEN_MAX: usize = 4096;

/// Maximum size of one read, in bytes.
const READ_BYTES_MAX: u32 = 64 << 20;

/// The open files of a node.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    open: Vec<Option<OpenFile>>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    length: u64,
    /// Whether a sync failed. The state on disk is then unknown for good, because the system may have marked
    /// the pages clean.
    poisoned: bool,
}

impl Files {
    /// Resolves relative paths against `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, open: Vec::new() }
    }

    /// Carries out a request, however long it takes, and answers `from`.
    pub(super) fn carry_out(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        let mut bytes = Buffer::new();
        let (token, result) = match request {
            WorldRequest::OpenFile { path, mode, token } => (token, self.open(&path, mode)),
            WorldRequest::AppendFile { file, bytes: written, token } => {
                bytes = written;
                (token, self.append(file, &bytes))
            }
            WorldRequest::WriteFile { file, offset, bytes: written, token } => {
                bytes = written;
                (token, self.write(file, offset, &bytes))
            }
            WorldRequest::SyncFile { file, token } => (token, self.sync(file)),
            WorldRequest::ReadFile { file, offset, length, token } => {
                let (read, result) = self.read(file, offset, length, services.buffers);
                bytes = read;
                (token, result)
            }
            WorldRequest::CloseFile { file, token } => (token, self.close(file)),
            WorldRequest::DeleteFile { path, token } => (token, self.delete(&path)),
            // The engine passes file requests only.
            _ => return,
        };
        services.events.push((from, WorldEvent::FileDone { token, result, bytes }));
    }

    fn open(&mut self, path: &str, mode: FileMode) -> FileResult {
        let place = match self.open.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.open.len() >= OPEN_MAX => return Err(FileError::TooManyOpen),
            None => {
                self.open.push(None);
                self.open.len() - 1
            }
        };
        let path = self.folder.join(path);
        let creates = matches!(mode, FileMode::CreateOrOpen | FileMode::CreateEmpty);
        if creates && let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(file_error)?;
        }
        let is_new = creates && !path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(mode != FileMode::Read)
            .create(creates)
            .truncate(mode == FileMode::CreateEmpty)
            .open(&path)
            .map_err(file_error)?;
        if is_new {
            sync_folder(&path)?;
        }
        let length = file.metadata().map_err(file_error)?.len();
        self.open[place] = Some(OpenFile { file, length, poisoned: false });
        Ok(FileOutcome::Opened { file: FileId(place as u32), length })
    }

    fn append(&mut self, file: FileId, bytes: &[u8]) -> FileResult {
        let offset = self.opened(file)?.length;
        self.write(file, offset, bytes)
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> FileResult {
        let file = self.opened(file)?;
        file.file.write_all_at(bytes, offset).map_err(file_error)?;
        file.length = file.length.max(offset + bytes.len() as u64);
        Ok(FileOutcome::Written { offset, length: bytes.len() as u32 })
    }

    fn sync(&mut self, file: FileId) -> FileResult {
        let file = self.opened(file)?;
        match file.file.sync_data() {
            Ok(()) => Ok(FileOutcome::Synced),
            Err(error) => {
                file.poisoned = true;
                Err(file_error(error))
            }
        }
    }

    fn read(&mut self, file: FileId, offset: u64, length: u32, buffers: &mut BufferPool) -> (Buffer, FileResult) {
        let length = length.min(READ_BYTES_MAX) as usize;
        let mut bytes = buffers.take(length);
        bytes.resize(length, 0);
        let mut filled = 0;
        let result = self.opened(file).and_then(|file| {
            while filled < length {
                match file.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(file_error(error)),
                }
            }
            Ok(FileOutcome::Read { length: filled as u32 })
        });
        bytes.truncate(filled);
        (bytes, result)
    }

    fn close(&mut self, file: FileId) -> FileResult {
        match self.open.get_mut(file.0 as usize).and_then(Option::take) {
            Some(_) => Ok(FileOutcome::Closed),
            None => Err(FileError::NotOpen),
        }
    }

    fn delete(&mut self, path: &str) -> FileResult {
        let path = self.folder.join(path);
        match std::fs::remove_file(&path) {
            Ok(()) => sync_folder(&path).map(|()| FileOutcome::Deleted),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileOutcome::Deleted),
            Err(error) => Err(file_error(error)),
        }
    }

    fn opened(&mut self, file: FileId) -> Result<&mut OpenFile, FileError> {
        match self.open.get_mut(file.0 as usize) {
            Some(Some(file)) if file.poisoned => Err(FileError::Poisoned),
            Some(Some(file)) => Ok(file),
            _ => Err(FileError::NotOpen),
        }
    }
}

/// A created or deleted name survives a crash only once its folder is synced.
fn sync_folder(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(file_error)
}

fn file_error(error: Error) -> FileError {
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound,
        ErrorKind::PermissionDenied => FileError::Denied,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileError::DiskFull,
        _ => FileError::System(error.raw_os_error().unwrap_or(0)),
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::address::NodeId;
    use crate::toy::STARTER;

    /// Carries out a request; returns the result and the bytes of its answer.
    fn ask(files: &mut Files, request: WorldRequest) -> (FileResult, Buffer) {
        let (mut events, mut parcels, mut buffers) = (Vec::new(), Vec::new(), BufferPool::new(1 << 20));
        let mut services = Services { buffers: &mut buffers, events: &mut events, parcels: &mut parcels };
        files.carry_out(Address::new(NodeId(1), STARTER, 0), request, &mut services);
        match events.pop() {
            Some((_, WorldEvent::FileDone { token: 9, result, bytes })) => (result, bytes),
            other => panic!("{other:?} is no answer"),
        }
    }

    fn open(files: &mut Files, path: &str, mode: FileMode) -> FileResult {
        ask(files, WorldRequest::OpenFile { path: path.into(), mode, token: 9 }).0
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_done_with_the_file() {
        let mut files = Files::new(std::env::temp_dir());
        // A device that cannot be synced.
        let opened = open(&mut files, "/dev/null", FileMode::ReadWrite);
        assert_eq!(opened, Ok(FileOutcome::Opened { file: FileId(0), length: 0 }));
        let failed = ask(&mut files, WorldRequest::SyncFile { file: FileId(0), token: 9 }).0;
        assert_eq!(failed, Err(FileError::System(libc::EINVAL)));
        let written = ask(&mut files, WorldRequest::AppendFile { file: FileId(0), bytes: vec![1], token: 9 });
        assert_eq!(written, (Err(FileError::Poisoned), vec![1]));
        let synced = ask(&mut files, WorldRequest::SyncFile { file: FileId(0), token: 9 }).0;
        assert_eq!(synced, Err(FileError::Poisoned));
    }

    #[test]
    fn errors_are_told_apart() {
        let mut files = Files::new(std::env::temp_dir());
        assert_eq!(open(&mut files, "no/such/file", FileMode::Read), Err(FileError::NotFound));
        let read = ask(&mut files, WorldRequest::ReadFile { file: FileId(7), offset: 0, length: 1, token: 9 }).0;
        assert_eq!(read, Err(FileError::NotOpen));
        assert!(open(&mut files, "/dev/full", FileMode::ReadWrite).is_ok());
        let written = ask(&mut files, WorldRequest::AppendFile { file: FileId(0), bytes: vec![1], token: 9 }).0;
        assert_eq!(written, Err(FileError::DiskFull));
    }

    #[test]
    fn a_read_at_the_end_gives_what_is_left() {
        let folder = format!("junctor-kernel-file-{}", std::process::id());
        let mut files = Files::new(std::env::temp_dir());
        assert!(open(&mut files, &format!("{folder}/a"), FileMode::CreateEmpty).is_ok());
        let file = FileId(0);
        ask(&mut files, WorldRequest::WriteFile { file, offset: 2, bytes: b"abc".to_vec(), token: 9 }).0.unwrap();
        let read = ask(&mut files, WorldRequest::ReadFile { file, offset: 1, length: 100, token: 9 });
        assert_eq!(read, (Ok(FileOutcome::Read { length: 4 }), b"\0abc".to_vec()));
        let path = format!("{folder}/a").into();
        assert_eq!(ask(&mut files, WorldRequest::DeleteFile { path, token: 9 }).0, Ok(FileOutcome::Deleted));
        std::fs::remove_dir(std::env::temp_dir().join(folder)).unwrap();
    }
}
