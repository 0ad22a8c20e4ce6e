//! Nodes of real threads whose links over loopback are encrypted.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use junctor_kernel::real::{LinkOptions, Node, NodeOptions, RunningNode};
use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::transport::hello::{ClusterKey, Refusal};
use junctor_kernel::transport::security::LinkSecurity;
use junctor_kernel::{
    Address, BufferPool, Context, DecodeError, EncodeError, Endpoints, Host, ModuleId, NodeId, NodeLayout, Outbox,
    Priority, Signal, SignalClass, WireSignal, WorldEvent, WorldRequest,
};
use junctor_tls::certificate::{Certificate, create_authority, issue};
use junctor_tls::session::Tls;

const PLAYER: ModuleId = ModuleId::new(3);

/// Numbers that each block gets.
const NUMBERS: u32 = 2_000;

enum Word {
    World,
    Link(LinkNews),
    Number(u32),
}

impl Signal for Word {
    fn class(&self) -> SignalClass {
        if matches!(self, Self::Number(_)) { SignalClass::Deferrable } else { SignalClass::Reserved }
    }

    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn emit_max(&self) -> u16 {
        1
    }

    fn name(&self) -> &'static str {
        "Word"
    }

    fn number(&self) -> u16 {
        0
    }

    fn from_world(_event: WorldEvent) -> Self {
        Self::World
    }

    fn from_link(news: LinkNews) -> Option<Self> {
        Some(Self::Link(news))
    }
}

impl WireSignal for Word {
    type Encoder = ();
    type Decoder = ();

    const VERSIONS: std::ops::RangeInclusive<u16> = 1..=1;

    fn layouts(version: u16) -> u64 {
        u64::from(version)
    }

    fn encoder(_version: u16) {}

    fn decoder(_version: u16) {}

    fn encode(&self, _link: &mut (), out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Self::Number(number) = self else { return Err(EncodeError::TooLong) };
        out.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn decode(_link: &mut (), bytes: &[u8], _buffers: &mut BufferPool) -> Result<Self, DecodeError> {
        let number = bytes.try_into().map_err(|_| DecodeError::Truncated)?;
        Ok(Self::Number(u32::from_le_bytes(number)))
    }

    fn is_for(&self, module: ModuleId) -> bool {
        module == PLAYER
    }
}

/// The signals that the blocks of a node received.
#[derive(Default)]
struct Seen {
    news: Vec<LinkNews>,
    /// The next number, by instance.
    next: [u32; 2],
}

struct Player(Arc<Mutex<Seen>>);

impl Host<Word> for Player {
    fn handle(&mut self, endpoints: Endpoints, signal: Word, _: &mut Context<'_>, outbox: &mut Outbox<Word>) {
        let mut seen = self.0.lock().unwrap();
        match signal {
            // It has its effect once the node stops.
            Word::World => outbox.request(WorldRequest::EndLinks),
            Word::Link(news) => {
                seen.news.push(news);
                if let LinkNews::Up { node, .. } = news {
                    for number in 0..NUMBERS {
                        for instance in 0..2 {
                            outbox.send(Address::new(node, PLAYER, instance), Word::Number(number));
                        }
                    }
                }
            }
            Word::Number(number) => {
                let next = &mut seen.next[usize::from(endpoints.to.instance)];
                assert_eq!(number, *next);
                *next += 1;
            }
        }
    }
}

struct Running {
    node: RunningNode,
    seen: Arc<Mutex<Seen>>,
}

impl Running {
    fn is_told(&self, refusal: Refusal, is_own: bool) -> bool {
        let is_it = |news: &LinkNews| matches!(news, LinkNews::Refused { refusal: told, is_own: own, .. } if (*told, *own) == (refusal, is_own));
        self.seen.lock().unwrap().news.iter().any(is_it)
    }

    fn is_complete(&self) -> bool {
        self.seen.lock().unwrap().next == [NUMBERS; 2]
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

/// Two nodes with these kinds of links.
fn pair(securities: [Option<Tls>; 2]) -> [Running; 2] {
    let places = [listener(), listener()];
    let addresses = [places[0].1, places[1].1];
    let mut nodes = places.into_iter().zip(securities).enumerate().map(|(index, ((listener, _), tls))| {
        let (node, other) = (index as u8 + 1, 2 - index as u8);
        let links = LinkOptions {
            cluster: 1,
            key: ClusterKey([1; 32]),
            incarnation: 1,
            listener,
            peers: vec![(NodeId(other), addresses[usize::from(other) - 1])],
            channels: 2,
            watcher: (PLAYER, 0),
            introduction: Arc::new([]),
            security: tls.map(|tls| Arc::new(tls) as Arc<dyn LinkSecurity>),
            figures: Default::default(),
        };
        let options = NodeOptions { node: NodeId(node), pin: false, links: Some(links), ..NodeOptions::default() };
        let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (PLAYER, 0)], &[(ModuleId::SOCKETS, 1), (PLAYER, 1)]]);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = seen.clone();
        Running { node: Node::start_linked(&layout, options, move |_| Player(shared.clone())).unwrap(), seen }
    });
    let first = nodes.next().unwrap();
    [first, nodes.next().unwrap()]
}

fn tls(authority: &Certificate, node: u8) -> Option<Tls> {
    let own = issue("test", &authority.key, NodeId(node)).unwrap();
    Some(Tls::new(&authority.certificate, &own.certificate, &own.key).unwrap())
}

#[test]
fn encrypted_links_carry_every_signal_once_and_in_order() {
    let authority = create_authority("test").unwrap();
    let nodes = pair([tls(&authority, 1), tls(&authority, 2)]);
    wait_until(|| nodes.iter().all(Running::is_complete));
    for Running { node, .. } in nodes {
        assert!(node.stop(), "the node becomes idle");
    }
}

#[test]
fn a_node_of_another_authority_gets_no_link_and_both_are_told() {
    let [one, two] = [1, 2].map(|_| create_authority("test").unwrap());
    let nodes = pair([tls(&one, 1), tls(&two, 2)]);
    wait_until(|| nodes[0].is_told(Refusal::Certificate, true));
    wait_until(|| nodes[1].is_told(Refusal::Certificate, false));
    for Running { node, seen } in nodes {
        node.stop();
        assert!(!seen.lock().unwrap().news.iter().any(|news| matches!(news, LinkNews::Up { .. })));
    }
}

#[test]
fn a_node_that_shows_the_certificate_of_another_gets_no_link() {
    let authority = create_authority("test").unwrap();
    // Once as the acceptor, once as the initiator.
    for (shown, refuser) in [([1, 3], 0), ([3, 2], 1)] {
        let nodes = pair(shown.map(|node| tls(&authority, node)));
        wait_until(|| nodes[refuser].is_told(Refusal::Certificate, true));
        for Running { node, seen } in nodes {
            node.stop();
            assert!(!seen.lock().unwrap().news.iter().any(|news| matches!(news, LinkNews::Up { .. })));
        }
    }
}

#[test]
fn a_node_that_does_not_encrypt_gets_no_link() {
    let authority = create_authority("test").unwrap();
    for (securities, refuser, refusal) in
        [([None, tls(&authority, 2)], 1, Refusal::Unencrypted), ([tls(&authority, 1), None], 1, Refusal::Malformed)]
    {
        let nodes = pair(securities);
        wait_until(|| nodes[refuser].is_told(refusal, true));
        for Running { node, seen } in nodes {
            node.stop();
            assert!(!seen.lock().unwrap().news.iter().any(|news| matches!(news, LinkNews::Up { .. })));
        }
    }
}
