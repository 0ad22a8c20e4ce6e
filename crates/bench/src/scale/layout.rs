//! A placement as the real code makes it, and who may do what in it.

use junctor_node::placement::{AutomaticPlacement, Module, PlacementPlan, ThreadConfig, ThreadPlan, Topology};

use crate::failure::Explain;
use crate::{Failure, Outcome};

/// Numbers of threads of each module, with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What tables call it.
    pub name: String,
    /// The numbers of threads; modules with none are folded as the real code does.
    pub counts: Vec<(Module, u32)>,
    /// Whether recv threads have query blocks, too, which the real code gives them only where they carry everything.
    pub recv_reads: bool,
}

/// Modules that a candidate gives threads to.
pub const MODULES: [Module; 8] =
    [Module::Main, Module::Rep, Module::Recv, Module::Sql, Module::Tc, Module::Ldm, Module::Query, Module::Send];

impl Candidate {
    /// Our automatic table's choice.
    pub fn automatic(cpus: u32) -> Candidate {
        let counts = AutomaticPlacement::counts_for(cpus);
        Candidate::of_counts("automatic", |module| counts.get(module))
    }

    /// A candidate with those numbers of threads.
    pub fn of_counts(name: &str, count: impl Fn(Module) -> u32) -> Candidate {
        let counts = MODULES.into_iter().map(|module| (module, count(module))).collect();
        Candidate { name: name.into(), counts, recv_reads: false }
    }

    /// The number of threads of a module.
    pub fn count(&self, module: Module) -> u32 {
        self.counts.iter().find(|(named, _)| *named == module).map_or(0, |(_, count)| *count)
    }

    /// The numbers in short: `recv 4, sql 5`.
    pub fn describe(&self) -> String {
        let named = self.counts.iter().filter(|(_, count)| *count > 0);
        named.map(|(module, count)| format!("{module} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// As a `ThreadConfig`.
    pub fn thread_config(&self) -> String {
        let entries = self.counts.iter().map(|(module, count)| format!("{module}={{count={count}}}"));
        entries.chain(["io={count=1}".into()]).collect::<Vec<_>>().join(",")
    }
}

/// A placement, and who may do what in it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The threads' names without their numbers.
    pub roles: Vec<String>,
    /// The thread of each recv, sql, tc and ldm instance, and of each send thread.
    pub recv: Vec<usize>,
    /// Of sql.
    pub sql: Vec<usize>,
    /// Of tc.
    pub tc: Vec<usize>,
    /// Of ldm.
    pub ldm: Vec<usize>,
    /// Of send; empty if threads send for themselves.
    pub send: Vec<usize>,
    /// Whether each thread has a query block.
    pub has_query: Vec<bool>,
    /// For each ldm instance the threads whose query blocks may read its partitions.
    pub readers: Vec<Vec<usize>>,
}

impl Layout {
    /// The placement that the real code makes of a candidate on so many CPUs.
    ///
    /// # Errors
    /// It is none.
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

    /// How many threads there are, io with them.
    pub fn threads(&self) -> usize {
        self.roles.len()
    }
}

fn role(name: &str) -> String {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_string()
}
