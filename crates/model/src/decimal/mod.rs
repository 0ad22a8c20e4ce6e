//! Exact arithmetic on decimals. Numbers of up to 38 digits are computed as an `i128`, which is the hot path.
//! More digits take the wide form. Functions return `None` on overflow: as in MySQL, beyond nine groups of
//! nine digits.

mod magnitude;
#[cfg(test)]
mod tests;
mod wide;

use std::cmp::Ordering;

pub use wide::{WIDE_BYTES, Wide};
pub(crate) use wide::{compare as compare_wide, of_digits, read_biased as read_wide};

use crate::value::Decimal;
use wide::Dropped;

/// Maximum number of digits after the decimal point of a DECIMAL.
pub const DECIMAL_SCALE_MAX: u8 = 30;

/// Maximum number of digits of a DECIMAL: those before and after the point together.
pub const DECIMAL_PRECISION_MAX: u8 = 65;

/// Mantissas of the narrow form are less than this in magnitude: 10^38.
pub const MANTISSA_LIMIT: u128 = 100_000_000_000_000_000_000_000_000_000_000_000_000;

/// Maximum number of digits of the narrow form.
pub const NARROW_DIGITS_MAX: u8 = 38;

/// Doubles from here on have more digits than a decimal.
pub const DOUBLES_END: f64 = 1e81;

/// An integer as a decimal.
#[inline]
pub fn from_integer(value: i128) -> Decimal {
    new(value, 0)
}

/// `mantissa / 10^scale`.
#[inline]
pub fn new(mantissa: i128, scale: u8) -> Decimal {
    match mantissa.unsigned_abs() < MANTISSA_LIMIT {
        true => Decimal::Narrow { mantissa, scale },
        false => wide::of_mantissa(mantissa, scale),
    }
}

/// The narrow form of a mantissa, if it has at most 38 digits.
#[inline]
fn narrow(mantissa: i128, scale: u8) -> Option<Decimal> {
    (mantissa.unsigned_abs() < MANTISSA_LIMIT).then_some(Decimal::Narrow { mantissa, scale })
}

/// The largest number of this many digits, or its negation.
pub fn largest(precision: u8, scale: u8, negative: bool) -> Decimal {
    if precision <= NARROW_DIGITS_MAX {
        let mantissa = 10i128.pow(precision.into()) - 1;
        return Decimal::Narrow { mantissa: if negative { -mantissa } else { mantissa }, scale };
    }
    wide::largest(precision.min(DECIMAL_PRECISION_MAX), scale, negative).unwrap_or_default()
}

/// Whether the value has at most `precision` digits at its scale.
#[inline]
pub fn fits_digits(value: Decimal, precision: u8) -> bool {
    match value {
        Decimal::Narrow { mantissa, .. } => {
            10u128.checked_pow(precision.into()).is_none_or(|limit| mantissa.unsigned_abs() < limit)
        }
        Decimal::Wide(wide) => wide::fits_digits(wide, precision),
    }
}

/// Number of digits of the mantissa; 1 for 0.
pub fn digits(value: Decimal) -> u32 {
    match value {
        Decimal::Narrow { mantissa, .. } => mantissa.unsigned_abs().checked_ilog10().unwrap_or(0) + 1,
        Decimal::Wide(wide) => wide::digits(wide),
    }
}

/// The value with `scale` digits after the point, rounded half away from zero.
pub fn with_scale(value: Decimal, scale: u8) -> Option<Decimal> {
    let Decimal::Narrow { mantissa, scale: own } = value else { return wide::with_scale(value, scale) };
    if own == scale {
        return Some(value);
    }
    // Dropping more than 38 digits leaves 0.
    if own.saturating_sub(scale) > 38 {
        return Some(Decimal::Narrow { mantissa: 0, scale });
    }
    match rescaled(mantissa, own, scale).and_then(|mantissa| narrow(mantissa, scale)) {
        None => wide::with_scale(value, scale),
        rescaled => rescaled,
    }
}

/// The value with `scale` digits after the point; with fewer if there is no room for so many. As in MySQL,
/// there is room for whole groups of nine digits.
pub fn with_scale_at_most(value: Decimal, scale: u8) -> Decimal {
    with_scale(value, scale).unwrap_or_else(|| wide::padded(value, scale))
}

