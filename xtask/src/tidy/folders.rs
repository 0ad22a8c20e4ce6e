//! Dependencies between the folders of a crate. Checks them against a table; tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::mask::{matching_brace, without_tests, word_positions};
use super::source::SourceFile;

/// For each folder of a crate, or file in the folder of `lib.rs`: the folders that it may use.
type Folders = &'static [(&'static str, &'static [&'static str])];

/// The crates that are checked. A folder may use only those that its row lists.
const ALLOWED: &[(&str, Folders)] = &[
    (
        "sql",
        &[
            ("access", &["parse"]),
            ("bind", &["access", "parse", "statistics"]),
            ("definition", &["bind", "mysql_catalog", "parse"]),
            ("execute", &["access", "bind", "mysql_catalog", "parse", "plan", "result", "statistics"]),
            ("mysql_catalog", &["parse", "statistics"]),
            ("parse", &[]),
            ("plan", &["access", "bind", "definition", "parse", "result", "statistics"]),
            ("result", &[]),
            ("session", &["access", "bind", "definition", "execute", "mysql_catalog", "parse", "plan", "result"]),
            ("statistics", &[]),
        ],
    ),
    (
        "front",
        &[
            ("account", &[]),
            ("admission", &[]),
            // The blocks in `connection` and `session_block` reach `mysql` and `native` only through
            // `protocol_table`. `mysql` and `native` do not use each other.
            ("connection", &["account", "protocol", "protocol_table"]),
            ("mysql", &["account", "protocol"]),
            ("native", &["account", "protocol"]),
            ("protocol", &["account"]),
            ("protocol_table", &["mysql", "native", "protocol"]),
            ("session_block", &["account", "admission", "protocol", "protocol_table"]),
        ],
    ),
    ("transaction", &[("ldm", &["query", "read"]), ("log", &[]), ("query", &["read"]), ("read", &[]), ("tc", &[])]),
    (
        "cluster",
        &[
            ("epoch", &["membership"]),
            ("main_block", &["epoch", "member", "membership"]),
            ("member", &["membership"]),
            ("membership", &[]),
            ("rep", &[]),
        ],
    ),
];

/// A dependency: the folder that uses, and the folder that is used.
type Arrow<'a> = (&'a str, &'a str);

/// Checks every crate in the table.
pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, folders) in ALLOWED {
        let cycle = |circle: Vec<&str>| {
            let what = format!("the table has a circle between {}", circle.join(", "));
            Violation::new(format!("crate {name}"), what)
        };
        violations.extend(check_crate(name, folders, files));
        violations.extend(cycles(folders).into_iter().map(cycle));
    }
    violations
}

fn check_crate(name: &str, folders: Folders, files: &[SourceFile]) -> Vec<Violation> {
    let source = format!("crates/{name}/src/");
    let inside: Vec<(&str, &SourceFile)> =
        files.iter().filter_map(|file| Some((file.path.strip_prefix(&source)?, file))).collect();
    let allowed = |from: &str| folders.iter().find(|(folder, _)| *folder == from).map(|(_, named)| *named);
    let place = |at: &str| format!("crates/{name}/src/{at}");
    let mut violations = Vec::new();
    let found = arrows(&inside);
    let for_tests = test_files(&inside);
    let present: BTreeSet<&str> =
        inside.iter().filter(|(path, _)| !for_tests.contains(path)).filter_map(|(path, _)| folder_of(path)).collect();
    for folder in &present {
        if allowed(folder).is_none() {
            violations.push(Violation::new(place(folder), "is not in the table of xtask/src/tidy/folders.rs"));
        }
    }
    for ((from, to), path) in &found {
        if allowed(from).is_some_and(|named| !named.contains(to)) {
            violations.push(Violation::new(place(path), format!("the folder {from} may not name {to}")));
        }
    }
    for (from, named) in folders {
        if !present.contains(from) {
            violations.push(Violation::new(place(from), "is in the table of folders and does not exist"));
        }
        for to in named.iter().filter(|to| !found.contains_key(&(*from, *to))) {
            violations.push(Violation::new(place(from), format!("does not name {to}; take it out of the table")));
        }
    }
    violations
}

