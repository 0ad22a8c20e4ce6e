//! Hot path: at most 10 instructions more for each part than the bytes of the value take.
//!
//! The parts of the keys of ranges, in the order of the index.

use junctor_model::id::ColumnNumber;
use junctor_model::key::complement;
use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::scratch::Scratch;
use junctor_model::value::ValueRef;

use super::super::bound::{KeyFit, append_key_floor};
use crate::plan::RangeTemplate;

/// A column of an index of which ranges are built.
#[derive(Clone, Copy)]
pub(super) struct RangeColumn<'d> {
    pub definition: &'d ColumnDefinition,
    /// Whether its part of the key is complemented.
    pub descending: bool,
}

impl<'d> RangeColumn<'d> {
    #[inline]
    pub fn of(definition: &'d TableDefinition, template: &RangeTemplate, column: ColumnNumber) -> RangeColumn<'d> {
        let descending = template.descending.contains(&column);
        RangeColumn { definition: &definition.columns[usize::from(column.0)], descending }
    }

    /// The key part of NULL.
    #[inline]
    pub fn null(self) -> u8 {
        if self.descending { !0 } else { 0 }
    }

    /// As [`append_key_floor`], with the bytes of the index.
    #[inline]
    pub fn append_floor(self, value: ValueRef<'_>, scratch: &Scratch, key: &mut Vec<u8>) -> KeyFit {
        let start = key.len();
        let fit = append_key_floor(self.definition, value, scratch, key);
        if self.descending {
            complement(&mut key[start..]);
        }
        fit
    }
}
