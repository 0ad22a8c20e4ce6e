//! Random transactions: few objects at a time, so that they meet; now and then the next object, so that none grows long.

use crate::level::Level;

/// What sessions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The level of every transaction.
    pub level: Level,
    /// The id of the first object of each kind; those of one run follow it.
    pub first_id: u32,
    /// Objects of each kind.
    pub objects: u32,
    /// How many of them are in use at any time, at least 1.
    pub window: u32,
    /// Sessions.
    pub sessions: u32,
    /// Transactions of each session.
    pub transactions: u32,
}

/// How a read locks what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Not at all, unless the level does.
    None,
    /// Against writers.
    Share,
    /// Against writers and other locks.
    Update,
}

/// A statement of a transaction, before values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// BEGIN.
    Begin,
    /// START TRANSACTION WITH CONSISTENT SNAPSHOT.
    BeginWithSnapshot,
    /// A read of lists by their ids.
    ReadLists(Vec<u32>, Lock),
    /// A read of registers by their ids.
    ReadRegisters(Vec<u32>, Lock),
    /// A read of all members of a family.
    ReadFamily(u32),
    /// An append to a list; the second says whether a savepoint takes it back.
    Append(u32, bool),
    /// A write of a register.
    Set(u32, bool),
    /// A new member of a family.
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

/// Draws transactions of one session; `below(n)` gives a number from 0 to n - 1.
pub struct Drawer<'a> {
    options: &'a Options,
    /// The least object in use.
    first: u32,
    below: &'a mut dyn FnMut(u64) -> u64,
}

impl<'a> Drawer<'a> {
    /// A drawer for a session that has done so many of its transactions.
    pub fn new(options: &'a Options, done: u32, below: &'a mut dyn FnMut(u64) -> u64) -> Self {
        let range = options.objects.saturating_sub(options.window);
        let moved = u64::from(done) * u64::from(range + 1) / u64::from(options.transactions.max(1));
        Self { options, first: options.first_id + (moved as u32).min(range), below }
    }

    /// The statements of a transaction; one that stands alone has no BEGIN.
    pub fn transaction(&mut self) -> Vec<Planned> {
        if self.one_in(10) {
            return vec![self.operation(false)];
        }
        let with_snapshot = self.options.level != Level::ReadCommitted && self.one_in(6);
        let mut plan = vec![if with_snapshot { Planned::BeginWithSnapshot } else { Planned::Begin }];
        let only_reads = self.one_in(5);
        for _ in 0..2 + self.below(4) {
            match self.below(12) {
                0 if !only_reads => self.push_taken_back(&mut plan),
                1 if !only_reads => {
                    let write = self.write(false);
                    plan.extend([write.clone(), write]);
                }
                _ => plan.push(self.operation(only_reads)),
            }
        }
        plan.push(if self.one_in(10) { Planned::Rollback } else { Planned::Commit });
        plan
    }

    fn push_taken_back(&mut self, plan: &mut Vec<Planned>) {
        plan.push(Planned::Savepoint);
        for _ in 0..1 + self.below(2) {
            plan.push(self.write(true));
        }
        plan.push(Planned::BackToSavepoint);
    }

    fn operation(&mut self, only_reads: bool) -> Planned {
        if !only_reads && self.one_in(2) {
            return self.write(false);
        }
        let lock = match self.below(12) {
            0 if !only_reads => Lock::Update,
            1 if !only_reads => Lock::Share,
            _ => Lock::None,
        };
        match self.below(5) {
            0 | 1 => Planned::ReadLists(self.ids(), lock),
            2 | 3 => Planned::ReadRegisters(self.ids(), lock),
            _ => Planned::ReadFamily(self.id()),
        }
    }

    fn write(&mut self, is_undone: bool) -> Planned {
        match self.below(5) {
            0 | 1 => Planned::Append(self.id(), is_undone),
            2 | 3 => Planned::Set(self.id(), is_undone),
            _ => Planned::Add(self.id(), is_undone),
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
