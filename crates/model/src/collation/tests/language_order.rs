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

/// Orders of letters that CLDR's rules give for each language.
const LANGUAGES: [(&str, &[&[&str]]); 14] = [
    ("de_pb", &[&["ad"], &["ae", "ä", "Ä", "æ"], &["af"], &["o", "ó"], &["oe", "ö"], &["u"], &["ue", "Ü"], &["uf"]]),
    (
        "is",
        &[
            &["a", "à"],
            &["az"],
            &["á", "Á"],
            &["b"],
            &["d", "đ"],
            &["dz"],
            &["ð", "Ð"],
            &["e"],
            &["é"],
            &["f"],
            &["z"],
            &["zz"],
            &["æ", "ä", "Ä"],
            &["ö", "ø"],
            &["å"],
            &["α"],
        ],
    ),
    (
        "lv",
        &[
            &["c"],
            &["cz"],
            &["č"],
            &["d"],
            &["g"],
            &["ģ"],
            &["h"],
            &["i", "y", "Y", "ý"],
            &["iz", "yz"],
            &["j"],
            &["k"],
            &["ķ"],
            &["l"],
            &["ļ"],
            &["m"],
            &["n"],
            &["ņ"],
            &["o"],
            &["s"],
            &["š"],
            &["t"],
            &["z"],
            &["ž"],
        ],
    ),
    (
        "ro",
        &[
            &["a"],
            &["az"],
            &["ă", "Ă"],
            &["â", "Â", "ấ"],
            &["b"],
            &["i"],
            &["î"],
            &["j"],
            &["s"],
            &["ş", "ș", "Ș"],
            &["t"],
            &["ţ", "ț", "Ț"],
            &["u"],
        ],
    ),
    ("sl", &[&["c"], &["cz"], &["č"], &["ć"], &["d"], &["đ"], &["e"], &["s"], &["š"], &["t"], &["z"], &["ž"]]),
    ("pl", &[&["a"], &["ą"], &["b"], &["l"], &["ł"], &["m"], &["o"], &["ó"], &["p"], &["z"], &["ź"], &["ż"]]),
    ("et", &[&["s"], &["š"], &["z", "Z", "ź"], &["ž"], &["t"], &["w"], &["õ"], &["ä"], &["ö"], &["ü"], &["x"], &["y"]]),
    ("es", &[&["n", "ń"], &["nz"], &["ñ", "Ñ"], &["o"]]),
    (
        "sv",
        &[
            &["d", "đ", "ð"],
            &["th", "þ", "Þ"],
            &["y", "ü", "Ű"],
            &["z"],
            &["zz"],
            &["å", "Å", "ǻ", "\u{212b}"],
            &["ä", "æ", "ę", "ǟ"],
            &["ö", "ø", "œ", "ô", "ő", "ộ"],
            &["öl", "øl"],
        ],
    ),
    (
        "tr",
        &[
            &["c"],
            &["ç"],
            &["d"],
            &["g"],
            &["ğ"],
            &["h"],
            &["ı", "I", "Í"],
            &["i", "İ", "í"],
            &["j"],
            &["o"],
            &["ö"],
            &["s"],
            &["ş"],
            &["t"],
            &["u"],
            &["ü"],
        ],
    ),
    ("la", &[&["i", "j", "J", "ĵ"], &["k"], &["v", "u", "U", "ú"], &["w"]]),
    ("eo", &[&["c"], &["ĉ"], &["d"], &["u", "ü"], &["uz"], &["ŭ", "Ŭ"], &["v"]]),
    (
        "vi",
        &[
            &["a", "á"],
            &["ă", "ắ"],
            &["â", "ậ"],
            &["b"],
            &["d"],
            &["đ"],
            &["e", "ẹ"],
            &["ê", "ệ"],
            &["f"],
            &["o"],
            &["ô", "ộ"],
            &["ơ", "ợ"],
            &["u"],
            &["ư", "ự"],
            &["v"],
        ],
    ),
    ("gl", &[&["n"], &["ñ"], &["o"]]),
];

