//! Files: opened, read, written and synced by the workers of seven lanes, never interpreted.
//!
//! Each lane has a worker thread, so a slow device delays only the requests of its own lane. A thread of the
//! node adds its blocks' requests to the queue of a lane. The worker carries them out, puts the answers into
//! the answer box of that thread, and wakes it. No thread of the node waits for a device.
//!
//! The worker of the lane Log runs the turn of a sleeping thread itself instead of waking it
//! (`real/thread_slot.rs`), because a client waits for that turn.

use std::io::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::world::{FileError, FileLane, WorldEvent, WorldRequest};

use lane::{Lane, carry_out};
use queue::{LaneQueue, NextWork};
use ring::Ring;

mod beneath;
mod lane;
mod queue;
mod ring;

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

    /// Whether the worker of a lane has work. A hint.
    pub(super) fn is_busy(&self, lane: FileLane) -> bool {
        self.0[lane.index()].is_busy()
    }

    /// Whether the worker of a lane has requests that it has not begun.
    pub(super) fn has_requests(&self, lane: FileLane) -> bool {
        self.0[lane.index()].has_requests()
    }
}

/// How the workers of files make their system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileBackend {
    /// An io_uring in the lanes that have many operations at a time. Plain calls in the lanes that mostly
    /// sync, because an io_uring passes each sync to yet another thread. Plain calls everywhere if the
    /// operating system has no io_uring.
    #[default]
    Automatic,
    /// One blocking call after the other.
    Plain,
    /// A ring in every lane; plain calls if the operating system has no io_uring.
    IoUring,
}

impl FileBackend {
    /// Every choice.
    pub const ALL: [FileBackend; 3] = [FileBackend::Automatic, FileBackend::Plain, FileBackend::IoUring];

    /// Name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "auto",
            Self::Plain => "plain",
            Self::IoUring => "io_uring",
        }
    }

    /// The choice with this name; case-insensitive.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name().eq_ignore_ascii_case(name))
    }

    fn has_ring(self, lane: FileLane) -> bool {
        match self {
            Self::Automatic => matches!(lane, FileLane::Checkpoint | FileLane::Bulk | FileLane::Read),
            Self::Plain => false,
            Self::IoUring => true,
        }
    }
}

/// How to start the workers of files.
pub(super) struct FileOptions<'a> {
    /// Base of relative paths.
    pub(super) folder: &'a Path,
    /// Maximum number of requests that wait in a lane.
    pub(super) requests_max: u32,
    pub(super) backend: FileBackend,
}

/// The workers of a node's lanes. They end when this is dropped.
#[derive(Debug)]
pub(super) struct FileWorkers {
    queues: FileQueues,
    threads: Vec<JoinHandle<()>>,
    notices: Vec<String>,
}

impl FileWorkers {
    /// Starts a worker for each lane. Each calls `prepare` first, on its thread.
    pub(super) fn start(
        options: &FileOptions<'_>,
        sink: &Arc<impl AnswerSink + 'static>,
        prepare: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self, Error> {
        let (mut rings, mut notices) = (FileLane::ALL.map(|_| None), Vec::new());
        for lane in FileLane::ALL.into_iter().filter(|lane| options.backend.has_ring(*lane)) {
            match Ring::new() {
                Ok(ring) => rings[lane.index()] = Some(ring),
                Err(error) if notices.is_empty() && options.backend == FileBackend::IoUring => {
                    notices.push(format!("files use plain system calls: no io_uring: {error}"));
                }
                Err(_) => {}
            }
        }
        let waker = |lane: usize| rings[lane].as_ref().map(Ring::waker);
        let queues = std::array::from_fn(|lane| LaneQueue::new(options.requests_max, waker(lane)));
        let queues = FileQueues(Arc::new(queues));
        let mut workers = Self { queues: queues.clone(), threads: Vec::new(), notices };
        for (lane, ring) in FileLane::ALL.into_iter().zip(rings) {
            let worker = Lane::new(lane, options.folder.to_owned());
            let (queues, sink, prepare) = (queues.clone(), sink.clone(), prepare.clone());
            let name = format!("io-{}", lane.name());
            workers.threads.push(std::thread::Builder::new().name(name).spawn(move || {
                let guard = super::AbortOnPanic;
                prepare();
                let queue = &queues.0[lane.index()];
                match ring {
                    Some(ring) => ring.run(worker, queue, &*sink),
                    None => run(worker, queue, &*sink),
                }
                std::mem::forget(guard);
            })?);
        }
        Ok(workers)
    }

    pub(super) fn queues(&self) -> &FileQueues {
        &self.queues
    }

    /// Problems at start that were not fatal.
    pub(super) fn notices(&self) -> &[String] {
        &self.notices
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
            NextWork::Request(from, request) => lane.accept(from, request),
            NextWork::Nothing => {}
            NextWork::Stop => return sink.deliver(lane.lane(), lane.take_answers()),
        }
        if let Some(slot) = lane.next_ready() {
            let (file, operation) = lane.operation(slot);
            let result = carry_out(file, operation);
            lane.complete(slot, result);
        }
        if !lane.awaits_sync(|| queue.next_sync()) {
            sink.deliver(lane.lane(), lane.take_answers());
        }
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod measure;
#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
