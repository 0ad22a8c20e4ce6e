//! The CPU time of each step of a request, and where each figure comes from.

use std::fmt;

/// Something that costs CPU time in a simulation, or a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// recv: the read system call, framing, and a share of the poll.
    Receive,
    /// recv: assigns the sequence numbers of a reply's packets.
    Reply,
    /// recv: the sequence number of one row.
    ReplyRow,
    /// The system call that writes the reply, in recv or in a send thread.
    Send,
    /// Writing one row of the reply.
    SendRow,
    /// sql: recognises a statement, builds its operation, and composes the reply.
    Statement,
    /// sql: one key of an IN list.
    StatementKey,
    /// sql: one row that passes through the session.
    SessionRow,
    /// sql: sorts one row into the reply.
    MergedRow,
    /// query or ldm: fixed cost of reading one partition.
    Part,
    /// query or ldm: one key of a read.
    Key,
    /// query or ldm: one row of a range.
    Row,
    /// query or ldm: one row of an ordered range.
    SortedRow,
    /// tc: a write statement, or a third of the end of a transaction.
    Coordinate,
    /// ldm: one changed row, with its lock, index entries and redo record.
    Write,
    /// ldm: prepare or commit of a transaction with several statements.
    Resolve,
    /// The sender's cost of a hop to another thread.
    HopOut,
    /// The receiver's cost of such a hop.
    HopIn,
    /// The sender's cost of waking a thread.
    Wake,
    /// Delay from the wake-up of a thread until it runs.
    WakeLatency,
}

/// All demands, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands([u64; Demand::ALL.len()]);

/// A demand as measured.
pub struct Measured {
    /// The demand.
    pub demand: Demand,
    /// Figure in nanoseconds.
    pub nanoseconds: u64,
    /// The measurement that it was derived from.
    pub source: &'static str,
}

impl Measured {
    const fn of(demand: Demand, nanoseconds: u64, source: &'static str) -> Measured {
        Measured { demand, nanoseconds, source }
    }
}

impl Demand {
    /// All demands.
    pub const ALL: [Demand; 20] = [
        Demand::Receive,
        Demand::Reply,
        Demand::ReplyRow,
        Demand::Send,
        Demand::SendRow,
        Demand::Statement,
        Demand::StatementKey,
        Demand::SessionRow,
        Demand::MergedRow,
        Demand::Part,
        Demand::Key,
        Demand::Row,
        Demand::SortedRow,
        Demand::Coordinate,
        Demand::Write,
        Demand::Resolve,
        Demand::HopOut,
        Demand::HopIn,
        Demand::Wake,
        Demand::WakeLatency,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Demand::Receive => "receive",
            Demand::Reply => "reply",
            Demand::ReplyRow => "reply, a row",
            Demand::Send => "send",
            Demand::SendRow => "send, a row",
            Demand::Statement => "statement",
            Demand::StatementKey => "statement, a key",
            Demand::SessionRow => "statement, a row",
            Demand::MergedRow => "statement, a sorted row",
            Demand::Part => "part",
            Demand::Key => "key",
            Demand::Row => "row",
            Demand::SortedRow => "row, sorted",
            Demand::Coordinate => "coordinate",
            Demand::Write => "write",
            Demand::Resolve => "resolve",
            Demand::HopOut => "hop, sender",
            Demand::HopIn => "hop, receiver",
            Demand::Wake => "wake, sender",
            Demand::WakeLatency => "wake, delay",
        }
    }
}

impl Demands {
    /// The measured demands.
    pub fn measured() -> Demands {
        let mut demands = Demands([0; Demand::ALL.len()]);
        for measured in &MEASURED {
            demands.0[measured.demand as usize] = measured.nanoseconds;
        }
        demands
    }

    /// A demand in nanoseconds.
    pub fn ns(&self, demand: Demand) -> u64 {
        self.0[demand as usize]
    }

    /// A copy in which one demand, or all of them, are scaled to `change.per_cent` per cent.
    pub fn changed(&self, change: Change) -> Demands {
        let mut demands = *self;
        for demand in Demand::ALL {
            if change.demand.is_none_or(|changed| changed == demand) {
                demands.0[demand as usize] = self.ns(demand) * u64::from(change.per_cent) / 100;
            }
        }
        demands
    }
}

