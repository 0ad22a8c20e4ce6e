//! The account of the log's space with the credit of several tc blocks, and random commits. A model of the
//! log writes the records in groups of random cycles.

use std::collections::VecDeque;

use junctor_kernel::Random;
use junctor_signals::append_records::SpaceGrant;
use junctor_storage::log::{
    BLOCK_BYTES, CHUNK_UNDO_BLOCKS, GROUP_BYTES_MAX, GROUP_HEADER_BYTES, PIECE_HEADER_BYTES, commit_blocks,
    record_blocks,
};

use crate::log::SpaceAccount;
use crate::tc::LogCredit;

const HOLDERS: usize = 3;
/// Bytes of the header of a record, inside of which no piece ends.
const RECORD_HEADER: usize = 32;

/// A record on its way to a group. `number` is 0 for chunks and their undo.
#[derive(Clone, Copy)]
struct Record {
    bytes: usize,
    number: u64,
}

/// A commit of a holder.
struct Commit {
    holder: usize,
    /// Lengths of its chunks, and of its last record.
    chunks: Vec<usize>,
    bytes: usize,
    needed: u64,
    is_undone: bool,
}

/// By how many blocks the log and the reservations exceed what may be granted: all but an eighth.
fn overdraft(account: &SpaceAccount) -> u64 {
    (account.used() + account.reserved()).saturating_sub(account.limit() - account.limit() / 8)
}

struct Model {
    random: Random,
    segment: u64,
    account: SpaceAccount,
    credits: Vec<LogCredit>,
    waiting: Vec<VecDeque<Commit>>,
    grants: Vec<(usize, SpaceGrant)>,
    formed: Vec<Record>,
    /// Whether the last group is a closing one.
    is_closed: bool,
    /// Blocks that may have come from the log's reserve since the last checkpoint.
    from_reserve: u64,
    /// The commits that are formed and not stable: number, holder, blocks.
    unstable: Vec<(u64, usize, u64)>,
    taken: u64,
    stable: u64,
    durable: u64,
    position: u64,
    /// The first segment that is needed.
    first: u64,
    commits: u64,
}

