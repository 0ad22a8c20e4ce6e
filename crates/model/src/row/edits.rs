//! Hot path of updates of long rows: about one instruction per 8 bytes of the image.
//!
//! The difference of two images of a row, for log records that have only what an UPDATE has changed.
//!
//! The header, each variable value and the added values are compared separately. So a value that becomes
//! longer does not hide that the others are the same, although it moves them.

use std::ops::Range;

use super::{FLAG_WIDE, RowFormat, prefix_of};
use crate::row_encoding::{append_length, append_length_prefixed};

/// Bytes that are compared at once while they are equal.
const BLOCK_BYTES: usize = 256;
/// Equal bytes that end a run of different ones.
const WORD_BYTES: usize = size_of::<u64>();
/// Maximum number of different bytes after which a value of another length still counts as aligned.
const RUN_BYTES_MAX: usize = 64;
/// Maximum number of runs that are searched from the end of a value.
const RUNS_MAX: usize = 32;

impl RowFormat {
    /// Appends the edits that make `image` of `base`. Both must be valid images of this format. Returns false
    /// if the edits need more than `bytes_max` bytes; `out` then has a part of them.
    pub fn append_edits(&self, base: &[u8], image: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let end_max = out.len() + bytes_max;
        let mut edits = Edits { base, image, written: 0, pending: None, out, end_max };
        let header = |image: &[u8]| self.header_bytes(image[0] & FLAG_WIDE != 0);
        let is_short = edits.compare(0..header(base), 0..header(image))
            && (0..self.var_column_count()).all(|ordinal| {
                // A length of another number of bytes would hide that the values begin alike.
                let (base_length, base_value) = self.length_and_value(base, ordinal);
                let (image_length, image_value) = self.length_and_value(image, ordinal);
                edits.compare(base_length, image_length) && edits.compare(base_value, image_value)
            })
            && edits.compare(self.added_extent(base), self.added_extent(image));
        is_short && edits.write_pending()
    }

    /// The ranges of a variable value's length, or of the mark of NULL, and of its bytes.
    fn length_and_value(&self, image: &[u8], ordinal: usize) -> (Range<usize>, Range<usize>) {
        let extent = self.var_extent(image, ordinal, ordinal);
        let length_bytes = prefix_of(&image[extent.clone()]).map_or(1, |(bytes, _)| bytes);
        let start = extent.start + length_bytes;
        (extent.start..start, start..extent.end)
    }
}

/// Makes an image of `image_bytes` bytes from its base. Returns false if the edits are damaged or belong to
/// another base. The caller limits `image_bytes`, and verifies the image.
pub fn apply_edits(base: &[u8], edits: &[u8], image_bytes: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    let (mut left, mut rest) = (base, edits);
    while !rest.is_empty() {
        let (Some(kept), Some(removed), Some(inserted)) =
            (take_length(&mut rest), take_length(&mut rest), take_length(&mut rest))
        else {
            return false;
        };
        let Some((kept, after)) = left.split_at_checked(kept) else { return false };
        let (Some(after), Some((inserted, next))) = (after.get(removed..), rest.split_at_checked(inserted)) else {
            return false;
        };
        if out.len() + kept.len() + inserted.len() > image_bytes {
            return false;
        }
        out.extend_from_slice(kept);
        out.extend_from_slice(inserted);
        (left, rest) = (after, next);
    }
    if out.len() + left.len() != image_bytes {
        return false;
    }
    out.extend_from_slice(left);
    true
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let (bytes, length) = prefix_of(rest)?;
    *rest = &rest[bytes..];
    Some(length)
}

/// Edits that are being formed, in ascending order.
struct Edits<'a> {
    base: &'a [u8],
    image: &'a [u8],
    /// The end in the base of the last edit in `out`.
    written: usize,
    /// An edit that may grow: a range of the base, and the one of the image that replaces it.
    pending: Option<(Range<usize>, Range<usize>)>,
    out: &'a mut Vec<u8>,
    end_max: usize,
}

