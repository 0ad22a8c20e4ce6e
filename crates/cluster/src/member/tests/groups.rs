//! Node groups that are added and removed.

use super::*;
use crate::member::RemovalRefusal;

/// Restarts a cluster with two more data nodes, 5 and 6, of these roles.
pub(super) fn extended(roles: &str) -> Cluster {
    let mut cluster = formed(&SMALL);
    cluster.kill_all();
    for node in [NodeId(5), NodeId(6)] {
        let roles = Roles::named(roles).unwrap();
        cluster.nodes.push(MemberNode { node, roles, address: "127.0.0.1:1".into(), domain: "".into() });
        cluster.places.insert(node, Place::default());
    }
    (1..=6).for_each(|node| cluster.start(node));
    cluster
}

#[test]
fn new_data_nodes_form_a_group_with_the_role_added_only() {
    let mut cluster = extended("data,added");
    cluster.run_until("the group is added", |it| it.serve(&[1, 2, 5, 6]));
    let mut cluster = extended("data");
    let reason = |cluster: &Cluster, node: u8| cluster.places[&NodeId(node)].stopped.clone();
    cluster.run_until("nodes stop", |it| [1, 2, 3].iter().all(|node| reason(it, *node).is_some()));
    let text = reason(&cluster, 3).unwrap();
    assert!(
        text.contains(
            "node 5 of `nodes` has a group that the cluster lacks; data nodes that are added need the role added"
        ),
        "{text}"
    );
}

/// A cluster to which nodes 5 and 6 were added.
fn grown() -> Cluster {
    let mut cluster = extended("data,added");
    cluster.run_until("the group is open", |it| {
        it.serve(&[1, 2, 5, 6]) && it.is_settled() && it.membership(3).is_some_and(|it| it.closed_group().is_none())
    });
    cluster
}

fn change_group(cluster: &mut Cluster, at: u8, group: u8, leaves: bool) -> Result<(), RemovalRefusal> {
    let result = cluster.places.get_mut(&NodeId(at)).unwrap().member.as_mut().unwrap().change_group(group, leaves);
    cluster.collect();
    result
}

/// The node with the sequencer reports how far it is in the present epoch.
fn report_progress(cluster: &mut Cluster, is_left_group_empty: bool) {
    let epoch = cluster.membership(cluster.leader().unwrap()).unwrap().epoch;
    report(cluster, is_left_group_empty, CommitNumber::new(epoch, 9));
}

/// As [`report_progress`], with what all disks have.
fn report(cluster: &mut Cluster, is_left_group_empty: bool, durable: CommitNumber) {
    let leader = cluster.leader().unwrap();
    let membership = cluster.membership(leader).unwrap().clone();
    let progress = EpochProgress {
        started: membership.epoch,
        leases_over: membership.epoch,
        markable: NodeSet::from_words([u64::MAX; 4]),
        admits: true,
        slow: None,
        durable,
        is_left_group_empty,
    };
    cluster.places.get_mut(&membership.sequencer).unwrap().member.as_mut().unwrap().set_progress(progress);
}

fn state_of_group(cluster: &Cluster, group: u64) -> Option<Value> {
    let rows = member(cluster, 3).group_rows();
    rows.into_iter().find(|row| row[0] == Value::UInt(group)).map(|row| row[1].clone())
}

#[test]
fn only_the_last_group_leaves_and_only_one_that_was_added() {
    let mut cluster = grown();
    let leader = cluster.leader().unwrap();
    let lasting = |text: &str| Err(RemovalRefusal::Lasting(text.to_owned()));
    let refused = [(0, "has been there since the first start, and its nodes vote"), (2, "does not exist")];
    for (group, text) in refused {
        assert_eq!(change_group(&mut cluster, leader, group, true), lasting(&format!("node group {group} {text}")));
    }
    for node in (1..=6).filter(|node| *node != leader) {
        let passing = RemovalRefusal::Passing("this node does not lead the cluster".to_owned());
        assert_eq!(change_group(&mut cluster, node, 1, true), Err(passing));
    }
    assert_eq!(change_group(&mut cluster, leader, 1, false), Ok(()), "it stays");
    let mut growing = extended("data,added");
    growing.run_until("the group is added", |it| it.membership(3).is_some_and(|it| it.closed_group().is_some()));
    let leader = growing.leader().unwrap();
    assert_eq!(change_group(&mut growing, leader, 1, true), lasting("node group 1 has not opened yet"));
}

