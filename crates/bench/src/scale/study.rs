//! Searches for the best numbers of threads for a number of CPUs. Then changes the assumed demands, and
//! measures how far the automatic placement is from the best one.

use junctor_gateway::route::ReadRule;
use junctor_node::placement::Module;

use super::demand::{Change, Demands};
use super::layout::{Candidate, Layout};
use super::node::{KINDS, Node, Phase, RunOptions, RunReport};
use super::request::Workload;
use crate::Outcome;

/// Clients per CPU: enough to keep the busiest thread busy all the time.
const CLIENTS_PER_CPU: usize = 16;
/// Tables per ldm thread: enough that the partition counts of two ldm threads differ by at most a tenth.
const TABLES_PER_LDM: usize = 5;
/// Interval between two samples of the loads. It is shorter than in a node, so that the controllers converge
/// within the short simulated time.
const SAMPLE_INTERVAL_NS: u64 = 200_000;
const WARM_UP_NS: u64 = 1_500_000;
const TIME_MAX_NS: u64 = 400_000_000;
/// Maximum number of rounds of the search from one start.
const ROUNDS_MAX: usize = 10;
/// Minimum improvement that moves the search to a neighbour. Smaller ones are noise.
const GAIN_MIN: f64 = 1.004;
/// Number of candidates that are tried with changed demands.
const FINALISTS: usize = 5;

/// A candidate with its simulated throughput for each workload.
#[derive(Clone)]
pub struct ScoredCandidate {
    /// Numbers of threads.
    pub candidate: Candidate,
    /// Operations per second of each workload.
    pub per_s: Vec<f64>,
}

impl ScoredCandidate {
    /// The geometric mean of the throughputs. It gives equal ratios the same weight in each workload.
    pub fn score(&self) -> f64 {
        let logarithms: f64 = self.per_s.iter().map(|per_s| per_s.max(1e-9).ln()).sum();
        (logarithms / self.per_s.len() as f64).exp()
    }
}

/// Name of a placement, the workload, and the mean utilisation of the threads of each role.
pub type RoleRun = (String, Workload, Vec<(String, f64)>);

/// Results for a number of CPUs.
pub struct Study {
    /// Number of CPUs.
    pub cpus: u32,
    /// The named candidates, the automatic placement first.
    pub named: Vec<ScoredCandidate>,
    /// The best pipeline found by moving threads between modules.
    pub best: ScoredCandidate,
    /// For each change of the demands: the automatic placement's score relative to the best pipeline's score,
    /// and that pipeline.
    pub sensitivity: Vec<(Change, f64, String)>,
    /// Utilisation of each role, in the automatic placement and in the best pipeline, for each workload.
    pub roles: Vec<RoleRun>,
    /// With one client per CPU: name of a placement, the workload, and the 50th and 99th percentile of the
    /// latencies in microseconds.
    pub latencies: Vec<(String, Workload, [f64; 2])>,
}

/// Searches and compares placements for a number of CPUs.
///
/// # Errors
/// The node's placement code refuses a candidate.
pub fn study(cpus: u32, quick: bool) -> Outcome<Study> {
    let demands = Demands::measured();
    let mut seen: Vec<ScoredCandidate> = Vec::new();
    let named = named(cpus);
    let mut judged_named = Vec::new();
    for candidate in &named {
        // Two names may denote the same numbers of threads.
        let judged = judge_new(&mut seen, candidate, cpus, &demands)?;
        judged_named.push(ScoredCandidate { candidate: candidate.clone(), ..judged });
    }
    // Search from both forms: sessions on their own threads, and sessions in recv threads.
    let apart = |candidate: &&Candidate| candidate.name == "sql and tc apart";
    let starts = [Some(&named[0]), named.iter().find(apart)];
    for start in starts.into_iter().flatten().filter(|candidate| is_pipeline(candidate)) {
        climb(&mut seen, start, cpus, &demands, if quick { 2 } else { ROUNDS_MAX })?;
    }
    let mut finalists: Vec<ScoredCandidate> =
        seen.iter().filter(|judged| same_family(&judged.candidate, &named[0])).cloned().collect();
    finalists.sort_by(|one, other| other.score().total_cmp(&one.score()));
    finalists.truncate(FINALISTS);
    let mut best = finalists.first().cloned().unwrap_or_else(|| seen[0].clone());
    best.candidate.name = "best found".into();
    let ours = seen[0].clone();
    if !finalists.iter().any(|judged| judged.candidate.counts == ours.candidate.counts) {
        finalists.push(ours.clone());
    }
    let changes = if quick { vec![Change::NONE] } else { Change::all() };
    let mut sensitivity = Vec::new();
    for change in changes {
        let changed = demands.changed(change);
        let mut judged = Vec::new();
        for finalist in &finalists {
            judged.push(judge(&finalist.candidate, cpus, &changed)?);
        }
        let of_ours = judged.iter().find(|judged| judged.candidate.counts == ours.candidate.counts);
        let top = judged.iter().max_by(|one, other| one.score().total_cmp(&other.score()));
        if let (Some(of_ours), Some(top)) = (of_ours, top) {
            sensitivity.push((change, of_ours.score() / top.score(), top.candidate.describe()));
        }
    }
    let mut roles = Vec::new();
    for (name, candidate) in [("automatic", &ours.candidate), ("best found", &best.candidate)] {
        for workload in Workload::ALL {
            let (layout, report) = simulate(candidate, cpus, &demands, workload, CLIENTS_PER_CPU)?;
            roles.push((name.to_string(), workload, by_role(&layout, &report)));
        }
    }
    let mut latencies = Vec::new();
    for judged in judged_named.iter().chain([&best]) {
        for workload in [Workload::Point, Workload::ReadWrite] {
            let report = simulate(&judged.candidate, cpus, &demands, workload, 1)?.1;
            let of = |per_mille| report.latencies.percentile_us(per_mille);
            latencies.push((judged.candidate.name.clone(), workload, [of(500), of(990)]));
        }
    }
    Ok(Study { cpus, named: judged_named, best, sensitivity, roles, latencies })
}

