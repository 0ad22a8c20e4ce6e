//! Controls callgrind, under which a server runs.

use std::process::Command;
use std::time::Duration;

use super::{Server, command};
use crate::{Failure, Outcome};

const CONTROL_TIME_MAX: Duration = Duration::from_secs(60);

/// Passes `action`, such as `--dump`, to the callgrind that runs `server`.
///
/// # Errors
/// `callgrind_control` fails or reports no success.
pub fn control(server: &Server, action: &str) -> Outcome<()> {
    let process_id = server.process_id().to_string();
    let mut control = Command::new("callgrind_control");
    let finished = command::run(control.args([action, &process_id]), CONTROL_TIME_MAX)?;
    if finished.status.success() && finished.output.contains("OK") {
        return Ok(());
    }
    Err(Failure::new(format!("callgrind_control {action}: {}{}", finished.output, finished.errors)))
}
