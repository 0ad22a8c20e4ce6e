//! Decimals against `num-bigint`.

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;

use super::*;
use crate::number::parse_decimal;
use crate::types::DataType;
use crate::value::ValueRef;

fn ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

fn text(value: Decimal) -> String {
    let mut text = Vec::new();
    value.append_text(&mut text);
    String::from_utf8(text).unwrap()
}

/// The number times 10^scale, by way of its text.
fn mantissa(value: Decimal) -> BigInt {
    text(value).replace('.', "").parse().unwrap()
}

/// The decimal of a mantissa, by way of its text.
fn decimal(mantissa: &BigInt, scale: u8) -> Decimal {
    let sign = if mantissa.sign() == Sign::Minus { "-" } else { "" };
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", mantissa.magnitude().to_string(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let value = parse_decimal(format!("{sign}{whole}.{fraction}").as_bytes()).value.unwrap();
    assert_eq!(usize::from(value.scale()), scale);
    value
}

/// Digits before the point.
fn integer_digits(mantissa: &BigInt, scale: u8) -> usize {
    let whole = mantissa.magnitude() / ten(scale.into()).magnitude();
    if whole.bits() == 0 { 0 } else { whole.to_string().len() }
}

/// Groups of nine digits before the point.
fn integer_groups(mantissa: &BigInt, scale: u8) -> usize {
    integer_digits(mantissa, scale).div_ceil(9)
}

fn groups(scale: u8) -> usize {
    usize::from(scale).div_ceil(9)
}

/// The number as a result of a computation has it: with as many groups of digits as there is room for.
fn clipped(mut mantissa: BigInt, mut scale: u8) -> Option<(BigInt, u8)> {
    let places = 9usize.checked_sub(integer_groups(&mantissa, scale))? * 9;
    if groups(scale) * 9 > places {
        let kept = (places as u8).min(scale);
        mantissa /= ten((scale - kept).into());
        scale = kept;
    }
    Some((mantissa, scale))
}

fn check(found: Option<Decimal>, exact: BigInt, scale: u8) -> Result<(), TestCaseError> {
    let expected = clipped(exact, scale);
    prop_assert_eq!(found.map(|found| (mantissa(found), found.scale())), expected);
    if let Some(found) = found {
        let is_long = digits(found) > 38;
        prop_assert_eq!(matches!(found, Decimal::Wide(_)), is_long, "{:?}", found);
    }
    Ok(())
}

/// Half away from zero.
fn divided_and_rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let magnitude = BigInt::from((dividend.magnitude() * 2u8 + divisor.magnitude()) / (divisor.magnitude() * 2u8));
    if (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus) { -magnitude } else { magnitude }
}

fn rescaled_exactly(mantissa: &BigInt, own: u8, scale: u8) -> BigInt {
    match scale >= own {
        true => mantissa * ten((scale - own).into()),
        false => divided_and_rounded(mantissa, &ten((own - scale).into())),
    }
}

