//! A simulation of the state machines of `src/epoch` and `src/membership`: groups of replicas with toy tcs
//! and ldms, over channels that deliver each message once and in order, under crashes, evictions of live
//! nodes, joins, pauses, clocks that drift and losses of all power. A seed decides every step, so a failure
//! can be repeated. Unlike the models beside it, the simulation runs the code that ships.
//!
//! Each planted bug breaks one rule, mostly by changing a message on its way. A test asserts that some seed
//! notices it.
//!
//! `cargo test -p junctor-cluster --test cluster_simulation -- --nocapture` prints the seeds.
//! `JUNCTOR_SEEDS=1000 JUNCTOR_STEPS=1000000` asks for longer runs, `JUNCTOR_SEED=7` for one seed.

mod change;
mod check;
mod coordinator;
mod message;
mod node;
mod partition;
mod simulation;
mod tests;
mod voters;
