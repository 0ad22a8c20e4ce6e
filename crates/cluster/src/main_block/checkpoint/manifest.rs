//! Writes the manifest of a round to the file of the pair that does not hold the last durable one.

use std::collections::BTreeMap;

use junctor_kernel::{
    Context, FileBuffer, FileLane, FileMode, FileOutcome, FileResult, Outbox, Time, WorldRequest, require,
};
use junctor_model::schema::Dictionary;
use junctor_model::stored_manifest::{MANIFEST_USE, Manifest};
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::{Signal, crash_point};
use junctor_storage::log::encode_slot;

use super::files::live_files;
use super::round::{MANIFEST_TOKEN, Step, failure};
use crate::main_block::block::MainBlock;

impl MainBlock {
    /// Begins to write the manifest of the round. Everything that it names is durable.
    pub(super) fn write_manifest(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(manifest) = self.next_manifest() else { return };
        let Some(round) = &mut self.checkpoints.round else { return };
        let content = encode_slot(MANIFEST_USE, manifest.generation, &manifest.encode());
        if content.len() > WorldRequest::READ_BYTES_MAX as usize {
            round.error = Some(format!("a manifest of {} bytes cannot be read back", content.len()).into());
            return self.abandon_round(now, outbox);
        }
        let content = FileBuffer::from(&content[..]);
        let path = manifest_path(manifest.generation);
        round.manifest = Some(Box::new(manifest));
        round.step = Step::Switch { file: None, content };
        outbox.crash_point(crash_point::CHECKPOINT_SWITCH.before());
        outbox.crash_point(crash_point::PAIR_MANIFEST.before());
        let (mode, lane) = (FileMode::CreateEmpty, FileLane::Control);
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: MANIFEST_TOKEN });
    }

    fn next_manifest(&self) -> Option<Manifest> {
        let checkpoints = &self.checkpoints;
        let round = checkpoints.round.as_ref()?;
        // The schema must include every change up to `begin`, because the log may lose those records.
        require!(
            self.records.under_way().is_none_or(|number| number > round.begin),
            "schema changes up to {} are in the dictionary",
            round.begin
        );
        let dictionary = &self.catalog.dictionary;
        let new_files = round.parts.iter().filter_map(|(ldm, part)| Some((*round.files.get(ldm)?, part.file_bytes)));
        let live = round.parts.iter().flat_map(|(_, part)| part.live_bytes.iter().copied());
        let files = live_files(&checkpoints.manifest.files, new_files, live);
        let partitions = round.parts.iter().flat_map(|(_, part)| part.partitions.iter().copied());
        // A table that is not created yet, or dropped meanwhile, is in no schema.
        let mut partitions: Vec<_> =
            partitions.filter(|(partition, _)| dictionary.table(partition.table).is_some()).collect();
        partitions.sort_unstable_by_key(|(partition, _)| *partition);
        let next_file = round.files.values().max().map_or(1, |file| file + 1);
        let marks: BTreeMap<_, _> = self.counters.iter().map(|(table, counter)| (*table, counter.durable)).collect();
        Some(Manifest {
            generation: round.generation,
            log_id: checkpoints.log_id,
            begin: round.begin,
            newest: round.newest,
            replay_from: round.replay_from,
            schema: DictionaryChange::between(&Dictionary::default(), dictionary, self.next_table),
            marks,
            partitions,
            next_file,
            files,
        })
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
