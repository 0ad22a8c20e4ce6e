//! Memory of one evaluating thread: strings that live until the next row, and the warnings of the statement.

use std::cell::{Cell, RefCell};

use bumpalo::Bump;
use junctor_model::error::{Error, ErrorCode, Result};

/// Warnings of which the text is kept unless a statement asks for another number (`max_error_count`); further ones are counted
/// only.
pub const WARNINGS_KEPT_DEFAULT: u16 = 1024;
/// Bytes of the longest string that a function makes (`max_allowed_packet`); a longer one is NULL with warning 1301.
pub const STRING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of all strings that one row may need.
const ROW_BYTES_MAX: usize = 8 * STRING_BYTES_MAX;
/// Bytes kept from row to row; more is given back at once.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Something that the user should know and that did not stop the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The stable code.
    pub code: ErrorCode,
    /// MySQL's words.
    pub message: Box<str>,
}

/// How many warnings there were at some moment.
#[derive(Clone, Copy, Debug)]
pub struct WarningMark {
    count: u64,
    kept: usize,
}

/// Working memory for evaluation; one per thread, reset for every row.
#[derive(Debug)]
pub struct Scratch {
    arena: Bump,
    /// Whether anything is in the arena.
    is_used: Cell<bool>,
    /// As many as evaluations were nested at most.
    buffers: RefCell<Vec<Vec<u8>>>,
    warnings: RefCell<Vec<Warning>>,
    warning_count: Cell<u64>,
    warnings_max: u16,
    last_insert_id: Cell<Option<u64>>,
    strict: bool,
}

impl Scratch {
    /// Empty, for a statement that only reads: what is cut or divided by zero is a warning.
    pub fn new() -> Scratch {
        Scratch {
            arena: limited_arena(),
            is_used: Cell::new(false),
            buffers: RefCell::default(),
            warnings: RefCell::default(),
            warning_count: Cell::default(),
            warnings_max: WARNINGS_KEPT_DEFAULT,
            last_insert_id: Cell::default(),
            strict: false,
        }
    }

    /// Whether the statement writes under a strict `sql_mode`, so that such warnings are errors.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Whether warnings are errors.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Of so many warnings the text is kept.
    #[inline]
    pub fn set_warnings_max(&mut self, warnings_max: u16) {
        self.warnings_max = warnings_max;
    }

    /// Frees the strings of the row before.
    #[inline]
    pub fn reset(&mut self) {
        if self.is_used.get() {
            self.free_strings();
        }
    }

    #[inline(never)]
    fn free_strings(&mut self) {
        self.is_used.set(false);
        self.arena.reset();
        if self.arena.allocated_bytes() > KEPT_BYTES_MAX {
            self.arena = limited_arena();
        }
    }

    /// How many warnings there were since [`Self::take_warnings`].
    pub fn warning_count(&self) -> u64 {
        self.warning_count.get()
    }

    /// The warnings with text, oldest first; the count starts again.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        self.warning_count.set(0);
        std::mem::take(self.warnings.get_mut())
    }

    /// How many warnings there are, to forget those that follow.
    pub fn warning_mark(&self) -> WarningMark {
        WarningMark { count: self.warning_count.get(), kept: self.warnings.borrow().len() }
    }

    /// Forgets the warnings after a mark: what was evaluated since is evaluated once more, and says them then.
    pub fn forget_warnings_after(&self, mark: WarningMark) {
        self.warning_count.set(mark.count);
        self.warnings.borrow_mut().truncate(mark.kept);
    }

    /// Whether there is anything to say besides the values: a warning, or what LAST_INSERT_ID(expression) has set.
    #[inline]
    pub fn has_remarks(&self) -> bool {
        self.warning_count.get() != 0 || self.last_insert_id.get().is_some()
    }

    /// What LAST_INSERT_ID(expression) was given last since this was asked.
    pub fn take_last_insert_id(&mut self) -> Option<u64> {
        self.last_insert_id.take()
    }

    /// LAST_INSERT_ID(expression) was evaluated.
    pub(crate) fn note_last_insert_id(&self, value: u64) {
        self.last_insert_id.set(Some(value));
    }

    /// Records a warning; under strict rules it is the error instead.
    #[cold]
    pub(crate) fn warn(&self, code: ErrorCode, message: impl FnOnce() -> String) -> Result<()> {
        if self.strict {
            return Err(Error::new(code, message()));
        }
        self.note(code, message);
        Ok(())
    }

    /// Records a warning that is none the worse under strict rules.
    #[cold]
    pub(crate) fn note(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        self.warning_count.set(self.warning_count.get() + 1);
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < usize::from(self.warnings_max) {
            warnings.push(Warning { code, message: message().into() });
        }
    }

    /// A copy of the bytes that lives until the next row. Error: 1041 when the row needs too much.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<&[u8]> {
        self.is_used.set(true);
        match self.arena.try_alloc_slice_copy(bytes) {
            Ok(kept) => Ok(kept),
            Err(_) => Err(Error::new(ErrorCode::OutOfResources, "Out of memory; the strings of one row are too long")),
        }
    }

    /// What `build` appends to the buffer it gets, as bytes that live until the next row; `None` when it says false.
    /// `build` may evaluate further expressions.
    pub(crate) fn build(&self, build: impl FnOnce(&mut Vec<u8>) -> Result<bool>) -> Result<Option<&[u8]>> {
        let mut buffer = self.buffers.borrow_mut().pop().unwrap_or_default();
        let outcome = build(&mut buffer);
        let kept = match outcome {
            Ok(true) => self.keep(&buffer).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        buffer.clear();
        buffer.shrink_to(KEPT_BYTES_MAX);
        self.buffers.borrow_mut().push(buffer);
        kept
    }

    /// Like [`Self::build`] for what cannot fail.
    pub(crate) fn build_text(&self, build: impl FnOnce(&mut Vec<u8>)) -> Result<&[u8]> {
        let kept = self.build(|buffer| {
            build(buffer);
            Ok(true)
        })?;
        Ok(kept.unwrap_or_default())
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

fn limited_arena() -> Bump {
    let arena = Bump::new();
    arena.set_allocation_limit(Some(ROW_BYTES_MAX));
    arena
}
