//! Nodes that are silent or cut off, and nodes that stall.

use super::*;

#[test]
fn a_node_whose_cable_is_pulled_is_evicted_at_once() {
    for node in [1, 2] {
        let mut cluster = formed_with(&SMALL, Duration::from_millis(2000));
        cluster.pull_cable(node);
        [1, 2, 3, 4].into_iter().filter(|at| *at != node).for_each(|at| cluster.notice_cut(node, at));
        cluster.collect();
        let is_evicted =
            |it: &Cluster| it.membership(3).unwrap().record(NodeId(node)).unwrap().state == NodeState::Away;
        let steps = cluster.run_until("it is evicted", is_evicted);
        assert!(steps <= 1, "{steps} steps for node {node}");
        let serving: Vec<NodeId> = cluster.membership(3).unwrap().serving().map(|record| record.node).collect();
        assert_eq!(serving, [NodeId(3 - node)]);
    }
}

#[test]
fn a_leader_whose_cable_is_pulled_is_replaced_at_once() {
    for silence_max in [100, 2000] {
        let mut cluster = formed_with(&SMALL, Duration::from_millis(silence_max));
        let leader = cluster.leader().unwrap();
        cluster.pull_cable(leader);
        let others: Vec<u8> = (1..=4).filter(|at| *at != leader).collect();
        others.iter().for_each(|at| cluster.notice_cut(leader, *at));
        cluster.collect();
        let leads = |it: &Cluster| {
            let is_leader = |at: &u8| it.places[&NodeId(*at)].member.as_ref().unwrap().leader() == NodeId(*at);
            others.iter().any(is_leader)
        };
        let steps = cluster.run_until("another leads", leads);
        assert!(steps <= 1, "{steps} steps");
    }
}

#[test]
fn a_leader_whose_own_cable_was_pulled_for_a_moment_evicts_nobody() {
    for roles in [&SMALL[..], &["data,management", "data,management", "data,management"]] {
        let mut cluster = formed_with(roles, Duration::from_millis(2000));
        let leader = cluster.leader().unwrap();
        let epoch = cluster.membership(leader).unwrap().epoch;
        cluster.pull_cable(leader);
        for other in (1..=roles.len() as u8).filter(|other| *other != leader) {
            cluster.notice_cut(other, leader);
            cluster.collect();
        }
        cluster.cut.clear();
        for other in (1..=roles.len() as u8).filter(|other| *other != leader) {
            cluster.set_heard(leader, other, true);
        }
        (0..20).for_each(|_| cluster.step());
        assert_eq!(cluster.membership(leader).unwrap().epoch, epoch);
    }
}

#[test]
fn the_cut_of_a_whole_node_that_another_notices_first_costs_that_node_only() {
    // Node 2 numbers commits, so the cluster would rather keep it than one that does not hear it.
    for node in [1, 2] {
        let mut cluster = formed_with(&["data", "data", "data", "data", "management"], Duration::from_millis(2000));
        assert_ne!(cluster.leader(), Some(node));
        cluster.pull_cable(node);
        cluster.notice_cut(node, 4);
        (0..4).for_each(|_| cluster.step());
        (1..=5).filter(|at| *at != node).for_each(|at| cluster.notice_cut(node, at));
        cluster.collect();
        (0..3).for_each(|_| cluster.step());
        let membership = cluster.membership(5).unwrap();
        let away: Vec<u8> = membership.nodes.iter().filter(|it| !it.is_member()).map(|it| it.node.0).collect();
        assert_eq!(away, [node]);
    }
}

