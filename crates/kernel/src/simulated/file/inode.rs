//! The bytes of one file: as reads see them, and as a crash may leave them.
//!
//! A device writes whole sectors. Until a sync, a sector on the medium may have any of the versions that
//! writes gave it, independent of the other sectors and of the file's length.

use std::collections::BTreeMap;

use crate::random::{Random, mix};
use crate::world::FileId;

/// Bytes that a device writes as a whole.
pub(super) const SECTOR_BYTES: usize = 512;

type SectorBytes = [u8; SECTOR_BYTES];

/// Identifies a change: its number among all changes of the disk, and the open file that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeStamp {
    pub(super) number: u64,
    pub(super) file: FileId,
}

/// The unsynced changes of a disk that survive a loss of power.
#[derive(Clone, Copy, Debug)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// Each change either survives as a whole or not at all. The word is the seed that decides which do.
    WholeChanges(u64),
    /// All changes before this number, and some sectors of the change itself.
    Before(u64),
    /// Each sector by itself.
    Sectors,
}

impl Survival {
    pub(super) fn draw(random: &mut Random, change_count: u64) -> Self {
        match random.below(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 | 3 => Self::WholeChanges(random.word()),
            4 | 5 => Self::Before(random.below(change_count + 1)),
            _ => Self::Sectors,
        }
    }

    /// The position of the surviving change among those of a sector or length; `None` if none survives.
    fn choose(
        self,
        changes: impl ExactSizeIterator<Item = u64> + DoubleEndedIterator,
        random: &mut Random,
    ) -> Option<usize> {
        let count = changes.len();
        let keeps = |number: u64, random: &mut Random| match self {
            Self::Nothing | Self::Sectors => false,
            Self::Everything => true,
            Self::WholeChanges(word) => mix(word ^ number).is_multiple_of(2),
            Self::Before(end) => number < end || number == end && random.one_in(2),
        };
        match self {
            Self::Sectors => (random.below(count as u64 + 1) as usize).checked_sub(1),
            _ => changes.rev().position(|number| keeps(number, random)).map(|from_end| count - 1 - from_end),
        }
    }
}

/// A file's bytes, whatever names it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    content: Vec<u8>,
    /// Sectors whose content may differ from the medium, by position.
    sectors: BTreeMap<u64, Sector>,
    /// Length that is certainly on the medium.
    durable_length: u64,
    /// Lengths of the file since the last sync, oldest first.
    lengths: Vec<(ChangeStamp, u64)>,
}

#[derive(Clone, Debug)]
struct Sector {
    /// The last synced version. The medium has this version or a later one.
    durable: SectorBytes,
    /// Unsynced versions, oldest first. Empty after a failed sync: the cache then holds a version that
    /// nothing will write any more.
    versions: Vec<(ChangeStamp, SectorBytes)>,
}

