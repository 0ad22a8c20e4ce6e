//! Tests of placement; `fixture` makes trees of the kernel's files.

mod fixture;

mod automatic;
mod plan;
mod thread_config;
mod topology;
