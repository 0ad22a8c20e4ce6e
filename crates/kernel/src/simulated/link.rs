//! A link of the simulator: carries the signals from one node to another in order, encoded if the program has
//! an encoding.

use crate::block::{Endpoints, Signal};
use crate::buffer::BufferPool;
use crate::context::Time;
use crate::envelope::Envelope;
use crate::wire_signal::LinkEnds;

/// A signal on its way.
pub(super) enum InTransit<S> {
    /// As it was sent, because the program has no encoding.
    Plain(Envelope<S>),
    /// Encoded, and how often the link had been reset when it was sent.
    Record(Vec<u8>, u64),
}

/// The link from one node to another.
pub(super) struct SimulatedLink<S> {
    ends: Option<Box<dyn LinkEnds<S>>>,
    /// The lives of sender and receiver that the ends belong to.
    lives: (u32, u32),
    resets: u64,
    /// Arrival of the last signal, so that none overtakes it.
    pub(super) arrival: Time,
}

impl<S: Signal> SimulatedLink<S> {
    pub(super) fn new() -> Self {
        Self { ends: None, lives: (0, 0), resets: 0, arrival: Time(0) }
    }

    /// Encodes a signal. A new life of sender or receiver resets the link.
    pub(super) fn send(&mut self, envelope: Envelope<S>, lives: (u32, u32), buffers: &mut BufferPool) -> InTransit<S> {
        if self.lives != lives {
            self.lives = lives;
            self.resets += 1;
            self.ends = S::simulated_links().map(|links| links.make());
        }
        let Some(ends) = &mut self.ends else { return InTransit::Plain(envelope) };
        let endpoints = Endpoints { to: envelope.to, from: envelope.from };
        InTransit::Record(ends.encode(endpoints, envelope.signal, buffers), self.resets)
    }

    /// The signal that arrives; `None` if the link was reset after it had been sent.
    pub(super) fn receive(&mut self, signal: InTransit<S>, buffers: &mut BufferPool) -> Option<Envelope<S>> {
        match signal {
            InTransit::Plain(envelope) => Some(envelope),
            InTransit::Record(record, resets) => {
                let ends = self.ends.as_mut().filter(|_| resets == self.resets)?;
                let (Endpoints { to, from }, signal) = ends.decode(&record, buffers);
                Some(Envelope { to, from, signal })
            }
        }
    }
}
