//! The rep block: the change stream. This version produces none. The empty block exists so that placements
//! can name its thread.
//!
//! - Owns: nothing.
//! - Takes: the start and the stop of its thread.
//! - Sends: nothing.
//! - Never: blocks a commit.

use junctor_kernel::{Context, Outbox, WorldEvent};
use junctor_signals::Signal;

/// The rep block. A node has one instance.
#[derive(Debug, Default)]
pub struct RepBlock;

impl RepBlock {
    /// Creates the node's instance.
    pub fn new() -> RepBlock {
        RepBlock
    }

    /// Handles an event; none concerns this block.
    pub fn on_world(&mut self, event: WorldEvent, _context: &mut Context<'_>, _outbox: &mut Outbox<Signal>) {
        match event {
            WorldEvent::Started
            | WorldEvent::Stopping
            | WorldEvent::Timer { .. }
            | WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. }
            | WorldEvent::FileDone { .. } => {}
        }
    }
}
