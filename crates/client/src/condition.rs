//! Conditions on the columns of a table.

use junctor_model::quoted_name::push_quoted_name;
use junctor_model::value::Value;

use super::value::ToValue;

/// A column of the table. Its methods make conditions.
#[derive(Clone, Debug)]
pub struct Column(String);

/// The column named `name`. The name is quoted and may contain any characters.
pub fn column(name: &str) -> Column {
    let mut text = String::new();
    push_quoted_name(name, &mut text);
    Column(text)
}

/// A condition on rows. The partition that stores the rows evaluates it, with MySQL's comparison rules: a
/// comparison with NULL is not true.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident: $operator:literal;)*) => {
        $($(#[$doc])*
        pub fn $name(self, value: impl ToValue) -> Condition {
            self.with($operator, &[&value])
        })*
    };
}

impl Column {
    comparison! {
        /// `column = value`
        equals: " = ?";
        /// `column <> value`
        not_equals: " <> ?";
        /// `column < value`
        less_than: " < ?";
        /// `column <= value`
        at_most: " <= ?";
        /// `column > value`
        greater_than: " > ?";
        /// `column >= value`
        at_least: " >= ?";
        /// `column LIKE pattern`: `%` matches any number of characters, `_` exactly one.
        like: " LIKE ?";
    }

    /// `column BETWEEN least AND greatest`
    pub fn between(self, least: impl ToValue, greatest: impl ToValue) -> Condition {
        self.with(" BETWEEN ? AND ?", &[&least, &greatest])
    }

    /// `column IN (values)`; never true if `values` is empty.
    pub fn is_one_of<V: ToValue>(self, values: &[V]) -> Condition {
        // SQL has no empty list.
        if values.is_empty() {
            return Condition { text: "(0 = 1)".into(), values: Vec::new() };
        }
        let marks = vec!["?"; values.len()].join(", ");
        let values: Vec<&dyn ToValue> = values.iter().map(|value| value as &dyn ToValue).collect();
        self.with(&format!(" IN ({marks})"), &values)
    }

    /// `column IS NULL`
    pub fn is_null(self) -> Condition {
        self.with(" IS NULL", &[])
    }

    /// `column IS NOT NULL`
    pub fn is_not_null(self) -> Condition {
        self.with(" IS NOT NULL", &[])
    }

    fn with(self, rest: &str, values: &[&dyn ToValue]) -> Condition {
        let values = values.iter().map(|value| value.to_value().into_owned()).collect();
        Condition { text: format!("({}{rest})", self.0), values }
    }
}

/// `NOT condition`. It is not true where `condition` is NULL.
pub fn not(condition: Condition) -> Condition {
    Condition { text: format!("(NOT {})", condition.text), values: condition.values }
}

impl Condition {
    /// `self AND other`
    pub fn and(self, other: Condition) -> Condition {
        self.joined(" AND ", other)
    }

    /// `self OR other`
    pub fn or(self, other: Condition) -> Condition {
        self.joined(" OR ", other)
    }

    fn joined(mut self, operator: &str, other: Condition) -> Condition {
        self.text = format!("({}{operator}{})", self.text, other.text);
        self.values.extend(other.values);
        self
    }
}
