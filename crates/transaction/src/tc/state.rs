//! Records of transactions and their statements.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, Handle, NodeId, Time, require};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, PartitionId, RowId, StatementNumber, TableId, TransactionId};
use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::end_transaction::{CommitDurability, Ending};
use junctor_signals::execute_statement::{ExecuteStatement, Reading};
use junctor_signals::lock_wait::Blocker;
use junctor_signals::program::{RowProtocol, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::report_node::NodeWords;
use junctor_signals::start_epoch::has_node;
use junctor_signals::write_rows::FollowUp;

use super::follow_up::{FollowUpPlan, ShownKeys};
use super::foreign_key::Expectation;

/// A record's handle in the pool. Records are boxed, so that beginning and ending a transaction moves no
/// record.
pub(super) type TransactionHandle = Handle<Box<TransactionRecord>>;

/// Number of forwarded probes that a transaction remembers.
const PROBE_MARKS: usize = 8;

/// One transaction that has written or locked rows, or is about to.
#[derive(Debug, Default)]
pub(super) struct TransactionRecord {
    pub id: TransactionId,
    /// Number of the current or last statement, from 1.
    pub statement: StatementNumber,
    pub phase: Phase,
    /// The epoch of the last orders to prepare or undo. Their replies repeat it.
    pub epoch: Epoch,
    /// Number of replies that the phase waits for.
    pub outstanding: u32,
    /// Number of participants with writes, and of backups with images, that have not applied the commit
    /// number.
    pub unapplied: u32,
    pub participants: Vec<Participant>,
    /// Parts of the statement that are under way at other nodes: the number of each, and the node.
    pub remote_parts: Vec<(u32, NodeId)>,
    /// Whether versions or locks are lost with a node, so that the transaction cannot commit.
    pub is_lost: bool,
    /// Whether it waited for a node that is gone, and has not gone on yet.
    pub awaits_lost: bool,
    /// The backups of the partitions touched. From the prepare on, one for each ldm that gets images.
    pub backups: Vec<Backup>,
    /// Rows changed by completed statements.
    pub changed: u64,
    /// The commit number; 0 until it is taken.
    pub number: CommitNumber,
    /// Blocks of the log that are reserved for the commit.
    pub reserved_blocks: u64,
    pub running: Statement,
    /// When the commit is answered.
    pub durability: CommitDurability,
    /// The requested COMMIT or ROLLBACK. An autocommit statement gets its own reply in addition.
    pub ending: Option<EndRequest>,
    /// The request to undo the statements after a savepoint.
    pub undoing: Option<(OperationId, Address)>,
    /// Whether the statement has not been answered yet.
    pub owes_statement: bool,
    pub waits: Vec<Wait>,
    /// Whether a probe arrived during this statement while nothing waited here. The probe stopped, and its
    /// sender waits for this transaction.
    pub was_probed: bool,
    probes: [ProbeMark; PROBE_MARKS],
    probe_next: usize,
}

/// The phase of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between statements.
    #[default]
    Idle,
    /// Parts of a statement are in flight.
    Executing,
    /// Undoing a failed statement.
    UndoingStatement,
    /// Undoing the statements after a savepoint.
    UndoingStatements,
    /// The commit waits for blocks of the log.
    WaitingLogSpace,
    /// Participants ensure that the commit cannot fail.
    Preparing,
    /// The sequencer of the cluster is asked for the number.
    TakingNumber,
    /// The number is taken, and participants apply it.
    Committing,
    /// The number is applied, but not stable yet.
    WaitingStable,
    /// The number is stable, and its records are not on disk yet.
    WaitingDurable,
    /// A statement is complete, and a number that it has seen is not stable yet.
    WaitingSeen,
    /// Undoing everything, or releasing the locks of a transaction without writes.
    Releasing,
}

