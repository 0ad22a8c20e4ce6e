//! A script of statements whose result is known after each step, and the check of what survived of it.
//!
//! One session plays the script. When the server has ended, the acknowledged steps must be there. The step
//! under way may be there whole or not at all. A server that runs undisturbed gives the contents after each
//! step.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;

use junctor_bench::mysql::{ClientError, Connection};

use super::server::{Server, rows, run, small_files_command};

type Session = Connection<TcpStream>;

const SYSTEM_DATABASES: [&str; 5] = ["information_schema", "junctor_info", "mysql", "performance_schema", "sys"];
/// Number of rows of a table whose transactions change more rows than one log record can hold.
const MANY_ROWS: u64 = 150;
/// Steps between two schema changes.
const STEPS_PER_CHANGE: u64 = 12;
/// A schema change that fails after it has begun, because rows have equal keys.
const REFUSED: &str = "ALTER TABLE shop.many ADD INDEX unused (code), ADD UNIQUE refused (n)";
/// The error of a schema change that finds equal keys.
const DUPLICATE: u16 = 1062;

/// The script, with the contents of the server after each number of steps.
pub struct Script {
    steps: Vec<Vec<String>>,
    contents: Vec<String>,
}

/// Steps that take effect whole or not at all. Each is a statement or a transaction.
fn steps(rounds: u64, has_rare: bool) -> Vec<Vec<String>> {
    let one = |text: &str| vec![text.to_owned()];
    let many: Vec<String> = (1..=MANY_ROWS).map(|id| format!("({id}, {id}, 0)")).collect();
    let accounts: Vec<String> = (0..10).map(|id| format!("({id}, 1000)")).collect();
    let mut steps = vec![
        one("CREATE DATABASE shop"),
        one("CREATE TABLE shop.item (id INT AUTO_INCREMENT PRIMARY KEY, code INT UNIQUE, name VARCHAR(40), \
             note TEXT, KEY by_name (name))"),
        one("CREATE TABLE shop.account (id INT PRIMARY KEY, balance BIGINT)"),
        one("CREATE TABLE shop.transfer (id INT PRIMARY KEY, source INT, target INT, KEY (source), \
             FOREIGN KEY (target) REFERENCES shop.account (id))"),
        one("CREATE TABLE shop.many (id INT PRIMARY KEY, code INT, n INT)"),
        one(&format!("INSERT INTO shop.account VALUES {}", accounts.join(","))),
        one(&format!("INSERT INTO shop.many VALUES {}", many.join(","))),
    ];
    for round in 0..rounds {
        steps.extend((round * STEPS_PER_CHANGE..(round + 1) * STEPS_PER_CHANGE).map(step));
        if has_rare {
            steps.extend(rare_steps(round));
        }
    }
    steps
}

/// Steps that a server may survive although its disk fails.
fn rare_steps(round: u64) -> [Vec<String>; 5] {
    [
        vec![format!("SET PERSIST wait_timeout = {}", 10_000 + round)],
        vec![REFUSED.to_owned()],
        vec![
            "ALTER TABLE shop.transfer ADD CONSTRAINT paid FOREIGN KEY (source) REFERENCES shop.account (id)"
                .to_owned(),
        ],
        vec!["ALTER TABLE shop.transfer DROP FOREIGN KEY paid".to_owned()],
        vec!["LOCK INSTANCE FOR BACKUP".to_owned(), "UNLOCK INSTANCE".to_owned()],
    ]
}

