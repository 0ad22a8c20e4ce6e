//! Walks through expressions and queries, with and without changes.

use junctor_expression::function;

use super::expression::{CaseBranch, Expression, InList};
use super::query::{DerivedSource, FromItem, JoinCondition};
use super::statement::{ObjectName, Select, SelectItem, TableReference};

impl Expression {
    /// Calls `visit` for this expression and every expression in it, also in subqueries.
    pub fn visit_deep<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(self);
        match self {
            Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } => {
                query.visit_deep(visit);
            }
            _ => {}
        }
        self.for_each_operand(&mut |operand| operand.visit_deep(visit));
    }

    /// Whether an evaluation reads or changes the state of the session, also in subqueries: it assigns a user
    /// variable, or reads one that the statement assigns.
    pub fn is_stateful(&self) -> bool {
        let mut is_stateful = false;
        self.visit_deep(&mut |inner| is_stateful |= inner.is_stateful_itself());
        is_stateful
    }

    fn is_stateful_itself(&self) -> bool {
        match self {
            Expression::AssignUserVariable { .. } => true,
            Expression::Function(call) => {
                call.database.is_none() && function::find(&call.name).is_some_and(|known| known.is_stateful())
            }
            _ => false,
        }
    }

    /// Calls `replace` for this expression and, unless it returns true, for the operands. Subqueries are not
    /// entered.
    pub fn replace(&mut self, replace: &mut dyn FnMut(&mut Expression) -> bool) {
        if !replace(self) {
            self.for_each_operand_mut(&mut |operand| operand.replace(replace));
        }
    }

    /// Calls `visit` for each direct operand. Subqueries are not entered.
    pub fn for_each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        match self {
            Expression::Unary { operand, .. }
            | Expression::Is { operand, .. }
            | Expression::Cast { operand, .. }
            | Expression::ConvertUsing { operand, .. }
            | Expression::Collate { operand, .. }
            | Expression::AssignUserVariable { value: operand, .. }
            | Expression::Quantified { operand, .. } => visit(operand),
            Expression::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Expression::And(operands) | Expression::Or(operands) | Expression::Row(operands) => {
                operands.iter_mut().for_each(visit);
            }
            Expression::Between { operand, low, high, .. } => {
                [operand, low, high].into_iter().for_each(|operand| visit(operand));
            }
            Expression::InList { operand, list, .. } => {
                visit(operand);
                if let InList::Expressions(members) = list {
                    members.iter_mut().for_each(visit);
                }
            }
            Expression::Like { operand, pattern, escape, .. } => {
                visit(operand);
                visit(pattern);
                if let Some(escape) = escape {
                    visit(escape);
                }
            }
            Expression::Case(case) => {
                case.operand.iter_mut().for_each(&mut *visit);
                for CaseBranch { when, value } in &mut case.branches {
                    visit(when);
                    visit(value);
                }
                case.otherwise.iter_mut().for_each(visit);
            }
            Expression::Function(call) => {
                call.arguments.iter_mut().for_each(&mut *visit);
                call.settings.iter_mut().for_each(&mut *visit);
                call.order.iter_mut().for_each(|item| visit(&mut item.expression));
                let window = call.over.iter_mut().filter_map(|over| over.definition_mut());
                window.flat_map(|window| window.expressions_mut()).for_each(visit);
            }
            Expression::Trim { removed, operand, .. } => {
                if let Some(removed) = removed {
                    visit(removed);
                }
                visit(operand);
            }
            Expression::Subquery(_)
            | Expression::Exists(_)
            | Expression::Literal(_)
            | Expression::Parameter(_)
            | Expression::Column(_)
            | Expression::UserVariable(_)
            | Expression::SystemVariable(_)
            | Expression::Default(_)
            | Expression::InsertedValue(_) => {}
        }
    }
}

impl Select {
    /// Whether an evaluation of one of its expressions reads or changes the state of the session.
    pub fn is_stateful(&self) -> bool {
        let mut is_stateful = false;
        self.visit_deep(&mut |inner| is_stateful |= inner.is_stateful_itself());
        is_stateful
    }

