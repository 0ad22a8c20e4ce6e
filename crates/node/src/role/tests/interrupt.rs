//! Sessions that are stopped: by KILL, by a client that leaves, by a time limit.

use super::*;

const PROCESSES: &str = "SELECT CONCAT(ID, ' ', COMMAND, ' ', STATE, ' ', IFNULL(INFO, '-')) \
                         FROM information_schema.PROCESSLIST ORDER BY ID";

#[test]
fn kill_reaches_the_sessions_of_every_sql_block() {
    for seed in 0..20 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..6).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
        node.execute(2, &["BEGIN", "UPDATE d.t SET v = 2 WHERE id = 2"]);
        node.shuffle(seed);
        for waiting in [2, 3] {
            node.begin_query(waiting, "UPDATE d.t SET v = v + 10 WHERE id = 1");
        }
        node.run();
        assert_eq!((node.answer(2), node.answer(3)), (None, None));
        let seen = node.query(5, PROCESSES);
        assert!(seen[0].starts_with("1 Sleep  "), "{seen:?}");
        assert_eq!(seen[1], "2 Query executing UPDATE d.t SET v = v + 10 WHERE id = 1");
        assert!(seen[4].starts_with("5 Query executing SELECT CONCAT"), "{seen:?}");
        for (connection, killer) in [(2, 4), (3, 5)] {
            node.execute(killer, &[&format!("KILL QUERY {connection}")]);
            assert_eq!(node.rows(connection), ["#70100Query execution was interrupted"], "seed {seed}");
        }
        // The transaction continues without the statement, and an idle session is not affected.
        node.execute(4, &["KILL QUERY 1", "KILL QUERY 2"]);
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.query(4, "KILL 77"), ["#HY000Unknown thread id: 77"]);
        node.execute(4, &["KILL CONNECTION 1"]);
        assert_eq!(node.query(5, "SELECT v FROM d.t ORDER BY id"), ["0", "2"], "its transaction is undone");
        node.execute(3, &["UPDATE d.t SET v = v + 10 WHERE id = 1"]);
        assert_eq!(node.query(4, "KILL 1"), ["#HY000Unknown thread id: 1"]);
        node.begin_query(2, "KILL QUERY CONNECTION_ID()");
        node.run();
        assert_eq!(node.rows(2), ["#70100Query execution was interrupted"]);
        assert_eq!(node.query(2, "SELECT COUNT(*) FROM information_schema.PROCESSLIST"), ["4"]);
        assert_eq!(node.resources_held(), 4, "only sessions hold resources");
    }
}

#[test]
fn an_update_of_many_rows_is_stopped_in_the_middle_and_undone() {
    for seed in 0..10 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..3).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, u INT UNIQUE)"]);
        let rows: Vec<String> = (0..2000).map(|id| format!("({id}, 0, {id})")).collect();
        node.execute(1, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
        if seed % 2 == 0 {
            node.execute(1, &["BEGIN"]);
        }
        node.begin_query(1, "UPDATE d.t SET v = 1, u = u + 10000");
        node.shuffle(seed);
        (0..8 + seed).for_each(|_| assert!(node.step()));
        assert_eq!(node.answer(1), None, "it takes longer");
        node.execute(2, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t WHERE v = 0 AND u < 10000"), ["2000"]);
        node.execute(1, &["COMMIT", "UPDATE d.t SET v = 2"]);
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
}

#[test]
fn a_benchmark_is_stopped_between_its_steps_by_kill_and_by_the_limit_of_the_session() {
    for seed in 0..5 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        assert_eq!(node.query(1, "SELECT BENCHMARK(1000, MD5('x')) + 1"), ["1"]);
        node.begin_query(1, "SELECT BENCHMARK(1000000000, MD5('x'))");
        node.shuffle(seed);
        (0..20 + seed).for_each(|_| assert!(node.step()));
        assert_eq!(node.answer(1), None, "it takes longer");
        // Others work meanwhile.
        node.execute(2, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "seed {seed}");
        node.execute(1, &["SET max_execution_time = 1"]);
        node.begin_query(1, "SELECT BENCHMARK(1000000000, MD5('x'))");
        (0..20).for_each(|_| assert!(node.step()));
        node.delivery.now = Time(node.delivery.now.0 + 1_000_000_000);
        node.fire_timers();
        let answer = node.rows(1);
        let expected = "#HY000Query execution was interrupted, maximum statement execution time exceeded";
        assert_eq!(answer, [expected], "seed {seed}");
        node.begin_query(3, "DO BENCHMARK(1000000000, 1)");
        (0..20).for_each(|_| assert!(node.step()));
        node.send(3, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(3) }));
        node.run();
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
}

