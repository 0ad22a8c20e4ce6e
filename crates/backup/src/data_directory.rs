//! Reads the data directory of a running server.
//!
//! The server writes to the log meanwhile. The checksum of a group shows whether the group is complete.

use std::fs::File;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use junctor_model::checkpoint::checkpoint_path;
use junctor_model::stored_identity::{IDENTITY_USE, Identity};
use junctor_model::stored_manifest::MANIFEST_USE;
use junctor_model::stored_settings::SETTINGS_USE;
use junctor_storage::log::{
    BLOCK_BYTES, ChainPosition, GROUP_BYTES_MAX, GroupHeader, LOG_FOLDER, LogScan, PairSlot, ScanStep, SegmentSize,
    decode_slot, newest_slot, segment_path,
};

use crate::BackupError;

/// Bytes of the log that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// Maximum length of a pair file in bytes: what the server can read at its start.
const PAIR_BYTES_MAX: usize = u32::MAX as usize;

/// The files of a data directory.
pub trait Files {
    /// Reads up to `length` bytes of a file from `offset` on, fewer only at the end of the file. `path` is
    /// relative to the directory.
    ///
    /// # Errors
    /// The file does not exist, or cannot be read.
    fn read(&self, path: &str, offset: u64, length: usize) -> impl Future<Output = IoResult<Vec<u8>>>;

    /// The folder, for messages.
    fn folder(&self) -> &Path;
}

/// Files in a folder of the machine.
#[derive(Clone, Debug)]
pub struct FolderFiles(pub PathBuf);

impl Files for FolderFiles {
    async fn read(&self, path: &str, offset: u64, length: usize) -> IoResult<Vec<u8>> {
        let mut file = File::open(self.0.join(path))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn folder(&self) -> &Path {
        &self.0
    }
}

/// A data directory.
#[derive(Clone, Debug)]
pub struct DataDirectory<F> {
    files: F,
}

impl<F: Files> DataDirectory<F> {
    /// The directory with these files.
    pub fn new(files: F) -> DataDirectory<F> {
        DataDirectory { files }
    }

    /// The identity of the directory.
    ///
    /// # Errors
    /// The directory has no identity, or one of an unknown version.
    pub async fn identity(&self) -> Result<Identity, BackupError> {
        let Some(slot) = self.newest("identity", IDENTITY_USE).await? else {
            let text = format!("{} is not the data directory of a durable server", self.files.folder().display());
            return Err(BackupError::refused(text));
        };
        Identity::decode(&slot.content).map_err(|error| BackupError::refused(error.to_string()))
    }

    /// The newest manifest; `None` before the first checkpoint.
    ///
    /// # Errors
    /// The files of the manifest cannot be read.
    pub async fn manifest(&self) -> Result<Option<PairSlot>, BackupError> {
        self.newest("manifest", MANIFEST_USE).await
    }

    /// The values of SET PERSIST; `None` if none were ever set.
    ///
    /// # Errors
    /// Their files cannot be read.
    pub async fn settings(&self) -> Result<Option<PairSlot>, BackupError> {
        self.newest("settings", SETTINGS_USE).await
    }

    /// Reads up to `length` bytes of a checkpoint's file from `offset` on, fewer only at its end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn read_checkpoint(&self, number: u32, offset: u64, length: usize) -> Result<Vec<u8>, BackupError> {
        let path = checkpoint_path(number);
        let read = self.files.read(&path, offset, length).await;
        read.map_err(BackupError::of_file(&self.files.folder().join(&*path)))
    }

