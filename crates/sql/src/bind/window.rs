//! Window functions: their windows, arguments and types.

use junctor_expression::{ArithmeticOperator, Expression, Kind, Node, ResultType};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

use super::block::SlotSpace;
use super::group_function::GroupFunction;
use super::{Aggregation, Binder, Clause, message};
use crate::parse::expression::{self as ast, FunctionCall};
use crate::parse::window::{self as syntax, FrameBound, NamedWindow, Over, WindowDefinition};

/// A window function of a block.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    /// The function.
    pub kind: WindowKind,
    /// Its arguments, except those of an aggregate.
    pub arguments: Vec<Expression>,
    /// The window.
    pub window: Window,
    /// The result: a column that the window operator fills.
    pub result: Expression,
}

/// The window functions.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumulativeDistance,
    /// NTILE: the number of tiles is the argument.
    Tile,
    /// LEAD: value, distance and default.
    Lead,
    /// LAG: value, distance and default.
    Lag,
    FirstValue,
    LastValue,
    /// NTH_VALUE: value and number.
    NthValue,
    Aggregate(Box<GroupFunction>),
}

/// A bound window.
#[derive(Clone, Debug)]
pub struct Window {
    /// PARTITION BY.
    pub partition: Vec<Expression>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The first row of the frame.
    pub start: Bound,
    /// The last row of the frame.
    pub end: Bound,
}

/// A bound of a frame.
#[derive(Clone, Debug)]
pub enum Bound {
    /// The first or last row of the partition.
    Unbounded,
    /// The current row.
    Current,
    /// The first or last peer of the current row.
    Peers,
    /// A number of rows before or after the current row.
    Rows {
        /// PRECEDING.
        is_preceding: bool,
        /// The number.
        distance: Expression,
    },
    /// The rows whose order key is not before or not after a limit.
    Range {
        /// PRECEDING.
        is_preceding: bool,
        /// The distance, a number or the number of an interval. It must not be NULL or negative.
        distance: Expression,
        /// The key of the current row and the distance.
        limit: Expression,
    },
}

/// The parts of a window with those that it inherits.
struct Resolved<'w> {
    name: &'w str,
    partition: &'w [ast::Expression],
    order: &'w [crate::parse::statement::OrderItem],
    frame: Option<&'w syntax::Frame>,
}

/// The name of a window without one in messages.
const UNNAMED: &str = "<unnamed window>";

impl WindowFunction {
    /// All expressions that read the rows of the block.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expression> {
        let aggregated = match &mut self.kind {
            WindowKind::Aggregate(function) => &mut function.arguments[..],
            _ => &mut [],
        };
        let Window { partition, order, start, end } = &mut self.window;
        let limits = [start, end].into_iter().filter_map(|bound| match bound {
            Bound::Range { limit, .. } => Some(limit),
            _ => None,
        });
        let keys = order.iter_mut().map(|key| &mut key.value);
        self.arguments.iter_mut().chain(aggregated).chain(partition.iter_mut()).chain(keys).chain(limits)
    }

    /// The expressions that ONLY_FULL_GROUP_BY checks.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let aggregated = match &self.kind {
            WindowKind::Aggregate(function) => &function.arguments[..],
            _ => &[],
        };
        let keys = self.window.order.iter().map(|key| &key.value);
        self.arguments.iter().chain(aggregated).chain(&self.window.partition).chain(keys)
    }
}

impl<'a> Binder<'a> {
    /// Binds a call with OVER. Error 3593 where no window function is allowed, and those of windows.
    pub(super) fn window_function(&mut self, call: &FunctionCall, over: &Over) -> Result<Expression> {
        let name = call.name.to_ascii_lowercase();
        let (Aggregation::Grouped { space, .. }, Some(windows)) = (&self.aggregation, self.windows) else {
            return Err(misplaced(&name));
        };
        let space: &SlotSpace = space;
        self.windows = None;
        let bound = self.bind_window_function(&name, call, (over, windows), space);
        self.windows = Some(windows);
        let (function, result) = bound?;
        let result = space.computed(result, &name)?;
        let Aggregation::Grouped { functions, .. } = &mut self.aggregation else { return Err(misplaced(&name)) };
        functions.windows.push(WindowFunction { result: result.clone(), ..function });
        Ok(result)
    }

