//! Virtual files. A crash keeps what was synced and any part of the rest.

use std::collections::BTreeMap;

use crate::file_buffer::FileBuffer;
use crate::random::Random;
use crate::world::{FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, FolderEntry, WorldRequest};

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
    pub(super) fn carry_out(&mut self, request: WorldRequest) -> Option<(u64, FileResult, FileBuffer)> {
        let no_bytes = FileBuffer::new;
        Some(match request {
            WorldRequest::OpenFile { path, mode, lane, is_direct, token } => {
                (token, self.open(&path, mode, lane, is_direct), no_bytes())
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => (token, self.write(file, offset, &bytes), bytes),
            WorldRequest::SyncFile { file, token } => (token, self.sync(file), no_bytes()),
            WorldRequest::FillFile { file, length, token } => {
                let filled = self.write(file, 0, &vec![0; length as usize]).and_then(|_| self.sync(file));
                (token, filled.map(|_| FileOutcome::Filled), no_bytes())
            }
            WorldRequest::ReadFile { file, offset, length, mut bytes, token } => {
                bytes.clear();
                let result = self.opened(file).map(|file| {
                    let start = (offset as usize).min(file.content.len());
                    let end = start.saturating_add(length as usize).min(file.content.len());
                    bytes.extend_from_slice(&file.content[start..end]);
                    FileOutcome::Read { length: (end - start) as u32 }
                });
                (token, result, bytes)
            }
            WorldRequest::CloseFile { file, token } => {
                let closed = self.open.get_mut(file.slot()).and_then(Option::take);
                (token, closed.map(|_| FileOutcome::Closed).ok_or(FileError::NotOpen), no_bytes())
            }
            WorldRequest::DeleteFile { path, token, .. } => {
                self.files.remove(&*path);
                (token, Ok(FileOutcome::Deleted), no_bytes())
            }
            WorldRequest::RenameFile { from, to, token, .. } => {
                let file = self.files.remove(&*from).ok_or(FileError::NotFound);
                let renamed = file.map(|file| self.files.insert(to.into(), file));
                (token, renamed.map(|_| FileOutcome::Renamed), no_bytes())
            }
            WorldRequest::SyncFolder { token, .. } => (token, Ok(FileOutcome::FolderSynced), no_bytes()),
            WorldRequest::CreateFolder { token, .. } => (token, Ok(FileOutcome::FolderCreated), no_bytes()),
            WorldRequest::ListFolder { path, token, .. } => {
                let below = format!("{path}/");
                let inside = self.files.iter().filter_map(|(path, file)| Some((path.strip_prefix(&below)?, file)));
                let entries = inside.map(|(name, file)| FolderEntry {
                    name: name.into(),
                    length: file.content.len() as u64,
                    is_folder: false,
                });
                (token, Ok(FileOutcome::Listed(entries.collect())), no_bytes())
            }
            _ => return None,
        })
    }

    fn sync(&mut self, file: FileId) -> FileResult {
        self.opened(file).map(|file| {
            file.unsynced.clear();
            file.synced.clone_from(&file.content);
            FileOutcome::Synced
        })
    }

    fn open(&mut self, path: &str, mode: FileMode, lane: FileLane, is_direct: bool) -> FileResult {
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
        Ok(FileOutcome::Opened { file: FileId::new(lane, place, 0), length, is_direct })
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
        let path = self.open.get(file.slot()).and_then(Option::as_ref).ok_or(FileError::NotOpen)?;
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
