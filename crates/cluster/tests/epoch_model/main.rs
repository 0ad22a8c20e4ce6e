//! A model of commits and epoch changes in a cluster, explored over every order of messages, with crashes,
//! evictions of live nodes, and sequencers, primaries and tcs that do not know that they are evicted.
//! Clients ask for the outcome at other nodes when their tc is gone, and every node may choose snapshots at
//! every moment. Each deliberately broken variant shows that the model would detect that error;
//! `docs/decisions/0016-cluster-models.md` has the counterexamples.
//!
//! Leases are events here: an evicted node has one until it ends. `lease_model.rs` has the clocks.
//!
//! Run with `cargo test -p junctor-cluster --test epoch_model -- --nocapture` to see the state counts.

#[path = "../checking/mod.rs"]
mod checking;

mod change;
mod cluster;
mod commit;
mod properties;
mod tests;
