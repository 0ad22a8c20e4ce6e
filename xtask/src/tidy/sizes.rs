//! Checks the length of files, and the first line of files on the hot path.

use super::Violation;
use super::source::SourceFile;

const LINES_MAX: usize = 1200;
const LINES_WITHOUT_REASON_MAX: usize = 800;

/// A file of more than 800 lines must give a reason in its first paragraph. More than 1,200 lines are always
/// a violation.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let lines = file.text.lines().count();
    if file.is_test_or_table() || lines <= LINES_WITHOUT_REASON_MAX {
        return Vec::new();
    }
    if lines > LINES_MAX {
        return vec![Violation::new(&*file.path, format!("{lines} lines; {LINES_MAX} is the most"))];
    }
    if first_paragraph(&file.text).contains("because") {
        return Vec::new();
    }
    let what = format!("{lines} lines, and its first paragraph does not say why (a sentence with \"because\")");
    vec![Violation::new(&*file.path, what)]
}

/// A file that calls itself hot must name its budget in the same line.
pub fn check_hot_path(file: &SourceFile) -> Option<Violation> {
    let first = file.text.lines().next().unwrap_or("");
    let hot = first.strip_prefix("//! Hot path")?.to_ascii_lowercase();
    let says = ["budget", "at most", "instruction"].iter().any(|word| hot.contains(word));
    (!says).then(|| Violation::new(format!("{}:1", file.path), "a hot path names its budget in its first line"))
}

fn first_paragraph(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).take_while(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, head: &str, lines: usize) -> SourceFile {
        SourceFile::new(path, format!("{head}\n{}", "//\n".repeat(lines - 1)))
    }

    #[test]
    fn a_long_file_needs_a_reason_and_a_very_long_one_has_none() {
        let path = "crates/sql/src/plan.rs";
        assert_eq!(check(&file(path, "//! A plan.", 800)), []);
        assert_eq!(check(&file(path, "//! A plan.", 801)).len(), 1);
        assert_eq!(check(&file(path, "//! One file because one match.", 1200)), []);
        assert_eq!(check(&file(path, "//! A plan.\n//!\n//! Later because.", 900)).len(), 1);
        assert_eq!(check(&file(path, "//! One file because one match.", 1201)).len(), 1);
    }

    #[test]
    fn tests_and_tables_may_be_long() {
        for path in
            ["crates/sql/src/plan/tests.rs", "crates/sql/tests/all.rs", "crates/model/src/collation/tables/x.rs"]
        {
            assert_eq!(check(&file(path, "//! Cases.", 2000)), []);
        }
    }

    #[test]
    fn a_hot_path_without_a_budget_fails() {
        let check_first = |line: &str| check_hot_path(&file("crates/model/src/row.rs", line, 3)).is_some();
        assert!(check_first("//! Hot path. What a collation does."));
        assert!(!check_first("//! Hot path, budget 12 instructions a column."));
        assert!(!check_first("//! Hot path: at most 40 an item."));
        assert!(!check_first("//! A cold file."));
    }
}
