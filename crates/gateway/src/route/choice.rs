//! Hot path: at most 80 instructions per short read.
//!
//! The routing state of one sql block: which blocks can read a partition, the state of their threads, and the
//! rule that chooses among them.

use junctor_kernel::scheduler::load::{ThreadState, Usage};
use junctor_kernel::{Address, Directory, Duration, LoadBoard, Time};
use junctor_model::id::TableId;
use junctor_signals::Module;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_signals::read_rows::BookedCost;

use super::adaptive::{
    Candidate, Controller, Decision, KINDS_MAX, KindFigures, Load, Measurement, ReadLocation, RemoteCandidates,
};
use super::rule::ReadRule;
use super::static_rule::Turns;
use super::weighted::{ThreadBusy, WeightedRule, Weights};

/// Interval between refreshes of prices and weights while reads arrive.
const REFRESH_EVERY: Duration = Duration::from_millis(100);

/// A thread that has slept for this long counts as idle, whatever its last published figures.
const RESTED: Duration = Duration::from_millis(50);

/// For each ldm instance, the query blocks of its read group. These may read the instance's partitions.
pub type Readers = Vec<Vec<u16>>;

/// Where one read runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The block that runs the read.
    pub to: Address,
    /// Whether the read is to be measured.
    pub is_sampled: bool,
    /// Pass this to [`Route::release`] when the read is answered.
    pub booked_cost: BookedCost,
}

impl Choice {
    /// A fixed receiver, which is neither measured nor booked.
    #[inline]
    pub fn of(to: Address) -> Choice {
        Choice { to, is_sampled: false, booked_cost: BookedCost::default() }
    }
}

/// A read of one partition, as far as the choice depends on it.
#[derive(Clone, Copy, Debug)]
pub struct RoutedRead<'a> {
    /// The program of the read.
    pub program: &'a ReadProgram,
    /// Number of its keys or ranges.
    pub units: u32,
}

/// A read in progress that is being measured.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    to: Address,
    sent: Time,
    kind: u8,
    units: u32,
    away: Option<u16>,
    state: ThreadState,
    waiting_ns: u64,
}

/// A row of `junctor_info.routing`.
#[derive(Clone, Debug)]
pub struct RoutingRow {
    /// The table of the kind's first read.
    pub table: TableId,
    /// The form of the reads: `keys`, `ranges` or `all rows`, and their output.
    pub operation: &'static str,
    /// The figures of the kind.
    pub figures: KindFigures,
}

/// The routing state of one sql block.
#[derive(Debug)]
pub struct Route {
    rule: ReadRule,
    own_thread: u16,
    local: Option<Address>,
    owners: Vec<Owner>,
    controller: Controller,
    weights: Weights,
    weighted: WeightedRule,
    turns: Turns,
    busy: Vec<ThreadBusy>,
    refreshed: Time,
    /// Table and shape of each kind, with their names for status tables.
    seen: Box<[Option<SeenKind>]>,
}

/// Maximum number of slots that are probed for a free one. After that, two kinds share a slot.
const KIND_PROBES: usize = 8;

#[derive(Clone, Copy, Debug)]
struct SeenKind {
    table: TableId,
    shape: u32,
    operation: &'static str,
}

/// One ldm instance, and the other blocks that can read its partitions.
#[derive(Debug)]
struct Owner {
    thread: u16,
    /// The query blocks of its read group, and their threads.
    queries: Vec<Address>,
    query_threads: Vec<u16>,
    /// Whether a query block on this thread is one of them.
    reads_here: bool,
    /// The query blocks that are neither on this thread nor on the owner's.
    others: Vec<(Address, u16)>,
    /// The query block to which reads go now, and the index of the one to compare it with next.
    best: Option<(Address, u16)>,
    challenger: usize,
}

impl Owner {
    /// Returns the better of the current query block and the next one, by queue length. This scheme (two
    /// choices with memory) keeps many sql blocks from all choosing the same query block.
    fn better_query(&mut self, loads: &LoadBoard) -> Option<Candidate> {
        let challenger = *self.others.get(self.challenger)?;
        self.challenger = (self.challenger + 1) % self.others.len();
        let (best, other) = (candidate(self.best.unwrap_or(challenger).1, loads), candidate(challenger.1, loads));
        let (chosen, of_chosen) = match self.best {
            Some(known) if best.queue_length <= other.queue_length => (known, best),
            _ => (challenger, other),
        };
        self.best = Some(chosen);
        Some(of_chosen)
    }
}

