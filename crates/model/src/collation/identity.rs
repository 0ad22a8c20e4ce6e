//! The numbers and names of collations.

use std::error::Error;
use std::fmt;

use super::CharacterSet;

/// A collation, by MySQL's number. Values exist only for the supported collations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CollationId(u16);

/// Why a character set or collation was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollationLookupError {
    /// A collation or character set of MySQL that is not supported here.
    Unsupported,
    /// No collation or character set has this name or number.
    Unknown,
}

/// What the number of a collation stands for.
struct Identity {
    number: u16,
    name: &'static str,
    character_set: CharacterSet,
    pads: bool,
}

/// The supported collations, by ascending number.
const IDENTITIES: &[Identity] = {
    use CharacterSet::{Ascii, Binary, Latin1, Utf8mb3, Utf8mb4};
    const fn padded(number: u16, name: &'static str, character_set: CharacterSet) -> Identity {
        Identity { number, name, character_set, pads: true }
    }
    const fn unpadded(number: u16, name: &'static str, character_set: CharacterSet) -> Identity {
        Identity { number, name, character_set, pads: false }
    }
    &[
        padded(5, "latin1_german1_ci", Latin1),
        padded(8, "latin1_swedish_ci", Latin1),
        padded(11, "ascii_general_ci", Ascii),
        padded(15, "latin1_danish_ci", Latin1),
        padded(31, "latin1_german2_ci", Latin1),
        padded(33, "utf8mb3_general_ci", Utf8mb3),
        padded(45, "utf8mb4_general_ci", Utf8mb4),
        padded(46, "utf8mb4_bin", Utf8mb4),
        padded(47, "latin1_bin", Latin1),
        padded(48, "latin1_general_ci", Latin1),
        padded(49, "latin1_general_cs", Latin1),
        unpadded(63, "binary", Binary),
        padded(65, "ascii_bin", Ascii),
        padded(83, "utf8mb3_bin", Utf8mb3),
        padded(94, "latin1_spanish_ci", Latin1),
        padded(192, "utf8mb3_unicode_ci", Utf8mb3),
        padded(214, "utf8mb3_unicode_520_ci", Utf8mb3),
        padded(224, "utf8mb4_unicode_ci", Utf8mb4),
        padded(225, "utf8mb4_icelandic_ci", Utf8mb4),
        padded(226, "utf8mb4_latvian_ci", Utf8mb4),
        padded(227, "utf8mb4_romanian_ci", Utf8mb4),
        padded(228, "utf8mb4_slovenian_ci", Utf8mb4),
        padded(229, "utf8mb4_polish_ci", Utf8mb4),
        padded(230, "utf8mb4_estonian_ci", Utf8mb4),
        padded(231, "utf8mb4_spanish_ci", Utf8mb4),
        padded(232, "utf8mb4_swedish_ci", Utf8mb4),
        padded(233, "utf8mb4_turkish_ci", Utf8mb4),
        padded(239, "utf8mb4_roman_ci", Utf8mb4),
        padded(241, "utf8mb4_esperanto_ci", Utf8mb4),
        padded(243, "utf8mb4_sinhala_ci", Utf8mb4),
        padded(244, "utf8mb4_german2_ci", Utf8mb4),
        padded(246, "utf8mb4_unicode_520_ci", Utf8mb4),
        padded(247, "utf8mb4_vietnamese_ci", Utf8mb4),
        unpadded(255, "utf8mb4_0900_ai_ci", Utf8mb4),
        unpadded(256, "utf8mb4_de_pb_0900_ai_ci", Utf8mb4),
        unpadded(257, "utf8mb4_is_0900_ai_ci", Utf8mb4),
        unpadded(258, "utf8mb4_lv_0900_ai_ci", Utf8mb4),
        unpadded(259, "utf8mb4_ro_0900_ai_ci", Utf8mb4),
        unpadded(260, "utf8mb4_sl_0900_ai_ci", Utf8mb4),
        unpadded(261, "utf8mb4_pl_0900_ai_ci", Utf8mb4),
        unpadded(262, "utf8mb4_et_0900_ai_ci", Utf8mb4),
        unpadded(263, "utf8mb4_es_0900_ai_ci", Utf8mb4),
        unpadded(264, "utf8mb4_sv_0900_ai_ci", Utf8mb4),
        unpadded(265, "utf8mb4_tr_0900_ai_ci", Utf8mb4),
        unpadded(266, "utf8mb4_cs_0900_ai_ci", Utf8mb4),
        unpadded(267, "utf8mb4_da_0900_ai_ci", Utf8mb4),
        unpadded(268, "utf8mb4_lt_0900_ai_ci", Utf8mb4),
        unpadded(269, "utf8mb4_sk_0900_ai_ci", Utf8mb4),
        unpadded(270, "utf8mb4_es_trad_0900_ai_ci", Utf8mb4),
        unpadded(271, "utf8mb4_la_0900_ai_ci", Utf8mb4),
        unpadded(273, "utf8mb4_eo_0900_ai_ci", Utf8mb4),
        unpadded(274, "utf8mb4_hu_0900_ai_ci", Utf8mb4),
        unpadded(275, "utf8mb4_hr_0900_ai_ci", Utf8mb4),
        unpadded(277, "utf8mb4_vi_0900_ai_ci", Utf8mb4),
        unpadded(278, "utf8mb4_0900_as_cs", Utf8mb4),
        unpadded(279, "utf8mb4_de_pb_0900_as_cs", Utf8mb4),
        unpadded(280, "utf8mb4_is_0900_as_cs", Utf8mb4),
        unpadded(281, "utf8mb4_lv_0900_as_cs", Utf8mb4),
        unpadded(282, "utf8mb4_ro_0900_as_cs", Utf8mb4),
        unpadded(283, "utf8mb4_sl_0900_as_cs", Utf8mb4),
        unpadded(284, "utf8mb4_pl_0900_as_cs", Utf8mb4),
        unpadded(285, "utf8mb4_et_0900_as_cs", Utf8mb4),
        unpadded(286, "utf8mb4_es_0900_as_cs", Utf8mb4),
        unpadded(287, "utf8mb4_sv_0900_as_cs", Utf8mb4),
        unpadded(288, "utf8mb4_tr_0900_as_cs", Utf8mb4),
        unpadded(289, "utf8mb4_cs_0900_as_cs", Utf8mb4),
        unpadded(290, "utf8mb4_da_0900_as_cs", Utf8mb4),
        unpadded(291, "utf8mb4_lt_0900_as_cs", Utf8mb4),
        unpadded(292, "utf8mb4_sk_0900_as_cs", Utf8mb4),
        unpadded(293, "utf8mb4_es_trad_0900_as_cs", Utf8mb4),
        unpadded(294, "utf8mb4_la_0900_as_cs", Utf8mb4),
        unpadded(296, "utf8mb4_eo_0900_as_cs", Utf8mb4),
        unpadded(297, "utf8mb4_hu_0900_as_cs", Utf8mb4),
        unpadded(298, "utf8mb4_hr_0900_as_cs", Utf8mb4),
        unpadded(300, "utf8mb4_vi_0900_as_cs", Utf8mb4),
        unpadded(303, "utf8mb4_ja_0900_as_cs", Utf8mb4),
        unpadded(304, "utf8mb4_ja_0900_as_cs_ks", Utf8mb4),
        unpadded(305, "utf8mb4_0900_as_ci", Utf8mb4),
        unpadded(306, "utf8mb4_ru_0900_ai_ci", Utf8mb4),
        unpadded(307, "utf8mb4_ru_0900_as_cs", Utf8mb4),
        unpadded(308, "utf8mb4_zh_0900_as_cs", Utf8mb4),
        unpadded(309, "utf8mb4_0900_bin", Utf8mb4),
        unpadded(310, "utf8mb4_nb_0900_ai_ci", Utf8mb4),
        unpadded(311, "utf8mb4_nb_0900_as_cs", Utf8mb4),
        unpadded(312, "utf8mb4_nn_0900_ai_ci", Utf8mb4),
        unpadded(313, "utf8mb4_nn_0900_as_cs", Utf8mb4),
        unpadded(314, "utf8mb4_sr_latn_0900_ai_ci", Utf8mb4),
        unpadded(315, "utf8mb4_sr_latn_0900_as_cs", Utf8mb4),
        unpadded(316, "utf8mb4_bs_0900_ai_ci", Utf8mb4),
        unpadded(317, "utf8mb4_bs_0900_as_cs", Utf8mb4),
        unpadded(318, "utf8mb4_bg_0900_ai_ci", Utf8mb4),
        unpadded(319, "utf8mb4_bg_0900_as_cs", Utf8mb4),
        unpadded(320, "utf8mb4_gl_0900_ai_ci", Utf8mb4),
        unpadded(321, "utf8mb4_gl_0900_as_cs", Utf8mb4),
        unpadded(322, "utf8mb4_mn_cyrl_0900_ai_ci", Utf8mb4),
        unpadded(323, "utf8mb4_mn_cyrl_0900_as_cs", Utf8mb4),
    ]
};

