//! A trace of the last signals of every thread, which is printed when a node dies. Recording costs a few
//! instructions per signal.
//!
//! Each thread has a ring buffer with the time, addresses and number of its last signals, two words per
//! signal. Only the thread itself writes to its ring. The thread that stops the process reads all rings and
//! may find the newest entry half written.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};

use crate::address::Address;
use crate::block::Signal;
use crate::context::Time;
use crate::module::ModuleId;

/// Maximum number of entries that a dump prints for each thread.
const DUMP_ENTRIES_MAX: u64 = 64;

/// Shift of recorded times. In units of 16 ns, 48 bits of time last for 52 days, and a signal's number fits
/// in the same word.
const TIME_SHIFT: u32 = 4;

static RINGS: Mutex<Vec<Weak<TraceRing>>> = Mutex::new(Vec::new());
static HOOK: Once = Once::new();

/// The last signals delivered on one thread.
#[derive(Debug)]
pub struct TraceRing {
    name: String,
    names: TraceNames,
    written: AtomicU64,
    entries: Box<[[AtomicU64; 2]]>,
}

/// How the program names its signals and modules.
#[derive(Clone, Copy, Debug)]
pub struct TraceNames {
    signal: fn(u16) -> Option<&'static str>,
    module: fn(ModuleId) -> Option<&'static str>,
}

impl TraceNames {
    /// The names that `S` declares.
    pub fn of<S: Signal>() -> TraceNames {
        TraceNames { signal: S::name_of_number, module: S::name_of_module }
    }

    fn write_address(&self, address: Address, target: &mut dyn Write) -> std::io::Result<()> {
        match (self.module)(address.module) {
            Some(name) => write!(target, "{}:{name}{}", address.node.0, address.instance),
            None => write!(target, "{address}"),
        }
    }
}

/// A delivered signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Delivery time, rounded down to 16 ns.
    pub time: Time,
    /// The receiver.
    pub to: Address,
    /// The sender.
    pub from: Address,
    /// Number of the signal.
    pub number: u16,
}

/// Writes the trace of one thread.
#[derive(Debug)]
pub struct Tracer {
    ring: Arc<TraceRing>,
    written: u64,
    mask: u64,
}

impl Tracer {
    /// A tracer that keeps `entries` signals, rounded up to a power of two of at least 2. [`dump_all`] prints
    /// them.
    pub fn new(name: &str, entries: u32, names: TraceNames) -> Self {
        let entries = entries.clamp(2, 1 << 24).next_power_of_two();
        let words = (0..entries).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        let written = AtomicU64::new(0);
        let ring = Arc::new(TraceRing { name: name.to_owned(), names, written, entries: words });
        if let Ok(mut rings) = RINGS.lock() {
            rings.retain(|other| other.strong_count() > 0);
            rings.push(Arc::downgrade(&ring));
        }
        Self { ring, written: 0, mask: u64::from(entries) - 1 }
    }

    /// Records a delivered signal.
    #[inline]
    pub fn record(&mut self, now: Time, to: Address, from: Address, number: u16) {
        if let Some([first, second]) = self.ring.entries.get((self.written & self.mask) as usize) {
            first.store(now.0 >> TIME_SHIFT << 16 | u64::from(number), Ordering::Relaxed);
            second.store(u64::from(from.to_bits()) << 32 | u64::from(to.to_bits()), Ordering::Relaxed);
        }
        self.written += 1;
        self.ring.written.store(self.written, Ordering::Relaxed);
    }

    /// Number of signals recorded since the start.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The ring that this tracer writes.
    pub fn ring(&self) -> &Arc<TraceRing> {
        &self.ring
    }
}

impl TraceRing {
    /// The last `count` entries, or fewer, oldest first.
    pub fn last(&self, count: u64) -> Vec<TraceEntry> {
        let written = self.written.load(Ordering::Relaxed);
        let entries = self.entries.len() as u64;
        let first = written.saturating_sub(count.min(entries));
        let entry = |position: u64| {
            let [time, route] = &self.entries[(position & (entries - 1)) as usize];
            let (time, route) = (time.load(Ordering::Relaxed), route.load(Ordering::Relaxed));
            let (from, to) = (Address::from_bits((route >> 32) as u32)?, Address::from_bits(route as u32)?);
            Some(TraceEntry { time: Time(time >> 16 << TIME_SHIFT), to, from, number: time as u16 })
        };
        (first..written).filter_map(entry).collect()
    }

    /// Writes the last entries as text, one per line.
    pub fn dump(&self, target: &mut dyn Write) -> std::io::Result<()> {
        writeln!(target, "last signals of thread {}, oldest first (seconds, from, to, signal):", self.name)?;
        for entry in self.last(DUMP_ENTRIES_MAX) {
            let (seconds, nanos) = (entry.time.0 / 1_000_000_000, entry.time.0 % 1_000_000_000);
            let name = (self.names.signal)(entry.number).unwrap_or("signal");
            write!(target, "  {seconds}.{nanos:09} ")?;
            self.names.write_address(entry.from, target)?;
            write!(target, " -> ")?;
            self.names.write_address(entry.to, target)?;
            writeln!(target, " {name} ({})", entry.number)?;
        }
        Ok(())
    }
}

/// Writes the last entries of every thread of the process. Writes nothing if another thread holds the list of
/// rings: a dying process must not wait.
pub fn dump_all(target: &mut dyn Write) {
    let Ok(rings) = RINGS.try_lock() else { return };
    for ring in rings.iter().filter_map(Weak::upgrade) {
        if ring.dump(target).is_err() {
            return;
        }
    }
}

/// Makes every panic, on any thread, print the traces after its usual message.
pub fn dump_on_panic() {
    HOOK.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            earlier(panic);
            dump_all(&mut std::io::stderr().lock());
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::NodeId;

    const ECHO: ModuleId = ModuleId::new(2);
    const PLAYER: ModuleId = ModuleId::new(3);

    #[test]
    fn a_trace_keeps_the_last_signals_and_prints_their_names() {
        let names = TraceNames {
            signal: |number| (number == 7).then_some("ThrowBall"),
            module: |module| (module == ECHO).then_some("echo"),
        };
        let mut tracer = Tracer::new("echo-0", 4, names);
        let (to, from) = (Address::new(NodeId(1), PLAYER, 3), Address::new(NodeId(1), ECHO, 2));
        for number in 2..8 {
            tracer.record(Time(u64::from(number) * 160), to, from, number);
        }
        let last = tracer.ring().last(100);
        assert_eq!(last.iter().map(|entry| entry.number).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert_eq!(last[3], TraceEntry { time: Time(1_120), to, from, number: 7 });
        let mut text = Vec::new();
        tracer.ring().dump(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.ends_with("  0.000001120 1:echo2 -> 1:3.3 ThrowBall (7)\n"), "{text}");
    }
}
