//! The typed way into the data plane, and the choice of where a read runs.
