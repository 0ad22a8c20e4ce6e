use super::*;
use crate::address::NodeId;
use crate::buffer::BufferPool;
use crate::file_buffer::FileBuffer;
use crate::toy::STARTER;
use crate::world::{FileError, FileId, FileMode, FileOutcome, FileResult, WorldEvent};

/// Carries out a request; returns the result and the bytes of its answer.
fn ask(files: &mut Files, request: WorldRequest) -> (FileResult, FileBuffer) {
    let (mut events, mut parcels, mut buffers) = (Vec::new(), Vec::new(), BufferPool::new(1 << 20));
    let mut services = Services { buffers: &mut buffers, events: &mut events, parcels: &mut parcels };
    files.carry_out(Address::new(NodeId(1), STARTER, 0), request, &mut services);
    match events.pop() {
        Some((_, WorldEvent::FileDone { token: 9, result, bytes })) => (result, bytes),
        other => panic!("{other:?} is no answer"),
    }
}

fn open(files: &mut Files, path: &str, mode: FileMode) -> Result<FileId, FileError> {
    let (lane, is_direct) = (FileLane::Log, false);
    match ask(files, WorldRequest::OpenFile { path: path.into(), mode, lane, is_direct, token: 9 }).0? {
        FileOutcome::Opened { file, .. } => Ok(file),
        other => panic!("{other:?} is no open file"),
    }
}

fn write(files: &mut Files, file: FileId, offset: u64, bytes: &[u8]) -> (FileResult, FileBuffer) {
    ask(files, WorldRequest::WriteFile { file, offset, bytes: bytes.into(), token: 9 })
}

#[test]
fn after_a_failed_sync_nothing_more_is_done_with_the_file() {
    let mut files = Files::new(std::env::temp_dir());
    // A device that cannot be synced.
    let file = open(&mut files, "/dev/null", FileMode::ReadWrite).unwrap();
    let failed = ask(&mut files, WorldRequest::SyncFile { file, token: 9 }).0;
    assert_eq!(failed, Err(FileError::System(libc::EINVAL)));
    assert_eq!(write(&mut files, file, 0, &[1]), (Err(FileError::Poisoned), FileBuffer::from(&[1][..])));
    let synced = ask(&mut files, WorldRequest::SyncFile { file, token: 9 }).0;
    assert_eq!(synced, Err(FileError::Poisoned));
    assert_eq!(ask(&mut files, WorldRequest::CloseFile { file, token: 9 }).0, Ok(FileOutcome::Closed));
}

#[test]
fn errors_are_told_apart() {
    let mut files = Files::new(std::env::temp_dir());
    assert_eq!(open(&mut files, "no/such/file", FileMode::Read), Err(FileError::NotFound));
    let full = open(&mut files, "/dev/full", FileMode::ReadWrite).unwrap();
    assert_eq!(write(&mut files, full, 0, &[1]).0, Err(FileError::DiskFull));
    ask(&mut files, WorldRequest::CloseFile { file: full, token: 9 }).0.unwrap();
    assert_eq!(write(&mut files, full, 0, &[1]).0, Err(FileError::NotOpen));
    // The slot is used again, and its earlier name stays invalid.
    assert_ne!(open(&mut files, "/dev/full", FileMode::ReadWrite).unwrap(), full);
    assert_eq!(write(&mut files, full, 0, &[1]).0, Err(FileError::NotOpen));
}
