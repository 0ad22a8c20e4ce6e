//! Histograms: the values of a column in order, in buckets. If there are few values, each has a bucket of its
//! own. Otherwise buckets have about as many rows as each other, and frequent values have buckets of their
//! own.

use junctor_model::collation::CollationId;
use junctor_model::value::{Value, ValueRef};

/// Characters of a text that its position has, and bytes of their weights.
const TEXT_MAX: usize = 48;

/// The place of a value in the order of a column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Position {
    /// A number, or a day or time as one.
    Number(f64),
    /// The beginning of the weights of a text.
    Text(Box<[u8]>),
}

/// The place of a value; `None` for NULL and values without an order.
pub fn position_of(value: ValueRef<'_>, collation: CollationId) -> Option<Position> {
    Some(match value {
        ValueRef::Null | ValueRef::Json(_) => return None,
        ValueRef::Int(number) => Position::Number(number as f64),
        ValueRef::UInt(number) => Position::Number(number as f64),
        ValueRef::Double(number) => Position::Number(number),
        ValueRef::Float(number) => Position::Number(f64::from(number)),
        ValueRef::Decimal(number) => Position::Number(number.to_double()),
        ValueRef::Temporal(moment) => Position::Number(moment.packed as f64),
        ValueRef::Bit(bits) => Position::Number(bits.number as f64),
        ValueRef::Choice(choice) => Position::Number(choice.number as f64),
        ValueRef::Bytes(text) => {
            let mut weights = Vec::new();
            let beginning = collation.character_set().prefix(text, TEXT_MAX);
            collation.append_weight_key(beginning, &mut weights);
            weights.truncate(TEXT_MAX);
            Position::Text(weights.into())
        }
    })
}

/// Values that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The least value.
    pub lower: (Position, Value),
    /// The greatest value.
    pub upper: (Position, Value),
    /// The share of all rows whose value is in this bucket or in one before it.
    pub cumulative: f64,
    /// The number of different values.
    pub distinct: f64,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The buckets in the order of their values.
    pub buckets: Vec<Bucket>,
    /// Whether each bucket has one value.
    pub is_singleton: bool,
}

/// A value of the sample, with the number of rows that have it.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub position: Position,
    pub value: Value,
    pub rows: usize,
}

impl Histogram {
    /// The histogram of values in order, with at most so many buckets. `rows` is the number of sampled rows,
    /// those with NULL too. `growth` is the estimated number of values for each value of the sample.
    pub(super) fn of_values(values: &[Counted], rows: usize, buckets_max: usize, growth: f64) -> Histogram {
        let is_singleton = values.len() <= buckets_max;
        let total: usize = values.iter().map(|value| value.rows).sum();
        let mut rows_of_bucket = if is_singleton { 1 } else { total.div_ceil(buckets_max.max(1)) };
        loop {
            let buckets = buckets_of(values, rows, (rows_of_bucket, is_singleton), growth);
            if buckets.len() <= buckets_max.max(1) || is_singleton {
                return Histogram { buckets, is_singleton };
            }
            // Frequent values with buckets of their own leave gaps, so larger buckets are needed.
            rows_of_bucket += rows_of_bucket / 8 + 1;
        }
    }

    /// Whether the values have places of this form. Values of ENUM and SET, which have the places of their
    /// numbers, are compared with texts.
    pub fn has_place(&self, position: &Position) -> bool {
        let same = |bucket: &Bucket| std::mem::discriminant(&bucket.upper.0) == std::mem::discriminant(position);
        self.buckets.first().is_none_or(same)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_end = |(position, value): &(Position, Value)| {
            let of_position = if let Position::Text(weights) = position { weights.len() } else { 0 };
            of_position + if let Value::Bytes(text) = value { text.len() } else { 0 }
        };
        let of_ends: usize = self.buckets.iter().map(|bucket| of_end(&bucket.lower) + of_end(&bucket.upper)).sum();
        self.buckets.len() * size_of::<Bucket>() + of_ends
    }

