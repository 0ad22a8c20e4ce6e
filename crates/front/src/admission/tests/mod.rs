mod concurrency;

use super::*;

const SETTINGS: GroupSettings = GroupSettings {
    mode: HighPriorityMode::Transactions,
    slots: Some(1),
    slots_max: 16,
    oversubscribe: 1,
    stall_limit: Duration::from_millis(500),
    idle_timeout: Duration::from_seconds(60),
    kickup: Duration::from_millis(1000),
};

fn at(milliseconds: u64) -> Time {
    Time(milliseconds * 1_000_000)
}

fn waiting_on(group: &ThreadGroup) -> Vec<u32> {
    group.waiting().map(|it| it.connection.0).collect()
}

#[test]
fn the_oldest_waiter_of_a_priority_is_admitted_first() {
    let mut group = ThreadGroup::new(SETTINGS, Arc::default());
    assert!(group.try_enter(Priority::Low));
    assert!(!group.try_enter(Priority::High));
    group.wait(ConnectionId(2), Priority::Low, at(0));
    group.wait(ConnectionId(3), Priority::Low, at(0));
    group.wait(ConnectionId(4), Priority::High, at(1));
    assert_eq!(waiting_on(&group), [4, 2, 3]);
    assert_eq!(group.admit_next(at(2)), None);
    group.leave(at(0), at(2));
    assert!(!group.try_enter(Priority::Low), "a newcomer must not overtake");
    assert!(!group.try_enter(Priority::High), "nor one of the same priority");
    assert_eq!(group.admit_next(at(2)), Some(ConnectionId(4)));
    group.leave(at(2), at(3));
    assert!(group.try_enter(Priority::High), "low priority does not hold up high priority");
    group.leave(at(3), at(4));
    assert_eq!(group.admit_next(at(4)), Some(ConnectionId(2)));
    group.cancel_wait(ConnectionId(3));
    group.leave(at(4), at(5));
    assert_eq!(group.admit_next(at(5)), None);
    assert!(group.try_enter(Priority::Low));
    let statistics = group.statistics();
    assert_eq!((statistics.dequeued_high, statistics.dequeued_low, statistics.waited_us), (1, 1, 5000));
}

#[test]
fn a_waiter_of_low_priority_is_kicked_up() {
    let mut group =
        ThreadGroup::new(GroupSettings { stall_limit: Duration::from_seconds(100), ..SETTINGS }, Arc::default());
    assert!(group.try_enter(Priority::Low));
    group.wait(ConnectionId(2), Priority::Low, at(0));
    group.wait(ConnectionId(3), Priority::High, at(500));
    group.on_timer(at(999));
    assert_eq!(waiting_on(&group), [3, 2]);
    group.on_timer(at(1000));
    group.wait(ConnectionId(4), Priority::High, at(1001));
    assert_eq!(waiting_on(&group), [3, 2, 4]);
    assert_eq!(group.statistics().kicked_up, 1);
}

#[test]
fn each_stall_in_a_row_doubles_the_slots_up_to_the_maximum() {
    let mut group = ThreadGroup::new(GroupSettings { slots_max: 6, ..SETTINGS }, Arc::default());
    assert!(group.try_enter(Priority::Low));
    (2..9).for_each(|connection| group.wait(ConnectionId(connection), Priority::Low, at(0)));
    group.on_timer(at(499));
    assert_eq!(group.slots(), (1, 0));
    let mut extra = Vec::new();
    for time in [500, 1000, 1500, 2000] {
        group.on_timer(at(time));
        extra.push(group.slots().1);
        while group.admit_next(at(time)).is_some() {}
    }
    assert_eq!(extra, [1, 2, 4, 5], "one less than the maximum of 6");
    assert_eq!(group.counts(), (6, 2));
    // The stall is over: slots that stalls added disappear, but `oversubscribe` of them.
    (0..6).for_each(|_| group.leave(at(2000), at(2001)));
    assert_eq!(group.slots(), (1, 1));
}

