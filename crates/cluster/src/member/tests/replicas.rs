//! Replicas that are added to node groups, and removed from them.

use junctor_signals::install_membership::InstallMembership;

use super::groups::extended;
use super::*;
use crate::member::RemovalRefusal;

/// A cluster whose group 0 has got nodes 5 and 6.
fn raised() -> Cluster {
    let mut cluster = extended("data,added:0");
    cluster.run_until("they serve", |it| it.serve(&[1, 2, 5, 6]) && it.is_settled() && it.are_durable(&[1, 2, 5, 6]));
    cluster
}

impl Cluster {
    fn are_durable(&self, nodes: &[u8]) -> bool {
        let is_durable =
            |node: &u8| self.membership(3).and_then(|it| it.record(NodeId(*node))).is_some_and(|it| it.is_durable);
        nodes.iter().all(is_durable)
    }

    fn change(&mut self, node: u8, leaves: bool) -> Result<(), RemovalRefusal> {
        let leader = NodeId(self.leader().unwrap());
        let result =
            self.places.get_mut(&leader).unwrap().member.as_mut().unwrap().change_replica(NodeId(node), leaves);
        self.collect();
        result
    }

    /// As node 3 shows it.
    fn state_of(&self, node: u8) -> String {
        let Value::Bytes(state) = &member(self, 3).rows()[usize::from(node) - 1][2] else { panic!("no text") };
        String::from_utf8(state.to_vec()).unwrap()
    }

    /// Node 6 leaves while it alone serves, and nodes 1 and 2 do not. Node 5 has left.
    fn leave_alone(&mut self) {
        assert_eq!((self.leader(), self.change(5, true)), (Some(3), Ok(())));
        self.run_until("node 5 has left", |it| has_left(it, 5));
        self.kill(5);
        self.kill(2);
        self.run_until("the others go on", |it| it.serve(&[1, 6]) && it.is_settled());
        // Node 1 ends while node 6 is asked to leave, so that nothing is committed before node 2 is back.
        self.end_process(1);
        assert_eq!(self.change(6, true), Ok(()));
        (1..=6).for_each(|at| self.notice_end(1, at));
        self.start(2);
        self.run_until("node 6 is the last one", |it| it.serve(&[6]));
        assert!(self.membership(3).unwrap().leaving.contains(NodeId(6)) && !has_left(self, 6));
    }

    /// Node 6 learns that it was evicted. Returns whether it stops in order.
    fn tell_evicted(&mut self) -> bool {
        let member = self.places.get_mut(&NodeId(6)).unwrap().member.as_mut().unwrap();
        member.on_link(LinkNews::Evicted { node: NodeId(3) }, self.now);
        let output = member.take_output();
        assert_ne!(output.has_left, output.stop.is_some());
        output.has_left
    }
}

#[test]
fn replicas_are_added_to_a_group_one_after_the_other() {
    let mut cluster = raised();
    let membership = cluster.membership(4).unwrap().clone();
    assert_eq!((membership.open_groups, membership.closed_group()), (1, None));
    assert!(membership.nodes.iter().all(|record| record.group == 0));
    assert_eq!(membership.added_replicas(), [(NodeId(5), NodeId(1)), (NodeId(6), NodeId(1))]);
    assert_eq!(member(&cluster, 3).voters, [3, 1, 2].map(NodeId), "they do not vote");
    // The nodes with which the group began may end now.
    cluster.kill(1);
    cluster.run_until("node 2 goes on", |it| it.serve(&[2, 5, 6]) && it.is_settled());
    cluster.start(1);
    cluster.run_until("node 1 is back", |it| it.serve(&[1, 2, 5, 6]) && it.is_settled());
    // All start again.
    cluster.kill_all();
    (1..=6).for_each(|node| cluster.start(node));
    cluster.run_until("all serve", |it| it.serve(&[1, 2, 5, 6]) && it.is_settled());
}