    /// Calls `visit` for every expression of the query, also in queries inside it.
    pub fn visit_deep<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        self.with.iter().for_each(|table| table.query.visit_deep(visit));
        for item in &self.projection {
            if let SelectItem::Expression { expression, .. } = item {
                expression.visit_deep(visit);
            }
        }
        if let Some(from) = &self.from {
            from.visit_deep(visit);
        }
        let conditions = self.filter.iter().chain(&self.group_by).chain(&self.having);
        conditions.for_each(|condition| condition.visit_deep(visit));
        self.order_by.iter().for_each(|item| item.expression.visit_deep(visit));
        let windows = self.windows.iter().flat_map(|window| window.definition.expressions());
        windows.for_each(|expression| expression.visit_deep(visit));
    }
}

impl FromItem {
    /// Calls `visit` for every expression of the conditions and queries.
    pub fn visit_deep<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match self {
            FromItem::Table(_) => {}
            FromItem::Join(join) => {
                join.left.visit_deep(visit);
                join.right.visit_deep(visit);
                if let JoinCondition::On(condition) = &join.condition {
                    condition.visit_deep(visit);
                }
            }
            FromItem::Derived(derived) => match &derived.source {
                DerivedSource::Select(query) => query.visit_deep(visit),
                DerivedSource::Set { first, rest } => {
                    first.visit_deep(visit);
                    rest.iter().for_each(|operand| operand.query.visit_deep(visit));
                }
                DerivedSource::JsonTable(table) => table.document.visit_deep(visit),
                DerivedSource::Values(rows) => rows.iter().flatten().for_each(|value| value.visit_deep(visit)),
            },
        }
    }
}

impl Select {
    /// Calls `visit` for every stored table that the query names, also in queries inside it. `common` are the
    /// names of WITH that are visible, which are not stored tables.
    pub fn for_each_table_mut(&mut self, common: &mut Vec<String>, visit: &mut dyn FnMut(&mut ObjectName)) {
        let before = common.len();
        for table in &mut self.with {
            if table.recursive {
                common.push(table.name.clone());
            }
            table.query.for_each_table_mut(common, visit);
            common.push(table.name.clone());
        }
        if let Some(from) = &mut self.from {
            from.for_each_table_mut(common, visit);
        }
        let items = self.projection.iter_mut().filter_map(|item| match item {
            SelectItem::Expression { expression, .. } => Some(expression),
            SelectItem::All(_) => None,
        });
        let conditions = self.filter.iter_mut().chain(&mut self.group_by).chain(&mut self.having);
        let order = self.order_by.iter_mut().map(|item| &mut item.expression);
        let windows = self.windows.iter_mut().flat_map(|window| window.definition.expressions_mut());
        for expression in items.chain(conditions).chain(order).chain(windows) {
            expression.for_each_table_mut(common, visit);
        }
        common.truncate(before);
    }
}

impl FromItem {
    fn for_each_table_mut(&mut self, common: &mut Vec<String>, visit: &mut dyn FnMut(&mut ObjectName)) {
        match self {
            FromItem::Table(reference) => {
                let name = &mut reference.name;
                let is_common = name.database.is_none() && common.iter().any(|it| it.eq_ignore_ascii_case(&name.name));
                if !is_common {
                    visit(name);
                }
            }
            FromItem::Join(join) => {
                join.left.for_each_table_mut(common, visit);
                join.right.for_each_table_mut(common, visit);
                if let JoinCondition::On(condition) = &mut join.condition {
                    condition.for_each_table_mut(common, visit);
                }
            }
            FromItem::Derived(derived) => match &mut derived.source {
                DerivedSource::Select(query) => query.for_each_table_mut(common, visit),
                DerivedSource::Set { first, rest } => {
                    first.for_each_table_mut(common, visit);
                    rest.iter_mut().for_each(|operand| operand.query.for_each_table_mut(common, visit));
                }
                DerivedSource::Values(rows) => {
                    rows.iter_mut().flatten().for_each(|value| value.for_each_table_mut(common, visit));
                }
                DerivedSource::JsonTable(table) => table.document.for_each_table_mut(common, visit),
            },
        }
    }
}