impl Route {
    /// Creates the routing state of the block `own`. `readers` lists the query blocks of each read group.
    pub fn new(rule: ReadRule, own: Address, directory: &Directory, readers: &Readers) -> Route {
        let own_thread = directory.thread_of(own.module, own.instance).unwrap_or(0);
        let local = directory.instance_on(Module::Query, own_thread);
        let local = local.map(|instance| directory.address(Module::Query, instance));
        let thread = |module, instance| directory.thread_of(module, instance).unwrap_or(own_thread);
        let owner = |instance: u16| {
            let readers = readers.get(usize::from(instance)).map_or(&[][..], |readers| readers);
            let owner_thread = thread(Module::Ldm, instance);
            let queries: Vec<Address> =
                readers.iter().map(|reader| directory.address(Module::Query, *reader)).collect();
            let query_threads: Vec<u16> = readers.iter().map(|reader| thread(Module::Query, *reader)).collect();
            let others = queries.iter().copied().zip(query_threads.iter().copied());
            let others = others.filter(|(_, thread)| *thread != own_thread && *thread != owner_thread);
            let others: Vec<(Address, u16)> = others.collect();
            Owner {
                thread: owner_thread,
                reads_here: local.is_some_and(|local| queries.contains(&local)),
                queries,
                query_threads,
                best: None,
                // Start each sql block at a different query block.
                challenger: usize::from(own.instance) % others.len().max(1),
                others,
            }
        };
        let owners: Vec<Owner> = (0..directory.instances(Module::Ldm)).map(owner).collect();
        let busy = |(index, _): (usize, _)| {
            let has = |module| directory.instance_on(module, index as u16).is_some();
            ThreadBusy {
                keeps_free: has(Module::Recv) || has(Module::Tc),
                reads: has(Module::Query) || has(Module::Ldm),
                owns: has(Module::Ldm),
                ..ThreadBusy::default()
            }
        };
        let threads = directory.threads();
        Route {
            rule,
            own_thread,
            local,
            controller: Controller::new(own_thread, threads.len()),
            owners,
            weights: Weights::default(),
            weighted: WeightedRule::default(),
            turns: Turns::default(),
            busy: threads.iter().enumerate().map(busy).collect(),
            refreshed: Time(0),
            seen: vec![None; KINDS_MAX].into_boxed_slice(),
        }
    }

    /// Sets the rule.
    pub fn set_rule(&mut self, rule: ReadRule) {
        self.rule = rule;
    }

    /// Whether the parts of one read may go to different threads.
    #[inline]
    pub fn is_adaptive(&self) -> bool {
        self.rule == ReadRule::Adaptive && self.busy.len() > 1
    }

    /// Chooses where to read rows of a partition that `owner` owns.
    #[inline]
    pub fn choose(&mut self, read: RoutedRead<'_>, owner: Address, loads: &LoadBoard, now: Time) -> Choice {
        match self.rule {
            ReadRule::Adaptive => self.adapt(read, owner, loads, now),
            ReadRule::Owner => Choice::of(owner),
            ReadRule::Local => Choice::of(self.local_or_next(owner)),
            ReadRule::Weights => Choice::of(self.by_weight(read.program, owner, loads, now)),
        }
    }

    /// Books the cost of a part that continues at the same location.
    #[inline]
    pub fn book(&mut self, booked_cost: BookedCost) {
        self.controller.book(booked_cost);
    }

    /// The booked cost of a part that continues at `from`. `from` differs from the chosen block if a query
    /// block forwarded the read to the owner.
    pub fn booked_cost_at(&self, booked_cost: BookedCost, from: Address) -> BookedCost {
        match self.owners.get(usize::from(from.instance)) {
            Some(owner) if from.module == Module::Ldm => BookedCost { thread: owner.thread, ..booked_cost },
            _ => booked_cost,
        }
    }

    /// Removes the cost of a part that has been answered.
    #[inline]
    pub fn release(&mut self, booked_cost: BookedCost) {
        self.controller.release(booked_cost);
    }

