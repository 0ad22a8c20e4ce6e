//! Starts a durable node. Reads its identity, the manifest of its last checkpoint, and the log of its earlier
//! runs. Restores the schema, loads the checkpoint, replays the log, and builds the indexes. Then begins a
//! new incarnation of the log, and only then admits clients.
//!
//! A failure ends the node with a message: a database that starts without some of its data is worse than one
//! that does not start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_kernel::{
    Address, Context, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, Time,
    WorldRequest,
};
use junctor_model::checkpoint::PageTableLocation;
use junctor_model::id::{CommitNumber, Epoch, PartitionId, TableId};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, IDENTITY_USE, Identity};
use junctor_model::stored_lists::CheckpointLists;
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_signals::change_schema::{ChangePartition, PartitionChange};
use junctor_signals::checkpoint::LoadCheckpoint;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::read_rows::OperationId;
use junctor_signals::recover_log::{
    BuildIndexes, BuildIndexesReply, CheckpointBounds, DAMAGE_ADVICE, MISSING_ADVICE, OpenToClients, RELEASE_ADVICE,
    RecoverLog, RecoveredLog, ReplayLog, advice_about,
};
use junctor_signals::restart_progress::RestartPhase;
use junctor_signals::start_log::StartLog;
use junctor_signals::{LdmSignal, LogSignal, MainSignal, Module, RecvSignal, Signal, crash_point};
use junctor_storage::log::{PairSlot, decode_slot, encode_slot, newest_slot};

use super::block::MainBlock;
use super::read_lists::ListReader;
use super::restore::RestoredSchema;

/// Maximum number of signals to ldm instances in one turn.
const SIGNALS_PER_TURN: usize = 48;
/// The value of `ContinueWork::work` for recovery.
pub(super) const RECOVERY_WORK: u32 = 1;

/// The identity of a new directory while it is written.
const NEW_IDENTITY: &str = "identity.new";

/// The recovery under way.
#[derive(Debug)]
pub(super) struct Recovery {
    step: Step,
    identity: Option<Identity>,
    /// The last checkpoint; `None` if the directory has none.
    pub(super) manifest: Option<Box<Manifest>>,
    /// The schema and the partitions of the checkpoint.
    lists: Option<CheckpointLists>,
    recovered: RecoveredLog,
    /// The last number that is kept: the cluster's cut, once it is known.
    limit: CommitNumber,
    schema: Option<RestoredSchema>,
    /// Partitions that are not requested yet.
    unsent: VecDeque<(Address, ChangePartition)>,
    /// The greatest AUTO_INCREMENT value that a row of each table has.
    greatest: BTreeMap<TableId, u64>,
    /// Answers that the step waits for.
    outstanding: usize,
}

/// The pair files that recovery reads, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    Identity,
    Manifest,
}

impl Pair {
    fn name(self) -> &'static str {
        match self {
            Pair::Identity => "identity",
            Pair::Manifest => "manifest",
        }
    }

    /// The use in the header of the pair file.
    fn file_use(self) -> u16 {
        match self {
            Pair::Identity => IDENTITY_USE,
            Pair::Manifest => MANIFEST_USE,
        }
    }
}

