//! JSON_SEARCH: the paths of strings that match a pattern.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::{self, Json, append_array};
use junctor_model::value::ValueRef;

use super::Call;

/// The arguments are the document, `one` or `all`, the pattern, its escape character, and the paths of the
/// values that are searched. Errors: 3154, and 1210 for an escape of several characters.
pub(super) fn search(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(document), Some(mode), Some(pattern)) = (call.document(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(ValueRef::Null);
    };
    let is_one = mode.eq_ignore_ascii_case(b"one");
    if !is_one && !mode.eq_ignore_ascii_case(b"all") {
        let message = "The oneOrAll argument to json_search may take these values: 'one' or 'all'.";
        return Err(Error::new(ErrorCode::JsonOneOrAll, message));
    }
    let escape = match call.count() {
        3 => '\\',
        _ => escape_of(call.text(3)?)?,
    };
    let mut inside: Vec<&[u8]> = Vec::new();
    for position in 4..call.count() {
        let Some(path) = call.path(position)? else { return Ok(ValueRef::Null) };
        path.find(document, &mut |value| inside.push(value));
    }
    if call.count() <= 4 {
        inside.push(document);
    }
    let mut search = Search { pattern, escape, is_one, inside, found: Vec::new() };
    search.walk(document, b"$", false);
    let paths: Vec<Vec<u8>> = search.found.iter().map(|path| string(path)).collect();
    match paths.as_slice() {
        [] => Ok(ValueRef::Null),
        [only] => call.json(|buffer| buffer.extend_from_slice(only)),
        _ => call.json(|buffer| append_array(paths.iter().map(Vec::as_slice), buffer)),
    }
}

/// NULL and the empty string stand for a backslash.
fn escape_of(written: Option<&[u8]>) -> Result<char> {
    let text = std::str::from_utf8(written.unwrap_or_default()).unwrap_or_default();
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok('\\'),
        (Some(escape), None) => Ok(escape),
        _ => Err(Error::new(ErrorCode::WrongArguments, "Incorrect arguments to ESCAPE")),
    }
}

fn string(text: &[u8]) -> Vec<u8> {
    let mut document = Vec::new();
    Json::String(text).append(&mut document);
    document
}

struct Search<'d> {
    pattern: &'d [u8],
    escape: char,
    is_one: bool,
    /// The parts of the document that are searched.
    inside: Vec<&'d [u8]>,
    /// The paths of the strings that match, each once.
    found: Vec<Vec<u8>>,
}

impl<'d> Search<'d> {
    /// Searches a value and those in it. `is_inside` tells whether a value around it is searched.
    fn walk(&mut self, value: &'d [u8], path: &[u8], is_inside: bool) {
        if self.is_one && !self.found.is_empty() {
            return;
        }
        // A part of a document is identified by its place.
        let is_inside = is_inside || self.inside.iter().any(|part| std::ptr::eq(part.as_ptr(), value.as_ptr()));
        match Json::of(value) {
            Json::String(text) if is_inside && CollationId::UTF8MB4_BIN.like(text, self.pattern, Some(self.escape)) => {
                self.found.push(path.to_vec());
            }
            Json::Array(elements) => {
                for (position, element) in elements.into_iter().enumerate() {
                    let leg = [path, format!("[{position}]").as_bytes()].concat();
                    self.walk(element, &leg, is_inside);
                }
            }
            Json::Object(members) => {
                for (key, member) in members {
                    let mut leg = [path, b"."].concat();
                    append_key(key, &mut leg);
                    self.walk(member, &leg, is_inside);
                }
            }
            _ => {}
        }
    }
}

/// Appends a key as a path has it: in quotes unless it is an identifier.
fn append_key(key: &[u8], out: &mut Vec<u8>) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
    let is_identifier = key.first().is_some_and(|byte| !byte.is_ascii_digit()) && key.iter().all(is_part);
    if is_identifier { out.extend_from_slice(key) } else { json::append_quoted(key, out) }
}
