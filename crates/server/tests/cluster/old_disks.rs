//! Starts of all nodes of which one has a disk that lacks what was on it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};

use junctor_bench::mysql::Connection;
use junctor_model::checkpoint::checkpoint_path;
use junctor_model::stored_lists::{append_schema_part, begin_schema, decode_schema};
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_storage::checkpoint::append_file_checksum;
use junctor_storage::log::{decode_slot, encode_slot};

use super::nodes::{Cluster, Row, poll, wait_until};
use super::rejoin::retry;

const ROLES: [&str; 3] = ["data,sql", "data,sql", "management"];
/// The files of a node's place in its cluster, which the disk that is put back has already.
const OF_CLUSTER: [&str; 3] = ["membership", "consensus.0", "consensus.1"];

fn value(session: &mut Connection<TcpStream>, query: &str) -> String {
    session.query(query).expect("a result").rows[0][0].clone().unwrap_or_default()
}

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

/// A cluster with a table, whose nodes make one checkpoint after the other.
fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "TimeBetweenLocalCheckpoints = 0\n");
    cluster.start_serving([1, 2]);
    cluster.await_rows(1, "both disks count", is_whole);
    let mut session = cluster.session(1);
    session.query("CREATE DATABASE d").expect("a database");
    session.query("CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(100))").expect("a table");
    insert(&mut session, 0);
    cluster
}

fn insert(session: &mut Connection<TcpStream>, first: u32) {
    let rows: Vec<String> = (first..first + 100).map(|a| format!("({a}, 'row {a}')")).collect();
    retry(session, &format!("INSERT INTO d.t VALUES {}", rows.join(",")));
}

/// Waits until a node has a checkpoint of what it has now.
fn await_checkpoint(cluster: &mut Cluster, node: u8) {
    let mut session = cluster.session(node);
    // The columns count the commits of an epoch; a commit number has the epoch in front of 40 bits.
    let last = "SELECT MAX((epoch << 40) + stable_commit) FROM junctor_info.replication_lag";
    let last = value(&mut session, last);
    let query =
        format!("SELECT COUNT(*) FROM junctor_info.checkpoints WHERE state = 'DONE' AND begin_number >= {last}");
    wait_until("a checkpoint", || (value(&mut session, &query) != "0").then_some(()));
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success(), "{from:?} to {to:?}");
}

fn data(cluster: &Cluster, node: u8) -> PathBuf {
    cluster.folder().join(format!("data-{node}"))
}

/// Puts a copy in the place of a node's disk, which stays beside it as `newest`. The node keeps its place in
/// the cluster.
fn put_back(kept: &Path, folder: &Path) {
    for name in OF_CLUSTER {
        let _ = std::fs::remove_file(kept.join(name));
        if folder.join(name).exists() {
            copy(&folder.join(name), &kept.join(name));
        }
    }
    std::fs::rename(folder, folder.with_file_name("newest")).expect("it can be renamed");
    std::fs::rename(kept, folder).expect("it can be renamed");
}

/// All nodes lose power: nobody evicts another one before.
fn end_together(cluster: &mut Cluster) {
    (1..=3).for_each(|node| cluster.stop(node));
    (1..=3).for_each(|node| cluster.kill(node));
}

/// Starts all nodes as a supervisor does, until both serve with their rows on disk.
fn await_return(cluster: &mut Cluster) {
    (1..=3).for_each(|node| cluster.start(node));
    let mut found = Vec::new();
    let is_back = poll(std::time::Duration::from_millis(100), || {
        cluster.start_ended();
        // A node whose disk is behind ends when it meets the other one, which opens to clients later.
        for node in [1, 2] {
            let mut session = Connection::open(cluster.address_now(node)?, "").ok()?;
            let query = "SELECT COUNT(*) FROM junctor_info.nodes WHERE state = 'SERVING' AND is_durable = 1";
            found = session.query(query).map(|result| result.rows).unwrap_or_default();
            if found != [[Some("2".to_owned())]] {
                return None;
            }
        }
        Some(())
    });
    assert!(is_back.is_some(), "{found:?}; the logs are in {}", cluster.folder().display());
}

#[test]
fn a_disk_that_was_put_back_copies_and_no_commit_is_lost() {
    for old in [1, 2] {
        let mut cluster = filled(&format!("old-disk-{old}"));
        await_checkpoint(&mut cluster, old);
        let folder = data(&cluster, old);
        let kept = cluster.folder().join("kept");
        cluster.stop(old);
        copy(&folder, &kept);
        cluster.signal(old, rustix::process::Signal::CONT);
        let other = 3 - old;
        let mut session = cluster.session(other);
        insert(&mut session, 100);
        retry(&mut session, "CREATE TABLE d.later (a INT PRIMARY KEY)");
        retry(&mut session, "INSERT INTO d.later VALUES (7)");
        drop(session);
        await_checkpoint(&mut cluster, other);
        end_together(&mut cluster);
        put_back(&kept, &folder);
        await_return(&mut cluster);
        for node in [1, 2] {
            let mut session = cluster.session(node);
            assert_eq!(
                value(&mut session, "SELECT CONCAT(COUNT(*), ' ', SUM(a)) FROM d.t"),
                "200 19900",
                "node {node}"
            );
            assert_eq!(value(&mut session, "SELECT a FROM d.later"), "7", "node {node}");
        }
        let log: String = (1..=3).map(|node| cluster.log(node)).collect();
        assert!(log.contains(&format!("node {old}: its disk lacks commits that it has had")), "{log}");
    }
}

