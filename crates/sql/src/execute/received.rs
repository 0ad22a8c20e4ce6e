//! The rows of a locking read or of RETURNING. They all arrive with the outcome of the statement, and are
//! sorted and sent in steps, because the other sessions of the thread wait until a step ends.

use junctor_gateway::{TurnContext, invariant};
use junctor_model::error::Result;

use super::completion::{fail, finish_rows};
use super::context::StatementContext;
use super::engine::Engine;
use super::packets::{Window, row_start};
use super::read::{abandon_read, finish_select, merge_states, send_sorted_rows};
use super::session::Session;
use super::sorter::{Sorter, entry_bytes};
use super::state::{Execution, FinalStepState, ReadState, SortedState};
use crate::result::{OUTPUT_PART_BYTES, Progress};

/// Maximum number of rows that one step processes, which takes tens of microseconds.
const STEP_ROWS: u32 = 256;
/// Bytes of rows after which a step ends. Copying them takes tens of microseconds.
const STEP_BYTES: usize = 64 * 1024;

/// Rows that have arrived and are not processed yet.
#[derive(Debug)]
pub(crate) struct ReceivedRows {
    /// The rows of the partitions after the current one.
    outputs: std::vec::IntoIter<Vec<u8>>,
    /// The rows of the current partition, which are processed up to `position`.
    current: Vec<u8>,
    position: usize,
}

/// The encoding of received rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowForm {
    /// Row packets, ready for the client.
    Packets,
    /// Rows with sort keys.
    Entries,
    /// Partial states of aggregates. The states of one partition form one row.
    AggregateStates,
}

/// The number of rows and bytes that a step may still process.
#[derive(Debug)]
pub(crate) struct StepBudget {
    rows: u32,
    bytes: usize,
}

impl StepBudget {
    /// The budget of a step that begins.
    pub(crate) const FULL: StepBudget = StepBudget { rows: STEP_ROWS, bytes: STEP_BYTES };

    /// Spends the budget on the first rows of `rest`. Returns their bytes and number. The last of these rows
    /// may exceed the budget.
    fn spend(&mut self, form: RowForm, rest: &[u8]) -> (usize, u64) {
        let (mut bytes, mut rows) = (0, 0);
        while bytes < rest.len() && self.rows > 0 && self.bytes > 0 {
            let after = &rest[bytes..];
            let row_bytes = match form {
                RowForm::Packets => row_start(after, 1),
                RowForm::Entries => entry_bytes(after),
                RowForm::AggregateStates => after.len(),
            };
            bytes += row_bytes;
            rows += 1;
            self.rows -= 1;
            self.bytes = self.bytes.saturating_sub(row_bytes);
        }
        (bytes, rows)
    }
}

impl ReceivedRows {
    /// The rows of a reply, one buffer for each partition.
    pub(crate) fn new(outputs: Vec<Vec<u8>>) -> ReceivedRows {
        ReceivedRows { outputs: outputs.into_iter(), current: Vec::new(), position: 0 }
    }

    /// Takes the next rows of one partition, as many as the budget allows. Returns them and their number, or
    /// `None` if the budget is spent or no rows remain.
    pub(crate) fn take_part(
        &mut self,
        form: RowForm,
        budget: &mut StepBudget,
        turn: &mut TurnContext<'_>,
    ) -> Option<(&[u8], u64)> {
        while self.position == self.current.len() {
            let next = self.outputs.next();
            let is_last = next.is_none();
            turn.buffers.give(std::mem::replace(&mut self.current, next.unwrap_or_default()));
            self.position = 0;
            if is_last {
                return None;
            }
        }
        let (bytes, rows) = budget.spend(form, &self.current[self.position..]);
        let start = self.position;
        self.position += bytes;
        (rows > 0).then(|| (&self.current[start..start + bytes], rows))
    }

    /// Whether no rows remain.
    pub(crate) fn is_empty(&self) -> bool {
        self.position == self.current.len() && self.outputs.as_slice().iter().all(Vec::is_empty)
    }
}

/// A statement whose rows have arrived and are being processed.
#[derive(Debug)]
pub(crate) struct ReceivedState {
    rows: ReceivedRows,
    target: RowTarget,
    /// Whether the session waits until the client has received the last part.
    pub awaits_room: bool,
    /// Whether the session has sent itself a `ContinueStatement` signal.
    pub step_requested: bool,
}

/// The use of received rows.
#[derive(Debug)]
pub(super) enum RowTarget {
    /// The final step of a locking read.
    LockRead(ReadState),
    /// The answer of RETURNING, whose header has been sent. `rows` is the number of rows sent.
    Answer { rows: u64 },
    /// The sorted answer of RETURNING, whose header has been sent.
    SortedAnswer(Box<Sorter>),
}