#[test]
fn the_wait_of_a_client_that_left_ends_at_once() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
    node.execute(2, &["BEGIN", "UPDATE d.t SET v = 2 WHERE id = 2"]);
    node.begin_query(2, "UPDATE d.t SET v = 2 WHERE id = 1");
    node.run();
    node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
    node.run();
    node.execute(3, &["UPDATE d.t SET v = 3 WHERE id = 2"]);
    node.execute(1, &["COMMIT"]);
    assert_eq!(node.query(3, "SELECT v FROM d.t ORDER BY id"), ["1", "3"]);
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn sessions_that_wait_for_too_long_are_ended_with_their_transactions() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 0)", "SET wait_timeout = 10"]);
    node.execute(2, &["SET transaction_timeout_s = 5", "BEGIN", "UPDATE d.t SET v = 1"]);
    node.advance_seconds(0);
    node.advance_seconds(4);
    assert_eq!((node.answer(1), node.answer(2)), (None, None));
    // The limit applies to each transaction, not to a sequence of them.
    node.execute(2, &["COMMIT", "BEGIN", "UPDATE d.t SET v = 2"]);
    node.advance_seconds(2);
    node.advance_seconds(3);
    assert_eq!(node.answer(2), None);
    node.begin_query(3, "UPDATE d.t SET v = v + 10");
    node.run();
    node.advance_seconds(2);
    let farewell = node.rows(2);
    let text = "#70100The transaction was open for longer than transaction_timeout_s (5) allows";
    assert_eq!((farewell, node.rows(3)), (vec![text.to_owned()], Vec::new()));
    assert_eq!(node.query(3, "SELECT v FROM d.t"), ["11"]);
    let farewell = node.rows(1);
    assert!(farewell[0].starts_with("#HY000The client was disconnected by the server because of inactivity"));
    assert_eq!(node.query(3, PROCESSES).len(), 1);
    assert_eq!(node.resources_held(), 1, "only one session holds resources");
}

