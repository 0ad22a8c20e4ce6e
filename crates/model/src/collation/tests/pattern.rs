use crate::collation::CollationId;

const UNICODE: CollationId = CollationId::UTF8MB4_0900_AI_CI;
const GENERAL: CollationId = CollationId::UTF8MB4_GENERAL_CI;
const CODE_POINT: CollationId = CollationId::UTF8MB4_BIN;
const BINARY: CollationId = CollationId::BINARY;

fn like(collation: CollationId, text: &str, pattern: &str) -> bool {
    collation.like(text.as_bytes(), pattern.as_bytes(), Some('\\'))
}

#[test]
fn percent_and_underscore_stand_for_any_and_one_character() {
    let cases = [
        ("", "", true),
        ("", "%", true),
        ("", "_", false),
        ("a", "", false),
        ("abc", "abc", true),
        ("abc", "ab", false),
        ("abc", "a%", true),
        ("abc", "%c", true),
        ("abc", "%b%", true),
        ("abc", "%d%", false),
        ("abc", "a_c", true),
        ("abc", "___", true),
        ("abc", "____", false),
        ("abc", "%___", true),
        ("abc", "_%__%_", false),
        ("abc", "%%%", true),
        ("abc", "%_%", true),
        ("aab", "%ab", true),
        ("aaab", "a%ab", true),
        ("mississippi", "m%iss%ip%i", true),
        ("mississippi", "m%iss%ss%ss%", false),
        ("héllo", "h_llo", true),
        ("😀x", "_x", true),
        ("一bq", "%__bq", false),
        ("一bq", "%_bq", true),
        ("a%b", "a\\%b", true),
        ("axb", "a\\%b", false),
        ("a_b", "a\\_b", true),
        ("axb", "a\\_b", false),
        ("a\\", "a\\", true),
        ("a\\b", "a\\\\b", true),
        ("abcabcabd", "%abd", true),
    ];
    for (text, pattern, expected) in cases {
        for collation in [UNICODE, GENERAL, CODE_POINT] {
            assert_eq!(like(collation, text, pattern), expected, "{collation}: {text:?} LIKE {pattern:?}");
        }
    }
}

#[test]
fn characters_are_compared_one_to_one_by_the_collation() {
    assert!(like(UNICODE, "Ärger", "a%R"));
    assert!(like(GENERAL, "Ärger", "a%R"));
    assert!(!like(CODE_POINT, "Ärger", "a%r"));
    assert!(!like(UNICODE, "ß", "ss"));
    assert!(!like(UNICODE, "ß", "s"));
    assert!(like(UNICODE, "ß", "ẞ"));
    assert!(like(GENERAL, "ß", "s"));
    assert!(like(GENERAL, "😀", "😁"));
    assert!(!like(UNICODE, "😀", "😁"));
    assert!(!like(UNICODE, "a", "a\u{200b}"), "a character without weight is still a character");
    assert!(like(UNICODE, "\u{200b}", "\u{200d}"));
    assert!(like(BINARY, "é", "__"));
    assert!(!like(BINARY, "é", "_"));
    assert!(!like(BINARY, "a", "A"));
}

#[test]
fn trailing_spaces_count_in_every_collation() {
    for collation in CollationId::ALL {
        assert!(!like(collation, "a ", "a"), "{collation}");
        assert!(!like(collation, "a", "a "), "{collation}");
    }
}

/// The results are those of MariaDB 10.11.
#[test]
fn the_escape_character_may_be_any_or_none() {
    let cases = [
        ("a|", "a|", '|', true),
        ("ab", "a%|", '|', false),
        ("a|", "%|", '|', true),
        ("a%", "a|%", '|', true),
        ("xx%y", "%|%y", '|', true),
        ("xxzy", "%|%y", '|', false),
        ("50x", "50%%", '%', true),
        ("axxb", "a%%b", '%', true),
        ("a_b", "a__b", '_', true),
        ("axb", "a__b", '_', false),
        ("axyb", "a__b", '_', false),
        ("ab", "a_", '_', true),
        ("éx", "éé%", 'é', true),
        ("a%", "aé%", 'é', true),
        ("ax", "aé%", 'é', false),
    ];
    for (text, pattern, escape, expected) in cases {
        let found = GENERAL.like(text.as_bytes(), pattern.as_bytes(), Some(escape));
        assert_eq!(found, expected, "{text:?} LIKE {pattern:?} ESCAPE {escape:?}");
    }
    assert!(GENERAL.like(b"a\\b", b"a\\_", None));
    assert!(!GENERAL.like(b"a_", b"a\\_", None));
}

#[test]
fn a_long_hostile_pattern_ends() {
    let text = vec![b'a'; 3000];
    let pattern = [b"%a".repeat(400), b"b".to_vec()].concat();
    assert!(!UNICODE.like(&text, &pattern, Some('\\')));
}
