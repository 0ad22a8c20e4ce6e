//! The CPU time of each step of a commit in a cluster, and where each figure comes from.

/// CPU times and delays, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A statement at the node of its client: receive, parse, coordinate, answer.
    pub statement: u64,
    /// The change of a row at its primary.
    pub write: u64,
    /// The row at a backup: its image, the log record, the commit.
    pub image: u64,
    /// A commit at the primary: the log record, the new version.
    pub commit: u64,
    /// A signal to another node, for the sender and for the receiver, with its share of a frame under load.
    pub signal: u64,
    /// A frame of main, for the sender and for the receiver: each goes to another node, so nothing shares it.
    pub frame: u64,
    /// A turn of main.
    pub turn: u64,
    /// A request that gets its number.
    pub request: u64,
    /// A decision for one destination: taken from the list, encoded.
    pub destination: u64,
    /// A decision at a mirror with its orders and replies.
    pub decision: u64,
    /// A report at the sequencer, for each member.
    pub report: u64,
    /// One way between two nodes.
    pub network: u64,
    /// A read by key at a node that has the row.
    pub read: u64,
    /// The request to another node and its answer.
    pub read_elsewhere: u64,
}

/// A cost as measured.
pub struct Measured {
    /// Name in tables.
    pub name: &'static str,
    /// Figure in nanoseconds.
    pub nanoseconds: u64,
    /// The measurement that it was derived from.
    pub source: &'static str,
}

impl Costs {
    /// The measured costs, on the 2-CPU machine of `docs/performance.md`.
    pub const MEASURED: Costs = Costs {
        statement: 7_900,
        write: 3_800,
        image: 2_500,
        commit: 1_000,
        signal: 1_800,
        frame: 4_700,
        turn: 500,
        request: 50,
        destination: 70,
        decision: 100,
        report: 6,
        network: 20_000,
        read: 6_500,
        read_elsewhere: 7_200,
    };

    /// The same, if other threads of the node read and write the frames of main: main encodes, decodes and
    /// passes them on.
    pub fn with_helpers(&self) -> Costs {
        Costs { frame: 600, ..*self }
    }

    /// Each cost with its source.
    pub fn table(&self) -> [Measured; 14] {
        let of = |name, nanoseconds, source| Measured { name, nanoseconds, source };
        [
            of("statement", self.statement, "an update of a node alone, 12.7 us, less `write` and `commit`"),
            of("write", self.write, "the demand of a node alone"),
            of("image", self.image, "user time of the second replica for an update, less its signals"),
            of("commit", self.commit, "the demand `resolve` of a node alone"),
            of(
                "signal, each side",
                self.signal,
                "`frame` by the 2.6 signals of a frame of `cluster-cost`, 8 clients that update",
            ),
            of(
                "frame, each side",
                self.frame,
                "half of `receive` and `send` of a node alone: one read, one write, one wake-up",
            ),
            of("turn of main", self.turn, "1,500 instructions, not measured apart"),
            of("request", self.request, "`sequencer_cost`: 151 instructions"),
            of("destination", self.destination, "`sequencer_cost`: 65 instructions, and 150 to encode a decision"),
            of("decision at a mirror", self.decision, "`sequencer_cost`: 306 instructions"),
            of(
                "report, a member",
                self.report,
                "`sequencer_cost`: 381 instructions a request with 64 nodes, batches of 16",
            ),
            of("network, one way", self.network, "assumed: one rack, kernel sockets"),
            of(
                "read",
                self.read,
                "a select by key of a node alone, 6.1 us, and a share of the background of a cluster",
            ),
            of("read elsewhere", self.read_elsewhere, "four sides of a signal: the request and its answer"),
        ]
    }
}
