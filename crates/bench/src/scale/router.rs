//! Chooses the threads of reads. Uses the controller, weights and rules of `junctor_gateway::route`, with
//! simulated loads.
//!
//! This module does for a simulated thread what `Route` (`crates/gateway/src/route/choice.rs`) does for a
//! real one. It asks the controller for each read. For each owner, it remembers the cheapest query block on
//! another thread. It renews prices and weights with each sample of the loads.

use junctor_gateway::route::adaptive::{
    Candidate, Controller, Decision, Load, Measurement, ReadLocation, RemoteCandidates,
};
use junctor_gateway::route::weighted::{ThreadBusy, WeightedRule, Weights};
use junctor_gateway::route::{BookedCost, ReadRule};

use junctor_kernel::scheduler::load::ThreadState;

use super::engine::Engine;
use super::layout::Layout;

/// Number of consecutive reads that the rule `local` sends to the same thread, if its own thread cannot read.
const READS_PER_TURN: usize = 4;

/// A read for which a thread must be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Kind of the read, as the controller numbers them.
    pub kind: u8,
    /// Number of keys that it reads; 1 for a range.
    pub units: u32,
    /// The ldm instance that owns its partition.
    pub owner: usize,
}

/// A decision of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The thread that runs the read.
    pub thread: usize,
    /// Set if this read is to be measured.
    pub sample: Option<Sample>,
    /// The cost booked to the thread. [`Router::release`] takes it back after the reply.
    pub booked_cost: BookedCost,
}

/// The state at the decision, for a read that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    kind: u8,
    units: u32,
    away: Option<u16>,
    state: ThreadState,
    waiting_ns: u64,
    sent_ns: u64,
}

/// Sampled load of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadSample {
    /// Utilisation in thousandths.
    pub busy_per_mille: u32,
    /// Mean nanoseconds per task.
    pub task_ns: u64,
}

/// The threads that can read the partitions of one ldm instance.
struct Owner {
    reads_here: bool,
    /// Readers other than this router's thread and the owner's thread.
    others: Vec<usize>,
    /// The current choice among `others`, and the index of the next reader to compare it with.
    best: Option<usize>,
    challenger: usize,
}

impl Owner {
    /// The current choice, or its challenger if fewer tasks wait at the challenger, as in `Route`.
    fn better_query(&mut self, engine: &Engine) -> Option<usize> {
        let challenger = *self.others.get(self.challenger)?;
        self.challenger = (self.challenger + 1) % self.others.len();
        let chosen = match self.best {
            Some(best) if engine.queue_length(best) <= engine.queue_length(challenger) => best,
            _ => challenger,
        };
        self.best = Some(chosen);
        Some(chosen)
    }
}

/// The routing state of one sql block.
pub struct Router {
    rule: ReadRule,
    own: usize,
    controller: Controller,
    weights: Weights,
    weighted: WeightedRule,
    turns: usize,
    owners: Vec<Owner>,
}

impl Router {
    /// Creates the routing state of an sql block on thread `own`.
    pub fn new(rule: ReadRule, own: usize, layout: &Layout) -> Router {
        let owner = |instance: usize| {
            let readers = &layout.readers[instance];
            let others = readers.iter().copied().filter(|thread| *thread != own && *thread != layout.ldm[instance]);
            Owner { reads_here: readers.contains(&own), others: others.collect(), best: None, challenger: 0 }
        };
        let mut router = Router {
            rule,
            own,
            controller: Controller::new(own as u16, layout.threads()),
            weights: Weights::default(),
            weighted: WeightedRule::default(),
            turns: 0,
            owners: (0..layout.ldm.len()).map(owner).collect(),
        };
        router.on_load_samples(layout, &vec![LoadSample::default(); layout.threads()], 1);
        router
    }

    /// Chooses the thread of a read, and books its predicted cost to that thread.
    pub fn choose(&mut self, read: Read, layout: &Layout, engine: &Engine) -> Route {
        let owner = read.owner;
        let route = self.apply_rule(read, layout, engine);
        let owner_thread = layout.ldm[owner];
        // A query block outside the owner's group forwards the read to the owner.
        let can_read = route.thread == owner_thread || layout.readers[owner].contains(&route.thread);
        Route { thread: if can_read { route.thread } else { owner_thread }, ..route }
    }

