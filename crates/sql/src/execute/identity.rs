//! The account of a session, and its rights.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_model::access::{AccessControl, AccountName, Rights};
use junctor_model::error::{Error, ErrorCode};

/// The account of a session, and its rights.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The account that the client has proven.
    pub account: AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
    /// When the password was changed last before the login, in microseconds since 1970.
    pub password_changed_us: u64,
    /// The roles that SET ROLE or the login has activated, without those within them.
    pub roles: BTreeSet<AccountName>,
    /// The rights; `None` if they must be looked up.
    pub rights: Option<Arc<Rights>>,
}

impl Identity {
    /// The account with its default roles, or all roles, and the mandatory ones.
    pub fn of_login(
        account: &AccountName,
        access: &AccessControl,
        (mandatory, all_roles): (&[AccountName], bool),
    ) -> Identity {
        let mut identity = Identity {
            account: account.clone(),
            is_expired: false,
            password_changed_us: 0,
            roles: BTreeSet::new(),
            rights: None,
        };
        let Some(definition) = access.account(account) else { return identity };
        identity.password_changed_us = definition.password_changed_us;
        let granted = granted_roles(account, access, mandatory);
        identity.roles = match all_roles {
            true => granted.into_iter().cloned().collect(),
            false => definition.default_roles.iter().filter(|role| granted.contains(role)).cloned().collect(),
        };
        identity
    }
}

/// The roles that an account may activate: those granted to it, and the mandatory ones that exist.
pub(crate) fn granted_roles<'a>(
    account: &AccountName,
    access: &'a AccessControl,
    mandatory: &'a [AccountName],
) -> BTreeSet<&'a AccountName> {
    let own = access.account(account).into_iter().flat_map(|definition| definition.roles.keys());
    own.chain(mandatory.iter()).filter(|role| access.account(role).is_some() && *role != account).collect()
}

/// 1820: the password has expired.
pub(crate) fn must_change_password() -> Box<Error> {
    let message = "You must reset your password using ALTER USER statement before executing this statement.";
    Error::new(ErrorCode::MustChangePassword, message)
}
