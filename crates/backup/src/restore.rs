//! Makes a data directory from a backup.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use clap::Args;
use junctor_kernel::CrashWatch;
use junctor_model::checkpoint::{CHECKPOINT_FOLDER, checkpoint_path};
use junctor_model::id::CommitNumber;
use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, IDENTITY_USE, Identity, RESTORED_FILE, RESTORED_NODE};
use junctor_model::stored_manifest::{MANIFEST_USE, Manifest};
use junctor_model::stored_settings::SETTINGS_USE;
use junctor_signals::crash_point::BACKUP_RESTORE;
use junctor_storage::log::{
    BLOCK_BYTES, GroupError, GroupHeader, LOG_FOLDER, SegmentSize, decode_group, encode_slot, move_group, segment_path,
};

use crate::BackupError;
use crate::clock::{utc_moment_us, utc_text};
use crate::contents::{ClusterContents, Contents, Object, StoredBackup};
use crate::crash::{reach, watch_of_environment};
use crate::data_directory::sync_folder;
use crate::merge;
use crate::object::read_object;
use crate::progress::Progress;
use crate::store::BackupStore;
use crate::take::block_on;

/// Options of a restore.
#[derive(Clone, Debug, Args)]
pub struct RestoreOptions {
    /// Where backups are kept: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "STORE")]
    pub store: String,
    /// Data directory to make; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Name of the backup [default: the newest one]
    #[arg(long, value_name = "NAME")]
    pub name: Option<Box<str>>,
    /// Restore the commits up to this time in UTC, between the backup and the end of its increments
    #[arg(long, value_name = "YYYY-MM-DD hh:mm:ss")]
    pub until: Option<String>,
    /// Node groups of the new cluster over which the tables of a cluster's backup are spread; a node alone
    /// needs the default [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub node_groups: Option<u8>,
}

/// Contents of a restored directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    /// The backup whose checkpoint was restored.
    pub name: Box<str>,
    /// The last commit that the directory holds.
    pub last_commit: CommitNumber,
    /// UTC time of the last group of the log.
    pub until: String,
}

/// Makes a data directory. A server that is started with it recovers as after a crash.
///
/// # Errors
/// The store or a file fails, an object is damaged, or the backups do not reach the requested time. Nothing
/// is left at the directory's path then.
pub fn restore(options: &RestoreOptions) -> Result<RestoreSummary, BackupError> {
    block_on(async {
        let (store, crashes) = (BackupStore::open(&options.store)?, watch_of_environment()?);
        let until_us = options.until.as_deref().map(utc_moment_us).transpose()?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => newest(&store).await?,
        };
        let source = match store.stored(&name).await? {
            StoredBackup::Node(_) if options.node_groups.is_some() => {
                let text = format!("backup '{name}' is one of a node alone, whose tables are in no node group");
                return Err(BackupError::refused(text));
            }
            StoredBackup::Node(_) => Source::Node(Box::new(Plan::new(&store, name, until_us).await?)),
            StoredBackup::Cluster(_) if until_us.is_some() => {
                let text = format!("backup '{name}' is one of a cluster, which can only be restored to its end");
                return Err(BackupError::refused(text));
            }
            StoredBackup::Cluster(cluster) => Source::Cluster(name, cluster),
        };
        // The directory gets its name once it is complete.
        let folder = temporary_folder(&options.data_dir)?;
        // From here on, the restored log differs from the original one. A new id distinguishes the two.
        let node_groups = options.node_groups.unwrap_or(1);
        let target = Target { folder: &folder, log_id: random()?, node_groups, crashes: &crashes };
        let summary = source.write(&store, target).await;
        let summary = summary.and_then(|summary| {
            reach(&crashes, BACKUP_RESTORE.before())?;
            std::fs::rename(&folder, &options.data_dir).map_err(BackupError::of_file(&options.data_dir))?;
            reach(&crashes, BACKUP_RESTORE.after())?;
            Ok(summary)
        });
        if summary.is_err() {
            // The error matters more than what cannot be removed.
            let _ = std::fs::remove_dir_all(&folder);
        }
        let summary = summary?;
        sync_folder(options.data_dir.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        Ok(summary)
    })
}

