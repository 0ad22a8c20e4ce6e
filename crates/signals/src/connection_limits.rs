//! Which connections a node admits. The recv blocks ask when a connection opens, logs in and closes; the sql
//! blocks set the limits (`SET GLOBAL`), forget errors (`FLUSH HOSTS`) and report the counts. Part of the
//! closed list of invariant 2: no statement takes the lock.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of addresses without connections whose errors are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// The limits. Each is one word, which is read alone.
#[derive(Debug)]
pub struct ConnectionLimits {
    sessions_max: AtomicU64,
    extra_sessions_max: AtomicU64,
    user_sessions_max: AtomicU64,
    address_connections_max: AtomicU64,
    address_errors_max: AtomicU64,
    login_seconds: AtomicU64,
    book: Mutex<Book>,
    counts: ConnectionCounts,
}

/// What happened to connections since the start of the node.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Connections that ended before they had logged in, and refused logins: `Aborted_connects`.
    pub aborted: AtomicU64,
    /// Sessions that the server ended, or whose clients went away without COM_QUIT: `Aborted_clients`.
    pub aborted_clients: AtomicU64,
    /// Logins of locked accounts: `Locked_connects`.
    pub locked: AtomicU64,
    /// Connections refused because of `max_connections` or `extra_max_connections`.
    pub refused_sessions: AtomicU64,
    /// Connections refused because of `max_user_connections`.
    pub refused_users: AtomicU64,
    /// Connections refused because of `max_address_connections`.
    pub refused_addresses: AtomicU64,
    /// Connections refused because of `max_connect_errors`.
    pub refused_hosts: AtomicU64,
    /// Connections closed before their login, because too many others had not logged in either.
    pub displaced: AtomicU64,
    /// The largest number of sessions at a time.
    pub sessions_used_max: AtomicU64,
}

#[derive(Debug, Default)]
struct Book {
    sessions: u64,
    extra_sessions: u64,
    /// Sessions of each user, without the extra ones.
    users: BTreeMap<Box<str>, u64>,
    addresses: BTreeMap<IpAddr, AddressRecord>,
    /// Addresses in the order of their first errors. Some have none any more.
    with_errors: VecDeque<IpAddr>,
}

/// The connections and errors of an address. An address without both has no record.
#[derive(Clone, Copy, Debug, Default)]
struct AddressRecord {
    connections: u64,
    /// Broken logins in a row.
    errors: u64,
}

/// Slots of one thread group of the pool, published by its sql block for the status of the node.
#[derive(Debug, Default)]
pub struct GroupFigures(AtomicU64);

impl GroupFigures {
    /// Publishes the number of slots, and of those in use.
    #[inline]
    pub fn publish(&self, slots: usize, in_use: usize) {
        self.0.store((slots as u64) << 32 | (in_use as u64 & 0xFFFF_FFFF), Ordering::Relaxed);
    }

    /// The number of slots, and of those in use.
    pub fn read(&self) -> (u64, u64) {
        let word = self.0.load(Ordering::Relaxed);
        (word >> 32, word & 0xFFFF_FFFF)
    }
}

/// A limit that a connection would exceed, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// `max_connections`, or `extra_max_connections`.
    Sessions,
    /// `max_user_connections`.
    User,
    /// `max_address_connections`.
    Address(u64),
    /// `max_connect_errors`.
    Errors,
}

/// A limit that SET GLOBAL changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// Sessions of the extra port.
    ExtraSessions,
    /// Sessions of one user; 0 has no limit.
    UserSessions,
    /// Connections from one address; 0 has no limit.
    AddressConnections,
    /// Broken logins in a row after which an address is refused.
    AddressErrors,
    /// The longest duration of a login, in seconds.
    LoginSeconds,
}

/// How the login of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginEnd {
    /// The client logged in.
    LoggedIn,
    /// The server refused the login.
    Refused,
    /// The client went away, took too long, or sent what is no login.
    Broken,
    /// The server gave its place to another connection.
    Displaced,
}

/// The session of a connection, as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedSession {
    user: Box<str>,
    is_extra: bool,
}

impl CountedSession {
    /// The user.
    pub fn user(&self) -> &str {
        &self.user
    }
}

impl ConnectionLimits {
    /// The default of `max_connect_errors`.
    pub const ERRORS_MAX: u64 = 100;