/// Numbers with many digits, and with many nines and zeros, that fit.
fn operand() -> impl Strategy<Value = (BigInt, u8)> {
    let digits = prop_oneof![
        "[0-9]{1,20}",
        "[0-9]{35,42}",
        "[0-9]{1,81}",
        "9{1,81}",
        "[1-9]0{0,80}",
        "[0-9]{1,30}0{1,40}",
        "(0|9){60,70}",
    ];
    (digits, any::<bool>(), 0u8..=30).prop_filter_map("fits", |(digits, negative, scale)| {
        let magnitude: BigInt = digits.parse().unwrap();
        let value = if negative { -magnitude } else { magnitude };
        (integer_groups(&value, scale) + groups(scale) <= 9).then_some((value, scale))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_number_is_read_and_printed_with_all_digits((exact, scale) in operand()) {
        let value = decimal(&exact, scale);
        prop_assert_eq!(mantissa(value), exact.clone());
        prop_assert_eq!(matches!(value, Decimal::Wide(_)), exact.magnitude() >= ten(38).magnitude());
        prop_assert_eq!(value.is_negative(), exact.sign() == Sign::Minus);
        prop_assert_eq!(value.to_double(), text(value).parse::<f64>().unwrap());
        if let Decimal::Wide(wide) = value {
            let again = Wide::from_bytes(&wide.to_bytes(), scale).unwrap();
            prop_assert_eq!(text(again), text(value));
        }
    }

    #[test]
    fn numbers_have_the_order_of_big_integers((left, own) in operand(), (right, scale) in operand()) {
        let most = own.max(scale);
        let order = rescaled_exactly(&left, own, most).cmp(&rescaled_exactly(&right, scale, most));
        prop_assert_eq!(decimal(&left, own).cmp(&decimal(&right, scale)), order);
    }

    #[test]
    fn sums_and_differences_are_exact((left, own) in operand(), (right, scale) in operand()) {
        let most = own.max(scale);
        let (one, other) = (decimal(&left, own), decimal(&right, scale));
        for (found, right) in [(add(one, other), right.clone()), (subtract(one, other), -right)] {
            let exact = rescaled_exactly(&left, own, most) + rescaled_exactly(&right, scale, most);
            let whole = integer_groups(&left, own).max(integer_groups(&right, scale));
            if whole < 9 && whole + 1 + groups(most) <= 9 || found.is_some_and(|found| found.narrow_mantissa().is_some()) {
                check(found, exact, most)?;
                continue;
            }
            // A group is kept free for a carry that does not happen if the first groups are all nines.
            let cut = |places: u8| {
                let kept = |exact: &BigInt, own: u8| exact / ten(own.saturating_sub(places).into());
                let (one, other) = (kept(&left, own), kept(&right, scale));
                let (own, scale) = (own.min(places), scale.min(places));
                let most = own.max(scale);
                (rescaled_exactly(&one, own, most) + rescaled_exactly(&other, scale, most), most)
            };
            let found = found.map(|found| (mantissa(found), found.scale()));
            let with_room = |whole: usize| (whole <= 9).then(|| cut((9 - whole) as u8 * 9));
            prop_assert!(found == with_room(whole) || found == with_room(whole + 1), "{:?}", found);
        }
    }

    #[test]
    fn products_are_exact_before_they_are_rounded((left, own) in operand(), (right, scale) in operand()) {
        let wanted = (own + scale).min(DECIMAL_SCALE_MAX);
        let found = multiply(decimal(&left, own), decimal(&right, scale), wanted);
        let whole = (integer_digits(&left, own) + integer_digits(&right, scale)).div_ceil(9);
        if whole > 9 {
            // MySQL adds the digits of the operands, but a product in an i128 is given.
            prop_assert!(found.is_none_or(|found| found.narrow_mantissa().is_some()));
        } else if whole + groups(own) + groups(scale) <= 9 {
            check(found, rescaled_exactly(&(left * right), own + scale, wanted), wanted)?;
        } else {
            let excess = whole + groups(own) + groups(scale) - 9;
            let of_shorter = (excess / 2).min(groups(own).min(groups(scale)));
            let of_longer = excess - of_shorter;
            let (of_left, of_right) =
                if groups(own) <= groups(scale) { (of_shorter, of_longer) } else { (of_longer, of_shorter) };
            let cut = |exact: &BigInt, own: u8, dropped: usize| {
                let kept = (groups(own).saturating_sub(dropped) as u8 * 9).min(own);
                (exact / ten((own - kept).into()), kept)
            };
            let ((one, kept), (other, places)) = (cut(&left, own, of_left), cut(&right, scale, of_right));
            // A product in an i128 is exact.
            let exact = rescaled_exactly(&(&left * &right), own + scale, wanted);
            if found.map(mantissa) != Some(exact) {
                check(found, rescaled_exactly(&(one * other), kept + places, wanted), wanted)?;
            }
        }
    }

    #[test]
    fn quotients_and_remainders_are_those_of_big_integers(
        (left, own) in operand(), (right, scale) in operand(), wanted in 0u8..=30
    ) {
        prop_assume!(right.sign() != Sign::NoSign);
        let (one, other) = (decimal(&left, own), decimal(&right, scale));
        let dividend = &left * ten((wanted + scale).into());
        let divisor = &right * ten(own.into());
        check(divide(one, other, wanted), divided_and_rounded(&dividend, &divisor), wanted)?;
        let increment = 4;
        let guarded = divide_with_guard_digits(one, other, increment);
        if let Some(guarded) = guarded {
            let dividend = &left * ten((guarded.scale() + scale).into());
            let rounded = divided_and_rounded(&dividend, &divisor);
            // With fewer digits, the result is rounded later.
            let is_result = guarded.scale() == DECIMAL_SCALE_MAX && own + increment >= DECIMAL_SCALE_MAX;
            prop_assert_eq!(mantissa(guarded), if is_result { rounded } else { dividend / &divisor });
        }
        let most = own.max(scale);
        let (left, right) = (rescaled_exactly(&left, own, most), rescaled_exactly(&right, scale, most));
        check(remainder(one, other), &left % &right, most)?;
        let quotient = left / right;
        let fits = quotient.magnitude() < ten(38).magnitude();
        prop_assert_eq!(divide_integer(one, other).filter(|_| fits), i128::try_from(quotient).ok().filter(|_| fits));
    }

    #[test]
    fn digits_are_dropped_by_each_rule((exact, scale) in operand(), places in -85i32..32) {
        let value = decimal(&exact, scale);
        let kept = places.clamp(-100, scale.into());
        let unit = ten((i32::from(scale) - kept) as u32);
        let back = |quotient: BigInt| quotient * ten((-kept).max(0) as u32);
        check(Some(truncate(value, places)), back(&exact / &unit), kept.max(0) as u8)?;
        check(round(value, places), back(divided_and_rounded(&exact, &unit)), kept.max(0) as u8)?;
        let whole = ten(scale.into());
        let rest = ((&exact % &whole) + &whole) % &whole;
        check(Some(floor(value)), (&exact - rest) / &whole, 0)?;
        let rest = ((-&exact % &whole) + &whole) % &whole;
        check(Some(ceiling(value)), (&exact + rest) / &whole, 0)?;
        let nearest = divided_and_rounded(&exact, &whole);
        let limit = if value.is_negative() { i128::MIN } else { i128::MAX };
        let beyond = nearest.magnitude() >= ten(38).magnitude();
        prop_assert_eq!(to_integer(value), if beyond { limit } else { i128::try_from(nearest).unwrap() });
    }

    #[test]
    fn a_scale_is_given_if_there_is_room((exact, scale) in operand(), wanted in 0u8..=30) {
        let expected = rescaled_exactly(&exact, scale, wanted);
        let fits = expected.magnitude() < ten(38).magnitude() || integer_groups(&expected, wanted) + groups(wanted) <= 9;
        let found = with_scale(decimal(&exact, scale), wanted).map(mantissa);
        prop_assert_eq!(found, fits.then_some(expected));
    }

    #[test]
    fn the_bytes_of_columns_have_the_order_of_the_numbers(
        precision in 1u8..=65, scale in 0u8..=30, texts in prop::collection::vec("-?(0|9|[0-9]){1,65}", 2..6)
    ) {
        let scale = scale.min(precision);
        let data_type = DataType::decimal(precision, scale, false);
        let form = data_type.packed().unwrap();
        let limit = ten(precision.into());
        let mut values: Vec<BigInt> = texts.iter().map(|text| text.parse::<BigInt>().unwrap() % &limit).collect();
        values.extend([&limit - 1, 1 - &limit, BigInt::ZERO, BigInt::from(-1)]);
        values.sort();
        let mut before: Option<Vec<u8>> = None;
        for exact in values {
            let value = decimal(&exact, scale);
            let mut bytes = vec![0; form.bytes()];
            prop_assert!(form.write(ValueRef::Decimal(value), &mut bytes));
            let ValueRef::Decimal(again) = form.read(&bytes, None) else { panic!("a decimal") };
            prop_assert_eq!(text(again), text(value));
            prop_assert!(before.is_none_or(|before| before <= bytes));
            before = Some(bytes);
        }
        let mut bytes = vec![0; form.bytes()];
        if usize::from(precision) < 65 {
            prop_assert!(!form.write(ValueRef::Decimal(decimal(&limit, scale)), &mut bytes));
        }
    }
}

#[test]
fn the_largest_number_of_a_type_has_nines_only() {
    for precision in 1..=65u8 {
        let (least, most) = (largest(precision, 0, true), largest(precision, 0, false));
        assert_eq!(text(most), "9".repeat(precision.into()));
        assert_eq!(text(least), format!("-{}", "9".repeat(precision.into())));
        assert!(fits_digits(most, precision) && !fits_digits(most, precision - 1));
    }
}

#[test]
fn a_number_with_an_exponent_has_as_many_digits_as_it_needs() {
    let read = |written: &str| parse_decimal(written.as_bytes()).value.map(text);
    assert_eq!(read("1e80"), Some(format!("1{}", "0".repeat(80))));
    assert_eq!(read("1e81"), None);
    assert_eq!(read("-1e999999"), None);
    assert_eq!(read("0e999999"), Some("0".into()));
    assert_eq!(read("1e-999999"), Some(format!("0.{}", "0".repeat(30))));
    assert_eq!(read(&format!("{}1", "0".repeat(200))), Some("1".into()));
    let rounded_up = format!("1{}.{}", "0".repeat(10), "0".repeat(30));
    assert_eq!(read(&format!("{}.5e-50", "9".repeat(60))), Some(rounded_up));
}

#[test]
fn bytes_that_are_no_wide_number_are_refused() {
    let Decimal::Wide(wide) = largest(65, 30, true) else { panic!("more than 38 digits") };
    let bytes = wide.to_bytes();
    assert!(Wide::from_bytes(&bytes, 30).is_some());
    assert!(Wide::from_bytes(&bytes, 31).is_none());
    let mut wrong = bytes;
    wrong[0] = 2;
    assert!(Wide::from_bytes(&wrong, 30).is_none());
    // A number that the narrow form has, and one with too many groups.
    assert!(Wide::from_bytes(&[0; WIDE_BYTES], 0).is_none());
    assert!(Wide::from_bytes(&[1; WIDE_BYTES], 30).is_none());
}

#[test]
fn a_quotient_is_rounded_once() {
    let dividend = decimal(&"5".repeat(45).parse().unwrap(), 25);
    let quotient = divide_with_guard_digits(dividend, decimal(&11.into(), 0), 4).unwrap();
    let rounded = round(quotient, 29).unwrap();
    // The next digits are 454: the number is not rounded up, neither at the 30th digit nor at the 29th.
    assert_eq!(mantissa(rounded).to_string(), "505050505050505050505050505050505050505050504545");
}

#[test]
fn a_quotient_without_room_for_thirty_digits_after_the_point_is_cut() {
    let dividend = decimal(&"9".repeat(65).parse().unwrap(), 22);
    let quotient = divide_with_guard_digits(dividend, decimal(&999_999.into(), 14), 4).unwrap();
    // The next digits are nines: rounded to 30 digits, the last of these would be 1.
    let exact = "1000001000001000001000001000001000001000001000001000001000000999990999990999990";
    assert_eq!((mantissa(quotient).to_string().as_str(), quotient.scale()), (exact, 27));
}
