//! Which checkpoint files stay, and which are written again so that they can be deleted.

use std::collections::BTreeMap;

use junctor_model::stored_manifest::CheckpointFile;

/// Number of files above which files with few live bytes are written again.
const FILES_MAX: usize = 128;
/// Live bytes that one round may write again, as a share of all live bytes: one in this many.
const REWRITTEN_SHARE: u64 = 4;
/// Garbage below this size is not collected.
const GARBAGE_BYTES_MIN: u64 = 1 << 20;

/// The files with live bytes, in the order of their numbers. `before` and `new` together are all files that
/// exist; `live` has the live bytes that each ldm has found.
pub(super) fn live_files(
    before: &[CheckpointFile],
    new: impl Iterator<Item = (u32, u64)>,
    live: impl Iterator<Item = (u32, u64)>,
) -> Vec<CheckpointFile> {
    let mut files: BTreeMap<u32, CheckpointFile> = BTreeMap::new();
    let known = before.iter().map(|file| (file.number, file.bytes)).chain(new);
    files.extend(known.map(|(number, bytes)| (number, CheckpointFile { number, bytes, live_bytes: 0 })));
    for (number, bytes) in live {
        match files.get_mut(&number) {
            Some(file) => file.live_bytes += bytes,
            None => junctor_kernel::invariant::fail("live bytes are in a file that exists", format_args!("{number}")),
        }
    }
    files.into_values().filter(|file| file.live_bytes > 0).collect()
}

/// The files that a round writes again: those with the least share of live bytes, until the garbage is below
/// `garbage_percent_max` per cent of the live bytes and the files are few.
pub(super) fn files_to_rewrite(files: &[CheckpointFile], garbage_percent_max: u32) -> Vec<u32> {
    let live: u64 = files.iter().map(|file| file.live_bytes).sum();
    let garbage_max = (live / 100).saturating_mul(u64::from(garbage_percent_max)).max(GARBAGE_BYTES_MIN);
    let mut garbage: u64 = files.iter().map(garbage_of).sum();
    let mut count = files.len();
    let mut by_share: Vec<&CheckpointFile> = files.iter().collect();
    by_share.sort_by_key(|file| (file.live_bytes * 1024 / file.bytes.max(1), file.live_bytes));
    let mut budget = live / REWRITTEN_SHARE;
    let mut rewritten = Vec::new();
    for file in by_share {
        if garbage <= garbage_max && count <= FILES_MAX || file.live_bytes > budget {
            break;
        }
        budget -= file.live_bytes;
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
        CheckpointFile { number, bytes: bytes * MIB, live_bytes: live_bytes * MIB }
    }

    #[test]
    fn files_without_live_bytes_are_gone() {
        let before = [file(1, 10, 4), file(2, 10, 3)];
        let live = [(1, 2 * MIB), (4, MIB), (4, MIB)];
        let files = live_files(&before, [(3, 5 * MIB), (4, 6 * MIB)].into_iter(), live.into_iter());
        assert_eq!(files, [file(1, 10, 2), file(4, 6, 2)]);
    }

    #[test]
    fn the_files_with_the_most_garbage_are_written_again_until_there_is_little() {
        let files = [file(1, 100, 90), file(2, 100, 10), file(3, 100, 20), file(4, 100, 100)];
        assert!(files_to_rewrite(&files, 100).is_empty());
        assert_eq!(files_to_rewrite(&files, 60), [2]);
        assert_eq!(files_to_rewrite(&files, 40), [2, 3]);
        // Of 220 live MiB, one round writes 55 again.
        assert_eq!(files_to_rewrite(&files, 0), [2, 3]);
        let small = [CheckpointFile { number: 1, bytes: 4096, live_bytes: 1 }];
        assert!(files_to_rewrite(&small, 0).is_empty());
    }

    #[test]
    fn many_files_with_few_live_bytes_become_few() {
        let files: Vec<CheckpointFile> = (0..200).map(|number| file(number, 10, 9)).collect();
        let rewritten = files_to_rewrite(&files, 60);
        assert!((40..=60).contains(&rewritten.len()), "{}", rewritten.len());
    }
}
