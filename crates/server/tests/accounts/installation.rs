//! The statements of `docs/operations.md` that secure a server.

use super::*;

/// The statements of the first block of SQL in a section of the page.
fn statements_of(section: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let section = page.split(&format!("## {section}\n")).nth(1).expect("the section");
    let block = section.split("```sql\n").nth(1).expect("a block").split("```").next().expect("its end");
    let statements = block.split(";\n").map(str::trim).filter(|statement| !statement.is_empty());
    statements.map(str::to_owned).collect()
}

fn rows(session: &Connection, statement: &str) -> usize {
    block_on(session.query(statement, &[])).unwrap_or_else(|error| panic!("{statement}: {error}")).iter().count()
}

#[test]
fn the_page_secures_a_new_server_and_one_with_leftovers() {
    let statements = statements_of("After the installation");
    let check = statements.last().expect("a statement");
    assert!(statements.len() == 6 && check.starts_with("SELECT"), "{statements:?}");
    for leftovers in [false, true] {
        let node = builder().start().expect("the node starts");
        let admin = log_in(&node, "root", "").expect("root may log in");
        if leftovers {
            for statement in [
                "CREATE USER ''@localhost, ''@'%', root@'%'",
                "CREATE DATABASE test",
                "GRANT ALL ON test.* TO ''@'%'",
                "GRANT ALL ON *.* TO root@'%'",
            ] {
                must(&admin, statement);
            }
            assert_eq!(rows(&admin, check), 4, "root, twice, and the anonymous accounts");
            assert!(log_in(&node, "anybody", "").is_ok());
        } else {
            assert_eq!(rows(&admin, check), 1, "root has no password");
        }
        for statement in &statements {
            must(&admin, statement);
        }
        assert_eq!(rows(&admin, check), 0);
        assert_eq!(values(&admin, "SELECT CONCAT(user, '@', host) FROM mysql.user"), ["root@localhost"]);
        assert_eq!(rows(&admin, "SHOW DATABASES LIKE 'test'"), 0);
        for (user, password) in [("root", ""), ("anybody", "")] {
            assert_eq!(log_in(&node, user, password).err().map(|error| error.errno()), Some(1045), "{user}");
        }
        assert!(log_in(&node, "root", "a long password").is_ok());
    }
}

#[test]
fn the_page_creates_an_account_for_an_application() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    for statement in statements_of("Accounts") {
        must(&admin, &statement);
    }
    let grants =
        ["GRANT USAGE ON *.* TO `app`@`10.0.%`", "GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.* TO `app`@`10.0.%`"];
    assert_eq!(values(&admin, "SHOW GRANTS FOR app@'10.0.%'"), grants);
}