impl Edits<'_> {
    /// Adds the edits of a part of the images, which follows the parts before it. False if they are too long.
    fn compare(&mut self, mut base: Range<usize>, mut image: Range<usize>) -> bool {
        self.skip_equal_start(&mut base, &mut image);
        self.skip_equal_end(&mut base, &mut image);
        if base.is_empty() && image.is_empty() {
            return true;
        }
        let is_aligned = base.len() == image.len();
        loop {
            // Runs of different bytes before the first change of the length.
            let bytes = base.len().min(image.len());
            let (old, new) = (&self.base[base.start..][..bytes], &self.image[image.start..][..bytes]);
            let run = match is_aligned {
                true => match run_at_start(old, new, bytes.min(self.bytes_left())) {
                    None => return false,
                    run => run,
                },
                false => run_at_start(old, new, RUN_BYTES_MAX).filter(|run| *run < bytes),
            };
            let Some(run) = run.filter(|run| *run > 0) else { break };
            let (old, new) = (base.start..base.start + run, image.start..image.start + run);
            (base.start, image.start) = (old.end, new.end);
            if !self.replace(old, new) {
                return false;
            }
            self.skip_equal_start(&mut base, &mut image);
        }
        // Those after the last change of the length.
        let mut runs: [(Range<usize>, Range<usize>); RUNS_MAX] = Default::default();
        let mut count = 0;
        while count < RUNS_MAX {
            let bytes = base.len().min(image.len());
            let (old, new) = (&self.base[base.end - bytes..base.end], &self.image[image.end - bytes..image.end]);
            let run = run_at_end(old, new, RUN_BYTES_MAX).filter(|run| *run > 0 && *run < bytes);
            let Some(run) = run else { break };
            runs[count] = (base.end - run..base.end, image.end - run..image.end);
            (base.end, image.end) = (runs[count].0.start, runs[count].1.start);
            count += 1;
            self.skip_equal_end(&mut base, &mut image);
        }
        self.replace(base, image) && runs[..count].iter().rev().all(|(old, new)| self.replace(old.clone(), new.clone()))
    }

    fn skip_equal_start(&self, base: &mut Range<usize>, image: &mut Range<usize>) {
        let equal = equal_at_start(&self.base[base.clone()], &self.image[image.clone()]);
        base.start += equal;
        image.start += equal;
    }

    fn skip_equal_end(&self, base: &mut Range<usize>, image: &mut Range<usize>) {
        let equal = equal_at_end(&self.base[base.clone()], &self.image[image.clone()]);
        base.end -= equal;
        image.end -= equal;
    }

    /// Replaces a range of the base. What lies between it and the range before is equal in both images.
    fn replace(&mut self, base: Range<usize>, image: Range<usize>) -> bool {
        if base.is_empty() && image.is_empty() {
            return true;
        }
        match &mut self.pending {
            Some((old, new)) if base.start - old.end < WORD_BYTES => (old.end, new.end) = (base.end, image.end),
            _ => {
                if !self.write_pending() {
                    return false;
                }
                self.pending = Some((base, image));
            }
        }
        self.pending.as_ref().is_none_or(|(_, new)| new.len() <= self.bytes_left())
    }

    fn bytes_left(&self) -> usize {
        self.end_max.saturating_sub(self.out.len())
    }

    fn write_pending(&mut self) -> bool {
        if let Some((old, new)) = self.pending.take() {
            append_length((old.start - self.written) as u64, self.out);
            append_length(old.len() as u64, self.out);
            append_length_prefixed(&self.image[new], self.out);
            self.written = old.end;
        }
        self.out.len() <= self.end_max
    }
}

/// Number of equal bytes at the start of both.
fn equal_at_start(one: &[u8], other: &[u8]) -> usize {
    let mut equal = 0;
    for step in [BLOCK_BYTES, WORD_BYTES, 1] {
        let chunks = one[equal..].chunks_exact(step).zip(other[equal..].chunks_exact(step));
        equal += step * chunks.take_while(|(one, other)| one == other).count();
    }
    equal
}

/// Number of equal bytes at the end of both.
fn equal_at_end(one: &[u8], other: &[u8]) -> usize {
    let mut equal = 0;
    for step in [BLOCK_BYTES, WORD_BYTES, 1] {
        let (one, other) = (&one[..one.len() - equal], &other[..other.len() - equal]);
        let chunks = one.rchunks_exact(step).zip(other.rchunks_exact(step));
        equal += step * chunks.take_while(|(one, other)| one == other).count();
    }
    equal
}

