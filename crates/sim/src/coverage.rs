//! Runs a plan until nodes have crashed often enough at each crash point.
//!
//! Each run aims at one point, the least tried of those that lack crashes. Rare points get as many runs as
//! they need, which random choices among all points would not give them.

use std::collections::BTreeMap;

use junctor_kernel::CrashPoint;
use junctor_signals::crash_point;

use crate::crashes::Crashes;
use crate::plan::{Plan, RestartPlan};
use crate::run::{Outcome, run};

/// Number of runs that may aim at a point, for each crash that it needs.
const RUNS_PER_CRASH: u64 = 20;

/// Restores run outside of a node's lives. `crates/server/tests/durability` kills them. Durable nodes have no
/// backups and no voters, so their points are left to plans of chains and of members.
const OTHER: crash_point::CrashStep = crash_point::BACKUP_RESTORE;

const ABANDON: &str = "checkpoint.abandon";

/// Points and their crashes so far.
#[derive(Debug)]
pub struct Coverage {
    plan: Plan,
    restarts: RestartPlan,
    next_seed: u64,
    least: u64,
    /// The points, each with the number of runs that aimed at it.
    runs: BTreeMap<CrashPoint, u64>,
    crashes: Crashes,
}

impl Coverage {
    /// Covers these points, or all if none are named, with at least `least` crashes each.
    ///
    /// # Errors
    /// The plan has no durable nodes, or a point is unknown.
    pub fn new(plan: Plan, seed: u64, least: u64, points: &[String]) -> Result<Self, String> {
        let restarts = plan.restarts.clone().filter(|restarts| restarts.durable);
        let restarts = restarts.ok_or("the nodes of the plan are not durable")?;
        let named = points.iter().map(|name| crash_point::by_name(name).ok_or(format!("unknown crash point '{name}'")));
        let mut points = named.collect::<Result<Vec<CrashPoint>, String>>()?;
        if points.is_empty() {
            let is_reached = |point: &CrashPoint| {
                let is_of_others = crash_point::is_of_backups(*point) || crash_point::is_of_members(*point);
                ![OTHER.before(), OTHER.after()].contains(point) && !is_of_others
            };
            points = crash_point::all().filter(is_reached).collect();
        }
        let runs = points.into_iter().map(|point| (point, 0)).collect();
        Ok(Self { plan, restarts, next_seed: seed, least, runs, crashes: Crashes::default() })
    }

    /// Runs seeds, and reports violations and the crashes at each point. Returns whether all runs held and
    /// every point has its crashes.
    pub fn run(mut self, mut report: impl FnMut(&str)) -> bool {
        let (mut seeds, mut failed) = (0, 0);
        while let Some(point) = self.next_point() {
            let (seed, outcome) = self.run_at(point);
            seeds += 1;
            if !outcome.violations.is_empty() {
                failed += 1;
                let name = crash_point::name(point).unwrap_or_default();
                report(&format!("FAILED seed={seed} at {name}: {}", outcome.violations.join("\n  ")));
            }
        }
        report(&self.crashes.to_string());
        let lacking = self.lacking().count();
        report(&format!("{seeds} seeds, {failed} failed, {lacking} points with less than {} crashes", self.least));
        failed + lacking == 0
    }

    fn lacking(&self) -> impl Iterator<Item = (&CrashPoint, &u64)> {
        self.runs.iter().filter(|(point, _)| self.crashes.at(**point).all < self.least)
    }

    fn next_point(&self) -> Option<CrashPoint> {
        let open = self.lacking().filter(|(_, runs)| **runs < self.least * RUNS_PER_CRASH);
        open.min_by_key(|(_, runs)| **runs).map(|(point, _)| *point)
    }

    fn run_at(&mut self, point: CrashPoint) -> (u64, Outcome) {
        let name = crash_point::name(point).unwrap_or_default();
        // A full disk is the reason for which simulated checkpoints are abandoned.
        let full_one_in = if name.starts_with(ABANDON) { 1 } else { self.restarts.full_one_in };
        self.plan.restarts = Some(RestartPlan { points: vec![name], full_one_in, ..self.restarts.clone() });
        let seed = self.next_seed;
        self.next_seed += 1;
        let outcome = run(&self.plan, seed);
        self.crashes.add(&outcome.crashes);
        *self.runs.entry(point).or_default() += 1;
        (seed, outcome)
    }
}
