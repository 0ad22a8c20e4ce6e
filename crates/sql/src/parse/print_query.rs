//! Queries as text. A view keeps its query in this form.

use junctor_model::quoted_name::quoted_name;

use super::expression::{Expression, FunctionCall};
use super::print::Printer;
use super::query::{DerivedSource, DerivedTable, FromItem, JoinCondition, JoinKind, SetOperator};
use super::statement::{IndexHint, IndexHintKind, Limit, LimitValue, ObjectName, OrderItem, Select, SelectItem};
use super::window::{FrameBound, Over, WindowDefinition};

/// The query as text. Tables without a database get `database`, if there is one. `None` if the query has a
/// part that no stored query may contain.
pub fn query_text(select: &Select, database: Option<&str>) -> Option<String> {
    let mut printer = Printer { out: String::new(), is_query: true, database };
    printer.select(select)?;
    Some(printer.out)
}

impl Printer<'_> {
    /// A query in brackets.
    pub(super) fn bracketed(&mut self, select: &Select) -> Option<()> {
        self.text("(");
        self.select(select)?;
        self.text(")");
        Some(())
    }

    fn select(&mut self, select: &Select) -> Option<()> {
        if !select.into.is_none() || !select.locks.is_empty() || select.calc_found_rows {
            return None;
        }
        for (position, table) in select.with.iter().enumerate() {
            self.text(match (position, table.recursive) {
                (0, true) => "with recursive ",
                (0, false) => "with ",
                _ => ",",
            });
            self.text(&quoted_name(&table.name));
            self.names(&table.columns);
            self.text(" as ");
            self.bracketed(&table.query)?;
        }
        if !select.with.is_empty() {
            self.text(" ");
        }
        match operation_of(select) {
            Some(source) => self.operation(source)?,
            None => self.plain(select)?,
        }
        self.order(" order by ", &select.order_by)?;
        self.limit(select.limit)
    }

    /// The operands of a set operation, VALUES, or a query with clauses after its brackets.
    fn operation(&mut self, source: &DerivedSource) -> Option<()> {
        match source {
            DerivedSource::Select(query) => self.bracketed(query),
            DerivedSource::Set { first, rest } => {
                self.bracketed(first)?;
                for operand in rest {
                    self.text(match operand.operator {
                        SetOperator::Union => " union ",
                        SetOperator::Intersect => " intersect ",
                        SetOperator::Except => " except ",
                    });
                    if operand.all {
                        self.text("all ");
                    }
                    self.bracketed(&operand.query)?;
                }
                Some(())
            }
            DerivedSource::Values(rows) => {
                for (position, row) in rows.iter().enumerate() {
                    let before = if position == 0 { "values row(" } else { ",row(" };
                    self.all((before, ",", ")"), row)?;
                }
                Some(())
            }
            DerivedSource::JsonTable(_) => None,
        }
    }

    fn plain(&mut self, select: &Select) -> Option<()> {
        self.text("select ");
        if select.distinct {
            self.text("distinct ");
        }
        if select.keeps_order {
            self.text("straight_join ");
        }
        for (position, item) in select.projection.iter().enumerate() {
            if position > 0 {
                self.text(",");
            }
            self.item(item)?;
        }
        if let Some(from) = &select.from {
            self.text(" from ");
            self.from(from)?;
        }
        if let Some(filter) = &select.filter {
            self.all((" where ", "", ""), [filter])?;
        }
        if !select.group_by.is_empty() {
            self.all((" group by ", ",", ""), &select.group_by)?;
        }
        if select.with_rollup {
            self.text(" with rollup");
        }
        if let Some(having) = &select.having {
            self.all((" having ", "", ""), [having])?;
        }
        for (position, window) in select.windows.iter().enumerate() {
            self.text(if position == 0 { " window " } else { "," });
            self.text(&quoted_name(&window.name));
            self.text(" as ");
            self.window(&window.definition)?;
        }
        Some(())
    }

    /// A call of a window function.
    pub(super) fn window_function(&mut self, call: &FunctionCall) -> Option<()> {
        let plain = FunctionCall { over: None, ..call.clone() };
        match plain.is_aggregate() {
            true => self.aggregate(&plain)?,
            false => {
                self.text(&call.name.to_ascii_lowercase());
                self.all(("(", ",", ")"), &call.arguments)?;
            }
        }
        self.text(" over ");
        match call.over.as_deref()? {
            Over::Named(name) => {
                self.text(&quoted_name(name));
                Some(())
            }
            Over::Window(definition) => self.window(definition),
        }
    }

    fn window(&mut self, definition: &WindowDefinition) -> Option<()> {
        self.text("(");
        if let Some(base) = &definition.base {
            self.text(&quoted_name(base));
        }
        if !definition.partition.is_empty() {
            self.all((" partition by ", ",", ""), &definition.partition)?;
        }
        self.order(" order by ", &definition.order)?;
        if let Some(frame) = &definition.frame {
            self.text(if frame.is_range { " range between " } else { " rows between " });
            self.bound(&frame.start)?;
            self.text(" and ");
            self.bound(&frame.end)?;
        }
        self.text(")");
        Some(())
    }

    fn bound(&mut self, bound: &FrameBound) -> Option<()> {
        match bound {
            FrameBound::UnboundedPreceding => self.text("unbounded preceding"),
            FrameBound::CurrentRow => self.text("current row"),
            FrameBound::UnboundedFollowing => self.text("unbounded following"),
            FrameBound::Preceding(distance) => self.all(("", "", " preceding"), [distance])?,
            FrameBound::Following(distance) => self.all(("", "", " following"), [distance])?,
        }
        Some(())
    }

    fn item(&mut self, item: &SelectItem) -> Option<()> {
        match item {
            SelectItem::All(None) => self.text("*"),
            SelectItem::All(Some(table)) => {
                self.object(table, false);
                self.text(".*");
            }
            SelectItem::Expression { expression, alias, text } => {
                self.expression(expression)?;
                let name = match (alias, expression) {
                    (Some(alias), _) => alias,
                    (None, Expression::Column(reference)) => &reference.name,
                    (None, _) => text,
                };
                self.text(" AS ");
                self.text(&quoted_name(name));
            }
        }
        Some(())
    }

    fn from(&mut self, from: &FromItem) -> Option<()> {
        match from {
            FromItem::Table(reference) => {
                self.object(&reference.name, true);
                if let Some(alias) = &reference.alias {
                    self.text(" ");
                    self.text(&quoted_name(alias));
                }
                reference.index_hints.iter().for_each(|hint| self.hint(hint));
                Some(())
            }
            FromItem::Derived(derived) => self.derived(derived),
            FromItem::Join(join) => {
                self.text("(");
                self.from(&join.left)?;
                let natural = if join.condition == JoinCondition::Natural { " natural" } else { "" };
                self.text(natural);
                self.text(match join.kind {
                    JoinKind::Inner => " join ",
                    JoinKind::Straight => " straight_join ",
                    JoinKind::Left => " left join ",
                    JoinKind::Right => " right join ",
                });
                self.from(&join.right)?;
                match &join.condition {
                    JoinCondition::On(condition) => self.all((" on(", "", ")"), [condition])?,
                    JoinCondition::Using(columns) => {
                        self.text(" using ");
                        self.names(columns);
                    }
                    JoinCondition::Always | JoinCondition::Natural => {}
                }
                self.text(")");
                Some(())
            }
        }
    }

    fn derived(&mut self, derived: &DerivedTable) -> Option<()> {
        self.text(if derived.lateral { "lateral (" } else { "(" });
        match &derived.source {
            DerivedSource::Select(query) => self.select(query)?,
            source => self.operation(source)?,
        }
        self.text(") ");
        self.text(&quoted_name(derived.alias.as_deref()?));
        self.names(&derived.columns);
        Some(())
    }

    fn hint(&mut self, hint: &IndexHint) {
        self.text(match hint.kind {
            IndexHintKind::Use => " use index ",
            IndexHintKind::Force => " force index ",
            IndexHintKind::Ignore => " ignore index ",
        });
        let names: Vec<String> = hint.indexes.iter().map(|name| quoted_name(name)).collect();
        self.text(&format!("({})", names.join(",")));
    }

    fn object(&mut self, name: &ObjectName, is_table: bool) {
        if let Some(database) = name.database.as_deref().or(self.database.filter(|_| is_table)) {
            self.text(&quoted_name(database));
            self.text(".");
        }
        self.text(&quoted_name(&name.name));
    }

    /// Names in brackets, if there are any.
    fn names(&mut self, names: &[String]) {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| quoted_name(name)).collect();
            self.text(&format!("({})", names.join(",")));
        }
    }

    fn order(&mut self, before: &str, order_by: &[OrderItem]) -> Option<()> {
        for (position, item) in order_by.iter().enumerate() {
            self.text(if position == 0 { before } else { "," });
            self.expression(&item.expression)?;
            if item.descending {
                self.text(" desc");
            }
        }
        Some(())
    }

    fn limit(&mut self, limit: Option<Limit>) -> Option<()> {
        let Some(limit) = limit else { return Some(()) };
        let rows = |value: LimitValue| match value {
            LimitValue::Rows(rows) => Some(rows),
            LimitValue::Parameter(_) => None,
        };
        self.text(" limit ");
        if let Some(offset) = limit.offset {
            let offset = rows(offset)?;
            self.text(&format!("{offset},"));
        }
        let count = rows(limit.count)?;
        self.text(&count.to_string());
        Some(())
    }

    /// A call of an aggregate.
    pub(super) fn aggregate(&mut self, call: &FunctionCall) -> Option<()> {
        self.text(&call.name.to_ascii_lowercase());
        self.text("(");
        if call.distinct {
            self.text("distinct ");
        }
        if call.star {
            self.text("*)");
            return Some(());
        }
        self.all(("", ",", ""), &call.arguments)?;
        self.order(" order by ", &call.order)?;
        if let Some(separator) = &call.separator {
            self.text(" separator ");
            self.quoted(std::str::from_utf8(separator).ok()?);
        }
        self.text(")");
        Some(())
    }
}

/// The source of the query that the parser made for a set operation, VALUES, or a query in brackets.
fn operation_of(select: &Select) -> Option<&DerivedSource> {
    let is_all = matches!(&select.projection[..], [SelectItem::All(None)]);
    match &select.from {
        Some(FromItem::Derived(derived)) if is_all && derived.alias.is_none() => Some(&derived.source),
        _ => None,
    }
}
