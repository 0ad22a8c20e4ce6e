//! The nodes of a cluster, as a node shows them.

use super::Result;
use super::session::Session;
use super::table::Table;

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
    /// Whether it votes.
    pub is_voter: bool,
    /// Whether the node that shows it has a link to it, or is it.
    pub is_linked: bool,
    /// Its life, if the node that shows it knows one.
    pub incarnation: Option<u64>,
    /// The epoch of the membership at the node that shows it.
    pub epoch: u64,
}

impl Node {
    /// Whether it holds data.
    pub fn has_data(&self) -> bool {
        self.group.is_some()
    }

    /// The node group that it joins as one more replica, by its role.
    pub fn joins(&self) -> Option<u64> {
        self.roles.split(',').find_map(|role| role.strip_prefix("added:")?.parse().ok())
    }

    /// Whether it does its work: a data node serves, and its disk counts.
    pub fn is_whole(&self) -> bool {
        match self.has_data() {
            true => self.state == "SERVING" && self.is_durable,
            false => self.state == "CONNECTED",
        }
    }

    /// Whether no process of the node is in the cluster.
    pub fn is_away(&self) -> bool {
        match &*self.state {
            "DOWN" | "REMOVED" => true,
            // It is shown so whatever its process does. All nodes have links to it, because it has data.
            "LEAVING" => !self.is_linked,
            _ => false,
        }
    }

    /// Whether its state is known. A node without data asks others about nodes that it has no links to, and
    /// may get no answer in time.
    pub fn is_known(&self) -> bool {
        self.state != "UNKNOWN"
    }

    /// Whether the present membership has it.
    pub fn is_member(&self) -> bool {
        matches!(&*self.state, "SERVING" | "JOINING" | "LEAVING")
    }

    /// Whether it votes, and its process is heard.
    fn is_present_voter(&self) -> bool {
        self.is_voter && (self.is_member() || matches!(&*self.state, "CONNECTED" | "WAITING"))
    }

    /// The place in a restart of all nodes: management nodes, data nodes, SQL nodes. In each class, the
    /// leader and the sequencer come last.
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
            is_voter: is_set("is_voter"),
            is_linked: number("protocol_version").is_some(),
            incarnation: number("incarnation"),
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
    Ok(own_in(&table))
}

/// The number in the answer to SHOW STATUS, whose values are texts; 0 if there is none.
fn own_in(status: &Table) -> u8 {
    status.rows.first().and_then(|row| row.get(1)).and_then(|cell| cell.text().parse().ok()).unwrap_or(0)
}

/// Why the cluster would stop serving during a rolling restart.
pub fn obstacle(nodes: &[Node]) -> Option<String> {
    let of_group = |group: u64| nodes.iter().filter(move |node| node.group == Some(group));
    if let Some(node) = nodes.iter().find(|node| node.group.is_some_and(|group| of_group(group).count() < 2)) {
        return Some(format!("node {} is the only replica of its node group", node.id));
    }
    if let Some(node) = nodes.iter().find(|node| node.has_data() && !node.is_whole()) {
        return Some(format!("node {} is {}, or its disk does not count", node.id, node.state));
    }
    let voters = nodes.iter().filter(|node| node.is_voter).count();
    let present = nodes.iter().filter(|node| node.is_present_voter()).count();
    // Without a majority, no data node may serve.
    let keeps_majority = voters == 0 || present > voters / 2 + 1;
    (!keeps_majority).then(|| format!("{present} of {voters} voters are there, and one less would be no majority"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::table::Cell;

    fn node(id: u8, roles: &str, state: &str, group: Option<u64>) -> Node {
        let (roles, state) = (roles.to_owned(), state.to_owned());
        let (is_durable, has_office, is_voter) = (group.is_some(), id == 1, roles != "sql");
        let (is_linked, incarnation) = (true, Some(7));
        Node { id, roles, state, group, is_durable, has_office, is_voter, is_linked, incarnation, epoch: 3 }
    }

    fn nodes() -> Vec<Node> {
        vec![
            node(1, "data", "SERVING", Some(0)),
            node(2, "data,sql", "SERVING", Some(0)),
            node(3, "sql", "CONNECTED", None),
            node(4, "management", "CONNECTED", None),
        ]
    }

    #[test]
    fn a_rolling_restart_goes_from_management_to_sql_and_keeps_a_replica() {
        let mut nodes = nodes();
        let mut order = nodes.clone();
        order.sort_by_key(Node::rank);
        assert_eq!(order.iter().map(|node| node.id).collect::<Vec<_>>(), [4, 2, 1, 3]);
        assert_eq!(obstacle(&nodes), None);
        nodes[1].is_durable = false;
        assert!(obstacle(&nodes).is_some_and(|text| text.contains("node 2")));
        nodes.remove(1);
        assert!(obstacle(&nodes).is_some_and(|text| text.contains("node 1 is the only replica")));
    }

    #[test]
    fn a_node_that_leaves_is_away_without_a_link() {
        let table = |state: &str, version: mysql::Value| {
            let numbers = ["node_id", "node_group", "incarnation", "epoch"];
            let flags = ["is_durable", "is_leader", "is_sequencer", "is_voter"];
            let columns = [&["state", "protocol_version", "roles"], &numbers[..], &flags].concat();
            let texts = [mysql::Value::from(state), version, mysql::Value::from("data,added:0")];
            let values = texts.into_iter().chain([6, 0, 7, 3, 1, 0, 0, 0].map(mysql::Value::Int));
            let row = values.map(|value| Cell::of(value, false)).collect();
            Table { columns: columns.into_iter().map(String::from).collect(), rows: vec![row] }
        };
        let is_away = |state: &str, version| nodes_of(&table(state, version))[0].is_away();
        assert!(is_away("LEAVING", mysql::Value::NULL) && !is_away("LEAVING", mysql::Value::from(1)));
        assert!(is_away("DOWN", mysql::Value::NULL) && !is_away("JOINING", mysql::Value::from(1)));
    }

    #[test]
    fn the_own_node_is_read_from_a_text() {
        let cell = |text: &str| Cell::of(mysql::Value::from(text), false);
        let row = vec![cell("Ndb_cluster_node_id"), cell("12")];
        let columns = ["Variable_name", "Value"].map(String::from).to_vec();
        assert_eq!(own_in(&Table { columns: columns.clone(), rows: vec![row] }), 12);
        assert_eq!(own_in(&Table { columns, rows: Vec::new() }), 0, "a node alone");
    }

    #[test]
    fn a_rolling_restart_keeps_a_majority_of_the_voters() {
        let lacks_majority = |nodes: &[Node], text: &str| obstacle(nodes).is_some_and(|it| it.starts_with(text));
        for state in ["DOWN", "SILENT", "UNKNOWN"] {
            let mut nodes = nodes();
            nodes[3].state = state.to_owned();
            assert!(lacks_majority(&nodes, "2 of 3 voters are there"), "{state}");
        }
        // Two data nodes alone have one voter.
        let mut pair = nodes();
        pair.truncate(2);
        pair[1].is_voter = false;
        assert!(lacks_majority(&pair, "1 of 1 voters are there"));
        // Five voters may do without one.
        let mut five = nodes();
        five.extend([node(5, "management", "CONNECTED", None), node(6, "management", "DOWN", None)]);
        assert_eq!(obstacle(&five), None);
    }
}
