//! `junctor admin remove`: a cluster loses the node group that was added last, or replicas of each group.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};

use super::Result;
use super::add::{Steps, TABLES, is_missing, quoted, retry};
use super::nodes::{self, Node};
use super::operate::{Common, LOOK_EVERY};
use super::replicas;
use super::session::Session;
use super::table::Table;

/// Shown after the options of `junctor admin remove`.
pub const REMOVE_HELP: &str = "\
Only the last node group can be removed, and only one whose nodes have the role `added`. The other groups need room for
its rows. The command marks the group as leaving: new tables are not placed in it. It then moves each table off it by
ALTER TABLE ... REORGANIZE PARTITION: the rows are copied while clients use the table, which for a moment waits for their
transactions. Temporary tables cannot be moved: the command waits until their sessions have ended. When no table has
partitions in the group, its nodes leave the cluster and stop. They never return: a node that starts again from its
directory is refused, and its number is not used again.

The command may be stopped and repeated at any time. --stay takes the mark back as long as the group is there;
`junctor admin add` then spreads the tables over all groups again.

With --replicas N instead of a node group, each group keeps N nodes. Only nodes with a role such as `added:0` can be
removed, and each only while another node of its group serves with a disk that counts. Removed are those that do not
serve, then those with the highest numbers. --force is needed if only one node is left. No rows move.

Afterwards, take the nodes out of `nodes` of all nodes, and restart these one after the other.

Try it:
  junctor admin remove --replicas 2 --host 10.0.0.4 --user root --password-file root.password
  junctor admin remove 1 --host 10.0.0.4 --user root --password-file root.password";

/// The node group of every partition of a user's table.
const PLACES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, NODEGROUP FROM information_schema.PARTITIONS WHERE \
                      TABLE_SCHEMA NOT IN ('information_schema', 'junctor_info', 'mysql', 'performance_schema') \
                      ORDER BY TABLE_SCHEMA, TABLE_NAME";
const GROUPS: &str = "SELECT node_group, state FROM junctor_info.node_groups ORDER BY node_group";
/// Number of looks at a group that stays, although it has no tables and was to leave, until the command ends.
/// The node of the session may learn late that the group is gone.
const STAYS_MAX: u32 = 25;
/// Number of looks at a group without tables until all tables are reorganized. Earlier versions placed the
/// entries of unique indexes apart from their tables, and no session sees where they are.
const LOOKS_BEFORE_ALL: u32 = 50;

/// Maximum number of tables that a line names.
const NAMES_MAX: usize = 5;

/// The options of `junctor admin remove`.
#[derive(Debug, Args)]
pub struct RemoveOptions {
    /// The node group, as `junctor admin show` numbers it
    #[arg(value_name = "GROUP", required_unless_present = "replicas", conflicts_with = "replicas")]
    group: Option<u8>,
    /// Number of data nodes that each node group keeps
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=4))]
    replicas: Option<u8>,
    /// Let node groups keep a single replica, whose loss then stops the cluster
    #[arg(long, requires = "replicas")]
    force: bool,
    /// Let a group, or replicas, stay that are to be removed
    #[arg(long)]
    stay: bool,
    /// Time to wait after each table, in seconds, so that clients have the cluster for themselves
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = value_parser!(u64).range(0..=86_400))]
    pause: u64,
    /// Maximum time for each step, in seconds: for each table, and until the nodes have left
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = value_parser!(u64).range(1..=864_000))]
    timeout: u64,
    #[command(flatten)]
    common: Common,
}

/// The state of the group, as the node of the session knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    Leaves,
    /// None of its nodes is heard, so the state does not say whether it leaves.
    Down,
    Stays,
    Gone,
}

/// A removal under way.
struct Removal {
    session: Session,
    group: u8,
    timeout: Duration,
    steps: Steps,
}