#[test]
fn a_node_that_stood_still_while_one_other_could_not_reach_it_is_not_evicted() {
    for node in [1, 2] {
        let mut cluster = formed_with(&["data", "data", "data", "data", "management"], Duration::from_millis(2000));
        let leader = cluster.leader().unwrap();
        assert_ne!(leader, node);
        let epoch = cluster.membership(leader).unwrap().epoch;
        cluster.pause(node);
        cluster.notice_cut(node, 4);
        cluster.collect();
        (0..6).for_each(|_| cluster.step());
        // Its reports come again. The frames to the observer and its news come later.
        cluster.places.get_mut(&NodeId(node)).unwrap().is_paused = false;
        let others = (1..=5).filter(|other| *other != node);
        others.clone().filter(|other| *other != 4).for_each(|other| cluster.set_heard(other, node, true));
        (0..2).for_each(|_| cluster.step());
        cluster.set_heard(4, node, true);
        cluster.collect();
        let member = cluster.places[&NodeId(leader)].member.as_ref().unwrap();
        let hears = NodeSet::from_words(member.peers[&NodeId(4)].report.unwrap().hears);
        assert!(hears.contains(NodeId(node)), "the observer reports at once that it hears the node");
        (0..10).for_each(|_| cluster.step());
        assert_eq!(cluster.membership(leader).unwrap().epoch, epoch, "node {node}");
        assert!(others.chain([node]).all(|it| cluster.places[&NodeId(it)].stopped.is_none()));
    }
}

#[test]
fn a_node_may_be_silent_for_as_long_as_its_earlier_pauses_allow() {
    for (gap, least, most) in [(10, 25, 28), (80, 32, 35), (400, 100, 103)] {
        let mut cluster = formed_with(&SMALL, Duration::from_millis(1000));
        cluster.pause(2);
        let news = LinkNews::Suspected { node: NodeId(2), longest_gap: Duration::from_millis(gap) };
        for at in [1, 3, 4] {
            let now = cluster.now;
            cluster.places.get_mut(&NodeId(at)).unwrap().member.as_mut().unwrap().on_link(news, now);
        }
        let is_away = |it: &Cluster| it.membership(1).unwrap().record(NodeId(2)).unwrap().state == NodeState::Away;
        let steps = cluster.run_until("it is evicted", is_away);
        assert!((least..=most).contains(&steps), "{steps} steps after gaps of {gap} ms");
    }
}

#[test]
fn a_silent_node_whose_system_answers_again_is_judged_by_its_silence() {
    let mut cluster = formed_with(&SMALL, Duration::from_millis(1000));
    let start = cluster.now;
    let member = cluster.places.get_mut(&NodeId(1)).unwrap().member.as_mut().unwrap();
    member.on_link(suspected(NodeId(2)), start);
    member.on_link(LinkNews::Unreachable { node: NodeId(2) }, start);
    assert!(!member.hears(NodeId(2)));
    member.take_output();
    member.on_link(LinkNews::Unreachable { node: NodeId(2) }, start.plus(TICK));
    assert!(member.take_output().send.is_empty(), "no news");
    member.on_link(LinkNews::Reachable { node: NodeId(2) }, start.plus(TICK));
    assert!(member.hears(NodeId(2)) && !member.take_output().send.is_empty());
    assert_eq!(member.peers[&NodeId(2)].unheard_since, Some(start));
    member.on_link(suspected(NodeId(2)), start.plus(Duration::from_millis(250)));
    assert!(!member.hears(NodeId(2)));
}

#[test]
fn a_leader_that_always_stalls_evicts_a_silent_node_nevertheless() {
    let mut cluster = formed_with(&SMALL, Duration::from_millis(1000));
    let leader = cluster.leader().unwrap();
    let node = 3 - leader.min(2);
    cluster.pause(node);
    let is_away = |it: &Cluster| it.membership(leader).unwrap().record(NodeId(node)).unwrap().state == NodeState::Away;
    let mut steps = 0;
    while !is_away(&cluster) && steps < 300 {
        steps += 1;
        cluster.now = cluster.now.plus(TICK);
        let now = cluster.now;
        for (at, place) in &mut cluster.places {
            let is_late = at.0 == leader && steps % 4 != 0;
            if let Some(member) = place.member.as_mut().filter(|_| !place.is_paused && !is_late) {
                member.tick(now);
                member.on_lease_timer(now);
            }
        }
        cluster.collect();
    }
    assert!((90..110).contains(&steps), "{steps} steps: 10 of 40 ms count, and 250 ms are needed");
}

