//! Columns that come and go without a copy of the rows: a random history, with restarts, equals that of a
//! table whose rows each change copies (`docs/decisions/0072-dropped-columns.md`,
//! `docs/decisions/0076-unstored-virtual-columns.md`).

use std::net::TcpStream;
use std::path::Path;

use junctor_bench::mysql::Connection;
use junctor_kernel::Random;

use super::server::{Server, folder, rows, run, small_files_command};

const STEPS: usize = 260;

/// The value of a virtual column.
const COMPUTED: &str = "DEFAULT";

/// Types of columns, with a value that is an expression over `id`.
const COLUMNS: [(&str, &str); 11] = [
    ("INT", "id * 7"),
    ("VARCHAR(20) NOT NULL DEFAULT 'd'", "CONCAT('v', id)"),
    ("TEXT", "REPEAT(CHAR(97 + id % 26), 9000 + id)"),
    ("DATETIME DEFAULT '2001-02-03 04:05:06'", "'2020-01-01' + INTERVAL id DAY"),
    ("DECIMAL(20, 3) NOT NULL DEFAULT 1.5", "id / 8"),
    ("ENUM('x', 'y') NOT NULL DEFAULT 'y'", "1 + id % 2"),
    ("JSON", "JSON_ARRAY(id)"),
    ("BIGINT UNSIGNED NOT NULL DEFAULT 3", "id + 10000000000"),
    ("BIGINT AS (k * 3 - id) VIRTUAL", COMPUTED),
    ("VARCHAR(12) AS (CONCAT('k', k)) VIRTUAL", COMPUTED),
    ("DECIMAL(12, 2) AS (k / 4)", COMPUTED),
];

/// A column of both tables: its name and its place in [`COLUMNS`].
type Column = (String, usize);

struct History {
    random: Random,
    columns: Vec<Column>,
    names: usize,
    next_row: u64,
}

impl History {
    /// Changes both tables in the same way: `d.i` instantly where possible, `d.c` with a copy.
    fn step(&mut self, session: &mut Connection<TcpStream>) {
        let place = self.random.below(self.columns.len().max(1) as u64) as usize;
        let chosen = self.columns.get(place).cloned();
        match (self.random.below(12), chosen) {
            (0..2, _) => {
                let (name, kind) = self.fresh();
                let after = match &self.columns.get(place) {
                    Some((after, _)) => format!("AFTER {after}"),
                    None => "FIRST".into(),
                };
                self.alter(session, &format!("ADD COLUMN {name} {} {after}", COLUMNS[kind].0));
                self.columns.push((name, kind));
            }
            (2..4, Some((name, _))) => {
                self.alter(session, &format!("DROP COLUMN {name}"));
                self.columns.remove(place);
            }
            (4, Some((name, _))) => {
                // The name is used again at once.
                let (_, kind) = self.fresh();
                self.alter(session, &format!("DROP COLUMN {name}, ADD COLUMN {name} {}", COLUMNS[kind].0));
                self.columns[place].1 = kind;
            }
            (5, Some((name, _))) => {
                let (new, _) = self.fresh();
                self.alter(session, &format!("RENAME COLUMN {name} TO {new}"));
                self.columns[place].0 = new;
            }
            (6..8, Some((name, kind))) if COLUMNS[kind].1 != COMPUTED => {
                let row = 1 + self.random.below(self.next_row);
                let value = COLUMNS[kind].1;
                self.both(session, &format!("UPDATE {{}} SET {name} = {value}, k = k + 1 WHERE id % 5 = {row} % 5"));
                // Changes no row that has the value already.
                self.both(session, &format!("UPDATE {{}} SET {name} = {value} WHERE id % 2 = 1"));
            }
            (8, _) => {
                let row = 1 + self.random.below(self.next_row);
                self.both(session, &format!("DELETE FROM {{}} WHERE id = {row}"));
            }
            _ => {
                self.next_row += 1;
                let id = self.next_row;
                let given = || self.columns.iter().filter(|(_, kind)| COLUMNS[*kind].1 != COMPUTED);
                let names: String = given().map(|(name, _)| format!(", {name}")).collect();
                let values: String = given().map(|(_, kind)| format!(", {}", COLUMNS[*kind].1)).collect();
                let (names, values) =
                    if id.is_multiple_of(3) { (String::new(), String::new()) } else { (names, values) };
                let from = format!("FROM (SELECT {id} AS id) one");
                self.both(session, &format!("INSERT INTO {{}} (id, k{names}) SELECT id, id{values} {from}"));
            }
        }
    }

