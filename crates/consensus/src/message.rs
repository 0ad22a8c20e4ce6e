//! Messages between voters, in an encoding of our own. Bytes of other nodes never reach a decoder of protocol
//! buffers. `docs/format.md` has the layout.

use raft::eraftpb::{ConfState, Entry, EntryType, Message, MessageType, Snapshot};

use crate::bytes::{Malformed, Reader, put_bytes, put_u64};

/// Maximum number of bytes of an encoded message.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Version of the encoding of messages.
const MESSAGE_VERSION: u8 = 1;
/// Bytes of an entry with neither data nor context.
const ENTRY_BYTES_MIN: usize = 1 + 8 + 8 + 4 + 4;

/// The messages that voters send each other, with their numbers in the encoding. Proposals, requests to read
/// and transfers stay inside a node: only the leader accepts proposals.
const KINDS: [(u8, MessageType); 10] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgSnapshot),
    (6, MessageType::MsgHeartbeat),
    (7, MessageType::MsgHeartbeatResponse),
    (8, MessageType::MsgTimeoutNow),
    (9, MessageType::MsgRequestPreVote),
    (10, MessageType::MsgRequestPreVoteResponse),
];

/// Encodes a message. `None` if voters do not send messages of its kind to each other.
pub(crate) fn encode(message: &Message) -> Option<Vec<u8>> {
    let kinds = &KINDS;
    let number = kinds.iter().find(|(_, kind)| *kind == message.msg_type)?.0;
    let mut out = vec![MESSAGE_VERSION, number, u8::from(message.reject)];
    let numbers = [
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.request_snapshot,
        message.reject_hint,
        message.priority as u64,
    ];
    for number in numbers {
        put_u64(&mut out, number);
    }
    put_bytes(&mut out, &message.context);
    put_entries(&mut out, &message.entries);
    out.push(u8::from(message.snapshot.is_some()));
    if let Some(snapshot) = message.snapshot.as_ref() {
        put_snapshot(&mut out, snapshot);
    }
    Some(out)
}

/// Decodes a message. Accepts any bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Malformed("the message is too long"));
    }
    let mut reader = Reader::new(bytes);
    if reader.u8()? != MESSAGE_VERSION {
        return Err(Malformed("the version of the message is unknown"));
    }
    let number = reader.u8()?;
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|(of_kind, _)| *of_kind == number).ok_or(Malformed("the kind of message is unknown"))?.1;
    let mut message = Message { reject: reader.bool()?, ..Message::default() };
    message.set_msg_type(kind);
    message.to = reader.u64()?;
    message.from = reader.u64()?;
    message.term = reader.u64()?;
    message.log_term = reader.u64()?;
    message.index = reader.u64()?;
    message.commit = reader.u64()?;
    message.commit_term = reader.u64()?;
    message.request_snapshot = reader.u64()?;
    message.reject_hint = reader.u64()?;
    message.priority = reader.u64()? as i64;
    message.context = reader.bytes()?.to_vec().into();
    message.entries = take_entries(&mut reader)?.into();
    if reader.bool()? {
        message.set_snapshot(take_snapshot(&mut reader)?);
    }
    reader.end()?;
    Ok(message)
}

/// Appends entries: `[count u32]`, then for each `[type u8][term u64][index u64]`, data and context.
pub(crate) fn put_entries(out: &mut Vec<u8>, entries: &[Entry]) {
    let count = u32::try_from(entries.len()).expect("a message has few entries");
    out.extend_from_slice(&count.to_le_bytes());
    for entry in entries {
        out.push(entry_type_number(entry.get_entry_type()));
        put_u64(out, entry.term);
        put_u64(out, entry.index);
        put_bytes(out, &entry.data);
        put_bytes(out, &entry.context);
    }
}

/// Reverses [`put_entries`]. The indexes of the entries follow each other.
pub(crate) fn take_entries(reader: &mut Reader<'_>) -> Result<Vec<Entry>, Malformed> {
    let count = reader.count(ENTRY_BYTES_MIN)?;
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut entry = Entry::default();
        entry.set_entry_type(match reader.u8()? {
            0 => EntryType::EntryNormal,
            2 => EntryType::EntryConfChangeV2,
            _ => return Err(Malformed("the type of an entry is unknown")),
        });
        entry.term = reader.u64()?;
        entry.index = reader.u64()?;
        entry.data = reader.bytes()?.to_vec().into();
        entry.context = reader.bytes()?.to_vec().into();
        if entries.last().is_some_and(|last| last.index.checked_add(1) != Some(entry.index) || last.term > entry.term) {
            return Err(Malformed("entries do not follow each other"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry_type_number(entry_type: EntryType) -> u8 {
    match entry_type {
        EntryType::EntryNormal => 0,
        EntryType::EntryConfChange => unreachable!("changes of voters have the newer form"),
        EntryType::EntryConfChangeV2 => 2,
    }
}

/// Appends a snapshot: `[index u64][term u64]`, the voters, and the state of the application.
pub(crate) fn put_snapshot(out: &mut Vec<u8>, snapshot: &Snapshot) {
    let metadata = snapshot.get_metadata();
    put_u64(out, metadata.index);
    put_u64(out, metadata.term);
    put_conf_state(out, metadata.get_conf_state());
    put_bytes(out, &snapshot.data);
}

/// Reverses [`put_snapshot`].
pub(crate) fn take_snapshot(reader: &mut Reader<'_>) -> Result<Snapshot, Malformed> {
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    metadata.index = reader.u64()?;
    metadata.term = reader.u64()?;
    metadata.set_conf_state(take_conf_state(reader)?);
    snapshot.data = reader.bytes()?.to_vec().into();
    Ok(snapshot)
}

fn put_conf_state(out: &mut Vec<u8>, state: &ConfState) {
    for voters in [&state.voters, &state.voters_outgoing, &state.learners, &state.learners_next] {
        out.extend_from_slice(&u32::try_from(voters.len()).expect("there are few voters").to_le_bytes());
        voters.iter().for_each(|voter| put_u64(out, *voter));
    }
    out.push(u8::from(state.auto_leave));
}

fn take_conf_state(reader: &mut Reader<'_>) -> Result<ConfState, Malformed> {
    let mut state = ConfState::default();
    for voters in [&mut state.voters, &mut state.voters_outgoing, &mut state.learners, &mut state.learners_next] {
        let count = reader.count(8)?;
        *voters = (0..count).map(|_| reader.u64()).collect::<Result<_, _>>()?;
    }
    if state.voters.contains(&0) || state.voters.len() > crate::VOTERS_MAX {
        return Err(Malformed("the voters of a snapshot are out of range"));
    }
    state.auto_leave = reader.bool()?;
    Ok(state)
}
