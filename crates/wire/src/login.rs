//! The frames between greeting and login: the change to TLS, and the proofs of `caching_sha2_password`.
//!
//! A client that wants TLS sends [`encode_start_tls`] in answer to the greeting. The bytes behind the frame
//! are those of the TLS handshake, in which the login follows. A node that has no TLS answers with *failed*.
//!
//! An account with `caching_sha2_password` has no use for the proof of a login. The node then asks for
//! another ([`WantedProof`]), which the client sends with [`encode_proof`].

use super::field::{FieldReader, Malformed};
use super::frame::{Frame, begin_frame, end_frame};

/// Kind of the frame after which the client begins a TLS handshake.
pub const START_TLS: u8 = 0x02;
/// Kind of the frame with the proof that the node has asked for.
pub const PROOF: u8 = 0x03;
/// Kind of the frame in which the node asks for a proof.
pub const WANTED_PROOF: u8 = 0x86;

/// The proof that a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WantedProof {
    /// The 32 bytes of the fast way of `caching_sha2_password`.
    CachingSha2 = 1,
    /// The password itself, on a connection that nobody else can read.
    Password = 2,
}

impl WantedProof {
    /// Appends the frame.
    pub fn encode(self, out: &mut Vec<u8>) {
        append(WANTED_PROOF, &[self as u8], out);
    }

    /// Reads a frame of kind [`WANTED_PROOF`].
    ///
    /// # Errors
    /// The payload is malformed, or the client does not know the proof.
    pub fn parse(payload: &[u8]) -> Result<WantedProof, Malformed> {
        let mut fields = FieldReader::new(payload);
        fields.u32("number")?;
        let wanted = fields.u8("proof")?;
        fields.expect_end()?;
        [WantedProof::CachingSha2, WantedProof::Password]
            .into_iter()
            .find(|known| *known as u8 == wanted)
            .ok_or(Malformed { field: "proof" })
    }
}

/// Appends the frame after which a TLS handshake begins.
pub fn encode_start_tls(out: &mut Vec<u8>) {
    append(START_TLS, &[], out);
}

/// Appends a proof.
pub fn encode_proof(proof: &[u8], out: &mut Vec<u8>) {
    append(PROOF, proof, out);
}

/// The proof in a frame; `None` if the frame is another, or too short.
pub fn parse_proof(frame: Frame<'_>) -> Option<&[u8]> {
    let (_, proof) = frame.payload.split_first_chunk::<4>().filter(|_| frame.kind == PROOF)?;
    Some(proof)
}

/// Appends a frame with the number 0, as that of a login.
fn append(kind: u8, contents: &[u8], out: &mut Vec<u8>) {
    let start = begin_frame(kind, out);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(contents);
    // Cannot be too long: a proof is a few bytes, and a password is shorter than a frame.
    let _ = end_frame(start, out);
}
