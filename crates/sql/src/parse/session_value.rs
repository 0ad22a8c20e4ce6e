//! Replaces expressions whose value only the session knows (`NOW()`, `@@autocommit`, `@x`,
//! `LAST_INSERT_ID()`) by implicit parameters. Each execution evaluates these expressions once, before it
//! begins. A plan is valid for every execution in which its implicit parameters have the same types.

use super::expression::{Expression, InList, Literal, ParameterNumber, StringLiteral};
use super::limit::PARAMETERS_MAX;
use super::query::{DerivedSource, FromItem, JoinCondition};
use super::statement::{Assignment, InsertSource, LoadField, OrderItem, Select, SelectItem, Statement};

/// An implicit parameter of a statement: an expression whose value only the session knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionValue {
    /// The expression that the session evaluates.
    pub expression: Expression,
    /// Whether the value is a LIKE pattern. The first character of a pattern determines whether an index is
    /// useful.
    pub is_pattern: bool,
    /// Whether it is the time at which the statement regards rows as expired.
    pub is_statement_time: bool,
    /// Whether it is the number of warnings or of errors of the statement before.
    pub is_of_diagnostics: bool,
}

impl SessionValue {
    /// A value of which nothing else is known.
    pub fn of(expression: Expression) -> SessionValue {
        SessionValue { expression, is_pattern: false, is_statement_time: false, is_of_diagnostics: false }
    }
}

/// Whether an expression becomes an implicit parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifting {
    /// The expression becomes a parameter, because the session knows its value.
    Whole,
    /// The operands of the expression may become parameters.
    Operands,
    /// Neither the expression nor its operands become parameters.
    Nothing,
}

/// Replaces expressions by implicit parameters, as `lifting` decides for each expression. The parameters are
/// numbered from `first` on; equal expressions share one. Returns the replaced expressions in the order of
/// the parameters. Expressions beyond the maximum number of parameters stay in the statement.
pub(crate) fn lift_session_values(
    statement: &mut Statement,
    first: ParameterNumber,
    lifting: &dyn Fn(&Expression) -> Lifting,
) -> Vec<SessionValue> {
    let loaded = loaded_variables(statement);
    let first = ParameterNumber(first.0.saturating_add(loaded.len() as u32));
    let mut lifter = Lifter { first, lifting, lifted: Vec::new(), assigned: Vec::new(), loaded, finds_assigned: true };
    lifter.statement(statement);
    lifter.finds_assigned = false;
    lifter.statement(statement);
    lifter.lifted
}

/// Replaces each user variable that a statement without implicit parameters assigns by a call that reads it
/// at each evaluation.
pub(crate) fn read_assigned_variables(statement: &mut Statement) {
    // With this number no expression becomes a parameter.
    lift_session_values(statement, ParameterNumber(PARAMETERS_MAX), &|_| Lifting::Operands);
}

/// The user variable of each field of LOAD DATA, in lower case; empty for a field that is a column.
fn loaded_variables(statement: &Statement) -> Vec<String> {
    let Statement::Insert(insert) = statement else { return Vec::new() };
    let InsertSource::Load(load) = &insert.source else { return Vec::new() };
    let name = |field: &LoadField| match field {
        LoadField::Column(_) => String::new(),
        LoadField::Variable(name) => name.to_lowercase(),
    };
    load.fields.iter().flatten().map(name).collect()
}

struct Lifter<'a> {
    first: ParameterNumber,
    lifting: &'a dyn Fn(&Expression) -> Lifting,
    lifted: Vec<SessionValue>,
    /// The user variables that the statement assigns, in lower case. Their value changes during the
    /// execution, so they do not become parameters.
    assigned: Vec<String>,
    /// The user variable of each field of LOAD DATA. It is the parameter with the number of the field, unless
    /// the statement assigns it.
    loaded: Vec<String>,
    /// Whether this pass only finds the variables that the statement assigns.
    finds_assigned: bool,
}

