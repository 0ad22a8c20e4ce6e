//! The ends of the nodes' lives: when a life ends and how, and the driver that ends it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use junctor_kernel::simulated::{Disk, DiskCrash, DiskOperation, NodeEnd};
use junctor_kernel::{ArmedCrash, CrashPoint, Duration, Random, Time};
use junctor_node::NodeHost;
use junctor_signals::{Signal, crash_point};

use crate::backup_program::BackupProgram;
use crate::cluster::{Cluster, ClusterSimulation, SERVING, SlowReader, end_all, stop_all};
use crate::crashes::Crashes;
use crate::evictions::Evictions;
use crate::fleet::TimeDriver;
use crate::plan::RestartPlan;
use crate::trouble::DiskTrouble;

/// The operations in the middle of which a node may end.
const DISK_OPERATIONS: [DiskOperation; 6] = [
    DiskOperation::Open,
    DiskOperation::Write,
    DiskOperation::Sync,
    DiskOperation::SyncFolder,
    DiskOperation::Rename,
    DiskOperation::Delete,
];

/// How often nodes ended, in each way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// Clean stops.
    pub stops: u64,
    /// Crashes at drawn moments.
    pub moments: u64,
    /// Crashes at crash points.
    pub points: u64,
    /// Crashes in the middle of an operation of the disk.
    pub disk: u64,
    /// Stops with a message because an operation of the disk failed.
    pub halts: u64,
    /// Times in which the disk was full. They end no life.
    pub full: u64,
    /// Bits that flipped while the node was down. They end no life.
    pub flips: u64,
    /// Flipped bits because of which the node refused to start.
    pub refusals: u64,
    /// Directories that were restored from a backup. They begin a life.
    pub restores: u64,
}

impl EndCounts {
    /// All ends.
    pub fn total(&self) -> u64 {
        self.stops + self.moments + self.points + self.disk + self.halts
    }
}

/// Draws how the lives of a run end.
#[derive(Debug)]
pub struct Ends<'p> {
    plan: Option<&'p RestartPlan>,
    random: Random,
    left: u64,
}

/// The drawn end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedEnd {
    /// The moment at which the life ends, unless it ends earlier at a crash point.
    pub at: Time,
    /// Whether the end at that moment is a clean stop.
    pub is_stop: bool,
    /// The crash point at which the life ends, if it is hit in time.
    pub armed: Option<ArmedCrash>,
    /// The disk operation of the serving node during which the life ends, if the operation occurs in time.
    pub disk: Option<DiskCrash>,
    /// The trouble of the serving node's disk.
    pub trouble: DiskTrouble,
    /// The way in which nodes crash.
    pub crash: NodeEnd,
}

impl<'p> Ends<'p> {
    /// The ends of a run with this plan, drawn from `seed`.
    pub fn new(plan: Option<&'p RestartPlan>, seed: u64) -> Self {
        Self { plan, random: Random::new(seed), left: plan.map_or(0, |plan| plan.ends_max) }
    }

    /// Draws the end of a life whose sessions begin now. `None` if the run has had all its ends.
    pub fn next_end(&mut self, now: Time) -> Option<PlannedEnd> {
        let plan = self.plan.filter(|_| self.left > 0)?;
        self.left -= 1;
        let random = &mut self.random;
        // Short lives are as frequent as long ones, because they end before caches and logs are full.
        let longest_us = plan.life_ms_max * 1_000 / [1, 10, 100][random.below(3) as usize];
        let at = now.plus(Duration::from_micros(1 + random.below(longest_us)));
        let armed = random.one_in(plan.point_one_in).then(|| {
            let named: Vec<CrashPoint> = plan.points.iter().filter_map(|name| crash_point::by_name(name)).collect();
            let points = if named.is_empty() { crash_point::all().collect() } else { named };
            let point = points[random.below(points.len() as u64) as usize];
            // Some points are hit once in a life.
            let is_first = plan.points.len() == 1 && random.one_in(2);
            let hits = if is_first { 1 } else { 1 << random.below(8) };
            ArmedCrash { point, hit: 1 + random.below(hits) }
        });
        let is_stop = random.one_in(plan.stop_one_in);
        let crash = if random.one_in(plan.power_one_in) { NodeEnd::Power } else { NodeEnd::Process };
        let disk = random.one_in(plan.disk_one_in).then(|| {
            let operation = DISK_OPERATIONS[random.below(DISK_OPERATIONS.len() as u64) as usize];
            let operations = 1 << random.below(8);
            DiskCrash { operation, nth: 1 + random.below(operations), end: crash }
        });
        let trouble = DiskTrouble::draw(plan, random, now, longest_us);
        Some(PlannedEnd { at, is_stop, armed, disk, trouble, crash })
    }

    /// Draws whether the next life begins with a directory that is restored from a backup.
    pub fn next_restore(&mut self) -> bool {
        self.random.one_in(3)
    }

    /// Draws a random source for the bit that flips before the next life, if one does.
    pub fn next_flip(&mut self) -> Option<Random> {
        let chances = self.plan.map_or(0, |plan| plan.rot_one_in);
        self.random.one_in(chances).then(|| Random::new(self.random.word()))
    }

