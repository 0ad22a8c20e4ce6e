//! Clients that update rows while a node is killed: the time without service, and updates that are lost.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::load::{CONFLICTS, new_seed, text, update};
use super::super::options::ClusterCostOptions;
use super::peer::{Peer, System, Victim};
use crate::cluster_kill::longest_gap;
use crate::mysql::{ClientError, Connection};
use crate::process::ignite::{Ignite, numbers};
use crate::random::Random;
use crate::{Failure, Outcome};

/// Load before the kill.
const BEFORE: Duration = Duration::from_secs(2);
/// Load after the kill, at least and at most. It ends once clients were served for [`SETTLED`] without a gap
/// of [`PAUSE_MAX`].
const AFTER_MIN: Duration = Duration::from_secs(3);
const AFTER_MAX: Duration = Duration::from_secs(60);
const SETTLED: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_millis(500);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Clients are served within this time after they start.
const START_MAX: Duration = Duration::from_secs(30);
/// A client goes to another node after this time without an answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);
const CONNECT_MAX: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_millis(2);
/// Rows of a statement that looks at them.
const ROWS_PER_SELECT: u64 = 1000;

/// When each acknowledgement came, and to which client.
type Times = Vec<(Instant, u32)>;

/// The longest times without an acknowledgement before the kill, and from the kill on.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub quiet: Duration,
    pub gap: Duration,
}

/// The result of a kill.
#[derive(Clone, Debug)]
pub struct Outage {
    /// For each way in which clients work.
    pub gaps: Vec<Gap>,
    /// Rows whose updates were looked at, and those without their last acknowledged update.
    pub checked: u64,
    pub lost: u64,
}

/// Kills a node under load, and starts it again after the clients have ended.
///
/// # Errors
/// The system fails.
pub fn outage(options: &ClusterCostOptions, peer: &mut Peer, victim: Victim, round: u32) -> Outcome<Outage> {
    let used = peer.used(round);
    let node = if victim == Victim::Used { used } else { 1 - used };
    let addresses = peer.addresses(used);
    let (clients, rows) = (options.clients, options.rows);
    let outage = match &mut peer.system {
        System::Junctor(cluster) => of_mysql((clients, rows), &addresses, || cluster.end(node)),
        System::Galera(galera) => of_mysql((clients, rows), &addresses, || galera.nodes[node].end()),
        System::Ignite(ignite) => of_ignite(clients, ignite, node),
    };
    let outage = outage?;
    peer.start_again(node)?;
    Ok(outage)
}

/// Kills while clients of MySQL's protocol work, which all begin at the first address.
fn of_mysql(
    (clients, rows): (u32, u64),
    addresses: &[SocketAddr],
    kill: impl FnOnce() -> Outcome<()>,
) -> Outcome<Outage> {
    let (is_over, times) = (AtomicBool::new(false), Mutex::new(Times::new()));
    let (gaps, known) = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let client = Client { number, clients, rows, addresses, known: Known::default() };
                let (is_over, times) = (&is_over, &times);
                scope.spawn(move || client.run(is_over, times))
            })
            .collect();
        let poll = |seen: &mut Times| {
            seen.append(&mut times.lock().expect("no client has panicked"));
            Ok(())
        };
        let gaps = watch(1, poll, kill);
        is_over.store(true, Ordering::SeqCst);
        let known: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no client panics")).collect();
        (gaps, known)
    });
    let gaps = gaps?;
    let Some(mut session) = addresses.iter().find_map(|address| connect(*address)) else {
        return Err(Failure::new("no node serves"));
    };
    let texts = texts(&mut session, rows)?;
    let count = |of: &dyn Fn(&Known) -> usize| known.iter().map(of).sum::<usize>() as u64;
    Ok(Outage { gaps, checked: count(&|known| known.acknowledged.len()), lost: count(&|known| known.lost(&texts)) })
}

/// Kills while the clients of Ignite work, of which every other one uses SQL.
fn of_ignite(clients: u32, ignite: &mut Ignite, node: usize) -> Outcome<Outage> {
    let Ignite { nodes, clients: program, .. } = ignite;
    program.send(&format!("service {clients}"))?;
    let poll = |seen: &mut Times| program.take_acknowledgements(|at, client| seen.push((at, client)));
    let gaps = watch(2, poll, || nodes[node].end())?;
    program.send("end")?;
    let answer = numbers(&program.answer(START_MAX + ANSWER_MAX)?)?;
    match answer.as_slice() {
        &[checked, lost] => Ok(Outage { gaps, checked, lost }),
        _ => Err(Failure::new(format!("service: {answer:?}"))),
    }
}

