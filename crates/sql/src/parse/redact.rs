//! Texts of statements as logs may keep them: without passwords. And the statements that the audit log keeps.

use std::borrow::Cow;

use super::dialect::Dialect;
use super::lexer::{Lexer, Token, TokenKind};

/// What stands in a log in place of a string that may be a password.
const SECRET: &[u8] = b"<secret>";

/// The words that make every string of a text a possible password.
const SECRET_WORDS: &[&[u8]] =
    &[b"IDENTIFIED", b"PASSWORD", b"MASTER_PASSWORD", b"SOURCE_PASSWORD", b"SECRET", b"VALIDATE_PASSWORD_STRENGTH"];

/// The text without passwords. If it has a word such as IDENTIFIED or PASSWORD, every string is replaced, as
/// is everything from the first bytes on that form no token. A text that does not parse is treated alike.
pub fn without_passwords(text: &[u8], dialect: Dialect) -> Cow<'_, [u8]> {
    match may_have_password(text, dialect) {
        true => Cow::Owned(without_strings(text, dialect)),
        false => Cow::Borrowed(text),
    }
}

/// Whether a text has a word such as IDENTIFIED or PASSWORD.
pub(super) fn may_have_password(text: &[u8], dialect: Dialect) -> bool {
    let is_secret = |token: &Token| SECRET_WORDS.iter().any(|word| word.eq_ignore_ascii_case(bytes_of(text, token)));
    tokens(text, dialect).any(|token| is_secret(&token))
}

/// The text, or a part of one that begins with a token, in which every string is replaced, as is everything
/// from the first bytes on that form no token.
pub(super) fn without_strings(text: &[u8], dialect: Dialect) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    let mut copied = 0;
    for token in tokens(text, dialect) {
        let is_text = matches!(
            token.kind,
            TokenKind::String | TokenKind::NationalString | TokenKind::Hexadecimal | TokenKind::Bits
        );
        // With ANSI_QUOTES, the string of a mistaken client is a name.
        let is_text = is_text || token.kind == TokenKind::QuotedName && bytes_of(text, &token).starts_with(b"\"");
        if is_text || token.kind == TokenKind::Bad {
            shown.extend_from_slice(text.get(copied..token.start as usize).unwrap_or(&[]));
            shown.extend_from_slice(SECRET);
            copied = token.end as usize;
        }
        if token.kind == TokenKind::Bad {
            return shown;
        }
    }
    shown.extend_from_slice(text.get(copied..).unwrap_or(&[]));
    shown
}

/// The name under which the audit log keeps a text: `rights`, `schema`, or `settings`. `None` if it keeps the
/// text under no name. A text of several statements has the name of the first that has one.
pub fn audited(text: &[u8], dialect: Dialect) -> Option<&'static str> {
    let mut words: [&[u8]; 2] = [b"", b""];
    let mut count = 0;
    for token in tokens(text, dialect) {
        if bytes_of(text, &token) == b";" {
            count = 0;
            continue;
        }
        if count < words.len() {
            words[count] = bytes_of(text, &token);
        }
        count += 1;
        if count == words.len()
            && let Some(name) = name_of(words[0], words[1])
        {
            return Some(name);
        }
    }
    None
}

fn name_of(first: &[u8], second: &[u8]) -> Option<&'static str> {
    let is = |word: &[u8], other: &str| word.eq_ignore_ascii_case(other.as_bytes());
    let is_any = |word: &[u8], others: &[&str]| others.iter().any(|other| is(word, other));
    if is_any(first, &["GRANT", "REVOKE"]) || is(first, "SET") && is_any(second, &["PASSWORD", "DEFAULT", "ROLE"]) {
        return Some("rights");
    }
    if is_any(first, &["CREATE", "ALTER", "DROP", "RENAME"]) && is_any(second, &["USER", "ROLE"]) {
        return Some("rights");
    }
    if is_any(first, &["CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"]) {
        return Some("schema");
    }
    if is(first, "SET") && is_any(second, &["GLOBAL", "PERSIST", "PERSIST_ONLY", "@@"])
        || is_any(first, &["RESET", "FLUSH"])
    {
        return Some("settings");
    }
    None
}

fn tokens(text: &[u8], dialect: Dialect) -> impl Iterator<Item = Token> {
    let mut lexer = Lexer::new(text, 0, dialect);
    let mut is_over = false;
    std::iter::from_fn(move || {
        let token = lexer.next_token();
        let is_last = token.kind == TokenKind::End || std::mem::replace(&mut is_over, token.kind == TokenKind::Bad);
        (!is_last).then_some(token)
    })
}

fn bytes_of<'t>(text: &'t [u8], token: &Token) -> &'t [u8] {
    text.get(token.start as usize..token.end as usize).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        String::from_utf8_lossy(&without_passwords(text.as_bytes(), Dialect::default())).into_owned()
    }

    #[test]
    fn strings_beside_a_word_of_passwords_are_hidden() {
        for (text, expected) in [
            ("CREATE USER 'a'@'%' IDENTIFIED BY 'pw'", "CREATE USER <secret>@'%' IDENTIFIED BY <secret>"),
            ("ALTER USER a identified with x AS \"pw\"", "ALTER USER a identified with x AS <secret>"),
            ("SET PASSWORD = 'pw'", "SET PASSWORD = <secret>"),
            ("SET PASSWORD FOR a = PASSWORD(x'70')", "SET PASSWORD FOR a = PASSWORD(<secret>)"),
            ("/*!80000 CREATE USER a IDENTIFIED BY 'pw' */", "/*!80000 CREATE USER a IDENTIFIED BY <secret> */"),
            (
                "CREAT USER a IDENTIFIED BY 'pw', b IDENTIFIED BY 'p",
                "CREAT USER a IDENTIFIED BY <secret>, b IDENTIFIED BY <secret>",
            ),
            ("SELECT 'pw'", "SELECT 'pw'"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn the_audit_log_keeps_changes_of_rights_schema_and_settings() {
        for (text, name) in [
            ("grant select on *.* to a", Some("rights")),
            ("/* c */ CREATE USER a", Some("rights")),
            ("SET PASSWORD = 'x'", Some("rights")),
            ("/*!40000 ALTER TABLE t ENGINE=x */", Some("schema")),
            ("SELECT 1; TRUNCATE t", Some("schema")),
            ("SET GLOBAL general_log = 1", Some("settings")),
            ("SET @@GLOBAL.general_log = 1", Some("settings")),
            ("SET NAMES utf8mb4", None),
            ("SELECT 1", None),
            ("INSERT INTO t VALUES ('DROP TABLE t')", None),
            ("", None),
        ] {
            assert_eq!(audited(text.as_bytes(), Dialect::default()), name, "{text}");
        }
    }
}
