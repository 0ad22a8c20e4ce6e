//! `junctor admin add`: the growth of a cluster by node groups and replicas.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};

use super::Result;
use super::nodes::{self, Node};
use super::operate::{Common, LOOK_EVERY};
use super::session::{ServerError, Session};
use super::table::{Cell, Table};

/// Shown after the options of `junctor admin add`.
pub const ADD_HELP: &str = "\
Before, do this while the cluster serves:
  1. Add the new data nodes to `nodes` of all nodes. For a new node group, these are NoOfReplicas nodes with numbers
     above those of all data nodes and the role `added`: \"5 data,added db5:4100\". For one more replica of node group 0
     it is a node with the role `added:0`: \"3 data,added:0 db3:4100\". NoOfReplicas stays. The nodes keep the role for
     ever: it says that they do not vote.
  2. Restart the other nodes, one after the other: `junctor admin rolling-restart`.
  3. Start the new nodes. They join once all nodes have links to them.

The command waits until the new nodes serve with a disk that counts; with --replicas, until each node group has this many
nodes. A new replica has then copied the rows of its group. From the moment at which a new node group serves, new tables are placed in all
node groups. It then spreads each table over all of them by ALTER TABLE ... REORGANIZE PARTITION: the rows are copied
while clients use the table, which for a moment waits for their transactions. Each table needs room for its rows twice
meanwhile. The command may be stopped and repeated at any time: a table is moved as a whole or not at all.

Try it:
  junctor admin add --host 10.0.0.4 --user root --password-file root.password";

/// MySQL's errors for something that passes: a deadlock, a change of the membership, a lost snapshot, a lock
/// wait timeout, the stop of the node that executes the statement, its start.
const PASSING: [u16; 6] = [1213, 1296, 1412, 1205, 1053, 3168];
/// MySQL's error for an unknown table.
const NO_SUCH_TABLE: u16 = 1146;

/// All tables of users.
pub const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE \
                          TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('information_schema', 'junctor_info', \
                          'mysql', 'performance_schema') ORDER BY TABLE_SCHEMA, TABLE_NAME";

/// The options of `junctor admin add`.
#[derive(Debug, Args)]
pub struct AddOptions {
    /// Maximum time for each step, in seconds: until the new nodes serve, and for each table
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = value_parser!(u64).range(1..=864_000))]
    timeout: u64,
    /// Wait until each node group has this many data nodes
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=4))]
    replicas: Option<u8>,
    #[command(flatten)]
    common: Common,
}

/// Prints steps, as lines for people or of JSON.
pub struct Steps {
    is_json: bool,
    began: Instant,
}

impl Steps {
    /// The time counts from now on.
    pub fn new(is_json: bool) -> Steps {
        Steps { is_json, began: Instant::now() }
    }

    /// Prints a step.
    pub fn tell(&self, what: &str, step: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        match self.is_json {
            true => println!("{}", serde_json::json!({ "what": what, "step": step, "seconds": seconds })),
            false => println!("{seconds:7.1} s  {what}: {step}"),
        }
    }
}

/// `junctor admin add`.
pub fn add(options: &AddOptions) -> Result<()> {
    let AddOptions { timeout, replicas, common } = options;
    let timeout = Duration::from_secs(*timeout);
    let mut session = Session::open_for(&common.login, timeout)?;
    let steps = Steps::new(common.json);
    let nodes = nodes::read(&mut session)?;
    if !nodes.iter().any(is_added) {
        return Err("no node of the cluster has the role `added`; see `junctor admin add --help`".into());
    }
    if let Some(node) = nodes.iter().find(|node| node.state == "REMOVED") {
        let advice = "take it out of `nodes` of all nodes first, and give new nodes other numbers";
        return Err(format!("node {} was removed; {advice}", node.id).into());
    }
    if let Some(node) = nodes.iter().find(|node| node.state == "LEAVING") {
        let advice = "let it stay by `junctor admin remove --replicas N --stay`, or remove it first";
        return Err(format!("node {} is to be removed; {advice}", node.id).into());
    }
    check_replicas(&nodes, *replicas)?;
    let groups = await_groups(&mut session, timeout, &steps)?;
    // Groups that did not exist before have opened meanwhile.
    check_replicas(&retry("cluster", timeout, &steps, || nodes::read(&mut session))?, *replicas)?;
    let tables = retry("tables", timeout, &steps, || session.query(TABLES))?;
    for row in 0..tables.rows.len() {
        let (database, name) = (tables.cell(row, "TABLE_SCHEMA").text(), tables.cell(row, "TABLE_NAME").text());
        spread(&mut session, (&database, &name), (groups, timeout), &steps)?;
    }
    steps.tell("cluster", &format!("all {} tables are in {groups} node groups", tables.rows.len()));
    Ok(())
}

