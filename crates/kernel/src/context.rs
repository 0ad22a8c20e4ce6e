//! The context of a handler: time, the block's own address, random numbers, buffers and the figures that
//! threads publish.

use crate::address::Address;
use crate::buffer::BufferPool;
use crate::directory::{Directory, NodeLayout};
use crate::random::Random;
use crate::scheduler::load::LoadBoard;
use crate::turn_clock::TurnClock;

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

/// The input of a handler beside its own state and the signal. Refreshed at the start of each turn, not
/// for each signal.
pub struct Context<'a> {
    /// Time at the beginning of the turn.
    pub turn_start: Time,
    /// Microseconds since 1970-01-01 UTC; may decrease when the clock is set.
    pub wall_clock_us: u64,
    /// Address of the block that handles the signal.
    pub own_address: Address,
    /// This thread's random number generator.
    pub random: &'a mut Random,
    /// This thread's buffer pool.
    pub buffers: &'a mut BufferPool,
    /// The module instances of this node and their threads.
    pub directory: &'a Directory,
    /// Published load figures of this node's threads.
    pub loads: &'a LoadBoard,
    /// The clock behind [`Context::clock_now`].
    pub turn_clock: &'a mut TurnClock,
}

impl Context<'_> {
    /// Index of the thread that runs the block.
    pub fn thread(&self) -> u16 {
        self.directory.thread_of(self.own_address.module, self.own_address.instance).unwrap_or(0)
    }

    /// Reads the clock. Unlike `turn_start`, the result advances while a handler runs, so it can measure the
    /// handler's own work.
    #[inline]
    pub fn clock_now(&mut self) -> Time {
        self.turn_clock.now(self.turn_start)
    }
}

/// Owns the fields that a [`Context`] borrows. For tests of a single block outside a node.
pub struct TestContext {
    own: Address,
    random: Random,
    buffers: BufferPool,
    directory: Directory,
    loads: LoadBoard,
    turn_clock: TurnClock,
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
            turn_clock: TurnClock::simulated(seed),
        })
    }

    /// The context in a turn that begins at `now`. The wall clock shows `now` after 1970-01-01 UTC.
    pub fn at(&mut self, now: Time) -> Context<'_> {
        Context {
            turn_start: now,
            wall_clock_us: now.0 / 1_000,
            own_address: self.own,
            random: &mut self.random,
            buffers: &mut self.buffers,
            directory: &self.directory,
            loads: &self.loads,
            turn_clock: &mut self.turn_clock,
        }
    }
}
