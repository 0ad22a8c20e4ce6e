//! The weights of the letters that the rules of a language move.

use std::collections::{BTreeMap, BTreeSet};

use super::character::decode;
use super::unicode_levels::{self, Level};

/// The weights below those that make a letter follow another one, in the second and the third level. The
/// greatest of the default table is less.
const FOLLOWING: [u16; 2] = [0x0125, 0x0020];
/// The weights of a level that differs only in a level above it.
const COMMON: [u16; 3] = [0, 0x20, 2];

/// The tertiary weights of capitals, in the order of the default table.
const CAPITALS: [u16; 9] = [8, 9, 0xA, 0xB, 0xC, 0xE, 0x11, 0x12, 0x1D];
/// Where capitals sort first, one of these is added to a tertiary weight: for capitals, for letters of both
/// cases, and for all others.
const CASES: [u16; 3] = [0x100, 0x200, 0x300];

/// The letters of East Asia begin here. None of them is a part of a composed letter of Latin.
const EAST_ASIAN_FIRST: char = '\u{2E80}';

/// The weights of a letter in each level.
type Weights = [Vec<u16>; 3];

/// The primary weights of the characters that no rule moves.
pub(super) trait Base {
    /// The weight below those that make a letter follow another one.
    const FOLLOWING: u16;

    /// The primary weights of a character.
    fn primary(&self, code: u32) -> impl Iterator<Item = u16>;
}

/// The letters of a language whose weights differ from the default ones.
#[derive(Debug)]
pub(super) struct Tailoring<B> {
    base: B,
    letters: BTreeMap<u32, Weights>,
    /// The letters of several characters, by their first character; the longest first.
    sequences: BTreeMap<u32, Vec<(Vec<u32>, Weights)>>,
    /// Which characters of ASCII have an entry.
    ascii: u128,
    /// The primary weights of the characters before which the common prefix of keys ends.
    ends_of_prefixes: BTreeSet<Vec<u16>>,
    capitals_first: bool,
}

/// A part of a text.
#[derive(Clone, Copy)]
pub(super) enum Unit<'t> {
    /// A character.
    Character(u32),
    /// A letter of several characters.
    Sequence(&'t Weights),
}

impl<B: Base> Tailoring<B> {
    /// The letters by these rules.
    pub fn of(rules: &str, base: B, capitals_first: bool) -> Tailoring<B> {
        let mut tailoring = Tailoring {
            base,
            letters: BTreeMap::new(),
            sequences: BTreeMap::new(),
            ascii: 0,
            ends_of_prefixes: BTreeSet::new(),
            capitals_first,
        };
        let mut moved = Vec::new();
        for rule in rules.split('&').map(str::trim).filter(|rule| !rule.is_empty()) {
            tailoring.apply(rule, &mut moved);
        }
        tailoring.inherit(&moved);
        tailoring
    }

    /// Gives a character the weights below the first level that most characters have.
    pub fn set_common(&mut self, code: u32) {
        let primary = self.weights_of(Unit::Character(code), None).collect();
        self.letters.insert(code, [primary, vec![COMMON[1]], vec![COMMON[2]]]);
    }

    /// Gives a character the weights of another one.
    pub fn set_equal(&mut self, code: u32, other: u32) {
        let levels = [None, Some(Level::Accents), Some(Level::Case)];
        let weights = levels.map(|level| self.weights_of(Unit::Character(other), level).collect());
        self.letters.insert(code, weights);
    }

    /// The weights of a text in a level; in the first for `None`.
    pub fn weights<'t>(&'t self, mut text: &'t [u8], level: Option<Level>) -> impl Iterator<Item = u16> + 't {
        let units = std::iter::from_fn(move || {
            let (unit, bytes) = self.unit(text)?;
            text = &text[bytes..];
            Some(unit)
        });
        units.flat_map(move |unit| self.weights_of(unit, level))
    }

    /// The weights of a part of a text.
    #[inline]
    pub fn weights_of<'t>(&'t self, unit: Unit<'t>, level: Option<Level>) -> impl Iterator<Item = u16> + 't {
        let place = level.map_or(0, place_of);
        let (own, default) = match unit {
            Unit::Sequence(weights) => (Some(&weights[place]), None),
            Unit::Character(code) => match self.letter(code) {
                Some(weights) => (Some(&weights[place]), None),
                None => (None, Some(code)),
            },
        };
        let primary = default.filter(|_| level.is_none()).map(|code| self.base.primary(code));
        let lower = default.zip(level).map(|(code, level)| unicode_levels::weights_of_character(code, level));
        let primary = primary.into_iter().flatten();
        let lower = lower.into_iter().flatten().map(move |weight| self.by_case(weight, level));
        own.into_iter().flatten().copied().chain(primary).chain(lower)
    }

