//! Flips one bit in each sector of a data directory in turn. The server repairs the damage or refuses to
//! start. It never shows other rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::script::Script;
use super::server::{Server, copy, folder, small_files_command};

/// The environment variable that asks for every sector. `make faults` sets it.
const THOROUGH: &str = "JUNCTOR_FAULTS";
const SECTOR_BYTES: usize = 512;
/// Sectors of a short run.
const SECTORS: usize = 40;

/// The files of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder exists").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_flipped_bit_is_repaired_or_refused() {
    let (folder, full) = (folder("rot"), folder("rot-full"));
    let script = Script::new(5, &full);
    // An idle server closes its log. Without the closing group, the last group may be one that was never
    // acknowledged.
    let server = Server::spawn(small_files_command(&full)).expect("the server starts");
    std::thread::sleep(Duration::from_secs(1));
    server.kill();
    let mut sectors = Vec::new();
    for file in files(&full) {
        let bytes = std::fs::read(&file).expect("the file exists");
        let used = bytes.chunks(SECTOR_BYTES).enumerate().filter(|(_, sector)| sector.iter().any(|byte| *byte != 0));
        sectors.extend(used.map(|(number, _)| (file.clone(), number)));
    }
    let distance = if std::env::var_os(THOROUGH).is_some() { 1 } else { sectors.len().div_ceil(SECTORS) };
    let (mut repaired, mut refused) = (0, BTreeMap::<String, u32>::new());
    for (position, (file, sector)) in sectors.iter().enumerate().step_by(distance) {
        let _ = std::fs::remove_dir_all(&folder);
        copy(&full, &folder);
        let file = file.strip_prefix(&full).expect("a file of the folder");
        let case = format!("bit {} of sector {sector} of {}", position % 8, file.display());
        let mut bytes = std::fs::read(folder.join(file)).expect("the file was copied");
        bytes[sector * SECTOR_BYTES + position * 7 % SECTOR_BYTES] ^= 1 << (position % 8);
        std::fs::write(folder.join(file), bytes).expect("the copy can be written");
        match Server::spawn(small_files_command(&folder)) {
            Ok(server) => {
                script.check(&server, script.len(), &case);
                server.kill();
                repaired += 1;
            }
            Err(ended) => {
                let message = ended.errors.lines().find(|line| line.contains("recovery failed"));
                let message = message.unwrap_or_else(|| panic!("{case}: no message: {ended:?}"));
                let kind = message.split(|letter: char| letter.is_ascii_digit()).collect();
                *refused.entry(kind).or_default() += 1;
            }
        }
    }
    println!("{repaired} repaired or without effect, refused: {refused:#?}");
    for used in [&folder, &full] {
        std::fs::remove_dir_all(used).expect("the folder exists");
    }
}
