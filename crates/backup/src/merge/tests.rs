use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use junctor_model::id::{CommitNumber, Epoch, PartitionId, RowId, SchemaVersion, TableId, TransactionId};
use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, IDENTITY_USE, Identity};
use junctor_model::stored_schema::DictionaryChange;
use junctor_storage::log::{
    BLOCK_BYTES, Decision, GroupHeader, GroupKind, LOG_FOLDER, LogAnalysis, MAIN_STREAM, Piece, RecordBuffer,
    RecordHeader, RecordKind, SectionHeader, StreamId, StreamReader, decode_group, encode_group, encode_slot,
    group_blocks, segment_path,
};

use crate::BackupError;
use crate::cluster::{CopiedPart, complete};
use crate::data_directory::{DataDirectory, Files, FolderFiles};
use crate::part::{NodePart, copy_files};
use crate::restore::restore_newest;
use crate::store::BackupStore;
use crate::take::{CopyWatch, block_on};

const SEGMENT_BYTES: u64 = 1 << 20;

fn number(counter: u64) -> CommitNumber {
    CommitNumber::new(Epoch(3), counter)
}

/// A node's directory with a log of one life.
#[derive(Clone, Default)]
struct Node {
    files: BTreeMap<String, Vec<u8>>,
}

impl Files for Node {
    async fn read(&self, path: &str, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
        let file = self.files.get(path).ok_or(std::io::ErrorKind::NotFound)?;
        let start = file.len().min(offset as usize);
        Ok(file[start..file.len().min(start + length)].to_vec())
    }

    fn folder(&self) -> &Path {
        Path::new("data")
    }
}

/// A record: its stream, header and the row of a table that it puts.
type Formed = (StreamId, RecordHeader, (u32, u32));

fn commit(stream: u16, counter: u64, participants: u16, row: (u32, u32)) -> Formed {
    let (kind, number, transaction) = (RecordKind::Commit, number(counter), TransactionId(counter));
    (StreamId(stream), RecordHeader { kind, participants, number, transaction, chunk: 0 }, row)
}

fn chunk(stream: u16, kind: RecordKind, counter: u64, transaction: u64, chunk: u32) -> Formed {
    let is_commit = kind == RecordKind::ChunkCommit;
    let number = if is_commit { number(counter) } else { CommitNumber(0) };
    let transaction = TransactionId(transaction);
    let header = RecordHeader { kind, participants: u16::from(is_commit), number, transaction, chunk };
    (StreamId(stream), header, (9, chunk))
}

fn dictionary(counter: u64) -> Formed {
    let (kind, number, transaction) = (RecordKind::Dictionary, number(counter), TransactionId(0));
    (MAIN_STREAM, RecordHeader { kind, participants: 1, number, transaction, chunk: 0 }, (0, 0))
}

