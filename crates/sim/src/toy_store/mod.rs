//! A durable key-value store of one block, correct, or with a known defect. It proves that crashes, the
//! simulated disk and the ledger find what a real log could do wrong.
//!
//! Requests are lines: `put KEY VALUE ...` is one transaction, `-` as a value deletes; `next` takes a number
//! that is never given again; `get` lists all rows. The log is one file of slots, one record in each. A
//! record's checksum covers that of the record before it.

use std::collections::{BTreeMap, VecDeque};

use junctor_kernel::block::Host;
use junctor_kernel::random::mix;
use junctor_kernel::simulated::{Simulation, SimulationOptions};
use junctor_kernel::{
    Context, Endpoints, FileBuffer, FileId, FileLane, FileMode, FileOutcome, NodeLayout, Outbox, SocketId, WorldEvent,
    WorldRequest,
};
use junctor_node::placement::Module;
use junctor_signals::crash_point;

use crate::fake_server::FakeSignal;

#[cfg(test)]
mod tests;

const SLOT_BYTES: usize = 512;
const HEADER_BYTES: usize = 10;
const NAME: &str = "toy.log";
/// Number of values that one durable mark allows the store to hand out.
const NUMBERS_OF_MARK: u64 = 8;

/// How the store differs from a correct one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    None,
    /// Answers when the write is done, before the sync.
    AnswersBeforeSync,
    /// Never syncs the folder, so that the file's name may be lost.
    ForgetsFolder,
    /// Writes each key of a transaction as a record of its own.
    SplitsTransactions,
    /// Gives numbers away before their mark is durable.
    ReusesNumbers,
    /// Answers before it writes, as `memory` durability allows.
    AnswersBeforeWrite,
    /// Like `AnswersBeforeWrite`, and recovery continues after an invalid record.
    SkipsInvalidRecords,
    /// Recovery applies records that may be unsynced, and does not sync them.
    TrustsUnsyncedTail,
}

impl Defect {
    fn answers_before_write(self) -> bool {
        matches!(self, Defect::AnswersBeforeWrite | Defect::SkipsInvalidRecords)
    }
}

/// The store's block.
pub struct ToyStore {
    defect: Defect,
    file: Option<FileId>,
    stage: Stage,
    rows: BTreeMap<i64, i64>,
    /// The last number that was given out.
    number: u64,
    /// Numbers up to this one may be given out, because the log has a record of it.
    mark: u64,
    /// The slot and the chained checksum of the end of the log.
    end: (u64, u64),
    /// Lines that wait for the recovery.
    early: Vec<(SocketId, String)>,
    pending: VecDeque<Record>,
    writing: Vec<Record>,
    inputs: BTreeMap<SocketId, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    SyncingFolder,
    Reading,
    SyncingTail,
    Idle,
    Writing,
    Syncing,
}

struct Record {
    text: String,
    answer: Option<(SocketId, String)>,
}

/// Starts a simulation of one store.
pub fn start(options: SimulationOptions, defect: Defect) -> Simulation<FakeSignal, ToyStore> {
    let mut simulation = Simulation::new(options, move |_| ToyStore {
        defect,
        file: None,
        stage: Stage::Opening,
        rows: BTreeMap::new(),
        number: 0,
        mark: 0,
        end: (0, 0),
        early: Vec::new(),
        pending: VecDeque::new(),
        writing: Vec::new(),
        inputs: BTreeMap::new(),
    });
    simulation.add_node(&NodeLayout::new(&[&[(Module::Recv, 0), (Module::Io, 0)]])).unwrap();
    simulation
}