/// How the measured demands are changed, to test how much the results depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The changed demand; `None` for all.
    pub demand: Option<Demand>,
    /// New value, in per cent of the measured one.
    pub per_cent: u32,
}

impl Change {
    /// No change.
    pub const NONE: Change = Change { demand: None, per_cent: 100 };

    /// No change, then each demand by itself and all together, at 70 and at 130 per cent.
    pub fn all() -> Vec<Change> {
        let demands = Demand::ALL.into_iter().map(Some).chain([None]);
        let both = demands.flat_map(|demand| [70, 130].map(|per_cent| Change { demand, per_cent }));
        [Change::NONE].into_iter().chain(both).collect()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.per_cent > 100 { "+" } else { "-" };
        let name = self.demand.map_or("all", Demand::name);
        match self.per_cent {
            100 => out.write_str("as measured"),
            per_cent => write!(out, "{name} {sign}{} %", per_cent.abs_diff(100)),
        }
    }
}

/// The demands, derived from the output of `junctor-bench scale --measure`. It was measured with every module
/// on its own thread and 64 connections, on the two CPUs of the machine in `docs/performance.md`.
pub const MEASURED: [Measured; 20] = [
    Measured::of(
        Demand::Receive,
        3_250,
        "point select: recv0, 0.69 us user and 3.52 us system, less hops, its sleeps and wakes (0.6 us), less the reply",
    ),
    Measured::of(Demand::Reply, 200, "point select: a third of recv0's 0.69 us user"),
    Measured::of(
        Demand::ReplyRow,
        12,
        "recv0's user time of the list (2.61 us) and of the range (1.17 us) above a point select's, by 100 rows: 19 and 5 ns",
    ),
    Measured::of(Demand::Send, 6_200, "point select: send0, 0.57 us user and 5.74 us system, less its sleeps"),
    Measured::of(
        Demand::SendRow,
        28,
        "send0's time of the list (10.5 us) and of the range (7.7 us) above a point select's, by 100 rows: 42 and 14 ns",
    ),
    Measured::of(
        Demand::Statement,
        1_200,
        "point select and update: sql0's user time, 1.42 and 1.22 us, less four halves of hops",
    ),
    Measured::of(Demand::StatementKey, 72, "IN list: sql0's 8.49 us user above a point select's, by 100 keys"),
    Measured::of(Demand::SessionRow, 20, "range: sql0's 3.30 us user above a point select's, by 100 rows"),
    Measured::of(
        Demand::MergedRow,
        250,
        "oltp_read_write: sql0's 81.7 us user less 20 statements and two plain ranges, by 200 sorted rows",
    ),
    Measured::of(Demand::Part, 850, "point select: ldm0 and query0, 1.15 us user, less hops and one key"),
    Measured::of(Demand::Key, 200, "IN list: ldm0 and query0, 21.6 us user, less two parts, by 100 keys"),
    Measured::of(Demand::Row, 110, "range: ldm0 and query0, 12.7 us user, less two parts, by 100 rows"),
    Measured::of(
        Demand::SortedRow,
        750,
        "oltp_read_write: ldm0 and query0, 213 us user, less the other reads and the writes, by 200 sorted rows",
    ),
    Measured::of(
        Demand::Coordinate,
        950,
        "update: tc0, 0.85 us user less hops; oltp_read_write: tc0, 8.93 us by 7: the mean of the two",
    ),
    Measured::of(Demand::Write, 3_800, "update: ldm0, 3.89 us user, less hops"),
    Measured::of(Demand::Resolve, 1_000, "not measured apart: a quarter of a write"),
    Measured::of(
        Demand::HopOut,
        60,
        "93 instructions (crates/kernel/examples/hop.rs), and a cache line that comes from the other CPU",
    ),
    Measured::of(Demand::HopIn, 60, "as the sender's"),
    Measured::of(
        Demand::Wake,
        2_400,
        "point select and update: the system time of sql0, tc0 and ldm0, which make no other system calls, by their sleeps and wakes",
    ),
    Measured::of(Demand::WakeLatency, 25_000, "a sleeping thread on the other CPU of this machine: 24 to 30 us"),
];
