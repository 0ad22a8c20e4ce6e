//! UPDATE and DELETE whose rows a query finds: those of several tables, and those with subqueries.

use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_model::schema::TableLayout;
use junctor_signals::program::WriteProgram;

use super::tree::{ModifyRequest, ModifyTree, TreePlan, plan_modify_tree};
use super::{ChangeKind, FindVirtual, Plan, Planned};
use crate::access::TableAccess;
use crate::bind::{Environment, message};
use crate::parse::expression::Expression;
use crate::parse::query::{DerivedSource, FromItem, JoinCondition};
use crate::parse::statement::{Assignment, Delete, Limit, Modify, Select, SelectItem, Update};

/// An UPDATE or DELETE whose rows a query finds.
#[derive(Debug)]
pub struct ModifyPlan {
    /// Whether rows are updated or deleted.
    pub kind: ChangeKind,
    /// IGNORE: a row whose change would violate a key stays as it is, with a warning.
    pub ignore: bool,
    /// The query. Its rows have the keys and parameters of all targets.
    pub query: Arc<TreePlan>,
    /// The tables, in the order in which they are written.
    pub targets: Vec<ModifyTarget>,
}

/// The changes of one table.
#[derive(Debug)]
pub struct ModifyTarget {
    /// The table's position in FROM.
    pub relation: usize,
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// The alias, or the name.
    pub alias: Box<str>,
    /// The write of a row by primary key. Its parameters are those of the statement, then those of the row.
    pub program: Arc<WriteProgram>,
    /// Position of the table's first value in a row of the query: the columns of
    /// [`super::row_key_columns`], then the parameters. NULL keys stand for no row.
    pub first_value: usize,
    /// Number of columns that locate the row.
    pub key_count: usize,
    /// Number of parameters.
    pub parameter_count: usize,
    /// Whether rows are written one by one, because one may take the key of another, or IGNORE may skip it.
    pub one_by_one: bool,
}

