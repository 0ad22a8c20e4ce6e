//! The rows of RETURNING of an INSERT. The session computes them from the row images that it has sent, and
//! keeps them until the statement is complete.

use junctor_expression::{Parameters, Scratch};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row::RowView;
use junctor_signals::program::RowProtocol;

use crate::execute::read::append_projection;
use crate::plan::InsertPlan;

/// Maximum bytes of the returned rows of a compound statement. More give error 1041.
const RETURNED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum bytes of a returned row that is encoded after its INSERT has committed.
const SMALL_ROW_BYTES_MAX: usize = 1024 * 1024;

/// The returned row packets, in the order of the rows.
#[derive(Debug, Default)]
pub(super) struct Returned {
    pub packets: Vec<u8>,
}

impl Returned {
    /// Computes a returned row from a row image, and adds it.
    ///
    /// # Errors
    /// The errors of the expressions, and 1041 if the rows take too much memory.
    pub(super) fn add(
        &mut self,
        plan: &InsertPlan,
        image: &[u8],
        (protocol, parameters): (RowProtocol, Parameters<'_>),
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(returning) = &plan.returning else { return Ok(()) };
        let row = RowView::new(&plan.table.row_format, image);
        scratch.reset();
        scratch.set_strict(plan.is_strict());
        let made = append_projection(&returning.rows, (Some(row), parameters), protocol, scratch, &mut self.packets);
        scratch.set_strict(false);
        made?;
        self.check()
    }

    /// Adds rows that are already encoded. Error: 1041.
    pub(super) fn add_packets(&mut self, packets: &[u8]) -> Result<()> {
        self.packets.extend_from_slice(packets);
        self.check()
    }

    fn check(&self) -> Result<()> {
        check_returned(self.packets.len())
    }
}

/// Error 1041 if the rows of RETURNING take too many bytes.
pub(super) fn check_returned(bytes: usize) -> Result<()> {
    match bytes {
        0..=RETURNED_BYTES_MAX => Ok(()),
        _ => Err(Error::new(ErrorCode::OutOfResources, "Out of memory; RETURNING has too many rows to answer with")),
    }
}

/// Whether the returned row can be encoded for all values, so that the INSERT may commit first.
pub(super) fn cannot_fail(plan: &InsertPlan, image: &[u8]) -> bool {
    plan.returning.as_ref().is_none_or(|returning| {
        let is_plain = returning.rows.values.iter().all(|value| value.as_column().is_some());
        is_plain && image.len().saturating_mul(returning.rows.values.len()) <= SMALL_ROW_BYTES_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_returning_keeps_is_bounded() {
        assert_eq!(check_returned(RETURNED_BYTES_MAX), Ok(()));
        let refused = check_returned(RETURNED_BYTES_MAX + 1).expect_err("too many bytes");
        assert_eq!(refused.code, ErrorCode::OutOfResources);
    }
}
