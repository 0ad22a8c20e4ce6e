//! The resources of a session while its block handles a signal.

use junctor_kernel::{
    BufferPool, Context, Duration, LoadBoard, Outbox, Random, SendSettings, SpinSettings, Time, TurnClock, WorldRequest,
};
use junctor_signals::Signal;

/// The outbox and the context of a handler. Sessions do not know addresses; they send only through the
/// gateway.
pub struct TurnContext<'a> {
    /// Collects the signals that the gateway and the block send.
    pub outbox: &'a mut Outbox<Signal>,
    /// The thread's buffer pool.
    pub buffers: &'a mut BufferPool,
    /// The thread's random numbers.
    pub random: &'a mut Random,
    /// Published load figures of all threads.
    pub loads: &'a LoadBoard,
    /// Time at the start of the turn, in nanoseconds since the node started.
    pub turn_start: Time,
    /// The clock behind [`TurnContext::clock_now`].
    pub turn_clock: &'a mut TurnClock,
    /// Microseconds since 1970-01-01 UTC.
    pub wall_clock_us: u64,
}

impl<'a> TurnContext<'a> {
    /// The context of a handler.
    pub fn new(context: &'a mut Context<'_>, outbox: &'a mut Outbox<Signal>) -> TurnContext<'a> {
        TurnContext {
            outbox,
            buffers: &mut *context.buffers,
            random: &mut *context.random,
            loads: context.loads,
            turn_start: context.turn_start,
            turn_clock: &mut *context.turn_clock,
            wall_clock_us: context.wall_clock_us,
        }
    }

    /// Reads the clock. Unlike `turn_start`, the result advances within a turn, so it can measure work.
    pub fn clock_now(&mut self) -> Time {
        self.turn_clock.now(self.turn_start)
    }

    /// Sets how all threads of the node spin.
    pub fn set_spinning(&mut self, settings: SpinSettings) {
        self.outbox.request(WorldRequest::SetSpinning { settings });
    }

    /// Sets how all threads of the node send.
    pub fn set_sending(&mut self, settings: SendSettings) {
        self.outbox.request(WorldRequest::SetSending { settings });
    }

    /// Requests a timer event with `token`.
    pub fn start_timer(&mut self, after: Duration, token: u64) {
        self.outbox.request(WorldRequest::StartTimer { after, token });
    }
}
