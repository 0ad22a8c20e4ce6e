//! Checks where tests are placed (docs/style.md, "Tests").

use std::collections::BTreeSet;

use super::Violation;
use super::mask::{line_of, matching_brace, word_positions};
use super::source::SourceFile;

/// Maximum length of `tests.rs`, in lines. A longer one must become a folder with one file per topic.
const FILE_LINES_MAX: usize = 800;
/// Maximum length of an inline test module in lines, unless the code above it is longer.
const INLINE_LINES_MAX: usize = 300;
/// Files that `tests/interleavings.sh` finds by these names.
const NAMED_MODULES: [&str; 2] = ["loom_tests.rs", "shuttle_tests.rs"];

/// Checks the place and the length of all tests.
pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    files.iter().filter_map(|file| check_path(&file.path, &paths).or_else(|| check_length(file))).collect()
}

fn check_path(path: &str, paths: &BTreeSet<&str>) -> Option<Violation> {
    // In a crate's folder `tests`, each file is a program of its own.
    let (folder, name) = path.rsplit_once('/')?;
    let stem = name.strip_suffix(".rs")?;
    let below = format!("{folder}/{stem}/");
    let beside = paths.range(&*below..).next().is_some_and(|next| next.starts_with(&below));
    let what = if stem.ends_with("_tests") && !NAMED_MODULES.contains(&name) {
        format!("tests of a topic stand in tests/{}.rs, those of a folder in tests.rs", stem.trim_end_matches("_tests"))
    } else if beside && !is_integration_test(path) && !matches!(stem, "lib" | "main") {
        format!("stands beside the folder {stem}/; make it {stem}/mod.rs")
    } else if folder.ends_with("/tests") && !is_integration_test(path) && !paths.contains(&*format!("{folder}/mod.rs"))
    {
        "stands in a folder of tests without mod.rs".into()
    } else {
        return None;
    };
    Some(Violation::new(path, what))
}

fn is_integration_test(path: &str) -> bool {
    path.strip_prefix("crates/").and_then(|rest| rest.split('/').nth(1)) == Some("tests")
}

fn check_length(file: &SourceFile) -> Option<Violation> {
    let lines = file.text.lines().count();
    if file.path.ends_with("/tests.rs") && lines > FILE_LINES_MAX {
        let what =
            format!("{lines} lines of tests; over {FILE_LINES_MAX}, make it tests/mod.rs and a file for each topic");
        return Some(Violation::new(&*file.path, what));
    }
    let at = word_positions(&file.code, "mod").find(|at| file.code[at + 3..].trim_start().starts_with("tests {"))?;
    let open = at + file.code[at..].find('{')?;
    let first = line_of(&file.code, at);
    let tests = line_of(&file.code, matching_brace(&file.code, open)?) - first + 1;
    let what = format!("{tests} lines of tests inside, more than code; make the file a folder with tests.rs");
    let long = tests > INLINE_LINES_MAX && tests > lines - tests;
    long.then(|| Violation::new(format!("{}:{first}", file.path), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> Vec<String> {
        let files: Vec<SourceFile> = paths.iter().map(|path| SourceFile::new(*path, "")).collect();
        check(&files).into_iter().map(|violation| violation.place).collect()
    }

    #[test]
    fn the_allowed_places_pass() {
        let paths = [
            "crates/sql/src/lib.rs",
            "crates/sql/src/parse/mod.rs",
            "crates/sql/src/parse/tests.rs",
            "crates/sql/src/plan/mod.rs",
            "crates/sql/src/plan/tests/foreign_key.rs",
            "crates/sql/src/plan/tests/mod.rs",
            "crates/sql/src/snapshot/loom_tests.rs",
            "crates/sql/tests/hostile.rs",
            "crates/sql/tests/hostile/flood.rs",
        ];
        assert_eq!(found(&paths), [""; 0]);
    }

    #[test]
    fn files_named_tests_of_something_and_files_beside_their_folder_are_found() {
        assert_eq!(found(&["crates/sql/src/lock_tests.rs"]), ["crates/sql/src/lock_tests.rs"]);
        assert_eq!(found(&["crates/sql/src/key.rs", "crates/sql/src/key/tests.rs"]), ["crates/sql/src/key.rs"]);
        assert_eq!(found(&["crates/sql/src/key.rs", "crates/sql/src/key_part/mod.rs"]), [""; 0]);
        assert_eq!(found(&["crates/sql/src/tests/key.rs"]), ["crates/sql/src/tests/key.rs"]);
    }

    #[test]
    fn long_tests_get_files_of_their_own() {
        let length = |path: &str, text: String| check(&[SourceFile::new(path, text)]).len();
        assert_eq!(length("crates/sql/src/tests.rs", "//\n".repeat(800)), 0);
        assert_eq!(length("crates/sql/src/tests.rs", "//\n".repeat(801)), 1);
        let inline = |code: usize, tests: usize| {
            format!("{}mod tests {{\n{}}}\n", "fn f() {}\n".repeat(code), "fn t() {}\n".repeat(tests - 2))
        };
        assert_eq!(length("crates/sql/src/key.rs", inline(10, 300)), 0);
        assert_eq!(length("crates/sql/src/key.rs", inline(301, 301)), 0);
        assert_eq!(length("crates/sql/src/key.rs", inline(300, 301)), 1);
    }
}
