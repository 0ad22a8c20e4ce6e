//! Takes a backup of a running server.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use junctor_kernel::CrashWatch;
use junctor_model::checkpoint::CheckpointFile;
use junctor_model::id::CommitNumber;
use junctor_model::stored_identity::Identity;
use junctor_model::stored_manifest::Manifest;
use junctor_signals::crash_point;

use crate::BackupError;
use crate::clock::utc_text;
use crate::contents::{self, Contents, Object, StoredBackup, StoredFile, StoredLog};
use crate::crash::{reach, watch_of_environment};
use crate::data_directory::{DataDirectory, Files, FolderFiles, RawGroup};
use crate::object::ObjectWriter;
use crate::progress::Progress;
use crate::server::{LockedServer, ServerOptions};
use crate::store::{BackupStore, part_object};

/// Bytes of a checkpoint's file that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// Maximum length of the name of a backup in bytes.
const NAME_BYTES_MAX: usize = 100;
/// How often, and how many times, a part looks for the next groups of the log.
const LOG_WAIT: Duration = Duration::from_millis(20);
const LOG_WAITS_MAX: u32 = 1500;

/// Options of a backup.
#[derive(Clone, Debug, Args)]
pub struct BackupOptions {
    /// Where backups are kept: a folder, or s3://BUCKET/PREFIX [default: BackupDataDir of the server]
    #[arg(value_name = "STORE")]
    pub store: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "the fields have help texts of their own")]
    pub server: ServerOptions,
    /// Name of the backup [default: the time, such as 20260131-235959]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Copy only what the newest backup in the store lacks
    #[arg(long)]
    pub incremental: bool,
    /// Compression level of zstd, 1 to 19
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19), value_name = "N")]
    pub level: i32,
}

/// The name and the size of a finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// Name of the backup.
    pub name: Box<str>,
    /// Bytes of the data directory that the backup describes.
    pub bytes: u64,
    /// Bytes that it added to the store.
    pub stored_bytes: u64,
}

/// Takes a backup of a running server.
///
/// # Errors
/// The server, the store or a file fails. Nothing counts as a backup then.
pub fn backup(options: &BackupOptions) -> Result<BackupSummary, BackupError> {
    block_on(async {
        let crashes = watch_of_environment()?;
        let mut server = LockedServer::open(&options.server)?;
        let files = FolderFiles(server.data_directory()?);
        let address = match &options.store {
            Some(address) => address.clone(),
            None => server.default_store()?.ok_or_else(|| {
                BackupError::refused("no STORE is given, and the server's configuration has no BackupDataDir")
            })?,
        };
        let store = BackupStore::create(&address)?;
        if server.node_groups()? > 1 {
            let text = "the server has the rows of its node group only; use junctor admin backup";
            return Err(BackupError::refused(text));
        }
        let name = options.name.clone().unwrap_or_else(default_name);
        let kind = CopyKind { incremental: options.incremental, level: options.level };
        let copied = Copier { store: &store, crashes: &crashes }.copy(files, &name, kind).await?;
        server.unlock()?;
        copied.complete(&store, &crashes).await
    })
}

/// What to copy, and how to compress it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyKind {
    /// Whether to copy only what the newest backup in the store lacks.
    pub incremental: bool,
    /// Compression level of zstd, 1 to 19.
    pub level: i32,
}

/// Copies data directories of servers that run and keep their files for a backup.
#[derive(Clone, Copy, Debug)]
pub struct Copier<'a> {
    /// Where the copies go.
    pub store: &'a BackupStore,
    /// The crash points of the copy.
    pub crashes: &'a CrashWatch,
}

/// The objects of a backup. They count as a backup after [`CopiedBackup::complete`].
#[derive(Debug)]
pub struct CopiedBackup {
    contents: Contents,
    summary: BackupSummary,
}