    /// Draws the end of a recovery that begins now. Most recoveries run to their end, unless the plan aims at
    /// a single point, which may be one of recovery.
    pub fn next_end_of_recovery(&mut self, now: Time) -> Option<PlannedEnd> {
        let has_aim = self.plan.is_some_and(|plan| plan.points.len() == 1);
        if has_aim || self.random.one_in(3) { self.next_end(now) } else { None }
    }
}

/// Advances time with the slow reader until the planned end, and ends the nodes.
pub struct LifeDriver<'a> {
    slow_reader: SlowReader<'a>,
    nodes: usize,
    planned: Option<PlannedEnd>,
    evictions: Option<Evictions>,
    counts: &'a mut EndCounts,
    crashes: &'a mut Crashes,
    backup_program: Option<Rc<RefCell<BackupProgram>>>,
    /// The hits of the serving node's crash points in its earlier lives.
    earlier_hits: BTreeMap<CrashPoint, u64>,
    /// Whether a bit of a stored file has flipped, for which a node may refuse to start.
    has_rot: bool,
    is_full: bool,
    has_halted: bool,
    ended: Option<Result<(), String>>,
}

impl Cluster {
    /// Splits the cluster into the simulation and a driver that ends the present life as planned.
    pub fn with_driver<'a>(
        &'a mut self,
        (hold_one_in, seed): (u64, u64),
        planned: Option<PlannedEnd>,
        (counts, crashes): (&'a mut EndCounts, &'a mut Crashes),
    ) -> (&'a mut ClusterSimulation, LifeDriver<'a>) {
        let nodes: Vec<_> = self.nodes().collect();
        // Replaces what an earlier driver has armed and nobody has hit.
        let crash = planned.map_or(NodeEnd::Process, |planned| planned.crash);
        nodes.iter().for_each(|&node| self.simulation.arm_crash(node, None, crash));
        let armed = planned.and_then(|planned| planned.armed);
        let is_of_backups = armed.is_some_and(|armed| crash_point::is_of_backups(armed.point));
        let at = if is_of_backups { nodes[nodes.len() - 1] } else { SERVING };
        self.simulation.arm_crash(at, armed, crash);
        self.simulation.arm_disk_crash(SERVING, planned.and_then(|planned| planned.disk));
        let trouble = planned.map(|planned| planned.trouble).unwrap_or_default();
        let slow = DiskTrouble { slow: trouble.slow, ..DiskTrouble::default() };
        nodes.iter().for_each(|&node| self.simulation.set_disk_faults(node, slow.faults(None)));
        self.simulation.set_disk_faults(SERVING, trouble.faults(None));
        let (has_rot, earlier_hits) = (self.has_rot(), self.earlier_hits.clone());
        let backup_program = self.backup_program.clone();
        let (simulation, slow_reader) = self.with_slow_reader(hold_one_in, seed);
        let nodes = nodes.len();
        let driver = LifeDriver {
            slow_reader,
            nodes,
            planned,
            evictions: None,
            counts,
            crashes,
            backup_program,
            earlier_hits,
            has_rot,
            is_full: false,
            has_halted: false,
            ended: None,
        };
        (simulation, driver)
    }

    /// The hits of each crash point so far, over all nodes and lives, by name.
    pub fn crash_point_hits(&self) -> BTreeMap<String, u64> {
        let mut hits = BTreeMap::new();
        for node in self.nodes() {
            for (point, count) in self.simulation.crash_point_hits(node) {
                let name = crash_point::name(point).unwrap_or_else(|| point.number().to_string());
                *hits.entry(name).or_default() += count;
            }
        }
        hits
    }
}

