//! DATE, TIME, DATETIME and TIMESTAMP.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType};
use crate::error::Result;
use crate::row_encoding::{append_text, column_flag, wire_type};
use crate::scratch::{Scratch, excerpt, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::{
    DateRules, Defects, Parts, Read, Temporal, TemporalKind, Zone, fitted, number_parts, parse_date_time, parse_number,
    parse_time, parse_time_number, rounded,
};
use crate::value::{Value, ValueRef};

/// One of the four types.
pub(super) struct TemporalType {
    kind: TemporalKind,
    name: &'static str,
    wire_code: u8,
    /// Characters without a fraction.
    length: u32,
}

pub(super) static DATE: TemporalType =
    TemporalType { kind: TemporalKind::Date, name: "date", wire_code: wire_type::DATE, length: 10 };
pub(super) static TIME: TemporalType =
    TemporalType { kind: TemporalKind::Time, name: "time", wire_code: wire_type::TIME, length: 10 };
pub(super) static DATETIME: TemporalType =
    TemporalType { kind: TemporalKind::DateTime, name: "datetime", wire_code: wire_type::DATETIME, length: 19 };
pub(super) static TIMESTAMP: TemporalType =
    TemporalType { kind: TemporalKind::Timestamp, name: "timestamp", wire_code: wire_type::TIMESTAMP, length: 19 };

impl DataType {
    /// DATE.
    pub const fn date() -> DataType {
        DataType::plain(Family::Date)
    }

    /// TIME with digits after the point of the seconds.
    pub const fn time(digits: u8) -> DataType {
        let mut data_type = DataType::plain(Family::Time);
        data_type.scale = digits;
        data_type
    }

    /// DATETIME with digits after the point of the seconds.
    pub const fn date_time(digits: u8) -> DataType {
        let mut data_type = DataType::plain(Family::DateTime);
        data_type.scale = digits;
        data_type
    }

    /// TIMESTAMP with digits after the point of the seconds.
    pub const fn timestamp(digits: u8) -> DataType {
        let mut data_type = DataType::plain(Family::Timestamp);
        data_type.scale = digits;
        data_type
    }
}

impl TypeDescriptor for TemporalType {
    fn name(&self, _: &DataType) -> &'static str {
        self.name
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        if data_type.scale > 0 {
            out.push_str(&format!("({})", data_type.scale));
        }
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Temporal(self.kind)
    }

    fn packed(&self, data_type: &DataType) -> Option<Packed> {
        Some(match self.kind {
            TemporalKind::Time => Packed::Time(data_type.scale),
            TemporalKind::DateTime => Packed::DateTime(data_type.scale),
            TemporalKind::Timestamp => Packed::Timestamp(data_type.scale),
            _ => Packed::Date,
        })
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let fraction = if data_type.scale > 0 { 1 + u32::from(data_type.scale) } else { 0 };
        let flags = column_flag::BINARY;
        WireType { code: self.wire_code, length: self.length + fraction, decimals: data_type.scale, flags }
    }

    fn implicit_default(&self, data_type: &DataType) -> Value {
        Value::Temporal(self.zero(data_type))
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        if let ValueRef::Temporal(instant) = value
            && (instant.kind, self.kind) == (TemporalKind::Timestamp, TemporalKind::Timestamp)
        {
            let (parts, _) = rounded(TemporalKind::DateTime, instant.parts(), 0, data_type.scale);
            if parts.is_some_and(|parts| parts.microsecond == instant.parts().microsecond) {
                return Ok(ValueRef::Temporal(Temporal { digits: data_type.scale, ..instant }));
            }
        }
        let rules = scratch.value_rules();
        let given = match scratch.in_session_zone(value) {
            ValueRef::Temporal(time) if time.kind == TemporalKind::Time && self.kind != TemporalKind::Time => {
                ValueRef::Temporal(scratch.on_this_day(time).unwrap_or(time))
            }
            // MySQL stores the text of a document.
            document @ ValueRef::Json(_) => ValueRef::Bytes(to_text(document, scratch)?),
            given => given,
        };
        // ALLOW_INVALID_DATES is not for TIMESTAMP.
        let dates = match self.kind {
            // A text with an offset is an instant, which the time of another zone than UTC may not tell.
            TemporalKind::Timestamp => DateRules { allows_invalid: false, zone: Some(Zone::UTC), ..rules.dates() },
            _ => rules.dates(),
        };
        let read = self.read(given, dates);
        let zone = if read.has_offset { Zone::UTC } else { rules.zone() };
        if read.defects.truncated || read.parts.is_none() || read.defects.out_of_range {
            self.report(&read.defects, value, target, scratch)?;
        }
        let Some(parts) = read.parts else { return Ok(ValueRef::Temporal(self.zero(data_type))) };
        let (stored, is_beyond) = match self.kind {
            TemporalKind::Date => (Some(parts), false),
            kind => fitted(rules, kind, parts, read.nanoseconds, data_type.scale),
        };
        let mut is_skipped = false;
        let stored = stored.and_then(|parts| match self.kind {
            TemporalKind::Timestamp if parts.has_no_date() && parts.has_no_time() => Some(self.zero(data_type)),
            TemporalKind::Timestamp => zone.instant_of(&parts, data_type.scale).map(|(instant, skips)| {
                is_skipped = skips;
                instant
            }),
            kind => Some(Temporal::from_parts(kind, data_type.scale, &parts)),
        });
        if is_beyond || stored.is_none() {
            self.report(&Defects { out_of_range: true, ..Defects::default() }, value, target, scratch)?;
        }
        if is_skipped {
            self.report(&Defects { skipped: true, ..Defects::default() }, value, target, scratch)?;
        }
        let loses_time = self.kind == TemporalKind::Date && !parts.has_no_time();
        // A number that is a day without a time has no seconds to which its fraction belongs.
        let loses_fraction = self.kind != TemporalKind::Time && read.kind == TemporalKind::Date && has_fraction(given);
        if loses_time || loses_fraction || (self.kind == TemporalKind::Time && !parts.has_no_date()) {
            target.note_truncation(scratch);
        }
        Ok(ValueRef::Temporal(stored.unwrap_or(self.zero(data_type))))
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        let digits = data_type.scale;
        match self.kind {
            TemporalKind::Time => StoredType::Time { digits },
            TemporalKind::DateTime => StoredType::Datetime { digits },
            TemporalKind::Timestamp => StoredType::Timestamp { digits },
            _ => StoredType::Date {},
        }
    }
}

