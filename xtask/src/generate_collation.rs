//! `generate-collation ALLKEYS GENERAL_CI_WEIGHTS`: writes the weight tables of
//! `crates/model/src/collation/tables`.
//!
//! ALLKEYS is allkeys-9.0.0.txt of UTS #10. GENERAL_CI_WEIGHTS is the output of
//! `xtask/general_ci_weights.sh`. `crates/model/src/collation/table.rs` describes the format of the tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CODE_POINTS: u32 = 0x11_0000;
const BMP_CODE_POINTS: u32 = 0x1_0000;
const PAGE_LENGTH: u32 = 128;
const EXPANSION_FLAG: u16 = 0x8000;
const NOT_LISTED: u16 = 0xFFFF;
const IDENTITY_PAGE: u16 = 0xFFFF;

/// Reads the two files that `arguments` names and writes both tables. An error is a sentence for the user.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [allkeys, general_ci] = arguments else {
        return Err("usage: generate-collation ALLKEYS GENERAL_CI_WEIGHTS".into());
    };
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/model/src/collation/tables");
    write(&tables.join("uca_0900_primary.bin"), &unicode_primary(&read(allkeys)?)?)?;
    write(&tables.join("general_ci.bin"), &general_ci_table(&read(general_ci)?)?)
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

fn unicode_primary(text: &str) -> Result<Table, String> {
    let listed = listed_weights(text)?;
    let mut places = BTreeMap::new();
    let mut table = Table::default();
    for first in (0..CODE_POINTS).step_by(PAGE_LENGTH as usize) {
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

/// The non-zero primary weights of every code point that allkeys lists, without contractions.
fn listed_weights(text: &str) -> Result<BTreeMap<u32, Vec<u16>>, String> {
    let mut listed = BTreeMap::new();
    for line in text.lines() {
        let line = line.split(['#', '%']).next().unwrap_or("").trim();
        let Some((codes, elements)) = line.split_once(';') else { continue };
        if codes.trim().contains(' ') {
            continue;
        }
        let code = hexadecimal(codes, line)?;
        let mut weights = Vec::new();
        for element in elements.split('[').skip(1) {
            let primary = element.trim_start_matches(['.', '*']).split('.').next().unwrap_or("");
            weights.push(hexadecimal(primary, line)? as u16);
        }
        weights.retain(|&weight| weight != 0);
        listed.insert(code, weights);
    }
    if listed.len() < 10_000 {
        return Err("the first file is not allkeys.txt: it lists too few code points".into());
    }
    Ok(listed)
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
