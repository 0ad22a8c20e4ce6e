//! The phases of a start, from `junctor_info.restart_info`, and the processor time of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::mysql::Connection;
use crate::process::measure;
use crate::{Failure, Outcome};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// A phase of a start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    pub name: String,
    pub ms: f64,
    /// CPU time in user and in kernel mode.
    pub user_ms: f64,
    pub kernel_ms: f64,
    pub rows: f64,
    pub bytes: f64,
}

/// The processor time that a process had used at moments of its life, in user and in kernel mode.
pub type CpuCurve = Vec<(Instant, (Duration, Duration))>;

/// Records the processor time of a process until it is told to end.
pub struct CpuRecorder {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<CpuCurve>,
}

impl CpuRecorder {
    /// Begins to record.
    pub fn start(process_id: u32) -> CpuRecorder {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut curve = CpuCurve::new();
            while !end.load(Ordering::Relaxed)
                && let Ok(cpu) = measure::cpu_time_by_mode(process_id)
            {
                curve.push((Instant::now(), cpu));
                thread::sleep(SAMPLE_INTERVAL);
            }
            curve
        });
        CpuRecorder { ends, thread }
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The recording thread has failed.
    pub fn end(self) -> Outcome<CpuCurve> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::new("a thread panicked"))
    }
}

/// Reads the phases of a start that ended at `ready`.
///
/// # Errors
/// The server refuses the statement.
pub fn read(connection: &mut Connection, ready: Instant, curve: &CpuCurve) -> Outcome<Vec<Phase>> {
    let text = "SELECT phase, milliseconds, rows_applied, bytes FROM junctor_info.restart_info";
    let mut phases = Vec::new();
    for row in connection.query(text)?.rows {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let name = cells.next().unwrap_or_default();
        let mut number = || cells.next().and_then(|cell| cell.parse().ok()).unwrap_or(0.0);
        phases.push(Phase { name, ms: number(), rows: number(), bytes: number(), ..Phase::default() });
    }
    add_cpu(&mut phases, ready, curve);
    Ok(phases)
}

/// Splits the processor time by phases. The last phase ends at `ready`.
fn add_cpu(phases: &mut [Phase], ready: Instant, curve: &CpuCurve) {
    let mut end = ready;
    for phase in phases.iter_mut().rev() {
        let begin = end.checked_sub(Duration::from_secs_f64(phase.ms / 1000.0)).unwrap_or(end);
        let (at_end, at_begin) = (cpu_at(curve, end), cpu_at(curve, begin));
        let ms = |end: Duration, begin: Duration| end.saturating_sub(begin).as_secs_f64() * 1000.0;
        phase.user_ms = ms(at_end.0, at_begin.0);
        phase.kernel_ms = ms(at_end.1, at_begin.1);
        end = begin;
    }
}

fn cpu_at(curve: &CpuCurve, moment: Instant) -> (Duration, Duration) {
    let position = curve.partition_point(|(seen, _)| *seen <= moment);
    position.checked_sub(1).and_then(|position| curve.get(position)).map_or_else(Default::default, |(_, cpu)| *cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_gets_the_processor_time_between_its_ends() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let curve: CpuCurve =
            (0..=10).map(|number| (start + ms(number * 10), (ms(number * number), ms(number)))).collect();
        let phase = |ms| Phase { ms, ..Phase::default() };
        let mut phases = [phase(30.0), phase(50.0)];
        add_cpu(&mut phases, start + ms(100), &curve);
        let cpu: Vec<(f64, f64)> = phases.iter().map(|phase| (phase.user_ms, phase.kernel_ms)).collect();
        assert_eq!(cpu, [(25.0 - 4.0, 3.0), (100.0 - 25.0, 5.0)]);
    }
}
