//! Dependencies between crates: a crate may depend only on crates of lower levels in `docs/architecture.md`.

use serde_json::Value;

use super::Violation;

/// Each crate, and the crates on which it may depend.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("kernel", &[]),
    ("history", &[]),
    ("storage", &["model"]),
    ("expression", &["model"]),
    ("consensus", &["kernel"]),
    ("tls", &["kernel"]),
    ("signals", &["model", "kernel", "expression"]),
    ("transaction", &["storage", "expression", "signals", "kernel", "model"]),
    // gateway uses only the snapshot registry of storage.
    ("gateway", &["storage", "expression", "signals", "kernel", "model"]),
    ("cluster", &["consensus", "gateway", "storage", "signals", "kernel", "model"]),
    ("wire", &["model"]),
    ("client", &["wire", "model"]),
    ("sql", &["gateway", "wire", "signals", "expression", "model"]),
    ("front", &["sql", "gateway", "wire", "signals", "expression", "kernel", "model"]),
    // Every crate that sim may use, except the last three: node itself, history and backup.
    ("node", LOWER_LEVELS_OF_SIM.split_at(LOWER_LEVELS_OF_SIM.len() - 3).0),
    ("sim", LOWER_LEVELS_OF_SIM),
    ("bench", LOWER_LEVELS_OF_SERVER),
    ("backup", &["storage", "signals", "kernel", "model"]),
    // Only tests of server use storage: they write the files of an older disk.
    ("server", &["node", "bench", "backup", "tls", "storage", "kernel", "model"]),
    ("xtask", &[]),
];

/// Every crate that the simulator may use, and the simulator.
const LOWER_LEVELS_OF_SERVER: &[&str] = &[
    "model",
    "kernel",
    "storage",
    "expression",
    "signals",
    "transaction",
    "consensus",
    "tls",
    "gateway",
    "cluster",
    "wire",
    "client",
    "sql",
    "front",
    "node",
    "history",
    "backup",
    "sim",
];

const LOWER_LEVELS_OF_SIM: &[&str] = LOWER_LEVELS_OF_SERVER.split_at(LOWER_LEVELS_OF_SERVER.len() - 1).0;

/// Returns every dependency between crates in `cargo metadata --no-deps` that the table does not allow. Tests
/// count too.
///
/// # Errors
/// `metadata` is not in the form that `cargo metadata` prints.
pub fn check(metadata: &Value) -> Result<Vec<Violation>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let mut violations = Vec::new();
    for package in packages {
        let name = short_name(package["name"].as_str().ok_or("a package without a name")?);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            violations.push(Violation::new("Cargo.toml", format!("crate {name} is not in the table of xtask")));
            continue;
        };
        let dependencies = package["dependencies"].as_array().ok_or("a package without dependencies")?;
        for dependency in dependencies.iter().filter(|dependency| dependency["path"].is_string()) {
            let target = short_name(dependency["name"].as_str().ok_or("a dependency without a name")?);
            if !allowed.contains(&target) {
                violations.push(Violation::new(format!("crate {name}"), format!("may not depend on {target}")));
            }
        }
    }
    Ok(violations)
}

/// The folder of a package: `sql` for `junctor-sql`, and `server` for the binary `junctor`.
fn short_name(name: &str) -> &str {
    match name {
        "junctor" => "server",
        name => name.strip_prefix("junctor-").unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_dependency(package: &str, dependency: &str) -> Vec<Violation> {
        let metadata = json!({"packages": [{"name": package, "dependencies": [
            {"name": dependency, "path": "/somewhere"}, {"name": "clap", "path": null}]}]});
        check(&metadata).expect("good metadata")
    }

    #[test]
    fn dependencies_on_lower_levels_only_are_allowed() {
        assert_eq!(with_dependency("junctor-storage", "junctor-model"), []);
        assert_eq!(with_dependency("junctor-model", "junctor-storage").len(), 1);
        assert_eq!(with_dependency("junctor-sql", "junctor-storage").len(), 1);
        assert_eq!(with_dependency("junctor-front", "junctor-transaction").len(), 1);
        assert_eq!(with_dependency("junctor", "junctor-bench"), []);
        assert_eq!(with_dependency("junctor-bench", "junctor").len(), 1);
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_fails() {
        assert_eq!(with_dependency("junctor-surprise", "junctor-model").len(), 1);
    }

    #[test]
    fn node_may_depend_on_all_lower_levels_but_not_on_itself() {
        assert_eq!(with_dependency("junctor-node", "junctor-front"), []);
        assert_eq!(with_dependency("junctor-node", "junctor-sim").len(), 1);
    }
}
