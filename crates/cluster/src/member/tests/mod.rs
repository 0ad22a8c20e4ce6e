//! Whole clusters of members, over a network without delays, with disks that survive their nodes.

mod disks;
mod groups;
mod replicas;
mod silence;

use std::collections::{BTreeMap, VecDeque};

use junctor_consensus::{VoterId, recover};
use junctor_kernel::transport::board::{LinkNews, MembershipChange as LinkChange};
use junctor_kernel::transport::link::Death;
use junctor_kernel::{Duration, NodeId, Random, Time};
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_model::value::Value;
use junctor_signals::report_node::SlowNode;

use super::machine::{TICK, boot_time};
use super::settings::{MemberNode, MemberSettings, Roles, VoterStart};
use super::{EpochProgress, Member, MemberMessage};
use crate::membership::{Membership, NodeSet, NodeState};

#[derive(Default)]
struct Disk {
    files: [Vec<u8>; 2],
    voter: u64,
    started: Epoch,
    incarnation: u32,
    stable: CommitNumber,
    checkpoint: CommitNumber,
}

#[derive(Default)]
struct Place {
    disk: Disk,
    member: Option<Member>,
    /// Number of its ldm and tc instances.
    instances: (u16, u16),
    /// Neither ticks nor receives.
    is_paused: bool,
    stopped: Option<String>,
    has_left: bool,
    /// The last epoch whose leases the leader has told to be over.
    leases_over: Epoch,
    /// The last life of each node that its links refuse.
    fenced: BTreeMap<NodeId, u32>,
    log: Vec<String>,
}

struct Cluster {
    nodes: Vec<MemberNode>,
    places: BTreeMap<NodeId, Place>,
    messages: VecDeque<(NodeId, NodeId, MemberMessage)>,
    /// Pairs that do not hear each other, the lower node first.
    cut: Vec<(u8, u8)>,
    /// Data nodes that refuse a life of a node without data.
    refused: Vec<(NodeId, NodeId, u32)>,
    silence_max: Duration,
    now: Time,
}

/// A node is silent whose frames came regularly.
fn suspected(node: NodeId) -> LinkNews {
    LinkNews::Suspected { node, longest_gap: Duration::from_millis(15) }
}

impl Cluster {
    /// Nodes with these roles; all of them run.
    fn new(roles: &[&str], silence_max: Duration) -> Cluster {
        let node = |(index, text): (usize, &&str)| MemberNode {
            node: NodeId(index as u8 + 1),
            roles: Roles::named(text).unwrap(),
            address: "127.0.0.1:1".into(),
            domain: "".into(),
        };
        let nodes: Vec<MemberNode> = roles.iter().enumerate().map(node).collect();
        let places = nodes.iter().map(|it| (it.node, Place::default())).collect();
        let (messages, cut, refused, now) = (VecDeque::new(), Vec::new(), Vec::new(), Time(0));
        let mut cluster = Cluster { nodes, places, messages, cut, refused, silence_max, now };
        (1..=roles.len() as u8).for_each(|node| cluster.start(node));
        cluster
    }

    fn start(&mut self, node: u8) {
        let place = self.places.get_mut(&NodeId(node)).unwrap();
        place.disk.incarnation += 1;
        let files = [&place.disk.files[0][..], &place.disk.files[1][..]];
        let voter = match recover(VoterId(place.disk.voter), files).unwrap() {
            Some(log) => VoterStart::Recovered { voter: place.disk.voter, log },
            None => VoterStart::Nothing,
        };
        let settings = MemberSettings {
            cluster: 1,
            own: NodeId(node),
            incarnation: Incarnation(place.disk.incarnation),
            nodes: self.nodes.clone().into(),
            replicas: 2,
            started: place.disk.started,
            voter,
            silence_max: self.silence_max,
            cut_max: Duration(0),
            standstill_max: Duration::from_millis(1000),
            partial_start_after: Duration::from_millis(500),
        };
        let mut member = Member::new(settings, self.now);
        member.note_recovered(place.disk.stable, place.disk.checkpoint);
        member.set_instances(place.instances.0, place.instances.1);
        (place.member, place.stopped, place.is_paused, place.has_left) = (Some(member), None, false, false);
        for other in self.living() {
            if other.0 != node && !self.is_cut(other.0, node) {
                self.tell_up(other, NodeId(node));
                self.tell_up(NodeId(node), other);
            }
        }
    }

