//! Speed of sequential writes that bypass the operating system's page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use crate::Outcome;
use crate::failure::Explain;

const WRITE_BYTES: usize = 1 << 20;
/// Alignment of buffers that every disk accepts.
const ALIGNMENT: usize = 4096;

/// Writes `bytes`, rounded up to whole writes of 1 MiB, to a new file, and syncs it. Returns bytes per
/// second.
///
/// # Errors
/// The file system refuses O_DIRECT, or a write fails.
pub fn sequential_write(path: &Path, bytes: u64) -> Outcome<f64> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::DIRECT;
    let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).explain(path.display())?);
    // Digits of no pattern, so that a disk that compresses gains nothing.
    let mut random = crate::random::Random::new(1);
    let buffer: Vec<u8> = (0..WRITE_BYTES + ALIGNMENT).map(|_| random.next_u64() as u8).collect();
    let first = buffer.as_ptr().align_offset(ALIGNMENT);
    let block = &buffer[first..first + WRITE_BYTES];
    let writes = bytes.div_ceil(WRITE_BYTES as u64);
    let start = Instant::now();
    for number in 0..writes {
        file.write_all_at(block, number * WRITE_BYTES as u64).explain(path.display())?;
    }
    file.sync_all()?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok((writes * WRITE_BYTES as u64) as f64 / seconds)
}
