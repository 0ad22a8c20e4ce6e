//! Ideographs in the order of a language, with the other scripts around them.

use super::scripts::{Moved, first_weight, placed};
use super::tailoring::Base;
use super::unicode_primary;

/// Bits of a code point within a page.
const PAGE_BITS: u32 = 8;
/// Pages up to the last one with ideographs of CLDR 30, U+2CEFF.
const PAGES: usize = 0x2CF;
/// The least weight that another one follows: the first half of an implicit weight.
const HALVES_FIRST: u16 = 0xFB00;
/// The halves of unified ideographs, of the main block and of all extensions, with the bits of the code that
/// they stand for.
const IDEOGRAPH_HALVES: [(u16, u32); 5] = [(0xFB40, 0), (0xFB41, 1), (0xFB80, 0), (0xFB84, 4), (0xFB85, 5)];
/// Bits of a code in the second half of an implicit weight.
const SECOND_BITS: u32 = 15;
/// The last weight of the default table.
const LAST: u16 = 0x54A3;

/// A table of primary weights in which each ideograph of a list has one.
#[derive(Debug)]
pub(super) struct Ideographs {
    /// The pages of the ideographs, as numbers in `ranks`; 0 is empty.
    index: Vec<u16>,
    /// The weights, a page behind the other; 0 for characters that have no place in the order.
    weights: Vec<u16>,
    moved: Vec<Moved>,
}

impl Base for Ideographs {
    /// Above all weights of ideographs and scripts.
    const FOLLOWING: u16 = 0xFE00;

    fn primary(&self, code: u32) -> impl Iterator<Item = u16> {
        let mut own = self.weight(code);
        let mut default = own.is_none().then(|| unicode_primary::weights_of_character(code)).into_iter().flatten();
        let mut second = None;
        std::iter::from_fn(move || {
            if let Some(weight) = own.take().or_else(|| second.take()) {
                return Some(weight);
            }
            let weight = default.next()?;
            if weight < HALVES_FIRST {
                return Some(placed(&self.moved, weight));
            }
            second = default.next();
            // A form of an ideograph, such as one in a circle, has the weight of the ideograph.
            let ranked = second.and_then(|second| self.weight(code_of(weight, second)?));
            if ranked.is_some() {
                second = None;
            }
            Some(ranked.unwrap_or_else(|| placed(&self.moved, weight)))
        })
    }
}

impl Ideographs {
    /// Japanese: Latin letters, kana, the ideographs of the list, the others, then all other scripts.
    pub fn japanese(order: &str) -> Ideographs {
        let (greek, kana, bopomofo) = (first_weight('α'), first_weight('あ'), first_weight('ㄅ'));
        let first = greek + (bopomofo - kana);
        let mut table = Ideographs::of(order, first);
        let mut next = table.place_others(first + order.chars().count() as u16);
        table.move_to(greek, kana - 1, &mut next);
        table.move_to(bopomofo, LAST, &mut next);
        table.moved.push((kana, bopomofo - 1, i32::from(greek) - i32::from(kana)));
        table
    }

    /// Chinese: the ideographs of the list, the others, then all scripts.
    pub fn chinese(order: &str) -> Ideographs {
        let latin = first_weight('a');
        let mut table = Ideographs::of(order, latin);
        let mut next = table.place_others(latin + order.chars().count() as u16);
        table.move_to(latin, LAST, &mut next);
        table
    }

    /// A table that gives the ideographs ascending weights.
    fn of(order: &str, first: u16) -> Ideographs {
        let mut table = Ideographs { index: vec![0; PAGES], weights: vec![0; 1 << PAGE_BITS], moved: Vec::new() };
        for (ideograph, weight) in order.chars().zip(first..) {
            table.insert(ideograph.into(), weight);
        }
        table
    }

    fn insert(&mut self, code: u32, weight: u16) {
        let page = &mut self.index[(code >> PAGE_BITS) as usize];
        if *page == 0 {
            *page = (self.weights.len() >> PAGE_BITS) as u16;
            self.weights.resize(self.weights.len() + (1 << PAGE_BITS), 0);
        }
        let place = usize::from(*page) << PAGE_BITS | place_in_page(code);
        self.weights[place] = weight;
    }

    /// The weight of an ideograph of the list.
    #[inline]
    fn weight(&self, code: u32) -> Option<u16> {
        let page = *self.index.get((code >> PAGE_BITS) as usize)?;
        let weight = self.weights[usize::from(page) << PAGE_BITS | place_in_page(code)];
        (weight != 0).then_some(weight)
    }

    /// Gives the first halves of all other ideographs weights from `next` on. Returns the weight after them.
    fn place_others(&mut self, mut next: u16) -> u16 {
        for (half, _) in IDEOGRAPH_HALVES {
            self.move_to(half, half, &mut next);
        }
        next
    }

    /// Moves a range to `next`, which becomes the weight after it.
    fn move_to(&mut self, first: u16, last: u16, next: &mut u16) {
        self.moved.push((first, last, i32::from(*next) - i32::from(first)));
        *next += last - first + 1;
    }
}

fn place_in_page(code: u32) -> usize {
    (code & ((1 << PAGE_BITS) - 1)) as usize
}

/// The ideograph with this implicit weight.
fn code_of(first: u16, second: u16) -> Option<u32> {
    let (_, high) = IDEOGRAPH_HALVES.iter().find(|(half, _)| *half == first)?;
    Some(high << SECOND_BITS | u32::from(second) & ((1 << SECOND_BITS) - 1))
}
