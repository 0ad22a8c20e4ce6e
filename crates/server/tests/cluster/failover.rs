//! The time from the end of a node to what the others make of it. Prints it, and asserts only that it ends.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use junctor_bench::mysql::Connection;

use super::membership::{ROLES, is_whole, leader};
use super::nodes::{Cluster, poll};

/// Waits until a query that another node answers is true, and returns how long that took.
fn time_until(session: &mut Connection<TcpStream>, query: &str) -> Duration {
    let start = Instant::now();
    let found = poll(Duration::from_micros(200), || {
        let result = session.query(query).expect("a status table");
        (result.rows[0][0].as_deref() == Some("1")).then(|| start.elapsed())
    });
    found.unwrap_or_else(|| panic!("{query}"))
}

/// Kills data nodes and the leader in turn, `JUNCTOR_FAILOVERS` times, by default 2. The command
/// `JUNCTOR_FAILOVERS=60 cargo test -p junctor --test cluster failover -- --nocapture` prints the times.
#[test]
fn the_end_of_a_node_is_noticed() {
    let rounds = std::env::var("JUNCTOR_FAILOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let mut cluster = Cluster::formed("failover", &ROLES, "");
    let (mut evictions, mut elections) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let before = cluster.await_rows(3, "the cluster is whole", is_whole);
        let old = leader(&before);
        let follower = (1..=2).find(|node| *node != old).expect("two data nodes");
        let is_election = round % 2 == 1;
        let (lost, at) = if is_election { (old, follower) } else { (follower, old) };
        let mut session = cluster.session(at);
        cluster.kill(lost);
        if is_election {
            let query = format!("SELECT COUNT(*) FROM junctor_info.nodes WHERE is_leader = 1 AND node_id <> {old}");
            elections.push(time_until(&mut session, &query));
        } else {
            let epoch = before[0].epoch;
            let query = format!("SELECT COUNT(*) FROM junctor_info.nodes WHERE node_id = 1 AND epoch > {epoch}");
            evictions.push(time_until(&mut session, &query));
        }
        cluster.start(lost);
        cluster.await_address(lost);
    }
    for (what, mut times) in [("evicted", evictions), ("another leader", elections)] {
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1));
        println!("{what}: {} kills, median {:?}, p90 {:?}, maximum {:?}", times.len(), at(50), at(90), times.last());
    }
}
