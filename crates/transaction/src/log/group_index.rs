//! Where in the log the records of recent commits begin: answers from which group a replay must start so that
//! it finds every commit above a number.
//!
//! Commits above a number are in the groups from the first one whose `taken` (the highest number in use when
//! the group was formed) exceeds the number. The chunks of a long transaction can lie in earlier groups,
//! because they are written before the transaction takes its number.

use std::collections::{BTreeMap, VecDeque};

use junctor_kernel::require;
use junctor_model::id::{CommitNumber, TransactionId};
use junctor_model::planted_bug::PlantedBug;
use junctor_storage::log::{RecordHeader, RecordKind};

/// Groups that are remembered one by one. Beyond this number, pairs of neighbours are remembered as one.
const GROUPS_MAX: usize = 1 << 18;

/// A long transaction's chunks in one stream: (position of the stream, transaction).
type ChunkKey = (usize, TransactionId);

/// The groups of this life that a replay may have to read. Positions count blocks.
#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    /// (position, taken) of the groups, in order. A group whose `taken` equals that of the group before is
    /// left out. An entry may stand for several groups: the position is that of the first, and `taken` that
    /// of the last.
    groups: VecDeque<(u64, CommitNumber)>,
    /// The last group.
    last: u64,
    /// The last group that is synced. A replay starts there at the latest, because it must find a group.
    last_synced: u64,
    /// The first group with a chunk of each long transaction whose commit record is not in a group yet.
    open: BTreeMap<ChunkKey, u64>,
    /// Long transactions with a commit record: the number, and the first group with a chunk.
    committed: BTreeMap<(CommitNumber, usize), u64>,
    /// The largest number asked for.
    begin: CommitNumber,
}

impl GroupIndex {
    /// Takes a group that has been encoded. `taken` was read after its records were collected.
    pub fn add_group(&mut self, position: u64, taken: CommitNumber) {
        let before = self.groups.back().map_or(CommitNumber(0), |(_, taken)| *taken);
        require!(before <= taken, "the numbers taken never fall: {before}, {taken}");
        if before < taken || self.groups.is_empty() {
            if self.groups.len() >= GROUPS_MAX {
                self.merge_pairs();
            }
            self.groups.push_back((position, taken));
        }
        self.last = position;
    }

    /// Takes the header of a long transaction's record that begins in the group at `position`.
    pub fn add_chunk_record(&mut self, position: u64, stream: usize, header: &RecordHeader) {
        let key = (stream, header.transaction);
        match header.kind {
            RecordKind::Chunk => _ = self.open.entry(key).or_insert(position),
            RecordKind::ChunkUndo => _ = self.open.remove(&key),
            RecordKind::ChunkCommit => {
                if let Some(first) = self.open.remove(&key)
                    && header.number > self.begin
                {
                    self.committed.insert((header.number, stream), first);
                }
            }
            RecordKind::Commit | RecordKind::Dictionary | RecordKind::Mark => {}
        }
    }

