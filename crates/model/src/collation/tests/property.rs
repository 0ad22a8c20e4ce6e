use std::cmp::Ordering;

use proptest::prelude::*;

use super::key;
use crate::collation::latin1::Latin1;
use crate::collation::padded_language::PaddedLanguage;
use crate::collation::padded_units::{UNITS_MAX, Units};
use crate::collation::unicode_levels::{self, Level};
use crate::collation::unicode_padded::Version;
use crate::collation::{CharacterSet, CollationId, character, general_ci};

/// Characters that some collation treats specially.
const PARTICULAR: [&str; 68] = [
    " ",
    " ",
    " ",
    "  ",
    "\u{1f}",
    "\u{1e}",
    "\t",
    "\0",
    "!",
    "a",
    "A",
    "b",
    "B",
    "z",
    "_",
    "7",
    "á",
    "Å",
    "ß",
    "s",
    "æ",
    "e",
    "½",
    "Ⅷ",
    "v",
    "\u{301}",
    "\u{200b}",
    "가",
    "\u{1100}",
    "\u{11a8}",
    "一",
    "㐀",
    "𠀀",
    "😀",
    "😁",
    "\u{fffd}",
    "\u{fffe}",
    "\u{fdfa}",
    "l\u{b7}",
    "เก",
    "ä",
    "€",
    "ü",
    "\u{81}",
    "c",
    "ch",
    "Ch",
    "ddzs",
    "lj",
    "ǈ",
    "я",
    "\u{307}\u{300}",
    "か",
    "ガ",
    "ｱ",
    "ー",
    "ゝ",
    "ヾ",
    "々",
    "亜",
    "亞",
    "\u{f900}",
    "㈠",
    "重庆",
    "重",
    "m\u{304}",
    "ê\u{30c}",
    "ā",
];

/// Texts of valid and invalid characters. Their pieces come from a small set, so that two texts often have
/// equal parts.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(&PARTICULAR[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        2 => any::<char>().prop_map(|letter| letter.to_string().into_bytes()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => "[ -~]{8,20}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// Two texts that are unrelated, share a prefix, or differ only in letter case and trailing spaces.
fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    prop_oneof![
        (text(), text()),
        (text(), text(), text())
            .prop_map(|(start, left, right)| ([&start[..], &left].concat(), [start, right].concat())),
        (text(), 0..3_usize).prop_map(|(left, spaces)| {
            let right = [left.to_ascii_uppercase(), vec![b' '; spaces]].concat();
            (left, right)
        }),
    ]
}

/// The order by definition, from the weights of single characters.
fn expected(collation: CollationId, left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (weights(collation, left), weights(collation, right));
    if collation.pads_with_spaces() {
        let length = left.len().max(right.len());
        let space = weights(collation, b" ")[0];
        left.resize(length, space);
        right.resize(length, space);
    }
    left.cmp(&right)
}

fn weights(collation: CollationId, text: &[u8]) -> Vec<u32> {
    let units = |units: &dyn Fn(u32, &mut [u32; UNITS_MAX]) -> usize| {
        let of_character = |code| {
            let mut buffer = [0; UNITS_MAX];
            let count = units(code, &mut buffer);
            buffer[..count].to_vec()
        };
        characters(text).flat_map(of_character).collect()
    };
    if let Some(language) = PaddedLanguage::of_number(collation.number()) {
        return units(&|code, buffer| language.of(code, buffer));
    }
    match collation.name() {
        // A letter of a language may have several characters. `language_order` tests their order.
        _ if is_of_language(collation) => key(collation, text).into_iter().map(u32::from).collect(),
        "utf8mb4_general_ci" | "utf8mb3_general_ci" | "ascii_general_ci" => {
            characters(text).map(general_ci::weight).collect()
        }
        name if name.ends_with("0900_ai_ci") => {
            characters(text).flat_map(|code| unicode_units(collation, code)).collect()
        }
        "utf8mb4_0900_as_ci" => levels(text, 2),
        "utf8mb4_0900_as_cs" => levels(text, 3),
        "utf8mb4_unicode_ci" | "utf8mb3_unicode_ci" => units(&|code, buffer| Version::Four.of(code, buffer)),
        "utf8mb4_unicode_520_ci" | "utf8mb3_unicode_520_ci" => units(&|code, buffer| Version::FiveTwo.of(code, buffer)),
        "latin1_swedish_ci" => units(&|code, buffer| Latin1::Swedish.of(code, buffer)),
        "latin1_german1_ci" => units(&|code, buffer| Latin1::German1.of(code, buffer)),
        "latin1_german2_ci" => units(&|code, buffer| Latin1::German2.of(code, buffer)),
        "latin1_danish_ci" => units(&|code, buffer| Latin1::Danish.of(code, buffer)),
        "latin1_spanish_ci" => units(&|code, buffer| Latin1::Spanish.of(code, buffer)),
        "latin1_general_ci" => units(&|code, buffer| Latin1::GeneralCi.of(code, buffer)),
        "latin1_general_cs" => units(&|code, buffer| Latin1::GeneralCs.of(code, buffer)),
        "latin1_bin" => units(&|code, buffer| Latin1::Bin.of(code, buffer)),
        _ => text.iter().map(|&byte| u32::from(byte)).collect(),
    }
}