#[test]
fn a_stall_of_this_node_is_no_silence_of_others() {
    let mut cluster = formed_with(&SMALL, Duration::from_millis(1000));
    let start = cluster.now;
    let at = |millis| start.plus(Duration::from_millis(millis));
    let member = cluster.places.get_mut(&NodeId(1)).unwrap().member.as_mut().unwrap();
    member.settings.cut_max = Duration::from_millis(100);
    member.on_link(suspected(NodeId(2)), at(5));
    member.on_link(LinkNews::Unreachable { node: NodeId(2) }, at(5));
    member.tick(at(10));
    member.tick(at(510));
    let since = |member: &Member| (member.peers[&NodeId(2)].unheard_since, member.peers[&NodeId(2)].unreachable_since);
    assert_eq!(since(member), (Some(at(495)), Some(at(495))), "490 ms do not count");
    assert!(member.hears(NodeId(2)));
    member.on_link(suspected(NodeId(3)), at(555));
    member.tick(at(560));
    assert_eq!(since(member), (Some(at(535)), Some(at(535))));
    assert_eq!(member.peers[&NodeId(3)].unheard_since, Some(at(560)), "not after now");
    for tick in 57..70 {
        member.tick(at(10 * tick));
    }
    assert!(!member.hears(NodeId(2)));
}

#[test]
fn a_leader_with_data_that_is_paused_is_evicted_as_soon_as_another_leads() {
    let mut cluster =
        formed_with(&["data,management", "data,management", "data,management"], Duration::from_millis(1000));
    let leader = cluster.leader().unwrap();
    assert_eq!(leader, 1);
    cluster.pause(leader);
    let is_away = |it: &Cluster| it.membership(2).unwrap().record(NodeId(leader)).unwrap().state == NodeState::Away;
    let steps = cluster.run_until("it is evicted", is_away);
    assert!((25..=28).contains(&steps), "{steps} steps: the silence counts once");
}

#[test]
fn a_silent_node_without_data_is_refused_and_starts_again() {
    let mut cluster = formed(&SMALL);
    cluster.pause(4);
    let knows = |it: &Cluster, at: u8| it.places[&NodeId(at)].member.as_ref().unwrap().linked_life(NodeId(4)).is_some();
    (0..19).for_each(|_| cluster.step());
    assert!(knows(&cluster, 1) && knows(&cluster, 2), "silence of 190 ms is no death of a node without data");
    cluster.run_until("its transactions are rolled back", |it| !knows(it, 1) && !knows(it, 2));
    assert!(knows(&cluster, 3), "a management node has none of its transactions");
    cluster.resume(4);
    cluster.run_until("it stops", |it| it.places[&NodeId(4)].stopped.is_some());
    cluster.start(4);
    cluster.run_until("it returns", |it| it.serve(&[1, 2]) && it.is_settled() && knows(it, 1) && knows(it, 2));
}

#[test]
fn a_node_without_data_that_was_cut_off_starts_again_though_nobody_can_tell_it() {
    let mut cluster = formed(&SMALL);
    let start = cluster.now;
    let member = cluster.places.get_mut(&NodeId(4)).unwrap().member.as_mut().unwrap();
    member.on_link(suspected(NodeId(1)), start);
    let mut stops = false;
    for tick in 1..=60 {
        member.tick(start.plus(Duration::from_millis(10 * tick)));
        stops = member.take_output().stop.is_some();
        assert!(!stops || tick > 20, "the data nodes still keep its transactions");
        if stops {
            break;
        }
    }
    assert!(stops, "it starts again");
    let data_node = cluster.places.get_mut(&NodeId(2)).unwrap().member.as_mut().unwrap();
    data_node.on_link(suspected(NodeId(1)), start);
    data_node.tick(start.plus(Duration::from_millis(600)));
    assert_eq!(data_node.take_output().stop, None, "the leader decides about a node with data");
}

#[test]
fn a_data_node_that_was_paused_itself_refuses_nobody() {
    let mut cluster = formed(&SMALL);
    let now = cluster.now.plus(Duration::from_millis(5000));
    let member = cluster.places.get_mut(&NodeId(1)).unwrap().member.as_mut().unwrap();
    member.on_link(suspected(NodeId(4)), cluster.now);
    member.tick(now);
    assert!(!member.take_output().fences.iter().any(|it| matches!(it, LinkChange::Evict { node: NodeId(4), .. })));
}
