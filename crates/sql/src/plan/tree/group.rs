//! GROUP BY and aggregates.

use junctor_expression::Expression;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::program::Projection;

use super::subquery::BlockSubqueries;
use super::window::check_alias;
use super::{AggregatePlan, TreePlanner};
use crate::bind::block::{BlockView, SlotOwner, SlotSpace};
use crate::bind::group_function::GroupFunctions;
use crate::bind::window::WindowFunction;
use crate::bind::{Clause, item_named, message};
use crate::parse::expression as ast;
use crate::parse::statement::{Select, SelectItem};

impl TreePlanner<'_> {
    /// The values of GROUP BY. A number refers to a select item; a name is first a column, then an alias.
    /// Errors: 1052, 1054, 1056, 1111.
    pub(super) fn group_keys(
        &self,
        select: &Select,
        (projection, windows): (&Projection, &[WindowFunction]),
        view: &BlockView<'_>,
        subqueries: &BlockSubqueries<'_>,
    ) -> Result<Vec<Expression>> {
        let clause = Clause::Group;
        let space = view.block.space;
        let mut keys: Vec<Expression> = Vec::with_capacity(select.group_by.len());
        let mut binder = self.binder(view);
        binder.subqueries = Some(subqueries);
        let before = subqueries.take();
        for item in &select.group_by {
            let mut written = None;
            let named = match item {
                ast::Expression::Literal(ast::Literal::Integer(number)) => {
                    let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                    let value = place.and_then(|place| Some((place, projection.values.get(place)?)));
                    let Some((place, value)) = value else {
                        return Err(message::unknown_column(&number.to_string(), clause.name()));
                    };
                    written = item_at(&select.projection, place, projection.values.len());
                    Some((value.clone(), projection.columns[place].name.to_string()))
                }
                ast::Expression::Column(reference) if reference.table.is_none() => {
                    let named = item_named(&select.projection, projection, &reference.name, clause)?;
                    match (view.find(reference, clause.name())?, named) {
                        (Some(found), Some(value)) if found.expression != *value => {
                            self.environment.warn(&message::ambiguous_column(&reference.name, clause.name()));
                            None
                        }
                        (Some(_), _) => None,
                        (None, named) => {
                            written = item_with_alias(&select.projection, &reference.name);
                            named.map(|value| (value.clone(), reference.name.clone()))
                        }
                    }
                }
                _ => None,
            };
            let key = match named {
                Some((value, name)) => {
                    check_alias(&value, projection, windows)?;
                    if !reads_computed(&value, space) {
                        value
                    } else if let Some(written) = written.filter(|item| !item.has_aggregate() && !select.with_rollup) {
                        // Subqueries of the select list run after the groups are made, those of GROUP BY
                        // before. ROLLUP would not find the value of the select list among its keys.
                        binder.bind_in(clause, written)?
                    } else {
                        let text = format!("Can't group on '{name}'");
                        return Err(Error::new(ErrorCode::WrongGroupField, text));
                    }
                }
                None => binder.bind_in(clause, item)?,
            };
            if !keys.contains(&key) || select.with_rollup {
                keys.push(key);
            }
        }
        self.note(&binder);
        subqueries.move_inner();
        subqueries.restore(before);
        Ok(keys)
    }

    /// The aggregation of a block. Error: 3150 for an argument of GROUPING that is no key.
    pub(super) fn aggregate(
        &self,
        keys: &mut Vec<Expression>,
        functions: GroupFunctions,
        rollup: bool,
        space: &SlotSpace,
    ) -> Result<AggregatePlan> {
        let GroupFunctions { functions, groupings, windows: _ } = functions;
        let mut with_slots = Vec::with_capacity(keys.len());
        for key in keys.drain(..) {
            // Without ROLLUP the values of the first row of a group serve, so no slot is needed.
            let slot = match rollup {
                true => space.computed(key.result, "")?.as_column().map_or(0, |column| column.0),
                false => u16::MAX,
            };
            with_slots.push((key, slot));
        }
        let mut placed = Vec::new();
        for (arguments, slot) in groupings {
            let mut places = Vec::new();
            for (number, argument) in arguments.iter().enumerate() {
                let place = with_slots.iter().position(|(key, _)| key == argument).ok_or_else(|| {
                    let text = format!("Argument #{number} of GROUPING function is not in GROUP BY");
                    Error::new(ErrorCode::WrongGrouping, text)
                })?;
                places.push(place);
            }
            placed.push((places, slot));
        }
        Ok(AggregatePlan { keys: with_slots, functions, rollup, groupings: placed, partials: None })
    }
}

/// The expression of the select list for the value at a place. An item `*` has several values. `None` for one
/// of them, and for a value between two such items.
fn item_at(items: &[SelectItem], place: usize, count: usize) -> Option<&ast::Expression> {
    let is_one = |item: &SelectItem| matches!(item, SelectItem::Expression { .. });
    let from_end = items.len().checked_sub(count - place);
    let item = match items.get(..=place).is_some_and(|before| before.iter().all(is_one)) {
        true => items.get(place),
        false => from_end.filter(|from| items[*from..].iter().all(is_one)).map(|from| &items[from]),
    };
    match item {
        Some(SelectItem::Expression { expression, .. }) => Some(expression),
        _ => None,
    }
}

/// The expression of the first select item with an alias.
fn item_with_alias<'i>(items: &'i [SelectItem], name: &str) -> Option<&'i ast::Expression> {
    items.iter().find_map(|item| match item {
        SelectItem::Expression { expression, alias: Some(alias), .. } if alias.eq_ignore_ascii_case(name) => {
            Some(expression)
        }
        _ => None,
    })
}

/// Whether a value of the select list depends on an aggregate or a subquery: at that place in the planning,
/// computed values are theirs.
fn reads_computed(value: &Expression, space: &SlotSpace) -> bool {
    let mut reads = false;
    value.visit(&mut |inner| {
        if let Some(slot) = inner.as_column() {
            reads |= matches!(space.owner(slot), Some(SlotOwner::Computed));
        }
    });
    reads
}
