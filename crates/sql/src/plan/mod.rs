//! Plans. A plan determines for all executions of a statement how its rows are found, what the partitions do
//! with them, and how the session combines the partitions' results.

mod access;
mod cache;
mod change;
mod conflict;
mod checksum;
mod compute;
mod digest;
mod explain;
mod functional;
mod hint;
mod index_share;
mod insert;
mod insert_query;
mod insert_view;
mod load;
mod load_query;
mod modify;
mod multi_valued;
mod operand;
mod operation_kind;
mod order;
mod output_file;
mod parameters;
mod prefix;
mod prepared;
mod restriction;
mod select;
mod shared_statements;
mod shown_query;
mod statement;
mod time_to_live;
pub(crate) mod tree;
mod virtual_table;

pub use access::{AccessPath, KeyTemplate, RangeTemplate, ScopeTemplate};
pub use cache::{CachedShape, PlanCache, PlanKey, PlanVariants};
pub use change::{ChangeKind, ChangePlan, OrderedChange, UniqueKeyChange, row_key_columns};
pub use compute::{ComputePlan, ComputeSource, MakeRow};
pub use conflict::{Conflict, KeyLock};
pub use digest::DigestNumber;
pub(crate) use digest::{DigestKey, PlanWork, PreparedDigest, WORK_COUNTS};
pub use explain::{
    ExplainFormat, ExplainRequest, LeafMeasure, Measures, OperatorMeasure, explain_operators, explain_plan,
};
pub use hint::{STATEMENT_VARIABLES, outermost_hints};
pub use insert::{AutoColumn, InsertPlan, InsertReturning, InsertValue, RowSteps, UniformRowForm};
pub(crate) use insert::{plan_fill, plan_source};
pub use load::{FieldWidth, FileEncoding, LoadPlan, LoadTarget};
pub use load_query::{LineQueries, LineQuery};
pub use modify::{ModifyPlan, ModifyTarget};
pub use operand::{Interval, KeyValues, LimitTemplate, Operand, Quantity, ValueSet};
pub use operation_kind::OperationKind;
pub(crate) use output_file::ambiguous_separator;
pub use output_file::{LineWriter, OutputFile};
pub(crate) use parameters::{
    fill_from_shape, fits_class, kind_of_value, kinds_of_shape, literal_value, plain_literal_value,
};
pub(crate) use prepared::{PreparedStatement, PreparedStatements};
pub use select::{FinalStep, SelectPlan};
pub(crate) use shared_statements::{SHARED_BYTES_MAX, SharedStatements, StatementKey};
pub use shown_query::ShownQuery;
pub(crate) use statement::TableUse;
pub use statement::{ControlPlan, HintedPlan, IntoPlace, IntoPlan, Plan, Planned, QueryPlan, plan_statement};
pub use time_to_live::ExpiredRows;
pub(crate) use time_to_live::{living_at_parameter, statement_time};
pub use tree::PlannedView;
pub use tree::TreePlan;
pub(crate) use tree::plan_view;
pub use virtual_table::{
    FindVirtual, NameValue, NoVirtualTables, VirtualEquality, VirtualRead, VirtualSource, VirtualTables,
};

#[cfg(test)]
mod tests;
