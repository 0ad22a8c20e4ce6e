//! JSON_PRETTY: a document with a line for each value.

use junctor_model::json::{self, Json};

/// Appends the document, indented by two spaces for each level.
pub(super) fn append_pretty(document: &[u8], depth: usize, out: &mut Vec<u8>) {
    match Json::of(document) {
        Json::Array(elements) if !elements.is_empty() => {
            out.push(b'[');
            for (position, element) in elements.into_iter().enumerate() {
                begin_line(position, depth + 1, out);
                append_pretty(element, depth + 1, out);
            }
            begin_line(0, depth, out);
            out.push(b']');
        }
        Json::Object(members) if !members.is_empty() => {
            out.push(b'{');
            for (position, (key, value)) in members.into_iter().enumerate() {
                begin_line(position, depth + 1, out);
                json::append_quoted(key, out);
                out.extend_from_slice(b": ");
                append_pretty(value, depth + 1, out);
            }
            begin_line(0, depth, out);
            out.push(b'}');
        }
        _ => json::append_text(document, out),
    }
}

fn begin_line(position: usize, depth: usize, out: &mut Vec<u8>) {
    if position > 0 {
        out.push(b',');
    }
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}