/// Writes the newest backup of a store into an empty folder, whose log gets this id. For simulations, which
/// restore the same bytes each time.
///
/// # Errors
/// The store or a file fails, or an object is damaged.
pub async fn restore_newest(store: &BackupStore, folder: &Path, log_id: u64) -> Result<RestoreSummary, BackupError> {
    let crashes = CrashWatch::default();
    let name = newest(store).await?;
    let source = match store.stored(&name).await? {
        StoredBackup::Node(_) => Source::Node(Box::new(Plan::new(store, name, None).await?)),
        StoredBackup::Cluster(cluster) => Source::Cluster(name, cluster),
    };
    source.write(store, Target { folder, log_id, node_groups: 1, crashes: &crashes }).await
}

/// The backup from which a directory is made.
enum Source {
    Node(Box<Plan>),
    Cluster(Box<str>, ClusterContents),
}

impl Source {
    /// Writes the directory. Its identity comes last.
    async fn write(&self, store: &BackupStore, target: Target<'_>) -> Result<RestoreSummary, BackupError> {
        for below in [CHECKPOINT_FOLDER, LOG_FOLDER] {
            make_folder(&target.folder.join(below))?;
        }
        let (summary, segment_bytes) = match self {
            Source::Node(plan) => (plan.write(store, target).await?, plan.contents.segment_bytes),
            Source::Cluster(name, cluster) => {
                let segment_bytes = cluster.parts.first().map_or(0, |part| part.contents.segment_bytes);
                (merge::write(store, name, cluster, target).await?, segment_bytes)
            }
        };
        for below in [CHECKPOINT_FOLDER, LOG_FOLDER] {
            sync_folder(&target.folder.join(below))?;
        }
        let of = if matches!(self, Source::Node(_)) { RESTORED_NODE } else { "cluster" };
        target.write_file(RESTORED_FILE, format!("{}\n{of}\n", summary.name).as_bytes())?;
        let identity = Identity { format: DIRECTORY_FORMAT_VERSION, log_id: target.log_id, segment_bytes };
        target.write_file("identity.1", &encode_slot(IDENTITY_USE, 1, &identity.encode()))?;
        sync_folder(target.folder)?;
        Ok(summary)
    }
}

/// Where a restore writes.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub folder: &'a Path,
    /// The id of the restored log.
    pub log_id: u64,
    /// Node groups over which the tables of a cluster's backup are spread.
    pub node_groups: u8,
    pub crashes: &'a CrashWatch,
}

impl Target<'_> {
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        reach(self.crashes, BACKUP_RESTORE.before())?;
        let path = self.folder.join(name);
        let mut file = NewFile::create(&path)?;
        file.write_all(bytes).map_err(BackupError::of_file(&path))?;
        file.sync()?;
        reach(self.crashes, BACKUP_RESTORE.after())
    }
}

/// The backups that a restore reads.
struct Plan {
    /// The backup whose checkpoint is restored.
    name: Box<str>,
    contents: Contents,
    /// The backups whose logs follow each other from `replay_from` on.
    logs: Vec<(Box<str>, Contents)>,
    until_us: Option<u64>,
}

impl Plan {
    async fn new(store: &BackupStore, mut name: Box<str>, until_us: Option<u64>) -> Result<Plan, BackupError> {
        let mut contents = store.contents(&name).await?;
        // The backups that continue the restored one, in order.
        let mut later = Vec::new();
        // A checkpoint that is newer than the requested time cannot be used.
        while until_us.is_some_and(|until_us| until_us < contents.log.wall_clock_us) {
            let Some(base) = contents.base.clone() else {
                let end = utc_text(contents.log.wall_clock_us);
                return Err(BackupError::refused(format!(
                    "backup '{name}' ends at {end} UTC, and no earlier one is left: the time cannot be restored"
                )));
            };
            let base_contents = store.contents(&base).await?;
            later.insert(0, (name, contents));
            (name, contents) = (base, base_contents);
        }
        let mut logs = vec![(name.clone(), contents.clone())];
        while logs[0].1.log.first > contents.log.replay_from {
            let Some(base) = logs[0].1.base.clone() else {
                return Err(BackupError::refused(format!("backup '{name}' lacks the beginning of its log")));
            };
            let base_contents = store.contents(&base).await?;
            logs.insert(0, (base, base_contents));
        }
        logs.extend(later);
        for pair in logs.windows(2) {
            if pair[0].1.log.end != pair[1].1.log.first {
                let text = format!("the log between backups '{}' and '{}' is missing", pair[0].0, pair[1].0);
                return Err(BackupError::refused(text));
            }
        }
        Ok(Plan { name, contents, logs, until_us })
    }

