//! Opens connections, and finds out how many connections this machine allows.
//!
//! One client address of the loopback network has about 28,000 ephemeral ports, and a closed connection keeps
//! its port in TIME_WAIT for a minute. Connections therefore come from several addresses of 127.0.0.0/8, and
//! each run uses different ones.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::{Resource, getrlimit};

use crate::Outcome;
use crate::connections::raise_file_limit;

/// Connections per address.
const PER_ADDRESS: usize = 4096;

/// Descriptors that a process needs for other files.
const OTHER_DESCRIPTORS: u64 = 200;

/// Raises the limit of descriptors for `connections` and returns how many connections it then allows.
pub fn allowed_connections(connections: usize) -> usize {
    let wanted = connections as u64 + OTHER_DESCRIPTORS;
    if raise_file_limit(wanted).is_ok() {
        return connections;
    }
    // Raising the soft limit to the hard limit needs no privilege.
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(wanted);
    let _ = raise_file_limit(hard);
    let current = getrlimit(Resource::Nofile).current.unwrap_or(hard);
    usize::try_from(current.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(usize::MAX).min(connections)
}

/// The client address of connection `number` in run `run`.
pub fn source(run: u8, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1 + run % 250, 1 + (number / PER_ADDRESS) as u8)
}

/// Connects. If the server is on 127.0.0.0/8, the client uses an address of this run.
///
/// # Errors
/// The connection is refused or fails.
pub fn connect_from(run: u8, number: usize, server: SocketAddr) -> Outcome<TcpStream> {
    let IpAddr::V4(address) = server.ip() else { return Ok(TcpStream::connect(server)?) };
    if !address.is_loopback() {
        return Ok(TcpStream::connect(server)?);
    }
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(source(run, number), 0))?;
    connect(&socket, &server)?;
    Ok(TcpStream::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_thousand_connections_use_four_addresses_and_the_next_run_uses_others() {
        let of_run = |run| {
            let mut addresses: Vec<Ipv4Addr> = (0..16_384).map(|number| source(run, number)).collect();
            addresses.dedup();
            addresses
        };
        let (first, second) = (of_run(0), of_run(1));
        assert_eq!(first.len(), 4);
        assert!(first.iter().all(|address| address.is_loopback() && !second.contains(address)));
    }

    #[test]
    fn a_connection_uses_the_address_of_its_run() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let stream = connect_from(3, 5000, listener.local_addr().expect("bound")).expect("connects");
        assert_eq!(stream.local_addr().expect("connected").ip(), IpAddr::V4(source(3, 5000)));
    }
}
