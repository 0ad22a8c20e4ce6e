//! The data: tables of TPC-C by `dbt2.lua`, and supplier, nation and region.

use std::fmt::Write as _;

use crate::Outcome;
use crate::mysql::Connection;
use crate::process::Server;
use crate::random::Random;

const SCHEMA: &str = include_str!("../../ch/schema.sql");
const ROWS_PER_STATEMENT: usize = 500;
/// Rows of `item` and `stock` that one query of a copy reads.
const ITEMS_PER_CHUNK: u32 = 10_000;
const DISTRICTS: u32 = 10;
const SUPPLIERS: u32 = 10_000;
/// One supplier in this number has a comment that query 16 looks for.
const SUPPLIERS_PER_COMPLAINT: u64 = 200;
const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Europe", "Middle East"];
/// The first characters of states, whose codes are the keys of the nations.
const NATION_KEYS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Name and region of the nation of each key. The loader of TPC-C makes states of small letters, so the last
/// 26 nations have customers.
const NATIONS: [(&str, u8); 62] = [
    ("Angola", 0),
    ("Benin", 0),
    ("Botswana", 0),
    ("Chad", 0),
    ("Gabon", 0),
    ("Belize", 1),
    ("Bolivia", 1),
    ("Chile", 1),
    ("Cuba", 1),
    ("Ecuador", 1),
    ("Bhutan", 2),
    ("Laos", 2),
    ("Malaysia", 2),
    ("Nepal", 2),
    ("Austria", 3),
    ("Belgium", 3),
    ("Croatia", 3),
    ("Denmark", 3),
    ("Finland", 3),
    ("Hungary", 3),
    ("Iceland", 3),
    ("Bahrain", 4),
    ("Kuwait", 4),
    ("Oman", 4),
    ("Qatar", 4),
    ("Yemen", 4),
    ("Ghana", 0),
    ("Mali", 0),
    ("Niger", 0),
    ("Guyana", 1),
    ("Haiti", 1),
    ("Panama", 1),
    ("Mongolia", 2),
    ("Thailand", 2),
    ("Ireland", 3),
    ("Norway", 3),
    ("Algeria", 0),
    ("Ethiopia", 0),
    ("Kenya", 0),
    ("Morocco", 0),
    ("Mozambique", 0),
    ("Argentina", 1),
    ("Brazil", 1),
    ("Canada", 1),
    ("Peru", 1),
    ("United States", 1),
    ("Cambodia", 2),
    ("China", 2),
    ("India", 2),
    ("Indonesia", 2),
    ("Japan", 2),
    ("Vietnam", 2),
    ("France", 3),
    ("Germany", 3),
    ("Romania", 3),
    ("Russia", 3),
    ("United Kingdom", 3),
    ("Egypt", 4),
    ("Iran", 4),
    ("Iraq", 4),
    ("Jordan", 4),
    ("Saudi Arabia", 4),
];

/// Creates and fills the tables that TPC-C does not have.
///
/// # Errors
/// The server refuses a statement.
pub fn load_more(server: &Server, database: &str) -> Outcome<()> {
    let mut connection = Connection::open(server.address, database)?;
    for statement in SCHEMA.split(";\n").filter(|text| !text.trim().is_empty()) {
        connection.query(statement)?;
    }
    let mut random = Random::new(1);
    let regions = REGIONS.iter().enumerate().map(|(key, name)| format!("({key},'{name}','{}')", text(&mut random, 80)));
    insert(&mut connection, "region", &mut regions.collect::<Vec<_>>().into_iter())?;
    let nations = NATION_KEYS.bytes().zip(NATIONS);
    let nations = nations.map(|(key, (name, region))| format!("({key},'{name}',{region},'{}')", text(&mut random, 80)));
    insert(&mut connection, "nation", &mut nations.collect::<Vec<_>>().into_iter())?;
    let mut suppliers = (0..SUPPLIERS).map(|key| supplier(key, &mut random));
    insert(&mut connection, "supplier", &mut suppliers)
}

fn supplier(key: u32, random: &mut Random) -> String {
    let nation = NATION_KEYS.as_bytes()[random.below(NATION_KEYS.len() as u64) as usize];
    let phone = 1_000_000_000 + random.below(9_000_000_000);
    let cents = random.below(1_100_000) as i64 - 99_999;
    let (address, mut comment) = (text(random, 30), text(random, 60));
    if random.below(SUPPLIERS_PER_COMPLAINT) == 0 {
        comment.push_str(" bad ");
    }
    let balance = format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
    format!("({key},'Supplier#{key:09}','{address}',{nation},'{phone}',{balance},'{comment}')")
}

/// Words of small letters without vowels, so that none is the word of a query.
fn text(random: &mut Random, bytes: usize) -> String {
    const LETTERS: &[u8] = b"cdfgklmnprstvwx    ";
    (0..bytes).map(|_| char::from(LETTERS[random.below(LETTERS.len() as u64) as usize])).collect()
}

