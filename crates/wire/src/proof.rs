//! The proof of a password, as `mysql_native_password` has it: the password never travels, and the server keeps only its double
//! hash.

use sha1::{Digest, Sha1};

use super::SALT_BYTES;

/// The proof made from `password` for the challenge `salt`; empty for an empty password.
pub fn password_proof(password: &[u8], salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |bytes: &[u8]| -> [u8; 20] { Sha1::digest(bytes).into() };
    let once = hash(password);
    let mask = Sha1::new().chain_update(salt).chain_update(hash(&once)).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}
