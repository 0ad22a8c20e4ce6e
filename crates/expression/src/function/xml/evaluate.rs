//! Finds the nodes of XPath expressions.

use std::cell::Cell;
use std::cmp::Ordering;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::append_text;
use junctor_model::value::ValueRef;

use super::document::{Document, NodeKind};
use super::path::{Axis, Name, Operator, Part, Start, Step, Test};
use crate::number::parse_double;

/// Maximum number of nodes that an evaluation visits.
const VISITS_MAX: u32 = 1 << 22;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// Nodes in the order of the text, each once.
    Nodes(Vec<u32>),
    Number(f64),
    Text(Vec<u8>),
    Truth(bool),
}

/// The node for which an expression is evaluated, its position among its kin, and their number.
#[derive(Clone, Copy)]
struct Place {
    node: u32,
    position: usize,
    last: usize,
}

/// The evaluation of an expression on a text.
pub(super) struct Evaluation<'d, 't> {
    document: &'d Document<'t>,
    collation: CollationId,
    visits: Cell<u32>,
}

impl<'d, 't> Evaluation<'d, 't> {
    pub fn new(document: &'d Document<'t>, collation: CollationId) -> Evaluation<'d, 't> {
        Evaluation { document, collation, visits: Cell::new(0) }
    }

    /// The value of an expression. Errors: 1105 for a comparison of two sets of nodes, 1235 for a search that
    /// takes too long.
    pub fn run(&self, step: &Step) -> Result<Found> {
        self.value(step, Place { node: 0, position: 1, last: 1 })
    }

    fn value(&self, step: &Step, place: Place) -> Result<Found> {
        self.visit()?;
        Ok(match step {
            Step::Number(number) => Found::Number(*number),
            Step::Text(text) => Found::Text(text.clone()),
            Step::Negate(operand) => Found::Number(-self.number(&self.value(operand, place)?)),
            Step::Call(name, arguments) => self.call(*name, arguments, place)?,
            Step::Binary(operator, operands) => self.binary(*operator, operands, place)?,
            Step::Path(start, parts) => {
                let start = match start {
                    Start::Root => Found::Nodes(vec![0]),
                    Start::Current => Found::Nodes(vec![place.node]),
                    Start::Of(step) => self.value(step, place)?,
                };
                let Found::Nodes(mut nodes) = start else { return Err(syntax_error()) };
                for part in parts {
                    nodes = self.part(&nodes, part)?;
                }
                Found::Nodes(nodes)
            }
        })
    }

    /// The nodes that a part of a path leads to.
    fn part(&self, from: &[u32], part: &Part) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for node in from {
            let mut of_node = Vec::new();
            self.axis(*node, part.axis, &mut |node| {
                self.visit()?;
                if self.meets(node, part.axis, &part.test) {
                    of_node.push(node);
                }
                Ok(())
            })?;
            for predicate in &part.predicates {
                let last = of_node.len();
                let mut kept = Vec::new();
                for (position, node) in of_node.into_iter().enumerate() {
                    let place = Place { node, position: position + 1, last };
                    let is_kept = match self.value(predicate, place)? {
                        Found::Number(number) => number == place.position as f64,
                        other => self.truth(&other),
                    };
                    if is_kept {
                        kept.push(node);
                    }
                }
                of_node = kept;
            }
            found.extend(of_node);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Calls `run` for the nodes of an axis, the nearest first.
    fn axis(&self, node: u32, axis: Axis, run: &mut dyn FnMut(u32) -> Result<()>) -> Result<()> {
        let document = self.document;
        match axis {
            Axis::Itself => run(node),
            Axis::Child | Axis::Attribute => document.children(node).try_for_each(run),
            Axis::Descendant => document.inside(node).try_for_each(run),
            Axis::DescendantOrSelf => {
                run(node)?;
                document.inside(node).try_for_each(run)
            }
            Axis::Parent if node == 0 => Ok(()),
            Axis::Parent => run(document.node(node).parent),
            Axis::Ancestor | Axis::AncestorOrSelf => {
                if axis == Axis::AncestorOrSelf {
                    run(node)?;
                }
                let mut above = node;
                while above != 0 {
                    above = document.node(above).parent;
                    run(above)?;
                }
                Ok(())
            }
        }
    }

    fn meets(&self, node: u32, axis: Axis, test: &Test) -> bool {
        let kind = self.document.node(node).kind;
        let wanted = if axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element };
        let in_attribute = || self.document.node(self.document.node(node).parent).kind == NodeKind::Attribute;
        match test {
            Test::Node if axis == Axis::Attribute => kind == NodeKind::Attribute,
            Test::Node => axis == Axis::Itself || kind != NodeKind::Attribute && !in_attribute(),
            Test::Text => kind == NodeKind::Text && !in_attribute(),
            Test::Any => kind == wanted,
            Test::Named(name) => kind == wanted && self.document.name(node) == name.as_slice(),
        }
    }

