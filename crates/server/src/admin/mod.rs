//! `junctor admin`: prepares and operates the nodes of a cluster.
//!
//! [`keys`] makes what nodes need before they start. All other commands log in to a node that serves clients,
//! and execute statements: [`session`] logs in, [`table`] prints, [`nodes`] knows the states of nodes,
//! [`operate`] has the commands, [`add`] and [`remove`] the growth of a cluster and its reverse, and
//! [`backup`] the one that copies data.

mod add;
mod backup;
mod keys;
mod nodes;
mod operate;
mod remove;
mod replicas;
mod session;
mod table;

use std::path::PathBuf;

use clap::Subcommand;

use add::AddOptions;
use backup::{BACKUP_HELP, BackupOptions};
use keys::{CERTIFICATE_HELP, CertificateOptions};
use operate::{EventsOptions, RestartOptions, RollingOptions, ShowOptions, StatusOptions, StopOptions};
use remove::{REMOVE_HELP, RemoveOptions};

pub use keys::make_key;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The subcommands of `junctor admin`.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Make a new key of a cluster. Every node of the cluster needs the file.
    Key {
        /// The file to make; it must not exist
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Make the certificate authority of a cluster, and a certificate for each node, to encrypt links.
    #[command(after_help = CERTIFICATE_HELP)]
    Certificate(CertificateOptions),
    /// Show the nodes and node groups of a cluster.
    Show(ShowOptions),
    /// Show links, votes, replicas and restarts of a cluster, or of one node.
    Status(StatusOptions),
    /// Show the last events of the membership: evictions with reasons, returns, elections, copies of rows.
    Events(EventsOptions),
    /// Stop a node. It is refused for the last replica of a node group that serves.
    Stop(StopOptions),
    /// Stop a node and let its supervisor start it again.
    Restart(RestartOptions),
    /// Wait until the added nodes serve, and spread all tables over all node groups.
    #[command(after_help = add::ADD_HELP)]
    Add(AddOptions),
    /// Remove the node group that was added last, after all tables have moved, or replicas of each group.
    #[command(after_help = REMOVE_HELP)]
    Remove(RemoveOptions),
    /// Restart all nodes, one after the other, while the cluster serves.
    #[command(after_help = operate::ROLLING_HELP)]
    RollingRestart(RollingOptions),
    /// Copy the data of a cluster, as of one commit, to a store.
    #[command(after_help = BACKUP_HELP)]
    Backup(BackupOptions),
}

/// Runs a subcommand.
///
/// # Errors
/// A file exists or cannot be written, no node can be reached, or a node refuses.
pub fn run(command: &AdminCommand) -> Result<()> {
    match command {
        AdminCommand::Key { file } => make_key(file),
        AdminCommand::Certificate(options) => keys::make_certificates(options),
        AdminCommand::Show(options) => operate::show(options),
        AdminCommand::Status(options) => operate::status(options),
        AdminCommand::Events(options) => operate::events(options),
        AdminCommand::Stop(options) => operate::stop(options),
        AdminCommand::Remove(options) => remove::remove(options),
        AdminCommand::Restart(options) => operate::restart(options),
        AdminCommand::Add(options) => add::add(options),
        AdminCommand::RollingRestart(options) => operate::rolling_restart(options),
        AdminCommand::Backup(options) => backup::backup(options),
    }
}