/// All collations, of the languages only some with particular rules.
fn tested() -> impl Iterator<Item = CollationId> {
    // cs, de_pb, hu, lt and ru; da, hr and vi with levels; Japanese and Chinese.
    let particular = [256, 266, 268, 274, 290, 298, 300, 303, 304, 306, 308];
    CollationId::ALL
        .into_iter()
        .filter(move |collation| !is_of_language(*collation) || particular.contains(&collation.number()))
}

/// Whether this is `utf8mb4_<language>_0900_ai_ci` or `_as_cs`.
fn is_of_language(collation: CollationId) -> bool {
    collation.name().contains("_0900_") && collation.name().matches('_').count() > 3
}

/// The weights of the levels, with 0 between them.
fn levels(text: &[u8], count: usize) -> Vec<u32> {
    let primary = CollationId::UTF8MB4_0900_AI_CI;
    let mut all: Vec<u32> = characters(text).flat_map(|code| unicode_units(primary, code)).collect();
    for level in &[Level::Accents, Level::Case][..count - 1] {
        all.push(0);
        all.extend(unicode_levels::weights_of(text, *level).map(u32::from));
    }
    all
}

fn characters(mut text: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (code, bytes) = character::decode(text)?;
        text = &text[bytes..];
        Some(code)
    })
}

