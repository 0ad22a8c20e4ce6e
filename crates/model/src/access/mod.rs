//! Accounts, roles and their rights, as a part of the dictionary.
//!
//! - [`privilege`]: the privileges of MySQL 8.0, static and dynamic, and sets of them;
//! - [`name`]: names of accounts, and which hosts they match;
//! - [`account`]: the definition of an account or role;
//! - [`control`]: all accounts at one moment, and the account that a client gets;
//! - [`rights`]: what an account may do with its active roles.

pub mod privilege;
pub mod name;
pub mod account;
pub mod control;
pub mod rights;
#[cfg(test)]
mod tests;

pub use account::{
    AccountDefinition, Authentication, AuthenticationMethod, Lifetime, PasswordPolicy, ResourceLimits, TableGrant,
    TlsRequirement,
};
pub use control::{AccessChange, AccessControl};
pub use name::AccountName;
pub use privilege::{Privilege, Privileges};
pub use rights::{Rights, TableRights};