    fn tell_up(&mut self, to: NodeId, node: NodeId) {
        let incarnation = self.places[&node].disk.incarnation;
        let now = self.now;
        if let Some(member) = &mut self.places.get_mut(&to).unwrap().member {
            member.on_link(LinkNews::Up { node, incarnation, version: 1 }, now);
        }
    }

    fn living(&self) -> Vec<NodeId> {
        self.places.iter().filter(|(_, place)| place.member.is_some()).map(|(node, _)| *node).collect()
    }

    fn is_cut(&self, one: u8, other: u8) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    fn kill(&mut self, node: u8) {
        self.end_process(node);
        (1..=self.nodes.len() as u8).for_each(|at| self.notice_end(node, at));
        self.collect();
    }

    /// A node ends, and no other has noticed it yet.
    fn end_process(&mut self, node: u8) {
        let place = self.places.get_mut(&NodeId(node)).unwrap();
        place.member = None;
        self.messages.retain(|(from, to, _)| from.0 != node && to.0 != node);
    }

    fn notice_end(&mut self, node: u8, at: u8) {
        let (incarnation, now) = (self.places[&NodeId(node)].disk.incarnation, self.now);
        if let Some(member) = &mut self.places.get_mut(&NodeId(at)).unwrap().member {
            member.on_link(LinkNews::Dead { node: NodeId(node), incarnation, death: Death::Refused }, now);
        }
    }

    /// All nodes lose power.
    fn kill_all(&mut self) {
        self.messages.clear();
        self.places.values_mut().for_each(|place| place.member = None);
    }

    /// Whether two nodes hear each other changes.
    fn set_heard(&mut self, one: u8, other: u8, is_heard: bool) {
        let pair = (one.min(other), one.max(other));
        self.cut.retain(|it| *it != pair);
        if !is_heard {
            self.cut.push(pair);
        }
        let now = self.now;
        for (at, node) in [(one, other), (other, one)] {
            let news = match is_heard {
                true => LinkNews::Heard { node: NodeId(node) },
                false => suspected(NodeId(node)),
            };
            let place = self.places.get_mut(&NodeId(at)).unwrap();
            if let Some(member) = place.member.as_mut().filter(|_| !place.is_paused) {
                member.on_link(news, now);
            }
        }
    }

    /// The cable of a node is pulled: nothing reaches it, and it reaches nothing.
    fn pull_cable(&mut self, node: u8) {
        for other in self.living() {
            if other.0 != node {
                self.cut.push((node.min(other.0), node.max(other.0)));
            }
        }
        self.messages.retain(|(from, to, _)| from.0 != node && to.0 != node);
    }

    /// A node notices that the system of another answers nothing.
    fn notice_cut(&mut self, node: u8, at: u8) {
        let now = self.now;
        if let Some(member) = &mut self.places.get_mut(&NodeId(at)).unwrap().member {
            member.on_link(suspected(NodeId(node)), now);
            member.on_link(LinkNews::Unreachable { node: NodeId(node) }, now);
        }
    }

    fn pause(&mut self, node: u8) {
        self.places.get_mut(&NodeId(node)).unwrap().is_paused = true;
        for other in self.living() {
            if other.0 != node {
                self.set_heard(other.0, node, false);
            }
        }
    }

    fn resume(&mut self, node: u8) {
        self.places.get_mut(&NodeId(node)).unwrap().is_paused = false;
        for other in self.living() {
            if other.0 != node {
                self.set_heard(other.0, node, true);
            }
        }
    }