impl Phase {
    /// The state in `junctor_info.transactions`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Executing => "executing",
            Phase::UndoingStatement => "undoing statement",
            Phase::UndoingStatements => "undoing to savepoint",
            Phase::WaitingLogSpace => "waiting for log space",
            Phase::Preparing | Phase::TakingNumber => "preparing",
            Phase::Committing => "committing",
            Phase::WaitingStable | Phase::WaitingSeen => "waiting for stable",
            Phase::WaitingDurable => "waiting for the log",
            Phase::Releasing => "releasing",
        }
    }
}

/// An ldm that holds locks or versions of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participant {
    pub at: Address,
    /// Whether it holds uncommitted versions.
    pub has_written: bool,
    /// Whether it has so many rows that they are prepared even if it is the only participant.
    pub is_long: bool,
    /// Blocks of the log that its records need at most.
    pub log_blocks: u32,
    /// Whether its prepare has formed records. If the transaction is undone, one more tells the log so.
    pub has_chunks: bool,
    /// Whether it had only locks, and has released them after the commit.
    pub has_released: bool,
}

impl Participant {
    /// The part that the commit ends there.
    #[inline]
    pub fn part(&self) -> TransactionPart {
        if self.has_written { TransactionPart::Rows } else { TransactionPart::Locks }
    }
}

/// A backup of a partition that the transaction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Backup {
    pub at: Address,
    pub partition: PartitionId,
    /// Whether the transaction has written there, so that the backup gets images.
    pub has_written: bool,
}

/// A requested COMMIT or ROLLBACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndRequest {
    pub operation: OperationId,
    pub reply_to: Address,
    pub ending: Ending,
}

/// The running statement.
#[derive(Debug)]
pub(super) struct Statement {
    pub operation: OperationId,
    pub reply_to: Address,
    pub autocommit: bool,
    pub one_phase: bool,
    pub protocol: RowProtocol,
    pub lock_wait_ms: u32,
    pub timeout_ends: bool,
    pub reading: Reading,
    pub savepoint: StatementNumber,
    pub program: Option<Arc<WriteProgram>>,
    pub matched: u64,
    pub changed: u64,
    pub diagnostics: Option<Box<Diagnostics>>,
    pub outputs: Vec<Buffer>,
    /// The newest commit number on which the statement's result depends.
    pub newest: CommitNumber,
    pub written: Vec<PartitionId>,
    pub error: Option<Box<Error>>,
    /// Whether the client no longer wants the result.
    pub is_interrupted: bool,
    /// Participants that got a part of this statement.
    pub touched: Vec<Address>,
    /// Every part of the current round, by the number that its reply repeats.
    pub parts: Vec<Part>,
    /// Follow-ups in other partitions that are not in a round yet, except those of foreign keys.
    pub planned: FollowUpPlan,
    /// Rounds that follow one another. Each starts when all parts of the previous one have answered.
    pub rounds: VecDeque<PlannedRound>,
    /// The rows that the current round must find.
    pub check: Option<RoundCheck>,
    /// Foreign-key follow-ups, handled after all rounds.
    pub cascades: VecDeque<Cascade>,
    /// The number with which the statement began. Foreign-key steps have higher numbers.
    pub first: StatementNumber,
}

impl Default for Statement {
    fn default() -> Statement {
        Statement {
            operation: OperationId(0),
            reply_to: Address::new(Default::default(), junctor_signals::Module::Sql, 0),
            autocommit: false,
            one_phase: false,
            protocol: RowProtocol::Text,
            lock_wait_ms: 0,
            timeout_ends: false,
            reading: Reading::default(),
            savepoint: StatementNumber(0),
            program: None,
            matched: 0,
            changed: 0,
            diagnostics: None,
            outputs: Vec::new(),
            newest: CommitNumber(0),
            written: Vec::new(),
            error: None,
            is_interrupted: false,
            touched: Vec::new(),
            parts: Vec::new(),
            planned: FollowUpPlan::default(),
            rounds: VecDeque::new(),
            check: None,
            cascades: VecDeque::new(),
            first: StatementNumber(0),
        }
    }
}

