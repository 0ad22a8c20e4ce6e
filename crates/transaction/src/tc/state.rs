//! The records of tc.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, Handle, Time, require};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, PartitionId, RowId, StatementNumber, TableId, TransactionId};
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::end_transaction::Ending;
use junctor_signals::execute_statement::{ExecuteStatement, Reading};
use junctor_signals::lock_wait::Blocker;
use junctor_signals::program::{RowProtocol, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::write_rows::FollowUp;

use super::follow_up::{FollowUpPlan, ShownKeys};
use super::foreign_key::Sought;

/// A transaction's place in the pool.
///
/// Records are boxed so that they stay where they are when a transaction begins and ends.
pub(super) type TransactionHandle = Handle<Box<TransactionRecord>>;

/// How many probes a transaction remembers to have passed on.
const PROBE_MARKS: usize = 8;

/// One transaction that has written or locked, or is about to.
#[derive(Debug, Default)]
pub(super) struct TransactionRecord {
    pub id: TransactionId,
    /// The statement that runs or ran last, from 1.
    pub statement: StatementNumber,
    pub phase: Phase,
    /// Replies that the phase still waits for.
    pub outstanding: u32,
    /// Participants with writes that have not applied the commit number.
    pub unapplied: u32,
    pub participants: Vec<Participant>,
    /// Every partition in which versions were made, also those of a statement that was undone.
    pub written: Vec<PartitionId>,
    /// Rows changed by statements that are done.
    pub changed: u64,
    /// The commit number, once taken.
    pub number: CommitNumber,
    pub running: Statement,
    /// Who is told of the end, besides the statement if that commits by itself.
    pub ending: Option<EndRequest>,
    /// Who is told that the statements after a savepoint are undone.
    pub undoing: Option<(OperationId, Address)>,
    /// Whether the statement's reply is still owed.
    pub owes_statement: bool,
    pub waits: Vec<Wait>,
    /// Whether a probe came during this statement while nothing waited here: it ended, and somebody waits for this one.
    pub was_probed: bool,
    probes: [ProbeMark; PROBE_MARKS],
    probe_next: usize,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between statements.
    #[default]
    Idle,
    /// Parts of a statement are under way.
    Executing,
    /// A failed statement is being undone.
    UndoingStatement,
    /// Statements after a savepoint are being undone.
    UndoingStatements,
    /// Participants make sure that the commit cannot fail.
    Preparing,
    /// The number is taken; participants apply it.
    Committing,
    /// Applied; the stable number has not reached it.
    WaitingStable,
    /// A statement is done; the stable number has not reached what it has seen.
    WaitingSeen,
    /// Everything is being undone, or the locks of a transaction without writes released.
    Releasing,
}

impl Phase {
    /// The word in `junctor_info.transactions`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Executing => "executing",
            Phase::UndoingStatement => "undoing statement",
            Phase::UndoingStatements => "undoing to savepoint",
            Phase::Preparing => "preparing",
            Phase::Committing => "committing",
            Phase::WaitingStable | Phase::WaitingSeen => "waiting for stable",
            Phase::Releasing => "releasing",
        }
    }
}

/// An ldm that holds locks or writes of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participant {
    pub at: Address,
    /// Whether it has uncommitted versions.
    pub has_written: bool,
    /// Whether a partition written there has backups.
    pub has_backups: bool,
}

/// COMMIT or ROLLBACK that was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndRequest {
    pub operation: OperationId,
    pub reply_to: Address,
    pub ending: Ending,
}

/// The statement that runs.
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
    /// The newest commit number that its answers tell of.
    pub newest: CommitNumber,
    pub written: Vec<PartitionId>,
    pub error: Option<Box<Error>>,
    /// Nobody wants it any more.
    pub is_interrupted: bool,
    /// Participants that got a part of this statement.
    pub touched: Vec<Address>,
    /// Every part sent, by its number; the reply names it.
    pub parts: Vec<Part>,
    /// What changed rows ask of other partitions, foreign keys apart, and is not in a round yet.
    pub planned: FollowUpPlan,
    /// What is sent once all parts under way have answered, one round after the other.
    pub rounds: VecDeque<PlannedRound>,
    /// What the round under way is to find.
    pub check: Option<RoundCheck>,
    /// What foreign keys ask for after that.
    pub cascades: VecDeque<Cascade>,
    /// The number that the statement began with; steps of foreign keys have later ones.
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

/// What a part is for.
#[derive(Debug)]
pub(super) enum Part {
    /// Rows of the statement's table that the client asked for.
    Base,
    /// Rows that moved here from another partition; counted where they left.
    Moved,
    /// Unique entries; for inserts, in order, how error 1062 shows them.
    Entries { index_name: Box<str>, shown: ShownKeys },
    /// Rows that are only looked for.
    Checked,
    /// Rows of a child; what they ask for belongs to this program, which was come to by way of these tables.
    Cascade { program: Arc<WriteProgram>, path: Vec<TableId> },
}

