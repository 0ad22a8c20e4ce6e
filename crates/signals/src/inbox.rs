//! The inbox of each block, and the union that travels.

use junctor_kernel::WorldEvent;
use junctor_kernel::{Priority, SignalClass};

use crate::block_tables::*;
use crate::change_schema::*;
use crate::client_command::*;
use crate::commit_transaction::*;
use crate::end_transaction::*;
use crate::execute_statement::*;
use crate::interrupt_session::*;
use crate::lock_wait::*;
use crate::read_rows::*;
use crate::read_status::*;
use crate::replicate_rows::*;
use crate::reserve_auto_increment::*;
use crate::set_globals::*;
use crate::undo_statements::*;
use crate::use_user_lock::*;
use crate::write_rows::*;

macro_rules! inbox {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $class:ident, $emit:expr;)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum $name { $($variant($variant),)* }

        impl $name {
            /// Whether this opens a conversation or answers within one.
            pub fn class(&self) -> SignalClass {
                match self { $($name::$variant(_) => SignalClass::$class,)* }
            }

            /// The most signals that its handler emits at once.
            pub fn emit_max(&self) -> u16 {
                match self { $($name::$variant(_) => $emit,)* }
            }

            /// The name of the signal.
            pub fn name(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)* }
            }

            /// The position in this inbox, for the trace.
            pub fn position(&self) -> u16 {
                let mut position = 0;
                $(
                    if matches!(self, $name::$variant(_)) { return position; }
                    position += 1;
                )*
                position
            }
        }
    };
}

/// A self-addressed reminder to go on with bounded background work.
#[derive(Debug)]
pub struct ContinueWork {
    /// Which work, in the block's own numbering.
    pub work: u32,
}

inbox! {
    /// What recv takes.
    RecvSignal {
        CommandReply: Reply, 4;
        ReadStatus: Reply, 1;
        ContinueWork: Reply, 64;
    }
}
inbox! {
    /// What sql takes.
    SqlSignal {
        OpenSession: Request, 4;
        ExecuteCommand: Request, 64;
        ContinueCommand: Reply, 16;
        CloseSession: Reply, 4;
        ReadRowsReply: Reply, 16;
        ExecuteStatementReply: Reply, 16;
        EndTransactionReply: Reply, 16;
        UndoStatementsReply: Reply, 16;
        ChangeSchemaReply: Reply, 16;
        ReserveAutoIncrementReply: Reply, 16;
        ReadStatusReply: Reply, 16;
        ReadStatus: Reply, 1;
        InterruptSession: Reply, 16;
        InterruptSessionReply: Reply, 16;
        ApplyGlobals: Reply, 1;
        ApplyGlobalsReply: Reply, 16;
        UseUserLockReply: Reply, 16;
        PublishCatalog: Reply, 1;
        BlockTables: Reply, 2;
        UnblockTables: Reply, 2;
        ChangeSchemaStarted: Reply, 1;
        HastenTransaction: Reply, 16;
        ContinueWork: Reply, 64;
    }
}
inbox! {
    /// What tc takes.
    TcSignal {
        ExecuteStatement: Request, 64;
        InterruptStatement: Request, 64;
        EndTransaction: Reply, 16;
        UndoStatements: Reply, 16;
        WriteRowsReply: Reply, 16;
        PrepareTransactionReply: Reply, 16;
        CommitTransactionReply: Reply, 16;
        UndoTransactionReply: Reply, 16;
        CommitStable: Reply, 4;
        AwaitStable: Reply, 1;
        LockWaitStarted: Reply, 16;
        LockWaitEnded: Reply, 2;
        ProbeDeadlock: Reply, 16;
        NoteTableWait: Reply, 16;
        ReadStatus: Reply, 1;
        PublishCatalog: Reply, 1;
        ContinueWork: Reply, 16;
    }
}
inbox! {
    /// What ldm takes.
    LdmSignal {
        ReadRows: Request, 2;
        WriteRows: Request, 4;
        InterruptWrites: Request, 16;
        PrepareTransaction: Reply, 16;
        CommitTransaction: Reply, 16;
        UndoTransaction: Reply, 16;
        ReplicateRows: Reply, 2;
        ReplicateRowsReply: Reply, 2;
        ApplyReplica: Reply, 4;
        CancelWait: Reply, 4;
        ChangePartition: Reply, 16;
        ReadStatus: Reply, 1;
        PublishCatalog: Reply, 1;
        ContinueWork: Reply, 64;
    }
}
inbox! {
    /// What query takes.
    QuerySignal {
        ReadRows: Request, 2;
        OpenPartition: Reply, 1;
        ReadStatus: Reply, 1;
        PublishCatalog: Reply, 1;
    }
}
inbox! {
    /// What main takes.
    MainSignal {
        ChangeSchema: Reply, 64;
        ChangePartitionReply: Reply, 64;
        PublishCatalogReply: Reply, 8;
        ReserveAutoIncrement: Reply, 1;
        SetGlobals: Reply, 64;
        UnlockTables: Reply, 64;
        UseUserLock: Reply, 16;
        CancelUserLock: Reply, 1;
        ReleaseUserLocks: Reply, 16;
        ReadStatus: Reply, 1;
        BlockTablesReply: Reply, 64;
        RecallTables: Reply, 1;
        CancelSchemaChange: Reply, 64;
        ContinueWork: Reply, 64;
    }
}