    fn binary(&self, operator: Operator, operands: &[Step; 2], place: Place) -> Result<Found> {
        let [left, right] = operands;
        if let Operator::Or | Operator::And = operator {
            let decides = operator == Operator::Or;
            let truth = self.truth(&self.value(left, place)?);
            return Ok(Found::Truth(if truth == decides { truth } else { self.truth(&self.value(right, place)?) }));
        }
        let (left, right) = (self.value(left, place)?, self.value(right, place)?);
        let numbers = || (self.number(&left), self.number(&right));
        Ok(match operator {
            Operator::Union => match (left, right) {
                (Found::Nodes(mut nodes), Found::Nodes(others)) => {
                    nodes.extend(others);
                    nodes.sort_unstable();
                    nodes.dedup();
                    Found::Nodes(nodes)
                }
                _ => return Err(syntax_error()),
            },
            Operator::Add => Found::Number(numbers().0 + numbers().1),
            Operator::Subtract => Found::Number(numbers().0 - numbers().1),
            Operator::Multiply => Found::Number(numbers().0 * numbers().1),
            Operator::Divide => Found::Number(numbers().0 / numbers().1),
            Operator::Remainder => Found::Number(numbers().0 % numbers().1),
            _ => Found::Truth(self.compare(operator, &left, &right)?),
        })
    }

