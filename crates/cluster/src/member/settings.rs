//! The configuration of a node of a cluster.

use std::fmt;
use std::sync::Arc;

use junctor_consensus::{Recovered, VOTERS_MAX};
use junctor_kernel::{Duration, NodeId};
use junctor_model::id::{Epoch, Incarnation};

use crate::membership::{Membership, NodeRecord, rotations};

/// The roles of a node in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// It holds data.
    pub data: bool,
    /// It serves clients.
    pub sql: bool,
    /// It votes first, and holds nothing.
    pub management: bool,
    /// A data node that does not vote, and is added to the cluster after its first start: with others as a
    /// group, or to the group in `joins`.
    pub added: bool,
    /// The group of an added node that becomes one more replica of its partitions.
    pub joins: Option<u8>,
}

impl Roles {
    /// Reads `all`, or roles with commas between them.
    pub fn named(text: &str) -> Option<Roles> {
        if text == "all" {
            return Some(Roles { data: true, sql: true, management: true, ..Roles::default() });
        }
        let mut roles = Roles::default();
        for name in text.split(',') {
            match name {
                "data" => roles.data = true,
                "sql" => roles.sql = true,
                "management" => roles.management = true,
                "added" => roles.added = true,
                _ => {
                    let group = name.strip_prefix("added:")?;
                    // Only the form that is shown: no sign and no leading zero.
                    let number = group.parse().ok().filter(|number: &u8| number.to_string() == group)?;
                    (roles.added, roles.joins) = (true, Some(number));
                }
            }
        }
        // A node that votes has voted since the first start.
        let is_possible = !roles.added || (roles.data && !roles.management);
        is_possible.then_some(roles)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.data, "data"), (self.sql, "sql"), (self.management, "management"), (self.added, "added")];
        let names: Vec<&str> = names.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        let is_all = self.data && self.sql && self.management;
        formatter.write_str(&if is_all { "all".into() } else { names.join(",") })?;
        self.joins.map_or(Ok(()), |group| write!(formatter, ":{group}"))
    }
}

/// One node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberNode {
    /// The node.
    pub node: NodeId,
    /// Its roles.
    pub roles: Roles,
    /// Host and port of its links, as users write them.
    pub address: Box<str>,
    /// The location domain; empty without one.
    pub domain: Box<str>,
}

impl MemberNode {
    /// Whether the two nodes have links. Nodes that only serve clients have nothing to say to each other.
    pub fn is_linked_with(&self, other: &MemberNode) -> bool {
        let is_client = |it: &MemberNode| !it.roles.data && !it.roles.management;
        self.node != other.node && !(is_client(self) && is_client(other))
    }
}

/// The files of the node's voter in the data directory.
#[derive(Clone, Debug)]
pub enum VoterStart {
    /// The node is no voter, or its voter has no files.
    Nothing,
    /// The log of its voter.
    Recovered {
        /// The id of the voter.
        voter: u64,
        /// The log.
        log: Recovered,
    },
}

/// The configuration of a node of a cluster.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// The cluster.
    pub cluster: u128,
    /// This node.
    pub own: NodeId,
    /// This life of it.
    pub incarnation: Incarnation,
    /// All nodes, this one included, ascending. The same on all of them.
    pub nodes: Arc<[MemberNode]>,
    /// Number of data nodes that form a group. More may be added to each group.
    pub replicas: u8,
    /// The epoch of the last start of this node; 0 for a new directory.
    pub started: Epoch,
    /// The voter's files.
    pub voter: VoterStart,
    /// A node that is silent for longer is evicted. Sooner if its frames come regularly.
    pub silence_max: Duration,
    /// A node is evicted this time after its system has begun to answer no connection.
    pub cut_max: Duration,
    /// A node that applies or syncs nothing for longer, while others do, is evicted.
    pub standstill_max: Duration,
    /// How long a start of all nodes waits for nodes that could be missing.
    pub partial_start_after: Duration,
}

impl MemberSettings {
    /// The configuration of a node.
    pub fn node(&self, node: NodeId) -> Option<&MemberNode> {
        self.nodes.iter().find(|it| it.node == node)
    }

    /// The nodes that vote, by rank: management nodes, then data nodes of different groups. An even number
    /// survives no more losses than the odd one below it.
    pub fn voters(&self) -> Vec<NodeId> {
        voters(&self.nodes, self.replicas)
    }

