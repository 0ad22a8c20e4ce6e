//! The CPUs that the process may really use, and how they share cores, caches and memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::cgroup;
use super::cpu_list::{CPU_NUMBER_MAX, CpuList};

/// Maximum number of CPUs that a node uses.
pub const CPU_COUNT_MAX: usize = 1_024;

/// Maximum size of a file read, in bytes. The relevant files are far shorter.
const FILE_BYTES_MAX: u64 = 65_536;

/// Maximum number of cache entries examined for each CPU; processors have four to six.
const CACHE_INDEXES_MAX: u32 = 16;

/// One CPU, which is one hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The operating system's number of the CPU.
    pub number: u32,
    /// Index of its physical core, from 0 without gaps; CPUs of one core are siblings.
    pub core: u32,
    /// Index of the group of CPUs that share a level 3 cache, from 0 without gaps.
    pub l3_group: u32,
    /// The operating system's number of the CPU's memory node.
    pub numa_node: u32,
}

/// The usable CPUs and their relations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// At least one CPU and at most [`CPU_COUNT_MAX`], ascending by number.
    pub cpus: Vec<Cpu>,
    /// The CPU time that the cgroup grants, in thousandths of a CPU; `None` without a quota.
    pub cpu_quota_milli: Option<u64>,
    /// A text for each figure that could not be read, with the value that was assumed instead.
    pub notices: Vec<String>,
}

impl Topology {
    /// Describes the CPUs of `affinity`, which lists the process's affinity mask, from the files under `root`
    /// (`/` on a machine). Missing or malformed files never fail: the CPUs then count as separate cores that
    /// share one L3 cache and have no quota, with a notice.
    pub fn read(root: &Path, affinity: &[u32]) -> Self {
        let mut notices = Vec::new();
        let numbers = usable_numbers(affinity, &mut notices);
        let devices = root.join("sys/devices/system");
        let cores = core_keys(&devices, &numbers, &mut notices);
        let l3_groups = l3_keys(&devices, &numbers, &mut notices);
        let numa_nodes = numa_nodes(&devices);
        let (cores, l3_groups) = (dense(&cores), dense(&l3_groups));
        let cpus = numbers.iter().enumerate().map(|(index, &number)| Cpu {
            number,
            core: cores[index],
            l3_group: l3_groups[index],
            numa_node: numa_nodes.get(&number).copied().unwrap_or(0),
        });
        let cpus = cpus.collect();
        Self { cpus, cpu_quota_milli: cgroup::cpu_quota_milli(root, &mut notices), notices }
    }

    /// `count` CPUs numbered from 0, each a core of its own, on one L3 cache, without a quota. For tests and
    /// the simulator. At least 1 and at most [`CPU_COUNT_MAX`].
    pub fn uniform(count: u32) -> Self {
        let count = count.clamp(1, CPU_COUNT_MAX as u32);
        let cpus = (0..count).map(|number| Cpu { number, core: number, l3_group: 0, numa_node: 0 }).collect();
        Self { cpus, cpu_quota_milli: None, notices: Vec::new() }
    }

    /// The CPU of this number, if the process may use it.
    pub fn cpu(&self, number: u32) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&number, |cpu| cpu.number).ok().map(|index| &self.cpus[index])
    }

    /// Number of physical cores.
    pub fn core_count(&self) -> u32 {
        self.cpus.iter().map(|cpu| cpu.core + 1).max().unwrap_or(0)
    }

    /// Number of L3 caches.
    pub fn l3_group_count(&self) -> u32 {
        self.cpus.iter().map(|cpu| cpu.l3_group + 1).max().unwrap_or(0)
    }

    /// The CPU numbers, for messages.
    pub fn cpu_list(&self) -> CpuList {
        CpuList::new(self.cpus.iter().map(|cpu| cpu.number).collect())
    }

    /// A description for users, such as `2 CPUs (affinity 2, cgroup quota none, 1 core x 2, 1 L3 group)`. The
    /// first figure is `used`, the number of CPUs that placement counts on.
    pub fn describe(&self, used: u32) -> String {
        let quota = match self.cpu_quota_milli {
            Some(milli) => format!("{}.{:02}", milli / 1_000, milli % 1_000 / 10),
            None => "none".to_owned(),
        };
        let (affinity, cores, l3_groups) = (self.cpus.len(), self.core_count(), self.l3_group_count());
        let (used, cores_text) = (plural(used, "CPU"), plural(cores, "core"));
        let cores_text = match self.cpus_per_core() {
            Some(per_core) => format!("{cores_text} x {per_core}"),
            None => cores_text,
        };
        format!("{used} (affinity {affinity}, cgroup quota {quota}, {cores_text}, {})", plural(l3_groups, "L3 group"))
    }

    /// Number of CPUs in each core, if equal for all.
    fn cpus_per_core(&self) -> Option<usize> {
        let cores = self.core_count() as usize;
        let mut counts = vec![0_usize; cores];
        for cpu in &self.cpus {
            counts[cpu.core as usize] += 1;
        }
        let first = counts.first().copied()?;
        counts.iter().all(|&count| count == first).then_some(first)
    }
}

