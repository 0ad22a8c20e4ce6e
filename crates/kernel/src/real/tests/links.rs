//! Two nodes of real threads in one process, linked over loopback.

use std::net::TcpListener;

use super::*;
use crate::address::NodeId;
use crate::block::{Endpoints, Host};
use crate::context::Context;
use crate::outbox::Outbox;
use crate::toy::ToySignal;
use crate::transport::board::LinkNews;
use crate::transport::hello::{ClusterKey, Refusal};
use crate::transport::link::Death;

const KEY: ClusterKey = ClusterKey([3; 32]);

/// The blocks of one thread, which the test can inspect while the node runs.
#[derive(Clone)]
struct Visible(Arc<Mutex<ToyHost>>);

impl Host<ToySignal> for Visible {
    fn handle(
        &mut self,
        endpoints: Endpoints,
        signal: ToySignal,
        context: &mut Context<'_>,
        outbox: &mut Outbox<ToySignal>,
    ) {
        self.0.lock().unwrap().handle(endpoints, signal, context, outbox);
    }
}

/// A running node with links.
struct LinkedNode {
    running: RunningNode,
    hosts: Arc<Mutex<Vec<Visible>>>,
}

impl LinkedNode {
    /// A sum over the node's threads.
    fn total(&self, count: impl Fn(&ToyHost) -> u64) -> u64 {
        self.hosts.lock().unwrap().iter().map(|host| count(&host.0.lock().unwrap())).sum()
    }

    fn numbers(&self) -> u64 {
        self.total(|host| host.numbers.values().map(|&number| u64::from(number)).sum())
    }

    fn balls(&self) -> u64 {
        self.total(|host| u64::from(host.balls_ended))
    }

