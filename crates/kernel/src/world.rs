//! The world outside the blocks: requests to timers, sockets and files, and events from them.
//!
//! Block code sees no socket, file or clock. It sends a [`WorldRequest`] and receives a [`WorldEvent`]. An
//! answer goes to the address that made the request. Events of a socket go to the instance that owns it.

use crate::buffer::Buffer;
use crate::context::Duration;
use crate::file_buffer::FileBuffer;
use crate::peer::PeerAddress;
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;
use crate::transport::board::MembershipChange;
use std::fmt;

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

/// A queue of file requests with a worker of its own. Requests of different lanes never wait for each other.
/// The names suggest a use; the kernel treats all lanes alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileLane {
    /// Small writes and syncs that clients wait for.
    Log,
    /// Large writes in the background.
    Checkpoint,
    /// Copies, and the preparation of files.
    Bulk,
    /// Reads that somebody waits for.
    Read,
    /// Small files and folders.
    Control,
    /// Files outside of the node's own folders, on any device.
    Outside,
    /// Files whose content nobody needs after a crash.
    Temporary,
}

impl FileLane {
    /// All lanes, by index.
    pub const ALL: [FileLane; 7] =
        [Self::Log, Self::Checkpoint, Self::Bulk, Self::Read, Self::Control, Self::Outside, Self::Temporary];

    /// Position in [`FileLane::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in thread names and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Checkpoint => "checkpoint",
            Self::Bulk => "bulk",
            Self::Read => "read",
            Self::Control => "control",
            Self::Outside => "outside",
            Self::Temporary => "temporary",
        }
    }
}

/// An open file of the node: its lane, its slot there, and the slot's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

impl FileId {
    const SLOT_BITS: u32 = 12;
    const GENERATION_BITS: u32 = 17;

    /// Maximum number of files that are open in one lane.
    pub const SLOTS_MAX: usize = 1 << Self::SLOT_BITS;

    /// The file in a slot below [`FileId::SLOTS_MAX`]. The generation keeps its low 17 bits.
    pub const fn new(lane: FileLane, slot: usize, generation: u32) -> Self {
        let generation = generation & ((1 << Self::GENERATION_BITS) - 1);
        let lane = lane.index() as u32;
        Self((lane << Self::GENERATION_BITS | generation) << Self::SLOT_BITS | slot as u32)
    }

    /// The lane in which the file was opened.
    pub const fn lane(self) -> FileLane {
        FileLane::ALL[(self.0 >> (Self::SLOT_BITS + Self::GENERATION_BITS)) as usize]
    }

    /// Slot in the table of the lane.
    pub const fn slot(self) -> usize {
        self.0 as usize & (Self::SLOTS_MAX - 1)
    }
}

/// How to open a file. No mode creates folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// For reading; the file must exist.
    Read,
    /// For reading and writing; the file must exist.
    ReadWrite,
    /// Creates the file if it is missing.
    CreateOrOpen,
    /// Creates the file, or truncates it.
    CreateEmpty,
    /// Creates the file, which must not exist. A link of that name is not followed.
    CreateNew,
}

/// A file or folder in the answer to [`WorldRequest::ListFolder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Name within the folder. Bytes that are not UTF-8 are replaced.
    pub name: Box<str>,
    /// Length in bytes; 0 for a folder.
    pub length: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// A request of a block to the world.
