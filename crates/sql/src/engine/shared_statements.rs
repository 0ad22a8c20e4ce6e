//! Prepared statements that many sessions have in common: statement, plan and all, once for those of a block that prepared the same text.
//! So the connections of a pool share what their executions read, and all but the first prepare without parsing and planning. Bounded as
//! the plan cache is: each set holds a few, and the one used longest ago makes room; sessions keep theirs.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use junctor_model::schema::Dictionary;

use crate::bind::ParameterKind;
use crate::session::PreparedStatement;

/// Sets; a power of two.
const SETS: usize = 256;
/// Statements of one set.
const WAYS: usize = 4;

/// What a prepared statement depends on besides the schema.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct StatementKey<'a> {
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
    /// Texts are chosen by clients, so what they hash to is not to be foreseen.
    hashes: RandomState,
    clock: u64,
}

impl Default for SharedStatements {
    fn default() -> SharedStatements {
        let mut entries = Vec::new();
        entries.resize_with(SETS * WAYS, || None);
        SharedStatements { entries, hashes: RandomState::new(), clock: 0 }
    }
}

impl SharedStatements {
    /// The statement of that key whose plan is for these kinds, if it is known and the schema is still what it was planned for.
    pub(super) fn get(
        &mut self,
        key: &StatementKey<'_>,
        kinds: impl Fn(&[ParameterKind]) -> bool,
        dictionary: &Dictionary,
    ) -> Option<Arc<PreparedStatement>> {
        self.clock += 1;
        let set = self.set_of(key);
        for slot in &mut self.entries[set..set + WAYS] {
            let Some(entry) = slot else { continue };
            if !key.is_of(&entry.statement) || !kinds(&entry.statement.kinds) {
                continue;
            }
            if !entry.statement.is_current(dictionary) {
                *slot = None;
                continue;
            }
            entry.used = self.clock;
            return Some(Arc::clone(&entry.statement));
        }
        None
    }

    /// Keeps a statement that has a plan that lasts.
    pub(super) fn put(&mut self, key: &StatementKey<'_>, statement: &Arc<PreparedStatement>) {
        // What is kept of a long text does not tell it from others.
        if statement.plan.is_none() || !key.is_of(statement) {
            return;
        }
        let set = self.set_of(key);
        let slots = &mut self.entries[set..set + WAYS];
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.used));
        if let Some(slot) = oldest {
            *slot = Some(Entry { statement: Arc::clone(statement), used: self.clock });
        }
    }

    /// Forgets every statement whose plan is stale, so that tables that are gone are not kept alive.
    pub(super) fn forget_stale(&mut self, dictionary: &Dictionary) {
        for slot in &mut self.entries {
            if slot.as_ref().is_some_and(|entry| !entry.statement.is_current(dictionary)) {
                *slot = None;
            }
        }
    }

    fn set_of(&self, key: &StatementKey<'_>) -> usize {
        (self.hashes.hash_one(key) as usize & (SETS - 1)) * WAYS
    }
}
