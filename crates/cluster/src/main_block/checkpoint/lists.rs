//! Writes the lists of a checkpoint, the schema and the partitions, to files of their own. They may be long,
//! so main encodes the next piece when the one before is written. A schema that has not changed stays in the
//! file of an earlier checkpoint.

use std::sync::Arc;

use junctor_kernel::{Context, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, Time, WorldRequest};
use junctor_model::access::AccessChange;
use junctor_model::checkpoint::{CHECKPOINT_FOLDER, CheckpointFile, PageTableLocation, checkpoint_path};
use junctor_model::id::{PartitionId, TableId};
use junctor_model::stored_lists::{append_mark, append_partition, append_schema_part, begin_partitions, begin_schema};
use junctor_model::stored_manifest::{ListPlace, Manifest};
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::change_schema::Catalog;
use junctor_signals::{Signal, crash_point};
use junctor_storage::checkpoint::append_file_checksum;

use super::round::{LIST_FILE_TOKEN, Step, failure};
use crate::main_block::block::MainBlock;

/// Bytes from which a piece is written.
const PIECE_BYTES: usize = 128 << 10;
/// Tables in a part of the schema.
const TABLES_PER_PART: usize = 16;

/// A schema in a checkpoint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchemaFile {
    pub number: u32,
    pub version: SchemaState,
}

/// The contents of a schema, as a schema file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchemaState {
    /// The version of the dictionary.
    pub dictionary: u64,
    /// The next table id.
    pub next_table: TableId,
}

/// The lists of a round while they are written.
#[derive(Debug)]
pub(super) struct ListWriter {
    /// The manifest of the round, without the lists.
    pub manifest: Box<Manifest>,
    pub schema: SchemaFile,
    /// The present list.
    content: ListContent,
    /// The list that follows.
    next: Option<ListContent>,
    number: u32,
    file: Option<FileId>,
    bytes: u64,
    checksum: u32,
}

/// The part of a list that is not encoded yet.
#[derive(Debug)]
pub(super) enum ListContent {
    Schema {
        catalog: Arc<Catalog>,
        next_table: TableId,
        next: TableId,
        is_begun: bool,
    },
    Partitions {
        marks: Vec<(TableId, u64)>,
        partitions: Vec<(PartitionId, PageTableLocation)>,
        next: usize,
        is_begun: bool,
    },
}

impl ListContent {
    pub fn schema(catalog: &Arc<Catalog>, next_table: TableId) -> ListContent {
        ListContent::Schema { catalog: Arc::clone(catalog), next_table, next: TableId(0), is_begun: false }
    }

    pub fn partitions(marks: Vec<(TableId, u64)>, partitions: Vec<(PartitionId, PageTableLocation)>) -> ListContent {
        ListContent::Partitions { marks, partitions, next: 0, is_begun: false }
    }

    /// Encodes the next piece; `None` at the end.
    fn next_piece(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        match self {
            ListContent::Schema { catalog, next_table, next, is_begun } => {
                let dictionary = &catalog.dictionary;
                let version = dictionary.version;
                let part = DictionaryChange { version, next_table: *next_table, ..DictionaryChange::default() };
                if !std::mem::replace(is_begun, true) {
                    begin_schema(&mut out);
                    let databases = dictionary.databases().cloned().collect();
                    let access = match dictionary.access.version {
                        0 => AccessChange::default(),
                        _ => dictionary.access.to_change(),
                    };
                    append_schema_part(&DictionaryChange { databases, access, ..part.clone() }, &mut out);
                }
                while out.len() < PIECE_BYTES {
                    let tables = dictionary.tables_from(*next).take(TABLES_PER_PART);
                    let layouts: Vec<_> = tables.collect();
                    let Some(last) = layouts.last() else { break };
                    *next = TableId(last.definition.id.0 + 1);
                    let kept = layouts.iter().filter(|layout| !layout.definition.is_temporary());
                    let tables = kept.map(|layout| layout.definition.clone()).collect();
                    append_schema_part(&DictionaryChange { tables, ..part.clone() }, &mut out);
                }
            }
            ListContent::Partitions { marks, partitions, next, is_begun } => {
                if !std::mem::replace(is_begun, true) {
                    begin_partitions(marks.len(), partitions.len(), &mut out);
                    // A mark has few bytes, so the marks need no pieces.
                    marks.iter().for_each(|(table, mark)| append_mark(*table, *mark, &mut out));
                }
                while out.len() < PIECE_BYTES
                    && let Some((partition, table)) = partitions.get(*next)
                {
                    append_partition(*partition, table, &mut out);
                    *next += 1;
                }
            }
        }
        (!out.is_empty()).then_some(out)
    }
}

