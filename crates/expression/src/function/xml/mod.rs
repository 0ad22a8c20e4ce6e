//! EXTRACTVALUE and UPDATEXML: parts of XML texts, found by a subset of XPath 1.0.
//!
//! As in MySQL, texts are fragments without a declared character set, entities are not replaced, names have
//! no namespaces, and a relative path begins at the root.

mod document;
mod evaluate;
mod path;

use junctor_model::error::{ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function};
use crate::construct::aggregate_collations;
use crate::program::Expression;
use crate::result_type::ResultType;
use crate::scratch::STRING_BYTES_MAX;
use document::{Document, NodeKind};
use evaluate::{Evaluation, Found};

pub(super) const TABLE: &[Function] =
    &[function("EXTRACTVALUE", 2, 2, resolve, extract_value), function("UPDATEXML", 3, 3, resolve, update_xml)];

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations(&name.to_ascii_lowercase(), &arguments)?;
    let result = ResultType::string(collation.collation, collation.coercibility, (STRING_BYTES_MAX / 4) as u32);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

/// The texts and the path of a call; `None` if one is NULL, or with warning 1525 for a text that is no XML.
fn find<'r>(call: Call<'r>) -> Result<Option<(Document<'r>, Found)>> {
    let (Some(text), Some(path)) = (call.text(0)?, call.text(1)?) else { return Ok(None) };
    let mut key = b"xpath ".to_vec();
    key.extend_from_slice(path);
    let path = call.scratch().cached(&key, || path::parse(path))?;
    let document = match Document::read(text) {
        Ok(document) => document,
        Err(defect) => {
            call.scratch().note(ErrorCode::WrongLiteral, || format!("Incorrect XML value: '{defect}'"));
            return Ok(None);
        }
    };
    let found = Evaluation::new(&document, call.result.collation).run(&path)?;
    Ok(Some((document, found)))
}

/// The texts directly in the nodes that the path finds, with spaces between them; or the value of the path.
fn extract_value(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some((document, found)) = find(call)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| match found {
        Found::Nodes(nodes) => document.append_texts(&nodes, buffer),
        Found::Number(number) => evaluate::append_number(number, buffer),
        Found::Text(text) => buffer.extend_from_slice(&text),
        Found::Truth(truth) => buffer.push(b'0' + u8::from(truth)),
    })
}

/// The text with another one in the place of the node that the path finds. It is unchanged if the path finds
/// none, several, or no nodes.
fn update_xml(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(replacement) = call.text(2)? else { return Ok(ValueRef::Null) };
    let Some((document, found)) = find(call)? else { return Ok(ValueRef::Null) };
    let Found::Nodes(nodes) = found else { return Ok(ValueRef::Bytes(document.text)) };
    match nodes.as_slice() {
        [only] if document.node(*only).kind == NodeKind::Root => Ok(ValueRef::Bytes(replacement)),
        [only] => {
            let range = document.node(*only).range.clone();
            call.build(|buffer| {
                buffer.extend_from_slice(&document.text[..range.start]);
                buffer.extend_from_slice(replacement);
                buffer.extend_from_slice(&document.text[range.end..]);
            })
        }
        _ => Ok(ValueRef::Bytes(document.text)),
    }
}

#[cfg(test)]
mod tests;
