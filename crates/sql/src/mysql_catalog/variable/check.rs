//! Checks values of system variables and converts them to their canonical form.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::locale::Locale;
use junctor_model::row_encoding::append_text;
use junctor_model::temporal::Zone;
use junctor_model::value::Value;

use super::Note;
use super::declare::{Kind, Slot, Variable};
use super::session::IsolationChoice;
use super::sql_mode::SqlMode;

/// Maximum bytes of a string value.
pub(super) const TEXT_BYTES_MAX: usize = 4096;
/// Maximum number of characters of a wrong value in an error message.
const QUOTED_CHARACTERS_MAX: usize = 200;
/// Maximum of the variable `timestamp` in MySQL 8.0, in seconds since 1970-01-01 UTC.
const TIMESTAMP_SECONDS_MAX: f64 = 32_536_771_199.0;

/// The variable's default, in canonical form.
pub(super) fn default_value(variable: &Variable) -> Value {
    let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    match variable.kind {
        Kind::Flag(default) => Value::Int(i64::from(default)),
        Kind::Number { default, .. } => Value::UInt(default),
        Kind::Real(default) => Value::Double(default),
        Kind::Text(default) => default.map_or(Value::Null, text),
        Kind::Choice(words) => text(words[0]),
        Kind::ChoiceFrom(words, default) | Kind::Set(words, default) => text(words[default]),
        Kind::Switches(switches) => text(&switches_text(switches, |_, default| default)),
        Kind::SqlMode => text(&SqlMode::DEFAULT.text()),
        Kind::Isolation => text(IsolationChoice::default().name()),
        Kind::CharacterSet(_) => text(CollationId::DEFAULT.character_set().name()),
        Kind::Collation => text(CollationId::DEFAULT.name()),
        Kind::TimeZone => text("SYSTEM"),
        Kind::Locale => text(Locale::ENGLISH.name()),
    }
}

/// A value that a statement assigns to a variable.
#[derive(Clone, Copy)]
pub(super) struct AssignedValue<'a> {
    /// The variable's name as written in the statement.
    pub name: &'a str,
    pub value: &'a Value,
    /// With STRICT_ALL_TABLES, a number outside the range is an error.
    pub mode: SqlMode,
}

