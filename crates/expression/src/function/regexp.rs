//! Regular expressions.
//!
//! Patterns have the syntax of ICU, as in MySQL. `fancy-regex` shares nearly all of it; `translated` rewrites
//! the rest. A match that backtracks too often is error 3699, so the time of each is bounded.

use std::borrow::Cow;
use std::sync::Arc;

use fancy_regex::{Captures, CompileError, Error as RegexError, ParseError, Regex, RegexBuilder, RuntimeError};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, any_nullable, function};
use crate::construct::aggregate_collations;
use crate::program::Expression;
use crate::result_type::ResultType;
use crate::scratch::STRING_BYTES_MAX;

pub(super) const TABLE: &[Function] = &[
    function("REGEXP_LIKE", 2, 3, resolve_like, regexp_like),
    function("REGEXP_INSTR", 2, 6, resolve_instr, regexp_instr),
    function("REGEXP_SUBSTR", 2, 5, resolve_substr, regexp_substr),
    function("REGEXP_REPLACE", 3, 6, resolve_replace, regexp_replace),
];

/// Maximum number of times that a match may backtrack.
const BACKTRACKS_MAX: usize = 500_000;
/// Maximum bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 4 << 20;
/// Maximum bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// The common collation of text and pattern. Errors: 1267, and 3995 for binary text beside other text.
fn collation(name: &str, arguments: &[Expression]) -> Result<CollationId> {
    let found = aggregate_collations(name, &arguments[..2])?;
    let is_binary = |argument: &Expression| super::is_bytes(argument);
    if is_binary(&arguments[0]) != is_binary(&arguments[1]) && arguments[..2].iter().all(super::is_text) {
        let names = arguments[..2].iter().map(|argument| argument.result.collation.name());
        let [first, second] = [names.clone().next().unwrap_or(""), names.clone().nth(1).unwrap_or("")];
        let message =
            format!("Character set '{first}' cannot be used in conjunction with '{second}' in call to {name}.");
        return Err(Error::new(ErrorCode::CharacterSetMismatch, message));
    }
    Ok(found.collation)
}

fn resolve_like(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    collation("regexp_like", &arguments)?;
    let result = ResultType::boolean().with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

fn resolve_instr(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    collation("regexp_instr", &arguments)?;
    let result = ResultType::integer(false, 21).with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

fn resolve_substr(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    collation("regexp_substr", &arguments)?;
    let found = aggregate_collations("regexp_substr", &arguments[..2])?;
    let result = ResultType::string(found.collation, found.coercibility, arguments[0].result.length);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn resolve_replace(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    collation("regexp_replace", &arguments)?;
    let found = aggregate_collations("regexp_replace", &arguments[..3])?;
    let result = ResultType::string(found.collation, found.coercibility, (STRING_BYTES_MAX / 4) as u32);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// A search: the compiled pattern, the text, and the byte where the search begins.
struct Search<'r> {
    regex: Arc<Regex>,
    text: Cow<'r, str>,
    start: usize,
    /// The number of the wanted match.
    occurrence: i64,
}

/// Evaluates the arguments: text, pattern, and optional position, occurrence and match type, at these places.
fn search<'r>(call: Call<'r>, name: &str, places: [Option<usize>; 3]) -> Result<Option<Search<'r>>> {
    let [position, occurrence, kind] = places.map(|place| place.filter(|place| *place < call.count()));
    let (Some(text), Some(pattern)) = (call.text(0)?, call.text(1)?) else { return Ok(None) };
    let optional = |place: Option<usize>| place.map_or(Ok(Some(1)), |place| call.integer(place));
    let (Some(position), Some(occurrence)) = (optional(position)?, optional(occurrence)?) else { return Ok(None) };
    let kind = match kind {
        Some(place) => match call.text(place)? {
            Some(kind) => kind,
            None => return Ok(None),
        },
        None => b"",
    };
    let collation = aggregate_collations("", &call.arguments[..2])?.collation;
    let regex = compiled(call, name, pattern, (kind, collation))?;
    let text = match std::str::from_utf8(text) {
        Ok(text) => Cow::Borrowed(text),
        // Bytes of a binary string count as the characters of the same number.
        Err(_) if collation == CollationId::BINARY => text.iter().map(|byte| char::from(*byte)).collect(),
        Err(_) => String::from_utf8_lossy(text),
    };
    let skip = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
    let start = match skip {
        Some(skip) => text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(skip),
        None => None,
    };
    let Some(start) = start else { return Err(out_of_bounds()) };
    Ok(Some(Search { regex, text, start, occurrence }))
}

impl Search<'_> {
    /// The first and last byte of the wanted match.
    fn found(&self) -> Result<Option<(usize, usize)>> {
        let matches = self.regex.find_from_pos(&*self.text, self.start).map_err(failed)?;
        let Some(first) = matches else { return Ok(None) };
        if self.occurrence <= 1 {
            return Ok(Some((first.start(), first.end())));
        }
        let mut number = 0;
        let mut at = self.start;
        while at <= self.text.len() {
            let Some(found) = self.regex.find_from_pos(&*self.text, at).map_err(failed)? else { return Ok(None) };
            number += 1;
            if number == self.occurrence {
                return Ok(Some((found.start(), found.end())));
            }
            at = next_start(&self.text, found.start(), found.end());
        }
        Ok(None)
    }
}

