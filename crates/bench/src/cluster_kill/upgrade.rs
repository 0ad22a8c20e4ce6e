//! A rolling upgrade: each node in turn is stopped, and starts with the binary of the next release. Then the
//! cluster goes back in the same way.

use std::path::Path;

use super::check::STATEMENT_MAX;
use super::clients::Load;
use super::fault::{Fault, Way};
use super::nodes::{Nodes, Role, connect};
use super::{Rounds, await_whole, unless_evicted};
use crate::failure::Explain;
use crate::{Failure, Outcome};

/// The order in which `docs/operations.md` upgrades nodes.
const ORDER: [(Role, &str); 3] = [(Role::Management, "management"), (Role::Data, "data"), (Role::Sql, "sql")];

const CHANGES: [&str; 5] = [
    "DROP TABLE IF EXISTS bank.step",
    "CREATE TABLE bank.step (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(20) DEFAULT 'x', KEY (text))",
    "INSERT INTO bank.step VALUES (), (), ()",
    "ALTER TABLE bank.step ALTER COLUMN text SET DEFAULT 'y', COMMENT = 'changed'",
    "DROP TABLE bank.step",
];

/// Upgrades all nodes, and goes back.
///
/// # Errors
/// The cluster breaks a promise, does not come back, or two nodes do not talk in the newest version that both
/// speak.
pub fn run(nodes: &mut Nodes, (next, seed): (&Path, u64), load: &Load) -> Outcome<()> {
    let mut rounds = Rounds::new(seed);
    let all = nodes.all();
    let before = nodes.binary(all[0]).to_owned();
    let old = version_of(nodes, nodes.with_role(Role::Data)[0])?;
    for binary in [next, &before] {
        for (role, kind) in ORDER {
            for node in nodes.with_role(role) {
                await_whole(nodes, "the cluster between two upgrades")?;
                nodes.set_binary(node, binary.to_owned());
                let fault = Fault { way: Way::Replace, kind, node, is_twice: false };
                unless_evicted(nodes, "changes of the schema", change_schema)
                    .explain(format!("before {fault} {node}"))?;
                rounds.run(nodes, load, &fault).explain(format!("{fault} {node}"))?;
                check_versions(nodes, &before, old)?;
            }
        }
    }
    println!("\n{rounds}");
    Ok(())
}

/// Nodes of both releases take part in changes of the schema.
fn change_schema(nodes: &Nodes) -> Outcome<()> {
    for (at, statement) in nodes.serving().into_iter().cycle().zip(CHANGES) {
        let mut session = connect(at, STATEMENT_MAX).explain(format!("node {at}"))?;
        session.query(statement).explain(format!("node {at}: {statement}"))?;
    }
    Ok(())
}

fn version_of(nodes: &Nodes, node: u8) -> Outcome<u64> {
    let views = nodes.views(node).explain(format!("node {node}"))?;
    views.iter().find(|view| view.node == node).map(|view| view.version).ok_or_else(|| Failure::new("no own version"))
}

/// Each link has the newest version that both nodes speak.
fn check_versions(nodes: &Nodes, before: &Path, old: u64) -> Outcome<()> {
    let sql = nodes.with_role(Role::Sql);
    let newest = |node: u8| old + u64::from(nodes.binary(node) != before);
    for at in nodes.serving() {
        for view in nodes.views(at).explain(format!("node {at}"))? {
            let expected = newest(at).min(newest(view.node));
            // SQL nodes have no links among each other.
            let is_linked = at == view.node || !sql.contains(&at) || !sql.contains(&view.node);
            if view.version != expected && is_linked {
                let found = format!("nodes {at} and {}: version {} instead of {expected}", view.node, view.version);
                return Err(Failure::new(found));
            }
        }
    }
    Ok(())
}