/// Returns the canonical form of a new value. `old` is the current value; a list of switches changes only
/// those that it names.
///
/// # Errors
/// 1231 for a wrong value, 1232 for a wrong type, 1115, 1235 and 1273 for character sets and collations.
pub(super) fn check(
    variable: &Variable,
    assigned: AssignedValue<'_>,
    old: &Value,
    notes: &mut Vec<Note>,
) -> Result<Value> {
    let AssignedValue { name, value, .. } = assigned;
    let text = |text: &str| Ok(Value::Bytes(text.as_bytes().to_vec()));
    match variable.kind {
        Kind::Flag(_) => check_flag(name, value),
        Kind::Number { min, max, .. } => check_number(assigned, min, max, notes),
        Kind::Real(_) => match value {
            Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
                let given = double_of(value);
                if matches!(variable.slot, Slot::Timestamp) && given > TIMESTAMP_SECONDS_MAX {
                    return Err(wrong_value(name, &text_of(value)));
                }
                Ok(Value::Double(given.max(0.0)))
            }
            _ => Err(wrong_type(name)),
        },
        Kind::Text(default) => match value {
            Value::Bytes(bytes) if bytes.len() <= TEXT_BYTES_MAX => Ok(value.clone()),
            Value::Bytes(_) => Err(wrong_value(name, &text_of(value))),
            Value::Null if default.is_none() => Ok(Value::Null),
            Value::Null => Err(wrong_value(name, "NULL")),
            _ => Err(wrong_type(name)),
        },
        Kind::Choice(words) | Kind::ChoiceFrom(words, _) => text(check_choice(name, value, words)?),
        Kind::Set(words, _) => text(&check_set(name, value, words)?),
        Kind::Switches(switches) => text(&check_switches(name, value, old, switches)?),
        Kind::SqlMode => {
            let mode = match value {
                Value::Bytes(_) => SqlMode::parse(&text_of(value)),
                Value::Int(0..) | Value::UInt(_) => SqlMode::from_bits(unsigned_of(value)),
                Value::Double(_) | Value::Decimal(_) => return Err(wrong_type(name)),
                _ => Err(text_of(value)),
            };
            text(&mode.map_err(|offending| wrong_value(name, &offending))?.text())
        }
        Kind::Isolation => text(check_isolation(name, value)?.name()),
        Kind::CharacterSet(nullable) => match value {
            Value::Bytes(_) => text(CharacterSet::named(&text_of(value))?.name()),
            Value::Null if nullable => Ok(Value::Null),
            Value::Null => Err(wrong_value(name, "NULL")),
            _ => Err(wrong_type(name)),
        },
        Kind::Collation => match value {
            Value::Bytes(_) => text(CollationId::named(&text_of(value))?.name()),
            Value::Null => Err(wrong_value(name, "NULL")),
            _ => Err(wrong_type(name)),
        },
        Kind::Locale => {
            let found = match value {
                Value::Bytes(_) => Locale::find(&text_of(value)),
                Value::Int(0..) | Value::UInt(_) => Locale::numbered(unsigned_of(value)),
                Value::Int(_) => None,
                Value::Null => return Err(wrong_value(name, "NULL")),
                _ => return Err(wrong_type(name)),
            };
            let unknown = || {
                let shown: String = text_of(value).chars().take(QUOTED_CHARACTERS_MAX).collect();
                Error::new(ErrorCode::UnknownLocale, format!("Unknown locale: '{shown}'"))
            };
            text(found.ok_or_else(unknown)?.name())
        }
        Kind::TimeZone => match value {
            Value::Bytes(_) if Zone::find(&text_of(value)).is_some() => Ok(value.clone()),
            Value::Bytes(_) => {
                let shown: String = text_of(value).chars().take(QUOTED_CHARACTERS_MAX).collect();
                let text = format!("Unknown or incorrect time zone: '{shown}'");
                Err(Error::new(ErrorCode::UnknownTimeZone, text))
            }
            Value::Null => Err(wrong_value(name, "NULL")),
            _ => Err(wrong_type(name)),
        },
    }
}

fn check_flag(name: &str, value: &Value) -> Result<Value> {
    let on = match value {
        Value::Int(0) | Value::UInt(0) => false,
        Value::Int(1) | Value::UInt(1) => true,
        Value::Bytes(bytes) if bytes.eq_ignore_ascii_case(b"ON") => true,
        Value::Bytes(bytes) if bytes.eq_ignore_ascii_case(b"OFF") => false,
        Value::Double(_) | Value::Decimal(_) => return Err(wrong_type(name)),
        other => return Err(wrong_value(name, &text_of(other))),
    };
    Ok(Value::Int(i64::from(on)))
}

fn check_number(assigned: AssignedValue<'_>, min: u64, max: u64, notes: &mut Vec<Note>) -> Result<Value> {
    let AssignedValue { name, value, mode } = assigned;
    // 128 bits, because negative numbers and those above i64 are both clamped to the range.
    let wanted = match value {
        Value::Int(value) => i128::from(*value),
        Value::UInt(value) => i128::from(*value),
        _ => return Err(wrong_type(name)),
    };
    let taken = wanted.clamp(i128::from(min), i128::from(max));
    if taken != wanted {
        if mode.is_strict_for_all() {
            return Err(wrong_value(name, &text_of(value)));
        }
        let text = format!("Truncated incorrect {name} value: '{wanted}'");
        notes.push((ErrorCode::TruncatedWrongValue.errno(), text.into()));
    }
    Ok(Value::UInt(taken as u64))
}

