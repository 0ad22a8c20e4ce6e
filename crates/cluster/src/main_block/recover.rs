//! Starts a durable node. Reads its identity, and the log of its earlier runs. Restores the schema and the
//! rows, and builds the indexes. Then begins a new incarnation of the log, and only then admits clients.
//!
//! A failure ends the node with a message: a database that starts without some of its data is worse than one
//! that does not start.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{
    Address, Context, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest,
};
use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, Identity};
use junctor_signals::change_schema::{ChangePartition, PartitionChange};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::read_rows::OperationId;
use junctor_signals::recover_log::{
    BuildIndexes, CheckpointBounds, OpenToClients, RecoverLog, RecoveredLog, ReplayLog,
};
use junctor_signals::start_log::StartLog;
use junctor_signals::{LdmSignal, LogSignal, MainSignal, Module, RecvSignal, Signal, crash_point};
use junctor_storage::log::{PairSlot, decode_slot, encode_slot, newest_slot};

use super::block::MainBlock;
use super::restore::RestoredSchema;

/// The kind in the headers of the files `identity.0` and `identity.1`, which form a pair.
const IDENTITY_USE: u16 = 1;
/// Maximum number of signals to ldm instances in one turn.
const SIGNALS_PER_TURN: usize = 48;
/// The value of `ContinueWork::work` for recovery.
pub(super) const RECOVERY_WORK: u32 = 1;

/// The recovery under way.
#[derive(Debug)]
pub(super) struct Recovery {
    step: Step,
    identity: Option<Identity>,
    recovered: RecoveredLog,
    schema: Option<RestoredSchema>,
    /// Partitions that are not requested yet.
    unsent: VecDeque<(Address, ChangePartition)>,
    /// Answers that the step waits for.
    outstanding: usize,
}

/// What recovery waits for.
#[derive(Debug)]
enum Step {
    /// The creation of the data directory.
    MakeFolder,
    /// One of the two identity files. `first` is the content of file 0, and `found` tells whether a file
    /// exists.
    ReadIdentity { slot: u8, file: Option<FileId>, first: Option<PairSlot>, found: bool },
    /// The log block's first reading.
    Analyse,
    /// The creation of the partitions.
    MakePartitions,
    /// The log block's second reading.
    Replay,
    /// The indexes of every ldm.
    BuildIndexes,
    /// The start of the log's new incarnation.
    StartLog,
    /// The identity of a new directory.
    WriteIdentity { file: Option<FileId>, content: FileBuffer },
    /// Acknowledgements of the catalog by every block.
    Publish,
}

impl MainBlock {
    /// Begins the recovery of a node with a data directory. Other nodes serve clients immediately.
    pub(super) fn begin_recovery(&mut self, outbox: &mut Outbox<Signal>) {
        if self.configuration.log.is_none() {
            return;
        }
        self.recovery = Some(Recovery {
            step: Step::MakeFolder,
            identity: None,
            recovered: RecoveredLog::default(),
            schema: None,
            unsent: VecDeque::new(),
            outstanding: 0,
        });
        outbox.request(WorldRequest::CreateFolder { path: ".".into(), lane: FileLane::Control, token: 0 });
    }

    /// Whether recovery is under way.
    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    pub(super) fn on_recovery_file(
        &mut self,
        (result, bytes): (FileResult, FileBuffer),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        match (&mut recovery.step, result) {
            (Step::MakeFolder, Ok(FileOutcome::FolderCreated)) => {
                recovery.step = Step::ReadIdentity { slot: 0, file: None, first: None, found: false };
                open_identity(0, FileMode::Read, outbox);
            }
            (Step::ReadIdentity { file, found, .. }, Ok(FileOutcome::Opened { file: opened, length, .. })) => {
                *file = Some(opened);
                *found = true;
                let length = length.min(u64::from(WorldRequest::READ_BYTES_MAX)) as u32;
                let bytes = FileBuffer::with_capacity(length as usize);
                outbox.request(WorldRequest::ReadFile { file: opened, offset: 0, length, bytes, token: 0 });
            }
            (Step::ReadIdentity { file, .. }, Ok(FileOutcome::Read { .. })) => {
                let closed = file.take();
                self.take_identity(&bytes, context, outbox);
                if let Some(file) = closed {
                    outbox.request(WorldRequest::CloseFile { file, token: 0 });
                }
            }
            (Step::ReadIdentity { .. }, Err(FileError::NotFound)) => self.take_identity(&[], context, outbox),
            (Step::WriteIdentity { file, content }, Ok(FileOutcome::Opened { file: opened, .. })) => {
                *file = Some(opened);
                let bytes = std::mem::take(content);
                outbox.request(WorldRequest::WriteFile { file: opened, offset: 0, bytes, token: 0 });
                outbox.request(WorldRequest::SyncFile { file: opened, token: 0 });
                outbox.request(WorldRequest::CloseFile { file: opened, token: 0 });
            }
            (Step::WriteIdentity { .. }, Ok(FileOutcome::Written { .. } | FileOutcome::Synced)) => {}
            (Step::WriteIdentity { file: Some(_), .. }, Ok(FileOutcome::Closed)) => {
                // The folder holds the names of the identity and of the log's folder.
                outbox.request(WorldRequest::SyncFolder { path: ".".into(), lane: FileLane::Control, token: 0 });
            }
            (Step::WriteIdentity { .. }, Ok(FileOutcome::FolderSynced)) => {
                outbox.crash_point(crash_point::PAIR_IDENTITY.after());
                self.publish_recovered(outbox);
            }
            (_, Ok(FileOutcome::Closed)) => {}
            (step, result) => {
                let reason = match result {
                    Ok(outcome) => format!("unexpected answer {outcome:?}"),
                    Err(error) => error.to_string(),
                };
                let text = format!("cannot use the data directory: {reason} ({step:?})");
                halt(&text, outbox);
            }
        }
    }

