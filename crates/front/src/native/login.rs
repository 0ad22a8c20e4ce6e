//! Logins: the same users, and the same rules about where they may come from, as in the MySQL protocol.

use junctor_wire::request::{Login, kind};
use junctor_wire::{SALT_BYTES, VERSION, reply};

use crate::mysql::auth::{Accounts, Peer, Refusal, judge};

/// What a client that has proved who it is wants.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    pub user: String,
    pub database: Option<String>,
}

/// Judges the first frame of a client.
pub(crate) fn log_in(
    frame_kind: u8,
    payload: &[u8],
    (peer, salt): (Peer, &[u8; SALT_BYTES]),
    accounts: &Accounts,
) -> Result<LoggedIn, Refusal> {
    let bad = |message: String| Refusal { errno: 1043, sqlstate: *b"08S01", message };
    let login = match Login::parse(payload) {
        Ok(login) if frame_kind == kind::LOGIN => login,
        _ => return Err(bad("Bad handshake".into())),
    };
    if login.version != VERSION {
        let asked = login.version;
        return Err(bad(format!("Bad handshake: version {asked} of the native protocol is not spoken, but {VERSION}")));
    }
    let (user, database) =
        judge(accounts, peer, salt, (login.user.as_bytes(), login.proof, login.database.as_bytes()))?;
    Ok(LoggedIn { user, database })
}

/// Appends why a client is not let in, or has to go.
pub(crate) fn emit_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    reply::emit_failed(0, refusal.errno, refusal.sqlstate, &refusal.message, out);
}