    /// The limits of a node with this `max_connections`.
    pub fn new(sessions_max: u64) -> ConnectionLimits {
        ConnectionLimits {
            sessions_max: AtomicU64::new(sessions_max),
            extra_sessions_max: AtomicU64::new(1),
            user_sessions_max: AtomicU64::new(0),
            address_connections_max: AtomicU64::new(0),
            address_errors_max: AtomicU64::new(ConnectionLimits::ERRORS_MAX),
            login_seconds: AtomicU64::new(10),
            book: Mutex::default(),
            counts: ConnectionCounts::default(),
        }
    }

    /// Changes a limit. Open connections stay.
    pub fn set(&self, limit: ConnectionLimit, value: u64) {
        let word = match limit {
            ConnectionLimit::ExtraSessions => &self.extra_sessions_max,
            ConnectionLimit::UserSessions => &self.user_sessions_max,
            ConnectionLimit::AddressConnections => &self.address_connections_max,
            ConnectionLimit::AddressErrors => &self.address_errors_max,
            ConnectionLimit::LoginSeconds => &self.login_seconds,
        };
        word.store(value, Ordering::Relaxed);
    }

    /// The longest duration of a login. A connection that takes longer is closed.
    pub fn login_timeout_s(&self) -> u64 {
        self.login_seconds.load(Ordering::Relaxed)
    }

    /// What happened since the start.
    pub fn counts(&self) -> &ConnectionCounts {
        &self.counts
    }

    /// The number of sessions, and of those of the extra port.
    pub fn sessions(&self) -> (u64, u64) {
        let book = self.book();
        (book.sessions, book.extra_sessions)
    }

    /// Forgets the errors of all addresses (`FLUSH HOSTS`).
    pub fn forget_errors(&self) {
        let mut book = self.book();
        book.with_errors.clear();
        book.addresses.retain(|_, record| {
            record.errors = 0;
            record.connections > 0
        });
    }

    /// Counts a new connection. `address` is `None` for a client over a Unix socket or in memory, which has
    /// no limit of its own.
    ///
    /// # Errors
    /// The limit that it exceeds. The connection is not counted.
    pub fn open(&self, address: Option<IpAddr>, is_extra: bool) -> Result<(), ExceededLimit> {
        let mut book = self.book();
        if !self.has_room(&book, is_extra) {
            count(&self.counts.refused_sessions);
            return Err(ExceededLimit::Sessions);
        }
        let Some(address) = address else { return Ok(()) };
        let known = book.addresses.get(&address).copied().unwrap_or_default();
        // An administrator at the machine must be able to come in.
        if !address.is_loopback() && known.errors >= self.address_errors_max.load(Ordering::Relaxed) {
            count(&self.counts.refused_hosts);
            return Err(ExceededLimit::Errors);
        }
        let connections_max = self.address_connections_max.load(Ordering::Relaxed);
        if connections_max > 0 && known.connections >= connections_max && !is_extra {
            count(&self.counts.refused_addresses);
            return Err(ExceededLimit::Address(connections_max));
        }
        book.addresses.entry(address).or_default().connections += 1;
        Ok(())
    }

    /// Counts the session of a connection that has logged in.
    ///
    /// # Errors
    /// The limit that it exceeds. The session is not counted.
    pub fn log_in(&self, address: Option<IpAddr>, user: &str, is_extra: bool) -> Result<CountedSession, ExceededLimit> {
        let mut book = self.book();
        if let Some(record) = address.and_then(|address| book.addresses.get_mut(&address)) {
            record.errors = 0;
        }
        if !self.has_room(&book, is_extra) {
            count(&self.counts.refused_sessions);
            return Err(ExceededLimit::Sessions);
        }
        if is_extra {
            book.extra_sessions += 1;
            return Ok(CountedSession { user: user.into(), is_extra });
        }
        let user_max = self.user_sessions_max.load(Ordering::Relaxed);
        let of_user = book.users.get(user).copied().unwrap_or(0);
        if user_max > 0 && of_user >= user_max {
            count(&self.counts.refused_users);
            return Err(ExceededLimit::User);
        }
        *book.users.entry(user.into()).or_default() += 1;
        book.sessions += 1;
        self.counts.sessions_used_max.fetch_max(book.sessions, Ordering::Relaxed);
        Ok(CountedSession { user: user.into(), is_extra })
    }

    /// Ends a session: its connection closes, or another session replaces it.
    pub fn log_out(&self, session: &CountedSession) {
        let mut book = self.book();
        if session.is_extra {
            book.extra_sessions = book.extra_sessions.saturating_sub(1);
            return;
        }
        book.sessions = book.sessions.saturating_sub(1);
        if let Some(of_user) = book.users.get_mut(&session.user) {
            *of_user = of_user.saturating_sub(1);
            if *of_user == 0 {
                book.users.remove(&session.user);
            }
        }
    }