    /// Binds the windows of WINDOW, whether a function uses them or not. Errors: those of windows.
    pub fn check_windows(&mut self, windows: &[NamedWindow]) -> Result<()> {
        for (place, window) in windows.iter().enumerate() {
            let is_same = |other: &NamedWindow| other.name.eq_ignore_ascii_case(&window.name);
            if windows[..place].iter().any(is_same) {
                return Err(fault(ErrorCode::WindowTwice, &window.name, "is defined twice."));
            }
        }
        for window in windows {
            self.window(resolve_named(&window.name, windows, windows.len())?)?;
        }
        Ok(())
    }

    fn bind_window_function(
        &mut self,
        name: &str,
        call: &FunctionCall,
        (over, windows): (&Over, &[NamedWindow]),
        space: &SlotSpace,
    ) -> Result<(WindowFunction, ResultType)> {
        let number = || ResultType::integer(true, 21);
        let (kind, mut arguments, result) = match name {
            "row_number" => (WindowKind::RowNumber, Vec::new(), number()),
            "rank" => (WindowKind::Rank, Vec::new(), number()),
            "dense_rank" => (WindowKind::DenseRank, Vec::new(), number()),
            "percent_rank" => (WindowKind::PercentRank, Vec::new(), ResultType::double()),
            "cume_dist" => (WindowKind::CumulativeDistance, Vec::new(), ResultType::double()),
            "ntile" => (WindowKind::Tile, self.bind_all(&call.arguments)?, number()),
            "lead" | "lag" | "first_value" | "last_value" | "nth_value" => {
                let kind = match name {
                    "lead" => WindowKind::Lead,
                    "lag" => WindowKind::Lag,
                    "first_value" => WindowKind::FirstValue,
                    "last_value" => WindowKind::LastValue,
                    _ => WindowKind::NthValue,
                };
                let mut arguments = self.bind_all(&call.arguments)?;
                let default = (arguments.len() == 3).then(|| arguments.pop()).flatten();
                let Some(value) = arguments.first_mut() else { return Err(message::wrong_arguments(name)) };
                let mut result = value.result.with_nullable(true);
                if let Some(default) = default {
                    result = Expression::common_type(&[value.clone(), default.clone()])?.with_nullable(true);
                    *value = value.clone().converted(result);
                    arguments.push(default.converted(result));
                }
                (kind, arguments, result)
            }
            _ => {
                let function = self.bind_group_function(call, space)?;
                let result = function.result.result;
                (WindowKind::Aggregate(Box::new(function)), Vec::new(), result)
            }
        };
        let checked = match kind {
            WindowKind::Tile => arguments.first().map(|argument| (argument, 1)),
            WindowKind::NthValue => arguments.get(1).map(|argument| (argument, 1)),
            WindowKind::Lead | WindowKind::Lag => arguments.get(1).map(|argument| (argument, 0)),
            _ => None,
        };
        if let Some((Expression { node: Node::Constant(value), .. }, least)) = checked {
            whole_number(value, least).ok_or_else(|| message::wrong_arguments(name))?;
        }
        let clause = self.clause;
        let resolved = match over {
            Over::Named(window) => resolve_named(window, windows, windows.len()),
            Over::Window(definition) => resolve((UNNAMED, definition), windows, windows.len()),
        };
        let window = self.window(resolved?)?;
        self.clause = clause;
        arguments.shrink_to_fit();
        Ok((WindowFunction { kind, arguments, window, result: Expression::null() }, result))
    }

    fn window(&mut self, resolved: Resolved<'_>) -> Result<Window> {
        let name = resolved.name;
        let mut partition: Vec<Expression> = Vec::with_capacity(resolved.partition.len());
        for expression in resolved.partition {
            let value = self.window_expression(Clause::Partition, expression, name)?;
            if !partition.contains(&value) {
                partition.push(value);
            }
        }
        let mut order = Vec::with_capacity(resolved.order.len());
        for item in resolved.order {
            let value = self.window_expression(Clause::WindowOrder, &item.expression, name)?;
            order.push(SortKey { value, descending: item.descending, is_in_result: false });
        }
        let (start, end) = match resolved.frame {
            Some(frame) => self.frame(frame, &order, name)?,
            None if order.is_empty() => (Bound::Unbounded, Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Peers),
        };
        Ok(Window { partition, order, start, end })
    }

