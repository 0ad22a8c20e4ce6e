//! Executes the statements about accounts, and looks up the rights of sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_gateway::TurnContext;
use junctor_model::access::{AccountName, Privilege, Privileges, Rights};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::password::strength::StrengthRules;
use junctor_model::value::Value;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::journal::{LogEvent, Severity};
use junctor_signals::program::RowProtocol;

use super::command::answer;
use super::unplanned::is_definition;
use crate::access::{Checker, RightsOfSession, denied_server};
use crate::definition::access::{
    AccessContext, AccessEdit, PasswordRules, change_access, parse_role_list, role_not_granted, role_with_system_user,
};
use crate::execute::{
    AccessOutcome, AccessRetry, AfterSchemaChange, Engine, Identity, Session, StatementContext, StatementInput, fail,
    granted_roles, must_change_password, start_access_change,
};
use crate::mysql_catalog::show::{WarningLevel, generated_passwords, virtual_column_names};
use crate::mysql_catalog::variable::{GlobalChange, GlobalVariables, find};
use crate::parse::Statement;
use crate::parse::account::{AccountReference, AccountStatement, RoleChoice, UserSpecification};
use crate::plan::Plan;
use crate::result::Progress;

impl Engine {
    /// The number of a global variable.
    fn number(&self, name: &str) -> u64 {
        match self.globals.value_named(name) {
            Value::UInt(number) => number,
            Value::Int(number) => u64::try_from(number).unwrap_or(0),
            _ => 0,
        }
    }

    /// The rules of `validate_password`, if it is on.
    fn strength_rules(&self) -> Option<StrengthRules> {
        (self.number("validate_password.enabled") != 0).then(|| StrengthRules {
            length: self.number("validate_password.length"),
            mixed_case: self.number("validate_password.mixed_case_count"),
            numbers: self.number("validate_password.number_count"),
            specials: self.number("validate_password.special_char_count"),
            checks_user_name: self.number("validate_password.check_user_name") != 0,
            checks_length_only: self.globals.value_named("validate_password.policy") == Value::Bytes(b"LOW".to_vec()),
        })
    }

