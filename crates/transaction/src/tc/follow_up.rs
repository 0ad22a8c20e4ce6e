//! Follow-ups of changed rows in other partitions: rows that moved, and entries of unique indexes in the
//! hidden tables.
//!
//! Base rows come first, then the unique indexes in index order, so that all transactions lock in the same
//! order. Within an index, entries with different keys are independent. Entries with the same key keep their
//! order: each goes into the first possible round after the previous entry, deletes into even rounds and
//! inserts into odd rounds. A statement that changes keys without a collision needs two rounds, however many
//! rows it has.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_kernel::{BufferPool, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{IndexId, PartitionId, TableId};
use junctor_model::key::append_value;
use junctor_model::limit::{FOLLOW_UP_BYTES_MAX, FOLLOW_UPS_OF_STATEMENT_MAX};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableLayout;
use junctor_model::value::ValueRef;
use junctor_signals::Signal;
use junctor_signals::input::{self, HashedKey, KeyedImage};
use junctor_signals::program::{Access, WriteAction, WriteProgram};
use junctor_signals::write_rows::FollowUp;

use super::block::TcBlock;
use super::last_rounds::LastRounds;
use super::state::{Cascade, Part, PlannedRound, Round, RoundPart, Statement, TransactionHandle};

/// Number of bytes after which another part is begun for the same partition.
const PART_BYTES_MAX: usize = 1 << 20;

/// The follow-ups planned so far. They arrive in portions, and each portion is encoded directly into the
/// parts that will be sent. No step therefore plans very much, and waiting follow-ups take no more memory
/// than the signals.
#[derive(Debug, Default)]
pub(super) struct FollowUpPlan {
    /// The program whose rows have these follow-ups.
    program: Option<Arc<WriteProgram>>,
    /// Rows that move to other partitions, and the program that inserts them.
    moved: BTreeMap<u16, Vec<RoundPart>>,
    move_program: Option<Arc<WriteProgram>>,
    /// Entries by position of their index in the program, and by round.
    entries: BTreeMap<(usize, u32), BTreeMap<PartitionId, Vec<RoundPart>>>,
    last_rounds: LastRounds,
    /// Former contents of `last_rounds`, which are freed in small steps.
    retired: LastRounds,
    /// Number of follow-ups, including those of foreign keys, and the total bytes of their keys and rows.
    count: usize,
    bytes: usize,
}

/// The keys in the form for error 1062, in one allocation.
#[derive(Debug, Default)]
pub(super) struct ShownKeys {
    text: String,
    ends: Vec<u32>,
}

impl ShownKeys {
    fn push(&mut self, shown: &str) {
        self.text.push_str(shown);
        require!(u32::try_from(self.text.len()).is_ok(), "the shown keys of one part stay below 4 GiB");
        self.ends.push(self.text.len() as u32);
    }

    fn get(&self, position: usize) -> &str {
        let start = position.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(position).map_or("", |end| &self.text[start as usize..*end as usize])
    }
}

/// The programs that change a hidden table.
#[derive(Clone, Debug)]
pub(super) struct EntryPrograms {
    insert: Arc<WriteProgram>,
    insert_or_claim: Arc<WriteProgram>,
    delete: Arc<WriteProgram>,
}

impl EntryPrograms {
    fn new(table: &Arc<TableLayout>) -> EntryPrograms {
        let insert = Arc::new(WriteProgram::new(table, WriteAction::Insert, Access::PrimaryKeys));
        let with_action = |action| Arc::new(WriteProgram { action, ..(*insert).clone() });
        let (insert_or_claim, delete) =
            (with_action(WriteAction::InsertOrClaim), with_action(WriteAction::Delete { ignore: false }));
        EntryPrograms { insert, insert_or_claim, delete }
    }
}

impl TcBlock {
    /// Sends the next round of follow-ups. Returns false if no round is left.
    pub(super) fn run_follow_ups(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let running = &mut self.record(handle).running;
        if running.rounds.is_empty() {
            running.rounds = running.planned.take_rounds();
        }
        let Some(round) = self.next_round(handle, context.buffers) else { return false };
        let Round { parts, check, is_new_statement } = round;
        let record = self.record(handle);
        require!(record.outstanding == 0, "a round begins when the round before it has answered");
        record.running.parts.clear();
        record.running.check = check;
        if is_new_statement {
            record.statement.0 += 1;
        }
        for part in parts {
            self.send_part(handle, part, context, outbox);
        }
        if self.record(handle).outstanding == 0 {
            self.advance_statement(handle, context, outbox);
        }
        true
    }

    /// Plans the follow-ups of a part's rows, except foreign keys, which come later. Cascades use their own
    /// programs.
    pub(super) fn take_follow_ups(
        &mut self,
        handle: TransactionHandle,
        part: usize,
        follow_ups: Box<[FollowUp]>,
        buffers: &mut BufferPool,
    ) {
        let running = &mut self.record(handle).running;
        if follow_ups.is_empty() || running.error.is_some() {
            return;
        }
        if let Some(Part::Cascade { program, path }) = running.parts.get(part) {
            let (program, path) = (Arc::clone(program), path.clone());
            return running.keep_cascade(program, path, follow_ups.into_vec());
        }
        // Follow-ups of moved rows belong to the program that moved the rows.
        let Some(program) = running.planned.program.clone().or_else(|| running.program.clone()) else { return };
        self.plan_follow_ups(handle, &program, follow_ups.into_vec(), buffers);
    }