    /// Updates the estimates with a measured read, which the block `from` answered at `now` after
    /// `service_ns` of execution.
    pub fn observe(&mut self, sample: &Sample, from: Address, service_ns: u64, now: Time) {
        let total_ns = now.since(sample.sent).0;
        let Sample { kind, units, away, state, waiting_ns, .. } = *sample;
        let passed_on = from != sample.to;
        if passed_on && away.is_some() {
            // The partition's guard (its lock) was busy, so the query block forwarded the read. Neither the
            // time nor the latency belongs to that thread.
            return;
        }
        if passed_on && waiting_ns > total_ns / 2 {
            return;
        }
        // If a block of this thread forwarded the read, count all the time since the read reached the front
        // of the queue.
        let service_ns = if passed_on { total_ns - waiting_ns } else { service_ns };
        self.controller.observe(&Measurement { kind, units, away, state, service_ns, waiting_ns, total_ns });
    }

    /// Measurements and decisions of all kinds of reads that have occurred.
    pub fn rows(&self) -> Vec<RoutingRow> {
        let seen = self.seen.iter().enumerate();
        let row = |(kind, seen): (usize, &Option<SeenKind>)| {
            let SeenKind { table, operation, .. } = (*seen)?;
            Some(RoutingRow { table, operation, figures: *self.controller.kind(kind as u8) })
        };
        seen.filter_map(row).collect()
    }

    /// The thread of this sql block.
    pub fn thread(&self) -> u16 {
        self.own_thread
    }

    /// The current rule.
    pub fn rule(&self) -> ReadRule {
        self.rule
    }

    #[inline]
    fn adapt(&mut self, read: RoutedRead<'_>, owner: Address, loads: &LoadBoard, now: Time) -> Choice {
        // A node of one thread has no choice.
        if self.busy.len() == 1 {
            return Choice::of(self.local.unwrap_or(owner));
        }
        if now.since(self.refreshed) >= REFRESH_EVERY {
            self.refresh(loads, now);
        }
        let kind = self.kind_of(read.program);
        let Route { owners, controller, local, own_thread, .. } = self;
        let Some(known) = owners.get_mut(usize::from(owner.instance)) else { return Choice::of(owner) };
        let away_owner = known.thread != *own_thread;
        let may_read_here = !away_owner || known.reads_here;
        let away = || RemoteCandidates {
            owner: away_owner.then(|| candidate(known.thread, loads)),
            query: known.better_query(loads),
        };
        let Decision { location, is_sampled, booked_cost } = controller.choose(kind, read.units, may_read_here, away);
        let to = match location {
            ReadLocation::Here => local.filter(|_| known.reads_here).unwrap_or(owner),
            ReadLocation::Owner => owner,
            ReadLocation::Query => known.best.map_or(owner, |(query, _)| query),
        };
        Choice { to, is_sampled, booked_cost }
    }

    /// The sample of a read sent at `sent`.
    #[cold]
    pub fn sample(
        &mut self,
        RoutedRead { program, units }: RoutedRead<'_>,
        choice: &Choice,
        loads: &LoadBoard,
        sent: Time,
    ) -> Sample {
        let Choice { to, booked_cost, .. } = *choice;
        let kind = self.kind_of(program);
        let thread = match to.module == Module::Ldm {
            true => self.owners.get(usize::from(to.instance)).map(|owner| owner.thread),
            false => {
                self.owners.iter().filter_map(|owner| owner.best).find(|(query, _)| *query == to).map(|(_, at)| at)
            }
        };
        let away = thread.filter(|thread| *thread != self.own_thread);
        let state = away.map_or(ThreadState::Executing, |thread| loads.state(thread));
        let waiting_ns = self.controller.waiting_ns(booked_cost);
        Sample { to, sent, kind, units, away, state, waiting_ns }
    }

    fn local_or_next(&mut self, owner: Address) -> Address {
        let Some(known) = self.owners.get(usize::from(owner.instance)) else { return owner };
        match self.local {
            Some(local) if known.reads_here => local,
            _ => self.turns.next(owner, &known.queries),
        }
    }

    fn by_weight(&mut self, program: &ReadProgram, owner: Address, loads: &LoadBoard, now: Time) -> Address {
        if now.since(self.refreshed) >= REFRESH_EVERY {
            self.refresh(loads, now);
        }
        let Some(known) = self.owners.get(usize::from(owner.instance)) else { return owner };
        let is_scan = program.access != Access::PrimaryKeys;
        let chosen = self.weighted.choose(&mut self.weights, known.thread, &known.query_threads, is_scan);
        let position = known.query_threads.iter().position(|thread| *thread == chosen);
        match position {
            Some(position) if chosen != known.thread || chosen == self.own_thread => known.queries[position],
            _ => owner,
        }
    }

