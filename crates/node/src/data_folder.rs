//! The folders of a durable node: made if they are missing, and locked against other processes.
//!
//! A folder on a device of its own is a symbolic link in the node's folder. Everything else, backups too,
//! finds it there, and a start without the setting does not miss it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use junctor_model::checkpoint::CHECKPOINT_FOLDER;
use junctor_storage::log::LOG_FOLDER;

use crate::setting::NodeConfig;
use crate::start::StartError;

/// Makes and locks the folder of the node's files, and links the folders of log and checkpoints outside it.
/// The lock lasts as long as the file is open.
///
/// # Errors
/// Another process has locked the folder; a setting names another place than the data has; or the operating
/// system refuses an action.
pub fn lock(config: &NodeConfig) -> Result<File, StartError> {
    let data = Path::new(config.data_folder());
    let lock = lock_folder(data)?;
    for (setting, name, folder) in [
        ("log_directory", LOG_FOLDER, &config.log_directory),
        ("checkpoint_directory", CHECKPOINT_FOLDER, &config.checkpoint_directory),
    ] {
        if let Some(folder) = folder {
            let folder = std::path::absolute(folder).map_err(|error| failed("find", Path::new(folder), &error))?;
            link(data, name, &folder, setting)?;
        }
        check_mounted(data, name)?;
    }
    Ok(lock)
}

/// Checks that the folder behind a link exists. Otherwise a device may not be mounted.
fn check_mounted(data: &Path, name: &str) -> Result<(), StartError> {
    let link = data.join(name);
    match fs::read_link(&link) {
        Ok(target) if !target.is_dir() => Err(StartError(format!(
            "{} is a link to the folder {}, which does not exist; mount its device, or restore the data directory \
             from a backup",
            link.display(),
            target.display()
        ))),
        _ => Ok(()),
    }
}

/// Makes `data/name` a link to the folder, unless it is one.
fn link(data: &Path, name: &str, folder: &Path, setting: &str) -> Result<(), StartError> {
    let link = data.join(name);
    match fs::read_link(&link) {
        Ok(target) if target == folder => return Ok(()),
        Ok(target) => return Err(lies_elsewhere(&target, folder, setting)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // It is a folder.
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(lies_elsewhere(&link, folder, setting)),
        Err(error) => return Err(failed("read", &link, &error)),
    }
    make_folder(folder)?;
    let is_new = !["identity.0", "identity.1"].iter().any(|name| data.join(name).exists());
    // The files may belong to another node, whose data would be overwritten.
    if is_new && let Some(file) = first_file(folder).map_err(|error| failed("read", folder, &error))? {
        return Err(StartError(format!(
            "the data directory {} is new, but {setting} {} has the file {}; empty the folder, or name another one",
            data.display(),
            folder.display(),
            file.display(),
        )));
    }
    std::os::unix::fs::symlink(folder, &link).map_err(|error| failed("make", &link, &error))?;
    sync(data)
}

fn lies_elsewhere(present: &Path, folder: &Path, setting: &str) -> StartError {
    StartError(format!(
        "{setting} is {}, but the files are in {}; change the setting, or move the files and remove {}",
        folder.display(),
        present.display(),
        present.display(),
    ))
}

/// A file in the folder; `None` if it is empty.
fn first_file(folder: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        // The file system's own folder on a fresh device.
        if name != "lost+found" {
            return Ok(Some(PathBuf::from(name)));
        }
    }
    Ok(None)
}

fn make_folder(folder: &Path) -> Result<(), StartError> {
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    // The folder's own name survives a crash once its parent is synced.
    sync(folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

fn sync(folder: &Path) -> Result<(), StartError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed("sync", folder, &error))
}

fn lock_folder(folder: &Path) -> Result<File, StartError> {
    make_folder(folder)?;
    let lock = OpenOptions::new().create(true).append(true).open(folder.join("lock"));
    let lock = lock.map_err(|error| failed("lock", folder, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StartError(format!(
            "the data directory {} is used by another process; stop it, or choose another directory with --data-dir",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed("lock", folder, &error)),
    }
}

fn failed(action: &str, folder: &Path, error: &io::Error) -> StartError {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => "; start the server as the owner, or choose another directory with --data-dir",
        ErrorKind::ReadOnlyFilesystem => "; make it writable, or choose another directory with --data-dir",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "; a file is in its place: choose another directory with --data-dir"
        }
        ErrorKind::StorageFull => "; free some space on the device",
        _ => "",
    };
    StartError(format!("cannot {action} the data directory {}: {error}{advice}", folder.display()))
}
