//! JSON functions that read documents and make new ones.

mod elements;
mod path;
mod pretty;
mod schema;
mod search;
mod value;

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::{self, Json, append_array, append_object, append_value, compare};
use junctor_model::value::ValueRef;

use super::{ANY, Call, Function, TypedCall, function};
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};
pub use elements::{Sought, sought_elements};
pub use path::Path as JsonPath;
use path::{Leg, Path};
use schema::{Misfit, Schema};
pub use value::Otherwise as JsonOtherwise;

pub(super) const TABLE: &[Function] = &[
    function("JSON_EXTRACT", 2, ANY, resolve_document, extract),
    function("JSON_UNQUOTE", 1, 1, resolve_text, unquote),
    function("JSON_QUOTE", 1, 1, resolve_text, quote),
    function("JSON_VALID", 1, 1, resolve_integer, valid),
    function("JSON_TYPE", 1, 1, resolve_text, type_name),
    function("JSON_LENGTH", 1, 2, resolve_integer, length),
    function("JSON_DEPTH", 1, 1, resolve_integer, depth),
    function("JSON_KEYS", 1, 2, resolve_document, keys),
    function("JSON_ARRAY", 0, ANY, resolve_members, array),
    function("JSON_OBJECT", 0, ANY, resolve_object, object),
    function("JSON_CONTAINS", 2, 3, resolve_integer, contains),
    function("JSON_CONTAINS_PATH", 3, ANY, resolve_integer, contains_path),
    function("JSON_OVERLAPS", 2, 2, resolve_integer, overlaps),
    function("MEMBER OF", 2, 2, resolve_member_of, member_of),
    function("JSON_SET", 3, ANY, resolve_changes, |call| changed(call, Change::Set)),
    function("JSON_INSERT", 3, ANY, resolve_changes, |call| changed(call, Change::Insert)),
    function("JSON_REPLACE", 3, ANY, resolve_changes, |call| changed(call, Change::Replace)),
    function("JSON_ARRAY_APPEND", 3, ANY, resolve_changes, |call| changed(call, Change::Append)),
    function("JSON_REMOVE", 2, ANY, resolve_document, remove),
    function("JSON_MERGE_PATCH", 2, ANY, resolve_document, merge_patch),
    function("JSON_MERGE_PRESERVE", 2, ANY, resolve_document, merge_preserve),
    function("JSON_MERGE", 2, ANY, resolve_document, merge_preserve),
    function("JSON_STORAGE_SIZE", 1, 1, resolve_integer, storage_size),
    function("JSON_STORAGE_FREE", 1, 1, resolve_integer, storage_free),
    function("JSON_ARRAY_INSERT", 3, ANY, resolve_changes, array_insert),
    function("JSON_PRETTY", 1, 1, resolve_text, pretty_text),
    function("JSON_SEARCH", 3, ANY, resolve_document, search::search),
    function("JSON_SCHEMA_VALID", 2, 2, resolve_truth, schema_valid),
    function("JSON_SCHEMA_VALIDATION_REPORT", 2, 2, resolve_document, schema_report),
    // The arguments behind the path are those of the clauses. Its texts have the collation of RETURNING.
    function("JSON_VALUE", 2, 7, value::resolve, value::value).of_collation(),
    function("CAST JSON", 1, 1, resolve_members, cast),
    function("JSON TRUTH", 1, 1, resolve_document, truth),
    function(REFUSED_BYTES, 1, 1, resolve_document, refused_bytes),
    // The second argument is NULL of the type of the elements, the third one the name of an index.
    function("CAST ARRAY", 3, 3, elements::resolve, elements::elements).of_collation(),
    function("ELEMENT OF ARRAY", 2, 2, elements::resolve, elements::element).of_collation(),
    function("HAS ELEMENT", 2, 2, resolve_truth, elements::has),
];

