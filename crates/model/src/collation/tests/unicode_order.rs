use std::cmp::Ordering;

use super::{assert_classes_rise, key};
use crate::collation::CollationId;

const UNICODE: CollationId = CollationId::UTF8MB4_0900_AI_CI;

fn weights(text: &str) -> Vec<u16> {
    key(UNICODE, text.as_bytes()).chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

#[test]
fn characters_follow_the_order_of_the_default_table() {
    assert_classes_rise(
        UNICODE,
        &[
            // Ignorable characters: none, controls, zero-width characters, combining accents, variation
            // selectors, tags.
            &["", "\0", "\u{1}", "\u{1f}", "\u{7f}", "\u{ad}", "\u{200b}", "\u{200d}", "\u{2060}", "\u{feff}"],
            &["\t", "\t\u{301}", "\u{fe0f}\t", "\u{e0041}\t"],
            &["\n"],
            &["\u{b}"],
            &["\u{c}"],
            &["\r"],
            &["\u{85}"],
            &["\u{2028}"],
            &["\u{2029}"],
            &[" ", "\u{a0}", "\u{2003}", "\u{202f}", "\u{3000}"],
            &["_", "\u{ff3f}"],
            &["-", "－", "﹣"],
            &[",", "，"],
            &[";"],
            &[":"],
            &["!", "！"],
            &["?"],
            &["."],
            &["'", "＇"],
            &["\""],
            &["("],
            &[")"],
            &["["],
            &["]"],
            &["{"],
            &["}"],
            &["@"],
            &["*"],
            &["/"],
            &["\\"],
            &["&"],
            &["#"],
            &["%"],
            &["`"],
            &["^"],
            &["+", "⁺", "₊"],
            &["<"],
            &["=", "⁼"],
            &[">"],
            &["|"],
            &["~"],
            &["$", "＄", "﹩"],
            &["£"],
            &["€"],
            &["0", "０", "⁰", "٠", "०"],
            &["01"],
            &["1", "１", "¹", "①", "١", "१", "𝟏"],
            &["1⁄2", "½"],
            &["10", "⑩"],
            &["2", "²", "₂"],
            &["9"],
        ],
    );
}

#[test]
fn letters_follow_the_default_table_ignoring_case_and_accents() {
    assert_classes_rise(
        UNICODE,
        &[
            &["a", "A", "á", "À", "Å", "å", "ä", "ǎ", "a\u{301}", "A\u{30a}", "ａ", "Ａ", "ª", "ⓐ", "𝐀", "𝔞", "Å"],
            &["ab", "AB", "äB", "a\u{200b}b", "a\u{0}b"],
            &["ae", "AE", "æ", "Æ", "ǽ", "äe"],
            &["az"],
            &["b", "B", "ḃ"],
            &["c", "Ç", "ć"],
            &["d", "ď", "đ", "Đ"],
            &["e", "É", "ê", "ẽ", "ế"],
            &["ə"],
            &["f"],
            &["ff", "ﬀ"],
            &["ffi", "ﬃ"],
            &["g", "ğ"],
            &["h", "ħ"],
            &["i", "İ", "í", "I"],
            &["ij", "ĳ"],
            &["ı"],
            &["j"],
            &["k", "K"],
            &["l", "Ĺ", "ł", "Ł"],
            &["m"],
            &["n", "ñ"],
            &["no", "№", "ño"],
            &["o", "ö", "Ő", "º", "ø", "Ø", "ǿ"],
            &["oe", "œ", "öe"],
            &["p"],
            &["q"],
            &["r"],
            &["s", "š", "ſ"],
            &["ss", "ß", "ẞ", "SS"],
            &["strasse", "Straße", "STRASSE"],
            &["t"],
            &["tm", "™"],
            &["u", "ü", "Ű"],
            &["v", "Ⅴ"],
            &["vi", "ⅵ"],
            &["viii", "Ⅷ", "ⅷ", "VIII"],
            &["w"],
            &["x"],
            &["y", "ÿ"],
            &["z", "Ž"],
            &["þ", "Þ"],
            &["α", "Α", "ά", "ᾳ"],
            &["β"],
            &["ω", "Ω", "Ω"],
            &["а", "А"],
            &["б"],
            &["е", "ё", "Ё"],
            &["я"],
            &["א"],
            &["أ"],
            &["ا"],
            &["अ"],
            &["ก"],
            &["가"],
            &["각", "\u{1100}\u{1161}\u{11a8}"],
            &["나"],
            &["힣"],
            &["あ", "ア", "ァ", "ｱ"],
            &["か", "カ", "が", "ガ"],
            &["ん"],
            &["一", "⼀"],
            &["丁"],
            &["二"],
            &["人"],
            &["鿕"],
            &["\u{fa0e}"],
            &["㐀"],
            &["䶵"],
            &["𠀀"],
            &["\u{2cea1}"],
            &["\u{fffe}"],
            &["\u{2ceaf}"],
            &["\u{10ffff}"],
            &["\u{fffd}"],
        ],
    );
}

#[test]
fn words_follow_dictionary_order_and_trailing_spaces_count() {
    assert_classes_rise(
        UNICODE,
        &[
            &[" a"],
            &["a", "Á"],
            &["a "],
            &["a  "],
            &["a b"],
            &["a-b"],
            &["a1"],
            &["aa"],
            &["cafe", "Café", "CAFÉ", "cafe\u{301}"],
            &["cafe ", "café "],
            &["cafeteria"],
            &["co op", "CO OP"],
            &["co-op"],
            &["coop", "Coöp"],
            &["cote", "coté", "côte", "côté"],
            &["resume", "Résumé", "rêsume"],
            &["the quick brown fox jumps", "The Quick Brown Fox Jumps", "the quick brówn fox jumps"],
            &["the quick brown fox jumps over", "THE QUICK BROWN FOX JUMPS OVER"],
            &["the quick brown fox sits"],
        ],
    );
}

#[test]
fn emoji_differ_from_each_other() {
    let emoji = ["😀", "😁", "🍣", "🍺", "❤", "🦀", "👍", "🏴"];
    for (place, left) in emoji.iter().enumerate() {
        for right in &emoji[place + 1..] {
            assert_ne!(UNICODE.compare(left.as_bytes(), right.as_bytes()), Ordering::Equal, "{left} {right}");
        }
    }
    // Skin tones have weights of their own; the emoji variation selector has none.
    assert!(!UNICODE.equal("👍🏽".as_bytes(), "👍".as_bytes()));
    assert!(UNICODE.equal("❤\u{fe0f}".as_bytes(), "❤".as_bytes()));
}

#[test]
fn golden_weights() {
    assert_eq!(weights("aA"), [0x1C47, 0x1C47]);
    assert_eq!(weights(" "), [0x0209]);
    assert_eq!(weights("0"), [0x1C3D]);
    assert_eq!(weights("b"), [0x1C60]);
    assert_eq!(weights("z"), [0x1F21]);
    assert_eq!(weights("½"), [0x1C3E, 0x0626, 0x1C3F]);
    assert_eq!(weights("一"), [0xFB40, 0xCE00]);
    assert_eq!(weights("鿕"), [0xFB41, 0x9FD5]);
    assert_eq!(weights("㐀"), [0xFB80, 0xB400]);
    assert_eq!(weights("𠀀"), [0xFB84, 0x8000]);
    assert_eq!(weights("\u{9fd6}"), [0xFBC1, 0x9FD6]);
    assert_eq!(weights("\u{17000}"), [0xFB00, 0x8000]);
    assert_eq!(weights("\u{18aff}"), [0xFB00, 0x9AFF]);
    assert_eq!(weights("\u{10ffff}"), [0xFBE1, 0xFFFF]);
    assert_eq!(weights("\u{d7a4}"), [0xFBC1, 0xD7A4]);
    assert_eq!(weights("\u{fffd}"), [0xFFFD]);
    assert_eq!(weights("\u{fdfa}").len(), 18);
}

/// First and last of each block, and the adjacent code points.
#[test]
fn unified_ideographs_have_the_lead_weight_of_their_block() {
    let blocks = [
        (0xFB40, 0x4E00..=0x9FD5),
        (0xFB80, 0x3400..=0x4DB5),
        (0xFB80, 0x2_0000..=0x2_A6D6),
        (0xFB80, 0x2_A700..=0x2_B734),
        (0xFB80, 0x2_B740..=0x2_B81D),
        (0xFB80, 0x2_B820..=0x2_CEA1),
    ];
    let lead = |code: u32| weights(&char::from_u32(code).unwrap().to_string())[0];
    for (base, block) in blocks {
        let (first, last) = block.into_inner();
        assert_eq!(lead(first), base + (first >> 15) as u16, "U+{first:04X}");
        assert_eq!(lead(last), base + (last >> 15) as u16, "U+{last:04X}");
        assert_eq!(lead(last + 1), 0xFBC0 + ((last + 1) >> 15) as u16, "U+{:04X}", last + 1);
    }
    assert_eq!(lead(0x2_B73F), 0xFBC5);
    assert_eq!(weights("\u{fa0e}\u{fa29}"), [0xFB41, 0xFA0E, 0xFB41, 0xFA29]);
    assert_eq!(weights("\u{fa10}"), weights("塚"), "a compatibility ideograph weighs as the unified one");
}

#[test]
fn the_remaining_weights_of_an_expansion_precede_the_following_text() {
    assert_eq!(UNICODE.compare("æbbbbbbbb".as_bytes(), b"abbbbbbbbz"), Ordering::Greater);
    assert_eq!(UNICODE.compare(b"abbbbbbbbz", "æbbbbbbbb".as_bytes()), Ordering::Less);
    assert!(UNICODE.equal("æbbbbbbbb".as_bytes(), b"AEBBBBBBBB"));
}

#[test]
fn every_hangul_syllable_weighs_as_its_letters() {
    for syllable in 0..11_172_u32 {
        let letter = |code| char::from_u32(code).unwrap();
        let composed = letter(0xAC00 + syllable).to_string();
        let mut letters = String::from_iter([letter(0x1100 + syllable / 588), letter(0x1161 + syllable % 588 / 28)]);
        if syllable % 28 != 0 {
            letters.push(letter(0x11A7 + syllable % 28));
        }
        assert_eq!(weights(&composed), weights(&letters), "{composed}");
        assert_eq!(weights(&composed).len(), letters.chars().count(), "{composed}");
    }
}

/// MySQL bug 111828: with the contractions of the default table, both would be true.
#[test]
fn sequences_of_the_default_table_have_no_weights_of_their_own() {
    assert_eq!(UNICODE.compare("ᦵᦁ".as_bytes(), "ᦶᦀ".as_bytes()), Ordering::Less);
    assert_eq!(UNICODE.compare("ᦵᦁ".as_bytes(), "ᦺᦀ".as_bytes()), Ordering::Less);
    assert!(UNICODE.equal("l\u{b7}a".as_bytes(), "L\u{b7}a".as_bytes()));
    assert_eq!(weights("เก"), [weights("เ"), weights("ก")].concat());
}

#[test]
fn an_invalid_byte_sorts_after_all_characters() {
    let highest = "\u{fffd}".as_bytes();
    assert_eq!(UNICODE.compare(b"\x80", highest), Ordering::Greater);
    assert_eq!(UNICODE.compare(b"\x80", b"\xff"), Ordering::Less);
    assert_eq!(UNICODE.compare(b"\xc3", "é".as_bytes()), Ordering::Greater);
    assert_eq!(key(UNICODE, b"\xed\xa0\x80").len(), 12, "a surrogate is three bytes outside any character");
}
