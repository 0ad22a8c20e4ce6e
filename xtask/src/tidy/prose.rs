//! Rules for prose: which openings a sentence may not have, and how wide a line of a comment or page may be.

use super::Violation;
use super::mask::{Keep, mask};
use super::source::SourceFile;

/// Maximum width of a line in a comment or a page, in characters.
const COLUMNS_MAX: usize = 110;

/// Openings that force a reader to read the sentence twice. `...` stands for any words of the same sentence.
const OPENINGS_REFUSED: &[&str] = &[
    "Who",
    "Whoever",
    "What there is",
    "What is",
    "What was",
    "What has",
    "What comes",
    "So many",
    "So much",
    "So few",
    "Of the ... the",
    "Of so many",
    "Those of",
    "Those that",
    "That of",
    "For so many",
];

/// The prose of one line: its number from 1, its text without comment marks, and its width in characters, or
/// `None` if the line may be wide.
struct Line {
    number: usize,
    text: String,
    columns: Option<usize>,
}

/// Checks the comments of a Rust file.
pub fn check_comments(file: &SourceFile) -> Vec<Violation> {
    check(&file.path, &comments(file))
}

/// Checks a page in Markdown.
pub fn check_page(path: &str, text: &str) -> Vec<Violation> {
    check(path, &page_lines(path, text))
}

/// The area to which a file or page belongs: the folder of a crate, `xtask`, or `docs` for every page.
pub fn area(path: &str) -> &str {
    let inside = path.split(':').next().unwrap_or(path);
    match inside.strip_prefix("crates/") {
        Some(rest) => rest.split('/').next().unwrap_or(rest),
        None if inside.starts_with("xtask/") => "xtask",
        None => "docs",
    }
}

fn check(path: &str, lines: &[Line]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let place = || format!("{path}:{}", line.number);
        let next = lines.get(index + 1).filter(|next| next.number == line.number + 1);
        // A sentence may continue on the next line, which may hold the second half of an opening.
        let window = format!("{} {}", line.text, next.map_or("", |next| next.text.as_str()));
        if let Some(opening) = OPENINGS_REFUSED.iter().find(|opening| opens_with(&window, line.text.len(), opening)) {
            violations
                .push(Violation::new(place(), format!("a sentence begins with \"{opening}\"; see docs/style.md")));
        }
        if let Some(columns) = line.columns.filter(|columns| *columns > COLUMNS_MAX) {
            violations.push(Violation::new(place(), format!("prose of {columns} columns; {COLUMNS_MAX} is the most")));
        }
    }
    violations
}

/// Whether a sentence that starts in the first `length` bytes of `text` has this opening. The openings start
/// with a capital, which in prose occurs only at the start of a sentence.
fn opens_with(text: &str, length: usize, opening: &str) -> bool {
    let (head, tail) = opening.split_once(" ... ").unwrap_or((opening, ""));
    text.match_indices(head).filter(|(at, _)| *at < length).any(|(at, _)| {
        let rest = &text[at + head.len()..];
        let at_word_start = !text[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_`\"'".contains(letter));
        let at_word_end = rest.starts_with([' ', '\n']);
        let sentence = rest.split(['.', '?', ':', ';']).next().unwrap_or(rest);
        at_word_start && at_word_end && (tail.is_empty() || sentence.contains(&format!(" {tail} ")))
    })
}

fn comments(file: &SourceFile) -> Vec<Line> {
    let with_comments = mask(&file.text, Keep::CodeAndComments);
    let mut in_example = false;
    let mut lines = Vec::new();
    for (index, ((original, masked), code)) in
        file.text.lines().zip(with_comments.lines()).zip(file.code.lines()).enumerate()
    {
        let differs = masked.bytes().zip(code.bytes()).position(|(comment, code)| comment != code);
        let Some(start) = differs else { continue };
        let text = masked[start..].trim_start_matches(['/', '!', '*']).trim();
        if text.starts_with("```") {
            in_example = !in_example;
            continue;
        }
        if in_example {
            continue;
        }
        let measured = !text.contains("://") && !text.starts_with('|');
        let columns = measured.then(|| original.trim_end().chars().count());
        lines.push(Line { number: index + 1, text: mask_quoted(text), columns });
    }
    lines
}

fn page_lines(path: &str, text: &str) -> Vec<Line> {
    // A program prints these pages and does not wrap lines.
    let printed = path.contains("/generated/") || path == "docs/scale/figures.md";
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let link = line.contains("](") || line.contains("://");
        let measured = !printed && !link && !line.trim_start().starts_with('|');
        let columns = measured.then(|| line.trim_end().chars().count());
        lines.push(Line { number: index + 1, text: mask_quoted(line), columns });
    }
    lines
}