    /// Performs what the members want, until nothing is left.
    fn collect(&mut self) {
        loop {
            let mut is_quiet = true;
            for (node, place) in &mut self.places {
                let Some(member) = place.member.as_mut().filter(|_| !place.is_paused) else { continue };
                let output = member.take_output();
                place.log.extend(output.log);
                place.has_left |= output.has_left;
                if let Some(reason) = output.stop {
                    place.stopped = Some(reason);
                }
                for change in output.fences {
                    let LinkChange::Evict { node: client, incarnation } = change else { continue };
                    place.fenced.insert(client, incarnation);
                    let is_client = self.nodes.iter().any(|it| it.node == client && !it.roles.data);
                    if is_client && member.linked_life(client) == Some(Incarnation(incarnation)) {
                        let death = Death::Evicted;
                        member.on_link(LinkNews::Dead { node: client, incarnation, death }, self.now);
                        self.refused.push((*node, client, incarnation));
                        is_quiet = false;
                    }
                }
                for write in output.writes {
                    let (file, offset) = (&mut place.disk.files[write.file], write.offset as usize);
                    file.truncate(offset);
                    file.extend(&write.bytes);
                    place.disk.voter = member.voter.as_ref().unwrap().replica().voter().0;
                    member.note_written(write.number, self.now);
                    is_quiet = false;
                }
                if let Some(epoch) = output.admission {
                    place.disk.started = epoch;
                    member.note_admission_written(epoch);
                }
                self.messages.extend(output.send.into_iter().map(|(to, message)| (*node, to, message)));
                if place.stopped.is_some() {
                    place.member = None;
                }
            }
            let Some((from, to, message)) = self.messages.pop_front() else {
                if is_quiet {
                    return;
                }
                continue;
            };
            if self.is_cut(from.0, to.0) {
                continue;
            }
            let place = self.places.get_mut(&to).unwrap();
            let Some(member) = place.member.as_mut().filter(|_| !place.is_paused) else { continue };
            match message {
                MemberMessage::Report(report) => member.on_report(from, *report),
                MemberMessage::Replicate(signal) => member.on_replicate(from, &signal),
                MemberMessage::Install(signal) => member.on_install(&signal),
                MemberMessage::LeasesOver(signal) => {
                    place.leases_over = signal.epoch;
                    self.check_leases(from, signal.epoch);
                }
                MemberMessage::RequestLease(request) => member.on_request_lease(from, request, self.now),
                MemberMessage::GrantLease(grant) => member.on_grant_lease(from, grant),
            }
        }
    }

    /// A leader has told that leases are over: no life that its membership lacks has one, paused or not.
    fn check_leases(&self, leader: NodeId, epoch: Epoch) {
        let Some(membership) = self.membership(leader.0).filter(|it| it.epoch == epoch) else { return };
        for (node, member) in self.places.iter().filter_map(|(node, place)| Some((*node, place.member.as_ref()?))) {
            let is_member = membership.has(node, member.settings().incarnation);
            let is_over = member.lease_until() <= boot_time(self.now);
            assert!(is_member || is_over, "node {node:?} has a lease, and {membership:?} lacks it");
        }
    }

    /// Nodes learn that their lives are refused, once they hear it.
    fn tell_refused(&mut self) {
        for (from, client, life) in std::mem::take(&mut self.refused) {
            let is_cut = self.is_cut(from.0, client.0);
            let place = self.places.get_mut(&client).unwrap();
            let Some(member) = place.member.as_mut().filter(|_| place.disk.incarnation == life) else { continue };
            match is_cut || place.is_paused {
                true => self.refused.push((from, client, life)),
                false => member.on_link(LinkNews::Evicted { node: from }, self.now),
            }
        }
    }

    /// Whether a node has a lease.
    fn has_lease(&self, node: u8) -> bool {
        let member = self.places[&NodeId(node)].member.as_ref();
        member.is_some_and(|member| member.lease_until() > boot_time(self.now))
    }

    fn step(&mut self) {
        self.now = self.now.plus(TICK);
        let now = self.now;
        self.tell_refused();
        for place in self.places.values_mut() {
            if let Some(member) = place.member.as_mut().filter(|_| !place.is_paused) {
                member.tick(now);
                member.on_lease_timer(now);
            }
        }
        self.collect();
    }

