//! What the kernel asks of signals and of the blocks that handle them.

use crate::address::Address;
use crate::context::{Context, Time};
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::world::WorldEvent;

/// How a signal is treated under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalClass {
    /// Starts work. It waits in its ring while the receiving thread has no room for the signals that its handler
    /// would emit.
    Deferrable,
    /// Continues or ends work that was begun. Its room is reserved, so it is always taken; otherwise threads that wait
    /// for each other's answers could fill each other's rings for ever.
    Reserved,
}

/// Which of the two queues of a pair of threads a signal uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Looked at before every normal queue; for the few signals that must not wait behind bulk work.
    High,
    /// Everything else.
    Normal,
}

/// One signal type of a whole program: an enum over all conversations, at most 128 bytes.
///
/// Order: signals from one thread to another arrive in the order sent, per priority and class. A reply may overtake a
/// request that waits for room.
pub trait Signal: Sized + Send + 'static {
    /// Whether it starts work or continues it.
    fn class(&self) -> SignalClass;

    /// The queue that it uses between threads.
    fn priority(&self) -> Priority;

    /// The most signals that its handler may send. Exceeding it is allowed to cost memory, not correctness: the rest
    /// waits in the backlog.
    fn emit_max(&self) -> u16;

    /// Its name in traces.
    fn name(&self) -> &'static str;

    /// Its number in traces; one number, one name.
    fn number(&self) -> u16;

    /// The signal that carries an event of the world to a block.
    fn from_world(event: WorldEvent) -> Self;

    /// The name of a module in traces; `None` prints its number.
    fn name_of_module(module: ModuleId) -> Option<&'static str> {
        let _ = module;
        None
    }

    /// The name that belongs to a number, so that a trace can be printed; none if the number means nothing.
    fn name_of_number(number: u16) -> Option<&'static str> {
        let _ = number;
        None
    }
}

/// The blocks of one thread, at most one instance of a module. It dispatches on the module of `to`.
pub trait Host<S: Signal> {
    /// Handles one signal to completion. It never blocks and never reads a clock or another source of surprise but
    /// the context. Signals and requests leave through the outbox.
    fn handle(&mut self, to: Address, from: Address, signal: S, context: &mut Context<'_>, outbox: &mut Outbox<S>);

    /// Called at the end of a turn in which at least one signal was handled, before what was sent is published:
    /// the place to send what was gathered over a batch, and to let go of what may not be held between turns.
    /// `context.own` is the first module of the thread.
    fn end_turn(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<S>) {
        let _ = (context, outbox);
    }

    /// Called when such a turn, begun at `began`, is over: what was sent is published, and written if sockets are here. For
    /// measuring; `ended` is a stamp that was taken anyway.
    fn turn_ended(&mut self, began: Time, ended: Time) {
        let _ = (began, ended);
    }
}
