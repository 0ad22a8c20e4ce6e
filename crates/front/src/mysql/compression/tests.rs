//! Frames are read as they are written, however they arrive; wrong ones are refused.

use std::sync::atomic::AtomicBool;

use junctor_model::id::ConnectionId;
use proptest::prelude::*;

use super::*;
use crate::account::{Accounts, Peer};
use crate::mysql::Link;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::handshake_response::HandshakeResponse;
use crate::mysql::wire::packet::PacketWriter;
use crate::protocol::{Input, LinkContext, LinkOpening, ProtocolLink};

const COMMAND_BYTES_MAX: usize = 100_000;

fn next(link: &mut Link, bytes: &[u8]) -> (usize, Input, Vec<u8>) {
    let (accounts, mut out) = (Accounts::with_local_root(), Vec::new());
    let mut context = LinkContext {
        now_us: 0,
        accounts: &accounts,
        security: None,
        private_required: &AtomicBool::new(false),
        peer: &Peer::new([127, 0, 0, 1].into()),
        encryption: None,
        out: &mut out,
    };
    let (consumed, input) = link.next_input(bytes, &mut context);
    (consumed, input, out)
}

/// The link of a client that has logged in with these capabilities, after the answer to its login.
fn logged_in(capability: Capabilities) -> Link {
    let peer = Peer::new([127, 0, 0, 1].into());
    let opening = LinkOpening {
        connection: ConnectionId(1),
        peer,
        challenge: [7; 20],
        server_version: "8.0",
        command_bytes_max: COMMAND_BYTES_MAX,
        offers_tls: false,
    };
    let mut link = Link::open(&opening, &mut Vec::new());
    let response = HandshakeResponse {
        capabilities: Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | capability,
        packet_bytes_max: 0,
        charset: 45,
        user: b"root",
        auth_response: b"",
        database: b"",
        plugin: Some(b"mysql_native_password"),
        attributes: Default::default(),
        zstd_level: 22,
    };
    let mut bytes = Vec::new();
    PacketWriter::new(&mut bytes, 1).packet(|out| response.encode(out));
    let (consumed, input, out) = next(&mut link, &bytes);
    assert!(matches!(input, Input::LoggedIn(_)) && consumed == bytes.len() && out.is_empty());
    let mut answer = packets(&[b"\0\0\0".to_vec()]);
    link.finish_answer(&mut answer, false);
    assert_eq!(answer, b"\x03\0\0\x02\0\0\0", "the answer to the login is in no frame");
    link
}

fn packets(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for payload in payloads {
        PacketWriter::new(&mut bytes, 0).packet(|out| out.extend_from_slice(payload));
    }
    bytes
}

fn framed(algorithm: Algorithm, bytes: &[u8], frame_bytes: usize) -> Vec<u8> {
    let mut client = Compression::new(algorithm);
    let mut frames = Vec::new();
    bytes.chunks(frame_bytes).for_each(|content| client.append_frame(content, &mut frames));
    frames
}

/// The content of frames of an answer, and their sequence numbers.
fn content_of(algorithm: Algorithm, mut frames: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut client, mut content, mut sequences) = (Compression::new(algorithm), Vec::new(), Vec::new());
    while !frames.is_empty() {
        sequences.push(frames[3]);
        let part = client.content(frames).expect("a good frame").expect("a whole frame").to_vec();
        content.extend_from_slice(&part);
        frames = &frames[client.consume(part.len())..];
    }
    (content, sequences)
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    // The first byte is that of a query: COM_QUIT would end the connection.
    (any::<u8>(), 0..3_000_usize, any::<bool>()).prop_map(|(seed, length, is_random)| {
        let mut state = u32::from(seed);
        let random = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if is_random { (state >> 24) as u8 } else { seed }
        };
        std::iter::once(3).chain((0..length).map(random)).collect()
    })
}

