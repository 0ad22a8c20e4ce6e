//! Character sets and collations that connections and definitions may use.

use junctor_model::collation::{CollationId, CollationLookupError};
use junctor_model::error::{Error, ErrorCode, Result};

/// Maximum number of characters of an unknown name in an error message.
const NAME_CHARACTERS_MAX: usize = 64;

/// A character set of a connection. All stored text is UTF-8; the supported sets need no conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ConnectionCharacterSet {
    #[default]
    Utf8mb4,
    Utf8mb3,
    Binary,
}

/// A collation that a connection may use.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedCollation {
    /// MySQL's collation id.
    pub number: u16,
    /// MySQL's name, in lower case.
    pub name: &'static str,
    /// Character set of the collation.
    pub character_set: ConnectionCharacterSet,
    /// The collation that is used to execute this one: this collation itself if it is implemented.
    /// Connections may use collations without an implementation, because a literal takes the collation of the
    /// column that it is compared with. Columns may not.
    pub implemented_as: CollationId,
    /// Whether it is the default collation of its character set.
    pub is_default: bool,
}

impl NamedCollation {
    /// Whether this collation itself is implemented, so that columns may use it.
    pub fn is_exact(&self) -> bool {
        self.implemented_as.name() == self.name
    }
}

const fn collation(number: u16, name: &'static str, set: ConnectionCharacterSet, as_if: CollationId) -> NamedCollation {
    let is_default = matches!(number, 33 | 63 | 255);
    NamedCollation { number, name, character_set: set, implemented_as: as_if, is_default }
}

/// All collations of connections, sorted by name.
pub const COLLATIONS: &[NamedCollation] = {
    use CollationId as Id;
    use ConnectionCharacterSet::{Binary, Utf8mb3, Utf8mb4};
    &[
        collation(63, "binary", Binary, Id::BINARY),
        collation(83, "utf8mb3_bin", Utf8mb3, Id::UTF8MB4_BIN),
        collation(33, "utf8mb3_general_ci", Utf8mb3, Id::UTF8MB4_GENERAL_CI),
        collation(192, "utf8mb3_unicode_ci", Utf8mb3, Id::UTF8MB4_0900_AI_CI),
        collation(255, "utf8mb4_0900_ai_ci", Utf8mb4, Id::UTF8MB4_0900_AI_CI),
        collation(305, "utf8mb4_0900_as_ci", Utf8mb4, Id::UTF8MB4_0900_AI_CI),
        collation(278, "utf8mb4_0900_as_cs", Utf8mb4, Id::UTF8MB4_BIN),
        collation(309, "utf8mb4_0900_bin", Utf8mb4, Id::UTF8MB4_BIN),
        collation(46, "utf8mb4_bin", Utf8mb4, Id::UTF8MB4_BIN),
        collation(45, "utf8mb4_general_ci", Utf8mb4, Id::UTF8MB4_GENERAL_CI),
        collation(246, "utf8mb4_unicode_520_ci", Utf8mb4, Id::UTF8MB4_0900_AI_CI),
        collation(224, "utf8mb4_unicode_ci", Utf8mb4, Id::UTF8MB4_0900_AI_CI),
    ]
};

/// All character sets of MySQL. An unsupported one is error 1235; a name that is not in this list is error
/// 1115.
pub const KNOWN_CHARACTER_SETS: &[&str] = &[
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932",
    "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r",
    "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis",
    "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4",
];

impl ConnectionCharacterSet {
    /// The character set with this name, ignoring case. `utf8` is an alias of `utf8mb3`.
    ///
    /// # Errors
    /// 1235 for an unsupported and 1115 for an unknown character set.
    pub fn from_name(name: &str) -> Result<ConnectionCharacterSet> {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "utf8mb4" => Ok(ConnectionCharacterSet::Utf8mb4),
            "utf8" | "utf8mb3" => Ok(ConnectionCharacterSet::Utf8mb3),
            "binary" => Ok(ConnectionCharacterSet::Binary),
            known if KNOWN_CHARACTER_SETS.contains(&known) => {
                Err(Error::not_supported(&format!("character set {known}")))
            }
            _ => Err(Error::new(
                ErrorCode::UnknownCharacterSet,
                format!("Unknown character set: '{}'", truncated_name(name)),
            )),
        }
    }

    /// MySQL's name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionCharacterSet::Utf8mb4 => "utf8mb4",
            ConnectionCharacterSet::Utf8mb3 => "utf8mb3",
            ConnectionCharacterSet::Binary => "binary",
        }
    }

    /// The default collation of this character set, for statements that name none.
    pub fn default_collation(self) -> &'static NamedCollation {
        let wanted = match self {
            ConnectionCharacterSet::Utf8mb4 => 255,
            ConnectionCharacterSet::Utf8mb3 => 33,
            ConnectionCharacterSet::Binary => 63,
        };
        collation_numbered(wanted)
    }
}

fn collation_numbered(number: u16) -> &'static NamedCollation {
    COLLATIONS.iter().find(|collation| collation.number == number).unwrap_or(&COLLATIONS[4])
}

/// The connection collation with this name, ignoring case. The prefix `utf8_` stands for `utf8mb3_`.
///
/// # Errors
/// 1235 for an unsupported and 1273 for an unknown collation.
pub fn find_collation(name: &str) -> Result<&'static NamedCollation> {
    let mut lower = name.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("utf8_") {
        lower = format!("utf8mb3_{rest}");
    }
    match COLLATIONS.iter().find(|collation| collation.name == lower) {
        Some(collation) => Ok(collation),
        None => Err(unknown_collation_error(name)),
    }
}

/// The collation that a definition's CHARACTER SET and COLLATE clauses select; `default` without either.
///
/// # Errors
/// 1115 and 1273 for unknown names, 1235 for unsupported ones, 1253 for a collation of another character set.
pub fn collation_of(character_set: Option<&str>, collation: Option<&str>, default: CollationId) -> Result<CollationId> {
    let set = character_set.map(ConnectionCharacterSet::from_name).transpose()?;
    let Some(name) = collation else {
        return Ok(set.map_or(default, |set| set.default_collation().implemented_as));
    };
    let Ok(found) = CollationId::from_name(name) else { return Err(unknown_collation_error(name)) };
    if let Some(set) = set
        && set.default_collation().implemented_as.character_set() != found.character_set()
    {
        let text = format!("COLLATION '{}' is not valid for CHARACTER SET '{}'", name.to_ascii_lowercase(), set.name());
        return Err(Error::new(ErrorCode::CollationCharacterSetMismatch, text));
    }
    Ok(found)
}

fn unknown_collation_error(name: &str) -> Box<Error> {
    let name = &truncated_name(name);
    let lower = name.to_ascii_lowercase();
    let set = lower.split('_').next().unwrap_or_default();
    // A name in MySQL's form is probably a collation of MySQL that is not implemented, rather than a
    // misspelling.
    let set_is_known = KNOWN_CHARACTER_SETS.contains(&set) || set == "utf8";
    let ends_well = ["_ci", "_cs", "_bin"].iter().any(|end| lower.ends_with(end));
    if set_is_known && ends_well || CollationId::from_name(name) == Err(CollationLookupError::Unsupported) {
        return Error::not_supported(&format!("collation {lower}"));
    }
    Error::new(ErrorCode::UnknownCollation, format!("Unknown collation: '{name}'"))
}

/// The beginning of an unknown name. Without the truncation, a name of megabytes would make an error message
/// of megabytes.
fn truncated_name(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}
