use junctor_model::temporal::Zone;

use super::*;

fn key(database: Option<&str>, text: &str) -> Arc<DigestKey> {
    Arc::new(DigestKey { database: database.map(Box::from), text: text.into() })
}

fn numbers(rows: &[Vec<Value>], column: usize) -> Vec<Value> {
    rows.iter().map(|row| row[column].clone()).collect()
}

/// Runs a task to its end. Returns its rows, and the number of rows that each step added.
fn run(
    digests: &StatementDigests,
    mut task: DigestTask,
    now: Time,
    wall_clock_us: u64,
) -> (Vec<Vec<Value>>, Vec<usize>) {
    let mut steps = Vec::new();
    loop {
        let read = |task: &DigestTask| match &task.0 {
            Task::Read { rows, .. } => rows.len(),
            Task::Release { .. } => 0,
        };
        let before = read(&task);
        if let Some(rows) = digests.run_step(&mut task, now, wall_clock_us) {
            steps.push(rows.len().saturating_sub(before));
            return (rows, steps);
        }
        steps.push(read(&task).saturating_sub(before));
    }
}

fn read(digests: &StatementDigests, now: Time, wall_clock_us: u64) -> Vec<Vec<Value>> {
    run(digests, digests.begin_read(), now, wall_clock_us).0
}

fn all(mut rows: DigestRows) -> Vec<Vec<Value>> {
    while rows.merge_next() {}
    std::iter::from_fn(|| rows.next_row()).collect()
}

fn summary_rows(reported: &[Vec<Value>]) -> Vec<Vec<Value>> {
    all(DigestRows::summary(reported.to_vec(), Zone::UTC))
}

/// Records an execution without a session.
fn execute(digests: &mut StatementDigests, number: DigestNumber, duration_ns: u64) {
    digests.record(number, duration_ns, 1, Time(1_000 + duration_ns));
}

#[test]
fn a_digest_keeps_its_number_until_it_is_forgotten() {
    let mut digests = StatementDigests::from_number(1);
    let number = digests.number_of(&key(None, "a"), String::new, Time(0));
    assert_eq!(digests.number_of(&key(None, "a"), String::new, Time(0)), number);
    assert_ne!(digests.number_of(&key(Some("d"), "a"), String::new, Time(0)), number);
    assert!(digests.has(number) && !digests.has(DigestNumber::default()));
    digests.begin_clear();
    assert!(!digests.has(number), "the number belongs to no other digest");
    execute(&mut digests, number, 5);
    assert!(read(&digests, Time(0), 0).is_empty(), "a statement that ends after TRUNCATE is not counted");
    let again = digests.number_of(&key(None, "a"), String::new, Time(0));
    assert!(again != number && digests.has(again));
}

#[test]
fn digests_without_room_count_in_the_row_without_digest() {
    let mut digests = StatementDigests::from_number(1);
    for text in 0..ROWS_MAX + 10 {
        let number = digests.number_of(&key(None, &text.to_string()), String::new, Time(0));
        execute(&mut digests, number, 7);
    }
    let rows = summary_rows(&read(&digests, Time(0), 0));
    assert_eq!(rows.len(), ROWS_MAX);
    assert_eq!(rows[0][..4], [Value::Null, Value::Null, Value::Null, Value::UInt(11)]);
    assert_eq!(rows[0][36], Value::Null, "it has no sample");
    assert_eq!(rows[1][3], Value::UInt(1));
}

#[test]
fn the_blocks_of_a_node_are_added() {
    let (mut first, mut second) = (StatementDigests::from_number(1), StatementDigests::from_number(1));
    let one = key(Some("d"), "SELECT ?");
    let number = first.number_of(&one, || "SELECT 1".into(), Time(20_000));
    for duration_ns in [100, 300] {
        execute(&mut first, number, duration_ns);
    }
    let number = second.number_of(&one, || "SELECT 2".into(), Time(10_000));
    second.note_plan(number, PlanWork([0, 0, 0, 1, 0, 1, 1]));
    execute(&mut second, number, 50);
    let work = second.rows[1].work;
    second.rows[1].counts.add_work(work, 6);
    second.rows[1].counts.rows_sent = 6;
    let mut parts = read(&first, Time(30_000), 1_000_000);
    parts.extend(read(&second, Time(30_000), 1_000_000));
    let rows = summary_rows(&parts);
    assert_eq!(rows.len(), 1);
    let sums = rows[0][3..8].to_vec();
    assert_eq!(sums, [3, 450_000, 50_000, 150_000, 300_000].map(Value::UInt));
    assert_eq!((&rows[0][12], &rows[0][20], &rows[0][23], &rows[0][24]), {
        let (six, one) = (&Value::UInt(6), &Value::UInt(1));
        (six, one, six, one)
    });
    let at = |us: u64| Value::Temporal(Zone::UTC.date_time_at(us, 6));
    assert_eq!(rows[0][31], at(999_980), "the first block to see it");
    assert_eq!(rows[0][36..], [Value::Bytes("SELECT 2".into()), at(999_980), Value::UInt(50_000)]);
    let buckets = all(DigestRows::histograms(parts));
    assert_eq!(numbers(&buckets, 6), [1, 2, 3].map(Value::UInt));
    assert_eq!(numbers(&buckets, 1), vec![rows[0][1].clone(); 3]);
    assert_eq!(buckets[2][7], Value::Double(1.0));
}

