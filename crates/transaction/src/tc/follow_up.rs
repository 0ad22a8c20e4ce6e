//! What changed rows ask of other partitions: rows that moved, and entries of unique indexes in their hidden tables.
//!
//! Base rows come first, then the unique indexes in index order; so all transactions lock in one order. Within an
//! index, entries with different keys are independent, and those with the same key keep their order: each goes into the
//! first round after the one before it, deletes into even rounds and inserts into odd ones. A statement that changes
//! keys without a collision needs two rounds, however many rows it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::{BufferPool, Context, Outbox};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{IndexId, PartitionId, TableId};
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableLayout;
use junctor_model::value::ValueRef;
use junctor_signals::Signal;
use junctor_signals::input::{self, HashedKey, KeyedImage};
use junctor_signals::program::{Access, WriteAction, WriteProgram};
use junctor_signals::write_rows::FollowUp;

use super::block::TcBlock;
use super::state::{Cascade, Part, PlannedRound, Round, RoundPart, Statement, TransactionHandle};

/// Rounds to send, and what is planned after them.
type PlannedRounds = (Vec<Vec<RoundPart>>, Vec<FollowUp>);

/// The programs of a hidden table.
#[derive(Clone, Debug)]
pub(super) struct EntryPrograms {
    insert: Arc<WriteProgram>,
    insert_or_claim: Arc<WriteProgram>,
    delete: Arc<WriteProgram>,
}

impl EntryPrograms {
    fn new(table: &Arc<TableLayout>) -> EntryPrograms {
        let insert = Arc::new(insert_program(table, Vec::new()));
        let with_action = |action| Arc::new(WriteProgram { action, ..(*insert).clone() });
        let (insert_or_claim, delete) = (with_action(WriteAction::InsertOrClaim), with_action(WriteAction::Delete));
        EntryPrograms { insert, insert_or_claim, delete }
    }
}

fn insert_program(table: &Arc<TableLayout>, unique_entries: Vec<(IndexId, Arc<TableLayout>)>) -> WriteProgram {
    WriteProgram {
        table: Arc::clone(table),
        action: WriteAction::Insert,
        access: Access::PrimaryKeys,
        filter: None,
        reads_parameters: false,
        unique_entries,
        foreign_keys: None,
    }
}

impl TcBlock {
    /// Sends the next round of follow-ups; false when there is none.
    pub(super) fn run_follow_ups(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let running = &mut self.record(handle).running;
        if !running.follow_ups.is_empty() {
            let follow_ups = std::mem::take(&mut running.follow_ups);
            let own = running.follow_ups_of.take();
            let Some(program) = own.or_else(|| running.program.clone()) else { return false };
            let planned = self.plan_follow_ups(&program, follow_ups, context.buffers);
            let running = &mut self.record(handle).running;
            match planned {
                Ok((rounds, rest)) => {
                    running.rounds.extend(rounds.into_iter().map(|parts| PlannedRound::Parts(Round::plain(parts))));
                    if !rest.is_empty() {
                        running.follow_ups_of = Some(program);
                    }
                    running.follow_ups = rest;
                }
                Err(error) => {
                    running.error = Some(error);
                    self.fail_statement(handle, context, outbox);
                    return true;
                }
            }
        }
        let Some(round) = self.next_round(handle, context.buffers) else { return false };
        let Round { parts, check, is_new_statement } = round;
        let record = self.record(handle);
        // All parts before have answered.
        record.running.parts.clear();
        record.running.check = check;
        if is_new_statement {
            record.statement.0 += 1;
        }
        for RoundPart { partition, program, input, part } in parts {
            self.send_part(handle, partition, &program, input, part, context, outbox);
        }
        if self.record(handle).outstanding == 0 {
            self.advance_statement(handle, context, outbox);
        }
        true
    }

    /// Moved rows make one round and leave the rest for later, since they bring entries of their own.
    fn plan_follow_ups(
        &mut self,
        program: &Arc<WriteProgram>,
        follow_ups: Vec<FollowUp>,
        buffers: &mut BufferPool,
    ) -> Result<PlannedRounds, Box<Error>> {
        let mut rest = Vec::new();
        let mut moved: BTreeMap<u16, RoundPart> = BTreeMap::new();
        let mut move_program = None;
        for follow_up in follow_ups {
            let FollowUp::MoveRow { partition, hash, key, image } = follow_up else {
                rest.push(follow_up);
                continue;
            };
            let insert = move_program
                .get_or_insert_with(|| Arc::new(insert_program(&program.table, program.unique_entries.clone())));
            let part = moved.entry(partition).or_insert_with(|| {
                let id = PartitionId { table: program.table.definition.id, index: partition };
                begin_part(id, insert, Part::Moved, buffers)
            });
            let row = KeyedImage { key: HashedKey { hash, key: &key }, image: &image };
            input::push_image(&mut part.input, row);
        }
        if !moved.is_empty() {
            return Ok((vec![moved.into_values().collect()], rest));
        }
        Ok((self.plan_entries(program, rest, buffers)?, Vec::new()))
    }

