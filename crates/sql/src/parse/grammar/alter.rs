//! RENAME TABLE and ALTER TABLE.

use super::parser::{Parse, Parser};
use crate::parse::definition::{AlterTable, TableChange};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{ObjectName, Statement};

impl Parser<'_> {
    /// RENAME TABLE, starting at TABLE.
    pub(super) fn rename_table(&mut self) -> Parse<Statement> {
        self.advance();
        Ok(Statement::RenameTables(self.comma_list(Self::rename)?))
    }

    fn rename(&mut self) -> Parse<(ObjectName, ObjectName)> {
        let from = self.object_name()?;
        self.expect_word(Keyword::To)?;
        Ok((from, self.object_name()?))
    }

    /// ALTER TABLE, starting at TABLE. Supports changes of indexes, of foreign keys and of the table's name.
    pub(super) fn alter_table(&mut self) -> Parse<Statement> {
        self.advance();
        let table = self.object_name()?;
        if self.current.kind == TokenKind::End {
            return self.syntax();
        }
        let mut changes = Vec::new();
        loop {
            match self.word() {
                Some(Keyword::Algorithm | Keyword::Lock) => self.alter_hints()?,
                _ => changes.push(self.table_change()?),
            }
            if !self.accept(TokenKind::Comma) {
                // MySQL accepts hints after the last change without a comma.
                self.alter_hints()?;
                return Ok(Statement::AlterTable(Box::new(AlterTable { table, changes })));
            }
        }
    }

    fn table_change(&mut self) -> Parse<TableChange> {
        match self.word() {
            Some(Keyword::Rename) => self.alter_rename(),
            Some(Keyword::Add) => self.alter_add(),
            Some(Keyword::Drop) => self.alter_drop(),
            _ if self.next_is_word(Keyword::Keys) && self.at_switch() => {
                self.advance();
                self.advance();
                Ok(TableChange::SwitchKeys)
            }
            _ => self.unsupported("ALTER TABLE"),
        }
    }

    fn at_switch(&self) -> bool {
        let word = self.bytes(self.current);
        word.eq_ignore_ascii_case(b"DISABLE") || word.eq_ignore_ascii_case(b"ENABLE")
    }

    fn alter_rename(&mut self) -> Parse<TableChange> {
        self.advance();
        if self.at_word(Keyword::Column) {
            return self.unsupported("ALTER TABLE ... RENAME COLUMN");
        }
        if self.accept_any(&[Keyword::Index, Keyword::Key]).is_some() {
            let from = self.name()?;
            self.expect_word(Keyword::To)?;
            return Ok(TableChange::RenameIndex(from, self.name()?));
        }
        let _ = self.accept_any(&[Keyword::To, Keyword::As]).is_some() || self.accept(TokenKind::Equal);
        Ok(TableChange::Rename(self.object_name()?))
    }

    fn alter_add(&mut self) -> Parse<TableChange> {
        self.advance();
        let mut name = None;
        let is_constraint = self.accept_word(Keyword::Constraint);
        if is_constraint && Self::is_name(self.current) {
            name = Some(self.name()?);
        }
        match self.word() {
            Some(Keyword::Key | Keyword::Index) if is_constraint => self.syntax(),
            Some(Keyword::Unique | Keyword::Key | Keyword::Index) => Ok(TableChange::AddIndex(self.index_item(name)?)),
            Some(Keyword::Foreign) => Ok(TableChange::AddForeignKey(self.foreign_key(name)?)),
            Some(Keyword::Primary) => self.unsupported("ALTER TABLE ... ADD PRIMARY KEY"),
            Some(Keyword::Fulltext) => self.unsupported("FULLTEXT index"),
            Some(Keyword::Spatial) => self.unsupported("SPATIAL index"),
            Some(Keyword::Check) => self.unsupported("CHECK constraint"),
            _ => self.unsupported("ALTER TABLE"),
        }
    }

    fn alter_drop(&mut self) -> Parse<TableChange> {
        self.advance();
        let change = match self.word() {
            Some(Keyword::Index | Keyword::Key) => {
                self.advance();
                TableChange::DropIndex(if self.at_word(Keyword::Primary) { self.any_word()? } else { self.name()? })
            }
            Some(Keyword::Primary) => {
                let name = self.any_word()?;
                self.expect_word(Keyword::Key)?;
                TableChange::DropIndex(name)
            }
            Some(Keyword::Foreign) => {
                self.advance();
                self.expect_word(Keyword::Key)?;
                TableChange::DropForeignKey(self.name()?)
            }
            Some(Keyword::Constraint) => {
                self.advance();
                TableChange::DropConstraint(if self.at_word(Keyword::Primary) {
                    self.any_word()?
                } else {
                    self.name()?
                })
            }
            _ => return self.unsupported("ALTER TABLE"),
        };
        Ok(change)
    }
}
