//! Exact arithmetic on decimals of up to 38 digits. Functions return `None` on overflow.

use crate::value::Decimal;

/// Maximum number of digits after the decimal point of a DECIMAL.
pub const DECIMAL_SCALE_MAX: u8 = 30;

/// Mantissas are less than this in magnitude: 10^38.
pub const MANTISSA_LIMIT: u128 = 100_000_000_000_000_000_000_000_000_000_000_000_000;

/// Maximum number of digits of a decimal: those before and after the point together.
pub const DIGITS_MAX: u8 = 38;

/// An integer as a decimal.
pub fn from_integer(value: i128) -> Decimal {
    Decimal { mantissa: value, scale: 0 }
}

/// The value if it has at most 38 digits.
pub fn checked(value: Decimal) -> Option<Decimal> {
    (value.mantissa.unsigned_abs() < MANTISSA_LIMIT).then_some(value)
}

/// Whether the value has at most `precision` digits at its scale.
pub fn fits_digits(value: Decimal, precision: u8) -> bool {
    10u128.checked_pow(precision.into()).is_none_or(|limit| value.mantissa.unsigned_abs() < limit)
}

/// The value with `scale` digits after the point, rounded half away from zero.
pub fn with_scale(value: Decimal, scale: u8) -> Option<Decimal> {
    if value.scale == scale {
        return Some(value);
    }
    // Dropping more than 38 digits leaves 0.
    if value.scale.saturating_sub(scale) > 38 {
        return Some(Decimal { mantissa: 0, scale });
    }
    value.rescale(scale).and_then(checked)
}

/// The sum, with the larger of the two scales.
pub fn add(left: Decimal, right: Decimal) -> Option<Decimal> {
    let scale = left.scale.max(right.scale);
    let sum = with_scale(left, scale)?.mantissa.checked_add(with_scale(right, scale)?.mantissa)?;
    checked(Decimal { mantissa: sum, scale })
}

/// The difference, with the larger of the two scales.
pub fn subtract(left: Decimal, right: Decimal) -> Option<Decimal> {
    add(left, negate(right))
}

/// The number with the opposite sign.
pub fn negate(value: Decimal) -> Decimal {
    Decimal { mantissa: -value.mantissa, scale: value.scale }
}

/// The product, rounded to `scale` digits after the point.
pub fn multiply(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    // Trailing zeros could make the product overflow an i128 although it fits after rounding.
    let (left, right) = (without_trailing_zeros(left), without_trailing_zeros(right));
    let product = Decimal { mantissa: left.mantissa.checked_mul(right.mantissa)?, scale: left.scale + right.scale };
    if product.scale > DECIMAL_SCALE_MAX && product.scale - scale.min(product.scale) > 38 {
        return Some(Decimal { mantissa: 0, scale });
    }
    with_scale(product, scale)
}

/// The truncated quotient with guard digits: more digits than the type of the result has, so that `1 / 3 * 3`
/// is 1 after rounding to that type. As in MySQL, digits are counted in groups of nine. After the point, the
/// quotient has as many groups as the two operands together, plus those for `increment` more digits. The
/// divisor must not be 0.
pub fn divide_with_guard_digits(left: Decimal, right: Decimal, increment: u8) -> Option<Decimal> {
    let grouped = |scale: u8| scale.next_multiple_of(9);
    let padding_digits = grouped(left.scale) - left.scale + grouped(right.scale) - right.scale;
    let scale = grouped(grouped(left.scale) + grouped(right.scale) + increment.saturating_sub(padding_digits))
        .min(DECIMAL_SCALE_MAX);
    // If the guard digits do not fit, round to the scale of the type.
    let result_scale = left.scale.saturating_add(increment).min(DECIMAL_SCALE_MAX);
    divide_to(left, right, scale, false).or_else(|| divide(left, right, result_scale))
}

/// The quotient rounded to `scale` digits after the point. The divisor must not be 0.
pub fn divide(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    divide_to(left, right, scale, true)
}

fn divide_to(left: Decimal, right: Decimal, scale: u8, rounds: bool) -> Option<Decimal> {
    let right = without_trailing_zeros(right);
    let negative = (left.mantissa < 0) != (right.mantissa < 0);
    let divisor = right.mantissa.unsigned_abs();
    let mut quotient = left.mantissa.unsigned_abs() / divisor;
    let mut rest = left.mantissa.unsigned_abs() % divisor;
    // The integer quotient has left.scale - right.scale digits after the point.
    let mut digits = i32::from(left.scale) - i32::from(right.scale);
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
    checked(Decimal { mantissa: if negative { -mantissa } else { mantissa }, scale })
}