#[test]
fn a_disk_that_was_put_back_does_not_count_when_the_other_was_evicted() {
    let mut cluster = filled("old-disk-alone");
    let (folder, kept) = (data(&cluster, 2), cluster.folder().join("kept"));
    await_checkpoint(&mut cluster, 2);
    cluster.stop(2);
    copy(&folder, &kept);
    cluster.signal(2, rustix::process::Signal::CONT);
    insert(&mut cluster.session(2), 100);
    await_checkpoint(&mut cluster, 2);
    cluster.kill(1);
    insert(&mut cluster.session(2), 200);
    await_checkpoint(&mut cluster, 2);
    [2, 3].into_iter().for_each(|node| cluster.stop(node));
    [2, 3].into_iter().for_each(|node| cluster.kill(node));
    put_back(&kept, &folder);
    (1..=3).for_each(|node| cluster.start(node));
    // The disk of node 1 has no mark, and the one of node 2 is too old: nothing starts.
    wait_until("the leader names the disk", || {
        let log: String = (1..=3).map(|node| cluster.log(node)).collect();
        log.contains("node 2: its disk lacks commits that it has had").then_some(())
    });
    assert!([1, 2].into_iter().all(|node| cluster.address_now(node).is_none()), "nothing is served");
    end_together(&mut cluster);
    std::fs::rename(cluster.folder().join("newest"), &kept).expect("it can be renamed");
    put_back(&kept, &folder);
    await_return(&mut cluster);
    for node in [1, 2] {
        let rows = value(&mut cluster.session(node), "SELECT CONCAT(COUNT(*), ' ', SUM(a)) FROM d.t");
        assert_eq!(rows, "300 44850", "node {node}");
    }
}

/// Takes the last change of the schema from the checkpoint in a directory.
fn forget_last_table(folder: &Path) {
    let slots = ["manifest.0", "manifest.1"].map(|name| std::fs::read(folder.join(name)).ok());
    let slots = slots.iter().flatten().filter_map(|bytes| decode_slot(MANIFEST_USE, bytes).ok().flatten());
    let newest = slots.max_by_key(|slot| slot.generation).expect("a checkpoint");
    let mut manifest = Manifest::decode(&newest.content).expect("a manifest");
    let ListPlace::Files { schema: number, .. } = manifest.lists else { panic!("lists in files") };
    let path = folder.join(&*checkpoint_path(number));
    let mut schema = decode_schema(&std::fs::read(&path).expect("a file")).expect("a schema");
    let is_later = |name: &str| name == "later";
    assert!(schema.tables.iter().any(|table| is_later(&table.name)), "the checkpoint has the change");
    schema.tables.retain(|table| !is_later(&table.name));
    schema.version -= 1;
    let mut bytes = Vec::new();
    begin_schema(&mut bytes);
    append_schema_part(&schema, &mut bytes);
    let file = manifest.files.iter_mut().find(|file| file.number == number).expect("it is named");
    (file.bytes, file.live_bytes) = (bytes.len() as u64, bytes.len() as u64);
    file.checksum = Some(append_file_checksum(0, &bytes));
    std::fs::write(&path, bytes).expect("a writable folder");
    let slot = encode_slot(MANIFEST_USE, newest.generation, &manifest.encode());
    std::fs::write(folder.join(format!("manifest.{}", newest.generation % 2)), slot).expect("a writable folder");
}

#[test]
fn a_disk_whose_schema_is_behind_copies_from_the_others() {
    for old in [1, 2] {
        let mut cluster = filled(&format!("old-schema-{old}"));
        let mut session = cluster.session(1);
        retry(&mut session, "CREATE TABLE d.later (a INT PRIMARY KEY)");
        retry(&mut session, "INSERT INTO d.later VALUES (7)");
        insert(&mut session, 100);
        drop(session);
        await_checkpoint(&mut cluster, old);
        end_together(&mut cluster);
        forget_last_table(&data(&cluster, old));
        await_return(&mut cluster);
        for node in [1, 2] {
            let mut session = cluster.session(node);
            assert_eq!(value(&mut session, "SELECT COUNT(*) FROM d.t"), "200", "node {node}");
            assert_eq!(value(&mut session, "SELECT a FROM d.later"), "7", "node {node}");
        }
        let log = cluster.log(old);
        assert!(
            log.contains("its disk lacks changes of the schema") || log.contains("this node's disk lacks changes"),
            "{log}"
        );
    }
}
