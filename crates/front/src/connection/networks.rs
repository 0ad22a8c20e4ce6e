//! Lists of networks, such as that of `proxy_protocol_networks`.

use std::fmt;
use std::net::IpAddr;

use crate::account::Peer;

/// Networks, each as an address and the number of bits that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    networks: Vec<(IpAddr, u8)>,
    /// `*`: every address.
    has_all: bool,
    /// `localhost`: clients over Unix sockets.
    has_unix_sockets: bool,
}

/// The entry of a list that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotANetwork(pub String);

impl fmt::Display for NotANetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "'{}' is no network: write 10.0.0.0/8, fd00::/8, an address, localhost or *", self.0)
    }
}

impl std::error::Error for NotANetwork {}

impl Networks {
    /// Reads a list: networks, addresses, `localhost` for Unix sockets, or `*`, with commas between them. An
    /// empty text is an empty list.
    ///
    /// # Errors
    /// The first entry that is none of these.
    pub fn parse(text: &str) -> Result<Networks, NotANetwork> {
        let mut networks = Networks::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match entry {
                "*" => networks.has_all = true,
                "localhost" => networks.has_unix_sockets = true,
                _ => networks.networks.push(parse_network(entry).ok_or_else(|| NotANetwork(entry.to_owned()))?),
            }
        }
        Ok(networks)
    }

    /// Whether the list contains a client.
    pub fn contains(&self, peer: Peer) -> bool {
        if peer.is_unix_socket() {
            return self.has_unix_sockets;
        }
        let Some(address) = peer.network_address() else { return false };
        self.has_all || self.networks.iter().any(|&(network, bits)| shares_bits(network, address, bits))
    }
}

fn parse_network(entry: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match entry.split_once('/') {
        Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
        None => (entry.parse().ok()?, None),
    };
    let bits_max = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
    let bits = bits.unwrap_or(bits_max);
    (bits <= bits_max).then_some((address, bits))
}

fn shares_bits(network: IpAddr, address: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(list: &str, address: &str) -> bool {
        let peer = Peer::new(address.parse().expect("an address"));
        Networks::parse(list).expect("a list").contains(peer)
    }

    #[test]
    fn an_address_is_in_a_network_that_has_its_first_bits() {
        assert!(contains("10.0.0.0/8, fd00::/16", "10.9.8.7"));
        assert!(!contains("10.0.0.0/8, fd00::/16", "11.0.0.1"));
        assert!(contains("10.0.0.0/8, fd00::/16", "fd00:1::1"));
        assert!(!contains("fd00::/16", "fd01::1"));
        assert!(contains("192.168.1.7", "192.168.1.7") && !contains("192.168.1.7", "192.168.1.8"));
        assert!(contains("0.0.0.0/0", "1.2.3.4") && contains("::/0", "::1") && !contains("0.0.0.0/0", "::2"));
        assert!(contains("*", "1.2.3.4") && !contains("", "1.2.3.4") && !contains("localhost", "127.0.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"), "an IPv4 address within IPv6");
    }

    #[test]
    fn what_is_no_network_is_named() {
        for wrong in ["10.0.0.0/33", "10.0.0/8", "::/129", "x", "10.0.0.1/"] {
            let error = Networks::parse(&format!("10.0.0.1, {wrong}")).expect_err(wrong);
            assert_eq!(error, NotANetwork(wrong.into()));
        }
    }
}
