//! Columns that equalities make equal to each other: from `a = b` and `b = c` follows `a = c`, so the order
//! of joins may use it.

use junctor_expression::{CompareDomain, CompareOperator, Expression, Node};
use junctor_model::id::ColumnNumber;

use super::factor::is_silent;

/// Maximum number of columns of a class from which equalities are derived.
const COLUMNS_MAX: usize = 16;

/// Columns that are equal in all rows, compared in one domain.
struct Class {
    domain: CompareDomain,
    columns: Vec<Expression>,
}

/// The classes of columns that equalities make equal.
#[derive(Default)]
pub(super) struct Classes(Vec<Class>);

/// The domain and the two columns of an equality of columns.
fn equality_of(condition: &Expression) -> Option<(CompareDomain, &[Expression; 2])> {
    let Node::Compare(CompareOperator::Equal, domain, operands) = &condition.node else { return None };
    let are_columns = operands.iter().all(|operand| operand.as_column().is_some());
    // Of values that nearly are equal, a third may differ from one of them.
    let is_transitive = !matches!(domain, CompareDomain::FixedDouble(_));
    (are_columns && is_transitive && is_silent(condition)).then_some((*domain, &**operands))
}

impl Classes {
    /// The classes of conditions that all are true.
    pub fn of(conditions: &[Expression]) -> Classes {
        let mut classes = Classes::default();
        conditions.iter().for_each(|condition| _ = classes.add(condition));
        classes
    }

    /// The number of the class to which an equality belongs.
    pub fn number_of(&self, condition: &Expression) -> Option<usize> {
        let (domain, [column, _]) = equality_of(condition)?;
        self.find(domain, column.as_column()?)
    }

    fn find(&self, domain: CompareDomain, column: ColumnNumber) -> Option<usize> {
        let has = |known: &Expression| known.as_column() == Some(column);
        self.0.iter().position(|class| class.domain == domain && class.columns.iter().any(has))
    }

    /// Adds a condition. Returns false if it is an equality that follows from those before it.
    pub fn add(&mut self, condition: &Expression) -> bool {
        let Some((domain, operands)) = equality_of(condition) else { return true };
        let [left, right] = operands.each_ref().map(|operand| operand.as_column());
        let (Some(left), Some(right)) = (left, right) else { return true };
        let [one, other] = [left, right].map(|column| self.find(domain, column));
        match (one, other) {
            (Some(one), Some(other)) if one == other => return false,
            (Some(one), Some(other)) => {
                let absorbed = self.0.remove(one.max(other));
                self.0[one.min(other)].columns.extend(absorbed.columns);
            }
            (Some(one), None) => self.0[one].columns.push(operands[1].clone()),
            (None, Some(other)) => self.0[other].columns.push(operands[0].clone()),
            (None, None) if left == right => {}
            (None, None) => self.0.push(Class { domain, columns: operands.to_vec() }),
        }
        true
    }

    /// The other columns of the class of a column.
    pub fn equal_to(&self, domain: CompareDomain, column: ColumnNumber) -> impl Iterator<Item = &Expression> {
        let class = self.find(domain, column).map(|place| &self.0[place].columns[..]).unwrap_or_default();
        class.iter().filter(move |other| other.as_column() != Some(column))
    }

    /// The equalities of columns of different parts that follow from `conditions`, but are not among them.
    pub fn implied(
        &self,
        conditions: &[Expression],
        part_of: &dyn Fn(&Expression) -> Option<usize>,
    ) -> Vec<Expression> {
        let mut implied = Vec::new();
        for Class { domain, columns } in self.0.iter().filter(|class| class.columns.len() <= COLUMNS_MAX) {
            for (place, left) in columns.iter().enumerate() {
                for right in &columns[place + 1..] {
                    let is_known = |condition: &Expression| {
                        equality_of(condition).is_some_and(|(of, operands)| {
                            let is = |one: usize, other: usize| {
                                operands[one].as_column() == left.as_column()
                                    && operands[other].as_column() == right.as_column()
                            };
                            of == *domain && (is(0, 1) || is(1, 0))
                        })
                    };
                    if part_of(left) == part_of(right) || conditions.iter().any(is_known) {
                        continue;
                    }
                    let compared = Expression::comparison(CompareOperator::Equal, left.clone(), right.clone());
                    implied.extend(compared.ok().filter(|new| equality_of(new).is_some_and(|(of, _)| of == *domain)));
                }
            }
        }
        implied
    }
}

#[cfg(test)]
mod tests {
    use junctor_expression::{Coercibility, ResultType};
    use junctor_model::collation::CollationId;

    use super::*;

    fn column(number: u16, result: ResultType) -> Expression {
        Expression::column_of_type(ColumnNumber(number), result, "")
    }

    fn equals(left: u16, right: u16) -> Expression {
        let of = |number| column(number, ResultType::integer(false, 11));
        Expression::comparison(CompareOperator::Equal, of(left), of(right)).expect("integers are comparable")
    }

    fn text_equals(left: u16, right: u16, collation: CollationId) -> Expression {
        let of = |number| column(number, ResultType::string(collation, Coercibility::Implicit, 10));
        Expression::comparison(CompareOperator::Equal, of(left), of(right)).expect("texts are comparable")
    }

    fn part(column: &Expression) -> Option<usize> {
        column.as_column().map(|column| usize::from(column.0 / 10))
    }

    #[test]
    fn equalities_follow_from_each_other_between_parts() {
        let conditions = [equals(1, 11), equals(11, 21), equals(2, 31)];
        let classes = Classes::of(&conditions);
        assert_eq!(classes.implied(&conditions, &part), [equals(1, 21)]);
        let numbers = [equals(1, 21), equals(2, 31), equals(3, 4)].map(|one| classes.number_of(&one));
        assert_eq!(numbers, [Some(0), Some(1), None]);
    }

    #[test]
    fn columns_of_one_part_and_known_equalities_are_left_out() {
        let conditions = [equals(1, 11), equals(11, 2), equals(21, 11), equals(21, 1)];
        assert_eq!(Classes::of(&conditions).implied(&conditions, &part), [equals(2, 21)]);
    }

    #[test]
    fn other_collations_are_other_equalities() {
        let [exact, loose] = [CollationId::UTF8MB4_BIN, CollationId::UTF8MB4_GENERAL_CI];
        let conditions = [text_equals(1, 11, exact), text_equals(11, 21, loose)];
        assert_eq!(Classes::of(&conditions).implied(&conditions, &part), []);
    }

    #[test]
    fn an_equality_that_follows_adds_nothing() {
        let mut classes = Classes::default();
        assert!(classes.add(&equals(1, 11)) && classes.add(&equals(21, 31)) && classes.add(&equals(31, 1)));
        assert!(!classes.add(&equals(21, 11)) && classes.add(&equals(21, 41)));
    }
}
