//! FORMAT: a number with separators between groups of digits.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::row_encoding::append_double_fixed;
use junctor_model::scratch::excerpt;
use junctor_model::temporal::TemporalKind;
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function, generated_text};
use crate::decimal::{self, DECIMAL_SCALE_MAX};
use crate::evaluate::to_double;
use crate::program::Expression;

pub(super) const TABLE: &[Function] = &[function("FORMAT", 2, 3, resolve, format).of_numbers()];

/// How a locale writes numbers: the decimal point, the separator of groups, and whether all groups but the
/// last have two digits instead of three.
struct Locale {
    point: u8,
    separator: Option<u8>,
    is_indian: bool,
}

const POINT_ONLY: &[&str] = &["ar_SA", "sr_RS"];
const COMMA_ONLY: &[&str] = &[
    "fr_FR", "it_IT", "nl_NL", "pt_BR", "pt_PT", "pl_PL", "el_GR", "de_AT", "fr_CH", "fr_BE", "fr_CA", "fr_LU",
    "ca_ES", "eu_ES", "gl_ES", "nl_BE", "hr_HR", "sl_SI",
];
const COMMA_AND_POINTS: &[&str] = &[
    "de_DE", "es_ES", "da_DK", "nb_NO", "no_NO", "hu_HU", "uk_UA", "tr_TR", "de_BE", "de_LU", "es_AR", "es_CL",
    "ro_RO", "sq_AL", "lt_LT", "mn_MN", "id_ID", "vi_VN", "is_IS", "fo_FO", "be_BY", "es_BO", "es_CO", "es_EC",
    "es_PY", "es_UY", "es_VE", "ru_UA",
];
const COMMA_AND_SPACES: &[&str] =
    &["sv_SE", "fi_FI", "cs_CZ", "ru_RU", "sk_SK", "et_EE", "lv_LV", "mk_MK", "es_CR", "sv_FI", "bg_BG"];
const POINT_AND_COMMAS: &[&str] = &[
    "en_US", "ja_JP", "zh_CN", "zh_TW", "ko_KR", "he_IL", "en_GB", "en_ZA", "en_CA", "en_AU", "en_NZ", "en_PH",
    "en_ZW", "es_MX", "nn_NO", "ms_MY", "hi_IN", "gu_IN", "th_TH", "ur_PK", "ar_AE", "ar_BH", "ar_DZ", "ar_EG",
    "ar_IN", "ar_IQ", "ar_JO", "ar_KW", "ar_LB", "ar_LY", "ar_MA", "ar_OM", "ar_QA", "ar_SD", "ar_SY", "ar_TN",
    "ar_YE", "es_DO", "es_GT", "es_HN", "es_NI", "es_PA", "es_PE", "es_PR", "es_SV", "es_US", "zh_HK",
];

/// `None` for an unknown locale.
fn locale(name: &str) -> Option<Locale> {
    let among = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let locale = |point, separator| Some(Locale { point, separator, is_indian: false });
    if among(POINT_AND_COMMAS) {
        locale(b'.', Some(b','))
    } else if among(COMMA_AND_POINTS) {
        locale(b',', Some(b'.'))
    } else if among(COMMA_ONLY) {
        locale(b',', None)
    } else if among(COMMA_AND_SPACES) {
        locale(b',', Some(b' '))
    } else if among(POINT_ONLY) {
        locale(b'.', None)
    } else if among(&["de_CH"]) {
        locale(b'.', Some(b'\''))
    } else if among(&["it_CH", "rm_CH"]) {
        locale(b',', Some(b'\''))
    } else if among(&["en_IN", "ta_IN", "te_IN"]) {
        Some(Locale { point: b'.', separator: Some(b','), is_indian: true })
    } else {
        None
    }
}

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let digits = arguments[0].result.length;
    let length = digits.saturating_add(digits / 3 + 1).saturating_add(u32::from(DECIMAL_SCALE_MAX)).saturating_add(2);
    // A double may have 309 digits before the point, each third with a separator.
    let length = if arguments[0].result.is_exact() { length } else { length.max(450) };
    let mut resolved = generated_text(name, arguments, length)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn format(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (value, Some(places)) = (call.value(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let places = places.clamp(0, DECIMAL_SCALE_MAX.into()) as u8;
    let name = if call.count() > 2 { call.text(2)? } else { Some(b"en_US".as_slice()) };
    let locale = match name.map(|name| (name, std::str::from_utf8(name).ok().and_then(locale))) {
        Some((_, Some(locale))) => locale,
        unknown => {
            let shown = unknown.map_or_else(|| "NULL".into(), |(name, _)| excerpt(name));
            call.scratch().note(ErrorCode::UnknownLocale, || format!("Unknown locale: '{shown}'"));
            Locale { point: b'.', separator: Some(b','), is_indian: false }
        }
    };
    let exact = match value {
        ValueRef::Null => return Ok(ValueRef::Null),
        ValueRef::Int(value) => Some(decimal::from_integer(value.into())),
        ValueRef::UInt(value) => Some(decimal::from_integer(value.into())),
        ValueRef::Decimal(value) => Some(value),
        ValueRef::Bit(bit) => Some(decimal::from_integer(bit.number.into())),
        ValueRef::Temporal(year) if year.kind == TemporalKind::Year => {
            Some(decimal::from_integer(year.whole_number().into()))
        }
        _ => None,
    };
    let mut digits = Vec::new();
    match exact.map(|value| decimal::with_scale(value, places).unwrap_or(value)) {
        Some(value) => value.append_text(&mut digits),
        None => {
            let number = to_double(value, call.scratch())?;
            let rounded = super::round::round_double(number, places.into(), false);
            append_double_fixed(rounded, places, &mut digits);
        }
    }
    call.build(|buffer| append_grouped(&digits, &locale, buffer))
}

fn append_grouped(digits: &[u8], locale: &Locale, buffer: &mut Vec<u8>) {
    let (sign, digits) = match digits.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = digits.split_at(point);
    if sign && digits.iter().any(|byte| !matches!(byte, b'0' | b'.')) {
        buffer.push(b'-');
    }
    for (at, digit) in whole.iter().enumerate() {
        let rest = whole.len() - at;
        let ends_group = match locale.is_indian {
            true => rest == 3 || rest > 3 && rest % 2 == 1,
            false => rest.is_multiple_of(3),
        };
        if let Some(separator) = locale.separator.filter(|_| at > 0 && ends_group) {
            buffer.push(separator);
        }
        buffer.push(*digit);
    }
    if let Some(fraction) = fraction.strip_prefix(b".") {
        buffer.push(locale.point);
        buffer.extend_from_slice(fraction);
    }
}
