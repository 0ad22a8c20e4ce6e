//! The setups: placements of threads with a routing rule for reads.

use std::thread;

/// Role of a setup in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A fixed placement with a fixed rule. Adaptive is compared with the best of these.
    Static,
    /// The automatic placement with adaptive routing. It is the subject of the comparison.
    Adaptive,
    /// The automatic placement with a fixed rule, to show that no single rule suffices.
    Control,
}

/// A placement of threads, with a routing rule for reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name in reports.
    pub name: &'static str,
    /// Role in the comparison.
    pub role: Role,
    /// `ThreadConfig`; `None` for the automatic placement.
    pub thread_config: Option<String>,
    /// Value of `read_routing`.
    pub routing: &'static str,
    /// Description for people.
    pub meaning: &'static str,
}

/// Name of the adaptive setup.
pub const ADAPTIVE: &str = "adaptive";

/// All setups for a number of CPUs. A static setup has one busy thread per CPU, or more if its definition
/// needs more threads.
pub fn setups(cpus: usize) -> Vec<Setup> {
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
        fixed("single-thread", "local", SINGLE.into(), "everything in one thread"),
        fixed("all-separate", "weights", all_separate(cpus), "every module in threads of its own; RonDB's weights"),
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

/// Number of CPUs that this process may use, within its cgroup and affinity.
pub fn cpu_count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

const SINGLE: &str = "recv={count=1},ldm={count=0},main={count=0},io={count=0}";

/// Divides the CPUs in fixed proportions: of every 4 threads, 2 are recv, 1 is ldm and 1 is query. With fewer
/// than 4 CPUs, there is no query thread, and the ldm thread does all reads.
fn ldm(cpus: usize) -> String {
    let (recv, ldm, query) = if cpus < 4 { (1, 1, 0) } else { (cpus / 2, (cpus / 4).max(1), (cpus / 4).max(1)) };
    format!("recv={{count={recv}}},ldm={{count={ldm}}},query={{count={query}}},tc={{count=0}},main={{count=0}}")
}

fn receive(cpus: usize) -> String {
    format!("recv={{count={}}},ldm={{count=0}},main={{count=0}}", cpus.max(2))
}

fn all_separate(cpus: usize) -> String {
    // main, rep, send, io, and at least one thread of each busy module. sql gets a second thread from 8 CPUs
    // on, and the other busy modules from 16 CPUs on.
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
    fn names_are_distinct_and_one_is_adaptive() {
        let all = setups(2);
        for (place, setup) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other.name != setup.name));
            assert_eq!(setup.role == Role::Static, setup.thread_config.is_some());
        }
        assert_eq!(all.iter().filter(|setup| setup.role == Role::Adaptive).count(), 1);
    }

    #[test]
    fn the_ldm_setup_of_four_cpus_is_the_published_one() {
        assert_eq!(ldm(4), "recv={count=2},ldm={count=1},query={count=1},tc={count=0},main={count=0}");
        assert_eq!(ldm(2), "recv={count=1},ldm={count=1},query={count=0},tc={count=0},main={count=0}");
    }
}
