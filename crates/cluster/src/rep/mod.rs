//! The change stream. This version has none: the empty role exists so that placements can name its thread.
//!
//! - Owns: nothing.
//! - Takes: the start and the stop of its thread.
//! - Sends: nothing.
//! - Never: blocks a commit.

use junctor_kernel::{Context, Outbox, WorldEvent};
use junctor_signals::Signal;

/// The one instance of rep.
#[derive(Debug, Default)]
pub struct RepBlock;

impl RepBlock {
    /// Creates the node's instance.
    pub fn new() -> RepBlock {
        RepBlock
    }

    /// Handles one event of the world; none of them concerns this block.
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
