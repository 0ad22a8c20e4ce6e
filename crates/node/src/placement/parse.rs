//! Reads a `ThreadConfig` text.
//!
//! ```text
//! ThreadConfig := entry ["," entry]...
//! entry        := kind | kind "={" parameter ["," parameter]... "}"
//! parameter    := "count=" number | "cpubind=" list | "cpuset=" list | "spintime=" number
//!               | "realtime=" flag | "nosend=" flag | "thread_prio=" number
//! list         := number | number "-" number | list "," list
//! ```
//! White space between tokens is allowed, and names are not case-sensitive. After a list, a comma followed by
//! a digit continues the list. Unlike in RonDB, the number of query threads need not be a multiple of the
//! number of ldm threads: a query thread reads any partition of its read group.

use super::cpu_list::{CPU_NUMBER_MAX, CpuList};
use super::error::PlacementError;
use super::thread_config::{EntryBinding, ThreadEntry, ThreadKind};
use junctor_signals::Module;

/// Maximum length of a text, in bytes. Bounds the work and memory of a parse.
const TEXT_BYTES_MAX: usize = 65_536;

/// Maximum of `spintime`, in microseconds.
const SPIN_US_MAX: u32 = 9_000;

/// Maximum of `thread_prio`.
const THREAD_PRIORITY_MAX: u32 = 10;

/// Parses all entries and checks the number of threads of each kind over all of them.
pub(super) fn parse_entries(text: &str) -> Result<Vec<ThreadEntry>, PlacementError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(PlacementError::new(TEXT_BYTES_MAX, format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let mut parser = Parser { text, position: 0 };
    let mut entries = Vec::new();
    let mut totals = [0_u32; ThreadKind::ALL.len()];
    let mut offsets = [None; ThreadKind::ALL.len()];
    loop {
        parser.skip_space();
        let entry_offset = parser.position;
        let parsed = parser.entry()?;
        let slot = slot_of(parsed.entry.kind);
        let count_offset = parsed.count_offset.unwrap_or(entry_offset);
        totals[slot] = totals[slot].saturating_add(parsed.entry.thread_count());
        offsets[slot] = Some(count_offset);
        check_total(parsed.entry.kind, totals[slot], count_offset)?;
        entries.push(parsed.entry);
        parser.skip_space();
        let comma = parser.position;
        if parser.at_end() {
            break;
        }
        if !parser.take(b',') {
            return Err(parser.error_here("expected ',' before the next entry, or the end"));
        }
        parser.skip_space();
        if parser.at_end() {
            return Err(PlacementError::new(comma, "trailing comma: nothing follows it"));
        }
    }
    let recv = ThreadKind::Module(Module::Recv);
    match offsets[slot_of(recv)] {
        Some(offset) if totals[slot_of(recv)] == 0 => {
            Err(PlacementError::new(offset, "recv needs at least one thread: nothing else reads the sockets"))
        }
        _ => Ok(entries),
    }
}

fn slot_of(kind: ThreadKind) -> usize {
    ThreadKind::ALL.iter().position(|&other| other == kind).unwrap_or_default()
}

fn check_total(kind: ThreadKind, total: u32, offset: usize) -> Result<(), PlacementError> {
    let (name, most) = (kind.name(), kind.count_max());
    if total <= most {
        return Ok(());
    }
    Err(PlacementError::new(offset, format!("{name}: {total} threads in all, but at most {most} are allowed")))
}

struct ParsedEntry {
    entry: ThreadEntry,
    count_offset: Option<usize>,
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl Parser<'_> {
    fn entry(&mut self) -> Result<ParsedEntry, PlacementError> {
        let offset = self.position;
        let kind = self.kind()?;
        let mut parsed = ParsedEntry { entry: ThreadEntry::bare(kind), count_offset: None };
        self.skip_space();
        if !self.take(b'=') {
            return Ok(parsed);
        }
        self.skip_space();
        if !self.take(b'{') {
            return Err(self.error_here("expected '{' after '='"));
        }
        let mut bind_offset = offset;
        loop {
            self.skip_space();
            self.parameter(&mut parsed, &mut bind_offset)?;
            self.skip_space();
            let comma = self.position;
            if self.take(b'}') {
                break;
            }
            if !self.take(b',') {
                return Err(self.error_here("expected ',' or '}'"));
            }
            self.skip_space();
            if matches!(self.peek(), None | Some(b'}')) {
                return Err(PlacementError::new(comma, "trailing comma: expected another parameter after it"));
            }
        }
        check_binding(&parsed.entry, bind_offset)?;
        Ok(parsed)
    }

    fn kind(&mut self) -> Result<ThreadKind, PlacementError> {
        let (offset, word) = self.word();
        let found = ThreadKind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(word));
        found.ok_or_else(|| {
            let names = ThreadKind::ALL.map(ThreadKind::name).join(", ");
            PlacementError::new(offset, format!("expected a thread type, one of {names}"))
        })
    }

    fn parameter(&mut self, parsed: &mut ParsedEntry, bind_offset: &mut usize) -> Result<(), PlacementError> {
        let (offset, word) = self.word();
        let name = word.to_ascii_lowercase();
        check_allowed(&name, &parsed.entry, offset)?;
        self.skip_space();
        if !self.take(b'=') {
            return Err(self.error_here(format!("expected '=' after {name}")));
        }
        self.skip_space();
        let entry = &mut parsed.entry;
        match name.as_str() {
            "count" => {
                parsed.count_offset = Some(self.position);
                entry.count = Some(self.number(0, entry.kind.count_max())?);
            }
            "cpubind" => {
                *bind_offset = self.position;
                entry.binding = Some(EntryBinding::Bind(self.list()?));
            }
            "cpuset" => entry.binding = Some(EntryBinding::Set(self.list()?)),
            "spintime" => entry.spin_us = Some(self.number(0, SPIN_US_MAX)?),
            "realtime" => entry.realtime = Some(self.number(0, 1)? == 1),
            "nosend" => entry.nosend = Some(self.number(0, 1)? == 1),
            // `check_allowed` refused every other name.
            _ => entry.thread_priority = Some(self.number(0, THREAD_PRIORITY_MAX)? as u8),
        }
        Ok(())
    }

    fn list(&mut self) -> Result<CpuList, PlacementError> {
        let mut numbers = Vec::new();
        let mut named = vec![false; CPU_NUMBER_MAX as usize + 1];
        loop {
            let offset = self.position;
            let first = self.number(0, CPU_NUMBER_MAX)?;
            let mut last = first;
            self.skip_space();
            if self.take(b'-') {
                self.skip_space();
                let last_offset = self.position;
                last = self.number(0, CPU_NUMBER_MAX)?;
                if last < first {
                    return Err(PlacementError::new(last_offset, format!("the range {first}-{last} runs backwards")));
                }
            }
            for number in first..=last {
                if std::mem::replace(&mut named[number as usize], true) {
                    return Err(PlacementError::new(offset, format!("CPU {number} is named twice in one list")));
                }
                numbers.push(number);
            }
            self.skip_space();
            if !self.comma_before_digit() {
                return Ok(CpuList::new(numbers));
            }
        }
    }

    /// Consumes a comma and the white space after it if a digit follows. Otherwise the comma ends the list
    /// and stays.
    fn comma_before_digit(&mut self) -> bool {
        let start = self.position;
        if self.take(b',') {
            self.skip_space();
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return true;
            }
        }
        self.position = start;
        false
    }

    fn number(&mut self, least: u32, most: u32) -> Result<u32, PlacementError> {
        let offset = self.position;
        let mut value = 0_u32;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            self.position += 1;
        }
        if self.position == offset {
            return Err(self.error_here("expected a number"));
        }
        if value < least || value > most {
            return Err(PlacementError::new(offset, format!("expected a number from {least} to {most}")));
        }
        Ok(value)
    }

    fn word(&mut self) -> (usize, &str) {
        let offset = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.position += 1;
        }
        (offset, &self.text[offset..self.position])
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.position += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.position += usize::from(taken);
        taken
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn at_end(&self) -> bool {
        self.position == self.text.len()
    }

    fn error_here(&self, message: impl Into<String>) -> PlacementError {
        PlacementError::new(self.position, message)
    }
}

