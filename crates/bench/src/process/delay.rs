//! Delays everything between the nodes of a cluster, as a long cable does: each byte arrives a fixed time
//! after it was sent, and bytes keep their order. The latency of a statement then counts the messages on its
//! path that wait for one another.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::failure::Explain;

/// Pieces of one direction of a connection that are under way. A longer queue lets the sender wait.
const PIECES_MAX: usize = 4096;
const PIECE_BYTES: usize = 64 << 10;

/// The cables, until drop.
pub struct DelayedLinks {
    is_over: Arc<AtomicBool>,
    known: Vec<SocketAddr>,
}

impl DelayedLinks {
    /// Passes connections to the first address of each pair on to the second one.
    ///
    /// # Errors
    /// An address is in use.
    pub fn start(ends: Vec<[SocketAddr; 2]>, delay: Duration) -> Outcome<DelayedLinks> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut known = Vec::new();
        for [from, to] in ends {
            let listener = TcpListener::bind(from).explain(from)?;
            known.push(from);
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || accept(&listener, to, delay, &is_over));
        }
        Ok(DelayedLinks { is_over, known })
    }
}

impl Drop for DelayedLinks {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for address in &self.known {
            // Wakes the thread, which then ends.
            let _ = TcpStream::connect(address);
        }
    }
}

fn accept(listener: &TcpListener, to: SocketAddr, delay: Duration, is_over: &AtomicBool) {
    while let Ok((near, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        // Without the node behind it, the connection is closed at once.
        let Ok(far) = TcpStream::connect(to) else { continue };
        let clones = near.try_clone().and_then(|near| Ok((near, far.try_clone()?)));
        let Ok((near_too, far_too)) = clones else { continue };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        pass(near, far_too, delay);
        pass(far, near_too, delay);
    }
}

/// Passes one direction of a connection on until it ends.
fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_not_early() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let known = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("an address");
        let delay = Duration::from_millis(20);
        let ends = vec![[known, listener.local_addr().expect("an address")]];
        let links = DelayedLinks::start(ends, delay).expect("links");
        let mut near = TcpStream::connect(known).expect("a connection");
        let (mut far, _) = listener.accept().expect("a connection");
        let begin = Instant::now();
        near.write_all(b"ab").expect("sent");
        near.write_all(b"cd").expect("sent");
        let mut got = [0; 4];
        far.read_exact(&mut got).expect("received");
        assert_eq!(&got, b"abcd");
        assert!(begin.elapsed() >= delay);
        far.write_all(b"e").expect("sent");
        near.read_exact(&mut got[..1]).expect("received");
        assert!(got[0] == b'e' && begin.elapsed() >= delay * 2);
        drop(far);
        assert_eq!(near.read(&mut got).expect("an end"), 0);
        drop(links);
    }
}
