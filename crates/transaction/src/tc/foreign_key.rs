//! Foreign keys: parents are looked up and locked in shared mode; children are looked up, changed or deleted.
//! All of this belongs to the statement and is undone with it.
//!
//! The follow-ups `ParentKey` and `ChildKey` run after unique entries, one constraint after the other. Each
//! step has its own statement number, so that it can see rows that an earlier step has written. Cascades are
//! processed in order of arrival. Each change knows the tables through which it was reached, and therefore
//! its depth.
//!
//! A written child holds a shared lock on its parent's key until its transaction ends, and a deleted parent
//! is locked before its children are looked up. If a child is inserted while its parent is deleted, one of
//! the two transactions therefore waits for the other and then sees its effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_expression::Expression;
use junctor_kernel::{BufferPool, Context, Outbox};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{
    ChildKey, ForeignKeyWork, ParentKey, ParentLookup, ReferentialAction, RowWrite, no_parent,
};
use junctor_model::id::{ColumnNumber, IndexId, PartitionId, TableId};
use junctor_model::key::{append_escaped, complement_descending};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{IndexKind, TableDefinition, TableLayout};
use junctor_signals::Signal;
use junctor_signals::input::{self, HashedKey, KeyRange};
use junctor_signals::program::{
    Access, Assignment, AssignmentKind, LockMode, Output, WhenLocked, WriteAction, WriteProgram,
};
use junctor_signals::write_rows::FollowUp;

use super::block::TcBlock;
use super::state::{
    Cascade, KeyRoundKind, KeyRounds, Part, PlannedRound, Round, RoundCheck, RoundPart, Statement, TransactionHandle,
};

/// Maximum depth of cascades, as in InnoDB. A deeper cascade gets error 3008.
const CASCADE_DEPTH_MAX: usize = 15;

/// Maximum number of keys in one round, if the program has no values that differ by key.
const KEYS_PER_ROUND: usize = 1024;

/// Maximum number of keys of a statement that are handled in one step, if splitting is allowed.
const FOREIGN_KEYS_AT_ONCE_MAX: usize = 4096;

/// A parent key that no longer exists.
#[derive(Debug)]
struct RemovedKey {
    key: Vec<u8>,
    /// The new values; `None` if the row was deleted.
    new: Option<Vec<u8>>,
    /// Whether the row was its own child.
    is_own: bool,
}

/// Which rows a round must find for the constraint to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// This many parents.
    Parents(u64),
    /// No child.
    NoChild,
}

/// The tables of a cascade, starting with the table that the client's statement changes.
#[derive(Clone, Copy)]
struct CascadePath<'a> {
    before: &'a [TableId],
    /// The table whose rows were changed last.
    own: TableId,
}

impl CascadePath<'_> {
    fn contains(&self, table: TableId) -> bool {
        self.own == table || self.before.contains(&table)
    }

    fn whole(&self) -> Vec<TableId> {
        self.before.iter().copied().chain([self.own]).collect()
    }
}

impl TcBlock {
    /// Begins the next foreign-key step. Returns false if none is left.
    pub(super) fn run_foreign_keys(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let Some(cascade) = self.record(handle).running.cascades.pop_front() else { return false };
        let Cascade { program, path, mut follow_ups } = cascade;
        if follow_ups.len() > FOREIGN_KEYS_AT_ONCE_MAX && may_be_split(&program, &path) {
            let last_part = follow_ups.split_off(follow_ups.len() - FOREIGN_KEYS_AT_ONCE_MAX);
            let rest = Cascade { program: Arc::clone(&program), path: path.clone(), follow_ups };
            self.record(handle).running.cascades.push_front(rest);
            follow_ups = last_part;
        }
        let is_foreign =
            |follow_up: &FollowUp| matches!(follow_up, FollowUp::ParentKey { .. } | FollowUp::ChildKey { .. });
        if follow_ups.iter().all(is_foreign) {
            match self.plan_foreign_keys(&program, &path, follow_ups, context.buffers) {
                Ok(rounds) => self.record(handle).running.rounds.extend(rounds),
                Err(error) => self.record(handle).running.error = Some(error),
            }
        } else {
            // Moved rows and unique entries of a cascade come before its foreign keys.
            let rest = follow_ups.extract_if(.., |follow_up| is_foreign(follow_up)).collect::<Vec<_>>();
            if !rest.is_empty() {
                let cascade = Cascade { program: Arc::clone(&program), path, follow_ups: rest };
                self.record(handle).running.cascades.push_front(cascade);
            }
            self.plan_follow_ups(handle, &program, follow_ups, context.buffers);
        }
        self.advance_statement(handle, context, outbox);
        true
    }

