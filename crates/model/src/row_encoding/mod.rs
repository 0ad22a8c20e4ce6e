//! Rows in MySQL's wire format: each is one or more whole packets, appended to an output buffer directly from
//! the row's bytes.
//!
//! Sequence numbers are left 0. The connection's thread finds the packets by their lengths and fills the
//! numbers in.

mod binary;
mod number;
mod packet;
mod plan;
mod result_column;
mod stored;
mod text;

pub use binary::{BinaryRow, append_binary_value, begin_binary_row};
pub use number::{append_double, append_double_fixed, append_float, append_signed, append_unsigned};
pub(crate) use packet::length_bytes;
pub use packet::{
    NULL_MARK, PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX, append_length, append_length_prefixed, begin_packet, end_packet,
};
pub use plan::RowPlan;
pub use result_column::{DECIMALS_NOT_FIXED, ResultColumn, column_flag, wire_type};
pub use text::{
    append_double_in, append_result_text, append_text, append_text_column, append_text_in, append_text_value,
};

#[cfg(test)]
mod tests;
