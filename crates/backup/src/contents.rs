//! The list of contents: the last object of a backup, without which the backup does not exist. JSON in the
//! form of a pair file (`docs/format.md`, "Backups").

use junctor_model::id::CommitNumber;
use junctor_storage::log::{decode_slot, encode_slot};
use serde::{Deserialize, Serialize};

use crate::BackupError;

/// The version of the list of a node's backup.
const CONTENTS_FORMAT_VERSION: u32 = 1;
/// The version of the list of a cluster's backup.
const CLUSTER_FORMAT_VERSION: u32 = 2;
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

/// The parts of a backup of a cluster: one of each node group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterContents {
    /// Version of this list.
    pub format: u32,
    /// The backup has every commit up to this number, and none above it.
    pub cut: u64,
    /// The parts, by node group.
    pub parts: Vec<PartContents>,
}

/// The part of a backup that one node has copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartContents {
    /// The node group.
    pub group: u8,
    /// The node.
    pub node: u8,
    /// The objects of the node.
    pub contents: Contents,
}

/// A complete backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBackup {
    /// The backup of a node alone.
    Node(Contents),
    /// The backup of a cluster.
    Cluster(ClusterContents),
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
    /// The version that is written.
    pub const fn version() -> u32 {
        CONTENTS_FORMAT_VERSION
    }
}

impl ClusterContents {
    /// The list of these parts, which have every commit up to this number.
    pub fn new(cut: CommitNumber, parts: Vec<PartContents>) -> ClusterContents {
        ClusterContents { format: CLUSTER_FORMAT_VERSION, cut: cut.0, parts }
    }
}

impl StoredBackup {
    /// The bytes of the object.
    pub fn encode(&self) -> Vec<u8> {
        let content = match self {
            StoredBackup::Node(contents) => serde_json::to_vec(contents),
            StoredBackup::Cluster(contents) => serde_json::to_vec(contents),
        };
        // Serialising a structure of strings and numbers cannot fail.
        encode_slot(CONTENTS_USE, 1, &content.expect("a list of contents is JSON"))
    }

    /// The list that the bytes of an object describe.
    ///
    /// # Errors
    /// Both copies are damaged, or a later release has written them.
    pub fn decode(backup: &str, bytes: &[u8]) -> Result<StoredBackup, BackupError> {
        let damaged = || BackupError::refused(format!("the list of contents of backup '{backup}' is damaged"));
        let slot = decode_slot(CONTENTS_USE, bytes).map_err(|error| BackupError::refused(error.to_string()))?;
        let content = slot.ok_or_else(damaged)?.content;
        let StoredVersion { format } = serde_json::from_slice(&content).map_err(|_| damaged())?;
        match format {
            CONTENTS_FORMAT_VERSION => serde_json::from_slice(&content).map(StoredBackup::Node),
            CLUSTER_FORMAT_VERSION => serde_json::from_slice(&content).map(StoredBackup::Cluster),
            _ => {
                let text = format!("backup '{backup}' has the unknown format version {format}");
                return Err(BackupError::refused(text));
            }
        }
        .map_err(|_| damaged())
    }

    /// UTC time of its end, in microseconds since 1970: that of the part that ended first.
    pub fn wall_clock_us(&self) -> u64 {
        self.nodes().map(|contents| contents.log.wall_clock_us).min().unwrap_or(0)
    }

    /// The contents of each node.
    pub fn nodes(&self) -> impl Iterator<Item = &Contents> {
        let (node, parts) = match self {
            StoredBackup::Node(contents) => (Some(contents), &[][..]),
            StoredBackup::Cluster(cluster) => (None, &cluster.parts[..]),
        };
        node.into_iter().chain(parts.iter().map(|part| &part.contents))
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}
