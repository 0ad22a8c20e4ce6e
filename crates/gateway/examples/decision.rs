//! Measures the cost of a routing decision:
//!
//! ```text
//! cargo build --release -p junctor-gateway --example decision
//! valgrind --tool=callgrind --toggle-collect='*phase_short*' target/release/examples/decision 1000000
//! valgrind --tool=callgrind --toggle-collect='*phase_long*' target/release/examples/decision 1000000
//! ```
//!
//! The collected instructions divided by the number of decisions are the cost of one decision, including
//! about ten instructions of the loop. One decision in 32 is measured and considers other threads than the
//! best. A hand-over never pays for a short read; for a long read the costs are compared.

use std::hint::black_box;

use junctor_gateway::route::adaptive::{Candidate, Controller, Measurement, RemoteCandidates};
use junctor_gateway::threads::ThreadState;

const AWAY: RemoteCandidates = RemoteCandidates {
    owner: Some(Candidate { thread: 1, queue_length: 2, state: ThreadState::Executing }),
    query: Some(Candidate { thread: 2, queue_length: 0, state: ThreadState::Sleeping }),
};

fn main() {
    let count = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let mut controller = Controller::new(0, 4);
    let key = |away, total_ns| Measurement {
        kind: 0,
        units: 1,
        away,
        state: ThreadState::Executing,
        service_ns: 500,
        waiting_ns: 0,
        total_ns,
    };
    controller.observe(&key(None, 500));
    controller.observe(&key(Some(1), 8_000));
    phase_short(&mut controller, count);
    phase_long(&mut controller, count);
    println!("{:?}", controller.kind(0));
}

#[inline(never)]
fn phase_short(controller: &mut Controller, count: u64) {
    for _ in 0..count {
        let decision = black_box(controller.choose(0, black_box(1), true, || black_box(AWAY)));
        controller.release(decision.booked_cost);
    }
}

#[inline(never)]
fn phase_long(controller: &mut Controller, count: u64) {
    for _ in 0..count {
        let decision = black_box(controller.choose(0, black_box(100), true, || black_box(AWAY)));
        controller.release(decision.booked_cost);
    }
}
