//! A list of CPU numbers, written as NDB and the kernel's files write it: `0-3,8`.

use std::fmt;

/// Maximum CPU number in a list; Linux supports no larger one.
pub const CPU_NUMBER_MAX: u32 = 8191;

/// CPU numbers in the order given, which decides which thread gets which CPU. A list that was parsed from a
/// text has no number twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// A list of these numbers, in this order.
    pub fn new(numbers: Vec<u32>) -> Self {
        Self(numbers)
    }

    /// The numbers in order.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// Number of CPUs in the list.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `number` is in the list.
    pub fn contains(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// Parses a file in the kernel's CPU list format. `None` if any part is not a number or range, or is
    /// above [`CPU_NUMBER_MAX`], or if the list is empty. The result is ascending.
    pub(super) fn from_kernel_file(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
            if first > last || last > CPU_NUMBER_MAX || numbers.len() > CPU_NUMBER_MAX as usize {
                return None;
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(Self(numbers))
    }
}

impl fmt::Display for CpuList {
    /// Writes ascending runs as ranges, keeping the order.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|&(&number, wanted)| number == wanted).count();
            match run {
                1 => write!(formatter, "{separator}{first}")?,
                _ => write!(formatter, "{separator}{first}-{}", rest[run - 1])?,
            }
            rest = &rest[run..];
            separator = ",";
        }
        Ok(())
    }
}
