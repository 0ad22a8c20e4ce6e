//! The rights on tables and columns that a planned statement needs. Binding collects them; each session that
//! executes the plan must have them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_model::access::{AccountName, Privilege, Privileges, Rights};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableDefinition;

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

/// Whose rights count for a table: those of the session, or of the definer of a view.
#[derive(Clone, Debug, Default, PartialEq)]
struct Subject {
    /// The definer of the view; `None` for the session.
    definer: Option<AccountName>,
    /// The view that the statement names, for errors about what is beneath it.
    view: Option<(Box<str>, Box<str>)>,
}

/// A [`Subject`] by its place within the needs of a statement. The default is the session itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectNumber(usize);

/// The rights that a statement needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needs {
    /// The first one is the session without a view.
    subjects: Vec<Subject>,
    tables: BTreeMap<(SubjectNumber, Box<str>, Box<str>), TableNeeds>,
    /// All views that the statement reads or changes.
    views: BTreeSet<(Box<str>, Box<str>)>,
    /// Whether the statement shows its plan.
    explains: bool,
    /// Whether the statement reads or writes a file of the server.
    uses_files: bool,
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            subjects: vec![Subject::default()],
            tables: BTreeMap::new(),
            views: BTreeSet::new(),
            explains: false,
            uses_files: false,
        }
    }
}

/// A session whose rights are checked.
#[derive(Clone, Copy)]
pub(crate) struct RightsOfSession<'a> {
    /// Its rights.
    pub rights: &'a Rights,
    /// `'user'@'host'` of the session.
    pub who: &'a str,
    /// The rights of an account with its default roles; `None` if it does not exist.
    pub of_account: &'a dyn Fn(&AccountName) -> Option<Rights>,
}

impl Needs {
    /// Checks the rights of a session, and of the definers of views.
    ///
    /// # Errors
    /// 1045 for files, 1142 for a table, 1143 for a column, 1356 beneath a view, 1449 for a definer that does
    /// not exist, 1345 if the statement shows a plan whose tables the session may not read.
    pub fn check(&self, session: RightsOfSession<'_>) -> Result<()> {
        let definers = self.definers(session)?;
        if self.uses_files && !session.rights.global().has_any(Privilege::File.into()) {
            let message = format!("Access denied for user {} (using password: YES)", session.who);
            return Err(Error::new(ErrorCode::AccessDenied, message));
        }
        for ((number, database, table), needs) in &self.tables {
            let place = number.0;
            let rights = definers[place].as_ref().unwrap_or(session.rights);
            needs.check(rights, session.who, (database, table)).map_err(|error| match &self.subjects[place].view {
                Some((database, view)) => invalid_view(database, view),
                None => error,
            })?;
        }
        if self.explains { self.check_explain(session) } else { Ok(()) }
    }

    /// Checks that the session itself may read what the plan of a statement shows: the tables beneath views.
    /// Error: 1345.
    pub fn check_explain(&self, session: RightsOfSession<'_>) -> Result<()> {
        let is_known = |database: &str, view: &str| {
            session.rights.on_table(database, view).table.has_all(Privileges::of(&[Privilege::ShowView]))
        };
        let is_readable = |((number, database, table), needs): (&(SubjectNumber, Box<str>, Box<str>), &TableNeeds)| {
            self.subjects[number.0].view.is_none()
                || needs.check(session.rights, session.who, (database, table)).is_ok()
        };
        match self.views.iter().all(|(database, view)| is_known(database, view)) && self.tables.iter().all(is_readable)
        {
            true => Ok(()),
            false => {
                let text = "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
                Err(Error::new(ErrorCode::ViewNoExplain, text))
            }
        }
    }

    /// The rights of the definers, by the number of the subject. Error: 1449.
    fn definers(&self, session: RightsOfSession<'_>) -> Result<Vec<Option<Rights>>> {
        let of_subject = |subject: &Subject| match &subject.definer {
            None => Ok(None),
            Some(definer) => (session.of_account)(definer).map(Some).ok_or_else(|| no_definer(definer)),
        };
        self.subjects.iter().map(of_subject).collect()
    }
}

