//! Prepared statements that many sessions have in common: statement, plan and all, once for those of a block
//! that prepared the same text. So the connections of a pool share what their executions read, and all but
//! the first prepare without parsing and planning. Bounded in number (each set holds a few, and the one used
//! longest ago makes room) and in bytes of text; sessions keep theirs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use junctor_model::schema::Dictionary;

use super::prepared::PreparedStatement;
use crate::bind::ParameterKind;

/// Sets; a power of two.
const SETS: usize = 256;
/// Statements of one set.
const WAYS: usize = 4;
/// Bytes of the longest text that is shared.
pub(crate) const SHARED_BYTES_MAX: usize = 2048;
/// Bytes of all texts, since a long text may have a large plan.
const ALL_BYTES_MAX: usize = 256 << 10;

/// What a prepared statement depends on besides the schema.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct StatementKey<'a> {
    /// All of the text.
    pub text: &'a [u8],
    /// The session's database.
    pub database: Option<&'a str>,
    /// The session's settings that plans depend on, as one number.
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
    used: u64,
}

/// Statements with plans that last, by what they depend on.
#[derive(Debug)]
pub(crate) struct SharedStatements {
    entries: Vec<Option<Entry>>,
    /// Bytes of their texts.
    bytes: usize,
    clock: u64,
}

impl Default for SharedStatements {
    fn default() -> SharedStatements {
        let mut entries = Vec::new();
        entries.resize_with(SETS * WAYS, || None);
        SharedStatements { entries, bytes: 0, clock: 0 }
    }
}

impl SharedStatements {
    /// The statement of that key whose plan is for these kinds, if it is known and the schema is still what
    /// it was planned for.
    pub(crate) fn get(
        &mut self,
        key: &StatementKey<'_>,
        kinds: impl Fn(&[ParameterKind]) -> bool,
        dictionary: &Dictionary,
    ) -> Option<Arc<PreparedStatement>> {
        if key.text.len() > SHARED_BYTES_MAX {
            return None;
        }
        self.clock += 1;
        let set = set_of(key);
        for slot in &mut self.entries[set..set + WAYS] {
            let Some(entry) = slot else { continue };
            if !key.is_of(&entry.statement) || !kinds(&entry.statement.kinds) {
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

    /// Keeps a statement that has a plan that lasts.
    pub(crate) fn put(&mut self, key: &StatementKey<'_>, statement: &Arc<PreparedStatement>) {
        if statement.plan.is_none() || key.text.len() > SHARED_BYTES_MAX {
            return;
        }
        if self.bytes + key.text.len() > ALL_BYTES_MAX {
            self.entries.fill_with(|| None);
            self.bytes = 0;
        }
        let set = set_of(key);
        let slots = &mut self.entries[set..set + WAYS];
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.used));
        if let Some(slot) = oldest {
            let replaced = slot.replace(Entry { statement: Arc::clone(statement), used: self.clock });
            self.bytes -= replaced.map_or(0, |entry| entry.statement.text.len());
            self.bytes += statement.text.len();
        }
    }

    /// Forgets every statement whose plan is stale, so that tables that are gone are not kept alive.
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

/// Clients that choose texts for one set make each other's statements be planned again, and no more.
fn set_of(key: &StatementKey<'_>) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (hasher.finish() as usize & (SETS - 1)) * WAYS
}
