//! The contract between the kernel and the program's signals and blocks.

use crate::address::Address;
use crate::context::{Context, Time};
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::world::WorldEvent;

/// Whether a signal may have to wait for space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalClass {
    /// Starts work. It waits while the receiving thread lacks space for the signals that its handler may
    /// emit.
    Deferrable,
    /// Continues or ends work. Its space is reserved, so it is always taken. Otherwise two threads that wait
    /// for each other's answers could fill each other's rings and stop.
    Reserved,
}

/// Which of the two rings between a pair of threads a signal uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Served before every normal ring. For the few signals that must not queue behind bulk work.
    High,
    /// Served in ring order, up to a quota a turn.
    Normal,
}

/// The signal type of a whole program: an enum over all conversations, at most 128 bytes.
///
/// Signals from one thread to another arrive in the order sent, for each priority and class. A reserved
/// signal may overtake a deferrable one that waits for space.
pub trait Signal: Sized + Send + 'static {
    /// Whether the signal may wait for space.
    fn class(&self) -> SignalClass;

    /// The ring that the signal uses between threads.
    fn priority(&self) -> Priority;

    /// Maximum number of signals that the handler sends. Sending more costs memory but is correct: the excess
    /// waits in the backlog.
    fn emit_max(&self) -> u16;

    /// The name that traces print.
    fn name(&self) -> &'static str;

    /// The number that traces record. Each name has its own.
    fn number(&self) -> u16;

    /// Wraps an event of the world, for delivery to a block.
    fn from_world(event: WorldEvent) -> Self;

    /// The name of a module in traces; `None` prints its number.
    fn name_of_module(module: ModuleId) -> Option<&'static str> {
        let _ = module;
        None
    }

    /// The name for a number that a trace recorded; `None` if no signal has that number.
    fn name_of_number(number: u16) -> Option<&'static str> {
        let _ = number;
        None
    }
}

/// The receiver and the sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The block that handles the signal.
    pub to: Address,
    /// The block that sent it.
    pub from: Address,
}

/// The blocks of one thread, at most one instance of each module. Dispatches on the module of the receiver.
pub trait Host<S: Signal> {
    /// Handles one signal to completion. A handler never blocks. Time, random numbers and configuration come
    /// from the context only, so that the simulator can repeat a run. Signals and requests leave through the
    /// outbox.
    fn handle(&mut self, endpoints: Endpoints, signal: S, context: &mut Context<'_>, outbox: &mut Outbox<S>);

    /// Called at the end of a turn that handled at least one signal, before its signals are published. Here a
    /// block sends what it collected over a batch and releases what it must not hold between turns.
    /// `context.own_address` is the first module of the thread.
    fn before_publish(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<S>) {
        let _ = (context, outbox);
    }

    /// Called once the turn that began at `began` has published its signals and, on a thread with sockets,
    /// written its output. For measurements; `ended` reuses a time stamp that the scheduler took anyway.
    fn turn_ended(&mut self, began: Time, ended: Time) {
        let _ = (began, ended);
    }
}
