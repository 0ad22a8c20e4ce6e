//! SET PERSIST and RESET PERSIST: the values that global variables get at the next start, in the pair file
//! `settings`.
//!
//! Main writes one generation at a time, and then sends the new values to every sql block. A write that fails
//! changes nothing while the node runs. Its slot is written again with the next change, and the other slot
//! keeps the old values. If the node stops before the next change, the failed write may be whole on disk, and
//! the next start then uses its values: the outcome of a SET PERSIST that failed with a disk error is
//! unknown.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{
    Context, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest,
};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::stored_settings::{PersistedSettings, SETTINGS_USE};
use junctor_signals::recover_log::{RELEASE_ADVICE, advice_about};
use junctor_signals::set_globals::{ApplyGlobals, RestoreGlobals, SetGlobals, SetGlobalsReply};
use junctor_signals::{Signal, SqlSignal, crash_point};
use junctor_storage::log::{PairSlot, decode_slot, encode_slot, newest_slot};

use super::block::MainBlock;

/// The token of every request about the pair.
pub(super) const SETTINGS_FILE: u64 = 1 << 32;

/// The persisted settings, and the work on their files.
#[derive(Debug, Default)]
pub(super) struct SettingsFile {
    persisted: Arc<PersistedSettings>,
    /// Generation of the newest content on disk; 0 without one.
    generation: u64,
    /// Requests that wait for the write under way.
    waiting: VecDeque<SetGlobals>,
    step: Step,
}

/// The event that main awaits.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Nothing,
    /// One of the two files, at the start of the node. `first` is the content of file 0, `bytes` that of this
    /// file once it has been read.
    Read { slot: u8, file: Option<FileId>, first: Option<PairSlot>, bytes: FileBuffer },
    /// The sync of the newest slot, at the start of the node.
    Resync { content: FileBuffer },
    /// The sql blocks, at the start of the node.
    Restore { outstanding: usize },
    /// The write of a slot, or the sync of the folder.
    Write(Box<Write>),
}

/// The write of one generation.
#[derive(Debug)]
struct Write {
    request: SetGlobals,
    /// The settings after the write.
    settings: PersistedSettings,
    content: FileBuffer,
    error: Option<FileError>,
    /// Whether the file is closed, and the sync of its folder is under way.
    is_closed: bool,
}

impl MainBlock {
    /// Reads the persisted settings at the start of a node with a log. Afterwards, clients are admitted.
    pub(super) fn read_settings(&mut self, outbox: &mut Outbox<Signal>) {
        self.settings.step = Step::Read { slot: 0, file: None, first: None, bytes: FileBuffer::new() };
        open(0, FileMode::Read, outbox);
    }

    pub(super) fn on_set_globals(&mut self, request: SetGlobals, outbox: &mut Outbox<Signal>) {
        if request.persisted.is_empty() {
            return self.apply_globals(request, None, outbox);
        }
        if self.configuration.log.is_none() && self.member.is_some() {
            return reply_error(&request, Error::not_supported("SET PERSIST on a node without data"), outbox);
        }
        if self.configuration.log.is_none() {
            let text = "The MySQL server is running with the --in-memory option so it cannot execute this statement";
            return reply_error(&request, Error::new(ErrorCode::OptionPreventsStatement, text), outbox);
        }
        self.settings.waiting.push_back(request);
        self.write_next_settings(outbox);
    }

    /// Sends new values to every sql block, in the same order to all of them.
    fn apply_globals(
        &self,
        request: SetGlobals,
        persisted: Option<Arc<PersistedSettings>>,
        outbox: &mut Outbox<Signal>,
    ) {
        let SetGlobals { operation, reply_to, values, .. } = request;
        for to in &self.sql_blocks {
            let (values, persisted) = (Arc::clone(&values), persisted.clone());
            let signal = ApplyGlobals { operation, reply_to, values, persisted };
            outbox.send(*to, Signal::Sql(SqlSignal::ApplyGlobals(signal)));
        }
    }

