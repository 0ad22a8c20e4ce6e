//! The list of contents: the last object of a backup, without which the backup does not exist. JSON in the
//! form of a pair file (`docs/format.md`, "Backups").

use junctor_storage::log::{decode_slot, encode_slot};
use serde::{Deserialize, Serialize};

use crate::BackupError;

/// The version of the list that is written.
const CONTENTS_FORMAT_VERSION: u32 = 1;
/// The kind in the header of the pair file.
const CONTENTS_USE: u16 = 4;

/// The objects of a backup, and the log that it continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// Version of this list.
    pub format: u32,
    /// The backup that this one continues, whose objects it does not repeat; `None` for a full backup.
    pub base: Option<Box<str>>,
    /// Id of the log of the copied data directory.
    pub log_id: u64,
    /// Size of the log's segments in bytes.
    pub segment_bytes: u64,
    /// The checkpoint; `None` if the server had made none.
    pub manifest: Option<Manifest>,
    /// The values of SET PERSIST, if any were set.
    pub settings: Option<Object>,
    /// The files of the checkpoint, in this backup and in earlier ones.
    pub files: Vec<StoredFile>,
    /// The log that this backup holds.
    pub log: StoredLog,
}

/// The manifest of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The generation.
    pub generation: u64,
    /// The object with the content of the manifest.
    pub object: Object,
}

/// A file of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    /// Number in the file's name.
    pub number: u32,
    /// The backup that holds it.
    pub backup: Box<str>,
    /// The object in that backup.
    pub object: Object,
}

/// Consecutive groups of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredLog {
    /// Position of the first group, in blocks.
    pub first: u64,
    /// Position after the last group, in blocks.
    pub end: u64,
    /// Position at which recovery of the backup's checkpoint begins, in blocks. The log before `first` is in
    /// the base.
    pub replay_from: u64,
    /// Checksum of the header of the last group; the base of an incremental backup continues from it.
    pub last_checksum: u32,
    /// Wall clock of the last group, in microseconds since 1970.
    pub wall_clock_us: u64,
    /// The object with the groups, one after the other.
    pub object: Object,
}

/// A stored object. Lengths and checksums (CRC-32C) are those of the bytes before compression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// Path below the backup.
    pub name: Box<str>,
    /// Length in bytes.
    pub bytes: u64,
    /// Length in bytes after compression.
    pub stored_bytes: u64,
    /// Checksum.
    pub checksum: u32,
}

impl Contents {
    /// The bytes of the object.
    pub fn encode(&self) -> Vec<u8> {
        // Serialising a structure of strings and numbers cannot fail.
        encode_slot(CONTENTS_USE, 1, &serde_json::to_vec(self).expect("a list of contents is JSON"))
    }

    /// The list that the bytes of an object describe.
    ///
    /// # Errors
    /// Both copies are damaged, or a later release has written them.
    pub fn decode(backup: &str, bytes: &[u8]) -> Result<Contents, BackupError> {
        let damaged = || BackupError::refused(format!("the list of contents of backup '{backup}' is damaged"));
        let slot = decode_slot(CONTENTS_USE, bytes).map_err(|error| BackupError::refused(error.to_string()))?;
        let content = slot.ok_or_else(damaged)?.content;
        let StoredVersion { format } = serde_json::from_slice(&content).map_err(|_| damaged())?;
        if format != CONTENTS_FORMAT_VERSION {
            return Err(BackupError::refused(format!("backup '{backup}' has the unknown format version {format}")));
        }
        serde_json::from_slice(&content).map_err(|_| damaged())
    }

    /// The version that is written.
    pub const fn version() -> u32 {
        CONTENTS_FORMAT_VERSION
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}