/// The event that recovery awaits.
#[derive(Debug)]
enum Step {
    /// The creation of the data directory.
    MakeFolder,
    /// One of the two files of a pair. `first` is the content of file 0, and `found` counts the files that
    /// exist.
    ReadPair { pair: Pair, slot: u8, file: Option<FileId>, first: Option<PairSlot>, found: u8 },
    /// The manifest, which is written again.
    SyncManifest { file: Option<FileId>, content: FileBuffer },
    /// The lists of the checkpoint.
    ReadLists(ListReader),
    /// The log block's first reading.
    Analyse,
    /// The decision of the cluster to which number its nodes recover.
    AwaitCut,
    /// The creation of the partitions.
    MakePartitions,
    /// The rows of the checkpoint.
    Load,
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

impl Step {
    /// What recovery does with a file in this step, for error messages.
    fn file_work(&self) -> String {
        match self {
            Step::ReadPair { pair, slot, .. } => format!("read {}.{slot}", pair.name()),
            Step::SyncManifest { .. } => "sync the manifest".to_owned(),
            Step::WriteIdentity { .. } => "write the identity".to_owned(),
            _ => "use the data directory".to_owned(),
        }
    }
}

impl MainBlock {
    /// Begins the recovery of a node with a data directory. Other nodes serve clients immediately.
    pub(super) fn begin_recovery(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if self.configuration.log.is_none() {
            return self.note_recovered(now, outbox);
        }
        self.recovery = Some(Recovery {
            step: Step::MakeFolder,
            identity: None,
            manifest: None,
            lists: None,
            recovered: RecoveredLog::default(),
            limit: CommitNumber(u64::MAX),
            schema: None,
            unsent: VecDeque::new(),
            greatest: BTreeMap::new(),
            outstanding: 0,
        });
        self.restart_info.begin(RestartPhase::ReadManifest);
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
                begin_pair(recovery, Pair::Identity, outbox);
            }
            (Step::ReadPair { pair, slot, file, found, .. }, Ok(FileOutcome::Opened { file: opened, length, .. })) => {
                *file = Some(opened);
                *found += 1;
                if length > u64::from(WorldRequest::READ_BYTES_MAX) {
                    let name = pair.name();
                    let text = format!("{name}.{slot} has {length} bytes, which is too large; {DAMAGE_ADVICE}");
                    return halt(&text, outbox);
                }
                let length = length as u32;
                let bytes = FileBuffer::with_capacity(length as usize);
                outbox.request(WorldRequest::ReadFile { file: opened, offset: 0, length, bytes, token: 0 });
            }
            (Step::ReadPair { file, .. }, Ok(FileOutcome::Read { .. })) => {
                let closed = file.take();
                self.take_pair_file(&bytes, context, outbox);
                if let Some(file) = closed {
                    outbox.request(WorldRequest::CloseFile { file, token: 0 });
                }
            }
            (Step::ReadPair { .. }, Err(FileError::NotFound)) => self.take_pair_file(&[], context, outbox),
            (Step::SyncManifest { file, content }, Ok(FileOutcome::Opened { file: opened, length, .. })) => {
                *file = Some(opened);
                let mut bytes = std::mem::take(content);
                // A crash may have left one whole copy. On a full device, the file cannot grow to two.
                bytes.truncate(length as usize);
                outbox.request(WorldRequest::WriteFile { file: opened, offset: 0, bytes, token: 0 });
                outbox.request(WorldRequest::SyncFile { file: opened, token: 0 });
            }
            (Step::SyncManifest { .. }, Ok(FileOutcome::Written { .. })) => {}
            (Step::SyncManifest { file, .. }, Ok(FileOutcome::Synced)) => {
                if let Some(file) = file.take() {
                    outbox.request(WorldRequest::CloseFile { file, token: 0 });
                }
                // The name of the file may be new as well.
                outbox.request(WorldRequest::SyncFolder { path: ".".into(), lane: FileLane::Control, token: 0 });
            }
            (Step::SyncManifest { .. }, Ok(FileOutcome::FolderSynced)) => {
                outbox.crash_point(crash_point::RECOVERY_RESYNC.after());
                self.read_lists(outbox);
            }
            (Step::ReadLists(reader), result) => {
                let Some(manifest) = recovery.manifest.as_deref() else { return };
                match reader.take(manifest, (result, bytes), outbox) {
                    Ok(None) => {}
                    Ok(lists) => {
                        recovery.lists = lists;
                        self.begin_analysis(outbox);
                    }
                    Err(error) => halt(&error, outbox),
                }
            }
            (Step::WriteIdentity { file, content }, Ok(FileOutcome::Opened { file: opened, .. })) => {
                *file = Some(opened);
                let bytes = std::mem::take(content);
                outbox.request(WorldRequest::WriteFile { file: opened, offset: 0, bytes, token: 0 });
                outbox.request(WorldRequest::SyncFile { file: opened, token: 0 });
                outbox.request(WorldRequest::CloseFile { file: opened, token: 0 });
            }
            (Step::WriteIdentity { .. }, Ok(FileOutcome::Written { .. } | FileOutcome::Synced)) => {}
            (Step::WriteIdentity { file: Some(_), .. }, Ok(FileOutcome::Closed)) => {
                // An identity that a crash left unfinished would look like a damaged one.
                let (from, to) = (NEW_IDENTITY.into(), "identity.1".into());
                outbox.request(WorldRequest::RenameFile { from, to, lane: FileLane::Control, token: 0 });
            }
            (Step::WriteIdentity { .. }, Ok(FileOutcome::Renamed)) => {
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
                    Err(error) => format!("{error}; {}", advice_about(error)),
                };
                let text = format!("cannot {}: {reason}", step.file_work());
                halt(&text, outbox);
            }
        }
    }

    /// Takes the content of a file of a pair; empty if the file does not exist.
    fn take_pair_file(&mut self, bytes: &[u8], context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        let Step::ReadPair { pair, slot, first, found, .. } = &mut recovery.step else { return };
        let (pair, found) = (*pair, *found);
        let read = match decode_slot(pair.file_use(), bytes) {
            Ok(read) => read,
            Err(error) => return halt(&format!("{}.{slot}: {error}; {RELEASE_ADVICE}", pair.name()), outbox),
        };
        if *slot == 0 {
            (*slot, *first) = (1, read);
            return open_pair_file(pair, 1, FileMode::Read, outbox);
        }
        let newest = newest_slot(first.take(), read);
        match pair {
            Pair::Identity => self.take_identity(newest.map(|newest| newest.content), found, outbox),
            Pair::Manifest => self.take_manifest(newest, found, context, outbox),
        }
    }

    fn take_identity(&mut self, newest: Option<Vec<u8>>, found: u8, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        match newest.map(|content| Identity::decode(&content)) {
            Some(Ok(identity)) => {
                recovery.identity = Some(identity);
                begin_pair(recovery, Pair::Manifest, outbox);
            }
            Some(Err(error)) => halt(&error.to_string(), outbox),
            None if found > 0 => {
                halt("both files of the identity are damaged; restore the directory from a backup", outbox)
            }
            // A new directory has no manifest either.
            None => begin_pair(recovery, Pair::Manifest, outbox),
        }
    }

    /// Takes the newest manifest. Its file may be in the operating system's cache only. Therefore main writes
    /// it again and syncs it, before a later manifest overwrites the one before, and before anything is
    /// deleted that the one before names.
    fn take_manifest(
        &mut self,
        newest: Option<PairSlot>,
        found: u8,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(Identity { log_id, .. }) = recovery.identity else {
            if found > 0 {
                let text = "the data directory has checkpoints, but its identity is missing; restore it from a backup";
                return halt(text, outbox);
            }
            return self.start_log(context, outbox);
        };
        let Some(PairSlot { generation, content, .. }) = newest else {
            // The second file is written only after the first is durable.
            if found > 1 {
                return halt("both manifests are damaged; restore the directory from a backup", outbox);
            }
            // No checkpoint was completed, so the log is whole.
            return self.begin_analysis(outbox);
        };
        match Manifest::decode(&content) {
            Ok(manifest) if manifest.log_id == log_id && manifest.generation == generation => {
                recovery.manifest = Some(Box::new(manifest));
            }
            Ok(_) => {
                let text = format!("the manifest of the checkpoint belongs to another data directory; {DAMAGE_ADVICE}");
                return halt(&text, outbox);
            }
            Err(error) => return halt(&format!("{error}; {RELEASE_ADVICE}"), outbox),
        }
        outbox.crash_point(crash_point::RECOVERY_RESYNC.before());
        let content = FileBuffer::from(&encode_slot(MANIFEST_USE, generation, &content)[..]);
        recovery.step = Step::SyncManifest { file: None, content };
        open_pair_file(Pair::Manifest, (generation % 2) as u8, FileMode::ReadWrite, outbox);
    }

    /// Takes the lists from the manifest, or reads their files.
    fn read_lists(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(manifest) = &mut recovery.manifest else { return };
        if let Some(reader) = ListReader::begin(manifest, outbox) {
            recovery.step = Step::ReadLists(reader);
            return;
        }
        if let ListPlace::Inline(lists) = std::mem::take(&mut manifest.lists) {
            recovery.lists = Some(*lists);
        }
        self.begin_analysis(outbox);
    }

    /// Lets the log block read the log from the position that the manifest names.
    fn begin_analysis(&mut self, outbox: &mut Outbox<Signal>) {
        let reply_to = self.own;
        let Some(recovery) = &mut self.recovery else { return };
        let Some(Identity { log_id, segment_bytes, .. }) = recovery.identity else { return };
        let checkpoint = recovery.manifest.as_deref().map(|manifest| {
            let Manifest { begin, newest, replay_from, .. } = *manifest;
            CheckpointBounds { begin, newest, replay_from }
        });
        recovery.step = Step::Analyse;
        self.restart_info.begin(RestartPhase::ReadLog);
        let checkpoint = checkpoint.unwrap_or_default();
        let limit = recovery.limit;
        let signal = RecoverLog { reply_to, log_id, segment_bytes, checkpoint, limit };
        self.send_to_log(LogSignal::RecoverLog(signal), outbox);
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
            return halt(&format!("the log of the data directory is missing; {MISSING_ADVICE}"), outbox);
        }
        if let (Some(member), Some(recovery)) = (&mut self.member, &mut self.recovery)
            && recovery.limit.0 == u64::MAX
        {
            let checkpoint = recovery.manifest.as_ref().map_or(CommitNumber(0), |manifest| manifest.newest);
            member.note_recovered(recovered.last_commit_kept, checkpoint);
            recovery.recovered = *recovered;
            recovery.step = Step::AwaitCut;
            return;
        }
        self.make_partitions(*recovered, outbox);
    }

    /// The cluster restarts at this number. What the log has above it was never acknowledged as durable.
    pub(super) fn on_cut_known(&mut self, cut: CommitNumber, is_joining: bool, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = self.recovery.as_mut().filter(|it| matches!(it.step, Step::AwaitCut)) else { return };
        if is_joining {
            let is_restored = self.member.as_ref().is_some_and(|member| member.has_never_started());
            if is_restored && recovery.recovered.last_commit_kept.0 > 0 {
                return halt(
                    "the data directory was restored from a backup, but the cluster has started without it, and this \
                     node would copy the rows of the others over it; start the node with an empty directory, or \
                     restore all nodes of a new cluster from the same backup",
                    outbox,
                );
            }
            // The rows of the disk are too old: the node copies all of them.
            return self.begin_next_life(outbox);
        }
        let stable = recovery.recovered.last_commit_kept;
        recovery.limit = cut.min(stable);
        if cut < stable {
            return self.begin_analysis(outbox);
        }
        let recovered = std::mem::take(&mut recovery.recovered);
        self.make_partitions(recovered, outbox);
    }

    /// Restores the schema, and creates the partitions of this node.
    fn make_partitions(&mut self, recovered: RecoveredLog, outbox: &mut Outbox<Signal>) {
        let lists = self.recovery.as_ref().and_then(|recovery| recovery.lists.as_ref());
        let schema = match self.restore(lists, &recovered.dictionary, &recovered.marks) {
            Ok(schema) => schema,
            Err(message) => return halt(&format!("{message}; {RELEASE_ADVICE}"), outbox),
        };
        let own = self.own;
        // Every node of a cluster recovers its own disk.
        let is_in_cluster = self.member.is_some();
        let Some(recovery) = &mut self.recovery else { return };
        self.restart_info.begin(RestartPhase::MakePartitions);
        recovery.recovered = recovered;
        for partition in &schema.partitions {
            for member in partition.chain.iter().filter(|at| at.node == own.node || !is_in_cluster) {
                let change = ChangePartition {
                    operation: OperationId(0),
                    reply_to: own,
                    partition: partition.partition,
                    layout: Arc::clone(&partition.layout),
                    change: PartitionChange::Create { chain: partition.chain.clone() },
                    epoch: Epoch(0),
                };
                recovery.unsent.push_back((*member, change));
            }
        }
        recovery.outstanding = recovery.unsent.len();
        recovery.schema = Some(schema);
        recovery.step = Step::MakePartitions;
        self.continue_recovery(outbox);
    }

    /// Requests the next partitions. Loads the checkpoint when all of them exist.
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
            self.begin_load(outbox);
        }
    }

    /// Lets each ldm load its partitions from the checkpoint.
    fn begin_load(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(recovery) = &mut self.recovery else { return };
        let owners: BTreeMap<PartitionId, Address> =
            recovery.schema.as_ref().map(|schema| schema.owners(own.node)).unwrap_or_default().into_iter().collect();
        let mut loads: BTreeMap<Address, Vec<(PartitionId, PageTableLocation)>> = BTreeMap::new();
        // The lists are needed no longer.
        for (partition, table) in recovery.lists.take().unwrap_or_default().partitions {
            // A partition without an owner belongs to a table that was dropped after the checkpoint.
            if let Some(owner) = owners.get(&partition) {
                loads.entry(*owner).or_default().push((partition, table));
            }
        }
        if loads.is_empty() {
            return self.begin_replay(outbox);
        }
        outbox.crash_point(crash_point::RECOVERY_LOAD.before());
        recovery.step = Step::Load;
        self.restart_info.begin(RestartPhase::LoadCheckpoint);
        let files = recovery.manifest.as_deref().map_or(&[][..], |manifest| &manifest.files);
        self.restart_info.add_total_bytes(files.iter().map(|file| file.live_bytes).sum());
        recovery.outstanding = loads.len();
        for (ldm, partitions) in loads {
            outbox.send(ldm, Signal::Ldm(LdmSignal::LoadCheckpoint(LoadCheckpoint { reply_to: own, partitions })));
        }
    }

    fn begin_replay(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(recovery) = &mut self.recovery else { return };
        recovery.step = Step::Replay;
        self.restart_info.begin(RestartPhase::ReplayLog);
        self.restart_info.add_total_bytes(recovery.recovered.bytes);
        let owners = recovery.schema.as_ref().map(|schema| schema.owners(own.node)).unwrap_or_default();
        self.send_to_log(LogSignal::ReplayLog(ReplayLog { reply_to: own, owners }), outbox);
    }

    pub(super) fn on_build_indexes_reply(&mut self, reply: BuildIndexesReply, outbox: &mut Outbox<Signal>) {
        if let Some(recovery) = &mut self.recovery {
            for (table, greatest) in reply.greatest {
                let known = recovery.greatest.entry(table).or_insert(greatest);
                *known = greatest.max(*known);
            }
        }
        self.on_recovery_reply(reply.error.as_deref(), outbox);
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
            Step::Load => {
                outbox.crash_point(crash_point::RECOVERY_LOAD.after());
                self.begin_replay(outbox);
            }
            Step::Replay => {
                recovery.step = Step::BuildIndexes;
                self.restart_info.begin(RestartPhase::BuildIndexes);
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
                let log_id = recovery.identity.as_ref().map_or(0, |identity| identity.log_id);
                let manifest = recovery.manifest.take();
                self.recovery = None;
                self.restart_info.end();
                outbox.crash_point(crash_point::RECOVERY_CLEAN.after());
                self.begin_checkpoints(log_id, manifest, outbox);
                self.read_settings(outbox);
            }
            _ => {}
        }
    }

    /// Begins the log of a new data directory, with a random id.
    fn start_log(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        let segment_bytes = self.configuration.segment_bytes;
        if let Some(member) = &mut self.member {
            member.note_recovered(CommitNumber(0), CommitNumber(0));
        }
        let log_id = context.random.word();
        recovery.identity = Some(Identity { format: DIRECTORY_FORMAT_VERSION, log_id, segment_bytes });
        self.begin_next_life(outbox);
    }

    /// Begins the next incarnation of the log, after the last group that recovery accepted.
    fn begin_next_life(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let (Some(recovery), Some(target)) = (&mut self.recovery, &self.configuration.log) else { return };
        let Some(identity) = &recovery.identity else { return };
        let RecoveredLog { incarnation, position, previous_checksum, last_commit_kept, ceiling, .. } =
            recovery.recovered;
        // The next epoch of a cluster has numbers that no log has.
        let goes_on_at_cut = self.member.is_some() || PlantedBug::ReuseNumbers.is_planted();
        let ceiling = if goes_on_at_cut { last_commit_kept } else { ceiling };
        // No commit number above the cut is used again, not even that of a lost record.
        target.sequence.restart_after(ceiling);
        outbox.crash_point(crash_point::RECOVERY_START.before());
        recovery.step = Step::StartLog;
        self.restart_info.begin(RestartPhase::StartLog);
        let start = StartLog {
            reply_to: own,
            log_id: identity.log_id,
            life: self.life,
            incarnation: incarnation + 1,
            position,
            previous_checksum,
            last_commit_kept,
            highest_number: ceiling,
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
        let (path, mode, lane) = (NEW_IDENTITY.into(), FileMode::CreateEmpty, FileLane::Control);
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
    }

    /// Gives every block the recovered catalog.
    fn publish_recovered(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(recovery) = &mut self.recovery else { return };
        outbox.crash_point(crash_point::RECOVERY_CLEAN.before());
        recovery.step = Step::Publish;
        self.restart_info.begin(RestartPhase::PublishSchema);
        let Some(schema) = recovery.schema.take() else {
            recovery.outstanding = 1;
            return self.on_recovery_reply(None, outbox);
        };
        let greatest = std::mem::take(&mut recovery.greatest);
        self.install(schema);
        for (table, greatest) in greatest {
            self.raise_auto_increment(table, greatest);
        }
        let outstanding = self.send_catalog(OperationId(0), outbox);
        if let Some(recovery) = &mut self.recovery {
            recovery.outstanding = outstanding;
        }
    }

    /// The data of this node is there. A node alone serves from now on; a node of a cluster once it is a
    /// member.
    pub(super) fn note_recovered(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        self.begin_epochs(now, outbox);
        match &mut self.member {
            // A node with a log has said so before, and waits for the cluster now.
            Some(_) if self.configuration.log.is_some() => {}
            Some(member) => member.note_recovered(CommitNumber(0), CommitNumber(0)),
            // The first epoch opens the node.
            None if self.configuration.log.is_none() || self.epochs.is_some() => {}
            None => self.open_to_clients(outbox),
        }
    }

    pub(super) fn open_to_clients(&self, outbox: &mut Outbox<Signal>) {
        for to in &self.recv_blocks {
            outbox.send(*to, Signal::Recv(RecvSignal::OpenToClients(OpenToClients {})));
        }
    }

    pub(super) fn send_to_log(&self, signal: LogSignal, outbox: &mut Outbox<Signal>) {
        if let Some(target) = &self.configuration.log {
            outbox.send(target.log, Signal::Log(signal));
        }
    }
}

/// Reads the files of a pair.
fn begin_pair(recovery: &mut Recovery, pair: Pair, outbox: &mut Outbox<Signal>) {
    recovery.step = Step::ReadPair { pair, slot: 0, file: None, first: None, found: 0 };
    open_pair_file(pair, 0, FileMode::Read, outbox);
}

fn open_pair_file(pair: Pair, slot: u8, mode: FileMode, outbox: &mut Outbox<Signal>) {
    let (path, lane) = (format!("{}.{slot}", pair.name()).into(), FileLane::Control);
    outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
}

/// Ends the node. It has acknowledged nothing since its start.
fn halt(message: &str, outbox: &mut Outbox<Signal>) {
    outbox.request(WorldRequest::Halt { message: format!("recovery failed: {message}").into() });
}
