//! A node that returns to a cluster with tables: it takes over the schema, creates its partitions, and lets
//! its ldms copy all rows (`docs/decisions/0032-copy-of-rows.md`). Its disk counts once a checkpoint has the
//! rows.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Outbox, WorldRequest};
use junctor_model::id::Epoch;
use junctor_signals::change_schema::{ChangePartition, PartitionChange};
use junctor_signals::copy_rows::{CopyPartitions, CopyPartitionsReply};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::read_rows::OperationId;
use junctor_signals::restart_progress::RestartPhase;
use junctor_signals::{LdmSignal, MainSignal, Module, Signal, crash_point};

use super::block::MainBlock;
use crate::member::EventKind;

/// Identifies the work in [`ContinueWork`].
pub(super) const COPY_WORK: u32 = 6;
/// Maximum number of partitions that are created in one turn.
const PARTITIONS_PER_TURN: usize = 48;

/// How far the copy of all rows to this node is.
#[derive(Debug, Default)]
pub(super) enum Rejoin {
    /// The node has not returned in this life, or waits for the schema.
    #[default]
    Nothing,
    /// The partitions are created.
    MakePartitions { unsent: VecDeque<(Address, ChangePartition)>, outstanding: usize },
    /// The ldms copy rows.
    Copying { outstanding: usize },
    /// All rows are here. The checkpoint of this generation, or a later one, has them.
    Copied { generation: u64 },
    /// The checkpoint is complete.
    OnDisk,
}

impl Rejoin {
    /// Whether a checkpoint is to begin for the copied rows.
    pub fn needs_checkpoint(&self) -> bool {
        matches!(self, Rejoin::Copied { .. })
    }
}

impl MainBlock {
    /// Whether this node is a member that does not serve yet.
    pub(super) fn is_joining(&self) -> bool {
        self.own_record().is_some_and(|record| !record.is_serving())
    }

    /// Whether this node joins, and does not have the schema yet.
    pub(super) fn needs_schema(&self) -> bool {
        matches!(self.rejoin, Rejoin::Nothing) && self.is_joining()
    }

    /// Whether this node has all rows of the cluster.
    pub(super) fn has_rows(&self) -> bool {
        match self.rejoin {
            Rejoin::Nothing => !self.is_joining(),
            Rejoin::MakePartitions { .. } | Rejoin::Copying { .. } => false,
            Rejoin::Copied { .. } | Rejoin::OnDisk => true,
        }
    }

    /// Whether what the log of this node has synced can be recovered. A disk with copied rows has nothing
    /// below the newest commit of their checkpoint, which the log has synced. The sequencer marks the disk
    /// once all others have that commit.
    pub(super) fn counts_for_durability(&self) -> bool {
        match self.rejoin {
            Rejoin::Nothing => !self.is_joining(),
            Rejoin::OnDisk => true,
            _ => false,
        }
    }

    /// Creates the partitions of the schema that this node has taken over.
    pub(super) fn begin_copy(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let mut unsent = VecDeque::new();
        for (partition, chain) in self.catalog.distribution.chains() {
            let layout = self.catalog.dictionary.table(partition.table);
            let chain = self.with_own(chain);
            let here = chain.iter().copied().find(|at| at.node == own.node);
            let (Some(layout), Some(here)) = (layout, here) else { continue };
            let change = ChangePartition {
                operation: OperationId(0),
                reply_to: own,
                partition: *partition,
                layout: Arc::clone(layout),
                change: PartitionChange::Create { chain },
                epoch: Epoch(0),
            };
            unsent.push_back((here, change));
        }
        self.rejoin = Rejoin::MakePartitions { outstanding: unsent.len(), unsent };
        self.restart_info.begin(RestartPhase::CopyRows);
        self.note_event(EventKind::Copy, "this node copies the rows of its group".to_owned());
        self.make_copied_partitions(outbox);
    }

    /// Creates the next partitions. Begins the copy when all exist.
    pub(super) fn make_copied_partitions(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Rejoin::MakePartitions { unsent, outstanding } = &mut self.rejoin else { return };
        let count = unsent.len().min(PARTITIONS_PER_TURN);
        for (to, request) in unsent.drain(..count) {
            outbox.send(to, Signal::Ldm(LdmSignal::ChangePartition(request)));
        }
        if !unsent.is_empty() {
            return outbox.send(own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: COPY_WORK })));
        }
        if *outstanding > 0 {
            return;
        }
        outbox.crash_point(crash_point::COPY_SCHEMA.after());
        self.rejoin = Rejoin::Copying { outstanding: usize::from(self.ldm_instances) };
        for instance in 0..self.ldm_instances {
            let ldm = Address::new(own.node, Module::Ldm, instance);
            outbox.send(ldm, Signal::Ldm(LdmSignal::CopyPartitions(CopyPartitions { reply_to: own })));
        }
    }

    pub(super) fn is_making_partitions(&self) -> bool {
        matches!(self.rejoin, Rejoin::MakePartitions { .. })
    }

    pub(super) fn on_partition_made(&mut self, outbox: &mut Outbox<Signal>) {
        if let Rejoin::MakePartitions { outstanding, .. } = &mut self.rejoin {
            *outstanding -= 1;
            self.make_copied_partitions(outbox);
        }
    }

    pub(super) fn on_copy_partitions_reply(&mut self, reply: CopyPartitionsReply, outbox: &mut Outbox<Signal>) {
        if let Some(error) = reply.error {
            let message = format!("this node cannot copy the rows of the cluster: {}", error.message);
            return outbox.request(WorldRequest::Halt { message: message.into() });
        }
        let Rejoin::Copying { outstanding } = &mut self.rejoin else { return };
        *outstanding -= 1;
        if *outstanding == 0 {
            // A round under way may have passed some of the rows.
            self.rejoin = Rejoin::Copied { generation: self.checkpoints.next_generation_to_begin() };
            self.restart_info.begin(RestartPhase::WriteCopy);
            self.note_event(EventKind::Copy, "this node has all rows of its group".to_owned());
        }
    }

    /// A checkpoint is complete.
    pub(super) fn note_checkpoint(&mut self, of: u64) {
        if let Rejoin::Copied { generation } = self.rejoin
            && of >= generation
        {
            self.rejoin = Rejoin::OnDisk;
            self.restart_info.end();
            self.note_event(EventKind::Copy, "a checkpoint of this node has the copied rows".to_owned());
        }
    }
}
