//! The rights on tables and columns that a planned statement needs. Binding collects them; each session that
//! executes the plan must have them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_model::access::{Privilege, Privileges, Rights};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;

use super::form::TableAccess;

/// The rights that a statement needs on one table.
#[derive(Clone, Debug, Default, PartialEq)]
struct TableNeeds {
    /// On the whole table: of each set, one.
    whole: Vec<Privileges>,
    /// On the table or at least one of its columns.
    some: Privileges,
    /// On single columns, if not on the whole table.
    columns: BTreeMap<Box<str>, Privileges>,
    /// Whether all columns are read by `*`, so that an error names no column.
    reads_all: bool,
}

/// The rights that a statement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    tables: BTreeMap<(Box<str>, Box<str>), TableNeeds>,
}

impl Needs {
    /// Checks the rights of a session. `who` is `'user'@'host'` of the session.
    ///
    /// # Errors
    /// 1142 for a table, 1143 for a column.
    pub fn check(&self, rights: &Rights, who: &str) -> Result<()> {
        for ((database, table), needs) in &self.tables {
            let own = rights.on_table(database, table);
            if let Some(lacking) = needs.whole.iter().find(|any| !own.table.has_any(**any)) {
                return Err(denied_table(*lacking, who, table));
            }
            let lacking = needs.some.without(own.any());
            if !lacking.is_empty() {
                return Err(denied_table(lacking, who, table));
            }
            for (column, wanted) in &needs.columns {
                let lacking = wanted.without(own.on_column(column));
                if lacking.is_empty() {
                    continue;
                }
                return Err(match needs.reads_all {
                    true => denied_table(lacking, who, table),
                    false => denied_column(lacking, who, (table, column)),
                });
            }
        }
        Ok(())
    }
}

/// Collects the needs of a statement while it is planned.
pub(crate) struct NeedsCollector<'a> {
    rights: &'a Rights,
    who: &'a str,
    needs: RefCell<Needs>,
}

impl<'a> NeedsCollector<'a> {
    /// A collector for a session. `who` is `'user'@'host'` of the session.
    pub fn new(rights: &'a Rights, who: &'a str) -> NeedsCollector<'a> {
        NeedsCollector { rights, who, needs: RefCell::default() }
    }

    /// Notes the use of a table, and checks the right on it at once: a session without it must not learn
    /// whether the table exists.
    pub fn use_table(&self, database: &str, table: &str, table_access: TableAccess) -> Result<()> {
        let (whole, some) = table_access.privileges();
        let mut needs = self.needs.borrow_mut();
        let known = needs.tables.entry((database.into(), table.into())).or_default();
        known.some |= some;
        if !whole.is_empty() && !known.whole.contains(&whole) {
            known.whole.push(whole);
        }
        let own = self.rights.on_table(database, table);
        if table_access == TableAccess::ReadOrUpdate
            && !own.any().has_any(Privileges::of(&[Privilege::Select, Privilege::Update]))
        {
            return Err(denied_table(Privilege::Select.into(), self.who, table));
        }
        if !whole.is_empty() && !own.table.has_any(whole) {
            return Err(denied_table(whole, self.who, table));
        }
        match some.without(own.any()) {
            lacking if lacking.is_empty() => Ok(()),
            lacking => Err(denied_table(lacking, self.who, table)),
        }
    }

    /// Notes that a column is read.
    pub fn read_column(&self, column: &ResultColumn) {
        self.use_column((&column.database, &column.org_table), &column.org_name, Privilege::Select);
    }

    /// Notes that `*` reads the columns of a table.
    pub fn read_all(&self, column: &ResultColumn) {
        let mut needs = self.needs.borrow_mut();
        let name = (column.database.clone(), column.org_table.clone());
        if let Some(known) = needs.tables.get_mut(&name) {
            known.reads_all = true;
        }
    }

    /// Notes that a column is used. Columns of tables that are not noted belong to queries.
    pub fn use_column(&self, (database, table): (&str, &str), column: &str, privilege: Privilege) {
        let mut needs = self.needs.borrow_mut();
        if let Some(known) = needs.tables.get_mut(&(Box::from(database), Box::from(table))) {
            *known.columns.entry(column.into()).or_default() |= privilege.into();
        }
    }

    /// The needs of the statement, which are checked.
    pub fn finish(self) -> Result<Needs> {
        let needs = self.needs.into_inner();
        needs.check(self.rights, self.who)?;
        Ok(needs)
    }
}

/// A number that no session has.
const UNCHECKED: u64 = u64::MAX;

/// The needs of a plan, and the rights that were found to fulfil them last.
#[derive(Debug)]
pub struct PlanRights {
    needs: OnceLock<Needs>,
    /// `Session::rights_number` of the session that may execute the plan without another check.
    checked: AtomicU64,
}

impl Default for PlanRights {
    fn default() -> PlanRights {
        PlanRights { needs: OnceLock::new(), checked: AtomicU64::new(UNCHECKED) }
    }
}

impl PlanRights {
    /// The number of the rights that were checked last.
    #[inline(always)]
    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// Sets the needs of a new plan.
    pub(crate) fn set(&self, needs: Needs) {
        // A plan is planned once, so a second call cannot happen; the first needs stay.
        let _ = self.needs.set(needs);
    }

    /// Checks the rights of a session, and notes its number unless it is 0. A plan whose needs are unknown
    /// belongs to a statement that was checked when it was planned.
    pub(crate) fn check(&self, rights: &Rights, who: &str, number: u64) -> Result<()> {
        if let Some(needs) = self.needs.get() {
            needs.check(rights, who)?;
        }
        if number != 0 {
            self.checked.store(number, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// 1142.
pub(crate) fn denied_table(privileges: Privileges, who: &str, table: &str) -> Box<Error> {
    let names = privileges.iter().next().map_or("SELECT", Privilege::name);
    let message = format!("{names} command denied to user {who} for table '{table}'");
    Error::new(ErrorCode::TableAccessDenied, message)
}

/// 1143.
fn denied_column(privileges: Privileges, who: &str, (table, column): (&str, &str)) -> Box<Error> {
    let names = privileges.iter().next().map_or("SELECT", Privilege::name);
    let message = format!("{names} command denied to user {who} for column '{column}' in table '{table}'");
    Error::new(ErrorCode::ColumnAccessDenied, message)
}
