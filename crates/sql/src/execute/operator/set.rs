//! The rows of two inputs: UNION ALL, INTERSECT and EXCEPT.

use std::sync::Arc;

use junctor_model::error::Result;

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::spool::{Parts, Rows, Spool, Spooled, key_at};
use super::{Input, Operator, Run, Step, key_of};
use crate::execute::memory::Account;
use crate::parse::query::SetOperator;
use crate::plan::tree::SetPlan;

/// The rows of both inputs, one after the other.
#[derive(Debug)]
pub(super) struct Concat {
    left: Option<Input>,
    right: Input,
}

impl Concat {
    pub fn new(left: Input, right: Input) -> Concat {
        Concat { left: Some(left), right }
    }
}

impl Operator for Concat {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if let Some(left) = &mut self.left {
            match left.next(run)? {
                Step::Done => self.left = None,
                other => return Ok(other),
            }
        }
        self.right.next(run)
    }
}

/// INTERSECT and EXCEPT. The right rows are counted by their values first.
///
/// If the values exceed the memory of the query, rows with values that are not known go to the temporary
/// file, divided by their values. Parts of both sides are then processed in pairs in the same way.
#[derive(Debug)]
pub(super) struct Set {
    left: Rows,
    right: Rows,
    /// How often the rows were divided.
    division: u32,
    plan: Arc<SetPlan>,
    frame: Arc<Frame>,
    /// How many right rows with these values are left. Without ALL, the number also tells whether a left row
    /// was returned: see [`Self::keeps`].
    counts: KeyTable,
    /// Whether values that are not known go to the parts.
    is_full: bool,
    others: Option<[Parts; 2]>,
    /// Pairs of parts that are left, with how often they were divided.
    parts: Vec<([Spool; 2], u32)>,
    account: Account,
}

impl Set {
    pub fn new((left, right): (Input, Input), plan: &Arc<SetPlan>, frame: &Arc<Frame>) -> Set {
        Set {
            left: Rows::Input(left),
            right: Rows::Input(right),
            division: 0,
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            counts: KeyTable::default(),
            is_full: false,
            others: None,
            parts: Vec::new(),
            account: Account::default(),
        }
    }

    /// Counts a right row.
    fn count(&mut self, run: &mut Run<'_, '_, '_>, key: &[u8]) -> Result<()> {
        if self.is_full && self.counts.get(key).is_none() {
            return self.right_parts().push(run, None, key);
        }
        let (count, is_new) = self.counts.insert(key, 0);
        *count = count.saturating_add(1);
        if is_new {
            self.hold(run, key);
        }
        Ok(())
    }

    /// Accounts for a new key.
    fn hold(&mut self, run: &Run<'_, '_, '_>, key: &[u8]) {
        let bytes = KeyTable::entry_memory(key);
        if !self.account.try_hold(run.memory, bytes) {
            self.account.take(run.memory, bytes);
            self.is_full = true;
        }
    }

    fn both_parts(&mut self) -> &mut [Parts; 2] {
        let (frame, division) = (&self.frame, self.division);
        self.others.get_or_insert_with(|| [Parts::new(frame, division), Parts::new(frame, division)])
    }

    fn right_parts(&mut self) -> &mut Parts {
        &mut self.both_parts()[1]
    }

    /// Whether a left row is in the result. A row that cannot be judged goes to a part.
    fn keeps(&mut self, run: &mut Run<'_, '_, '_>, row: (&Batch, usize), key: &[u8]) -> Result<bool> {
        let is_intersection = self.plan.operator == SetOperator::Intersect;
        let remembers = !self.plan.all && !is_intersection;
        let Some(count) = self.counts.get(key) else {
            let has_right = self.is_full && self.others.as_ref().is_some_and(|[_, right]| !right.is_empty(key));
            if has_right || remembers && self.is_full {
                self.both_parts()[0].push(run, Some(row), key)?;
                return Ok(false);
            }
            if remembers {
                // From now on the values count as those of a right row.
                self.counts.insert(key, 1);
                self.hold(run, key);
            }
            return Ok(!is_intersection);
        };
        let is_right = count > 0;
        if is_right {
            match (self.plan.all, is_intersection) {
                (true, _) => *self.counts.insert(key, 0).0 -= 1,
                (false, true) => *self.counts.insert(key, 0).0 = 0,
                (false, false) => {}
            }
        }
        Ok(is_right == is_intersection && (is_right || self.plan.all))
    }

