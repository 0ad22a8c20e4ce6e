//! Takes a backup of a running server.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use junctor_kernel::CrashWatch;
use junctor_model::checkpoint::CheckpointFile;
use junctor_model::id::CommitNumber;
use junctor_model::stored_identity::Identity;
use junctor_model::stored_manifest::Manifest;
use junctor_signals::crash_point;

use crate::BackupError;
use crate::clock::utc_text;
use crate::contents::{self, Contents, Object, StoredFile, StoredLog};
use crate::crash::{reach, watch_of_environment};
use crate::data_directory::{DataDirectory, Files, FolderFiles};
use crate::object::ObjectWriter;
use crate::progress::Progress;
use crate::server::{LockedServer, ServerOptions};
use crate::store::BackupStore;

/// Bytes of a checkpoint's file that are read at a time.
const READ_BYTES: usize = 1 << 20;

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
        let running = BackupInProgress::begin(*self, DataDirectory::new(files), name, kind).await?;
        let (contents, summary) = running.run().await?;
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
        store.put_contents(&self.summary.name, &self.contents).await?;
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
            let contents = store.contents(&name).await?;
            let base = contents.base.as_deref().unwrap_or("-").to_owned();
            let own = contents.files.iter().filter(|file| file.backup == name).map(|file| file.object.stored_bytes);
            let bytes = own.sum::<u64>() + contents.log.object.stored_bytes;
            lines.push([name.into(), base, utc_text(contents.log.wall_clock_us), bytes.to_string()]);
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

/// A backup that is being taken.
struct BackupInProgress<'a, F> {
    store: &'a BackupStore,
    crashes: &'a CrashWatch,
    directory: DataDirectory<F>,
    identity: Identity,
    name: Box<str>,
    level: i32,
    base: Option<(Box<str>, Contents)>,
}

impl<'a, F: Files> BackupInProgress<'a, F> {
    async fn begin(
        Copier { store, crashes }: Copier<'a>,
        directory: DataDirectory<F>,
        name: &str,
        CopyKind { incremental, level }: CopyKind,
    ) -> Result<BackupInProgress<'a, F>, BackupError> {
        let identity = directory.identity().await?;
        if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter)) {
            return Err(BackupError::refused("a backup's name consists of letters, digits, '-', '_' and '.'"));
        }
        if store.has_objects(name).await? {
            return Err(BackupError::refused(format!("the store has objects of a backup '{name}' already")));
        }
        let mut base = None;
        if incremental {
            base = newest_of_log(store, identity.log_id).await?;
            if base.is_none() {
                return Err(BackupError::refused("the store has no backup of this server that could be the base"));
            }
        }
        Ok(BackupInProgress { store, crashes, directory, identity, name: name.into(), level, base })
    }

    async fn run(self) -> Result<(Contents, BackupSummary), BackupError> {
        let slot = self.directory.manifest().await?;
        let decode =
            |content: &[u8]| Manifest::decode(content).map_err(|error| BackupError::refused(error.to_string()));
        let manifest = slot.as_ref().map(|slot| decode(&slot.content)).transpose()?;
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
        let log = self.copy_log(manifest.as_ref()).await?;
        let own = files.iter().filter(|file| file.backup == self.name).map(|file| file.object.stored_bytes);
        let summary = BackupSummary {
            name: self.name.clone(),
            bytes: files.iter().map(|file| file.object.bytes).sum::<u64>() + log.object.bytes,
            stored_bytes: own.sum::<u64>() + log.object.stored_bytes,
        };
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
        Ok((contents, summary))
    }

    async fn put(&self, name: &str, content: &[u8]) -> Result<Object, BackupError> {
        let mut object = ObjectWriter::create(self.store, &self.name, name, self.level).await?;
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
        let progress = Progress::new("checkpoint", missing.map(|file| file.bytes).sum());
        let mut stored = Vec::new();
        for file in files {
            if let Some(known) = known.get(&file.number)
                && self.is_same(file, known).await?
            {
                stored.push((*known).clone());
                continue;
            }
            let name = format!("checkpoint/{}.data.zst", file.number);
            let mut object = ObjectWriter::create(self.store, &self.name, &name, self.level).await?;
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
                progress.add(bytes.len() as u64);
            }
            let object = object.finish().await?;
            stored.push(StoredFile { number: file.number, backup: self.name.clone(), object });
        }
        progress.finish();
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
    /// every moment since then. If the server has already trimmed that part of the log, the copy begins at
    /// `replay_from`.
    async fn copy_log(&self, manifest: Option<&Manifest>) -> Result<StoredLog, BackupError> {
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
        if let Some(stable) = stable.filter(|stable| *stable < newest) {
            let text = format!("the log ends at commit {stable}, but the checkpoint contains commit {newest}");
            return Err(BackupError::refused(text));
        }
        Ok(log)
    }

    /// Copies the groups from a position on. Returns them with the stable number of the last one, if the log
    /// has any. `None` if the first group does not follow the base.
    async fn copy_groups(
        &self,
        first: u64,
        replay_from: u64,
        base: Option<&StoredLog>,
    ) -> Result<Option<(StoredLog, Option<CommitNumber>)>, BackupError> {
        let mut reader = self.directory.log(&self.identity, first)?;
        let mut group = reader.next_group().await?;
        if let (Some(base), Some(group)) = (base, &group)
            && group.header.previous_checksum != base.last_checksum
        {
            return Ok(None);
        }
        // Without new groups, the log ends as that of the base does.
        let (last_checksum, wall_clock_us) = base.map_or((0, 0), |base| (base.last_checksum, base.wall_clock_us));
        let object = Object::default();
        let mut log = StoredLog { first, end: first, replay_from, last_checksum, wall_clock_us, object };
        let mut stable = None;
        let mut object = ObjectWriter::create(self.store, &self.name, "log.zst", self.level).await?;
        while let Some(found) = group {
            reach(self.crashes, crash_point::BACKUP_LOG.before())?;
            object.write(&found.bytes).await?;
            reach(self.crashes, crash_point::BACKUP_LOG.after())?;
            log.last_checksum = found.checksum;
            log.wall_clock_us = found.header.wall_clock_us;
            stable = Some(found.header.stable);
            log.end = reader.position();
            group = reader.next_group().await?;
        }
        log.object = object.finish().await?;
        Ok(Some((log, stable)))
    }
}

/// The newest backup of this log: the one whose log ends last.
async fn newest_of_log(store: &BackupStore, log_id: u64) -> Result<Option<(Box<str>, Contents)>, BackupError> {
    let mut newest: Option<(Box<str>, Contents)> = None;
    for name in store.backups().await? {
        let contents = store.contents(&name).await?;
        let is_newer = newest.as_ref().is_none_or(|(_, found)| contents.log.end >= found.log.end);
        if contents.log_id == log_id && is_newer {
            newest = Some((name, contents));
        }
    }
    Ok(newest)
}

#[expect(clippy::disallowed_methods, reason = "a tool, not a block, names a file by the time")]
fn default_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_text(now.as_micros() as u64).replace(['-', ':'], "").replace(' ', "-")
}
