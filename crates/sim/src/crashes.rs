//! Where nodes crashed: how often at each crash point, and what the node was doing then.

use std::collections::BTreeMap;
use std::fmt;

use junctor_kernel::CrashPoint;
use junctor_signals::crash_point::{self, CrashStep, STEPS};

/// What a node does besides the work of its sessions. Several activities may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Recovery after a start.
    Recovery,
    /// A round of a checkpoint.
    Checkpoint,
    /// A schema change.
    SchemaChange,
    /// A backup that has pinned the checkpoint and the log.
    Backup,
}

impl Activity {
    /// All activities, in the order of the columns of a report.
    pub const ALL: [Self; 4] = [Self::Recovery, Self::Checkpoint, Self::SchemaChange, Self::Backup];

    /// Whether the activity was under way at a crash. `hits` are those of the present life, including the
    /// fatal one.
    fn is_under_way(self, at: CrashPoint, hits: &BTreeMap<CrashPoint, u64>) -> bool {
        let count = |point: CrashPoint| hits.get(&point).copied().unwrap_or(0);
        let begun = |step: CrashStep| count(step.before());
        let ended = |step: CrashStep| count(step.after());
        match self {
            Self::Recovery => at == crash_point::RECOVERY_CLEAN.after() || ended(crash_point::RECOVERY_CLEAN) == 0,
            Self::Checkpoint => {
                let over = ended(crash_point::CHECKPOINT_SWITCH) + ended(crash_point::CHECKPOINT_ABANDON);
                is_of("checkpoint.", at) || at == crash_point::PAIR_MANIFEST.after() || {
                    begun(crash_point::CHECKPOINT_BEGIN) > over
                }
            }
            Self::SchemaChange => {
                let mut jobs = STEPS.iter().filter(|(_, name, _)| name.starts_with("job."));
                is_of("job.", at) || jobs.any(|(step, ..)| begun(*step) > ended(*step))
            }
            Self::Backup => is_of("backup.", at) || begun(crash_point::BACKUP_PIN) > begun(crash_point::BACKUP_UNPIN),
        }
    }
}

fn is_of(prefix: &str, point: CrashPoint) -> bool {
    crash_point::name(point).is_some_and(|name| name.starts_with(prefix))
}

/// The crashes at one crash point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointCrashes {
    /// All crashes.
    pub all: u64,
    /// Crashes during nothing but the work of sessions.
    pub plain: u64,
    /// Crashes during each activity, in the order of [`Activity::ALL`].
    pub during: [u64; Activity::ALL.len()],
}

/// The crashes at all crash points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    points: BTreeMap<CrashPoint, PointCrashes>,
}

impl Crashes {
    /// Counts a crash. `hits` are those of the node's present life, including the fatal one.
    pub fn count(&mut self, at: CrashPoint, hits: &BTreeMap<CrashPoint, u64>) {
        let under_way = Activity::ALL.map(|activity| activity.is_under_way(at, hits));
        let crashes = self.points.entry(at).or_default();
        crashes.all += 1;
        crashes.plain += u64::from(!under_way.contains(&true));
        crashes.during.iter_mut().zip(under_way).for_each(|(count, is_under_way)| *count += u64::from(is_under_way));
    }

    /// Counts a crash of the backup program.
    pub fn count_program(&mut self, at: CrashPoint) {
        let crashes = self.points.entry(at).or_default();
        crashes.all += 1;
        crashes.during[Activity::Backup as usize] += 1;
    }

    /// Adds the crashes of another run.
    pub fn add(&mut self, other: &Self) {
        for (point, more) in &other.points {
            let crashes = self.points.entry(*point).or_default();
            crashes.all += more.all;
            crashes.plain += more.plain;
            crashes.during.iter_mut().zip(more.during).for_each(|(count, more)| *count += more);
        }
    }

    /// The crashes at a point.
    pub fn at(&self, point: CrashPoint) -> PointCrashes {
        self.points.get(&point).copied().unwrap_or_default()
    }
}

impl fmt::Display for Crashes {
    /// A table with a line for each point, also for points without a crash.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [recovery, checkpoint, change, backup] = ["recovery", "checkpoint", "DDL", "backup"];
        writeln!(formatter, "{:28} crashes   plain {recovery:>8} {checkpoint:>10} {change:>5} {backup:>6}", "point")?;
        for point in crash_point::all() {
            let name = crash_point::name(point).unwrap_or_default();
            let PointCrashes { all, plain, during: [recovery, checkpoint, change, backup] } = self.at(point);
            write!(formatter, "{name:28} {all:7} {plain:7} ")?;
            writeln!(formatter, "{recovery:8} {checkpoint:10} {change:5} {backup:6}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(points: &[CrashPoint]) -> PointCrashes {
        let mut hits = BTreeMap::new();
        points.iter().for_each(|point| *hits.entry(*point).or_default() += 1);
        let (mut crashes, at) = (Crashes::default(), points[points.len() - 1]);
        crashes.count(at, &hits);
        crashes.add(&crashes.clone());
        let found = crashes.at(at);
        assert_eq!(found.all, 2);
        PointCrashes { plain: found.plain / 2, during: found.during.map(|count| count / 2), ..found }
    }

    #[test]
    fn the_hits_of_a_life_tell_what_the_node_was_doing() {
        use crash_point::{
            BACKUP_PIN, BACKUP_UNPIN, CHECKPOINT_BEGIN, CHECKPOINT_SWITCH, JOB_MAKE, JOB_PUBLISH, LOG_SYNC,
            RECOVERY_CLEAN,
        };
        let recovered = [RECOVERY_CLEAN.before(), RECOVERY_CLEAN.after()];
        let after = |points: &[CrashPoint]| crash(&[&recovered[..], points, &[LOG_SYNC.before()]].concat()).during;
        assert_eq!(crash(&[LOG_SYNC.before()]).during, [1, 0, 0, 0]);
        assert_eq!(crash(&recovered).during, [1, 0, 0, 0]);
        assert_eq!(crash(&[&recovered[..], &[LOG_SYNC.after()]].concat()).plain, 1);
        assert_eq!(after(&[CHECKPOINT_BEGIN.before(), CHECKPOINT_BEGIN.after()]), [0, 1, 0, 0]);
        assert_eq!(after(&[CHECKPOINT_BEGIN.before(), CHECKPOINT_SWITCH.after()]), [0; 4]);
        assert_eq!(after(&[JOB_MAKE.before(), JOB_MAKE.after(), JOB_PUBLISH.before()]), [0, 0, 1, 0]);
        assert_eq!(after(&[JOB_PUBLISH.before(), JOB_PUBLISH.after(), BACKUP_PIN.before()]), [0, 0, 0, 1]);
        assert_eq!(after(&[BACKUP_PIN.before(), BACKUP_PIN.after(), BACKUP_UNPIN.before()]), [0; 4]);
        assert_eq!(crash(&[&recovered[..], &[BACKUP_UNPIN.after()]].concat()).during, [0, 0, 0, 1]);
    }

    #[test]
    fn a_report_has_a_line_for_each_point() {
        assert_eq!(Crashes::default().to_string().lines().count(), 1 + crash_point::all().count());
    }
}
