//! Hot path, budget 20 instructions a column besides its encoding. What leaves the partition for one accepted row.

use junctor_expression::{Accumulator, AggregateKind, Parameters, ResultType, Scratch};
use junctor_model::error::{Error, Result};
use junctor_model::row::RowView;
use junctor_model::row_encoding::{append_text_value, begin_binary_row, begin_packet, end_packet};
use junctor_model::value::ValueRef;
use junctor_signals::program::{Aggregate, Output, Projection, RowProtocol, SortKey};

use super::sort_key::{append_key, append_sort_key, key_length};

/// Working memory of one block for filters and outputs.
#[derive(Debug)]
pub(crate) struct Emitter {
    pub scratch: Scratch,
    sort_key: Vec<u8>,
    distinct_key: Vec<u8>,
    accumulators: Vec<Accumulator>,
}

impl Emitter {
    pub fn new() -> Emitter {
        Emitter { scratch: Scratch::new(), sort_key: Vec::new(), distinct_key: Vec::new(), accumulators: Vec::new() }
    }

    /// Before the first row of a request. Error: 1235 for an aggregate that cannot be computed in parts.
    #[inline]
    pub fn begin(&mut self, output: &Output) -> Result<()> {
        match output {
            Output::Aggregates(aggregates) => self.begin_aggregates(aggregates),
            Output::Packets(_) | Output::Entries { .. } | Output::Images => Ok(()),
        }
    }

    /// Exchanges the states of the aggregates with those of a request that goes on in another turn.
    pub fn exchange(&mut self, accumulators: &mut Vec<Accumulator>) {
        std::mem::swap(&mut self.accumulators, accumulators);
    }

    fn begin_aggregates(&mut self, aggregates: &[Aggregate]) -> Result<()> {
        self.accumulators.clear();
        for aggregate in aggregates {
            let kind = match (aggregate.kind, aggregate.distinct) {
                (AggregateKind::Count, true) => AggregateKind::CountDistinct,
                (AggregateKind::Sum | AggregateKind::Average, true) => {
                    return Err(Error::not_supported("SUM(DISTINCT) and AVG(DISTINCT)"));
                }
                (kind, _) => kind,
            };
            let operand = aggregate.argument.as_ref().map_or_else(ResultType::null, |argument| argument.result);
            self.accumulators.push(Accumulator::new(kind, operand));
        }
        Ok(())
    }

    /// Appends what the program says of one row. After an error `out` may end with part of a row.
    #[inline]
    pub fn row(
        &mut self,
        output: &Output,
        protocol: RowProtocol,
        view: RowView<'_>,
        parameters: Parameters<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match output {
            Output::Packets(projection) => append_packet(projection, protocol, view, parameters, &self.scratch, out),
            Output::Images => {
                out.extend_from_slice(&(view.image().len() as u32).to_le_bytes());
                out.extend_from_slice(view.image());
                Ok(())
            }
            Output::Aggregates(aggregates) => {
                for (aggregate, accumulator) in aggregates.iter().zip(&mut self.accumulators) {
                    let value = match &aggregate.argument {
                        Some(argument) => argument.evaluate(Some(view), parameters, &self.scratch)?,
                        None => ValueRef::Null,
                    };
                    accumulator.add(value, &self.scratch)?;
                }
                Ok(())
            }
            Output::Entries { projection, sort, distinct } => {
                self.entry(projection, sort, *distinct, protocol, view, parameters, out)
            }
        }
    }

    /// After the last row of a reply: partial states are said once. True when something was appended.
    #[inline]
    pub fn end(&mut self, output: &Output, out: &mut Vec<u8>) -> bool {
        if !matches!(output, Output::Aggregates(_)) {
            return false;
        }
        for accumulator in &self.accumulators {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            accumulator.append_partial(out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        true
    }

    fn entry(
        &mut self,
        projection: &Projection,
        sort: &[SortKey],
        distinct: bool,
        protocol: RowProtocol,
        view: RowView<'_>,
        parameters: Parameters<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.sort_key.clear();
        self.distinct_key.clear();
        for key in sort {
            let value = key.value.evaluate(Some(view), parameters, &self.scratch)?;
            append_sort_key(&key.value.result, value, key.descending, &mut self.sort_key);
        }
        if distinct {
            for value in &projection.values {
                let key = value.evaluate(Some(view), parameters, &self.scratch)?;
                append_key(&value.result, key, &mut self.distinct_key);
            }
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&key_length(&self.sort_key)?);
        out.extend_from_slice(&key_length(&self.distinct_key)?);
        out.extend_from_slice(&self.sort_key);
        out.extend_from_slice(&self.distinct_key);
        let packet = out.len();
        append_packet(projection, protocol, view, parameters, &self.scratch, out)?;
        let length = (out.len() - packet) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

#[inline]
fn append_packet(
    projection: &Projection,
    protocol: RowProtocol,
    view: RowView<'_>,
    parameters: Parameters<'_>,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    match protocol {
        RowProtocol::Text => {
            let packet = begin_packet(out);
            for value in &projection.values {
                append_text_value(value.evaluate(Some(view), parameters, scratch)?, out);
            }
            end_packet(out, packet);
        }
        RowProtocol::Binary => {
            let packet = begin_binary_row(projection.values.len(), out);
            for (ordinal, (value, column)) in projection.values.iter().zip(&projection.columns).enumerate() {
                packet.append(ordinal, value.evaluate(Some(view), parameters, scratch)?, column.wire_type, out);
            }
            packet.end(out);
        }
    }
    Ok(())
}