impl RowTarget {
    fn form(&self) -> RowForm {
        match self {
            RowTarget::Answer { .. } => RowForm::Packets,
            RowTarget::SortedAnswer(_) => RowForm::Entries,
            RowTarget::LockRead(read) => match read.final_step {
                FinalStepState::Stream => RowForm::Packets,
                FinalStepState::Sort(_) => RowForm::Entries,
                FinalStepState::Aggregate(_) => RowForm::AggregateStates,
            },
        }
    }

    fn take_rows(&mut self, context: &mut StatementContext<'_, '_>, part: &[u8], rows: u64) -> Result<()> {
        match self {
            RowTarget::Answer { rows: sent } => {
                context.sink.row_packets(part);
                *sent += rows;
                Ok(())
            }
            RowTarget::SortedAnswer(sorter) => sorter.add_rows(part),
            RowTarget::LockRead(read) => match &mut read.final_step {
                FinalStepState::Stream => {
                    if !read.header_sent {
                        context.sink.header(&read.plan.header, &context.session.completion());
                        read.header_sent = true;
                    }
                    let (packets, taken) = read.window.cut(part, rows);
                    context.sink.row_packets(packets);
                    read.rows += if read.plan.calc_found_rows { rows } else { taken };
                    Ok(())
                }
                FinalStepState::Sort(sorter) => sorter.add_rows(part),
                FinalStepState::Aggregate(accumulators) => merge_states(accumulators, part),
            },
        }
    }
}

impl ReceivedState {
    /// Whether the statement has already written its rows, so that KILL comes too late.
    pub(super) fn has_written(&self) -> bool {
        !matches!(self.target, RowTarget::LockRead(_))
    }

    /// Releases the statement, whose rows are no longer wanted.
    pub(super) fn abandon(self, engine: &mut Engine, session: &mut Session, turn: &mut TurnContext<'_>) {
        match self.target {
            RowTarget::LockRead(mut read) => abandon_read(engine, session, &mut read, turn),
            RowTarget::SortedAnswer(sorter) => sorter.retire(&mut engine.work.sorters),
            RowTarget::Answer { .. } => {}
        }
    }
}

/// Processes the rows of a statement. A few rows take one step, without an allocation.
pub(super) fn process_rows(
    context: &mut StatementContext<'_, '_>,
    outputs: Vec<Vec<u8>>,
    target: RowTarget,
) -> Progress {
    let rows = ReceivedRows::new(outputs);
    run_step(context, ReceivedState { rows, target, awaits_room: false, step_requested: false })
}

/// Runs the next step of a statement whose rows are being processed.
pub(super) fn continue_received(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Received(state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail(
            "received rows are processed of a statement that has some",
            format_args!("the session has none"),
        )
    };
    run_step(context, *state)
}

fn run_step(context: &mut StatementContext<'_, '_>, mut state: ReceivedState) -> Progress {
    if context.session.interrupted {
        state.abandon(context.engine, context.session, context.turn);
        return finish_rows(context, 0);
    }
    let form = state.target.form();
    let mut budget = StepBudget::FULL;
    while let Some((part, rows)) = state.rows.take_part(form, &mut budget, context.turn) {
        if let Err(error) = state.target.take_rows(context, part, rows) {
            state.abandon(context.engine, context.session, context.turn);
            return fail(context, &error);
        }
        let is_full = matches!(form, RowForm::Packets) && context.sink.pending_bytes() >= OUTPUT_PART_BYTES;
        if is_full && !state.rows.is_empty() {
            state.awaits_room = true;
            context.session.execution = Execution::Received(Box::new(state));
            return Progress::MoreOutput;
        }
    }
    if !state.rows.is_empty() {
        state.step_requested = true;
        context.session.execution = Execution::Received(Box::new(state));
        context.request_step();
        return Progress::Waiting;
    }
    match state.target {
        RowTarget::LockRead(mut read) => finish_select(context, &mut read),
        RowTarget::Answer { rows } => finish_rows(context, rows),
        RowTarget::SortedAnswer(sorter) => {
            context.session.execution = Execution::Sorted(SortedState::of_returned_rows(sorter));
            send_sorted_rows(context)
        }
    }
}

impl SortedState {
    /// The state that sends all rows of RETURNING.
    fn of_returned_rows(sorter: Box<Sorter>) -> SortedState {
        SortedState {
            sorter,
            window: Window::ALL,
            asked: Window::ALL,
            counted: None,
            counts_all: false,
            has_written: true,
            awaits_room: false,
            step_requested: false,
        }
    }
}
