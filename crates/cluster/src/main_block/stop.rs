//! The stop of a node: it leaves the membership of its cluster, then its blocks stop, then its links end.

use junctor_kernel::{Duration, Outbox, Time, WorldRequest};
use junctor_signals::Signal;

use super::block::MainBlock;

/// The token of the timer that ends the links while statements are under way.
pub(super) const STATEMENTS_TIMER: u64 = 6;
/// Time for the statements of a node without data. Its sql blocks stop statements after a second; commits
/// that have begun go on.
const STATEMENTS_MAX: Duration = Duration::from_millis(2000);

/// The token of the timer that stops a node which cannot leave.
pub(super) const LEAVE_TIMER: u64 = 8;
/// Time to leave the membership. The last nodes of a group stay members, and so does a node without a leader.
const LEAVE_MAX: Duration = Duration::from_millis(500);

impl MainBlock {
    /// Stops the node. A node with data leaves the membership first, if others have its rows: they go on at
    /// once, and take part in no commit with a node that is about to end.
    pub(super) fn begin_stop(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let leaves = self.member.as_mut().map(|cluster| cluster.leave(now));
        match leaves {
            Some(None) => {}
            Some(Some(true)) if self.epochs.is_some() => {
                outbox.request(WorldRequest::StartTimer { after: LEAVE_MAX, token: LEAVE_TIMER });
            }
            _ => outbox.request(WorldRequest::Stop),
        }
    }

    /// Ends the links, or lets the statements of a node without data end first: other nodes execute them. A
    /// node with data takes part in no commit any more, so its own statements could not end.
    pub(super) fn begin_end_of_links(&mut self, outbox: &mut Outbox<Signal>) {
        let is_client = self.epochs.is_none() && self.member.as_ref().is_some_and(|it| it.serves_clients());
        self.blocks_with_statements = if is_client { self.sql_blocks.len() } else { 0 };
        if self.blocks_with_statements == 0 {
            return outbox.request(WorldRequest::EndLinks);
        }
        outbox.request(WorldRequest::StartTimer { after: STATEMENTS_MAX, token: STATEMENTS_TIMER });
    }

    /// An sql block has no statements any more.
    pub(super) fn on_statements_ended(&mut self, outbox: &mut Outbox<Signal>) {
        if self.blocks_with_statements == 1 {
            outbox.request(WorldRequest::EndLinks);
        }
        self.blocks_with_statements = self.blocks_with_statements.saturating_sub(1);
    }
}
