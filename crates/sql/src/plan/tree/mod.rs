//! Plans of queries that a tree of batch operators executes: queries of several tables, with groups,
//! subqueries or set operations.
//!
//! [`block`] plans a query block, [`from`] its FROM, [`join`] the places of conditions, [`join_key`] keys,
//! [`cost`] the order of joins, [`decorrelate`] subqueries that serve all outer rows, [`selectivity`] and
//! [`histogram_share`] estimates of rows, [`factor`] disjunctions, [`group`] aggregates, [`partial`] those of
//! the partitions, [`pushed`] conditions that queries in FROM test, [`window`] window functions, [`stateful`]
//! values that change user variables, [`subquery`] subqueries, [`set`] set operations, [`recursion`] WITH
//! RECURSIVE, [`analyze`] ANALYZE TABLE, [`json_table`] JSON_TABLE, [`leaf`] the reads of tables, [`work`]
//! estimates of planned operators, and [`modify`] the rows of UPDATE and DELETE.

mod analyze;
mod block;
mod check;
mod cost;
mod decorrelate;
mod equality_class;
mod factor;
mod from;
mod group;
mod histogram_share;
mod join;
mod join_key;
mod join_order;
mod json_table;
mod key_filter;
mod leaf;
mod lookup;
mod modify;
mod partial;
mod pushed;
mod recursion;
mod selectivity;
mod semijoin;
mod set;
mod stateful;
mod subquery;
mod view;
mod window;
mod work;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use junctor_expression::{CompareOperator, Expression};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::TableId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableLayout;
use junctor_signals::program::SortKey;

use super::explain::{ExplainRequest, text_columns};
use super::operand::LimitTemplate;
use super::statement::{Planned, QueryPlan};
use super::virtual_table::{FindVirtual, VirtualRead};
use crate::access::PlanRights;
use crate::bind::Environment;
use crate::bind::group_function::GroupFunction;
use crate::parse::query::SetOperator;
use crate::parse::statement::Select;
use crate::result::ResultHeader;
use crate::statistics::TableProfile;

pub(super) use analyze::plan_analyze;
pub use analyze::{AnalyzePlan, DropHistogramPlan, RowSample};
use block::CommonTables;
use decorrelate::GroupedDepth;
pub use json_table::{JsonOtherwise, JsonSource, JsonTablePlan, JsonValue};
pub(crate) use leaf::leaf_parameters;
pub(super) use modify::{ModifyRequest, ModifyTree, plan_modify_tree};
use pushed::{Passage, QueryDepth};
pub use recursion::RecursionPlan;
pub use view::PlannedView;
pub(crate) use view::plan_view;
pub(super) use view::{checks_of, merged_target, stored_number};
pub use window::{StepBound, StepFunction, WindowPlan, WindowStep};

/// A query that a tree of operators executes.
#[derive(Debug)]
pub struct TreePlan {
    /// The rights that the statement needs.
    pub rights: PlanRights,
    /// The columns of the result.
    pub header: ResultHeader,
    /// The query.
    pub root: Arc<BlockPlan>,
    /// The reads of tables. Operators name them by position.
    pub leaves: Vec<LeafPlan>,
    /// The stored tables that the query reads.
    pub tables: Vec<TreeTable>,
    /// LIMIT and OFFSET of the whole query.
    pub limit: Option<LimitTemplate>,
    /// SQL_CALC_FOUND_ROWS: FOUND_ROWS() ignores LIMIT.
    pub calc_found_rows: bool,
    /// Whether truncation and division by zero are errors, because the statement writes in strict mode.
    pub is_strict: bool,
    /// The number of the statement's parameters.
    pub parameter_count: usize,
    /// Whether the statement is SHOW or DESCRIBE.
    pub is_shown: bool,
    /// EXPLAIN: the result is the operators.
    pub explain: Option<ExplainRequest>,
    /// ANALYZE TABLE, which is planned for the present numbers of rows.
    pub analyzes: bool,
    /// Whether it reads how many warnings and errors the statement before had. They are forgotten when it
    /// starts.
    pub reads_diagnostics: bool,
    /// Estimated duration in nanoseconds of one thread.
    pub cost_ns: f64,
    /// Set when tables have other numbers of rows than those for which the query was planned.
    pub is_outdated: AtomicBool,
    /// The version of all statistics at which those of the plan were last compared with the present ones.
    pub statistics_version: AtomicU64,
}

