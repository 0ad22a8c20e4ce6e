//! SET of variables, names, character sets and transaction characteristics.

use super::parser::{Parse, Parser};
use super::primary::scope_of;
use crate::parse::expression::{Expression, Literal, StringLiteral, VariableScope};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{AccessMode, IsolationLevel, SetByQuery, SetItem, Statement};

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Set)?;
        match self.word() {
            Some(Keyword::Password) => return self.set_password(),
            Some(Keyword::Role) => return self.set_role(),
            Some(Keyword::Default) if self.next_is_word(Keyword::Role) => {
                return self.set_default_role();
            }
            _ => {}
        }
        if self.accept_word(Keyword::Transaction) {
            return Ok(Statement::Set(vec![self.transaction(None)?]));
        }
        if self.next_is_word(Keyword::Transaction)
            && let Some(scope) = self.word().and_then(scope_of)
        {
            self.advance();
            self.advance();
            return Ok(Statement::Set(vec![self.transaction(Some(scope))?]));
        }
        Ok(SetByQuery::of_items(self.comma_list(Self::set_item)?))
    }

    /// `RESET PERSIST [[IF EXISTS] name]`
    pub(super) fn reset_persist(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Reset)?;
        self.expect_word(Keyword::Persist)?;
        let if_exists = self.if_exists()?;
        let name = match if_exists || Self::is_name(self.current) {
            true => Some(self.dotted_variable_name()?),
            false => None,
        };
        Ok(Statement::ResetPersist { name, if_exists })
    }

    fn set_item(&mut self) -> Parse<SetItem> {
        match self.current.kind {
            TokenKind::UserVariable => {
                let name = self.user_variable_name()?;
                self.assignment_sign()?;
                return Ok(SetItem::UserVariable { name, value: self.expression()? });
            }
            TokenKind::AtAt => {
                let variable = self.system_variable()?;
                let value = self.set_value()?;
                return Ok(SetItem::SystemVariable { scope: variable.scope, name: variable.name, value });
            }
            _ => {}
        }
        if self.at_word(Keyword::Names) && !matches!(self.next.kind, TokenKind::Equal | TokenKind::Assign) {
            self.advance();
            return self.names();
        }
        if self.accept_character_set() {
            return Ok(SetItem::CharacterSet(self.name_or_default()?));
        }
        let mut scope = None;
        if !matches!(self.next.kind, TokenKind::Equal | TokenKind::Assign | TokenKind::Dot)
            && let Some(found) = self.word().and_then(scope_of)
        {
            scope = Some(found);
            self.advance();
        }
        let name = if Self::is_name(self.current) { self.dotted_variable_name()? } else { return self.syntax() };
        let value = self.set_value()?;
        Ok(SetItem::SystemVariable { scope, name, value })
    }

    fn assignment_sign(&mut self) -> Parse<()> {
        if self.accept(TokenKind::Assign) { Ok(()) } else { self.expect(TokenKind::Equal) }
    }

    /// `= value`; `None` for DEFAULT. A bare word is a string, even some reserved words such as ON.
    fn set_value(&mut self) -> Parse<Option<Expression>> {
        self.assignment_sign()?;
        let is_alone = matches!(self.next.kind, TokenKind::Comma | TokenKind::Semicolon | TokenKind::End);
        match self.current.kind {
            TokenKind::Keyword(Keyword::Default) if is_alone => {
                self.advance();
                Ok(None)
            }
            TokenKind::Keyword(Keyword::Null | Keyword::True | Keyword::False) => Ok(Some(self.expression()?)),
            TokenKind::Keyword(Keyword::On | Keyword::All | Keyword::Binary | Keyword::Row | Keyword::System)
            | TokenKind::Name
            | TokenKind::QuotedName
                if is_alone =>
            {
                Ok(Some(self.word_as_string()?))
            }
            TokenKind::Keyword(keyword) if is_alone && !keyword.is_reserved() => Ok(Some(self.word_as_string()?)),
            _ => Ok(Some(self.expression()?)),
        }
    }

    fn word_as_string(&mut self) -> Parse<Expression> {
        let bytes = self.any_word()?.into_bytes();
        Ok(Expression::Literal(Literal::String(StringLiteral { bytes, character_set: None, is_raw: false })))
    }

    fn names(&mut self) -> Parse<SetItem> {
        let character_set = self.name_or_default()?;
        let collation = match character_set.is_some() && self.accept_word(Keyword::Collate) {
            true => self.collation_or_default()?,
            false => None,
        };
        Ok(SetItem::Names { character_set, collation })
    }

    fn transaction(&mut self, scope: Option<VariableScope>) -> Parse<SetItem> {
        let (mut isolation, mut access) = (None, None);
        loop {
            if isolation.is_none() && self.accept_words(Keyword::Isolation, Keyword::Level) {
                isolation = Some(self.isolation_level()?);
            } else if access.is_none() && self.at_word(Keyword::Read) {
                access = Some(self.access_mode()?);
            } else {
                return self.syntax();
            }
            if !self.accept(TokenKind::Comma) {
                return Ok(SetItem::Transaction { scope, isolation, access });
            }
        }
    }

    fn isolation_level(&mut self) -> Parse<IsolationLevel> {
        if self.accept_words(Keyword::Read, Keyword::Uncommitted) {
            Ok(IsolationLevel::ReadUncommitted)
        } else if self.accept_words(Keyword::Read, Keyword::Committed) {
            Ok(IsolationLevel::ReadCommitted)
        } else if self.accept_words(Keyword::Repeatable, Keyword::Read) {
            Ok(IsolationLevel::RepeatableRead)
        } else if self.accept_word(Keyword::Serializable) {
            Ok(IsolationLevel::Serializable)
        } else {
            self.syntax()
        }
    }

    /// READ ONLY or READ WRITE.
    pub(super) fn access_mode(&mut self) -> Parse<AccessMode> {
        self.expect_word(Keyword::Read)?;
        match self.accept_any(&[Keyword::Only, Keyword::Write]) {
            Some(Keyword::Only) => Ok(AccessMode::ReadOnly),
            Some(_) => Ok(AccessMode::ReadWrite),
            None => self.syntax(),
        }
    }
}
