//! A set of node ids.

use junctor_kernel::NodeId;

/// A set of nodes, iterated in ascending order of their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSet([u64; 4]);

impl NodeSet {
    /// The set of no node.
    pub const EMPTY: NodeSet = NodeSet([0; 4]);

    /// Adds a node.
    pub const fn insert(&mut self, node: NodeId) {
        self.0[node.0 as usize / 64] |= 1 << (node.0 % 64);
    }

    /// Removes a node, if it is there.
    pub const fn remove(&mut self, node: NodeId) {
        self.0[node.0 as usize / 64] &= !(1 << (node.0 % 64));
    }

    /// Whether the node is in the set.
    pub const fn contains(&self, node: NodeId) -> bool {
        self.0[node.0 as usize / 64] & 1 << (node.0 % 64) != 0
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no node.
    pub fn is_empty(&self) -> bool {
        *self == NodeSet::EMPTY
    }

    /// The nodes of both sets.
    #[must_use]
    pub fn union(&self, other: &NodeSet) -> NodeSet {
        NodeSet(std::array::from_fn(|index| self.0[index] | other.0[index]))
    }

    /// The nodes that both sets have.
    #[must_use]
    pub fn intersection(&self, other: &NodeSet) -> NodeSet {
        NodeSet(std::array::from_fn(|index| self.0[index] & other.0[index]))
    }

    /// The nodes of this set that the other one lacks.
    #[must_use]
    pub fn without(&self, other: &NodeSet) -> NodeSet {
        NodeSet(std::array::from_fn(|index| self.0[index] & !other.0[index]))
    }

    /// The set as words: bit N mod 64 of word N div 64 for node N.
    pub const fn to_words(self) -> [u64; 4] {
        self.0
    }

    /// The set of these words.
    pub const fn from_words(words: [u64; 4]) -> NodeSet {
        NodeSet(words)
    }

    /// The nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + use<> {
        let mut words = self.0;
        std::iter::from_fn(move || {
            let index = words.iter().position(|word| *word != 0)?;
            let bit = words[index].trailing_zeros();
            words[index] &= words[index] - 1;
            Some(NodeId((index * 64) as u8 + bit as u8))
        })
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_inserted_in_ascending_order() {
        let set: NodeSet = [200, 3, 64, 63].map(NodeId).into_iter().collect();
        assert_eq!(set.iter().map(|node| node.0).collect::<Vec<_>>(), [3, 63, 64, 200]);
        assert_eq!(set.len(), 4);
        let other: NodeSet = [3, 5].map(NodeId).into_iter().collect();
        assert_eq!(set.union(&other).len(), 5);
        assert_eq!(set.intersection(&other).iter().collect::<Vec<_>>(), [NodeId(3)]);
        let mut left = set.without(&other);
        assert!(!left.contains(NodeId(3)) && left.contains(NodeId(200)));
        left.remove(NodeId(200));
        assert!(!left.contains(NodeId(200)) && !left.is_empty());
    }
}
