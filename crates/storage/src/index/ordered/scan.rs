//! Scans of a key range in either direction. Only the leading bytes of a key, up to the length of the bound,
//! are compared with the bound. A bound on the leading columns therefore also works for an index with more
//! columns.

use std::ops::{Bound, ControlFlow};

use junctor_model::id::RowId;

use super::node::{NodeId, compare};
use super::tree::{HEIGHT_MAX, OrderedIndex};

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending key order.
    Forward,
    /// Descending key order.
    Backward,
}

/// A range of keys by leading key bytes. `Included(prefix)` includes every key that begins with the prefix,
/// and `Excluded(prefix)` excludes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeBounds<'a> {
    /// The lower end of the range.
    pub lower: Bound<&'a [u8]>,
    /// The upper end of the range.
    pub upper: Bound<&'a [u8]>,
}

impl<'a> RangeBounds<'a> {
    /// Every key.
    pub const ALL: RangeBounds<'static> = RangeBounds { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &'a [u8]) -> RangeBounds<'a> {
        RangeBounds { lower: Bound::Included(prefix), upper: Bound::Included(prefix) }
    }

    /// Whether a key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        !is_below(self.lower, key) && !is_above(self.upper, key)
    }
}

struct Position {
    /// The inner nodes from the root down, and the child taken in each.
    path: [(NodeId, usize); HEIGHT_MAX],
    leaf: NodeId,
    /// The next entry of the leaf to read (forward), or the one after it (backward).
    index: usize,
}

impl OrderedIndex {
    /// Calls `visit` with the key and row of every entry of the range in order, starting after `start_after`,
    /// until `visit` breaks. A key that is too long for the tree is passed in truncated form (see
    /// `OrderedIndex::truncated`).
    pub fn scan(
        &self,
        bounds: RangeBounds<'_>,
        direction: Direction,
        start_after: Option<(&[u8], RowId)>,
        mut visit: impl FnMut(&[u8], RowId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bounds = RangeBounds { lower: self.bound(bounds.lower), upper: self.bound(bounds.upper) };
        let mut after = Vec::new();
        if let Some((key, row)) = start_after {
            after.extend_from_slice(self.truncated(key));
            after.extend_from_slice(&row.0.to_be_bytes());
        }
        let is_first = start_after.is_none();
        match direction {
            Direction::Forward => {
                let before =
                    |entry: &[u8]| is_below(bounds.lower, entry) || (!is_first && compare(entry, &after).is_le());
                let Some(mut position) = self.seek(before) else { return ControlFlow::Continue(()) };
                self.read_forward(&mut position, bounds.upper, &mut visit)
            }
            Direction::Backward => {
                let before =
                    |entry: &[u8]| !is_above(bounds.upper, entry) && (is_first || compare(entry, &after).is_lt());
                let Some(mut position) = self.seek(before) else { return ControlFlow::Continue(()) };
                self.read_backward(&mut position, bounds.lower, &mut visit)
            }
        }
    }

    fn read_forward(
        &self,
        position: &mut Position,
        upper: Bound<&[u8]>,
        visit: &mut impl FnMut(&[u8], RowId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            let node = self.node(position.leaf);
            let count = node.count();
            // If the last entry of the leaf is in the range, so are all others, and one comparison suffices.
            let is_last = count > 0 && is_above(upper, key_and_row(node.entry(count - 1)).0);
            let end = if is_last { node.count_before(|entry| !is_above(upper, key_and_row(entry).0)) } else { count };
            for index in position.index..end {
                let (key, row) = key_and_row(node.entry(index));
                visit(key, row)?;
            }
            if is_last {
                return ControlFlow::Continue(());
            }
            if !self.step(position, Direction::Forward) {
                return ControlFlow::Continue(());
            }
        }
    }

    fn read_backward(
        &self,
        position: &mut Position,
        lower: Bound<&[u8]>,
        visit: &mut impl FnMut(&[u8], RowId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            let node = self.node(position.leaf);
            for index in (0..position.index).rev() {
                let (key, row) = key_and_row(node.entry(index));
                if is_below(lower, key) {
                    return ControlFlow::Continue(());
                }
                visit(key, row)?;
            }
            if !self.step(position, Direction::Backward) {
                return ControlFlow::Continue(());
            }
        }
    }

    /// The position after all entries for which `is_before` holds.
    fn seek(&self, is_before: impl Fn(&[u8]) -> bool) -> Option<Position> {
        self.root_node()?;
        let mut position = Position { path: [(0, 0); HEIGHT_MAX], leaf: self.root, index: 0 };
        for level in 0..self.height - 1 {
            let node = self.node(position.leaf);
            let index = node.count_before(&is_before);
            position.path[level] = (position.leaf, index);
            position.leaf = node.child(index);
        }
        position.index = self.node(position.leaf).count_before(&is_before);
        Some(position)
    }

    /// Moves to the neighbouring leaf. Returns false if none exists.
    fn step(&self, position: &mut Position, direction: Direction) -> bool {
        let mut level = self.height - 1;
        let (id, index) = loop {
            if level == 0 {
                return false;
            }
            level -= 1;
            let (id, index) = position.path[level];
            match direction {
                Direction::Forward if index < self.node(id).count() => break (id, index + 1),
                Direction::Backward if index > 0 => break (id, index - 1),
                _ => {}
            }
        };
        position.path[level] = (id, index);
        let mut child = self.node(id).child(index);
        for below in level + 1..self.height - 1 {
            let node = self.node(child);
            let index = if direction == Direction::Forward { 0 } else { node.count() };
            position.path[below] = (child, index);
            child = node.child(index);
        }
        position.leaf = child;
        position.index = if direction == Direction::Forward { 0 } else { self.node(child).count() };
        true
    }

    /// Truncates a bound in the way that keys are truncated, so that the range includes all keys that agree
    /// in the kept part. The reader then compares whole keys.
    fn bound<'a>(&self, bound: Bound<&'a [u8]>) -> Bound<&'a [u8]> {
        match bound {
            Bound::Included(key) | Bound::Excluded(key) if self.truncated(key).len() < key.len() => {
                // Included even for an excluded bound: keys that agree in the kept part may differ after it.
                Bound::Included(self.truncated(key))
            }
            bound => bound,
        }
    }
}

/// Whether an entry or key is below the range.
#[inline]
fn is_below(lower: Bound<&[u8]>, key: &[u8]) -> bool {
    match lower {
        Bound::Unbounded => false,
        Bound::Included(bound) => compare(head(key, bound), bound).is_lt(),
        Bound::Excluded(bound) => compare(head(key, bound), bound).is_le(),
    }
}

/// Whether an entry or key is above the range.
#[inline]
fn is_above(upper: Bound<&[u8]>, key: &[u8]) -> bool {
    match upper {
        Bound::Unbounded => false,
        Bound::Included(bound) => compare(head(key, bound), bound).is_gt(),
        Bound::Excluded(bound) => compare(head(key, bound), bound).is_ge(),
    }
}

#[inline]
fn head<'a>(key: &'a [u8], bound: &[u8]) -> &'a [u8] {
    &key[..key.len().min(bound.len())]
}

#[inline]
fn key_and_row(entry: &[u8]) -> (&[u8], RowId) {
    let (key, row) = entry.split_last_chunk::<4>().expect("an entry ends with its row id");
    (key, RowId(u32::from_be_bytes(*row)))
}
