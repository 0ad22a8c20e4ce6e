//! The inbox of each block, and the enum of all signals.

use std::ops::RangeInclusive;

use junctor_kernel::invariant::fail;
use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::{
    BufferPool, DecodeError, EncodeError, LinkMaker, ModuleId, Priority, SignalClass, WireSignal, WorldEvent,
};

use crate::append_records::*;
use crate::ask_node::*;
use crate::ask_outcome::*;
use crate::ask_snapshot::*;
use crate::block_tables::*;
use crate::change_schema::*;
use crate::checkpoint::*;
use crate::client_command::*;
use crate::codec::page::Page;
#[cfg(test)]
use crate::codec::sample::Draw;
use crate::codec::{LinkDecoder, LinkEncoder, Reader, Result, VERSION, VERSION_MIN, Wire, Writer, layouts};
use crate::commit_transaction::*;
use crate::copy_rows::*;
use crate::decide::*;
use crate::end_transaction::*;
use crate::execute_statement::*;
use crate::install_membership::*;
use crate::interrupt_session::*;
use crate::lend_session::*;
use crate::lock_wait::*;
use crate::module::Module;
use crate::read_rows::*;
use crate::read_status::*;
use crate::recover_log::*;
use crate::replicate_rows::*;
use crate::report_node::*;
use crate::request_lease::*;
use crate::reserve_auto_increment::*;
use crate::set_globals::*;
use crate::share_schema::*;
use crate::start_epoch::*;
use crate::start_log::*;
use crate::statements_ended::*;
use crate::take_number::*;
use crate::undo_statements::*;
use crate::use_user_lock::*;
use crate::write_rows::*;

/// Declares an inbox. The number after its name is the high byte of the numbers of its signals between nodes.
/// Each signal has a class and the maximum number of signals that its handler sends. `crosses NUMBER` lets it
/// go to other nodes, with this number as the low byte; `crosses NUMBER since VERSION` only on links of that
/// version. A number is never used again for another signal. `local` keeps a signal within its node.
macro_rules! inbox {
    ($(#[$doc:meta])* $name:ident = $to:ident $inbox:literal {
        $($variant:ident: $class:ident, $emit:expr, $way:ident $($number:literal $(since $since:literal)?)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum $name { $($variant($variant),)* }

        $(way!($way $($number)?);)*

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

        #[cfg(test)]
        impl From<$name> for Signal {
            fn from(signal: $name) -> Signal {
                Signal::$to(signal)
            }
        }

        #[allow(unreachable_patterns, unused_mut, unused_variables, reason = "an inbox may have no local signal, or only such")]
        impl $name {
            /// Appends the number and the content of the signal, which must cross nodes.
            #[inline]
            pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
                match self {
                    $($($name::$variant(signal) => {
                        $(writer.needs(stringify!($variant), $since);)?
                        writer.put(&u16::to_le_bytes($inbox << 8 | $number));
                        Wire::encode(signal, writer);
                    })?)*
                    _ => fail("the signal crosses nodes", format_args!("{} is local", self.name())),
                }
            }

            /// Takes the content of the signal with this number.
            #[inline]
            pub(crate) fn decode(number: u8, reader: &mut Reader<'_>) -> Result<$name> {
                match number {
                    $($($number $(if reader.version() >= $since)? => Wire::decode(reader).map($name::$variant),)?)*
                    _ => Err(DecodeError::UnknownSignal($inbox << 8 | u16::from(number))),
                }
            }

            pub(crate) fn recycle(self, buffers: &mut BufferPool) {
                match self {
                    $($($name::$variant(signal) => {
                        let _: u8 = $number;
                        Wire::recycle(signal, buffers);
                    })?)*
                    _ => {}
                }
            }

            /// Describes the signals that cross nodes, and returns the names of the others.
            pub(crate) fn describe(page: &mut Page) -> Vec<&'static str> {
                let mut local = Vec::new();
                $(
                    let described = page.signals();
                    $(page.add_signal::<$variant>($inbox << 8 | $number, stringify!($variant), concat!($($since)?));)?
                    if page.signals() == described {
                        local.push(stringify!($variant));
                    }
                )*
                local
            }

            /// For each signal that crosses nodes, a function that makes random ones.
            #[cfg(test)]
            pub(crate) fn samplers() -> Vec<fn(&mut Draw) -> Signal> {
                let mut samplers: Vec<fn(&mut Draw) -> Signal> = Vec::new();
                $($(
                    let _: u8 = $number;
                    samplers.push(|draw| Signal::from($name::$variant(Wire::sample(draw))));
                )?)*
                samplers
            }
        }
    };
}

/// Accepts the two ways of a signal.
macro_rules! way {
    (local) => {};
    (crosses $number:literal) => {};
}