    /// Steps until the condition holds, and returns how many steps it took.
    fn run_until(&mut self, what: &str, condition: impl Fn(&Cluster) -> bool) -> u32 {
        for step in 0..500 {
            if condition(self) {
                return step;
            }
            self.step();
        }
        for (node, place) in &self.places {
            let Some(member) = &place.member else {
                println!("{node:?} is away, {:?}", place.stopped);
                continue;
            };
            let peer =
                |(node, peer): (&NodeId, &super::machine::Peer)| (node.0, peer.up, peer.unheard_since, peer.dead);
            let peers: Vec<_> = member.peers.iter().map(peer).collect();
            println!("{node:?} incarnation {} leader {:?} peers {peers:?}", place.disk.incarnation, member.leader);
            println!("  membership {:?}", member.installed.as_ref());
        }
        let logs: Vec<&Vec<String>> = self.places.values().map(|place| &place.log).collect();
        panic!("{what}: {logs:#?}");
    }

    fn membership(&self, node: u8) -> Option<&Membership> {
        self.places[&NodeId(node)].member.as_ref()?.membership().map(|it| &**it)
    }

    /// Whether these data nodes serve, as all living nodes know.
    fn serve(&self, nodes: &[u8]) -> bool {
        self.living().iter().all(|at| {
            self.membership(at.0).is_some_and(|membership| {
                let serving: Vec<u8> = membership.serving().map(|record| record.node.0).collect();
                serving == nodes && membership.members().count() == nodes.len()
            })
        })
    }

    fn leader(&self) -> Option<u8> {
        let leads = |node: &NodeId| {
            let member = self.places[node].member.as_ref();
            member.and_then(|member| member.voter.as_ref()).is_some_and(crate::membership::Replication::is_leader)
        };
        self.living().into_iter().find(leads).map(|node| node.0)
    }

    fn is_settled(&self) -> bool {
        self.living().iter().all(|node| {
            let member = self.places[node].member.as_ref().unwrap();
            member.is_ready() && self.membership(node.0).is_some_and(|it| it.started == it.epoch)
        })
    }
}

const SMALL: [&str; 4] = ["data", "data", "management", "sql"];

fn formed(roles: &[&str]) -> Cluster {
    formed_with(roles, Duration::from_millis(50))
}

fn formed_with(roles: &[&str], silence_max: Duration) -> Cluster {
    let mut cluster = Cluster::new(roles, silence_max);
    let data: Vec<u8> = (1..).zip(roles).filter(|(_, role)| role.contains("data")).map(|(node, _)| node).collect();
    cluster.run_until("the cluster forms", |it| it.serve(&data) && it.is_settled());
    cluster
}

#[test]
fn a_new_cluster_forms_and_every_node_knows_it() {
    let mut cluster = formed(&SMALL);
    assert_eq!(cluster.membership(4).unwrap().epoch, Epoch(1));
    cluster.run_until("the sequencer learns that leases are over", |it| it.places[&NodeId(1)].leases_over == Epoch(1));
    let leader = cluster.leader().unwrap();
    let rows = cluster.places[&NodeId(4)].member.as_ref().unwrap().rows();
    let text = |text: &str| junctor_model::value::Value::Bytes(text.as_bytes().to_vec());
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[0][2], &rows[2][2], &rows[3][2]), (&text("SERVING"), &text("CONNECTED"), &text("CONNECTED")));
    let leaders: Vec<u8> = (1..)
        .zip(&rows)
        .filter(|(_, row)| row[7] == junctor_model::value::Value::UInt(1))
        .map(|(node, _)| node)
        .collect();
    assert_eq!(leaders, [leader]);
}

#[test]
fn a_killed_node_is_evicted_at_once_and_returns_with_a_new_life() {
    for node in [1, 2] {
        let mut cluster = formed(&SMALL);
        cluster.kill(node);
        let steps = cluster.run_until("it is evicted", |it| it.serve(&[3 - node]) && it.is_settled());
        assert!(steps <= 10, "{steps} steps, also if the node led");
        cluster.start(node);
        cluster.run_until("it returns", |it| it.serve(&[1, 2]) && it.is_settled());
        let record = *cluster.membership(4).unwrap().record(NodeId(node)).unwrap();
        assert_eq!((record.incarnation, record.is_durable), (Incarnation(2), true));
    }
}