/// Where the search goes on after a match; after an empty match, one character later.
fn next_start(text: &str, start: usize, end: usize) -> usize {
    match end > start {
        true => end,
        false => end + text[end..].chars().next().map_or(1, char::len_utf8),
    }
}

fn regexp_like(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(search) = search(call, "regexp_like", [None, None, Some(2)])? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(search.found()?.is_some().into()))
}

fn regexp_instr(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(search) = search(call, "regexp_instr", [Some(2), Some(3), Some(5)])? else { return Ok(ValueRef::Null) };
    let after = if call.count() > 4 { call.integer(4)? } else { Some(0) };
    let after = match after {
        None => return Ok(ValueRef::Null),
        Some(0) => false,
        Some(1) => true,
        Some(_) => {
            let message = "Incorrect arguments to regexp_instr: return_option must be 1 or 0.";
            return Err(Error::new(ErrorCode::WrongArguments, message));
        }
    };
    Ok(ValueRef::Int(match search.found()? {
        Some((start, end)) => search.text[..if after { end } else { start }].chars().count() as i64 + 1,
        None => 0,
    }))
}

fn regexp_substr(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(search) = search(call, "regexp_substr", [Some(2), Some(3), Some(4)])? else { return Ok(ValueRef::Null) };
    match search.found()? {
        Some((start, end)) => call.build(|buffer| buffer.extend_from_slice(search.text[start..end].as_bytes())),
        None => Ok(ValueRef::Null),
    }
}

