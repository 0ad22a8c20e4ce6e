//! Query attributes: named values that a client sends with a statement. They have the form of parameters, and
//! in COM_STMT_EXECUTE they follow the statement's parameters.

use super::capability::Capabilities;
use super::command::code;
use super::error::ProtocolError;
use super::field::FieldReader;
use super::parameter::{ParameterBlock, ParameterType, ParameterValue, read_count, read_value};

/// Receives the name and the value of each attribute.
pub type AttributeSink<'s, 'a> = &'s mut dyn FnMut(&'a [u8], ParameterValue<'a>);

/// Reads the attributes of a COM_QUERY; none for another command.
///
/// # Errors
/// As those of [`Command::parse`](super::command::Command::parse).
pub fn of_query<'a>(
    payload: &'a [u8],
    capabilities: Capabilities,
    sink: AttributeSink<'_, 'a>,
) -> Result<(), ProtocolError> {
    match payload {
        [code::QUERY, count, ..] if *count > 0 && capabilities.contains(Capabilities::QUERY_ATTRIBUTES) => {}
        _ => return Ok(()),
    }
    read_before_text(&mut FieldReader::new(&payload[1..]), sink)
}

/// Reads the attributes that precede the text of a COM_QUERY. The text is what remains.
///
/// # Errors
/// [`ProtocolError::Malformed`] if a field is truncated or has an unknown value.
pub(super) fn read_before_text<'a>(
    fields: &mut FieldReader<'a>,
    sink: AttributeSink<'_, 'a>,
) -> Result<(), ProtocolError> {
    let count = read_count(fields)?;
    if fields.length_encoded_integer("parameter_set_count")? != 1 {
        return Err(ProtocolError::Malformed { field: "parameter_set_count" });
    }
    match count {
        0 => Ok(()),
        _ => read_named(fields, count, 0, &|_| false, sink),
    }
}

/// Reads the attributes of a COM_STMT_EXECUTE behind its parameters. `is_long` tells which parameters have no
/// value, because it was sent before.
///
/// # Errors
/// [`ProtocolError::Malformed`] as for the parameters.
pub fn of_execution<'a>(
    block: &ParameterBlock<'a>,
    parameter_count: usize,
    is_long: &dyn Fn(usize) -> bool,
    sink: AttributeSink<'_, 'a>,
) -> Result<(), ProtocolError> {
    if !block.named || block.bytes.is_empty() {
        return Ok(());
    }
    let mut fields = FieldReader::new(block.bytes);
    let count = read_count(&mut fields)?;
    if count <= parameter_count {
        return Ok(());
    }
    read_named(&mut fields, count, parameter_count, is_long, sink)
}

/// Reads `count` values with their names, and passes on those from the position `first` on.
fn read_named<'a>(
    fields: &mut FieldReader<'a>,
    count: usize,
    first: usize,
    is_long: &dyn Fn(usize) -> bool,
    sink: AttributeSink<'_, 'a>,
) -> Result<(), ProtocolError> {
    let null_bitmap = fields.bytes(count.div_ceil(8), "null_bitmap")?;
    if fields.u8("new_types")? != 1 {
        return Err(ProtocolError::Malformed { field: "new_types" });
    }
    let mut types = *fields;
    for _ in 0..count {
        fields.bytes(2, "parameter_type")?;
        fields.length_encoded_bytes("parameter_name")?;
    }
    for index in 0..count {
        let parameter_type = ParameterType::from_bytes(types.array("parameter_type")?)?;
        let name = types.length_encoded_bytes("parameter_name")?;
        let is_null = null_bitmap[index / 8] & (1 << (index % 8)) != 0;
        let value = match is_null || index < first && is_long(index) {
            true => ParameterValue::Null,
            false => read_value(fields, parameter_type)?,
        };
        if index >= first {
            sink(name, value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::wire::field::put_length_encoded_bytes;

    /// COM_QUERY with attributes of these names and texts.
    fn query(attributes: &[(&str, Option<&str>)]) -> Vec<u8> {
        let mut payload = vec![code::QUERY, attributes.len() as u8, 1];
        payload.extend_from_slice(&block(attributes)[1..]);
        payload.extend_from_slice(b"SELECT 1");
        payload
    }

    /// The block of parameters, with its count.
    fn block(attributes: &[(&str, Option<&str>)]) -> Vec<u8> {
        let mut out = vec![attributes.len() as u8];
        if attributes.is_empty() {
            return out;
        }
        let mut nulls = vec![0; attributes.len().div_ceil(8)];
        for (index, _) in attributes.iter().enumerate().filter(|(_, (_, value))| value.is_none()) {
            nulls[index / 8] |= 1 << (index % 8);
        }
        out.extend_from_slice(&nulls);
        out.push(1);
        for (name, _) in attributes {
            out.extend_from_slice(&[254, 0]);
            put_length_encoded_bytes(&mut out, name.as_bytes());
        }
        attributes.iter().filter_map(|(_, value)| *value).for_each(|value| {
            put_length_encoded_bytes(&mut out, value.as_bytes());
        });
        out
    }

    fn shown(name: &[u8], value: ParameterValue<'_>) -> String {
        let text = match value {
            ParameterValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
            value => format!("{value:?}"),
        };
        format!("{}={text}", String::from_utf8_lossy(name))
    }

    fn of_payload(payload: &[u8], capabilities: Capabilities) -> Vec<String> {
        let mut seen = Vec::new();
        of_query(payload, capabilities, &mut |name, value| seen.push(shown(name, value))).expect("it is well-formed");
        seen
    }

    fn behind(block: &ParameterBlock<'_>, count: usize, is_long: &dyn Fn(usize) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        of_execution(block, count, is_long, &mut |name, value| seen.push(shown(name, value)))
            .expect("it is well-formed");
        seen
    }

    #[test]
    fn a_query_has_its_attributes_by_name() {
        let payload = query(&[("a", Some("1")), ("b", None), ("", Some("zwei"))]);
        assert_eq!(of_payload(&payload, Capabilities::QUERY_ATTRIBUTES), ["a=1", "b=Null", "=zwei"]);
        assert!(of_payload(&payload, Capabilities::NONE).is_empty());
        assert!(of_payload(&query(&[]), Capabilities::QUERY_ATTRIBUTES).is_empty());
        assert!(of_payload(&[code::PING], Capabilities::QUERY_ATTRIBUTES).is_empty());
    }

    #[test]
    fn the_attributes_of_an_execution_follow_its_parameters() {
        let bytes = block(&[("", Some("p")), ("", None), ("x", Some("y"))]);
        let named = ParameterBlock { bytes: &bytes, named: true };
        assert_eq!(behind(&named, 2, &|_| false), ["x=y"]);
        assert!(behind(&named, 3, &|_| false).is_empty());
        let unnamed = ParameterBlock { bytes: &bytes, named: false };
        assert!(behind(&unnamed, 2, &|_| false).is_empty());
        // The value of the first parameter was sent before.
        let mut long = block(&[("", None), ("x", Some("y"))]);
        long[1] = 0;
        let long = ParameterBlock { bytes: &long, named: true };
        assert_eq!(behind(&long, 1, &|index| index == 0), ["x=y"]);
    }

    #[test]
    fn a_packet_that_is_cut_is_malformed() {
        let payload = query(&[("a", Some("1"))]);
        for length in 2..payload.len() - "SELECT 1".len() {
            let cut = of_query(&payload[..length], Capabilities::QUERY_ATTRIBUTES, &mut |_, _| {});
            assert!(matches!(cut, Err(ProtocolError::Malformed { .. })), "{length} bytes");
        }
    }
}
