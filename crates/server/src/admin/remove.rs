//! `junctor admin remove`: a cluster loses the node group that was added last.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};

use super::Result;
use super::add::{Steps, is_missing, passes, quoted};
use super::nodes;
use super::operate::{Common, LOOK_EVERY};
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

Afterwards, take the nodes out of `nodes` of all nodes, and restart these one after the other.

Try it:
  junctor admin remove 1 --host 10.0.0.4 --user root --password-file root.password";

/// The node group of every partition of a user's table.
const PLACES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, NODEGROUP FROM information_schema.PARTITIONS WHERE \
                      TABLE_SCHEMA NOT IN ('information_schema', 'junctor_info', 'mysql', 'performance_schema', 'sys') \
                      ORDER BY TABLE_SCHEMA, TABLE_NAME";
const GROUPS: &str = "SELECT node_group, state FROM junctor_info.node_groups ORDER BY node_group";

/// The options of `junctor admin remove`.
#[derive(Debug, Args)]
pub struct RemoveOptions {
    /// The node group, as `junctor admin show` numbers it
    #[arg(value_name = "GROUP")]
    group: u8,
    /// Let a group stay that is to be removed
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

/// What the node that the session is at knows of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// It is to be removed, or none of its nodes is heard.
    Leaves,
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
    let RemoveOptions { group, stay, pause, timeout, common } = options;
    let timeout = Duration::from_secs(*timeout);
    let session = Session::open_for(&common.login, timeout)?;
    let mut removal = Removal { session, group: *group, timeout, steps: Steps::new(common.json) };
    if *stay {
        removal.mark("STAY", GroupState::Stays)?;
        removal.tell("stays");
        return Ok(());
    }
    let nodes = removal.retry(|it| nodes::read(&mut it.session))?;
    let nodes: Vec<u8> = nodes.iter().filter(|node| node.group == Some((*group).into())).map(|node| node.id).collect();
    let own = removal.retry(|it| nodes::own(&mut it.session))?;
    if nodes.contains(&own) {
        return Err(format!("node {own} is one of those to be removed; log in to a node that stays").into());
    }
    removal.mark("LEAVE", GroupState::Leaves)?;
    removal.tell("is to be removed; no new tables are placed in it");
    removal.move_tables(Duration::from_secs(*pause))?;
    let names: Vec<String> = nodes.iter().map(u8::to_string).collect();
    let nodes = names.join(", ");
    removal.tell(&format!("is removed; take nodes {nodes} out of `nodes` of all nodes"));
    Ok(())
}

impl Removal {
    fn tell(&self, step: &str) {
        self.steps.tell(&format!("node group {}", self.group), step);
    }

    /// Tries again after errors that pass.
    fn retry<T>(&mut self, mut step: impl FnMut(&mut Removal) -> Result<T>) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        loop {
            match step(self) {
                Err(error) if passes(&*error) && Instant::now() < deadline => {
                    self.tell(&format!("tries again: {error}"));
                    std::thread::sleep(LOOK_EVERY * 5);
                }
                result => return result,
            }
        }
    }

    fn state(&mut self) -> Result<GroupState> {
        let group = self.group;
        self.retry(|it| Ok(state_in(&it.session.query(GROUPS)?, group)))
    }

    /// Marks the group, until this node knows it.
    fn mark(&mut self, word: &str, wanted: GroupState) -> Result<()> {
        let statement = format!("ALTER NODEGROUP {} {word}", self.group);
        let deadline = Instant::now() + self.timeout;
        loop {
            // It may have been lost with its leader, so it is repeated until the state is there.
            self.retry(|it| it.session.execute(&statement))?;
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
        loop {
            let places = self.retry(|it| it.session.query(PLACES))?;
            let tables = tables_in(&places, self.group);
            if told != Some(tables.len()) {
                self.tell(&match tables.len() {
                    0 => "has no table; waits for temporary tables and the last schema change".to_owned(),
                    count => format!("{count} tables have rows there"),
                });
                told = Some(tables.len());
            }
            match self.state()? {
                GroupState::Gone => return Ok(()),
                GroupState::Leaves => {}
                GroupState::Stays if tables.is_empty() => {}
                GroupState::Stays => return Err(format!("node group {} is to stay", self.group).into()),
            }
            let Some((database, name)) = tables.first() else {
                if Instant::now() >= deadline {
                    let why = "sessions have temporary tables there, or a schema change does not end";
                    return Err(format!("node group {} is not removed: {why}", self.group).into());
                }
                std::thread::sleep(LOOK_EVERY);
                continue;
            };
            self.move_table(database, name)?;
            told = told.map(|count: usize| count - 1);
            deadline = Instant::now() + self.timeout;
            std::thread::sleep(pause);
        }
    }

    fn move_table(&mut self, database: &str, name: &str) -> Result<()> {
        let statement = format!("ALTER TABLE {}.{} REORGANIZE PARTITION", quoted(database), quoted(name));
        let table = format!("table {database}.{name}");
        self.steps.tell(&table, "moves");
        match self.retry(|it| it.session.execute(&statement)) {
            Err(error) if is_missing(&*error) => self.steps.tell(&table, "was dropped"),
            Err(error) => return Err(format!("{table}: {error}").into()),
            Ok(()) => self.steps.tell(&table, "has moved"),
        }
        Ok(())
    }
}

/// The state of a group in this table of [`GROUPS`].
fn state_in(groups: &Table, group: u8) -> GroupState {
    let mut rows = 0..groups.rows.len();
    match rows.find(|row| groups.cell(*row, "node_group").number() == Some(group.into())) {
        None => GroupState::Gone,
        Some(row) if matches!(&*groups.cell(row, "state").text(), "LEAVING" | "DOWN") => GroupState::Leaves,
        Some(_) => GroupState::Stays,
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
        let cells = |row: &&[&str]| row.iter().map(|text| Cell::of(mysql::Value::from(*text), false)).collect();
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
    }
}
