//! Reads of a table's rows, with what is done where the rows are: filter, columns, aggregates, order and limit.

use std::fmt::Write;

use super::condition::Condition;
use super::error::Result;
use super::row::Rows;
use super::table::{Table, joined, push_condition, push_quoted};
use super::value::{FromValue, ToValue};

/// Up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The least first.
    Ascending,
    /// The greatest first.
    Descending,
}

/// An aggregate over the rows.
#[derive(Clone, Debug)]
pub struct Aggregate(String);

/// How many rows.
pub fn count() -> Aggregate {
    Aggregate("COUNT(*)".into())
}

macro_rules! aggregate {
    ($($(#[$doc:meta])* $name:ident: $function:literal;)*) => {
        $($(#[$doc])*
        pub fn $name(column: &str) -> Aggregate {
            let mut text = String::from(concat!($function, "("));
            push_quoted(column, &mut text);
            text.push(')');
            Aggregate(text)
        })*
    };
}

aggregate! {
    /// The sum of a column; NULL over no rows.
    sum: "SUM";
    /// The mean of a column; NULL over no rows.
    average: "AVG";
    /// The least value of a column; NULL over no rows.
    minimum: "MIN";
    /// The greatest value of a column; NULL over no rows.
    maximum: "MAX";
}

impl Aggregate {
    /// Under a name in the result.
    pub fn named(mut self, name: &str) -> Aggregate {
        self.0.push_str(" AS ");
        push_quoted(name, &mut self.0);
        self
    }
}

/// A read of rows; made by [`Table::select`].
#[derive(Clone, Debug)]
#[must_use = "nothing is read before `rows`"]
pub struct Select<'c> {
    table: Table<'c>,
    what: String,
    condition: Option<Condition>,
    order: Vec<String>,
    limit: Option<(u64, u64)>,
    lock: &'static str,
}

impl<'c> Select<'c> {
    pub(crate) fn of_columns(table: Table<'c>, columns: &[&str]) -> Select<'c> {
        let mut what = String::new();
        for (position, column) in columns.iter().enumerate() {
            what.push_str(if position > 0 { ", " } else { "" });
            match *column {
                "*" => what.push('*'),
                name => push_quoted(name, &mut what),
            }
        }
        Select { table, what, condition: None, order: Vec::new(), limit: None, lock: "" }
    }

    /// Of rows for which this is true too.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = joined(self.condition, condition);
        self
    }

    /// In the order of a column; where it is equal, of the next one that is named.
    pub fn order_by(mut self, column: &str, direction: Direction) -> Self {
        let mut text = String::new();
        push_quoted(column, &mut text);
        text.push_str(if direction == Direction::Descending { " DESC" } else { "" });
        self.order.push(text);
        self
    }

    /// So many rows at most.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some((rows, self.limit.map_or(0, |(_, offset)| offset)));
        self
    }

    /// Without the first so many rows.
    pub fn offset(mut self, rows: u64) -> Self {
        self.limit = Some((self.limit.map_or(u64::MAX, |(limit, _)| limit), rows));
        self
    }

    /// Locks the rows, and reads them as they were committed last, so that they can be changed.
    pub fn for_update(mut self) -> Self {
        self.lock = " FOR UPDATE";
        self
    }

    /// Locks the rows against changes, and reads them as they were committed last.
    pub fn for_share(mut self) -> Self {
        self.lock = " FOR SHARE";
        self
    }

    /// Reads one row of aggregates over the rows instead of the columns.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn aggregate(mut self, aggregates: &[Aggregate]) -> Result<Rows> {
        let texts: Vec<&str> = aggregates.iter().map(|aggregate| aggregate.0.as_str()).collect();
        self.what = texts.join(", ");
        self.rows().await
    }

    /// How many rows there are, whatever order and limit were named.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn count(mut self) -> Result<u64> {
        self.order.clear();
        self.limit = None;
        let rows = self.aggregate(&[count()]).await?;
        rows.get(0).map_or(Ok(0), |row| row.get(0usize))
    }

    /// The first column of the first row, if there is one.
    ///
    /// # Errors
    /// What the statement fails with, or the value is of another type.
    pub async fn value<T: for<'r> FromValue<'r>>(self) -> Result<Option<T>> {
        let rows = self.limit(1).rows().await?;
        rows.get(0).map(|row| row.get(0usize)).transpose()
    }

    /// Reads the rows.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn rows(self) -> Result<Rows> {
        let mut text = format!("SELECT {} FROM {}", self.what, self.table.name);
        let mut values: Vec<&dyn ToValue> = Vec::new();
        push_condition(self.condition.as_ref(), &mut text, &mut values);
        if !self.order.is_empty() {
            text.push_str(" ORDER BY ");
            text.push_str(&self.order.join(", "));
        }
        if let Some((limit, offset)) = &self.limit {
            // Writing to a String cannot fail.
            let _ = write!(text, " LIMIT {limit}");
            if *offset > 0 {
                let _ = write!(text, " OFFSET {offset}");
            }
        }
        text.push_str(self.lock);
        self.table.connection.query(&text, &values).await
    }
}
