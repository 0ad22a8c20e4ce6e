//! Verification of a tree, for tests and the simulator.

use junctor_model::id::RowId;

use super::node::{Node, NodeId};
use super::tree::OrderedIndex;

impl OrderedIndex {
    /// Verifies order, separators, depth and counts, and calls `visit` with the key and row of every entry.
    pub(crate) fn check(&self, mut visit: impl FnMut(&[u8], RowId) -> Result<(), String>) -> Result<(), String> {
        self.blocks().check()?;
        if self.root_node().is_none() {
            return match (self.entries, self.height, self.blocks().used_blocks()) {
                (0, 0, 0) => Ok(()),
                (entries, height, blocks) => {
                    Err(format!("an empty tree with {entries} entries, height {height}, {blocks} nodes"))
                }
            };
        }
        let mut state = State { entries: 0, nodes: 0, previous: Vec::new(), visit: &mut visit };
        self.check_node(self.root, 1, (&[], None), &mut state)?;
        if state.entries != self.entries || state.nodes != self.blocks().used_blocks() {
            return Err(format!(
                "{} entries and {} nodes in the tree, counted {} and {}",
                state.entries,
                state.nodes,
                self.entries,
                self.blocks().used_blocks()
            ));
        }
        Ok(())
    }

    fn check_node(
        &self,
        id: NodeId,
        depth: usize,
        range: (&[u8], Option<&[u8]>),
        state: &mut State<'_>,
    ) -> Result<(), String> {
        state.nodes += 1;
        let node: Node<'_> = self.node(id);
        for index in 0..node.count() {
            let entry = node.entry(index);
            if entry < range.0 || range.1.is_some_and(|end| entry >= end) {
                return Err(format!("node {id}: entry {index} lies outside the separators"));
            }
        }
        if node.is_leaf() {
            if depth != self.height {
                return Err(format!("leaf {id} at depth {depth} of {}", self.height));
            }
            for index in 0..node.count() {
                let entry = node.entry(index);
                if state.entries > 0 && entry <= &state.previous[..] {
                    return Err(format!("node {id}: entry {index} is not above the one before"));
                }
                state.previous = entry.to_vec();
                state.entries += 1;
                let (key, row) = OrderedIndex::split_entry(entry);
                (state.visit)(key, row)?;
            }
            return Ok(());
        }
        for child in 0..=node.count() {
            let low = if child == 0 { range.0 } else { node.entry(child - 1) };
            let high = if child == node.count() { range.1 } else { Some(node.entry(child)) };
            self.check_node(node.child(child), depth + 1, (low, high), state)?;
        }
        Ok(())
    }
}

type Visit<'a> = dyn FnMut(&[u8], RowId) -> Result<(), String> + 'a;

struct State<'a> {
    entries: u64,
    nodes: usize,
    previous: Vec<u8>,
    visit: &'a mut Visit<'a>,
}
