use std::collections::{BTreeMap, BTreeSet, VecDeque};

use junctor_model::id::{PartitionId, RowId, TableId, TransactionId};
use proptest::prelude::*;

use crate::lock::LockMode::{Exclusive, Shared};
use crate::lock::{Followers, LockKey, LockMode, LockReply, LockTable, LockTableFull, WaiterId, WaiterToken};

fn key(row: u32) -> LockKey {
    LockKey { partition: PartitionId { table: TableId(1), index: 0 }, row: RowId(row) }
}

fn table() -> LockTable {
    LockTable::new(7, 1000)
}

fn ask(table: &mut LockTable, row: u32, transaction: u64, mode: LockMode) -> LockReply {
    table.request(key(row), TransactionId(transaction), mode, WaiterToken(transaction)).unwrap()
}

fn waiter(reply: LockReply) -> WaiterId {
    match reply {
        LockReply::Waiting(waiter) => waiter,
        LockReply::Granted => panic!("granted at once"),
    }
}

fn release(table: &mut LockTable, transaction: u64) -> Vec<u64> {
    let mut granted = Vec::new();
    table.release_all(TransactionId(transaction), &mut granted);
    granted.into_iter().map(|token| token.0).collect()
}

fn blockers(table: &LockTable, waiter: WaiterId) -> Vec<u64> {
    let named = table.blockers_of(waiter).into_iter();
    let check = |(transaction, token): (TransactionId, Option<WaiterToken>)| {
        // In these tests, the token is the number of the transaction.
        assert!(token.is_none_or(|token| token.0 == transaction.0));
        transaction.0
    };
    named.map(check).collect()
}

#[test]
fn shared_locks_are_shared_and_exclusive_ones_are_not() {
    let mut table = table();
    assert_eq!(ask(&mut table, 1, 1, Shared), LockReply::Granted);
    assert_eq!(ask(&mut table, 1, 2, Shared), LockReply::Granted);
    let third = waiter(ask(&mut table, 1, 3, Exclusive));
    let named = blockers(&table, third);
    assert_eq!(named, [1, 2]);
    assert_eq!(ask(&mut table, 2, 3, Exclusive), LockReply::Granted);
    assert_eq!(release(&mut table, 1), [0; 0]);
    assert_eq!(release(&mut table, 2), [3]);
    assert_eq!(table.mode_held(key(1), TransactionId(3)), Some(Exclusive));
    assert_eq!(release(&mut table, 3), [0; 0]);
    assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (0, 0, 0));
}

#[test]
fn a_reader_does_not_overtake_a_waiting_writer() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    waiter(ask(&mut table, 1, 2, Exclusive));
    let reader = waiter(ask(&mut table, 1, 3, Shared));
    waiter(ask(&mut table, 1, 4, Shared));
    let named = blockers(&table, reader);
    assert_eq!(named, [2], "the writer waits for the holder");
    assert_eq!(release(&mut table, 1), [2]);
    assert_eq!(release(&mut table, 2), [3, 4]);
}

#[test]
fn the_reported_blockers_wait_for_all_others() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    let writer = waiter(ask(&mut table, 1, 2, Exclusive));
    let reader = waiter(ask(&mut table, 1, 3, Shared));
    let other = waiter(ask(&mut table, 1, 4, Shared));
    let last = waiter(ask(&mut table, 1, 5, Exclusive));
    assert_eq!((blockers(&table, writer), blockers(&table, reader)), (vec![1], vec![2]));
    assert_eq!((blockers(&table, other), blockers(&table, last)), (vec![2], vec![4, 3, 2]));
    // The holder requests a stronger mode and gets it. The writer is cancelled, so its followers wait for the
    // holder.
    assert_eq!(ask(&mut table, 1, 1, Exclusive), LockReply::Granted);
    let others = [3, 4, 5].map(WaiterToken).to_vec();
    assert_eq!(table.followers_of(writer), Followers { fewer: None, others });
    assert!(table.cancel(writer, &mut Vec::new()));
    assert_eq!((blockers(&table, reader), blockers(&table, last)), (vec![1], vec![4, 3, 1]));
    assert_eq!(table.followers_of(other), Followers { fewer: Some(WaiterToken(5)), others: Vec::new() });
    assert_eq!(table.followers_of(last), Followers::default());
}

