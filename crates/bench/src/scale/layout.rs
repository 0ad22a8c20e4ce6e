//! A placement as the node's own code makes it, and the roles of its threads.

use junctor_node::placement::{AutomaticPlacement, Module, PlacementPlan, ThreadConfig, ThreadPlan, Topology};

use crate::failure::Explain;
use crate::{Failure, Outcome};

/// A candidate for a placement: the number of threads of each module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name in tables.
    pub name: String,
    /// Number of threads per module. The node's placement code runs a module without threads on the threads
    /// of others.
    pub counts: Vec<(Module, u32)>,
    /// Whether recv threads also have query blocks. The node's placement code gives them query blocks only if
    /// they run all modules.
    pub recv_reads: bool,
}

/// The modules that can have their own threads.
pub const MODULES: [Module; 8] =
    [Module::Main, Module::Rep, Module::Recv, Module::Sql, Module::Tc, Module::Ldm, Module::Query, Module::Send];

impl Candidate {
    /// The placement that a node chooses automatically for this number of CPUs.
    pub fn automatic(cpus: u32) -> Candidate {
        let counts = AutomaticPlacement::counts_for(cpus);
        Candidate::of_counts("automatic", |module| counts.get(module))
    }

    /// Creates a candidate. `count` returns the number of threads of a module.
    pub fn of_counts(name: &str, count: impl Fn(Module) -> u32) -> Candidate {
        let counts = MODULES.into_iter().map(|module| (module, count(module))).collect();
        Candidate { name: name.into(), counts, recv_reads: false }
    }

    /// Number of threads of a module.
    pub fn count(&self, module: Module) -> u32 {
        self.counts.iter().find(|(named, _)| *named == module).map_or(0, |(_, count)| *count)
    }

    /// The counts in short form: `recv 4, sql 5`.
    pub fn describe(&self) -> String {
        let named = self.counts.iter().filter(|(_, count)| *count > 0);
        named.map(|(module, count)| format!("{module} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// The candidate as a `ThreadConfig`.
    pub fn thread_config(&self) -> String {
        let entries = self.counts.iter().map(|(module, count)| format!("{module}={{count={count}}}"));
        entries.chain(["io={count=1}".into()]).collect::<Vec<_>>().join(",")
    }
}

/// A placement with the roles of its threads. Threads are identified by their index.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The name of each thread, without its number.
    pub roles: Vec<String>,
    /// Thread of each recv instance.
    pub recv: Vec<usize>,
    /// Thread of each sql instance.
    pub sql: Vec<usize>,
    /// Thread of each tc instance.
    pub tc: Vec<usize>,
    /// Thread of each ldm instance.
    pub ldm: Vec<usize>,
    /// The send threads; empty if each thread writes its own output.
    pub send: Vec<usize>,
    /// Whether each thread has a query block.
    pub has_query: Vec<bool>,
    /// For each ldm instance, the threads whose query blocks may read its partitions.
    pub readers: Vec<Vec<usize>>,
}

impl Layout {
    /// Lays out the threads of a candidate with the node's placement code.
    ///
    /// # Errors
    /// The node's placement code refuses the candidate.
    pub fn new(candidate: &Candidate, cpus: u32) -> Outcome<Layout> {
        let config = ThreadConfig::parse(&candidate.thread_config()).explain(&candidate.name)?;
        let topology = Topology::uniform(cpus);
        let plan = PlacementPlan::from_thread_config(&config, &topology, true).explain(&candidate.name)?;
        Layout::of_plan(&plan, candidate.recv_reads)
    }

    fn of_plan(plan: &PlacementPlan, recv_reads: bool) -> Outcome<Layout> {
        let threads = || plan.threads.iter().enumerate();
        let with = |module| -> Vec<usize> {
            threads().filter(|(_, thread)| thread.carries(module)).map(|(index, _)| index).collect()
        };
        let ldm = with(Module::Ldm);
        let reads = |thread: &ThreadPlan| thread.carries(Module::Query) || recv_reads && thread.carries(Module::Recv);
        let may_read = |owner: usize, reader: usize| {
            let [owner, reader] = [&plan.threads[owner], &plan.threads[reader]];
            reads(reader) && owner.group == reader.group && reader.reader_slot.is_some()
        };
        let readers = ldm
            .iter()
            .map(|owner| (0..plan.threads.len()).filter(|reader| may_read(*owner, *reader)).collect())
            .collect();
        let layout = Layout {
            roles: threads().map(|(_, thread)| role(&thread.name)).collect(),
            recv: with(Module::Recv),
            sql: with(Module::Sql),
            tc: with(Module::Tc),
            send: with(Module::Send),
            has_query: threads().map(|(_, thread)| reads(thread)).collect(),
            ldm,
            readers,
        };
        let is_whole = [&layout.recv, &layout.sql, &layout.tc, &layout.ldm].iter().all(|list| !list.is_empty());
        if is_whole { Ok(layout) } else { Err(Failure::new("a placement without recv, sql, tc or ldm")) }
    }

    /// Number of threads, including io.
    pub fn threads(&self) -> usize {
        self.roles.len()
    }
}

fn role(name: &str) -> String {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_string()
}
