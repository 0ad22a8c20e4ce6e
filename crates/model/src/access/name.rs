//! Names of accounts, and the hosts that they match.

use std::cmp::Reverse;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

/// Characters of a user name.
pub const USER_CHARACTERS_MAX: usize = 32;
/// Characters of the host part.
pub const HOST_CHARACTERS_MAX: usize = 255;

/// The name of an account or role: `'user'@'host'`. An empty user matches every client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountName {
    /// The user, case-sensitive.
    pub user: Box<str>,
    /// A host name, an address, a pattern with `%` and `_`, or a network `address/mask`. In lower case.
    pub host: Box<str>,
}

impl AccountName {
    /// The account of this user and host.
    pub fn new(user: &str, host: &str) -> AccountName {
        AccountName { user: user.into(), host: host.to_lowercase().into() }
    }

    /// The account of the node's own sessions. Hosts are in lower case, so no account has this name.
    pub fn internal() -> AccountName {
        AccountName { user: "junctor.internal".into(), host: "NODE".into() }
    }

    /// The account of sessions without checks (`--skip-grant-tables`). No account has this name either.
    pub fn unchecked() -> AccountName {
        AccountName { user: "skip-grants user".into(), host: "SKIP-GRANTS HOST".into() }
    }

    /// Whether a client with this address, or on this machine, matches the host part.
    pub fn matches_host(&self, client: ClientHost) -> bool {
        match client {
            ClientHost::Socket => self.host.as_ref() == "localhost" || is_pattern_match(&self.host, "localhost"),
            ClientHost::Address(address) => {
                if address.is_loopback() && is_pattern_match(&self.host, "localhost") {
                    return true;
                }
                match self.host.split_once('/') {
                    Some((network, mask)) => is_in_network(network, mask, address),
                    None => is_pattern_match(&self.host, &address.to_string()),
                }
            }
        }
    }

    /// Accounts that match the same client are tried in the order of this key: the most specific host first,
    /// and users before anonymous ones.
    pub fn specificity(&self) -> impl Ord + use<> {
        let host = &*self.host;
        let class = match () {
            () if host.is_empty() || host == "%" => 3u8,
            () if host.contains(['%', '_']) => 2,
            () if host.contains('/') => 1,
            () => 0,
        };
        // Among networks the longer mask is more specific, among patterns the longer literal beginning.
        let prefix = match class {
            1 => host.split_once('/').and_then(|(_, mask)| prefix_bits(mask)).unwrap_or(0) as usize,
            _ => host.find(['%', '_']).unwrap_or(host.len()),
        };
        (class, Reverse(prefix), self.user.is_empty())
    }

    /// Whether the host part can be used: a mask has the right form.
    pub fn has_valid_host(&self) -> bool {
        match self.host.split_once('/') {
            Some((network, mask)) => network.parse::<IpAddr>().is_ok() && prefix_bits(mask).is_some(),
            None => true,
        }
    }
}

/// As error messages show it.
impl fmt::Display for AccountName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "'{}'@'{}'", self.user, self.host)
    }
}

/// Where a client is, for the choice of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientHost {
    /// The Unix socket.
    Socket,
    /// This address over TCP.
    Address(IpAddr),
}

/// A text matches a pattern with `%`, `_` and escapes by `\`. Letters compare without case.
pub fn is_pattern_match(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    // Where the last `%` was, and how much of the text it has taken.
    let mut retry: Option<(usize, usize)> = None;
    while position < text.len() {
        let escaped = pattern.get(at) == Some(&'\\') && at + 1 < pattern.len();
        let literal = if escaped { pattern.get(at + 1) } else { pattern.get(at) };
        match literal {
            Some('%') if !escaped => {
                retry = Some((at, position));
                at += 1;
                continue;
            }
            Some('_') if !escaped => {
                at += 1;
                position += 1;
                continue;
            }
            Some(letter) if letter.to_lowercase().eq(text[position].to_lowercase()) => {
                at += if escaped { 2 } else { 1 };
                position += 1;
                continue;
            }
            _ => {}
        }
        let Some((wildcard, taken)) = retry else { return false };
        retry = Some((wildcard, taken + 1));
        (at, position) = (wildcard + 1, taken + 1);
    }
    pattern[at..].iter().all(|letter| *letter == '%')
}

/// The number of leading ones of a mask in either form.
fn prefix_bits(mask: &str) -> Option<u32> {
    if let Ok(bits) = mask.parse::<u32>() {
        return (bits <= 128).then_some(bits);
    }
    let bits = u32::from(mask.parse::<Ipv4Addr>().ok()?);
    (bits.leading_ones() == bits.count_ones()).then_some(bits.count_ones())
}

fn is_in_network(network: &str, mask: &str, address: IpAddr) -> bool {
    let (Ok(network), Some(bits)) = (network.parse::<IpAddr>(), prefix_bits(mask)) else { return false };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            u32::from(network) & mask == u32::from(address) & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            u128::from(network) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}
