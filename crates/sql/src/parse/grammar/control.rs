//! Transactions, locks, KILL, DESCRIBE and EXPLAIN.

use super::parser::{Parse, Parser};
use crate::parse::expression::Expression;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{
    BackupPart, BackupStatement, Describe, Explain, FlushKind, Kill, StartTransaction, Statement, StopStatement,
    TableLock, TransactionEnd,
};

impl Parser<'_> {
    /// BEGIN [WORK].
    pub(super) fn begin(&mut self) -> Parse<Statement> {
        self.advance();
        self.accept_word(Keyword::Work);
        Ok(Statement::StartTransaction(StartTransaction::default()))
    }

    /// START TRANSACTION. START REPLICA is recognised but not supported.
    pub(super) fn start(&mut self) -> Parse<Statement> {
        self.advance();
        if self.accept_any(&[Keyword::Replica, Keyword::Slave]).is_some() {
            return self.unsupported("START REPLICA");
        }
        self.expect_word(Keyword::Transaction)?;
        let mut start = StartTransaction::default();
        if !matches!(self.current.kind, TokenKind::End | TokenKind::Semicolon) {
            loop {
                if self.accept_words(Keyword::With, Keyword::Consistent) {
                    self.expect_word(Keyword::Snapshot)?;
                    start.consistent_snapshot = true;
                } else if start.access.is_none() {
                    start.access = Some(self.access_mode()?);
                } else {
                    return self.syntax();
                }
                if !self.accept(TokenKind::Comma) {
                    break;
                }
            }
        }
        Ok(Statement::StartTransaction(start))
    }

    pub(super) fn commit(&mut self) -> Parse<Statement> {
        self.advance();
        Ok(Statement::Commit(self.transaction_end()?))
    }

    /// ROLLBACK or ROLLBACK TO SAVEPOINT.
    pub(super) fn rollback(&mut self) -> Parse<Statement> {
        self.advance();
        if self.at_word(Keyword::To) || self.at_word(Keyword::Work) && self.next_is_word(Keyword::To) {
            self.accept_word(Keyword::Work);
            self.advance();
            self.accept_word(Keyword::Savepoint);
            return Ok(Statement::RollbackToSavepoint(self.name()?));
        }
        Ok(Statement::Rollback(self.transaction_end()?))
    }

    fn transaction_end(&mut self) -> Parse<TransactionEnd> {
        self.accept_word(Keyword::Work);
        let mut end = TransactionEnd::default();
        if self.accept_word(Keyword::And) {
            end.chain = Some(!self.accept_word(Keyword::No));
            self.expect_word(Keyword::Chain)?;
        }
        if self.accept_words(Keyword::No, Keyword::Release) {
            end.release = Some(false);
        } else if self.accept_word(Keyword::Release) {
            end.release = Some(true);
        }
        Ok(end)
    }

    pub(super) fn savepoint(&mut self) -> Parse<Statement> {
        self.advance();
        Ok(Statement::Savepoint(self.name()?))
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release(&mut self) -> Parse<Statement> {
        self.advance();
        self.expect_word(Keyword::Savepoint)?;
        Ok(Statement::ReleaseSavepoint(self.name()?))
    }

    /// LOCK TABLES and LOCK INSTANCE.
    pub(super) fn lock(&mut self) -> Parse<Statement> {
        self.advance();
        if self.accept_word(Keyword::Instance) {
            self.expect_word(Keyword::For)?;
            self.expect_word(Keyword::Backup)?;
            return Ok(Statement::LockInstance);
        }
        if self.accept_any(&[Keyword::Table, Keyword::Tables]).is_none() {
            return self.syntax();
        }
        Ok(Statement::LockTables(self.comma_list(Self::table_lock)?))
    }

    fn table_lock(&mut self) -> Parse<TableLock> {
        let table = self.object_name()?;
        let has_alias = self.accept_word(Keyword::As) || Self::is_name(self.current);
        let alias = if has_alias { Some(self.name()?) } else { None };
        if self.accept_word(Keyword::Read) {
            let local = self.accept_word(Keyword::Local);
            return Ok(TableLock { table, alias, write: false, local });
        }
        self.accept_word(Keyword::LowPriority);
        self.expect_word(Keyword::Write)?;
        Ok(TableLock { table, alias, write: true, local: false })
    }

    /// UNLOCK TABLES and UNLOCK INSTANCE.
    pub(super) fn unlock(&mut self) -> Parse<Statement> {
        self.advance();
        if self.accept_word(Keyword::Instance) {
            return Ok(Statement::UnlockInstance);
        }
        match self.accept_any(&[Keyword::Table, Keyword::Tables]) {
            Some(_) => Ok(Statement::UnlockTables),
            None => self.syntax(),
        }
    }

    /// ALTER INSTANCE RELOAD TLS [NO ROLLBACK ON ERROR]. A reload is all or nothing in both forms.
    pub(super) fn alter_instance(&mut self) -> Parse<Statement> {
        self.advance();
        self.advance();
        if !self.accept_text("RELOAD") || !self.accept_text("TLS") {
            return self.unsupported("ALTER INSTANCE");
        }
        if self.accept_word(Keyword::No) {
            self.expect_word(Keyword::Rollback)?;
            self.expect_word(Keyword::On)?;
            if !self.accept_text("ERROR") {
                return self.syntax();
            }
        }
        Ok(Statement::ReloadTls)
    }

    /// FLUSH [NO_WRITE_TO_BINLOG | LOCAL] {PRIVILEGES | USER_RESOURCES}, or
    /// {HOSTS | [BINARY | ENGINE | ERROR | GENERAL | RELAY | SLOW] LOGS}, ..., or
    /// {TABLE | TABLES} [table, ...].
    pub(super) fn flush(&mut self) -> Parse<Statement> {
        self.advance();
        self.accept_any(&[Keyword::Local, Keyword::NoWriteToBinlog]);
        if let Some(statement) = self.flush_accounts() {
            return Ok(statement);
        }
        if self.accept_any(&[Keyword::Table, Keyword::Tables]).is_some() {
            return self.flush_tables();
        }
        Ok(Statement::Flush(self.comma_list(Self::flush_kind)?))
    }

    /// The rest of FLUSH TABLES.
    fn flush_tables(&mut self) -> Parse<Statement> {
        let tables = if Self::is_name(self.current) { self.comma_list(Self::object_name)? } else { Vec::new() };
        if self.at_word(Keyword::With) {
            return self.unsupported("FLUSH TABLES WITH READ LOCK");
        }
        if self.at_word(Keyword::For) {
            return self.unsupported("FLUSH TABLES FOR EXPORT");
        }
        Ok(Statement::Flush(vec![FlushKind::Tables(tables)]))
    }

    fn flush_kind(&mut self) -> Parse<FlushKind> {
        if self.accept_text("HOSTS") {
            return Ok(FlushKind::Hosts);
        }
        // Binary and relay logs do not exist, so there is nothing to flush in them.
        let _is_one_of_them = self.accept_any(&[Keyword::Binary, Keyword::Engine]).is_some()
            || ["ERROR", "GENERAL", "RELAY", "SLOW"].iter().any(|word| self.accept_text(word));
        if self.accept_word(Keyword::Logs) {
            return Ok(FlushKind::Logs);
        }
        self.unsupported("FLUSH")
    }

    /// {SHUTDOWN | RESTART} [NODE number [FORCE]]. MySQL has both without NODE.
    pub(super) fn stop(&mut self, restarts: bool) -> Parse<Statement> {
        self.advance();
        if !self.accept_text("NODE") {
            return Ok(Statement::Stop(StopStatement { node: None, restarts, is_forced: false }));
        }
        let Ok(number) = u8::try_from(self.long_number()?) else { return self.syntax() };
        let is_forced = self.accept_word(Keyword::Force);
        Ok(Statement::Stop(StopStatement { node: Some(number), restarts, is_forced }))
    }

    /// ALTER {NODEGROUP | NODE} number {LEAVE | STAY}
    pub(super) fn alter_node(&mut self, is_group: bool) -> Parse<Statement> {
        self.advance();
        self.advance();
        let Ok(number) = u8::try_from(self.long_number()?) else { return self.syntax() };
        let leaves = self.accept_word(Keyword::Leave);
        if !leaves {
            self.expect_text("STAY")?;
        }
        Ok(match is_group {
            true => Statement::LeaveGroup { group: number, leaves },
            false => Statement::LeaveReplica { node: number, leaves },
        })
    }

    /// BACKUP NODE number {BEGIN 'store' AS 'name' | COPY 'name' UNTIL number | END 'name'}, by which
    /// `junctor admin backup` directs the nodes.
    pub(super) fn backup(&mut self) -> Parse<Statement> {
        self.advance();
        self.expect_text("NODE")?;
        let Ok(node) = u8::try_from(self.long_number()?) else { return self.syntax() };
        let step = if self.accept_word(Keyword::Begin) {
            let store = self.string_as_name()?;
            self.expect_word(Keyword::As)?;
            BackupPart::Begin { store, name: self.string_as_name()? }
        } else if self.accept_text("COPY") {
            let name = self.string_as_name()?;
            self.expect_text("UNTIL")?;
            BackupPart::Copy { name, until: self.long_number()? }
        } else {
            self.expect_word(Keyword::End)?;
            BackupPart::End { name: self.string_as_name()? }
        };
        Ok(Statement::Backup(Box::new(BackupStatement { node, step })))
    }

    pub(super) fn kill(&mut self) -> Parse<Statement> {
        self.advance();
        let query_only = match self.accept_any(&[Keyword::Query, Keyword::Connection]) {
            Some(keyword) => keyword == Keyword::Query,
            None => false,
        };
        let connection = self.expression()?;
        Ok(Statement::Kill(Box::new(Kill { query_only, connection })))
    }

    /// `PREPARE name FROM 'text'`, or FROM a user variable.
    pub(super) fn prepare(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Prepare)?;
        let name = self.name()?;
        self.expect_word(Keyword::From)?;
        let source = match self.current.kind {
            TokenKind::String => self.literal()?,
            _ => Expression::UserVariable(self.user_variable_name()?),
        };
        Ok(Statement::Prepare { name, source: Box::new(source) })
    }

    /// `EXECUTE name [USING @variable, ...]`
    pub(super) fn execute(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Execute)?;
        let name = self.name()?;
        let using = match self.accept_word(Keyword::Using) {
            true => self.comma_list(Self::user_variable_name)?,
            false => Vec::new(),
        };
        Ok(Statement::Execute { name, using })
    }

    /// `PREPARE name` after DEALLOCATE or DROP.
    pub(super) fn deallocate(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Prepare)?;
        Ok(Statement::Deallocate(self.name()?))
    }

    /// DESCRIBE of a table or EXPLAIN of a statement. MySQL treats the two words as synonyms.
    pub(super) fn explain(&mut self) -> Parse<Statement> {
        self.advance();
        let analyze = self.accept_word(Keyword::Analyze);
        self.accept_word(Keyword::Extended);
        let mut format = None;
        if self.at_word(Keyword::Format) && self.next.kind == TokenKind::Equal {
            self.advance();
            self.advance();
            format = Some(self.name_or_string()?);
        }
        let is_statement = matches!(
            self.word(),
            Some(
                Keyword::Select
                    | Keyword::Insert
                    | Keyword::Replace
                    | Keyword::Update
                    | Keyword::Delete
                    | Keyword::With
                    | Keyword::Table
            )
        ) || self.current.kind == TokenKind::Open;
        if is_statement {
            let statement = self.statement()?;
            return Ok(Statement::Explain(Box::new(Explain { analyze, format, statement })));
        }
        if self.at_word(Keyword::For) && self.next_is_word(Keyword::Connection) {
            return self.unsupported("EXPLAIN FOR CONNECTION");
        }
        if analyze || format.is_some() {
            return self.syntax();
        }
        let table = self.object_name()?;
        let has_column = self.current.kind == TokenKind::String || Self::is_name(self.current);
        let column = if has_column { Some(self.name_or_string()?) } else { None };
        Ok(Statement::Describe(Box::new(Describe { table, column })))
    }
}