/// The function that refuses a binary string in place of a document.
pub(crate) const REFUSED_BYTES: &str = "JSON BYTES";
/// Characters of a document as text, as clients see it.
const TEXT_CHARACTERS: u32 = u32::MAX / 4;
/// MySQL's code of VARCHAR, which documents have for binary strings.
const BINARY_STRING: u8 = 15;

fn resolve_document(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::json().with_nullable(true) })
}

/// All arguments become members of a document.
fn resolve_members(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    resolve_document(name, arguments.into_iter().map(Expression::as_member).collect())
}

/// The first argument is compared with the members of the second one.
fn resolve_member_of(name: &'static str, mut arguments: Vec<Expression>) -> Result<TypedCall> {
    let array = arguments.pop();
    resolve_integer(name, arguments.into_iter().map(Expression::as_member).chain(array).collect())
}

/// A truth value as the document `true` or `false`.
fn truth(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.arguments[0].truth(&call.context)? {
        Some(truth) => call.json(|buffer| Json::Boolean(truth).append(buffer)),
        None => Ok(ValueRef::Null),
    }
}

/// Error 3144 for a value that is not NULL.
fn refused_bytes(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.rounded(0)? {
        ValueRef::Null => Ok(ValueRef::Null),
        _ => Err(Error::binary_document()),
    }
}

/// Whether the result of the function with this name is a truth value.
pub fn gives_truth(name: &str) -> bool {
    TRUTHS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The functions whose result is a truth value, besides the operators.
const TRUTHS: &[&str] = &[
    "ISNULL",
    "IS_IPV4",
    "IS_IPV4_COMPAT",
    "IS_IPV4_MAPPED",
    "IS_IPV6",
    "IS_UUID",
    "JSON_CONTAINS",
    "JSON_CONTAINS_PATH",
    "JSON_OVERLAPS",
    "JSON_SCHEMA_VALID",
    "JSON_VALID",
    "MEMBER OF",
    "REGEXP_LIKE",
];

impl Expression {
    /// The value for a JSON column: a binary string becomes an error when it is evaluated, because its
    /// characters are not known. NULL stays.
    pub fn for_json_column(self) -> Expression {
        let is_binary = self.result.kind == Kind::String && self.result.collation == CollationId::BINARY;
        match super::find(REFUSED_BYTES).filter(|_| is_binary) {
            Some(function) => {
                let result = ResultType::json().with_nullable(true);
                Expression { node: Node::Call(function, [self].into()), result }
            }
            None => self,
        }
    }

    /// The expression as a member of a document: a truth value as `true` or `false`, not as a number. Folding
    /// turns a condition into a number, so the type must say what it is.
    pub fn as_member(self) -> Expression {
        let is_truth = match &self.node {
            Node::Call(function, _) => gives_truth(function.name),
            _ => self.is_condition(),
        };
        match super::find("JSON TRUTH").filter(|_| is_truth) {
            Some(function) => {
                let result = ResultType::json().with_nullable(self.result.nullable);
                Expression { node: Node::Call(function, [self].into()), result }
            }
            None => self,
        }
    }
}

fn resolve_integer(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 21).with_nullable(true) })
}

fn resolve_text(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    resolve_text_of(TEXT_CHARACTERS, arguments)
}

/// Texts of documents differ by letter case, unlike others.
fn resolve_text_of(characters: u32, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::UTF8MB4_BIN, Coercibility::Coercible, characters);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn resolve_truth(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::boolean().with_nullable(true) })
}

fn resolve_object(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    match arguments.len().is_multiple_of(2) {
        true => resolve_document(name, values_as_members(arguments, 1)),
        false => Err(super::wrong_count(name)),
    }
}

/// The arguments after the document are pairs of a path and a value.
fn resolve_changes(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    match arguments.len().is_multiple_of(2) {
        true => Err(super::wrong_count(name)),
        false => resolve_document(name, values_as_members(arguments, 2)),
    }
}

