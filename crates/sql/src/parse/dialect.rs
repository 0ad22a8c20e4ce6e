//! The parts of `sql_mode` that determine how a text is read.

/// How a text is read. The default is MySQL's without any of these modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// ANSI_QUOTES: `"` quotes names, not strings.
    pub ansi_quotes: bool,
    /// NO_BACKSLASH_ESCAPES: a backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// PIPES_AS_CONCAT: `||` concatenates strings.
    pub pipes_as_concat: bool,
    /// HIGH_NOT_PRECEDENCE: NOT binds as tightly as `!`.
    pub high_not_precedence: bool,
    /// REAL_AS_FLOAT: REAL is FLOAT, not DOUBLE.
    pub real_as_float: bool,
    /// The character set of literals lacks characters of the text, so that literals may change.
    pub narrows_literals: bool,
    /// `explicit_defaults_for_timestamp` is off: NULL for a TIMESTAMP is the present time. Rows of literals
    /// are then no uniform rows.
    pub nulls_are_now: bool,
}

impl Dialect {
    /// Whether the shape scanner, which knows only the default, understands the quotes and escapes of a text.
    #[cold]
    pub fn is_scannable(self, text: &[u8]) -> bool {
        if self.nulls_are_now {
            return false;
        }
        let changes = self.narrows_literals && !text.is_ascii();
        !(changes || self.ansi_quotes && text.contains(&b'"') || self.no_backslash_escapes && text.contains(&b'\\'))
    }
}
