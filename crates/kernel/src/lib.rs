//! Blocks, signals, mailboxes, threads, timers, sockets and files, real and simulated; no database word.
//!
//! In reading order:
//! - [`block`]: what a signal and a set of blocks are; [`module`], [`address`] and [`directory`]: where they live;
//! - [`context`], [`outbox`], [`world`]: all that a handler may see and do;
//! - [`buffer`], [`pool`], [`random`]: what it works with;
//! - [`mailbox`] and the private `envelope`: how signals travel between threads;
//! - [`scheduler`]: the turn of a thread, its timers, load figures and sleep;
//! - [`real`] and [`simulated`]: the two worlds that drain the outbox;
//! - [`invariant`], [`trace`], [`limit`], [`sync`]: checks, the record of what ran, maxima, atomics.

pub mod address;
pub mod block;
pub mod buffer;
pub(crate) mod clock;
pub mod context;
pub mod directory;
pub(crate) mod envelope;
pub mod invariant;
pub mod limit;
pub mod mailbox;
pub mod module;
pub mod outbox;
pub(crate) mod output_batch;
pub mod pool;
pub mod random;
pub mod real;
pub mod scheduler;
pub mod simulated;
pub mod stamp;
pub mod sync;
pub mod trace;
pub mod world;

#[cfg(all(test, not(loom), not(shuttle)))]
mod toy;

pub use address::{Address, NodeId};
pub use block::{Host, Priority, Signal, SignalClass};
pub use buffer::{Buffer, BufferPool};
pub use context::{Context, Duration, Time};
pub use directory::{Directory, NodeLayout, ThreadLayout, ThreadSeat};
pub use limit::KernelLimits;
pub use module::ModuleId;
pub use outbox::Outbox;
pub use pool::{Handle, Pool, PoolFull};
pub use random::Random;
pub use real::{ConnectError, Connector, MemoryReceiver, MemorySender, MemoryStream, StreamClosed, TrySendError};
pub use scheduler::load::{HISTORY_SLOTS, LoadBoard, ThreadLoad, Usage, Window};
pub use scheduler::send::{SendAssistance, SendSettings};
pub use scheduler::send_board::SendStatus;
pub use scheduler::spin::{SpinChoice, SpinMethod, SpinScale, SpinSettings};
pub use stamp::Stamps;
pub use world::{
    FileError, FileId, FileMode, FileOutcome, FileResult, SocketCloseReason, SocketId, WorldEvent, WorldRequest,
};
