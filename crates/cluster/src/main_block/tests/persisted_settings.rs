//! SET PERSIST: the writes of the pair file, and the start of a node with it.

use junctor_kernel::{FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, WorldRequest};
use junctor_model::value::Value;
use junctor_signals::RecvSignal;
use junctor_signals::set_globals::{RestoreGlobalsReply, SetGlobals};

use super::super::persisted_settings::SETTINGS_FILE;
use super::*;

/// A main block with a disk.
struct Node {
    stage: Stage,
    files: BTreeMap<String, Vec<u8>>,
    open: Option<String>,
    /// The result of writes.
    failure: Option<FileError>,
    /// Whether files cannot grow.
    is_full: bool,
    /// Paths of the files that were synced, in order.
    synced: Vec<String>,
    /// The result of syncs of the folder.
    folder_failure: Option<FileError>,
    /// Signals to sql and recv, in order.
    sent: Vec<Signal>,
}

impl Node {
    fn new(files: BTreeMap<String, Vec<u8>>) -> Node {
        let (failure, folder_failure, synced) = (None, None, Vec::new());
        let (stage, open, is_full, sent) = (Stage::durable(), None, false, Vec::new());
        Node { stage, files, open, failure, is_full, folder_failure, synced, sent }
    }

    /// Starts the part of the node after the recovery of its data. Returns the restored values.
    fn start(&mut self) -> Vec<(String, Value)> {
        let mut outbox = Outbox::for_test(self.stage.own);
        self.stage.main.read_settings(&mut outbox);
        self.work(outbox);
        let Some(Signal::Sql(SqlSignal::RestoreGlobals(restore))) = self.sent.pop() else { panic!("{:?}", self.sent) };
        assert!(self.sent.is_empty(), "clients wait for the settings");
        self.handle(MainSignal::RestoreGlobalsReply(RestoreGlobalsReply {}));
        self.sent.clear();
        restore.persisted.values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    fn handle(&mut self, signal: MainSignal) {
        let mut outbox = Outbox::for_test(self.stage.own);
        let now = self.stage.now;
        self.stage.main.handle(signal, self.stage.sql, &mut self.stage.context.at(now), &mut outbox);
        self.work(outbox);
    }

    /// Sends SET PERSIST for one variable. Returns the persisted values that sql gets, or the error.
    fn persist(&mut self, name: &str, value: Option<i64>) -> Result<Vec<String>, ErrorCode> {
        let persisted = Box::new([(name.into(), value.map(Value::Int))]);
        let (operation, reply_to) = (OperationId(1), self.stage.sql);
        self.handle(MainSignal::SetGlobals(SetGlobals { operation, reply_to, values: Arc::new([]), persisted }));
        match self.sent.pop() {
            Some(Signal::Sql(SqlSignal::ApplyGlobals(apply))) => {
                let persisted = apply.persisted.expect("they have changed");
                Ok(persisted.values.keys().map(|name| name.to_string()).collect())
            }
            Some(Signal::Sql(SqlSignal::SetGlobalsReply(reply))) => Err(reply.error.code),
            other => panic!("{other:?}"),
        }
    }

    fn work(&mut self, mut outbox: Outbox<Signal>) {
        let mut requests: Vec<WorldRequest> = Vec::new();
        loop {
            let sent = outbox.take_sent();
            requests.extend(outbox.take_requests());
            // The answer to such a request would be taken for one to a request of the next step.
            assert!(sent.is_empty() || requests.is_empty(), "a step has ended with requests under way: {requests:?}");
            self.sent.extend(sent.into_iter().map(|(_, signal)| signal));
            if requests.is_empty() {
                return;
            }
            let (result, bytes) = self.carry_out(requests.remove(0));
            outbox = Outbox::for_test(self.stage.own);
            let event = WorldEvent::FileDone { token: SETTINGS_FILE, result, bytes };
            let now = self.stage.now;
            self.stage.main.on_world(event, &mut self.stage.context.at(now), &mut outbox);
        }
    }

    fn carry_out(&mut self, request: WorldRequest) -> (FileResult, FileBuffer) {
        let path = self.open.clone().unwrap_or_default();
        let result = match request {
            WorldRequest::OpenFile { path, mode, .. } => {
                let path = path.to_string();
                if mode == FileMode::CreateEmpty {
                    self.files.insert(path.clone(), Vec::new());
                }
                match self.files.get(&path) {
                    Some(content) => {
                        self.open = Some(path);
                        let file = FileId::new(FileLane::Control, 0, 0);
                        Ok(FileOutcome::Opened { file, length: content.len() as u64, is_direct: false })
                    }
                    None => Err(FileError::NotFound),
                }
            }
            WorldRequest::ReadFile { .. } => {
                let content = &self.files[&path];
                return (Ok(FileOutcome::Read { length: content.len() as u32 }), FileBuffer::from(&content[..]));
            }
            WorldRequest::WriteFile { .. } | WorldRequest::SyncFile { .. } if self.failure.is_some() => {
                Err(self.failure.expect("it was set"))
            }
            WorldRequest::WriteFile { bytes, .. } if self.is_full && bytes.len() > self.files[&path].len() => {
                return (Err(FileError::DiskFull), bytes);
            }
            WorldRequest::WriteFile { bytes, .. } => {
                let length = bytes.len() as u32;
                self.files.insert(path, bytes.to_vec());
                return (Ok(FileOutcome::Written { offset: 0, length }), bytes);
            }
            WorldRequest::SyncFile { .. } => {
                self.synced.push(path);
                Ok(FileOutcome::Synced)
            }
            WorldRequest::CloseFile { .. } => Ok(FileOutcome::Closed),
            WorldRequest::SyncFolder { .. } => self.folder_failure.map_or(Ok(FileOutcome::FolderSynced), Err),
            other => panic!("{other:?}"),
        };
        (result, FileBuffer::new())
    }
}

#[test]
fn persisted_values_return_at_the_next_start() {
    let mut node = Node::new(BTreeMap::new());
    assert!(node.start().is_empty());
    assert_eq!(node.persist("a", Some(1)), Ok(vec!["a".to_owned()]));
    assert_eq!(node.persist("b", Some(2)), Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(node.persist("a", None), Ok(vec!["b".to_owned()]));
    let mut later = Node::new(node.files);
    assert_eq!(later.start(), [("b".to_owned(), Value::Int(2))]);
    // The next write goes to the slot of the older generation.
    assert_eq!(later.persist("c", Some(3)).map(|names| names.len()), Ok(2));
    assert_eq!(Node::new(later.files).start().len(), 2);
}

#[test]
fn half_of_the_newest_file_on_a_full_device_is_enough_for_a_start() {
    let mut node = Node::new(BTreeMap::new());
    node.start();
    node.persist("a", Some(1)).expect("the disk works");
    node.persist("a", Some(2)).expect("the disk works");
    // The process ended amid the write of generation 2.
    let newest = node.files.get_mut("settings.0").expect("generation 2");
    newest.truncate(newest.len() / 2);
    let mut later = Node::new(node.files);
    later.is_full = true;
    assert_eq!(later.start(), [("a".to_owned(), Value::Int(2))]);
    assert_eq!(later.synced, ["settings.0"]);
    let mut last = Node::new(later.files);
    assert_eq!(last.start(), [("a".to_owned(), Value::Int(2))]);
}

#[test]
fn the_newest_slot_is_synced_before_the_next_write_overwrites_the_other() {
    let mut node = Node::new(BTreeMap::new());
    node.start();
    assert!(node.synced.is_empty());
    node.persist("a", Some(1)).expect("the disk works");
    // The process may have ended before the slot of generation 2 was synced.
    node.persist("a", Some(2)).expect("the disk works");
    let mut later = Node::new(node.files);
    assert_eq!(later.start(), [("a".to_owned(), Value::Int(2))]);
    assert_eq!(later.synced, ["settings.0"]);
    later.persist("a", Some(3)).expect("the disk works");
    assert_eq!(later.synced, ["settings.0", "settings.1"]);
}

#[test]
fn a_write_that_fails_changes_nothing_and_is_repeated_by_the_next() {
    for (failure, code) in [(FileError::DiskFull, ErrorCode::DiskFull), (FileError::System(5), ErrorCode::WriteFailed)]
    {
        let mut node = Node::new(BTreeMap::new());
        node.start();
        node.persist("a", Some(1)).expect("the disk works");
        node.failure = Some(failure);
        assert_eq!(node.persist("a", Some(2)), Err(code));
        let mut files = node.files.clone();
        node.failure = None;
        assert_eq!(node.persist("b", Some(3)), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(Node::new(files.clone()).start(), [("a".to_owned(), Value::Int(1))]);
        // The failed write has not touched the newest slot.
        files.retain(|_, content| !content.is_empty());
        assert_eq!(Node::new(files).start(), [("a".to_owned(), Value::Int(1))]);
    }
}

#[test]
fn a_failed_sync_of_the_folder_is_an_answer_and_later_requests_go_on() {
    let mut node = Node::new(BTreeMap::new());
    node.start();
    node.folder_failure = Some(FileError::System(5));
    assert_eq!(node.persist("a", Some(1)), Err(ErrorCode::WriteFailed));
    assert_eq!(node.persist("a", Some(2)), Err(ErrorCode::WriteFailed));
    node.folder_failure = None;
    assert_eq!(node.persist("b", Some(3)), Ok(vec!["b".to_owned()]));
    assert_eq!(Node::new(node.files).start(), [("b".to_owned(), Value::Int(3))]);
}

#[test]
fn a_node_in_memory_persists_nothing() {
    let mut stage = Stage::new(&[]);
    let persisted = Box::new([("a".into(), None)]);
    let (operation, reply_to) = (OperationId(1), stage.sql);
    stage.run(MainSignal::SetGlobals(SetGlobals { operation, reply_to, values: Arc::new([]), persisted }));
    match stage.replies.pop() {
        Some(SqlSignal::SetGlobalsReply(reply)) => assert_eq!(reply.error.code, ErrorCode::OptionPreventsStatement),
        other => panic!("{other:?}"),
    }
}

#[test]
fn clients_wait_for_the_settings() {
    let mut node = Node::new(BTreeMap::new());
    let mut outbox = Outbox::for_test(node.stage.own);
    node.stage.main.read_settings(&mut outbox);
    node.work(outbox);
    let opens = |signal: &Signal| matches!(signal, Signal::Recv(RecvSignal::OpenToClients(_)));
    assert!(!node.sent.iter().any(opens));
}