impl CollationId {
    /// Number 33: as number 45, for characters of at most three bytes.
    pub const UTF8MB3_GENERAL_CI: Self = Self(33);
    /// Number 45: case-insensitive with one weight per character; trailing spaces are ignored.
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    /// Number 46: code point order; trailing spaces are ignored.
    pub const UTF8MB4_BIN: Self = Self(46);
    /// Number 63: byte order.
    pub const BINARY: Self = Self(63);
    /// Number 233: as utf8mb4_unicode_ci, with i and dotless i as different letters, also in letter case.
    pub const UTF8MB4_TURKISH_CI: Self = Self(233);
    /// Number 255: accent- and case-insensitive by the Unicode collation algorithm 9.0.0; trailing spaces
    /// count.
    pub const UTF8MB4_0900_AI_CI: Self = Self(255);
    /// Number 309: code point order; trailing spaces count.
    pub const UTF8MB4_0900_BIN: Self = Self(309);
    /// The collation of a column without an explicit one.
    pub const DEFAULT: Self = Self::UTF8MB4_0900_AI_CI;
    /// All collations, by ascending number.
    pub const ALL: [Self; IDENTITIES.len()] = {
        let mut all = [Self::BINARY; IDENTITIES.len()];
        let mut at = 0;
        while at < all.len() {
            assert!(at == 0 || IDENTITIES[at - 1].number < IDENTITIES[at].number, "the numbers ascend");
            all[at] = Self(IDENTITIES[at].number);
            at += 1;
        }
        all
    };

