//! The news that a tc of this node waits for.

use junctor_model::id::CommitNumber;
use junctor_signals::TcSignal;
use junctor_signals::append_records::AwaitDurableReply;
use junctor_signals::commit_transaction::{CommitStable, SeenStable};

/// The numbers that this node knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownNumbers {
    pub stable: CommitNumber,
    pub confirmed: CommitNumber,
    /// On the disks of all nodes.
    pub durable: CommitNumber,
}

/// The waits of a tc, and what it knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcWaits {
    /// The last number of its own commits, and the last confirmed one that it knows.
    own: CommitNumber,
    told_confirmed: CommitNumber,
    /// The largest number that its statements have seen before it was stable here, and the last stable one
    /// that it knows.
    seen: CommitNumber,
    told_stable: CommitNumber,
    /// The number for which it waits until all nodes have it on disk.
    durable: Option<CommitNumber>,
}

impl TcWaits {
    /// Its own commit has this number.
    pub fn note_own(&mut self, number: CommitNumber) {
        self.own = self.own.max(number);
    }

    /// A statement waits until the number is stable at this node.
    pub fn note_seen(&mut self, number: CommitNumber) {
        self.seen = self.seen.max(number);
    }

    /// It waits until all nodes have the number on disk.
    pub fn set_durable(&mut self, number: CommitNumber) {
        self.durable = Some(number);
    }

    /// Passes on what it waits for and does not know yet.
    pub fn tell(&mut self, known: KnownNumbers, mut send: impl FnMut(TcSignal)) {
        let KnownNumbers { stable, confirmed, durable } = known;
        if self.seen > self.told_stable && stable > self.told_stable {
            self.told_stable = stable;
            send(TcSignal::SeenStable(SeenStable { number: stable }));
        }
        if self.own > self.told_confirmed && confirmed > self.told_confirmed {
            self.told_confirmed = confirmed;
            send(TcSignal::CommitStable(CommitStable { number: confirmed }));
        }
        if self.durable.take_if(|number| *number <= durable).is_some() {
            send(TcSignal::AwaitDurableReply(AwaitDurableReply { durable }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_waits_for_stable_numbers_and_a_commit_for_confirmed_ones() {
        let mut waits = TcWaits::default();
        let tell = |waits: &mut TcWaits, [stable, confirmed, durable]: [u64; 3]| {
            let [stable, confirmed, durable] = [stable, confirmed, durable].map(CommitNumber);
            let mut told = Vec::new();
            waits.tell(KnownNumbers { stable, confirmed, durable }, |signal| told.push(signal.name()));
            told
        };
        assert_eq!(tell(&mut waits, [5, 5, 5]), Vec::<&str>::new(), "it waits for nothing");
        waits.note_own(CommitNumber(7));
        waits.note_seen(CommitNumber(8));
        waits.set_durable(CommitNumber(6));
        assert_eq!(tell(&mut waits, [7, 0, 5]), ["SeenStable"], "earlier ones may be seen");
        assert_eq!(tell(&mut waits, [8, 7, 5]), ["SeenStable", "CommitStable"]);
        assert_eq!(tell(&mut waits, [9, 9, 6]), ["AwaitDurableReply"], "it knows the rest");
        assert_eq!(tell(&mut waits, [10, 10, 10]), Vec::<&str>::new());
    }
}