/// Refuses a parameter that does not exist, is given twice, or does not go with the kind or with another
/// parameter.
fn check_allowed(name: &str, entry: &ThreadEntry, offset: usize) -> Result<(), PlacementError> {
    let kind = entry.kind.name();
    let refuse = |message: String| Err(PlacementError::new(offset, message));
    let given = match name {
        "count" => entry.count.is_some(),
        "cpubind" => matches!(entry.binding, Some(EntryBinding::Bind(_))),
        "cpuset" => matches!(entry.binding, Some(EntryBinding::Set(_))),
        "cpubind_exclusive" | "cpuset_exclusive" => {
            return refuse(format!("{name} exists only on Solaris; use {}", name.trim_end_matches("_exclusive")));
        }
        "spintime" => entry.spin_us.is_some(),
        "realtime" => entry.realtime.is_some(),
        "nosend" => entry.nosend.is_some(),
        "thread_prio" => entry.thread_priority.is_some(),
        _ => {
            let names = "count, cpubind, cpuset, spintime, realtime, nosend, thread_prio";
            return refuse(format!("expected a parameter, one of {names}"));
        }
    };
    if given {
        return refuse(format!("{name} is given twice"));
    }
    match name {
        "cpubind" | "cpuset" if entry.binding.is_some() => {
            refuse("cpubind and cpuset exclude each other in one entry".to_owned())
        }
        "spintime" if !may_spin(entry.kind) => refuse(format!("{kind} threads do not spin: spintime is not allowed")),
        "nosend" if !may_refuse_sending(entry.kind) => refuse(format!("nosend is not allowed for {kind}")),
        "realtime" | "thread_prio" if entry.kind == ThreadKind::IndexBuild => {
            refuse(format!("{name} is not allowed for {kind}"))
        }
        "realtime" if entry.thread_priority.is_some() => refuse(priorities_exclude()),
        "thread_prio" if entry.realtime.is_some() => refuse(priorities_exclude()),
        _ => Ok(()),
    }
}

fn priorities_exclude() -> String {
    "realtime and thread_prio exclude each other".to_owned()
}

fn may_spin(kind: ThreadKind) -> bool {
    !matches!(kind, ThreadKind::Module(Module::Io) | ThreadKind::Watchdog | ThreadKind::IndexBuild)
}

fn may_refuse_sending(kind: ThreadKind) -> bool {
    use Module::{Ldm, Main, Rep, Sql, Tc};
    matches!(kind, ThreadKind::Module(Main | Ldm | Rep | Tc | Sql))
}

fn check_binding(entry: &ThreadEntry, bind_offset: usize) -> Result<(), PlacementError> {
    match &entry.binding {
        Some(EntryBinding::Bind(cpus)) if cpus.len() < entry.thread_count() as usize => {
            let (count, cpus) = (entry.thread_count(), cpus.len());
            let message = format!("cpubind needs a CPU for each of the {count} threads, but names {cpus}");
            Err(PlacementError::new(bind_offset, message))
        }
        _ => Ok(()),
    }
}
