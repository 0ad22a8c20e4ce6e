//! Random schedules with all faults. No committed value is lost, voters agree, and the cluster recovers.

use std::panic;

use super::cluster::{Cluster, Faults, TICK_STEPS, ids};
use crate::VoterId;

const STEPS: u64 = 4_000;

fn inject(cluster: &mut Cluster, voters: &[VoterId]) {
    let voter = voters[cluster.random.below(voters.len() as u64) as usize];
    let other = voters[cluster.random.below(voters.len() as u64) as usize];
    let is_alive = cluster.nodes[&voter].replica.is_some();
    match cluster.random.below(8) {
        0 | 1 if is_alive => cluster.kill(voter),
        0..=3 if !is_alive => cluster.restart(voter),
        4 => cluster.cut(voter, other),
        5 => cluster.heal(),
        6 if is_alive => {
            let node = cluster.nodes.get_mut(&voter).unwrap();
            node.is_paused = !node.is_paused;
        }
        7 => {
            let loss = [0, 3, 10, 50][cluster.random.below(4) as usize];
            let repeat = [0, 5][cluster.random.below(2) as usize];
            let delay_max = [2, 10, 40][cluster.random.below(3) as usize];
            cluster.faults = Faults { loss, repeat, delay_max };
        }
        _ => (),
    }
}

fn run_seed(seed: u64, answers_early: bool) -> usize {
    let count = [1, 2, 3, 3, 5, 7][(seed % 6) as usize];
    let voters = ids(1..=count);
    let mut cluster = Cluster::new(count, seed);
    cluster.answers_early = answers_early;
    let mut proposed = 0u32;
    for _ in 0..STEPS {
        if cluster.random.one_in(60) {
            inject(&mut cluster, &voters);
        }
        if cluster.random.one_in(4) && cluster.propose(&proposed.to_le_bytes()).is_ok() {
            proposed += 1;
        }
        cluster.step();
    }
    let seen: Vec<Vec<u8>> =
        cluster.nodes.values().map(|node| node.values.clone()).max_by_key(Vec::len).unwrap_or_default();
    cluster.heal();
    for voter in voters {
        cluster.nodes.get_mut(&voter).unwrap().is_paused = false;
        if cluster.nodes[&voter].replica.is_none() {
            cluster.restart(voter);
        }
    }
    cluster.run_until(300 * TICK_STEPS, |cluster| cluster.leader().is_some());
    cluster.run(20 * TICK_STEPS);
    cluster.propose(b"end").unwrap();
    cluster.run_until(300 * TICK_STEPS, |cluster| {
        cluster.nodes.values().all(|node| node.values.last().is_some_and(|last| last == b"end"))
    });
    let mut values = cluster.nodes.values().map(|node| &node.values);
    let first = values.next().unwrap();
    assert!(values.all(|other| other == first), "seed {seed}: the values of voters differ");
    assert_eq!(first[..seen.len()], seen, "seed {seed}: applied values are lost");
    let mut sorted: Vec<&Vec<u8>> = first.iter().collect();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), first.len(), "seed {seed}: a value is applied twice");
    first.len()
}

#[test]
fn voters_agree_and_lose_nothing_under_faults() {
    let values: usize = (0..40).map(|seed| run_seed(seed, false)).sum();
    assert!(values > 5_000, "the schedules committed only {values} values");
}

#[test]
fn voters_that_answer_before_their_writes_are_synced_are_found() {
    let found = (0..40).find(|seed| panic::catch_unwind(|| run_seed(*seed, true)).is_err());
    assert!(found.is_some(), "no schedule shows the planted bug");
}
