//! The schema of a cluster. Main of the node with the sequencer runs the schema changes. Main of every other
//! node introduces its blocks to it, gets the catalog for them, and keeps a copy of the schema.

use std::sync::Arc;

use junctor_model::id::{Epoch, Incarnation, TableId};

use crate::change_schema::Catalog;

/// The blocks of a node that need every catalog. From main of a node to main of the node with the sequencer,
/// repeated until it is welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntroduceNode {
    /// The epoch that the node has installed.
    pub epoch: Epoch,
    /// Its life.
    pub incarnation: Incarnation,
    /// Number of its sql blocks.
    pub sql: u16,
    /// Number of its tc blocks.
    pub tc: u16,
    /// Number of its ldm blocks.
    pub ldm: u16,
    /// Number of its query blocks.
    pub query: u16,
    /// The version of the schema that the node has recovered.
    pub version: u64,
    /// Whether the node joins, and does not have the schema yet.
    pub needs_schema: bool,
}

layout! { IntroduceNode { epoch, incarnation, sql, tc, ldm, query, version, needs_schema } }

/// Every block of the node has the catalog: the node may serve clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WelcomeNode {
    /// The epoch of the introduction.
    pub epoch: Epoch,
    /// The life of the node that has introduced itself.
    pub incarnation: Incarnation,
    /// Number of tc blocks of each data node.
    pub tc: u16,
    /// Why the node must not serve.
    pub refusal: Option<Box<str>>,
}

layout! { WelcomeNode { epoch, incarnation, tc, refusal } }

/// The schema for a node that returns. From main of the node with the sequencer, which begins no schema
/// change as long as a node copies rows.
#[derive(Clone, Debug)]
pub struct HandOverSchema {
    /// The epoch of the introduction.
    pub epoch: Epoch,
    /// The schema, and where its partitions are.
    pub catalog: Arc<Catalog>,
    /// The id of the next table.
    pub next_table: TableId,
    /// The place of the next partition.
    pub next_place: u64,
    /// Encoded marks of all AUTO_INCREMENT counters.
    pub marks: Vec<Box<[u8]>>,
}

layout! { HandOverSchema { epoch, catalog, next_table, next_place, marks } }

/// Records of main that every data node writes to its log, once the sequencer has given them a number. From
/// main of the node with the sequencer to main of every other serving data node.
#[derive(Clone, Debug)]
pub struct ShareRecords {
    /// Identifies the records among those of the sending node.
    pub id: u64,
    /// The encoded change of the schema.
    pub dictionary: Option<Box<[u8]>>,
    /// The schema after the change, and where its partitions are.
    pub catalog: Option<Arc<Catalog>>,
    /// Encoded marks of AUTO_INCREMENT counters.
    pub marks: Vec<Box<[u8]>>,
    /// The place of the next partition.
    pub next_place: u64,
}

layout! { ShareRecords { id, dictionary, catalog, marks, next_place } }

/// The node keeps the records until they have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRecordsReply {
    /// Copied from the request.
    pub id: u64,
}

layout! { ShareRecordsReply { id } }
