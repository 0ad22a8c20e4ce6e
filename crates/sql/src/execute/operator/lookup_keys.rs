//! The distinct keys of rows, for a read by these keys.

use junctor_expression::{Parameters, Scratch};
use junctor_model::error::Result;
use junctor_model::value::Value;

use super::append_key;
use super::key_table::KeyTable;
use crate::plan::tree::JoinKey;

/// The keys, one list for each part.
pub(super) struct LookupKeys {
    lists: Vec<Vec<Value>>,
    known: KeyTable,
    bytes: Vec<u8>,
}

impl LookupKeys {
    /// Lists for so many parts, with room for so many keys.
    pub fn new(parts: usize, rows: usize) -> LookupKeys {
        let lists = (0..parts).map(|_| Vec::with_capacity(rows)).collect();
        LookupKeys { lists, known: KeyTable::default(), bytes: Vec::new() }
    }

    /// Adds the key of a row, unless it is known or has NULL, which equals nothing. Errors: those of the
    /// expressions of the parts.
    pub fn add<'k>(
        &mut self,
        parts: impl Iterator<Item = &'k JoinKey>,
        row: Parameters<'_>,
        scratch: &Scratch,
    ) -> Result<()> {
        self.bytes.clear();
        let mut has_null = false;
        for (list, key) in self.lists.iter_mut().zip(parts) {
            let value = key.left.evaluate(None, row, scratch)?;
            has_null |= value.is_null();
            append_key(value, key.collation, &mut self.bytes);
            list.push(value.to_value());
        }
        if has_null || !self.known.insert(&self.bytes, 0).1 {
            self.lists.iter_mut().for_each(|list| _ = list.pop());
        }
        Ok(())
    }

    /// The lists; `None` if no row has a key.
    pub fn into_lists(self) -> Option<Vec<Vec<Value>>> {
        self.lists.iter().any(|list| !list.is_empty()).then_some(self.lists)
    }
}
