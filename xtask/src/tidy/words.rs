//! Checks for words that must not occur in code.

use super::Violation;
use super::mask::{Keep, line_of, mask, word_positions};
use super::source::SourceFile;

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
const MARKS: [&str; 2] = ["TODO", "FIXME"];
const NAMES: [&str; 7] = ["util", "utils", "common", "manager", "helper", "helpers", "managers"];

/// Words of the database domain. The kernel runs blocks, and must not depend on what the blocks do.
const DATABASE_WORDS: [&str; 24] = [
    "catalog",
    "column",
    "commit",
    "committed",
    "isolation",
    "ldm",
    "mvcc",
    "mysql",
    "partition",
    "queries",
    "query",
    "recv",
    "redo",
    "rep",
    "replica",
    "rows",
    "schema",
    "session",
    "snapshot",
    "sql",
    "statement",
    "tc",
    "transaction",
    "tuple",
];

/// Finds unfinished code, and names of files and modules that carry no meaning.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut found = |offset: usize, what: String| {
        violations.push(Violation::new(format!("{}:{}", file.path, line_of(&file.text, offset)), what));
    };
    for name in MACROS {
        for at in word_positions(&file.code, name).filter(|at| file.code[at + name.len()..].starts_with('!')) {
            found(at, format!("{name}! has no place in the code"));
        }
    }
    let with_comments = mask(&file.text, Keep::CodeAndComments);
    for mark in MARKS {
        for at in word_positions(&with_comments, mark) {
            found(at, format!("{mark}: do it, or open an issue"));
        }
    }
    for at in word_positions(&file.code, "mod") {
        let rest = file.code[at + 3..].trim_start();
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("");
        if says_nothing(name) {
            found(at, format!("module {name}: name it after what it holds"));
        }
    }
    let parts = file.path.trim_end_matches(".rs").split('/');
    if let Some(part) = parts.into_iter().find(|part| says_nothing(part)) {
        violations.push(Violation::new(&*file.path, format!("{part}: name it after what it holds")));
    }
    violations
}

/// Finds words of the database domain in the code and comments of crates/kernel. In a name such as
/// `row_count`, each part is a word.
pub fn check_kernel(file: &SourceFile) -> Vec<Violation> {
    if file.crate_name() != Some("kernel") {
        return Vec::new();
    }
    // `recv` is also the method of every channel of the standard library.
    let is_call = |at: usize| file.text[..at].ends_with('.') && file.text[at..].starts_with("recv(");
    find_words(&file.text, &DATABASE_WORDS)
        .filter(|(at, _)| !is_call(*at))
        .map(|(at, word)| {
            let place = format!("{}:{}", file.path, line_of(&file.text, at));
            let what = format!("{word} is a word of databases; the kernel knows none");
            // Only a warning in tests: their names and layouts still mention the modules above the kernel.
            if file.is_test_or_table() { Violation::warning(place, what) } else { Violation::new(place, what) }
        })
        .collect()
}

/// The words of the list that occur in the text, with their offsets. Capitals and underscores separate the
/// words of a name. A plural counts as the word.
fn find_words<'a>(text: &'a str, list: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    let bytes = text.as_bytes();
    let starts = (0..bytes.len()).filter(move |at| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        bytes[*at].is_ascii_alphabetic()
            && before.is_none_or(|before| {
                !before.is_ascii_alphabetic() || before.is_ascii_lowercase() && bytes[*at].is_ascii_uppercase()
            })
    });
    starts.filter_map(move |at| {
        let rest = &bytes[at..];
        let capitals = rest.len() > 1 && rest[0].is_ascii_uppercase() && rest[1].is_ascii_uppercase();
        let more = |byte: &&u8| if capitals { byte.is_ascii_uppercase() } else { byte.is_ascii_lowercase() };
        let length = 1 + rest[1..].iter().take_while(more).count();
        let word = text[at..at + length].to_ascii_lowercase();
        let found = list.iter().find(|listed| word == **listed || word.strip_suffix('s') == Some(listed))?;
        Some((at, *found))
    })
}

fn says_nothing(name: &str) -> bool {
    name.split('_').any(|word| NAMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn unfinished_code_fails() {
        let path = "crates/sql/src/plan.rs";
        for text in ["fn f() { todo!() }", "fn f() { unimplemented!(\"x\") }", "fn f() { dbg!(1); }", "// TODO: more"] {
            assert_eq!(found(path, text), 1, "{text}");
        }
        assert_eq!(found(path, "/* FIXME */ fn todo() {}"), 1);
        assert_eq!(found(path, "const WORDS: &str = \"TODO todo!()\";"), 0);
    }

    #[test]
    fn words_of_a_list_are_found_in_names_and_sentences() {
        let list = ["row", "table"];
        let count = |text: &str| find_words(text, &list).count();
        for text in ["a row", "row_count", "RowCount", "last_row", "LastRow", "ROWS_MAX", "Tables", "rows."] {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in ["arrow", "rowan", "stable", "tableau", "Growth", "THROWN"] {
            assert_eq!(count(text), 0, "{text}");
        }
        assert_eq!(find_words("x of two tables", &list).next(), Some((9, "table")));
    }

    #[test]
    fn meaningless_names_fail() {
        assert_eq!(found("crates/sql/src/utils.rs", ""), 1);
        assert_eq!(found("crates/sql/src/common/plan.rs", ""), 1);
        assert_eq!(found("crates/sql/src/lib.rs", "mod row_helper { }"), 1);
        assert_eq!(found("crates/sql/src/commonplace.rs", "mod uncommon;"), 0);
    }
}
