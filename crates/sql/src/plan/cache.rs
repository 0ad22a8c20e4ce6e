//! Hot path, budget 60 instructions a lookup without the comparison of the text: plans by statement shape.
//! The cache is bounded in entries and bytes. Each set holds a few entries, and a new entry replaces the
//! least recently used one. When the total of bytes is reached, the whole cache is emptied.
//!
//! A shape whose statements keep some literals (see `parse::lift`) has an entry that names those literals.
//! Its plans have their own keys: the shape, the text of the kept literals and the types of session values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use junctor_model::schema::Dictionary;

use super::Plan;
use crate::parse::{Expression, Ordinal};

/// Number of sets; a power of two.
const SETS: usize = 512;
/// Entries in a set.
const WAYS: usize = 4;
/// Longest normalised text that is cached, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum of the estimated bytes of all entries. Beyond it the cache is emptied. That costs one planning of
/// each statement in use. A workload that fills the cache with statements used once gains nothing from it.
const BYTES_MAX: usize = 16 << 20;
/// Number of plans for one shape with kept literals that may be made in a row without reuse of any. Beyond it
/// every statement of the shape is planned at each execution: the literals differ too much for the plans to
/// be useful.
const UNUSED_VARIANTS_MAX: u32 = 64;

/// Everything except the schema that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey<'a> {
    /// Hash of `text`.
    pub hash: [u64; 2],
    /// The normalised text. For a plan of a shape with kept literals or session values, the texts of these
    /// literals and the types of these values follow.
    pub text: &'a [u8],
    /// The session's current database.
    pub database: &'a str,
    /// The session settings that affect plans, as one number.
    pub settings: u64,
}

#[derive(Debug)]
struct Entry {
    hash: [u64; 2],
    settings: u64,
    database: Box<str>,
    text: Box<[u8]>,
    known: Known,
    bytes: usize,
    /// Version of the dictionary that the plan was last checked against.
    dictionary_version: u64,
    /// Value of the cache's clock at the last lookup.
    used: u64,
}

/// The cached knowledge about a shape.
#[derive(Clone, Debug)]
pub enum Known {
    /// The shape's only plan.
    Plan(Plan),
    /// The shape has a plan for each text of its kept literals and each combination of types of its session
    /// values, or no reusable plan.
    Kept(Arc<KeptLiterals>),
}

/// The literals of a shape that are part of the meaning of its statements.
#[derive(Debug, Default)]
pub struct KeptLiterals {
    /// Their ordinals in ascending order.
    pub ordinals: Box<[Ordinal]>,
    /// Expressions that only the session can evaluate. They are parameters after those of the shape, and each
    /// combination of their types has its own plan.
    pub session_values: Box<[Expression]>,
    /// Plans made since the last reuse of one.
    unused: AtomicU32,
}

impl KeptLiterals {
    /// Creates the record of a shape with these kept literals and session values. Without any, its statements
    /// are planned at each execution.
    pub fn new(ordinals: &[Ordinal], session_values: Vec<Expression>) -> KeptLiterals {
        KeptLiterals { ordinals: ordinals.into(), session_values: session_values.into(), unused: AtomicU32::new(0) }
    }

    /// Whether plans of the shape are looked up and cached.
    pub fn has_plans(&self) -> bool {
        let has_parts = !self.ordinals.is_empty() || !self.session_values.is_empty();
        has_parts && self.unused.load(Ordering::Relaxed) < UNUSED_VARIANTS_MAX
    }

    /// Records that a cached plan was reused.
    pub fn note_use(&self) {
        self.unused.store(0, Ordering::Relaxed);
    }

    /// Records that a plan was made.
    pub fn note_plan(&self) {
        self.unused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Known {
    fn is_current(&self, dictionary: &Dictionary) -> bool {
        match self {
            Known::Plan(plan) => plan.is_current(dictionary),
            // The kept literals follow from the text alone.
            Known::Kept(_) => true,
        }
    }

    fn bytes(&self, text: &[u8]) -> usize {
        match self {
            Known::Plan(plan) => plan.bytes(text),
            Known::Kept(kept) => {
                // A call or variable holds its name in a second allocation, here estimated as large as the
                // node.
                let session_bytes = 2 * size_of_val(&*kept.session_values);
                size_of::<KeptLiterals>() + size_of_val(&*kept.ordinals) + session_bytes
            }
        }
    }
}

/// Plans and kept literals by statement shape.
#[derive(Debug)]
pub struct PlanCache {
    entries: Vec<Option<Entry>>,
    /// Sum of the estimated bytes of the entries.
    bytes: usize,
    /// Number of lookups; it orders entries by their last use.
    clock: u64,
    /// Number of lookups that found an entry.
    pub hits: u64,
    /// Number of lookups that found none.
    pub misses: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        let mut entries = Vec::new();
        entries.resize_with(SETS * WAYS, || None);
        PlanCache { entries, bytes: 0, clock: 0, hits: 0, misses: 0 }
    }
}

impl PlanCache {
    /// The cached knowledge about a shape. A plan whose table has changed is dropped and not returned.
    #[inline(always)]
    pub fn get(&mut self, key: &PlanKey<'_>, dictionary: &Dictionary) -> Option<Known> {
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
                if !entry.known.is_current(dictionary) {
                    self.bytes -= entry.bytes;
                    *slot = None;
                    break;
                }
                entry.dictionary_version = dictionary.version;
            }
            entry.used = self.clock;
            self.hits += 1;
            return Some(entry.known.clone());
        }
        self.misses += 1;
        None
    }

    /// Caches the knowledge about a shape. A text or plan above the maximum is ignored.
    pub fn put(&mut self, key: &PlanKey<'_>, known: Known, dictionary: &Dictionary) {
        let bytes = size_of::<Entry>() + key.text.len() + key.database.len() + known.bytes(key.text);
        if key.text.len() > TEXT_BYTES_MAX || bytes > BYTES_MAX {
            return;
        }
        if self.bytes + bytes > BYTES_MAX {
            self.entries.fill_with(|| None);
            self.bytes = 0;
        }
        let set = set_of(key);
        let slots = &mut self.entries[set..set + WAYS];
        // An empty slot counts as never used, so it is taken before any entry is replaced.
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.used));
        if let Some(slot) = oldest {
            let replaced = slot.replace(Entry {
                hash: key.hash,
                settings: key.settings,
                database: key.database.into(),
                text: key.text.into(),
                known,
                bytes,
                dictionary_version: dictionary.version,
                used: self.clock,
            });
            self.bytes -= replaced.map_or(0, |entry| entry.bytes);
            self.bytes += bytes;
        }
    }

    /// Drops every stale plan, because a plan keeps the layout of a dropped table in memory.
    pub fn forget_stale(&mut self, dictionary: &Dictionary) {
        for slot in &mut self.entries {
            if let Some(entry) = slot
                && !entry.known.is_current(dictionary)
            {
                self.bytes -= entry.bytes;
                *slot = None;
            }
        }
    }

    /// Estimated bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[inline]
fn set_of(key: &PlanKey<'_>) -> usize {
    (key.hash[0] as usize & (SETS - 1)) * WAYS
}
