use proptest::prelude::*;

use super::fixture;
use super::thread_config::{SEED_LDM, SEED_RECEIVE};
use crate::placement::{
    CpuBinding, Module, Placement, PlacementPlan, READER_SLOTS_MAX, SeparateThreads, ThreadConfig, ThreadPriority,
    Topology, UnsatisfiablePlacement,
};

fn try_plan(text: &str, topology: &Topology) -> Result<PlacementPlan, UnsatisfiablePlacement> {
    PlacementPlan::from_thread_config(&ThreadConfig::parse(text).unwrap(), topology, false)
}

fn plan(text: &str, topology: &Topology) -> PlacementPlan {
    try_plan(text, topology).unwrap()
}

/// One line for each thread: its name, its modules with their instances.
fn shape(plan: &PlacementPlan) -> Vec<String> {
    let line = |thread: &crate::placement::ThreadPlan| {
        let modules = thread.modules.iter().map(|(module, instance)| format!("{module}/{instance}"));
        format!("{}: {}", thread.name, modules.collect::<Vec<_>>().join(" "))
    };
    plan.threads.iter().map(line).collect()
}

fn shape_of(placement: Placement) -> Vec<String> {
    shape(&plan(&placement.thread_config, &Topology::uniform(4)))
}

/// Checks the properties that every plan must have.
fn check(plan: &PlacementPlan) {
    for (index, thread) in plan.threads.iter().enumerate() {
        assert_eq!(usize::from(thread.index), index);
        assert!(!thread.modules.is_empty());
        assert!(thread.name.len() <= 15, "{}", thread.name);
        assert!(thread.modules.is_sorted());
        let reads = thread.carries(Module::Query);
        assert!(!reads || thread.reader_slot.is_some(), "{} reads without a slot", thread.name);
    }
    let mut names: Vec<&str> = plan.threads.iter().map(|thread| thread.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), plan.threads.len(), "two threads have one name");
    for module in Module::ALL {
        let count = plan.instance_count(module);
        assert!(count > 0 || matches!(module, Module::Send | Module::Work), "no thread carries {module}");
        for instance in 0..count as u16 {
            assert!(plan.thread_of(module, instance).is_some(), "{module}/{instance} is nowhere");
        }
    }
    let group_count = plan.threads.iter().map(|thread| thread.group + 1).max().unwrap();
    for group in 0..group_count {
        let members = || plan.threads.iter().filter(|thread| thread.group == group);
        assert!(members().any(|thread| thread.carries(Module::Ldm)), "group {group} has no partition to read");
        let mut slots: Vec<u8> = members().filter_map(|thread| thread.reader_slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..slots.len() as u8).collect::<Vec<_>>());
        assert!(slots.len() <= READER_SLOTS_MAX);
    }
}

#[test]
fn all_in_one_is_one_thread_with_everything() {
    assert_eq!(shape_of(Placement::all_in_one()), ["recv0: main/0 rep/0 tc/0 ldm/0 query/0 recv/0 io/0 sql/0 log/0"]);
    let plan = plan(&Placement::all_in_one().thread_config, &Topology::uniform(1));
    assert_eq!(plan.notices, [""; 0]);
}

#[test]
fn work_threads_have_the_last_sql_blocks_and_the_lowest_priority() {
    for (others, sessions) in [("recv={count=2},ldm={count=0}", 2), ("recv={count=2},sql={count=3}", 3)] {
        let plan = plan(&format!("{others},work={{count=2}}"), &Topology::uniform(4));
        assert_eq!(plan.instance_count(Module::Sql), sessions + 2);
        for instance in 0..2 {
            let thread = plan.thread_of(Module::Work, instance).unwrap();
            assert_eq!(thread.name, format!("work{instance}"));
            assert_eq!(thread.modules, [(Module::Sql, sessions as u16 + instance), (Module::Work, instance)]);
            assert_eq!((thread.priority.nice(), thread.nosend, thread.reader_slot), (Some(10), true, None));
        }
        let layout = junctor_kernel::NodeLayout::from(&plan);
        let background = layout.threads.iter().filter(|thread| thread.is_background);
        assert_eq!(background.count(), 2);
    }
}

