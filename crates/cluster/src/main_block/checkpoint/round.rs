//! The steps of a round.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use junctor_kernel::{
    Address, Context, Duration, FileBuffer, FileError, FileId, FileLane, FileOutcome, FileResult, Outbox, Time,
    WorldRequest, require,
};
use junctor_model::checkpoint::{CHECKPOINT_FOLDER, CheckpointFile, checkpoint_file, checkpoint_path};
use junctor_model::id::CommitNumber;
use junctor_model::planted_bug::PlantedBug;
use junctor_model::stored_manifest::Manifest;
use junctor_signals::checkpoint::{
    BeginCheckpoint, BeginCheckpointReply, EndCheckpoint, LdmCheckpoint, ReadLogUsage, ReadLogUsageReply,
    SetCheckpointSpeed, SetCheckpointSpeedReply, TrimLog, WriteCheckpoint, WriteCheckpointReply,
};
use junctor_signals::{LdmSignal, LogSignal, Module, Signal, crash_point};

use super::controller::{CheckpointSettings, Controller, Observation, TICK};
use super::files::files_to_rewrite;
use super::lists::{ListWriter, SchemaFile};
use super::merge::RoundLists;
use super::status::RoundReport;
use crate::main_block::block::MainBlock;

/// Token of the timer of checkpoints.
pub(in crate::main_block) const CHECKPOINT_TIMER: u64 = 2;
/// Time between a failed round and the next one, in milliseconds.
const RETRY_MS: u64 = 1000;
/// Fill of the log, in per cent, above which backups lose their protection.
const BACKUP_LOG_PERCENT_MAX: u64 = 75;
/// Maximum number of rounds that `junctor_info.checkpoints` shows.
const REPORTS_MAX: usize = 16;

/// Tokens of file requests.
const FOLDER_TOKEN: u64 = 1;
const DELETE_TOKEN: u64 = 2;
const LIST_TOKEN: u64 = 4;
pub(super) const MANIFEST_TOKEN: u64 = 3;
pub(super) const LIST_FILE_TOKEN: u64 = 5;

/// The checkpoints of the node.
#[derive(Debug)]
pub(in crate::main_block) struct Checkpoints {
    pub(super) settings: CheckpointSettings,
    pub(super) controller: Controller,
    usage: ReadLogUsageReply,
    /// The progress of each ldm in the running round.
    progress: BTreeMap<Address, SetCheckpointSpeedReply>,
    pub(super) log_id: u64,
    /// The durable manifest. Its generation is 0 before the first round.
    pub(super) manifest: Manifest,
    /// The schema that the manifest names, if this life has written it.
    pub(super) schema: Option<SchemaFile>,
    /// The generation of the next manifest.
    next_generation: u64,
    pub(super) next_file: u32,
    /// Files that a manifest on disk may name although writing it failed.
    doubtful_files: BTreeSet<u32>,
    pub(super) round: Option<Round>,
    /// No round begins earlier.
    earliest_begin: Time,
    pub(super) reports: VecDeque<RoundReport>,
    /// The files and the part of the log that no manifest needs any more, but perhaps a backup.
    superseded: Superseded,
    /// Whether the folder exists and has no files of unfinished rounds.
    is_ready: bool,
    is_stopping: bool,
}

/// The superseded files and the superseded part of the log, which are freed when no backup is under way.
#[derive(Debug, Default)]
struct Superseded {
    files: BTreeSet<u32>,
    /// `replay_from` of the newest manifest, unless the log is trimmed to it.
    replay_from: Option<u64>,
}

