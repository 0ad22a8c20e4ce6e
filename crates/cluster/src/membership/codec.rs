//! The bytes of memberships and their changes, in raft's log and in messages between nodes. `docs/format.md`
//! has the layout.

use junctor_consensus::bytes::{Malformed, Reader, put_u64};
use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, Incarnation};

use super::membership::{PresentDisk, RestartCut};
use super::{Membership, MembershipChange, NodeRecord, NodeSet, NodeState, RemovedNode};

/// The version of the layout, in the first byte.
const VERSION: u8 = 1;
/// The version of memberships with a closed group, which programs of version 1 refuse.
const CLOSED_GROUP_VERSION: u8 = 2;
/// Added to the version of a membership with the number that all disks have.
const DURABLE_VERSIONS: u8 = 2;
/// The version of memberships with a group that leaves, or with removed nodes.
const REMOVED_VERSION: u8 = 5;
/// The version of memberships with nodes that were added to open groups.
const REPLICAS_VERSION: u8 = 6;
/// Bytes of an item of each list.
const RECORD_BYTES: usize = 1 + 1 + 4 + 1 + 1 + 4 + 4 + 4;
const CHAIN_BYTES_MIN: usize = 4;
const CUT_BYTES: usize = 4 + 8;
const DISK_BYTES: usize = 1 + 4 + 4 + 8;
const REMOVED_BYTES: usize = 1 + 4;

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u32(out, u32::try_from(count).expect("a cluster has few nodes, chains and cuts"));
}

fn take_version(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    if reader.u8()? == VERSION { Ok(()) } else { Err(Malformed("the version is unknown")) }
}

fn take_node(reader: &mut Reader<'_>) -> Result<NodeId, Malformed> {
    reader.u8().map(NodeId)
}

fn take_epoch(reader: &mut Reader<'_>) -> Result<Epoch, Malformed> {
    reader.u32().map(Epoch)
}

fn take_number(reader: &mut Reader<'_>) -> Result<CommitNumber, Malformed> {
    reader.u64().map(CommitNumber)
}

fn put_nodes(out: &mut Vec<u8>, nodes: NodeSet) {
    nodes.to_words().into_iter().for_each(|word| put_u64(out, word));
}

fn take_nodes(reader: &mut Reader<'_>) -> Result<NodeSet, Malformed> {
    Ok(NodeSet::from_words([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]))
}

/// Takes a list of items that take at least `bytes_min` bytes each.
fn take_list<T>(
    reader: &mut Reader<'_>,
    bytes_min: usize,
    item: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = reader.count(bytes_min)?;
    (0..count).map(|_| item(reader)).collect()
}

