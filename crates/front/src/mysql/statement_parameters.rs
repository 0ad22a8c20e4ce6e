//! Hot path: at most 50 instructions per parameter; no allocation after the first execution of a statement.
//!
//! The state that a session's prepared statements keep between executions: the parameter types that were
//! bound last, and long data (COM_STMT_SEND_LONG_DATA).

use junctor_expression::parameter::ParametersBuilder;
use junctor_kernel::require;
use junctor_model::collation::CharacterSet;
use junctor_model::decimal::DECIMAL_SCALE_MAX;
use junctor_model::number;
use junctor_model::value::{Decimal, ValueRef};
use junctor_sql::QueryAttribute;

use super::wire::command::StmtExecute;
use super::wire::error::ProtocolError;
use super::wire::parameter::{DateTimeValue, DateValue, ParameterType, ParameterValue, TimeValue, decode_parameters};
use super::wire::query_attributes::of_execution;
use crate::protocol::DecodedParameters;

/// Maximum size of one session's long data in bytes. Data beyond it is dropped, and the execution then fails
/// with error 1153.
const LONG_DATA_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The state of one session's prepared statements, for those that have bound types or long data.
#[derive(Debug, Default)]
pub(crate) struct StatementParameters {
    /// Ordered by statement id.
    statements: Vec<Statement>,
    long_data_bytes: usize,
}

#[derive(Debug, Default)]
struct Statement {
    number: u32,
    bound_types: Vec<ParameterType>,
    long_data: Vec<(u16, Vec<u8>)>,
    /// Some long data was dropped, so the value would not be the one that the client sent.
    is_truncated: bool,
}

impl StatementParameters {
    fn position(&self, number: u32) -> Result<usize, usize> {
        self.statements.binary_search_by_key(&number, |statement| statement.number)
    }

    fn entry(&mut self, number: u32) -> &mut Statement {
        let position = self.position(number).unwrap_or_else(|position| {
            self.statements.insert(position, Statement { number, ..Statement::default() });
            position
        });
        &mut self.statements[position]
    }

    /// Decodes the parameters of an execution, which consumes the statement's long data.
    ///
    /// # Errors
    /// `Malformed` for inconsistent bytes, `PacketTooLarge` if long data was dropped, `WrongArguments` for a
    /// number that is not finite.
    pub fn decode(
        &mut self,
        execution: &StmtExecute<'_>,
        parameter_count: usize,
        client: CharacterSet,
        decoded: &mut DecodedParameters,
    ) -> Result<(), ProtocolError> {
        decoded.clear();
        let DecodedParameters { builder, bytes } = decoded;
        if parameter_count == 0 {
            return Ok(());
        }
        let statement = self.entry(execution.statement_id);
        if statement.is_truncated {
            self.forget_long_data(execution.statement_id);
            return Err(ProtocolError::PacketTooLarge);
        }
        let Statement { bound_types, long_data, .. } = statement;
        let long = |index: usize| {
            long_data.iter().find(|(parameter, _)| usize::from(*parameter) == index).map(|(_, bytes)| bytes.as_slice())
        };
        let mut all_finite = true;
        let mut push = |_: usize, value: ParameterValue<'_>| all_finite &= push_value(builder, client, value);
        if long_data.is_empty() {
            decode_parameters(&execution.parameters, parameter_count, bound_types, |_| None, &mut push)?;
        } else {
            all_finite = decode_with_long_data(execution, parameter_count, bound_types, (&long, client), builder)?;
            let used = long_data.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            long_data.clear();
            self.release_long_data(used);
        }
        if !all_finite {
            return Err(ProtocolError::WrongArguments);
        }
        builder.append_to(bytes).map_err(|_| ProtocolError::Malformed { field: "parameter_count" })
    }

    /// The query attributes of an execution, which must not be decoded yet.
    ///
    /// # Errors
    /// `Malformed` for inconsistent bytes behind the parameters.
    pub fn attributes(
        &self,
        execution: &StmtExecute<'_>,
        parameter_count: usize,
        client: CharacterSet,
    ) -> Result<Vec<QueryAttribute>, ProtocolError> {
        let known = self.position(execution.statement_id).ok().map(|position| &self.statements[position]);
        let long = known.map_or(&[][..], |statement| statement.long_data.as_slice());
        let is_long = |index: usize| long.iter().any(|(parameter, _)| usize::from(*parameter) == index);
        let mut attributes = Vec::new();
        let mut push = |name: &[u8], value: ParameterValue<'_>| attributes.push(attribute(client, name, value));
        match of_execution(&execution.parameters, parameter_count, &is_long, &mut push) {
            // Clients without parameters and attributes leave the count out, and may send anything.
            Err(_) if parameter_count == 0 => Ok(Vec::new()),
            read => read.map(|()| attributes),
        }
    }

