//! The manifest as it lies on disk: JSON in a pair file (`docs/format.md`, "Manifest"). It names the data of
//! the newest complete checkpoint. The schema and the list of partitions, which grow with the number of
//! tables, are checkpoint files of their own ([`crate::stored_lists`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{CheckpointFile, FrameLocation, PageTableLocation};
use crate::id::{CommitNumber, PartitionId, TableId};
use crate::stored_lists::CheckpointLists;
use crate::stored_schema::{DictionaryChange, StoredChange};

/// The version that is written.
pub const MANIFEST_FORMAT_VERSION: u32 = 2;
/// The version that release 0.1 has written, with the lists in the manifest.
const INLINE_FORMAT_VERSION: u32 = 1;

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
    /// The schema and the partitions.
    pub lists: ListPlace,
    /// Files with this number and higher ones were never used.
    pub next_file: u32,
    /// The files of the checkpoint, in the order of their numbers.
    pub files: Vec<CheckpointFile>,
}

/// The place of a checkpoint's lists.
#[derive(Clone, Debug, PartialEq)]
pub enum ListPlace {
    /// In the manifest itself, which release 0.1 has written.
    Inline(Box<CheckpointLists>),
    /// In checkpoint files with these numbers.
    Files {
        /// The schema.
        schema: u32,
        /// The marks of the AUTO_INCREMENT counters, and the partitions.
        partitions: u32,
    },
}

