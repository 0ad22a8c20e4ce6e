//! Evaluates functions and variables that are constant within one execution: those of the session, the clock
//! and the server.

use std::collections::BTreeSet;

use junctor_expression::result_type::DECIMAL_PRECISION_MAX;
use junctor_expression::{Coercibility, ResultType, function};
use junctor_model::access::AccountName;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::temporal::Zone;
use junctor_model::value::Value;

use super::check::text_of;
use super::clock::moment;
use super::global::GlobalVariables;
use super::read::read_variable;
use super::session::SessionVariables;
use crate::parse::expression::{FunctionCall, Literal};
use crate::parse::{Expression, digest_hash, digest_text, parse_in};

/// Length in characters that is announced to clients for the text in a user variable; the same as for a text
/// parameter.
const USER_VARIABLE_CHARACTERS: u32 = 65_535;
/// Maximum length of `user@host` in characters: 32 for the user, 255 for the host.
const ACCOUNT_CHARACTERS: u32 = 288;
/// Default of `max_digest_length`.
const DIGEST_BYTES_DEFAULT: usize = 1024;
/// Characters of a digest: a hash of 32 bytes in hexadecimal digits.
const DIGEST_CHARACTERS: u32 = 64;

/// A named value that a client sends with a statement; `None` is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAttribute {
    /// The name.
    pub name: Box<str>,
    /// The value as text.
    pub value: Option<Box<str>>,
}

/// The properties of a session that functions and variables can read.
#[derive(Clone, Copy, Debug)]
pub struct SessionContext<'a> {
    /// Variables of the session.
    pub variables: &'a SessionVariables,
    /// Global variables.
    pub globals: &'a GlobalVariables,
    /// Connection number, as CONNECTION_ID() returns it.
    pub connection: u32,
    /// User name of the login.
    pub user: &'a str,
    /// Host name or address of the client.
    pub host: &'a str,
    /// The account of the login.
    pub account: &'a AccountName,
    /// The active roles.
    pub roles: &'a BTreeSet<AccountName>,
    /// Current database; `None` if none is selected.
    pub database: Option<&'a str>,
    /// Collation of the current database; the server's if no database is selected.
    pub database_collation: CollationId,
    /// Result of LAST_INSERT_ID().
    pub last_insert_id: u64,
    /// The variable `insert_id`.
    pub insert_id: u64,
    /// Result of ROW_COUNT(); -1 after a statement that returns rows.
    pub row_count: i64,
    /// Result of FOUND_ROWS().
    pub found_rows: u64,
    /// Number of warnings, notes and errors of the last statement.
    pub warning_count: u16,
    /// Number of errors of the last statement.
    pub error_count: u16,
    /// A random number that each execution draws.
    pub seed: u64,
    /// Start of the statement, in microseconds since 1970-01-01 UTC. All clock functions in a statement
    /// return times derived from this.
    pub wall_clock_us: u64,
    /// The query attributes of the command.
    pub attributes: &'a [QueryAttribute],
}

impl SessionContext<'_> {
    /// The time of NOW(), in microseconds since 1970-01-01 UTC: the variable `timestamp` if the session has
    /// set it.
    pub fn now_us(&self) -> u64 {
        self.variables.timestamp_us.unwrap_or(self.wall_clock_us)
    }
}

/// The value of an expression that depends only on the session, the clock or the server; `None` for every
/// other expression.
///
/// # Errors
/// 1193 and 1238 for system variables, 1582 for a wrong number of arguments, 1210 for wrong arguments, 1235
/// for functions of MySQL that are not supported.
pub fn evaluate_session_expression(expression: &Expression, facts: &SessionContext<'_>) -> Result<Option<Value>> {
    match expression {
        Expression::SystemVariable(variable) => read_variable(variable, facts).map(Some),
        Expression::UserVariable(name) => Ok(Some(facts.variables.user_variable(name))),
        Expression::Function(call) if call.database.is_none() => fold_call(call, facts),
        _ => Ok(None),
    }
}

