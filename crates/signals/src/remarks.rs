//! What there is to say of the rows of a request besides the answer. Most requests have nothing to say.

use junctor_expression::Warning;

/// Warnings of which the text is sent with one reply, and kept for one statement.
pub const WARNINGS_MAX: usize = junctor_expression::scratch::WARNINGS_KEPT_MAX;

/// Remarks of one reply; `None` stands for none at all.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Warnings with their texts, in the order of the rows; at most [`WARNINGS_MAX`].
    pub warnings: Vec<Warning>,
}

impl Remarks {
    /// Takes in those of a later reply.
    pub fn add(&mut self, later: Remarks) {
        let room = WARNINGS_MAX.saturating_sub(self.warnings.len());
        self.warnings.extend(later.warnings.into_iter().take(room));
    }
}

/// Joins the remarks of two replies.
pub fn join(all: &mut Option<Box<Remarks>>, later: Option<Box<Remarks>>) {
    match (all.as_mut(), later) {
        (_, None) => {}
        (Some(all), Some(later)) => all.add(*later),
        (None, later) => *all = later,
    }
}
