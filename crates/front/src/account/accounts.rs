//! The accounts of this node, and the decision on a login.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use junctor_kernel::transport::security::{Agreed, CertificateNames};
use junctor_model::access::{
    AccessControl, AccountDefinition, AccountName, Authentication, AuthenticationMethod, Lifetime, TlsRequirement,
};
use junctor_model::password::caching_sha2::{FastVerifier, StoredPassword};
use junctor_sql::{AccountUsage, Block, CountedName, FailedLogins, LoginSettings};

use super::claim::{Claim, DATABASE_NAME_BYTES_MAX, Peer, Refusal, USER_NAME_BYTES_MAX, shown_name};
use super::credential::{Challenge, Credential, DECOY, FAST_PROOF_BYTES, PasswordHash};

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

/// Verifiers of proven passwords. Beyond it they are forgotten, and the next logins are checked in full.
const VERIFIERS_MAX: usize = 32_768;

/// An account with all privileges, for the configuration of a node.
#[derive(Debug, Clone)]
pub struct Account {
    authentication: Authentication,
    loopback_only: bool,
}

impl Account {
    /// An account that may log in from any address with `mysql_native_password`. An empty password creates an
    /// account without a password.
    pub fn with_password(password: &[u8]) -> Self {
        match password {
            [] => Self::without_password(),
            _ => Self::with_credential(Credential::Native(PasswordHash::of_password(password))),
        }
    }

    /// An account that may log in from any address.
    pub fn with_credential(credential: Credential) -> Self {
        let (method, stored) = match credential {
            Credential::NoPassword => (AuthenticationMethod::CachingSha2Password, Vec::new()),
            Credential::Native(hash) => (AuthenticationMethod::MysqlNativePassword, hash.encode()),
            Credential::CachingSha2(stored) => (AuthenticationMethod::CachingSha2Password, stored.encode()),
            Credential::Socket => (AuthenticationMethod::AuthSocket, Vec::new()),
        };
        Self { authentication: Authentication { method, stored }, loopback_only: false }
    }

    /// An account without a password, for clients on this machine only.
    pub fn without_password() -> Self {
        Self { loopback_only: true, ..Self::with_credential(Credential::NoPassword) }
    }

    /// Restricts the account to clients on this machine.
    #[must_use]
    pub fn loopback_only(self) -> Self {
        Self { loopback_only: true, ..self }
    }
}

/// The account that a client claims, before its proof.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub credential: Credential,
    /// The password before, with RETAIN CURRENT PASSWORD.
    pub second: Option<Credential>,
    /// The account; `None` for an unknown user or a forbidden address, which are examined like an account
    /// with a password, so that neither answers nor their times reveal which users exist.
    pub account: Option<(AccountName, Arc<AccountDefinition>)>,
    /// Whether no proof admits the client.
    is_decoy: bool,
}

impl Candidate {
    /// The candidate of an unknown user: no proof admits it.
    fn unknown(credential: Credential) -> Candidate {
        Candidate { credential, second: None, account: None, is_decoy: true }
    }

    /// Examines the client like one of an account with a password, and refuses it. Its failure counts for
    /// the account.
    pub fn become_decoy(&mut self) {
        (self.credential, self.second, self.is_decoy) = (DECOY, None, true);
    }

    /// Whether the account requires names in the client's certificate.
    pub fn requires_names(&self) -> bool {
        let tls = self.account.as_ref().map(|(_, account)| &account.tls);
        let Some(TlsRequirement::Specified { issuer, subject, .. }) = tls else { return false };
        issuer.is_some() || subject.is_some()
    }

    /// The stored passwords of `caching_sha2_password`, if that is the account's method.
    pub fn stored(&self) -> [Option<StoredPassword>; 2] {
        let stored = |credential| match credential {
            Credential::CachingSha2(stored) => Some(stored),
            Credential::NoPassword | Credential::Native(_) | Credential::Socket => None,
        };
        [stored(self.credential), self.second.and_then(stored)]
    }
}

/// The circumstances of a login.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    /// The time in microseconds since 1970.
    pub now_us: u64,
    /// The parameters of the connection's TLS; `None` without TLS.
    pub tls: Option<Agreed>,
    /// The names in the client's certificate; `None` without one, and if the account requires no names.
    pub certificate: Option<CertificateNames>,
    /// Whether the client can change an expired password.
    pub handles_expired: bool,
}

/// A client whose login is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub user: String,
    pub database: Option<String>,
    pub account: AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
}

