//! Places in checkpoint files, as page tables, manifests and signals name them.

use std::fmt;

/// Bytes in a checkpoint file: a frame (rows of one page), or the page table of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameLocation {
    /// Number of the file `checkpoint/<number>.data`.
    pub file: u32,
    /// Position of the first byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

impl fmt::Display for FrameLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameLocation { file, offset, length } = self;
        write!(formatter, "checkpoint file {file}, {length} bytes from byte {offset}")
    }
}

/// The page table of a partition in a checkpoint file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTableLocation {
    /// The encoded page table.
    pub location: FrameLocation,
    /// The checksum in its header.
    pub checksum: u32,
}

/// A checkpoint file as a manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// The number, which its name contains.
    pub number: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes that the checkpoint needs: frames that page tables name, page tables, and the whole of a list.
    pub live_bytes: u64,
    /// CRC-32C of the whole file; `None` for a file that release 0.1 wrote.
    pub checksum: Option<u32>,
}

/// Size in bytes from which an ldm continues a round in the next file. Files of limited size can be freed one
/// by one.
pub const CHECKPOINT_FILE_BYTES: u64 = 128 << 20;

/// The folder of checkpoint files, relative to the node's data folder.
pub const CHECKPOINT_FOLDER: &str = "checkpoint";

/// The path of a checkpoint file, relative to the node's data folder.
pub fn checkpoint_path(file: u32) -> Box<str> {
    format!("{CHECKPOINT_FOLDER}/{file:010}.data").into()
}

/// The number of the checkpoint file with this name; `None` for other files.
pub fn checkpoint_file(name: &str) -> Option<u32> {
    name.strip_suffix(".data")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_file_is_found_in_its_name() {
        for file in [0, 7, u32::MAX] {
            let path = checkpoint_path(file);
            let (folder, name) = path.split_once('/').expect("a path");
            assert_eq!((folder, checkpoint_file(name)), (CHECKPOINT_FOLDER, Some(file)));
        }
        assert_eq!(["x.data", "1.log", "4294967296.data"].map(checkpoint_file), [None; 3]);
    }
}
