//! Live bytes of checkpoint files.

/// The bytes of each file that page tables need: their frames and themselves. In the order of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveBytes(Vec<(u32, u64)>);

impl LiveBytes {
    /// Adds live bytes of a file.
    pub fn add(&mut self, file: u32, bytes: u64) {
        match self.0.binary_search_by_key(&file, |(file, _)| *file) {
            Ok(at) => self.0[at].1 += bytes,
            Err(at) => self.0.insert(at, (file, bytes)),
        }
    }

    /// Each file with its live bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().copied()
    }

    /// The live bytes of all files.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl From<LiveBytes> for Vec<(u32, u64)> {
    fn from(live: LiveBytes) -> Vec<(u32, u64)> {
        live.0
    }
}
