//! Warnings and the insert id that accompany a reply. Most replies have none.

use junctor_expression::{Scratch, Warning};

/// The diagnostics of one reply. A reply without any has `None` in place of them.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// Warnings with text, in the order of the rows, up to the limit in the request.
    pub warnings: Vec<Warning>,
    /// Number of all warnings, including those without text.
    pub count: u64,
    /// The last value given to LAST_INSERT_ID(expression).
    pub last_insert_id: Option<u64>,
}

impl Diagnostics {
    /// Adds the diagnostics of a later reply, keeping at most `warnings_max` texts.
    pub fn add(&mut self, later: Diagnostics, warnings_max: u16) {
        let room = usize::from(warnings_max).saturating_sub(self.warnings.len());
        self.warnings.extend(later.warnings.into_iter().take(room));
        self.count = self.count.saturating_add(later.count);
        self.last_insert_id = later.last_insert_id.or(self.last_insert_id);
    }
}

/// Takes the diagnostics that evaluations have left in the scratch memory.
#[inline]
pub fn take(scratch: &mut Scratch) -> Option<Box<Diagnostics>> {
    if scratch.has_diagnostics() { Some(take_some(scratch)) } else { None }
}

#[cold]
fn take_some(scratch: &mut Scratch) -> Box<Diagnostics> {
    let count = scratch.warning_count();
    Box::new(Diagnostics { warnings: scratch.take_warnings(), count, last_insert_id: scratch.take_last_insert_id() })
}

/// Joins the diagnostics of two replies, keeping at most `warnings_max` texts.
pub fn join(all: &mut Option<Box<Diagnostics>>, later: Option<Box<Diagnostics>>, warnings_max: u16) {
    match (all.as_mut(), later) {
        (_, None) => {}
        (Some(all), Some(later)) => all.add(*later, warnings_max),
        (None, later) => *all = later,
    }
}

#[cfg(test)]
mod tests {
    use junctor_model::error::ErrorCode;

    use super::*;

    fn diagnostics(texts: &[&str], count: u64, last_insert_id: Option<u64>) -> Option<Box<Diagnostics>> {
        let warning = |text: &&str| Warning { code: ErrorCode::DivisionByZero, message: (*text).into() };
        Some(Box::new(Diagnostics { warnings: texts.iter().map(warning).collect(), count, last_insert_id }))
    }

    #[test]
    fn the_first_texts_are_kept_and_all_are_counted() {
        let mut all = None;
        join(&mut all, diagnostics(&["a", "b"], 2, Some(7)), 3);
        join(&mut all, None, 3);
        join(&mut all, diagnostics(&["c", "d"], 5, None), 3);
        let all = all.expect("there were some");
        let texts: Vec<&str> = all.warnings.iter().map(|warning| &*warning.message).collect();
        assert_eq!((texts, all.count, all.last_insert_id), (vec!["a", "b", "c"], 7, Some(7)));
    }

    #[test]
    fn the_last_insert_id_is_that_of_the_later_reply() {
        let mut all = diagnostics(&[], 0, Some(7));
        join(&mut all, diagnostics(&[], 0, Some(8)), 0);
        assert_eq!(all.and_then(|all| all.last_insert_id), Some(8));
    }
}
