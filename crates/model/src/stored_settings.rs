//! The values of SET PERSIST as they lie on disk: JSON in a pair file (`docs/format.md`, "Settings").

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stored_value::StoredValue;
use crate::value::Value;

/// The version that is written.
pub const SETTINGS_FORMAT_VERSION: u32 = 1;

/// The use of the pair file `settings`, as in its header.
pub const SETTINGS_USE: u16 = 2;

/// The persisted values of global variables, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersistedSettings {
    /// The value that each variable gets at the start of the node. Names are in lower case.
    pub values: BTreeMap<Box<str>, Value>,
}

/// Why stored bytes are not settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredSettingsError {
    /// The bytes have a version that this program does not know.
    UnknownVersion(u32),
    /// The bytes do not describe settings.
    Invalid(Box<str>),
}

impl fmt::Display for StoredSettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredSettingsError::UnknownVersion(version) => {
                write!(formatter, "the persisted settings have the unknown version {version}")
            }
            StoredSettingsError::Invalid(message) => write!(formatter, "the persisted settings are invalid: {message}"),
        }
    }
}

impl std::error::Error for StoredSettingsError {}

impl PersistedSettings {
    /// The content of the pair file.
    pub fn encode(&self) -> Vec<u8> {
        let values = self.values.iter().map(|(name, value)| (name.clone(), StoredValue::from(value)));
        let stored = StoredSettings { format: SETTINGS_FORMAT_VERSION, values: values.collect() };
        // Encoding structures of strings and numbers cannot fail.
        serde_json::to_vec(&stored).expect("persisted settings are JSON")
    }

    /// The settings that the content of the pair file describes. The caller checks whether the variables
    /// exist and accept the values.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not settings.
    pub fn decode(bytes: &[u8]) -> Result<PersistedSettings, StoredSettingsError> {
        let invalid = |error: serde_json::Error| StoredSettingsError::Invalid(error.to_string().into());
        // The version decides how the other fields are read, so read only the version first.
        let StoredVersion { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format != SETTINGS_FORMAT_VERSION {
            return Err(StoredSettingsError::UnknownVersion(format));
        }
        let stored: StoredSettings = serde_json::from_slice(bytes).map_err(invalid)?;
        let mut values = BTreeMap::new();
        for (name, value) in stored.values {
            let Ok(value) = Value::try_from(value) else {
                return Err(StoredSettingsError::Invalid(format!("the value of {name} has a wrong form").into()));
            };
            values.insert(name, value);
        }
        Ok(PersistedSettings { values })
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSettings {
    format: u32,
    values: BTreeMap<Box<str>, StoredValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values: &[(&str, Value)]) -> PersistedSettings {
        PersistedSettings { values: values.iter().map(|(name, value)| ((*name).into(), value.clone())).collect() }
    }

    #[test]
    fn settings_decode_to_themselves() {
        let kinds = [
            ("autocommit", Value::Int(-1)),
            ("max_connections", Value::UInt(u64::MAX)),
            ("long_query_time", Value::Double(0.1)),
            ("sql_mode", Value::Bytes(b"STRICT_TRANS_TABLES,\xff".to_vec())),
            ("character_set_results", Value::Null),
        ];
        for settings in [settings(&kinds), settings(&[])] {
            assert_eq!(PersistedSettings::decode(&settings.encode()), Ok(settings));
        }
    }

    /// The text of release 0.1. It must be read by every later release.
    #[test]
    fn the_stored_form_does_not_change() {
        let text = r#"{"format":1,"values":{"max_connections":{"uint":7},"sql_mode":{"bytes":"41"}}}"#;
        let expected = settings(&[("max_connections", Value::UInt(7)), ("sql_mode", Value::Bytes(b"A".to_vec()))]);
        assert_eq!(PersistedSettings::decode(text.as_bytes()), Ok(expected.clone()));
        assert_eq!(expected.encode(), text.as_bytes());
    }

    #[test]
    fn text_that_is_no_setting_is_refused() {
        let refused = |text: &str| PersistedSettings::decode(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused(r#"{"format":2}"#), "the persisted settings have the unknown version 2");
        assert!(refused("").starts_with("the persisted settings are invalid"));
        assert!(refused(r#"{"format":1,"values":{},"later":1}"#).contains("unknown field"));
        assert!(refused(r#"{"format":1,"values":{"a":{"bytes":"4"}}}"#).ends_with("the value of a has a wrong form"));
    }
}
