//! The hello of two nodes: four messages at the beginning of a connection, by which each side proves that it
//! has the cluster's key. The layout is in `docs/format.md`, "Hello between nodes".
//!
//! 1. The initiator sends its identity and a nonce, a number used once.
//! 2. The acceptor answers with its identity, its own nonce and its proof.
//! 3. The initiator sends its proof and how much it has received on the channel.
//! 4. The acceptor answers whether it accepts, and how much it has received.
//!
//! An initiator that refuses the acceptor's incarnation says so in place of message 3, with the same proof.
//!
//! A proof is the HMAC-SHA256 of all bytes exchanged so far under the cluster's key. It covers the other
//! side's fresh nonce, so a recorded hello proves nothing later. It covers the kind of its message, so no
//! message can be sent back to its author. The acceptor trusts nothing before message 3, and until then it
//! keeps [`HelloReader`]'s few bytes only.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::address::NodeId;

use super::frame::{long, word};

/// Maximum size of any message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 128;

/// A number used once, drawn from a source fit for secrets.
pub type Nonce = [u8; 32];

/// The first bytes of every message. The last one is the version of hellos and frames.
const MAGIC: [u8; 4] = *b"JNL\x01";
pub(super) const PREFIX_BYTES: usize = 12;
const IDENTITY_BYTES: usize = 56;
pub(super) const PROOF_BYTES: usize = 32;
const HELLO_BYTES: usize = PREFIX_BYTES + IDENTITY_BYTES;
const CHALLENGE_BYTES: usize = HELLO_BYTES + 8 + PROOF_BYTES;
const RESULT_BYTES: usize = PREFIX_BYTES + 12 + PROOF_BYTES;

/// The kind of a message, in its fifth byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hello = 1,
    Challenge = 2,
    Proof = 3,
    Verdict = 4,
    /// In place of a challenge. Not proven, so it may be anybody's.
    Refusal = 5,
    /// In place of a hello: see `introduction.rs`.
    Question = 6,
    /// In place of a proof: the initiator refuses the acceptor.
    Rejection = 7,
}

/// The secret that all nodes of a cluster share.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey(pub [u8; 32]);

impl fmt::Debug for ClusterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClusterKey(..)")
    }
}

/// One node as it introduces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster: u128,
    /// The node.
    pub node: NodeId,
    /// Number that the node got at its admission; never used again.
    pub incarnation: u32,
}

/// The channel that a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelId {
    /// The channel, from 0.
    pub channel: u8,
    /// Number of channels between the two nodes.
    pub channels: u8,
}

/// How far a node has come, told at the end of a hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// All frames of the channel up to this number were received from the other side's incarnation.
    pub received: u64,
    /// The node's membership epoch.
    pub epoch: u32,
}

/// Why a node refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Refusal {
    /// The bytes are no message of this protocol.
    Malformed = 1,
    /// The two programs have no version of the signals' encoding in common.
    Version = 2,
    /// The other node belongs to another cluster.
    Cluster = 3,
    /// The hello is meant for another node.
    Target = 4,
    /// No such node belongs to the cluster.
    Stranger = 5,
    /// The other side does not have the cluster's key.
    Key = 6,
    /// The other node's incarnation was evicted.
    Evicted = 7,
    /// A later incarnation of the other node was accepted before.
    Incarnation = 8,
    /// The two nodes disagree on the number of channels.
    Channels = 9,
    /// The refusing node makes the connections between the two. The answer shows that it lives.
    Role = 10,
    /// The other side has no certificate of the cluster's authority for its node.
    Certificate = 11,
    /// The certificate of the other side has expired, or is not valid yet.
    Expired = 12,
    /// The bytes of the other side are not those of the encryption that is demanded.
    Unencrypted = 13,
    /// The two programs have different layouts of signals under the same version.
    Layouts = 14,
}

