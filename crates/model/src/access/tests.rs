use std::net::IpAddr;

use super::name::{ClientHost, is_pattern_match};
use super::*;

fn at(address: &str) -> ClientHost {
    ClientHost::Address(address.parse::<IpAddr>().unwrap())
}

fn with_global(privileges: &[Privilege]) -> AccountDefinition {
    AccountDefinition { global: Privileges::of(privileges), ..AccountDefinition::default() }
}

#[test]
fn patterns_match_as_like_does() {
    for (pattern, text, matches) in [
        ("%", "", true),
        ("10.0.%", "10.0.0.1", true),
        ("10.0.%", "10.1.0.1", false),
        ("192.168.1._", "192.168.1.7", true),
        ("192.168.1._", "192.168.1.17", false),
        ("a\\_b", "a_b", true),
        ("a\\_b", "axb", false),
        ("%a%b", "xaxxbxb", true),
        ("%a%b", "xaxxbxc", false),
        ("LOCALHOST", "localhost", true),
    ] {
        assert_eq!(is_pattern_match(pattern, text), matches, "{pattern} {text}");
    }
}

#[test]
fn the_most_specific_host_is_chosen_and_users_before_anonymous_ones() {
    let mut access = AccessControl::default();
    for (user, host) in [
        ("app", "%"),
        ("app", "10.0.0.5"),
        ("app", "10.0.0.0/255.255.255.0"),
        ("app", "10.%"),
        ("", "10.0.0.9"),
        ("", "%"),
    ] {
        access.put(AccountName::new(user, host), AccountDefinition::default());
    }
    for (user, client, user_found, host) in [
        ("app", at("10.0.0.5"), "app", "10.0.0.5"),
        ("app", at("10.0.0.6"), "app", "10.0.0.0/255.255.255.0"),
        ("app", at("10.0.7.6"), "app", "10.%"),
        ("app", at("11.0.7.6"), "app", "%"),
        // MySQL sorts by the host first, so an anonymous account can hide the one of a user.
        ("app", at("10.0.0.9"), "", "10.0.0.9"),
        ("other", at("11.0.0.9"), "", "%"),
        ("root", at("127.0.0.1"), "root", "localhost"),
        ("root", ClientHost::Socket, "root", "localhost"),
        ("root", at("10.1.1.1"), "", "%"),
    ] {
        let found = access.account_of_client(user, client).map(|(name, _)| name.clone());
        assert_eq!(found, Some(AccountName::new(user_found, host)), "{user} {client:?}");
    }
}

#[test]
fn a_restriction_holds_unless_another_role_lacks_it() {
    let mut access = AccessControl::default();
    let (user, role) = (AccountName::new("u", "%"), AccountName::new("r", "%"));
    let mut restricted = with_global(&[Privilege::Select, Privilege::Insert]);
    restricted.restrictions.insert("secret".into(), Privilege::Select.into());
    access.put(user.clone(), restricted);
    access.put(role.clone(), with_global(&[Privilege::Select]));
    let alone = access.rights_of(&user, [], true);
    assert_eq!(alone.on_database("secret"), Privilege::Insert.into());
    assert!(alone.on_database("open").has(Privilege::Select));
    let with_role = access.rights_of(&user, [&role], true);
    assert!(with_role.on_database("secret").has(Privilege::Select));
}

#[test]
fn of_the_patterns_of_one_account_the_most_specific_counts() {
    let mut access = AccessControl::default();
    let user = AccountName::new("u", "%");
    let mut account = AccountDefinition::default();
    account.databases.insert("db%".into(), Privilege::Select.into());
    account.databases.insert("db\\_1%".into(), Privilege::Insert.into());
    account.databases.insert("db_12".into(), Privilege::Update.into());
    access.put(user.clone(), account);
    let rights = access.rights_of(&user, [], false);
    assert_eq!(rights.on_database("dbx"), Privilege::Select.into());
    assert_eq!(rights.on_database("db_17"), Privilege::Insert.into());
    assert_eq!(rights.on_database("db_12"), Privilege::Update.into());
    assert_eq!(rights.on_database("other"), Privileges::NONE);
    let without_patterns = access.rights_of(&user, [], true);
    assert_eq!(without_patterns.on_database("dbx"), Privileges::NONE);
}

#[test]
fn rights_come_through_roles_of_roles_even_in_a_circle() {
    let mut access = AccessControl::default();
    let names = ["u", "a", "b"].map(|user| AccountName::new(user, "%"));
    let [user, first, second] = &names;
    let mut account = AccountDefinition::default();
    account.roles.insert(first.clone(), false);
    access.put(user.clone(), account);
    let mut role = with_global(&[Privilege::Select]);
    role.roles.insert(second.clone(), false);
    access.put(first.clone(), role);
    let mut role = with_global(&[Privilege::Update]);
    role.roles.insert(first.clone(), false);
    access.put(second.clone(), role);
    assert_eq!(access.rights_of(user, [first], false).global().names(","), "SELECT,UPDATE");
    assert_eq!(access.rights_of(user, [], false).global(), Privileges::NONE);
}

#[test]
fn changes_rebuild_the_accounts_from_the_log() {
    let first = AccessControl::default();
    let mut account = with_global(&[Privilege::Select]);
    account.authentication.stored = vec![1, 255];
    account.tables.insert(("d".into(), "t".into()), TableGrant::default());
    account.roles.insert(AccountName::new("r", "%"), true);
    let change = AccessChange {
        version: 0,
        changed: vec![(AccountName::new("u", "%"), account.into())],
        dropped: vec![AccountName::new("root", "localhost")],
    };
    let second = first.changed_by(change.clone()).expect("the version is that of the accounts");
    assert_eq!(second.changed_by(change), None);
    let third = second
        .changed_by(AccessChange { version: 1, dropped: vec![AccountName::new("u", "%")], ..AccessChange::default() })
        .expect("version 1");
    assert!(third.is_empty());
    let mut restored = AccessControl::default();
    for (before, after) in [(&first, &second), (&second, &third)] {
        let bytes = serde_json::to_vec(&AccessChange::between(before, after)).unwrap();
        restored.apply(serde_json::from_slice(&bytes).unwrap());
        assert_eq!(&restored, after);
    }
}

#[test]
fn debug_output_shows_no_password() {
    let authentication = Authentication { method: AuthenticationMethod::MysqlNativePassword, stored: vec![77; 20] };
    assert_eq!(format!("{authentication:?}"), "MysqlNativePassword(..)");
}
