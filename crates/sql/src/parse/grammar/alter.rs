//! RENAME TABLE, and of ALTER TABLE what is another statement in other words.

use super::parser::{Parse, Parser};
use crate::parse::definition::{CreateIndex, DropIndex};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{ObjectName, Statement};

impl Parser<'_> {
    /// RENAME TABLE, from TABLE on.
    pub(super) fn rename_table(&mut self) -> Parse<Statement> {
        self.advance();
        Ok(Statement::RenameTables(self.comma_list(Self::rename)?))
    }

    fn rename(&mut self) -> Parse<(ObjectName, ObjectName)> {
        let from = self.object_name()?;
        self.expect_word(Keyword::To)?;
        Ok((from, self.object_name()?))
    }

    /// ALTER TABLE, from TABLE on: one change of an index or of the name.
    pub(super) fn alter_table(&mut self) -> Parse<Statement> {
        self.advance();
        let table = self.object_name()?;
        let statement = match self.word() {
            Some(Keyword::Rename) => self.alter_rename(table)?,
            Some(Keyword::Add) => self.alter_add(table)?,
            Some(Keyword::Drop) => self.alter_drop(table)?,
            _ if self.current.kind == TokenKind::End => return self.syntax(),
            _ => return self.unsupported("ALTER TABLE"),
        };
        while self.accept(TokenKind::Comma) {
            if !matches!(self.word(), Some(Keyword::Algorithm | Keyword::Lock)) {
                return self.unsupported("ALTER TABLE with several changes");
            }
            self.alter_hints()?;
        }
        Ok(statement)
    }

    fn alter_rename(&mut self, table: ObjectName) -> Parse<Statement> {
        self.advance();
        if matches!(self.word(), Some(Keyword::Index | Keyword::Key | Keyword::Column)) {
            return self.unsupported("ALTER TABLE ... RENAME of an index or column");
        }
        let _ = self.accept_any(&[Keyword::To, Keyword::As]).is_some() || self.accept(TokenKind::Equal);
        Ok(Statement::RenameTables(vec![(table, self.object_name()?)]))
    }

    fn alter_add(&mut self, table: ObjectName) -> Parse<Statement> {
        self.advance();
        let mut name = None;
        if self.accept_word(Keyword::Constraint) && Self::is_name(self.current) {
            name = Some(self.name()?);
        }
        match self.word() {
            Some(Keyword::Unique | Keyword::Key | Keyword::Index) => {
                let index = self.index_item(name)?;
                Ok(Statement::CreateIndex(Box::new(CreateIndex { table, index })))
            }
            Some(Keyword::Primary) => self.unsupported("ALTER TABLE ... ADD PRIMARY KEY"),
            Some(Keyword::Fulltext) => self.unsupported("FULLTEXT index"),
            Some(Keyword::Spatial) => self.unsupported("SPATIAL index"),
            Some(Keyword::Foreign) => self.unsupported("ALTER TABLE ... ADD FOREIGN KEY"),
            _ => self.unsupported("ALTER TABLE"),
        }
    }

    fn alter_drop(&mut self, table: ObjectName) -> Parse<Statement> {
        self.advance();
        match self.word() {
            Some(Keyword::Index | Keyword::Key) => {
                self.advance();
                let name = if self.at_word(Keyword::Primary) { self.any_word()? } else { self.name()? };
                Ok(Statement::DropIndex(DropIndex { table, name }))
            }
            Some(Keyword::Primary) => self.unsupported("DROP PRIMARY KEY"),
            Some(Keyword::Foreign) => self.unsupported("ALTER TABLE ... DROP FOREIGN KEY"),
            _ => self.unsupported("ALTER TABLE"),
        }
    }
}
