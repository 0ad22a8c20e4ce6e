//! The progress of a node's start. Main tells which phase is under way, log and the ldms count what they have
//! done, and the thread that starts the node reports both to the user. Part of the closed list of invariant
//! 2.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use junctor_kernel::Time;

/// A phase of the start of a durable node, and of its return to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPhase {
    /// Main reads the identity and the manifest of the last checkpoint.
    ReadManifest,
    /// Log reads the groups after the checkpoint, and decides which commits it keeps.
    ReadLog,
    /// The ldms make empty partitions.
    MakePartitions,
    /// The ldms load the rows of the checkpoint.
    LoadCheckpoint,
    /// Log reads the groups again, and the ldms apply them.
    ReplayLog,
    /// The ldms build the indexes.
    BuildIndexes,
    /// Log begins its next incarnation.
    StartLog,
    /// Main gives the schema to every block.
    PublishSchema,
    /// The ldms of a node that returns copy rows from other nodes.
    CopyRows,
    /// A checkpoint writes the copied rows.
    WriteCopy,
}

impl RestartPhase {
    /// Every phase, in the order in which a start passes them. A start leaves out those without work.
    pub const ALL: [RestartPhase; 10] = [
        RestartPhase::ReadManifest,
        RestartPhase::ReadLog,
        RestartPhase::MakePartitions,
        RestartPhase::LoadCheckpoint,
        RestartPhase::ReplayLog,
        RestartPhase::BuildIndexes,
        RestartPhase::StartLog,
        RestartPhase::PublishSchema,
        RestartPhase::CopyRows,
        RestartPhase::WriteCopy,
    ];

    /// The name that users see.
    pub const fn name(self) -> &'static str {
        match self {
            RestartPhase::ReadManifest => "read manifest",
            RestartPhase::ReadLog => "read log",
            RestartPhase::MakePartitions => "make partitions",
            RestartPhase::LoadCheckpoint => "load checkpoint",
            RestartPhase::ReplayLog => "replay log",
            RestartPhase::BuildIndexes => "build indexes",
            RestartPhase::StartLog => "start log",
            RestartPhase::PublishSchema => "publish schema",
            RestartPhase::CopyRows => "copy rows",
            RestartPhase::WriteCopy => "write copied rows",
        }
    }
}

/// Rows and bytes of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestartWork {
    /// Number of rows, or of row changes.
    pub rows: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

/// A phase that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseProgress {
    /// The phase.
    pub phase: RestartPhase,
    /// When it began.
    pub begun: Time,
    /// When it ended; `None` while it is under way.
    pub ended: Option<Time>,
    /// The work that is done.
    pub done: RestartWork,
    /// The work of the whole phase; 0 where it is not known.
    pub total: RestartWork,
}

/// The phases of the last start of a node. They stay until the node ends.
#[derive(Debug, Default)]
pub struct RestartProgress {
    phases: [PhaseWords; RestartPhase::ALL.len()],
    /// Position of the phase under way plus 1; 0 before the first.
    current: AtomicUsize,
}

/// Main writes the times. Every ldm and log add to the other words.
#[derive(Debug, Default)]
struct PhaseWords {
    /// In nanoseconds plus 1; 0 before.
    begun: AtomicU64,
    /// As `begun`.
    ended: AtomicU64,
    done: WorkWords,
    total: WorkWords,
}

#[derive(Debug, Default)]
struct WorkWords {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl WorkWords {
    fn add(&self, work: RestartWork) {
        self.rows.fetch_add(work.rows, Ordering::Relaxed);
        self.bytes.fetch_add(work.bytes, Ordering::Relaxed);
    }

    fn load(&self) -> RestartWork {
        RestartWork { rows: self.rows.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

impl RestartProgress {
    /// Ends the phase under way and begins another.
    pub fn begin(&self, phase: RestartPhase, now: Time) {
        self.end(now);
        self.phases[phase as usize].begun.store(now.0 + 1, Ordering::Release);
        self.current.store(phase as usize + 1, Ordering::Release);
    }

    /// Ends the phase under way.
    pub fn end(&self, now: Time) {
        if let Some(words) = self.current() {
            words.ended.store(now.0 + 1, Ordering::Release);
        }
        self.current.store(0, Ordering::Release);
    }

    /// Adds work that is done to the phase under way.
    pub fn add(&self, rows: u64, bytes: u64) {
        if let Some(words) = self.current() {
            words.done.add(RestartWork { rows, bytes });
        }
    }

    /// Adds work that is to be done to the phase under way.
    pub fn add_total(&self, rows: u64, bytes: u64) {
        if let Some(words) = self.current() {
            words.total.add(RestartWork { rows, bytes });
        }
    }

    /// The phases that have begun, in their order.
    pub fn phases(&self) -> impl Iterator<Item = PhaseProgress> {
        let time = |word: &AtomicU64| word.load(Ordering::Acquire).checked_sub(1).map(Time);
        RestartPhase::ALL.into_iter().zip(&self.phases).filter_map(move |(phase, words)| {
            let begun = time(&words.begun)?;
            let ended = time(&words.ended);
            Some(PhaseProgress { phase, begun, ended, done: words.done.load(), total: words.total.load() })
        })
    }

    fn current(&self) -> Option<&PhaseWords> {
        self.phases.get(self.current.load(Ordering::Acquire).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_for_the_phase_under_way() {
        let progress = RestartProgress::default();
        progress.add(1, 1);
        assert_eq!(progress.phases().count(), 0);
        progress.begin(RestartPhase::ReadManifest, Time(0));
        progress.begin(RestartPhase::LoadCheckpoint, Time(5));
        progress.add_total(0, 1000);
        progress.add(7, 100);
        progress.add(1, 50);
        let none = RestartWork::default();
        let first = PhaseProgress {
            phase: RestartPhase::ReadManifest,
            begun: Time(0),
            ended: Some(Time(5)),
            done: none,
            total: none,
        };
        let second = PhaseProgress {
            phase: RestartPhase::LoadCheckpoint,
            begun: Time(5),
            ended: None,
            done: RestartWork { rows: 8, bytes: 150 },
            total: RestartWork { rows: 0, bytes: 1000 },
        };
        assert_eq!(progress.phases().collect::<Vec<_>>(), [first, second]);
        progress.end(Time(9));
        progress.add(1, 1);
        assert_eq!(progress.phases().last(), Some(PhaseProgress { ended: Some(Time(9)), ..second }));
    }

    #[test]
    fn phases_are_listed_in_the_order_of_their_numbers() {
        for (position, phase) in RestartPhase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, position, "{}", phase.name());
        }
    }
}
