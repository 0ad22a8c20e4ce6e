//! Checks the schema: no index is incomplete, every table has its partitions, and dropped tables left none
//! behind.

use std::collections::BTreeSet;

use junctor_model::id::PartitionId;
use junctor_model::schema::IndexState;
use junctor_signals::start_epoch::LateNodes;

use crate::cluster::Cluster;

/// All inconsistencies, one sentence each.
pub fn check_schema(cluster: &mut Cluster) -> Vec<String> {
    let mut faults = Vec::new();
    let mut all = BTreeSet::new();
    let catalog = cluster.catalog();
    for layout in catalog.dictionary.tables() {
        let definition = &layout.definition;
        for index in definition.indexes.iter().filter(|index| index.state == IndexState::Building) {
            faults.push(format!("index {} of table {} is incomplete", index.name, definition.name));
        }
        all.extend((0..definition.partition_count).map(|index| PartitionId { table: definition.id, index }));
    }
    if let Some(members) = cluster.members() {
        let version = catalog.dictionary.version;
        let clients = members.serving_clients();
        for node in cluster.running() {
            for thread in 0..cluster.threads(node) {
                let Some(host) = cluster.simulation.host_mut(node, thread) else { continue };
                let sql = host.sql().filter(|_| clients.contains(&node)).map(|sql| sql.schema_version());
                let tc = host.tc().filter(|_| members.data().contains(&node)).map(|tc| tc.schema_version());
                if sql.into_iter().chain(tc).any(|found| found != version) {
                    faults.push(format!(
                        "node {} thread {thread}: schema versions {sql:?} and {tc:?} instead of {version}",
                        node.0
                    ));
                }
            }
        }
    }
    let members = cluster.members();
    let membership = members.and_then(|members| members.membership(&mut cluster.simulation));
    // Catalogs do not name the replicas that were added to a group.
    let added = membership.map(|it| LateNodes::new(&[], &it.added_replicas())).unwrap_or_default();
    for node in cluster.running() {
        let mut found = BTreeSet::new();
        for thread in 0..cluster.threads(node) {
            let ldm = cluster.simulation.host_mut(node, thread).and_then(|host| host.ldm());
            found.extend(ldm.map(|ldm| ldm.partitions()).unwrap_or_default());
        }
        let is_here = |partition: &PartitionId| {
            catalog.distribution.chain(*partition).is_none_or(|chain| added.replica_on(chain, node).is_some())
        };
        let wanted: BTreeSet<PartitionId> = all.iter().copied().filter(is_here).collect();
        if found != wanted {
            let missing: Vec<_> = wanted.difference(&found).collect();
            let left: Vec<_> = found.difference(&wanted).collect();
            faults.push(format!("node {}: partitions missing: {missing:?}, left over: {left:?}", node.0));
        }
    }
    faults
}