impl LifeDriver<'_> {
    /// How many times the slow reader has held a partition.
    pub fn held(&self) -> u64 {
        self.slow_reader.held()
    }

    /// Lets nodes crash and be evicted during the life.
    pub fn evict(&mut self, evictions: Option<Evictions>) {
        self.evictions = evictions;
    }

    /// Lets the members learn of the nodes that have crashed. No other node crashes any more.
    pub fn finish_evictions(&mut self, simulation: &mut ClusterSimulation) {
        while let Some(evictions) = &mut self.evictions {
            if !evictions.end(simulation) {
                break;
            }
            evictions.advance(simulation);
            simulation.run_for(Duration::from_millis(1));
        }
    }

    /// The result of the planned end: an error if the nodes could not stop. `Ok` if they have not ended.
    pub fn into_result(self) -> Result<(), String> {
        self.ended.unwrap_or(Ok(()))
    }

    /// Whether a node has stopped with a message.
    pub fn has_halted(&self) -> bool {
        self.has_halted
    }

    fn crash(&mut self, simulation: &mut ClusterSimulation, end: NodeEnd) {
        end_all(simulation, self.nodes, end);
        self.ended.get_or_insert(Ok(()));
    }

    /// Ends all nodes if one has crashed at a crash point or in the middle of an operation of its disk, or
    /// has stopped with a message. A stop for which nothing was planned is an error.
    fn notice_end(&mut self, simulation: &mut ClusterSimulation) -> bool {
        let (crashes, disk) = (simulation.take_crashes(), simulation.take_disk_crashes().len() as u64);
        self.counts.points += crashes.len() as u64;
        self.counts.disk += disk;
        let mut points = 0;
        for (node, point) in crashes {
            points += u64::from(!self.evictions.as_ref().is_some_and(|it| it.expects(node)));
            let mut hits = simulation.crash_point_hits(node);
            for (point, earlier) in self.earlier_hits.iter().filter(|_| node == SERVING) {
                hits.entry(*point).and_modify(|count| *count -= earlier);
            }
            self.crashes.count(point, &hits);
        }
        let halts = simulation.take_halts();
        if let Some((node, message)) = halts.first() {
            self.has_halted = true;
            match self.planned.is_some_and(|planned| planned.trouble.failing.is_some()) {
                true => self.counts.halts += 1,
                false if self.has_rot => self.counts.refusals += 1,
                false => self.ended = Some(Err(format!("node {} stopped: {message}", node.0))),
            }
        }
        let has_ended = points + disk > 0 || self.has_halted;
        if has_ended {
            self.crash(simulation, self.planned.map_or(NodeEnd::Process, |planned| planned.crash));
        }
        has_ended
    }

    /// Lets the backup program copy files of the serving node.
    fn copy_files(&mut self, simulation: &ClusterSimulation) {
        let Some(mut program) = self.backup_program.as_ref().map(|program| program.borrow_mut()) else { return };
        if let Some(disk) = simulation.disk(SERVING) {
            program.work(disk, simulation.now());
        }
        program.crashed_at.drain(..).for_each(|point| self.crashes.count_program(point));
    }

    /// Fills the disk when its time has come, and makes room again.
    fn fill_disk(&mut self, simulation: &mut ClusterSimulation) {
        let Some(trouble) = self.planned.map(|planned| planned.trouble) else { return };
        let is_full = trouble.full.is_some_and(|(from, until)| (from..until).contains(&simulation.now()));
        if is_full != self.is_full {
            self.is_full = is_full;
            self.counts.full += u64::from(is_full);
            let capacity_bytes = simulation.disk(SERVING).filter(|_| is_full).map(Disk::used_bytes);
            simulation.set_disk_faults(SERVING, trouble.faults(capacity_bytes));
        }
    }
}

impl TimeDriver<Signal, NodeHost> for LifeDriver<'_> {
    fn advance(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
        self.fill_disk(simulation);
        self.copy_files(simulation);
        if let Some(evictions) = &mut self.evictions {
            evictions.advance(simulation);
        }
        let due = self.planned.filter(|planned| simulation.now().plus(duration) >= planned.at);
        let duration = due.map_or(duration, |planned| planned.at.since(simulation.now()));
        self.slow_reader.advance(simulation, duration);
        if self.notice_end(simulation) {
            return;
        }
        let Some(planned) = due else { return };
        if planned.is_stop {
            let stopped = stop_all(simulation, self.nodes);
            if !self.notice_end(simulation) {
                self.counts.stops += 1;
                self.ended = Some(stopped);
                self.crash(simulation, NodeEnd::Process);
            }
        } else {
            self.counts.moments += 1;
            self.crash(simulation, planned.crash);
        }
    }

    fn have_nodes_ended(&self) -> bool {
        self.ended.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_every_kind_are_drawn_up_to_the_maximum() {
        let plan = RestartPlan::sample();
        let draw = |seed| {
            let mut ends = Ends::new(Some(&plan), seed);
            std::iter::from_fn(move || ends.next_end(Time(5))).collect::<Vec<PlannedEnd>>()
        };
        let ends = draw(1);
        assert_eq!((ends.len(), &draw(1)), (400, &ends));
        assert_ne!(draw(2), ends);
        let count = |matches: &dyn Fn(&PlannedEnd) -> bool| ends.iter().filter(|end| matches(end)).count();
        assert!((50..150).contains(&count(&|end| end.is_stop)));
        assert!((150..250).contains(&count(&|end| end.crash == NodeEnd::Power)));
        assert!((150..250).contains(&count(&|end| end.armed.is_some())));
        assert!((50..150).contains(&count(&|end| end.disk.is_some())));
        assert!((50..150).contains(&count(&|end| end.trouble.slow.is_some())));
        assert!(ends.iter().all(|end| end.at > Time(5) && end.at <= Time(5).plus(Duration::from_millis(100))));
        assert!(count(&|end| end.at <= Time(0).plus(Duration::from_millis(1))) > 50);
        assert_eq!(Ends::new(None, 1).next_end(Time(0)), None);
    }

    #[test]
    fn a_plan_may_limit_the_crash_points() {
        let plan = RestartPlan { points: vec!["log.sync.before".to_owned()], point_one_in: 1, ..RestartPlan::sample() };
        let mut ends = Ends::new(Some(&plan), 1);
        let points = std::iter::from_fn(|| ends.next_end(Time(0))).filter_map(|end| end.armed);
        assert!(points.map(|armed| armed.point).all(|point| point == crash_point::LOG_SYNC.before()));
    }
}
