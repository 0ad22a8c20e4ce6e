//! The voter's log in memory: a snapshot, the entries after it, and the vote.

use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

use crate::bytes::{Malformed, Reader, put_u64};
use crate::message::{put_entries, put_snapshot, take_entries, take_snapshot};
use crate::voter::VoterSet;

/// One change of a log, as it is written: each part may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub hard_state: Option<HardState>,
    /// Replaces the entries, too.
    pub snapshot: Option<Snapshot>,
    /// Replace the entries from the first one's index on.
    pub entries: Vec<Entry>,
}

impl Change {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Change::default()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.hard_state.is_some()));
        if let Some(state) = &self.hard_state {
            put_u64(out, state.term);
            put_u64(out, state.vote);
            put_u64(out, state.commit);
        }
        out.push(u8::from(self.snapshot.is_some()));
        if let Some(snapshot) = &self.snapshot {
            put_snapshot(out, snapshot);
        }
        put_entries(out, &self.entries);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Change, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut change = Change::default();
        if reader.bool()? {
            let (term, vote, commit) = (reader.u64()?, reader.u64()?, reader.u64()?);
            change.hard_state = Some(HardState { term, vote, commit, ..HardState::default() });
        }
        if reader.bool()? {
            change.snapshot = Some(take_snapshot(&mut reader)?);
        }
        change.entries = take_entries(&mut reader)?;
        reader.end()?;
        Ok(change)
    }
}

/// Index and term of the snapshot with which the log of a cluster begins. A voter that joins has no entry of
/// this index, so the leader sends it a snapshot, which names all voters.
const FIRST_INDEX: u64 = 1;

/// The log, which begins with a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub hard_state: HardState,
    pub snapshot: Snapshot,
    /// The first entry has the index after the snapshot's.
    pub entries: Vec<Entry>,
}

impl Log {
    /// The log of a new cluster with these voters and this state of the application.
    pub(crate) fn new(voters: &VoterSet, state: &[u8]) -> Log {
        let mut log = Log::default();
        let mut data = Vec::new();
        voters.encode(&mut data);
        data.extend_from_slice(state);
        log.snapshot.data = data.into();
        let metadata = log.snapshot.mut_metadata();
        metadata.index = FIRST_INDEX;
        metadata.term = FIRST_INDEX;
        metadata.set_conf_state(voters.conf_state());
        log.hard_state.term = FIRST_INDEX;
        log.hard_state.commit = FIRST_INDEX;
        log
    }

    /// All of the log as one change.
    pub(crate) fn image(&self) -> Change {
        Change {
            hard_state: Some(self.hard_state.clone()),
            snapshot: Some(self.snapshot.clone()),
            entries: self.entries.clone(),
        }
    }

    /// Applies a change.
    ///
    /// # Errors
    /// The entries would leave a gap.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), Malformed> {
        if let Some(snapshot) = &change.snapshot {
            self.snapshot = snapshot.clone();
            self.entries.clear();
        }
        if let Some(first) = change.entries.first() {
            let Some(kept) = first.index.checked_sub(self.first()).map(|kept| kept as usize) else {
                return Err(Malformed("an entry precedes the snapshot"));
            };
            if kept > self.entries.len() {
                return Err(Malformed("entries are missing"));
            }
            self.entries.truncate(kept);
            self.entries.extend_from_slice(&change.entries);
        }
        if let Some(state) = &change.hard_state {
            self.hard_state = state.clone();
        }
        Ok(())
    }

    /// Replaces the entries up to `index`, which has been applied, by a snapshot.
    pub(crate) fn compact(&mut self, snapshot: Snapshot) {
        let removed = snapshot.get_metadata().index + 1 - self.first();
        self.entries.drain(..removed as usize);
        self.snapshot = snapshot;
    }

    /// Index of the first entry, whether it exists or not.
    fn first(&self) -> u64 {
        self.snapshot.get_metadata().index + 1
    }

    pub(crate) fn last(&self) -> u64 {
        self.snapshot.get_metadata().index + self.entries.len() as u64
    }

    fn position(&self, index: u64) -> raft::Result<usize> {
        let position = index.checked_sub(self.first()).ok_or(Error::Store(StorageError::Compacted))?;
        Ok(position as usize)
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let voters = self.snapshot.get_metadata().get_conf_state().clone();
        Ok(RaftState::new(self.hard_state.clone(), voters))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let (low, high) = (self.position(low)?, self.position(high)?);
        let slice = self.entries.get(low..high).ok_or(Error::Store(StorageError::Unavailable))?;
        let mut entries = slice.to_vec();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let metadata = self.snapshot.get_metadata();
        if index == metadata.index {
            return Ok(metadata.term);
        }
        let entry = self.entries.get(self.position(index)?).ok_or(Error::Store(StorageError::Unavailable))?;
        Ok(entry.term)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        if self.snapshot.get_metadata().index < request_index {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        Ok(self.snapshot.clone())
    }
}
