//! Joins by hash, and by the keys of the left rows while they are few.
//!
//! If the right rows exceed the memory of the query, the rows of both sides go to the temporary file,
//! divided by their keys, and the parts are joined in pairs. Rows that cannot be divided are joined in
//! blocks: every left batch meets one block of right rows after the other. That concerns joins without keys,
//! or with keys in which NULL equals anything. Both change the order of the rows. If that order matters, the
//! right rows therefore stay in memory.

use std::sync::Arc;

use junctor_model::error::Result;
use junctor_model::value::ValueRef;
use junctor_signals::key_filter::KeyFilterBuilder;

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::lookup_keys::LookupKeys;
use super::scan::Scan;
use super::spool::{DIVISIONS_MAX, Parts, Rows, Spool, Spooled, key_at};
use super::{Input, Operator, Run, Step, append_key};
use crate::execute::memory::Account;
use crate::plan::tree::{JoinForm, JoinKey, JoinPlan, NullMatch};

const NONE: u32 = u32::MAX;
/// The byte of a key that is left out. Other keys begin with 0 or 1.
const LEFT_OUT: u8 = 2;
/// Maximum number of left rows whose keys one read looks up.
const LOOKUP_KEYS_MAX: usize = 1024;
/// Bytes of a right row without its values.
const ROW_BYTES: usize = 12;

/// What the join does next.
#[derive(Debug)]
enum Phase {
    /// Takes left rows.
    Left,
    /// Reads the right rows with the keys of the left batch.
    Lookup(Scan),
    /// Reads all right rows.
    Build,
    /// Makes the filter of the right keys, from the given row on.
    FilterKeys(KeyFilterBuilder, usize),
    /// Moves the right rows in memory to the temporary file.
    Move(TableCursor),
    /// Divides the left rows.
    Divide,
    /// Loads a block of right rows.
    Block,
    /// Pairs the left batch with the right rows.
    Probe,
}

/// Right rows by their keys. Rows with equal keys are a list.
///
/// If NULL equals anything in a key (NOT IN), a row with NULL there is listed by its other keys. It is listed
/// again without each set of keys that may be NULL in a left row.
#[derive(Debug, Default)]
struct RightRows {
    batches: Vec<Batch>,
    /// Batch, row, and the next row with the same key.
    rows: Vec<(u32, u32, u32)>,
    heads: KeyTable,
    /// The sets of keys that are NULL in a row, as bits.
    null_sets: u32,
}

/// A set of the keys in which NULL equals anything, as bits.
type KeySet = u8;

/// A place among the right rows: part and entry of the keys, and row. `None` before the first row of an
/// entry.
#[derive(Debug, Default)]
struct TableCursor {
    entry: (usize, usize),
    row: Option<u32>,
}

/// Right rows in the temporary file that are loaded block by block.
#[derive(Debug)]
struct Blocks {
    spool: Spool,
    /// Whether the records have the keys of their rows. Otherwise they are evaluated for each block.
    has_keys: bool,
    /// The table has the records from `start` up to `next`.
    start: usize,
    next: usize,
}

/// Rows of the left side, with their keys if they come from a part.
#[derive(Debug)]
struct LeftRows {
    batch: Batch,
    keys: Option<Batch>,
}

#[derive(Debug)]
pub(super) struct Join {
    left: Rows,
    right: Rows,
    plan: Arc<JoinPlan>,
    frame: Arc<Frame>,
    phase: Phase,
    table: RightRows,
    is_built: bool,
    looked_up: usize,
    /// Left rows that wait for more, so that one read has the keys of many.
    few: Option<Batch>,
    batch: Option<LeftRows>,
    /// The row of the batch, and its next candidate. `None` before its first candidate is known.
    row: usize,
    candidate: Option<u32>,
    /// The sets of keys without which the row's candidates are still to be looked up, as bits.
    lists: u32,
    /// The keys in which a left row may have NULL that equals anything.
    left_nullable: KeySet,
    /// Whether the rows of the batch have partners.
    matched: Vec<bool>,
    /// How often the rows were divided, and the parts of both sides while they are divided.
    division: u32,
    others: Option<[Parts; 2]>,
    blocks: Option<Blocks>,
    /// Pairs of parts that are left, with how often they were divided.
    parts: Vec<([Spool; 2], u32)>,
    account: Account,
}

