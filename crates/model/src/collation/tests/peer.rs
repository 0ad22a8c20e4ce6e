//! The collations of languages against ICU4X, which has the rules of a newer CLDR: random texts of each
//! language's letters have the same order.

use std::cmp::Ordering;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::Locale;

use super::key;
use crate::collation::CollationId;

/// A language of MySQL's names, its locale, and the letters that its rules concern, in both cases. Letters of
/// Latin with one accent are added to all languages.
struct Language {
    name: &'static str,
    locale: &'static str,
    letters: &'static str,
    /// Letters that a later CLDR puts elsewhere.
    moved_later: &'static str,
}

const fn language(name: &'static str, locale: &'static str, letters: &'static str) -> Language {
    Language { name, locale, letters, moved_later: "" }
}

const LANGUAGES: [Language; 28] = [
    language("de_pb", "de-u-co-phonebk", "ae oe ue ä Ä ö Ö ü Ü ß"),
    language("is", "is", "á Á đ Đ ð Ð é É í Í ó Ó ú Ú ý Ý æ Æ ä Ä ö Ö ø Ø å Å þ Þ"),
    Language {
        moved_later: "yYýÝŷŶÿŸōŌŋŊāĀēĒīĪūŪ", ..language("lv", "lv", "č Č ģ Ģ ķ Ķ ļ Ļ ņ Ņ ŗ Ŗ š Š ž Ž")
    },
    language("ro", "ro", "ă Ă â Â î Î ş ș Ş Ș ţ ț Ţ Ț"),
    language("sl", "sl", "č Č ć Ć đ Đ š Š ž Ž"),
    language("pl", "pl", "ą Ą ć Ć ę Ę ł Ł ń Ń ó Ó ś Ś ź Ź ż Ż"),
    language("et", "et", "š Š z Z ž Ž õ Õ ä Ä ö Ö ü Ü w W"),
    language("es", "es", "ñ Ñ n N ll ch"),
    language("es_trad", "es-u-co-trad", "ñ Ñ ch Ch CH ll Ll LL c l"),
    language("sv", "sv", "å Å ä Ä æ Æ ę Ę ö Ö ø Ø ő Ő œ Œ ô Ô đ ð þ Þ ü Ü ű"),
    language("tr", "tr", "ç Ç ğ Ğ ı I i İ ö Ö ş Ş ü Ü"),
    language("cs", "cs", "č Č ch cH Ch CH c h ř Ř š Š ž Ž"),
    Language {
        moved_later: "œŒ", ..language("da", "da", "đ Đ ð þ Þ ü Ü ű æ Æ ä Ä ø Ø ö Ö ő å Å aa Aa AA a A")
    },
    language("lt", "lt", "ą Ą č Č ę Ę ė Ė į Į y Y š Š ų Ų ū Ū ž Ž"),
    language("sk", "sk", "ä Ä č Č ch cH Ch CH c h ô Ô ř š Š ž Ž"),
    language("eo", "eo", "ĉ Ĉ ĝ Ĝ ĥ Ĥ ĵ Ĵ ŝ Ŝ ŭ Ŭ"),
    language(
        "hu",
        "hu",
        "cs Cs CS dz Dz DZ dzs Dzs DZS gy Gy ly ny sz Sz ty zs ö Ö ő Ő ü Ü ű Ű ccs ddz ddzs ggy ssz zzs",
    ),
    language("hr", "hr", "č Č ć Ć dž ǆ Dž ǅ DŽ Ǆ đ Đ lj ǉ Lj ǈ LJ nj ǌ Nj š Š ž Ž d l n"),
    language("sr_latn", "sr-Latn", "č Č ć Ć dž ǆ Dž đ Đ lj Lj LJ nj Nj NJ š Š ž Ž d l n"),
    language("bs", "bs", "č Č ć Ć dž ǆ Dž đ Đ lj Lj LJ nj Nj NJ š Š ž Ž d l n"),
    language(
        "vi",
        "vi",
        "ă Ă â Â đ Đ ê Ê ô Ô ơ Ơ ư Ư á à ả ã ạ ấ ầ ẩ ẫ ậ ắ ằ ẳ ẵ ặ ế ề ể ễ ệ ố ồ ổ ỗ ộ ớ ờ ở ỡ ợ ứ ừ ử ữ ự",
    ),
    language("nb", "nb", "đ Đ ð þ Þ ü Ü ű æ Æ ä Ä ę ø Ø ö Ö ő œ å Å aa Aa AA a A"),
    language("nn", "nn", "đ Đ ð þ Þ ü Ü ű æ Æ ä Ä ę ø Ø ö Ö ő œ å Å aa Aa AA a A"),
    language("gl", "gl", "ñ Ñ n N"),
    language("ru", "ru", "а А б Б в е Е ё Ё ж З и й Й к о ў я Я ь ъ a b z"),
    language("bg", "bg", "а А б Б в е Е ж з и й Й к щ ъ ь ю я Я a b z"),
    language("mn_cyrl", "mn", "а А б Б е ё и й о ө Ө у ү Ү э я a b z"),
    language(
        "zh",
        "zh",
        "ā á ǎ à ē é ě è ī ū ǖ ü Ü 一 ㊀ ⼀ ㈠ 二 三 人 上 中 国 北 京 海 重庆 重 庆 阳 a e u 文 学 大 小 水 火 山 木",
    ),
];

const KANA: &str = "ぁ あ ア ァ ｱ か カ が ガ ゕ ー ゝ ヽ ゞ ヾ き さ ざ は ハ ば バ ぱ パ ン ん わ ヰ 亜 一 人 日 本 語 漢 字 a A ａ 1 １ α";

