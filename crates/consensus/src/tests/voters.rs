//! Changes of voters.

use super::cluster::{Cluster, TICK_STEPS, ids};
use crate::{Refusal, VoterId, VoterSet};

fn change(cluster: &mut Cluster, voters: &[u64]) {
    let set = VoterSet::new(ids(voters.iter().copied())).unwrap();
    cluster.run_until(400 * TICK_STEPS, |cluster| cluster.leader().is_some());
    let leader = cluster.leader().unwrap();
    cluster.with(leader, |replica| replica.propose_voters(&set)).unwrap();
    cluster.run_until(400 * TICK_STEPS, |cluster| {
        let mut voters = set.voters().iter();
        voters.all(|voter| cluster.replica(*voter).voters() == &set)
    });
    // `raft` leaves the step between the sets by another entry.
    cluster.run(20 * TICK_STEPS);
}

#[test]
fn voters_are_added_and_replaced() {
    let mut cluster = Cluster::new(1, 3);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    for value in 0..100u8 {
        cluster.propose(&[value]).unwrap();
        cluster.run(4);
    }
    ids(2..=5).into_iter().for_each(|voter| cluster.join(voter));
    change(&mut cluster, &[1, 2, 3]);
    change(&mut cluster, &[3, 4, 5]);
    cluster.kill(VoterId(1));
    cluster.kill(VoterId(2));
    cluster.run_until(400 * TICK_STEPS, |cluster| cluster.leader().is_some());
    cluster.propose(b"end").unwrap();
    cluster.run_until(200, |cluster| cluster.nodes[&VoterId(5)].values.len() == 101);
    cluster.kill(VoterId(3));
    cluster.restart(VoterId(3));
    cluster.run_until(400 * TICK_STEPS, |cluster| cluster.nodes[&VoterId(3)].values.len() == 101);
    assert_eq!(cluster.replica(VoterId(3)).voters().voters(), ids([3, 4, 5]));
}

/// After a restart, each voter counted the voters that were replaced before as lost ones, until a leader told
/// it what was committed. Here no leader could be elected.
#[test]
fn voters_that_were_replaced_do_not_count_after_a_restart_of_all() {
    let mut cluster = Cluster::new(5, 4);
    cluster.run_until(400 * TICK_STEPS, |cluster| cluster.leader().is_some());
    cluster.kill(VoterId(3));
    cluster.join(VoterId(6));
    change(&mut cluster, &[1, 2, 6, 4, 5]);
    ids([1, 2, 4, 5, 6]).into_iter().for_each(|voter| cluster.kill(voter));
    ids([2, 5, 6]).into_iter().for_each(|voter| cluster.restart(voter));
    cluster.run_until(400 * TICK_STEPS, |cluster| cluster.leader().is_some());
}

/// A voter that joins knows no voters until a leader tells it. It must never elect itself.
#[test]
fn a_joining_voter_waits_for_the_leader() {
    let mut cluster = Cluster::new(3, 8);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    let leader = cluster.leader().unwrap();
    cluster.join(VoterId(4));
    for voter in ids(1..=3) {
        cluster.cut(voter, VoterId(4));
    }
    let set = VoterSet::new(ids(1..=4)).unwrap();
    cluster.with(leader, |replica| replica.propose_voters(&set)).unwrap();
    cluster.run(300 * TICK_STEPS);
    assert_eq!(cluster.replica(VoterId(4)).term(), 0);
    cluster.heal();
    cluster.run_until(300 * TICK_STEPS, |cluster| cluster.replica(VoterId(4)).voters() == &set);
}

/// A cluster, its leader, and a voter that has missed 100 values and gets a snapshot next.
fn needs_snapshot() -> (Cluster, VoterId, VoterId) {
    let mut cluster = Cluster::new(3, 6);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    let leader = cluster.leader().unwrap();
    let deaf = ids(1..=3).into_iter().find(|voter| *voter != leader).unwrap();
    cluster.cut(leader, deaf);
    for value in 0..100u8 {
        cluster.propose(&[value]).unwrap();
        cluster.run(4);
    }
    cluster.heal();
    (cluster, leader, deaf)
}

/// The leader waited for the answer to a snapshot without end. A voter whose snapshot was lost got nothing
/// any more.
#[test]
fn a_lost_snapshot_is_sent_again() {
    let (mut cluster, _, deaf) = needs_snapshot();
    while !cluster.lose_snapshots() {
        cluster.step();
    }
    cluster.run_until(100 * TICK_STEPS, |cluster| cluster.nodes[&deaf].values.len() == 100);
}

/// The leader ended while a voter wrote its snapshot. The voter campaigned, and `raft` stopped the process.
#[test]
fn a_voter_that_writes_a_snapshot_does_not_campaign() {
    let (mut cluster, leader, deaf) = needs_snapshot();
    for _ in 0..20 * TICK_STEPS {
        cluster.step();
        cluster.with(deaf, |replica| {
            replica.note_leader_ended(leader);
            replica.campaign_again();
        });
    }
    cluster.run_until(100 * TICK_STEPS, |cluster| cluster.nodes[&deaf].values.len() == 100);
}

#[test]
fn one_change_of_voters_is_under_way_at_a_time() {
    let mut cluster = Cluster::new(3, 2);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    cluster.run(20);
    let leader = cluster.leader().unwrap();
    let two = VoterSet::new(ids([1, 2])).unwrap();
    let one = VoterSet::new(ids([1])).unwrap();
    let results = cluster.with(leader, |replica| [replica.propose_voters(&two), replica.propose_voters(&one)]);
    assert_eq!(results, [Ok(()), Err(Refusal::NotAccepted)]);
    assert_eq!(cluster.replica(leader).unapplied_voters(), [two]);
}

#[test]
fn sets_of_voters_are_checked() {
    assert!(VoterSet::new(Vec::new()).is_err());
    assert!(VoterSet::new(ids([1, 2, 1])).is_err());
    assert!(VoterSet::new(ids([0])).is_err());
    assert!(VoterSet::new(ids(1..=8)).is_err());
    assert_eq!(VoterSet::new(ids([5, 2])).unwrap().rank(VoterId(2)), Some(1));
}