impl Refusal {
    const ALL: [Refusal; 14] = [
        Self::Malformed,
        Self::Version,
        Self::Cluster,
        Self::Target,
        Self::Stranger,
        Self::Key,
        Self::Evicted,
        Self::Incarnation,
        Self::Channels,
        Self::Role,
        Self::Certificate,
        Self::Expired,
        Self::Unencrypted,
        Self::Layouts,
    ];

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| *refusal as u16 == number)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "the bytes are no hello of a Junctor node",
            Self::Version => "the two programs have no version of their signals in common",
            Self::Cluster => "the node belongs to another cluster",
            Self::Target => "the hello is meant for another node",
            Self::Stranger => "no such node belongs to the cluster",
            Self::Key => "the node does not have the cluster's key",
            Self::Evicted => "the node's incarnation was evicted",
            Self::Incarnation => "a later incarnation of the node was accepted before",
            Self::Channels => "the nodes disagree on the number of channels",
            Self::Role => "the refusing node makes the connections between the two",
            Self::Certificate => "the node has no certificate of the cluster for its number",
            Self::Expired => "the certificate of the node has expired or is not valid yet",
            Self::Unencrypted => "the node does not encrypt its connections as it must",
            Self::Layouts => "the programs differ in the layouts of their signals, although the versions are equal",
        })
    }
}

/// The own side of every hello.
#[derive(Clone, Debug)]
pub struct HelloSettings {
    /// This node.
    pub own: Identity,
    /// The cluster's key.
    pub key: ClusterKey,
    /// The first and the last version of the signals' encoding that this node speaks.
    pub versions: (u16, u16),
    /// The fingerprint of the layouts of all signals in a version.
    pub layouts: fn(u16) -> u64,
}

/// Collects the bytes of one message. Keeps at most [`MESSAGE_BYTES_MAX`] bytes.
#[derive(Clone, Debug, Default)]
pub struct HelloReader {
    bytes: Vec<u8>,
}

impl HelloReader {
    /// The next message once it is complete. Takes the bytes it uses from `input`.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        loop {
            let wanted = match self.bytes.len() {
                0..PREFIX_BYTES => PREFIX_BYTES,
                _ => usize::from(u16::from_le_bytes([self.bytes[6], self.bytes[7]])),
            };
            let is_known = self.bytes.iter().zip(MAGIC).all(|(&byte, magic)| byte == magic);
            if !is_known || !(PREFIX_BYTES..=MESSAGE_BYTES_MAX).contains(&wanted) {
                return Err(Refusal::Malformed);
            }
            if self.bytes.len() == wanted {
                return Ok(Some(std::mem::take(&mut self.bytes)));
            }
            if input.is_empty() {
                return Ok(None);
            }
            let (taken, rest) = input.split_at((wanted - self.bytes.len()).min(input.len()));
            self.bytes.extend_from_slice(taken);
            *input = rest;
        }
    }
}

/// The initiator after its hello.
#[derive(Clone, Debug)]
pub struct Initiator {
    settings: HelloSettings,
    peer: NodeId,
    channel: ChannelId,
    version: u16,
    transcript: Vec<u8>,
}

/// The acceptor after it has received a hello.
#[derive(Clone, Debug)]
pub struct Acceptor {
    key: ClusterKey,
    peer: Identity,
    channel: ChannelId,
    version: u16,
    transcript: Vec<u8>,
}

/// What one side of a hello says to the other, which has proven that it has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The initiator goes on, or frames follow the acceptor's last message.
    Accepted(Position),
    /// The connection is closed.
    Refused(Refusal),
}

impl Initiator {
    /// Begins a hello; the second value is to be sent.
    pub fn begin(settings: HelloSettings, peer: NodeId, channel: ChannelId, nonce: Nonce) -> (Self, Vec<u8>) {
        let mut message = prefix(Kind::Hello, HELLO_BYTES, settings.versions);
        put_identity(&mut message, &settings.own, peer, channel, &nonce);
        (Self { settings, peer, channel, version: 0, transcript: message.clone() }, message)
    }

    /// The identity in a challenge, before anything about it is proven; `None` for any other message.
    pub fn peer_of(&self, message: &[u8]) -> Option<Identity> {
        (kind(message) == Some(Kind::Challenge) && message.len() == CHALLENGE_BYTES).then(|| identity(message).0)
    }

