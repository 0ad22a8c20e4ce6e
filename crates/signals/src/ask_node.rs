//! Questions from main to main of another node: rows of status tables about the whole cluster, and requests
//! of sessions to one node: to stop, to stop a session, to take part in a backup, to let a node group or a
//! node leave.

use junctor_kernel::{Address, NodeId};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, ConnectionId};
use junctor_model::value::Value;

use crate::interrupt_session::KillReach;
use crate::read_rows::OperationId;
use crate::read_status::StatusTable;

/// What main asks main of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeQuestion {
    /// The rows that the node itself has of a table.
    Status {
        /// The table.
        table: StatusTable,
    },
    /// The node is to stop.
    Stop {
        /// Whether its supervisor is to start it again.
        restarts: bool,
        /// Whether it stops although its group then has no replica that serves.
        is_forced: bool,
    },
    /// The node is to stop a session, or the statement of a session.
    Kill {
        /// The session.
        connection: ConnectionId,
        /// True for KILL CONNECTION, false for KILL QUERY.
        closes_connection: bool,
        /// Which sessions the killing session may stop.
        reach: KillReach,
    },
    /// The node is to copy its data to a backup of the cluster.
    Backup {
        /// The step.
        step: BackupStep,
    },
    /// The leader is to mark a node group as leaving, or to take the mark back.
    LeaveGroup {
        /// The group.
        group: u8,
        /// Whether it is to be removed.
        leaves: bool,
    },
    /// The leader is to mark a replica that was added to its group as leaving, or to take the mark back.
    LeaveReplica {
        /// The number of the node.
        node: u8,
        /// Whether it is to be removed.
        leaves: bool,
    },
}

choices! {
    NodeQuestion {
        0 Status { table };
        1 Stop { restarts, is_forced };
        2 Kill { connection, closes_connection, reach };
        3 Backup { step };
        4 LeaveGroup { group, leaves };
        5 LeaveReplica { node, leaves };
    }
}

/// A step of a node's part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupStep {
    /// Keeps the files of the newest checkpoint and the log until the end.
    Begin {
        /// The store: a folder, or `s3://BUCKET/PREFIX`.
        store: Box<str>,
        /// The name of the backup.
        name: Box<str>,
    },
    /// Copies the checkpoint, and the log until every commit up to this number is in the copy. A node whose
    /// part has begun to copy notes that somebody waits for it.
    Copy {
        /// The name of the backup.
        name: Box<str>,
        /// The number.
        until: CommitNumber,
    },
    /// Ends the part. It is an error if the part is not complete.
    End {
        /// The name of the backup.
        name: Box<str>,
    },
}

choices! {
    BackupStep {
        0 Begin { store, name };
        1 Copy { name, until };
        2 End { name };
    }
}

/// Asks a node. If the receiver is another node, it passes the question on: nodes without data have no links
/// to each other.
#[derive(Clone, Debug)]
pub struct AskNode {
    /// Returned in the reply.
    pub id: u64,
    /// The node that answers.
    pub node: NodeId,
    /// The question.
    pub question: NodeQuestion,
}

layout! { AskNode { id, node, question } }

/// The reply to [`AskNode`].
#[derive(Debug)]
pub struct AskNodeReply {
    /// Copied from the request.
    pub id: u64,
    /// Copied from the request.
    pub node: NodeId,
    /// The rows of a status table.
    pub rows: Vec<Vec<Value>>,
    /// Why the node does not do what the session wants.
    pub error: Option<Box<Error>>,
}

layout! { AskNodeReply { id, node, rows, error } }

/// A session wants a node to do something. From sql to main of its own node.
#[derive(Debug)]
pub struct ControlNode {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The node; `None` for the own one, whose group may lose its last replica, and for the leader.
    pub node: Option<NodeId>,
    /// What it is to do.
    pub question: Box<NodeQuestion>,
}

/// The reply to [`ControlNode`]: the node does it, or has begun to stop.
#[derive(Debug)]
pub struct ControlNodeReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Why it does not.
    pub error: Option<Box<Error>>,
}
