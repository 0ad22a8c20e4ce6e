//! Rows with their keys that an operator has put into the temporary file of the query, in order.
//!
//! A key is kept with its row, because its evaluation could warn a second time or, with RAND, differ. Only
//! joins in blocks evaluate keys again: they have whole batches as they came.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_expression::Parameters;
use junctor_model::error::Result;
use junctor_model::value::ValueRef;
use junctor_signals::key_filter::hash_of;

use super::batch::{Batch, Frame};
use super::spill_file::{LiveBytes, Place};
use super::{Input, Run};

/// Number of parts into which an operator divides rows by their keys.
pub(super) const PARTS: usize = 16;
/// How often rows are divided. Parts of the last division that do not fit are processed in several passes.
pub(super) const DIVISIONS_MAX: u32 = 4;

/// Rows and keys.
#[derive(Debug)]
pub(super) struct Spool {
    frames: [Arc<Frame>; 2],
    /// Rows and keys that no record has yet.
    open: Option<[Batch; 2]>,
    places: VecDeque<Place>,
    live: Option<LiveBytes>,
}

/// The next rows of a spool.
pub(super) enum Spooled {
    /// Rows and their keys.
    Rows([Batch; 2]),
    /// They are being read.
    Wait,
    End,
}

impl Spool {
    /// A spool of rows with this frame, which have keys of `width` values.
    pub fn new(frame: &Arc<Frame>, width: usize) -> Spool {
        let keys = Arc::new(Frame::new(Parameters::default(), width));
        Spool { frames: [Arc::clone(frame), keys], open: None, places: VecDeque::new(), live: None }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.places.is_empty()
    }

    /// The number of records.
    pub fn records(&self) -> usize {
        self.places.len()
    }

    /// Adds a row, or only its key.
    pub fn push<'v>(
        &mut self,
        run: &mut Run<'_, '_, '_>,
        row: Option<(&Batch, usize)>,
        key: impl Iterator<Item = ValueRef<'v>>,
    ) -> Result<()> {
        let [rows, keys] = self.open.get_or_insert_with(|| [Batch::new(&self.frames[0]), Batch::new(&self.frames[1])]);
        match row {
            Some((from, row)) => rows.push_copy(from, row),
            None => rows.push(),
        }
        keys.push();
        let place = keys.len() - 1;
        for (slot, value) in key.enumerate() {
            keys.set(place, slot as u16, value);
        }
        if rows.is_full() || rows.memory() + keys.memory() >= run.spill.record_bytes {
            self.seal(run)?;
        }
        Ok(())
    }

    /// Adds a record with all rows of a batch, without keys.
    pub fn put(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        let keys = Batch::new(&self.frames[1]);
        self.append(run, batch, &keys)
    }

    /// Ends the last record. The spool can then be read.
    pub fn seal(&mut self, run: &mut Run<'_, '_, '_>) -> Result<()> {
        match self.open.take() {
            Some([rows, keys]) => self.append(run, &rows, &keys),
            None => Ok(()),
        }
    }

    fn append(&mut self, run: &mut Run<'_, '_, '_>, rows: &Batch, keys: &Batch) -> Result<()> {
        let place = run.spill.append(run.context, &[rows, keys])?;
        self.live.get_or_insert_with(|| run.spill.live());
        self.places.push_back(place);
        run.note_spilled(place.bytes());
        Ok(())
    }

    /// Takes the first rows.
    pub fn take(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Spooled> {
        let spooled = self.load(run, 0)?;
        if let Spooled::Rows(_) = &spooled
            && let Some(place) = self.places.pop_front()
        {
            self.release(place.bytes());
        }
        Ok(spooled)
    }

    /// The rows of a record.
    pub fn load(&self, run: &mut Run<'_, '_, '_>, record: usize) -> Result<Spooled> {
        let Some(place) = self.places.get(record) else { return Ok(Spooled::End) };
        let [rows, keys] = &self.frames;
        Ok(match run.spill.load(run.context, *place, [rows, keys])? {
            Some(batches) => Spooled::Rows(batches),
            None => Spooled::Wait,
        })
    }

    fn release(&self, bytes: u64) {
        if let Some(live) = &self.live {
            live.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.release(self.places.iter().map(|place| place.bytes()).sum());
    }
}

/// Rows divided by their keys, which are byte strings.
#[derive(Debug)]
pub(super) struct Parts {
    /// Number of divisions before this one.
    division: u32,
    spools: Vec<Spool>,
}

impl Parts {
    pub fn new(frame: &Arc<Frame>, division: u32) -> Parts {
        let count = if division < DIVISIONS_MAX { PARTS } else { 1 };
        Parts { division, spools: (0..count).map(|_| Spool::new(frame, 1)).collect() }
    }

    /// The number of the part of a key.
    fn part_of(&self, key: &[u8]) -> usize {
        // The lowest bits choose the part of a `KeyTable`, the upper half its bucket.
        (hash_of(key) >> (8 + 4 * self.division)) as usize % self.spools.len()
    }

    /// Whether the part of a key has no rows.
    pub fn is_empty(&self, key: &[u8]) -> bool {
        self.spools[self.part_of(key)].is_empty()
    }

    /// Adds a row with its key, or only the key.
    pub fn push(&mut self, run: &mut Run<'_, '_, '_>, row: Option<(&Batch, usize)>, key: &[u8]) -> Result<()> {
        let part = self.part_of(key);
        self.spools[part].push(run, row, std::iter::once(ValueRef::Bytes(key)))
    }

    /// Ends the division. Returns the parts, also those without rows, and their number of divisions, of which
    /// passes over undivided rows are none.
    pub fn seal(mut self, run: &mut Run<'_, '_, '_>) -> Result<(Vec<Spool>, u32)> {
        for spool in &mut self.spools {
            spool.seal(run)?;
        }
        Ok((self.spools, (self.division + 1).min(DIVISIONS_MAX)))
    }
}

/// The rows of an input, or of a part.
#[derive(Debug)]
pub(super) enum Rows {
    Input(Input),
    Part(Spool),
    /// All have arrived.
    End,
}

/// The key of a row, which is a byte string.
pub(super) fn key_at(keys: &Batch, row: usize) -> &[u8] {
    match keys.row(row).get(0) {
        ValueRef::Bytes(key) => key,
        _ => &[],
    }
}