#[test]
fn queries_fail_at_their_time_limit_and_other_statements_do_not() {
    let second = |node: &mut Node| {
        node.advance_seconds(1);
        node.fire_timers();
    };
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..7).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
    for connection in [2, 3, 5] {
        node.execute(connection, &["SET max_execution_time = 2000"]);
    }
    // A query that has ended leaves no limit to the next statement.
    assert_eq!(node.query(3, "SELECT v FROM d.t WHERE id = 2"), ["0"]);
    assert_eq!(node.query(2, "SELECT 1"), ["1"]);
    node.advance_seconds(10);
    node.begin_query(2, "SELECT v FROM d.t WHERE id = 1 FOR UPDATE");
    node.begin_query(3, "UPDATE d.t SET v = v + 10 WHERE id = 1");
    node.begin_query(4, "SELECT /*+ MAX_EXECUTION_TIME(4000) */ SLEEP(100)");
    node.begin_query(5, "SELECT /*+ MAX_EXECUTION_TIME(0) */ v FROM d.t WHERE id = 1 FOR UPDATE");
    node.run();
    let timed_out = ["#HY000Query execution was interrupted, maximum statement execution time exceeded"];
    second(&mut node);
    assert_eq!([2, 3, 4, 5].map(|connection| node.answer(connection)), [None, None, None, None]);
    second(&mut node);
    assert_eq!(node.rows(2), timed_out);
    // The session goes on, and its next query has a limit of its own.
    node.begin_query(2, "SELECT v FROM d.t WHERE id = 1 FOR SHARE");
    node.run();
    second(&mut node);
    assert_eq!([2, 3, 4, 5].map(|connection| node.answer(connection)), [None, None, None, None]);
    second(&mut node);
    assert_eq!([node.rows(2), node.rows(4)], [timed_out, timed_out]);
    assert_eq!([3, 5].map(|connection| node.answer(connection)), [None, None]);
    // A wait for a schema change counts too.
    node.begin_query(6, "TRUNCATE TABLE d.t");
    node.run();
    node.begin_query(2, "SELECT COUNT(*) FROM d.t");
    node.run();
    second(&mut node);
    assert_eq!(node.answer(2), None);
    second(&mut node);
    assert_eq!(node.rows(2), timed_out);
    node.execute(1, &["COMMIT"]);
    node.run();
    assert_eq!([node.rows(3), node.rows(5)], [vec![], vec!["11".to_owned()]]);
    // The limit also ends the wait of a query with a hint.
    node.execute(1, &["LOCK TABLES d.t WRITE"]);
    node.begin_query(2, "SELECT /*+ BKA() */ COUNT(*) FROM d.t");
    node.begin_query(4, "SELECT /*+ MAX_EXECUTION_TIME(1000) */ COUNT(*) FROM d.t");
    node.run();
    second(&mut node);
    assert_eq!((node.answer(2), node.rows(4)), (None, timed_out.map(str::to_owned).to_vec()));
    second(&mut node);
    assert_eq!(node.rows(2), timed_out);
    node.execute(1, &["UNLOCK TABLES"]);
    assert_eq!(node.resources_held(), 6, "only sessions hold resources");
}

#[test]
fn short_limits_beside_a_long_one_leave_few_timers() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"]);
    node.begin_query(2, "SELECT /*+ MAX_EXECUTION_TIME(3600000) */ SLEEP(10000)");
    node.run();
    node.fire_timers();
    let mut most = 0;
    for _ in 0..200 {
        assert_eq!(node.query(1, "SELECT /*+ MAX_EXECUTION_TIME(20) */ id FROM d.t WHERE id = 1"), ["1"]);
        node.delivery.now = Time(node.delivery.now.0 + 20_000_000);
        let timers = node.delivery.take_timers();
        most = most.max(timers.iter().filter(|(_, token)| *token == junctor_sql::QUERY_LIMIT_TIMER).count());
        for (block, token) in timers {
            node.send_world(block, WorldEvent::Timer { token });
        }
        node.run();
    }
    assert!((1..3).contains(&most), "{most} timers at once");
}

#[test]
fn statements_that_run_for_long_end_when_the_node_stops() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    let rows: Vec<String> = (0..500).map(|id| format!("({id})")).collect();
    node.execute(1, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
    node.fire_timers();
    // Hours of work.
    node.begin_query(2, "SELECT COUNT(*) FROM d.t a, d.t b, d.t c, d.t e, d.t f WHERE a.id + b.id + c.id < e.id");
    (0..200).for_each(|_| assert!(node.step()));
    assert_eq!(node.answer(2), None);
    node.send_world(node.sql(2), WorldEvent::Stopping);
    (0..200).for_each(|_| assert!(node.step()));
    assert_eq!(node.answer(2), None, "it may end by itself");
    node.fire_timers();
    assert_eq!(node.rows(2), ["#08S01Server shutdown in progress"]);
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn an_answer_of_wide_rows_comes_in_parts() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.begin_query(
        1,
        "SELECT REPEAT('x', 60000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b",
    );
    node.run();
    let part = node.answer(1).expect("the first part").len();
    assert!(part < 400_000, "{part} bytes are computed before the client has read any");
    assert_eq!(node.answer(1), None);
    // The rest comes with the same rows, whatever the parts are.
    let wide = "SELECT CONCAT(REPEAT('x', 30000), x.n * 1000 + y.n) FROM (VALUES ROW(1), ROW(2), ROW(3)) x(n), \
                (VALUES ROW(10), ROW(20), ROW(30), ROW(40), ROW(50), ROW(60)) y(n) ORDER BY 1 LIMIT 1, 16";
    node.begin_query(2, wide);
    node.run();
    let mut bytes = Vec::new();
    let mut parts = 0;
    while let Some(part) = node.answer(2) {
        bytes.extend(part);
        parts += 1;
        let connection = ConnectionId(2);
        node.send(2, SqlSignal::ContinueCommand(ContinueCommand { connection }));
        node.run();
    }
    let text = String::from_utf8_lossy(&bytes);
    let pieces = text.split("xxx").skip(1).map(|piece| piece.trim_start_matches('x'));
    let seen: Vec<&str> = pieces.filter_map(|piece| piece.get(..4)).collect();
    let wanted: Vec<String> =
        (1..4).flat_map(|x| (1..7).map(move |y| (x * 1000 + y * 10).to_string())).skip(1).take(16).collect();
    assert_eq!(seen, wanted);
    assert!(parts > 1);
}

