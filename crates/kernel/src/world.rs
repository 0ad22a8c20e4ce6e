//! The world outside the blocks: requests to timers, sockets and files, and events from them.
//!
//! Block code sees no socket, file or clock. It sends a [`WorldRequest`] and receives a [`WorldEvent`]. An
//! answer goes to the address that made the request. Events of a socket go to the instance that owns it.

use std::fmt;
use std::net::SocketAddr;

use crate::buffer::Buffer;
use crate::context::Duration;
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;

/// A socket: the instance that owns it, its slot there, and the slot's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(u64);

impl SocketId {
    const INDEX_BITS: u32 = 24;
    const GENERATION_BITS: u32 = 24;

    /// The socket in slot `index` of an owner. Index and generation keep their low 24 bits.
    pub const fn new(owner: u16, index: u32, generation: u32) -> Self {
        let index = index as u64 & ((1 << Self::INDEX_BITS) - 1);
        let generation = generation as u64 & ((1 << Self::GENERATION_BITS) - 1);
        Self((owner as u64) << (Self::INDEX_BITS + Self::GENERATION_BITS) | generation << Self::INDEX_BITS | index)
    }

    /// The instance that owns the socket.
    pub const fn owner(self) -> u16 {
        (self.0 >> (Self::INDEX_BITS + Self::GENERATION_BITS)) as u16
    }

    /// Slot in the owner's table. Slots are dense, so a block may index its own table with them.
    pub const fn index(self) -> u32 {
        (self.0 & ((1 << Self::INDEX_BITS) - 1)) as u32
    }

    /// How often the slot was used before.
    pub const fn generation(self) -> u32 {
        (self.0 >> Self::INDEX_BITS & ((1 << Self::GENERATION_BITS) - 1)) as u32
    }

    /// All parts in one word.
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Reverses [`SocketId::to_u64`].
    pub const fn from_u64(word: u64) -> Self {
        Self(word)
    }
}

/// An open file of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// For reading; the file must exist.
    Read,
    /// For reading and writing; the file must exist.
    ReadWrite,
    /// Creates the file and its parent folders if they are missing.
    CreateOrOpen,
    /// Creates the file, or truncates it; creates parent folders too.
    CreateEmpty,
}

/// A request of a block to the world.
#[derive(Debug)]
pub enum WorldRequest {
    /// Sends [`WorldEvent::Timer`] with this token, not earlier than `after`. Timers cannot be cancelled; a
    /// block ignores a stale one.
    StartTimer {
        /// Delay from the context's `now`.
        after: Duration,
        /// Returned with the event.
        token: u64,
    },
    /// Changes how all threads of the node spin.
    SetSpinning {
        /// The new settings.
        settings: SpinSettings,
    },
    /// Changes how all threads of the node send.
    SetSending {
        /// The new settings.
        settings: SendSettings,
    },
    /// Writes bytes to a socket, after everything that this thread sent to it before. Ignored if the socket
    /// is closed.
    SendBytes {
        /// The socket.
        socket: SocketId,
        /// The kernel takes the buffer.
        bytes: Buffer,
    },
    /// Closes a socket once its output is written. Answered by [`WorldEvent::SocketClosed`].
    CloseSocket {
        /// The socket.
        socket: SocketId,
    },
    /// Suspends [`WorldEvent::Received`] for the socket.
    PauseReading {
        /// The socket.
        socket: SocketId,
    },
    /// Ends a pause.
    ResumeReading {
        /// The socket.
        socket: SocketId,
    },
    /// Opens a file. Answered by [`FileOutcome::Opened`].
    OpenFile {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// The operations that the opened file allows.
        mode: FileMode,
        /// Returned with the answer.
        token: u64,
    },
    /// Appends bytes to a file. Answered by [`FileOutcome::Written`] with the offset used.
    AppendFile {
        /// The file.
        file: FileId,
        /// Returned with the answer, for reuse.
        bytes: Buffer,
        /// Returned with the answer.
        token: u64,
    },
    /// Writes bytes at an offset. Answered by [`FileOutcome::Written`].
    WriteFile {
        /// The file.
        file: FileId,
        /// In bytes from the start.
        offset: u64,
        /// Returned with the answer, for reuse.
        bytes: Buffer,
        /// Returned with the answer.
        token: u64,
    },
    /// Makes earlier writes survive a crash. Answered by [`FileOutcome::Synced`]. After one failure every
    /// later request on the file fails with [`FileError::Poisoned`], because the operating system may have
    /// dropped the unwritten pages.
    SyncFile {
        /// The file.
        file: FileId,
        /// Returned with the answer.
        token: u64,
    },
    /// Reads bytes, fewer at the end of the file. Answered by [`FileOutcome::Read`].
    ReadFile {
        /// The file.
        file: FileId,
        /// In bytes from the start.
        offset: u64,
        /// Maximum number of bytes.
        length: u32,
        /// Returned with the answer.
        token: u64,
    },
    /// Closes a file. Answered by [`FileOutcome::Closed`].
    CloseFile {
        /// The file.
        file: FileId,
        /// Returned with the answer.
        token: u64,
    },
    /// Deletes a file. Answered by [`FileOutcome::Deleted`], even if the file did not exist.
    DeleteFile {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// Returned with the answer.
        token: u64,
    },
    /// Stops the node in good order.
    Stop,
}

