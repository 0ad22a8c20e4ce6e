use jiff::civil::{Date, DateTime, DateTimeRound};
use jiff::{RoundMode, SignedDuration, Span, Unit};
use proptest::prelude::*;

use super::*;

fn text(value: Temporal) -> String {
    let mut out = Vec::new();
    value.append_text(&mut out);
    String::from_utf8(out).unwrap()
}

/// The value that a text is as a DATETIME with its own digits, or the name of a defect.
fn read(input: &str, rules: DateRules) -> String {
    shown(parse_date_time(input.as_bytes(), rules))
}

fn shown(read: Read) -> String {
    let mut out = match read.parts {
        Some(parts) => {
            let kind = if read.kind == TemporalKind::Time { TemporalKind::Time } else { TemporalKind::DateTime };
            text(Temporal::from_parts(kind, if parts.microsecond > 0 { 6 } else { 0 }, &parts))
        }
        None => "none".to_owned(),
    };
    for (is_set, name) in [
        (read.defects.truncated, " truncated"),
        (read.defects.out_of_range, " range"),
        (read.defects.zero_date, " zero"),
        (read.defects.zero_in_date, " zero-in"),
    ] {
        out.push_str(if is_set { name } else { "" });
    }
    out
}

#[test]
fn texts_are_read_as_mysql_reads_them() {
    let cases = [
        ("2024-02-29 12:34:56", "2024-02-29 12:34:56"),
        ("2024-02-29T12:34:56.5", "2024-02-29 12:34:56.500000"),
        ("2024-2-9 1:2:3", "2024-02-09 01:02:03"),
        ("24-2-9", "2024-02-09 00:00:00"),
        ("70.1.1", "1970-01-01 00:00:00"),
        ("69@1@1", "2069-01-01 00:00:00"),
        ("20240229", "2024-02-29 00:00:00"),
        ("240229", "2024-02-29 00:00:00"),
        ("20240229123456", "2024-02-29 12:34:56"),
        ("240229123456.25", "2024-02-29 12:34:56.250000"),
        ("  2024-02-29  ", "2024-02-29 00:00:00"),
        ("2024-02-29 10", "2024-02-29 10:00:00"),
        ("2024-02-29 10:11", "2024-02-29 10:11:00"),
        ("2024-02-29 x", "2024-02-29 00:00:00 truncated"),
        ("2023-02-29", "none range"),
        ("2024-13-01", "none truncated"),
        ("2024-01-01 24:00:00", "none truncated"),
        ("2024-01-00", "none zero-in"),
        ("0000-00-00", "none zero"),
        ("", "none truncated"),
        ("x", "none truncated"),
        ("2024", "none truncated"),
        ("2024-01", "none truncated"),
        ("10000-01-01", "none truncated"),
        ("67560-01-01", "none truncated"),
    ];
    for (input, expected) in cases {
        assert_eq!(read(input, DateRules::DEFAULT), expected, "{input:?}");
    }
    assert_eq!(read("0000-00-00", DateRules::FUZZY), "0000-00-00 00:00:00");
    assert_eq!(read("2024-00-00", DateRules::FUZZY), "2024-00-00 00:00:00");
    let invalid = DateRules { allows_invalid: true, ..DateRules::DEFAULT };
    assert_eq!(read("2023-02-31", invalid), "2023-02-31 00:00:00");
}

#[test]
fn times_are_read_as_mysql_reads_them() {
    let cases = [
        ("12:34:56", "12:34:56"),
        ("-12:34:56.25", "-12:34:56.250000"),
        ("12:34", "12:34:00"),
        ("1 2:03:04", "26:03:04"),
        ("2 10", "58:00:00"),
        ("123456", "12:34:56"),
        ("56", "00:00:56"),
        ("838:59:59", "838:59:59"),
        ("839:00:00", "838:59:59 range"),
        ("-900:00:00", "-838:59:59 range"),
        ("12:60:00", "none range"),
        ("12:34:56x", "12:34:56 truncated"),
        ("x", "none truncated"),
        ("2024-02-29 12:34:56", "12:34:56"),
        ("20240229123456", "12:34:56"),
        ("2024-02-29 25:00:00", "none truncated"),
        ("1 23:59:59.5", "47:59:59.500000"),
        ("1e2", "none truncated"),
        ("12.5e-3", "none truncated"),
        ("1e", "00:00:01 truncated"),
    ];
    for (input, expected) in cases {
        assert_eq!(shown(parse_time(input.as_bytes(), None)), expected, "{input:?}");
    }
}

