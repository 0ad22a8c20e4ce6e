//! The wire format: golden bytes, round trips, and safety against arbitrary bytes.

mod arbitrary;
mod commands;
mod framing;
mod messages;
mod parameters;

/// Decodes hexadecimal text with spaces.
fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}