/// Why a socket was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketCloseReason {
    /// The peer closed it.
    Peer,
    /// A block closed it.
    Own,
    /// The connection broke.
    Broken,
    /// Its queued output reached the maximum.
    OutputFull,
    /// The node is stopping.
    Stopping,
}

/// An event of the world for a block.
#[derive(Debug)]
pub enum WorldEvent {
    /// The first signal of every module instance, when its thread starts.
    Started,
    /// The node is stopping: begin no work, finish what was begun.
    Stopping,
    /// A timer of this block is due.
    Timer {
        /// The token of the request.
        token: u64,
    },
    /// A connection was accepted.
    SocketOpened {
        /// The socket.
        socket: SocketId,
        /// Address of the client.
        peer: SocketAddr,
        /// Position of the listener in the node's list.
        listener: u16,
    },
    /// Bytes arrived. The block gives the buffer back to a pool.
    Received {
        /// The socket.
        socket: SocketId,
        /// At least one byte.
        bytes: Buffer,
    },
    /// Queued output rose above the high-water mark. The block must hold back.
    SendBlocked {
        /// The socket.
        socket: SocketId,
    },
    /// Queued output fell below the low-water mark, after [`WorldEvent::SendBlocked`].
    SendDrained {
        /// The socket.
        socket: SocketId,
    },
    /// The socket is closed. Its last event.
    SocketClosed {
        /// The socket.
        socket: SocketId,
        /// The cause.
        reason: SocketCloseReason,
    },
    /// The answer to a file request.
    FileDone {
        /// The token of the request.
        token: u64,
        /// Outcome or error.
        result: FileResult,
        /// The bytes read, or the buffer that was written; otherwise empty.
        bytes: Buffer,
    },
}

/// The answer to a file request.
pub type FileResult = Result<FileOutcome, FileError>;

/// The effect of a successful file request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// The file is open.
    Opened {
        /// Identifies the file in later requests.
        file: FileId,
        /// Length in bytes.
        length: u64,
    },
    /// All bytes were written.
    Written {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Everything written before survives a crash.
    Synced,
    /// Bytes were read.
    Read {
        /// Number of bytes; fewer than requested at the end of the file.
        length: u32,
    },
    /// The file is closed.
    Closed,
    /// The file does not exist any more.
    Deleted,
}

/// Why a file request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The file does not exist.
    NotFound,
    /// The file is not open.
    NotOpen,
    /// The process lacks permission.
    Denied,
    /// The device is full.
    DiskFull,
    /// Too many files are open.
    TooManyOpen,
    /// An earlier sync of this file failed, so the state on disk is unknown.
    Poisoned,
    /// Another error, with the operating system's number.
    System(i32),
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => formatter.write_str("no such file"),
            Self::NotOpen => formatter.write_str("the file is not open"),
            Self::Denied => formatter.write_str("permission denied"),
            Self::DiskFull => formatter.write_str("the device is full"),
            Self::TooManyOpen => formatter.write_str("too many open files"),
            Self::Poisoned => formatter.write_str("an earlier sync of the file failed"),
            Self::System(number) => write!(formatter, "operating system error {number}"),
        }
    }
}

impl std::error::Error for FileError {}
