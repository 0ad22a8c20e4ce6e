//! The values of window functions.

use std::collections::VecDeque;

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{Parameters, compare_values};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

use super::super::Run;
use super::super::group_state::GroupState;
use super::frame::{FrameEdge, number_of};
use super::partition::Partition;
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};
use crate::execute::memory::Account;
use crate::plan::tree::{StepBound, StepFunction, WindowStep};

/// The state of a function over the current partition.
#[derive(Debug)]
pub(super) struct FunctionState {
    /// The argument of NTILE and NTH_VALUE, or the distance of LEAD and LAG.
    number: u64,
    start: FrameEdge,
    end: FrameEdge,
    /// The frame of the last row.
    frame: (u64, u64),
    aggregate: Option<FrameAggregate>,
    /// The value of FIRST_VALUE or NTH_VALUE in all frames that begin with the partition.
    kept: Option<Value>,
}

/// The result for a row.
pub(super) enum Outcome {
    Value(Value),
    /// The value depends on rows that are not known.
    NeedsRows,
    /// The step has done enough.
    Spent,
}

/// An aggregate over the rows from `from` to `to`.
#[derive(Debug)]
struct FrameAggregate {
    state: GroupState,
    from: u64,
    to: u64,
    /// MIN and MAX: rows of which each is better than all after it. The first is the result.
    extremes: Option<VecDeque<u64>>,
    result: Option<Value>,
    account: Account,
}

impl FunctionState {
    /// Evaluates the constants. Errors: 1210, 3586.
    pub fn new(step: &WindowStep, row: Parameters<'_>, run: &Run<'_, '_, '_>) -> Result<FunctionState> {
        let number = match &step.function {
            StepFunction::Tile(number) => number_of(number, (1, "ntile"), row, run)?,
            StepFunction::Nth(_, number) => number_of(number, (1, "nth_value"), row, run)?,
            StepFunction::Shift { distance: None, .. } => 1,
            StepFunction::Shift { distance: Some(distance), is_lead, .. } => {
                number_of(distance, (0, if *is_lead { "lead" } else { "lag" }), row, run)?
            }
            _ => 0,
        };
        let (start, end) = (FrameEdge::new(&step.start, row, run)?, FrameEdge::new(&step.end, row, run)?);
        let aggregate = match &step.function {
            StepFunction::Aggregate(function) => Some(FrameAggregate::new(function, &step.start)),
            _ => None,
        };
        Ok(FunctionState { number, start, end, frame: (0, 0), aggregate, kept: None })
    }

    /// Begins another partition.
    pub fn reset(&mut self, step: &WindowStep) {
        self.start.reset();
        self.end.reset();
        self.frame = (0, 0);
        self.kept = None;
        if let (Some(aggregate), StepFunction::Aggregate(function)) = (&mut self.aggregate, &step.function) {
            aggregate.clear(function, 0);
        }
    }