fn step(number: u64) -> Vec<String> {
    let round = number / STEPS_PER_CHANGE;
    let code = number * 10;
    let (from, to) = (number % 10, (number + 1 + round % 9) % 10);
    let transaction = |statements: &[String], end: &str| {
        let (begin, end) = (["BEGIN".to_owned()], [end.to_owned()]);
        [&begin[..], statements, &end[..]].concat()
    };
    match number % STEPS_PER_CHANGE {
        0 => vec![format!(
            "INSERT INTO shop.item (code, name) VALUES ({code}, 'a{number}'), ({}, 'b{number}'), (NULL, NULL)",
            code + 1
        )],
        1 => vec![format!("UPDATE shop.item SET name = 'c{number}' WHERE id % 7 = {}", round % 7)],
        2 | 3 => transaction(
            &[
                format!("UPDATE shop.account SET balance = balance - 5 WHERE id = {from}"),
                format!("UPDATE shop.account SET balance = balance + 5 WHERE id = {to}"),
                format!("INSERT INTO shop.transfer VALUES ({number}, {from}, {to})"),
            ],
            "COMMIT",
        ),
        4 => vec![format!("DELETE FROM shop.item WHERE id % 11 = {}", round % 11)],
        5 => vec![format!("UPDATE shop.item SET code = -code WHERE code = {}", code - 49)],
        6 => transaction(
            &[
                format!("INSERT INTO shop.item (code, name) VALUES ({code}, 'd{number}')"),
                "SAVEPOINT a".to_owned(),
                "UPDATE shop.item SET name = 'undone'".to_owned(),
                "ROLLBACK TO a".to_owned(),
                format!("UPDATE shop.account SET balance = balance + 1 WHERE id = {from}"),
            ],
            "COMMIT",
        ),
        7 => transaction(
            &["UPDATE shop.account SET balance = 0".to_owned(), "DELETE FROM shop.many".to_owned()],
            "ROLLBACK",
        ),
        8 => vec![format!(
            "INSERT INTO shop.item (code, note) VALUES ({code}, REPEAT('{}', {}))",
            number % 10,
            15_000 + number
        )],
        9 => vec![format!("UPDATE shop.many SET n = n + 1 WHERE id > {}", (number % 5) * 30)],
        10 => vec![schema_change(round)],
        _ => vec![format!("DELETE FROM shop.transfer WHERE source = {from}")],
    }
}

/// Ten schema changes that leave the schema as it was.
fn schema_change(round: u64) -> String {
    let cycle = round / 10;
    match round % 10 {
        0 => format!("CREATE TABLE shop.extra{cycle} (id INT PRIMARY KEY, n INT, KEY (n))"),
        // The rows are copied to a new table.
        1 => "ALTER TABLE shop.account ADD note CHAR(3) NOT NULL DEFAULT 'x' FIRST, ADD INDEX by_balance (balance)"
            .to_owned(),
        2 => "ALTER TABLE shop.many ADD UNIQUE by_code (code), ADD INDEX by_n (n)".to_owned(),
        3 => format!("RENAME TABLE shop.extra{cycle} TO shop.renamed{cycle}"),
        4 => "CREATE DATABASE other".to_owned(),
        5 => "ALTER TABLE shop.account DROP INDEX by_balance, DROP COLUMN note".to_owned(),
        6 => "ALTER TABLE shop.many DROP INDEX by_n, DROP INDEX by_code".to_owned(),
        7 => "TRUNCATE TABLE shop.transfer".to_owned(),
        8 => "DROP DATABASE other".to_owned(),
        _ => format!("DROP TABLE shop.renamed{cycle}"),
    }
}

impl Script {
    /// Plays a script with this number of schema changes, and twelve steps for each, on an undisturbed
    /// server.
    pub fn new(rounds: u64, folder: &Path) -> Script {
        Script::of_steps(steps(rounds, false), folder)
    }

    /// Such a script that also sets persisted variables, begins schema changes that fail, and holds the
    /// backup lock. A failing disk does not stop the server in all of these steps.
    pub fn with_rare_steps(rounds: u64, folder: &Path) -> Script {
        Script::of_steps(steps(rounds, true), folder)
    }