#[test]
fn numbers_are_read_as_mysql_reads_them() {
    let cases = [
        (20_240_229, "2024-02-29 00:00:00"),
        (240_229, "2024-02-29 00:00:00"),
        (700_101, "1970-01-01 00:00:00"),
        (20_240_229_123_456, "2024-02-29 12:34:56"),
        (240_229_123_456, "2024-02-29 12:34:56"),
        (100, "none truncated"),
        (20_241_301, "none truncated"),
        (20_230_229, "none range"),
        (0, "none zero"),
        (-1, "none truncated"),
    ];
    for (number, expected) in cases {
        assert_eq!(shown(parse_number(number, 0, DateRules::DEFAULT)), expected, "{number}");
    }
    let time = |number: i64| shown(parse_time_number(number, number < 0, 0));
    assert_eq!(time(123_456), "12:34:56");
    assert_eq!(time(-8_385_959), "-838:59:59");
    assert_eq!(time(8_390_000), "838:59:59 range");
    assert_eq!(time(6_000), "none range");
}

#[test]
fn seconds_are_rounded_half_up_with_their_carry() {
    let read = parse_date_time(b"2023-12-31 23:59:59.9999995", DateRules::DEFAULT);
    let at = |digits: u8| {
        let (parts, _) = rounded(TemporalKind::DateTime, read.parts.unwrap(), read.nanoseconds, digits);
        text(Temporal::from_parts(TemporalKind::DateTime, digits, &parts.unwrap()))
    };
    assert_eq!(at(0), "2024-01-01 00:00:00");
    assert_eq!(at(6), "2024-01-01 00:00:00.000000");
    let last = parse_date_time(b"9999-12-31 23:59:59.5", DateRules::DEFAULT).parts.unwrap();
    assert_eq!(rounded(TemporalKind::DateTime, last, 0, 0), (None, true));
    let most = parse_time(b"838:59:58.5", None).parts.unwrap();
    assert_eq!(rounded(TemporalKind::Time, most, 0, 0).0.map(|parts| parts.second), Some(59));
}

#[test]
fn every_day_has_the_number_and_the_successor_that_jiff_gives_it() {
    let epoch = days_of_civil(1, 1, 1);
    let mut day = Date::constant(1, 1, 1);
    assert_eq!(Date::constant(1970, 1, 1).duration_since(day), SignedDuration::from_hours(-24 * epoch));
    for number in epoch.. {
        let (year, month) = (day.year() as u16, day.month() as u8);
        assert_eq!(days_of_civil(year.into(), month, day.day() as u8), number, "{day}");
        assert_eq!(civil_of_days(number), (year.into(), month, day.day() as u8), "{number}");
        if day.day() == 1 {
            assert_eq!(days_in_month(year, month), day.days_in_month() as u8, "{day}");
            assert_eq!(is_leap_year(year), day.in_leap_year(), "{day}");
        }
        match day.tomorrow() {
            Ok(next) => day = next,
            Err(_) => break,
        }
    }
    assert_eq!(day, Date::constant(9999, 12, 31));
}

/// Any moment that both MySQL and jiff have.
fn moment() -> impl Strategy<Value = DateTime> {
    let seconds = prop_oneof![-62_135_596_800i64..=253_402_300_799, Just(-62_135_596_800), Just(253_402_300_799)];
    let nanoseconds = prop_oneof![0..1_000_000_000i32, Just(999_999_999), Just(999_999_500), 499_999_990..500_000_010];
    (seconds, nanoseconds).prop_map(|(seconds, nanoseconds)| {
        DateTime::constant(1970, 1, 1, 0, 0, 0, 0) + SignedDuration::new(seconds, nanoseconds)
    })
}

/// The parts, and the nanoseconds beyond its microseconds.
fn parts_of(moment: DateTime) -> (Parts, u32) {
    let nanoseconds = moment.subsec_nanosecond() as u32;
    let parts = Parts {
        negative: false,
        year: moment.year() as u16,
        month: moment.month() as u8,
        day: moment.day() as u8,
        hour: moment.hour() as u16,
        minute: moment.minute() as u8,
        second: moment.second() as u8,
        microsecond: nanoseconds / 1_000,
    };
    (parts, nanoseconds % 1_000)
}