/// Returns every dependency, with the first file that causes it. A name that `lib.rs` re-exports counts as
/// its folder.
fn arrows<'a>(files: &[(&'a str, &'a SourceFile)]) -> BTreeMap<Arrow<'a>, &'a str> {
    let folders: BTreeSet<&str> = files.iter().filter_map(|(path, _)| folder_of(path)).collect();
    let for_tests = test_files(files);
    let root = files.iter().find(|(path, _)| *path == "lib.rs");
    let passed_on = root.map(|(_, file)| reexported(&file.code)).unwrap_or_default();
    let mut arrows = BTreeMap::new();
    for (path, file) in files {
        let Some(from) = folder_of(path) else { continue };
        if for_tests.contains(path) {
            continue;
        }
        for named in names_of_root(path, &without_tests(&file.code)) {
            let to = folders.get(&*named).copied().or_else(|| {
                let folder = passed_on.get(&named)?;
                folders.get(&**folder).copied()
            });
            if let Some(to) = to.filter(|to| *to != from) {
                arrows.entry((from, to)).or_insert(*path);
            }
        }
    }
    arrows
}

/// The folder to which a path under `src` belongs, or the file if it is in the folder of `lib.rs`.
fn folder_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let folder = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(folder, "lib" | "main")).then_some(folder)
}

/// The files of modules that exist only in tests.
fn test_files<'a>(files: &[(&'a str, &SourceFile)]) -> BTreeSet<&'a str> {
    let modules: Vec<String> = files.iter().flat_map(|(path, file)| test_modules(path, &file.code)).collect();
    let below = |path: &str, module: &str| path.strip_prefix(module).is_some_and(|rest| rest.starts_with(['.', '/']));
    let paths = files.iter().map(|(path, _)| *path);
    paths.filter(|path| modules.iter().any(|module| below(path, module))).collect()
}

/// Modules that a file declares only for tests, as paths under `src` without `.rs`.
fn test_modules(path: &str, code: &str) -> Vec<String> {
    let module = path.strip_suffix(".rs").unwrap_or(path);
    let folder = match module.rsplit_once('/') {
        Some((folder, "mod")) => format!("{folder}/"),
        None if matches!(module, "lib" | "main") => String::new(),
        _ => format!("{module}/"),
    };
    let kept = without_tests(code);
    let declared = |text: &str| -> BTreeSet<String> {
        let names = word_positions(text, "mod").map(|at| text[at + 3..].trim_start());
        names
            .filter_map(|rest| Some(rest.split_once(';')?.0))
            .filter(|name| is_name(name))
            .map(str::to_string)
            .collect()
    };
    declared(code).difference(&declared(&kept)).map(|name| format!("{folder}{name}")).collect()
}

/// The first component of every path that starts at the crate's root: by `crate::x`, or by enough `super::`
/// to reach the root.
fn names_of_root(path: &str, code: &str) -> BTreeSet<String> {
    let module = path.strip_suffix(".rs").unwrap_or(path);
    let depth = module.split('/').count() - usize::from(module.ends_with("/mod"));
    let mut names = BTreeSet::new();
    for at in word_positions(code, "crate") {
        if let Some(rest) = code[at + 5..].strip_prefix("::") {
            names.extend(first_names(rest));
        }
    }
    let climb = "super::".repeat(depth);
    for (at, _) in code.match_indices(&climb) {
        let part_of_longer = code[..at].ends_with("super::");
        let rest = &code[at + climb.len()..];
        if !part_of_longer && !rest.starts_with("super::") {
            names.extend(first_names(rest));
        }
    }
    names
}

