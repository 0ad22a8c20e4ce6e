//! RENAME TABLE and ALTER TABLE.

use super::parser::{Parse, Parser};
use crate::parse::definition::{AlterManner, AlterTable, ColumnPlace, TableChange, TableOption};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{ObjectName, Statement};

/// The changes of single partitions, by their first word. DROP and ADD have other meanings, too.
const SINGLE_PARTITIONS: &[(&[u8], &str)] = &[
    (b"TRUNCATE", "ALTER TABLE ... TRUNCATE PARTITION"),
    (b"EXCHANGE", "ALTER TABLE ... EXCHANGE PARTITION"),
    (b"ANALYZE", "ALTER TABLE ... ANALYZE PARTITION"),
    (b"CHECK", "ALTER TABLE ... CHECK PARTITION"),
    (b"OPTIMIZE", "ALTER TABLE ... OPTIMIZE PARTITION"),
    (b"REBUILD", "ALTER TABLE ... REBUILD PARTITION"),
    (b"REPAIR", "ALTER TABLE ... REPAIR PARTITION"),
    (b"DISCARD", "ALTER TABLE ... DISCARD PARTITION"),
    (b"IMPORT", "ALTER TABLE ... IMPORT PARTITION"),
];
/// Other changes that are refused by name, by their first word.
const OTHERS: &[(&[u8], &str)] = &[
    (b"DISCARD", "ALTER TABLE ... DISCARD TABLESPACE"),
    (b"IMPORT", "ALTER TABLE ... IMPORT TABLESPACE"),
    (b"SECONDARY_LOAD", "ALTER TABLE ... SECONDARY_LOAD"),
    (b"SECONDARY_UNLOAD", "ALTER TABLE ... SECONDARY_UNLOAD"),
];

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

    /// ALTER TABLE, starting at TABLE.
    pub(super) fn alter_table(&mut self) -> Parse<Statement> {
        self.advance();
        let table = self.object_name()?;
        let mut changes = Vec::new();
        let mut manner = AlterManner::default();
        // As in MySQL, a statement without a change is one.
        if matches!(self.current.kind, TokenKind::End | TokenKind::Semicolon) {
            return Ok(Statement::AlterTable(Box::new(AlterTable { table, changes, manner })));
        }
        loop {
            match self.word() {
                Some(Keyword::Algorithm | Keyword::Lock) => self.alter_manner(&mut manner)?,
                _ if self.accept_validation(&mut manner)? => {}
                _ => self.table_change(&mut changes)?,
            }
            if !self.accept(TokenKind::Comma) {
                // MySQL accepts them after the last change without a comma.
                self.alter_manner(&mut manner)?;
                return Ok(Statement::AlterTable(Box::new(AlterTable { table, changes, manner })));
            }
        }
    }

    /// WITH or WITHOUT VALIDATION.
    fn accept_validation(&mut self, manner: &mut AlterManner) -> Parse<bool> {
        let is_without = self.accept_bare(b"WITHOUT");
        if !is_without && !self.accept_bare(b"WITH") {
            return Ok(false);
        }
        if !self.accept_bare(b"VALIDATION") {
            return self.syntax();
        }
        manner.validates = !is_without;
        Ok(true)
    }

    fn table_change(&mut self, changes: &mut Vec<TableChange>) -> Parse<()> {
        let mut checks = Vec::new();
        let change = match self.word() {
            Some(Keyword::Rename) => self.alter_rename()?,
            Some(Keyword::Add) => return self.alter_add(changes),
            Some(Keyword::Drop) => self.alter_drop()?,
            Some(Keyword::Change) => {
                self.advance();
                self.accept_word(Keyword::Column);
                let from = self.name()?;
                let column = Box::new(self.column_definition(&mut checks)?);
                TableChange::ChangeColumn { from, column, place: self.column_place()? }
            }
            Some(Keyword::Alter) => self.alter_column()?,
            Some(Keyword::Force) => {
                self.advance();
                TableChange::Force
            }
            Some(Keyword::Convert) => self.convert_to()?,
            Some(Keyword::Order) => {
                self.advance();
                self.expect_word(Keyword::By)?;
                self.comma_list(|parser| {
                    parser.name()?;
                    let _ = parser.accept_any(&[Keyword::Asc, Keyword::Desc]);
                    Ok(())
                })?;
                TableChange::OrderBy
            }
            Some(Keyword::Partition) => {
                self.advance();
                self.expect_word(Keyword::By)?;
                TableChange::PartitionBy(self.partition_by()?)
            }
            _ if self.next_is_word(Keyword::Keys) && (self.at_bare(b"DISABLE") || self.at_bare(b"ENABLE")) => {
                self.advance();
                self.advance();
                TableChange::SwitchKeys
            }
            _ if self.accept_bare(b"MODIFY") => {
                self.accept_word(Keyword::Column);
                let column = Box::new(self.column_definition(&mut checks)?);
                TableChange::ChangeColumn { from: column.name.clone(), column, place: self.column_place()? }
            }
            _ if self.accept_bare(b"REMOVE") => match self.accept_bare(b"PARTITIONING") {
                true => TableChange::RemovePartitioning,
                false => return self.syntax(),
            },
            _ if self.at_bare(b"REORGANIZE") && self.next_is_word(Keyword::Partition) => {
                self.advance();
                self.advance();
                self.accept_binary_log_option();
                let is_manner = matches!(self.word(), Some(Keyword::Algorithm | Keyword::Lock));
                if !is_manner && Self::is_name(self.current) {
                    return self.unsupported("ALTER TABLE ... REORGANIZE PARTITION");
                }
                TableChange::ReorganizePartitions
            }
            _ if self.accept_bare(b"COALESCE") => {
                self.expect_word(Keyword::Partition)?;
                self.accept_binary_log_option();
                TableChange::CoalescePartitions(self.long_number()?)
            }
            _ => {
                let known = if self.next_is_word(Keyword::Partition) { SINGLE_PARTITIONS } else { OTHERS };
                if let Some((_, what)) = known.iter().copied().find(|(word, _)| self.at_bare(word)) {
                    return self.unsupported(what);
                }
                // Several options without commas between them are one change.
                let mut options = Vec::new();
                self.table_options_before_comma(&mut options)?;
                if options.is_empty() {
                    return self.unsupported("ALTER TABLE");
                }
                TableChange::Options(options)
            }
        };
        changes.push(change);
        changes.extend(checks.into_iter().map(TableChange::AddCheck));
        Ok(())
    }

    /// Whether the current token is this word, which is no keyword of the grammar.
    fn at_bare(&self, word: &[u8]) -> bool {
        self.current.kind != TokenKind::QuotedName && self.bytes(self.current).eq_ignore_ascii_case(word)
    }

    fn accept_bare(&mut self, word: &[u8]) -> bool {
        let is_there = self.at_bare(word);
        if is_there {
            self.advance();
        }
        is_there
    }

    /// An option about the binary log, which does not exist.
    fn accept_binary_log_option(&mut self) {
        let _ = self.accept_bare(b"NO_WRITE_TO_BINLOG") || self.accept_bare(b"LOCAL");
    }

    fn column_place(&mut self) -> Parse<Option<ColumnPlace>> {
        if self.accept_bare(b"FIRST") {
            return Ok(Some(ColumnPlace::First));
        }
        if self.accept_bare(b"AFTER") {
            return Ok(Some(ColumnPlace::After(self.name()?)));
        }
        Ok(None)
    }

    /// `ALTER [COLUMN] name ...`, `ALTER INDEX`, `ALTER CHECK` and `ALTER CONSTRAINT`, starting at ALTER.
    fn alter_column(&mut self) -> Parse<TableChange> {
        self.advance();
        if self.accept_word(Keyword::Index) {
            let name = if self.at_word(Keyword::Primary) { self.any_word()? } else { self.name()? };
            let visible = self.accept_word(Keyword::Visible);
            if !visible {
                self.expect_word(Keyword::Invisible)?;
            }
            return Ok(TableChange::ShowIndex(name, visible));
        }
        if let Some(keyword) = self.accept_any(&[Keyword::Check, Keyword::Constraint]) {
            let any_constraint = keyword == Keyword::Constraint;
            let name = self.name()?;
            return Ok(TableChange::AlterCheck { name, enforced: self.enforcement()?, any_constraint });
        }
        self.accept_word(Keyword::Column);
        let name = self.name()?;
        if self.accept_word(Keyword::Drop) {
            self.expect_word(Keyword::Default)?;
            return Ok(TableChange::SetDefault(name, None));
        }
        self.expect_word(Keyword::Set)?;
        if let Some(visibility) = self.accept_any(&[Keyword::Visible, Keyword::Invisible]) {
            return Ok(TableChange::SetVisible(name, visibility == Keyword::Visible));
        }
        self.expect_word(Keyword::Default)?;
        Ok(TableChange::SetDefault(name, Some(self.default_value()?)))
    }

    fn convert_to(&mut self) -> Parse<TableChange> {
        self.advance();
        self.expect_word(Keyword::To)?;
        if !self.accept_character_set() {
            return self.syntax();
        }
        let character_set = self.name_or_default()?;
        let collation = match self.accept_word(Keyword::Collate) {
            true => self.collation_or_default()?,
            false => None,
        };
        Ok(TableChange::ConvertTo { character_set, collation })
    }

    /// Options up to a comma, which may begin another change.
    fn table_options_before_comma(&mut self, options: &mut Vec<TableOption>) -> Parse<()> {
        while self.current.kind != TokenKind::Comma
            && self.current.kind != TokenKind::End
            && let Some(option) = self.table_option()?
        {
            options.push(option);
        }
        Ok(())
    }

    fn alter_rename(&mut self) -> Parse<TableChange> {
        self.advance();
        if self.accept_word(Keyword::Column) {
            let from = self.name()?;
            self.expect_word(Keyword::To)?;
            return Ok(TableChange::RenameColumn(from, self.name()?));
        }
        if self.accept_any(&[Keyword::Index, Keyword::Key]).is_some() {
            let from = self.name()?;
            self.expect_word(Keyword::To)?;
            return Ok(TableChange::RenameIndex(from, self.name()?));
        }
        let _ = self.accept_any(&[Keyword::To, Keyword::As]).is_some() || self.accept(TokenKind::Equal);
        Ok(TableChange::Rename(self.object_name()?))
    }

    fn alter_add(&mut self, changes: &mut Vec<TableChange>) -> Parse<()> {
        self.advance();
        if self.accept_word(Keyword::Partition) {
            self.accept_binary_log_option();
            if self.current.kind == TokenKind::Open {
                return self.unsupported("ALTER TABLE ... ADD PARTITION with definitions");
            }
            self.expect_word(Keyword::Partitions)?;
            changes.push(TableChange::AddPartitions(self.long_number()?));
            return Ok(());
        }
        let mut name = None;
        let is_constraint = self.accept_word(Keyword::Constraint);
        if is_constraint && Self::is_name(self.current) {
            name = Some(self.name()?);
        }
        let change = match self.word() {
            Some(Keyword::Key | Keyword::Index) if is_constraint => return self.syntax(),
            Some(Keyword::Unique | Keyword::Key | Keyword::Index | Keyword::Primary) => {
                TableChange::AddIndex(self.index_item(name)?)
            }
            Some(Keyword::Foreign) => TableChange::AddForeignKey(self.foreign_key(name)?),
            Some(Keyword::Fulltext) => return self.unsupported("FULLTEXT index"),
            Some(Keyword::Spatial) => return self.unsupported("SPATIAL index"),
            Some(Keyword::Check) => TableChange::AddCheck(self.check(name, None)?),
            _ if is_constraint => return self.syntax(),
            _ => return self.added_columns(changes),
        };
        changes.push(change);
        Ok(())
    }

    /// `[COLUMN] name definition [place]`, or several definitions in parentheses.
    fn added_columns(&mut self, changes: &mut Vec<TableChange>) -> Parse<()> {
        self.accept_word(Keyword::Column);
        let mut checks = Vec::new();
        if !self.accept(TokenKind::Open) {
            let column = Box::new(self.column_definition(&mut checks)?);
            changes.push(TableChange::AddColumn { column, place: self.column_place()? });
        } else {
            loop {
                let change = match self.word() {
                    Some(Keyword::Unique | Keyword::Key | Keyword::Index | Keyword::Primary) => {
                        TableChange::AddIndex(self.index_item(None)?)
                    }
                    Some(Keyword::Foreign) => TableChange::AddForeignKey(self.foreign_key(None)?),
                    Some(Keyword::Check) => TableChange::AddCheck(self.check(None, None)?),
                    _ => {
                        let column = Box::new(self.column_definition(&mut checks)?);
                        TableChange::AddColumn { column, place: None }
                    }
                };
                changes.push(change);
                if !self.accept(TokenKind::Comma) {
                    self.expect(TokenKind::Close)?;
                    break;
                }
            }
        }
        changes.extend(checks.into_iter().map(TableChange::AddCheck));
        Ok(())
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
            Some(Keyword::Check) => {
                self.advance();
                TableChange::DropCheck(self.name()?)
            }
            Some(Keyword::Partition) => return self.unsupported("ALTER TABLE ... DROP PARTITION"),
            _ => {
                self.accept_word(Keyword::Column);
                TableChange::DropColumn(self.name()?)
            }
        };
        Ok(change)
    }
}