    fn plan_entries(
        &mut self,
        program: &WriteProgram,
        follow_ups: Vec<FollowUp>,
        buffers: &mut BufferPool,
    ) -> Result<Vec<Vec<RoundPart>>, Box<Error>> {
        let mut last_round: BTreeMap<(usize, Vec<u8>), u32> = BTreeMap::new();
        let mut rounds: BTreeMap<(usize, u32), BTreeMap<PartitionId, RoundPart>> = BTreeMap::new();
        for follow_up in follow_ups {
            let (index, key, insert) = match follow_up {
                FollowUp::DeleteEntry { index, key } => (index, key, None),
                FollowUp::InsertEntry { index, key, row_reference, shown } => {
                    (index, key, Some((row_reference, shown)))
                }
                FollowUp::MoveRow { .. } | FollowUp::ParentKey { .. } | FollowUp::ChildKey { .. } => continue,
            };
            let place = program.unique_entries.iter().position(|(id, _)| *id == index);
            let Some(place) = place else { return Err(no_entries(program, index)) };
            let table = &program.unique_entries[place].1;
            let programs = self.entry_programs.entry(table.definition.id).or_insert_with(|| EntryPrograms::new(table));
            let mut entry_key = Vec::with_capacity(key.len() + 2);
            append_value(table.definition.columns[0].column_type, false, ValueRef::Bytes(&key), &mut entry_key);
            let hash = key_hash(&entry_key);
            let partition = partition_of(hash, table.definition.partition_count);
            let partition = PartitionId { table: table.definition.id, index: partition };
            let round = round_after(last_round.get(&(place, entry_key.clone())).copied(), insert.is_some());
            last_round.insert((place, entry_key.clone()), round);
            let entry_program = match (insert.is_some(), &program.action) {
                (false, _) => &programs.delete,
                (true, WriteAction::InsertOrClaim) => &programs.insert_or_claim,
                (true, _) => &programs.insert,
            };
            let part = rounds.entry((place, round)).or_default().entry(partition).or_insert_with(|| {
                let name = program.table.definition.index(index).map_or("", |index| &index.name);
                let part = Part::Entries { index_name: name.into(), shown: Vec::new() };
                begin_part(partition, entry_program, part, buffers)
            });
            let hashed = HashedKey { hash, key: &entry_key };
            let Some((row_reference, text)) = insert else {
                input::push_key(&mut part.input, hashed);
                continue;
            };
            let mut image = Vec::new();
            table.row_format.encode(&[ValueRef::Bytes(&key), ValueRef::Bytes(&row_reference)], &mut image)?;
            input::push_image(&mut part.input, KeyedImage { key: hashed, image: &image });
            if let Part::Entries { shown, .. } = &mut part.part {
                shown.push(text);
            }
        }
        Ok(rounds.into_values().map(|parts| parts.into_values().collect()).collect())
    }
}

/// The first round after `last` for this kind of entry.
fn round_after(last: Option<u32>, is_insert: bool) -> u32 {
    let first = last.map_or(0, |last| last + 1);
    if (first % 2 == 1) == is_insert { first } else { first + 1 }
}

fn begin_part(partition: PartitionId, program: &Arc<WriteProgram>, part: Part, buffers: &mut BufferPool) -> RoundPart {
    let mut bytes = buffers.take(512);
    input::begin(&mut bytes, b"");
    RoundPart { partition, program: Arc::clone(program), input: bytes, part }
}

#[cold]
fn no_entries(program: &WriteProgram, index: IndexId) -> Box<Error> {
    let TableId(table) = program.table.definition.id;
    let message = format!("The plan for table {table} does not know the entries of unique index {index}");
    Error::new(ErrorCode::TableDefinitionChanged, message)
}

impl Statement {
    /// Keeps what the rows of a part ask for: foreign keys come after the rest, cascades have programs of their own.
    pub fn take_follow_ups(&mut self, part: usize, follow_ups: Box<[FollowUp]>) {
        if follow_ups.is_empty() {
            return;
        }
        if let Some(Part::Cascade { program, path }) = self.parts.get(part) {
            let (program, path) = (Arc::clone(program), path.clone());
            return self.cascades.push_back(Cascade { program, path, follow_ups: follow_ups.into_vec() });
        }
        let Some(program) = self.program.as_ref().filter(|program| program.foreign_keys.is_some()) else {
            return self.follow_ups.extend(follow_ups);
        };
        let mut foreign = Vec::new();
        for follow_up in follow_ups {
            match follow_up {
                FollowUp::ParentKey { .. } | FollowUp::ChildKey { .. } => foreign.push(follow_up),
                other => self.follow_ups.push(other),
            }
        }
        if foreign.is_empty() {
            return;
        }
        // All parts of the statement are one change, so that each parent is looked for once.
        match self.cascades.front_mut() {
            Some(first) if first.path.is_empty() => first.follow_ups.extend(foreign),
            _ => {
                let program = Arc::clone(program);
                self.cascades.push_front(Cascade { program, path: Vec::new(), follow_ups: foreign });
            }
        }
    }

    /// An entry that exists already is told in the words of the base table. Entries are inserted in order, so the
    /// number of those accepted before is the place of the one refused.
    pub fn say_entry(&self, part: usize, accepted: u32, error: Box<Error>) -> Box<Error> {
        let Some(Part::Entries { index_name, shown }) = self.parts.get(part) else { return error };
        if error.code != ErrorCode::DuplicateEntry {
            return error;
        }
        let table = self.program.as_ref().map_or("", |program| &program.table.definition.name);
        let text = shown.get(accepted as usize).map_or("", |text| text);
        Error::new(ErrorCode::DuplicateEntry, format!("Duplicate entry '{text}' for key '{table}.{index_name}'"))
    }
}
