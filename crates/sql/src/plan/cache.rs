//! Hot path, budget 60 instructions a lookup besides comparing the text: the plans of statement shapes.
//! Bounded in number and in bytes: each set holds a few entries, the one used longest ago makes room for a
//! new one, and a full cache is emptied.
//!
//! A shape whose statements keep some literals (see `parse::lift`) has an entry that names them. Its plans
//! have keys of their own: the shape with the text of the kept literals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use junctor_model::schema::Dictionary;

use super::Plan;
use crate::parse::{Expression, Ordinal};

/// Sets of the cache; a power of two.
const SETS: usize = 512;
/// Plans of one set.
const WAYS: usize = 4;
/// Bytes of the longest normalised text that is kept.
const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of all entries, as far as they are counted. Beyond them the cache is emptied: that costs one
/// planning of each statement in use, and a workload that fills the cache with statements used once gains
/// nothing from it anyway.
const BYTES_MAX: usize = 16 << 20;
/// Plans of one shape with kept literals that may be made without one of them being used again. Beyond them
/// such statements are planned each time: their literals differ too much for plans to be of use.
const UNUSED_VARIANTS_MAX: u32 = 64;

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
    known: Known,
    bytes: usize,
    /// The dictionary that the plan was last compared with.
    dictionary_version: u64,
    used: u64,
}

/// The cached knowledge of a shape.
#[derive(Clone, Debug)]
pub enum Known {
    /// Its plan.
    Plan(Plan),
    /// It has a plan for each text of some of its literals, or none that lasts.
    Kept(Arc<KeptLiterals>),
}

/// The literals of a shape that are part of its statements' meaning.
#[derive(Debug, Default)]
pub struct KeptLiterals {
    /// Their ordinals in ascending order.
    pub ordinals: Box<[Ordinal]>,
    /// What only the session knows: parameters after those of the shape, of whose types there is a plan each.
    pub session_values: Box<[Expression]>,
    /// Plans that were made since one was used.
    unused: AtomicU32,
}

impl KeptLiterals {
    /// Statements of the shape keep these literals, and have these values of the session. With neither, they
    /// are planned each time.
    pub fn new(ordinals: &[Ordinal], session_values: Vec<Expression>) -> KeptLiterals {
        KeptLiterals { ordinals: ordinals.into(), session_values: session_values.into(), unused: AtomicU32::new(0) }
    }

    /// Whether a plan may be looked for and kept.
    pub fn has_plans(&self) -> bool {
        let has_parts = !self.ordinals.is_empty() || !self.session_values.is_empty();
        has_parts && self.unused.load(Ordering::Relaxed) < UNUSED_VARIANTS_MAX
    }

    /// A plan was found.
    pub fn note_use(&self) {
        self.unused.store(0, Ordering::Relaxed);
    }

    /// A plan was made.
    pub fn note_plan(&self) {
        self.unused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Known {
    fn is_current(&self, dictionary: &Dictionary) -> bool {
        match self {
            Known::Plan(plan) => plan.is_current(dictionary),
            // It depends on the text alone.
            Known::Kept(_) => true,
        }
    }

    fn bytes(&self, text: &[u8]) -> usize {
        match self {
            Known::Plan(plan) => plan.bytes(text),
            Known::Kept(kept) => {
                // A call or variable has a name of its own.
                let session_bytes = 2 * size_of_val(&*kept.session_values);
                size_of::<KeptLiterals>() + size_of_val(&*kept.ordinals) + session_bytes
            }
        }
    }
}

/// Plans by shape.
#[derive(Debug)]
pub struct PlanCache {
    entries: Vec<Option<Entry>>,
    /// Sum of the entries' bytes.
    bytes: usize,
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
        PlanCache { entries, bytes: 0, clock: 0, hits: 0, misses: 0 }
    }
}

impl PlanCache {
    /// The cached knowledge of a shape, unless the schema has changed since its plan was made.
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

    /// Keeps what is known of a shape.
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

    /// Forgets every stale plan, so that tables that are gone are not kept alive.
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

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[inline]
fn set_of(key: &PlanKey<'_>) -> usize {
    (key.hash[0] as usize & (SETS - 1)) * WAYS
}