/// The round under way.
#[derive(Debug)]
pub(super) struct Round {
    pub generation: u64,
    pub began: Time,
    pub step: Step,
    pub begin: CommitNumber,
    pub newest: CommitNumber,
    pub replay_from: u64,
    ldms: Vec<Address>,
    /// Answers of ldm blocks that are to come.
    outstanding: usize,
    /// The files that the ldm blocks have created.
    pub files: Vec<CheckpointFile>,
    pub parts: Vec<LdmCheckpoint>,
    /// Number of partitions with a page table.
    pub partitions: u64,
    /// The files of the schema and of the list of partitions that main has created.
    pub list_files: Vec<u32>,
    pub error: Option<Box<str>>,
    /// The manifest that is being written, and the schema that it names.
    pub manifest: Option<(Box<Manifest>, SchemaFile)>,
}

/// The event that a round awaits.
#[derive(Debug)]
pub(super) enum Step {
    /// The numbers with which the round begins.
    Begin,
    /// The files of the ldm blocks.
    Write,
    /// The durability of the newest commit in the files.
    AwaitDurable,
    /// A later turn, which goes on merging the lists of partitions.
    MergeLists(Box<RoundLists>),
    /// The files of the schema and of the list of partitions.
    WriteLists(Box<ListWriter>),
    /// The file of the manifest.
    Switch { file: Option<FileId>, content: FileBuffer },
}

impl Checkpoints {
    pub fn new(settings: CheckpointSettings) -> Checkpoints {
        Checkpoints {
            settings,
            controller: Controller::new(settings),
            usage: ReadLogUsageReply::default(),
            progress: BTreeMap::new(),
            log_id: 0,
            manifest: Manifest::default(),
            schema: None,
            next_generation: 1,
            next_file: 1,
            doubtful_files: BTreeSet::new(),
            round: None,
            earliest_begin: Time(0),
            reports: VecDeque::new(),
            superseded: Superseded::default(),
            is_ready: false,
            is_stopping: false,
        }
    }

    /// The commit whose durability the round awaits.
    pub fn awaited(&self) -> Option<CommitNumber> {
        let round = self.round.as_ref().filter(|round| matches!(round.step, Step::AwaitDurable))?;
        Some(round.newest)
    }

    /// The least generation of a round that has not begun.
    pub fn next_generation_to_begin(&self) -> u64 {
        self.next_generation + u64::from(self.round.is_some())
    }

    /// Begins no more rounds: the node stops.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Bytes written to the files of the running round, and bytes left.
    pub(super) fn progress(&self) -> (u64, u64) {
        let sum = |bytes: fn(&SetCheckpointSpeedReply) -> u64| self.progress.values().map(bytes).sum();
        (sum(|progress| progress.written_bytes), sum(|progress| progress.left_bytes))
    }

    /// The space of the log at the last look.
    pub fn log_usage(&self) -> &ReadLogUsageReply {
        &self.usage
    }
}

impl Round {
    /// The numbers of all files that the round has created.
    pub fn new_files(&self) -> impl Iterator<Item = u32> + '_ {
        self.files.iter().map(|file| file.number).chain(self.list_files.iter().copied())
    }
}

impl MainBlock {
    /// Continues after the checkpoint that recovery has found, if any. Deletes the files that it does not
    /// name, and begins rounds from then on.
    pub(in crate::main_block) fn begin_checkpoints(
        &mut self,
        log_id: u64,
        manifest: Option<Box<Manifest>>,
        outbox: &mut Outbox<Signal>,
    ) {
        let checkpoints = &mut self.checkpoints;
        checkpoints.log_id = log_id;
        if let Some(manifest) = manifest {
            checkpoints.next_generation = manifest.generation + 1;
            checkpoints.next_file = manifest.next_file;
            checkpoints.manifest = *manifest;
        }
        list_checkpoints(outbox);
    }

