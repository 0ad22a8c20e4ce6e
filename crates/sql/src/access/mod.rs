//! Accounts and rights: what statements need, what sessions have, and what accounts have used.
//!
//! - [`form`]: the one table of the rights that each form of statement needs;
//! - [`needs`]: the rights on tables and columns that a planned statement needs;
//! - [`check`]: the check of a statement without a plan;
//! - [`login_settings`]: the system variables that concern logins;
//! - [`failed_logins`]: delays and locks after failed logins;
//! - [`usage`]: how much of their resources accounts have used.

mod check;
mod failed_logins;
pub mod form;
mod login_settings;
mod needs;
mod usage;

pub(crate) use check::{Checker, denied_database, denied_server};
pub use failed_logins::{Block, CountedName, FailedLogins};
pub use form::{Form, FormRights, Right, RightOn, TableAccess, privileges_page};
pub use login_settings::LoginSettings;
pub(crate) use needs::{NeedsCollector, RightsOfSession, account_of_definer, invalid_view, no_definer};
pub use needs::{PlanRights, SubjectNumber};
pub use usage::AccountUsage;
