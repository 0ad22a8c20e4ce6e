//! Groups of the rows of one reply.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use junctor_expression::parameter::append_value;
use junctor_expression::{Accumulator, Expression, ResultType, Scratch};
use junctor_model::decimal;
use junctor_model::error::Result;
use junctor_model::limit::REPLY_BYTES_MAX;
use junctor_model::row_encoding::{begin_packet, end_packet};
use junctor_model::value::ValueRef;
use junctor_signals::program::{Aggregate, Projection};

use super::emit::OutputRow;
use super::kernel::{Computed, NumberKernel};

/// Estimated bytes of the state of an aggregate in a reply.
const STATE_BYTES: usize = 40;

/// A sum that is not in its state yet.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// The sum times 10^scale.
    mantissa: i128,
    count: u64,
    scale: u8,
}

/// The groups since the last flush. The memory is reused by all requests of a block.
#[derive(Debug)]
pub(super) struct GroupTable {
    /// The number of each group by its key: the tagged values. Values that are equal in a collation may thus
    /// have several groups, which the session merges.
    numbers: HashTable<u32>,
    hasher: FixedState,
    /// The keys of the groups and the hash of each, and where each key ends.
    keys: Vec<u8>,
    hashes: Vec<(u64, usize)>,
    /// The projected values of the first row of each group, and where each ends.
    rows: Vec<u8>,
    ends: Vec<usize>,
    /// The states of all groups, one after the other, and the sum of each that its kernel has computed.
    states: Vec<Accumulator>,
    sums: Vec<Sum>,
    /// Estimated bytes of the groups in a reply.
    bytes: usize,
    /// Groups that the reply has.
    flushed: u32,
}

impl Default for GroupTable {
    fn default() -> GroupTable {
        GroupTable {
            numbers: HashTable::new(),
            hasher: FixedState::with_seed(0),
            keys: Vec::new(),
            hashes: Vec::new(),
            rows: Vec::new(),
            ends: Vec::new(),
            states: Vec::new(),
            sums: Vec::new(),
            bytes: 0,
            flushed: 0,
        }
    }
}

impl GroupTable {
    /// Prepares for the first row of a reply.
    pub fn begin(&mut self) {
        self.clear();
        self.flushed = 0;
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.keys.clear();
        self.hashes.clear();
        self.rows.clear();
        self.ends.clear();
        self.states.clear();
        self.sums.clear();
        self.bytes = 0;
    }

    /// Adds a row. If the groups fill a reply, they are appended to it.
    #[inline(never)]
    pub fn add(
        &mut self,
        (projection, keys, aggregates): (&Projection, &[Expression], &[Aggregate]),
        (row, kernels): (&OutputRow<'_>, Option<&Vec<Option<NumberKernel>>>),
        scratch: &Scratch,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let number = self.number_of(keys, row, scratch)?;
        if number as usize == self.ends.len() {
            for value in &projection.values {
                append_value(value.evaluate(Some(row.view), row.parameters, scratch)?, &mut self.rows);
            }
            let before = self.ends.last().copied().unwrap_or(0);
            self.ends.push(self.rows.len());
            self.bytes += self.rows.len() - before + STATE_BYTES * aggregates.len();
            for aggregate in aggregates {
                let operand = aggregate.argument.as_ref().map_or_else(ResultType::null, |argument| argument.result);
                self.states.push(Accumulator::new(aggregate.kind, operand));
                self.sums.push(Sum::default());
            }
        }
        let first = number as usize * aggregates.len();
        for (place, aggregate) in aggregates.iter().enumerate() {
            let kernel = kernels.and_then(|kernels| kernels[place].as_ref());
            match kernel.map_or(Computed::Unknown, |kernel| kernel.evaluate(row.view)) {
                Computed::Null => continue,
                Computed::Number(number) => {
                    let sum = &mut self.sums[first + place];
                    if let Some(mantissa) = sum.mantissa.checked_add(number) {
                        let scale = kernel.map_or(0, NumberKernel::scale);
                        *sum = Sum { mantissa, count: sum.count + 1, scale };
                        continue;
                    }
                }
                Computed::Unknown => {}
            }
            let value = match &aggregate.argument {
                Some(argument) => argument.evaluate_unrounded(Some(row.view), row.parameters, scratch)?,
                None => ValueRef::Null,
            };
            self.states[first + place].add(value, scratch)?;
        }
        if self.bytes >= REPLY_BYTES_MAX {
            self.flush(out)?;
        }
        Ok(())
    }

    /// The number of the group of a row, which is that of the next group if it is new.
    fn number_of(&mut self, keys: &[Expression], row: &OutputRow<'_>, scratch: &Scratch) -> Result<u32> {
        let start = self.hashes.last().map_or(0, |(_, end)| *end);
        self.keys.truncate(start);
        for key in keys {
            append_value(key.evaluate(Some(row.view), row.parameters, scratch)?, &mut self.keys);
        }
        let GroupTable { numbers, hasher, keys, hashes, .. } = self;
        let wanted = &keys[start..];
        let hash = hasher.hash_one(wanted);
        let is_it = |number: &u32| {
            let number = *number as usize;
            let before = number.checked_sub(1).map_or(0, |before| hashes[before].1);
            hashes[number].0 == hash && keys[before..hashes[number].1] == *wanted
        };
        if let Some(number) = numbers.find(hash, is_it) {
            return Ok(*number);
        }
        let number = hashes.len() as u32;
        numbers.insert_unique(hash, number, |number| hashes[*number as usize].0);
        hashes.push((hash, keys.len()));
        Ok(number)
    }

    /// Ends a reply. Returns the number of its groups.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<u32> {
        self.flush(out)?;
        Ok(self.flushed)
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        for (state, sum) in self.states.iter_mut().zip(&self.sums).filter(|(_, sum)| sum.count > 0) {
            state.add_sum(sum.count, decimal::new(sum.mantissa, sum.scale))?;
        }
        let width = self.states.len().checked_div(self.ends.len()).unwrap_or(0);
        let mut start = 0;
        let mut partial = Vec::new();
        for (number, end) in self.ends.iter().enumerate() {
            let packet = begin_packet(out);
            out.extend_from_slice(&self.rows[start..*end]);
            for state in &self.states[number * width..(number + 1) * width] {
                partial.clear();
                state.append_partial(&mut partial);
                append_value(ValueRef::Bytes(&partial), out);
            }
            end_packet(out, packet);
            start = *end;
        }
        self.flushed += self.ends.len() as u32;
        self.clear();
        Ok(())
    }
}
