//! Leases: a data node chooses snapshots only while a majority of the voters grants it the membership.

use junctor_model::id::Incarnation;

/// Asks a voter for a lease. From main of a data node to main of each voter. It may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLease {
    /// The life of the node.
    pub incarnation: Incarnation,
    /// Nanoseconds from the start of the node to the sending. The lease counts from here.
    pub sent_ns: u64,
    /// The version of the set of voters by which the node counts a majority.
    pub voter_set: u64,
}

layout! { RequestLease { incarnation, sent_ns, voter_set } }

/// The answer of a voter that grants the lease. A voter that does not grant it is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLeaseReply {
    /// The life that has asked.
    pub incarnation: Incarnation,
    /// Copied from the request.
    pub sent_ns: u64,
    /// Copied from the request.
    pub voter_set: u64,
}

layout! { RequestLeaseReply { incarnation, sent_ns, voter_set } }
