//! Log records of a backup. A backup records the images of a transaction when it gets the number, before the
//! first image is committed, so that its disk has every commit of its partitions, as the primary's has. The
//! images of many rows become chunks, formed in several turns, and a record that commits the chunks.

use junctor_model::id::{CommitNumber, PartitionId, TransactionId};
use junctor_storage::log::CHUNK_BYTES_MAX;

use super::block::LdmBlock;

/// Rows that are recorded in one step, and the bytes after which a step ends.
const ROWS_PER_STEP: usize = 256;
/// The tc in the ids by which chunks of images are known in this life of the log. No node has so many tcs.
/// The transaction's own id is that of its rows here: an ldm may be primary of one partition and backup of
/// another.
const IMAGES_TC: u16 = 255;

/// Where the records of a transaction's images are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedImages {
    /// The next row: its partition, and its place among the partition's rows.
    next: Option<(PartitionId, usize)>,
    chunks: u32,
    /// The id of the records, once there is a chunk.
    of_records: TransactionId,
    is_complete: bool,
}

impl LdmBlock {
    /// Records the next images of a transaction that commits. Returns whether all are recorded.
    pub(super) fn record_images(
        &mut self,
        transaction: TransactionId,
        (number, participants): (CommitNumber, u16),
        recorded: &mut RecordedImages,
    ) -> bool {
        if !self.records.is_enabled() || recorded.is_complete {
            return true;
        }
        let LdmBlock { own, partitions, backed_up, records, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let first = (transaction, recorded.next.map_or(PartitionId::default(), |(partition, _)| partition));
        let images = backed_up.range(first..).take_while(|((of, _), _)| *of == transaction);
        let is_short =
            recorded.next.is_none() && images.map(|(_, kept)| kept.rows.len()).sum::<usize>() <= ROWS_PER_STEP;
        if !is_short && recorded.chunks == 0 {
            recorded.of_records = TransactionId::new(own.node.0, IMAGES_TC, records.next_images_id());
        }
        let of_records = recorded.of_records;
        match is_short {
            true => records.begin_commit(transaction, number, participants),
            false => records.begin_chunk(of_records, recorded.chunks),
        }
        let mut left = ROWS_PER_STEP;
        let mut next = None;
        'partitions: for ((of, partition), kept) in backed_up.range_mut(first..) {
            if *of != transaction {
                break;
            }
            let begin = recorded.next.filter(|(at, _)| at == partition).map_or(0, |(_, row)| row);
            if begin == 0 {
                // A row that several statements changed is recorded once.
                kept.rows.sort_unstable();
                kept.rows.dedup();
            }
            let slot = &*partitions.slot(kept.slot);
            let mut row = begin;
            if !slot.is_logged() {
                row = kept.rows.len();
            }
            if row < kept.rows.len() {
                records.begin_section(slot);
            }
            while row < kept.rows.len() {
                if left == 0 || (!is_short && records.open_bytes() >= CHUNK_BYTES_MAX / 2) {
                    next = Some((*partition, row));
                    break 'partitions;
                }
                let id = kept.rows[row];
                slot.guard.owner_read(&slot.token, |store| records.add_newest(store, id, transaction, builder));
                row += 1;
                left -= 1;
            }
        }
        records.end();
        if is_short {
            recorded.is_complete = true;
            return true;
        }
        recorded.chunks += 1;
        recorded.next = next;
        if next.is_none() {
            records.begin_chunk_commit(of_records, number, participants, recorded.chunks);
            records.end();
            recorded.is_complete = true;
        }
        recorded.is_complete
    }
}
