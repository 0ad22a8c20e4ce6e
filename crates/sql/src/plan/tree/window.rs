//! Window functions: the windows in the order in which they run, and the values that they need.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_signals::program::{Projection, SortKey};

use super::PlanNode;
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};
use crate::bind::window::{Bound, WindowFunction, WindowKind};
use junctor_expression::aggregate::AggregateKind;

/// The functions of one order of rows.
#[derive(Debug)]
pub struct WindowPlan {
    /// The values that are equal in a partition.
    pub partition: Vec<SortKey>,
    /// The order of rows in a partition.
    pub order: Vec<SortKey>,
    /// The values that the operator keeps of each row: the input columns of the functions.
    pub inputs: Vec<WindowInput>,
    /// The functions.
    pub functions: Vec<WindowStep>,
}

/// A value that a window keeps of each row.
#[derive(Debug)]
pub struct WindowInput {
    /// The value.
    pub value: Expression,
    /// Whether it keeps its guard digits, for an aggregate.
    pub is_unrounded: bool,
}

/// A window function with its frame.
#[derive(Debug)]
pub struct WindowStep {
    /// The function.
    pub function: StepFunction,
    /// The first row of the frame.
    pub start: StepBound,
    /// The last row of the frame.
    pub end: StepBound,
    /// The slot of the result.
    pub slot: u16,
}

/// The window functions over input columns.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StepFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumulativeDistance,
    /// NTILE.
    Tile(Expression),
    /// LEAD and LAG.
    Shift {
        value: u16,
        distance: Option<Expression>,
        default: Option<u16>,
        is_lead: bool,
    },
    First(u16),
    Last(u16),
    Nth(u16, Expression),
    Aggregate(Box<GroupFunction>),
}

/// A bound of a frame over input columns.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StepBound {
    Unbounded,
    Current,
    Peers,
    Rows {
        is_preceding: bool,
        distance: Expression,
    },
    /// The limit of the order key, and the order key.
    Range {
        is_preceding: bool,
        distance: Expression,
        limit: u16,
        key: u16,
    },
}

/// Collects the input columns of a window.
#[derive(Default)]
struct Inputs(Vec<WindowInput>);

impl Inputs {
    fn column(&mut self, value: Expression, is_unrounded: bool) -> u16 {
        let is_it = |known: &WindowInput| known.is_unrounded == is_unrounded && known.value == value;
        let known = self.0.iter().position(is_it);
        known.unwrap_or_else(|| {
            self.0.push(WindowInput { value, is_unrounded });
            self.0.len() - 1
        }) as u16
    }

    fn bound(&mut self, bound: Bound, order: &[SortKey]) -> StepBound {
        match (bound, order.first()) {
            (Bound::Current, _) => StepBound::Current,
            (Bound::Peers, _) => StepBound::Peers,
            (Bound::Rows { is_preceding, distance }, _) => StepBound::Rows { is_preceding, distance },
            (Bound::Range { is_preceding, distance, limit }, Some(key)) => {
                let (limit, key) = (self.column(limit, false), self.column(key.value.clone(), false));
                StepBound::Range { is_preceding, distance, limit, key }
            }
            (Bound::Unbounded | Bound::Range { .. }, _) => StepBound::Unbounded,
        }
    }