#[test]
fn a_group_is_removed_once_it_is_empty_and_its_nodes_never_return() {
    let mut cluster = grown();
    let text = |text: &str| Some(Value::Bytes(text.as_bytes().to_vec()));
    let leader = cluster.leader().unwrap();
    let leaves = |it: &Cluster| it.membership(3).is_some_and(|it| it.leaving_group() == Some(1));
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    cluster.run_until("it leaves", |it| leaves(it) && it.is_settled());
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()), "it does already");
    assert_eq!(state_of_group(&cluster, 1), text("LEAVING"));
    // Its nodes still hold rows: one of them may end and return, and all of them must not be lost.
    cluster.kill(5);
    cluster.run_until("node 6 goes on", |it| it.serve(&[1, 2, 6]) && it.is_settled());
    cluster.start(5);
    cluster.run_until("node 5 is back", |it| it.serve(&[1, 2, 5, 6]) && it.is_settled());
    report_progress(&mut cluster, false);
    (0..20).for_each(|_| cluster.step());
    assert!(leaves(&cluster));
    // The operator has thought better of it, and again.
    assert_eq!(change_group(&mut cluster, leader, 1, false), Ok(()));
    cluster.run_until("it stays", |it| !leaves(it));
    report_progress(&mut cluster, true);
    cluster.run_until("the epoch has started", Cluster::is_settled);
    (0..20).for_each(|_| cluster.step());
    assert_eq!(cluster.membership(3).unwrap().open_groups, 2);
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    cluster.run_until("it leaves", leaves);
    report_progress(&mut cluster, true);
    cluster.run_until("it is removed", |it| it.membership(3).is_some_and(|it| it.open_groups == 1));
    cluster.run_until("its nodes have left", |it| has_left(it, 5) && has_left(it, 6));
    report_progress(&mut cluster, false);
    let membership = cluster.membership(3).unwrap().clone();
    assert_eq!((membership.removed_nodes().iter().count(), state_of_group(&cluster, 1)), (2, None));
    assert_eq!(membership.durable.counter(), 9, "disks without the last moves never count");
    for node in [5, 6] {
        cluster.kill(node);
        cluster.start(node);
        cluster.run_until("it is refused", |it| it.places[&NodeId(node)].stopped.is_some());
        let reason = cluster.places[&NodeId(node)].stopped.clone().unwrap();
        let expected = format!("node {node} was removed from the cluster");
        assert!(reason.starts_with(&expected), "{reason}");
        cluster.kill(node);
    }
    (0..100).for_each(|_| cluster.step());
    // All others start again without them.
    let durable = cluster.membership(3).unwrap().durable;
    cluster.kill_all();
    [1, 2].into_iter().for_each(|node| cluster.set_disk(node, durable, CommitNumber(0)));
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("all serve", |it| it.serve(&[1, 2]) && it.is_settled());
    assert_eq!(cluster.membership(3).unwrap().closed_group(), None);
    let states: Vec<Value> = member(&cluster, 3).rows()[4..].iter().map(|row| row[2].clone()).collect();
    assert_eq!(states, [text("REMOVED").unwrap(), text("REMOVED").unwrap()]);
    // They are in no list any more, and the log of the voters still has memberships with them.
    restart_with_short_list(&mut cluster);
    cluster.run_until("all serve", |it| it.serve(&[1, 2]) && it.is_settled());
}

#[test]
fn the_lives_that_a_membership_lacks_are_refused() {
    let mut cluster = grown();
    let fenced = |cluster: &Cluster, at: u8, node: u8| cluster.places[&NodeId(at)].fenced.get(&NodeId(node)).copied();
    assert_eq!(fenced(&cluster, 1, 2), Some(1), "the life before the restart");
    cluster.kill(2);
    cluster.run_until("node 1 goes on", |it| it.serve(&[1, 5, 6]) && it.is_settled());
    assert!([1, 3, 4, 5, 6].iter().all(|at| fenced(&cluster, *at, 2) == Some(2)));
    let leader = cluster.leader().unwrap();
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    cluster.run_until("it leaves", |it| it.membership(3).is_some_and(|it| it.leaving_group().is_some()));
    report_progress(&mut cluster, true);
    cluster.run_until("it is removed", |it| it.serve(&[1]));
    assert!([1, 3, 4].iter().all(|at| [5, 6].iter().all(|node| fenced(&cluster, *at, *node) == Some(1))));
}