#[test]
fn a_group_forgets_its_stalls_after_the_idle_timeout() {
    let mut group = ThreadGroup::new(SETTINGS, Arc::default());
    assert!(group.try_enter(Priority::Low));
    group.wait(ConnectionId(2), Priority::Low, at(0));
    group.on_timer(at(500));
    assert_eq!(group.admit_next(at(500)), Some(ConnectionId(2)));
    (0..2).for_each(|_| group.leave(at(500), at(600)));
    assert_eq!(group.slots().1, 1);
    let enter_and_wait = |group: &mut ThreadGroup, now| {
        while group.try_enter(Priority::Low) {}
        group.wait(ConnectionId(3), Priority::Low, now);
        let extra = group.slots().1;
        group.cancel_wait(ConnectionId(3));
        extra
    };
    assert_eq!(enter_and_wait(&mut group, at(60_499)), 1);
    assert_eq!(enter_and_wait(&mut group, at(60_500)), 0);
}

#[test]
fn more_slots_admit_those_that_wait() {
    let mut group = ThreadGroup::new(SETTINGS, Arc::default());
    assert!(group.try_enter(Priority::Low));
    (2..6).for_each(|connection| group.wait(ConnectionId(connection), Priority::Low, at(0)));
    group.configure(GroupSettings { slots: Some(3), ..SETTINGS });
    assert_eq!(group.admit_next(at(1)), Some(ConnectionId(2)));
    assert_eq!(group.admit_next(at(1)), Some(ConnectionId(3)));
    assert_eq!(group.admit_next(at(1)), None);
    group.configure(GroupSettings { slots: Some(1), ..SETTINGS });
    group.leave(at(1), at(2));
    assert_eq!(group.admit_next(at(2)), None, "fewer slots take effect as slots are returned");
}

#[test]
fn the_number_of_slots_follows_the_throughput() {
    let mut group = ThreadGroup::new(GroupSettings { slots: None, slots_max: 4096, ..SETTINGS }, Arc::default());
    assert_eq!(group.slots().0, 16);
    let mut connection = 0;
    let mut now = 0;
    // With more than 64 transactions at once, each takes longer than in proportion.
    for _ in 0..400 {
        now += 100;
        while group.try_enter(Priority::Low) {}
        while !group.has_waiters() || group.counts().1 < 10 {
            connection += 1;
            group.wait(ConnectionId(connection), Priority::Low, at(now));
        }
        let slots = group.slots().0 as f64;
        let finished = if slots <= 64.0 { slots * 10.0 } else { 640.0 * (64.0 / slots).sqrt() };
        for _ in 0..finished as u32 {
            group.leave(at(now - 50), at(now));
            connection += 1;
            group.wait(ConnectionId(connection), Priority::Low, at(now));
            while group.admit_next(at(now)).is_some() {}
        }
        group.on_timer(at(now));
        while group.admit_next(at(now)).is_some() {}
    }
    let slots = group.slots().0;
    assert!((45..=90).contains(&slots), "{slots} slots");
    assert!(group.statistics().adjustments > 4);
    let settings = GroupSettings { slots: None, slots_max: 4096, ..SETTINGS };
    group.configure(settings);
    assert_eq!(group.slots().0, slots, "nothing has changed");
    group.configure(GroupSettings { mode: HighPriorityMode::Statements, ..settings });
    assert_eq!(group.slots().0, 16, "another mode starts anew");
}

#[test]
fn classes_of_durations_are_dense_and_narrow() {
    let mut last = 0;
    for microseconds in (0..5000).chain((13..31).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])) {
        let class = duration_class(microseconds);
        let end = class_end(class);
        assert!(class == last || class == last + 1 || microseconds > 5000, "{microseconds}");
        assert!(microseconds < end && end <= microseconds + 1 + microseconds / 8, "{microseconds} ends at {end}");
        last = class;
    }
    assert!(duration_class((1 << 32) - 1) < DURATION_CLASSES);
}
