//! The last entries of the general log and of the slow query log, for the tables `mysql.general_log` and
//! `mysql.slow_log`. Part of the closed list of invariant 2: statements take the lock only while `log_output`
//! has TABLE, and hold it for one entry. A reader takes references to the entries.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::Entry;

/// Maximum number of entries. The oldest ones go first.
pub const ROWS_MAX: usize = 4096;

/// Maximum number of bytes of the entries. The oldest ones go first.
pub const BYTES_MAX: usize = 4 << 20;

/// Estimated bytes of an entry without its texts.
const ENTRY_BYTES: usize = 256;

/// The last entries of one log.
#[derive(Debug, Default)]
pub struct LogTable {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
}

impl LogTable {
    /// Adds an entry.
    pub fn push(&self, entry: Entry) {
        let mut kept = self.lock();
        kept.bytes += ENTRY_BYTES + entry.event.bytes();
        kept.entries.push_back(Arc::new(entry));
        while kept.entries.len() > ROWS_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes -= ENTRY_BYTES + oldest.event.bytes();
        }
    }

    /// The entries, the oldest first.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.lock().entries.iter().cloned().collect()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        // The entries are freed when the lock is free again.
        let _entries = std::mem::take(&mut *self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{LogEvent, LoggedClient};

    fn entry(number: usize, bytes: usize) -> Entry {
        let event = LogEvent::Command(LoggedClient::default(), "Query", vec![b'x'; bytes].into());
        Entry { wall_clock_us: number as u64, event }
    }

    fn bounds(table: &LogTable) -> (usize, u64) {
        let entries = table.entries();
        (entries.len(), entries.first().map_or(0, |entry| entry.wall_clock_us))
    }

    #[test]
    fn the_oldest_entries_go_first_by_number_and_by_bytes() {
        let table = LogTable::default();
        (0..ROWS_MAX + 10).for_each(|number| table.push(entry(number, 1)));
        assert_eq!(bounds(&table), (ROWS_MAX, 10));
        let large = BYTES_MAX / 8;
        (0..20).for_each(|number| table.push(entry(number, large)));
        assert_eq!(bounds(&table), (7, 13));
        table.clear();
        assert_eq!(bounds(&table), (0, 0));
        table.push(entry(1, 1));
        assert_eq!(bounds(&table), (1, 1));
    }
}