/// The mantissa of the same number with `scale` digits after the point, rounded half away from zero.
#[inline]
fn rescaled(mantissa: i128, own: u8, scale: u8) -> Option<i128> {
    if scale == own {
        return Some(mantissa);
    }
    if scale >= own {
        return mantissa.checked_mul(10i128.checked_pow(u32::from(scale - own))?);
    }
    let factor = 10i128.checked_pow(u32::from(own - scale))?;
    let quotient = mantissa / factor;
    let rest = mantissa % factor;
    let round = if rest.unsigned_abs() * 2 >= factor.unsigned_abs() { mantissa.signum() } else { 0 };
    Some(quotient + round)
}

/// The order of two numbers.
pub(crate) fn compare(left: Decimal, right: Decimal) -> Ordering {
    if let (Decimal::Narrow { mantissa: one, scale: own }, Decimal::Narrow { mantissa: other, scale }) = (left, right) {
        let most = own.max(scale);
        if let (Some(one), Some(other)) = (rescaled(one, own, most), rescaled(other, scale, most)) {
            return one.cmp(&other);
        }
    }
    compare_wide(left, right)
}

/// The sum, with the larger of the two scales.
#[inline]
pub fn add(left: Decimal, right: Decimal) -> Option<Decimal> {
    match narrow_sum(left, right) {
        None => wide::add(left, right),
        sum => sum,
    }
}

#[inline]
fn narrow_sum(left: Decimal, right: Decimal) -> Option<Decimal> {
    let (Decimal::Narrow { mantissa: one, scale: own }, Decimal::Narrow { mantissa: other, scale }) = (left, right)
    else {
        return None;
    };
    let most = own.max(scale);
    narrow(rescaled(one, own, most)?.checked_add(rescaled(other, scale, most)?)?, most)
}

/// The difference, with the larger of the two scales.
pub fn subtract(left: Decimal, right: Decimal) -> Option<Decimal> {
    add(left, negate(right))
}

/// The number with the opposite sign.
pub fn negate(value: Decimal) -> Decimal {
    match value {
        Decimal::Narrow { mantissa, scale } => Decimal::Narrow { mantissa: -mantissa, scale },
        Decimal::Wide(wide) => Decimal::Wide(wide.negated()),
    }
}

/// The product, rounded to `scale` digits after the point.
pub fn multiply(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    match narrow_product(left, right, scale) {
        None => wide::multiply(left, right, scale),
        product => product,
    }
}

fn narrow_product(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    if let (Decimal::Narrow { mantissa: one, scale: own }, Decimal::Narrow { mantissa: other, scale: others }) =
        (left, right)
        && own + others == scale
        && let Some(product) = one.checked_mul(other).and_then(|product| narrow(product, scale))
    {
        return Some(product);
    }
    // Trailing zeros could make the product overflow an i128 although it fits after rounding.
    let (left, right) = (without_trailing_zeros(left), without_trailing_zeros(right));
    let (Decimal::Narrow { mantissa: one, scale: own }, Decimal::Narrow { mantissa: other, scale: others }) =
        (left, right)
    else {
        return None;
    };
    let (product, places) = (one.checked_mul(other)?, own + others);
    if places > DECIMAL_SCALE_MAX && places - scale.min(places) > 38 {
        return Some(Decimal::Narrow { mantissa: 0, scale });
    }
    narrow(rescaled(product, places, scale)?, scale)
}

/// The truncated quotient with guard digits: more digits than the type of the result has, so that `1 / 3 * 3`
/// is 1 after rounding to that type. As in MySQL, digits are counted in groups of nine. After the point, the
/// quotient has as many groups as the two operands together, plus those for `increment` more digits. If these
/// are more digits than a decimal has, the others are cut off; they round the last one if the type of the
/// result has it. The divisor must not be 0.
pub fn divide_with_guard_digits(left: Decimal, right: Decimal, increment: u8) -> Option<Decimal> {
    let grouped = |scale: u8| scale.next_multiple_of(9);
    let (own, other) = (left.scale(), right.scale());
    let padding_digits = grouped(own) - own + grouped(other) - other;
    let digits = grouped(grouped(own) + grouped(other) + increment.saturating_sub(padding_digits));
    // A digit that is rounded here would be rounded twice where the result has fewer digits.
    let (scale, rounds) =
        (digits.min(DECIMAL_SCALE_MAX), digits > DECIMAL_SCALE_MAX && own + increment >= DECIMAL_SCALE_MAX);
    match narrow_quotient(left, right, scale, rounds) {
        None => match wide::divide(left, right, scale, rounds) {
            // Without room for so many digits, the quotient is cut where its groups end.
            Some(quotient) if quotient.scale() < scale => wide::divide(left, right, scale, false),
            quotient => quotient,
        },
        quotient => quotient,
    }
}

