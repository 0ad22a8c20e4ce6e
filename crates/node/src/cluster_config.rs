//! The settings of a node of a cluster, and what they mean together.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

pub use junctor_cluster::member::{MemberNode, Roles};
use junctor_cluster::membership::{MEMBERS_MAX, REPLICAS_MAX};
use junctor_kernel::NodeId;
use junctor_kernel::transport::hello::ClusterKey;

use crate::setting::NodeConfig;

/// The settings of a node of a cluster, as they are written. None of them is set for a node alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The number of this node, from 1.
    pub node_id: Option<u8>,
    /// The roles of this node, if `nodes` does not name them.
    pub role: Option<Roles>,
    /// The name of the cluster.
    pub name: String,
    /// The file with the key of the cluster.
    pub key_file: Option<String>,
    /// The nodes of the cluster. This node may be left out if `role` and `link_address` are set.
    pub nodes: Vec<MemberNode>,
    /// A member that knows the nodes.
    pub join: Option<String>,
    /// Where this node listens for links, if not at its address in `nodes`.
    pub link_address: Option<String>,
    /// The location domain of this node, if `nodes` does not say it.
    pub location_domain: String,
    /// Number of data nodes that form a group. More may be added to each group.
    pub replicas: u8,
    /// Channels between two nodes.
    pub channels: u8,
    /// Silence in milliseconds after which a node is evicted.
    pub silence_max_ms: u32,
    /// Time in milliseconds after which a node is evicted whose system has begun to answer no connection.
    pub cut_max_ms: u32,
    /// Time in milliseconds without progress after which a node is evicted.
    pub standstill_max_ms: u32,
    /// How long a start of all data nodes waits for missing ones, in milliseconds.
    pub partial_start_ms: u32,
    /// Files in PEM: the certificate of the authority, the own certificate, and its private key.
    pub tls: [Option<String>; 3],
    /// The answer of the member that was asked.
    pub introduction: Option<String>,
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        ClusterConfig {
            node_id: None,
            role: None,
            name: "junctor".into(),
            key_file: None,
            nodes: Vec::new(),
            join: None,
            link_address: None,
            location_domain: String::new(),
            replicas: 2,
            channels: 1,
            silence_max_ms: 400,
            cut_max_ms: 0,
            standstill_max_ms: 5_000,
            partial_start_ms: 30_000,
            tls: [None, None, None],
            introduction: None,
        }
    }
}

/// The names of the settings of certificates, in the order of [`ClusterConfig::tls`].
pub const TLS_SETTINGS: [&str; 3] = ["tls_authority", "tls_certificate", "tls_private_key"];

/// The checked settings of a node of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// This node.
    pub own: MemberNode,
    /// All nodes, ascending.
    pub nodes: Vec<MemberNode>,
    /// The number of the cluster, made of its name.
    pub cluster: u128,
    /// The key of the cluster.
    pub key: ClusterKey,
    /// Where this node listens for links.
    pub link_address: SocketAddr,
}

/// Reads `ID ROLES HOST:PORT [DOMAIN]`.
pub fn parse_node(text: &str) -> Option<MemberNode> {
    let mut words = text.split_whitespace();
    let node: u8 = words.next()?.parse().ok()?;
    let roles = Roles::named(words.next()?)?;
    let address = words.next().filter(|address| is_address(address))?;
    let domain = words.next().unwrap_or_default();
    let is_whole = node > 0 && words.next().is_none();
    is_whole.then(|| MemberNode { node: NodeId(node), roles, address: address.into(), domain: domain.into() })
}

/// Whether a text has the form `HOST:PORT`.
pub fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// The checked settings of a node of a cluster; `None` for a node alone.
///
/// # Errors
/// The settings contradict each other, or a file cannot be read.
pub fn plan(config: &NodeConfig) -> Result<Option<ClusterPlan>, String> {
    let cluster = &config.cluster;
    let Some(node_id) = cluster.node_id else {
        return match *cluster == ClusterConfig::default() {
            true => Ok(None),
            false => Err("a node of a cluster needs its number: set node_id, or use --node-id".into()),
        };
    };
    let key = read_key(cluster.key_file.as_deref().ok_or(
        "a node of a cluster needs the cluster's key: set cluster_key_file, or use --cluster-key-file; `junctor \
         admin key FILE` makes one",
    )?)?;
    let nodes = nodes(cluster, NodeId(node_id))?;
    let own = nodes.iter().find(|it| it.node.0 == node_id).cloned();
    let own = own.ok_or_else(|| format!("node {node_id} is none of the nodes of the cluster"))?;
    if cluster.role.is_some_and(|role| role != own.roles) {
        return Err(format!("node {node_id} has the roles {} in `nodes`, and others in `role`", own.roles));
    }
    check_nodes(&nodes, cluster.replicas)?;
    if own.roles.data && !config.is_durable {
        return Err(
            "a data node of a cluster keeps its data on disk: --in-memory and Diskless are not supported".into()
        );
    }
    if cluster.tls.iter().any(Option::is_some) && cluster.tls.iter().any(Option::is_none) {
        return Err(format!("encrypted links need all of {}", TLS_SETTINGS.join(", ")));
    }
    let link_address = resolve(cluster.link_address.as_deref().unwrap_or(&own.address))?;
    let cluster = cluster_number(&cluster.name);
    Ok(Some(ClusterPlan { own, nodes, cluster, key, link_address }))
}

