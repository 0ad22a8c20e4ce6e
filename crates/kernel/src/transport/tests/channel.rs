use super::super::channel::{Arrival, CREDIT_BYTES, Channel};
use super::super::frame::{BODY_BYTES_MAX, FrameKind, FrameReader, HEADER_BYTES};
use super::*;

fn append(length: usize) -> impl FnOnce(&mut Vec<u8>) -> Result<(), ()> {
    move |out: &mut Vec<u8>| {
        out.resize(out.len() + length, 1);
        Ok(())
    }
}

/// Moves all output of one channel to another. Returns the kinds and body sizes of new frames.
fn carry(from: &mut Channel, to: &mut Channel) -> Vec<(FrameKind, usize)> {
    let mut output = Vec::new();
    while from.write(1, usize::MAX, &mut output).unwrap() {}
    let (mut reader, mut input, mut arrived) = (FrameReader::default(), output.as_slice(), Vec::new());
    while let Some(frame) = reader.read(&mut input).unwrap() {
        if to.on_frame(&frame.header, frame.body.len()).unwrap() == Arrival::New {
            arrived.push((frame.header.kind, frame.body.len()));
        }
    }
    arrived
}

/// Two attached channels whose credits are known.
fn pair() -> (Channel, Channel) {
    let (mut one, mut two) = (Channel::new(0), Channel::new(0));
    one.attach(0).unwrap();
    two.attach(0).unwrap();
    carry(&mut one, &mut two);
    carry(&mut two, &mut one);
    (one, two)
}

#[test]
fn deferrable_signals_wait_for_credits_and_reserved_ones_never_do() {
    let (mut one, mut two) = pair();
    let mut sent = 0;
    while one.accepts(SignalClass::Deferrable) {
        one.push(SignalClass::Deferrable, 1, append(1_000)).unwrap();
        sent += 1_000;
    }
    assert!((CREDIT_BYTES..CREDIT_BYTES + 1_000).contains(&sent), "{sent}");
    assert!(one.accepts(SignalClass::Reserved));
    carry(&mut one, &mut two);
    carry(&mut two, &mut one);
    assert!(!one.accepts(SignalClass::Deferrable), "an acknowledgement is no credit");
    two.grant(CREDIT_BYTES / 4);
    assert!(two.has_output(), "a quarter of the credits is told at once");
    carry(&mut two, &mut one);
    assert!(one.accepts(SignalClass::Deferrable));
}

#[test]
fn a_record_longer_than_a_frame_arrives_in_parts() {
    let (mut one, mut two) = pair();
    let length = 2 * BODY_BYTES_MAX + 5;
    one.push(SignalClass::Deferrable, 1, append(length)).unwrap();
    let arrived = carry(&mut one, &mut two);
    let part = (FrameKind::Part, BODY_BYTES_MAX);
    assert_eq!(arrived, [part, part, (FrameKind::Signals, 5)]);
    assert!(!one.accepts(SignalClass::Deferrable));
    two.grant(length as u64);
    carry(&mut two, &mut one);
    assert!(one.accepts(SignalClass::Deferrable));
}

#[test]
fn acknowledged_frames_are_forgotten_and_others_sent_again() {
    let (mut one, mut two) = pair();
    for _ in 0..10 {
        one.push(SignalClass::Reserved, 1, append(40_000)).unwrap();
    }
    assert_eq!(one.unacknowledged_bytes(), 10 * (40_000 + HEADER_BYTES));
    let mut output = Vec::new();
    one.write(1, usize::MAX, &mut output).unwrap();
    let mut input = &output[..4 * (40_000 + HEADER_BYTES) + 100];
    let mut reader = FrameReader::default();
    while let Some(frame) = reader.read(&mut input).unwrap() {
        two.on_frame(&frame.header, frame.body.len()).unwrap();
    }
    assert_eq!(two.received(), 4);
    one.attach(two.received()).unwrap();
    two.attach(one.received()).unwrap();
    assert_eq!(carry(&mut one, &mut two).len(), 6);
    carry(&mut two, &mut one);
    assert_eq!(one.unacknowledged_bytes(), 0);
}

#[test]
fn gaps_and_impossible_acknowledgements_are_faults() {
    let (mut one, mut two) = pair();
    one.push(SignalClass::Reserved, 1, append(10)).unwrap();
    let mut output = Vec::new();
    one.write(1, usize::MAX, &mut output).unwrap();
    let mut reader = FrameReader::default();
    let header = reader.read(&mut output.as_slice()).unwrap().unwrap().header;
    let changed = |change: fn(&mut FrameHeader)| {
        let mut header = header;
        change(&mut header);
        header
    };
    assert_eq!(two.on_frame(&changed(|header| header.sequence = 2), 10), Err(ChannelFault::Gap(1, 2)));
    assert_eq!(two.on_frame(&changed(|header| header.acknowledged = 1), 10), Err(ChannelFault::Acknowledgement(1)));
    assert_eq!(two.on_frame(&changed(|header| header.channel = 1), 10), Err(ChannelFault::Channel(1)));
    assert_eq!(two.on_frame(&header, 10), Ok(Arrival::New));
    assert_eq!(two.on_frame(&header, 10), Ok(Arrival::Known));
    assert_eq!(one.attach(2), Err(ChannelFault::Acknowledgement(2)));
    one.attach(1).unwrap();
    assert_eq!(one.attach(0), Err(ChannelFault::Acknowledgement(0)), "a forgotten frame cannot be sent again");
}
