//! The commands that show a cluster, and stop and restart its nodes.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::io::Write;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};

use super::Result;
use super::nodes::{self, NODES, Node, obstacle};
use super::session::{LoginOptions, ServerError, Session};
use super::table::Table;

/// Shown after the options of `junctor admin rolling-restart`.
pub const ROLLING_HELP: &str = "\
Management nodes come first, then data nodes, then SQL nodes; the node that the command is connected to comes last.
Before each one, all data nodes serve and have their rows on disk, each group has at least two of them, and the other
voters are a majority; otherwise the command refuses to begin, or waits. The restart of a data node ends when it serves
again with its rows on disk. A SQL node counts as restarted when its links are up, which is a moment before it takes
clients: with few SQL nodes, clients may find none for that moment. Clients of a SQL node lose their connections once.
Every process needs a supervisor that starts it again after status 16: systemd, or `junctor dev`.

Try it:
  junctor admin rolling-restart --host 10.0.0.4 --user root --password-file root.password";

/// Interval between two looks at the cluster.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Maximum time until the state of a node is known.
const STATE_MAX: Duration = Duration::from_secs(10);

/// Where to log in, and how to print.
#[derive(Debug, Args)]
pub struct Common {
    #[command(flatten)]
    pub login: LoginOptions,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The options of `junctor admin show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    #[command(flatten)]
    common: Common,
}

/// The options of `junctor admin status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    /// Show this node only
    #[arg(value_name = "NODE", value_parser = value_parser!(u8).range(1..))]
    node: Option<u8>,
    #[command(flatten)]
    common: Common,
}

/// The options of `junctor admin events`.
#[derive(Debug, Args)]
pub struct EventsOptions {
    /// Show what this node has seen
    #[arg(long, value_name = "NODE", value_parser = value_parser!(u8).range(1..))]
    node: Option<u8>,
    /// Show events of this kind, such as EVICTED
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<String>,
    /// Maximum number of events
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

/// The options of `junctor admin stop`.
#[derive(Debug, Args)]
pub struct StopOptions {
    /// The node
    #[arg(value_name = "NODE", value_parser = value_parser!(u8).range(1..))]
    node: u8,
    /// Stop it although its node group then has no replica that serves
    #[arg(long)]
    force: bool,
    /// Maximum time until the node has left, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    common: Common,
}

/// The options of `junctor admin restart`.
#[derive(Debug, Args)]
pub struct RestartOptions {
    /// The node
    #[arg(value_name = "NODE", value_parser = value_parser!(u8).range(1..))]
    node: u8,
    /// Restart it although its node group then has no replica that serves
    #[arg(long)]
    force: bool,
    /// Maximum time until the node serves again, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    common: Common,
}

/// The options of `junctor admin rolling-restart`.
#[derive(Debug, Args)]
pub struct RollingOptions {
    /// Maximum time for each node, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    common: Common,
}

fn kind(text: &str) -> std::result::Result<String, String> {
    let is_kind = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_kind { Ok(text.to_ascii_uppercase()) } else { Err("letters only, such as EVICTED".into()) }
}

/// Prints tables with their names.
fn print(tables: &[(&str, Table)], is_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        let object: serde_json::Map<String, serde_json::Value> =
            tables.iter().map(|(name, table)| ((*name).to_owned(), table.json())).collect();
        writeln!(out, "{}", serde_json::Value::Object(object))?;
        return Ok(());
    }
    for (index, (name, table)) in tables.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let title = name.replace('_', " ");
        match table.rows.is_empty() {
            true => writeln!(out, "{gap}{title}: none")?,
            false => write!(out, "{gap}{title}:\n{}", table.text())?,
        }
    }
    Ok(())
}

/// `junctor admin show`.
pub fn show(options: &ShowOptions) -> Result<()> {
    let mut session = Session::open(&options.common.login)?;
    let nodes = session.query(NODES)?;
    let groups = session.query("SELECT * FROM junctor_info.node_groups ORDER BY node_group")?;
    print(&[("nodes", nodes), ("node_groups", groups)], options.common.json)
}

/// `junctor admin status`.
pub fn status(options: &StatusOptions) -> Result<()> {
    let mut session = Session::open(&options.common.login)?;
    let mut tables = vec![];
    for (name, order) in [
        ("nodes", "ORDER BY node_id"),
        ("arbitration", "ORDER BY node_id"),
        ("links", "ORDER BY node_id, peer_node_id"),
        ("replication_lag", "ORDER BY node_id"),
        // Each node has its phases in the order in which they began, and no column for it.
        ("restarts", ""),
        ("backups", "ORDER BY node_id"),
    ] {
        let filter = options.node.map(|node| format!("WHERE node_id = {node}")).unwrap_or_default();
        let mut table = session.query(&format!("SELECT * FROM junctor_info.{name} {filter} {order}"))?;
        table.sort_by_number("node_id");
        tables.push((name, table));
    }
    print(&tables, options.common.json)
}