/// A stored table of a tree.
#[derive(Clone, Debug)]
pub struct TreeTable {
    /// The table.
    pub layout: Arc<TableLayout>,
    /// The alias, or the name.
    pub alias: Box<str>,
    /// Whether its rows are locked.
    pub locks: bool,
    /// The number of rows for which the query was planned; `None` if it was not known.
    pub rows: Option<u64>,
    /// The statistics with which the query was planned.
    pub profile: Option<Arc<TableProfile>>,
}

/// The read of a table: a query of one table whose rows enter a tree.
#[derive(Debug)]
pub struct LeafPlan {
    /// The query of the table.
    pub query: QueryPlan,
    /// The slot of each column of the query; `None` for a column that nothing reads.
    pub slots: Vec<Option<u16>>,
    /// Values of the tree's row that the query has as parameters after those of the statement.
    pub parameters: Vec<Expression>,
    /// Number of lists, one for each part of the keys of a lookup, which are the parameters after these
    /// values.
    pub lists: usize,
    /// Number of filters of joins, which are the last parameters.
    pub key_filters: usize,
    /// Whether the read locks rows.
    pub locks: bool,
    /// The name of the table, for EXPLAIN.
    pub alias: Box<str>,
    /// Estimated number of rows of one read, if it is known.
    pub rows: Option<f64>,
    /// Estimated duration of one read in nanoseconds of one thread; 0 if it is not known.
    pub cost_ns: f64,
}

/// A query block: the operators that make its rows, and the values of a result row.
#[derive(Debug)]
pub struct BlockPlan {
    /// The operators.
    pub root: PlanNode,
    /// Number of parameters and slots of a row.
    pub width: usize,
    /// The values of a result row.
    pub values: Vec<Expression>,
    /// Their description.
    pub columns: Vec<ResultColumn>,
    /// The slots that have values of the outer block's row, with these values.
    pub outer: Vec<(u16, Expression)>,
    /// Estimated number of rows.
    pub rows: f64,
    /// Whether it reads or changes the state of the session.
    pub is_stateful: bool,
    /// The conditions that each value passes; none if this is empty.
    passages: Box<[Passage]>,
}

/// An operator and its inputs.
#[derive(Debug)]
pub enum PlanNode {
    /// One row without values.
    Once,
    /// No row.
    Nothing,
    /// The rows of a leaf.
    Scan(usize),
    /// The result rows of a block: the slot of each value that is read.
    Project(Arc<BlockPlan>, Arc<[(usize, u16)]>),
    /// Rows of VALUES in these slots.
    Values(Arc<[Vec<Expression>]>, Arc<[u16]>),
    /// Rows for which all conditions are true.
    Filter(Box<PlanNode>, Arc<[Expression]>),
    /// Values that are added to each row.
    Compute(Box<PlanNode>, Arc<[(Expression, u16)]>),
    /// The value of a subquery, which is added to each row.
    Apply(Box<PlanNode>, Arc<ApplyPlan>),
    /// A join.
    Join(Box<PlanNode>, Box<PlanNode>, Arc<JoinPlan>),
    /// A join with a query that reads the left row.
    Lateral(Box<PlanNode>, Arc<LateralPlan>),
    /// Groups.
    Aggregate(Box<PlanNode>, Arc<AggregatePlan>),
    /// One of several rows with equal values.
    Distinct(Box<PlanNode>, Arc<[Expression]>),
    /// The rows one by one: each passes all operators above before the next is read.
    Single(Box<PlanNode>),
    /// The rows, after all of them have been read.
    Materialize(Box<PlanNode>),
    /// Rows in order.
    Sort(Box<PlanNode>, Arc<[SortKey]>, Option<LimitTemplate>),
    /// The rows of a window.
    Limit(Box<PlanNode>, LimitTemplate),
    /// The rows of both inputs.
    Concat(Box<PlanNode>, Box<PlanNode>),
    /// Values of window functions, which are added to each row. The rows come in the order of the window.
    Window(Box<PlanNode>, Arc<WindowPlan>),
    /// The rows that JSON_TABLE makes of a document.
    JsonTable(Arc<JsonTablePlan>),
    /// The rows of a recursive query.
    Recursion(Arc<RecursionPlan>),
    /// The rows of the last round of a recursive query: slots of the recursion and of the row.
    WorkTable(Arc<[(u16, u16)]>),
    /// ANALYZE TABLE: the messages about a sample of rows.
    Analyze(Box<PlanNode>, Arc<AnalyzePlan>),
    /// DROP HISTOGRAM: the message about a column.
    DropHistogram(Arc<DropHistogramPlan>),
    /// INTERSECT or EXCEPT of rows with these values.
    Set(Box<PlanNode>, Box<PlanNode>, Arc<SetPlan>),
}