impl ListWriter {
    /// The first list gets the number `number`.
    pub fn new(manifest: Manifest, schema: SchemaFile, mut lists: Vec<ListContent>) -> Option<ListWriter> {
        let next = if lists.len() > 1 { lists.pop() } else { None };
        let (number, content) = (manifest.next_file, lists.pop()?);
        let manifest = Box::new(manifest);
        Some(ListWriter { manifest, schema, content, next, number, file: None, bytes: 0, checksum: 0 })
    }

    /// Opens the file of the present list. Returns its number.
    pub fn open(&self, outbox: &mut Outbox<Signal>) -> u32 {
        let (path, mode) = (checkpoint_path(self.number), FileMode::CreateEmpty);
        // The lane of deletions, so that a file of an earlier life with this number is deleted before.
        let lane = FileLane::Checkpoint;
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: LIST_FILE_TOKEN });
        self.number
    }

    /// Requests the write of the next piece, or the sync after the last one.
    fn write_next(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(file) = self.file else { return };
        let Some(piece) = self.content.next_piece() else {
            return outbox.request(WorldRequest::SyncFile { file, token: LIST_FILE_TOKEN });
        };
        let offset = self.bytes;
        self.bytes += piece.len() as u64;
        self.checksum = append_file_checksum(self.checksum, &piece);
        let bytes = junctor_kernel::FileBuffer::from(&piece[..]);
        outbox.request(WorldRequest::WriteFile { file, offset, bytes, token: LIST_FILE_TOKEN });
    }

    /// Adds the written list to the manifest. Returns whether another one follows.
    fn end_file(&mut self) -> bool {
        let (number, bytes) = (self.number, self.bytes);
        let file = CheckpointFile { number, bytes, live_bytes: bytes, checksum: Some(self.checksum) };
        self.manifest.files.push(file);
        self.manifest.next_file = number + 1;
        (self.number, self.bytes, self.checksum) = (number + 1, 0, 0);
        match self.next.take() {
            Some(next) => {
                self.content = next;
                true
            }
            None => {
                self.manifest.lists = ListPlace::Files { schema: self.schema.number, partitions: number };
                false
            }
        }
    }
}

impl MainBlock {
    /// Begins to write the lists of the round.
    pub(super) fn write_lists(&mut self, writer: ListWriter, outbox: &mut Outbox<Signal>) {
        let Some(round) = &mut self.checkpoints.round else { return };
        outbox.crash_point(crash_point::CHECKPOINT_LIST.before());
        round.list_files.push(writer.open(outbox));
        round.step = Step::WriteLists(Box::new(writer));
    }

    pub(super) fn on_list_file(&mut self, result: FileResult, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let now = context.turn_start;
        let Some(round) = &mut self.checkpoints.round else { return };
        let Step::WriteLists(writer) = &mut round.step else { return };
        match result {
            Ok(FileOutcome::Opened { file, .. }) => {
                writer.file = Some(file);
                writer.write_next(outbox);
            }
            Ok(FileOutcome::Written { .. }) => writer.write_next(outbox),
            Ok(FileOutcome::Synced) => {
                if let Some(file) = writer.file.take() {
                    outbox.request(WorldRequest::CloseFile { file, token: LIST_FILE_TOKEN });
                }
            }
            Ok(FileOutcome::Closed) if round.error.is_some() => self.abandon_round(now, outbox),
            Ok(FileOutcome::Closed) => match writer.end_file() {
                true => round.list_files.push(writer.open(outbox)),
                false => {
                    let (path, lane) = (CHECKPOINT_FOLDER.into(), FileLane::Checkpoint);
                    outbox.request(WorldRequest::SyncFolder { path, lane, token: LIST_FILE_TOKEN });
                }
            },
            Ok(FileOutcome::FolderSynced) => {
                outbox.crash_point(crash_point::CHECKPOINT_LIST.after());
                self.switch_manifest(outbox);
            }
            Ok(outcome) => junctor_kernel::invariant::fail("a request has its own answer", format_args!("{outcome:?}")),
            Err(error) => self.on_list_error(error, now, outbox),
        }
    }