/// Plans an UPDATE or DELETE of several tables, or with WITH. Errors: those of binding; 1093, 1109, 1221,
/// 1288.
pub(super) fn plan_modify(
    environment: &Environment<'_>,
    modify: &Modify,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned> {
    let is_single = matches!(modify.from, FromItem::Table(_)) && modify.targets.is_empty();
    let statement = if modify.is_delete { "DELETE" } else { "UPDATE" };
    let usage = |clause: &str| {
        let text = format!("Incorrect usage of {statement} and {clause}");
        Err(Error::new(ErrorCode::WrongUsage, text))
    };
    if !is_single && !modify.order_by.is_empty() {
        return usage("ORDER BY");
    }
    if !is_single && modify.limit.is_some() {
        return usage("LIMIT");
    }
    let select = Select {
        with: modify.with.clone(),
        from: Some(modify.from.clone()),
        filter: modify.filter.clone(),
        order_by: modify.order_by.clone(),
        limit: modify.limit.map(|count| Limit { count, offset: None }),
        keeps_order: modify.keeps_order,
        join_orders: modify.join_orders.clone(),
        ..Select::default()
    };
    let request = ModifyRequest {
        is_delete: modify.is_delete,
        ignore: modify.ignore,
        is_single,
        select: &select,
        targets: &modify.targets,
        assignments: &modify.assignments,
    };
    plan_request(environment, &request, find_virtual)
}

/// Plans an UPDATE of one table with subqueries, through a view, or with assignments of user variables;
/// `None` for others.
pub(super) fn plan_update_by_query(
    environment: &Environment<'_>,
    update: &Update,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned>> {
    let mut written = update.filter.iter().chain(update.assignments.iter().map(|assignment| &assignment.value));
    let needs = written.any(needs_query)
        || update.order_by.iter().any(|item| needs_query(&item.expression))
        || environment.view(&update.table.name).is_some();
    if !needs {
        return Ok(None);
    }
    let select = Select {
        from: Some(FromItem::Table(update.table.clone())),
        filter: update.filter.clone(),
        order_by: update.order_by.clone(),
        limit: update.limit.map(|count| Limit { count, offset: None }),
        ..Select::default()
    };
    let request = ModifyRequest {
        is_delete: false,
        ignore: update.ignore,
        is_single: true,
        select: &select,
        targets: &[],
        assignments: &update.assignments,
    };
    plan_request(environment, &request, find_virtual).map(Some)
}

/// Plans a DELETE of one table with subqueries, through a view, or with assignments of user variables; `None`
/// for others. Error: 1235 for RETURNING.
pub(super) fn plan_delete_by_query(
    environment: &Environment<'_>,
    delete: &Delete,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned>> {
    let needs = delete.filter.as_ref().is_some_and(needs_query)
        || delete.order_by.iter().any(|item| needs_query(&item.expression))
        || environment.view(&delete.table.name).is_some();
    if !needs {
        return Ok(None);
    }
    if !delete.returning.is_empty() {
        let what = "RETURNING of a DELETE with subqueries, through a view, or with a user variable that it assigns";
        return Err(Error::not_supported(what));
    }
    let select = Select {
        from: Some(FromItem::Table(delete.table.clone())),
        filter: delete.filter.clone(),
        order_by: delete.order_by.clone(),
        limit: delete.limit.map(|count| Limit { count, offset: None }),
        ..Select::default()
    };
    let request = ModifyRequest {
        is_delete: true,
        ignore: delete.ignore,
        is_single: true,
        select: &select,
        targets: &[],
        assignments: &[],
    };
    plan_request(environment, &request, find_virtual).map(Some)
}

/// Whether a tree of operators must evaluate an expression.
fn needs_query(expression: &Expression) -> bool {
    expression.needs_tree() || expression.is_stateful()
}

fn plan_request(
    environment: &Environment<'_>,
    request: &ModifyRequest<'_>,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned> {
    // An UPDATE of one table reads others as its isolation level says. All other statements lock what they
    // read.
    let depends_on_level = request.is_single && !request.is_delete;
    let reading = Environment {
        is_strict: !request.ignore && !environment.modes.is_lenient,
        ignores: request.ignore,
        locks_reads: if depends_on_level { environment.locks_sources } else { true },
        ..*environment
    };
    let Planned { plan: ModifyTree { tree, targets }, is_volatile } =
        plan_modify_tree(&reading, request, find_virtual)?;
    let changed: Vec<TableId> = targets.iter().map(|target| target.table.definition.id).collect();
    let common: Vec<&str> = request.select.with.iter().map(|table| table.name.as_str()).collect();
    // Planning has noted what the subqueries read.
    let unnoted = Environment { access: None, ..*environment };
    let check = TargetCheck { environment: &unnoted, targets: &changed, name: None, common: &common };
    check.expressions(request.select.filter.iter())?;
    check.expressions(request.assignments.iter().map(|assignment: &Assignment| &assignment.value))?;
    check.expressions(request.select.order_by.iter().map(|item| &item.expression))?;
    if let Some(from) = &request.select.from {
        check.conditions(from)?;
    }
    let reads_others = tree.tables.len() > 1;
    let plan = ModifyPlan {
        kind: if request.is_delete { ChangeKind::Delete } else { ChangeKind::Update },
        ignore: request.ignore,
        query: tree,
        targets,
    };
    let is_volatile = is_volatile || depends_on_level && reads_others;
    Ok(Planned { plan: Plan::Modify(Arc::new(plan)), is_volatile })
}

/// Finds subqueries that read a table which the statement changes. The rows of a derived table are computed
/// before the changes, so such tables may do so.
pub(super) struct TargetCheck<'c> {
    pub environment: &'c Environment<'c>,
    pub targets: &'c [TableId],
    /// The name under which the statement changes its only table. Under another one, subqueries may read the
    /// table. `None` if they never may.
    pub name: Option<&'c str>,
    /// The names of WITH.
    pub common: &'c [&'c str],
}

impl TargetCheck<'_> {
    /// Checks the subqueries of expressions. Error: 1093.
    pub fn expressions<'e>(&self, expressions: impl Iterator<Item = &'e Expression>) -> Result<()> {
        for expression in expressions {
            let mut queries: Vec<&Select> = Vec::new();
            expression.visit(&mut |inner| match inner {
                Expression::Subquery(query) | Expression::Exists(query) | Expression::Quantified { query, .. } => {
                    queries.push(query);
                }
                _ => {}
            });
            queries.into_iter().try_for_each(|query| self.query(query))?;
        }
        Ok(())
    }

    /// Checks the subqueries in the conditions of joins.
    fn conditions(&self, from: &FromItem) -> Result<()> {
        let FromItem::Join(join) = from else { return Ok(()) };
        self.conditions(&join.left)?;
        self.conditions(&join.right)?;
        match &join.condition {
            JoinCondition::On(condition) => self.expressions(std::iter::once(condition)),
            _ => Ok(()),
        }
    }

    fn query(&self, query: &Select) -> Result<()> {
        if let Some(from) = &query.from {
            self.tables(from)?;
        }
        let items = query.projection.iter().filter_map(|item| match item {
            SelectItem::Expression { expression, .. } => Some(expression),
            SelectItem::All(_) => None,
        });
        self.expressions(items)?;
        self.expressions(query.filter.iter().chain(&query.having).chain(&query.group_by))?;
        self.expressions(query.order_by.iter().map(|item| &item.expression))
    }

    fn tables(&self, from: &FromItem) -> Result<()> {
        match from {
            FromItem::Table(reference) => {
                let name = &reference.name;
                let is_common = |common: &&str| common.eq_ignore_ascii_case(&name.name);
                if name.database.is_none() && self.common.iter().any(is_common) {
                    return Ok(());
                }
                let Ok(table) = self.environment.table(name, TableAccess::Read) else { return Ok(()) };
                let shown = reference.alias.as_deref().unwrap_or(&name.name);
                let is_target = self.targets.contains(&table.definition.id);
                match is_target && self.name.is_none_or(|target| target == shown) {
                    true => Err(message::target_in_subquery(shown)),
                    false => Ok(()),
                }
            }
            FromItem::Join(join) => {
                self.tables(&join.left)?;
                self.tables(&join.right)?;
                match &join.condition {
                    JoinCondition::On(condition) => self.expressions(std::iter::once(condition)),
                    _ => Ok(()),
                }
            }
            // The operands of a set operation are not derived tables.
            FromItem::Derived(derived) if derived.alias.is_none() => match &derived.source {
                DerivedSource::Select(query) => self.query(query),
                DerivedSource::Set { first, rest } => {
                    self.query(first)?;
                    rest.iter().try_for_each(|operand| self.query(&operand.query))
                }
                DerivedSource::Values(_) | DerivedSource::JsonTable(_) => Ok(()),
            },
            FromItem::Derived(_) => Ok(()),
        }
    }
}
