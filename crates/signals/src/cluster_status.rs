//! Figures of the node that every sql block shows in SHOW STATUS: about its cluster, which main writes, and
//! about the purge of expired rows, which the first sql block writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    NodeGroups = "Cluster_node_groups": "Node groups in which new tables are placed; 0 if the node knows no membership.";
    LinksLost = "Links_lost": "Lives of other nodes that have ended for the links of this node, since its start.";
    LinksOpened = "Links_opened": "Lives of other nodes to which all channels were opened, since the start.";
    LinksRefused = "Links_refused": "Causes of refused connections that the log has, since the start.";
    LinksSilent = "Links_silent": "How often another node was silent for 20 ms, since the start.";
    LinksUp = "Links_up": "Nodes to which all channels are open.";
    NodeId = "Ndb_cluster_node_id": "This node.";
    DataNodes = "Ndb_number_of_data_nodes": "Data nodes of the cluster.";
    ReadyDataNodes = "Ndb_number_of_ready_data_nodes": "Data nodes that serve.";
    PurgeRounds = "Ttl_purge_rounds": "Rounds of the purge of expired rows, since the start.";
    PurgedRows = "Ttl_rows_purged": "Expired rows that were deleted, since the start.";
}

const COUNT: usize = CLUSTER_FIGURES.len();

/// The figures of a node. A node alone shows those of the purge only.
#[derive(Debug, Default)]
pub struct ClusterStatus {
    figures: [AtomicU64; COUNT],
    /// Whether schema changes of the cluster run on another node, or nowhere.
    is_led: AtomicBool,
}

impl ClusterStatus {
    /// Writes a figure. It has one writer.
    pub fn set(&self, figure: ClusterFigure, value: u64) {
        self.figures[figure as usize].store(value, Ordering::Relaxed);
    }

    /// Adds one to a figure. It has one writer.
    pub fn count(&self, figure: ClusterFigure) {
        self.add(figure, 1);
    }

    /// Adds to a figure. It has one writer.
    pub fn add(&self, figure: ClusterFigure, more: u64) {
        self.set(figure, self.get(figure) + more);
    }

    /// Notes whether schema changes run on this node. Main is the only writer.
    pub fn set_runs_schema_changes(&self, runs: bool) {
        self.is_led.store(!runs, Ordering::Relaxed);
    }

    /// Whether schema changes run on this node: on a node alone, and on the node with the sequencer.
    pub fn runs_schema_changes(&self) -> bool {
        !self.is_led.load(Ordering::Relaxed)
    }

    /// A figure.
    pub fn get(&self, figure: ClusterFigure) -> u64 {
        self.figures[figure as usize].load(Ordering::Relaxed)
    }

    /// The names and values of all figures; on a node alone those of the purge.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let is_member = self.get(ClusterFigure::NodeId) != 0;
        let of_purge = |figure| matches!(figure, ClusterFigure::PurgeRounds | ClusterFigure::PurgedRows);
        let shown = CLUSTER_FIGURES.iter().filter(move |(figure, _)| is_member || of_purge(*figure));
        shown.map(|&(figure, name)| (name, self.get(figure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_on_a_node_of_a_cluster_in_the_order_of_their_names() {
        let status = ClusterStatus::default();
        status.count(ClusterFigure::LinksOpened);
        assert_eq!(status.rows().collect::<Vec<_>>(), [("Ttl_purge_rounds", 0), ("Ttl_rows_purged", 0)]);
        status.set(ClusterFigure::NodeId, 3);
        status.count(ClusterFigure::LinksOpened);
        let rows: Vec<(&str, u64)> = status.rows().collect();
        assert!(rows.is_sorted());
        assert!(rows.contains(&("Ndb_cluster_node_id", 3)) && rows.contains(&("Links_opened", 2)));
    }
}
