//! The automatic placement: a number of threads of each module for a number of CPUs, and CPUs for the
//! threads.
//!
//! | CPUs | main | rep | recv | ldm | sql | tc | send |
//! |---|---|---|---|---|---|---|---|
//! | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |
//! | 2-3 | 0 | 0 | 2 | 0 | 0 | 0 | 0 |
//! | 4-5 | 0 | 0 | 4 | 0 | 0 | 0 | 0 |
//! | 6-7 | 0 | 0 | 6 | 0 | 0 | 0 | 0 |
//! | 8 | 0 | 0 | 5 | 3 | 0 | 0 | 0 |
//! | 12 | 1 | 0 | 6 | 5 | 0 | 0 | 0 |
//! | 16 | 1 | 0 | 9 | 6 | 0 | 0 | 0 |
//! | 32 | 1 | 1 | 17 | 13 | 0 | 0 | 0 |
//! | 64 | 1 | 1 | 35 | 27 | 0 | 0 | 0 |
//! | 128 | 1 | 1 | 72 | 54 | 0 | 0 | 0 |
//! | 255 and more | 1 | 1 | 80 | 101 | 47 | 17 | 8 |
//!
//! The table follows RonDB's newest one. Below 8 CPUs, receive threads run all modules. From 8 CPUs on there
//! are pipelines: separate threads for recv and ldm. Query runs on ldm threads, so every ldm thread also
//! reads for others. `main` has a thread from 10 CPUs on, and `rep` from 18.
//!
//! The shares of recv and ldm are ours. A recv thread reads the sockets of clients, whose system calls are
//! most of the cost of a short statement. Sessions (sql) and transaction coordination (tc) run on the same
//! thread, so no signal crosses threads between them, and their shares need not be guessed.
//! `docs/decisions/0008-automatic-table.md` has the reason, `docs/scale.md` the figures.
//!
//! Each 8 CPUs have a work thread in addition, for long queries, up to 8 of them. It is bound to no CPU, and
//! has a lower priority than all others. From 240 CPUs on there is none, because a node has at most 256
//! threads.
//!
//! The 256 threads are those of 255 CPUs and `io`. More CPUs are left to the operating system and other
//! nodes: each pair of threads has rings, whose memory grows with the square of the number of threads.
//!
//! Below 8 CPUs, an odd CPU is left to the io thread, the operating system's network work and other programs.

use super::cpu_list::CpuList;
use super::thread_config::{EntryBinding, ThreadConfig, ThreadCounts, ThreadEntry, ThreadKind};
use super::topology::Topology;
use junctor_kernel::KernelLimits;
use junctor_signals::Module;

/// Number of CPUs from which ldm has its own threads. With fewer CPUs, all modules run in recv threads.
const PIPELINE_CPUS_MIN: u32 = 8;

/// Number of CPUs from which `main` (with `rep`) has a thread.
const MAIN_CPUS_MIN: u32 = 10;

/// Number of CPUs from which `rep` has its own thread.
const REP_CPUS_MIN: u32 = 18;

/// Number of CPUs from which sql, tc and send have their own threads. With more CPUs, recv would need more
/// than its maximum of 80 threads to run their work too.
const APART_CPUS_MIN: u32 = 142;

/// Number of CPUs for each work thread.
const CPUS_OF_WORK: u32 = 8;

/// Maximum number of work threads. Each has an sql block, to which schema changes speak.
const WORK_THREADS_MAX: u32 = 8;

/// Number of CPUs from which there are no work threads, as their number and the others' might exceed
/// `KernelLimits::THREADS_MAX`.
const WORK_CPUS_MAX: u32 = 240;

/// Number of CPUs that a node uses at most: with `io`, each of its threads has one.
const CPUS_USED_MAX: u32 = KernelLimits::THREADS_MAX as u32 - 1;

/// The threads of the smallest pipeline, on [`PIPELINE_CPUS_MIN`] CPUs.
const PIPELINE_LEAST: [(Module, u32); 2] = [(Module::Recv, 5), (Module::Ldm, 3)];

/// The share of each module in per cent of the pipeline's CPUs; the first wins a tie.
const SHARES: [(Module, u32); 2] = [(Module::Recv, 57), (Module::Ldm, 43)];

