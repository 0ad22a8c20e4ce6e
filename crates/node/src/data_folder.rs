//! The folders of a durable node: made if they are missing, and locked against other processes.
//!
//! A folder on a device of its own is a symbolic link in the node's folder. Everything else, backups too,
//! finds it there, and a start without the setting does not miss it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use junctor_cluster::member::node_file::{NEW_NODE_FILE, NODE_FILE, VOTER_FILES};
use junctor_model::checkpoint::CHECKPOINT_FOLDER;
use junctor_model::stored_identity::RESTORED_FILE;
use junctor_storage::log::{BLOCK_BYTES, GroupKind, LOG_FOLDER, decode_header};

use crate::cluster_join::SHARED_SETTINGS;
use crate::setting::NodeConfig;
use crate::start::StartError;
use crate::temporary_files::TEMPORARY_FOLDER;

/// The file that is locked.
const LOCK: &str = "lock";
/// The file system's own folder on a fresh device.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes and locks the folder of the node's files, and links the folders of log and checkpoints outside it.
/// The lock lasts as long as the file is open.
///
/// # Errors
/// The folder has files and no identity; another process has locked it; a setting names another place than
/// the data has; or the operating system refuses an action.
pub fn lock(config: &NodeConfig) -> Result<File, StartError> {
    let data = Path::new(config.data_folder());
    make_folder(data)?;
    let is_in_cluster = config.cluster.node_id.is_some();
    // Before the lock, which would be a file in a folder of somebody else.
    if !has_identity(data) {
        check_new(data, config)?;
    }
    check_place(data, is_in_cluster)?;
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

/// Whether the folder belongs to a node. The identity is the last file that a first start makes.
fn has_identity(data: &Path) -> bool {
    ["identity.0", "identity.1"].iter().any(|name| data.join(name).exists())
}

/// Checks that a folder without an identity is empty, or holds only what the server makes there beside its
/// data, or what an interrupted first start leaves: a log without records. Anything else would be
/// overwritten, or would be data that the node does not see.
fn check_new(data: &Path, config: &NodeConfig) -> Result<(), StartError> {
    let is_in_cluster = config.cluster.node_id.is_some();
    let beside_data: Vec<PathBuf> =
        config.socket_path().into_iter().chain(config.log_paths().into_iter().flatten()).collect();
    let is_beside_data = |path: &Path| std::path::absolute(path).is_ok_and(|path| beside_data.contains(&path));
    let unreadable = |error: io::Error| failed("read", data, &error);
    for entry in fs::read_dir(data).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let found = match entry.file_name().to_str() {
            Some(LOCK | LOST_AND_FOUND | TEMPORARY_FOLDER | "identity.new") => None,
            Some(name) if is_in_cluster && is_of_cluster(name) => None,
            // Certificates for clients.
            Some("tls" | "tls.new") => None,
            Some(LOG_FOLDER) => first_file(&entry.path(), &is_blank_log).map_err(unreadable)?,
            Some(CHECKPOINT_FOLDER) => first_file(&entry.path(), &|_| Ok(false)).map_err(unreadable)?,
            _ if is_beside_data(&entry.path()) => None,
            _ => Some(entry.path()),
        };
        if let Some(found) = found {
            return Err(StartError(format!(
                "the data directory {} has no identity, but it has {}; if a server has used it, restore it from a \
                 backup; otherwise move its files away, or choose an empty directory with --data-dir",
                data.display(),
                found.strip_prefix(data).unwrap_or(&found).display(),
            )));
        }
    }
    Ok(())
}

/// Whether the file belongs to the membership of a node of a cluster.
fn is_of_cluster(name: &str) -> bool {
    [NODE_FILE, NEW_NODE_FILE, SHARED_SETTINGS].contains(&name) || VOTER_FILES.contains(&name)
}

/// Checks that the folder of a node alone, and that of a node of a cluster, are started as such. A folder
/// that was restored from a backup becomes either.
fn check_place(data: &Path, is_in_cluster: bool) -> Result<(), StartError> {
    let was_in_cluster = data.join(NODE_FILE).exists();
    let restored = data.join(RESTORED_FILE);
    match (was_in_cluster, is_in_cluster) {
        (false, true) if restored.exists() => Ok(()),
        (false, false) if restored.exists() => {
            fs::remove_file(&restored).map_err(|error| failed("write", data, &error))?;
            sync(data)
        }
        (true, false) => Err(StartError(format!(
            "the data directory {} belongs to a node of a cluster; start it with the settings of the cluster",
            data.display()
        ))),
        (false, true) if has_identity(data) => Err(StartError(format!(
            "the data directory {} has the data of a node alone, which cannot become a node of a cluster yet; choose \
             an empty directory with --data-dir",
            data.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether a file of the log has no records: zeros, or the groups that a first start writes before the
/// identity.
fn is_blank_log(path: &Path) -> io::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let mut block = [0; BLOCK_BYTES];
    for expected in [GroupKind::Start, GroupKind::Closing] {
        let length = read_block(&mut file, &mut block)?;
        let has_group = decode_header(&block[..length])
            .is_ok_and(|(header, blocks)| header.kind == expected && header.incarnation == 1 && blocks == 1);
        if !has_group && block[..length].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    loop {
        let length = read_block(&mut file, &mut block)?;
        match block[..length].iter().all(|byte| *byte == 0) {
            true if length < BLOCK_BYTES => return Ok(true),
            true => {}
            false => return Ok(false),
        }
    }
}

/// Reads the next block, which is shorter at the end of the file.
fn read_block(file: &mut File, block: &mut [u8; BLOCK_BYTES]) -> io::Result<usize> {
    let mut length = 0;
    while length < BLOCK_BYTES {
        match file.read(&mut block[length..])? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
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
    // The files may belong to another node, whose data would be overwritten.
    let other = |_: &Path| Ok(false);
    if !has_identity(data)
        && let Some(file) = first_file(folder, &other).map_err(|error| failed("read", folder, &error))?
    {
        return Err(StartError(format!(
            "the data directory {} is new, but {setting} has the file {}; empty the folder, or name another one",
            data.display(),
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

/// A file in the folder that `is_harmless` does not let pass; `None` if there is none.
fn first_file(folder: &Path, is_harmless: &dyn Fn(&Path) -> io::Result<bool>) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        // A link to a device that is not mounted, which `check_mounted` reports.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() != LOST_AND_FOUND && !is_harmless(&entry.path())? {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn make_folder(folder: &Path) -> Result<(), StartError> {
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    // The folder's own name survives a crash once its parent is synced.
    sync(folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

pub(crate) fn sync(folder: &Path) -> Result<(), StartError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed("sync", folder, &error))
}

fn lock_folder(folder: &Path) -> Result<File, StartError> {
    let lock = OpenOptions::new().create(true).append(true).open(folder.join(LOCK));
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

pub(crate) fn failed(action: &str, folder: &Path, error: &io::Error) -> StartError {
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