/// `junctor admin events`.
pub fn events(options: &EventsOptions) -> Result<()> {
    let mut session = Session::open(&options.common.login)?;
    let of_node = options.node.map(|node| format!("AND node_id = {node}")).unwrap_or_default();
    let of_kind = options.kind.as_ref().map(|kind| format!("AND event_kind = '{kind}'")).unwrap_or_default();
    let mut events = session.query(&format!(
        "SELECT event_time, node_id, event_kind, description FROM junctor_info.events WHERE TRUE {of_node} {of_kind} \
         ORDER BY event_time DESC, node_id DESC, event_number DESC LIMIT {}",
        options.limit
    ))?;
    // The newest one is the last line.
    events.rows.reverse();
    print(&[("events", events)], options.common.json)
}

/// Progress, as lines for people or of JSON.
struct Progress {
    is_json: bool,
    began: Instant,
}

impl Progress {
    fn new(is_json: bool) -> Progress {
        Progress { is_json, began: Instant::now() }
    }

    fn tell(&self, node: &Node, step: &str) -> Result<()> {
        let seconds = self.began.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        if self.is_json {
            let Node { id, roles, .. } = node;
            let line = serde_json::json!({ "node_id": id, "roles": roles, "step": step, "seconds": seconds });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{seconds:7.1} s  node {} {}: {step}", node.id, node.roles)?;
        }
        out.flush()?;
        Ok(())
    }

    /// The last line of a rolling restart.
    fn tell_end(&self, count: usize) -> Result<()> {
        let (step, seconds) = ("all nodes have been restarted", self.began.elapsed().as_secs_f64());
        match self.is_json {
            true => println!("{}", serde_json::json!({ "nodes": count, "step": step, "seconds": seconds })),
            false => println!("all {count} nodes have been restarted"),
        }
        Ok(())
    }
}