/// The shares from [`APART_CPUS_MIN`] CPUs on.
const SHARES_APART: [(Module, u32); 5] =
    [(Module::Recv, 41), (Module::Ldm, 34), (Module::Sql, 16), (Module::Tc, 6), (Module::Send, 3)];

/// The automatic choice, as a `ThreadConfig` that a person could have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutomaticPlacement {
    /// Number of threads of each module. `io`, always 1, and `work` are in addition to the CPUs.
    pub counts: ThreadCounts,
    /// The configuration, with `cpubind` when threads are bound.
    pub config: ThreadConfig,
    /// The CPUs on which the choice is based, and the choice, as text for the user.
    pub reason: String,
}

impl AutomaticPlacement {
    /// Chooses for the CPUs of `topology`, at most `cpu_count_max` of them and not more than the whole CPUs
    /// of the cgroup's quota. Threads are bound only if `unpinned` is false, the node has all the CPUs to
    /// itself (no smaller maximum or quota) and there are pipelines: a small machine also runs other
    /// programs, which would leave a bound thread waiting while another CPU is idle.
    pub fn choose(topology: &Topology, cpu_count_max: Option<u32>, unpinned: bool) -> Self {
        let available = topology.cpus.len() as u32;
        let quota = topology.cpu_quota_milli.map_or(u32::MAX, |milli| u32::try_from(milli / 1_000).unwrap_or(u32::MAX));
        let used = available.min(quota).min(cpu_count_max.unwrap_or(u32::MAX)).max(1);
        let counts = Self::counts_for(used);
        let (bound, why) = match () {
            () if unpinned => (false, "not bound: CPU binding is off"),
            () if used < available => (false, "not bound: the node shares the CPUs"),
            () if used < PIPELINE_CPUS_MIN => (false, "not bound: a small machine runs other programs too"),
            () => (true, "bound, one thread to a CPU, io and work free"),
        };
        let mut cpus: [Vec<u32>; Module::ALL.len()] = Default::default();
        if bound {
            assign_cpus(topology, &counts, &mut cpus);
        }
        let config = thread_config(&counts, cpus);
        let reason = format!("automatic: {} -> {counts}; {why}", topology.describe(used));
        Self { counts, config, reason }
    }

    /// The number of threads of each module for `cpu_count` CPUs, a number that is first limited to the range
    /// from 1 to [`CPUS_USED_MAX`]. There are never more threads than CPUs, not counting `io` and
    /// `work`. More CPUs never mean fewer threads of a module, with three exceptions: the step from receive
    /// threads that do everything to pipelines, the step to sessions on threads of their own, and the end of
    /// work threads.
    pub fn counts_for(cpu_count: u32) -> ThreadCounts {
        let cpu_count = cpu_count.clamp(1, CPUS_USED_MAX);
        let mut counts = ThreadCounts::default();
        counts.set(Module::Io, 1);
        if cpu_count < PIPELINE_CPUS_MIN {
            counts.set(Module::Recv, if cpu_count == 1 { 1 } else { cpu_count & !1 });
            return counts;
        }
        let coordination = u32::from(cpu_count >= MAIN_CPUS_MIN) + u32::from(cpu_count >= REP_CPUS_MIN);
        let has_separate_threads = cpu_count >= APART_CPUS_MIN;
        let shares = if has_separate_threads { &SHARES_APART[..] } else { &SHARES[..] };
        // If sessions have threads of their own, every module starts with one thread.
        let least: Vec<(Module, u32)> = if has_separate_threads {
            shares.iter().map(|(module, _)| (*module, 1)).collect()
        } else {
            PIPELINE_LEAST.to_vec()
        };
        for (module, least) in &least {
            counts.set(*module, *least);
        }
        let given: u32 = least.iter().map(|(_, least)| least).sum();
        for _ in 0..cpu_count - coordination - given {
            let Some(module) = next_module(&counts, shares) else { break };
            counts.set(module, counts.get(module) + 1);
        }
        if cpu_count < WORK_CPUS_MAX {
            counts.set(Module::Work, (cpu_count / CPUS_OF_WORK).min(WORK_THREADS_MAX));
        }
        counts.set(Module::Main, u32::from(cpu_count >= MAIN_CPUS_MIN));
        counts.set(Module::Rep, u32::from(cpu_count >= REP_CPUS_MIN));
        counts
    }
}

