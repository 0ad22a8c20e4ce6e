//! SHA-256 crypt (Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.6) in steps.
//!
//! MySQL differs in one point: it uses all 20 bytes of a salt, where the original stops after 16.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Length of a digest in bytes.
pub const DIGEST_BYTES: usize = 32;

/// The computation of one digest. Its cost grows with the number of rounds, so that the caller divides it:
/// 5,000 rounds take milliseconds.
pub struct Sha256Crypt {
    /// As long as the password.
    password: Vec<u8>,
    /// As long as the salt.
    salt: Vec<u8>,
    digest: [u8; DIGEST_BYTES],
    round: u32,
    rounds: u32,
}

impl Sha256Crypt {
    /// Begins the digest of a password.
    pub fn new(password: &[u8], salt: &[u8], rounds: u32) -> Sha256Crypt {
        let both = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
        let mut first = Sha256::new().chain_update(password).chain_update(salt);
        first.update(repeated(&both, password.len()));
        let mut bits = password.len();
        while bits > 0 {
            if bits & 1 == 1 {
                first.update(both)
            } else {
                first.update(password)
            }
            bits >>= 1;
        }
        let digest: [u8; DIGEST_BYTES] = first.finalize().into();

        let mut passwords = Sha256::new();
        for _ in 0..password.len() {
            passwords.update(password);
        }
        let mut salts = Sha256::new();
        for _ in 0..16 + usize::from(digest[0]) {
            salts.update(salt);
        }
        let password = repeated(&passwords.finalize(), password.len());
        let salt = repeated(&salts.finalize(), salt.len());
        Sha256Crypt { password, salt, digest, round: 0, rounds }
    }

    /// Computes at most `rounds` rounds. Returns the digest after the last one.
    pub fn step(&mut self, rounds: u32) -> Option<[u8; DIGEST_BYTES]> {
        let end = self.rounds.min(self.round.saturating_add(rounds));
        for round in self.round..end {
            let mut hash = Sha256::new();
            if round % 2 == 1 {
                hash.update(&self.password)
            } else {
                hash.update(self.digest)
            }
            if round % 3 != 0 {
                hash.update(&self.salt);
            }
            if round % 7 != 0 {
                hash.update(&self.password);
            }
            if round % 2 == 1 {
                hash.update(self.digest)
            } else {
                hash.update(&self.password)
            }
            self.digest = hash.finalize().into();
        }
        self.round = end;
        (self.round == self.rounds).then_some(self.digest)
    }

    /// Computes the rest of the rounds at once.
    pub fn finish(mut self) -> [u8; DIGEST_BYTES] {
        self.step(u32::MAX);
        self.digest
    }
}

impl Drop for Sha256Crypt {
    fn drop(&mut self) {
        self.password.zeroize();
        self.digest.zeroize();
    }
}

/// The state is as good as the password, so it is never printed.
impl fmt::Debug for Sha256Crypt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sha256Crypt(..)")
    }
}

/// The first `length` bytes of an endless repetition of `digest`.
fn repeated(digest: &[u8], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// The digest in crypt's base 64: 43 characters, the lowest six bits of each group first.
pub fn encode_digest(digest: &[u8; DIGEST_BYTES]) -> [u8; 43] {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = [b'.'; 43];
    // Three bytes, 10 apart modulo 30, make four characters. The order of the three rotates with each group.
    for (group, characters) in text[..40].chunks_exact_mut(4).enumerate() {
        let bytes = [group, group + 10, group + 20].map(|index| u32::from(digest[index]));
        let [high, middle, low] = match group % 3 {
            0 => bytes,
            1 => [bytes[2], bytes[0], bytes[1]],
            _ => [bytes[1], bytes[2], bytes[0]],
        };
        put_characters(high << 16 | middle << 8 | low, ALPHABET, characters);
    }
    put_characters(u32::from(digest[31]) << 8 | u32::from(digest[30]), ALPHABET, &mut text[40..]);
    text
}

fn put_characters(mut bits: u32, alphabet: &[u8; 64], characters: &mut [u8]) {
    for character in characters {
        *character = alphabet[(bits & 63) as usize];
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(password: &str, salt: &str, rounds: u32) -> String {
        let digest = Sha256Crypt::new(password.as_bytes(), salt.as_bytes(), rounds).finish();
        String::from_utf8(encode_digest(&digest).to_vec()).unwrap()
    }

    #[test]
    fn the_digests_are_those_of_the_c_library() {
        assert_eq!(text("Hello world!", "saltstring", 5000), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        assert_eq!(text("Hello world!", "saltstringsaltst", 10000), "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA");
        let long = "a very much longer text to encrypt.  This one even stretches over morethan one line.";
        assert_eq!(text(long, "anotherlongsalts", 1400), "Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1");
    }

    proptest! {
        #[test]
        fn steps_of_any_size_give_the_same_digest(
            password in prop::collection::vec(any::<u8>(), 0..80),
            steps in prop::collection::vec(1..400u32, 1..20),
        ) {
            let whole = Sha256Crypt::new(&password, b"abcdefghijklmnopqrst", 1000).finish();
            let mut stepped = Sha256Crypt::new(&password, b"abcdefghijklmnopqrst", 1000);
            let mut digest = None;
            for rounds in steps.iter().chain([&1000]) {
                digest = digest.or_else(|| stepped.step(*rounds));
            }
            prop_assert_eq!(digest, Some(whole));
        }
    }
}
