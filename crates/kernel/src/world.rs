//! The world outside the blocks, as requests to it and events from it: timers, sockets and files.
//!
//! Block code sees no socket, file or clock; it sends a [`WorldRequest`] and receives a [`WorldEvent`]. Events that
//! answer a request go to the address that made it; events of a socket go to the recv instance that owns it.

use std::fmt;
use std::net::SocketAddr;

use crate::buffer::Buffer;
use crate::context::Duration;
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;

/// A socket: the recv instance that owns it, its place there, and how often the place was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(u64);

impl SocketId {
    const INDEX_BITS: u32 = 24;
    const GENERATION_BITS: u32 = 24;

    /// The socket at a place of a recv instance; index and generation keep their low 24 bits.
    pub const fn new(owner: u16, index: u32, generation: u32) -> Self {
        let index = index as u64 & ((1 << Self::INDEX_BITS) - 1);
        let generation = generation as u64 & ((1 << Self::GENERATION_BITS) - 1);
        Self((owner as u64) << (Self::INDEX_BITS + Self::GENERATION_BITS) | generation << Self::INDEX_BITS | index)
    }

    /// The recv instance that owns it.
    pub const fn owner(self) -> u16 {
        (self.0 >> (Self::INDEX_BITS + Self::GENERATION_BITS)) as u16
    }

    /// Its place in the owner's table; dense, so that a block may keep its own table by it.
    pub const fn index(self) -> u32 {
        (self.0 & ((1 << Self::INDEX_BITS) - 1)) as u32
    }

    /// How often the place was used before.
    pub const fn generation(self) -> u32 {
        (self.0 >> Self::INDEX_BITS & ((1 << Self::GENERATION_BITS) - 1)) as u32
    }

    /// All parts in one word.
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The socket that [`SocketId::to_u64`] made.
    pub const fn from_u64(word: u64) -> Self {
        Self(word)
    }
}

/// An open file of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// It must exist and is only read.
    Read,
    /// It must exist and is read and written.
    ReadWrite,
    /// It is made if missing and kept if there; its folder, and the folders above it, are made too.
    CreateOrOpen,
    /// It is made, or emptied if there; folders as above.
    CreateEmpty,
}

/// What a block asks of the world.
#[derive(Debug)]
pub enum WorldRequest {
    /// A [`WorldEvent::Timer`] with this token, not earlier than `after`. Not cancelled; a block ignores a stale one.
    StartTimer {
        /// How long from the context's `now`.
        after: Duration,
        /// Comes back with the event.
        token: u64,
    },
    /// All threads of the node spin like this from now on.
    SetSpinning {
        /// How.
        settings: SpinSettings,
    },
    /// All threads of the node send like this from now on.
    SetSending {
        /// How.
        settings: SendSettings,
    },
    /// Writes bytes to a socket, after all sent before by this thread. Ignored if the socket is closed.
    SendBytes {
        /// The socket.
        socket: SocketId,
        /// The bytes; the kernel keeps the buffer.
        bytes: Buffer,
    },
    /// Closes a socket once what was sent is written. Answered by [`WorldEvent::SocketClosed`].
    CloseSocket {
        /// The socket.
        socket: SocketId,
    },
    /// No more [`WorldEvent::Received`] for this socket until resumed.
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
        /// The path, relative to the node's data folder or absolute.
        path: Box<str>,
        /// What may be done with it.
        mode: FileMode,
        /// Comes back with the answer.
        token: u64,
    },
    /// Writes bytes at the end of a file. Answered by [`FileOutcome::Written`] with the offset used.
    AppendFile {
        /// The file.
        file: FileId,
        /// The bytes; they come back with the answer, for reuse.
        bytes: Buffer,
        /// Comes back with the answer.
        token: u64,
    },
    /// Writes bytes at an offset. Answered by [`FileOutcome::Written`].
    WriteFile {
        /// The file.
        file: FileId,
        /// Where, in bytes from the start.
        offset: u64,
        /// The bytes; they come back with the answer, for reuse.
        bytes: Buffer,
        /// Comes back with the answer.
        token: u64,
    },
    /// Makes what was written survive a crash. Answered by [`FileOutcome::Synced`]. After one failure every later
    /// request on the file fails with [`FileError::Poisoned`].
    SyncFile {
        /// The file.
        file: FileId,
        /// Comes back with the answer.
        token: u64,
    },
    /// Reads bytes; fewer at the end of the file. Answered by [`FileOutcome::Read`].
    ReadFile {
        /// The file.
        file: FileId,
        /// Where, in bytes from the start.
        offset: u64,
        /// The most bytes to read.
        length: u32,
        /// Comes back with the answer.
        token: u64,
    },
    /// Closes a file. Answered by [`FileOutcome::Closed`].
    CloseFile {
        /// The file.
        file: FileId,
        /// Comes back with the answer.
        token: u64,
    },
    /// Removes a file. Answered by [`FileOutcome::Deleted`], also if it was not there.
    DeleteFile {
        /// The path.
        path: Box<str>,
        /// Comes back with the answer.
        token: u64,
    },
    /// Stops the node in good order.
    Stop,
}

/// Why a socket is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketCloseReason {
    /// The other side closed it.
    Peer,
    /// A block closed it.
    Own,
    /// The connection broke.
    Broken,
    /// More bytes were queued for it than may be.
    OutputFull,
    /// The node stops.
    Stopping,
}

/// What the world tells a block.
#[derive(Debug)]
pub enum WorldEvent {
    /// The first signal of every module instance, at the start of its thread.
    Started,
    /// The node stops: begin no work, end what is begun.
    Stopping,
    /// A timer that this block started is due.
    Timer {
        /// From the request.
        token: u64,
    },
    /// A connection was accepted.
    SocketOpened {
        /// The socket.
        socket: SocketId,
        /// Who connected.
        peer: SocketAddr,
        /// Through which listener, by its position in the node's list.
        listener: u16,
    },
    /// Bytes came. The block gives the buffer back to a pool.
    Received {
        /// The socket.
        socket: SocketId,
        /// At least one byte.
        bytes: Buffer,
    },
    /// Queued output rose above the high-water mark: hold back.
    SendBlocked {
        /// The socket.
        socket: SocketId,
    },
    /// Queued output fell below the low-water mark after having been above the high one.
    SendDrained {
        /// The socket.
        socket: SocketId,
    },
    /// The socket is closed; the last event of it.
    SocketClosed {
        /// The socket.
        socket: SocketId,
        /// Why.
        reason: SocketCloseReason,
    },
    /// The answer to a file request.
    FileDone {
        /// From the request.
        token: u64,
        /// What happened.
        result: FileResult,
        /// The bytes read, or the buffer that was written; empty otherwise.
        bytes: Buffer,
    },
}

/// The answer to a file request.
pub type FileResult = Result<FileOutcome, FileError>;

/// What a file request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// The file is open.
    Opened {
        /// Names it from now on.
        file: FileId,
        /// Its length in bytes.
        length: u64,
    },
    /// All bytes were written.
    Written {
        /// Where they begin.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Everything written before survives a crash.
    Synced,
    /// Bytes were read.
    Read {
        /// How many; fewer than asked for at the end of the file.
        length: u32,
    },
    /// The file is closed.
    Closed,
    /// The file is no more.
    Deleted,
}

/// Why a file request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// There is no such file.
    NotFound,
    /// The file is not open.
    NotOpen,
    /// The process may not do this.
    Denied,
    /// The device is full.
    DiskFull,
    /// Too many files are open.
    TooManyOpen,
    /// A sync of this file failed before, so that nobody knows what is on disk.
    Poisoned,
    /// The operating system's error number.
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