#[test]
fn a_client_that_stalls_in_a_command_is_ended_after_its_timeout() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..5).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "SET GLOBAL local_infile = ON"]);
    node.execute(2, &["SET net_write_timeout = 5, net_read_timeout = 1"]);
    node.execute(3, &["SET net_read_timeout = 5, net_write_timeout = 1"]);
    let long = "SELECT REPEAT('x', 60000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b";
    node.begin_query(2, long);
    node.begin_query(3, "LOAD DATA LOCAL INFILE 'x' INTO TABLE d.t");
    // The default is a minute.
    node.begin_query(4, long);
    node.run();
    for connection in 2..5 {
        assert!(node.answer(connection).is_some(), "the first part, or the request for the file");
    }
    node.advance_seconds(0);
    node.advance_seconds(4);
    assert_eq!([2, 3, 4].map(|connection| node.answer(connection)), [None, None, None]);
    node.advance_seconds(2);
    assert_eq!(node.rows(2), ["#08S01Got timeout writing communication packets"]);
    assert_eq!(node.rows(3), ["#08S01Got timeout reading communication packets"]);
    assert_eq!(node.answer(4), None);
    assert_eq!(node.query(1, PROCESSES).len(), 2);
}

#[test]
fn a_client_that_is_silent_within_a_command_is_ended_after_net_read_timeout() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(2, &["SET net_read_timeout = 5"]);
    node.execute(3, &["SET net_read_timeout = 5"]);
    let half = |node: &mut Node, connection| {
        node.send(connection, SqlSignal::NoteHalfCommand(NoteHalfCommand { connection: ConnectionId(connection) }));
        node.run();
    };
    half(&mut node, 2);
    half(&mut node, 3);
    node.advance_seconds(4);
    half(&mut node, 2);
    // The rest of the command arrives. The silence after it is that of an idle client.
    assert_eq!(node.query(3, "SELECT 1"), ["1"]);
    node.advance_seconds(4);
    assert_eq!([2, 3].map(|connection| node.answer(connection)), [None, None], "bytes have come meanwhile");
    node.advance_seconds(2);
    assert_eq!(node.rows(2), ["#08S01Got timeout reading communication packets"]);
    assert_eq!(node.answer(3), None);
    let aborted = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Aborted_clients'";
    assert_eq!(node.query(1, aborted), ["1"]);
    assert_eq!(node.query(1, PROCESSES).len(), 2);
}

#[test]
fn a_part_of_a_file_that_keeps_coming_takes_longer_than_net_read_timeout() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "SET GLOBAL local_infile = ON"]);
    node.execute(1, &["SET net_read_timeout = 5"]);
    node.begin_query(1, "LOAD DATA LOCAL INFILE 'x' INTO TABLE d.t");
    node.run();
    assert!(node.answer(1).is_some(), "the request");
    for _ in 0..4 {
        node.advance_seconds(4);
        node.send(1, SqlSignal::NoteHalfCommand(NoteHalfCommand { connection: ConnectionId(1) }));
        node.run();
    }
    assert_eq!(node.answer(1), None);
    node.advance_seconds(6);
    assert_eq!(node.rows(1), ["#08S01Got timeout reading communication packets"]);
}

