//! Prepared statements that the sessions of a block share: syntax tree, plan and text exist once for all
//! sessions that prepared the same text. The connections of a pool then read the same memory, and only the
//! first of them parses and plans. The cache is bounded in number of statements and in bytes of text. It is
//! set-associative: a new statement replaces the least recently used one of its set. When the byte limit is
//! reached, the whole cache is emptied. Sessions keep their own references to the statements that they use.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use junctor_model::schema::Dictionary;

use super::Plan;
use super::prepared::PreparedStatement;

/// Number of sets; a power of two.
const SETS: usize = 256;
/// Statements in a set.
const SET_ENTRIES: usize = 4;
/// Longest text that is shared, in bytes.
pub(crate) const SHARED_BYTES_MAX: usize = 2048;
/// Maximum bytes of all texts. It bounds the plans too, because the size of a plan grows with its text.
const ALL_BYTES_MAX: usize = 256 << 10;

/// The properties on which the plan of a prepared statement depends, except the schema and the kinds of its
/// parameters.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct StatementKey<'a> {
    /// The whole text.
    pub text: &'a [u8],
    /// The session's current database.
    pub database: Option<&'a str>,
    /// The session settings that affect plans, as one number.
    pub settings: u64,
}

impl StatementKey<'_> {
    fn is_of(&self, statement: &PreparedStatement) -> bool {
        statement.settings == self.settings
            && statement.database.as_deref() == self.database
            && *statement.text == *self.text
    }
}

#[derive(Debug)]
struct Entry {
    statement: Arc<PreparedStatement>,
    /// Value of `clock` at the last use.
    used: u64,
}

/// Statements with reusable plans, found by text, database and settings.
#[derive(Debug)]
pub(crate) struct SharedStatements {
    entries: Vec<Option<Entry>>,
    /// Bytes of the texts of all entries.
    bytes: usize,
    /// Number of lookups. Entries record it to tell which was used least recently.
    clock: u64,
}

impl Default for SharedStatements {
    fn default() -> SharedStatements {
        let mut entries = Vec::new();
        entries.resize_with(SETS * SET_ENTRIES, || None);
        SharedStatements { entries, bytes: 0, clock: 0 }
    }
}

impl SharedStatements {
    /// The statement with this key whose plan is correct for the kinds of its parameters, which the closure
    /// checks. A statement whose table has changed is dropped and not returned.
    pub(crate) fn get(
        &mut self,
        key: &StatementKey<'_>,
        has_kinds: impl Fn(&PreparedStatement) -> bool,
        dictionary: &Dictionary,
    ) -> Option<Arc<PreparedStatement>> {
        if key.text.len() > SHARED_BYTES_MAX {
            return None;
        }
        self.clock += 1;
        let set = set_of(key);
        for slot in &mut self.entries[set..set + SET_ENTRIES] {
            let Some(entry) = slot else { continue };
            if !key.is_of(&entry.statement) || !has_kinds(&entry.statement) {
                continue;
            }
            if !entry.statement.is_current(dictionary) {
                self.bytes -= entry.statement.text.len();
                *slot = None;
                continue;
            }
            entry.used = self.clock;
            return Some(Arc::clone(&entry.statement));
        }
        None
    }

    /// Adds a statement, unless it has no reusable plan or its text is too long.
    pub(crate) fn put(&mut self, key: &StatementKey<'_>, statement: &Arc<PreparedStatement>) {
        if statement.plan.is_none() || key.text.len() > SHARED_BYTES_MAX {
            return;
        }
        if self.bytes + key.text.len() > ALL_BYTES_MAX {
            self.entries.fill_with(|| None);
            self.bytes = 0;
        }
        let set = set_of(key);
        let slots = &mut self.entries[set..set + SET_ENTRIES];
        // An empty slot counts as never used, so it is taken before any entry is replaced.
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.used));
        if let Some(slot) = oldest {
            let replaced = slot.replace(Entry { statement: Arc::clone(statement), used: self.clock });
            self.bytes -= replaced.map_or(0, |entry| entry.statement.text.len());
            self.bytes += statement.text.len();
        }
    }

    /// Drops every statement of one table whose plan statistics have decided.
    pub(crate) fn forget_by_statistics(&mut self) {
        for slot in &mut self.entries {
            if let Some(entry) = slot
                && entry.statement.plan.as_ref().is_some_and(Plan::is_by_statistics)
            {
                self.bytes -= entry.statement.text.len();
                *slot = None;
            }
        }
    }

    /// Drops every statement with a stale plan, because a plan keeps the layout of a dropped table in memory.
    pub(crate) fn forget_stale(&mut self, dictionary: &Dictionary) {
        for slot in &mut self.entries {
            if let Some(entry) = slot
                && !entry.statement.is_current(dictionary)
            {
                self.bytes -= entry.statement.text.len();
                *slot = None;
            }
        }
    }
}

/// The set of a key. The hash has no secret, so a client can choose texts that collide. The only effect is
/// that other statements of the set are planned again.
fn set_of(key: &StatementKey<'_>) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (hasher.finish() as usize & (SETS - 1)) * SET_ENTRIES
}
