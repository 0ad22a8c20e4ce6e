//! Prints documents in MySQL's normal form.

use super::Json;
use crate::row_encoding::{append_double, append_signed, append_unsigned};
use crate::temporal::{Temporal, TemporalKind};

/// Appends a document as text: a space after each comma and colon.
pub fn append_text(document: &[u8], out: &mut Vec<u8>) {
    match Json::of(document) {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Json::Int(value) => append_signed(value, out),
        Json::UInt(value) => append_unsigned(value, out),
        Json::Double(value) => append_number(value, out),
        Json::Decimal(value) => value.append_text(out),
        Json::String(text) => append_quoted(text, out),
        Json::Array(elements) => {
            out.push(b'[');
            for (position, element) in elements.into_iter().enumerate() {
                if position > 0 {
                    out.extend_from_slice(b", ");
                }
                append_text(element, out);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (position, (key, value)) in members.into_iter().enumerate() {
                if position > 0 {
                    out.extend_from_slice(b", ");
                }
                append_quoted(key, out);
                out.extend_from_slice(b": ");
                append_text(value, out);
            }
            out.push(b'}');
        }
        Json::Temporal(value) => {
            out.push(b'"');
            // Seconds always have six digits after the point.
            let digits = if value.kind == TemporalKind::Date { 0 } else { crate::temporal::DIGITS_MAX };
            Temporal { digits, ..value }.append_text(out);
            out.push(b'"');
        }
        Json::Opaque { wire_type, bytes } => {
            out.extend_from_slice(format!("\"base64:type{wire_type}:").as_bytes());
            append_base64(bytes, out);
            out.push(b'"');
        }
    }
}

/// A double is always recognisable as one.
fn append_number(value: f64, out: &mut Vec<u8>) {
    let start = out.len();
    append_double(value, out);
    if out[start..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
        out.extend_from_slice(b".0");
    }
}

/// Appends a text in double quotes, with escapes.
pub fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
}

fn append_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(word[0]) << 16 | u32::from(word[1]) << 8 | u32::from(word[2]);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { letter } else { b'=' });
        }
    }
}
