//! Carries out the operations of a lane through an io_uring: several files at a time, with one system call
//! for many operations.
//!
//! # Safety The operating system reads and writes the memory of an operation until the operation completes.
//! That memory belongs to the request that is under way in a slot of the lane, or is the lane's block of
//! zeros. Neither is changed, moved or freed before [`Lane::complete`]. The file stays open until then,
//! because a close waits for the file's earlier requests. [`Ring::run`] returns only when no operation is
//! under way; a panic aborts the process.

use std::io::Error;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode};
use rustix::event::{EventfdFlags, eventfd};

use super::lane::{Lane, Operation};
use super::queue::{AnswerSink, LaneQueue, NextWork};
use crate::require;

/// Maximum number of operations under way in one lane.
const OPERATIONS_MAX: usize = 64;

/// The ring of one lane.
pub(super) struct Ring {
    ring: IoUring,
    /// An event counter that counts completions, and new requests while the worker waits. The worker waits
    /// for it and not in the ring, because valgrind holds all threads while one waits in a ring.
    waker: Arc<OwnedFd>,
    /// Operations that have begun and not completed.
    under_way: usize,
}

impl Ring {
    /// Fails if the operating system has no io_uring, does not allow it, or lacks an operation.
    pub(super) fn new() -> Result<Self, Error> {
        let ring = IoUring::new(OPERATIONS_MAX as u32)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(Error::from_raw_os_error(libc::ENOSYS));
        }
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        ring.submitter().register_eventfd(waker.as_raw_fd())?;
        Ok(Self { ring, waker, under_way: 0 })
    }

    /// Wakes the worker when a request is added while it waits.
    pub(super) fn waker(&self) -> Arc<OwnedFd> {
        self.waker.clone()
    }

    /// Carries out requests until the queue is stopped and no operation is under way.
    pub(super) fn run(mut self, mut lane: Lane, queue: &LaneQueue, sink: &impl AnswerSink) {
        let mut is_stopping = false;
        loop {
            while !is_stopping {
                match queue.take(false) {
                    NextWork::Request(from, request) => lane.accept(from, request),
                    NextWork::Nothing => break,
                    NextWork::Stop => is_stopping = true,
                }
                // The request about a path may have taken long. Deliver its answer now, not after the other
                // requests.
                sink.deliver(lane.lane(), lane.take_answers());
            }
            if is_stopping && self.under_way == 0 {
                return;
            }
            while !is_stopping
                && self.under_way < OPERATIONS_MAX
                && let Some(slot) = lane.next_ready()
            {
                self.begin(&mut lane, slot);
            }
            let is_submitted = self.submit();
            // A request that arrived after the queue was found empty did not write the waker, so
            // `announce_wait` checks again.
            if is_submitted && (is_stopping || queue.announce_wait()) {
                // If a signal of the operating system interrupts the read, the worker finds no work and waits
                // again.
                let _ = rustix::io::read(&self.waker, &mut [0; 8]);
                queue.end_wait();
            }
            self.complete(&mut lane);
            sink.deliver(lane.lane(), lane.take_answers());
        }
    }

    fn begin(&mut self, lane: &mut Lane, slot: usize) {
        let (file, operation) = lane.operation(slot);
        let file = Fd(file.as_raw_fd());
        let entry = match operation {
            Operation::Write(bytes, offset) => {
                opcode::Write::new(file, bytes.as_ptr(), bytes.len() as u32).offset(offset).build()
            }
            Operation::Read(bytes, offset) => {
                opcode::Read::new(file, bytes.as_mut_ptr(), bytes.len() as u32).offset(offset).build()
            }
            Operation::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        // SAFETY: the operation's memory and file outlive it (top of the file).
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        require!(pushed.is_ok(), "the ring has room for all operations");
        self.under_way += 1;
    }

    /// Hands what has begun to the operating system. False if some of it has to be submitted again.
    fn submit(&mut self) -> bool {
        let Err(error) = self.ring.submit() else { return self.ring.submission().is_empty() };
        // Interrupted, or short of memory.
        let is_passing = matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN));
        require!(is_passing, "an io_uring accepts operations: {error}");
        false
    }

    fn complete(&mut self, lane: &mut Lane) {
        let Self { ring, under_way, .. } = self;
        for completion in ring.completion() {
            let result = completion.result();
            *under_way -= 1;
            let result = if result < 0 { Err(Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
            lane.complete(completion.user_data() as usize, result);
        }
    }
}
