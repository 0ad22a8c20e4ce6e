//! MySQL's functions: one table for each family, one file for each table. The file `extreme` has GREATEST and
//! LEAST.

mod digest;
mod extreme;
mod insert_id;
mod math;
mod round;
mod search;
mod text;
mod trim;

use std::fmt;

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use crate::evaluate::{Context, to_double, to_integer};
use crate::program::{ArithmeticOperator, Expression, Node};
use crate::result_type::ResultType;
use crate::scratch::{Scratch, to_text};

/// An entry of the function table: name, number of arguments, typing rule and implementation.
pub struct Function {
    /// The name in upper case.
    pub name: &'static str,
    /// Minimum number of arguments.
    pub arguments_min: usize,
    /// Maximum number of arguments.
    pub arguments_max: usize,
    /// Whether equal arguments always give the same result.
    pub is_deterministic: bool,
    pub(crate) resolve: fn(&'static str, Vec<Expression>) -> Result<TypedCall>,
    pub(crate) evaluate: for<'r> fn(Call<'r>) -> Result<ValueRef<'r>>,
}

/// The result of typing a call: the converted arguments and the type of the result.
pub(crate) struct TypedCall {
    pub arguments: Vec<Expression>,
    pub result: ResultType,
}

/// One evaluation of a function call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'r> {
    pub arguments: &'r [Expression],
    pub result: &'r ResultType,
    pub expression: &'r Expression,
    pub context: Context<'r>,
}

/// No upper limit on the number of arguments.
const ANY: usize = usize::MAX;

/// Finds a function by its name in any letter case.
pub fn find(name: &str) -> Option<&'static Function> {
    let families = [
        text::TABLE,
        trim::TABLE,
        search::TABLE,
        digest::TABLE,
        math::TABLE,
        round::TABLE,
        extreme::TABLE,
        insert_id::TABLE,
    ];
    families.into_iter().flatten().find(|function| function.name.eq_ignore_ascii_case(name))
}

impl Expression {
    /// A call of a function by its name in any letter case. IF, IFNULL, NULLIF, COALESCE and MOD become other
    /// kinds of nodes.
    ///
    /// Errors: 1305 for an unknown function, 1582 for a wrong number of arguments, 1267 for an illegal mix of
    /// collations.
    pub fn call(name: &str, mut arguments: Vec<Expression>) -> Result<Expression> {
        let special = ["IF", "IFNULL", "NULLIF", "COALESCE", "MOD"]
            .into_iter()
            .find(|special| special.eq_ignore_ascii_case(name));
        match (special, arguments.len()) {
            (Some("COALESCE"), 1..) | (Some("IFNULL"), 2) => return Expression::coalesce(arguments),
            (Some("IF"), 3) => {
                let (otherwise, then) = (arguments.pop(), arguments.pop());
                if let (Some(condition), Some(then), Some(otherwise)) = (arguments.pop(), then, otherwise) {
                    return Expression::choose(condition, then, otherwise);
                }
            }
            (Some("NULLIF" | "MOD"), 2) => {
                let right = arguments.pop();
                if let (Some(left), Some(right)) = (arguments.pop(), right) {
                    return match special {
                        Some("MOD") => Ok(Expression::arithmetic(ArithmeticOperator::Remainder, left, right)),
                        _ => Expression::null_if(left, right),
                    };
                }
            }
            (Some(_), _) => return Err(wrong_count(name)),
            (None, _) => {}
        }
        let Some(function) = find(name) else {
            return Err(Error::new(ErrorCode::ObjectDoesNotExist, format!("FUNCTION {name} does not exist")));
        };
        if arguments.len() < function.arguments_min || arguments.len() > function.arguments_max {
            return Err(wrong_count(name));
        }
        let TypedCall { arguments, result } = (function.resolve)(function.name, arguments)?;
        Ok(Expression { node: Node::Call(function, arguments.into()), result })
    }
}

