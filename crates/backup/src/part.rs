//! The part of a node in a backup of its cluster.

use std::path::PathBuf;

use junctor_model::id::CommitNumber;
use junctor_signals::crash_point;

use crate::BackupError;
use crate::crash::{reach, watch_of_environment};
use crate::data_directory::{DataDirectory, Files, FolderFiles};
use crate::store::BackupStore;
use crate::take::{BackupInProgress, Copier, CopyWatch, block_on, check_name};

/// Level of zstd.
const LEVEL: i32 = 3;

/// The copy that a node makes for a backup of its cluster.
#[derive(Clone, Debug)]
pub struct NodePart {
    /// The store: a folder, or `s3://BUCKET/PREFIX`.
    pub store: Box<str>,
    /// Name of the backup.
    pub name: Box<str>,
    /// The node.
    pub node: u8,
    /// The node's data directory. The node keeps its files until the end of the copy.
    pub folder: PathBuf,
}

/// Copies the part of a node. `await_copy` gets the newest commit of the node's checkpoint, waits until all
/// nodes keep their files, and returns the commit that the copy must include; `None` ends the copy. Returns
/// the last commit that the copy includes.
///
/// # Errors
/// The store or a file fails, or nobody waits for the copy any more. The part does not exist then.
pub fn copy_part(
    part: &NodePart,
    watch: &dyn CopyWatch,
    await_copy: &mut dyn FnMut(CommitNumber) -> Option<CommitNumber>,
) -> Result<CommitNumber, BackupError> {
    block_on(async {
        let store = BackupStore::create(&part.store)?;
        let files = FolderFiles(part.folder.clone());
        copy_files(&store, files, (part, watch), await_copy).await
    })
}

pub(crate) async fn copy_files<F: Files>(
    store: &BackupStore,
    files: F,
    (part, watch): (&NodePart, &dyn CopyWatch),
    await_copy: &mut dyn FnMut(CommitNumber) -> Option<CommitNumber>,
) -> Result<CommitNumber, BackupError> {
    let crashes = watch_of_environment()?;
    let copier = Copier { store, crashes: &crashes };
    check_name(&part.name)?;
    let directory = DataDirectory::new(files);
    let mut running = BackupInProgress::begin_part(copier, directory, &part.name, (part.node, LEVEL, watch)).await?;
    let newest = running.newest().await?;
    let Some(until) = await_copy(newest) else {
        return Err(BackupError::refused("the backup has ended before the copy began"));
    };
    if let Some(part) = &mut running.part {
        part.until = until.max(newest);
    }
    let (contents, _, last) = running.run().await?;
    reach(&crashes, crash_point::BACKUP_LIST.before())?;
    store.put_part(&part.name, part.node, contents).await?;
    reach(&crashes, crash_point::BACKUP_LIST.after())?;
    Ok(last)
}
