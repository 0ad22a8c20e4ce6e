//! Figures about the node's cluster, which main writes and every sql block shows in SHOW STATUS.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! figures {
    ($($figure:ident = $name:literal: $meaning:literal;)*) => {
        /// A figure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ClusterFigure {
            $(#[doc = $meaning] $figure,)*
        }

        /// Every figure with its name in SHOW STATUS, in the order of the names.
        pub const CLUSTER_FIGURES: &[(ClusterFigure, &str)] = &[$((ClusterFigure::$figure, $name),)*];
    };
}

figures! {
    Epoch = "Cluster_epoch": "The epoch of the installed membership.";
    Leader = "Cluster_leader": "The node that leads the voters; 0 if the node knows none.";
    LinksLost = "Links_lost": "Lives of other nodes that have ended for the links of this node, since its start.";
    LinksOpened = "Links_opened": "Lives of other nodes to which all channels were opened, since the start.";
    LinksRefused = "Links_refused": "Causes of refused connections that the log has, since the start.";
    LinksSilent = "Links_silent": "How often another node was silent for 20 ms, since the start.";
    LinksUp = "Links_up": "Nodes to which all channels are open.";
    NodeId = "Ndb_cluster_node_id": "This node.";
    DataNodes = "Ndb_number_of_data_nodes": "Data nodes of the cluster.";
    ReadyDataNodes = "Ndb_number_of_ready_data_nodes": "Data nodes that serve.";
}

const COUNT: usize = CLUSTER_FIGURES.len();

/// The figures of a node. A node alone shows none.
#[derive(Debug, Default)]
pub struct ClusterStatus([AtomicU64; COUNT]);

impl ClusterStatus {
    /// Writes a figure. Main is the only writer.
    pub fn set(&self, figure: ClusterFigure, value: u64) {
        self.0[figure as usize].store(value, Ordering::Relaxed);
    }

    /// Adds one to a figure. Main is the only writer.
    pub fn count(&self, figure: ClusterFigure) {
        self.set(figure, self.get(figure) + 1);
    }

    fn get(&self, figure: ClusterFigure) -> u64 {
        self.0[figure as usize].load(Ordering::Relaxed)
    }

    /// The names and values of all figures; none on a node alone.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let is_shown = self.get(ClusterFigure::NodeId) != 0;
        CLUSTER_FIGURES.iter().filter(move |_| is_shown).map(|&(figure, name)| (name, self.get(figure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_on_a_node_of_a_cluster_in_the_order_of_their_names() {
        let status = ClusterStatus::default();
        status.count(ClusterFigure::LinksOpened);
        assert_eq!(status.rows().count(), 0);
        status.set(ClusterFigure::NodeId, 3);
        status.count(ClusterFigure::LinksOpened);
        let rows: Vec<(&str, u64)> = status.rows().collect();
        assert!(rows.is_sorted());
        assert!(rows.contains(&("Ndb_cluster_node_id", 3)) && rows.contains(&("Links_opened", 2)));
    }
}