    fn fresh(&mut self) -> Column {
        self.names += 1;
        (format!("c{}", self.names), self.random.below(COLUMNS.len() as u64) as usize)
    }

    fn alter(&self, session: &mut Connection<TcpStream>, changes: &str) {
        if let Err(error) = session.query(&format!("ALTER TABLE d.i {changes}, ALGORITHM=INSTANT")) {
            // The table has too many added or dropped columns.
            assert_eq!(error.errno(), 4092, "{changes}: {error:?}");
            run(session, &[&format!("ALTER TABLE d.i {changes}")]);
        }
        run(session, &[&format!("ALTER TABLE d.c {changes}, ALGORITHM=COPY")]);
    }

    /// Both tables match and change the same number of rows.
    fn both(&self, session: &mut Connection<TcpStream>, statement: &str) {
        let counts = ["d.i", "d.c"].map(|table| {
            run(session, &[&statement.replace("{}", table)]);
            rows(session, "SELECT ROW_COUNT()")
        });
        assert_eq!(counts[0], counts[1], "{statement}");
    }
}

fn check(session: &mut Connection<TcpStream>) {
    let checksums = rows(session, "CHECKSUM TABLE d.i, d.c");
    assert_eq!(checksums[0][1], checksums[1][1], "{checksums:?}");
    let definition = |session: &mut Connection<TcpStream>, table: &str| {
        let text = rows(session, &format!("SHOW CREATE TABLE d.{table}"))[0][1].clone();
        text.replace(&format!("`{table}`"), "``")
    };
    assert_eq!(definition(session, "i"), definition(session, "c"));
    let all = |table: &str| format!("SELECT * FROM d.{table} FORCE INDEX (k) WHERE k > 0 ORDER BY k, id");
    assert_eq!(rows(session, &all("i")), rows(session, &all("c")));
}

fn start(folder: &Path) -> Server {
    Server::spawn(small_files_command(folder)).unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
}

#[test]
fn any_history_of_columns_with_restarts_equals_that_of_a_copied_table() {
    let folder = folder("dropped-columns");
    let mut server = start(&folder);
    let mut session = server.session();
    let table = "(id INT PRIMARY KEY, k INT NOT NULL, KEY k (k)) PARTITION BY KEY (id) PARTITIONS 3";
    run(
        &mut session,
        &["CREATE DATABASE d", &format!("CREATE TABLE d.i {table}"), &format!("CREATE TABLE d.c {table}")],
    );
    let mut history = History { random: Random::new(72), columns: Vec::new(), names: 0, next_row: 0 };
    for step in 1..=STEPS {
        history.step(&mut session);
        if step % 20 == 0 {
            check(&mut session);
        }
        // By turns from the log alone, which is short, and after a clean stop.
        if step % 65 == 0 {
            drop(session);
            match step % 130 {
                0 => assert!(server.stop().status.success()),
                _ => server.kill(),
            }
            server = start(&folder);
            session = server.session();
            check(&mut session);
        }
    }
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

/// The bytes of long values, once purge has nothing to do.
fn overflow_bytes(session: &mut Connection<TcpStream>) -> u64 {
    let query = "SELECT SUM(overflow_bytes), SUM(row_versions - live_rows) FROM junctor_info.memoryusage";
    loop {
        let figures = rows(session, query).remove(0);
        if figures[1] == "0" {
            return figures[0].parse().expect("a number");
        }
        std::thread::yield_now();
    }
}

#[test]
fn long_values_of_a_dropped_column_are_freed_when_their_row_changes_or_is_copied() {
    let folder = folder("dropped-overflow");
    let server = start(&folder);
    let mut session = server.session();
    let values: Vec<String> = (1..=100).map(|id| format!("({id}, {id}, REPEAT('x', 30000))")).collect();
    let insert = format!("INSERT INTO d.a VALUES {}", values.join(","));
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, v INT, t TEXT)", &insert]);
    let all = overflow_bytes(&mut session);
    assert!(all >= 3_000_000, "{all} bytes of 100 values");
    run(&mut session, &["ALTER TABLE d.a DROP COLUMN t, ALGORITHM=INSTANT", "UPDATE d.a SET v = v"]);
    assert_eq!(overflow_bytes(&mut session), all);
    run(&mut session, &["UPDATE d.a SET v = v + 1 WHERE id <= 50"]);
    let half = overflow_bytes(&mut session);
    assert!(half <= all * 6 / 10, "{half} of {all} bytes are left");
    run(&mut session, &["ALTER TABLE d.a FORCE"]);
    while overflow_bytes(&mut session) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(rows(&mut session, "SELECT COUNT(*), SUM(v) FROM d.a"), [["100", "5100"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
