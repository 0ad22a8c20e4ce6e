//! Commits that wait for the log. Hot path, budget 60 instructions a commit.

use std::collections::{BTreeSet, VecDeque};

use junctor_kernel::{Address, Context, Duration, Outbox, Time, WorldRequest, require};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, TransactionId};
use junctor_signals::append_records::{AwaitDurable, AwaitDurableReply, LogSpace, LogSpaceChanged};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::execute_statement::{ExecuteStatement, InterruptStatement};
use junctor_signals::{LogSignal, MainSignal, Module, Signal, TcSignal};

use super::block::TcBlock;
use super::execute_statement::refuse;
use super::log_credit::LogCredit;
use super::reserve_log_space::WaitingCommit;
use super::state::{Phase, TransactionHandle};

/// Maximum number of commits that one signal answers. The others wait for the next turn.
const WOKEN_PER_SIGNAL_MAX: usize = 8;

/// Time in milliseconds between two looks at the held statements.
const HELD_TIMER_MS: u64 = 10;
/// Maximum number of held statements that one timer starts or refuses.
const HELD_PER_TIMER_MAX: usize = 8;
/// Token of the timer for held statements.
pub(super) const HELD_TIMER: u64 = 1;

/// The commits of one tc that are stable and not durable yet.
#[derive(Debug)]
pub(super) struct DurableWaits {
    pub log: Address,
    /// The block that knows what is durable: the log, or main in a cluster.
    pub reporter: Address,
    /// The last number that the log has reported.
    durable: CommitNumber,
    waiting: BTreeSet<(CommitNumber, TransactionId)>,
    /// Whether a request to the log is unanswered. One request serves every commit of this tc.
    is_asked: bool,
    /// The room that the log has.
    space: LogSpace,
    /// Statements that wait for room in the log, with their deadlines, in the order of arrival.
    held: VecDeque<(Time, ExecuteStatement)>,
    held_timer_runs: bool,
    /// Maximum time that a statement or a commit waits for room in the log: `RedoOverCommitLimit`.
    pub wait_max: Duration,
    /// Blocks of the log for the next commits.
    pub credit: LogCredit,
    /// Commits that wait for blocks, in the order of arrival.
    pub waiting_space: VecDeque<WaitingCommit>,
}

impl DurableWaits {
    pub fn new(log: Address, wait_max: Duration) -> DurableWaits {
        DurableWaits {
            log,
            reporter: log,
            durable: CommitNumber(0),
            waiting: BTreeSet::new(),
            is_asked: false,
            space: LogSpace::Free,
            held: VecDeque::new(),
            held_timer_runs: false,
            wait_max,
            credit: LogCredit::default(),
            waiting_space: VecDeque::new(),
        }
    }
}

impl DurableWaits {
    pub fn start_held_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !std::mem::replace(&mut self.held_timer_runs, true) {
            // With space in the log, the rest follows in the next turn. Otherwise new statements could queue
            // behind held ones for ever.
            let is_waiting = self.is_limited() || !self.waiting_space.is_empty();
            let after = if is_waiting { Duration::from_millis(HELD_TIMER_MS) } else { Duration(0) };
            outbox.request(WorldRequest::StartTimer { after, token: HELD_TIMER });
        }
    }

    /// Whether new writes wait for a checkpoint.
    fn is_limited(&self) -> bool {
        matches!(self.space, LogSpace::Limited | LogSpace::Exhausted)
    }
}

impl TcBlock {
    /// Ends a commit whose number is stable: now, or once its records are on disk if its session requests
    /// that.
    pub(super) fn finish_commit(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        // A one-phase statement that changed nothing took no number. `number` is then the newest one that it
        // has seen.
        let has_changed = !record.running.one_phase || record.running.changed > 0;
        let awaits_disk = has_changed && record.durability == CommitDurability::Disk;
        let (number, transaction) = (record.number, record.id);
        self.spend_log_space(handle, outbox);
        let Some(waits) = self.durable_waits.as_mut().filter(|waits| awaits_disk && number > waits.durable) else {
            return self.finish_transaction(handle, outbox);
        };
        waits.waiting.insert((number, transaction));
        self.record(handle).phase = Phase::WaitingDurable;
        self.ask_for_durable(outbox);
    }

