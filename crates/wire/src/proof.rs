//! Proof of a password, as in `mysql_native_password`: the password itself is never sent, and the server
//! stores only its double hash.

use sha1::{Digest, Sha1};

use super::SALT_BYTES;

/// The proof of `password` for the challenge `salt`: `SHA1(password) XOR SHA1(salt, SHA1(SHA1(password)))`.
/// It has 20 bytes, or none for an empty password.
pub fn password_proof(password: &[u8], salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |bytes: &[u8]| -> [u8; 20] { Sha1::digest(bytes).into() };
    let once = hash(password);
    let mask = Sha1::new().chain_update(salt).chain_update(hash(&once)).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}