    /// Forgets a connection that was counted.
    pub fn close(&self, address: Option<IpAddr>, end: LoginEnd) {
        match end {
            LoginEnd::LoggedIn => {}
            LoginEnd::Refused | LoginEnd::Broken => count(&self.counts.aborted),
            LoginEnd::Displaced => count(&self.counts.displaced),
        }
        let is_broken = end == LoginEnd::Broken;
        let Some(address) = address else { return };
        let mut book = self.book();
        let Some(record) = book.addresses.get_mut(&address) else { return };
        record.connections = record.connections.saturating_sub(1);
        if is_broken && !address.is_loopback() {
            record.errors += 1;
            if record.errors == 1 {
                book.with_errors.push_back(address);
                book.forget_oldest_errors();
            }
            return;
        }
        if record.connections == 0 && record.errors == 0 {
            book.addresses.remove(&address);
        }
    }

    fn has_room(&self, book: &Book, is_extra: bool) -> bool {
        let (sessions, sessions_max) = match is_extra {
            true => (book.extra_sessions, &self.extra_sessions_max),
            false => (book.sessions, &self.sessions_max),
        };
        sessions < sessions_max.load(Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn forget_oldest_errors(&mut self) {
        while self.with_errors.len() > ADDRESSES_MAX {
            let Some(oldest) = self.with_errors.pop_front() else { return };
            if let Some(record) = self.addresses.get_mut(&oldest) {
                record.errors = 0;
                if record.connections == 0 {
                    self.addresses.remove(&oldest);
                }
            }
        }
    }
}

fn count(word: &AtomicU64) {
    word.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)))
    }

    #[test]
    fn an_address_whose_logins_break_is_refused_until_its_errors_are_forgotten() {
        let limits = ConnectionLimits::new(100);
        limits.set(ConnectionLimit::AddressErrors, 3);
        for _ in 0..3 {
            assert_eq!(limits.open(address(1), false), Ok(()));
            limits.close(address(1), LoginEnd::Broken);
        }
        assert_eq!(limits.open(address(1), false), Err(ExceededLimit::Errors));
        assert_eq!(limits.open(address(2), false), Ok(()), "other addresses may connect");
        limits.forget_errors();
        assert_eq!(limits.open(address(1), false), Ok(()));
    }

    #[test]
    fn a_login_ends_the_row_of_errors() {
        let limits = ConnectionLimits::new(100);
        limits.set(ConnectionLimit::AddressErrors, 2);
        for _ in 0..5 {
            assert_eq!(limits.open(address(1), false), Ok(()));
            limits.close(address(1), LoginEnd::Broken);
            assert_eq!(limits.open(address(1), false), Ok(()));
            let session = limits.log_in(address(1), "ann", false).expect("no limit is reached");
            limits.log_out(&session);
            limits.close(address(1), LoginEnd::LoggedIn);
        }
        assert_eq!(limits.counts().aborted.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn each_limit_counts_what_it_names_and_the_extra_port_has_its_own() {
        let limits = ConnectionLimits::new(2);
        limits.set(ConnectionLimit::UserSessions, 1);
        let ann = limits.log_in(None, "ann", false).expect("the first session");
        assert_eq!(limits.log_in(None, "ann", false), Err(ExceededLimit::User));
        let bob = limits.log_in(None, "bob", false).expect("another user");
        assert_eq!(limits.open(None, false), Err(ExceededLimit::Sessions));
        let root = limits.log_in(None, "root", true).expect("the extra port");
        assert_eq!(limits.log_in(None, "root", true), Err(ExceededLimit::Sessions), "its default is 1");
        assert_eq!(limits.sessions(), (2, 1));
        for session in [&ann, &bob, &root] {
            limits.log_out(session);
        }
        assert_eq!(limits.sessions(), (0, 0));
        limits.set(ConnectionLimit::AddressConnections, 1);
        assert_eq!(limits.open(address(1), false), Ok(()));
        assert_eq!(limits.open(address(1), false), Err(ExceededLimit::Address(1)));
        limits.close(address(1), LoginEnd::LoggedIn);
        assert_eq!(limits.open(address(1), false), Ok(()));
    }

    #[test]
    fn memory_for_errors_is_bounded() {
        let limits = ConnectionLimits::new(100);
        for number in 0..ADDRESSES_MAX as u32 + 100 {
            assert_eq!(limits.open(address(number), false), Ok(()));
            limits.close(address(number), LoginEnd::Broken);
        }
        let book = limits.book();
        assert_eq!((book.addresses.len(), book.with_errors.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
    }
}