fn plural(count: u32, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn usable_numbers(affinity: &[u32], notices: &mut Vec<String>) -> Vec<u32> {
    let mut numbers: Vec<u32> = affinity.iter().copied().filter(|&number| number <= CPU_NUMBER_MAX).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        notices.push("the affinity mask names no CPU; CPU 0 is assumed".to_owned());
        numbers.push(0);
    }
    if numbers.len() > CPU_COUNT_MAX {
        notices.push(format!("of {} CPUs the first {CPU_COUNT_MAX} are used", numbers.len()));
        numbers.truncate(CPU_COUNT_MAX);
    }
    numbers
}

/// A key for each CPU, equal for all CPUs of a core: the lowest CPU number of the core.
fn core_keys(devices: &Path, numbers: &[u32], notices: &mut Vec<String>) -> Vec<u32> {
    let read = |number: u32| {
        let topology = devices.join(format!("cpu/cpu{number}/topology"));
        let names = ["core_cpus_list", "thread_siblings_list"];
        names.into_iter().find_map(|name| list_holding(&topology.join(name), number))
    };
    let keys: Vec<Option<u32>> = numbers.iter().map(|&number| read(number)).collect();
    let unknown = keys.iter().filter(|key| key.is_none()).count();
    if unknown > 0 {
        notices.push(format!("the core of {unknown} CPUs is not known; each counts as a core of its own"));
    }
    keys.into_iter().zip(numbers).map(|(key, &number)| key.unwrap_or(number)).collect()
}

/// A key for each CPU, equal for all CPUs that share an L3 cache. CPUs of one package that have no L3 cache
/// share a key.
fn l3_keys(devices: &Path, numbers: &[u32], notices: &mut Vec<String>) -> Vec<(bool, u32)> {
    let read = |number: u32| {
        let cache = devices.join(format!("cpu/cpu{number}/cache"));
        let level_3 = (0..CACHE_INDEXES_MAX)
            .map(|index| cache.join(format!("index{index}")))
            .find(|folder| read_text(&folder.join("level")).is_some_and(|level| level.trim() == "3"));
        level_3.and_then(|folder| list_holding(&folder.join("shared_cpu_list"), number))
    };
    let package = |number: u32| {
        let path = devices.join(format!("cpu/cpu{number}/topology/physical_package_id"));
        read_text(&path).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0)
    };
    let keys: Vec<Option<u32>> = numbers.iter().map(|&number| read(number)).collect();
    let unknown = keys.iter().filter(|key| key.is_none()).count();
    if unknown > 0 {
        notices.push(format!("the L3 cache of {unknown} CPUs is not known; those of one package count as sharing one"));
    }
    let keyed = keys.into_iter().zip(numbers);
    keyed.map(|(key, &number)| key.map_or_else(|| (false, package(number)), |first| (true, first))).collect()
}

fn numa_nodes(devices: &Path) -> BTreeMap<u32, u32> {
    let online = read_text(&devices.join("node/online")).and_then(|text| CpuList::from_kernel_file(&text));
    let mut nodes = BTreeMap::new();
    for &node in online.unwrap_or_default().numbers() {
        let text = read_text(&devices.join(format!("node/node{node}/cpulist")));
        let cpus = text.and_then(|text| CpuList::from_kernel_file(&text)).unwrap_or_default();
        nodes.extend(cpus.numbers().iter().map(|&cpu| (cpu, node)));
    }
    nodes
}

/// The lowest number of the file's list, if it is valid and contains `number`, as it must.
fn list_holding(path: &Path, number: u32) -> Option<u32> {
    let list = CpuList::from_kernel_file(&read_text(path)?)?;
    if list.contains(number) { list.numbers().first().copied() } else { None }
}

/// Numbers keys from 0 in the order of first appearance.
fn dense<Key: Ord + Copy>(keys: &[Key]) -> Vec<u32> {
    let mut indexes = BTreeMap::new();
    keys.iter()
        .map(|&key| {
            let next = indexes.len() as u32;
            *indexes.entry(key).or_insert(next)
        })
        .collect()
}

/// The text of a small file; `None` if it cannot be read, is too long or is not text.
pub(super) fn read_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let read = File::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= FILE_BYTES_MAX).then_some(text)
}
