//! Checks the rights of a session against the table of forms.

use junctor_model::access::{Privilege, Privileges, Rights};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{is_open_database, is_open_table};

use super::form::{Form, Right, RightOn, forms_of};
use super::needs::denied_table;
use crate::parse::statement::{ObjectName, Show, Statement};

/// A session, for the check of a statement without a plan.
pub(crate) struct Checker<'a> {
    /// The rights of the session.
    pub rights: &'a Rights,
    /// `'user'@'host'` of the session.
    pub who: &'a str,
    /// The account as `'user'@'host'`, for errors about databases.
    pub account: &'a str,
    /// The session's database.
    pub database: Option<&'a str>,
    /// Whether a table is a temporary one of the session, which needs no right.
    pub is_temporary: &'a dyn Fn(&str, &str) -> bool,
}

/// The objects of a statement.
#[derive(Default)]
struct Objects<'s> {
    databases: Vec<&'s str>,
    tables: Vec<&'s ObjectName>,
    sources: Vec<&'s ObjectName>,
    new_tables: Vec<&'s ObjectName>,
    parents: Vec<&'s ObjectName>,
}

impl Checker<'_> {
    /// Checks a statement without a plan.
    ///
    /// # Errors
    /// 1227 for the server, 1044 for a database, 1142 for a table.
    pub fn check(&self, statement: &Statement) -> Result<()> {
        let objects = self.objects_of(statement);
        for form in forms_of(statement) {
            for right in form.rights().rights {
                self.check_right(right, form, &objects)?;
            }
        }
        Ok(())
    }

    fn check_right(&self, right: &Right, form: Form, objects: &Objects<'_>) -> Result<()> {
        let wanted = Privileges::of(right.any_of);
        match right.on {
            RightOn::Server if !self.rights.global().has_any(wanted) => {
                let names: Vec<&str> = right.any_of.iter().map(|privilege| privilege.name()).collect();
                Err(denied_server(&names.join(" or ")))
            }
            RightOn::Server => Ok(()),
            RightOn::Database => objects.databases.iter().try_for_each(|name| self.check_database(name, wanted)),
            RightOn::Table | RightOn::Column => self.check_tables(&objects.tables, wanted, form.takes_temporary()),
            RightOn::Source => self.check_tables(&objects.sources, wanted, true),
            RightOn::NewTable => self.check_tables(&objects.new_tables, wanted, false),
            RightOn::Parent => self.check_tables(&objects.parents, wanted, false),
        }
    }

    /// Checks a right on a database; any right within it if `wanted` is empty. Error: 1044.
    pub fn check_database(&self, database: &str, wanted: Privileges) -> Result<()> {
        let is_allowed = match wanted.is_empty() {
            true => is_open_database(database) || self.rights.can_see_database(database),
            false => self.rights.on_database(database).has_any(wanted),
        };
        match is_allowed {
            true => Ok(()),
            false => Err(denied_database(self.account, database)),
        }
    }

    fn check_tables(&self, tables: &[&ObjectName], wanted: Privileges, takes_temporary: bool) -> Result<()> {
        for table in tables {
            let Some(database) = table.database.as_deref().or(self.database) else { continue };
            if !takes_temporary || !(self.is_temporary)(database, &table.name) {
                self.check_stored_table(database, &table.name, wanted)?;
            }
        }
        Ok(())
    }

    /// Checks a right on a table; any right on it or its columns if `wanted` is empty. Error: 1142.
    pub fn check_table(&self, database: &str, table: &str, wanted: Privileges) -> Result<()> {
        match (self.is_temporary)(database, table) {
            true => Ok(()),
            false => self.check_stored_table(database, table, wanted),
        }
    }

    fn check_stored_table(&self, database: &str, table: &str, wanted: Privileges) -> Result<()> {
        let is_allowed = match wanted.is_empty() {
            true => is_open_table(database, table) || self.rights.can_see_table(database, table),
            false => self.rights.on_table(database, table).table.has_any(wanted),
        };
        if is_allowed {
            return Ok(());
        }
        let shown = if wanted.is_empty() { Privilege::Select.into() } else { wanted };
        Err(denied_table(shown, self.who, table))
    }

    fn objects_of<'s>(&'s self, statement: &'s Statement) -> Objects<'s> {
        let mut objects = Objects::default();
        let tables = &mut objects.tables;
        let database_of = |table: &'s ObjectName| table.database.as_deref().or(self.database);
        match statement {
            Statement::CreateDatabase(create) => objects.databases.push(&create.name),
            Statement::AlterDatabase(alter) => objects.databases.extend(alter.name.as_deref().or(self.database)),
            Statement::DropDatabase(drop) => objects.databases.push(&drop.name),
            Statement::Use(name) => objects.databases.push(name),
            Statement::CreateTable(create) => {
                tables.push(&create.name);
                objects.databases.extend(database_of(&create.name));
                objects.parents.extend(create.foreign_keys.iter().map(|key| &key.references.table));
            }
            Statement::CreateTableLike(like) => {
                tables.push(&like.name);
                objects.databases.extend(database_of(&like.name));
                objects.sources.push(&like.source);
            }
            Statement::AlterTable(alter) => {
                tables.push(&alter.table);
                objects.new_tables.extend(alter.new_name());
                objects.parents.extend(alter.parents());
            }
            Statement::RenameTables(renames) => {
                tables.extend(renames.iter().map(|(from, _)| from));
                objects.new_tables.extend(renames.iter().map(|(_, to)| to));
            }
            Statement::CreateIndex(create) => tables.push(&create.table),
            Statement::DropIndex(drop) => tables.push(&drop.table),
            Statement::CreateView(view) => tables.push(&view.name),
            Statement::DropView(drop) => tables.extend(&drop.views),
            Statement::DropTable(drop) => tables.extend(&drop.tables),
            Statement::TruncateTable(table) => tables.push(table),
            Statement::LockTables(locks) => {
                tables.extend(locks.iter().map(|lock| &lock.table));
                objects.databases.extend(locks.iter().filter_map(|lock| database_of(&lock.table)));
            }
            Statement::Describe(describe) => tables.push(&describe.table),
            Statement::Show(show) => match &**show {
                Show::Maintenance { tables: named, .. } | Show::Histogram(named, _) => tables.extend(named),
                Show::Columns { table, .. }
                | Show::Index { table, .. }
                | Show::CreateTable(table)
                | Show::CreateView(table) => tables.push(table),
                Show::CreateDatabase { name, .. } => objects.databases.push(name),
                Show::Tables { database, .. } | Show::TableStatus { database, .. } => {
                    objects.databases.extend(database.as_deref().or(self.database));
                }
                _ => {}
            },
            _ => {}
        }
        objects
    }
}

/// 1044.
pub(crate) fn denied_database(account: &str, database: &str) -> Box<Error> {
    let message = format!("Access denied for user {account} to database '{database}'");
    Error::new(ErrorCode::DatabaseAccessDenied, message)
}

/// 1227.
pub(crate) fn denied_server(names: &str) -> Box<Error> {
    let message = format!("Access denied; you need (at least one of) the {names} privilege(s) for this operation");
    Error::new(ErrorCode::SpecificAccessDenied, message)
}
