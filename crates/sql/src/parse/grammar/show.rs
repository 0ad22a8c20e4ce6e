//! SHOW.

use super::parser::{Parse, Parser};
use crate::parse::account::AccountReference;
use crate::parse::expression::{StringLiteral, VariableScope};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::{ObjectName, Show, ShowFilter, Statement};

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Show)?;
        Ok(Statement::Show(Box::new(self.show_what()?)))
    }

    fn show_what(&mut self) -> Parse<Show> {
        let extended = self.accept_word(Keyword::Extended);
        let full = self.accept_word(Keyword::Full);
        let Some(keyword) = self.word() else {
            return self.show_by_text();
        };
        if extended || full {
            return self.show_with_modifier(keyword, full);
        }
        match keyword {
            Keyword::Create => self.show_create(),
            Keyword::Global | Keyword::Session | Keyword::Local => {
                self.advance();
                let scope = if keyword == Keyword::Global { VariableScope::Global } else { VariableScope::Session };
                self.show_variables(scope)
            }
            Keyword::Variables | Keyword::Status => self.show_variables(VariableScope::Session),
            Keyword::Warnings => {
                self.advance();
                Ok(Show::Warnings { limit: self.limit()? })
            }
            Keyword::Errors => {
                self.advance();
                Ok(Show::Errors { limit: self.limit()? })
            }
            Keyword::Table | Keyword::Open | Keyword::Triggers | Keyword::Events => self.show_of_database(keyword),
            Keyword::Tables | Keyword::Columns | Keyword::Fields | Keyword::Processlist => {
                self.show_with_modifier(keyword, false)
            }
            Keyword::Index | Keyword::Indexes | Keyword::Keys => {
                self.advance();
                let table = self.table_of_database()?;
                Ok(Show::Index { table, filter: self.condition_after(Keyword::Where)? })
            }
            _ => self.show_of_server(keyword),
        }
    }

    /// The forms of SHOW that accept FULL.
    fn show_with_modifier(&mut self, keyword: Keyword, full: bool) -> Parse<Show> {
        match keyword {
            Keyword::Tables => {
                self.advance();
                let (database, filter) = self.database_and_filter()?;
                Ok(Show::Tables { full, database, filter })
            }
            Keyword::Columns | Keyword::Fields => {
                self.advance();
                let table = self.table_of_database()?;
                Ok(Show::Columns { full, table, filter: self.show_filter()? })
            }
            Keyword::Processlist => {
                self.advance();
                Ok(Show::ProcessList { full })
            }
            _ => self.syntax(),
        }
    }

    /// SHOW of the contents of a database.
    fn show_of_database(&mut self, keyword: Keyword) -> Parse<Show> {
        self.advance();
        match keyword {
            Keyword::Table => self.expect_word(Keyword::Status)?,
            Keyword::Open => self.expect_word(Keyword::Tables)?,
            _ => {}
        }
        let (database, filter) = self.database_and_filter()?;
        Ok(match keyword {
            Keyword::Table => Show::TableStatus { database, filter },
            Keyword::Open => Show::OpenTables { database, filter },
            Keyword::Triggers => Show::Triggers { database, filter },
            _ => Show::Events { database, filter },
        })
    }

    /// SHOW of the server's properties.
    fn show_of_server(&mut self, keyword: Keyword) -> Parse<Show> {
        if self.accept_character_set() {
            return Ok(Show::CharacterSet { filter: self.show_filter()? });
        }
        let second = self.next;
        self.advance();
        let second_is = |word: Keyword| second.kind == TokenKind::Keyword(word);
        match keyword {
            Keyword::Databases | Keyword::Schemas => Ok(Show::Databases { filter: self.show_filter()? }),
            Keyword::Collation => Ok(Show::Collation { filter: self.show_filter()? }),
            Keyword::Engines => Ok(Show::Engines),
            Keyword::Storage => {
                self.expect_word(Keyword::Engines)?;
                Ok(Show::Engines)
            }
            Keyword::Plugins => Ok(Show::Plugins),
            Keyword::Privileges => Ok(Show::Privileges),
            Keyword::Grants => self.show_grants(),
            Keyword::Procedure | Keyword::Function if second_is(Keyword::Status) => {
                self.advance();
                let filter = self.show_filter()?;
                let is_procedure = keyword == Keyword::Procedure;
                Ok(if is_procedure { Show::ProcedureStatus { filter } } else { Show::FunctionStatus { filter } })
            }
            Keyword::Master | Keyword::Binary if second_is(Keyword::Logs) => {
                self.advance();
                Ok(Show::BinaryLogs)
            }
            Keyword::Master | Keyword::Slave | Keyword::Replica if second_is(Keyword::Status) => {
                self.advance();
                Ok(if keyword == Keyword::Master { Show::MasterStatus } else { Show::ReplicaStatus })
            }
            Keyword::Engine => {
                let engine = if self.accept_word(Keyword::All) { None } else { Some(self.name_or_string()?) };
                if self.accept_word(Keyword::Status) {
                    return Ok(Show::EngineStatus { engine });
                }
                match self.accept_word(Keyword::Logs) || self.accept_text("MUTEX") {
                    true => Ok(Show::EngineMutex),
                    false => self.syntax(),
                }
            }
            Keyword::Profile | Keyword::Profiles => self.unsupported("SHOW PROFILE"),
            Keyword::Binlog => self.unsupported("SHOW BINLOG EVENTS"),
            Keyword::Replica | Keyword::Slave => self.unsupported("SHOW REPLICAS"),
            _ => self.syntax_at(second),
        }
    }

    /// The forms of SHOW whose first word is not a keyword.
    fn show_by_text(&mut self) -> Parse<Show> {
        let first = self.bytes(self.current).to_ascii_uppercase();
        if first == b"COUNT" {
            return self.show_count();
        }
        match first.as_slice() {
            b"RELAYLOG" => self.unsupported("SHOW RELAYLOG EVENTS"),
            b"REPLICAS" => self.unsupported("SHOW REPLICAS"),
            _ => self.syntax(),
        }
    }

    /// `COUNT(*) WARNINGS` or `COUNT(*) ERRORS`
    fn show_count(&mut self) -> Parse<Show> {
        self.advance();
        self.expect(TokenKind::Open)?;
        self.expect(TokenKind::Star)?;
        self.expect(TokenKind::Close)?;
        match self.accept_any(&[Keyword::Warnings, Keyword::Errors]) {
            Some(Keyword::Warnings) => Ok(Show::WarningCount),
            Some(_) => Ok(Show::ErrorCount),
            None => self.syntax(),
        }
    }

    fn show_create(&mut self) -> Parse<Show> {
        self.advance();
        match self.word() {
            Some(Keyword::Table) => {
                self.advance();
                Ok(Show::CreateTable(self.object_name()?))
            }
            Some(Keyword::Database | Keyword::Schema) => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                Ok(Show::CreateDatabase { if_not_exists, name: self.name()? })
            }
            Some(Keyword::View) => {
                self.advance();
                Ok(Show::CreateView(self.object_name()?))
            }
            Some(Keyword::Procedure) => self.unsupported("SHOW CREATE PROCEDURE"),
            Some(Keyword::Function) => self.unsupported("SHOW CREATE FUNCTION"),
            Some(Keyword::Trigger) => self.unsupported("SHOW CREATE TRIGGER"),
            Some(Keyword::Event) => self.unsupported("SHOW CREATE EVENT"),
            Some(Keyword::User) => {
                self.advance();
                Ok(Show::CreateUser(self.account()?))
            }
            _ => self.syntax(),
        }
    }

    fn show_variables(&mut self, scope: VariableScope) -> Parse<Show> {
        let is_status = match self.accept_any(&[Keyword::Variables, Keyword::Status]) {
            Some(keyword) => keyword == Keyword::Status,
            None => return self.syntax(),
        };
        let filter = self.show_filter()?;
        Ok(if is_status { Show::Status { scope, filter } } else { Show::Variables { scope, filter } })
    }

    fn show_grants(&mut self) -> Parse<Show> {
        if !self.accept_word(Keyword::For) {
            return Ok(Show::Grants { account: AccountReference::Current, using: Vec::new() });
        }
        let account = self.account()?;
        let using = match self.accept_word(Keyword::Using) {
            true => self.comma_list(Self::account)?,
            false => Vec::new(),
        };
        Ok(Show::Grants { account, using })
    }

    fn database_clause(&mut self) -> Parse<Option<String>> {
        if self.accept_any(&[Keyword::From, Keyword::In]).is_some() { Ok(Some(self.name()?)) } else { Ok(None) }
    }

    fn database_and_filter(&mut self) -> Parse<(Option<String>, Option<ShowFilter>)> {
        let database = self.database_clause()?;
        Ok((database, self.show_filter()?))
    }

    /// `FROM table [FROM database]`; IN is a synonym of FROM.
    fn table_of_database(&mut self) -> Parse<ObjectName> {
        if self.accept_any(&[Keyword::From, Keyword::In]).is_none() {
            return self.syntax();
        }
        let mut table = self.object_name()?;
        if let Some(database) = self.database_clause()? {
            table.database = Some(database);
        }
        Ok(table)
    }

    fn show_filter(&mut self) -> Parse<Option<ShowFilter>> {
        if self.accept_word(Keyword::Like) {
            let bytes = self.string()?;
            return Ok(Some(ShowFilter::Like(StringLiteral { bytes, character_set: None, is_raw: false })));
        }
        Ok(self.condition_after(Keyword::Where)?.map(ShowFilter::Where))
    }
}
