//! The inbox of each block, and the enum of all signals.

use junctor_kernel::{ModuleId, Priority, SignalClass, WorldEvent};

use crate::append_records::*;
use crate::block_tables::*;
use crate::change_schema::*;
use crate::checkpoint::*;
use crate::client_command::*;
use crate::commit_transaction::*;
use crate::end_transaction::*;
use crate::execute_statement::*;
use crate::interrupt_session::*;
use crate::lock_wait::*;
use crate::module::Module;
use crate::read_rows::*;
use crate::read_status::*;
use crate::recover_log::*;
use crate::replicate_rows::*;
use crate::reserve_auto_increment::*;
use crate::set_globals::*;
use crate::start_log::*;
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
            /// Whether the signal may be deferred, or has reserved space.
            pub fn class(&self) -> SignalClass {
                match self { $($name::$variant(_) => SignalClass::$class,)* }
            }

            /// Maximum number of signals that its handler sends.
            pub fn emit_max(&self) -> u16 {
                match self { $($name::$variant(_) => $emit,)* }
            }

            /// The variant, as shown in traces.
            pub fn name(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)* }
            }

            /// Position in this inbox, for traces.
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

/// A block's reminder to itself to continue bounded background work.
#[derive(Debug)]
pub struct ContinueWork {
    /// Identifies the work, by the block's own numbers.
    pub work: u32,
}