#[test]
fn a_long_queue_is_a_chain() {
    let mut table = table();
    ask(&mut table, 1, 1, Exclusive);
    for transaction in 2..100 {
        let waiter = waiter(ask(&mut table, 1, transaction, Exclusive));
        assert_eq!(blockers(&table, waiter), [transaction - 1]);
        assert!(!table.has_other_requests(waiter));
    }
    ask(&mut table, 2, 100, Shared);
    let holding = waiter(ask(&mut table, 1, 100, Exclusive));
    assert!(table.has_other_requests(holding));
}

#[test]
fn ten_thousand_waiters_for_one_row_cost_a_few_visits_each() {
    let patterns: [&dyn Fn(u64) -> LockMode; 4] =
        [&|_| Exclusive, &|_| Shared, &|number| if number % 2 == 0 { Shared } else { Exclusive }, &|number| {
            if number % 100 == 0 { Exclusive } else { Shared }
        }];
    let count = 10_000;
    for (pattern, mode_of) in patterns.into_iter().enumerate() {
        let mut table = LockTable::new(7, 1 << 20);
        ask(&mut table, 1, 1, Exclusive);
        let ask_all = |table: &mut LockTable| {
            let modes = (2..count + 2).map(|number| (number, mode_of(number)));
            let one = |(number, mode)| {
                let waiter = waiter(ask(table, 1, number, mode));
                assert!(!table.blockers_of(waiter).is_empty());
                waiter
            };
            modes.map(one).collect::<Vec<WaiterId>>()
        };
        let waiting = ask_all(&mut table);
        let visited = table.visited.replace(0);
        assert!(visited <= 3 * count as usize, "pattern {pattern}: {visited} visits");
        // All time out in the order of arrival.
        for waiter in &waiting {
            let followers = table.followers_of(*waiter);
            assert!(table.cancel(*waiter, &mut Vec::new()));
            for token in followers.others {
                table.blockers_of(waiting[token.0 as usize - 2]);
            }
        }
        let visited = table.visited.replace(0);
        assert!(visited <= 6 * count as usize, "pattern {pattern}: {visited} visits of cancellations");
    }
}

/// The blockers of each waiting request, as they would be without any shortcut: every holder and every waiter
/// ahead that excludes the request.
fn all_blockers(model: &Model) -> BTreeMap<u64, BTreeSet<u64>> {
    let all = model.waiters.iter().enumerate().map(|(position, (own, mode, _))| {
        let excludes = |(other, held): (u64, LockMode)| other != *own && (*mode == Exclusive || held == Exclusive);
        let holders = model.holders.iter().map(|(other, (held, _))| (*other, *held));
        let ahead = model.waiters.iter().take(position).map(|(other, asked, _)| (*other, *asked));
        (*own, holders.chain(ahead).filter(|other| excludes(*other)).map(|(other, _)| other).collect())
    });
    let mut edges: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    all.for_each(|(own, others): (u64, BTreeSet<u64>)| edges.entry(own).or_default().extend(others));
    edges
}

/// All that can be reached from each transaction.
fn reachable(edges: &BTreeMap<u64, BTreeSet<u64>>) -> BTreeMap<u64, BTreeSet<u64>> {
    let from = |start: &u64| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![*start]);
        while let Some(next) = left.pop() {
            left.extend(edges.get(&next).into_iter().flatten().filter(|other| seen.insert(**other)));
        }
        seen
    };
    edges.keys().map(|start| (*start, from(start))).collect()
}

#[test]
fn adjacent_readers_do_not_wait_for_each_other() {
    let mut table = table();
    ask(&mut table, 1, 1, Exclusive);
    waiter(ask(&mut table, 1, 2, Shared));
    let reader = waiter(ask(&mut table, 1, 3, Shared));
    let named = blockers(&table, reader);
    assert_eq!(named, [1]);
}