    fn write_next_settings(&mut self, outbox: &mut Outbox<Signal>) {
        let settings_file = &mut self.settings;
        if !matches!(settings_file.step, Step::Nothing) {
            return;
        }
        let Some(request) = settings_file.waiting.pop_front() else { return };
        let mut settings = PersistedSettings::clone(&settings_file.persisted);
        for (name, value) in &request.persisted {
            match value {
                Some(value) => _ = settings.values.insert(name.clone(), value.clone()),
                None => _ = settings.values.remove(name),
            }
        }
        outbox.crash_point(crash_point::PAIR_SETTINGS.before());
        let generation = settings_file.generation + 1;
        let content = FileBuffer::from(&encode_slot(SETTINGS_USE, generation, &settings.encode())[..]);
        settings_file.step = Step::Write(Box::new(Write { request, settings, content, error: None, is_closed: false }));
        open((generation % 2) as u8, FileMode::CreateEmpty, outbox);
    }

    pub(super) fn on_settings_file(&mut self, result: FileResult, bytes: FileBuffer, outbox: &mut Outbox<Signal>) {
        match &mut self.settings.step {
            Step::Nothing | Step::Restore { .. } => {}
            Step::Read { slot, file, bytes: content, .. } => match result {
                Ok(FileOutcome::Opened { file: opened, length, .. }) => {
                    *file = Some(opened);
                    let length = length.min(u64::from(WorldRequest::READ_BYTES_MAX)) as u32;
                    let bytes = FileBuffer::with_capacity(length as usize);
                    outbox.request(WorldRequest::ReadFile {
                        file: opened,
                        offset: 0,
                        length,
                        bytes,
                        token: SETTINGS_FILE,
                    });
                }
                Ok(FileOutcome::Read { .. }) => {
                    *content = bytes;
                    if let Some(file) = file.take() {
                        outbox.request(WorldRequest::CloseFile { file, token: SETTINGS_FILE });
                    }
                }
                // All answers have the same token. A late one would be taken for one of the next step.
                Ok(FileOutcome::Closed) => {
                    let content = std::mem::take(content);
                    self.take_settings(&content, outbox);
                }
                Err(FileError::NotFound) => self.take_settings(&[], outbox),
                Ok(_) => {}
                Err(error) => {
                    let text = format!("cannot read settings.{slot}: {error}; {}", advice_about(error));
                    halt(&text, outbox);
                }
            },
            Step::Resync { content } => match result {
                Ok(FileOutcome::Opened { file, length, .. }) => {
                    let mut content = std::mem::take(content);
                    // A crash may have left one whole copy. On a full device, the file cannot grow to two.
                    content.truncate(length as usize);
                    write_slot(file, content, outbox);
                }
                Ok(FileOutcome::Closed) => sync_folder(outbox),
                Ok(FileOutcome::FolderSynced) => {
                    outbox.crash_point(crash_point::RECOVERY_RESYNC.after());
                    self.restore_settings(outbox);
                }
                Ok(_) => {}
                Err(error) => halt(&format!("cannot sync the settings: {error}"), outbox),
            },
            Step::Write(write) => match result {
                Ok(FileOutcome::Opened { file, .. }) => {
                    write_slot(file, std::mem::take(&mut write.content), outbox);
                }
                Ok(FileOutcome::Closed) if write.error.is_none() => {
                    write.is_closed = true;
                    sync_folder(outbox);
                }
                Ok(FileOutcome::Closed) => self.end_settings_write(None, outbox),
                Ok(FileOutcome::FolderSynced) => {
                    outbox.crash_point(crash_point::PAIR_SETTINGS.after());
                    self.end_settings_write(None, outbox);
                }
                Ok(_) => {}
                Err(error) if write.is_closed => self.end_settings_write(Some(error), outbox),
                // The file is open. It is closed after its requests, whatever their outcome.
                Err(error) if write.content.is_empty() && write.error.is_none() => write.error = Some(error),
                Err(_) if write.content.is_empty() => {}
                Err(error) => self.end_settings_write(Some(error), outbox),
            },
        }
    }

