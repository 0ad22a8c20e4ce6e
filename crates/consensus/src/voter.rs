//! Voters and sets of voters.

use std::fmt;

use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState};

use crate::bytes::{Malformed, Reader, put_u64};

/// Maximum number of voters. Three survive the loss of one, five of two, seven of three.
pub const VOTERS_MAX: usize = 7;

/// A voter, never 0. A voter that has lost its files comes back with a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoterId(pub u64);

impl fmt::Display for VoterId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// The voters, in order of rank: the first one campaigns first when the leader is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoterSet(Vec<VoterId>);

impl VoterSet {
    /// A set of these voters.
    ///
    /// # Errors
    /// The set is empty, has more than [`VOTERS_MAX`] voters, names one twice or names voter 0.
    pub fn new(voters: Vec<VoterId>) -> Result<VoterSet, Malformed> {
        if voters.is_empty() || voters.len() > VOTERS_MAX {
            return Err(Malformed("the number of voters is out of range"));
        }
        let is_repeated = |(rank, voter): (usize, &VoterId)| voters[..rank].contains(voter);
        if voters.contains(&VoterId(0)) || voters.iter().enumerate().any(is_repeated) {
            return Err(Malformed("a voter is 0 or named twice"));
        }
        Ok(VoterSet(voters))
    }

    /// The voters by rank.
    pub fn voters(&self) -> &[VoterId] {
        &self.0
    }

    /// Position of the voter in the order, from 0.
    pub fn rank(&self, voter: VoterId) -> Option<usize> {
        self.0.iter().position(|other| *other == voter)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.0.len()).expect("a set has few voters"));
        for voter in &self.0 {
            put_u64(out, voter.0);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<VoterSet, Malformed> {
        let count = reader.u8()?;
        VoterSet::new((0..count).map(|_| reader.u64().map(VoterId)).collect::<Result<_, _>>()?)
    }

    pub(crate) fn conf_state(&self) -> ConfState {
        ConfState { voters: self.ids(), ..ConfState::default() }
    }

    /// The step from the voters of `from` to this set. Raft agrees on it by majorities of both sets, and
    /// leaves the step by itself.
    pub(crate) fn change_from(&self, from: &ConfState) -> ConfChangeV2 {
        let added = self.ids().into_iter().filter(|id| !from.voters.contains(id));
        let removed = from.voters.iter().copied().filter(|id| !self.0.contains(&VoterId(*id)));
        let single = |kind, id| {
            let mut change = ConfChangeSingle::default();
            change.set_change_type(kind);
            change.node_id = id;
            change
        };
        let changes = added
            .map(|id| single(ConfChangeType::AddNode, id))
            .chain(removed.map(|id| single(ConfChangeType::RemoveNode, id)));
        ConfChangeV2 { changes: changes.collect::<Vec<_>>().into(), ..ConfChangeV2::default() }
    }

    fn ids(&self) -> Vec<u64> {
        self.0.iter().map(|voter| voter.0).collect()
    }
}
