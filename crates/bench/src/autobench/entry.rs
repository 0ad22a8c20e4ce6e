//! Parses the lines of an `autobench.conf`: `KEY="value"` in shell syntax, without expansions.

use crate::{Failure, Outcome};

/// One assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the key.
    pub key: String,
    /// Value without quotes.
    pub value: String,
}

/// Reads all assignments of a file, in order.
///
/// # Errors
/// Names the first line that is neither empty nor a comment nor an assignment.
pub fn read_entries(text: &str) -> Outcome<Vec<Entry>> {
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let (key, value) = assignment(trimmed).map_err(|what| Failure::new(format!("line {}: {what}", number + 1)))?;
        entries.push(Entry { line: number + 1, key: key.into(), value });
    }
    Ok(entries)
}

fn assignment(line: &str) -> Result<(&str, String), String> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let Some((key, value)) = line.split_once('=') else {
        return Err(format!("{line}: neither KEY=\"value\" nor a comment"));
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.ends_with(char::is_whitespace) || value.starts_with(char::is_whitespace) && !is_end(value) {
        return Err(format!("{}: a shell takes no spaces around the sign =", key.trim_end()));
    }
    if key.is_empty() || !key.chars().all(is_name) || key.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{key}: a key has letters, digits and underscores"));
    }
    Ok((key, value_of(key, value)?))
}

/// Parses a sequence of quoted and unquoted parts, up to a space.
fn value_of(key: &str, mut rest: &str) -> Result<String, String> {
    let mut value = String::new();
    loop {
        let mut characters = rest.chars();
        match characters.next() {
            None => return Ok(value),
            Some(c) if c.is_whitespace() => {
                if is_end(rest) {
                    return Ok(value);
                }
                return Err(format!("{key}: text follows the value; a value with spaces needs quotes"));
            }
            Some(quote @ ('"' | '\'')) => {
                let Some((part, after)) = characters.as_str().split_once(quote) else {
                    return Err(format!("{key}: the quote {quote} is not closed on its line"));
                };
                if quote == '"' {
                    refuse_expansion(key, part)?;
                }
                value.push_str(part);
                rest = after;
            }
            Some(c) => {
                if c == ';' {
                    return Err(format!("{key}: a list with ; needs quotes, because a shell ends the value at the ;"));
                }
                refuse_expansion(key, &rest[..c.len_utf8()])?;
                value.push(c);
                rest = characters.as_str();
            }
        }
    }
}

fn refuse_expansion(key: &str, part: &str) -> Result<(), String> {
    match part.find(['$', '`', '\\']) {
        None => Ok(()),
        Some(place) => Err(format!("{key}: {} is not expanded here; write the resulting value", &part[place..=place])),
    }
}

/// Whether the line ends here, apart from a comment.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<String, String> {
        match read_entries(text) {
            Ok(entries) => Ok(entries[0].value.clone()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn values_are_read_with_any_quotes_and_without() {
        assert_eq!(one("A=\"1;2\"").as_deref(), Ok("1;2"));
        assert_eq!(one("A='1 $2'").as_deref(), Ok("1 $2"));
        assert_eq!(one("A=ndb").as_deref(), Ok("ndb"));
        assert_eq!(one("A=").as_deref(), Ok(""));
        assert_eq!(one("A=x\"y z\"'w'").as_deref(), Ok("xy zw"));
        assert_eq!(one("export A=\"1\"").as_deref(), Ok("1"));
        assert_eq!(one("A=\"1\"\r\n").as_deref(), Ok("1"));
    }

    #[test]
    fn comments_stand_alone_or_after_a_value() {
        let entries = read_entries("#\n# A=\"1\"\n\n  B=\"2\"  # two\nC= # none\nD=a#b\n").expect("good lines");
        let shown: Vec<(usize, &str, &str)> =
            entries.iter().map(|entry| (entry.line, entry.key.as_str(), entry.value.as_str())).collect();
        assert_eq!(shown, [(4, "B", "2"), (5, "C", ""), (6, "D", "a#b")]);
    }

    #[test]
    fn text_that_a_shell_would_expand_is_refused_with_its_line() {
        for (text, said) in [
            ("\nA = \"1\"", "line 2: A: a shell takes no spaces"),
            ("A=\"1", "line 1: A: the quote \" is not closed"),
            ("A=1;2", "line 1: A: a list with ; needs quotes"),
            ("A=\"1\" 2", "line 1: A: text follows the value"),
            ("A=\"$HOME/x\"", "line 1: A: $ is not expanded here"),
            ("A=`date`", "line 1: A: ` is not expanded here"),
            ("echo hello", "line 1: echo hello: neither KEY"),
            ("A-B=1", "line 1: A-B: a key has letters"),
            ("=1", "line 1: : a key has letters"),
        ] {
            let failure = one(text).expect_err(text);
            assert!(failure.starts_with(said), "{text}: {failure}");
        }
    }
}
