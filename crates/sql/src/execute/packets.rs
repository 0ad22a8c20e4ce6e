//! Row packets of replies. They are forwarded without decoding; OFFSET and LIMIT select a part of them.

use std::borrow::Cow;

use junctor_expression::parameter::append_value;
use junctor_model::row_encoding::{
    PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX, ResultColumn, append_result_text, begin_binary_row, begin_packet,
    end_packet,
};
use junctor_model::value::ValueRef;
use junctor_signals::program::RowProtocol;

/// The byte offset of row number `rows`, or the length of `packets` if it has fewer rows.
pub(crate) fn row_start(packets: &[u8], rows: u64) -> usize {
    let mut at = 0;
    for _ in 0..rows {
        // A payload of maximum length continues in the next packet.
        loop {
            let Some(header) = packets.get(at..at + PACKET_HEADER_BYTES) else { return packets.len() };
            let payload = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            at = (at + PACKET_HEADER_BYTES + payload).min(packets.len());
            if payload < PACKET_PAYLOAD_MAX {
                break;
            }
        }
    }
    at
}

/// Iterates over the payloads of rows. A row of several packets yields one payload.
#[derive(Clone, Debug)]
pub(crate) struct RowPackets<'p> {
    packets: &'p [u8],
}

impl<'p> RowPackets<'p> {
    /// The rows of `packets`, which must end with a whole packet.
    pub(crate) fn new(packets: &'p [u8]) -> RowPackets<'p> {
        RowPackets { packets }
    }
}

impl<'p> Iterator for RowPackets<'p> {
    type Item = Cow<'p, [u8]>;

    fn next(&mut self) -> Option<Cow<'p, [u8]>> {
        if self.packets.is_empty() {
            return None;
        }
        let (row, rest) = self.packets.split_at(row_start(self.packets, 1));
        self.packets = rest;
        let first_bytes = PACKET_PAYLOAD_MAX + PACKET_HEADER_BYTES;
        if row.len() < first_bytes {
            return row.get(PACKET_HEADER_BYTES..).map(Cow::Borrowed);
        }
        let payloads = row.chunks(first_bytes).flat_map(|packet| packet.get(PACKET_HEADER_BYTES..).unwrap_or_default());
        Some(Cow::Owned(payloads.copied().collect()))
    }
}

/// The remaining OFFSET and LIMIT of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Number of rows still to skip.
    pub offset: u64,
    /// Number of rows still to send; `u64::MAX` for no limit.
    pub remaining: u64,
}

impl Window {
    /// The window that contains every row.
    pub(crate) const ALL: Window = Window { offset: 0, remaining: u64::MAX };

    /// Consumes the next `rows` rows. Returns how many of them to skip and how many to send.
    #[inline]
    pub(crate) fn take(&mut self, rows: u64) -> (u64, u64) {
        let skipped = rows.min(self.offset);
        self.offset -= skipped;
        let taken = (rows - skipped).min(self.remaining);
        if self.remaining != u64::MAX {
            self.remaining -= taken;
        }
        (skipped, taken)
    }

    /// Returns the part of `packets` that lies in the window, and the number of rows in that part. `packets`
    /// contains `rows` rows.
    pub(crate) fn cut<'p>(&mut self, packets: &'p [u8], rows: u64) -> (&'p [u8], u64) {
        let (skipped, taken) = self.take(rows);
        if skipped == 0 && taken == rows {
            return (packets, taken);
        }
        let rest = &packets[row_start(packets, skipped)..];
        (&rest[..row_start(rest, taken)], taken)
    }

    /// Number of rows that are needed to fill the window; `u64::MAX` without a limit.
    pub(crate) fn rows_needed(&self) -> u64 {
        self.offset.saturating_add(self.remaining)
    }
}

/// Appends one row packet. Each value is accompanied by its column.
pub(crate) fn append_row<'v>(
    protocol: RowProtocol,
    values: impl ExactSizeIterator<Item = (ValueRef<'v>, &'v ResultColumn)>,
    out: &mut Vec<u8>,
) {
    match protocol {
        RowProtocol::Text => {
            let start = begin_packet(out);
            for (value, column) in values {
                append_result_text(value, column, out);
            }
            end_packet(out, start);
        }
        RowProtocol::Binary => {
            let row = begin_binary_row(values.len(), out);
            for (ordinal, (value, column)) in values.enumerate() {
                row.append_result(ordinal, value, column, out);
            }
            row.end(out);
        }
        RowProtocol::Values => {
            let start = begin_packet(out);
            for (value, _) in values {
                append_value(value, out);
            }
            end_packet(out, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use junctor_model::collation::CollationId;
    use junctor_model::schema::ColumnDefinition;
    use junctor_model::types::DataType;

    use super::*;

    fn column() -> ResultColumn {
        let text = DataType::varchar(9, CollationId::DEFAULT);
        ResultColumn::of_definition(&ColumnDefinition::new("c", text))
    }

    fn rows(count: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for row in 0..count {
            let value = [b'a' + row as u8];
            append_row(RowProtocol::Text, [(ValueRef::Bytes(&value), &column())].into_iter(), &mut out);
        }
        out
    }

    #[test]
    fn a_window_selects_whole_rows_across_replies() {
        let packets = rows(5);
        let row_bytes = packets.len() / 5;
        let mut window = Window { offset: 7, remaining: 4 };
        assert_eq!(window.cut(&packets, 5), (&[][..], 0));
        assert_eq!(window.cut(&packets, 5), (&packets[2 * row_bytes..], 3));
        assert_eq!(window.cut(&packets, 5), (&packets[..row_bytes], 1));
        assert_eq!(window.cut(&packets, 5), (&[][..], 0));
    }

    #[test]
    fn a_row_of_several_packets_counts_once() {
        let long = vec![b'x'; PACKET_PAYLOAD_MAX + 10];
        let mut packets = Vec::new();
        append_row(RowProtocol::Text, [(ValueRef::Bytes(&long), &column())].into_iter(), &mut packets);
        let first = packets.len();
        packets.extend_from_slice(&rows(1));
        assert_eq!(row_start(&packets, 1), first);
        assert_eq!(row_start(&packets, 2), packets.len());
        assert_eq!(row_start(&packets, 9), packets.len());
        let payloads: Vec<_> = RowPackets::new(&packets).collect();
        assert_eq!(payloads.len(), 2);
        assert_eq!(payloads[0].len(), PACKET_PAYLOAD_MAX + 10 + 9, "with the length before it");
        assert!(payloads[0].ends_with(b"xxx") && payloads[0].iter().skip(9).all(|byte| *byte == b'x'));
        assert_eq!(&payloads[1][..], b"\x01a");
    }
}