/// Number of bytes before the next word that is equal in both, or before an equal end. `None` if there are
/// more than `max`. Both have the same length.
fn run_at_start(one: &[u8], other: &[u8], max: usize) -> Option<usize> {
    let mut run = 0;
    while run <= max {
        let (one, other) = (&one[run..], &other[run..]);
        // In most words of a run the last byte differs, too.
        if one.get(WORD_BYTES - 1) != other.get(WORD_BYTES - 1) {
            run += WORD_BYTES;
            continue;
        }
        let last = match (one.first_chunk(), other.first_chunk()) {
            (Some(one), Some(other)) => last_bit(u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other)),
            _ => one.iter().zip(other).rposition(|(one, other)| one != other),
        };
        match last {
            Some(last) => run += last + 1,
            None => return Some(run),
        }
    }
    None
}

/// As [`run_at_start`], from the end.
fn run_at_end(one: &[u8], other: &[u8], max: usize) -> Option<usize> {
    let mut run = 0;
    while run <= max {
        let (one, other) = (&one[..one.len() - run], &other[..other.len() - run]);
        let last = match (one.last_chunk(), other.last_chunk()) {
            (Some(one), Some(other)) => last_bit(u64::from_be_bytes(*one) ^ u64::from_be_bytes(*other)),
            _ => one.iter().zip(other).rev().rposition(|(one, other)| one != other),
        };
        match last {
            Some(last) => run += last + 1,
            None => return Some(run),
        }
    }
    None
}

