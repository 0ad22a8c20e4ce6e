//! The Debian package and the systemd unit: their parts exist and agree with each other and with the binary.
//! Building the package needs `cargo deb`, which the tests do not have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use junctor_node::config_file;
use junctor_node::setting::NodeConfig;

const SERVER: &str = env!("CARGO_MANIFEST_DIR");

fn metadata() -> toml::Table {
    let text = std::fs::read_to_string(Path::new(SERVER).join("Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    manifest["package"]["metadata"]["deb"].as_table().expect("metadata of cargo deb").clone()
}

/// The installed files: destination, and source with mode.
fn assets() -> BTreeMap<String, (PathBuf, String)> {
    let metadata = metadata();
    let text = |value: &toml::Value| value.as_str().expect("a text").to_owned();
    let asset = |asset: &toml::Value| {
        let [source, target, mode] = &asset.as_array().expect("a list")[..] else { panic!("three texts: {asset}") };
        let mut target = text(target);
        if target.ends_with('/') {
            target += Path::new(&text(source)).file_name().and_then(|name| name.to_str()).expect("a name");
        }
        (target, (Path::new(SERVER).join(text(source)), text(mode)))
    };
    metadata["assets"].as_array().expect("a list").iter().map(asset).collect()
}

/// The values of the unit by key. Keys that may repeat are not used.
fn unit() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(packaging("junctor.service")).expect("the unit");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn packaging(name: &str) -> PathBuf {
    Path::new(SERVER).join("../../packaging").join(name)
}

#[test]
fn every_file_of_the_package_exists() {
    for (target, (source, mode)) in assets() {
        assert!(source.is_file() || source.ends_with("target/release/junctor"), "{}", source.display());
        let expected = match &*target {
            "usr/bin/junctor" => "755",
            // It may have passwords.
            "etc/junctor/junctor.toml" => "640",
            _ => "644",
        };
        assert_eq!(mode, expected, "{target}");
    }
    let metadata = metadata();
    for file in metadata["conf-files"].as_array().expect("a list") {
        let file = file.as_str().expect("a path").trim_start_matches('/');
        assert!(assets().contains_key(file), "{file} is installed");
    }
    let unit = &metadata["systemd-units"];
    assert_eq!(unit["unit-name"].as_str(), Some("junctor"));
    let units = Path::new(SERVER).join(unit["unit-scripts"].as_str().expect("a folder"));
    assert!(units.join("junctor.service").is_file());
    let scripts = Path::new(SERVER).join(metadata["maintainer-scripts"].as_str().expect("a folder"));
    for script in ["postinst", "postrm"] {
        let text = std::fs::read_to_string(scripts.join(script)).expect(script);
        // `cargo deb` puts the commands for the unit there.
        assert!(text.starts_with("#!/bin/sh\nset -e\n") && text.contains("\n#DEBHELPER#\n"), "{script}");
    }
    let (license, skipped) = match metadata["license-file"].as_array().map(Vec::as_slice) {
        Some([license, skipped]) => (license.as_str().expect("a path"), skipped.as_str()),
        other => panic!("{other:?}"),
    };
    assert!(Path::new(SERVER).join(license).is_file() && skipped == Some("0"));
}

#[test]
fn the_unit_starts_the_installed_binary_with_the_installed_configuration() {
    let unit = unit();
    let words: Vec<&str> = unit["ExecStart"].split(' ').collect();
    let [binary, "serve", "--supervised", "--config", configuration] = words[..] else { panic!("{words:?}") };
    let assets = assets();
    assert!(assets.contains_key(binary.trim_start_matches('/')), "{binary}");
    let (source, _) = &assets[configuration.trim_start_matches('/')];
    let mut config = NodeConfig::default();
    if let Err(error) = config_file::read_file(source, &mut config) {
        panic!("{error}");
    }
    // systemd makes the folder, and the user owns it.
    assert_eq!(config.data_directory, format!("/var/lib/{}", unit["StateDirectory"]));
    assert_eq!((&*unit["User"], &*unit["Group"]), ("junctor", "junctor"));
    let script = std::fs::read_to_string(packaging("debian/postinst")).expect("the script");
    assert!(script.contains("adduser --system --group") && script.contains("\" junctor\n"), "the user is made");
    assert!(script.contains("chgrp junctor /etc/junctor/junctor.toml"), "the user reads the configuration");
    // Each connection needs a file, and the node some more.
    let files: u32 = unit["LimitNOFILE"].parse().expect("a number");
    assert!(files > config.max_connections * 2);
}

#[test]
fn the_commented_settings_are_settings() {
    let text = std::fs::read_to_string(packaging("junctor.toml")).expect("the configuration");
    let names = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(" = ")).map(|(name, _)| name);
    for name in names {
        assert!(junctor_node::setting::Setting::named(name).is_some(), "{name}");
    }
}
