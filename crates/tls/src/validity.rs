//! When a certificate is valid, read from its encoding (RFC 5280, section 4.1) and written as OpenSSL does.

use rustls::pki_types::CertificateDer;

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag of the version, which certificates of version 1 lack.
const VERSION: u8 = 0xA0;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The first and the last moment of a certificate. `None` if it is none.
pub(crate) fn validity(certificate: &CertificateDer<'_>) -> Option<[Box<str>; 2]> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    if let (VERSION, _, after) = element(rest)? {
        rest = after;
    }
    // Serial number, algorithm of the signature, and issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (_, times, _) = element(rest)?;
    let (first_tag, first, rest) = element(times)?;
    let (last_tag, last, _) = element(rest)?;
    Some([time(first_tag, first)?, time(last_tag, last)?])
}

/// The tag and the content of the first element, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (digits, after) =
            rest.split_at_checked(usize::from(first & 0x7F)).filter(|(digits, _)| digits.len() <= 4)?;
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

/// A time such as `May  5 16:43:56 2026 GMT`.
fn time(tag: u8, text: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        // Two digits, from 1950 to 2049.
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: u32 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<usize>().ok();
    let month = MONTHS.get(part(0)?.checked_sub(1)?)?;
    Some(format!("{month} {:>2} {:02}:{:02}:{:02} {year} GMT", part(2)?, part(4)?, part(6)?, part(8)?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_openssl_does() {
        assert_eq!(time(UTC_TIME, b"170505164356Z").as_deref(), Some("May  5 16:43:56 2017 GMT"));
        assert_eq!(time(UTC_TIME, b"991231235959Z").as_deref(), Some("Dec 31 23:59:59 1999 GMT"));
        assert_eq!(time(GENERALIZED_TIME, b"40960101000000Z").as_deref(), Some("Jan  1 00:00:00 4096 GMT"));
        for damaged in [&b""[..], b"Z", b"171305164356Z", b"1705Z", "1705é0516435Z".as_bytes()] {
            assert_eq!(time(UTC_TIME, damaged), None);
        }
    }

    #[test]
    fn damaged_certificates_have_no_validity() {
        for damaged in [&b""[..], &[0x30], &[0x30, 0x84, 1], &[0x30, 0x85, 0, 0, 0, 0, 1, 0], &[0x30, 2, 0x30, 0]] {
            assert_eq!(validity(&CertificateDer::from(damaged)), None);
        }
    }
}
