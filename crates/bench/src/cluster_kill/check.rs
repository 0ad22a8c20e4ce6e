//! The comparison of what clients know with what each data node has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::clients::{ACCOUNTS, BALANCE, Outcomes};
use super::nodes::connect;
use crate::failure::Explain;
use crate::mysql::Connection;
use crate::mysql::value::Value;
use crate::{Failure, Outcome};

/// A statement of the checks has this time.
pub const STATEMENT_MAX: Duration = Duration::from_secs(60);

type Rows = Vec<Vec<i64>>;

/// The balances of all accounts.
pub type Balances = BTreeMap<i64, i64>;

pub fn first_balances() -> Balances {
    (0..ACCOUNTS as i64).map(|id| (id, BALANCE as i64)).collect()
}

fn rows(session: &mut Connection, query: &str) -> Outcome<Rows> {
    let number = |value: &Value| value.as_ref().and_then(|text| text.parse::<i64>().ok());
    let result = session.query(query).explain(query)?;
    let rows = result.rows.iter().map(|row| row.iter().map(number).collect::<Option<Vec<i64>>>());
    rows.collect::<Option<Rows>>().ok_or_else(|| Failure::new(format!("{query}: a number was expected")))
}

/// Checks a data node while no client writes. Returns the balances.
fn check_node(node: u8, outcomes: &Outcomes, before: &Balances) -> Outcome<(Balances, Rows)> {
    let mut session = connect(node, STATEMENT_MAX).explain(format!("node {node}"))?;
    let transfers = rows(&mut session, "SELECT id, source, target, amount, code FROM bank.transfer ORDER BY id")?;
    let mut expected = before.clone();
    let mut found = BTreeSet::new();
    for row in &transfers {
        *expected.entry(row[1]).or_default() -= row[3];
        *expected.entry(row[2]).or_default() += row[3];
        found.insert(row[0] as u64);
    }
    let fail = |text: String| Err(Failure::new(format!("node {node}: {text}")));
    let lost: Vec<&u64> = outcomes.acknowledged.difference(&found).take(20).collect();
    if !lost.is_empty() {
        return fail(format!("acknowledged transfers are lost: {lost:?}"));
    }
    let undead: Vec<&u64> = outcomes.refused.intersection(&found).take(20).collect();
    if !undead.is_empty() {
        return fail(format!("transfers that were rolled back are there: {undead:?}"));
    }
    let accounts = rows(&mut session, "SELECT id, balance FROM bank.account ORDER BY id")?;
    let balances: Balances = accounts.iter().map(|row| (row[0], row[1])).collect();
    if balances != expected {
        let differing: Vec<_> = expected.iter().filter(|(id, sum)| balances.get(id) != Some(sum)).collect();
        return fail(format!("a transfer is there in part: accounts {differing:?} have other balances"));
    }
    let all = "COUNT(*), COALESCE(SUM(id), 0), COALESCE(SUM(code), 0), COALESCE(SUM(amount), 0)";
    let by_scan = rows(&mut session, &format!("SELECT {all} FROM bank.transfer"))?;
    for (index, condition) in [("PRIMARY", "id >= 0"), ("amount", "amount >= 0"), ("code", "code >= 0")] {
        let query = format!("SELECT {all} FROM bank.transfer FORCE INDEX ({index}) WHERE {condition}");
        if rows(&mut session, &query)? != by_scan {
            return fail(format!("index {index} and the rows differ"));
        }
    }
    for row in transfers.iter().rev().take(20) {
        let query = format!("SELECT id FROM bank.transfer WHERE code = {}", row[4]);
        if rows(&mut session, &query)? != [[row[0]]] {
            return fail(format!("the unique key lacks row {}", row[0]));
        }
    }
    Ok((balances, transfers))
}

/// Checks all data nodes, and compares them. Returns the balances.
///
/// # Errors
/// The sentence tells what is wrong.
pub fn check(nodes: &[u8], outcomes: &Outcomes, before: &Balances) -> Outcome<Balances> {
    let mut first = None;
    for node in nodes {
        let found = check_node(*node, outcomes, before)?;
        if first.get_or_insert_with(|| found.clone()) != &found {
            return Err(Failure::new(format!("the rows of nodes {} and {node} differ", nodes[0])));
        }
    }
    if let Some(complaint) = outcomes.complaints.first() {
        return Err(Failure::new(complaint));
    }
    let (balances, _) = first.ok_or_else(|| Failure::new("there is no data node"))?;
    Ok(balances)
}
