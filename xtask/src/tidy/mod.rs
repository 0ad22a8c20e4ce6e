//! `tidy`: the house rules that a program can check. Each check takes text and gives violations, so that each is tested
//! alone; this file reads the tree and prints.

mod arrows;
mod documents;
mod functions;
mod mask;
mod safety;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::generate;
use source::SourceFile;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// File, and the line if the rule is about one.
    place: String,
    /// What is wrong, as a sentence.
    what: String,
    /// A warning is printed and fails nothing.
    warning: bool,
}

impl Violation {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Violation {
        Violation { place: place.into(), what: what.into(), warning: false }
    }

    fn warning(place: impl Into<String>, what: impl Into<String>) -> Violation {
        Violation { warning: true, ..Violation::new(place, what) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning: " } else { "" };
        write!(out, "{}: {kind}{}", self.place, self.what)
    }
}

/// Checks the whole repository and prints what is wrong.
///
/// # Errors
/// The number of violations, or why the tree cannot be read.
pub fn run() -> Result<(), String> {
    let root = generate::root();
    let mut violations = arrows::check(&cargo_metadata(&root)?)?;
    let listed = fs::read_to_string(root.join("docs/unsafe.md")).unwrap_or_default();
    for file in source::rust_files(&root)? {
        violations.extend(check_file(&file, &listed));
    }
    for (path, text) in source::documents(&root)? {
        violations.extend(documents::check_paths(&path, &text, |named| root.join(named).exists()));
    }
    violations.extend(check_generated(&root));
    violations.sort();
    for violation in &violations {
        eprintln!("{violation}");
    }
    let failures = violations.iter().filter(|violation| !violation.warning).count();
    if failures > 0 {
        return Err(format!("{failures} house rules are broken; docs/style.md says why they are there"));
    }
    Ok(())
}

fn check_file(file: &SourceFile, unsafe_page: &str) -> Vec<Violation> {
    let mut violations = sizes::check(file);
    violations.extend(sizes::check_hot_path(file));
    violations.extend(functions::check(file));
    violations.extend(safety::check(file, unsafe_page));
    violations.extend(words::check(file));
    violations
}

fn check_generated(root: &Path) -> Vec<Violation> {
    let stale = |(path, page): generate::Page| match page {
        Err(error) => Some(Violation::new(path, error)),
        Ok(page) if fs::read_to_string(root.join(path)).ok().as_deref() == Some(&*page) => None,
        Ok(_) => Some(Violation::new(path, "differs from the tables; run `cargo run -p xtask -- generate`")),
    };
    generate::pages().into_iter().filter_map(stale).collect()
}

fn cargo_metadata(root: &Path) -> Result<serde_json::Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}