/// Occurrence 0, the default, replaces every match.
fn regexp_replace(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(replacement) = call.text(2)? else { return Ok(ValueRef::Null) };
    let occurrence = if call.count() > 4 { call.integer(4)? } else { Some(0) };
    let Some(occurrence) = occurrence else { return Ok(ValueRef::Null) };
    let Some(search) = search(call, "regexp_replace", [Some(3), None, Some(5)])? else { return Ok(ValueRef::Null) };
    let replacement = String::from_utf8_lossy(replacement);
    let wanted = if occurrence < 0 { 1 } else { occurrence };
    let built = call.scratch().build(|buffer| {
        let text = &*search.text;
        let (mut copied, mut at, mut number) = (0, search.start, 0);
        while at <= text.len() {
            let Some(found) = search.regex.captures_from_pos(text, at).map_err(failed)? else { break };
            let Some(whole) = found.get(0) else { break };
            number += 1;
            if wanted == 0 || wanted == number {
                buffer.extend_from_slice(&text.as_bytes()[copied..whole.start()]);
                append_replacement(&replacement, &found, buffer)?;
                copied = whole.end();
                if buffer.len() > STRING_BYTES_MAX {
                    return Err(Error::new(
                        ErrorCode::RegexpTooMuch,
                        "Overflow in the regular expression backtrack stack.",
                    ));
                }
            }
            if number == wanted {
                break;
            }
            at = next_start(text, whole.start(), whole.end());
        }
        buffer.extend_from_slice(&text.as_bytes()[copied..]);
        Ok(true)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

/// `$n` and `${name}` are groups; a backslash takes the next character as it is.
fn append_replacement(replacement: &str, found: &Captures<'_, str>, buffer: &mut Vec<u8>) -> Result<()> {
    let mut rest = replacement;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => {
                if let Some(next) = rest.chars().next() {
                    buffer.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[next.len_utf8()..];
                }
            }
            '$' => {
                let group = match rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                    Some((name, after)) => {
                        rest = after;
                        found.name(name)
                    }
                    None => {
                        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                        // As many digits as give the number of a group.
                        let taken = (1..=digits).rev().find(|length| number_of(&rest[..*length]) < found.len());
                        let Some(taken) = taken else { return Err(out_of_bounds()) };
                        let number = number_of(&rest[..taken]);
                        rest = &rest[taken..];
                        found.get(number)
                    }
                };
                buffer.extend_from_slice(group.map_or("", |group| group.as_str()).as_bytes());
            }
            other => buffer.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(())
}

fn number_of(digits: &str) -> usize {
    digits.parse().unwrap_or(usize::MAX)
}

/// The pattern, compiled once for each thread as long as it stays among the last ones.
fn compiled(call: Call<'_>, name: &str, pattern: &[u8], (kind, collation): (&[u8], CollationId)) -> Result<Arc<Regex>> {
    let mut key = Vec::with_capacity(pattern.len() + kind.len() + 3);
    key.extend_from_slice(&collation.number().to_le_bytes());
    key.extend_from_slice(kind);
    key.push(0);
    key.extend_from_slice(pattern);
    call.scratch().cached(&key, || compile(name, pattern, (kind, collation)))
}

fn compile(name: &str, pattern: &[u8], (kind, collation): (&[u8], CollationId)) -> Result<Regex> {
    let is_ci = !collation.is_case_sensitive();
    let (mut ignores_case, mut is_multiline, mut dot_is_any, mut unix_lines) = (is_ci, false, false, false);
    for flag in kind {
        match flag {
            b'c' => ignores_case = false,
            b'i' => ignores_case = true,
            b'm' => is_multiline = true,
            b'n' => dot_is_any = true,
            b'u' => unix_lines = true,
            _ => return Err(Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}"))),
        }
    }
    if pattern.is_empty() {
        return Err(illegal_argument());
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        let message = "The regular expression pattern exceeds limits on size or complexity.";
        return Err(Error::new(ErrorCode::RegexpTooBig, message));
    }
    let text: String = match (std::str::from_utf8(pattern), collation.character_set()) {
        (Ok(text), _) => text.into(),
        (Err(_), CharacterSet::Binary) => pattern.iter().map(|byte| char::from(*byte)).collect(),
        (Err(_), _) => String::from_utf8_lossy(pattern).into_owned(),
    };
    let text = translated(&text, unix_lines || dot_is_any)?;
    RegexBuilder::new(&text)
        .case_insensitive(ignores_case)
        .multi_line(is_multiline)
        .dot_matches_new_line(dot_is_any)
        .backtrack_limit(BACKTRACKS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(failed)
}

/// A pattern of a JSON schema, which is case-sensitive. `None` for one that is no regular expression.
pub(super) fn search_pattern(pattern: &[u8]) -> Option<Regex> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let builder = RegexBuilder::new(std::str::from_utf8(pattern).ok()?)
        .backtrack_limit(BACKTRACKS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .build();
    builder.ok()
}

/// Whether a part of the text matches. Error: 3699.
pub(super) fn is_found(pattern: &Regex, text: &str) -> Result<bool> {
    pattern.is_match(text).map_err(failed)
}

#[cold]
fn illegal_argument() -> Box<Error> {
    Error::new(ErrorCode::RegexpIllegalArgument, "Illegal argument to a regular expression.")
}

/// The classes of POSIX that the crate knows.
const POSIX_CLASSES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The class that begins behind its opening bracket, as the crate writes it, and the rest of the pattern.
/// `None` if this is no class. As in ICU, the name may be that of a property. Error: 3685 for an unknown one.
fn posix_class(rest: &str) -> Result<Option<(String, &str)>> {
    let Some((name, after)) = rest.strip_prefix(':').and_then(|inner| inner.split_once(":]")) else { return Ok(None) };
    if name.contains([']', '[']) {
        return Ok(None);
    }
    let (sign, plain) = match name.strip_prefix('^') {
        Some(plain) => ("P", plain),
        None => ("p", name),
    };
    if POSIX_CLASSES.contains(&plain) {
        return Ok(Some((format!("[:{name}:]"), after)));
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '=' | ' ');
    let property = format!("\\{sign}{{{plain}}}");
    match !plain.is_empty() && plain.chars().all(is_word) && Regex::new(&property).is_ok() {
        true => Ok(Some((property, after))),
        false => Err(illegal_argument()),
    }
}

/// The pattern in the syntax of the crate: `\Q...\E` quotes, and a point matches no line terminator at all,
/// unless only `\n` is one. Error: 3685 for an unknown class of characters.
fn translated(pattern: &str, keeps_point: bool) -> Result<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut brackets = 0;
    while let Some(character) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix("\\Q") {
            let (inside, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            out.push_str(&fancy_regex::escape(inside));
            rest = after;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => {
                out.push('\\');
                if let Some(next) = rest.chars().next() {
                    out.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
            '[' => {
                if brackets > 0
                    && let Some((class, after)) = posix_class(rest)?
                {
                    out.push_str(&class);
                    rest = after;
                    continue;
                }
                brackets += 1;
                out.push('[');
            }
            ']' => {
                brackets = if brackets > 0 { brackets - 1 } else { 0 };
                out.push(']');
            }
            '.' if brackets == 0 && !keeps_point => out.push_str("[^\\n\\r\\x0b\\x0c\\x{85}\\x{2028}\\x{2029}]"),
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cold]
fn out_of_bounds() -> Box<Error> {
    Error::new(ErrorCode::RegexpOutOfBounds, "Index out of bounds in regular expression search.")
}

#[cold]
fn failed(error: RegexError) -> Box<Error> {
    let (code, message) = match &error {
        RegexError::RuntimeError(RuntimeError::BacktrackLimitExceeded) => {
            (ErrorCode::RegexpTooMuch, "Timeout exceeded in regular expression match.")
        }
        RegexError::RuntimeError(_) => {
            (ErrorCode::RegexpTooMuch, "Overflow in the regular expression backtrack stack.")
        }
        RegexError::ParseError(_, error) => syntax_error(error),
        RegexError::CompileError(error) => match &**error {
            CompileError::InnerError(inner) => inner_error(&inner.to_string()),
            CompileError::InvalidBackref(_) | CompileError::InvalidGroupName => {
                (ErrorCode::RegexpBackReference, "Invalid back-reference in regular expression.")
            }
            CompileError::LookBehindNotConst | CompileError::VariableLookBehindRequiresFeature => {
                (ErrorCode::RegexpLookBehind, "The look-behind assertion exceeds the limit in regular expression.")
            }
            _ => inner_error(""),
        },
        _ => inner_error(""),
    };
    Error::new(code, message)
}

fn syntax_error(error: &ParseError) -> (ErrorCode, &'static str) {
    match error {
        ParseError::UnclosedOpenParen => {
            (ErrorCode::RegexpParenthesis, "Mismatched parenthesis in regular expression.")
        }
        ParseError::InvalidRepeat => (ErrorCode::RegexpInterval, "Incorrect description of a {min,max} interval."),
        ParseError::TrailingBackslash | ParseError::InvalidEscape(_) | ParseError::InvalidHex => {
            (ErrorCode::RegexpEscape, "Unrecognized escape sequence in regular expression.")
        }
        ParseError::InvalidClass => bracket(),
        ParseError::GeneralParseError(text) if text.contains("paren") => {
            (ErrorCode::RegexpParenthesis, "Mismatched parenthesis in regular expression.")
        }
        ParseError::InvalidBackref => (ErrorCode::RegexpBackReference, "Invalid back-reference in regular expression."),
        _ => inner_error(""),
    }
}

fn bracket() -> (ErrorCode, &'static str) {
    (ErrorCode::RegexpBracket, "The regular expression contains an unclosed bracket expression.")
}

/// The error of the crate that compiles simple patterns, which has only a text.
fn inner_error(text: &str) -> (ErrorCode, &'static str) {
    if text.contains("unclosed character class") {
        return bracket();
    }
    if text.contains("invalid character class range") {
        return (
            ErrorCode::RegexpRange,
            "The regular expression contains an [x-y] character range where x comes after y.",
        );
    }
    if text.contains("size limit") {
        return (ErrorCode::RegexpTooBig, "The regular expression pattern exceeds limits on size or complexity.");
    }
    if text.contains("repetition") && text.contains("range") {
        return (ErrorCode::RegexpMinMax, "The maximum is less than the minumum in a {min,max} interval.");
    }
    (ErrorCode::RegexpSyntax, "Syntax error in regular expression.")
}
