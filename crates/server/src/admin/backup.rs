//! `junctor admin backup`: lets a node of each group copy its part, and makes the parts a backup.
//!
//! The nodes first keep the files of their newest checkpoints, all of them. Every copy must include the
//! newest commit of any of these, and all commits that were acknowledged before. The backup ends at the least
//! number that a copy includes.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use junctor_backup::{CopiedPart, complete_cluster, new_name};
use junctor_model::id::CommitNumber;

use super::Result;
use super::nodes::{self, Node};
use super::session::{LoginOptions, Session};

/// Shown after the options of `junctor admin backup`.
pub const BACKUP_HELP: &str = "\
A node of each group copies the rows of its group. Every node and this command need the same STORE: a folder that all of
them share, or a bucket, whose credentials come from the environment of each process. If a node is lost meanwhile, the
command fails, and what is in the store is no backup. `junctor restore` makes data directories of a backup.

Try it:
  junctor admin backup /mnt/backups --host 10.0.0.4 --user root --password-file root.password
  junctor backups /mnt/backups";

/// Interval between two looks at the parts.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval between two requests of a node to go on. A node gives its part up after 30 seconds without.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Interval between two lines about the bytes.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// The options of `junctor admin backup`.
#[derive(Debug, Args)]
pub struct BackupOptions {
    /// Where backups are kept: a folder, or s3://BUCKET/PREFIX [default: BackupDataDir of the node]
    #[arg(value_name = "STORE")]
    store: Option<String>,
    /// Name of the backup [default: the time, such as 20260131-235959]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    login: LoginOptions,
}

/// A part, as its node shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    state: String,
    newest: Option<u64>,
    last: Option<u64>,
    copied: u64,
    total: u64,
    stored: u64,
    error: Option<String>,
}

struct Backup {
    session: Session,
    store: String,
    name: String,
    /// The nodes that copy: one of each group.
    copiers: Vec<Node>,
    is_json: bool,
    began: Instant,
    told: BTreeMap<u8, (String, Instant)>,
}

/// Takes the backup.
///
/// # Errors
/// A node refuses, fails or is lost, or the store fails. Nothing counts as a backup then.
pub fn backup(options: &BackupOptions) -> Result<()> {
    let mut session = Session::open(&options.login)?;
    let copiers = copiers(&nodes::read(&mut session)?)?;
    let store = match &options.store {
        Some(store) => store.clone(),
        None => {
            let table = session.query("SELECT @@backup_data_dir")?;
            let store = table.rows.first().and_then(|row| row.first()).map(|cell| cell.text()).unwrap_or_default();
            if store.is_empty() || store == "-" {
                return Err("no STORE is given, and the node's configuration has no BackupDataDir".into());
            }
            store
        }
    };
    // The nodes have other working directories.
    let store = match store.starts_with("s3://") {
        true => store,
        false => std::path::absolute(store)?.to_string_lossy().into_owned(),
    };
    let name = new_name(&store, options.name.as_deref())?;
    let (is_json, began, told) = (options.json, Instant::now(), BTreeMap::new());
    let mut backup = Backup { session, store, name, copiers, is_json, began, told };
    match backup.run() {
        Ok(()) => Ok(()),
        Err(error) => {
            backup.end();
            Err(format!("backup {} failed, and is not complete: {error}", backup.name).into())
        }
    }
}