    /// Appends to the long data of a parameter. Data beyond the session's maximum is dropped, and the
    /// execution will fail.
    pub fn append_long_data(&mut self, statement: u32, parameter: u16, data: &[u8]) {
        let is_too_much = self.long_data_bytes + data.len() > LONG_DATA_BYTES_MAX;
        let Statement { long_data, is_truncated, .. } = self.entry(statement);
        if is_too_much {
            *is_truncated = true;
            return;
        }
        match long_data.iter_mut().find(|(known, _)| *known == parameter) {
            Some((_, bytes)) => bytes.extend_from_slice(data),
            None => long_data.push((parameter, data.to_vec())),
        }
        self.long_data_bytes += data.len();
    }

    /// Drops the long data of a statement (COM_STMT_RESET).
    pub fn forget_long_data(&mut self, statement: u32) {
        if let Ok(position) = self.position(statement) {
            let statement = &mut self.statements[position];
            let dropped = statement.long_data.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            statement.long_data.clear();
            statement.is_truncated = false;
            self.release_long_data(dropped);
        }
    }

    /// Drops the state of a statement (COM_STMT_CLOSE).
    pub fn forget(&mut self, statement: u32) {
        self.forget_long_data(statement);
        if let Ok(position) = self.position(statement) {
            self.statements.remove(position);
        }
    }

    fn release_long_data(&mut self, bytes: usize) {
        // An underflow would prevent the session from ever sending long data again.
        require!(bytes <= self.long_data_bytes, "dropped long data was counted");
        self.long_data_bytes -= bytes;
    }
}

/// Returns whether all numbers are finite.
#[allow(clippy::redundant_closure)] // The closure shortens the lifetime to that of the copy.
fn decode_with_long_data<'l>(
    execution: &StmtExecute<'_>,
    parameter_count: usize,
    bound_types: &mut Vec<ParameterType>,
    (long, client): (&dyn Fn(usize) -> Option<&'l [u8]>, CharacterSet),
    builder: &mut ParametersBuilder,
) -> Result<bool, ProtocolError> {
    // The decoder requires one lifetime for the packet and the long data. Copying the packet gives it the
    // shorter one.
    let bytes = execution.parameters.bytes.to_vec();
    let mut block = execution.parameters;
    block.bytes = &bytes;
    let mut all_finite = true;
    let mut push = |_: usize, value: ParameterValue<'_>| all_finite &= push_value(builder, client, value);
    decode_parameters(&block, parameter_count, bound_types, |index| long(index), &mut push)?;
    Ok(all_finite)
}

