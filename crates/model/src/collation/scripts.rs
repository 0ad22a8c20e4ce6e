//! The default table with scripts in the order of a language.

use super::language_rules::Order;
use super::tailoring::Base;
use super::unicode_primary;

/// A range of primary weights that has another place: first, last, and the distance.
pub(super) type Moved = (u16, u16, i32);

/// The primary weights of the default table, of which some scripts have another place.
#[derive(Debug)]
pub(super) struct Scripts(Vec<Moved>);

impl Base for Scripts {
    /// The greatest weight of the default table.
    const FOLLOWING: u16 = 0x54A4;

    #[inline]
    fn primary(&self, code: u32) -> impl Iterator<Item = u16> {
        unicode_primary::weights_of_character(code).map(|weight| self.placed(weight))
    }
}

impl Scripts {
    /// The scripts in this order. In the default table, Latin letters are followed by the Greek, the
    /// Coptic, the Cyrillic and the Glagolitic ones.
    pub fn of(order: Order) -> Scripts {
        let (cyrillic, end) = (first_weight('а'), first_weight('ⰰ'));
        let start = match order {
            Order::Default | Order::CapitalsFirst => return Scripts(Vec::new()),
            Order::CyrillicFirst => first_weight('a'),
            Order::CyrillicAfterLatin => first_weight('α'),
        };
        let (length, distance) = (i32::from(end - cyrillic), i32::from(cyrillic - start));
        Scripts(vec![(start, cyrillic - 1, length), (cyrillic, end - 1, -distance)])
    }

    /// A primary weight of the default table, at the place of its script.
    #[inline]
    fn placed(&self, weight: u16) -> u16 {
        if self.0.is_empty() { weight } else { placed(&self.0, weight) }
    }
}

/// A primary weight after the move of ranges.
#[inline]
pub(super) fn placed(ranges: &[Moved], weight: u16) -> u16 {
    let moved = ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&weight));
    moved.map_or(weight, |(.., distance)| (i32::from(weight) + distance) as u16)
}

/// The first primary weight of a letter in the default table.
pub(super) fn first_weight(letter: char) -> u16 {
    unicode_primary::weights_of_character(letter.into()).next().unwrap_or_default()
}
