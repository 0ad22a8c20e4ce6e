//! Why a command ended early, as a sentence for the user.

use std::fmt;

/// What a command gives.
pub type Outcome<T> = Result<T, Failure>;

/// A sentence; every error of a library becomes one. It is no `Error` itself, so that this conversion can be general.
pub struct Failure(String);

impl Failure {
    /// A failure with that sentence.
    pub fn new(sentence: impl Into<String>) -> Failure {
        Failure(sentence.into())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Says what was being done when an error came.
pub trait Explain<T> {
    /// Puts `what` and a colon before the error.
    ///
    /// # Errors
    /// The error itself, explained.
    fn explain(self, what: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> Explain<T> for Result<T, E> {
    fn explain(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