    /// Whether the common prefix of keys ends before a character: a letter of several characters may begin
    /// with it, or with one of its weights, or it may end one.
    pub fn ends_prefix(&self, code: u32) -> bool {
        let weights = || self.weights_of(Unit::Character(code), None);
        self.ends_of_prefixes.iter().any(|known| weights().eq(known.iter().copied()))
    }

    #[inline]
    fn letter(&self, code: u32) -> Option<&Weights> {
        if code < 128 && self.ascii >> code & 1 == 0 { None } else { self.letters.get(&code) }
    }

    /// The part at the start of a text, and its bytes.
    #[inline]
    fn unit<'t>(&'t self, text: &[u8]) -> Option<(Unit<'t>, usize)> {
        let (code, bytes) = decode(text)?;
        if self.sequences.is_empty() || code < 128 && self.ascii >> code & 1 == 0 {
            return Some((Unit::Character(code), bytes));
        }
        let sequence = self.sequence(code, &text[bytes..]);
        Some(sequence.map_or((Unit::Character(code), bytes), |(weights, more)| (Unit::Sequence(weights), bytes + more)))
    }

    /// The longest letter with these first characters, and the bytes behind the first character.
    fn sequence(&self, first: u32, rest: &[u8]) -> Option<(&Weights, usize)> {
        self.sequences.get(&first)?.iter().find_map(|(others, weights)| {
            let mut at = 0;
            for wanted in others {
                let (code, bytes) = decode(&rest[at..])?;
                if code != *wanted {
                    return None;
                }
                at += bytes;
            }
            Some((weights, at))
        })
    }

    /// A secondary or tertiary weight of the default table; a tertiary one by the case of its letter where
    /// capitals are first.
    #[inline]
    fn by_case(&self, weight: u16, level: Option<Level>) -> u16 {
        match self.capitals_first && level == Some(Level::Case) {
            true if CAPITALS.contains(&weight) => weight | CASES[0],
            true => weight | CASES[2],
            false => weight,
        }
    }

    /// The weights of letters, one behind the other.
    fn weights_of_letters(&self, letters: &str) -> Weights {
        [None, Some(Level::Accents), Some(Level::Case)].map(|level| self.weights(letters.as_bytes(), level).collect())
    }

    /// Gives the letters of a rule their weights. Adds the single characters among them to `moved`.
    fn apply(&mut self, rule: &str, moved: &mut Vec<char>) {
        let is_sign = |sign: char| matches!(sign, '<' | '=');
        let (reset, mut relations) = rule.split_at(rule.find(is_sign).unwrap_or(rule.len()));
        let before = ["[1]", "[2]", "[3]"].iter().position(|sign| reset.starts_with(sign));
        let mut base = self.weights_of_letters(before.map_or(reset, |_| &reset[3..]).trim());
        if let Some(last) = before.and_then(|level| base[level].last_mut()) {
            *last -= 1;
        }
        // The number of steps in each level since the last one in a level above it.
        let mut steps = [0u16; 3];
        while let Some(at) = relations.find(|sign| !is_sign(sign)) {
            let level = relations[..at].len();
            if !relations.starts_with('=') {
                steps[level - 1] += 1;
                steps[level..].fill(0);
            }
            let end = relations[at..].find(is_sign).map_or(relations.len(), |end| at + end);
            let (letter, addition) = relations[at..end].split_once('/').unwrap_or((&relations[at..end], ""));
            let (context, letter) = letter.split_once('|').unwrap_or(("", letter));
            let (context, letter) = (context.trim(), letter.trim());
            let weights = self.following(&base, steps, letter, addition.trim());
            match context {
                "" => self.insert(letter, weights, moved),
                _ => self.insert_in_context(context, letter, weights),
            }
            relations = &relations[end..];
        }
    }

    /// The weights of a letter that follows another one by these steps.
    fn following(&self, base: &Weights, steps: [u16; 3], letter: &str, addition: &str) -> Weights {
        let mut weights = base.clone();
        let following = [B::FOLLOWING, FOLLOWING[0], FOLLOWING[1]];
        for (level, count) in steps.into_iter().enumerate() {
            if count == 0 {
                continue;
            }
            weights[level].push(following[level] + count);
            for lower in level + 1..weights.len() {
                weights[lower].push(COMMON[lower]);
            }
        }
        if self.capitals_first {
            let capitals = letter.chars().filter(|letter| letter.is_uppercase()).count();
            let case = if capitals == 0 { 2 } else { usize::from(capitals < letter.chars().count()) };
            if let Some(first) = weights[2].first_mut() {
                *first = *first & 0xFF | CASES[case];
            }
        }
        for (own, added) in weights.iter_mut().zip(self.weights_of_letters(addition)) {
            own.extend(added);
        }
        weights
    }

    fn insert(&mut self, letter: &str, weights: Weights, moved: &mut Vec<char>) {
        let mut characters = letter.chars();
        let Some(first) = characters.next() else { return };
        let others: Vec<u32> = characters.map(u32::from).collect();
        if first.is_ascii() {
            self.ascii |= 1 << u32::from(first);
        }
        if others.is_empty() {
            if first < EAST_ASIAN_FIRST {
                moved.push(first);
            }
            self.letters.insert(first.into(), weights);
            return;
        }
        let separate: Vec<u16> = letter.chars().flat_map(|part| self.primary_of(part)).collect();
        if weights[0] != separate {
            self.ends_of_prefixes.insert(self.primary_of(first));
        }
        self.insert_sequence(first, others, weights);
    }

    /// Gives a letter these weights where it follows a context, which keeps its own.
    fn insert_in_context(&mut self, context: &str, letter: &str, weights: Weights) {
        let mut all = self.weights_of_letters(context);
        for (all, own) in all.iter_mut().zip(weights) {
            all.extend(own);
        }
        self.ends_of_prefixes.extend(letter.chars().next().map(|first| self.primary_of(first)));
        let mut characters = context.chars();
        let Some(first) = characters.next() else { return };
        self.insert_sequence(first, characters.chain(letter.chars()).map(u32::from).collect(), all);
    }

    fn insert_sequence(&mut self, first: char, others: Vec<u32>, weights: Weights) {
        let sequences = self.sequences.entry(first.into()).or_default();
        sequences.retain(|(known, _)| *known != others);
        sequences.push((others, weights));
        sequences.sort_by_key(|(others, _)| std::cmp::Reverse(others.len()));
    }

    /// The primary weights of a character on its own.
    fn primary_of(&self, letter: char) -> Vec<u16> {
        self.weights_of(Unit::Character(letter.into()), None).collect()
    }

    /// Gives composed letters the weights of the letter of the language that they contain, and of their other
    /// marks.
    fn inherit(&mut self, moved: &[char]) {
        let mut inherited: Vec<(char, Weights)> = Vec::new();
        let is_mark = |letter: char| !letter.is_alphabetic();
        let marks: Vec<char> = moved.iter().copied().filter(|letter| is_mark(*letter)).collect();
        let own = |letter: char| {
            let parts = decompositions().find(|(composed, _)| *composed == letter);
            parts.map_or(vec![letter], |(_, parts)| parts.chars().collect())
        };
        for origin in moved.iter().filter(|letter| !is_mark(**letter)) {
            let parts = own(*origin);
            for (composed, of_composed) in decompositions() {
                let is_known = moved.contains(&composed) || inherited.iter().any(|(known, _)| *known == composed);
                if is_known {
                    continue;
                }
                if let Some(more) = more_marks(&parts, of_composed) {
                    let origin = origin.to_string();
                    inherited.push((composed, self.weights_of_letters(&(origin + &more))));
                }
            }
        }
        for (composed, parts) in decompositions() {
            let is_known = moved.contains(&composed) || inherited.iter().any(|(known, _)| *known == composed);
            if !is_known && parts.chars().any(|part| marks.contains(&part)) {
                inherited.push((composed, self.weights_of_letters(parts)));
            }
        }
        for (composed, weights) in inherited {
            self.letters.insert(composed.into(), weights);
        }
    }
}

fn place_of(level: Level) -> usize {
    match level {
        Level::Accents => 1,
        Level::Case => 2,
    }
}

/// The composed letters of Latin, each with its letter and combining marks.
fn decompositions() -> impl Iterator<Item = (char, &'static str)> {
    let lines = include_str!("tables/latin_decompositions.txt").lines();
    lines.filter_map(|line| {
        let composed = line.chars().next()?;
        Some((composed, &line[composed.len_utf8()..]))
    })
}

/// The marks that a composed letter has besides these parts; `None` if it lacks one of the parts, or has a
/// mark that blocks one of the parts.
fn more_marks(parts: &[char], composed: &str) -> Option<String> {
    let mut own = parts.iter().peekable();
    let mut others = composed.chars();
    if own.next().copied() != others.next() {
        return None;
    }
    let mut more = String::new();
    for mark in others {
        match own.peek() {
            Some(wanted) if **wanted == mark => _ = own.next(),
            Some(wanted) if combining_class(**wanted) == combining_class(mark) => return None,
            _ => more.push(mark),
        }
    }
    // A letter with the same parts is another form of it, such as the sign of the ångström.
    own.peek().is_none().then_some(more)
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
