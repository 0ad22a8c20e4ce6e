//! Texts of statements: the parser takes any bytes, or refuses them with an error, in bounded stack and time.
//! A text whose shape is scanned has the parameters that the parser finds with it.
#![no_main]

use junctor_sql::parse::{self, Dialect, Shape, ShapeOutcome};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse::parse(bytes);
    let dialect = Dialect::default();
    let mut shape = Shape::new(7);
    if parse::scan(bytes, &mut shape) == ShapeOutcome::Cacheable {
        assert!(shape.normalised().len() <= bytes.len() + shape.literals().len() * 8 + 64);
        let _ = parse::parse_with_parameters(bytes, &shape, dialect);
    }
    // The statements of a text, one after the other.
    let mut from = 0;
    for _ in 0..64 {
        let Some(length) = bytes.get(from..).and_then(|rest| parse::first_statement_end(rest, dialect)) else { break };
        let _ = parse::parse_next(bytes, from, dialect);
        from += length.max(1);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(expression) = parse::parse_expression(text) {
            let _ = parse::expression_text(&expression);
        }
    }
});
