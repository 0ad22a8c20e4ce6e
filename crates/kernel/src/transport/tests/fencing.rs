use super::super::frame::FrameKind;
use super::super::hello::Refusal;
use super::super::link::Death;
use super::*;
use crate::context::Duration;

const START: Time = Time(1_000_000);

/// Carries everything between two ends until nothing moves. `ends[0]` has the lower id.
fn settle(ends: &mut [End; 2], now: Time, next: &mut u64) {
    loop {
        let mut moved = false;
        for end in 0..2 {
            let End { link, actions, .. } = &mut ends[end];
            link.poll(now, actions);
            if std::mem::take(&mut actions.connect) {
                *next += 1;
                link.on_connecting(*next, [*next as u8; 32], now, actions);
            }
            let mut output = Vec::new();
            if let Some((id, bytes)) = ends[end].write(now) {
                output.push((id, bytes));
            }
            let actions = std::mem::take(&mut ends[end].actions);
            ends[end].events.extend(actions.events);
            for (id, bytes) in actions.sends.into_iter().chain(output) {
                moved = true;
                let receiver = &mut ends[1 - end];
                if bytes.starts_with(b"JNL\x01\x01") {
                    receiver.link.on_hello(id, &bytes, (now, [*next as u8 + 100; 32]), &mut receiver.actions);
                } else {
                    receiver.receive(id, &bytes, now);
                }
            }
            for id in actions.closes {
                moved = true;
                let receiver = &mut ends[1 - end];
                receiver.link.on_closed(id, false, now, &mut receiver.actions);
            }
        }
        if !moved {
            return;
        }
    }
}

fn connected() -> ([End; 2], u64) {
    let mut ends = [End::new((1, 5), 2, START), End::new((2, 6), 1, START)];
    let mut next = 0;
    settle(&mut ends, START, &mut next);
    assert!(ends[0].link.is_up() && ends[1].link.is_up());
    (ends, next)
}

#[test]
fn an_evicted_incarnation_is_refused_and_a_later_one_accepted() {
    let ([one, mut two], mut next) = connected();
    two.link.evict(5, START, &mut two.actions);
    assert_eq!(two.actions.events, [LinkEvent::Dead(5, Death::Evicted)]);
    let mut ends = [one, two];
    let now = START.plus(Duration::from_millis(50));
    settle(&mut ends, now, &mut next);
    settle(&mut ends, now.plus(Duration::from_millis(600)), &mut next);
    assert!(!ends[0].link.is_up() && !ends[1].link.is_up());
    assert!(ends[0].events.contains(&LinkEvent::Dead(6, Death::Fenced(Refusal::Evicted))), "{:?}", ends[0].events);
    let now = now.plus(Duration::from_millis(700));
    ends[0] = End::new((1, 7), 2, now);
    settle(&mut ends, now, &mut next);
    assert!(ends[1].events.contains(&LinkEvent::Up { incarnation: 7, is_new: true }), "{:?}", ends[1].events);
}

#[test]
fn an_evicted_node_that_makes_no_connections_learns_it_from_any_life_of_the_other_node() {
    for is_restarted in [false, true] {
        let ([mut one, two], mut next) = connected();
        if is_restarted {
            one = End::new((1, 9), 2, START);
        }
        one.link.evict(6, START, &mut one.actions);
        let mut ends = [one, two];
        let now = START.plus(Duration::from_millis(50));
        settle(&mut ends, now, &mut next);
        settle(&mut ends, now.plus(Duration::from_millis(600)), &mut next);
        assert!(ends[1].events.contains(&LinkEvent::EvictedByPeer), "{:?}", ends[1].events);
        let is_fenced = ends[1].events.contains(&LinkEvent::Dead(5, Death::Fenced(Refusal::Evicted)));
        assert_eq!(is_fenced, !is_restarted, "{:?}", ends[1].events);
    }
}

