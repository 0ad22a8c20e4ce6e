//! Texts of several statements. The session knows where those begin that are still to come; the text itself stays with the
//! command, and each statement of it is executed as if it had come alone.

use junctor_gateway::TurnContext;

use super::Engine;
use crate::bind::message;
use crate::execute::{Again, fail, interrupted};
use crate::parse::{ShapeOutcome, first_statement_end, parse_next, scan};
use crate::result::{Progress, ResultSink};
use crate::session::Session;

impl Engine {
    /// Executes the next statement of the command's `text`, after one that has succeeded.
    pub fn next_statement(
        &mut self,
        session: &mut Session,
        text: &[u8],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let from = std::mem::take(&mut session.rest_at) as usize;
        if std::mem::take(&mut session.rest_is_stopped) {
            session.clear_diagnostics();
            return fail(session, &interrupted(), sink);
        }
        self.counters.questions += 1;
        let rest = text.get(from..).unwrap_or(&[]);
        match first_statement_end(rest) {
            Some(end) => self.run_first(session, rest, (from, end), turn, sink),
            None => self.run_text(session, rest, Again::Text(rest), turn, sink),
        }
    }

    /// Executes the first statement of `text`, which begins at byte `from` of the command's and whose semicolon is before byte
    /// `end`.
    #[cold]
    pub(super) fn run_first(
        &mut self,
        session: &mut Session,
        text: &[u8],
        (from, end): (usize, usize),
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let statement = &text[..end - 1];
        let is_known = scan(statement, &mut self.shape) == ShapeOutcome::Cacheable
            && self.cache.get(&Self::plan_key(&self.shape, session), &self.gateway.catalog().dictionary).is_some();
        // An error is told with the text that follows it.
        if !is_known && let Err(error) = parse_next(text, 0) {
            session.clear_diagnostics();
            return fail(session, &message::of_parse_error(&error), sink);
        }
        session.rest_is_stopped = false;
        session.rest_at = (from + end) as u32;
        self.run_text(session, statement, Again::Text(statement), turn, sink)
    }
}