/// Tries again after errors that pass, for this time. `what` is named in the progress.
pub fn retry<T>(what: &str, timeout: Duration, steps: &Steps, mut step: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match step() {
            Err(error) if passes(&*error) && Instant::now() < deadline => {
                steps.tell(what, &format!("tries again: {error}"));
                std::thread::sleep(LOOK_EVERY * 5);
            }
            result => return result,
        }
    }
}

fn is_added(node: &Node) -> bool {
    node.joins().is_some() || node.roles.split(',').any(|role| role == "added")
}

/// Refuses a cluster in which a node group has fewer data nodes than are wanted.
fn check_replicas(nodes: &[Node], wanted: Option<u8>) -> Result<()> {
    let Some((group, count)) = wanted.and_then(|wanted| small_group(nodes, wanted.into())) else { return Ok(()) };
    let advice = format!("add nodes with the role `added:{group}` to `nodes` of all nodes");
    Err(format!("node group {group} has {count} data nodes in `nodes`; {advice}").into())
}

/// A node group with fewer data nodes than this, also of those that will join, and their number.
fn small_group(nodes: &[Node], replicas: usize) -> Option<(u64, usize)> {
    let groups: BTreeSet<u64> = nodes.iter().filter_map(|node| node.group).collect();
    let count = |group: u64| nodes.iter().filter(|node| node.group.or(node.joins()) == Some(group)).count();
    groups.into_iter().map(|group| (group, count(group))).find(|(_, count)| *count < replicas)
}