/// `junctor admin remove`.
pub fn remove(options: &RemoveOptions) -> Result<()> {
    let RemoveOptions { group, replicas, force, stay, pause, timeout, common } = options;
    let timeout = Duration::from_secs(*timeout);
    let session = Session::open_for(&common.login, timeout)?;
    let steps = Steps::new(common.json);
    let Some(group) = group else {
        return replicas::lower(session, (replicas.unwrap_or(1).into(), *force, *stay), timeout, &steps);
    };
    let mut removal = Removal { session, group: *group, timeout, steps };
    if *stay {
        removal.mark("STAY", GroupState::Stays)?;
        removal.tell("stays");
        return Ok(());
    }
    let nodes = removal.retry(nodes::read)?;
    let numbers = |matches: &dyn Fn(&Node) -> bool| -> Vec<u8> {
        nodes.iter().filter(|node| matches(node)).map(|node| node.id).collect()
    };
    let mut removed = numbers(&|node| node.state == "REMOVED");
    let nodes = numbers(&|node| node.group == Some((*group).into()));
    if nodes.is_empty() && !removed.is_empty() && removal.is_beyond_last()? {
        removal.tell(&advice(&removed));
        return Ok(());
    }
    let own = removal.retry(nodes::own)?;
    if nodes.contains(&own) {
        return Err(format!("node {own} is one of those to be removed; log in to a node that stays").into());
    }
    removal.mark("LEAVE", GroupState::Leaves)?;
    removal.tell("is to be removed; no new tables are placed in it");
    removal.move_tables(Duration::from_secs(*pause))?;
    removed.extend(nodes);
    removal.tell(&advice(&removed));
    Ok(())
}

fn advice(removed: &[u8]) -> String {
    let names: Vec<String> = removed.iter().map(u8::to_string).collect();
    format!("is removed; take nodes {} out of `nodes` of all nodes", names.join(", "))
}

impl Removal {
    fn tell(&self, step: &str) {
        self.steps.tell(&format!("node group {}", self.group), step);
    }

    /// Tries again after errors that pass.
    fn retry<T>(&mut self, mut step: impl FnMut(&mut Session) -> Result<T>) -> Result<T> {
        let Removal { session, group, timeout, steps } = self;
        retry(&format!("node group {group}"), *timeout, steps, || step(session))
    }

    /// Whether the group comes behind the last one. It is the one that was removed last, if one was.
    fn is_beyond_last(&mut self) -> Result<bool> {
        let groups = self.retry(|it| it.query(GROUPS))?;
        Ok(groups.rows.len() == usize::from(self.group))
    }

    fn state(&mut self) -> Result<GroupState> {
        let group = self.group;
        self.retry(|it| Ok(state_in(&it.query(GROUPS)?, group)))
    }

    /// Marks the group, until this node knows it.
    fn mark(&mut self, word: &str, wanted: GroupState) -> Result<()> {
        let statement = format!("ALTER NODEGROUP {} {word}", self.group);
        let deadline = Instant::now() + self.timeout;
        loop {
            // It may have been lost with its leader, so it is repeated until the state is there.
            self.retry(|it| it.execute(&statement))?;
            for _ in 0..10 {
                let state = self.state()?;
                // A group without tables is removed at once.
                if state == wanted || (state, wanted) == (GroupState::Gone, GroupState::Leaves) {
                    return Ok(());
                }
                std::thread::sleep(LOOK_EVERY);
            }
            if Instant::now() >= deadline {
                let seconds = self.timeout.as_secs();
                return Err(format!("the cluster did not take the change within {seconds} s").into());
            }
        }
    }

