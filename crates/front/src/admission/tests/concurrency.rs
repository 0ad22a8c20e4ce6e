use super::super::concurrency::{ConcurrencyController, Sample};
use junctor_kernel::Duration;

/// A workload: transactions per second by the number of transactions at once.
type Workload = fn(f64) -> f64;

/// A bounded number of CPUs, without any cost of more transactions.
fn plateau(admitted: f64) -> f64 {
    admitted.min(16.0) * 100.0
}

/// Locks and caches: throughput falls above 16.
fn collapse(admitted: f64) -> f64 {
    plateau(admitted) / (1.0 + (admitted - 16.0).max(0.0) / 64.0)
}

/// Clients that think between the statements of a transaction: hundreds of transactions must be open.
fn thinking(admitted: f64) -> f64 {
    admitted.min(700.0) * 2.0
}

/// Numbers from 0 up to 1 in a fixed order.
fn noise(step: u64) -> f64 {
    let mixed =
        (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5bd1_e995).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Runs the controller for `steps` samples whose throughput varies by up to `variation` of its value, and
/// returns the mean of the throughputs of the second half, without the variation.
fn run(controller: &mut ConcurrencyController, workload: Workload, steps: u64, variation: f64) -> f64 {
    let mut sum = 0.0;
    for step in 0..steps {
        let admitted = controller.admitted_max() as f64;
        let throughput = workload(admitted);
        if step >= steps / 2 {
            sum += throughput;
        }
        let measured = throughput * (1.0 + variation * (2.0 * noise(step) - 1.0));
        let latency_p99 = Duration((2e9 * admitted / throughput) as u64);
        controller.learn(&Sample { throughput: measured, latency_p99 });
    }
    sum / (steps - steps / 2) as f64
}

#[test]
fn every_workload_gets_nearly_its_best_throughput() {
    for (name, workload, best) in
        [("plateau", plateau as Workload, 1600.0), ("collapse", collapse, 1600.0), ("thinking", thinking, 1400.0)]
    {
        for variation in [0.0, 0.05, 0.15] {
            let mut controller = ConcurrencyController::new(4096);
            let mean = run(&mut controller, workload, 400, variation);
            assert!(mean >= 0.9 * best, "{name} with a variation of {variation}: {mean} of {best}");
        }
    }
}

#[test]
fn of_equal_throughputs_the_lower_latency_is_chosen() {
    let mut controller = ConcurrencyController::new(4096);
    run(&mut controller, plateau, 400, 0.0);
    assert_eq!(controller.admitted_max(), 16);
}

/// More transactions at once add a little throughput, by larger batches, and much latency.
fn batching(admitted: f64) -> f64 {
    plateau(admitted) * (1.0 + 0.01 * (admitted / 16.0).max(1.0).log2())
}

#[test]
fn a_little_throughput_is_not_worth_much_latency() {
    for variation in [0.0, 0.05, 0.15] {
        let mut controller = ConcurrencyController::new(4096);
        run(&mut controller, batching, 600, variation);
        let admitted = controller.admitted_max();
        assert!((11..=45).contains(&admitted), "{admitted} with a variation of {variation}");
    }
}

#[test]
fn a_load_that_grows_favours_no_number() {
    let mut controller = ConcurrencyController::new(4096);
    let mut highest = 0;
    for step in 0..60_u32 {
        let admitted = controller.admitted_max() as f64;
        let throughput = plateau(admitted) * (1.0 + f64::from(step) / 20.0);
        let latency_p99 = Duration((2e9 * admitted / throughput) as u64);
        controller.learn(&Sample { throughput, latency_p99 });
        highest = highest.max(controller.admitted_max());
    }
    assert!(highest <= 23, "{highest}");
}

#[test]
fn a_new_workload_is_noticed() {
    let mut controller = ConcurrencyController::new(4096);
    run(&mut controller, collapse, 400, 0.05);
    let mean = run(&mut controller, thinking, 400, 0.05);
    assert!(mean > 1200.0, "{mean}");
    let mean = run(&mut controller, collapse, 400, 0.05);
    assert!(mean > 1400.0, "{mean}");
}

#[test]
fn neighbours_are_tried_less_and_less_often() {
    let mut controller = ConcurrencyController::new(4096);
    run(&mut controller, collapse, 400, 0.0);
    let home = controller.admitted_max();
    let mut away = 0;
    for _ in 0..200 {
        run(&mut controller, collapse, 1, 0.0);
        away += u32::from(controller.admitted_max() != home);
    }
    assert!(away < 20, "away for {away} of 200 samples");
}

#[test]
fn the_maximum_is_never_exceeded() {
    for maximum in [1, 3, 5, 40, 4096, 1 << 20] {
        let mut controller = ConcurrencyController::new(maximum);
        for step in 0..500 {
            let admitted = controller.admitted_max();
            assert!((1..=maximum).contains(&admitted));
            let throughput = (admitted as f64) * (1.0 + noise(step));
            controller.learn(&Sample { throughput, latency_p99: Duration(1) });
        }
    }
}