#[test]
fn a_lock_upgrade_precedes_other_waiters() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    ask(&mut table, 1, 2, Shared);
    waiter(ask(&mut table, 1, 3, Exclusive));
    let upgrade = waiter(ask(&mut table, 1, 1, Exclusive));
    let named = blockers(&table, upgrade);
    assert_eq!(named, [2]);
    assert_eq!(release(&mut table, 2), [1]);
    assert_eq!(table.mode_held(key(1), TransactionId(1)), Some(Exclusive));
    assert_eq!(release(&mut table, 1), [3]);
}

#[test]
fn an_ending_transaction_is_granted_nothing() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    ask(&mut table, 1, 2, Shared);
    waiter(ask(&mut table, 1, 1, Exclusive));
    assert_eq!(release(&mut table, 1), [0; 0]);
    assert_eq!(table.request_count(), 1);
}

#[test]
fn an_ending_transaction_with_two_requests_for_one_row_is_granted_nothing() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    ask(&mut table, 1, 4, Shared);
    let writer = waiter(ask(&mut table, 1, 3, Exclusive));
    ask(&mut table, 2, 4, Exclusive);
    // The holder's second request is for no stronger mode and is granted, so this request goes to the front.
    waiter(ask(&mut table, 1, 4, Exclusive));
    waiter(ask(&mut table, 1, 4, Exclusive));
    assert!(table.cancel(writer, &mut Vec::new()));
    assert_eq!(release(&mut table, 4), [0; 0]);
    assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (1, 1, 0));
}

#[test]
fn a_cancelled_waiter_unblocks_those_after_it() {
    let mut table = table();
    ask(&mut table, 1, 1, Shared);
    let writer = waiter(ask(&mut table, 1, 2, Exclusive));
    waiter(ask(&mut table, 1, 3, Shared));
    let mut granted = Vec::new();
    assert!(table.cancel(writer, &mut granted));
    assert_eq!(granted, [WaiterToken(3)]);
    assert!(!table.cancel(writer, &mut granted));
    assert!(!table.is_waiting(writer));
    assert_eq!(table.blockers_of(writer), []);
    assert_eq!(table.followers_of(writer), Followers::default());
}

#[test]
fn a_lock_requested_twice_must_be_released_twice() {
    let mut table = table();
    let mut granted = Vec::new();
    ask(&mut table, 1, 1, Exclusive);
    ask(&mut table, 1, 1, Shared);
    table.release(key(1), TransactionId(1), &mut granted);
    assert_eq!(table.mode_held(key(1), TransactionId(1)), Some(Exclusive));
    table.release(key(1), TransactionId(1), &mut granted);
    assert_eq!(table.lock_count(), 0);
}

#[test]
fn a_full_table_refuses_and_stays_as_it_is() {
    let mut table = LockTable::new(7, 2);
    ask(&mut table, 1, 1, Exclusive);
    ask(&mut table, 2, 1, Exclusive);
    let refused = table.request(key(3), TransactionId(2), Shared, WaiterToken(0));
    assert_eq!(refused, Err(LockTableFull));
    assert_eq!((table.lock_count(), table.request_count()), (2, 2));
    release(&mut table, 1);
    assert_eq!(ask(&mut table, 3, 2, Shared), LockReply::Granted);
}

/// The transactions that block a wait, each once.
fn names(table: &LockTable, waiter: WaiterId) -> BTreeSet<u64> {
    table.blockers_of(waiter).into_iter().map(|(transaction, _)| transaction.0).collect()
}

/// The rules of one lock, restated with plain lists.
#[derive(Default)]
struct Model {
    holders: BTreeMap<u64, (LockMode, u32)>,
    waiters: VecDeque<(u64, LockMode, u64)>,
}

impl Model {
    fn can_have(&self, transaction: u64, mode: LockMode) -> bool {
        let others = |wanted: LockMode| {
            let mut others = self.holders.iter().filter(|(other, _)| **other != transaction);
            others.all(|(_, (held, _))| *held == Shared && wanted == Shared)
        };
        match self.holders.get(&transaction) {
            Some((held, _)) => *held >= mode || others(mode),
            None => others(mode),
        }
    }

