//! Hot path: at most 3 instructions per byte of a text.
//!
//! LIKE patterns of which only the bytes matter.

use super::identity::CollationId;

/// A pattern whose only special characters are `%`, in a collation in which equal texts have equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikePattern {
    prefix: Box<[u8]>,
    /// The texts between two `%`, none of them empty.
    inner: Box<[Box<[u8]>]>,
    /// `None` without a `%`: the prefix is the whole text.
    suffix: Option<Box<[u8]>>,
}

impl LikePattern {
    /// The pattern; `None` if it needs more than bytes.
    pub fn new(collation: CollationId, pattern: &[u8], escape: Option<char>) -> Option<LikePattern> {
        if !collation.likes_bytes() {
            return None;
        }
        let mut bytes = [0; 4];
        let escape: &[u8] = escape.map_or(&[], |escape| escape.encode_utf8(&mut bytes).as_bytes());
        // `%` keeps its meaning even as escape character.
        if pattern.contains(&b'_') || escape != b"%" && position(pattern, escape).is_some_and(|_| !escape.is_empty()) {
            return None;
        }
        let mut pieces: Vec<&[u8]> = pattern.split(|byte| *byte == b'%').collect();
        let suffix = if pieces.len() > 1 { pieces.pop().map(Box::from) } else { None };
        let prefix = pieces.remove(0).into();
        let inner = pieces.into_iter().filter(|piece| !piece.is_empty()).map(Box::from).collect();
        Some(LikePattern { prefix, inner, suffix })
    }

    /// Whether the pattern matches the whole text.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(suffix) = &self.suffix else { return *text == *self.prefix };
        let Some(rest) = text.strip_prefix(&*self.prefix) else { return false };
        let Some(mut rest) = rest.strip_suffix(&**suffix) else { return false };
        for piece in &self.inner {
            let Some(at) = position(rest, piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        true
    }
}

/// Where `piece` is first found in `text`.
fn position(text: &[u8], piece: &[u8]) -> Option<usize> {
    let Some((first, others)) = piece.split_first() else { return Some(0) };
    let starts = text.len().checked_sub(others.len())?;
    let mut from = 0;
    loop {
        from += text[from..starts].iter().position(|byte| byte == first)?;
        if text[from + 1..].starts_with(others) {
            return Some(from);
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_need_more_than_bytes() {
        let of = |collation, pattern: &str, escape| LikePattern::new(collation, pattern.as_bytes(), escape);
        assert_eq!(of(CollationId::UTF8MB4_BIN, "a_", Some('\\')), None);
        assert_eq!(of(CollationId::UTF8MB4_BIN, "a\\%", Some('\\')), None);
        assert_eq!(of(CollationId::UTF8MB4_GENERAL_CI, "a%", Some('\\')), None);
        assert!(of(CollationId::UTF8MB4_BIN, "a\\%", None).is_some());
        assert!(of(CollationId::BINARY, "a%", Some('%')).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn bytes_match_like_characters(text in "[abä ]{0,8}", pattern in "[abä% ]{0,6}", binary in any::<bool>()) {
            let collation = if binary { CollationId::BINARY } else { CollationId::UTF8MB4_BIN };
            let compiled = LikePattern::new(collation, pattern.as_bytes(), Some('\\')).unwrap();
            let expected = collation.like(text.as_bytes(), pattern.as_bytes(), Some('\\'));
            prop_assert_eq!(compiled.matches(text.as_bytes()), expected);
        }
    }
}
