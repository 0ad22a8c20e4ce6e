//! Virtual files. A crash keeps what was synced and any part of the rest.

use std::collections::BTreeMap;

use crate::buffer::{Buffer, BufferPool};
use crate::random::Random;
use crate::world::{FileError, FileId, FileMode, FileOutcome, FileResult, WorldRequest};

/// Maximum size of a file, so that a wrong offset does not exhaust the machine's memory.
const FILE_BYTES_MAX: u64 = 1 << 32;

/// The files of one node.
#[derive(Debug, Default)]
pub(super) struct VirtualFiles {
    files: BTreeMap<String, VirtualFile>,
    open: Vec<Option<String>>,
}

#[derive(Debug, Default)]
struct VirtualFile {
    content: Vec<u8>,
    /// Content that survives a crash.
    synced: Vec<u8>,
    /// Writes since the last sync. A crash may lose each of them separately.
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl VirtualFiles {
    /// Carries out a request. Returns its token, its result and the buffer to return.
    pub(super) fn carry_out(
        &mut self,
        request: WorldRequest,
        buffers: &mut BufferPool,
    ) -> Option<(u64, FileResult, Buffer)> {
        Some(match request {
            WorldRequest::OpenFile { path, mode, token } => (token, self.open(&path, mode), Buffer::new()),
            WorldRequest::AppendFile { file, bytes, token } => {
                let end = self.opened(file).map(|file| file.content.len() as u64);
                (token, end.and_then(|offset| self.write(file, offset, &bytes)), bytes)
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => (token, self.write(file, offset, &bytes), bytes),
            WorldRequest::SyncFile { file, token } => {
                let result = self.opened(file).map(|file| {
                    file.unsynced.clear();
                    file.synced.clone_from(&file.content);
                    FileOutcome::Synced
                });
                (token, result, Buffer::new())
            }
            WorldRequest::ReadFile { file, offset, length, token } => {
                let mut bytes = buffers.take(length as usize);
                let result = self.opened(file).map(|file| {
                    let start = (offset as usize).min(file.content.len());
                    let end = start.saturating_add(length as usize).min(file.content.len());
                    bytes.extend_from_slice(&file.content[start..end]);
                    FileOutcome::Read { length: (end - start) as u32 }
                });
                (token, result, bytes)
            }
            WorldRequest::CloseFile { file, token } => {
                let closed = self.open.get_mut(file.0 as usize).and_then(Option::take);
                (token, closed.map(|_| FileOutcome::Closed).ok_or(FileError::NotOpen), Buffer::new())
            }
            WorldRequest::DeleteFile { path, token } => {
                self.files.remove(&*path);
                (token, Ok(FileOutcome::Deleted), Buffer::new())
            }
            _ => return None,
        })
    }

    fn open(&mut self, path: &str, mode: FileMode) -> FileResult {
        let creates = matches!(mode, FileMode::CreateOrOpen | FileMode::CreateEmpty);
        if !creates && !self.files.contains_key(path) {
            return Err(FileError::NotFound);
        }
        let file = self.files.entry(path.to_owned()).or_default();
        if mode == FileMode::CreateEmpty {
            *file = VirtualFile::default();
        }
        let length = file.content.len() as u64;
        let place = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if place == self.open.len() {
            self.open.push(None);
        }
        self.open[place] = Some(path.to_owned());
        Ok(FileOutcome::Opened { file: FileId(place as u32), length })
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> FileResult {
        if offset.saturating_add(bytes.len() as u64) > FILE_BYTES_MAX {
            return Err(FileError::DiskFull);
        }
        let file = self.opened(file)?;
        apply(&mut file.content, offset as usize, bytes);
        file.unsynced.push((offset as usize, bytes.to_vec()));
        Ok(FileOutcome::Written { offset, length: bytes.len() as u32 })
    }

    fn opened(&mut self, file: FileId) -> Result<&mut VirtualFile, FileError> {
        let path = self.open.get(file.0 as usize).and_then(Option::as_ref).ok_or(FileError::NotOpen)?;
        self.files.get_mut(path).ok_or(FileError::NotFound)
    }

    /// The process ends: its files are closed, their content stays.
    pub(super) fn end_process(&mut self) {
        self.open.clear();
    }

    /// Loses any of the unsynced writes, and parts of others.
    pub(super) fn crash(&mut self, random: &mut Random) {
        self.open.clear();
        for file in self.files.values_mut() {
            let mut content = std::mem::take(&mut file.synced);
            for (offset, bytes) in file.unsynced.drain(..) {
                let kept = match random.below(4) {
                    0 => 0,
                    1 => random.below(bytes.len() as u64 + 1) as usize,
                    _ => bytes.len(),
                };
                apply(&mut content, offset, &bytes[..kept]);
            }
            file.synced.clone_from(&content);
            file.content = content;
        }
    }

    pub(super) fn content(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.content.as_slice())
    }
}

fn apply(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}
