//! Operations on one table. Each becomes a statement that the connection prepares once and executes with the
//! operation's values.

use junctor_model::quoted_name::push_quoted_name;
use junctor_model::value::Value;

use super::condition::Condition;
use super::connection::Connection;
use super::error::{Error, Result};
use super::row::Outcome;
use super::select::Select;
use super::value::ToValue;

/// Number of rows in one INSERT of [`Table::insert_many`].
const INSERT_ROWS_MAX: usize = 64;

/// The operations on a table, made by [`Connection::table`].
#[derive(Clone, Debug)]
pub struct Table<'c> {
    pub(crate) connection: &'c Connection,
    /// The quoted name, with its database if the caller gave one.
    pub(crate) name: String,
}

impl<'c> Table<'c> {
    pub(crate) fn new(connection: &'c Connection, name: &str) -> Table<'c> {
        let mut quoted = String::new();
        if let Some((database, table)) = name.split_once('.') {
            push_quoted_name(database, &mut quoted);
            quoted.push('.');
            push_quoted_name(table, &mut quoted);
        } else {
            push_quoted_name(name, &mut quoted);
        }
        Table { connection, name: quoted }
    }

    /// Inserts a row. `values` pairs columns with their values; all other columns get their defaults.
    ///
    /// # Errors
    /// 1062 if a row with the same key exists, 1452 if a foreign key has no parent row, and errors of the
    /// values.
    pub async fn insert(&self, values: &[(&str, &dyn ToValue)]) -> Result<Outcome> {
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let row: Vec<&dyn ToValue> = values.iter().map(|(_, value)| *value).collect();
        self.connection.execute(&self.insert_text(&columns, 1), &row).await
    }

    /// Inserts rows: 64 per statement, and the remainder one by one. All statements are sent as one
    /// [`Batch`](crate::Batch). Outside a transaction the batch is not atomic: the rows of statements that
    /// succeed stay.
    ///
    /// # Errors
    /// As [`Table::insert`]; 2036 if a row and `columns` differ in length.
    pub async fn insert_many(&self, columns: &[&str], rows: &[&[&dyn ToValue]]) -> Result<Outcome> {
        if rows.iter().any(|row| row.len() != columns.len()) {
            return Err(Error::value("The number of values in a row differs from the number of columns".into()));
        }
        // Only two statement texts for any number of rows, so that the cache of prepared statements stays
        // small.
        let mut batch = self.connection.batch();
        let (many, rest) = rows.as_chunks::<INSERT_ROWS_MAX>();
        for rows in many {
            batch.add(&self.insert_text(columns, INSERT_ROWS_MAX), &rows.concat());
        }
        for row in rest {
            batch.add(&self.insert_text(columns, 1), row);
        }
        let outcomes = batch.run().await?;
        let mut sum = Outcome::default();
        for outcome in outcomes {
            sum.affected_rows += outcome.affected_rows;
            sum.warnings = sum.warnings.saturating_add(outcome.warnings);
            if sum.last_insert_id == 0 {
                sum.last_insert_id = outcome.last_insert_id;
            }
        }
        Ok(sum)
    }

    /// Inserts a row, or sets these values in the row that has the same key.
    ///
    /// # Errors
    /// As [`Table::insert`]; 1062 only if the values conflict with the keys of two different rows.
    pub async fn upsert(&self, values: &[(&str, &dyn ToValue)]) -> Result<Outcome> {
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let row: Vec<&dyn ToValue> = values.iter().map(|(_, value)| *value).collect();
        let mut text = self.insert_text(&columns, 1);
        text.push_str(" ON DUPLICATE KEY UPDATE ");
        for (position, column) in columns.iter().enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            push_quoted_name(column, &mut text);
            text.push_str(" = VALUES(");
            push_quoted_name(column, &mut text);
            text.push(')');
        }
        self.connection.execute(&text, &row).await
    }

