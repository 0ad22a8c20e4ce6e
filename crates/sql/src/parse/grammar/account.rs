//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, and statements about roles.

use junctor_model::access::{Lifetime, TlsRequirement};

use super::parser::{Parse, Parser};
use crate::parse::account::{
    AccountOptions, AccountReference, AccountStatement, AlterUser, CreateUser, Identification, NewPassword,
    ResourceLimit, RoleChoice, Secret, SetPassword, UserSpecification,
};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::statement::Statement;

fn account_statement(statement: AccountStatement) -> Statement {
    Statement::Account(Box::new(statement))
}

impl Parser<'_> {
    /// CREATE USER and CREATE ROLE, starting at USER or ROLE.
    pub(super) fn create_account(&mut self) -> Parse<Statement> {
        let is_role = self.accept_word(Keyword::Role);
        if !is_role {
            self.expect_word(Keyword::User)?;
        }
        let if_not_exists = self.if_not_exists()?;
        if is_role {
            let roles = self.comma_list(Self::account)?;
            return Ok(account_statement(AccountStatement::CreateRole { if_not_exists, roles }));
        }
        let users = self.comma_list(Self::user_specification)?;
        let default_roles = match self.accept_words(Keyword::Default, Keyword::Role) {
            true => self.comma_list(Self::account)?,
            false => Vec::new(),
        };
        let options = self.account_options()?;
        let create = CreateUser { if_not_exists, users, default_roles, options };
        Ok(account_statement(AccountStatement::CreateUser(create)))
    }

    /// DROP USER and DROP ROLE, starting at USER or ROLE.
    pub(super) fn drop_account(&mut self) -> Parse<Statement> {
        let is_role = self.accept_word(Keyword::Role);
        if !is_role {
            self.expect_word(Keyword::User)?;
        }
        let if_exists = self.if_exists()?;
        let accounts = self.comma_list(Self::account)?;
        Ok(account_statement(match is_role {
            true => AccountStatement::DropRole { if_exists, roles: accounts },
            false => AccountStatement::DropUser { if_exists, accounts },
        }))
    }

    /// ALTER USER, starting at USER.
    pub(super) fn alter_user(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::User)?;
        let if_exists = self.if_exists()?;
        let mut users = vec![self.user_specification()?];
        if self.accept_words(Keyword::Default, Keyword::Role) {
            let default_roles = Some(self.role_choice()?);
            let alter = AlterUser { if_exists, users, default_roles, options: AccountOptions::default() };
            return Ok(account_statement(AccountStatement::AlterUser(alter)));
        }
        while self.accept(TokenKind::Comma) {
            users.push(self.user_specification()?);
        }
        let options = self.account_options()?;
        let alter = AlterUser { if_exists, users, default_roles: None, options };
        Ok(account_statement(AccountStatement::AlterUser(alter)))
    }

    /// RENAME USER, starting at USER.
    pub(super) fn rename_user(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::User)?;
        let renames = self.comma_list(|parser| {
            let from = parser.account()?;
            parser.expect_word(Keyword::To)?;
            Ok((from, parser.account()?))
        })?;
        Ok(account_statement(AccountStatement::RenameUser(renames)))
    }

    /// SET PASSWORD, starting at PASSWORD.
    pub(super) fn set_password(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Password)?;
        let account = match self.accept_word(Keyword::For) {
            true => self.account()?,
            false => AccountReference::Current,
        };
        let password = match self.accept(TokenKind::Equal) || self.accept(TokenKind::Assign) {
            // PASSWORD('text') is the form of MySQL before 8.0 and of MariaDB.
            true if self.accept_word(Keyword::Password) => {
                self.expect(TokenKind::Open)?;
                let password = self.secret()?;
                self.expect(TokenKind::Close)?;
                Some(password)
            }
            true => Some(self.secret()?),
            false => {
                self.expect_word(Keyword::To)?;
                self.expect_text("RANDOM")?;
                None
            }
        };
        let replace = if self.accept_word(Keyword::Replace) { Some(self.secret()?) } else { None };
        let retain = self.retain_current()?;
        let set = SetPassword { account, password, replace, retain };
        Ok(account_statement(AccountStatement::SetPassword(set)))
    }

    /// SET ROLE, starting at ROLE.
    pub(super) fn set_role(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Role)?;
        let choice = match self.accept_word(Keyword::Default) {
            true => RoleChoice::Default,
            false => self.role_choice()?,
        };
        Ok(account_statement(AccountStatement::SetRole(choice)))
    }

    /// SET DEFAULT ROLE, starting at DEFAULT.
    pub(super) fn set_default_role(&mut self) -> Parse<Statement> {
        self.expect_word(Keyword::Default)?;
        self.expect_word(Keyword::Role)?;
        let roles = self.role_choice()?;
        self.expect_word(Keyword::To)?;
        let to = self.comma_list(Self::account)?;
        Ok(account_statement(AccountStatement::SetDefaultRole { roles, to }))
    }

    /// FLUSH PRIVILEGES, FLUSH USER_RESOURCES, starting after FLUSH; `None` for others.
    pub(super) fn flush_accounts(&mut self) -> Option<Statement> {
        if self.accept_word(Keyword::Privileges) {
            return Some(account_statement(AccountStatement::FlushPrivileges));
        }
        self.accept_text("USER_RESOURCES").then(|| account_statement(AccountStatement::FlushUserResources))
    }

    fn role_choice(&mut self) -> Parse<RoleChoice> {
        if self.accept_text("NONE") {
            return Ok(RoleChoice::None);
        }
        if self.accept_word(Keyword::All) {
            return Ok(match self.accept_word(Keyword::Except) {
                true => RoleChoice::AllExcept(self.comma_list(Self::account)?),
                false => RoleChoice::All,
            });
        }
        Ok(RoleChoice::Named(self.comma_list(Self::account)?))
    }

    /// `user[@host]`, CURRENT_USER or USER().
    pub(super) fn account(&mut self) -> Parse<AccountReference> {
        if self.accept_word(Keyword::CurrentUser) {
            self.empty_brackets()?;
            return Ok(AccountReference::Current);
        }
        if self.at_word(Keyword::User) && self.next.kind == TokenKind::Open {
            self.advance();
            self.empty_brackets()?;
            return Ok(AccountReference::Current);
        }
        let user = self.name_or_string()?;
        Ok(AccountReference::Named { user, host: self.host()? })
    }

    /// `@host`, which the lexer reads as a user variable.
    pub(super) fn host(&mut self) -> Parse<Option<String>> {
        match self.current.kind {
            TokenKind::UserVariable => self.user_variable_name().map(Some),
            _ => Ok(None),
        }
    }

    fn empty_brackets(&mut self) -> Parse<()> {
        if self.accept(TokenKind::Open) {
            self.expect(TokenKind::Close)?;
        }
        Ok(())
    }

    fn user_specification(&mut self) -> Parse<UserSpecification> {
        let account = self.account()?;
        let mut identification = Identification::default();
        if self.accept_text("DISCARD") {
            self.expect_text("OLD")?;
            self.expect_word(Keyword::Password)?;
            identification.discard = true;
        } else if self.accept_text("IDENTIFIED") {
            self.identification(&mut identification)?;
        }
        Ok(UserSpecification { account, identification })
    }

    fn identification(&mut self, identification: &mut Identification) -> Parse<()> {
        if self.accept_word(Keyword::With) {
            identification.method = Some(self.name_or_string()?);
            if self.accept_word(Keyword::As) {
                identification.password = Some(NewPassword::Stored(self.secret_or_hexadecimal()?));
                return self.end_identification(identification);
            }
        }
        if self.accept_word(Keyword::By) {
            identification.password = Some(match self.accept_text("RANDOM") {
                true => {
                    self.expect_word(Keyword::Password)?;
                    NewPassword::Random
                }
                // The form of MySQL 5.7 and MariaDB with a hash of `mysql_native_password`.
                false if self.accept_word(Keyword::Password) => {
                    identification.method = Some("mysql_native_password".into());
                    NewPassword::Stored(self.secret()?)
                }
                false => NewPassword::Plain(self.secret()?),
            });
        } else if identification.method.is_none() {
            return self.syntax();
        }
        self.end_identification(identification)
    }

    fn end_identification(&mut self, identification: &mut Identification) -> Parse<()> {
        if self.accept_word(Keyword::Replace) {
            identification.replace = Some(self.secret()?);
        }
        identification.retain = self.retain_current()?;
        Ok(())
    }

    fn retain_current(&mut self) -> Parse<bool> {
        if !self.accept_text("RETAIN") {
            return Ok(false);
        }
        self.expect_text("CURRENT")?;
        self.expect_word(Keyword::Password)?;
        Ok(true)
    }

    fn secret(&mut self) -> Parse<Secret> {
        self.string().map(Secret)
    }

    fn secret_or_hexadecimal(&mut self) -> Parse<Secret> {
        use crate::parse::expression::{Expression, Literal};
        if self.current.kind == TokenKind::String {
            return self.secret();
        }
        let at = self.current;
        match self.literal()? {
            Expression::Literal(Literal::Hexadecimal(bytes)) => Ok(Secret(bytes)),
            _ => self.syntax_at(at),
        }
    }

    fn account_options(&mut self) -> Parse<AccountOptions> {
        let mut options = AccountOptions::default();
        if self.accept_word(Keyword::Require) {
            options.tls = Some(self.tls_requirement()?);
        }
        if self.accept_word(Keyword::With) {
            while let Some(limit) = self.resource_limit() {
                options.limits.push((limit, self.number_below(u32::MAX.into())? as u32));
            }
            if options.limits.is_empty() {
                return self.syntax();
            }
        }
        loop {
            if self.accept_word(Keyword::Password) {
                self.password_option(&mut options)?;
            } else if self.accept_text("ACCOUNT") {
                options.lock = Some(match self.accept_any(&[Keyword::Lock, Keyword::Unlock]) {
                    Some(keyword) => keyword == Keyword::Lock,
                    None => return self.syntax(),
                });
            } else if self.accept_text("FAILED_LOGIN_ATTEMPTS") {
                options.failed_logins_max = Some(self.number_below(32_768)? as u16);
            } else if self.accept_text("PASSWORD_LOCK_TIME") {
                options.lock_days = Some(match self.accept_text("UNBOUNDED") {
                    true => -1,
                    false => self.number_below(32_768)? as i32,
                });
            } else {
                break;
            }
        }
        if self.accept_word(Keyword::Comment) {
            let at = self.current.start;
            let text = self.string()?;
            options.comment = Some(self.utf8(text, at)?);
        } else if self.accept_text("ATTRIBUTE") {
            let at = self.current.start;
            let text = self.string()?;
            options.attribute = Some(self.utf8(text, at)?);
        }
        Ok(options)
    }

    fn tls_requirement(&mut self) -> Parse<TlsRequirement> {
        if self.accept_text("NONE") {
            return Ok(TlsRequirement::None);
        }
        if self.accept_word(Keyword::Ssl) {
            return Ok(TlsRequirement::Any);
        }
        if self.accept_text("X509") {
            return Ok(TlsRequirement::X509);
        }
        let (mut cipher, mut issuer, mut subject) = (None, None, None);
        loop {
            let target = match () {
                () if self.accept_text("CIPHER") => &mut cipher,
                () if self.accept_text("ISSUER") => &mut issuer,
                () if self.accept_text("SUBJECT") => &mut subject,
                () if cipher.is_none() && issuer.is_none() && subject.is_none() => return self.syntax(),
                () => break,
            };
            if target.is_some() {
                return self.syntax();
            }
            let at = self.current.start;
            let text = self.string()?;
            *target = Some(self.utf8(text, at)?.into());
            self.accept_word(Keyword::And);
        }
        Ok(TlsRequirement::Specified { cipher, issuer, subject })
    }

    fn resource_limit(&mut self) -> Option<ResourceLimit> {
        let limits = [
            ("MAX_QUERIES_PER_HOUR", ResourceLimit::Queries),
            ("MAX_UPDATES_PER_HOUR", ResourceLimit::Updates),
            ("MAX_CONNECTIONS_PER_HOUR", ResourceLimit::Connections),
            ("MAX_USER_CONNECTIONS", ResourceLimit::UserConnections),
        ];
        limits.into_iter().find(|(name, _)| self.accept_text(name)).map(|(_, limit)| limit)
    }

    /// What follows PASSWORD.
    fn password_option(&mut self, options: &mut AccountOptions) -> Parse<()> {
        if self.accept_text("EXPIRE") {
            if self.accept_word(Keyword::Default) {
                options.lifetime = Some(Lifetime::Default);
            } else if self.accept_text("NEVER") {
                options.lifetime = Some(Lifetime::Never);
            } else if self.accept_word(Keyword::Interval) {
                options.lifetime = Some(Lifetime::Days(self.days()?));
            } else {
                options.expire_now = true;
            }
        } else if self.accept_text("HISTORY") {
            options.history = Some(match self.accept_word(Keyword::Default) {
                true => None,
                false => Some(self.number_below(65_536)? as u16),
            });
        } else if self.accept_text("REUSE") {
            self.expect_word(Keyword::Interval)?;
            options.reuse_days = Some(match self.accept_word(Keyword::Default) {
                true => None,
                false => Some(self.days()?),
            });
        } else if self.accept_word(Keyword::Require) {
            self.expect_text("CURRENT")?;
            options.require_current = Some(match () {
                () if self.accept_word(Keyword::Default) => None,
                () => Some(!self.accept_text("OPTIONAL")),
            });
        } else {
            return self.syntax();
        }
        Ok(())
    }

    fn days(&mut self) -> Parse<u16> {
        let days = self.number_below(65_536)? as u16;
        self.expect_text("DAY")?;
        Ok(days)
    }

    fn number_below(&mut self, limit: i128) -> Parse<i128> {
        use crate::parse::expression::{Expression, Literal};
        let at = self.current;
        match self.literal()? {
            Expression::Literal(Literal::Integer(number)) if (0..limit).contains(&number) => Ok(number),
            _ => self.syntax_at(at),
        }
    }

    pub(super) fn expect_text(&mut self, word: &str) -> Parse<()> {
        if self.accept_text(word) { Ok(()) } else { self.syntax() }
    }
}
