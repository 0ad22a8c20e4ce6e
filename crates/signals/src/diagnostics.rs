//! What there is to say of the rows of a request besides the answer. Most requests have nothing to say.

use junctor_expression::{Scratch, Warning};

/// Diagnostics of one reply; `None` stands for none at all.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// Warnings with their texts, in the order of the rows; at most as many as the request asked for.
    pub warnings: Vec<Warning>,
    /// How many warnings there were, those without text too.
    pub count: u64,
    /// What LAST_INSERT_ID(expression) was given last.
    pub last_insert_id: Option<u64>,
}

impl Diagnostics {
    /// Takes in those of a later reply, up to so many texts.
    pub fn add(&mut self, later: Diagnostics, warnings_max: u16) {
        let room = usize::from(warnings_max).saturating_sub(self.warnings.len());
        self.warnings.extend(later.warnings.into_iter().take(room));
        self.count = self.count.saturating_add(later.count);
        self.last_insert_id = later.last_insert_id.or(self.last_insert_id);
    }
}

/// What evaluations have left in the scratch memory, which has nothing to say then.
#[inline]
pub fn take(scratch: &mut Scratch) -> Option<Box<Diagnostics>> {
    if scratch.has_diagnostics() { Some(take_some(scratch)) } else { None }
}

#[cold]
fn take_some(scratch: &mut Scratch) -> Box<Diagnostics> {
    let count = scratch.warning_count();
    Box::new(Diagnostics { warnings: scratch.take_warnings(), count, last_insert_id: scratch.take_last_insert_id() })
}

/// Joins the diagnostics of two replies, up to so many texts.
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
