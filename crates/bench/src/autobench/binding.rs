//! Binding of the server and of sysbench to CPUs.

use std::collections::BTreeSet;
use std::path::Path;

/// The program that binds processes to CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binder {
    /// None: processes are not bound.
    None,
    /// `taskset`: binds to CPUs.
    Taskset,
    /// `numactl`: binds to CPUs, NUMA nodes and memory.
    Numactl,
}

/// The CPU settings of an `autobench.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuBinding {
    /// Value of `TASKSET`.
    pub binder: Binder,
    /// Lists of CPUs of the server; empty for all.
    pub server_cpus: Vec<String>,
    /// Lists of NUMA nodes of the server.
    pub server_nodes: Vec<String>,
    /// Whether the memory of the server is interleaved over its nodes.
    pub server_interleaves: bool,
    /// CPUs of the sysbench instances: none, one entry for all, or one for each.
    pub benchmark_cpus: Vec<String>,
    /// NUMA nodes of the sysbench instances.
    pub benchmark_nodes: Vec<String>,
    /// Whether the memory of sysbench is interleaved over its nodes.
    pub benchmark_interleaves: bool,
}

impl CpuBinding {
    /// The command prefix of the server. It includes the CPUs of the server's `ThreadConfig`, because a
    /// process cannot bind threads to CPUs outside the set that it was started with.
    pub fn server_words(&self, thread_config: Option<&str>, has_numactl: bool) -> Vec<String> {
        if self.server_cpus.is_empty() && self.server_nodes.is_empty() {
            return Vec::new();
        }
        let mut cpus = self.server_cpus.clone();
        // Older files have a hexadecimal mask instead of a list. It cannot be combined with a list.
        if cpus.first().is_some_and(|first| !first.starts_with("0x")) {
            cpus.extend(thread_config.into_iter().flat_map(cpus_of_thread_config));
        }
        words(self.binder, has_numactl, &cpus.join(","), &self.server_nodes.join(","), self.server_interleaves)
    }

    /// The command prefix of a sysbench instance.
    pub fn benchmark_words(&self, instance: u32, has_numactl: bool) -> Vec<String> {
        let of = |list: &[String]| list.get(instance as usize).or(list.first()).cloned().unwrap_or_default();
        let (cpus, nodes) = (of(&self.benchmark_cpus), of(&self.benchmark_nodes));
        words(self.binder, has_numactl, &cpus, &nodes, self.benchmark_interleaves)
    }

    /// Names the settings that have no effect on this machine because numactl is missing.
    pub fn notice(&self, has_numactl: bool) -> Option<&'static str> {
        (self.binder == Binder::Numactl && !has_numactl)
            .then_some("numactl is not installed: taskset binds the CPUs, NUMA nodes and memory are left to the system")
    }
}

/// Whether numactl is installed.
pub fn has_numactl() -> bool {
    ["/usr/bin/numactl", "/bin/numactl", "/usr/local/bin/numactl"].iter().any(|path| Path::new(path).exists())
}

fn words(binder: Binder, has_numactl: bool, cpus: &str, nodes: &str, interleaves: bool) -> Vec<String> {
    let mut words = Vec::new();
    match (binder, has_numactl) {
        (Binder::None, _) => {}
        (Binder::Numactl, true) => {
            if !nodes.is_empty() || !cpus.is_empty() {
                words.push("numactl".into());
                match (nodes.is_empty(), interleaves) {
                    (false, true) => words.push(format!("--interleave={nodes}")),
                    _ => words.push("--localalloc".into()),
                }
                match cpus.is_empty() {
                    true => words.push(format!("--cpunodebind={nodes}")),
                    false => words.push(format!("--physcpubind={cpus}")),
                }
            }
        }
        (Binder::Taskset | Binder::Numactl, _) => {
            // Without `-c`, `taskset` expects a hexadecimal mask.
            let is_mask = cpus.starts_with("0x");
            if !cpus.is_empty() {
                words.push("taskset".into());
                if !is_mask {
                    words.push("-c".into());
                }
                words.push(cpus.into());
            }
        }
    }
    words
}

/// The CPU lists after `cpubind=` and `cpuset=` in a `ThreadConfig`. Entries with `count=0` are skipped.
fn cpus_of_thread_config(text: &str) -> BTreeSet<String> {
    let mut cpus = BTreeSet::new();
    for entry in text.split('}') {
        let Some((_, parameters)) = entry.split_once('{') else { continue };
        if parameters.split(',').any(|parameter| parameter.trim() == "count=0") {
            continue;
        }
        let mut is_list = false;
        for part in parameters.split(',').map(str::trim) {
            match part.split_once('=') {
                Some(("cpubind" | "cpuset", first)) => {
                    is_list = true;
                    cpus.insert(first.to_string());
                }
                Some(_) => is_list = false,
                None if is_list => {
                    cpus.insert(part.to_string());
                }
                None => {}
            }
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(binder: Binder) -> CpuBinding {
        CpuBinding {
            binder,
            server_cpus: vec!["8-27,40-59".into()],
            server_nodes: vec!["0".into()],
            server_interleaves: true,
            benchmark_cpus: vec!["28".into(), "29".into()],
            benchmark_nodes: vec!["0".into()],
            benchmark_interleaves: false,
        }
    }

    #[test]
    fn the_server_keeps_the_cpus_of_its_threads() {
        let thread_config =
            "ldm={count=1,cpubind=0},tc={count=0,cpubind=2},recv={count=2,cpubind=32,33},io={count=1,cpuset=4-5}";
        let words = binding(Binder::Taskset).server_words(Some(thread_config), false);
        assert_eq!(words, ["taskset", "-c", "8-27,40-59,0,32,33,4-5"]);
        let words = binding(Binder::Taskset).server_words(None, false);
        assert_eq!(words, ["taskset", "-c", "8-27,40-59"]);
    }

    #[test]
    fn numactl_binds_memory_too_where_it_is_installed() {
        let binding = binding(Binder::Numactl);
        assert_eq!(binding.server_words(None, true), ["numactl", "--interleave=0", "--physcpubind=8-27,40-59"]);
        assert_eq!(binding.benchmark_words(0, true), ["numactl", "--localalloc", "--physcpubind=28"]);
        assert_eq!(binding.benchmark_words(0, false), ["taskset", "-c", "28"]);
        assert!(binding.notice(false).is_some() && binding.notice(true).is_none());
    }

    #[test]
    fn each_instance_has_its_cpus() {
        let mut binding = binding(Binder::Taskset);
        assert_eq!(binding.benchmark_words(1, false), ["taskset", "-c", "29"]);
        binding.benchmark_cpus = vec!["0xF0".into()];
        assert_eq!(binding.benchmark_words(1, false), ["taskset", "0xF0"]);
        binding.binder = Binder::None;
        assert!(binding.benchmark_words(1, false).is_empty());
    }

    #[test]
    fn without_cpus_nothing_is_bound() {
        let mut binding = binding(Binder::Numactl);
        (binding.server_cpus, binding.server_nodes) = (Vec::new(), Vec::new());
        assert!(binding.server_words(Some("ldm={count=1,cpubind=0}"), true).is_empty());
    }
}