/// Every second argument from `first` on becomes a member of a document.
fn values_as_members(arguments: Vec<Expression>, first: usize) -> Vec<Expression> {
    let is_value = |place: usize| place >= first && (place - first).is_multiple_of(2);
    let arguments = arguments.into_iter().enumerate();
    arguments.map(|(place, argument)| if is_value(place) { argument.as_member() } else { argument }).collect()
}

impl<'r> Call<'r> {
    /// The argument as a document; a text is read. Errors: 3141 for a text that is none, 3144 for a binary
    /// string.
    pub(super) fn document(&self, position: usize) -> Result<Option<&'r [u8]>> {
        let value = self.rounded(position)?;
        self.document_of(value, position)
    }

    /// The value of an argument as a document. Errors as [`Self::document`].
    fn document_of(&self, value: ValueRef<'r>, position: usize) -> Result<Option<&'r [u8]>> {
        match value {
            ValueRef::Null => Ok(None),
            ValueRef::Json(document) => Ok(Some(document)),
            ValueRef::Bytes(_) if self.is_binary(position) => Err(Error::binary_document()),
            ValueRef::Bytes(text) => self.parsed(text, position).map(Some),
            choice @ ValueRef::Choice(_) => {
                let text = crate::scratch::to_text(choice, self.scratch())?;
                self.parsed(text, position).map(Some)
            }
            _ => {
                let number = position + 1;
                let message = format!(
                    "Invalid data type for JSON data in argument {number} to function {}; a JSON string or JSON type \
                     is required.",
                    self.function_name()
                );
                Err(Error::new(ErrorCode::WrongJsonArgument, message))
            }
        }
    }

    fn parsed(&self, text: &[u8], position: usize) -> Result<&'r [u8]> {
        let mut failure = None;
        let built = self.scratch().build(|buffer| {
            failure = json::parse(text, buffer).err();
            Ok(failure.is_none())
        })?;
        match (built, failure) {
            (Some(document), _) => Ok(document),
            (None, Some(json::JsonError::Invalid(defect, at))) => {
                let (number, name) = (position + 1, self.function_name());
                let message = format!(
                    "Invalid JSON text in argument {number} to function {name}: \"{defect}\" at position {at}."
                );
                Err(Error::new(ErrorCode::InvalidJsonArgument, message))
            }
            _ => Err(Error::new(ErrorCode::JsonTooDeep, "The JSON document exceeds the maximum depth.")),
        }
    }

    /// Whether the argument is a binary string, which is no text.
    fn is_binary(&self, position: usize) -> bool {
        let result = &self.arguments[position].result;
        result.collation == CollationId::BINARY && result.kind == Kind::String
    }

    /// The argument as a value in a document: a text is a string, a condition a boolean, a binary string is
    /// opaque.
    fn member(&self, position: usize) -> Result<&'r [u8]> {
        if self.arguments[position].result.kind == Kind::Geometry {
            return self.geojson(position);
        }
        let value = self.rounded(position)?;
        let is_binary = self.is_binary(position);
        self.scratch().build_text(|buffer| match value {
            ValueRef::Bytes(bytes) if is_binary => Json::Opaque { wire_type: BINARY_STRING, bytes }.append(buffer),
            _ => append_value(value, buffer),
        })
    }

    fn path(&self, position: usize) -> Result<Option<Arc<Path>>> {
        let Some(text) = self.text(position)? else { return Ok(None) };
        let mut key = b"path ".to_vec();
        key.extend_from_slice(text);
        self.scratch().cached(&key, || Path::parse(text)).map(Some)
    }

    /// A path for one value. Error: 3149 for wildcards.
    fn plain_path(&self, position: usize) -> Result<Option<Arc<Path>>> {
        let path = self.path(position)?;
        if path.as_ref().is_some_and(|path| path.has_wildcard()) {
            let message = "In this situation, path expressions may not contain the * and ** tokens or an array range.";
            return Err(Error::new(ErrorCode::JsonPathWildcard, message));
        }
        Ok(path)
    }

    /// A new document as a value. Error: 3157 if it is nested too deeply.
    pub(super) fn json(&self, build: impl FnOnce(&mut Vec<u8>)) -> Result<ValueRef<'r>> {
        self.new_document(build).map(ValueRef::Json)
    }

    /// A new document. Error: 3157 if it is nested too deeply.
    pub(super) fn new_document(&self, build: impl FnOnce(&mut Vec<u8>)) -> Result<&'r [u8]> {
        let document = self.scratch().build_text(build)?;
        match json::is_valid(document) {
            true => Ok(document),
            false => Err(Error::new(ErrorCode::JsonTooDeep, "The JSON document exceeds the maximum depth.")),
        }
    }
}

