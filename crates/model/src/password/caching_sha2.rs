//! The stored form and the proofs of `caching_sha2_password`.
//!
//! A client proves its password in one of two ways. The fast way is a mask over the challenge, which the
//! server can verify only if it keeps SHA256(SHA256(password)) from an earlier login. The full way is the
//! password itself over a private connection; the server compares its slow digest with the stored one.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::sha256_crypt::{DIGEST_BYTES, Sha256Crypt, encode_digest};

/// The name of the authentication method.
pub const CACHING_SHA2_PASSWORD: &str = "caching_sha2_password";

/// Length of the salt in bytes.
pub const SALT_BYTES: usize = 20;

/// Maximum length of a password in bytes.
pub const PASSWORD_BYTES_MAX: usize = 256;

const DIGEST_CHARACTERS: usize = 43;
const PREFIX: &[u8] = b"$A$";
const ROUNDS_UNIT: u32 = 1000;

/// The stored form of a password: `$A$005$`, 20 bytes of salt, 43 characters of digest. The three digits are
/// thousands of rounds, in base 16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoredPassword {
    rounds: u32,
    salt: [u8; SALT_BYTES],
    digest: [u8; DIGEST_CHARACTERS],
}

impl StoredPassword {
    /// Length of the stored form in bytes.
    pub const BYTES: usize = PREFIX.len() + 4 + SALT_BYTES + DIGEST_CHARACTERS;

    /// Rounds of a new password.
    pub const ROUNDS: u32 = 5 * ROUNDS_UNIT;

    /// A form that no password matches, because no digest ends with this character. It costs what others
    /// cost.
    pub const DECOY: StoredPassword =
        StoredPassword { rounds: Self::ROUNDS, salt: *b"decoy.decoy.decoy.20", digest: [b'z'; DIGEST_CHARACTERS] };

    /// Stores a password, which takes milliseconds. The salt is made from 20 random bytes.
    pub fn of_password(password: &[u8], random: [u8; SALT_BYTES]) -> StoredPassword {
        // Printable characters without `$`, so that the form survives every tool that copies it.
        let salt = random.map(|byte| match byte % 93 + 33 {
            b'$' => b'~',
            character => character,
        });
        let digest = Sha256Crypt::new(password, &salt, Self::ROUNDS).finish();
        StoredPassword { rounds: Self::ROUNDS, salt, digest: encode_digest(&digest) }
    }

    /// Reads the stored form. `None` if it has another length or prefix, or asks for more than 4,095,000
    /// rounds.
    pub fn parse(stored: &[u8]) -> Option<StoredPassword> {
        let rest = stored.strip_prefix(PREFIX)?;
        let (digits, rest) = rest.split_first_chunk::<3>()?;
        let rest = rest.strip_prefix(b"$")?;
        let (salt, rest) = rest.split_first_chunk()?;
        let digest = rest.try_into().ok()?;
        let thousands = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (thousands > 0).then_some(StoredPassword { rounds: thousands * ROUNDS_UNIT, salt: *salt, digest })
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut stored = Vec::with_capacity(Self::BYTES);
        stored.extend_from_slice(format!("$A${:03X}$", self.rounds / ROUNDS_UNIT).as_bytes());
        stored.extend_from_slice(&self.salt);
        stored.extend_from_slice(&self.digest);
        stored
    }

    /// Begins the check of a password that a client sent.
    pub fn check(&self, password: &[u8]) -> PasswordCheck {
        let verifier = FastVerifier::of_password(password);
        PasswordCheck { stored: *self, verifier, digest: Sha256Crypt::new(password, &self.salt, self.rounds) }
    }
}

/// The check of a password against its stored form, in steps.
#[derive(Debug)]
pub struct PasswordCheck {
    stored: StoredPassword,
    verifier: FastVerifier,
    digest: Sha256Crypt,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The password is right. The verifier accepts its later proofs.
    Right(FastVerifier),
    /// The password is wrong.
    Wrong,
}

impl PasswordCheck {
    /// The stored form.
    pub fn stored(&self) -> StoredPassword {
        self.stored
    }

    /// Computes at most `rounds` rounds. Returns the outcome after the last one. Digests are compared in
    /// constant time.
    pub fn step(&mut self, rounds: u32) -> Option<Checked> {
        let digest = self.digest.step(rounds)?;
        let is_right = bool::from(encode_digest(&digest).ct_eq(&self.stored.digest));
        Some(if is_right { Checked::Right(self.verifier) } else { Checked::Wrong })
    }
}