    pub(in crate::main_block) fn on_checkpoint_file(
        &mut self,
        (token, result): (u64, FileResult),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        match (token, result) {
            (MANIFEST_TOKEN, result) => self.on_manifest_file(result, context, outbox),
            (LIST_FILE_TOKEN, result) => self.on_list_file(result, context, outbox),
            (LIST_TOKEN, Ok(FileOutcome::Listed(entries))) => {
                let files: Vec<u32> = entries.iter().filter_map(|entry| checkpoint_file(&entry.name)).collect();
                let unnamed = files.into_iter().filter(|file| self.checkpoints.manifest.file(*file).is_none());
                delete_files(unnamed, outbox);
                self.checkpoints.is_ready = true;
                self.start_checkpoint_timer(outbox);
            }
            (DELETE_TOKEN, Ok(_)) => outbox.crash_point(crash_point::CHECKPOINT_DELETE.after()),
            // A file that stays only takes space: the next start of the node tries again.
            // Without the folder, listing it fails, too.
            (DELETE_TOKEN | FOLDER_TOKEN, Err(_)) | (_, Ok(_)) => {}
            (_, Err(error)) => {
                // A node that cannot make checkpoints fills its log and then holds writes back. The timer
                // tries again.
                self.report_failure(&format!("cannot use the folder '{CHECKPOINT_FOLDER}': {error}"));
                let after = Duration::from_millis(RETRY_MS);
                outbox.request(WorldRequest::StartTimer { after, token: CHECKPOINT_TIMER });
            }
        }
    }

    fn start_checkpoint_timer(&mut self, outbox: &mut Outbox<Signal>) {
        outbox.request(WorldRequest::StartTimer { after: TICK, token: CHECKPOINT_TIMER });
    }

