//! A thread's turn: timers, queues, handlers and back-pressure. Also the thread's load figures, its sleep and
//! its controllers.
//!
//! `run` is the turn, the same in a real and in a simulated node. [`crate::real`] and [`crate::simulated`]
//! call it: the first with sockets and sleep around it, the second with a virtual clock.

pub mod load;
pub(crate) mod run;
pub mod send;
pub mod send_board;
pub mod sleep;
pub mod spin;
pub(crate) mod delegation;
mod engine_links;
pub mod pace;
pub(crate) mod timer;
