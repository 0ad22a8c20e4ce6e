//! Runs the same statements on both databases and compares the answers.

use super::Pair;
use crate::consistency::sorted;
use crate::random::Random;
use crate::{Failure, Outcome};

const POINTS: usize = 200;
const LISTS: usize = 20;

/// Compares all answers. Returns the number of statements.
///
/// # Errors
/// The first answer that differs.
pub fn compare(pair: &Pair, rows: u64) -> Outcome<usize> {
    let [mut one, mut other] = [pair.junctor.connect()?, pair.mariadb.connect()?];
    one.query("USE sbtest")?;
    other.query("USE sbtest")?;
    let statements = statements(rows);
    for statement in &statements {
        let ordered = statement.contains("ORDER BY");
        let [left, right] = [one.query(statement)?, other.query(statement)?];
        let [left, right] = [left, right].map(|rows| if ordered { rows.rows } else { sorted(rows) });
        if left != right {
            let differing = left.iter().zip(&right).find(|(left, right)| left != right);
            let counts = format!("{} rows from Junctor, {} from MariaDB", left.len(), right.len());
            return Err(Failure::new(format!("answers differ: {statement}: {counts}, first {differing:?}")));
        }
    }
    let text = "SELECT id, k, c, pad FROM sbtest1 WHERE id = ?";
    let prepared = [one.prepare(text)?, other.prepare(text)?];
    let mut random = Random::new(3);
    for _ in 0..POINTS {
        let key = [random.below(rows + 2) as i64];
        let [left, right] = [one.execute(prepared[0], &key)?, other.execute(prepared[1], &key)?];
        if left.rows != right.rows {
            return Err(Failure::new(format!(
                "answers differ: {text} with {key:?}: {:?}, {:?}",
                left.rows, right.rows
            )));
        }
    }
    Ok(statements.len() + POINTS)
}

fn statements(rows: u64) -> Vec<String> {
    let mut random = Random::new(2);
    let mut key = move || random.below(rows + 2);
    let mut all = vec![
        "SELECT COUNT(*), SUM(id), SUM(k), MIN(k), MAX(k), MIN(c), MAX(pad) FROM sbtest1".to_string(),
        "SELECT k, id FROM sbtest1 ORDER BY k, id LIMIT 500".to_string(),
        "SELECT DISTINCT k FROM sbtest1 ORDER BY k LIMIT 500".to_string(),
    ];
    for _ in 0..POINTS {
        all.push(format!("SELECT id, k, c, pad FROM sbtest1 WHERE id = {}", key()));
    }
    for _ in 0..LISTS {
        let list: Vec<String> = (0..100).map(|_| key().to_string()).collect();
        all.push(format!("SELECT id, k, c, pad FROM sbtest1 WHERE id IN ({})", list.join(",")));
        all.push(format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})", list[..10].join(",")));
        let from = key();
        let range = format!("BETWEEN {from} AND {}", from + 99);
        all.push(format!("SELECT c FROM sbtest1 WHERE id {range}"));
        all.push(format!("SELECT SUM(k) FROM sbtest1 WHERE id {range}"));
        all.push(format!("SELECT c FROM sbtest1 WHERE id {range} ORDER BY c"));
        all.push(format!("SELECT DISTINCT c FROM sbtest1 WHERE id {range} ORDER BY c"));
        all.push(format!("SELECT COUNT(*), AVG(id) FROM sbtest1 WHERE k {range}"));
    }
    all
}
