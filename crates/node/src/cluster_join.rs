//! `--join`: a node asks a member for the settings that all nodes of a cluster share.
//!
//! The answer is kept in the data directory. The next start uses it if the member is away then.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use junctor_kernel::transport::hello::ClusterKey;
use junctor_kernel::transport::introduction::{INTRODUCTION_BYTES_MAX, question, read_answer};

use crate::cluster_config::{ClusterConfig, ClusterPlan, read_key, resolve};
use crate::config_file::read_text;
use crate::setting::NodeConfig;

/// The file with the settings of the last answer.
pub(crate) const SHARED_SETTINGS: &str = "cluster.toml";
/// Maximum time for the connection, and for the answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The settings that all nodes share, as a node tells them to others.
pub(crate) fn shared_settings(cluster: &ClusterConfig, plan: &ClusterPlan) -> String {
    let nodes = plan.nodes.iter().map(|it| {
        let entry = format!("{} {} {} {}", it.node.0, it.roles, it.address, it.domain);
        format!("    {:?},\n", entry.trim_end())
    });
    format!(
        "cluster_name = {:?}\nNoOfReplicas = {}\nlinks_per_node = {}\nnode_silence_max_ms = {}\nnode_cut_max_ms = {}\n\
         node_standstill_max_ms = {}\nStartPartialTimeout = {}\nnodes = [\n{}]\n",
        cluster.name,
        cluster.replicas,
        cluster.channels,
        cluster.silence_max_ms,
        cluster.cut_max_ms,
        cluster.standstill_max_ms,
        cluster.partial_start_ms,
        nodes.collect::<String>()
    )
}

/// Completes the configuration of a node that asks a member. Returns a notice if the member did not answer.
///
/// # Errors
/// The member refuses the node, or does not answer and has never done so.
pub(crate) fn complete(config: &mut NodeConfig) -> Result<Option<String>, String> {
    let Some(address) = config.cluster.join.clone() else { return Ok(None) };
    if !config.cluster.nodes.is_empty() {
        return Err("a node that joins gets the nodes from the member that it asks: remove `nodes`".into());
    }
    if config.cluster.tls.iter().any(Option::is_some) {
        return Err("a question of --join is not encrypted: set `nodes` instead, if links are encrypted".into());
    }
    let key =
        read_key(config.cluster.key_file.as_deref().ok_or("--join needs the cluster's key: --cluster-key-file")?)?;
    let file = Path::new(config.data_folder()).join(SHARED_SETTINGS);
    let (text, notice) = match ask(&address, &key) {
        Ok(text) => (text, None),
        Err(error) => match std::fs::read_to_string(&file) {
            Ok(text) => (text, Some(format!("{error}; the node starts with the settings of the last answer"))),
            Err(_) => return Err(error),
        },
    };
    read_text(&format!("settings of {address}"), &text, config).map_err(|error| error.0)?;
    config.cluster.introduction = Some(text);
    let own = config.cluster.node_id;
    match config.cluster.nodes.iter().any(|it| Some(it.node.0) == own) {
        true => Ok(notice),
        false => Err(format!(
            "node {} is none of the nodes of the cluster at {address}; add it to `nodes` of all members, and start \
             them again",
            own.map_or_else(|| "without a number".into(), |own| own.to_string())
        )),
    }
}

/// Keeps the answer of a member, once the folder is locked.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn keep(config: &NodeConfig) -> std::io::Result<()> {
    let Some(text) = &config.cluster.introduction else { return Ok(()) };
    let folder = Path::new(config.data_folder());
    let new = folder.join("cluster.toml.new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, folder.join(SHARED_SETTINGS))
}

fn ask(address: &str, key: &ClusterKey) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot ask the member at {address}: {error}");
    let mut nonce = [0; 32];
    std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut nonce)).map_err(failed)?;
    let mut stream = TcpStream::connect_timeout(&resolve(address)?, WAIT_MAX).map_err(failed)?;
    stream.set_read_timeout(Some(WAIT_MAX)).map_err(failed)?;
    let question = question(key, &nonce);
    stream.write_all(&question).map_err(failed)?;
    let mut answer = Vec::new();
    stream.take(2 * INTRODUCTION_BYTES_MAX as u64).read_to_end(&mut answer).map_err(failed)?;
    if answer.is_empty() {
        return Err(format!(
            "the member at {address} closed the connection: the keys differ, its links are encrypted, or it is no node"
        ));
    }
    let text = read_answer(key, &question, &answer).map_err(|refusal| format!("the answer of {address}: {refusal}"))?;
    String::from_utf8(text.to_vec()).map_err(|_| format!("the answer of {address} is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_config::{parse_node, plan};

    #[test]
    fn a_node_reads_what_another_tells() {
        let mut config = NodeConfig { is_durable: true, ..NodeConfig::default() };
        let folder = std::env::temp_dir().join(format!("junctor-join-{}", std::process::id()));
        std::fs::write(&folder, "ab".repeat(32)).unwrap();
        let cluster = &mut config.cluster;
        (cluster.node_id, cluster.key_file) = (Some(1), Some(folder.to_str().unwrap().into()));
        (cluster.name, cluster.replicas, cluster.channels) = ("a \"b\"".into(), 1, 3);
        cluster.nodes = ["1 all 127.0.0.1:4101 x", "2 sql 127.0.0.1:4102"].map(|it| parse_node(it).unwrap()).to_vec();
        let text = shared_settings(&config.cluster, &plan(&config).unwrap().unwrap());
        let mut other = NodeConfig::default();
        read_text("answer", &text, &mut other).unwrap();
        assert_eq!((other.cluster.nodes, other.cluster.name), (config.cluster.nodes.clone(), "a \"b\"".into()));
        assert_eq!((other.cluster.replicas, other.cluster.channels), (1, 3));
    }
}