    fn compare(&self, operator: Operator, left: &Found, right: &Found) -> Result<bool> {
        let holds = |order: Ordering| match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            _ => order.is_ge(),
        };
        let number_of = |text: &[u8]| parse_double(text).value;
        Ok(match (left, right) {
            (Found::Nodes(_), Found::Nodes(_)) => {
                let message = "XPATH error: comparison of two nodesets is not supported";
                return Err(Error::new(ErrorCode::UnknownError, message));
            }
            (Found::Nodes(_), Found::Truth(_)) | (Found::Truth(_), _) | (_, Found::Truth(_)) => {
                holds(self.truth(left).cmp(&self.truth(right)))
            }
            (Found::Nodes(nodes), Found::Number(number)) => {
                self.any_text(nodes, |text| number_of(text).partial_cmp(number).is_some_and(holds))
            }
            (Found::Number(number), Found::Nodes(nodes)) => {
                self.any_text(nodes, |text| number.partial_cmp(&number_of(text)).is_some_and(holds))
            }
            (Found::Nodes(nodes), Found::Text(other)) => {
                self.any_text(nodes, |text| holds(self.collation.compare(text, other)))
            }
            (Found::Text(other), Found::Nodes(nodes)) => {
                self.any_text(nodes, |text| holds(self.collation.compare(other, text)))
            }
            (Found::Text(left), Found::Text(right)) => holds(self.collation.compare(left, right)),
            _ => self.number(left).partial_cmp(&self.number(right)).is_some_and(holds),
        })
    }

    fn any_text(&self, nodes: &[u32], holds: impl FnMut(&[u8]) -> bool) -> bool {
        nodes.iter().flat_map(|node| self.document.texts(*node)).any(holds)
    }

    fn call(&self, name: Name, arguments: &[Step], place: Place) -> Result<Found> {
        let values = arguments.iter().map(|argument| self.value(argument, place)).collect::<Result<Vec<_>>>()?;
        let number = |at: usize| values.get(at).map_or(0.0, |value| self.number(value));
        let text = |at: usize| values.get(at).map_or(Vec::new(), |value| self.text(value));
        let nodes = || match values.first() {
            Some(Found::Nodes(nodes)) => Ok(nodes),
            _ => Err(syntax_error()),
        };
        Ok(match name {
            Name::True => Found::Truth(true),
            Name::False => Found::Truth(false),
            Name::Position => Found::Number(place.position as f64),
            Name::Last => Found::Number(place.last as f64),
            Name::Not => Found::Truth(!values.first().is_some_and(|value| self.truth(value))),
            Name::Boolean => Found::Truth(values.first().is_some_and(|value| self.truth(value))),
            Name::Number => Found::Number(number(0)),
            Name::Ceiling => Found::Number(number(0).ceil()),
            Name::Floor => Found::Number(number(0).floor()),
            Name::Round => Found::Number(number(0).round()),
            Name::Count => Found::Number(nodes()?.len() as f64),
            Name::Sum => {
                let texts = nodes()?.iter().flat_map(|node| self.document.texts(*node));
                Found::Number(texts.map(|text| parse_double(text).value).sum())
            }
            Name::StringLength => Found::Number(self.collation.character_set().character_count(&text(0)) as f64),
            Name::Contains => {
                let (whole, part) = (text(0), text(1));
                let found = part.is_empty() || whole.windows(part.len()).any(|window| window == part);
                Found::Truth(found)
            }
            Name::Concat => Found::Text(values.iter().flat_map(|value| self.text(value)).collect()),
            Name::Substring => {
                let count = if values.len() > 2 { number(2).round() } else { f64::INFINITY };
                let first = number(1).round();
                let text = text(0);
                let text = String::from_utf8_lossy(&text);
                let is_within = |(position, _): &(usize, char)| {
                    let position = (position + 1) as f64;
                    position >= first && position < first + count
                };
                let part: String = text.chars().enumerate().filter(is_within).map(|(_, letter)| letter).collect();
                Found::Text(part.into_bytes())
            }
        })
    }

    fn truth(&self, value: &Found) -> bool {
        match value {
            Found::Nodes(nodes) => !nodes.is_empty(),
            Found::Number(number) => *number != 0.0,
            Found::Text(text) => !text.is_empty(),
            Found::Truth(truth) => *truth,
        }
    }

    fn number(&self, value: &Found) -> f64 {
        match value {
            Found::Number(number) => *number,
            Found::Truth(truth) => f64::from(u8::from(*truth)),
            other => parse_double(&self.text(other)).value,
        }
    }

    fn text(&self, value: &Found) -> Vec<u8> {
        let mut out = Vec::new();
        match value {
            Found::Nodes(nodes) => self.document.append_texts(nodes, &mut out),
            Found::Number(number) => append_number(*number, &mut out),
            Found::Text(text) => out.extend_from_slice(text),
            Found::Truth(truth) => out.push(b'0' + u8::from(*truth)),
        }
        out
    }

    fn visit(&self) -> Result<()> {
        self.visits.set(self.visits.get() + 1);
        match self.visits.get() > VISITS_MAX {
            true => Err(Error::not_supported("so long a search in XML")),
            false => Ok(()),
        }
    }
}

/// Appends a number as text; one that is none as 0.
pub(super) fn append_number(number: f64, out: &mut Vec<u8>) {
    append_text(ValueRef::Double(if number.is_finite() { number } else { 0.0 }), out);
}

fn syntax_error() -> Box<Error> {
    Error::new(ErrorCode::UnknownError, "XPATH syntax error: ''")
}
