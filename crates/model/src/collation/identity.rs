//! The numbers and names of character sets and collations.

use std::error::Error;
use std::fmt;

/// A collation, by MySQL's number. Values exist only for the supported collations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CollationId(u16);

/// A character set: the encoding of characters as bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CharacterSet {
    /// Unicode in UTF-8, 1 to 4 bytes a character.
    Utf8mb4,
    /// Bytes without meaning; a character is one byte.
    Binary,
}

/// Why a character set or collation was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollationLookupError {
    /// A collation or character set of MySQL that is not supported here.
    Unsupported,
    /// No collation or character set has this name or number.
    Unknown,
}

impl CollationId {
    /// Number 45: case-insensitive with one weight per character; trailing spaces are ignored.
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    /// Number 46: code point order; trailing spaces are ignored.
    pub const UTF8MB4_BIN: Self = Self(46);
    /// Number 63: byte order.
    pub const BINARY: Self = Self(63);
    /// Number 255: accent- and case-insensitive by the Unicode collation algorithm 9.0.0; trailing spaces
    /// count.
    pub const UTF8MB4_0900_AI_CI: Self = Self(255);
    /// The collation of a column without an explicit one.
    pub const DEFAULT: Self = Self::UTF8MB4_0900_AI_CI;
    /// All collations, by ascending number.
    pub const ALL: [Self; 4] = [Self::UTF8MB4_GENERAL_CI, Self::UTF8MB4_BIN, Self::BINARY, Self::UTF8MB4_0900_AI_CI];

    /// The collation with MySQL's `number`. The numbers of `utf8mb3_general_ci` (33) and `utf8mb3_bin` (83)
    /// return their utf8mb4 counterparts, which order utf8mb3 text the same way.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for 8 and 11, [`CollationLookupError::Unknown`] for all others.
    pub fn from_number(number: u16) -> Result<Self, CollationLookupError> {
        match number {
            33 | 45 => Ok(Self::UTF8MB4_GENERAL_CI),
            83 | 46 => Ok(Self::UTF8MB4_BIN),
            63 => Ok(Self::BINARY),
            255 => Ok(Self::UTF8MB4_0900_AI_CI),
            8 | 11 => Err(CollationLookupError::Unsupported),
            _ => Err(CollationLookupError::Unknown),
        }
    }

    /// The collation with this `name`, in any letter case. The utf8mb3 names, with prefix `utf8mb3_` or
    /// `utf8_`, return their utf8mb4 counterparts.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for `latin1_swedish_ci` and `ascii_general_ci`,
    /// [`CollationLookupError::Unknown`] for all others.
    pub fn from_name(name: &str) -> Result<Self, CollationLookupError> {
        const NUMBERS: [(&str, u16); 10] = [
            ("utf8mb4_0900_ai_ci", 255),
            ("utf8mb4_general_ci", 45),
            ("utf8mb4_bin", 46),
            ("binary", 63),
            ("utf8mb3_general_ci", 33),
            ("utf8_general_ci", 33),
            ("utf8mb3_bin", 83),
            ("utf8_bin", 83),
            ("latin1_swedish_ci", 8),
            ("ascii_general_ci", 11),
        ];
        match NUMBERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some(&(_, number)) => Self::from_number(number),
            None => Err(CollationLookupError::Unknown),
        }
    }

    /// MySQL's number, as in the column definitions of the protocol.
    pub fn number(self) -> u16 {
        self.0
    }

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::UTF8MB4_GENERAL_CI => "utf8mb4_general_ci",
            Self::UTF8MB4_BIN => "utf8mb4_bin",
            Self::UTF8MB4_0900_AI_CI => "utf8mb4_0900_ai_ci",
            _ => "binary",
        }
    }

    /// The character set that the collation orders.
    pub fn character_set(self) -> CharacterSet {
        match self {
            Self::BINARY => CharacterSet::Binary,
            _ => CharacterSet::Utf8mb4,
        }
    }

    /// Whether this is the collation of bytes.
    pub const fn is_binary(self) -> bool {
        self.0 == Self::BINARY.0
    }

    /// Whether trailing spaces are ignored in comparisons (MySQL's `PAD SPACE`).
    pub fn pads_with_spaces(self) -> bool {
        matches!(self, Self::UTF8MB4_GENERAL_CI | Self::UTF8MB4_BIN)
    }

    /// Bytes of the longest character.
    pub fn max_bytes_per_character(self) -> usize {
        self.character_set().max_bytes_per_character()
    }
}

impl Default for CollationId {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for CollationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl CharacterSet {
    /// All character sets.
    pub const ALL: [Self; 2] = [Self::Utf8mb4, Self::Binary];

    /// The character set with this `name`, in any letter case; `utf8` and `utf8mb3` return utf8mb4.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for `latin1` and `ascii`, [`CollationLookupError::Unknown`] for
    /// all others.
    pub fn from_name(name: &str) -> Result<Self, CollationLookupError> {
        const NAMES: [(&str, Result<CharacterSet, CollationLookupError>); 6] = [
            ("utf8mb4", Ok(CharacterSet::Utf8mb4)),
            ("utf8mb3", Ok(CharacterSet::Utf8mb4)),
            ("utf8", Ok(CharacterSet::Utf8mb4)),
            ("binary", Ok(CharacterSet::Binary)),
            ("latin1", Err(CollationLookupError::Unsupported)),
            ("ascii", Err(CollationLookupError::Unsupported)),
        ];
        match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some(&(_, found)) => found,
            None => Err(CollationLookupError::Unknown),
        }
    }

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8mb4 => "utf8mb4",
            Self::Binary => "binary",
        }
    }

    /// The collation of a column for which only the character set is known.
    pub fn default_collation(self) -> CollationId {
        match self {
            Self::Utf8mb4 => CollationId::UTF8MB4_0900_AI_CI,
            Self::Binary => CollationId::BINARY,
        }
    }

    /// Bytes of the longest character.
    pub fn max_bytes_per_character(self) -> usize {
        match self {
            Self::Utf8mb4 => 4,
            Self::Binary => 1,
        }
    }
}

impl fmt::Display for CharacterSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for CollationLookupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unsupported => "not supported",
            Self::Unknown => "unknown",
        })
    }
}

impl Error for CollationLookupError {}
