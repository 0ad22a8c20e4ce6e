//! Sessions that move to the sql block of a `work` thread for one long query: the same answers, whatever
//! meets them on their way, and nothing left behind.

use super::spill::{QUERIES, stopped_queries, with_tables};
use super::*;

/// Connections 1 and 2 have their sessions in different sql blocks, and two other blocks take them.
const WORK: &str = "recv={count=2},ldm={count=0},main={count=0},work={count=2}";
const INTERRUPTED: &str = "Query execution was interrupted";
const GROUPS: &str = "SELECT COUNT(*) FROM (SELECT t.g, COUNT(*) FROM t JOIN u ON t.k = u.k GROUP BY t.g) q";

fn node_of(thread_config: &str, config: NodeConfig) -> Node {
    with_tables(Node::new(thread_config, lending(config)))
}

/// The configuration of a node that lends the session of every query that may be lent.
fn lending(config: NodeConfig) -> NodeConfig {
    let temporary_files = Some(("/temporary".to_owned(), "/temporary/query-".to_owned()));
    NodeConfig { temporary_files, work_query_us_min: 0, ..config }
}

fn node() -> Node {
    node_of(WORK, NodeConfig::default())
}

impl Node {
    /// The number of sessions that are away from their blocks.
    fn lent(&self) -> usize {
        let of_sql = |host: &NodeHost| {
            let held = host.sql().map(|sql| sql.held());
            held.into_iter()
                .flatten()
                .filter(|(what, _)| *what == "lent sessions")
                .map(|(_, count)| count)
                .sum::<usize>()
        };
        self.hosts.iter().map(of_sql).sum::<usize>()
    }

    /// Delivers signals until a session is away. False if none leaves.
    fn step_until_lent(&mut self) -> bool {
        while self.lent() == 0 {
            if !self.step() {
                return false;
            }
        }
        true
    }

    fn is_answered(&self, connection: u32) -> bool {
        self.answers.get(&ConnectionId(connection)).is_some_and(|answers| !answers.is_empty())
    }

    /// Advances time, and puts the events of all started timers behind the signals in flight.
    fn let_timers_expire(&mut self, seconds: u64) {
        self.delivery.now = Time(self.delivery.now.0 + seconds * 1_000_000_000);
        let timers: BTreeSet<(Address, u64)> = self.delivery.take_timers().into_iter().collect();
        timers.into_iter().for_each(|(block, token)| self.send_world(block, WorldEvent::Timer { token }));
    }
}