    pub(in crate::main_block) fn on_checkpoint_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if self.checkpoints.is_stopping {
            return;
        }
        if !self.checkpoints.is_ready {
            return list_checkpoints(outbox);
        }
        self.start_checkpoint_timer(outbox);
        self.send_to_log(LogSignal::ReadLogUsage(ReadLogUsage { reply_to: self.own }), outbox);
    }

    pub(in crate::main_block) fn on_read_log_usage_reply(
        &mut self,
        usage: ReadLogUsageReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let load_per_mille = self.ldm_load_per_mille(context);
        let ldm_instances = self.ldm_instances;
        let own = self.own;
        let checkpoints = &mut self.checkpoints;
        checkpoints.usage = usage;
        let (_, left_bytes) = checkpoints.progress();
        checkpoints.controller.observe(Observation {
            now: context.turn_start,
            log_used_bytes: usage.used_bytes,
            log_limit_bytes: usage.limit_bytes,
            log_written_bytes: usage.written_bytes,
            is_log_waited_for: usage.is_waited_for,
            left_bytes,
            load_per_mille,
            sync_us: u64::from(usage.sync_us),
            sync_us_min: u64::from(usage.sync_us_min),
            syncs_us: usage.syncs_us,
        });
        self.revoke_backup_locks_if_full(outbox);
        let checkpoints = &self.checkpoints;
        match &checkpoints.round {
            None => self.begin_round_if_due(context.turn_start, outbox),
            Some(Round { step: Step::Write, generation, ldms, .. }) => {
                let bytes_per_second = checkpoints.controller.bytes_per_second() / u64::from(ldm_instances);
                for ldm in ldms {
                    let signal = SetCheckpointSpeed { reply_to: own, generation: *generation, bytes_per_second };
                    outbox.send(*ldm, Signal::Ldm(LdmSignal::SetCheckpointSpeed(signal)));
                }
            }
            Some(_) => {}
        }
    }

    /// Load of the busiest thread with an ldm, in the last second.
    fn ldm_load_per_mille(&self, context: &Context<'_>) -> u64 {
        let load = |instance: u16| {
            let thread = context.directory.thread_of(Module::Ldm, instance)?;
            Some(u64::from(context.loads.thread(thread)?.second.busy_per_mille()))
        };
        (0..self.ldm_instances).filter_map(load).max().unwrap_or(0)
    }

    fn begin_round_if_due(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let checkpoints = &mut self.checkpoints;
        let can_begin = checkpoints.is_ready && !checkpoints.is_stopping && now >= checkpoints.earliest_begin;
        let is_due = checkpoints.controller.is_due() || self.rejoin.needs_checkpoint();
        if !can_begin || !is_due {
            return;
        }
        checkpoints.controller.begin_round();
        checkpoints.progress.clear();
        checkpoints.round = Some(Round {
            generation: checkpoints.next_generation,
            began: now,
            step: Step::Begin,
            begin: CommitNumber(0),
            newest: CommitNumber(0),
            replay_from: 0,
            ldms: Vec::new(),
            outstanding: 0,
            files: Vec::new(),
            parts: Vec::new(),
            partitions: 0,
            list_files: Vec::new(),
            error: None,
            manifest: None,
        });
        outbox.crash_point(crash_point::CHECKPOINT_BEGIN.before());
        self.send_to_log(LogSignal::BeginCheckpoint(BeginCheckpoint { reply_to: self.own }), outbox);
    }

    pub(in crate::main_block) fn on_begin_checkpoint_reply(
        &mut self,
        reply: BeginCheckpointReply,
        outbox: &mut Outbox<Signal>,
    ) {
        outbox.crash_point(crash_point::CHECKPOINT_BEGIN.after());
        let (own, ldm_instances) = (self.own, self.ldm_instances);
        let checkpoints = &mut self.checkpoints;
        let Some(round) = checkpoints.round.as_mut().filter(|round| matches!(round.step, Step::Begin)) else {
            junctor_kernel::invariant::fail("the log answers a round that begins", format_args!("{reply:?}"))
        };
        let BeginCheckpointReply { begin, replay_from } = reply;
        require!(
            begin >= checkpoints.manifest.begin && replay_from >= checkpoints.manifest.replay_from,
            "rounds begin later than their predecessors: {reply:?}"
        );
        (round.step, round.begin, round.newest, round.replay_from) = (Step::Write, begin, begin, replay_from);
        round.outstanding = usize::from(ldm_instances);
        let Manifest { files, .. } = &checkpoints.manifest;
        let files = files.iter().filter(|file| !checkpoints.manifest.is_list(file.number));
        let rewritten_files = files_to_rewrite(files, checkpoints.settings.recovery_work_percent);
        let bytes_per_second = checkpoints.controller.bytes_per_second() / u64::from(ldm_instances);
        for instance in 0..ldm_instances {
            let ldm = Address::new(own.node, Module::Ldm, instance);
            round.ldms.push(ldm);
            let signal = WriteCheckpoint {
                reply_to: own,
                generation: round.generation,
                file: checkpoints.next_file + u32::from(instance),
                file_step: u32::from(ldm_instances),
                begin,
                bytes_per_second,
                rewritten_files: rewritten_files.clone(),
            };
            outbox.send(ldm, Signal::Ldm(LdmSignal::WriteCheckpoint(signal)));
        }
    }

    pub(in crate::main_block) fn on_set_checkpoint_speed_reply(&mut self, reply: SetCheckpointSpeedReply) {
        let round = self.checkpoints.round.as_ref();
        if round.is_some_and(|round| round.generation == reply.generation) {
            self.checkpoints.progress.insert(reply.from, reply);
        }
    }

    pub(in crate::main_block) fn on_write_checkpoint_reply(
        &mut self,
        reply: WriteCheckpointReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let WriteCheckpointReply { from, generation, files, result } = reply;
        let round = self.checkpoints.round.as_mut();
        let Some(round) = round.filter(|round| round.generation == generation && round.outstanding > 0) else {
            junctor_kernel::invariant::fail("an ldm answers a round once", format_args!("generation {generation}"))
        };
        round.outstanding -= 1;
        let next_file = files.iter().map(|file| file.number + 1).max().unwrap_or(0);
        self.checkpoints.next_file = self.checkpoints.next_file.max(next_file);
        let file_bytes = files.iter().map(|file| file.bytes).sum();
        round.files.extend(files);
        match result {
            Ok(part) => {
                round.newest = round.newest.max(part.newest);
                let progress = self.checkpoints.progress.entry(from).or_insert(SetCheckpointSpeedReply {
                    from,
                    generation,
                    written_bytes: 0,
                    left_bytes: 0,
                    write_us: 0,
                });
                (progress.written_bytes, progress.left_bytes) = (file_bytes, 0);
                round.partitions += part.partitions.len() as u64;
                round.parts.push(*part);
            }
            Err(error) => {
                round.error.get_or_insert(error);
            }
        }
        if round.outstanding > 0 {
            return;
        }
        if round.error.is_some() {
            return self.abandon_round(context.turn_start, outbox);
        }
        outbox.crash_point(crash_point::CHECKPOINT_AWAIT.before());
        round.step = Step::AwaitDurable;
        if PlantedBug::EarlyManifest.is_planted() {
            return self.begin_manifest(context.turn_start, outbox);
        }
        self.ask_for_durable(outbox);
        // The number may be on disk already, so that no further answer comes.
        let everywhere = self.epochs.as_ref().map(|epochs| epochs.durable_everywhere());
        if let Some(everywhere) = everywhere {
            self.on_checkpoint_durable(self.durable_for_round(everywhere), context.turn_start, outbox);
        }
    }

    /// The number up to which commits are durable for a checkpoint: as this node's log has them if its disk
    /// does not count yet, otherwise as all nodes have them.
    pub(in crate::main_block) fn durable_for_round(&self, everywhere: CommitNumber) -> CommitNumber {
        match &self.epochs {
            Some(epochs) if !self.counts_for_durability() => epochs.durable(),
            _ => everywhere,
        }
    }

    /// Every commit up to `durable` survives a crash. A node whose disk does not count yet may know so before
    /// it installs the records of that time, because they wait for the other nodes.
    pub(in crate::main_block) fn on_checkpoint_durable(
        &mut self,
        durable: CommitNumber,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let is_durable = self.checkpoints.awaited().is_some_and(|newest| newest <= durable);
        if is_durable && self.has_schema_of_round() {
            outbox.crash_point(crash_point::CHECKPOINT_AWAIT.after());
            self.begin_manifest(now, outbox);
        }
    }

    /// The manifest of the round is durable.
    pub(super) fn keep_round(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(mut round) = self.checkpoints.round.take() else { return };
        let Some((manifest, schema)) = round.manifest.take() else {
            junctor_kernel::invariant::fail("a round that is kept has a manifest", format_args!("{round:?}"))
        };
        let checkpoints = &mut self.checkpoints;
        checkpoints.next_generation = manifest.generation + 1;
        checkpoints.next_file = manifest.next_file;
        checkpoints.schema = Some(schema);
        let files_before = checkpoints.manifest.files.iter().map(|file| file.number);
        let mut unnamed: BTreeSet<u32> = files_before.chain(round.new_files()).collect();
        unnamed.append(&mut checkpoints.doubtful_files);
        unnamed.retain(|file| manifest.file(*file).is_none());
        checkpoints.manifest = *manifest;
        self.note_checkpoint(round.generation);
        self.end_at_ldms(&round, true, outbox);
        self.checkpoints.superseded.files.append(&mut unnamed);
        self.checkpoints.superseded.replay_from = Some(round.replay_from);
        self.free_superseded(outbox);
        self.report_round(&round, now);
    }

    /// Trims the log and deletes files, unless a backup may copy them.
    pub(in crate::main_block) fn free_superseded(&mut self, outbox: &mut Outbox<Signal>) {
        if self.backup_locks.is_held() {
            return;
        }
        let Superseded { files, replay_from } = std::mem::take(&mut self.checkpoints.superseded);
        if let Some(replay_from) = replay_from {
            self.send_to_log(LogSignal::TrimLog(TrimLog { replay_from }), outbox);
        }
        delete_files(files.into_iter(), outbox);
    }

    /// Ends the protection of backups once the log is so full that writes will soon have to wait.
    fn revoke_backup_locks_if_full(&mut self, outbox: &mut Outbox<Signal>) {
        let ReadLogUsageReply { used_bytes, limit_bytes, .. } = *self.checkpoints.log_usage();
        if self.backup_locks.is_held() && used_bytes > limit_bytes / 100 * BACKUP_LOG_PERCENT_MAX {
            outbox.crash_point(crash_point::BACKUP_UNPIN.before());
            self.backup_locks.revoke();
            self.free_superseded(outbox);
            outbox.crash_point(crash_point::BACKUP_UNPIN.after());
        }
    }

    /// Gives up the round: no manifest names its files, unless writing one failed.
    pub(super) fn abandon_round(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(round) = self.checkpoints.round.take() else { return };
        outbox.crash_point(crash_point::CHECKPOINT_ABANDON.before());
        self.end_at_ldms(&round, false, outbox);
        let checkpoints = &mut self.checkpoints;
        checkpoints.earliest_begin = now.plus(Duration::from_millis(RETRY_MS));
        match &round.manifest {
            // Its content on disk is unknown. The next manifest must not overwrite the last durable one.
            Some((manifest, _)) => {
                checkpoints.next_generation += 2;
                checkpoints.next_file = manifest.next_file;
                checkpoints.doubtful_files.extend(manifest.files.iter().map(|file| file.number));
            }
            None => {
                let next_file = round.new_files().map(|file| file + 1).max().unwrap_or(0);
                checkpoints.next_file = checkpoints.next_file.max(next_file);
                delete_files(round.new_files(), outbox);
            }
        }
        self.report_round(&round, now);
        outbox.crash_point(crash_point::CHECKPOINT_ABANDON.after());
    }

    fn end_at_ldms(&self, round: &Round, is_kept: bool, outbox: &mut Outbox<Signal>) {
        for ldm in &round.ldms {
            let signal = EndCheckpoint { generation: round.generation, is_kept };
            outbox.send(*ldm, Signal::Ldm(LdmSignal::EndCheckpoint(signal)));
        }
    }

    fn report_round(&mut self, round: &Round, now: Time) {
        let report = RoundReport::new(round, &self.checkpoints, now);
        self.add_report(report);
    }

    fn report_failure(&mut self, error: &str) {
        let generation = self.checkpoints.next_generation;
        let report = RoundReport { generation, state: "FAILED", error: Some(error.into()), ..RoundReport::default() };
        self.add_report(report);
    }

    fn add_report(&mut self, report: RoundReport) {
        let reports = &mut self.checkpoints.reports;
        if reports.len() == REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }
}

/// Creates the folder if necessary, and lists it.
fn list_checkpoints(outbox: &mut Outbox<Signal>) {
    let (folder, lane) = (|| CHECKPOINT_FOLDER.into(), FileLane::Checkpoint);
    outbox.request(WorldRequest::CreateFolder { path: folder(), lane, token: FOLDER_TOKEN });
    outbox.request(WorldRequest::ListFolder { path: folder(), lane, token: LIST_TOKEN });
}

fn delete_files(files: impl Iterator<Item = u32>, outbox: &mut Outbox<Signal>) {
    for file in files {
        outbox.crash_point(crash_point::CHECKPOINT_DELETE.before());
        let (path, lane) = (checkpoint_path(file), FileLane::Checkpoint);
        outbox.request(WorldRequest::DeleteFile { path, lane, token: DELETE_TOKEN });
    }
}

/// The text of a failed request, for `junctor_info.checkpoints`.
pub(super) fn failure(action: &str, path: &str, error: FileError) -> Box<str> {
    format!("cannot {action} {path}: {error}").into()
}