fn cast(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.rounded(0)? {
        ValueRef::Null => Ok(ValueRef::Null),
        ValueRef::Bytes(_) if !call.is_binary(0) && call.arguments[0].result.kind != Kind::Geometry => {
            Ok(call.document(0)?.map_or(ValueRef::Null, ValueRef::Json))
        }
        _ => call.member(0).map(ValueRef::Json),
    }
}

/// Several paths, or one with wildcards, give an array.
fn extract(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let mut found = Vec::new();
    let mut is_array = call.count() > 2;
    for position in 1..call.count() {
        let Some(path) = call.path(position)? else { return Ok(ValueRef::Null) };
        is_array |= path.has_wildcard();
        path.find(document, &mut |value| found.push(value));
    }
    match (found.as_slice(), is_array) {
        ([], _) => Ok(ValueRef::Null),
        ([only, ..], false) => Ok(ValueRef::Json(only)),
        _ => call.json(|buffer| append_array(found.iter().copied(), buffer)),
    }
}

fn unquote(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.rounded(0)? {
        ValueRef::Null => Ok(ValueRef::Null),
        ValueRef::Json(document) => match Json::of(document) {
            Json::String(text) => Ok(ValueRef::Bytes(text)),
            Json::Temporal(_) | Json::Opaque { .. } => {
                let quoted = call.scratch().build_text(|buffer| json::append_text(document, buffer))?;
                Ok(ValueRef::Bytes(&quoted[1..quoted.len() - 1]))
            }
            _ => call.build(|buffer| json::append_text(document, buffer)),
        },
        ValueRef::Bytes(_) if call.is_binary(0) => Err(Error::binary_document()),
        value => {
            let text = crate::scratch::to_text(value, call.scratch())?;
            let is_quoted = text.len() >= 2 && text.starts_with(b"\"") && text.ends_with(b"\"");
            match is_quoted {
                true => match Json::of(call.parsed(text, 0)?) {
                    Json::String(text) => Ok(ValueRef::Bytes(text)),
                    _ => Ok(ValueRef::Bytes(text)),
                },
                false => Ok(ValueRef::Bytes(text)),
            }
        }
    }
}

/// Error 3064 for a value that is no text, 3144 for a binary string.
fn quote(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.rounded(0)? {
        ValueRef::Null => Ok(ValueRef::Null),
        ValueRef::Bytes(_) if call.is_binary(0) => Err(Error::binary_document()),
        text @ (ValueRef::Bytes(_) | ValueRef::Choice(_)) => {
            let text = crate::scratch::to_text(text, call.scratch())?;
            call.build(|buffer| json::append_quoted(text, buffer))
        }
        _ => {
            let message = format!("Incorrect type for argument 1 in function {}.", call.function_name());
            Err(Error::new(ErrorCode::IncorrectArgumentType, message))
        }
    }
}

fn valid(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.rounded(0)? {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Json(_) => ValueRef::Int(1),
        ValueRef::Bytes(_) if call.is_binary(0) => ValueRef::Int(0),
        text @ (ValueRef::Bytes(_) | ValueRef::Choice(_)) => {
            let text = crate::scratch::to_text(text, call.scratch())?;
            ValueRef::Int(json::parse(text, &mut Vec::new()).is_ok().into())
        }
        _ => ValueRef::Int(0),
    })
}