inbox! {
    /// Signals to recv.
    RecvSignal {
        CommandReply: Reserved, 4;
        OpenToClients: Reserved, 1;
        ReadStatus: Reserved, 1;
    }
}
inbox! {
    /// Signals to sql.
    SqlSignal {
        OpenSession: Deferrable, 4;
        ExecuteCommand: Deferrable, 64;
        ContinueCommand: Reserved, 16;
        ContinueStatement: Reserved, 16;
        CloseSession: Reserved, 4;
        ReadRowsReply: Reserved, 16;
        ExecuteStatementReply: Reserved, 16;
        EndTransactionReply: Reserved, 16;
        UndoStatementsReply: Reserved, 16;
        ChangeSchemaReply: Reserved, 16;
        ReserveAutoIncrementReply: Reserved, 16;
        ReadStatusReply: Reserved, 16;
        ReadStatus: Reserved, 1;
        InterruptSession: Reserved, 16;
        InterruptSessionReply: Reserved, 16;
        SetGlobalsReply: Reserved, 16;
        ApplyGlobals: Reserved, 1;
        RestoreGlobals: Reserved, 1;
        ApplyGlobalsReply: Reserved, 16;
        UseUserLockReply: Reserved, 16;
        PublishCatalog: Reserved, 1;
        BlockTables: Reserved, 2;
        UnblockTables: Reserved, 2;
        ChangeSchemaStarted: Reserved, 1;
        HastenTransaction: Reserved, 16;
        ContinueWork: Reserved, 64;
    }
}
inbox! {
    /// Signals to tc.
    TcSignal {
        ExecuteStatement: Deferrable, 64;
        InterruptStatement: Deferrable, 64;
        EndTransaction: Reserved, 16;
        UndoStatements: Reserved, 16;
        WriteRowsReply: Reserved, 16;
        PrepareTransactionReply: Reserved, 16;
        CommitTransactionReply: Reserved, 16;
        UndoTransactionReply: Reserved, 16;
        CommitStable: Reserved, 4;
        AwaitDurableReply: Reserved, 16;
        LogSpaceChanged: Reserved, 1;
        ReserveLogSpaceReply: Reserved, 16;
        AwaitStable: Reserved, 1;
        LockWaitStarted: Reserved, 16;
        LockWaitEnded: Reserved, 2;
        ProbeDeadlock: Reserved, 16;
        NoteTableWait: Reserved, 16;
        ReadStatus: Reserved, 1;
        PublishCatalog: Reserved, 1;
    }
}
inbox! {
    /// Signals to ldm.
    LdmSignal {
        ReadRows: Deferrable, 2;
        WriteRows: Deferrable, 4;
        InterruptWrites: Deferrable, 16;
        PrepareTransaction: Reserved, 16;
        CommitTransaction: Reserved, 16;
        UndoTransaction: Reserved, 16;
        ReplicateRows: Reserved, 2;
        ReplicateRowsReply: Reserved, 2;
        ApplyReplica: Reserved, 4;
        AppendRecordsReply: Reserved, 1;
        ReplayRows: Reserved, 4;
        BuildIndexes: Reserved, 4;
        WriteCheckpoint: Reserved, 8;
        SetCheckpointSpeed: Reserved, 1;
        EndCheckpoint: Reserved, 8;
        LoadCheckpoint: Reserved, 8;
        CancelWait: Reserved, 4;
        ChangePartition: Reserved, 16;
        ReadStatus: Reserved, 1;
        PublishCatalog: Reserved, 1;
        ContinueWork: Reserved, 64;
    }
}
inbox! {
    /// Signals to query.
    QuerySignal {
        ReadRows: Deferrable, 2;
        OpenPartition: Reserved, 1;
        ReadStatus: Reserved, 1;
        PublishCatalog: Reserved, 1;
    }
}
inbox! {
    /// Signals to main.
    MainSignal {
        ChangeSchema: Reserved, 64;
        ChangePartitionReply: Reserved, 64;
        PublishCatalogReply: Reserved, 8;
        ReserveAutoIncrement: Reserved, 64;
        ReturnAutoIncrement: Reserved, 64;
        SetGlobals: Reserved, 64;
        RestoreGlobalsReply: Reserved, 64;
        UnlockTables: Reserved, 64;
        UseUserLock: Reserved, 16;
        CancelUserLock: Reserved, 1;
        ReleaseUserLocks: Reserved, 16;
        ReadStatus: Reserved, 1;
        BlockTablesReply: Reserved, 64;
        RecallTables: Reserved, 1;
        CancelSchemaChange: Reserved, 64;
        AppendRecordsReply: Reserved, 1;
        AwaitDurableReply: Reserved, 64;
        LogSpaceChanged: Reserved, 1;
        CommitStable: Reserved, 4;
        StartLogReply: Reserved, 64;
        RecoverLogReply: Reserved, 64;
        ReplayLogReply: Reserved, 64;
        BuildIndexesReply: Reserved, 64;
        BeginCheckpointReply: Reserved, 64;
        WriteCheckpointReply: Reserved, 64;
        SetCheckpointSpeedReply: Reserved, 64;
        ReadLogUsageReply: Reserved, 64;
        LoadCheckpointReply: Reserved, 64;
        ContinueWork: Reserved, 64;
    }
}

inbox! {
    /// Signals to log.
    LogSignal {
        AppendRecords: Reserved, 64;
        AwaitDurable: Reserved, 64;
        ReserveLogSpace: Reserved, 64;
        StartLog: Reserved, 16;
        RecoverLog: Reserved, 16;
        ReplayLog: Reserved, 64;
        ReplayRowsReply: Reserved, 64;
        BeginCheckpoint: Reserved, 1;
        TrimLog: Reserved, 16;
        ReadLogUsage: Reserved, 1;
    }
}

/// Any signal: one of a receiver's inbox, or an event of the world.
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
    /// To log.
    Log(LogSignal),
    /// From the world to the block that asked.
    World(WorldEvent),
}

// A signal is moved once or twice on its way. Larger contents belong in a buffer or a box.
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
            Signal::Log(signal) => signal.class(),
            Signal::World(_) => SignalClass::Reserved,
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
            Signal::Log(signal) => signal.emit_max(),
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
            Signal::Log(signal) => signal.name(),
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
            Signal::Log(signal) => 0x600 | signal.position(),
            Signal::World(_) => 0x700,
        }
    }

    fn from_world(event: WorldEvent) -> Signal {
        Signal::World(event)
    }

    fn name_of_module(module: ModuleId) -> Option<&'static str> {
        Module::from_number(module.number()).map(Module::name)
    }
}
