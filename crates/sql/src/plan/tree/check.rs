//! ONLY_FULL_GROUP_BY: columns outside aggregates must have one value in a group.

use std::collections::BTreeSet;

use junctor_expression::{CompareOperator, Expression, Node};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_signals::program::SortKey;

use crate::bind::block::{BlockScope, RelationSource, SlotOwner, SlotSpace};
use crate::bind::message;
use crate::bind::window::WindowFunction;

/// A column of a relation, by the relation's number in the slot space.
type Member = (u16, ColumnNumber);

/// The facts that decide which columns have one value in a group.
pub(super) struct GroupCheck<'a> {
    /// Whether `sql_mode` has ONLY_FULL_GROUP_BY.
    pub only_full: bool,
    /// Whether the block has groups or aggregates.
    pub is_grouped: bool,
    pub space: &'a SlotSpace,
    pub block: &'a BlockScope<'a>,
    /// GROUP BY.
    pub keys: &'a [Expression],
    /// The window functions, whose values stand for the values that they take.
    pub windows: &'a [WindowFunction],
    /// Conditions that hold for all rows.
    pub conditions: &'a [Expression],
}

impl GroupCheck<'_> {
    /// Checks the columns of a block. Errors: 1055, 1140; 1054 for a column of HAVING that neither GROUP BY
    /// nor the select list has.
    pub fn check(&self, values: &[Expression], having: Option<&Expression>, sort: &[SortKey]) -> Result<()> {
        if let Some(having) = having {
            let unknown = self.first_bare(having, &|inner| values.contains(inner) || self.keys.contains(inner));
            if let Some((name, _)) = unknown {
                return Err(message::unknown_column(&short(&name), "having clause"));
            }
        }
        if !self.only_full || !self.is_grouped {
            return Ok(());
        }
        let determined = self.determined();
        let lists = values.iter().map(|value| (value, "SELECT list")).enumerate();
        let ordered = sort.iter().map(|key| (&key.value, "ORDER BY clause")).enumerate();
        for (place, (value, clause)) in lists.chain(ordered) {
            let is_key = |inner: &Expression| {
                self.keys.contains(inner) || self.member(inner).is_some_and(|member| determined.contains(&member))
            };
            let Some((name, _)) = self.first_bare(value, &is_key) else { continue };
            let name = name.replace('`', "");
            if self.keys.is_empty() {
                return Err(match clause {
                    "SELECT list" => message::mix_of_group_functions(place + 1, &name),
                    _ => Error::new(
                        ErrorCode::MixOfGroupFunctions,
                        format!(
                            "Expression #{} of ORDER BY contains aggregate function and applies to the result of a \
                             non-aggregated query",
                            place + 1
                        ),
                    ),
                });
            }
            let text = format!(
                "Expression #{} of {clause} is not in GROUP BY clause and contains nonaggregated column '{name}' \
                 which is not functionally dependent on columns in GROUP BY clause; this is incompatible with \
                 sql_mode=only_full_group_by",
                place + 1
            );
            return Err(Error::new(ErrorCode::ColumnNotInGroupBy, text));
        }
        Ok(())
    }

    /// The first column of a relation of the block outside expressions that are allowed.
    fn first_bare(
        &self,
        value: &Expression,
        is_allowed: &dyn Fn(&Expression) -> bool,
    ) -> Option<(String, ColumnNumber)> {
        if is_allowed(value) {
            return None;
        }
        if let Some(window) = self.windows.iter().find(|window| window.result == *value) {
            return window.expressions().find_map(|inner| self.first_bare(inner, is_allowed));
        }
        if let Node::Column { index, name } = &value.node {
            return self.member(value).map(|_| (name.to_string(), *index));
        }
        let mut found = None;
        value.for_each_operand(&mut |operand| {
            if found.is_none() {
                found = self.first_bare(operand, is_allowed);
            }
        });
        found
    }

    fn member(&self, value: &Expression) -> Option<Member> {
        match self.space.owner(value.as_column()?)? {
            SlotOwner::Column(relation, column) | SlotOwner::Instant(relation, column) => Some((relation, column)),
            _ => None,
        }
    }

    /// The columns that the keys determine: by equalities and by unique keys of their tables.
    fn determined(&self) -> BTreeSet<Member> {
        let mut known: BTreeSet<Member> = self.keys.iter().filter_map(|key| self.member(key)).collect();
        loop {
            let before = known.len();
            for condition in self.conditions {
                let Node::Compare(CompareOperator::Equal | CompareOperator::NullSafeEqual, _, operands) =
                    &condition.node
                else {
                    continue;
                };
                let [left, right] = &**operands;
                for (one, other) in [(left, right), (right, left)] {
                    let Some(member) = self.member(one) else { continue };
                    let is_known = match self.member(other) {
                        Some(other) => known.contains(&other),
                        None => super::join_key::relations_of(other, self.space).is_some_and(|used| used.is_empty()),
                    };
                    if is_known {
                        known.insert(member);
                    }
                }
            }
            for relation in &self.block.relations {
                let table = match &relation.source {
                    RelationSource::Table(table) => *table,
                    RelationSource::View(view) => &view.layout,
                    RelationSource::Rows { .. } => continue,
                };
                let definition = &table.definition;
                let is_whole = |columns: &[ColumnNumber]| {
                    columns.iter().all(|column| {
                        known.contains(&(relation.id, *column)) && !definition.columns[usize::from(column.0)].nullable
                    })
                };
                let mut unique = definition.indexes.iter().filter(|index| index.is_unique());
                if unique.any(|index| is_whole(&index.columns)) {
                    known
                        .extend((0..definition.columns.len() as u16).map(|column| (relation.id, ColumnNumber(column))));
                }
            }
            if known.len() == before {
                return known;
            }
        }
    }
}

/// The last part of a qualified name in messages.
fn short(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).replace('`', "")
}