/// Pairs of texts for each collation.
const PAIRS: usize = 3_000;

/// Numbers of a xorshift generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn text(&mut self, letters: &[String], length: usize) -> Vec<String> {
        (0..length).map(|_| letters[self.below(letters.len())].clone()).collect()
    }
}

fn icu(locale: &str, strength: Strength) -> CollatorBorrowed<'static> {
    let locale: Locale = locale.parse().expect("it is a locale");
    let mut options = CollatorOptions::default();
    options.strength = Some(strength);
    Collator::try_new((&locale).into(), options).expect("there is data")
}

/// The letter without its marks.
fn base_of(letter: char) -> char {
    let decompositions = include_str!("../tables/latin_decompositions.txt").lines();
    let parts = decompositions.map(str::chars).find(|parts| parts.clone().next() == Some(letter));
    parts.and_then(|mut parts| parts.nth(1)).unwrap_or(letter)
}

/// Whether a text has a letter of several characters with a mark on one of these. ICU finds it, because it
/// reads the parts of composed letters; MySQL does not.
fn has_hidden_letter(text: &str, sequences: &[Vec<char>]) -> bool {
    let letters: Vec<char> = text.chars().collect();
    let bases: Vec<char> = letters.iter().map(|letter| base_of(*letter)).collect();
    sequences.iter().any(|sequence| {
        let found = |at: usize| bases[at..].starts_with(sequence) && !letters[at..].starts_with(sequence);
        (0..bases.len()).any(found)
    })
}

/// Compares the order of pairs of texts, unrelated ones and such that differ in a letter. Returns those that
/// differ.
fn disagreements(collation: CollationId, peer: &CollatorBorrowed<'_>, letters: &[String]) -> Vec<String> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ u64::from(collation.number()));
    let mut sequences: Vec<Vec<char>> = letters.iter().map(|letter| letter.chars().collect()).collect();
    sequences.retain(|sequence| sequence.len() > 1);
    sequences.sort();
    sequences.dedup();
    let mut wrong = Vec::new();
    for _ in 0..PAIRS {
        let length = 1 + numbers.below(5);
        let left = numbers.text(letters, length);
        let mut right = left.clone();
        match numbers.below(3) {
            0 => right = numbers.text(letters, length),
            1 => right[numbers.below(length)] = letters[numbers.below(letters.len())].clone(),
            _ => right.insert(numbers.below(length + 1), letters[numbers.below(letters.len())].clone()),
        }
        let (left, right) = (left.concat(), right.concat());
        let expected = peer.compare(&left, &right);
        let order = collation.compare(left.as_bytes(), right.as_bytes());
        let keys = key(collation, left.as_bytes()).cmp(&key(collation, right.as_bytes()));
        assert_eq!(order, keys, "{collation}: {left} and {right}");
        if order != expected && ![&left, &right].iter().any(|text| has_hidden_letter(text, &sequences)) {
            wrong.push(format!("{collation}: {left} {} {right}", sign(order)));
        }
    }
    wrong
}

fn sign(order: Ordering) -> &'static str {
    match order {
        Ordering::Less => "<",
        Ordering::Equal => "=",
        Ordering::Greater => ">",
    }
}

fn letters_of(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

/// Letters and digits of ASCII, and the letters of Latin-1 and Latin Extended-A.
fn latin() -> Vec<String> {
    let ascii = ('0'..='9').chain('a'..='z').chain('A'..='Z');
    let accents = ('\u{c0}'..'\u{180}').filter(|letter| letter.is_alphabetic());
    ascii.chain(accents).map(String::from).collect()
}

#[test]
fn languages_order_their_letters_as_icu() {
    let mut wrong = Vec::new();
    for language in &LANGUAGES {
        let own = letters_of(language.letters);
        let latin = latin();
        // The letters that the rules concern are as frequent as all others.
        let mut letters: Vec<String> = own.iter().cycle().take(latin.len()).chain(&latin).cloned().collect();
        letters.retain(|letter| !letter.chars().any(|character| language.moved_later.contains(character)));
        for (suffix, strength) in [("ai_ci", Strength::Primary), ("as_cs", Strength::Tertiary)] {
            let name = format!("utf8mb4_{}_0900_{suffix}", language.name);
            let Ok(collation) = CollationId::from_name(&name) else {
                assert_eq!((language.name, suffix), ("zh", "ai_ci"));
                continue;
            };
            let found = disagreements(collation, &icu(language.locale, strength), &letters);
            wrong.extend(found.into_iter().take(12));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn japanese_orders_kana_and_ideographs_as_icu() {
    let letters = letters_of(KANA);
    let mut wrong = Vec::new();
    for (name, strength) in
        [("utf8mb4_ja_0900_as_cs", Strength::Tertiary), ("utf8mb4_ja_0900_as_cs_ks", Strength::Quaternary)]
    {
        let collation = CollationId::from_name(name).expect("it is known");
        wrong.extend(disagreements(collation, &icu("ja", strength), &letters).into_iter().take(12));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The order of all ideographs of the list of Japanese.
#[test]
fn japanese_ideographs_have_the_order_of_icu() {
    let peer = icu("ja", Strength::Primary);
    let table = include_str!("../tables/ja.txt").lines().filter(|line| !line.starts_with('&'));
    let order: Vec<String> = table.flat_map(str::chars).map(String::from).collect();
    let wrong = order.windows(2).filter(|pair| peer.compare(&pair[0], &pair[1]) != Ordering::Less);
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&[String]>::new());
}
