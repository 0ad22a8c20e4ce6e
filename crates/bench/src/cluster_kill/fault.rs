//! What happens to which node.

use std::fmt;

use super::nodes::{Nodes, Role};
use super::options::ClusterKillOptions;
use crate::failure::Explain;
use crate::random::Random;
use crate::{Failure, Outcome};

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// SIGKILL.
    Kill,
    /// Its cable is pulled.
    Cut,
    /// SIGSTOP.
    Stop,
    /// SIGTERM, and a start with the other release.
    Replace,
}

/// A fault of one node.
#[derive(Clone, Debug)]
pub struct Fault {
    pub way: Way,
    /// The role of the node, for the report.
    pub kind: &'static str,
    pub node: u8,
    /// Whether the node is killed once more, while it returns.
    pub is_twice: bool,
}

const WAYS: [(Way, &str); 4] = [(Way::Kill, "kill"), (Way::Cut, "cut"), (Way::Stop, "stop"), (Way::Replace, "replace")];
const KINDS: [&str; 5] = ["data", "sequencer", "leader", "management", "sql"];

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = WAYS.iter().find(|(way, _)| *way == self.way).map_or("", |(_, name)| name);
        write!(out, "{way} {}", self.kind)
    }
}

impl Fault {
    /// Draws a fault for a cluster that is whole. Half of all faults are kills.
    ///
    /// # Errors
    /// No node answers, or no fault is allowed.
    pub fn draw(nodes: &Nodes, options: &ClusterKillOptions, random: &mut Random) -> Outcome<Fault> {
        let views = nodes.views(nodes.with_role(Role::Data)[0]).explain("the nodes of the cluster")?;
        let data = nodes.with_role(Role::Data);
        let mut faults = Vec::new();
        for (way, way_name) in [WAYS[0], WAYS[0], WAYS[1], WAYS[2]] {
            for kind in KINDS {
                let name = format!("{way_name} {kind}");
                let is_wanted = |only: &String| name == *only || way_name == only || kind == only;
                if !options.only.is_empty() && !options.only.iter().any(is_wanted) {
                    continue;
                }
                let of_kind = views.iter().filter(|view| match kind {
                    "data" => data.contains(&view.node) && !view.is_sequencer && !view.is_leader,
                    "sequencer" => view.is_sequencer,
                    "leader" => view.is_leader,
                    "management" => nodes.with_role(Role::Management).contains(&view.node),
                    _ => nodes.with_role(Role::Sql).contains(&view.node),
                });
                let of_kind: Vec<u8> = of_kind.map(|view| view.node).collect();
                if !of_kind.is_empty() {
                    let node = of_kind[random.below(of_kind.len() as u64) as usize];
                    faults.push(Fault { way, kind, node, is_twice: false });
                }
            }
        }
        if faults.is_empty() {
            return Err(Failure::new("no fault is possible"));
        }
        let drawn = random.below(faults.len() as u64) as usize;
        let mut fault = faults.swap_remove(drawn);
        fault.is_twice = fault.way == Way::Kill && random.below(4) == 0;
        Ok(fault)
    }
}
