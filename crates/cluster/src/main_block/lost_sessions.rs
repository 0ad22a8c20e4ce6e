//! Sessions of nodes that are lost: main ends what they alone could use or release. A connection id begins
//! with the number of its node.

use std::collections::BTreeSet;

use junctor_kernel::{Address, NodeId, Outbox, Time};
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, TableId, TableOwner};
use junctor_model::schema::{TableDefinition, TableLayout};
use junctor_signals::change_schema::{ChangeSchema, SchemaChange};
use junctor_signals::{MainSignal, Module, Signal};

use super::block::MainBlock;
use super::state::{Requester, Task, WaitingChange};

/// Maximum number of tables that a node lets the next node with the sequencer drop again.
const DROPPED_ELSEWHERE_MAX: usize = 1024;

/// The node of a connection's session.
pub(super) fn node_of(connection: ConnectionId) -> NodeId {
    NodeId((connection.0 >> 24) as u8)
}

impl MainBlock {
    /// Whether the node of the session is lost.
    pub(super) fn is_session_lost(&self, connection: ConnectionId) -> bool {
        let node = node_of(connection);
        self.member.is_some() && node != self.own.node && node != NodeId(0) && !self.has_life(node)
    }

    /// Whether the life of the node is over in which a session made tables of its own. Ids of connections
    /// begin anew in each life.
    pub(super) fn is_owner_lost(&self, owner: TableOwner) -> bool {
        let connection = owner.connection();
        let node = node_of(connection);
        let life = if node == self.own.node { Some(self.gateway.incarnation()) } else { self.life_of(node) };
        self.is_session_lost(connection) || (self.member.is_some() && life.is_some_and(|life| owner.is_before(life)))
    }

    /// Releases the user-level locks of lost sessions and the tables that they have locked, gives up their
    /// waits for tables, and drops the tables that only they could see.
    pub(super) fn leave_lost_sessions(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if !self.runs_schema_changes() {
            return;
        }
        self.leave_user_locks(outbox);
        while let Some(connection) = self.lost_table_lock() {
            self.release_tables(connection, false, outbox);
        }
        while let Some(position) = self.waiting.iter().position(|waiting| self.is_lost_wait_for_locks(waiting)) {
            self.give_up(position, Error::query_interrupted(), now, outbox);
        }
        let dropped = self.waiting.iter().flat_map(|waiting| dropped_by(&waiting.task));
        let dropped: BTreeSet<TableId> = dropped.copied().collect();
        let is_lost = |layout: &TableLayout| {
            let TableDefinition { id, sharing, .. } = &layout.definition;
            sharing.owner().is_some_and(|owner| self.is_owner_lost(owner)) && !dropped.contains(id)
        };
        let lost = self.catalog.dictionary.tables().filter(|layout| is_lost(layout));
        let tables: Vec<TableId> = lost.map(|layout| layout.definition.id).collect();
        if tables.is_empty() {
            return;
        }
        let task = Task::Requested(Box::new(SchemaChange::DropOwnTables { tables }));
        let waiting = self.waiting_change(Requester::main(self.own), task, now);
        self.waiting.push_back(waiting);
        self.begin_changes(now, outbox);
    }

    /// Keeps the tables of sessions of this node that the node with the sequencer is to drop. It may be lost
    /// before, and the session that ends cannot try again.
    pub(super) fn note_dropped_elsewhere(&mut self, signal: &MainSignal) {
        let MainSignal::ChangeSchema(ChangeSchema { change, reply_to, .. }) = signal else { return };
        let SchemaChange::DropOwnTables { tables } = &**change else { return };
        if reply_to.node == self.own.node {
            let kept = &mut self.share.dropped_elsewhere;
            kept.extend(tables);
            kept.drain(..kept.len().saturating_sub(DROPPED_ELSEWHERE_MAX));
        }
    }

    /// Lets the next node with the sequencer drop the tables again that are left of those before.
    pub(super) fn send_drops_again(&self, node: NodeId, outbox: &mut Outbox<Signal>) {
        if let Some(change) = self.drops_again() {
            let request = Requester::main(self.own).request(change);
            outbox.send(Address::new(node, Module::Main, 0), Signal::Main(MainSignal::ChangeSchema(request)));
        }
    }

    /// As [`MainBlock::send_drops_again`], if this node is the next one.
    pub(super) fn queue_drops_again(&mut self, now: Time) {
        if let Some(change) = self.drops_again() {
            let waiting = self.waiting_change(Requester::main(self.own), Task::Requested(Box::new(change)), now);
            self.waiting.push_back(waiting);
        }
    }

    /// The tables may be dropped already: their ids are not used again.
    fn drops_again(&self) -> Option<SchemaChange> {
        let tables: Vec<TableId> = self.share.dropped_elsewhere.iter().copied().collect();
        (!tables.is_empty()).then_some(SchemaChange::DropOwnTables { tables })
    }

    fn is_lost_wait_for_locks(&self, waiting: &WaitingChange) -> bool {
        let is_lock_tables = waiting.task.is_lock() && waiting.task.step().is_none();
        is_lock_tables && self.is_session_lost(waiting.requester.connection)
    }
}

/// The tables of sessions that a change drops.
fn dropped_by(task: &Task) -> &[TableId] {
    match task {
        Task::Requested(change) => match &**change {
            SchemaChange::DropOwnTables { tables } => tables,
            _ => &[],
        },
        Task::Step { .. } => &[],
    }
}
