//! `junctor admin remove --replicas`: each node group loses replicas that were added to it.
#![allow(clippy::disallowed_methods, reason = "this process operates nodes, and is none itself")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Result;
use super::add::{Steps, retry};
use super::nodes::{self, Node};
use super::operate::LOOK_EVERY;
use super::session::Session;

/// Number of looks at a node that is to leave, until the statement is repeated. It may have been lost with
/// the leader.
const LOOKS_PER_STATEMENT: u32 = 10;

/// Removes replicas until each node group has `wanted` of them, or lets those stay that are to be removed.
///
/// # Errors
/// A group has too few nodes that can be removed, or a step takes too long.
pub fn lower(
    mut session: Session,
    (wanted, is_forced, stays): (usize, bool, bool),
    timeout: Duration,
    steps: &Steps,
) -> Result<()> {
    let nodes = retry("cluster", timeout, steps, || nodes::read(&mut session))?;
    if stays {
        for node in nodes.iter().filter(|node| node.state == "LEAVING") {
            change(&mut session, node.id, "STAY", timeout, steps)?;
            steps.tell(&format!("node {}", node.id), "stays");
        }
        return Ok(());
    }
    let leaving = surplus(&nodes, wanted)?;
    if wanted == 1 && !leaving.is_empty() && !is_forced {
        let text = "each node group would keep one node, whose loss stops the cluster; --force does it";
        return Err(text.into());
    }
    if !is_forced {
        check_rest(&nodes, &leaving, wanted)?;
    }
    let own = retry("cluster", timeout, steps, || nodes::own(&mut session))?;
    if leaving.contains(&own) {
        return Err(format!("node {own} is one of those to be removed; log in to a node that stays").into());
    }
    for node in &leaving {
        steps.tell(&format!("node {node}"), "is to be removed");
        change(&mut session, *node, "LEAVE", timeout, steps)?;
        steps.tell(&format!("node {node}"), "is removed");
    }
    let nodes = retry("cluster", timeout, steps, || nodes::read(&mut session))?;
    let removed: Vec<String> =
        nodes.iter().filter(|node| node.state == "REMOVED").map(|node| node.id.to_string()).collect();
    let text = match removed.is_empty() {
        true => format!("each node group has at most {wanted} nodes"),
        false => {
            let names = removed.join(", ");
            format!("each node group has at most {wanted} nodes; take nodes {names} out of `nodes` of all nodes")
        }
    };
    steps.tell("cluster", &text);
    Ok(())
}

/// The nodes to remove, so that each group keeps `wanted`: nodes that do not serve, then the highest numbers.
///
/// # Errors
/// A group has too few nodes that were added to it.
fn surplus(nodes: &[Node], wanted: usize) -> Result<Vec<u8>> {
    let groups: BTreeSet<u64> = nodes.iter().filter_map(|node| node.group).collect();
    let mut leaving = Vec::new();
    for group in groups {
        let of_group: Vec<&Node> = nodes.iter().filter(|node| node.group == Some(group)).collect();
        let count = of_group.len().saturating_sub(wanted);
        let mut added: Vec<&Node> = of_group.into_iter().filter(|node| node.joins() == Some(group)).collect();
        if added.len() < count {
            let text = "of its nodes were added to it, and only these can be removed";
            return Err(format!("node group {group} would lose {count} nodes, and {} {text}", added.len()).into());
        }
        added.sort_by_key(|node| (node.state != "LEAVING", node.is_whole(), std::cmp::Reverse(node.id)));
        leaving.extend(added.iter().take(count).map(|node| node.id));
    }
    Ok(leaving)
}

/// Refuses a removal after which a group would have a single copy of its rows, or none, although more are
/// wanted: nodes with which it began cannot be removed, and may be down.
fn check_rest(nodes: &[Node], leaving: &[u8], wanted: usize) -> Result<()> {
    let leaves = |node: &&Node| leaving.contains(&node.id);
    let groups: BTreeSet<u64> = nodes.iter().filter(leaves).filter_map(|node| node.group).collect();
    for group in groups {
        let stays = |node: &&Node| node.group == Some(group) && !leaves(node) && node.is_whole();
        let (count, least) = (nodes.iter().filter(stays).count(), wanted.min(2));
        if count < least {
            let advice = "start the others first; --force does it all the same";
            let text = format!("node group {group} would keep {count} nodes that serve with a disk that counts");
            return Err(format!("{text}, and {least} are needed; {advice}").into());
        }
    }
    Ok(())
}

