use crate::placement::{Cpu, Topology};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The CPUs of [`Root::machine`] that are in `affinity`, without files.
pub(super) fn machine(core_count: u32, l3_core_count: u32, affinity: impl IntoIterator<Item = u32>) -> Topology {
    let cpus: Vec<u32> = affinity.into_iter().collect();
    let mut cores: Vec<u32> = cpus.iter().map(|cpu| cpu % core_count).collect();
    cores.sort_unstable();
    cores.dedup();
    let mut caches: Vec<u32> = cores.iter().map(|core| core / l3_core_count).collect();
    caches.dedup();
    let index = |keys: &[u32], key: u32| keys.binary_search(&key).unwrap() as u32;
    let cpu = |number: u32| {
        let (core, cache) = (number % core_count, number % core_count / l3_core_count);
        Cpu { number, core: index(&cores, core), l3_group: index(&caches, cache), numa_node: cache }
    };
    Topology { cpus: cpus.iter().map(|&number| cpu(number)).collect(), cpu_quota_milli: None, notices: Vec::new() }
}

/// A temporary folder that stands for `/`, removed at the end of the test.
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("junctor-placement-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A machine of `core_count` cores with two siblings each, numbered as Linux does (n and n + core_count),
    /// with `l3_core_count` cores on each L3 cache, which is also a memory node.
    pub(super) fn machine(core_count: u32, l3_core_count: u32) -> Self {
        let root = Self::new();
        for cpu in 0..core_count * 2 {
            let core = cpu % core_count;
            let l3 = core / l3_core_count;
            let (first, last) = (l3 * l3_core_count, ((l3 + 1) * l3_core_count).min(core_count) - 1);
            let siblings = format!("{core},{}\n", core + core_count);
            let l3_list = format!("{first}-{last},{}-{}\n", first + core_count, last + core_count);
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            root.write(&format!("{folder}/topology/core_cpus_list"), &siblings);
            root.write(&format!("{folder}/cache/index0/level"), "1\n");
            root.write(&format!("{folder}/cache/index0/shared_cpu_list"), &siblings);
            root.write(&format!("{folder}/cache/index3/level"), "3\n");
            root.write(&format!("{folder}/cache/index3/shared_cpu_list"), &l3_list);
            root.write(&format!("sys/devices/system/node/node{l3}/cpulist"), &l3_list);
        }
        let node_count = core_count.div_ceil(l3_core_count);
        root.write("sys/devices/system/node/online", &format!("0-{}\n", node_count - 1));
        root
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // A folder that remains is no failure of the test.
        let _ = fs::remove_dir_all(&self.0);
    }
}
