//! Transfers between accounts in several partitions, while other sessions add up the balances.
//!
//! The sum is constant in every snapshot: within a statement, and over several statements of a REPEATABLE
//! READ transaction. Each account counts its transfers, which exposes lost and invented ones.

use junctor_kernel::{Duration, Random};

use super::{Counter, DEADLOCK, Step, Workload, changed, inserts, succeeded};
use crate::statement::{Reply, Statement, integer};

const BALANCE: i64 = 1_000;

/// The workload `bank_transfer`. Every third session reads, the others transfer.
#[derive(Debug)]
pub struct BankTransfer {
    accounts: Vec<Counter>,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Idle,
    Transfer(Transfer),
    Total { floors: Vec<i64>, by_server: bool },
    Repeatable(Repeatable),
}

#[derive(Debug)]
struct Transfer {
    accounts: [usize; 2],
    amount: i64,
    locks: bool,
    rolls_back: bool,
    /// The balances that the locking reads returned, if there were any.
    balances: [i64; 2],
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Lock(usize),
    Move(usize),
    ReadBack,
    End,
}

#[derive(Debug)]
struct Repeatable {
    floors: Vec<i64>,
    /// The rows read so far, each (id, balance, moves).
    reads: Vec<Vec<Vec<i64>>>,
    stage: usize,
}

impl BankTransfer {
    /// Creates the workload with this number of sessions, rounds of each session, and accounts.
    pub fn new(sessions: usize, rounds: u32, accounts: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, work: Work::Idle };
        Self {
            accounts: vec![Counter::default(); accounts.max(2) as usize],
            sessions: (0..sessions).map(session).collect(),
        }
    }

    fn floors(&self) -> Vec<i64> {
        self.accounts.iter().map(Counter::acknowledged).collect()
    }

    fn draw(&self, session: usize, random: &mut Random) -> Work {
        if session % 3 == 2 {
            return match random.below(4) {
                0 => Work::Total { floors: self.floors(), by_server: true },
                1 => Work::Total { floors: self.floors(), by_server: false },
                _ => Work::Repeatable(Repeatable { floors: Vec::new(), reads: Vec::new(), stage: 0 }),
            };
        }
        let count = self.accounts.len() as u64;
        let from = random.below(count);
        let to = (from + 1 + random.below(count - 1)) % count;
        Work::Transfer(Transfer {
            accounts: [from as usize, to as usize],
            amount: random.below(100) as i64,
            locks: !random.one_in(4),
            rolls_back: random.one_in(5),
            balances: [0; 2],
            stage: Stage::Begin,
        })
    }

    /// Checks the (id, balance, moves) of all accounts in one snapshot.
    fn check_all(&self, rows: &[Vec<i64>], floors: &[i64]) -> Result<(), String> {
        let mut ids: Vec<i64> = rows.iter().map(|row| row[0]).collect();
        ids.sort_unstable();
        if !ids.iter().copied().eq(0..self.accounts.len() as i64) {
            return Err(format!("wrong set of accounts: {ids:?}"));
        }
        check_sum(rows.iter().map(|row| row[1]).sum(), self.accounts.len())?;
        for row in rows {
            let account = row[0] as usize;
            self.accounts[account].check(&format!("the moves of account {account}"), row[2], floors[account])?;
        }
        Ok(())
    }
}

fn check_sum(sum: i64, accounts: usize) -> Result<(), String> {
    let right = BALANCE * accounts as i64;
    match sum == right {
        true => Ok(()),
        false => Err(format!("fractured read: the balances add up to {sum}, not {right}")),
    }
}

const READ_ALL: &str = "SELECT id, balance, moves FROM accounts";

impl Transfer {
    fn statement(&self) -> Statement {
        let id = |which: usize| self.accounts[which] as i64;
        match self.stage {
            Stage::Begin => Statement::plain("BEGIN"),
            Stage::Lock(which) => {
                Statement::with("SELECT balance FROM accounts WHERE id = ? FOR UPDATE", [id(which).into()])
            }
            Stage::Move(which) => Statement::with(
                "UPDATE accounts SET balance = balance + ?, moves = moves + 1 WHERE id = ?",
                [self.change(which).into(), id(which).into()],
            ),
            Stage::ReadBack => {
                Statement::with("SELECT id, balance FROM accounts WHERE id IN (?, ?)", [id(0).into(), id(1).into()])
            }
            Stage::End => Statement::plain(if self.rolls_back { "ROLLBACK" } else { "COMMIT" }),
        }
    }

    fn change(&self, which: usize) -> i64 {
        if which == 0 { -self.amount } else { self.amount }
    }

    /// Checks an answer and returns the next stage, or `None` at the end.
    fn on_reply(&mut self, reply: &Reply) -> Result<Option<Stage>, String> {
        Ok(Some(match self.stage {
            Stage::Begin => {
                if self.locks {
                    Stage::Lock(0)
                } else {
                    Stage::Move(0)
                }
            }
            Stage::Lock(which) => {
                self.balances[which] = match reply.integers()?.as_slice() {
                    [row] => row[0],
                    rows => return Err(format!("a locking read of one account returned {rows:?}")),
                };
                if which == 0 { Stage::Lock(1) } else { Stage::Move(0) }
            }
            Stage::Move(which) => {
                changed(reply, 1)?;
                if which == 0 { Stage::Move(1) } else { Stage::ReadBack }
            }
            Stage::ReadBack => {
                self.check_own_writes(&reply.integers()?)?;
                Stage::End
            }
            Stage::End => return Ok(None),
        }))
    }

