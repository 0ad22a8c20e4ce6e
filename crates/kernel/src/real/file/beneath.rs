//! Files that others name by a path, which must not lead out of a folder.
//!
//! The operating system resolves the path and opens the file in one step (`openat2`), so that nobody can
//! exchange a part of the path for a link between a check and the opening. Where it cannot, the path is
//! followed part by part, and no link is followed at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Error;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, open, openat, openat2, unlinkat};
use rustix::io::Errno;

use crate::world::{FileError, FileMode};

use super::lane::{FILE_PERMISSIONS, file_error};

/// How often a path is resolved again because a folder was renamed meanwhile.
const ATTEMPTS_MAX: u32 = 16;

/// Opens a regular file beneath a folder. It does not bypass the cache.
pub(super) fn open_beneath(folder: &Path, path: &Path, mode: FileMode) -> Result<(File, bool), FileError> {
    let (flags, permissions) = match mode {
        FileMode::Read => (OFlags::RDONLY, Mode::empty()),
        FileMode::ReadWrite => (OFlags::RDWR, Mode::empty()),
        FileMode::CreateOrOpen => (OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(FILE_PERMISSIONS)),
        FileMode::CreateEmpty => (OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC, Mode::from_raw_mode(FILE_PERMISSIONS)),
        FileMode::CreateNew => (OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(FILE_PERMISSIONS)),
    };
    // Without NONBLOCK, opening a pipe would wait for its writer.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_at(&folder_of(folder)?, relative(folder, path)?, flags, permissions).map_err(error_of)?;
    if FileType::from_raw_mode(fstat(&file).map_err(error_of)?.st_mode) != FileType::RegularFile {
        return Err(FileError::NotAFile);
    }
    // An io_uring would answer reads that have to wait for the device with an error.
    fcntl_setfl(&file, OFlags::empty()).map_err(error_of)?;
    Ok((File::from(file), false))
}

/// Deletes a file or link beneath a folder, if it exists.
pub(super) fn delete_beneath(folder: &Path, path: &Path) -> Result<(), FileError> {
    let path = relative(folder, path)?;
    let Some(name) = path.file_name() else { return Err(FileError::Outside) };
    let mut parent = folder_of(folder)?;
    if let Some(subfolder) = path.parent().filter(|subfolder| !subfolder.as_os_str().is_empty()) {
        parent = open_at(&parent, subfolder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).map_err(error_of)?;
    }
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error_of(error)),
    }
}

fn folder_of(folder: &Path) -> Result<OwnedFd, FileError> {
    open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(error_of)
}

/// The path relative to the folder.
fn relative<'p>(folder: &Path, path: &'p Path) -> Result<&'p Path, FileError> {
    match path.is_absolute() {
        true => path.strip_prefix(folder).map_err(|_| FileError::Outside),
        false => Ok(path),
    }
}