    #[cold]
    fn on_list_error(&mut self, error: junctor_kernel::FileError, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(round) = &mut self.checkpoints.round else { return };
        let Step::WriteLists(writer) = &mut round.step else { return };
        round.error.get_or_insert_with(|| failure("write", &checkpoint_path(writer.number), error));
        match writer.file.take() {
            Some(file) => outbox.request(WorldRequest::CloseFile { file, token: LIST_FILE_TOKEN }),
            None => self.abandon_round(now, outbox),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use junctor_model::checkpoint::FrameLocation;
    use junctor_model::id::{IndexId, SchemaVersion};
    use junctor_model::schema::{
        DatabaseDefinition, Dictionary, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind,
    };
    use junctor_model::stored_lists::{decode_partitions, decode_schema};

    use super::*;

    fn whole(mut content: ListContent) -> (Vec<u8>, usize) {
        let mut pieces = Vec::new();
        while let Some(piece) = content.next_piece() {
            assert!(piece.len() < 2 * PIECE_BYTES, "{} bytes", piece.len());
            pieces.push(piece);
        }
        let count = pieces.len();
        (pieces.concat(), count)
    }

    #[test]
    fn a_hundred_thousand_tables_are_written_in_pieces_and_read_back() {
        let mut catalog = Catalog::default();
        let collation = junctor_model::collation::CollationId::DEFAULT;
        let primary = IndexDefinition {
            id: IndexId(0),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary { ordered: false },
            columns: Vec::new(),
            state: IndexState::Online,
            attributes: Default::default(),
        };
        catalog.dictionary.put_database(DatabaseDefinition { name: "d".into(), collation });
        for id in 1..=100_000 {
            catalog.dictionary.put_table(TableDefinition {
                id: TableId(id),
                version: SchemaVersion(1),
                database: "d".into(),
                name: format!("table_{id}").into(),
                kind: TableKind::Base,
                sharing: Default::default(),
                columns: Vec::new(),
                indexes: vec![primary.clone()],
                partition_columns: Vec::new(),
                partition_count: 8,
                has_partition_clause: false,
                placement: None,
                collation,
                comment: "".into(),
                options: Default::default(),
                next_index: IndexId(1),
                foreign_keys: Vec::new(),
                checks: Vec::new(),
                view: None,
            });
        }
        catalog.dictionary.version = 100_001;
        let catalog = Arc::new(catalog);
        let (bytes, pieces) = whole(ListContent::schema(&catalog, TableId(100_001)));
        assert!(pieces > 50, "{pieces} pieces");
        let mut read = Dictionary::default();
        let schema = decode_schema(&bytes).expect("a schema");
        assert_eq!((schema.version, schema.next_table), (100_001, TableId(100_001)));
        schema.apply(&mut read);
        assert!(read.tables().map(|it| &it.definition).eq(catalog.dictionary.tables().map(|it| &it.definition)));
        assert!(read.database("d").is_some());

        let location = |number: u32| PageTableLocation {
            location: FrameLocation { file: 1 + number % 7, offset: u64::from(number) * 4096, length: 100 },
            checksum: number,
        };
        let partition = |number: u32| PartitionId { table: TableId(number / 8), index: (number % 8) as u16 };
        let partitions: Vec<_> = (0..800_000).map(|number| (partition(number), location(number))).collect();
        let marks: Vec<_> = (1..=100_000).map(|id| (TableId(id), u64::from(id) * 10)).collect();
        let mut content = ListContent::partitions(marks.clone(), partitions.clone());
        let mut bytes = Vec::new();
        while let Some(piece) = content.next_piece() {
            bytes.extend(piece);
        }
        assert_eq!(decode_partitions(&bytes), Ok((BTreeMap::from_iter(marks), partitions)));
    }

    #[test]
    fn empty_lists_are_written_too() {
        let (bytes, pieces) = whole(ListContent::schema(&Arc::default(), TableId(1)));
        assert_eq!((pieces, decode_schema(&bytes).map(|schema| schema.next_table)), (1, Ok(TableId(1))));
        let (bytes, pieces) = whole(ListContent::partitions(Vec::new(), Vec::new()));
        assert_eq!((pieces, decode_partitions(&bytes)), (1, Ok((BTreeMap::new(), Vec::new()))));
    }
}
