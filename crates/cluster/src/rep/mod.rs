//! The change stream. This version has none: the role exists so that placements can name its thread, and it is empty.
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
    /// The instance of a node.
    pub fn new() -> RepBlock {
        RepBlock
    }

    /// Handles one event of the world: there is nothing to begin and nothing to end.
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