    /// Plans the rounds of one change, ordered by constraint.
    fn plan_foreign_keys(
        &mut self,
        program: &Arc<WriteProgram>,
        path: &[TableId],
        follow_ups: Vec<FollowUp>,
        buffers: &mut BufferPool,
    ) -> Result<Vec<PlannedRound>> {
        let Some(work) = &program.foreign_keys else { return Ok(Vec::new()) };
        let mut parents: BTreeMap<u16, BTreeSet<Vec<u8>>> = BTreeMap::new();
        let mut children: BTreeMap<u16, Vec<RemovedKey>> = BTreeMap::new();
        for follow_up in follow_ups {
            match follow_up {
                FollowUp::ParentKey { position, key } => {
                    parents.entry(position).or_default().insert(key);
                }
                FollowUp::ChildKey { position, key, new, is_own } => {
                    children.entry(position).or_default().push(RemovedKey { key, new, is_own });
                }
                _ => {}
            }
        }
        let mut rounds = Vec::new();
        for (position, keys) in parents {
            let Some(key) = work.parents.get(usize::from(position)) else {
                return Err(Error::table_definition_changed());
            };
            self.plan_parents(key, &keys, buffers, &mut rounds)?;
        }
        for (position, keys) in children {
            let Some(key) = work.children.get(usize::from(position)) else {
                return Err(Error::table_definition_changed());
            };
            let cascade = CascadePath { own: program.table.definition.id, before: path };
            self.plan_children(key, cascade, keys, &mut rounds)?;
        }
        Ok(rounds)
    }

    /// Plans shared locks on the parents of `keys`. If the keys are those of a whole unique index, they share
    /// one round. Otherwise each key takes a round.
    fn plan_parents(
        &self,
        key: &ParentKey,
        keys: &BTreeSet<Vec<u8>>,
        buffers: &mut BufferPool,
        rounds: &mut Vec<PlannedRound>,
    ) -> Result<()> {
        let Some(parent) = &key.parent else { return Err(no_parent(&key.shown)) };
        let (table, access) = match &parent.lookup {
            ParentLookup::Primary | ParentLookup::PrimaryAnywhere => (&parent.layout, Access::PrimaryKeys),
            ParentLookup::Unique(entries) => (entries, Access::PrimaryKeys),
            ParentLookup::Range(index) => (&parent.layout, Access::IndexRanges { index: *index, descending: false }),
        };
        let table = self.current(table.definition.id)?;
        let program = Arc::new(lock_program(&table, access));
        if let Access::IndexRanges { .. } = access {
            let keys = keys.iter().map(|key| (key.clone(), Vec::new())).collect();
            let kind = KeyRoundKind::Check(Expectation::Parents(1), key.shown.clone());
            rounds.push(PlannedRound::Keys(Box::new(KeyRounds {
                program,
                keys,
                kind,
                keys_each: 1,
                has_begun: false,
            })));
            return Ok(());
        }
        let is_entry = matches!(parent.lookup, ParentLookup::Unique(_));
        let mut parts: BTreeMap<u16, RoundPart> = BTreeMap::new();
        let mut entry_key = Vec::new();
        for key_bytes in keys {
            entry_key.clear();
            match is_entry {
                true => append_escaped(key_bytes, &mut entry_key),
                false => entry_key.extend_from_slice(key_bytes),
            }
            let hash = key_hash(&entry_key);
            let partitions = match parent.lookup {
                ParentLookup::PrimaryAnywhere => 0..table.definition.partition_count,
                _ => {
                    let index = partition_of(hash, table.definition.partition_count);
                    index..index + 1
                }
            };
            for index in partitions {
                let part = parts.entry(index).or_insert_with(|| {
                    begin_part(PartitionId { table: table.definition.id, index }, &program, Part::Checked, b"", buffers)
                });
                input::push_key(&mut part.input, HashedKey { hash, key: &entry_key });
            }
        }
        let expectation = Expectation::Parents(keys.len() as u64);
        let round = Round::checked(parts.into_values().collect(), expectation, &key.shown);
        rounds.push(PlannedRound::Parts(round));
        Ok(())
    }

