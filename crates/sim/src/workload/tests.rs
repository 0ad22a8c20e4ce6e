use super::*;
use crate::statement::Cell;
use junctor_kernel::Random;

fn rows(rows: &[&[&str]]) -> Reply {
    let row = |row: &&[&str]| row.iter().map(|&cell| Some(cell.to_owned())).collect::<Vec<Cell>>();
    Reply::Rows(rows.iter().map(row).collect())
}

fn done(affected_rows: u64) -> Reply {
    Reply::Done { affected_rows, insert_id: 0, in_transaction: false }
}

fn failed(errno: u16) -> Reply {
    Reply::Failed { errno, message: "requested failure".to_owned() }
}

/// Runs a session until it sends a statement that begins with `start`. `answer` answers the statements before
/// it.
fn run_until(
    workload: &mut dyn Workload,
    session: usize,
    random: &mut Random,
    start: &str,
    answer: impl Fn(&Statement) -> Reply,
) -> Statement {
    for _ in 0..10_000 {
        match workload.next(session, random) {
            Step::Run(statement) if statement.text.starts_with(start) => return statement,
            Step::Run(statement) => workload.on_reply(session, &answer(&statement)).unwrap(),
            Step::Pause(_) => {}
            Step::Done => break,
        }
    }
    panic!("{start} was never sent");
}

#[test]
fn a_counter_distinguishes_lost_updates_from_dirty_reads() {
    let mut counter = Counter::default();
    counter.attempt();
    assert!(counter.check("it", 0, 0).is_ok() && counter.check("it", 1, 0).is_ok());
    assert!(counter.check("it", 2, 0).unwrap_err().starts_with("dirty read"));
    counter.acknowledge();
    assert!(counter.check("it", 0, 1).unwrap_err().starts_with("lost update"));
    assert!(counter.check("it", 0, 0).is_ok(), "the read was sent before the acknowledgement");
}

#[test]
fn a_sum_read_during_a_transfer_is_a_fractured_read() {
    let sum = |sum: &str| {
        let mut bank = BankTransfer::new(3, 100, 4);
        let total = |statement: &Statement| match statement.text.as_str() {
            "BEGIN" | "COMMIT" => done(0),
            _ => rows(&[&["0", "1000", "0"], &["1", "1000", "0"], &["2", "1000", "0"], &["3", "1000", "0"]]),
        };
        let halves = |statement: &Statement| match (statement.text.contains("<"), total(statement)) {
            (true, Reply::Rows(rows)) => Reply::Rows(rows[..2].to_vec()),
            (false, Reply::Rows(rows)) if statement.text.contains(">=") => Reply::Rows(rows[2..].to_vec()),
            (_, reply) => reply,
        };
        run_until(&mut bank, 2, &mut Random::new(1), "SELECT SUM", halves);
        bank.on_reply(2, &rows(&[&[sum, "4"]]))
    };
    assert_eq!(sum("4000"), Ok(()));
    assert!(sum("3990").unwrap_err().starts_with("fractured read"));
}

#[test]
fn a_transfer_that_was_acknowledged_must_be_found_by_the_audit() {
    let mut bank = BankTransfer::new(1, 1, 2);
    let mut random = Random::new(3);
    // Fails every read-back with a deadlock, so that no transfer ever commits.
    while let Step::Run(statement) = bank.next(0, &mut random) {
        let reply = match statement.text.as_str() {
            text if text.starts_with("UPDATE") => done(1),
            text if text.starts_with("SELECT balance") => rows(&[&["1000"]]),
            text if text.starts_with("SELECT id") => failed(DEADLOCK),
            _ => done(0),
        };
        bank.on_reply(0, &reply).unwrap();
    }
    let all = |moves: &str| rows(&[&["0", "1000", moves], &["1", "1000", moves]]);
    assert_eq!(bank.on_audit(0, &all("0")), Ok(()));
    assert!(bank.on_audit(0, &all("1")).unwrap_err().starts_with("dirty read"));
}

#[test]
fn an_unexpected_error_is_a_violation() {
    let mut storm = DeadlockStorm::new(1, 1, 2);
    let mut random = Random::new(1);
    run_until(&mut storm, 0, &mut random, "BEGIN", |_| done(0));
    assert!(storm.on_reply(0, &failed(1205)).is_err());
}