/// The kinds of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinForm {
    /// Pairs of rows.
    Inner,
    /// Pairs, and left rows without a partner.
    Left,
    /// Left rows with a partner.
    Semi,
    /// Left rows without a partner.
    Anti,
    /// Left rows without a partner, where an unknown equality counts as one: NOT IN. The equality is the last
    /// condition.
    NullAwareAnti,
}

/// What NULL equals in a key of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullMatch {
    /// Nothing: `=`.
    Nothing,
    /// NULL: `<=>`.
    Null,
    /// Every value, because an unknown equality counts: NOT IN.
    Anything,
}

/// A join.
#[derive(Debug)]
pub struct JoinPlan {
    /// The kind of join.
    pub form: JoinForm,
    /// Values that are equal in all pairs.
    pub keys: Vec<JoinKey>,
    /// The conditions of a pair, those of the keys too.
    pub conditions: Vec<Expression>,
    /// The conditions that do not follow from equal keys.
    pub others: Vec<Expression>,
    /// The slots of the right rows.
    pub right_slots: Vec<u16>,
    /// The read of the right rows by the keys of left rows.
    pub lookup: Option<JoinLookup>,
    /// The filter of the keys of the right rows that the scan of the left rows gets.
    pub key_filter: Option<JoinKeyFilter>,
    /// Whether the right rows are read before the first left row, because they set user variables or make a
    /// filter of keys.
    pub reads_right_first: bool,
    /// Estimated number of rows.
    pub rows: f64,
    /// Estimated duration up to the last row, in nanoseconds of one thread.
    pub cost_ns: f64,
}

/// A read by the keys of left rows.
#[derive(Debug)]
pub struct JoinLookup {
    /// The leaf.
    pub leaf: usize,
    /// The positions of the keys whose values are the lists of the leaf.
    pub keys: Box<[usize]>,
    /// The number of left rows up to which keys are looked up. For more rows, the whole right side is read.
    pub rows_max: usize,
}

/// The filter of a key of the right rows. The scan of the left rows leaves out those that are not in it.
#[derive(Clone, Copy, Debug)]
pub struct JoinKeyFilter {
    /// The position of the key.
    pub key: usize,
    /// The leaf that scans the left rows.
    pub leaf: usize,
    /// The number of the filter in the leaf.
    pub number: usize,
}

/// Values of the two sides of a join that are equal in all pairs.
#[derive(Clone, Debug)]
pub struct JoinKey {
    /// The value of the left row.
    pub left: Expression,
    /// The value of the right row.
    pub right: Expression,
    /// The collation of text.
    pub collation: CollationId,
    /// What NULL equals.
    pub nulls: NullMatch,
}

impl JoinKey {
    /// The key of a join whose sides change places.
    pub(super) fn swapped(self) -> JoinKey {
        JoinKey { left: self.right, right: self.left, ..self }
    }
}

/// A join with a query that reads the left row.
#[derive(Debug)]
pub struct LateralPlan {
    /// The query.
    pub block: Arc<BlockPlan>,
    /// Its values that are read, and their slots.
    pub slots: Arc<[(usize, u16)]>,
    /// The conditions of a pair.
    pub conditions: Vec<Expression>,
    /// Whether left rows without a partner are kept.
    pub is_outer: bool,
}

/// Groups and aggregates.
#[derive(Debug)]
pub struct AggregatePlan {
    /// The values that are equal in a group, and the slot of each, if it is read.
    pub keys: Vec<(Expression, u16)>,
    /// The aggregates.
    pub functions: Vec<GroupFunction>,
    /// WITH ROLLUP.
    pub rollup: bool,
    /// The calls of GROUPING: the positions of the keys, and the slot of the result.
    pub groupings: Vec<(Vec<usize>, u16)>,
    /// If the partitions have grouped the rows: the slots of the partial states of the functions.
    pub partials: Option<Vec<u16>>,
}

/// INTERSECT or EXCEPT.
#[derive(Debug)]
pub struct SetPlan {
    /// The operation.
    pub operator: SetOperator,
    /// Whether equal rows are counted.
    pub all: bool,
    /// The values of a row.
    pub values: Vec<Expression>,
}

