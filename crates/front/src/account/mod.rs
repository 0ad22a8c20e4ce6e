//! User accounts at login: which account a client gets, how its password is verified, and which logins are
//! refused or delayed. All protocols share them. The accounts themselves are a part of the dictionary
//! ([`junctor_model::access`]); this is a node's copy for its recv blocks.
//!
//! - [`credential`]: the forms of stored passwords, for the exchange of a login;
//! - [`accounts`]: the accounts, and the decision on a login;
//! - [`password_checks`]: the check of a password, in steps;
//! - [`claim`]: what clients claim, where they are, and why they are refused.

mod credential;
mod accounts;
mod claim;
mod password_checks;
#[cfg(test)]
mod tests;

pub use accounts::{Account, Accounts};
pub(crate) use accounts::{Admission, Candidate, Conditions, accepts_native};
pub(crate) use claim::Claim;
pub use claim::{DATABASE_NAME_BYTES_MAX, Peer, Refusal, USER_NAME_BYTES_MAX};
pub(crate) use credential::FAST_PROOF_BYTES;
pub use credential::{CHALLENGE_BYTES, Challenge, Credential, PasswordHash, challenge_from_random};
pub(crate) use password_checks::PasswordChecks;
