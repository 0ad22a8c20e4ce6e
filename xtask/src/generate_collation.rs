//! `generate-collation ALLKEYS WEIGHTS`: writes the weight tables of `crates/model/src/collation/tables`.
//!
//! ALLKEYS is allkeys-9.0.0.txt of UTS #10. WEIGHTS is the folder that `xtask/collation_weights.sh` fills.
//! `crates/model/src/collation/table.rs` describes the format of the tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CODE_POINTS: u32 = 0x11_0000;
const BMP_CODE_POINTS: u32 = 0x1_0000;
const PAGE_LENGTH: u32 = 128;
const EXPANSION_FLAG: u16 = 0x8000;
const NOT_LISTED: u16 = 0xFFFF;
const IDENTITY_PAGE: u16 = 0xFFFF;
/// Bits of the tertiary weight in an entry of the table of accents and case.
const TERTIARY_BITS: u32 = 5;
/// The collations of latin1 in the order of `crates/model/src/collation/latin1.rs`.
const LATIN1: [&str; 7] =
    ["swedish_ci", "german1_ci", "danish_ci", "general_ci", "general_cs", "spanish_ci", "german2_ci"];

/// Reads the files that `arguments` name and writes all tables. An error is a sentence for the user.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [allkeys, weights] = arguments else {
        return Err("usage: generate-collation ALLKEYS WEIGHTS".into());
    };
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/model/src/collation/tables");
    let recorded = |name: &str| read(&format!("{weights}/{name}.tsv"));
    let elements = listed_elements(&read(allkeys)?)?;
    let primary = elements.iter().map(|(code, weights)| (*code, weights_of(weights, |element| element[0])));
    write(&tables.join("uca_0900_primary.bin"), &table_of(&primary.collect(), CODE_POINTS)?)?;
    let accents = elements
        .iter()
        .map(|(code, weights)| (*code, weights_of(weights, |element| element[1] << TERTIARY_BITS | element[2])));
    write(&tables.join("uca_0900_accents.bin"), &table_of(&accents.collect(), CODE_POINTS)?)?;
    write(&tables.join("general_ci.bin"), &general_ci_table(&recorded("utf8mb4_general_ci")?)?)?;
    let listed = recorded_weights(&recorded("utf8mb4_unicode_ci")?, BMP_CODE_POINTS)?;
    write(&tables.join("unicode_400.bin"), &table_of(&listed, BMP_CODE_POINTS)?)?;
    let listed = recorded_weights(&recorded("utf8mb4_unicode_520_ci")?, CODE_POINTS)?;
    write(&tables.join("unicode_520.bin"), &table_of(&listed, CODE_POINTS)?)?;
    let mut latin1 = Vec::new();
    for name in LATIN1 {
        latin1.extend(latin1_weights(&recorded(&format!("latin1_{name}"))?)?.iter().map(|weights| weights[0]));
    }
    latin1.extend(latin1_weights(&recorded("latin1_german2_ci")?)?.iter().map(|weights| weights.get(1).unwrap_or(&0)));
    let path = tables.join("latin1.bin");
    fs::write(&path, latin1).map_err(|error| format!("{}: {error}", path.display()))
}

/// A table under construction. Pages with equal content are stored once.
#[derive(Default)]
struct Table {
    index: Vec<u16>,
    pages: Vec<Vec<u16>>,
    expansions: Vec<u16>,
    weights_per_character_max: u16,
}

impl Table {
    fn add_page(&mut self, page: Vec<u16>) {
        let known = self.pages.iter().position(|other| *other == page);
        let number = known.unwrap_or_else(|| {
            self.pages.push(page);
            self.pages.len() - 1
        });
        self.index.push(number as u16);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let header = [self.index.len(), self.pages.len(), self.expansions.len()].map(|count| count as u16);
        let numbers = header.iter().chain([&self.weights_per_character_max]).chain(&self.index);
        numbers.chain(self.pages.iter().flatten()).chain(&self.expansions).flat_map(|n| n.to_le_bytes()).collect()
    }
}

fn table_of(listed: &BTreeMap<u32, Vec<u16>>, code_points: u32) -> Result<Table, String> {
    let mut places = BTreeMap::new();
    let mut table = Table::default();
    for first in (0..code_points).step_by(PAGE_LENGTH as usize) {
        let mut page = Vec::new();
        for code in first..first + PAGE_LENGTH {
            page.push(match listed.get(&code).map(Vec::as_slice) {
                None => NOT_LISTED,
                Some([]) => 0,
                Some(&[weight]) if weight < EXPANSION_FLAG => weight,
                Some(weights) => {
                    let place = *places.entry(weights).or_insert_with(|| {
                        let place = table.expansions.len() as u16;
                        table.expansions.push(weights.len() as u16);
                        table.expansions.extend_from_slice(weights);
                        place
                    });
                    EXPANSION_FLAG | place
                }
            });
        }
        table.add_page(page);
    }
    if table.expansions.len() >= usize::from(EXPANSION_FLAG) - 1 {
        return Err("the expansions do not fit into 15 bits".into());
    }
    let longest = listed.values().map(Vec::len).max().unwrap_or(0);
    table.weights_per_character_max = longest as u16;
    Ok(table)
}

