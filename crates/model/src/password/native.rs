//! The stored form of `mysql_native_password`, SHA1(SHA1(password)), and the proofs of its clients:
//! SHA1(password) masked with SHA1(challenge, kept hash). The password itself is never sent.

use std::fmt;

use sha1::{Digest, Sha1};
use subtle::{Choice, ConstantTimeEq};

const SHA1_BYTES: usize = 20;

/// The stored form of a password: SHA1(SHA1(password)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash([u8; SHA1_BYTES]);

impl PasswordHash {
    /// A hash that no known password has.
    pub const DECOY: PasswordHash = PasswordHash([0; SHA1_BYTES]);

    /// Hashes a password.
    pub fn of_password(password: &[u8]) -> Self {
        Self(sha1(&sha1(password)))
    }

    /// Wraps a hash that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; SHA1_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads `*` and 40 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<PasswordHash> {
        let digits = std::str::from_utf8(text.strip_prefix(b"*")?).ok()?;
        if digits.len() != 2 * SHA1_BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; SHA1_BYTES];
        for (position, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * position..2 * position + 2], 16).ok()?;
        }
        Some(PasswordHash(bytes))
    }

    /// `*` and 40 hexadecimal digits, as `mysql.user` shows it.
    pub fn encode(&self) -> Vec<u8> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        format!("*{digits}").into_bytes()
    }

    /// Whether this is the hash of the password. The comparison takes constant time.
    pub fn is_of(&self, password: &[u8]) -> bool {
        PasswordHash::of_password(password).0.ct_eq(&self.0).into()
    }

    /// Whether `proof` was made from the password and `challenge`. The comparison takes constant time.
    pub fn accepts(&self, challenge: &[u8], proof: &[u8; SHA1_BYTES]) -> Choice {
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

/// The proof of a password for a challenge, as clients send it.
pub fn proof_of_password(password: &[u8], challenge: &[u8]) -> [u8; SHA1_BYTES] {
    let mut proof = sha1(password);
    let mut mask = Sha1::new();
    mask.update(challenge);
    mask.update(sha1(&proof));
    for (byte, mask) in proof.iter_mut().zip(mask.finalize()) {
        *byte ^= mask;
    }
    proof
}

fn sha1(bytes: &[u8]) -> [u8; SHA1_BYTES] {
    Sha1::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_hash_is_mysqls() {
        let hash = PasswordHash::of_password(b"password");
        assert_eq!(hash.encode(), b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(PasswordHash::parse(&hash.encode()), Some(hash));
        assert_eq!(PasswordHash::parse(b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1"), None);
        assert_eq!(PasswordHash::parse("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1Eé".as_bytes()), None);
        assert!(hash.is_of(b"password") && !hash.is_of(b"passwort"));
        assert_eq!(format!("{hash:?}"), "PasswordHash(..)");
    }
}
