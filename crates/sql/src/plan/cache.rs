//! Hot path, budget 60 instructions a lookup besides comparing the text: the plans of statement shapes. Bounded: each set holds a
//! few, and the one used longest ago makes room.

use std::sync::Arc;

use junctor_model::schema::Dictionary;

use super::Plan;

/// Sets of the cache; a power of two.
const SETS: usize = 512;
/// Plans of one set.
const WAYS: usize = 4;
/// Bytes of the longest normalised text that is kept.
const TEXT_BYTES_MAX: usize = 4096;

/// What a plan depends on besides the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey<'a> {
    /// The hash of the normalised text.
    pub hash: [u64; 2],
    /// The normalised text.
    pub text: &'a [u8],
    /// The session's database.
    pub database: &'a str,
    /// The session's settings that plans depend on, as one number.
    pub settings: u64,
}

#[derive(Debug)]
struct Entry {
    hash: [u64; 2],
    settings: u64,
    database: Box<str>,
    text: Box<[u8]>,
    plan: Arc<Plan>,
    /// The dictionary that the plan was last compared with.
    dictionary_version: u64,
    used: u64,
}

/// Plans by shape.
#[derive(Debug)]
pub struct PlanCache {
    entries: Vec<Option<Entry>>,
    clock: u64,
    /// Lookups that found a plan.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        let mut entries = Vec::new();
        entries.resize_with(SETS * WAYS, || None);
        PlanCache { entries, clock: 0, hits: 0, misses: 0 }
    }
}

impl PlanCache {
    /// The plan of a shape, if there is one and the schema is still what it was made for.
    #[inline(always)]
    pub fn get(&mut self, key: &PlanKey<'_>, dictionary: &Dictionary) -> Option<Arc<Plan>> {
        self.clock += 1;
        let set = set_of(key);
        for slot in &mut self.entries[set..set + WAYS] {
            let Some(entry) = slot else { continue };
            let same = entry.hash == key.hash
                && entry.settings == key.settings
                && *entry.database == *key.database
                && *entry.text == *key.text;
            if !same {
                continue;
            }
            if entry.dictionary_version != dictionary.version {
                if !entry.plan.is_current(dictionary) {
                    *slot = None;
                    break;
                }
                entry.dictionary_version = dictionary.version;
            }
            entry.used = self.clock;
            self.hits += 1;
            return Some(Arc::clone(&entry.plan));
        }
        self.misses += 1;
        None
    }

    /// Keeps the plan of a shape.
    pub fn put(&mut self, key: &PlanKey<'_>, plan: Arc<Plan>, dictionary: &Dictionary) {
        if key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        let set = set_of(key);
        let slots = &mut self.entries[set..set + WAYS];
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.used));
        if let Some(slot) = oldest {
            *slot = Some(Entry {
                hash: key.hash,
                settings: key.settings,
                database: key.database.into(),
                text: key.text.into(),
                plan,
                dictionary_version: dictionary.version,
                used: self.clock,
            });
        }
    }

    /// Forgets every plan, so that tables that are gone are not kept alive.
    pub fn forget_stale(&mut self, dictionary: &Dictionary) {
        for slot in &mut self.entries {
            if slot.as_ref().is_some_and(|entry| !entry.plan.is_current(dictionary)) {
                *slot = None;
            }
        }
    }
}

#[inline]
fn set_of(key: &PlanKey<'_>) -> usize {
    (key.hash[0] as usize & (SETS - 1)) * WAYS
}
