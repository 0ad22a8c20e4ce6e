use proptest::prelude::*;

use super::*;

fn document(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    parse(text.as_bytes(), &mut out).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert!(is_valid(&out), "{text}");
    out
}

fn printed(document: &[u8]) -> String {
    let mut out = Vec::new();
    append_text(document, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn documents_print_in_mysqls_normal_form() {
    let cases = [
        (r#"{"b":1,"a":[1,2.0,-3e2,true,null],"aa":{}}"#, r#"{"a": [1, 2.0, -300.0, true, null], "b": 1, "aa": {}}"#),
        (r#" [ ] "#, "[]"),
        (r#"{"a":1,"a":2}"#, r#"{"a": 2}"#),
        (r#""a\u00e9\n\"\/\ud83d\ude00""#, "\"aé\\n\\\"/😀\""),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("0.1", "0.1"),
        ("\"\\u0001\"", "\"\\u0001\""),
    ];
    for (text, expected) in cases {
        assert_eq!(printed(&document(text)), expected, "{text}");
    }
}

#[test]
fn defects_are_named_with_their_position() {
    let cases = [
        ("", "The document is empty.", 0),
        ("x", "Invalid value.", 0),
        ("nul", "Invalid value.", 1),
        ("[1,]", "Invalid value.", 3),
        ("[1 2]", "Missing a comma or ] after an array element.", 3),
        ("{a:1}", "Missing a name for object member.", 1),
        ("{\"a\" 1}", "Missing a colon after a name of object member.", 5),
        ("{\"a\":1 \"b\"", "Missing a comma or } after an object member.", 7),
        ("\"a", "Missing a closing quotation mark in string.", 0),
        ("\"\\q\"", "Invalid escape character in string.", 1),
        ("1 2", "The document root must not be followed by other values.", 2),
        ("01", "The document root must not be followed by other values.", 1),
        ("1.", "Miss fraction part in number.", 2),
        ("1e999", "Number too big to be stored in double.", 0),
    ];
    for (text, what, position) in cases {
        assert_eq!(parse(text.as_bytes(), &mut Vec::new()), Err(JsonError::Invalid(what, position)), "{text}");
    }
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(deep(100).as_bytes(), &mut Vec::new()).is_ok());
    assert_eq!(parse(deep(101).as_bytes(), &mut Vec::new()), Err(JsonError::TooDeep));
}

#[test]
fn documents_are_in_mysqls_order() {
    let ascending = [
        "null",
        "-5",
        "1",
        "1.5",
        "2",
        "1e20",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "{}",
        "{\"a\": 1}",
        "{\"a\": 2}",
        "{\"b\": 0}",
        "[]",
        "[1]",
        "[1, 2]",
        "[2]",
        "false",
        "true",
    ];
    for (left_place, left) in ascending.iter().enumerate() {
        for (right_place, right) in ascending.iter().enumerate() {
            let (left, right) = (document(left), document(right));
            assert_eq!(compare(&left, &right), left_place.cmp(&right_place));
            let key = |document: &[u8]| {
                let mut out = Vec::new();
                append_sort_key(document, &mut out);
                out
            };
            assert_eq!(key(&left).cmp(&key(&right)), left_place.cmp(&right_place));
        }
    }
    assert!(compare(&document("1"), &document("1.0")).is_eq());
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_filter("JSON has no such number", |value| value.is_finite()).prop_map(Into::into),
        "[a-z\"\\\\é😀\n\u{1}]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::hash_map("[a-c]{0,3}", inner, 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_is_what_serde_json_reads(value in value()) {
        let text = serde_json::to_string(&value).unwrap();
        let document = document(&text);
        let again: serde_json::Value = serde_json::from_str(&printed(&document)).unwrap();
        // Numbers such as 1e300 may print with other digits of the same number.
        prop_assert_eq!(&self::document(&printed(&document)), &document);
        prop_assert!(!again.to_string().is_empty());
    }

    #[test]
    fn no_bytes_stop_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[\\[\\]{}\",:0-9eE+.\\\\u-]{0,30}") {
        is_valid(&bytes);
        append_text(&bytes, &mut Vec::new());
        let mut out = Vec::new();
        if parse(text.as_bytes(), &mut out).is_ok() {
            prop_assert!(is_valid(&out));
        }
    }
}

#[test]
fn sort_keys_have_the_order_of_exact_numbers_that_no_double_tells_apart() {
    let decimal = |mantissa, scale| ValueRef::Decimal(crate::decimal::new(mantissa, scale));
    let ascending = [
        decimal(-90_071_992_547_409_935, 1),
        ValueRef::Int(-9_007_199_254_740_993),
        ValueRef::Int(-9_007_199_254_740_992),
        decimal(1, 1),
        decimal(100_000_000_000_000_000_000_001, 24),
        ValueRef::Int(9_007_199_254_740_992),
        ValueRef::Int(9_007_199_254_740_993),
        decimal(900_719_925_474_099_325, 2),
        ValueRef::UInt(u64::MAX - 1),
        ValueRef::UInt(u64::MAX),
    ];
    let key = |value| {
        let (mut document, mut key) = (Vec::new(), Vec::new());
        append_value(value, &mut document);
        append_sort_key(&document, &mut key);
        key
    };
    for pair in ascending.windows(2) {
        assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
    }
    assert_eq!(key(ValueRef::Int(5)), key(decimal(500, 2)));
    assert_eq!(key(ValueRef::Int(5)), key(ValueRef::Double(5.0)));
    assert_eq!(key(ValueRef::Int(9_007_199_254_740_992)), key(ValueRef::Double(9_007_199_254_740_992.0)));
}
