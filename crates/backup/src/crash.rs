//! Crash points of backups and restores, for tests.

use junctor_kernel::{CrashPoint, CrashWatch};
use junctor_signals::crash_point::{self, CRASH_VARIABLE};

use crate::BackupError;

/// The crash points of this process. The one that the environment names kills it.
///
/// # Errors
/// The environment names an unknown point.
pub fn watch_of_environment() -> Result<CrashWatch, BackupError> {
    let armed = crash_point::armed(std::env::var(CRASH_VARIABLE).ok()).map_err(BackupError::refused)?;
    Ok(armed.map_or_else(CrashWatch::default, CrashWatch::killing_process))
}

/// A point at which a test may end the backup or the restore.
///
/// # Errors
/// In a simulation, the point was hit: the rest must not happen.
pub fn reach(crashes: &CrashWatch, point: CrashPoint) -> Result<(), BackupError> {
    match crashes.hit(point) {
        true => Err(BackupError::refused("it ends at a crash point")),
        false => Ok(()),
    }
}
