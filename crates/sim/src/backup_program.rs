//! The backup program beside a node: the code of `junctor backup` copies the files of the simulated disk
//! piece by piece while the node writes them. Its backups are restored by the code of `junctor restore`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use junctor_backup::{BackupError, BackupStore, CopiedBackup, Copier, CopyKind, Files, restore_newest};
use junctor_kernel::simulated::Disk;
use junctor_kernel::{ArmedCrash, CrashPoint, CrashWatch, Duration, Random, Time};
use junctor_signals::crash_point;
use tokio::runtime::{Builder, Runtime};

/// Maximum time between two reads, in microseconds.
const READ_US_MAX: u64 = 4_000;
/// Piece by piece, a copy sees the state of a file at several moments. This many bytes at most are a piece.
const PIECE_BYTES_MAX: u64 = 256 << 10;

/// The steps at which the program may end.
const STEPS: [crash_point::CrashStep; 3] =
    [crash_point::BACKUP_FRAME, crash_point::BACKUP_LOG, crash_point::BACKUP_LIST];

/// How a copy has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// All objects are in the store. The backup needs its list of contents.
    Copied,
    /// The program ended at a crash point.
    Crashed,
    /// The copy failed.
    Failed(String),
}

impl Default for BackupProgram {
    fn default() -> Self {
        Self::new()
    }
}

/// The store, and the copy under way.
pub struct BackupProgram {
    runtime: Runtime,
    store: BackupStore,
    random: Random,
    exchange: Rc<RefCell<Exchange>>,
    copy: Option<Copy>,
    copied: Option<CopiedBackup>,
    end: Option<CopyEnd>,
    crashes: Arc<CrashWatch>,
    armed: Option<CrashPoint>,
    next_read: Time,
    backups: u64,
    /// Whether the store has a backup of the present log.
    has_base: bool,
    /// The crash points at which the program has ended, until somebody takes them.
    pub crashed_at: Vec<CrashPoint>,
}

type Copy = Pin<Box<dyn Future<Output = Result<CopiedBackup, BackupError>>>>;

/// A read that the copy awaits.
#[derive(Debug, Default)]
struct Exchange {
    wanted: Option<(String, u64, usize)>,
    given: Option<IoResult<Vec<u8>>>,
}

/// The files of the simulated disk, as the copy sees them.
struct DiskFiles(Rc<RefCell<Exchange>>);

impl Files for DiskFiles {
    async fn read(&self, path: &str, offset: u64, length: usize) -> IoResult<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let wanted = (path.to_owned(), offset + bytes.len() as u64, length - bytes.len());
            self.0.borrow_mut().wanted = Some(wanted);
            let given = poll_fn(|_| match self.0.borrow_mut().given.take() {
                Some(given) => Poll::Ready(given),
                None => Poll::Pending,
            });
            let piece = given.await?;
            if piece.is_empty() {
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn folder(&self) -> &Path {
        Path::new("")
    }
}

impl BackupProgram {
    /// A program with an empty store.
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread().build().expect("a runtime of one thread needs no resource");
        Self {
            runtime,
            store: BackupStore::in_memory(),
            random: Random::new(1),
            exchange: Rc::default(),
            copy: None,
            copied: None,
            end: None,
            crashes: Arc::default(),
            armed: None,
            next_read: Time(0),
            backups: 0,
            has_base: false,
            crashed_at: Vec::new(),
        }
    }

    /// Begins a copy. The node protects its files. If the program `may_crash`, it sometimes ends at a crash
    /// point.
    pub fn begin(&mut self, may_crash: bool) {
        self.backups += 1;
        *self.exchange.borrow_mut() = Exchange::default();
        let armed = (may_crash && self.random.one_in(4)).then(|| {
            let step = STEPS[self.random.below(STEPS.len() as u64) as usize];
            let point = if self.random.one_in(2) { step.before() } else { step.after() };
            let hits = 1 << self.random.below(5);
            ArmedCrash { point, hit: 1 + self.random.below(hits) }
        });
        self.armed = armed.map(|armed| armed.point);
        self.crashes.arm(armed);
        let (store, crashes) = (self.store.clone(), Arc::clone(&self.crashes));
        let (files, name) = (DiskFiles(Rc::clone(&self.exchange)), format!("backup{}", self.backups));
        let kind = CopyKind { incremental: self.has_base && !self.random.one_in(3), level: 1 };
        self.abandon();
        self.copy =
            Some(Box::pin(async move { Copier { store: &store, crashes: &crashes }.copy(files, &name, kind).await }));
    }