#[test]
fn a_replica_is_added_only_when_every_node_that_runs_knows_it() {
    let mut cluster = formed(&SMALL);
    let short: Vec<MemberNode> = cluster.nodes.clone();
    let roles = Roles::named("data,added:0").unwrap();
    let long = MemberNode { node: NodeId(5), roles, address: "127.0.0.1:1".into(), domain: "".into() };
    cluster.places.insert(NodeId(5), Place::default());
    for restarted in [3, 1, 2] {
        cluster.kill(restarted);
        cluster.run_until("it has left", |it| {
            let membership = it.membership(4).filter(|it| it.started == it.epoch);
            membership.is_some_and(|it| !it.has(NodeId(restarted), Incarnation(1)))
        });
        cluster.nodes.push(long.clone());
        cluster.start(restarted);
        if restarted == 3 {
            cluster.start(5);
        }
        cluster.nodes.clone_from(&short);
        // Node 5 waits.
        cluster.run_until("it is back", |it| {
            let membership = it.membership(4).filter(|it| it.started == it.epoch);
            it.leader().is_some() && membership.is_some_and(|it| it.serving().filter(|it| it.is_durable).count() == 2)
        });
    }
    (0..50).for_each(|_| cluster.step());
    assert!(cluster.membership(3).unwrap().record(NodeId(5)).is_none(), "node 4 has the short list");
    cluster.kill(4);
    cluster.nodes.push(long);
    cluster.start(4);
    cluster.run_until("node 5 serves", |it| it.serve(&[1, 2, 5]) && it.is_settled());
}

#[test]
fn a_replica_leaves_for_ever_and_its_group_keeps_one_that_has_everything() {
    let mut cluster = raised();
    let lasting = |text: &str| Err(RemovalRefusal::Lasting(text.to_owned()));
    let began = "is one of those with which its node group began; only an added replica can be removed alone";
    assert_eq!(cluster.change(1, true), lasting(&format!("node 1 {began}")));
    assert_eq!(cluster.change(4, true), lasting("node 4 is in no node group"));
    assert_eq!(cluster.change(5, false), Ok(()), "it stays");
    let other = (1..=6).find(|node| Some(*node) != cluster.leader()).unwrap();
    let result =
        cluster.places.get_mut(&NodeId(other)).unwrap().member.as_mut().unwrap().change_replica(NodeId(5), true);
    assert_eq!(result, Err(RemovalRefusal::Passing("this node does not lead the cluster".to_owned())));
    assert_eq!(cluster.change(6, true), Ok(()));
    cluster.run_until("it has left", |it| has_left(it, 6) && it.membership(3).is_some_and(|it| it.nodes.len() == 3));
    assert!(cluster.places[&NodeId(6)].stopped.is_none(), "it stops in order");
    cluster.kill(6);
    cluster.run_until("the others go on", |it| it.serve(&[1, 2, 5]) && it.is_settled());
    assert_eq!(cluster.change(6, true), Ok(()), "a statement that is repeated has succeeded");
    assert_eq!(cluster.change(6, false), lasting("node 6 was removed already"));
    assert_eq!(cluster.state_of(6), "REMOVED");
    cluster.start(6);
    cluster.run_until("it is refused", |it| it.places[&NodeId(6)].stopped.is_some());
    let reason = cluster.places[&NodeId(6)].stopped.clone().unwrap();
    assert!(reason.starts_with("node 6 was removed from the cluster, and its number is not used again"), "{reason}");
    // It is in no list any more.
    cluster.kill_all();
    cluster.nodes.truncate(5);
    cluster.places.remove(&NodeId(6));
    (1..=5).for_each(|node| cluster.start(node));
    cluster.run_until("all serve", |it| it.serve(&[1, 2, 5]) && it.is_settled());
}

#[test]
fn a_replica_that_leaves_waits_until_another_one_has_everything() {
    let mut cluster = raised();
    cluster.leave_alone();
    cluster.run_until("node 2 has copied", |it| it.are_durable(&[2]));
    cluster.run_until("node 6 has left", |it| has_left(it, 6));
    cluster.kill(6);
    cluster.run_until("node 2 serves alone", |it| it.serve(&[2]) && it.is_settled());
}

#[test]
fn a_replica_that_is_away_is_not_admitted_while_it_leaves() {
    let mut cluster = raised();
    cluster.kill(6);
    cluster.run_until("the others go on", |it| it.serve(&[1, 2, 5]) && it.is_settled());
    assert_eq!(cluster.change(6, true), Ok(()));
    cluster.run_until("it is removed", |it| it.membership(4).is_some_and(|it| it.is_removed(NodeId(6))));
    cluster.run_until("the others go on", |it| it.serve(&[1, 2, 5]) && it.is_settled());
}

#[test]
fn a_replica_that_leaves_is_shown_so_whatever_its_process_does() {
    let mut cluster = raised();
    assert_eq!(cluster.state_of(6), "SERVING");
    cluster.leave_alone();
    assert_eq!(cluster.state_of(6), "LEAVING");
    cluster.end_process(6);
    (1..=6).for_each(|at| cluster.notice_end(6, at));
    assert_eq!(cluster.state_of(6), "LEAVING");
}