    fn window_expression(&mut self, clause: Clause, expression: &ast::Expression, window: &str) -> Result<Expression> {
        if let ast::Expression::Literal(ast::Literal::Integer(_)) = expression {
            let text =
                "ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.";
            return Err(of_window(ErrorCode::WindowPosition, window, text));
        }
        self.bind_in(clause, expression).map_err(|error| match error.code {
            ErrorCode::WindowFunctionMisplaced => {
                let text = format!("You cannot nest a window function in the specification of window '{window}'.");
                Error::new(ErrorCode::WindowNested, text)
            }
            _ => error,
        })
    }

    fn frame(&mut self, frame: &syntax::Frame, order: &[SortKey], window: &str) -> Result<(Bound, Bound)> {
        use FrameBound::{CurrentRow, Following, Preceding, UnboundedFollowing, UnboundedPreceding};
        if frame.start == UnboundedFollowing {
            let text = "frame start cannot be UNBOUNDED FOLLOWING.";
            return Err(of_window(ErrorCode::WindowFrameStart, window, text));
        }
        if frame.end == UnboundedPreceding {
            let text = "frame end cannot be UNBOUNDED PRECEDING.";
            return Err(of_window(ErrorCode::WindowFrameEnd, window, text));
        }
        let is_reversed = matches!(
            (&frame.start, &frame.end),
            (CurrentRow, Preceding(_)) | (Following(_), CurrentRow | Preceding(_))
        );
        if is_reversed {
            return Err(illegal_bound(window));
        }
        let mut bound = |bound: &FrameBound| match bound {
            UnboundedPreceding | UnboundedFollowing => Ok(Bound::Unbounded),
            CurrentRow if frame.is_range => Ok(Bound::Peers),
            CurrentRow => Ok(Bound::Current),
            Preceding(distance) => self.distance((distance, true), frame.is_range, order, window),
            Following(distance) => self.distance((distance, false), frame.is_range, order, window),
        };
        Ok((bound(&frame.start)?, bound(&frame.end)?))
    }

    fn distance(
        &mut self,
        (written, is_preceding): (&ast::Expression, bool),
        is_range: bool,
        order: &[SortKey],
        window: &str,
    ) -> Result<Bound> {
        let interval = match written {
            ast::Expression::Function(call) if call.name == "INTERVAL UNIT" => Some(&call.arguments),
            _ => None,
        };
        let distance = match interval.and_then(|arguments| arguments.first()) {
            Some(number) => self.bind(number)?,
            None => self.bind(written)?,
        };
        if !is_constant(&distance, self.environment.parameters.len()) {
            return Err(fault(ErrorCode::WindowBoundNotConstant, window, "has a non-constant frame bound."));
        }
        if let Node::Constant(value) = &distance.node {
            check_distance(value, is_range).ok_or_else(|| illegal_bound(window))?;
        }
        if !is_range {
            return match interval {
                Some(_) => {
                    let text = "INTERVAL can only be used with RANGE frames.";
                    Err(of_window(ErrorCode::WindowRowsInterval, window, text))
                }
                None => Ok(Bound::Rows { is_preceding, distance }),
            };
        }
        let kind = order.first().map(|key| key.value.result.kind);
        let (Some(kind), [key]) = (kind, order) else { return Err(range_order(window)) };
        let is_earlier = is_preceding != key.descending;
        let limit = match interval {
            Some(arguments) if matches!(kind, Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp) => {
                let unit = arguments.get(1).map_or(Ok(Expression::null()), |unit| self.bind(unit))?;
                let name = if is_earlier { "DATE_SUB" } else { "DATE_ADD" };
                self.bind_call(name, vec![key.value.clone(), distance.clone(), unit])?
            }
            _ if matches!(kind, Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp) => {
                let text =
                    "with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
                return Err(fault(ErrorCode::WindowRangeTemporal, window, text));
            }
            _ if !key.value.result.is_number() => return Err(range_order(window)),
            Some(_) => {
                let text =
                    "with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
                return Err(fault(ErrorCode::WindowRangeNumeric, window, text));
            }
            None => {
                // Integers cannot overflow as decimals.
                let exact = |value: Expression| match value.result.kind {
                    Kind::Double | Kind::Float | Kind::Decimal => value,
                    _ => value.converted(ResultType::decimal(21, 0).with_nullable(true)),
                };
                let operator = if is_earlier { ArithmeticOperator::Subtract } else { ArithmeticOperator::Add };
                Expression::arithmetic(operator, exact(key.value.clone()), exact(distance.clone()))
            }
        };
        Ok(Bound::Range { is_preceding, distance, limit })
    }
}

