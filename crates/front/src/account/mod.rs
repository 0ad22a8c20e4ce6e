//! User accounts: which users exist, from which addresses each may log in, and how a password is verified.
//! All protocols share them.
//!
//! With `mysql_native_password`, the server keeps SHA1(SHA1(password)), and the client sends SHA1(password)
//! masked with SHA1(challenge, kept hash). The password itself is never sent. `caching_sha2_password` is in
//! [`junctor_model::password`].

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use junctor_kernel::{PeerAddress, PeerCredentials};
use junctor_model::password::caching_sha2::{FastVerifier, StoredPassword};
use sha1::{Digest, Sha1};
use subtle::{Choice, ConstantTimeEq};

/// Maximum length of a user name in bytes. A longer name matches no account.
pub const USER_NAME_BYTES_MAX: usize = 96;

/// Maximum length of a database name in bytes. No database has a longer name.
pub const DATABASE_NAME_BYTES_MAX: usize = 256;

/// Length of a login challenge in bytes.
pub const CHALLENGE_BYTES: usize = 20;

const SHA1_BYTES: usize = 20;

/// Length of a proof of the fast way of `caching_sha2_password` in bytes.
pub(crate) const FAST_PROOF_BYTES: usize = 32;

/// A credential that no password matches.
pub(crate) const DECOY: Credential = Credential::CachingSha2(StoredPassword::DECOY);

/// Random bytes that a client mixes into its proof of the password. Each byte is from 1 to 127.
pub type Challenge = [u8; CHALLENGE_BYTES];

/// Derives a challenge from random bytes. MySQL sends the challenge as a zero-terminated string of seven-bit
/// characters, so zero and bytes above 127 are excluded.
pub fn challenge_from_random(random: [u8; CHALLENGE_BYTES]) -> Challenge {
    random.map(|byte| byte % 127 + 1)
}

/// The stored form of a password: SHA1(SHA1(password)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash([u8; SHA1_BYTES]);

impl PasswordHash {
    /// Hashes a password.
    pub fn of_password(password: &[u8]) -> Self {
        Self(sha1(&sha1(password)))
    }

    /// Wraps a hash that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; SHA1_BYTES]) -> Self {
        Self(bytes)
    }

    /// Whether `proof` was made from the password and `challenge`. The comparison takes constant time.
    pub(crate) fn accepts(&self, challenge: &Challenge, proof: &[u8; SHA1_BYTES]) -> Choice {
        let mut mask = Sha1::new();
        mask.update(challenge);
        mask.update(self.0);
        let mask: [u8; SHA1_BYTES] = mask.finalize().into();
        let mut password_hash = *proof;
        for (byte, mask) in password_hash.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        sha1(&password_hash).ct_eq(&self.0)
    }
}

/// The hash is as good as the password for logging in, so it is never printed.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(..)")
    }
}

/// How an account proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The account has no password.
    NoPassword,
    /// `mysql_native_password`.
    Native(PasswordHash),
    /// `caching_sha2_password`.
    CachingSha2(StoredPassword),
}

/// The conditions under which one user may log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    credential: Credential,
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
    pub const fn with_credential(credential: Credential) -> Self {
        Self { credential, loopback_only: false }
    }

    /// An account without a password, for clients on this machine only.
    pub const fn without_password() -> Self {
        Self { credential: Credential::NoPassword, loopback_only: true }
    }

    /// Restricts the account to clients on this machine.
    pub const fn loopback_only(self) -> Self {
        Self { loopback_only: true, ..self }
    }
}

/// The account that a client claims, before its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub credential: Credential,
    /// Whether a correct proof lets the client in. An unknown user and a forbidden address are examined like
    /// an account with a password, so that neither answers nor their times reveal which users exist.
    pub is_admitted: bool,
}

impl Candidate {
    /// The stored password of `caching_sha2_password`, if that is the account's method.
    pub fn stored(&self) -> Option<StoredPassword> {
        match self.credential {
            Credential::CachingSha2(stored) => Some(stored),
            Credential::NoPassword | Credential::Native(_) => None,
        }
    }
}

/// The accounts of this server. User names compare as bytes.
#[derive(Debug, Default)]
pub struct Accounts {
    accounts: BTreeMap<Vec<u8>, Account>,
    /// For the fast way of `caching_sha2_password`: the passwords of successful logins, with the stored form
    /// that each has proven. At most one for each account.
    verifiers: Mutex<BTreeMap<Vec<u8>, (StoredPassword, FastVerifier)>>,
}

impl Accounts {
    /// No accounts: nobody can log in.
    pub const fn empty() -> Self {
        Self { accounts: BTreeMap::new(), verifiers: Mutex::new(BTreeMap::new()) }
    }

    /// Only the user `root`, without a password, from this machine.
    pub fn with_local_root() -> Self {
        let mut accounts = Self::empty();
        accounts.insert("root", Account::without_password());
        accounts
    }

    /// Adds or replaces an account.
    pub fn insert(&mut self, user: &str, account: Account) {
        self.accounts.insert(user.as_bytes().to_vec(), account);
    }

