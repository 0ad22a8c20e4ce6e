//! A thread's turn: timers, queues, handlers and back-pressure. Also its load figures, sleep and controllers.
//!
//! `run` is the turn, the same in both worlds. Its surroundings (sockets and sleep, or the seed of a
//! simulation) are in [`crate::real`] and [`crate::simulated`].

pub mod load;
pub(crate) mod run;
pub mod send;
pub mod send_board;
pub mod sleep;
pub mod spin;
pub(crate) mod delegation;
pub(crate) mod timer;