/// Whether this is a number with digits after the point.
fn has_fraction(value: ValueRef<'_>) -> bool {
    let is_number = matches!(value, ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Float(_));
    is_number && number_parts(value).1 > 0
}

impl TemporalType {
    fn zero(&self, data_type: &DataType) -> Temporal {
        Temporal { kind: self.kind, digits: data_type.scale, packed: 0 }
    }

    fn read(&self, value: ValueRef<'_>, rules: DateRules) -> Read {
        let is_time = self.kind == TemporalKind::Time;
        match value {
            ValueRef::Temporal(value) if value.kind == TemporalKind::Time && !is_time => {
                // The day of the statement has no such time.
                let defects = Defects { truncated: true, ..Defects::default() };
                Read { parts: None, defects, ..Read::from_parts(self.kind, Parts::default()) }
            }
            ValueRef::Temporal(value) if value.kind != TemporalKind::Year => {
                Read::from_parts(self.kind, value.parts()).checked(if is_time { DateRules::FUZZY } else { rules })
            }
            ValueRef::Bytes(text) if is_time => parse_time(text, rules.zone),
            ValueRef::Bytes(text) => parse_date_time(text, rules),
            ValueRef::Choice(choice) => self.read(ValueRef::Bytes(&choice.to_choice().text), rules),
            number => {
                let (whole, nanoseconds, negative) = number_parts(number);
                match is_time {
                    true => parse_time_number(whole, negative, nanoseconds),
                    false => parse_number(if negative { whole.min(-1) } else { whole }, nanoseconds, rules),
                }
            }
        }
    }

    /// Error 1292, or the warning of a lenient mode: 1265, 1299 or 1264.
    #[cold]
    fn report(
        &self,
        defects: &Defects,
        value: ValueRef<'_>,
        target: &StoreTarget<'_>,
        scratch: &Scratch,
    ) -> Result<()> {
        if target.is_strict() {
            let name = if self.kind == TemporalKind::Timestamp { "datetime" } else { self.name };
            let mut text = Vec::new();
            append_text(value, &mut text);
            return target.wrong_temporal(name, &excerpt(&text));
        }
        match (defects.truncated, defects.skipped) {
            (true, _) => target.truncated(scratch),
            (false, true) => target.invalid_timestamp(scratch),
            (false, false) => target.out_of_range(scratch),
        }
    }
}
