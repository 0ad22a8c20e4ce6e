//! The error type of every command: one sentence for the user.

use std::fmt;

/// Result of a command.
pub type Outcome<T> = Result<T, Failure>;

/// One sentence. Every type that implements `Error` converts into it. `Failure` itself does not implement
/// `Error`: its conversion would overlap with the conversion of every type into itself.
pub struct Failure(String);

impl Failure {
    /// Makes a failure of a sentence.
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

/// Adds context to an error.
pub trait Explain<T> {
    /// Puts `what` and a colon before the error.
    ///
    /// # Errors
    /// The original error with its context.
    fn explain(self, what: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> Explain<T> for Result<T, E> {
    fn explain(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
