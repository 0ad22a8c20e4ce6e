//! The registry of functions: an entry for each function, found by name. A new function is an entry in the
//! table of its family.

use std::fmt;
use std::sync::LazyLock;

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::{
    Call, check, cipher, compose, compress, digest, extreme, format_number, geometry, hash, insert_id, json, math,
    network, password, radix, random, regexp, round, search, session_call, special, temporal, text, time_to_live,
    transaction_set, trigonometry, trim, type_info, user_variable, uuid, vector, virtual_column, wrong_count, xml,
};
use crate::program::Expression;
use crate::result_type::ResultType;

/// An entry of the registry.
pub struct Function {
    /// The name in upper case.
    pub name: &'static str,
    /// Minimum number of written arguments.
    pub arguments_min: usize,
    /// Maximum number of written arguments.
    pub arguments_max: usize,
    /// The system variables whose values the function needs. Their values follow the written arguments, so
    /// that they travel to where rows are evaluated.
    pub settings: &'static [Setting],
    /// When equal arguments may give another result.
    pub volatility: Volatility,
    /// The arguments, as bits, of which a hexadecimal literal is a number, not a string.
    pub numbers: u32,
    /// What the function reads of texts.
    pub(crate) reads: Reads,
    pub(crate) body: Body,
}

/// What a function reads of the texts among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The characters; the bytes only if its result is bytes.
    Characters,
    /// The bytes that a text has in its character set.
    Bytes,
    /// The collation, or the weights.
    Collation,
}

/// A value of the session that a function needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A system variable.
    Variable(&'static str),
    /// A function of the session.
    Session(&'static str),
}

/// The implementation of a function.
pub(crate) enum Body {
    /// A call node, evaluated for each row: its typing rule and its evaluation.
    Evaluated {
        /// Converts the arguments and determines the type of the result.
        resolve: Resolve,
        /// Computes the value for a row.
        evaluate: Evaluate,
    },
    /// Other nodes, such as CASE for IF.
    Built(fn(Vec<Expression>) -> Result<Expression>),
    /// The session computes the value once an execution, before it reads rows.
    Session,
}

/// A typing rule: the name of the function and its arguments give the typed call.
pub(crate) type Resolve = fn(&'static str, Vec<Expression>) -> Result<TypedCall>;
/// An evaluation.
pub(crate) type Evaluate = for<'r> fn(Call<'r>) -> Result<ValueRef<'r>>;

/// The result of typing a call: the converted arguments and the type of the result.
pub(crate) struct TypedCall {
    pub arguments: Vec<Expression>,
    pub result: ResultType,
}

/// When equal arguments may give another result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Never. Only such functions are allowed in generated columns, CHECK and functional indexes.
    Immutable,
    /// In another execution of the statement.
    Statement,
    /// At each evaluation; or the evaluation has a side effect.
    Row,
    /// At each evaluation, because it reads or changes the state of the session. Only the session evaluates
    /// such a call: once for each row, in the order of the rows.
    Stateful,
}

/// A family: its title and its entries.
pub struct Family {
    /// The title on the generated page.
    pub title: &'static str,
    /// The entries.
    pub functions: &'static [Function],
}

