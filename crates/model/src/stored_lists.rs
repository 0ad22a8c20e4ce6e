//! The lists of a checkpoint as they lie in checkpoint files of their own (`docs/format.md`, "Schema file"
//! and "Partition list"). They have no limit, and can be written in pieces.

use std::collections::BTreeMap;
use std::fmt;

use crate::checkpoint::{FrameLocation, PageTableLocation};
use crate::id::{PartitionId, TableId};
use crate::stored_schema::DictionaryChange;

/// The version of the schema file that is written.
pub const SCHEMA_FILE_VERSION: u16 = 1;
/// The version of the partition list that is written.
pub const PARTITION_LIST_VERSION: u16 = 1;

const SCHEMA_MAGIC: &[u8; 4] = b"JCSC";
const PARTITION_MAGIC: &[u8; 4] = b"JCPL";
const HEADER_BYTES: usize = 8;
const MARK_BYTES: usize = 12;
const PARTITION_BYTES: usize = 28;

/// The schema and the partitions of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointLists {
    /// The whole schema, which includes every schema change up to the number at which the checkpoint begins.
    pub schema: DictionaryChange,
    /// The mark of each AUTO_INCREMENT counter: every value that was handed out is below its mark.
    pub marks: BTreeMap<TableId, u64>,
    /// The partitions that the checkpoint contains, in ascending order, with their page tables, which name
    /// the frames with the rows. A partition of the schema that is absent here was empty when the checkpoint
    /// began.
    pub partitions: Vec<(PartitionId, PageTableLocation)>,
}

/// The marks and the partitions in a partition list.
pub type PartitionList = (BTreeMap<TableId, u64>, Vec<(PartitionId, PageTableLocation)>);

/// Why stored bytes are not a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredListError {
    /// The bytes have a version that this program does not know.
    UnknownVersion(u16),
    /// The bytes are not a list.
    Invalid(Box<str>),
}

impl fmt::Display for StoredListError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredListError::UnknownVersion(version) => write!(formatter, "it has the unknown version {version}"),
            StoredListError::Invalid(message) => write!(formatter, "it is invalid: {message}"),
        }
    }
}

impl std::error::Error for StoredListError {}

/// Appends the beginning of a schema file.
pub fn begin_schema(out: &mut Vec<u8>) {
    append_header(SCHEMA_MAGIC, SCHEMA_FILE_VERSION, out);
}

/// Appends a part of the schema. The parts together are the whole schema.
pub fn append_schema_part(part: &DictionaryChange, out: &mut Vec<u8>) {
    let bytes = part.encode();
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(&bytes);
}

/// Appends the beginning of a partition list with this many marks and partitions. The marks follow, then the
/// partitions.
pub fn begin_partitions(marks: usize, partitions: usize, out: &mut Vec<u8>) {
    append_header(PARTITION_MAGIC, PARTITION_LIST_VERSION, out);
    out.extend_from_slice(&(marks as u32).to_le_bytes());
    out.extend_from_slice(&(partitions as u32).to_le_bytes());
}

/// Appends the mark of a table's AUTO_INCREMENT counter.
pub fn append_mark(table: TableId, mark: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&table.0.to_le_bytes());
    out.extend_from_slice(&mark.to_le_bytes());
}

/// Appends a partition and the place of its page table.
pub fn append_partition(partition: PartitionId, table: &PageTableLocation, out: &mut Vec<u8>) {
    let PageTableLocation { location: FrameLocation { file, offset, length }, checksum } = table;
    out.extend_from_slice(&partition.table.0.to_le_bytes());
    out.extend_from_slice(&partition.index.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&file.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// The schema in a schema file.
///
/// # Errors
/// The version is unknown, or the bytes are not a schema.
pub fn decode_schema(bytes: &[u8]) -> Result<DictionaryChange, StoredListError> {
    let mut rest = take_header(bytes, SCHEMA_MAGIC, SCHEMA_FILE_VERSION)?;
    let mut schema: Option<DictionaryChange> = None;
    while !rest.is_empty() {
        let length = take(&mut rest).map(u32::from_le_bytes).ok_or_else(cut)?;
        let (part, after) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
        rest = after;
        let part =
            DictionaryChange::decode(part).map_err(|error| StoredListError::Invalid(error.to_string().into()))?;
        match &mut schema {
            None => schema = Some(part),
            Some(schema) => {
                schema.databases.extend(part.databases);
                schema.tables.extend(part.tables);
                schema.access.version = schema.access.version.max(part.access.version);
                schema.access.changed.extend(part.access.changed);
            }
        }
    }
    schema.ok_or_else(cut)
}

/// The marks and the partitions in a partition list.
///
/// # Errors
/// The version is unknown, or the bytes are not a partition list.
pub fn decode_partitions(bytes: &[u8]) -> Result<PartitionList, StoredListError> {
    let mut rest = take_header(bytes, PARTITION_MAGIC, PARTITION_LIST_VERSION)?;
    let marks = take(&mut rest).map(u32::from_le_bytes).ok_or_else(cut)?;
    let partitions = take(&mut rest).map(u32::from_le_bytes).ok_or_else(cut)?;
    if rest.len() as u64 != u64::from(marks) * MARK_BYTES as u64 + u64::from(partitions) * PARTITION_BYTES as u64 {
        return Err(cut());
    }
    let (marks, partitions) = rest.split_at(marks as usize * MARK_BYTES);
    let marks = marks.chunks_exact(MARK_BYTES).filter_map(|mut entry| {
        Some((TableId(take(&mut entry).map(u32::from_le_bytes)?), take(&mut entry).map(u64::from_le_bytes)?))
    });
    let partitions = partitions.chunks_exact(PARTITION_BYTES).filter_map(decode_partition);
    Ok((marks.collect(), partitions.collect()))
}

fn decode_partition(mut entry: &[u8]) -> Option<(PartitionId, PageTableLocation)> {
    let table = TableId(take(&mut entry).map(u32::from_le_bytes)?);
    let index = take(&mut entry).map(u16::from_le_bytes)?;
    let _: [u8; 2] = take(&mut entry)?;
    let file = take(&mut entry).map(u32::from_le_bytes)?;
    let offset = take(&mut entry).map(u64::from_le_bytes)?;
    let length = take(&mut entry).map(u32::from_le_bytes)?;
    let checksum = take(&mut entry).map(u32::from_le_bytes)?;
    let location = FrameLocation { file, offset, length };
    Some((PartitionId { table, index }, PageTableLocation { location, checksum }))
}

fn append_header(magic: &[u8; 4], version: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(magic);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
}

fn take_header<'a>(bytes: &'a [u8], magic: &[u8; 4], version: u16) -> Result<&'a [u8], StoredListError> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(cut)?;
    if !header.starts_with(magic) {
        return Err(StoredListError::Invalid("its first bytes are wrong".into()));
    }
    match u16::from_le_bytes([header[4], header[5]]) {
        found if found == version => Ok(rest),
        found => Err(StoredListError::UnknownVersion(found)),
    }
}

