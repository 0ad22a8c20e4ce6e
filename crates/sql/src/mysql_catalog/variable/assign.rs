//! SET: checks and applies the assignments in order. If one fails, none takes effect.

use std::sync::Arc;

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::stored_settings::PersistedSettings;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;
use junctor_signals::end_transaction::CommitDurability;

use super::Note;
use super::character_set::check_character_set;
use super::check::{AssignedValue, check, text_of, unsigned_of};
use super::declare::{Kind, Scope, Slot, Variable, VariableId, find};
use super::global::GlobalVariables;
use super::session::{IsolationChoice, SessionVariables};
use super::sql_mode::SqlMode;
use crate::parse::expression::VariableScope;
use crate::parse::statement::{AccessMode, IsolationLevel, SetItem};
use crate::parse::{Deprecation, Expression};

/// A new global value. Each sql block has a copy of the global values and must apply the change.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalChange {
    /// The changed variable.
    pub id: VariableId,
    /// The checked value.
    pub value: Value,
}

/// Effects of SET other than changed variables. The caller must carry them out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetEffects {
    /// Whether autocommit went from off to on, which commits the open transaction.
    pub commits: bool,
    /// New result of LAST_INSERT_ID(), if assigned.
    pub last_insert_id: Option<u64>,
    /// The next generated AUTO_INCREMENT value, if assigned; 0 for that of the table.
    pub insert_id: Option<u64>,
    /// New global values, in the order of their assignment.
    pub global: Vec<GlobalChange>,
    /// Changes of persisted values, in the order of their assignment.
    pub persisted: Vec<(Box<str>, Option<Value>)>,
    /// Warnings of the statement.
    pub notes: Vec<Note>,
}

/// Evaluates an expression of SET. The variables have the values before the statement.
pub type Evaluate<'a> = dyn FnMut(&Expression, &SessionVariables, &GlobalVariables) -> Result<UserValue> + 'a;

impl GlobalVariables {
    /// Applies a change that another session made.
    pub fn apply(&mut self, change: &GlobalChange) {
        self.put(change.id, change.value.clone());
    }

    /// Sets the persisted values at the start of the node. A variable or value that this release does not
    /// know stays persisted and has no other effect.
    pub fn restore(&mut self, persisted: Arc<PersistedSettings>) {
        for (name, value) in &persisted.values {
            let Some(id) = find(name) else { continue };
            let assigned = AssignedValue { name, value, mode: SqlMode::DEFAULT };
            let is_global = check_scope(name, id.variable().scope, true).is_ok();
            let checked = check(id.variable(), assigned, &self.value(id), &mut Vec::new());
            let Some(value) = checked.ok().filter(|_| is_global) else { continue };
            if let Some((other, value)) = counterpart(name, &value, true) {
                self.put(other, value);
            }
            self.put(id, value);
        }
        self.persisted = persisted;
    }
}

impl GlobalVariables {
    /// Gives a variable the value that the configuration names, checked as SET GLOBAL checks it. A number
    /// outside of its range is an error.
    ///
    /// # Errors
    /// 1193 for an unknown variable, 1228 and 1238 for one that SET GLOBAL cannot change, 1231 and 1232 for a
    /// wrong value.
    pub fn set_at_start(&mut self, name: &str, text: &str) -> Result<()> {
        let id = find(name).ok_or_else(|| unknown(name))?;
        let variable = id.variable();
        check_scope(name, variable.scope, true)?;
        let value = start_value(&variable.kind, text).ok_or_else(|| super::check::wrong_type(name))?;
        let assigned = AssignedValue { name, value: &value, mode: SqlMode::STRICT_FOR_ALL };
        let value = check(variable, assigned, &self.value(id), &mut Vec::new())?;
        if let Some((other, value)) = counterpart(variable.name, &value, true) {
            self.put(other, value);
        }
        self.put(id, value);
        Ok(())
    }
}

/// The value that a text of the configuration means for a variable of this kind; `None` if it is no number
/// where one is needed.
fn start_value(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Number { .. } => text.parse().map(Value::UInt).or_else(|_| text.parse().map(Value::Int)).ok(),
        Kind::Real(_) => text.parse().map(Value::Double).ok(),
        Kind::Flag(_) if matches!(text, "true" | "1") => Some(Value::Int(1)),
        Kind::Flag(_) if matches!(text, "false" | "0") => Some(Value::Int(0)),
        _ => Some(Value::Bytes(text.into())),
    }
}

/// What SET reads of the session besides its variables.
#[derive(Clone, Copy, Debug)]
pub struct SetSituation {
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// The collation of the session's database.
    pub database_collation: CollationId,
}

