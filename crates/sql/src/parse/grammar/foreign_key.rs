//! Foreign keys, as items of a table and as attributes of a column.

use super::parser::{Parse, Parser};
use crate::parse::definition::{ForeignKey, References, ReferentialAction};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;

impl Parser<'_> {
    /// `FOREIGN KEY [index] (columns) REFERENCES ...`, starting at FOREIGN.
    pub(super) fn foreign_key(&mut self, name: Option<String>) -> Parse<ForeignKey> {
        self.advance();
        self.expect_word(Keyword::Key)?;
        let index_name = if Self::is_name(self.current) { Some(self.name()?) } else { None };
        self.expect(TokenKind::Open)?;
        let columns = self.comma_list(Self::name)?;
        self.expect(TokenKind::Close)?;
        Ok(ForeignKey { name, index_name, columns, references: self.references()? })
    }

    /// `REFERENCES table (columns) [MATCH ...] [ON DELETE ...] [ON UPDATE ...]`
    pub(super) fn references(&mut self) -> Parse<References> {
        self.expect_word(Keyword::References)?;
        let table = self.object_name()?;
        self.expect(TokenKind::Open)?;
        let columns = self.comma_list(Self::name)?;
        self.expect(TokenKind::Close)?;
        if self.accept_word(Keyword::Match) {
            self.any_word()?;
        }
        let mut references = References { table, columns, on_delete: None, on_update: None };
        while self.at_word(Keyword::On) && (self.next_is_word(Keyword::Delete) || self.next_is_word(Keyword::Update)) {
            self.advance();
            let is_delete = self.at_word(Keyword::Delete);
            self.advance();
            let action = Some(self.referential_action()?);
            if is_delete {
                references.on_delete = action;
            } else {
                references.on_update = action;
            }
        }
        Ok(references)
    }

    fn referential_action(&mut self) -> Parse<ReferentialAction> {
        let keyword = self.word();
        self.advance();
        match keyword {
            Some(Keyword::Restrict) => Ok(ReferentialAction::Restrict),
            Some(Keyword::Cascade) => Ok(ReferentialAction::Cascade),
            Some(Keyword::Set) if self.accept_word(Keyword::Null) => Ok(ReferentialAction::SetNull),
            Some(Keyword::Set) => {
                self.expect_word(Keyword::Default)?;
                Ok(ReferentialAction::SetDefault)
            }
            Some(Keyword::No) if self.bytes(self.current).eq_ignore_ascii_case(b"ACTION") => {
                self.advance();
                Ok(ReferentialAction::NoAction)
            }
            _ => self.syntax(),
        }
    }
}
