//! Measures the figures of `docs/decisions/0013-file-io.md`. These tests are not run with the others, because
//! the figures describe the machine and prove nothing.
#![allow(clippy::disallowed_methods, reason = "it measures the time of system calls")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::IoSlice;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Instant;

use rustix::io::{ReadWriteFlags, pwritev2};

use super::tests::Fixture;
use super::*;
use crate::file_buffer::FileBuffer;
use crate::world::{FileId, FileMode, FileOutcome};

const ROUNDS: usize = 4;
const WRITES: u64 = 500;
const BLOCK: usize = 4096;

/// Times in nanoseconds by label.
#[derive(Default)]
struct Samples(BTreeMap<String, Vec<u64>>);

impl Samples {
    fn add(&mut self, label: String, start: Instant) {
        self.0.entry(label).or_default().push(start.elapsed().as_nanos() as u64);
    }

    fn print(mut self) {
        for (label, times) in &mut self.0 {
            times.sort_unstable();
            let at = |per_mille: usize| times[(times.len() * per_mille / 1000).min(times.len() - 1)] / 1_000;
            println!("| {label} | {} | {} | {} |", at(500), at(900), at(990));
        }
    }
}

fn prepared(fixture: &Fixture, preparation: &str, is_direct: bool) -> File {
    let path = fixture.folder.join("raw");
    let _ = std::fs::remove_file(&path);
    let ordinary = File::create(&path).unwrap();
    let length = WRITES * BLOCK as u64;
    match preparation {
        "zeros" => ordinary.write_all_at(&vec![0; length as usize], 0).unwrap(),
        "fallocate" => {
            rustix::fs::fallocate(&ordinary, rustix::fs::FallocateFlags::empty(), 0, length).unwrap();
        }
        _ => {}
    }
    ordinary.sync_all().unwrap();
    File::open(&fixture.folder).unwrap().sync_all().unwrap();
    let flags = if is_direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().write(true).custom_flags(flags).open(&path).unwrap()
}

#[test]
#[ignore = "measures the machine"]
fn a_block_written_and_synced_by_one_thread() {
    let (fixture, mut samples) = (Fixture::new(10, FileBackend::Plain), Samples::default());
    let bytes = FileBuffer::from(&[7; BLOCK][..]);
    for _ in 0..ROUNDS {
        for preparation in ["zeros", "fallocate", "appended"] {
            for (is_direct, how) in [(true, "direct"), (false, "buffered")] {
                let file = prepared(&fixture, preparation, is_direct);
                for block in 0..WRITES {
                    let start = Instant::now();
                    file.write_all_at(&bytes, block * BLOCK as u64).unwrap();
                    file.sync_data().unwrap();
                    samples.add(format!("{preparation}, {how} | pwrite, fdatasync"), start);
                }
                let file = prepared(&fixture, preparation, is_direct);
                for block in 0..WRITES {
                    let start = Instant::now();
                    let slices = [IoSlice::new(&bytes)];
                    pwritev2(&file, &slices, block * BLOCK as u64, ReadWriteFlags::DSYNC).unwrap();
                    samples.add(format!("{preparation}, {how} | pwritev2 with RWF_DSYNC"), start);
                }
            }
        }
    }
    println!("| file | calls | p50 us | p90 | p99 |\n|---|---|---|---|---|");
    samples.print();
}

fn open_direct(fixture: &Fixture, path: &str, lane: FileLane, length: u64) -> FileId {
    let (path, mode, is_direct) = (path.into(), FileMode::CreateEmpty, true);
    let opened = fixture.ask(WorldRequest::OpenFile { path, mode, lane, is_direct, token: 0 });
    let Ok(FileOutcome::Opened { file, .. }) = opened else { panic!("{opened:?}") };
    fixture.ask(WorldRequest::FillFile { file, length, token: 0 }).unwrap();
    file
}

