//! CREATE and DROP of tables, indexes and databases.

use super::parser::{Parse, Parser, Stop};
use crate::parse::definition::{
    AlterAlgorithm, AlterDatabase, AlterLock, AlterManner, CreateDatabase, CreateIndex, CreateSelect, CreateTable,
    CreateTableLike, DropDatabase, DropIndex, DropTable, HistogramChange, IndexAlgorithm, IndexColumn, IndexDefinition,
    IndexKind, PartitionByKey, TableOption,
};
use crate::parse::error::ParseErrorKind;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{Show, Statement, TableMaintenance, Unsupported};

/// The number of buckets of UPDATE HISTOGRAM without WITH, as in MySQL.
const DEFAULT_BUCKETS: u64 = 100;

impl Parser<'_> {
    /// CREATE TABLE, starting at TEMPORARY or TABLE.
    pub(super) fn create_table(&mut self) -> Parse<Statement> {
        let temporary = self.accept_word(Keyword::Temporary);
        self.expect_word(Keyword::Table)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        if self.at_word(Keyword::Like) || self.current.kind == TokenKind::Open && self.next_is_word(Keyword::Like) {
            let is_bracketed = self.accept(TokenKind::Open);
            self.expect_word(Keyword::Like)?;
            let source = self.object_name()?;
            if is_bracketed {
                self.expect(TokenKind::Close)?;
            }
            let like = CreateTableLike { temporary, if_not_exists, name, source };
            return Ok(Statement::CreateTableLike(Box::new(like)));
        }
        let mut table = CreateTable {
            temporary,
            if_not_exists,
            name,
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            unsupported: Vec::new(),
            options: Vec::new(),
            partitioning: None,
            select: None,
        };
        let opens_query = matches!(
            self.next.kind,
            TokenKind::Keyword(Keyword::Select | Keyword::With | Keyword::Table | Keyword::Values)
        );
        if self.current.kind == TokenKind::Open && self.next.kind != TokenKind::Open && !opens_query {
            self.advance();
            self.table_item(&mut table)?;
            while self.accept(TokenKind::Comma) {
                self.table_item(&mut table)?;
            }
            self.expect(TokenKind::Close)?;
        }
        self.table_options(&mut table.options)?;
        if self.accept_words(Keyword::Partition, Keyword::By) {
            table.partitioning = Some(self.partition_by()?);
        }
        table.select = self.create_select()?;
        if table.columns.is_empty() && table.select.is_none() {
            return self.syntax();
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// The query at the end of CREATE TABLE, if any.
    fn create_select(&mut self) -> Parse<Option<CreateSelect>> {
        let duplicates = self.accept_any(&[Keyword::Ignore, Keyword::Replace]);
        let is_announced = self.accept_word(Keyword::As) || duplicates.is_some();
        if !self.at_query() && self.current.kind != TokenKind::Open {
            return if is_announced { self.syntax() } else { Ok(None) };
        }
        let query = self.query()?;
        if !query.into.is_none() {
            return self.syntax();
        }
        Ok(Some(CreateSelect {
            query: Box::new(query),
            ignore: duplicates == Some(Keyword::Ignore),
            replace: duplicates == Some(Keyword::Replace),
        }))
    }

    fn table_item(&mut self, table: &mut CreateTable) -> Parse<()> {
        match self.word() {
            Some(Keyword::Constraint) => self.constraint(table),
            Some(Keyword::Check) => {
                table.checks.push(self.check(None, None)?);
                Ok(())
            }
            Some(Keyword::Foreign) => {
                let key = self.foreign_key(None)?;
                table.foreign_keys.push(key);
                Ok(())
            }
            Some(Keyword::Fulltext) => self.skip_unsupported(table, "FULLTEXT index"),
            Some(Keyword::Spatial) => self.skip_unsupported(table, "SPATIAL index"),
            Some(Keyword::Primary | Keyword::Unique | Keyword::Key | Keyword::Index) => {
                let index = self.index_item(None)?;
                table.indexes.push(index);
                Ok(())
            }
            _ => {
                let column = self.column_definition(&mut table.checks)?;
                table.columns.push(column);
                Ok(())
            }
        }
    }

    fn constraint(&mut self, table: &mut CreateTable) -> Parse<()> {
        self.advance();
        let name = if Self::is_name(self.current) { Some(self.name()?) } else { None };
        match self.word() {
            Some(Keyword::Check) => {
                table.checks.push(self.check(name, None)?);
                Ok(())
            }
            Some(Keyword::Foreign) => {
                let key = self.foreign_key(name)?;
                table.foreign_keys.push(key);
                Ok(())
            }
            Some(Keyword::Primary | Keyword::Unique) => {
                let index = self.index_item(name)?;
                table.indexes.push(index);
                Ok(())
            }
            _ => self.syntax(),
        }
    }

    fn skip_unsupported(&mut self, table: &mut CreateTable, what: &'static str) -> Parse<()> {
        table.unsupported.push(Unsupported { what });
        self.skip_definition()
    }

    /// Skips the remainder of an item of CREATE TABLE, up to its comma or the closing parenthesis.
    pub(super) fn skip_definition(&mut self) -> Parse<()> {
        loop {
            match self.current.kind {
                TokenKind::Comma | TokenKind::Close => return Ok(()),
                TokenKind::Open => self.skip_brackets()?,
                TokenKind::End | TokenKind::Bad | TokenKind::Semicolon => return self.syntax(),
                _ => self.advance(),
            }
        }
    }

    /// Skips a pair of parentheses and its contents. Counts the depth instead of recursing, so deep nesting
    /// cannot overflow the stack.
    pub(super) fn skip_brackets(&mut self) -> Parse<()> {
        self.expect(TokenKind::Open)?;
        let mut open = 1u32;
        while open > 0 {
            match self.current.kind {
                TokenKind::Open => open += 1,
                TokenKind::Close => open -= 1,
                TokenKind::End | TokenKind::Bad | TokenKind::Semicolon => return self.syntax(),
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }

    /// A key of CREATE TABLE or ALTER TABLE, starting at its first word.
    pub(super) fn index_item(&mut self, constraint_name: Option<String>) -> Parse<IndexDefinition> {
        let kind = match self.word() {
            Some(Keyword::Primary) => IndexKind::Primary,
            Some(Keyword::Unique) => IndexKind::Unique,
            _ => IndexKind::Plain,
        };
        self.advance();
        match kind {
            IndexKind::Primary => self.expect_word(Keyword::Key)?,
            IndexKind::Unique => {
                let _ = self.accept_any(&[Keyword::Key, Keyword::Index]);
            }
            IndexKind::Plain => {}
        }
        let name = match Self::is_name(self.current) {
            true => Some(self.name()?),
            false => constraint_name,
        };
        self.index_rest(kind, name)
    }

    /// `[USING ...] (columns) [options]`
    fn index_rest(&mut self, kind: IndexKind, name: Option<String>) -> Parse<IndexDefinition> {
        let (columns, comment) = (Vec::new(), None);
        let mut index =
            IndexDefinition { kind, name, algorithm: None, columns, comment, invisible: false, key_block_size: 0 };
        index.algorithm = self.index_algorithm()?;
        self.expect(TokenKind::Open)?;
        index.columns = self.comma_list(Self::index_column)?;
        self.expect(TokenKind::Close)?;
        loop {
            match self.word() {
                Some(Keyword::Using | Keyword::Type) => index.algorithm = self.index_algorithm()?,
                Some(Keyword::Comment) => {
                    self.advance();
                    index.comment = Some(self.string()?);
                }
                Some(Keyword::Visible | Keyword::Invisible) => {
                    index.invisible = self.at_word(Keyword::Invisible);
                    self.advance();
                }
                Some(Keyword::KeyBlockSize) => {
                    self.advance();
                    self.accept(TokenKind::Equal);
                    index.key_block_size = self.long_number()?;
                }
                _ => return Ok(index),
            }
        }
    }

    fn index_algorithm(&mut self) -> Parse<Option<IndexAlgorithm>> {
        if self.accept_any(&[Keyword::Using, Keyword::Type]).is_none() {
            return Ok(None);
        }
        match self.accept_any(&[Keyword::Hash, Keyword::Btree]) {
            Some(Keyword::Hash) => Ok(Some(IndexAlgorithm::Hash)),
            Some(_) => Ok(Some(IndexAlgorithm::Ordered)),
            None => self.syntax(),
        }
    }

    fn index_column(&mut self) -> Parse<IndexColumn> {
        if self.current.kind == TokenKind::Open {
            self.advance();
            let expression = Some(Box::new(self.expression()?));
            self.expect(TokenKind::Close)?;
            let descending = self.accept_any(&[Keyword::Asc, Keyword::Desc]) == Some(Keyword::Desc);
            return Ok(IndexColumn { name: String::new(), expression, prefix_length: None, descending });
        }
        let name = self.name()?;
        let prefix_length = self.bracketed_number()?;
        let descending = self.accept_any(&[Keyword::Asc, Keyword::Desc]) == Some(Keyword::Desc);
        Ok(IndexColumn { name, expression: None, prefix_length, descending })
    }

    fn table_options(&mut self, options: &mut Vec<TableOption>) -> Parse<()> {
        while let Some(option) = self.table_option()? {
            options.push(option);
            self.accept(TokenKind::Comma);
        }
        Ok(())
    }

    pub(super) fn table_option(&mut self) -> Parse<Option<TableOption>> {
        let has_default = self.at_word(Keyword::Default);
        if has_default {
            self.advance();
        }
        if self.accept_character_set() {
            self.accept(TokenKind::Equal);
            return Ok(Some(TableOption::CharacterSet(self.name_or_default()?)));
        }
        if self.accept_word(Keyword::Collate) {
            self.accept(TokenKind::Equal);
            return Ok(Some(TableOption::Collation(self.collation_or_default()?)));
        }
        let keyword = self.word();
        if has_default {
            return self.syntax();
        }
        if !Self::is_name(self.current) && keyword != Some(Keyword::Union) {
            return Ok(None);
        }
        let name = self.any_word()?.to_ascii_uppercase();
        if matches!(name.as_str(), "DATA" | "INDEX") {
            self.any_word()?;
        }
        self.accept(TokenKind::Equal);
        let option = match keyword {
            Some(Keyword::Engine) => TableOption::Engine(self.name_or_string()?),
            Some(Keyword::AutoIncrement) => TableOption::AutoIncrement(self.long_number()?),
            Some(Keyword::Comment) => TableOption::Comment(self.string()?),
            Some(Keyword::RowFormat) => match self.name_or_default()? {
                Some(format) => TableOption::RowFormat(format.to_ascii_uppercase()),
                None => TableOption::RowFormat("DEFAULT".to_owned()),
            },
            Some(Keyword::Tablespace) => TableOption::Tablespace(self.name()?),
            Some(Keyword::Storage) => TableOption::OnDisk(self.name()?.eq_ignore_ascii_case("DISK")),
            _ => TableOption::Other { name, value: self.option_value()? },
        };
        Ok(Some(option))
    }

    /// The value of an uninterpreted option as written: a number, a word, a string, or a list in parentheses.
    fn option_value(&mut self) -> Parse<String> {
        let start = self.current.start;
        match self.current.kind {
            TokenKind::Open => self.skip_brackets()?,
            TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::String
            | TokenKind::Name
            | TokenKind::QuotedName
            | TokenKind::Keyword(_) => self.advance(),
            _ => return self.syntax(),
        }
        Ok(self.text_since(start))
    }

    /// The name of a character set, or `None` for DEFAULT.
    pub(super) fn name_or_default(&mut self) -> Parse<Option<String>> {
        if self.accept_word(Keyword::Default) { Ok(None) } else { Ok(Some(self.character_set_name()?)) }
    }

    /// The name of a collation, or `None` for DEFAULT.
    pub(super) fn collation_or_default(&mut self) -> Parse<Option<String>> {
        if self.accept_word(Keyword::Default) { Ok(None) } else { Ok(Some(self.collation_name()?)) }
    }

    pub(super) fn partition_by(&mut self) -> Parse<PartitionByKey> {
        let linear = self.accept_word(Keyword::Linear);
        match self.word() {
            Some(Keyword::Key) => self.advance(),
            Some(Keyword::Hash) => return self.unsupported("PARTITION BY HASH"),
            Some(Keyword::Range) => return self.unsupported("PARTITION BY RANGE"),
            _ if self.bytes(self.current).eq_ignore_ascii_case(b"LIST") => {
                return self.unsupported("PARTITION BY LIST");
            }
            _ => return self.syntax(),
        }
        if self.accept_word(Keyword::Algorithm) {
            self.expect(TokenKind::Equal)?;
            self.long_number()?;
        }
        self.expect(TokenKind::Open)?;
        let columns = match self.current.kind {
            TokenKind::Close => Vec::new(),
            _ => self.comma_list(Self::name)?,
        };
        self.expect(TokenKind::Close)?;
        let partitions = if self.accept_word(Keyword::Partitions) { Some(self.long_number()?) } else { None };
        if partitions == Some(0) {
            return self.syntax();
        }
        if self.current.kind == TokenKind::Open || self.bytes(self.current).eq_ignore_ascii_case(b"SUBPARTITION") {
            return self.unsupported("partition definitions");
        }
        Ok(PartitionByKey { columns, partitions, linear })
    }

    /// CREATE [UNIQUE] INDEX, starting at UNIQUE or INDEX.
    pub(super) fn create_index(&mut self) -> Parse<Statement> {
        let kind = if self.accept_word(Keyword::Unique) { IndexKind::Unique } else { IndexKind::Plain };
        self.expect_word(Keyword::Index)?;
        let name = self.name()?;
        let algorithm = self.index_algorithm()?;
        self.expect_word(Keyword::On)?;
        let table = self.object_name()?;
        let mut index = self.index_rest(kind, Some(name))?;
        index.algorithm = index.algorithm.or(algorithm);
        let mut manner = AlterManner::default();
        self.alter_manner(&mut manner)?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex { table, index, manner })))
    }

    /// `ALGORITHM = ...` and `LOCK = ...`, as often as they are there. The last of each counts.
    pub(super) fn alter_manner(&mut self, manner: &mut AlterManner) -> Parse<()> {
        while let Some(keyword) = self.accept_any(&[Keyword::Algorithm, Keyword::Lock]) {
            self.accept(TokenKind::Equal);
            let start = self.current.start;
            let word = if self.at_word(Keyword::Default) { self.any_word()? } else { self.name()? };
            let word = word.to_ascii_uppercase();
            match keyword {
                Keyword::Algorithm => {
                    manner.algorithm = match &*word {
                        "DEFAULT" => AlterAlgorithm::Default,
                        "INSTANT" => AlterAlgorithm::Instant,
                        "INPLACE" => AlterAlgorithm::InPlace,
                        "COPY" => AlterAlgorithm::Copy,
                        _ => return Err(Stop::Error(ParseErrorKind::UnknownAlterAlgorithm, start)),
                    }
                }
                _ => {
                    manner.lock = match &*word {
                        "DEFAULT" => AlterLock::Default,
                        "NONE" => AlterLock::None,
                        "SHARED" => AlterLock::Shared,
                        "EXCLUSIVE" => AlterLock::Exclusive,
                        _ => return Err(Stop::Error(ParseErrorKind::UnknownAlterLock, start)),
                    }
                }
            }
        }
        Ok(())
    }

    /// CREATE DATABASE, starting at DATABASE.
    pub(super) fn create_database(&mut self) -> Parse<Statement> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        let (character_set, collation) = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { if_not_exists, name, character_set, collation }))
    }

    /// ALTER DATABASE, starting at DATABASE.
    pub(super) fn alter_database(&mut self) -> Parse<Statement> {
        self.advance();
        let has_name = Self::is_name(self.current) && !self.at_database_option();
        let name = if has_name { Some(self.name()?) } else { None };
        if !self.at_database_option() {
            return if self.at_word(Keyword::Read) { self.unsupported("READ ONLY") } else { self.syntax() };
        }
        let (character_set, collation) = self.database_options()?;
        Ok(Statement::AlterDatabase(AlterDatabase { name, character_set, collation }))
    }

    fn at_database_option(&self) -> bool {
        let word = self.bytes(self.current);
        let bare = [&b"CHARSET"[..], b"CHARACTER", b"CHAR", b"ENCRYPTION"];
        self.at_word(Keyword::Default)
            || self.at_word(Keyword::Collate)
            || self.current.kind != TokenKind::QuotedName && bare.iter().any(|bare| word.eq_ignore_ascii_case(bare))
    }

    /// The character set and the collation of a database.
    fn database_options(&mut self) -> Parse<(Option<String>, Option<String>)> {
        let (mut character_set, mut collation) = (None, None);
        loop {
            let has_default = self.accept_word(Keyword::Default);
            if self.accept_character_set() {
                self.accept(TokenKind::Equal);
                character_set = self.name_or_default()?;
            } else if self.accept_word(Keyword::Collate) {
                self.accept(TokenKind::Equal);
                collation = self.collation_or_default()?;
            } else if self.bytes(self.current).eq_ignore_ascii_case(b"ENCRYPTION") {
                self.advance();
                self.accept(TokenKind::Equal);
                if self.string()?.eq_ignore_ascii_case(b"Y") {
                    return self.unsupported("ENCRYPTION");
                }
            } else if has_default {
                return self.syntax();
            } else {
                return Ok((character_set, collation));
            }
        }
    }

    /// ANALYZE, CHECK, OPTIMIZE or REPAIR TABLE, starting at the first word.
    pub(super) fn table_maintenance(&mut self, kind: TableMaintenance) -> Parse<Statement> {
        self.advance();
        let _ = self.accept_any(&[Keyword::NoWriteToBinlog, Keyword::Local]);
        if self.accept_any(&[Keyword::Table, Keyword::Tables]).is_none() {
            return self.syntax();
        }
        let tables = self.comma_list(Self::object_name)?;
        match kind {
            TableMaintenance::Analyze if self.at_word(Keyword::Update) || self.at_word(Keyword::Drop) => {
                let change = self.histogram_change()?;
                return Ok(Statement::Show(Box::new(Show::Histogram(tables, change))));
            }
            TableMaintenance::Check | TableMaintenance::Repair => {
                let options = [&b"QUICK"[..], b"FAST", b"MEDIUM", b"EXTENDED", b"CHANGED", b"USE_FRM"];
                let upgrade = [&b"FOR"[..], b"UPGRADE"];
                let is_option =
                    |word: &[u8]| options.iter().chain(&upgrade).any(|option| word.eq_ignore_ascii_case(option));
                while self.current.kind != TokenKind::End && is_option(self.bytes(self.current)) {
                    self.advance();
                }
            }
            _ => {}
        }
        Ok(Statement::Show(Box::new(Show::Maintenance { kind, tables })))
    }

    /// UPDATE HISTOGRAM or DROP HISTOGRAM, starting at its first word.
    fn histogram_change(&mut self) -> Parse<HistogramChange> {
        let updates = self.accept_word(Keyword::Update);
        if !updates {
            self.advance();
        }
        if !self.accept_plain(b"HISTOGRAM") {
            return self.syntax();
        }
        self.expect_word(Keyword::On)?;
        let columns = self.comma_list(Self::name)?;
        if !updates {
            return Ok(HistogramChange { columns, buckets: None });
        }
        let mut buckets = DEFAULT_BUCKETS;
        if self.accept_word(Keyword::With) {
            buckets = self.long_number()?;
            if !self.accept_plain(b"BUCKETS") {
                return self.syntax();
            }
        }
        if self.accept_word(Keyword::Using) {
            return self.unsupported("histograms from data");
        }
        Ok(HistogramChange { columns, buckets: Some(buckets) })
    }

    /// CHECKSUM TABLE, starting at its first word.
    pub(super) fn checksum_table(&mut self) -> Parse<Statement> {
        self.advance();
        if self.accept_any(&[Keyword::Table, Keyword::Tables]).is_none() {
            return self.syntax();
        }
        let tables = self.comma_list(Self::object_name)?;
        let is_option = |word: &[u8], option: &[u8]| word.eq_ignore_ascii_case(option);
        let quick = is_option(self.bytes(self.current), b"QUICK");
        if quick || is_option(self.bytes(self.current), b"EXTENDED") {
            self.advance();
        }
        Ok(Statement::Show(Box::new(Show::Checksum { tables, quick })))
    }

    /// DROP TABLE, starting at TEMPORARY or TABLE.
    pub(super) fn drop_table(&mut self) -> Parse<Statement> {
        let temporary = self.accept_word(Keyword::Temporary);
        if self.accept_any(&[Keyword::Table, Keyword::Tables]).is_none() {
            return self.syntax();
        }
        let if_exists = self.if_exists()?;
        let tables = self.comma_list(Self::object_name)?;
        let _ = self.accept_any(&[Keyword::Restrict, Keyword::Cascade]);
        Ok(Statement::DropTable(DropTable { temporary, if_exists, tables }))
    }

    /// DROP INDEX, starting at INDEX.
    pub(super) fn drop_index(&mut self) -> Parse<Statement> {
        self.advance();
        let name = if self.at_word(Keyword::Primary) { self.any_word()? } else { self.name()? };
        self.expect_word(Keyword::On)?;
        let table = self.object_name()?;
        let mut manner = AlterManner::default();
        self.alter_manner(&mut manner)?;
        Ok(Statement::DropIndex(DropIndex { table, name, manner }))
    }

    /// DROP DATABASE, starting at DATABASE.
    pub(super) fn drop_database(&mut self) -> Parse<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        Ok(Statement::DropDatabase(DropDatabase { if_exists, name: self.name()? }))
    }

    /// IF NOT EXISTS, if present.
    pub(super) fn if_not_exists(&mut self) -> Parse<bool> {
        if !self.accept_word(Keyword::If) {
            return Ok(false);
        }
        self.expect_word(Keyword::Not)?;
        self.expect_word(Keyword::Exists)?;
        Ok(true)
    }

    pub(super) fn if_exists(&mut self) -> Parse<bool> {
        if !self.accept_word(Keyword::If) {
            return Ok(false);
        }
        self.expect_word(Keyword::Exists)?;
        Ok(true)
    }
}