/// As [`evaluate_session_expression`], with the type of the value.
///
/// # Errors
/// The errors of [`evaluate_session_expression`].
pub fn evaluate_typed(expression: &Expression, facts: &SessionContext<'_>) -> Result<Option<(Value, ResultType)>> {
    let connection = facts.variables.collation_connection;
    if let Expression::UserVariable(name) = expression {
        let found = facts.variables.user_value(name);
        let value = found.map_or(Value::Null, |found| found.value.clone());
        let result = type_in(expression, &value, found.map_or(connection, |found| found.collation));
        return Ok(Some((value, result)));
    }
    let value = evaluate_session_expression(expression, facts)?;
    Ok(value.map(|value| {
        let result = type_in(expression, &value, connection);
        (value, result)
    }))
}

/// The type of a session expression with this value. The type depends on the expression and the kind of the
/// value, not on the value's digits or length, so that executions with other values have the same type. A
/// decimal keeps its number of digits after the decimal point. A text has the collation of its user variable,
/// or that of the connection.
pub fn session_value_type(expression: &Expression, value: &Value, variables: &SessionVariables) -> ResultType {
    let user_value = match expression {
        Expression::UserVariable(name) => variables.user_value(name),
        _ => None,
    };
    type_in(expression, value, user_value.map_or(variables.collation_connection, |found| found.collation))
}

/// As [`session_value_type`], for a text in this collation.
fn type_in(expression: &Expression, value: &Value, collation: CollationId) -> ResultType {
    if is_call(expression, &["LOAD_FILE"]) {
        // The type does not depend on the content, which is not known before the file is read.
        return ResultType::string(CollationId::BINARY, Coercibility::Coercible, FILE_LENGTH).with_nullable(true);
    }
    let is_user_variable = matches!(expression, Expression::UserVariable(_));
    let result = match value {
        Value::Null => return ResultType::null(),
        Value::Int(_) | Value::UInt(_) => {
            ResultType::integer(matches!(value, Value::UInt(_)), integer_length(expression))
        }
        Value::Double(_) => ResultType::double(),
        Value::Decimal(value) => ResultType::decimal(DECIMAL_PRECISION_MAX, value.scale()),
        Value::Float(_) | Value::Temporal(_) | Value::Bit(_) | Value::Json(_) => {
            ResultType::of_value(value.as_ref(), collation)
        }
        Value::Bytes(_) | Value::Choice(_) => {
            let of_value = ResultType::of_value(value.as_ref(), collation);
            let result = ResultType { length: text_length(expression).unwrap_or(of_value.length), ..of_value };
            match is_call(expression, SYSTEM_CONSTANTS) || matches!(expression, Expression::SystemVariable(_)) {
                true => ResultType {
                    collation: CollationId::UTF8MB4_GENERAL_CI,
                    coercibility: Coercibility::SystemConstant,
                    ..result
                },
                // In an expression, a user variable counts as much as a column.
                false if is_user_variable => ResultType { coercibility: Coercibility::Implicit, ..result },
                false => result,
            }
        }
    };
    let is_nullable_call = || {
        is_call(expression, &["DATABASE", "SCHEMA", "BENCHMARK", "MYSQL_QUERY_ATTRIBUTE_STRING"])
            || is_call(expression, &["STATEMENT_DIGEST", "STATEMENT_DIGEST_TEXT"])
    };
    result.with_nullable(is_user_variable || is_nullable_call())
}

/// Maximum number of bytes in the type of LOAD_FILE, as for the function of a server without files.
const FILE_LENGTH: u32 = 16 << 20;

/// The functions whose text is in the character set of the system.
const SYSTEM_CONSTANTS: &[&str] = &[
    "DATABASE",
    "SCHEMA",
    "USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "CURRENT_USER",
    "CURRENT_ROLE",
    "VERSION",
    "ICU_VERSION",
];

/// Length of an integer, in characters, as MySQL announces it.
fn integer_length(expression: &Expression) -> u32 {
    if is_call(expression, &["GET_LOCK", "RELEASE_LOCK", "IS_FREE_LOCK", "SLEEP", "BENCHMARK"]) {
        1
    } else if is_call(expression, &["CONNECTION_ID", "IS_USED_LOCK"]) {
        10
    } else {
        21
    }
}

/// Maximum length of a text in characters; `None` if the type has the length of the value.
fn text_length(expression: &Expression) -> Option<u32> {
    match expression {
        Expression::UserVariable(_) => Some(USER_VARIABLE_CHARACTERS),
        _ if is_call(expression, &["MYSQL_QUERY_ATTRIBUTE_STRING"]) => Some(USER_VARIABLE_CHARACTERS),
        _ if is_call(expression, &["STATEMENT_DIGEST"]) => Some(DIGEST_CHARACTERS),
        _ if is_call(expression, &["STATEMENT_DIGEST_TEXT"]) => Some(USER_VARIABLE_CHARACTERS),
        _ if is_call(expression, &["DATABASE", "SCHEMA"]) => Some(IDENTIFIER_CHARACTERS_MAX as u32),
        _ if is_call(expression, &["USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_USER"]) => Some(ACCOUNT_CHARACTERS),
        _ => None,
    }
}

