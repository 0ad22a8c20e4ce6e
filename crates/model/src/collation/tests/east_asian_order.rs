use std::cmp::Ordering;

use super::{assert_classes_rise, key};
use crate::collation::CollationId;

fn named(name: &str) -> CollationId {
    CollationId::from_name(name).unwrap()
}

/// JIS X 4061: marks of length, small kana, marks of iteration, large kana; voiceless, voiced, half-voiced.
#[test]
fn japanese_orders_kana_by_its_standard() {
    let kana: &[&[&str]] = &[
        &["", "\0"],
        &[" ", "\u{3000}", "\u{ffe3}"],
        &["!", "！"],
        &["1", "１"],
        &["a", "ａ"],
        &["A", "Ａ"],
        &["z"],
        &["ぁ", "ァ", "ｧ"],
        &["あ", "ア", "ｱ"],
        &["㋐"],
        &["あー", "アー", "ｱー"],
        &["あぁ", "アァ"],
        &["あゝ", "アヽ"],
        &["ああ", "アア"],
        &["ゕ", "ヵ"],
        &["か", "カ", "ｶ"],
        &["が", "ガ"],
        &["かー", "カー"],
        &["かぁ"],
        &["かあ", "カア"],
        &["がー", "ガー"],
        &["かゝ", "カヽ"],
        &["かか", "カカ"],
        &["さゞ", "サヾ"],
        &["さざ", "サザ"],
        &["は", "ハ"],
        &["ば", "バ"],
        &["ぱ", "パ"],
        &["わ", "ワ"],
        &["わ\u{3099}", "ヷ"],
        &["ん", "ン"],
        &["亜", "\u{4e9c}"],
        &["唖"],
        &["腕"],
        &["弌"],
        &["龠"],
        &["熙"],
        &["丂"],
        &["\u{20000}"],
        &["α"],
        &["я"],
        &["가"],
        &["ㄅ"],
    ];
    assert_classes_rise(named("utf8mb4_ja_0900_as_cs"), kana);
}

#[test]
fn the_kind_of_kana_counts_only_in_ks() {
    let classes: &[&[&str]] = &[
        &["あ"],
        &["ア", "ｱ"],
        &["あー"],
        &["アー"],
        &["か"],
        &["カ"],
        &["が"],
        &["ガ"],
        &["かな漢字"],
        &["カな漢字"],
        &["カナ漢字"],
        &["さゞ"],
        &["サヾ"],
        &["亜"],
    ];
    assert_classes_rise(named("utf8mb4_ja_0900_as_cs_ks"), classes);
    assert!(named("utf8mb4_ja_0900_as_cs").equal("ひらがな".as_bytes(), "ヒラガナ".as_bytes()));
}

#[test]
fn chinese_orders_ideographs_by_pinyin() {
    let classes: &[&[&str]] = &[
        &["1"],
        &["阿"],
        &["啊"],
        &["八"],
        &["北京"],
        &["𣐯"],
        &["重庆"],
        &["重庆人"],
        &["上海"],
        &["小"],
        &["学"],
        &["一"],
        &["㊀"],
        &["⼀"],
        &["中国"],
        &["中文"],
        &["重"],
        &["重要"],
        &["咗"],
        &["\u{2b820}"],
        &["ā"],
        &["á"],
        &["ǎ"],
        &["à"],
        &["a"],
        &["A"],
        &["ä"],
        &["b"],
        &["ê"],
        &["ê\u{304}"],
        &["m\u{304}"],
        &["m"],
        &["z"],
        &["α"],
        &["か"],
    ];
    assert_classes_rise(named("utf8mb4_zh_0900_as_cs"), classes);
}

/// A compatibility ideograph is canonically equivalent to the one that it decomposes to.
#[test]
fn compatibility_ideographs_have_the_place_of_their_ideograph() {
    for name in ["utf8mb4_ja_0900_as_cs", "utf8mb4_zh_0900_as_cs"] {
        assert_classes_rise(named(name), &[&["串"], &["串a", "\u{f905}a"], &["串b"]]);
    }
}

