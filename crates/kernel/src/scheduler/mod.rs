//! One thread's turn: timers, queues, the host's handlers, back-pressure; and its load figures and sleep.
//!
//! `run` is the turn, the same in both worlds. What surrounds it, sockets and sleep or the seed of a simulation, is
//! in [`crate::real`] and [`crate::simulated`].

pub mod load;
pub(crate) mod run;
pub mod send;
pub mod send_board;
pub mod sleep;
pub mod spin;
pub(crate) mod delegation;
pub(crate) mod timer;
