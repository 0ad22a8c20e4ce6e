//! Checks that every external dependency has a line in the page of dependencies, and that every line names a
//! dependency.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;

/// The page, under the root.
pub const PAGE: &str = "docs/decisions/dependencies.md";

/// Compares the packages of `cargo metadata --no-deps` with the first column of the page's table. A cell may
/// list several names, separated by commas.
///
/// # Errors
/// `metadata` is not in the form that `cargo metadata` prints.
pub fn check(metadata: &Value, page: &str) -> Result<Vec<Violation>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let dependencies = packages.iter().flat_map(|package| package["dependencies"].as_array().into_iter().flatten());
    let outside = dependencies.filter(|dependency| !dependency["path"].is_string());
    let used: BTreeSet<&str> = outside.filter_map(|dependency| dependency["name"].as_str()).collect();
    let listed = listed(page);
    let missing = used.difference(&listed).map(|name| format!("has no line for the dependency {name}"));
    let stale = listed.difference(&used).map(|name| format!("has a line for {name}, which no crate uses"));
    Ok(missing.chain(stale).map(|what| Violation::new(PAGE, what)).collect())
}

fn listed(page: &str) -> BTreeSet<&str> {
    let rows = page.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.split('|').nth(1)).flat_map(|names| names.split(',')).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_the_page_and_of_the_packages_are_the_same() {
        let metadata = json!({"packages": [{"name": "junctor-sql", "dependencies": [
            {"name": "junctor-model", "path": "/somewhere"},
            {"name": "clap", "path": null},
            {"name": "rustix", "path": null},
        ]}]});
        let found = |row: &str| {
            let page = format!("# Page\n\n| crate | used by |\n|---|---|\n{row}\n");
            check(&metadata, &page).expect("good metadata").into_iter().map(|one| one.what).collect::<Vec<_>>()
        };
        assert_eq!(found("| clap, rustix | sql |"), [""; 0]);
        assert_eq!(found("| clap | sql |"), ["has no line for the dependency rustix"]);
        assert_eq!(found("| clap, gone, rustix | sql |"), ["has a line for gone, which no crate uses"]);
    }
}