impl Default for ListPlace {
    fn default() -> ListPlace {
        ListPlace::Inline(Box::default())
    }
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
        // Structures of strings, numbers and lists have no way to fail.
        let encoded = match &self.lists {
            ListPlace::Inline(lists) => serde_json::to_vec(&InlineManifest::new(self, lists)),
            ListPlace::Files { schema, partitions } => serde_json::to_vec(&StoredManifest {
                format: MANIFEST_FORMAT_VERSION,
                generation: self.generation,
                log_id: self.log_id,
                begin: self.begin.0,
                newest: self.newest.0,
                replay_from: self.replay_from,
                schema: *schema,
                partitions: *partitions,
                next_file: self.next_file,
                files: self.files.iter().map(StoredFile::from).collect(),
            }),
        };
        encoded.expect("a manifest is JSON")
    }

    /// The manifest that the content of the pair file describes.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not a manifest.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, StoredManifestError> {
        let invalid = |error: serde_json::Error| StoredManifestError::Invalid(error.to_string().into());
        // The version decides how the rest is read, so it is read alone first.
        let StoredVersion { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        let manifest = match format {
            MANIFEST_FORMAT_VERSION => {
                serde_json::from_slice::<StoredManifest>(bytes).map_err(invalid)?.into_manifest()
            }
            INLINE_FORMAT_VERSION => {
                serde_json::from_slice::<InlineManifest>(bytes).map_err(invalid)?.into_manifest()?
            }
            _ => return Err(StoredManifestError::UnknownVersion(format)),
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// The file with this number.
    pub fn file(&self, number: u32) -> Option<&CheckpointFile> {
        let index = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        self.files.get(index)
    }

    /// Whether a file holds one of the lists.
    pub fn is_list(&self, number: u32) -> bool {
        match self.lists {
            ListPlace::Inline(_) => false,
            ListPlace::Files { schema, partitions } => number == schema || number == partitions,
        }
    }

    /// Checks that the page tables of these partitions are in files of the checkpoint.
    ///
    /// # Errors
    /// One is not.
    pub fn check_partitions(&self, partitions: &[(PartitionId, PageTableLocation)]) -> Result<(), StoredManifestError> {
        for (partition, PageTableLocation { location, .. }) in partitions {
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

    fn check(&self) -> Result<(), StoredManifestError> {
        if self.begin > self.newest {
            return refuse(format!("it begins at commit {} and ends at commit {}", self.begin, self.newest));
        }
        if !self.files.is_sorted_by(|before, after| before.number < after.number) {
            return refuse("its files are not in order".into());
        }
        if let Some(file) = self.files.iter().find(|file| file.number >= self.next_file) {
            return refuse(format!("file {} is not below the next file {}", file.number, self.next_file));
        }
        match &self.lists {
            ListPlace::Inline(lists) => self.check_partitions(&lists.partitions),
            ListPlace::Files { schema, partitions } => {
                match [schema, partitions].into_iter().find(|number| self.file(**number).is_none()) {
                    Some(missing) => refuse(format!("its list in file {missing} is not one of its files")),
                    None => Ok(()),
                }
            }
        }
    }
}

fn refuse(message: String) -> Result<(), StoredManifestError> {
    Err(StoredManifestError::Invalid(message.into()))
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
    schema: u32,
    partitions: u32,
    next_file: u32,
    files: Vec<StoredFile>,
}

/// Version 1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineManifest {
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
    /// Absent in files that release 0.1 has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<u32>,
}

impl StoredManifest {
    fn into_manifest(self) -> Manifest {
        Manifest {
            generation: self.generation,
            log_id: self.log_id,
            begin: CommitNumber(self.begin),
            newest: CommitNumber(self.newest),
            replay_from: self.replay_from,
            lists: ListPlace::Files { schema: self.schema, partitions: self.partitions },
            next_file: self.next_file,
            files: self.files.into_iter().map(CheckpointFile::from).collect(),
        }
    }
}

impl InlineManifest {
    fn new(manifest: &Manifest, lists: &CheckpointLists) -> InlineManifest {
        InlineManifest {
            format: INLINE_FORMAT_VERSION,
            generation: manifest.generation,
            log_id: manifest.log_id,
            begin: manifest.begin.0,
            newest: manifest.newest.0,
            replay_from: manifest.replay_from,
            schema: StoredChange::from(&lists.schema),
            marks: lists.marks.iter().map(|(table, mark)| (table.0, *mark)).collect(),
            partitions: lists.partitions.iter().map(StoredPartition::new).collect(),
            next_file: manifest.next_file,
            files: manifest.files.iter().map(StoredFile::from).collect(),
        }
    }

    fn into_manifest(self) -> Result<Manifest, StoredManifestError> {
        let schema = DictionaryChange::try_from(self.schema)
            .map_err(|error| StoredManifestError::Invalid(error.to_string().into()))?;
        let lists = CheckpointLists {
            schema,
            marks: self.marks.into_iter().map(|(table, mark)| (TableId(table), mark)).collect(),
            partitions: self.partitions.into_iter().map(StoredPartition::location).collect(),
        };
        Ok(Manifest {
            generation: self.generation,
            log_id: self.log_id,
            begin: CommitNumber(self.begin),
            newest: CommitNumber(self.newest),
            replay_from: self.replay_from,
            lists: ListPlace::Inline(Box::new(lists)),
            next_file: self.next_file,
            files: self.files.into_iter().map(CheckpointFile::from).collect(),
        })
    }
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
        let CheckpointFile { number, bytes, live_bytes, checksum } = *file;
        StoredFile { number, bytes, live_bytes, checksum }
    }
}

impl From<StoredFile> for CheckpointFile {
    fn from(stored: StoredFile) -> CheckpointFile {
        let StoredFile { number, bytes, live_bytes, checksum } = stored;
        CheckpointFile { number, bytes, live_bytes, checksum }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::collation::CollationId;
    use crate::schema::DatabaseDefinition;

    fn manifest() -> Manifest {
        let file = |number| CheckpointFile { number, bytes: 8192, live_bytes: 4196, checksum: Some(77) };
        Manifest {
            generation: 3,
            log_id: u64::MAX,
            begin: CommitNumber(1 << 40),
            newest: CommitNumber((1 << 40) + 1),
            replay_from: 77,
            lists: ListPlace::Files { schema: 1, partitions: 3 },
            next_file: 4,
            files: vec![file(1), file(2), file(3)],
        }
    }

    /// A manifest of release 0.1.
    fn inline() -> Manifest {
        let shop = DatabaseDefinition { name: "shop".into(), collation: CollationId::DEFAULT };
        let lists = CheckpointLists {
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
        };
        let files = vec![CheckpointFile { number: 2, bytes: 8192, live_bytes: 4196, checksum: None }];
        Manifest { lists: ListPlace::Inline(Box::new(lists)), next_file: 3, files, ..manifest() }
    }

    #[test]
    fn a_manifest_survives_the_way_to_the_disk() {
        for manifest in [manifest(), inline(), Manifest::default()] {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
        assert_eq!(manifest().file(2).map(|file| file.live_bytes), Some(4196));
        assert_eq!(manifest().file(4), None);
        assert_eq!([1, 2, 3].map(|file| manifest().is_list(file)), [true, false, true]);
    }

    /// The text of version 2. It must be read by every later release.
    #[test]
    fn the_text_on_disk_stays_readable() {
        let text = concat!(
            r#"{"format":2,"generation":3,"log_id":18446744073709551615,"begin":1099511627776,"#,
            r#""newest":1099511627777,"replay_from":77,"schema":1,"partitions":3,"next_file":4,"#,
            r#""files":[{"number":1,"bytes":8192,"live_bytes":4196,"checksum":77},"#,
            r#"{"number":2,"bytes":8192,"live_bytes":4196,"checksum":77},"#,
            r#"{"number":3,"bytes":8192,"live_bytes":4196,"checksum":77}]}"#,
        );
        assert_eq!(Manifest::decode(text.as_bytes()), Ok(manifest()));
        assert_eq!(String::from_utf8(manifest().encode()).unwrap(), text);
    }

    /// The text of release 0.1. It must be read by every later release.
    #[test]
    fn the_text_of_the_first_release_stays_readable() {
        let text = concat!(
            r#"{"format":1,"generation":3,"log_id":18446744073709551615,"begin":1099511627776,"#,
            r#""newest":1099511627777,"replay_from":77,"schema":{"format":1,"version":4,"next_table":9,"#,
            r#""databases":[{"name":"shop","collation":"utf8mb4_0900_ai_ci"}]},"#,
            r#""marks":[[7,18446744073709551615]],"partitions":[{"table":7,"partition":1,"file":2,"offset":4096,"#,
            r#""length":100,"checksum":4276993775}],"next_file":3,"#,
            r#""files":[{"number":2,"bytes":8192,"live_bytes":4196}]}"#,
        );
        assert_eq!(Manifest::decode(text.as_bytes()), Ok(inline()));
        assert_eq!(String::from_utf8(inline().encode()).unwrap(), text);
    }

    #[test]
    fn bytes_that_are_no_manifest_are_refused() {
        let refused = |bytes: &[u8]| Manifest::decode(bytes).unwrap_err().to_string();
        let unknown = "the manifest of the checkpoint has the unknown version 3";
        assert_eq!(refused(br#"{"format":3,"later":1}"#), unknown);
        assert!(refused(b"").starts_with("the manifest of the checkpoint is invalid"));
        for whole in [manifest().encode(), inline().encode()] {
            assert!((0..whole.len()).all(|length| Manifest::decode(&whole[..length]).is_err()));
        }
        let changed = |mut manifest: Manifest, change: fn(&mut Manifest)| {
            change(&mut manifest);
            refused(&manifest.encode())
        };
        assert!(changed(manifest(), |it| it.newest = CommitNumber(5)).contains("begins at commit"));
        assert!(changed(manifest(), |it| it.next_file = 2).contains("file 2 is not below the next file 2"));
        assert!(changed(manifest(), |it| it.files.push(it.files[0])).contains("not in order"));
        assert!(changed(manifest(), |it| it.files.truncate(2)).contains("its list in file 3 is not one of its files"));
        assert!(changed(inline(), |it| it.files.clear()).contains("partition 1 of table 7 is outside its files"));
        let ListPlace::Inline(lists) = inline().lists else { panic!("the lists are in the manifest") };
        let mut partitions = lists.partitions;
        assert_eq!(inline().check_partitions(&partitions), Ok(()));
        partitions[0].1.location.offset = u64::MAX;
        assert!(inline().check_partitions(&partitions).unwrap_err().to_string().contains("outside its files"));
    }
}