/// The accounts of this node. Sql blocks replace them when the dictionary has new ones; recv blocks read them
/// at logins.
#[derive(Debug, Default)]
pub struct Accounts {
    access: Mutex<Arc<AccessControl>>,
    /// For the fast way of `caching_sha2_password`: the passwords of successful logins, with the stored form
    /// that each has proven. At most two for each account.
    verifiers: Mutex<BTreeMap<(AccountName, bool), (StoredPassword, FastVerifier)>>,
    /// `--skip-grant-tables`: clients of the Unix socket are not checked until FLUSH PRIVILEGES.
    skips_checks: bool,
    settings: Arc<LoginSettings>,
    usage: Arc<AccountUsage>,
}

impl Accounts {
    /// These accounts.
    pub fn new(access: Arc<AccessControl>) -> Accounts {
        Accounts { access: Mutex::new(access), ..Accounts::default() }
    }

    /// Only the user `root`, without a password, from this machine.
    pub fn with_local_root() -> Self {
        Accounts::default()
    }

    /// No accounts: nobody can log in.
    pub fn empty() -> Self {
        Accounts::new(Arc::new(AccessControl::of(Default::default())))
    }

    /// Shares the settings and figures of the sql blocks.
    #[must_use]
    pub fn sharing(self, settings: Arc<LoginSettings>, usage: Arc<AccountUsage>) -> Accounts {
        Accounts { settings, usage, ..self }
    }

    /// Without checks for clients of the Unix socket, until FLUSH PRIVILEGES. Other clients are checked.
    #[must_use]
    pub fn skipping_checks(self, skips_checks: bool) -> Accounts {
        Accounts { skips_checks, ..self }
    }

    /// Adds or replaces an account with all privileges.
    pub fn insert(&mut self, user: &str, account: Account) {
        let host = if account.loopback_only { "localhost" } else { "%" };
        let definition = AccountDefinition::with_all_privileges(account.authentication);
        Arc::make_mut(&mut lock(&self.access)).put(AccountName::new(user, host), definition);
    }

    /// The accounts at this moment.
    pub fn access(&self) -> Arc<AccessControl> {
        Arc::clone(&lock(&self.access))
    }

    /// Takes over the accounts of the dictionary, unless they are older.
    pub fn install(&self, access: &Arc<AccessControl>) {
        let mut current = lock(&self.access);
        if access.version >= current.version && !Arc::ptr_eq(&current, access) {
            let before = std::mem::replace(&mut *current, Arc::clone(access));
            drop(current);
            // Other rules, and another account of that name, end a lock after failed logins.
            let rules = |access: &AccessControl, name: &AccountName| {
                let policy = access.account(name)?.policy;
                Some((policy.failed_logins_max, policy.lock_days))
            };
            let mut failed = self.usage.failed_logins();
            failed.unlock(|name| rules(&before, name) != rules(access, name));
            failed.keep_accounts(|name| access.account(name).is_some());
        }
    }

    /// The figures of the accounts.
    #[cfg(test)]
    pub(crate) fn usage(&self) -> &AccountUsage {
        &self.usage
    }

    /// A connection of an account has ended.
    pub(crate) fn end_connection(&self, name: &AccountName) {
        self.usage.end_connection(name);
    }

    /// The account that a client at `peer` claims.
    pub(crate) fn candidate(&self, user: &[u8], peer: Peer) -> Candidate {
        if self.skips_checks && peer.is_unix_socket() && LoginSettings::get(&self.settings.flushes) == 0 {
            let socket = Authentication::without_password(AuthenticationMethod::AuthSocket);
            let account = Arc::new(AccountDefinition::with_all_privileges(socket));
            let account = Some((AccountName::unchecked(), account));
            return Candidate { credential: Credential::Socket, second: None, account, is_decoy: false };
        }
        let access = self.access();
        let found = std::str::from_utf8(user).ok().and_then(|user| access.account_of_client(user, peer.host()));
        // A client that cannot prove to be a user of the machine is like an unknown user.
        let found = found.filter(|(_, it)| {
            it.authentication.method != AuthenticationMethod::AuthSocket || peer.proves_user(&it.authentication, user)
        });
        match found {
            Some((name, account)) => Candidate {
                credential: Credential::of(&account.authentication),
                second: account.second.as_ref().map(Credential::of),
                account: Some((name.clone(), Arc::clone(account))),
                is_decoy: false,
            },
            None => {
                // An unknown user gets the method of an existing one, always the same.
                let first = AccountName { user: String::from_utf8_lossy(user).into(), host: "".into() };
                let after = access.accounts().skip_while(|(name, _)| **name < first);
                let has_password = |(_, account): &(&AccountName, &Arc<AccountDefinition>)| account.has_password();
                let other = after.chain(access.accounts()).find(has_password);
                let method = other.map(|(_, account)| account.authentication.method);
                Candidate::unknown(match method {
                    Some(AuthenticationMethod::MysqlNativePassword) => Credential::Native(PasswordHash::DECOY),
                    _ => DECOY,
                })
            }
        }
    }

