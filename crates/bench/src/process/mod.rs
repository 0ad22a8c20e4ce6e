//! Runs servers and other programs. Each gets a temporary folder and a free port, and is stopped by its
//! process id.

pub mod callgrind;
pub mod cluster;
pub mod command;
pub mod delay;
pub mod folder;
pub mod galera;
pub mod ignite;
pub mod junctor;
pub mod mariadb;
pub mod measure;
pub mod server;

pub use cluster::{Cluster, ClusterOptions, start_cluster};
pub use folder::TemporaryFolder;
pub use junctor::{JunctorOptions, start_junctor, start_junctor_observed};
pub use mariadb::{start_mariadb, start_mariadb_on};
pub use server::Server;
