//! The outcome of parsing every statement that clients are known to send or that is likely to reach an
//! NDB-like server. `tests/corpus/parse-outcomes.txt` has the expected outcomes; a run with
//! `JUNCTOR_RECORD=1` writes it again.

use crate::parse::parse;
use crate::parse::statement::Statement;
use std::path::PathBuf;

fn corpus_path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "corpus", name].iter().collect()
}

fn read(name: &str) -> String {
    let path = corpus_path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The listed statements, which are separated by lines of two hyphens.
pub(super) fn listed_statements() -> Vec<String> {
    read("mysql-statements.txt").split("\n--\n").map(|text| text.trim().to_owned()).collect()
}

/// The distinct texts of the log's Query, Prepare and Execute commands.
pub(super) fn logged_statements() -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for line in read("client-traffic.log").lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let command = fields.iter().enumerate().find_map(|(index, field)| {
            let is_head =
                index <= 2 && (line.starts_with('\t') || line.starts_with(|byte: char| byte.is_ascii_digit()));
            let mut words = field.trim_start().splitn(2, ' ');
            let id = words.next()?.parse::<u32>().ok().filter(|_| is_head)?;
            Some((id, words.next()?.to_owned(), fields[index + 1..].join("\t")))
        });
        match command {
            Some((_, command, argument)) => {
                statements.extend(open.take());
                let is_statement = matches!(command.as_str(), "Query" | "Prepare" | "Execute");
                open = is_statement.then_some(argument);
            }
            None => {
                if let Some(text) = &mut open {
                    text.push('\n');
                    text.push_str(line);
                }
            }
        }
    }
    statements.extend(open);
    let mut seen = std::collections::BTreeSet::new();
    statements.retain(|text| !text.is_empty() && seen.insert(text.clone()));
    statements
}

fn outcome(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(parsed) => match parsed.statement {
            Statement::Unsupported(unsupported) => format!("unsupported: {}", unsupported.what),
            Statement::Show(show) => format!("Show {}", first_word(&format!("{show:?}"))),
            statement => first_word(&format!("{statement:?}")),
        },
        Err(error) => format!("error {} at {}", error.kind.code().errno(), error.position),
    }
}

fn first_word(debug: &str) -> String {
    debug.chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[test]
fn every_statement_of_the_corpus_keeps_its_outcome() {
    let mut outcomes = String::new();
    for text in listed_statements().iter().chain(&logged_statements()) {
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        outcomes.push_str(&format!("{} | {}\n", outcome(text), one_line));
    }
    if std::env::var_os("JUNCTOR_RECORD").is_some() {
        std::fs::write(corpus_path("parse-outcomes.txt"), &outcomes).expect("the corpus can be written");
    }
    let recorded = read("parse-outcomes.txt");
    for (number, (is, was)) in outcomes.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(is, was, "line {}", number + 1);
    }
    assert_eq!(outcomes.lines().count(), recorded.lines().count());
}

#[test]
fn every_statement_of_sysbench_is_supported() {
    let mut statements: Vec<String> = Vec::new();
    for engine in ["innodb", "ndbcluster", "junctor"] {
        statements.push(format!(
            "CREATE TABLE sbtest1(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
             /*! ENGINE = {engine} */ "
        ));
        statements.push(format!(
            "CREATE TABLE sbtest2(\n  id INTEGER NOT NULL,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  KEY xid (id)\n) \
             /*! ENGINE = {engine} */ "
        ));
    }
    let points = ["?"; 10].join(", ");
    let ranges = ["k BETWEEN ? AND ?"; 10].join(" OR ");
    statements.push(format!(
        "\n        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({points})\n        "
    ));
    statements.push(format!("\n        SELECT count(k)\n          FROM sbtest1\n          WHERE {ranges}"));
    statements.extend(
        [
            "INSERT INTO sbtest1(k, c, pad) VALUES(4993, '68487932199-96439406143-93774651418', '67847967377-48000963322'),(5018, '13241531885-45658403807', '51185622598')",
            "INSERT INTO sbtest1(id, k, c, pad) VALUES(1, 4993, 'a', 'b')",
            "CREATE INDEX k_1 ON sbtest1(k)",
            "BEGIN",
            "COMMIT",
            "SELECT c FROM sbtest1 WHERE id=?",
            "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?",
            "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
            "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
            "UPDATE sbtest1 SET k=k+1 WHERE id=?",
            "UPDATE sbtest1 SET c=? WHERE id=?",
            "DELETE FROM sbtest1 WHERE id=?",
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
            "\n        CREATE TABLE IF NOT EXISTS sbtest1 (\n          id INTEGER NOT NULL,\n          k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))",
            "INSERT INTO sbtest1 VALUES(1,1),(2,2),(3,3)",
            "DROP TABLE IF EXISTS sbtest1",
            "SELECT COUNT(*) FROM sbtest1",
        ]
        .map(str::to_owned),
    );
    for text in statements {
        let result = outcome(&text);
        assert!(!result.contains(':') && !result.contains("error"), "{text}: {result}");
    }
}
