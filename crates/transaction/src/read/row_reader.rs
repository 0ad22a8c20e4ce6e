//! Hot path: at most 60 instructions per key, not counting its index.
//!
//! Reads the rows of a request, at most [`ROWS_PER_HOLD_MAX`] in each acquisition of the guard (called a
//! hold).

use std::ops::{Bound, ControlFlow};

use junctor_expression::{Expression, Parameters};
use junctor_kernel::{Context, Time};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{CommitNumber, IndexId, RowId};
use junctor_model::limit::{REPLY_BYTES_MAX, ROWS_PER_HOLD_MAX};
use junctor_model::row::RowView;
use junctor_model::row_encoding::RowPlan;
use junctor_model::value::ValueRef;
use junctor_signals::input::{InputReader, KeyRange};
use junctor_signals::key_filter::{KeyFilter, may_have};
use junctor_signals::program::{Access, Output, ReadProgram, RowProtocol};
use junctor_signals::read_rows::{ReadRows, Resume};
use junctor_storage::index::{Direction, RangeBounds};
use junctor_storage::partition_store::{Batch, PartitionStore, Reader, ScanCursor, ScanEnd, ScanRange};

use super::emit::{Emitter, OutputRow, append_image};
use super::kernel::{FilterKernel, Kernel};

/// Maximum number of holds in one step of a request. The step's reply has the position at which the next step
/// resumes.
const HOLDS_PER_STEP_MAX: usize = 64;
/// Number of holds before a step reads the clock, so that short ranges never read it.
const HOLDS_UNTIMED: usize = 2;
/// Maximum duration in nanoseconds of a step after its untimed holds. Every other request of the thread waits
/// for the end of the step.
const STEP_NS_MAX: u64 = 80_000;

/// Number of rows and keys from which on a request counts as long, which takes tens of microseconds.
pub(crate) const LONG_READ_ROWS: u64 = 256;

/// The output for a key without a row, if the program asks for one: an empty packet.
const MISSING: [u8; 4] = [0; 4];

/// The parts of a request that reading needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadView<'a> {
    pub program: &'a ReadProgram,
    /// The filter of the program, folded if the read may visit many rows.
    pub filter: Option<&'a Expression>,
    pub protocol: RowProtocol,
    pub input: &'a [u8],
    pub reader: Reader,
    pub rows_max: u32,
}

/// A read of one index: its request, and the order in which it returns the rows.
#[derive(Clone, Copy)]
struct IndexRead<'a> {
    view: &'a ReadView<'a>,
    index: IndexId,
    direction: Direction,
}

/// The stored images that a batch of keys found. An image is empty if its key has no row.
#[derive(Clone, Copy)]
struct StoredBatch<'a> {
    store: &'a PartitionStore,
    images: &'a [&'a [u8]],
    view: &'a ReadView<'a>,
}

/// Progress of a request.
#[derive(Debug, Default)]
pub(crate) struct ReadPosition {
    /// Byte position of the current item in the input.
    item: usize,
    /// Position within the current range.
    cursor: ScanCursor,
    /// Next row id of a read of all rows.
    row: RowId,
    /// Rows accepted for this reply.
    pub rows: u32,
    /// Rows accepted for earlier replies.
    rows_before: u32,
    /// Whether rows are left.
    has_more: bool,
}

impl ReadPosition {
    /// The start of a request, or the position at which an earlier reply ended.
    #[inline]
    pub fn new(request: &ReadRows) -> ReadPosition {
        match &request.resume {
            None => ReadPosition::at_start(&request.input),
            Some(resume) => ReadPosition::resumed(resume),
        }
    }

    #[inline]
    pub fn at_start(input: &[u8]) -> ReadPosition {
        ReadPosition { item: InputReader::new(input).position(), has_more: true, ..ReadPosition::default() }
    }

