//! The login of one connection, from the greeting to a verified identity. A login has the proof of
//! `mysql_native_password`. The node asks for another proof if the account has `caching_sha2_password`.

use junctor_model::access::AccountName;
use junctor_wire::login::{PROOF, START_TLS, WantedProof, parse_proof};
use junctor_wire::request::{Login, kind};
use junctor_wire::{Frame, VERSION};
use zeroize::Zeroizing;

use super::link::encode_refusal;
use crate::account::{
    Admission, Candidate, Challenge, Claim, Conditions, Credential, FAST_PROOF_BYTES, PasswordChecks, Peer, Refusal,
    accepts_native,
};
use crate::protocol::{Input, LinkContext, LoggedIn};

/// Collation of the session, as MySQL's id: utf8mb4_0900_ai_ci. The protocol supports only UTF-8.
const CHARACTER_SET: u16 = 255;

/// The login of one connection, which has one attempt.
#[derive(Debug)]
pub(super) struct LoginExchange {
    peer: Peer,
    challenge: Challenge,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The greeting was sent.
    Greeted,
    /// The node has asked for another proof.
    Wanted(WantedProof, Box<Claimed>),
    /// The password is being checked.
    Checking(Box<Claimed>, Box<PasswordChecks>),
    /// The outcome is known, and the answer is delayed.
    Delayed(Box<Claimed>, bool),
    /// The login succeeded or failed.
    Finished,
}

/// The identity that a client claims, before it is verified.
#[derive(Debug)]
struct Claimed {
    user: String,
    database: String,
    has_password: bool,
    /// The node must see the password, and others could read it on this connection.
    is_exposed: bool,
    candidate: Candidate,
}

impl LoginExchange {
    pub fn new(peer: Peer, challenge: Challenge) -> LoginExchange {
        LoginExchange { peer, challenge, state: State::Greeted }
    }

    /// Takes a request of a client that has not logged in.
    #[cold]
    pub fn on_request(&mut self, request: Frame<'_>, context: &mut LinkContext<'_>) -> Input {
        match (std::mem::replace(&mut self.state, State::Finished), request.kind) {
            (State::Greeted, START_TLS) => self.start_tls(context),
            (State::Greeted, kind::LOGIN) => self.on_login(request.payload, context),
            (State::Wanted(wanted, claimed), PROOF) => match parse_proof(request) {
                Some(proof) => self.on_proof((wanted, claimed), proof, context),
                None => refuse(&Refusal::bad_handshake("Bad handshake"), context),
            },
            _ => refuse(&Refusal::bad_handshake("Bad handshake"), context),
        }
    }

