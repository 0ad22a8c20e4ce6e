//! A backup of a cluster: the nodes copy their parts, and the list of contents, which makes them a backup, is
//! written when all of them are complete.

use junctor_model::id::CommitNumber;

use crate::BackupError;
use crate::contents::{ClusterContents, PartContents, StoredBackup};
use crate::store::BackupStore;
use crate::take::{BackupSummary, block_on, check_name, default_name};

/// A part that a node has copied completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedPart {
    /// The node.
    pub node: u8,
    /// Its node group.
    pub group: u8,
    /// The newest commit of its checkpoint.
    pub newest: CommitNumber,
    /// The last commit that its copy includes.
    pub last: CommitNumber,
}

/// The name of a backup that begins now: the given one, or the time.
///
/// # Errors
/// It is no name, or the store has objects of a backup with this name.
pub fn new_name(store: &str, name: Option<&str>) -> Result<String, BackupError> {
    let name = name.map_or_else(default_name, str::to_owned);
    check_name(&name)?;
    block_on(async {
        match BackupStore::create(store)?.has_objects(&name, "").await? {
            true => Err(BackupError::refused(format!("the store has objects of a backup '{name}' already"))),
            false => Ok(name),
        }
    })
}

/// Completes a backup whose nodes have copied their parts, and have kept their files until then.
///
/// # Errors
/// The store fails, or it is another one than that of a node. Nothing counts as a backup then.
pub fn complete_cluster(store: &str, name: &str, parts: &[CopiedPart]) -> Result<BackupSummary, BackupError> {
    block_on(async { complete(&BackupStore::open(store)?, name, parts).await })
}

pub(crate) async fn complete(
    store: &BackupStore,
    name: &str,
    parts: &[CopiedPart],
) -> Result<BackupSummary, BackupError> {
    let cut = parts.iter().map(|part| part.last).min();
    let cut = cut.ok_or_else(|| BackupError::refused("a backup of a cluster has a part of each node group"))?;
    let mut listed = Vec::new();
    for part in parts {
        let CopiedPart { node, group, newest, .. } = *part;
        if newest > cut {
            let text = format!("the checkpoint of node {node} contains commit {newest}, but the logs end at {cut}");
            return Err(BackupError::refused(text));
        }
        let contents = store.part(name, node).await?.ok_or_else(|| {
            let text = "node {node} has copied its part to another place: all nodes and this program need one store";
            BackupError::refused(text.replace("{node}", &node.to_string()))
        })?;
        listed.push(PartContents { group, node, contents });
    }
    listed.sort_by_key(|part| part.group);
    let stored = StoredBackup::Cluster(ClusterContents::new(cut, listed));
    let bytes = stored.nodes().map(|contents| contents.bytes()).sum();
    let stored_bytes = stored.nodes().map(|contents| contents.stored_bytes(name)).sum();
    store.put_contents(name, &stored).await?;
    Ok(BackupSummary { name: name.into(), bytes, stored_bytes })
}