    /// Takes the acceptor's answer. Returns the acceptor's identity, and the message with the verdict on it.
    pub fn on_challenge(&mut self, message: &[u8], verdict: Verdict) -> Result<(Identity, Vec<u8>), Refusal> {
        match kind(message) {
            Some(Kind::Challenge) if message.len() == CHALLENGE_BYTES => {}
            Some(Kind::Refusal) if message.len() == PREFIX_BYTES => {
                return Err(Refusal::from_number(word(message, 8) as u16).unwrap_or(Refusal::Malformed));
            }
            _ => return Err(Refusal::Malformed),
        }
        verify(&self.settings.key, &mut self.transcript, message)?;
        let (peer, target, channel) = identity(message);
        let version = word(message, 8) as u16;
        if !(self.settings.versions.0..=self.settings.versions.1).contains(&version) {
            return Err(Refusal::Version);
        }
        if long(message, HELLO_BYTES) != (self.settings.layouts)(version) {
            return Err(Refusal::Layouts);
        }
        self.version = version;
        check_identity(&self.settings.own, &peer, target)?;
        if peer.node != self.peer || channel != self.channel {
            return Err(Refusal::Target);
        }
        let message = match verdict {
            Verdict::Accepted(position) => result(Kind::Proof, 0, position),
            Verdict::Refused(refusal) => result(Kind::Rejection, refusal as u16, Position::default()),
        };
        Ok((peer, prove(&self.settings.key, &mut self.transcript, message)))
    }

    /// The version of the signals' encoding, once the challenge was taken.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Takes the acceptor's last message.
    pub fn on_verdict(&mut self, message: &[u8]) -> Result<Verdict, Refusal> {
        if kind(message) != Some(Kind::Verdict) || message.len() != RESULT_BYTES {
            return Err(Refusal::Malformed);
        }
        verify(&self.settings.key, &mut self.transcript, message)?;
        match word(message, 8) as u16 {
            0 => Ok(Verdict::Accepted(position(message))),
            number => Ok(Verdict::Refused(Refusal::from_number(number).ok_or(Refusal::Malformed)?)),
        }
    }
}

impl Acceptor {
    /// Takes a hello. Returns the acceptor and the message to be sent.
    pub fn on_hello(settings: &HelloSettings, message: &[u8], nonce: Nonce) -> Result<(Self, Vec<u8>), Refusal> {
        if kind(message) != Some(Kind::Hello) {
            return Err(Refusal::Malformed);
        }
        let (oldest, newest) = (word(message, 8) as u16, (word(message, 8) >> 16) as u16);
        let version = newest.min(settings.versions.1);
        if version < oldest || version < settings.versions.0 {
            return Err(Refusal::Version);
        }
        if message.len() != HELLO_BYTES {
            return Err(Refusal::Malformed);
        }
        let (peer, target, channel) = identity(message);
        check_identity(&settings.own, &peer, target)?;
        if channel.channel >= channel.channels {
            return Err(Refusal::Channels);
        }
        let mut transcript = message.to_vec();
        let mut challenge = prefix(Kind::Challenge, CHALLENGE_BYTES, (version, 0));
        put_identity(&mut challenge, &settings.own, peer.node, channel, &nonce);
        challenge.extend_from_slice(&(settings.layouts)(version).to_le_bytes());
        let challenge = prove(&settings.key, &mut transcript, challenge);
        Ok((Self { key: settings.key.clone(), peer, channel, version, transcript }, challenge))
    }

    /// The initiator's identity, not proven before [`Acceptor::on_proof`].
    pub fn peer(&self) -> Identity {
        self.peer
    }

    /// The version of the signals' encoding.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The channel that the connection is for.
    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// Takes the initiator's proof: how far the initiator has come, or why it refuses this node.
    pub fn on_proof(&mut self, message: &[u8]) -> Result<Verdict, Refusal> {
        let kind = kind(message).filter(|kind| matches!(kind, Kind::Proof | Kind::Rejection));
        if kind.is_none() || message.len() != RESULT_BYTES {
            return Err(Refusal::Malformed);
        }
        verify(&self.key, &mut self.transcript, message)?;
        match kind {
            Some(Kind::Rejection) => {
                let refusal = Refusal::from_number(word(message, 8) as u16).ok_or(Refusal::Malformed)?;
                Ok(Verdict::Refused(refusal))
            }
            _ => Ok(Verdict::Accepted(position(message))),
        }
    }

