//! Scans of several partitions of which one is slow: the others go on without it.

use junctor_signals::inbox::{LdmSignal, QuerySignal};

use super::*;

const PARTITIONS: u16 = 4;
const ROWS: usize = 2_000;
/// No partition is on the thread of a session.
const LDM_THREADS: &str = "recv={count=1},ldm={count=4},main={count=0},io={count=0}";

/// The replies of a partition, and whether the last one has ended the read.
type Replies = BTreeMap<u16, (usize, bool)>;

/// A node with a table `big` in four partitions, of which each takes several replies, and a table `few` of
/// two rows.
fn node() -> Node {
    let mut node = Node::new(LDM_THREADS, NodeConfig::default());
    node.open(1, false);
    let columns = "id INT PRIMARY KEY, s VARCHAR(1000)";
    node.execute(1, &["CREATE DATABASE d", "USE d", "CREATE TABLE few (s VARCHAR(9))"]);
    for table in ["big", "copy"] {
        let text = format!("CREATE TABLE {table} ({columns}) PARTITION BY KEY (id) PARTITIONS {PARTITIONS}");
        node.execute(1, &[&text]);
    }
    let row = |id: usize| format!("({id}, CONCAT({}, REPEAT('x', 900)))", id * 31 % 997);
    for first in (0..ROWS).step_by(500) {
        let rows: Vec<String> = (first..first + 500).map(row).collect();
        node.execute(1, &[&format!("INSERT INTO big VALUES {}", rows.join(","))]);
    }
    node.execute(1, &["INSERT INTO few VALUES ('1'), ('2')"]);
    node
}

/// The partition of another table than `few` that a signal asks for rows.
fn asked(signal: &Signal) -> Option<u16> {
    let (Signal::Query(QuerySignal::ReadRows(read)) | Signal::Ldm(LdmSignal::ReadRows(read))) = signal else {
        return None;
    };
    let definition = &read.program.table.definition;
    (*definition.database == *"d" && *definition.name != *"few").then_some(read.partition.index)
}

impl Node {
    /// Delivers everything but the reads of a partition, which are left over.
    fn run_without(&mut self, slow: u16) -> (Replies, Vec<InFlight<Signal>>) {
        let (mut replies, mut held) = (Replies::new(), Vec::new());
        while let Some(next) = self.delivery.take_next() {
            if asked(&next.signal) == Some(slow) {
                held.push(next);
                continue;
            }
            if let Signal::Sql(SqlSignal::ReadRowsReply(reply)) = &next.signal {
                let of_partition = replies.entry(reply.partition.index).or_default();
                *of_partition = (of_partition.0 + 1, reply.resume.is_none());
            }
            self.deliver(next);
        }
        (replies, held)
    }

    /// Delivers until the answer is complete, of which the client takes each part. Returns its rows, sorted.
    fn whole_answer(&mut self) -> Vec<String> {
        // Fewer than ten parts of 128 KiB.
        for _ in 0..10 {
            self.run();
            self.send(1, SqlSignal::ContinueCommand(ContinueCommand { connection: ConnectionId(1) }));
        }
        self.run();
        let parts = self.answers.get_mut(&ConnectionId(1)).expect("an answer");
        let whole: Vec<u8> = parts.drain(..).flatten().collect();
        parts.push_back(whole);
        let mut rows = self.rows(1);
        rows.sort();
        rows
    }
}

