//! Statements with files of the server: their errors, and KILL and lost connections at every moment.

use junctor_kernel::{FileBuffer, FileError, FileId, FileMode, FileOutcome, FileResult};

use super::*;

/// Files beneath a folder and temporary ones, with errors on request.
#[derive(Default)]
pub(super) struct FileDouble {
    pub content: BTreeMap<String, Vec<u8>>,
    open: BTreeMap<usize, String>,
    /// The content of open files whose name is deleted.
    unnamed: BTreeMap<usize, Vec<u8>>,
    /// Whether reads of such files have a wrong byte.
    pub damages: bool,
    opened: usize,
    /// Kind of the requests that fail, and their error.
    pub failing: Option<(&'static str, FileError)>,
    /// How many requests succeed before all others but closes and deletions fail.
    pub failing_after: Option<usize>,
    /// The largest write.
    pub written_max: usize,
    /// Whether answers are kept in `held` instead of being sent.
    pub is_held: bool,
    pub held: Vec<(Address, WorldEvent)>,
}

impl FileDouble {
    /// Carries out a request; returns the answer.
    pub(super) fn carry_out(&mut self, request: WorldRequest) -> WorldEvent {
        if let Some(good) = &mut self.failing_after {
            *good = good.saturating_sub(1);
            self.failing = (*good == 0).then_some(("", FileError::System(5)));
        }
        let (token, result, bytes) = match request {
            WorldRequest::OpenBeneath { path, mode, lane, token, .. } => {
                (token, self.open(&path, mode, lane), FileBuffer::new())
            }
            WorldRequest::OpenFile { path, mode, lane, token, .. } => {
                (token, self.open(&path, mode, lane), FileBuffer::new())
            }
            WorldRequest::DeleteFile { path, token, .. } => {
                let deleted = match self.fails("delete") {
                    Some(error) => Err(error),
                    None => {
                        let open = self.open.iter().find(|(_, name)| **name == *path).map(|(slot, _)| *slot);
                        let content = self.content.remove(&*path);
                        self.unnamed.extend(open.zip(content));
                        Ok(FileOutcome::Deleted)
                    }
                };
                (token, deleted, FileBuffer::new())
            }
            WorldRequest::DeleteBeneath { path, token, .. } => {
                self.content.remove(&*path);
                (token, self.fails("delete").map_or(Ok(FileOutcome::Deleted), Err), FileBuffer::new())
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => {
                let result = self.write(file, offset, &bytes);
                (token, result, bytes)
            }
            WorldRequest::ReadFile { file, offset, length, mut bytes, token } => {
                let unnamed = self.unnamed.get(&file.slot());
                let content = unnamed.unwrap_or_else(|| &self.content[&self.open[&file.slot()]]);
                let start = (offset as usize).min(content.len());
                let end = (start + length as usize).min(content.len());
                bytes.clear();
                bytes.extend_from_slice(&content[start..end]);
                if self.damages && unnamed.is_some() {
                    bytes[length as usize / 2] ^= 1;
                }
                let result = Ok(FileOutcome::Read { length: bytes.len() as u32 });
                (token, self.fails("read").map_or(result, Err), bytes)
            }
            WorldRequest::CloseFile { file, token } => {
                assert!(self.open.remove(&file.slot()).is_some(), "a file is closed once");
                self.unnamed.remove(&file.slot());
                (token, Ok(FileOutcome::Closed), FileBuffer::new())
            }
            other => panic!("{other:?} is no request of a statement"),
        };
        WorldEvent::FileDone { token, result, bytes }
    }

    fn open(&mut self, path: &str, mode: FileMode, lane: FileLane) -> FileResult {
        if let Some(error) = self.fails("open") {
            return Err(error);
        }
        match (mode, self.content.contains_key(path)) {
            (FileMode::CreateNew, true) => return Err(FileError::Exists),
            (FileMode::CreateNew, false) => _ = self.content.insert(path.to_owned(), Vec::new()),
            (_, true) => {}
            (_, false) => return Err(FileError::NotFound),
        }
        self.opened += 1;
        self.open.insert(self.opened, path.to_owned());
        let length = self.content[path].len() as u64;
        Ok(FileOutcome::Opened { file: FileId::new(lane, self.opened, 0), length, is_direct: false })
    }

    /// Whether no file exists and none is open.
    pub(super) fn is_unused(&self) -> bool {
        self.content.is_empty() && self.open.is_empty() && self.unnamed.is_empty()
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> FileResult {
        let result = Ok(FileOutcome::Written { offset, length: bytes.len() as u32 });
        if file.lane() == FileLane::Temporary {
            let named = self.content.get_mut(&self.open[&file.slot()]);
            let content = named.or(self.unnamed.get_mut(&file.slot())).expect("an open file has its content");
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            content.resize(content.len().max(end), 0);
            content[start..end].copy_from_slice(bytes);
            return self.fails("write").map_or(result, Err);
        }
        let path = &self.open[&file.slot()];
        let content = self.content.get_mut(path).expect("an open file was not deleted");
        assert_eq!(content.len() as u64, offset, "writes append");
        content.extend_from_slice(bytes);
        self.written_max = self.written_max.max(bytes.len());
        self.fails("write").map_or(result, Err)
    }

    fn fails(&self, kind: &str) -> Option<FileError> {
        let fails = |failing: &str| failing == kind || failing.is_empty() && kind != "delete";
        self.failing.filter(|(failing, _)| fails(failing)).map(|(_, error)| error)
    }
}

const ROWS: usize = 700;

fn node() -> Node {
    let config = NodeConfig { secure_file_priv: Some("/files/".into()), ..NodeConfig::default() };
    let mut node = Node::new(TWO_RECV_THREADS, config);
    node.delivery.returns_files = true;
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(2, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(1000))"]);
    node.execute(2, &["CREATE TABLE d.s (id INT PRIMARY KEY, v VARCHAR(1000))"]);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, REPEAT('x', 900))")).collect();
    node.execute(2, &[&format!("INSERT INTO d.s VALUES {}", rows.join(","))]);
    node
}

/// All lines of the table.
fn lines() -> Vec<u8> {
    (0..ROWS).flat_map(|id| format!("{id}\t{}\n", "x".repeat(900)).into_bytes()).collect()
}

const OUT: &str = "SELECT * FROM d.s ORDER BY id INTO OUTFILE 'f'";
const LOAD: &str = "LOAD DATA INFILE 'f' INTO TABLE d.t";

#[test]
fn a_file_has_all_rows_and_loads_them_again() {
    let mut node = node();
    node.execute(1, &[OUT]);
    assert!(node.files.content["f"] == lines());
    assert!(node.files.open.is_empty());
    assert!(node.files.written_max < 512 << 10, "{} bytes at once", node.files.written_max);
    assert_eq!(node.query(1, "SELECT ROW_COUNT()"), ["700"]);
    assert_eq!(node.query(1, OUT), ["#HY000File 'f' already exists"]);
    assert!(node.files.content["f"] == lines(), "an existing file stays");
    node.execute(1, &[LOAD]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t JOIN d.s USING (id, v)"), ["700"]);
    assert!(node.files.open.is_empty());
    let answer = node.query(1, LOAD);
    assert!(answer[0].starts_with("#23000Duplicate entry '"), "{answer:?}");
    assert!(node.files.open.is_empty());
    assert_eq!(node.query(1, "SELECT LENGTH(LOAD_FILE('f'))"), [lines().len().to_string()]);
    node.execute(1, &["UPDATE d.t SET v = LEFT(LOAD_FILE('f'), 5) WHERE id = 7"]);
    assert_eq!(node.query(1, "SELECT HEX(v) FROM d.t WHERE id = 7"), ["3009787878"]);
    assert!(node.files.open.is_empty());
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn a_file_that_cannot_be_written_is_deleted_before_the_error() {
    for (kind, error, expected) in [
        ("open", FileError::Outside, "#HY000The MySQL server is running with the --secure-file-priv option"),
        ("open", FileError::Denied, "#HY000Can't create/write to file '/files/f' (OS errno 13"),
        ("write", FileError::DiskFull, "#HY000Error writing file '/files/f' (OS errno 28"),
    ] {
        let mut node = node();
        node.files.failing = Some((kind, error));
        let answer = node.query(1, OUT);
        assert!(answer[0].starts_with(expected), "{answer:?}");
        assert!(node.files.content.is_empty() && node.files.open.is_empty(), "{kind}");
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
    let mut node = node();
    for (text, expected) in [
        ("SELECT id FROM d.s INTO DUMPFILE 'f'", "#42000Result consisted of more than one row"),
        ("SELECT EXP(id * 2) FROM d.s ORDER BY id INTO OUTFILE 'f'", "#22003DOUBLE value is out of range in"),
        ("SELECT id FROM d.s WHERE id = (SELECT 1 UNION SELECT 2) INTO OUTFILE 'f'", "#21000Subquery returns more"),
    ] {
        let answer = node.query(1, text);
        assert!(answer[0].starts_with(expected), "{answer:?}");
        assert!(node.files.content.is_empty() && node.files.open.is_empty(), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_loads_nothing() {
    for (kind, error, expected) in [
        ("", FileError::NotOpen, "#HY000Can't get stat of '/files/f' (OS errno 2"),
        ("open", FileError::Denied, "#HY000File '/files/f' not found (OS errno 13"),
        ("open", FileError::NotAFile, "#HY000The file 'f' must be in the database directory"),
        ("read", FileError::System(5), "#HY000Error reading file '/files/f' (OS errno 5"),
    ] {
        let mut node = node();
        if !kind.is_empty() {
            node.files.content.insert("f".into(), lines());
            node.files.failing = Some((kind, error));
        }
        let answer = node.query(1, LOAD);
        assert!(answer[0].starts_with(expected), "{answer:?}");
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
        assert_eq!(node.query(1, "SELECT LOAD_FILE('f') IS NULL"), ["1"]);
        assert!(node.files.open.is_empty());
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
}

/// Stops a statement of session 1 after `steps` signals: by KILL, or with an empty text by the end of its
/// connection. Returns its answer.
fn stopped(node: &mut Node, text: &str, steps: usize, kill: &str) -> Option<Vec<u8>> {
    node.begin_query(1, text);
    (0..steps).for_each(|_| _ = node.step());
    match kill.is_empty() {
        true => node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) })),
        false => node.begin_query(2, kill),
    }
    node.run();
    node.answer(2);
    assert!(node.files.open.is_empty(), "{text}, {kill} after {steps} steps");
    node.answer(1)
}

#[test]
fn a_stop_at_any_moment_leaves_no_part_of_a_file() {
    for kill in ["KILL QUERY 1", "KILL 1", ""] {
        let (mut whole, mut none) = (0, 0);
        for steps in (0..60).chain((60..200).step_by(9)) {
            let mut node = node();
            let answer = stopped(&mut node, OUT, steps, kill);
            match node.files.content.get("f") {
                Some(content) => {
                    assert!(*content == lines(), "{kill} after {steps} steps");
                    whole += 1;
                }
                None => none += 1,
            }
            if kill == "KILL QUERY 1" {
                let is_killed = answer.expect("an answer").windows(7).any(|bytes| bytes == b"Query e");
                assert_eq!(is_killed, !node.files.content.contains_key("f"), "after {steps} steps");
                assert_eq!(node.resources_held(), 2, "{kill} after {steps} steps");
            }
        }
        assert!(whole > 3 && none > 10, "{kill}: {whole} whole files, {none} times none");
    }
}

#[test]
fn a_stop_at_any_moment_loads_all_rows_or_none() {
    for kill in ["KILL QUERY 1", "KILL 1", ""] {
        for text in [LOAD, "INSERT INTO d.t SELECT id, LEFT(LOAD_FILE('f'), 3) FROM d.s"] {
            for steps in (0..50).step_by(2).chain((50..200).step_by(13)) {
                let mut node = node();
                node.files.content.insert("f".into(), lines());
                stopped(&mut node, text, steps, kill);
                let count = node.query(2, "SELECT COUNT(*) FROM d.t");
                assert!(count == ["0"] || count == ["700"], "{text}, {kill} after {steps} steps: {count:?}");
                if kill == "KILL QUERY 1" {
                    assert_eq!(node.resources_held(), 2, "{text}, {kill} after {steps} steps");
                }
            }
        }
    }
}

#[test]
fn the_process_list_shows_the_progress_and_a_slow_file_holds_the_query_back() {
    let state = "SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = 1";
    for (text, verb) in [(OUT, "writing"), (LOAD, "loading")] {
        let mut node = node();
        if text == LOAD {
            node.files.content.insert("f".into(), lines());
        }
        node.files.is_held = true;
        node.begin_query(1, text);
        let mut seen = Vec::new();
        loop {
            node.run();
            assert!(node.files.held.len() <= 1, "a statement has one request under way");
            let Some((to, done)) = node.files.held.pop() else { break };
            seen.extend(node.query(2, state));
            node.send_world(to, done);
        }
        assert_eq!(node.rows(1), Vec::<String>::new());
        let rows = |state: &String| {
            let words: Vec<&str> = state.split(' ').collect();
            assert_eq!(words[..3], [verb, "a", "file,"], "{state}");
            words[3].parse::<usize>().expect("a number")
        };
        // The last request of LOAD DATA closes the file, after the answer.
        let counts: Vec<usize> = seen.iter().filter(|state| state.contains("file")).map(rows).collect();
        assert!(counts.is_sorted() && counts[0] == 0, "{counts:?}");
        assert!(counts.iter().any(|count| (1..ROWS).contains(count)), "{counts:?}");
    }
}

#[test]
fn a_block_has_a_maximum_of_open_files() {
    let mut node = node();
    let sessions: Vec<u32> = (10..300).filter(|id| id % 2 == 0).collect();
    // Sessions of the extra port need no slot of the thread pool.
    sessions.iter().for_each(|session| node.open_extra(*session));
    for session in &sessions {
        node.begin_query(*session, &format!("SELECT * FROM d.s INTO OUTFILE 'f{session}'"));
    }
    node.files.is_held = true;
    node.run();
    node.files.is_held = false;
    let held = std::mem::take(&mut node.files.held);
    assert_eq!(held.len(), 64);
    held.into_iter().for_each(|(to, done)| node.send_world(to, done));
    node.run();
    let answers: Vec<Vec<String>> = sessions.iter().map(|session| node.rows(*session)).collect();
    let refused = answers.iter().filter(|answer| answer.iter().any(|text| text.contains("OS errno 24"))).count();
    assert_eq!(refused, sessions.len() - 64);
    assert!(answers.iter().all(|answer| answer.is_empty() || answer[0].contains("OS errno 24")), "{answers:?}");
    assert_eq!(node.files.content.len(), sessions.len() - refused);
    assert!(node.files.open.is_empty());
}