/// A block's reminder to itself to continue bounded background work.
#[derive(Debug)]
pub struct ContinueWork {
    /// Identifies the work, by the block's own numbers.
    pub work: u32,
}

inbox! {
    /// Signals to recv.
    RecvSignal = Recv 0 {
        CommandReply: Reserved, 4, local;
        OpenToClients: Reserved, 1, local;
        ReadStatus: Reserved, 1, local;
    }
}
inbox! {
    /// Signals to sql.
    SqlSignal = Sql 1 {
        OpenSession: Deferrable, 4, local;
        ExecuteCommand: Deferrable, 64, local;
        ReceiveFile: Reserved, 64, local;
        NoteHalfCommand: Reserved, 1, local;
        ContinueCommand: Reserved, 16, local;
        ContinueStatement: Reserved, 16, local;
        CloseSession: Reserved, 4, local;
        ReadRowsReply: Reserved, 16, crosses 0;
        ExecuteStatementReply: Reserved, 16, crosses 1;
        EndTransactionReply: Reserved, 16, crosses 2;
        UndoStatementsReply: Reserved, 16, crosses 3;
        ChangeSchemaReply: Reserved, 16, crosses 4;
        ReserveAutoIncrementReply: Reserved, 16, crosses 5;
        ReadStatusReply: Reserved, 16, crosses 6;
        ReadStatus: Reserved, 1, local;
        InterruptSession: Reserved, 16, local;
        InterruptSessionReply: Reserved, 16, local;
        SetGlobalsReply: Reserved, 16, crosses 7;
        ApplyGlobals: Reserved, 1, crosses 8;
        RestoreGlobals: Reserved, 1, crosses 9;
        ApplyGlobalsReply: Reserved, 16, crosses 10;
        UseUserLockReply: Reserved, 16, crosses 11;
        PublishCatalog: Reserved, 1, crosses 12;
        BlockTables: Reserved, 2, crosses 13;
        UnblockTables: Reserved, 2, crosses 14;
        NoteChangeWait: Reserved, 1, crosses 15;
        HastenTransaction: Reserved, 16, crosses 16;
        NoteLockWait: Reserved, 16, crosses 18;
        BeginEpoch: Reserved, 64, local;
        AskSnapshotReply: Reserved, 64, crosses 17;
        ResolveCommitReply: Reserved, 4, local;
        ControlNodeReply: Reserved, 16, local;
        UseHost: Reserved, 4, local;
        SequencerLost: Reserved, 64, local;
        ContinueWork: Reserved, 64, local;
        TakeSession: Reserved, 64, local;
        ReturnSession: Reserved, 64, local;
        InterruptLentSession: Reserved, 16, local;
    }
}
inbox! {
    /// Signals to tc.
    TcSignal = Tc 2 {
        ExecuteStatement: Deferrable, 64, crosses 0;
        InterruptStatement: Deferrable, 64, crosses 1;
        EndTransaction: Reserved, 16, crosses 2;
        UndoStatements: Reserved, 16, crosses 3;
        WriteRowsReply: Reserved, 16, crosses 4;
        PrepareTransactionReply: Reserved, 16, crosses 5;
        CommitTransactionReply: Reserved, 16, crosses 6;
        UndoTransactionReply: Reserved, 16, crosses 7;
        CommitStable: Reserved, 4, local;
        SeenStable: Reserved, 64, local;
        AwaitDurableReply: Reserved, 16, local;
        LogSpaceChanged: Reserved, 1, local;
        ReserveLogSpaceReply: Reserved, 16, local;
        AwaitStable: Reserved, 1, local;
        NumberTaken: Reserved, 4, local;
        BeginEpoch: Reserved, 64, local;
        LeaveSessions: Reserved, 64, local;
        LockWaitStarted: Reserved, 16, crosses 8;
        LockWaitEnded: Reserved, 2, crosses 9;
        ProbeDeadlock: Reserved, 16, crosses 10;
        NoteTableWait: Reserved, 16, crosses 11;
        ReadStatus: Reserved, 1, crosses 12;
        PublishCatalog: Reserved, 1, crosses 13;
    }
}
inbox! {
    /// Signals to ldm.
    LdmSignal = Ldm 3 {
        ReadRows: Deferrable, 2, crosses 0;
        WriteRows: Deferrable, 4, crosses 1;
        InterruptWrites: Deferrable, 16, crosses 2;
        PrepareTransaction: Reserved, 16, crosses 3;
        CommitTransaction: Reserved, 16, crosses 4;
        UndoTransaction: Reserved, 16, crosses 5;
        BeginEpoch: Reserved, 64, local;
        ReplicateRows: Reserved, 2, crosses 6;
        ReplicateRowsReply: Reserved, 2, crosses 7;
        CopyRows: Reserved, 2, crosses 13;
        CopyRowsReply: Reserved, 4, crosses 14;
        CopyPartitions: Reserved, 2, local;
        AppendRecordsReply: Reserved, 1, local;
        DeliverRecords: Reserved, 1, local;
        ReplayRows: Reserved, 4, local;
        BuildIndexes: Reserved, 4, local;
        WriteCheckpoint: Reserved, 8, local;
        SetCheckpointSpeed: Reserved, 1, local;
        EndCheckpoint: Reserved, 8, local;
        LoadCheckpoint: Reserved, 8, local;
        CancelWait: Reserved, 4, crosses 9;
        ChangePartition: Reserved, 16, crosses 10;
        ReadStatus: Reserved, 1, crosses 11;
        PublishCatalog: Reserved, 1, crosses 12;
        ContinueWork: Reserved, 64, local;
    }
}
inbox! {
    /// Signals to query.
    QuerySignal = Query 4 {
        ReadRows: Deferrable, 2, crosses 0;
        ContinueRead: Reserved, 2, local;
        OpenPartition: Reserved, 1, local;
        ReadStatus: Reserved, 1, crosses 1;
        PublishCatalog: Reserved, 1, crosses 2;
        BeginEpoch: Reserved, 1, local;
    }
}
inbox! {
    /// Signals to main.
    MainSignal = Main 5 {
        ChangeSchema: Reserved, 64, crosses 0;
        ChangePartitionReply: Reserved, 64, crosses 1;
        PublishCatalogReply: Reserved, 8, crosses 2;
        ReserveAutoIncrement: Reserved, 64, crosses 3;
        ReturnAutoIncrement: Reserved, 64, crosses 4;
        SetGlobals: Reserved, 64, crosses 5;
        RestoreGlobalsReply: Reserved, 64, crosses 6;
        UnlockTables: Reserved, 64, crosses 7;
        UseUserLock: Reserved, 16, crosses 8;
        CancelUserLock: Reserved, 1, crosses 9;
        ReleaseUserLocks: Reserved, 16, crosses 10;
        ReadStatus: Reserved, 64, crosses 11;
        AskNode: Reserved, 64, crosses 36;
        AskNodeReply: Reserved, 64, crosses 37;
        ControlNode: Reserved, 64, local;
        ReadStatusReply: Reserved, 64, local;
        InterruptSessionReply: Reserved, 64, local;
        BlockTablesReply: Reserved, 64, crosses 12;
        RecallTables: Reserved, 1, crosses 13;
        CancelSchemaChange: Reserved, 64, crosses 14;
        ReportNode: Reserved, 64, crosses 15;
        ReplicateMembership: Reserved, 64, crosses 16;
        InstallMembership: Reserved, 64, crosses 17;
        LeasesOver: Reserved, 64, crosses 25;
        RequestLease: Reserved, 64, crosses 32;
        RequestLeaseReply: Reserved, 64, crosses 33;
        LinkNews: Reserved, 64, local;
        TakeNumber: Reserved, 1, crosses 20;
        Decide: Reserved, 1, crosses 21;
        Applied: Reserved, 1, crosses 22;
        Installed: Reserved, 1, crosses 23;
        StartEpoch: Reserved, 1, crosses 24;
        IntroduceNode: Reserved, 64, crosses 26;
        WelcomeNode: Reserved, 64, crosses 27;
        ShareRecords: Reserved, 2, crosses 28;
        ShareRecordsReply: Reserved, 16, crosses 29;
        AskSnapshot: Reserved, 64, crosses 30;
        HandOverSchema: Reserved, 64, crosses 31;
        AskOutcome: Reserved, 1, crosses 34;
        AskOutcomeReply: Reserved, 1, crosses 35;
        ResolveCommit: Reserved, 64, local;
        StatementsEnded: Reserved, 64, local;
        CopyPartitionsReply: Reserved, 64, local;
        RequestNumber: Reserved, 1, local;
        BeginEpochReply: Reserved, 1, local;
        CommitTransactionReply: Reserved, 1, local;
        AwaitStable: Reserved, 1, local;
        AwaitDurable: Reserved, 1, local;
        AppendRecordsReply: Reserved, 1, local;
        AwaitDurableReply: Reserved, 64, local;
        LogSpaceChanged: Reserved, 1, local;
        CommitStable: Reserved, 4, local;
        StartLogReply: Reserved, 64, local;
        RecoverLogReply: Reserved, 64, local;
        ReplayLogReply: Reserved, 64, local;
        BuildIndexesReply: Reserved, 64, local;
        BeginCheckpointReply: Reserved, 64, local;
        WriteCheckpointReply: Reserved, 64, local;
        SetCheckpointSpeedReply: Reserved, 64, local;
        ReadLogUsageReply: Reserved, 64, local;
        LoadCheckpointReply: Reserved, 64, local;
        ContinueWork: Reserved, 64, local;
    }
}

