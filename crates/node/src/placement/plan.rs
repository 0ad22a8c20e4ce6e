//! The decided placement: threads, their modules and their CPUs.

use super::automatic::AutomaticPlacement;
use super::cpu_list::CpuList;
use super::error::UnsatisfiablePlacement;
use super::fold;
use super::read_group;
use super::thread_config::{EntryBinding, ThreadConfig, ThreadKind};
use super::topology::{CPU_COUNT_MAX, Topology};
use junctor_signals::Module;

pub use junctor_model::limit::READER_SLOTS_MAX;

/// Maximum number of threads of a node: one for each CPU that it uses, and io. Each thread has a mailbox for
/// each other thread, so memory grows with the square of this number.
pub const THREAD_COUNT_MAX: usize = CPU_COUNT_MAX + 1;

/// Where a thread may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CpuBinding {
    /// Anywhere.
    #[default]
    None,
    /// On this CPU only.
    One(u32),
    /// On any of these CPUs.
    Set(CpuList),
}

/// How the operating system schedules a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// Like any other thread.
    #[default]
    Normal,
    /// In the real-time class.
    Realtime,
    /// `thread_prio`, 0 to 10, 5 being ordinary and 10 the most urgent.
    Level(u8),
    /// Below all other threads of the node.
    Background,
}

/// The nice value of threads that run long queries. Against one other thread on the same CPU, such a thread
/// gets a tenth of the time.
const BACKGROUND_NICE: i32 = 10;

impl ThreadPriority {
    /// The nice value to set, -20 to 19; `None` when nothing is to be set.
    pub fn nice(self) -> Option<i32> {
        match self {
            ThreadPriority::Level(level) => Some(((5 - i32::from(level)) * 4).clamp(-20, 19)),
            ThreadPriority::Background => Some(BACKGROUND_NICE),
            ThreadPriority::Normal | ThreadPriority::Realtime => None,
        }
    }
}

/// One thread of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Position in [`PlacementPlan::threads`].
    pub index: u16,
    /// At most 15 bytes, as Linux allows: `recv0`, `ldm1`, `main_rep`.
    pub name: String,
    /// The modules that the thread carries, ascending, each with its instance number. Instance numbers count
    /// from 0 for each module, in thread order.
    pub modules: Vec<(Module, u16)>,
    /// Where it may run.
    pub cpu: CpuBinding,
    /// How long it polls before it sleeps, in microseconds; `None` leaves it to the node's setting.
    pub spin_us: Option<u32>,
    /// Whether it leaves sending to other threads.
    pub nosend: bool,
    /// How the operating system schedules it.
    pub priority: ThreadPriority,
    /// The read group, from 0 without gaps: the threads that may read each other's partitions. It lies within
    /// one L3 cache when the threads are bound and each cache has an ldm.
    pub group: u16,
    /// The thread's reader slot in the group, from 0, below [`READER_SLOTS_MAX`]; `None` for a thread that
    /// reads no partition but its own.
    pub reader_slot: Option<u8>,
}

impl ThreadPlan {
    /// The instance of `module` on this thread, if it carries one.
    pub fn instance_of(&self, module: Module) -> Option<u16> {
        self.modules.iter().find(|(carried, _)| *carried == module).map(|&(_, instance)| instance)
    }

    /// Whether the thread carries `module`.
    pub fn carries(&self, module: Module) -> bool {
        self.instance_of(module).is_some()
    }
}

/// A complete placement. Every module has an instance on some thread, except `send` and `work`: without send
/// threads each thread writes its own output to the sockets, and without work threads sessions run their long
/// queries where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementPlan {
    /// The threads, by index.
    pub threads: Vec<ThreadPlan>,
    /// Messages for the user, printed at start: overlaps, ignored settings, assumptions.
    pub notices: Vec<String>,
    /// The reason for this placement, printed at start.
    pub reason: String,
}

