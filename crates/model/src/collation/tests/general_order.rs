use super::{assert_classes_rise, key};
use crate::collation::{CollationId, general_ci};

const GENERAL: CollationId = CollationId::UTF8MB4_GENERAL_CI;
const CODE_POINT: CollationId = CollationId::UTF8MB4_BIN;

#[test]
fn general_ci_orders_by_one_weight_a_character() {
    assert_classes_rise(
        GENERAL,
        &[
            &["\0"],
            &["\t"],
            &["", " ", "    "],
            &["!"],
            &["0"],
            &["1"],
            &["10"],
            &["9"],
            &["a", "A", "á", "À", "Å", "ä", "a ", "Ä   "],
            &["a\u{301}"],
            &["b", "B"],
            &["i", "I", "í", "ı", "İ"],
            &["s", "ß", "ś"],
            &["ss", "SS", "ßs", "ßß"],
            &["STRASE", "strase", "Straße"],
            &["STRASSE", "strasse"],
            &["z"],
            &["["],
            &["_"],
            &["`"],
            &["{"],
            &["Æ", "æ"],
            &["×"],
            &["Ø", "ø"],
            &["Α", "α", "ά"],
            &["Б", "б"],
            &["Е", "е", "ё"],
            &["Я", "я"],
            &["あ"],
            &["ア"],
            &["一"],
            &["가"],
            &["\u{fb00}"],
            &["Ａ", "ａ"],
            &["\u{fffc}"],
            &["\u{fffd}", "😀", "😁", "\u{10ffff}"],
            &["\u{fffe}"],
            &["\u{ffff}"],
        ],
    );
}

#[test]
fn bin_orders_by_code_point() {
    assert_classes_rise(
        CODE_POINT,
        &[
            &["\0"],
            &["\u{1f}"],
            &["", " ", "  "],
            &["A", "A "],
            &["B"],
            &["a"],
            &["á", "á  "],
            &["一"],
            &["\u{ffff}"],
            &["😀"],
            &["😁"],
            &["\u{10ffff}"],
        ],
    );
}

/// The order of texts padded with endless spaces. Runs of spaces cover both sides of each length at which the
/// form of the key changes.
#[test]
fn spaces_within_a_text_keep_the_order_of_padded_texts() {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for spaces in [0, 1, 2, 3, 31, 32, 33, 34, 254, 255, 256, 257] {
        for tail in ["", "!", "z", "一", "\t", "\u{1f}", "\u{1e}", "\0", "\u{1f}a", "\t\t", " \u{1f}", "! "] {
            texts.push([b"q".as_slice(), &vec![b' '; spaces], tail.as_bytes()].concat());
        }
    }
    for collation in [GENERAL, CODE_POINT] {
        for left in &texts {
            for right in &texts {
                let pad = |text: &[u8]| {
                    let mut padded = text.to_ascii_uppercase();
                    padded.resize(300, b' ');
                    padded
                };
                let expected = pad(left).cmp(&pad(right));
                assert_eq!(collation.compare(left, right), expected, "{collation}: {left:?} {right:?}");
                assert_eq!(key(collation, left).cmp(&key(collation, right)), expected, "{left:?} {right:?}");
            }
        }
    }
}

#[test]
fn golden_keys_of_padded_texts() {
    assert_eq!(key(GENERAL, b""), b" ");
    assert_eq!(key(GENERAL, b"Hello World  "), b"HELLO WORLD ");
    assert_eq!(key(CODE_POINT, b"Hello World  "), b"Hello World ");
    assert_eq!(key(GENERAL, b"a  b"), b"A \x1fB ");
    assert_eq!(key(GENERAL, b"a \tb"), b"A\x1f\xff\x01\tB ");
    assert_eq!(key(GENERAL, b"\x1f"), b"\x1f\0 ");
    assert_eq!(key(GENERAL, &[[b' '; 33].as_slice(), b"x"].concat()), b" \0\xff\xff\xff\xdeX ");
    assert_eq!(key(GENERAL, "é😀".as_bytes()), b"E\xef\xbf\xbd ");
    assert_eq!(key(GENERAL, b"\xff"), b"\xff\xff ");
}

/// The padded order relies on both properties.
#[test]
fn no_character_outside_ascii_weighs_as_little_as_a_space_and_ascii_weighs_as_capitals() {
    for code in 0x80..0x11_0000 {
        assert!(general_ci::weight(code) > u32::from(b' '), "U+{code:04X}");
    }
    for byte in 0..0x80_u8 {
        assert_eq!(general_ci::weight(u32::from(byte)), u32::from(byte.to_ascii_uppercase()));
    }
}