inbox! {
    /// Signals to log.
    LogSignal = Log 6 {
        AppendRecords: Reserved, 64, local;
        AwaitDurable: Reserved, 64, local;
        ReserveLogSpace: Reserved, 64, local;
        StartLog: Reserved, 16, local;
        RecoverLog: Reserved, 16, local;
        ReplayLog: Reserved, 64, local;
        ReplayRowsReply: Reserved, 64, local;
        BeginCheckpoint: Reserved, 1, local;
        TrimLog: Reserved, 16, local;
        ReadLogUsage: Reserved, 1, local;
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
            Signal::Tc(TcSignal::ProbeDeadlock(_) | TcSignal::CommitStable(_) | TcSignal::SeenStable(_)) => {
                Priority::High
            }
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

    fn from_link(news: LinkNews) -> Option<Signal> {
        Some(Signal::Main(MainSignal::LinkNews(news)))
    }

    fn simulated_links() -> Option<LinkMaker<Signal>> {
        Some(LinkMaker::newest())
    }

    fn name_of_module(module: ModuleId) -> Option<&'static str> {
        Module::from_number(module.number()).map(Module::name)
    }
}

impl WireSignal for Signal {
    type Encoder = LinkEncoder;
    type Decoder = LinkDecoder;

    const VERSIONS: RangeInclusive<u16> = VERSION_MIN..=VERSION;

