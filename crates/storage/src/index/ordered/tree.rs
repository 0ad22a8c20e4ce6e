//! The B+tree: insertion with splits, and removal with merges.
//!
//! A node that splits because an entry was appended at the right edge of the tree stays full, so ascending
//! loads fill their pages. Other splits halve the bytes. A node that is less than a quarter full is merged
//! with a neighbour if both together fit in three quarters of a node.

use std::sync::Arc;

use junctor_model::id::RowId;

use crate::invariant::{require, verify};

use super::node::{self, NODE_HEADER_BYTES, Node, NodeId, Probe};
use crate::page::{BLOCK_BYTES_MAX, BlockStore, Location, MemoryNeed, OutOfMemory, PageKind, PagePool};

const NODE_BYTES_SMALL: usize = 4096;
const NODE_BYTES_LARGE: usize = BLOCK_BYTES_MAX - 8;
const ROW_BYTES: usize = 4;
/// Maximum height. No tree that fits in memory reaches it.
pub(super) const HEIGHT_MAX: usize = 32;
pub(super) const NO_NODE: NodeId = NodeId::MAX;

/// One ordered index of one partition.
#[derive(Debug)]
pub struct OrderedIndex {
    nodes: BlockStore,
    node_bytes: usize,
    pub(super) root: NodeId,
    /// Number of nodes on the path from the root to a leaf, including both.
    pub(super) height: usize,
    pub(super) entries: u64,
    /// The path to the leaf of the last change: inner nodes, and the child taken in each.
    path: Vec<(NodeId, usize)>,
    entry: Vec<u8>,
    scratch: Vec<u8>,
}

impl OrderedIndex {
    /// An empty index for keys of at most `key_bytes_max` bytes. Longer keys are ordered by their first bytes
    /// only (see `truncated`).
    pub fn new(pool: Arc<PagePool>, key_bytes_max: usize) -> OrderedIndex {
        let is_small = key_bytes_max <= key_bytes_exact(NODE_BYTES_SMALL);
        OrderedIndex {
            nodes: BlockStore::new(pool, PageKind::OrderedIndex),
            node_bytes: if is_small { NODE_BYTES_SMALL } else { NODE_BYTES_LARGE },
            root: NO_NODE,
            height: 0,
            entries: 0,
            path: Vec::new(),
            entry: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// An empty index for the same keys.
    pub(crate) fn empty_copy(&self, pool: Arc<PagePool>) -> OrderedIndex {
        let OrderedIndex { node_bytes, .. } = *self;
        OrderedIndex { node_bytes, ..OrderedIndex::new(pool, 0) }
    }

    /// The key and the row id of an entry.
    pub(crate) fn split_entry(entry: &[u8]) -> (&[u8], RowId) {
        let (key, row) = entry.split_at(entry.len() - ROW_BYTES);
        (key, RowId(u32::from_be_bytes(row.try_into().expect("4 bytes"))))
    }

    /// The part of a key that determines its entry's order. Keys of more than about 10,000 bytes are
    /// truncated. An index whose keys have at most 1,300 bytes or so has small nodes, and never truncates.
    /// Rows whose keys agree in that part are ordered by row id.
    #[inline]
    pub fn truncated<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        &key[..key.len().min(key_bytes_exact(self.node_bytes))]
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether the index has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        self.nodes.bytes()
    }

    /// Whether the entry exists.
    pub fn contains(&self, key: &[u8], row: RowId) -> bool {
        let mut entry = Vec::new();
        self.compose(key, row, &mut entry);
        let Some(mut node) = self.root_node() else { return false };
        let probe = Probe::new(&entry);
        while !node.is_leaf() {
            node = self.node(node.child(node.position_of(probe, true)));
        }
        let index = node.position_of(probe, false);
        index < node.count() && node.entry(index) == entry
    }

    /// Reserves the memory that the next `insert` of this entry needs.
    pub(crate) fn reserve(&mut self, key: &[u8], row: RowId, need: MemoryNeed) -> Result<(), OutOfMemory> {
        if self.height >= HEIGHT_MAX {
            return Err(OutOfMemory);
        }
        // The common case, found without a descent: there are enough free nodes for a split on every level
        // and a new root.
        if self.nodes.free_blocks(self.node_bytes) > self.height {
            return Ok(());
        }
        // A page has several small nodes, so a reservation for the worst case wastes little. A large node
        // fills a whole page, so only pages for splits that can happen are reserved.
        let is_small = self.node_bytes == NODE_BYTES_SMALL;
        let splits = if is_small { self.height + 1 } else { self.splits_at_most(key, row) };
        self.nodes.reserve(self.node_bytes, splits, need)
    }

    /// Returns pages that a failed reservation left empty to the pool.
    pub(crate) fn trim(&mut self) {
        self.nodes.trim();
    }

    /// Adds an entry. The caller has reserved its memory. Returns false if the entry exists already.
    pub(crate) fn insert(&mut self, key: &[u8], row: RowId) -> bool {
        let mut entry = std::mem::take(&mut self.entry);
        self.compose(key, row, &mut entry);
        let inserted = self.insert_entry(&entry);
        self.entry = entry;
        self.entries += u64::from(inserted);
        inserted
    }

    /// Removes an entry. Returns false if it does not exist.
    pub(crate) fn remove(&mut self, key: &[u8], row: RowId) -> bool {
        let mut entry = std::mem::take(&mut self.entry);
        self.compose(key, row, &mut entry);
        let removed = self.remove_entry(&entry);
        self.entry = entry;
        require!(self.entries >= u64::from(removed), "an entry that is removed was counted");
        self.entries -= u64::from(removed);
        removed
    }

    #[inline]
    pub(super) fn node(&self, id: NodeId) -> Node<'_> {
        Node::new(&self.nodes.at(location_of(id))[..self.node_bytes])
    }

