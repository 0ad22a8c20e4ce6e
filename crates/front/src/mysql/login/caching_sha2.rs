//! The exchange of `caching_sha2_password`.

use zeroize::Zeroizing;

use super::super::wire::packet::PacketWriter;
use super::{Checking, Claim, Handshake, HandshakeStep, LoginContext, State, is_empty_proof};
use crate::account::PasswordChecks;

/// The header of a packet of the method.
const MORE_DATA: u8 = 1;
/// The server has accepted the proof.
const FAST_ACCEPTED: u8 = 3;
/// The server needs the password.
const SEND_PASSWORD: u8 = 4;
/// The client asks for the key with which it encrypts the password.
const REQUEST_KEY: &[u8] = &[2];

impl Handshake {
    /// Verifies the proof of the fast way if the server knows the password. Otherwise asks for the password,
    /// also after a wrong proof, so that the answer does not reveal which of the two was the case.
    pub(super) fn on_fast_proof(
        &mut self,
        claim: Claim,
        proof: &[u8],
        context: &mut LoginContext<'_>,
    ) -> HandshakeStep {
        if is_empty_proof(proof) {
            return self.decide(Claim { has_password: false, ..claim }, false, context);
        }
        let claim = Claim { has_password: true, ..claim };
        let Ok(proof) = proof.try_into() else { return self.decide(claim, false, context) };
        let is_proven = context.accounts.accepts_fast(&claim.candidate, &self.challenge, proof);
        let kind = if is_proven { FAST_ACCEPTED } else { SEND_PASSWORD };
        let expected_sequence = append_more_data(&[kind], context);
        if is_proven {
            // The reply to the login follows the packet just appended.
            context.sequence = context.sequence.wrapping_add(1);
            return self.decide(claim, true, context);
        }
        self.state = State::AwaitsPassword(Box::new(claim), false);
        HandshakeStep::Replied { expected_sequence }
    }

    /// Takes the password, or sends the key that encrypts it.
    pub(super) fn on_password(
        &mut self,
        (claim, has_key): (Box<Claim>, bool),
        payload: &[u8],
        context: &mut LoginContext<'_>,
    ) -> HandshakeStep {
        // Some clients ask for the key over a Unix socket too. No password looks like this: it ends with 0.
        let key = context.security.filter(|_| !context.has_tls && payload == REQUEST_KEY);
        if let Some(key) = key.and_then(|security| security.public_key()) {
            self.state = State::AwaitsPassword(claim, true);
            return HandshakeStep::Replied { expected_sequence: append_more_data(key.as_bytes(), context) };
        }
        let sent = match context.is_private && !has_key {
            true => Some(Zeroizing::new(payload.to_vec())),
            false => context.security.and_then(|security| security.decrypt(payload)).map(|mut masked| {
                for (byte, mask) in masked.iter_mut().zip(self.challenge.iter().cycle()) {
                    *byte ^= mask;
                }
                Zeroizing::new(masked)
            }),
        };
        let password = sent.as_deref().and_then(|sent| sent.strip_suffix(&[0]));
        match password.and_then(|password| PasswordChecks::new(&claim.candidate, password)) {
            Some(checks) => {
                self.state = State::Checking(Box::new(Checking { claim: *claim, checks, sequence: context.sequence }));
                HandshakeStep::Checking
            }
            None => self.decide(*claim, false, context),
        }
    }

    /// Takes the next step of a check. The context's sequence number is not used.
    pub fn continue_check(&mut self, context: &mut LoginContext<'_>) -> HandshakeStep {
        let mut checking = match std::mem::replace(&mut self.state, State::Finished) {
            State::Checking(checking) => checking,
            State::Delayed(delayed) => {
                context.sequence = delayed.sequence;
                return self.finish(delayed.claim, delayed.is_proven, context);
            }
            _ => return super::refuse(super::Refusal::bad_handshake("Bad handshake"), context),
        };
        context.sequence = checking.sequence;
        match checking.checks.step(&checking.claim.candidate, context.accounts) {
            Some(is_right) => self.decide(checking.claim, is_right, context),
            None => {
                self.state = State::Checking(checking);
                HandshakeStep::Checking
            }
        }
    }
}

/// Appends a packet of the method. Returns the sequence number after it.
fn append_more_data(data: &[u8], context: &mut LoginContext<'_>) -> u8 {
    let mut writer = PacketWriter::new(context.out, context.sequence.wrapping_add(1));
    writer.packet(|out| {
        out.push(MORE_DATA);
        out.extend_from_slice(data);
    });
    writer.sequence()
}