    fn of_steps(steps: Vec<Vec<String>>, folder: &Path) -> Script {
        let server = Server::spawn(small_files_command(folder)).expect("the server starts");
        let (mut player, mut reader) = (server.session(), server.session());
        let mut contents = vec![read_contents(&mut reader)];
        for step in &steps {
            for statement in step {
                execute(&mut player, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            }
            contents.push(read_contents(&mut reader));
        }
        server.kill();
        Script { steps, contents }
    }

    /// Plays the script until the server fails. Returns the number of acknowledged steps.
    pub fn play(&self, server: &Server) -> usize {
        let Ok(mut session) = Connection::open(server.address, "") else { return 0 };
        let mut is_done = |step: &&Vec<String>| step.iter().all(|statement| execute(&mut session, statement).is_ok());
        self.steps.iter().take_while(|step| is_done(step)).count()
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Checks what a restarted server has. `case` names the test in messages.
    pub fn check(&self, server: &Server, acknowledged: usize, case: &str) {
        let mut session = server.session();
        let found = read_contents(&mut session);
        let allowed = &self.contents[acknowledged..self.contents.len().min(acknowledged + 2)];
        if !allowed.contains(&found) {
            let expected = &allowed[0];
            let at = self.contents.iter().rposition(|contents| *contents == found);
            let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
            panic!(
                "{case}: {acknowledged} steps were acknowledged, the contents are those after {at:?} steps; \
                 first difference: {differing:?}; next step: {:?}",
                self.steps.get(acknowledged)
            );
        }
        if acknowledged > 1 {
            let greatest = rows(&mut session, "SELECT COALESCE(MAX(id), 0) FROM shop.item").remove(0).remove(0);
            run(&mut session, &["INSERT INTO shop.item (name) VALUES ('after')"]);
            let id = rows(&mut session, "SELECT LAST_INSERT_ID()").remove(0).remove(0);
            let number = |text: &str| text.parse::<u64>().expect("a number");
            assert!(number(&id) > number(&greatest), "{case}: AUTO_INCREMENT went from {greatest} to {id}");
        }
    }
}

/// Executes a statement of the script. [`REFUSED`] succeeds if the server refuses it.
fn execute(session: &mut Session, statement: &str) -> Result<(), ClientError> {
    match session.query(statement) {
        Ok(_) if statement == REFUSED => panic!("a unique index was built from equal keys"),
        Err(error) if statement == REFUSED && error.errno() == DUPLICATE => Ok(()),
        executed => executed.map(drop),
    }
}

/// Everything that users can read: persisted variables, databases, definitions and rows. Checks each index
/// against the rows.
fn read_contents(session: &mut Session) -> String {
    let persisted = rows(session, "SELECT variable_name, variable_value FROM performance_schema.persisted_variables");
    let mut contents = format!("persisted {persisted:?}\n");
    for database in rows(session, "SHOW DATABASES").into_iter().flatten() {
        if SYSTEM_DATABASES.contains(&database.as_str()) {
            continue;
        }
        contents += &format!("database {database}\n");
        for table in rows(session, &format!("SHOW TABLES FROM {database}")).into_iter().flatten() {
            read_table(session, &format!("{database}.{table}"), &mut contents);
        }
    }
    contents
}

fn read_table(session: &mut Session, table: &str, contents: &mut String) {
    let definition = rows(session, &format!("SHOW CREATE TABLE {table}")).remove(0).remove(1);
    let without_counter: Vec<&str> =
        definition.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT=")).collect();
    *contents += &format!("{}\n", without_counter.join(" "));
    let columns = rows(session, &format!("SHOW COLUMNS FROM {table}"));
    let values: Vec<String> = columns
        .iter()
        .map(|column| match column[1].as_str() {
            "text" => format!("CONCAT(LENGTH({0}), ' ', CRC32({0}))", column[0]),
            _ => column[0].clone(),
        })
        .collect();
    let values = values.join(", ");
    let all: BTreeSet<Vec<String>> = rows(session, &format!("SELECT {values} FROM {table}")).into_iter().collect();
    for row in &all {
        *contents += &format!("{}\n", row.join(" | "));
    }
    for index in rows(session, &format!("SHOW INDEX FROM {table}")).iter().filter(|index| index[3] == "1") {
        let (name, column) = (&index[2], &index[4]);
        let position = columns.iter().position(|other| other[0] == *column).expect("an index has columns of its table");
        let least = if columns[position][1].contains("int") { "-9223372036854775807" } else { "''" };
        let statement = format!("SELECT {values} FROM {table} FORCE INDEX ({name}) WHERE {column} >= {least}");
        let by_index = rows(session, &statement);
        let expected = all.iter().filter(|row| row[position] != "NULL").count();
        assert_eq!(by_index.len(), expected, "{table}: rows by index {name}");
        assert!(by_index.iter().all(|row| all.contains(row)), "{table}: index {name} has other rows than the table");
    }
}