    /// The share of rows with this value.
    pub fn equal(&self, position: &Position) -> f64 {
        let place = self.buckets.partition_point(|bucket| bucket.upper.0 < *position);
        let Some(bucket) = self.buckets.get(place).filter(|bucket| bucket.lower.0 <= *position) else { return 0.0 };
        self.share(place) / bucket.distinct.max(1.0)
    }

    /// The share of rows with a lower value.
    pub fn below(&self, position: &Position) -> f64 {
        let place = self.buckets.partition_point(|bucket| bucket.upper.0 < *position);
        let before = self.before(place);
        let Some(bucket) = self.buckets.get(place).filter(|bucket| bucket.lower.0 < *position) else { return before };
        before + self.share(place) * inside(bucket, position)
    }

    fn before(&self, place: usize) -> f64 {
        place.checked_sub(1).map_or(0.0, |last| self.buckets[last].cumulative)
    }

    fn share(&self, place: usize) -> f64 {
        self.buckets[place].cumulative - self.before(place)
    }
}

/// The share of a bucket that is below a position within it.
fn inside(bucket: &Bucket, position: &Position) -> f64 {
    let of = |position: &Position| match position {
        Position::Number(number) => *number,
        Position::Text(weights) => text_number(weights, &bucket.lower.0),
    };
    let (lower, upper, at) = (of(&bucket.lower.0), of(&bucket.upper.0), of(position));
    if upper > lower { ((at - lower) / (upper - lower)).clamp(0.0, 1.0) } else { 0.5 }
}

/// The first bytes of a text after those that the bucket's values may have in common, as a number.
fn text_number(weights: &[u8], lower: &Position) -> f64 {
    let Position::Text(lower) = lower else { return 0.0 };
    let common = weights.iter().zip(lower.iter()).take_while(|(left, right)| left == right).count().min(4);
    let skipped = if common >= 4 { 4 } else { 0 };
    let mut word = [0; 8];
    for (place, byte) in word.iter_mut().zip(weights.iter().skip(skipped)) {
        *place = *byte;
    }
    u64::from_be_bytes(word) as f64
}

