//! Questions from main to main of another node: rows of status tables about the whole cluster, and requests
//! to stop. And the request of a session to stop a node.

use junctor_kernel::{Address, NodeId};
use junctor_model::error::Error;
use junctor_model::value::Value;

use crate::read_rows::OperationId;
use crate::read_status::StatusTable;

/// What main asks main of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

choices! {
    NodeQuestion {
        0 Status { table };
        1 Stop { restarts, is_forced };
    }
}

/// Asks a node. If the receiver is another node, it passes the question on: nodes without data have no links
/// to each other.
#[derive(Clone, Copy, Debug)]
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
    /// Why the node does not stop.
    pub error: Option<Box<Error>>,
}

layout! { AskNodeReply { id, node, rows, error } }

/// A session wants a node to stop. From sql to main of its own node.
#[derive(Clone, Copy, Debug)]
pub struct StopNode {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The node; `None` for the own one, whose group may lose its last replica.
    pub node: Option<NodeId>,
    /// Whether its supervisor is to start it again.
    pub restarts: bool,
    /// Whether it stops although its group then has no replica that serves.
    pub is_forced: bool,
}

/// The reply to [`StopNode`]: the node has begun to stop, or it does not.
#[derive(Debug)]
pub struct StopNodeReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Why it does not stop.
    pub error: Option<Box<Error>>,
}
