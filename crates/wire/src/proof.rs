//! Proof of a password, as in `mysql_native_password`: the password itself is never sent, and the server
//! stores only its double hash.

use junctor_model::password::native::proof_of_password;

use super::SALT_BYTES;

/// The proof of `password` for the challenge `salt`: `SHA1(password) XOR SHA1(salt, SHA1(SHA1(password)))`.
/// It has 20 bytes, or none for an empty password.
pub fn password_proof(password: &[u8], salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    proof_of_password(password, salt).to_vec()
}
