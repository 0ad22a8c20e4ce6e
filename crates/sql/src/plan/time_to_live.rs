//! Tables whose rows expire: the conditions that hide expired rows, and the delete that makes room for new
//! ones.

use std::sync::Arc;

use junctor_expression::{Expression, Kind, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, Result};
use junctor_model::schema::{TableDefinition, TableLayout};
use junctor_model::time_to_live::TimeToLive;
use junctor_model::value::Value;
use junctor_signals::program::{Access, WriteAction, WriteProgram};

use super::change::unique_entries;
use super::conflict::{KeyLock, key_locks, lock_program};
use crate::bind::Environment;
use crate::parse::expression as ast;

/// The function that tests whether a row has expired.
pub(super) const ROW_EXPIRED: &str = "ROW EXPIRED";

/// The call whose value is the time at which a statement regards rows as expired.
pub(crate) fn statement_time() -> ast::Expression {
    let digits = ast::Expression::Literal(ast::Literal::Integer(6));
    ast::Expression::call("UTC_TIMESTAMP", vec![digits])
}

/// A condition with that of living rows.
pub(super) struct Living {
    pub filter: Option<Expression>,
    /// Whether the condition is valid for one execution only.
    pub is_volatile: bool,
}

/// Adds to the condition on the rows of a table that they live, or for the purge that they have expired.
/// Errors: those of the clock.
pub(super) fn living(
    filter: Option<Expression>,
    environment: &Environment<'_>,
    layout: &TableLayout,
) -> Result<Living> {
    let Some(time_to_live) = layout.time_to_live else { return Ok(Living { filter, is_volatile: false }) };
    let clock = environment.parameters.iter().position(|kind| kind.is_statement_time);
    let (now, is_volatile) = match clock.and_then(|place| Some((place, environment.parameters[place].exact?))) {
        Some((place, result)) => (Expression::parameter_of_type(place as u16, result), false),
        None => {
            let now = (environment.session_constant)(&statement_time())?;
            let now = now.ok_or_else(|| Error::not_supported("a table with a time to live here"))?;
            (Expression::constant_of_type(now.value, now.result), true)
        }
    };
    let lives = test(layout, time_to_live, now, !environment.purges)?;
    let filter = match filter {
        Some(filter) => {
            let mut conjuncts = filter.conjuncts().to_vec();
            conjuncts.push(lives);
            Expression::and(conjuncts)
        }
        None => lives,
    };
    Ok(Living { filter: Some(filter), is_volatile })
}

/// The condition that rows live at the time that is this parameter.
pub(crate) fn living_at_parameter(layout: &TableLayout, ordinal: u16) -> Result<Option<Expression>> {
    let now = || Expression::parameter_of_type(ordinal, time_type());
    layout.time_to_live.map(|time_to_live| test(layout, time_to_live, now(), true)).transpose()
}

fn time_type() -> ResultType {
    ResultType::temporal(Kind::DateTime, 6)
}

fn test(layout: &TableLayout, time_to_live: TimeToLive, now: Expression, lives: bool) -> Result<Expression> {
    let definition = &layout.definition;
    let column = &definition.columns[usize::from(time_to_live.column.0)];
    let column = Expression::column(time_to_live.column, column, &full_name(definition, &column.name));
    let seconds = Expression::constant(Value::Int(time_to_live.seconds.into()), CollationId::BINARY);
    Expression::call(if lives { "ROW LIVES" } else { ROW_EXPIRED }, vec![column, now, seconds])
}

fn full_name(definition: &TableDefinition, column: &str) -> String {
    format!("`{}`.`{}`.`{column}`", definition.database, definition.name)
}

/// How an INSERT makes room for a row whose key an expired row has.
#[derive(Debug)]
pub struct ExpiredRows {
    /// The keys of a row, in the order in which they are checked.
    pub keys: Vec<KeyLock>,
    /// The delete by primary key of rows that have expired at the time that is the only parameter.
    pub delete: Arc<WriteProgram>,
    /// The locking read of a row by primary key.
    pub row_lock: Arc<WriteProgram>,
}

/// How an INSERT treats expired rows; `None` if the rows of the table do not expire. Foreign keys need
/// nothing, because such tables have none.
pub(super) fn expired_rows(environment: &Environment<'_>, layout: &Arc<TableLayout>) -> Result<Option<ExpiredRows>> {
    let Some(time_to_live) = layout.time_to_live else { return Ok(None) };
    let now = Expression::parameter_of_type(0, time_type());
    let delete = WriteProgram {
        filter: Some(test(layout, time_to_live, now, false)?),
        reads_parameters: true,
        unique_entries: unique_entries(environment.dictionary, &layout.definition, None)?,
        ..WriteProgram::new(layout, WriteAction::Delete { ignore: false }, Access::PrimaryKeys)
    };
    let keys = key_locks(environment.dictionary, layout)?;
    Ok(Some(ExpiredRows { keys, delete: Arc::new(delete), row_lock: lock_program(layout) }))
}
