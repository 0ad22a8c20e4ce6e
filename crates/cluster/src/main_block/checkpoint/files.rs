//! Which checkpoint files stay, and which are written again so that they can be deleted.

use std::collections::BTreeMap;

use junctor_model::checkpoint::{CHECKPOINT_FILE_BYTES, CheckpointFile};

/// Number of files from which files with few live bytes are written again, unless files of a quarter of their
/// full size are more.
const FILES_MAX: u64 = 128;
/// Live bytes that one round may write again, as a share of all live bytes: one in this many. Each ldm keeps
/// to it, too, in each partition.
const REWRITTEN_SHARE: u64 = 2;
/// Garbage below this size is not collected.
const GARBAGE_BYTES_MIN: u64 = 1 << 20;
/// Garbage that one round makes, in per cent of the live bytes. Every eighth entry of a page replaces the
/// page.
const GARBAGE_PERCENT_PER_ROUND: u32 = 13;

/// The files with live bytes, in the order of their numbers. `before` and `new` together are all files that
/// exist; `live` has the live bytes that each ldm has found.
pub(super) fn live_files<'a>(
    before: &[CheckpointFile],
    new: impl Iterator<Item = &'a CheckpointFile>,
    live: impl Iterator<Item = (u32, u64)>,
) -> Vec<CheckpointFile> {
    let without_live = |file: &CheckpointFile| (file.number, CheckpointFile { live_bytes: 0, ..*file });
    let mut files: BTreeMap<u32, CheckpointFile> = before.iter().map(without_live).collect();
    files.extend(new.map(without_live));
    for (number, bytes) in live {
        match files.get_mut(&number) {
            Some(file) => file.live_bytes += bytes,
            None => junctor_kernel::invariant::fail("live bytes are in a file that exists", format_args!("{number}")),
        }
    }
    files.into_values().filter(|file| file.live_bytes > 0).collect()
}

/// The files that a round writes again: those with the least share of live bytes, until the garbage is so low
/// that it stays below `garbage_percent_max` per cent of the live bytes during the round, and the files are
/// few. A file with much live data takes several rounds, because each writes only a part of it.
pub(super) fn files_to_rewrite<'a>(
    files: impl Iterator<Item = &'a CheckpointFile>,
    garbage_percent_max: u32,
) -> Vec<u32> {
    let mut by_share: Vec<&CheckpointFile> = files.collect();
    let live: u64 = by_share.iter().map(|file| file.live_bytes).sum();
    let percent = garbage_percent_max - GARBAGE_PERCENT_PER_ROUND.min(garbage_percent_max / 2);
    let garbage_max = (live / 100).saturating_mul(u64::from(percent)).max(GARBAGE_BYTES_MIN);
    let mut garbage: u64 = by_share.iter().map(|file| garbage_of(file)).sum();
    let mut count = by_share.len() as u64;
    let files_max = FILES_MAX.max(live / (CHECKPOINT_FILE_BYTES / 4));
    by_share.sort_by_key(|file| (file.live_bytes * 1024 / file.bytes.max(1), file.live_bytes));
    let mut rewritten_bytes = 0;
    let mut rewritten = Vec::new();
    for file in by_share {
        if garbage <= garbage_max && count <= files_max || rewritten_bytes >= live / REWRITTEN_SHARE {
            break;
        }
        rewritten_bytes += file.live_bytes;
        garbage -= garbage_of(file);
        count -= 1;
        rewritten.push(file.number);
    }
    rewritten.sort_unstable();
    rewritten
}

fn garbage_of(file: &CheckpointFile) -> u64 {
    file.bytes.saturating_sub(file.live_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn file(number: u32, bytes: u64, live_bytes: u64) -> CheckpointFile {
        CheckpointFile { number, bytes: bytes * MIB, live_bytes: live_bytes * MIB, checksum: None }
    }

    #[test]
    fn files_without_live_bytes_are_gone() {
        let before = [file(1, 10, 4), file(2, 10, 3)];
        let live = [(1, 2 * MIB), (4, MIB), (4, MIB)];
        let files = live_files(&before, [file(3, 5, 0), file(4, 6, 0)].iter(), live.into_iter());
        assert_eq!(files, [file(1, 10, 2), file(4, 6, 2)]);
    }

    #[test]
    fn the_files_with_the_most_garbage_are_written_again_until_there_is_little() {
        let files = [file(1, 100, 90), file(2, 100, 10), file(3, 100, 20), file(4, 100, 100)];
        // There are 220 MiB of live bytes and 180 of garbage, of which a round may add 13 per cent.
        assert!(files_to_rewrite(files.iter(), 95).is_empty());
        assert_eq!(files_to_rewrite(files.iter(), 90), [2]);
        assert_eq!(files_to_rewrite(files.iter(), 60), [2]);
        assert_eq!(files_to_rewrite(files.iter(), 40), [2, 3]);
        // One round writes at most one file more than half of the live bytes.
        assert_eq!(files_to_rewrite(files.iter(), 0), [1, 2, 3]);
        let large = [file(1, 100, 60), file(2, 10, 10)];
        assert_eq!(files_to_rewrite(large.iter(), 50), [1]);
        let small = [CheckpointFile { number: 1, bytes: 4096, live_bytes: 1, checksum: None }];
        assert!(files_to_rewrite(small.iter(), 0).is_empty());
    }

    #[test]
    fn many_files_with_few_live_bytes_become_few() {
        let files: Vec<CheckpointFile> = (0..200).map(|number| file(number, 10, 9)).collect();
        let rewritten = files_to_rewrite(files.iter(), 60);
        assert!((70..=75).contains(&rewritten.len()), "{}", rewritten.len());
    }
}
