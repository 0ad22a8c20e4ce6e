//! Elections, and the time without a leader.

use super::cluster::{Cluster, TICK_STEPS, ids};
use crate::{Replica, Role, VoterId};

#[test]
fn a_new_cluster_elects_the_voter_of_the_first_rank() {
    for count in [1, 2, 3, 5, 7] {
        let mut cluster = Cluster::new(count, count);
        cluster.run_until(40 * TICK_STEPS, |cluster| cluster.leader().is_some());
        assert_eq!(cluster.leader(), Some(VoterId(1)), "of {count} voters");
    }
}

#[test]
fn a_proposed_value_reaches_every_voter_once() {
    let mut cluster = Cluster::new(3, 1);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    for value in 0..200u8 {
        cluster.propose(&[value]).unwrap();
        cluster.run(3);
    }
    cluster.run_until(500, |cluster| cluster.nodes.values().all(|node| node.values.len() == 200));
    for node in cluster.nodes.values() {
        assert_eq!(node.values, (0..200u8).map(|value| vec![value]).collect::<Vec<_>>());
    }
}

/// Voters normally ignore candidates while they trust their leader. When they know that its process has
/// ended, they need not wait for a timeout.
#[test]
fn a_leader_whose_process_has_ended_is_replaced_within_two_ticks() {
    for seed in 0..50 {
        let mut cluster = Cluster::new(3, seed);
        cluster.run_until(200, |cluster| cluster.leader().is_some());
        cluster.propose(b"before").unwrap();
        cluster.run(50);
        let old = cluster.leader().unwrap();
        cluster.kill_noticed(old);
        let steps = cluster.run_until(100, |cluster| cluster.leader().is_some_and(|leader| leader != old));
        // Two rounds of votes, each with a message of up to three steps there and back, and a sync of votes.
        assert!(steps <= 20, "seed {seed}: {steps} steps without a leader");
    }
}

/// A vote is synced twice: by the candidate and by the voter. That takes longer than a tick.
#[test]
fn campaigns_with_each_tick_do_not_end_an_election_whose_votes_are_being_synced() {
    for seed in 0..50 {
        let mut cluster = Cluster::new(3, seed);
        cluster.run_until(200, |cluster| cluster.leader().is_some());
        cluster.run(50);
        cluster.sync_delay = 4;
        let old = cluster.leader().unwrap();
        cluster.kill_noticed(old);
        let first = cluster.living()[0];
        let mut steps = 0;
        while cluster.leader().is_none() {
            assert!(steps < 45, "seed {seed}: {steps} steps without a leader");
            cluster.step();
            steps += 1;
            if steps % TICK_STEPS == 0 {
                cluster.with(first, Replica::campaign_again);
            }
        }
    }
}

/// Each sync takes longer than the time until an election.
#[test]
fn a_leader_whose_voters_sync_slowly_stays() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(3, seed);
        cluster.run_until(200, |cluster| cluster.leader().is_some());
        let (leader, term) = (cluster.leader().unwrap(), cluster.replica(VoterId(1)).term());
        cluster.run(50);
        cluster.sync_delay = 12 * TICK_STEPS;
        for value in 0..5 {
            cluster.propose(&[value]).unwrap();
            cluster.run(30 * TICK_STEPS);
        }
        cluster.run_until(500, |cluster| cluster.nodes.values().all(|node| node.values.len() == 5));
        assert_eq!((cluster.leader(), cluster.replica(VoterId(1)).term()), (Some(leader), term), "seed {seed}");
        // The next one is elected although votes take longer to sync than an election may take.
        cluster.kill_noticed(leader);
        cluster.run_until(150 * TICK_STEPS, |cluster| cluster.leader().is_some());
    }
}

#[test]
fn a_leader_that_is_silent_is_replaced_after_its_timeout() {
    for seed in 0..50 {
        let mut cluster = Cluster::new(3, seed);
        cluster.run_until(200, |cluster| cluster.leader().is_some());
        let old = cluster.leader().unwrap();
        cluster.nodes.get_mut(&old).unwrap().is_paused = true;
        // Elections of two voters may collide a few times.
        cluster.run_until(100 * TICK_STEPS, |cluster| cluster.leader().is_some());
        cluster.propose(b"after").unwrap();
        cluster.run(50);
        cluster.nodes.get_mut(&old).unwrap().is_paused = false;
        cluster.run_until(30 * TICK_STEPS, |cluster| cluster.replica(old).role() != Role::Leader);
        cluster.run_until(500, |cluster| cluster.nodes[&old].values == [b"after".to_vec()]);
    }
}

#[test]
fn a_leader_without_a_majority_steps_down() {
    let mut cluster = Cluster::new(3, 9);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    let leader = cluster.leader().unwrap();
    for other in ids(1..=3).into_iter().filter(|voter| *voter != leader) {
        cluster.cut(other, leader);
    }
    cluster.run_until(30 * TICK_STEPS, |cluster| cluster.replica(leader).role() != Role::Leader);
}

/// A voter that does not hear the leader asks for votes before it begins an election, and gets none.
#[test]
fn a_voter_behind_a_broken_link_does_not_depose_the_leader() {
    let mut cluster = Cluster::new(3, 4);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    let leader = cluster.leader().unwrap();
    let term = cluster.replica(leader).term();
    let deaf = ids(1..=3).into_iter().find(|voter| *voter != leader).unwrap();
    cluster.cut(leader, deaf);
    cluster.run(1000);
    assert_eq!((cluster.leader(), cluster.replica(leader).term()), (Some(leader), term));
    cluster.heal();
    cluster.propose(b"value").unwrap();
    cluster.run_until(500, |cluster| cluster.nodes[&deaf].values.len() == 1);
}

#[test]
fn leadership_is_handed_over() {
    let mut cluster = Cluster::new(3, 5);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    cluster.run(50);
    cluster.with(VoterId(1), |replica| replica.transfer_leadership(VoterId(3)));
    cluster.run_until(100, |cluster| cluster.replica(VoterId(3)).role() == Role::Leader);
}
