//! Checks which files contain `unsafe`.

use super::Violation;
use super::mask::{line_of, word_positions};
use super::source::SourceFile;

const MAY_BE_UNSAFE: [&str; 2] = ["kernel", "storage"];

/// `unsafe` may occur only in files of the crates kernel and storage that `docs/unsafe.md` lists. The roots
/// of all other crates forbid it.
pub fn check(file: &SourceFile, unsafe_page: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let allowed = file.crate_name().is_some_and(|name| MAY_BE_UNSAFE.contains(&name));
    if !allowed && is_crate_root(&file.path) && !file.code.contains("#![forbid(unsafe_code)]") {
        violations.push(Violation::new(&*file.path, "the root of the crate lacks #![forbid(unsafe_code)]"));
    }
    if let Some(at) = word_positions(&file.code, "unsafe").next() {
        let place = format!("{}:{}", file.path, line_of(&file.code, at));
        if !allowed {
            violations.push(Violation::new(place, "unsafe outside the crates kernel and storage"));
        } else if !unsafe_page.contains(&format!("`{}`", file.path)) {
            violations.push(Violation::new(place, "unsafe in a file that docs/unsafe.md does not list"));
        }
    }
    violations
}

fn is_crate_root(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or("");
    let folder = parts.next().unwrap_or("");
    matches!(name, "lib.rs" | "main.rs") && folder == "src" || folder == "bin"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str, page: &str) -> usize {
        check(&SourceFile::new(path, text), page).len()
    }

    #[test]
    fn unsafe_needs_its_crate_and_its_line_in_the_page() {
        let text = "fn f() { unsafe { g() } }";
        assert_eq!(found("crates/kernel/src/mailbox/mod.rs", text, "- `crates/kernel/src/mailbox/mod.rs`: rings"), 0);
        assert_eq!(found("crates/kernel/src/mailbox/mod.rs", text, "nothing"), 1);
        assert_eq!(found("crates/sql/src/plan.rs", text, "- `crates/sql/src/plan.rs`: rings"), 1);
    }

    #[test]
    fn the_word_in_text_is_not_code() {
        assert_eq!(found("crates/sql/src/plan.rs", "// unsafe\nconst A: &str = \"unsafe\";", ""), 0);
    }

    #[test]
    fn roots_of_safe_crates_forbid_it() {
        assert_eq!(found("crates/sql/src/lib.rs", "//! SQL.\n", ""), 1);
        assert_eq!(found("crates/sql/src/lib.rs", "//! SQL.\n#![forbid(unsafe_code)]\n", ""), 0);
        assert_eq!(found("crates/kernel/src/lib.rs", "//! Blocks.\n", ""), 0);
        assert_eq!(found("crates/sim/src/bin/sim.rs", "//! Runs.\n", ""), 1);
    }
}
