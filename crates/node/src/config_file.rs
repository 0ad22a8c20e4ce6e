//! Configuration files: TOML, one key for each setting. Errors name the file, the line, the key and the
//! allowed values.

use std::fmt;
use std::path::Path;

use junctor_model::error::ErrorCode;
use junctor_sql::check_start_variable;
use toml::de::{DeTable, DeValue};

use crate::setting::{NodeConfig, Setting, SettingValue};

/// An error in a configuration, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Reads a file into the configuration.
///
/// # Errors
/// The file cannot be read, or one of its lines is wrong. The configuration is then half changed and must not
/// be used.
pub fn read_file(path: &Path, config: &mut NodeConfig) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError(format!("{}: {error}", path.display())))?;
    read_text(&path.display().to_string(), &text, config)
}

/// Reads the text of a file called `name`.
///
/// # Errors
/// As [`read_file`].
pub fn read_text(name: &str, text: &str, config: &mut NodeConfig) -> Result<(), ConfigError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        ConfigError(format!("{name}:{line}: {}", error.message()))
    })?;
    for (key, value) in table.get_ref() {
        let line = line_of(text, key.span().start);
        let name_of_key = key.get_ref();
        let Some(setting) = Setting::named(name_of_key) else {
            if let Some(text) = variable_text(value.get_ref())
                && is_variable(name_of_key)
            {
                check_start_variable(name_of_key, &text)
                    .map_err(|error| ConfigError(format!("{name}:{line}: {}", error.message)))?;
                config.variables.push((name_of_key.to_string(), text));
                continue;
            }
            return Err(ConfigError(format!(
                "{name}:{line}: unknown setting '{name_of_key}'{}",
                suggestion(name_of_key)
            )));
        };
        let value = setting_value(value.get_ref());
        let applied = value.ok_or_else(|| setting.refusal()).and_then(|value| setting.apply(&value, config));
        applied.map_err(|refusal| ConfigError(format!("{name}:{line}: {refusal}")))?;
    }
    Ok(())
}

/// Whether a system variable has this name.
fn is_variable(name: &str) -> bool {
    check_start_variable(name, "").err().is_none_or(|error| error.code != ErrorCode::UnknownSystemVariable)
}

/// The value of a system variable, as text.
fn variable_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Float(number) => Some(number.as_str().to_string()),
        other => match setting_value(other)? {
            SettingValue::Text(text) => Some(text),
            SettingValue::Integer(number) => Some(number.to_string()),
            SettingValue::Boolean(value) => Some(value.to_string()),
            SettingValue::List(_) => None,
        },
    }
}

fn setting_value(value: &DeValue<'_>) -> Option<SettingValue> {
    match value {
        DeValue::String(text) => Some(SettingValue::Text(text.to_string())),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(SettingValue::Integer)
        }
        DeValue::Boolean(value) => Some(SettingValue::Boolean(*value)),
        DeValue::Array(values) => {
            let text = |value: &toml::Spanned<DeValue<'_>>| match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            };
            values.iter().map(text).collect::<Option<Vec<_>>>().map(SettingValue::List)
        }
        _ => None,
    }
}

/// A hint for a key that differs from a setting only in case or underscores.
fn suggestion(key: &str) -> String {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    let found = crate::setting::SETTINGS.iter().find(|setting| plain(setting.name) == plain(key));
    found.map_or(String::new(), |setting| format!("; did you mean '{}'?", setting.name))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let mut config = NodeConfig::default();
        read_text("node.toml", text, &mut config).expect_err("the text is wrong").0
    }

    #[test]
    fn a_file_sets_the_settings_that_it_names() {
        let mut config = NodeConfig::default();
        let text = "port = 3307\nTotalMemory = \"1G\"\nusers = [\"app:secret\"]\ncpu_binding = false\n";
        read_text("node.toml", text, &mut config).expect("the text is right");
        assert_eq!(config.port, 3307);
        assert_eq!(config.total_memory_bytes, Some(1 << 30));
        assert_eq!(config.users, [("app".to_string(), "secret".to_string())]);
        assert!(!config.cpu_binding);
    }

    #[test]
    fn a_file_names_system_variables_that_are_checked_as_set_global_checks_them() {
        let mut config = NodeConfig::default();
        let text = "mandatory_roles = \"'r'@'%', s\"\npassword_history = 3\nlong_query_time = 0.5\n\
                    partial_revokes = true\n\"validate_password.policy\" = \"low\"\nlog_output = \"TABLE\"\n";
        read_text("node.toml", text, &mut config).expect("the text is right");
        assert_eq!(config.variables.len(), 6);
        for (text, message) in [
            ("mandatory_roles = \"'r\"", "Variable 'mandatory_roles' can't be set to the value of ''r'"),
            ("password_history = -1", "Variable 'password_history' can't be set to the value of '-1'"),
            ("password_history = \"many\"", "Incorrect argument type to variable 'password_history'"),
            ("partial_revokes = 7", "Variable 'partial_revokes' can't be set to the value of '7'"),
            (
                "\"validate_password.policy\" = \"none\"",
                "Variable 'validate_password.policy' can't be set to the value of 'none'",
            ),
            (
                "default_password_lifetime = 100000",
                "Variable 'default_password_lifetime' can't be set to the value of '100000'",
            ),
            ("log_output = \"DISK\"", "Variable 'log_output' can't be set to the value of 'DISK'"),
            ("version = \"9\"", "Variable 'version' is a read only variable"),
            ("mandatory_roles = [\"r\"]", "unknown setting 'mandatory_roles'"),
        ] {
            assert_eq!(error(text), format!("node.toml:1: {message}"));
        }
    }

    #[test]
    fn errors_name_file_line_key_and_range() {
        assert_eq!(
            error("\nport = 70000\n"),
            "node.toml:2: wrong value for 'port'; allowed: a whole number from 0 to 65535"
        );
        assert_eq!(
            error("total_memory = 5\n"),
            "node.toml:1: unknown setting 'total_memory'; did you mean 'TotalMemory'?"
        );
        assert_eq!(
            error("port = true\n"),
            "node.toml:1: wrong value for 'port'; allowed: a whole number from 0 to 65535"
        );
        assert!(error("a = 1\nport = = 3\n").starts_with("node.toml:2: "));
        assert_eq!(
            error("FileSystemPathDD = true\n"),
            "node.toml:1: 'FileSystemPathDD' would have no effect: columns on disk are not supported yet; remove the setting"
        );
    }
}