/// The module that gets the next CPU: the one whose share is largest for each thread that it would then have.
/// Handing out CPUs one by one like this (D'Hondt's method) never takes a thread away when a CPU is added.
fn next_module(counts: &ThreadCounts, shares: &[(Module, u32)]) -> Option<Module> {
    let mut best: Option<(Module, u32)> = None;
    for &(module, share) in shares {
        if counts.get(module) >= ThreadKind::Module(module).count_max() {
            continue;
        }
        // Compares share / (count + 1) by cross-multiplication, without fractions.
        let better = best.is_none_or(|(leader, leader_share)| {
            share * (counts.get(leader) + 1) > leader_share * (counts.get(module) + 1)
        });
        if better {
            best = Some((module, share));
        }
    }
    best.map(|(module, _)| module)
}

/// Gives each thread a CPU: pairs of threads take the siblings of a core, and each pair goes to the L3 group
/// with most CPUs left, so that every group gets its part of every module.
fn assign_cpus(topology: &Topology, counts: &ThreadCounts, cpus: &mut [Vec<u32>; Module::ALL.len()]) {
    let mut by_core: Vec<_> = topology.cpus.iter().collect();
    by_core.sort_by_key(|cpu| (cpu.core, cpu.number));
    let mut free: Vec<Vec<u32>> = vec![Vec::new(); topology.l3_group_count() as usize];
    for cpu in by_core.into_iter().rev() {
        free[cpu.l3_group as usize].push(cpu.number);
    }
    for pair in core_pairs(counts) {
        let group = most_free(&free);
        for module in pair {
            let group = if free[group].is_empty() { most_free(&free) } else { group };
            cpus[module.index()].extend(free[group].pop());
        }
    }
}

fn most_free(free: &[Vec<u32>]) -> usize {
    (0..free.len()).rev().max_by_key(|&group| free[group].len()).unwrap_or(0)
}

/// The threads in pairs that suit the siblings of a core. Two ldm threads gain only 15 per cent from sharing
/// a core, while tc and send gain 40, SQL 60 and recv 70, so an ldm thread is paired with one of another kind
/// while there is one, first with tc.
fn core_pairs(counts: &ThreadCounts) -> Vec<Vec<Module>> {
    let mut left = *counts;
    let mut pairs = Vec::new();
    for (first, second) in [(Module::Ldm, Module::Tc), (Module::Recv, Module::Sql)] {
        let pair_count = left.get(first).min(left.get(second));
        pairs.extend((0..pair_count).map(|_| vec![first, second]));
        left.set(first, left.get(first) - pair_count);
        left.set(second, left.get(second) - pair_count);
    }
    let repeat = |module: Module| (0..left.get(module)).map(move |_| module);
    let mut others = [Module::Tc, Module::Sql, Module::Recv, Module::Send, Module::Main, Module::Rep]
        .into_iter()
        .flat_map(repeat)
        .peekable();
    let mut ldm_left = left.get(Module::Ldm);
    let mut rest = Vec::new();
    while others.peek().is_some() || ldm_left > 0 {
        if ldm_left > 0 {
            rest.push(Module::Ldm);
            ldm_left -= 1;
        }
        rest.extend(others.next());
    }
    pairs.extend(rest.chunks(2).map(<[Module]>::to_vec));
    pairs
}

/// The configuration with these counts. It names the modules that have threads, and those whose default count
/// differs.
fn thread_config(counts: &ThreadCounts, mut cpus: [Vec<u32>; Module::ALL.len()]) -> ThreadConfig {
    let default_is_one = |module| matches!(module, Module::Main | Module::Rep | Module::Ldm);
    let named = Module::ALL.into_iter().filter(|&module| counts.get(module) > 0 || default_is_one(module));
    let entries = named.map(|module| {
        let list = std::mem::take(&mut cpus[module.index()]);
        let binding = (!list.is_empty()).then(|| EntryBinding::Bind(CpuList::new(list)));
        let count = Some(counts.get(module));
        ThreadEntry { count, binding, ..ThreadEntry::bare(ThreadKind::Module(module)) }
    });
    ThreadConfig::from_entries(entries.collect())
}