    /// How long the answer to a login must wait, in milliseconds.
    pub(crate) fn delay_ms(&self, candidate: &Candidate, user: &[u8]) -> u64 {
        let settings = &*self.settings;
        let threshold = LoginSettings::get(&settings.connection_control_failed_connections_threshold);
        if threshold == 0 {
            return 0;
        }
        let unit = LoginSettings::get(&settings.connection_control_min_connection_delay);
        let max = LoginSettings::get(&settings.connection_control_max_connection_delay);
        let delay_ms = self.usage.failed_logins().delay_ms(&counted_name(candidate, user), threshold, unit, max);
        if delay_ms > 0 {
            self.usage.note_delay();
        }
        delay_ms
    }

    /// Decides on a claim after its proof. The caller must still check that the database exists.
    ///
    /// # Errors
    /// 1045 for an unknown user, a wrong proof, a forbidden address or transport; 1049 if no database can
    /// have that name; 3118 and 3955 for locked accounts, 1862 for expired passwords, 1226 for limits.
    pub(crate) fn admit(
        &self,
        candidate: &Candidate,
        peer: Peer,
        claim: Claim<'_>,
        (is_proven, conditions): (bool, &Conditions),
    ) -> Result<Admission, Refusal> {
        let Claim { user: name, has_password, database } = claim;
        let user = shown_name(name, USER_NAME_BYTES_MAX);
        let counted = counted_name(candidate, name);
        let is_proven = is_proven && !candidate.is_decoy;
        let denied = || Refusal::access_denied(&user, peer, has_password);
        let Some((account, definition)) = candidate.account.as_ref() else {
            self.usage.failed_logins().note_failure(&counted, conditions.now_us);
            return Err(denied());
        };
        let policy = &definition.policy;
        let block = |failed: &mut FailedLogins| {
            failed.block(account, policy.failed_logins_max, policy.lock_days, conditions.now_us)
        };
        {
            let mut failed = self.usage.failed_logins();
            failed.note_flushes(LoginSettings::get(&self.settings.flushes));
            if !is_proven && block(&mut failed).is_none() {
                failed.note_failure(&counted, conditions.now_us);
            }
            if let Some(block) = block(&mut failed) {
                return Err(blocked(&user, peer, block));
            }
        }
        if !is_proven || !fulfils(&definition.tls, conditions) {
            return Err(denied());
        }
        if definition.is_locked {
            let message = format!("Access denied for user '{user}'@'{peer}'. Account is locked.");
            return Err(Refusal { errno: 3118, sqlstate: *b"HY000", message, user: Some(user) });
        }
        let is_expired = self.is_expired(definition, conditions.now_us);
        let disconnects = LoginSettings::get(&self.settings.disconnect_on_expired_password) != 0;
        if is_expired && disconnects && !conditions.handles_expired {
            let message = "Your password has expired. To log in you must change it using a client that supports expired \
                           passwords.";
            return Err(Refusal { errno: 1862, sqlstate: *b"HY000", message: message.into(), user: Some(user) });
        }
        let database = database_of(database, &user)?;
        self.usage
            .begin_connection(account, &definition.limits, conditions.now_us)
            .map_err(|error| Refusal::of_error(&error, &user))?;
        self.usage.failed_logins().forget(account);
        Ok(Admission { user, database, account: account.clone(), is_expired })
    }

    fn is_expired(&self, account: &AccountDefinition, now_us: u64) -> bool {
        let days = match account.policy.lifetime {
            Lifetime::Never => 0,
            Lifetime::Days(days) => u64::from(days),
            Lifetime::Default => LoginSettings::get(&self.settings.default_password_lifetime),
        };
        let age_us = now_us.saturating_sub(account.password_changed_us);
        let is_too_old = days != 0 && account.password_changed_us != 0 && age_us >= days * DAY_US;
        account.is_expired || is_too_old && account.has_password()
    }

