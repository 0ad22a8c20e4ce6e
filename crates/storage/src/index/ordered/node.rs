//! One node: `[kind: 1][0: 1][count: 2][heap start: 2][dead bytes: 2][first child: 4][0: 4][slots: 2 each]
//! ... [entries]`.
//!
//! Slots hold the offsets of the entries in order. The entries grow downwards from the end. An entry is
//! `[length: 2][bytes]` in a leaf and `[length: 2][child: 4][bytes]` in an inner node. The bytes of a leaf
//! entry are a key and a row id. The bytes of an inner entry are a separator: everything in its child is at
//! or above the separator, and everything in the previous child is below it.

use std::cmp::Ordering;

use crate::invariant::{require, verify};

pub(super) const NODE_HEADER_BYTES: usize = 16;
const SLOT_BYTES: usize = 2;
const LEAF: u8 = 1;
const INNER: u8 = 2;

/// Masks for the first eight bytes of an entry, by its length: the bits that belong to the entry.
const HEAD_MASKS: [u64; 9] = {
    let mut masks = [0; 9];
    let mut bytes = 1;
    while bytes <= 8 {
        masks[bytes] = u64::MAX << (64 - bytes * 8);
        bytes += 1;
    }
    masks
};

/// The number of a node in its tree.
pub(super) type NodeId = u32;

/// A byte string to search for, with its first eight bytes as a number.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    head: u64,
    bytes: &'a [u8],
}

impl<'a> Probe<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Probe<'a> {
        Probe { head: head_of(bytes), bytes }
    }
}

/// Read access to a node.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    bytes: &'a [u8],
}

