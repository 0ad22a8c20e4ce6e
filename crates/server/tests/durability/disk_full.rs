//! A device without room for the log: writes fail, reads go on, and writes resume once there is room.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::server::{Server, folder, rows, run};

/// Room for two segments of 64 MiB and the small files. The third segment does not fit.
const DEVICE_BYTES: u64 = 180 << 20;
/// Maximum time until a full device is noticed, or until writes resume.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file system in memory of a fixed size.
pub struct SmallDevice(pub PathBuf);

impl SmallDevice {
    /// `None` if the user may not mount file systems.
    pub fn mount(folder: PathBuf) -> Option<SmallDevice> {
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let size = format!("size={DEVICE_BYTES}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        mounted.is_ok_and(|status| status.success()).then_some(SmallDevice(folder))
    }

    /// Makes room for several segments more.
    pub fn grow(&self) {
        let size = format!("remount,size={}", 4 * DEVICE_BYTES);
        let grown = Command::new("mount").args(["-o", &size]).arg(&self.0).status().expect("mount runs");
        assert!(grown.success(), "the device grows");
    }
}

impl Drop for SmallDevice {
    fn drop(&mut self) {
        // Lazily, because a test that fails leaves a server on it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Inserts blobs until a write is refused. Returns the number of rows and the error number.
pub fn fill(server: &Server) -> (u64, u16) {
    let mut session = server.session();
    // A commit to disk would wait for room: the log notices the full device only when it writes.
    run(&mut session, &["SET commit_durability = memory"]);
    let begin = Instant::now();
    for count in 0.. {
        assert!(begin.elapsed() < PATIENCE, "the device is full after a while");
        if let Err(error) = session.query(&format!("INSERT INTO d.t VALUES ({count}, REPEAT('x', 60000))")) {
            return (count, error.errno());
        }
    }
    unreachable!("the loop ends")
}

fn count(server: &Server) -> Vec<Vec<String>> {
    rows(&mut server.session(), "SELECT COUNT(*), SUM(LENGTH(b)) FROM d.t")
}

#[test]
fn a_full_device_refuses_writes_only_and_only_until_it_has_room() {
    let Some(device) = SmallDevice::mount(folder("full")) else {
        eprintln!("skipped: mounting a file system needs root");
        return;
    };
    let server = Server::start(&device.0.join("data"));
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, b MEDIUMTEXT)"]);
    let (inserted, errno) = fill(&server);
    assert_eq!(errno, 1021);
    // Reads, locking reads and transactions without writes go on.
    let expected = vec![vec![inserted.to_string(), (inserted * 60_000).to_string()]];
    assert_eq!(count(&server), expected);
    run(&mut session, &["BEGIN", "SELECT id FROM d.t WHERE id = 1 FOR UPDATE", "COMMIT"]);
    let refused = |session: &mut junctor_bench::mysql::Connection<_>, statement: &str| {
        session.query(statement).expect_err(statement).errno()
    };
    for statement in ["UPDATE d.t SET b = '' WHERE id = 1", "DELETE FROM d.t", "CREATE TABLE d.u (id INT PRIMARY KEY)"]
    {
        assert_eq!(refused(&mut session, statement), 1021, "{statement}");
    }

    device.grow();
    let begin = Instant::now();
    while let Err(error) = session.query("UPDATE d.t SET b = 'short' WHERE id = 0") {
        assert_eq!(error.errno(), 1021);
        assert!(begin.elapsed() < PATIENCE, "writes resume");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The update waited for the log to be durable, and with it for everything before.
    server.kill();
    let server = Server::start(&device.0.join("data"));
    let expected = vec![vec![inserted.to_string(), (inserted * 60_000 - 60_000 + 5).to_string()]];
    assert_eq!(count(&server), expected);
    server.kill();
}