/// The window of a name. `depth` is the number of further names that a window without a circle can inherit.
fn resolve_named<'w>(name: &str, windows: &'w [NamedWindow], depth: usize) -> Result<Resolved<'w>> {
    let Some(window) = windows.iter().find(|window| window.name.eq_ignore_ascii_case(name)) else {
        return Err(Error::new(ErrorCode::NoSuchWindow, format!("Window name '{name}' is not defined.")));
    };
    resolve((&window.name, &window.definition), windows, depth)
}

fn resolve<'w>(
    (name, definition): (&'w str, &'w WindowDefinition),
    windows: &'w [NamedWindow],
    depth: usize,
) -> Result<Resolved<'w>> {
    let own =
        Resolved { name, partition: &definition.partition, order: &definition.order, frame: definition.frame.as_ref() };
    let Some(base) = &definition.base else { return Ok(own) };
    if depth == 0 && name != UNNAMED {
        let text = "There is a circularity in the window dependency graph.";
        return Err(Error::new(ErrorCode::WindowCircle, text));
    }
    let base = resolve_named(base, windows, depth.saturating_sub(1))?;
    if !own.partition.is_empty() {
        let text = "A window which depends on another cannot define partitioning.";
        return Err(Error::new(ErrorCode::WindowChildPartition, text));
    }
    if base.frame.is_some() {
        let text = "has a frame definition, so cannot be referenced by another window.";
        return Err(fault(ErrorCode::WindowInheritsFrame, base.name, text));
    }
    if !own.order.is_empty() && !base.order.is_empty() {
        let text = format!("cannot inherit '{}' since both contain an ORDER BY clause.", base.name);
        return Err(fault(ErrorCode::WindowInheritsOrder, name, &text));
    }
    let order = if own.order.is_empty() { base.order } else { own.order };
    Ok(Resolved { name, partition: base.partition, order, frame: own.frame })
}

/// The value of an argument that must be an integer of at least `least`.
pub(crate) fn whole_number(value: &Value, least: u64) -> Option<u64> {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    };
    number.filter(|number| *number >= least)
}

/// The distance of a bound; 0 for a distance of RANGE, which need not be an integer. `None` if it is negative
/// or NULL.
pub(crate) fn check_distance(value: &Value, is_range: bool) -> Option<u64> {
    if !is_range {
        return whole_number(value, 0);
    }
    let is_valid = match value {
        Value::Null => false,
        Value::Bytes(text) => !text.trim_ascii_start().starts_with(b"-"),
        other => other.as_ref().as_number().to_double().is_ok_and(|number| number >= 0.0),
    };
    is_valid.then_some(0)
}

/// Error 3586.
pub(crate) fn illegal_bound(window: &str) -> Box<Error> {
    let text = "frame start or end is negative, NULL or of non-integral type";
    of_window(ErrorCode::WindowFrameBound, window, text)
}

/// Error 3586 of a bound whose value the execution supplies.
pub(crate) fn illegal_bound_value() -> Box<Error> {
    illegal_bound(UNNAMED)
}

fn is_constant(distance: &Expression, parameters: usize) -> bool {
    match distance.node {
        Node::Column { .. } => false,
        Node::Parameter(ordinal) => usize::from(ordinal) < parameters,
        _ => {
            let mut is_constant = true;
            distance.for_each_operand(&mut |operand| is_constant &= self::is_constant(operand, parameters));
            is_constant
        }
    }
}

fn range_order(window: &str) -> Box<Error> {
    let text = "with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal \
                type";
    fault(ErrorCode::WindowRangeOrder, window, text)
}

pub(crate) fn misplaced(function: &str) -> Box<Error> {
    let text = format!("You cannot use the window function '{function}' in this context.'");
    Error::new(ErrorCode::WindowFunctionMisplaced, text)
}

fn of_window(code: ErrorCode, window: &str, text: &str) -> Box<Error> {
    Error::new(code, format!("Window '{window}': {text}"))
}

fn fault(code: ErrorCode, window: &str, text: &str) -> Box<Error> {
    Error::new(code, format!("Window '{window}' {text}"))
}
