//! `generate`: writes the pages of `docs/generated`, from the tables that the code itself uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tested_by;

const ERROR_TABLE: &str = "crates/model/src/error.rs";
const COUNTER_TABLE: &str = "crates/signals/src/counter.rs";
const CRASH_POINT_TABLE: &str = "crates/signals/src/crash_point.rs";

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A page: its path relative to the root, and its text or the reason why the text cannot be made.
pub type Page = (&'static str, Result<String, String>);

/// Writes every page that can be printed.
///
/// # Errors
/// Names the page that cannot be printed or written.
pub fn run() -> Result<(), String> {
    let mut result = Ok(());
    for (path, page) in pages() {
        let written = page.and_then(|page| write(&root().join(path), &page));
        result = result.and(written.map_err(|error| format!("{path}: {error}")));
    }
    result
}

/// All generated pages.
pub fn pages() -> [Page; 8] {
    let source = |table: &str| fs::read_to_string(root().join(table)).map_err(|error| format!("{table}: {error}"));
    [
        ("docs/generated/errors.md", source(ERROR_TABLE).and_then(|source| errors_page(&source))),
        ("docs/generated/counters.md", source(COUNTER_TABLE).and_then(|source| counters_page(&source))),
        ("docs/generated/crash-points.md", source(CRASH_POINT_TABLE).and_then(|source| crash_points_page(&source))),
        (
            "docs/generated/functions.md",
            printed_page(&["junctor-expression", "--example", "functions_page"])
                .and_then(|page| tested_by::add_tests(&page, &root())),
        ),
        ("docs/generated/privileges.md", printed_page(&["junctor-sql", "--example", "privileges_page"])),
        ("docs/generated/signals.md", printed_page(&["junctor-signals", "--example", "signals_page"])),
        ("docs/generated/settings.md", printed_page(&["junctor", "--", "settings"])),
        ("docs/generated/autobench.md", printed_page(&["junctor", "--", "bench", "--list-keys"])),
    ]
}

fn write(path: &Path, page: &str) -> Result<(), String> {
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(|error| error.to_string())?;
    fs::write(path, page).map_err(|error| error.to_string())
}

/// Runs a program of a package, with the arguments of `cargo run` from the package's name on, and returns its
/// output.
fn printed_page(words: &[&str]) -> Result<String, String> {
    let shown = format!("cargo run -p {}", words.join(" "));
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package"])
        .args(words)
        .current_dir(root())
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = reason.lines().rev().take(3).collect();
        return Err(format!("{shown}: {}", last.join(" | ")));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{shown}: {error}"))
}

/// Makes the page of errors from the text of the `errors!` table: a doc comment, then `Name = errno,
/// "SQLSTATE";`.
pub fn errors_page(source: &str) -> Result<String, String> {
    let table = source.split_once("\nerrors! {\n").ok_or_else(|| format!("{ERROR_TABLE} has no errors! table"))?.1;
    let mut rows = Vec::new();
    let mut meaning = String::new();
    for line in table.lines().map(str::trim).take_while(|line| *line != "}") {
        if let Some(text) = line.strip_prefix("///") {
            if !meaning.is_empty() {
                meaning.push(' ');
            }
            meaning.push_str(text.trim());
        } else if let Some((name, rest)) = line.trim_end_matches(';').split_once(" = ") {
            let (errno, state) = rest.split_once(", ").ok_or_else(|| format!("{ERROR_TABLE}: {line}"))?;
            let number: u16 = errno.parse().map_err(|error| format!("{ERROR_TABLE}: {line}: {error}"))?;
            let meaning = std::mem::take(&mut meaning).replace('|', "\\|");
            rows.push((number, format!("| {number} | {} | {name} | {meaning} |\n", state.trim_matches('"'))));
        }
    }
    if rows.is_empty() {
        return Err(format!("{ERROR_TABLE}: the errors! table is empty"));
    }
    rows.sort();
    let head = format!(
        "# Errors\n\nPrinted from the table in `{ERROR_TABLE}`; do not edit.\n\n\
         | number | SQLSTATE | code | when |\n|---|---|---|---|\n"
    );
    Ok(head + &rows.into_iter().map(|(_, row)| row).collect::<String>())
}

/// Makes the page of counters from the text of the `counters!` table: `Name of "module" {`, then `name:
/// "Meaning.";` until `}`.
pub fn counters_page(source: &str) -> Result<String, String> {
    let missing = || format!("{COUNTER_TABLE} has no counters! table");
    let table = source.split_once("\ncounters! {\n").ok_or_else(missing)?.1;
    let mut rows = String::new();
    let mut module = "";
    for line in table.lines().take_while(|line| *line != "}").map(str::trim).filter(|line| *line != "}") {
        let wrong = || format!("{COUNTER_TABLE}: {line}");
        if let Some((_, rest)) = line.split_once(" of ")
            && line.ends_with('{')
        {
            module = rest.trim_end_matches(" {").trim_matches('"');
            continue;
        }
        let (name, meaning) = line.split_once(": ").ok_or_else(wrong)?;
        let meaning = meaning.strip_suffix("\";").and_then(|meaning| meaning.strip_prefix('"')).ok_or_else(wrong)?;
        rows.push_str(&format!("| {module} | {name} | {meaning} |\n"));
    }
    if rows.is_empty() {
        return Err(missing());
    }
    let head = format!(
        "# Counters\n\nThe rows of `junctor_info.counters`: each block of a module has those of the module, each thread those of \
         `thread`. Printed from the table in `{COUNTER_TABLE}`; do not edit.\n\n\
         | module | counter | what is counted |\n|---|---|---|\n"
    );
    Ok(head + &rows)
}

/// Makes the page of crash points from the text of the `crash_points!` table: `STEP = "name": "Meaning.";`.
pub fn crash_points_page(source: &str) -> Result<String, String> {
    let missing = || format!("{CRASH_POINT_TABLE} has no crash_points! table");
    let table = source.split_once("\ncrash_points! {\n").ok_or_else(missing)?.1;
    let mut rows = String::new();
    for line in table.lines().take_while(|line| *line != "}").map(str::trim) {
        let parts: Vec<&str> = line.split('"').collect();
        let [_, name, ": ", meaning, ";"] = parts[..] else { return Err(format!("{CRASH_POINT_TABLE}: {line}")) };
        rows.push_str(&format!("| {name} | {meaning} |\n"));
    }
    if rows.is_empty() {
        return Err(missing());
    }
    let head = format!(
        "# Crash points\n\nThe steps around which tests end a node. Each step has two points: `.before` and `.after`, for \
         example `log.write.before`.\nPrinted from the table in `{CRASH_POINT_TABLE}`; do not edit.\n\n\
         | step | what happens in it |\n|---|---|\n"
    );
    Ok(head + &rows)
}

#[cfg(test)]
mod tests {
    use super::{counters_page, crash_points_page, errors_page};

    const TABLE: &str = "macro\nerrors! {\n    /// Two\n    /// lines.\n    Second = 1050, \"42S01\";\n    \
                         /// One.\n    First = 1007, \"HY000\";\n}\nfn after() {}\n";

    #[test]
    fn errors_are_listed_by_number_with_their_meaning() {
        let page = errors_page(TABLE).expect("a good table");
        let rows: Vec<&str> = page.lines().skip(6).collect();
        assert_eq!(rows, ["| 1007 | HY000 | First | One. |", "| 1050 | 42S01 | Second | Two lines. |"]);
    }

    #[test]
    fn a_source_without_its_table_is_an_error() {
        assert!(errors_page("fn nothing() {}").is_err());
        assert!(errors_page("x\nerrors! {\n}\n").is_err());
    }

    #[test]
    fn crash_points_are_listed_by_step() {
        let source = "macro\ncrash_points! {\n    LOG_WRITE = \"log.write\": \"It writes.\";\n}\nfn after() {}\n";
        let page = crash_points_page(source).expect("a good table");
        assert_eq!(page.lines().skip(7).collect::<Vec<_>>(), ["| log.write | It writes. |"]);
        assert!(crash_points_page("fn nothing() {}").is_err());
        assert!(crash_points_page("x\ncrash_points! {\n    A = b;\n}\n").is_err());
    }

    #[test]
    fn counters_are_listed_in_their_order_with_their_module() {
        let source = "macro\ncounters! {\n    A of \"ldm\" {\n        rows: \"Rows of rows.\";\n    }\n    B of \"tc\" {\n        \
                      aborts: \"Undone.\";\n    }\n}\nfn after() {}\n";
        let page = counters_page(source).expect("a good table");
        let rows: Vec<&str> = page.lines().skip(6).collect();
        assert_eq!(rows, ["| ldm | rows | Rows of rows. |", "| tc | aborts | Undone. |"]);
        assert!(counters_page("fn nothing() {}").is_err());
        assert!(counters_page("x\ncounters! {\n    A of \"ldm\" {\n        rows;\n    }\n}\n").is_err());
    }
}
