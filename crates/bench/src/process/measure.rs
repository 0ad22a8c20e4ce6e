//! CPU time and memory of a process, from `/proc`.

use std::fs;
use std::time::Duration;

use crate::Outcome;
use crate::failure::Explain;

/// Index of the stolen time in the first line of `/proc/stat`, split into words.
const STOLEN_INDEX: usize = 8;

/// CPU time of a process and all its descendants in user and kernel mode, including threads that have ended.
///
/// # Errors
/// The process has ended.
pub fn cpu_time(process_id: u32) -> Outcome<Duration> {
    Ok(split(process_id, read_stat(process_id)?.ticks)?.0)
}

/// CPU time of a process without its descendants, in user mode and in kernel mode. Cheaper than [`cpu_time`].
///
/// # Errors
/// The process has ended.
pub fn cpu_time_by_mode(process_id: u32) -> Outcome<(Duration, Duration)> {
    let path = format!("/proc/{process_id}/stat");
    let text = fs::read_to_string(&path).explain(&path)?;
    parse_times(&text).ok_or("not what the kernel prints").explain(&path)
}

/// CPU time of all processes except this one and its descendants.
///
/// # Errors
/// `/proc` cannot be read.
pub fn cpu_time_of_others(process_id: u32) -> Outcome<Duration> {
    Ok(split(process_id, 0)?.1)
}

/// Splits the CPU time of the machine into that of a process with its descendants, and that of all other
/// processes. `ticks` is the process's own time.
fn split(process_id: u32, mut ticks: u64) -> Outcome<(Duration, Duration)> {
    let mut all: Vec<Stat> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|id| read_stat(id).ok())
        .filter(|stat| stat.process_id != process_id)
        .collect();
    let mut family = vec![process_id];
    while let Some(parent) = family.pop() {
        for child in all.extract_if(.., |stat| stat.parent == parent) {
            ticks += child.ticks;
            family.push(child.process_id);
        }
    }
    let others = all.iter().map(|stat| stat.ticks).sum();
    Ok((of_ticks(ticks), of_ticks(others)))
}

fn of_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU time since the start of the machine that a hypervisor gave to other machines although this one had
/// work. Zero if the system does not report it.
///
/// # Errors
/// `/proc` cannot be read.
pub fn stolen_time() -> Outcome<Duration> {
    let text = fs::read_to_string("/proc/stat").explain("/proc/stat")?;
    let ticks =
        text.lines().next().and_then(|line| line.split_ascii_whitespace().nth(STOLEN_INDEX)?.parse::<u64>().ok());
    Ok(of_ticks(ticks.unwrap_or(0)))
}

/// Resident memory of a process in bytes.
///
/// # Errors
/// The process has ended.
pub fn resident_bytes(process_id: u32) -> Outcome<u64> {
    let path = format!("/proc/{process_id}/status");
    let text = fs::read_to_string(&path).explain(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map(|number| number * 1024).ok_or("no VmRSS").explain(&path)
}

/// The CPU time of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Name of the thread.
    pub name: String,
    /// Time in user mode.
    pub user: Duration,
    /// Time in kernel mode.
    pub system: Duration,
    /// Number of voluntary context switches.
    pub sleeps: u64,
}

/// CPU time of each thread of a process, in the order of their ids.
///
/// # Errors
/// The process has ended.
pub fn thread_times(process_id: u32) -> Outcome<Vec<ThreadTime>> {
    let folder = format!("/proc/{process_id}/task");
    let mut threads: Vec<u32> = fs::read_dir(&folder)
        .explain(&folder)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads.iter().map(|thread| read_thread(&format!("{folder}/{thread}"))).collect()
}

fn read_thread(folder: &str) -> Outcome<ThreadTime> {
    let read = |file: &str| fs::read_to_string(format!("{folder}/{file}")).explain(folder);
    let (stat, status) = (read("stat")?, read("status")?);
    parse_thread(&stat, &status).ok_or("not what the kernel prints").explain(folder)
}

fn parse_thread(stat: &str, status: &str) -> Option<ThreadTime> {
    let (before, _) = stat.rsplit_once(')')?;
    let (user, system) = parse_times(stat)?;
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some(ThreadTime { name: before.split_once('(')?.1.to_string(), user, system, sleeps: sleeps.trim().parse().ok()? })
}

/// Times in user and kernel mode of a process or a thread.
fn parse_times(stat: &str) -> Option<(Duration, Duration)> {
    // The name in parentheses may contain spaces and parentheses, so count the fields from the last
    // parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || Some(of_ticks(fields.next()?.parse().ok()?));
    Some((time()?, time()?))
}

struct Stat {
    process_id: u32,
    parent: u32,
    /// User and system time, including children that were waited for.
    ticks: u64,
}

fn read_stat(process_id: u32) -> Outcome<Stat> {
    let path = format!("/proc/{process_id}/stat");
    let text = fs::read_to_string(&path).explain(&path)?;
    parse_stat(process_id, &text).ok_or("not what the kernel prints").explain(&path)
}

fn parse_stat(process_id: u32, text: &str) -> Option<Stat> {
    // The name in parentheses may contain spaces and parentheses, so count the fields from the last
    // parenthesis.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Stat { process_id, parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_name_with_parentheses() {
        let text = "7 (a) b (c)) S 5 7 7 0 -1 0 1 2 3 4 100 20 3 4 20 0 1 0 99";
        let stat = parse_stat(7, text).expect("good text");
        assert_eq!((stat.parent, stat.ticks), (5, 127));
    }

    #[test]
    fn times_of_a_thread_are_read_with_its_name() {
        let stat = "7 (ldm(0)) S 5 7 7 0 -1 0 1 2 3 4 100 20 3 4 20 0 1 0 99";
        let thread = parse_thread(stat, "Name: x\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t1\n");
        let thread = thread.expect("good text");
        assert_eq!((thread.name.as_str(), thread.sleeps), ("ldm(0)", 42));
        assert_eq!(thread.user, thread.system * 5);
        assert!(!thread_times(std::process::id()).expect("alive").is_empty());
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        assert!(resident_bytes(std::process::id()).expect("alive") > 100_000);
        assert!(cpu_time(std::process::id()).is_ok());
        assert!(cpu_time_of_others(std::process::id()).is_ok());
        assert!(cpu_time(u32::MAX).is_err());
    }
}