fn insert(connection: &mut Connection, table: &str, rows: &mut dyn Iterator<Item = String>) -> Outcome<()> {
    let mut statement = String::new();
    let mut count = 0;
    loop {
        let row = rows.next();
        if count > 0 && (row.is_none() || count == ROWS_PER_STATEMENT) {
            connection.query(&statement)?;
            statement.clear();
            count = 0;
        }
        let Some(row) = row else { return Ok(()) };
        let separator = if count == 0 { "" } else { "," };
        if count == 0 {
            write!(statement, "INSERT INTO {table} VALUES ")?;
        }
        write!(statement, "{separator}{row}")?;
        count += 1;
    }
}

/// The size of the database.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub warehouses: u32,
    pub items: u32,
}

/// Copies the rows of the tables of TPC-C from one server into the empty tables of another. Returns the
/// number of rows.
///
/// # Errors
/// A server refuses a statement.
pub fn copy(from: &Server, to: &Server, database: &str, size: Size) -> Outcome<u64> {
    let mut source = Connection::open(from.address, database)?;
    let mut target = Connection::open(to.address, database)?;
    let mut count = 0;
    for (table, conditions) in chunks(size) {
        for condition in conditions {
            let rows = source.query(&format!("SELECT * FROM {table} {condition}"))?.rows;
            count += rows.len() as u64;
            insert(&mut target, table, &mut rows.iter().map(|row| values(row)))?;
        }
    }
    Ok(count)
}

/// The tables of TPC-C, each with the conditions that divide its rows.
fn chunks(size: Size) -> Vec<(&'static str, Vec<String>)> {
    let ranges = |column: &str| -> Vec<String> {
        let starts = (1..=size.items).step_by(ITEMS_PER_CHUNK as usize);
        starts.map(|first| format!("{column} BETWEEN {first} AND {}", first + ITEMS_PER_CHUNK - 1)).collect()
    };
    let by_district = |prefix: &str| -> Vec<String> {
        let of_warehouse = |warehouse| {
            (1..=DISTRICTS)
                .map(move |district| format!("WHERE {prefix}_w_id = {warehouse} AND {prefix}_d_id = {district}"))
        };
        (1..=size.warehouses).flat_map(of_warehouse).collect()
    };
    let stock = (1..=size.warehouses)
        .flat_map(|warehouse| ranges("s_i_id").into_iter().map(move |range| (warehouse, range)))
        .map(|(warehouse, range)| format!("WHERE s_w_id = {warehouse} AND {range}"));
    vec![
        ("item", ranges("i_id").iter().map(|range| format!("WHERE {range}")).collect()),
        ("warehouse", vec![String::new()]),
        ("district", vec![String::new()]),
        ("stock", stock.collect()),
        ("customer", by_district("c")),
        ("history", vec![String::new()]),
        ("orders", by_district("o")),
        ("new_orders", by_district("no")),
        ("order_line", by_district("ol")),
    ]
}

fn values(row: &[Option<String>]) -> String {
    let quoted = |value: &Option<String>| match value {
        Some(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        None => "NULL".to_string(),
    };
    format!("({})", row.iter().map(quoted).collect::<Vec<_>>().join(","))
}

/// Samples the tables for the planner.
///
/// # Errors
/// The server refuses a statement.
pub fn analyze(server: &Server, database: &str) -> Outcome<()> {
    let mut connection = Connection::open(server.address, database)?;
    let of_tpcc = chunks(Size { warehouses: 0, items: 0 });
    for table in of_tpcc.iter().map(|(table, _)| *table).chain(["region", "nation", "supplier"]) {
        connection.query(&format!("ANALYZE TABLE {table}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nations_of_the_queries_have_customers() {
        let key_of = |name| NATIONS.iter().position(|(nation, _)| *nation == name).expect("a nation");
        for name in ["Germany", "Cambodia"] {
            assert!(NATION_KEYS.as_bytes()[key_of(name)].is_ascii_lowercase(), "{name}");
        }
        let mut names: Vec<_> = NATIONS.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), NATION_KEYS.len()), (62, 62));
    }

    #[test]
    fn a_copied_row_keeps_null_and_quotes() {
        let row = ["it's", "a\\b"].map(|text| Some(text.to_string()));
        assert_eq!(values(&[row[0].clone(), None, row[1].clone()]), "('it''s',NULL,'a\\\\b')");
    }

    #[test]
    fn the_chunks_of_a_copy_divide_each_table() {
        let all = chunks(Size { warehouses: 2, items: 100_000 });
        let count = |table| all.iter().find(|(name, _)| *name == table).map_or(0, |(_, conditions)| conditions.len());
        assert_eq!(["item", "stock", "order_line", "history"].map(count), [10, 20, 20, 1]);
    }
}
