//! `utf8mb4_<language>_ci`: the primary weights of `utf8mb4_unicode_ci` with the letters of a language in its
//! order, padded with spaces. The weights are those of MariaDB, which has them from MySQL.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::padded_units::{UNITS_MAX, Units};
use super::unicode_padded::Version;

/// The numbers of the collations, in the order of the table.
const NUMBERS: [u16; 14] = [225, 226, 227, 228, 229, 230, 231, 232, 233, 239, 241, 243, 244, 247];

/// A language, as its position in the table.
#[derive(Clone, Copy)]
pub(super) struct PaddedLanguage(usize);

/// The units of the letters that differ from those of `utf8mb4_unicode_ci`.
type Letters = BTreeMap<u32, Box<[u32]>>;

impl PaddedLanguage {
    /// The language of the collation with this number.
    pub fn of_number(number: u16) -> Option<PaddedLanguage> {
        NUMBERS.iter().position(|known| *known == number).map(PaddedLanguage)
    }

    fn letters(self) -> &'static Letters {
        static LANGUAGES: OnceLock<Vec<Letters>> = OnceLock::new();
        &LANGUAGES.get_or_init(read_table)[self.0]
    }
}

impl Units for PaddedLanguage {
    fn of(self, code: u32, buffer: &mut [u32; UNITS_MAX]) -> usize {
        let Some(units) = self.letters().get(&code) else { return Version::Four.of(code, buffer) };
        buffer[..units.len()].copy_from_slice(units);
        units.len()
    }
}

/// Reads the table: a line with the number of each language, then one for each letter, with its code and its
/// weights.
fn read_table() -> Vec<Letters> {
    let mut languages: Vec<Letters> = Vec::new();
    for line in include_str!("tables/unicode_400_languages.txt").lines() {
        if line.starts_with('#') {
            languages.push(Letters::new());
            continue;
        }
        let mut numbers = line.split(' ').filter_map(|digits| u32::from_str_radix(digits, 16).ok());
        if let (Some(letters), Some(code)) = (languages.last_mut(), numbers.next()) {
            letters.insert(code, numbers.map(|weight| weight - Version::Four.offset()).collect());
        }
    }
    languages.resize_with(NUMBERS.len(), Letters::new);
    languages
}