/// Purpose of a part. The part with its input is [`RoundPart`].
#[derive(Debug)]
pub(super) enum Part {
    /// Rows of the statement's own table.
    Base,
    /// Rows that moved from another partition, where they were already counted.
    Moved,
    /// Unique entries. `shown` has the keys of inserts, in order, in the form for error 1062.
    Entries { index_name: Box<str>, shown: ShownKeys },
    /// Rows that are only looked up.
    Checked,
    /// Rows of a child. Their follow-ups belong to `program`. `path` lists the tables through which the child
    /// was reached.
    Cascade { program: Arc<WriteProgram>, path: Vec<TableId> },
}

/// A round that is planned.
#[derive(Debug)]
pub(super) enum PlannedRound {
    Parts(Round),
    Keys(Box<KeyRounds>),
}

/// Rounds over key ranges of one table, built one at a time.
#[derive(Debug)]
pub(super) struct KeyRounds {
    pub program: Arc<WriteProgram>,
    /// The keys that are left, each with the parameters of its round.
    pub keys: VecDeque<(Vec<u8>, Vec<u8>)>,
    pub kind: KeyRoundKind,
    /// Number of keys in one round.
    pub keys_each: usize,
    /// Whether a round was sent. All later rounds share its statement number.
    pub has_begun: bool,
}

/// The purpose of such rounds.
#[derive(Debug)]
pub(super) enum KeyRoundKind {
    /// The rows that must be found, and the name of the constraint for errors.
    Check(Expectation, Box<str>),
    /// Changes rows of a child that was reached through these tables.
    Cascade(Vec<TableId>),
}

/// Parts that run together.
#[derive(Debug)]
pub(super) struct Round {
    pub parts: Vec<RoundPart>,
    /// The rows that the parts must find.
    pub check: Option<RoundCheck>,
    /// Whether the parts get a new statement number.
    pub is_new_statement: bool,
}

/// The rows that a round must find, and those it has found.
#[derive(Debug)]
pub(super) struct RoundCheck {
    pub expectation: Expectation,
    /// The name of the constraint for errors.
    pub shown: Box<str>,
    pub matched: u64,
}

/// Foreign-key follow-ups of one change.
#[derive(Debug)]
pub(super) struct Cascade {
    pub program: Arc<WriteProgram>,
    /// The tables through which the change was reached, starting with the statement's table.
    pub path: Vec<TableId>,
    pub follow_ups: Vec<FollowUp>,
}

/// A part of a round.
#[derive(Debug)]
pub(super) struct RoundPart {
    pub partition: PartitionId,
    pub program: Arc<WriteProgram>,
    pub input: Buffer,
    pub part: Part,
}

/// One wait for a lock.
#[derive(Debug)]
pub(super) struct Wait {
    pub at: Address,
    pub sequence: u64,
    pub partition: PartitionId,
    pub row: Option<RowId>,
    /// Number of rows that the transaction had changed when it began to wait, as known here and at that ldm.
    pub changed: u32,
    pub blockers: Vec<Blocker>,
    /// Number of searches for a cycle that began at this wait.
    pub round: u16,
    pub since: Time,
    pub deadline: Time,
    /// Whether the wait is cancelled.
    pub cancelled: bool,
}

/// Identifies a forwarded probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeMark {
    pub initiator: TransactionId,
    pub at: u32,
    pub sequence: u64,
    pub round: u16,
}

impl TransactionRecord {
    /// Prepares the record for another transaction. Vectors keep their memory.
    pub fn clear(&mut self) {
        self.id = TransactionId::default();
        self.statement = StatementNumber(0);
        self.phase = Phase::Idle;
        self.epoch = Epoch(0);
        self.outstanding = 0;
        self.unapplied = 0;
        self.participants.clear();
        self.remote_parts.clear();
        (self.is_lost, self.awaits_lost) = (false, false);
        self.backups.clear();
        self.changed = 0;
        self.number = CommitNumber(0);
        self.reserved_blocks = 0;
        self.running.clear();
        self.ending = None;
        self.undoing = None;
        self.owes_statement = false;
        self.waits.clear();
        self.was_probed = false;
        self.probes = Default::default();
        self.probe_next = 0;
    }

