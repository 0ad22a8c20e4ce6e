use std::cmp::Ordering;

use proptest::prelude::*;

use super::key;
use crate::collation::{CharacterSet, CollationId, character, general_ci};

/// Characters that some collation treats specially.
const PARTICULAR: [&str; 40] = [
    " ", " ", " ", "  ", "\u{1f}", "\u{1e}", "\t", "\0", "!", "a", "A", "b", "B", "z", "_", "7", "á", "Å", "ß", "s",
    "æ", "e", "½", "Ⅷ", "v", "\u{301}", "\u{200b}", "가", "\u{1100}", "\u{11a8}", "一", "㐀", "𠀀", "😀", "😁",
    "\u{fffd}", "\u{fffe}", "\u{fdfa}", "l\u{b7}", "เก",
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
        left.resize(length, u32::from(b' '));
        right.resize(length, u32::from(b' '));
    }
    left.cmp(&right)
}

fn weights(collation: CollationId, text: &[u8]) -> Vec<u32> {
    match collation {
        CollationId::UTF8MB4_GENERAL_CI => characters(text).map(general_ci::weight).collect(),
        CollationId::UTF8MB4_0900_AI_CI => characters(text).flat_map(unicode_units).collect(),
        _ => text.iter().map(|&byte| u32::from(byte)).collect(),
    }
}

fn characters(mut text: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (code, bytes) = character::decode(text)?;
        text = &text[bytes..];
        Some(code)
    })
}

fn unicode_units(code: u32) -> Vec<u32> {
    let text = match char::from_u32(code) {
        Some(letter) => letter.to_string().into_bytes(),
        None => vec![(code - character::INVALID_FIRST) as u8],
    };
    let key = key(CollationId::UTF8MB4_0900_AI_CI, &text);
    key.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compare_is_the_order_of_the_keys_and_of_the_weights((left, right) in pair()) {
        for collation in CollationId::ALL {
            let order = collation.compare(&left, &right);
            prop_assert_eq!(order, key(collation, &left).cmp(&key(collation, &right)), "keys, {}", collation);
            prop_assert_eq!(order, expected(collation, &left, &right), "weights, {}", collation);
            prop_assert_eq!(order.reverse(), collation.compare(&right, &left), "reversed, {}", collation);
            prop_assert_eq!(order == Ordering::Equal, collation.equal(&left, &right), "equal, {}", collation);
        }
    }

    #[test]
    fn a_key_never_exceeds_the_computed_maximum_length(text in text()) {
        for collation in CollationId::ALL {
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
        for collation in CollationId::ALL {
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
        for collation in CollationId::ALL {
            let bound = collation.weight_key_bytes_max(collation.character_set().character_count(&text));
            assert!(key(collation, &text).len() <= bound, "{collation} {letter:?}");
        }
    }
}

/// Every pair of ASCII characters at every position of an eight-byte step, against the weights of single
/// characters.
#[test]
fn steps_of_eight_bytes_agree_with_single_characters_for_all_ascii_pairs() {
    for collation in CollationId::ALL {
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
