//! The setups that are compared: placements with a rule of where reads run.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity};

/// What a setup is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A fixed placement with a fixed rule; the best of these is what adaptive is judged by.
    Static,
    /// The automatic placement with adaptive routing.
    Adaptive,
    /// The automatic placement with a fixed rule.
    Control,
}

/// A way to run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What reports call it.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// Threads and what they carry; `None` is the automatic placement.
    pub thread_config: Option<String>,
    /// The value of `read_routing`.
    pub routing: &'static str,
    /// For people.
    pub meaning: &'static str,
}

/// The name of the setup that the others are compared with.
pub const ADAPTIVE: &str = "adaptive";

/// All setups for these CPUs. Static ones have as many busy threads as there are CPUs, at least those that the setup is
/// about; where they are no more than that, each is bound to one, as the automatic placement does.
pub fn setups(cpus: &[usize]) -> Vec<Setup> {
    let fixed = |name, routing, thread_config, meaning| Setup {
        name,
        role: Role::Static,
        thread_config: Some(thread_config),
        routing,
        meaning,
    };
    let automatic = |name, role, routing, meaning| Setup { name, role, thread_config: None, routing, meaning };
    vec![
        fixed(
            "ldm",
            "weights",
            ldm(cpus),
            "recv threads with tc and sql, ldm and query threads apart; RonDB's weights",
        ),
        fixed("receive", "local", receive(cpus), "each recv thread does all the work of its connections"),
        fixed("single-thread", "local", single(cpus), "everything in one thread"),
        fixed(
            "all-separate",
            "weights",
            all_separate(cpus.len()),
            "every module in threads of its own; RonDB's weights",
        ),
        automatic(
            ADAPTIVE,
            Role::Adaptive,
            "adaptive",
            "automatic placement, reads where their predicted cost is least",
        ),
        automatic("always-local", Role::Control, "local", "automatic placement, reads in the thread of their session"),
        automatic("always-owner", Role::Control, "owner", "automatic placement, reads in the ldm that owns the rows"),
        automatic("weights", Role::Control, "weights", "automatic placement, reads by RonDB's weights"),
    ]
}

/// How many CPUs this process may use, cgroup and affinity considered.
pub fn cpu_count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// So many of the CPUs that this process may run on.
pub fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(cpu_count()).collect()
}

fn single(cpus: &[usize]) -> String {
    format!("recv={},ldm={{count=0}},main={{count=0}},io={{count=0}}", bound(1, cpus))
}

/// The seeds' proportions: of 4 CPUs 2 recv, 1 ldm, 1 query. Below 4 CPUs ldm reads for others too.
fn ldm(cpus: &[usize]) -> String {
    let (recv, ldm) = if cpus.len() < 4 { (1, 1) } else { (cpus.len() / 2, cpus.len() / 4) };
    let query = if cpus.len() < 4 { 0 } else { ldm };
    let (of_recv, rest) = cpus.split_at_checked(recv).unwrap_or_default();
    let (of_ldm, rest) = rest.split_at_checked(ldm).unwrap_or_default();
    let of_query = rest.get(..query).unwrap_or_default();
    format!(
        "recv={},ldm={},query={},tc={{count=0}},main={{count=0}}",
        bound(recv, of_recv),
        bound(ldm, of_ldm),
        bound(query, of_query)
    )
}

fn receive(cpus: &[usize]) -> String {
    format!("recv={},ldm={{count=0}},main={{count=0}}", bound(cpus.len().max(2), cpus))
}

/// The parameters of so many threads, each on a CPU of its own if there are enough.
fn bound(count: usize, cpus: &[usize]) -> String {
    if count == 0 || cpus.len() < count {
        return format!("{{count={count}}}");
    }
    let cpus: Vec<String> = cpus[..count].iter().map(usize::to_string).collect();
    format!("{{count={count},cpubind={}}}", cpus.join(","))
}

fn all_separate(cpus: usize) -> String {
    // main, rep and one of each; from 16 CPUs on the busy modules share what there is.
    let each = (cpus / 8).max(1);
    let sql = (cpus / 4).max(1).min(each * 2);
    format!(
        "main={{count=1}},rep={{count=1}},recv={{count={each}}},sql={{count={sql}}},tc={{count={each}}},\
         ldm={{count={each}}},query={{count={each}}},send={{count=1}},io={{count=1}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_one_is_adaptive() {
        let all = setups(&[0, 1]);
        for (place, setup) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other.name != setup.name));
            assert_eq!(setup.role == Role::Static, setup.thread_config.is_some());
        }
        assert_eq!(all.iter().filter(|setup| setup.role == Role::Adaptive).count(), 1);
    }

    #[test]
    fn the_ldm_setup_of_four_cpus_is_the_published_one() {
        let four =
            "recv={count=2,cpubind=0,1},ldm={count=1,cpubind=2},query={count=1,cpubind=3},tc={count=0},main={count=0}";
        assert_eq!(ldm(&[0, 1, 2, 3]), four);
        let two = "recv={count=1,cpubind=4},ldm={count=1,cpubind=6},query={count=0},tc={count=0},main={count=0}";
        assert_eq!(ldm(&[4, 6]), two);
        assert_eq!(receive(&[3]), "recv={count=2},ldm={count=0},main={count=0}");
    }
}