#[test]
fn a_group_is_said_to_stay_only_if_no_change_is_under_way() {
    let mut cluster = grown();
    let leader = cluster.leader().unwrap();
    let passing = || Err(RemovalRefusal::Passing("the membership changes".to_owned()));
    // The entry is proposed, and no other voter has it.
    let leading = cluster.places.get_mut(&NodeId(leader)).unwrap().member.as_mut().unwrap();
    assert_eq!(leading.change_group(1, true), Ok(()));
    assert_eq!(leading.change_group(1, false), passing(), "it would leave all the same");
    cluster.collect();
    cluster.run_until("it leaves", |it| it.membership(3).is_some_and(|it| it.leaving_group() == Some(1)));
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    // A leader that is cut off does not know whether another one has taken the mark back.
    for voter in (1..=4).filter(|node| *node != leader) {
        cluster.set_heard(leader, voter, false);
    }
    (0..8).for_each(|_| cluster.step());
    let leading = cluster.places.get_mut(&NodeId(leader)).unwrap().member.as_mut().unwrap();
    if leading.voter.as_ref().unwrap().is_leader() {
        assert_eq!(leading.change_group(1, true), passing());
    }
}

#[test]
fn a_voter_that_was_away_at_a_removal_starts_with_a_list_without_the_nodes() {
    let mut cluster = grown();
    let leader = cluster.leader().unwrap();
    let voter = [3, 2].into_iter().find(|node| *node != leader).unwrap();
    cluster.kill(voter);
    let data: Vec<u8> = [1, 2, 5, 6].into_iter().filter(|node| *node != voter).collect();
    cluster.run_until("the others go on", |it| it.serve(&data) && it.is_settled());
    let leader = cluster.leader().unwrap();
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    cluster.run_until("it leaves", |it| {
        it.membership(leader).is_some_and(|it| it.leaving_group() == Some(1)) && it.is_settled()
    });
    report_progress(&mut cluster, true);
    let is_removed = |it: &Cluster| it.membership(leader).is_some_and(|it| it.open_groups == 1);
    cluster.run_until("it is removed", is_removed);
    for node in [5, 6] {
        cluster.kill(node);
    }
    cluster.nodes.truncate(4);
    cluster.places.retain(|node, _| node.0 <= 4);
    // Its own log has only memberships with the nodes.
    cluster.start(voter);
    cluster.run_until("it has the present one", |it| it.membership(voter).is_some_and(|it| it.open_groups == 1));
}

/// Stops all nodes, and starts the first four with a list of these.
fn restart_with_short_list(cluster: &mut Cluster) {
    let durable = cluster.membership(3).unwrap().durable;
    cluster.kill_all();
    cluster.nodes.truncate(4);
    cluster.places.retain(|node, _| node.0 <= 4);
    [1, 2].into_iter().for_each(|node| cluster.set_disk(node, durable, CommitNumber(0)));
    (1..=4).for_each(|node| cluster.start(node));
}

#[test]
fn voters_whose_lists_lack_nodes_of_the_cluster_stop() {
    let mut cluster = grown();
    restart_with_short_list(&mut cluster);
    let reason = |cluster: &Cluster, node: u8| cluster.places[&NodeId(node)].stopped.clone();
    cluster.run_until("a leader stops", |it| (1..=4).filter(|node| reason(it, *node).is_some()).count() >= 2);
    let text = (1..=4).find_map(|node| reason(&cluster, node)).unwrap();
    assert!(text.starts_with("node 5 of node group 1 has another group in `nodes`, or none"), "{text}");
}

#[test]
fn a_group_is_not_noted_as_empty_without_a_number_that_is_on_disk() {
    let mut cluster = grown();
    let leader = cluster.leader().unwrap();
    assert_eq!(change_group(&mut cluster, leader, 1, true), Ok(()));
    let leaves = |it: &Cluster| it.membership(3).is_some_and(|it| it.leaving_group() == Some(1));
    cluster.run_until("it leaves", |it| leaves(it) && it.is_settled());
    report(&mut cluster, true, CommitNumber(0));
    (0..20).for_each(|_| cluster.step());
    assert!(leaves(&cluster) && !cluster.membership(3).unwrap().is_emptied);
}
