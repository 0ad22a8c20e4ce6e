//! Checks the symbols that the pages `docs/path-of-*.md` name, because readers follow these pages file by
//! file.
//!
//! A page names the symbols of a file in one of three forms. Only these forms are checked:
//! - `` `crates/sql/src/plan.rs` (`make_plan`, `Plan`) `` or with a colon, `` `crates/sql/src/plan.rs`:
//!   `make_plan` ``;
//! - `` `make_plan` in `crates/sql/src/plan.rs` ``;
//! - `` `Plan::make` (`crates/sql/src/plan.rs`) ``.

use super::Violation;
use super::mask::{Keep, line_of, mask, word_positions};

const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];

/// Returns every symbol that a page names and the file does not declare. `source` returns the text of a file.
pub fn check(page: &str, text: &str, source: impl Fn(&str) -> Option<String>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, path, symbol) in named(text) {
        // The check of paths reports a file that does not exist.
        let Some(source) = source(path) else { continue };
        let code = mask(&source, Keep::Code);
        if !is_declared(&code, symbol) {
            let what = format!("names {symbol}, which {path} does not declare");
            violations.push(Violation::new(format!("{page}:{}", line_of(text, at)), what));
        }
    }
    for (at, span) in spans(text) {
        let numbered = |(path, rest): (&str, &str)| path.ends_with(".rs") && rest.starts_with(|c: char| c.is_numeric());
        if span.split_once(':').is_some_and(numbered) {
            let what = "names a line of a file, which the next change moves; name a symbol";
            violations.push(Violation::new(format!("{page}:{}", line_of(text, at)), what));
        }
    }
    violations
}

/// Returns offset, file and symbol for every occurrence of the three forms.
fn named(text: &str) -> Vec<(usize, &str, &str)> {
    let spans = spans(text);
    let end = |index: usize| spans[index].0 + spans[index].1.len() + 1;
    let between = |index: usize| text.get(end(index)..spans.get(index + 1)?.0 - 1);
    let mut named = Vec::new();
    for (index, (_, path)) in spans.iter().enumerate().filter(|(_, (_, span))| is_file(span)) {
        if let Some(before) = index.checked_sub(1)
            && is_symbol(spans[before].1)
            && between(before).is_some_and(|gap| matches!(words(gap).as_str(), "in" | "("))
        {
            named.push((spans[before].0, *path, spans[before].1));
        }
        let mut separators = ["(", ":"].as_slice();
        let mut last = index;
        while between(last).is_some_and(|gap| separators.contains(&&*words(gap))) && is_symbol(spans[last + 1].1) {
            last += 1;
            named.push((spans[last].0, *path, spans[last].1));
            separators = &[",", "and", ", and"];
        }
    }
    named
}

/// The texts between backticks with their offsets. A block of code is one such text, and is neither a file
/// nor a symbol.
fn spans(text: &str) -> Vec<(usize, &str)> {
    let mut spans = Vec::new();
    let mut open = None;
    for (at, _) in text.match_indices('`') {
        match open.take() {
            Some(start) => spans.push((start, &text[start..at])),
            None => open = Some(at + 1),
        }
    }
    spans.retain(|(_, span)| !span.is_empty());
    spans
}

fn words(gap: &str) -> String {
    gap.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_file(span: &str) -> bool {
    (span.starts_with("crates/") || span.starts_with("xtask/")) && span.ends_with(".rs") && !span.contains(['*', ' '])
}

fn is_symbol(span: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|letter: char| letter.is_numeric())
            && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    span.split("::").all(part)
}

/// Whether the code declares the last component of a path such as `Type::method`, and names the components
/// before it.
fn is_declared(code: &str, symbol: &str) -> bool {
    let mut parts = symbol.rsplit("::");
    let last = parts.next().unwrap_or(symbol);
    let declares = |at: usize| {
        let before = code[..at].trim_end();
        let keyword = KEYWORDS.iter().any(|keyword| {
            before.strip_suffix(keyword).is_some_and(|rest| !rest.ends_with(|letter: char| letter.is_alphanumeric()))
        });
        keyword || before.ends_with("macro_rules!") || (symbol.contains("::") && is_variant(before, &code[at..], last))
    };
    word_positions(code, last).any(declares) && parts.all(|part| word_positions(code, part).next().is_some())
}

/// A variant or field follows an opening brace, a comma or an attribute.
fn is_variant(before: &str, from: &str, name: &str) -> bool {
    let after = from[name.len()..].trim_start();
    before.ends_with(['{', ',', ']']) && after.starts_with([',', '(', '{', '}', '=', ':']) && !after.starts_with("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "pub struct Plan { pub rows: u64 }\nenum Kind { Read, Write(u8) }\nimpl Plan { pub fn make() {} }\n\
                          fn run() { let gone = 1; }\nmacro_rules! table { () => {} }\n";

    fn found(text: &str) -> Vec<String> {
        let source = |path: &str| (path == "crates/sql/src/plan.rs").then(|| SOURCE.to_string());
        check("docs/path-of-a-read.md", text, source).into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn declared_symbols_are_fine_in_each_form() {
        for text in [
            "`crates/sql/src/plan.rs` (`Plan`, `run` and `table`) goes on",
            "`crates/sql/src/plan.rs`:\n`run`, `Plan::make`; `gone`",
            "the `Kind::Write`, then `Plan` in `crates/sql/src/plan.rs`",
            "`Plan::make` (`crates/sql/src/plan.rs`)",
            "`gone` and `crates/sql/src/plan.rs`",
            "`crates/sql/src/unknown.rs`: `gone`",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn symbols_that_are_not_declared_are_found_in_each_form() {
        for text in [
            "`crates/sql/src/plan.rs` (`run`, `gone`)",
            "`crates/sql/src/plan.rs`: `gone`",
            "`gone` in\n`crates/sql/src/plan.rs`",
            "`gone` (`crates/sql/src/plan.rs`)",
        ] {
            assert_eq!(found(text), ["names gone, which crates/sql/src/plan.rs does not declare"], "{text}");
        }
        assert_eq!(found("`crates/sql/src/plan.rs`: `Other::make`").len(), 1);
    }

    #[test]
    fn line_numbers_are_refused() {
        assert_eq!(found("see `crates/sql/src/plan.rs:12`").len(), 1);
    }
}
