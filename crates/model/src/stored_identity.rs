//! The identity of a data directory as it lies on disk: JSON in a pair file (`docs/format.md`, "Identity").

use std::fmt;

use serde::{Deserialize, Serialize};

/// The format version of a new data directory.
pub const DIRECTORY_FORMAT_VERSION: u32 = 1;

/// The use of the pair file `identity`, as in its header.
pub const IDENTITY_USE: u16 = 1;

/// A file of a directory that a restore has made and that no server has used yet, as one that may become that
/// of a node of a new cluster.
pub const RESTORED_FILE: &str = "restored";
/// The second line of that file, if the backup is one of a node alone: its tables are in no node group.
pub const RESTORED_NODE: &str = "node";

/// The properties of a data directory that never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The version of all formats in the directory.
    pub format: u32,
    /// Random number that identifies the log, chosen when the directory was made.
    pub log_id: u64,
    /// Size of the segments of the log, in bytes.
    pub segment_bytes: u64,
}

/// Why bytes are not the identity of a directory that this program can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// A later release has written the directory.
    UnknownVersion(u32),
    /// The bytes are not an identity.
    Invalid(Box<str>),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::UnknownVersion(version) => write!(
                formatter,
                "the data directory has format version {version}, and this program knows version \
                 {DIRECTORY_FORMAT_VERSION}; start the release that wrote it"
            ),
            IdentityError::Invalid(message) => {
                write!(formatter, "the identity is invalid: {message}; restore the directory from a backup")
            }
        }
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// The content of the pair file.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding a structure of numbers cannot fail.
        serde_json::to_vec(self).expect("an identity is JSON")
    }

    /// The identity that the content of the pair file describes.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not an identity.
    pub fn decode(bytes: &[u8]) -> Result<Identity, IdentityError> {
        let invalid = |error: serde_json::Error| IdentityError::Invalid(error.to_string().into());
        // The version decides how the other fields are read, so read only the version first.
        let StoredVersion { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        match format {
            DIRECTORY_FORMAT_VERSION => serde_json::from_slice(bytes).map_err(invalid),
            format => Err(IdentityError::UnknownVersion(format)),
        }
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_back_and_a_later_one_is_refused() {
        let identity = Identity { format: 1, log_id: u64::MAX, segment_bytes: 1 << 26 };
        assert_eq!(Identity::decode(&identity.encode()), Ok(identity));
        // The text of release 0.1.
        let text = br#"{"format":1,"log_id":7,"segment_bytes":67108864}"#;
        assert_eq!(Identity::decode(text).map(|identity| identity.log_id), Ok(7));
        let later = br#"{"format":2,"novelty":true}"#;
        let error = Identity::decode(later).unwrap_err();
        assert_eq!(error, IdentityError::UnknownVersion(2));
        assert!(error.to_string().contains("start the release that wrote it"));
        assert!(Identity::decode(b"{}").is_err() && Identity::decode(b"\x00").is_err());
    }
}
