//! `utf8mb4_<language>_0900_ai_ci`: the primary weights of `utf8mb4_0900_ai_ci` with the letters of a
//! language in its order.
//!
//! The rules are those of CLDR 30, on which MySQL's collations rest, in the notation of UTS #35: `<` puts a
//! letter after another one, all other relations keep its primary weights. As in MySQL, a letter that moves
//! gets the weights of the letter before it and one more weight, above those of all letters of the default
//! table. A composed letter whose base has moved moves with it; a letter with a combining mark after it does
//! not become the composed one. Languages with letters of several characters (ch, lj) are refused.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::character::decode;
use super::unicode_primary;

/// A language with rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Language(usize);

/// The number of each collation, and its rules.
const RULES: [(u16, &str); 14] = [
    (256, "&AE<<ä<<<Ä &OE<<ö<<<Ö &UE<<ü<<<Ü"),
    (
        257,
        "&[1]b<á<<<Á &d<<đ<<<Đ<ð<<<Ð &[1]f<é<<<É &[1]j<í<<<Í &[1]p<ó<<<Ó &[1]v<ú<<<Ú &[1]z<ý<<<Ý \
           &[1]ǀ<æ<<<Æ<<ä<<<Ä<ö<<<Ö<<ø<<<Ø<å<<<Å",
    ),
    (
        258,
        "&[1]D<č<<<Č &[1]H<ģ<<<Ģ &I<<y<<<Y &[1]L<ķ<<<Ķ &[1]M<ļ<<<Ļ &[1]O<ņ<<<Ņ &[1]S<ŗ<<<Ŗ &[1]T<š<<<Š \
           &[1]Ʒ<ž<<<Ž",
    ),
    (259, "&A<ă<<<Ă<â<<<Â &I<î<<<Î &S<ş=ș<<<Ş=Ș &T<ţ=ț<<<Ţ=Ț"),
    (260, "&C<č<<<Č<ć<<<Ć &D<đ<<<Đ &S<š<<<Š &Z<ž<<<Ž"),
    (261, "&A<ą<<<Ą &C<ć<<<Ć &E<ę<<<Ę &L<ł<<<Ł &N<ń<<<Ń &O<ó<<<Ó &S<ś<<<Ś &Z<ź<<<Ź<ż<<<Ż"),
    (262, "&[1]T<š<<<Š<z<<<Z<ž<<<Ž &[1]X<õ<<<Õ<ä<<<Ä<ö<<<Ö<ü<<<Ü"),
    (263, "&N<ñ<<<Ñ"),
    (
        264,
        "&D<<đ<<<Đ<<ð<<<Ð &th<<<þ &TH<<<Þ &Y<<ü<<<Ü<<ű<<<Ű \
           &[1]ǀ<å<<<Å<ä<<<Ä<<æ<<<Æ<<ę<<<Ę<ö<<<Ö<<ø<<<Ø<<ő<<<Ő<<œ<<<Œ<<ô<<<Ô",
    ),
    (265, "&C<ç<<<Ç &G<ğ<<<Ğ &[1]i<ı<<<I &i<<<İ &O<ö<<<Ö &S<ş<<<Ş &U<ü<<<Ü"),
    (271, "&I<<j<<<J &V<<u<<<U"),
    (273, "&C<ĉ<<<Ĉ &G<ĝ<<<Ĝ &H<ĥ<<<Ĥ &J<ĵ<<<Ĵ &S<ŝ<<<Ŝ &U<ŭ<<<Ŭ"),
    (277, "&a<ă<<<Ă<â<<<Â &d<đ<<<Đ &e<ê<<<Ê &o<ô<<<Ô<ơ<<<Ơ &u<ư<<<Ư"),
    (320, "&N<ñ<<<Ñ"),
];

/// The weight below those that make a letter follow another one: the greatest of the default table is one
/// less.
const FOLLOWING: u16 = 0x54A4;

/// Maximum number of key bytes of one character.
pub(super) const KEY_BYTES_PER_CHARACTER_MAX: usize = unicode_primary::KEY_BYTES_PER_CHARACTER_MAX;

type Tailoring = BTreeMap<u32, Box<[u16]>>;

impl Language {
    /// The language of the collation with this number.
    pub const fn of_number(number: u16) -> Option<Language> {
        let mut place = 0;
        while place < RULES.len() {
            if RULES[place].0 == number {
                return Some(Language(place));
            }
            place += 1;
        }
        None
    }

    /// The letters that have other weights than in the default table.
    fn tailoring(self) -> &'static Tailoring {
        static TAILORINGS: [OnceLock<Tailoring>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];
        TAILORINGS[self.0].get_or_init(|| tailoring_of(RULES[self.0].1))
    }
}