/// The next rows of a side, with their keys if they come from a part.
enum Taken {
    Rows(Batch, Option<Batch>),
    Wait,
    End,
}

impl Join {
    pub fn new((left, right): (Input, Input), plan: &Arc<JoinPlan>, frame: &Arc<Frame>) -> Join {
        Join {
            left: Rows::Input(left),
            right: Rows::Input(right),
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            phase: Phase::Left,
            table: RightRows::default(),
            is_built: false,
            looked_up: 0,
            few: None,
            batch: None,
            row: 0,
            candidate: None,
            lists: 0,
            left_nullable: left_nullable(&plan.keys),
            matched: Vec::new(),
            division: 0,
            others: None,
            blocks: None,
            parts: Vec::new(),
            account: Account::default(),
        }
    }

    /// Adds right rows to the table. Returns their memory.
    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: Batch, keys: Option<&Batch>) -> Result<usize> {
        let mut key = Vec::new();
        let (before, rows_before) = (self.table.heads.memory(), self.table.rows.len());
        let number = self.table.batches.len() as u32;
        for row in 0..batch.len() {
            if let Some(keys) = keys {
                self.table.null_sets |= 1;
                self.table.list((number, row as u32), key_at(keys, row));
                continue;
            }
            let Some(nulls) = key_of_side(&self.plan.keys, (&batch, row), (false, 0), run, &mut key)? else {
                continue;
            };
            self.table.null_sets |= 1 << nulls;
            self.table.list((number, row as u32), &key);
            let more = self.left_nullable & !nulls;
            let mut left_out = more;
            while left_out != 0 {
                key_of_side(&self.plan.keys, (&batch, row), (false, left_out), run, &mut key)?;
                self.table.list((number, row as u32), &key);
                left_out = (left_out - 1) & more;
            }
        }
        let listed = self.table.rows.len() - rows_before;
        let bytes = batch.memory() + ROW_BYTES * listed + self.table.heads.memory() - before;
        self.table.batches.push(batch);
        Ok(bytes)
    }

    /// Begins with a left batch: starts the read of its right rows, unless they are in memory.
    fn prepare(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<Phase> {
        if self.is_built {
            return Ok(Phase::Probe);
        }
        self.clear();
        let looked_up = self.looked_up;
        let Some(lookup) = self.plan.lookup.as_ref().filter(|lookup| looked_up < lookup.rows_max) else {
            return Ok(Phase::Build);
        };
        self.looked_up += batch.len();
        let parts = || lookup.keys.iter().map(|place| &self.plan.keys[*place]);
        let mut keys = LookupKeys::new(lookup.keys.len(), batch.len());
        for row in 0..batch.len() {
            run.scratch.reset();
            keys.add(parts(), batch.row(row), run.scratch)?;
        }
        Ok(match keys.into_lists() {
            None => Phase::Probe,
            Some(lists) => Phase::Lookup(Scan::of_keys(lookup.leaf, &self.frame, lists)),
        })
    }

    fn clear(&mut self) {
        self.table = RightRows::default();
        self.account.clear();
    }

    /// Takes right rows. Returns false if they must be waited for, or the step has done enough.
    fn build(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if run.spill.is_full() {
            return Ok(false);
        }
        let (batch, keys) = match take(&mut self.right, run)? {
            Taken::Rows(batch, keys) => (batch, keys),
            Taken::Wait => return Ok(false),
            Taken::End => {
                self.finish_build(run)?;
                return Ok(true);
            }
        };
        let rows = batch.len();
        if let Some(blocks) = self.blocks.as_mut().filter(|blocks| !blocks.has_keys) {
            blocks.spool.put(run, &batch)?;
        } else if self.others.is_some() || self.blocks.is_some() {
            let mut own = Vec::new();
            for row in 0..rows {
                let key = match &keys {
                    Some(keys) => key_at(keys, row),
                    None if key_of_side(&self.plan.keys, (&batch, row), (false, 0), run, &mut own)?.is_some() => {
                        own.as_slice()
                    }
                    None => continue,
                };
                self.put_right(run, (&batch, row), key)?;
            }
        } else {
            let bytes = self.add(run, batch, keys.as_ref())?;
            if self.frame.keeps_order {
                self.account.hold(run.memory, bytes)?;
            } else if !self.account.try_hold(run.memory, bytes) {
                self.account.take(run.memory, bytes);
                self.spill();
            }
        }
        Ok(!run.is_spent(rows))
    }

    /// Begins to move the right rows to the temporary file.
    fn spill(&mut self) {
        let is_divisible =
            !self.plan.keys.is_empty() && self.plan.keys.iter().all(|key| key.nulls != NullMatch::Anything);
        match is_divisible && self.division < DIVISIONS_MAX {
            true => {
                let parts = || Parts::new(&self.frame, self.division);
                self.others = Some([parts(), parts()]);
            }
            false => {
                let spool = Spool::new(&self.frame, 1);
                let has_keys = matches!(self.right, Rows::Part(_));
                self.blocks = Some(Blocks { spool, has_keys, start: 0, next: 0 });
            }
        }
        self.phase = Phase::Move(TableCursor::default());
    }

    /// Puts a right row into the temporary file.
    fn put_right(&mut self, run: &mut Run<'_, '_, '_>, row: (&Batch, usize), key: &[u8]) -> Result<()> {
        match (&mut self.others, &mut self.blocks) {
            (Some([_, right]), _) => right.push(run, Some(row), key),
            (None, Some(blocks)) => blocks.spool.push(run, Some(row), std::iter::once(ValueRef::Bytes(key))),
            (None, None) => Ok(()),
        }
    }

    /// Moves rows of the table to the temporary file. Returns false if it must go on later.
    fn move_rows(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if let Some(blocks) = self.blocks.as_mut().filter(|blocks| !blocks.has_keys) {
            while let Some(batch) = self.table.batches.pop() {
                blocks.spool.put(run, &batch)?;
                if run.is_spent(batch.len()) || run.spill.is_full() {
                    return Ok(false);
                }
            }
            self.clear();
            self.phase = Phase::Build;
            return Ok(true);
        }
        let Phase::Move(cursor) = &mut self.phase else { return Ok(true) };
        let mut cursor = std::mem::take(cursor);
        let table = std::mem::take(&mut self.table);
        let mut moved = Ok(());
        let mut is_over = true;
        while let Some((key, head)) = table.heads.entry(&mut cursor.entry) {
            let place = cursor.row.unwrap_or(head);
            if place == NONE {
                cursor.entry.1 += 1;
                cursor.row = None;
                continue;
            }
            if run.rows_left == 0 || run.spill.is_full() {
                is_over = false;
                break;
            }
            let (batch, row, next) = table.rows[place as usize];
            moved = self.put_right(run, (&table.batches[batch as usize], row as usize), key);
            if moved.is_err() {
                break;
            }
            cursor.row = Some(next);
            run.is_spent(1);
        }
        if !is_over {
            self.table = table;
            self.phase = Phase::Move(cursor);
            return Ok(false);
        }
        moved?;
        self.account.clear();
        self.phase = Phase::Build;
        Ok(true)
    }

    /// All right rows have arrived.
    fn finish_build(&mut self, run: &mut Run<'_, '_, '_>) -> Result<()> {
        self.right = Rows::End;
        self.is_built = true;
        self.phase = Phase::Probe;
        if self.others.is_some() {
            self.phase = Phase::Divide;
        } else if self.blocks.is_none()
            && self.division == 0
            && self.plan.key_filter.is_some()
            && let Some(filter) = KeyFilterBuilder::new(self.table.rows.len())
        {
            self.phase = Phase::FilterKeys(filter, 0);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.spool.seal(run)?;
            if let Some(left) = self.batch.take() {
                self.begin_blocks(left);
            }
        }
        Ok(())
    }

    /// Adds keys of right rows to the filter for the scan of the left rows. Returns false if it must go on
    /// later.
    fn filter_keys(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        let Phase::FilterKeys(mut filter, mut next) = std::mem::replace(&mut self.phase, Phase::Left) else {
            return Ok(true);
        };
        let Some(wanted) = self.plan.key_filter else { return Ok(true) };
        let key = &self.plan.keys[wanted.key];
        let mut bytes = Vec::new();
        while let Some((batch, row, _)) = self.table.rows.get(next) {
            run.scratch.reset();
            let values = self.table.batches[*batch as usize].row(*row as usize);
            let value = key.right.evaluate(None, values, run.scratch)?;
            filter.add(value, key.collation, &mut bytes);
            next += 1;
            if run.is_spent(1) {
                self.phase = Phase::FilterKeys(filter, next);
                return Ok(false);
            }
        }
        let filters = &mut run.leaves[wanted.leaf].key_filters;
        if filters.len() <= wanted.number {
            filters.resize(wanted.number + 1, None);
        }
        filters[wanted.number] = Some(filter.finish());
        Ok(true)
    }

    /// Begins to pair a left batch with blocks.
    fn begin_blocks(&mut self, left: LeftRows) {
        let is_partial = |blocks: &&mut Blocks| blocks.start > 0 || blocks.next < blocks.spool.records();
        if let Some(blocks) = self.blocks.as_mut().filter(is_partial) {
            (blocks.start, blocks.next) = (0, 0);
            self.clear();
        }
        self.batch = Some(left);
        self.phase = Phase::Block;
    }

    /// Loads the next block. Returns false if it must be waited for.
    fn load_block(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        while let Some(blocks) = &mut self.blocks {
            let [batch, keys] = match blocks.spool.load(run, blocks.next)? {
                Spooled::Rows(batches) => batches,
                Spooled::Wait => return Ok(false),
                Spooled::End => break,
            };
            blocks.next += 1;
            run.is_spent(batch.len());
            let keys = blocks.has_keys.then_some(&keys);
            let bytes = self.add(run, batch, keys)?;
            if !self.account.try_hold(run.memory, bytes) {
                self.account.take(run.memory, bytes);
                break;
            }
        }
        self.phase = Phase::Probe;
        Ok(true)
    }

    /// Goes on with the next block for a left batch.
    fn next_block(&mut self, left: LeftRows) {
        if let Some(blocks) = &mut self.blocks {
            blocks.start = blocks.next;
        }
        self.clear();
        (self.row, self.candidate, self.lists) = (0, None, 0);
        self.batch = Some(left);
        self.phase = Phase::Block;
    }

    /// Whether the table has the last right rows for the left batch.
    fn is_last_block(&self) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| blocks.next == blocks.spool.records())
    }

    /// Divides left rows. Returns those that have no partner.
    fn divide(&mut self, run: &mut Run<'_, '_, '_>, left: &LeftRows) -> Result<Batch> {
        let mut out = Batch::new(&self.frame);
        let Some([left_parts, right_parts]) = &mut self.others else { return Ok(out) };
        let mut own = Vec::new();
        for row in 0..left.batch.len() {
            let key = match &left.keys {
                Some(keys) => Some(key_at(keys, row)),
                None => {
                    let nulls = key_of_side(&self.plan.keys, (&left.batch, row), (true, 0), run, &mut own)?;
                    nulls.map(|_| own.as_slice())
                }
            };
            match key.filter(|key| !right_parts.is_empty(key)) {
                Some(key) => left_parts.push(run, Some((&left.batch, row)), key)?,
                None if keeps_unmatched(self.plan.form) => out.push_copy(&left.batch, row),
                None => {}
            }
        }
        run.is_spent(left.batch.len());
        Ok(out)
    }

    /// Goes to the next pair of parts. Returns false if none is left.
    fn begin_parts(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if let Some([left, right]) = self.others.take() {
            let ((left, division), (right, _)) = (left.seal(run)?, right.seal(run)?);
            let pairs = left.into_iter().zip(right).filter(|(left, _)| !left.is_empty());
            self.parts.extend(pairs.map(|(left, right)| ([left, right], division)));
        }
        self.clear();
        (self.left, self.right, self.blocks) = (Rows::End, Rows::End, None);
        let Some(([left, right], division)) = self.parts.pop() else { return Ok(false) };
        (self.left, self.right, self.division) = (Rows::Part(left), Rows::Part(right), division);
        self.phase = Phase::Build;
        Ok(true)
    }

    /// The first right row that may be a partner of the left row.
    fn first_candidate(&mut self, run: &mut Run<'_, '_, '_>, left: &LeftRows, key: &mut Vec<u8>) -> Result<u32> {
        self.lists = 0;
        if let Some(keys) = &left.keys {
            return Ok(self.table.heads.get(key_at(keys, self.row)).unwrap_or(NONE));
        }
        let left = &left.batch;
        let Some(nulls) = key_of_side(&self.plan.keys, (left, self.row), (true, 0), run, key)? else {
            return Ok(NONE);
        };
        for of_right in (0..KeySet::BITS).filter(|of_right| self.table.null_sets & 1 << of_right != 0) {
            self.lists |= 1 << (u32::from(nulls) | of_right);
        }
        if self.lists == 1 << nulls {
            self.lists = 0;
            return Ok(self.table.heads.get(key).unwrap_or(NONE));
        }
        self.next_list(run, left, key)
    }

    /// The first candidate of the next list that has one.
    fn next_list(&mut self, run: &mut Run<'_, '_, '_>, left: &Batch, key: &mut Vec<u8>) -> Result<u32> {
        while self.lists != 0 {
            let left_out = self.lists.trailing_zeros() as KeySet;
            self.lists &= self.lists - 1;
            key_of_side(&self.plan.keys, (left, self.row), (true, left_out), run, key)?;
            if let Some(head) = self.table.heads.get(key) {
                return Ok(head);
            }
        }
        Ok(NONE)
    }

    /// Pairs rows of the left batch. Returns the rows of the result.
    fn probe(&mut self, run: &mut Run<'_, '_, '_>, left: &LeftRows) -> Result<Batch> {
        let is_last = self.is_last_block();
        let form = self.plan.form;
        let takes_all = matches!(form, JoinForm::Inner | JoinForm::Left);
        let batch = &left.batch;
        let mut out = Batch::with_room_of(batch, batch.len() - self.row);
        let mut own = Vec::new();
        while self.row < batch.len() && !out.is_full() && run.rows_left > 0 {
            let candidate = match self.candidate {
                Some(candidate) => candidate,
                None if self.matched[self.row] && !takes_all => NONE,
                None => self.first_candidate(run, left, &mut own)?,
            };
            run.is_spent(1);
            if candidate == NONE && self.lists != 0 {
                self.candidate = Some(self.next_list(run, batch, &mut own)?);
                continue;
            }
            if candidate == NONE {
                if is_last && !self.matched[self.row] && keeps_unmatched(form) {
                    out.push_copy(batch, self.row);
                }
                self.row += 1;
                self.candidate = None;
                continue;
            }
            let (right, row, next) = self.table.rows[candidate as usize];
            self.candidate = Some(next);
            out.push_copy(batch, self.row);
            out.join(&self.table.batches[right as usize], row as usize, &self.plan.right_slots);
            let last = out.row(out.len() - 1);
            let fits = match form {
                JoinForm::NullAwareAnti => is_not_false(&self.plan, last, run)?,
                _ => run.all_true(&self.plan.others, last)?,
            };
            if !fits || !takes_all {
                out.pop();
            }
            if fits {
                self.matched[self.row] = true;
                if form == JoinForm::Semi {
                    out.push_copy(batch, self.row);
                }
                if !takes_all {
                    self.row += 1;
                    (self.candidate, self.lists) = (None, 0);
                }
            }
        }
        Ok(out)
    }

    /// Begins with the left rows that `batch` has.
    fn begin_batch(&mut self, rows: usize) {
        (self.row, self.candidate, self.lists) = (0, None, 0);
        self.matched.clear();
        self.matched.resize(rows, false);
    }

    /// Whether left rows are collected for a read by their keys. Values above the join that change the
    /// session see each row at once.
    fn collects(&self) -> bool {
        let looks_up = self.plan.lookup.as_ref().is_some_and(|lookup| self.looked_up < lookup.rows_max);
        looks_up && !self.is_built && !self.frame.keeps_order
    }

    /// Takes a left batch. Returns the step that ends the call, if one does.
    fn take_left(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<Step>> {
        let (batch, keys) = match take(&mut self.left, run)? {
            Taken::Rows(batch, None) if self.collects() => {
                let batch = match self.few.take() {
                    Some(mut few) => {
                        few.append(&batch);
                        few
                    }
                    None => batch,
                };
                // The number grows with the rows read, so that the first rows are not late.
                if batch.len() < self.looked_up.min(LOOKUP_KEYS_MAX) {
                    self.few = Some(batch);
                    return Ok(None);
                }
                (batch, None)
            }
            Taken::Rows(batch, keys) => (batch, keys),
            Taken::Wait => return Ok(Some(Step::Wait)),
            Taken::End => match self.few.take() {
                Some(few) => (few, None),
                None if self.begin_parts(run)? => return Ok(None),
                None => return Ok(Some(Step::Done)),
            },
        };
        self.begin_batch(batch.len());
        let left = LeftRows { batch, keys };
        if self.blocks.is_some() {
            self.begin_blocks(left);
            return Ok(None);
        }
        if self.others.is_none() {
            self.phase = self.prepare(run, &left.batch)?;
        }
        self.batch = Some(left);
        Ok(None)
    }
}

