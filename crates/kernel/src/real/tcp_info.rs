//! The round trip of a TCP connection, as the operating system measures it.
//!
//! The unsafe code relies on one fact: the call fills at most as many bytes as it is told, and says how many.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::context::Duration;

/// The smoothed round trip; `None` if the socket is no TCP connection or nothing is measured yet. One system
/// call of about 300 ns.
pub(super) fn round_trip(socket: BorrowedFd<'_>) -> Option<Duration> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the pointer is to `length` writable bytes that are not shared and outlive the call.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, info.as_mut_ptr().cast(), &raw mut length) };
    if result != 0 {
        return None;
    }
    // SAFETY: the structure was zeroed, which is valid for each of its integers; the call has filled a part.
    let info = unsafe { info.assume_init() };
    Some(Duration::from_micros(u64::from(info.tcpi_rtt))).filter(|time| *time > Duration::ZERO)
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_connection_has_a_round_trip_and_other_sockets_have_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"1").unwrap();
        server.read_exact(&mut [0]).unwrap();
        assert!(round_trip(client.as_fd()).is_some());
        assert_eq!(round_trip(UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()), None);
    }
}