/// Replaces text between backticks or double quotes by hyphens, because it is quoted and not our own prose.
fn mask_quoted(text: &str) -> String {
    let mut quote = None;
    text.chars()
        .map(|letter| match quote {
            Some(open) if letter == open => {
                quote = None;
                letter
            }
            Some(_) => '-',
            None => {
                quote = matches!(letter, '`' | '"').then_some(letter);
                letter
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(comment: &str) -> usize {
        check_comments(&SourceFile::new("crates/sql/src/plan.rs", comment)).len()
    }

    #[test]
    fn every_refused_opening_is_found_in_each_kind_of_comment() {
        for opening in OPENINGS_REFUSED {
            let sentence = opening.replace("...", "rows of a request");
            for comment in ["//", "///", "//!"] {
                assert_eq!(found(&format!("{comment} {sentence} waits.\n")), 1, "{comment} {sentence}");
                assert_eq!(found(&format!("{comment} First. {sentence} waits.\n")), 1, "{sentence}");
                assert_eq!(found(&format!("{comment} - {sentence} waits.\n")), 1, "{sentence}");
            }
            assert_eq!(check_page("docs/x.md", &format!("One.\n\n{sentence} waits.\n")).len(), 1, "{sentence}");
        }
    }

    #[test]
    fn an_opening_may_be_split_over_two_lines() {
        assert_eq!(found("/// Of the rows of a request\n/// the last one.\n"), 1);
        assert_eq!(found("/// Of the rows of a request.\n/// Then the last one.\n"), 0);
    }

    #[test]
    fn the_same_words_inside_a_sentence_are_fine() {
        for text in [
            "// The session who waits.",
            "// Tells what is run, and what was.",
            "// Whose rows, Whatever, Sowhat.",
            "// The text `Who waits` is quoted, \"What is it\" too.",
            "fn f() { let text = \"Who waits.\"; }",
            "// Of the two rows, one.",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }

    #[test]
    fn comments_are_up_to_a_hundred_and_ten_columns_wide() {
        assert_eq!(found(&format!("    // {}\n", "x".repeat(103))), 0);
        assert_eq!(found(&format!("    // {}\n", "x".repeat(104))), 1);
        assert_eq!(found(&format!("let {} = 1;\n", "x".repeat(120))), 0);
        assert_eq!(found(&format!("{} // why\n", "x".repeat(110))), 1);
        assert_eq!(found(&format!("// see https://example.org/{}\n", "x".repeat(104))), 0);
        assert_eq!(found(&format!("/// ```\n/// {}\n/// ```\n", "x".repeat(120))), 0);
    }

    #[test]
    fn tables_code_and_links_of_pages_may_be_wide() {
        let wide = "x".repeat(120);
        assert_eq!(check_page("docs/x.md", &format!("{wide}\n")).len(), 1);
        for text in [format!("| {wide} |\n"), format!("```\n{wide}\n```\n"), format!("[{wide}](a.md)\n")] {
            assert_eq!(check_page("docs/x.md", &text).len(), 0, "{text}");
        }
        assert_eq!(check_page("docs/generated/x.md", &format!("{wide}\n")).len(), 0);
    }

    #[test]
    fn owners_are_crates_xtask_and_the_pages() {
        let paths = ["crates/sql/src/plan.rs:3", "xtask/src/main.rs", "docs/style.md:1", "README.md"];
        assert_eq!(paths.map(area), ["sql", "xtask", "docs", "docs"]);
    }
}