impl TableNeeds {
    /// Errors: 1142, 1143.
    fn check(&self, rights: &Rights, who: &str, (database, table): (&str, &str)) -> Result<()> {
        let own = rights.on_table(database, table);
        if let Some(lacking) = self.whole.iter().find(|any| !own.table.has_any(**any)) {
            return Err(denied_table(*lacking, who, table));
        }
        let lacking = self.some.without(own.any());
        if !lacking.is_empty() {
            return Err(denied_table(lacking, who, table));
        }
        for (column, wanted) in &self.columns {
            let lacking = wanted.without(own.on_column(column));
            if lacking.is_empty() {
                continue;
            }
            return Err(match self.reads_all {
                true => denied_table(lacking, who, table),
                false => denied_column(lacking, who, (table, column)),
            });
        }
        Ok(())
    }
}

/// The table of an INSERT through a view, whose rights are those of another subject.
#[derive(Clone, Debug)]
struct WrittenTable {
    subject: SubjectNumber,
    name: (Box<str>, Box<str>),
}

/// Collects the needs of a statement while it is planned.
pub(crate) struct NeedsCollector<'a> {
    session: RightsOfSession<'a>,
    needs: RefCell<Needs>,
    /// Whose rights count for what is being bound.
    subject: Cell<SubjectNumber>,
    written: RefCell<Option<WrittenTable>>,
}