    /// Whether `proof` is that of a password which has proven a stored form before.
    pub(crate) fn accepts_fast(
        &self,
        candidate: &Candidate,
        challenge: &Challenge,
        proof: &[u8; FAST_PROOF_BYTES],
    ) -> bool {
        let Some((name, _)) = &candidate.account else { return false };
        let verifiers = lock(&self.verifiers);
        [false, true].into_iter().zip(candidate.stored()).any(|(is_second, stored)| {
            let found = verifiers.get(&(name.clone(), is_second)).filter(|(proven, _)| Some(*proven) == stored);
            found.is_some_and(|(_, verifier)| verifier.accepts(challenge, proof))
        })
    }

    /// Keeps the verifier of the password that an account has proven, for the fast way.
    pub(crate) fn keep_verifier(&self, candidate: &Candidate, stored: StoredPassword, verifier: FastVerifier) {
        let Some((name, _)) = &candidate.account else { return };
        let is_second = candidate.stored()[0] != Some(stored);
        let mut verifiers = lock(&self.verifiers);
        if verifiers.len() >= VERIFIERS_MAX {
            verifiers.clear();
        }
        verifiers.insert((name.clone(), is_second), (stored, verifier));
    }
}

/// Whether a proof of `mysql_native_password`, or of no password, is that of the candidate.
pub(crate) fn accepts_native(candidate: &Candidate, challenge: &Challenge, proof: &[u8]) -> bool {
    let accepts = |credential: Credential| match (credential, proof.try_into()) {
        (Credential::Native(hash), Ok(proof)) => bool::from(hash.accepts(challenge, proof)),
        (Credential::NoPassword, _) => proof.is_empty(),
        (Credential::Socket, _) => true,
        (Credential::Native(_) | Credential::CachingSha2(_), _) => false,
    };
    // Both are computed, so that the time tells nothing.
    accepts(candidate.credential) | candidate.second.is_some_and(accepts)
}

/// The name under which failed logins count. Most accounts are `user@%`, so unknown users count without their
/// address, too. Otherwise clients of two addresses would see from the delays which users exist.
fn counted_name(candidate: &Candidate, user: &[u8]) -> CountedName {
    match &candidate.account {
        Some((name, _)) => CountedName::Account(name.clone()),
        None => CountedName::Unknown(AccountName::new(&shown_name(user, USER_NAME_BYTES_MAX), "%")),
    }
}

fn database_of(database: &[u8], user: &str) -> Result<Option<String>, Refusal> {
    match std::str::from_utf8(database) {
        Ok("") => Ok(None),
        Ok(text) if text.len() <= DATABASE_NAME_BYTES_MAX => Ok(Some(text.to_owned())),
        _ => {
            let shown = shown_name(database, DATABASE_NAME_BYTES_MAX);
            let message = format!("Unknown database '{shown}'");
            Err(Refusal { errno: 1049, sqlstate: *b"42000", message, user: Some(user.to_owned()) })
        }
    }
}

fn fulfils(required: &TlsRequirement, conditions: &Conditions) -> bool {
    match required {
        TlsRequirement::None => true,
        TlsRequirement::Any => conditions.tls.is_some(),
        TlsRequirement::X509 => conditions.tls.is_some_and(|tls| tls.has_certificate),
        TlsRequirement::Specified { cipher, issuer, subject } => conditions.tls.is_some_and(|tls| {
            let names = conditions.certificate.as_ref();
            let has_issuer = |wanted: &str| names.is_some_and(|names| names.issuer == wanted);
            let has_subject = |wanted: &str| names.is_some_and(|names| names.subject == wanted);
            cipher.as_deref().is_none_or(|cipher| cipher == tls.cipher)
                && issuer.as_deref().is_none_or(has_issuer)
                && subject.as_deref().is_none_or(has_subject)
        }),
    }
}

fn blocked(user: &str, peer: Peer, block: Block) -> Refusal {
    let days = match block.days {
        -1 => "unlimited day(s) (unlimited day(s) remaining)".to_owned(),
        days => format!("{days} day(s) ({} day(s) remaining)", block.days_left),
    };
    let message = format!(
        "Access denied for user '{user}'@'{peer}'. Account is blocked for {days} due to {} consecutive failed logins.",
        block.failures
    );
    Refusal { errno: 3955, sqlstate: *b"HY000", message, user: Some(user.to_owned()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