static FAMILIES: &[Family] = &[
    Family { title: "Control", functions: special::CONTROL },
    Family { title: "Text", functions: text::TABLE },
    Family { title: "Composing text", functions: compose::TABLE },
    Family { title: "Formatting numbers", functions: format_number::TABLE },
    Family { title: "Trimming and replacing", functions: trim::TABLE },
    Family { title: "Searching and comparing text", functions: search::TABLE },
    Family { title: "Regular expressions", functions: regexp::TABLE },
    Family { title: "Hexadecimal digits and checksums", functions: digest::TABLE },
    Family { title: "Bases and bits", functions: radix::TABLE },
    Family { title: "Hashes", functions: hash::TABLE },
    Family { title: "Encryption", functions: cipher::TABLE },
    Family { title: "Passwords", functions: password::TABLE },
    Family { title: "Compression", functions: compress::TABLE },
    Family { title: "Addresses", functions: network::TABLE },
    Family { title: "UUID", functions: uuid::TABLE },
    Family { title: "Sets of transactions", functions: transaction_set::TABLE },
    Family { title: "Vectors", functions: vector::TABLE },
    Family { title: "Types, sizes and files", functions: type_info::TABLE },
    Family { title: "Mathematics", functions: math::TABLE },
    Family { title: "Trigonometry", functions: trigonometry::TABLE },
    Family { title: "Random values", functions: random::TABLE },
    Family { title: "Rounding", functions: round::TABLE },
    Family { title: "Extremes", functions: extreme::TABLE },
    Family { title: "Insert ids", functions: insert_id::TABLE },
    Family { title: "Constraints", functions: check::TABLE },
    Family { title: "User variables", functions: user_variable::TABLE },
    Family { title: "Waits and locks", functions: session_call::TABLE },
    Family { title: "Time to live", functions: time_to_live::TABLE },
    Family { title: "Virtual columns", functions: virtual_column::TABLE },
    Family { title: "Fields of days and times", functions: temporal::FIELDS },
    Family { title: "Weeks", functions: temporal::WEEK },
    Family { title: "Intervals", functions: temporal::ARITHMETIC },
    Family { title: "Differences of days and times", functions: temporal::DIFFERENCE },
    Family { title: "Days and times from numbers", functions: temporal::BUILD },
    Family { title: "Formats of days and times", functions: temporal::FORMAT },
    Family { title: "Days and times from text", functions: temporal::READ_FORMAT },
    Family { title: "Time zones", functions: temporal::ZONE },
    Family { title: "JSON", functions: json::TABLE },
    Family { title: "XML", functions: xml::TABLE },
    Family { title: "Geometries from text, bytes and parts", functions: geometry::BUILD },
    Family { title: "Parts of geometries", functions: geometry::PART },
    Family { title: "Measures of geometries", functions: geometry::MEASURE },
    Family { title: "Geometries of others", functions: geometry::DERIVE },
    Family { title: "Points on lines", functions: geometry::LINE },
    Family { title: "Relations of geometries", functions: geometry::RELATION },
    Family { title: "GeoJSON", functions: geometry::JSON },
    Family { title: "Geohashes", functions: geometry::CODE },
    Family { title: "Session", functions: special::SESSION },
    Family { title: "Clock", functions: special::CLOCK },
];

/// The entries, sorted by name.
static SORTED: LazyLock<Vec<&'static Function>> = LazyLock::new(|| {
    let mut sorted: Vec<&'static Function> = FAMILIES.iter().flat_map(|family| family.functions).collect();
    sorted.sort_unstable_by_key(|function| function.name);
    sorted
});

/// Finds a function by its name in any letter case.
pub fn find(name: &str) -> Option<&'static Function> {
    let upper = name.to_ascii_uppercase();
    let position = SORTED.binary_search_by(|function| function.name.cmp(&upper)).ok()?;
    Some(SORTED[position])
}

/// All functions, by family.
pub fn all() -> &'static [Family] {
    FAMILIES
}

/// An immutable function that is evaluated for each row.
pub(super) const fn function(
    name: &'static str,
    arguments_min: usize,
    arguments_max: usize,
    resolve: Resolve,
    evaluate: Evaluate,
) -> Function {
    let body = Body::Evaluated { resolve, evaluate };
    declared((name, arguments_min, arguments_max), Volatility::Immutable, body)
}

/// A function that becomes other nodes.
pub(super) const fn built(
    name: &'static str,
    arguments_min: usize,
    arguments_max: usize,
    build: fn(Vec<Expression>) -> Result<Expression>,
) -> Function {
    let body = Body::Built(build);
    declared((name, arguments_min, arguments_max), Volatility::Immutable, body)
}

/// A function whose value the session computes before it reads rows.
pub(super) const fn session(name: &'static str, arguments_min: usize, arguments_max: usize) -> Function {
    declared((name, arguments_min, arguments_max), Volatility::Statement, Body::Session)
}