/// A subquery as a value.
#[derive(Debug)]
pub struct ApplyPlan {
    /// The subquery.
    pub block: Arc<BlockPlan>,
    /// Its use.
    pub form: ApplyForm,
    /// The slot of the value.
    pub slot: u16,
    /// The same subquery for all outer rows.
    pub grouped: Option<GroupedSubquery>,
    /// IGNORE: more than one row for a value is NULL with a warning.
    pub ignores: bool,
}

/// A subquery that is executed for all outer rows.
#[derive(Debug)]
pub struct GroupedSubquery {
    /// The groups. Their values are the keys, and then the value of the subquery.
    pub block: Arc<BlockPlan>,
    /// The values of the outer row that are equal to the keys.
    pub keys: Vec<JoinKey>,
    /// The number of executions of the subquery for single values from which on all groups cost less.
    pub runs_max: usize,
    /// The groups of some outer rows.
    pub lookup: Option<GroupLookup>,
}

/// The groups of a subquery for some outer rows, made of the rows that their keys find.
#[derive(Debug)]
pub struct GroupLookup {
    /// The groups, with the values of [`GroupedSubquery::block`].
    pub block: Arc<BlockPlan>,
    /// The leaf that reads the rows.
    pub leaf: usize,
    /// The positions of the keys whose values are the lists of the leaf.
    pub keys: Box<[usize]>,
}

/// The uses of a subquery.
#[derive(Debug)]
pub enum ApplyForm {
    /// The value of the only row.
    Value,
    /// Whether there is a row.
    Exists,
    /// Whether a comparison holds for a row, or for all rows.
    Quantified {
        /// ALL.
        all: bool,
        /// The comparison of the operands with the values of a row, which are in `slots`.
        condition: Expression,
        /// The slots of the values of a row of the subquery.
        slots: Vec<u16>,
        /// IN and NOT IN: the operands and the values of a row, if equal values have equal keys.
        keys: Vec<JoinKey>,
    },
    /// Whether a comparison holds for the only row.
    Row {
        /// The comparison.
        condition: Expression,
        /// The slots of the values of the subquery's row.
        slots: Vec<u16>,
    },
}

impl PlanNode {
    /// Calls `visit` for the operator and all below it, those of subqueries too.
    pub fn visit<'p>(&'p self, visit: &mut dyn FnMut(&'p PlanNode)) {
        visit(self);
        match self {
            PlanNode::Once
            | PlanNode::Nothing
            | PlanNode::Scan(_)
            | PlanNode::Values(..)
            | PlanNode::JsonTable(_)
            | PlanNode::DropHistogram(_)
            | PlanNode::WorkTable(_) => {}
            PlanNode::Project(block, _) => block.root.visit(visit),
            PlanNode::Filter(from, _)
            | PlanNode::Compute(from, _)
            | PlanNode::Aggregate(from, _)
            | PlanNode::Distinct(from, _)
            | PlanNode::Single(from)
            | PlanNode::Materialize(from)
            | PlanNode::Sort(from, ..)
            | PlanNode::Limit(from, _)
            | PlanNode::Analyze(from, _)
            | PlanNode::Window(from, _) => from.visit(visit),
            PlanNode::Apply(from, plan) => {
                from.visit(visit);
                plan.block.root.visit(visit);
                if let Some(grouped) = &plan.grouped {
                    grouped.block.root.visit(visit);
                    grouped.lookup.iter().for_each(|lookup| lookup.block.root.visit(visit));
                }
            }
            PlanNode::Lateral(left, plan) => {
                left.visit(visit);
                plan.block.root.visit(visit);
            }
            PlanNode::Join(left, right, _) | PlanNode::Concat(left, right) | PlanNode::Set(left, right, _) => {
                left.visit(visit);
                right.visit(visit);
            }
            PlanNode::Recursion(plan) => {
                plan.seed.visit(visit);
                plan.members.iter().for_each(|member| member.root.visit(visit));
            }
        }
    }
}

impl ApplyForm {
    /// Whether a comparison is a quantified one that needs an unused operator.
    pub(super) fn is_equality(operator: CompareOperator) -> bool {
        matches!(operator, CompareOperator::Equal | CompareOperator::NotEqual | CompareOperator::NullSafeEqual)
    }
}

