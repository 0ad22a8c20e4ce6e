//! Feature `rust_decimal`: DECIMAL as [`Decimal`], which has 96 bits and up to 28 digits after the point.

use junctor_model::decimal::without_trailing_zeros;
use junctor_model::value::{Decimal as Exact, ValueRef};
use rust_decimal::Decimal;

use super::error::Result;
use super::value::{FromValue, Parameter, ToValue, out_of_range};

impl ToValue for Decimal {
    fn to_value(&self) -> Parameter<'_> {
        let exact = Exact::Narrow { mantissa: self.mantissa(), scale: self.scale() as u8 };
        Parameter::Borrowed(ValueRef::Decimal(exact))
    }
}

impl<'a> FromValue<'a> for Decimal {
    /// A DECIMAL or an integer. Zeros at the end are cut off if there are too many digits otherwise; other
    /// numbers with too many digits are out of range.
    fn from_value(value: ValueRef<'a>) -> Result<Decimal> {
        let exact = Exact::from_value(value)?;
        let made = of_exact(exact).or_else(|| of_exact(without_trailing_zeros(exact)));
        made.ok_or_else(|| out_of_range(value, "rust_decimal::Decimal"))
    }
}

fn of_exact(value: Exact) -> Option<Decimal> {
    Decimal::try_from_i128_with_scale(value.narrow_mantissa()?, value.scale().into()).ok()
}

#[cfg(test)]
mod tests {
    use junctor_model::number::parse_decimal;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Option<String> {
        let value = parse_decimal(text.as_bytes()).value.expect("it is a number");
        Decimal::from_value(ValueRef::Decimal(value)).ok().map(|value| value.to_string())
    }

    #[test]
    fn numbers_with_too_many_digits_are_out_of_range() {
        assert_eq!(read("79228162514264337593543950335").as_deref(), Some("79228162514264337593543950335"));
        assert_eq!(read("-79228162514264337593543950335").as_deref(), Some("-79228162514264337593543950335"));
        assert_eq!(read("79228162514264337593543950336"), None);
        assert_eq!(read("1.500000000000000000000000000000").as_deref(), Some("1.5"));
        assert_eq!(read("0.000000000000000000000000000001"), None);
        assert_eq!(read(&"9".repeat(65)), None);
        assert_eq!(Decimal::from_value(ValueRef::UInt(u64::MAX)).ok(), Some(Decimal::from(u64::MAX)));
        assert!(Decimal::from_value(ValueRef::Double(1.5)).is_err());
    }

    proptest! {
        #[test]
        fn every_decimal_comes_back(mantissa in -(1i128 << 96) + 1..1i128 << 96, scale in 0u32..=28) {
            let value = Decimal::from_i128_with_scale(mantissa, scale);
            let again = Decimal::from_value(value.to_value().as_ref()).expect("it fits");
            prop_assert_eq!((again, again.scale()), (value, scale));
        }
    }
}
