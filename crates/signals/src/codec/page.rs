//! The page `docs/generated/signals.md`, printed from the declarations.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::wire::Wire;
use crate::inbox::*;

/// The types that signals contain, each with its encoding.
#[derive(Debug, Default)]
pub(crate) struct Page {
    types: BTreeMap<&'static str, String>,
    /// Number, name, first version and fields.
    signals: Vec<(u16, &'static str, &'static str, String)>,
}

impl Page {
    /// Adds a type unless the page has it, and returns its name.
    pub(crate) fn add(&mut self, name: &'static str, describe: impl FnOnce(&mut Page) -> String) -> String {
        if !self.types.contains_key(name) {
            // The name is there before the description is made, because a type may contain itself.
            self.types.insert(name, String::new());
            let description = describe(self);
            self.types.insert(name, description);
        }
        name.into()
    }

    /// Adds a signal that crosses nodes. An empty first version stands for 1.
    pub(crate) fn add_signal<S: Wire>(&mut self, number: u16, name: &'static str, since: &'static str) {
        S::describe(self);
        let fields = self.types.remove(name).unwrap_or_default();
        self.signals.push((number, name, if since.is_empty() { "1" } else { since }, fields));
    }

    /// Number of signals so far.
    pub(crate) fn signals(&self) -> usize {
        self.signals.len()
    }
}

/// The types of the values in a tuple of pointers.
pub(crate) trait Types {
    fn names(page: &mut Page) -> Vec<String>;
}

macro_rules! types {
    ($($type:ident)*) => {
        impl<$($type: Wire),*> Types for ($(*const $type,)*) {
            fn names(page: &mut Page) -> Vec<String> {
                let _ = &page;
                vec![$($type::describe(page)),*]
            }
        }
    };
}

types! {}
types! { A }
types! { A B }
types! { A B C }
types! { A B C D }
types! { A B C D E }
types! { A B C D E F }
types! { A B C D E F G }
types! { A B C D E F G H }
types! { A B C D E F G H I }
types! { A B C D E F G H I J }
types! { A B C D E F G H I J K }
types! { A B C D E F G H I J K L }
types! { A B C D E F G H I J K L M }
types! { A B C D E F G H I J K L M N }
types! { A B C D E F G H I J K L M N O }
types! { A B C D E F G H I J K L M N O P }

/// The names of the types of a value's fields. `fields` is never called; it only names the fields.
pub(crate) fn types_of<V, T: Types>(page: &mut Page, fields: impl Fn(&V) -> Option<T>) -> Vec<String> {
    let _ = fields;
    T::names(page)
}

/// Fields with their forms and types, in the order in which they are sent.
pub(crate) fn fields(fields: &[(&str, &str)], types: Vec<String>) -> String {
    let field = |((name, form), of_type): (&(&str, &str), String)| match form.trim_start_matches("buffer").trim() {
        "returned" => format!("{name} (not sent)"),
        "" => format!("{name}: {of_type}"),
        form => format!("{name}: {of_type} ({form})"),
    };
    fields.iter().zip(types).map(field).collect::<Vec<_>>().join(", ")
}

/// Appends a variant of an enum.
pub(crate) fn choice(out: &mut String, tag: u8, (name, since): (&str, &str), fields: &str) {
    let comma = if out.is_empty() { "" } else { "; " };
    // Writing to a String cannot fail.
    let _ = write!(out, "{comma}{tag} {name}");
    if !fields.is_empty() {
        let _ = write!(out, " ({fields})");
    }
    if !since.is_empty() {
        let _ = write!(out, " {since}");
    }
}

/// Describes an inbox: notes the signals that cross nodes, and returns the names of the others.
type DescribeInbox = fn(&mut Page) -> Vec<&'static str>;

/// The text of `docs/generated/signals.md`.
pub fn signals_page() -> String {
    let mut page = Page::default();
    let inboxes: [(&str, DescribeInbox); 7] = [
        ("recv", RecvSignal::describe),
        ("sql", SqlSignal::describe),
        ("tc", TcSignal::describe),
        ("ldm", LdmSignal::describe),
        ("query", QuerySignal::describe),
        ("main", MainSignal::describe),
        ("log", LogSignal::describe),
    ];
    let mut crossing = String::new();
    let mut local = String::new();
    for (inbox, describe) in inboxes {
        let names = describe(&mut page);
        local.push_str(&format!("| {inbox} | {} |\n", names.join(", ")));
        for (number, name, since, fields) in std::mem::take(&mut page.signals) {
            crossing.push_str(&format!("| {number:#06x} | {inbox} | {name} | {since} | {fields} |\n"));
        }
    }
    let types = page.types.iter().map(|(name, description)| format!("| {name} | {description} |\n"));
    format!(
        "# Signals between nodes\n\nPrinted from the declarations in `crates/signals/src`; do not edit. \
         `docs/format.md` explains the notation.\n\n\
         ## Signals\n\n| number | to | signal | since version | fields |\n|---|---|---|---|---|\n{crossing}\n\
         ## Types\n\n| type | encoding |\n|---|---|\n{}\n\
         ## Signals that stay within their node\n\n| to | signals |\n|---|---|\n{local}",
        types.collect::<String>()
    )
}