/// A node whose log has these records, each in a group of its own, and ends at this stable number.
fn node(records: &[Formed], stable: CommitNumber) -> Node {
    let mut segment = vec![0; SEGMENT_BYTES as usize];
    let (mut position, mut checksum) = (0, 0);
    let mut put = |kind, (stable, taken): (CommitNumber, CommitNumber), piece: Option<(StreamId, Vec<u8>)>| {
        let pieces = piece.iter().map(|(stream, bytes)| Piece { stream: *stream, first_record: Some(0), bytes });
        let blocks = group_blocks(pieces.clone().count(), pieces.clone().map(|piece| piece.bytes.len()).sum());
        let header = GroupHeader {
            kind,
            position,
            log_id: 5,
            life: 7,
            incarnation: 1,
            previous_checksum: checksum,
            stable,
            taken,
            ceiling: number(1 << 30),
            synced: 0,
            previous_cut: CommitNumber(0),
            wall_clock_us: 1_700_000_000_000_000,
        };
        let mut group = vec![0; blocks as usize * BLOCK_BYTES];
        checksum = encode_group(&header, pieces, &mut group);
        let at = position as usize * BLOCK_BYTES;
        segment[at..at + group.len()].copy_from_slice(&group);
        position += blocks;
    };
    put(GroupKind::Start, (CommitNumber(0), CommitNumber(0)), None);
    for (stream, header, (table, row)) in records {
        let mut buffer = RecordBuffer::new();
        buffer.begin(header);
        match header.kind {
            RecordKind::Commit | RecordKind::Chunk => {
                let partition = PartitionId { table: TableId(*table), index: 0 };
                buffer.begin_section(&SectionHeader { partition, origin: 0, row_format: SchemaVersion(1) });
                buffer.put(RowId(*row), &[7; 3000]);
            }
            RecordKind::Dictionary => buffer.append_body(&DictionaryChange::default().encode()),
            RecordKind::Mark => buffer.append_body(b"of main"),
            RecordKind::ChunkCommit | RecordKind::ChunkUndo => {}
        }
        buffer.end();
        put(GroupKind::Data, (CommitNumber(0), number(1000)), Some((*stream, buffer.take(Vec::new()))));
    }
    put(GroupKind::Closing, (stable, number(1000)), None);
    let identity = Identity { format: DIRECTORY_FORMAT_VERSION, log_id: 5, segment_bytes: SEGMENT_BYTES };
    let files = [
        ("identity.1".to_owned(), encode_slot(IDENTITY_USE, 1, &identity.encode())),
        (segment_path(LOG_FOLDER, 0).into(), segment),
    ];
    Node { files: files.into() }
}

struct Unwatched;

impl CopyWatch for Unwatched {
    fn note(&self, _copied: u64, _total: u64, _stored: u64) {}

    fn has_ended(&self) -> bool {
        false
    }
}

/// Takes a backup of these nodes, one of each group.
async fn back_up(store: &BackupStore, nodes: &[Node], until: CommitNumber) -> Result<(), BackupError> {
    let mut parts = Vec::new();
    for (node, files) in (1..).zip(nodes) {
        let part = NodePart { store: "".into(), name: "one".into(), node, folder: PathBuf::new() };
        let mut newest = CommitNumber(u64::MAX);
        let last = copy_files(store, files.clone(), (&part, &Unwatched), &mut |found| {
            newest = found;
            Some(until)
        })
        .await?;
        parts.push(CopiedPart { node, group: node - 1, newest, last });
    }
    complete(store, "one", &parts).await.map(drop)
}