/// Executes the assignments of a SET statement.
///
/// # Errors
/// 1193 for unknown variables, 1228, 1229 and 1238 for wrong scopes, 1231 and 1232 for wrong values, 1568 for
/// SET TRANSACTION within a transaction, 1235 for unsupported forms, and the errors of `evaluate`. After an
/// error no variable has changed.
pub fn set(
    items: &[SetItem],
    session: &mut SessionVariables,
    globals: &mut GlobalVariables,
    situation: SetSituation,
    evaluate: &mut Evaluate<'_>,
) -> Result<SetEffects> {
    // A single assignment is atomic by itself. Several need a copy of the old values, so that all can be
    // rolled back.
    let undo = (items.len() > 1).then(|| (session.clone(), globals.clone()));
    let before = undo.as_ref();
    let mut assignment = Assignment { session, globals, before, situation, evaluate, effects: SetEffects::default() };
    let outcome = items.iter().try_for_each(|item| assignment.item(item));
    let effects = assignment.effects;
    match (outcome, undo) {
        (Ok(()), _) => Ok(effects),
        (Err(error), None) => Err(error),
        (Err(error), Some((old_session, old_globals))) => {
            *session = old_session;
            *globals = old_globals;
            Err(error)
        }
    }
}

struct Assignment<'a, 'e> {
    session: &'a mut SessionVariables,
    globals: &'a mut GlobalVariables,
    /// The variables before the statement, if it has several assignments.
    before: Option<&'a (SessionVariables, GlobalVariables)>,
    situation: SetSituation,
    evaluate: &'a mut Evaluate<'e>,
    effects: SetEffects,
}

impl Assignment<'_, '_> {
    fn item(&mut self, item: &SetItem) -> Result<()> {
        match item {
            SetItem::SystemVariable { scope, name, value } => self.system(*scope, name, value.as_ref()),
            SetItem::UserVariable { name, value } => {
                let value = self.value_of(value)?;
                self.session.put_user_variable(name, value)
            }
            SetItem::Names { character_set, collation } => self.names(character_set.as_deref(), collation.as_deref()),
            SetItem::CharacterSet(name) => self.character_set(name.as_deref()),
            SetItem::Transaction { scope, isolation, access } => self.transaction(*scope, *isolation, *access),
        }
    }

    fn value_of(&mut self, expression: &Expression) -> Result<UserValue> {
        match self.before {
            Some((session, globals)) => (self.evaluate)(expression, session, globals),
            None => (self.evaluate)(expression, self.session, self.globals),
        }
    }

    fn system(&mut self, scope: Option<VariableScope>, name: &str, value: Option<&Expression>) -> Result<()> {
        let id = find(name).ok_or_else(|| unknown(name))?;
        let variable = id.variable();
        let is_global = !matches!(scope, Some(VariableScope::Session) | None);
        if scope == Some(VariableScope::PersistOnly) && variable.scope == Scope::GlobalReadOnly {
            let text = format!("Variable '{name}' is a non persistent read only variable");
            return Err(Error::new(ErrorCode::ReadOnlyVariable, text));
        }
        check_scope(name, variable.scope, is_global)?;
        let old = if is_global { self.globals.value(id) } else { self.session.value(id) };
        let value = match value {
            None if is_global => super::check::default_value(variable),
            None if variable.has_global_value() => self.globals.value(id),
            None => super::check::default_value(variable),
            Some(expression) => {
                let value = self.value_of(expression)?.value;
                let assigned = AssignedValue { name, value: &value, mode: self.session.sql_mode };
                self.effects.notes.extend(deprecation(variable, &value));
                check(variable, assigned, &old, &mut self.effects.notes)?
            }
        };
        let counterpart = counterpart(variable.name, &value, is_global);
        if matches!(scope, Some(VariableScope::Persist | VariableScope::PersistOnly)) {
            self.effects.persisted.push((variable.name.into(), Some(value.clone())));
            // At the next start, an older value of the other variable would override this one.
            if let Some((other, _)) = &counterpart {
                self.effects.persisted.push((other.variable().name.into(), None));
            }
        }
        if scope == Some(VariableScope::PersistOnly) {
            return Ok(());
        }
        if let Some((other, value)) = counterpart {
            self.put(other, value, is_global);
        }
        // Compare with the old value before `put` overwrites it.
        match variable.slot {
            _ if is_global => {}
            Slot::InsertId => self.effects.insert_id = Some(unsigned_of(&value)),
            Slot::LastInsertId => self.effects.last_insert_id = Some(unsigned_of(&value)),
            Slot::Autocommit => self.effects.commits |= !self.session.autocommit && value == Value::Int(1),
            _ => {}
        }
        self.put(id, value, is_global);
        Ok(())
    }

    fn put(&mut self, id: VariableId, value: Value, is_global: bool) {
        if is_global {
            self.globals.put(id, value.clone());
            self.effects.global.push(GlobalChange { id, value });
        } else {
            self.session.put(id, value);
        }
    }

    fn names(&mut self, character_set: Option<&str>, collation: Option<&str>) -> Result<()> {
        let set = self.character_set_named(character_set)?;
        let collation = match collation {
            None => set.default_collation(),
            Some(name) => CollationId::named(name)?,
        };
        check_character_set(collation, set)?;
        self.session.character_set_client = set;
        self.session.character_set_results = Some(collation);
        self.session.collation_connection = collation;
        self.session.update_plan_key();
        Ok(())
    }

