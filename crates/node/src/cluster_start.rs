//! The start of a node of a cluster: its life, its voter's files, and its links.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use junctor_cluster::member::node_file::{NEW_NODE_FILE, NODE_FILE, NodeFile, VOTER_FILES};
use junctor_cluster::member::{LogLines, MemberSettings, VoterStart};
use junctor_consensus::{recover, voter_of};
use junctor_kernel::transport::security::LinkSecurity;
use junctor_kernel::{Duration, LinkFigures, LinkOptions, NodeId};
use junctor_model::id::{Epoch, Incarnation};
use junctor_model::stored_identity::{RESTORED_FILE, RESTORED_NODE};
use junctor_signals::Module;
use junctor_tls::session::Tls;

use crate::cluster_config::{ClusterPlan, read_certificates, resolve};
use crate::cluster_join::{keep, shared_settings};
use crate::data_folder::{failed, sync};
use crate::setting::NodeConfig;
use crate::start::StartError;

/// 2025-01-01 in seconds since 1970-01-01. Lives count from here at least, so that a node whose directory is
/// lost does not repeat one.
const FIRST_LIFE_S: u64 = 1_735_689_600;
/// Lines for the log that wait to be written. Further ones are dropped.
const LOG_LINES_MAX: usize = 1024;

/// The additional parts of a node that is in a cluster.
pub(crate) struct ClusterStart {
    pub settings: Arc<MemberSettings>,
    pub links: LinkOptions,
    pub log_lines: LogLines,
}

/// Whether the directory was restored from the backup of a node alone.
fn is_of_node_alone(data: &Path) -> bool {
    let restored = fs::read_to_string(data.join(RESTORED_FILE)).unwrap_or_default();
    restored.lines().nth(1) == Some(RESTORED_NODE)
}

/// Begins the next life of the node, whose folder is locked.
///
/// # Errors
/// The folder belongs to another node or is damaged, an address is not available, or a certificate is wrong.
pub(crate) fn begin(config: &NodeConfig, plan: &ClusterPlan) -> Result<ClusterStart, StartError> {
    let data = Path::new(config.data_folder());
    keep(config).map_err(|error| failed("write", data, &error))?;
    let file = begin_life(data, plan)?;
    let (cluster, own) = (plan.cluster, plan.own.node);
    let settings = MemberSettings {
        cluster,
        own,
        incarnation: file.incarnation,
        nodes: plan.nodes.clone().into(),
        replicas: config.cluster.replicas,
        started: file.started,
        voter: read_voter(data, own)?,
        silence_max: Duration::from_millis(u64::from(config.cluster.silence_max_ms)),
        cut_max: Duration::from_millis(u64::from(config.cluster.cut_max_ms)),
        standstill_max: Duration::from_millis(u64::from(config.cluster.standstill_max_ms)),
        partial_start_after: Duration::from_millis(u64::from(config.cluster.partial_start_ms)),
    };
    let is_first_of_cluster = settings.groups().len() == 1 && settings.beside().is_none();
    if !is_first_of_cluster && file.started == Epoch(0) && is_of_node_alone(data) {
        return Err(StartError(format!(
            "the data directory {} was restored from the backup of a node alone, which can become a cluster of one \
             node group; add groups and replicas later",
            data.display()
        )));
    }
    let listener = TcpListener::bind(plan.link_address)
        .map_err(|error| StartError(format!("cannot listen on {} for the other nodes: {error}", plan.link_address)))?;
    let links = LinkOptions {
        cluster,
        key: plan.key.clone(),
        incarnation: file.incarnation.0,
        listener: Arc::new(listener),
        peers: peers(plan)?,
        channels: config.cluster.channels,
        watcher: (Module::Main.into(), 0),
        introduction: shared_settings(&config.cluster, plan).into_bytes().into(),
        security: security(config)?,
        figures: LinkFigures::default(),
    };
    Ok(ClusterStart { settings: Arc::new(settings), links, log_lines: write_log_lines()? })
}