#[test]
fn the_receive_setup_has_everything_in_each_recv_thread() {
    assert_eq!(
        shape_of(Placement::receive(2)),
        [
            "recv0: main/0 rep/0 tc/0 ldm/0 query/0 recv/0 sql/0 log/0",
            "recv1: tc/1 ldm/1 query/1 recv/1 sql/1",
            "io0: io/0",
        ]
    );
}

#[test]
fn the_ldm_setup_separates_ldm_and_query_from_recv() {
    assert_eq!(
        shape_of(Placement::ldm_setup(2, 1, 1)),
        [
            "recv0: main/0 rep/0 tc/0 recv/0 sql/0 log/0",
            "recv1: tc/1 recv/1 sql/1",
            "ldm0: ldm/0",
            "query0: query/0",
            "io0: io/0",
        ]
    );
}

#[test]
fn all_separate_has_one_module_on_each_thread() {
    assert_eq!(
        shape_of(Placement::all_separate(SeparateThreads { recv: 1, sql: 1, tc: 1, ldm: 2, query: 1, send: 1 })),
        [
            "main: main/0 log/0",
            "rep: rep/0",
            "recv0: recv/0",
            "sql0: sql/0",
            "tc0: tc/0",
            "ldm0: ldm/0",
            "ldm1: ldm/1",
            "query0: query/0",
            "send0: send/0",
            "io0: io/0",
        ]
    );
}

#[test]
fn main_and_rep_combine_when_one_of_them_is_0() {
    let shape = |text: &str| shape(&plan(text, &Topology::uniform(4)));
    let expected = ["main_rep: main/0 rep/0 log/0", "recv0: tc/0 recv/0 sql/0", "ldm0: ldm/0 query/0", "io0: io/0"]
        .map(str::to_owned);
    assert_eq!(shape("main={count=1},rep={count=0}"), expected);
    assert_eq!(shape("main={count=0},rep={count=1}"), expected);
    assert_eq!(shape("main={count=0},rep={count=1},io={count=0}")[0], "main_rep: main/0 rep/0 io/0 log/0");
}

#[test]
fn both_configurations_of_the_benchmark_kit_run_on_a_machine_that_has_their_cpus() {
    let topology = Topology::uniform(40);
    let ldm = plan(SEED_LDM, &topology);
    assert_eq!(shape(&ldm), shape_of(Placement::ldm_setup(2, 1, 1)));
    let cpus: Vec<CpuBinding> = ldm.threads.iter().map(|thread| thread.cpu.clone()).collect();
    assert_eq!(cpus, [32, 33, 0, 1, 33].map(CpuBinding::One));
    assert!(ldm.notices.contains(&"recv and io share CPU 33".to_owned()));
    let receive = plan(SEED_RECEIVE, &topology);
    assert_eq!(shape(&receive), shape_of(Placement::receive(4)));
    check(&ldm);
    check(&receive);
}

#[test]
fn missing_cpus_are_reported_but_do_not_matter_without_binding() {
    let error = try_plan(SEED_LDM, &Topology::uniform(2)).unwrap_err();
    assert_eq!(
        error.message,
        "ThreadConfig names CPUs that this process may not use: 32-33 (recv), 33 (io); it may use CPU 0-1. Name \
         those, or run without CPU binding (--no-cpu-binding)"
    );
    let config = ThreadConfig::parse(SEED_LDM).unwrap();
    let plan = PlacementPlan::from_thread_config(&config, &Topology::uniform(2), true).unwrap();
    assert!(plan.threads.iter().all(|thread| thread.cpu == CpuBinding::None));
    assert!(plan.notices.contains(&"CPU binding is off: cpubind and cpuset are ignored".to_owned()));
    check(&plan);
}

#[test]
fn cpus_that_no_thread_would_use_need_not_exist() {
    let plan = plan("ldm={count=1,cpubind=0,99},tc={count=0,cpubind=98}", &Topology::uniform(1));
    assert_eq!(plan.thread_of(Module::Ldm, 0).unwrap().cpu, CpuBinding::One(0));
}

