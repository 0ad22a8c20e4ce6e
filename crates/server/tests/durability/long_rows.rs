//! Rows with long values, of which statements change some bytes: the log has the changed bytes only, and
//! after kills each row is as the acknowledged statements have left it
//! (`docs/decisions/0086-edits-in-the-log.md`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Sender};

use junctor_bench::mysql::Connection;

use super::server::{Server, command_with_settings, folder, rows, run};

const CLIENTS: u64 = 4;
const KILLS: u64 = 6;
const LIST: u64 = 900;
const BODY: usize = 40_000;
/// A checkpoint for each 64 KiB of log, and small files.
const SETTINGS: &str = "FragmentLogFileSize = \"1M\"\nTimeBetweenLocalCheckpoints = 14\n";
/// Rounds of changes whose log is measured.
const ROUNDS: usize = 20;
/// One in this many statements changes all rows, and is long enough for chunks.
const ALL_ROWS_ONE_IN: u64 = 9;

/// A row as the statements of its client leave it.
#[derive(Clone)]
struct Row {
    n: u64,
    body: Vec<u8>,
    list: Vec<u64>,
}

impl Row {
    fn new() -> Row {
        Row { n: 0, body: (0..BODY).map(|at| b'a' + (at * at % 26) as u8).collect(), list: (0..LIST).collect() }
    }

    /// What [`update`] does.
    fn advance(&mut self) {
        self.n += 1;
        let n = self.n;
        let at = (n * 37 % 30_000) as usize;
        let letters = vec![b'a' + (n % 26) as u8; (n * 7 % 11) as usize];
        self.body.splice(at..at + (n % 9) as usize, letters);
        self.list[(n % LIST) as usize] = n;
    }

    fn list_text(&self) -> String {
        let numbers: Vec<String> = self.list.iter().map(u64::to_string).collect();
        format!("[{}]", numbers.join(", "))
    }
}

fn update(client: u64) -> String {
    format!(
        "UPDATE d.t SET n = n + 1, doc = JSON_SET(doc, '$.n', n, CONCAT('$.list[', n % {LIST}, ']'), n), \
         body = INSERT(body, 1 + n * 37 % 30000, n % 9, REPEAT(CHAR(97 + n % 26), n * 7 % 11)) WHERE id = {client}"
    )
}

/// Changes the row of a client until the server is gone. Sends each acknowledged number.
fn change(address: SocketAddr, client: u64, mut n: u64, acknowledged: &Sender<(u64, u64)>) {
    let Ok(mut session) = Connection::open(address, "d") else { return };
    loop {
        if n % ALL_ROWS_ONE_IN == client {
            match session.query("UPDATE d.t SET m = m + 1") {
                Err(error) if error.errno() != 1213 => return,
                _ => {}
            }
        }
        // By turns with a rollback before it, and twice in one transaction.
        let one = update(client);
        let (statements, added) = match n % 4 {
            0 => (vec!["BEGIN", &one, "ROLLBACK", &one], 1),
            1 => (vec!["BEGIN", &one, &one, "COMMIT"], 2),
            _ => (vec![&*one], 1),
        };
        let mut is_done = true;
        for statement in statements {
            match session.query(statement) {
                Ok(_) => {}
                // The transaction is rolled back.
                Err(error) if error.errno() == 1213 => {
                    is_done = false;
                    break;
                }
                Err(_) => return,
            }
        }
        if is_done {
            n += added;
            if acknowledged.send((client, n)).is_err() {
                return;
            }
        }
    }
}

/// Checks each row, and brings the expected ones to the numbers that are there.
fn check(server: &Server, expected: &mut [Row], acknowledged: &[u64], round: u64) {
    let mut session = server.session();
    let query = "SELECT id, n, m, body, doc->'$.n', doc->'$.list', k FROM d.t ORDER BY id";
    let found = rows(&mut session, query);
    assert_eq!(found.len(), expected.len(), "round {round}");
    for (row, expected) in found.iter().zip(expected) {
        let n: u64 = row[1].parse().expect("a number");
        let client = &row[0];
        let least = acknowledged[client.parse::<usize>().expect("a number")];
        assert!((least..=least + 2).contains(&n), "round {round}, row {client}: {n} after {least} was acknowledged");
        while expected.n < n {
            expected.advance();
        }
        assert!(row[3].as_bytes() == expected.body, "round {round}, row {client}: the text at {n} is another one");
        assert_eq!(row[4], row[1], "round {round}, row {client}");
        assert!(row[5] == expected.list_text(), "round {round}, row {client}: the document at {n} is another one");
        assert_eq!(row[2], found[0][2], "round {round}: a statement on all rows is there in part");
    }
}

