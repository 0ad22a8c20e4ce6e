//! One connection of the load.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::work::{Keys, Progress, Work};
use junctor_front::mysql::wire::Command;

use crate::mysql::ReplyScanner;
use crate::mysql::request::push_command;
use crate::{Failure, Outcome};

/// Errors of conflicts: deadlock, lock wait timeout, and a row that a newer transaction changed.
const REFUSALS: [u16; 3] = [1213, 1205, 1020];

/// Buffers and settings that all connections of a thread share, so that a connection needs little memory.
pub struct SharedBuffers {
    /// The kind of operation.
    pub work: Work,
    /// Source of the keys.
    pub keys: Keys,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl SharedBuffers {
    /// Makes the buffers.
    pub fn new(work: Work, keys: Keys) -> SharedBuffers {
        SharedBuffers { work, keys, request: Vec::with_capacity(512), buffer: vec![0; 64 << 10] }
    }
}

/// The part of an operation that the received bytes complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing: the reply is incomplete.
    Nothing,
    /// A statement, but not the last of its operation.
    Statement,
    /// An operation.
    Operation,
    /// An operation that the server refused because of a conflict. A rollback must follow.
    Refusal,
    /// The rollback after a refusal.
    Rollback,
}

/// Counts the statements of the current operation whose replies arrived during the measurement. They become
/// throughput once the operation succeeds.
#[derive(Default)]
pub struct Tally(u64);

impl Tally {
    /// Records a reply. `counts` is true during the measurement. Returns the number of statements to add to
    /// the throughput: 0 until the operation succeeds, then the number of its replies that arrived during the
    /// measurement. A refused operation adds none.
    pub fn count(&mut self, ended: Ended, counts: bool) -> u64 {
        match ended {
            Ended::Nothing | Ended::Rollback => 0,
            Ended::Refusal => {
                self.0 = 0;
                0
            }
            Ended::Statement => {
                self.0 += u64::from(counts);
                0
            }
            Ended::Operation => std::mem::take(&mut self.0) + u64::from(counts),
        }
    }
}

/// A connection that has logged in, or one to an echo server.
pub struct LoadConnection {
    stream: TcpStream,
    scanner: ReplyScanner,
    statement: u32,
    progress: Progress,
    /// Whether the next reply ends the operation.
    ends: bool,
    rolls_back: bool,
    /// Start of the operation.
    pub began: Instant,
    /// When the outstanding statement was sent, if it is not the first one of its operation.
    pub sent_inside: Option<Instant>,
    /// The statements of the operation that count so far.
    pub tally: Tally,
}

impl LoadConnection {
    /// Takes over a non-blocking socket. `statement` is the id of its prepared statement.
    pub fn new(stream: TcpStream, statement: u32) -> LoadConnection {
        let (scanner, progress) = (ReplyScanner::default(), Progress::default());
        let (began, tally) = (Instant::now(), Tally::default());
        let sent_inside = None;
        LoadConnection {
            stream,
            scanner,
            statement,
            progress,
            ends: false,
            rolls_back: false,
            began,
            sent_inside,
            tally,
        }
    }

    /// The descriptor of the socket.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sends the next statement.
    ///
    /// # Errors
    /// The connection is broken, or its send buffer is full although no statement is outstanding.
    pub fn send(&mut self, shared: &mut SharedBuffers) -> Outcome<()> {
        self.sent_inside = (self.progress != Progress::default()).then(Instant::now);
        self.ends = shared.work.push_next(&mut self.progress, self.statement, &mut shared.keys, &mut shared.request);
        self.write(&shared.request)
    }

    /// Sends the rollback after a refusal.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_rollback(&mut self, shared: &mut SharedBuffers) -> Outcome<()> {
        Work::push_rollback(&mut self.progress, &mut shared.request);
        self.rolls_back = true;
        self.write(&shared.request)
    }

    /// Reads the received bytes.
    ///
    /// # Errors
    /// The connection is broken, or the server refused a statement for another reason than a conflict.
    pub fn receive(&mut self, shared: &mut SharedBuffers) -> Outcome<Ended> {
        let count = match self.stream.read(&mut shared.buffer) {
            Ok(0) => return Err(Failure::new("the server closed a connection")),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Ended::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        if !self.scanner.feed(&shared.buffer[..count])? {
            return Ok(Ended::Nothing);
        }
        let errno = self.scanner.errno;
        self.scanner.restart();
        match (errno != 0, std::mem::take(&mut self.rolls_back)) {
            (true, false) if shared.work.may_be_refused() && REFUSALS.contains(&errno) => Ok(Ended::Refusal),
            (true, _) => Err(Failure::new(format!("the server refused a statement with error {errno}"))),
            (false, true) => Ok(Ended::Rollback),
            (false, false) if self.ends => Ok(Ended::Operation),
            (false, false) => Ok(Ended::Statement),
        }
    }

    /// Sends COM_QUIT. An echo server replies to it as to any request.
    pub fn quit(&mut self) {
        let mut request = Vec::with_capacity(5);
        push_command(&mut request, Command::Quit);
        // The server may already be gone.
        let _ = self.stream.write_all(&request);
    }

    fn write(&mut self, request: &[u8]) -> Outcome<()> {
        match self.stream.write(request)? {
            count if count == request.len() => Ok(()),
            count => {
                Err(Failure::new(format!("the send buffer took {count} of the {} bytes of a statement", request.len())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The throughput of these replies. Those with an index in `counting` arrive during the measurement.
    fn throughput(answers: &[Ended], counting: std::ops::Range<usize>) -> u64 {
        let mut tally = Tally::default();
        answers.iter().enumerate().map(|(number, ended)| tally.count(*ended, counting.contains(&number))).sum()
    }

    #[test]
    fn requests_of_a_refused_operation_do_not_count_as_throughput() {
        use Ended::{Nothing, Operation, Refusal, Rollback, Statement};
        assert_eq!(throughput(&[Operation, Nothing, Operation], 0..3), 2);
        assert_eq!(throughput(&[Statement, Statement, Operation], 0..3), 3);
        assert_eq!(throughput(&[Statement, Statement, Refusal, Rollback], 0..4), 0);
        assert_eq!(throughput(&[Statement, Refusal, Rollback, Statement, Operation], 0..5), 2);
        assert_eq!(throughput(&[Statement, Operation, Statement, Refusal, Rollback, Operation], 0..6), 3);
    }

    #[test]
    fn an_operation_partly_inside_the_window_counts_in_part() {
        use Ended::{Operation, Refusal, Rollback, Statement};
        let whole = [Statement, Statement, Statement, Operation];
        assert_eq!(throughput(&whole, 2..4), 2);
        assert_eq!(throughput(&whole, 0..3), 3);
        assert_eq!(throughput(&whole, 1..3), 2);
        assert_eq!(throughput(&[Statement, Statement, Refusal, Rollback], 0..2), 0);
        assert_eq!(throughput(&[Statement, Refusal, Rollback, Operation], 1..3), 0);
    }
}