/// Each ideograph of the list has a key of one weight in each level, above its predecessor's.
#[test]
fn the_lists_rise() {
    let tables = [
        ("utf8mb4_ja_0900_as_cs", include_str!("../tables/ja.txt"), 6_355),
        ("utf8mb4_zh_0900_as_cs", include_str!("../tables/zh.txt"), 41_310),
    ];
    for (name, table, count) in tables {
        let collation = named(name);
        let order: Vec<char> = table.lines().filter(|line| !line.starts_with('&')).flat_map(str::chars).collect();
        assert_eq!(order.len(), count, "{name}");
        let keys: Vec<Vec<u8>> = order.iter().map(|letter| key(collation, letter.to_string().as_bytes())).collect();
        assert!(keys.iter().all(|key| key.len() == 10), "{name}");
        assert!(keys.is_sorted_by(|left, right| left < right), "{name}");
    }
}

#[test]
fn like_compares_kana_and_ideographs_one_by_one() {
    let cases = [
        ("utf8mb4_ja_0900_as_cs", "カナ", "かな", true),
        ("utf8mb4_ja_0900_as_cs_ks", "カナ", "かな", false),
        ("utf8mb4_ja_0900_as_cs_ks", "ｶﾅ", "カナ", true),
        ("utf8mb4_ja_0900_as_cs", "かー", "か_", true),
        ("utf8mb4_ja_0900_as_cs", "かー", "かあ", false),
        ("utf8mb4_ja_0900_as_cs", "亜細亜", "%細%", true),
        ("utf8mb4_zh_0900_as_cs", "重庆", "重%", true),
        ("utf8mb4_zh_0900_as_cs", "中国", "_国", true),
    ];
    for (name, text, pattern, expected) in cases {
        assert_eq!(named(name).like(text.as_bytes(), pattern.as_bytes(), None), expected, "{name} {text} {pattern}");
    }
}

#[test]
fn a_prefix_key_ends_before_marks_whose_weights_depend_on_kana() {
    let length = |name: &str, prefix: &str| {
        let mut key = Vec::new();
        named(name).append_prefix_key(prefix.as_bytes(), &mut key);
        key.len()
    };
    assert_eq!(length("utf8mb4_ja_0900_as_cs", "かな漢字"), 4 * 2);
    assert_eq!(length("utf8mb4_ja_0900_as_cs", "かなーあ"), 2 * 2);
    assert_eq!(length("utf8mb4_zh_0900_as_cs", "中国"), 2 * 2);
    assert_eq!(length("utf8mb4_zh_0900_as_cs", "man"), 3 * 2);
    assert_eq!(length("utf8mb4_zh_0900_as_cs", "北重庆"), 2);
}

/// The scripts keep their distances: no two characters of one weight each that differ in the default table
/// are equal, and their order is that of the default table within the scripts that do not move.
#[test]
fn characters_outside_the_lists_keep_their_order() {
    let default = CollationId::UTF8MB4_0900_AI_CI;
    let primary = |collation: CollationId, letter: char| {
        let whole = key(collation, letter.to_string().as_bytes());
        let end = whole.chunks(2).position(|weight| weight == [0, 0]).map_or(whole.len(), |end| 2 * end);
        whole[..end].to_vec()
    };
    for name in ["utf8mb4_ja_0900_as_cs", "utf8mb4_zh_0900_as_cs"] {
        let collation = named(name);
        let mut letters: Vec<(Vec<u8>, Vec<u8>)> = ('!'..'\u{2e80}')
            .chain('\u{a000}'..'\u{d7ff}')
            .map(|letter| (primary(default, letter), primary(collation, letter)))
            .filter(|(default, own)| default.len() == 2 && own.len() == 2)
            .collect();
        letters.sort();
        letters.dedup();
        assert!(letters.windows(2).all(|pair| pair[0].0 != pair[1].0), "{name}: one weight has two places");
        let mut own: Vec<&Vec<u8>> = letters.iter().map(|(_, own)| own).collect();
        own.sort();
        own.dedup();
        assert_eq!(own.len(), letters.len(), "{name}: two weights have one place");
        let descents = letters.windows(2).filter(|pair| pair[0].1.cmp(&pair[1].1) == Ordering::Greater).count();
        assert_eq!(descents, 0, "{name}");
    }
}
