//! Our Lua scripts, compiled into the binary.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::failure::Explain;

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Creates and drops databases.
    Database,
    /// The transaction of sysbench, with IN lists and filters.
    Oltp,
    /// DBT2: TPC-C without think times.
    Dbt2,
    /// Tables and initial rows of DBT2. `dbt2.lua` loads this file.
    Dbt2Load,
    /// Consistency conditions of DBT2. `dbt2.lua` loads this file.
    Dbt2Check,
    /// The workloads of YCSB.
    Ycsb,
}

impl Script {
    /// All scripts.
    pub const ALL: [Script; 6] =
        [Script::Database, Script::Oltp, Script::Dbt2, Script::Dbt2Load, Script::Dbt2Check, Script::Ycsb];

    /// File name.
    pub fn name(self) -> &'static str {
        match self {
            Script::Database => "database.lua",
            Script::Oltp => "oltp.lua",
            Script::Dbt2 => "dbt2.lua",
            Script::Dbt2Load => "dbt2_load.lua",
            Script::Dbt2Check => "dbt2_check.lua",
            Script::Ycsb => "ycsb.lua",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Script::Database => include_str!("../../lua/database.lua"),
            Script::Oltp => include_str!("../../lua/oltp.lua"),
            Script::Dbt2 => include_str!("../../lua/dbt2.lua"),
            Script::Dbt2Load => include_str!("../../lua/dbt2_load.lua"),
            Script::Dbt2Check => include_str!("../../lua/dbt2_check.lua"),
            Script::Ycsb => include_str!("../../lua/ycsb.lua"),
        }
    }

    /// Path in a folder that [`write_scripts`] has filled.
    pub fn path(self, folder: &Path) -> PathBuf {
        folder.join(self.name())
    }
}

/// Writes all scripts into a folder.
///
/// # Errors
/// A file cannot be written.
pub fn write_scripts(folder: &Path) -> Outcome<()> {
    for script in Script::ALL {
        let path = script.path(folder);
        fs::write(&path, script.text()).explain(path.display())?;
    }
    Ok(())
}