#[test]
fn a_node_that_notices_the_end_of_another_before_the_leader_is_not_evicted() {
    // Node 2 numbers commits, so the cluster would rather keep it than one that does not hear it.
    for node in [1, 2] {
        let mut cluster = formed(&["data", "data", "data", "data", "management"]);
        let leader = cluster.leader().unwrap();
        assert_ne!(leader, node);
        cluster.end_process(node);
        cluster.notice_end(node, 4);
        (0..3).for_each(|_| cluster.step());
        (1..=5).for_each(|at| cluster.notice_end(node, at));
        cluster.collect();
        let others: Vec<u8> = (1..=4).filter(|other| *other != node).collect();
        cluster.run_until("it alone is evicted", |it| it.serve(&others) && it.is_settled());
        assert!(others.iter().all(|other| cluster.places[&NodeId(*other)].stopped.is_none()));
    }
}

#[test]
fn the_end_of_the_leader_ends_no_other_node() {
    let mut cluster = formed(&SMALL);
    let leader = cluster.leader().unwrap();
    cluster.kill(leader);
    cluster.run_until("another leads", |it| it.leader().is_some());
    let data: Vec<u8> = [1, 2].into_iter().filter(|node| *node != leader).collect();
    cluster.run_until("the others go on", |it| it.serve(&data) && it.is_settled());
    cluster.start(leader);
    cluster.run_until("it returns", |it| it.serve(&[1, 2]) && it.is_settled());
}

#[test]
fn a_paused_node_is_evicted_and_stops_when_it_resumes() {
    let mut cluster = formed(&SMALL);
    cluster.pause(2);
    (0..4).for_each(|_| cluster.step());
    assert!(cluster.serve(&[1, 2]), "silence of 40 ms is no death");
    cluster
        .run_until("it is evicted", |it| it.membership(1).unwrap().record(NodeId(2)).unwrap().state == NodeState::Away);
    // Its last lease is over when a commit without it is answered.
    let epoch = cluster.membership(1).unwrap().epoch;
    let sequencer = cluster.membership(1).unwrap().sequencer;
    assert_eq!(sequencer, NodeId(1));
    cluster.run_until("its leases are over", |it| it.places[&sequencer].leases_over >= epoch);
    assert!(cluster.has_lease(1) && !cluster.has_lease(2));
    cluster.resume(2);
    cluster.run_until("it stops", |it| it.places[&NodeId(2)].stopped.is_some());
    cluster.start(2);
    cluster.run_until("it returns", |it| it.serve(&[1, 2]) && it.is_settled());
}

#[test]
fn two_data_nodes_that_do_not_hear_each_other_lose_one_and_keep_the_sequencer() {
    let mut cluster = formed(&SMALL);
    let sequencer = cluster.membership(3).unwrap().sequencer.0;
    cluster.set_heard(1, 2, false);
    cluster.run_until("one is evicted", |it| it.membership(3).unwrap().members().count() == 1);
    assert!(cluster.membership(3).unwrap().record(NodeId(sequencer)).unwrap().is_serving());
}

#[test]
fn the_membership_survives_the_end_of_all_nodes() {
    let mut cluster = formed(&SMALL);
    for round in 1..4 {
        cluster.kill_all();
        (1..=4).for_each(|node| cluster.start(node));
        cluster.run_until("the cluster starts again", |it| it.serve(&[1, 2]) && it.is_settled());
        let membership = cluster.membership(4).unwrap();
        assert_eq!(membership.record(NodeId(2)).unwrap().incarnation, Incarnation(round + 1));
        assert_eq!(membership.cuts.len(), 1, "no commits, one cut");
    }
}

#[test]
fn a_start_without_a_node_waits_for_it_and_goes_on_without() {
    let mut cluster = formed(&SMALL);
    cluster.kill_all();
    [1, 3, 4].into_iter().for_each(|node| cluster.start(node));
    let steps = cluster.run_until("it starts without node 2", |it| it.serve(&[1]) && it.is_settled());
    assert!(steps >= 50, "{steps} steps");
    cluster.start(2);
    cluster.run_until("it returns", |it| it.serve(&[1, 2]) && it.is_settled());
}