    /// The collation with MySQL's `number`.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for another collation of MySQL,
    /// [`CollationLookupError::Unknown`] for a number that MySQL does not have.
    pub fn from_number(number: u16) -> Result<Self, CollationLookupError> {
        match IDENTITIES.binary_search_by_key(&number, |known| known.number) {
            Ok(_) => Ok(Self(number)),
            Err(_) if matches!(number, 1..=150 | 159..=323) => Err(CollationLookupError::Unsupported),
            Err(_) => Err(CollationLookupError::Unknown),
        }
    }

    /// The collation with this `name`, in any letter case. The prefix `utf8_` stands for `utf8mb3_`.
    ///
    /// # Errors
    /// [`CollationLookupError::Unsupported`] for a name in the form of MySQL's names, that is the name of a
    /// character set with an ending; [`CollationLookupError::Unknown`] for all others.
    pub fn from_name(name: &str) -> Result<Self, CollationLookupError> {
        let tail = |prefix: usize| name.get(prefix..).unwrap_or("");
        let is_alias = name.get(..5).is_some_and(|prefix| prefix.eq_ignore_ascii_case("utf8_"));
        let is_name = |known: &&Identity| match is_alias {
            true => known.name.strip_prefix("utf8mb3_").is_some_and(|known| known.eq_ignore_ascii_case(tail(5))),
            false => known.name.eq_ignore_ascii_case(name),
        };
        if let Some(known) = IDENTITIES.iter().find(is_name) {
            return Ok(Self(known.number));
        }
        let (set, ending) = name.split_once('_').unwrap_or((name, ""));
        let ends_well = ["ci", "cs", "bin", "w2"].iter().any(|end| {
            let at = ending.len().saturating_sub(end.len());
            ending.get(at..).is_some_and(|found| found.eq_ignore_ascii_case(end))
        });
        match CharacterSet::from_name(set) {
            Err(CollationLookupError::Unknown) => Err(CollationLookupError::Unknown),
            _ if ends_well => Err(CollationLookupError::Unsupported),
            _ => Err(CollationLookupError::Unknown),
        }
    }

    /// MySQL's number, as in the column definitions of the protocol.
    pub fn number(self) -> u16 {
        self.0
    }

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        self.identity().name
    }

    /// The character set that the collation orders.
    #[inline]
    pub fn character_set(self) -> CharacterSet {
        match self {
            Self::BINARY => CharacterSet::Binary,
            Self::UTF8MB4_0900_AI_CI | Self::UTF8MB4_GENERAL_CI | Self::UTF8MB4_BIN => CharacterSet::Utf8mb4,
            _ => self.identity().character_set,
        }
    }

    /// Whether this is the collation of bytes.
    #[inline]
    pub const fn is_binary(self) -> bool {
        self.0 == Self::BINARY.0
    }

    /// Whether only equal bytes are equal, apart from trailing spaces: the collation of bytes, and those
    /// whose names end with `_bin`.
    pub fn is_code_point_order(self) -> bool {
        matches!(self.0, 46 | 47 | 63 | 65 | 83 | 309)
    }

    /// Whether letters differ from their other case.
    pub fn is_case_sensitive(self) -> bool {
        self.is_code_point_order() || self.0 == 49 || self.name().contains("_as_cs")
    }

    /// Whether this is the default collation of its character set.
    pub fn is_default(self) -> bool {
        self.character_set().default_collation() == self
    }

    /// Whether trailing spaces are ignored in comparisons (MySQL's `PAD SPACE`).
    pub fn pads_with_spaces(self) -> bool {
        self.identity().pads
    }

    /// Bytes of the longest character.
    #[inline]
    pub fn max_bytes_per_character(self) -> usize {
        self.character_set().max_bytes_per_character()
    }

    fn identity(self) -> &'static Identity {
        let place = IDENTITIES.binary_search_by_key(&self.0, |known| known.number);
        &IDENTITIES[place.unwrap_or(0)]
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

impl fmt::Display for CollationLookupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unsupported => "not supported",
            Self::Unknown => "unknown",
        })
    }
}

impl Error for CollationLookupError {}
