//! Runs blocks, which exchange signals, on threads; gives them timers, sockets and files. A program runs
//! unchanged on real threads or in a simulator. Nothing here knows what the program is for.
//!
//! In reading order:
//! - [`block`]: the signals of a program and the blocks that handle them; [`module`], [`address`] and
//!   [`directory`]: how blocks are addressed and which thread runs them;
//! - [`context`], [`outbox`], [`world`]: everything that a handler may read, send and request;
//! - [`buffer`], [`file_buffer`], [`pool`], [`random`]: data structures for handlers; [`crash_point`]: points
//!   at which tests may end the process;
//! - [`mailbox`] and the private `envelope`: how signals travel between threads;
//! - [`wire_signal`]: how a program encodes its signals for other nodes;
//! - [`scheduler`]: a thread's turn, its timers, load figures and sleep;
//! - [`transport`]: links between nodes, without sockets and clocks;
//! - [`real`] and [`simulated`]: nodes of real threads, and nodes in a simulator;
//! - [`invariant`], [`trace`], [`limit`], [`sync`]: checks, the trace of delivered signals, maxima, atomics.

pub mod address;
pub mod block;
pub mod buffer;
pub(crate) mod clock;
pub mod context;
pub mod crash_point;
pub mod directory;
pub(crate) mod envelope;
pub mod file_buffer;
pub mod invariant;
pub mod limit;
pub mod mailbox;
pub mod module;
pub mod outbox;
pub mod peer;
pub(crate) mod output_batch;
pub mod pool;
pub mod random;
pub mod real;
pub mod scheduler;
pub mod simulated;
pub mod sync;
pub mod trace;
pub mod transport;
pub mod turn_clock;
pub mod wire_signal;
pub mod world;

#[cfg(all(test, not(loom), not(shuttle)))]
mod toy;

pub use address::{Address, NodeId};
pub use block::{Endpoints, Host, Priority, Signal, SignalClass};
pub use buffer::{Buffer, BufferPool};
pub use context::{Context, Duration, Time};
pub use crash_point::{ArmedCrash, CrashPoint, CrashWatch};
pub use directory::{Directory, NodeLayout, ThreadAssignment, ThreadLayout};
pub use file_buffer::{FILE_BLOCK_BYTES, FileBuffer};
pub use limit::KernelLimits;
pub use module::ModuleId;
pub use outbox::Outbox;
pub use peer::{PeerAddress, PeerCredentials, UserName};
pub use pool::{Handle, Pool, PoolFull};
pub use random::Random;
pub use real::FileBackend;
pub use real::LinkOptions;
pub use real::{ConnectError, Connector, MemoryReceiver, MemorySender, MemoryStream, StreamClosed, TrySendError};
pub use scheduler::load::{HISTORY_SLOTS, LoadBoard, ThreadLoad, Usage, Window};
pub use scheduler::pace::RequestRate;
pub use scheduler::send::{SendAssistance, SendSettings};
pub use scheduler::send_board::SendStatus;
pub use scheduler::spin::{SpinChoice, SpinMethod, SpinScale, SpinSettings};
pub use transport::figures::{LinkFigures, PeerFigures};
pub use turn_clock::TurnClock;
pub use wire_signal::{DecodeError, EncodeError, LinkMaker, WireSignal};
pub use world::{
    FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, FolderEntry, SocketCloseReason, SocketId,
    WorldEvent, WorldRequest,
};