/// The quotient rounded to `scale` digits after the point. The divisor must not be 0.
pub fn divide(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    match narrow_quotient(left, right, scale, true) {
        None => wide::divide(left, right, scale, true),
        quotient => quotient,
    }
}

fn narrow_quotient(left: Decimal, right: Decimal, scale: u8, rounds: bool) -> Option<Decimal> {
    let (Decimal::Narrow { mantissa: dividend, scale: own }, Decimal::Narrow { mantissa: divisor, scale: others }) =
        (left, without_trailing_zeros(right))
    else {
        return None;
    };
    let negative = (dividend < 0) != (divisor < 0);
    let (dividend, divisor) = (dividend.unsigned_abs(), divisor.unsigned_abs());
    let mut quotient = dividend / divisor;
    let mut rest = dividend % divisor;
    // The integer quotient has own - others digits after the point.
    let mut digits = i32::from(own) - i32::from(others);
    let digits_wanted = i32::from(scale);
    while digits < digits_wanted {
        let (digit, after) = next_digit(rest, divisor);
        quotient = quotient.checked_mul(10)?.checked_add(digit)?;
        rest = after;
        digits += 1;
    }
    let rounds_up = if digits > digits_wanted {
        let factor = 10u128.checked_pow((digits - digits_wanted) as u32)?;
        let cut = quotient % factor;
        quotient /= factor;
        cut >= factor - cut
    } else {
        rest >= divisor - rest
    };
    quotient = quotient.checked_add(u128::from(rounds && rounds_up))?;
    let mantissa = i128::try_from(quotient).ok()?;
    narrow(if negative { -mantissa } else { mantissa }, scale)
}

/// The quotient truncated to an integer; `None` for one that an `i128` does not hold. The divisor must not
/// be 0.
pub fn divide_integer(left: Decimal, right: Decimal) -> Option<i128> {
    match divided(left, right) {
        Some((quotient, _)) => {
            let quotient = i128::try_from(quotient).ok()?;
            Some(if left.is_negative() != right.is_negative() { -quotient } else { quotient })
        }
        None => wide::divide(left, right, 0, false)?.narrow_mantissa(),
    }
}

/// The remainder, with the sign of `left`. The divisor must not be 0.
pub fn remainder(left: Decimal, right: Decimal) -> Option<Decimal> {
    let rest = divided(left, right).and_then(|(_, rest)| i128::try_from(rest).ok());
    let rest =
        rest.and_then(|rest| narrow(if left.is_negative() { -rest } else { rest }, left.scale().max(right.scale())));
    match rest {
        None => wide::remainder(left, right),
        rest => rest,
    }
}

/// The magnitudes of the integer quotient and of the remainder at the larger scale. `None` for a quotient
/// beyond 128 bits, and for wide numbers.
fn divided(left: Decimal, right: Decimal) -> Option<(u128, u128)> {
    let (Decimal::Narrow { mantissa: dividend, scale: own }, Decimal::Narrow { mantissa: divisor, scale: others }) =
        (left, right)
    else {
        return None;
    };
    let (dividend, divisor) = (dividend.unsigned_abs(), divisor.unsigned_abs());
    if own >= others {
        // A divisor beyond 128 bits is greater than the dividend.
        let divisor = 10u128.checked_pow((own - others).into()).and_then(|unit| divisor.checked_mul(unit));
        return Some(divisor.map_or((0, dividend), |divisor| (dividend / divisor, dividend % divisor)));
    }
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    for _ in own..others {
        let (digit, after) = next_digit(rest, divisor);
        quotient = quotient.checked_mul(10)?.checked_add(digit)?;
        rest = after;
    }
    Some((quotient, rest))
}

/// The quotient of ten times a rest, and the next rest. Both numbers are less than 10^38, so that no sum
/// overflows.
fn next_digit(rest: u128, divisor: u128) -> (u128, u128) {
    if let Some(tenfold) = rest.checked_mul(10) {
        return (tenfold / divisor, tenfold % divisor);
    }
    let (mut digit, mut sum) = (0, 0);
    for _ in 0..10 {
        sum += rest;
        if sum >= divisor {
            sum -= divisor;
            digit += 1;
        }
    }
    (digit, sum)
}

