//! Limits of the machine: CPUs, memory, open files. Read once at start, outside every block.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that a node needs in addition to its connections: listeners, wake-ups, data.
const FILES_BESIDE_CONNECTIONS: u64 = 128;

/// The CPUs that this process may run on, ascending.
pub fn allowed_cpus() -> Vec<u32> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect(),
        Err(_) => vec![0],
    }
}

/// Raises the limit of open files for `max_connections`. Returns the number of connections that the limit
/// allows, and adds a notice if that is lower.
pub fn allow_files(max_connections: u32, notices: &mut Vec<String>) -> u32 {
    let wanted = u64::from(max_connections) + FILES_BESIDE_CONNECTIONS;
    let mut limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return max_connections;
    }
    limit.current = Some(wanted.min(limit.maximum.unwrap_or(u64::MAX)));
    let reached = match setrlimit(Resource::Nofile, limit) {
        Ok(()) => limit.current.unwrap_or(u64::MAX),
        Err(_) => current,
    };
    if reached >= wanted {
        return max_connections;
    }
    let allowed = reached.saturating_sub(FILES_BESIDE_CONNECTIONS).clamp(1, u64::from(max_connections)) as u32;
    notices.push(format!(
        "max_connections lowered from {max_connections} to {allowed}: the limit of open files is {reached}"
    ));
    allowed
}

/// Memory in bytes that this process may use: the limit of its cgroup, or all memory of the machine.
pub fn memory_allowed_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").as_deref().and_then(memory_total_bytes).unwrap_or(1 << 30);
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let group = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_string();
    let limits = [
        read(&format!("/sys/fs/cgroup{group}/memory.max")),
        read("/sys/fs/cgroup/memory.max"),
        read("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ];
    limits.iter().flatten().filter_map(|text| text.trim().parse::<u64>().ok()).fold(machine, u64::min)
}

fn memory_total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_memory_is_found_in_meminfo() {
        assert_eq!(memory_total_bytes("MemTotal:       1024 kB\nMemFree: 1 kB\n"), Some(1 << 20));
        assert_eq!(memory_total_bytes("nothing"), None);
    }
}
