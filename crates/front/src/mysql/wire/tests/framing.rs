use crate::mysql::wire::error::ProtocolError;
use crate::mysql::wire::packet::{PACKET_PAYLOAD_BYTES_MAX, PacketReader, PacketWriter, patch_sequences};
use proptest::prelude::*;

/// Reads the stream in pieces that end at `cuts`. Returns all payloads with their last sequence numbers.
fn read_all(stream: &[u8], cuts: &[usize], reader: &mut PacketReader) -> Result<Vec<(Vec<u8>, u8)>, ProtocolError> {
    let mut payloads = Vec::new();
    let mut start = 0;
    for &cut in cuts.iter().chain([&stream.len()]) {
        let mut input = &stream[start..cut];
        while let Some(packet) = reader.next_packet(&mut input)? {
            payloads.push((packet.payload.to_vec(), packet.sequence));
        }
        assert!(input.is_empty(), "a reader that wants more has taken all");
        start = cut;
    }
    Ok(payloads)
}

fn stream_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = Vec::new();
    for payload in payloads {
        PacketWriter::new(&mut stream, 0).packet(|out| out.extend_from_slice(payload));
    }
    stream
}

#[test]
fn a_whole_packet_is_handed_out_in_place() {
    let stream = [5, 0, 0, 0, 1, 2, 3, 4, 5, 1, 0, 0, 0, 9];
    let mut reader = PacketReader::new(0, 1024);
    let mut input = &stream[..];
    let first = reader.next_packet(&mut input).unwrap().unwrap();
    assert_eq!(first.payload.as_ptr(), stream[4..].as_ptr());
    assert_eq!((first.payload, first.reply_sequence()), (&stream[4..9], 1));
    let second = reader.next_packet(&mut input).unwrap().unwrap();
    assert_eq!(second.payload.as_ptr(), stream[13..].as_ptr());
    assert_eq!(reader.next_packet(&mut input), Ok(None));
    assert_eq!(reader.buffered_bytes(), 0);
}

#[test]
fn a_payload_after_a_split_header_is_not_copied() {
    let rest = [0, 7, 8];
    let mut reader = PacketReader::new(0, 1024);
    assert_eq!(reader.next_packet(&mut &[2, 0, 0][..]), Ok(None));
    let mut input = &rest[..];
    let packet = reader.next_packet(&mut input).unwrap().unwrap();
    assert_eq!(packet.payload.as_ptr(), rest[1..].as_ptr());
    assert_eq!(reader.buffered_bytes(), 0);
}

#[test]
fn an_idle_reader_holds_no_memory() {
    let mut reader = PacketReader::new(0, 1024);
    assert_eq!(reader.next_packet(&mut &[4, 0, 0, 0, 1][..]), Ok(None));
    assert!(reader.buffered_bytes() > 0 && !reader.is_idle());
    let mut input = &[2, 3, 4][..];
    assert_eq!(reader.next_packet(&mut input).unwrap().unwrap().payload, [1, 2, 3, 4]);
    assert!(reader.is_idle());
    assert_eq!(reader.next_packet(&mut input), Ok(None));
    assert_eq!(reader.buffered_bytes(), 0);
}

#[test]
fn a_claimed_length_allocates_no_memory() {
    let mut reader = PacketReader::new(0, 64 << 20);
    assert_eq!(reader.next_packet(&mut &[0xfe, 0xff, 0xff, 0, 1, 2, 3][..]), Ok(None));
    assert!(reader.buffered_bytes() < 64);
}

#[test]
fn payloads_around_the_packet_limit_are_split_and_joined() {
    for (length, packets) in [
        (PACKET_PAYLOAD_BYTES_MAX - 1, 1),
        (PACKET_PAYLOAD_BYTES_MAX, 2),
        (PACKET_PAYLOAD_BYTES_MAX + 1, 2),
        (2 * PACKET_PAYLOAD_BYTES_MAX, 3),
    ] {
        let payload: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let mut stream = vec![0xaa];
        let mut writer = PacketWriter::new(&mut stream, 255);
        writer.packet(|out| out.extend_from_slice(&payload));
        assert_eq!(writer.sequence(), 255_u8.wrapping_add(packets));
        assert_eq!(stream.len(), 1 + length + 4 * usize::from(packets));
        let mut reader = PacketReader::new(255, length);
        let received = read_all(&stream[1..], &[1000, PACKET_PAYLOAD_BYTES_MAX - 2], &mut reader).unwrap();
        assert!(received == [(payload, 254_u8.wrapping_add(packets))], "length {length} comes back unchanged");
        assert_eq!(patch_sequences(&mut stream[1..], 7), 7 + packets);
    }
}

