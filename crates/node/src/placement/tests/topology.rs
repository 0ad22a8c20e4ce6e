use proptest::prelude::*;

use super::fixture::{self, Root};
use crate::placement::{CPU_COUNT_MAX, Topology};

#[test]
fn siblings_caches_and_memory_nodes_are_read() {
    let root = Root::machine(4, 2);
    let affinity: Vec<u32> = (0..8).collect();
    let topology = Topology::read(root.path(), &affinity);
    assert_eq!(topology.notices, Vec::<String>::new());
    let seen: Vec<_> = topology.cpus.iter().map(|cpu| (cpu.number, cpu.core, cpu.l3_group, cpu.numa_node)).collect();
    let expected = [
        (0, 0, 0, 0),
        (1, 1, 0, 0),
        (2, 2, 1, 1),
        (3, 3, 1, 1),
        (4, 0, 0, 0),
        (5, 1, 0, 0),
        (6, 2, 1, 1),
        (7, 3, 1, 1),
    ];
    assert_eq!(seen, expected);
    assert_eq!(topology, fixture::machine(4, 2, 0..8));
    assert_eq!(topology.describe(8), "8 CPUs (affinity 8, cgroup quota none, 4 cores x 2, 2 L3 groups)");
}

#[test]
fn only_cpus_in_the_affinity_mask_are_used() {
    let root = Root::machine(4, 2);
    let topology = Topology::read(root.path(), &[6, 2, 3, 2]);
    assert_eq!(topology.cpu_list().to_string(), "2-3,6");
    assert_eq!((topology.core_count(), topology.l3_group_count()), (2, 1));
    assert_eq!(topology.describe(3), "3 CPUs (affinity 3, cgroup quota none, 2 cores, 1 L3 group)");
    assert!(topology.cpu(0).is_none());
}

#[test]
fn absent_files_mean_separate_cores_of_one_cache() {
    let root = Root::new();
    let topology = Topology::read(root.path(), &[0, 1, 2]);
    assert_eq!((topology.core_count(), topology.l3_group_count(), topology.cpu_quota_milli), (3, 1, None));
    assert_eq!(
        topology.notices,
        [
            "the core of 3 CPUs is not known; each counts as a core of its own",
            "the L3 cache of 3 CPUs is not known; those of one package count as sharing one",
        ]
    );
}

#[test]
fn without_an_l3_cache_the_packages_are_the_groups() {
    let root = Root::new();
    for cpu in 0..4 {
        root.write(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{cpu}\n"));
        root.write(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), &format!("{}\n", cpu / 2));
    }
    let topology = Topology::read(root.path(), &[0, 1, 2, 3]);
    assert_eq!(topology.cpus.iter().map(|cpu| cpu.l3_group).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(topology.notices.len(), 1);
}

#[test]
fn a_sibling_list_without_its_own_cpu_is_ignored() {
    let root = Root::machine(2, 2);
    root.write("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0,2\n");
    let topology = Topology::read(root.path(), &[0, 1, 2, 3]);
    assert_eq!(topology.cpus.iter().map(|cpu| cpu.core).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(topology.notices, ["the core of 1 CPUs is not known; each counts as a core of its own"]);
}

#[test]
fn an_empty_affinity_mask_means_cpu_0_and_a_huge_one_is_truncated() {
    let root = Root::new();
    let topology = Topology::read(root.path(), &[]);
    assert_eq!(topology.cpu_list().to_string(), "0");
    assert_eq!(topology.notices[0], "the affinity mask names no CPU; CPU 0 is assumed");
    let topology = Topology::read(root.path(), &(0..2_000).collect::<Vec<_>>());
    assert_eq!(topology.cpus.len(), CPU_COUNT_MAX);
    assert_eq!(topology.notices[0], "of 2000 CPUs the first 1024 are used");
}

fn quota(files: &[(&str, &str)]) -> (Option<u64>, usize) {
    let root = Root::machine(1, 1);
    for (path, text) in files {
        root.write(path, text);
    }
    let topology = Topology::read(root.path(), &[0]);
    (topology.cpu_quota_milli, topology.notices.len())
}

#[test]
fn the_smallest_quota_of_the_group_and_those_above_it_counts() {
    let own = ("proc/self/cgroup", "0::/a/b\n");
    assert_eq!(quota(&[("sys/fs/cgroup/cpu.max", "150000 100000\n")]), (Some(1_500), 0));
    assert_eq!(quota(&[("sys/fs/cgroup/cpu.max", "max 100000\n")]), (None, 0));
    let nested = [own, ("sys/fs/cgroup/a/cpu.max", "200000 100000"), ("sys/fs/cgroup/a/b/cpu.max", "max 100000")];
    assert_eq!(quota(&nested), (Some(2_000), 0));
    let nested = [own, ("sys/fs/cgroup/a/cpu.max", "200000 100000"), ("sys/fs/cgroup/a/b/cpu.max", "50000 100000")];
    assert_eq!(quota(&nested), (Some(500), 0));
    assert_eq!(quota(&[own, ("sys/fs/cgroup/unified/a/cpu.max", "300000 100000")]), (Some(3_000), 0));
}

#[test]
fn a_quota_of_cgroup_version_1_is_read_and_minus_one_means_none() {
    let own = ("proc/self/cgroup", "3:cpuset:/x\n2:cpuacct,cpu:/a\n");
    let period = ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota(&[own, period, ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n")]), (Some(2_500), 0));
    assert_eq!(quota(&[own, period, ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n")]), (None, 0));
    let beside = [("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "250000\n"), own];
    assert_eq!(quota(&beside), (None, 0));
}

#[test]
fn a_group_outside_the_visible_tree_is_not_followed() {
    let files = [("proc/self/cgroup", "0::/../../secret\n"), ("sys/fs/secret/cpu.max", "100000 100000\n")];
    assert_eq!(quota(&files), (None, 0));
}

#[test]
fn an_invalid_quota_is_ignored_with_a_notice() {
    for text in ["", "0 100000", "100000 0", "-5 100000", "many 100000", "100000 x", "99999999999999999999 1"] {
        assert_eq!(quota(&[("sys/fs/cgroup/cpu.max", text)]), (None, 1), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_file_contents_give_a_usable_topology(garbage in "[-0-9, a-z\n\u{e4}]{0,20}", seed in 0_u32..6) {
        let root = Root::machine(2, 1);
        let files = [
            "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
            "sys/devices/system/cpu/cpu1/cache/index3/level",
            "sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list",
            "sys/devices/system/node/online",
            "proc/self/cgroup",
            "sys/fs/cgroup/cpu.max",
        ];
        root.write(files[seed as usize], &garbage);
        let topology = Topology::read(root.path(), &[0, 1, 2, 3]);
        prop_assert_eq!(topology.cpus.len(), 4);
        prop_assert!(topology.cpus.iter().all(|cpu| cpu.core < topology.core_count() && cpu.core < 4));
        prop_assert!(topology.cpus.iter().all(|cpu| cpu.l3_group < 4));
    }
}
