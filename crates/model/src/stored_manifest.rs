//! The manifest as it lies on disk: JSON in a pair file (`docs/format.md`, "Manifest"). It names the data of
//! the newest complete checkpoint.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{FrameLocation, PageTableLocation};
use crate::id::{CommitNumber, PartitionId, TableId};
use crate::stored_schema::{DictionaryChange, StoredChange};

/// The version that is written.
pub const MANIFEST_FORMAT_VERSION: u32 = 1;

/// The use of the pair file `manifest`, as in its header.
pub const MANIFEST_USE: u16 = 3;

/// A complete checkpoint. With the log from `replay_from` on, it is the whole database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Counts the checkpoints of the directory, from 1. The pair file has the same generation.
    pub generation: u64,
    /// The log that continues the checkpoint.
    pub log_id: u64,
    /// The checkpoint contains every commit up to this number.
    pub begin: CommitNumber,
    /// The checkpoint contains no commit above this number.
    pub newest: CommitNumber,
    /// Position in the log, in blocks, of a group. The records of all commits above `begin` are in this group
    /// or later ones.
    pub replay_from: u64,
    /// The whole schema, which includes every schema change up to `begin`.
    pub schema: DictionaryChange,
    /// The mark of each AUTO_INCREMENT counter: every value that was handed out is below its mark.
    pub marks: BTreeMap<TableId, u64>,
    /// The partitions that the checkpoint contains, with their page tables, which name the frames with the
    /// rows. A partition of the schema that is absent here was empty at `begin`.
    pub partitions: Vec<(PartitionId, PageTableLocation)>,
    /// Files with this number and higher ones were never used.
    pub next_file: u32,
    /// The files that hold page tables and frames of the partitions, in the order of their numbers.
    pub files: Vec<CheckpointFile>,
}

/// A file of the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// The number, which its name contains.
    pub number: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes that the page tables still name, and the page tables themselves.
    pub live_bytes: u64,
}

/// Why stored bytes are not a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredManifestError {
    /// The bytes have a version that this program does not know.
    UnknownVersion(u32),
    /// The bytes do not describe a checkpoint.
    Invalid(Box<str>),
}

impl fmt::Display for StoredManifestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredManifestError::UnknownVersion(version) => {
                write!(formatter, "the manifest of the checkpoint has the unknown version {version}")
            }
            StoredManifestError::Invalid(message) => {
                write!(formatter, "the manifest of the checkpoint is invalid: {message}")
            }
        }
    }
}

impl std::error::Error for StoredManifestError {}

impl Manifest {
    /// The content of the pair file.
    pub fn encode(&self) -> Vec<u8> {
        let stored = StoredManifest {
            format: MANIFEST_FORMAT_VERSION,
            generation: self.generation,
            log_id: self.log_id,
            begin: self.begin.0,
            newest: self.newest.0,
            replay_from: self.replay_from,
            schema: StoredChange::from(&self.schema),
            marks: self.marks.iter().map(|(table, mark)| (table.0, *mark)).collect(),
            partitions: self.partitions.iter().map(StoredPartition::new).collect(),
            next_file: self.next_file,
            files: self.files.iter().map(StoredFile::from).collect(),
        };
        // Structures of strings, numbers and lists have no way to fail.
        serde_json::to_vec(&stored).expect("a manifest is JSON")
    }

