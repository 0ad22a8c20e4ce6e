//! GRANT and REVOKE.

use junctor_model::access::Privilege;
use junctor_model::access::privilege::PrivilegeLevel;

use super::parser::{Parse, Parser};
use crate::parse::account::{
    AccountReference, AccountStatement, Grant, GrantObject, PrivilegeItem, PrivilegeList, Revoke,
};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::statement::{ObjectName, Statement};

/// A member of the list before ON, TO or FROM: a privilege or a role.
struct Item {
    /// The words of a privilege, or the name of a role.
    words: String,
    /// Whether it can only be a role.
    is_role: bool,
    host: Option<String>,
    columns: Vec<String>,
    at: Token,
}

impl Parser<'_> {
    pub(super) fn grant(&mut self) -> Parse<Statement> {
        self.advance();
        let items = self.comma_list(Self::grant_item)?;
        let statement = match self.accept_word(Keyword::On) {
            false => {
                let roles = self.roles_of(items)?;
                self.expect_word(Keyword::To)?;
                let to = self.comma_list(Self::account)?;
                let admin = self.with_admin_option()?;
                AccountStatement::GrantRoles { roles, to, admin }
            }
            true => {
                let privileges = self.privileges_of(items)?;
                let on = self.grant_object()?;
                self.expect_word(Keyword::To)?;
                let to = self.comma_list(Self::account)?;
                let grant_option = self.accept_word(Keyword::With);
                if grant_option {
                    self.expect_word(Keyword::Grant)?;
                    self.expect_word(Keyword::Option)?;
                }
                if self.at_word(Keyword::As) {
                    return self.unsupported("GRANT ... AS");
                }
                AccountStatement::Grant(Grant { privileges, on, to, grant_option })
            }
        };
        Ok(Statement::Account(Box::new(statement)))
    }

    pub(super) fn revoke(&mut self) -> Parse<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        let items = self.comma_list(Self::grant_item)?;
        let statement = match self.accept_word(Keyword::On) {
            false if is_revoke_all(&items) => {
                self.expect_word(Keyword::From)?;
                AccountStatement::RevokeAll { from: self.comma_list(Self::account)?, if_exists }
            }
            false => {
                let roles = self.roles_of(items)?;
                self.expect_word(Keyword::From)?;
                AccountStatement::RevokeRoles { roles, from: self.comma_list(Self::account)?, if_exists }
            }
            true => {
                let privileges = self.privileges_of(items)?;
                let on = self.grant_object()?;
                self.expect_word(Keyword::From)?;
                let from = self.comma_list(Self::account)?;
                AccountStatement::Revoke(Revoke { if_exists, privileges, on, from, ignore_unknown: false })
            }
        };
        let mut statement = statement;
        if self.accept_word(Keyword::Ignore) {
            self.expect_word(Keyword::Unknown)?;
            self.expect_word(Keyword::User)?;
            if let AccountStatement::Revoke(revoke) = &mut statement {
                revoke.ignore_unknown = true;
            }
        }
        Ok(Statement::Account(Box::new(statement)))
    }

    fn with_admin_option(&mut self) -> Parse<bool> {
        if !self.accept_word(Keyword::With) {
            return Ok(false);
        }
        self.expect_text("ADMIN")?;
        self.expect_word(Keyword::Option)?;
        Ok(true)
    }

    fn grant_item(&mut self) -> Parse<Item> {
        let at = self.current;
        let mut item = Item { words: String::new(), is_role: false, host: None, columns: Vec::new(), at };
        if matches!(self.current.kind, TokenKind::String | TokenKind::QuotedName) {
            item.words = self.name_or_string()?;
            item.is_role = true;
            item.host = self.host()?;
            return Ok(item);
        }
        while matches!(self.current.kind, TokenKind::Name | TokenKind::Keyword(_))
            && ![Keyword::On, Keyword::To, Keyword::From].iter().any(|end| self.at_word(*end))
        {
            if !item.words.is_empty() {
                item.words.push(' ');
            }
            item.words.push_str(&self.any_word()?);
        }
        if item.words.is_empty() {
            return self.syntax();
        }
        if self.current.kind == TokenKind::UserVariable {
            item.is_role = true;
            item.host = self.host()?;
        } else if self.current.kind == TokenKind::Open
            && Privilege::from_name(&item.words).is_some_and(|it| it.level() == PrivilegeLevel::Column)
        {
            self.advance();
            item.columns = self.comma_list(Self::name)?;
            self.expect(TokenKind::Close)?;
        }
        Ok(item)
    }

    fn roles_of(&mut self, items: Vec<Item>) -> Parse<Vec<AccountReference>> {
        let mut roles = Vec::new();
        for item in items {
            if !item.columns.is_empty() || !item.is_role && item.words.contains(' ') {
                return self.syntax_at(item.at);
            }
            roles.push(AccountReference::Named { user: item.words, host: item.host });
        }
        Ok(roles)
    }

    fn privileges_of(&mut self, items: Vec<Item>) -> Parse<PrivilegeList> {
        if let [item] = &items[..]
            && !item.is_role
            && ["ALL", "ALL PRIVILEGES"].iter().any(|all| item.words.eq_ignore_ascii_case(all))
        {
            return Ok(PrivilegeList::All);
        }
        let mut list = Vec::new();
        for item in items {
            if item.is_role {
                return self.syntax_at(item.at);
            }
            if item.words.eq_ignore_ascii_case("USAGE") {
                continue;
            }
            if item.words.eq_ignore_ascii_case("PROXY") {
                return self.unsupported("GRANT PROXY");
            }
            let Some(privilege) = Privilege::from_name(&item.words) else {
                match item.words.contains(' ') || !item.columns.is_empty() {
                    true => return self.syntax_at(item.at),
                    false => return Ok(PrivilegeList::Unknown(item.words)),
                }
            };
            list.push(PrivilegeItem { privilege, columns: item.columns });
        }
        Ok(PrivilegeList::Items(list))
    }

    fn grant_object(&mut self) -> Parse<GrantObject> {
        if self.at_word(Keyword::Procedure) || self.at_word(Keyword::Function) {
            return self.unsupported("GRANT on routines");
        }
        if self.at_word(Keyword::Table) && self.next.kind != TokenKind::Dot {
            self.advance();
        }
        if self.accept(TokenKind::Star) {
            if !self.accept(TokenKind::Dot) {
                return Ok(GrantObject::Database(None));
            }
            self.expect(TokenKind::Star)?;
            return Ok(GrantObject::Server);
        }
        let first = self.name()?;
        if !self.accept(TokenKind::Dot) {
            return Ok(GrantObject::Table(ObjectName { database: None, name: first }));
        }
        if self.accept(TokenKind::Star) {
            return Ok(GrantObject::Database(Some(first)));
        }
        Ok(GrantObject::Table(ObjectName { database: Some(first), name: self.name()? }))
    }
}

/// `ALL [PRIVILEGES], GRANT OPTION`
fn is_revoke_all(items: &[Item]) -> bool {
    let [all, option] = items else { return false };
    let is_all = ["ALL", "ALL PRIVILEGES"].iter().any(|word| all.words.eq_ignore_ascii_case(word));
    !all.is_role && is_all && option.words.eq_ignore_ascii_case("GRANT OPTION")
}