    fn plan_children(
        &self,
        key: &ChildKey,
        cascade: CascadePath<'_>,
        keys: Vec<RemovedKey>,
        rounds: &mut Vec<PlannedRound>,
    ) -> Result<()> {
        let child = self.current(key.child.definition.id)?;
        let access = Access::IndexRanges { index: key.index, descending: false };
        let (deleted, changed): (Vec<_>, Vec<_>) = keys.into_iter().partition(|left| left.new.is_none());
        // A cascade of updates that returns to a table that it has already changed might never end, so the
        // action is RESTRICT there.
        let comes_back = cascade.contains(child.definition.id);
        let on_update = if comes_back { ReferentialAction::Restrict } else { key.on_update };
        for (keys, action, is_update) in [(deleted, key.on_delete, false), (changed, on_update, true)] {
            if keys.is_empty() {
                continue;
            }
            let with_values =
                |keys: Vec<RemovedKey>| keys.into_iter().map(|left| (left.key, left.new.unwrap_or_default()));
            let write = match action {
                // As in InnoDB, a row that is its own child blocks its change.
                ReferentialAction::NoAction | ReferentialAction::Restrict if keys.iter().any(|left| left.is_own) => {
                    return Err(has_children(&key.shown));
                }
                ReferentialAction::NoAction | ReferentialAction::Restrict => {
                    let program = Arc::new(lock_program(&child, access));
                    let kind = KeyRoundKind::Check(Expectation::NoChild, key.shown.clone());
                    let (keys, keys_each) = (with_values(keys).collect(), KEYS_PER_ROUND);
                    let all = KeyRounds { program, keys, kind, keys_each, has_begun: false };
                    rounds.push(PlannedRound::Keys(Box::new(all)));
                    continue;
                }
                ReferentialAction::Cascade if !is_update => WriteAction::Delete { ignore: false },
                ReferentialAction::Cascade => new_keys(&child.definition, &key.child_columns),
                ReferentialAction::SetNull => no_keys(&key.child_columns),
            };
            let path = cascade.whole();
            if path.len() > CASCADE_DEPTH_MAX {
                return Err(too_deep());
            }
            let program = Arc::new(self.cascade_program(&child, write, access, &key.child_columns)?);
            // New values are parameters of the program, so such a round has one key.
            let keys_each = if program.reads_parameters { 1 } else { KEYS_PER_ROUND };
            let keys = with_values(keys).collect();
            let all = KeyRounds { program, keys, kind: KeyRoundKind::Cascade(path), keys_each, has_begun: false };
            rounds.push(PlannedRound::Keys(Box::new(all)));
        }
        Ok(())
    }

