//! The names of the log's files.

/// The folder of the log, relative to the node's data folder.
pub const LOG_FOLDER: &str = "log";

/// The path of a segment in this folder. Recovery finds segments by these names.
pub fn segment_path(folder: &str, segment: u64) -> Box<str> {
    format!("{folder}/{segment:010}.log").into()
}

/// The number of the segment in a file of this name; `None` for other files.
pub fn segment_number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_segment_is_found_in_its_name() {
        for segment in [0, 7, u64::MAX] {
            let path = segment_path(LOG_FOLDER, segment);
            let (folder, name) = path.split_once('/').expect("a path");
            assert_eq!((folder, segment_number(name)), (LOG_FOLDER, Some(segment)));
        }
        assert_eq!(["prepared", "1.data", "x.log"].map(segment_number), [None; 3]);
    }
}
