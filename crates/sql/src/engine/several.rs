//! Texts of several statements. The session knows where those begin that are still to come; the text itself stays with the
//! command, and each statement of it is executed as if it had come alone.

use super::Engine;
use crate::bind::message;
use crate::execute::StatementContext;
use crate::execute::{Again, fail, interrupted};
use crate::parse::{ShapeOutcome, first_statement_end, parse_next, scan};
use crate::plan::Known;
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Executes the next statement of the command's `text`, after one that has succeeded.
    pub fn next_statement(&mut self, text: &[u8]) -> Progress {
        let from = std::mem::take(&mut self.session.rest_at) as usize;
        if std::mem::take(&mut self.session.rest_is_stopped) {
            self.session.clear_diagnostics();
            return fail(self, &interrupted());
        }
        self.engine.counters.questions += 1;
        let rest = text.get(from..).unwrap_or(&[]);
        match first_statement_end(rest) {
            Some(end) => self.run_first(rest, (from, end)),
            None => self.run_text(rest, Again::Text(rest)),
        }
    }

    /// Executes the first statement of `text`, which begins at byte `from` of the command's and whose semicolon is before byte
    /// `end`.
    #[cold]
    pub(super) fn run_first(&mut self, text: &[u8], (from, end): (usize, usize)) -> Progress {
        let statement = &text[..end - 1];
        let is_known = scan(statement, &mut self.engine.shape) == ShapeOutcome::Cacheable && {
            let key = Engine::plan_key(&self.engine.shape, self.session);
            let known = self.engine.cache.get(&key, &self.engine.gateway.catalog().dictionary);
            matches!(known, Some(Known::Plan(_)))
        };
        // An error is told with the text that follows it.
        if !is_known && let Err(error) = parse_next(text, 0) {
            self.session.clear_diagnostics();
            return fail(self, &message::of_parse_error(&error));
        }
        self.session.rest_is_stopped = false;
        self.session.rest_at = (from + end) as u32;
        self.run_text(statement, Again::Text(statement))
    }
}
