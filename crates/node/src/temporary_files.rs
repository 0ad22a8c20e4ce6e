//! The folder of the temporary files of queries (`tmpdir`).

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::data_folder::failed;
use crate::setting::NodeConfig;
use crate::start::StartError;

/// The folder in that of the node's files.
pub const TEMPORARY_FOLDER: &str = "tmp";
/// The beginning of the names of files there.
const NAME: &str = "query-";

/// Finds the folder and the beginning of the paths of temporary files. The folder of the node's files must be
/// locked: files that an earlier life has left in it are deleted.
///
/// # Errors
/// `tmpdir` names no folder, or the operating system refuses an action.
pub fn prepare(config: &mut NodeConfig) -> Result<(), StartError> {
    let named = config.temporary_directory.clone();
    if named.as_deref().is_some_and(|named| named.eq_ignore_ascii_case("NULL")) {
        return Ok(());
    }
    let has_folder = config.is_durable || config.cluster.node_id.is_some();
    if named.is_none() && has_folder {
        let folder = Path::new(config.data_folder()).join(TEMPORARY_FOLDER);
        let folder = std::path::absolute(&folder).map_err(|error| failed("find", &folder, &error))?;
        clean(&folder).map_err(|error| failed("make", &folder, &error))?;
        let folder = folder.to_string_lossy().into_owned();
        let prefix = format!("{folder}/{NAME}");
        config.temporary_files = Some((folder, prefix));
        return Ok(());
    }
    let folder = named.clone().map_or_else(std::env::temp_dir, Into::into);
    let folder = match std::fs::canonicalize(&folder) {
        Ok(found) if found.is_dir() => found,
        // A machine without a folder for temporary files can run a node in memory.
        _ if named.is_none() => return Ok(()),
        Ok(_) => return Err(StartError(format!("tmpdir: {}: not a folder", folder.display()))),
        Err(error) => return Err(StartError(format!("tmpdir: {}: {error}", folder.display()))),
    };
    // Other nodes and programs may use the folder.
    let unique = RandomState::new().hash_one(std::process::id());
    let folder = folder.to_string_lossy().into_owned();
    let prefix = format!("{folder}/junctor-{unique:016x}-");
    config.temporary_files = Some((folder, prefix));
    Ok(())
}

/// Makes the folder and deletes its temporary files.
fn clean(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(NAME) && entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_data_or_the_one_named() {
        let root = std::env::temp_dir().join(format!("junctor-temporary-files-{}", std::process::id()));
        let left = root.join("data/tmp/query-3-7");
        std::fs::create_dir_all(root.join("data/tmp/query-folder")).expect("a folder");
        std::fs::write(&left, "rows").expect("a file");
        std::fs::write(root.join("data/tmp/other"), "").expect("a file");
        let path = |name: &str| format!("{}/{name}", root.display());
        let prepared = |named: Option<&str>, is_durable: bool| {
            let temporary_directory = named.map(Into::into);
            let data_directory = path("data");
            let mut config = NodeConfig { temporary_directory, data_directory, is_durable, ..NodeConfig::default() };
            prepare(&mut config).map(|()| config.temporary_files).map_err(|error| error.0)
        };
        assert_eq!(prepared(None, true), Ok(Some((path("data/tmp"), path("data/tmp/query-")))));
        assert!(!left.exists(), "files of an earlier life are deleted");
        assert!(root.join("data/tmp/other").exists());
        assert_eq!(prepared(Some("null"), true), Ok(None));
        let (folder, prefix) = prepared(None, false).expect("the folder of the system").expect("a folder");
        assert!(prefix.starts_with(&format!("{folder}/junctor-")), "{prefix}");
        let named = prepared(Some(&path("data")), true).expect("a folder").expect("a folder");
        assert!(named.1.starts_with(&named.0), "{named:?}");
        assert!(prepared(Some(&path("absent")), true).is_err());
        assert!(prepared(Some(&path("data/tmp/other")), true).is_err());
        std::fs::remove_dir_all(&root).expect("the folder");
    }
}
