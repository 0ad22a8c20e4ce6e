//! Files: opened, read, written and synced by the workers of five lanes, never interpreted.
//!
//! Each lane has a worker thread, so a slow device delays only the requests of its own lane. A thread of the
//! node adds its blocks' requests to the queue of a lane. The worker carries them out, puts the answers into
//! the answer box of that thread, and wakes it. No thread of the node waits for a device.

use std::io::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::world::{FileError, FileLane, WorldEvent, WorldRequest};

use lane::{Lane, carry_out};
use queue::{Found, LaneQueue};

mod lane;
mod queue;

pub(super) use queue::{Answer, AnswerBox, AnswerSink, Requester};

/// The queues of a node's lanes. Cloned into every thread of the node.
#[derive(Clone, Debug)]
pub(super) struct FileQueues(Arc<[LaneQueue; FileLane::ALL.len()]>);

impl FileQueues {
    /// Hands a request to its lane. Returns the answer if the lane refuses the request.
    pub(super) fn submit(&self, from: Requester, request: WorldRequest) -> Result<(), WorldEvent> {
        let Some(lane) = request.file_lane() else { return Ok(()) };
        self.0[lane.index()].push(from, request).map_err(|request| {
            let (token, bytes) = request.into_token_and_bytes();
            WorldEvent::FileDone { token, result: Err(FileError::QueueFull), bytes }
        })
    }
}

/// The workers of a node's lanes. They end when this is dropped.
#[derive(Debug)]
pub(super) struct FileWorkers {
    queues: FileQueues,
    threads: Vec<JoinHandle<()>>,
}

impl FileWorkers {
    /// Starts a worker for each lane. Each calls `prepare` first, on its thread. Relative paths start at
    /// `folder`. A lane holds at most `requests_max` waiting requests.
    pub(super) fn start(
        folder: &Path,
        requests_max: u32,
        sink: &Arc<impl AnswerSink + 'static>,
        prepare: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self, Error> {
        let queues = FileQueues(Arc::new(std::array::from_fn(|_| LaneQueue::new(requests_max))));
        let mut workers = Self { queues: queues.clone(), threads: Vec::new() };
        for lane in FileLane::ALL {
            let worker = Lane::new(lane, folder.to_owned());
            let (queues, sink, prepare) = (queues.clone(), sink.clone(), prepare.clone());
            let name = format!("io-{}", lane.name());
            workers.threads.push(std::thread::Builder::new().name(name).spawn(move || {
                let guard = super::AbortOnPanic;
                prepare();
                run(worker, &queues.0[lane.index()], &*sink);
                std::mem::forget(guard);
            })?);
        }
        Ok(workers)
    }

    pub(super) fn queues(&self) -> &FileQueues {
        &self.queues
    }
}

impl Drop for FileWorkers {
    /// Waits for the operations that are under way. Requests that wait are dropped unanswered.
    fn drop(&mut self) {
        self.queues.0.iter().for_each(LaneQueue::stop);
        for thread in self.threads.drain(..) {
            // A worker ends by itself or aborts the process.
            let _ = thread.join();
        }
    }
}

/// Carries out requests with blocking system calls until the queue is stopped.
fn run(mut lane: Lane, queue: &LaneQueue, sink: &impl AnswerSink) {
    loop {
        match queue.take(!lane.has_ready()) {
            Found::Request(from, request) => lane.accept(from, request),
            Found::Nothing => {}
            Found::Stop => return,
        }
        if let Some(slot) = lane.next_ready() {
            let (file, operation) = lane.operation(slot);
            let result = carry_out(file, operation);
            lane.complete(slot, result);
        }
        lane.take_answers().for_each(|answer| sink.deliver(answer));
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
