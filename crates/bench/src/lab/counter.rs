//! Hardware counters of threads, if the machine has them and the system permits reading them.

use perf_event::events::{Cache, CacheOp, CacheResult, Event, Hardware, WhichCache};
use perf_event::{Builder, Counter};

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Retired instructions.
    Instructions,
    /// CPU cycles.
    Cycles,
    /// Misses of reads in the first-level data cache.
    DataMisses,
    /// Misses in the first-level instruction cache.
    CodeMisses,
    /// Misses in the second-level cache.
    SecondLevelMisses,
    /// Misses in the instruction TLB.
    CodeTranslationMisses,
    /// Mispredicted branches.
    BranchMisses,
}

impl Kind {
    /// All kinds in the order of [`Counts`].
    pub const ALL: [Kind; 7] = [
        Kind::Instructions,
        Kind::Cycles,
        Kind::DataMisses,
        Kind::CodeMisses,
        Kind::SecondLevelMisses,
        Kind::CodeTranslationMisses,
        Kind::BranchMisses,
    ];

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Instructions => "instructions",
            Kind::Cycles => "cycles",
            Kind::DataMisses => "l1d_misses",
            Kind::CodeMisses => "l1i_misses",
            Kind::SecondLevelMisses => "l2_misses",
            Kind::CodeTranslationMisses => "itlb_misses",
            Kind::BranchMisses => "branch_misses",
        }
    }

    fn builder<'a>(self) -> Option<Builder<'a>> {
        let missed = |which| Event::Cache(Cache { which, operation: CacheOp::READ, result: CacheResult::MISS });
        let event = match self {
            Kind::Instructions => Event::Hardware(Hardware::INSTRUCTIONS),
            Kind::Cycles => Event::Hardware(Hardware::CPU_CYCLES),
            Kind::BranchMisses => Event::Hardware(Hardware::BRANCH_MISSES),
            Kind::DataMisses => missed(WhichCache::L1D),
            Kind::CodeMisses => missed(WhichCache::L1I),
            Kind::CodeTranslationMisses => missed(WhichCache::ITLB),
            Kind::SecondLevelMisses => return second_level_builder(),
        };
        Some(Builder::new().kind(event))
    }
}

/// The kernel has no generic event for the second-level cache. Each vendor has its own number.
fn second_level_builder<'a>() -> Option<Builder<'a>> {
    /// `PERF_TYPE_RAW`.
    const RAW: u32 = 4;
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vendor = information.lines().find_map(|line| line.strip_prefix("vendor_id")?.split_once(':'))?.1.trim();
    let number = match vendor {
        // L2CacheReqStat: instruction and data requests that missed.
        "AuthenticAMD" => 0x0964,
        // L2_RQSTS.MISS.
        "GenuineIntel" => 0x3f24,
        _ => return None,
    };
    let mut builder = Builder::new();
    let attributes = builder.attrs_mut();
    (attributes.type_, attributes.config) = (RAW, number);
    Some(builder)
}

/// A count for each [`Kind`]; `None` where it is not available.
pub type Counts = [Option<f64>; Kind::ALL.len()];

/// The counters of one thread, which count from their creation.
pub struct ThreadCounters([Option<Counter>; Kind::ALL.len()]);

impl ThreadCounters {
    /// Starts to count the user-mode events of a thread. Counters that the machine or the system refuses are
    /// left out.
    pub fn start(thread_id: u32) -> ThreadCounters {
        ThreadCounters(Kind::ALL.map(|kind| {
            let mut builder = kind.builder()?.observe_pid(thread_id.cast_signed()).any_cpu();
            builder.exclude_kernel(true).exclude_hv(true).enabled(true);
            builder.build().ok()
        }))
    }

    /// Returns the counts so far, scaled up for counters that shared a register.
    pub fn read(&mut self) -> Counts {
        self.0.each_mut().map(|counter| {
            let read = counter.as_mut()?.read_count_and_time().ok()?;
            if read.time_running == 0 {
                return None;
            }
            Some(read.count as f64 * read.time_enabled as f64 / read.time_running as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_or_are_not_available() {
        let mut counters = ThreadCounters::start(std::process::id());
        let sum: u64 = (0..100_000_u64).map(std::hint::black_box).sum();
        assert_eq!(sum, 4_999_950_000);
        let counts = counters.read();
        assert!(counts.iter().flatten().all(|count| count.is_finite() && *count >= 0.0), "{counts:?}");
        let mut of_nobody = ThreadCounters::start(i32::MAX as u32);
        assert_eq!(of_nobody.read(), [None; Kind::ALL.len()]);
    }
}
