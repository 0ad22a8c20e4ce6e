//! `utf8mb4_ja_0900_as_cs`, `utf8mb4_ja_0900_as_cs_ks` and `utf8mb4_zh_0900_as_cs`: the weights of
//! `utf8mb4_0900_as_cs` with the ideographs in the order of JIS X 0208 or of pinyin.
//!
//! The orders and the rules are those of CLDR 30 (`tables/ja.txt`, `tables/zh.txt`), read at the first use
//! of a collation. In Japanese, hiragana and katakana have the same weights in three levels. The fourth,
//! which only `_ks` has, puts hiragana first. A mark of length or of iteration has weights by the kana
//! before it.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::character::decode;
use super::ideographs::Ideographs;
use super::language::{self, LEVELS};
use super::tailoring::Tailoring;
use super::unicode_levels::{self, SEPARATOR_BYTES};

/// A collation with an order of ideographs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EastAsian {
    Japanese,
    /// Sensitive to the kind of kana.
    JapaneseKana,
    Chinese,
}

/// The weights of the fourth level.
const HIRAGANA: u8 = 2;
const KATAKANA: u8 = 8;

/// The wide forms of ASCII, and the distance to them. In Japanese they are equal.
const WIDE: std::ops::RangeInclusive<u32> = 0xFF01..=0xFF5E;
const TO_WIDE: u32 = 0xFEE0;
/// The wide forms of the space: U+3000 and the wide macron.
const WIDE_SPACES: [u32; 2] = [0x3000, 0xFFE3];

/// The first unified ideograph.
const UNIFIED_FIRST: u32 = 0x3400;

impl EastAsian {
    /// The collation with this number.
    pub const fn of_number(number: u16) -> Option<EastAsian> {
        match number {
            303 => Some(EastAsian::Japanese),
            304 => Some(EastAsian::JapaneseKana),
            308 => Some(EastAsian::Chinese),
            _ => None,
        }
    }

    /// Maximum number of key bytes of one character, without the marks between levels.
    pub fn key_bytes_per_character_max(self) -> usize {
        unicode_levels::KEY_BYTES_PER_CHARACTER_MAX + usize::from(self.has_kana_level())
    }

    /// The bytes between the levels of a key.
    pub fn separator_bytes(self) -> usize {
        (LEVELS.len() + usize::from(self.has_kana_level())) * SEPARATOR_BYTES
    }

    fn has_kana_level(self) -> bool {
        self == EastAsian::JapaneseKana
    }

    fn tailoring(self) -> &'static Tailoring<Ideographs> {
        static JAPANESE: OnceLock<Tailoring<Ideographs>> = OnceLock::new();
        static CHINESE: OnceLock<Tailoring<Ideographs>> = OnceLock::new();
        match self {
            EastAsian::Japanese | EastAsian::JapaneseKana => JAPANESE.get_or_init(|| {
                let (rules, order) = rules_and_order(include_str!("tables/ja.txt"));
                let mut tailoring = Tailoring::of(&rules, Ideographs::japanese(&order), false);
                for wide in WIDE {
                    tailoring.set_equal(wide, wide - TO_WIDE);
                }
                for wide in WIDE_SPACES {
                    tailoring.set_equal(wide, ' '.into());
                }
                tailoring
            }),
            EastAsian::Chinese => CHINESE.get_or_init(|| {
                let (rules, order) = rules_and_order(include_str!("tables/zh.txt"));
                let mut tailoring = Tailoring::of(&rules, Ideographs::chinese(&order), false);
                // In the default table, radicals are forms of ideographs. Here they are ideographs.
                let radicals = order.chars().map(u32::from).filter(|code| *code < UNIFIED_FIRST);
                radicals.for_each(|radical| tailoring.set_common(radical));
                tailoring
            }),
        }
    }
}

/// The rules of a table, and its ideographs.
fn rules_and_order(table: &str) -> (String, String) {
    table.lines().partition(|line| line.starts_with('&'))
}

/// Whether two characters have the same weights.
pub(super) fn same_character(collation: EastAsian, left: u32, right: u32) -> bool {
    let same_kana = || !collation.has_kana_level() || kana_weight(left) == kana_weight(right);
    language::have_same_weights(collation.tailoring(), &LEVELS, left, right) && same_kana()
}

/// The order of two texts.
pub(super) fn compare(collation: EastAsian, left: &[u8], right: &[u8]) -> Ordering {
    let order = language::compare_levels(collation.tailoring(), &LEVELS, left, right);
    if collation.has_kana_level() { order.then_with(|| kana_weights(left).cmp(kana_weights(right))) } else { order }
}

/// Appends the weight key of `text`.
pub(super) fn append_weight_key(collation: EastAsian, text: &[u8], out: &mut Vec<u8>) {
    language::append_levels(collation.tailoring(), &LEVELS, text, out);
    if collation.has_kana_level() {
        out.extend_from_slice(&[0; SEPARATOR_BYTES]);
        out.extend(kana_weights(text));
    }
}

/// Appends the primary weights that all texts have whose first characters have those of `prefix`, one by one.
pub(super) fn append_prefix_key(collation: EastAsian, prefix: &[u8], out: &mut Vec<u8>) {
    language::append_prefix_weights(collation.tailoring(), prefix, out);
}

/// The weights of the fourth level. The marks of length have none: the kana before them decides.
fn kana_weights(mut text: &[u8]) -> impl Iterator<Item = u8> {
    let characters = std::iter::from_fn(move || {
        let (code, bytes) = decode(text)?;
        text = &text[bytes..];
        Some(code)
    });
    characters.filter_map(kana_weight)
}

fn kana_weight(code: u32) -> Option<u8> {
    match code {
        0x3041..=0x3096 | 0x309D..=0x309F => Some(HIRAGANA),
        0x30A1..=0x30FA | 0x30FD..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF6F | 0xFF71..=0xFF9D => Some(KATAKANA),
        _ => None,
    }
}