impl<'r> Call<'r> {
    fn scratch(&self) -> &'r Scratch {
        self.context.scratch
    }

    fn count(&self) -> usize {
        self.arguments.len()
    }

    fn value(&self, position: usize) -> Result<ValueRef<'r>> {
        self.arguments[position].value(&self.context)
    }

    /// The argument's value, rounded to the scale of the argument's type. Functions that convert a number to
    /// text use this.
    fn rounded(&self, position: usize) -> Result<ValueRef<'r>> {
        self.arguments[position].rounded_value(&self.context)
    }

    fn text(&self, position: usize) -> Result<Option<&'r [u8]>> {
        match self.rounded(position)? {
            ValueRef::Null => Ok(None),
            value => to_text(value, self.context.scratch).map(Some),
        }
    }

    /// The argument as an integer, clamped to 64 bits.
    fn integer(&self, position: usize) -> Result<Option<i64>> {
        match self.value(position)? {
            ValueRef::Null => Ok(None),
            value => {
                let integer = to_integer(value, self.context.scratch)?;
                Ok(Some(integer.clamp(i64::MIN.into(), i64::MAX.into()) as i64))
            }
        }
    }

    fn double(&self, position: usize) -> Result<Option<f64>> {
        match self.value(position)? {
            ValueRef::Null => Ok(None),
            value => to_double(value, self.context.scratch).map(Some),
        }
    }

    /// The character set of an argument, for counting its characters. Numbers print as ASCII.
    fn character_set(&self, position: usize) -> CharacterSet {
        self.arguments[position].result.collation.character_set()
    }

    fn build(&self, build: impl FnOnce(&mut Vec<u8>)) -> Result<ValueRef<'r>> {
        self.context.scratch.build_text(build).map(ValueRef::Bytes)
    }

    /// Builds a string result. `build` appends the text to the given buffer, and returns whether the text is
    /// complete, the result is NULL, or the text is too long. `name` is the function's name, for warning
    /// 1301.
    fn build_bounded(
        &self,
        name: &str,
        build: impl FnOnce(&mut Vec<u8>) -> Result<BuildOutcome>,
    ) -> Result<ValueRef<'r>> {
        let mut outcome = BuildOutcome::Null;
        let built = self.scratch().build(|buffer| {
            outcome = build(buffer)?;
            Ok(outcome == BuildOutcome::Text)
        })?;
        match outcome {
            BuildOutcome::TooLong => self.too_long(name),
            BuildOutcome::Text | BuildOutcome::Null => Ok(built.map_or(ValueRef::Null, ValueRef::Bytes)),
        }
    }

    /// NULL with warning 1301, for a result longer than `max_allowed_packet`.
    fn too_long(&self, name: &str) -> Result<ValueRef<'r>> {
        warn_too_long(name, self.context.scratch)?;
        Ok(ValueRef::Null)
    }
}

/// The outcome of building a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuildOutcome {
    /// The text is complete.
    Text,
    /// The result is NULL.
    Null,
    /// The text exceeds [`STRING_BYTES_MAX`](crate::scratch::STRING_BYTES_MAX): NULL with warning 1301.
    TooLong,
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

/// Warning 1301: the result would be longer than `max_allowed_packet`.
#[cold]
pub(crate) fn warn_too_long(name: &str, scratch: &Scratch) -> Result<()> {
    scratch.warn(ErrorCode::ResultTooLong, || {
        let limit = crate::scratch::STRING_BYTES_MAX;
        format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated")
    })
}

fn wrong_count(name: &str) -> Box<Error> {
    let name = name.to_ascii_uppercase();
    let message = format!("Incorrect parameter count in the call to native function '{name}'");
    Error::new(ErrorCode::WrongParameterCount, message)
}

fn any_nullable(arguments: &[Expression]) -> bool {
    arguments.iter().any(|argument| argument.result.nullable)
}

/// The result is an integer of up to `LENGTH` characters.
fn resolve_integer<const LENGTH: u32>(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::integer(false, LENGTH).with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

/// The result is a string with the collation and length of the first argument.
fn resolve_first(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = crate::construct::aggregate_collations("", &arguments[..1])?;
    let length = arguments[0].result.length;
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    let result = result.with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

/// Resolves a function that joins its arguments, such as CONCAT. The result is a string with the common
/// collation of all string arguments; its length is the sum of all lengths.
fn resolve_together(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = crate::construct::aggregate_collations(&name.to_ascii_lowercase(), &arguments)?;
    let length = arguments.iter().fold(0u32, |length, argument| length.saturating_add(argument.result.length));
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    let result = result.with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

/// The result is a double that may be NULL.
fn resolve_double(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::double().with_nullable(true) })
}

/// The collation of text that a function generates. The collation of any string argument prevails over it.
const GENERATED_TEXT_COLLATION: CollationId = CollationId::DEFAULT;
