//! The folder in which statements may read and write files of the server (`secure_file_priv`).

use std::path::{Path, PathBuf};

use crate::setting::NodeConfig;
use crate::start::StartError;

/// Replaces the folder of the configuration by its path without links, with a slash at the end. `NULL` stands
/// for none.
///
/// # Errors
/// The path is empty or names no folder, or the folder and that of the node's files overlap: clients could
/// then read keys and data, or write among them.
pub fn resolve(config: &mut NodeConfig) -> Result<(), StartError> {
    let Some(named) = config.secure_file_priv.take().filter(|named| !named.eq_ignore_ascii_case("NULL")) else {
        return Ok(());
    };
    let failed = |reason: String| StartError(format!("secure_file_priv: {reason}"));
    if named.is_empty() {
        return Err(failed(
            "an empty path would open all files of the machine; name a folder, or NULL for none".into(),
        ));
    }
    let folder = std::fs::canonicalize(&named).map_err(|error| failed(format!("{named}: {error}")))?;
    if !folder.is_dir() {
        return Err(failed(format!("{named}: not a folder")));
    }
    let has_folder = config.is_durable || config.cluster.node_id.is_some();
    if has_folder {
        let data = real(Path::new(config.data_folder()));
        if data.starts_with(&folder) || folder.starts_with(&data) {
            let text = format!("{named} and the data directory {} overlap; take another folder", data.display());
            return Err(failed(text));
        }
    }
    let Some(path) = folder.to_str() else { return Err(failed(format!("{named}: the path is not UTF-8"))) };
    config.secure_file_priv = Some(format!("{}/", path.trim_end_matches('/')));
    Ok(())
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let existing = absolute.ancestors().find_map(|part| Some((part, std::fs::canonicalize(part).ok()?)));
    match existing {
        Some((part, real)) => real.join(absolute.strip_prefix(part).unwrap_or(Path::new(""))),
        None => absolute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_exists_and_is_apart_from_the_data() {
        let root = std::env::temp_dir().join(format!("junctor-server-files-{}", std::process::id()));
        std::fs::create_dir_all(root.join("files/sub")).expect("a folder");
        std::fs::write(root.join("file"), "").expect("a file");
        std::os::unix::fs::symlink(root.join("files"), root.join("link")).expect("a link");
        let root = std::fs::canonicalize(&root).expect("a folder");
        let path = |name: &str| format!("{}/{name}", root.display());
        let resolved = |named: String, data: &str| {
            let secure_file_priv = Some(named);
            let mut config =
                NodeConfig { secure_file_priv, data_directory: path(data), is_durable: true, ..NodeConfig::default() };
            resolve(&mut config).map(|()| config.secure_file_priv).map_err(|error| error.0)
        };
        for named in ["files", "files/", "files/sub/..", "link"] {
            assert_eq!(resolved(path(named), "data"), Ok(Some(path("files/"))), "{named}");
        }
        assert_eq!(resolved("null".into(), "data"), Ok(None));
        for (named, data) in [("absent", "data"), ("file", "data"), ("files", "files"), ("files", "files/data")] {
            assert!(resolved(path(named), data).is_err(), "{named}, {data}");
        }
        assert!(resolved(path("files/sub"), "link").is_err(), "the data is behind a link");
        assert!(resolved(String::new(), "data").is_err());
        std::fs::remove_dir_all(&root).expect("the folder");
    }
}
