//! Recognises a statement by its first words.

use super::parser::{Parse, Parser};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{SetByQuery, Statement, TableMaintenance};

impl Parser<'_> {
    /// A statement without its semicolon.
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        if self.current.kind == TokenKind::Open {
            return Ok(Statement::Select(Box::new(self.query()?)));
        }
        let Some(keyword) = self.word() else {
            return self.unsupported_by_text();
        };
        match keyword {
            Keyword::Select | Keyword::Table | Keyword::Values => Ok(Statement::Select(Box::new(self.query()?))),
            Keyword::With => {
                let with = self.with_clause()?;
                match self.word() {
                    Some(Keyword::Update) => self.update(with),
                    Some(Keyword::Delete) => self.delete(with),
                    _ => Ok(Statement::Select(Box::new(self.query_after(with)?))),
                }
            }
            Keyword::Insert | Keyword::Replace => Ok(Statement::Insert(Box::new(self.insert()?))),
            Keyword::Load if !self.next_is_word(Keyword::Index) => Ok(Statement::Insert(Box::new(self.load()?))),
            Keyword::Update => self.update(Vec::new()),
            Keyword::Delete => self.delete(Vec::new()),
            Keyword::Begin => self.begin(),
            Keyword::Start => self.start(),
            Keyword::Commit => self.commit(),
            Keyword::Rollback => self.rollback(),
            Keyword::Savepoint => self.savepoint(),
            Keyword::Release => self.release(),
            Keyword::Set => self.set(),
            Keyword::Reset if self.next_is_word(Keyword::Persist) => self.reset_persist(),
            Keyword::Show => self.show(),
            Keyword::Use => {
                self.advance();
                Ok(Statement::Use(self.name()?))
            }
            Keyword::Explain | Keyword::Describe | Keyword::Desc => self.explain(),
            Keyword::Create => self.create(),
            Keyword::Drop => self.drop_object(),
            Keyword::Truncate => {
                self.advance();
                self.accept_word(Keyword::Table);
                Ok(Statement::TruncateTable(self.object_name()?))
            }
            Keyword::Rename if matches!(self.next.kind, TokenKind::Keyword(Keyword::Table | Keyword::Tables)) => {
                self.advance();
                self.rename_table()
            }
            Keyword::Alter if self.next_is_word(Keyword::Table) => {
                self.advance();
                self.alter_table()
            }
            Keyword::Alter if matches!(self.next.kind, TokenKind::Keyword(Keyword::Database | Keyword::Schema)) => {
                self.advance();
                self.alter_database()
            }
            Keyword::Alter if self.next_is_word(Keyword::User) => {
                self.advance();
                self.alter_user()
            }
            Keyword::Rename if self.next_is_word(Keyword::User) => {
                self.advance();
                self.rename_user()
            }
            Keyword::Grant => self.grant(),
            Keyword::Revoke => self.revoke(),
            Keyword::Alter if self.next_is_word(Keyword::Instance) => self.alter_instance(),
            Keyword::Alter
                if matches!(
                    self.next.kind,
                    TokenKind::Keyword(Keyword::View | Keyword::Algorithm | Keyword::Definer | Keyword::Sql)
                ) =>
            {
                self.advance();
                self.create_view(true)
            }
            Keyword::Alter if self.next_is_text("NODEGROUP") => self.alter_node(true),
            Keyword::Alter if self.next_is_text("NODE") => self.alter_node(false),
            Keyword::Analyze => self.table_maintenance(TableMaintenance::Analyze),
            Keyword::Check => self.table_maintenance(TableMaintenance::Check),
            Keyword::Optimize => self.table_maintenance(TableMaintenance::Optimize),
            Keyword::Checksum => self.checksum_table(),
            Keyword::Repair => self.table_maintenance(TableMaintenance::Repair),
            Keyword::Lock => self.lock(),
            Keyword::Unlock => self.unlock(),
            Keyword::Kill => self.kill(),
            Keyword::Prepare => self.prepare(),
            Keyword::Execute => self.execute(),
            Keyword::Deallocate => {
                self.advance();
                self.deallocate()
            }
            Keyword::Do => {
                self.advance();
                Ok(SetByQuery::of_values(self.comma_list(Self::expression)?))
            }
            Keyword::Flush => self.flush(),
            Keyword::Shutdown | Keyword::Restart => self.stop(keyword == Keyword::Restart),
            Keyword::Backup => self.backup(),
            _ => self.unsupported_statement(keyword),
        }
    }

    fn create(&mut self) -> Parse<Statement> {
        self.advance();
        match self.word() {
            Some(Keyword::Table) => self.create_table(),
            Some(Keyword::Temporary) if self.next_is_word(Keyword::Table) => self.create_table(),
            Some(Keyword::Index) => self.create_index(),
            Some(Keyword::Unique) if self.next_is_word(Keyword::Index) => self.create_index(),
            Some(Keyword::Database | Keyword::Schema) => self.create_database(),
            Some(Keyword::Fulltext) => self.unsupported("FULLTEXT index"),
            Some(Keyword::Spatial) => self.unsupported("SPATIAL index"),
            Some(Keyword::View | Keyword::Or | Keyword::Algorithm | Keyword::Definer | Keyword::Sql) => {
                self.create_view(false)
            }
            Some(Keyword::User | Keyword::Role) => self.create_account(),
            Some(Keyword::Procedure) => self.unsupported("CREATE PROCEDURE"),
            Some(Keyword::Function) => self.unsupported("CREATE FUNCTION"),
            Some(Keyword::Trigger) => self.unsupported("CREATE TRIGGER"),
            Some(Keyword::Event) => self.unsupported("CREATE EVENT"),
            Some(Keyword::Server) => self.unsupported("CREATE SERVER"),
            Some(Keyword::Tablespace | Keyword::Undo) => self.unsupported("CREATE TABLESPACE"),
            Some(Keyword::Logfile) => self.unsupported("CREATE LOGFILE GROUP"),
            _ => self.syntax(),
        }
    }

    fn drop_object(&mut self) -> Parse<Statement> {
        self.advance();
        match self.word() {
            Some(Keyword::Table | Keyword::Tables | Keyword::Temporary) => self.drop_table(),
            Some(Keyword::Index) => self.drop_index(),
            Some(Keyword::Database | Keyword::Schema) => self.drop_database(),
            Some(Keyword::View) => self.drop_view(),
            Some(Keyword::User | Keyword::Role) => self.drop_account(),
            Some(Keyword::Procedure) => self.unsupported("DROP PROCEDURE"),
            Some(Keyword::Function) => self.unsupported("DROP FUNCTION"),
            Some(Keyword::Trigger) => self.unsupported("DROP TRIGGER"),
            Some(Keyword::Event) => self.unsupported("DROP EVENT"),
            Some(Keyword::Server) => self.unsupported("DROP SERVER"),
            Some(Keyword::Prepare) => self.deallocate(),
            Some(Keyword::Tablespace | Keyword::Undo) => self.unsupported("DROP TABLESPACE"),
            Some(Keyword::Logfile) => self.unsupported("DROP LOGFILE GROUP"),
            _ => self.syntax(),
        }
    }

    /// Statements that are recognised by their first words but not supported.
    fn unsupported_statement(&mut self, keyword: Keyword) -> Parse<Statement> {
        let second = match self.next.kind {
            TokenKind::Keyword(second) => Some(second),
            _ => None,
        };
        let what = match (keyword, second) {
            (Keyword::Alter, Some(Keyword::Tablespace | Keyword::Undo)) => "ALTER TABLESPACE",
            (Keyword::Alter, Some(Keyword::Logfile)) => "ALTER LOGFILE GROUP",
            (Keyword::Alter, Some(Keyword::Procedure | Keyword::Function)) => "ALTER PROCEDURE",
            (Keyword::Alter, Some(Keyword::Event)) => "ALTER EVENT",
            (Keyword::Alter, Some(Keyword::Server)) => "ALTER SERVER",
            (Keyword::Import, _) => "IMPORT TABLE",
            (Keyword::Load, _) => "LOAD INDEX",
            (Keyword::Call, _) => "CALL",
            (Keyword::Handler, _) => "HANDLER",
            (Keyword::Xa, _) => "XA transactions",
            (Keyword::Reset, _) => "RESET",
            (Keyword::Purge, _) => "PURGE",
            (Keyword::Change, _) => "CHANGE REPLICATION SOURCE",
            (Keyword::Stop, _) => "STOP REPLICA",
            (Keyword::Install | Keyword::Uninstall, _) => "INSTALL PLUGIN",
            (Keyword::Signal | Keyword::Resignal, _) => "SIGNAL",
            (Keyword::Get, _) => "GET DIAGNOSTICS",
            (Keyword::Help, _) => "HELP",
            (Keyword::Binlog, _) => "BINLOG",
            _ => return self.syntax(),
        };
        self.unsupported(what)
    }

    /// Unsupported statements whose first word is not a keyword.
    fn unsupported_by_text(&mut self) -> Parse<Statement> {
        let first = self.bytes(self.current).to_ascii_uppercase();
        match (self.current.kind, first.as_slice()) {
            (TokenKind::Name, b"CACHE") => self.unsupported("CACHE INDEX"),
            (TokenKind::Name, b"CLONE") => self.unsupported("CLONE"),
            _ => self.syntax(),
        }
    }
}