#[derive(Debug)]
pub enum WorldRequest {
    /// Sends [`WorldEvent::Timer`] with this token, not earlier than `after`. Timers cannot be cancelled; a
    /// block ignores a stale one.
    StartTimer {
        /// Delay from the context's `turn_start`.
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
    /// Takes nothing more from other nodes. The stop of a node with links waits for this request.
    EndLinks,
    /// Closes a socket once its output is written. Answered by [`WorldEvent::SocketClosed`].
    CloseSocket {
        /// The socket.
        socket: SocketId,
    },
    /// Closes a socket now. Output that waits is lost. Answered by [`WorldEvent::SocketClosed`].
    AbortSocket {
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
    /// Opens a file in a lane. Answered by [`FileOutcome::Opened`]. A created file survives a crash only
    /// after a [`WorldRequest::SyncFolder`] of its folder.
    ///
    /// Requests about one file are carried out in the order made, and so are the requests of one lane that
    /// name a path. Other requests of a lane may overtake each other.
    OpenFile {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// The operations that the opened file allows.
        mode: FileMode,
        /// Carries out this request and all requests for the opened file.
        lane: FileLane,
        /// Whether reads and writes bypass the operating system's cache, if the file system supports that.
        /// Offsets and lengths must be multiples of [`crate::file_buffer::FILE_BLOCK_BYTES`] even if it does
        /// not; other requests fail with [`FileError::Misaligned`].
        is_direct: bool,
        /// Returned with the answer.
        token: u64,
    },
    /// Opens a regular file in a folder or its subfolders, and no other file, whatever links the path
    /// contains. The check and the opening are one step. Answered by [`FileOutcome::Opened`].
    ///
    /// Errors: [`FileError::Outside`], [`FileError::NotAFile`]. [`FileError::Exists`] if the file of
    /// [`FileMode::CreateNew`] exists.
    OpenBeneath {
        /// The folder, absolute.
        folder: Box<str>,
        /// Relative to the folder, or absolute and beginning with the folder's path.
        path: Box<str>,
        /// The operations that the opened file allows.
        mode: FileMode,
        /// Carries out this request and all requests for the opened file.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Deletes a file in a folder or its subfolders, like [`WorldRequest::DeleteFile`]. Never deletes another
    /// file. A link is deleted itself. Error: [`FileError::Outside`].
    DeleteBeneath {
        /// The folder, absolute.
        folder: Box<str>,
        /// Relative to the folder, or absolute and beginning with the folder's path.
        path: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Writes bytes at an offset. Answered by [`FileOutcome::Written`]. After an error any part of the bytes
    /// may have been written.
    WriteFile {
        /// The file.
        file: FileId,
        /// In bytes from the start.
        offset: u64,
        /// Returned with the answer, for reuse.
        bytes: FileBuffer,
        /// Returned with the answer.
        token: u64,
    },
    /// Makes earlier writes and the length survive a crash. Answered by [`FileOutcome::Synced`]. After one
    /// failure every later request on the file fails with [`FileError::Poisoned`], because the operating
    /// system may have dropped the unwritten pages.
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
        /// Maximum number of bytes, at most [`WorldRequest::READ_BYTES_MAX`].
        length: u32,
        /// Emptied, filled and returned with the answer.
        bytes: FileBuffer,
        /// Returned with the answer.
        token: u64,
    },
    /// Overwrites the first bytes of a file with zeros and syncs them, so that later writes there change no
    /// metadata of the file system. Works in steps, between which the lane carries out requests about other
    /// files. Answered by [`FileOutcome::Filled`]; fails like a write or a sync.
    FillFile {
        /// The file.
        file: FileId,
        /// Number of bytes; for a direct file a multiple of the block.
        length: u64,
        /// Returned with the answer.
        token: u64,
    },
    /// Closes a file, also one whose sync failed. Answered by [`FileOutcome::Closed`]. Syncs nothing.
    CloseFile {
        /// The file.
        file: FileId,
        /// Returned with the answer.
        token: u64,
    },
    /// Deletes a file. Answered by [`FileOutcome::Deleted`], even if the file did not exist. The file may
    /// return after a crash until its folder is synced.
    DeleteFile {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Renames a file. Replaces a file of the new name in one step. Answered by [`FileOutcome::Renamed`]. A
    /// crash may undo it until both folders are synced.
    RenameFile {
        /// The present path.
        from: Box<str>,
        /// The new path.
        to: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Makes earlier creations, renames and deletions in a folder survive a crash, but not those in its
    /// subfolders. Answered by [`FileOutcome::FolderSynced`]. After a failure the state on disk is unknown,
    /// and another attempt proves nothing.
    SyncFolder {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Creates a folder and its missing parents. Answered by [`FileOutcome::FolderCreated`], even if the
    /// folder existed. Each new folder survives a crash once its parent is synced.
    CreateFolder {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Lists the files and folders in a folder. Answered by [`FileOutcome::Listed`].
    ListFolder {
        /// Absolute, or relative to the node's data folder.
        path: Box<str>,
        /// Carries out the request.
        lane: FileLane,
        /// Returned with the answer.
        token: u64,
    },
    /// Changes what the node's links know of the membership.
    SetMembership {
        /// The change.
        change: MembershipChange,
    },
    /// Stops the node in good order.
    Stop,
    /// Stops the node immediately, so that it answers nothing more. Used if the state of the data on disk is
    /// unknown, or if recovery fails.
    Halt {
        /// The reason, for people.
        message: Box<str>,
    },
}

impl WorldRequest {
    /// Maximum size of one read from a file, in bytes.
    pub const READ_BYTES_MAX: u32 = 64 << 20;

    /// The lane that carries out a request about a file or folder; `None` for other requests.
    pub fn file_lane(&self) -> Option<FileLane> {
        match self {
            Self::OpenFile { lane, .. }
            | Self::OpenBeneath { lane, .. }
            | Self::DeleteBeneath { lane, .. }
            | Self::DeleteFile { lane, .. }
            | Self::RenameFile { lane, .. }
            | Self::SyncFolder { lane, .. }
            | Self::CreateFolder { lane, .. }
            | Self::ListFolder { lane, .. } => Some(*lane),
            Self::WriteFile { file, .. }
            | Self::SyncFile { file, .. }
            | Self::ReadFile { file, .. }
            | Self::FillFile { file, .. }
            | Self::CloseFile { file, .. } => Some(file.lane()),
            Self::StartTimer { .. }
            | Self::SetSpinning { .. }
            | Self::SetSending { .. }
            | Self::SendBytes { .. }
            | Self::CloseSocket { .. }
            | Self::AbortSocket { .. }
            | Self::PauseReading { .. }
            | Self::ResumeReading { .. }
            | Self::SetMembership { .. }
            | Self::EndLinks
            | Self::Stop
            | Self::Halt { .. } => None,
        }
    }

    /// The open file of a request; `None` for requests that name a path, and others.
    pub(crate) fn file(&self) -> Option<FileId> {
        match self {
            Self::WriteFile { file, .. }
            | Self::SyncFile { file, .. }
            | Self::ReadFile { file, .. }
            | Self::FillFile { file, .. }
            | Self::CloseFile { file, .. } => Some(*file),
            _ => None,
        }
    }

    /// The token and the buffer of a request about a file or folder; 0 and nothing for other requests.
    pub(crate) fn into_token_and_bytes(self) -> (u64, FileBuffer) {
        match self {
            Self::WriteFile { bytes, token, .. } | Self::ReadFile { bytes, token, .. } => (token, bytes),
            Self::OpenFile { token, .. }
            | Self::OpenBeneath { token, .. }
            | Self::DeleteBeneath { token, .. }
            | Self::DeleteFile { token, .. }
            | Self::RenameFile { token, .. }
            | Self::SyncFolder { token, .. }
            | Self::CreateFolder { token, .. }
            | Self::ListFolder { token, .. }
            | Self::SyncFile { token, .. }
            | Self::FillFile { token, .. }
            | Self::CloseFile { token, .. } => (token, FileBuffer::new()),
            _ => (0, FileBuffer::new()),
        }
    }
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
    /// The queued output reached the maximum.
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
        /// The client.
        peer: PeerAddress,
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
        /// The bytes read, or the buffer of the request; otherwise empty.
        bytes: FileBuffer,
    },
}

/// The answer to a file request.
pub type FileResult = Result<FileOutcome, FileError>;

/// The effect of a successful file request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// The file is open.
    Opened {
        /// Identifies the file in later requests.
        file: FileId,
        /// Length in bytes.
        length: u64,
        /// Whether reads and writes bypass the operating system's cache.
        is_direct: bool,
    },
    /// All bytes were written. They survive a crash only after a sync.
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
    /// The zeros survive a crash.
    Filled,
    /// The file is closed.
    Closed,
    /// The file does not exist any more.
    Deleted,
    /// The file has its new name.
    Renamed,
    /// The names in the folder survive a crash.
    FolderSynced,
    /// The folder exists.
    FolderCreated,
    /// The content of the folder, sorted by name.
    Listed(Vec<FolderEntry>),
}

/// Why a file request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The file or a folder on its path does not exist.
    NotFound,
    /// The file exists, but should be created.
    Exists,
    /// The path leads out of its folder.
    Outside,
    /// The path names a folder, a pipe or a device.
    NotAFile,
    /// The file is not open.
    NotOpen,
    /// The process lacks permission.
    Denied,
    /// The device is full.
    DiskFull,
    /// Too many files are open.
    TooManyOpen,
    /// The lane has its maximum of waiting requests
    /// ([`crate::KernelLimits::file_requests_max`]). Nothing was done.
    QueueFull,
    /// Offset or length of a request about a direct file is not a multiple of the block. Nothing was done.
    Misaligned,
    /// An earlier sync of this file failed, so the state on disk is unknown.
    Poisoned,
    /// Another error, with the operating system's number.
    System(i32),
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => formatter.write_str("no such file or folder"),
            Self::Exists => formatter.write_str("the file exists"),
            Self::Outside => formatter.write_str("the path leads out of its folder"),
            Self::NotAFile => formatter.write_str("not a regular file"),
            Self::NotOpen => formatter.write_str("the file is not open"),
            Self::Denied => formatter.write_str("permission denied"),
            Self::DiskFull => formatter.write_str("the device is full"),
            Self::TooManyOpen => formatter.write_str("too many open files"),
            Self::QueueFull => formatter.write_str("too many file requests wait"),
            Self::Misaligned => formatter.write_str("offset or length is not a multiple of the block"),
            Self::Poisoned => formatter.write_str("an earlier sync of the file failed"),
            Self::System(number) => std::io::Error::from_raw_os_error(*number).fmt(formatter),
        }
    }
}

impl std::error::Error for FileError {}
