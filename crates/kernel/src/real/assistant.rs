//! What a thread writes for others. It needs no poll: what a socket does not take goes back to the owner, who waits for the
//! socket.

use std::collections::VecDeque;

use crate::context::Time;
use crate::envelope::SocketParcel;
use crate::output_batch::OutputBatch;
use crate::scheduler::run::Services;
use crate::scheduler::send::{KEEP_MAX, SendState};

/// The most batches written in one turn, so that owners soon get back what is written, and the thread's own work goes on.
const BATCHES_MAX: usize = 8;

/// Bytes of one batch written in one turn, for the same reasons: a reader as fast as the writer takes a whole batch, however long it is.
pub(super) const BATCH_BYTES_MAX: usize = 128 << 10;

/// The batches that one thread has, by their coming.
#[derive(Debug, Default)]
pub(super) struct Assistant {
    batches: VecDeque<Box<OutputBatch>>,
    /// Times and bytes written for others.
    pub(super) writes: u64,
    pub(super) bytes: u64,
    /// Loans that went back as they came.
    pub(super) refused: u64,
}

impl Assistant {
    pub(super) fn has_output(&self) -> bool {
        !self.batches.is_empty()
    }

    pub(super) fn take(&mut self, mut batch: Box<OutputBatch>, now: Time) {
        batch.came = now;
        self.batches.push_back(batch);
    }

    /// Writes what a thread in this state writes now. `is_idle` if it has nothing else to do.
    pub(super) fn write_output(&mut self, state: SendState, is_idle: bool, now: Time, services: &mut Services<'_>) {
        let is_kept_long = |batch: &OutputBatch| now.since(batch.came).0 >= KEEP_MAX.0;
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
                // What is left of it waits behind the others, as if it had come now.
                batch.came = now;
                self.batches.push_back(batch);
            }
        }
    }

    /// Gives everything back unwritten.
    #[cold]
    fn refuse(&mut self, services: &mut Services<'_>) {
        for batch in self.batches.drain(..) {
            self.refused += 1;
            services.parcels.push((batch.owner, SocketParcel::OutputReturned(batch)));
        }
    }
}
