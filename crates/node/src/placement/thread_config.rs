//! The `ThreadConfig` setting as data, before modules are folded into threads.

use std::fmt;

use super::cpu_list::CpuList;
use super::error::PlacementError;
use super::parse;
use junctor_signals::Module;

/// Maximum spin time with an effect, in microseconds; larger settings are accepted and reduced.
pub const SPIN_EFFECTIVE_US_MAX: u32 = 500;

/// The subject of a `ThreadConfig` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Threads of a module.
    Module(Module),
    /// Accepted because NDB has it; ignored.
    Watchdog,
    /// Accepted because NDB has it; ignored.
    IndexBuild,
    /// Accepted because NDB has it; ignored.
    Recover,
}

impl ThreadKind {
    /// Every kind, in the order in which messages list them.
    pub const ALL: [ThreadKind; 13] = [
        ThreadKind::Module(Module::Main),
        ThreadKind::Module(Module::Rep),
        ThreadKind::Module(Module::Tc),
        ThreadKind::Module(Module::Ldm),
        ThreadKind::Module(Module::Query),
        ThreadKind::Module(Module::Recv),
        ThreadKind::Module(Module::Send),
        ThreadKind::Module(Module::Io),
        ThreadKind::Module(Module::Sql),
        ThreadKind::Module(Module::Work),
        ThreadKind::Watchdog,
        ThreadKind::IndexBuild,
        ThreadKind::Recover,
    ];

    /// The name in a `ThreadConfig`.
    pub const fn name(self) -> &'static str {
        match self {
            ThreadKind::Module(module) => module.name(),
            ThreadKind::Watchdog => "watchdog",
            ThreadKind::IndexBuild => "idxbld",
            ThreadKind::Recover => "recover",
        }
    }

    /// Maximum number of threads of this kind over all entries. These are NDB's limits where NDB has the
    /// kind; `sql` and `work` are ours.
    pub const fn count_max(self) -> u32 {
        match self {
            ThreadKind::Module(module) => match module {
                Module::Main => 2,
                Module::Rep | Module::Io => 1,
                Module::Tc => 160,
                Module::Ldm | Module::Query => 332,
                Module::Recv | Module::Send => 80,
                Module::Sql => 512,
                Module::Work => 64,
                // Not a kind that a user can name.
                Module::Log => 0,
            },
            ThreadKind::Watchdog | ThreadKind::IndexBuild => 1,
            ThreadKind::Recover => 332,
        }
    }
}

/// The CPUs of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryBinding {
    /// `cpubind`: one CPU for each thread, in order.
    Bind(CpuList),
    /// `cpuset`: every thread may run on any of them.
    Set(CpuList),
}

impl EntryBinding {
    /// The CPUs listed.
    pub fn cpus(&self) -> &CpuList {
        let (EntryBinding::Bind(cpus) | EntryBinding::Set(cpus)) = self;
        cpus
    }
}

/// One entry, such as `ldm={count=2,cpubind=0,4}`. A parameter that is missing is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadEntry {
    /// Kind of the threads.
    pub kind: ThreadKind,
    /// Number of threads; 1 if missing.
    pub count: Option<u32>,
    /// The CPUs named.
    pub binding: Option<EntryBinding>,
    /// How long an idle thread polls before it sleeps, in microseconds, 0 to 9,000.
    pub spin_us: Option<u32>,
    /// Whether the threads run in the real-time class.
    pub realtime: Option<bool>,
    /// Whether the threads leave sending to others.
    pub nosend: Option<bool>,
    /// Scheduling priority, 0 to 10, 5 being ordinary.
    pub thread_priority: Option<u8>,
}

impl ThreadEntry {
    /// An entry of this kind without parameters.
    pub fn bare(kind: ThreadKind) -> Self {
        Self { kind, count: None, binding: None, spin_us: None, realtime: None, nosend: None, thread_priority: None }
    }

    /// Number of threads that the entry asks for.
    pub fn thread_count(&self) -> u32 {
        self.count.unwrap_or(1)
    }
}

impl fmt::Display for ThreadEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parameters: Vec<String> = Vec::new();
        parameters.extend(self.count.map(|count| format!("count={count}")));
        match &self.binding {
            Some(EntryBinding::Bind(cpus)) => parameters.push(format!("cpubind={cpus}")),
            Some(EntryBinding::Set(cpus)) => parameters.push(format!("cpuset={cpus}")),
            None => {}
        }
        parameters.extend(self.spin_us.map(|spin_us| format!("spintime={spin_us}")));
        parameters.extend(self.realtime.map(|realtime| format!("realtime={}", u8::from(realtime))));
        parameters.extend(self.nosend.map(|nosend| format!("nosend={}", u8::from(nosend))));
        parameters.extend(self.thread_priority.map(|priority| format!("thread_prio={priority}")));
        formatter.write_str(self.kind.name())?;
        if parameters.is_empty() { Ok(()) } else { write!(formatter, "={{{}}}", parameters.join(",")) }
    }
}

/// A `ThreadConfig` that obeys the grammar and the limits. `Display` and [`ThreadConfig::parse`] are inverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    entries: Vec<ThreadEntry>,
}

impl ThreadConfig {
    /// Parses a `ThreadConfig` text. The error points at the offending character.
    pub fn parse(text: &str) -> Result<Self, PlacementError> {
        parse::parse_entries(text).map(|entries| Self { entries })
    }

