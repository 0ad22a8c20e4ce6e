//! Time zones: offsets from UTC, and the zones of the IANA database, which is built in.

use std::sync::OnceLock;

use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{Parts, Temporal, TemporalKind, add_seconds, days_of_civil, round};

/// The least instant of a TIMESTAMP that is not the zero date.
const FIRST_SECOND: i64 = 1;
/// The greatest instant of a TIMESTAMP: 2038-01-19 03:14:07 in UTC.
const LAST_SECOND: i64 = i32::MAX as i64;
/// The code of the first zone with a name. Smaller codes are minutes east of UTC, from -839 to 840.
const FIRST_NAMED: i16 = 1000;

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    code: i16,
}

/// The instant of a time in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// A change of the clock skips the time; `seconds` are those of the change.
    pub is_skipped: bool,
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone { code: 0 };

    /// The zone of this name: `SYSTEM` (which is UTC), an offset from -13:59 to +14:00, MySQL's range, or a
    /// name of the IANA database in any case. `None` for other texts.
    pub fn find(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") {
            return Some(Zone::UTC);
        }
        let (sign, rest) = match name.as_bytes().first()? {
            b'+' => (1, &name[1..]),
            b'-' => (-1, &name[1..]),
            _ => return named(name),
        };
        let (hours, minutes) = rest.split_once(':')?;
        let number = |text: &str| {
            let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse::<i16>().ok() } else { None }
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let code = sign * (hours * 60 + minutes);
        (minutes < 60 && (-839..=840).contains(&code)).then_some(Zone { code })
    }

    /// The zone of a code that [`Self::code`] returned.
    pub(super) const fn of_code(code: i16) -> Zone {
        Zone { code }
    }

    /// A number of 13 bits, with a sign, for this zone.
    pub(super) const fn code(self) -> i16 {
        self.code
    }

    /// Seconds east of UTC at an instant, in seconds since 1970 in UTC.
    #[inline]
    pub fn offset_at(self, instant: i64) -> i64 {
        match self.code < FIRST_NAMED {
            true => i64::from(self.code) * 60,
            false => named_offset_at(self, instant),
        }
    }

    /// The instant at which the clocks of this zone show a time. If they show it twice, it is the first
    /// time; if they skip it, the instant of the change, as in MySQL.
    pub fn to_utc(self, parts: &Parts) -> LocalTime {
        let day = days_of_civil(parts.year.into(), parts.month, parts.day);
        let clock = i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second);
        let local = day * 86_400 + clock;
        match self.code < FIRST_NAMED {
            true => LocalTime { seconds: local - i64::from(self.code) * 60, is_skipped: false },
            false => named_to_utc(self, parts, local),
        }
    }

    /// The instant of a DATETIME in this zone with digits after the point, and whether the clocks skip it;
    /// `None` outside the range of TIMESTAMP, and for a day with a month or day of 0.
    pub fn instant_of(self, parts: &Parts, digits: u8) -> Option<(Temporal, bool)> {
        if parts.month == 0 || parts.day == 0 {
            return None;
        }
        let LocalTime { seconds, is_skipped } = self.to_utc(parts);
        let instant = Temporal::instant(seconds, parts.microsecond, digits);
        (FIRST_SECOND..=LAST_SECOND).contains(&seconds).then_some((instant, is_skipped))
    }

    /// The DATETIME of an instant in this zone.
    pub fn date_time_of(self, instant: Temporal) -> Temporal {
        let utc = instant.parts();
        let parts = match instant.is_zero() {
            true => Some(utc),
            false => add_seconds(&utc, self.offset_at(instant.instant_seconds())),
        };
        Temporal::from_parts(TemporalKind::DateTime, instant.digits, &parts.unwrap_or(utc))
    }

    /// The DATETIME in this zone at a number of microseconds since 1970 in UTC, cut to `digits` digits.
    pub fn date_time_at(self, microseconds: u64, digits: u8) -> Temporal {
        let utc = (microseconds / 1_000_000) as i64;
        let unit = 10u32.pow(u32::from(super::DIGITS_MAX - digits.min(super::DIGITS_MAX)));
        let microsecond = (microseconds % 1_000_000) as u32 / unit * unit;
        let parts = round::parts_of_seconds(utc + self.offset_at(utc), microsecond);
        Temporal::from_parts(TemporalKind::DateTime, digits, &parts)
    }
}

/// A zone of the IANA database.
struct NamedZone {
    /// In lower case.
    name: String,
    /// Read at the first use.
    zone: OnceLock<TimeZone>,
}

/// The zones of the IANA database by their names. A code is a position, so all nodes have the same database.
fn named_zones() -> &'static [NamedZone] {
    static ZONES: OnceLock<Box<[NamedZone]>> = OnceLock::new();
    ZONES.get_or_init(|| {
        let mut names: Vec<String> =
            jiff::tz::db().available().map(|name| name.as_str().to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.into_iter().map(|name| NamedZone { name, zone: OnceLock::new() }).collect()
    })
}

