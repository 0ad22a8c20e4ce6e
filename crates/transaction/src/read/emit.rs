//! Hot path: at most 20 instructions per column, not counting its encoding.
//!
//! Emits the output of one accepted row.

use junctor_expression::parameter::append_value;
use junctor_expression::{Accumulator, AggregateKind, Expression, Parameters, ResultType, Scratch};
use junctor_model::error::{Error, Result};
use junctor_model::row::RowView;
use junctor_model::row_encoding::{append_result_text, begin_binary_row, begin_packet, end_packet};
use junctor_model::value::ValueRef;
use junctor_signals::program::{Aggregate, ENTRY_HEADER_BYTES, Output, Projection, RowProtocol, SortKey};

use super::group_table::GroupTable;
use super::kernel::{FilterKernel, Kernel, NumberKernel};
use super::sort_key::{append_key, append_sort_key, key_length};

/// Reused memory of one block for evaluating filters and outputs.
#[derive(Debug)]
pub(crate) struct Emitter {
    pub scratch: Scratch,
    /// The kernel of the filter of a scan.
    pub(super) filter: Kernel<FilterKernel>,
    accumulators: Vec<Accumulator>,
    groups: GroupTable,
    /// For each aggregate, the kernel of its operand if it has one.
    operands: Kernel<Vec<Option<NumberKernel>>>,
    /// Working memory for keys of joins.
    pub key: Vec<u8>,
}

/// A row to emit, with everything else on which its output depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputRow<'a> {
    pub view: RowView<'a>,
    /// The parameters of the program's expressions.
    pub parameters: Parameters<'a>,
    /// The encoding of the row's packet.
    pub protocol: RowProtocol,
}

/// The keys of an output entry, which precede its packet.
#[derive(Clone, Copy)]
struct EntryKeys<'a> {
    sort: &'a [SortKey],
    /// The positions in the projection of the values that make a row distinct.
    distinct: Option<&'a [u16]>,
}

/// First byte of the distinct key of a row whose sort key was truncated. No other key begins with this byte.
const CUT_MARK: u8 = 2;

impl Emitter {
    pub fn new() -> Emitter {
        Emitter {
            scratch: Scratch::new(),
            filter: Kernel::Off,
            accumulators: Vec::new(),
            groups: GroupTable::default(),
            operands: Kernel::Off,
            key: Vec::new(),
        }
    }

    /// Prepares for the first row of a request.
    ///
    /// # Errors
    /// 1235 if an aggregate cannot be computed in parts.
    #[inline]
    pub fn begin(&mut self, output: &Output) -> Result<()> {
        match output {
            Output::Aggregates(aggregates) => self.begin_aggregates(aggregates),
            Output::Groups { .. } => {
                self.operands = Kernel::New;
                self.groups.begin();
                Ok(())
            }
            Output::Packets(_) | Output::Entries { .. } | Output::Images => Ok(()),
        }
    }

    /// Swaps the aggregate states with those of a request that continues in another turn.
    pub fn exchange(&mut self, accumulators: &mut Vec<Accumulator>) {
        // Its turns alternate with other requests, whose kernels are not its own.
        if !accumulators.is_empty() {
            self.operands = Kernel::Off;
        }
        std::mem::swap(&mut self.accumulators, accumulators);
    }

    fn begin_aggregates(&mut self, aggregates: &[Aggregate]) -> Result<()> {
        self.operands = Kernel::New;
        self.accumulators.clear();
        for aggregate in aggregates {
            let kind = match (aggregate.kind, aggregate.distinct) {
                (AggregateKind::Count, true) => AggregateKind::CountDistinct,
                (AggregateKind::Sum | AggregateKind::Average(_), true) => {
                    return Err(Error::not_supported("SUM(DISTINCT) and AVG(DISTINCT)"));
                }
                (kind, _) => kind,
            };
            let operand = aggregate.argument.as_ref().map_or_else(ResultType::null, |argument| argument.result);
            self.accumulators.push(Accumulator::new(kind, operand));
        }
        Ok(())
    }