    pub(super) fn from_entries(entries: Vec<ThreadEntry>) -> Self {
        Self { entries }
    }

    /// The entries in the order written.
    pub fn entries(&self) -> &[ThreadEntry] {
        &self.entries
    }

    /// Number of threads for each module. Modules that are not listed get defaults: main 1, ldm 1, recv 1, io
    /// 1, rep 1 (but 0 if main is 0), all others 0.
    pub fn counts(&self) -> ThreadCounts {
        let mut counts = ThreadCounts::default();
        for module in Module::ALL {
            let named = self.named_count(module);
            let default = match module {
                Module::Main | Module::Ldm | Module::Recv | Module::Io => 1,
                Module::Rep => u32::from(counts.get(Module::Main) > 0),
                Module::Tc | Module::Query | Module::Send | Module::Sql | Module::Log | Module::Work => 0,
            };
            // The main module has one instance, so a second thread would have nothing to run.
            let count_most = if module == Module::Main { 1 } else { u32::MAX };
            counts.set(module, named.unwrap_or(default).min(count_most));
        }
        counts
    }

    /// Notes about an accepted text: overlapping CPUs, and settings without effect.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for entry in &self.entries {
            notices.extend(entry_notices(entry));
        }
        if self.named_count(Module::Main).is_some_and(|count| count > 1) {
            notices.push("main: there is one instance of main; its second thread is not started".to_owned());
        }
        self.overlap_notices(&mut notices);
        notices
    }

    fn named_count(&self, module: Module) -> Option<u32> {
        let counts = self.entries_of(module).map(ThreadEntry::thread_count);
        counts.reduce(|total, count| total.saturating_add(count))
    }

    pub(super) fn entries_of(&self, module: Module) -> impl Iterator<Item = &ThreadEntry> {
        self.entries.iter().filter(move |entry| entry.kind == ThreadKind::Module(module))
    }

    fn overlap_notices(&self, notices: &mut Vec<String>) {
        let bound = self.entries.iter().filter(|entry| {
            matches!(entry.kind, ThreadKind::Module(_)) && entry.thread_count() > 0 && entry.binding.is_some()
        });
        let bound: Vec<(&ThreadEntry, &CpuList)> =
            bound.filter_map(|entry| entry.binding.as_ref().map(|binding| (entry, binding.cpus()))).collect();
        let mut first_named: Vec<Option<usize>> = vec![None; super::CPU_NUMBER_MAX as usize + 1];
        for (index, (entry, cpus)) in bound.iter().enumerate() {
            let mut shared: Vec<(usize, Vec<u32>)> = Vec::new();
            for &cpu in cpus.numbers() {
                match first_named[cpu as usize] {
                    None => first_named[cpu as usize] = Some(index),
                    Some(other) => match shared.iter_mut().find(|(index, _)| *index == other) {
                        Some((_, numbers)) => numbers.push(cpu),
                        None => shared.push((other, vec![cpu])),
                    },
                }
            }
            for (other, numbers) in shared {
                let (first, second) = (bound[other].0.kind.name(), entry.kind.name());
                notices.push(format!("{first} and {second} share CPU {}", CpuList::new(numbers)));
            }
        }
    }
}

fn entry_notices(entry: &ThreadEntry) -> Vec<String> {
    let name = entry.kind.name();
    let mut notices = Vec::new();
    if !matches!(entry.kind, ThreadKind::Module(_)) {
        notices.push(format!("{name}: accepted and ignored; this node has no {name} threads"));
        return notices;
    }
    let count = entry.thread_count();
    match &entry.binding {
        Some(EntryBinding::Bind(cpus)) if count == 0 => {
            notices.push(format!("{name}: cpubind={cpus} is ignored because count is 0"));
        }
        Some(EntryBinding::Set(cpus)) if count == 0 => {
            notices.push(format!("{name}: cpuset={cpus} is ignored because count is 0"));
        }
        Some(EntryBinding::Bind(cpus)) if cpus.len() > count as usize => {
            let unused = CpuList::new(cpus.numbers()[count as usize..].to_vec());
            notices.push(format!("{name}: cpubind has more CPUs than threads; CPU {unused} is not used"));
        }
        _ => {}
    }
    if entry.spin_us.is_some_and(|spin_us| spin_us > SPIN_EFFECTIVE_US_MAX) {
        notices.push(format!("{name}: spintime is cut to {SPIN_EFFECTIVE_US_MAX} microseconds"));
    }
    notices
}

impl fmt::Display for ThreadConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for entry in &self.entries {
            write!(formatter, "{separator}{entry}")?;
            separator = ",";
        }
        Ok(())
    }
}

/// Number of threads for each module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts([u32; Module::ALL.len()]);

impl ThreadCounts {
    /// Number of threads of `module`.
    pub const fn get(&self, module: Module) -> u32 {
        self.0[module.index()]
    }

    pub(super) fn set(&mut self, module: Module, count: u32) {
        self.0[module.index()] = count;
    }

    /// Number of threads of all modules.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }
}

impl fmt::Display for ThreadCounts {
    /// Writes the modules that have threads of their own: `main=1 recv=2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for module in Module::ALL.into_iter().filter(|&module| self.get(module) > 0) {
            write!(formatter, "{separator}{module}={}", self.get(module))?;
            separator = " ";
        }
        Ok(())
    }
}