/// The automatic placement, and those that other systems choose for this number of CPUs.
fn named(cpus: u32) -> Vec<Candidate> {
    let mut named = vec![Candidate::automatic(cpus)];
    if cpus >= 8 {
        // RonDB's data nodes and SQL nodes are separate processes, and its newest table divides only the CPUs
        // of a data node.
        named.push(rondb("RonDB's for half, sql on the other half", cpus / 2, cpus - cpus / 2));
        named.push(rondb("RonDB's for all, sql in recv", cpus, 0));
    }
    if cpus >= 8 {
        named.push(sessions_apart(cpus));
        let reading = Candidate { name: "automatic, if recv could read".into(), recv_reads: true, ..named[0].clone() };
        named.push(reading);
    }
    named.push(Candidate::of_counts("everything in recv threads", |module| match module {
        Module::Recv => cpus.min(80),
        _ => 0,
    }));
    named
}

/// Sessions and coordination on threads of their own, in the proportions that the automatic table has for
/// very many CPUs.
fn sessions_apart(cpus: u32) -> Candidate {
    let coordination = u32::from(cpus >= 10) + u32::from(cpus >= 18);
    let rest = cpus - coordination;
    let of = |per_cent: u32| (rest * per_cent / 100).max(1);
    let (ldm, sql, tc) = (of(34), of(16), of(6));
    let send = rest * 3 / 100;
    Candidate::of_counts("sql and tc apart", |module| match module {
        Module::Main => u32::from(coordination > 0),
        Module::Rep => u32::from(coordination > 1),
        Module::Ldm => ldm,
        Module::Sql => sql,
        Module::Tc => tc,
        Module::Send => send,
        Module::Recv => (rest - ldm - sql - tc - send).min(80),
        _ => 0,
    })
}

/// The fractions of RonDB's newest table for a data node: half ldm, a quarter tc, a twelfth send, and the
/// rest recv. `sql` is the number of additional sql threads.
fn rondb(name: &str, data_cpus: u32, sql: u32) -> Candidate {
    let main = u32::from(data_cpus >= 10);
    let rep = u32::from(data_cpus >= 18);
    let ldm = (data_cpus / 2).max(1);
    let tc = (data_cpus / 4).max(1);
    let send = (data_cpus / 12).max(u32::from(data_cpus >= 8));
    let recv = data_cpus.saturating_sub(main + rep + ldm + tc + send).max(1);
    Candidate::of_counts(name, |module| match module {
        Module::Main => main,
        Module::Rep => rep,
        Module::Ldm => ldm,
        Module::Tc => tc,
        Module::Send => send,
        Module::Recv => recv,
        Module::Sql => sql,
        _ => 0,
    })
}

fn is_pipeline(candidate: &Candidate) -> bool {
    candidate.count(Module::Ldm) > 0 && !candidate.recv_reads
}

fn same_family(one: &Candidate, other: &Candidate) -> bool {
    is_pipeline(one) == is_pipeline(other)
}