/// Reads the log as recovery does. Returns the rows of each commit, as table and row, the number of
/// dictionary records, and the last commit.
async fn recovered(folder: &Path) -> Result<(BTreeMap<u64, Vec<(u32, u32)>>, usize, CommitNumber), BackupError> {
    let directory = DataDirectory::new(FolderFiles(folder.into()));
    let identity = directory.identity().await?;
    let mut found = (BTreeMap::new(), 0, CommitNumber(0));
    let mut plan = None;
    for _ in 0..2 {
        let mut reader = directory.log(&identity, 0)?;
        let mut analysis = LogAnalysis::new(CommitNumber(0));
        let mut streams: BTreeMap<StreamId, StreamReader> = BTreeMap::new();
        while let Some(raw) = reader.next_group().await? {
            let group = decode_group(&raw.bytes).expect("a group");
            analysis.observe_group(&group.header);
            for piece in group.pieces() {
                let read = streams.entry(piece.stream).or_default().read(&piece, &mut |record| {
                    analysis.observe_record(piece.stream, record);
                    let Some(plan) = &plan else { return };
                    let plan: &junctor_storage::log::RecoveryPlan = plan;
                    let Decision::Apply(number) = plan.decide(1, piece.stream, record) else { return };
                    found.1 += usize::from(record.header.kind == RecordKind::Dictionary);
                    for section in record.sections() {
                        let table = section.header.partition.table.0;
                        let rows: &mut Vec<(u32, u32)> = found.0.entry(number.0 & 0xffff).or_default();
                        rows.extend(section.operations().map(|operation| match operation {
                            junctor_storage::log::Operation::Put { row, .. } => (table, row.0),
                            junctor_storage::log::Operation::Edit { row, .. }
                            | junctor_storage::log::Operation::Delete { row, .. } => (table, row.0),
                        }));
                    }
                });
                read.expect("whole records");
            }
        }
        plan = Some(analysis.finish(CommitNumber(0)).expect("a log without contradictions"));
    }
    found.2 = plan.expect("two readings").cut;
    Ok(found)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("junctor-merge-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn the_logs_of_all_groups_become_one_up_to_the_number_that_all_have() {
    let one = [
        commit(0, 1, 1, (1, 10)),
        // A part of the changes of commit 2. The others are in the other group, in two streams.
        commit(1, 2, 1, (1, 11)),
        dictionary(3),
        chunk(0, RecordKind::Chunk, 0, 77, 0),
        chunk(0, RecordKind::Chunk, 0, 78, 0),
        chunk(0, RecordKind::Chunk, 0, 77, 1),
        chunk(0, RecordKind::ChunkCommit, 4, 77, 2),
        commit(0, 6, 1, (1, 12)),
        commit(0, 8, 1, (1, 13)),
    ];
    let other = [
        commit(0, 2, 2, (2, 20)),
        commit(1, 2, 2, (3, 30)),
        dictionary(3),
        chunk(0, RecordKind::Chunk, 0, 77, 0),
        chunk(0, RecordKind::ChunkCommit, 4, 77, 1),
        commit(1, 5, 1, (2, 21)),
        commit(1, 7, 1, (2, 22)),
    ];
    let target = folder("logs");
    let found = block_on(async {
        let store = BackupStore::in_memory();
        back_up(&store, &[node(&one, number(9)), node(&other, number(6))], number(6)).await?;
        let summary = restore_newest(&store, &target, 99).await?;
        assert_eq!(summary.last_commit, number(6));
        recovered(&target).await
    });
    std::fs::remove_dir_all(&target).expect("the folder can be removed");
    let (commits, dictionaries, cut) = found.expect("a backup");
    let expected = [
        (1, vec![(1, 10)]),
        (2, vec![(1, 11), (2, 20), (3, 30)]),
        (4, vec![(9, 0), (9, 1), (9, 0)]),
        (5, vec![(2, 21)]),
        (6, vec![(1, 12)]),
    ];
    assert_eq!(commits, expected.into());
    assert_eq!((dictionaries, cut), (1, number(6)), "the schema comes once");
}

#[test]
fn long_logs_are_cut_into_groups() {
    let records: Vec<Formed> =
        (1..=200).map(|counter| commit(counter as u16 % 2, counter, 1, (1, counter as u32))).collect();
    let target = folder("long");
    let found = block_on(async {
        let store = BackupStore::in_memory();
        let nodes = [node(&records, number(200)), node(&[], number(200)), node(&records[..0], number(200))];
        back_up(&store, &nodes, number(200)).await?;
        restore_newest(&store, &target, 99).await?;
        recovered(&target).await
    });
    std::fs::remove_dir_all(&target).expect("the folder can be removed");
    let (commits, _, cut) = found.expect("a backup");
    assert_eq!((commits.len(), cut), (200, number(200)));
}

#[test]
fn a_part_in_another_store_and_a_checkpoint_behind_the_logs_are_no_backup() {
    let result = block_on(async {
        let (store, other) = (BackupStore::in_memory(), BackupStore::in_memory());
        back_up(&store, &[node(&[], number(4))], number(4)).await?;
        assert!(store.stored("one").await.is_ok());
        let part = CopiedPart { node: 1, group: 0, newest: number(1), last: number(4) };
        let error = complete(&other, "one", &[part]).await.expect_err("it has no part");
        assert!(error.to_string().contains("node 1 has copied its part to another place"), "{error}");
        let error = complete(&store, "one", &[CopiedPart { newest: number(5), ..part }]).await.expect_err("no cut");
        assert!(error.to_string().contains("contains commit"), "{error}");
        Ok(())
    });
    result.expect("the backups are possible");
}