fn unicode_units(collation: CollationId, code: u32) -> Vec<u32> {
    let text = match char::from_u32(code) {
        Some(letter) => letter.to_string().into_bytes(),
        None => vec![(code - character::INVALID_FIRST) as u8],
    };
    let key = key(collation, &text);
    key.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compare_is_the_order_of_the_keys_and_of_the_weights((left, right) in pair()) {
        for collation in tested() {
            let order = collation.compare(&left, &right);
            prop_assert_eq!(order, key(collation, &left).cmp(&key(collation, &right)), "keys, {}", collation);
            prop_assert_eq!(order, expected(collation, &left, &right), "weights, {}", collation);
            prop_assert_eq!(order.reverse(), collation.compare(&right, &left), "reversed, {}", collation);
            prop_assert_eq!(order == Ordering::Equal, collation.equal(&left, &right), "equal, {}", collation);
        }
    }

    #[test]
    fn a_key_never_exceeds_the_computed_maximum_length(text in text()) {
        for collation in tested() {
            let bound = collation.weight_key_bytes_max(collation.character_set().character_count(&text));
            let mut key = Vec::with_capacity(bound);
            let capacity = key.capacity();
            collation.append_weight_key(&text, &mut key);
            prop_assert!(key.len() <= bound, "{}", collation);
            prop_assert_eq!(key.capacity(), capacity, "{}", collation);
        }
    }

    #[test]
    fn every_text_is_like_itself_and_like_its_parts_around_a_percent_sign((start, end) in (text(), text())) {
        let escaped = |text: &[u8]| -> Vec<u8> {
            let special = |byte: &u8| matches!(byte, b'%' | b'_' | b'\\');
            text.iter().flat_map(|byte| special(byte).then_some(b'\\').into_iter().chain([*byte])).collect()
        };
        for collation in tested() {
            prop_assert!(collation.like(&start, &escaped(&start), Some('\\')), "itself, {}", collation);
            // If `start` ends in an incomplete character, joining the parts may make another character there.
            if collation == CollationId::BINARY || character::is_valid_utf8mb4(&start) {
                let whole = [&start[..], b"q", &end].concat();
                let pattern = [&escaped(&start), &b"%"[..], &escaped(&end)].concat();
                prop_assert!(collation.like(&whole, &pattern, Some('\\')), "parts, {}", collation);
            }
        }
    }

    #[test]
    fn keys_of_texts_that_begin_alike_begin_with_the_key_of_the_prefix((start, end, other) in (text(), text(), text())) {
        for collation in tested() {
            // A byte at the end of the prefix may become a part of a character.
            prop_assume!(collation == CollationId::BINARY || character::is_valid_utf8mb4(&start));
            let whole = [&start[..], &end].concat();
            let mut prefix = Vec::new();
            collation.append_prefix_key(&start, &mut prefix);
            prop_assert!(key(collation, &whole).starts_with(&prefix), "{}", collation);
            let pattern = [&start[..], b"%"].concat();
            if collation.like(&other, &pattern, None) && !start.iter().any(|byte| matches!(byte, b'%' | b'_')) {
                prop_assert!(key(collation, &other).starts_with(&prefix), "another text, {}", collation);
            }
        }
    }

    #[test]
    fn decoding_agrees_with_the_standard_library(text in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0xBF_u8, 0xC0..=0xFF_u8], 0..12)) {
        let mut standard = Vec::new();
        for chunk in text.utf8_chunks() {
            standard.extend(chunk.valid().chars().map(u32::from));
            standard.extend(chunk.invalid().iter().map(|&byte| character::INVALID_FIRST + u32::from(byte)));
        }
        prop_assert_eq!(CharacterSet::Utf8mb4.character_count(&text), standard.len());
        prop_assert_eq!(characters(&text).collect::<Vec<_>>(), standard);
    }
}

#[test]
fn decoding_and_keys_hold_for_every_code_point() {
    for letter in '\0'..=char::MAX {
        let text = letter.to_string().into_bytes();
        assert_eq!(character::decode(&text), Some((u32::from(letter), text.len())));
        // Beyond these letters, languages have the weights of the default table.
        let is_rare = |collation: &CollationId| match collation.number() {
            304 | 308 => letter >= '\u{2d000}',
            _ => letter >= '\u{3000}' && is_of_language(*collation),
        };
        for collation in tested().filter(|collation| !is_rare(collation)) {
            let bound = collation.weight_key_bytes_max(collation.character_set().character_count(&text));
            assert!(key(collation, &text).len() <= bound, "{collation} {letter:?}");
        }
    }
}

/// Every pair of ASCII characters at every position of an eight-byte step, against the weights of single
/// characters.
#[test]
fn steps_of_eight_bytes_agree_with_single_characters_for_all_ascii_pairs() {
    // The other collations have no such steps.
    for number in [45, 46, 63, 255] {
        let collation = CollationId::from_number(number).unwrap();
        let weights: Vec<Vec<u32>> = (0..0x80_u8).map(|byte| weights(collation, &[byte])).collect();
        let order_of = |left: &[u8], right: &[u8]| {
            let weights =
                |text: &[u8]| text.iter().flat_map(|&byte| &weights[usize::from(byte)]).copied().collect::<Vec<_>>();
            weights(left).cmp(&weights(right))
        };
        for (left, right) in (0..0x80_u8).flat_map(|left| (0..0x80_u8).map(move |right| (left, right))) {
            for place in 8..16 {
                let (mut long_left, mut long_right) = (*b"abcdefgh12345678z", *b"abcdefgh12345678z");
                (long_left[place], long_right[place]) = (left, right);
                let expected = order_of(&long_left[place..], &long_right[place..]);
                assert_eq!(collation.compare(&long_left, &long_right), expected, "{collation} {left} {right} {place}");
            }
        }
    }
}