#[test]
fn lent_queries_have_the_answers_of_others() {
    let mut plain = node_of(TWO_RECV_THREADS, NodeConfig::default());
    let mut node = node();
    for (number, text) in QUERIES.iter().enumerate() {
        let expected = plain.query(1, text);
        let before = node.sql_counted("sessions_lent");
        node.shuffle(number as u64);
        assert_eq!(node.query(1, text), expected, "{text}");
        node.execute(1, &[&format!("PREPARE p FROM '{}'", text.replace('\'', "''"))]);
        for _ in 0..2 {
            assert_eq!(node.query(1, "EXECUTE p"), expected, "{text}");
        }
        node.execute(1, &["SET tmp_table_size = 65536"]);
        assert_eq!(node.query(1, text), expected, "{text}");
        node.execute(1, &["SET tmp_table_size = DEFAULT"]);
        // Sums of counters are queries of a virtual table, and stay.
        assert_eq!(node.sql_counted("sessions_lent"), before + 4, "{text}");
        node.assert_nothing_left(&text);
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
    assert_eq!(plain.sql_counted("sessions_lent"), 0);
}

#[test]
fn a_session_comes_back_with_its_variables_and_diagnostics() {
    let mut node = node();
    node.execute(1, &["SET @sum = 0, @seen = 0"]);
    let sums = "SELECT COUNT(*) FROM (SELECT t.id, @sum := @sum + t.id FROM t JOIN u USING (id) WHERE t.id < 10) q";
    assert_eq!(node.query(1, sums), ["10"]);
    assert_eq!(node.query(1, "SELECT @sum"), ["45"]);
    let warns = "SELECT COUNT(*) FROM (SELECT CAST(CONCAT(t.id, 'x') AS SIGNED) n FROM t JOIN u USING (id) WHERE id < 3 \
                 ORDER BY n) q";
    assert_eq!(node.query(1, warns), ["3"]);
    assert_eq!(node.query(1, "SELECT @@warning_count > 0"), ["1"]);
    assert_eq!(
        node.query(1, "SELECT /*+ SET_VAR(sort_buffer_size = 100000) */ COUNT(*) FROM t JOIN u USING (id)"),
        ["900"]
    );
    assert_eq!(node.query(1, "SELECT @@sort_buffer_size = 100000"), ["0"]);
    let found = "SELECT SQL_CALC_FOUND_ROWS t.id FROM t JOIN u USING (id) ORDER BY t.id LIMIT 2";
    assert_eq!(node.query(1, found), ["0", "1"]);
    assert_eq!(node.query(1, "SELECT FOUND_ROWS()"), ["900"]);
    assert_eq!(node.sql_counted("sessions_lent"), 4);
}

#[test]
fn what_is_tied_to_the_block_of_the_session_stays() {
    let mut node = node();
    node.execute(1, &["BEGIN", "UPDATE t SET k = 77 WHERE id = 1"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM t JOIN u USING (id) WHERE t.k = 77"), ["1"]);
    node.execute(
        1,
        &["ROLLBACK", "CREATE TEMPORARY TABLE own (id INT PRIMARY KEY)", "INSERT INTO own VALUES (1), (2)"],
    );
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM own JOIN u USING (id)"), ["2"]);
    node.execute(1, &["DROP TEMPORARY TABLE own"]);
    assert_eq!(node.query(2, "SELECT COUNT(*) FROM t JOIN u USING (id) FOR SHARE"), ["900"]);
    assert_eq!(node.sql_counted("sessions_lent"), 0);
}

#[test]
fn the_user_locks_of_a_lent_query_are_those_of_the_session() {
    let mut node = node();
    let locks = "SELECT COUNT(*) FROM t JOIN u USING (id) WHERE t.id < 3 AND GET_LOCK(CONCAT('l', t.id), 0)";
    assert_eq!(node.query(1, locks), ["3"]);
    assert_eq!(node.sql_counted("sessions_lent"), 1);
    assert_eq!(node.query(2, "SELECT CONCAT_WS(' ', GET_LOCK('l0', 0), GET_LOCK('l1', 0))"), ["0 0"]);
    assert_eq!(node.query(1, "SELECT RELEASE_LOCK('l0')"), ["1"]);
    node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
    node.run();
    assert_eq!(node.query(2, "SELECT CONCAT_WS(' ', GET_LOCK('l1', 0), RELEASE_LOCK('l1'))"), ["1 1"]);
    assert_eq!(node.resources_held(), 1, "only sessions hold resources");
}

/// Begins a query and delivers this many signals. Returns whether it is answered already.
fn begin_lent(node: &mut Node, text: &str, steps: usize) -> bool {
    node.begin_query(1, text);
    (0..steps).for_each(|_| _ = node.step());
    node.is_answered(1)
}

#[test]
fn kill_at_any_moment_stops_one_statement() {
    let (mut killed, mut answered) = (0, 0);
    for seed in 0..4 {
        let mut node = node();
        let expected = node.query(1, GROUPS);
        node.shuffle(seed);
        for steps in (0..40).chain((40..400).step_by(30)) {
            let is_over = begin_lent(&mut node, GROUPS, steps);
            node.begin_query(2, "KILL QUERY 1");
            node.run();
            assert_eq!(node.rows(2), Vec::<String>::new(), "seed {seed}, {steps} steps: KILL succeeds");
            match node.rows(1) {
                rows if rows == expected => answered += 1,
                rows => {
                    assert!(rows[0].contains(INTERRUPTED), "{rows:?}");
                    killed += 1;
                }
            }
            // The next statement is another one.
            assert_eq!(node.query(1, GROUPS), expected, "seed {seed}, {steps} steps");
            node.assert_nothing_left(&(seed, steps));
            assert_eq!((node.resources_held(), node.lent()), (2, 0), "seed {seed}, {steps} steps");
            if is_over {
                break;
            }
        }
    }
    assert!(killed > 50 && answered > 0, "{killed} killed, {answered} answered");
}

#[test]
fn an_end_of_the_connection_at_any_moment_leaves_nothing() {
    for (number, text) in stopped_queries().enumerate() {
        for steps in (number..30).step_by(5).chain([31, 200, 601]) {
            let mut node = node();
            node.execute(1, &["SET tmp_table_size = 65536"]);
            node.shuffle(number as u64);
            let is_over = begin_lent(&mut node, text, steps);
            match steps % 3 {
                0 => node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) })),
                1 => node.begin_query(2, "KILL CONNECTION 1"),
                _ => {
                    node.begin_query(2, "KILL 1");
                    node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
                }
            }
            node.run();
            node.assert_nothing_left(&(text, steps));
            assert_eq!((node.resources_held(), node.lent()), (1, 0), "{text} after {steps} steps");
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_command_that_overtakes_the_session_on_its_way_back_waits_for_it() {
    let mut waited = 0;
    for seed in 0..30 {
        let mut node = node();
        node.shuffle(seed);
        node.begin_query(1, GROUPS);
        while node.answers.get(&ConnectionId(1)).is_none_or(VecDeque::is_empty) {
            assert!(node.step(), "an answer comes");
        }
        node.rows(1);
        waited += node.lent();
        match seed % 3 {
            0 => assert_eq!(node.query(1, "SELECT 7"), ["7"]),
            1 => node.open(1, true),
            _ => {
                node.send(1, SqlSignal::NoteHalfCommand(NoteHalfCommand { connection: ConnectionId(1) }));
                node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
                node.run();
                assert_eq!(node.resources_held(), 1, "seed {seed}");
                continue;
            }
        }
        node.execute(1, &["USE d"]);
        assert_eq!(node.query(1, GROUPS).len(), 1);
        assert_eq!((node.resources_held(), node.lent()), (2, 0), "seed {seed}");
    }
    assert!(waited > 5, "{waited} sessions were on their way");
}

#[test]
fn a_time_limit_stops_a_lent_query() {
    let mut node = node();
    node.execute(1, &["SET max_execution_time = 1000"]);
    node.begin_query(1, GROUPS);
    assert!(node.step_until_lent());
    (0..20).for_each(|_| _ = node.step());
    node.let_timers_expire(2);
    node.run();
    let rows = node.rows(1);
    assert!(rows[0].contains("maximum statement execution time exceeded"), "{rows:?}");
    assert_eq!(node.query(1, "SELECT 7"), ["7"]);
    node.assert_nothing_left(&"a time limit");
}

#[test]
fn a_time_limit_stops_a_lent_query_that_waits_for_a_slot() {
    let one_borrower = WORK.replace("work={count=2}", "work={count=1}");
    let mut node = node_of(&one_borrower, NodeConfig::default());
    node.execute(2, &["SET GLOBAL thread_pool_transactions = 1", "SET GLOBAL thread_pool_stall_limit = 100000000"]);
    node.open(3, false);
    node.execute(3, &["USE d"]);
    node.execute(1, &["SET max_execution_time = 1000"]);
    let waits = node.sql_counted("admission_waits");
    node.begin_query(3, GROUPS);
    assert!(node.step_until_lent());
    node.begin_query(1, GROUPS);
    while node.lent() < 2 {
        assert!(node.step() && !node.is_answered(3), "the first query has its slot");
    }
    (0..10).for_each(|_| _ = node.step());
    node.let_timers_expire(2);
    while !node.is_answered(1) {
        assert!(node.step() && !node.is_answered(3), "the limit does not wait for the slot");
    }
    let rows = node.rows(1);
    assert!(rows[0].contains("maximum statement execution time exceeded"), "{rows:?}");
    node.run();
    let expected = node.rows(3);
    assert_eq!(node.sql_counted("admission_waits"), waits + 1, "the query waited for the slot of the other one");
    node.execute(1, &["SET max_execution_time = 0"]);
    assert_eq!(node.query(1, GROUPS), expected, "no slot and no place in the queue is lost");
    node.assert_nothing_left(&"a time limit");
    assert_eq!((node.resources_held(), node.lent()), (3, 0));
}

#[test]
fn a_node_that_is_cut_off_lends_no_query() {
    let needs_lease = |shared: &Shared| {
        shared.snapshots.require_lease();
        shared.snapshots.set_lease(u64::MAX);
    };
    let mut node = with_tables(Node::prepared(WORK, lending(NodeConfig::default()), needs_lease));
    node.query(1, GROUPS);
    let lent = node.sql_counted("sessions_lent");
    assert!(lent > 0, "with a lease the session is lent");
    node.shared.snapshots.set_lease(0);
    node.begin_query(1, GROUPS);
    node.run();
    for _ in 0..7 {
        assert!(!node.is_answered(1), "the query waits for a lease");
        node.let_timers_expire(1);
        node.run();
        if node.is_answered(1) {
            break;
        }
    }
    let rows = node.rows(1);
    assert!(rows[0].contains("does not hear a majority of the voters"), "{rows:?}");
    for _ in 0..3 {
        assert_eq!(node.query(1, GROUPS), rows);
    }
    node.shared.snapshots.set_lease(u64::MAX);
    assert_eq!(node.sql_counted("sessions_lent"), lent);
    node.assert_nothing_left(&"a node that is cut off");
}

#[test]
fn a_lent_session_has_one_row_in_the_process_list_at_any_moment() {
    let list = "SELECT CONCAT(COUNT(*), ' ', SUM(INFO LIKE '%GROUP BY t.g%' AND COMMAND = 'Query')) FROM \
                information_schema.PROCESSLIST WHERE ID = 1";
    let mut seen = BTreeSet::new();
    for seed in 0..3 {
        let mut node = node();
        node.shuffle(seed);
        for steps in 0..60 {
            begin_lent(&mut node, GROUPS, steps);
            node.begin_query(2, list);
            node.run();
            seen.extend(node.rows(2));
            node.rows(1);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["1 0", "1 1"]);
}

#[test]
fn schema_changes_and_lent_queries_wait_for_each_other() {
    for seed in 0..20 {
        let mut node = node();
        let expected = node.query(1, GROUPS);
        node.shuffle(seed);
        for steps in 0..25 {
            begin_lent(&mut node, GROUPS, steps);
            let change = if steps % 2 == 0 { "ADD COLUMN more INT" } else { "DROP COLUMN more" };
            node.begin_query(2, &format!("ALTER TABLE d.t {change}, ALGORITHM=COPY"));
            node.run();
            assert_eq!(node.rows(2), Vec::<String>::new(), "seed {seed}, {steps} steps");
            assert_eq!(node.rows(1), expected, "seed {seed}, {steps} steps");
        }
        assert_eq!((node.resources_held(), node.lent()), (2, 0), "seed {seed}");
    }
}

#[test]
fn a_lent_session_waits_for_a_slot_like_others() {
    let mut node = node();
    node.execute(2, &["SET GLOBAL thread_pool_transactions = 1", "SET GLOBAL thread_pool_stall_limit = 100000000"]);
    for connection in 3..7 {
        node.open(connection, false);
        node.execute(connection, &["USE d"]);
    }
    let sessions = [1, 3, 4, 5, 6];
    sessions.iter().for_each(|connection| node.begin_query(*connection, GROUPS));
    node.run();
    sessions.iter().for_each(|connection| assert_eq!(node.rows(*connection).len(), 1));
    assert_eq!(node.sql_counted("sessions_lent"), 5);
    assert!(node.sql_counted("admission_waits") > 0, "queries of a block come one after the other");
    assert_eq!((node.resources_held(), node.lent()), (6, 0));
}

#[test]
fn a_session_of_the_extra_port_is_lent_without_a_slot() {
    let mut node = node();
    node.execute(2, &["SET GLOBAL thread_pool_transactions = 1", "SET GLOBAL thread_pool_stall_limit = 100000000"]);
    node.open_extra(3);
    node.execute(3, &["USE d"]);
    let held = node.resources_held();
    for _ in 0..4 {
        assert_eq!(node.query(3, GROUPS).len(), 1);
        assert_eq!(node.query(3, "SELECT 7"), ["7"]);
        assert_eq!((node.resources_held(), node.lent()), (held, 0));
    }
    assert_eq!(node.sql_counted("sessions_lent"), 4);
    // The slots of both blocks are left.
    assert_eq!((node.query(1, GROUPS).len(), node.query(1, "SELECT 7")), (1, vec!["7".to_owned()]));
}

#[test]
fn queries_that_read_the_counts_of_the_statement_before_and_explanations_stay() {
    let mut node = node();
    let query = "SELECT @@warning_count + 0, COUNT(*) FROM t JOIN u ON t.k = u.k";
    let expected = node.query(1, &query.replace("@@warning_count", "1"));
    let before = node.sql_counted("sessions_lent");
    node.query(1, "SELECT 1 / 0");
    assert_eq!(node.query(1, query), expected);
    node.execute(1, &[&format!("PREPARE counts FROM '{query}'")]);
    for _ in 0..2 {
        node.query(1, "SELECT 1 / 0");
        assert_eq!(node.query(1, "EXECUTE counts"), expected);
    }
    // Planned for one execution.
    node.query(1, "SELECT 1 / 0");
    assert_eq!(node.query(1, &format!("{query} AND RAND(@@warning_count) < 2")), expected);
    node.query(1, &format!("EXPLAIN {GROUPS}"));
    assert_eq!(node.sql_counted("sessions_lent"), before);
    // The names alone do not matter.
    let names = "SELECT 'error_count', COUNT(*) warning_count FROM t JOIN u ON t.k = u.k";
    node.query(1, names);
    node.execute(1, &[&format!("PREPARE names FROM '{}'", names.replace('\'', "''"))]);
    node.query(1, "EXECUTE names");
    assert_eq!(node.sql_counted("sessions_lent"), before + 2);
}

#[test]
fn the_rights_of_an_account_hold_in_each_block() {
    let mut node = node();
    node.execute(2, &["CREATE USER 'few'@'localhost'", "GRANT SELECT ON d.t TO 'few'@'localhost'"]);
    node.execute(2, &["CREATE TABLE d.secret (id INT PRIMARY KEY)", "INSERT INTO d.secret VALUES (1)"]);
    let login = |node: &mut Node, connection: u32| {
        let login = Login {
            user: "few".into(),
            account: junctor_model::access::AccountName::new("few", "localhost"),
            is_expired: false,
            host: "localhost".into(),
            database: None,
            capabilities: 0x280,
            character_set: 45,
            protocol: Protocol::MySql.number(),
            tls: None,
            is_extra: false,
        };
        let signal = OpenSession {
            connection: ConnectionId(connection),
            reply_to: node.directory.address(Module::Recv, 0),
            socket: SocketId::new(0, connection, 0),
            reset: false,
            login: Box::new(login),
        };
        node.send(connection, SqlSignal::OpenSession(signal));
        node.run();
        node.answer(connection);
    };
    login(&mut node, 3);
    let secret = "SELECT COUNT(*) FROM d.secret JOIN d.t USING (id)";
    let own = "SELECT COUNT(*) FROM d.t a JOIN d.t b USING (id)";
    for text in [secret, own] {
        // The plans of the caches of every block are those of root.
        for _ in 0..4 {
            node.query(1, text);
            node.query(2, text);
        }
    }
    for _ in 0..4 {
        assert!(node.query(3, secret)[0].contains("SELECT command denied"), "the plan of another account is checked");
        assert_eq!(node.query(3, own), ["900"]);
    }
    node.execute(3, &[&format!("PREPARE p FROM '{own}'")]);
    assert_eq!(node.query(3, "EXECUTE p"), ["900"]);
    node.execute(2, &["REVOKE SELECT ON d.t FROM 'few'@'localhost'"]);
    assert!(node.query(3, "EXECUTE p")[0].contains("SELECT command denied"));
    assert!(node.query(3, own)[0].contains("SELECT command denied"));
}
