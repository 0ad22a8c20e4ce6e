//! The folders of a durable node: made if they are missing, and locked against other processes.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::setting::NodeConfig;
use crate::start::StartError;

/// The name of the file that a process locks in each folder.
const LOCK: &str = "lock";

/// Makes and locks the folder of the node's files, and the folders of log and checkpoints outside it.
///
/// # Errors
/// Another process has locked a folder; the folder of a new node's log or checkpoints has files; or the
/// operating system refuses an action.
pub fn lock(config: &NodeConfig) -> Result<Vec<File>, StartError> {
    let data = Path::new(config.data_folder());
    let mut locks = vec![lock_folder(data, "--data-dir")?];
    let is_new = !["identity.0", "identity.1"].iter().any(|name| data.join(name).exists());
    let others = [("log_directory", &config.log_directory), ("checkpoint_directory", &config.checkpoint_directory)];
    for (option, folder) in others.iter().filter_map(|(option, folder)| Some((option, folder.as_ref()?))) {
        let folder = Path::new(folder);
        locks.push(lock_folder(folder, option)?);
        // The files may belong to another node, whose data would be overwritten.
        if is_new && let Some(name) = first_file(folder).map_err(|error| failed("read", folder, &error))? {
            return Err(StartError(format!(
                "the data directory {} is new, but the folder {} ({option}) has the file {}; restore the data directory, \
                 or empty the folder",
                data.display(),
                folder.display(),
                name.display(),
            )));
        }
    }
    Ok(locks)
}

/// The absolute path of a folder. Blocks take relative paths as relative to the node's folder.
pub fn absolute(folder: &str) -> Box<str> {
    // Fails for an empty path and without a current directory. The start of the node has made the folder then.
    let path = std::path::absolute(folder).unwrap_or_else(|_| PathBuf::from(folder));
    path.to_string_lossy().into()
}

/// A file in the folder other than the lock; `None` if there is no other.
fn first_file(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name != LOCK && name != "lost+found" {
            return Ok(Some(PathBuf::from(name)));
        }
    }
    Ok(None)
}

fn lock_folder(folder: &Path, option: &str) -> Result<File, StartError> {
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    // The folder's own name survives a crash once its parent is synced.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| failed("sync", folder, &error))?;
    let lock = OpenOptions::new().create(true).append(true).open(folder.join(LOCK));
    let lock = lock.map_err(|error| failed("lock", folder, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StartError(format!(
            "the data directory {} is used by another process; stop it, or choose another directory with {option}",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed("lock", folder, &error)),
    }
}

fn failed(action: &str, folder: &Path, error: &dyn fmt::Display) -> StartError {
    StartError(format!("cannot {action} the data directory {}: {error}", folder.display()))
}
