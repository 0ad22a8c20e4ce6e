//! VALIDATE_PASSWORD_STRENGTH.

use junctor_model::error::Result;
use junctor_model::password::strength::StrengthRules;
use junctor_model::value::ValueRef;

use super::{Call, Function, Setting, function, resolve_integer};

/// The argument is the password. The rules and the user follow.
pub(super) const TABLE: &[Function] =
    &[function("VALIDATE_PASSWORD_STRENGTH", 1, 1, resolve_integer::<10>, strength).with(RULES)];

const RULES: &[Setting] = &[
    Setting::Variable("validate_password.enabled"),
    Setting::Variable("validate_password.length"),
    Setting::Variable("validate_password.mixed_case_count"),
    Setting::Variable("validate_password.number_count"),
    Setting::Variable("validate_password.special_char_count"),
    Setting::Variable("validate_password.check_user_name"),
    Setting::Session("USER"),
];

/// 0 while the rules are off, as without the component in MySQL.
fn strength(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(password) = call.text(0)? else { return Ok(ValueRef::Null) };
    let setting = |place| Ok::<_, Box<junctor_model::error::Error>>(call.integer(place)?.unwrap_or(0) as u64);
    if setting(1)? == 0 {
        return Ok(ValueRef::Int(0));
    }
    let rules = StrengthRules {
        length: setting(2)?,
        mixed_case: setting(3)?,
        numbers: setting(4)?,
        specials: setting(5)?,
        checks_user_name: setting(6)? != 0,
        checks_length_only: false,
    };
    let user = call.text(7)?.unwrap_or_default();
    let user = String::from_utf8_lossy(user);
    let user = user.rsplit_once('@').map_or(&*user, |(user, _)| user);
    Ok(ValueRef::Int(rules.strength(&String::from_utf8_lossy(password), user)))
}