/// Kills a node while clients work, and waits until they are served again. `poll` appends the
/// acknowledgements that came. Client N belongs to group N modulo `groups`; returns the gaps of each group.
fn watch(
    groups: u32,
    mut poll: impl FnMut(&mut Times) -> Outcome<()>,
    kill: impl FnOnce() -> Outcome<()>,
) -> Outcome<Vec<Gap>> {
    let mut times = Times::new();
    let of_group = |times: &Times, group: u32| -> Times {
        let mut own: Times = times.iter().filter(|(_, client)| client % groups == group).copied().collect();
        own.sort_unstable();
        own
    };
    let begin = Instant::now();
    while (0..groups).any(|group| of_group(&times, group).is_empty()) {
        if begin.elapsed() > START_MAX {
            return Err(Failure::new("no client is served"));
        }
        thread::sleep(LOOK_INTERVAL);
        poll(&mut times)?;
    }
    thread::sleep(BEFORE);
    let killed = Instant::now();
    kill()?;
    let mut now = Instant::now();
    while now < killed + AFTER_MAX {
        thread::sleep(LOOK_INTERVAL);
        poll(&mut times)?;
        now = Instant::now();
        let recent: Times = times.iter().rev().take_while(|(at, _)| *at > now - 2 * SETTLED).copied().collect();
        let is_settled = |group| longest_gap(&of_group(&recent, group), now - SETTLED, now) < PAUSE_MAX;
        if now > killed + AFTER_MIN && (0..groups).all(is_settled) {
            break;
        }
    }
    let gap_of = |group| {
        let own = of_group(&times, group);
        let quiet = longest_gap(&own, killed - BEFORE / 2, killed).min(BEFORE / 2);
        Gap { quiet, gap: longest_gap(&own, killed, now) }
    };
    Ok((0..groups).map(gap_of).collect())
}

/// The updates of a client's rows.
#[derive(Default)]
struct Known {
    /// The newest text of each row that was acknowledged, and later ones that may be there.
    acknowledged: BTreeMap<u64, String>,
    uncertain: BTreeMap<u64, Vec<String>>,
}

impl Known {
    /// How many rows lack their last acknowledged update.
    fn lost(&self, texts: &BTreeMap<u64, String>) -> usize {
        let is_there = |(key, text): &(&u64, &String)| {
            let uncertain = self.uncertain.get(*key).map_or(&[][..], Vec::as_slice);
            texts.get(*key).is_some_and(|found| found == *text || uncertain.contains(found))
        };
        self.acknowledged.iter().filter(|row| !is_there(row)).count()
    }
}

/// A client that updates rows of its own, and goes to another node when its node fails.
struct Client<'a> {
    number: u32,
    clients: u32,
    rows: u64,
    addresses: &'a [SocketAddr],
    known: Known,
}

impl Client<'_> {
    fn run(mut self, is_over: &AtomicBool, times: &Mutex<Times>) -> Known {
        let mut random = Random::new(new_seed());
        let mut place = 0;
        let mut session: Option<Connection> = None;
        while !is_over.load(Ordering::SeqCst) {
            let Some(open) = &mut session else {
                session = connect(self.addresses[place % self.addresses.len()]);
                if session.is_none() {
                    place += 1;
                    thread::sleep(RETRY_PAUSE);
                }
                continue;
            };
            match self.update(open, &mut random) {
                Ok(true) => times.lock().expect("no client has panicked").push((Instant::now(), self.number)),
                Ok(false) => {}
                Err(_) => {
                    session = None;
                    place += 1;
                    thread::sleep(RETRY_PAUSE);
                }
            }
        }
        self.known
    }

    /// Updates a row, and says whether that was acknowledged. Fails if the client has to go to another node.
    fn update(&mut self, session: &mut Connection, random: &mut Random) -> Result<bool, ClientError> {
        let (number, clients) = (u64::from(self.number), u64::from(self.clients));
        let own = (self.rows - number).div_ceil(clients);
        let key = 1 + number + clients * random.below(own);
        let text = text(random);
        match update(session, key, &text) {
            Ok(true) => {
                self.known.acknowledged.insert(key, text);
                self.known.uncertain.remove(&key);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) if CONFLICTS.contains(&error.errno()) => Ok(false),
            Err(error) => {
                self.known.uncertain.entry(key).or_default().push(text);
                Err(error)
            }
        }
    }
}

/// Column c of all rows.
fn texts(session: &mut Connection, rows: u64) -> Outcome<BTreeMap<u64, String>> {
    let mut texts = BTreeMap::new();
    for first in (1..=rows).step_by(ROWS_PER_SELECT as usize) {
        let last = first + ROWS_PER_SELECT - 1;
        let query = format!("SELECT id, c FROM sbtest1 WHERE id BETWEEN {first} AND {last}");
        for row in session.query(&query)?.rows {
            if let [Some(id), Some(c)] = row.as_slice() {
                texts.insert(id.parse()?, c.clone());
            }
        }
    }
    Ok(texts)
}

fn connect(address: SocketAddr) -> Option<Connection> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_MAX).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
    Connection::log_in_over(stream, "sbtest").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_update_is_lost_unless_it_or_a_later_one_is_there() {
        let known = Known {
            acknowledged: [(1, "a".to_owned()), (2, "b".to_owned())].into(),
            uncertain: [(2, vec!["c".to_owned()])].into(),
        };
        let lost = |first: &str, second: &str| known.lost(&[(1, first.to_owned()), (2, second.to_owned())].into());
        assert_eq!([lost("a", "b"), lost("a", "c"), lost("c", "b"), lost("b", "a")], [0, 0, 1, 2]);
        assert_eq!(known.lost(&BTreeMap::new()), 2);
    }

    #[test]
    fn a_gap_is_that_of_one_group() {
        let mut next = 0;
        // Group 1 is served once, then only after the kill.
        let poll = |times: &mut Times| {
            next += 1;
            let clients: &[u32] = if next == 1 || next > 20 { &[0, 1] } else { &[0] };
            times.extend(clients.iter().map(|client| (Instant::now(), *client)));
            Ok(())
        };
        let gaps = watch(2, poll, || Ok(())).expect("all are served");
        assert!(gaps[1].gap >= LOOK_INTERVAL * 18 && gaps[1].gap > gaps[0].gap, "{gaps:?}");
    }
}