impl PlacementPlan {
    /// The placement that `config` asks for on this machine. With `unpinned`, CPU bindings are dropped with a
    /// notice. Otherwise a CPU that the process may not use is an error, as is a query thread without a
    /// reader slot.
    pub fn from_thread_config(
        config: &ThreadConfig,
        topology: &Topology,
        unpinned: bool,
    ) -> Result<Self, UnsatisfiablePlacement> {
        let reason = format!("ThreadConfig: {}", config.counts());
        Self::build(config, topology, unpinned, reason)
    }

    /// The placement by our table, for at most `cpu_count_max` of the CPUs that the process may really use.
    pub fn automatic(
        topology: &Topology,
        cpu_count_max: Option<u32>,
        unpinned: bool,
    ) -> Result<Self, UnsatisfiablePlacement> {
        let automatic = AutomaticPlacement::choose(topology, cpu_count_max, unpinned);
        Self::build(&automatic.config, topology, unpinned, automatic.reason)
    }

    /// Number of instances of `module`.
    pub fn instance_count(&self, module: Module) -> usize {
        self.threads.iter().filter(|thread| thread.carries(module)).count()
    }

    /// The thread that carries this instance of `module`.
    pub fn thread_of(&self, module: Module, instance: u16) -> Option<&ThreadPlan> {
        self.threads.iter().find(|thread| thread.instance_of(module) == Some(instance))
    }

    fn build(
        config: &ThreadConfig,
        topology: &Topology,
        unpinned: bool,
        reason: String,
    ) -> Result<Self, UnsatisfiablePlacement> {
        let mut notices = topology.notices.clone();
        notices.extend(config.notices());
        if !unpinned {
            check_cpus(config, topology)?;
        }
        let mut threads = fold::fold(config);
        if unpinned {
            unpin(&mut threads, &mut notices);
        }
        check_threads(&threads)?;
        read_group::assign(&mut threads, topology, &mut notices)?;
        Ok(Self { threads, notices, reason })
    }
}

fn unpin(threads: &mut [ThreadPlan], notices: &mut Vec<String>) {
    let mut dropped = false;
    for thread in threads {
        dropped |= std::mem::take(&mut thread.cpu) != CpuBinding::None;
    }
    if dropped {
        notices.push("CPU binding is off: cpubind and cpuset are ignored".to_owned());
    }
}

/// Fails if the process may not use a CPU of an entry. The message lists all such entries, so that the user
/// can correct the whole text at once.
fn check_cpus(config: &ThreadConfig, topology: &Topology) -> Result<(), UnsatisfiablePlacement> {
    let mut missing = Vec::new();
    for entry in config.entries().iter().filter(|entry| matches!(entry.kind, ThreadKind::Module(_))) {
        let count = entry.thread_count() as usize;
        let used = match &entry.binding {
            Some(EntryBinding::Bind(cpus)) => &cpus.numbers()[..count.min(cpus.len())],
            Some(EntryBinding::Set(cpus)) if count > 0 => cpus.numbers(),
            _ => continue,
        };
        let absent: Vec<u32> = used.iter().copied().filter(|&cpu| topology.cpu(cpu).is_none()).collect();
        if !absent.is_empty() {
            missing.push(format!("{} ({})", CpuList::new(absent), entry.kind.name()));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(UnsatisfiablePlacement::new(format!(
        "ThreadConfig names CPUs that this process may not use: {}; it may use CPU {}. Name those, or run without CPU \
         binding (--no-cpu-binding)",
        missing.join(", "),
        topology.cpu_list()
    )))
}

fn check_threads(threads: &[ThreadPlan]) -> Result<(), UnsatisfiablePlacement> {
    if threads.len() > THREAD_COUNT_MAX {
        let count = threads.len();
        return Err(UnsatisfiablePlacement::new(format!(
            "{count} threads, but at most {THREAD_COUNT_MAX} are allowed"
        )));
    }
    for module in Module::ALL.into_iter().filter(|module| !matches!(module, Module::Send | Module::Work)) {
        if !threads.iter().any(|thread| thread.carries(module)) {
            return Err(UnsatisfiablePlacement::new(format!("no thread carries {module}")));
        }
    }
    Ok(())
}