#[test]
fn a_lost_group_makes_the_others_start_again() {
    let mut cluster = formed(&["data", "data", "data", "data", "management"]);
    cluster.kill(1);
    cluster.kill(2);
    cluster.run_until("the others stop", |it| [3, 4].iter().all(|node| it.places[&NodeId(*node)].stopped.is_some()));
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("all start", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
}

#[test]
fn a_group_that_is_silent_for_long_counts_as_lost() {
    let mut cluster = formed(&["data", "data", "data", "data", "management"]);
    [3, 4].into_iter().for_each(|node| cluster.pause(node));
    cluster.run_until("the others stop", |it| [1, 2].iter().all(|node| it.places[&NodeId(*node)].stopped.is_some()));
    [1, 2].into_iter().for_each(|node| cluster.start(node));
    (0..100).for_each(|_| cluster.step());
    assert!([1, 2].iter().all(|node| cluster.places[&NodeId(*node)].stopped.is_none()), "they wait");
    [3, 4].into_iter().for_each(|node| cluster.resume(node));
    cluster.run_until("they stop", |it| [3, 4].iter().all(|node| it.places[&NodeId(*node)].stopped.is_some()));
    [3, 4].into_iter().for_each(|node| cluster.start(node));
    cluster.run_until("all start", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
}

#[test]
fn a_group_that_is_silent_for_a_moment_goes_on() {
    let mut cluster = formed(&["data", "data", "data", "data", "management"]);
    [3, 4].into_iter().for_each(|node| cluster.pause(node));
    (0..200).for_each(|_| cluster.step());
    [3, 4].into_iter().for_each(|node| cluster.resume(node));
    cluster.run_until("all serve", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
    assert!((1..=5).all(|node| cluster.places[&NodeId(node)].stopped.is_none()));
}

#[test]
fn a_node_that_the_sequencer_finds_slow_is_evicted_with_the_reason() {
    for (slow, is_disk, why) in [(4, true, "its disk syncs nothing"), (2, false, "it applies no commits")] {
        let mut cluster = formed(&["data", "data", "data", "data", "management"]);
        let membership = cluster.membership(5).unwrap();
        let (sequencer, epoch) = (membership.sequencer, membership.epoch);
        let slow_node = Some(SlowNode { node: NodeId(slow), is_disk });
        let (markable, admits) = (NodeSet::EMPTY, true);
        let progress = EpochProgress {
            started: epoch,
            leases_over: epoch,
            markable,
            admits,
            slow: slow_node,
            durable: CommitNumber(0),
            is_left_group_empty: false,
        };
        let member = cluster.places.get_mut(&sequencer).unwrap().member.as_mut().unwrap();
        member.set_progress(progress);
        let is_evicted =
            |it: &Cluster| it.membership(5).unwrap().record(NodeId(slow)).unwrap().state == NodeState::Away;
        cluster.run_until("it is evicted", is_evicted);
        let leader = cluster.leader().unwrap();
        let log = cluster.places[&NodeId(leader)].log.join("\n");
        assert!(log.contains(&format!("node {slow}: evicted, because {why} while others do")), "{log}");
    }
}

#[test]
fn a_voter_that_lost_its_files_comes_back_under_a_new_id() {
    let mut cluster = formed(&SMALL);
    cluster.kill(3);
    cluster.places.get_mut(&NodeId(3)).unwrap().disk.files = Default::default();
    cluster.start(3);
    let is_replaced = |it: &Cluster| {
        let voter = it.places[&NodeId(3)].member.as_ref().unwrap().voter.as_ref();
        voter.is_some_and(|voter| voter.replica().voters().rank(VoterId(2 << 8 | 3)).is_some())
    };
    cluster.run_until("it votes again", is_replaced);
    // Until the change is complete, majorities of both sets decide.
    (0..5).for_each(|_| cluster.step());
    // The others cannot decide without it.
    cluster.kill(1);
    cluster.run_until("it counts", |it| it.serve(&[2]) && it.is_settled());
}

#[test]
fn a_voter_that_joins_may_start_again_before_it_counts() {
    let mut cluster = formed(&SMALL);
    let leader = cluster.leader().unwrap();
    // Nobody counts the new voter before another one leads.
    cluster.end_process(leader);
    cluster.places.get_mut(&NodeId(leader)).unwrap().disk.files = Default::default();
    cluster.start(leader);
    let place = |it: &Cluster| it.places[&NodeId(leader)].log.iter().any(|line| line.contains("asks the leader"));
    cluster.run_until("it asks", place);
    let is_voter = |it: &Cluster| it.places[&NodeId(leader)].member.as_ref().unwrap().is_voter();
    assert!(!is_voter(&cluster) && !cluster.places[&NodeId(leader)].disk.files[0].is_empty());
    cluster.kill(leader);
    cluster.start(leader);
    cluster.run_until("it votes again", is_voter);
}

/// The node stops: it wants to leave.
fn leave(cluster: &mut Cluster, node: u8) -> Option<bool> {
    let now = cluster.now;
    cluster.places.get_mut(&NodeId(node)).unwrap().member.as_mut().unwrap().leave(now)
}

fn has_left(cluster: &Cluster, node: u8) -> bool {
    cluster.places[&NodeId(node)].has_left
}

fn member(cluster: &Cluster, node: u8) -> &Member {
    cluster.places[&NodeId(node)].member.as_ref().unwrap()
}

/// Whether a node has an event of this kind with this text.
fn has_event(cluster: &Cluster, node: u8, kind: &str, text: &str) -> bool {
    let expected = [kind, text].map(|text| Value::Bytes(text.as_bytes().to_vec()));
    member(cluster, node).event_rows(cluster.now, 0).iter().any(|row| row[3..] == expected)
}

#[test]
fn a_node_that_stops_leaves_first_and_keeps_its_process() {
    let mut cluster = formed(&["data", "data", "management"]);
    // The leader, with data or without, and the others.
    for node in [2, 1] {
        assert_eq!([leave(&mut cluster, node), leave(&mut cluster, node)], [Some(true), None]);
        cluster.run_until("it has left", |cluster| has_left(cluster, node));
        assert!(cluster.serve(&[3 - node]) && cluster.places[&NodeId(node)].stopped.is_none());
        let leader = cluster.leader().unwrap();
        assert!(has_event(&cluster, leader, "STOPPING", &format!("node {node}: leaves, because it stops")));
        let epoch = cluster.membership(leader).unwrap().epoch;
        let left = format!("this node is out of the membership: it has left before epoch {epoch}");
        assert!(has_event(&cluster, node, "STOPPING", &left), "{:?}", cluster.places[&NodeId(node)].log);
        cluster.kill(node);
        cluster.start(node);
        cluster.run_until("it is back", |cluster| cluster.serve(&[1, 2]) && cluster.is_settled());
    }
    assert_eq!(leave(&mut cluster, 3), Some(false), "a management node is no member");
}

#[test]
fn a_node_that_stops_counts_neither_as_replica_nor_as_voter() {
    let mut cluster = formed(&["data", "data", "management"]);
    cluster.run_until("all disks count", |cluster| {
        cluster.membership(3).is_some_and(|it| it.members().all(|record| record.is_durable))
    });
    let judged = |cluster: &Cluster, at: u8, node: u8| {
        let (at, node) = (member(cluster, at), NodeId(node));
        (at.group_without(node), at.takes_majority(node))
    };
    assert_eq!(judged(&cluster, 1, 1), (None, false));
    leave(&mut cluster, 2);
    cluster.step();
    assert_eq!(judged(&cluster, 1, 1), (Some(0), true), "node 2 is there, and has said that it stops");
    assert_eq!(judged(&cluster, 3, 3), (None, true));
    cluster.run_until("it has left", |cluster| has_left(cluster, 2));
    cluster.kill(2);
    assert_eq!(judged(&cluster, 3, 3), (None, true));
    cluster.start(2);
    cluster.run_until("it is back", |cluster| cluster.serve(&[1, 2]) && cluster.is_settled());
    assert_eq!(judged(&cluster, 3, 3), (None, false));
    let pair = formed(&["data", "data"]);
    assert_eq!([1, 2].map(|node| judged(&pair, node, node).1), [true, false], "only node 1 votes");
}

#[test]
fn the_last_nodes_of_a_group_stay_members_and_keep_their_marks() {
    let mut cluster = formed(&["data", "data", "management"]);
    cluster.run_until("all disks count", |cluster| {
        cluster.membership(3).is_some_and(|it| it.members().all(|record| record.is_durable))
    });
    let before = cluster.membership(3).unwrap().clone();
    for node in [1, 2] {
        assert_eq!(leave(&mut cluster, node), Some(true));
        cluster.step();
    }
    for _ in 0..50 {
        cluster.step();
    }
    assert!(!has_left(&cluster, 1) && !has_left(&cluster, 2));
    // One of them ends a moment before the other.
    cluster.kill(1);
    for _ in 0..5 {
        cluster.step();
    }
    assert_eq!(cluster.membership(3), Some(&before));
}

/// Messages are lost and nodes end, pause, return and lose each other, in a random order.
fn disturb(cluster: &mut Cluster, random: &mut Random) {
    let count = cluster.nodes.len() as u64;
    let node = random.below(count) as u8 + 1;
    let is_alive = |cluster: &Cluster, node: u8| cluster.places[&NodeId(node)].member.is_some();
    match random.below(40) {
        0 if is_alive(cluster, node) => cluster.kill(node),
        1 if is_alive(cluster, node) => cluster.pause(node),
        2 => {
            let other = random.below(count) as u8 + 1;
            let is_heard = cluster.is_cut(node, other);
            if node != other && is_alive(cluster, node) && is_alive(cluster, other) {
                cluster.set_heard(node, other, is_heard);
            }
        }
        3 if random.one_in(4) => cluster.kill_all(),
        4..12 => mend(cluster, node),
        _ => {}
    }
    if random.one_in(3) {
        let kept = random.below(4);
        cluster.messages.retain(|_| random.below(4) < kept);
    }
}

/// A node runs, and hears the others.
fn mend(cluster: &mut Cluster, node: u8) {
    if cluster.places[&NodeId(node)].member.is_none() {
        cluster.cut.retain(|(one, other)| *one != node && *other != node);
        cluster.start(node);
    } else if cluster.places[&NodeId(node)].is_paused {
        cluster.resume(node);
    }
}

#[test]
fn members_agree_under_faults_and_settle_after_them() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let roles = [&SMALL[..], &["data", "data", "data", "data", "management"], &["all", "all", "all", "all"]];
        let mut cluster = Cluster::new(roles[seed as usize % 3], Duration::from_millis(50));
        let data: Vec<u8> = cluster.nodes.iter().filter(|it| it.roles.data).map(|it| it.node.0).collect();
        let mut seen: BTreeMap<u64, Membership> = BTreeMap::new();
        for _ in 0..400 {
            disturb(&mut cluster, &mut random);
            cluster.step();
            for place in cluster.places.values() {
                let Some((index, membership)) = place.member.as_ref().and_then(|it| it.installed.clone()) else {
                    continue;
                };
                let known = seen.entry(index).or_insert_with(|| (*membership).clone());
                assert_eq!(*known, *membership, "seed {seed}: two memberships have position {index}");
            }
        }
        let epochs: Vec<Epoch> = seen.values().map(|membership| membership.epoch).collect();
        assert!(epochs.is_sorted(), "seed {seed}: epochs ascend");
        let nodes = cluster.nodes.len() as u8;
        cluster.cut.clear();
        for _ in 0..300 {
            (1..=nodes).for_each(|node| mend(&mut cluster, node));
            (1..=nodes).for_each(|one| (one + 1..=nodes).for_each(|other| cluster.set_heard(one, other, true)));
            cluster.step();
        }
        cluster.run_until(&format!("seed {seed}: all serve again"), |it| it.serve(&data) && it.is_settled());
    }
}
