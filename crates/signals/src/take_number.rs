//! Requests for commit numbers in a cluster: from tc to its main, and from main to main of the sequencer.

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, TransactionId};

use crate::codec::page::Page;
#[cfg(test)]
use crate::codec::sample::Draw;
use crate::codec::{Reader, Result, Wire, Writer};
use crate::commit_transaction::TransactionPart;

/// Participants that a decision holds without an allocation.
const FEW: usize = 7;

/// The part of an ldm, or of main, in a transaction. An ldm that is primary of one partition and backup of
/// another has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Participant {
    /// Its node.
    pub node: NodeId,
    /// The part that it has in the transaction.
    pub part: TransactionPart,
    /// Its ldm instance; [`MAIN_OWNER`](crate::commit_transaction::MAIN_OWNER) for main.
    pub ldm: u16,
}

layout! { Participant { node, part, ldm } }

impl Participant {
    /// Whether the participant has versions of the transaction, and not only locks.
    #[inline]
    pub fn has_written(&self) -> bool {
        self.part != TransactionPart::Locks
    }
}

/// The participants of a transaction. Their copy is cheap, because every node of the transaction gets one.
#[derive(Clone, Debug)]
pub enum Participants {
    /// The first `count` of the list.
    #[allow(missing_docs)]
    Few { count: u8, list: [Participant; FEW] },
    /// More than fit above.
    Many(Arc<[Participant]>),
}

impl Participants {
    /// The participants of a transaction.
    pub fn new(participants: &[Participant]) -> Participants {
        if participants.len() > FEW {
            return Participants::Many(participants.into());
        }
        let mut list = [Participant::default(); FEW];
        list[..participants.len()].copy_from_slice(participants);
        Participants::Few { count: participants.len() as u8, list }
    }

    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &[Participant] {
        match self {
            Participants::Few { count, list } => &list[..usize::from(*count)],
            Participants::Many(list) => list,
        }
    }
}

impl PartialEq for Participants {
    fn eq(&self, other: &Participants) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Participants {}

impl Wire for Participants {
    fn encode(&self, writer: &mut Writer<'_>) {
        Participant::encode_all(self.as_slice(), writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Participants> {
        Participant::decode_all(reader).map(|list| Participants::new(&list))
    }

    fn describe(page: &mut Page) -> String {
        Vec::<Participant>::describe(page)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Participants {
        Participants::new(&Vec::<Participant>::sample(draw))
    }
}

/// A transaction that asks for a number, or has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its number; 0 in a request.
    pub number: CommitNumber,
    /// The transaction.
    pub transaction: GlobalTransactionId,
    /// Every replica of its partitions, and every ldm with locks only.
    pub participants: Participants,
    /// Whether the client waits for the disk. The nodes then begin their log's next cycle at once.
    pub awaits_disk: bool,
}

layout! { Decision { number, transaction, participants, awaits_disk } }

impl Decision {
    /// Whether the node has a part in the transaction, or its tc.
    #[inline]
    pub fn concerns(&self, node: NodeId) -> bool {
        self.transaction.node == node.0 || self.participants.as_slice().iter().any(|it| it.node == node)
    }
}

// One decision is one cache line. The sequencer copies it once for each node of the transaction.
const _: () = assert!(size_of::<Decision>() <= 64);

/// From a node to the sequencer: transactions that are prepared at all their participants. A node has one
/// unanswered batch; [`Decide::batch_numbered`] answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeNumber {
    /// The epoch of the sender.
    pub epoch: Epoch,
    /// Counts the batches of the node in this epoch, from 1.
    pub batch: u64,
    /// The transactions.
    pub requests: Vec<Decision>,
}

layout! { TakeNumber { epoch, batch, requests } }

/// From tc to main of its node: asks for the commit number of a transaction that is prepared everywhere.
/// [`NumberTaken`] answers, unless the next epoch undoes the transaction.
#[derive(Debug)]
pub struct RequestNumber {
    /// The epoch of tc. Main drops a request of another epoch.
    pub epoch: Epoch,
    /// The transaction.
    pub transaction: TransactionId,
    /// Every replica of its partitions, and every ldm with locks only.
    pub participants: Participants,
    /// Whether the client waits for the disk.
    pub awaits_disk: bool,
}

/// From main to tc: the transaction commits with this number. All participants have their orders.
#[derive(Debug)]
pub struct NumberTaken {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its number.
    pub number: CommitNumber,
}