/// The first name of a path, or the first name of each path in its braces.
fn first_names(rest: &str) -> Vec<String> {
    let rest = rest.trim_start();
    if !rest.starts_with('{') {
        return vec![leading_name(rest).to_string()];
    }
    let Some(end) = matching_brace(rest, 0) else { return Vec::new() };
    let mut depth = 0;
    let parts = rest[1..end].split(|letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    parts.map(|part| leading_name(part.trim()).to_string()).filter(|name| !name.is_empty()).collect()
}

fn leading_name(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && leading_name(text) == text
}

/// The names that `lib.rs` re-exports with `pub use`, and the folder that each comes from.
fn reexported(code: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for at in word_positions(code, "use") {
        let Some((path, _)) = code[at + 3..].split_once(';') else { continue };
        let path = path.trim().trim_start_matches("crate::");
        let Some((folder, rest)) = path.split_once("::") else { continue };
        let words = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        names.extend(words.filter(|word| !word.is_empty()).map(|word| (word.to_string(), folder.to_string())));
    }
    names
}

/// The cycles of a table: groups of folders that depend on each other.
fn cycles<'a>(folders: &[(&'a str, &'a [&'a str])]) -> Vec<Vec<&'a str>> {
    let reach = |from: &'a str| {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(folder) = next.pop() {
            let named = folders.iter().find(|(name, _)| *name == folder).map_or(&[][..], |(_, named)| named);
            next.extend(named.iter().filter(|name| seen.insert(**name)));
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = folders.iter().map(|(name, _)| (*name, reach(name))).collect();
    let mut circles = BTreeSet::new();
    for (name, _) in folders.iter().filter(|(name, _)| reached[name].contains(name)) {
        let group = reached[name].iter().copied().filter(|other| reached[other].contains(name));
        circles.insert(group.collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(&str, SourceFile)> =
            files.iter().map(|(path, text)| (*path, SourceFile::new(*path, *text))).collect();
        let files: Vec<(&str, &SourceFile)> = files.iter().map(|(path, file)| (*path, file)).collect();
        arrows(&files).keys().map(|(from, to)| format!("{from} -> {to}")).collect()
    }

    #[test]
    fn paths_from_the_root_are_dependencies() {
        let others = [("bind/mod.rs", ""), ("parse/mod.rs", ""), ("session.rs", "")];
        for (path, text, expected) in [
            ("plan/mod.rs", "use crate::bind::Bound;", "plan -> bind"),
            ("plan/select/key.rs", "fn f() { crate::parse::shape::scan(); }", "plan -> parse"),
            ("plan/select.rs", "use crate::{plan::Plan, bind::{Bound, X}};", "plan -> bind"),
            ("plan/select.rs", "use super::super::bind::Bound;", "plan -> bind"),
            ("plan/mod.rs", "use super::session::Session;", "plan -> session"),
            ("session.rs", "use super::parse;", "session -> parse"),
        ] {
            let files: Vec<(&str, &str)> = others.iter().copied().filter(|(other, _)| *other != path).collect();
            assert_eq!(found(&[files, vec![(path, text)]].concat()), [expected], "{text}");
        }
    }

    #[test]
    fn the_own_folder_other_crates_and_comments_are_no_dependencies() {
        let text =
            "use super::key; use crate::plan::X; use model::bind::Y; // crate::bind\nfn f() { g(\"crate::bind\") }";
        assert_eq!(found(&[("bind/mod.rs", ""), ("plan/select.rs", text)]), [""; 0]);
    }

    #[test]
    fn tests_may_use_every_folder() {
        let inline = "#[cfg(test)]\nmod tests { use crate::bind::X; }\n#[cfg(test)]\nuse crate::bind::Y;";
        assert_eq!(found(&[("bind/mod.rs", ""), ("plan/mod.rs", inline)]), [""; 0]);
        let named = [
            ("bind/mod.rs", ""),
            ("plan/mod.rs", "#[cfg(test)]\nmod tests;\n#[cfg(test)] mod world;"),
            ("plan/tests/key.rs", "use crate::bind::X;"),
            ("plan/world.rs", "use crate::bind::X;"),
        ];
        assert_eq!(found(&named), [""; 0]);
    }

    #[test]
    fn names_that_the_root_reexports_count_as_their_folder() {
        let files = [
            ("lib.rs", "pub mod engine; pub use engine::{Engine, Settings};"),
            ("engine/mod.rs", ""),
            ("plan/mod.rs", "use crate::Engine;"),
        ];
        assert_eq!(found(&files), ["plan -> engine"]);
    }

    #[test]
    fn the_table_is_exact() {
        const FOLDERS: Folders = &[("bind", &["parse"]), ("gone", &[]), ("parse", &[])];
        let files: Vec<SourceFile> =
            [("bind/mod.rs", ""), ("parse/mod.rs", "use crate::bind::X;"), ("plan/mod.rs", "")]
                .map(|(path, text)| SourceFile::new(format!("crates/sql/src/{path}"), text))
                .into();
        let found: Vec<String> = check_crate("sql", FOLDERS, &files).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/sql/src/plan: is not in the table of xtask/src/tidy/folders.rs",
                "crates/sql/src/parse/mod.rs: the folder parse may not name bind",
                "crates/sql/src/bind: does not name parse; take it out of the table",
                "crates/sql/src/gone: is in the table of folders and does not exist",
            ]
        );
    }

    #[test]
    fn each_cycle_is_found_whole_and_once() {
        assert_eq!(cycles(&[("a", &["b"]), ("b", &["c"]), ("c", &[])]), Vec::<Vec<&str>>::new());
        assert_eq!(cycles(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]), [["a", "b", "c"]]);
    }
}
