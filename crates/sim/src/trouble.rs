//! Disks in trouble: operations that fail, a disk that is full for a while, slow disks, and bits of stored
//! files that flip while the node is down.

use junctor_kernel::simulated::{Disk, DiskFault, DiskFaults, DiskOperation, FaultTime, SlowWindow};
use junctor_kernel::{Duration, FileLane, Random, Time};
use junctor_storage::log::{BLOCK_BYTES, ChainPosition, LogScan, ScanStep, SegmentSize, decode_header};

use crate::plan::RestartPlan;

/// The operations that may fail.
const FAILING: [DiskOperation; 6] = [
    DiskOperation::Open,
    DiskOperation::Read,
    DiskOperation::Write,
    DiskOperation::Sync,
    DiskOperation::SyncFolder,
    DiskOperation::Rename,
];

/// The lanes of the node's own files, which may be slow for a while.
const OWN_LANES: [FileLane; 5] =
    [FileLane::Log, FileLane::Checkpoint, FileLane::Bulk, FileLane::Read, FileLane::Control];

/// The trouble of the serving node's disk in one life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTrouble {
    /// The operation that fails with an input/output error, and its number in the life, from 1 on.
    pub failing: Option<(DiskOperation, u64)>,
    /// When no file can grow: from the first time to the second.
    pub full: Option<(Time, Time)>,
    /// When the disk is slow.
    pub slow: Option<SlowWindow>,
}

impl DiskTrouble {
    /// Draws the trouble of a life that begins now and lasts for at most `longest_us` microseconds.
    pub fn draw(plan: &RestartPlan, random: &mut Random, now: Time, longest_us: u64) -> Self {
        let moment = |random: &mut Random| now.plus(Duration::from_micros(random.below(longest_us)));
        let failing = random.one_in(plan.fail_one_in).then(|| {
            let operation = FAILING[random.below(FAILING.len() as u64) as usize];
            let operations = 1 << random.below(8);
            (operation, 1 + random.below(operations))
        });
        let full = (random.one_in(plan.full_one_in) && failing.is_none()).then(|| {
            let from = if random.one_in(2) { now } else { moment(random) };
            (from, from.plus(Duration::from_micros(1 + random.below(longest_us))))
        });
        let slow = random.one_in(plan.slow_one_in).then(|| match random.one_in(2) {
            true => SlowWindow { from: Time(0), until: Time(u64::MAX), factor: 2 + random.below(20), lane: None },
            false => {
                let from = moment(random);
                let until = from.plus(Duration::from_micros(1 + random.below(longest_us)));
                let lane = OWN_LANES[random.below(OWN_LANES.len() as u64) as usize];
                SlowWindow { from, until, factor: 10 + random.below(200), lane: Some(lane) }
            }
        });
        Self { failing, full, slow }
    }

    /// The faults of the disk while its files may grow up to `capacity_bytes` together.
    pub fn faults(&self, capacity_bytes: Option<u64>) -> DiskFaults {
        let failing = self.failing.map(|(operation, number)| DiskFault::new(operation, FaultTime::Nth(number)));
        DiskFaults { failing: failing.into_iter().collect(), capacity_bytes, slow: self.slow.into_iter().collect() }
    }
}

/// Flips a random bit of a random file. Returns the path of the file and the offset of the bit. Returns
/// `None` if the damage cannot be detected: a damaged group looks like one that was never written, unless a
/// later group says that it was synced.
pub fn flip_bit(disk: &mut Disk, segments: SegmentSize, random: &mut Random) -> Option<(String, u64)> {
    let paths: Vec<String> = disk.paths().map(str::to_owned).collect();
    let path = paths.get(random.below(paths.len().max(1) as u64) as usize)?.clone();
    let mut length = disk.content(&path)?.len() as u64;
    if let Some(first) = first_position(&path, segments) {
        let (synced, end) = extent_of_log(disk, segments);
        if !random.one_in(4) {
            // Most bytes of a segment are unused, so damage to them proves little.
            length = length.min(synced.saturating_sub(first) * BLOCK_BYTES as u64);
        }
        let offset = random.below(length.max(1));
        let block = first + offset / BLOCK_BYTES as u64;
        let is_noticeable = length > 0 && !(synced..end).contains(&block);
        return (is_noticeable && disk.flip_bit(&path, offset, random.below(8) as u32)).then_some((path, offset));
    }
    let offset = random.below(length.max(1));
    disk.flip_bit(&path, offset, random.below(8) as u32).then_some((path, offset))
}

/// The position of the first block of a segment's file, in blocks of the log; `None` for other files.
fn first_position(path: &str, segments: SegmentSize) -> Option<u64> {
    let number: u64 = path.rsplit('/').next()?.strip_suffix(".log")?.parse().ok()?;
    Some(number * segments.bytes() / BLOCK_BYTES as u64)
}

/// The positions up to which the log is known to be synced, and at which it ends, in blocks.
fn extent_of_log(disk: &Disk, segments: SegmentSize) -> (u64, u64) {
    let files = disk.paths().filter_map(|path| Some((first_position(path, segments)?, disk.content(path)?)));
    let files: Vec<(u64, &[u8])> = files.collect();
    let Some((first, bytes)) = files.iter().min_by_key(|(first, _)| *first) else { return (0, 0) };
    let Ok((header, _)) = decode_header(bytes) else { return (0, 0) };
    let beginning = ChainPosition::beginning(header.log_id);
    let mut scan = LogScan::new(ChainPosition { previous_checksum: None, position: *first, ..beginning }, segments);
    let (mut synced, mut end) = (0, 0);
    loop {
        let position = scan.chain().position;
        let file = files.iter().rfind(|(first, _)| *first <= position);
        let bytes = file.and_then(|(first, bytes)| bytes.get((position - first) as usize * BLOCK_BYTES..));
        match scan.step(bytes.unwrap_or_default()) {
            ScanStep::Group(group) => (synced, end) = (group.header.synced.max(synced), position + group.blocks),
            ScanStep::NeedBlocks(_) | ScanStep::UnknownVersion(_) => return (synced, end),
            ScanStep::NoGroup => match scan.skip_to_next_segment() {
                Some(_) => {}
                None => return (synced, end),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_plan_allows_is_drawn() {
        let mut plan = RestartPlan::sample();
        let draw = |plan: &RestartPlan| {
            let mut random = Random::new(1);
            (0..400).map(|_| DiskTrouble::draw(plan, &mut random, Time(5), 100)).collect::<Vec<_>>()
        };
        (plan.fail_one_in, plan.full_one_in, plan.slow_one_in) = (2, 2, 2);
        let drawn = draw(&plan);
        let count = |matches: &dyn Fn(&DiskTrouble) -> bool| drawn.iter().filter(|drawn| matches(drawn)).count();
        assert!(count(&|drawn| drawn.failing.is_some()) > 100 && count(&|drawn| drawn.full.is_some()) > 50);
        assert!(count(&|drawn| drawn.slow.is_some_and(|slow| slow.lane.is_some())) > 50);
        assert!(drawn.iter().all(|drawn| drawn.failing.is_none() || drawn.full.is_none()));
        (plan.fail_one_in, plan.full_one_in, plan.slow_one_in) = (0, 0, 0);
        assert!(draw(&plan).iter().all(|drawn| *drawn == DiskTrouble::default()));
    }
}