impl Copier<'_> {
    /// Copies the checkpoint and the log. `name` becomes the name of the backup.
    ///
    /// # Errors
    /// The store or a file fails, or there is no backup that the copy can continue.
    pub async fn copy<F: Files>(&self, files: F, name: &str, kind: CopyKind) -> Result<CopiedBackup, BackupError> {
        check_name(name)?;
        let running = BackupInProgress::begin(*self, DataDirectory::new(files), name, kind).await?;
        let (contents, summary, _) = running.run().await?;
        Ok(CopiedBackup { contents, summary })
    }
}

impl CopiedBackup {
    /// Writes the list of contents. The caller knows that the server has kept its files to the end of the
    /// copy.
    ///
    /// # Errors
    /// The store fails.
    pub async fn complete(self, store: &BackupStore, crashes: &CrashWatch) -> Result<BackupSummary, BackupError> {
        reach(crashes, crash_point::BACKUP_LIST.before())?;
        store.put_contents(&self.summary.name, &StoredBackup::Node(self.contents)).await?;
        reach(crashes, crash_point::BACKUP_LIST.after())?;
        Ok(self.summary)
    }
}

/// The backups of a store: name, base, end of the log in UTC, bytes in the store.
///
/// # Errors
/// The store fails, or a list of contents is damaged.
pub fn list(address: &str) -> Result<Vec<[String; 4]>, BackupError> {
    block_on(async {
        let store = BackupStore::open(address)?;
        let mut lines = Vec::new();
        for name in store.backups().await? {
            let stored = store.stored(&name).await?;
            let base = match &stored {
                StoredBackup::Node(contents) => contents.base.as_deref().unwrap_or("-"),
                StoredBackup::Cluster(_) => "-",
            };
            let bytes: u64 = stored.nodes().map(|contents| contents.stored_bytes(&name)).sum();
            lines.push([name.clone().into(), base.into(), utc_text(stored.wall_clock_us()), bytes.to_string()]);
        }
        Ok(lines)
    })
}

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = Result<T, BackupError>>) -> Result<T, BackupError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| BackupError::refused(format!("cannot start the runtime of the store: {error}")))?
        .block_on(future)
}

/// Refuses names that are no name of a folder.
pub fn check_name(name: &str) -> Result<(), BackupError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(is_letter) {
        let text = "a backup's name consists of letters, digits, '-', '_' and '.'";
        return Err(BackupError::refused(text));
    }
    Ok(())
}

/// A backup that is being taken.
pub(crate) struct BackupInProgress<'a, F> {
    store: &'a BackupStore,
    crashes: &'a CrashWatch,
    directory: DataDirectory<F>,
    identity: Identity,
    name: Box<str>,
    level: i32,
    base: Option<(Box<str>, Contents)>,
    /// As a part of the backup of a cluster.
    pub(crate) part: Option<PartInProgress<'a>>,
}

/// The state of a node's part that a backup of a node alone does not need.
pub(crate) struct PartInProgress<'a> {
    /// The node.
    pub node: u8,
    /// The last commit that the copy of the log must include.
    pub until: CommitNumber,
    /// Told of progress.
    pub watch: &'a dyn CopyWatch,
}

/// Watches a copy.
pub trait CopyWatch {
    /// The copy has read `copied` bytes of `total`, and `stored` bytes are in the store.
    fn note(&self, copied: u64, total: u64, stored: u64);

    /// Whether the copy is of no use any more.
    fn has_ended(&self) -> bool;
}

