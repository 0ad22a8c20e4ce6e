//! MySQL's functions. [`registry`] lists all of them. Each family has its own file, with a table of entries
//! and the functions that evaluate them.

mod check;
mod cipher;
mod compose;
mod compress;
mod digest;
mod extreme;
mod format_number;
mod geometry;
mod hash;
mod insert_id;
mod json;
mod math;
mod network;
mod page;
mod password;
mod radix;
mod random;
mod regexp;
mod registry;
mod round;
mod search;
mod session_call;
mod special;
mod temporal;
mod text;
mod time_to_live;
mod transaction_set;
mod trigonometry;
mod trim;
mod type_info;
mod user_variable;
mod uuid;
mod vector;
mod virtual_column;
mod xml;

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::append_text_in;
use junctor_model::value::ValueRef;

use crate::construct::in_one_encoding;
use crate::evaluate::{Context, text_to_signed, to_bits, to_double, to_integer};
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};
use crate::scratch::Scratch;

pub(crate) use json::REFUSED_BYTES;
pub use json::{JsonOtherwise, JsonPath, Sought, gives_truth, sought_elements};
pub use page::functions_page;
use registry::{Body, Reads, TypedCall, function};
pub use registry::{Family, Function, Setting, Volatility, all, find};
pub use temporal::is_unit;
pub(crate) use temporal::{MOMENT_DECIMAL, MOMENT_NUMBER};
pub(crate) use virtual_column::NAME as VIRTUAL_COLUMN;

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

impl Expression {
    /// A call of a function by its name in any letter case. The values of the function's settings follow the
    /// written arguments. Some functions, such as IF, become other nodes than a call.
    ///
    /// Errors: 1305 for an unknown function, 1582 for a wrong number of arguments, 1235 for a function that
    /// only a session can evaluate, 1267 for an illegal mix of collations.
    pub fn call(name: &str, arguments: Vec<Expression>) -> Result<Expression> {
        let Some(function) = find(name) else {
            if let Some(missing) = geometry::missing(name) {
                return Err(Error::not_supported(missing));
            }
            return Err(Error::new(ErrorCode::ObjectDoesNotExist, format!("FUNCTION {name} does not exist")));
        };
        function.check_count(arguments.len().saturating_sub(function.settings.len()))?;
        match &function.body {
            Body::Evaluated { resolve, .. } => {
                let arguments = match function.reads == Reads::Bytes {
                    true => arguments.into_iter().map(|argument| argument.in_collation(CollationId::BINARY)).collect(),
                    false => arguments,
                };
                let TypedCall { arguments, result } = resolve(function.name, arguments)?;
                let arguments = match function.reads == Reads::Collation {
                    true => arguments,
                    false => in_one_encoding(arguments, &result),
                };
                Ok(Expression { node: Node::Call(function, arguments.into()), result })
            }
            Body::Built(build) => build(arguments),
            Body::Session => Err(Error::not_supported(&format!("{} here", function.name))),
        }
    }
}

impl<'r> Call<'r> {
    fn scratch(&self) -> &'r Scratch {
        self.context.scratch
    }

    fn count(&self) -> usize {
        self.arguments.len()
    }

    /// The name in lower case, as messages have it.
    fn function_name(&self) -> String {
        match &self.expression.node {
            // MySQL has CAST to JSON as a function `cast_as_json`.
            Node::Call(function, _) => match function.name.strip_prefix("CAST ") {
                Some(target) => format!("cast_as_{}", target.to_ascii_lowercase()),
                None => function.name.to_ascii_lowercase(),
            },
            _ => String::new(),
        }
    }

    fn value(&self, position: usize) -> Result<ValueRef<'r>> {
        self.arguments[position].value(&self.context)
    }

    /// The argument's value; the number of a BIT or YEAR, which functions of numbers treat as integers.
    fn integer_or_value(&self, position: usize) -> Result<ValueRef<'r>> {
        let value = self.value(position)?;
        match self.arguments[position].result.kind {
            Kind::Bit | Kind::Year => Ok(value.as_number()),
            _ => Ok(value),
        }
    }

    /// The argument's value, rounded to the scale of the argument's type. Functions that convert a number to
    /// text use this.
    fn rounded(&self, position: usize) -> Result<ValueRef<'r>> {
        self.arguments[position].rounded_value(&self.context)
    }

    fn text(&self, position: usize) -> Result<Option<&'r [u8]>> {
        match self.rounded(position)? {
            ValueRef::Null => Ok(None),
            value => self.arguments[position].result.printed(value, self.context.scratch).map(Some),
        }
    }

    /// Appends the text of a value of this argument, as its type prints it.
    fn append(&self, position: usize, value: ValueRef<'_>, out: &mut Vec<u8>) {
        let result = &self.arguments[position].result;
        append_text_in(value, result.decimals, result.zero_fill, out);
    }

    /// The argument as an integer, clamped to 64 bits, or as [`text_to_signed`] reads a text.
    fn integer(&self, position: usize) -> Result<Option<i64>> {
        match self.value(position)? {
            ValueRef::Null => Ok(None),
            ValueRef::Bytes(text) => {
                let is_column = self.arguments[position].as_column().is_some();
                text_to_signed(text, is_column, self.context.scratch).map(Some)
            }
            value => {
                let integer = to_integer(value, self.context.scratch)?;
                Ok(Some(integer.clamp(i64::MIN.into(), i64::MAX.into()) as i64))
            }
        }
    }

    /// The 64 bits of the argument as the nearest integer; a negative number in two's complement. A double is
    /// a signed integer.
    fn bits(&self, position: usize) -> Result<Option<u64>> {
        match self.value(position)? {
            ValueRef::Null => Ok(None),
            ValueRef::Double(number) => Ok(Some(number.round_ties_even() as i64 as u64)),
            ValueRef::Float(number) => Ok(Some(number.round_ties_even() as i64 as u64)),
            value => to_bits(value, &self.context).map(Some),
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

/// Warning 1301: the result would be longer than `max_allowed_packet`.
#[cold]
pub(crate) fn warn_too_long(name: &str, scratch: &Scratch) -> Result<()> {
    scratch.warn(ErrorCode::ResultTooLong, || {
        let limit = crate::scratch::STRING_BYTES_MAX;
        format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated")
    })
}

pub(crate) fn wrong_count(name: &str) -> Box<Error> {
    let name = name.to_ascii_uppercase();
    let message = format!("Incorrect parameter count in the call to native function '{name}'");
    Error::new(ErrorCode::WrongParameterCount, message)
}

fn any_nullable(arguments: &[Expression]) -> bool {
    arguments.iter().any(|argument| argument.result.nullable)
}

/// The result is text that the function makes, of up to `length` characters.
fn generated_text(_: &'static str, arguments: Vec<Expression>, length: u32) -> Result<TypedCall> {
    let result = ResultType::string(GENERATED_TEXT_COLLATION, Coercibility::Numeric, length);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// Whether the value is a string.
fn is_text(argument: &Expression) -> bool {
    argument.result.kind == Kind::String
}

/// Whether the value is a binary string.
fn is_bytes(argument: &Expression) -> bool {
    argument.result.is_bytes()
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