#[test]
fn the_settings_of_an_entry_reach_its_threads() {
    let text = "ldm={cpuset=0-1,spintime=700,nosend=1,thread_prio=9},ldm={cpuset=1,realtime=1}";
    let plan = plan(text, &Topology::uniform(2));
    let (first, second) = (plan.thread_of(Module::Ldm, 0).unwrap(), plan.thread_of(Module::Ldm, 1).unwrap());
    assert!(matches!(&first.cpu, CpuBinding::Set(cpus) if cpus.numbers() == [0, 1]));
    assert_eq!((first.spin_us, first.nosend, first.priority), (Some(500), true, ThreadPriority::Level(9)));
    assert_eq!(first.priority.nice(), Some(-16));
    assert_eq!(second.cpu, CpuBinding::One(1));
    assert_eq!((second.spin_us, second.nosend, second.priority), (None, false, ThreadPriority::Realtime));
}

#[test]
fn read_groups_follow_the_caches_of_bound_threads() {
    let topology = fixture::machine(4, 2, 0..8);
    let text = "ldm={count=2,cpubind=0,2},query={count=2,cpubind=6,4},recv={count=2,cpubind=3,1},main={count=0}";
    let plan = plan(text, &topology);
    let group = |module, instance| plan.thread_of(module, instance).unwrap().group;
    assert_eq!((group(Module::Ldm, 0), group(Module::Ldm, 1)), (0, 1));
    assert_eq!((group(Module::Query, 0), group(Module::Query, 1)), (1, 0));
    assert_eq!((group(Module::Recv, 0), group(Module::Recv, 1)), (1, 0));
    assert_eq!(plan.notices, Vec::<String>::new());
    check(&plan);
}

#[test]
fn a_reader_whose_cache_has_no_ldm_joins_another_group_with_a_notice() {
    let topology = fixture::machine(4, 2, 0..4);
    let plan = plan("ldm={cpubind=0},query={cpubind=2},recv={cpubind=1},main={count=0}", &topology);
    assert_eq!(plan.thread_of(Module::Query, 0).unwrap().group, 0);
    assert_eq!(plan.notices, ["no ldm thread shares the L3 cache of query0: reads cross caches"]);
    check(&plan);
}

#[test]
fn more_readers_than_slots_make_more_groups_or_exclude_recv_threads() {
    let topology = Topology::uniform(4);
    let split = plan(&Placement::receive(40).thread_config, &topology);
    assert_eq!(split.threads.iter().map(|thread| thread.group).max(), Some(2));
    check(&split);
    let full = plan(&Placement::ldm_setup(2, 1, 15).thread_config, &topology);
    assert_eq!(full.thread_of(Module::Recv, 1).unwrap().reader_slot, None);
    assert_eq!(full.notices, ["no reader slot is left for recv1: reads there are always handed over"]);
    check(&full);
    let error = try_plan(&Placement::ldm_setup(1, 1, 17).thread_config, &topology).unwrap_err();
    assert!(error.message.contains("16 reader slots"), "{error}");
}

#[test]
fn too_many_threads_are_refused() {
    let counts = SeparateThreads { recv: 80, sql: 512, tc: 160, ldm: 332, query: 332, send: 80 };
    let text = Placement::all_separate(counts).thread_config;
    let error = try_plan(&text, &Topology::uniform(4)).unwrap_err();
    assert_eq!(error.message, "1499 threads, but at most 1025 are allowed");
}

proptest! {
    #[test]
    fn every_module_is_placed_whatever_the_counts(
        counts in (0_u32..=2, 0_u32..=1, 0_u32..=1, 0_u32..20),
        more in (0_u32..40, 0_u32..60, 1_u32..50, 0_u32..4, 0_u32..20),
        bound in any::<bool>(),
    ) {
        let ((main, rep, io, tc), (ldm, query, recv, send, sql)) = (counts, more);
        let topology = fixture::machine(32, 8, 0..64);
        let binding = |count: u32| match count {
            count if bound && count > 0 => format!(",cpubind={}-{}", 64 - count, 63),
            _ => String::new(),
        };
        let text = format!(
            "main={{count={main}}},rep={{count={rep}}},io={{count={io}}},tc={{count={tc}}},ldm={{count={ldm}{}}},\
             query={{count={query}{}}},recv={{count={recv}{}}},send={{count={send}}},sql={{count={sql}}}",
            binding(ldm), binding(query), binding(recv)
        );
        match try_plan(&text, &topology) {
            Ok(plan) => check(&plan),
            // Only query threads may outnumber the slots: 16 for each ldm at the most, fewer where caches
            // divide them.
            Err(error) => prop_assert!(query > 16 && error.message.contains("too many query threads"), "{}", error),
        }
    }
}
