use junctor_kernel::KernelLimits;
use proptest::prelude::*;

use super::fixture;
use crate::placement::{AutomaticPlacement, CPU_COUNT_MAX, CpuBinding, Module, PlacementPlan, ThreadConfig, Topology};

fn counts(cpu_count: u32) -> String {
    AutomaticPlacement::counts_for(cpu_count).to_string()
}

/// The threads that need a CPU: all but `io`, which mostly sleeps, and `work`, which takes what is left.
fn busy_total(cpu_count: u32) -> u32 {
    let counts = AutomaticPlacement::counts_for(cpu_count);
    counts.total() - counts.get(Module::Io) - counts.get(Module::Work)
}

#[test]
fn the_automatic_choice_equals_the_documented_rows() {
    assert_eq!(counts(1), "recv=1 io=1");
    assert_eq!(counts(3), "recv=2 io=1");
    assert_eq!(counts(4), "recv=4 io=1");
    assert_eq!(counts(7), "recv=6 io=1");
    assert_eq!(counts(8), "ldm=3 recv=5 io=1 work=1");
    assert_eq!(counts(12), "main=1 ldm=5 recv=6 io=1 work=1");
    assert_eq!(counts(16), "main=1 ldm=6 recv=9 io=1 work=2");
    assert_eq!(counts(32), "main=1 rep=1 ldm=13 recv=17 io=1 work=4");
    assert_eq!(counts(64), "main=1 rep=1 ldm=27 recv=35 io=1 work=8");
    assert_eq!(counts(128), "main=1 rep=1 ldm=54 recv=72 io=1 work=8");
    assert_eq!(counts(255), "main=1 rep=1 tc=17 ldm=101 recv=80 send=8 io=1 sql=47");
    assert_eq!(counts(256), counts(255));
    assert_eq!(counts(0), counts(1));
    assert_eq!(counts(5_000), counts(255));
}

#[test]
fn more_cpus_never_mean_fewer_threads() {
    for cpu_count in 2..=CPU_COUNT_MAX as u32 {
        assert!(busy_total(cpu_count) >= busy_total(cpu_count - 1), "{cpu_count}");
        // At 8 CPUs pipelines replace all-purpose receive threads; at 142 sessions move to their own threads;
        // at 240 work threads end.
        if ![8, 142, 240].contains(&cpu_count) {
            let (less, more) =
                (AutomaticPlacement::counts_for(cpu_count - 1), AutomaticPlacement::counts_for(cpu_count));
            assert!(Module::ALL.into_iter().all(|module| less.get(module) <= more.get(module)), "{cpu_count}");
        }
    }
}

#[test]
fn the_table_of_every_machine_is_within_the_limit_of_threads() {
    for cpu_count in 1..=CPU_COUNT_MAX as u32 {
        let plan = PlacementPlan::automatic(&Topology::uniform(cpu_count), None, false).unwrap();
        assert!(plan.threads.len() <= KernelLimits::THREADS_MAX, "{} threads on {cpu_count} CPUs", plan.threads.len());
    }
}

#[test]
fn pipelines_use_every_cpu_up_to_255_and_no_placement_uses_more() {
    for cpu_count in 1..=255 {
        let busy = busy_total(cpu_count);
        assert!(busy <= cpu_count && busy + 1 >= cpu_count, "{busy} threads on {cpu_count} CPUs");
        assert!(busy == cpu_count || cpu_count < 8);
    }
}

#[test]
fn the_explanation_names_the_cpus_and_the_choice() {
    let plan = PlacementPlan::automatic(&Topology::uniform(2), None, false).unwrap();
    assert_eq!(
        plan.reason,
        "automatic: 2 CPUs (affinity 2, cgroup quota none, 2 cores x 1, 1 L3 group) -> recv=2 io=1; not bound: a \
         small machine runs other programs too"
    );
    assert_eq!(plan.notices, Vec::<String>::new());
}

