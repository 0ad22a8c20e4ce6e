//! Plans and seeds that failed in the past.

use std::path::Path;

use junctor_sim::ci::read_plan;
use junctor_sim::plan::Plan;
use junctor_sim::run::run;

fn plan(folder: &str, name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name).with_extension("toml");
    read_plan(&path).unwrap()
}

/// Checks that these seeds of the plan pass.
fn hold(name: &str, plan: &Plan, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        let outcome = run(plan, seed);
        assert!(outcome.violations.is_empty(), "{name} seed {seed}: {outcome}");
    }
}

/// Checks that every seed of a plan of its own passes.
fn holds(name: &str) {
    let plan = plan("regressions", name);
    hold(name, &plan, 1..=plan.ci_seeds);
}

/// Checks that these seeds of a plan of CI pass.
fn seeds_hold(name: &str, seeds: &[u64]) {
    hold(name, &plan("plans/fast", name), seeds.iter().copied());
}

#[test]
fn a_deadlock_through_a_lock_upgrade_is_found() {
    holds("stale_blockers");
}

#[test]
fn dropping_a_partition_does_not_block_a_commit() {
    holds("dropped_replica");
}

#[test]
fn a_stop_during_a_recovery_from_a_slow_disk_ends() {
    seeds_hold("checkpoints", &[62, 206]);
    seeds_hold("durability", &[10217]);
    seeds_hold("failing_disks", &[10089]);
}

#[test]
fn the_trouble_of_a_disk_ends_with_its_life() {
    seeds_hold("checkpoints", &[166, 10179]);
    seeds_hold("failing_disks", &[10180]);
}

#[test]
fn a_life_without_a_trace_on_disk_has_an_epoch_of_its_own() {
    seeds_hold("cluster_durability", &[700_004]);
}

#[test]
fn a_node_that_is_not_yet_welcome_answers_for_its_tables() {
    seeds_hold("removal", &[700_003]);
}

#[test]
fn a_node_keeps_its_mark_when_the_other_one_of_its_group_has_just_lost_its_disk() {
    seeds_hold("lost_groups", &[710_003]);
}

#[test]
fn a_voter_that_joins_is_counted_after_a_restart() {
    seeds_hold("members", &[770_044, 770_088]);
}

#[test]
fn a_life_that_is_not_admitted_takes_no_partitions_and_answers_no_reads() {
    seeds_hold("multi_valued_members", &[770_000, 770_097]);
    seeds_hold("lost_groups", &[770_115, 770_118]);
}

#[test]
fn a_replica_that_was_added_may_stay() {
    seeds_hold("replicas", &[710_010]);
}

#[test]
fn the_end_of_an_alteration_does_not_wait_for_sessions_that_wait_for_it() {
    seeds_hold("removal", &[700_051]);
}

#[test]
fn an_alteration_waits_until_another_one_of_its_table_is_undone() {
    seeds_hold("multi_valued", &[710_001]);
}

#[test]
fn a_sound_disk_put_back_may_have_lower_numbers() {
    seeds_hold("failing_disks", &[10058]);
}

#[test]
fn the_late_answer_of_a_lost_node_does_not_count_twice() {
    seeds_hold("evictions", &[31]);
}

#[test]
fn a_node_may_have_locks_only_in_a_commit() {
    seeds_hold("groups", &[1]);
}

#[test]
fn a_node_does_not_create_partitions_for_its_life_before() {
    seeds_hold("multi_valued_members", &[770_000]);
}

#[test]
fn tables_stay_blocked_until_the_next_main_has_published_its_catalog() {
    seeds_hold("multi_valued_members", &[1_100_008, 1_100_082]);
    seeds_hold("removal", &[1_100_037]);
}

#[test]
fn a_restart_frees_the_version_number_of_a_commit_that_was_only_read() {
    seeds_hold("lost_groups", &[1_100_041]);
}

#[test]
fn an_undo_of_a_tc_that_is_lost_in_the_next_epoch_is_void() {
    seeds_hold("groups", &[1_100_147]);
}

#[test]
fn a_transaction_whose_tc_is_lost_reads_nothing_without_its_own_writes() {
    seeds_hold("sql_nodes", &[1_310_253]);
}

#[test]
fn voters_that_were_replaced_do_not_count_after_a_restart() {
    seeds_hold("lost_groups", &[1_310_211]);
}
