//! Hot path: at most 60 instructions per key.
//!
//! Distributes the keys, ranges and rows of a statement over one input per partition.

use junctor_kernel::{Buffer, BufferPool};
use junctor_model::limit::PARTITIONS_PER_TABLE_MAX;
use junctor_model::partition::{key_hash, partition_of};
use junctor_signals::input::{self, HashedKey, KeyRange, KeyedImage};

/// The inputs of one statement, one for each partition that the statement touches. Reusable; buffers come
/// from the thread's pool.
#[derive(Debug, Default)]
pub struct PartitionInputs {
    slots: Vec<Option<Buffer>>,
    touched: Vec<u16>,
    /// The reply buffer for the first reply of each partition. Rows are appended after its content.
    output: Option<Buffer>,
}

/// The partitions that a range or scan visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionScope {
    /// All partitions of the table.
    All,
    /// One partition.
    One(u16),
}

impl PartitionInputs {
    /// Begins a statement on a table with `partition_count` partitions. Inputs of an earlier statement return
    /// to the pool.
    pub fn begin(&mut self, partition_count: u16, buffers: &mut BufferPool) {
        self.clear(buffers);
        let count = usize::from(partition_count.min(PARTITIONS_PER_TABLE_MAX));
        if self.slots.len() != count {
            self.slots.resize_with(count, || None);
        }
    }

    /// Returns the buffers of all remaining inputs to the pool.
    pub fn clear(&mut self, buffers: &mut BufferPool) {
        for partition in self.touched.drain(..) {
            if let Some(buffer) = self.slots.get_mut(usize::from(partition)).and_then(Option::take) {
                buffers.give(buffer);
            }
        }
        if let Some(output) = self.output.take() {
            buffers.give(output);
        }
    }

    /// Sets the reply buffer for the first reply of each partition. Rows are appended after its content.
    pub fn set_output(&mut self, output: Buffer) {
        self.output = Some(output);
    }

    /// Whether [`PartitionInputs::set_output`] has set a reply buffer.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// The reply buffer for the partition that was popped last: a copy while other partitions remain, and the
    /// buffer itself for the last one.
    #[inline]
    pub(crate) fn take_output(&mut self, buffers: &mut BufferPool) -> Option<Buffer> {
        if self.touched.is_empty() {
            return self.output.take();
        }
        self.output.as_ref().map(|output| {
            let mut copy = buffers.take(output.capacity());
            copy.extend_from_slice(output);
            copy
        })
    }

    #[inline(always)]
    fn slot(&mut self, partition: u16, parameters: &[u8], room: usize, buffers: &mut BufferPool) -> &mut Buffer {
        let slot = &mut self.slots[usize::from(partition)];
        match slot {
            Some(buffer) => buffer,
            None => {
                self.touched.push(partition);
                slot.insert(first_buffer(parameters, room, buffers))
            }
        }
    }

    /// Adds a primary key. Its hash also chooses the partition.
    #[inline]
    pub fn push_key(&mut self, key: &[u8], parameters: &[u8], buffers: &mut BufferPool) {
        self.push_hashed_key(key_hash(key), key, parameters, buffers);
    }

    /// Adds a primary key with a known hash, which also chooses the partition.
    #[inline(always)]
    pub fn push_hashed_key(&mut self, hash: u64, key: &[u8], parameters: &[u8], buffers: &mut BufferPool) {
        let partition = partition_of(hash, self.slots.len() as u16);
        let input = self.slot(partition, parameters, key.len(), buffers);
        input::push_key(input, HashedKey { hash, key });
    }

    /// Adds a primary key with a known hash and partition.
    #[inline(always)]
    pub fn push_hashed_key_at(&mut self, partition: u16, hash: u64, key: &[u8], buffers: &mut BufferPool) {
        let input = self.slot(partition, &[], key.len(), buffers);
        input::push_key(input, HashedKey { hash, key });
    }

    /// Adds a primary key of a table that is partitioned by a part of the key.
    pub fn push_key_at(&mut self, partition: u16, key: &[u8], parameters: &[u8], buffers: &mut BufferPool) {
        let hash = key_hash(key);
        let input = self.slot(partition, parameters, key.len(), buffers);
        input::push_key(input, HashedKey { hash, key });
    }

    /// Adds a range of index keys to every partition of the scope.
    pub fn push_range(
        &mut self,
        scope: PartitionScope,
        range: KeyRange<'_>,
        parameters: &[u8],
        buffers: &mut BufferPool,
    ) {
        for partition in self.scope(scope) {
            input::push_range(self.slot(partition, parameters, 64, buffers), range);
        }
    }

    /// Adds every partition of the scope to a read of all rows.
    pub fn push_all(&mut self, scope: PartitionScope, parameters: &[u8], buffers: &mut BufferPool) {
        for partition in self.scope(scope) {
            self.slot(partition, parameters, 0, buffers);
        }
    }

    /// Adds a row to insert into a partition.
    pub fn push_image(&mut self, partition: u16, row: KeyedImage<'_>, parameters: &[u8], buffers: &mut BufferPool) {
        let room = row.image.len() + row.key.key.len();
        input::push_image(self.slot(partition, parameters, room, buffers), row);
    }

    fn scope(&self, scope: PartitionScope) -> std::ops::Range<u16> {
        match scope {
            PartitionScope::All => 0..self.slots.len() as u16,
            PartitionScope::One(partition) => partition..partition + 1,
        }
    }

    /// Number of partitions with an input.
    pub fn len(&self) -> usize {
        self.touched.len()
    }

    /// Whether no partition has an input.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// The input of the partition that was added last.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        self.slots.get(usize::from(*self.touched.last()?))?.as_deref()
    }

    /// The partitions with an input, in the order of their first item.
    pub fn touched(&self) -> &[u16] {
        &self.touched
    }

    /// Takes the input of the partition that was added last.
    pub fn pop(&mut self) -> Option<(u16, Buffer)> {
        let partition = self.touched.pop()?;
        let buffer = self.slots[usize::from(partition)].take()?;
        Some((partition, buffer))
    }
}

/// Begins the input of a partition.
#[inline(never)]
fn first_buffer(parameters: &[u8], room: usize, buffers: &mut BufferPool) -> Buffer {
    let mut buffer = buffers.take(parameters.len() + room + 64);
    input::begin(&mut buffer, parameters);
    buffer
}
