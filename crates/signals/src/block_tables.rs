//! Who uses a table, and who changes it: before a schema change main asks every sql block to let nobody begin to use some
//! tables, waits until nobody uses them any more, and tells all when the change is over. Statements take no lock for that; the
//! sql blocks know their sessions.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::id::{ConnectionId, TableId, TransactionId};

use crate::read_rows::OperationId;

/// What of others a change keeps from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Statements that write or lock rows.
    Writes,
    /// Every statement.
    All,
}

/// Who has to end before the change runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableUsers {
    /// Statements that run; transactions may stay open.
    Statements,
    /// Transactions that have used the table, too.
    Transactions,
}

/// A table that a change keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedTable {
    /// The table.
    pub table: TableId,
    /// What of others is kept out.
    pub exclusion: Exclusion,
}

/// From main to every sql block: statements that would begin to use these tables wait from now on; answer when nobody uses
/// them any more. Sent again for the same change, it asks anew after a `RecallTables`.
#[derive(Debug)]
pub struct BlockTables {
    /// Main's number of the change.
    pub operation: OperationId,
    /// Main.
    pub reply_to: Address,
    /// The session that asked for the change; it is not kept out.
    pub owner: ConnectionId,
    /// Who is waited for.
    pub users: TableUsers,
    /// The tables.
    pub tables: Arc<[BlockedTable]>,
}

/// The answer: no session of this block uses the tables.
#[derive(Debug)]
pub struct BlockTablesReply {
    /// From the request.
    pub operation: OperationId,
}

/// From a sql block that has answered to main: a transaction that is older than the change would use a table. If the change has
/// not begun, main asks this block again, which lets that transaction in first; so transactions and changes never wait for
/// each other in a circle.
#[derive(Debug)]
pub struct RecallTables {
    /// Main's number of the change.
    pub operation: OperationId,
    /// The sql block.
    pub from: Address,
}

/// From main to every sql block: the change is over, or given up. Who waits goes on.
#[derive(Debug)]
pub struct UnblockTables {
    /// Main's number of the change.
    pub operation: OperationId,
}

/// From main to the sql block that asked for a change: it waits for nobody any more.
#[derive(Debug)]
pub struct ChangeSchemaStarted {
    /// From the request.
    pub operation: OperationId,
}

/// From sql to main: the session wants the change no more. A change that waits is given up with error 1317; one that has begun
/// goes on.
#[derive(Debug)]
pub struct CancelSchemaChange {
    /// The operation of the request.
    pub operation: OperationId,
    /// Who asked.
    pub reply_to: Address,
}

/// From sql to main: a session gives back what LOCK TABLES gave it, if it has something. Has no answer.
#[derive(Debug)]
pub struct UnlockTables {
    /// The session.
    pub connection: ConnectionId,
}

/// From a sql block to every tc of the node: a transaction waits for tables that a change keeps from it, or does no more.
/// Meanwhile tc tells when somebody waits for what it has locked, for the change may wait for that one.
#[derive(Clone, Copy, Debug)]
pub struct NoteTableWait {
    /// Who waits.
    pub transaction: TransactionId,
    /// Its session.
    pub connection: ConnectionId,
    /// The sql block.
    pub from: Address,
    /// Whether it begins to wait; false when it has ended.
    pub waits: bool,
}

/// From tc to a sql block: somebody waits for a row of a transaction that waits for tables. It goes before changes that have
/// not begun, so that nobody waits in a circle.
#[derive(Debug)]
pub struct HastenTransaction {
    /// Who waits for tables.
    pub transaction: TransactionId,
    /// Its session.
    pub connection: ConnectionId,
}