/// All nodes with this one, ascending.
fn nodes(cluster: &ClusterConfig, own: NodeId) -> Result<Vec<MemberNode>, String> {
    let mut nodes = cluster.nodes.clone();
    if nodes.iter().all(|it| it.node != own)
        && let (Some(roles), Some(address)) = (cluster.role, &cluster.link_address)
    {
        let (address, domain) = (address.as_str().into(), cluster.location_domain.as_str().into());
        nodes.push(MemberNode { node: own, roles, address, domain });
    }
    nodes.sort_by_key(|it| it.node);
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].node == pair[1].node) {
        return Err(format!("`nodes` names node {} twice", pair[0].node.0));
    }
    Ok(nodes)
}

fn check_nodes(nodes: &[MemberNode], replicas: u8) -> Result<(), String> {
    let (joining, forming): (Vec<&MemberNode>, Vec<&MemberNode>) =
        nodes.iter().filter(|it| it.roles.data).partition(|it| it.roles.joins.is_some());
    let (added, first): (Vec<&MemberNode>, Vec<&MemberNode>) = forming.into_iter().partition(|it| it.roles.added);
    if first.is_empty() {
        return Err("`nodes` has no node with the role data".into());
    }
    let count = first.len() + added.len() + joining.len();
    if count > MEMBERS_MAX {
        return Err(format!("`nodes` has {count} data nodes, and {MEMBERS_MAX} are possible"));
    }
    for (data, what) in [(first.len(), "data nodes"), (added.len(), "added data nodes")] {
        if !data.is_multiple_of(usize::from(replicas)) {
            return Err(format!(
                "{data} {what} do not form groups of {replicas} replicas; change `nodes` or NoOfReplicas"
            ));
        }
    }
    if let (Some(added), Some(last)) = (added.first(), first.last())
        && added.node < last.node
    {
        return Err(format!(
            "node {} is added, so its number must be above {}, the last of the other data nodes",
            added.node.0, last.node.0
        ));
    }
    let groups = (first.len() + added.len()) / usize::from(replicas);
    for it in &joining {
        let group = it.roles.joins.unwrap_or_default();
        if usize::from(group) >= groups {
            return Err(format!("node {} is added to node group {group}, and `nodes` has {groups}", it.node.0));
        }
        let count = usize::from(replicas) + joining.iter().filter(|other| other.roles.joins == it.roles.joins).count();
        if count > REPLICAS_MAX {
            return Err(format!("node group {group} has {count} nodes in `nodes`, and {REPLICAS_MAX} are possible"));
        }
    }
    let addresses = || nodes.iter().map(|it| &it.address);
    match nodes.iter().find(|it| addresses().filter(|address| **address == it.address).count() > 1) {
        Some(it) => Err(format!("two nodes have the address {}", it.address)),
        None => Ok(()),
    }
}

/// The socket address of `HOST:PORT`.
///
/// # Errors
/// The name is unknown.
pub fn resolve(address: &str) -> Result<SocketAddr, String> {
    let mut found = address.to_socket_addrs().map_err(|error| format!("cannot find the address {address}: {error}"))?;
    found.next().ok_or_else(|| format!("the name of {address} has no address"))
}

/// Reads a key: 64 hexadecimal digits.
pub(crate) fn read_key(file: &str) -> Result<ClusterKey, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read the cluster's key: {file}: {error}"))?;
    parse_key(text.trim()).ok_or_else(|| format!("{file} is no key of a cluster: it must have 64 hexadecimal digits"))
}

fn parse_key(text: &str) -> Option<ClusterKey> {
    let mut key = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(ClusterKey(key))
}

/// The number of the cluster with this name. It protects against mistakes; the key protects against
/// strangers.
fn cluster_number(name: &str) -> u128 {
    // FNV-1a: the number must never change.
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
    name.bytes().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, step)
}

