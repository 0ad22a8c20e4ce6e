//! Listeners for connections of clients: over TCP, and over Unix sockets.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::net::{TcpListener, TcpStream, UnixListener};
use mio::{Interest, Registry, Token};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, ipproto, listen, socket_with,
    sockopt,
};

use crate::peer::{PeerAddress, PeerCredentials, UserName};

/// Maximum number of connections that wait to be accepted.
const LISTEN_BACKLOG: i32 = 4096;

/// Maximum length of a Unix socket's path in bytes.
pub(super) const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Everybody may connect: the login decides.
const SOCKET_MODE: u32 = 0o777;

/// One listener.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens on an address. Returns it with its actual port.
    pub(super) fn on_address(address: SocketAddr) -> Result<(Listener, SocketAddr)> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &address)?;
        listen(&socket, LISTEN_BACKLOG)?;
        let listener = TcpListener::from_std(std::net::TcpListener::from(socket));
        let local = listener.local_addr()?;
        Ok((Listener::Tcp(listener), local))
    }

    /// Listens on a path. Replaces a socket that no process listens to any more.
    pub(super) fn on_path(path: &Path) -> Result<(Listener, BoundPath)> {
        let length = path.as_os_str().len();
        if length > SOCKET_PATH_BYTES_MAX {
            let message = format!("its path has {length} bytes, and at most {SOCKET_PATH_BYTES_MAX} are possible");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        remove_stale(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
        let bound = BoundPath::of(path)?;
        listen(&socket, LISTEN_BACKLOG)?;
        let listener = std::os::unix::net::UnixListener::from(socket);
        Ok((Listener::Unix(UnixListener::from_std(listener)), bound))
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> Result<()> {
        match self {
            Listener::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Listener::Unix(listener) => registry.register(listener, token, Interest::READABLE),
        }
    }

    /// Accepts one connection. The stream of a Unix socket has the type of the other streams: their calls are
    /// the same.
    pub(super) fn accept(&self) -> Result<(TcpStream, PeerAddress)> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, peer)| (stream, PeerAddress::Internet(peer))),
            Listener::Unix(listener) => {
                let stream = accept_with(listener.as_fd(), SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
                let credentials = sockopt::socket_peercred(&stream)?;
                let user = credentials.uid.as_raw();
                let peer = PeerCredentials {
                    user,
                    user_name: user_name(user),
                    group: credentials.gid.as_raw(),
                    process: credentials.pid.as_raw_nonzero().get().unsigned_abs(),
                };
                Ok((TcpStream::from_std(std::net::TcpStream::from(stream)), PeerAddress::Unix(Box::new(peer))))
            }
        }
    }
}

/// The name of a user. Reads only the file: a service of names in the network could make the thread wait.
fn user_name(user: u32) -> Option<UserName> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let line = text.lines().find(|line| line.split(':').nth(2).and_then(|number| number.parse().ok()) == Some(user))?;
    UserName::new(line.split(':').next()?)
}

/// Removes the socket that a server has left behind. Fails if a process listens to it, or if the file is no
/// socket.
fn remove_stale(path: &Path) -> Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "a file with this name exists and is no socket"));
    }
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(rustix::io::Errno::CONNREFUSED) => fs::remove_file(path),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Ok(()) | Err(_) => Err(Error::new(ErrorKind::AddrInUse, "another process listens to it")),
    }
}

/// The file of a Unix socket. It is removed with this value, unless another file has taken its place.
#[derive(Debug)]
pub(super) struct BoundPath {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl BoundPath {
    fn of(path: &Path) -> Result<BoundPath> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(BoundPath { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }
}

impl Drop for BoundPath {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|it| (it.dev(), it.ino()) == (self.device, self.inode)) {
            // Nobody can act on a failure, and the next start replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener as StandardListener, UnixStream};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("junctor-listener-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_client_of_a_unix_socket_has_the_credentials_of_its_process() {
        let folder = folder("credentials");
        let path = folder.join("socket");
        let (listener, bound) = Listener::on_path(&path).expect("a listener");
        let _client = UnixStream::connect(&path).expect("a connection");
        let (_stream, peer) = listener.accept().expect("a connection");
        let PeerAddress::Unix(peer) = peer else { panic!("{peer:?}") };
        let user = rustix::process::getuid().as_raw();
        assert_eq!((peer.user, peer.process), (user, std::process::id()));
        if user == 0 {
            assert_eq!(peer.user_name.map(|name| name.as_str().to_owned()).as_deref(), Some("root"));
        }
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, SOCKET_MODE);
        drop(bound);
        assert!(!path.exists(), "the file goes with its listener");
        fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn a_stale_socket_is_replaced_and_nothing_else() {
        let folder = folder("stale");
        let path = folder.join("socket");
        drop(StandardListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "the file of an ended server stays");
        let (_listener, first) = Listener::on_path(&path).expect("the stale file is replaced");
        let second = Listener::on_path(&path).err().expect("a process listens");
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        fs::remove_file(&path).expect("a file");
        fs::write(&path, "text").expect("a file");
        assert_eq!(Listener::on_path(&path).err().expect("a file").kind(), ErrorKind::AlreadyExists);
        drop(first);
        assert!(path.exists(), "a file of somebody else stays");
        let long = folder.join("x".repeat(120));
        let error = Listener::on_path(&long).err().expect("too long").to_string();
        assert!(error.contains("at most 107 are possible"), "{error}");
        fs::remove_dir_all(folder).expect("the folder");
    }
}