impl<'a, F: Files> BackupInProgress<'a, F> {
    pub(crate) async fn begin(
        Copier { store, crashes }: Copier<'a>,
        directory: DataDirectory<F>,
        name: &str,
        CopyKind { incremental, level }: CopyKind,
    ) -> Result<BackupInProgress<'a, F>, BackupError> {
        let identity = directory.identity().await?;
        if store.has_objects(name, "").await? {
            return Err(BackupError::refused(format!("the store has objects of a backup '{name}' already")));
        }
        let mut base = None;
        if incremental {
            base = newest_of_log(store, identity.log_id).await?;
            if base.is_none() {
                return Err(BackupError::refused("the store has no backup of this server that could be the base"));
            }
        }
        let (name, part) = (name.into(), None);
        Ok(BackupInProgress { store, crashes, directory, identity, name, level, base, part })
    }

    /// The part of a node in a backup of its cluster, which copies nothing yet.
    pub(crate) async fn begin_part(
        Copier { store, crashes }: Copier<'a>,
        directory: DataDirectory<F>,
        name: &str,
        (node, level, watch): (u8, i32, &'a dyn CopyWatch),
    ) -> Result<BackupInProgress<'a, F>, BackupError> {
        let identity = directory.identity().await?;
        if store.has_objects(name, &part_object(node, "")).await? {
            return Err(BackupError::refused(format!("the store has objects of a backup '{name}' already")));
        }
        let part = Some(PartInProgress { node, until: CommitNumber(0), watch });
        Ok(BackupInProgress { store, crashes, directory, identity, name: name.into(), level, base: None, part })
    }

    /// The newest commit of the newest checkpoint; 0 without one.
    pub(crate) async fn newest(&self) -> Result<CommitNumber, BackupError> {
        let Some(slot) = self.directory.manifest().await? else { return Ok(CommitNumber(0)) };
        Ok(decode_manifest(&slot.content)?.newest)
    }

    /// The name of an object.
    fn object(&self, name: &str) -> String {
        self.part.as_ref().map_or_else(|| name.to_owned(), |part| part_object(part.node, name))
    }

    /// Copies everything. Returns also the last commit that the copy includes.
    pub(crate) async fn run(self) -> Result<(Contents, BackupSummary, CommitNumber), BackupError> {
        let slot = self.directory.manifest().await?;
        let manifest = slot.as_ref().map(|slot| decode_manifest(&slot.content)).transpose()?;
        let mut stored_manifest = None;
        if let Some(slot) = &slot {
            let object = self.put("manifest.zst", &slot.content).await?;
            stored_manifest = Some(contents::Manifest { generation: slot.generation, object });
        }
        let settings = match self.directory.settings().await? {
            Some(slot) => Some(self.put("settings.zst", &slot.content).await?),
            None => None,
        };
        let files = self.copy_files(manifest.as_ref()).await?;
        let (log, last) = self.copy_log(manifest.as_ref()).await?;
        let contents = Contents {
            format: Contents::version(),
            base: self.base.map(|(name, _)| name),
            log_id: self.identity.log_id,
            segment_bytes: self.identity.segment_bytes,
            manifest: stored_manifest,
            settings,
            files,
            log,
        };
        let summary =
            BackupSummary { bytes: contents.bytes(), stored_bytes: contents.stored_bytes(&self.name), name: self.name };
        Ok((contents, summary, last))
    }

    /// Tells the watch of a part how far it is. Fails if the part has ended.
    fn note(&self, copied: u64, total: u64, stored: u64) -> Result<(), BackupError> {
        let Some(part) = &self.part else { return Ok(()) };
        part.watch.note(copied, total, stored);
        match part.watch.has_ended() {
            true => Err(BackupError::refused("nobody waits for the copy any more")),
            false => Ok(()),
        }
    }

    async fn put(&self, name: &str, content: &[u8]) -> Result<Object, BackupError> {
        let mut object = ObjectWriter::create(self.store, &self.name, &self.object(name), self.level).await?;
        object.write(content).await?;
        object.finish().await
    }

    /// Copies the files of the checkpoint that the base lacks.
    async fn copy_files(&self, manifest: Option<&Manifest>) -> Result<Vec<StoredFile>, BackupError> {
        let files = manifest.map(|manifest| &manifest.files[..]).unwrap_or_default();
        let known: BTreeMap<u32, &StoredFile> = match &self.base {
            Some((_, contents)) => contents.files.iter().map(|file| (file.number, file)).collect(),
            None => BTreeMap::new(),
        };
        let missing = files.iter().filter(|file| !known.contains_key(&file.number));
        let total = missing.map(|file| file.bytes).sum();
        let progress = self.part.is_none().then(|| Progress::new("checkpoint", total));
        let (mut copied, mut stored_bytes) = (0, 0);
        let mut stored = Vec::new();
        for file in files {
            if let Some(known) = known.get(&file.number)
                && self.is_same(file, known).await?
            {
                stored.push((*known).clone());
                continue;
            }
            let name = format!("checkpoint/{}.data.zst", file.number);
            let mut object = ObjectWriter::create(self.store, &self.name, &self.object(&name), self.level).await?;
            let mut offset = 0;
            while offset < file.bytes {
                reach(self.crashes, crash_point::BACKUP_FRAME.before())?;
                let length = READ_BYTES.min((file.bytes - offset) as usize);
                let bytes = self.directory.read_checkpoint(file.number, offset, length).await?;
                if bytes.is_empty() {
                    let text = format!("checkpoint file {} has {offset} of its {} bytes", file.number, file.bytes);
                    return Err(BackupError::refused(text));
                }
                object.write(&bytes).await?;
                reach(self.crashes, crash_point::BACKUP_FRAME.after())?;
                offset += bytes.len() as u64;
                copied += bytes.len() as u64;
                self.note(copied, total, stored_bytes)?;
                if let Some(progress) = &progress {
                    progress.add(bytes.len() as u64);
                }
            }
            let object = object.finish().await?;
            stored_bytes += object.stored_bytes;
            stored.push(StoredFile { number: file.number, backup: self.name.clone(), object });
        }
        if let Some(progress) = &progress {
            progress.finish();
        }
        Ok(stored)
    }

    /// Whether a file of the checkpoint has the content that the base stored under its number. A loss of
    /// power may take a manifest that the base copied before it was synced. The numbers of its files are then
    /// used again.
    async fn is_same(&self, file: &CheckpointFile, known: &StoredFile) -> Result<bool, BackupError> {
        if known.object.bytes != file.bytes {
            return Ok(false);
        }
        let (mut offset, mut checksum) = (0, 0);
        while offset < file.bytes {
            let length = READ_BYTES.min((file.bytes - offset) as usize);
            let bytes = self.directory.read_checkpoint(file.number, offset, length).await?;
            if bytes.is_empty() {
                return Ok(false);
            }
            checksum = crc32c::crc32c_append(checksum, &bytes);
            offset += bytes.len() as u64;
        }
        Ok(checksum == known.object.checksum)
    }

    /// Copies the log to its current end. The copy begins at the end of the base, so that a restore can reach
    /// every moment since then. It begins at `replay_from` if the server has trimmed the log after the base,
    /// or lost groups that the base has.
    async fn copy_log(&self, manifest: Option<&Manifest>) -> Result<(StoredLog, CommitNumber), BackupError> {
        let (replay_from, newest) =
            manifest.map_or((0, CommitNumber(0)), |manifest| (manifest.replay_from, manifest.newest));
        let base = self.base.as_ref().map(|(_, contents)| &contents.log);
        let mut copied = None;
        if let Some(base) = base {
            copied = self.copy_groups(base.end, replay_from, Some(base)).await?;
        }
        // The segments at the end of the base may be reused, also while they are read.
        let (log, stable) = match copied {
            Some((log, stable)) if log.end > replay_from => (log, stable),
            _ => match self.copy_groups(replay_from, replay_from, None).await? {
                Some((log, stable)) if log.end > replay_from => (log, stable),
                _ => return Err(BackupError::refused(format!("the log has no group at position {replay_from}"))),
            },
        };
        if stable < newest {
            let text = format!("the log ends at commit {stable}, but the checkpoint contains commit {newest}");
            return Err(BackupError::refused(text));
        }
        Ok((log, stable))
    }

    /// Copies the groups from a position on. Returns them with the stable number of the last group. `None` if
    /// the log does not continue the base.
    ///
    /// A loss of power may take groups that the base copied before they were synced. The server then writes
    /// other groups at their positions, which may end before the base does. So the groups from `replay_from`
    /// to the end of the base must be those that the base has.
    async fn copy_groups(
        &self,
        first: u64,
        replay_from: u64,
        base: Option<&StoredLog>,
    ) -> Result<Option<(StoredLog, CommitNumber)>, BackupError> {
        let begin = first.min(replay_from);
        let mut reader = self.directory.log(&self.identity, begin)?;
        let mut log = StoredLog { first, end: begin, replay_from, ..StoredLog::default() };
        let mut stable = CommitNumber(0);
        let mut group = reader.next_group().await?;
        while log.end < first
            && let Some(found) = group
        {
            stable = log.add(&found, reader.position());
            group = reader.next_group().await?;
        }
        let previous = group.as_ref().map_or(log.last_checksum, |group| group.header.previous_checksum);
        if log.end != first || base.is_some_and(|base| base.last_checksum != previous) {
            return Ok(None);
        }
        let mut object = ObjectWriter::create(self.store, &self.name, &self.object("log.zst"), self.level).await?;
        let until = self.part.as_ref().map_or(CommitNumber(0), |part| part.until);
        let mut waits_left = LOG_WAITS_MAX;
        loop {
            while let Some(found) = group {
                reach(self.crashes, crash_point::BACKUP_LOG.before())?;
                object.write(&found.bytes).await?;
                reach(self.crashes, crash_point::BACKUP_LOG.after())?;
                stable = log.add(&found, reader.position());
                group = reader.next_group().await?;
            }
            if stable >= until {
                break;
            }
            if waits_left == 0 {
                let text = format!("the log ends at commit {stable}, and does not reach commit {until}");
                return Err(BackupError::refused(text));
            }
            // The node writes the number with its next group, or when its log is idle.
            waits_left -= 1;
            if let Some(part) = self.part.as_ref().filter(|part| part.watch.has_ended()) {
                return Err(BackupError::refused(format!("nobody waits for the copy of node {}", part.node)));
            }
            tokio::time::sleep(LOG_WAIT).await;
            group = reader.next_group().await?;
        }
        log.object = object.finish().await?;
        Ok(Some((log, stable)))
    }
}