/// What is sent when its turn comes.
#[derive(Debug)]
pub(super) enum PlannedRound {
    Parts(Round),
    Keys(Box<KeyRounds>),
}

/// Rounds over ranges of keys of one table, made one after the other.
#[derive(Debug)]
pub(super) struct KeyRounds {
    pub program: Arc<WriteProgram>,
    /// Each key that is left, and the parameters of its round.
    pub keys: VecDeque<(Vec<u8>, Vec<u8>)>,
    pub kind: KeyRoundKind,
    /// How many keys one round takes.
    pub keys_each: usize,
    /// Whether one was sent: the others have its statement number.
    pub has_begun: bool,
}

/// What such rounds are for.
#[derive(Debug)]
pub(super) enum KeyRoundKind {
    /// Rows must be found, or none; with the constraint.
    Check(Sought, Box<str>),
    /// Rows of a child change, which was come to by way of these tables.
    Cascade(Vec<TableId>),
}

/// Parts that are under way together.
#[derive(Debug)]
pub(super) struct Round {
    pub parts: Vec<RoundPart>,
    /// What they are to find.
    pub check: Option<RoundCheck>,
    /// Whether they have a statement number of their own.
    pub is_new_statement: bool,
}

/// What a round is to find, and has found.
#[derive(Debug)]
pub(super) struct RoundCheck {
    pub sought: Sought,
    /// The constraint.
    pub shown: Box<str>,
    pub matched: u64,
}

/// What changed rows ask for besides unique entries.
#[derive(Debug)]
pub(super) struct Cascade {
    pub program: Arc<WriteProgram>,
    /// The tables that were changed before, the statement's first.
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
    /// Rows that the transaction had changed when it began to wait, as far as tc and that ldm know.
    pub changed: u32,
    pub blockers: Vec<Blocker>,
    /// How often a circle was searched for from here.
    pub round: u16,
    pub since: Time,
    pub deadline: Time,
    /// Whether its ldm was told to give it up.
    pub cancelled: bool,
}

/// A probe that was passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeMark {
    pub initiator: TransactionId,
    pub at: u32,
    pub sequence: u64,
    pub round: u16,
}

impl TransactionRecord {
    /// Makes the record ready for another transaction; vectors keep their memory.
    pub fn clear(&mut self) {
        self.id = TransactionId::default();
        self.statement = StatementNumber(0);
        self.phase = Phase::Idle;
        self.outstanding = 0;
        self.unapplied = 0;
        self.participants.clear();
        self.written.clear();
        self.changed = 0;
        self.number = CommitNumber(0);
        self.running.clear();
        self.ending = None;
        self.undoing = None;
        self.owes_statement = false;
        self.waits.clear();
        self.was_probed = false;
        self.probes = Default::default();
        self.probe_next = 0;
    }

    /// The next statement begins.
    pub fn begin_statement(&mut self, request: &ExecuteStatement) {
        require!(self.phase == Phase::Idle && self.outstanding == 0, "a statement begins when nothing else runs");
        require!(self.ending.is_none() && self.number.0 == 0, "no statement begins once the transaction ends");
        require!(request.savepoint <= self.statement, "a savepoint keeps statements that ran before it");
        self.statement = StatementNumber(self.statement.0 + 1);
        self.phase = Phase::Executing;
        self.owes_statement = true;
        self.was_probed = false;
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

    /// One reply that the phase waits for has come. True when it was the last one.
    #[inline]
    pub fn take_reply(&mut self) -> bool {
        require!(self.outstanding > 0, "every participant answers once: {}", self.id);
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Notes that `at` gets a part of the statement that runs.
    pub fn touch(&mut self, at: Address, has_backups: bool) {
        match self.participants.iter_mut().find(|participant| participant.at == at) {
            Some(participant) => participant.has_backups |= has_backups,
            None => self.participants.push(Participant { at, has_written: false, has_backups }),
        }
        if !self.running.touched.contains(&at) {
            self.running.touched.push(at);
        }
    }

    /// Notes uncommitted versions at `at`.
    pub fn note_written(&mut self, at: Address, partition: PartitionId) {
        match self.participants.iter_mut().find(|participant| participant.at == at) {
            Some(participant) => participant.has_written = true,
            None => junctor_kernel::invariant::fail("only participants write", format_args!("{at} for {}", self.id)),
        }
        for written in [&mut self.written, &mut self.running.written] {
            if !written.contains(&partition) {
                written.push(partition);
            }
        }
    }

    /// Whether this probe passes for the first time, as far as is remembered.
    pub fn mark_probe(&mut self, mark: ProbeMark) -> bool {
        if self.probes.contains(&mark) {
            return false;
        }
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