    /// The membership before the first start of the cluster.
    pub fn unstarted(&self) -> Membership {
        unstarted(&self.nodes, self.replicas)
    }

    /// The nodes that form each group, also of groups that are added after the first start. As many data
    /// nodes as `replicas` form a group, in the order of their ids. Replicas that are added to a group later
    /// are left out.
    pub fn groups(&self) -> Vec<Vec<NodeId>> {
        let is_of_group = |it: &&MemberNode| it.roles.data && it.roles.joins.is_none();
        let data: Vec<NodeId> = self.nodes.iter().filter(is_of_group).map(|it| it.node).collect();
        data.chunks(usize::from(self.replicas.max(1))).map(<[NodeId]>::to_vec).collect()
    }

    /// The group of a data node.
    pub fn group_of(&self, node: NodeId) -> Option<u8> {
        let joins = self.node(node)?.roles.joins;
        joins.or_else(|| self.groups().iter().position(|group| group.contains(&node)).map(|group| group as u8))
    }

    /// Where a node of the membership contradicts the list. `is_added` says whether it was added to its group
    /// as one more replica: catalogs name the other nodes of the group, so all lists must know.
    pub(super) fn contradiction(&self, record: &NodeRecord, is_added: bool) -> Option<String> {
        let NodeRecord { node: NodeId(node), group, .. } = *record;
        if self.group_of(record.node) != Some(group) {
            return Some(format!("node {node} of node group {group} has another group in `nodes`, or none"));
        }
        let is_listed_so = self.node(record.node).is_some_and(|it| it.roles.joins.is_some());
        match (is_added, is_listed_so) {
            (true, false) => {
                let role = format!("it must have the role added:{group} in `nodes`");
                Some(format!("node {node} was added to node group {group} as one more replica; {role}"))
            }
            (false, true) => {
                let role = format!("it must not have the role added:{group}, but data, or data,added in a later group");
                Some(format!("node {node} is one of those with which node group {group} began; {role}"))
            }
            _ => None,
        }
    }

    /// If this node is added to a group as one more replica: a node that all chains of the group name.
    pub fn beside(&self) -> Option<NodeId> {
        let group = self.node(self.own)?.roles.joins?;
        self.groups().get(usize::from(group))?.first().copied()
    }

    /// Number of groups of the first start: those whose nodes lack the role `added`.
    pub fn first_groups(&self) -> usize {
        data_nodes(&self.nodes).chunks(usize::from(self.replicas.max(1))).count()
    }

    /// The chains of each group.
    pub fn chains_of_groups(&self) -> Vec<Vec<Vec<NodeId>>> {
        self.groups().iter().map(|group| rotations(group)).collect()
    }
}

/// The data nodes of the first start.
fn data_nodes(nodes: &[MemberNode]) -> Vec<NodeId> {
    nodes.iter().filter(|it| it.roles.data && !it.roles.added).map(|it| it.node).collect()
}

/// As [`MemberSettings::voters`].
pub fn voters(nodes: &[MemberNode], replicas: u8) -> Vec<NodeId> {
    let mut voters: Vec<NodeId> =
        nodes.iter().filter(|it| it.roles.management && !it.roles.data).map(|it| it.node).collect();
    let data = data_nodes(nodes);
    let groups: Vec<&[NodeId]> = data.chunks(usize::from(replicas.max(1))).collect();
    for replica in 0..usize::from(replicas.max(1)) {
        voters.extend(groups.iter().filter_map(|group| group.get(replica)));
    }
    voters.truncate(VOTERS_MAX);
    if voters.len().is_multiple_of(2) {
        voters.pop();
    }
    voters
}