    /// Appends the program's output for one row. After an error, `out` may end with part of a row.
    #[inline]
    pub fn row(&mut self, output: &Output, row: &OutputRow<'_>, out: &mut Vec<u8>) -> Result<()> {
        match output {
            Output::Packets(projection) => append_packet(projection, row, &self.scratch, out),
            Output::Images => {
                append_image(row.view.image(), out);
                Ok(())
            }
            Output::Aggregates(aggregates) => {
                let scratch = &self.scratch;
                let kernels = self.operands.for_row(|| compiled(aggregates, row, scratch));
                for (place, (aggregate, accumulator)) in aggregates.iter().zip(&mut self.accumulators).enumerate() {
                    let value = match (&aggregate.argument, computed(kernels, place, row)) {
                        (_, Some(value)) => value,
                        (Some(argument), None) => operand_of(argument, aggregate.distinct, row, scratch)?,
                        (None, None) => ValueRef::Null,
                    };
                    accumulator.add(value, scratch)?;
                }
                Ok(())
            }
            Output::Entries { projection, sort, distinct } => {
                self.entry(projection, EntryKeys { sort, distinct: distinct.as_deref() }, row, out)
            }
            Output::Groups { projection, keys, aggregates } => {
                let scratch = &self.scratch;
                let kernels = self.operands.for_row(|| compiled(aggregates, row, scratch));
                self.groups.add((projection, keys, aggregates), (row, kernels), scratch, out)
            }
        }
    }

    /// Ends a reply by appending partial aggregate states or groups. Returns how many of these the reply has;
    /// `None` if it has rows.
    ///
    /// # Errors
    /// 1690 if a sum has more digits than a decimal.
    #[inline]
    pub fn end(&mut self, output: &Output, out: &mut Vec<u8>) -> Result<Option<u32>> {
        if matches!(output, Output::Groups { .. }) {
            return self.groups.end(out).map(Some);
        }
        if !matches!(output, Output::Aggregates(_)) {
            return Ok(None);
        }
        for accumulator in &self.accumulators {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            accumulator.append_partial(out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        Ok(Some(1))
    }

    fn entry(
        &mut self,
        projection: &Projection,
        keys: EntryKeys<'_>,
        row: &OutputRow<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&[0; ENTRY_HEADER_BYTES]);
        let mut is_cut = false;
        for key in keys.sort {
            let mark = key.is_in_result.then(|| self.scratch.warning_mark());
            let value = value_of(&key.value, row, &self.scratch)?;
            if let Some(mark) = mark {
                self.scratch.forget_warnings_after(mark);
            }
            is_cut |= append_sort_key(&key.value.result, value, key.descending, out);
        }
        let distinct_start = out.len();
        if let Some(positions) = keys.distinct {
            let mark = self.scratch.warning_mark();
            let others = positions.iter().map(|position| &projection.values[usize::from(*position)]);
            match is_cut {
                false => self.append_keys(others, row, out)?,
                true => {
                    out.push(CUT_MARK);
                    self.append_keys(projection.values.iter(), row, out)?;
                }
            }
            // The packet evaluates the same values again, and would repeat their warnings.
            self.scratch.forget_warnings_after(mark);
        }
        let packet = out.len();
        append_packet(projection, row, &self.scratch, out)?;
        let packet_bytes = (out.len() - packet) as u32;
        let [sort_bytes, distinct_bytes] =
            [key_length(distinct_start - start - ENTRY_HEADER_BYTES)?, key_length(packet - distinct_start)?];
        let header = &mut out[start..start + ENTRY_HEADER_BYTES];
        header[..4].copy_from_slice(&packet_bytes.to_le_bytes());
        header[4..6].copy_from_slice(&sort_bytes);
        header[6..].copy_from_slice(&distinct_bytes);
        Ok(())
    }

    fn append_keys<'v>(
        &self,
        values: impl Iterator<Item = &'v Expression>,
        row: &OutputRow<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for value in values {
            let key = value.evaluate(Some(row.view), row.parameters, &self.scratch)?;
            append_key(&value.result, key, out);
        }
        Ok(())
    }
}