    /// Counts right rows. Returns whether all are counted, and `None` if they must be waited for.
    fn count_right(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<bool>> {
        let rows = match &mut self.right {
            Rows::End => return Ok(Some(true)),
            Rows::Input(input) => match input.next(run)? {
                Step::Batch(batch) => {
                    let mut key = Vec::new();
                    for row in 0..batch.len() {
                        key_of(&self.plan.values, batch.row(row), run.scratch, &mut key)?;
                        self.count(run, &key)?;
                    }
                    Some(batch.len())
                }
                Step::Wait => return Ok(None),
                Step::Done => None,
            },
            Rows::Part(spool) => match spool.take(run)? {
                Spooled::Rows([rows, keys]) => {
                    for row in 0..rows.len() {
                        self.count(run, key_at(&keys, row))?;
                    }
                    Some(rows.len())
                }
                Spooled::Wait => return Ok(None),
                Spooled::End => None,
            },
        };
        let Some(rows) = rows else {
            self.right = Rows::End;
            return Ok(Some(true));
        };
        Ok(if run.is_spent(rows) { None } else { Some(false) })
    }

    /// The left rows in the result among the next ones; `None` at their end.
    fn next_left(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<Step>> {
        let (mut rows, keys) = match &mut self.left {
            Rows::End => return Ok(None),
            Rows::Input(input) => match input.next(run)? {
                Step::Batch(batch) => (batch, None),
                Step::Wait => return Ok(Some(Step::Wait)),
                Step::Done => return Ok(None),
            },
            Rows::Part(spool) => match spool.take(run)? {
                Spooled::Rows([rows, keys]) => (rows, Some(keys)),
                Spooled::Wait => return Ok(Some(Step::Wait)),
                Spooled::End => return Ok(None),
            },
        };
        let mut key = Vec::new();
        let mut keep = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            match &keys {
                Some(keys) => keep.push(self.keeps(run, (&rows, row), key_at(keys, row))?),
                None => {
                    key_of(&self.plan.values, rows.row(row), run.scratch, &mut key)?;
                    keep.push(self.keeps(run, (&rows, row), &key)?);
                }
            }
        }
        run.is_spent(keep.len());
        rows.retain(&keep);
        Ok(Some(Step::Batch(rows)))
    }

    /// Goes to the next pair of parts. Returns false if none is left.
    fn begin_parts(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if let Some([left, right]) = self.others.take() {
            let ((left, division), (right, _)) = (left.seal(run)?, right.seal(run)?);
            let pairs = left.into_iter().zip(right).filter(|(left, _)| !left.is_empty());
            self.parts.extend(pairs.map(|(left, right)| ([left, right], division)));
        }
        self.counts = KeyTable::default();
        self.account.clear();
        self.is_full = false;
        (self.left, self.right) = (Rows::End, Rows::End);
        let Some(([left, right], division)) = self.parts.pop() else { return Ok(false) };
        (self.left, self.right, self.division) = (Rows::Part(left), Rows::Part(right), division);
        Ok(true)
    }
}

impl Operator for Set {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            if run.spill.is_full() {
                return Ok(Step::Wait);
            }
            match self.count_right(run)? {
                Some(true) => {}
                Some(false) => continue,
                None => return Ok(Step::Wait),
            }
            match self.next_left(run)? {
                Some(step) => return Ok(step),
                None if self.begin_parts(run)? => {}
                None => return Ok(Step::Done),
            }
        }
    }
}