    /// The roles of `mandatory_roles`.
    pub(crate) fn mandatory_roles(&self) -> Vec<AccountName> {
        match self.globals.value_named("mandatory_roles") {
            Value::Bytes(text) if !text.is_empty() => {
                parse_role_list(&String::from_utf8_lossy(&text)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The account of a new session with the roles that are active at a login.
    pub(super) fn identity_of(&self, account: &AccountName, is_expired: bool) -> Identity {
        let mandatory = self.mandatory_roles();
        let all_roles = self.number("activate_all_roles_on_login") != 0;
        let access = &self.gateway.catalog().dictionary.access;
        Identity { is_expired, ..Identity::of_login(account, access, (&mandatory, all_roles)) }
    }

    /// The rights of a session, without keeping them if they are looked up.
    pub(crate) fn rights_for(&self, session: &Session) -> Arc<Rights> {
        match &session.identity.rights {
            Some(rights) => Arc::clone(rights),
            None => Arc::new(self.lookup_rights(&session.identity)),
        }
    }

    fn lookup_rights(&self, identity: &Identity) -> Rights {
        if identity.account == AccountName::internal() {
            return Rights::internal();
        }
        if identity.account == AccountName::unchecked() {
            return Rights::unlimited();
        }
        let access = &self.gateway.catalog().dictionary.access;
        let granted = granted_roles(&identity.account, access, &[]);
        let mandatory = self.mandatory_roles();
        let is_active = |role: &&AccountName| granted.contains(*role) || mandatory.contains(*role);
        let active: Vec<&AccountName> = identity.roles.iter().filter(is_active).collect();
        access.rights_of(&identity.account, active, self.number("partial_revokes") != 0)
    }

    /// The rights of an account with the roles that a login activates; `None` if it does not exist. Views
    /// with the rights of their definers have them.
    pub(crate) fn rights_of_account(&self, account: &AccountName) -> Option<Rights> {
        self.gateway.catalog().dictionary.access.account(account)?;
        Some(self.lookup_rights(&self.identity_of(account, false)))
    }

    /// Calls `check` with the rights of a session.
    pub(super) fn checker<T>(&self, session: &Session, rights: &Rights, check: impl FnOnce(&Checker<'_>) -> T) -> T {
        let dictionary = &self.gateway.catalog().dictionary;
        let owner = session.temporary_owner();
        let is_temporary = |database: &str, table: &str| {
            let found = dictionary.table_seen_by(owner, database, table);
            found.is_some_and(|layout| layout.definition.is_temporary())
        };
        check(&Checker {
            rights,
            who: &session.who(),
            account: &session.identity.account.to_string(),
            database: session.database(),
            is_temporary: &is_temporary,
        })
    }

    /// The account whose processes alone a session may see; `None` with PROCESS, which shows all. A user name
    /// alone decides nothing, because a client of an anonymous account chooses any.
    pub(crate) fn shown_account(&self, session: &Session) -> Option<Vec<u8>> {
        let sees_all = self.rights_for(session).has(Privilege::Process);
        (!sees_all).then(|| session.identity.account.to_string().into_bytes())
    }

    /// The global variables on which rights depend.
    fn access_settings(&self) -> (Vec<AccountName>, bool) {
        (self.mandatory_roles(), self.number("partial_revokes") != 0)
    }

    /// Calls `change`, which may give global variables new values. Returns whether the rights of sessions
    /// have changed by it, so that they must forget theirs.
    pub(crate) fn change_settings(&mut self, change: impl FnOnce(&mut Engine)) -> bool {
        let before = self.access_settings();
        change(self);
        let is_changed = before != self.access_settings();
        if is_changed {
            self.known_rights.clear();
        }
        is_changed
    }

    /// Errors: 1044, 1049.
    pub(super) fn check_login_database(&self, session: &Session, database: &str) -> Result<()> {
        let rights = self.rights_for(session);
        self.checker(session, &rights, |checker| checker.check_database(database, Privileges::NONE))?;
        self.check_database(database)
    }

    /// The rights of a session, looked up if they have changed.
    pub(crate) fn rights_of(&mut self, session: &mut Session) -> Arc<Rights> {
        if let Some(rights) = &session.identity.rights {
            return Arc::clone(rights);
        }
        let access = Arc::clone(&self.gateway.catalog().dictionary.access);
        let account = access.account(&session.identity.account);
        if let Some(account) = account.filter(|_| session.identity.is_expired) {
            // A new password ends the restriction, also if somebody else has set it.
            let is_new = account.password_changed_us != session.identity.password_changed_us;
            session.identity.is_expired = account.is_expired || !is_new;
        }
        let key = (access.version, session.identity.account.clone(), session.identity.roles.clone());
        let known = self.known_rights.iter().find(|(known, ..)| *known == key);
        let (number, rights) = match known {
            Some((_, number, rights)) => (*number, Arc::clone(rights)),
            None => {
                let rights = Arc::new(self.lookup_rights(&session.identity));
                self.rights_count += 1;
                if self.known_rights.len() >= KNOWN_RIGHTS_MAX {
                    self.known_rights.clear();
                }
                self.known_rights.push((key, self.rights_count, Arc::clone(&rights)));
                (self.rights_count, rights)
            }
        };
        let is_counted = account.is_some_and(|account| account.limits.counts_statements());
        // Without a number, each statement is checked, and counted there.
        session.rights_number = if session.identity.is_expired || is_counted { 0 } else { number };
        session.identity.rights = Some(Arc::clone(&rights));
        rights
    }
}

/// Checks the value that the configuration gives to a system variable, as SET GLOBAL checks it. Accounts are
/// not known then: mandatory roles with SYSTEM_USER are refused when they are.
///
/// # Errors
/// 1193 for an unknown variable, 1228 and 1238 for one that SET GLOBAL cannot change, 1231 and 1232 for a
/// wrong value.
pub fn check_start_variable(name: &str, text: &str) -> Result<()> {
    GlobalVariables::default().set_at_start(name, text)?;
    match name.eq_ignore_ascii_case(MANDATORY_ROLES) && parse_role_list(text).is_none() {
        true => Err(wrong_role_list(text)),
        false => Ok(()),
    }
}

/// 1231.
fn wrong_role_list(text: &str) -> Box<Error> {
    let message = format!("Variable 'mandatory_roles' can't be set to the value of '{text}'");
    Error::new(ErrorCode::WrongValueForVariable, message)
}

/// The variable with the roles that everybody has.
const MANDATORY_ROLES: &str = "mandatory_roles";

impl Engine {
    /// At the start, takes `mandatory_roles` away from everybody if one of them has SYSTEM_USER. While the
    /// node runs, no statement can bring that about.
    pub(super) fn check_mandatory_roles(&mut self, turn: &TurnContext<'_>) {
        let mandatory = self.mandatory_roles();
        let access = Arc::clone(&self.gateway.catalog().dictionary.access);
        let Some(role) = role_with_system_user(&mandatory, |name| access.account(name).map(|account| &**account))
        else {
            return;
        };
        let line =
            format!("mandatory_roles is ignored: {role} has SYSTEM_USER, which nobody may get by a mandatory role");
        self.journal().write(turn.wall_clock_us, LogEvent::Line(Severity::Warning, line.into_boxed_str()));
        if let Some(id) = find(MANDATORY_ROLES) {
            self.change_settings(|engine| engine.globals.apply(&GlobalChange { id, value: Value::Bytes(Vec::new()) }));
        }
    }
}

/// The change of a statement, its notes, and what follows it.
type Edited = (SchemaChange, Vec<(WarningLevel, u16, Box<str>)>, AccessOutcome);

/// Whether a statement gives this account a new password, and changes no other.
fn changes_password(statement: &AccountStatement, own: &AccountName) -> bool {
    let is_own = |account: &AccountReference| match account {
        AccountReference::Current => true,
        AccountReference::Named { user, host } => AccountName::new(user, host.as_deref().unwrap_or("%")) == *own,
    };
    match statement {
        AccountStatement::SetPassword(set) => is_own(&set.account),
        AccountStatement::AlterUser(alter) => {
            let changes = |user: &UserSpecification| user.identification.password.is_some() && is_own(&user.account);
            alter.users.iter().all(changes)
        }
        _ => false,
    }
}

/// Whether a statement counts as a change of accounts.
fn changes_accounts(statement: &Statement) -> bool {
    use AccountStatement::{FlushPrivileges, FlushUserResources, SetRole};
    match statement {
        Statement::Account(account) => !matches!(**account, SetRole(_) | FlushPrivileges | FlushUserResources),
        _ => false,
    }
}

/// Whether a statement counts as a change of rows.
fn changes_rows(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_))
}

/// Sets of rights that a block keeps, so that the sessions of one account share a number.
const KNOWN_RIGHTS_MAX: usize = 64;

impl StatementContext<'_, '_> {
    /// Executes a statement about accounts.
    pub(super) fn execute_account_statement(
        &mut self,
        statement: &AccountStatement,
        protocol: RowProtocol,
    ) -> Progress {
        match statement {
            AccountStatement::SetRole(choice) => {
                let outcome = self.set_role(choice);
                answer(self, outcome)
            }
            AccountStatement::FlushPrivileges => {
                self.engine.settings.login.flushes.fetch_add(1, Ordering::Relaxed);
                answer(self, Ok(()))
            }
            AccountStatement::FlushUserResources => {
                self.engine.settings.usage.reset();
                answer(self, Ok(()))
            }
            _ => self.change_accounts(statement, protocol, 0),
        }
    }

    /// Changes accounts. `tries` counts how often others have changed them meanwhile.
    pub(super) fn change_accounts(
        &mut self,
        statement: &AccountStatement,
        protocol: RowProtocol,
        tries: u32,
    ) -> Progress {
        let rights = self.engine.rights_of(self.session);
        let edited = self.edit_accounts(statement, &rights);
        let (change, notes, outcome) = match edited {
            Ok(edited) => edited,
            Err(error) => return fail(self, &error),
        };
        for (level, errno, message) in notes {
            self.session.warn(level, errno, message);
        }
        let retry = AccessRetry { statement: statement.clone().into(), protocol, tries };
        start_access_change(self, change, AfterSchemaChange::Access(Box::new((retry, outcome))))
    }

    /// The change of a statement, its notes, and what follows it: the rows are the passwords that it has
    /// generated.
    fn edit_accounts(&mut self, statement: &AccountStatement, rights: &Rights) -> Result<Edited> {
        let mandatory = self.engine.mandatory_roles();
        let rules = PasswordRules {
            history: self.engine.number("password_history"),
            reuse_days: self.engine.number("password_reuse_interval"),
            require_current: self.engine.number("password_require_current") != 0,
        };
        let strength = self.engine.strength_rules();
        let default_method = match self.engine.globals.value_named("default_authentication_plugin") {
            Value::Bytes(name) => String::from_utf8_lossy(&name).into_owned(),
            _ => String::new(),
        };
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let find_table = |database: &str, table: &str| {
            let Some(layout) = dictionary.table_named(database, table) else {
                return virtual_column_names(database, table);
            };
            let columns = layout.definition.columns.iter().filter(|column| !column.hidden);
            Some(columns.map(|column| column.name.clone()).collect())
        };
        let session = format!("'{}'@'{}'", self.session.identity.account.user, self.session.host);
        let random = &mut self.turn.random;
        let mut next_random = || random.secret_word();
        let edit: AccessEdit<'_> = change_access(
            statement,
            AccessContext {
                access: &dictionary.access,
                own: &self.session.identity.account,
                rights,
                session: &session,
                database: self.session.database.as_deref(),
                find_table: &find_table,
                mandatory_roles: &mandatory,
                partial_revokes: self.engine.number("partial_revokes") != 0,
                default_method: &default_method,
                rules,
                strength,
                now_us: self.turn.wall_clock_us,
                random: &mut next_random,
            },
        )?;
        let change = SchemaChange::ChangeAccess { change: edit.to_change() };
        let level = |is_warning| if is_warning { WarningLevel::Warning } else { WarningLevel::Note };
        let rows = (!edit.generated.is_empty()).then(|| generated_passwords(&edit.generated));
        let outcome = AccessOutcome { rows, recounted: edit.recounted, unlocked: edit.unlocked };
        let notes = edit.notes.into_iter().map(|(is_warning, errno, text)| (level(is_warning), errno, text)).collect();
        Ok((change, notes, outcome))
    }

    /// A statement that starts again is not counted again.
    pub(super) fn begin_count(&mut self, input: &StatementInput<'_>) {
        self.session.is_counted &= input.is_restart;
    }

    /// Checks the rights that a plan needs, and counts the statement.
    #[cold]
    pub(super) fn check_plan(&mut self, plan: &Plan, input: &StatementInput<'_>) -> Result<()> {
        self.begin_count(input);
        let rights = self.engine.rights_of(self.session);
        if self.session.identity.is_expired {
            return Err(must_change_password());
        }
        self.count_statement(plan.writes())?;
        match plan.rights() {
            Some(needs) => {
                let of_account = |account: &AccountName| self.engine.rights_of_account(account);
                let who = self.session.who();
                let session = RightsOfSession { rights: &rights, who: &who, of_account: &of_account };
                needs.check(session, self.session.rights_number)
            }
            None => Ok(()),
        }
    }

    /// Checks the rights for a statement without a plan, and counts the statement.
    pub(super) fn check_unplanned(&mut self, statement: &Statement) -> Result<()> {
        let rights = self.engine.rights_of(self.session);
        let changes_password = match statement {
            Statement::Account(account) => changes_password(account, &self.session.identity.account),
            Statement::Set(_) => true,
            _ => false,
        };
        if self.session.identity.is_expired && !changes_password {
            return Err(must_change_password());
        }
        self.count_statement(is_definition(statement) || changes_accounts(statement))?;
        self.engine.checker(self.session, &rights, |checker| checker.check(statement))
    }

    /// Checks new and persisted values of the variables on which rights depend. Errors: 3896 for
    /// `partial_revokes` while some exist; 1227, 1231 and 3880 for `mandatory_roles`.
    pub(super) fn check_access_settings(
        &mut self,
        globals: &GlobalVariables,
        persisted: &[(Box<str>, Option<Value>)],
    ) -> Result<()> {
        let before = &self.engine.globals;
        let values = |name: &str| -> Vec<Value> {
            let new = Some(globals.value_named(name)).filter(|value| *value != before.value_named(name));
            let persisted = persisted.iter().filter(|(persisted, _)| **persisted == *name);
            persisted.filter_map(|(_, value)| value.clone()).chain(new).collect()
        };
        let (partial_revokes, mandatory_roles) = (values("partial_revokes"), values("mandatory_roles"));
        let access = Arc::clone(&self.engine.gateway.catalog().dictionary.access);
        if partial_revokes.iter().any(|value| matches!(value, Value::Int(0) | Value::UInt(0)))
            && access.accounts().any(|(_, account)| !account.restrictions.is_empty())
        {
            let message = "At least one partial revoke exists on a database. The system variable \
                           '@@partial_revokes' must be set to ON.";
            return Err(Error::new(ErrorCode::PartialRevokesExist, message));
        }
        if mandatory_roles.is_empty() {
            return Ok(());
        }
        if !self.engine.rights_of(self.session).has_dynamic(Privilege::RoleAdmin) {
            return Err(denied_server("SUPER or ROLE_ADMIN"));
        }
        for value in mandatory_roles {
            let Value::Bytes(text) = value else { continue };
            let text = String::from_utf8_lossy(&text);
            let Some(roles) = parse_role_list(&text) else { return Err(wrong_role_list(&text)) };
            if let Some(role) = role_with_system_user(&roles, |name| access.account(name).map(|account| &**account)) {
                let message = format!(
                    "Cannot set mandatory_roles: AuthId {}@{} has 'SYSTEM_USER' privilege.",
                    role.user, role.host
                );
                return Err(Error::new(ErrorCode::SystemUserInMandatoryRoles, message));
            }
        }
        Ok(())
    }

    /// Whether the session may only change its password.
    pub(super) fn must_change_password(&mut self) -> bool {
        self.session.identity.is_expired && {
            // Somebody else may have set a new one.
            self.engine.rights_of(self.session);
            self.session.identity.is_expired
        }
    }

    /// Counts a statement of an account with limits, once, however often it starts again. The preparation of
    /// a statement does not count, as in MySQL; PREPARE does, because it is a statement. Error: 1226.
    fn count_statement(&mut self, changes: bool) -> Result<()> {
        if self.session.rights_number != 0 || std::mem::replace(&mut self.session.is_counted, true) {
            return Ok(());
        }
        let name = &self.session.identity.account;
        let access = &self.engine.gateway.catalog().dictionary.access;
        match access.account(name).filter(|account| account.limits.counts_statements()) {
            Some(account) => {
                let usage = &self.engine.settings.usage;
                usage.count_statement(name, &account.limits, changes, self.turn.wall_clock_us)
            }
            None => Ok(()),
        }
    }

    /// The error of a statement that could not be planned: an expired password and the limits of the account
    /// come first. The statement counts, so that a limit holds for wrong statements, too.
    pub(super) fn instead_of(&mut self, error: Box<Error>, statement: &Statement) -> Box<Error> {
        self.engine.rights_of(self.session);
        if self.session.identity.is_expired {
            return must_change_password();
        }
        let changes = is_definition(statement) || changes_accounts(statement) || changes_rows(statement);
        self.count_statement(changes).err().unwrap_or(error)
    }

    /// SET ROLE. Error: 3530 for a role that is not granted.
    fn set_role(&mut self, choice: &RoleChoice) -> Result<()> {
        let mandatory = self.engine.mandatory_roles();
        let access = Arc::clone(&self.engine.gateway.catalog().dictionary.access);
        let account = self.session.identity.account.clone();
        let granted = granted_roles(&account, &access, &mandatory);
        let name_of = |reference: &AccountReference| match reference {
            AccountReference::Current => account.clone(),
            AccountReference::Named { user, host } => AccountName::new(user, host.as_deref().unwrap_or("%")),
        };
        let roles: BTreeSet<AccountName> = match choice {
            RoleChoice::None => BTreeSet::new(),
            RoleChoice::All => granted.into_iter().cloned().collect(),
            RoleChoice::AllExcept(except) => {
                let except: Vec<AccountName> = except.iter().map(name_of).collect();
                granted.into_iter().filter(|role| !except.contains(role)).cloned().collect()
            }
            RoleChoice::Default => Identity::of_login(&account, &access, (&mandatory, false)).roles,
            RoleChoice::Named(roles) => {
                let roles: BTreeSet<AccountName> = roles.iter().map(name_of).collect();
                if let Some(role) = roles.iter().find(|role| !granted.contains(role)) {
                    return Err(role_not_granted(role, &account));
                }
                roles
            }
        };
        self.session.identity.roles = roles;
        self.session.forget_rights();
        Ok(())
    }
}
