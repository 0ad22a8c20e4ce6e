//! Everything that a handler may know: time, its own address, random numbers, buffers and published figures.

use crate::address::Address;
use crate::buffer::BufferPool;
use crate::directory::{Directory, NodeLayout};
use crate::random::Random;
use crate::scheduler::load::LoadBoard;
use crate::stamp::Stamps;

/// Nanoseconds since the node started; never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Time {
    /// The point `duration` later, saturating.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds, saturating.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `seconds` seconds, saturating.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// A handler's view beyond its own state and the signal. Refreshed once a turn and batch, not for each
/// signal.
pub struct Context<'a> {
    /// When the turn began.
    pub now: Time,
    /// Microseconds since 1970-01-01 UTC; may decrease when the clock is set.
    pub wall_clock_us: u64,
    /// Address of the block that handles the signal.
    pub own: Address,
    /// This thread's generator.
    pub random: &'a mut Random,
    /// This thread's pool.
    pub buffers: &'a mut BufferPool,
    /// The module instances of this node and their threads.
    pub directory: &'a Directory,
    /// Published load figures of this node's threads.
    pub loads: &'a LoadBoard,
    /// Source of [`Context::stamp`].
    pub stamps: &'a mut Stamps,
}

impl Context<'_> {
    /// Index of the thread that runs the block.
    pub fn thread(&self) -> u16 {
        self.directory.thread_of(self.own.module, self.own.instance).unwrap_or(0)
    }

    /// The present time, in contrast to `now`, which stands still during a turn. For measuring a handler's
    /// own work.
    #[inline]
    pub fn stamp(&mut self) -> Time {
        self.stamps.take(self.now)
    }
}

/// Owns what a [`Context`] borrows, for tests of a single block.
pub struct TestContext {
    own: Address,
    random: Random,
    buffers: BufferPool,
    directory: Directory,
    loads: LoadBoard,
    stamps: Stamps,
}

impl TestContext {
    /// The context of block `own` on a node of this layout, or the layout's error.
    pub fn new(own: Address, layout: &NodeLayout, seed: u64) -> Result<Self, crate::directory::LayoutError> {
        Ok(Self {
            own,
            random: Random::new(seed),
            buffers: BufferPool::new(1 << 20),
            directory: Directory::new(own.node, layout)?,
            loads: LoadBoard::new(layout.threads.len()),
            stamps: Stamps::model(seed),
        })
    }

    /// The context at `now`. The wall clock shows the same time after 1970-01-01.
    pub fn at(&mut self, now: Time) -> Context<'_> {
        Context {
            now,
            wall_clock_us: now.0 / 1_000,
            own: self.own,
            random: &mut self.random,
            buffers: &mut self.buffers,
            directory: &self.directory,
            loads: &self.loads,
            stamps: &mut self.stamps,
        }
    }
}
