//! Opens the data directories of earlier releases, which `tests/upgrade/make.sh` made. Each release must read
//! what all releases before it have written.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Server, folder, rows, run};

fn upgrade_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upgrade")
}

/// The versions that have a directory.
fn versions() -> Vec<String> {
    let entries = std::fs::read_dir(upgrade_folder()).expect("the folder is part of the sources");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    names.filter_map(|name| name.strip_suffix(".tar.gz").map(str::to_owned)).collect()
}

#[test]
fn directories_of_earlier_releases_open_with_all_they_have() {
    let versions = versions();
    assert!(!versions.is_empty(), "a release has a directory");
    let check = std::fs::read_to_string(upgrade_folder().join("check.sql")).expect("part of the sources");
    for version in versions {
        let folder = folder(&format!("upgrade-{version}"));
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let archive = upgrade_folder().join(format!("{version}.tar.gz"));
        let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder).status();
        assert!(unpacked.expect("tar is installed").success(), "{version}: the archive can be unpacked");
        let expected = upgrade_folder().join(format!("{version}.expected"));
        let expected = std::fs::read_to_string(expected).expect("part of the sources");
        // The second start reads what the first one has written over it.
        for start in 1..=2 {
            let server = Server::start(&folder.join("data"));
            let mut session = server.session();
            let found: Vec<String> = check
                .lines()
                .flat_map(|statement| rows(&mut session, statement.trim_end_matches(';')))
                .map(|row| row.join("\t"))
                .collect();
            assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{version}, start {start}");
            // Values 1 to 10 were generated, and the rows of 6 to 10 deleted.
            run(&mut session, &["INSERT INTO shop.counter (n) VALUES (11)"]);
            let id = rows(&mut session, "SELECT LAST_INSERT_ID()").remove(0).remove(0);
            assert!(id.parse::<u64>().expect("a number") > 10, "{version}: AUTO_INCREMENT generated {id} again");
            run(&mut session, &["DELETE FROM shop.counter WHERE n = 11"]);
            server.kill();
        }
        std::fs::remove_dir_all(&folder).expect("the folder exists");
    }
}