    /// Writes everything but the identity.
    async fn write(&self, store: &BackupStore, target: Target<'_>) -> Result<RestoreSummary, BackupError> {
        let (contents, Target { folder, log_id, crashes, .. }) = (&self.contents, target);
        let progress = Progress::new("checkpoint", contents.files.iter().map(|file| file.object.bytes).sum());
        for file in &contents.files {
            reach(crashes, BACKUP_RESTORE.before())?;
            let restored = NewFile::create(&folder.join(&*checkpoint_path(file.number)))?;
            read_object(store, &file.backup, &file.object, restored).await?.sync()?;
            reach(crashes, BACKUP_RESTORE.after())?;
            progress.add(file.object.bytes);
        }
        progress.finish();
        let mut newest = CommitNumber(0);
        if let Some(stored) = &contents.manifest {
            let bytes = read_object(store, &self.name, &stored.object, Vec::new()).await?;
            let mut manifest = Manifest::decode(&bytes).map_err(|error| BackupError::refused(error.to_string()))?;
            manifest.log_id = log_id;
            newest = manifest.newest;
            let slot = encode_slot(MANIFEST_USE, stored.generation, &manifest.encode());
            target.write_file(&format!("manifest.{}", stored.generation % 2), &slot)?;
        }
        if let Some(object) = &contents.settings {
            let content = read_object(store, &self.name, object, Vec::new()).await?;
            target.write_file("settings.1", &encode_slot(SETTINGS_USE, 1, &content))?;
        }
        reach(crashes, BACKUP_RESTORE.before())?;
        let log = self.write_log(store, target).await?;
        reach(crashes, BACKUP_RESTORE.after())?;
        let Some(last) = log.last else { return Err(BackupError::refused("the backup has no group of the log")) };
        if last.stable < newest {
            return Err(BackupError::refused(format!(
                "the checkpoint holds commit {newest}, but the log ends at commit {}",
                last.stable
            )));
        }
        Ok(RestoreSummary { name: self.name.clone(), last_commit: last.stable, until: utc_text(last.wall_clock_us) })
    }

    async fn write_log(&self, store: &BackupStore, target: Target<'_>) -> Result<LogWriter, BackupError> {
        let size = SegmentSize::of_bytes(self.contents.segment_bytes)
            .ok_or_else(|| BackupError::refused("the backup has an invalid size of segments"))?;
        let mut log = LogWriter {
            folder: target.folder.to_owned(),
            size,
            log_id: target.log_id,
            from: self.contents.log.replay_from,
            until_us: self.until_us,
            received: Vec::new(),
            segment: None,
            checksums: None,
            last: None,
            has_ended: false,
        };
        let progress = Progress::new("log", self.logs.iter().map(|(_, contents)| contents.log.object.bytes).sum());
        for (name, contents) in &self.logs {
            let object: &Object = &contents.log.object;
            log = read_object(store, name, object, log).await?;
            if !log.received.is_empty() && !log.has_ended {
                return Err(BackupError::refused(format!("the log of backup '{name}' ends within a group")));
            }
            progress.add(object.bytes);
        }
        progress.finish();
        if let Some((_, file)) = log.segment.take() {
            file.sync_all().map_err(|error| BackupError::refused(format!("cannot sync the log: {error}")))?;
        }
        Ok(log)
    }
}

/// Receives the bytes of groups, and writes the groups that are restored to their segments.
struct LogWriter {
    folder: PathBuf,
    size: SegmentSize,
    log_id: u64,
    /// Groups before this position are not needed.
    from: u64,
    until_us: Option<u64>,
    /// Bytes of a group that is not complete.
    received: Vec<u8>,
    /// The segment that is being written.
    segment: Option<(u64, File)>,
    /// Checksums of the header of the last group, in the copied log and in the restored one.
    checksums: Option<(u32, u32)>,
    last: Option<GroupHeader>,
    /// Whether the requested time has been passed.
    has_ended: bool,
}