    pub fn resumed(resume: &Resume) -> ReadPosition {
        // An index key is never empty, so an empty one means that the range was not begun.
        let is_begun = !resume.key.is_empty();
        let cursor = ScanCursor { key: resume.key.clone(), row: is_begun.then_some(resume.row) };
        let item = resume.item_position as usize;
        ReadPosition { item, cursor, row: resume.row, rows: 0, rows_before: resume.rows, has_more: true }
    }

    /// Whether a reply with these rows and this output has room for more, and there are more.
    pub fn wants_step(&self, request: &ReadRows) -> bool {
        self.has_more && self.rows < request.rows_max && request.output.len() < REPLY_BYTES_MAX
    }

    /// Counts rows of earlier steps for this reply.
    pub fn add_rows_of_reply(&mut self, rows: u32) {
        self.rows += rows;
        self.rows_before = self.rows_before.saturating_sub(rows);
    }

    /// The position to resume at; `None` when nothing is left.
    pub fn resume(self) -> Option<Box<Resume>> {
        let ReadPosition { item, cursor, row, rows, rows_before, has_more } = self;
        let row = cursor.row.unwrap_or(row);
        let rows = rows_before.saturating_add(rows);
        has_more.then(|| Box::new(Resume { item_position: item as u32, key: cursor.key, row, rows }))
    }
}

/// How one acquisition of the guard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardedReadOutcome {
    /// The request is complete, or the reply is full.
    Done,
    /// Rows are left.
    More,
    /// The owner is writing; nothing was read.
    Busy,
}

impl GuardedReadOutcome {
    /// The outcome of an acquisition that read rows. `is_done`: whether the request is complete or the reply
    /// is full.
    #[inline]
    pub fn ended(is_done: bool) -> GuardedReadOutcome {
        if is_done { GuardedReadOutcome::Done } else { GuardedReadOutcome::More }
    }
}

/// Reads rows. Each block has one, for its working memory.
#[derive(Debug)]
pub(crate) struct RowReader {
    pub emitter: Emitter,
    image: Vec<u8>,
    pub counts: ReadCounts,
}

/// Counts since the start, as in `junctor_info.counters`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCounts {
    pub reads: u64,
    pub keys: u64,
    pub ranges: u64,
    pub rows_examined: u64,
    pub rows_returned: u64,
}

impl ReadCounts {
    /// Rows and keys examined.
    #[inline]
    pub fn examined(&self) -> u64 {
        self.keys + self.rows_examined
    }
}

impl RowReader {
    pub fn new() -> RowReader {
        RowReader { emitter: Emitter::new(), image: Vec::new(), counts: ReadCounts::default() }
    }

    /// Runs one step of a request: reads until the request is complete, the reply is full, or the time of the
    /// step is over. Returns false if the guard was busy before anything was read.
    ///
    /// # Errors
    /// As [`RowReader::read_guarded`].
    #[inline(always)]
    pub fn step(
        &mut self,
        request: &mut ReadRows,
        position: &mut ReadPosition,
        context: &mut Context<'_>,
        mut read_guarded: impl FnMut(
            &mut RowReader,
            &ReadView<'_>,
            &mut ReadPosition,
            &mut Vec<u8>,
        ) -> Result<GuardedReadOutcome>,
    ) -> Result<bool> {
        let folded = self.folded_filter(&request.program, &request.input);
        let view = ReadView {
            program: &request.program,
            filter: folded.as_ref().or(request.program.filter.as_ref()),
            protocol: request.protocol,
            input: &request.input,
            reader: Reader {
                snapshot: request.snapshot,
                own: request.transaction.is_some().then_some(request.transaction),
            },
            rows_max: request.rows_max,
        };
        let out = &mut request.output;
        self.emitter.scratch.set_warnings_max(request.warnings_max);
        self.emitter.begin(&view.program.output)?;
        let mut timed_from = Time(0);
        for number in 0..HOLDS_PER_STEP_MAX {
            match read_guarded(self, &view, position, out)? {
                GuardedReadOutcome::Done => break,
                GuardedReadOutcome::Busy if number == 0 => return Ok(false),
                // Reply with the rows read so far; the session will ask for the others.
                GuardedReadOutcome::Busy => break,
                GuardedReadOutcome::More if number + 1 < HOLDS_UNTIMED => {}
                GuardedReadOutcome::More if number + 1 == HOLDS_UNTIMED => timed_from = context.clock_now(),
                GuardedReadOutcome::More if context.clock_now().since(timed_from).0 >= STEP_NS_MAX => break,
                GuardedReadOutcome::More => {}
            }
        }
        if let Some(rows) = self.emitter.end(&view.program.output, out)? {
            position.rows = rows;
        }
        self.counts.reads += 1;
        self.counts.rows_returned += u64::from(position.rows);
        Ok(true)
    }

