//! Geohashes: digits to the base 32 of which each halves the ranges of longitude and latitude five times.

use junctor_model::geometry::Point;

const DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Bits of a digit.
const DIGIT_BITS: u32 = 5;
/// Maximum number of decimals that a decoded coordinate is rounded to.
const DECIMALS_MAX: u32 = 15;

/// A range of coordinates.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    /// Half of the width, which the difference of the ends has not exactly.
    error: f64,
}

const LONGITUDES: Range = Range { low: -180.0, high: 180.0, error: 180.0 };
const LATITUDES: Range = Range { low: -90.0, high: 90.0, error: 90.0 };

impl Range {
    fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }

    fn halve(&mut self, is_upper: bool) {
        match is_upper {
            true => self.low = self.middle(),
            false => self.high = self.middle(),
        }
        self.error /= 2.0;
    }

    /// The middle, rounded to as few decimals as leave it in the range.
    fn rounded_middle(self) -> f64 {
        let middle = self.middle();
        let mut error = self.error;
        if error == 0.0 {
            return middle;
        }
        let mut decimals = 0;
        while error <= 0.1 && decimals <= DECIMALS_MAX {
            error *= 10.0;
            decimals += 1;
        }
        loop {
            let rounded = rounded(middle, decimals);
            decimals += 1;
            if (self.low..=self.high).contains(&rounded) || decimals > DECIMALS_MAX {
                return rounded + 0.0;
            }
        }
    }
}

/// A number rounded to this many decimals, halves away from zero.
fn rounded(number: f64, decimals: u32) -> f64 {
    let factor = 10f64.powi(decimals as i32);
    (number * factor).round() / factor
}

/// The longitude and latitude in the middle of what a geohash covers, in letters of either case; `None` for
/// a text that is none.
pub(crate) fn decode(text: &[u8]) -> Option<Point> {
    let (mut longitude, mut latitude) = (LONGITUDES, LATITUDES);
    let mut is_longitude = true;
    for letter in text {
        let digit = DIGITS.iter().position(|digit| *digit == letter.to_ascii_lowercase())?;
        for bit in (0..DIGIT_BITS).rev() {
            let range = if is_longitude { &mut longitude } else { &mut latitude };
            range.halve(digit >> bit & 1 == 1);
            is_longitude = !is_longitude;
        }
    }
    (!text.is_empty()).then(|| Point { x: longitude.rounded_middle(), y: latitude.rounded_middle() })
}

/// Appends the geohash of a point in at most `digits_max` digits, or fewer if they have it exactly.
pub(crate) fn encode(point: Point, digits_max: usize, out: &mut Vec<u8>) {
    let (mut longitude, mut latitude) = (LONGITUDES, LATITUDES);
    let mut is_longitude = true;
    for _ in 0..digits_max {
        let mut digit = 0;
        for _ in 0..DIGIT_BITS {
            let (range, value) = if is_longitude { (&mut longitude, point.x) } else { (&mut latitude, point.y) };
            let is_upper = value >= range.middle();
            range.halve(is_upper);
            digit = digit << 1 | usize::from(is_upper);
            is_longitude = !is_longitude;
        }
        out.push(DIGITS[digit]);
        if longitude.middle() == point.x && latitude.middle() == point.y {
            return;
        }
    }
}
