//! The states of the two ends of a link: its version and its definitions.
//!
//! A program, a table's layout or a catalog is sent whole when a link first needs it, and then has a number:
//! definitions are counted from the beginning of the link. Later signals refer to it by its age, the number
//! of definitions since. Each end keeps the newest definitions, at most [`DEFINITIONS_MAX`] of them with at
//! most [`DEFINITION_BYTES_MAX`] encoded bytes, but always the newest one. Both ends count alike, so that
//! they forget the same definitions without a word about it. One that was forgotten is defined again.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use junctor_kernel::DecodeError;
use junctor_model::foreign_key::ForeignKeyWork;
use junctor_model::schema::TableLayout;

use super::wire::{Reader, Result, Wire, Writer};
use crate::change_schema::Catalog;
use crate::program::{ReadProgram, WriteProgram};

/// Maximum number of definitions that a link keeps.
pub const DEFINITIONS_MAX: usize = 4096;

/// Maximum number of encoded bytes of the definitions that a link keeps, unless it keeps only one.
pub const DEFINITION_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(DEFINITIONS_MAX <= u16::MAX as usize);

/// In place of the age of a definition: the definition follows.
const FOLLOWS: u16 = 0;

/// What a link can define.
#[derive(Clone, Debug)]
pub(super) enum Definition {
    Layout(Arc<TableLayout>),
    ForeignKeys(Arc<ForeignKeyWork>),
    Read(Arc<ReadProgram>),
    Write(Arc<WriteProgram>),
    Catalog(Arc<Catalog>),
}

/// A type whose shared values are defined once a link.
pub(super) trait Defined: Wire {
    /// The shared value as a definition.
    fn define(shared: Arc<Self>) -> Definition;

    /// The shared value, if the definition is of this type.
    fn of(definition: &Definition) -> Option<&Arc<Self>>;
}

macro_rules! defined {
    ($($variant:ident $type:ident;)*) => {$(
        impl Defined for $type {
            fn define(shared: Arc<$type>) -> Definition {
                Definition::$variant(shared)
            }

            fn of(definition: &Definition) -> Option<&Arc<$type>> {
                if let Definition::$variant(shared) = definition { Some(shared) } else { None }
            }
        }
    )*};
}

defined! {
    Layout TableLayout;
    ForeignKeys ForeignKeyWork;
    Read ReadProgram;
    Write WriteProgram;
    Catalog Catalog;
}

/// The newest definitions of a link.
#[derive(Debug, Default)]
struct Definitions {
    /// In the order of their numbers, with their encoded bytes.
    newest: VecDeque<(Definition, usize)>,
    /// Number of definitions since the beginning of the link.
    count: u64,
    /// Encoded bytes of `newest`.
    bytes: usize,
}

impl Definitions {
    /// Adds a definition. Calls `forgotten` for each one that gives way.
    fn add(&mut self, definition: Definition, bytes: usize, mut forgotten: impl FnMut(Definition)) {
        self.newest.push_back((definition, bytes));
        self.count += 1;
        self.bytes += bytes;
        while self.newest.len() > DEFINITIONS_MAX || (self.bytes > DEFINITION_BYTES_MAX && self.newest.len() > 1) {
            let Some((oldest, bytes)) = self.newest.pop_front() else { return };
            self.bytes -= bytes;
            forgotten(oldest);
        }
    }
}

/// The sending end of a link.
#[derive(Debug)]
pub struct LinkEncoder {
    pub(super) version: u16,
    definitions: Definitions,
    /// The number of each definition that is kept, by the address of the shared value. The link shares the
    /// value, so no other value can get its address.
    numbers: HashMap<usize, u64, FixedState>,
}

impl LinkEncoder {
    /// The end of a new link.
    pub(crate) fn new(version: u16) -> LinkEncoder {
        let numbers = HashMap::with_hasher(FixedState::with_seed(0));
        LinkEncoder { version, definitions: Definitions::default(), numbers }
    }

    /// Number of definitions so far.
    pub(super) fn defined(&self) -> u64 {
        self.definitions.count
    }