fn type_name(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.document(0)?.map_or(ValueRef::Null, |document| ValueRef::Bytes(Json::of(document).type_name().as_bytes())))
}

fn length(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let part = match call.count() {
        1 => Some(document),
        _ => match call.plain_path(1)? {
            Some(path) => path.first(document),
            None => None,
        },
    };
    Ok(part.map_or(ValueRef::Null, |part| {
        ValueRef::Int(match Json::of(part) {
            Json::Array(elements) => elements.len() as i64,
            Json::Object(members) => members.len() as i64,
            _ => 1,
        })
    }))
}

fn depth(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.document(0)?.map_or(ValueRef::Null, |document| ValueRef::Int(depth_of(document))))
}

fn depth_of(document: &[u8]) -> i64 {
    let inside = match Json::of(document) {
        Json::Array(elements) => elements.into_iter().map(depth_of).max(),
        Json::Object(members) => members.into_iter().map(|(_, value)| depth_of(value)).max(),
        _ => None,
    };
    inside.unwrap_or(0) + 1
}

fn keys(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let part = match call.count() {
        1 => Some(document),
        _ => call.plain_path(1)?.and_then(|path| path.first(document)),
    };
    let Some(Json::Object(members)) = part.map(Json::of) else { return Ok(ValueRef::Null) };
    let names: Vec<Vec<u8>> = members
        .into_iter()
        .map(|(key, _)| {
            let mut name = Vec::new();
            Json::String(key).append(&mut name);
            name
        })
        .collect();
    call.json(|buffer| append_array(names.iter().map(Vec::as_slice), buffer))
}

