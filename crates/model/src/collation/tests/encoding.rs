use crate::collation::{CharacterSet, CollationId, latin1};

#[test]
fn every_byte_of_latin1_is_one_character() {
    assert!(latin1::bytes_are_those_of_characters());
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let mut text = Vec::new();
    CharacterSet::Latin1.decode(&bytes, &mut text);
    assert!(CharacterSet::Latin1.is_valid(&text));
    assert_eq!(CharacterSet::Latin1.byte_count(&text), bytes.len());
    let mut encoded = Vec::new();
    assert!(CharacterSet::Latin1.encode(&text, &mut encoded));
    assert_eq!(encoded, bytes);
}

#[test]
fn a_character_that_a_set_lacks_becomes_a_question_mark() {
    let text = "aé€😀".as_bytes();
    let cases: [(CharacterSet, &[u8], bool, usize); 5] = [
        (CharacterSet::Utf8mb4, text, true, text.len()),
        (CharacterSet::Binary, text, true, text.len()),
        (CharacterSet::Utf8mb3, "aé€?".as_bytes(), false, 6),
        (CharacterSet::Latin1, b"a\xE9\x80?", false, 6),
        (CharacterSet::Ascii, b"a???", false, 1),
    ];
    for (set, expected, is_complete, valid) in cases {
        let mut encoded = Vec::new();
        assert_eq!(set.encode(text, &mut encoded), is_complete, "{set}");
        assert_eq!(encoded, expected, "{set}");
        assert_eq!(set.valid_bytes(text), valid, "{set}");
        assert_eq!(set.is_valid(text), is_complete, "{set}");
    }
}

#[test]
fn letters_of_latin1_have_their_other_case_within_latin1() {
    let swedish = CollationId::from_name("latin1_swedish_ci").unwrap();
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    swedish.append_upper("aéÿµš÷ß".as_bytes(), &mut upper);
    swedish.append_lower("AÉŸŠ×Þ".as_bytes(), &mut lower);
    assert_eq!(String::from_utf8(upper).unwrap(), "AÉÿµš÷ß");
    assert_eq!(String::from_utf8(lower).unwrap(), "aéŸŠ×þ");
}
