//! Hot path: at most 60 instructions per lookup, not counting the comparison of the text.
//!
//! The plan cache of a sql block. It is set-associative and bounded in entries and bytes. A new entry
//! replaces the least recently used entry of its set. When the byte limit is reached, the whole cache is
//! emptied.
//!
//! The key of a plan is the statement's shape: its text with literals replaced by marks. For some shapes, the
//! plan depends on the text of certain literals, which are then kept in the statement (see `parse::lift`).
//! Such a shape has an entry that lists its kept literals, and an entry for each of its plans. The key of
//! such a plan is the shape, the texts of the kept literals and the types of session values. If session
//! values contain kept literals, an entry with the shape and the texts of the literals lists these values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use junctor_model::schema::Dictionary;

use super::{DigestNumber, Plan};
use crate::parse::ParameterNumber;
use crate::parse::session_value::SessionValue;

/// Number of sets; a power of two.
const SETS: usize = 512;
/// Number of entries in a set.
const SET_ENTRIES: usize = 4;
/// Maximum length of a key's text, in bytes. A statement with a longer one is not cached.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum of the estimated bytes of all entries. Beyond it the cache is emptied, so each statement in use is
/// planned once more. A workload of statements that are used once gains nothing from the cache anyway.
const BYTES_MAX: usize = 16 << 20;
/// Maximum number of plans made for one shape with kept literals since the last hit. Beyond it, the
/// statements of the shape are planned at each execution: their literals differ too much for cached plans to
/// be useful.
const VARIANTS_WITHOUT_HIT_MAX: u32 = 64;

/// The properties of a statement and its session on which a plan depends, in addition to the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey<'a> {
    /// Hash of `text`.
    pub hash: [u64; 2],
    /// The normalised text of the shape. If the shape has kept literals or session values, the texts of these
    /// literals and the types of these values follow.
    pub text: &'a [u8],
    /// The session's current database.
    pub database: &'a str,
    /// The session settings that affect plans, as one number.
    pub settings: u64,
    /// Whether VALUES has several rows, which the digest tells and the plan does not.
    pub has_several_rows: bool,
}

#[derive(Debug)]
struct Entry {
    hash: [u64; 2],
    settings: u64,
    database: Box<str>,
    text: Box<[u8]>,
    shape: CachedShape,
    /// The digests of statements with one row or no VALUES, and of those with several rows.
    digests: [DigestNumber; 2],
    bytes: usize,
    /// Version of the dictionary that the plan was last checked against.
    dictionary_version: u64,
    /// Value of `PlanCache::clock` at the last lookup.
    last_used: u64,
}

impl Entry {
    #[inline(always)]
    fn is_of(&self, key: &PlanKey<'_>) -> bool {
        self.hash == key.hash
            && self.settings == key.settings
            && *self.database == *key.database
            && *self.text == *key.text
    }
}

/// The content of the cache entry of a shape.
#[derive(Clone, Debug)]
pub enum CachedShape {
    /// The shape's only plan.
    Plan(Plan),
    /// The shape has one plan for each combination of kept literals and types of session values, under keys
    /// of their own; or no plan that can be cached.
    Variants(Arc<PlanVariants>),
}

/// The kept literals and session values of a shape, whose combinations have separate plans.
#[derive(Debug, Default)]
pub struct PlanVariants {
    /// Parameter numbers of the kept literals, in ascending order.
    pub ordinals: Box<[ParameterNumber]>,
    /// Expressions that only the session can evaluate, such as `NOW()`. They are parameters, numbered after
    /// those of the shape.
    pub(crate) session_values: Box<[SessionValue]>,
    /// Whether session values contain kept literals, as `NOW(6)` does. The shape's own entry then lists no
    /// session values; an entry for each text of the kept literals lists them.
    pub(crate) values_have_literals: bool,
    /// Number of plans made since a cached one was last used.
    plans_since_hit: AtomicU32,
}

impl PlanVariants {
    /// Creates the record of a shape. If both lists are empty, the statements of the shape are planned at
    /// each execution.
    pub(crate) fn new(ordinals: &[ParameterNumber], session_values: Vec<SessionValue>) -> PlanVariants {
        PlanVariants {
            ordinals: ordinals.into(),
            session_values: session_values.into(),
            values_have_literals: false,
            plans_since_hit: AtomicU32::new(0),
        }
    }

    /// Creates the record of a shape whose session values contain kept literals.
    pub(crate) fn with_values_of_literals(ordinals: &[ParameterNumber]) -> PlanVariants {
        PlanVariants { values_have_literals: true, ..PlanVariants::new(ordinals, Vec::new()) }
    }

    /// Whether plans of the shape are looked up and cached.
    pub fn has_plans(&self) -> bool {
        let has_parts = !self.ordinals.is_empty() || !self.session_values.is_empty();
        has_parts && self.plans_since_hit.load(Ordering::Relaxed) < VARIANTS_WITHOUT_HIT_MAX
    }

    /// Records a hit: a cached plan was used.
    pub fn note_use(&self) {
        self.plans_since_hit.store(0, Ordering::Relaxed);
    }

    /// Records that a plan was made.
    pub fn note_plan(&self) {
        self.plans_since_hit.fetch_add(1, Ordering::Relaxed);
    }
}

