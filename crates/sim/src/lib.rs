//! A whole cluster in one deterministic process.
