//! Errors of placement, worded so that a user can correct the configuration.

use std::error::Error;
use std::fmt;

/// An error in a `ThreadConfig` text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementError {
    /// Byte offset of the offending character in the text, or the length of the text if something is missing
    /// at its end.
    pub offset: usize,
    /// Describes the error and the allowed values.
    pub message: String,
}

impl PlacementError {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }

    /// The message, the line of `text` with the offending character, and a caret under that character.
    /// Control characters become spaces, so that the caret is in the right column.
    pub fn render(&self, text: &str) -> String {
        let mut offset = self.offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (before, after) = text.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = after.find('\n').map_or(text.len(), |newline| offset + newline);
        let line: String = text[line_start..line_end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = text[line_start..offset].chars().count();
        format!("ThreadConfig: {}\n  {line}\n  {:column$}^", self.message, "")
    }
}

impl fmt::Display for PlacementError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ThreadConfig, byte {}: {}", self.offset + 1, self.message)
    }
}

impl Error for PlacementError {}

/// A well-formed configuration that this machine, or the rules of placement, cannot satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsatisfiablePlacement {
    /// Describes the error and the allowed values.
    pub message: String,
}

impl UnsatisfiablePlacement {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for UnsatisfiablePlacement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for UnsatisfiablePlacement {}