    /// Begins the next statement.
    pub fn begin_statement(&mut self, request: &ExecuteStatement) {
        require!(self.phase == Phase::Idle && self.outstanding == 0, "a statement begins when nothing else runs");
        require!(self.ending.is_none() && self.number.0 == 0, "no statement begins once the transaction ends");
        require!(request.savepoint <= self.statement, "a savepoint keeps statements that ran before it");
        self.statement = StatementNumber(self.statement.0 + 1);
        self.phase = Phase::Executing;
        self.owes_statement = true;
        self.was_probed = false;
        self.durability = request.durability;
        let running = &mut self.running;
        running.clear();
        running.first = self.statement;
        running.operation = request.operation;
        running.reply_to = request.reply_to;
        running.autocommit = request.autocommit;
        running.protocol = request.protocol;
        running.lock_wait_ms = request.lock_wait_ms;
        running.timeout_ends = request.timeout_ends;
        running.reading = request.reading;
        running.savepoint = request.savepoint;
        running.program = Some(Arc::clone(&request.program));
    }

    /// Counts one reply that the phase waits for. Returns true for the last one.
    #[inline]
    pub fn take_reply(&mut self) -> bool {
        require!(self.outstanding > 0, "every participant answers once: {}", self.id);
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Records that `at` gets a part of the current statement for a partition with these replicas. A node of
    /// them that is gone may be back when the transaction prepares.
    pub fn touch(&mut self, at: Address, partition: PartitionId, replicas: impl Iterator<Item = Address>) {
        // Few instances take part, so a linear search is cheaper than a map.
        if !self.participants.iter().any(|participant| participant.at == at) {
            self.participants.push(Participant {
                at,
                has_written: false,
                is_long: false,
                log_blocks: 0,
                has_chunks: false,
                has_released: false,
            });
        }
        let primary = at;
        for at in replicas.filter(|at| *at != primary) {
            // A change of the schema may hide the partition before its reply arrives, so its replicas are
            // noted now.
            if !self.backups.iter().any(|backup| (backup.at, backup.partition) == (at, partition)) {
                self.backups.push(Backup { at, partition, has_written: false });
            }
        }
        if !self.running.touched.contains(&at) {
            self.running.touched.push(at);
        }
    }

    /// Records uncommitted versions at `at`. Returns the participant.
    pub fn note_written(&mut self, at: Address, partition: PartitionId) -> &mut Participant {
        if !self.running.written.contains(&partition) {
            self.running.written.push(partition);
        }
        let Some(participant) = self.participants.iter_mut().find(|participant| participant.at == at) else {
            junctor_kernel::invariant::fail("only participants write", format_args!("{at} for {}", self.id))
        };
        participant.has_written = true;
        let backups = self.backups.iter_mut().filter(|backup| backup.partition == partition);
        backups.for_each(|backup| backup.has_written = true);
        participant
    }

    /// Keeps one entry for each ldm that gets images: none on nodes that are gone.
    pub fn keep_written_backups(&mut self, gone: &NodeWords) {
        self.backups.retain(|backup| backup.has_written && !has_node(gone, backup.at.node));
        self.backups.sort_unstable();
        self.backups.dedup_by_key(|backup| backup.at);
    }

    /// Whether this probe was not forwarded before, as far as the record remembers.
    pub fn mark_probe(&mut self, mark: ProbeMark) -> bool {
        if self.probes.contains(&mark) {
            return false;
        }
        // Overwrites the oldest mark. A forgotten probe is forwarded again, which costs only signals.
        self.probes[self.probe_next] = mark;
        self.probe_next = (self.probe_next + 1) % PROBE_MARKS;
        true
    }
}

impl Statement {
    pub fn clear(&mut self) {
        self.program = None;
        self.one_phase = false;
        (self.matched, self.changed) = (0, 0);
        self.diagnostics = None;
        self.outputs.clear();
        self.newest = CommitNumber(0);
        self.written.clear();
        self.error = None;
        self.is_interrupted = false;
        self.touched.clear();
        self.parts.clear();
        self.planned.clear();
        self.rounds.clear();
        self.check = None;
        self.cascades.clear();
    }
}