#[test]
fn languages_have_their_letters_in_order() {
    for (language, classes) in LANGUAGES {
        assert_classes_rise(named(&format!("utf8mb4_{language}_0900_ai_ci")), classes);
    }
}

/// Orders of letters of several characters, of scripts, and of three levels, by the rules of CLDR.
const SEQUENCES: [(&str, &[&[&str]]); 23] = [
    (
        "cs_0900_ai_ci",
        &[&["c", "C"], &["cz"], &["č"], &["d"], &["h"], &["hz"], &["ch", "CH", "cH"], &["cha"], &["i"], &["r"], &["ř"]],
    ),
    ("cs_0900_as_cs", &[&["h"], &["H"], &["hz"], &["ch"], &["cH"], &["Ch"], &["CH"], &["cha"], &["i"]]),
    ("sk_0900_ai_ci", &[&["a"], &["ä"], &["b"], &["h"], &["ch", "Ch"], &["i"], &["o"], &["ô"], &["p"]]),
    (
        "da_0900_ai_ci",
        &[
            &["a"],
            &["ab"],
            &["th", "þ"],
            &["y", "ü"],
            &["z"],
            &["æ", "Ä"],
            &["ø", "ö"],
            &["å", "aa", "AA", "Aa"],
            &["åb", "aab"],
        ],
    ),
    (
        "da_0900_as_cs",
        &[
            &["A"],
            &["a"],
            &["B"],
            &["b"],
            &["z"],
            &["Æ"],
            &["æ"],
            &["Ø"],
            &["ø"],
            &["Å"],
            &["AA"],
            &["Aa"],
            &["å"],
            &["aa"],
        ],
    ),
    ("nb_0900_ai_ci", &[&["a"], &["z"], &["æ", "ę"], &["ø"], &["å", "aa"]]),
    ("nb_0900_as_cs", &[&["ø"], &["å"], &["Å"], &["ǻ"], &["aa"], &["Aa"], &["AA"], &["åb"]]),
    (
        "es_trad_0900_ai_ci",
        &[&["c"], &["cz"], &["ch", "CH"], &["d"], &["l"], &["lz"], &["ll", "Ll"], &["m"], &["n"], &["ñ"]],
    ),
    (
        "hr_0900_ai_ci",
        &[
            &["č"],
            &["ć"],
            &["d"],
            &["dž", "ǆ", "DŽ"],
            &["đ"],
            &["l"],
            &["lj", "ǉ", "LJ"],
            &["m"],
            &["z"],
            &["ž"],
            &["я"],
            &["α"],
        ],
    ),
    ("hr_0900_as_cs", &[&["lz"], &["lj"], &["ǉ"], &["Lj"], &["ǈ"], &["LJ"], &["Ǉ"], &["m"]]),
    (
        "hu_0900_ai_ci",
        &[
            &["c"],
            &["cz"],
            &["cs", "CS"],
            &["cscs", "ccs"],
            &["d"],
            &["dz"],
            &["dzs"],
            &["dzsdzs", "ddzs"],
            &["e"],
            &["o", "ó"],
            &["ö", "ő"],
            &["p"],
        ],
    ),
    ("hu_0900_as_cs", &[&["o"], &["O"], &["ó"], &["ö"], &["Ö"], &["ő"], &["Ő"], &["p"], &["zs"], &["Zs"], &["ZS"]]),
    ("lt_0900_ai_ci", &[&["a", "ą"], &["c"], &["č"], &["i", "y", "į"], &["iz", "yz"], &["s"], &["š"], &["z"], &["ž"]]),
    ("lt_0900_as_cs", &[&["i"], &["i\u{300}", "i\u{307}\u{300}"], &["į"], &["y"], &["Y"], &["iz"]]),
    ("ru_0900_ai_ci", &[&["7"], &["а", "А"], &["е", "ё"], &["я"], &["a"], &["z"], &["α"], &["ა"]]),
    ("bg_0900_as_cs", &[&["а"], &["А"], &["я"], &["a"], &["A"]]),
    ("mn_cyrl_0900_ai_ci", &[&["я"], &["a"]]),
    (
        "sv_0900_as_cs",
        &[
            &["th"],
            &["þ"],
            &["y"],
            &["Y"],
            &["ü"],
            &["Ü"],
            &["z"],
            &["å"],
            &["Å"],
            &["ä"],
            &["Ä"],
            &["æ"],
            &["Æ"],
            &["ö"],
        ],
    ),
    (
        "vi_0900_as_cs",
        &[
            &["a"],
            &["A"],
            &["à"],
            &["À"],
            &["ả"],
            &["ã"],
            &["á"],
            &["ạ"],
            &["az"],
            &["ă"],
            &["ằ"],
            &["ẳ"],
            &["ẵ"],
            &["ắ"],
            &["ặ"],
            &["â"],
            &["b"],
        ],
    ),
    ("de_pb_0900_as_cs", &[&["ad"], &["ae"], &["Ae"], &["AE"], &["ä"], &["Ä"], &["af"]]),
    ("tr_0900_as_cs", &[&["h"], &["ı"], &["I"], &["i"], &["İ"], &["j"]]),
    ("is_0900_as_cs", &[&["a"], &["A"], &["az"], &["á"], &["Á"], &["b"]]),
    ("sr_latn_0900_ai_ci", &[&["n"], &["nz"], &["nj", "ǌ"], &["o"]]),
];

