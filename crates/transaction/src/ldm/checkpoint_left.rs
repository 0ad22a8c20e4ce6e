//! The partitions that a checkpoint round has not begun, and how many bytes it will read of them.

use junctor_model::id::PartitionId;

/// Maximum number of partitions whose bytes one turn determines. A node may have hundreds of thousands.
const LOOKS_PER_TURN_MAX: usize = 2048;

/// The partitions that are left, in order.
#[derive(Debug)]
pub(super) struct LeftPartitions {
    /// In reverse order, each with its bytes at the last look; 0 before the first.
    partitions: Vec<(PartitionId, u64)>,
    /// The sum of these bytes.
    bytes: u64,
    /// Position of the next partition to look at.
    next: usize,
}

impl LeftPartitions {
    /// These partitions, in order.
    pub fn new(partitions: Vec<PartitionId>) -> LeftPartitions {
        let partitions = partitions.into_iter().rev().map(|partition| (partition, 0)).collect();
        LeftPartitions { partitions, bytes: 0, next: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// The first partition.
    pub fn first(&self) -> Option<PartitionId> {
        self.partitions.last().map(|(partition, _)| *partition)
    }

    /// Removes the first partition.
    pub fn remove_first(&mut self) {
        if let Some((_, bytes)) = self.partitions.pop() {
            self.bytes -= bytes;
        }
    }

    /// An estimate of the bytes of all partitions. `bytes_of` tells those of one, and is asked about some
    /// partitions in each call, in turn. The estimate is too low until all have had their turn.
    pub fn estimate(&mut self, bytes_of: impl Fn(PartitionId) -> u64) -> u64 {
        for _ in 0..self.partitions.len().min(LOOKS_PER_TURN_MAX) {
            if self.next >= self.partitions.len() {
                self.next = 0;
            }
            let (partition, known) = &mut self.partitions[self.next];
            let bytes = bytes_of(*partition);
            self.bytes = self.bytes - *known + bytes;
            *known = bytes;
            self.next += 1;
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use junctor_model::id::TableId;

    use super::*;

    fn partitions(count: usize) -> Vec<PartitionId> {
        (0..count as u32).map(|table| PartitionId { table: TableId(table), index: 0 }).collect()
    }

    #[test]
    fn a_look_at_many_partitions_takes_several_turns() {
        let mut left = LeftPartitions::new(partitions(3 * LOOKS_PER_TURN_MAX));
        let looks = Cell::new(0);
        let look = |left: &mut LeftPartitions, bytes: u64| {
            let before = looks.get();
            let estimate = left.estimate(|_| {
                looks.set(looks.get() + 1);
                bytes
            });
            assert!(looks.get() - before <= LOOKS_PER_TURN_MAX);
            estimate
        };
        let turn = LOOKS_PER_TURN_MAX as u64;
        assert_eq!([(); 4].map(|()| look(&mut left, 10)), [10 * turn, 20 * turn, 30 * turn, 30 * turn]);
        assert_eq!([(); 3].map(|()| look(&mut left, 0)), [20 * turn, 10 * turn, 0]);
    }

    #[test]
    fn partitions_leave_in_order_with_their_bytes() {
        let all = partitions(3);
        let mut left = LeftPartitions::new(all.clone());
        let bytes_of = |partition: PartitionId| 1 << partition.table.0;
        assert_eq!(left.estimate(bytes_of), 7);
        for (partition, expected) in all.into_iter().zip([6, 4, 0]) {
            assert_eq!(left.first(), Some(partition));
            left.remove_first();
            assert_eq!(left.estimate(bytes_of), expected);
        }
        assert!(left.is_empty() && left.first().is_none());
        left.remove_first();
    }
}