    fn hold(&mut self, transaction: u64, mode: LockMode) {
        let held = self.holders.entry(transaction).or_insert((mode, 0));
        *held = (held.0.max(mode), held.1 + 1);
    }

    fn request(&mut self, transaction: u64, mode: LockMode, token: u64) -> bool {
        let holds = self.holders.contains_key(&transaction);
        if self.can_have(transaction, mode) && (holds || self.waiters.is_empty()) {
            self.hold(transaction, mode);
            return true;
        }
        match holds {
            true => self.waiters.push_front((transaction, mode, token)),
            false => self.waiters.push_back((transaction, mode, token)),
        }
        false
    }

    fn grant(&mut self) -> Vec<u64> {
        let mut granted = Vec::new();
        while let Some((transaction, mode, token)) = self.waiters.front().copied()
            && self.can_have(transaction, mode)
        {
            self.waiters.pop_front();
            self.hold(transaction, mode);
            granted.push(token);
        }
        granted
    }
}

#[derive(Clone, Debug)]
enum Step {
    Request { row: u32, transaction: u64, is_exclusive: bool },
    ReleaseAll { transaction: u64 },
    Cancel { which: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u32..3, 1u64..6, any::<bool>())
            .prop_map(|(row, transaction, is_exclusive)| Step::Request { row, transaction, is_exclusive }),
        2 => (1u64..6).prop_map(|transaction| Step::ReleaseAll { transaction }),
        1 => (0usize..10).prop_map(|which| Step::Cancel { which }),
    ]
}

fn compare(table: &LockTable, models: &[Model]) {
    let mut expected: Vec<(u32, u64, LockMode, bool)> = Vec::new();
    for (row, model) in models.iter().enumerate() {
        expected.extend(model.holders.iter().map(|(transaction, (mode, _))| (row as u32, *transaction, *mode, true)));
        expected.extend(model.waiters.iter().map(|(transaction, mode, _)| (row as u32, *transaction, *mode, false)));
    }
    expected.sort();
    let mut found: Vec<(u32, u64, LockMode, bool)> =
        table.locks().map(|lock| (lock.key.row.0, lock.transaction.0, lock.mode, lock.is_granted)).collect();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(table.request_count(), expected.len());
    assert_eq!(table.waiter_count(), expected.iter().filter(|entry| !entry.3).count());
}

