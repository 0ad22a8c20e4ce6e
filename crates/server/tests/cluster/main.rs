//! Clusters of real processes on this machine: they form, lose nodes, and get them back.
#![allow(clippy::disallowed_methods, reason = "clients and nodes run by real time")]

mod accounts;
mod alter;
mod backup;
#[path = "../accounts/client.rs"]
mod client;
mod dev;
mod failover;
mod groups;
mod grow;
mod links;
mod locks;
mod membership;
mod nodes;
mod operate;
mod old_disks;
mod own_tables;
mod pause;
mod processes;
mod rejoin;
mod remove;
mod replicas;
mod stops;
mod tables;
