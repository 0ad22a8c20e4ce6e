//! The column "tested by" of `docs/generated/functions.md`, from the texts of the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const SIGNATURES: &str = "tests/differential/typed/functions.py";
const CASES: &str = "crates/expression/tests/golden/cases.txt";
const SCRIPTS: &str = "tests/sql";

/// Adds the column to the printed page. Beside a function stand the kinds of tests that call it.
///
/// # Errors
/// Names the file that cannot be read, or that has no list of functions.
pub fn add_tests(page: &str, root: &Path) -> Result<String, String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let signatures = read(SIGNATURES)?;
    let drawn = signatures.split_once("\nSIGNATURES = {\n").and_then(|(_, rest)| rest.split_once("\n}\n"));
    let (drawn, _) = drawn.ok_or_else(|| format!("{SIGNATURES} has no SIGNATURES"))?;
    let mut scripts = String::new();
    let folder = fs::read_dir(root.join(SCRIPTS)).map_err(|error| format!("{SCRIPTS}: {error}"))?;
    for file in folder.filter_map(Result::ok).map(|file| file.path()) {
        if file.extension().is_some_and(|extension| extension == "sql") {
            scripts.push_str(&fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?);
            scripts.push('\n');
        }
    }
    let mut units = String::new();
    collect_tests(&root.join("crates"), false, &mut units);
    let sources = [
        ("random", keys(drawn)),
        ("golden", called(&read(CASES)?)),
        ("scripts", called(&scripts)),
        ("unit", called(&units)),
    ];
    Ok(with_column(page, &sources))
}

fn with_column(page: &str, sources: &[(&str, BTreeSet<String>)]) -> String {
    const EXPLANATION: &str = "The last column has the kinds of tests that call a function: \"random\" statements, \
                               compared with MariaDB\n(`tests/differential/typed`); \"golden\" cases \
                               (`crates/expression/tests/golden`); \"scripts\" (`tests/sql`); \"unit\" tests,\nwhich \
                               are named only beside functions without the others.";
    let mut explained = false;
    let mut out = String::new();
    for line in page.lines() {
        if line.starts_with("## ") && !explained {
            explained = true;
            out.push_str(EXPLANATION);
            out.push_str("\n\n");
        }
        out.push_str(line);
        match line.strip_prefix("| ").and_then(|rest| rest.split_once(" |")) {
            Some(("function", _)) => out.push_str(" tested by |"),
            Some((name, _)) => {
                let mut kinds: Vec<&str> =
                    sources.iter().filter(|(_, names)| names.contains(name)).map(|(kind, _)| *kind).collect();
                kinds.retain(|kind| *kind != "unit" || !sources[..3].iter().any(|(_, names)| names.contains(name)));
                out.push_str(&format!(" {} |", kinds.join(", ")));
            }
            None if line.starts_with("|---") => out.push_str("---|"),
            None => {}
        }
        out.push('\n');
    }
    out
}

/// The keys of a dictionary of Python.
fn keys(dictionary: &str) -> BTreeSet<String> {
    dictionary
        .split('"')
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|pair| pair[1].starts_with(": "))
        .map(|pair| pair[0].to_owned())
        .collect()
}

/// The names before an opening parenthesis in upper case, and all names in upper case, which may be functions
/// without parentheses.
fn called(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut start = 0;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        if character.is_ascii_alphanumeric() || character == '_' {
            continue;
        }
        let word = &text[start..at];
        let stands_alone = word.contains('_') && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if !word.is_empty() && (character == '(' || stands_alone) {
            names.insert(word.to_ascii_uppercase());
        }
        start = at + character.len_utf8();
    }
    names
}

/// Appends the texts of all files of tests in a folder of crates.
fn collect_tests(folder: &Path, are_tests: bool, out: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            collect_tests(&path, are_tests || name == "tests", out);
        } else if name == "tests.rs" || are_tests && path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&fs::read_to_string(&path).unwrap_or_default());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_gets_the_tests_that_call_it() {
        let page = "# Functions\n\nHead.\n\n## Text\n\n| function | reads |\n|---|---|\n| LEFT |  |\n| MID |  |\n\n2 functions.\n";
        let sources = [
            ("random", keys("    \"LEFT\": (\"text\", \"text count\"), \"X\": (\"a\", None),")),
            ("golden", called("left('a', 1) => a\nCURRENT_DATE + 0 => 1")),
            ("scripts", called("SELECT amid(1);")),
            ("unit", called("\"LEFT(1) MID(2)\"")),
        ];
        let rows: Vec<String> = with_column(page, &sources).lines().map(str::to_owned).collect();
        assert!(rows.contains(&"| function | reads | tested by |".to_owned()));
        assert!(rows.contains(&"|---|---|---|".to_owned()));
        assert!(rows.contains(&"| LEFT |  | random, golden |".to_owned()));
        assert!(rows.contains(&"| MID |  | unit |".to_owned()));
        assert_eq!(rows.iter().filter(|row| row.starts_with("The last column")).count(), 1);
        assert!(called("a CURRENT_DATE b").contains("CURRENT_DATE"));
    }
}
