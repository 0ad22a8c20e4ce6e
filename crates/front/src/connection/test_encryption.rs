//! The TLS of a connection in tests: it changes no byte.

use std::sync::atomic::{AtomicU64, Ordering};

use junctor_kernel::NodeId;
use junctor_kernel::transport::security::{Agreed, CertificateNames, Encryption, SecurityFault};

/// A last byte of this value is the beginning of a record, which stays inside.
pub(crate) const HALF_RECORD: u8 = 0xEE;

#[derive(Debug, Default)]
pub(crate) struct TestEncryption {
    is_half: bool,
    /// The number of times that the client's certificate was read.
    pub certificate_reads: AtomicU64,
}

impl Encryption for TestEncryption {
    fn receive(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), SecurityFault> {
        self.is_half = bytes.last() == Some(&HALF_RECORD);
        plain.extend_from_slice(bytes.strip_suffix(&[HALF_RECORD]).unwrap_or(bytes));
        Ok(())
    }

    fn has_half_record(&self) -> bool {
        self.is_half
    }

    fn send(&mut self, _: &[u8]) {}

    fn write(&mut self, _: &mut Vec<u8>) {}

    fn is_with(&self, _: NodeId) -> bool {
        false
    }

    fn close(&mut self) {}

    fn agreed(&self) -> Option<Agreed> {
        Some(Agreed { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", has_certificate: true })
    }

    fn certificate_names(&self) -> Option<CertificateNames> {
        self.certificate_reads.fetch_add(1, Ordering::Relaxed);
        Some(CertificateNames { issuer: "/CN=ca".into(), subject: "/CN=u".into() })
    }
}
