//! Bulk load: entries in ascending order are appended at the right edge of the tree, without descents.
//!
//! Nodes are left a tenth empty, because a full node splits at the first insertion after the load.

use std::ops::Range;

use super::node::{self, LeafEnd, NodeId};
use super::sorted_run::SortedRun;
use super::tree::{HEIGHT_MAX, NO_NODE, OrderedIndex, shortest_separator};
use crate::invariant::{require, verify};
use crate::page::{MemoryNeed, OutOfMemory};

/// The nodes from the root to the rightmost leaf. Valid until any other change of the tree.
#[derive(Debug, Default)]
pub(crate) struct RightEdge(Vec<NodeId>);

impl OrderedIndex {
    /// The right edge, to append to.
    pub(crate) fn right_edge(&self) -> RightEdge {
        let mut nodes = Vec::with_capacity(self.height + 1);
        if self.root != NO_NODE {
            nodes.push(self.root);
            while let Some(node) = nodes.last().map(|last| self.node(*last)).filter(|node| !node.is_leaf()) {
                nodes.push(node.child(node.count()));
            }
        }
        RightEdge(nodes)
    }

    /// Whether an entry, a key and a row id, lies above all others.
    pub(crate) fn is_above_all(&self, edge: &RightEdge, entry: &[u8]) -> bool {
        edge.0.last().is_none_or(|leaf| {
            let leaf = self.node(*leaf);
            leaf.entry(leaf.count() - 1) < entry
        })
    }

    /// Appends entries of a run. The first of them lies above all entries of the tree. After an error the
    /// tree has a part of them.
    pub(crate) fn append_run(
        &mut self,
        edge: &mut RightEdge,
        run: &SortedRun,
        entries: Range<usize>,
    ) -> Result<(), OutOfMemory> {
        let (mut next, mut short) = (entries.start, Default::default());
        while next < entries.end {
            self.append(edge, run.entry(next, &mut short))?;
            next += 1;
            let leaf = *edge.0.last().expect("a tree with entries has a leaf");
            let used_max = self.used_bytes_max();
            let mut leaf = LeafEnd::new(self.node_mut(leaf), used_max);
            let count = run.take_while(next..entries.end, |entry| leaf.append(entry));
            leaf.finish();
            self.entries += count as u64;
            next += count;
        }
        Ok(())
    }

    /// Appends an entry that lies above all others. After an error the tree is unchanged.
    fn append(&mut self, edge: &mut RightEdge, entry: &[u8]) -> Result<(), OutOfMemory> {
        verify!(self.is_above_all(edge, entry), "an appended entry lies above all others");
        let Some(leaf) = edge.0.last().copied() else {
            self.reserve_nodes(1)?;
            self.root = self.new_node(true, NO_NODE);
            self.height = 1;
            edge.0.push(self.root);
            self.insert_last(self.root, entry, None);
            self.entries += 1;
            return Ok(());
        };
        if self.has_room(leaf, node::entry_bytes(true, entry.len())) {
            self.insert_last(leaf, entry, None);
            self.entries += 1;
            return Ok(());
        }
        self.append_leaf(edge, leaf, entry)
    }

    /// Appends a leaf with one entry, and the separators above it.
    #[cold]
    fn append_leaf(&mut self, edge: &mut RightEdge, leaf: NodeId, entry: &[u8]) -> Result<(), OutOfMemory> {
        if self.height >= HEIGHT_MAX {
            return Err(OutOfMemory);
        }
        // At most one node on each level, and a root. Reserved first, so that an error leaves the tree whole.
        self.reserve_nodes(self.height + 1)?;
        let node = self.node(leaf);
        let mut separator = shortest_separator(node.entry(node.count() - 1), entry).to_vec();
        let mut right = self.new_node(true, NO_NODE);
        self.insert_last(right, entry, None);
        self.entries += 1;
        let mut level = edge.0.len() - 1;
        edge.0[level] = right;
        while level > 0 {
            level -= 1;
            let parent = edge.0[level];
            if self.has_room(parent, node::entry_bytes(false, separator.len())) {
                self.insert_last(parent, &separator, Some(right));
                return Ok(());
            }
            // The new inner node needs a separator, and thus two children: the last child moves to it, and
            // the separator before that child moves up.
            let node = self.node(parent);
            let last = node.count() - 1;
            require!(last > 0, "an inner node has room for two separators");
            let (above, first_child) = (node.entry(last).to_vec(), node.child(last + 1));
            node::remove(self.node_mut(parent), last);
            let next = self.new_node(false, first_child);
            self.insert_last(next, &separator, Some(right));
            (separator, right) = (above, next);
            edge.0[level] = right;
        }
        let root = self.new_node(false, self.root);
        self.insert_last(root, &separator, Some(right));
        self.root = root;
        self.height += 1;
        edge.0.insert(0, root);
        Ok(())
    }

    #[inline]
    fn has_room(&self, id: NodeId, bytes: usize) -> bool {
        self.node(id).used_bytes() + bytes <= self.used_bytes_max()
    }

    #[inline]
    fn used_bytes_max(&self) -> usize {
        self.node_bytes() - self.node_bytes() / 10
    }

    #[inline]
    fn insert_last(&mut self, id: NodeId, entry: &[u8], child: Option<NodeId>) {
        let count = self.node(id).count();
        self.insert_with_room(id, count, entry, child);
    }

    fn reserve_nodes(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.reserve_blocks(count, MemoryNeed::Growth)
    }
}