#[test]
fn partitions_do_not_wait_for_a_slower_one() {
    let mut node = node();
    for (text, check) in [
        ("SELECT id FROM big ORDER BY s, id", ""),
        ("SELECT SUM(CRC32(CONCAT(a.s, b.s))) FROM big a JOIN few b ON a.s > b.s", ""),
        ("SELECT MD5(GROUP_CONCAT(s ORDER BY s)) FROM (SELECT CONCAT(s, 'y') s FROM big) q", ""),
        ("INSERT INTO copy SELECT * FROM big", "SELECT CONCAT(COUNT(*), SUM(CRC32(s))) FROM copy"),
    ] {
        let expected = match check.is_empty() {
            true => node.query(1, text),
            false => node.query(1, &check.replace("copy", "big")),
        };
        for slow in 0..PARTITIONS {
            node.begin_query(1, text);
            let (replies, held) = node.run_without(slow);
            assert_eq!(held.len(), 1, "{text}: {replies:?}");
            for partition in (0..PARTITIONS).filter(|partition| *partition != slow) {
                let (count, has_ended) = replies.get(&partition).copied().unwrap_or_default();
                assert!(count > 2 && has_ended, "{text}: {replies:?} without {slow}");
            }
            held.into_iter().for_each(|read| node.deliver(read));
            node.run();
            let rows = node.rows(1);
            match check.is_empty() {
                true => assert_eq!(rows, expected, "{text}"),
                false => {
                    assert_eq!(node.query(1, check), expected, "{text}");
                    node.execute(1, &["DELETE FROM copy"]);
                }
            }
        }
    }
    assert_eq!(node.resources_held(), 1, "only the session holds resources");
}

#[test]
fn rows_that_go_straight_to_the_client_arrive_whole_in_any_order_of_replies() {
    let mut node = node();
    // Beyond four partitions the replies have no header.
    node.execute(
        1,
        &[
            "CREATE TABLE six (id INT PRIMARY KEY, s VARCHAR(1000)) PARTITION BY KEY (id) PARTITIONS 6",
            "INSERT INTO six SELECT * FROM big",
        ],
    );
    for table in ["big", "six"] {
        let text = format!("SELECT CONCAT(id, ' ', LEFT(s, 200)) FROM {table}");
        node.begin_query(1, &text);
        let expected = node.whole_answer();
        assert_eq!(expected.len(), ROWS);
        for seed in 0..10 {
            node.shuffle(seed);
            node.begin_query(1, &text);
            assert_eq!(node.whole_answer(), expected, "{table}, seed {seed}");
        }
        node.delivery.random = None;
        for slow in 0..PARTITIONS {
            node.begin_query(1, &text);
            let (_, held) = node.run_without(slow);
            held.into_iter().for_each(|read| node.deliver(read));
            assert_eq!(node.whole_answer(), expected, "{table} without {slow}");
        }
    }
}

#[test]
fn kill_stops_a_query_of_which_only_some_partitions_have_answered() {
    let mut node = node();
    node.open(2, false);
    for text in [
        "SELECT id, s FROM big",
        "SELECT id FROM big ORDER BY s, id",
        "SELECT SUM(CRC32(CONCAT(a.s, b.s))) FROM big a JOIN few b ON a.s > b.s",
        "INSERT INTO copy SELECT * FROM big",
    ] {
        for slow in 0..PARTITIONS {
            node.begin_query(1, text);
            let (_, held) = node.run_without(slow);
            assert_eq!(held.len(), 1, "{text}");
            node.begin_query(2, "KILL QUERY 1");
            assert!(node.run_without(slow).1.is_empty(), "{text}: nothing is asked any more");
            assert_eq!(node.rows(2), Vec::<String>::new(), "{text}: KILL succeeds");
            held.into_iter().for_each(|read| node.deliver(read));
            node.run();
            let rows = node.rows(1);
            assert_eq!(rows.last().map(String::as_str), Some("#70100Query execution was interrupted"), "{text}");
            assert_eq!(node.query(1, "SELECT COUNT(*) FROM copy"), ["0"], "{text}");
        }
    }
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn a_limit_does_not_wait_for_a_partition_that_it_does_not_need() {
    let mut node = node();
    let text = "SELECT id FROM big LIMIT 500";
    for slow in 0..PARTITIONS {
        node.begin_query(1, text);
        let (_, held) = node.run_without(slow);
        assert_eq!(held.len(), 1);
        let rows = node.rows(1);
        assert_eq!(rows.len(), 500, "without {slow}");
        // The session works before the slow partition answers, and its answer changes nothing.
        node.begin_query(1, "SELECT COUNT(*) FROM few");
        assert!(node.run_without(slow).1.is_empty());
        assert_eq!(node.rows(1), ["2"]);
        held.into_iter().for_each(|read| node.deliver(read));
        node.run();
        assert_eq!(node.answer(1), None);
    }
    assert_eq!(node.resources_held(), 1, "only the session holds resources");
}