/// Waits until all nodes that are added serve with their disks, and their groups are open. Returns the number
/// of groups.
fn await_groups(session: &mut Session, timeout: Duration, steps: &Steps) -> Result<usize> {
    let deadline = Instant::now() + timeout;
    let mut told: Vec<(u8, String)> = Vec::new();
    loop {
        let look = nodes::read(session)
            .and_then(|nodes| Ok((nodes, session.query("SELECT node_group, state FROM junctor_info.node_groups")?)));
        let last = match look {
            Ok((nodes, groups)) => {
                let states: Vec<(u8, String)> =
                    nodes.iter().filter(|node| is_added(node)).map(|node| (node.id, state_of(node))).collect();
                for (node, state) in states.iter().filter(|state| !told.contains(state)) {
                    steps.tell(&format!("node {node}"), state);
                }
                told = states;
                if let Some(group) = leaving_group(&groups) {
                    let advice = "let it stay by `junctor admin remove --stay`, or remove it first";
                    return Err(format!("node group {group} is to be removed; {advice}").into());
                }
                if nodes.iter().filter(|node| is_added(node)).all(|node| node.has_data() && node.is_whole())
                    && !is_one_closed(&groups)
                {
                    return Ok(groups.rows.len());
                }
                "some of them do not".to_owned()
            }
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            let seconds = timeout.as_secs();
            return Err(format!("the added nodes did not all serve within {seconds} s: {last}").into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn state_of(node: &Node) -> String {
    match (node.group, &*node.state) {
        (Some(_), "SERVING") if node.is_durable => "serves".to_owned(),
        (Some(_), "SERVING") => "serves, and its disk does not count yet".to_owned(),
        (Some(_), "JOINING") => "copies schema and rows".to_owned(),
        (None, "DOWN") => "has not started".to_owned(),
        (None, _) => "waits until all nodes have links to it".to_owned(),
        (Some(_), other) => other.to_ascii_lowercase(),
    }
}

fn leaving_group(groups: &Table) -> Option<u64> {
    let row = (0..groups.rows.len()).find(|row| groups.cell(*row, "state").text() == "LEAVING")?;
    groups.cell(row, "node_group").number()
}

fn is_one_closed(groups: &Table) -> bool {
    (0..groups.rows.len()).any(|row| groups.cell(row, "state").text() == "JOINING")
}

/// Whether each node group has a partition of a table, or each partition is in another group.
fn is_spread(session: &mut Session, (database, name): (&str, &str), groups: usize) -> Result<bool> {
    let literal = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    let partitions = session.query(&format!(
        "SELECT PARTITION_METHOD, NODEGROUP FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        literal(database),
        literal(name)
    ))?;
    Ok(are_spread(&partitions, groups))
}

/// As [`is_spread`], from the rows of a table in `information_schema.PARTITIONS`. A table with a partition
/// clause has a row for each partition, and keeps their number. Another one has a single row.
fn are_spread(partitions: &Table, groups: usize) -> bool {
    let count = partitions.rows.len();
    let lists: Vec<String> = (0..count).map(|row| partitions.cell(row, "NODEGROUP").text()).collect();
    let found: BTreeSet<&str> = lists.iter().flat_map(|list| list.split(',')).collect();
    let has_clause = (0..count).any(|row| *partitions.cell(row, "PARTITION_METHOD") != Cell::Null);
    count == 0 || found.len() >= if has_clause { groups.min(count) } else { groups }
}

/// A name in a statement.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Whether it is worth to try again after an error: the server says so, or the connection is lost, because
/// the node may have stopped.
pub fn passes(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<ServerError>().is_none_or(|error| PASSING.contains(&error.code()))
}

/// Whether a statement has failed because its table does not exist.
pub fn is_missing(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<ServerError>().is_some_and(|error| error.code() == NO_SUCH_TABLE)
}

/// Spreads a table over all node groups. Tries again after errors that pass.
fn spread(
    session: &mut Session,
    (database, name): (&str, &str),
    (groups, timeout): (usize, Duration),
    steps: &Steps,
) -> Result<()> {
    let statement = format!("ALTER TABLE {}.{} REORGANIZE PARTITION", quoted(database), quoted(name));
    let table = format!("table {database}.{name}");
    let deadline = Instant::now() + timeout;
    loop {
        let step = is_spread(session, (database, name), groups).and_then(|is_done| {
            if is_done {
                return Ok(true);
            }
            session.execute(&statement)?;
            is_spread(session, (database, name), groups)
        });
        let obstacle = match step {
            Ok(true) => {
                steps.tell(&table, "is in all node groups");
                return Ok(());
            }
            Ok(false) => "the node that runs schema changes does not know the group yet".to_owned(),
            Err(error) if is_missing(&*error) => return Ok(()),
            Err(error) if passes(&*error) => error.to_string(),
            Err(error) => return Err(format!("{table}: {error}").into()),
        };
        if Instant::now() >= deadline {
            return Err(format!("{table}: {obstacle}").into());
        }
        steps.tell(&table, &format!("tries again: {obstacle}"));
        std::thread::sleep(LOOK_EVERY * 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_with_a_partition_clause_needs_no_more_groups_than_partitions() {
        let table = |method: mysql::Value, groups: &[&str]| {
            let cell = |value| Cell::of(value, false);
            let row = |group: &&str| vec![cell(method.clone()), cell(mysql::Value::from(*group))];
            let columns = ["PARTITION_METHOD", "NODEGROUP"].map(String::from).to_vec();
            Table { columns, rows: groups.iter().map(row).collect() }
        };
        let key = || mysql::Value::from("KEY");
        assert!(are_spread(&table(key(), &["1"]), 2));
        assert!(!are_spread(&table(key(), &["0", "0"]), 2));
        assert!(are_spread(&table(key(), &["0", "1"]), 3));
        assert!(!are_spread(&table(mysql::Value::NULL, &["1"]), 2));
        assert!(are_spread(&table(mysql::Value::NULL, &["0,1"]), 2));
        assert!(are_spread(&table(key(), &[]), 2), "it was dropped");
    }

    #[test]
    fn the_stop_of_a_node_and_a_lost_connection_pass() {
        let answered = |code| ServerError::of(code);
        assert!([1053, 1296, 3168].iter().all(|code| passes(&answered(*code))));
        assert!(!passes(&answered(1142)) && !passes(&answered(1146)));
        assert!(passes(&std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
        assert!(is_missing(&answered(1146)));
    }

    #[test]
    fn states_of_added_nodes_are_told() {
        let node = |state: &str, group, is_durable| Node {
            id: 5,
            roles: "data,added".into(),
            state: state.into(),
            group,
            is_durable,
            has_office: false,
            is_voter: false,
            is_linked: state != "DOWN",
            incarnation: None,
            epoch: 1,
        };
        assert!(is_added(&node("DOWN", None, false)));
        let replica = Node { roles: "data,sql,added:1".into(), ..node("DOWN", None, false) };
        assert!(is_added(&replica) && replica.joins() == Some(1));
        let first = |id, group| Node { id, roles: "data".into(), ..node("SERVING", Some(group), true) };
        assert!(!is_added(&first(1, 0)) && first(1, 0).joins().is_none());
        let nodes = [first(1, 0), first(2, 1), replica];
        assert_eq!((small_group(&nodes, 2), small_group(&nodes, 1)), (Some((0, 1)), None));
        assert_eq!(small_group(&nodes[1..], 2), None);
        assert_eq!(small_group(&nodes[1..], 3), Some((1, 2)));
        // A new group counts once it is there.
        let new = |group| Node { id: 6, group, ..node("SERVING", None, true) };
        let check = |group| check_replicas(&[first(1, 0), first(2, 0), new(group)], Some(2));
        assert!(check(None).is_ok() && check(Some(0)).is_ok());
        let refused = check(Some(1)).unwrap_err().to_string();
        assert!(refused.starts_with("node group 1 has 1 data nodes in `nodes`; add nodes"), "{refused}");
        assert_eq!(state_of(&node("DOWN", None, false)), "has not started");
        assert_eq!(state_of(&node("WAITING", None, false)), "waits until all nodes have links to it");
        assert_eq!(state_of(&node("SERVING", Some(1), true)), "serves");
        assert_eq!(state_of(&node("SILENT", Some(1), true)), "silent");
    }
}