fn decode_manifest(content: &[u8]) -> Result<Manifest, BackupError> {
    Manifest::decode(content).map_err(|error| BackupError::refused(error.to_string()))
}

impl Contents {
    /// Bytes of the data directory that the list describes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.object.bytes).sum::<u64>() + self.log.object.bytes
    }

    /// Bytes that the backup of this name has added to the store.
    pub fn stored_bytes(&self, name: &str) -> u64 {
        let own = self.files.iter().filter(|file| &*file.backup == name).map(|file| file.object.stored_bytes);
        own.sum::<u64>() + self.log.object.stored_bytes
    }
}

impl StoredLog {
    /// Adds a group, which ends at this position. Returns its stable number.
    fn add(&mut self, group: &RawGroup, end: u64) -> CommitNumber {
        self.end = end;
        self.last_checksum = group.checksum;
        self.wall_clock_us = group.header.wall_clock_us;
        group.header.stable
    }
}

/// The newest backup of this log: the one whose log ends last.
async fn newest_of_log(store: &BackupStore, log_id: u64) -> Result<Option<(Box<str>, Contents)>, BackupError> {
    let mut newest: Option<(Box<str>, Contents)> = None;
    for name in store.backups().await? {
        let StoredBackup::Node(contents) = store.stored(&name).await? else { continue };
        let is_newer = newest.as_ref().is_none_or(|(_, found)| contents.log.end >= found.log.end);
        if contents.log_id == log_id && is_newer {
            newest = Some((name, contents));
        }
    }
    Ok(newest)
}

