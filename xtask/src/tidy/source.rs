//! Reads the files to which the rules apply.

use std::fs;
use std::path::{Path, PathBuf};

use super::mask::{Keep, mask};

/// A Rust file.
pub struct SourceFile {
    /// Path relative to the root, with `/`.
    pub path: String,
    /// Content.
    pub text: String,
    /// Content in which comments and literals are replaced by spaces.
    pub code: String,
}

impl SourceFile {
    /// Creates a file from its path and content.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        SourceFile { path: path.into(), code: mask(&text, Keep::Code), text }
    }

    /// Whether the file may be long, because it contains tests or a generated table.
    pub fn is_test_or_table(&self) -> bool {
        let stem = self.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
        let folders = ["/tests/", "/tables/", "/generated/"];
        stem == "tests" || stem.ends_with("_tests") || folders.iter().any(|folder| self.path.contains(folder))
    }

    /// The name of the folder under `crates`; `None` for xtask.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// Every `.rs` file of the crates and of xtask, sorted by path.
///
/// # Errors
/// A folder or file cannot be read.
pub fn rust_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut paths = Vec::new();
    walk(&root.join("crates"), "rs", &mut paths)?;
    walk(&root.join("xtask"), "rs", &mut paths)?;
    paths.sort();
    paths.iter().map(|path| Ok(SourceFile::new(relative(root, path), read(path)?))).collect()
}

/// Path and text of every page: `docs`, README and CHANGELOG.
///
/// # Errors
/// A folder or file cannot be read.
pub fn documents(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut paths = Vec::new();
    walk(&root.join("docs"), "md", &mut paths)?;
    paths.extend(["README.md", "CHANGELOG.md"].map(|name| root.join(name)).into_iter().filter(|path| path.exists()));
    paths.sort();
    paths.iter().map(|path| Ok((relative(root, path), read(path)?))).collect()
}

fn walk(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                walk(&path, extension, into)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