    /// The manifest that the content of the pair file describes.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not a manifest.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, StoredManifestError> {
        let invalid = |error: serde_json::Error| StoredManifestError::Invalid(error.to_string().into());
        // The version decides how the rest is read, so it is read alone first.
        let StoredVersion { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format != MANIFEST_FORMAT_VERSION {
            return Err(StoredManifestError::UnknownVersion(format));
        }
        let stored: StoredManifest = serde_json::from_slice(bytes).map_err(invalid)?;
        let schema = DictionaryChange::try_from(stored.schema)
            .map_err(|error| StoredManifestError::Invalid(error.to_string().into()))?;
        let manifest = Manifest {
            generation: stored.generation,
            log_id: stored.log_id,
            begin: CommitNumber(stored.begin),
            newest: CommitNumber(stored.newest),
            replay_from: stored.replay_from,
            schema,
            marks: stored.marks.into_iter().map(|(table, mark)| (TableId(table), mark)).collect(),
            partitions: stored.partitions.into_iter().map(StoredPartition::location).collect(),
            next_file: stored.next_file,
            files: stored.files.into_iter().map(CheckpointFile::from).collect(),
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// The file with this number.
    pub fn file(&self, number: u32) -> Option<&CheckpointFile> {
        let index = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        self.files.get(index)
    }

    fn check(&self) -> Result<(), StoredManifestError> {
        let refuse = |message: String| Err(StoredManifestError::Invalid(message.into()));
        if self.begin > self.newest {
            return refuse(format!("it begins at commit {} and ends at commit {}", self.begin, self.newest));
        }
        if !self.files.is_sorted_by(|before, after| before.number < after.number) {
            return refuse("its files are not in order".into());
        }
        if let Some(file) = self.files.iter().find(|file| file.number >= self.next_file) {
            return refuse(format!("file {} is not below the next file {}", file.number, self.next_file));
        }
        for (partition, PageTableLocation { location, .. }) in &self.partitions {
            let FrameLocation { file, offset, length } = location;
            let end = offset.checked_add(u64::from(*length));
            let is_inside = self.file(*file).is_some_and(|file| end.is_some_and(|end| end <= file.bytes));
            if !is_inside {
                let PartitionId { table, index } = partition;
                return refuse(format!("the page table of partition {index} of table {table} is outside its files"));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredManifest {
    format: u32,
    generation: u64,
    log_id: u64,
    begin: u64,
    newest: u64,
    replay_from: u64,
    schema: StoredChange,
    /// (table, mark)
    marks: Vec<(u32, u64)>,
    partitions: Vec<StoredPartition>,
    next_file: u32,
    files: Vec<StoredFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPartition {
    table: u32,
    partition: u16,
    file: u32,
    offset: u64,
    length: u32,
    checksum: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    number: u32,
    bytes: u64,
    live_bytes: u64,
}

impl StoredPartition {
    fn new((partition, table): &(PartitionId, PageTableLocation)) -> StoredPartition {
        let PageTableLocation { location: FrameLocation { file, offset, length }, checksum } = *table;
        StoredPartition { table: partition.table.0, partition: partition.index, file, offset, length, checksum }
    }

    fn location(self) -> (PartitionId, PageTableLocation) {
        let StoredPartition { table, partition, file, offset, length, checksum } = self;
        let location = FrameLocation { file, offset, length };
        (PartitionId { table: TableId(table), index: partition }, PageTableLocation { location, checksum })
    }
}

impl From<&CheckpointFile> for StoredFile {
    fn from(file: &CheckpointFile) -> StoredFile {
        let CheckpointFile { number, bytes, live_bytes } = *file;
        StoredFile { number, bytes, live_bytes }
    }
}

impl From<StoredFile> for CheckpointFile {
    fn from(stored: StoredFile) -> CheckpointFile {
        let StoredFile { number, bytes, live_bytes } = stored;
        CheckpointFile { number, bytes, live_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collation::CollationId;
    use crate::schema::DatabaseDefinition;

    fn manifest() -> Manifest {
        let shop = DatabaseDefinition { name: "shop".into(), collation: CollationId::DEFAULT };
        Manifest {
            generation: 3,
            log_id: u64::MAX,
            begin: CommitNumber(1 << 40),
            newest: CommitNumber((1 << 40) + 1),
            replay_from: 77,
            schema: DictionaryChange {
                version: 4,
                next_table: TableId(9),
                databases: vec![shop],
                ..DictionaryChange::default()
            },
            marks: BTreeMap::from([(TableId(7), u64::MAX)]),
            partitions: vec![(
                PartitionId { table: TableId(7), index: 1 },
                PageTableLocation {
                    location: FrameLocation { file: 2, offset: 4096, length: 100 },
                    checksum: 0xfeed_beef,
                },
            )],
            next_file: 3,
            files: vec![CheckpointFile { number: 2, bytes: 8192, live_bytes: 4196 }],
        }
    }

    #[test]
    fn a_manifest_survives_the_way_to_the_disk() {
        for manifest in [manifest(), Manifest::default()] {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
        assert_eq!(manifest().file(2).map(|file| file.live_bytes), Some(4196));
        assert_eq!(manifest().file(1), None);
    }

    /// The text of release 0.1. It must be read by every later release.
    #[test]
    fn the_text_on_disk_stays_readable() {
        let text = concat!(
            r#"{"format":1,"generation":3,"log_id":18446744073709551615,"begin":1099511627776,"#,
            r#""newest":1099511627777,"replay_from":77,"schema":{"format":1,"version":4,"next_table":9,"#,
            r#""databases":[{"name":"shop","collation":"utf8mb4_0900_ai_ci"}]},"#,
            r#""marks":[[7,18446744073709551615]],"partitions":[{"table":7,"partition":1,"file":2,"offset":4096,"#,
            r#""length":100,"checksum":4276993775}],"next_file":3,"#,
            r#""files":[{"number":2,"bytes":8192,"live_bytes":4196}]}"#,
        );
        assert_eq!(Manifest::decode(text.as_bytes()), Ok(manifest()));
        assert_eq!(String::from_utf8(manifest().encode()).unwrap(), text);
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        let refused = |bytes: &[u8]| Manifest::decode(bytes).unwrap_err().to_string();
        let unknown = "the manifest of the checkpoint has the unknown version 2";
        assert_eq!(refused(br#"{"format":2,"later":1}"#), unknown);
        assert!(refused(b"").starts_with("the manifest of the checkpoint is invalid"));
        let whole = manifest().encode();
        assert!((0..whole.len()).all(|length| Manifest::decode(&whole[..length]).is_err()));
        let changed = |change: fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            refused(&manifest.encode())
        };
        assert!(changed(|it| it.newest = CommitNumber(5)).contains("begins at commit"));
        assert!(changed(|it| it.next_file = 2).contains("file 2 is not below the next file 2"));
        assert!(changed(|it| it.files.clear()).contains("partition 1 of table 7 is outside its files"));
        assert!(changed(|it| it.partitions[0].1.location.offset = u64::MAX).contains("outside its files"));
        assert!(changed(|it| it.files.push(it.files[0])).contains("not in order"));
    }
}
