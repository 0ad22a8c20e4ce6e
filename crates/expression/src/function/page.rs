//! The generated page of functions.

use std::fmt::Write;

use super::registry::{Function, Setting, Volatility, all};

/// The text of `docs/generated/functions.md`.
pub fn functions_page() -> String {
    let mut page = String::from(
        "# Functions\n\nThe registry of functions: `crates/expression/src/function`. \"always\" equal arguments give \
         equal results, and\nthe function is allowed in generated columns and CHECK; within an \"execution\" of a \
         statement; \"never\": each\nevaluation may give another result or has an effect. Aggregates are not listed. \
         Printed from the registry; do not\nedit.\n",
    );
    let mut count = 0;
    for family in all().iter().filter(|family| family.functions.iter().any(is_callable)) {
        let _ = write!(
            page,
            "\n## {}\n\n| function | arguments | equal results | reads |\n|---|---|---|---|\n",
            family.title
        );
        let mut functions: Vec<&Function> = family.functions.iter().filter(|function| is_callable(function)).collect();
        functions.sort_unstable_by_key(|function| function.name);
        count += functions.len();
        for function in functions {
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} |",
                function.name,
                arguments(function),
                equal_results(function),
                settings(function)
            );
        }
    }
    let _ = write!(page, "\n{count} functions.\n");
    page
}

/// Whether a statement can call the function by its name.
fn is_callable(function: &Function) -> bool {
    !function.name.contains(' ') && !function.name.starts_with("TRIM_")
}

fn arguments(function: &Function) -> String {
    match (function.arguments_min, function.arguments_max) {
        (least, most) if least == most => least.to_string(),
        (least, super::ANY) => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    }
}

fn equal_results(function: &Function) -> &'static str {
    match function.volatility {
        Volatility::Immutable => "always",
        Volatility::Statement => "execution",
        Volatility::Row | Volatility::Stateful => "never",
    }
}

/// The system variables that the function reads.
fn settings(function: &Function) -> String {
    let names = function.settings.iter().filter_map(|setting| match setting {
        Setting::Variable(name) => Some(*name),
        Setting::Session(_) => None,
    });
    names.collect::<Vec<_>>().join(", ")
}
