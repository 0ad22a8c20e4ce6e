//! Checks that all replicas of a partition have the same rows under the same row ids.

use std::collections::BTreeMap;

use junctor_kernel::NodeId;
use junctor_model::id::{PartitionId, RowId};

use crate::cluster::Cluster;

type Rows = Vec<(RowId, Vec<u8>)>;

/// The differences from the first node of each group, one sentence for each partition.
pub fn check_replicas(cluster: &mut Cluster) -> Vec<String> {
    cluster.running_groups().iter().flat_map(|group| check_group(cluster, group)).collect()
}

fn check_group(cluster: &mut Cluster, group: &[NodeId]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some((first, others)) = group.split_first() else { return faults };
    let primary = rows_of(cluster, *first);
    for node in others.iter().copied() {
        let backup = rows_of(cluster, node);
        for (partition, rows) in &primary {
            match backup.get(partition) {
                None => faults.push(format!("node {} has no replica of {partition:?}", node.0)),
                Some(others) if others != rows => {
                    let differing = rows.iter().zip(others).find(|(row, other)| row != other);
                    let (count, other_count) = (rows.len(), others.len());
                    faults.push(format!(
                        "node {}: the replica of {partition:?} has {other_count} rows instead of {count}; first difference: \
                         {differing:?}",
                        node.0
                    ));
                }
                Some(_) => {}
            }
        }
        let extra = backup.keys().find(|partition| !primary.contains_key(partition));
        faults.extend(
            extra.map(|partition| format!("node {} has a replica of an unknown partition: {partition:?}", node.0)),
        );
    }
    faults
}

fn rows_of(cluster: &mut Cluster, node: NodeId) -> BTreeMap<PartitionId, Rows> {
    let mut found = BTreeMap::new();
    for thread in 0..cluster.threads(node) {
        let Some(ldm) = cluster.simulation.host_mut(node, thread).and_then(|host| host.ldm()) else { continue };
        for partition in ldm.partitions() {
            found.insert(partition, ldm.committed_rows(partition).unwrap_or_default());
        }
    }
    found
}
