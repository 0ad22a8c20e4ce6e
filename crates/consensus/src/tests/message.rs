//! Messages of other nodes are not trusted.

use proptest::prelude::*;
use raft::eraftpb::{ConfState, Entry, EntryType, Message, MessageType, Snapshot};

use super::cluster::Cluster;
use crate::message::{decode, encode};
use crate::{Refusal, VoterId};

fn full_message() -> Message {
    let mut entry = Entry { term: 3, index: 8, data: vec![1, 2, 3].into(), ..Entry::default() };
    entry.set_entry_type(EntryType::EntryConfChangeV2);
    let next = Entry { term: 4, index: 9, context: vec![9; 40].into(), ..Entry::default() };
    let mut snapshot = Snapshot { data: vec![7; 100].into(), ..Snapshot::default() };
    snapshot.mut_metadata().index = 5;
    snapshot.mut_metadata().term = 2;
    let state = ConfState { voters: vec![1, 2], voters_outgoing: vec![2, 3], auto_leave: true, ..ConfState::default() };
    snapshot.mut_metadata().set_conf_state(state);
    let mut message = Message { to: 1, from: 2, term: 4, log_term: 3, index: 7, commit: 6, ..Message::default() };
    message.set_msg_type(MessageType::MsgAppend);
    message.reject = true;
    message.reject_hint = 11;
    message.commit_term = 12;
    message.request_snapshot = 13;
    message.priority = -1;
    message.context = vec![5; 10].into();
    message.entries = vec![entry, next].into();
    message.set_snapshot(snapshot);
    message
}

#[test]
fn every_field_survives() {
    let message = full_message();
    assert_eq!(decode(&encode(&message).unwrap()).unwrap(), message);
}

#[test]
fn a_truncated_message_is_refused() {
    let bytes = encode(&full_message()).unwrap();
    (0..bytes.len()).for_each(|length| assert!(decode(&bytes[..length]).is_err(), "{length} bytes"));
}

#[test]
fn messages_inside_a_node_are_not_encoded() {
    for kind in [MessageType::MsgHup, MessageType::MsgPropose, MessageType::MsgTransferLeader] {
        let mut message = Message::default();
        message.set_msg_type(kind);
        assert_eq!(encode(&message), None);
    }
}

#[test]
fn a_message_with_another_sender_is_refused() {
    let mut cluster = Cluster::new(3, 1);
    let mut message = Message { to: 1, from: 2, term: 9, ..Message::default() };
    message.set_msg_type(MessageType::MsgHeartbeat);
    let bytes = encode(&message).unwrap();
    assert_eq!(cluster.with(VoterId(1), |it| it.receive(VoterId(3), &bytes)), Err(Refusal::WrongAddress));
    assert_eq!(cluster.with(VoterId(3), |it| it.receive(VoterId(2), &bytes)), Err(Refusal::WrongAddress));
}

/// The files of the voter were put back to an older state.
#[test]
fn a_voter_that_has_lost_entries_says_so() {
    let mut cluster = Cluster::new(3, 1);
    let mut message = Message { to: 1, from: 2, term: 9, commit: 100, ..Message::default() };
    message.set_msg_type(MessageType::MsgHeartbeat);
    let bytes = encode(&message).unwrap();
    assert_eq!(cluster.with(VoterId(1), |it| it.receive(VoterId(2), &bytes)), Err(Refusal::LostEntries));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn a_changed_byte_is_decoded_or_refused(position in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = encode(&full_message()).unwrap();
        let position = position.index(bytes.len());
        bytes[position] = value;
        let _ = decode(&bytes);
    }
}
