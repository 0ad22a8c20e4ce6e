//! Output that a thread writes to the sockets of other threads. The thread never waits for such a socket:
//! output that the socket does not take goes back to the socket's owner.

use std::collections::VecDeque;

use crate::context::Time;
use crate::envelope::SocketParcel;
use crate::output_batch::OutputBatch;
use crate::scheduler::run::Services;
use crate::scheduler::send::{KEEP_MAX, SendState};

/// Maximum number of batches written in one turn. The bound lets owners get written batches back soon, and
/// this thread's own work continue.
const BATCHES_MAX: usize = 8;

/// Maximum number of bytes of one batch written in one turn, for the same reasons. Without it, a client that
/// reads as fast as we write could keep this thread writing for as long as the batch lasts.
pub(super) const BATCH_BYTES_MAX: usize = 128 << 10;

/// The batches that one thread writes for others, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct ForeignOutput {
    batches: VecDeque<Box<OutputBatch>>,
    /// Number of writes for other threads.
    pub(super) writes: u64,
    /// Bytes written for other threads.
    pub(super) bytes: u64,
    /// Batches returned unwritten.
    pub(super) refused: u64,
}

impl ForeignOutput {
    pub(super) fn has_output(&self) -> bool {
        !self.batches.is_empty()
    }

    pub(super) fn take(&mut self, mut batch: Box<OutputBatch>, now: Time) {
        batch.arrived = now;
        self.batches.push_back(batch);
    }

    /// Writes as many batches as a thread in this state should. `is_idle` tells whether the thread has no
    /// other work.
    pub(super) fn write_output(&mut self, state: SendState, is_idle: bool, now: Time, services: &mut Services<'_>) {
        let is_kept_long = |batch: &OutputBatch| now.since(batch.arrived).0 >= KEEP_MAX.0;
        let count = match state {
            SendState::Light => BATCHES_MAX,
            SendState::Overload => return self.refuse(services),
            SendState::Medium | SendState::High => {
                let late = self.batches.iter().take(BATCHES_MAX).take_while(|batch| is_kept_long(batch)).count();
                late.max(usize::from(is_idle))
            }
        };
        for _ in 0..count.min(self.batches.len()) {
            let Some(mut batch) = self.batches.pop_front() else { return };
            self.bytes += batch.write(BATCH_BYTES_MAX) as u64;
            self.writes += 1;
            if batch.result.is_some() {
                services.parcels.push((batch.owner, SocketParcel::OutputReturned(batch)));
            } else {
                // The rest of a long batch queues behind the other batches as if it had just arrived.
                batch.arrived = now;
                self.batches.push_back(batch);
            }
        }
    }

    /// Returns all batches unwritten.
    #[cold]
    fn refuse(&mut self, services: &mut Services<'_>) {
        for batch in self.batches.drain(..) {
            self.refused += 1;
            services.parcels.push((batch.owner, SocketParcel::OutputReturned(batch)));
        }
    }
}
