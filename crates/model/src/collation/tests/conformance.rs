//! The collations of UCA 9.0.0 against Unicode's conformance test, of which `unicode_9_order.txt` has a part.

use std::cmp::Ordering;

use super::key;
use crate::collation::CollationId;

/// The texts of the file in their order, each with the first level on which it differs from the one before.
fn texts() -> Vec<(u8, String)> {
    let lines = include_str!("unicode_9_order.txt").lines().filter(|line| !line.starts_with('#'));
    let text = |codes: &str| -> String {
        codes.split(' ').filter_map(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?)).collect()
    };
    lines.map(|line| (line.as_bytes()[0] - b'0', text(&line[2..]))).collect()
}

/// The collations and how many levels they compare.
fn collations() -> [(CollationId, u8); 3] {
    [("utf8mb4_0900_ai_ci", 1), ("utf8mb4_0900_as_ci", 2), ("utf8mb4_0900_as_cs", 3)]
        .map(|(name, levels)| (CollationId::from_name(name).expect("it is known"), levels))
}

#[test]
fn neighbours_differ_on_the_level_that_unicode_gives() {
    let texts = texts();
    assert!(texts.len() > 7_000);
    let mut wrong = Vec::new();
    for pair in texts.windows(2) {
        let ((_, left), (level, right)) = (&pair[0], &pair[1]);
        for (collation, levels) in collations() {
            let expected = if (1..=levels).contains(level) { Ordering::Less } else { Ordering::Equal };
            let compared = collation.compare(left.as_bytes(), right.as_bytes());
            let keys = key(collation, left.as_bytes()).cmp(&key(collation, right.as_bytes()));
            if (compared, keys) != (expected, expected) {
                wrong.push(format!(
                    "{collation} {:04x?} {:04x?}: {compared:?}, {expected:?}",
                    codes(left),
                    codes(right)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong[..wrong.len().min(50)].join("\n"));
}

#[test]
fn distant_texts_have_the_order_of_the_file() {
    let texts = texts();
    for step in [7, 61, 509, 3_001] {
        for (collation, levels) in collations() {
            for (at, pair) in texts.windows(step + 1).enumerate().step_by(3) {
                let is_less = pair[1..].iter().any(|(level, _)| (1..=levels).contains(level));
                let expected = if is_less { Ordering::Less } else { Ordering::Equal };
                let (left, right) = (pair[0].1.as_bytes(), pair[step].1.as_bytes());
                assert_eq!(collation.compare(left, right), expected, "{collation}, line {at} and {step} later");
                assert_eq!(collation.compare(right, left), expected.reverse(), "{collation}, line {at}, backwards");
            }
        }
    }
}

fn codes(text: &str) -> Vec<u32> {
    text.chars().map(u32::from).collect()
}