    /// The filter with its constants folded. `None` for reads of keys, which evaluate it too few times.
    #[inline(always)]
    fn folded_filter(&mut self, program: &ReadProgram, input: &[u8]) -> Option<Expression> {
        match (&program.access, &program.filter) {
            (Access::PrimaryKeys, _) | (_, None) => None,
            (_, Some(filter)) => {
                self.emitter.filter = Kernel::New;
                self.fold(filter, program, input)
            }
        }
    }

    #[inline(never)]
    fn fold(&mut self, filter: &Expression, program: &ReadProgram, input: &[u8]) -> Option<Expression> {
        self.emitter.scratch.set_strict(program.is_strict);
        self.emitter.scratch.set_value_rules(program.rules);
        filter.folded(Parameters::from_bytes(InputReader::new(input).parameters()), &self.emitter.scratch)
    }

    /// Reads as many rows as one acquisition of the guard allows. Returns true if the request is complete or
    /// the reply is full.
    ///
    /// # Errors
    /// 1412 if the plan names an index that no longer exists, or if the snapshot is too old; errors of the
    /// expressions.
    #[inline]
    pub fn read_guarded(
        &mut self,
        store: &PartitionStore,
        view: &ReadView<'_>,
        position: &mut ReadPosition,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if view.reader.snapshot < store.snapshot_floor() {
            return Err(snapshot_too_old());
        }
        if view.program.table.definition.columns.len() != store.layout().definition.columns.len() {
            // A part whose session has ended the read does not keep columns from being added, which can
            // change the numbers of others.
            return Err(Error::table_definition_changed());
        }
        self.emitter.scratch.set_strict(view.program.is_strict);
        self.emitter.scratch.set_value_rules(view.program.rules);
        match view.program.access {
            Access::PrimaryKeys => self.read_keys_guarded(store, view, position, out),
            Access::IndexRanges { index, descending } => self.read_ranges_guarded(
                store,
                IndexRead { view, index, direction: direction_of(descending) },
                position,
                out,
            ),
            Access::AllRows => match view.program.changed_since {
                None => self.read_all_guarded(store, view, position, out),
                Some(since) => self.read_changes_guarded(store, (view, since), position, out),
            },
        }
    }