    /// The message that ends the hello.
    pub fn verdict(mut self, verdict: Verdict) -> Vec<u8> {
        let message = match verdict {
            Verdict::Accepted(position) => result(Kind::Verdict, 0, position),
            Verdict::Refused(refusal) => result(Kind::Verdict, refusal as u16, Position::default()),
        };
        prove(&self.key, &mut self.transcript, message)
    }
}

/// The message in place of a challenge.
pub fn refuse(settings: &HelloSettings, refusal: Refusal) -> Vec<u8> {
    prefix(Kind::Refusal, PREFIX_BYTES, (refusal as u16, settings.versions.1))
}

/// Both sides' check of the other's identity.
fn check_identity(own: &Identity, peer: &Identity, target: NodeId) -> Result<(), Refusal> {
    if peer.cluster != own.cluster {
        return Err(Refusal::Cluster);
    }
    if target != own.node || peer.node == own.node {
        return Err(Refusal::Target);
    }
    Ok(())
}

pub(super) fn prefix(kind: Kind, length: usize, words: (u16, u16)) -> Vec<u8> {
    let mut message = Vec::with_capacity(MESSAGE_BYTES_MAX);
    message.extend_from_slice(&MAGIC);
    message.extend_from_slice(&[kind as u8, 0]);
    message.extend_from_slice(&(length as u16).to_le_bytes());
    message.extend_from_slice(&words.0.to_le_bytes());
    message.extend_from_slice(&words.1.to_le_bytes());
    message
}

/// The node and the channel that a hello names, before anything about it is checked; `None` for any other
/// message.
pub fn route(message: &[u8]) -> Option<(NodeId, ChannelId)> {
    if kind(message) != Some(Kind::Hello) || message.len() != HELLO_BYTES {
        return None;
    }
    let (author, _, channel) = identity(message);
    Some((author.node, channel))
}

pub(super) fn kind(message: &[u8]) -> Option<Kind> {
    let kinds =
        [Kind::Hello, Kind::Challenge, Kind::Proof, Kind::Verdict, Kind::Refusal, Kind::Question, Kind::Rejection];
    kinds.into_iter().find(|&kind| message.get(4) == Some(&(kind as u8)) && message.len() >= PREFIX_BYTES)
}

fn put_identity(message: &mut Vec<u8>, own: &Identity, peer: NodeId, channel: ChannelId, nonce: &Nonce) {
    message.extend_from_slice(&own.cluster.to_le_bytes());
    message.extend_from_slice(&own.incarnation.to_le_bytes());
    message.extend_from_slice(&[own.node.0, peer.0, channel.channel, channel.channels]);
    message.extend_from_slice(nonce);
}

/// The author, the addressee and the channel of a hello or a challenge.
fn identity(message: &[u8]) -> (Identity, NodeId, ChannelId) {
    let cluster = u128::from(long(message, 12)) | u128::from(long(message, 20)) << 64;
    let own = Identity { cluster, node: NodeId(message[32]), incarnation: word(message, 28) };
    (own, NodeId(message[33]), ChannelId { channel: message[34], channels: message[35] })
}

fn result(kind: Kind, number: u16, position: Position) -> Vec<u8> {
    let mut message = prefix(kind, RESULT_BYTES, (number, 0));
    message.extend_from_slice(&position.received.to_le_bytes());
    message.extend_from_slice(&position.epoch.to_le_bytes());
    message
}

fn position(message: &[u8]) -> Position {
    Position { received: long(message, 12), epoch: word(message, 20) }
}

fn code(key: &ClusterKey, transcript: &[u8]) -> Option<Hmac<Sha256>> {
    let mut code = Hmac::<Sha256>::new_from_slice(&key.0).ok()?;
    code.update(transcript);
    Some(code)
}

