use super::assert_classes_rise;
use crate::collation::CollationId;

fn named(name: &str) -> CollationId {
    CollationId::from_name(name).unwrap()
}

#[test]
fn as_cs_orders_accents_after_letters_and_case_after_accents() {
    assert_classes_rise(
        named("utf8mb4_0900_as_cs"),
        &[&["", "\0"], &[" "], &["a"], &["A"], &["a "], &["ab"], &["aB"], &["áb"], &["ac"], &["ss"], &["ß"], &["sz"]],
    );
}

#[test]
fn as_ci_orders_accents_and_ignores_case() {
    assert_classes_rise(
        named("utf8mb4_0900_as_ci"),
        &[&[""], &["a", "A"], &["á", "Á", "a\u{301}"], &["ab", "AB"], &["áb"], &["ac"], &["가", "\u{1100}\u{1161}"]],
    );
}

#[test]
fn bin_0900_orders_by_code_point_without_padding() {
    assert_classes_rise(named("utf8mb4_0900_bin"), &[&[""], &["A"], &["a"], &["a "], &["é"], &["\u{ffff}"], &["😀"]]);
}

#[test]
fn unicode_ci_pads_and_has_one_weight_for_all_supplementary_characters() {
    assert_classes_rise(
        named("utf8mb4_unicode_ci"),
        &[
            &["a\t"],
            &["a", "A  ", "á", "a\u{301}", "a\0"],
            &["a b"],
            &["ab"],
            &["ss", "ß", "SS "],
            &["z"],
            &["😀", "😁"],
        ],
    );
    assert_classes_rise(
        named("utf8mb4_unicode_520_ci"),
        &[&["a\t"], &["a", "A  ", "á", "a\0"], &["ab"], &["o", "ö", "ø"], &["oz"], &["😀"], &["😁"]],
    );
}

#[test]
fn latin1_orders_by_the_language_of_the_collation() {
    assert_classes_rise(
        named("latin1_swedish_ci"),
        &[
            &["a\t"],
            &["a", "A ", "á", "à"],
            &["ab"],
            &["e", "é"],
            &["y", "ü", "Ü"],
            &["z"],
            &["å", "Å"],
            &["ä", "æ"],
            &["ö"],
        ],
    );
    assert_classes_rise(
        named("latin1_german1_ci"),
        &[&["a", "ä", "Ä"], &["ad"], &["o", "ö"], &["oe"], &["s", "ß"], &["ss"], &["u", "ü"]],
    );
    assert_classes_rise(
        named("latin1_german2_ci"),
        &[&["ad"], &["ae", "ä", "Ä "], &["af"], &["oe", "ö"], &["ss", "ß"], &["ue", "Ü"]],
    );
    assert_classes_rise(
        named("latin1_general_cs"),
        &[&["A", "A "], &["AB"], &["a"], &["À"], &["à"], &["Ä"], &["ä"], &["B"], &["b"]],
    );
    // Bytes 0x80 and 0xE9.
    assert_classes_rise(named("latin1_bin"), &[&["a\t"], &["a", "a "], &["b"], &["€"], &["é"]]);
}

#[test]
fn like_compares_single_characters_of_every_collation() {
    let cases = [
        ("utf8mb4_0900_as_cs", "Ab", "A_", true),
        ("utf8mb4_0900_as_cs", "ab", "A_", false),
        ("utf8mb4_0900_as_ci", "ab", "A_", true),
        ("utf8mb4_0900_as_ci", "áb", "A_", false),
        ("utf8mb4_0900_bin", "éb", "_b", true),
        ("utf8mb4_unicode_ci", "ÁB", "a%", true),
        ("utf8mb4_unicode_ci", "ß", "ss", false),
        ("latin1_german2_ci", "ä", "ae", false),
        ("latin1_german2_ci", "Ä", "ä", true),
        ("latin1_bin", "é", "_", true),
    ];
    for (name, text, pattern, expected) in cases {
        assert_eq!(named(name).like(text.as_bytes(), pattern.as_bytes(), None), expected, "{name} {text} {pattern}");
    }
}