impl<'a> Node<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Node<'a> {
        Node { bytes }
    }

    #[inline]
    pub(super) fn is_leaf(&self) -> bool {
        self.bytes[0] == LEAF
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        u16_at(self.bytes, 2)
    }

    /// The bytes of entry `index`.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> &'a [u8] {
        let at = u16_at(self.bytes, NODE_HEADER_BYTES + index * SLOT_BYTES);
        let start = at + if self.is_leaf() { 2 } else { 6 };
        &self.bytes[start..start + u16_at(self.bytes, at)]
    }

    /// The first child (0), or the child after separator `index - 1`.
    #[inline]
    pub(super) fn child(&self, index: usize) -> NodeId {
        let at = match index {
            0 => 8,
            index => u16_at(self.bytes, NODE_HEADER_BYTES + (index - 1) * SLOT_BYTES) + 2,
        };
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("4 bytes"))
    }

    /// The number of leading entries for which `is_before` holds. The condition must hold for a prefix of the
    /// entries.
    #[inline]
    pub(super) fn count_before(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            if is_before(self.entry(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The number of entries below the probe or, with `counts_equal`, of entries not above it.
    #[inline]
    pub(super) fn position_of(&self, probe: Probe<'_>, counts_equal: bool) -> usize {
        let prefix_bytes = if self.is_leaf() { 2 } else { 6 };
        let count = self.count();
        let slots = self.bytes[NODE_HEADER_BYTES..NODE_HEADER_BYTES + count * SLOT_BYTES].as_chunks::<SLOT_BYTES>().0;
        let is_before = |index: usize| self.is_before(slots[index], prefix_bytes, probe, counts_equal);
        let (mut low, mut high) = (0, slots.len());
        // Ascending keys are appended at the end.
        if high > 0 && is_before(high - 1) {
            return high;
        }
        while low < high {
            let middle = (low + high) / 2;
            if is_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline(always)]
    fn is_before(&self, slot: [u8; SLOT_BYTES], prefix_bytes: usize, probe: Probe<'_>, counts_equal: bool) -> bool {
        let rest = &self.bytes[usize::from(u16::from_le_bytes(slot))..];
        let length = u16_at(rest, 0);
        let rest = &rest[prefix_bytes..];
        let head = match rest.first_chunk() {
            // The mask clears the bytes of the next entry. The result is padded with zeros, as the probe's
            // head is.
            Some(chunk) => u64::from_be_bytes(*chunk) & HEAD_MASKS[length.min(8)],
            None => head_of(&rest[..length]),
        };
        // Unequal heads decide the order. If one entry is a prefix of the other, its zero-padded head is not
        // above the other head.
        match head == probe.head {
            false => head < probe.head,
            true => is_before_in_full(&rest[..length], probe.bytes, counts_equal),
        }
    }

    /// Bytes of the node in use, slots included.
    pub(super) fn used_bytes(&self) -> usize {
        let heap = self.bytes.len() - u16_at(self.bytes, 4) - u16_at(self.bytes, 6);
        NODE_HEADER_BYTES + self.count() * SLOT_BYTES + heap
    }
}

/// Makes the node empty.
pub(super) fn clear(bytes: &mut [u8], is_leaf: bool, first_child: NodeId) {
    let length = bytes.len();
    bytes[0] = if is_leaf { LEAF } else { INNER };
    bytes[1] = 0;
    set_u16(bytes, 2, 0);
    set_u16(bytes, 4, length);
    set_u16(bytes, 6, 0);
    bytes[8..12].copy_from_slice(&first_child.to_le_bytes());
    bytes[12..16].fill(0);
}

/// Bytes of an entry, its slot included.
pub(super) fn entry_bytes(is_leaf: bool, length: usize) -> usize {
    length + SLOT_BYTES + if is_leaf { 2 } else { 6 }
}

/// Inserts an entry at `index`. Returns false if the node is too full. `scratch` is used to compact the node.
pub(super) fn insert(
    bytes: &mut [u8],
    index: usize,
    entry: &[u8],
    child: Option<NodeId>,
    scratch: &mut Vec<u8>,
) -> bool {
    let needed = entry_bytes(child.is_none(), entry.len());
    if Node::new(bytes).used_bytes() + needed > bytes.len() {
        return false;
    }
    let count = u16_at(bytes, 2);
    require!(index <= count, "entry {index} goes between or after the {count} of its node");
    let slots_end = NODE_HEADER_BYTES + count * SLOT_BYTES;
    if slots_end + needed > u16_at(bytes, 4) {
        compact_entries(bytes, scratch);
    }
    let at = u16_at(bytes, 4) - (needed - SLOT_BYTES);
    set_u16(bytes, at, entry.len());
    let start = match child {
        Some(child) => {
            bytes[at + 2..at + 6].copy_from_slice(&child.to_le_bytes());
            at + 6
        }
        None => at + 2,
    };
    bytes[start..start + entry.len()].copy_from_slice(entry);
    set_u16(bytes, 4, at);
    let slot = NODE_HEADER_BYTES + index * SLOT_BYTES;
    bytes.copy_within(slot..slots_end, slot + SLOT_BYTES);
    set_u16(bytes, slot, at);
    set_u16(bytes, 2, count + 1);
    true
}

/// Appends entries to a leaf. The header is written at the end.
pub(super) struct LeafEnd<'a> {
    bytes: &'a mut [u8],
    count: usize,
    /// Where the entries begin.
    heap: usize,
    /// Number of bytes that more entries may use.
    left: usize,
}

impl<'a> LeafEnd<'a> {
    /// The end of a leaf of which at most `used_max` bytes become used. A leaf with dead bytes takes no
    /// entry.
    pub(super) fn new(bytes: &'a mut [u8], used_max: usize) -> LeafEnd<'a> {
        let node = Node::new(bytes);
        require!(node.is_leaf(), "entries are appended to a leaf");
        let is_dense = u16_at(bytes, 6) == 0;
        let left = if is_dense { used_max.saturating_sub(node.used_bytes()) } else { 0 };
        let (count, heap) = (node.count(), u16_at(bytes, 4));
        LeafEnd { bytes, count, heap, left }
    }

    /// Appends an entry above all others. Returns false if the leaf is full.
    #[inline]
    pub(super) fn append(&mut self, entry: &[u8]) -> bool {
        let needed = entry_bytes(true, entry.len());
        if needed > self.left {
            return false;
        }
        self.left -= needed;
        self.heap -= needed - SLOT_BYTES;
        let place = &mut self.bytes[self.heap..self.heap + needed - SLOT_BYTES];
        place[..2].copy_from_slice(&(entry.len() as u16).to_le_bytes());
        place[2..].copy_from_slice(entry);
        set_u16(self.bytes, NODE_HEADER_BYTES + self.count * SLOT_BYTES, self.heap);
        self.count += 1;
        true
    }

    pub(super) fn finish(self) {
        set_u16(self.bytes, 2, self.count);
        set_u16(self.bytes, 4, self.heap);
        verify!(
            (1..self.count).all(|index| Node::new(self.bytes).entry(index - 1) < Node::new(self.bytes).entry(index)),
            "appended entries lie above all others"
        );
    }
}

/// Whether an entry at `index` keeps the node in order.
pub(super) fn is_position_of(bytes: &[u8], index: usize, entry: &[u8]) -> bool {
    let node = Node::new(bytes);
    index <= node.count()
        && (index == 0 || node.entry(index - 1) < entry)
        && (index == node.count() || entry < node.entry(index))
}

/// Removes entry `index`, in an inner node together with the child after it.
pub(super) fn remove(bytes: &mut [u8], index: usize) {
    let node = Node::new(bytes);
    let dead = entry_bytes(node.is_leaf(), node.entry(index).len()) - SLOT_BYTES;
    let count = node.count();
    require!(index < count, "entry {index} that is removed is one of the {count} of its node");
    let slot = NODE_HEADER_BYTES + index * SLOT_BYTES;
    bytes.copy_within(slot + SLOT_BYTES..NODE_HEADER_BYTES + count * SLOT_BYTES, slot);
    set_u16(bytes, 2, count - 1);
    let dead = dead + u16_at(bytes, 6);
    set_u16(bytes, 6, dead);
}

/// Removes a child of an inner node. Returns false if it is the only child, so that the node has become
/// useless.
pub(super) fn remove_child(bytes: &mut [u8], index: usize) -> bool {
    let node = Node::new(bytes);
    match (index, node.count()) {
        (0, 0) => return false,
        (0, _) => {
            let next = node.child(1);
            bytes[8..12].copy_from_slice(&next.to_le_bytes());
            remove(bytes, 0);
        }
        (index, _) => remove(bytes, index - 1),
    }
    true
}

/// The order of entries: that of byte strings. The first eight bytes are compared as one number.
#[inline]
pub(super) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    if let (Some((left_head, left_rest)), Some((right_head, right_rest))) =
        (left.split_first_chunk::<8>(), right.split_first_chunk::<8>())
    {
        let (left_head, right_head) = (u64::from_be_bytes(*left_head), u64::from_be_bytes(*right_head));
        return left_head.cmp(&right_head).then_with(|| left_rest.cmp(right_rest));
    }
    left.cmp(right)
}

fn is_before_in_full(entry: &[u8], probe: &[u8], counts_equal: bool) -> bool {
    match entry.cmp(probe) {
        Ordering::Less => true,
        Ordering::Equal => counts_equal,
        Ordering::Greater => false,
    }
}

/// The first eight bytes as a number, padded with zeros.
fn head_of(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk() {
        return u64::from_be_bytes(*chunk);
    }
    bytes.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - at * 8))
}

/// Rewrites the entries to remove the dead bytes between them.
#[cold]
fn compact_entries(bytes: &mut [u8], scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.extend_from_slice(bytes);
    let old = Node::new(scratch);
    let is_leaf = old.is_leaf();
    let mut at = bytes.len();
    for index in 0..old.count() {
        let from = u16_at(scratch, NODE_HEADER_BYTES + index * SLOT_BYTES);
        let length = entry_bytes(is_leaf, u16_at(scratch, from)) - SLOT_BYTES;
        at -= length;
        bytes[at..at + length].copy_from_slice(&scratch[from..from + length]);
        set_u16(bytes, NODE_HEADER_BYTES + index * SLOT_BYTES, at);
    }
    require!(
        at >= NODE_HEADER_BYTES + u16_at(bytes, 2) * SLOT_BYTES,
        "the entries of a node do not reach into its slots"
    );
    set_u16(bytes, 4, at);
    set_u16(bytes, 6, 0);
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(*bytes[at..].first_chunk().expect("two bytes of a node")))
}

fn set_u16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}