fn check_choice(name: &str, value: &Value, words: &[&'static str]) -> Result<&'static str> {
    let found = match value {
        Value::Bytes(_) => {
            let text = text_of(value);
            words.iter().find(|word| word.eq_ignore_ascii_case(&text))
        }
        Value::Int(0..) | Value::UInt(_) => usize::try_from(unsigned_of(value)).ok().and_then(|at| words.get(at)),
        Value::Double(_) | Value::Decimal(_) => return Err(wrong_type(name)),
        _ => None,
    };
    found.copied().ok_or_else(|| wrong_value(name, &text_of(value)))
}

/// The words of the value in the order of `words`.
fn check_set(name: &str, value: &Value, words: &[&'static str]) -> Result<String> {
    let bits = match value {
        Value::Bytes(_) => {
            let text = text_of(value);
            let bit = |word: &str| {
                let position = words.iter().position(|known| known.eq_ignore_ascii_case(word.trim()));
                position.map(|position| 1 << position).ok_or_else(|| wrong_value(name, &text))
            };
            text.split(',').map(bit).try_fold(0, |bits, bit| bit.map(|bit: u64| bits | bit))?
        }
        Value::Int(0..) | Value::UInt(_) => unsigned_of(value),
        Value::Double(_) | Value::Decimal(_) => return Err(wrong_type(name)),
        other => return Err(wrong_value(name, &text_of(other))),
    };
    if bits == 0 || bits >> words.len() != 0 {
        return Err(wrong_value(name, &text_of(value)));
    }
    let named = words.iter().enumerate().filter(|(position, _)| bits >> position & 1 == 1);
    Ok(named.map(|(_, word)| *word).collect::<Vec<_>>().join(","))
}

fn check_isolation(name: &str, value: &Value) -> Result<IsolationChoice> {
    let names = IsolationChoice::ALL.map(IsolationChoice::name);
    let found = check_choice(name, value, &names)?;
    IsolationChoice::from_name(found).ok_or_else(|| wrong_value(name, found))
}

fn check_switches(name: &str, value: &Value, old: &Value, switches: &[(&str, bool)]) -> Result<String> {
    let Value::Bytes(_) = value else {
        return Err(if value.is_null() { wrong_value(name, "NULL") } else { wrong_type(name) });
    };
    let old = text_of(old);
    let mut state: Vec<bool> = switches
        .iter()
        .map(|(switch, default)| {
            old.split(',')
                .filter_map(|item| item.split_once('='))
                .find(|(name, _)| name == switch)
                .map_or(*default, |(_, word)| word == "on")
        })
        .collect();
    let text = text_of(value);
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if item.eq_ignore_ascii_case("default") {
            state = switches.iter().map(|(_, default)| *default).collect();
            continue;
        }
        let (switch, word) = item.split_once('=').ok_or_else(|| wrong_value(name, item))?;
        let at = switches.iter().position(|(known, _)| known.eq_ignore_ascii_case(switch.trim()));
        let at = at.ok_or_else(|| wrong_value(name, item))?;
        state[at] = match word.trim().to_ascii_lowercase().as_str() {
            "on" => true,
            "off" => false,
            "default" => switches[at].1,
            _ => return Err(wrong_value(name, item)),
        };
    }
    Ok(switches_text(switches, |at, _| state[at]))
}

fn switches_text(switches: &[(&str, bool)], state: impl Fn(usize, bool) -> bool) -> String {
    let word = |(at, (name, default)): (usize, &(&str, bool))| {
        format!("{name}={}", if state(at, *default) { "on" } else { "off" })
    };
    switches.iter().enumerate().map(word).collect::<Vec<_>>().join(",")
}

/// A value as text; NULL gives `NULL`. Bytes that are not UTF-8 are replaced.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Decimal(value) => {
            let mut text = Vec::new();
            value.append_text(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => {
            let mut text = Vec::new();
            append_text(other.as_ref(), &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

/// A value as an unsigned integer; 0 for a negative number and for other types.
pub(crate) fn unsigned_of(value: &Value) -> u64 {
    match value {
        Value::Int(value) => (*value).max(0) as u64,
        Value::UInt(value) => *value,
        _ => 0,
    }
}

fn double_of(value: &Value) -> f64 {
    match value {
        Value::Int(value) => *value as f64,
        Value::UInt(value) => *value as f64,
        Value::Double(value) if value.is_finite() => *value,
        Value::Decimal(value) => value.to_double(),
        other => other.as_ref().to_double().unwrap_or(0.0),
    }
}

pub(super) fn wrong_value(name: &str, value: &str) -> Box<Error> {
    let quoted: String = value.chars().take(QUOTED_CHARACTERS_MAX).collect();
    let text = format!("Variable '{name}' can't be set to the value of '{quoted}'");
    Error::new(ErrorCode::WrongValueForVariable, text)
}

pub(super) fn wrong_type(name: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongTypeForVariable, format!("Incorrect argument type to variable '{name}'"))
}
