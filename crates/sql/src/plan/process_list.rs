//! SHOW PROCESSLIST: a query of `information_schema.PROCESSLIST`, whose rows come from all sql blocks.

use junctor_model::error::Result;

use super::statement::{Planned, QueryPlan, plan_query};
use super::virtual_table::FindVirtual;
use crate::bind::{Environment, message};
use crate::parse::parse;
use crate::parse::statement::Statement;

/// SHOW FULL PROCESSLIST, with the whole statements.
const FULL: &[u8] =
    b"SELECT ID AS `Id`, USER AS `User`, HOST AS `Host`, DB AS `db`, COMMAND AS `Command`, TIME AS `Time`, \
    STATE AS `State`, INFO AS `Info` FROM information_schema.PROCESSLIST ORDER BY ID";
/// SHOW PROCESSLIST, with the first 100 characters of each statement.
const CUT: &[u8] =
    b"SELECT ID AS `Id`, USER AS `User`, HOST AS `Host`, DB AS `db`, COMMAND AS `Command`, TIME AS `Time`, \
    STATE AS `State`, LEFT(INFO, 100) AS `Info` FROM information_schema.PROCESSLIST ORDER BY ID";

/// Plans SHOW PROCESSLIST as the equivalent query.
pub(super) fn plan_process_list(
    environment: &Environment<'_>,
    full: bool,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<QueryPlan>> {
    let parsed = parse(if full { FULL } else { CUT }).map_err(|error| message::of_parse_error(&error))?;
    match parsed.statement {
        Statement::Select(select) => plan_query(environment, &select, find_virtual),
        _ => Err(message::no_such_table("information_schema", "PROCESSLIST")),
    }
}