    /// Takes back the definitions with this number and higher ones, because the peer does not get them. What
    /// they displaced stays forgotten at this end only, which does no harm.
    pub(super) fn forget_from(&mut self, number: u64) {
        while self.definitions.count > number {
            self.definitions.count -= 1;
            if let Some((definition, bytes)) = self.definitions.newest.pop_back() {
                self.definitions.bytes -= bytes;
                self.numbers.remove(&address_of(&definition));
            }
        }
    }

    fn add(&mut self, definition: Definition, bytes: usize) {
        self.numbers.insert(address_of(&definition), self.definitions.count);
        self.definitions.add(definition, bytes, |oldest| {
            self.numbers.remove(&address_of(&oldest));
        });
    }
}

/// The receiving end of a link.
#[derive(Debug)]
pub struct LinkDecoder {
    pub(super) version: u16,
    definitions: Definitions,
}

impl LinkDecoder {
    /// The end of a new link.
    pub(crate) fn new(version: u16) -> LinkDecoder {
        LinkDecoder { version, definitions: Definitions::default() }
    }
}

fn address_of(definition: &Definition) -> usize {
    match definition {
        Definition::Layout(shared) => Arc::as_ptr(shared) as usize,
        Definition::ForeignKeys(shared) => Arc::as_ptr(shared) as usize,
        Definition::Read(shared) => Arc::as_ptr(shared) as usize,
        Definition::Write(shared) => Arc::as_ptr(shared) as usize,
        Definition::Catalog(shared) => Arc::as_ptr(shared) as usize,
    }
}

/// Appends the age of the value's definition on this link, or the definition.
#[inline]
pub(super) fn encode_reference<T: Defined>(shared: &Arc<T>, writer: &mut Writer<'_>) {
    match writer.link.numbers.get(&(Arc::as_ptr(shared) as usize)) {
        Some(number) => ((writer.link.definitions.count - number) as u16).encode(writer),
        None => encode_definition(shared, writer),
    }
}

#[cold]
fn encode_definition<T: Defined>(shared: &Arc<T>, writer: &mut Writer<'_>) {
    FOLLOWS.encode(writer);
    let start = writer.out.len();
    (**shared).encode(writer);
    let bytes = writer.out.len() - start;
    writer.link.add(T::define(Arc::clone(shared)), bytes);
}

/// Reverses [`encode_reference`].
#[inline]
pub(super) fn decode_reference<T: Defined>(reader: &mut Reader<'_>) -> Result<Arc<T>> {
    let age = u16::decode(reader)?;
    if age == FOLLOWS {
        return decode_definition(reader);
    }
    let newest = &reader.link.definitions.newest;
    let definition = newest.len().checked_sub(usize::from(age)).and_then(|position| newest.get(position));
    let shared = definition.and_then(|(definition, _)| T::of(definition));
    shared.cloned().ok_or(DecodeError::UnknownDefinition(age.into()))
}

#[cold]
fn decode_definition<T: Defined>(reader: &mut Reader<'_>) -> Result<Arc<T>> {
    let left = reader.left();
    let shared = Arc::new(T::decode(reader)?);
    let bytes = left - reader.left();
    reader.link.definitions.add(T::define(Arc::clone(&shared)), bytes, drop);
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_keep_the_newest_definitions_within_count_and_bytes() {
        let layout = || Definition::Layout(super::super::sample::layout());
        let mut definitions = Definitions::default();
        for _ in 0..DEFINITIONS_MAX + 10 {
            definitions.add(layout(), 10, drop);
        }
        assert_eq!((definitions.newest.len(), definitions.count), (DEFINITIONS_MAX, DEFINITIONS_MAX as u64 + 10));
        definitions.add(layout(), DEFINITION_BYTES_MAX + 1, drop);
        assert_eq!((definitions.newest.len(), definitions.bytes), (1, DEFINITION_BYTES_MAX + 1));
        definitions.add(layout(), 10, drop);
        assert_eq!((definitions.newest.len(), definitions.bytes), (1, 10));
    }
}
