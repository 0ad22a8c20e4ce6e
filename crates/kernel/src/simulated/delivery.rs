//! Delivers signals to blocks by hand, one at a time in one thread, for tests of blocks without threads or a
//! scheduler.
//!
//! Signals arrive in the order sent, or, with a seed, in any order that keeps the order between each pair of
//! blocks. File requests succeed immediately and nothing is stored. Time moves only when the test moves it.

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;
use crate::block::Signal;
use crate::context::{Context, TestContext, Time};
use crate::directory::{LayoutError, NodeLayout};
use crate::file_buffer::FileBuffer;
use crate::outbox::Outbox;
use crate::random::Random;
use crate::world::{FileId, FileOutcome, WorldEvent, WorldRequest};

/// Maximum number of deliveries between two moments without signals in flight. At this number the test
/// panics, because its signals seem never to end.
const DELIVERIES_MAX: usize = 2_000_000;

/// A signal that was sent and not delivered yet.
#[derive(Debug)]
pub struct InFlight<S> {
    /// The receiver.
    pub to: Address,
    /// The sender.
    pub from: Address,
    /// The signal.
    pub signal: S,
}

/// The signals in flight between the blocks of a test, with the contexts of those blocks.
pub struct Delivery<S> {
    contexts: BTreeMap<Address, TestContext>,
    /// Signals in the order sent.
    pub in_flight: VecDeque<InFlight<S>>,
    /// Chooses the next signal at random; without it, signals arrive in the order sent.
    pub random: Option<Random>,
    /// The time that contexts show.
    pub now: Time,
    timers: Vec<(Time, Address, u64)>,
    next_file: u32,
    /// Bytes written to files, of all files together, in the order of the requests.
    pub written: Vec<u8>,
    /// Whether answers to file requests are withheld: they stay in `held_files` instead of being sent.
    pub holds_files: bool,
    /// Whether `handle` returns file requests to the test instead of answering them.
    pub returns_files: bool,
    /// Held answers to file requests, each with the address of the requesting block.
    pub held_files: Vec<(Address, S)>,
    deliveries: usize,
}

impl<S: Signal> Default for Delivery<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Signal> Delivery<S> {
    /// A delivery without blocks, at time 0, in the order sent.
    pub fn new() -> Self {
        Self {
            contexts: BTreeMap::new(),
            in_flight: VecDeque::new(),
            random: None,
            now: Time(0),
            timers: Vec::new(),
            next_file: 0,
            written: Vec::new(),
            holds_files: false,
            returns_files: false,
            held_files: Vec::new(),
            deliveries: 0,
        }
    }

    /// Adds the block at `own` and sends it [`WorldEvent::Started`]. Refuses a layout that no node could
    /// have.
    pub fn add_block(&mut self, own: Address, layout: &NodeLayout, seed: u64) -> Result<(), LayoutError> {
        self.contexts.insert(own, TestContext::new(own, layout, seed)?);
        self.send(own, own, S::from_world(WorldEvent::Started));
        Ok(())
    }

    /// The blocks that were added, by address.
    pub fn blocks(&self) -> Vec<Address> {
        self.contexts.keys().copied().collect()
    }

    /// Puts a signal in flight.
    pub fn send(&mut self, to: Address, from: Address, signal: S) {
        self.in_flight.push_back(InFlight { to, from, signal });
    }

    /// Takes the next signal to deliver: the oldest one, or with a seed the oldest one of a random pair of
    /// blocks.
    ///
    /// # Panics
    ///
    /// Panics when signals never end.
    pub fn take_next(&mut self) -> Option<InFlight<S>> {
        let drawn = match &mut self.random {
            Some(random) if !self.in_flight.is_empty() => random.below(self.in_flight.len() as u64) as usize,
            _ => 0,
        };
        let Some(chosen) = self.in_flight.get(drawn) else {
            self.deliveries = 0;
            return None;
        };
        self.deliveries += 1;
        assert!(self.deliveries < DELIVERIES_MAX, "signals never end");
        let pair = (chosen.to, chosen.from);
        let oldest = self.in_flight.iter().position(|entry| (entry.to, entry.from) == pair);
        self.in_flight.remove(oldest.unwrap_or(drawn))
    }

