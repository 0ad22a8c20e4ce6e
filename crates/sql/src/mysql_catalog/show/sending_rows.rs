//! The table `sending` of `junctor_info`.

use junctor_gateway::threads::SendStatus;
use junctor_model::value::Value;

use super::layout::{Field, bytes, name, text, unsigned};

/// One row for each thread that sends; counters are since the start.
pub(super) const SENDING: &[Field] = &[
    unsigned("thread_id"),
    name("name"),
    text("state", 16),
    text("may_help", 8),
    unsigned("helpers_now"),
    unsigned("delay_now_us"),
    unsigned("own_writes"),
    unsigned("own_bytes"),
    unsigned("handed_over"),
    unsigned("delayed"),
    unsigned("other_writes"),
    unsigned("other_bytes"),
    unsigned("refused"),
];

/// The row of one thread. Values are in the order of the columns above.
pub fn sending_row(thread: u32, name: &str, status: &SendStatus) -> Vec<Value> {
    let may_help = if status.may_help { "YES" } else { "NO" };
    let mut row = vec![Value::UInt(u64::from(thread)), bytes(name), bytes(status.state.name()), bytes(may_help)];
    let numbers = [
        u64::from(status.helpers),
        status.delay.as_micros(),
        status.own_writes,
        status.own_bytes,
        status.handed_over,
        status.delayed,
        status.other_writes,
        status.other_bytes,
        status.refused,
    ];
    row.extend(numbers.map(Value::UInt));
    row
}
