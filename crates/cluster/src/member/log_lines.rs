//! Lines for the log of the process.

use std::sync::mpsc::SyncSender;

/// Takes lines for the log. Without a receiver they are dropped, as in a simulation.
#[derive(Clone, Debug, Default)]
pub struct LogLines(Option<SyncSender<String>>);

impl LogLines {
    /// Sends the lines to a thread that writes them. Lines are dropped while its queue is full.
    pub fn to(sender: SyncSender<String>) -> LogLines {
        LogLines(Some(sender))
    }

    /// Takes a line. Never waits.
    pub fn write(&self, line: String) {
        if let Some(sender) = &self.0 {
            // A log that nobody reads must not stop the node.
            let _ = sender.try_send(line);
        }
    }
}