impl Model {
    /// A log with this number of segments at most. Its life begins with a log of random length.
    fn new(seed: u64, segments: u64) -> Model {
        let segment = 256;
        let mut account = SpaceAccount::new(segments * segment, segment, HOLDERS as u64);
        let mut random = Random::new(seed);
        let position = if random.below(2) == 0 { 0 } else { random.below(segments * segment) };
        account.begin_life(position);
        let from_reserve = overdraft(&account);
        let mut model = Model {
            random,
            segment,
            account,
            credits: (0..HOLDERS).map(|_| LogCredit::default()).collect(),
            waiting: (0..HOLDERS).map(|_| VecDeque::new()).collect(),
            grants: Vec::new(),
            formed: Vec::new(),
            is_closed: false,
            from_reserve,
            unstable: Vec::new(),
            taken: 0,
            stable: 0,
            durable: 0,
            position,
            first: 0,
            commits: 0,
        };
        // The start group.
        model.write_outside();
        for holder in 0..HOLDERS {
            let grant = model.account.first_grant();
            model.credits[holder].grant(grant);
        }
        model
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Half of the records are as long as their blocks allow, so that no slack hides a lack of blocks.
    fn perhaps_longest(&mut self, bytes: usize) -> usize {
        let blocks = record_blocks(bytes);
        let is_longer = |longer: &usize| record_blocks(*longer) > blocks;
        let longest = || (bytes..).find(is_longer).map_or(bytes, |longer| longer - 1);
        if self.below(2) == 0 { longest() } else { bytes }
    }

    /// A commit of random size: mostly small, sometimes with chunks, rarely as large as allowed.
    fn begin(&mut self) {
        let holder = self.below(HOLDERS as u64) as usize;
        let bytes = match self.below(10) {
            0 => self.below(60_000) as usize,
            _ => 32 + self.below(5000) as usize,
        };
        let bytes = self.perhaps_longest(bytes);
        let most = (self.account.transaction_max() / 2) as usize * BLOCK_BYTES;
        let mut chunks = Vec::new();
        if self.below(20) == 0 {
            let mut left = self.below(most as u64) as usize;
            while left > 0 {
                let chunk = 64 + self.below(130_000) as usize;
                let chunk = self.perhaps_longest(chunk);
                chunks.push(chunk);
                left = left.saturating_sub(chunk);
            }
        }
        // Reservations are bounds, so they may exceed what is needed.
        let slack = self.below(3);
        let chunk_blocks: u64 = chunks.iter().map(|chunk| record_blocks(*chunk)).sum();
        let undo_blocks = if chunks.is_empty() { 0 } else { CHUNK_UNDO_BLOCKS };
        let needed = chunk_blocks + commit_blocks(bytes) + undo_blocks + slack;
        let is_undone = self.below(8) == 0;
        if needed <= self.account.transaction_max() {
            self.waiting[holder].push_back(Commit { holder, chunks, bytes, needed, is_undone });
        }
        self.serve(holder);
    }

    /// Forms the records of the commits that get their blocks.
    fn serve(&mut self, holder: usize) {
        while let Some(commit) = self.waiting[holder].front()
            && self.credits[holder].take(commit.needed)
        {
            let Some(commit) = self.waiting[holder].pop_front() else { break };
            self.form(commit);
        }
        self.balance(holder);
    }

    fn form(&mut self, commit: Commit) {
        let Commit { holder, chunks, bytes, needed, is_undone } = commit;
        let mut left = needed;
        for bytes in &chunks {
            left -= record_blocks(*bytes);
            self.formed.push(Record { bytes: *bytes, number: 0 });
        }
        if is_undone {
            if !chunks.is_empty() {
                left -= CHUNK_UNDO_BLOCKS;
                self.formed.push(Record { bytes: RECORD_HEADER, number: 0 });
            }
            return self.credits[holder].give_back(left);
        }
        self.taken += 1;
        self.formed.push(Record { bytes, number: self.taken });
        self.unstable.push((self.taken, holder, left));
        self.commits += 1;
    }

    fn balance(&mut self, holder: usize) {
        let needed = self.waiting[holder].front().map_or(0, |commit| commit.needed);
        if let Some(exchange) = self.credits[holder].balance(needed) {
            self.account.exchange(holder as u16, exchange);
        }
        self.grant();
    }

    fn grant(&mut self) {
        while let Some((holder, grant)) = self.account.next_grant() {
            self.grants.push((usize::from(holder), grant));
        }
    }

    /// Delivers a grant.
    fn deliver(&mut self) {
        if !self.grants.is_empty() {
            let (holder, grant) = self.grants.remove(0);
            self.credits[holder].grant(grant);
            self.serve(holder);
        }
    }

    /// All commits so far are applied.
    fn make_stable(&mut self) {
        self.stable = self.taken;
        for (_, holder, blocks) in std::mem::take(&mut self.unstable) {
            self.credits[holder].spend(blocks);
            self.balance(holder);
        }
    }

    /// Writes a group that nothing was reserved for, as at the start and the end of a life.
    fn write_outside(&mut self) {
        self.account.write(1, false);
        self.position += 1;
        self.from_reserve += 1;
    }

    /// Block main forms a record, unless the log has no room for it.
    fn form_of_main(&mut self) {
        if !self.account.is_exhausted() {
            let bytes = RECORD_HEADER + self.below(9000) as usize;
            self.account.allow(commit_blocks(bytes));
            self.from_reserve += commit_blocks(bytes);
            self.taken += 1;
            self.formed.push(Record { bytes, number: self.taken });
        }
    }

    /// Writes what is formed, as `encode_next_group` does, or a group without records.
    fn cycle(&mut self) {
        if self.formed.is_empty() && self.durable == self.stable {
            if !self.is_closed && self.account.has_surplus() {
                self.is_closed = true;
                self.write_outside();
            }
            return;
        }
        self.is_closed = false;
        let stable = self.stable;
        self.account.begin_cycle();
        // Commits may become stable, and others may ask for blocks, while the cycle runs.
        let collected = std::mem::take(&mut self.formed);
        if self.below(2) == 0 {
            self.make_stable();
        }
        let chunks = collected.iter().filter(|record| record.number == 0);
        let chunk_blocks = chunks.map(|record| record_blocks(record.bytes)).sum();
        let mut records = collected.into_iter().map(|record| record.bytes);
        let mut left = records.next();
        let mut is_first = true;
        while left.is_some() || is_first {
            let room = GROUP_BYTES_MAX.min((self.segment - self.position % self.segment) as usize * BLOCK_BYTES);
            let (mut used, mut has_records) = (GROUP_HEADER_BYTES, false);
            while let Some(bytes) = left
                && used + PIECE_HEADER_BYTES + RECORD_HEADER <= room
            {
                used += PIECE_HEADER_BYTES;
                let written = bytes.min(room - used);
                used += written;
                has_records = true;
                left = if written == bytes { records.next() } else { Some(bytes - written) };
            }
            let blocks = used.div_ceil(BLOCK_BYTES) as u64;
            self.account.write(blocks, has_records);
            self.position += blocks;
            self.from_reserve += u64::from(self.position.is_multiple_of(self.segment));
            is_first = false;
        }
        self.account.release(chunk_blocks);
        self.account.end_cycle();
        self.durable = stable;
        if self.durable == self.taken && self.formed.is_empty() {
            // Nothing is counted as used and reserved.
            let overdraft = overdraft(&self.account);
            assert!(overdraft <= self.from_reserve, "commits take from the reserve: {overdraft}, {:?}", self.account);
        }
        self.grant();
    }

    fn checkpoint(&mut self) {
        self.first = self.position / self.segment;
        self.account.trim(self.position - self.first * self.segment);
        self.from_reserve = 0;
        self.grant();
    }
}

#[test]
fn records_never_exceed_the_limit_and_every_commit_ends() {
    for seed in 0..40 {
        let mut model = Model::new(seed, 4 + seed % 5);
        for step in 0..3000 {
            // Checkpoints are blocked for a while, and then possible again.
            let can_checkpoint = step / 500 % 2 == 1;
            match model.below(14) {
                0..4 => model.begin(),
                4..6 => model.deliver(),
                6..8 => model.make_stable(),
                8..11 => model.cycle(),
                11 => model.form_of_main(),
                12 if model.from_reserve < 8 => model.write_outside(),
                _ if can_checkpoint => model.checkpoint(),
                _ => {}
            }
        }
        let before = model.commits;
        // Whatever waits gets its blocks once checkpoints go on.
        for _ in 0..2000 {
            model.deliver();
            model.make_stable();
            model.cycle();
            model.checkpoint();
        }
        let waiting: usize = model.waiting.iter().map(VecDeque::len).sum();
        assert_eq!(waiting, 0, "seed {seed}: {:?}", model.account);
        assert!(before > 100, "seed {seed}: {before} commits while checkpoints were blocked half of the time");
    }
}

#[test]
fn idle_holders_do_not_keep_a_large_transaction_from_its_blocks() {
    let mut model = Model::new(7, 4);
    let needed = model.account.transaction_max();
    let chunks = Vec::new();
    model.waiting[0].push_back(Commit { holder: 0, chunks, bytes: 100, needed, is_undone: true });
    model.serve(0);
    for _ in 0..10 {
        model.deliver();
        model.checkpoint();
    }
    assert!(model.waiting[0].is_empty(), "{:?}", model.account);
}
