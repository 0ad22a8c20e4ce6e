//! Requests as sequences of steps.

use super::demand::{Demand, Demands};

/// Partitions per table, the default of a node.
pub const TABLE_PARTITIONS: usize = 2;
const LIST_KEYS: u64 = 100;
const RANGE_ROWS: u64 = 100;

/// Kind of operation that a client repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One row by its key.
    Point,
    /// 100 rows by their keys.
    InList,
    /// 100 rows of a range.
    Range,
    /// An UPDATE by the key.
    Update,
    /// The transaction of sysbench's oltp_read_write.
    ReadWrite,
}

/// The work of one step on the partitions of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionWork {
    /// Number of partitions, starting at a random one.
    pub count: usize,
    /// Number of keys per partition; 1 for a range and for a write.
    pub units: u32,
    /// The kind of operation under which the routing controller counts the work.
    pub kind: u8,
    /// Nanoseconds of work per partition.
    pub service_ns: u64,
}

/// A step of a request, with its nanoseconds of work. Steps run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The recv thread of the connection receives a statement.
    Receive(u64),
    /// The sql block of the connection executes half of a statement.
    Execute(u64),
    /// Reads partitions in parallel, each on the thread that the rule chooses. Waits for all of them.
    Read(PartitionWork),
    /// The tc block of the connection works.
    Coordinate(u64),
    /// Changes rows of partitions in parallel at the owners. Waits for all of them.
    Write(PartitionWork),
    /// The recv thread handles the reply.
    Reply(u64),
    /// recv or a send thread writes the reply. The client then sends the next statement.
    Send(u64),
}

impl Workload {
    /// All kinds.
    pub const ALL: [Workload; 5] =
        [Workload::Point, Workload::InList, Workload::Range, Workload::Update, Workload::ReadWrite];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Point => "point select",
            Workload::InList => "IN list of 100",
            Workload::Range => "range of 100",
            Workload::Update => "update",
            Workload::ReadWrite => "oltp_read_write",
        }
    }

    /// The steps of one operation.
    pub fn steps(self, demands: &Demands) -> Vec<Step> {
        let mut chain = Chain { demands, steps: Vec::new() };
        match self {
            Workload::Point => chain.read(Read::Keys(1)),
            Workload::InList => chain.read(Read::Keys(LIST_KEYS)),
            Workload::Range => chain.read(Read::Rows(RANGE_ROWS)),
            Workload::Update => chain.write(),
            Workload::ReadWrite => {
                // BEGIN.
                chain.statement(SessionWork::default(), |_| {});
                (0..10).for_each(|_| chain.read(Read::Keys(1)));
                // Four ranges: plain, summed, sorted, and sorted without duplicates.
                chain.read(Read::Rows(RANGE_ROWS));
                chain.read(Read::Sum(RANGE_ROWS));
                chain.read(Read::SortedRows(RANGE_ROWS));
                chain.read(Read::SortedRows(RANGE_ROWS));
                // Two updates, DELETE and INSERT.
                (0..4).for_each(|_| chain.write());
                chain.commit();
            }
        }
        chain.steps
    }
}

/// A single range read of `rows` rows, for workloads that change over time.
pub fn range_steps(demands: &Demands, rows: u64) -> Vec<Step> {
    let mut chain = Chain { demands, steps: Vec::new() };
    chain.read(Read::Rows(rows));
    chain.steps
}

#[derive(Clone, Copy)]
enum Read {
    Keys(u64),
    Rows(u64),
    Sum(u64),
    SortedRows(u64),
}

/// Additional nanoseconds of the session for a statement, and the number of rows in its reply. A single row
/// counts as 0, because the fixed demands include it.
#[derive(Clone, Copy, Default)]
struct SessionWork {
    work_ns: u64,
    rows: u64,
}

struct Chain<'a> {
    demands: &'a Demands,
    steps: Vec<Step>,
}

impl Chain<'_> {
    fn demand_ns(&self, demand: Demand) -> u64 {
        self.demands.ns(demand)
    }

    /// Adds the steps of a statement. `data` adds those between the two halves of the session's work.
    fn statement(&mut self, session: SessionWork, data: impl FnOnce(&mut Self)) {
        let statement = self.demand_ns(Demand::Statement);
        self.steps.push(Step::Receive(self.demand_ns(Demand::Receive)));
        self.steps.push(Step::Execute(statement / 2));
        data(self);
        self.steps.push(Step::Execute(statement - statement / 2 + session.work_ns));
        self.steps.push(Step::Reply(self.demand_ns(Demand::Reply) + session.rows * self.demand_ns(Demand::ReplyRow)));
        self.steps.push(Step::Send(self.demand_ns(Demand::Send) + session.rows * self.demand_ns(Demand::SendRow)));
    }

    fn read(&mut self, read: Read) {
        let of = |demand| self.demands.ns(demand);
        // Number of partitions; total keys or rows; nanoseconds per key or row in the partition; nanoseconds
        // per key or row in the session; rows returned; kind of operation.
        let (count, items, item_ns, session_ns, rows, kind) = match read {
            Read::Keys(1) => (1, 1, of(Demand::Key), 0, 1, 0),
            Read::Keys(keys) => (TABLE_PARTITIONS, keys, of(Demand::Key), of(Demand::StatementKey), keys, 1),
            Read::Rows(rows) => (TABLE_PARTITIONS, rows, of(Demand::Row), of(Demand::SessionRow), rows, 2),
            Read::Sum(rows) => (TABLE_PARTITIONS, rows, of(Demand::Row), 0, 1, 4),
            Read::SortedRows(rows) => (TABLE_PARTITIONS, rows, of(Demand::SortedRow), of(Demand::MergedRow), rows, 5),
        };
        let each = items / count as u64;
        let units = if matches!(read, Read::Keys(_)) { each as u32 } else { 1 };
        let parts = PartitionWork { count, units, kind, service_ns: of(Demand::Part) + each * item_ns };
        let session = SessionWork { work_ns: items * session_ns, rows: if rows > 1 { rows } else { 0 } };
        self.statement(session, |chain| chain.steps.push(Step::Read(parts)));
    }

    fn write(&mut self) {
        let coordinate = self.demand_ns(Demand::Coordinate);
        let parts = PartitionWork { count: 1, units: 1, kind: 3, service_ns: self.demand_ns(Demand::Write) };
        self.statement(SessionWork::default(), |chain| {
            chain.steps.push(Step::Coordinate(coordinate / 2));
            chain.steps.push(Step::Write(parts));
            chain.steps.push(Step::Coordinate(coordinate - coordinate / 2));
        });
    }

    /// Adds a COMMIT, with prepare and commit at both partitions.
    fn commit(&mut self) {
        let coordinate = self.demand_ns(Demand::Coordinate);
        let parts =
            PartitionWork { count: TABLE_PARTITIONS, units: 1, kind: 3, service_ns: self.demand_ns(Demand::Resolve) };
        self.statement(SessionWork::default(), |chain| {
            chain.steps.push(Step::Coordinate(coordinate));
            chain.steps.push(Step::Write(parts));
            chain.steps.push(Step::Coordinate(coordinate));
            chain.steps.push(Step::Write(parts));
            chain.steps.push(Step::Coordinate(coordinate));
        });
    }
}
