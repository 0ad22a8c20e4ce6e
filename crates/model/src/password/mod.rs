//! Stored passwords of accounts, in the forms of MySQL's authentication methods.
//!
//! - [`caching_sha2`]: the form of `caching_sha2_password`, and the proofs of its clients;
//! - [`native`]: the form of `mysql_native_password`, and the proofs of its clients;
//! - [`sha256_crypt`]: the slow hash in that form, in steps that a thread of the pipeline may take.

pub mod caching_sha2;
pub mod native;
pub mod sha256_crypt;
pub mod strength;