#[test]
fn a_quota_and_a_maximum_reduce_the_cpus_and_prevent_binding() {
    let mut topology = Topology::uniform(16);
    topology.cpu_quota_milli = Some(9_900);
    let chosen = AutomaticPlacement::choose(&topology, None, false);
    assert_eq!(chosen.counts, AutomaticPlacement::counts_for(9));
    assert!(chosen.reason.starts_with("automatic: 9 CPUs (affinity 16, cgroup quota 9.90, "), "{}", chosen.reason);
    assert!(chosen.reason.ends_with("not bound: the node shares the CPUs"), "{}", chosen.reason);
    assert!(chosen.config.entries().iter().all(|entry| entry.binding.is_none()));
    assert_eq!(AutomaticPlacement::choose(&topology, Some(4), false).counts, AutomaticPlacement::counts_for(4));
    topology.cpu_quota_milli = Some(10);
    assert_eq!(AutomaticPlacement::choose(&topology, Some(0), false).counts, AutomaticPlacement::counts_for(1));
}

/// Whether each of the first `count` instances of `first` shares its core with that of `second`.
fn assert_siblings(topology: &Topology, plan: &PlacementPlan, pairs: &[(Module, Module, u16)]) {
    let core_of = |module, instance| match plan.thread_of(module, instance).unwrap().cpu {
        CpuBinding::One(cpu) => topology.cpu(cpu).unwrap().core,
        _ => panic!("{module}/{instance} is not bound"),
    };
    for &(first, second, count) in pairs {
        for instance in 0..count {
            assert_eq!(core_of(first, instance), core_of(second, instance), "{first} and {second} {instance}");
        }
    }
}

#[test]
fn an_ldm_thread_shares_its_core_with_one_of_another_kind() {
    let topology = fixture::machine(8, 4, 0..16);
    let plan = PlacementPlan::automatic(&topology, None, false).unwrap();
    assert_siblings(&topology, &plan, &[(Module::Ldm, Module::Recv, 6)]);
    let caches = |module| {
        let in_group = |group| plan.threads.iter().filter(|t| t.carries(module) && t.group == group).count();
        (in_group(0), in_group(1))
    };
    assert_eq!((caches(Module::Ldm), caches(Module::Recv)), ((3, 3), (5, 4)));
    assert_eq!(plan.thread_of(Module::Io, 0).unwrap().cpu, CpuBinding::None);
}

#[test]
fn on_many_cpus_siblings_pair_ldm_with_tc_and_recv_with_sql() {
    let topology = fixture::machine(80, 8, 0..160);
    let plan = PlacementPlan::automatic(&topology, None, false).unwrap();
    assert_siblings(&topology, &plan, &[(Module::Ldm, Module::Tc, 8), (Module::Recv, Module::Sql, 20)]);
}

proptest! {
    #[test]
    fn every_machine_gets_a_plan_with_a_cpu_for_each_thread(
        core_count in 1_u32..40, l3_core_count in 1_u32..10, missing in 0_u32..20, unpinned in any::<bool>(),
    ) {
        let affinity = (0..core_count * 2).filter(|cpu| cpu % 7 != missing || core_count == 1);
        let topology = fixture::machine(core_count, l3_core_count, affinity);
        let plan = PlacementPlan::automatic(&topology, None, unpinned).unwrap();
        let mut cpus: Vec<u32> = plan.threads.iter().filter_map(|thread| match thread.cpu {
            CpuBinding::One(cpu) => Some(cpu),
            _ => None,
        }).collect();
        let bound = !unpinned && topology.cpus.len() >= 8;
        let free = 1 + plan.instance_count(Module::Work);
        prop_assert_eq!(cpus.len(), if bound { plan.threads.len() - free } else { 0 });
        cpus.sort_unstable();
        let count = cpus.len();
        cpus.dedup();
        prop_assert_eq!(cpus.len(), count, "a CPU is given twice");
        for module in Module::ALL.into_iter().filter(|module| !matches!(module, Module::Send | Module::Work)) {
            prop_assert!(plan.instance_count(module) > 0);
        }
        let chosen = AutomaticPlacement::choose(&topology, None, unpinned);
        prop_assert_eq!(ThreadConfig::parse(&chosen.config.to_string()), Ok(chosen.config));
    }

    #[test]
    fn uniform_machines_of_any_size_get_a_plan(cpu_count in 1_u32..=1_024) {
        let plan = PlacementPlan::automatic(&Topology::uniform(cpu_count), None, false).unwrap();
        prop_assert_eq!(plan.instance_count(Module::Main), 1);
        prop_assert!(plan.threads.len() <= cpu_count as usize + 1 + plan.instance_count(Module::Work));
    }
}
