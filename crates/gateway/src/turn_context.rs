//! What a session may use of its block while it handles a signal.

use junctor_kernel::{
    BufferPool, Context, Duration, LoadBoard, Outbox, Random, SendSettings, SpinSettings, Stamps, Time, WorldRequest,
};
use junctor_signals::Signal;

/// The outbox and the context, without the address of anything: sessions send only through the client.
pub struct TurnContext<'a> {
    /// Where signals go; only the client and the block itself write to it.
    pub outbox: &'a mut Outbox<Signal>,
    /// Buffers of this thread.
    pub buffers: &'a mut BufferPool,
    /// Random numbers of this thread.
    pub random: &'a mut Random,
    /// The published load figures of all threads.
    pub loads: &'a LoadBoard,
    /// Nanoseconds since the node started, at the beginning of the turn.
    pub now: Time,
    /// Where time stamps are taken.
    pub stamps: &'a mut Stamps,
    /// Microseconds since 1970-01-01 UTC.
    pub wall_clock_us: u64,
}

impl<'a> TurnContext<'a> {
    /// The turn of a handler.
    pub fn new(context: &'a mut Context<'_>, outbox: &'a mut Outbox<Signal>) -> TurnContext<'a> {
        TurnContext {
            outbox,
            buffers: &mut *context.buffers,
            random: &mut *context.random,
            loads: context.loads,
            now: context.now,
            stamps: &mut *context.stamps,
            wall_clock_us: context.wall_clock_us,
        }
    }

    /// The time now, for measuring.
    pub fn stamp(&mut self) -> Time {
        self.stamps.take(self.now)
    }

    /// All threads of the node spin like this from now on.
    pub fn set_spinning(&mut self, settings: SpinSettings) {
        self.outbox.request(WorldRequest::SetSpinning { settings });
    }

    /// All threads of the node send like this from now on.
    pub fn set_sending(&mut self, settings: SendSettings) {
        self.outbox.request(WorldRequest::SetSending { settings });
    }

    /// Asks for a timer event with `token`.
    pub fn start_timer(&mut self, after: Duration, token: u64) {
        self.outbox.request(WorldRequest::StartTimer { after, token });
    }
}