    /// The account that a client at `peer` claims.
    pub(crate) fn candidate(&self, user: &[u8], peer: Peer) -> Candidate {
        match self.accounts.get(user) {
            Some(account) if peer.is_loopback() || !account.loopback_only => {
                Candidate { credential: account.credential, is_admitted: true }
            }
            _ => {
                // An unknown user gets the method of an existing one, always the same.
                let mut others = self.accounts.range(user.to_vec()..).chain(&self.accounts);
                let has_password = |(_, account): &(_, &Account)| account.credential != Credential::NoPassword;
                let other = others.find(has_password).map(|(_, account)| account.credential);
                let credential = match other {
                    Some(Credential::Native(_)) => Credential::Native(PasswordHash([0; SHA1_BYTES])),
                    _ => DECOY,
                };
                Candidate { credential, is_admitted: false }
            }
        }
    }

    /// Verifies the proof of `mysql_native_password` for the claimed account.
    ///
    /// # Errors
    /// As [`Accounts::admit`].
    pub(crate) fn verify(
        &self,
        peer: Peer,
        (challenge, proof): (&Challenge, &[u8]),
        claim: Claim<'_>,
    ) -> Result<(String, Option<String>), Refusal> {
        let candidate = self.candidate(claim.user, peer);
        let is_proven = match (candidate.credential, <&[u8; SHA1_BYTES]>::try_from(proof)) {
            (Credential::Native(hash), Ok(proof)) => bool::from(hash.accepts(challenge, proof)),
            (Credential::NoPassword, _) => proof.is_empty(),
            (Credential::Native(_) | Credential::CachingSha2(_), _) => false,
        };
        self.admit(candidate, peer, claim, is_proven)
    }

    /// Decides on a claim after its proof. Returns the names of user and database. The caller must still
    /// check that the database exists.
    ///
    /// # Errors
    /// 1045 for an unknown user, a wrong proof or a forbidden address; 1049 if no database can have that
    /// name.
    pub(crate) fn admit(
        &self,
        candidate: Candidate,
        peer: Peer,
        claim: Claim<'_>,
        is_proven: bool,
    ) -> Result<(String, Option<String>), Refusal> {
        let Claim { user: name, has_password, database } = claim;
        let user = shown_name(name, USER_NAME_BYTES_MAX);
        if !is_proven || !candidate.is_admitted {
            let using_password = if has_password { "YES" } else { "NO" };
            let message = format!("Access denied for user '{user}'@'{peer}' (using password: {using_password})");
            return Err(Refusal { errno: 1045, sqlstate: *b"28000", message, user: Some(user) });
        }
        match std::str::from_utf8(database) {
            Ok("") => Ok((user, None)),
            Ok(text) if text.len() <= DATABASE_NAME_BYTES_MAX => Ok((user, Some(text.to_owned()))),
            _ => {
                let shown = shown_name(database, DATABASE_NAME_BYTES_MAX);
                Err(Refusal {
                    errno: 1049,
                    sqlstate: *b"42000",
                    message: format!("Unknown database '{shown}'"),
                    user: Some(user),
                })
            }
        }
    }

    /// Whether `proof` is that of a password which has proven `stored` before.
    pub(crate) fn accepts_fast(
        &self,
        user: &[u8],
        stored: StoredPassword,
        challenge: &Challenge,
        proof: &[u8; FAST_PROOF_BYTES],
    ) -> bool {
        let found = self.verifiers().get(user).copied().filter(|(proven, _)| *proven == stored);
        found.is_some_and(|(_, verifier)| verifier.accepts(challenge, proof))
    }

    /// Keeps the verifier of the password that a user has proven, for the fast way.
    pub(crate) fn keep_verifier(&self, user: &[u8], stored: StoredPassword, verifier: FastVerifier) {
        self.verifiers().insert(user.to_vec(), (stored, verifier));
    }

    fn verifiers(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, (StoredPassword, FastVerifier)>> {
        self.verifiers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity that a client claims, before it is verified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub user: &'a [u8],
    /// Whether the client has sent a password or its proof.
    pub has_password: bool,
    /// Empty for none.
    pub database: &'a [u8],
}

/// Why a client was refused. Every protocol encodes it in its own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// MySQL error number.
    pub errno: u16,
    /// The SQLSTATE of the error.
    pub sqlstate: [u8; 5],
    /// Text for the client.
    pub message: String,
    /// The user whom the client claimed to be, for the audit log.
    pub user: Option<String>,
}

impl Refusal {
    /// The number of the error for what is no login.
    pub(crate) const BAD_HANDSHAKE: u16 = 1043;

    /// 1043: the bytes of a login are malformed, or request something that the server does not support.
    pub(crate) fn bad_handshake(message: impl Into<String>) -> Refusal {
        Refusal { errno: Refusal::BAD_HANDSHAKE, sqlstate: *b"08S01", message: message.into(), user: None }
    }

