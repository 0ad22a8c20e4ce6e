//! Keeps sessions from using tables during a schema change. Before a change, main asks every sql block to
//! admit no new users of some tables, and waits until no session uses them. Afterwards it announces the end
//! of the change. Statements take no lock for this, because each sql block knows its sessions.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::id::{ConnectionId, TableId, TransactionId};

use crate::read_rows::OperationId;

/// Statements that a change keeps out of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Statements that write or lock rows.
    Writes,
    /// Every statement.
    All,
}

choices! { Exclusion { 0 Writes; 1 All; } }

/// Users of a table that must end before the change runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableUsers {
    /// Running statements; transactions may stay open.
    Statements,
    /// Open transactions that have used the table, and running statements.
    Transactions,
}

choices! { TableUsers { 0 Statements; 1 Transactions; } }

/// A table from which a change excludes other sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedTable {
    /// Id of the table when the change was asked for.
    pub table: TableId,
    /// The statements to keep out.
    pub exclusion: Exclusion,
}

layout! { BlockedTable { table, exclusion } }

/// From main to every sql block: keep new users of these tables waiting, and reply when nobody uses them any
/// more. Sent again for the same change after a `RecallTables`.
#[derive(Debug)]
pub struct BlockTables {
    /// Main's number of the change.
    pub operation: OperationId,
    /// The main block.
    pub reply_to: Address,
    /// The session that requested the change. It is not kept out.
    pub owner: ConnectionId,
    /// The users to wait for.
    pub users: TableUsers,
    /// Each table once.
    pub tables: Arc<[BlockedTable]>,
}

layout! { BlockTables { operation, reply_to, owner, users, tables } }

/// The reply to [`BlockTables`]: no session of this block uses the tables.
#[derive(Debug)]
pub struct BlockTablesReply {
    /// Copied from the request.
    pub operation: OperationId,
}

layout! { BlockTablesReply { operation } }

/// From a sql block that has already replied to [`BlockTables`]: a transaction older than the change needs a
/// table. If the change has not begun, main sends `BlockTables` to this block again, and the block admits
/// that transaction first. Transactions and changes therefore never wait for each other in a cycle.
#[derive(Debug)]
pub struct RecallTables {
    /// Main's number of the change.
    pub operation: OperationId,
    /// The sql block that replied before.
    pub from: Address,
}

layout! { RecallTables { operation, from } }

/// From main to every sql block: the change is over or given up, and waiting statements continue.
#[derive(Debug)]
pub struct UnblockTables {
    /// Main's number of the change. `None` means all changes that the block knows: main does so when the node
    /// introduces itself, because what it has sent to the life before of the node may have come to this one.
    /// The tables of changes that have begun stay blocked until the next catalog.
    pub operation: Option<OperationId>,
}

layout! { UnblockTables { operation } }

/// From main to the requesting sql block: the change begins or ends a wait for other sessions.
#[derive(Debug)]
pub struct NoteChangeWait {
    /// Copied from the request.
    pub operation: OperationId,
    /// True when the wait begins, false when it has ended.
    pub waits: bool,
}

layout! { NoteChangeWait { operation, waits } }

/// From sql to main: the session no longer wants the change. A waiting change is given up with error 1317,
/// and so is an alteration that fills indexes or checks rows; main undoes the alteration. Any other change
/// that has begun continues.
#[derive(Debug)]
pub struct CancelSchemaChange {
    /// The operation of the request to cancel.
    pub operation: OperationId,
    /// The sql block that sent it.
    pub reply_to: Address,
}

layout! { CancelSchemaChange { operation, reply_to } }

/// From sql to main: releases the tables that the session locked by LOCK TABLES, if any. Has no reply.
#[derive(Debug)]
pub struct UnlockTables {
    /// The session's connection.
    pub connection: ConnectionId,
}

layout! { UnlockTables { connection } }

/// From a sql block to every tc of the node: a transaction begins or stops waiting for tables that a change
/// holds. If another transaction waits for rows of this one meanwhile, tc reports that by
/// [`HastenTransaction`], because the change may wait for the other transaction.
#[derive(Clone, Copy, Debug)]
pub struct NoteTableWait {
    /// The waiting transaction.
    pub transaction: TransactionId,
    /// The connection of its session.
    pub connection: ConnectionId,
    /// The sql block of the session.
    pub from: Address,
    /// True when the wait begins, false when it has ended.
    pub waits: bool,
}

layout! { NoteTableWait { transaction, connection, from, waits } }

/// From tc to a sql block: the named transaction waits for tables, and another transaction waits for one of
/// its rows. The named transaction then goes before changes that have not begun, so that no cycle of waits
/// forms.
#[derive(Debug)]
pub struct HastenTransaction {
    /// The transaction that waits for tables.
    pub transaction: TransactionId,
    /// The connection of its session.
    pub connection: ConnectionId,
}

layout! { HastenTransaction { transaction, connection } }
