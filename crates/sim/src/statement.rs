//! Statements and replies, independent of how they are sent.

use std::fmt::Write;

/// A parameter value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A BIGINT.
    Integer(i64),
    /// A string.
    Text(String),
}

impl From<i64> for Parameter {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Parameter {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// A statement with a `?` for each parameter. A client either prepares it or puts the values into the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The SQL text. Every `?` in it is a parameter.
    pub text: String,
    /// The parameter values, in the order of the `?`s.
    pub parameters: Vec<Parameter>,
}

impl Statement {
    /// A statement without parameters.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), parameters: Vec::new() }
    }

    /// A statement with parameters.
    pub fn with(text: impl Into<String>, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        Self { text: text.into(), parameters: parameters.into_iter().collect() }
    }

    /// The statement as one text, with integers unquoted and strings quoted.
    pub fn as_text(&self) -> String {
        let mut parameters = self.parameters.iter();
        let mut text = String::with_capacity(self.text.len() + 16 * self.parameters.len());
        for character in self.text.chars() {
            match (character, parameters.as_slice().first()) {
                ('?', Some(Parameter::Integer(value))) => {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{value}");
                    parameters.next();
                }
                ('?', Some(Parameter::Text(value))) => {
                    push_quoted(value, &mut text);
                    parameters.next();
                }
                _ => text.push(character),
            }
        }
        text
    }
}

fn push_quoted(value: &str, text: &mut String) {
    text.push('\'');
    for character in value.chars() {
        if matches!(character, '\'' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('\'');
}

/// A column value as text, in both protocols; `None` is NULL.
pub type Cell = Option<String>;

/// The answer to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// OK without rows.
    Done {
        /// Number of rows changed.
        affected_rows: u64,
        /// First generated AUTO_INCREMENT value; 0 if there is none.
        insert_id: u64,
        /// Whether a transaction is open afterwards.
        in_transaction: bool,
    },
    /// The result rows.
    Rows(Vec<Vec<Cell>>),
    /// An error.
    Failed {
        /// MySQL's error number.
        errno: u16,
        /// The message.
        message: String,
    },
    /// The results of a text with several statements, in order; at least two.
    Several(Vec<Reply>),
}

impl Reply {
    /// MySQL's error number; 0 for success. For several results it is that of the last one.
    pub fn errno(&self) -> u16 {
        match self {
            Self::Failed { errno, .. } => *errno,
            Self::Several(results) => results.last().map_or(0, Self::errno),
            _ => 0,
        }
    }

    /// The results of the statements of a text. A single result counts as one.
    pub fn results(&self) -> &[Reply] {
        match self {
            Self::Several(results) => results,
            single => std::slice::from_ref(single),
        }
    }

    /// The rows as integers.
    ///
    /// # Errors
    /// A description of the reply, if it is not rows of integers.
    pub fn integers(&self) -> Result<Vec<Vec<i64>>, String> {
        let rows = self.rows()?;
        rows.iter().map(|row| row.iter().map(integer).collect()).collect()
    }

    /// The rows as text.
    ///
    /// # Errors
    /// A description of the reply, if it has no rows.
    pub fn rows(&self) -> Result<&[Vec<Cell>], String> {
        match self {
            Self::Rows(rows) => Ok(rows),
            other => Err(format!("expected rows, not {other:?}")),
        }
    }

    /// Number of rows changed.
    ///
    /// # Errors
    /// A description of the reply, if it is not OK.
    pub fn affected_rows(&self) -> Result<u64, String> {
        match self {
            Self::Done { affected_rows, .. } => Ok(*affected_rows),
            other => Err(format!("expected success, not {other:?}")),
        }
    }
}

/// Parses a column value as an integer.
///
/// # Errors
/// A description of the value, if it is not an integer.
pub fn integer(cell: &Cell) -> Result<i64, String> {
    let text = cell.as_deref().ok_or_else(|| "expected an integer, not NULL".to_owned())?;
    text.parse().map_err(|_| format!("expected an integer, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_replaced_by_parameters_in_order() {
        let statement = Statement::with("SELECT ?, ?, ?", [7.into(), "it's a \\".into(), (-1).into()]);
        assert_eq!(statement.as_text(), r"SELECT 7, 'it\'s a \\', -1");
        assert_eq!(Statement::plain("SELECT 1").as_text(), "SELECT 1");
    }

    #[test]
    fn non_integer_rows_are_rejected() {
        let row = |cell: Option<&str>| Reply::Rows(vec![vec![cell.map(str::to_owned)]]);
        assert_eq!(row(Some("-5")).integers(), Ok(vec![vec![-5]]));
        assert!(row(Some("5.0")).integers().is_err() && row(None).integers().is_err());
        assert!(Reply::Failed { errno: 1064, message: String::new() }.integers().is_err());
    }
}
