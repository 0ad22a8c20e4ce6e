//! Checks that nothing leaked: no connection, session, ticket, operation, snapshot, transaction, lock or
//! wait.

use junctor_node::NodeHost;
use junctor_transaction::ldm::LdmWork;

use crate::cluster::Cluster;

/// The resources that are still held, one sentence each.
pub fn check_nothing_held(cluster: &mut Cluster) -> Vec<String> {
    let mut faults = Vec::new();
    for node in cluster.nodes() {
        for thread in 0..cluster.threads(node) {
            let Some(host) = cluster.simulation.host_mut(node, thread) else { continue };
            for (what, count) in held_by(host).into_iter().filter(|&(_, count)| count > 0) {
                faults.push(format!("node {} thread {thread} still has {what}: {count}", node.0));
            }
        }
    }
    faults
}

fn held_by(host: &NodeHost) -> Vec<(&'static str, u64)> {
    let mut held = Vec::new();
    if let Some(recv) = host.recv() {
        held.push(("connections", recv.connection_count() as u64));
    }
    if let Some(sql) = host.sql() {
        held.extend(sql.held().map(|(what, count)| (what, count as u64)));
    }
    if let Some(main) = host.main() {
        let (locks, waits) = main.user_locks_held();
        held.extend([("user-level locks", locks as u64), ("waits for user-level locks", waits as u64)]);
        held.push(("tables locked by LOCK TABLES", main.table_locks_held() as u64));
        held.extend(main.held_by_alterations().map(|(what, count)| (what, count as u64)));
    }
    if let Some(tc) = host.tc() {
        held.push(("transactions", tc.transactions_open() as u64));
    }
    if let Some(ldm) = host.ldm() {
        let LdmWork { participants, lock_requests, waiting_writes, deferred, backed_up, parked } = ldm.work();
        held.extend([
            ("participants", participants as u64),
            ("lock requests", lock_requests as u64),
            ("waiting writes", waiting_writes as u64),
            ("deferred work items", deferred as u64),
            ("row images for backups", backed_up as u64),
            ("signals of a later epoch", parked as u64),
            ("versions to purge", ldm.purge_queue()),
        ]);
    }
    held
}
