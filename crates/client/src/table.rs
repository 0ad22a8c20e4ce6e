//! Operations on one table. Each stands for a statement, which is prepared once per connection and executed with its values.

use junctor_model::value::Value;

use super::condition::Condition;
use super::connection::Connection;
use super::error::{Error, Result};
use super::row::Outcome;
use super::select::Select;
use super::value::ToValue;

/// Rows that one statement inserts at most.
const ROWS_AT_ONCE: usize = 64;

/// A table; made by [`Connection::table`].
#[derive(Clone, Debug)]
pub struct Table<'c> {
    pub(crate) connection: &'c Connection,
    /// Quoted.
    pub(crate) name: String,
}

impl<'c> Table<'c> {
    pub(crate) fn new(connection: &'c Connection, name: &str) -> Table<'c> {
        let mut quoted = String::new();
        if let Some((database, table)) = name.split_once('.') {
            push_quoted(database, &mut quoted);
            quoted.push('.');
            push_quoted(table, &mut quoted);
        } else {
            push_quoted(name, &mut quoted);
        }
        Table { connection, name: quoted }
    }

    /// Inserts a row: columns with their values; the others get their defaults.
    ///
    /// # Errors
    /// 1062 when a row has its key, 1452 when a foreign key has no parent, and those of the values.
    pub async fn insert(&self, values: &[(&str, &dyn ToValue)]) -> Result<Outcome> {
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let row: Vec<&dyn ToValue> = values.iter().map(|(_, value)| *value).collect();
        self.connection.execute(&self.insert_text(&columns, 1), &row).await
    }

    /// Inserts rows, 64 with a statement; statements are sent together. Outside a transaction those before one that fails stay.
    ///
    /// # Errors
    /// As [`Table::insert`]; also when a row has not as many values as there are columns.
    pub async fn insert_many(&self, columns: &[&str], rows: &[&[&dyn ToValue]]) -> Result<Outcome> {
        if rows.iter().any(|row| row.len() != columns.len()) {
            return Err(Error::value("A row has not as many values as there are columns".into()));
        }
        let mut batch = self.connection.batch();
        let (many, rest) = rows.as_chunks::<ROWS_AT_ONCE>();
        for rows in many {
            batch.add(&self.insert_text(columns, ROWS_AT_ONCE), &rows.concat());
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

    /// Inserts a row, or gives the row that has its key already these values.
    ///
    /// # Errors
    /// As [`Table::insert`], but for 1062 where the values that were given belong to two rows.
    pub async fn upsert(&self, values: &[(&str, &dyn ToValue)]) -> Result<Outcome> {
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let row: Vec<&dyn ToValue> = values.iter().map(|(_, value)| *value).collect();
        let mut text = self.insert_text(&columns, 1);
        text.push_str(" ON DUPLICATE KEY UPDATE ");
        for (position, column) in columns.iter().enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            push_quoted(column, &mut text);
            text.push_str(" = VALUES(");
            push_quoted(column, &mut text);
            text.push(')');
        }
        self.connection.execute(&text, &row).await
    }

    /// Changes rows.
    pub fn update(&self) -> Update<'c> {
        Update { table: self.clone(), assignments: Vec::new(), condition: None }
    }

    /// Deletes rows.
    pub fn delete(&self) -> Delete<'c> {
        Delete { table: self.clone(), condition: None }
    }

    /// Reads these columns of rows; `*` is all.
    pub fn select(&self, columns: &[&str]) -> Select<'c> {
        Select::of_columns(self.clone(), columns)
    }

    fn insert_text(&self, columns: &[&str], rows: usize) -> String {
        let mut text = format!("INSERT INTO {} (", self.name);
        for (position, column) in columns.iter().enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            push_quoted(column, &mut text);
        }
        text.push_str(") VALUES ");
        let marks = format!("({})", vec!["?"; columns.len()].join(", "));
        text.push_str(&vec![marks.as_str(); rows].join(", "));
        text
    }
}

/// A change of rows.
#[derive(Clone, Debug)]
#[must_use = "nothing is changed before `run`"]
pub struct Update<'c> {
    table: Table<'c>,
    assignments: Vec<(String, Value)>,
    condition: Option<Condition>,
}

impl Update<'_> {
    /// Gives a column a value.
    pub fn set(mut self, column: &str, value: impl ToValue) -> Self {
        let mut text = String::new();
        push_quoted(column, &mut text);
        text.push_str(" = ?");
        self.assignments.push((text, value.to_value().to_value()));
        self
    }

    /// Adds to a number; a negative value takes away.
    pub fn add(mut self, column: &str, value: impl ToValue) -> Self {
        let mut quoted = String::new();
        push_quoted(column, &mut quoted);
        self.assignments.push((format!("{quoted} = {quoted} + ?"), value.to_value().to_value()));
        self
    }

    /// Of rows for which this is true too; without a condition all rows are changed.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = joined(self.condition, condition);
        self
    }

    /// Does it.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn run(self) -> Result<Outcome> {
        let assignments: Vec<&str> = self.assignments.iter().map(|(text, _)| text.as_str()).collect();
        let mut text = format!("UPDATE {} SET {}", self.table.name, assignments.join(", "));
        let mut values: Vec<&dyn ToValue> = self.assignments.iter().map(|(_, value)| value as &dyn ToValue).collect();
        push_condition(self.condition.as_ref(), &mut text, &mut values);
        self.table.connection.execute(&text, &values).await
    }
}

/// A deletion of rows.
#[derive(Clone, Debug)]
#[must_use = "nothing is deleted before `run`"]
pub struct Delete<'c> {
    table: Table<'c>,
    condition: Option<Condition>,
}

impl Delete<'_> {
    /// Of rows for which this is true too; without a condition all rows are deleted.
    pub fn filter(mut self, condition: Condition) -> Self {
        self.condition = joined(self.condition, condition);
        self
    }

    /// Does it.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn run(self) -> Result<Outcome> {
        let mut text = format!("DELETE FROM {}", self.table.name);
        let mut values = Vec::new();
        push_condition(self.condition.as_ref(), &mut text, &mut values);
        self.table.connection.execute(&text, &values).await
    }
}

pub(crate) fn joined(known: Option<Condition>, other: Condition) -> Option<Condition> {
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

/// Appends a name in backticks.
pub(crate) fn push_quoted(name: &str, text: &mut String) {
    text.push('`');
    for character in name.chars() {
        text.push(character);
        if character == '`' {
            text.push('`');
        }
    }
    text.push('`');
}