impl<'a> NeedsCollector<'a> {
    /// A collector for a session.
    pub fn new(session: RightsOfSession<'a>) -> NeedsCollector<'a> {
        NeedsCollector { session, needs: RefCell::default(), subject: Cell::default(), written: RefCell::default() }
    }

    /// `'user'@'host'` of the session.
    pub fn who(&self) -> &str {
        self.session.who
    }

    /// Whose rights count for what is being bound.
    pub fn subject(&self) -> SubjectNumber {
        self.subject.get()
    }

    /// Sets whose rights count from now on, and returns the subject before.
    pub fn act_as(&self, subject: SubjectNumber) -> SubjectNumber {
        self.subject.replace(subject)
    }

    /// From now on, the rights to what is beneath a view count. Returns the subject before. Beneath a view of
    /// the invoker, the rights of the one who uses the view count: those of a definer within another view.
    ///
    /// # Errors
    /// 1449 if the definer does not exist.
    pub fn enter_view(&self, definition: &TableDefinition) -> Result<SubjectNumber> {
        let before = self.subject.get();
        let mut needs = self.needs.borrow_mut();
        let name = (definition.database.clone(), definition.name.clone());
        needs.views.insert(name.clone());
        let mut subject = needs.subjects[before.0].clone();
        subject.view.get_or_insert(name);
        if let Some(view) = definition.view.as_deref().filter(|view| !view.is_invoker) {
            let definer = account_of_definer(&view.definer);
            if (self.session.of_account)(&definer).is_none() {
                return Err(no_definer(&definer));
            }
            subject.definer = Some(definer);
        }
        let known = needs.subjects.iter().position(|known| *known == subject);
        let place = known.unwrap_or_else(|| {
            needs.subjects.push(subject);
            needs.subjects.len() - 1
        });
        self.subject.set(SubjectNumber(place));
        Ok(before)
    }

    /// Notes the table of an INSERT through a view. `subject` needs the rights to write to it.
    pub fn write_as(&self, subject: SubjectNumber, table: &TableDefinition) {
        let name = (table.database.clone(), table.name.clone());
        *self.written.borrow_mut() = Some(WrittenTable { subject, name });
    }

    /// The subject of a use of a table.
    fn subject_of(&self, database: &str, table: &str, wanted: Privileges) -> SubjectNumber {
        let writes = Privileges::of(&[Privilege::Insert, Privilege::Update, Privilege::Delete]);
        match &*self.written.borrow() {
            Some(written)
                if self.subject.get() == SubjectNumber::default()
                    && writes.has_all(wanted)
                    && (&*written.name.0, &*written.name.1) == (database, table) =>
            {
                written.subject
            }
            _ => self.subject.get(),
        }
    }

    /// Notes the use of a table, and checks the right on it at once: a session without it must not learn
    /// whether the table exists.
    pub fn use_table(&self, database: &str, table: &str, table_access: TableAccess) -> Result<()> {
        let (whole, some) = table_access.privileges();
        let subject = self.subject_of(database, table, whole | some);
        let mut needs = self.needs.borrow_mut();
        let known = needs.tables.entry((subject, database.into(), table.into())).or_default();
        known.some |= some;
        if !whole.is_empty() && !known.whole.contains(&whole) {
            known.whole.push(whole);
        }
        let definer = needs.subjects[subject.0].definer.as_ref();
        let of_definer = definer.and_then(|definer| (self.session.of_account)(definer));
        let who = self.session.who;
        let own = of_definer.as_ref().unwrap_or(self.session.rights).on_table(database, table);
        if table_access == TableAccess::ReadOrUpdate
            && !own.any().has_any(Privileges::of(&[Privilege::Select, Privilege::Update]))
        {
            return Err(denied_table(Privilege::Select.into(), who, table));
        }
        if !whole.is_empty() && !own.table.has_any(whole) {
            return Err(denied_table(whole, who, table));
        }
        match some.without(own.any()) {
            lacking if lacking.is_empty() => Ok(()),
            lacking => Err(denied_table(lacking, who, table)),
        }
    }

    /// Notes that a column of a stored table or of a table of the server is read.
    pub fn read_column(&self, column: &ResultColumn) {
        self.use_column((&column.database, &column.org_table), &column.org_name, Privilege::Select);
    }

    /// Notes that `*` reads the columns of a table or view.
    pub fn read_all(&self, (database, table): (&str, &str)) {
        let mut needs = self.needs.borrow_mut();
        let name = (self.subject.get(), Box::from(database), Box::from(table));
        if let Some(known) = needs.tables.get_mut(&name) {
            known.reads_all = true;
        }
    }

    /// Notes that a column is used. Columns of tables that are not noted belong to queries.
    pub fn use_column(&self, (database, table): (&str, &str), column: &str, privilege: Privilege) {
        let subject = self.subject_of(database, table, privilege.into());
        let mut needs = self.needs.borrow_mut();
        if let Some(known) = needs.tables.get_mut(&(subject, Box::from(database), Box::from(table))) {
            *known.columns.entry(column.into()).or_default() |= privilege.into();
        }
    }

    /// Notes that the statement shows its plan.
    pub fn explain(&self) {
        self.needs.borrow_mut().explains = true;
    }

    /// Notes that the statement reads or writes a file of the server.
    pub fn use_files(&self) {
        self.needs.borrow_mut().uses_files = true;
    }

    /// The needs of the statement, which are checked.
    pub fn finish(self) -> Result<Needs> {
        let needs = self.needs.into_inner();
        needs.check(self.session)?;
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

    /// The needs, if they are known.
    pub(crate) fn needs(&self) -> Option<&Needs> {
        self.needs.get()
    }

    /// Sets the needs of a new plan.
    pub(crate) fn set(&self, needs: Needs) {
        // A plan is planned once, so a second call cannot happen; the first needs stay.
        let _ = self.needs.set(needs);
    }

    /// Checks the rights of a session, and notes its number unless it is 0. A plan whose needs are unknown
    /// belongs to a statement that was checked when it was planned.
    pub(crate) fn check(&self, session: RightsOfSession<'_>, number: u64) -> Result<()> {
        if let Some(needs) = self.needs.get() {
            needs.check(session)?;
        }
        if number != 0 {
            self.checked.store(number, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The account that DEFINER names as `user@host`.
pub(crate) fn account_of_definer(definer: &str) -> AccountName {
    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, "%"));
    AccountName::new(user, host)
}

/// 1449.
pub(crate) fn no_definer(definer: &AccountName) -> Box<Error> {
    Error::new(ErrorCode::NoSuchUser, format!("The user specified as a definer ({definer}) does not exist"))
}

/// 1356.
#[cold]
pub(crate) fn invalid_view(database: &str, name: &str) -> Box<Error> {
    let text = format!(
        "View '{database}.{name}' references invalid table(s) or column(s) or function(s) or definer/invoker of \
         view lack rights to use them"
    );
    Error::new(ErrorCode::ViewInvalid, text)
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
