//! Sessions of nodes that are lost: main ends what they alone could use or release. A connection id begins
//! with the number of its node.

use junctor_kernel::{NodeId, Outbox, Time};
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, TableId};
use junctor_model::schema::TableLayout;
use junctor_signals::Signal;
use junctor_signals::change_schema::SchemaChange;

use super::block::MainBlock;
use super::state::{Requester, Task, WaitingChange};

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
        let is_lost = |layout: &TableLayout| {
            let owner = layout.definition.sharing.owner();
            owner.is_some_and(|owner| self.is_session_lost(owner.connection()))
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

    fn is_lost_wait_for_locks(&self, waiting: &WaitingChange) -> bool {
        let is_lock_tables = waiting.task.is_lock() && waiting.task.step().is_none();
        is_lock_tables && self.is_session_lost(waiting.requester.connection)
    }
}
