//! Checks the paths that pages name.

use super::Violation;

/// A quoted text with one of these prefixes is a path relative to the root of the repository.
const ROOTS: [&str; 8] = ["crates/", "docs/", "tests/", "xtask/", "bench/", ".ci/", "README", "CHANGELOG"];

/// Returns every path, in backticks or in a relative link of a page, that does not exist. `exists` is called
/// with paths relative to the root.
pub fn check_paths(page: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (number, line) in text.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2).filter_map(quoted_path);
        let linked = links(line).map(|target| resolve(folder, target));
        for path in quoted.map(str::to_string).chain(linked) {
            if !exists(&path) {
                let place = format!("{page}:{}", number + 1);
                violations.push(Violation::new(place, format!("names {path}, which does not exist")));
            }
        }
    }
    violations
}

/// The path at the start of a quoted text, if the text is a path. Patterns and placeholders are not.
fn quoted_path(text: &str) -> Option<&str> {
    let known = ROOTS.iter().any(|root| text.starts_with(root));
    let pattern = text.contains(|letter: char| "*{}<>$ ".contains(letter)) || text.contains("NNNN");
    // In `file.rs:12` and `file.rs::name` the path ends at the colon.
    let path = text.split(':').next().unwrap_or(text).trim_end_matches('/');
    (known && !pattern).then_some(path)
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or(""));
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Vec<String> {
        let known = ["crates/sql", "docs/style.md", "docs/decisions/0001-x.md", "README.md"];
        let found = check_paths("docs/decisions/page.md", text, |path| known.contains(&path));
        found.into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn paths_that_exist_are_fine() {
        assert!(
            missing("`crates/sql/` and `docs/style.md:12`, `crates/*/src`, `docs/decisions/NNNN-title.md`").is_empty()
        );
        assert!(
            missing("[style](../style.md#rules) [one](0001-x.md) [web](https://example.org/a) [top](#top)").is_empty()
        );
        assert!(missing("`select/from` and `SELECT 1`").is_empty());
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        assert_eq!(missing("see `crates/gone/src`"), ["names crates/gone/src, which does not exist"]);
        assert_eq!(missing("see [it](../gone.md)"), ["names docs/gone.md, which does not exist"]);
    }
}
