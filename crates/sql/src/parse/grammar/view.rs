//! CREATE, ALTER and DROP VIEW.

use junctor_model::schema::{ViewAlgorithm, ViewCheck};

use super::parser::{Parse, Parser};
use crate::parse::definition::{CreateView, DropView};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::Statement;

impl Parser<'_> {
    /// CREATE VIEW or ALTER VIEW, after its first word.
    pub(super) fn create_view(&mut self, alters: bool) -> Parse<Statement> {
        let or_replace = !alters && self.accept_words(Keyword::Or, Keyword::Replace);
        let mut algorithm = None;
        if self.accept_word(Keyword::Algorithm) {
            self.expect(TokenKind::Equal)?;
            algorithm = Some(self.algorithm()?);
        }
        let definer = if self.accept_word(Keyword::Definer) { self.definer()? } else { None };
        let mut is_invoker = None;
        if self.accept_words(Keyword::Sql, Keyword::Security) {
            is_invoker = Some(self.accept_text("INVOKER"));
            if is_invoker == Some(false) {
                self.expect_word(Keyword::Definer)?;
            }
        }
        match self.word() {
            Some(Keyword::View) => self.advance(),
            Some(Keyword::Procedure) => return self.unsupported("CREATE PROCEDURE"),
            Some(Keyword::Function) => return self.unsupported("CREATE FUNCTION"),
            Some(Keyword::Trigger) => return self.unsupported("CREATE TRIGGER"),
            Some(Keyword::Event) => return self.unsupported("CREATE EVENT"),
            _ => return self.syntax(),
        }
        let name = self.object_name()?;
        let columns = self.bracketed_names()?;
        self.expect_word(Keyword::As)?;
        let start = self.current.start;
        self.may_select_into = true;
        let query = Box::new(self.query()?);
        let text = self.text_since(start);
        let check = self.check_option()?;
        let view = CreateView { or_replace, alters, algorithm, definer, is_invoker, name, columns, query, text, check };
        Ok(Statement::CreateView(Box::new(view)))
    }

    fn algorithm(&mut self) -> Parse<ViewAlgorithm> {
        for algorithm in [ViewAlgorithm::Undefined, ViewAlgorithm::Merge, ViewAlgorithm::Temptable] {
            if self.accept_text(algorithm.name()) {
                return Ok(algorithm);
            }
        }
        self.syntax()
    }

    /// `= user[@host]`, or `= CURRENT_USER[()]`, which is `None`.
    fn definer(&mut self) -> Parse<Option<String>> {
        self.expect(TokenKind::Equal)?;
        if self.accept_word(Keyword::CurrentUser) {
            if self.accept(TokenKind::Open) {
                self.expect(TokenKind::Close)?;
            }
            return Ok(None);
        }
        let user = self.name_or_string()?;
        // The lexer reads the host part of an account (`@host`) as a user variable.
        let mut host = "%".to_owned();
        if self.current.kind == TokenKind::UserVariable {
            host = self.user_variable_name()?;
        }
        Ok(Some(format!("{user}@{host}")))
    }

    /// `WITH [CASCADED|LOCAL] CHECK OPTION`, if present.
    fn check_option(&mut self) -> Parse<Option<ViewCheck>> {
        if !self.accept_word(Keyword::With) {
            return Ok(None);
        }
        let check = if self.accept_word(Keyword::Local) {
            ViewCheck::Local
        } else {
            self.accept_text("CASCADED");
            ViewCheck::Cascaded
        };
        self.expect_word(Keyword::Check)?;
        self.expect_word(Keyword::Option)?;
        Ok(Some(check))
    }

    /// DROP VIEW, starting at VIEW.
    pub(super) fn drop_view(&mut self) -> Parse<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        let views = self.comma_list(Self::object_name)?;
        let _ = self.accept_any(&[Keyword::Restrict, Keyword::Cascade]);
        Ok(Statement::DropView(DropView { if_exists, views }))
    }
}
