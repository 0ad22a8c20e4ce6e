//! The beginning of voters.
//!
//! The voters of a new cluster begin with equal logs. A voter that lost its files must not: it may have voted
//! before, and would vote again. So a voter without files asks the other voters, by their reports. It begins
//! a new log if none of them found the log of a cluster at its start, and none has heard it as a voter.
//! Otherwise it has lost its log: it takes a new id, and the leader counts it in place of the old one.

use junctor_consensus::VoterSet;

use super::events::EventKind;
use super::machine::{Member, boot_time};
use crate::membership::replication::voter_id;
use crate::membership::{NodeSet, Replication};

impl Member {
    /// Begins the voter of this node, once the other voters have said how.
    pub(super) fn found_voter(&mut self) {
        let own = self.settings.own;
        if self.voter.is_some() || !self.voters.contains(&own) {
            return;
        }
        let mut is_new = true;
        for node in self.voters.iter().filter(|node| **node != own) {
            let Some(report) = self.peers.get(node).and_then(|peer| peer.report.as_ref()) else { return };
            is_new &= !report.voter.had_files && !NodeSet::from_words(report.voter.heard).contains(own);
        }
        let now = boot_time(self.now);
        self.voter = Some(match is_new {
            true => {
                let voters = self.voters.iter().map(|node| voter_id(*node, 1)).collect();
                let Ok(voters) = VoterSet::new(voters) else { return };
                let settings = self.raft_settings(voter_id(own, 1));
                Replication::new(&settings, &voters, &self.settings.unstarted(), now)
            }
            false => {
                let line = "the voter of this node has lost its log; it asks the leader for a new one";
                self.tell(EventKind::Voter, line.to_owned());
                self.is_voter_joining = true;
                Replication::joining(&self.raft_settings(voter_id(own, self.settings.incarnation.0)), now)
            }
        });
    }

    /// Counts voters that have lost their files under their new ids. Returns whether there was one.
    pub(super) fn replace_voters(&mut self) -> bool {
        let Some(voter) = &mut self.voter else { return false };
        let present = voter.replica().voters().voters().to_vec();
        let mut next = present.clone();
        for (node, peer) in &self.peers {
            let Some(report) = peer.report.as_ref().filter(|report| report.voter.is_joining) else { continue };
            let id = junctor_consensus::VoterId(report.voter.voter);
            let place = next.iter_mut().find(|it| crate::membership::replication::node_of(**it) == *node);
            if let Some(place) = place {
                *place = id;
            }
        }
        if next == present {
            return false;
        }
        let Ok(voters) = VoterSet::new(next) else { return false };
        if voter.propose_voters(&voters).is_ok() {
            self.tell(EventKind::Voter, "a voter that has lost its log gets a new one".to_owned());
        }
        true
    }
}
