//! Bytes that no client sends on purpose.

use crate::parse::Dialect;
use crate::parse::lexer::{Lexer, TokenKind};
use crate::parse::shape::{Shape, scan};
use crate::parse::{Statement, first_statement_end, parse, parse_next, parse_with_parameters};
use proptest::prelude::*;

/// Runs every function that reads a statement's bytes. Each must end, and none may panic.
fn read_in_every_way(text: &[u8]) {
    let mut lexer = Lexer::new(text, 0, Dialect::default());
    let mut end = 0;
    loop {
        let token = lexer.next_token();
        assert!(token.start >= end && token.end >= token.start, "tokens run forward");
        end = token.end;
        // A token has at least one byte, except the error for an executable comment that is open at the end.
        if token.kind == TokenKind::End || token.start == token.end {
            break;
        }
    }
    if let Err(error) = parse(text) {
        assert!(error.position <= text.len() && error.line >= 1);
        assert!(!error.to_string().is_empty());
    }
    let mut from = 0;
    while from < text.len() {
        match parse_next(text, from, Dialect::default()) {
            Ok(parsed) => {
                assert!(parsed.end > from, "each statement takes at least a byte");
                from = parsed.end;
            }
            Err(_) => break,
        }
    }
    separate_statements(text);
    let mut shape = Shape::new(7);
    scan(text, &mut shape);
    let _ = parse_with_parameters(text, &shape, Dialect::default());
}

/// Checks that statements are separated at the position where the parser ends them.
fn separate_statements(mut rest: &[u8]) {
    while let Some(end) = first_statement_end(rest, Dialect::default()) {
        assert_eq!(rest[end - 1], b';');
        assert_eq!(first_statement_end(&rest[..end - 1], Dialect::default()), None, "one statement is one");
        if let Ok(parsed) = parse_next(rest, 0, Dialect::default())
            && !matches!(parsed.statement, Statement::Unsupported(_))
        {
            // The parser also skips comments after the statement.
            assert!(parsed.end == end || parsed.end == rest.len());
        }
        rest = &rest[end..];
    }
}

/// Pieces of statements. Random texts consist of them, so that more than the first token is parsed.
const PIECES: &[&str] = &[
    "SELECT ",
    "INSERT INTO t ",
    "UPDATE t SET ",
    "DELETE FROM t ",
    "CREATE TABLE t ",
    "SHOW ",
    "SET ",
    "FROM t ",
    "WHERE ",
    "VALUES ",
    "IN ",
    "(",
    ")",
    ",",
    "a",
    "b.c",
    "5",
    "1.5",
    "2e3",
    "-",
    "'x'",
    "'y\\'",
    "\"",
    "`",
    "@",
    "@@",
    "?",
    ";",
    "=",
    "<",
    "*",
    "/",
    "/*",
    "*/",
    "/*!",
    "-- ",
    "#",
    "\n",
    " ",
    "NOT ",
    "NULL",
    "LIKE ",
    "BETWEEN ",
    "AND ",
    "ORDER BY ",
    "LIMIT ",
    "GROUP BY ",
    "INT ",
    "PRIMARY KEY ",
    "DEFAULT ",
    ".",
    "0x",
    "x'",
    "_utf8",
    "IS ",
    "CASE ",
    "WHEN ",
    "THEN ",
    "END ",
    "ON DUPLICATE KEY UPDATE ",
    "COUNT(",
    "CAST(",
    "AS ",
    "\u{e9}",
    "\0",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        read_in_every_way(&text);
    }

    #[test]
    fn arbitrary_pieces_of_statements_never_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        read_in_every_way(text.as_bytes());
    }

    #[test]
    fn truncated_and_modified_statements_never_panic(
        which in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let statements = super::corpus::listed_statements();
        let mut text = which.get(&statements).clone().into_bytes();
        text.truncate(cut.index(text.len() + 1));
        if !text.is_empty() {
            let place = place.index(text.len());
            text[place] = byte;
        }
        read_in_every_way(&text);
    }
}