    fn layouts(version: u16) -> u64 {
        layouts(version)
    }

    fn encoder(version: u16) -> LinkEncoder {
        LinkEncoder::new(version)
    }

    fn decoder(version: u16) -> LinkDecoder {
        LinkDecoder::new(version)
    }

    fn encode(&self, link: &mut LinkEncoder, out: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
        let mut writer = Writer::new(link, out);
        match self {
            Signal::Recv(signal) => signal.encode(&mut writer),
            Signal::Sql(signal) => signal.encode(&mut writer),
            Signal::Tc(signal) => signal.encode(&mut writer),
            Signal::Ldm(signal) => signal.encode(&mut writer),
            Signal::Query(signal) => signal.encode(&mut writer),
            Signal::Main(signal) => signal.encode(&mut writer),
            Signal::Log(signal) => signal.encode(&mut writer),
            Signal::World(_) => fail("the signal crosses nodes", format_args!("events of the world are local")),
        }
        writer.end()
    }

    fn decode(link: &mut LinkDecoder, bytes: &[u8], buffers: &mut BufferPool) -> Result<Signal> {
        let mut reader = Reader::new(link, bytes, buffers);
        let [number, inbox] = reader.take()?;
        let signal = match inbox {
            0 => RecvSignal::decode(number, &mut reader).map(Signal::Recv),
            1 => SqlSignal::decode(number, &mut reader).map(Signal::Sql),
            2 => TcSignal::decode(number, &mut reader).map(Signal::Tc),
            3 => LdmSignal::decode(number, &mut reader).map(Signal::Ldm),
            4 => QuerySignal::decode(number, &mut reader).map(Signal::Query),
            5 => MainSignal::decode(number, &mut reader).map(Signal::Main),
            6 => LogSignal::decode(number, &mut reader).map(Signal::Log),
            _ => Err(DecodeError::UnknownSignal(u16::from_le_bytes([number, inbox]))),
        }?;
        reader.end()?;
        Ok(signal)
    }

    fn is_for(&self, module: ModuleId) -> bool {
        let own = match self {
            // The gateway of main gets the replies that the gateway of a sql block gets. Main also gets those
            // to the requests for locks that it passes on.
            Signal::Sql(
                SqlSignal::ReadRowsReply(_)
                | SqlSignal::ExecuteStatementReply(_)
                | SqlSignal::EndTransactionReply(_)
                | SqlSignal::UseUserLockReply(_),
            ) if module == Module::Main => Module::Main,
            Signal::Recv(_) => Module::Recv,
            Signal::Sql(_) => Module::Sql,
            Signal::Tc(_) => Module::Tc,
            Signal::Ldm(_) => Module::Ldm,
            Signal::Query(_) => Module::Query,
            Signal::Main(_) => Module::Main,
            Signal::Log(_) => Module::Log,
            Signal::World(_) => return false,
        };
        module == own
    }

    fn recycle(self, buffers: &mut BufferPool) {
        match self {
            Signal::Recv(signal) => signal.recycle(buffers),
            Signal::Sql(signal) => signal.recycle(buffers),
            Signal::Tc(signal) => signal.recycle(buffers),
            Signal::Ldm(signal) => signal.recycle(buffers),
            Signal::Query(signal) => signal.recycle(buffers),
            Signal::Main(signal) => signal.recycle(buffers),
            Signal::Log(signal) => signal.recycle(buffers),
            Signal::World(_) => {}
        }
    }
}