    /// Runs a handler of the block at `own`, puts in flight what it sends, and answers its timer and file
    /// requests. Returns its other requests.
    ///
    /// # Panics
    ///
    /// Panics when the block was not added.
    pub fn handle(
        &mut self,
        own: Address,
        handler: impl FnOnce(&mut Context<'_>, &mut Outbox<S>),
    ) -> Vec<WorldRequest> {
        let mut outbox = Outbox::for_test(own);
        let context = self.contexts.get_mut(&own).unwrap_or_else(|| panic!("no block at {own}"));
        handler(&mut context.at(self.now), &mut outbox);
        for (to, signal) in outbox.take_sent() {
            self.send(to, own, signal);
        }
        outbox.take_requests().into_iter().filter_map(|request| self.carry_out(own, request)).collect()
    }

    /// Carries out a request; returns one that concerns neither timers nor files.
    fn carry_out(&mut self, own: Address, request: WorldRequest) -> Option<WorldRequest> {
        if self.returns_files && request.file_lane().is_some() {
            return Some(request);
        }
        let (token, outcome, bytes) = match request {
            WorldRequest::StartTimer { after, token } => {
                self.timers.push((self.now.plus(after), own, token));
                return None;
            }
            WorldRequest::OpenFile { lane, is_direct, token, .. } => {
                self.next_file += 1;
                let file = FileId::new(lane, self.next_file as usize % FileId::SLOTS_MAX, 0);
                (token, FileOutcome::Opened { file, length: 0, is_direct }, FileBuffer::new())
            }
            WorldRequest::WriteFile { offset, bytes, token, .. } => {
                self.written.extend_from_slice(&bytes);
                (token, FileOutcome::Written { offset, length: bytes.len() as u32 }, bytes)
            }
            WorldRequest::ReadFile { bytes, token, .. } => (token, FileOutcome::Read { length: 0 }, bytes),
            WorldRequest::SyncFile { token, .. } => (token, FileOutcome::Synced, FileBuffer::new()),
            WorldRequest::FillFile { token, .. } => (token, FileOutcome::Filled, FileBuffer::new()),
            WorldRequest::CloseFile { token, .. } => (token, FileOutcome::Closed, FileBuffer::new()),
            WorldRequest::DeleteFile { token, .. } => (token, FileOutcome::Deleted, FileBuffer::new()),
            WorldRequest::RenameFile { token, .. } => (token, FileOutcome::Renamed, FileBuffer::new()),
            WorldRequest::SyncFolder { token, .. } => (token, FileOutcome::FolderSynced, FileBuffer::new()),
            WorldRequest::CreateFolder { token, .. } => (token, FileOutcome::FolderCreated, FileBuffer::new()),
            WorldRequest::ListFolder { token, .. } => (token, FileOutcome::Listed(Vec::new()), FileBuffer::new()),
            other => return Some(other),
        };
        let done = S::from_world(WorldEvent::FileDone { token, result: Ok(outcome), bytes });
        match self.holds_files {
            true => self.held_files.push((own, done)),
            false => self.send(own, own, done),
        }
        None
    }

    /// Moves time to the earliest timer that is due by `end` and puts its event in flight. False when none is
    /// due.
    pub fn fire_timer_until(&mut self, end: Time) -> bool {
        let due = self.timers.iter().enumerate().filter(|(_, timer)| timer.0 <= end);
        let Some((position, _)) = due.min_by_key(|(position, timer)| (timer.0, *position)) else { return false };
        let (due, own, token) = self.timers.remove(position);
        self.now = self.now.max(due);
        self.send(own, own, S::from_world(WorldEvent::Timer { token }));
        true
    }

    /// Takes the timers that were started and did not fire, as (block, token), in the order started.
    pub fn take_timers(&mut self) -> Vec<(Address, u64)> {
        std::mem::take(&mut self.timers).into_iter().map(|(_, own, token)| (own, token)).collect()
    }
}