/// The parts of a tree while it is planned.
pub(super) struct TreePlanner<'a> {
    environment: &'a Environment<'a>,
    find_virtual: &'a FindVirtual<'a>,
    leaves: RefCell<Vec<LeafPlan>>,
    /// The leaves that read virtual tables, by their numbers.
    virtual_reads: RefCell<Vec<(usize, VirtualRead)>>,
    tables: RefCell<Vec<TreeTable>>,
    is_volatile: Cell<bool>,
    /// The views that are being planned, each inside the one before.
    views: RefCell<Vec<TableId>>,
    /// The tables of WITH that change user variables and have been read.
    stateful_tables: RefCell<Vec<String>>,
    grouped_depth: GroupedDepth,
    query_depth: QueryDepth,
    /// The queries of IN that were planned without the outer row, but read it.
    correlated: RefCell<Vec<Select>>,
}

/// How much is planned at some moment.
struct PlannedSoFar {
    leaves: usize,
    tables: usize,
    stateful_tables: usize,
}

/// Plans EXPLAIN of a query as a tree. Errors: those of binding.
pub(super) fn plan_explain(
    environment: &Environment<'_>,
    (select, request): (&Select, ExplainRequest),
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<TreePlan>> {
    let mut planned = plan_tree_of(environment, select, find_virtual)?;
    planned.plan.header = ResultHeader::new(text_columns());
    planned.plan.explain = Some(request);
    Ok(planned)
}

/// Plans a query as a tree. Errors: those of binding.
pub(super) fn plan_tree(
    environment: &Environment<'_>,
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<QueryPlan>> {
    let Planned { plan, is_volatile } = plan_tree_of(environment, select, find_virtual)?;
    Ok(Planned { plan: QueryPlan::Tree(Arc::new(plan)), is_volatile })
}

fn plan_tree_of(
    environment: &Environment<'_>,
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<TreePlan>> {
    let planner = TreePlanner::new(environment, find_virtual);
    let root = planner.block(select, None, &CommonTables::NONE, true)?;
    let limit = select.limit.map(LimitTemplate::of).transpose()?;
    Ok(planner.finish(root, limit, select.calc_found_rows))
}

impl<'a> TreePlanner<'a> {
    fn new(environment: &'a Environment<'a>, find_virtual: &'a FindVirtual<'a>) -> TreePlanner<'a> {
        TreePlanner {
            environment,
            find_virtual,
            leaves: RefCell::new(Vec::new()),
            virtual_reads: RefCell::default(),
            tables: RefCell::new(Vec::new()),
            is_volatile: Cell::new(false),
            views: RefCell::new(Vec::new()),
            stateful_tables: RefCell::default(),
            grouped_depth: GroupedDepth::default(),
            query_depth: QueryDepth::default(),
            correlated: RefCell::default(),
        }
    }

    fn planned_so_far(&self) -> PlannedSoFar {
        PlannedSoFar {
            leaves: self.leaves.borrow().len(),
            tables: self.tables.borrow().len(),
            stateful_tables: self.stateful_tables.borrow().len(),
        }
    }

    /// Forgets what has been planned since a moment.
    fn discard(&self, since: &PlannedSoFar) {
        self.leaves.borrow_mut().truncate(since.leaves);
        self.virtual_reads.borrow_mut().retain(|(leaf, _)| *leaf < since.leaves);
        self.tables.borrow_mut().truncate(since.tables);
        self.stateful_tables.borrow_mut().truncate(since.stateful_tables);
    }

    /// The tree with this root.
    fn finish(self, mut root: BlockPlan, limit: Option<LimitTemplate>, calc_found_rows: bool) -> Planned<TreePlan> {
        let columns = std::mem::take(&mut root.columns);
        let cost_ns = self.work_of(&root.root).cost_ns;
        let mut leaves = self.leaves.into_inner();
        for (leaf, read) in self.virtual_reads.into_inner() {
            let plan = match &mut leaves[leaf].query {
                QueryPlan::Compute(plan) => Arc::get_mut(plan),
                _ => None,
            };
            match plan {
                Some(plan) => plan.source = self.find_virtual.rows(&read),
                None => junctor_gateway::invariant::fail("a leaf has a plan of its own", format_args!("{read:?}")),
            }
        }
        let plan = TreePlan {
            cost_ns,
            rights: PlanRights::default(),
            header: ResultHeader::new(columns),
            root: Arc::new(root),
            leaves,
            tables: self.tables.into_inner(),
            limit,
            calc_found_rows,
            is_strict: self.environment.is_strict,
            parameter_count: self.environment.parameters.len(),
            is_shown: false,
            explain: None,
            analyzes: false,
            reads_diagnostics: self.environment.has_read_diagnostics(),
            is_outdated: AtomicBool::new(false),
            statistics_version: AtomicU64::new(0),
        };
        Planned { plan, is_volatile: self.is_volatile.get() }
    }
}
