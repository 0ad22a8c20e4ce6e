//! The rounds of checkpoints, from `junctor_info.checkpoints`.

use std::thread;
use std::time::{Duration, Instant};

use crate::mysql::Connection;
use crate::{Failure, Outcome};

const ROUND_TIME_MAX: Duration = Duration::from_secs(120);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundSeen {
    pub generation: u64,
    pub is_running: bool,
    pub written_bytes: u64,
    pub duration_ms: u64,
}

/// The last round; `None` if the node has begun none since its start.
///
/// # Errors
/// The server refuses the statement, or the round has failed.
pub fn last(connection: &mut Connection) -> Outcome<Option<RoundSeen>> {
    let text = "SELECT generation, state, written_bytes, duration_ms, error FROM junctor_info.checkpoints";
    let mut last: Option<RoundSeen> = None;
    for row in connection.query(text)?.rows {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut cell = || cells.next().unwrap_or_default();
        let number = |cell: String| cell.parse().unwrap_or(0);
        let (generation, state) = (number(cell()), cell());
        let (written_bytes, duration_ms) = (number(cell()), number(cell()));
        if state == "FAILED" {
            return Err(Failure::new(format!("round {generation} failed: {}", cell())));
        }
        if last.as_ref().is_none_or(|last| last.generation <= generation) {
            last = Some(RoundSeen { generation, is_running: state != "DONE", written_bytes, duration_ms });
        }
    }
    Ok(last)
}

/// Waits until a round later than `generation` has ended.
///
/// # Errors
/// As [`last`], or no round ends within two minutes.
pub fn await_end(connection: &mut Connection, generation: u64) -> Outcome<RoundSeen> {
    let end = Instant::now() + ROUND_TIME_MAX;
    while Instant::now() < end {
        match last(connection)? {
            Some(round) if round.generation > generation && !round.is_running => return Ok(round),
            _ => thread::sleep(CHECK_INTERVAL),
        }
    }
    Err(Failure::new(format!("no checkpoint after {generation} ended within {} s", ROUND_TIME_MAX.as_secs())))
}
