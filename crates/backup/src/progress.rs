//! A progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg:12} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// A bar that counts bytes.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for work of this many bytes.
    pub fn new(label: &'static str, bytes: u64) -> Progress {
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: ProgressBar::new(bytes).with_style(style).with_message(label) }
    }

    /// Counts bytes that are done.
    pub fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
