//! Implicit parameters of statements: expressions whose value only the session knows, such as `NOW()` or
//! `@x`. Finds them in a parsed statement, and evaluates them at each execution.

use junctor_expression::{Parameters, ParametersBuilder};
use junctor_model::error::{Error, Result};
use junctor_model::value::Value;

use super::clock_columns::{add_clock_assignments, replace_nulls};
use super::facts::StatementFacts;
use super::lock_calls::is_lock_call;
use crate::bind::{ParameterKind, PatternPrefix};
use crate::execute::{Engine, StatementContext};
use crate::mysql_catalog::variable::{counts_diagnostics, evaluate_session_expression, evaluate_typed};
use crate::parse::limit::PARAMETERS_MAX;
use crate::parse::query::FromItem;
use crate::parse::session_value::{Lifting, SessionValue, lift_session_values};
use crate::parse::statement::{InsertSource, ObjectName};
use crate::parse::{ParameterNumber, Statement};
use crate::plan::statement_time;

impl StatementContext<'_, '_> {
    /// Replaces the expressions whose value only the session knows by parameters, numbered from `first` on.
    /// An expression that is an error stays, so that binding reports the error.
    pub(super) fn lift_session_values(
        &self,
        statement: &mut Statement,
        first: ParameterNumber,
        database: Option<&str>,
    ) -> Vec<SessionValue> {
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let known = (dictionary, self.session.temporary_owner());
        add_clock_assignments(statement, known, database);
        if self.session.variables.nulls_are_now() {
            replace_nulls(statement, known, database);
        }
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let session_context = facts.session_context();
        let mut lifted = lift_session_values(statement, first, &|expression| match evaluate_session_expression(
            expression,
            &session_context,
        ) {
            // Lock calls are left unchanged with their arguments. Planning collects them, and the main block
            // evaluates them.
            _ if is_lock_call(expression) => Lifting::Nothing,
            Ok(Some(_)) => Lifting::Whole,
            Ok(None) => Lifting::Operands,
            Err(_) => Lifting::Nothing,
        });
        for value in &mut lifted {
            value.is_of_diagnostics = counts_diagnostics(&value.expression);
        }
        let owner = self.session.temporary_owner();
        with_statement_time(statement, (first, lifted), &|name| {
            let database = name.database.as_deref().or(database);
            let found = database.and_then(|database| dictionary.table_seen_by(owner, database, &name.name));
            found.is_some_and(|layout| layout.time_to_live.is_some())
        })
    }

    /// Evaluates implicit parameters into the workspace, with their types.
    ///
    /// # Errors
    /// The errors of the expressions.
    pub(super) fn evaluate_session_values(&mut self, session_values: &[SessionValue]) -> Result<()> {
        let mut values = std::mem::take(&mut self.engine.work.session_values);
        let mut kinds = std::mem::take(&mut self.engine.work.session_kinds);
        values.clear();
        kinds.clear();
        if !session_values.is_empty() {
            self.session.seed = self.turn.random.word();
        }
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let outcome = facts.evaluate(session_values, &mut values, &mut kinds);
        self.engine.work.session_values = values;
        self.engine.work.session_kinds = kinds;
        outcome
    }

    /// The parameters that the client has sent, without the implicit ones, which a retry evaluates again;
    /// `None` if the prepared statement has no implicit parameters.
    pub(super) fn client_parameters(&self, statement: u32, parameters: &[u8]) -> Option<Vec<u8>> {
        let prepared = self.session.statements.get(statement)?;
        if prepared.session_values.is_empty() {
            return None;
        }
        let values = Parameters::from_bytes(parameters);
        let mut builder = ParametersBuilder::new();
        (0..prepared.parameter_count).for_each(|ordinal| builder.push(values.get(ordinal)));
        let mut own = Vec::new();
        // All parameters together are within the limits, so these are too.
        builder.append_to(&mut own).is_ok().then_some(own)
    }
}

/// Adds the time of the statement to its implicit parameters, which are numbered from `first` on, if it names
/// a table whose rows expire. Other statements that read such a table, as those of a view do, are planned for
/// one execution.
fn with_statement_time(
    statement: &Statement,
    (first, mut lifted): (ParameterNumber, Vec<SessionValue>),
    expires: &dyn Fn(&ObjectName) -> bool,
) -> Vec<SessionValue> {
    let has_room = (first.0 as usize).saturating_add(lifted.len()) < PARAMETERS_MAX as usize;
    if has_room && names_table(statement, expires) {
        let value = SessionValue { is_statement_time: true, ..SessionValue::of(statement_time()) };
        match lifted.iter_mut().find(|known| known.expression == value.expression) {
            Some(known) => known.is_statement_time = true,
            None => lifted.push(value),
        }
    }
    lifted
}

/// Whether a statement reads or changes such a table, subqueries aside.
fn names_table(statement: &Statement, is_wanted: &dyn Fn(&ObjectName) -> bool) -> bool {
    match statement {
        Statement::Select(select) => select.from.as_ref().is_some_and(|from| has_table(from, is_wanted)),
        Statement::Update(update) => is_wanted(&update.table.name),
        Statement::Delete(delete) => is_wanted(&delete.table.name),
        Statement::Modify(modify) => has_table(&modify.from, is_wanted),
        Statement::Insert(insert) => match &insert.source {
            InsertSource::Select(select) => select.from.as_ref().is_some_and(|from| has_table(from, is_wanted)),
            _ => false,
        },
        _ => false,
    }
}

fn has_table(from: &FromItem, is_wanted: &dyn Fn(&ObjectName) -> bool) -> bool {
    match from {
        FromItem::Table(table) => is_wanted(&table.name),
        FromItem::Join(join) => has_table(&join.left, is_wanted) || has_table(&join.right, is_wanted),
        FromItem::Derived(_) => false,
    }
}

impl StatementFacts<'_, '_> {
    fn evaluate(
        &self,
        session_values: &[SessionValue],
        values: &mut Vec<Value>,
        kinds: &mut Vec<ParameterKind>,
    ) -> Result<()> {
        if session_values.is_empty() {
            return Ok(());
        }
        let session_context = self.session_context();
        for SessionValue { expression, is_pattern, is_statement_time, is_of_diagnostics } in session_values {
            let found = evaluate_typed(expression, &session_context)?;
            let (value, result) = found.ok_or_else(|| Error::not_supported("this variable"))?;
            let mut kind = ParameterKind::exactly(result);
            if let (Value::Bytes(pattern), true) = (&value, *is_pattern) {
                kind.prefix = PatternPrefix::of(pattern);
            }
            kind.is_statement_time = *is_statement_time && matches!(value, Value::Temporal(_));
            kind.is_of_diagnostics = *is_of_diagnostics;
            kinds.push(kind);
            values.push(value);
        }
        Ok(())
    }
}

impl Engine {
    /// Appends the implicit parameters to the workspace's parameters, which are `count` values without a
    /// list.
    ///
    /// # Errors
    /// 1390 for too many parameters, 1153 if the values are too long.
    pub(super) fn append_session_values(&mut self, count: u16) -> Result<()> {
        let work = &mut self.work;
        if work.session_values.is_empty() {
            return Ok(());
        }
        let given = Parameters::from_bytes(&work.parameters);
        work.builder.clear();
        (0..count).for_each(|ordinal| work.builder.push(given.get(ordinal)));
        work.session_values.iter().for_each(|value| work.builder.push(value.as_ref()));
        work.parameters.clear();
        work.builder.append_to(&mut work.parameters)
    }
}