/// Truncates to `places` digits after the point. Negative `places` zero digits before the point; the scale of
/// the result is then 0.
pub fn truncate(value: Decimal, places: i32) -> Decimal {
    match value {
        Decimal::Narrow { mantissa, scale } => narrow_places(mantissa, scale, places, |_, _| 0),
        // Fewer digits than those of the number fit.
        value => wide::drop_places(value, places, Dropped::Cut).unwrap_or(value),
    }
}

/// Rounds half away from zero to `places` digits after the point. Negative `places` round digits before the
/// point.
pub fn round(value: Decimal, places: i32) -> Option<Decimal> {
    let Decimal::Narrow { mantissa, scale } = value else {
        return wide::drop_places(value, places, Dropped::Rounded);
    };
    let rounded = narrow_places(mantissa, scale, places, |rest, factor| {
        let magnitude = rest.unsigned_abs();
        if magnitude >= factor.unsigned_abs() - magnitude { rest.signum() } else { 0 }
    });
    match rounded {
        Decimal::Narrow { mantissa, scale } => Some(new(mantissa, scale)),
        wide => Some(wide),
    }
}

/// The largest number with `scale` digits after the point that is not above the value.
pub fn floor_to(value: Decimal, scale: u8) -> Option<Decimal> {
    if scale >= value.scale() {
        return with_scale(value, scale);
    }
    match value {
        Decimal::Narrow { mantissa, scale: own } => {
            let factor = 10i128.checked_pow(u32::from(own - scale))?;
            Some(Decimal::Narrow { mantissa: mantissa.div_euclid(factor), scale })
        }
        value => wide::drop_places(value, scale.into(), Dropped::Floored),
    }
}

/// The largest integer not above the value.
pub fn floor(value: Decimal) -> Decimal {
    // Digits after the point are dropped, so that the result fits.
    floor_to(value, 0).unwrap_or(value)
}

/// The smallest integer not below the value.
pub fn ceiling(value: Decimal) -> Decimal {
    negate(floor(negate(value)))
}

/// The nearest integer, or the nearest limit of `i128`; halves round away from zero.
pub fn to_integer(value: Decimal) -> i128 {
    match value {
        Decimal::Narrow { mantissa, scale } => rescaled(mantissa, scale, 0).unwrap_or(0),
        value => match wide::drop_places(value, 0, Dropped::Rounded).and_then(Decimal::narrow_mantissa) {
            Some(mantissa) => mantissa,
            None if value.is_negative() => i128::MIN,
            None => i128::MAX,
        },
    }
}

/// The decimal with the digits with which a double is printed, optionally rounded to `scale`.
pub fn from_double(value: f64, scale: Option<u8>) -> Option<Decimal> {
    if value.abs() >= DOUBLES_END {
        return None;
    }
    let mut text = Vec::with_capacity(64);
    crate::row_encoding::append_double(value, &mut text);
    let parsed = crate::number::parse_decimal(&text);
    let value = parsed.value?;
    match scale {
        Some(scale) => with_scale(value, scale),
        None => Some(value),
    }
}

/// The same number without trailing zeros after the point.
pub fn without_trailing_zeros(value: Decimal) -> Decimal {
    let Decimal::Narrow { mut mantissa, mut scale } = value else { return wide::without_trailing_zeros(value) };
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    Decimal::Narrow { mantissa, scale }
}

/// The value with `places` digits after the point. `round` gets the dropped digits and their power of ten. It
/// returns -1, 0 or 1, which is added to the last digit kept.
fn narrow_places(mantissa: i128, own: u8, places: i32, round: impl Fn(i128, i128) -> i128) -> Decimal {
    let drop = i32::from(own) - places;
    if drop <= 0 {
        return Decimal::Narrow { mantissa, scale: own };
    }
    let scale = places.max(0) as u8;
    let Some(factor) = 10i128.checked_pow(drop as u32) else { return Decimal::Narrow { mantissa: 0, scale } };
    let quotient = mantissa / factor + round(mantissa % factor, factor);
    // Digits that are dropped before the point become zeros.
    let zeros = 10i128.checked_pow((-places).max(0) as u32).unwrap_or(0);
    Decimal::Narrow { mantissa: quotient.checked_mul(zeros).unwrap_or(0), scale }
}