impl LogWriter {
    /// Writes the first group in `received`. Returns its length; `None` if the group is not complete.
    fn write_group(&mut self) -> std::io::Result<Option<usize>> {
        let invalid = |text: String| std::io::Error::new(ErrorKind::InvalidData, text);
        let (header, checksum, blocks) = match decode_group(&self.received) {
            Ok(group) => (group.header, group.checksum, group.blocks),
            Err(GroupError::Incomplete(_)) => return Ok(None),
            Err(GroupError::NoHeader) if self.received.len() < BLOCK_BYTES => return Ok(None),
            Err(error) => return Err(invalid(format!("a group of the log: {error}"))),
        };
        let length = blocks as usize * BLOCK_BYTES;
        if header.position < self.from {
            return Ok(Some(length));
        }
        self.has_ended |= self.until_us.is_some_and(|until_us| header.wall_clock_us > until_us);
        if self.has_ended {
            return Ok(Some(length));
        }
        let restored = match self.checksums {
            Some((copied, restored)) if copied == header.previous_checksum => restored,
            Some(_) => return Err(invalid(format!("the group at position {} does not follow", header.position))),
            None => header.previous_checksum,
        };
        let restored = move_group(&mut self.received[..length], self.log_id, restored);
        self.open_segment(self.size.segment_of(header.position))?;
        if let Some((_, file)) = &self.segment {
            file.write_all_at(&self.received[..length], self.size.offset_of(header.position))?;
        }
        (self.checksums, self.last) = (Some((checksum, restored)), Some(header));
        Ok(Some(length))
    }

    fn open_segment(&mut self, segment: u64) -> std::io::Result<()> {
        if self.segment.as_ref().is_some_and(|(number, _)| *number == segment) {
            return Ok(());
        }
        if let Some((_, file)) = self.segment.take() {
            file.sync_all()?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.folder.join(&*segment_path(LOG_FOLDER, segment)))?;
        file.set_len(self.size.bytes())?;
        self.segment = Some((segment, file));
        Ok(())
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.has_ended {
            return Ok(bytes.len());
        }
        self.received.extend_from_slice(bytes);
        while !self.received.is_empty() {
            let Some(length) = self.write_group()? else { break };
            self.received.drain(..length);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A new file.
pub(crate) struct NewFile {
    file: File,
    path: PathBuf,
}

impl NewFile {
    pub fn create(path: &Path) -> Result<NewFile, BackupError> {
        let file = File::create_new(path).map_err(BackupError::of_file(path))?;
        Ok(NewFile { file, path: path.to_owned() })
    }

    fn sync(self) -> Result<(), BackupError> {
        self.file.sync_all().map_err(BackupError::of_file(&self.path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The backup whose log ends last by the wall clock. Of several with the same end, the one that was completed
/// last: persisted settings are not in the log.
async fn newest(store: &BackupStore) -> Result<Box<str>, BackupError> {
    let mut newest: Option<(u64, i64, Box<str>)> = None;
    for name in store.backups().await? {
        let end = store.stored(&name).await?.wall_clock_us();
        newest = newest.max(Some((end, store.completed_us(&name).await?, name)));
    }
    let (_, _, name) = newest.ok_or_else(|| BackupError::refused("the store has no complete backup"))?;
    Ok(name)
}

/// Creates the folder in which the restore writes. It is next to the data directory, so that it can be
/// renamed.
fn temporary_folder(data_dir: &Path) -> Result<PathBuf, BackupError> {
    let is_empty = match std::fs::read_dir(data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(BackupError::of_file(data_dir)(error)),
    };
    if !is_empty {
        return Err(BackupError::refused(format!("{} is not empty; restore into a new directory", data_dir.display())));
    }
    let mut name = data_dir.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    let folder = data_dir.with_file_name(name);
    if folder.exists() {
        let text = "is there already, from a restore that is running or that was killed; if none is running, delete it";
        return Err(BackupError::refused(format!("{} {text}", folder.display())));
    }
    make_folder(&folder)?;
    Ok(folder)
}

/// Makes a folder that only this user can read.
fn make_folder(path: &Path) -> Result<(), BackupError> {
    DirBuilder::new().mode(0o700).create(path).map_err(BackupError::of_file(path))
}

fn random() -> Result<u64, BackupError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(BackupError::of_file(path))?;
    Ok(u64::from_le_bytes(bytes))
}