fn array(call: Call<'_>) -> Result<ValueRef<'_>> {
    let elements = (0..call.count()).map(|position| call.member(position)).collect::<Result<Vec<_>>>()?;
    call.json(|buffer| append_array(elements.iter().copied(), buffer))
}

/// Error 3158 for a key that is NULL.
fn object(call: Call<'_>) -> Result<ValueRef<'_>> {
    let mut members = Vec::with_capacity(call.count() / 2);
    for position in (0..call.count()).step_by(2) {
        let Some(key) = call.text(position)? else {
            return Err(Error::new(ErrorCode::JsonNullKey, "JSON documents may not contain NULL member names."));
        };
        members.push((key, call.member(position + 1)?));
    }
    call.json(|buffer| append_object(members, buffer))
}

fn contains(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(target), Some(candidate)) = (call.document(0)?, call.document(1)?) else { return Ok(ValueRef::Null) };
    let target = match call.count() {
        2 => Some(target),
        _ => call.plain_path(2)?.and_then(|path| path.first(target)),
    };
    Ok(target.map_or(ValueRef::Null, |target| ValueRef::Int(has(target, candidate).into())))
}

/// Whether a document contains another one.
fn has(target: &[u8], candidate: &[u8]) -> bool {
    match (Json::of(target), Json::of(candidate)) {
        (Json::Array(elements), Json::Array(wanted)) => {
            wanted.into_iter().all(|wanted| elements.into_iter().any(|element| has(element, wanted)))
        }
        (Json::Array(elements), _) => elements.into_iter().any(|element| has(element, candidate)),
        (Json::Object(members), Json::Object(wanted)) => {
            wanted.into_iter().all(|(key, wanted)| members.get(key).is_some_and(|member| has(member, wanted)))
        }
        _ => compare(target, candidate).is_eq(),
    }
}

/// The second argument is `one` or `all`. Error: 3154 for another one.
fn contains_path(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(document), Some(mode)) = (call.document(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    let is_one = mode.eq_ignore_ascii_case(b"one");
    if !is_one && !mode.eq_ignore_ascii_case(b"all") {
        let message = "The oneOrAll argument to json_contains_path may take these values: 'one' or 'all'.";
        return Err(Error::new(ErrorCode::JsonOneOrAll, message));
    }
    for position in 2..call.count() {
        let Some(path) = call.path(position)? else { return Ok(ValueRef::Null) };
        let is_there = path.first(document).is_some();
        if is_there == is_one {
            return Ok(ValueRef::Int(is_one.into()));
        }
    }
    Ok(ValueRef::Int((!is_one).into()))
}

fn overlaps(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (call.document(0)?, call.document(1)?) else { return Ok(ValueRef::Null) };
    let among = |document: &[u8], wanted: &[u8]| match Json::of(document) {
        Json::Array(elements) => elements.into_iter().any(|element| compare(element, wanted).is_eq()),
        _ => compare(document, wanted).is_eq(),
    };
    let overlap = match (Json::of(left), Json::of(right)) {
        (Json::Array(elements), _) => elements.into_iter().any(|element| among(right, element)),
        (_, Json::Array(_)) => among(right, left),
        (Json::Object(members), Json::Object(others)) => {
            members.into_iter().any(|(key, value)| others.get(key).is_some_and(|other| compare(value, other).is_eq()))
        }
        _ => compare(left, right).is_eq(),
    };
    Ok(ValueRef::Int(overlap.into()))
}

fn member_of(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (false, Some(array)) = (call.rounded(0)?.is_null(), call.document(1)?) else { return Ok(ValueRef::Null) };
    let wanted = call.member(0)?;
    Ok(ValueRef::Int(
        match Json::of(array) {
            Json::Array(elements) => elements.into_iter().any(|element| compare(element, wanted).is_eq()),
            _ => compare(array, wanted).is_eq(),
        }
        .into(),
    ))
}

/// A change of a document at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Set,
    Insert,
    Replace,
    Append,
    /// Inserts an element, and moves those behind it.
    Shift,
    Remove,
}

/// Each pair of path and value changes the result of the pairs before it.
fn changed(call: Call<'_>, change: Change) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let mut document = document.to_vec();
    for position in (1..call.count()).step_by(2) {
        let Some(path) = call.plain_path(position)? else { return Ok(ValueRef::Null) };
        // A value that would be added to no array is not evaluated.
        let is_nowhere = match change {
            Change::Append => path.first(&document).is_none(),
            Change::Shift => !path.has_parent(&document),
            _ => false,
        };
        if is_nowhere {
            continue;
        }
        let value = call.member(position + 1)?;
        let mut next = Vec::new();
        append_changed(&document, &path.legs, (change, value), &mut next);
        document = next;
    }
    call.json(|buffer| buffer.extend_from_slice(&document))
}

/// Error 3165 for a path that does not end with an element of an array.
fn array_insert(call: Call<'_>) -> Result<ValueRef<'_>> {
    for position in (1..call.count()).step_by(2) {
        let path = call.plain_path(position)?;
        if path.is_some_and(|path| !matches!(path.legs.last(), Some(Leg::Element(_)))) {
            let message = "A path expression is not a path to a cell in an array.";
            return Err(Error::new(ErrorCode::JsonPathNotCell, message));
        }
    }
    changed(call, Change::Shift)
}

fn remove(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let mut document = document.to_vec();
    for position in 1..call.count() {
        let Some(path) = call.plain_path(position)? else { return Ok(ValueRef::Null) };
        if path.legs.is_empty() {
            let message = "The path expression '$' is not allowed in this context.";
            return Err(Error::new(ErrorCode::JsonPathRoot, message));
        }
        let mut next = Vec::new();
        append_changed(&document, &path.legs, (Change::Remove, b""), &mut next);
        document = next;
    }
    call.json(|buffer| buffer.extend_from_slice(&document))
}

/// Appends the document with the change at the path, or unchanged if the path leads nowhere.
fn append_changed(document: &[u8], legs: &[Leg], (change, value): (Change, &[u8]), out: &mut Vec<u8>) {
    let Some((leg, rest)) = legs.split_first() else {
        return match (change, Json::of(document)) {
            (Change::Set | Change::Replace, _) => out.extend_from_slice(value),
            (Change::Append, Json::Array(elements)) => append_array(elements.into_iter().chain([value]), out),
            (Change::Append, _) => append_array([document, value], out),
            _ => out.extend_from_slice(document),
        };
    };
    let is_last = rest.is_empty();
    let adds = is_last && matches!(change, Change::Set | Change::Insert);
    let inner = |part: &[u8]| {
        let mut changed = Vec::new();
        append_changed(part, rest, (change, value), &mut changed);
        changed
    };
    match (leg, Json::of(document)) {
        (Leg::Member(key), Json::Object(members)) => {
            let mut changed: Option<Vec<u8>> = None;
            let mut kept: Vec<(&[u8], &[u8])> = Vec::with_capacity(members.len() + 1);
            for (name, member) in members {
                match name == key {
                    true if is_last && change == Change::Remove => {}
                    true => changed = Some(inner(member)),
                    false => kept.push((name, member)),
                }
            }
            match &changed {
                Some(changed) => kept.push((key, changed)),
                None if adds => kept.push((key, value)),
                None => {}
            }
            append_object(kept, out);
        }
        (Leg::Element(index), Json::Array(elements)) if is_last && change == Change::Shift => {
            let place = match index.from_end {
                // `last` is the place before the last element.
                true => index.within(elements.len()).unwrap_or(0),
                false => index.number.min(elements.len()),
            };
            let before = elements.into_iter().take(place);
            append_array(before.chain([value]).chain(elements.into_iter().skip(place)), out);
        }
        (Leg::Element(_), _) if is_last && change == Change::Shift => out.extend_from_slice(document),
        (Leg::Element(index), Json::Array(elements)) => {
            let length = elements.len();
            let place = index.within(length);
            let mut changed: Vec<Vec<u8>> = Vec::with_capacity(length + 1);
            if adds && place.is_none() {
                changed.push(value.to_vec());
            }
            for (position, element) in elements.into_iter().enumerate() {
                match Some(position) == place {
                    true if is_last && change == Change::Remove => {}
                    true => changed.push(inner(element)),
                    false => changed.push(element.to_vec()),
                }
            }
            if adds && place.is_some_and(|place| place >= length) {
                changed.push(value.to_vec());
            }
            append_array(changed.iter().map(Vec::as_slice), out);
        }
        // A value that is no array is its own first element; another one makes it an array.
        (Leg::Element(index), _) if index.number == 0 && !(is_last && change == Change::Remove) => {
            out.extend_from_slice(&inner(document));
        }
        (Leg::Element(index), _) if adds && index.from_end => append_array([value, document], out),
        (Leg::Element(_), _) if adds => append_array([document, value], out),
        _ => out.extend_from_slice(document),
    }
}

/// Merges by RFC 7396: members of later objects replace those of earlier ones, and null removes.
fn merge_patch(call: Call<'_>) -> Result<ValueRef<'_>> {
    let mut merged: Option<Vec<u8>> = call.document(0)?.map(<[u8]>::to_vec);
    for position in 1..call.count() {
        let Some(patch) = call.document(position)? else {
            merged = None;
            continue;
        };
        merged = match (Json::of(patch), merged) {
            (Json::Object(_), None) => None,
            (_, before) => {
                let mut next = Vec::new();
                append_patched(before.as_deref().unwrap_or_default(), patch, &mut next);
                Some(next)
            }
        };
    }
    match merged {
        Some(merged) => call.json(|buffer| buffer.extend_from_slice(&merged)),
        None => Ok(ValueRef::Null),
    }
}

fn append_patched(target: &[u8], patch: &[u8], out: &mut Vec<u8>) {
    let Json::Object(changes) = Json::of(patch) else { return out.extend_from_slice(patch) };
    let before = match Json::of(target) {
        Json::Object(members) => members.into_iter().collect(),
        _ => Vec::new(),
    };
    let mut members: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for (key, value) in &before {
        if changes.get(key).is_none() {
            members.push((key, value.to_vec()));
        }
    }
    for (key, change) in changes {
        if Json::of(change) == Json::Null {
            continue;
        }
        let old = before.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, value)| value);
        let mut value = Vec::new();
        append_patched(old, change, &mut value);
        members.push((key, value));
    }
    append_object(members.iter().map(|(key, value)| (*key, value.as_slice())).collect(), out);
}

/// Merges arrays to one, and the members of objects with one key to an array.
fn merge_preserve(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(first) = call.document(0)? else { return Ok(ValueRef::Null) };
    let mut merged = first.to_vec();
    for position in 1..call.count() {
        let Some(other) = call.document(position)? else { return Ok(ValueRef::Null) };
        let mut next = Vec::new();
        append_merged(&merged, other, &mut next);
        merged = next;
    }
    call.json(|buffer| buffer.extend_from_slice(&merged))
}

fn append_merged(left: &[u8], right: &[u8], out: &mut Vec<u8>) {
    if let (Json::Object(left), Json::Object(right)) = (Json::of(left), Json::of(right)) {
        let mut members: Vec<(&[u8], Vec<u8>)> = Vec::new();
        for (key, value) in left {
            let mut merged = Vec::new();
            match right.get(key) {
                Some(other) => append_merged(value, other, &mut merged),
                None => merged.extend_from_slice(value),
            }
            members.push((key, merged));
        }
        let added = right.into_iter().filter(|(key, _)| left.get(key).is_none());
        members.extend(added.map(|(key, value)| (key, value.to_vec())));
        return append_object(members.iter().map(|(key, value)| (*key, value.as_slice())).collect(), out);
    }
    let elements = |document| match Json::of(document) {
        Json::Array(elements) => elements.into_iter().collect::<Vec<_>>(),
        _ => vec![document],
    };
    append_array(elements(left).into_iter().chain(elements(right)), out);
}

fn pretty_text(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| pretty::append_pretty(document, 0, buffer))
}