#[test]
fn long_rows_that_change_in_places_survive_kills() {
    let folder = folder("long-rows");
    let start = || {
        Server::spawn(command_with_settings(&folder, SETTINGS))
            .unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
    };
    let mut server = start();
    let mut session = server.session();
    let table = "CREATE TABLE d.t (id INT PRIMARY KEY, n INT NOT NULL, m INT NOT NULL, doc JSON, k VARCHAR(20), \
                 body MEDIUMTEXT, KEY (n)) PARTITION BY KEY (id) PARTITIONS 2";
    run(&mut session, &["CREATE DATABASE d", table]);
    let mut expected = vec![Row::new(); CLIENTS as usize];
    for (client, row) in expected.iter().enumerate() {
        let body = String::from_utf8(row.body.clone()).expect("letters");
        let doc = format!("{{\"n\": 0, \"list\": {}}}", row.list_text());
        run(&mut session, &[&format!("INSERT INTO d.t VALUES ({client}, 0, 0, '{doc}', 'k', '{body}')")]);
    }
    let mut total = 0;
    for round in 0..KILLS {
        let address = server.address;
        let (send, receive) = mpsc::channel();
        let mut acknowledged: Vec<u64> = expected.iter().map(|row| row.n).collect();
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (send, n) = (send.clone(), expected[client as usize].n);
                scope.spawn(move || change(address, client, n, &send));
            }
            drop(send);
            let mut take = |(client, n): (u64, u64)| {
                acknowledged[client as usize] = n;
                total += 1;
            };
            receive.iter().take(30 + 23 * round as usize).for_each(&mut take);
            server.kill();
            receive.iter().for_each(&mut take);
        });
        server = start();
        if round == 3 {
            // Images of the earlier definition are bases of later edits.
            let added = "ALTER TABLE d.t ADD COLUMN extra VARCHAR(30) DEFAULT 'none', ALGORITHM=INSTANT";
            run(&mut server.session(), &[added, "UPDATE d.t SET extra = 'some' WHERE id = 1"]);
        }
        check(&server, &mut expected, &acknowledged, round);
    }
    println!("{KILLS} kills, {total} acknowledged changes");
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

/// Bytes that were written to the log.
fn log_bytes(session: &mut Connection<std::net::TcpStream>) -> u64 {
    rows(session, "SELECT SUM(written_bytes) FROM junctor_info.logspaces")[0][0].parse().expect("a number")
}

#[test]
fn the_log_of_a_change_of_a_long_row_is_short() {
    let folder = folder("short-log");
    let server = Server::start(&folder);
    let mut session = server.session();
    run(
        &mut session,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, doc JSON, body LONGBLOB, v VECTOR(16000))",
            "INSERT INTO d.t VALUES (1, 0, JSON_OBJECT('n', 0, 'text', REPEAT('long', 50000)), REPEAT('x', 200000), \
             STRING_TO_VECTOR(CONCAT('[1', REPEAT(',2', 15999), ']')))",
        ],
    );
    let changes = [
        "n = n + 1",
        "doc = JSON_SET(doc, '$.n', 10000 + n)",
        "doc = JSON_SET(doc, '$.added', 'a value', '$.n', 5)",
        "doc = JSON_REMOVE(doc, '$.added')",
        "body = CONCAT(body, 'and more')",
        "body = INSERT(body, 100000, 5, 'in the middle')",
        "n = 70, doc = JSON_SET(doc, '$.other', n), body = SUBSTR(body, 1, 190000)",
    ];
    for _ in 0..ROUNDS {
        for change in changes {
            run(&mut session, &[&format!("UPDATE d.t SET {change} WHERE id = 1")]);
        }
    }
    // Each commit has a block of its own. The figure comes later than the commits.
    let commits = (ROUNDS * changes.len()) as u64;
    let mut written = 0;
    while written < commits * 4096 {
        std::thread::yield_now();
        written = log_bytes(&mut session);
    }
    // The row of the INSERT has 460 KB.
    assert!(written < 1_000_000 + commits * 2 * 4096, "{written} bytes");
    let sums = "SELECT MD5(doc), MD5(body), MD5(v), n, JSON_STORAGE_FREE(doc) FROM d.t";
    let before = rows(&mut session, sums);
    assert_eq!(before[0][3..], ["70", "0"]);
    drop(session);
    server.kill();
    let server = Server::start(&folder);
    assert_eq!(rows(&mut server.session(), sums), before);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn backups_and_increments_have_the_bases_of_all_changes() {
    let [data, store, restored] = ["", "-store", "-restored"].map(|end| folder(&format!("long-rows-backup{end}")));
    let junctor = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_junctor")).args(arguments).output().expect("the program runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let path = |folder: &'_ PathBuf| folder.to_str().expect("text").to_owned();
    let server = Server::spawn(command_with_settings(&data, SETTINGS)).expect("the server starts");
    let port = server.address.port().to_string();
    let mut session = server.session();
    let insert = "INSERT INTO d.t SELECT n, 0, JSON_OBJECT('n', 0, 'text', REPEAT(CHAR(90 + n), 20000)) \
                  FROM JSON_TABLE('[1, 2, 3, 4, 5, 6]', '$[*]' COLUMNS (n INT PATH '$')) numbers";
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, doc JSON)", insert]);
    let mut change = || {
        for _ in 0..30 {
            run(&mut session, &["UPDATE d.t SET n = n + 1, doc = JSON_SET(doc, '$.n', n, CONCAT('$.m', n % 7), n)"]);
        }
        rows(&mut session, "SELECT id, n, MD5(doc) FROM d.t ORDER BY id")
    };
    let mut sums = Vec::new();
    for name in ["full", "one", "two"] {
        sums.push((name, change()));
        let kind: &[&str] = if name == "full" { &[] } else { &["--incremental"] };
        junctor(&[&["backup", &path(&store), "--port", &port, "--name", name], kind].concat());
    }
    server.kill();
    junctor(&["check", &path(&data)]);
    for (name, sums) in sums {
        let _ = std::fs::remove_dir_all(&restored);
        junctor(&["restore", &path(&store), &path(&restored), "--name", name]);
        let server = Server::start(&restored);
        assert_eq!(rows(&mut server.session(), "SELECT id, n, MD5(doc) FROM d.t ORDER BY id"), sums, "{name}");
        server.kill();
    }
    for folder in [data, store, restored] {
        std::fs::remove_dir_all(&folder).expect("the folder exists");
    }
}