    fn read_keys_guarded(
        &mut self,
        store: &PartitionStore,
        view: &ReadView<'_>,
        position: &mut ReadPosition,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut input = InputReader::new(view.input);
        let parameters = Parameters::from_bytes(input.parameters());
        input.seek(position.item);
        let Some(first) = input.next_key() else {
            position.has_more = false;
            return Ok(true);
        };
        if input.position() >= view.input.len() {
            // A point read has no second key with which cache misses could overlap.
            position.item = input.position();
            position.has_more = false;
            self.counts.keys += 1;
            let found = store.read_primary(first.key, first.hash, view.reader.snapshot, view.reader.own);
            if let Some((_, version)) = found {
                let row = store.view(&version, &mut self.image);
                if accept(&mut self.emitter, view, row, parameters, out)? {
                    position.rows += 1;
                } else {
                    mark_missing(view, out);
                }
            } else if view.program.marks_missing {
                out.extend_from_slice(&MISSING);
            }
            return Ok(true);
        }
        let mut images = Batch::new();
        let end = fetch(store, view, position.item, &mut images);
        let RowReader { emitter, image, .. } = self;
        let batch = StoredBatch { store, images: &images, view };
        let stopped_at = match plain_rows(view) {
            Some(plan) if view.program.marks_missing => emit_marked(plan, &batch, image, position, out),
            Some(plan) => emit_plain(plan, &batch, image, position, out),
            None if view.program.marks_missing => emit_accepted(&batch, position, out, |stored, out| {
                accept(emitter, view, store.view_stored(stored, image), parameters, out)
            })?,
            None => emit_images(&images, view, position, out, |stored, out| {
                accept(emitter, view, store.view_stored(stored, image), parameters, out)
            })?,
        };
        // Keys after the end of this reply are looked up again by the next one.
        self.counts.keys += stopped_at.map_or(images.len(), |last| last + 1) as u64;
        position.item = match stopped_at {
            Some(last) => {
                input.seek(position.item);
                (0..=last).for_each(|_| _ = input.next_key());
                input.position()
            }
            None => end,
        };
        position.has_more = position.item < view.input.len();
        Ok(stopped_at.is_some() || !position.has_more)
    }