    /// Checks that a transaction that locked its accounts sees exactly its own changes.
    fn check_own_writes(&self, rows: &[Vec<i64>]) -> Result<(), String> {
        if rows.len() != 2 {
            return Err(format!("a read of two accounts returned {rows:?}"));
        }
        for row in rows.iter().filter(|_| self.locks) {
            let account_position = usize::from(row[0] == self.accounts[1] as i64);
            let right = self.balances[account_position] + self.change(account_position);
            if row[1] != right {
                return Err(format!("account {} has {} instead of its own write {right}", row[0], row[1]));
            }
        }
        Ok(())
    }
}

impl Repeatable {
    fn statement(&self, accounts: usize) -> Statement {
        let half = (accounts / 2) as i64;
        match self.stage {
            0 => Statement::plain("BEGIN"),
            1 => Statement::with(format!("{READ_ALL} WHERE id < ?"), [half.into()]),
            2 => Statement::with(format!("{READ_ALL} WHERE id >= ?"), [half.into()]),
            3 => Statement::plain(READ_ALL),
            _ => Statement::plain("COMMIT"),
        }
    }

    /// Checks that the two halves and the whole come from the same snapshot.
    fn check_repeatable(&self) -> Result<(), String> {
        let mut halves = [self.reads[0].as_slice(), self.reads[1].as_slice()].concat();
        let mut whole = self.reads[2].clone();
        halves.sort_unstable();
        whole.sort_unstable();
        match halves == whole {
            true => Ok(()),
            false => Err(format!("non-repeatable read: {halves:?}, then {whole:?}")),
        }
    }
}

impl Workload for BankTransfer {
    fn name(&self) -> &'static str {
        "bank_transfer"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE accounts (id INT NOT NULL, balance BIGINT NOT NULL, moves BIGINT NOT NULL, PRIMARY KEY (id)) \
             PARTITION BY KEY (id) PARTITIONS 4",
        )];
        statements.extend(inserts("accounts", 0..self.accounts.len() as i64, |id| format!("{id}, {BALANCE}, 0")));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if let Work::Idle = self.sessions[session].work {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            if random.one_in(8) {
                return Step::Pause(Duration::from_micros(random.below(3_000)));
            }
            self.sessions[session].rounds_left -= 1;
            self.sessions[session].work = self.draw(session, random);
        }
        let floors = self.floors();
        let accounts = self.accounts.len();
        Step::Run(match &mut self.sessions[session].work {
            Work::Transfer(transfer) => {
                if transfer.stage == Stage::End && !transfer.rolls_back {
                    for account in transfer.accounts {
                        self.accounts[account].attempt();
                    }
                }
                transfer.statement()
            }
            Work::Repeatable(repeatable) => {
                if repeatable.stage == 1 {
                    repeatable.floors = floors;
                }
                repeatable.statement(accounts)
            }
            Work::Total { by_server: true, .. } => Statement::plain("SELECT SUM(balance), COUNT(*) FROM accounts"),
            Work::Total { .. } | Work::Idle => Statement::plain(READ_ALL),
        })
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let mut work = std::mem::replace(&mut self.sessions[session].work, Work::Idle);
        match &mut work {
            Work::Transfer(transfer) => {
                // A deadlock rolled the transfer back. It had no visible effect before its COMMIT.
                if reply.errno() == DEADLOCK && transfer.stage != Stage::End {
                    return Ok(());
                }
                succeeded(reply)?;
                match transfer.on_reply(reply)? {
                    Some(stage) => transfer.stage = stage,
                    None => {
                        for account in transfer.accounts.iter().filter(|_| !transfer.rolls_back) {
                            self.accounts[*account].acknowledge();
                        }
                        return Ok(());
                    }
                }
            }
            Work::Total { floors, by_server } => {
                if !*by_server {
                    return self.check_all(&reply.integers()?, floors);
                }
                let [row] = reply.rows()? else { return Err(format!("expected one row with the sum, not {reply:?}")) };
                check_sum(integer(&row[0])?, self.accounts.len())?;
                let count = integer(&row[1])?;
                return match count == self.accounts.len() as i64 {
                    true => Ok(()),
                    false => Err(format!("COUNT(*) of the accounts is {count}")),
                };
            }
            Work::Repeatable(repeatable) => {
                succeeded(reply)?;
                if (1..=3).contains(&repeatable.stage) {
                    repeatable.reads.push(reply.integers()?);
                }
                if repeatable.stage == 3 {
                    repeatable.check_repeatable()?;
                    self.check_all(&repeatable.reads[2], &repeatable.floors)?;
                }
                repeatable.stage += 1;
                if repeatable.stage > 4 {
                    return Ok(());
                }
            }
            Work::Idle => return Err("an answer without a statement".to_owned()),
        }
        self.sessions[session].work = work;
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        // A COMMIT in flight stays an attempt: it may or may not have taken effect.
        self.sessions[session].work = Work::Idle;
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain(READ_ALL)]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        self.check_all(&reply.integers()?, &self.floors())
    }
}