    /// Takes the next step of a check, or ends a delay.
    pub fn go_on(&mut self, context: &mut LinkContext<'_>) -> Input {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Delayed(claimed, is_proven) => self.finish(&claimed, is_proven, context),
            State::Checking(claimed, mut checks) => match checks.step(&claimed.candidate, context.accounts) {
                Some(is_right) => self.decide(claimed, is_right, context),
                None => {
                    self.state = State::Checking(claimed, checks);
                    Input::Checking
                }
            },
            _ => Input::Close,
        }
    }

    fn start_tls(&mut self, context: &mut LinkContext<'_>) -> Input {
        if context.has_tls() {
            return refuse(&Refusal::bad_handshake("Bad handshake"), context);
        }
        if context.security.is_none() {
            let message = "Bad handshake: this node has no TLS, connect without it";
            return refuse(&Refusal::bad_handshake(message), context);
        }
        self.state = State::Greeted;
        Input::StartTls
    }

    fn on_login(&mut self, payload: &[u8], context: &mut LinkContext<'_>) -> Input {
        let login = match read_login(payload, context) {
            Ok(login) => login,
            Err(refusal) => return refuse(&refusal, context),
        };
        if self.peer.is_internal() {
            let (user, account) = (login.user.to_owned(), AccountName::internal());
            let (is_expired, character_set) = (false, CHARACTER_SET);
            let login = LoggedIn { user, database: None, account, is_expired, capabilities: 0, character_set };
            return Input::LoggedIn(Box::new(login));
        }
        let mut candidate = context.accounts.candidate(login.user.as_bytes(), self.peer);
        if candidate.credential == Credential::NoPassword && !login.proof.is_empty() {
            // The answers must not reveal that the account has no password.
            candidate.become_decoy();
        }
        let claimed = Box::new(Claimed {
            user: login.user.to_owned(),
            database: login.database.to_owned(),
            has_password: !login.proof.is_empty(),
            is_exposed: false,
            candidate,
        });
        // Without a proof, there is no password to ask for.
        if matches!(claimed.candidate.credential, Credential::CachingSha2(_)) && claimed.has_password {
            return self.want(WantedProof::CachingSha2, claimed, context);
        }
        let is_proven = accepts_native(&claimed.candidate, &self.challenge, login.proof);
        self.decide(claimed, is_proven, context)
    }

    fn want(&mut self, wanted: WantedProof, claimed: Box<Claimed>, context: &mut LinkContext<'_>) -> Input {
        wanted.encode(context.out);
        self.state = State::Wanted(wanted, claimed);
        Input::Handled
    }

    /// Verifies the proof that the node has asked for. After a wrong fast one it asks for the password, so
    /// that the answer does not reveal whether the node knows the password already.
    fn on_proof(
        &mut self,
        (wanted, claimed): (WantedProof, Box<Claimed>),
        proof: &[u8],
        context: &mut LinkContext<'_>,
    ) -> Input {
        match (wanted, <&[u8; FAST_PROOF_BYTES]>::try_from(proof)) {
            (WantedProof::CachingSha2, Ok(proof)) => {
                if context.accounts.accepts_fast(&claimed.candidate, &self.challenge, proof) {
                    return self.decide(claimed, true, context);
                }
                if !context.is_private() {
                    // It may be a wrong password, so it counts as a failed login.
                    return self.decide(Box::new(Claimed { is_exposed: true, ..*claimed }), false, context);
                }
                self.want(WantedProof::Password, claimed, context)
            }
            (WantedProof::CachingSha2, Err(_)) => self.decide(claimed, false, context),
            (WantedProof::Password, _) => {
                let password = Zeroizing::new(proof.to_vec());
                match PasswordChecks::new(&claimed.candidate, &password) {
                    Some(checks) => {
                        self.state = State::Checking(claimed, Box::new(checks));
                        Input::Checking
                    }
                    None => self.decide(claimed, false, context),
                }
            }
        }
    }

    /// Decides on the login, at once or after a delay.
    fn decide(&mut self, claimed: Box<Claimed>, is_proven: bool, context: &mut LinkContext<'_>) -> Input {
        match context.accounts.delay_ms(&claimed.candidate, claimed.user.as_bytes()) {
            0 => self.finish(&claimed, is_proven, context),
            delay_ms => {
                self.state = State::Delayed(claimed, is_proven);
                Input::Delayed(delay_ms)
            }
        }
    }

    fn finish(&self, claimed: &Claimed, is_proven: bool, context: &mut LinkContext<'_>) -> Input {
        let Claimed { user, database, has_password, is_exposed, candidate } = claimed;
        let claim = Claim { user: user.as_bytes(), has_password: *has_password, database: database.as_bytes() };
        let conditions = Conditions {
            now_us: context.now_us,
            tls: context.tls(),
            certificate: candidate.requires_names().then(|| context.certificate_names()).flatten(),
            handles_expired: true,
        };
        match context.accounts.admit(candidate, self.peer, claim, (is_proven, &conditions)) {
            Ok(Admission { user, database, account, is_expired }) => {
                let character_set = CHARACTER_SET;
                let login = LoggedIn { user, database, account, is_expired, capabilities: 0, character_set };
                Input::LoggedIn(Box::new(login))
            }
            Err(refusal) if *is_exposed && refusal.errno == Refusal::ACCESS_DENIED => {
                refuse(&exposed_password(user), context)
            }
            Err(refusal) => refuse(&refusal, context),
        }
    }
}

fn read_login<'r>(payload: &'r [u8], context: &LinkContext<'_>) -> Result<Login<'r>, Refusal> {
    let login = Login::parse(payload).map_err(|_| Refusal::bad_handshake("Bad handshake"))?;
    if login.version != VERSION {
        let message = format!(
            "Bad handshake: the client speaks version {} of the native protocol, the server version {VERSION}",
            login.version
        );
        return Err(Refusal::bad_handshake(message));
    }
    if context.is_private_required() && !context.is_private() {
        return Err(Refusal::insecure_transport());
    }
    Ok(login)
}

/// 2061: the node must see the password, and the connection is not private. Unknown users get it too.
fn exposed_password(user: &str) -> Refusal {
    let message = "Authentication plugin 'caching_sha2_password' reported error: Authentication requires secure \
                   connection.";
    Refusal { errno: 2061, sqlstate: *b"HY000", message: message.into(), user: Some(user.to_owned()) }
}

fn refuse(refusal: &Refusal, context: &mut LinkContext<'_>) -> Input {
    encode_refusal(refusal, context.out);
    Input::Refused(Box::new(refusal.clone()))
}
