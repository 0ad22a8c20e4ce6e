//! PREPARE, EXECUTE and DEALLOCATE PREPARE: prepared statements that text statements name.

use junctor_expression::ParametersBuilder;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;

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
                Ok((statement, mut parameters)) => self.execute_prepared(
                    PreparedExecution { statement, parameters: &mut parameters, wants_cursor: false },
                    input,
                ),
                Err(error) => {
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

    /// The number of the statement, and the values of the variables as its parameters.
    fn execution_of(&self, name: &str, using: &[String]) -> Result<(u32, Vec<u8>)> {
        let known = self.session.named_statements.get(name.to_lowercase().as_str()).copied();
        let count = known.and_then(|id| self.engine.parameter_count(self.session, id));
        let (Some(id), Some(count)) = (known, count) else { return Err(unknown_statement(name, "EXECUTE")) };
        if using.len() != usize::from(count) {
            return Err(Error::new(ErrorCode::WrongArguments, "Incorrect arguments to EXECUTE"));
        }
        let mut builder = ParametersBuilder::new();
        for variable in using {
            builder.push(self.session.variables.user_variable(variable).as_ref());
        }
        let mut parameters = Vec::new();
        builder.append_to(&mut parameters)?;
        Ok((id, parameters))
    }
}

/// Error 1243.
fn unknown_statement(name: &str, given_to: &str) -> Box<Error> {
    let message = format!("Unknown prepared statement handler ({name}) given to {given_to}");
    Error::new(ErrorCode::UnknownPreparedStatement, message)
}
