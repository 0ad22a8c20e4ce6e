//! The end of the links of a node that stops.

use junctor_kernel::{Duration, Outbox, WorldRequest};
use junctor_signals::Signal;

use super::block::MainBlock;

/// The token of the timer that ends the links while statements are under way.
pub(super) const STATEMENTS_TIMER: u64 = 6;
/// Time for the statements of a node without data. Its sql blocks stop statements after a second; commits
/// that have begun go on.
const STATEMENTS_MAX: Duration = Duration::from_millis(2000);

impl MainBlock {
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