    /// An update of rows, which [`Update::run`] executes.
    pub fn update(&self) -> Update<'c> {
        Update { table: self.clone(), assignments: Vec::new(), condition: None }
    }

    /// A deletion of rows, which [`Delete::run`] executes.
    pub fn delete(&self) -> Delete<'c> {
        Delete { table: self.clone(), condition: None }
    }

    /// A read of these columns; `*` means all columns.
    pub fn select(&self, columns: &[&str]) -> Select<'c> {
        Select::of_columns(self.clone(), columns)
    }

    fn insert_text(&self, columns: &[&str], rows: usize) -> String {
        let mut text = format!("INSERT INTO {} (", self.name);
        for (position, column) in columns.iter().enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            push_quoted_name(column, &mut text);
        }
        text.push_str(") VALUES ");
        let marks = format!("({})", vec!["?"; columns.len()].join(", "));
        text.push_str(&vec![marks.as_str(); rows].join(", "));
        text
    }
}

/// An update of rows, made by [`Table::update`].
#[derive(Clone, Debug)]
#[must_use = "nothing is changed before `run`"]
pub struct Update<'c> {
    table: Table<'c>,
    assignments: Vec<(String, Value)>,
    condition: Option<Condition>,
}

impl Update<'_> {
    /// Sets a column to a value.
    pub fn set(mut self, column: &str, value: impl ToValue) -> Self {
        let mut text = String::new();
        push_quoted_name(column, &mut text);
        text.push_str(" = ?");
        self.assignments.push((text, value.to_value().into_owned()));
        self
    }

    /// Adds `value` to a numeric column.
    pub fn add(mut self, column: &str, value: impl ToValue) -> Self {
        let mut quoted = String::new();
        push_quoted_name(column, &mut quoted);
        self.assignments.push((format!("{quoted} = {quoted} + ?"), value.to_value().into_owned()));
        self
    }

    /// Restricts the rows to those that match `condition`, in addition to earlier filters. Without a filter,
    /// all rows are updated.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = conjunction(self.condition, condition);
        self
    }

    /// Updates the rows.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn run(self) -> Result<Outcome> {
        let assignments: Vec<&str> = self.assignments.iter().map(|(text, _)| text.as_str()).collect();
        let mut text = format!("UPDATE {} SET {}", self.table.name, assignments.join(", "));
        let mut values: Vec<&dyn ToValue> = self.assignments.iter().map(|(_, value)| value as &dyn ToValue).collect();
        push_condition(self.condition.as_ref(), &mut text, &mut values);
        self.table.connection.execute(&text, &values).await
    }
}

/// A deletion of rows, made by [`Table::delete`].
#[derive(Clone, Debug)]
#[must_use = "nothing is deleted before `run`"]
pub struct Delete<'c> {
    table: Table<'c>,
    condition: Option<Condition>,
}

impl Delete<'_> {
    /// Restricts the rows to those that match `condition`, in addition to earlier filters. Without a filter,
    /// all rows are deleted.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = conjunction(self.condition, condition);
        self
    }

    /// Deletes the rows.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn run(self) -> Result<Outcome> {
        let mut text = format!("DELETE FROM {}", self.table.name);
        let mut values = Vec::new();
        push_condition(self.condition.as_ref(), &mut text, &mut values);
        self.table.connection.execute(&text, &values).await
    }
}

pub(crate) fn conjunction(known: Option<Condition>, other: Condition) -> Option<Condition> {
    Some(match known {
        Some(known) => known.and(other),
        None => other,
    })
}

pub(crate) fn push_condition<'v>(
    condition: Option<&'v Condition>,
    text: &mut String,
    values: &mut Vec<&'v dyn ToValue>,
) {
    if let Some(condition) = condition {
        text.push_str(" WHERE ");
        text.push_str(&condition.text);
        values.extend(condition.values.iter().map(|value| value as &dyn ToValue));
    }
}