/// The quotient truncated to an integer; `None` for more than 38 digits. The divisor must not be 0.
pub fn divide_integer(left: Decimal, right: Decimal) -> Option<i128> {
    let (quotient, _) = divided(left, right)?;
    let quotient = i128::try_from(quotient).ok()?;
    Some(if (left.mantissa < 0) != (right.mantissa < 0) { -quotient } else { quotient })
}

/// The remainder, with the sign of `left`. The divisor must not be 0.
pub fn remainder(left: Decimal, right: Decimal) -> Option<Decimal> {
    let scale = left.scale.max(right.scale);
    let (_, rest) = divided(left, right)?;
    let rest = i128::try_from(rest).ok()?;
    checked(Decimal { mantissa: if left.mantissa < 0 { -rest } else { rest }, scale })
}

/// The magnitudes of the integer quotient and of the remainder at the larger scale. `None` for a quotient
/// beyond 128 bits.
fn divided(left: Decimal, right: Decimal) -> Option<(u128, u128)> {
    let (dividend, divisor) = (left.mantissa.unsigned_abs(), right.mantissa.unsigned_abs());
    if left.scale >= right.scale {
        // A divisor beyond 128 bits is greater than the dividend.
        let divisor = 10u128.checked_pow((left.scale - right.scale).into()).and_then(|unit| divisor.checked_mul(unit));
        return Some(divisor.map_or((0, dividend), |divisor| (dividend / divisor, dividend % divisor)));
    }
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    for _ in left.scale..right.scale {
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
    drop_places(value, places, |_, _| 0)
}

/// Rounds half away from zero to `places` digits after the point. Negative `places` round digits before the
/// point.
pub fn round(value: Decimal, places: i32) -> Option<Decimal> {
    checked(drop_places(value, places, |rest, factor| {
        let magnitude = rest.unsigned_abs();
        if magnitude >= factor.unsigned_abs() - magnitude { rest.signum() } else { 0 }
    }))
}

/// The largest number with `scale` digits after the point that is not above the value.
pub fn floor_to(value: Decimal, scale: u8) -> Option<Decimal> {
    if scale >= value.scale {
        return with_scale(value, scale);
    }
    let factor = 10i128.checked_pow(u32::from(value.scale - scale))?;
    Some(Decimal { mantissa: value.mantissa.div_euclid(factor), scale })
}

/// The largest integer not above the value.
pub fn floor(value: Decimal) -> i128 {
    let factor = 10i128.pow(u32::from(value.scale));
    value.mantissa.div_euclid(factor)
}

/// The smallest integer not below the value.
pub fn ceiling(value: Decimal) -> i128 {
    -floor(negate(value))
}

/// The nearest integer; halves round away from zero.
pub fn to_integer(value: Decimal) -> i128 {
    value.rescale(0).map_or(0, |value| value.mantissa)
}

/// The decimal with the digits with which a double is printed, optionally rounded to `scale`.
pub fn from_double(value: f64, scale: Option<u8>) -> Option<Decimal> {
    if value.abs() >= 1e38 {
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
fn without_trailing_zeros(mut value: Decimal) -> Decimal {
    while value.scale > 0 && value.mantissa % 10 == 0 {
        value.mantissa /= 10;
        value.scale -= 1;
    }
    value
}

/// The value with `places` digits after the point. `round` gets the dropped digits and their power of ten. It
/// returns -1, 0 or 1, which is added to the last digit kept.
fn drop_places(value: Decimal, places: i32, round: impl Fn(i128, i128) -> i128) -> Decimal {
    let drop = i32::from(value.scale) - places;
    if drop <= 0 {
        return value;
    }
    let scale = places.max(0) as u8;
    let Some(factor) = 10i128.checked_pow(drop as u32) else { return Decimal { mantissa: 0, scale } };
    let quotient = value.mantissa / factor + round(value.mantissa % factor, factor);
    // Digits that are dropped before the point become zeros.
    let zeros = 10i128.checked_pow((-places).max(0) as u32).unwrap_or(0);
    Decimal { mantissa: quotient.checked_mul(zeros).unwrap_or(0), scale }
}