/// Appends the proof to a message, and the message to the transcript.
pub(super) fn prove(key: &ClusterKey, transcript: &mut Vec<u8>, mut message: Vec<u8>) -> Vec<u8> {
    transcript.extend_from_slice(&message);
    match code(key, transcript) {
        Some(code) => message.extend_from_slice(&code.finalize().into_bytes()),
        None => crate::invariant::fail("HMAC takes keys of any length", format_args!("32 bytes are refused")),
    }
    transcript.extend_from_slice(&message[message.len() - PROOF_BYTES..]);
    message
}

/// Checks the proof at the end of a message, in constant time, and appends the message to the transcript.
pub(super) fn verify(key: &ClusterKey, transcript: &mut Vec<u8>, message: &[u8]) -> Result<(), Refusal> {
    let (content, proof) = message.split_at(message.len() - PROOF_BYTES);
    transcript.extend_from_slice(content);
    let is_right = code(key, transcript).is_some_and(|code| code.verify_slice(proof).is_ok());
    transcript.extend_from_slice(proof);
    if is_right { Ok(()) } else { Err(Refusal::Key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const CHANNEL: ChannelId = ChannelId { channel: 1, channels: 4 };
    const GOES_ON: Verdict = Verdict::Accepted(Position { received: 0, epoch: 0 });

    fn settings(node: u8) -> HelloSettings {
        let own = Identity { cluster: 0x1234_5678_9abc, node: NodeId(node), incarnation: 10 + u32::from(node) };
        HelloSettings { own, key: ClusterKey([7; 32]), versions: (1, 2), layouts: u64::from }
    }

    fn begin(nonce: u8) -> (Initiator, Vec<u8>) {
        Initiator::begin(settings(1), NodeId(2), CHANNEL, [nonce; 32])
    }

    #[test]
    fn both_sides_prove_the_key_and_learn_identity_channel_and_position() {
        let (mut initiator, hello) = begin(1);
        let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32]).unwrap();
        assert_eq!((acceptor.peer(), acceptor.channel()), (settings(1).own, CHANNEL));
        let own = Position { received: 99, epoch: 3 };
        let (peer, proof) = initiator.on_challenge(&challenge, Verdict::Accepted(own)).unwrap();
        assert_eq!(peer, settings(2).own);
        assert_eq!(acceptor.on_proof(&proof), Ok(Verdict::Accepted(own)));
        let accepted = Verdict::Accepted(Position { received: 5, epoch: 4 });
        assert_eq!((initiator.version(), acceptor.version()), (2, 2));
        assert_eq!(initiator.on_verdict(&acceptor.verdict(accepted)), Ok(accepted));
    }

    #[test]
    fn a_refusal_behind_the_proof_cannot_be_forged() {
        let (mut initiator, hello) = begin(1);
        let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32]).unwrap();
        let (_, proof) = initiator.on_challenge(&challenge, GOES_ON).unwrap();
        acceptor.on_proof(&proof).unwrap();
        let mut verdict = acceptor.verdict(Verdict::Accepted(Position::default()));
        verdict[8] = Refusal::Evicted as u8;
        assert_eq!(initiator.on_verdict(&verdict), Err(Refusal::Key));
    }

    #[test]
    fn an_initiator_proves_that_it_refuses_the_acceptor() {
        let (mut initiator, hello) = begin(1);
        let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32]).unwrap();
        let refused = Verdict::Refused(Refusal::Evicted);
        let (_, rejection) = initiator.on_challenge(&challenge, refused).unwrap();
        let mut forged = rejection.clone();
        forged[8] = Refusal::Key as u8;
        assert_eq!(acceptor.clone().on_proof(&forged), Err(Refusal::Key));
        forged.copy_from_slice(&rejection);
        forged[4] = Kind::Proof as u8;
        assert_eq!(acceptor.clone().on_proof(&forged), Err(Refusal::Key));
        assert_eq!(acceptor.on_proof(&rejection), Ok(refused));
    }

    #[test]
    fn a_recorded_hello_is_refused_when_it_is_sent_again() {
        let (mut initiator, hello) = begin(1);
        let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32]).unwrap();
        let (_, proof) = initiator.on_challenge(&challenge, GOES_ON).unwrap();
        assert!(acceptor.on_proof(&proof).is_ok());
        let (mut again, _) = Acceptor::on_hello(&settings(2), &hello, [3; 32]).unwrap();
        assert_eq!(again.on_proof(&proof), Err(Refusal::Key));
        let (mut later, _) = begin(4);
        assert_eq!(later.on_challenge(&challenge, GOES_ON), Err(Refusal::Key));
    }

    #[test]
    fn a_challenge_sent_back_to_its_author_proves_nothing() {
        let (_, hello) = begin(1);
        let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32]).unwrap();
        let mut reflected = result(Kind::Proof, 0, Position::default());
        reflected.extend_from_slice(&challenge[challenge.len() - PROOF_BYTES..]);
        assert_eq!(acceptor.on_proof(&reflected), Err(Refusal::Key));
    }

    #[test]
    fn every_flipped_bit_of_a_hello_is_refused() {
        let (_, hello) = begin(1);
        for bit in 0..hello.len() * 8 {
            let mut forged = hello.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let (mut initiator, _) = begin(1);
            let result = Acceptor::on_hello(&settings(2), &forged, [2; 32])
                .and_then(|(_, challenge)| initiator.on_challenge(&challenge, GOES_ON));
            // The reserved byte and the length are checked by the reader or covered by the proof.
            assert!(result.is_err(), "bit {bit}");
        }
    }

    #[test]
    fn strangers_and_old_versions_are_refused() {
        let refused = |change: &dyn Fn(&mut HelloSettings)| {
            let mut changed = settings(1);
            change(&mut changed);
            let (mut initiator, hello) = Initiator::begin(changed, NodeId(2), CHANNEL, [1; 32]);
            let (mut acceptor, challenge) = Acceptor::on_hello(&settings(2), &hello, [2; 32])?;
            let (_, proof) = initiator.on_challenge(&challenge, GOES_ON)?;
            acceptor.on_proof(&proof).map(|_| ())
        };
        assert_eq!(refused(&|_| ()), Ok(()));
        assert_eq!(refused(&|own| own.own.cluster = 1), Err(Refusal::Cluster));
        assert_eq!(refused(&|own| own.own.node = NodeId(2)), Err(Refusal::Target));
        assert_eq!(refused(&|own| own.key = ClusterKey([8; 32])), Err(Refusal::Key));
        assert_eq!(refused(&|own| own.versions = (0, 0)), Err(Refusal::Version));
        assert_eq!(refused(&|own| own.versions = (3, 4)), Err(Refusal::Version));
        assert_eq!(refused(&|own| own.layouts = |version| u64::from(version) + 1), Err(Refusal::Layouts));
    }

    #[test]
    fn a_reader_keeps_few_bytes_of_anything() {
        let mut random = Random::new(5);
        for _ in 0..2_000 {
            let mut bytes = vec![0; random.below(600) as usize];
            random.bytes(&mut bytes);
            if random.one_in(2) && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&MAGIC);
            }
            let (mut reader, mut input) = (HelloReader::default(), bytes.as_slice());
            while let Ok(Some(message)) = reader.read(&mut input) {
                assert!(message.len() <= MESSAGE_BYTES_MAX);
                let _ = Acceptor::on_hello(&settings(2), &message, [2; 32]);
                let _ = begin(1).0.on_challenge(&message, GOES_ON);
                let _ = begin(1).0.on_verdict(&message);
            }
            assert!(reader.bytes.capacity() <= 2 * MESSAGE_BYTES_MAX);
        }
    }

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let (_, hello) = begin(1);
        let mut reader = HelloReader::default();
        for &byte in &hello[..hello.len() - 1] {
            assert_eq!(reader.read(&mut [byte].as_slice()), Ok(None));
        }
        let tail = [hello[hello.len() - 1], 1, 2];
        let mut input = tail.as_slice();
        assert_eq!(reader.read(&mut input), Ok(Some(hello)));
        assert_eq!(input, [1, 2]);
    }
}
