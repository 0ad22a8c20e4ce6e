//! Rows of status tables, printed for people or as JSON.

use std::fmt::Write as _;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A number without fraction.
    Number(u64),
    /// Anything else.
    Text(String),
}

/// The rows of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// A value for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Cell {
    /// The value that the client library has read from a column, whose type is numeric or not.
    pub fn of(value: mysql::Value, is_numeric: bool) -> Cell {
        match value {
            mysql::Value::NULL => Cell::Null,
            mysql::Value::UInt(number) => Cell::Number(number),
            mysql::Value::Int(number) if number >= 0 => Cell::Number(number.unsigned_abs()),
            // The text protocol has all values as texts.
            mysql::Value::Bytes(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                text.parse().ok().filter(|_| is_numeric).map_or(Cell::Text(text), Cell::Number)
            }
            other => Cell::Text(other.as_sql(true)),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<u64> {
        if let Cell::Number(number) = self { Some(*number) } else { None }
    }

    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Cell::Null => "-".to_owned(),
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Cell::Null => serde_json::Value::Null,
            Cell::Number(number) => (*number).into(),
            Cell::Text(text) => text.as_str().into(),
        }
    }
}

impl Table {
    /// The value of a column; NULL if the table has no such column.
    pub fn cell(&self, row: usize, column: &str) -> &Cell {
        let position = self.columns.iter().position(|name| name == column);
        position.and_then(|position| self.rows.get(row)?.get(position)).unwrap_or(&Cell::Null)
    }

    /// Sorts the rows by a column of numbers. Rows with the same number keep their order.
    pub fn sort_by_number(&mut self, column: &str) {
        if let Some(position) = self.columns.iter().position(|name| name == column) {
            self.rows.sort_by_key(|row| row.get(position).and_then(Cell::number));
        }
    }

    /// The rows below the names of the columns, aligned.
    pub fn text(&self) -> String {
        let of_row = |row: &Vec<Cell>| row.iter().map(Cell::text).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = [self.columns.clone()].into_iter().chain(self.rows.iter().map(of_row)).collect();
        let width = |column: usize| lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        let is_number = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.clone().any(|cell| *cell != Cell::Null) && cells.all(|cell| !matches!(cell, Cell::Text(_)))
        };
        let mut text = String::new();
        for line in &lines {
            let mut printed = String::new();
            for (column, (value, width)) in line.iter().zip(widths.iter().copied()).enumerate() {
                let gap = if column > 0 { "  " } else { "" };
                // Writing to memory cannot fail.
                let _ = match is_number(column) {
                    true => write!(printed, "{gap}{value:>width$}"),
                    false => write!(printed, "{gap}{value:<width$}"),
                };
            }
            text.push_str(printed.trim_end());
            text.push('\n');
        }
        text
    }

    /// The rows as objects.
    pub fn json(&self) -> serde_json::Value {
        let object = |row: &Vec<Cell>| {
            let values = self.columns.iter().cloned().zip(row.iter().map(Cell::json));
            serde_json::Value::Object(values.collect())
        };
        self.rows.iter().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_printed_for_people_and_for_programs() {
        let bytes = |text: &str, is_numeric| Cell::of(mysql::Value::Bytes(text.into()), is_numeric);
        let table = Table {
            columns: vec!["node_id".into(), "domain".into(), "node_group".into()],
            rows: vec![
                vec![bytes("1", true), bytes("rack 1", false), bytes("0", true)],
                // A name of digits is a text.
                vec![bytes("12", true), bytes("07", false), Cell::of(mysql::Value::NULL, true)],
            ],
        };
        let expected = "node_id  domain  node_group\n      1  rack 1           0\n     12  07               -\n";
        assert_eq!(table.text(), expected);
        let expected =
            r#"[{"node_group":0,"node_id":1,"domain":"rack 1"},{"node_group":null,"node_id":12,"domain":"07"}]"#;
        assert_eq!(serde_json::from_str::<serde_json::Value>(expected).unwrap(), table.json());
        let mut sorted = table.clone();
        sorted.rows.insert(0, vec![bytes("12", true), bytes("before", false), Cell::Null]);
        sorted.sort_by_number("node_id");
        assert_eq!([0, 1, 2].map(|row| sorted.cell(row, "domain").text()), ["rack 1", "before", "07"]);
        assert_eq!((table.cell(1, "node_id").number(), table.cell(0, "x")), (Some(12), &Cell::Null));
    }
}