/// A query attribute as the session keeps it: as text.
pub(crate) fn attribute(client: CharacterSet, name: &[u8], value: ParameterValue<'_>) -> QueryAttribute {
    let decoded = |bytes: &[u8]| {
        let mut text = Vec::with_capacity(bytes.len());
        match client.is_recoded() {
            true => client.decode(bytes, &mut text),
            false => text.extend_from_slice(bytes),
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let text = match value {
        ParameterValue::Null => None,
        ParameterValue::Signed(value) => Some(value.to_string()),
        ParameterValue::Unsigned(value) => Some(value.to_string()),
        ParameterValue::Float(value) => Some(value.to_string()),
        ParameterValue::Double(value) => Some(value.to_string()),
        ParameterValue::Text(bytes) => Some(decoded(bytes)),
        ParameterValue::Decimal(bytes) | ParameterValue::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ParameterValue::Date(date) => Some(date_text(date)),
        ParameterValue::DateTime(value) => Some(date_time_text(value)),
        ParameterValue::Time(value) => Some(time_text(value)),
    };
    QueryAttribute { name: decoded(name).into(), value: text.map(Box::from) }
}

/// Returns whether the value is not an infinite number or NaN, which SQL does not have.
fn push_value(builder: &mut ParametersBuilder, client: CharacterSet, value: ParameterValue<'_>) -> bool {
    match value {
        ParameterValue::Float(value) if !value.is_finite() => return false,
        ParameterValue::Double(value) if !value.is_finite() => return false,
        ParameterValue::Null => builder.push(ValueRef::Null),
        ParameterValue::Signed(value) => builder.push_int(value),
        // Some drivers send every positive integer as unsigned. As for a literal, only the value decides the
        // type.
        ParameterValue::Unsigned(value) => match i64::try_from(value) {
            Ok(value) => builder.push_int(value),
            Err(_) => builder.push(ValueRef::UInt(value)),
        },
        ParameterValue::Float(value) => builder.push(ValueRef::Double(f64::from(value))),
        ParameterValue::Double(value) => builder.push(ValueRef::Double(value)),
        ParameterValue::Decimal(text) => match parse_decimal(text) {
            Some(value) => builder.push(ValueRef::Decimal(value)),
            None => builder.push(ValueRef::Bytes(text)),
        },
        ParameterValue::Text(bytes) if client.is_recoded() => {
            let mut text = Vec::with_capacity(bytes.len());
            client.decode(bytes, &mut text);
            builder.push(ValueRef::Bytes(&text));
        }
        ParameterValue::Text(bytes) | ParameterValue::Blob(bytes) => builder.push(ValueRef::Bytes(bytes)),
        ParameterValue::Date(date) => builder.push(ValueRef::Bytes(date_text(date).as_bytes())),
        ParameterValue::DateTime(value) => builder.push(ValueRef::Bytes(date_time_text(value).as_bytes())),
        ParameterValue::Time(value) => builder.push(ValueRef::Bytes(time_text(value).as_bytes())),
    }
    true
}

/// Parses a decimal number with at most 30 digits after the point. Another one stays text, which comparisons
/// convert like any other text.
fn parse_decimal(text: &[u8]) -> Option<Decimal> {
    let fraction = text.split(|byte| *byte == b'.').nth(1).map_or(0, <[u8]>::len);
    let is_plain = text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.'));
    let parsed = number::parse_decimal(text);
    parsed.value.filter(|_| is_plain && fraction <= DECIMAL_SCALE_MAX.into() && !parsed.is_truncated)
}

fn date_text(date: DateValue) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn fraction_text(microseconds: u32) -> String {
    if microseconds == 0 { String::new() } else { format!(".{microseconds:06}") }
}

fn date_time_text(value: DateTimeValue) -> String {
    let DateTimeValue { date, hour, minute, second, microsecond } = value;
    format!("{} {hour:02}:{minute:02}:{second:02}{}", date_text(date), fraction_text(microsecond))
}

fn time_text(value: TimeValue) -> String {
    let TimeValue { negative, days, hours, minutes, seconds, microseconds } = value;
    let sign = if negative { "-" } else { "" };
    let hours = u64::from(days) * 24 + u64::from(hours);
    format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction_text(microseconds))
}

#[cfg(test)]
mod tests {
    use junctor_expression::Parameters;
    use junctor_model::value::Value;

    use super::*;
    use crate::mysql::wire::capability::Capabilities;
    use crate::mysql::wire::command::Command;

    #[test]
    fn long_data_that_was_truncated_is_never_executed() {
        let packet = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 252, 0];
        let Ok(Command::StmtExecute(execution)) = Command::parse(&packet, Capabilities::NONE) else {
            panic!("a COM_STMT_EXECUTE")
        };
        let mut parameters = StatementParameters::default();
        let chunk = vec![b'a'; LONG_DATA_BYTES_MAX / 2];
        (0..3).for_each(|_| parameters.append_long_data(1, 0, &chunk));
        let mut decoded = DecodedParameters::default();
        assert_eq!(
            parameters.decode(&execution, 1, CharacterSet::Utf8mb4, &mut decoded),
            Err(ProtocolError::PacketTooLarge)
        );
        assert_eq!(parameters.long_data_bytes, 0);
        parameters.append_long_data(1, 0, &chunk);
        assert_eq!(parameters.decode(&execution, 1, CharacterSet::Utf8mb4, &mut decoded), Ok(()));
        assert!(decoded.bytes.len() > chunk.len());
        decoded.trim();
        assert_eq!((decoded.bytes.capacity(), parameters.long_data_bytes), (0, 0));
        // A refused execution keeps no memory, either.
        parameters.append_long_data(1, 0, &chunk);
        assert!(parameters.decode(&execution, 2, CharacterSet::Utf8mb4, &mut decoded).is_err());
        decoded.trim();
        assert_eq!(decoded.builder.capacity(), 0);
    }

    #[test]
    fn each_statement_has_its_own_types_and_data() {
        let execution = |number: u8| [0x17, number, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0];
        let bound = |number: u8| [0x17, number, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, number, 0, 0, 0];
        let (mut parameters, mut decoded) = (StatementParameters::default(), DecodedParameters::default());
        let mut run = |parameters: &mut StatementParameters, packet: &[u8]| {
            let Ok(Command::StmtExecute(execution)) = Command::parse(packet, Capabilities::NONE) else {
                panic!("a COM_STMT_EXECUTE")
            };
            parameters.decode(&execution, 1, CharacterSet::Utf8mb4, &mut decoded)?;
            Ok::<_, ProtocolError>(Parameters::from_bytes(&decoded.bytes).get(0).to_value())
        };
        for number in [7, 3, 9] {
            assert_eq!(run(&mut parameters, &bound(number)), Ok(Value::Int(i64::from(number))));
        }
        parameters.forget(7);
        assert!(run(&mut parameters, &execution(7)).is_err(), "its types were dropped");
        for number in [3, 9] {
            assert_eq!(run(&mut parameters, &execution(number)), Ok(Value::Int(5)));
        }
        parameters.append_long_data(3, 0, b"long");
        assert_eq!(run(&mut parameters, &execution(9)), Ok(Value::Int(5)));
        parameters.forget_long_data(3);
        assert_eq!(run(&mut parameters, &execution(3)), Ok(Value::Int(5)));
    }

    /// The value that a parameter of this type becomes.
    fn decoded_value(parameter_type: u8, value: &[u8]) -> Result<Value, ProtocolError> {
        let mut packet = vec![0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, parameter_type, 0];
        packet.extend_from_slice(value);
        let Ok(Command::StmtExecute(execution)) = Command::parse(&packet, Capabilities::NONE) else {
            panic!("a COM_STMT_EXECUTE")
        };
        let (mut parameters, mut decoded) = (StatementParameters::default(), DecodedParameters::default());
        parameters.decode(&execution, 1, CharacterSet::Utf8mb4, &mut decoded)?;
        Ok(Parameters::from_bytes(&decoded.bytes).get(0).to_value())
    }

    #[test]
    fn a_decimal_of_more_than_81_digits_stays_text() {
        let decoded = |text: &str| decoded_value(246, &[&[text.len() as u8], text.as_bytes()].concat());
        let longest = "9".repeat(38);
        let mantissa = 10i128.pow(38) - 1;
        assert_eq!(decoded(&longest), Ok(Value::Decimal(junctor_model::decimal::new(mantissa, 0))));
        for text in ["1".repeat(39), format!("-{}.5", "1".repeat(38)), "7".repeat(81)] {
            let wide = number::parse_decimal(text.as_bytes()).value.unwrap();
            assert_eq!(decoded(&text), Ok(Value::Decimal(wide)));
        }
        for text in ["1".repeat(82), format!("0.{}", "1".repeat(31)), "1-2".into(), "1e3".into()] {
            assert_eq!(decoded(&text), Ok(Value::Bytes(text.clone().into_bytes())));
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(decoded_value(5, &value.to_le_bytes()), Err(ProtocolError::WrongArguments));
            assert_eq!(decoded_value(4, &(value as f32).to_le_bytes()), Err(ProtocolError::WrongArguments));
        }
        assert_eq!(decoded_value(5, &1.5f64.to_le_bytes()), Ok(Value::Double(1.5)));
    }

    #[test]
    fn an_unsigned_number_within_the_signed_range_becomes_signed() {
        let decoded = |value: u64| {
            let mut packet = vec![0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0x80];
            packet.extend_from_slice(&value.to_le_bytes());
            let Ok(Command::StmtExecute(execution)) = Command::parse(&packet, Capabilities::NONE) else {
                panic!("a COM_STMT_EXECUTE")
            };
            let (mut parameters, mut decoded) = (StatementParameters::default(), DecodedParameters::default());
            assert_eq!(parameters.decode(&execution, 1, CharacterSet::Utf8mb4, &mut decoded), Ok(()));
            Parameters::from_bytes(&decoded.bytes).get(0).to_value()
        };
        assert_eq!(decoded(7), Value::Int(7));
        assert_eq!(decoded(1 << 63), Value::UInt(1 << 63));
    }
}
