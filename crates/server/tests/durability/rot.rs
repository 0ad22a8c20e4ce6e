//! One bit is flipped in one sector of a stopped server's files. A start then refuses the directory with a
//! message, or serves the rows that were committed. `junctor check` finds everything that a start refuses.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::server::{Server, folder, rows, run, small_files_command};

/// The environment variable with the distance of the sectors whose bit is flipped. 1 flips one in every
/// sector; `make rot` does.
const DISTANCE: &str = "JUNCTOR_ROT";
const DISTANCE_DEFAULT: usize = 23;
const SECTOR: usize = 512;
/// The log writes a closing group after 100 ms without commits, and the checkpoint takes no longer.
const UNTIL_CLOSED: Duration = Duration::from_millis(1500);
/// Values of `TimeBetweenLocalCheckpoints`: the binary logarithm of 4-byte words.
const AFTER_1_KIB: &str = "8";
const AFTER_64_MIB: &str = "24";

const STATEMENT: &str = "SELECT id, code, name, LENGTH(note) FROM shop.item ORDER BY id";

fn prepare(folder: &Path) -> Vec<Vec<String>> {
    let server = start(folder, AFTER_1_KIB).unwrap_or_else(|errors| panic!("{errors}"));
    let mut session = server.session();
    let values: Vec<String> =
        (1..=60).map(|id| format!("({id}, {}, 'name {id}', REPEAT('x', {id}))", id * 7)).collect();
    run(
        &mut session,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.item (id INT PRIMARY KEY, code INT UNIQUE, name VARCHAR(20), note TEXT, KEY (name))",
            &format!("INSERT INTO shop.item VALUES {}", values.join(",")),
            "UPDATE shop.item SET name = 'changed' WHERE id % 5 = 0",
            "DELETE FROM shop.item WHERE id > 55",
        ],
    );
    std::thread::sleep(UNTIL_CLOSED);
    assert!(folder.join("checkpoint").exists(), "the server has made a checkpoint");
    server.kill();
    // These changes are in the log only.
    let server = start(folder, AFTER_64_MIB).unwrap_or_else(|errors| panic!("{errors}"));
    let mut session = server.session();
    for id in 1..12 {
        run(&mut session, &[&format!("UPDATE shop.item SET code = code + 1000, name = 'late' WHERE id = {}", id * 4)]);
    }
    let expected = rows(&mut session, STATEMENT);
    assert_eq!(expected.len(), 55);
    std::thread::sleep(UNTIL_CLOSED);
    server.kill();
    expected
}

/// Starts a server whose log is in small files.
fn start(folder: &Path, checkpoint_distance: &str) -> Result<Server, String> {
    let command = small_files_command(folder);
    let settings = format!(
        "FileIo = \"plain\"\nFragmentLogFileSize = \"1M\"\nTimeBetweenLocalCheckpoints = {checkpoint_distance}\n"
    );
    std::fs::write(folder.with_extension("toml"), settings).expect("a file can be written");
    Server::spawn(command).map_err(|ended| ended.errors)
}

/// The files with data of a directory, with paths below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for part in ["", "log", "checkpoint"] {
        let Ok(entries) = std::fs::read_dir(folder.join(part)) else { continue };
        for entry in entries.map(|entry| entry.expect("an entry of a folder")) {
            let is_file = entry.file_type().expect("a type").is_file();
            let length = entry.metadata().expect("a length").len();
            if is_file && length > 0 {
                files.push(Path::new(part).join(entry.file_name()));
            }
        }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path, files: &[PathBuf]) {
    let _ = std::fs::remove_dir_all(to);
    for file in files {
        let target = to.join(file);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder can be made");
        std::fs::copy(from.join(file), target).expect("a file can be copied");
    }
}

/// Whether `junctor check` finds no damage, and its text.
fn check(folder: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).arg("check").arg(folder).output().expect("the program");
    let text = String::from_utf8(output.stdout).expect("text") + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn a_flipped_bit_is_repaired_or_refused_and_never_a_wrong_row() {
    let original = folder("rot");
    let expected = prepare(&original);
    let (is_clean, text) = check(&original);
    assert!(is_clean, "{text}");
    let distance = std::env::var(DISTANCE).ok().and_then(|text| text.parse().ok()).unwrap_or(DISTANCE_DEFAULT);
    let files = files(&original);
    let damaged = folder("rot-damaged");
    let (mut refused, mut served) = (0, 0);
    let mut number = 0;
    for file in &files {
        let whole = std::fs::read(original.join(file)).expect("a file can be read");
        // Sectors of zeros are space that was never written, apart from the rest of a group's last block.
        let written = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last / SECTOR + 1);
        for sector in 0..written {
            number += 1;
            if number % distance != 0 {
                continue;
            }
            copy(&original, &damaged, &files);
            let at = (sector * SECTOR + number * 37 % SECTOR).min(whole.len() - 1);
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (number % 8);
            std::fs::write(damaged.join(file), bytes).expect("a file can be written");
            let case = format!("bit {} of byte {at} of {}", number % 8, file.display());
            let (is_clean, text) = check(&damaged);
            match start(&damaged, AFTER_64_MIB) {
                Ok(server) => {
                    assert_eq!(rows(&mut server.session(), STATEMENT), expected, "{case}: {text}");
                    served += 1;
                }
                Err(errors) => {
                    assert!(errors.contains("recovery failed"), "{case}: {errors}");
                    assert!(!is_clean, "{case}: refused and not found: {errors}");
                    refused += 1;
                }
            }
        }
    }
    println!("{refused} refused, {served} served");
    assert!(refused > 0 && served > 0, "{refused} refused, {served} served");
    for folder in [original, damaged] {
        std::fs::remove_dir_all(folder).expect("the folder exists");
    }
}
