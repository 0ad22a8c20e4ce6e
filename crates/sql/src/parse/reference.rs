//! References of queries to a table of WITH.

use super::expression::Expression;
use super::query::{DerivedSource, FromItem, JoinCondition};
use super::statement::{Select, SelectItem};

/// The references of a query to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// In its own FROM.
    pub direct: usize,
    /// In queries inside it.
    pub nested: usize,
}

impl References {
    /// Whether there is one.
    pub fn any(self) -> bool {
        self.direct + self.nested > 0
    }
}

impl Select {
    /// The references to the table of WITH that has this name. A table of WITH inside the query hides it.
    pub fn references(&self, table: &str) -> References {
        let mut found = References::default();
        for (place, common) in self.with.iter().enumerate() {
            let visible = if common.recursive { place + 1 } else { place };
            let is_hidden = self.with[..visible].iter().any(|before| before.name.eq_ignore_ascii_case(table));
            if !is_hidden {
                found.add_nested(common.query.references(table));
            }
        }
        if self.with.iter().any(|common| common.name.eq_ignore_ascii_case(table)) {
            return found;
        }
        if let Some(from) = &self.from {
            found.add_from(from, table);
        }
        for expression in self.expressions() {
            found.add_queries(expression, table);
        }
        found
    }

    /// The expressions of the clauses, except those of FROM.
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let items = self.projection.iter().filter_map(|item| match item {
            SelectItem::Expression { expression, .. } => Some(expression),
            SelectItem::All(_) => None,
        });
        let order = self.order_by.iter().map(|item| &item.expression);
        let windows = self.windows.iter().flat_map(|window| window.definition.expressions());
        items.chain(&self.filter).chain(&self.group_by).chain(&self.having).chain(order).chain(windows)
    }
}

impl References {
    fn add_nested(&mut self, inner: References) {
        self.nested += inner.direct + inner.nested;
    }

    fn add_from(&mut self, from: &FromItem, table: &str) {
        match from {
            FromItem::Table(reference) => {
                let name = &reference.name;
                self.direct += usize::from(name.database.is_none() && name.name.eq_ignore_ascii_case(table));
            }
            FromItem::Join(join) => {
                self.add_from(&join.left, table);
                self.add_from(&join.right, table);
                if let JoinCondition::On(condition) = &join.condition {
                    self.add_queries(condition, table);
                }
            }
            FromItem::Derived(derived) => match &derived.source {
                DerivedSource::Select(query) => self.add_nested(query.references(table)),
                DerivedSource::Set { first, rest } => {
                    self.add_nested(first.references(table));
                    rest.iter().for_each(|operand| self.add_nested(operand.query.references(table)));
                }
                DerivedSource::JsonTable(function) => self.add_queries(&function.document, table),
                DerivedSource::Values(rows) => rows.iter().flatten().for_each(|value| self.add_queries(value, table)),
            },
        }
    }

    fn add_queries(&mut self, expression: &Expression, table: &str) {
        expression.visit(&mut |inner| match inner {
            Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } => {
                self.add_nested(query.references(table));
            }
            _ => {}
        });
    }
}