impl CachedShape {
    fn is_current(&self, dictionary: &Dictionary) -> bool {
        match self {
            CachedShape::Plan(plan) => plan.is_current(dictionary),
            // The choice of the kept literals depends on the text alone, not on the schema.
            CachedShape::Variants(_) => true,
        }
    }

    fn bytes(&self, text: &[u8]) -> usize {
        match self {
            CachedShape::Plan(plan) => plan.bytes(text),
            CachedShape::Variants(kept) => {
                // Twice the size, because a call or variable has its name in a second allocation.
                let session_bytes = 2 * size_of_val(&*kept.session_values);
                size_of::<PlanVariants>() + size_of_val(&*kept.ordinals) + session_bytes
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
    /// Number of lookups. Entries record it to tell which was used least recently.
    clock: u64,
    /// Number of lookups that found an entry.
    pub hits: u64,
    /// Number of lookups that found none.
    pub misses: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        let mut entries = Vec::new();
        entries.resize_with(SETS * SET_ENTRIES, || None);
        PlanCache { entries, bytes: 0, clock: 0, hits: 0, misses: 0 }
    }
}

impl PlanCache {
    /// Looks a shape up, with the digest of its statements. A plan whose table has changed is dropped and not
    /// returned.
    #[inline(always)]
    pub fn get(&mut self, key: &PlanKey<'_>, dictionary: &Dictionary) -> Option<(CachedShape, DigestNumber)> {
        self.clock += 1;
        let set = set_of(key);
        for slot in &mut self.entries[set..set + SET_ENTRIES] {
            let Some(entry) = slot else { continue };
            if !entry.is_of(key) {
                continue;
            }
            if entry.dictionary_version != dictionary.version {
                if !entry.shape.is_current(dictionary) {
                    self.bytes -= entry.bytes;
                    *slot = None;
                    break;
                }
                entry.dictionary_version = dictionary.version;
            }
            entry.last_used = self.clock;
            self.hits += 1;
            return Some((entry.shape.clone(), entry.digests[usize::from(key.has_several_rows)]));
        }
        self.misses += 1;
        None
    }

    /// Adds an entry, unless its text or its plan is too large.
    pub fn put(&mut self, key: &PlanKey<'_>, (shape, digest): (CachedShape, DigestNumber), dictionary: &Dictionary) {
        let mut digests = [DigestNumber::default(); 2];
        digests[usize::from(key.has_several_rows)] = digest;
        let bytes = size_of::<Entry>() + key.text.len() + key.database.len() + shape.bytes(key.text);
        if key.text.len() > TEXT_BYTES_MAX || bytes > BYTES_MAX {
            return;
        }
        if self.bytes + bytes > BYTES_MAX {
            self.entries.fill_with(|| None);
            self.bytes = 0;
        }
        let set = set_of(key);
        let slots = &mut self.entries[set..set + SET_ENTRIES];
        // An empty slot counts as never used, so it is taken before any entry is replaced.
        let oldest = slots.iter_mut().min_by_key(|slot| slot.as_ref().map_or(0, |entry| entry.last_used));
        if let Some(slot) = oldest {
            let replaced = slot.replace(Entry {
                hash: key.hash,
                settings: key.settings,
                database: key.database.into(),
                text: key.text.into(),
                shape,
                digests,
                bytes,
                dictionary_version: dictionary.version,
                last_used: self.clock,
            });
            self.bytes -= replaced.map_or(0, |entry| entry.bytes);
            self.bytes += bytes;
        }
    }

    /// Changes the digest of an entry, because its sql block has forgotten the one before.
    pub fn set_digest(&mut self, key: &PlanKey<'_>, digest: DigestNumber) {
        let set = set_of(key);
        for entry in self.entries[set..set + SET_ENTRIES].iter_mut().flatten() {
            if entry.is_of(key) {
                entry.digests[usize::from(key.has_several_rows)] = digest;
            }
        }
    }

    /// Drops every stale plan, because a plan keeps the layout of a dropped table in memory.
    pub fn forget_stale(&mut self, dictionary: &Dictionary) {
        for slot in &mut self.entries {
            if let Some(entry) = slot
                && !entry.shape.is_current(dictionary)
            {
                self.bytes -= entry.bytes;
                *slot = None;
            }
        }
    }

    /// Drops every plan that was made for other numbers of rows.
    pub fn forget_outdated(&mut self) {
        for slot in &mut self.entries {
            if let Some(Entry { shape: CachedShape::Plan(plan), bytes, .. }) = slot
                && let Plan::Tree(plan) = plan.unhinted()
                && plan.is_outdated.load(Ordering::Relaxed)
            {
                self.bytes -= *bytes;
                *slot = None;
            }
        }
    }

    /// Drops every plan of one table that statistics have decided.
    pub fn forget_by_statistics(&mut self) {
        for slot in &mut self.entries {
            if let Some(Entry { shape: CachedShape::Plan(plan), bytes, .. }) = slot
                && plan.is_by_statistics()
            {
                self.bytes -= *bytes;
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
    (key.hash[0] as usize & (SETS - 1)) * SET_ENTRIES
}