    /// Takes the content of a file of the pair; empty if the file does not exist.
    fn take_settings(&mut self, bytes: &[u8], outbox: &mut Outbox<Signal>) {
        let Step::Read { slot, first, .. } = &mut self.settings.step else { return };
        let read = match decode_slot(SETTINGS_USE, bytes) {
            Ok(read) => read,
            Err(error) => {
                let text = format!("settings.{slot}: {error}; {RELEASE_ADVICE}");
                return halt(&text, outbox);
            }
        };
        if *slot == 0 {
            (*slot, *first) = (1, read);
            return open(1, FileMode::Read, outbox);
        }
        if let Some(newest) = newest_slot(first.take(), read) {
            match PersistedSettings::decode(&newest.content) {
                Ok(settings) => self.settings.persisted = Arc::new(settings),
                Err(error) => return halt(&format!("{error}; {RELEASE_ADVICE}"), outbox),
            }
            self.settings.generation = newest.generation;
            // The slot may be in the operating system's cache only. The next write will overwrite the slot
            // before it, so without this sync a loss of power could take both.
            outbox.crash_point(crash_point::RECOVERY_RESYNC.before());
            let content = FileBuffer::from(&encode_slot(SETTINGS_USE, newest.generation, &newest.content)[..]);
            self.settings.step = Step::Resync { content };
            return open((newest.generation % 2) as u8, FileMode::ReadWrite, outbox);
        }
        self.restore_settings(outbox);
    }

    fn restore_settings(&mut self, outbox: &mut Outbox<Signal>) {
        let (own, persisted) = (self.own, Arc::clone(&self.settings.persisted));
        self.settings.step = Step::Restore { outstanding: self.sql_blocks.len() };
        for to in &self.sql_blocks {
            let signal = RestoreGlobals { reply_to: own, persisted: Arc::clone(&persisted) };
            outbox.send(*to, Signal::Sql(SqlSignal::RestoreGlobals(signal)));
        }
    }

    pub(super) fn on_restore_globals_reply(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Step::Restore { outstanding } = &mut self.settings.step else { return };
        *outstanding -= 1;
        if *outstanding == 0 {
            self.settings.step = Step::Nothing;
            self.note_recovered(context.turn_start, outbox);
            self.store_first_accounts(context, outbox);
        }
    }

    /// Ends a write of the file. Without an error, the settings are on disk.
    fn end_settings_write(&mut self, open_error: Option<FileError>, outbox: &mut Outbox<Signal>) {
        let Step::Write(write) = std::mem::take(&mut self.settings.step) else { return };
        let Write { request, settings, error, .. } = *write;
        match error.or(open_error) {
            None => {
                self.settings.generation += 1;
                self.settings.persisted = Arc::new(settings);
                let persisted = Arc::clone(&self.settings.persisted);
                self.apply_globals(request, Some(persisted), outbox);
            }
            Some(FileError::DiskFull) => {
                let text = "Disk full (settings); waiting for someone to free some space... (errno: 28 - No space left on device)";
                reply_error(&request, Error::new(ErrorCode::DiskFull, text), outbox);
            }
            Some(error) => {
                let text = format!("Error writing file 'settings' ({error})");
                reply_error(&request, Error::new(ErrorCode::WriteFailed, text), outbox);
            }
        }
        self.write_next_settings(outbox);
    }
}

fn open(slot: u8, mode: FileMode, outbox: &mut Outbox<Signal>) {
    let (path, lane) = (format!("settings.{slot}").into(), FileLane::Control);
    outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: SETTINGS_FILE });
}

fn write_slot(file: FileId, bytes: FileBuffer, outbox: &mut Outbox<Signal>) {
    let token = SETTINGS_FILE;
    outbox.request(WorldRequest::WriteFile { file, offset: 0, bytes, token });
    outbox.request(WorldRequest::SyncFile { file, token });
    outbox.request(WorldRequest::CloseFile { file, token });
}

fn sync_folder(outbox: &mut Outbox<Signal>) {
    let (path, lane) = (".".into(), FileLane::Control);
    outbox.request(WorldRequest::SyncFolder { path, lane, token: SETTINGS_FILE });
}

fn reply_error(request: &SetGlobals, error: Box<Error>, outbox: &mut Outbox<Signal>) {
    let reply = SetGlobalsReply { operation: request.operation, error };
    outbox.send(request.reply_to, Signal::Sql(SqlSignal::SetGlobalsReply(reply)));
}

/// Stops the node at its start, because settings other than the user's might do harm.
fn halt(message: &str, outbox: &mut Outbox<Signal>) {
    outbox.request(WorldRequest::Halt { message: format!("recovery failed: {message}").into() });
}
