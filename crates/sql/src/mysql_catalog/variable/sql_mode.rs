//! SQL modes: names, MySQL's bits, and what each means.

use crate::parse::Dialect;

use junctor_model::temporal::DateRules;

/// A set of SQL modes, as MySQL's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlMode(pub u64);

const NAMES: &[(&str, u64)] = &[
    ("REAL_AS_FLOAT", 1),
    ("PIPES_AS_CONCAT", 2),
    ("ANSI_QUOTES", 4),
    ("IGNORE_SPACE", 8),
    ("ONLY_FULL_GROUP_BY", 32),
    ("NO_UNSIGNED_SUBTRACTION", 64),
    ("NO_DIR_IN_CREATE", 128),
    ("ANSI", 1 << 18),
    ("NO_AUTO_VALUE_ON_ZERO", 1 << 19),
    ("NO_BACKSLASH_ESCAPES", 1 << 20),
    ("STRICT_TRANS_TABLES", 1 << 21),
    ("STRICT_ALL_TABLES", 1 << 22),
    ("NO_ZERO_IN_DATE", 1 << 23),
    ("NO_ZERO_DATE", 1 << 24),
    ("ALLOW_INVALID_DATES", 1 << 25),
    ("ERROR_FOR_DIVISION_BY_ZERO", 1 << 26),
    ("TRADITIONAL", 1 << 27),
    ("HIGH_NOT_PRECEDENCE", 1 << 29),
    ("NO_ENGINE_SUBSTITUTION", 1 << 30),
    ("PAD_CHAR_TO_FULL_LENGTH", 1 << 31),
    ("TIME_TRUNCATE_FRACTIONAL", TIME_TRUNCATE_FRACTIONAL),
];

const NO_ZERO_IN_DATE: u64 = 1 << 23;
const NO_ZERO_DATE: u64 = 1 << 24;
const ALLOW_INVALID_DATES: u64 = 1 << 25;
const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;

/// A mode that MySQL 8.0 removed. Old clients still set it, and it has no effect.
const FORGOTTEN: &str = "NO_AUTO_CREATE_USER";

const ANSI: u64 = 1 << 18 | 1 | 2 | 4 | 8 | 32;
const TRADITIONAL: u64 = 1 << 27 | 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30;

impl SqlMode {
    /// MySQL 8.0's default.
    pub const DEFAULT: SqlMode = SqlMode(32 | 1 << 21 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30);

    /// STRICT_ALL_TABLES.
    pub(super) const STRICT_FOR_ALL: SqlMode = SqlMode(1 << 22);

    /// Parses a comma-separated list of names and expands combinations such as TRADITIONAL.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn parse(names: &str) -> Result<SqlMode, String> {
        let mut bits = 0;
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name.eq_ignore_ascii_case(FORGOTTEN) {
                continue;
            }
            match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, bit)) => bits |= bit,
                None => return Err(name.to_owned()),
            }
        }
        Ok(SqlMode(bits).expanded())
    }

    /// The modes with these bits, combinations expanded.
    ///
    /// # Errors
    /// The number as text, if a bit is unknown.
    pub fn from_bits(bits: u64) -> Result<SqlMode, String> {
        let known = NAMES.iter().fold(0, |all, (_, bit)| all | bit);
        let mode = SqlMode(bits).expanded();
        if mode.0 & !known != 0 { Err(bits.to_string()) } else { Ok(mode) }
    }

    fn expanded(self) -> SqlMode {
        let ansi = if self.0 & 1 << 18 != 0 { ANSI } else { 0 };
        let traditional = if self.0 & 1 << 27 != 0 { TRADITIONAL } else { 0 };
        SqlMode(self.0 | ansi | traditional)
    }

    /// The names in MySQL's order, separated by commas.
    pub fn text(self) -> String {
        let names: Vec<&str> = NAMES.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(name, _)| *name).collect();
        names.join(",")
    }

    /// How texts are read.
    #[inline]
    pub fn dialect(self) -> Dialect {
        Dialect {
            ansi_quotes: self.0 & 4 != 0,
            no_backslash_escapes: self.0 & 1 << 20 != 0,
            pipes_as_concat: self.0 & 2 != 0,
            high_not_precedence: self.0 & 1 << 29 != 0,
            real_as_float: self.0 & 1 != 0,
            narrows_literals: false,
            nulls_are_now: false,
        }
    }

    /// Whether quotes and backslashes have their usual meaning in a text.
    #[inline]
    pub fn has_usual_quotes(self) -> bool {
        self.0 & (4 | 1 << 20) == 0
    }

    /// Whether the mode of this name is set.
    pub fn has(self, name: &str) -> bool {
        NAMES.iter().any(|(known, bit)| *known == name && self.0 & bit != 0)
    }

    /// Whether 0 in an AUTO_INCREMENT column is stored as 0 instead of the next value.
    pub fn no_auto_value_on_zero(self) -> bool {
        self.0 & 1 << 19 != 0
    }

    /// Whether an unknown storage engine is replaced, because NO_ENGINE_SUBSTITUTION is not set.
    pub fn replaces_unknown_engines(self) -> bool {
        self.0 & 1 << 30 == 0
    }

    /// The days that NO_ZERO_DATE, NO_ZERO_IN_DATE and ALLOW_INVALID_DATES make right or wrong.
    pub fn date_rules(self) -> DateRules {
        DateRules {
            no_zero_date: self.0 & NO_ZERO_DATE != 0,
            no_zero_in_date: self.0 & NO_ZERO_IN_DATE != 0,
            allows_invalid: self.0 & ALLOW_INVALID_DATES != 0,
            zone: None,
        }
    }

    /// Whether TIME_TRUNCATE_FRACTIONAL is set.
    pub fn truncates_fractions(self) -> bool {
        self.0 & TIME_TRUNCATE_FRACTIONAL != 0
    }

    /// Whether STRICT_ALL_TABLES is set. A number outside a variable's range is then an error instead of a
    /// warning.
    pub fn is_strict_for_all(self) -> bool {
        self.0 & 1 << 22 != 0
    }
}

impl Default for SqlMode {
    fn default() -> SqlMode {
        SqlMode::DEFAULT
    }
}
