//! Character sets, and the conversion between their bytes and text.
//!
//! Text is UTF-8 in every character set. A character set bounds the characters of a text, and has the bytes
//! that the text has elsewhere: for clients, in binary strings, and in the lengths that MySQL counts.

use std::fmt;

use super::{CollationId, CollationLookupError, character};

/// A character set: the encoding of characters as bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CharacterSet {
    /// Unicode in UTF-8, 1 to 4 bytes a character.
    Utf8mb4,
    /// Bytes without meaning; a character is one byte.
    Binary,
    /// The basic plane of Unicode in UTF-8, 1 to 3 bytes a character.
    Utf8mb3,
    /// Code page 1252. Its five free bytes are the control characters of the same code, as in MySQL.
    Latin1,
    /// ASCII, 7 bits a character.
    Ascii,
}

/// The names of MySQL's character sets that are not supported.
const UNSUPPORTED: [&str; 36] = [
    "armscii8", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8", "eucjpms",
    "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin2",
    "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
];

/// The characters of the bytes 0x80 to 0x9F of code page 1252.
const LATIN1_UPPER_CONTROLS: [u16; 32] = [
    0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D,
    0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D,
    0x17E, 0x178,
];

/// What stands for a character that a character set lacks.
const REPLACEMENT: u8 = b'?';

impl CharacterSet {
    /// All character sets.
    pub const ALL: [Self; 5] = [Self::Utf8mb4, Self::Binary, Self::Utf8mb3, Self::Latin1, Self::Ascii];

