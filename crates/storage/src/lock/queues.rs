//! The places of waiting requests in their queues, and the exclusive ones among them. The search for blockers
//! finds the nearest exclusive request here, however many shared ones are between.

use std::collections::BTreeMap;

use super::table::LockMode;

/// The waiting requests of all locks. Locks and requests are named by their numbers.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// The place of each request. Places at one lock are in the order of its queue.
    places: BTreeMap<u32, i64>,
    /// The requests for exclusive mode, by lock and place.
    exclusive: BTreeMap<(u32, i64), u32>,
    /// Number of places given away so far.
    count: i64,
}

impl Queues {
    /// Adds a request of a lock: an upgrade at the front of its queue, any other one at the end.
    pub fn add(&mut self, (lock, request): (u32, u32), mode: LockMode, is_upgrade: bool) {
        self.count += 1;
        let place = if is_upgrade { -self.count } else { self.count };
        self.places.insert(request, place);
        if mode == LockMode::Exclusive {
            self.exclusive.insert((lock, place), request);
        }
    }

    /// Removes a request of a lock.
    pub fn remove(&mut self, (lock, request): (u32, u32)) {
        if let Some(place) = self.places.remove(&request) {
            self.exclusive.remove(&(lock, place));
        }
    }

    /// The exclusive requests before a waiting request, the nearest first.
    pub fn exclusive_before(&self, lock: u32, request: u32) -> impl Iterator<Item = u32> {
        let place = self.places.get(&request).copied().unwrap_or(i64::MIN);
        self.exclusive.range((lock, i64::MIN)..(lock, place)).rev().map(|(_, request)| *request)
    }

    /// The exclusive requests after a waiting request, the nearest first.
    pub fn exclusive_after(&self, lock: u32, request: u32) -> impl Iterator<Item = u32> {
        let place = self.places.get(&request).copied().unwrap_or(i64::MAX - 1);
        self.exclusive.range((lock, place + 1)..=(lock, i64::MAX)).map(|(_, request)| *request)
    }
}
