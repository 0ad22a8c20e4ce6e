//! The partitions placed at an ldm, as primary or as backup.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use junctor_kernel::{Address, require};
use junctor_model::id::{PartitionId, SchemaVersion};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::schema::TableLayout;
use junctor_storage::guard::OwnerToken;

use super::copy_rows::PartitionCopy;
use crate::GuardedPartition;

/// Index of a partition's slot. It stays valid as long as any transaction touches the partition.
pub(super) type SlotIndex = u32;

/// One partition, as primary or as backup.
#[derive(Debug)]
pub(super) struct PartitionSlot {
    pub id: PartitionId,
    pub guard: Arc<GuardedPartition>,
    pub token: OwnerToken,
    pub layout: Arc<TableLayout>,
    /// The chain of the catalog, and this ldm behind it if the catalog does not name it: its node was added.
    pub configured: Vec<Address>,
    /// Those on nodes that are left, the primary first.
    pub chain: Vec<Address>,
    /// Position of this ldm in the chain; 0 is the primary.
    pub chain_position: usize,
    /// The oldest schema version whose plans may write. Older plans do not know every unique index.
    pub writers_version: SchemaVersion,
    /// Number of open transactions that have touched the partition.
    pub participants: u32,
    /// Number of transactions whose images are not resolved here.
    pub images: u32,
    /// The copy of the rows, while it is not complete.
    pub copy: Option<Box<PartitionCopy>>,
    /// Whether the partition is freed when the last of these transactions ends.
    pub is_dropped: bool,
    /// Whether the purge queue contains the partition.
    pub is_purging: bool,
    /// Whether a deferred step stamps the rows of committed transactions.
    pub is_stamping: bool,
    /// Number of versions purged since the pages were last compacted.
    pub purged: usize,
    pub is_compacting: bool,
}

impl PartitionSlot {
    /// Whether the partition has its primary here, and no image of the time as a backup is left.
    #[inline]
    pub fn takes_writes(&self) -> bool {
        self.chain_position == 0 && (self.images == 0 || PlantedBug::OpenPromotedEarly.is_planted())
    }

    /// Whether the log has the changes of the rows.
    #[inline]
    pub fn is_logged(&self) -> bool {
        !self.layout.definition.is_temporary()
    }

    /// Records that another transaction touches the partition.
    #[inline]
    pub fn enter(&mut self) {
        require!(!self.is_dropped, "no transaction begins to touch a dropped partition: {:?}", self.id);
        self.participants += 1;
    }

    /// Records that a transaction which touched the partition has ended. Returns true if the partition can be
    /// freed.
    #[inline]
    #[must_use]
    pub fn leave(&mut self) -> bool {
        require!(self.participants > 0, "a transaction leaves a partition once: {:?}", self.id);
        self.participants -= 1;
        self.participants == 0 && self.is_dropped
    }
}

#[derive(Debug)]
pub(super) struct PartitionTable {
    slots: Vec<Option<PartitionSlot>>,
    free: Vec<SlotIndex>,
    /// Partitions that are not dropped.
    by_id: HashMap<PartitionId, SlotIndex, FixedState>,
    /// The query instances that may read the partitions; `None` means all of the node's.
    pub reader_instances: Option<Vec<u16>>,
}

impl PartitionTable {
    pub fn new(seed: u64) -> PartitionTable {
        PartitionTable {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::with_hasher(FixedState::with_seed(seed)),
            reader_instances: None,
        }
    }

    /// The slot of a partition that is not dropped.
    #[inline]
    pub fn find(&self, partition: PartitionId) -> Option<SlotIndex> {
        self.by_id.get(&partition).copied()
    }

    #[inline]
    pub fn get(&self, index: SlotIndex) -> Option<&PartitionSlot> {
        self.slots.get(index as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, index: SlotIndex) -> Option<&mut PartitionSlot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// The partition in a slot that a transaction touches.
    #[inline]
    pub fn slot(&mut self, index: SlotIndex) -> &mut PartitionSlot {
        match self.get_mut(index) {
            Some(slot) => slot,
            None => junctor_kernel::invariant::fail("a slot in use has its partition", format_args!("slot {index}")),
        }
    }

    /// Every partition in slot order, including dropped ones that transactions still touch.
    pub fn iter(&self) -> impl Iterator<Item = &PartitionSlot> {
        self.slots.iter().flatten()
    }

    /// The slots in use.
    pub fn indexes(&self) -> Vec<SlotIndex> {
        (0..self.slots.len() as SlotIndex).filter(|index| self.get(*index).is_some()).collect()
    }

    /// The partitions that are not dropped, in order.
    pub fn ids(&self) -> Vec<PartitionId> {
        let mut ids: Vec<PartitionId> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The partitions that checkpoints write: those of temporary tables are left out.
    pub fn kept_ids(&self) -> Vec<PartitionId> {
        let mut ids = self.ids();
        ids.retain(|id| self.find(*id).and_then(|index| self.get(index)).is_some_and(PartitionSlot::is_logged));
        ids
    }

    pub fn insert(&mut self, slot: PartitionSlot) {
        let id = slot.id;
        // Slots are reused, so an index is valid only while its partition is in use.
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(slot);
                index
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as SlotIndex
            }
        };
        let before = self.by_id.insert(id, index);
        require!(before.is_none(), "a partition has one slot: {id:?}");
    }

    /// Hides a partition from [`PartitionTable::find`]. Its slot stays until [`PartitionTable::free`].
    pub fn close(&mut self, partition: PartitionId) -> Option<SlotIndex> {
        self.by_id.remove(&partition)
    }

    /// Frees the memory of a closed partition.
    pub fn free(&mut self, index: SlotIndex) {
        let freed = self.slots.get_mut(index as usize).and_then(Option::take);
        let is_unused = freed.is_some_and(|slot| slot.participants == 0 && slot.is_dropped);
        require!(is_unused, "a partition is freed once, when no transaction touches it: slot {index}");
        self.free.push(index);
    }
}