    /// The value for the current row.
    pub fn value(
        &mut self,
        (step, order): (&WindowStep, &[SortKey]),
        partition: &Partition,
        run: &mut Run<'_, '_, '_>,
    ) -> Result<Outcome> {
        let current = partition.current;
        let number = |number: u64| Ok(Outcome::Value(Value::UInt(number)));
        match &step.function {
            StepFunction::RowNumber => number(current + 1),
            StepFunction::Rank => number(partition.peers_start() + 1),
            StepFunction::DenseRank => number(partition.group_number),
            StepFunction::PercentRank => Ok(match partition.end() {
                Some(rows) => Outcome::Value(Value::Double(partition.peers_start() as f64 / (rows - 1).max(1) as f64)),
                None => Outcome::NeedsRows,
            }),
            StepFunction::CumulativeDistance => Ok(match (partition.end(), partition.peers_end()) {
                (Some(rows), Some(peers)) => Outcome::Value(Value::Double(peers as f64 / rows as f64)),
                _ => Outcome::NeedsRows,
            }),
            StepFunction::Tile(_) => match partition.end() {
                Some(rows) => number(1 + tile_of(current, rows, self.number)),
                None => Ok(Outcome::NeedsRows),
            },
            StepFunction::Shift { value, default, is_lead, .. } => {
                let wanted = match is_lead {
                    true => current.checked_add(self.number),
                    false => current.checked_sub(self.number),
                };
                if *is_lead && !partition.is_complete && wanted.is_some_and(|wanted| wanted >= partition.rows) {
                    return Ok(Outcome::NeedsRows);
                }
                Ok(Outcome::Value(match (wanted.filter(|wanted| *wanted < partition.rows), default) {
                    (Some(wanted), _) => partition.row(wanted).get(*value).to_value(),
                    (None, Some(default)) => partition.row(current).get(*default).to_value(),
                    (None, None) => Value::Null,
                }))
            }
            StepFunction::First(_) | StepFunction::Last(_) | StepFunction::Nth(..) | StepFunction::Aggregate(_) => {
                let start = self.start.start(&step.start, order, partition);
                let end = start.and_then(|_| self.end.end(&step.end, order, partition));
                let (Some(start), Some(end)) = (start, end) else { return Ok(Outcome::NeedsRows) };
                let frame = (start.min(end), end);
                self.of_frame(step, frame, partition, run)
            }
        }
    }

    fn of_frame(
        &mut self,
        step: &WindowStep,
        (start, end): (u64, u64),
        partition: &Partition,
        run: &mut Run<'_, '_, '_>,
    ) -> Result<Outcome> {
        let (column, place) = match &step.function {
            StepFunction::Aggregate(function) => {
                let Some(aggregate) = &mut self.aggregate else { return Ok(Outcome::Value(Value::Null)) };
                if !aggregate.move_to(function, (start, end), partition, run)? {
                    return Ok(Outcome::Spent);
                }
                self.frame = (start, end);
                return Ok(Outcome::Value(aggregate.value(function, partition, run)?));
            }
            StepFunction::First(column) => (*column, Some(start)),
            StepFunction::Last(column) => (*column, end.checked_sub(1)),
            StepFunction::Nth(column, _) => (*column, start.checked_add(self.number - 1)),
            _ => return Ok(Outcome::Value(Value::Null)),
        };
        self.frame = (start, end);
        let Some(place) = place.filter(|place| *place >= start && *place < end) else {
            return Ok(Outcome::Value(Value::Null));
        };
        let keeps = !matches!(step.function, StepFunction::Last(_)) && matches!(step.start, StepBound::Unbounded);
        if let (true, Some(kept)) = (keeps, &self.kept) {
            return Ok(Outcome::Value(kept.clone()));
        }
        let value = partition.row(place).get(column).to_value();
        if keeps {
            self.kept = Some(value.clone());
        }
        Ok(Outcome::Value(value))
    }

    /// The first row that the function needs after the current row.
    pub fn needed(&self, step: &WindowStep, partition: &Partition) -> u64 {
        let next = partition.current;
        let begins_partition = matches!(step.start, StepBound::Unbounded);
        let of_values = match &step.function {
            StepFunction::Shift { is_lead: false, .. } => next.saturating_sub(self.number),
            StepFunction::First(_) | StepFunction::Nth(..) if begins_partition => match self.kept {
                Some(_) => next,
                None => 0,
            },
            StepFunction::First(_) | StepFunction::Nth(..) => self.frame.0,
            StepFunction::Last(_) => self.frame.1.saturating_sub(1),
            StepFunction::Aggregate(_) => match &self.aggregate {
                Some(aggregate) if begins_partition => aggregate.to,
                Some(FrameAggregate { extremes: Some(rows), to, .. }) => rows.front().copied().unwrap_or(*to),
                Some(aggregate) => aggregate.from,
                None => next,
            },
            _ => next,
        };
        let of_bounds = self.start.needed(&step.start).min(self.end.needed(&step.end));
        next.min(of_values).min(of_bounds)
    }
}