fn is_call(expression: &Expression, names: &[&str]) -> bool {
    matches!(expression, Expression::Function(call) if names.iter().any(|name| name.eq_ignore_ascii_case(&call.name)))
}

fn fold_call(call: &FunctionCall, facts: &SessionContext<'_>) -> Result<Option<Value>> {
    let name = call.name.to_ascii_uppercase();
    let text = |text: String| Some(Value::Bytes(text.into_bytes()));
    let value = match name.as_str() {
        "VERSION" => text(text_of(&facts.globals.value_named("version"))),
        "DATABASE" | "SCHEMA" => Some(facts.database.map_or(Value::Null, |name| Value::Bytes(name.into()))),
        "USER" | "SESSION_USER" | "SYSTEM_USER" => text(format!("{}@{}", facts.user, facts.host)),
        "CURRENT_USER" => text(format!("{}@{}", facts.account.user, facts.account.host)),
        "CURRENT_ROLE" => text(current_role(facts.roles)),
        "CONNECTION_ID" => Some(Value::UInt(u64::from(facts.connection))),
        "LAST_INSERT_ID" if call.arguments.is_empty() => Some(Value::UInt(facts.last_insert_id)),
        "PS_CURRENT_THREAD_ID" => Some(Value::UInt(u64::from(facts.connection))),
        "PS_THREAD_ID" => Some(thread_of(call, facts)?),
        "STATEMENT_DIGEST_TEXT" => Some(digest(call, facts)?.map_or(Value::Null, |text| Value::Bytes(text.into()))),
        "STATEMENT_DIGEST" => {
            Some(digest(call, facts)?.map_or(Value::Null, |text| Value::Bytes(digest_hash(&text).into())))
        }
        "MYSQL_QUERY_ATTRIBUTE_STRING" => Some(query_attribute(call, facts)?),
        "ICU_VERSION" => text("73.1".to_owned()),
        "RANDOM SEED" => Some(Value::UInt(facts.seed)),
        "CLOCK MICROSECONDS" => Some(Value::UInt(facts.wall_clock_us)),
        "ROW_COUNT" => Some(Value::Int(facts.row_count)),
        "FOUND_ROWS" => Some(Value::UInt(facts.found_rows)),
        "UNIX_TIMESTAMP" if call.arguments.is_empty() => Some(Value::UInt(facts.now_us() / 1_000_000)),
        // With an argument it is an ordinary function, evaluated for each row.
        "LAST_INSERT_ID" => return Ok(None),
        // These functions take time or change locks, so they are not constants of the execution.
        "SLEEP" | "BENCHMARK" | "GET_LOCK" | "RELEASE_LOCK" | "RELEASE_ALL_LOCKS" | "IS_FREE_LOCK" | "IS_USED_LOCK" => {
            return Err(Error::not_supported(&name));
        }
        _ => return fold_clock(&name, call, facts),
    };
    if let Some(function) = function::find(&name) {
        function.check_count(call.arguments.len())?;
    }
    Ok(value)
}

/// The value of the query attribute with the name; NULL if the command has none. Error: 1235 for a name that
/// is no literal.
fn query_attribute(call: &FunctionCall, facts: &SessionContext<'_>) -> Result<Value> {
    let name = match call.arguments.as_slice() {
        [Expression::Literal(Literal::String(name))] => &name.bytes,
        [_] => return Err(Error::not_supported("a name of a query attribute that is no literal")),
        _ => return Err(wrong_count("mysql_query_attribute_string")),
    };
    let found = facts.attributes.iter().find(|attribute| attribute.name.as_bytes() == name.as_slice());
    let value = found.and_then(|attribute| attribute.value.as_deref());
    Ok(value.map_or(Value::Null, |value| Value::Bytes(value.into())))
}

