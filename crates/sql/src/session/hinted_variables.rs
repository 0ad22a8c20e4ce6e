//! SET_VAR: the variables that a hint sets for its statement.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;

use super::facts::StatementFacts;
use crate::execute::{HintedVariables, InsertId, StatementContext};
use crate::mysql_catalog::variable::{SessionVariables, SetEffects, SetSituation, set};
use crate::parse::expression::{Expression, Literal, StringLiteral};
use crate::parse::hint::{HintKind, HintValue};
use crate::parse::statement::{SetItem, Statement};
use crate::plan::{STATEMENT_VARIABLES, outermost_hints};

impl StatementContext<'_, '_> {
    /// Sets the variables that the hints of a statement name, until the statement ends. A wrong value is a
    /// warning.
    #[cold]
    pub(super) fn set_hinted(&mut self, statement: &Statement) {
        self.session.end_hinted();
        let mut hints = Vec::new();
        match statement {
            Statement::Select(select) => outermost_hints(select, &mut hints),
            other => hints.extend(other.hints_of_change()),
        }
        let mut hinted: Option<Box<HintedVariables>> = None;
        let mut names: Vec<&'static str> = Vec::new();
        for hint in hints.iter().flat_map(|hints| &hints.list) {
            let HintKind::SetVariable { name, value } = &hint.kind else { continue };
            let known = STATEMENT_VARIABLES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
            let Some(name) = known else { continue };
            let hinted = hinted.get_or_insert_with(|| {
                let before = self.session.variables.clone();
                Box::new(HintedVariables { before, insert_id: None, warnings: Vec::new() })
            });
            if names.contains(&name) {
                let text = format!("Hint SET_VAR({name}={value}) is ignored as conflicting/duplicated");
                hinted.warnings.push((ErrorCode::ConflictingHint.errno(), text.into()));
                continue;
            }
            names.push(name);
            match self.with_hinted(name, value) {
                Ok((variables, effects)) => {
                    self.session.variables = variables;
                    hinted.warnings.extend(effects.notes);
                    if let Some(first) = effects.insert_id {
                        hinted.insert_id = Some(self.session.insert_id);
                        self.session.insert_id = InsertId { first, next: 0 };
                    }
                }
                Err(error) => hinted.warnings.push((error.code.errno(), error.message)),
            }
        }
        self.session.hinted = hinted;
    }

    /// The variables of the session with another value of one, and the other effects of its assignment.
    fn with_hinted(&self, name: &str, value: &HintValue) -> Result<(SessionVariables, SetEffects)> {
        let literal = match value {
            HintValue::Number(number) => Literal::Integer((*number).into()),
            HintValue::Text(text) => {
                Literal::String(StringLiteral { bytes: text.clone().into_bytes(), ..StringLiteral::default() })
            }
        };
        let value = Some(Expression::Literal(literal));
        let items = [SetItem::SystemVariable { scope: None, name: name.to_owned(), value }];
        let (mut variables, mut globals) = (self.session.variables.clone(), self.engine.globals.clone());
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let database_collation = facts.session_context().database_collation;
        let situation = SetSituation { in_transaction: self.session.is_open, database_collation };
        let effects = set(&items, &mut variables, &mut globals, situation, &mut |expression, _, _| {
            let value = match expression {
                Expression::Literal(Literal::Integer(number)) => match i64::try_from(*number) {
                    Ok(number) => Value::Int(number),
                    Err(_) => Value::UInt(*number as u64),
                },
                Expression::Literal(Literal::String(text)) => Value::Bytes(text.bytes.clone()),
                _ => return Err(Error::not_supported("this value in SET_VAR")),
            };
            Ok(UserValue::new(value, CollationId::DEFAULT))
        })?;
        Ok((variables, effects))
    }
}
