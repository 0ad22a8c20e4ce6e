//! PREPARE, EXECUTE and DEALLOCATE PREPARE: prepared statements that text statements name.

use junctor_expression::ParametersBuilder;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::user_value::UserValue;
use junctor_model::value::{Value, ValueRef};

use super::PreparedExecution;
use super::command::answer;
use crate::execute::{ChangeCounts, StatementContext, StatementInput, fail, finish_ok};
use crate::mysql_catalog::variable::text_of;
use crate::parse::expression::Literal;
use crate::parse::{Expression, Statement};
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Executes PREPARE, EXECUTE or DEALLOCATE PREPARE; `None` for every other statement.
    pub(super) fn execute_named(&mut self, statement: &Statement, input: StatementInput<'_>) -> Option<Progress> {
        if let Statement::Prepare { .. } | Statement::Deallocate(_) = statement {
            self.begin_count(&input);
            if let Err(error) = self.check_unplanned(statement) {
                self.session.clear_diagnostics();
                return Some(fail(self, &error));
            }
        }
        match statement {
            Statement::Prepare { name, source } => {
                self.session.clear_diagnostics();
                Some(match self.prepare_named(name, source) {
                    Ok(()) => {
                        self.engine.work.info.clear();
                        self.engine.work.info.push_str("Statement prepared");
                        finish_ok(self, ChangeCounts { has_info: true, ..ChangeCounts::default() })
                    }
                    Err(error) => fail(self, &error),
                })
            }
            Statement::Deallocate(name) => {
                self.session.clear_diagnostics();
                let outcome = match self.forget_named(name) {
                    true => Ok(()),
                    false => Err(unknown_statement(name, "DEALLOCATE PREPARE")),
                };
                Some(answer(self, outcome))
            }
            Statement::Execute { name, using } => Some(match self.execution_of(name, using) {
                Ok((statement, mut parameters)) => {
                    let execution = PreparedExecution { statement, parameters: &mut parameters, wants_cursor: false };
                    let progress = self.execute_prepared(execution, input);
                    self.engine.work.parameter_collations.clear();
                    progress
                }
                Err(error) => {
                    self.engine.work.parameter_collations.clear();
                    self.session.clear_diagnostics();
                    fail(self, &error)
                }
            }),
            _ => None,
        }
    }

    /// An older statement of the name is forgotten even if the new one is wrong, as in MySQL.
    fn prepare_named(&mut self, name: &str, source: &Expression) -> Result<()> {
        self.forget_named(name);
        let text = match source {
            Expression::Literal(Literal::String(text)) => Value::Bytes(text.bytes.clone()),
            Expression::UserVariable(variable) => self.session.variables.user_variable(variable),
            _ => Value::Null,
        };
        // The text of an unset variable is NULL, as in MySQL, which is a syntax error.
        let text = if text.is_null() { "NULL".to_owned() } else { text_of(&text) };
        let (id, _) = self.try_prepare(text.as_bytes())?;
        self.session.named_statements.insert(name.to_lowercase().into(), id);
        Ok(())
    }

    fn forget_named(&mut self, name: &str) -> bool {
        match self.session.named_statements.remove(name.to_lowercase().as_str()) {
            Some(id) => {
                self.engine.close_statement(self.session, id);
                true
            }
            None => false,
        }
    }

    /// The number of the statement, and the values of the variables as its parameters. Their collations are
    /// in the workspace.
    fn execution_of(&mut self, name: &str, using: &[String]) -> Result<(u32, Vec<u8>)> {
        let known = self.session.named_statements.get(name.to_lowercase().as_str()).copied();
        let count = known.and_then(|id| self.engine.parameter_count(self.session, id));
        let (Some(id), Some(count)) = (known, count) else { return Err(unknown_statement(name, "EXECUTE")) };
        if using.len() != usize::from(count) {
            return Err(Error::new(ErrorCode::WrongArguments, "Incorrect arguments to EXECUTE"));
        }
        let variables = &self.session.variables;
        let connection = variables.collation_connection;
        let collations = &mut self.engine.work.parameter_collations;
        collations.clear();
        let mut builder = ParametersBuilder::new();
        for (variable, ordinal) in using.iter().zip(0..) {
            let value = variables.user_value(variable);
            builder.push(value.map_or(ValueRef::Null, |found| found.value.as_ref()));
            let collation = value.map_or(connection, |found| parameter_collation(found, connection));
            if collation != connection {
                collations.push((ordinal, collation));
            }
        }
        let mut parameters = Vec::new();
        builder.append_to(&mut parameters)?;
        if !self.engine.work.parameter_collations.is_empty() {
            // A plan of the session's own statement is executed without a look at collations.
            self.session.statements.forget_plan(id);
        }
        Ok((id, parameters))
    }
}

/// The collation of a variable's text as a parameter. A text in another character set than the connection's
/// is converted to that one, as in MySQL.
fn parameter_collation(value: &UserValue, connection: CollationId) -> CollationId {
    let is_text = matches!(value.value, Value::Bytes(_));
    let keeps_bytes = value.collation == CollationId::BINARY || connection == CollationId::BINARY;
    let keeps_own = keeps_bytes || value.collation.character_set() == connection.character_set();
    if is_text && keeps_own { value.collation } else { connection }
}

/// Error 1243.
fn unknown_statement(name: &str, given_to: &str) -> Box<Error> {
    let message = format!("Unknown prepared statement handler ({name}) given to {given_to}");
    Error::new(ErrorCode::UnknownPreparedStatement, message)
}