/// Reads the three files of certificates. `None` without encryption.
///
/// # Errors
/// A file cannot be read.
pub fn read_certificates(cluster: &ClusterConfig) -> Result<Option<[String; 3]>, String> {
    let [Some(authority), Some(certificate), Some(key)] = &cluster.tls else { return Ok(None) };
    let read = |file: &String| {
        std::fs::read_to_string(Path::new(file)).map_err(|error| format!("cannot read the certificate {file}: {error}"))
    };
    Ok(Some([read(authority)?, read(certificate)?, read(key)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read() {
        let node = parse_node("3 data,sql db3.example:4100 eu-1").unwrap();
        assert_eq!(
            (node.node, node.roles.to_string(), &*node.address),
            (NodeId(3), "data,sql".into(), "db3.example:4100")
        );
        assert_eq!(&*node.domain, "eu-1");
        for text in
            ["", "0 data a:1", "256 data a:1", "1 data", "1 data a", "1 data a:b", "1 king a:1", "1 data a:1 b c"]
        {
            assert_eq!(parse_node(text), None, "{text}");
        }
    }

    #[test]
    fn keys_are_read() {
        assert_eq!(parse_key(&"0f".repeat(32)), Some(ClusterKey([15; 32])));
        assert_eq!(parse_key(&"0f".repeat(31)), None);
        assert_eq!(parse_key(&"0g".repeat(32)), None);
    }

    fn config(change: impl Fn(&mut ClusterConfig)) -> NodeConfig {
        // Tests run at the same time, so each has a file of its own.
        let thread = std::thread::current().id();
        let folder = std::env::temp_dir().join(format!("junctor-key-{}-{thread:?}", std::process::id()));
        std::fs::write(&folder, "ab".repeat(32)).unwrap();
        let mut config = NodeConfig { is_durable: true, ..NodeConfig::default() };
        config.cluster.node_id = Some(1);
        config.cluster.key_file = Some(folder.to_str().unwrap().into());
        let nodes = ["1 data 127.0.0.1:4101", "2 data 127.0.0.1:4102", "3 management 127.0.0.1:4103"];
        config.cluster.nodes = nodes.iter().map(|text| parse_node(text).unwrap()).collect();
        change(&mut config.cluster);
        config
    }

    fn error(change: impl Fn(&mut ClusterConfig)) -> String {
        plan(&config(change)).unwrap_err()
    }

    #[test]
    fn a_node_without_these_settings_is_alone() {
        assert!(plan(&NodeConfig::default()).unwrap().is_none());
        assert!(error(|cluster| cluster.node_id = None).contains("--node-id"));
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        let plan = plan(&config(|_| ())).unwrap().unwrap();
        assert_eq!((plan.own.node, plan.link_address.port()), (NodeId(1), 4101));
        assert!(error(|cluster| cluster.key_file = None).contains("cluster_key_file"));
        assert!(error(|cluster| cluster.node_id = Some(9)).contains("node 9 is none of the nodes"));
        assert!(error(|cluster| cluster.role = Roles::named("sql")).contains("roles data"));
        assert!(error(|cluster| cluster.replicas = 3).contains("groups of 3 replicas"));
        assert!(error(|cluster| cluster.nodes[1].node = NodeId(1)).contains("twice"));
        let with_nodes = |count: u8, roles: &str| {
            config(|cluster| {
                let of =
                    |node: u8| parse_node(&format!("{node} {roles} 127.0.0.1:{}", 4200 + u16::from(node))).unwrap();
                cluster.nodes.extend((0..count).map(|index| of(index + 4)));
            })
        };
        assert!(super::plan(&with_nodes(62, "data,added")).is_ok());
        for roles in ["data", "data,added"] {
            let refused = super::plan(&with_nodes(64, roles)).unwrap_err();
            assert!(refused.contains("has 66 data nodes, and 64 are possible"), "{refused}");
        }
        let add = |node: &str| {
            let node = parse_node(node).unwrap();
            error(|cluster| cluster.nodes.push(node.clone()))
        };
        assert!(add("4 data,added 127.0.0.1:4104").contains("1 added data nodes do not form groups of 2"));
        assert!(add("4 data,added:1 127.0.0.1:4104").contains("node 4 is added to node group 1, and `nodes` has 1"));
        assert!(super::plan(&with_nodes(2, "data,added:0")).is_ok(), "they are no group");
        let refused = super::plan(&with_nodes(3, "data,added:0")).unwrap_err();
        assert!(refused.contains("node group 0 has 5 nodes in `nodes`, and 4 are possible"), "{refused}");
        assert!(
            error(|cluster| {
                cluster.replicas = 1;
                cluster.nodes[0].roles.added = true;
            })
            .contains("node 1 is added, so its number must be above 2")
        );
        assert!(error(|cluster| cluster.nodes[1].address = "127.0.0.1:4101".into()).contains("two nodes"));
        assert!(error(|cluster| cluster.tls[0] = Some("a".into())).contains("tls_private_key"));
        let mut in_memory = config(|_| ());
        in_memory.is_durable = false;
        assert!(super::plan(&in_memory).unwrap_err().contains("--in-memory"));
    }

    #[test]
    fn a_node_adds_itself_to_the_others() {
        let plan = plan(&config(|cluster| {
            cluster.node_id = Some(4);
            cluster.role = Roles::named("sql");
            cluster.link_address = Some("127.0.0.1:4104".into());
        }));
        let plan = plan.unwrap().unwrap();
        assert_eq!((plan.nodes.len(), &*plan.own.address), (4, "127.0.0.1:4104"));
    }
}
