//! The nodes of a cluster, as a node shows them.

use super::Result;
use super::session::Session;
use super::table::{Cell, Table};

/// The query of the nodes.
pub const NODES: &str = "SELECT node_id, roles, state, node_group, is_durable, is_leader, is_sequencer, is_voter, \
                         incarnation, epoch, protocol_version, address, location_domain FROM junctor_info.nodes \
                         ORDER BY node_id";

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: u8,
    /// Its roles, with commas between them.
    pub roles: String,
    /// Its state, as in `junctor_info.nodes`.
    pub state: String,
    /// Its node group, with data.
    pub group: Option<u64>,
    /// Whether its disk counts.
    pub is_durable: bool,
    /// Whether it leads the voters or numbers commits.
    pub has_office: bool,
    /// Its life.
    pub incarnation: u64,
    /// The epoch of the membership at the node that shows it.
    pub epoch: u64,
}

impl Node {
    /// Whether it holds data.
    pub fn has_data(&self) -> bool {
        self.group.is_some()
    }

    /// Whether it does what it is there for: a data node serves, and its disk counts.
    pub fn is_whole(&self) -> bool {
        match self.has_data() {
            true => self.state == "SERVING" && self.is_durable,
            false => self.state == "CONNECTED",
        }
    }

    /// Whether no process of it is in the cluster.
    pub fn is_away(&self) -> bool {
        self.state == "DOWN"
    }

    /// The place in a restart of all nodes: management nodes, data nodes, SQL nodes. Nodes whose loss costs
    /// an election come last in each class.
    pub fn rank(&self) -> (u8, bool, u8) {
        let class = match (self.has_data(), self.roles.contains("management")) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => 2,
        };
        (class, self.has_office, self.id)
    }
}

/// The nodes in this table of [`NODES`].
pub fn nodes_of(table: &Table) -> Vec<Node> {
    let node = |row: usize| {
        let number = |column: &str| table.cell(row, column).number();
        let is_set = |column: &str| number(column) == Some(1);
        Node {
            id: number("node_id").unwrap_or(0) as u8,
            roles: table.cell(row, "roles").text(),
            state: table.cell(row, "state").text(),
            group: number("node_group"),
            is_durable: is_set("is_durable"),
            has_office: is_set("is_leader") || is_set("is_sequencer"),
            incarnation: number("incarnation").unwrap_or(0),
            epoch: number("epoch").unwrap_or(0),
        }
    };
    (0..table.rows.len()).map(node).collect()
}

/// The nodes of the cluster. Errors: the node does not answer, or is in no cluster.
pub fn read(session: &mut Session) -> Result<Vec<Node>> {
    let nodes = nodes_of(&session.query(NODES)?);
    if nodes.is_empty() { Err("this server is in no cluster".into()) } else { Ok(nodes) }
}

/// The node that the session has logged in to.
pub fn own(session: &mut Session) -> Result<u8> {
    let table = session.query("SHOW GLOBAL STATUS LIKE 'Ndb_cluster_node_id'")?;
    Ok(table.rows.first().and_then(|row| row.get(1)).and_then(Cell::number).unwrap_or(0) as u8)
}

/// Why a restart of all nodes, one after the other, would not keep the cluster serving.
pub fn obstacle(nodes: &[Node]) -> Option<String> {
    let of_group = |group: u64| nodes.iter().filter(move |node| node.group == Some(group));
    let alone = nodes.iter().find(|node| node.group.is_some_and(|group| of_group(group).count() < 2));
    let broken = nodes.iter().find(|node| node.has_data() && !node.is_whole());
    match (alone, broken) {
        (Some(node), _) => Some(format!("node {} is the only replica of its node group", node.id)),
        (_, Some(node)) => Some(format!("node {} is {}, or its disk does not count", node.id, node.state)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u8, roles: &str, state: &str, group: Option<u64>) -> Node {
        let (roles, state) = (roles.to_owned(), state.to_owned());
        Node { id, roles, state, group, is_durable: group.is_some(), has_office: id == 1, incarnation: 7, epoch: 3 }
    }

    #[test]
    fn a_rolling_restart_goes_from_management_to_sql_and_keeps_a_replica() {
        let mut nodes = vec![
            node(1, "data", "SERVING", Some(0)),
            node(2, "data,sql", "SERVING", Some(0)),
            node(3, "sql", "CONNECTED", None),
            node(4, "management", "CONNECTED", None),
        ];
        let mut order = nodes.clone();
        order.sort_by_key(Node::rank);
        assert_eq!(order.iter().map(|node| node.id).collect::<Vec<_>>(), [4, 2, 1, 3]);
        assert_eq!(obstacle(&nodes), None);
        nodes[1].is_durable = false;
        assert!(obstacle(&nodes).is_some_and(|text| text.contains("node 2")));
        nodes.remove(1);
        assert!(obstacle(&nodes).is_some_and(|text| text.contains("node 1 is the only replica")));
    }
}
