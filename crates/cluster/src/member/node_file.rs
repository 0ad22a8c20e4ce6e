//! The file `membership` in the data directory of a node of a cluster: which node of which cluster the
//! directory belongs to, and its lives. `docs/format.md` has the layout.

use junctor_kernel::NodeId;
use junctor_model::id::{Epoch, Incarnation};
use junctor_storage::log::{decode_slot, encode_slot};

/// The name of the file.
pub const NODE_FILE: &str = "membership";
/// The name under which it is written.
pub const NEW_NODE_FILE: &str = "membership.new";
/// The files of the voter.
pub const VOTER_FILES: [&str; 2] = ["consensus.0", "consensus.1"];

/// The use of the file among files with a slot.
const NODE_USE: u16 = 5;
const BYTES: usize = 16 + 1 + 4;

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFile {
    /// The cluster.
    pub cluster: u128,
    /// The node.
    pub node: NodeId,
    /// The last life of the node that has begun.
    pub incarnation: Incarnation,
    /// The epoch that has admitted the last admitted life; 0 before the first.
    pub started: Epoch,
}

impl NodeFile {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut content = self.cluster.to_le_bytes().to_vec();
        content.push(self.node.0);
        content.extend(self.started.0.to_le_bytes());
        encode_slot(NODE_USE, u64::from(self.incarnation.0), &content)
    }

    /// The content of these bytes.
    ///
    /// # Errors
    /// The file is damaged, or a later release wrote it.
    pub fn decode(bytes: &[u8]) -> Result<NodeFile, String> {
        let slot = decode_slot(NODE_USE, bytes).map_err(|error| error.to_string())?;
        let slot = slot.filter(|slot| slot.content.len() == BYTES).ok_or("the file is damaged")?;
        let (cluster, rest) = slot.content.split_at(16);
        let incarnation = u32::try_from(slot.generation).map_err(|_| "the file is damaged")?;
        Ok(NodeFile {
            cluster: cluster.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte)),
            node: NodeId(rest[0]),
            incarnation: Incarnation(incarnation),
            started: Epoch(u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_survives_encoding_and_damage_is_noticed() {
        let file = NodeFile { cluster: 1 << 100 | 7, node: NodeId(3), incarnation: Incarnation(9), started: Epoch(4) };
        let mut bytes = file.encode();
        assert_eq!(NodeFile::decode(&bytes), Ok(file));
        let half = bytes.len() / 2;
        bytes[40] ^= 1;
        assert_eq!(NodeFile::decode(&bytes), Ok(file), "the second copy is whole");
        bytes[half + 40] ^= 1;
        assert!(NodeFile::decode(&bytes).is_err());
        assert!(NodeFile::decode(&[]).is_err());
    }
}
