//! The 22 queries: their texts, their times on an idle server, and the comparison of their answers.

use std::time::Instant;

use super::stream::connect;
use crate::mysql::{ClientError, Rows};
use crate::process::Server;
use crate::report::Table;
use crate::{Failure, Outcome};

const TEXTS: &str = include_str!("../../ch/queries.sql");

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its number in the specification.
    pub number: usize,
    pub text: String,
}

/// The queries with these numbers; all if no number is given.
pub fn queries(numbers: &[usize]) -> Vec<Query> {
    let texts = TEXTS.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    let all = texts.enumerate().map(|(place, text)| Query { number: place + 1, text: text.to_string() });
    all.filter(|query| numbers.is_empty() || numbers.contains(&query.number)).collect()
}

/// Executes each query on the idle servers, and compares the answers. The second execution is measured.
///
/// # Errors
/// A query fails, or two answers differ.
pub fn compare(servers: &[Server], database: &str, queries: &[Query]) -> Outcome<()> {
    let mut names = vec!["Query".to_string(), "Rows".to_string()];
    names.extend(servers.iter().map(|server| format!("{} ms", server.name)));
    let mut table = Table::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut failures = Vec::new();
    for query in queries {
        let mut answers = Vec::new();
        for server in servers {
            match measure(server, database, query)? {
                Ok(answer) => answers.push(answer),
                Err(message) => failures.push(format!("query {} on {}: {message}", query.number, server.name)),
            }
        }
        if let [(ours, _), (theirs, _)] = answers.as_slice()
            && let Some(difference) = difference(ours, theirs)
        {
            failures.push(format!("query {}: {difference}", query.number));
        }
        let mut cells = vec![query.number.to_string(), answers.first().map_or(0, |(rows, _)| rows.len()).to_string()];
        cells.extend(answers.iter().map(|(_, ms)| format!("{ms:.1}")));
        eprintln!("Q{}: {}", query.number, cells[1..].join(" "));
        table.row(cells);
    }
    println!("{table}");
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(failures.join("\n"))) }
}

type SortedRows = Vec<Vec<Option<String>>>;

/// The sorted rows of a query and the milliseconds of its second execution, or the error of the server.
fn measure(server: &Server, database: &str, query: &Query) -> Outcome<Result<(SortedRows, f64), String>> {
    let mut connection = connect(server, database)?;
    let mut answer = Rows::default();
    let mut elapsed_ms = 0.0;
    for _ in 0..2 {
        let start = Instant::now();
        answer = match connection.query(&query.text) {
            Ok(rows) => rows,
            Err(error @ ClientError::Server { .. }) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        elapsed_ms = start.elapsed().as_secs_f64() * 1000.0;
    }
    // Rows that are equal in ORDER BY may come in any order.
    answer.rows.sort();
    Ok(Ok((answer.rows, elapsed_ms)))
}

/// The first difference between two sorted answers.
fn difference(ours: &SortedRows, theirs: &SortedRows) -> Option<String> {
    match ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Some(format!("{ours:?} is {theirs:?} in MariaDB")),
        None if ours.len() == theirs.len() => None,
        None => Some(format!("{} rows, {} in MariaDB", ours.len(), theirs.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_queries() {
        let all = queries(&[]);
        assert_eq!(all.len(), 22);
        assert!(all[14].text.starts_with("WITH revenue"), "{}", all[14].text);
        assert_eq!(queries(&[3, 22]).iter().map(|query| query.number).collect::<Vec<_>>(), [3, 22]);
    }

    #[test]
    fn answers_that_differ_in_a_row_or_in_their_length_are_found() {
        let rows =
            |values: &[&str]| values.iter().map(|value| vec![Some((*value).to_string())]).collect::<SortedRows>();
        assert_eq!(difference(&rows(&["1", "2"]), &rows(&["1", "2"])), None);
        assert!(difference(&rows(&["1", "2"]), &rows(&["1", "3"])).is_some_and(|text| text.contains('3')));
        assert!(difference(&rows(&["1"]), &rows(&["1", "3"])).is_some_and(|text| text.contains("2 in")));
    }
}