/// The schema in the first argument and the document in the second; `None` if one is NULL. Errors: 3853 for a
/// schema that is no object, 1235 for `$ref`.
fn schema_misfit(call: Call<'_>) -> Result<Option<Option<Misfit>>> {
    let Some(written) = call.document(0)? else { return Ok(None) };
    if !matches!(Json::of(written), Json::Object(_)) {
        let name = call.function_name();
        let message = format!("Invalid JSON type in argument 1 to function {name}; an object is required.");
        return Err(Error::new(ErrorCode::InvalidJsonType, message));
    }
    let mut key = b"schema ".to_vec();
    key.extend_from_slice(written);
    let schema = call.scratch().cached(&key, || Schema::read(written))?;
    let Some(document) = call.document(1)? else { return Ok(None) };
    schema.misfit(document).map(Some)
}

fn schema_valid(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(schema_misfit(call)?.map_or(ValueRef::Null, |misfit| ValueRef::Int(misfit.is_none().into())))
}

fn schema_report(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(misfit) = schema_misfit(call)? else { return Ok(ValueRef::Null) };
    let json = |value: Json<'_>| {
        let mut document = Vec::new();
        value.append(&mut document);
        document
    };
    let mut members = vec![("valid", json(Json::Boolean(misfit.is_none())))];
    if let Some(misfit) = misfit {
        let texts = [
            ("reason", misfit.reason()),
            ("schema-location", misfit.schema_location()),
            ("document-location", misfit.document_location()),
            ("schema-failed-keyword", misfit.keyword.to_owned()),
        ];
        members.extend(texts.map(|(key, text)| (key, json(Json::String(text.as_bytes())))));
    }
    call.json(|buffer| append_object(members.iter().map(|(key, value)| (key.as_bytes(), &value[..])).collect(), buffer))
}

/// Documents are stored whole, so no update leaves space behind.
fn storage_free(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.document(0)?.map_or(ValueRef::Null, |_| ValueRef::Int(0)))
}

fn storage_size(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.document(0)?.map_or(ValueRef::Null, |document| ValueRef::Int(document.len() as i64)))
}
