//! The RSA key of `caching_sha2_password`: clients encrypt passwords with it on connections without TLS.

use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use pem::Pem;

const PRIVATE_TAG: &str = "PRIVATE KEY";
const PUBLIC_TAG: &str = "PUBLIC KEY";

/// An RSA key pair. Passwords are padded by OAEP with SHA-1, as MySQL's clients do.
pub(crate) struct PasswordKey {
    key: OaepPrivateDecryptingKey,
    private_pem: String,
    public_pem: Arc<str>,
}

impl PasswordKey {
    /// Makes a key of 2048 bits. `None` if the system has no random bytes.
    pub(crate) fn generate() -> Option<PasswordKey> {
        PasswordKey::new(PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?)
    }

    /// Reads a private key in PKCS 8. `None` if it is not a key of RSA, or has fewer than 2048 bits.
    pub(crate) fn from_pem(text: &str) -> Option<PasswordKey> {
        let pem = pem::parse(text).ok().filter(|pem| pem.tag() == PRIVATE_TAG)?;
        PasswordKey::new(PrivateDecryptingKey::from_pkcs8(pem.contents()).ok()?)
    }

    fn new(key: PrivateDecryptingKey) -> Option<PasswordKey> {
        let private: Pkcs8V1Der<'_> = key.as_der().ok()?;
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
        let [private_pem, public_pem] = [(PRIVATE_TAG, private.as_ref()), (PUBLIC_TAG, public.as_ref())]
            .map(|(tag, bytes)| pem::encode(&Pem::new(tag, bytes)).replace("\r\n", "\n"));
        let key = OaepPrivateDecryptingKey::new(key).ok()?;
        Some(PasswordKey { key, private_pem, public_pem: public_pem.into() })
    }

    pub(crate) fn private_pem(&self) -> &str {
        &self.private_pem
    }

    pub(crate) fn public_pem(&self) -> Arc<str> {
        Arc::clone(&self.public_pem)
    }

    /// Decrypts one block. `None` if it was not encrypted with the public key.
    pub(crate) fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        if encrypted.len() != self.key.key_size_bytes() {
            return None;
        }
        let mut plain = vec![0; self.key.min_output_size()];
        let length = self.key.decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut plain, None).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}
