//! Blocks, signals, mailboxes, threads, timers, sockets and files, real and simulated; no database word.

pub mod placement;
