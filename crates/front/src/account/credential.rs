//! The forms of stored passwords, for the exchange of a login.

use junctor_model::access::{Authentication, AuthenticationMethod};
use junctor_model::password::caching_sha2::StoredPassword;

pub use junctor_model::password::native::PasswordHash;

/// Length of a login challenge in bytes.
pub const CHALLENGE_BYTES: usize = 20;

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

/// How an account proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The account has no password.
    NoPassword,
    /// `mysql_native_password`.
    Native(PasswordHash),
    /// `caching_sha2_password`.
    CachingSha2(StoredPassword),
    /// `auth_socket`: the connection proves it, the client sends nothing.
    Socket,
}

impl Credential {
    /// The credential of a stored authentication. No password matches a stored form that cannot be read.
    pub(crate) fn of(authentication: &Authentication) -> Credential {
        let stored = &authentication.stored;
        match authentication.method {
            AuthenticationMethod::AuthSocket => Credential::Socket,
            _ if stored.is_empty() => Credential::NoPassword,
            AuthenticationMethod::CachingSha2Password => {
                StoredPassword::parse(stored).map_or(DECOY, Credential::CachingSha2)
            }
            AuthenticationMethod::MysqlNativePassword => {
                Credential::Native(PasswordHash::parse(stored).unwrap_or(PasswordHash::DECOY))
            }
        }
    }
}
