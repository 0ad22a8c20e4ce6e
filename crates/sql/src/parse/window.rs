//! The syntax tree of windows.

use super::expression::Expression;
use super::statement::OrderItem;

/// The window of a window function.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER name`
    Named(String),
    /// `OVER (...)`
    Window(Box<WindowDefinition>),
}

/// A window: `([base] [PARTITION BY ...] [ORDER BY ...] [frame])`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WindowDefinition {
    /// The named window whose parts this window inherits.
    pub base: Option<String>,
    /// PARTITION BY.
    pub partition: Vec<Expression>,
    /// ORDER BY.
    pub order: Vec<OrderItem>,
    /// ROWS or RANGE; `None` if it is not written.
    pub frame: Option<Frame>,
}

/// `name AS (...)` in WINDOW.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct NamedWindow {
    pub name: String,
    pub definition: WindowDefinition,
}

/// A frame: the rows of a partition that a function takes, seen from one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Whether bounds are distances of values (RANGE), not numbers of rows (ROWS).
    pub is_range: bool,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// A bound of a frame. An interval is a call of `INTERVAL UNIT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expression),
    CurrentRow,
    Following(Expression),
    UnboundedFollowing,
}

impl WindowDefinition {
    /// The expressions of PARTITION BY and ORDER BY.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.partition.iter().chain(self.order.iter().map(|item| &item.expression))
    }

    /// All expressions, to be changed.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expression> {
        let bounds = self.frame.iter_mut().flat_map(|frame| [&mut frame.start, &mut frame.end]);
        let bounds = bounds.filter_map(|bound| match bound {
            FrameBound::Preceding(distance) | FrameBound::Following(distance) => Some(distance),
            _ => None,
        });
        let order = self.order.iter_mut().map(|item| &mut item.expression);
        self.partition.iter_mut().chain(order).chain(bounds)
    }
}

impl Over {
    /// The definition, if it is written here.
    pub fn definition(&self) -> Option<&WindowDefinition> {
        match self {
            Over::Named(_) => None,
            Over::Window(definition) => Some(definition),
        }
    }

    /// The definition, to be changed.
    pub fn definition_mut(&mut self) -> Option<&mut WindowDefinition> {
        match self {
            Over::Named(_) => None,
            Over::Window(definition) => Some(definition),
        }
    }
}