/// As [`MemberSettings::unstarted`]. Data nodes form groups in the order of their ids. Each group has a chain
/// for each of its nodes, of which another node is the first. The chains of the groups take turns, because a
/// table with few partitions uses the first ones.
fn unstarted(nodes: &[MemberNode], replicas: u8) -> Membership {
    let data = data_nodes(nodes);
    let members: Vec<&[NodeId]> = data.chunks(usize::from(replicas.max(1))).collect();
    let of_group = |(group, members): (usize, &&[NodeId])| members.iter().map(|node| (*node, group as u8)).collect();
    let groups: Vec<(NodeId, u8)> = members.iter().enumerate().flat_map::<Vec<_>, _>(of_group).collect();
    let mut chains = Vec::new();
    for first in 0..usize::from(replicas.max(1)) {
        chains.extend(members.iter().filter_map(|group| rotations(group).into_iter().nth(first)));
    }
    // The first voter tends to lead. The numbers are better given elsewhere.
    let leader = voters(nodes, replicas).first().copied();
    let sequencer = data.iter().copied().find(|node| Some(*node) != leader).or(leader).unwrap_or_default();
    Membership::unstarted(&groups, chains, sequencer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(roles: &[&str]) -> Vec<MemberNode> {
        let node = |(index, text): (usize, &&str)| MemberNode {
            node: NodeId(index as u8 + 1),
            roles: Roles::named(text).unwrap(),
            address: "127.0.0.1:1".into(),
            domain: "".into(),
        };
        roles.iter().enumerate().map(node).collect()
    }

    fn voters_of(roles: &[&str], replicas: u8) -> Vec<u8> {
        voters(&nodes(roles), replicas).into_iter().map(|node| node.0).collect()
    }

    #[test]
    fn roles_are_read_and_shown() {
        let texts =
            ["data", "sql", "management", "data,sql", "data,management", "all", "data,sql,added", "data,added:3"];
        for text in texts {
            assert_eq!(Roles::named(text).unwrap().to_string(), text);
        }
        let added =
            ["data,management,added", "added:0", "data,added:", "data,added:256", "data,added:01", "data,added:+1"];
        for text in ["", "data,", "Data", "sql,other", "added", "sql,added"].into_iter().chain(added) {
            assert_eq!(Roles::named(text), None, "{text}");
        }
    }

    #[test]
    fn management_nodes_vote_first_and_then_data_nodes_of_different_groups() {
        assert_eq!(voters_of(&["data", "data", "management", "sql"], 2), [3, 1, 2]);
        assert_eq!(voters_of(&["data", "data", "data", "data", "management"], 2), [5, 1, 3, 2, 4]);
        assert_eq!(voters_of(&["data", "data"], 2), [1]);
        assert_eq!(voters_of(&["all", "all", "all"], 3), [1, 2, 3]);
        let many = ["data"; 10];
        assert_eq!(voters_of(&many, 2), [1, 3, 5, 7, 9, 2, 4]);
    }

    #[test]
    fn added_nodes_form_groups_behind_the_others_and_do_not_vote() {
        let nodes = nodes(&["data", "data", "management", "sql", "data,added", "data,sql,added"]);
        assert_eq!(voters(&nodes, 2).into_iter().map(|node| node.0).collect::<Vec<_>>(), [3, 1, 2]);
        let membership = unstarted(&nodes, 2);
        assert_eq!((membership.nodes.len(), membership.open_groups, membership.chains.len()), (2, 1, 2));
    }

    #[test]
    fn replicas_that_are_added_to_a_group_change_no_other_group_and_no_voter() {
        let without = nodes(&["data", "management", "data", "data,added"]);
        let mut nodes = nodes(&["data", "management", "data", "data,added", "data,added:1", "data,sql,added:0"]);
        // Their numbers may be between the others.
        nodes.swap(2, 5);
        (nodes[2].node, nodes[5].node) = (NodeId(3), NodeId(6));
        let numbers = |nodes: &[MemberNode]| voters(nodes, 1).into_iter().map(|node| node.0).collect::<Vec<_>>();
        assert_eq!((numbers(&without), numbers(&nodes)), (vec![2, 1, 3], vec![2, 1, 6]));
        let membership = unstarted(&nodes, 1);
        let groups: Vec<(u8, u8)> = membership.nodes.iter().map(|record| (record.node.0, record.group)).collect();
        assert_eq!(groups, [(1, 0), (6, 1)]);
    }

    #[test]
    fn data_nodes_form_groups_whose_nodes_are_primaries_in_turn() {
        let membership = unstarted(&nodes(&["data", "data", "management", "data", "data"]), 2);
        let groups: Vec<(u8, u8)> = membership.nodes.iter().map(|record| (record.node.0, record.group)).collect();
        assert_eq!(groups, [(1, 0), (2, 0), (4, 1), (5, 1)]);
        let chains: Vec<Vec<u8>> = membership.chains.iter().map(|it| it.iter().map(|node| node.0).collect()).collect();
        assert_eq!(chains, [vec![1, 2], vec![4, 5], vec![2, 1], vec![5, 4]]);
        assert_eq!(unstarted(&nodes(&["all", "all", "all"]), 3).sequencer, NodeId(2));
    }
}