/// The byte, from the lowest, with the highest bit that is set.
fn last_bit(word: u64) -> Option<usize> {
    Some(word.checked_ilog2()? as usize / 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collation::CollationId;
    use crate::json;
    use crate::row::tests::{column, column_type, value_of};
    use crate::schema::ColumnDefinition;
    use crate::types::DataType;
    use crate::value::{Value, ValueRef};

    fn encoded(format: &RowFormat, values: &[ValueRef<'_>]) -> Vec<u8> {
        let mut image = Vec::new();
        format.encode(values, &mut image).expect("valid values");
        image
    }

    /// The edits, which must give the image again.
    fn edits_of(format: &RowFormat, base: &[u8], image: &[u8]) -> Vec<u8> {
        let mut edits = Vec::new();
        assert!(format.append_edits(base, image, usize::MAX / 2, &mut edits));
        let mut made = b"left over".to_vec();
        assert!(apply_edits(base, &edits, image.len(), &mut made));
        assert_eq!(made, image);
        edits
    }

    /// Bytes without repetitions.
    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut word = seed | 1;
        let mut next = || {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn format_of(types: &[DataType]) -> RowFormat {
        let columns: Vec<ColumnDefinition> = types.iter().map(|of| column(of.clone(), true)).collect();
        RowFormat::new(&columns)
    }

    fn blob() -> DataType {
        DataType::text_or_blob(4, CollationId::BINARY)
    }

    #[test]
    fn a_change_of_a_number_beside_long_values_is_short() {
        let format = format_of(&[DataType::integer(4, false), blob(), DataType::integer(8, false), blob()]);
        let (one, two) = (noise(1, 100_000), noise(2, 70_000));
        let image = |a, b| {
            let (one, two) = (ValueRef::Bytes(&one), ValueRef::Bytes(&two));
            encoded(&format, &[ValueRef::Int(a), one, ValueRef::Int(b), two])
        };
        assert_eq!(edits_of(&format, &image(1, 2), &image(1, 3)).len(), 4);
        assert!(edits_of(&format, &image(1, 2), &image(3, i64::MAX)).len() < 20);
        assert_eq!(edits_of(&format, &image(1, 2), &image(1, 2)), b"");
    }

    #[test]
    fn values_of_other_lengths_leave_the_long_ones_between_them_out() {
        let format = format_of(&[blob(), blob(), blob(), blob()]);
        let (one, two) = (noise(1, 100_000), noise(2, 70_000));
        let image = |a: &[u8], b: &[u8]| encoded(&format, &[a, &one, b, &two].map(ValueRef::Bytes));
        let edits = edits_of(&format, &image(b"short", b"x"), &image(b"not so short", b""));
        assert!(edits.len() < 60, "{} bytes", edits.len());
        // A value is NULL in one of them, and the other way around.
        let without = encoded(&format, &[ValueRef::Bytes(b"a"), ValueRef::Null, ValueRef::Null, ValueRef::Bytes(&two)]);
        assert!(edits_of(&format, &image(b"a", b"b"), &without).len() < 60);
        let edits = edits_of(&format, &without, &image(b"a", b"b"));
        assert!((100_000..100_060).contains(&edits.len()), "{} bytes", edits.len());
        // The wide form of the ends moves everything.
        let narrow = encoded(&format, &[&b"a"[..], &two[..60_000], b"", b""].map(ValueRef::Bytes));
        let wide = encoded(&format, &[&b"a"[..], &two[..60_000], &one[..9_000], b""].map(ValueRef::Bytes));
        assert!((9_000..9_060).contains(&edits_of(&format, &narrow, &wide).len()));
        assert!(edits_of(&format, &wide, &narrow).len() < 60);
    }

    #[test]
    fn changes_within_a_long_value_are_short() {
        let format = format_of(&[blob()]);
        let base = noise(3, 200_000);
        let edits = |image: &[u8]| {
            let image = encoded(&format, &[ValueRef::Bytes(image)]);
            edits_of(&format, &encoded(&format, &[ValueRef::Bytes(&base)]), &image).len()
        };
        let splice = |value: &mut Vec<u8>, at: usize, removed: usize, inserted: &[u8]| {
            value.splice(at..at + removed, inserted.iter().copied());
        };
        // Bytes of the same length at several places, then a change of the length, then others again.
        let mut image = base.clone();
        for at in [10, 5_000, 90_000, 150_000, 190_000] {
            splice(&mut image, at, 4, b"0123");
        }
        assert!(edits(&image) < 70);
        splice(&mut image, 100_000, 5, b"longer than before");
        assert!(edits(&image) < 110);
        splice(&mut image, 100_400, 0, b"near");
        assert!(edits(&image) < 600);
        // Behind its end, and nothing of it at all.
        assert!(edits(&[&base[..], b"appended"].concat()) < 60);
        assert!(edits(&base[..1_000]) < 40);
        assert!(edits(&noise(99, 200_000)) > 190_000);
        // A length of one byte more or less.
        let short = encoded(&format, &[ValueRef::Bytes(&base[..65_530])]);
        let mut longer = base[..65_530].to_vec();
        splice(&mut longer, 60_000, 3, b"another text");
        let longer = encoded(&format, &[ValueRef::Bytes(&longer)]);
        assert!(edits_of(&format, &short, &longer).len() < 60);
        assert!(edits_of(&format, &longer, &short).len() < 60);
    }

    #[test]
    fn a_change_of_a_member_of_a_json_document_is_short() {
        let format = format_of(&[DataType::integer(4, false), DataType::json()]);
        let image = |n: &str, name: &str| {
            let list: Vec<String> =
                (0..3_000).map(|at| format!("{{\"id\": {at}, \"text\": \"element {}\"}}", at * 7)).collect();
            let text = format!(
                r#"{{"n": {n}, "name": "{name}", "before": [{}], "after it": [{}], "version": {n}}}"#,
                list[..1_500].join(","),
                list[1_500..].join(",")
            );
            let mut document = Vec::new();
            json::parse(text.as_bytes(), &mut document).expect("a document");
            encoded(&format, &[ValueRef::Int(1), ValueRef::Json(&document)])
        };
        let base = image("1", "short");
        assert!(base.len() > 100_000);
        assert!(edits_of(&format, &base, &image("2", "short")).len() < 30);
        // Lengths of the value and the object, the name, and the number behind all elements.
        assert!(edits_of(&format, &base, &image("2", "a longer name")).len() < 80);
        assert!(edits_of(&format, &image("2", "a longer name"), &base).len() < 80);
    }

    #[test]
    fn edits_that_become_too_long_are_given_up() {
        let format = format_of(&[blob()]);
        let image = |value: &[u8]| encoded(&format, &[ValueRef::Bytes(value)]);
        let (base, other) = (image(&noise(1, 50_000)), image(&noise(2, 50_000)));
        let mut out = b"before".to_vec();
        assert!(!format.append_edits(&base, &other, 25_000, &mut out));
        assert!(out.len() <= 6 + 25_000 + 20 && out.starts_with(b"before"));
        let needed = edits_of(&format, &base, &other).len();
        assert!(format.append_edits(&base, &other, needed, &mut Vec::new()));
        assert!(!format.append_edits(&base, &other, needed - 1, &mut Vec::new()));
    }

    /// Two rows of some columns. The second has some values of the first one, changed in places.
    fn two_rows() -> impl Strategy<Value = (Vec<ColumnDefinition>, Vec<Value>, Vec<Value>)> {
        let columns = prop::collection::vec((column_type(), any::<bool>()), 1..8);
        columns.prop_flat_map(|columns| {
            let of =
                |(of, nullable): &(DataType, bool)| (value_of(of, *nullable), value_of(of, *nullable), any::<bool>());
            let values: Vec<_> = columns.iter().map(of).collect();
            let columns: Vec<ColumnDefinition> =
                columns.into_iter().map(|(of, nullable)| column(of, nullable)).collect();
            (Just(columns), values).prop_map(|(columns, values)| {
                let one = values.iter().map(|(one, ..)| one.clone()).collect();
                let two = values.into_iter().map(|(one, two, is_same)| if is_same { one } else { two }).collect();
                (columns, one, two)
            })
        })
    }

    proptest! {
        #[test]
        fn the_edits_of_any_two_rows_give_the_second_one((columns, one, two) in two_rows()) {
            let format = RowFormat::new(&columns);
            let image = |values: &[Value]| {
                let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                encoded(&format, &values)
            };
            let (one, two) = (image(&one), image(&two));
            let edits = edits_of(&format, &one, &two);
            prop_assert!(one != two || edits.is_empty());
            edits_of(&format, &two, &one);
        }

        /// Splices of a long value, which repeats short sequences, so that equal bytes lie at wrong places.
        #[test]
        fn the_edits_of_random_splices_give_the_image(
            seed in any::<u64>(),
            unit in 1usize..40,
            count in 0usize..400,
            splices in prop::collection::vec((any::<prop::sample::Index>(), 0usize..80, prop::collection::vec(0u8..4, 0..80)), 0..12),
        ) {
            let format = format_of(&[blob(), blob()]);
            let base: Vec<u8> = noise(seed, unit).iter().map(|byte| byte % 4).cycle().take(unit * count).collect();
            let mut image = base.clone();
            let mut changed = 0;
            for (at, removed, inserted) in splices {
                let at = at.index(image.len() + 1);
                let end = (at + removed).min(image.len());
                changed += end - at + inserted.len();
                image.splice(at..end, inserted);
            }
            let of = |value: &[u8]| encoded(&format, &[ValueRef::Bytes(value), ValueRef::Bytes(b"last")]);
            let edits = edits_of(&format, &of(&base), &of(&image));
            prop_assert!(edits.len() <= of(&image).len() + 40, "{} bytes for {changed}", edits.len());
        }

        #[test]
        fn damaged_edits_are_refused_or_give_an_image_of_the_right_length(
            base in prop::collection::vec(any::<u8>(), 0..200),
            edits in prop::collection::vec(prop_oneof![0u8..20, any::<u8>()], 0..40),
            image_bytes in 0usize..300,
        ) {
            let mut out = Vec::new();
            let is_made = apply_edits(&base, &edits, image_bytes, &mut out);
            let is_right = if is_made { out.len() == image_bytes } else { out.len() <= image_bytes };
            prop_assert!(is_right);
        }

        #[test]
        fn truncated_edits_never_give_the_image(at in any::<prop::sample::Index>(), seed in any::<u64>()) {
            let format = format_of(&[blob(), blob()]);
            let (one, two) = (noise(seed, 3_000), noise(seed ^ 77, 40));
            let base = encoded(&format, &[ValueRef::Bytes(&one), ValueRef::Bytes(b"a")]);
            let image = encoded(&format, &[ValueRef::Bytes(&one), ValueRef::Bytes(&two)]);
            let edits = edits_of(&format, &base, &image);
            let mut out = Vec::new();
            let is_made = apply_edits(&base, &edits[..at.index(edits.len())], image.len(), &mut out);
            prop_assert!(!is_made || out != image);
        }
    }
}