impl Inode {
    /// A file whose content is on the medium.
    pub(super) fn at_rest(content: Vec<u8>) -> Self {
        Self { durable_length: content.len() as u64, content, ..Self::default() }
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    pub(super) fn write(&mut self, stamp: ChangeStamp, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        let touched = offset / SECTOR_BYTES as u64..(end as u64).div_ceil(SECTOR_BYTES as u64);
        self.change(stamp, touched, |content| {
            if content.len() < end {
                content.resize(end, 0);
            }
            content[offset as usize..end].copy_from_slice(bytes);
        });
    }

    pub(super) fn truncate(&mut self, stamp: ChangeStamp) {
        let touched = 0..(self.content.len() as u64).div_ceil(SECTOR_BYTES as u64);
        self.change(stamp, touched, Vec::clear);
    }

    fn change(&mut self, stamp: ChangeStamp, touched: std::ops::Range<u64>, apply: impl FnOnce(&mut Vec<u8>)) {
        let length = self.content.len();
        for position in touched.clone() {
            let durable = sector(&self.content, position);
            self.sectors.entry(position).or_insert(Sector { durable, versions: Vec::new() });
        }
        apply(&mut self.content);
        for (position, entry) in self.sectors.range_mut(touched) {
            entry.versions.push((stamp, sector(&self.content, *position)));
        }
        // After a failed sync, the medium may have another length. A file system stores the length again with
        // the next write that it stores.
        let is_lost = self.lengths.is_empty() && self.content.len() as u64 != self.durable_length;
        if self.content.len() != length || is_lost {
            self.lengths.push((stamp, self.content.len() as u64));
        }
    }

    /// Overwrites the first `length` bytes with zeros and puts the zeros on the medium.
    pub(super) fn fill(&mut self, length: u64) {
        if (self.content.len() as u64) < length {
            self.content.resize(length as usize, 0);
        }
        self.content[..length as usize].fill(0);
        self.sectors.retain(|position, _| (position + 1) * SECTOR_BYTES as u64 > length);
        // The last sector may have bytes after the zeros. They become durable early.
        if let Some(last) = self.sectors.get_mut(&(length / SECTOR_BYTES as u64)) {
            last.durable = sector(&self.content, length / SECTOR_BYTES as u64);
            last.versions.clear();
        }
        self.durable_length = self.durable_length.max(length);
        self.lengths.retain(|(_, after)| *after > length);
    }

    /// Puts the changes for which `is_covered` is true on the medium, together with earlier changes of the
    /// same sectors and of the length.
    pub(super) fn sync(&mut self, is_covered: impl Fn(&ChangeStamp) -> bool) {
        for sector in self.sectors.values_mut() {
            if let Some(last) = sector.versions.iter().rposition(|(stamp, _)| is_covered(stamp)) {
                sector.durable = sector.versions[last].1;
                sector.versions.drain(..=last);
            }
        }
        if let Some(last) = self.lengths.iter().rposition(|(stamp, _)| is_covered(stamp)) {
            self.durable_length = self.lengths[last].1;
            self.lengths.drain(..=last);
        }
        self.forget_settled();
    }

    /// A sync fails: the medium may have got any version of each sector. The cache then treats its content as
    /// written, so reads still show it, and later syncs have nothing to write.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        for sector in self.sectors.values_mut() {
            let chosen = random.below(sector.versions.len() as u64 + 1) as usize;
            if chosen > 0 {
                sector.durable = sector.versions[chosen - 1].1;
            }
            sector.versions.clear();
        }
        let chosen = random.below(self.lengths.len() as u64 + 1) as usize;
        if chosen > 0 {
            self.durable_length = self.lengths[chosen - 1].1;
        }
        self.lengths.clear();
        self.forget_settled();
    }

    fn forget_settled(&mut self) {
        let content = &self.content;
        self.sectors.retain(|position, kept| !kept.versions.is_empty() || kept.durable != sector(content, *position));
    }

    /// The power fails.
    pub(super) fn fail_power(&mut self, survival: Survival, random: &mut Random) {
        let numbers = self.lengths.iter().map(|(stamp, _)| stamp.number);
        let length = survival.choose(numbers, random).map_or(self.durable_length, |kept| self.lengths[kept].1);
        // Sectors beyond the present end may have versions from before a truncation.
        let end = self.sectors.last_key_value().map_or(0, |(position, _)| (*position as usize + 1) * SECTOR_BYTES);
        self.content.resize(end.max(length as usize).max(self.content.len()), 0);
        for (position, sector) in std::mem::take(&mut self.sectors) {
            let numbers = sector.versions.iter().map(|(stamp, _)| stamp.number);
            let kept = survival.choose(numbers, random).map_or(sector.durable, |kept| sector.versions[kept].1);
            let start = position as usize * SECTOR_BYTES;
            self.content[start..start + SECTOR_BYTES].copy_from_slice(&kept);
        }
        self.content.truncate(length as usize);
        self.durable_length = length;
        self.lengths.clear();
    }

    /// Flips a bit on the medium and in the cache. False beyond the end.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u32) -> bool {
        let Some(byte) = self.content.get_mut(offset as usize) else { return false };
        let mask = 1 << (bit % 8);
        *byte ^= mask;
        if let Some(sector) = self.sectors.get_mut(&(offset / SECTOR_BYTES as u64)) {
            let within = offset as usize % SECTOR_BYTES;
            sector.durable[within] ^= mask;
            sector.versions.iter_mut().for_each(|(_, bytes)| bytes[within] ^= mask);
        }
        true
    }
}

/// A sector's bytes, with zeros beyond the end.
fn sector(content: &[u8], position: u64) -> SectorBytes {
    let mut bytes = [0; SECTOR_BYTES];
    let start = (position as usize * SECTOR_BYTES).min(content.len());
    let end = (start + SECTOR_BYTES).min(content.len());
    bytes[..end - start].copy_from_slice(&content[start..end]);
    bytes
}