proptest! {
    #[test]
    fn a_moment_is_printed_read_and_ordered_as_jiff_does(left in moment(), right in moment()) {
        let packed = |moment: DateTime| Temporal::from_parts(TemporalKind::DateTime, 6, &parts_of(moment).0);
        let truncated = |moment: DateTime| {
            moment.round(DateTimeRound::new().smallest(Unit::Microsecond).mode(RoundMode::Trunc)).unwrap()
        };
        let value = packed(left);
        prop_assert!(value.is_valid());
        prop_assert_eq!(text(value), truncated(left).strftime("%Y-%m-%d %H:%M:%S.%6f").to_string());
        let read = parse_date_time(left.strftime("%Y-%m-%dT%H:%M:%S.%9f").to_string().as_bytes(), DateRules::DEFAULT);
        let (parts, nanoseconds) = parts_of(left);
        // As in MySQL, digits behind the seventh do not count.
        prop_assert_eq!((read.parts, read.nanoseconds), (Some(parts), nanoseconds / 100 * 100));
        prop_assert_eq!(value.packed.cmp(&packed(right).packed), truncated(left).cmp(&truncated(right)));
    }

    #[test]
    fn seconds_are_added_as_jiff_adds_them(
        start in moment(),
        seconds in prop_oneof![-320_000_000_000i64..320_000_000_000, -100_000i64..100_000],
    ) {
        let days = Span::new().days(seconds.div_euclid(86_400));
        let rest = SignedDuration::from_secs(seconds.rem_euclid(86_400));
        let sum = start.checked_add(days).and_then(|day| day.checked_add(rest));
        let expected = sum.ok().filter(|sum| sum.year() >= 1);
        let sum = add_seconds(&parts_of(start).0, seconds).filter(|parts| parts.year >= 1);
        prop_assert_eq!(sum, expected.map(|sum| parts_of(sum).0));
    }

    #[test]
    fn fractions_are_rounded_as_jiff_rounds_them(start in moment(), digits in 0u8..=6) {
        let unit = match digits {
            0 => Unit::Second,
            1..=3 => Unit::Millisecond,
            _ => Unit::Microsecond,
        };
        let increment = [1, 100, 10, 1, 100, 10, 1][usize::from(digits)];
        let round = DateTimeRound::new().smallest(unit).increment(increment).mode(RoundMode::HalfExpand);
        let (parts, nanoseconds) = parts_of(start);
        let (sum, _) = rounded(TemporalKind::DateTime, parts, nanoseconds, digits);
        prop_assert_eq!(sum, start.round(round).ok().map(|sum| parts_of(sum).0));
    }

    #[test]
    fn a_printed_value_reads_back(year in 0u16..10_000, month in 1u8..=12, day in 1u8..=31, of_day in 0u32..86_400, microsecond in 0u32..1_000_000) {
        let day = day.min(days_in_month(year, month));
        let (hour, minute, second) = ((of_day / 3600) as u16, (of_day / 60 % 60) as u8, (of_day % 60) as u8);
        let parts = Parts { negative: false, year, month, day, hour, minute, second, microsecond };
        let value = Temporal::from_parts(TemporalKind::DateTime, 6, &parts);
        prop_assert_eq!(value.parts(), parts);
        prop_assert_eq!(parse_date_time(text(value).as_bytes(), DateRules::FUZZY).parts, Some(parts));
        let time = Parts { year: 0, month: 0, day: 0, ..parts };
        let value = Temporal::from_parts(TemporalKind::Time, 6, &parts);
        prop_assert_eq!(parse_time(text(value).as_bytes(), None).parts, Some(time));
        let later = add_seconds(&parts, 86_400).map(|parts| text(Temporal::from_parts(TemporalKind::Date, 0, &parts)));
        let days = days_of_civil(year.into(), month, day);
        let (next_year, next_month, next_day) = civil_of_days(days + 1);
        prop_assert_eq!(later, (next_year < 10_000).then(|| format!("{next_year:04}-{next_month:02}-{next_day:02}")));
    }

    #[test]
    fn no_text_stops_the_reader(input in "[0-9TtZ :.@-]{0,30}|.{0,12}") {
        for rules in [DateRules::DEFAULT, DateRules::FUZZY] {
            for read in [parse_date_time(input.as_bytes(), rules), parse_time(input.as_bytes(), None)] {
                if let Some(parts) = read.parts {
                    let kind = if read.kind == TemporalKind::Time { TemporalKind::Time } else { TemporalKind::DateTime };
                    prop_assert!(Temporal::from_parts(kind, 6, &parts).is_valid(), "{:?}", parts);
                }
            }
        }
    }
}

#[test]
fn day_zone_and_locale_of_rules_are_apart() {
    let zone = Zone::find("+02:00").expect("a zone");
    let german = crate::locale::Locale::find("de_DE").expect("a locale");
    let rules = ValueRules::new(DateRules::DEFAULT, zone).in_locale(german).at(1_700_000_000_000_000);
    let dates = DateRules { zone: Some(zone), ..DateRules::DEFAULT };
    assert_eq!((rules.locale(), rules.zone(), rules.dates()), (german, zone, dates));
    assert_eq!(rules.today(), Temporal::date(2023, 11, 15));
    assert_eq!(rules.at(0).locale(), german);
    assert_eq!(rules.in_locale(crate::locale::Locale::ENGLISH).today(), rules.today());
    assert_eq!(ValueRules::DEFAULT.locale(), crate::locale::Locale::ENGLISH);
}
