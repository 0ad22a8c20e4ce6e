//! Places in checkpoint files, as page tables, manifests and signals name them.

/// Bytes in a checkpoint file: a frame (a compressed run of rows), or the page table of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameLocation {
    /// Number of the file `checkpoint/<number>.data`.
    pub file: u32,
    /// Position of the first byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

/// The page table of a partition in a checkpoint file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTableLocation {
    /// The encoded page table.
    pub location: FrameLocation,
    /// CRC-32C of these bytes.
    pub checksum: u32,
}