#[test]
fn a_text_is_known_with_its_database_and_modes_alone() {
    let mut digests = StatementDigests::from_number(1);
    let number = digests.number_of(&key(None, "a"), String::new, Time(0));
    let text = TextKey { text: b"a", database: None, dialect: Dialect::default() };
    assert_eq!(digests.recent(text), None);
    digests.note_recent(text, number);
    assert_eq!(digests.recent(text), Some(number));
    let other = Dialect { ansi_quotes: true, ..Dialect::default() };
    for other in
        [TextKey { text: b"b", ..text }, TextKey { database: Some("d"), ..text }, TextKey { dialect: other, ..text }]
    {
        assert_eq!(digests.recent(other), None);
    }
    digests.begin_clear();
    assert_eq!(digests.recent(text), None);
}

#[test]
fn a_sample_has_a_maximum_length() {
    let mut digests = StatementDigests::from_number(1);
    let number = digests.number_of(&key(None, "a"), || "x".repeat(3 * SAMPLE_BYTES_MAX), Time(0));
    execute(&mut digests, number, 5);
    let rows = summary_rows(&read(&digests, Time(10), 0));
    assert!(matches!(&rows[0][36], Value::Bytes(sample) if sample.len() == SAMPLE_BYTES_MAX));
}

#[test]
fn no_step_encodes_or_forgets_more_than_a_few_digests() {
    let mut digests = StatementDigests::from_number(1);
    for text in 0..ROWS_MAX + 1 {
        let number = digests.number_of(&key(None, &text.to_string()), String::new, Time(0));
        execute(&mut digests, number, 7);
    }
    let (rows, steps) = run(&digests, digests.begin_read(), Time(0), 0);
    assert_eq!((rows.len(), steps.len()), (ROWS_MAX, ROWS_MAX / STEP_DIGESTS));
    assert!(steps.iter().all(|step| *step <= STEP_DIGESTS), "{steps:?}");
    let mut merged = DigestRows::summary(rows, Zone::UTC);
    for _ in 0..ROWS_MAX {
        assert!(merged.merge_next());
    }
    assert!(!merged.merge_next());
    let task = digests.begin_clear();
    let left = |task: &DigestTask| match &task.0 {
        Task::Release { rows, numbers } => (rows.len(), numbers.len()),
        Task::Read { .. } => (0, 0),
    };
    assert_eq!(left(&task), (ROWS_MAX, ROWS_MAX - 1));
    let (mut task, mut before) = (task, (ROWS_MAX, ROWS_MAX - 1));
    while digests.run_step(&mut task, Time(0), 0).is_none() {
        let now = left(&task);
        assert!(before.0 - now.0 <= STEP_DIGESTS && before.1 - now.1 <= STEP_DIGESTS && now < before);
        before = now;
    }
}

#[test]
fn a_read_that_truncate_interrupts_reports_only_what_is_new() {
    let mut digests = StatementDigests::from_number(1);
    for text in 0..3 * STEP_DIGESTS {
        let number = digests.number_of(&key(None, &text.to_string()), String::new, Time(0));
        execute(&mut digests, number, 7);
    }
    let mut task = digests.begin_read();
    assert_eq!(digests.run_step(&mut task, Time(0), 0), None);
    digests.begin_clear();
    let number = digests.number_of(&key(None, "new"), String::new, Time(0));
    execute(&mut digests, number, 7);
    let rows = summary_rows(&run(&digests, task, Time(0), 0).0);
    assert_eq!(numbers(&rows, 2), [Value::Bytes(b"new".to_vec())]);
}
