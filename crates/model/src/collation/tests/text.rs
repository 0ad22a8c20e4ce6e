use crate::collation::{CharacterSet, CollationId, is_valid_utf8mb4};

fn upper(collation: CollationId, text: &str) -> String {
    let mut out = Vec::new();
    collation.append_upper(text.as_bytes(), &mut out);
    String::from_utf8(out).unwrap()
}

fn lower(collation: CollationId, text: &str) -> String {
    let mut out = Vec::new();
    collation.append_lower(text.as_bytes(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn letter_case_maps_one_character_to_one() {
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    assert_eq!(upper(collation, "az AZ 09 [`{ é ß я ᾳ ŉ ﬀ ǆ"), "AZ AZ 09 [`{ É ß Я ᾼ ŉ ﬀ Ǆ");
    assert_eq!(lower(collation, "az AZ 09 [@{ É ẞ Я ᾼ İ Σ"), "az az 09 [@{ é ß я ᾳ i σ");
    assert_eq!(upper(CollationId::BINARY, "aé"), "aé");
    assert_eq!(lower(CollationId::BINARY, "AÉ"), "AÉ");
}

#[test]
fn turkish_letters_keep_their_dots() {
    let collation = CollationId::UTF8MB4_TURKISH_CI;
    assert_eq!(upper(collation, "it's ıä"), "İT'S IÄ");
    assert_eq!(lower(collation, "IT'S İÄ"), "ıt's iä");
}

#[test]
fn letter_case_keeps_invalid_bytes() {
    let mut out = Vec::new();
    CollationId::UTF8MB4_GENERAL_CI.append_upper(b"a\xff\xc3b\xe9", &mut out);
    assert_eq!(out, b"A\xff\xc3B\xe9");
}

#[test]
fn lengths_and_prefixes_are_in_characters() {
    let text = "aé一😀".as_bytes();
    assert_eq!(CharacterSet::Utf8mb4.character_count(text), 4);
    assert_eq!(CharacterSet::Binary.character_count(text), 10);
    assert_eq!(CharacterSet::Utf8mb4.prefix(text, 3), "aé一".as_bytes());
    assert_eq!(CharacterSet::Utf8mb4.prefix(text, usize::MAX), text);
    assert_eq!(CharacterSet::Binary.prefix(text, 2), b"a\xc3");
    assert_eq!(CharacterSet::Utf8mb4.max_bytes_per_character(), 4);
    assert_eq!(CollationId::BINARY.max_bytes_per_character(), 1);
}

#[test]
fn validity_is_that_of_utf8_with_four_bytes() {
    assert!(is_valid_utf8mb4("aé一😀".as_bytes()));
    for bad in [&b"\x80"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4\xb8", b"\xff"] {
        assert!(!is_valid_utf8mb4(bad), "{bad:?}");
        assert!(!CharacterSet::Utf8mb4.is_valid(bad), "{bad:?}");
        assert!(CharacterSet::Binary.is_valid(bad), "{bad:?}");
    }
}