/// Any signal: the inbox of its receiver, or an event of the world.
#[derive(Debug)]
pub enum Signal {
    /// To recv.
    Recv(RecvSignal),
    /// To sql.
    Sql(SqlSignal),
    /// To tc.
    Tc(TcSignal),
    /// To ldm.
    Ldm(LdmSignal),
    /// To query.
    Query(QuerySignal),
    /// To main.
    Main(MainSignal),
    /// From the world, to whoever asked.
    World(WorldEvent),
}

// A signal is moved once or twice on its way; what is bigger belongs in a buffer or a box.
const _: () = assert!(size_of::<Signal>() <= 128);

impl junctor_kernel::Signal for Signal {
    #[inline]
    fn class(&self) -> SignalClass {
        match self {
            Signal::Recv(signal) => signal.class(),
            Signal::Sql(signal) => signal.class(),
            Signal::Tc(signal) => signal.class(),
            Signal::Ldm(signal) => signal.class(),
            Signal::Query(signal) => signal.class(),
            Signal::Main(signal) => signal.class(),
            Signal::World(_) => SignalClass::Reply,
        }
    }

    #[inline]
    fn priority(&self) -> Priority {
        match self {
            Signal::Tc(TcSignal::ProbeDeadlock(_) | TcSignal::CommitStable(_)) => Priority::High,
            _ => Priority::Normal,
        }
    }

    #[inline(always)]
    fn emit_max(&self) -> u16 {
        match self {
            Signal::Recv(signal) => signal.emit_max(),
            Signal::Sql(signal) => signal.emit_max(),
            Signal::Tc(signal) => signal.emit_max(),
            Signal::Ldm(signal) => signal.emit_max(),
            Signal::Query(signal) => signal.emit_max(),
            Signal::Main(signal) => signal.emit_max(),
            Signal::World(_) => 64,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Signal::Recv(signal) => signal.name(),
            Signal::Sql(signal) => signal.name(),
            Signal::Tc(signal) => signal.name(),
            Signal::Ldm(signal) => signal.name(),
            Signal::Query(signal) => signal.name(),
            Signal::Main(signal) => signal.name(),
            Signal::World(_) => "WorldEvent",
        }
    }

    #[inline]
    fn number(&self) -> u16 {
        match self {
            Signal::Recv(signal) => signal.position(),
            Signal::Sql(signal) => 0x100 | signal.position(),
            Signal::Tc(signal) => 0x200 | signal.position(),
            Signal::Ldm(signal) => 0x300 | signal.position(),
            Signal::Query(signal) => 0x400 | signal.position(),
            Signal::Main(signal) => 0x500 | signal.position(),
            Signal::World(_) => 0x600,
        }
    }

    fn from_world(event: WorldEvent) -> Signal {
        Signal::World(event)
    }
}

macro_rules! into_signal {
    ($inbox:ident in $module:ident: $($variant:ident),*) => {
        $(
            impl From<$variant> for $inbox {
                fn from(signal: $variant) -> $inbox { $inbox::$variant(signal) }
            }
        )*
        impl From<$inbox> for Signal {
            fn from(signal: $inbox) -> Signal { Signal::$module(signal) }
        }
    };
}

into_signal!(RecvSignal in Recv: CommandReply, ReadStatus, ContinueWork);
into_signal!(SqlSignal in Sql: OpenSession, ExecuteCommand, ContinueCommand, CloseSession, ReadRowsReply, ExecuteStatementReply,
    EndTransactionReply, UndoStatementsReply, ChangeSchemaReply, ReserveAutoIncrementReply, ReadStatusReply, ReadStatus, InterruptSession, InterruptSessionReply,
    ApplyGlobals, ApplyGlobalsReply, UseUserLockReply, PublishCatalog, BlockTables, UnblockTables,
    ChangeSchemaStarted, HastenTransaction, ContinueWork);
into_signal!(TcSignal in Tc: ExecuteStatement, InterruptStatement, EndTransaction, UndoStatements, WriteRowsReply, PrepareTransactionReply, CommitTransactionReply,
    UndoTransactionReply, CommitStable, AwaitStable, LockWaitStarted, LockWaitEnded, ProbeDeadlock, NoteTableWait, ReadStatus, PublishCatalog, ContinueWork);
into_signal!(LdmSignal in Ldm: ReadRows, WriteRows, InterruptWrites, PrepareTransaction, CommitTransaction, UndoTransaction, ReplicateRows,
    ReplicateRowsReply, ApplyReplica, CancelWait, ChangePartition, ReadStatus, PublishCatalog, ContinueWork);
into_signal!(QuerySignal in Query: ReadRows, OpenPartition, ReadStatus, PublishCatalog);
into_signal!(MainSignal in Main: ChangeSchema, ChangePartitionReply, PublishCatalogReply, ReserveAutoIncrement, SetGlobals, BlockTablesReply, RecallTables,
    CancelSchemaChange, UnlockTables, UseUserLock,
    CancelUserLock, ReleaseUserLocks, ContinueWork);
