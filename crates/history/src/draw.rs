//! Random transactions. At any time they use few objects, so that they conflict. Over time they move on to
//! new objects, so that no list grows long.

use crate::level::Level;

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The isolation level of every transaction.
    pub level: Level,
    /// The id of the first object of each kind. The run uses consecutive ids.
    pub first_id: u32,
    /// Number of objects of each kind.
    pub objects: u32,
    /// Number of objects of each kind in use at any time, at least 1.
    pub window: u32,
    /// Number of sessions.
    pub sessions: u32,
    /// Number of transactions of each session.
    pub transactions: u32,
}

/// The lock that a read takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No lock, unless the isolation level takes one.
    None,
    /// FOR SHARE.
    Share,
    /// FOR UPDATE.
    Update,
}

/// A statement of a transaction. Written values are assigned when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedStatement {
    /// BEGIN.
    Begin,
    /// START TRANSACTION WITH CONSISTENT SNAPSHOT.
    BeginWithSnapshot,
    /// A read of lists by ids.
    ReadLists(Vec<u32>, Lock),
    /// A read of registers by ids.
    ReadRegisters(Vec<u32>, Lock),
    /// A read of all members of a family.
    ReadFamily(u32),
    /// An append to a list, and whether ROLLBACK TO SAVEPOINT will undo it.
    Append(u32, bool),
    /// A write of a register, and whether ROLLBACK TO SAVEPOINT will undo it.
    Set(u32, bool),
    /// A new member of a family, and whether ROLLBACK TO SAVEPOINT will undo it.
    Add(u32, bool),
    /// SAVEPOINT.
    Savepoint,
    /// ROLLBACK TO SAVEPOINT.
    BackToSavepoint,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// Generates the transactions of one session. `below(n)` returns a random number from 0 to n - 1.
pub struct Generator<'a> {
    options: &'a Options,
    /// The lowest id in use.
    first: u32,
    below: &'a mut dyn FnMut(u64) -> u64,
}

impl<'a> Generator<'a> {
    /// A generator for a session that has finished `done` of its transactions.
    pub fn new(options: &'a Options, done: u32, below: &'a mut dyn FnMut(u64) -> u64) -> Self {
        let range = options.objects.saturating_sub(options.window);
        let moved = u64::from(done) * u64::from(range + 1) / u64::from(options.transactions.max(1));
        Self { options, first: options.first_id + (moved as u32).min(range), below }
    }

    /// The statements of one transaction. An autocommit statement has no BEGIN.
    pub fn transaction(&mut self) -> Vec<PlannedStatement> {
        if self.one_in(10) {
            return vec![self.operation(false)];
        }
        let with_snapshot = self.options.level != Level::ReadCommitted && self.one_in(6);
        let mut plan = vec![if with_snapshot { PlannedStatement::BeginWithSnapshot } else { PlannedStatement::Begin }];
        let only_reads = self.one_in(5);
        for _ in 0..2 + self.below(4) {
            match self.below(12) {
                0 if !only_reads => self.push_undone_writes(&mut plan),
                1 if !only_reads => {
                    let write = self.write(false);
                    plan.extend([write.clone(), write]);
                }
                _ => plan.push(self.operation(only_reads)),
            }
        }
        plan.push(if self.one_in(10) { PlannedStatement::Rollback } else { PlannedStatement::Commit });
        plan
    }

    fn push_undone_writes(&mut self, plan: &mut Vec<PlannedStatement>) {
        plan.push(PlannedStatement::Savepoint);
        for _ in 0..1 + self.below(2) {
            plan.push(self.write(true));
        }
        plan.push(PlannedStatement::BackToSavepoint);
    }

    fn operation(&mut self, only_reads: bool) -> PlannedStatement {
        if !only_reads && self.one_in(2) {
            return self.write(false);
        }
        let lock = match self.below(12) {
            0 if !only_reads => Lock::Update,
            1 if !only_reads => Lock::Share,
            _ => Lock::None,
        };
        match self.below(5) {
            0 | 1 => PlannedStatement::ReadLists(self.ids(), lock),
            2 | 3 => PlannedStatement::ReadRegisters(self.ids(), lock),
            _ => PlannedStatement::ReadFamily(self.id()),
        }
    }

    fn write(&mut self, is_undone: bool) -> PlannedStatement {
        match self.below(5) {
            0 | 1 => PlannedStatement::Append(self.id(), is_undone),
            2 | 3 => PlannedStatement::Set(self.id(), is_undone),
            _ => PlannedStatement::Add(self.id(), is_undone),
        }
    }

    fn id(&mut self) -> u32 {
        let window = u64::from(self.options.window.clamp(1, self.options.objects.max(1)));
        self.first + self.below(window) as u32
    }

    fn ids(&mut self) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..1 + self.below(3)).map(|_| self.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn below(&mut self, count: u64) -> u64 {
        (self.below)(count)
    }
}