#[test]
fn families_with_different_rows_or_columns_are_torn_reads() {
    let text = |generation: i64| format!("{generation}:{}", "x".repeat(20 + generation.rem_euclid(40) as usize));
    let check = |generations: [i64; 2], columns: [i64; 2]| {
        let mut families = ReadWhileWrite::new(2, 1_000, 2);
        let mut random = Random::new(1);
        let answer = |statement: &Statement| match statement.text.as_str() {
            "BEGIN" | "ROLLBACK" => done(0),
            text if text.starts_with("SELECT") => failed(DEADLOCK),
            _ => done(2),
        };
        run_until(&mut families, 1, &mut random, "SELECT family, a, b, c FROM pairs WHERE family = ?", answer);
        let row = |generation: i64, b: i64| {
            ["0".to_owned(), generation.to_string(), b.to_string(), text(generation)].map(Some).to_vec()
        };
        let rows = vec![row(generations[0], columns[0]), row(generations[1], columns[1])];
        families.on_reply(1, &Reply::Rows(rows))
    };
    assert_eq!(check([0, 0], [0, 0]), Ok(()));
    assert!(check([0, 1], [0, 1]).unwrap_err().starts_with("fractured read"));
    assert!(check([0, 0], [0, 1]).unwrap_err().contains("never written in this form"));
    assert!(check([-1, -1], [-1, -1]).unwrap_err().starts_with("lost update"));
    assert!(check([1, 1], [1, 1]).unwrap_err().starts_with("dirty read"));
}

#[test]
fn an_index_walk_meets_each_row_once_under_its_own_key() {
    let check = |found: &[&[&str]]| {
        let mut moving = IndexWhileUpdate::new(2, 1_000, 2);
        let mut random = Random::new(2);
        let answer = |statement: &Statement| match statement.text.as_str() {
            "BEGIN" | "COMMIT" => done(0),
            _ => failed(DEADLOCK),
        };
        run_until(&mut moving, 1, &mut random, "SELECT id, k, same FROM moving ORDER BY k", answer);
        moving.on_reply(1, &rows(found))
    };
    assert_eq!(check(&[&["1", "5", "5"], &["0", "9", "9"]]), Ok(()));
    assert!(check(&[&["0", "9", "9"], &["1", "5", "5"]]).unwrap_err().starts_with("not in key order"));
    assert!(check(&[&["0", "1", "2"], &["1", "5", "5"]]).unwrap_err().contains("holds 2"));
    assert!(check(&[&["0", "1", "1"], &["0", "5", "5"], &["1", "6", "6"]]).unwrap_err().contains("returned twice"));
    assert!(check(&[&["0", "1", "1"]]).unwrap_err().contains("missed"));
}

#[test]
fn a_value_is_taken_once_and_a_duplicate_only_if_another_row_may_have_it() {
    let race = |second: Reply| {
        let mut race = UniqueRace::new(2, 100, 1);
        let mut random = Random::new(1);
        let answer = |statement: &Statement| match statement.text.starts_with("SELECT") {
            true => rows(&[]),
            false => failed(DUPLICATE),
        };
        run_until(&mut race, 0, &mut random, "INSERT", answer);
        race.on_reply(0, &done(1)).unwrap();
        run_until(&mut race, 1, &mut random, "INSERT", answer);
        race.on_reply(1, &second)
    };
    assert_eq!(race(failed(DUPLICATE)), Ok(()));
    assert!(race(done(1)).unwrap_err().contains("two rows have value 0"));
    let mut alone = UniqueRace::new(1, 100, 1);
    run_until(&mut alone, 0, &mut Random::new(1), "INSERT", |_| rows(&[]));
    assert!(alone.on_reply(0, &failed(DUPLICATE)).unwrap_err().contains("no other row can have"));
}

#[test]
fn too_large_teams_and_changed_reads_are_phantoms() {
    let mut random = Random::new(1);
    let answer = |statement: &Statement| match statement.text.starts_with("SELECT") {
        true => rows(&[&["7"]]),
        false => done(1),
    };
    let mut phantom = Phantom::new(1, 1_000, 1);
    run_until(&mut phantom, 0, &mut random, "SELECT id FROM players", answer);
    assert!(phantom.on_reply(0, &rows(&[&["7"], &["8"], &["9"]])).unwrap_err().contains("more than 2"));
    // A round that reads twice before it writes.
    let mut phantom = Phantom::new(1, 1_000, 1);
    let changes = (0..1_000).any(|_| {
        run_until(&mut phantom, 0, &mut random, "SELECT id FROM players", answer);
        phantom.on_reply(0, &rows(&[])).unwrap();
        let Step::Run(next) = phantom.next(0, &mut random) else { return false };
        let verdict = phantom.on_reply(0, &answer(&next));
        next.text.starts_with("SELECT") && verdict.unwrap_err().starts_with("phantom")
    });
    assert!(changes);
    assert!(phantom.on_audit(0, &rows(&[&["1"], &["2"], &["3"]])).unwrap_err().contains("more than 2"));
    // A place in which a read found no row is free, so a duplicate-key error is a violation.
    let mut phantom = Phantom::new(1, 1_000, 1);
    run_until(&mut phantom, 0, &mut random, "INSERT INTO places", |statement| {
        match statement.text.starts_with("SELECT") {
            true => rows(&[]),
            false => done(1),
        }
    });
    assert!(phantom.on_reply(0, &failed(DUPLICATE)).is_err());
}
