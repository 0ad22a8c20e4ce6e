//! Turns the statements about accounts into changes of the accounts.
//!
//! - [`edit`]: the accounts while a statement changes them, and who makes the change;
//! - [`password`]: new passwords, and the rules that they must fulfil;
//! - [`user`]: CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, and roles as objects;
//! - [`grant`]: GRANT and REVOKE of privileges;
//! - [`role`]: GRANT and REVOKE of roles, and default roles.

mod edit;
mod password;
mod user;
mod grant;
mod role;

pub(crate) use edit::{AccessContext, AccessEdit, PasswordRules};
pub(crate) use role::{parse_role_list, role_not_granted, role_with_system_user};

use junctor_model::error::{Error, Result};

use crate::parse::account::AccountStatement;

/// The change that a statement makes.
///
/// # Errors
/// 1227 and others for a lack of privileges, 1396, 1410 and others for accounts that exist or are missing.
pub(crate) fn change_access<'a>(statement: &AccountStatement, context: AccessContext<'a>) -> Result<AccessEdit<'a>> {
    let mut edit = AccessEdit::new(context);
    match statement {
        AccountStatement::CreateUser(create) => edit.create_users(create)?,
        AccountStatement::AlterUser(alter) => edit.alter_users(alter)?,
        AccountStatement::DropUser { if_exists, accounts } => edit.drop_users(accounts, *if_exists)?,
        AccountStatement::RenameUser(renames) => edit.rename_users(renames)?,
        AccountStatement::SetPassword(set) => edit.set_password(set)?,
        AccountStatement::CreateRole { if_not_exists, roles } => edit.create_roles(roles, *if_not_exists)?,
        AccountStatement::DropRole { if_exists, roles } => edit.drop_roles(roles, *if_exists)?,
        AccountStatement::Grant(grant) => edit.grant(grant)?,
        AccountStatement::Revoke(revoke) => edit.revoke(revoke)?,
        AccountStatement::RevokeAll { from, if_exists } => edit.revoke_all(from, *if_exists)?,
        AccountStatement::GrantRoles { roles, to, admin } => edit.grant_roles(roles, to, *admin)?,
        AccountStatement::RevokeRoles { roles, from, if_exists } => edit.revoke_roles(roles, from, *if_exists)?,
        AccountStatement::SetDefaultRole { roles, to } => edit.set_default_roles(roles, to)?,
        AccountStatement::SetRole(_) | AccountStatement::FlushPrivileges | AccountStatement::FlushUserResources => {
            return Err(Error::not_supported("this statement"));
        }
    }
    Ok(edit)
}