    /// Returns the next planned round. Rounds over many keys are built one at a time, so they take little
    /// more memory than their keys. All of them share a statement number, so that a row whose key was just
    /// changed is not found again under its new key.
    pub(super) fn next_round(&mut self, handle: TransactionHandle, buffers: &mut BufferPool) -> Option<Round> {
        let mut rest = match self.record(handle).running.rounds.pop_front()? {
            PlannedRound::Parts(round) => return Some(round),
            PlannedRound::Keys(rest) => rest,
        };
        let count = rest.keys.len().min(rest.keys_each);
        let keys: Vec<(Vec<u8>, Vec<u8>)> = rest.keys.drain(..count).collect();
        let parameters = keys.first().filter(|_| rest.keys_each == 1).map_or(&[][..], |(_, new)| new.as_slice());
        let key_bytes = keys.iter().map(|(key, _)| key.as_slice());
        let mut parts = self.range_parts(&rest.program, key_bytes, parameters, buffers);
        let is_new_statement = !std::mem::replace(&mut rest.has_begun, true);
        let check = match &rest.kind {
            KeyRoundKind::Check(expectation, shown) => {
                Some(RoundCheck { expectation: *expectation, shown: shown.clone(), matched: 0 })
            }
            KeyRoundKind::Cascade(path) => {
                for part in &mut parts {
                    part.part = Part::Cascade { program: Arc::clone(&rest.program), path: path.clone() };
                }
                None
            }
        };
        if !rest.keys.is_empty() {
            self.record(handle).running.rounds.push_front(PlannedRound::Keys(rest));
        }
        Some(Round { parts, check, is_new_statement })
    }

    /// One part for each partition of a table, each with the ranges of all keys.
    fn range_parts<'k>(
        &self,
        program: &Arc<WriteProgram>,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        parameters: &[u8],
        buffers: &mut BufferPool,
    ) -> Vec<RoundPart> {
        let definition = &program.table.definition;
        let turned = match program.access {
            Access::IndexRanges { index, .. } => {
                definition.index(index).filter(|index| !index.attributes.descending.is_empty())
            }
            _ => None,
        };
        let part = |index| {
            let partition = PartitionId { table: definition.id, index };
            let mut part = begin_part(partition, program, Part::Checked, parameters, buffers);
            for key in keys.clone() {
                let mut key = std::borrow::Cow::Borrowed(key);
                if let Some(index) = turned {
                    complement_descending(&definition.columns, index, key.to_mut());
                }
                let key = &*key;
                let range = KeyRange { lower: Some((key, true)), upper: Some((key, true)) };
                input::push_range(&mut part.input, range);
            }
            part
        };
        (0..definition.partition_count).map(part).collect()
    }

    /// The program with which a cascade changes rows of a child.
    fn cascade_program(
        &self,
        child: &Arc<TableLayout>,
        action: WriteAction,
        access: Access,
        columns: &[ColumnNumber],
    ) -> Result<WriteProgram> {
        let definition = &child.definition;
        let write = match &action {
            WriteAction::Delete { .. } => RowWrite::Delete,
            _ => RowWrite::Update(columns),
        };
        let reads_parameters = match &action {
            WriteAction::Update { assignments, .. } => assignments.iter().any(|one| !one.value.is_constant()),
            _ => false,
        };
        Ok(WriteProgram {
            reads_parameters,
            unique_entries: self.entries_of(definition, write)?,
            foreign_keys: ForeignKeyWork::of(&self.catalog.dictionary, definition, write).map(Arc::new),
            ..WriteProgram::new(child, action, access)
        })
    }

    /// The hidden tables of the unique indexes that a write may change.
    fn entries_of(
        &self,
        definition: &TableDefinition,
        write: RowWrite<'_>,
    ) -> Result<Vec<(IndexId, Arc<TableLayout>)>> {
        let touches = |columns: &[ColumnNumber]| match write {
            RowWrite::Update(changed) => columns.iter().any(|column| changed.contains(column)),
            _ => true,
        };
        let all = touches(&definition.primary().columns);
        let mut found = Vec::new();
        for index in &definition.indexes {
            if let IndexKind::Unique { entries, .. } = index.kind
                && (all || touches(&index.columns))
            {
                found.push((index.id, self.current(entries)?));
            }
        }
        Ok(found)
    }

    /// The published version of a table.
    fn current(&self, table: TableId) -> Result<Arc<TableLayout>> {
        self.catalog.dictionary.table(table).cloned().ok_or_else(Error::table_definition_changed)
    }
}

