//! Our Lua scripts, which the binary carries.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::failure::Explain;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Makes and drops databases.
    Database,
    /// The transaction of sysbench, with IN lists and filters.
    Oltp,
    /// TPC-C without think times.
    Dbt2,
    /// Its tables and what they hold at the beginning; no program by itself.
    Dbt2Load,
    /// Its consistency conditions; no program by itself.
    Dbt2Check,
    /// YCSB's workloads.
    Ycsb,
}

impl Script {
    /// All.
    pub const ALL: [Script; 6] =
        [Script::Database, Script::Oltp, Script::Dbt2, Script::Dbt2Load, Script::Dbt2Check, Script::Ycsb];

    /// Its file name.
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

    /// Where it is in a folder that [`write_scripts`] has filled.
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