    pub(super) fn root_node(&self) -> Option<Node<'_>> {
        (self.root != NO_NODE).then(|| self.node(self.root))
    }

    pub(super) fn blocks(&self) -> &BlockStore {
        &self.nodes
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.node_bytes
    }

    pub(super) fn reserve_blocks(&mut self, count: usize, need: MemoryNeed) -> Result<(), OutOfMemory> {
        self.nodes.reserve(self.node_bytes, count, need)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut [u8] {
        &mut self.nodes.at_mut(location_of(id))[..self.node_bytes]
    }

    /// Maximum number of nodes that an insertion needs: one for every full node on the way up from the leaf,
    /// and a new root above a full root.
    fn splits_at_most(&mut self, key: &[u8], row: RowId) -> usize {
        if self.root == NO_NODE {
            return 1;
        }
        let mut entry = std::mem::take(&mut self.entry);
        self.compose(key, row, &mut entry);
        let leaf = self.descend(&entry);
        let entry_bytes = node::entry_bytes(true, entry.len());
        self.entry = entry;
        if self.node(leaf).used_bytes() + entry_bytes <= self.node_bytes {
            return 0;
        }
        let separator_bytes = node::entry_bytes(false, key_bytes_exact(self.node_bytes) + ROW_BYTES);
        let is_full = |id: &NodeId| self.node(*id).used_bytes() + separator_bytes > self.node_bytes;
        let full = self.path.iter().rev().take_while(|(id, _)| is_full(id)).count();
        1 + full + usize::from(full == self.path.len())
    }

    fn compose(&self, key: &[u8], row: RowId, entry: &mut Vec<u8>) {
        entry.clear();
        entry.extend_from_slice(self.truncated(key));
        entry.extend_from_slice(&row.0.to_be_bytes());
    }

    fn insert_entry(&mut self, entry: &[u8]) -> bool {
        if self.root == NO_NODE {
            self.root = self.new_node(true, NO_NODE);
            self.height = 1;
        }
        let leaf = self.descend(entry);
        let node = self.node(leaf);
        let index = node.position_of(Probe::new(entry), false);
        if index < node.count() && node.entry(index) == entry {
            return false;
        }
        if self.insert_into(leaf, index, entry, None) {
            return true;
        }
        // Decided before the split, while `path` still describes the path to the leaf.
        let is_append = index == self.node(leaf).count() && self.is_right_edge();
        let (mut separator, mut right) = self.split(leaf, index, (entry, None), is_append);
        while let Some((parent, index)) = self.path.pop() {
            if self.insert_into(parent, index, &separator, Some(right)) {
                return true;
            }
            (separator, right) = self.split(parent, index, (&separator, Some(right)), is_append);
        }
        require!(self.height < HEIGHT_MAX, "a tree grows only up to its greatest height");
        let root = self.new_node(false, self.root);
        self.insert_with_room(root, 0, &separator, Some(right));
        self.root = root;
        self.height += 1;
        true
    }

    /// Finds the leaf for an entry and leaves the path to it in `path`.
    fn descend(&mut self, entry: &[u8]) -> NodeId {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let probe = Probe::new(entry);
        let mut id = self.root;
        loop {
            let node = self.node(id);
            if node.is_leaf() {
                break;
            }
            let index = node.position_of(probe, true);
            path.push((id, index));
            id = node.child(index);
        }
        self.path = path;
        id
    }

    fn is_right_edge(&self) -> bool {
        self.path.iter().all(|(id, index)| *index == self.node(*id).count())
    }

    fn insert_into(&mut self, id: NodeId, index: usize, entry: &[u8], child: Option<NodeId>) -> bool {
        let node_bytes = self.node_bytes;
        let bytes = &mut self.nodes.at_mut(location_of(id))[..node_bytes];
        verify!(
            node::is_position_of(bytes, index, entry),
            "an entry goes between a lesser and a greater one of its node"
        );
        node::insert(bytes, index, entry, child, &mut self.scratch)
    }

    /// Inserts into a node that is known to have space.
    pub(super) fn insert_with_room(&mut self, id: NodeId, index: usize, entry: &[u8], child: Option<NodeId>) {
        let is_placed = self.insert_into(id, index, entry, child);
        require!(is_placed, "a node after a split or before a merge has room");
    }

    /// Splits a node that has no space for an entry at `index`, and inserts the entry. Returns the separator
    /// between the node and its new right neighbour.
    fn split(
        &mut self,
        id: NodeId,
        index: usize,
        (entry, child): (&[u8], Option<NodeId>),
        is_append: bool,
    ) -> (Vec<u8>, NodeId) {
        let old_bytes = self.node(id);
        let is_leaf = old_bytes.is_leaf();
        let copy = self.nodes.at(location_of(id))[..self.node_bytes].to_vec();
        let old = Node::new(&copy);
        let total = old.count() + 1;
        let item = |position: usize| match position.cmp(&index) {
            std::cmp::Ordering::Less => (old.entry(position), (!is_leaf).then(|| old.child(position + 1))),
            std::cmp::Ordering::Equal => (entry, child),
            std::cmp::Ordering::Greater => (old.entry(position - 1), (!is_leaf).then(|| old.child(position))),
        };
        let at = match is_append {
            true if is_leaf => total - 1,
            // The new inner node needs a separator, and thus two children.
            true => total - 2,
            false => split_point(total, is_leaf, |position| item(position).0.len()),
        };
        let first_child = if is_leaf { NO_NODE } else { old.child(0) };
        node::clear(self.node_mut(id), is_leaf, first_child);
        for position in 0..at {
            let (bytes, child) = item(position);
            self.insert_with_room(id, position, bytes, child);
        }
        let (first, first_child) = item(at);
        let right = self.new_node(is_leaf, first_child.unwrap_or(NO_NODE));
        let start = if is_leaf { at } else { at + 1 };
        for position in start..total {
            let (bytes, child) = item(position);
            self.insert_with_room(right, position - start, bytes, child);
        }
        let before = item(at - 1).0;
        require!(before < first, "the entries of a node that splits are in order");
        let separator = match is_leaf {
            true => shortest_separator(before, first).to_vec(),
            // In an inner node, the middle separator moves up and is in neither half.
            false => first.to_vec(),
        };
        require!(
            &separator[..] > before && &separator[..] <= first,
            "a separator is above the left node and not above the right one"
        );
        (separator, right)
    }

    fn remove_entry(&mut self, entry: &[u8]) -> bool {
        if self.root == NO_NODE {
            return false;
        }
        let leaf = self.descend(entry);
        let node = self.node(leaf);
        let index = node.position_of(Probe::new(entry), false);
        if index >= node.count() || node.entry(index) != entry {
            return false;
        }
        node::remove(self.node_mut(leaf), index);
        self.shrink(leaf);
        true
    }

    /// After a removal, merges or frees nodes from `id` upwards along the path.
    fn shrink(&mut self, mut id: NodeId) {
        let mut is_useless = self.node(id).count() == 0;
        while let Some((parent, index)) = self.path.pop() {
            if is_useless {
                self.nodes.free(location_of(id));
                is_useless = !node::remove_child(self.node_mut(parent), index);
            } else if self.node(id).used_bytes() >= self.node_bytes / 4 || !self.merge(parent, index) {
                break;
            }
            id = parent;
        }
        if is_useless && self.path.is_empty() {
            self.nodes.free(location_of(id));
            self.nodes.trim();
            self.root = NO_NODE;
            self.height = 0;
            return;
        }
        while !self.node(self.root).is_leaf() && self.node(self.root).count() == 0 {
            let root = self.root;
            self.root = self.node(root).child(0);
            self.nodes.free(location_of(root));
            require!(self.height > 1, "the height of a tree counts its inner root");
            self.height -= 1;
        }
    }

    /// Merges child `index` of `parent` with a neighbour. Returns false if neither neighbour fits.
    fn merge(&mut self, parent: NodeId, index: usize) -> bool {
        let count = self.node(parent).count();
        let fits = |left: usize| {
            let node = self.node(parent);
            let used = self.node(node.child(left)).used_bytes() + self.node(node.child(left + 1)).used_bytes();
            // Three quarters rather than all: a full node would split again at the next insertion.
            used + node.entry(left).len() <= self.node_bytes / 4 * 3
        };
        let left_index = match index {
            index if index < count && fits(index) => index,
            index if index > 0 && fits(index - 1) => index - 1,
            _ => return false,
        };
        let node = self.node(parent);
        let (left, right) = (node.child(left_index), node.child(left_index + 1));
        let separator = node.entry(left_index).to_vec();
        let copy = self.nodes.at(location_of(right))[..self.node_bytes].to_vec();
        let moved = Node::new(&copy);
        let mut end = self.node(left).count();
        if !moved.is_leaf() {
            self.insert_with_room(left, end, &separator, Some(moved.child(0)));
            end += 1;
        }
        require!(
            self.node(left).entry(end - 1) < moved.entry(0),
            "the entries of a node are below those of its right neighbour"
        );
        for position in 0..moved.count() {
            let child = (!moved.is_leaf()).then(|| moved.child(position + 1));
            self.insert_with_room(left, end + position, moved.entry(position), child);
        }
        self.nodes.free(location_of(right));
        node::remove(self.node_mut(parent), left_index);
        true
    }

    pub(super) fn new_node(&mut self, is_leaf: bool, first_child: NodeId) -> NodeId {
        // The caller has reserved the memory, so this must succeed, if need be from the reserve.
        let location = self.nodes.allocate(self.node_bytes, MemoryNeed::Release).expect("room for nodes was reserved");
        let id = ((location.page() << 3) | (location.offset() >> 12)) as NodeId;
        node::clear(self.node_mut(id), is_leaf, first_child);
        id
    }
}

/// Maximum length of a key that a node of this size stores whole. Longer keys are truncated. Three entries
/// must always fit in a node.
const fn key_bytes_exact(node_bytes: usize) -> usize {
    (node_bytes - NODE_HEADER_BYTES) / 3 - 8 - ROW_BYTES
}

#[inline]
fn location_of(id: NodeId) -> Location {
    Location::new(id as usize >> 3, (id as usize & 7) << 12)
}

/// Finds a split position with about the same number of bytes on both sides, and neither side empty.
fn split_point(total: usize, is_leaf: bool, length: impl Fn(usize) -> usize) -> usize {
    let all: usize = (0..total).map(|position| node::entry_bytes(is_leaf, length(position))).sum();
    let (mut left, mut at) = (0, 0);
    while left * 2 < all {
        left += node::entry_bytes(is_leaf, length(at));
        at += 1;
    }
    at.clamp(1, if is_leaf { total - 1 } else { total - 2 })
}

/// The shortest byte string above `left` and not above `right`.
pub(super) fn shortest_separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    &right[..(common + 1).min(right.len())]
}
