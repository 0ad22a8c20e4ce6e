//! User-level locks (GET_LOCK and its family).

use super::*;

#[test]
fn user_level_locks_are_shared_by_all_sql_blocks() {
    for seed in 0..20 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.shuffle(seed);
        assert_eq!(node.query(1, "SELECT GET_LOCK('Name', 10)"), ["1"]);
        assert_eq!(node.query(1, "SELECT CONCAT(GET_LOCK('name', 0), GET_LOCK('other', 0))"), ["11"]);
        node.begin_query(2, "SELECT GET_LOCK('NAME', 10)");
        node.run();
        assert_eq!(node.answer(2), None);
        assert_eq!(node.query(3, "SELECT IS_USED_LOCK('name') + IS_FREE_LOCK('name') * 100"), ["1"]);
        assert_eq!(node.query(3, "SELECT IS_FREE_LOCK('free')"), ["1"]);
        assert_eq!(node.query(3, "SELECT RELEASE_LOCK('name')"), ["0"]);
        assert_eq!(node.query(3, "SELECT IFNULL(RELEASE_LOCK('free'), 'nobody')"), ["nobody"]);
        assert_eq!(node.query(3, "SELECT GET_LOCK('name', 0)"), ["0"]);
        assert_eq!(node.query(1, "SELECT RELEASE_LOCK('name')"), ["1"]);
        assert_eq!(node.answer(2), None, "it was got twice");
        node.execute(1, &["DO RELEASE_LOCK('name')"]);
        assert_eq!(node.rows(2), ["1"]);
        // The request that would close the circle is refused.
        node.begin_query(1, "SELECT GET_LOCK('name', 100)");
        node.run();
        let refused = node.query(2, "SELECT GET_LOCK('other', 100)");
        assert!(refused[0].starts_with("#HY000Deadlock found when trying to get user-level lock"), "{refused:?}");
        node.execute(4, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"]);
        node.begin_query(1, "SET @got = GET_LOCK('name', -1)");
        node.begin_query(3, "SELECT GET_LOCK('name', 2)");
        node.begin_query(4, "SELECT GET_LOCK('other', 50)");
        node.run();
        node.advance_seconds(2);
        assert_eq!((node.rows(3), node.answer(1)), (vec!["0".to_owned()], None));
        // A session that ends releases its locks and waits for none.
        node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
        node.run();
        assert_eq!(node.rows(1), Vec::<String>::new());
        assert_eq!(node.query(1, "SELECT @got"), ["1"]);
        node.execute(3, &["KILL 1"]);
        assert_eq!(node.rows(4), ["1"], "seed {seed}");
        assert_eq!(node.query(4, "SELECT RELEASE_ALL_LOCKS()"), ["1"]);
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
}

#[test]
fn an_invalid_statement_takes_no_user_level_lock() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    node.open(1, false);
    let wrong = [
        ("SELECT GET_LOCK('a', 1), no_such_column", "#42S22Unknown column 'no_such_column' in 'field list'"),
        ("SELECT GET_LOCK('a')", "#42000Incorrect parameter count in the call to native function 'GET_LOCK'"),
        ("SELECT GET_LOCK('', 1)", "#42000Incorrect user-level lock name ''."),
        ("SELECT GET_LOCK(NULL, 1)", "#42000Incorrect user-level lock name 'NULL'."),
        ("DO GET_LOCK(REPEAT('a', 65), 1)", "#42000Incorrect user-level lock name"),
        ("DO GET_LOCK(GET_LOCK('a', 1), 1)", "#42000This version of Junctor doesn't yet support 'GET_LOCK here'"),
    ];
    for (statement, error) in wrong {
        let answer = node.query(1, statement);
        assert!(answer[0].starts_with(error), "{statement}: {answer:?}");
        assert_eq!(node.query(1, "SELECT IS_FREE_LOCK('a')"), ["1"]);
    }
    node.execute(1, &["DO GET_LOCK(REPEAT('a', 64), 1), 1 + 1"]);
    assert_eq!(node.query(1, "SELECT RELEASE_ALL_LOCKS()"), ["1"]);
}