const fn declared(
    (name, arguments_min, arguments_max): (&'static str, usize, usize),
    volatility: Volatility,
    body: Body,
) -> Function {
    Function {
        name,
        arguments_min,
        arguments_max,
        settings: &[],
        volatility,
        numbers: 0,
        reads: Reads::Characters,
        body,
    }
}

impl Function {
    /// Checks the number of written arguments. Error: 1582.
    pub fn check_count(&self, count: usize) -> Result<()> {
        match (self.arguments_min..=self.arguments_max).contains(&count) {
            true => Ok(()),
            false => Err(wrong_count(self.name)),
        }
    }

    /// Whether a call with this number of arguments, with the settings, can be a node of a program.
    pub fn is_evaluated_with(&self, count: usize) -> bool {
        let written = count.checked_sub(self.settings.len());
        matches!(self.body, Body::Evaluated { .. })
            && written.is_some_and(|written| (self.arguments_min..=self.arguments_max).contains(&written))
    }

    /// Whether the session computes the value before it reads rows.
    pub fn is_of_session(&self) -> bool {
        matches!(self.body, Body::Session)
    }

    /// Whether an argument may be a day, so that a TIME there is on the day of the statement.
    pub(crate) fn reads_days(&self) -> bool {
        let of_times = ["HOUR", "MINUTE", "SECOND", "MICROSECOND", "TIME", "TIME_FORMAT", "TIME_TO_SEC"];
        let tables = [
            temporal::FIELDS,
            temporal::WEEK,
            temporal::ARITHMETIC,
            temporal::DIFFERENCE,
            temporal::BUILD,
            temporal::FORMAT,
            temporal::ZONE,
        ];
        !of_times.contains(&self.name) && tables.into_iter().flatten().any(|function| function.name == self.name)
    }

    /// Whether the value is a day or time, also where its type is a text.
    pub(crate) fn gives_moment(&self) -> bool {
        matches!(self.name, "DATE_ADD" | "DATE_SUB" | "ADDTIME" | "SUBTIME")
    }

    /// Whether equal arguments always give the same result.
    pub fn is_immutable(&self) -> bool {
        self.volatility == Volatility::Immutable
    }

    /// Whether each evaluation may give another result.
    pub fn is_volatile(&self) -> bool {
        matches!(self.volatility, Volatility::Row | Volatility::Stateful)
    }

    /// Whether a call reads or changes the state of the session.
    pub fn is_stateful(&self) -> bool {
        self.volatility == Volatility::Stateful
    }

    /// The function with another volatility.
    pub(super) const fn volatile(mut self, volatility: Volatility) -> Function {
        self.volatility = volatility;
        self
    }

    /// The function, with hexadecimal literals as numbers.
    pub(super) const fn of_numbers(mut self) -> Function {
        self.numbers = u32::MAX;
        self
    }

    /// The function, with hexadecimal literals as numbers in the arguments of these bits.
    pub(super) const fn numbers_at(mut self, arguments: u32) -> Function {
        self.numbers = arguments;
        self
    }

    /// The function, with texts as the bytes of their character set.
    pub(super) const fn of_bytes(mut self) -> Function {
        self.reads = Reads::Bytes;
        self
    }

    /// The function of the collation of its arguments.
    pub(super) const fn of_collation(mut self) -> Function {
        self.reads = Reads::Collation;
        self
    }

    /// The function with settings.
    pub(super) const fn with(mut self, settings: &'static [Setting]) -> Function {
        self.settings = settings;
        self
    }

    #[inline]
    pub(crate) fn evaluate<'r>(&self, call: Call<'r>) -> Result<ValueRef<'r>> {
        match &self.body {
            Body::Evaluated { evaluate, .. } => evaluate(call),
            _ => unreachable!("only evaluated functions are nodes of a program"),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_upper_case() {
        for pair in SORTED.windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
        }
        for function in SORTED.iter() {
            assert_eq!(function.name, function.name.to_ascii_uppercase());
            assert!(function.arguments_min <= function.arguments_max, "{}", function.name);
            assert_eq!(find(&function.name.to_ascii_lowercase()).map(|found| found.name), Some(function.name));
        }
        assert!(find("NO_SUCH_FUNCTION").is_none());
    }
}
