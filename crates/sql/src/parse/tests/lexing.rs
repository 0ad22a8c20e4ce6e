//! Tokens, comments and quotes.

use crate::parse::Dialect;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::{Lexer, TokenKind};

fn kinds(text: &str) -> Vec<TokenKind> {
    let mut lexer = Lexer::new(text.as_bytes(), 0, Dialect::default());
    std::iter::from_fn(|| Some(lexer.next_token().kind).filter(|kind| *kind != TokenKind::End)).take(100).collect()
}

#[test]
fn each_token_has_its_kind() {
    use TokenKind::*;
    for (text, expected) in [
        (
            "1 1.5 .5 1e3 1.e-3 1a 0x1F 0xZ 0b01 0b2",
            vec![Integer, Decimal, Decimal, Double, Double, Name, Hexadecimal, Name, Bits, Name],
        ),
        ("x'0f' X'0' b'01' B'2' N'a' n 'a'", vec![Hexadecimal, Bad, Bits, Bad, NationalString, Name, String]),
        ("a.5 `a`.5b .5", vec![Name, Dot, Name, QuotedName, Dot, Name, Decimal]),
        ("t.select select", vec![Name, Dot, Name, Keyword(crate::parse::keyword::Keyword::Select)]),
        ("@a @'a b' @`c` @@ @", vec![UserVariable, UserVariable, UserVariable, AtAt, Bad]),
        (
            "<=> <= <> != << >= >> || && := -> ->> ? ;",
            vec![
                NullSafeEqual,
                LessOrEqual,
                NotEqual,
                NotEqual,
                ShiftLeft,
                GreaterOrEqual,
                ShiftRight,
                BarBar,
                AmpersandAmpersand,
                Assign,
                Arrow,
                LongArrow,
                Parameter,
                Semicolon,
            ],
        ),
        ("'a''b' 'a\\'b' \"a'b\" `a``b`", vec![String, String, String, QuotedName]),
        ("'open", vec![Bad]),
        ("a\u{e9}\u{4e2d} $x _y", vec![Name, Name, Name]),
        ("\\N { \0", vec![Bad, Name, OpenBrace, Bad]),
    ] {
        assert_eq!(kinds(text), expected, "{text}");
    }
}

#[test]
fn comments_are_blanks_unless_they_are_executable() {
    use TokenKind::*;
    for (text, count) in [
        ("1 -- two\n3", 2),
        ("1 --2", 4),
        ("1 # two", 1),
        ("1 /* 2 */ 3", 2),
        ("1 /*! 2 */ 3", 3),
        ("1 /*!80036 2 */ 3", 3),
        ("1 /*!80037 2 */ 3", 2),
        ("1 /*!50717 2 /* 3 */ */ 4", 3),
        ("1 /*!100100 2 */ 3", 2),
        ("1 /*M!100100 2 */ 3", 2),
        ("1 /*+ hint */ 3", 2),
    ] {
        assert_eq!(kinds(text).len(), count, "{text}");
    }
    assert_eq!(kinds("1 /* open"), [Integer, Bad]);
    assert_eq!(kinds("1 /*! 2")[..3], [Integer, Integer, Bad]);
    assert_eq!(kinds("1 */"), [Integer, Star, Slash]);
}

#[test]
fn keywords_are_found_in_any_case_and_reserved_ones_known() {
    assert_eq!(Keyword::find(b"sElEcT"), Some(Keyword::Select));
    assert_eq!(Keyword::find(b"zerofill"), Some(Keyword::Zerofill));
    assert_eq!(Keyword::find(b"accessible"), Some(Keyword::Accessible));
    assert_eq!(Keyword::find(b"selects"), None);
    assert_eq!(Keyword::find(b""), None);
    assert_eq!(Keyword::find(b"_"), None);
    assert_eq!(Keyword::find(&[b'a'; 100]), None);
    assert!(Keyword::Select.is_reserved() && !Keyword::Status.is_reserved());
    assert_eq!(Keyword::HighPriority.text(), "HIGH_PRIORITY");
}