/// Whether two characters have the same weights.
pub(super) fn same_character(language: Language, left: u32, right: u32) -> bool {
    let tailoring = language.tailoring();
    left == right || weights_of(tailoring, left).eq(weights_of(tailoring, right))
}

/// The order of two texts.
pub(super) fn compare(language: Language, left: &[u8], right: &[u8]) -> Ordering {
    let tailoring = language.tailoring();
    weights(tailoring, left).cmp(weights(tailoring, right))
}

/// Appends the weight key of `text`.
pub(super) fn append_weight_key(language: Language, text: &[u8], out: &mut Vec<u8>) {
    for weight in weights(language.tailoring(), text) {
        out.extend_from_slice(&weight.to_be_bytes());
    }
}

fn weights<'t>(tailoring: &'static Tailoring, mut text: &'t [u8]) -> impl Iterator<Item = u16> + 't {
    let characters = std::iter::from_fn(move || {
        let (code, bytes) = decode(text)?;
        text = &text[bytes..];
        Some(code)
    });
    characters.flat_map(move |code| weights_of(tailoring, code))
}

fn weights_of(tailoring: &Tailoring, code: u32) -> impl Iterator<Item = u16> {
    let own = tailoring.get(&code);
    let default = own.is_none().then(|| unicode_primary::weights_of_character(code));
    own.into_iter().flat_map(|own| own.iter().copied()).chain(default.into_iter().flatten())
}

/// The weights of the letters that rules move, and of those that inherit their weights.
fn tailoring_of(rules: &str) -> Tailoring {
    let mut tailoring = Tailoring::new();
    let mut moved = Vec::new();
    for rule in rules.split('&').map(str::trim).filter(|rule| !rule.is_empty()) {
        let start = rule.find(['<', '=']).unwrap_or(rule.len());
        let (reset, mut relations) = rule.split_at(start);
        let before = reset.strip_prefix("[1]");
        let mut base: Vec<u16> = Vec::new();
        for letter in before.unwrap_or(reset).chars() {
            base.extend(weights_of(&tailoring, letter.into()));
        }
        if let (Some(_), Some(last)) = (before, base.last_mut()) {
            *last -= 1;
        }
        let mut steps = 0;
        while let Some(at) = relations.find(|sign| !matches!(sign, '<' | '=')) {
            steps += u16::from(&relations[..at] == "<");
            let Some(letter) = relations[at..].chars().next() else { break };
            let following = (steps > 0).then_some(FOLLOWING + steps);
            tailoring.insert(letter.into(), base.iter().copied().chain(following).collect());
            moved.push(letter);
            relations = &relations[at + letter.len_utf8()..];
        }
    }
    let mut inherited = Vec::new();
    for origin in &moved {
        let own = [*origin];
        let parts = decompositions().find(|(composed, _)| composed == origin);
        let parts = parts.map_or(own.to_vec(), |(_, parts)| parts.chars().collect());
        for (composed, of_composed) in decompositions() {
            let is_known = moved.contains(&composed) || inherited.iter().any(|(known, _)| *known == composed);
            if !is_known && is_with_more_marks(&parts, of_composed) {
                inherited.push((composed, *origin));
            }
        }
    }
    for (composed, origin) in inherited {
        let weights = tailoring[&u32::from(origin)].clone();
        tailoring.insert(composed.into(), weights);
    }
    tailoring
}

/// The composed letters of Latin, each with its letter and combining marks.
fn decompositions() -> impl Iterator<Item = (char, &'static str)> {
    let lines = include_str!("tables/latin_decompositions.txt").lines();
    lines.filter_map(|line| {
        let composed = line.chars().next()?;
        Some((composed, &line[composed.len_utf8()..]))
    })
}

/// Whether a composed letter consists of these parts and more marks, of which none blocks one of the parts.
fn is_with_more_marks(parts: &[char], composed: &str) -> bool {
    let mut own = parts.iter().peekable();
    let mut others = composed.chars();
    if own.next().copied() != others.next() {
        return false;
    }
    for mark in others {
        match own.peek() {
            None => return true,
            Some(wanted) if **wanted == mark => _ = own.next(),
            Some(wanted) if combining_class(**wanted) == combining_class(mark) => return false,
            Some(_) => {}
        }
    }
    own.peek().is_none()
}

/// The canonical combining class of a mark in the decompositions.
fn combining_class(mark: char) -> u8 {
    match mark {
        '\u{31B}' => 216,
        '\u{327}' | '\u{328}' => 202,
        '\u{323}'..='\u{326}' | '\u{329}'..='\u{333}' => 220,
        _ => 230,
    }
}
