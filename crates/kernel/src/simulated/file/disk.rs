//! The disk of a simulated node: names, and the files that they name, as processes see them and as a loss of
//! power may leave them.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;
use crate::world::{FileError, FileLane, FolderEntry};

use super::inode::{Inode, Survival};

/// The files of a simulated node. A copy of a stopped node's disk can be given to a node that starts later.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    inodes: BTreeMap<InodeId, Inode>,
    inodes_made: u64,
    /// Files and folders by path, as processes see them. The path of a folder has no slash at the end.
    names: BTreeMap<String, Entry>,
    /// The names that are certainly on the medium.
    durable_names: BTreeMap<String, Entry>,
    /// Changes of names since the last sync of their folder, by folder.
    name_changes: BTreeMap<String, Vec<NameChange>>,
    /// Number of changes.
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File(InodeId),
}

#[derive(Clone, Debug)]
struct NameChange {
    number: u64,
    lane: FileLane,
    path: String,
    /// `None` if the name is removed.
    entry: Option<Entry>,
}

impl Disk {
    /// The content of a file as processes see it; `None` if no such file exists.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        Some(self.inodes.get(&self.inode(path)?)?.content())
    }

    /// The paths of all files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let is_file = |entry: &Entry| matches!(entry, Entry::File(_));
        self.names.iter().filter(move |(_, entry)| is_file(entry)).map(|(path, _)| path.as_str())
    }

    /// Length of all files together, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.paths().filter_map(|path| self.content(path)).map(|content| content.len() as u64).sum()
    }

    /// Adds a file that is on the medium with its folder, as after a copy to a disk at rest.
    pub fn put(&mut self, path: &str, content: Vec<u8>) {
        let path = normal(path);
        let folder = parent(&path);
        self.inodes_made += 1;
        let inode = InodeId(self.inodes_made);
        self.inodes.insert(inode, Inode::at_rest(content));
        for names in [&mut self.names, &mut self.durable_names] {
            if !is_root(folder) {
                names.insert(folder.to_owned(), Entry::Folder);
            }
            names.insert(path.clone(), Entry::File(inode));
        }
    }

    /// Flips one bit of a file at rest. Bit 0 is the lowest. False if the file does not reach that far.
    pub fn flip_bit(&mut self, path: &str, offset: u64, bit: u32) -> bool {
        let inode = self.inode(path).and_then(|inode| self.inodes.get_mut(&inode));
        inode.is_some_and(|inode| inode.flip_bit(offset, bit))
    }

    /// Number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    pub(super) fn inode(&self, path: &str) -> Option<InodeId> {
        match self.names.get(&normal(path)) {
            Some(Entry::File(inode)) => Some(*inode),
            Some(Entry::Folder) | None => None,
        }
    }

    pub(super) fn file(&self, inode: InodeId) -> Option<&Inode> {
        self.inodes.get(&inode)
    }

    pub(super) fn file_mut(&mut self, inode: InodeId) -> Option<&mut Inode> {
        self.inodes.get_mut(&inode)
    }

    /// Creates an empty file.
    pub(super) fn create(&mut self, path: &str, lane: FileLane) -> Result<InodeId, FileError> {
        let path = self.in_folder(path)?;
        if self.names.get(&path) == Some(&Entry::Folder) {
            return Err(FileError::System(libc::EISDIR));
        }
        self.inodes_made += 1;
        let inode = InodeId(self.inodes_made);
        self.inodes.insert(inode, Inode::default());
        self.set_name(path, Some(Entry::File(inode)), lane);
        Ok(inode)
    }

    pub(super) fn delete(&mut self, path: &str, lane: FileLane) -> Result<(), FileError> {
        let path = normal(path);
        match self.names.get(&path) {
            Some(Entry::File(_)) => self.set_name(path, None, lane),
            Some(Entry::Folder) => return Err(FileError::System(libc::EISDIR)),
            None => {}
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, lane: FileLane) -> Result<(), FileError> {
        let (from, to) = (normal(from), self.in_folder(to)?);
        let Some(entry @ Entry::File(_)) = self.names.get(&from).copied() else { return Err(FileError::NotFound) };
        if self.names.get(&to) == Some(&Entry::Folder) {
            return Err(FileError::System(libc::EISDIR));
        }
        if from == to {
            return Ok(());
        }
        let is_same_folder = parent(&from) == parent(&to);
        self.set_name(to, Some(entry), lane);
        self.set_name(from, None, lane);
        if is_same_folder {
            // Both halves of a rename within a folder get the same number, because they are one change. A
            // rename across folders may survive a loss of power in one folder only.
            self.changes -= 1;
            let changes = self.name_changes.values_mut().flatten();
            changes.filter(|change| change.number > self.changes).for_each(|change| change.number = self.changes);
        }
        Ok(())
    }

    pub(super) fn create_folder(&mut self, path: &str, lane: FileLane) -> Result<(), FileError> {
        let path = normal(path);
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).chain([path.len()]);
        for end in ends {
            match self.names.get(&path[..end]) {
                _ if is_root(&path[..end]) => {}
                Some(Entry::Folder) => {}
                Some(Entry::File(_)) => return Err(FileError::System(libc::ENOTDIR)),
                None => self.set_name(path[..end].to_owned(), Some(Entry::Folder), lane),
            }
        }
        Ok(())
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<FolderEntry>, FileError> {
        let folder = normal(path);
        self.check_folder(&folder)?;
        let inside = self.names.iter().filter(|(path, _)| parent(path) == folder);
        let entries = inside.map(|(path, entry)| {
            let name = path.rsplit('/').next().unwrap_or(path).into();
            match entry {
                Entry::Folder => FolderEntry { name, length: 0, is_folder: true },
                Entry::File(inode) => {
                    let length = self.inodes.get(inode).map_or(0, |inode| inode.content().len() as u64);
                    FolderEntry { name, length, is_folder: false }
                }
            }
        });
        // Paths of one folder are in the order of their names.
        Ok(entries.collect())
    }

    /// Makes changes of names in a folder durable: the last change that this lane made or whose number is at
    /// most `number`, and all changes before it.
    pub(super) fn sync_folder(&mut self, path: &str, lane: FileLane, number: u64) -> Result<(), FileError> {
        let folder = normal(path);
        self.check_folder(&folder)?;
        let Some(changes) = self.name_changes.get_mut(&folder) else { return Ok(()) };
        let is_covered = |change: &NameChange| change.lane == lane || change.number <= number;
        // The medium gets changes in their order.
        let covered = changes.iter().rposition(is_covered).map_or(0, |last| last + 1);
        changes.drain(..covered).for_each(|change| apply(&mut self.durable_names, change));
        Ok(())
    }

    /// The power fails. In each folder the earliest changes of names survive; how many of them is random.
    pub(super) fn lose_power(&mut self, random: &mut Random) {
        let survival = Survival::draw(random, self.changes);
        for (_, changes) in std::mem::take(&mut self.name_changes) {
            let end = match survival {
                Survival::Nothing => 0,
                Survival::Everything => u64::MAX,
                Survival::Before(number) => number,
                Survival::WholeChanges(_) | Survival::Sectors => {
                    let first = changes.first().map_or(0, |change| change.number);
                    let last = changes.last().map_or(0, |change| change.number);
                    first + random.below(last - first + 2)
                }
            };
            let survivors = changes.into_iter().take_while(|change| change.number < end);
            survivors.for_each(|change| apply(&mut self.durable_names, change));
        }
        self.names = std::mem::take(&mut self.durable_names);
        self.drop_orphans();
        self.durable_names = self.names.clone();
        self.drop_unnamed(&BTreeSet::new());
        self.inodes.values_mut().for_each(|inode| inode.fail_power(survival, random));
    }

    /// Frees files without a name that are not open either.
    pub(super) fn drop_unnamed(&mut self, open: &BTreeSet<InodeId>) {
        let changed = self.name_changes.values().flatten().filter_map(|change| change.entry);
        let entries = self.names.values().chain(self.durable_names.values()).copied().chain(changed);
        let named: BTreeSet<InodeId> = entries
            .filter_map(|entry| match entry {
                Entry::File(inode) => Some(inode),
                Entry::Folder => None,
            })
            .collect();
        self.inodes.retain(|inode, _| named.contains(inode) || open.contains(inode));
    }

    /// Removes files and folders whose parent folder does not exist.
    fn drop_orphans(&mut self) {
        let mut folders = BTreeSet::new();
        // A folder comes before its content.
        self.names.retain(|path, entry| {
            let parent = parent(path);
            let is_kept = is_root(parent) || folders.contains(parent);
            if is_kept && *entry == Entry::Folder {
                folders.insert(path.clone());
            }
            is_kept
        });
    }

    fn set_name(&mut self, path: String, entry: Option<Entry>, lane: FileLane) {
        let number = self.next_change();
        let change = NameChange { number, lane, path, entry };
        apply(&mut self.names, change.clone());
        self.name_changes.entry(parent(&change.path).to_owned()).or_default().push(change);
    }

    /// Returns the path in normal form. Fails if the folder that would contain it does not exist.
    fn in_folder(&self, path: &str) -> Result<String, FileError> {
        let path = normal(path);
        self.check_folder(parent(&path))?;
        Ok(path)
    }

    fn check_folder(&self, path: &str) -> Result<(), FileError> {
        let exists = is_root(path) || self.names.get(path) == Some(&Entry::Folder);
        if exists { Ok(()) } else { Err(FileError::NotFound) }
    }
}

fn apply(names: &mut BTreeMap<String, Entry>, change: NameChange) {
    match change.entry {
        Some(entry) => names.insert(change.path, entry),
        None => names.remove(&change.path),
    };
}

/// The node's data folder, or the root of absolute paths.
fn is_root(path: &str) -> bool {
    matches!(path, "" | "/")
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) => "/",
        Some(at) => &path[..at],
        None => "",
    }
}

/// The path without empty parts and dots.
fn normal(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}