/// Looks at the nodes until a condition holds. The session may lose its own node meanwhile.
fn await_nodes(
    session: &mut Session,
    timeout: Duration,
    what: &str,
    mut holds: impl FnMut(&[Node]) -> bool,
) -> Result<Vec<Node>> {
    let deadline = Instant::now() + timeout;
    loop {
        let read = nodes::read(session);
        let last = match read {
            Ok(nodes) if holds(&nodes) => return Ok(nodes),
            Ok(nodes) => {
                let states: Vec<String> = nodes.iter().map(|node| format!("{} {}", node.id, node.state)).collect();
                format!("the nodes are: {}", states.join(", "))
            }
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(format!("{what} within {} s; {last}", timeout.as_secs()).into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn find(nodes: &[Node], id: u8) -> Result<&Node> {
    nodes.iter().find(|node| node.id == id).ok_or_else(|| format!("the cluster has no node {id}").into())
}

/// The node, once its state is known.
fn find_known(session: &mut Session, id: u8) -> Result<Node> {
    let mut nodes = nodes::read(session)?;
    if !find(&nodes, id)?.is_known() {
        let what = format!("the state of node {id} is not known");
        nodes = await_nodes(session, STATE_MAX, &what, |nodes| find(nodes, id).is_ok_and(Node::is_known))?;
    }
    find(&nodes, id).cloned()
}

/// Executes SHUTDOWN or RESTART. The connection to the node itself may end before the answer.
fn request(session: &mut Session, statement: &str, node: u8, (force, is_own): (bool, bool)) -> Result<()> {
    let force = if force { " FORCE" } else { "" };
    match session.execute(&format!("{statement} NODE {node}{force}")) {
        Err(error) if is_own && !error.is::<ServerError>() => Ok(()),
        result => result,
    }
}

/// `junctor admin stop`.
pub fn stop(options: &StopOptions) -> Result<()> {
    let StopOptions { node, force, timeout, common } = options;
    let mut session = Session::open(&common.login)?;
    let progress = Progress::new(common.json);
    let target = find_known(&mut session, *node)?;
    let is_own = nodes::own(&mut session)? == *node;
    request(&mut session, "SHUTDOWN", *node, (*force, is_own))?;
    progress.tell(&target, "stops")?;
    let timeout = Duration::from_secs(*timeout);
    let deadline = Instant::now() + timeout;
    if is_own {
        // The session is at this node, so it cannot ask another one.
        while !session.has_ended()? {
            if Instant::now() >= deadline {
                return Err(format!("node {node} did not stop within {} s", timeout.as_secs()).into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    } else {
        let what = format!("node {node} did not stop");
        await_nodes(&mut session, timeout, &what, |nodes| {
            find(nodes, *node).is_ok_and(|it| has_left(&target, it, *force))
        })?;
    }
    progress.tell(&target, "has stopped")
}

/// Whether a node has left since it was asked to stop. The next stop must find the membership without it.
fn has_left(before: &Node, now: &Node, force: bool) -> bool {
    let is_out = force || !before.is_member() || now.epoch > before.epoch;
    now.is_away() && is_out || now.incarnation > before.incarnation
}

/// `junctor admin restart`.
pub fn restart(options: &RestartOptions) -> Result<()> {
    let RestartOptions { node, force, timeout, common } = options;
    let mut session = Session::open(&common.login)?;
    let progress = Progress::new(common.json);
    let target = find_known(&mut session, *node)?;
    let is_own = nodes::own(&mut session)? == *node;
    request(&mut session, "RESTART", *node, (*force, is_own))?;
    await_restart(&mut session, &target, Duration::from_secs(*timeout), &progress)
}

/// Waits until a node that was asked to restart does its work again.
fn await_restart(session: &mut Session, node: &Node, timeout: Duration, progress: &Progress) -> Result<()> {
    progress.tell(node, "stops, to start again")?;
    let is_new = |it: &Node| it.incarnation > node.incarnation && !it.is_away();
    let mut step = "";
    await_nodes(session, timeout, &format!("node {} did not return", node.id), |nodes| {
        let Some(found) = nodes.iter().find(|it| it.id == node.id).filter(|it| is_new(it)) else { return false };
        let next = match (found.is_whole(), &*found.state) {
            (true, _) => "serves",
            (_, "JOINING") => "copies rows",
            (_, "SERVING") => "serves, and writes its rows to disk",
            _ => "waits for its admission",
        };
        if next != step {
            step = next;
            // A closed standard output does not end the restart of a cluster halfway.
            let _ = progress.tell(node, step);
        }
        found.is_whole()
    })?;
    Ok(())
}

/// Asks a node to restart once the cluster can do without it, and returns what it was before. The node
/// decides by its own links: it may not hear a node yet that has just returned to the node of this session.
/// So its refusal counts only when the time is over.
fn begin_restart(session: &mut Session, id: u8, is_own: bool, timeout: Duration) -> Result<Node> {
    let deadline = Instant::now() + timeout;
    let what = format!("the cluster cannot do without node {id}");
    let may_restart = |nodes: &[Node]| obstacle(nodes).is_none() && find(nodes, id).is_ok_and(Node::is_known);
    let mut refusal = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let nodes = match await_nodes(session, left, &what, may_restart) {
            Ok(nodes) => nodes,
            Err(error) => return Err(refusal.unwrap_or(error)),
        };
        match request(session, "RESTART", id, (false, is_own)) {
            Ok(()) => return find(&nodes, id).cloned(),
            Err(error) if is_temporary(&*error) && Instant::now() < deadline => refusal = Some(error),
            Err(error) => return Err(error),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether a node refuses to stop because of the nodes that it hears now.
fn is_temporary(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<ServerError>().is_some_and(|error| error.code() == 1296)
}

/// `junctor admin rolling-restart`.
pub fn rolling_restart(options: &RollingOptions) -> Result<()> {
    let RollingOptions { timeout, common } = options;
    let timeout = Duration::from_secs(*timeout);
    let mut session = Session::open(&common.login)?;
    let progress = Progress::new(common.json);
    let mut order = nodes::read(&mut session)?;
    if let Some(obstacle) = obstacle(&order) {
        return Err(format!("no rolling restart: {obstacle}").into());
    }
    // The command skips nodes that are down.
    order.retain(|node| !node.is_away());
    let own = nodes::own(&mut session)?;
    order.sort_by_key(|node| (node.id == own, node.rank()));
    for Node { id, .. } in &order {
        let target = begin_restart(&mut session, *id, *id == own, timeout)?;
        await_restart(&mut session, &target, timeout, &progress)?;
    }
    let what = "the cluster is not whole";
    let ids: Vec<u8> = order.iter().map(|node| node.id).collect();
    await_nodes(&mut session, timeout, what, |nodes| {
        nodes.iter().filter(|node| ids.contains(&node.id)).all(Node::is_whole)
    })?;
    progress.tell_end(order.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(state: &str, group: Option<u64>, incarnation: Option<u64>, epoch: u64) -> Node {
        let (roles, state, is_durable) = (String::new(), state.to_owned(), group.is_some());
        let (has_office, is_voter, is_linked) = (false, false, true);
        Node { id: 2, roles, state, group, is_durable, has_office, is_voter, is_linked, incarnation, epoch }
    }

    #[test]
    fn a_rolling_restart_asks_again_after_a_refusal_by_the_links_of_the_node_only() {
        assert!(is_temporary(&ServerError::of(1296)));
        assert!(!is_temporary(&ServerError::of(3707)) && !is_temporary(&std::io::Error::other("refused")));
    }

    #[test]
    fn a_member_has_left_with_the_next_epoch_and_others_at_once() {
        let gone = node("DOWN", Some(0), Some(7), 3);
        assert!(!has_left(&node("SERVING", Some(0), Some(7), 3), &gone, false));
        assert!(has_left(&node("SERVING", Some(0), Some(7), 2), &gone, false));
        assert!(has_left(&node("SERVING", Some(0), Some(7), 3), &gone, true));
        // It waited for its admission.
        assert!(has_left(&node("WAITING", Some(0), Some(7), 3), &gone, false));
        assert!(has_left(&node("CONNECTED", None, Some(7), 3), &node("DOWN", None, Some(7), 3), false));
        // A supervisor has started it again, or nobody knows where it is.
        assert!(has_left(&node("CONNECTED", None, Some(7), 3), &node("CONNECTED", None, Some(8), 3), false));
        assert!(!has_left(&node("CONNECTED", None, Some(7), 3), &node("UNKNOWN", None, None, 3), false));
    }
}
