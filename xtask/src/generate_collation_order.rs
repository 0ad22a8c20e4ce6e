//! `generate-collation-order FOLDER`: writes the orders of Japanese and of Chinese characters into
//! `crates/model/src/collation/tables`.
//!
//! FOLDER is `common/collation` of CLDR 30, with `ja.xml` and `zh.xml`. A file has the rules of a language
//! first, one a line, in the notation of `crates/model/src/collation/language_rules.rs`. All other lines
//! are ideographs in their order.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Ideographs a line. Chinese begins a line at each initial letter of pinyin, too.
const LINE_CHARACTERS: usize = 64;
/// Begins the marks of an index, such as "A" before the first ideograph of that letter. They are no text.
const INDEX_MARK: char = '\u{FDD0}';
/// Where the ideographs of a collation begin.
const IDEOGRAPHS: &str = "&[last regular]";
/// The distance from a character of ASCII to its wide form.
const TO_WIDE: u32 = 0xFEE0;
/// Letters of katakana with a mark, and the hiragana that they equal. CLDR has the letters without a mark;
/// those with one follow from their canonical decompositions.
const COMPOSED_KANA: [(&str, &str); 2] = [
    (
        "がぎぐげござじずぜぞだぢづでどばびぶべぼぱぴぷぺぽゔゞ",
        "ガギグゲゴザジズゼゾダヂヅデドバビブベボパピプペポヴヾ",
    ),
    ("わゐゑを", "ヷヸヹヺ"),
];

/// Ideographs that the list of CLDR 30 lacks by mistake, each behind the one that it follows in later
/// lists. The shorter list of CLDR 30 has all of them.
const MISSING: (&str, &str) = ("⺊⺾⻌⺈⻏⻣⺕⺆⺧⺜⺌⺄⺀⻗⺝⺥", "卜艹辶刂阝骨彑冂牛日小乛又雨月爫");
/// The marks of iteration with a mark of voice, and those without, as they decompose.
const VOICED_ITERATION: [(&str, &str); 2] = [("ゞ", "ゝ"), ("ヾ", "ヽ")];

/// Reads the files of the folder that `arguments` names and writes the tables. An error is a sentence for the
/// user.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [folder] = arguments else { return Err("usage: generate-collation-order FOLDER".into()) };
    let japanese = read(folder, "ja.xml")?;
    let kana = rules_of(&collation(&japanese, "private-kana")?);
    let (_, ideographs) = split_order(&collation(&japanese, "standard")?)?;
    let (plain, in_context): (Vec<String>, Vec<String>) =
        kana.into_iter().filter(|rule| !is_of_wide_form(rule)).partition(|rule| !rule.contains('|'));
    let rules = [plain, composed_kana(), voiced_iteration(&in_context), in_context].concat();
    write("ja.txt", &rules, &ideographs)?;

    let chinese = read(folder, "zh.xml")?;
    let tones = rules_of(&collation(&chinese, "private-pinyin")?);
    let (others, ideographs) = split_order(&collation(&chinese, "pinyin")?)?;
    write("zh.txt", &[tones, merged(others)].concat(), &with_missing(ideographs))
}

/// Rules of which no two begin at the same letter. The letters of a later rule come directly behind that
/// letter.
fn merged(rules: Vec<String>) -> Vec<String> {
    let mut merged: Vec<(String, String)> = Vec::new();
    for rule in rules {
        let (reset, letters) = rule.split_at(rule.find('<').unwrap_or(rule.len()));
        match merged.iter_mut().find(|(known, _)| known == reset) {
            Some((_, known)) => known.insert_str(0, letters),
            None => merged.push((reset.to_string(), letters.to_string())),
        }
    }
    merged.into_iter().map(|(reset, letters)| reset + &letters).collect()
}

/// The lines of Chinese with the missing ideographs.
fn with_missing(mut lines: Vec<String>) -> Vec<String> {
    for (before, missing) in MISSING.0.chars().zip(MISSING.1.chars()) {
        for line in &mut lines {
            if let Some(at) = line.find(before) {
                line.insert(at + before.len_utf8(), missing);
            }
        }
    }
    lines
}

/// Rules for the marks of iteration with a mark of voice, in each context in which those without have one.
/// Later rules replace them where CLDR has its own.
fn voiced_iteration(in_context: &[String]) -> Vec<String> {
    let voiced = |rule: &String| {
        let (start, letters) = rule.split_once("<<<")?;
        let letters = letters.split('=').filter_map(|letter| {
            let (context, mark) = letter.split_once('|')?;
            let (voiced, _) = VOICED_ITERATION.iter().find(|(_, plain)| *plain == mark)?;
            Some(format!("{context}|{voiced}/\u{3099}"))
        });
        let letters: Vec<String> = letters.collect();
        (!letters.is_empty()).then(|| format!("{start}<<<{}", letters.join("=")))
    };
    in_context.iter().filter_map(voiced).collect()
}