    /// Takes the content of an identity file; empty if the file does not exist.
    fn take_identity(&mut self, bytes: &[u8], context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        let Step::ReadIdentity { slot, first, found, .. } = &mut recovery.step else { return };
        let read = match decode_slot(IDENTITY_USE, bytes) {
            Ok(read) => read,
            Err(error) => return halt(&format!("identity.{slot}: {error}"), outbox),
        };
        if *slot == 0 {
            (*slot, *first) = (1, read);
            return open_identity(1, FileMode::Read, outbox);
        }
        let found = *found;
        match newest_slot(first.take(), read) {
            Some(newest) => match Identity::decode(&newest.content) {
                Ok(identity) => {
                    let (log_id, segment_bytes) = (identity.log_id, identity.segment_bytes);
                    recovery.identity = Some(identity);
                    recovery.step = Step::Analyse;
                    let signal = RecoverLog {
                        reply_to: self.own,
                        log_id,
                        segment_bytes,
                        checkpoint: CheckpointBounds::default(),
                    };
                    self.send_to_log(LogSignal::RecoverLog(signal), outbox);
                }
                Err(error) => halt(&error.to_string(), outbox),
            },
            None if found => {
                halt("both files of the identity are damaged; restore the directory from a backup", outbox)
            }
            None => self.start_log(context, outbox),
        }
    }

    pub(super) fn on_recovered_log(
        &mut self,
        result: Result<Box<RecoveredLog>, Box<str>>,
        outbox: &mut Outbox<Signal>,
    ) {
        let recovered = match result {
            Ok(recovered) => recovered,
            Err(message) => return halt(&message, outbox),
        };
        if recovered.incarnation == 0 {
            return halt("the log of the data directory is missing; restore the directory from a backup", outbox);
        }
        let schema = match self.restore(&recovered.dictionary, &recovered.marks) {
            Ok(schema) => schema,
            Err(message) => return halt(&message, outbox),
        };
        let own = self.own;
        let Some(recovery) = &mut self.recovery else { return };
        recovery.recovered = *recovered;
        for partition in &schema.partitions {
            for member in &partition.chain {
                let change = ChangePartition {
                    operation: OperationId(0),
                    reply_to: own,
                    partition: partition.partition,
                    layout: Arc::clone(&partition.layout),
                    change: PartitionChange::Create { chain: partition.chain.clone() },
                };
                recovery.unsent.push_back((*member, change));
            }
        }
        recovery.outstanding = recovery.unsent.len();
        recovery.schema = Some(schema);
        recovery.step = Step::MakePartitions;
        self.continue_recovery(outbox);
    }

