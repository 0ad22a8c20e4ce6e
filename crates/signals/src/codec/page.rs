//! The page `docs/generated/signals.md`, printed from the declarations.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::OnceLock;

use super::wire::Wire;
use super::{NEXT_BYTES, THIS_VERSION, VERSION_MIN};
use crate::inbox::*;

/// The types that signals contain, each with its encoding.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Set for the layouts of one version: what later versions add is left out, and so are first versions,
    /// which a later release may forget.
    version: Option<u16>,
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
        let since = if since.is_empty() { "1" } else { since };
        if self.has(since) {
            self.signals.push((number, name, since, fields));
        }
    }

    /// Whether the page has a part with this form, which ends with its first version if it has one.
    fn has(&self, form: &str) -> bool {
        first_version(form).zip(self.version).is_none_or(|(since, version)| since <= version)
    }

    /// Whether the page shows this form.
    fn shows(&self, form: &str) -> bool {
        self.version.is_none() || first_version(form).is_none()
    }

    /// Fields with their forms and types, in the order in which they are sent.
    pub(crate) fn fields(&self, fields: &[(&str, &str)], types: Vec<String>) -> String {
        let field = |((name, form), of_type): (&(&str, &str), String)| {
            Some(match form.trim_start_matches("buffer").trim() {
                "returned" => format!("{name} (not sent)"),
                "" => format!("{name}: {of_type}"),
                form if !self.has(form) => return None,
                form if !self.shows(form) => format!("{name}: {of_type}"),
                form => format!("{name}: {of_type} ({form})"),
            })
        };
        fields.iter().zip(types).filter_map(field).collect::<Vec<_>>().join(", ")
    }

    /// Appends a variant of an enum.
    pub(crate) fn choice(&self, out: &mut String, tag: u8, (name, since): (&str, &str), fields: &str) {
        if !self.has(since) {
            return;
        }
        let comma = if out.is_empty() { "" } else { "; " };
        // Writing to a String cannot fail.
        let _ = write!(out, "{comma}{tag} {name}");
        if !fields.is_empty() {
            let _ = write!(out, " ({fields})");
        }
        if !since.is_empty() && self.shows(since) {
            let _ = write!(out, " {since}");
        }
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
types! { A B C D E F G H I J K L M N O P Q }

/// The names of the types of a value's fields. `fields` is never called; it only names the fields.
pub(crate) fn types_of<V, T: Types>(page: &mut Page, fields: impl Fn(&V) -> Option<T>) -> Vec<String> {
    let _ = fields;
    T::names(page)
}

/// The number at the end of a form.
fn first_version(form: &str) -> Option<u16> {
    form.rsplit(' ').next()?.parse().ok()
}

/// Describes an inbox: notes the signals that cross nodes, and returns the names of the others.
type DescribeInbox = fn(&mut Page) -> Vec<&'static str>;

impl Page {
    /// Describes all inboxes. Returns the signals that cross nodes, and those that do not.
    fn describe_all(&mut self) -> (String, String) {
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
            let names = describe(self);
            local.push_str(&format!("| {inbox} | {} |\n", names.join(", ")));
            for (number, name, since, fields) in std::mem::take(&mut self.signals) {
                let since = if self.version.is_none() { since } else { "" };
                crossing.push_str(&format!("| {number:#06x} | {inbox} | {name} | {since} | {fields} |\n"));
            }
        }
        (crossing, local)
    }

    /// The layouts of signals: these signals, and the types that they contain.
    fn layouts_of(&self, signals: String) -> String {
        let mut text = signals;
        let mut left: BTreeMap<&str, &str> = self.types.iter().map(|(name, fields)| (*name, fields.as_str())).collect();
        let mut begin = 0;
        while begin < text.len() {
            let added = text[begin..].to_owned();
            begin = text.len();
            for word in added.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                if let Some(fields) = left.remove(word) {
                    let _ = writeln!(text, "{word}: {fields}");
                }
            }
        }
        text
    }
}

/// The layouts of all signals in a version, as text.
pub(crate) fn layouts_text(version: u16) -> String {
    let mut page = Page { version: Some(version), ..Page::default() };
    let (crossing, _) = page.describe_all();
    page.layouts_of(crossing)
}

/// The fingerprint of the layouts of all signals in a version: an FNV-1a hash.
pub(crate) fn layouts(version: u16) -> u64 {
    static KNOWN: [OnceLock<u64>; 2] = [const { OnceLock::new() }; 2];
    let of = || {
        let text = layouts_text(version);
        let next = NEXT_BYTES.iter().filter(|_| version > THIS_VERSION);
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        text.as_bytes().iter().chain(next).fold(0xcbf2_9ce4_8422_2325, step)
    };
    match version.checked_sub(VERSION_MIN).and_then(|position| KNOWN.get(usize::from(position))) {
        Some(known) => *known.get_or_init(of),
        None => of(),
    }
}

/// The text of `docs/generated/signals.md`.
pub fn signals_page() -> String {
    let mut page = Page::default();
    let (crossing, local) = page.describe_all();
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

#[cfg(test)]
pub(crate) fn layouts_of<T: Wire>(version: u16) -> String {
    let mut page = Page { version: Some(version), ..Page::default() };
    let name = T::describe(&mut page);
    page.layouts_of(name)
}
