//! Temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Outcome;
use crate::failure::Explain;

/// A folder that is deleted on drop.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates an empty folder. Its path contains `name`, which tells people what it is for.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(name: &str) -> Outcome<TemporaryFolder> {
        TemporaryFolder::within(&std::env::temp_dir(), name)
    }

    /// Creates the folder in `parent` instead of the system's temporary folder. Creates `parent` if it is
    /// missing, and does not delete it.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn within(parent: &Path, name: &str) -> Outcome<TemporaryFolder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("junctor-bench-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).explain(path.display())?;
        Ok(TemporaryFolder(path))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
