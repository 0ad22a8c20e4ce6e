//! Voters in one process, with messages that are lost, repeated and late, links that are reset, and voters
//! that stop at any moment and lose what was not synced.

mod cluster;
mod disk;
mod election;
mod message;
mod random;
mod voters;