/// The kernels of the operands of aggregates; `None` if none has one.
#[inline(never)]
fn compiled(aggregates: &[Aggregate], row: &OutputRow<'_>, scratch: &Scratch) -> Option<Vec<Option<NumberKernel>>> {
    let kernel = |aggregate: &Aggregate| {
        // Distinct values are rounded, and extremes keep the form of their type.
        let is_sum = matches!(aggregate.kind, AggregateKind::Sum | AggregateKind::Average(_));
        let argument = aggregate.argument.as_ref().filter(|_| is_sum && !aggregate.distinct)?;
        NumberKernel::new(argument, row.view.format(), row.parameters, scratch)
    };
    let kernels: Vec<Option<NumberKernel>> = aggregates.iter().map(kernel).collect();
    kernels.iter().any(Option::is_some).then_some(kernels)
}

/// The operand of the aggregate at a place, if its kernel computes it.
#[inline(always)]
fn computed(
    kernels: Option<&Vec<Option<NumberKernel>>>,
    place: usize,
    row: &OutputRow<'_>,
) -> Option<ValueRef<'static>> {
    kernels?.get(place)?.as_ref()?.value(row.view)
}

/// The value of an expression. Most expressions are columns.
#[inline(always)]
fn value_of<'r>(expression: &'r Expression, row: &OutputRow<'r>, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
    match expression.as_column() {
        Some(column) => Ok(scratch.in_session_zone(row.view.column(column))),
        None => expression.evaluate(Some(row.view), row.parameters, scratch),
    }
}

/// The operand of an aggregate. A sum keeps the guard digits of its operands; distinct values are rounded.
#[inline(always)]
fn operand_of<'r>(
    expression: &'r Expression,
    is_distinct: bool,
    row: &OutputRow<'r>,
    scratch: &'r Scratch,
) -> Result<ValueRef<'r>> {
    match expression.as_column() {
        None if !is_distinct => expression.evaluate_unrounded(Some(row.view), row.parameters, scratch),
        _ => value_of(expression, row, scratch),
    }
}

#[inline]
fn append_packet(projection: &Projection, row: &OutputRow<'_>, scratch: &Scratch, out: &mut Vec<u8>) -> Result<()> {
    match (&projection.row_plan, row.protocol) {
        (Some(plan), RowProtocol::Text) => plan.append_text(row.view, out),
        (Some(plan), RowProtocol::Binary) => plan.append_binary(row.view, out),
        (None, _) | (_, RowProtocol::Values) => {
            return append_computed_packet(projection, row, scratch, out);
        }
    }
    Ok(())
}

/// As `append_packet`, for a projection in which some value is not a column.
#[inline(never)]
fn append_computed_packet(
    projection: &Projection,
    row: &OutputRow<'_>,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    match row.protocol {
        RowProtocol::Text => {
            let packet = begin_packet(out);
            for (value, column) in projection.values.iter().zip(&projection.columns) {
                append_result_text(value_of(value, row, scratch)?, column, out);
            }
            end_packet(out, packet);
        }
        RowProtocol::Binary => {
            let packet = begin_binary_row(projection.values.len(), out);
            for (ordinal, (value, column)) in projection.values.iter().zip(&projection.columns).enumerate() {
                packet.append_result(ordinal, value_of(value, row, scratch)?, column, out);
            }
            packet.end(out);
        }
        RowProtocol::Values => {
            let packet = begin_packet(out);
            for value in &projection.values {
                append_value(value_of(value, row, scratch)?, out);
            }
            end_packet(out, packet);
        }
    }
    Ok(())
}

/// Appends an image with its length.
pub(super) fn append_image(image: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(image.len() as u32).to_le_bytes());
    out.extend_from_slice(image);
}