    /// Requests the next partitions. Starts the replay when all of them exist.
    pub(super) fn continue_recovery(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(recovery) = &mut self.recovery else { return };
        let count = recovery.unsent.len().min(SIGNALS_PER_TURN);
        for (to, request) in recovery.unsent.drain(..count) {
            outbox.send(to, Signal::Ldm(LdmSignal::ChangePartition(request)));
        }
        if !recovery.unsent.is_empty() {
            return outbox.send(own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: RECOVERY_WORK })));
        }
        if recovery.outstanding == 0 && matches!(recovery.step, Step::MakePartitions) {
            recovery.step = Step::Replay;
            let owners = recovery.schema.as_ref().map(RestoredSchema::owners).unwrap_or_default();
            self.send_to_log(LogSignal::ReplayLog(ReplayLog { reply_to: own, owners }), outbox);
        }
    }

    /// Handles the reply of one block to the current step.
    pub(super) fn on_recovery_reply(&mut self, error: Option<&str>, outbox: &mut Outbox<Signal>) {
        if let Some(error) = error {
            return halt(error, outbox);
        }
        let (own, ldm_instances) = (self.own, self.ldm_instances);
        let Some(recovery) = &mut self.recovery else { return };
        recovery.outstanding = recovery.outstanding.saturating_sub(1);
        if recovery.outstanding > 0 {
            return;
        }
        match recovery.step {
            Step::MakePartitions => self.continue_recovery(outbox),
            Step::Replay => {
                recovery.step = Step::BuildIndexes;
                recovery.outstanding = usize::from(ldm_instances);
                outbox.crash_point(crash_point::RECOVERY_INDEX.before());
                for instance in 0..ldm_instances {
                    let ldm = Address::new(own.node, Module::Ldm, instance);
                    outbox.send(ldm, Signal::Ldm(LdmSignal::BuildIndexes(BuildIndexes { reply_to: own })));
                }
            }
            Step::BuildIndexes => {
                outbox.crash_point(crash_point::RECOVERY_INDEX.after());
                self.begin_next_life(outbox);
            }
            Step::Publish => {
                self.recovery = None;
                outbox.crash_point(crash_point::RECOVERY_CLEAN.after());
                self.open_to_clients(outbox);
            }
            _ => {}
        }
    }

    /// Begins the log of a new data directory, with a random id.
    fn start_log(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        let segment_bytes = self.configuration.segment_bytes;
        let log_id = context.random.word();
        recovery.identity = Some(Identity { format: DIRECTORY_FORMAT_VERSION, log_id, segment_bytes });
        self.begin_next_life(outbox);
    }

    /// Begins the next incarnation of the log, after the last group that recovery accepted.
    fn begin_next_life(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let (Some(recovery), Some(target)) = (&mut self.recovery, &self.configuration.log) else { return };
        let Some(identity) = &recovery.identity else { return };
        let RecoveredLog { incarnation, position, previous_checksum, cut, ceiling, .. } = recovery.recovered;
        // No commit number above the cut is used again, not even that of a lost record.
        target.sequence.restart_after(ceiling);
        outbox.crash_point(crash_point::RECOVERY_START.before());
        recovery.step = Step::StartLog;
        let start = StartLog {
            reply_to: own,
            log_id: identity.log_id,
            life: self.life,
            incarnation: incarnation + 1,
            position,
            previous_checksum,
            previous_cut: cut,
            taken: ceiling,
        };
        self.send_to_log(LogSignal::StartLog(start), outbox);
    }

    pub(super) fn on_log_started(&mut self, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::RECOVERY_START.after());
        let Some(recovery) = &mut self.recovery else { return };
        if recovery.recovered.incarnation > 0 {
            return self.publish_recovered(outbox);
        }
        // Write the identity last: a directory without an identity is treated as new.
        outbox.crash_point(crash_point::PAIR_IDENTITY.before());
        let identity = recovery.identity.as_ref().map(Identity::encode).unwrap_or_default();
        let content = FileBuffer::from(&encode_slot(IDENTITY_USE, 1, &identity)[..]);
        recovery.step = Step::WriteIdentity { file: None, content };
        open_identity(1, FileMode::CreateEmpty, outbox);
    }

    /// Gives every block the recovered catalog.
    fn publish_recovered(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        outbox.crash_point(crash_point::RECOVERY_CLEAN.before());
        recovery.step = Step::Publish;
        let Some(schema) = recovery.schema.take() else {
            recovery.outstanding = 1;
            return self.on_recovery_reply(None, outbox);
        };
        self.install(schema);
        let outstanding = self.send_catalog(OperationId(0), outbox);
        if let Some(recovery) = &mut self.recovery {
            recovery.outstanding = outstanding;
        }
    }

    fn open_to_clients(&self, outbox: &mut Outbox<Signal>) {
        for to in &self.recv_blocks {
            outbox.send(*to, Signal::Recv(RecvSignal::OpenToClients(OpenToClients {})));
        }
    }

    fn send_to_log(&self, signal: LogSignal, outbox: &mut Outbox<Signal>) {
        if let Some(target) = &self.configuration.log {
            outbox.send(target.log, Signal::Log(signal));
        }
    }
}

fn open_identity(slot: u8, mode: FileMode, outbox: &mut Outbox<Signal>) {
    let (path, lane) = (format!("identity.{slot}").into(), FileLane::Control);
    outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
}

/// Ends the node. It has acknowledged nothing since its start.
fn halt(message: &str, outbox: &mut Outbox<Signal>) {
    outbox.request(WorldRequest::Halt { message: format!("recovery failed: {message}").into() });
}
