//! SHOW and DESCRIBE that are queries of virtual tables.

use std::sync::Arc;

use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::ResultColumn;

use super::compute::ComputeSource;
use super::statement::{Planned, QueryPlan, plan_query};
use super::virtual_table::{FindVirtual, VirtualRead, VirtualTables};
use crate::bind::Environment;
use crate::parse::Statement;
use crate::parse::statement::Select;
use crate::result::ResultHeader;

/// The query that answers SHOW or DESCRIBE.
#[derive(Debug)]
pub struct ShownQuery {
    /// The query.
    pub select: Box<Select>,
    /// The columns for clients, as many as the query has; `None` if they get those of the query.
    pub columns: Option<Vec<ResultColumn>>,
    /// Whether temporary tables of the session hide other tables of their names.
    pub sees_own_tables: bool,
}

/// The virtual tables of a session, in which its temporary tables hide others.
struct OwnTables<'f>(&'f FindVirtual<'f>);

impl VirtualTables for OwnTables<'_> {
    fn columns(&self, database: &str, name: &str) -> Option<Vec<ResultColumn>> {
        self.0.columns(database, name)
    }

    fn rows(&self, read: &VirtualRead) -> ComputeSource {
        self.0.rows(&VirtualRead { sees_own_tables: true, ..read.clone() })
    }
}

/// Plans SHOW and DESCRIBE if virtual tables have the rows; `None` for others. Errors: those of the
/// statement, and of its WHERE clause.
pub(super) fn plan_shown_query(
    environment: &Environment<'_>,
    statement: &Statement,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned<QueryPlan>>> {
    let Some(query) = find_virtual.shown_query(statement)? else { return Ok(None) };
    let planned = match query.sees_own_tables {
        true => plan_query(environment, &query.select, &OwnTables(find_virtual)),
        false => plan_query(environment, &query.select, find_virtual),
    };
    let Planned { mut plan, is_volatile } = planned?;
    plan.become_shown(query.columns).ok_or_else(|| Error::not_supported("SHOW of a stored table"))?;
    Ok(Some(Planned { plan, is_volatile }))
}

impl QueryPlan {
    /// The plan answers SHOW, with these columns if there are any. `None` if it is not a plan of its own that
    /// reads virtual tables.
    fn become_shown(&mut self, columns: Option<Vec<ResultColumn>>) -> Option<()> {
        match self {
            QueryPlan::Compute(plan) => Arc::get_mut(plan).map(|plan| {
                plan.is_shown = true;
                if let Some(columns) = columns {
                    plan.projection.columns.clone_from(&columns);
                    plan.header = ResultHeader::new(columns);
                }
            }),
            QueryPlan::Tree(plan) => Arc::get_mut(plan).map(|plan| {
                plan.is_shown = true;
                if let Some(columns) = columns {
                    plan.header = ResultHeader::new(columns);
                }
            }),
            QueryPlan::Select(_) => None,
        }
    }
}