/// Marks a node as leaving until it is gone, or takes the mark back.
fn change(session: &mut Session, node: u8, word: &str, timeout: Duration, steps: &Steps) -> Result<()> {
    let (what, statement) = (format!("node {node}"), format!("ALTER NODE {node} {word}"));
    let deadline = Instant::now() + timeout;
    loop {
        let state = |session: &mut Session| -> Result<Option<String>> {
            let nodes = nodes::read(session)?;
            Ok(nodes.into_iter().find(|it| it.id == node).map(|it| it.state))
        };
        let is_removed = |state: &Option<String>| state.as_deref().is_none_or(|state| state == "REMOVED");
        let before = retry(&what, timeout, steps, || state(session))?;
        if !is_removed(&before) {
            retry(&what, timeout, steps, || session.execute(&statement))?;
        }
        for _ in 0..LOOKS_PER_STATEMENT {
            let now = retry(&what, timeout, steps, || state(session))?;
            match (word, is_removed(&now)) {
                ("STAY", true) => return Err(format!("node {node} is removed already").into()),
                ("STAY", false) if now.as_deref() != Some("LEAVING") => return Ok(()),
                ("LEAVE", true) => return Ok(()),
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
        if Instant::now() >= deadline {
            let seconds = timeout.as_secs();
            return Err(format!("node {node}: {word} did not take effect within {seconds} s").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u8, roles: &str, state: &str, group: u64) -> Node {
        Node {
            id,
            roles: roles.into(),
            state: state.into(),
            group: Some(group),
            is_durable: state == "SERVING",
            has_office: false,
            is_voter: false,
            is_linked: state != "DOWN",
            incarnation: None,
            epoch: 1,
        }
    }

    #[test]
    fn added_nodes_are_removed_and_those_first_that_do_not_serve() {
        let mut nodes = vec![
            node(1, "data", "SERVING", 0),
            node(2, "data", "DOWN", 1),
            node(3, "data,added:0", "SERVING", 0),
            node(4, "data,added:1", "SERVING", 1),
            node(5, "data,added:0", "SERVING", 0),
            node(6, "data,added:1", "SERVING", 1),
        ];
        assert_eq!(surplus(&nodes, 3).unwrap(), [0u8; 0]);
        assert_eq!(surplus(&nodes, 2).unwrap(), [5, 6]);
        assert_eq!(surplus(&nodes, 1).unwrap(), [5, 3, 6, 4]);
        nodes[2].state = "DOWN".into();
        nodes[3].state = "LEAVING".into();
        assert_eq!(surplus(&nodes, 2).unwrap(), [3, 4]);
        nodes.push(node(7, "data", "SERVING", 0));
        let refused = surplus(&nodes, 1).unwrap_err().to_string();
        assert!(surplus(&nodes, 2).is_ok() && !refused.is_empty());
        nodes.push(node(8, "data", "SERVING", 1));
        assert!(surplus(&nodes, 1).unwrap_err().to_string().contains("node group 0 would lose 3 nodes, and 2 of"));
    }

    #[test]
    fn a_group_keeps_as_many_whole_nodes_as_are_wanted_but_needs_no_more_than_two() {
        let mut nodes = vec![
            node(1, "data", "SERVING", 0),
            node(2, "data", "DOWN", 1),
            node(3, "data,added:0", "SERVING", 0),
            node(4, "data,added:0", "SERVING", 0),
        ];
        let refusal = |nodes: &[Node], wanted| {
            let leaving = surplus(nodes, wanted).unwrap();
            check_rest(nodes, &leaving, wanted).err().map(|refusal| refusal.to_string())
        };
        // Node 2 stays alone, as before.
        assert!([1, 2, 3].iter().all(|wanted| refusal(&nodes, *wanted).is_none()));
        nodes[0].state = "DOWN".into();
        assert_eq!(refusal(&nodes, 3), None);
        let text = refusal(&nodes, 2).unwrap();
        assert!(
            text.starts_with("node group 0 would keep 1 nodes that serve with a disk that counts, and 2"),
            "{text}"
        );
        assert!(refusal(&nodes, 1).unwrap().contains("would keep 0 nodes"));
        nodes[0].state = "SERVING".into();
        nodes[0].is_durable = false;
        assert!(refusal(&nodes, 2).is_some(), "its disk does not count");
        // Three of four are enough for now.
        nodes.extend([node(5, "data,added:0", "SERVING", 0)]);
        assert_eq!(refusal(&nodes, 3), None);
    }
}
