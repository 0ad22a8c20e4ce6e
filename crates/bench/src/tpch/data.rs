//! The tables of TPC-H. The rows depend on the scale alone.

use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::Outcome;
use crate::mysql::Connection;
use crate::process::Server;

/// The definitions of the tables.
pub const SCHEMA: &str = include_str!("../../tpch/schema.sql");
const ROWS_PER_STATEMENT: usize = 500;

/// The tables, from those without references on.
const TABLES: [&str; 8] = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];

/// Creates the tables in a new database and fills them. Returns the number of rows.
///
/// # Errors
/// The server refuses a statement.
pub fn load(server: &Server, database: &str, scale: f64) -> Outcome<u64> {
    server.execute(&[&format!("CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")])?;
    let mut connection = Connection::open(server.address, database)?;
    for statement in SCHEMA.split(";\n").filter(|text| !text.trim().is_empty()) {
        connection.query(statement)?;
    }
    let mut count = 0;
    for table in TABLES {
        let mut insert = Insert { connection: &mut connection, table, statement: String::new(), rows: 0 };
        each_row(table, scale, &mut |row| {
            count += 1;
            insert.add(row)
        })?;
        insert.flush()?;
        connection.query(&format!("ANALYZE TABLE {table}"))?;
    }
    Ok(count)
}

/// Writes each table to a file `NAME.tbl` with `|` between the columns.
///
/// # Errors
/// The folder cannot be written.
pub fn write_files(folder: &Path, scale: f64) -> Outcome<()> {
    for table in TABLES {
        let mut file = BufWriter::new(File::create(folder.join(format!("{table}.tbl")))?);
        each_row(table, scale, &mut |row| {
            let text = row.to_string();
            Ok(writeln!(file, "{}", text.strip_suffix('|').unwrap_or(&text))?)
        })?;
        file.flush()?;
    }
    Ok(())
}

type EachRow<'a> = dyn FnMut(&dyn Display) -> Outcome<()> + 'a;

fn each_row(table: &str, scale: f64, each: &mut EachRow<'_>) -> Outcome<()> {
    fn all<R: Display>(rows: impl Iterator<Item = R>, each: &mut EachRow<'_>) -> Outcome<()> {
        rows.into_iter().try_for_each(|row| each(&row))
    }
    match table {
        "region" => all(RegionGenerator::new(scale, 1, 1).iter(), each),
        "nation" => all(NationGenerator::new(scale, 1, 1).iter(), each),
        "part" => all(PartGenerator::new(scale, 1, 1).iter(), each),
        "supplier" => all(SupplierGenerator::new(scale, 1, 1).iter(), each),
        "partsupp" => all(PartSuppGenerator::new(scale, 1, 1).iter(), each),
        "customer" => all(CustomerGenerator::new(scale, 1, 1).iter(), each),
        "orders" => all(OrderGenerator::new(scale, 1, 1).iter(), each),
        _ => all(LineItemGenerator::new(scale, 1, 1).iter(), each),
    }
}

/// Collects rows for INSERT statements of many rows.
struct Insert<'c> {
    connection: &'c mut Connection,
    table: &'static str,
    statement: String,
    rows: usize,
}

impl Insert<'_> {
    fn add(&mut self, row: &dyn Display) -> Outcome<()> {
        let text = row.to_string();
        if self.rows == 0 {
            write!(self.statement, "INSERT INTO {} VALUES ", self.table)?;
        }
        let separator = if self.rows == 0 { "(" } else { ",(" };
        self.statement.push_str(separator);
        let columns = text.strip_suffix('|').unwrap_or(&text).split('|');
        for (place, column) in columns.enumerate() {
            if place > 0 {
                self.statement.push(',');
            }
            // Numbers may be quoted, too.
            self.statement.push('\'');
            self.statement.push_str(&column.replace('\\', "\\\\").replace('\'', "''"));
            self.statement.push('\'');
        }
        self.statement.push(')');
        self.rows += 1;
        if self.rows == ROWS_PER_STATEMENT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Outcome<()> {
        if self.rows > 0 {
            self.connection.query(&self.statement)?;
        }
        self.statement.clear();
        self.rows = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_scale_has_the_rows_of_the_specification() {
        let count = |table: &str| {
            let mut rows = 0;
            each_row(table, 0.01, &mut |_| {
                rows += 1;
                Ok(())
            })
            .expect("rows are made in memory");
            rows
        };
        assert_eq!(["region", "nation", "part", "partsupp", "orders"].map(count), [5, 25, 2000, 8000, 15000]);
    }
}
