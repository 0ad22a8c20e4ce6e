//! The header with which a balancer names the client of a connection: version 1 (text) and version 2 (binary)
//! of HAProxy's PROXY protocol. A balancer sends it before anything else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a header of version 1, its line end included.
const TEXT_BYTES_MAX: usize = 107;

/// Maximum length of a header of version 2. Additions of balancers are skipped.
const BINARY_BYTES_MAX: usize = 4096;

/// What a header of version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Length of a header of version 2 before its addresses.
const PREFIX_BYTES: usize = 16;

/// The front of the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Bytes are missing.
    Incomplete,
    /// A complete header.
    Complete {
        /// Its length in bytes.
        length: usize,
        /// The client; `None` if the balancer speaks for itself, as with checks of health.
        client: Option<IpAddr>,
    },
    /// These bytes are no header.
    Malformed,
}

/// Reads a header from the front of `bytes`.
pub fn read(bytes: &[u8]) -> ProxyHeader {
    let common = bytes.len().min(SIGNATURE.len());
    if bytes[..common] == SIGNATURE[..common] {
        return if common == SIGNATURE.len() { read_binary(bytes) } else { ProxyHeader::Incomplete };
    }
    read_text(bytes)
}

fn read_binary(bytes: &[u8]) -> ProxyHeader {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else { return ProxyHeader::Incomplete };
    let (version, command, family) = (prefix[12] >> 4, prefix[12] & 15, prefix[13]);
    let length = PREFIX_BYTES + usize::from(u16::from_be_bytes([prefix[14], prefix[15]]));
    if version != 2 || command > 1 || length > BINARY_BYTES_MAX {
        return ProxyHeader::Malformed;
    }
    let Some(addresses) = bytes.get(PREFIX_BYTES..length) else { return ProxyHeader::Incomplete };
    // The families: 0x11 is TCP over IPv4, 0x21 TCP over IPv6, 0x31 a Unix stream.
    let client = match (command, family) {
        (0, _) | (1, 0x00) => None,
        (1, 0x11) => match addresses.get(..12).and_then(|it| it.first_chunk::<4>()) {
            Some(address) => Some(IpAddr::V4(Ipv4Addr::from(*address))),
            None => return ProxyHeader::Malformed,
        },
        (1, 0x21) => match addresses.get(..36).and_then(|it| it.first_chunk::<16>()) {
            Some(address) => Some(IpAddr::V6(Ipv6Addr::from(*address))),
            None => return ProxyHeader::Malformed,
        },
        (1, 0x31) if addresses.len() >= 216 => None,
        _ => return ProxyHeader::Malformed,
    };
    ProxyHeader::Complete { length, client }
}

fn read_text(bytes: &[u8]) -> ProxyHeader {
    let start = b"PROXY ";
    let common = bytes.len().min(start.len());
    if bytes[..common] != start[..common] {
        return ProxyHeader::Malformed;
    }
    let line = &bytes[..bytes.len().min(TEXT_BYTES_MAX)];
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        return if line.len() < TEXT_BYTES_MAX { ProxyHeader::Incomplete } else { ProxyHeader::Malformed };
    };
    let length = end + 2;
    match std::str::from_utf8(&line[..end]).ok().and_then(read_words) {
        Some(client) => ProxyHeader::Complete { length, client },
        None => ProxyHeader::Malformed,
    }
}

/// The client that the words of a line name. `None` if the line is not a header.
fn read_words(line: &str) -> Option<Option<IpAddr>> {
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    // What follows UNKNOWN has no meaning.
    if family == "UNKNOWN" {
        return Some(None);
    }
    let source: IpAddr = words.next()?.parse().ok()?;
    let destination: IpAddr = words.next()?.parse().ok()?;
    let ports = (read_port(words.next()?)?, read_port(words.next()?)?);
    let is_of_family = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    let _: (u16, u16) = ports;
    (is_of_family && words.next().is_none()).then_some(Some(source))
}

/// A decimal number without sign and leading zeros, which `parse` would accept.
fn read_port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complete(length: usize, client: &str) -> ProxyHeader {
        let client = (!client.is_empty()).then(|| client.parse().expect("an address"));
        ProxyHeader::Complete { length, client }
    }

    fn binary(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = (addresses.len() as u16).to_be_bytes();
        [SIGNATURE, &[0x20 | command, family][..], &length, addresses].concat()
    }

    #[test]
    fn a_line_names_the_client() {
        assert_eq!(read(b"PROXY TCP4 192.0.2.1 10.0.0.1 5000 3306\r\nrest"), complete(41, "192.0.2.1"));
        assert_eq!(read(b"PROXY TCP6 2001:db8::1 ::1 5000 3306\r\n"), complete(38, "2001:db8::1"));
        assert_eq!(read(b"PROXY UNKNOWN\r\n"), complete(15, ""));
        assert_eq!(read(b"PROXY UNKNOWN anything at all\r\n"), complete(31, ""));
    }

    #[test]
    fn a_binary_header_names_the_client() {
        let four = [192, 0, 2, 1, 10, 0, 0, 1, 0x13, 0x88, 0x0c, 0xea];
        assert_eq!(read(&binary(1, 0x11, &four)), complete(28, "192.0.2.1"));
        let with_addition = [&four[..], &[4, 0, 2, 7, 7]].concat();
        assert_eq!(read(&binary(1, 0x11, &with_addition)), complete(33, "192.0.2.1"));
        let mut six = [0; 36];
        six[15] = 1;
        assert_eq!(read(&binary(1, 0x21, &six)), complete(52, "::1"));
        assert_eq!(read(&binary(0, 0, &[])), complete(16, ""), "the balancer's own check");
        assert_eq!(read(&binary(1, 0x31, &[0; 216])), complete(232, ""));
    }

    #[test]
    fn what_is_no_header_is_malformed() {
        let long = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        let wrong: &[&[u8]] = &[
            b"GET / HTTP/1.1\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 5000\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 5000 70000\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 +500 3306\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 5000 3306 7\r\n",
            b"PROXY TCP4  192.0.2.1 10.0.0.1 5000 3306\r\n",
            b"PROXY TCP4 ::1 ::1 5000 3306\r\n",
            b"PROXY UDP4 192.0.2.1 10.0.0.1 5000 3306\r\n",
            b"proxy TCP4 192.0.2.1 10.0.0.1 5000 3306\r\n",
            &long,
            &binary(1, 0x11, &[0; 11]),
            &binary(1, 0x21, &[0; 35]),
            &binary(1, 0x31, &[0; 215]),
            &binary(1, 0x12, &[0; 12]),
            &binary(2, 0x11, &[0; 12]),
            &binary(1, 0x11, &[0; 5000]),
            &[SIGNATURE, &[0x11, 0x11, 0, 0][..]].concat(),
        ];
        for bytes in wrong {
            assert_eq!(read(bytes), ProxyHeader::Malformed, "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn a_header_that_is_cut_is_incomplete(cut in 0usize..41) {
            let whole = b"PROXY TCP4 192.0.2.1 10.0.0.1 5000 3306\r\n";
            prop_assert_eq!(read(&whole[..cut]), ProxyHeader::Incomplete);
            let whole = binary(1, 0x11, &[1; 25]);
            prop_assert_eq!(read(&whole[..cut]), ProxyHeader::Incomplete);
        }

        #[test]
        fn any_bytes_are_read_within_the_bounds(bytes: Vec<u8>) {
            if let ProxyHeader::Complete { length, .. } = read(&bytes) {
                prop_assert!(length <= bytes.len() && length <= BINARY_BYTES_MAX);
            }
        }
    }
}