proptest! {
    #[test]
    fn row_locks_agree_with_a_simple_model(steps in proptest::collection::vec(any_step(), 1..120)) {
        let mut table = table();
        let mut models: Vec<Model> = (0..3).map(|_| Model::default()).collect();
        let mut waiting: Vec<(WaiterId, u64, usize)> = Vec::new();
        // The blockers of each wait, as tc has learned them.
        let mut reported: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (token, step) in steps.into_iter().enumerate() {
            let token = token as u64;
            let mut granted = Vec::new();
            let mut expected = Vec::new();
            match step {
                Step::Request { row, transaction, is_exclusive } => {
                    let mode = if is_exclusive { Exclusive } else { Shared };
                    let reply = table.request(key(row), TransactionId(transaction), mode, WaiterToken(token)).unwrap();
                    let is_granted = models[row as usize].request(transaction, mode, token);
                    prop_assert_eq!(reply == LockReply::Granted, is_granted);
                    if let LockReply::Waiting(waiter) = reply {
                        waiting.push((waiter, token, row as usize));
                        reported.insert(token, names(&table, waiter));
                    }
                }
                Step::ReleaseAll { transaction } => {
                    let waits = models.iter().any(|model| model.waiters.iter().any(|(owner, ..)| *owner == transaction));
                    table.release_all(TransactionId(transaction), &mut granted);
                    for model in &mut models {
                        model.holders.remove(&transaction);
                        model.waiters.retain(|(owner, _, _)| *owner != transaction);
                        expected.extend(model.grant());
                    }
                    if waits {
                        // ldm cancels the waits of a transaction before it releases the locks.
                        for (waiter, token, _) in waiting.iter().filter(|(waiter, ..)| table.is_waiting(*waiter)) {
                            reported.insert(*token, names(&table, *waiter));
                        }
                    }
                }
                Step::Cancel { which } if !waiting.is_empty() => {
                    let (waiter, token, row) = waiting[which % waiting.len()];
                    let cancelled = token;
                    let is_waiting = models[row].waiters.iter().any(|(_, _, other)| *other == token);
                    let followers = table.followers_of(waiter);
                    prop_assert_eq!(table.cancel(waiter, &mut granted), is_waiting);
                    for (other, token, _) in waiting.iter().filter(|(other, ..)| table.is_waiting(*other)) {
                        if followers.others.contains(&WaiterToken(*token)) {
                            reported.insert(*token, names(&table, *other));
                        }
                        if followers.fewer == Some(WaiterToken(*token)) {
                            let gone = models[row].waiters.iter().find(|(_, _, other)| *other == cancelled);
                            let (gone, ..) = gone.expect("a request with followers waits");
                            // The same transaction may block by another request.
                            let again = names(&table, *other).contains(gone);
                            reported.entry(*token).and_modify(|known| _ = !again && known.remove(gone));
                        }
                    }
                    models[row].waiters.retain(|(_, _, other)| *other != token);
                    expected = models[row].grant();
                }
                Step::Cancel { .. } => {}
            }
            let mut granted: Vec<u64> = granted.into_iter().map(|token| token.0).collect();
            granted.sort();
            expected.sort();
            prop_assert_eq!(granted, expected);
            compare(&table, &models);
            for (row, model) in models.iter().enumerate() {
                let (mut found, mut known) = (BTreeMap::new(), BTreeMap::new());
                let here = waiting.iter().filter(|(waiter, _, at)| *at == row && table.is_waiting(*waiter));
                for (waiter, token, _) in here {
                    let own = model.waiters.iter().find(|(_, _, other)| other == token).map(|(own, ..)| *own);
                    let own = own.expect("it waits");
                    found.entry(own).or_insert_with(BTreeSet::new).extend(names(&table, *waiter));
                    known.entry(own).or_insert_with(BTreeSet::new).extend(&reported[token]);
                }
                // All waits lead to the same transactions as without a shortcut, and thus have the same
                // cycles.
                let all = reachable(&all_blockers(model));
                prop_assert_eq!(&reachable(&found), &all);
                // No cycle is missing in what a tc knows. It also knows transactions that block no longer.
                let known = reachable(&known);
                prop_assert!(all.iter().all(|(own, others)| known[own].is_superset(others)), "{known:?} of {all:?}");
            }
        }
        (1..6).for_each(|transaction| drop(release(&mut table, transaction)));
        prop_assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (0, 0, 0));
    }
}

#[test]
fn many_locks_are_released_in_steps() {
    let mut table = table();
    (1..11).for_each(|row| assert_eq!(ask(&mut table, row, 1, Exclusive), LockReply::Granted));
    (1..11).for_each(|row| _ = waiter(ask(&mut table, row, u64::from(row) + 10, Shared)));
    let (mut granted, mut steps) = (Vec::new(), 0);
    while table.release_some(TransactionId(1), 3, &mut granted) {
        steps += 1;
        assert_eq!(granted.len(), steps * 3);
        let held = (1..11).filter(|row| table.mode_held(key(*row), TransactionId(1)).is_some()).count();
        assert_eq!(held, 10 - steps * 3);
    }
    assert_eq!((steps, granted.len()), (3, 10));
    assert!(!table.release_some(TransactionId(1), 3, &mut granted), "it has nothing");
    (11..21).for_each(|transaction| assert_eq!(release(&mut table, transaction), [0; 0]));
    assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (0, 0, 0));
}