fn buckets_of(values: &[Counted], rows: usize, (least, is_singleton): (usize, bool), growth: f64) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut first = 0;
    let (mut in_bucket, mut before) = (0, 0);
    let mut close = |from: usize, to: usize, in_bucket: usize, before: &mut usize| {
        let (Some(lower), Some(upper)) = (values.get(from), values.get(to)) else { return };
        *before += in_bucket;
        let count = (to - from + 1) as f64;
        let distinct = if to == from { 1.0 } else { (count * growth).max(count) };
        buckets.push(Bucket {
            lower: (lower.position.clone(), lower.value.clone()),
            upper: (upper.position.clone(), upper.value.clone()),
            cumulative: *before as f64 / rows.max(1) as f64,
            distinct,
        });
    };
    for (place, value) in values.iter().enumerate() {
        let is_frequent = value.rows >= least;
        if is_frequent && place > first {
            close(first, place - 1, in_bucket, &mut before);
            (first, in_bucket) = (place, 0);
        }
        in_bucket += value.rows;
        if is_singleton || in_bucket >= least {
            close(first, place, in_bucket, &mut before);
            (first, in_bucket) = (place + 1, 0);
        }
    }
    if first < values.len() {
        close(first, values.len() - 1, in_bucket, &mut before);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(values: &[(i64, usize)]) -> Vec<Counted> {
        let one = |(number, rows): &(i64, usize)| Counted {
            position: Position::Number(*number as f64),
            value: Value::Int(*number),
            rows: *rows,
        };
        values.iter().map(one).collect()
    }

    fn at(number: f64) -> Position {
        Position::Number(number)
    }

    #[test]
    fn few_values_have_a_bucket_each() {
        let histogram = Histogram::of_values(&counted(&[(1, 50), (2, 30), (9, 10)]), 100, 4, 1.0);
        assert!(histogram.is_singleton && histogram.buckets.len() == 3);
        assert!((histogram.equal(&at(2.0)) - 0.3).abs() < 1e-9);
        assert_eq!(histogram.equal(&at(3.0)), 0.0);
        assert_eq!([1.0, 2.0, 5.0, 10.0].map(|number| histogram.below(&at(number))), [0.0, 0.5, 0.8, 0.9]);
    }

    #[test]
    fn a_frequent_value_has_a_bucket_of_its_own() {
        let mut values: Vec<(i64, usize)> = (0..100).map(|number| (number, 1)).collect();
        values[40].1 = 100;
        let histogram = Histogram::of_values(&counted(&values), 199, 8, 1.0);
        assert!(!histogram.is_singleton && histogram.buckets.len() <= 8, "{histogram:?}");
        assert!((histogram.equal(&at(40.0)) - 100.0 / 199.0).abs() < 0.01, "{histogram:?}");
        assert!(histogram.equal(&at(41.0)) < 0.02);
    }

    #[test]
    fn equal_values_are_one_bucket() {
        for buckets in [1, 64] {
            let histogram = Histogram::of_values(&counted(&[(7, 100)]), 100, buckets, 1.0);
            assert_eq!([6.0, 7.0, 8.0].map(|number| histogram.equal(&at(number))), [0.0, 1.0, 0.0]);
            assert_eq!([6.0, 7.0, 8.0].map(|number| histogram.below(&at(number))), [0.0, 0.0, 1.0]);
        }
        let nothing = Histogram::of_values(&[], 100, 8, 1.0);
        assert_eq!((nothing.equal(&at(1.0)), nothing.below(&at(1.0))), (0.0, 0.0));
    }

    #[test]
    fn buckets_are_bounded_and_ordered_whatever_the_values() {
        let shapes: [&dyn Fn(i64) -> usize; 4] =
            [&|_| 1, &|number| 1 + usize::from(number % 7 == 0) * 50, &|number| number as usize * 3 + 1, &|number| {
                10_000 / (number as usize + 1) + 1
            }];
        for (shape, rows_of) in shapes.iter().enumerate() {
            for values in [1, 2, 63, 64, 65, 700] {
                let values: Vec<(i64, usize)> = (0..values).map(|number| (number, rows_of(number))).collect();
                let total: usize = values.iter().map(|(_, rows)| rows).sum();
                for buckets in [1, 2, 64, 1024] {
                    // As many rows again have NULL.
                    let histogram = Histogram::of_values(&counted(&values), 2 * total, buckets, 1.0);
                    let about = (shape, values.len(), buckets);
                    assert!(histogram.buckets.len() <= buckets, "{about:?}");
                    let ends = histogram.buckets.iter().flat_map(|bucket| [&bucket.lower.0, &bucket.upper.0]);
                    assert!(ends.collect::<Vec<_>>().is_sorted(), "{about:?}");
                    assert!(histogram.buckets.is_sorted_by_key(|bucket| bucket.cumulative), "{about:?}");
                    let last = histogram.buckets.last().expect("a bucket").cumulative;
                    assert!((last - 0.5).abs() < 1e-9, "{about:?}");
                    let distinct: f64 = histogram.buckets.iter().map(|bucket| bucket.distinct).sum();
                    assert_eq!(distinct, values.len() as f64, "{about:?}");
                }
            }
        }
    }

    #[test]
    fn ranges_are_interpolated() {
        let values: Vec<(i64, usize)> = (0..1000).map(|number| (number, 3)).collect();
        let histogram = Histogram::of_values(&counted(&values), 3000, 16, 1.0);
        for number in [0.0, 1.0, 250.0, 333.0, 999.0] {
            let share = histogram.below(&at(number));
            assert!((share - number / 1000.0).abs() < 0.01, "{number}: {share}");
        }
        assert_eq!((histogram.below(&at(-5.0)), histogram.below(&at(5000.0))), (0.0, 1.0));
    }

    #[test]
    fn texts_have_the_order_of_their_collation() {
        let place = |text: &str| {
            position_of(ValueRef::Bytes(text.as_bytes()), CollationId::DEFAULT).expect("texts have an order")
        };
        assert!(place("a") < place("B") && place("B") < place("c"));
        assert_eq!(place("abc"), place("ABC"));
        assert_eq!(position_of(ValueRef::Null, CollationId::DEFAULT), None);
    }
}