    /// Gives up the copy under way.
    pub fn abandon(&mut self) {
        (self.copy, self.copied, self.end) = (None, None, None);
    }

    /// How the copy has ended, if it has since the last call.
    pub fn take_end(&mut self) -> Option<CopyEnd> {
        self.end.take()
    }

    /// Goes on with the copy.
    pub fn work(&mut self, disk: &Disk, now: Time) {
        let Some(copy) = self.copy.as_mut().filter(|_| now >= self.next_read) else { return };
        self.next_read = now.plus(Duration::from_micros(self.random.below(READ_US_MAX)));
        let mut exchange = self.exchange.borrow_mut();
        if let Some((path, offset, length)) = exchange.wanted.take() {
            let piece = length.min(512 + self.random.below(PIECE_BYTES_MAX) as usize);
            exchange.given = Some(match disk.content(&path) {
                Some(content) => {
                    let rest = content.get(offset as usize..).unwrap_or_default();
                    Ok(rest[..piece.min(rest.len())].to_vec())
                }
                None => Err(Error::from(ErrorKind::NotFound)),
            });
        }
        drop(exchange);
        let exchange = &self.exchange;
        let polled = self.runtime.block_on(poll_fn(|context| match copy.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if exchange.borrow().wanted.is_some() => Poll::Ready(None),
            // Tasks of the store run meanwhile.
            Poll::Pending => Poll::Pending,
        }));
        let Some(result) = polled else { return };
        self.copy = None;
        self.end = Some(match result {
            Ok(copied) => {
                self.copied = Some(copied);
                CopyEnd::Copied
            }
            Err(error) => self.explain(&error),
        });
    }

    /// Writes the list of contents, after which the backup counts.
    pub fn complete(&mut self) -> CopyEnd {
        let Some(copied) = self.copied.take() else { return CopyEnd::Failed("there is no copy".to_owned()) };
        match self.runtime.block_on(copied.complete(&self.store, &self.crashes)) {
            Ok(_) => {
                self.has_base = true;
                CopyEnd::Copied
            }
            Err(error) => self.explain(&error),
        }
    }

    fn explain(&mut self, error: &BackupError) -> CopyEnd {
        // The watch disarms itself at the fatal hit.
        match self.armed.take().filter(|_| self.crashes.armed().is_none()) {
            Some(point) => {
                self.crashed_at.push(point);
                CopyEnd::Crashed
            }
            None => CopyEnd::Failed(error.to_string()),
        }
    }

    /// The files of a directory that is restored from the newest backup.
    ///
    /// # Errors
    /// The restore fails.
    pub fn restore(&mut self) -> Result<Disk, String> {
        let folder = TemporaryFolder::new()?;
        let log_id = self.random.word();
        let restored = self.runtime.block_on(restore_newest(&self.store, &folder.0, log_id));
        restored.map_err(|error| format!("the restore failed: {error}"))?;
        // The restored log has another id, so no increment can continue the backup.
        self.has_base = false;
        let mut disk = Disk::default();
        for below in ["", "checkpoint", "log"] {
            let entries = std::fs::read_dir(folder.0.join(below)).map_err(|error| error.to_string())?;
            for entry in entries {
                let path = entry.map_err(|error| error.to_string())?.path();
                if path.is_dir() {
                    continue;
                }
                let content = std::fs::read(&path).map_err(|error| error.to_string())?;
                let name = path.strip_prefix(&folder.0).map_err(|error| error.to_string())?;
                disk.put(&name.to_string_lossy(), content);
            }
        }
        Ok(disk)
    }
}

/// A folder of the machine that is deleted with this value.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self, String> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("junctor-sim-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A folder that stays does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
