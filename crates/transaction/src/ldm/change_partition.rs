//! Creates, changes and drops partitions as main requests.

use std::sync::Arc;

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::Error;
use junctor_model::id::{Epoch, IndexId, PartitionId, RowId, SchemaVersion};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_model::schema::{IndexDefinition, IndexKind, TableLayout};
use junctor_signals::Module;
use junctor_signals::change_schema::{
    ChangePartition, ChangePartitionReply, OpenPartition, PartitionChange, PartitionHandle,
};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{LdmSignal, MainSignal, QuerySignal, Signal};
use junctor_storage::guard::{OwnerToken, PartitionGuard};
use junctor_storage::partition_store::PartitionStore;

use super::block::LdmBlock;
use super::copy_rows::PartitionCopy;
use super::deferred::Deferred;
use super::partition_table::{PartitionSlot, SlotIndex};

/// Maximum number of guard acquisitions in one turn of building an index.
const HOLDS_PER_TURN_MAX: usize = 4;

/// A partition to create.
struct NewPartition {
    id: PartitionId,
    layout: Arc<TableLayout>,
    /// The replicas, the primary first.
    chain: Vec<Address>,
}

/// The state of an index build in one partition, which proceeds in steps from row to row.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexBuild {
    pub operation: OperationId,
    pub reply_to: Address,
    pub partition: PartitionId,
    pub index: IndexId,
    /// The next row to index.
    pub from: RowId,
}

impl LdmBlock {
    pub(super) fn on_change_partition(
        &mut self,
        signal: ChangePartition,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if signal.epoch > Epoch(0) && self.epoch == Epoch(0) {
            return self.parked.push(LdmSignal::ChangePartition(signal));
        }
        // The main of another node means an earlier life of this one, which was lost.
        if signal.epoch > Epoch(0) && signal.epoch < self.admitted {
            return;
        }
        let ChangePartition { operation, reply_to, partition, layout, change, epoch } = signal;
        match change {
            PartitionChange::Create { chain } => {
                self.create_partition(NewPartition { id: partition, layout, chain }, context, outbox)
            }
            PartitionChange::Drop => self.drop_partition(partition, context, outbox),
            PartitionChange::ReplaceLayout => {
                if !self.replace_layout(partition, &layout) {
                    let change = PartitionChange::ReplaceLayout;
                    let signal = ChangePartition { operation, reply_to, partition, layout, change, epoch };
                    return self.defer(Deferred::ChangePartition(Box::new(signal)), outbox);
                }
            }
            PartitionChange::BuildIndex(index) => {
                return self.build_index(IndexBuild { operation, reply_to, partition, index, from: RowId(0) }, outbox);
            }
        }
        reply(operation, reply_to, partition, None, outbox);
    }

    fn create_partition(&mut self, partition: NewPartition, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let NewPartition { id: partition, layout, chain: mut configured } = partition;
        if self.partitions.find(partition).is_some() {
            return;
        }
        let mut store = PartitionStore::new(Arc::clone(&layout), Arc::clone(&self.shared.pages));
        if let Some(at) = self.copies_at {
            store.begin_copy(at);
        }
        let token = OwnerToken::new();
        let guard = Arc::new(PartitionGuard::new(&token, &self.shared.readers, store));
        // The chains of catalogs do not name a node that was added to the group as one more replica.
        if !configured.contains(&self.own) {
            configured.push(self.own);
        }
        let chain = self.late.order(&configured, &self.gone);
        let Some(chain_position) = chain.iter().position(|member| *member == self.own) else {
            junctor_kernel::invariant::fail("an ldm is in the chain of its partition", format_args!("{partition:?}"))
        };
        let handle = PartitionHandle(Arc::clone(&guard) as _);
        self.open_partition(partition, Some(handle), context, outbox);
        let slot = PartitionSlot {
            id: partition,
            guard,
            token,
            layout,
            configured,
            chain,
            chain_position,
            writers_version: SchemaVersion(0),
            participants: 0,
            images: 0,
            copy: self.copies_at.map(|at| Box::new(PartitionCopy::new(at))),
            is_dropped: false,
            is_purging: false,
            purged: 0,
            is_compacting: false,
            is_stamping: false,
        };
        self.partitions.insert(slot);
        self.resume_unplaced(partition, outbox);
    }