#[test]
fn an_empty_table_frees_the_memory_of_a_long_transaction() {
    let mut table = LockTable::new(7, 1 << 20);
    for round in 1..4 {
        (1..200_000).for_each(|row| assert_eq!(ask(&mut table, row, round, Exclusive), LockReply::Granted));
        let waiting = waiter(ask(&mut table, 5, 77, Shared));
        assert_eq!(release(&mut table, round), [77]);
        assert!(!table.is_waiting(waiting));
        assert_eq!(release(&mut table, 77), [0; 0]);
        assert!(!table.is_waiting(waiting), "the name of a record that is gone names nothing");
        assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (0, 0, 0));
    }
}

#[test]
fn locks_stay_correct_while_memory_is_freed_in_pieces() {
    let mut table = LockTable::new(7, 1 << 20);
    let rows = 70_000;
    for round in 0..4 {
        let first = TransactionId(2 * round + 1);
        for row in 0..rows {
            let reply = table.request(key(row), first, LockMode::Exclusive, WaiterToken(0));
            assert_eq!(reply, Ok(LockReply::Granted));
        }
        let second = TransactionId(2 * round + 2);
        let reply = table.request(key(rows / 2), second, LockMode::Shared, WaiterToken(9));
        assert!(matches!(reply, Ok(LockReply::Waiting(_))), "{reply:?}");
        let mut granted = Vec::new();
        while table.release_some(first, 10_000, &mut granted) {}
        assert_eq!((granted.as_slice(), table.lock_count()), (&[WaiterToken(9)][..], 1));
        table.release_all(second, &mut granted);
        assert_eq!((table.lock_count(), table.request_count()), (0, 0));
    }
}

#[test]
fn ending_a_transaction_does_not_visit_each_lock() {
    let mut table = table();
    for row in 0..600 {
        ask(&mut table, row, 1, Exclusive);
    }
    let second = waiter(ask(&mut table, 7, 2, Exclusive));
    ask(&mut table, 8, 1, Exclusive);
    let third = waiter(ask(&mut table, 8, 3, Shared));
    let fourth = waiter(ask(&mut table, 8, 4, Shared));
    let mut granted = Vec::new();
    table.end_transaction(TransactionId(1), [second, third, fourth].into_iter(), &mut granted);
    granted.sort();
    assert_eq!(granted, [WaiterToken(2), WaiterToken(3), WaiterToken(4)]);
    assert_eq!(table.locks().count(), 3, "the status shows no lock of an ended transaction");
    assert_eq!(ask(&mut table, 9, 5, Exclusive), LockReply::Granted);
    assert!(table.is_free(key(10)) && !table.is_free(key(9)));
    let sixth = waiter(ask(&mut table, 9, 6, Shared));
    assert_eq!(blockers(&table, sixth), [5]);
    let mut steps = 0;
    while table.release_ended(TransactionId(1), 256) {
        steps += 1;
    }
    assert_eq!(steps, 2);
    assert_eq!(table.lock_count(), 3);
    assert_eq!(release(&mut table, 5), [6]);
    (2..=6).for_each(|transaction| _ = release(&mut table, transaction));
    assert_eq!((table.lock_count(), table.request_count(), table.waiter_count()), (0, 0, 0));
}

#[test]
fn a_full_table_frees_the_locks_of_ended_transactions() {
    let mut table = table();
    for row in 0..1000 {
        ask(&mut table, row, 1, Exclusive);
    }
    let refused = table.request(key(1000), TransactionId(2), Shared, WaiterToken(2));
    assert_eq!(refused, Err(LockTableFull));
    table.end_transaction(TransactionId(1), std::iter::empty(), &mut Vec::new());
    for row in 1000..2000 {
        assert_eq!(ask(&mut table, row, 2, Exclusive), LockReply::Granted);
    }
    assert!(!table.release_ended(TransactionId(1), 256), "every lock is released already");
    assert_eq!(table.request(key(1), TransactionId(3), Shared, WaiterToken(3)), Err(LockTableFull));
    release(&mut table, 2);
    assert_eq!((table.lock_count(), table.request_count()), (0, 0));
}