    /// Plans the follow-ups of a program's rows, and sets those of foreign keys aside for later.
    pub(super) fn plan_follow_ups(
        &mut self,
        handle: TransactionHandle,
        program: &Arc<WriteProgram>,
        follow_ups: Vec<FollowUp>,
        buffers: &mut BufferPool,
    ) {
        let TcBlock { transactions, entry_programs, .. } = self;
        let Some(record) = transactions.get_mut(handle) else {
            junctor_kernel::invariant::fail("a handle in use has its record", format_args!("{handle:?}"))
        };
        let running = &mut record.running;
        let mut foreign = Vec::new();
        for follow_up in follow_ups {
            if let Err(error) = running.planned.count(&follow_up) {
                running.error = Some(error);
                return;
            }
            if let FollowUp::ParentKey { .. } | FollowUp::ChildKey { .. } = follow_up {
                foreign.push(follow_up);
                continue;
            }
            if let Err(error) = running.planned.add(program, follow_up, entry_programs, buffers) {
                running.error = Some(error);
                return;
            }
        }
        if !foreign.is_empty() {
            running.keep_foreign(program, foreign);
        }
    }
}

impl FollowUpPlan {
    /// Forgets all follow-ups. Cheap for statements without unique keys.
    #[inline]
    pub fn clear(&mut self) {
        if self.count > 0 || !self.retired.is_empty() {
            *self = FollowUpPlan::default();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.entries.is_empty()
    }

    /// Takes the next rounds. Moved rows form a round by themselves, and everything else waits, because
    /// inserting moved rows adds entries.
    fn take_rounds(&mut self) -> VecDeque<PlannedRound> {
        if !self.moved.is_empty() {
            let moved = std::mem::take(&mut self.moved);
            return VecDeque::from([PlannedRound::plain(moved)]);
        }
        let planned = std::mem::take(self);
        self.retired = planned.last_rounds;
        planned.entries.into_values().map(PlannedRound::plain).collect()
    }

    /// Frees some memory of past planning.
    #[inline]
    pub fn free_some(&mut self) {
        self.retired.free_some();
    }

    /// Counts a follow-up against the limits of a statement, because this memory is not accounted elsewhere.
    ///
    /// # Errors
    /// 1041 if a limit is exceeded.
    fn count(&mut self, follow_up: &FollowUp) -> Result<(), Box<Error>> {
        self.count += 1;
        self.bytes += match follow_up {
            FollowUp::InsertEntry { key, row_reference, shown, .. } => {
                2 * key.len() + row_reference.len() + shown.len()
            }
            FollowUp::DeleteEntry { key, .. } | FollowUp::ParentKey { key, .. } => key.len(),
            FollowUp::ChildKey { key, new, .. } => key.len() + new.as_ref().map_or(0, Vec::len),
            FollowUp::MoveRow { key, image, .. } => key.len() + image.len(),
        };
        match self.count > FOLLOW_UPS_OF_STATEMENT_MAX || self.bytes > FOLLOW_UP_BYTES_MAX {
            true => Err(too_many_follow_ups()),
            false => Ok(()),
        }
    }

    fn add(
        &mut self,
        program: &Arc<WriteProgram>,
        follow_up: FollowUp,
        entry_programs: &mut BTreeMap<TableId, EntryPrograms>,
        buffers: &mut BufferPool,
    ) -> Result<(), Box<Error>> {
        self.program.get_or_insert_with(|| Arc::clone(program));
        let (index, key, insert) = match follow_up {
            FollowUp::MoveRow { partition, hash, key, image } => {
                self.move_row(
                    program,
                    partition,
                    KeyedImage { key: HashedKey { hash, key: &key }, image: &image },
                    buffers,
                );
                return Ok(());
            }
            FollowUp::DeleteEntry { index, key } => (index, key, None),
            FollowUp::InsertEntry { index, key, row_reference, shown } => (index, key, Some((row_reference, shown))),
            FollowUp::ParentKey { .. } | FollowUp::ChildKey { .. } => return Ok(()),
        };
        let position = program.unique_entries.iter().position(|(id, _)| *id == index);
        let Some(position) = position else { return Err(no_entries(program, index)) };
        let table = &program.unique_entries[position].1;
        let programs = entry_programs.entry(table.definition.id).or_insert_with(|| EntryPrograms::new(table));
        let mut entry_key = Vec::with_capacity(key.len() + 2);
        append_value(table.definition.columns[0].column_type.key_part(), false, ValueRef::Bytes(&key), &mut entry_key);
        let hash = key_hash(&entry_key);
        let partition = partition_of(hash, table.definition.partition_count);
        let partition = PartitionId { table: table.definition.id, index: partition };
        let round = self.last_rounds.next(position, hash, insert.is_some());
        let entry_program = match (insert.is_some(), &program.action) {
            (false, _) => &programs.delete,
            (true, WriteAction::InsertOrClaim) => &programs.insert_or_claim,
            (true, _) => &programs.insert,
        };
        let parts = self.entries.entry((position, round)).or_default().entry(partition).or_default();
        let part = part_with_space(parts, || {
            let name = program.table.definition.index(index).map_or("", |index| &index.name);
            let part = Part::Entries { index_name: name.into(), shown: ShownKeys::default() };
            begin_part(partition, entry_program, part, buffers)
        });
        let hashed = HashedKey { hash, key: &entry_key };
        let Some((row_reference, text)) = insert else {
            input::push_key(&mut part.input, hashed);
            return Ok(());
        };
        let mut image = Vec::new();
        table.row_format.encode(&[ValueRef::Bytes(&key), ValueRef::Bytes(&row_reference)], &mut image)?;
        input::push_image(&mut part.input, KeyedImage { key: hashed, image: &image });
        if let Part::Entries { shown, .. } = &mut part.part {
            shown.push(&text);
        }
        Ok(())
    }

    fn move_row(&mut self, program: &Arc<WriteProgram>, index: u16, row: KeyedImage<'_>, buffers: &mut BufferPool) {
        let insert = self.move_program.get_or_insert_with(|| {
            let unique_entries = program.unique_entries.clone();
            let insert = WriteProgram::new(&program.table, WriteAction::Insert, Access::PrimaryKeys);
            Arc::new(WriteProgram { unique_entries, ..insert })
        });
        let id = PartitionId { table: program.table.definition.id, index };
        let parts = self.moved.entry(index).or_default();
        let part = part_with_space(parts, || begin_part(id, insert, Part::Moved, buffers));
        input::push_image(&mut part.input, row);
    }
}

/// The last part, or a new part if the last one is long, so that no buffer grows very large.
fn part_with_space(parts: &mut Vec<RoundPart>, begin: impl FnOnce() -> RoundPart) -> &mut RoundPart {
    match parts.last() {
        Some(last) if last.input.len() < PART_BYTES_MAX => {}
        _ => parts.push(begin()),
    }
    let last = parts.len() - 1;
    &mut parts[last]
}

fn begin_part(partition: PartitionId, program: &Arc<WriteProgram>, part: Part, buffers: &mut BufferPool) -> RoundPart {
    let mut bytes = buffers.take(512);
    input::begin(&mut bytes, b"");
    RoundPart { partition, program: Arc::clone(program), input: bytes, part }
}

#[cold]
fn too_many_follow_ups() -> Box<Error> {
    let message = format!(
        "Out of resources; a statement changes more than {FOLLOW_UPS_OF_STATEMENT_MAX} keys, or {FOLLOW_UP_BYTES_MAX} bytes of them"
    );
    Error::new(ErrorCode::OutOfResources, message)
}

#[cold]
fn no_entries(program: &WriteProgram, index: IndexId) -> Box<Error> {
    let TableId(table) = program.table.definition.id;
    let message = format!("The plan for table {table} does not know the entries of unique index {index}");
    Error::new(ErrorCode::TableDefinitionChanged, message)
}

impl Statement {
    /// Stores the follow-ups of a part of a cascade. Parts with the same program and path belong to one
    /// cascade step, whatever their partitions, so their follow-ups are stored together.
    fn keep_cascade(&mut self, program: Arc<WriteProgram>, path: Vec<TableId>, follow_ups: Vec<FollowUp>) {
        match self.cascades.back_mut() {
            Some(last) if Arc::ptr_eq(&last.program, &program) && last.path == path => {
                last.follow_ups.extend(follow_ups);
            }
            _ => self.cascades.push_back(Cascade { program, path, follow_ups }),
        }
    }