proptest! {
    #[test]
    fn commands_arrive_whole_however_frames_and_reads_cut_them(
        payloads in prop::collection::vec(payload(), 1..8),
        frame_bytes in 1..9_000_usize,
        read_bytes in 1..5_000_usize,
        is_zlib: bool,
    ) {
        let (capability, algorithm) = match is_zlib {
            true => (Capabilities::COMPRESS, Algorithm::Zlib),
            false => (Capabilities::ZSTD_COMPRESSION, Algorithm::zstd(3)),
        };
        let mut link = logged_in(capability);
        let stream = framed(algorithm, &packets(&payloads), frame_bytes);
        let (mut received, mut commands) = (Vec::new(), Vec::new());
        for piece in stream.chunks(read_bytes) {
            received.extend_from_slice(piece);
            loop {
                let (consumed, input, out) = next(&mut link, &received);
                received.drain(..consumed);
                prop_assert!(out.is_empty());
                match input {
                    Input::AssembledCommand(command) => commands.push(command),
                    Input::Incomplete => break,
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
        prop_assert!(received.is_empty());
        prop_assert_eq!(commands, payloads);
    }

    #[test]
    fn answers_arrive_whole(payloads in prop::collection::vec(payload(), 1..8), is_zlib: bool) {
        let (capability, algorithm) = match is_zlib {
            true => (Capabilities::COMPRESS, Algorithm::Zlib),
            false => (Capabilities::ZSTD_COMPRESSION, Algorithm::zstd(3)),
        };
        let mut link = logged_in(capability);
        let command = framed(algorithm, &packets(&[b"\x03SELECT 1".to_vec()]), 1_000);
        next(&mut link, &command);
        let mut answer = packets(&payloads);
        link.finish_answer(&mut answer, false);
        let (content, sequences) = content_of(algorithm, &answer);
        prop_assert_eq!(sequences, [1]);
        let mut expected = packets(&payloads);
        crate::mysql::wire::patch_sequences(&mut expected, 1);
        prop_assert_eq!(content, expected);
    }

    #[test]
    fn random_frames_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), small in any::<bool>()) {
        for capability in [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION] {
            let mut link = logged_in(capability);
            let mut bytes = bytes.clone();
            if small && bytes.len() > 3 {
                bytes[1..3].fill(0);
            }
            for _ in 0..10 {
                let (consumed, input, _) = next(&mut link, &bytes);
                bytes.drain(..consumed);
                if matches!(input, Input::Close) {
                    break;
                }
            }
        }
    }
}

/// The errno of the error packet in a frame.
fn errno(out: &[u8]) -> u16 {
    let (content, _) = content_of(Algorithm::Zlib, out);
    assert_eq!(content[4], 0xff);
    u16::from_le_bytes([content[5], content[6]])
}

#[test]
fn frames_that_lie_about_their_content_end_the_connection() {
    let good = framed(Algorithm::Zlib, &packets(&[vec![3; 1_000]]), 2_000);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let foreign = framed(Algorithm::zstd(3), &packets(&[vec![3; 1_000]]), 2_000);
    for (bytes, expected) in [(with(4, 0), 1835), (with(6, 255), 1835), (with(12, !good[12]), 1835), (foreign, 1835)] {
        let (consumed, input, out) = next(&mut logged_in(Capabilities::COMPRESS), &bytes);
        assert!(matches!(input, Input::Close) && consumed == bytes.len());
        assert_eq!(errno(&out), expected);
    }
}

#[test]
fn a_frame_that_expands_beyond_its_header_is_not_expanded() {
    let bomb = framed(Algorithm::Zlib, &vec![0; CONTENT_BYTES_MAX], CONTENT_BYTES_MAX);
    assert!(bomb.len() < 200_000);
    let mut claims_little = bomb.clone();
    claims_little[4..7].copy_from_slice(&[100, 0, 0]);
    let (_, input, _) = next(&mut logged_in(Capabilities::COMPRESS), &claims_little);
    assert!(matches!(input, Input::Close));
}

#[test]
fn a_command_beyond_the_limit_is_refused_in_a_frame() {
    let long = framed(Algorithm::Zlib, &packets(&[vec![3; COMMAND_BYTES_MAX + 1]]), CONTENT_BYTES_MAX);
    let (_, input, out) = next(&mut logged_in(Capabilities::COMPRESS), &long);
    assert!(matches!(input, Input::Close));
    assert_eq!(errno(&out), 1153);
}

#[test]
fn several_commands_of_a_frame_are_read_one_at_a_time() {
    let mut link = logged_in(Capabilities::COMPRESS);
    let frame = framed(Algorithm::Zlib, &packets(&[vec![3; 100], vec![3, 1], vec![1]]), 1_000);
    let (consumed, input, _) = next(&mut link, &frame);
    assert!(consumed == 0 && matches!(input, Input::AssembledCommand(command) if command == [3; 100]));
    let (consumed, input, _) = next(&mut link, &frame);
    assert!(consumed == 0 && matches!(input, Input::AssembledCommand(command) if command == [3, 1]));
    let (consumed, input, _) = next(&mut link, &frame);
    assert!(consumed == frame.len() && matches!(input, Input::Close), "COM_QUIT");
}