    fn character_set(&mut self, name: Option<&str>) -> Result<()> {
        let set = self.character_set_named(name)?;
        self.session.character_set_client = set;
        self.session.character_set_results = Some(set.default_collation());
        self.session.collation_connection = self.situation.database_collation;
        self.session.update_plan_key();
        Ok(())
    }

    fn character_set_named(&self, name: Option<&str>) -> Result<CharacterSet> {
        name.map_or(Ok(CharacterSet::Utf8mb4), CharacterSet::named)
    }

    fn transaction(
        &mut self,
        scope: Option<VariableScope>,
        isolation: Option<IsolationLevel>,
        access: Option<AccessMode>,
    ) -> Result<()> {
        let isolation = isolation.map(choice_of);
        let read_only = access.map(|access| access == AccessMode::ReadOnly);
        match scope {
            // Without a scope, only the next transaction changes. An open transaction keeps its
            // characteristics.
            None if self.situation.in_transaction => {
                let text = "Transaction characteristics can't be changed while a transaction is in progress";
                return Err(Error::new(ErrorCode::CannotChangeTransaction, text));
            }
            None => {
                self.session.next_isolation = isolation.or(self.session.next_isolation);
                self.session.next_read_only = read_only.or(self.session.next_read_only);
            }
            Some(VariableScope::Session) => {
                let characteristics = &mut self.session.characteristics;
                characteristics.isolation = isolation.unwrap_or(characteristics.isolation);
                characteristics.read_only = read_only.unwrap_or(characteristics.read_only);
            }
            Some(VariableScope::Global) => {
                let isolation = isolation.map(|choice| Value::Bytes(choice.name().as_bytes().to_vec()));
                let read_only = read_only.map(|read_only| Value::Int(i64::from(read_only)));
                for (name, value) in [("transaction_isolation", isolation), ("transaction_read_only", read_only)] {
                    if let (Some(id), Some(value)) = (find(name), value) {
                        self.put(id, value, true);
                    }
                }
            }
            Some(VariableScope::Persist | VariableScope::PersistOnly) => {
                return Err(Error::not_supported("SET PERSIST"));
            }
        }
        Ok(())
    }
}

/// Some variables change together: the server's character set and collation, and the durability of commits
/// with the variable that InnoDB has for it. Returns the other one of the two variables, and its new value.
fn counterpart(name: &str, value: &Value, is_global: bool) -> Option<(VariableId, Value)> {
    match name {
        "commit_durability" if is_global => {
            let flush = if text_of(value) == CommitDurability::Disk.name() { 1 } else { 2 };
            return Some((find("innodb_flush_log_at_trx_commit")?, Value::UInt(flush)));
        }
        "innodb_flush_log_at_trx_commit" => {
            let durability = if unsigned_of(value) == 1 { CommitDurability::Disk } else { CommitDurability::Memory };
            return Some((find("commit_durability")?, Value::Bytes(durability.name().into())));
        }
        _ => {}
    }
    let text = text_of(value);
    let (other, value) = match name {
        "character_set_server" => ("collation_server", CharacterSet::named(&text).ok()?.default_collation().name()),
        "collation_server" => ("character_set_server", CollationId::named(&text).ok()?.character_set().name()),
        _ => return None,
    };
    Some((find(other)?, Value::Bytes(value.into())))
}

fn choice_of(level: IsolationLevel) -> IsolationChoice {
    match level {
        IsolationLevel::ReadUncommitted => IsolationChoice::ReadUncommitted,
        IsolationLevel::ReadCommitted => IsolationChoice::ReadCommitted,
        IsolationLevel::RepeatableRead => IsolationChoice::RepeatableRead,
        IsolationLevel::Serializable => IsolationChoice::Serializable,
    }
}

fn check_scope(name: &str, scope: Scope, is_global: bool) -> Result<()> {
    let (code, text) = match (scope, is_global) {
        (Scope::GlobalReadOnly, _) | (Scope::SessionReadOnly, _) => {
            (ErrorCode::ReadOnlyVariable, format!("Variable '{name}' is a read only variable"))
        }
        (Scope::SessionFixed, false) => (
            ErrorCode::ReadOnlyVariable,
            format!("SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value"),
        ),
        (Scope::Session, true) => (
            ErrorCode::SessionOnlyVariable,
            format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
        ),
        (Scope::Global, false) => (
            ErrorCode::GlobalOnlyVariable,
            format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
        ),
        _ => return Ok(()),
    };
    Err(Error::new(code, text))
}

pub(super) fn unknown(name: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownSystemVariable, format!("Unknown system variable '{name}'"))
}

/// The warning about a deprecated variable, or about a deprecated value.
fn deprecation(variable: &Variable, value: &Value) -> Option<Note> {
    let text = || text_of(value);
    let deprecation = match variable.kind {
        _ if variable.name == "explicit_defaults_for_timestamp" => Some(Deprecation::ExplicitDefaults),
        Kind::CharacterSet(_) => Deprecation::of_character_set(&text()),
        Kind::Collation => Deprecation::of_collation(&text()),
        _ => None,
    };
    deprecation.map(|found| (found.code().errno(), found.text().into()))
}