/// The stored form allows its owner to try passwords, so it is never printed.
impl fmt::Debug for StoredPassword {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoredPassword(..)")
    }
}

/// SHA256(SHA256(password)): verifies proofs of the fast way. It is kept in memory only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastVerifier([u8; DIGEST_BYTES]);

impl FastVerifier {
    /// The verifier of a password.
    pub fn of_password(password: &[u8]) -> FastVerifier {
        FastVerifier(sha256(&[&sha256(&[password])]))
    }

    /// Whether a proof is that of the password and this challenge. The comparison takes constant time.
    pub fn accepts(&self, challenge: &[u8], proof: &[u8; DIGEST_BYTES]) -> bool {
        let mut once = *proof;
        mask(&mut once, &sha256(&[&self.0, challenge]));
        sha256(&[&once]).ct_eq(&self.0).into()
    }
}

impl fmt::Debug for FastVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FastVerifier(..)")
    }
}

/// The proof of a password for a challenge: SHA256(password) masked with
/// SHA256(SHA256(SHA256(password)), challenge).
pub fn proof_of_password(password: &[u8], challenge: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut proof = sha256(&[password]);
    mask(&mut proof, &sha256(&[&FastVerifier::of_password(password).0, challenge]));
    proof
}

fn mask(bytes: &mut [u8; DIGEST_BYTES], mask: &[u8; DIGEST_BYTES]) {
    for (byte, mask) in bytes.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

fn sha256(parts: &[&[u8]]) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_hex(text: &str) -> Vec<u8> {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
        text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// Two values of `mysql.user.authentication_string` of MySQL 8.0.
    #[test]
    fn the_stored_form_is_mysqls() {
        let stored = [
            (
                "foobar",
                "24412430303524031A69251C34295C4B35167C7F1E5A7B63091349503974624D34504B5A424679354856336868686F\
                 52485A736E4A733368786E427575516C73446469496537",
            ),
            (
                "testpassword123",
                "24412430303524393D02673221785B414A4E5F02073711301659116B446B76753345617A4D7530635548526D367874\
                 6F6B75564835553334346932572E332F704C4856477131",
            ),
        ];
        for (password, hex) in stored {
            let bytes = from_hex(&hex.replace(' ', ""));
            let parsed = StoredPassword::parse(&bytes).expect("MySQL's form");
            let outcome = parsed.check(password.as_bytes()).step(u32::MAX);
            assert_eq!(outcome, Some(Checked::Right(FastVerifier::of_password(password.as_bytes()))), "{password}");
            assert_eq!(parsed.check(b"wrong").step(u32::MAX), Some(Checked::Wrong));
            assert_eq!(parsed.encode(), bytes);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let good = StoredPassword::of_password(b"secret", [200; SALT_BYTES]).encode();
        assert_eq!(good.len(), StoredPassword::BYTES);
        assert!(StoredPassword::parse(&good).is_some());
        assert!(StoredPassword::parse(&good[1..]).is_none());
        assert!(StoredPassword::parse(&good[..good.len() - 1]).is_none());
        assert!(StoredPassword::parse(&[&good[..], b"."].concat()).is_none());
        assert!(StoredPassword::parse(b"").is_none());
        let zero_rounds = [b"$A$000", &good[6..]].concat();
        assert!(StoredPassword::parse(&zero_rounds).is_none());
        let no_number = [b"$A$0G5", &good[6..]].concat();
        assert!(StoredPassword::parse(&no_number).is_none());
    }

    proptest! {
        #[test]
        fn a_proof_is_accepted_for_its_password_and_challenge_alone(
            password in prop::collection::vec(any::<u8>(), 0..40),
            other in prop::collection::vec(any::<u8>(), 0..40),
            challenge: [u8; 20],
            second: [u8; 20],
        ) {
            let verifier = FastVerifier::of_password(&password);
            prop_assert!(verifier.accepts(&challenge, &proof_of_password(&password, &challenge)));
            prop_assert_eq!(verifier.accepts(&challenge, &proof_of_password(&other, &challenge)), password == other);
            prop_assert_eq!(verifier.accepts(&second, &proof_of_password(&password, &challenge)), second == challenge);
        }
    }
}
