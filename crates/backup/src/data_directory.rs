//! Reads the data directory of a running server.
//!
//! The server writes to the log meanwhile. The checksum of a group shows whether the group is complete.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use junctor_model::checkpoint::checkpoint_path;
use junctor_model::stored_identity::Identity;
use junctor_model::stored_manifest::MANIFEST_USE;
use junctor_storage::log::{
    BLOCK_BYTES, ChainPosition, GROUP_BYTES_MAX, GroupHeader, LogScan, PairSlot, ScanStep, SegmentSize, decode_slot,
    newest_slot,
};

use crate::BackupError;

/// The kind in the headers of the pair file `identity`.
pub const IDENTITY_USE: u16 = 1;
/// The kind in the headers of the pair file `settings`.
pub const SETTINGS_USE: u16 = 2;
/// Bytes of the log that are read at a time.
const READ_BYTES: usize = 4 << 20;

/// A data directory.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    folder: PathBuf,
}

impl DataDirectory {
    /// The directory at this path.
    pub fn new(folder: PathBuf) -> DataDirectory {
        DataDirectory { folder }
    }

    /// The identity of the directory.
    ///
    /// # Errors
    /// The directory has no identity, or one of an unknown version.
    pub fn identity(&self) -> Result<Identity, BackupError> {
        let Some(slot) = self.newest("identity", IDENTITY_USE)? else {
            let text = format!("{} is not the data directory of a durable server", self.folder.display());
            return Err(BackupError::refused(text));
        };
        Identity::decode(&slot.content).map_err(|error| BackupError::refused(error.to_string()))
    }

    /// The newest manifest; `None` before the first checkpoint.
    ///
    /// # Errors
    /// The files of the manifest cannot be read.
    pub fn manifest(&self) -> Result<Option<PairSlot>, BackupError> {
        self.newest("manifest", MANIFEST_USE)
    }

    /// The values of SET PERSIST; `None` if none were ever set.
    ///
    /// # Errors
    /// Their files cannot be read.
    pub fn settings(&self) -> Result<Option<PairSlot>, BackupError> {
        self.newest("settings", SETTINGS_USE)
    }

    /// The path of a checkpoint's file.
    pub fn checkpoint_file(&self, number: u32) -> PathBuf {
        self.folder.join(&*checkpoint_path(number))
    }

    /// A reader of the groups from this position on.
    pub fn log(&self, identity: &Identity, position: u64) -> Result<LogReader, BackupError> {
        let size = SegmentSize::of_bytes(identity.segment_bytes)
            .ok_or_else(|| BackupError::refused("the identity has an invalid size of segments"))?;
        let from =
            ChainPosition { log_id: identity.log_id, life: 0, incarnation: 0, previous_checksum: None, position };
        Ok(LogReader { folder: self.folder.clone(), size, scan: LogScan::new(from, size), bytes: Vec::new(), start: 0 })
    }

    fn newest(&self, name: &str, kind: u16) -> Result<Option<PairSlot>, BackupError> {
        let slot = |index: u8| {
            let path = self.folder.join(format!("{name}.{index}"));
            match std::fs::read(&path) {
                Ok(bytes) => decode_slot(kind, &bytes)
                    .map_err(|error| BackupError::refused(format!("{}: {error}", path.display()))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(BackupError::of_file(&path)(error)),
            }
        };
        Ok(newest_slot(slot(0)?, slot(1)?))
    }
}

/// Reads the groups of the log in order, up to the current end of the log.
#[derive(Debug)]
pub struct LogReader {
    folder: PathBuf,
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

impl LogReader {
    /// The position after the last group.
    pub fn position(&self) -> u64 {
        self.scan.chain().position
    }

    /// The next group; `None` at the end of the chain.
    ///
    /// # Errors
    /// A file cannot be read, or a later version of Junctor wrote the group.
    pub fn next_group(&mut self) -> Result<Option<RawGroup>, BackupError> {
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
                    if !self.read(READ_BYTES)? {
                        return Ok(None);
                    }
                }
                ScanStep::NoGroup => {
                    // The next group may be longer than the bytes that were read. Read more bytes.
                    if self.bytes.len() - self.start < GROUP_BYTES_MAX && self.read(READ_BYTES)? {
                        continue;
                    }
                    let before = self.scan.clone();
                    if self.scan.skip_to_next_segment().is_none() {
                        return Ok(None);
                    }
                    (self.start, self.bytes) = (0, Vec::new());
                    if !self.read(READ_BYTES)? {
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
    fn read(&mut self, bytes: usize) -> Result<bool, BackupError> {
        self.bytes.drain(..std::mem::take(&mut self.start));
        let position = self.position();
        let path = self.folder.join(segment_name(self.size.segment_of(position)));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(BackupError::of_file(&path)(error)),
        };
        let begin = self.bytes.len();
        let offset = self.size.offset_of(position) + begin as u64;
        file.seek(SeekFrom::Start(offset)).map_err(BackupError::of_file(&path))?;
        let rest = self.size.bytes().saturating_sub(offset).min(bytes as u64);
        file.take(rest).read_to_end(&mut self.bytes).map_err(BackupError::of_file(&path))?;
        Ok(self.bytes.len() > begin)
    }
}

/// Path of a segment of the log below the data directory.
pub fn segment_name(segment: u64) -> String {
    format!("log/{segment:010}.log")
}

/// Syncs the names in a folder.
pub fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(BackupError::of_file(folder))
}