    /// Halves the number of entries. Replays may then start a group earlier than necessary.
    fn merge_pairs(&mut self) {
        let entries = std::mem::take(&mut self.groups);
        let entries = Vec::from(entries);
        self.groups = entries.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1)).collect();
    }

    /// Every group so far is synced.
    pub fn end_sync(&mut self) {
        self.last_synced = self.last;
    }

    /// The group from which a replay finds the records of all commits above `begin`, at the latest the last
    /// synced group. `begin` is stable and never falls, so what lies before is forgotten.
    pub fn replay_from(&mut self, begin: CommitNumber) -> u64 {
        require!(self.begin <= begin, "checkpoints begin at ascending numbers: {}, {begin}", self.begin);
        self.begin = begin;
        // Commits up to `begin` are stable: all participants have applied them.
        self.committed = self.committed.split_off(&(CommitNumber(begin.0 + 1), 0));
        while self.groups.front().is_some_and(|(_, taken)| *taken <= begin) {
            self.groups.pop_front();
        }
        let first = self.groups.front().map(|(position, _)| *position);
        let chunks = self.open.values().chain(self.committed.values()).copied();
        let chunks = chunks.filter(|_| !PlantedBug::TrimPastChunks.is_planted());
        let first = first.filter(|_| !PlantedBug::ReplayFromEnd.is_planted());
        chunks.chain(first).fold(self.last_synced, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordKind, transaction: u64, number: u64) -> RecordHeader {
        let participants = u16::from(number > 0);
        let (number, transaction) = (CommitNumber(number), TransactionId(transaction));
        RecordHeader { kind, participants, number, transaction, chunk: 0 }
    }

    fn index(groups: &[(u64, u64)]) -> GroupIndex {
        let mut index = GroupIndex::default();
        for (position, taken) in groups {
            index.add_group(*position, CommitNumber(*taken));
        }
        index.end_sync();
        index
    }

    #[test]
    fn replay_starts_with_the_first_group_that_may_hold_a_later_commit() {
        let mut index = index(&[(0, 5), (1, 7), (3, 7), (4, 9), (6, 12)]);
        assert_eq!(index.replay_from(CommitNumber(4)), 0);
        assert_eq!(index.replay_from(CommitNumber(5)), 1);
        assert_eq!(index.replay_from(CommitNumber(7)), 4);
        assert_eq!(index.replay_from(CommitNumber(11)), 6);
    }

    #[test]
    fn replay_starts_with_a_synced_group_even_if_no_commit_is_missing() {
        let mut index = index(&[(0, 5), (1, 7)]);
        assert_eq!(index.replay_from(CommitNumber(7)), 1);
        index.add_group(2, CommitNumber(7));
        assert_eq!(index.replay_from(CommitNumber(7)), 1, "the group at 2 may get lost");
        index.end_sync();
        assert_eq!(index.replay_from(CommitNumber(7)), 2);
        index.add_group(3, CommitNumber(8));
        assert_eq!(index.replay_from(CommitNumber(7)), 2);
    }

    #[test]
    fn merged_groups_never_start_a_replay_too_late() {
        let groups: Vec<(u64, u64)> = (0..101).map(|group| (group, 10 * group + 5)).collect();
        let exact = |begin: u64| index(&groups).replay_from(CommitNumber(begin));
        for begin in 0..1000 {
            let mut merged = index(&groups);
            merged.merge_pairs();
            let start = merged.replay_from(CommitNumber(begin));
            assert!(start <= exact(begin) && start + 1 >= exact(begin), "{begin}: {start}");
        }
    }

    #[test]
    fn chunks_hold_the_start_of_replay_until_their_commit_is_stable() {
        let mut index = index(&[(0, 5), (1, 6), (2, 7), (3, 8)]);
        index.add_chunk_record(1, 0, &record(RecordKind::Chunk, 40, 0));
        index.add_chunk_record(2, 0, &record(RecordKind::Chunk, 40, 0));
        index.add_chunk_record(2, 1, &record(RecordKind::Chunk, 40, 0));
        index.add_chunk_record(3, 0, &record(RecordKind::Chunk, 41, 0));
        assert_eq!(index.replay_from(CommitNumber(7)), 1);
        index.add_group(4, CommitNumber(10));
        index.add_chunk_record(4, 0, &record(RecordKind::ChunkCommit, 40, 9));
        index.add_chunk_record(4, 1, &record(RecordKind::ChunkCommit, 40, 9));
        index.end_sync();
        // Commit 9 is in the log, but recovery must still apply it.
        assert_eq!(index.replay_from(CommitNumber(8)), 1);
        assert_eq!(index.replay_from(CommitNumber(9)), 3);
        index.add_chunk_record(4, 0, &record(RecordKind::ChunkUndo, 41, 0));
        assert_eq!(index.replay_from(CommitNumber(9)), 4);
        assert!(index.open.is_empty() && index.committed.is_empty());
    }
}