/// The nodes with links to this one.
fn peers(plan: &ClusterPlan) -> Result<Vec<(NodeId, std::net::SocketAddr)>, StartError> {
    let others = plan.nodes.iter().filter(|it| plan.own.is_linked_with(it));
    others.map(|it| Ok((it.node, resolve(&it.address).map_err(StartError)?))).collect()
}

fn security(config: &NodeConfig) -> Result<Option<Arc<dyn LinkSecurity>>, StartError> {
    let Some([authority, certificate, key]) = read_certificates(&config.cluster).map_err(StartError)? else {
        return Ok(None);
    };
    let tls = Tls::new(&authority, &certificate, &key)
        .map_err(|error| StartError(format!("the certificates of this node cannot be used: {error}")))?;
    Ok(Some(Arc::new(tls)))
}

/// Makes the next life of the node durable.
fn begin_life(data: &Path, plan: &ClusterPlan) -> Result<NodeFile, StartError> {
    let path = data.join(NODE_FILE);
    let (cluster, node) = (plan.cluster, plan.own.node);
    let before = match fs::read(&path) {
        Ok(bytes) => NodeFile::decode(&bytes).map_err(|error| StartError(format!("{}: {error}", path.display())))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            NodeFile { cluster, node, incarnation: Incarnation(0), started: Epoch(0) }
        }
        Err(error) => return Err(failed("read", data, &error)),
    };
    if before.node != node {
        return Err(StartError(format!(
            "the data directory {} belongs to node {}, not to node {}",
            data.display(),
            before.node.0,
            node.0
        )));
    }
    if before.cluster != cluster {
        return Err(StartError(format!("the data directory {} belongs to a cluster of another name", data.display())));
    }
    #[allow(clippy::disallowed_methods, reason = "before the node's threads run")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let by_clock = u32::try_from(now.saturating_sub(FIRST_LIFE_S)).unwrap_or(0);
    let incarnation = Incarnation(before.incarnation.0.saturating_add(1).max(by_clock));
    let file = NodeFile { incarnation, ..before };
    let new = data.join(NEW_NODE_FILE);
    let written = File::create(&new).and_then(|mut it| it.write_all(&file.encode()).and_then(|()| it.sync_all()));
    written.and_then(|()| fs::rename(&new, &path)).map_err(|error| failed("write", data, &error))?;
    sync(data)?;
    Ok(file)
}

/// The log of the node's voter, if it has one.
fn read_voter(data: &Path, own: NodeId) -> Result<VoterStart, StartError> {
    let mut files = [Vec::new(), Vec::new()];
    for (bytes, name) in files.iter_mut().zip(VOTER_FILES) {
        match fs::read(data.join(name)) {
            Ok(read) => *bytes = read,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", data, &error)),
        }
    }
    let files = [&files[0][..], &files[1][..]];
    let Some(voter) = voter_of(files) else { return Ok(VoterStart::Nothing) };
    if NodeId(voter.0 as u8) != own {
        return Err(StartError(format!("the data directory {} has the log of another voter", data.display())));
    }
    let recovered = recover(voter, files).map_err(|error| {
        let advice = "remove consensus.0 and consensus.1 from it, and the node gets a new voter";
        StartError(format!("the data directory {}: {error}; {advice}", data.display()))
    })?;
    Ok(recovered.map_or(VoterStart::Nothing, |log| VoterStart::Recovered { voter: voter.0, log }))
}

/// Starts the thread that writes lines to the log. It ends with the blocks that have lines.
fn write_log_lines() -> Result<LogLines, StartError> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<String>(LOG_LINES_MAX);
    let thread = std::thread::Builder::new().name("log_lines".into());
    let started = thread.spawn(move || receiver.into_iter().for_each(|line| eprintln!("level=info {line}")));
    started.map_err(|error| StartError(format!("cannot start a thread: {error}")))?;
    Ok(LogLines::to(sender))
}