    /// Stores the foreign-key follow-ups of the statement itself. The follow-ups of all its parts are stored
    /// together, so that each parent is looked up only once.
    fn keep_foreign(&mut self, program: &Arc<WriteProgram>, foreign: Vec<FollowUp>) {
        match self.cascades.front_mut() {
            Some(first) if first.path.is_empty() => first.follow_ups.extend(foreign),
            _ => {
                let program = Arc::clone(program);
                self.cascades.push_front(Cascade { program, path: Vec::new(), follow_ups: foreign });
            }
        }
    }

    /// Rewrites a duplicate-entry error of a hidden table, so that it names the key and index of the base
    /// table. Entries are inserted in order, so the number of accepted entries is the position of the refused
    /// one.
    pub fn name_entry(&self, part: usize, accepted: u32, error: Box<Error>) -> Box<Error> {
        let Some(Part::Entries { index_name, shown }) = self.parts.get(part) else { return error };
        if error.code != ErrorCode::DuplicateEntry {
            return error;
        }
        let table = self.program.as_ref().map_or("", |program| &program.table.definition.name);
        require!((accepted as usize) < shown.ends.len(), "a refused entry is one that was sent");
        let text = shown.get(accepted as usize);
        Error::new(ErrorCode::DuplicateEntry, format!("Duplicate entry '{text}' for key '{table}.{index_name}'"))
    }
}
