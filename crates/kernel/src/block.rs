//! The contract between the kernel and the program's signals and blocks.

use crate::address::Address;
use crate::context::{Context, Time};
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::transport::board::LinkNews;
use crate::wire_signal::LinkMaker;
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

/// Which of the two mailbox rings from one thread to another a signal uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The high-priority ring, which is served before every normal ring. For the few signals that must not
    /// queue behind bulk work.
    High,
    /// The normal ring. Each turn takes up to a quota of signals from it.
    Normal,
}

/// The signal type of a whole program: an enum of all requests and replies, at most 128 bytes in size.
///
/// Signals from one thread to another with equal priority and class arrive in the order in which they were
/// sent. A reserved signal may overtake a deferrable one that waits for space.
pub trait Signal: Sized + Send + 'static {
    /// Whether the signal may wait for space.
    fn class(&self) -> SignalClass;

    /// The ring that the signal uses between threads.
    fn priority(&self) -> Priority;

    /// Maximum number of signals that the handler of this signal sends. A handler that sends more is still
    /// correct but costs memory: the excess waits in the sender's backlog.
    fn emit_max(&self) -> u16;

    /// The name that traces print.
    fn name(&self) -> &'static str;

    /// The number that traces record; different for each name.
    fn number(&self) -> u16;

    /// Wraps an event of a timer, socket or file in a signal, for delivery to a block.
    fn from_world(event: WorldEvent) -> Self;

    /// How a simulation encodes the signals between two nodes. `None` hands them over as they are.
    fn simulated_links() -> Option<LinkMaker<Self>> {
        None
    }

    /// Wraps news of links to other nodes in a signal, for the block that watches the links. `None` if the
    /// program has no such block.
    fn from_link(news: LinkNews) -> Option<Self> {
        let _ = news;
        None
    }

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

    /// Called at the end of a turn that handled at least one signal, before the turn's signals are published.
    /// A block can send what it has collected during the turn, and must release what it may not hold between
    /// turns. `context.own_address` is that of the thread's first module.
    fn before_publish(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<S>) {
        let _ = (context, outbox);
    }

    /// Called once the turn that began at `began` has published its signals and written its output. For
    /// measurements. `ended` is a reading of the clock that the scheduler needs anyway, so it costs nothing.
    fn turn_ended(&mut self, began: Time, ended: Time) {
        let _ = (began, ended);
    }
}
