//! Reads of one table. The node evaluates filter, columns, aggregates, order and limit.

use std::fmt::Write;

use junctor_model::quoted_name::push_quoted_name;

use super::condition::Condition;
use super::error::Result;
use super::row::Rows;
use super::table::{Table, conjunction, push_condition};
use super::value::{FromValue, ToValue};

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest value first; NULL is the smallest.
    Ascending,
    /// Greatest value first.
    Descending,
}

/// An aggregate function over the rows of a [`Select`].
#[derive(Clone, Debug)]
pub struct Aggregate(String);

/// The number of rows.
pub fn count() -> Aggregate {
    Aggregate("COUNT(*)".into())
}

macro_rules! aggregate {
    ($($(#[$doc:meta])* $name:ident: $function:literal;)*) => {
        $($(#[$doc])*
        pub fn $name(column: &str) -> Aggregate {
            let mut text = String::from(concat!($function, "("));
            push_quoted_name(column, &mut text);
            text.push(')');
            Aggregate(text)
        })*
    };
}

aggregate! {
    /// The sum of a column; NULL if no row has a value.
    sum: "SUM";
    /// The arithmetic mean of a column; NULL if no row has a value.
    average: "AVG";
    /// The smallest value of a column; NULL if no row has a value.
    minimum: "MIN";
    /// The greatest value of a column; NULL if no row has a value.
    maximum: "MAX";
}

impl Aggregate {
    /// Sets the name of the aggregate's column in the result.
    pub fn named(mut self, name: &str) -> Aggregate {
        self.0.push_str(" AS ");
        push_quoted_name(name, &mut self.0);
        self
    }
}

/// A read of one table, made by [`Table::select`]. [`Select::rows`] and its siblings run it.
#[derive(Clone, Debug)]
#[must_use = "nothing is read before `rows`"]
pub struct Select<'c> {
    table: Table<'c>,
    select_list: String,
    condition: Option<Condition>,
    order: Vec<String>,
    /// Maximum number of rows, and the number of rows to skip.
    limit: Option<(u64, u64)>,
    lock: &'static str,
}

impl<'c> Select<'c> {
    pub(crate) fn of_columns(table: Table<'c>, columns: &[&str]) -> Select<'c> {
        let mut select_list = String::new();
        for (position, column) in columns.iter().enumerate() {
            select_list.push_str(if position > 0 { ", " } else { "" });
            match *column {
                "*" => select_list.push('*'),
                name => push_quoted_name(name, &mut select_list),
            }
        }
        Select { table, select_list, condition: None, order: Vec::new(), limit: None, lock: "" }
    }

    /// Restricts the rows to those that match `condition`, in addition to earlier filters.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = conjunction(self.condition, condition);
        self
    }

    /// Orders the rows by a column. Each further call adds a column that decides between rows that are equal
    /// so far.
    pub fn order_by(mut self, column: &str, direction: Direction) -> Self {
        let mut text = String::new();
        push_quoted_name(column, &mut text);
        text.push_str(if direction == Direction::Descending { " DESC" } else { "" });
        self.order.push(text);
        self
    }

    /// Sets the maximum number of rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some((rows, self.limit.map_or(0, |(_, offset)| offset)));
        self
    }

    /// Skips the first `rows` rows.
    pub fn offset(mut self, rows: u64) -> Self {
        // SQL has no OFFSET without a LIMIT.
        self.limit = Some((self.limit.map_or(u64::MAX, |(limit, _)| limit), rows));
        self
    }

    /// Locks the rows exclusively and reads their latest committed versions rather than the snapshot.
    pub fn for_update(mut self) -> Self {
        self.lock = " FOR UPDATE";
        self
    }

    /// Locks the rows in share mode and reads their latest committed versions rather than the snapshot.
    pub fn for_share(mut self) -> Self {
        self.lock = " FOR SHARE";
        self
    }

    /// Computes aggregates over the rows and returns them as one row. The selected columns are ignored.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn aggregate(mut self, aggregates: &[Aggregate]) -> Result<Rows> {
        let texts: Vec<&str> = aggregates.iter().map(|aggregate| aggregate.0.as_str()).collect();
        self.select_list = texts.join(", ");
        self.rows().await
    }

    /// Counts the rows. Ignores order and limit.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn count(mut self) -> Result<u64> {
        self.order.clear();
        self.limit = None;
        let rows = self.aggregate(&[count()]).await?;
        rows.get(0).map_or(Ok(0), |row| row.get(0usize))
    }

    /// Reads the first column of the first row. `None` if no row matches.
    ///
    /// # Errors
    /// The error of the statement, or the value has another type.
    pub async fn value<T: for<'r> FromValue<'r>>(self) -> Result<Option<T>> {
        let rows = self.limit(1).rows().await?;
        rows.get(0).map(|row| row.get(0usize)).transpose()
    }

    /// Reads the rows.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn rows(self) -> Result<Rows> {
        let mut text = format!("SELECT {} FROM {}", self.select_list, self.table.name);
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