/// A node of each group that has all its rows on disk. Nodes that lead or number commits have enough to do.
fn copiers(nodes: &[Node]) -> Result<Vec<Node>> {
    let mut groups: Vec<u64> = nodes.iter().filter_map(|node| node.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |group: &u64| {
        let mut whole: Vec<&Node> = nodes.iter().filter(|node| node.group == Some(*group) && node.is_whole()).collect();
        whole.sort_by_key(|node| (node.has_office, node.id));
        whole.first().map(|node| (*node).clone()).ok_or_else(|| {
            format!("no node of group {group} serves and has its rows on disk; junctor admin show has their states")
        })
    };
    Ok(groups.iter().map(of_group).collect::<std::result::Result<_, _>>()?)
}

impl Backup {
    fn run(&mut self) -> Result<()> {
        for node in self.ids() {
            let statement = format!("BACKUP NODE {node} BEGIN {} AS {}", quoted(&self.store), quoted(&self.name));
            self.session.execute(&statement)?;
        }
        let pinned = self.await_parts(None, |part| part.newest)?;
        // Commits that were acknowledged before the backup are in it, on disk or not.
        let stable = self.session.query("SELECT MAX(stable_commit) FROM junctor_info.replication_lag")?;
        let stable = stable.rows.first().and_then(|row| row.first()).and_then(|cell| cell.number());
        let until = pinned.values().copied().chain(stable).max().unwrap_or(0);
        let last = self.await_parts(Some(until), |part| part.last)?;
        for node in self.ids() {
            self.session.execute(&format!("BACKUP NODE {node} END {}", quoted(&self.name)))?;
        }
        let part = |node: &Node| CopiedPart {
            node: node.id,
            group: node.group.unwrap_or(0) as u8,
            newest: CommitNumber(pinned.get(&node.id).copied().unwrap_or(0)),
            last: CommitNumber(last.get(&node.id).copied().unwrap_or(0)),
        };
        let parts: Vec<CopiedPart> = self.copiers.iter().map(part).collect();
        let summary = complete_cluster(&self.store, &self.name, &parts)?;
        let cut = parts.iter().map(|part| part.last).min().unwrap_or_default();
        match self.is_json {
            true => {
                let line = serde_json::json!({
                    "backup": summary.name, "bytes": summary.bytes, "stored_bytes": summary.stored_bytes,
                    "last_commit": cut.0, "seconds": self.began.elapsed().as_secs_f64(),
                });
                println!("{line}");
            }
            false => println!(
                "backup {}: {} bytes of data up to commit {cut}, {} bytes added to the store",
                summary.name, summary.bytes, summary.stored_bytes
            ),
        }
        Ok(())
    }

    fn ids(&self) -> Vec<u8> {
        self.copiers.iter().map(|node| node.id).collect()
    }

    /// Lets the nodes go on without a backup. They notice by themselves if they do not hear of it.
    fn end(&mut self) {
        for node in self.ids() {
            let _ = self.session.execute(&format!("BACKUP NODE {node} END {}", quoted(&self.name)));
        }
    }

    /// Waits until every part has a number. `until` is what the copies must include, if they are to copy.
    fn await_parts(&mut self, until: Option<u64>, number: impl Fn(&Part) -> Option<u64>) -> Result<BTreeMap<u8, u64>> {
        let mut asked: Option<Instant> = None;
        loop {
            self.check_nodes()?;
            if let Some(until) = until.filter(|_| asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY)) {
                asked = Some(Instant::now());
                for node in self.ids() {
                    let statement = format!("BACKUP NODE {node} COPY {} UNTIL {until}", quoted(&self.name));
                    self.session.execute(&statement)?;
                }
            }
            let parts = self.parts()?;
            for (node, part) in &parts {
                self.tell(*node, part)?;
                if let Some(error) = &part.error {
                    return Err(format!("node {node}: {error}").into());
                }
            }
            let numbers: BTreeMap<u8, u64> =
                parts.iter().filter_map(|(node, part)| Some((*node, number(part)?))).collect();
            if numbers.len() == self.copiers.len() {
                return Ok(numbers);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether the nodes that copy are there, in the same lives.
    fn check_nodes(&mut self) -> Result<()> {
        let found = nodes::read(&mut self.session)?;
        for copier in &self.copiers {
            let now = found.iter().find(|node| node.id == copier.id);
            // A node without data may not know the state of another one for a moment.
            let is_lost = now
                .is_none_or(|now| now.is_known() && (now.state != "SERVING" || now.incarnation > copier.incarnation));
            if is_lost {
                return Err(format!("node {} was lost", copier.id).into());
            }
        }
        Ok(())
    }

    /// The parts of the nodes that answer.
    fn parts(&mut self) -> Result<BTreeMap<u8, Part>> {
        let table = self.session.query(&format!(
            "SELECT node_id, state, checkpoint_commit, last_commit, bytes_copied, bytes_total, bytes_stored, error \
             FROM junctor_info.backups WHERE backup_name = {}",
            quoted(&self.name)
        ))?;
        let ids = self.ids();
        let mut parts = BTreeMap::new();
        for row in 0..table.rows.len() {
            let number = |column: &str| table.cell(row, column).number();
            let Some(node) = number("node_id").map(|node| node as u8).filter(|node| ids.contains(node)) else {
                continue;
            };
            let error = table.cell(row, "error");
            let part = Part {
                state: table.cell(row, "state").text(),
                newest: number("checkpoint_commit"),
                last: number("last_commit"),
                copied: number("bytes_copied").unwrap_or(0),
                total: number("bytes_total").unwrap_or(0),
                stored: number("bytes_stored").unwrap_or(0),
                error: (*error != super::table::Cell::Null).then(|| error.text()),
            };
            parts.insert(node, part);
        }
        Ok(parts)
    }

    fn tell(&mut self, node: u8, part: &Part) -> Result<()> {
        let is_known = self
            .told
            .get(&node)
            .is_some_and(|(state, at)| *state == part.state && (part.state != "COPYING" || at.elapsed() < TELL_EVERY));
        if is_known {
            return Ok(());
        }
        self.told.insert(node, (part.state.clone(), Instant::now()));
        let seconds = self.began.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        let Part { state, copied, total, stored, .. } = part;
        match self.is_json {
            true => {
                let line = serde_json::json!({
                    "node_id": node, "state": state, "bytes_copied": copied, "bytes_total": total,
                    "bytes_stored": stored, "seconds": seconds,
                });
                writeln!(out, "{line}")?;
            }
            false => {
                writeln!(out, "{seconds:7.1} s  node {node}: {state}, {copied} of {total} bytes of the checkpoint")?
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// A string literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u8, group: Option<u64>, is_durable: bool, has_office: bool) -> Node {
        let (roles, state) = ("data".to_owned(), "SERVING".to_owned());
        Node {
            id,
            roles,
            state,
            group,
            is_durable,
            has_office,
            is_voter: true,
            is_linked: true,
            incarnation: Some(7),
            epoch: 3,
        }
    }

    #[test]
    fn a_node_of_each_group_copies_that_has_its_rows_on_disk() {
        let mut nodes = vec![
            node(1, Some(0), true, true),
            node(2, Some(0), true, false),
            node(3, Some(1), false, false),
            node(4, Some(1), true, true),
            node(5, None, false, false),
        ];
        let ids = |nodes: &[Node]| copiers(nodes).map(|found| found.iter().map(|node| node.id).collect::<Vec<_>>());
        assert_eq!(ids(&nodes).expect("a node of each group"), [2, 4]);
        nodes[3].state = "JOINING".to_owned();
        assert!(ids(&nodes).is_err_and(|error| error.to_string().contains("group 1")));
    }

    #[test]
    fn names_are_literals() {
        assert_eq!(quoted("a'b\\c"), "'a''b\\\\c'");
    }
}
