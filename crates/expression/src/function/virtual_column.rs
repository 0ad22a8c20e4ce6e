//! The values of virtual columns that are not in the rows
//! (`docs/decisions/0076-unstored-virtual-columns.md`). No statement can name this function; planning puts it
//! in the place of such a column.

use junctor_model::error::{Error, Result};
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function};
use crate::program::{Expression, Node};
use crate::result_type::ResultType;

pub(crate) const NAME: &str = "VIRTUAL COLUMN";

pub(super) const TABLE: &[Function] = &[function(NAME, 2, 2, resolve, value)];

impl Expression {
    /// The value of an unstored column, which has the expression `value`. `column` is the column itself: it
    /// gives the type and the name.
    pub fn virtual_column(value: Expression, column: Expression) -> Expression {
        let result = column.result;
        // Not `Expression::call`: the value keeps its character set until it is converted to the column's
        // type.
        Expression { node: Node::Call(&TABLE[0], [value, column].into()), result }
    }
}

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = arguments.last().map_or_else(ResultType::null, |column| column.result);
    Ok(TypedCall { arguments, result })
}

/// The arguments are the expression and the column. A value that does not fit the column becomes the nearest
/// one, without a warning: reads do not check the rows.
fn value(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(row), Some(number)) = (call.context.row, call.arguments[1].as_column()) else {
        return Err(Error::table_definition_changed());
    };
    let Some(column) = row.format().unstored_column(number) else {
        return Err(Error::table_definition_changed());
    };
    let value = call.rounded(0)?;
    let scratch = call.scratch();
    let mark = scratch.warning_mark();
    let stored = StoreTarget { column, row_number: 1, mode: StoreMode::Lenient }.convert(value, scratch);
    scratch.forget_warnings_after(mark);
    Ok(scratch.in_session_zone(stored?))
}