#[test]
fn letters_of_several_characters_and_levels_are_in_order() {
    for (collation, classes) in SEQUENCES {
        assert_classes_rise(named(&format!("utf8mb4_{collation}")), classes);
    }
}

#[test]
fn a_prefix_key_ends_before_a_letter_of_several_characters_may_begin() {
    let key_of = |collation: CollationId, prefix: &str| {
        let mut key = Vec::new();
        collation.append_prefix_key(prefix.as_bytes(), &mut key);
        key
    };
    let czech = named("utf8mb4_cs_0900_ai_ci");
    assert_eq!(key_of(czech, "abč").len(), 3 * 2 + 2);
    for prefix in ["abc", "abC", "abch", "abçx"] {
        assert_eq!(key_of(czech, prefix), key_of(czech, "ab"), "{prefix}");
    }
}

#[test]
fn a_letter_with_a_mark_after_it_is_not_the_letter_of_a_language() {
    let swedish = named("utf8mb4_sv_0900_ai_ci");
    assert_classes_rise(swedish, &[&["a", "a\u{30a}"], &["z"], &["å", "å\u{301}"]]);
    assert!(swedish.like("Å".as_bytes(), "å".as_bytes(), None) && !swedish.like(b"A", "å".as_bytes(), None));
}

/// Orders that MariaDB 10.11 gives.
#[test]
fn padded_languages_have_their_letters_in_order() {
    let orders: [(&str, &[&[&str]]); 7] = [
        ("swedish", &[&["y", "ü", "Y "], &["z"], &["å", "Å"], &["ä", "æ"], &["ö", "ø", "Ö  "]]),
        ("german2", &[&["a"], &["ad"], &["ae", "ä", "Æ"], &["af"], &["oe", "Ö"], &["ue", "ü "]]),
        ("turkish", &[&["h"], &["ı", "I"], &["i", "İ"], &["j"]]),
        ("spanish", &[&["n"], &["nz"], &["ñ", "Ñ "], &["o"]]),
        ("estonian", &[&["s"], &["š"], &["z"], &["ž"], &["t"], &["w"], &["õ"], &["ä"], &["ö"], &["ü"], &["x"]]),
        ("roman", &[&["i", "j"], &["v", "u"]]),
        ("icelandic", &[&["a"], &["á"], &["b"], &["z"], &["æ", "ä"], &["ö", "ø"], &["å"]]),
    ];
    for (language, classes) in orders {
        assert_classes_rise(named(&format!("utf8mb4_{language}_ci")), classes);
    }
}
