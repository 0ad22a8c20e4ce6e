//! Makes one data directory of the parts of a cluster's backup.
//!
//! The directory has the partitions of all node groups. A node alone serves all of them. A data node of a
//! cluster loads and replays those of its group, and ignores the others, so the number of nodes and of groups
//! may differ from that of the cluster that was copied.
//!
//! [`checkpoint`] gives the files of all checkpoints numbers of their own. [`log`] writes the records of all
//! logs to one new log, up to the cut of the backup. Both store the node groups of each table ([`place`]).

mod checkpoint;
mod log;

use junctor_model::id::CommitNumber;
use junctor_model::schema::Placement;
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_model::stored_schema::DictionaryChange;
use junctor_model::stored_settings::SETTINGS_USE;
use junctor_storage::log::encode_slot;

use crate::BackupError;
use crate::clock::utc_text;
use crate::contents::ClusterContents;
use crate::object::read_object;
use crate::restore::{RestoreSummary, Target};
use crate::store::BackupStore;

/// Writes everything but the identity.
pub async fn write(
    store: &BackupStore,
    name: &str,
    cluster: &ClusterContents,
    target: Target<'_>,
) -> Result<RestoreSummary, BackupError> {
    let cut = CommitNumber(cluster.cut);
    let first = cluster.parts.first().ok_or_else(|| BackupError::refused("the backup has no parts"))?;
    let merged = checkpoint::write(store, name, cluster, target).await?;
    if merged.newest > cut {
        let text = format!("the checkpoint holds commit {}, but the backup ends at commit {cut}", merged.newest);
        return Err(BackupError::refused(text));
    }
    log::write(store, name, cluster, (&merged, target)).await?;
    if let Some((schema, partitions)) = merged.lists {
        let manifest = Manifest {
            generation: 1,
            log_id: target.log_id,
            begin: merged.begin,
            newest: merged.newest,
            replay_from: 0,
            lists: ListPlace::Files { schema, partitions },
            next_file: merged.next_file,
            files: merged.files,
        };
        target.write_file("manifest.1", &encode_slot(MANIFEST_USE, 1, &manifest.encode()))?;
    }
    if let Some(object) = &first.contents.settings {
        let content = read_object(store, name, object, Vec::new()).await?;
        target.write_file("settings.1", &encode_slot(SETTINGS_USE, 1, &content))?;
    }
    let until_us = cluster.parts.iter().map(|part| part.contents.log.wall_clock_us).min();
    Ok(RestoreSummary { name: name.into(), last_commit: cut, until: utc_text(until_us.unwrap_or(0)) })
}

/// Gives each table its node groups in the new cluster. The result depends on the table's id alone, so a
/// later change of a table keeps its partitions where they are.
///
/// The version of the schema grows by the number of groups. So nodes that are restored for different numbers
/// of groups do not start together: the schema of one of them is behind.
fn place(change: &mut DictionaryChange, groups: u8) {
    change.version += u64::from(groups);
    for table in change.tables.iter_mut().filter(|table| table.partition_count > 0) {
        let first = (table.id.0 % u32::from(groups)) as u8;
        table.placement = Some(Placement { first, groups });
    }
}

#[cfg(test)]
mod tests;
