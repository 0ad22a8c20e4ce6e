//! A store of backups: a folder, or a bucket of an S3-compatible service.

use std::path::Path as FilePath;
use std::sync::Arc;

use futures_lite::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::BackupError;
use crate::contents::{Contents, StoredBackup};

const CONTENTS_NAME: &str = "contents";
/// How the address of a bucket begins.
const S3: &str = "s3://";

/// The list of what a node has copied for a backup of its cluster.
const PART_NAME: &str = "part";

/// The name of an object of a node's part.
pub fn part_object(node: u8, object: &str) -> String {
    format!("node-{node}/{object}")
}

/// A store of backups.
#[derive(Clone, Debug)]
pub struct BackupStore {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl BackupStore {
    /// Opens the store at `s3://BUCKET/PREFIX`, or in a folder, which is created if it is missing.
    ///
    /// # Errors
    /// As [`BackupStore::open`]; or the folder cannot be created.
    pub fn create(address: &str) -> Result<BackupStore, BackupError> {
        if !address.starts_with(S3) {
            std::fs::create_dir_all(address).map_err(BackupError::of_file(FilePath::new(address)))?;
        }
        BackupStore::open(address)
    }

    /// Opens the store at `s3://BUCKET/PREFIX`, or in a folder. Credentials, region and endpoint of a service
    /// come from the environment variables that AWS documents.
    ///
    /// # Errors
    /// The address is wrong, or there is no such folder.
    pub fn open(address: &str) -> Result<BackupStore, BackupError> {
        if let Some(rest) = address.strip_prefix(S3) {
            let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
            let objects = AmazonS3Builder::from_env().with_url(address).build()?;
            return Ok(BackupStore { objects: Arc::new(objects), prefix: Path::from(prefix) });
        }
        let folder = FilePath::new(address);
        if !folder.is_dir() {
            return Err(BackupError::refused(format!("{address} is no folder; name the store of a backup")));
        }
        let objects = LocalFileSystem::new_with_prefix(folder)?.with_automatic_cleanup(false).with_fsync(true);
        Ok(BackupStore { objects: Arc::new(objects), prefix: Path::default() })
    }

    /// A store in the memory of the process, for simulations.
    pub fn in_memory() -> BackupStore {
        BackupStore { objects: Arc::new(InMemory::new()), prefix: Path::default() }
    }

    /// The objects of the store.
    pub fn objects(&self) -> &dyn ObjectStore {
        &*self.objects
    }

    /// The path of an object of a backup.
    pub fn path(&self, backup: &str, object: &str) -> Path {
        let parts = self.prefix.parts().map(|part| part.as_ref().to_owned());
        let below = [backup].into_iter().chain(object.split('/')).map(str::to_owned);
        Path::from_iter(parts.chain(below))
    }

    /// The names of all complete backups, in alphabetical order.
    ///
    /// # Errors
    /// The store fails.
    pub async fn backups(&self) -> Result<Vec<Box<str>>, BackupError> {
        let folders = self.objects.list_with_delimiter(Some(&self.prefix)).await?.common_prefixes;
        let mut names = Vec::new();
        for folder in folders {
            let Some(name) = folder.filename() else { continue };
            match self.objects.head(&self.path(name, CONTENTS_NAME)).await {
                Ok(_) => names.push(name.into()),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        names.sort();
        Ok(names)
    }

    /// The list of contents of a backup.
    ///
    /// # Errors
    /// The backup does not exist or is incomplete, its list is damaged, or the store fails.
    pub async fn stored(&self, backup: &str) -> Result<StoredBackup, BackupError> {
        let found = self.list_at(backup, CONTENTS_NAME).await?;
        found.ok_or_else(|| BackupError::refused(format!("the store has no complete backup '{backup}'")))
    }

    /// The list in an object of a backup; `None` if there is no such object.
    async fn list_at(&self, backup: &str, name: &str) -> Result<Option<StoredBackup>, BackupError> {
        match self.objects.get(&self.path(backup, name)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            found => StoredBackup::decode(backup, &found?.bytes().await?).map(Some),
        }
    }

    /// The list of contents of a backup of a node.
    ///
    /// # Errors
    /// As [`BackupStore::stored`]; or it is one of a cluster.
    pub async fn contents(&self, backup: &str) -> Result<Contents, BackupError> {
        match self.stored(backup).await? {
            StoredBackup::Node(contents) => Ok(contents),
            StoredBackup::Cluster(_) => {
                Err(BackupError::refused(format!("backup '{backup}' is one of a cluster, which has no increments")))
            }
        }
    }

    /// The contents that a node has copied for a backup of its cluster; `None` if this store has none.
    ///
    /// # Errors
    /// The list is damaged, or the store fails.
    pub async fn part(&self, backup: &str, node: u8) -> Result<Option<Contents>, BackupError> {
        let found = self.list_at(backup, &part_object(node, PART_NAME)).await?;
        Ok(found.and_then(|found| match found {
            StoredBackup::Node(contents) => Some(contents),
            StoredBackup::Cluster(_) => None,
        }))
    }

    /// Writes the list of what a node has copied.
    ///
    /// # Errors
    /// The store fails.
    pub async fn put_part(&self, backup: &str, node: u8, contents: Contents) -> Result<(), BackupError> {
        let bytes = StoredBackup::Node(contents).encode();
        self.objects.put(&self.path(backup, &part_object(node, PART_NAME)), bytes.into()).await?;
        Ok(())
    }

    /// The time at which a backup was completed, in microseconds since 1970, by the clock of the store.
    ///
    /// # Errors
    /// The backup does not exist or is incomplete, or the store fails.
    pub async fn completed_us(&self, backup: &str) -> Result<i64, BackupError> {
        let list = self.objects.head(&self.path(backup, CONTENTS_NAME)).await?;
        Ok(list.last_modified.timestamp_micros())
    }

    /// Writes the list of contents, which completes the backup.
    ///
    /// # Errors
    /// The store fails.
    pub async fn put_contents(&self, backup: &str, contents: &StoredBackup) -> Result<(), BackupError> {
        self.objects.put(&self.path(backup, CONTENTS_NAME), contents.encode().into()).await?;
        Ok(())
    }

    /// Whether any object of this backup exists below a path; of all if it is empty.
    ///
    /// # Errors
    /// The store fails.
    pub async fn has_objects(&self, backup: &str, below: &str) -> Result<bool, BackupError> {
        let mut objects = self.objects.list(Some(&self.path(backup, below)));
        Ok(objects.next().await.transpose()?.is_some())
    }
}