#[test]
fn a_reply_that_comes_after_its_statement_was_killed_is_dropped() {
    for steps in 0..40 {
        for text in ["SELECT COUNT(*) FROM information_schema.PROCESSLIST", "INSERT INTO d.t (v) VALUES (1), (2)"] {
            let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
            (1..3).for_each(|connection| node.open(connection, false));
            node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)"]);
            node.begin_query(1, text);
            node.shuffle(steps);
            (0..steps).for_each(|_| _ = node.step());
            node.execute(2, &["KILL QUERY 1"]);
            node.run();
            assert!(node.answer(1).is_some(), "{text}, {steps} steps");
            assert_eq!(node.query(1, "SELECT 1"), ["1"], "{text}, {steps} steps");
            assert_eq!(node.resources_held(), 2, "only sessions hold resources");
        }
    }
}

#[test]
fn a_step_that_a_killed_sort_has_requested_does_not_advance_the_next_sort() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.s (id INT PRIMARY KEY, v INT)"]);
    let rows: Vec<String> = (0..20_000).map(|id| format!("({id}, {})", id * 7919 % 20_011)).collect();
    node.execute(1, &[&format!("INSERT INTO d.s VALUES {}", rows.join(","))]);
    let sort = "SELECT id FROM d.s ORDER BY v LIMIT 19000, 1";
    let expected = node.query(1, sort);
    let steps = |node: &Node| -> Vec<u64> {
        let step = |in_flight: &InFlight<Signal>| match &in_flight.signal {
            Signal::Sql(SqlSignal::ContinueStatement(signal)) => Some(signal.step),
            _ => None,
        };
        node.delivery.in_flight.iter().filter_map(step).collect()
    };
    let run_to_step = |node: &mut Node| loop {
        if let [step] = steps(node)[..] {
            return step;
        }
        assert!(node.step(), "a sort of so many rows takes several steps");
    };
    node.begin_query(1, sort);
    let stale = run_to_step(&mut node);
    node.execute(2, &["KILL QUERY 1"]);
    node.run();
    assert!(node.answer(1).is_some());
    node.begin_query(1, sort);
    run_to_step(&mut node);
    let signal = ContinueStatement { connection: ConnectionId(1), step: stale };
    node.send(1, SqlSignal::ContinueStatement(signal));
    while node.step() {
        let current = steps(&node).into_iter().filter(|step| *step != stale).count();
        assert!(current <= 1, "one step at a time");
    }
    let answer = node.answer(1).expect("the sort has ended");
    assert!(answer.windows(expected[0].len()).any(|bytes| bytes == expected[0].as_bytes()));
}

#[test]
fn a_client_that_leaves_during_a_sorted_insert_select_leaves_nothing_behind() {
    for steps in (0..400).step_by(7) {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..3).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.s (id INT PRIMARY KEY, v INT)"]);
        node.execute(1, &["CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        let rows: Vec<String> = (0..3000).map(|id| format!("({id}, {})", id * 7919 % 3001)).collect();
        node.execute(1, &[&format!("INSERT INTO d.s VALUES {}", rows.join(","))]);
        node.begin_query(1, "INSERT INTO d.t SELECT id, v FROM d.s ORDER BY v");
        (0..steps).for_each(|_| _ = node.step());
        node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
        node.run();
        let count = node.query(2, "SELECT COUNT(*) FROM d.t");
        assert!(count == ["0"] || count == ["3000"], "{count:?} after {steps} steps");
        node.execute(2, &["UPDATE d.t SET v = 0"]);
        assert_eq!(node.resources_held(), 1, "only the other session holds resources after {steps} steps");
    }
}
