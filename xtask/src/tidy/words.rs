//! Words that must not be in the code.

use super::Violation;
use super::mask::{Keep, line_of, mask, word_positions};
use super::source::SourceFile;

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
const MARKS: [&str; 2] = ["TODO", "FIXME"];
const NAMES: [&str; 7] = ["util", "utils", "common", "manager", "helper", "helpers", "managers"];

/// Unfinished code, and names of files and modules that say nothing.
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
    fn names_that_say_nothing_fail() {
        assert_eq!(found("crates/sql/src/utils.rs", ""), 1);
        assert_eq!(found("crates/sql/src/common/plan.rs", ""), 1);
        assert_eq!(found("crates/sql/src/lib.rs", "mod row_helper { }"), 1);
        assert_eq!(found("crates/sql/src/commonplace.rs", "mod uncommon;"), 0);
    }
}