    fn read_ranges_guarded(
        &mut self,
        store: &PartitionStore,
        IndexRead { view, index, direction }: IndexRead<'_>,
        position: &mut ReadPosition,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut input = InputReader::new(view.input);
        let parameters = Parameters::from_bytes(input.parameters());
        let mut budget = ROWS_PER_HOLD_MAX;
        let emitter = &mut self.emitter;
        let first_item = input.position();
        while budget > 0 {
            input.seek(position.item);
            // A row can be in several ranges of a multi-valued index. The first of them returns it.
            let repeats_rows = position.item != first_item && store.is_multi_valued(index);
            let Some(range) = input.next_range() else {
                position.has_more = false;
                return Ok(true);
            };
            self.counts.ranges += u64::from(position.cursor.row.is_none());
            let range = ScanRange { index, bounds: bounds_of(&range), direction, budget_entries: budget };
            let mut failure = None;
            let mut seen = 0;
            let mut cursor = std::mem::take(&mut position.cursor);
            let visit = |_, row: RowView<'_>| {
                seen += 1;
                if repeats_rows && is_in_earlier_range(store, (index, row), view.input, position.item) {
                    return ControlFlow::Continue(());
                }
                let accepted = accept_scanned(emitter, view, row, parameters, out);
                position.rows += u32::from(matches!(accepted, Ok(true)));
                match accepted {
                    Err(error) => failure = Some(error),
                    Ok(_) if is_full(view, position, out) => {}
                    Ok(_) => return ControlFlow::Continue(()),
                }
                ControlFlow::Break(())
            };
            let end = store.scan(range, &mut cursor, view.reader, visit);
            self.counts.rows_examined += seen as u64;
            if let Some(error) = failure {
                return Err(error);
            }
            match end {
                None => return Err(Error::table_definition_changed()),
                Some(ScanEnd::Exhausted) => {
                    position.item = input.position();
                    // Even an empty range costs a descent.
                    budget -= (seen + 1).min(budget);
                }
                Some(ScanEnd::Budget) => {
                    position.cursor = cursor;
                    return Ok(false);
                }
                Some(ScanEnd::Stopped) => {
                    position.cursor = cursor;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads the rows that have changed since an earlier snapshot.
    #[inline(never)]
    fn read_changes_guarded(
        &mut self,
        store: &PartitionStore,
        (view, since): (&ReadView<'_>, CommitNumber),
        position: &mut ReadPosition,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if since < store.snapshot_floor() {
            return Err(snapshot_too_old());
        }
        let mut is_stopped = false;
        let from = position.row;
        let visit = |old: Option<RowView<'_>>, new: Option<RowView<'_>>| {
            for row in [old, new] {
                append_image(row.map_or(&[], |row| row.image()), out);
            }
            position.rows += 1;
            is_stopped = is_full(view, position, out);
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let next = store.scan_changes(from, (since, view.reader.snapshot), ROWS_PER_HOLD_MAX, visit);
        self.counts.rows_examined += ROWS_PER_HOLD_MAX as u64;
        position.has_more = next.is_some();
        position.row = next.unwrap_or_default();
        Ok(is_stopped || next.is_none())
    }

    fn read_all_guarded(
        &mut self,
        store: &PartitionStore,
        view: &ReadView<'_>,
        position: &mut ReadPosition,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let parameters = Parameters::from_bytes(InputReader::new(view.input).parameters());
        let emitter = &mut self.emitter;
        let mut failure = None;
        let mut is_stopped = false;
        let mut seen = 0;
        let from = position.row;
        let visit = |_, row: RowView<'_>| {
            seen += 1;
            let accepted = accept_scanned(emitter, view, row, parameters, out);
            position.rows += u32::from(matches!(accepted, Ok(true)));
            match accepted {
                Err(error) => failure = Some(error),
                Ok(_) if is_full(view, position, out) => is_stopped = true,
                Ok(_) => return ControlFlow::Continue(()),
            }
            ControlFlow::Break(())
        };
        let next = store.scan_rows(from, view.reader, ROWS_PER_HOLD_MAX, visit);
        self.counts.rows_examined += seen;
        if let Some(error) = failure {
            return Err(error);
        }
        position.has_more = next.is_some();
        position.row = next.unwrap_or_default();
        Ok(is_stopped || next.is_none())
    }
}

/// The plan that encodes rows directly from their columns. It is used if the output consists only of columns
/// and no filter applies.
#[inline]
fn plain_rows<'a>(view: &ReadView<'a>) -> Option<&'a RowPlan> {
    match (&view.program.output, view.filter) {
        (Output::Packets(projection), None) if view.protocol != RowProtocol::Values => projection.row_plan.as_ref(),
        _ => None,
    }
}

/// Emits the rows of a batch by such a plan, otherwise like [`emit_images`].
#[inline(never)]
fn emit_plain(
    plan: &RowPlan,
    batch: &StoredBatch<'_>,
    image: &mut Vec<u8>,
    position: &mut ReadPosition,
    out: &mut Vec<u8>,
) -> Option<usize> {
    match batch.view.protocol {
        RowProtocol::Text => emit_each::<false>(batch, image, position, out, |row, out| plan.append_text(row, out)),
        RowProtocol::Binary => emit_each::<false>(batch, image, position, out, |row, out| plan.append_binary(row, out)),
        // This protocol is encoded value by value.
        RowProtocol::Values => None,
    }
}

/// Looks up the keys of one hold from item `from` on. Returns the item at which it stopped. This is a
/// separate function, because the loops would run out of registers among the caller's other branches, which
/// costs 19 instructions a key.
#[inline(never)]
fn fetch<'a>(store: &'a PartitionStore, view: &ReadView<'_>, from: usize, images: &mut Batch<&'a [u8]>) -> usize {
    let mut input = InputReader::new(view.input);
    input.seek(from);
    let keys = std::iter::from_fn(|| input.next_key()).map(|key| (key.key, key.hash));
    store.read_batch(keys, view.reader.snapshot, view.reader.own, images);
    input.position()
}

/// As [`emit_plain`] in binary form, with an empty packet for each key without a row.
#[inline(never)]
fn emit_marked(
    plan: &RowPlan,
    batch: &StoredBatch<'_>,
    image: &mut Vec<u8>,
    position: &mut ReadPosition,
    out: &mut Vec<u8>,
) -> Option<usize> {
    emit_each::<true>(batch, image, position, out, |row, out| plan.append_binary(row, out))
}

#[inline(always)]
fn emit_each<const MARKS_MISSING: bool>(
    batch: &StoredBatch<'_>,
    image: &mut Vec<u8>,
    position: &mut ReadPosition,
    out: &mut Vec<u8>,
    encode: impl Fn(RowView<'_>, &mut Vec<u8>),
) -> Option<usize> {
    let StoredBatch { store, images, view } = *batch;
    // Computed before the loop, whose registers would otherwise hold `position` and `view`. At least one
    // row is emitted, so that a read makes progress.
    let wanted = view.rows_max.saturating_sub(position.rows).max(1);
    let mut left = wanted;
    let mut rest = images.iter();
    let stopped_at = loop {
        let Some(stored) = rest.next() else { break None };
        if stored.is_empty() {
            if MARKS_MISSING {
                out.extend_from_slice(&MISSING);
            }
            continue;
        }
        encode(store.view_stored(stored, image), out);
        left -= 1;
        if left == 0 || out.len() >= REPLY_BYTES_MAX {
            break Some(images.len() - rest.len() - 1);
        }
    };
    position.rows += wanted - left;
    stopped_at
}

/// Emits the rows of a batch until the reply is full. Returns the position of the last row emitted in that
/// case.
#[inline(always)]
fn emit_images(
    images: &[&[u8]],
    view: &ReadView<'_>,
    position: &mut ReadPosition,
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&[u8], &mut Vec<u8>) -> Result<bool>,
) -> Result<Option<usize>> {
    for (read, stored) in images.iter().enumerate() {
        if stored.is_empty() {
            continue;
        }
        position.rows += u32::from(encode(stored, out)?);
        if is_full(view, position, out) {
            return Ok(Some(read));
        }
    }
    Ok(None)
}

/// As [`emit_images`], with an empty packet for each key without an accepted row.
#[inline(never)]
fn emit_accepted(
    batch: &StoredBatch<'_>,
    position: &mut ReadPosition,
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&[u8], &mut Vec<u8>) -> Result<bool>,
) -> Result<Option<usize>> {
    for (read, stored) in batch.images.iter().enumerate() {
        if !stored.is_empty() && encode(stored, out)? {
            position.rows += 1;
        } else {
            mark_missing(batch.view, out);
        }
        if is_full(batch.view, position, out) {
            return Ok(Some(read));
        }
    }
    Ok(None)
}