    /// A reader of the groups from this position on.
    pub fn log(&self, identity: &Identity, position: u64) -> Result<LogReader<'_, F>, BackupError> {
        let size = SegmentSize::of_bytes(identity.segment_bytes)
            .ok_or_else(|| BackupError::refused("the identity has an invalid size of segments"))?;
        let from =
            ChainPosition { log_id: identity.log_id, life: 0, incarnation: 0, previous_checksum: None, position };
        Ok(LogReader { files: &self.files, size, scan: LogScan::new(from, size), bytes: Vec::new(), start: 0 })
    }

    async fn newest(&self, name: &str, kind: u16) -> Result<Option<PairSlot>, BackupError> {
        let mut slots = [None, None];
        for (index, slot) in slots.iter_mut().enumerate() {
            let name = format!("{name}.{index}");
            let path = self.files.folder().join(&name);
            *slot = match self.files.read(&name, 0, PAIR_BYTES_MAX).await {
                Ok(bytes) => decode_slot(kind, &bytes)
                    .map_err(|error| BackupError::refused(format!("{}: {error}", path.display())))?,
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(BackupError::of_file(&path)(error)),
            };
        }
        let [first, second] = slots;
        Ok(newest_slot(first, second))
    }
}

/// Reads the groups of the log in order, up to the current end of the log.
#[derive(Debug)]
pub struct LogReader<'a, F> {
    files: &'a F,
    size: SegmentSize,
    scan: LogScan,
    /// Bytes that were read from the current segment.
    bytes: Vec<u8>,
    /// Offset of the next group in `bytes`.
    start: usize,
}

/// A group of the log, as stored.
#[derive(Debug)]
pub struct RawGroup {
    /// The header.
    pub header: GroupHeader,
    /// Checksum of the header.
    pub checksum: u32,
    /// The stored bytes, including the header.
    pub bytes: Vec<u8>,
}

impl<F: Files> LogReader<'_, F> {
    /// The position after the last group.
    pub fn position(&self) -> u64 {
        self.scan.chain().position
    }

    /// The next group; `None` at the end of the chain.
    ///
    /// # Errors
    /// A file cannot be read, or a later version of Junctor wrote the group.
    pub async fn next_group(&mut self) -> Result<Option<RawGroup>, BackupError> {
        let end = self.scan.clone();
        let found = self.find_group().await?;
        if found.is_none() {
            // The log may grow behind this position. The bytes there are read again then.
            (self.scan, self.start, self.bytes) = (end, 0, Vec::new());
        }
        Ok(found)
    }

    async fn find_group(&mut self) -> Result<Option<RawGroup>, BackupError> {
        loop {
            match self.scan.step(&self.bytes[self.start..]) {
                ScanStep::Group(group) => {
                    let end = self.start + group.blocks as usize * BLOCK_BYTES;
                    let raw = RawGroup {
                        header: group.header,
                        checksum: group.checksum,
                        bytes: self.bytes[self.start..end].to_vec(),
                    };
                    self.start = end;
                    return Ok(Some(raw));
                }
                ScanStep::NeedBlocks(_) => {
                    if !self.read(READ_BYTES).await? {
                        return Ok(None);
                    }
                }
                ScanStep::NoGroup => {
                    // The next group may be longer than the bytes that were read. Read more bytes.
                    if self.bytes.len() - self.start < GROUP_BYTES_MAX && self.read(READ_BYTES).await? {
                        continue;
                    }
                    let before = self.scan.clone();
                    if self.scan.skip_to_next_segment().is_none() {
                        return Ok(None);
                    }
                    (self.start, self.bytes) = (0, Vec::new());
                    if !self.read(READ_BYTES).await? {
                        self.scan = before;
                        return Ok(None);
                    }
                }
                ScanStep::UnknownVersion(version) => {
                    return Err(BackupError::refused(format!("the log has the unknown version {version}")));
                }
            }
        }
    }

    /// Reads more bytes of the current segment. Returns false at the end of the segment.
    async fn read(&mut self, bytes: usize) -> Result<bool, BackupError> {
        self.bytes.drain(..std::mem::take(&mut self.start));
        let position = self.position();
        let name = segment_path(LOG_FOLDER, self.size.segment_of(position));
        let begin = self.bytes.len();
        let offset = self.size.offset_of(position) + begin as u64;
        let rest = self.size.bytes().saturating_sub(offset).min(bytes as u64);
        match self.files.read(&name, offset, rest as usize).await {
            Ok(read) => self.bytes.extend_from_slice(&read),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(BackupError::of_file(&self.files.folder().join(&*name))(error)),
        }
        Ok(self.bytes.len() > begin)
    }
}

/// Syncs the names in a folder.
pub fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(BackupError::of_file(folder))
}
