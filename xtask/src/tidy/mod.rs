//! `tidy`: the house rules that a program can check. Each check takes text and returns violations, so that it
//! can be tested without files. This file reads the tree and prints the results.

mod crate_levels;
mod dependencies;
mod documents;
mod folders;
mod mask;
mod prose;
mod safety;
mod sizes;
mod source;
mod symbols;
mod test_layout;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::generate;
use source::SourceFile;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path of the file, with the line number if the rule concerns one line.
    place: String,
    /// Description of the broken rule, as a sentence.
    what: String,
    /// Whether the violation is only printed and does not fail the check.
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

/// Checks the whole repository and prints the violations. Warnings are printed, but do not fail the check.
///
/// # Errors
/// The number of violations, or the reason why the tree cannot be read.
pub fn run() -> Result<(), String> {
    let root = generate::root();
    let files = source::rust_files(&root)?;
    let documents = source::documents(&root)?;
    let metadata = cargo_metadata(&root)?;
    let mut violations = crate_levels::check(&metadata)?;
    let dependencies = fs::read_to_string(root.join(dependencies::PAGE)).unwrap_or_default();
    violations.extend(dependencies::check(&metadata, &dependencies)?);
    violations.extend(folders::check(&files));
    let listed = fs::read_to_string(root.join("docs/unsafe.md")).unwrap_or_default();
    violations.extend(files.iter().flat_map(|file| check_file(file, &listed)));
    for (path, text) in &documents {
        violations.extend(documents::check_paths(path, text, |named| root.join(named).exists()));
        if path.starts_with("docs/path-of-") {
            violations.extend(symbols::check(path, text, |named| fs::read_to_string(root.join(named)).ok()));
        }
    }
    violations.extend(check_generated(&root));
    violations.extend(check_prose(&files, &documents));
    violations.extend(test_layout::check(&files));
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

/// Prints every violation of the rules for prose and for the layout of tests, in one area (a crate, `xtask`
/// or `docs`) or in all of them.
///
/// # Errors
/// A file cannot be read.
pub fn list(area: Option<&str>) -> Result<(), String> {
    let root = generate::root();
    let files = source::rust_files(&root)?;
    let mut violations = check_prose(&files, &source::documents(&root)?);
    violations.extend(test_layout::check(&files));
    violations.retain(|violation| area.is_none_or(|area| prose::area(&violation.place) == area));
    for violation in &violations {
        println!("{violation}");
    }
    println!("{} places", violations.len());
    Ok(())
}

fn check_prose(files: &[SourceFile], documents: &[(String, String)]) -> Vec<Violation> {
    let comments = files.iter().flat_map(prose::check_comments);
    comments.chain(documents.iter().flat_map(|(path, text)| prose::check_page(path, text))).collect()
}

fn check_file(file: &SourceFile, unsafe_page: &str) -> Vec<Violation> {
    let mut violations = sizes::check(file);
    violations.extend(sizes::check_hot_path(file));
    violations.extend(safety::check(file, unsafe_page));
    violations.extend(words::check(file));
    violations.extend(words::check_kernel(file));
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
