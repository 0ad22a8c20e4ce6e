//! Lengths of functions, by counting braces.

use super::Violation;
use super::mask::{line_of, word_positions};
use super::source::SourceFile;

const LINES_AIMED_AT: usize = 70;
const LINES_MAX: usize = 100;

/// A function over 70 lines is warned of; over 100 it fails. Tests are lists of cases and may be longer.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    if file.is_test_or_table() {
        return Vec::new();
    }
    let lengths = word_positions(&file.code, "fn").filter_map(|at| length(&file.code, at));
    let long = lengths.filter(|(_, _, lines)| *lines > LINES_AIMED_AT);
    long.map(|(name, line, lines)| {
        let place = format!("{}:{line}", file.path);
        if lines > LINES_MAX {
            Violation::new(place, format!("function {name} has {lines} lines; {LINES_MAX} is the most"))
        } else {
            Violation::warning(place, format!("function {name} has {lines} lines; aim for {LINES_AIMED_AT}"))
        }
    })
    .collect()
}

/// Name, first line and number of lines of the function whose `fn` is at that offset; none without a body.
fn length(code: &str, at: usize) -> Option<(&str, usize, usize)> {
    let rest = code[at + 2..].trim_start();
    let name_length = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    if name_length == 0 {
        return None;
    }
    let name = &rest[..name_length];
    let mut depth = 0_i32;
    // Brackets of the signature: a `;` inside them belongs to an array type.
    let mut nested = 0_i32;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if depth == 0 && nested == 0 => return None,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    let first = line_of(code, at);
                    return Some((name, first, line_of(code, offset) - first + 1));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn wanted(x: [u8; 2]) {{\n{}}}\n", "    { \"}\"; }\n".repeat(lines - 2))
    }

    fn found(text: &str) -> Vec<Violation> {
        check(&SourceFile::new("crates/sql/src/plan.rs", text))
    }

    #[test]
    fn seventy_lines_are_fine_then_a_warning_then_a_failure() {
        assert_eq!(found(&function(70)), []);
        let warnings = found(&function(71));
        assert!(warnings.len() == 1 && warnings[0].warning);
        let failures = found(&format!("{}\n{}", function(20), function(101)));
        assert!(failures.len() == 1 && !failures[0].warning, "{failures:?}");
        assert_eq!(failures[0].place, "crates/sql/src/plan.rs:22");
    }

    #[test]
    fn declarations_and_function_types_have_no_length() {
        let text = format!("trait T {{ fn bare(&self) -> u32; }}\nstruct S {{ f: fn(u32) -> u32 }}\n{}", function(10));
        assert_eq!(found(&text), []);
    }
}
