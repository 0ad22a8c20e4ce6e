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
        assert_eq!(shown(parse_time(input.as_bytes())), expected, "{input:?}");
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
    let most = parse_time(b"838:59:58.5").parts.unwrap();
    assert_eq!(rounded(TemporalKind::Time, most, 0, 0).0.map(|parts| parts.second), Some(59));
}

proptest! {
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
        prop_assert_eq!(parse_time(text(value).as_bytes()).parts, Some(time));
        let later = add_seconds(&parts, 86_400).map(|parts| text(Temporal::from_parts(TemporalKind::Date, 0, &parts)));
        let days = days_of_civil(year.into(), month, day);
        let (next_year, next_month, next_day) = civil_of_days(days + 1);
        prop_assert_eq!(later, (next_year < 10_000).then(|| format!("{next_year:04}-{next_month:02}-{next_day:02}")));
    }

    #[test]
    fn no_text_stops_the_reader(input in "[0-9TtZ :.@-]{0,30}|.{0,12}") {
        for rules in [DateRules::DEFAULT, DateRules::FUZZY] {
            for read in [parse_date_time(input.as_bytes(), rules), parse_time(input.as_bytes())] {
                if let Some(parts) = read.parts {
                    let kind = if read.kind == TemporalKind::Time { TemporalKind::Time } else { TemporalKind::DateTime };
                    prop_assert!(Temporal::from_parts(kind, 6, &parts).is_valid(), "{:?}", parts);
                }
            }
        }
    }
}