#[test]
#[ignore = "measures the machine"]
fn a_block_written_and_synced_by_a_lane() {
    let mut samples = Samples::default();
    for _ in 0..ROUNDS {
        for backend in [FileBackend::Plain, FileBackend::IoUring] {
            let fixture = Fixture::new(100, backend);
            let file = open_direct(&fixture, "lane", FileLane::Log, WRITES * BLOCK as u64);
            let mut bytes = FileBuffer::from(&[7; BLOCK][..]);
            for block in 0..WRITES {
                let start = Instant::now();
                fixture.submit(WorldRequest::WriteFile { file, offset: block * BLOCK as u64, bytes, token: 0 });
                fixture.submit(WorldRequest::SyncFile { file, token: 0 });
                bytes = fixture.answer().2;
                assert_eq!(fixture.answer().1, Ok(FileOutcome::Synced));
                samples.add(format!("zeros, direct | lane, {}", backend.name()), start);
            }
        }
    }
    println!("| file | requests | p50 us | p90 | p99 |\n|---|---|---|---|---|");
    samples.print();
}

#[test]
#[ignore = "measures the machine"]
fn megabytes_written_to_two_files_by_a_lane() {
    const STEPS: u64 = 128;
    let mut samples = Samples::default();
    for _ in 0..ROUNDS {
        for backend in [FileBackend::Plain, FileBackend::IoUring] {
            let fixture = Fixture::new(100, backend);
            let files = ["one", "other"].map(|path| open_direct(&fixture, path, FileLane::Bulk, STEPS << 20));
            let start = Instant::now();
            for (token, &file) in files.iter().enumerate() {
                let bytes = FileBuffer::from(&*vec![7; 1 << 20]);
                fixture.submit(WorldRequest::WriteFile { file, offset: 0, bytes, token: token as u64 });
            }
            let mut written = [0; 2];
            for _ in 0..2 * STEPS {
                let (token, result, bytes) = fixture.answer();
                result.unwrap();
                let (file, token) = (files[token as usize], token as usize);
                written[token] += 1;
                if written[token] < STEPS {
                    let offset = written[token] << 20;
                    fixture.submit(WorldRequest::WriteFile { file, offset, bytes, token: token as u64 });
                }
            }
            samples.add(format!("256 MiB into two files | lane, {}", backend.name()), start);
        }
    }
    println!("| file | requests | p50 us | p90 | p99 |\n|---|---|---|---|---|");
    samples.print();
}

#[test]
#[ignore = "measures the machine"]
fn blocks_read_from_eight_files_by_a_lane() {
    const FILES: usize = 8;
    const FILE_BLOCKS: u64 = 4096;
    const READS: u64 = 500;
    let mut samples = Samples::default();
    for _ in 0..ROUNDS {
        for backend in [FileBackend::Plain, FileBackend::IoUring] {
            let fixture = Fixture::new(100, backend);
            let open = |file| open_direct(&fixture, &format!("file{file}"), FileLane::Read, FILE_BLOCKS * BLOCK as u64);
            let files: Vec<FileId> = (0..FILES).map(open).collect();
            let mut random = crate::random::Random::new(1);
            let mut read = |file: usize, bytes| {
                let offset = random.below(FILE_BLOCKS) * BLOCK as u64;
                let (length, token) = (BLOCK as u32, file as u64);
                fixture.submit(WorldRequest::ReadFile { file: files[file], offset, length, bytes, token });
            };
            let start = Instant::now();
            for file in 0..FILES {
                read(file, FileBuffer::new());
            }
            let mut left = [READS; FILES];
            for _ in 0..READS * FILES as u64 {
                let (token, result, bytes) = fixture.answer();
                result.unwrap();
                left[token as usize] -= 1;
                if left[token as usize] > 0 {
                    read(token as usize, bytes);
                }
            }
            samples.add(format!("4,000 reads from 8 files | lane, {}", backend.name()), start);
        }
    }
    println!("| file | requests | p50 us | p90 | p99 |\n|---|---|---|---|---|");
    samples.print();
}
