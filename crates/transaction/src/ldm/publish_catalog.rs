//! Catalogs that main publishes. Main's `ChangePartition` has brought each partition its layout and chain
//! before, so a catalog is only acknowledged.
//!
//! In a cluster, the main that runs schema changes may be lost between two stages of a change. Its successor
//! sends its catalog to every ldm before it begins a change of its own. The ldm then undoes stages that did
//! not become durable: it drops new partitions, and gives the others the layouts of the catalog. Otherwise
//! the next change would find partitions with its table ids, and a unique index that no plan knows would keep
//! writers out.

use std::sync::Arc;

use junctor_kernel::{Context, Outbox};
use junctor_model::id::{Epoch, PartitionId};
use junctor_model::schema::TableLayout;
use junctor_signals::change_schema::{PublishCatalog, PublishCatalogReply};
use junctor_signals::{LdmSignal, MainSignal, Signal};

use super::block::LdmBlock;
use super::deferred::Deferred;

/// Maximum number of partitions that one step compares with the catalog.
const COMPARED_PER_STEP_MAX: usize = 256;

/// The first catalog of another main, which ends what the one before has begun.
#[derive(Debug)]
pub(super) struct TakeOver {
    pub signal: PublishCatalog,
    /// The partitions that are not compared yet.
    left: Vec<PartitionId>,
}

impl LdmBlock {
    pub(super) fn on_publish_catalog(&mut self, signal: PublishCatalog, outbox: &mut Outbox<Signal>) {
        // On a node without data, no epoch begins, and there are no partitions.
        let is_early = signal.epoch > Epoch(0) && self.epoch == Epoch(0);
        if is_early && !self.partitions.ids().is_empty() {
            return self.parked.push(LdmSignal::PublishCatalog(signal));
        }
        // It means an earlier life of this node. Partitions that were made since would be dropped.
        if signal.epoch > Epoch(0) && signal.epoch < self.admitted {
            return;
        }
        // Nobody has changed the schema before the first catalog.
        if self.publisher.is_some_and(|before| before != signal.reply_to) {
            // Changes of the main before that wait for a reader would come after the catalog.
            self.deferred.forget_changes_before(signal.reply_to);
            let left = self.partitions.ids();
            return self.defer(Deferred::TakeOver(Box::new(TakeOver { signal, left })), outbox);
        }
        self.acknowledge(&signal, outbox);
    }

    fn acknowledge(&mut self, signal: &PublishCatalog, outbox: &mut Outbox<Signal>) {
        self.publisher = Some(signal.reply_to);
        let reply = PublishCatalogReply { operation: signal.operation };
        outbox.send(signal.reply_to, Signal::Main(MainSignal::PublishCatalogReply(reply)));
    }

    /// Makes the partitions those of the catalog, in several turns, and acknowledges it.
    pub(super) fn take_over_catalog(
        &mut self,
        mut take_over: Box<TakeOver>,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.end_lost_changes(&mut take_over, context, outbox);
        match take_over.left.is_empty() {
            true => self.acknowledge(&take_over.signal, outbox),
            false => self.defer(Deferred::TakeOver(take_over), outbox),
        }
    }

    /// Compares the next partitions. Drops at most one, because its query blocks get a signal each, and stops
    /// at one that a reader is inside.
    fn end_lost_changes(&mut self, take_over: &mut TakeOver, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
        let TakeOver { signal, left } = take_over;
        for _ in 0..COMPARED_PER_STEP_MAX {
            let Some(partition) = left.last().copied() else { return };
            match signal.catalog.dictionary.table(partition.table) {
                Some(layout) if !self.restore_layout(partition, layout) => return,
                Some(_) => _ = left.pop(),
                None => {
                    left.pop();
                    return self.drop_partition(partition, context, outbox);
                }
            }
        }
    }

    /// Gives a partition the layout of the catalog. Returns false if a reader is inside the guard.
    fn restore_layout(&mut self, partition: PartitionId, layout: &Arc<TableLayout>) -> bool {
        let Some(index) = self.partitions.find(partition) else { return true };
        let slot = self.slot(index);
        let version = layout.definition.version;
        if slot.layout.definition.version == version {
            return true;
        }
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return false };
        store.replace_layout(Arc::clone(layout));
        drop(store);
        slot.writers_version = slot.writers_version.min(version);
        slot.layout = Arc::clone(layout);
        true
    }
}