/// Both ends of a link after node 1 has begun life 9 in place of life 5.
pub(super) fn restarted() -> ([End; 2], u64, Time) {
    let ([_, two], mut next) = connected();
    let now = START.plus(Duration::from_millis(5));
    let mut ends = [End::new((1, 9), 2, now), two];
    settle(&mut ends, now, &mut next);
    (ends, next, now)
}

#[test]
fn another_incarnation_means_that_the_earlier_one_is_dead() {
    let (mut ends, mut next, now) = restarted();
    let news: Vec<_> = ends[1].events.iter().filter(|event| !matches!(event, LinkEvent::Lost)).collect();
    assert_eq!(news[1..], [&LinkEvent::Dead(5, Death::Restarted), &LinkEvent::Up { incarnation: 9, is_new: true }]);
    // The old incarnation comes back: a process that was stopped for a while.
    ends[0] = End::new((1, 5), 2, now);
    settle(&mut ends, now.plus(Duration::from_millis(1)), &mut next);
    assert!(ends[0].events.contains(&LinkEvent::RefusedByPeer(Refusal::Incarnation)), "{:?}", ends[0].events);
}

#[test]
fn a_refused_connection_is_the_end_of_the_incarnation() {
    let ([_, mut two], mut next) = connected();
    let now = START.plus(Duration::from_millis(1));
    let open = next;
    two.link.on_closed(open, false, now, &mut two.actions);
    two.link.poll(now, &mut two.actions);
    assert!(two.actions.connect, "the node that accepts connections probes");
    next += 1;
    two.link.on_connecting(next, [1; 32], now, &mut two.actions);
    two.link.on_closed(next, true, now, &mut two.actions);
    assert_eq!(two.actions.events, [LinkEvent::Lost, LinkEvent::Dead(5, Death::Refused)]);
    assert_eq!(two.link.incarnation(), None);
}

#[test]
fn a_probe_is_repeated_until_the_node_refuses_it() {
    let ([mut one, mut two], open) = connected();
    let mut now = START.plus(Duration::from_millis(1));
    two.link.on_closed(open, false, now, &mut two.actions);
    for probe in open + 1..open + 4 {
        now = two.link.due().max(now);
        two.link.poll(now, &mut two.actions);
        assert!(std::mem::take(&mut two.actions.connect), "probe {probe}");
        two.link.on_connecting(probe, [1; 32], now, &mut two.actions);
        let (_, hello) = two.actions.sends.remove(0);
        match probe - open {
            // The process dies, but its listener was still open.
            1 => two.link.on_closed(probe, false, now, &mut two.actions),
            // It lives, and dies before it connects again.
            2 => {
                one.link.on_hello(probe, &hello, (now, [3; 32]), &mut one.actions);
                let (_, answer) = one.actions.sends.remove(0);
                two.receive(probe, &answer, now);
            }
            _ => two.link.on_closed(probe, true, now, &mut two.actions),
        }
    }
    assert_eq!(two.actions.events, [LinkEvent::Lost, LinkEvent::Dead(5, Death::Refused)]);
    assert_eq!(two.link.due(), Time(u64::MAX), "nobody probes a dead node");
}

#[test]
fn an_idle_link_sends_heartbeats_and_closes_a_silent_connection() {
    let ([mut one, mut two], _) = connected();
    let mut now = START;
    for _ in 0..5 {
        now = now.plus(Duration::from_millis(10));
        assert!(one.link.due() <= now);
        let (id, bytes) = one.write(now).unwrap();
        assert_eq!(bytes[40], FrameKind::Heartbeat as u8);
        two.receive(id, &bytes, now);
    }
    assert!(two.numbers.heartbeats >= 5);
    assert_eq!(two.link.heard(), now);
    two.link.poll(now.plus(Duration::from_millis(999)), &mut two.actions);
    assert!(two.link.is_up());
    two.link.poll(now.plus(Duration::from_millis(1_000)), &mut two.actions);
    assert!(!two.link.is_up());
}