impl Host<FakeSignal> for ToyStore {
    fn handle(&mut self, at: Endpoints, signal: FakeSignal, _: &mut Context<'_>, outbox: &mut Outbox<FakeSignal>) {
        match signal.0 {
            WorldEvent::Started if Module::of(at.to.module) == Module::Recv => {
                let (path, mode, lane) = (NAME.into(), FileMode::CreateOrOpen, FileLane::Log);
                outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
            }
            WorldEvent::FileDone { result, bytes, .. } => self.on_file_done(result.unwrap(), &bytes, outbox),
            WorldEvent::Received { socket, bytes } => {
                let input = self.inputs.entry(socket).or_default();
                input.extend_from_slice(&bytes);
                while let Some(end) = self.inputs[&socket].iter().position(|&byte| byte == b'\n') {
                    let line: Vec<u8> = self.inputs.entry(socket).or_default().drain(..=end).collect();
                    let line = String::from_utf8(line).unwrap().trim_end().to_owned();
                    match self.stage {
                        Stage::Idle | Stage::Writing | Stage::Syncing => self.execute(socket, &line, outbox),
                        _ => self.early.push((socket, line)),
                    }
                }
            }
            _ => {}
        }
    }
}

impl ToyStore {
    fn on_file_done(&mut self, outcome: FileOutcome, bytes: &[u8], outbox: &mut Outbox<FakeSignal>) {
        match (self.stage, outcome) {
            (Stage::Opening, FileOutcome::Opened { file, .. }) => {
                self.file = Some(file);
                if self.defect == Defect::ForgetsFolder {
                    return self.read(outbox);
                }
                self.stage = Stage::SyncingFolder;
                outbox.request(WorldRequest::SyncFolder { path: "".into(), lane: FileLane::Log, token: 0 });
            }
            (Stage::SyncingFolder, _) => self.read(outbox),
            (Stage::Reading, _) => {
                outbox.crash_point(crash_point::RECOVERY_SCAN.after());
                self.recover(bytes);
                if self.defect == Defect::TrustsUnsyncedTail {
                    return self.open_up(outbox);
                }
                // The process may have died between a write and its sync.
                self.stage = Stage::SyncingTail;
                self.sync(outbox);
            }
            (Stage::SyncingTail, _) => self.open_up(outbox),
            (Stage::Writing, _) => {
                outbox.crash_point(crash_point::LOG_WRITE.after());
                if self.defect == Defect::AnswersBeforeSync {
                    self.publish(outbox);
                }
                self.stage = Stage::Syncing;
                outbox.crash_point(crash_point::LOG_SYNC.before());
                self.sync(outbox);
            }
            (Stage::Syncing, _) => {
                outbox.crash_point(crash_point::LOG_SYNC.after());
                self.publish(outbox);
                self.stage = Stage::Idle;
                self.write(outbox);
            }
            (Stage::Opening | Stage::Idle, _) => panic!("an answer without a request"),
        }
    }

    fn sync(&self, outbox: &mut Outbox<FakeSignal>) {
        outbox.request(WorldRequest::SyncFile { file: self.file.unwrap(), token: 0 });
    }

    fn read(&mut self, outbox: &mut Outbox<FakeSignal>) {
        self.stage = Stage::Reading;
        outbox.crash_point(crash_point::RECOVERY_SCAN.before());
        let (file, bytes) = (self.file.unwrap(), FileBuffer::new());
        outbox.request(WorldRequest::ReadFile { file, offset: 0, length: 1 << 24, bytes, token: 0 });
    }

    fn recover(&mut self, log: &[u8]) {
        for (slot, bytes) in log.chunks_exact(SLOT_BYTES).enumerate() {
            let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            let text = bytes.get(HEADER_BYTES..HEADER_BYTES + length).unwrap_or_default();
            let sum = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            if length == 0 || sum != checksum(self.end.1, text) {
                if self.defect == Defect::SkipsInvalidRecords {
                    continue;
                }
                return;
            }
            self.end = (slot as u64 + 1, if self.chains() { sum } else { 0 });
            self.apply(std::str::from_utf8(text).unwrap());
        }
    }

    /// A store that skips records cannot chain them.
    fn chains(&self) -> bool {
        self.defect != Defect::SkipsInvalidRecords
    }

    fn open_up(&mut self, outbox: &mut Outbox<FakeSignal>) {
        self.stage = Stage::Idle;
        self.number = self.mark;
        for (socket, line) in std::mem::take(&mut self.early) {
            self.execute(socket, &line, outbox);
        }
    }