/// Moves threads between modules as long as the score grows.
fn climb(
    seen: &mut Vec<ScoredCandidate>,
    start: &Candidate,
    cpus: u32,
    demands: &Demands,
    rounds: usize,
) -> Outcome<()> {
    let mut current = judge_new(seen, start, cpus, demands)?;
    let mut step = (cpus / 12).max(1);
    for _ in 0..rounds {
        let mut best: Option<ScoredCandidate> = None;
        for neighbour in neighbours(&current.candidate, step) {
            let judged = judge_new(seen, &neighbour, cpus, demands)?;
            if best.as_ref().is_none_or(|best| judged.score() > best.score()) {
                best = Some(judged);
            }
        }
        match best {
            Some(best) if best.score() > current.score() * GAIN_MIN => current = best,
            _ if step > 1 => step /= 2,
            _ => break,
        }
    }
    Ok(())
}

/// All candidates that result from moving `step` threads from one module to another.
fn neighbours(candidate: &Candidate, step: u32) -> Vec<Candidate> {
    const MOVED: [Module; 5] = [Module::Recv, Module::Sql, Module::Tc, Module::Ldm, Module::Send];
    let pairs = MOVED.into_iter().flat_map(|from| MOVED.into_iter().map(move |to| (from, to)));
    let moves = pairs.filter(|(from, to)| from != to).filter(|(from, to)| {
        // Without their own threads, sql and tc run in recv threads, and each thread writes its own output.
        let least = u32::from(matches!(from, Module::Recv | Module::Ldm));
        // The grammar of ThreadConfig allows at most 80 threads for recv and for send.
        let count_max = if matches!(to, Module::Recv | Module::Send) { 80 } else { u32::MAX };
        candidate.count(*from) >= least + step && candidate.count(*to) + step <= count_max
    });
    moves
        .map(|(from, to)| {
            let count = |module| match candidate.count(module) {
                count if module == from => count - step,
                count if module == to => count + step,
                count => count,
            };
            Candidate::of_counts("searched", count)
        })
        .collect()
}

/// Simulates a candidate, unless that was done before.
fn judge_new(
    seen: &mut Vec<ScoredCandidate>,
    candidate: &Candidate,
    cpus: u32,
    demands: &Demands,
) -> Outcome<ScoredCandidate> {
    let is_same = |judged: &&ScoredCandidate| {
        (&judged.candidate.counts, judged.candidate.recv_reads) == (&candidate.counts, candidate.recv_reads)
    };
    if let Some(judged) = seen.iter().find(is_same) {
        return Ok(judged.clone());
    }
    let judged = judge(candidate, cpus, demands)?;
    seen.push(judged.clone());
    Ok(judged)
}

fn judge(candidate: &Candidate, cpus: u32, demands: &Demands) -> Outcome<ScoredCandidate> {
    let mut per_s = Vec::new();
    for workload in Workload::ALL {
        per_s.push(simulate(candidate, cpus, demands, workload, CLIENTS_PER_CPU)?.1.per_s);
    }
    Ok(ScoredCandidate { candidate: candidate.clone(), per_s })
}

/// Simulates the adaptive rule with `clients_per_cpu` clients per CPU.
///
/// # Errors
/// The node's placement code refuses the candidate.
pub fn simulate(
    candidate: &Candidate,
    cpus: u32,
    demands: &Demands,
    workload: Workload,
    clients_per_cpu: usize,
) -> Outcome<(Layout, RunReport)> {
    let layout = Layout::new(candidate, cpus)?;
    let clients = clients_per_cpu * cpus as usize;
    let tables = TABLES_PER_LDM * layout.ldm.len();
    let options = RunOptions { rule: ReadRule::Adaptive, sample_interval_ns: SAMPLE_INTERVAL_NS, seed: 1 };
    let report = {
        let mut node = Node::new(&layout, demands, clients, tables, options);
        node.begin_phase(Phase::even(workload, demands, clients, tables));
        node.warm_up(WARM_UP_NS);
        let operations = match workload {
            Workload::ReadWrite => clients.max(400),
            _ => (4 * clients).max(4_000),
        };
        node.measure(operations as u64, TIME_MAX_NS)
    };
    Ok((layout, report))
}

/// Mean utilisation of the threads of each role.
pub fn by_role(layout: &Layout, report: &RunReport) -> Vec<(String, f64)> {
    let mut roles: Vec<(String, f64, usize)> = Vec::new();
    for (role, busy) in layout.roles.iter().zip(&report.busy) {
        match roles.iter_mut().find(|(name, ..)| name == role) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + busy, *count + 1),
            None => roles.push((role.clone(), *busy, 1)),
        }
    }
    roles.into_iter().map(|(role, sum, count)| (role, sum / count as f64)).collect()
}

/// Microseconds per operation of each kind of work, hops last.
pub fn by_kind(report: &RunReport) -> Vec<(&'static str, f64)> {
    let hops = report.work_ns[usize::from(super::engine::HOP_KIND)];
    let kinds = KINDS.iter().zip(report.work_ns).map(|(name, work_ns)| (*name, work_ns / 1000.0));
    kinds.chain([("hops", hops / 1000.0)]).collect()
}
