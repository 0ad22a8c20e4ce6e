//! The crash points of all blocks: one table with their names and meanings.
//!
//! A block marks both sides of each step, for example with
//! `outbox.crash_point(crash_point::LOG_WRITE.before())`. The point before a step is marked before the
//! request or signal that begins the step. The point after a step is marked when its result is known, before
//! anything follows from the result.

use junctor_kernel::{ArmedCrash, CrashPoint};

/// The environment variable with which a test kills a process at a crash point: the name of the point, and
/// optionally a colon and the number of the fatal hit. `docs/generated/crash-points.md` lists the names.
pub const CRASH_VARIABLE: &str = "JUNCTOR_CRASH_AT";

/// A step, with one crash point before it and one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrashStep(u16);

impl CrashStep {
    /// The point before the step.
    pub const fn before(self) -> CrashPoint {
        CrashPoint::new(self.0 * 2)
    }

    /// The point after the step.
    pub const fn after(self) -> CrashPoint {
        CrashPoint::new(self.0 * 2 + 1)
    }
}

macro_rules! crash_points {
    ($($step:ident = $name:literal: $meaning:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers the constants below")]
        enum Number { $($step,)* }

        $(#[doc = $meaning] pub const $step: CrashStep = CrashStep(Number::$step as u16);)*

        /// Every step in the order of its number, with its name and its meaning.
        pub const STEPS: &[(CrashStep, &str, &str)] = &[$(($step, $name, $meaning),)*];
    };
}

crash_points! {
    LOG_COLLECT = "log.collect": "A cycle of the log collects the records of every stream.";
    LOG_WRITE = "log.write": "The log writes the groups of a cycle.";
    LOG_SYNC = "log.sync": "The log syncs the written groups.";
    LOG_PUBLISH = "log.publish": "The log raises the durable number and answers those who await it.";
    LOG_CLOSE = "log.close": "The log writes a closing group when it is idle or stops.";
    LOG_START = "log.start": "The log writes the start group of an incarnation.";
    SEGMENT_CREATE = "segment.create": "A segment of the log is created.";
    SEGMENT_FILL = "segment.fill": "A new segment is filled with zeros.";
    SEGMENT_SYNC = "segment.sync": "A filled segment is synced.";
    SEGMENT_RENAME = "segment.rename": "A trimmed segment is renamed for a later position.";
    SEGMENT_DIRECTORY = "segment.directory": "The directory of the segments is synced.";
    PAIR_IDENTITY = "pair.identity": "A slot of the pair file `identity` is written and synced.";
    PAIR_SETTINGS = "pair.settings": "A slot of the pair file `settings` is written and synced.";
    PAIR_MANIFEST = "pair.manifest": "A slot of the pair file `manifest` is written and synced.";
    CHECKPOINT_BEGIN = "checkpoint.begin": "A round reads its first number and its position in the log.";
    CHECKPOINT_PAGE = "checkpoint.page": "A frame with cells of a page is written.";
    CHECKPOINT_TABLE = "checkpoint.table": "A page table is written.";
    CHECKPOINT_SYNC = "checkpoint.sync": "The files of a round are synced.";
    CHECKPOINT_AWAIT = "checkpoint.await": "A round waits until everything that it wrote is durable in the log.";
    CHECKPOINT_LIST = "checkpoint.list": "The files with the schema and the partitions are written and synced.";
    CHECKPOINT_SWITCH = "checkpoint.switch": "The manifest of a round takes effect.";
    CHECKPOINT_TRIM = "checkpoint.trim": "The log is trimmed to the position of a round.";
    CHECKPOINT_DELETE = "checkpoint.delete": "A file that the manifest no longer names is deleted.";
    CHECKPOINT_ABANDON = "checkpoint.abandon": "A failed round is abandoned.";
    JOB_MAKE = "job.make": "A schema change makes its partitions or layouts.";
    JOB_RECORD = "job.record": "The record of a schema change is formed.";
    JOB_DURABLE = "job.durable": "A schema change waits until its record is durable.";
    JOB_PUBLISH = "job.publish": "A schema change is published to all blocks.";
    JOB_BACKFILL = "job.backfill": "A schema change builds an ordered index.";
    JOB_FILL = "job.fill": "An alteration fills a new unique index.";
    JOB_BATCH = "job.batch": "An alteration commits a batch of entries of a new unique index.";
    JOB_COPY = "job.copy": "An alteration copies the rows of its table.";
    JOB_BLOCK = "job.block": "An alteration blocks writes to its tables.";
    JOB_CHECK = "job.check": "An alteration checks the rows of a new foreign key.";
    JOB_FINISH = "job.finish": "A schema change of several steps forms its last record.";
    JOB_UNDO = "job.undo": "An unfinished schema change is undone.";
    JOB_FREE = "job.free": "The partitions of a dropped table are freed.";
    MARK_EXTEND = "mark.extend": "The durable mark of an AUTO_INCREMENT counter is raised.";
    RECOVERY_SCAN = "recovery.scan": "Recovery reads the groups of the log.";
    RECOVERY_RESYNC = "recovery.resync": "Recovery rewrites and syncs accepted groups.";
    RECOVERY_LOAD = "recovery.load": "Recovery loads pages from checkpoints.";
    RECOVERY_APPLY = "recovery.apply": "Recovery applies operations of the log.";
    RECOVERY_INDEX = "recovery.index": "Recovery builds indexes.";
    RECOVERY_START = "recovery.start": "Recovery begins the next incarnation with a start group.";
    RECOVERY_CLEAN = "recovery.clean": "Recovery deletes unnamed files and undoes unfinished jobs.";
    IMAGES_KEEP = "images.keep": "A backup keeps the images of a transaction that prepares.";
    IMAGES_APPLY = "images.apply": "A backup applies the images of a transaction that commits.";
    EPOCH_INSTALL = "epoch.install": "A node stops the epoch before, and reports to the sequencer of the next one.";
    EPOCH_GATHER = "epoch.gather": "The sequencer of a new epoch starts it with the reports of all members.";
    EPOCH_START = "epoch.start": "A node starts an epoch: the decisions that it lacked go to its blocks.";
    EPOCH_TC = "epoch.tc": "A tc rolls back what an epoch ends.";
    EPOCH_LDM = "epoch.ldm": "An ldm starts an epoch: backups become primaries, lost transactions are undone.";
    NUMBER_REQUEST = "number.request": "A tc asks the sequencer for the number of a prepared transaction.";
    NUMBER_DECIDE = "number.decide": "The sequencer sends numbers and decisions.";
    NUMBER_PASS = "number.pass": "A node passes decisions to its blocks.";
    VOTER_WRITE = "voter.write": "A voter writes entries of its log, the changes of the membership, and syncs them.";
    MEMBER_ADMIT = "member.admit": "A node that was admitted writes the epoch of its admission, and syncs it.";
    COPY_SCHEMA = "copy.schema": "A node that joins takes over the schema, and makes its partitions.";
    COPY_ROWS = "copy.rows": "A node that joins puts rows that it has copied.";
    BACKUP_PIN = "backup.pin": "A backup pins a checkpoint and its position in the log.";
    BACKUP_UNPIN = "backup.unpin": "The checkpoint and the log may be trimmed again after a backup.";
    BACKUP_FRAME = "backup.frame": "A backup copies a frame of a checkpoint.";
    BACKUP_LOG = "backup.log": "A backup copies groups of the log.";
    BACKUP_LIST = "backup.list": "A backup writes its list of contents.";
    BACKUP_RESTORE = "backup.restore": "A restore writes a data directory.";
}

/// Whether only the backups of a chain of replicas reach the point.
pub fn is_of_backups(point: CrashPoint) -> bool {
    let of_backups = [IMAGES_KEEP, IMAGES_APPLY];
    of_backups.iter().any(|step| [step.before(), step.after()].contains(&point))
}

/// Whether only nodes of a cluster with voters reach the point.
pub fn is_of_members(point: CrashPoint) -> bool {
    let of_members = [VOTER_WRITE, MEMBER_ADMIT, COPY_SCHEMA, COPY_ROWS];
    of_members.iter().any(|step| [step.before(), step.after()].contains(&point))
}

/// The name of a point: that of its step with `.before` or `.after`. `None` if no step has it.
pub fn name(point: CrashPoint) -> Option<String> {
    let (step, name, _) = STEPS.get(usize::from(point.number() / 2))?;
    Some(format!("{name}.{}", if point == step.before() { "before" } else { "after" }))
}

/// The point with this name.
pub fn by_name(name: &str) -> Option<CrashPoint> {
    let (step, side) = name.rsplit_once('.')?;
    let (step, _, _) = STEPS.iter().find(|(_, name, _)| *name == step)?;
    match side {
        "before" => Some(step.before()),
        "after" => Some(step.after()),
        _ => None,
    }
}

/// The crash that the value of [`CRASH_VARIABLE`] requests: `POINT` or `POINT:HIT`.
///
/// # Errors
/// A message for the user: the text has another form, or names an unknown point.
pub fn armed(text: Option<String>) -> Result<Option<ArmedCrash>, String> {
    let Some(text) = text else { return Ok(None) };
    let (name, hit) = text.rsplit_once(':').unwrap_or((&text, "1"));
    let armed = by_name(name).zip(hit.parse().ok()).map(|(point, hit)| ArmedCrash { point, hit });
    armed.map(Some).ok_or_else(|| format!("{CRASH_VARIABLE}: '{text}' is not POINT or POINT:HIT"))
}

/// All points, in the order of their numbers.
pub fn all() -> impl Iterator<Item = CrashPoint> {
    STEPS.iter().flat_map(|(step, _, _)| [step.before(), step.after()])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_crash_is_requested_by_the_name_of_its_point() {
        let armed = |text: &str| armed(Some(text.to_owned()));
        let point = LOG_WRITE.after();
        assert_eq!(armed("log.write.after:7"), Ok(Some(ArmedCrash { point, hit: 7 })));
        assert_eq!(armed("log.write.after"), Ok(Some(ArmedCrash { point, hit: 1 })));
        assert!(armed("log.write:7").unwrap_err().contains("'log.write:7' is not POINT"));
        assert!(armed("log.write.after:soon").is_err());
        assert!(super::armed(None).is_ok_and(|armed| armed.is_none()));
    }

    #[test]
    fn every_point_is_found_by_its_unique_name() {
        let names: BTreeSet<String> = all().map(|point| name(point).unwrap()).collect();
        assert_eq!((all().count(), names.len()), (STEPS.len() * 2, STEPS.len() * 2));
        assert!(names.len() >= 60);
        assert!(all().all(|point| by_name(&name(point).unwrap()) == Some(point)));
        assert_eq!(name(LOG_WRITE.after()).as_deref(), Some("log.write.after"));
        assert_eq!([by_name("log.write"), by_name("log.wrote.after"), by_name("log.write.during")], [None; 3]);
        assert_eq!(name(CrashPoint::new(u16::MAX)), None);
        assert!(STEPS.iter().all(|(_, _, meaning)| meaning.ends_with('.') && !meaning.contains('|')));
    }
}