#[expect(clippy::disallowed_methods, reason = "a tool, not a block, names a file by the time")]
pub(crate) fn default_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_text(now.as_micros() as u64).replace(['-', ':'], "").replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;
    use std::rc::Rc;

    use junctor_model::id::TransactionId;
    use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, IDENTITY_USE};
    use junctor_storage::log::{
        BLOCK_BYTES, GroupHeader, GroupKind, LOG_FOLDER, Piece, RecordBuffer, RecordHeader, RecordKind, StreamId,
        encode_group, encode_slot, group_blocks, segment_path,
    };

    use super::*;
    use crate::restore::restore_newest;

    const SEGMENT_BYTES: u64 = 1 << 20;
    /// The first commit number of the second life.
    const SECOND_LIFE: u64 = 1 << 32;

    /// A data directory with a log of one segment.
    #[derive(Clone, Debug)]
    struct Folder(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

    impl Files for Folder {
        async fn read(&self, path: &str, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
            let files = self.0.borrow();
            let file = files.get(path).ok_or(std::io::ErrorKind::NotFound)?;
            let start = file.len().min(offset as usize);
            Ok(file[start..file.len().min(start + length)].to_vec())
        }

        fn folder(&self) -> &Path {
            Path::new("data")
        }
    }

    impl Folder {
        fn new() -> Folder {
            let identity = Identity { format: DIRECTORY_FORMAT_VERSION, log_id: 5, segment_bytes: SEGMENT_BYTES };
            let files = [
                ("identity.1".into(), encode_slot(IDENTITY_USE, 1, &identity.encode())),
                (segment_path(LOG_FOLDER, 0).into(), vec![0; SEGMENT_BYTES as usize]),
            ];
            Folder(Rc::new(RefCell::new(files.into())))
        }

        /// Changes the blocks from a position on.
        fn change(&self, position: u64, change: impl FnOnce(&mut [u8])) {
            let mut files = self.0.borrow_mut();
            let segment = files.get_mut(&*segment_path(LOG_FOLDER, 0)).expect("the segment");
            change(&mut segment[position as usize * BLOCK_BYTES..]);
        }
    }

    /// The end of the log.
    #[derive(Clone)]
    struct Log {
        folder: Folder,
        position: u64,
        checksum: u32,
        incarnation: u32,
    }

    impl Log {
        /// The first life of a server.
        fn started() -> Log {
            let mut log = Log { folder: Folder::new(), position: 0, checksum: 0, incarnation: 1 };
            log.write(GroupKind::Start, 0, &[]);
            log
        }

        /// The server's second life after a loss of power, which took the groups after this position.
        fn restarted(mut self) -> Log {
            self.incarnation += 1;
            self.write(GroupKind::Start, SECOND_LIFE, &[]);
            self
        }

        /// Writes a group with one commit of this size.
        fn commit(&mut self, number: u64, size: usize) {
            let mut buffer = RecordBuffer::new();
            let (kind, transaction) = (RecordKind::Dictionary, TransactionId(0));
            let number = CommitNumber(number);
            buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
            buffer.append_body(&vec![7; size]);
            buffer.end();
            self.write(GroupKind::Data, number.0, &buffer.take(Vec::new()));
        }

        fn write(&mut self, kind: GroupKind, number: u64, bytes: &[u8]) {
            let piece = (!bytes.is_empty()).then_some(Piece { stream: StreamId(0), first_record: Some(0), bytes });
            let blocks = group_blocks(usize::from(piece.is_some()), bytes.len());
            let header = GroupHeader {
                kind,
                position: self.position,
                log_id: 5,
                life: u64::from(self.incarnation) * 11,
                incarnation: self.incarnation,
                previous_checksum: self.checksum,
                stable: CommitNumber(number),
                taken: CommitNumber(number),
                ceiling: CommitNumber(1 << 40),
                synced: 0,
                previous_cut: CommitNumber(u64::from(kind == GroupKind::Start)),
                wall_clock_us: 1_700_000_000_000_000 + number * 1_000_000,
            };
            let mut group = vec![0; blocks as usize * BLOCK_BYTES];
            self.checksum = encode_group(&header, piece.into_iter(), &mut group);
            self.folder.change(self.position, |target| target[..group.len()].copy_from_slice(&group));
            self.position += blocks;
        }

        /// Takes a backup. Returns its log.
        async fn back_up(&self, store: &BackupStore, name: &str, incremental: bool) -> Result<StoredLog, BackupError> {
            let crashes = CrashWatch::default();
            let kind = CopyKind { incremental, level: 1 };
            let copied = Copier { store, crashes: &crashes }.copy(self.folder.clone(), name, kind).await?;
            copied.complete(store, &crashes).await?;
            Ok(store.contents(name).await?.log)
        }
    }

    /// Restores the newest backup. Returns its last commit.
    async fn restored(store: &BackupStore, name: &str) -> Result<CommitNumber, BackupError> {
        let target = std::env::temp_dir().join(format!("junctor-take-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&target).expect("a folder");
        let restored = restore_newest(store, &target, 9).await;
        std::fs::remove_dir_all(&target).expect("the folder can be removed");
        Ok(restored?.last_commit)
    }

    #[test]
    fn an_increment_has_only_the_groups_after_its_base() {
        block_on(async {
            let store = BackupStore::in_memory();
            let mut log = Log::started();
            log.commit(1, 100);
            let base = log.back_up(&store, "base", false).await?;
            let idle = log.back_up(&store, "idle", true).await?;
            assert_eq!((idle.first, idle.end, idle.object.bytes), (base.end, base.end, 0));
            assert_eq!((idle.last_checksum, idle.wall_clock_us), (base.last_checksum, base.wall_clock_us));
            log.commit(2, 100);
            let increment = log.back_up(&store, "increment", true).await?;
            assert_eq!((increment.first, increment.end), (base.end, log.position));
            assert_eq!(restored(&store, "after-base").await?, CommitNumber(2));
            Ok(())
        })
        .expect("the backups succeed");
    }

    /// A loss of power takes a group that the base has. The groups of the next life end before the base does,
    /// go beyond its end, or end there. A group of the first life may follow the lost one.
    #[test]
    fn an_increment_after_a_lost_group_of_its_base_has_the_commits_since() {
        let lost_bytes = 100_000;
        let lost_blocks = group_blocks(1, lost_bytes);
        for (name, size, is_stale_kept) in
            [("before", 20_000, false), ("stale", 20_000, true), ("beyond", 200_000, false), ("beyond", 200_000, true)]
        {
            block_on(async {
                let store = BackupStore::in_memory();
                let mut log = Log::started();
                log.commit(1, 100);
                let mut lost = log.clone();
                lost.commit(2, lost_bytes);
                lost.back_up(&store, "base", false).await?;
                lost.commit(3, 100);
                let erased = if is_stale_kept { lost_blocks as usize * BLOCK_BYTES } else { 500_000 };
                log.folder.change(log.position, |blocks| blocks[..erased].fill(0));
                let mut log = log.restarted();
                log.commit(SECOND_LIFE + 1, size);
                log.back_up(&store, "increment", true).await?;
                assert_eq!(restored(&store, name).await?, CommitNumber(SECOND_LIFE + 1), "{name}");
                log.commit(SECOND_LIFE + 2, size);
                log.back_up(&store, "next", true).await?;
                assert_eq!(restored(&store, name).await?, CommitNumber(SECOND_LIFE + 2), "{name}");
                Ok(())
            })
            .expect("the backups succeed");
        }
    }
}
