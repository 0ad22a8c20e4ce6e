//! Commands of several statements in one text. The session stores the byte offset of the next statement; the
//! command keeps the text. Each statement is executed as if it had arrived alone.

use crate::bind::message;
use crate::execute::Engine;
use crate::execute::{InputForm, StatementContext, StatementInput, fail, interrupted};
use crate::parse::{ShapeOutcome, first_statement_end, parse_next, scan};
use crate::plan::CachedShape;
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Executes the next statement of the command's `text`, after one that has succeeded.
    pub(super) fn execute_next_statement(&mut self, text: &[u8]) -> Progress {
        let from = std::mem::take(&mut self.session.next_statement_at) as usize;
        if std::mem::take(&mut self.session.next_statements_stopped) {
            self.session.clear_diagnostics();
            return fail(self, &interrupted());
        }
        self.engine.counters.questions += 1;
        let rest = text.get(from..).unwrap_or(&[]);
        match first_statement_end(rest, self.session.variables.dialect()) {
            Some(end) => self.execute_first(rest, (from, end)),
            None => self.execute_text(rest, StatementInput::new(InputForm::Text(rest))),
        }
    }

    /// Executes the first statement of `text`, which begins at byte `from` of the command's text. `end` is
    /// the offset in `text` after the statement's semicolon.
    #[cold]
    pub(super) fn execute_first(&mut self, text: &[u8], (from, end): (usize, usize)) -> Progress {
        let statement = &text[..end - 1];
        let dialect = self.session.variables.dialect();
        let is_scannable = dialect.is_scannable(statement);
        let is_known = is_scannable && scan(statement, &mut self.engine.shape) == ShapeOutcome::Cacheable && {
            let key = Engine::plan_key(&self.engine.shape, self.session);
            let known = self.engine.cache.get(&key, &self.engine.gateway.catalog().dictionary);
            matches!(known, Some((CachedShape::Plan(_), _)))
        };
        // A syntax error quotes the text that follows it, so the statement is parsed together with the
        // remaining text.
        if !is_known && let Err(error) = parse_next(text, 0, dialect) {
            self.note_digest(statement);
            self.session.clear_diagnostics();
            return fail(self, &message::of_parse_error(&error));
        }
        self.session.next_statements_stopped = false;
        self.session.next_statement_at = (from + end) as u32;
        self.execute_text(statement, StatementInput::new(InputForm::Text(statement)))
    }
}