    /// Opens or closes a partition to the query blocks of the node.
    fn open_partition(
        &self,
        partition: PartitionId,
        handle: Option<PartitionHandle>,
        context: &Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let readers = self.partitions.reader_instances.as_ref();
        let is_reader = |instance: &u16| readers.is_none_or(|readers| readers.contains(instance));
        for instance in (0..context.directory.instances(Module::Query)).filter(is_reader) {
            let signal = OpenPartition { partition, owner: self.own, handle: handle.clone() };
            let to = context.directory.address(Module::Query, instance);
            outbox.send(to, Signal::Query(QuerySignal::OpenPartition(signal)));
        }
    }

    /// Hides the partition from new requests. Its memory is freed when the last transaction that touched it
    /// ends. Main does not wait for that, so an idle transaction delays no other schema change.
    pub(super) fn drop_partition(
        &mut self,
        partition: PartitionId,
        context: &Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(index) = self.partitions.close(partition) else { return };
        self.open_partition(partition, None, context, outbox);
        let slot = self.slot(index);
        slot.is_dropped = true;
        if slot.participants == 0 {
            self.free_partition(index);
        }
    }

    /// Frees a dropped partition that no transaction touches any more.
    pub(super) fn free_partition(&mut self, index: SlotIndex) {
        self.purge.partitions.retain(|other| *other != index);
        self.partitions.free(index);
    }

    /// Replaces the layout. Returns false if a reader is inside the guard.
    fn replace_layout(&mut self, partition: PartitionId, layout: &Arc<TableLayout>) -> bool {
        let Some(index) = self.partitions.find(partition) else { return true };
        let slot = self.slot(index);
        let (before, after) = (slot.layout.definition.version, layout.definition.version);
        require!(before <= after, "versions of a partition's layout rise: {before:?} before {after:?}");
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return false };
        store.replace_layout(Arc::clone(layout));
        drop(store);
        // Plans that do not know a new unique index would write rows without its entries, and those that do
        // not know a new column would remove its values. They must be refused.
        let unique = |layout: &TableLayout| -> Vec<IndexId> {
            let is_unique = |index: &&IndexDefinition| matches!(index.kind, IndexKind::Unique { .. });
            layout.definition.indexes.iter().filter(is_unique).map(|index| index.id).collect()
        };
        let before = unique(&slot.layout);
        let has_new_columns = layout.definition.columns.len() != slot.layout.definition.columns.len();
        if has_new_columns || unique(layout).iter().any(|index| !before.contains(index)) {
            slot.writers_version = layout.definition.version;
        }
        slot.layout = Arc::clone(layout);
        true
    }

    pub(super) fn build_index(&mut self, build: IndexBuild, outbox: &mut Outbox<Signal>) {
        let IndexBuild { operation, reply_to, partition, index, from } = build;
        // Main runs one change at a time, so nothing has dropped the partition. Reporting success without an
        // index would hide rows from its scans.
        let Some(slot) = self.partitions.find(partition) else {
            junctor_kernel::invariant::fail(
                "an index is built in a partition that exists",
                format_args!("{partition:?}"),
            )
        };
        let slot = self.slot(slot);
        let mut next = Some(from);
        for _ in 0..HOLDS_PER_TURN_MAX {
            let Some(from) = next else { break };
            let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { break };
            match store.build_index_step(index, from, ROWS_PER_HOLD_MAX) {
                Ok(further) => next = further,
                Err(full) => {
                    let error = full.to_error(&slot.layout.definition.name);
                    drop(store);
                    return reply(operation, reply_to, partition, Some(error), outbox);
                }
            }
        }
        match next {
            Some(from) => self.defer(Deferred::BuildIndex(IndexBuild { from, ..build }), outbox),
            None => reply(operation, reply_to, partition, None, outbox),
        }
    }
}

fn reply(
    operation: OperationId,
    reply_to: Address,
    partition: PartitionId,
    error: Option<Box<Error>>,
    outbox: &mut Outbox<Signal>,
) {
    let reply = ChangePartitionReply { operation, partition, error };
    outbox.send(reply_to, Signal::Main(MainSignal::ChangePartitionReply(reply)));
}