/// The names of the zones of the IANA database, sorted.
pub fn zone_names() -> Vec<String> {
    let mut names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    names.sort_unstable();
    names
}

fn named(name: &str) -> Option<Zone> {
    let lower = name.to_ascii_lowercase();
    let position = named_zones().binary_search_by(|zone| zone.name.as_str().cmp(&lower)).ok()?;
    let code = i16::try_from(position).ok()?.checked_add(FIRST_NAMED)?;
    Some(Zone { code })
}

/// The rules of a zone with a name; UTC for a code that this node does not know.
fn rules(zone: Zone) -> &'static TimeZone {
    static UTC: TimeZone = TimeZone::UTC;
    let Some(named) = named_zones().get((zone.code - FIRST_NAMED) as usize) else { return &UTC };
    named.zone.get_or_init(|| TimeZone::get(&named.name).unwrap_or(TimeZone::UTC))
}

#[inline(never)]
fn named_offset_at(zone: Zone, instant: i64) -> i64 {
    let instant = jiff::Timestamp::from_second(instant);
    instant.map_or(0, |instant| i64::from(rules(zone).to_offset(instant).seconds()))
}

#[inline(never)]
fn named_to_utc(zone: Zone, parts: &Parts, local: i64) -> LocalTime {
    let (month, day) = (parts.month as i8, parts.day as i8);
    let (hour, minute, second) = (parts.hour as i8, parts.minute as i8, parts.second as i8);
    let Ok(civil) = jiff::civil::DateTime::new(parts.year as i16, month, day, hour, minute, second, 0) else {
        return LocalTime { seconds: local, is_skipped: false };
    };
    let rules = rules(zone);
    match rules.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            LocalTime { seconds: local - i64::from(offset.seconds()), is_skipped: false }
        }
        AmbiguousOffset::Gap { before, after } => {
            let earlier = local - i64::from(after.seconds());
            let change = jiff::Timestamp::from_second(earlier).ok();
            let change = change.and_then(|earlier| rules.following(earlier).next());
            let seconds = change.map_or(local - i64::from(before.seconds()), |change| change.timestamp().as_second());
            LocalTime { seconds, is_skipped: true }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Parts {
        super::super::parse_date_time(text.as_bytes(), super::super::DateRules::FUZZY).parts.expect(text)
    }

    #[test]
    fn every_zone_has_a_code_of_13_bits_and_its_rules() {
        assert!(named_zones().len() > 500, "{} zones", named_zones().len());
        for named in named_zones() {
            let zone = Zone::find(&named.name).expect("a name of the list");
            assert!((-4096..4096).contains(&zone.code()), "{}", named.name);
            let rules = super::super::ValueRules::new(super::super::DateRules::DEFAULT, zone);
            assert_eq!(rules.zone(), zone);
            assert_eq!(rules.at(1_700_000_000_000_000).zone(), zone);
            assert!(TimeZone::get(&named.name).is_ok(), "{}", named.name);
        }
        assert_eq!(Zone::find("EUROPE/berlin"), Zone::find("Europe/Berlin"));
        for wrong in ["", "Mars/Port", "+14:01", "-14:00", "+5", "5:00", "+1:60", "+001:00", "é"] {
            assert_eq!(Zone::find(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn skipped_times_are_the_change_and_repeated_times_the_first() {
        let berlin = Zone::find("Europe/Berlin").expect("a zone");
        for (local, utc, is_skipped) in [
            ("2024-03-31 01:59:59", "2024-03-31 00:59:59", false),
            ("2024-03-31 02:00:00", "2024-03-31 01:00:00", true),
            ("2024-03-31 02:59:59", "2024-03-31 01:00:00", true),
            ("2024-03-31 03:00:00", "2024-03-31 01:00:00", false),
            ("2024-10-27 01:59:59", "2024-10-26 23:59:59", false),
            ("2024-10-27 02:30:00", "2024-10-27 00:30:00", false),
            ("2024-10-27 03:00:00", "2024-10-27 02:00:00", false),
        ] {
            let found = berlin.to_utc(&parts(local));
            let expected = LocalTime { seconds: Zone::UTC.to_utc(&parts(utc)).seconds, is_skipped };
            assert_eq!(found, expected, "{local}");
        }
    }

    /// Every hour of 40 years in some zones: what the clocks show leads back to the hour, or to the hour
    /// before the clocks were set back.
    #[test]
    fn what_clocks_show_leads_back_to_the_instant() {
        for name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"] {
            let zone = Zone::find(name).expect("a zone");
            for hour in (0..40 * 365 * 24).step_by(7).chain(475_000..476_000) {
                let instant = Temporal::instant(hour * 3600 + 1, 0, 0);
                let shown = zone.date_time_of(instant).parts();
                let (back, is_skipped) = zone.instant_of(&shown, 0).expect("in the range");
                assert!(!is_skipped, "{name} {hour}");
                let distance = instant.instant_seconds() - back.instant_seconds();
                assert!([0, 1800, 3600].contains(&distance), "{name} {hour}: {distance}");
            }
        }
    }
}