/// Takes the first bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn cut() -> StoredListError {
    StoredListError::Invalid("its length is wrong".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collation::CollationId;
    use crate::schema::DatabaseDefinition;

    fn lists() -> CheckpointLists {
        let database = |name: &str| DatabaseDefinition { name: name.into(), collation: CollationId::DEFAULT };
        let location = FrameLocation { file: 2, offset: 1 << 40, length: 100 };
        let at = |table, index, checksum| {
            (PartitionId { table: TableId(table), index }, PageTableLocation { location, checksum })
        };
        CheckpointLists {
            schema: DictionaryChange {
                version: 4,
                next_table: TableId(9),
                databases: vec![database("shop"), database("test")],
                ..DictionaryChange::default()
            },
            marks: BTreeMap::from([(TableId(7), u64::MAX), (TableId(8), 5)]),
            partitions: vec![at(7, 1, 0xfeed_beef), at(8, 0, 1)],
        }
    }

    /// The bytes of the two lists. Each database is a part of its own.
    fn encoded(lists: &CheckpointLists) -> (Vec<u8>, Vec<u8>) {
        let (mut schema, mut partitions) = (Vec::new(), Vec::new());
        begin_schema(&mut schema);
        for database in &lists.schema.databases {
            let part = DictionaryChange { databases: vec![database.clone()], ..lists.schema.clone() };
            append_schema_part(&part, &mut schema);
        }
        begin_partitions(lists.marks.len(), lists.partitions.len(), &mut partitions);
        lists.marks.iter().for_each(|(table, mark)| append_mark(*table, *mark, &mut partitions));
        lists.partitions.iter().for_each(|(partition, table)| append_partition(*partition, table, &mut partitions));
        (schema, partitions)
    }

    #[test]
    fn lists_survive_the_way_to_the_disk() {
        let lists = lists();
        let (schema, partitions) = encoded(&lists);
        assert_eq!(decode_schema(&schema), Ok(lists.schema));
        assert_eq!(decode_partitions(&partitions), Ok((lists.marks, lists.partitions)));
        let mut empty = Vec::new();
        begin_partitions(0, 0, &mut empty);
        assert_eq!(decode_partitions(&empty), Ok((BTreeMap::new(), Vec::new())));
    }

    /// The bytes of version 1. They must be read by every later release.
    #[test]
    fn the_stored_form_does_not_change() {
        let (schema, partitions) = encoded(&lists());
        let text = concat!(
            "JCSC\u{1}\0\0\0",
            "f\0\0\0",
            r#"{"format":1,"version":4,"next_table":9,"databases":[{"name":"shop","collation":"utf8mb4_0900_ai_ci"}]}"#,
            "f\0\0\0",
            r#"{"format":1,"version":4,"next_table":9,"databases":[{"name":"test","collation":"utf8mb4_0900_ai_ci"}]}"#,
        );
        assert_eq!(String::from_utf8_lossy(&schema), text);
        assert_eq!(&partitions[..16], b"JCPL\x01\0\0\0\x02\0\0\0\x02\0\0\0");
        assert_eq!(&partitions[16..28], b"\x07\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
        let entry = b"\x07\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\0\x01\0\0\x64\0\0\0\xef\xbe\xed\xfe";
        assert_eq!(&partitions[40..68], entry);
    }

    #[test]
    fn bytes_that_are_no_list_are_refused() {
        let (schema, partitions) = encoded(&lists());
        assert!((0..partitions.len()).all(|length| decode_partitions(&partitions[..length]).is_err()));
        let first_part = 8 + 4 + 102;
        let is_whole = |length: usize| length == first_part;
        assert!((0..schema.len()).all(|length| decode_schema(&schema[..length]).is_ok() == is_whole(length)));
        assert!(decode_schema(&partitions).is_err() && decode_partitions(&schema).is_err());
        let mut later = partitions;
        later[4] = 2;
        assert_eq!(decode_partitions(&later), Err(StoredListError::UnknownVersion(2)));
    }
}
