//! The tables `threadblocks`, `cpustat_50ms`, `cpustat_1sec` and `cpustat_20sec` of `junctor_info`.

use junctor_gateway::threads::{ThreadUsage, Window};
use junctor_model::value::Value;

use super::ThreadFacts;
use super::layout::{Field, bytes, name, unsigned};

pub(super) const THREADBLOCKS: &[Field] = &[unsigned("thread_id"), name("module"), unsigned("instance")];

/// One row for each thread and slot. A slot is one of the last 20 intervals; slot 0 is the newest. The row
/// has the thread's activity in that interval.
pub(super) const CPUSTAT: &[Field] = &[
    unsigned("thread_id"),
    name("name"),
    unsigned("slot"),
    unsigned("os_user_us"),
    unsigned("os_system_us"),
    unsigned("os_idle_us"),
    unsigned("executing_us"),
    unsigned("sleeping_us"),
    unsigned("spinning_us"),
    unsigned("sending_us"),
    unsigned("buffer_full_us"),
    unsigned("elapsed_us"),
    unsigned("signals"),
    unsigned("hand_overs"),
    unsigned("voluntary_switches"),
    unsigned("involuntary_switches"),
];

/// The interval length of a `cpustat` table; `None` for other names.
pub fn cpustat_window(name: &str) -> Option<Window> {
    match name.to_ascii_lowercase().as_str() {
        "cpustat_50ms" => Some(Window::Moment),
        "cpustat_1sec" => Some(Window::Second),
        "cpustat_20sec" => Some(Window::TwentySeconds),
        _ => None,
    }
}

/// The rows of `threadblocks`.
pub fn thread_block_rows(threads: &[ThreadFacts]) -> Vec<Vec<Value>> {
    let blocks = threads.iter().flat_map(|thread| thread.blocks.iter().map(|block| (thread.thread, block)));
    let row = |(thread, (module, instance)): (u32, &(&str, u16))| {
        vec![Value::UInt(u64::from(thread)), bytes(module), Value::UInt(u64::from(*instance))]
    };
    blocks.map(row).collect()
}

/// The rows of one thread in a `cpustat` table. `slots` has the newest interval first; an interval without
/// elapsed time gives no row.
pub fn cpustat_rows(thread: u32, name: &str, slots: &[ThreadUsage]) -> Vec<Vec<Value>> {
    let slots = slots.iter().enumerate().filter(|(_, usage)| usage.elapsed_ns() > 0);
    let row = |(slot, usage): (usize, &ThreadUsage)| {
        // Time off the CPU. It saturates because the two clocks differ: CPU time may exceed elapsed time
        // slightly.
        let idle_ns = usage.elapsed_ns().saturating_sub(usage.os_user_ns + usage.os_system_ns);
        let times_ns = [
            usage.os_user_ns,
            usage.os_system_ns,
            idle_ns,
            usage.executing_ns,
            usage.sleeping_ns,
            usage.spinning_ns,
            usage.sending_ns,
            usage.buffer_full_ns,
            usage.elapsed_ns(),
        ];
        let counts = [usage.signals, usage.hand_overs, usage.voluntary_switches, usage.involuntary_switches];
        let mut row = vec![Value::UInt(u64::from(thread)), bytes(name), Value::UInt(slot as u64)];
        row.extend(times_ns.map(|time_ns| Value::UInt(time_ns / 1000)));
        row.extend(counts.map(Value::UInt));
        row
    };
    slots.map(row).collect()
}
