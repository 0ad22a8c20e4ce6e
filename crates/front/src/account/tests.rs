use junctor_kernel::transport::security::{Agreed, CertificateNames};
use junctor_model::access::{
    AccessControl, AccountDefinition, AccountName, Authentication, AuthenticationMethod, Lifetime, TlsRequirement,
};
use proptest::prelude::*;

use super::*;

#[test]
fn an_empty_password_makes_a_local_account() {
    let mut accounts = Accounts::empty();
    accounts.insert("anna", Account::with_password(b""));
    let [near, far] = ["127.0.0.1", "10.0.0.1"].map(|address| Peer::new(address.parse().unwrap()));
    assert!(accounts.candidate(b"anna", near).account.is_some());
    assert!(accounts.candidate(b"anna", far).account.is_none());
}

/// The error of a login of `u`, whose account is this one; `Ok` with whether its password has expired.
fn admit(change: impl FnOnce(&mut AccountDefinition), conditions: &Conditions) -> Result<bool, u16> {
    let method = AuthenticationMethod::MysqlNativePassword;
    let authentication = Authentication { method, stored: PasswordHash::of_password(b"p").encode() };
    let mut definition = AccountDefinition { authentication, password_changed_us: 1, ..AccountDefinition::default() };
    change(&mut definition);
    let mut access = AccessControl::default();
    access.put(AccountName::new("u", "%"), definition);
    let accounts = Accounts::new(access.into());
    let peer = Peer::new("10.0.0.1".parse().unwrap());
    let candidate = accounts.candidate(b"u", peer);
    let claim = Claim { user: b"u", has_password: true, database: b"" };
    let admitted = accounts.admit(&candidate, peer, claim, (true, conditions));
    admitted.map(|admission| admission.is_expired).map_err(|refusal| refusal.errno)
}

#[test]
fn a_password_expires_when_its_days_have_passed() {
    const DAY_US: u64 = 86_400_000_000;
    let at = |now_us, lifetime, handles_expired| {
        let conditions = Conditions { now_us, handles_expired, ..Conditions::default() };
        admit(|account| account.policy.lifetime = lifetime, &conditions)
    };
    assert_eq!(at(2 * DAY_US, Lifetime::Days(2), true), Ok(false));
    assert_eq!(at(2 * DAY_US + 1, Lifetime::Days(2), true), Ok(true));
    assert_eq!(at(2 * DAY_US + 1, Lifetime::Days(2), false), Err(1862));
    assert_eq!(at(900 * DAY_US, Lifetime::Never, false), Ok(false));
    assert_eq!(at(900 * DAY_US, Lifetime::Default, false), Ok(false));
}

#[test]
fn each_condition_of_a_requirement_is_compared() {
    let agreed = Agreed { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", has_certificate: true };
    let names = CertificateNames { issuer: "/CN=ca".into(), subject: "/CN=u".into() };
    let with = Conditions { tls: Some(agreed), certificate: Some(names), ..Conditions::default() };
    let plain = Agreed { has_certificate: false, ..agreed };
    let without = Conditions { tls: Some(plain), ..Conditions::default() };
    let text = |text: &str| (!text.is_empty()).then(|| text.into());
    let required = |cipher, issuer, subject| TlsRequirement::Specified {
        cipher: text(cipher),
        issuer: text(issuer),
        subject: text(subject),
    };
    for (tls, of_certificate, of_tls) in [
        (TlsRequirement::X509, Ok(false), Err(1045)),
        (required("", "/CN=ca", ""), Ok(false), Err(1045)),
        (required("", "", "/CN=u"), Ok(false), Err(1045)),
        (required("TLS_AES_256_GCM_SHA384", "", ""), Ok(false), Ok(false)),
        (required("other", "/CN=ca", "/CN=u"), Err(1045), Err(1045)),
        (required("", "/CN=u", "/CN=u"), Err(1045), Err(1045)),
        (required("", "", "/CN=U"), Err(1045), Err(1045)),
    ] {
        let admit = |conditions| admit(|account| account.tls = tls.clone(), conditions);
        assert_eq!((admit(&with), admit(&without)), (of_certificate, of_tls), "{tls:?}");
        assert_eq!(admit(&Conditions::default()), Err(1045));
    }
}

/// The delays of a login of `user` after `failures` failed ones from 10.0.0.1, from there and from elsewhere.
fn delays_of(accounts: &Accounts, user: &str, failures: u64) -> [u64; 2] {
    let peers = ["10.0.0.1", "10.0.0.2"].map(|address| Peer::new(address.parse().unwrap()));
    let claim = Claim { user: user.as_bytes(), has_password: true, database: b"" };
    for now_us in 0..failures {
        let mut candidate = accounts.candidate(user.as_bytes(), peers[0]);
        if candidate.credential == Credential::NoPassword {
            candidate.become_decoy();
        }
        let conditions = Conditions { now_us, ..Conditions::default() };
        let errno = accounts.admit(&candidate, peers[0], claim, (false, &conditions)).map_err(|refusal| refusal.errno);
        assert_eq!(errno, Err(1045), "{user}");
    }
    peers.map(|peer| accounts.delay_ms(&accounts.candidate(user.as_bytes(), peer), user.as_bytes()))
}

#[test]
fn delays_tell_no_address_which_users_exist() {
    let mut accounts = Accounts::empty();
    accounts.insert("known", Account::with_password(b"secret"));
    accounts.insert("open", Account::with_credential(Credential::NoPassword));
    for user in ["known", "open", "unknown"] {
        assert_eq!(delays_of(&accounts, user, 2), [0, 0], "{user}");
        assert_eq!(delays_of(&accounts, user, 3), [3000, 3000], "{user}");
    }
}

#[test]
fn a_password_for_an_account_without_one_counts_and_is_never_right() {
    let mut accounts = Accounts::empty();
    accounts.insert("open", Account::with_credential(Credential::NoPassword));
    let peer = Peer::new("10.0.0.1".parse().unwrap());
    let mut candidate = accounts.candidate(b"open", peer);
    let claim = Claim { user: b"open", has_password: true, database: b"" };
    let admit = |candidate: &Candidate| {
        let admitted = accounts.admit(candidate, peer, claim, (true, &Conditions::default()));
        admitted.map(|admission| admission.user).map_err(|refusal| refusal.errno)
    };
    assert_eq!(admit(&candidate), Ok("open".to_owned()));
    candidate.become_decoy();
    assert_eq!(admit(&candidate), Err(1045));
    let counted = accounts.usage().failed_logins().counts();
    assert_eq!(counted, [(AccountName::new("open", "%"), 1)]);
}

proptest! {
    #[test]
    fn challenges_survive_zero_terminated_and_seven_bit_transport(random: [u8; CHALLENGE_BYTES]) {
        prop_assert!(challenge_from_random(random).iter().all(|byte| (1..128).contains(byte)));
    }
}