    fn apply_rule(&mut self, read: Read, layout: &Layout, engine: &Engine) -> Route {
        let owner = read.owner;
        let plain = |thread| Route { thread, sample: None, booked_cost: BookedCost::default() };
        let owner_thread = layout.ldm[owner];
        match self.rule {
            ReadRule::Adaptive => self.adapt(read, layout, engine),
            ReadRule::Owner => plain(owner_thread),
            ReadRule::Local if self.owners[owner].reads_here => plain(self.own),
            ReadRule::Local => {
                let readers = &layout.readers[owner];
                self.turns = (self.turns + 1) % ((readers.len() + 1) * READS_PER_TURN);
                plain(readers.get(self.turns / READS_PER_TURN).copied().unwrap_or(owner_thread))
            }
            ReadRule::Weights => {
                let readers: Vec<u16> = layout.readers[owner].iter().map(|thread| *thread as u16).collect();
                let chosen = self.weighted.choose(&mut self.weights, owner_thread as u16, &readers, read.kind >= 2);
                plain(usize::from(chosen))
            }
        }
    }

    /// Takes back the booked cost of a read that has been answered.
    pub fn release(&mut self, booked_cost: BookedCost) {
        self.controller.release(booked_cost);
    }

    /// Records a measured read that took `service_ns` and was answered at `now_ns`.
    pub fn observe(&mut self, sample: Sample, service_ns: u64, now_ns: u64) {
        let Sample { kind, units, away, state, waiting_ns, sent_ns } = sample;
        let total_ns = now_ns - sent_ns;
        self.controller.observe(&Measurement { kind, units, away, state, service_ns, waiting_ns, total_ns });
    }

    /// Renews prices, weights and the cheapest query blocks. `elapsed_ns` is the time since the last call.
    pub fn on_load_samples(&mut self, layout: &Layout, samples: &[LoadSample], elapsed_ns: u64) {
        let busy = |(thread, sample): (usize, &LoadSample)| ThreadBusy {
            busy_per_mille: sample.busy_per_mille,
            signals_per_turn: 1,
            keeps_free: layout.recv.contains(&thread) || layout.tc.contains(&thread),
            reads: layout.has_query[thread] || layout.ldm.contains(&thread),
            owns: layout.ldm.contains(&thread),
        };
        let busy: Vec<ThreadBusy> = samples.iter().enumerate().map(busy).collect();
        self.weights.adjust(&busy);
        // The controller needs this router's thread first.
        for thread in std::iter::once(self.own).chain((0..samples.len()).filter(|thread| *thread != self.own)) {
            let (sample, thread) = (&samples[thread], thread as u16);
            let load = Load { busy_per_mille: sample.busy_per_mille, signal_ns: sample.task_ns };
            self.controller.set_load(thread, &load, elapsed_ns, self.weights.factor(thread));
        }
        let Router { owners, controller, .. } = self;
        for owner in owners {
            owner.best = owner.others.iter().copied().min_by_key(|thread| controller.price(*thread as u16));
        }
    }

    fn adapt(&mut self, Read { kind, units, owner }: Read, layout: &Layout, engine: &Engine) -> Route {
        let owner_thread = layout.ldm[owner];
        let state = |thread| if engine.sleeps(thread) { ThreadState::Sleeping } else { ThreadState::Executing };
        let candidate = |thread: usize| Candidate {
            thread: thread as u16,
            queue_length: engine.queue_length(thread) as u32,
            state: state(thread),
        };
        let now_ns = engine.now_ns();
        let is_own = owner_thread == self.own;
        let Router { owners, controller, own, .. } = self;
        let known = &mut owners[owner];
        let may_read_here = is_own || known.reads_here;
        let away = || RemoteCandidates {
            owner: (!is_own).then(|| candidate(owner_thread)),
            query: known.better_query(engine).map(candidate),
        };
        let Decision { location, is_sampled, booked_cost } = controller.choose(kind, units, may_read_here, away);
        let thread = match location {
            ReadLocation::Here => *own,
            ReadLocation::Owner => owner_thread,
            ReadLocation::Query => known.best.unwrap_or(owner_thread),
        };
        let away = (thread != *own).then_some(thread as u16);
        let waiting_ns = controller.waiting_ns(booked_cost);
        let sample = Sample { kind, units, away, state: state(thread), waiting_ns, sent_ns: now_ns };
        Route { thread, sample: is_sampled.then_some(sample), booked_cost }
    }
}