/// Adds an empty packet, if the answers correspond to the keys.
#[inline]
fn mark_missing(view: &ReadView<'_>, out: &mut Vec<u8>) {
    if view.program.marks_missing {
        out.extend_from_slice(&MISSING);
    }
}

/// Filters one row and emits it. Returns whether it was accepted.
#[inline]
fn accept(
    emitter: &mut Emitter,
    view: &ReadView<'_>,
    row: RowView<'_>,
    parameters: Parameters<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if let Some(plan) = plain_rows(view) {
        emit_row(plan, view.protocol, row, out);
        return Ok(true);
    }
    emitter.scratch.reset();
    if let Some(filter) = view.filter
        && !passes(filter, row, parameters, emitter)?
    {
        return Ok(false);
    }
    emit(emitter, view, row, parameters, out)
}

#[inline(always)]
fn emit(
    emitter: &mut Emitter,
    view: &ReadView<'_>,
    row: RowView<'_>,
    parameters: Parameters<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let row = OutputRow { view: row, parameters, protocol: view.protocol };
    emitter.row(&view.program.output, &row, out)?;
    Ok(true)
}

/// As [`accept`], for a row of a scan, whose filter may have a kernel.
#[inline]
fn accept_scanned(
    emitter: &mut Emitter,
    view: &ReadView<'_>,
    row: RowView<'_>,
    parameters: Parameters<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if view.filter.is_none() && view.program.key_filters.is_empty() {
        return accept(emitter, view, row, parameters, out);
    }
    emitter.scratch.reset();
    if let Some(filter) = view.filter {
        let Emitter { filter: kernel, scratch, .. } = emitter;
        let is_true = match kernel.for_row(|| FilterKernel::new(filter, row.format(), parameters, scratch)) {
            Some(kernel) => kernel.passes(filter, row, parameters, scratch)?,
            None => filter.is_true(Some(row), parameters, scratch)?,
        };
        if !is_true {
            return Ok(false);
        }
    }
    for filter in &view.program.key_filters {
        if !may_join(filter, row, parameters, emitter)? {
            return Ok(false);
        }
    }
    emit(emitter, view, row, parameters, out)
}