    /// 1040: the node has `max_connections` sessions, or the extra port its own number.
    pub(crate) fn too_many_connections() -> Refusal {
        Refusal { errno: 1040, sqlstate: *b"08004", message: "Too many connections".into(), user: None }
    }

    /// 1129: `max_connect_errors` broken logins came from the address.
    pub(crate) fn host_blocked(peer: Peer) -> Refusal {
        let message = format!(
            "Host '{peer}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"
        );
        Refusal { errno: 1129, sqlstate: *b"HY000", message, user: None }
    }

    /// 1203: the user has `max_user_connections` sessions.
    pub(crate) fn too_many_user_connections(user: &str) -> Refusal {
        let message = format!("User {user} already has more than 'max_user_connections' active connections");
        Refusal { errno: 1203, sqlstate: *b"42000", message, user: Some(user.to_owned()) }
    }

    /// 1040: the address has `max_address_connections` connections.
    pub(crate) fn too_many_address_connections(peer: Peer, maximum: u64) -> Refusal {
        let message = format!("Too many connections from '{peer}': max_address_connections allows {maximum} at a time");
        Refusal { errno: 1040, sqlstate: *b"08004", message, user: None }
    }

    /// 3159: `require_secure_transport` is on.
    pub(crate) fn insecure_transport() -> Refusal {
        let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
        Refusal { errno: 3159, sqlstate: *b"HY000", message: message.into(), user: None }
    }

    /// 3168: the node recovers its data.
    pub(crate) fn recovering() -> Refusal {
        let message = "Server isn't available: it recovers its data. Try again later".into();
        Refusal { errno: 3168, sqlstate: *b"HY000", message, user: None }
    }
}

/// The client at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    way: Way,
}

/// How a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Network,
    UnixSocket(PeerCredentials),
    Memory,
    /// The node itself.
    Internal,
}

impl Peer {
    /// The node itself, which logs in without a password and counts nowhere.
    pub(crate) fn internal() -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), way: Way::Internal }
    }

    /// Whether the client is the node itself.
    pub(crate) fn is_internal(self) -> bool {
        self.way == Way::Internal
    }

    /// A client at this address. An IPv4 address mapped to IPv6 is treated as the IPv4 address.
    pub fn new(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), way: Way::Network }
    }

    /// Whether the client runs on this machine.
    pub fn is_loopback(self) -> bool {
        self.address.is_loopback()
    }

    /// The address in the network; `None` for a client over a Unix socket or in this process.
    pub fn network_address(self) -> Option<IpAddr> {
        (self.way == Way::Network).then_some(self.address)
    }

    /// Whether the client uses a Unix socket.
    pub fn is_unix_socket(self) -> bool {
        matches!(self.way, Way::UnixSocket(_))
    }

    /// The user and the process at the other end of a Unix socket, as the operating system names them.
    pub fn credentials(self) -> Option<PeerCredentials> {
        match self.way {
            Way::UnixSocket(credentials) => Some(credentials),
            Way::Network | Way::Memory | Way::Internal => None,
        }
    }

    /// Whether nobody but the two processes and the operating system can read the connection.
    pub fn is_private(self) -> bool {
        self.way != Way::Network
    }
}

impl From<&PeerAddress> for Peer {
    fn from(address: &PeerAddress) -> Peer {
        let way = match address {
            PeerAddress::Internet(_) => Way::Network,
            PeerAddress::Unix(credentials) => Way::UnixSocket(**credentials),
            PeerAddress::Memory => Way::Memory,
        };
        Peer { way, ..Peer::new(address.ip()) }
    }
}

/// The host part of an account name: `localhost` for this machine, otherwise the address.
impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_loopback() { formatter.write_str("localhost") } else { self.address.fmt(formatter) }
    }
}

/// A name in the form for error messages: valid UTF-8, truncated to `bytes_max` bytes.
fn shown_name(name: &[u8], bytes_max: usize) -> String {
    let mut text = String::from_utf8_lossy(name).into_owned();
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

fn sha1(bytes: &[u8]) -> [u8; SHA1_BYTES] {
    Sha1::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stored_hash_is_mysqls() {
        let hash = [
            0x24, 0x70, 0xc0, 0xc0, 0x6d, 0xee, 0x42, 0xfd, 0x16, 0x18, 0xbb, 0x99, 0x00, 0x5a, 0xdc, 0xa2, 0xec, 0x9d,
            0x1e, 0x19,
        ];
        assert_eq!(PasswordHash::of_password(b"password"), PasswordHash::from_bytes(hash));
        assert_eq!(format!("{:?}", PasswordHash::from_bytes(hash)), "PasswordHash(..)");
    }

    #[test]
    fn an_empty_password_makes_a_local_account() {
        assert_eq!(Account::with_password(b""), Account::without_password());
    }

    proptest! {
        #[test]
        fn challenges_survive_zero_terminated_and_seven_bit_transport(random: [u8; CHALLENGE_BYTES]) {
            prop_assert!(challenge_from_random(random).iter().all(|byte| (1..128).contains(byte)));
        }
    }
}
