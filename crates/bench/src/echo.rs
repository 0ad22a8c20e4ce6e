//! `echo`: a lower bound for the cost of any server. One thread waits with level-triggered epoll, reads a
//! request, and sends the bytes of a recorded reply. It can also sync a block to disk before each reply,
//! which is a lower bound for the time of a durable write.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::event::epoll;

use crate::failure::Explain;
use crate::{Failure, Outcome};

/// Start of the line that announces the server's address.
pub const READY: &str = "ready: echo ";

const LISTENER: u64 = 0;
const REQUEST_BYTES_MAX: usize = 64 << 10;
const BLOCK_BYTES: usize = 4096;
/// Blocks of the synced file. After the last one follows the first.
const BLOCKS: u64 = 16_384;

/// Options of `echo`.
#[derive(Debug, clap::Args)]
pub struct EchoOptions {
    /// File with the bytes of every answer
    #[arg(long, value_name = "FILE")]
    reply: PathBuf,
    /// File to which a block is written and synced before each answer
    #[arg(long, value_name = "FILE")]
    sync: Option<PathBuf>,
}

/// A file whose blocks are written and synced in turn.
struct SyncedFile {
    file: File,
    next: u64,
    block: [u8; BLOCK_BYTES],
}

impl SyncedFile {
    /// Fills the file with zeros, so that later syncs change no metadata of the file system.
    fn create(path: &Path) -> Outcome<SyncedFile> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        for _ in 0..BLOCKS {
            file.write_all(&[0; BLOCK_BYTES])?;
        }
        file.sync_all()?;
        Ok(SyncedFile { file, next: 0, block: [1; BLOCK_BYTES] })
    }

    fn sync_block(&mut self) -> Outcome<()> {
        self.file.write_all_at(&self.block, self.next % BLOCKS * BLOCK_BYTES as u64)?;
        self.next += 1;
        Ok(self.file.sync_data()?)
    }
}

struct Peer {
    stream: TcpStream,
    /// Bytes of an incomplete request.
    pending: Vec<u8>,
}

/// Serves requests until the process is killed.
///
/// # Errors
/// The file cannot be read, or the sockets cannot be opened.
pub fn run(options: &EchoOptions) -> Outcome<()> {
    let reply = fs::read(&options.reply).explain(options.reply.display())?;
    let mut file = options.sync.as_deref().map(SyncedFile::create).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    println!("{READY}{}", listener.local_addr()?);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut peers = BTreeMap::new();
    let mut next_id = LISTENER + 1;
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; REQUEST_BYTES_MAX];
    loop {
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let id = event.data.u64();
            if id == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                epoll::add(&poll, &stream, epoll::EventData::new_u64(next_id), epoll::EventFlags::IN)?;
                peers.insert(next_id, Peer { stream, pending: Vec::new() });
                next_id += 1;
            } else if let Some(peer) = peers.get_mut(&id)
                && serve(peer, &mut buffer, &reply, file.as_mut()).is_err()
            {
                // Closing the socket removes it from the poll.
                peers.remove(&id);
            }
        }
    }
}

fn serve(peer: &mut Peer, buffer: &mut [u8], reply: &[u8], mut file: Option<&mut SyncedFile>) -> Outcome<()> {
    let count = match peer.stream.read(buffer) {
        Ok(0) => return Err(Failure::new("closed")),
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if peer.pending.is_empty() && request_length(&buffer[..count]) == Some(count) {
        if let Some(file) = file {
            file.sync_block()?;
        }
        // A client that waits for each reply always leaves room for it in the send buffer.
        return Ok(peer.stream.write_all(reply)?);
    }
    peer.pending.extend_from_slice(&buffer[..count]);
    while let Some(length) = request_length(&peer.pending).filter(|length| *length <= peer.pending.len()) {
        peer.pending.drain(..length);
        if let Some(file) = &mut file {
            file.sync_block()?;
        }
        peer.stream.write_all(reply)?;
    }
    Ok(())
}

/// Length of the packet that begins here, with its header.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..4)?;
    Some(4 + u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize)
}