    fn step(&mut self, function: WindowFunction) -> WindowStep {
        let WindowFunction { kind, arguments, window, result } = function;
        let mut arguments = arguments.into_iter();
        let mut value = || arguments.next().unwrap_or_else(Expression::null);
        let step = match kind {
            WindowKind::RowNumber => StepFunction::RowNumber,
            WindowKind::Rank => StepFunction::Rank,
            WindowKind::DenseRank => StepFunction::DenseRank,
            WindowKind::PercentRank => StepFunction::PercentRank,
            WindowKind::CumulativeDistance => StepFunction::CumulativeDistance,
            WindowKind::Tile => StepFunction::Tile(value()),
            WindowKind::FirstValue => StepFunction::First(self.column(value(), false)),
            WindowKind::LastValue => StepFunction::Last(self.column(value(), false)),
            WindowKind::NthValue => StepFunction::Nth(self.column(value(), false), value()),
            WindowKind::Lead | WindowKind::Lag => {
                let (is_lead, value) = (matches!(kind, WindowKind::Lead), self.column(value(), false));
                let distance = arguments.next();
                let default = arguments.next().map(|default| self.column(default, false));
                StepFunction::Shift { value, distance, default, is_lead }
            }
            WindowKind::Aggregate(mut function) => {
                for argument in &mut function.arguments {
                    let sums = matches!(
                        function.kind,
                        GroupFunctionKind::Plain(AggregateKind::Sum | AggregateKind::Average(_))
                    );
                    let result = argument.result;
                    let column = self.column(std::mem::replace(argument, Expression::null()), sums);
                    *argument = Expression::column_of_type(ColumnNumber(column), result, "");
                }
                StepFunction::Aggregate(function)
            }
        };
        let (start, end) = (self.bound(window.start, &window.order), self.bound(window.end, &window.order));
        WindowStep { function: step, start, end, slot: result.as_column().map_or(0, |slot| slot.0) }
    }
}

/// Adds the values of window functions to the rows. Functions of windows with the same rows and order run
/// together, and a window whose order is the beginning of the order before it needs no sort.
pub(super) fn windowed(mut node: PlanNode, functions: Vec<WindowFunction>) -> PlanNode {
    let mut windows: Vec<Vec<WindowFunction>> = Vec::new();
    for function in functions {
        let is_same = |known: &Vec<WindowFunction>| {
            let known = &known[0].window;
            let window = &function.window;
            known.partition == window.partition && same_order(&known.order, &window.order)
        };
        match windows.iter_mut().find(|known| is_same(known)) {
            Some(known) => known.push(function),
            None => windows.push(vec![function]),
        }
    }
    // Among windows of one beginning, the longest order comes first.
    windows.sort_by_key(|window| std::cmp::Reverse(window[0].window.partition.len() + window[0].window.order.len()));
    let mut sorted: Vec<SortKey> = Vec::new();
    for functions in windows {
        let window = &functions[0].window;
        let ascending = |value: &Expression| SortKey { value: value.clone(), descending: false, is_in_result: false };
        let partition: Vec<SortKey> = window.partition.iter().map(ascending).collect();
        let order = window.order.clone();
        let keys: Vec<SortKey> = partition.iter().chain(&order).cloned().collect();
        if !(keys.len() <= sorted.len() && same_order(&keys, &sorted[..keys.len()])) {
            node = PlanNode::Sort(Box::new(node), keys.clone().into(), None);
            sorted = keys;
        }
        let mut inputs = Inputs::default();
        let functions = functions.into_iter().map(|function| inputs.step(function)).collect();
        let plan = WindowPlan { partition, order, inputs: inputs.0, functions };
        node = PlanNode::Window(Box::new(node), Arc::new(plan));
    }
    node
}

/// Whether an expression reads the value of a window function.
pub(super) fn reads_window(value: &Expression, windows: &[WindowFunction]) -> bool {
    let mut reads = false;
    value.visit(&mut |inner| reads |= windows.iter().any(|window| window.result == *inner));
    reads
}

/// Refuses an alias of a window function in HAVING and GROUP BY. Error: 3594.
pub(super) fn check_alias(value: &Expression, projection: &Projection, windows: &[WindowFunction]) -> Result<()> {
    if !reads_window(value, windows) {
        return Ok(());
    }
    let listed = projection.values.iter().position(|item| reads_window(item, windows));
    let alias = listed.map_or("", |place| &projection.columns[place].name);
    let text =
        format!("You cannot use the alias '{alias}' of an expression containing a window function in this context.'");
    Err(Error::new(ErrorCode::WindowAliasMisplaced, text))
}

fn same_order(left: &[SortKey], right: &[SortKey]) -> bool {
    let is_same =
        |(left, right): (&SortKey, &SortKey)| left.value == right.value && left.descending == right.descending;
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}
