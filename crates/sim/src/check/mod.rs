//! Checks of the nodes after all clients have disconnected and the cluster is idle.

mod held;
mod replica;
mod schema;

pub use held::check_nothing_held;
pub use replica::check_replicas;
pub use schema::check_schema;

use crate::cluster::Cluster;
use junctor_kernel::{Duration, NodeId};

/// Maximum time for the cluster to become idle.
const REST: Duration = Duration::from_seconds(20);

/// Waits until nothing is held.
///
/// # Errors
/// Everything that is still held after a long time, one sentence each.
pub fn wait_for_rest(cluster: &mut Cluster) -> Result<(), Vec<String>> {
    let end = cluster.simulation.now().plus(REST);
    loop {
        cluster.run_for(Duration::from_millis(100));
        let held = check_nothing_held(cluster);
        if held.is_empty() {
            return Ok(());
        }
        if cluster.simulation.now() >= end {
            return Err(held);
        }
    }
}

/// Waits until nothing is held, then runs all checks.
///
/// # Errors
/// All violations, one sentence each.
pub fn check_at_rest(cluster: &mut Cluster) -> Result<(), Vec<String>> {
    let mut faults = wait_for_rest(cluster).err().unwrap_or_default();
    for (position, shared) in cluster.shared().iter().enumerate() {
        if !cluster.simulation.is_up(NodeId(position as u8 + 1)) {
            continue;
        }
        let (stable, taken) = (shared.sequence().stable(), shared.sequence().taken());
        if stable != taken {
            faults.push(format!(
                "node {}: the stable number is {stable:?}, but the last one taken is {taken:?}",
                position + 1
            ));
        }
    }
    faults.extend(check_partitions(cluster));
    faults.extend(check_replicas(cluster));
    faults.extend(check_schema(cluster));
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check_partitions(cluster: &mut Cluster) -> Vec<String> {
    let mut faults = Vec::new();
    for node in cluster.nodes() {
        for thread in 0..cluster.threads(node) {
            let ldm = cluster.simulation.host_mut(node, thread).and_then(|host| host.ldm());
            if let Some(Err(fault)) = ldm.map(|ldm| ldm.check()) {
                faults.push(format!("node {} thread {thread}: {fault}", node.0));
            }
        }
    }
    faults
}
