//! The names in certificates, in the form in which MySQL compares them: that of OpenSSL's X509_NAME_oneline.

use junctor_kernel::transport::security::CertificateNames;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

/// OpenSSL's short names of the attributes, by object identifier. Others are shown as numbers.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];

/// The names in a certificate in DER. `None` if it cannot be read.
pub(crate) fn names_in(certificate: &[u8]) -> Option<CertificateNames> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(CertificateNames { issuer: one_line(certificate.issuer()), subject: one_line(certificate.subject()) })
}

/// A name as `/KEY=value/KEY=value`. Bytes beyond printable ASCII are shown as `\xHH`.
fn one_line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    for attribute in name.iter_attributes() {
        let identifier = attribute.attr_type().to_id_string();
        let known = SHORT_NAMES.iter().find(|(number, _)| *number == identifier);
        line.push('/');
        line.push_str(known.map_or(&identifier, |(_, short)| short));
        line.push('=');
        for byte in attribute.attr_value().data {
            match byte {
                b' '..=b'~' => line.push(char::from(*byte)),
                _ => line.push_str(&format!("\\x{byte:02X}")),
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn names_look_as_openssl_prints_them() {
        let mut name = DistinguishedName::new();
        name.push(DnType::CountryName, "SE");
        name.push(DnType::OrganizationName, "Exempel & S\u{f6}ner");
        name.push(DnType::CommonName, "anna/admin");
        name.push(DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "anna@example.org");
        name.push(DnType::CustomDnType(vec![1, 3, 9999, 7]), "x");
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name = name;
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let names = names_in(certificate.der()).unwrap();
        let line = "/C=SE/O=Exempel & S\\xC3\\xB6ner/CN=anna/admin/emailAddress=anna@example.org/1.3.9999.7=x";
        assert_eq!((names.subject.as_str(), names.issuer.as_str()), (line, line));
        assert_eq!(names_in(b"no certificate"), None);
        assert_eq!(names_in(&certificate.der()[..40]), None);
    }
}