/// The text of a collation, without comments and spaces, and with its escapes resolved.
fn collation(file: &str, name: &str) -> Result<String, String> {
    let missing = || format!("there is no collation {name}");
    let starts = [format!("<collation type=\"{name}\">"), format!("<collation type='{name}'>")];
    let at = starts.iter().find_map(|start| file.find(start.as_str())).ok_or_else(missing)?;
    let (_, body) = file[at..].split_once("<cr><![CDATA[").ok_or_else(missing)?;
    let (body, _) = body.split_once("]]>").ok_or_else(missing)?;
    let lines = body.lines().map(|line| line.split_once(" #").map_or(line, |(rule, _)| rule).trim());
    let lines = lines.filter(|line| !line.starts_with('#') && !line.starts_with("[import")).map(resolve_escapes);
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    Ok(lines.concat())
}

/// Replaces `\uXXXX` by its character.
fn resolve_escapes(line: &str) -> Result<String, String> {
    let mut parts = line.split("\\u");
    let mut resolved = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.get(..4).ok_or("an escape has four digits")?;
        let code = u32::from_str_radix(digits, 16).map_err(|error| format!("{digits}: {error}"))?;
        resolved.push(char::from_u32(code).ok_or("an escape is a character")?);
        resolved.push_str(&part[4..]);
    }
    Ok(resolved)
}

/// The rules of a text, without quotes, each with the sign of the project for the place before a letter. A
/// difference of the fourth level becomes none: `crates/model/src/collation/east_asian.rs` has that level.
fn rules_of(text: &str) -> Vec<String> {
    let Some(start) = text.find('&') else { return Vec::new() };
    // A quoted & does not begin a rule.
    let text = text[start..].replace("'&'", "\u{FF06}");
    let rules = text.split('&').filter(|rule| !rule.is_empty());
    let rules = rules.map(|rule| rule.replace("<<<<", "=").replace("[before ", "[").replace('\'', ""));
    rules.map(|rule| format!("&{rule}")).collect()
}

/// Whether a rule gives the wide form of a character of ASCII its weights, or those of the space to wide
/// spaces.
fn is_of_wide_form(rule: &str) -> bool {
    let mut characters = rule.chars().skip(1).filter(|character| *character != '=' || rule.contains('\u{FF1D}'));
    let (Some(narrow), last) = (characters.next(), rule.chars().last().unwrap_or_default()) else { return false };
    let is_ampersand = narrow == '\u{FF06}' && last == '\u{FF06}';
    let is_wide = u32::from(last) == u32::from(narrow) + TO_WIDE;
    is_ampersand || narrow.is_ascii() && is_wide || last == '\u{FFE3}' || rule == "&=\u{FF07}"
}

fn composed_kana() -> Vec<String> {
    let [(hiragana, katakana), (bases, voiced)] = COMPOSED_KANA;
    let pairs = hiragana.chars().zip(katakana.chars()).map(|(hiragana, katakana)| format!("&{hiragana}={katakana}"));
    let voiced = bases.chars().zip(voiced.chars()).map(|(base, voiced)| format!("&{base}\u{3099}={voiced}"));
    pairs.chain(voiced).collect()
}

/// The rules behind the ideographs of a collation, and the ideographs in lines.
fn split_order(text: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let at = text.find(IDEOGRAPHS).ok_or("the ideographs have no place")? + IDEOGRAPHS.len();
    let (order, rules) = text[at..].split_at(text[at..].find('&').unwrap_or(text.len() - at));
    let mut lines = vec![String::new()];
    for part in order.split('<').filter(|part| !part.is_empty()) {
        if part.contains(INDEX_MARK) {
            lines.push(String::new());
            continue;
        }
        let ideographs = part.strip_prefix('*').ok_or_else(|| format!("{part} is no list of ideographs"))?;
        for ideograph in ideographs.chars() {
            let is_full = lines.last().is_some_and(|line| line.chars().count() == LINE_CHARACTERS);
            if is_full {
                lines.push(String::new());
            }
            lines.last_mut().ok_or("there is a line")?.push(ideograph);
        }
    }
    lines.retain(|line| !line.is_empty());
    let mut seen = BTreeSet::new();
    if let Some(twice) = lines.iter().flat_map(|line| line.chars()).find(|ideograph| !seen.insert(*ideograph)) {
        return Err(format!("{twice} has two places"));
    }
    Ok((rules_of(rules), lines))
}

fn read(folder: &str, name: &str) -> Result<String, String> {
    let path = Path::new(folder).join(name);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(name: &str, rules: &[String], ideographs: &[String]) -> Result<(), String> {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/model/src/collation/tables");
    let text = [rules, ideographs].concat().join("\n") + "\n";
    fs::write(tables.join(name), text).map_err(|error| format!("{name}: {error}"))
}
