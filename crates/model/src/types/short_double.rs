//! The text of a double in a column that is too narrow for all of its digits. Only for such a column, so that
//! nothing here is on a hot path.

/// The exponents beyond which a number prints with one (`1e16`), even if its digits fit.
const POINT_MAX: i32 = 15;

/// A text of at most the width, and whether it has all digits before the point, or the whole exponent.
pub(super) struct ShortDouble {
    pub text: Vec<u8>,
    pub fits: bool,
}

/// The decimal digits of a number without zeros at the end. The point is after the first `point` of them.
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

impl Digits {
    /// The fewest digits that read back as the same number, but at most `most`.
    fn of(magnitude: f64, most: i32) -> Digits {
        let shortest = Digits::parse(&format!("{magnitude:e}"));
        if shortest.count() <= most.max(1) { shortest } else { Digits::rounded(magnitude, most) }
    }

    /// The number rounded to so many digits, and to at least one.
    fn rounded(magnitude: f64, count: i32) -> Digits {
        let after_first = count.max(1) as usize - 1;
        Digits::parse(&format!("{magnitude:.after_first$e}"))
    }

    /// The number rounded to so many digits after the point; without digits if that is 0.
    fn to_places(magnitude: f64, places: usize) -> Digits {
        let text = format!("{magnitude:.places$}");
        let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
        let whole = whole.trim_start_matches('0');
        let zeros = if whole.is_empty() { fraction.bytes().take_while(|digit| *digit == b'0').count() } else { 0 };
        let digits = format!("{whole}{}", &fraction[zeros..]);
        let point = whole.len() as i32 - zeros as i32;
        Digits { digits: digits.trim_end_matches('0').into(), point }
    }

    fn parse(scientific: &str) -> Digits {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Digits { digits, point: exponent.parse().unwrap_or(0) + 1 }
    }

    fn count(&self) -> i32 {
        self.digits.len() as i32
    }

    /// The number of characters without an exponent.
    fn plain_width(&self) -> i32 {
        match self.point {
            point if point <= 0 => self.count() - point + 2,
            point if point < self.count() => self.count() + 1,
            point => point,
        }
    }

    /// Whether no digit after the point has space, but all have with an exponent.
    fn needs_exponent(&self, width: i32) -> bool {
        let point = self.point;
        let exponent_digits = 1 + i32::from(point <= -9) + i32::from(point <= -99);
        point < 0 && width <= 2 - point && width >= 3 + exponent_digits
    }

    /// Whether the number prints without an exponent. If neither form has space for all digits, this one is
    /// taken where it keeps at least as many digits.
    fn prints_plain(&self, width: i32) -> bool {
        let is_near = (-POINT_MAX + 1..=POINT_MAX).contains(&self.point);
        match self.plain_width() <= width {
            true => is_near || self.point > -POINT_MAX && self.count() > self.point,
            false => (-2..=width).contains(&self.point) && !self.needs_exponent(width),
        }
    }
}

/// Shortens a finite number to the width of its column: it is rounded to the digits that fit, or gets an
/// exponent.
pub(super) fn short_double(value: f64, width: usize) -> ShortDouble {
    let columns = width.min(i32::MAX as usize) as i32 - i32::from(value < 0.0);
    if width == 0 {
        return ShortDouble { text: Vec::new(), fits: false };
    }
    let magnitude = value.abs();
    let digits = Digits::of(magnitude, columns);
    let mut short = match digits.prints_plain(columns) {
        true => plain(magnitude, digits, columns),
        false => scientific(magnitude, digits, columns),
    };
    if value < 0.0 && short.text != b"0" {
        short.text.insert(0, b'-');
    }
    short.text.truncate(width);
    short
}

fn plain(magnitude: f64, mut digits: Digits, columns: i32) -> ShortDouble {
    let zeros = if digits.point <= 0 { 1 - digits.point } else { 0 };
    let mut space = columns - i32::from(digits.point < digits.count()) - zeros;
    let mut fits = true;
    if space < digits.count() {
        fits = space >= digits.point;
        space = space.max(digits.point);
        digits = Digits::to_places(magnitude, (space - digits.point) as usize);
    }
    let point = digits.point;
    let mut text = Vec::new();
    if digits.count() == 0 {
        return ShortDouble { text: b"0".to_vec(), fits };
    }
    if point <= 0 {
        text.extend_from_slice(b"0.");
        text.resize(text.len() + point.unsigned_abs() as usize, b'0');
    }
    for (position, digit) in digits.digits.iter().enumerate() {
        if point > 0 && position == point as usize {
            text.push(b'.');
        }
        text.push(*digit);
    }
    let missing = (point - digits.count()).max(0) as usize;
    text.resize(text.len() + missing, b'0');
    ShortDouble { text, fits }
}

fn scientific(magnitude: f64, mut digits: Digits, columns: i32) -> ShortDouble {
    let tail = |digits: &Digits| format!("e{}", digits.point - 1);
    let space = columns - tail(&digits).len() as i32 - i32::from(digits.count() > 1);
    if space < digits.count() {
        digits = Digits::rounded(magnitude, space);
    }
    let mut text = vec![digits.digits[0]];
    if digits.count() > 1 {
        text.push(b'.');
        text.extend_from_slice(&digits.digits[1..]);
    }
    text.extend_from_slice(tail(&digits).as_bytes());
    ShortDouble { text, fits: space > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(value: f64, width: usize) -> String {
        let short = short_double(value, width);
        format!("{}{}", String::from_utf8(short.text).expect("UTF-8"), if short.fits { "" } else { " cut" })
    }

    #[test]
    fn a_number_is_rounded_to_its_column() {
        assert_eq!(short(9999.9990234375, 6), "10000");
        assert_eq!(short(9999.9990234375, 4), "1e4");
        assert_eq!(short(123456.789, 8), "123456.8");
        assert_eq!(short(123456.789, 6), "123457");
        assert_eq!(short(123456.789, 5), "1.2e5");
        assert_eq!(short(-123456.789, 5), "-1e5");
        assert_eq!(short(0.123456, 4), "0.12");
        assert_eq!(short(0.004, 4), "4e-3");
        assert_eq!(short(-0.045, 5), "-0.04");
    }

    #[test]
    fn a_number_without_space_for_a_digit_after_the_point_is_whole() {
        assert_eq!(short(0.9, 1), "1 cut");
        assert_eq!(short(0.5, 2), "0");
        assert_eq!(short(0.04, 3), "0");
        assert_eq!(short(-0.25, 1), "0 cut");
        assert_eq!(short(-0.9, 2), "-1 cut");
        assert_eq!(short(-0.004, 4), "0");
    }

    #[test]
    fn a_number_without_space_for_its_exponent_is_cut() {
        assert_eq!(short(1e39, 3), "1e3 cut");
        assert_eq!(short(1e39, 4), "1e39");
        assert_eq!(short(1.5, 0), " cut");
    }
}
