//! The ends of the nodes' lives: when a life ends and how, and the driver that ends it.

use std::collections::BTreeMap;

use junctor_kernel::simulated::{DiskCrash, DiskFaults, DiskOperation, NodeEnd, SlowWindow};
use junctor_kernel::{ArmedCrash, CrashPoint, Duration, Random, Time};
use junctor_node::NodeHost;
use junctor_signals::{Signal, crash_point};

use crate::cluster::{Cluster, ClusterSimulation, DURABLE_NODES, SERVING, SlowReader, end_all, stop_all};
use crate::fleet::TimeDriver;
use crate::plan::RestartPlan;

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
    /// Number of times that all connections were ended instead of the nodes.
    pub spared: u64,
}

impl EndCounts {
    /// All ends.
    pub fn total(&self) -> u64 {
        self.stops + self.moments + self.points + self.disk + self.spared
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
    /// Factor by which disk operations are slower than usual until the next end.
    pub disk_slowness: u64,
    /// The way in which nodes crash.
    pub crash: NodeEnd,
    /// Whether all connections end instead of the nodes.
    pub spares_nodes: bool,
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
            let hits = 1 << random.below(8);
            ArmedCrash { point, hit: 1 + random.below(hits) }
        });
        let is_stop = random.one_in(plan.stop_one_in);
        let crash = if random.one_in(plan.power_one_in) { NodeEnd::Power } else { NodeEnd::Process };
        // Durable nodes that cannot keep their data are spared: all connections end instead.
        let spares_nodes = plan.durable && !DURABLE_NODES;
        let disk = random.one_in(plan.disk_one_in).then(|| {
            let operation = DISK_OPERATIONS[random.below(DISK_OPERATIONS.len() as u64) as usize];
            let operations = 1 << random.below(8);
            DiskCrash { operation, nth: 1 + random.below(operations), end: crash }
        });
        let disk_slowness = if random.one_in(plan.slow_one_in) { 2 + random.below(20) } else { 1 };
        let (armed, disk) = if spares_nodes { (None, None) } else { (armed, disk) };
        Some(PlannedEnd { at, is_stop, armed, disk, disk_slowness, crash, spares_nodes })
    }

    /// Draws the end of a recovery that begins now. Most recoveries run to their end.
    pub fn next_end_of_recovery(&mut self, now: Time) -> Option<PlannedEnd> {
        if self.random.one_in(3) { self.next_end(now) } else { None }
    }
}

/// Advances time with the slow reader until the planned end, and ends the nodes.
pub struct LifeDriver<'a> {
    slow_reader: SlowReader<'a>,
    nodes: usize,
    planned: Option<PlannedEnd>,
    counts: &'a mut EndCounts,
    ended: Option<Result<(), String>>,
}

impl Cluster {
    /// Splits the cluster into the simulation and a driver that ends the present life as planned.
    pub fn with_driver<'a>(
        &'a mut self,
        (hold_one_in, seed): (u64, u64),
        planned: Option<PlannedEnd>,
        counts: &'a mut EndCounts,
    ) -> (&'a mut ClusterSimulation, LifeDriver<'a>) {
        let nodes: Vec<_> = self.nodes().collect();
        // Replaces what an earlier driver has armed and nobody has hit.
        let crash = planned.map_or(NodeEnd::Process, |planned| planned.crash);
        nodes.iter().for_each(|&node| self.simulation.arm_crash(node, None, crash));
        self.simulation.arm_crash(SERVING, planned.and_then(|planned| planned.armed), crash);
        self.simulation.arm_disk_crash(SERVING, planned.and_then(|planned| planned.disk));
        let factor = planned.map_or(1, |planned| planned.disk_slowness);
        let slow = SlowWindow { from: Time(0), until: Time(u64::MAX), factor, lane: None };
        let faults = DiskFaults { slow: vec![slow], ..DiskFaults::default() };
        nodes.iter().for_each(|&node| self.simulation.set_disk_faults(node, faults.clone()));
        let (simulation, slow_reader) = self.with_slow_reader(hold_one_in, seed);
        let driver = LifeDriver { slow_reader, nodes: nodes.len(), planned, counts, ended: None };
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

    /// The result of the planned end: an error if the nodes could not stop. `Ok` if they have not ended.
    pub fn into_result(self) -> Result<(), String> {
        self.ended.unwrap_or(Ok(()))
    }

    fn crash(&mut self, simulation: &mut ClusterSimulation, end: NodeEnd) {
        end_all(simulation, self.nodes, end);
        self.ended.get_or_insert(Ok(()));
    }

    /// Ends all nodes if one has crashed at a crash point or in the middle of an operation of its disk.
    fn notice_crash(&mut self, simulation: &mut ClusterSimulation, end: NodeEnd) -> bool {
        let (points, disk) = (simulation.take_crashes().len() as u64, simulation.take_disk_crashes().len() as u64);
        self.counts.points += points;
        self.counts.disk += disk;
        if points + disk > 0 {
            self.crash(simulation, end);
        }
        points + disk > 0
    }
}

impl TimeDriver<Signal, NodeHost> for LifeDriver<'_> {
    fn advance(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
        let Some(planned) = self.planned else { return self.slow_reader.advance(simulation, duration) };
        let is_due = simulation.now().plus(duration) >= planned.at;
        let duration = if is_due { planned.at.since(simulation.now()) } else { duration };
        self.slow_reader.advance(simulation, duration);
        if self.notice_crash(simulation, planned.crash) || !is_due {
            return;
        }
        if planned.spares_nodes {
            self.counts.spared += 1;
            self.ended = Some(Ok(()));
        } else if planned.is_stop {
            let stopped = stop_all(simulation, self.nodes);
            if !self.notice_crash(simulation, planned.crash) {
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

    fn plan() -> RestartPlan {
        RestartPlan {
            durable: false,
            ends_max: 400,
            life_ms_max: 100,
            stop_one_in: 4,
            power_one_in: 2,
            point_one_in: 2,
            disk_one_in: 4,
            slow_one_in: 4,
            points: Vec::new(),
            required_points: Vec::new(),
        }
    }

    #[test]
    fn ends_of_every_kind_are_drawn_up_to_the_maximum() {
        let plan = plan();
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
        assert!((50..150).contains(&count(&|end| end.disk_slowness > 1)));
        assert!(ends.iter().all(|end| end.at > Time(5) && end.at <= Time(5).plus(Duration::from_millis(100))));
        assert!(count(&|end| end.at <= Time(0).plus(Duration::from_millis(1))) > 50);
        assert_eq!(Ends::new(None, 1).next_end(Time(0)), None);
    }

    #[test]
    fn a_plan_may_limit_the_crash_points() {
        let plan = RestartPlan { points: vec!["log.sync.before".to_owned()], point_one_in: 1, ..plan() };
        let mut ends = Ends::new(Some(&plan), 1);
        let points = std::iter::from_fn(|| ends.next_end(Time(0))).filter_map(|end| end.armed);
        assert!(points.map(|armed| armed.point).all(|point| point == crash_point::LOG_SYNC.before()));
    }
}