    /// Whether writes are refused, because the log cannot be written.
    pub(super) fn is_log_full(&self) -> bool {
        self.durable_waits.as_ref().is_some_and(|waits| waits.space == LogSpace::DeviceFull)
    }

    /// Holds a statement back while the log is close to its limit, or earlier statements are held. Returns
    /// the statement if it may begin.
    pub(super) fn hold_statement(
        &mut self,
        request: ExecuteStatement,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) -> Option<ExecuteStatement> {
        let Some(waits) = &mut self.durable_waits else { return Some(request) };
        if !waits.is_limited() && waits.held.is_empty() {
            return Some(request);
        }
        waits.held.push_back((now.plus(waits.wait_max), request));
        waits.start_held_timer(outbox);
        None
    }

    /// Continues commits that have got their blocks, begins held statements once the log has room, and
    /// refuses what has waited too long.
    pub(super) fn on_held_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let now = context.turn_start;
        if let Some(waits) = &mut self.durable_waits {
            waits.held_timer_runs = false;
        }
        self.continue_waiting_commits(now, outbox);
        for _ in 0..HELD_PER_TIMER_MAX {
            let Some(waits) = &mut self.durable_waits else { return };
            let is_free = !waits.is_limited();
            let Some((_, request)) = waits.held.pop_front_if(|(deadline, _)| is_free || *deadline <= now) else {
                break;
            };
            match is_free {
                true => self.begin_statement(request, context, outbox),
                false => {
                    let id = request.transaction;
                    refuse(request, id, Error::log_overloaded(), context, outbox);
                }
            }
        }
        if let Some(waits) = &mut self.durable_waits
            && !(waits.held.is_empty() && waits.waiting_space.is_empty())
        {
            waits.start_held_timer(outbox);
        }
    }

    /// Refuses a held statement that its client has interrupted. False if it is not held.
    pub(super) fn interrupt_held(
        &mut self,
        signal: &InterruptStatement,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let Some(waits) = &mut self.durable_waits else { return false };
        let is_it = |(_, request): &(Time, ExecuteStatement)| {
            (request.operation, request.reply_to) == (signal.operation, signal.reply_to)
        };
        let Some(index) = waits.held.iter().position(is_it) else { return false };
        if let Some((_, request)) = waits.held.remove(index) {
            let id = request.transaction;
            refuse(request, id, Error::query_interrupted(), context, outbox);
        }
        true
    }

    pub(super) fn on_log_space_changed(&mut self, signal: LogSpaceChanged) {
        if let Some(waits) = &mut self.durable_waits {
            // The timer begins what is held.
            waits.space = signal.space;
        }
    }

    fn ask_for_durable(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(waits) = self.durable_waits.as_mut().filter(|waits| !waits.is_asked) else { return };
        if let Some((number, _)) = waits.waiting.last().copied() {
            waits.is_asked = true;
            let signal = AwaitDurable { number, reply_to: own };
            let signal = match waits.reporter.module == Module::Main {
                true => Signal::Main(MainSignal::AwaitDurable(signal)),
                false => Signal::Log(LogSignal::AwaitDurable(signal)),
            };
            outbox.send(waits.reporter, signal);
        }
    }

    pub(super) fn on_await_durable_reply(&mut self, reply: AwaitDurableReply, outbox: &mut Outbox<Signal>) {
        let Some(waits) = &mut self.durable_waits else {
            junctor_kernel::invariant::fail("a node with a log awaits it", format_args!("{:?}", reply.durable))
        };
        require!(waits.is_asked && waits.durable <= reply.durable, "the log answers once, and never less");
        waits.durable = reply.durable;
        for _ in 0..WOKEN_PER_SIGNAL_MAX {
            let Some(waits) = &mut self.durable_waits else { return };
            let Some((_, transaction)) = waits.waiting.first().copied().filter(|first| first.0 <= reply.durable) else {
                waits.is_asked = false;
                return self.ask_for_durable(outbox);
            };
            waits.waiting.pop_first();
            let Some(handle) = self.find(transaction) else {
                junctor_kernel::invariant::fail("a commit waits until it is durable", format_args!("{transaction}"))
            };
            require!(self.record(handle).phase == Phase::WaitingDurable, "a commit waits for the log: {transaction}");
            self.finish_transaction(handle, outbox);
        }
        // The remaining commits are answered in the next turn.
        outbox.send(self.own, Signal::Tc(TcSignal::AwaitDurableReply(reply)));
    }
}