impl RightRows {
    /// Adds a row, by batch and number, to the list of a key.
    fn list(&mut self, (batch, row): (u32, u32), key: &[u8]) {
        let place = self.rows.len() as u32;
        let (head, _) = self.heads.insert(key, NONE);
        let next = std::mem::replace(head, place);
        self.rows.push((batch, row, next));
    }
}

impl Operator for Join {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            match &mut self.phase {
                Phase::Left if self.plan.reads_right_first && !self.is_built => self.phase = Phase::Build,
                Phase::Left => {
                    if let Some(step) = self.take_left(run)? {
                        return Ok(step);
                    }
                }
                Phase::Lookup(scan) => match scan.next(run)? {
                    Step::Batch(batch) => {
                        let bytes = self.add(run, batch, None)?;
                        self.account.hold(run.memory, bytes)?;
                    }
                    Step::Wait => return Ok(Step::Wait),
                    Step::Done => self.phase = Phase::Probe,
                },
                Phase::Build => {
                    if !self.build(run)? {
                        return Ok(Step::Wait);
                    }
                }
                Phase::FilterKeys(..) => {
                    if !self.filter_keys(run)? {
                        return Ok(Step::Wait);
                    }
                }
                Phase::Move(_) => {
                    if !self.move_rows(run)? {
                        return Ok(Step::Wait);
                    }
                }
                Phase::Divide => {
                    if run.spill.is_full() {
                        return Ok(Step::Wait);
                    }
                    let Some(left) = self.batch.take() else {
                        if let Some(step) = self.take_left(run)? {
                            return Ok(step);
                        }
                        continue;
                    };
                    let out = self.divide(run, &left)?;
                    if out.len() > 0 {
                        return Ok(Step::Batch(out));
                    }
                    if run.rows_left == 0 {
                        return Ok(Step::Wait);
                    }
                }
                Phase::Block => {
                    if !self.load_block(run)? {
                        return Ok(Step::Wait);
                    }
                }
                Phase::Probe => {
                    let Some(left) = self.batch.take() else {
                        self.phase = Phase::Left;
                        continue;
                    };
                    let out = self.probe(run, &left)?;
                    if self.row < left.batch.len() {
                        self.batch = Some(left);
                    } else if self.is_last_block() {
                        self.phase = Phase::Left;
                    } else {
                        self.next_block(left);
                    }
                    if out.len() > 0 {
                        return Ok(Step::Batch(out));
                    }
                    if run.rows_left == 0 {
                        return Ok(Step::Wait);
                    }
                }
            }
        }
    }
}

