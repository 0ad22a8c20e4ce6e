//! Writes the manifest of a round to the file of the pair that does not hold the last durable one.

use std::sync::Arc;

use junctor_kernel::{
    Context, FileBuffer, FileLane, FileMode, FileOutcome, FileResult, Outbox, Time, WorldRequest, require,
};
use junctor_model::id::CommitNumber;
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::{MainSignal, Signal, crash_point};
use junctor_storage::log::encode_slot;

use super::files::live_files;
use super::lists::{ListContent, ListWriter, SchemaFile, SchemaState};
use super::merge::RoundLists;
use super::round::{MANIFEST_TOKEN, Step, failure};
use crate::main_block::block::MainBlock;

/// The value of `ContinueWork::work` for the lists of a round.
pub(in crate::main_block) const CHECKPOINT_WORK: u32 = 3;

impl MainBlock {
    /// Begins to make the lists and the manifest of the round. Everything else that the manifest names is
    /// durable.
    pub(super) fn begin_manifest(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let has_schema = self.has_schema_of_round();
        let Some(round) = &mut self.checkpoints.round else { return };
        require!(has_schema, "schema changes up to {} are in the dictionary", round.begin);
        let marks = self
            .counters
            .iter()
            .filter(|(_, counter)| counter.is_logged)
            .map(|(table, counter)| (*table, counter.durable))
            .collect();
        let parts = round.parts.iter_mut().map(|part| std::mem::take(&mut part.partitions));
        let lists = RoundLists::new(Arc::clone(&self.catalog), self.next_table, marks, parts);
        round.step = Step::MergeLists(Box::new(lists));
        self.write_manifest(now, outbox);
    }

    /// Whether the schema includes every change up to the number with which the round began. The log may lose
    /// those records.
    pub(super) fn has_schema_of_round(&self) -> bool {
        let of_others = self.share.first_undurable();
        let begin = self.checkpoints.round.as_ref().map(|round| round.begin);
        let is_later = |number: CommitNumber| begin.is_none_or(|begin| number > begin);
        self.records.under_way().is_none_or(is_later) && of_others.is_none_or(is_later)
    }

    /// Goes on merging the lists. Begins to write them, and then the manifest, when they are complete.
    pub(in crate::main_block) fn write_manifest(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(Step::MergeLists(lists)) = self.checkpoints.round.as_mut().map(|round| &mut round.step) else {
            return;
        };
        if !lists.merge() {
            let work = ContinueWork { work: CHECKPOINT_WORK };
            return outbox.send(self.own, Signal::Main(MainSignal::ContinueWork(work)));
        }
        match self.next_manifest() {
            Some(writer) => self.write_lists(writer, outbox),
            None => self.abandon_round(now, outbox),
        }
    }

    /// Writes the manifest. The lists are durable.
    pub(super) fn switch_manifest(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(round) = &mut self.checkpoints.round else { return };
        let Step::WriteLists(writer) = std::mem::replace(&mut round.step, Step::Begin) else { return };
        let ListWriter { manifest, schema, .. } = *writer;
        let content = FileBuffer::from(&encode_slot(MANIFEST_USE, manifest.generation, &manifest.encode())[..]);
        let path = manifest_path(manifest.generation);
        round.manifest = Some((manifest, schema));
        round.step = Step::Switch { file: None, content };
        outbox.crash_point(crash_point::CHECKPOINT_SWITCH.before());
        outbox.crash_point(crash_point::PAIR_MANIFEST.before());
        let (mode, lane) = (FileMode::CreateEmpty, FileLane::Control);
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: MANIFEST_TOKEN });
    }

    /// The manifest of the round, and the lists to write for it.
    fn next_manifest(&mut self) -> Option<ListWriter> {
        let checkpoints = &mut self.checkpoints;
        let round = checkpoints.round.as_mut()?;
        let Step::MergeLists(lists) = std::mem::replace(&mut round.step, Step::Begin) else { return None };
        let RoundLists { catalog, next_table, marks, partitions, .. } = *lists;
        let next_file = checkpoints.next_file;
        let version = SchemaState { dictionary: catalog.dictionary.version, next_table };
        let known = checkpoints.schema.filter(|schema| schema.version == version);
        let schema = known.unwrap_or(SchemaFile { number: next_file, version });
        let partitions = ListContent::partitions(marks, partitions);
        let lists = match known {
            Some(_) => vec![partitions],
            None => vec![ListContent::schema(&catalog, next_table), partitions],
        };
        let before = &checkpoints.manifest.files;
        let known_file = known.and_then(|known| checkpoints.manifest.file(known.number));
        let live = round.parts.iter().flat_map(|part| part.live_bytes.iter().copied());
        let live = live.chain(known_file.map(|file| (file.number, file.bytes)));
        let files = live_files(before, round.files.iter(), live);
        let manifest = Manifest {
            generation: round.generation,
            log_id: checkpoints.log_id,
            begin: round.begin,
            newest: round.newest,
            replay_from: round.replay_from,
            lists: ListPlace::default(),
            next_file,
            files,
        };
        ListWriter::new(manifest, schema, lists)
    }

    pub(super) fn on_manifest_file(
        &mut self,
        result: FileResult,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(round) = &mut self.checkpoints.round else { return };
        let generation = round.generation;
        let Step::Switch { file, content } = &mut round.step else { return };
        match result {
            Ok(FileOutcome::Opened { file: opened, .. }) => {
                *file = Some(opened);
                let bytes = std::mem::take(content);
                outbox.request(WorldRequest::WriteFile { file: opened, offset: 0, bytes, token: MANIFEST_TOKEN });
            }
            Ok(FileOutcome::Written { .. }) => {
                if let Some(file) = *file {
                    outbox.request(WorldRequest::SyncFile { file, token: MANIFEST_TOKEN });
                }
            }
            Ok(FileOutcome::Synced) => {
                if let Some(file) = file.take() {
                    outbox.request(WorldRequest::CloseFile { file, token: MANIFEST_TOKEN });
                }
            }
            Ok(FileOutcome::Closed) if round.error.is_some() => self.abandon_round(context.turn_start, outbox),
            Ok(FileOutcome::Closed) => {
                // Each of the first two manifests creates a file, whose name is durable only after a sync of
                // the folder.
                let (path, lane) = (".".into(), FileLane::Control);
                outbox.request(WorldRequest::SyncFolder { path, lane, token: MANIFEST_TOKEN });
            }
            Ok(FileOutcome::FolderSynced) => {
                outbox.crash_point(crash_point::PAIR_MANIFEST.after());
                outbox.crash_point(crash_point::CHECKPOINT_SWITCH.after());
                self.keep_round(context.turn_start, outbox);
            }
            Ok(outcome) => junctor_kernel::invariant::fail("a request has its own answer", format_args!("{outcome:?}")),
            Err(error) => {
                round.error.get_or_insert_with(|| failure("write", &manifest_path(generation), error));
                match file.take() {
                    Some(file) => outbox.request(WorldRequest::CloseFile { file, token: MANIFEST_TOKEN }),
                    None => self.abandon_round(context.turn_start, outbox),
                }
            }
        }
    }
}

fn manifest_path(generation: u64) -> Box<str> {
    format!("manifest.{}", generation % 2).into()
}