    /// Moves all tables off the group, until it is gone.
    fn move_tables(&mut self, pause: Duration) -> Result<()> {
        let mut deadline = Instant::now() + self.timeout;
        let mut told = None;
        // Looks without a table in the group, and those of them at which it was to stay.
        let (mut looks, mut stays) = (0, 0);
        loop {
            let places = self.retry(|it| it.query(PLACES))?;
            let tables = tables_in(&places, self.group);
            if told != Some(tables.len()) {
                self.tell(&match tables.len() {
                    0 => "has no table that this account sees; waits for temporary tables and the last schema change"
                        .to_owned(),
                    count => format!("{count} tables have rows there: {}", names_of(&tables)),
                });
                told = Some(tables.len());
            }
            match self.state()? {
                GroupState::Gone => return Ok(()),
                GroupState::Leaves | GroupState::Down => {}
                GroupState::Stays if tables.is_empty() && stays < STAYS_MAX => stays += 1,
                GroupState::Stays => return Err(format!("node group {} is to stay", self.group).into()),
            }
            if let Some((database, name)) = tables.first() {
                self.move_table(database, name)?;
                told = told.map(|count: usize| count - 1);
                (looks, stays) = (0, 0);
                deadline = Instant::now() + self.timeout;
                std::thread::sleep(pause);
                continue;
            }
            looks += 1;
            if looks == LOOKS_BEFORE_ALL {
                self.reorganize_all(pause)?;
                deadline = Instant::now() + self.timeout;
            }
            if Instant::now() >= deadline {
                let why = "sessions have temporary tables there, the account may not see all tables, or a schema \
                           change does not end";
                return Err(format!("node group {} is not removed: {why}", self.group).into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Moves what no list of tables shows: the statement does nothing for tables that are as they should be.
    fn reorganize_all(&mut self, pause: Duration) -> Result<()> {
        self.tell("still has partitions; all tables are reorganized, with the entries of their unique indexes");
        let tables = self.retry(|it| it.query(TABLES))?;
        for row in 0..tables.rows.len() {
            if self.state()? != GroupState::Leaves {
                return Ok(());
            }
            self.move_table(&tables.cell(row, "TABLE_SCHEMA").text(), &tables.cell(row, "TABLE_NAME").text())?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    fn move_table(&mut self, database: &str, name: &str) -> Result<()> {
        let statement = format!("ALTER TABLE {}.{} REORGANIZE PARTITION", quoted(database), quoted(name));
        let table = format!("table {database}.{name}");
        self.steps.tell(&table, "moves");
        match self.retry(|it| it.execute(&statement)) {
            Err(error) if is_missing(&*error) => self.steps.tell(&table, "was dropped"),
            Err(error) => return Err(format!("{table}: {error}").into()),
            Ok(()) => self.steps.tell(&table, "has moved"),
        }
        Ok(())
    }
}

/// The names of the first of these tables.
fn names_of(tables: &[(String, String)]) -> String {
    let names = tables.iter().take(NAMES_MAX).map(|(database, name)| format!("{database}.{name}"));
    let names: Vec<String> = names.collect();
    let rest = if tables.len() > NAMES_MAX { ", ..." } else { "" };
    format!("{}{rest}", names.join(", "))
}

/// The state of a group in this table of [`GROUPS`].
fn state_in(groups: &Table, group: u8) -> GroupState {
    let mut rows = 0..groups.rows.len();
    match rows.find(|row| groups.cell(*row, "node_group").number() == Some(group.into())) {
        None => GroupState::Gone,
        Some(row) => match &*groups.cell(row, "state").text() {
            "LEAVING" => GroupState::Leaves,
            "DOWN" => GroupState::Down,
            _ => GroupState::Stays,
        },
    }
}

/// The tables that have a partition in a group, by this table of [`PLACES`].
fn tables_in(places: &Table, group: u8) -> Vec<(String, String)> {
    let group = group.to_string();
    let has_group = |row: &usize| places.cell(*row, "NODEGROUP").text().split(',').any(|it| it == group);
    let name = |row: usize| (places.cell(row, "TABLE_SCHEMA").text(), places.cell(row, "TABLE_NAME").text());
    let tables: BTreeSet<(String, String)> = (0..places.rows.len()).filter(has_group).map(name).collect();
    tables.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::table::Cell;

    fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
        let cells = |row: &&[&str]| {
            row.iter().map(|text| Cell::of(mysql::Value::from(*text), text.parse::<u64>().is_ok())).collect()
        };
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Table { columns, rows: rows.iter().map(cells).collect() }
    }

    #[test]
    fn tables_with_a_partition_in_the_group_are_moved() {
        let columns = ["TABLE_SCHEMA", "TABLE_NAME", "NODEGROUP"];
        let rows: [&[&str]; 5] =
            [&["d", "a", "0,1"], &["d", "b", "0"], &["d", "c", "1"], &["d", "c", "0"], &["e", "a", "11"]];
        let moved = tables_in(&table(&columns, &rows), 1);
        assert_eq!(moved, [("d".to_owned(), "a".to_owned()), ("d".to_owned(), "c".to_owned())]);
        assert_eq!(names_of(&moved), "d.a, d.c");
        assert_eq!(names_of(&vec![moved[0].clone(); NAMES_MAX + 1]), "d.a, d.a, d.a, d.a, d.a, ...");
    }

    #[test]
    fn a_group_leaves_only_if_its_state_says_so() {
        let groups = table(&["node_group", "state"], &[&["0", "SERVING"], &["1", "LEAVING"], &["2", "DOWN"]]);
        let states = [0, 1, 2, 3].map(|group| state_in(&groups, group));
        assert_eq!(states, [GroupState::Stays, GroupState::Leaves, GroupState::Down, GroupState::Gone]);
    }
}