/// The elements of every code point that allkeys lists, with their three weights, without contractions.
fn listed_elements(text: &str) -> Result<BTreeMap<u32, Vec<[u16; 3]>>, String> {
    let mut listed = BTreeMap::new();
    for line in text.lines() {
        let line = line.split(['#', '%']).next().unwrap_or("").trim();
        let Some((codes, elements)) = line.split_once(';') else { continue };
        if codes.trim().contains(' ') {
            continue;
        }
        let code = hexadecimal(codes, line)?;
        let mut all = Vec::new();
        for element in elements.split('[').skip(1) {
            let mut weights = element.trim_start_matches(['.', '*']).trim_end().trim_end_matches(']').split('.');
            let mut next = || hexadecimal(weights.next().unwrap_or(""), line).map(|weight| weight as u16);
            all.push([next()?, next()?, next()?]);
        }
        listed.insert(code, all);
    }
    if listed.len() < 10_000 {
        return Err("the first file is not allkeys.txt: it lists too few code points".into());
    }
    Ok(listed)
}

/// What `choose` takes from each element, without zeros.
fn weights_of(elements: &[[u16; 3]], choose: impl Fn(&[u16; 3]) -> u16) -> Vec<u16> {
    elements.iter().map(choose).filter(|weight| *weight != 0).collect()
}

/// The weights of the code points whose weights are not computed from the code.
fn recorded_weights(text: &str, code_points: u32) -> Result<BTreeMap<u32, Vec<u16>>, String> {
    let mut listed = BTreeMap::new();
    for line in text.lines() {
        let (code, digits) = line.split_once('\t').ok_or_else(|| format!("no tab in line: {line}"))?;
        let code = hexadecimal(code, line)?;
        let mut weights = Vec::new();
        for place in (0..digits.len()).step_by(4) {
            weights.push(hexadecimal(digits.get(place..place + 4).unwrap_or(""), line)? as u16);
        }
        let base = match code {
            0x4E00..=0x9FA5 => 0xFB40,
            0x3400..=0x4DB5 => 0xFB80,
            _ => 0xFBC0,
        };
        let implicit = [base + (code >> 15) as u16, (code & 0x7FFF | 0x8000) as u16];
        if code < code_points && weights != implicit {
            listed.insert(code, weights);
        }
    }
    Ok(listed)
}

/// The weights of the 256 bytes of latin1.
fn latin1_weights(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    for line in text.lines() {
        let (_, digits) = line.split_once('\t').ok_or_else(|| format!("no tab in line: {line}"))?;
        let weights = hexadecimal(digits, line)?;
        all.push(if weights > 0xFF { vec![(weights >> 8) as u8, weights as u8] } else { vec![weights as u8] });
    }
    if all.len() == 256 { Ok(all) } else { Err("a file of latin1 does not have 256 lines".into()) }
}

fn general_ci_table(text: &str) -> Result<Table, String> {
    let mut weights: Vec<u16> = (0..BMP_CODE_POINTS).map(|code| code as u16).collect();
    let mut seen = 0;
    for line in text.lines() {
        let (code, weight) = line.split_once('\t').ok_or_else(|| format!("no tab in line: {line}"))?;
        let place = weights.get_mut(hexadecimal(code, line)? as usize).ok_or_else(|| format!("bad code: {line}"))?;
        *place = hexadecimal(weight, line)? as u16;
        seen += 1;
    }
    if seen != BMP_CODE_POINTS - 0x800 {
        return Err(format!("the second file has {seen} weights, not one for each character of the basic plane"));
    }
    let mut table = Table { weights_per_character_max: 1, ..Table::default() };
    for (number, page) in weights.chunks(PAGE_LENGTH as usize).enumerate() {
        let first = number as u32 * PAGE_LENGTH;
        if page.iter().zip(first..).all(|(&weight, code)| u32::from(weight) == code) {
            table.index.push(IDENTITY_PAGE);
        } else {
            table.add_page(page.to_vec());
        }
    }
    Ok(table)
}

fn hexadecimal(digits: &str, line: &str) -> Result<u32, String> {
    u32::from_str_radix(digits.trim(), 16).map_err(|error| format!("{error} in line: {line}"))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn write(path: &Path, table: &Table) -> Result<(), String> {
    fs::write(path, table.to_bytes()).map_err(|error| format!("{}: {error}", path.display()))
}