#[test]
fn hellos_of_strangers_hold_few_slots_and_not_for_long() {
    let mut two = End::new((2, 6), 1, START);
    for id in 0..1_000 {
        let mut stranger = End::new((1, 5), 2, START);
        stranger.link.on_connecting(id, [id as u8; 32], START, &mut stranger.actions);
        let (_, hello) = stranger.actions.sends.remove(0);
        two.link.on_hello(id, &hello, (START, [3; 32]), &mut two.actions);
    }
    assert_eq!(two.actions.closes.len(), 1_000 - super::super::link::ATTEMPTS_MAX);
    two.link.poll(two.link.due(), &mut two.actions);
    assert_eq!(two.actions.closes.len(), 1_000);
}

/// A hello of node 1 with node 2 up to the verdict, which is on its way.
fn verdict_on_its_way(ends: &mut [End; 2], now: Time) -> Vec<u8> {
    let [one, two] = ends;
    one.link.poll(now, &mut one.actions);
    assert!(std::mem::take(&mut one.actions.connect));
    one.link.on_connecting(1, [1; 32], now, &mut one.actions);
    let sent = |end: &mut End| end.actions.sends.pop().expect("a message of the hello").1;
    two.link.on_hello(1, &sent(one), (now, [2; 32]), &mut two.actions);
    one.receive(1, &sent(two), now);
    two.receive(1, &sent(one), now);
    sent(two)
}

#[test]
fn a_link_is_up_when_both_ends_know_the_incarnations() {
    let mut ends = [End::new((1, 5), 2, START), End::new((2, 6), 1, START)];
    let verdict = verdict_on_its_way(&mut ends, START);
    let [one, two] = &mut ends;
    // Node 1 may still have a channel to an earlier life of node 2, and drop signals for this one.
    assert_eq!((one.link.incarnation(), two.link.incarnation()), (None, Some(5)));
    assert_eq!(two.actions.events, []);
    one.receive(1, &verdict, START);
    assert_eq!(one.actions.events, [LinkEvent::Up { incarnation: 6, is_new: true }]);
    let (_, heartbeat) = one.write(START).expect("the first heartbeat is due at once");
    two.receive(1, &heartbeat, START);
    assert_eq!(two.actions.events, [LinkEvent::Up { incarnation: 5, is_new: true }]);
    let (_, heartbeat) = two.write(START).expect("the first heartbeat is due at once");
    one.receive(1, &heartbeat, START);
    assert_eq!(one.actions.events.len(), 1);
}

#[test]
fn a_link_that_was_lost_before_both_ends_knew_begins_with_the_next_connection() {
    let mut ends = [End::new((1, 5), 2, START), End::new((2, 6), 1, START)];
    verdict_on_its_way(&mut ends, START);
    let mut next = 1;
    for end in &mut ends {
        end.link.on_closed(1, false, START, &mut end.actions);
    }
    settle(&mut ends, START.plus(Duration::from_millis(5)), &mut next);
    for (end, incarnation) in [(&ends[0], 6), (&ends[1], 5)] {
        let ups = end.events.iter().filter(|event| matches!(event, LinkEvent::Up { .. }));
        assert_eq!(ups.collect::<Vec<_>>(), [&LinkEvent::Up { incarnation, is_new: true }]);
    }
}

#[test]
fn a_late_refusal_of_the_life_before_does_not_end_the_next_one() {
    let ([_, mut two], mut next) = connected();
    let now = START.plus(Duration::from_millis(1));
    let open = next;
    two.link.on_closed(open, false, now, &mut two.actions);
    two.link.poll(now, &mut two.actions);
    assert!(std::mem::take(&mut two.actions.connect), "the node that accepts connections probes");
    next += 1;
    let probe = next;
    two.link.on_connecting(probe, [1; 32], now, &mut two.actions);
    two.actions.sends.clear();
    let mut ends = [End::new((1, 9), 2, now), two];
    settle(&mut ends, now, &mut next);
    assert_eq!(ends[1].link.incarnation(), Some(9));
    let [_, two] = &mut ends;
    let open = two.link.connection().expect("a connection");
    two.link.on_closed(open, false, now, &mut two.actions);
    two.link.on_closed(probe, true, now, &mut two.actions);
    assert_eq!(two.link.incarnation(), Some(9));
}