/// Opens what a path beneath a folder names.
fn open_at(folder: &OwnedFd, path: &Path, flags: OFlags, permissions: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS_MAX {
        match openat2(folder, path, flags, permissions, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            // A folder was renamed while `..` was resolved.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The operating system has no openat2, or a filter of system calls refuses it.
            Err(Errno::NOSYS | Errno::PERM) => return follow(folder, path, flags, permissions),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Like `open_at`, by the parts of the path. `..` and links are refused.
fn follow(folder: &OwnedFd, path: &Path, flags: OFlags, permissions: Mode) -> Result<OwnedFd, Errno> {
    let mut parts: Vec<&OsStr> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let Some((name, folders)) = parts.split_last() else { return Err(Errno::NOENT) };
    let mut inner: Option<OwnedFd> = None;
    for part in folders {
        let outer = inner.as_ref().unwrap_or(folder);
        let opened = openat(outer, *part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
            FileType::Directory => inner = Some(opened),
            FileType::Symlink => return Err(Errno::XDEV),
            _ => return Err(Errno::NOTDIR),
        }
    }
    openat(inner.as_ref().unwrap_or(folder), *name, flags | OFlags::NOFOLLOW, permissions)
}

fn error_of(error: Errno) -> FileError {
    match error {
        Errno::XDEV | Errno::LOOP => FileError::Outside,
        error => file_error(Error::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, create_dir_all, hard_link, read_dir, remove_dir_all, write};
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A folder `in` beside a file `secret`, with links into and out of it.
    struct Folders(PathBuf);

    impl Folders {
        fn new(name: &str) -> Folders {
            let root = std::env::temp_dir().join(format!("junctor-beneath-{}-{name}", std::process::id()));
            create_dir_all(root.join("in/sub")).expect("a folder");
            create_dir(root.join("beside")).expect("a folder");
            write(root.join("secret"), "secret").expect("a file");
            write(root.join("in/file"), "text").expect("a file");
            write(root.join("in/sub/file"), "text").expect("a file");
            symlink(root.join("secret"), root.join("in/absolute")).expect("a link");
            symlink("../secret", root.join("in/relative")).expect("a link");
            symlink("../beside", root.join("in/folder")).expect("a link");
            symlink("sub", root.join("in/inner")).expect("a link");
            symlink("loop", root.join("in/loop")).expect("a link");
            Folders(root)
        }

        fn folder(&self) -> PathBuf {
            self.0.join("in")
        }

        fn open(&self, path: &str, mode: FileMode) -> Result<String, FileError> {
            let (mut file, _) = open_beneath(&self.folder(), Path::new(path), mode)?;
            let mut text = String::new();
            file.read_to_string(&mut text).expect("a file that can be read");
            Ok(text)
        }
    }

    impl Drop for Folders {
        fn drop(&mut self) {
            let _ = remove_dir_all(&self.0);
        }
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let folders = Folders::new("out");
        let root = folders.0.to_str().expect("UTF-8").to_owned();
        for path in ["file", "./file", "sub/file", "inner/file", "sub/../file", &format!("{root}/in/file")] {
            assert_eq!(folders.open(path, FileMode::Read), Ok("text".into()), "{path}");
        }
        let outside = ["../secret", "absolute", "relative", "loop", "folder/x", "sub/../../secret", "/etc/passwd"];
        for path in outside.iter().copied().chain([&*format!("{root}/secret"), &format!("{root}/in/../secret")]) {
            assert_eq!(folders.open(path, FileMode::Read), Err(FileError::Outside), "{path}");
        }
        for path in ["../new", "folder/new", "loop/new", "/tmp/new"] {
            assert_eq!(folders.open(path, FileMode::CreateNew), Err(FileError::Outside), "{path}");
            assert_eq!(delete_beneath(&folders.folder(), Path::new(path)), Err(FileError::Outside), "{path}");
        }
        assert_eq!(read_dir(folders.0.join("beside")).expect("a folder").count(), 0);
        assert_eq!(folders.open("absent", FileMode::Read), Err(FileError::NotFound));
        assert_eq!(folders.open("sub", FileMode::Read), Err(FileError::NotAFile));
    }

    #[test]
    fn a_path_that_is_followed_by_parts_has_no_links() {
        let folders = Folders::new("parts");
        let folder = folder_of(&folders.folder()).expect("a folder");
        let outcome = |path: &str| follow(&folder, Path::new(path), OFlags::RDONLY, Mode::empty()).map(drop);
        assert_eq!(["file", "./sub/file", "sub"].map(outcome), [Ok(()); 3]);
        assert_eq!(["../secret", "inner/file", "folder/x", "/etc/passwd"].map(outcome), [Err(Errno::XDEV); 4]);
        assert_eq!(["relative", "loop"].map(outcome), [Err(Errno::LOOP); 2]);
        assert_eq!(
            ["absent", "absent/x", "file/x", ""].map(outcome),
            [Err(Errno::NOENT), Err(Errno::NOENT), Err(Errno::NOTDIR), Err(Errno::NOENT)]
        );
    }

    #[test]
    fn a_new_file_replaces_neither_a_file_nor_a_link() {
        let folders = Folders::new("new");
        for path in ["file", "absolute", "relative", "loop", "sub"] {
            assert_eq!(folders.open(path, FileMode::CreateNew), Err(FileError::Exists), "{path}");
        }
        assert_eq!(folders.open("sub/new", FileMode::CreateNew), Ok(String::new()));
        assert_eq!(delete_beneath(&folders.folder(), Path::new("sub/new")), Ok(()));
        assert_eq!(delete_beneath(&folders.folder(), Path::new("sub/new")), Ok(()), "deleted before");
        assert_eq!(folders.open("sub/new", FileMode::Read), Err(FileError::NotFound));
        // A link is deleted, not its target.
        hard_link(folders.0.join("secret"), folders.0.join("kept")).expect("a link");
        assert_eq!(delete_beneath(&folders.folder(), Path::new("absolute")), Ok(()));
        assert!(folders.0.join("secret").exists());
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let folders = Folders::new("pipe");
        let path = folders.folder().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        assert_eq!(folders.open("pipe", FileMode::Read), Err(FileError::NotAFile));
    }
}