impl MembershipChange {
    /// The bytes of the change.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            MembershipChange::Evict { nodes, avoid } => {
                out.push(1);
                put_nodes(&mut out, *nodes);
                out.push(u8::from(avoid.is_some()));
                out.extend(avoid.map(|node| node.0));
            }
            MembershipChange::Admit { node, incarnation } => {
                out.extend([2, node.0]);
                put_u32(&mut out, incarnation.0);
            }
            MembershipChange::Serve { node, epoch } => {
                out.extend([3, node.0]);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::MarkDurable { nodes, epoch } => {
                out.push(4);
                put_nodes(&mut out, *nodes);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::NoteStarted { epoch } => {
                out.push(5);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::Renew { sequencer } => out.extend([6, sequencer.0]),
            MembershipChange::Restart { present } => {
                out.push(7);
                put_count(&mut out, present.len());
                for disk in present {
                    out.push(disk.node.0);
                    put_u32(&mut out, disk.incarnation.0);
                    put_u32(&mut out, disk.started.0);
                    put_u64(&mut out, disk.stable.0);
                }
            }
            MembershipChange::AddGroup { nodes } => {
                out.push(8);
                put_nodes(&mut out, *nodes);
            }
            MembershipChange::OpenGroup { group, epoch } => {
                out.extend([9, *group]);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::NoteDurable { number, epoch } => {
                out.push(10);
                put_u64(&mut out, number.0);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::LeaveGroup { group, leaves } => out.extend([11, *group, u8::from(*leaves)]),
            MembershipChange::NoteEmpty { group, number, epoch } => {
                out.extend([12, *group]);
                put_u64(&mut out, number.0);
                put_u32(&mut out, epoch.0);
            }
            MembershipChange::RemoveGroup { group } => out.extend([13, *group]),
            MembershipChange::AddReplica { node, group } => out.extend([14, node.0, *group]),
            MembershipChange::LeaveReplica { node, leaves } => out.extend([15, node.0, u8::from(*leaves)]),
            MembershipChange::RemoveReplica { node } => out.extend([16, node.0]),
        }
        out
    }

    /// The change of these bytes.
    ///
    /// # Errors
    /// The bytes are no change that this release knows.
    pub fn decode(bytes: &[u8]) -> Result<MembershipChange, Malformed> {
        let reader = &mut Reader::new(bytes);
        take_version(reader)?;
        let change = match reader.u8()? {
            1 => {
                let nodes = take_nodes(reader)?;
                let avoid = if reader.bool()? { Some(take_node(reader)?) } else { None };
                MembershipChange::Evict { nodes, avoid }
            }
            2 => {
                let node = take_node(reader)?;
                MembershipChange::Admit { node, incarnation: Incarnation(reader.u32()?) }
            }
            3 => MembershipChange::Serve { node: take_node(reader)?, epoch: take_epoch(reader)? },
            4 => MembershipChange::MarkDurable { nodes: take_nodes(reader)?, epoch: take_epoch(reader)? },
            5 => MembershipChange::NoteStarted { epoch: take_epoch(reader)? },
            6 => MembershipChange::Renew { sequencer: take_node(reader)? },
            7 => {
                let disk = |reader: &mut Reader<'_>| {
                    Ok(PresentDisk {
                        node: take_node(reader)?,
                        incarnation: Incarnation(reader.u32()?),
                        started: take_epoch(reader)?,
                        stable: take_number(reader)?,
                    })
                };
                MembershipChange::Restart { present: take_list(reader, DISK_BYTES, disk)? }
            }
            8 => MembershipChange::AddGroup { nodes: take_nodes(reader)? },
            9 => MembershipChange::OpenGroup { group: reader.u8()?, epoch: take_epoch(reader)? },
            10 => MembershipChange::NoteDurable { number: take_number(reader)?, epoch: take_epoch(reader)? },
            11 => MembershipChange::LeaveGroup { group: reader.u8()?, leaves: reader.bool()? },
            12 => {
                let (group, number) = (reader.u8()?, take_number(reader)?);
                MembershipChange::NoteEmpty { group, number, epoch: take_epoch(reader)? }
            }
            13 => MembershipChange::RemoveGroup { group: reader.u8()? },
            14 => MembershipChange::AddReplica { node: take_node(reader)?, group: reader.u8()? },
            15 => MembershipChange::LeaveReplica { node: take_node(reader)?, leaves: reader.bool()? },
            16 => MembershipChange::RemoveReplica { node: take_node(reader)? },
            _ => return Err(Malformed("the kind of change is unknown")),
        };
        reader.end()?;
        Ok(change)
    }
}

fn put_record(out: &mut Vec<u8>, record: &NodeRecord) {
    let NodeRecord { node, group, incarnation, state, is_durable, admitted, serving_since, known_start } = *record;
    let state = match state {
        NodeState::Away => 0,
        NodeState::Joining => 1,
        NodeState::Serving => 2,
    };
    out.extend([node.0, group]);
    put_u32(out, incarnation.0);
    out.extend([state, u8::from(is_durable)]);
    [admitted, serving_since, known_start].into_iter().for_each(|epoch| put_u32(out, epoch.0));
}

fn take_record(reader: &mut Reader<'_>) -> Result<NodeRecord, Malformed> {
    Ok(NodeRecord {
        node: take_node(reader)?,
        group: reader.u8()?,
        incarnation: Incarnation(reader.u32()?),
        state: match reader.u8()? {
            0 => NodeState::Away,
            1 => NodeState::Joining,
            2 => NodeState::Serving,
            _ => return Err(Malformed("the state of a node is unknown")),
        },
        is_durable: reader.bool()?,
        admitted: take_epoch(reader)?,
        serving_since: take_epoch(reader)?,
        known_start: take_epoch(reader)?,
    })
}

impl Membership {
    /// The bytes of the membership.
    pub fn encode(&self) -> Vec<u8> {
        let Membership { epoch, nodes, is_leaving, is_emptied, removed, chains, sequencer, .. } = self;
        let Membership { started, restarted, cuts, durable, added, leaving, .. } = self;
        let closed_groups = u8::from(self.closed_group().is_some());
        let has_replicas = !added.is_empty();
        let has_removed = has_replicas || *is_leaving || !removed.is_empty();
        let has_durable = durable.0 > 0 || has_removed;
        let version = if closed_groups > 0 { CLOSED_GROUP_VERSION } else { VERSION };
        let version = version + if has_durable { DURABLE_VERSIONS } else { 0 };
        let mut out = vec![match has_removed {
            true if has_replicas => REPLICAS_VERSION,
            true => REMOVED_VERSION,
            false => version,
        }];
        put_u32(&mut out, epoch.0);
        out.push(sequencer.0);
        put_u32(&mut out, started.0);
        put_u32(&mut out, restarted.0);
        put_count(&mut out, nodes.len());
        nodes.iter().for_each(|record| put_record(&mut out, record));
        put_count(&mut out, chains.len());
        for chain in chains {
            put_count(&mut out, chain.len());
            out.extend(chain.iter().map(|node| node.0));
        }
        put_count(&mut out, cuts.len());
        for cut in cuts {
            put_u32(&mut out, cut.epoch.0);
            put_u64(&mut out, cut.cut.0);
        }
        if has_durable {
            put_u64(&mut out, durable.0);
        }
        if has_removed {
            out.extend([closed_groups, u8::from(*is_leaving), u8::from(*is_emptied)]);
            put_count(&mut out, removed.len());
            for RemovedNode { node, incarnation } in removed {
                out.push(node.0);
                put_u32(&mut out, incarnation.0);
            }
        }
        if has_replicas {
            put_nodes(&mut out, *added);
            put_nodes(&mut out, *leaving);
        }
        out
    }

    /// The membership of these bytes.
    ///
    /// # Errors
    /// The bytes are no membership that this release knows.
    pub fn decode(bytes: &[u8]) -> Result<Membership, Malformed> {
        let reader = &mut Reader::new(bytes);
        let version = reader.u8()?;
        let has_durable = version > DURABLE_VERSIONS;
        let mut closed_groups = match version - if has_durable { DURABLE_VERSIONS } else { 0 } {
            VERSION => 0,
            CLOSED_GROUP_VERSION => 1,
            _ if version == REMOVED_VERSION || version == REPLICAS_VERSION => 0,
            _ => return Err(Malformed("the version is unknown")),
        };
        let epoch = take_epoch(reader)?;
        let sequencer = take_node(reader)?;
        let (started, restarted) = (take_epoch(reader)?, take_epoch(reader)?);
        let nodes = take_list(reader, RECORD_BYTES, take_record)?;
        let chains = take_list(reader, CHAIN_BYTES_MIN, |reader| take_list(reader, 1, take_node))?;
        let cuts = take_list(reader, CUT_BYTES, |reader| {
            Ok(RestartCut { epoch: take_epoch(reader)?, cut: take_number(reader)? })
        })?;
        let durable = if has_durable { take_number(reader)? } else { CommitNumber(0) };
        let (mut is_leaving, mut is_emptied, mut removed) = (false, false, Vec::new());
        if version >= REMOVED_VERSION {
            closed_groups = u8::from(reader.bool()?);
            (is_leaving, is_emptied) = (reader.bool()?, reader.bool()?);
            removed = take_list(reader, REMOVED_BYTES, |reader| {
                Ok(RemovedNode { node: take_node(reader)?, incarnation: Incarnation(reader.u32()?) })
            })?;
        }
        let (mut added, mut leaving) = (NodeSet::EMPTY, NodeSet::EMPTY);
        if version == REPLICAS_VERSION {
            (added, leaving) = (take_nodes(reader)?, take_nodes(reader)?);
        }
        reader.end()?;
        if !removed.is_sorted_by(|one, other| one.node < other.node) {
            return Err(Malformed("the removed nodes do not ascend"));
        }
        let groups = nodes.iter().map(|record| record.group.saturating_add(1)).max().unwrap_or_default();
        let open_groups = groups.saturating_sub(closed_groups);
        if is_emptied && !is_leaving || is_leaving && (closed_groups > 0 || open_groups < 2) {
            return Err(Malformed("the group that leaves is not the last one of several"));
        }
        let membership = Membership {
            epoch,
            nodes,
            open_groups,
            is_leaving,
            is_emptied,
            removed,
            added,
            leaving,
            chains,
            sequencer,
            started,
            restarted,
            cuts,
            durable,
        };
        if !membership.nodes.is_sorted_by(|one, other| one.node < other.node) {
            return Err(Malformed("the nodes do not ascend"));
        }
        let is_known = |node: &NodeId| membership.record(*node).is_some();
        if !added.iter().all(|node| is_known(&node)) || !leaving.without(&added).is_empty() {
            return Err(Malformed("an added replica is no node"));
        }
        if !is_known(&membership.sequencer) || !membership.chains.iter().flatten().all(is_known) {
            return Err(Malformed("the sequencer or a replica is no node"));
        }
        Ok(membership)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn membership() -> Membership {
        let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(7), 1)];
        let chains = [vec![1, 2], vec![2, 1], vec![7]].map(|chain| chain.into_iter().map(NodeId).collect()).to_vec();
        let created = Membership::create(&nodes, chains, NodeId(1));
        let disk = |node, started| PresentDisk { node, incarnation: Incarnation(9), started, stable: CommitNumber(9) };
        let present = [1, 7].map(|node| disk(NodeId(node), Epoch(1)));
        created.apply(&MembershipChange::Restart { present: present.to_vec() }).unwrap()
    }

    fn changes() -> impl Strategy<Value = MembershipChange> {
        let node = || any::<u8>().prop_map(NodeId);
        let nodes = || any::<[u64; 4]>().prop_map(NodeSet::from_words);
        let epoch = || any::<u32>().prop_map(Epoch);
        let incarnation = || any::<u32>().prop_map(Incarnation);
        let disk = (node(), incarnation(), any::<u32>(), any::<u64>());
        let disk = disk.prop_map(|(node, incarnation, started, stable)| PresentDisk {
            node,
            incarnation,
            started: Epoch(started),
            stable: CommitNumber(stable),
        });
        prop_oneof![
            (nodes(), proptest::option::of(node())).prop_map(|(nodes, avoid)| MembershipChange::Evict { nodes, avoid }),
            (node(), incarnation()).prop_map(|(node, incarnation)| MembershipChange::Admit { node, incarnation }),
            (node(), epoch()).prop_map(|(node, epoch)| MembershipChange::Serve { node, epoch }),
            (nodes(), epoch()).prop_map(|(nodes, epoch)| MembershipChange::MarkDurable { nodes, epoch }),
            epoch().prop_map(|epoch| MembershipChange::NoteStarted { epoch }),
            node().prop_map(|sequencer| MembershipChange::Renew { sequencer }),
            nodes().prop_map(|nodes| MembershipChange::AddGroup { nodes }),
            (any::<u8>(), epoch()).prop_map(|(group, epoch)| MembershipChange::OpenGroup { group, epoch }),
            any::<(u8, bool)>().prop_map(|(group, leaves)| MembershipChange::LeaveGroup { group, leaves }),
            (any::<u8>(), any::<u64>(), epoch()).prop_map(|(group, number, epoch)| {
                MembershipChange::NoteEmpty { group, number: CommitNumber(number), epoch }
            }),
            any::<u8>().prop_map(|group| MembershipChange::RemoveGroup { group }),
            (node(), any::<u8>()).prop_map(|(node, group)| MembershipChange::AddReplica { node, group }),
            (node(), any::<bool>()).prop_map(|(node, leaves)| MembershipChange::LeaveReplica { node, leaves }),
            node().prop_map(|node| MembershipChange::RemoveReplica { node }),
            (any::<u64>(), epoch())
                .prop_map(|(number, epoch)| { MembershipChange::NoteDurable { number: CommitNumber(number), epoch } }),
            proptest::collection::vec(disk, 0..5).prop_map(|present| MembershipChange::Restart { present }),
        ]
    }

    #[test]
    fn a_membership_survives_encoding() {
        let membership = membership();
        assert_eq!(Membership::decode(&membership.encode()), Ok(membership));
    }

    #[test]
    fn a_membership_with_nodes_out_of_order_or_unknown_replicas_is_refused() {
        let mut swapped = membership();
        swapped.nodes.swap(0, 1);
        assert!(Membership::decode(&swapped.encode()).is_err());
        let mut unknown = membership();
        unknown.chains[0].push(NodeId(200));
        assert!(Membership::decode(&unknown.encode()).is_err());
    }

    /// The log of a voter outlives its release, so these bytes never change.
    #[test]
    fn the_layout_of_version_1_stays() {
        let nodes = [NodeId(3), NodeId(64)].into_iter().collect();
        let evict = MembershipChange::Evict { nodes, avoid: Some(NodeId(9)) }.encode();
        assert_eq!(evict[..3], [1, 1, 8]);
        assert_eq!((evict.len(), evict[10], evict[34], evict[35]), (36, 1, 1, 9));
        let serve = MembershipChange::Serve { node: NodeId(5), epoch: Epoch(0x0102) };
        assert_eq!(serve.encode(), [1, 3, 5, 2, 1, 0, 0]);
        assert_eq!(membership().encode().len(), 14 + 4 + 3 * RECORD_BYTES + 4 + 3 * 4 + 3 + 4 + CUT_BYTES);
    }

    proptest! {
        #[test]
        fn a_change_survives_encoding_and_its_prefixes_are_refused(change in changes()) {
            let bytes = change.encode();
            prop_assert_eq!(MembershipChange::decode(&bytes), Ok(change));
            for length in 0..bytes.len() {
                prop_assert!(MembershipChange::decode(&bytes[..length]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = MembershipChange::decode(&bytes);
            _ = Membership::decode(&bytes);
            if let Some(version) = bytes.first_mut() {
                *version = VERSION;
            }
            _ = MembershipChange::decode(&bytes);
            _ = Membership::decode(&bytes);
        }

        #[test]
        fn a_damaged_membership_is_decoded_or_refused(position in 0..90_usize, value in any::<u8>()) {
            let mut bytes = membership().encode();
            let position = position % bytes.len();
            bytes[position] = value;
            _ = Membership::decode(&bytes);
        }
    }
}
