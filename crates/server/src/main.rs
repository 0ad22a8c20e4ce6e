//! The binary `junctor`.
fn main() {}
