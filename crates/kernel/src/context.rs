//! What a handler may know: time, itself, random numbers, buffers, and published figures.

use crate::address::Address;
use crate::buffer::BufferPool;
use crate::directory::{Directory, NodeLayout};
use crate::random::Random;
use crate::scheduler::load::LoadBoard;
use crate::stamp::Stamps;

/// Nanoseconds since the node started; never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Time {
    /// The later point; the last possible one if it would be beyond that.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// So many seconds.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// What a handler may see besides its own state and the signal. Refreshed once per turn and batch, not per signal.
pub struct Context<'a> {
    /// Nanoseconds since the node started.
    pub now: Time,
    /// Microseconds since 1970-01-01 UTC; may go back when the clock is set.
    pub wall_clock_us: u64,
    /// The address of the block that handles the signal.
    pub own: Address,
    /// Random numbers of this thread.
    pub random: &'a mut Random,
    /// Buffers of this thread.
    pub buffers: &'a mut BufferPool,
    /// Which module instances this node has.
    pub directory: &'a Directory,
    /// The published load figures of all threads of this node.
    pub loads: &'a LoadBoard,
    /// Where this thread takes time stamps.
    pub stamps: &'a mut Stamps,
}

impl Context<'_> {
    /// The thread on which it runs.
    pub fn thread(&self) -> u16 {
        self.directory.thread_of(self.own.module, self.own.instance).unwrap_or(0)
    }

    /// The time now, not that of the turn's beginning: for measuring the own work.
    #[inline]
    pub fn stamp(&mut self) -> Time {
        self.stamps.take(self.now)
    }
}

/// What a [`Context`] borrows, owned, for tests of a block alone.
pub struct DetachedContext {
    own: Address,
    random: Random,
    buffers: BufferPool,
    directory: Directory,
    loads: LoadBoard,
    stamps: Stamps,
}

impl DetachedContext {
    /// The surroundings of the block `own` on a node of this layout. Refuses a layout that no node could have.
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

    /// The context at a point in time; the wall clock shows the same time after 1970.
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
