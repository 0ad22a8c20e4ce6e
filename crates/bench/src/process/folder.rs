//! Temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Outcome;
use crate::failure::Explain;

/// A folder that goes when this goes.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A new empty folder; `name` tells a person what it is for.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(name: &str) -> Outcome<TemporaryFolder> {
        TemporaryFolder::within(&std::env::temp_dir(), name)
    }

    /// The same in another folder than the system's, which is made if it is not there and then stays.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn within(parent: &Path, name: &str) -> Outcome<TemporaryFolder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("junctor-bench-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).explain(path.display())?;
        Ok(TemporaryFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
