//! The files of a voter.

use super::cluster::Cluster;
use crate::disk::BLOCK_BYTES;
use crate::{VoterId, recover};

/// Files of a voter with about `values` values.
fn files(values: u8) -> [Vec<u8>; 2] {
    let mut cluster = Cluster::new(1, 1);
    cluster.run_until(200, |cluster| cluster.leader().is_some());
    for value in 0..values {
        cluster.propose(&[value]).unwrap();
        cluster.run(4);
    }
    cluster.nodes[&VoterId(1)].disk.files.clone()
}

fn entries(files: &[Vec<u8>; 2]) -> Result<Option<u64>, String> {
    let recovered = recover(VoterId(1), [&files[0], &files[1]]).map_err(|error| error.to_string())?;
    Ok(recovered.map(|recovered| recovered.log.last()))
}

#[test]
fn an_empty_folder_has_no_log() {
    assert_eq!(entries(&[Vec::new(), Vec::new()]), Ok(None));
}

#[test]
fn files_of_another_voter_are_refused() {
    let files = files(3);
    assert!(recover(VoterId(2), [&files[0], &files[1]]).is_err());
}

#[test]
fn a_torn_last_write_is_left_out() {
    let mut files = files(5);
    let whole = entries(&files).unwrap().unwrap();
    let length = files[0].len();
    files[0].truncate(length - BLOCK_BYTES + 10);
    assert_eq!(entries(&files), Ok(Some(whole - 1)));
}

/// A crash can tear the first chunk of a file that is used again, whose older chunks are still there.
#[test]
fn a_torn_first_chunk_leaves_the_other_file() {
    let mut files = files(60);
    let newest = recover(VoterId(1), [&files[0], &files[1]]).unwrap().unwrap();
    assert!(newest.generation > 2, "the files were used again");
    let older = 1 - newest.file;
    files[older][..BLOCK_BYTES].fill(0xab);
    assert_eq!(entries(&files), Ok(Some(newest.log.last())));
}

#[test]
fn every_damaged_block_before_the_last_chunk_is_noticed() {
    let files = files(8);
    assert!(files[1].is_empty());
    let blocks = files[0].len() / BLOCK_BYTES;
    for block in 0..blocks - 1 {
        let mut damaged = files.clone();
        damaged[0][block * BLOCK_BYTES + 20] ^= 1;
        assert!(entries(&damaged).is_err(), "block {block} of {blocks}");
    }
}
