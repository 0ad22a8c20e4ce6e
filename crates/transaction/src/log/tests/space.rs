//! The limit of the log: what waits, and what goes on.

use junctor_kernel::Duration;
use junctor_model::id::CommitNumber;
use junctor_signals::append_records::{LogSpace, SpaceExchange};
use junctor_signals::checkpoint::{ReadLogUsage, ReadLogUsageReply};
use junctor_signals::recover_log::RecoveredLog;
use junctor_signals::{LogSignal, MainSignal, Module, Signal};
use junctor_storage::log::{RecordBuffer, RecordHeader, RecordKind, commit_blocks};

use super::{PARTITION, SEGMENT_BYTES, Stage, address};
use crate::log::space::SpaceAccount;

const IMAGE: &[u8] = &[1; 300_000];

impl Stage {
    fn with_segments(segments: u64) -> Stage {
        let mut stage = Stage::new();
        stage.block.set_segments_max(segments);
        stage.start(1, &RecoveredLog::default());
        stage
    }

    fn usage(&mut self) -> ReadLogUsageReply {
        self.handle(LogSignal::ReadLogUsage(ReadLogUsage { reply_to: address(Module::Main, 0) }));
        match self.sent.pop() {
            Some((_, Signal::Main(MainSignal::ReadLogUsageReply(usage)))) => usage,
            other => panic!("{other:?}"),
        }
    }

    /// Commits until the log grants no more. Returns the number of commits.
    fn fill(&mut self) -> usize {
        let needed = commit_blocks(IMAGE.len() + 100);
        let mut commits = 0;
        while self.exchange(needed) {
            let number = self.sequence.take(0).expect("a free number");
            self.numbers = number.0;
            let mut buffer = RecordBuffer::new();
            let kind = RecordKind::Dictionary;
            let transaction = junctor_model::id::TransactionId(number.0);
            buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
            buffer.append_body(IMAGE);
            buffer.end();
            self.reserved.insert(number, needed);
            self.deliver(0, buffer.take(Vec::new()), number);
            self.await_durable(0, number);
            self.run_disk();
            commits += 1;
            assert!(commits < 200, "the log has a limit");
        }
        commits
    }
}

#[test]
fn a_log_near_its_limit_is_reported_until_it_is_trimmed() {
    let mut stage = Stage::with_segments(10);
    for _ in 0..20 {
        stage.commit_durably(IMAGE);
        assert_eq!(stage.space_reports(), []);
    }
    let commits = stage.fill();
    assert!(commits < 12, "{commits} more commits");
    assert_eq!(stage.space_reports(), [(Module::Tc, LogSpace::Limited), (Module::Main, LogSpace::Limited)]);
    stage.checkpoint();
    assert_eq!(stage.space_reports(), [(Module::Tc, LogSpace::Free), (Module::Main, LogSpace::Free)]);
}

#[test]
fn a_full_log_grants_nothing_until_a_checkpoint_frees_a_part() {
    let mut stage = Stage::with_segments(4);
    for round in 0..3 {
        let commits = stage.fill();
        assert!(commits >= 3, "round {round}: {commits} commits");
        let usage = stage.usage();
        assert!(usage.is_waited_for && usage.used_bytes <= usage.limit_bytes, "{usage:?}");
        assert_eq!(usage.limit_bytes, 4 * SEGMENT_BYTES);
        // The groups of a checkpoint, and of a stop, have their space.
        stage.advance(Duration::from_millis(3000));
        stage.run_disk();
        assert!(stage.take_grants().is_empty());
        stage.checkpoint();
        assert_eq!(stage.take_grants().len(), 1, "the request that waited is granted");
        assert!(!stage.usage().is_waited_for);
    }
    assert!(stage.files.len() <= 4, "{:?}", stage.files.keys());
    assert_eq!(stage.halted, None);
}

#[test]
fn main_writes_into_the_reserve_until_the_log_is_exhausted() {
    let mut stage = Stage::with_segments(4);
    stage.fill();
    stage.space_reports();
    let mut batches = 0;
    while !stage.space_reports().contains(&(Module::Main, LogSpace::Exhausted)) {
        let number = stage.sequence.take(0).expect("a free number");
        stage.numbers = number.0;
        let mut buffer = RecordBuffer::new();
        let (kind, transaction) = (RecordKind::Dictionary, junctor_model::id::TransactionId(0));
        buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
        buffer.append_body(&[0; 1000]);
        buffer.end();
        stage.deliver(2, buffer.take(Vec::new()), number);
        stage.await_durable(1, number);
        stage.run_disk();
        batches += 1;
        assert!(batches < 200, "the reserve ends");
    }
    assert!(batches >= 10, "{batches} batches of main");
    let usage = stage.usage();
    assert!(usage.used_bytes + usage.limit_bytes / 20 < usage.limit_bytes, "groups without records have space");
    stage.checkpoint();
    assert_eq!(stage.space_reports(), [(Module::Tc, LogSpace::Free), (Module::Main, LogSpace::Free)]);
}

#[test]
fn a_full_log_of_a_smaller_limit_starts_and_grants_nothing_before_a_checkpoint() {
    let mut stage = Stage::with_segments(8);
    stage.fill();
    let mut next = Stage::after(&stage);
    next.block.set_segments_max(4);
    let recovered = next.recover().expect("a whole log");
    next.start(2, &recovered);
    let usage = next.usage();
    assert!(usage.used_bytes > usage.limit_bytes, "{usage:?}");
    assert!(!next.exchange(10));
    next.checkpoint();
    assert_eq!(next.take_grants(), [10]);
    let number = next.commit_row(PARTITION, b"one");
    next.await_durable(0, number);
    next.run_disk();
    assert_eq!(next.block.durable(), number);
}

#[test]
fn a_request_waits_for_commits_that_are_spent_and_not_durable() {
    let mut stage = Stage::with_segments(4);
    // Nobody awaits these commits. A request that needs their blocks makes them durable.
    let mut last = CommitNumber(0);
    while stage.exchange(200) {
        last = stage.commit(0, 100);
        stage.reserved.clear();
        stage.spent.set(stage.spent.get() + 200);
    }
    stage.run_disk();
    assert_eq!(stage.block.durable(), last);
    assert_eq!(stage.take_grants(), [200]);
}

#[test]
fn redo_of_an_update_under_load_is_little_more_than_its_image() {
    let mut stage = Stage::started();
    // A row of sysbench's tables.
    let image = [1; 193];
    let before = stage.usage().written_bytes;
    let (rounds, clients) = (20, 64);
    for _ in 0..rounds {
        let numbers = (0..clients).map(|_| stage.commit_row(PARTITION, &image));
        let last = numbers.last().expect("a client commits");
        stage.await_durable(0, last);
        stage.run_disk();
    }
    let bytes = (stage.usage().written_bytes - before) as usize / (rounds * clients);
    assert!(bytes <= image.len() * 3 / 2 + 64, "{bytes} bytes for each commit");
}

#[test]
fn chunks_of_other_nodes_need_no_blocks_of_the_account() {
    let mut account = SpaceAccount::new(1000, 10, 1).shared(true);
    let granted = account.first_grant().granted;
    account.release(granted + 12);
    account.exchange(0, SpaceExchange { wanted: None, spent: granted - 1, returned: 1 });
    account.begin_cycle();
    account.release(5);
    account.end_cycle();
    assert_eq!(account.reserved(), 0);
}
