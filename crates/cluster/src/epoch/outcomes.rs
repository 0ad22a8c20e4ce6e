//! The last decisions of a node, for clients whose tc was lost with the answer.

use std::collections::VecDeque;

use junctor_model::id::{CommitNumber, GlobalTransactionId};

/// Decisions of one chunk.
const CHUNK: usize = 4096;
/// Maximum number of chunks: 2^20 decisions, in 24 MiB.
const CHUNKS_MAX: usize = 256;

/// The last decisions, by ascending numbers.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    chunks: VecDeque<Vec<(CommitNumber, GlobalTransactionId)>>,
    /// The last number that was given up.
    forgotten: CommitNumber,
}

/// What a node remembers of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// It has this number.
    Number(CommitNumber),
    /// It has no number up to the last one.
    Nothing,
    /// Decisions that may include it were given up.
    Forgotten,
}

impl Outcomes {
    /// Keeps a decision. Numbers ascend.
    pub fn note(&mut self, number: CommitNumber, transaction: GlobalTransactionId) {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            let mut chunk = match self.chunks.len() {
                CHUNKS_MAX => self.chunks.pop_front().unwrap_or_default(),
                _ => Vec::with_capacity(CHUNK),
            };
            self.forgotten = chunk.last().map_or(self.forgotten, |(number, _)| *number);
            chunk.clear();
            self.chunks.push_back(chunk);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push((number, transaction));
        }
    }

    /// Looks for a transaction whose number is above `after`.
    pub fn find(&self, transaction: GlobalTransactionId, after: CommitNumber) -> Remembered {
        let newest_first = self.chunks.iter().rev().flat_map(|chunk| chunk.iter().rev());
        let found = newest_first.take_while(|(number, _)| *number > after).find(|(_, found)| *found == transaction);
        match found {
            Some((number, _)) => Remembered::Number(*number),
            None if self.forgotten > after => Remembered::Forgotten,
            None => Remembered::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(counter: u64) -> GlobalTransactionId {
        GlobalTransactionId { counter, ..GlobalTransactionId::default() }
    }

    #[test]
    fn the_last_decisions_are_remembered_and_earlier_ones_are_known_to_be_forgotten() {
        let mut outcomes = Outcomes::default();
        let all = (CHUNK * CHUNKS_MAX) as u64;
        for number in 1..=all + 1 {
            outcomes.note(CommitNumber(2 * number), transaction(number));
        }
        assert_eq!(outcomes.find(transaction(all), CommitNumber(all)), Remembered::Number(CommitNumber(2 * all)));
        // A whole chunk went.
        let (kept, gone) = (CHUNK as u64 + 1, CHUNK as u64);
        assert_eq!(outcomes.find(transaction(kept), CommitNumber(0)), Remembered::Number(CommitNumber(2 * kept)));
        assert_eq!(outcomes.find(transaction(gone), CommitNumber(2 * gone - 1)), Remembered::Forgotten);
        // Its number would be above what was forgotten.
        assert_eq!(outcomes.find(transaction(0), CommitNumber(2 * gone)), Remembered::Nothing);
        assert_eq!(outcomes.chunks.len(), CHUNKS_MAX);
    }
}