    fn has_news(&self, wanted: impl Fn(&LinkNews) -> bool) -> bool {
        self.total(|host| host.news.iter().filter(|news| wanted(news)).count() as u64) > 0
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
}

fn listener() -> (Arc<TcpListener>, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (Arc::new(listener), address)
}

fn links(incarnation: u32, listener: Arc<TcpListener>, peers: Vec<(NodeId, SocketAddr)>, channels: u8) -> LinkOptions {
    LinkOptions {
        cluster: 5,
        key: KEY,
        incarnation,
        listener,
        peers,
        channels,
        watcher: (PLAYER, 0),
        introduction: Arc::new([]),
        security: None,
        figures: Default::default(),
    }
}

fn start_node(node: u8, plan: ToyPlan, limits: &KernelLimits, links: LinkOptions) -> LinkedNode {
    let layout = NodeLayout::new(&[
        &[(ModuleId::SOCKETS, 0), (PLAYER, 0)],
        &[(ModuleId::SOCKETS, 1), (PLAYER, 1)],
        &[(PLAYER, 2), (STARTER, 0)],
    ]);
    let hosts = Arc::new(Mutex::new(Vec::new()));
    let shared = hosts.clone();
    let make_host = move |assignment| {
        let host = Visible(Arc::new(Mutex::new(ToyHost::new(assignment, plan))));
        shared.lock().unwrap().push(host.clone());
        host
    };
    let options = NodeOptions {
        node: NodeId(node),
        pin: false,
        limits: limits.clone(),
        seed: Some(u64::from(node)),
        links: Some(links),
        ..NodeOptions::default()
    };
    LinkedNode { running: Node::start_linked(&layout, options, make_host).unwrap(), hosts }
}

/// Two linked nodes.
fn pair(plan: ToyPlan, channels: u8, limits: &KernelLimits) -> [LinkedNode; 2] {
    let (one, two) = (listener(), listener());
    let first = links(1, one.0, vec![(NodeId(2), two.1)], channels);
    let second = links(1, two.0, vec![(NodeId(1), one.1)], channels);
    [start_node(1, plan, limits, first), start_node(2, plan, limits, second)]
}

fn exchange(channels: u8, limits: &KernelLimits) {
    let plan = ToyPlan { nodes: 2, linked_balls: 20, linked_numbers: 3_000, hops: 100, ..ToyPlan::default() };
    let nodes = pair(plan, channels, limits);
    // Every block of a node gets the numbers from the watcher of the other node. Balls end anywhere.
    wait_until(|| nodes.iter().all(|node| node.numbers() == 9_000));
    wait_until(|| nodes[0].balls() + nodes[1].balls() == 2 * 3 * 20);
    for node in nodes {
        assert!(node.has_news(|news| matches!(news, LinkNews::Up { incarnation: 1, .. })));
        assert!(node.running.stop(), "the node becomes idle");
    }
}

#[test]
fn signals_between_two_nodes_arrive_once_and_in_order() {
    for channels in [1, 2, 3] {
        exchange(channels, &KernelLimits::default());
    }
}

#[test]
fn full_rings_slow_links_down_and_stop_nothing() {
    let limits = KernelLimits { ring_slots: 8, high_ring_slots: 4, ..KernelLimits::default() };
    exchange(2, &limits);
}

/// Balls go back and forth between the nodes for as long as both take part.
#[test]
fn a_node_that_has_ended_its_links_becomes_idle_while_the_other_goes_on_sending() {
    let plan = ToyPlan { nodes: 2, linked_balls: 20, hops: u32::MAX, ..ToyPlan::default() };
    let nodes = pair(plan, 2, &KernelLimits::default());
    wait_until(|| nodes.iter().all(|node| node.has_news(|news| matches!(news, LinkNews::Up { .. }))));
    for node in nodes {
        assert!(node.running.stop(), "the node becomes idle");
    }
}

#[test]
fn a_node_learns_of_the_end_and_of_the_next_life_of_another() {
    let plan = ToyPlan { nodes: 2, linked_numbers: 10, ..ToyPlan::default() };
    let (one, two) = (listener(), listener());
    let first = links(1, one.0.clone(), vec![(NodeId(2), two.1)], 2);
    let first = start_node(1, plan, &KernelLimits::default(), first);
    let second = links(1, two.0.clone(), vec![(NodeId(1), one.1)], 2);
    let second = start_node(2, plan, &KernelLimits::default(), second);
    wait_until(|| first.numbers() == 30 && second.numbers() == 30);
    assert!(second.running.stop());
    // The listener still accepts, so the end shows when the next life introduces itself.
    let third = links(2, two.0, vec![(NodeId(1), one.1)], 2);
    let third = start_node(2, plan, &KernelLimits::default(), third);
    wait_until(|| third.numbers() == 30);
    let death = LinkNews::Dead { node: NodeId(2), incarnation: 1, death: Death::Restarted };
    wait_until(|| first.has_news(|news| *news == death));
    wait_until(|| first.has_news(|news| *news == LinkNews::Up { node: NodeId(2), incarnation: 2, version: 1 }));
    assert!(third.running.stop());
    assert!(first.running.stop());
}

#[test]
fn a_refused_connection_is_the_death_of_a_node() {
    for survivor in [1, 2] {
        let nodes = pair(ToyPlan::default(), 2, &KernelLimits::default());
        wait_until(|| nodes.iter().all(|node| node.has_news(|news| matches!(news, LinkNews::Up { .. }))));
        let [one, two] = nodes;
        let (alive, ended) = if survivor == 1 { (one, two) } else { (two, one) };
        assert!(ended.running.stop());
        let is_death = |news: &LinkNews| matches!(news, LinkNews::Dead { incarnation: 1, death: Death::Refused, .. });
        wait_until(|| alive.has_news(is_death));
        assert!(alive.running.stop());
    }
}

#[test]
fn strangers_are_refused_and_told_once() {
    let (one, two) = (listener(), listener());
    let first = links(1, one.0, vec![(NodeId(2), two.1)], 1);
    let mut forged = links(1, two.0, vec![(NodeId(1), one.1)], 1);
    forged.key = ClusterKey([4; 32]);
    let second = start_node(2, ToyPlan::default(), &KernelLimits::default(), forged);
    let first = start_node(1, ToyPlan::default(), &KernelLimits::default(), first);
    let is_told = |news: &LinkNews| matches!(news, LinkNews::Refused { refusal: Refusal::Key, .. });
    wait_until(|| first.has_news(is_told));
    // Somebody who is no node at all is closed without an answer.
    let mut stream = TcpStream::connect(one.1).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    let stranger = LinkNews::Refused { node: NodeId(0), refusal: Refusal::Malformed, is_own: true };
    wait_until(|| first.has_news(|news| *news == stranger));
    assert_eq!(first.total(|host| host.news.iter().filter(|news| is_told(news)).count() as u64), 1);
    for node in [first, second] {
        assert!(!node.has_news(|news| matches!(news, LinkNews::Up { .. })));
        assert!(node.running.stop());
    }
}
