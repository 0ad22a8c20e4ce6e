//! The server whose data directory is copied.

use std::path::PathBuf;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::BackupError;

/// How to log in to the server. Its data directory must be on the same machine.
#[derive(Clone, Debug, Args)]
pub struct ServerOptions {
    /// Address of the server
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    pub host: String,
    /// Port of the server
    #[arg(long, default_value_t = 3306, value_name = "N")]
    pub port: u16,
    /// User of the server
    #[arg(long, default_value = "root", value_name = "NAME")]
    pub user: String,
    /// Password [default: the variable MYSQL_PWD, which other users of the machine cannot see]
    #[arg(long, value_name = "PASSWORD")]
    pub password: Option<String>,
}

/// A session that holds the server's backup lock. The server releases the lock when the session ends.
pub struct LockedServer {
    session: Conn,
}

impl LockedServer {
    /// Logs in and takes the backup lock. From then on, the server keeps its checkpoint and its log. Every
    /// commit that was acknowledged earlier, with commit_durability disk, is in the log on disk.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or keeps its data in memory only.
    pub fn open(options: &ServerOptions) -> Result<LockedServer, BackupError> {
        let password = options.password.clone().or_else(|| std::env::var("MYSQL_PWD").ok());
        let login = OptsBuilder::new()
            .ip_or_hostname(Some(&options.host))
            .tcp_port(options.port)
            .user(Some(&options.user))
            .pass(password)
            .prefer_socket(false);
        let mut session = Conn::new(login)?;
        session.query_drop("LOCK INSTANCE FOR BACKUP")?;
        Ok(LockedServer { session })
    }

    /// The data directory.
    ///
    /// # Errors
    /// The server keeps its data in memory only, or the connection broke.
    pub fn data_directory(&mut self) -> Result<PathBuf, BackupError> {
        let folder: Option<String> = self.session.query_first("SELECT @@datadir")?;
        let folder = folder.filter(|folder| !folder.is_empty()).map(PathBuf::from);
        folder.ok_or_else(|| BackupError::refused("the server keeps its data in memory only: it has no files to copy"))
    }

    /// Number of node groups of the server's cluster; 0 if it is in none.
    ///
    /// # Errors
    /// The connection broke.
    pub fn node_groups(&mut self) -> Result<u64, BackupError> {
        Ok(self.session.query_first("SELECT COUNT(*) FROM junctor_info.node_groups")?.unwrap_or(0))
    }

    /// `BackupDataDir`: the store of backups by default; `None` without one.
    ///
    /// # Errors
    /// The connection broke.
    pub fn default_store(&mut self) -> Result<Option<String>, BackupError> {
        let store: Option<String> = self.session.query_first("SELECT @@backup_data_dir")?;
        Ok(store.filter(|store| !store.is_empty()))
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// The server had released the lock itself, because the log was getting full, or the connection broke.
    /// The copy may then be incomplete.
    pub fn unlock(mut self) -> Result<(), BackupError> {
        self.session.query_drop("UNLOCK INSTANCE")?;
        Ok(())
    }
}