impl Expression {
    fn for_each_table_mut(&mut self, common: &mut Vec<String>, visit: &mut dyn FnMut(&mut ObjectName)) {
        match self {
            Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } => {
                query.for_each_table_mut(common, visit);
            }
            _ => {}
        }
        self.for_each_operand_mut(&mut |operand| operand.for_each_table_mut(common, visit));
    }
}

impl Select {
    /// Calls `visit` for this query and every query in it, in the order of their SELECTs in the text. A
    /// query that the parser made of a set operation is left out. The second argument is true for the
    /// statement's own query, and for those that its set operations combine.
    pub fn for_each_query_mut(&mut self, is_outermost: bool, visit: &mut dyn FnMut(&mut Select, bool)) {
        self.with.iter_mut().for_each(|table| table.query.for_each_query_mut(false, visit));
        let is_made = matches!(&self.from, Some(FromItem::Derived(derived)) if derived.alias.is_none());
        if !is_made {
            visit(self, is_outermost);
        }
        let items = self.projection.iter_mut().filter_map(|item| match item {
            SelectItem::Expression { expression, .. } => Some(expression),
            SelectItem::All(_) => None,
        });
        items.for_each(|item| item.for_each_query_mut(visit));
        if let Some(from) = &mut self.from {
            from.for_each_query_mut(is_outermost && is_made, visit);
        }
        let conditions = self.filter.iter_mut().chain(&mut self.group_by).chain(&mut self.having);
        let windows = self.windows.iter_mut().flat_map(|window| window.definition.expressions_mut());
        let order = self.order_by.iter_mut().map(|item| &mut item.expression);
        conditions.chain(windows).chain(order).for_each(|expression| expression.for_each_query_mut(visit));
    }
}

impl FromItem {
    fn for_each_query_mut(&mut self, is_outermost: bool, visit: &mut dyn FnMut(&mut Select, bool)) {
        match self {
            FromItem::Table(_) => {}
            FromItem::Join(join) => {
                join.left.for_each_query_mut(false, visit);
                join.right.for_each_query_mut(false, visit);
                if let JoinCondition::On(condition) = &mut join.condition {
                    condition.for_each_query_mut(visit);
                }
            }
            FromItem::Derived(derived) => match &mut derived.source {
                DerivedSource::Select(query) => query.for_each_query_mut(is_outermost, visit),
                DerivedSource::Set { first, rest } => {
                    first.for_each_query_mut(is_outermost, visit);
                    rest.iter_mut().for_each(|operand| operand.query.for_each_query_mut(is_outermost, visit));
                }
                DerivedSource::Values(rows) => {
                    rows.iter_mut().flatten().for_each(|value| value.for_each_query_mut(visit));
                }
                DerivedSource::JsonTable(table) => table.document.for_each_query_mut(visit),
            },
        }
    }

    /// Calls `visit` for the name of each member, and the table with that name if it is stored.
    pub fn for_each_member_mut(&mut self, visit: &mut dyn FnMut(&str, Option<&mut TableReference>)) {
        match self {
            FromItem::Table(reference) => {
                let name = reference.alias.clone().unwrap_or_else(|| reference.name.name.clone());
                visit(&name, Some(reference));
            }
            FromItem::Derived(derived) => visit(derived.alias.as_deref().unwrap_or_default(), None),
            FromItem::Join(join) => {
                join.left.for_each_member_mut(visit);
                join.right.for_each_member_mut(visit);
            }
        }
    }
}

impl Expression {
    fn for_each_query_mut(&mut self, visit: &mut dyn FnMut(&mut Select, bool)) {
        match self {
            Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } => {
                query.for_each_query_mut(false, visit);
            }
            _ => {}
        }
        self.for_each_operand_mut(&mut |operand| operand.for_each_query_mut(visit));
    }
}
