//! The users of this server, and the arithmetic of `mysql_native_password`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use sha1::{Digest, Sha1};
use subtle::{Choice, ConstantTimeEq};

use crate::mysql::wire::greeting::SALT_BYTES;

const SHA1_BYTES: usize = 20;

/// What the server keeps of a password: SHA1(SHA1(password)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash([u8; SHA1_BYTES]);

impl PasswordHash {
    /// The hash of a password.
    pub fn of_password(password: &[u8]) -> Self {
        Self(sha1(&sha1(password)))
    }

    /// A hash as kept elsewhere.
    pub const fn from_bytes(bytes: [u8; SHA1_BYTES]) -> Self {
        Self(bytes)
    }

    /// Whether `proof` was made from the password and `salt`. The time does not depend on where they differ.
    fn accepts(&self, salt: &[u8; SALT_BYTES], proof: &[u8; SHA1_BYTES]) -> Choice {
        let mut mask = Sha1::new();
        mask.update(salt);
        mask.update(self.0);
        let mask: [u8; SHA1_BYTES] = mask.finalize().into();
        let mut password_hash = *proof;
        for (byte, mask) in password_hash.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        sha1(&password_hash).ct_eq(&self.0)
    }
}

/// A hash is as good as a password to this method, so it is never printed.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(..)")
    }
}

/// The proof a client makes from `password` for the challenge `salt`; empty for an empty password.
pub fn password_proof(password: &[u8], salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = sha1(password);
    let mut mask = Sha1::new();
    mask.update(salt);
    mask.update(sha1(&stage1));
    let mask: [u8; SHA1_BYTES] = mask.finalize().into();
    stage1.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// A challenge from random bytes: no zero byte, because it travels in zero-terminated strings, and each below 128.
pub fn salt_from_random(random: [u8; SALT_BYTES]) -> [u8; SALT_BYTES] {
    random.map(|byte| byte % 127 + 1)
}

/// What one user may do to get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    password_hash: Option<PasswordHash>,
    loopback_only: bool,
}

impl Account {
    /// An account with a password, open to every address. An empty password is none.
    pub fn with_password(password: &[u8]) -> Self {
        match password {
            [] => Self::without_password(),
            _ => Self { password_hash: Some(PasswordHash::of_password(password)), loopback_only: false },
        }
    }

    /// An account without a password, which only clients on this machine can use.
    pub const fn without_password() -> Self {
        Self { password_hash: None, loopback_only: true }
    }

    /// The same account, closed to clients on other machines.
    pub const fn loopback_only(self) -> Self {
        Self { loopback_only: true, ..self }
    }
}

/// The users of this server. Names compare as bytes.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    accounts: BTreeMap<Vec<u8>, Account>,
}

impl Accounts {
    /// No user at all.
    pub const fn empty() -> Self {
        Self { accounts: BTreeMap::new() }
    }

    /// The user `root`, without a password, over loopback only.
    pub fn with_local_root() -> Self {
        let mut accounts = Self::empty();
        accounts.insert("root", Account::without_password());
        accounts
    }

    /// Adds or replaces a user.
    pub fn insert(&mut self, user: &str, account: Account) {
        self.accounts.insert(user.as_bytes().to_vec(), account);
    }

    /// Whether `proof` opens the account of `user` to a client at `peer`. An unknown user costs the same work as a wrong
    /// password, so that names cannot be found out by time.
    pub(super) fn admits(&self, user: &[u8], peer: Peer, salt: &[u8; SALT_BYTES], proof: &[u8]) -> bool {
        const NOBODY: Account = Account { password_hash: Some(PasswordHash([0; SHA1_BYTES])), loopback_only: true };
        let found = self.accounts.get(user);
        let account = found.unwrap_or(&NOBODY);
        let proven = match (&account.password_hash, <&[u8; SHA1_BYTES]>::try_from(proof)) {
            (Some(hash), Ok(proof)) => bool::from(hash.accepts(salt, proof)),
            (None, _) => proof.is_empty(),
            (Some(_), Err(_)) => false,
        };
        proven && found.is_some() && (peer.is_loopback() || !account.loopback_only)
    }
}

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(IpAddr);

impl Peer {
    /// A client at this address.
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    /// Whether the client is on this machine.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

/// The host part of an account name: `localhost` for this machine, else the address.
impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_loopback() { formatter.write_str("localhost") } else { self.0.fmt(formatter) }
    }
}

fn sha1(bytes: &[u8]) -> [u8; SHA1_BYTES] {
    Sha1::digest(bytes).into()
}
