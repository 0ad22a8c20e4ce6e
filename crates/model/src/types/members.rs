//! The members of an ENUM or SET.

use crate::collation::CollationId;

/// The members in the order of the definition, as UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    names: Box<[Box<[u8]>]>,
}

impl Members {
    /// Members by name.
    pub fn new(names: Vec<Box<[u8]>>) -> Members {
        Members { names: names.into() }
    }

    /// The names in order.
    pub fn names(&self) -> &[Box<[u8]>] {
        &self.names
    }

    /// The member of an ENUM at a position from 1; the empty string for 0.
    pub fn name(&self, position: u64) -> &[u8] {
        let index = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
        index.and_then(|index| self.names.get(index)).map_or(b"", |name| name)
    }

    /// Appends the members of a SET, with commas between them.
    pub fn append_set(&self, bits: u64, out: &mut Vec<u8>) {
        let mut is_first = true;
        for (_, name) in self.names.iter().enumerate().filter(|(index, _)| bits >> index & 1 != 0) {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            out.extend_from_slice(name);
        }
    }

    /// The position from 1 of a member in the collation of the column. Trailing spaces do not count.
    pub fn position(&self, text: &[u8], collation: CollationId) -> Option<u64> {
        let text = without_trailing_spaces(text);
        let found = self.names.iter().position(|name| collation.equal(name, text));
        found.map(|index| index as u64 + 1)
    }
}

fn without_trailing_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().rev().take_while(|byte| **byte == b' ').count();
    &text[..text.len() - spaces]
}