/// The normalised text of the statement in the argument; `None` for NULL. Errors: 3676 for a text that is no
/// statement, 1235 for an argument that is neither a literal nor a user variable.
fn digest(call: &FunctionCall, facts: &SessionContext<'_>) -> Result<Option<String>> {
    let text = match call.arguments.as_slice() {
        [Expression::Literal(Literal::Null)] => return Ok(None),
        [Expression::Literal(Literal::String(text))] => text.bytes.clone(),
        [Expression::UserVariable(name)] => match facts.variables.user_variable(name) {
            Value::Null => return Ok(None),
            value => text_of(&value).into_bytes(),
        },
        [_] => return Err(Error::not_supported("a digest of neither a literal nor a user variable")),
        _ => return Err(wrong_count(&call.name.to_ascii_uppercase())),
    };
    let dialect = facts.variables.dialect();
    if let Err(error) = parse_in(&text, dialect) {
        let message = format!("Could not parse argument to digest function: \"{error}\".");
        return Err(Error::new(ErrorCode::DigestOfNoStatement, message));
    }
    let bytes_max = match facts.globals.value_named("max_digest_length") {
        Value::UInt(bytes) => bytes as usize,
        _ => DIGEST_BYTES_DEFAULT,
    };
    Ok(Some(digest_text(&text, dialect, bytes_max)))
}

/// The thread of a connection has its number. Error: 1235 for another connection than the session's.
fn thread_of(call: &FunctionCall, facts: &SessionContext<'_>) -> Result<Value> {
    let own = Value::UInt(u64::from(facts.connection));
    match call.arguments.as_slice() {
        [Expression::Literal(Literal::Null)] => Ok(Value::Null),
        [Expression::Literal(Literal::Integer(number))] if *number == i128::from(facts.connection) => Ok(own),
        [Expression::Function(inner)] if inner.name.eq_ignore_ascii_case("CONNECTION_ID") => Ok(own),
        [_] => Err(Error::not_supported("PS_THREAD_ID of another connection")),
        _ => Err(wrong_count("PS_THREAD_ID")),
    }
}

/// The active roles as CURRENT_ROLE() returns them.
fn current_role(roles: &BTreeSet<AccountName>) -> String {
    let names: Vec<String> = roles.iter().map(|role| format!("`{}`@`{}`", role.user, role.host)).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join(",") }
}

fn fold_clock(name: &str, call: &FunctionCall, facts: &SessionContext<'_>) -> Result<Option<Value>> {
    let is_utc = name.starts_with("UTC_");
    let zone = if is_utc { Zone::UTC } else { facts.variables.value_rules().zone() };
    // SET timestamp does not concern SYSDATE().
    let now_us = if name == "SYSDATE" { facts.wall_clock_us } else { facts.now_us() };
    let at = |digits: u8| moment(now_us, zone, digits);
    let value = match name {
        "CURDATE" | "CURRENT_DATE" | "UTC_DATE" if call.arguments.is_empty() => at(0).to_date(),
        "CURDATE" | "CURRENT_DATE" | "UTC_DATE" => return Err(wrong_count(name)),
        "NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "SYSDATE" | "UTC_TIMESTAMP" => {
            at(fraction_digits(name, call)?)
        }
        "CURTIME" | "CURRENT_TIME" | "UTC_TIME" => at(fraction_digits(name, call)?).to_time(),
        _ => return Ok(None),
    };
    Ok(Some(Value::Temporal(value)))
}

fn fraction_digits(name: &str, call: &FunctionCall) -> Result<u8> {
    match call.arguments.as_slice() {
        [] => Ok(0),
        [Expression::Literal(Literal::Integer(digits @ 0..=6))] => Ok(*digits as u8),
        [Expression::Literal(Literal::Integer(digits @ 7..))] => {
            let name = match name {
                "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" => "now".to_owned(),
                "CURRENT_TIME" => "curtime".to_owned(),
                name => name.to_ascii_lowercase(),
            };
            let text = format!("Too-big precision {digits} specified for '{name}'. Maximum is 6.");
            Err(Error::new(ErrorCode::TooBigPrecision, text))
        }
        // The grammar of MySQL has only a number here.
        [_] => Err(Error::new(ErrorCode::SyntaxError, format!("You have an error in your SQL syntax near '{name}('"))),
        _ => Err(wrong_count(name)),
    }
}

fn wrong_count(name: &str) -> Box<Error> {
    let text = format!("Incorrect parameter count in the call to native function '{name}'");
    Error::new(ErrorCode::WrongParameterCount, text)
}