/// Whether a row may have a partner in a join.
#[inline]
fn may_join(filter: &KeyFilter, row: RowView<'_>, parameters: Parameters<'_>, emitter: &mut Emitter) -> Result<bool> {
    let ValueRef::Bytes(keys) = parameters.get(filter.parameter) else { return Ok(true) };
    let value = filter.value.evaluate(Some(row), parameters, &emitter.scratch)?;
    Ok(may_have(keys, value, filter.collation, &mut emitter.key))
}

#[inline(never)]
fn emit_row(plan: &RowPlan, protocol: RowProtocol, row: RowView<'_>, out: &mut Vec<u8>) {
    match protocol {
        RowProtocol::Text => plan.append_text(row, out),
        RowProtocol::Binary => plan.append_binary(row, out),
        // This protocol is encoded value by value; `plain_rows` makes no plan for it.
        RowProtocol::Values => {}
    }
}

#[inline]
fn passes(filter: &Expression, row: RowView<'_>, parameters: Parameters<'_>, emitter: &Emitter) -> Result<bool> {
    filter.is_true(Some(row), parameters, &emitter.scratch)
}

/// Whether the reply is full. Aggregates produce one set of states, so the limit on rows does not apply to
/// them.
#[inline]
fn is_full(view: &ReadView<'_>, position: &ReadPosition, out: &[u8]) -> bool {
    (position.rows >= view.rows_max || out.len() >= REPLY_BYTES_MAX)
        && !matches!(view.program.output, Output::Aggregates(_))
}

/// Whether a key of a row lies in a range before the one at `item` of the input.
#[cold]
fn is_in_earlier_range(
    store: &PartitionStore,
    (index, row): (IndexId, RowView<'_>),
    input: &[u8],
    item: usize,
) -> bool {
    let mut keys = Vec::new();
    store.for_each_index_key(index, row, &mut Vec::new(), |key| keys.push(key.to_vec()));
    keys.sort_unstable();
    let mut ranges = InputReader::new(input);
    while ranges.position() < item
        && let Some(range) = ranges.next_range()
    {
        let bounds = bounds_of(&range);
        let is_below = |key: &Vec<u8>| match bounds.lower {
            Bound::Included(lower) => key.as_slice() < lower,
            Bound::Excluded(lower) => key.as_slice() <= lower,
            Bound::Unbounded => false,
        };
        if keys.get(keys.partition_point(is_below)).is_some_and(|key| bounds.contains(key)) {
            return true;
        }
    }
    false
}

/// A range of the input, as the bounds of an index scan.
pub(crate) fn bounds_of<'a>(range: &KeyRange<'a>) -> RangeBounds<'a> {
    let bound = |bound: Option<(&'a [u8], bool)>| match bound {
        None => Bound::Unbounded,
        Some((key, true)) => Bound::Included(key),
        Some((key, false)) => Bound::Excluded(key),
    };
    RangeBounds { lower: bound(range.lower), upper: bound(range.upper) }
}

pub(crate) fn direction_of(descending: bool) -> Direction {
    if descending { Direction::Backward } else { Direction::Forward }
}

#[cold]
fn snapshot_too_old() -> Box<Error> {
    let message =
        "The snapshot of the transaction is too old: what it would read had to be given up, please retry transaction";
    Error::new(ErrorCode::SnapshotTooOld, message)
}