#[test]
fn a_full_packet_has_the_maximum_length() {
    let mut stream = Vec::new();
    PacketWriter::new(&mut stream, 3).packet(|out| out.resize(4 + PACKET_PAYLOAD_BYTES_MAX, 1));
    assert_eq!(stream[..4], [0xff, 0xff, 0xff, 3]);
    assert_eq!(stream[4 + PACKET_PAYLOAD_BYTES_MAX..], [0, 0, 0, 4]);
}

#[test]
fn a_wrong_sequence_number_ends_the_stream() {
    let expected = Err(ProtocolError::PacketsOutOfOrder { expected: 0, received: 1 });
    let mut reader = PacketReader::new(0, 1024);
    let mut input = &[1, 0, 0, 1, 3][..];
    assert_eq!(reader.next_packet(&mut input), expected);
    assert_eq!(reader.failure_sequence(), 2);
    assert_eq!(reader.next_packet(&mut &[1, 0, 0, 0, 3][..]), expected, "a failed reader stays failed");
}

#[test]
fn a_continuing_packet_must_have_the_next_number() {
    let mut stream = vec![0xff, 0xff, 0xff, 0];
    stream.resize(4 + PACKET_PAYLOAD_BYTES_MAX, 1);
    stream.extend_from_slice(&[0, 0, 0, 0]);
    let mut reader = PacketReader::new(0, 64 << 20);
    let result = read_all(&stream, &[], &mut reader);
    assert_eq!(result, Err(ProtocolError::PacketsOutOfOrder { expected: 1, received: 0 }));
    assert_eq!(reader.buffered_bytes(), 0);
}

#[test]
fn the_largest_allowed_payload_passes_and_one_byte_more_fails() {
    let stream = stream_of(&[vec![1; 16]]);
    assert_eq!(read_all(&stream, &[], &mut PacketReader::new(0, 16)).unwrap().len(), 1);
    assert_eq!(read_all(&stream, &[], &mut PacketReader::new(0, 15)), Err(ProtocolError::PacketTooLarge));
    assert_eq!(read_all(&stream, &[2], &mut PacketReader::new(0, 15)), Err(ProtocolError::PacketTooLarge));
}

#[test]
fn the_sum_of_continued_packets_is_limited() {
    let mut stream = Vec::new();
    PacketWriter::new(&mut stream, 0).packet(|out| out.resize(4 + PACKET_PAYLOAD_BYTES_MAX + 9, 1));
    let mut reader = PacketReader::new(0, PACKET_PAYLOAD_BYTES_MAX + 8);
    assert_eq!(read_all(&stream, &[], &mut reader), Err(ProtocolError::PacketTooLarge));
}

#[test]
fn the_expected_first_sequence_can_change_between_payloads() {
    let mut reader = PacketReader::new(1, 1024);
    assert!(reader.next_packet(&mut &[0, 0, 0, 1][..]).unwrap().is_some());
    reader.expect_sequence(3);
    assert!(reader.next_packet(&mut &[0, 0, 0, 3][..]).unwrap().is_some());
    reader.expect_sequence(0);
    assert!(reader.next_packet(&mut &[0, 0, 0, 4][..]).is_err());
}

#[test]
fn rows_encoded_by_partitions_get_sequence_numbers() {
    let rows = [1, 0, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 0, 8, 9];
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, 254);
    writer.encoded_packets(&rows);
    assert_eq!(writer.sequence(), 1);
    assert_eq!(out, [1, 0, 0, 254, 7, 0, 0, 0, 255, 2, 0, 0, 0, 8, 9]);
    assert_eq!(patch_sequences(&mut [], 5), 5);
}

#[test]
#[should_panic(expected = "ends within its buffer")]
fn an_incomplete_run_of_packets_stops_the_node() {
    junctor_kernel::invariant::panic_on_failure();
    patch_sequences(&mut [2, 0, 0, 0, 7], 0);
}

proptest! {
    #[test]
    fn fragmentation_does_not_affect_the_result(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        cuts in prop::collection::vec(0_usize..400, 0..20),
    ) {
        let stream = stream_of(&payloads);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let mut reader = PacketReader::new(0, 1024);
        let received = read_all(&stream, &cuts, &mut reader).unwrap();
        let expected: Vec<_> = payloads.into_iter().map(|payload| (payload, 0)).collect();
        prop_assert_eq!(received, expected);
        prop_assert!(reader.is_idle());
    }

    #[test]
    fn any_bytes_give_the_same_outcome_in_any_fragments(
        stream in prop::collection::vec(prop_oneof![Just(0_u8), 0_u8..4, any::<u8>()], 0..200),
        cuts in prop::collection::vec(0_usize..200, 0..20),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let whole = read_all(&stream, &[], &mut PacketReader::new(0, 64));
        let cut = read_all(&stream, &cuts, &mut PacketReader::new(0, 64));
        prop_assert_eq!(whole, cut);
    }
}