    fn apply(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        if let ["mark", mark] = words[..] {
            self.mark = self.mark.max(mark.parse().unwrap());
            return;
        }
        for pair in words[1..].chunks(2) {
            let key = pair[0].parse().unwrap();
            match pair[1].parse() {
                Ok(value) => drop(self.rows.insert(key, value)),
                Err(_) => drop(self.rows.remove(&key)),
            }
        }
    }

    fn execute(&mut self, socket: SocketId, line: &str, outbox: &mut Outbox<FakeSignal>) {
        match line {
            "get" => {
                let rows: Vec<String> = self.rows.iter().map(|(key, value)| format!("{key} {value}")).collect();
                answer(socket, &rows.join(","), outbox);
            }
            "next" => {
                self.number += 1;
                let number = self.number.to_string();
                if self.number <= self.mark {
                    return answer(socket, &number, outbox);
                }
                let mark = self.number + NUMBERS_OF_MARK;
                let is_early = self.defect == Defect::ReusesNumbers;
                if is_early {
                    self.mark = mark;
                    answer(socket, &number, outbox);
                }
                let answer = (!is_early).then_some((socket, number));
                self.pending.push_back(Record { text: format!("mark {mark}"), answer });
            }
            _ if self.defect == Defect::SplitsTransactions => {
                let words: Vec<&str> = line.split(' ').skip(1).collect();
                let count = words.len() / 2;
                for (position, pair) in words.chunks(2).enumerate() {
                    let answer = (position + 1 == count).then(|| (socket, "ok".to_owned()));
                    self.pending.push_back(Record { text: format!("put {} {}", pair[0], pair[1]), answer });
                }
            }
            _ => self.pending.push_back(Record { text: line.to_owned(), answer: Some((socket, "ok".to_owned())) }),
        }
        // Numbers are handed out only after their mark is durable, whatever durability commits promise.
        if self.defect.answers_before_write() && line != "next" {
            let answers = self.pending.back_mut().and_then(|record| record.answer.take());
            answers.into_iter().for_each(|(socket, text)| answer(socket, &text, outbox));
        }
        if self.stage == Stage::Idle {
            self.write(outbox);
        }
    }

    /// Begins a cycle with all pending records.
    fn write(&mut self, outbox: &mut Outbox<FakeSignal>) {
        if self.pending.is_empty() {
            return;
        }
        self.stage = Stage::Writing;
        self.writing = self.pending.drain(..).collect();
        outbox.crash_point(crash_point::LOG_WRITE.before());
        let mut batch = Vec::new();
        for record in &self.writing {
            let (slot, before) = self.end;
            let sum = checksum(before, record.text.as_bytes());
            let mut bytes = sum.to_le_bytes().to_vec();
            bytes.extend_from_slice(&(record.text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(record.text.as_bytes());
            assert!(bytes.len() <= SLOT_BYTES, "a record fits into its slot");
            bytes.resize(SLOT_BYTES, 0);
            self.end = (slot + 1, if self.chains() { sum } else { 0 });
            batch.extend_from_slice(&bytes);
        }
        let offset = (self.end.0 - self.writing.len() as u64) * SLOT_BYTES as u64;
        let bytes = FileBuffer::from(&batch[..]);
        outbox.request(WorldRequest::WriteFile { file: self.file.unwrap(), offset, bytes, token: 0 });
    }

    /// Makes the written records visible and answers their clients.
    fn publish(&mut self, outbox: &mut Outbox<FakeSignal>) {
        outbox.crash_point(crash_point::LOG_PUBLISH.before());
        for record in std::mem::take(&mut self.writing) {
            self.apply(&record.text);
            if let Some((socket, text)) = record.answer {
                answer(socket, &text, outbox);
            }
        }
        outbox.crash_point(crash_point::LOG_PUBLISH.after());
    }
}

fn answer(socket: SocketId, text: &str, outbox: &mut Outbox<FakeSignal>) {
    outbox.request(WorldRequest::SendBytes { socket, bytes: format!("{text}\n").into_bytes() });
}

fn checksum(before: u64, text: &[u8]) -> u64 {
    text.iter().fold(mix(before), |sum, &byte| mix(sum ^ u64::from(byte)))
}
