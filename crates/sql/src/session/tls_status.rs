//! The rows of SHOW STATUS about TLS: those of the server, and those of the session.

use super::facts::StatementFacts;

/// What verifying a client means to OpenSSL: SSL_VERIFY_PEER and SSL_VERIFY_CLIENT_ONCE.
const VERIFIES_CLIENTS: u32 = 5;

/// Counters and sizes of features that this server lacks: sessions are not resumed, parameters are agreed on
/// once, and this server is never the client.
const ZEROS: [&str; 13] = [
    "Ssl_accept_renegotiates",
    "Ssl_callback_cache_hits",
    "Ssl_client_connects",
    "Ssl_connect_renegotiates",
    "Ssl_default_timeout",
    "Ssl_finished_connects",
    "Ssl_session_cache_hits",
    "Ssl_session_cache_misses",
    "Ssl_session_cache_overflows",
    "Ssl_session_cache_size",
    "Ssl_session_cache_timeout",
    "Ssl_session_cache_timeouts",
    "Ssl_sessions_reused",
];

/// Settings that the server lacks.
const EMPTY: [&str; 5] =
    ["Current_tls_capath", "Current_tls_cipher", "Current_tls_ciphersuites", "Current_tls_crl", "Current_tls_crlpath"];

impl StatementFacts<'_, '_> {
    /// The rows, in no order.
    pub(super) fn tls_status(&self) -> Vec<(&'static str, String)> {
        let settings = &self.engine.settings;
        let session = self.session.tls;
        let security = settings.security.as_deref();
        let status = security.map(|security| security.status()).unwrap_or_default();
        let [first, last] = status.validity.map(String::from);
        let [authority, certificate, key] = settings.tls_files.clone();
        let mode = if status.verify_depth.is_some() { VERIFIES_CLIENTS } else { 0 };
        let depth = status.verify_depth.unwrap_or(0);
        let of_session = |value: String| if session.is_some() { value } else { String::new() };
        let number_of_session = |number: u32| if session.is_some() { number } else { 0 }.to_string();
        let versions = if security.is_some() { "TLSv1.2,TLSv1.3" } else { "" };
        let mut rows = vec![
            (
                "Caching_sha2_password_rsa_public_key",
                security.and_then(|security| security.public_key()).map_or_else(String::new, |key| key.to_string()),
            ),
            ("Current_tls_ca", authority),
            ("Current_tls_cert", certificate),
            ("Current_tls_key", key),
            ("Current_tls_version", versions.to_owned()),
            ("Ssl_accepts", status.accepts.to_string()),
            ("Ssl_cipher", session.map_or("", |tls| tls.cipher).to_owned()),
            ("Ssl_cipher_list", of_session(status.ciphers.into())),
            ("Ssl_ctx_verify_depth", depth.to_string()),
            ("Ssl_ctx_verify_mode", mode.to_string()),
            ("Ssl_finished_accepts", status.finished_accepts.to_string()),
            ("Ssl_server_not_after", last),
            ("Ssl_server_not_before", first),
            ("Ssl_session_cache_mode", if security.is_some() { "OFF" } else { "NONE" }.to_owned()),
            ("Ssl_used_session_cache_entries", "0".to_owned()),
            ("Ssl_verify_depth", number_of_session(depth)),
            ("Ssl_verify_mode", number_of_session(mode)),
            ("Ssl_version", session.map_or("", |tls| tls.version).to_owned()),
        ];
        rows.extend(ZEROS.map(|name| (name, "0".to_owned())));
        rows.extend(EMPTY.map(|name| (name, String::new())));
        rows
    }
}