    /// Reads the load of all threads and recomputes prices, weights and the best query blocks.
    #[cold]
    fn refresh(&mut self, loads: &LoadBoard, now: Time) {
        let elapsed_ns = now.since(std::mem::replace(&mut self.refreshed, now)).0;
        for (thread, busy) in self.busy.iter_mut().enumerate() {
            let Some(load) = loads.thread(thread as u16) else { continue };
            // Load windows end only while a thread works, so the figures of a sleeping thread are old.
            let is_idle = load.state == ThreadState::Sleeping && now.since(load.state_since).0 > RESTED.0;
            let busy_per_mille = (load.moment.busy_per_mille() + load.second.busy_per_mille()) / 2;
            busy.busy_per_mille = if is_idle { 0 } else { busy_per_mille };
            busy.signals_per_turn = load.moment.signals.checked_div(load.moment.turns).unwrap_or(0) as u32;
        }
        self.weights.adjust(&self.busy);
        let own = usize::from(self.own_thread);
        for thread in std::iter::once(own).chain((0..self.busy.len()).filter(|thread| *thread != own)) {
            let (busy, thread) = (&self.busy[thread], thread as u16);
            let signal_ns = loads.thread(thread).map_or(0, |load| signal_ns(&load.moment));
            let load = Load { busy_per_mille: busy.busy_per_mille, signal_ns };
            self.controller.set_load(thread, &load, elapsed_ns, self.weights.factor(thread));
        }
        let Route { owners, controller, .. } = self;
        for owner in owners {
            owner.best = owner.others.iter().copied().min_by_key(|(_, thread)| controller.price(*thread));
        }
    }

    /// Returns the kind of a program's reads. Each form of program gets a kind of its own until all slots
    /// near its hash are taken.
    #[inline]
    fn kind_of(&mut self, program: &ReadProgram) -> u8 {
        let (table, shape) = (program.table.definition.id, shape_of(program));
        let first = table.0.wrapping_mul(29).wrapping_add(shape) as usize % KINDS_MAX;
        match self.seen[first] {
            Some(seen) if seen.table == table && seen.shape == shape => first as u8,
            _ => self.find_kind(first, shape, program),
        }
    }

    #[inline(never)]
    fn find_kind(&mut self, first: usize, shape: u32, program: &ReadProgram) -> u8 {
        let table = program.table.definition.id;
        for probe in 0..KIND_PROBES {
            let kind = (first + probe) % KINDS_MAX;
            match &self.seen[kind] {
                Some(seen) if seen.table == table && seen.shape == shape => return kind as u8,
                Some(_) => {}
                None => {
                    self.seen[kind] = Some(SeenKind { table, shape, operation: operation(program) });
                    return kind as u8;
                }
            }
        }
        first as u8
    }
}

#[inline]
fn candidate(thread: u16, loads: &LoadBoard) -> Candidate {
    Candidate { thread, queue_length: loads.queue_length(thread), state: loads.state(thread) }
}

fn signal_ns(usage: &Usage) -> u64 {
    usage.executing_ns.checked_div(usage.signals).unwrap_or(0)
}

/// The shape of a program: access, output, and whether it has a filter.
#[inline]
fn shape_of(program: &ReadProgram) -> u32 {
    let access = match program.access {
        Access::PrimaryKeys => 0,
        Access::IndexRanges { .. } => 1,
        Access::AllRows => 2,
    };
    let output = match program.output {
        Output::Packets(_) => 0,
        Output::Entries { .. } => 1,
        Output::Aggregates(_) | Output::Groups { .. } => 2,
        Output::Images => 3,
    };
    access * 8 + output * 2 + u32::from(program.filter.is_some())
}

fn operation(program: &ReadProgram) -> &'static str {
    match (&program.access, &program.output) {
        (Access::PrimaryKeys, _) => "keys",
        (Access::IndexRanges { .. }, Output::Aggregates(_) | Output::Groups { .. }) => "ranges, aggregated",
        (Access::IndexRanges { .. }, Output::Entries { .. }) => "ranges, sorted",
        (Access::IndexRanges { .. }, _) => "ranges",
        (Access::AllRows, Output::Aggregates(_) | Output::Groups { .. }) => "all rows, aggregated",
        (Access::AllRows, _) => "all rows",
    }
}