    /// The character set with this `name`, in any letter case; `utf8` is `utf8mb3`.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for other character sets of MySQL,
    /// [`CollationLookupError::Unknown`] for all others.
    pub fn from_name(name: &str) -> Result<Self, CollationLookupError> {
        let is_name = |known: &str| known.eq_ignore_ascii_case(name);
        match Self::ALL.into_iter().find(|set| is_name(set.name())) {
            Some(set) => Ok(set),
            None if is_name("utf8") => Ok(Self::Utf8mb3),
            None if UNSUPPORTED.into_iter().any(is_name) => Err(CollationLookupError::Unsupported),
            None => Err(CollationLookupError::Unknown),
        }
    }

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8mb4 => "utf8mb4",
            Self::Binary => "binary",
            Self::Utf8mb3 => "utf8mb3",
            Self::Latin1 => "latin1",
            Self::Ascii => "ascii",
        }
    }

    /// MySQL's description.
    pub fn description(self) -> &'static str {
        match self {
            Self::Utf8mb4 | Self::Utf8mb3 => "UTF-8 Unicode",
            Self::Binary => "Binary pseudo charset",
            Self::Latin1 => "cp1252 West European",
            Self::Ascii => "US ASCII",
        }
    }

    fn number_of(self, default: bool) -> u16 {
        match (self, default) {
            (Self::Utf8mb4, true) => 255,
            (Self::Utf8mb4, false) => 46,
            (Self::Utf8mb3, true) => 33,
            (Self::Utf8mb3, false) => 83,
            (Self::Latin1, true) => 8,
            (Self::Latin1, false) => 47,
            (Self::Ascii, true) => 11,
            (Self::Ascii, false) => 65,
            (Self::Binary, _) => 63,
        }
    }

    /// The collation of a column for which only the character set is known.
    pub fn default_collation(self) -> CollationId {
        CollationId::from_number(self.number_of(true)).unwrap_or(CollationId::BINARY)
    }

    /// The collation in the order of the code points or bytes.
    pub fn code_point_collation(self) -> CollationId {
        CollationId::from_number(self.number_of(false)).unwrap_or(CollationId::BINARY)
    }

    /// Bytes of the longest character.
    #[inline]
    pub fn max_bytes_per_character(self) -> usize {
        match self {
            Self::Utf8mb4 => 4,
            Self::Utf8mb3 => 3,
            Self::Binary | Self::Latin1 | Self::Ascii => 1,
        }
    }

    /// Whether the set has all characters of Unicode, or of its basic plane.
    pub fn is_unicode(self) -> bool {
        matches!(self, Self::Utf8mb4 | Self::Utf8mb3)
    }

    /// Whether the bytes of a text are not its UTF-8.
    #[inline]
    pub fn is_recoded(self) -> bool {
        self == Self::Latin1
    }

    /// Number of characters in `text`. A byte outside any character counts as one.
    pub fn character_count(self, text: &[u8]) -> usize {
        match self {
            Self::Binary => text.len(),
            _ => character::character_count(text),
        }
    }

    /// The longest prefix of `text` with at most `characters` characters. No character is cut.
    pub fn prefix(self, text: &[u8], characters: usize) -> &[u8] {
        match self {
            Self::Binary => &text[..characters.min(text.len())],
            _ => character::prefix(text, characters),
        }
    }

    /// Number of bytes that `text` has in this character set.
    pub fn byte_count(self, text: &[u8]) -> usize {
        if self.is_recoded() { character::character_count(text) } else { text.len() }
    }

    /// Whether `text` is well-formed, and has only characters of this set.
    pub fn is_valid(self, text: &[u8]) -> bool {
        match self {
            Self::Utf8mb4 => std::str::from_utf8(text).is_ok(),
            Self::Binary => true,
            _ => self.valid_bytes(text) == text.len(),
        }
    }

    /// Length of the longest prefix of `text` that is well-formed and has only characters of this set.
    pub fn valid_bytes(self, text: &[u8]) -> usize {
        let well_formed = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or(""),
        };
        let other = match self {
            Self::Binary => return text.len(),
            Self::Utf8mb4 => None,
            Self::Ascii => text[..well_formed.len()].iter().position(|byte| *byte >= 0x80),
            Self::Utf8mb3 => text[..well_formed.len()].iter().position(|byte| *byte >= 0xF0),
            Self::Latin1 => well_formed
                .char_indices()
                .find(|(_, letter)| latin1_byte(u32::from(*letter)).is_none())
                .map(|(place, _)| place),
        };
        other.unwrap_or(well_formed.len())
    }

    /// Appends the bytes that `text` has in this character set, and `?` for each character that it lacks.
    /// Returns whether it has all of them.
    pub fn encode(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if !self.is_recoded() {
            return self.append_representable(text, out);
        }
        let mut is_complete = true;
        let mut rest = text;
        while let Some((code, bytes)) = character::decode(rest) {
            rest = &rest[bytes..];
            is_complete &= latin1_byte(code).is_some();
            out.push(latin1_byte(code).unwrap_or(REPLACEMENT));
        }
        is_complete
    }

    /// Whether every character of this set is in `other`. Bytes are within every set.
    pub fn is_within(self, other: CharacterSet) -> bool {
        match (self, other) {
            (Self::Binary | Self::Ascii, _) | (_, Self::Utf8mb4 | Self::Binary) => true,
            (Self::Latin1, Self::Utf8mb3) => true,
            (own, other) => own == other,
        }
    }

    /// Appends the text whose bytes in this character set are `bytes`. Bytes that are no character stay as
    /// they are.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.is_recoded() {
            out.extend_from_slice(bytes);
            return;
        }
        for &byte in bytes {
            let mut utf8 = [0; 4];
            out.extend_from_slice(latin1_character(byte).encode_utf8(&mut utf8).as_bytes());
        }
    }

    /// As [`Self::decode`], for a comparison: a byte that is no character of ascii becomes U+FFFD, because
    /// two of them could be an accented letter in UTF-8.
    pub fn decode_comparable(self, bytes: &[u8], out: &mut Vec<u8>) {
        if self != Self::Ascii || bytes.is_ascii() {
            return self.decode(bytes, out);
        }
        for &byte in bytes {
            let character = if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER };
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Appends `text` with `?` for each character that the set lacks. Returns whether it has all of them.
    pub fn append_representable(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let mut rest = text;
        loop {
            let valid = self.valid_bytes(rest);
            out.extend_from_slice(&rest[..valid]);
            rest = &rest[valid..];
            let Some((_, bytes)) = character::decode(rest) else { return valid == text.len() };
            out.push(REPLACEMENT);
            rest = &rest[bytes..];
        }
    }
}

/// The byte of a code point in code page 1252.
pub(super) fn latin1_byte(code: u32) -> Option<u8> {
    match code {
        0..=0x7F | 0xA0..=0xFF => Some(code as u8),
        _ => {
            let place = LATIN1_UPPER_CONTROLS.iter().position(|known| u32::from(*known) == code)?;
            Some(0x80 + place as u8)
        }
    }
}

/// The character of a byte in code page 1252.
pub(super) fn latin1_character(byte: u8) -> char {
    match byte {
        0x80..=0x9F => char::from_u32(LATIN1_UPPER_CONTROLS[usize::from(byte - 0x80)].into()).unwrap_or('?'),
        _ => char::from(byte),
    }
}

impl fmt::Display for CharacterSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