fn take(rows: &mut Rows, run: &mut Run<'_, '_, '_>) -> Result<Taken> {
    Ok(match rows {
        Rows::Input(input) => match input.next(run)? {
            Step::Batch(batch) => Taken::Rows(batch, None),
            Step::Wait => Taken::Wait,
            Step::Done => Taken::End,
        },
        Rows::Part(spool) => match spool.take(run)? {
            Spooled::Rows([batch, keys]) => Taken::Rows(batch, Some(keys)),
            Spooled::Wait => Taken::Wait,
            Spooled::End => Taken::End,
        },
        Rows::End => Taken::End,
    })
}

/// Whether the result has left rows without a partner.
fn keeps_unmatched(form: JoinForm) -> bool {
    matches!(form, JoinForm::Left | JoinForm::Anti | JoinForm::NullAwareAnti)
}

/// The key of a row of one side, without the keys of `left_out` and those in which it has NULL that equals
/// anything. Returns the set of the latter; `None` if another value is NULL and equals nothing.
fn key_of_side(
    keys: &[JoinKey],
    (batch, row): (&Batch, usize),
    (is_left, left_out): (bool, KeySet),
    run: &mut Run<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Option<KeySet>> {
    out.clear();
    run.scratch.reset();
    let mut nulls = 0;
    // The position among the keys in which NULL equals anything, as a bit.
    let mut bit: KeySet = 1;
    for key in keys {
        let side = if is_left { &key.left } else { &key.right };
        let value = side.evaluate(None, batch.row(row), run.scratch)?;
        match key.nulls {
            NullMatch::Nothing if value.is_null() => return Ok(None),
            NullMatch::Nothing | NullMatch::Null => append_key(value, key.collation, out),
            NullMatch::Anything => {
                if value.is_null() {
                    nulls |= bit;
                }
                match value.is_null() || left_out & bit != 0 {
                    true => out.push(LEFT_OUT),
                    false => append_key(value, key.collation, out),
                }
                bit <<= 1;
            }
        }
    }
    Ok(Some(nulls))
}

/// The keys in which a left row may have NULL that equals anything.
fn left_nullable(keys: &[JoinKey]) -> KeySet {
    let null_aware = keys.iter().filter(|key| key.nulls == NullMatch::Anything).enumerate();
    null_aware.filter(|(_, key)| key.left.result.nullable).fold(0, |set, (place, _)| set | 1 << place)
}

/// Whether the conditions are true or unknown.
fn is_not_false(plan: &JoinPlan, row: junctor_expression::Parameters<'_>, run: &mut Run<'_, '_, '_>) -> Result<bool> {
    run.scratch.reset();
    let Some((equality, others)) = plan.conditions.split_last() else { return Ok(true) };
    for condition in others {
        if !condition.is_true(None, row, run.scratch)? {
            return Ok(false);
        }
    }
    let value = equality.evaluate(None, row, run.scratch)?;
    Ok(!matches!(value, junctor_model::value::ValueRef::Int(0)))
}