#[test]
fn a_replica_that_is_evicted_while_it_leaves_stops_in_order_only_if_another_one_has_everything() {
    let mut cluster = raised();
    cluster.leave_alone();
    assert!(!cluster.tell_evicted(), "its disk alone has everything");
    assert!(!raised().tell_evicted(), "it does not leave");
    let mut cluster = raised();
    let leader = NodeId(cluster.leader().unwrap());
    let leading = cluster.places.get_mut(&leader).unwrap().member.as_mut().unwrap();
    let mut membership = Membership::clone(leading.membership().unwrap());
    membership.leaving.insert(NodeId(6));
    let index = leading.installed.as_ref().unwrap().0 + 1;
    let install =
        InstallMembership { index, leader, must_restart: false, membership: membership.encode().into(), refusal: None };
    cluster.places.get_mut(&NodeId(6)).unwrap().member.as_mut().unwrap().on_install(&install);
    assert!(cluster.tell_evicted(), "another one has everything");
}

/// Why node 4 stops with a list that has node 2 and node 5 with these roles. In the cluster, group 0 began
/// with nodes 1 and 2, and got nodes 5 and 6.
fn reason_with(replicas: u8, roles: [&str; 2]) -> Option<String> {
    let cluster = raised();
    let (index, membership) = member(&cluster, 4).installed.clone().unwrap();
    let mut settings = MemberSettings { replicas, ..member(&cluster, 4).settings().clone() };
    let mut nodes = settings.nodes.to_vec();
    (nodes[1].roles, nodes[4].roles) = (Roles::named(roles[0]).unwrap(), Roles::named(roles[1]).unwrap());
    settings.nodes = nodes.into();
    let mut other = Member::new(settings, cluster.now);
    let membership = membership.encode().into();
    other.on_install(&InstallMembership { index, leader: NodeId(3), must_restart: false, membership, refusal: None });
    other.take_output().stop
}

#[test]
fn a_node_stops_whose_list_has_an_added_replica_as_a_first_node_or_a_first_node_as_an_added_one() {
    assert_eq!(reason_with(2, ["data", "data,added:0"]), None);
    let text = reason_with(3, ["data", "data"]).unwrap();
    let expected = "node 5 was added to node group 0 as one more replica; it must have the role added:0 in `nodes`";
    assert!(text.starts_with(expected), "{text}");
    let text = reason_with(2, ["data,added:0", "data,added:0"]).unwrap();
    let expected = "node 2 is one of those with which node group 0 began; it must not have the role added:0";
    assert!(text.starts_with(expected), "{text}");
    let text = reason_with(2, ["data,added:0", "data,added"]).unwrap();
    assert!(text.starts_with("node 2 is one of those"), "{text}");
}

#[test]
fn a_node_with_other_instances_than_the_others_is_refused_before_its_admission() {
    let mut cluster = extended("data,added:0");
    cluster.kill_all();
    cluster.places.get_mut(&NodeId(5)).unwrap().instances = (2, 1);
    (1..=6).for_each(|node| cluster.start(node));
    cluster.run_until("it is refused", |it| it.places[&NodeId(5)].stopped.is_some());
    let why = "it has 2 ldm and 1 tc instances, and the other data nodes have 0 and 0 (setting ThreadConfig)";
    let said = cluster.places[&NodeId(5)].stopped.clone().unwrap();
    assert_eq!(said, format!("node 5 is not admitted to the cluster: {why}"));
    let leader = cluster.leader().unwrap();
    assert!(has_event(&cluster, leader, "REFUSED", &format!("node 5: not admitted, because {why}")));
    cluster.kill(5);
    cluster.run_until("the others serve", |it| it.serve(&[1, 2, 6]) && it.is_settled());
    assert!(cluster.membership(3).unwrap().record(NodeId(5)).is_none(), "nothing of it is left");
    // A member that returns with other instances.
    cluster.kill(2);
    cluster.run_until("it has left", |it| it.serve(&[1, 6]) && it.is_settled());
    cluster.places.get_mut(&NodeId(2)).unwrap().instances = (0, 1);
    cluster.start(2);
    cluster.run_until("it is refused", |it| it.places[&NodeId(2)].stopped.is_some());
    assert!(cluster.serve(&[1, 6]), "it was not admitted");
    // With the right ones both are admitted.
    for node in [2, 5] {
        cluster.kill(node);
        cluster.places.get_mut(&NodeId(node)).unwrap().instances = (0, 0);
        cluster.start(node);
    }
    cluster.run_until("all serve", |it| it.serve(&[1, 2, 5, 6]) && it.is_settled());
}