impl FrameAggregate {
    fn new(function: &GroupFunction, start: &StepBound) -> FrameAggregate {
        // A frame that only grows needs no row twice.
        let moves = !matches!(start, StepBound::Unbounded);
        let is_extreme =
            matches!(function.kind, GroupFunctionKind::Plain(AggregateKind::Minimum | AggregateKind::Maximum));
        let extremes = (moves && is_extreme).then(VecDeque::new);
        FrameAggregate {
            state: GroupState::new(function),
            from: 0,
            to: 0,
            extremes,
            result: None,
            account: Account::default(),
        }
    }

    /// Begins with an empty frame at a row.
    fn clear(&mut self, function: &GroupFunction, at: u64) {
        self.account.clear();
        (self.from, self.to, self.result) = (at, at, None);
        self.state = GroupState::new(function);
        if let Some(rows) = &mut self.extremes {
            rows.clear();
        }
    }

    /// Moves to a frame, which is not before the last one. Returns false if the step has done enough.
    fn move_to(
        &mut self,
        function: &GroupFunction,
        (start, end): (u64, u64),
        partition: &Partition,
        run: &mut Run<'_, '_, '_>,
    ) -> Result<bool> {
        if (self.from, self.to) == (start, end) {
            return Ok(true);
        }
        self.result = None;
        if self.from != start {
            if let Some(rows) = self.extremes.as_mut().filter(|_| start < self.to) {
                while rows.front().is_some_and(|first| *first < start) {
                    rows.pop_front();
                }
                self.from = start;
            } else if start >= self.to || !self.state.is_reversible() {
                self.clear(function, start);
            }
        }
        while self.from < start {
            self.state.remove(function, partition.row(self.from), run.scratch)?;
            self.from += 1;
            if run.is_spent(1) {
                return Ok(false);
            }
        }
        while self.to < end {
            self.add(function, partition, run)?;
            self.to += 1;
            if run.is_spent(1) && self.to < end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the row at `to`.
    fn add(&mut self, function: &GroupFunction, partition: &Partition, run: &mut Run<'_, '_, '_>) -> Result<()> {
        let row = partition.row(self.to);
        let Some(rows) = &mut self.extremes else {
            let grown = self.state.add(function, row, run.scratch)?;
            return self.account.hold(run.memory, grown);
        };
        let value = row.get(column_of(function));
        if value.is_null() {
            return Ok(());
        }
        let is_minimum = function.kind == GroupFunctionKind::Plain(AggregateKind::Minimum);
        let argument = function.arguments.first();
        let collation = argument.map_or(CollationId::BINARY, |argument| argument.result.collation);
        while let Some(last) = rows.back() {
            let order = compare_values(collation, value, partition.row(*last).get(column_of(function)));
            if !(if is_minimum { order.is_lt() } else { order.is_gt() }) {
                break;
            }
            rows.pop_back();
        }
        rows.push_back(self.to);
        Ok(())
    }

    fn value(&mut self, function: &GroupFunction, partition: &Partition, run: &mut Run<'_, '_, '_>) -> Result<Value> {
        if let Some(rows) = &self.extremes {
            let first = rows.front().map(|row| partition.row(*row).get(column_of(function)).to_value());
            return Ok(first.unwrap_or(Value::Null));
        }
        if let Some(result) = &self.result {
            return Ok(result.clone());
        }
        let result = self.state.finish(function, run.scratch, run.memory_left())?;
        self.result = Some(result.clone());
        Ok(result)
    }
}

/// The input column that an aggregate takes.
fn column_of(function: &GroupFunction) -> u16 {
    function.arguments.first().and_then(|argument| argument.as_column()).map_or(0, |column| column.0)
}

/// The tile of a row, from 0: the first tiles have one row more than the others.
fn tile_of(row: u64, rows: u64, tiles: u64) -> u64 {
    let (least, larger) = (rows / tiles, rows % tiles);
    let in_larger = larger * (least + 1);
    if row < in_larger { row / (least + 1) } else { larger + (row - in_larger) / least.max(1) }
}
