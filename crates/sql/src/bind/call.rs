//! Binds function calls: aggregates, session functions and functions of the expression crate.

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{Coercibility, CompareOperator, Expression, Kind, ResultType, function};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::locale::Locale;
use junctor_model::temporal::Zone;
use junctor_model::value::Value;
use junctor_signals::program::Aggregate;

use super::literal::{among_numbers, as_truth, compared};
use super::{Aggregation, Binder, RowSource, message};
use crate::parse::expression::{self as ast, FunctionCall};

impl Binder<'_> {
    pub(super) fn function(&mut self, expression: &ast::Expression) -> Result<Expression> {
        let ast::Expression::Function(call) = expression else { return self.bind(expression) };
        if let Some(database) = &call.database {
            let qualifier = if database.is_empty() { String::new() } else { format!("{database}.") };
            let text = format!("FUNCTION {qualifier}{} does not exist", call.name);
            return Err(Error::new(ErrorCode::ObjectDoesNotExist, text));
        }
        if let Some(over) = &call.over {
            return self.window_function(call, over);
        }
        if let Aggregation::Grouped { space, .. } = self.aggregation {
            if call.is_aggregate() || call.name.eq_ignore_ascii_case("ANY_VALUE") {
                return self.group_function(call, space);
            }
            if call.name.eq_ignore_ascii_case("GROUPING") {
                return self.grouping(call, space);
            }
        }
        if let Some(kind) = self.aggregate_kind(&call.name) {
            return self.aggregate(kind, call);
        }
        if call.is_aggregate() || call.name.eq_ignore_ascii_case("GROUPING") {
            return Err(message::invalid_use_of_group());
        }
        let known = function::find(&call.name);
        // A tree of operators carries out such calls for each row.
        let is_carried_out =
            known.is_some_and(|function| function.is_stateful()) && matches!(self.scope.source, RowSource::Block(_));
        if !is_carried_out && let Some(value) = self.session_constant(expression)? {
            return Ok(value);
        }
        if call.name == "INTERVAL UNIT" {
            let message = "You have an error in your SQL syntax; INTERVAL is an operand of + and - only";
            return Err(Error::new(ErrorCode::SyntaxError, message));
        }
        if call.name == "AT TIME ZONE" {
            return self.at_time_zone(&call.arguments);
        }
        if call.name.eq_ignore_ascii_case("MOD")
            && let [left, right] = call.arguments.as_slice()
        {
            return self.binary(ast::BinaryOperator::Modulo, left, right);
        }
        if let Some(function) = known {
            function.check_count(call.arguments.len())?;
        }
        // The values of the session's state that partitions get are those before the statement.
        if known.is_some_and(|function| function.is_stateful()) && matches!(self.scope.source, RowSource::Table(_)) {
            return Err(Error::not_supported("a user variable that the statement assigns, here"));
        }
        let mut arguments = self.bind_all(&call.arguments)?;
        if let [column] = &*arguments
            && call.name.eq_ignore_ascii_case("UNIX_TIMESTAMP")
            && let Some(instant) = self.instant_of(column)?
        {
            let utc = Expression::constant(Value::Bytes(b"UTC".into()), CollationId::DEFAULT);
            return self.bind_call(&call.name, vec![instant, utc]);
        }
        if let Some(chosen) = self.nullif_of_literal(call, &mut arguments)? {
            return Ok(chosen);
        }
        // FIELD compares numbers as soon as it has one.
        let is_field = call.name.eq_ignore_ascii_case("FIELD")
            && arguments.iter().any(|argument| !argument.result.is_compared_as_text());
        let numbers = if is_field { u32::MAX } else { known.map_or(0, |function| function.numbers) };
        if numbers != 0 {
            let is_number = |position: usize| numbers >> position.min(31) & 1 == 1;
            let written = call.arguments.iter().enumerate();
            arguments = written
                .zip(arguments)
                .map(
                    |((position, written), bound)| {
                        if is_number(position) { among_numbers(written, bound) } else { bound }
                    },
                )
                .collect();
        }
        if call.name == "MEMBER OF" || call.name.to_ascii_uppercase().starts_with("JSON_") {
            let written = call.arguments.iter();
            arguments = written.zip(arguments).map(|(written, bound)| as_truth(written, bound)).collect();
        }
        match call.settings.is_empty() {
            false => arguments.extend(self.bind_all(&call.settings)?),
            true => {
                let mut with_settings = FunctionCall { name: call.name.clone(), ..FunctionCall::default() };
                with_settings.add_settings();
                arguments.extend(self.bind_all(&with_settings.settings)?);
            }
        }
        self.bind_call(&call.name, arguments)
    }

    /// `value AT TIME ZONE 'zone'`. Errors: 3998 for a value that is neither a TIMESTAMP nor a literal of
    /// one, 1298 for another zone than UTC. As in MySQL, an interval cannot have its name.
    fn at_time_zone(&mut self, arguments: &[ast::Expression]) -> Result<Expression> {
        use ast::{Literal, TemporalKind as Written};
        let [written, ast::Expression::Literal(Literal::String(zone)), ast::Expression::Literal(is_interval)] =
            arguments
        else {
            return Err(message::wrong_arguments("AT TIME ZONE"));
        };
        let is_literal = matches!(
            written,
            ast::Expression::Literal(Literal::Null | Literal::Temporal { kind: Written::Timestamp, .. })
        );
        let bound = self.bind(written)?;
        if bound.result.kind != Kind::Timestamp && !is_literal {
            return Err(Error::new(ErrorCode::InvalidCast, "Cannot cast value to TIMESTAMP WITH TIME ZONE."));
        }
        let is_utc = zone.bytes == b"UTC" && *is_interval == Literal::Boolean(false);
        if zone.bytes != b"+00:00" && !is_utc {
            return Err(message::unknown_time_zone(&String::from_utf8_lossy(&zone.bytes)));
        }
        match bound.as_constant() {
            Some(Value::Temporal(moment)) => {
                // The zone of the session is part of what plans depend on.
                let instant = self.environment.rules.zone().instant_of(&moment.parts(), moment.digits);
                let moment = instant.map(|(instant, _)| Value::Temporal(Zone::UTC.date_time_of(instant)));
                Ok(Expression::constant(moment.unwrap_or(Value::Null), self.environment.collation))
            }
            _ => match self.instant_of(&bound)? {
                Some(instant) => Ok(instant),
                None => self.bind_call("AT TIME ZONE", vec![bound]),
            },
        }
    }

    /// The instant in a TIMESTAMP column of a table that the statement joins, as a DATETIME in UTC; `None`
    /// for other values.
    fn instant_of(&self, value: &Expression) -> Result<Option<Expression>> {
        match self.scope.source {
            RowSource::Block(view) if value.result.kind == Kind::Timestamp => view.block.instant_of(value),
            _ => Ok(None),
        }
    }

    /// NULLIF compares a hexadecimal literal with a number as a number. A first operand that is one is the
    /// result as bytes, so that it is two operands.
    fn nullif_of_literal(&self, call: &FunctionCall, arguments: &mut [Expression]) -> Result<Option<Expression>> {
        let ([left, right], [bound_left, bound_right]) = (call.arguments.as_slice(), &mut *arguments) else {
            return Ok(None);
        };
        if !call.name.eq_ignore_ascii_case("NULLIF") {
            return Ok(None);
        }
        let (wanted, unwanted) = compared((left, bound_left.clone()), (right, bound_right.clone()));
        if wanted == *bound_left {
            *bound_right = unwanted;
            return Ok(None);
        }
        let is_equal = Expression::comparison(CompareOperator::Equal, wanted, unwanted)?;
        let chosen = Expression::choose(is_equal, Expression::null(), bound_left.clone())?;
        Ok(Some(self.in_connection_collation(chosen)))
    }

    /// A call of a function with bound arguments.
    pub(super) fn bind_call(&self, name: &str, arguments: Vec<Expression>) -> Result<Expression> {
        let mut made = self.in_connection_collation(Expression::call(name, arguments)?);
        let locale = self.environment.rules.locale();
        if locale != Locale::ENGLISH && made.result.kind == Kind::String {
            // The names of other locales may be longer than the English ones that functions expect.
            made.result.length = match name.to_ascii_uppercase().as_str() {
                "DAYNAME" | "MONTHNAME" => locale.characters_max(),
                "DATE_FORMAT" | "FROM_UNIXTIME" => made.result.length.saturating_mul(3),
                _ => made.result.length,
            };
        }
        Ok(made)
    }

    /// The expression; text that it makes of other values has the collation of the connection, like a
    /// literal.
    pub(super) fn in_connection_collation(&self, mut made: Expression) -> Expression {
        let result = &mut made.result;
        if result.kind == Kind::String && result.coercibility == Coercibility::Numeric {
            (result.collation, result.coercibility) = (self.environment.collation, Coercibility::Coercible);
        }
        made
    }

    pub(super) fn trim(
        &mut self,
        side: ast::TrimSide,
        removed: Option<&ast::Expression>,
        operand: &ast::Expression,
    ) -> Result<Expression> {
        let name = match side {
            ast::TrimSide::Both => "TRIM",
            ast::TrimSide::Leading => "TRIM_LEADING",
            ast::TrimSide::Trailing => "TRIM_TRAILING",
        };
        let mut arguments = vec![self.bind(operand)?];
        if let Some(removed) = removed {
            arguments.push(self.bind(removed)?);
        }
        Ok(self.in_connection_collation(Expression::call(name, arguments)?))
    }

    fn aggregate_kind(&self, name: &str) -> Option<AggregateKind> {
        let kinds = [
            ("COUNT", AggregateKind::Count),
            ("SUM", AggregateKind::Sum),
            ("AVG", AggregateKind::Average(self.environment.division_increment)),
            ("MIN", AggregateKind::Minimum),
            ("MAX", AggregateKind::Maximum),
        ];
        kinds.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| kind)
    }

    fn aggregate(&mut self, kind: AggregateKind, call: &ast::FunctionCall) -> Result<Expression> {
        // Aggregates are forbidden while the argument is bound, because an aggregate inside an aggregate is
        // error 1111.
        let Aggregation::Allowed { first_parameter, mut aggregates } =
            std::mem::replace(&mut self.aggregation, Aggregation::Forbidden)
        else {
            return Err(message::invalid_use_of_group());
        };
        // A column inside an aggregate's argument does not count as a column outside an aggregate, so the
        // field is restored.
        let first_bare_column = self.first_bare_column.take();
        let bound = self.aggregate_argument(kind, call);
        self.first_bare_column = first_bare_column;
        let parameter = bound.map(|aggregate| register_aggregate(aggregate, first_parameter, &mut aggregates));
        self.aggregation = Aggregation::Allowed { first_parameter, aggregates };
        parameter
    }

    /// Wraps a column outside an aggregate in ANY_VALUE; `None` if this position does not allow that.
    pub(super) fn wrap_bare_column(&mut self, column: &Expression) -> Option<Expression> {
        let Aggregation::Allowed { first_parameter, aggregates } = &mut self.aggregation else { return None };
        if !self.wraps_bare_columns {
            return None;
        }
        let argument = Some(column.clone());
        let aggregate = Aggregate { kind: AggregateKind::AnyValue, argument, distinct: false };
        Some(register_aggregate(aggregate, *first_parameter, aggregates))
    }

    fn aggregate_argument(&mut self, kind: AggregateKind, call: &ast::FunctionCall) -> Result<Aggregate> {
        let argument = match (call.star, call.arguments.as_slice()) {
            (true, _) => return Ok(Aggregate { kind: AggregateKind::CountRows, argument: None, distinct: false }),
            (false, [argument]) if kind.takes_numbers() => Some(among_numbers(argument, self.bind(argument)?)),
            (false, [argument]) => Some(self.bind(argument)?),
            (false, _) => {
                let name = call.name.to_ascii_uppercase();
                let message = format!("Incorrect parameter count in the call to native function '{name}'");
                return Err(Error::new(junctor_model::error::ErrorCode::WrongParameterCount, message));
            }
        };
        match (kind, call.distinct) {
            (AggregateKind::Count, true) => {
                Ok(Aggregate { kind: AggregateKind::CountDistinct, argument, distinct: true })
            }
            // DISTINCT does not change a minimum or maximum.
            _ => Ok(Aggregate { kind, argument, distinct: false }),
        }
    }
}

/// Adds the aggregate to the list, unless an equal one is there, and returns the parameter that receives its
/// result.
fn register_aggregate(aggregate: Aggregate, first_parameter: u16, aggregates: &mut Vec<Aggregate>) -> Expression {
    let result = aggregate.kind.result_type(&operand_type(&aggregate));
    let known = aggregates.iter().position(|known| same_aggregate(known, &aggregate));
    let position = known.unwrap_or_else(|| {
        aggregates.push(aggregate);
        aggregates.len() - 1
    });
    Expression::parameter_of_type(first_parameter.saturating_add(position as u16), result)
}

/// The type of the aggregate's argument, or the type of NULL if it has none.
pub fn operand_type(aggregate: &Aggregate) -> ResultType {
    aggregate.argument.as_ref().map_or_else(ResultType::null, |argument| argument.result)
}

fn same_aggregate(left: &Aggregate, right: &Aggregate) -> bool {
    left.kind == right.kind && left.distinct == right.distinct && left.argument == right.argument
}