/// Whether foreign-key follow-ups may run in portions. A cascade that assigns new keys may not, because a
/// later portion would find the changed children again under their new keys.
fn may_be_split(program: &WriteProgram, path: &[TableId]) -> bool {
    let is_update = matches!(program.action, WriteAction::Update { .. });
    let has_children = program.foreign_keys.as_ref().is_some_and(|work| !work.children.is_empty());
    path.is_empty() && !(is_update && has_children)
}

/// Sets the children's columns to the new values, which are parameters.
fn new_keys(definition: &TableDefinition, columns: &[ColumnNumber]) -> WriteAction {
    let assignments = (0..).zip(columns).map(|(ordinal, column)| {
        let defined = &definition.columns[usize::from(column.0)];
        let result = Expression::column(*column, defined, &defined.name).result;
        Assignment {
            column: *column,
            value: Expression::parameter_of_type(ordinal, result),
            kind: AssignmentKind::Always,
        }
    });
    WriteAction::Update { assignments: assignments.collect(), ignore: false }
}

/// Sets the children's columns to NULL.
fn no_keys(columns: &[ColumnNumber]) -> WriteAction {
    let assignments = columns.iter().map(|column| Assignment {
        column: *column,
        value: Expression::null(),
        kind: AssignmentKind::Always,
    });
    WriteAction::Update { assignments: assignments.collect(), ignore: false }
}

/// Locks rows in shared mode and returns only their number.
fn lock_program(table: &Arc<TableLayout>, access: Access) -> WriteProgram {
    let action = WriteAction::LockRead {
        mode: LockMode::Shared,
        when_locked: WhenLocked::Wait,
        output: Output::Aggregates(Vec::new()),
        is_strict: false,
    };
    WriteProgram::new(table, action, access)
}

fn begin_part(
    partition: PartitionId,
    program: &Arc<WriteProgram>,
    part: Part,
    parameters: &[u8],
    buffers: &mut BufferPool,
) -> RoundPart {
    let mut bytes = buffers.take(512);
    input::begin(&mut bytes, parameters);
    RoundPart { partition, program: Arc::clone(program), input: bytes, part }
}

impl Statement {
    /// Compares the rows that a round found with those that it must find.
    pub fn check_found(&mut self, check: &RoundCheck) {
        let error = match check.expectation {
            Expectation::Parents(count) if check.matched < count => no_parent(&check.shown),
            Expectation::NoChild if check.matched > 0 => has_children(&check.shown),
            Expectation::Parents(_) | Expectation::NoChild => return,
        };
        self.error.get_or_insert(error);
    }
}

impl PlannedRound {
    /// A round of these parts, without a foreign-key check.
    pub fn plain<K>(parts: BTreeMap<K, Vec<RoundPart>>) -> PlannedRound {
        let parts = parts.into_values().flatten().collect();
        PlannedRound::Parts(Round { parts, check: None, is_new_statement: false })
    }
}

impl Round {
    fn checked(parts: Vec<RoundPart>, expectation: Expectation, shown: &str) -> Round {
        let check = RoundCheck { expectation, shown: shown.into(), matched: 0 };
        Round { parts, check: Some(check), is_new_statement: true }
    }
}

#[cold]
fn has_children(shown: &str) -> Box<Error> {
    let message = format!("Cannot delete or update a parent row: a foreign key constraint fails ({shown})");
    Error::new(ErrorCode::RowIsReferenced, message)
}

#[cold]
fn too_deep() -> Box<Error> {
    let message = format!("Foreign key cascade delete/update exceeds max depth of {CASCADE_DEPTH_MAX}.");
    Error::new(ErrorCode::ForeignKeyTooDeep, message)
}