impl Lifter<'_> {
    fn statement(&mut self, statement: &mut Statement) {
        let lifter = self;
        match statement {
            Statement::Select(select) => lifter.select(select),
            Statement::SetByQuery(set) => lifter.select(&mut set.query),
            Statement::Insert(insert) => {
                match &mut insert.source {
                    InsertSource::Rows(rows) => rows.iter_mut().for_each(|row| lifter.all(row)),
                    InsertSource::UniformRows { row, .. } => lifter.all(row),
                    InsertSource::Select(select) => lifter.select(select),
                    InsertSource::Load(load) => lifter.assignments(&mut load.assignments),
                }
                lifter.assignments(&mut insert.on_duplicate);
                lifter.items(&mut insert.returning);
            }
            Statement::Update(update) => {
                lifter.assignments(&mut update.assignments);
                lifter.all(&mut update.filter);
                lifter.order(&mut update.order_by);
            }
            Statement::Delete(delete) => {
                lifter.all(&mut delete.filter);
                lifter.order(&mut delete.order_by);
                lifter.items(&mut delete.returning);
            }
            Statement::Modify(modify) => {
                modify.with.iter_mut().for_each(|table| lifter.select(&mut table.query));
                lifter.from(&mut modify.from);
                lifter.assignments(&mut modify.assignments);
                lifter.all(&mut modify.filter);
                lifter.order(&mut modify.order_by);
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &mut Select) {
        for table in &mut select.with {
            self.select(&mut table.query);
            self.all(&mut table.depth);
        }
        self.items(&mut select.projection);
        if let Some(from) = &mut select.from {
            self.from(from);
        }
        self.all(&mut select.filter);
        self.all(&mut select.group_by);
        self.all(&mut select.having);
        self.all(select.windows.iter_mut().flat_map(|window| window.definition.expressions_mut()));
        self.order(&mut select.order_by);
    }

    fn from(&mut self, from: &mut FromItem) {
        match from {
            FromItem::Table(_) => {}
            FromItem::Join(join) => {
                self.from(&mut join.left);
                self.from(&mut join.right);
                if let JoinCondition::On(condition) = &mut join.condition {
                    self.value(condition);
                }
            }
            FromItem::Derived(derived) => match &mut derived.source {
                DerivedSource::Select(query) => self.select(query),
                DerivedSource::Set { first, rest } => {
                    self.select(first);
                    rest.iter_mut().for_each(|operand| self.select(&mut operand.query));
                }
                DerivedSource::JsonTable(table) => self.value(&mut table.document),
                DerivedSource::Values(rows) => rows.iter_mut().for_each(|row| self.all(row)),
            },
        }
    }

    fn items(&mut self, items: &mut [SelectItem]) {
        for item in items {
            if let SelectItem::Expression { expression, .. } = item {
                self.value(expression);
            }
        }
    }

    fn assignments(&mut self, assignments: &mut [Assignment]) {
        assignments.iter_mut().for_each(|assignment| self.value(&mut assignment.value));
    }

    fn order(&mut self, order_by: &mut [OrderItem]) {
        order_by.iter_mut().for_each(|item| self.value(&mut item.expression));
    }

    fn all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e mut Expression>) {
        expressions.into_iter().for_each(|expression| self.value(expression));
    }

    fn value(&mut self, value: &mut Expression) {
        self.value_as(value, false);
    }

    fn value_as(&mut self, value: &mut Expression, is_pattern: bool) {
        if self.finds_assigned {
            if let Expression::AssignUserVariable { name, .. } = value {
                self.assigned.push(name.to_lowercase());
            }
            return self.operands(value);
        }
        if let Expression::UserVariable(name) = value
            && let Some(field) = self.loaded.iter().rposition(|loaded| *loaded == name.to_lowercase())
            && !self.assigned.contains(&name.to_lowercase())
        {
            *value = Expression::Parameter(ParameterNumber(field as u32));
            return;
        }
        if let Expression::UserVariable(name) = value
            && self.assigned.contains(&name.to_lowercase())
        {
            return self.read_assigned(value);
        }
        match (self.lifting)(value) {
            Lifting::Whole => self.lift(value, is_pattern),
            Lifting::Operands => self.operands(value),
            Lifting::Nothing if self.assigned.is_empty() => {}
            Lifting::Nothing => value.replace(&mut |inner| {
                let is_assigned =
                    matches!(inner, Expression::UserVariable(name) if self.assigned.contains(&name.to_lowercase()));
                if is_assigned {
                    self.read_assigned(inner);
                }
                is_assigned
            }),
        }
    }

    /// Replaces a variable that the statement assigns by a call that reads it at each evaluation. The value
    /// before the statement is a parameter.
    fn read_assigned(&mut self, value: &mut Expression) {
        let Expression::UserVariable(name) = value else { return };
        let name = StringLiteral { bytes: name.to_lowercase().into_bytes(), character_set: None, is_raw: false };
        self.lift(value, false);
        let before = std::mem::replace(value, Expression::Literal(Literal::Null));
        *value = Expression::call("USER VARIABLE", vec![Expression::Literal(Literal::String(name)), before]);
    }

    fn lift(&mut self, value: &mut Expression, is_pattern: bool) {
        // Equal expressions have the same value throughout an execution, so one parameter is enough.
        let known = self.lifted.iter().position(|lifted| lifted.expression == *value);
        let position = known.unwrap_or(self.lifted.len());
        let ordinal = ParameterNumber(self.first.0.saturating_add(position as u32));
        if ordinal.0 >= PARAMETERS_MAX {
            return;
        }
        let expression = std::mem::replace(value, Expression::Parameter(ordinal));
        match known {
            Some(position) => self.lifted[position].is_pattern |= is_pattern,
            None => self.lifted.push(SessionValue { is_pattern, ..SessionValue::of(expression) }),
        }
    }

    fn operands(&mut self, expression: &mut Expression) {
        match expression {
            Expression::Unary { operand, .. }
            | Expression::Is { operand, .. }
            | Expression::Cast { operand, .. }
            | Expression::ConvertUsing { operand, .. }
            | Expression::Collate { operand, .. } => self.value(operand),
            Expression::Binary { left, right, .. } => self.all([&mut **left, &mut **right]),
            Expression::And(operands) | Expression::Or(operands) | Expression::Row(operands) => self.all(operands),
            Expression::Between { operand, low, high, .. } => self.all([&mut **operand, &mut **low, &mut **high]),
            Expression::InList { operand, list, .. } => {
                self.value(operand);
                if let InList::Expressions(members) = list {
                    self.all(members);
                }
            }
            // The escape character must be a literal.
            Expression::Like { operand, pattern, .. } => {
                self.value(operand);
                self.value_as(pattern, true);
            }
            Expression::Case(case) => {
                self.all(&mut case.operand);
                for branch in &mut case.branches {
                    self.all([&mut branch.when, &mut branch.value]);
                }
                self.all(&mut case.otherwise);
            }
            Expression::Function(call) => {
                self.all(&mut call.arguments);
                self.order(&mut call.order);
                let window = call.over.iter_mut().filter_map(|over| over.definition_mut());
                self.all(window.flat_map(|window| window.expressions_mut()));
                if !self.finds_assigned {
                    call.add_settings();
                }
                self.all(&mut call.settings);
            }
            Expression::Trim { removed, operand, .. } => {
                self.all(removed.as_deref_mut());
                self.value(operand);
            }
            Expression::AssignUserVariable { value, .. } => self.value(value),
            Expression::Quantified { operand, query, .. } => {
                self.value(operand);
                self.select(query);
            }
            Expression::Subquery(query) | Expression::Exists(query) => self.select(query),
            Expression::Literal(_)
            | Expression::Parameter(_)
            | Expression::Column(_)
            | Expression::UserVariable(_)
            | Expression::SystemVariable(_)
            | Expression::Default(_)
            | Expression::InsertedValue(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// Replaces user variables and calls of NOW(), but nothing in calls of SLEEP().
    fn lift(text: &str, first: u32) -> (Statement, Vec<String>) {
        let mut statement = parse(text.as_bytes()).expect("the statement is correct").statement;
        let lifting = |expression: &Expression| match expression {
            Expression::UserVariable(_) => Lifting::Whole,
            Expression::Function(call) if call.name == "NOW" => Lifting::Whole,
            Expression::Function(call) if call.name == "SLEEP" => Lifting::Nothing,
            _ => Lifting::Operands,
        };
        let lifted = lift_session_values(&mut statement, ParameterNumber(first), &lifting);
        let shown = lifted.iter().map(|value| match &value.expression {
            Expression::UserVariable(name) if value.is_pattern => format!("LIKE @{name}"),
            Expression::UserVariable(name) => format!("@{name}"),
            Expression::Function(call) => format!("{}()", call.name),
            other => panic!("{other:?} is no session value"),
        });
        (statement, shown.collect())
    }

    #[test]
    fn a_session_value_is_lifted_wherever_an_expression_may_be() {
        for (text, lifted) in [
            ("SELECT @a, f(NOW(), @b) FROM t", &["@a", "NOW()", "@b"][..]),
            (
                "SELECT -@a + 1, CAST(@b AS CHAR), @c COLLATE utf8mb4_bin, TRIM(@d FROM @e)",
                &["@a", "@b", "@c", "@d", "@e"],
            ),
            ("SELECT CASE @a WHEN @b THEN @c ELSE @d END, (@e, 1) = (2, @f)", &["@a", "@b", "@c", "@d", "@e", "@f"]),
            ("SELECT a FROM t WHERE @a AND NOT (b IN (1, @b) OR @c IS NULL)", &["@a", "@b", "@c"]),
            ("SELECT a FROM t WHERE a BETWEEN @a AND @b AND s LIKE @c ESCAPE '|'", &["@a", "@b", "LIKE @c"]),
            ("SELECT a AS x FROM t HAVING x > @a ORDER BY x + @b, @c", &["@a", "@b", "@c"]),
            ("INSERT INTO t VALUES (@a, 1), (2, @b) ON DUPLICATE KEY UPDATE a = @c", &["@a", "@b", "@c"]),
            ("INSERT INTO t SELECT @a FROM u WHERE b = @b", &["@a", "@b"]),
            ("INSERT INTO t VALUES (1) RETURNING a + @a", &["@a"]),
            ("UPDATE t SET a = a + @a WHERE b = @b ORDER BY c - @c", &["@a", "@b", "@c"]),
            ("DELETE FROM t WHERE b = NOW() ORDER BY c - @c", &["NOW()", "@c"]),
        ] {
            assert_eq!(lift(text, 0).1, lifted, "{text}");
        }
    }

    #[test]
    fn equal_session_values_share_one_parameter_after_those_of_the_statement() {
        let (lifted, values) = lift("SELECT @a + @b FROM t WHERE s LIKE @a AND c = ?", 1);
        assert_eq!(values, ["LIKE @a", "@b"]);
        let expected = parse(b"SELECT @a + @b FROM t WHERE s LIKE @a AND c = ?").expect("it is correct").statement;
        assert_ne!(lifted, expected);
        let Statement::Select(select) = lifted else { panic!("a query is a query") };
        let Some(Expression::And(conditions)) = select.filter else { panic!("it has two conditions") };
        let Expression::Like { pattern, .. } = &conditions[0] else { panic!("the first is LIKE") };
        assert_eq!(**pattern, Expression::Parameter(ParameterNumber(1)));
    }

    #[test]
    fn refused_values_and_values_beyond_the_maximum_stay_in_the_statement() {
        for text in ["SELECT SLEEP(@a)", "SELECT 1", "SET @a = @b", "DO @a"] {
            assert!(lift(text, 0).1.is_empty(), "{text}");
        }
        assert_eq!(lift("SELECT @a := @b + @A, @c", 0).1, ["@b", "@A", "@c"]);
        assert_eq!(lift("SELECT @a, @b, @a", PARAMETERS_MAX - 1).1, ["@a"]);
        assert!(lift("SELECT @a", PARAMETERS_MAX).1.is_empty());
    }
}
