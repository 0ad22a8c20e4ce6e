//! Reduces the plan of a failing seed while it still fails. The seed draws different values under a different
//! plan, so each smaller plan is tried with several seeds.

use crate::plan::Plan;

/// Number of seeds to try with each smaller plan.
const SEEDS_PER_STEP: u64 = 8;

/// The smallest failing plan found, and a seed for which `fails` returns true. `None` if the given plan
/// passes.
pub fn shrink(plan: &Plan, seed: u64, mut fails: impl FnMut(&Plan, u64) -> bool) -> Option<(Plan, u64)> {
    if !fails(plan, seed) {
        return None;
    }
    let mut smallest = (plan.clone(), seed);
    'again: loop {
        for candidate in smaller_plans(&smallest.0) {
            let seeds = std::iter::once(smallest.1).chain(1..=SEEDS_PER_STEP);
            for seed in seeds {
                if fails(&candidate, seed) {
                    smallest = (candidate, seed);
                    continue 'again;
                }
            }
        }
        return Some(smallest);
    }
}

/// Plans that do less, largest reduction first.
fn smaller_plans(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut add_changed = |change: &dyn Fn(&mut Plan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        if smaller != *plan {
            plans.push(smaller);
        }
    };
    for position in 0..plan.workloads.len() {
        if plan.workloads.len() > 1 {
            add_changed(&|plan| {
                plan.workloads.remove(position);
            });
        }
    }
    add_changed(&|plan| plan.restarts = None);
    add_changed(&|plan| plan.world.chain_max = 1);
    add_changed(&|plan| plan.world.groups_max = 1);
    add_changed(&|plan| plan.world.vanish_one_in = 0);
    add_changed(&|plan| plan.world.reset_one_in = 0);
    add_changed(&|plan| plan.world.hold_one_in = 0);
    add_changed(&|plan| plan.world.tiny_rings_one_in = 0);
    for placement in &plan.world.placements {
        add_changed(&|plan| plan.world.placements = vec![placement.clone()]);
    }
    for position in 0..plan.workloads.len() {
        add_changed(&|plan| {
            let workload = &mut plan.workloads[position];
            workload.rounds = (workload.rounds / 2).max(1);
        });
        add_changed(&|plan| {
            let workload = &mut plan.workloads[position];
            workload.sessions = (workload.sessions * 2 / 3).max(1);
        });
        add_changed(&|plan| {
            let workload = &mut plan.workloads[position];
            workload.rows = (workload.rows / 2).max(1);
        });
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{WorkloadPlan, WorldPlan};

    fn plan() -> Plan {
        let workload = |name: &str| WorkloadPlan { name: name.to_owned(), sessions: 9, rounds: 40, rows: 16 };
        Plan {
            ci_seeds: 1,
            world: WorldPlan {
                chain_max: 3,
                groups_max: 1,
                placements: vec!["receive".to_owned(), "random".to_owned()],
                tiny_rings_one_in: 2,
                reset_one_in: 100,
                vanish_one_in: 100,
                hold_one_in: 3,
                evict_one_in: 0,
                fails_over: false,
                is_cluster: false,
                members: None,
            },
            restarts: None,
            workloads: vec![workload("bank_transfer"), workload("unique_race")],
        }
    }

    #[test]
    fn shrinking_removes_what_the_failure_does_not_need() {
        let fails = |plan: &Plan, _: u64| {
            let race = plan.workloads.iter().find(|workload| workload.name == "unique_race");
            plan.world.hold_one_in == 3 && race.is_some_and(|race| race.sessions >= 3)
        };
        let (smallest, seed) = shrink(&plan(), 7, fails).unwrap();
        assert_eq!((seed, smallest.workloads.len(), smallest.world.chain_max), (7, 1, 1));
        assert_eq!((smallest.workloads[0].sessions, smallest.workloads[0].rounds), (4, 1));
        assert_eq!((smallest.world.hold_one_in, smallest.world.reset_one_in), (3, 0));
    }

    #[test]
    fn a_plan_that_passes_is_not_shrunk() {
        assert_eq!(shrink(&plan(), 1, |_, _| false), None);
    }
}
