//! Hot path: at most 300 instructions a turn with nothing but signals.
//!
//! What surrounds the turn of a thread in the real world: sockets, sending, spinning, sleeping.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use mio::{Events, Poll};

use crate::address::Address;
use crate::block::{Host, Signal};
use crate::context::{Duration, Time};
use crate::envelope::SocketParcel;
use crate::require;
use crate::scheduler::load::{LoadBoard, ThreadState};
use crate::scheduler::run::{Engine, Services, World};
use crate::scheduler::send::{OwnOutput, SendSettings};
use crate::scheduler::sleep::{SleepCell, SleepPlace};
use crate::scheduler::spin::SpinSettings;
use crate::sync::CachePadded;
use crate::world::{WorldEvent, WorldRequest};

use super::assistant::Assistant;
use super::clock::Clock;
use super::doorbell::Doorbell;
use super::file::Files;
use super::sending::{SendWord, Sending};
use super::socket::{OutputCounts, Sockets};
use super::spinner::{SpinWord, Spinner};
use super::thread_usage::thread_usage;

/// The poll's token for being woken.
pub(super) const WAKE_TOKEN: usize = usize::MAX;

/// Signals after which sockets are looked at although there is other work.
const SIGNALS_PER_POLL: u64 = 128;

/// The longest sleep, so that load figures and the wall clock never get old.
const SLEEP_MAX: Duration = Duration::from_millis(1_000);

/// The longest sleep of a thread that waits for room in other threads' rings, which do not wake it.
const BLOCKED_SLEEP: Duration = Duration::from_micros(100);

/// What all threads of a node share.
pub(super) struct Shared {
    pub(super) bells: Vec<Doorbell>,
    pub(super) clock: Clock,
    pub(super) loads: Arc<LoadBoard>,
    /// Blocks shall end what is begun.
    pub(super) stop: AtomicBool,
    /// Rung when a stop is asked for.
    pub(super) stop_bell: (Mutex<()>, Condvar),
    /// Threads shall end.
    pub(super) halt: AtomicBool,
    /// How threads spin.
    pub(super) spin: SpinWord,
    /// How threads send.
    pub(super) send: SendWord,
    /// For each thread, whether it had nothing to do when it last looked, and how often it had something.
    pub(super) activity: Vec<CachePadded<Activity>>,
}

#[derive(Default)]
pub(super) struct Activity {
    pub(super) idle: AtomicBool,
    pub(super) turns: std::sync::atomic::AtomicU64,
}

impl Shared {
    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_all();
        // A waiter that looked before the store holds the lock until it waits, so it is woken.
        drop(self.stop_bell.0.lock());
        self.stop_bell.1.notify_all();
    }

    pub(super) fn wake_all(&self) {
        SleepCell::fence_before_claim();
        for bell in &self.bells {
            bell.wake(&self.clock);
        }
    }
}

/// Sockets and files of one thread.
pub(super) struct RealWorld {
    pub(super) shared: Arc<Shared>,
    pub(super) poll: Option<(Poll, Events)>,
    pub(super) sockets: Option<Sockets>,
    pub(super) assistant: Assistant,
    pub(super) sending: Sending,
    pub(super) files: Files,
}

impl World for RealWorld {
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        // Otherwise a block sent to a socket of a recv instance that never was.
        if let Some(sockets) = &mut self.sockets {
            sockets.carry_out(request, services);
        }
    }

    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        self.files.carry_out(from, request, services);
    }

    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>) {
        match (parcel, &mut self.sockets) {
            (SocketParcel::LendOutput(loan), _) => self.assistant.take(loan, self.shared.clock.now()),
            (SocketParcel::Adopt(accepted), Some(sockets)) => {
                let (stream, peer, listener) = *accepted;
                sockets.adopt(stream, peer, listener, services);
            }
            (SocketParcel::ReturnOutput(loan), Some(sockets)) => sockets.take_back(loan, services),
            (parcel, None) => require!(false, "{parcel:?} came to a thread without sockets"),
        }
    }

    fn set_spinning(&mut self, settings: &SpinSettings) {
        self.shared.spin.store(settings);
    }

    fn set_sending(&mut self, settings: &SendSettings) {
        self.shared.send.store(settings);
    }

    fn stop(&mut self) {
        self.shared.request_stop();
    }
}

impl RealWorld {
    fn has_input(&self) -> bool {
        self.sockets.as_ref().is_some_and(Sockets::has_input)
    }

    /// Whether clients of this process have told something that was not looked at yet.
    #[inline]
    fn has_news(&self) -> bool {
        self.sockets.as_ref().is_some_and(Sockets::has_news)
    }

    fn has_output(&self) -> bool {
        self.sockets.as_ref().is_some_and(Sockets::has_output) || self.assistant.has_output()
    }

    fn is_written(&self) -> bool {
        self.sockets.as_ref().is_none_or(Sockets::is_written) && !self.assistant.has_output()
    }

    /// Writes the output of own sockets, or gives it to helpers if `others_write`, and what others gave to this thread, as far as its load
    /// allows. What is left when the thread `is_idle` is written later, in its next turns.
    fn write_output(&mut self, others_write: bool, is_idle: bool, services: &mut Services<'_>) {
        if let Some(sockets) = &mut self.sockets
            && sockets.has_output()
        {
            match others_write {
                false => sockets.write_output(services),
                true => sockets.hand_over(&mut self.sending, is_idle, self.shared.clock.now(), services),
            }
        }
        if self.assistant.has_output() {
            let now = self.shared.clock.now();
            self.assistant.write_output(self.sending.helping_state(), is_idle, now, services);
        }
    }

    #[cold]
    fn adjust_sending(&mut self, now: Time) {
        let none = OutputCounts::default();
        let counts = self.sockets.as_ref().map_or(&none, |sockets| &sockets.written);
        self.sending.adjust(now, &self.shared.send, counts, &self.assistant);
    }

    /// Asks the operating system which sockets are ready, waiting up to `longest`.
    fn poll(&mut self, longest: Duration) {
        let Some((poll, events)) = &mut self.poll else { return };
        let timeout = std::time::Duration::from_nanos(longest.0);
        if poll.poll(events, Some(timeout)).is_err() {
            // Interrupted by a signal; what is ready is told at the next poll.
            return;
        }
        for event in events.iter() {
            let token = event.token().0;
            if token == WAKE_TOKEN {
                continue;
            }
            if let Some(sockets) = &mut self.sockets {
                let closed = event.is_read_closed() || event.is_error();
                sockets.on_ready(token, event.is_readable(), event.is_writable(), closed);
            }
        }
    }
}

/// What came of looking for work.
enum Spun {
    /// There is some. The sockets may not have been looked at yet, and a stream of signals must not keep it so.
    Work {
        polled: bool,
    },
    /// A timer is due, which a sleep would have told as well.
    Timer,
    Nothing,
}

/// One thread of a node, until the node halts.
pub(super) struct NodeThread<S: Signal, H: Host<S>> {
    pub(super) engine: Engine<S, H>,
    pub(super) world: RealWorld,
    pub(super) clock: Clock,
    pub(super) spinner: Spinner,
    pub(super) told_to_stop: bool,
    pub(super) woken: Vec<u16>,
}

impl<S: Signal, H: Host<S>> NodeThread<S, H> {
    pub(super) fn run(mut self) {
        self.engine.load.watch_os(thread_usage);
        let mut first_ring = 0;
        let mut unpolled = 0;
        loop {
            let now = self.clock.now();
            self.engine.load.enter(ThreadState::Executing, now);
            if now >= self.world.sending.due() {
                self.world.adjust_sending(now);
            }
            let wall_us = self.clock.wall_us(now);
            // Steps of long work take long, so the sockets are looked at after each.
            let mut is_long = self.engine.has_later_work();
            unpolled += self.engine.run(now, wall_us, first_ring);
            is_long |= self.engine.took_no_more();
            first_ring = first_ring.wrapping_add(1);
            self.look_for_stop();
            if unpolled >= SIGNALS_PER_POLL || is_long {
                self.world.poll(Duration::ZERO);
                unpolled = 0;
            }
            if let Some(sockets) = &mut self.world.sockets
                && (sockets.has_news() || sockets.has_input())
            {
                // Connections in memory are read without a poll, and must not keep sockets from being looked at.
                unpolled += sockets.take_input(&mut self.engine);
            }
            let handled = self.engine.end_turn();
            if self.told_to_stop && handled > 0 {
                self.tell_work();
            }
            self.engine.carry_out(&mut self.world);
            let moved = self.publish();
            if self.world.has_output() {
                self.send(false);
            }
            // After a turn that did something there is often more; where a look tells that there is not, an empty turn is
            // saved.
            if moved
                || self.engine.has_local_work()
                || handled > 0 && (self.engine.is_blocked() || self.engine.has_mail())
            {
                continue;
            }
            self.publish();
            if self.world.has_output() {
                self.send(true);
                continue;
            }
            if self.world.has_news() || self.world.has_input() && self.engine.accepts_work() {
                continue;
            }
            if self.world.shared.halt.load(Ordering::Acquire) {
                // The last figures.
                self.world.adjust_sending(now);
                return;
            }
            if self.wait() {
                unpolled = 0;
            }
        }
    }

    /// Writes output or leaves it to others. If the thread `is_idle`, nothing of its own is left behind.
    #[inline]
    fn send(&mut self, is_idle: bool) {
        self.engine.load.enter(ThreadState::Sending, self.clock.now());
        let others_write = match self.world.sending.own_output() {
            OwnOutput::Write => false,
            OwnOutput::HandOver => true,
            OwnOutput::WriteBeforeSleep => !is_idle && self.has_more_work(),
        };
        self.engine.with_services(|services| self.world.write_output(others_write, is_idle, services));
        // What is lent or given back is waited for.
        if others_write || self.world.sockets.is_none() {
            self.publish();
        }
    }

    /// Whether there is other work than sending, as far as a look tells.
    #[cold]
    fn has_more_work(&mut self) -> bool {
        if self.engine.has_local_work() || self.engine.has_mail() || self.world.has_input() {
            return true;
        }
        self.world.poll(Duration::ZERO);
        self.world.has_input()
    }

    /// Publishes what was sent and wakes those who sleep. Returns whether a backlog moved.
    #[inline]
    fn publish(&mut self) -> bool {
        let woken = &mut self.woken;
        let moved = self.engine.flush(|thread| woken.push(thread));
        require!(self.engine.remote().is_empty(), "a signal for another node, and no way to it");
        if !self.woken.is_empty() {
            SleepCell::fence_before_claim();
            for thread in self.woken.drain(..) {
                self.world.shared.bells[usize::from(thread)].wake(&self.clock);
            }
        }
        moved
    }

    fn look_for_stop(&mut self) {
        if self.told_to_stop || !self.world.shared.stop.load(Ordering::Relaxed) {
            return;
        }
        self.told_to_stop = true;
        if let Some(sockets) = &mut self.world.sockets {
            sockets.stop_reading();
        }
        let directory = self.engine.seat().directory.clone();
        for (module, instance) in self.engine.seat().modules.clone() {
            self.engine.deliver_now(directory.address(module, instance), WorldEvent::Stopping);
        }
    }

    /// Spins, then sleeps, until there may be something to do. Returns whether the sockets were looked at.
    fn wait(&mut self) -> bool {
        let index = usize::from(self.engine.seat().thread);
        let idle_since = self.clock.now();
        self.engine.close_turn(idle_since);
        let Shared { loads, spin, .. } = &*self.world.shared;
        let busy_per_mille = || loads.thread(index as u16).map_or(0, |load| load.moment.busy_per_mille());
        if self.spinner.begin_idle(idle_since, spin, busy_per_mille) {
            self.engine.load.set_spin(self.spinner.spin());
        }
        // Who waits for room in other rings would not see it come while spinning.
        if self.spinner.spin().0 > 0 && !self.world.has_input() && !self.engine.is_blocked() {
            match self.spin_for_work(idle_since) {
                Spun::Work { polled } => {
                    self.spinner.end_idle(idle_since, self.clock.now(), false);
                    return polled;
                }
                Spun::Timer => {
                    self.spinner.end_idle_without_work();
                    return true;
                }
                Spun::Nothing => {}
            }
        }
        let shared = self.world.shared.clone();
        if self.told_to_stop {
            self.tell_activity(&shared.activity[index]);
        }
        let bell = &shared.bells[index];
        let cell = &bell.cell;
        // With input still to be read, it is room that is lacking; and new input is of no use then.
        let is_blocked = self.engine.is_blocked() || self.world.has_input();
        let place = if self.world.poll.is_some() && !is_blocked { SleepPlace::Elsewhere } else { SleepPlace::Cell };
        cell.announce(place);
        let flags = (shared.stop.load(Ordering::Acquire), shared.halt.load(Ordering::Acquire));
        if self.engine.has_mail() || self.world.has_news() || flags.0 != self.told_to_stop || flags.1 {
            cell.cancel();
            return false;
        }
        let now = self.clock.now();
        let longest = self.longest_sleep(now, is_blocked);
        self.engine.load.enter(if is_blocked { ThreadState::BufferFull } else { ThreadState::Sleeping }, now);
        self.spinner.begin_sleep(now);
        match place {
            SleepPlace::Elsewhere => self.world.poll(longest),
            SleepPlace::Cell => cell.sleep(Some(longest)),
        }
        cell.cancel();
        let now = self.clock.now();
        self.spinner.end_sleep(now, bell.take_rung());
        match self.engine.has_mail() || self.world.has_news() || self.world.has_input() {
            _ if is_blocked => {}
            true => self.spinner.end_idle(idle_since, now, true),
            false => self.spinner.end_idle_without_work(),
        }
        !is_blocked
    }

    fn longest_sleep(&self, now: Time, is_blocked: bool) -> Duration {
        let longest = if is_blocked { BLOCKED_SLEEP } else { SLEEP_MAX };
        self.engine.next_timer().map_or(longest, |due| due.since(now).min(longest))
    }

    /// While the node stops, whoever asked for it looks at this until all threads have come to rest.
    fn tell_activity(&mut self, activity: &Activity) {
        let idle = self.engine.is_quiet() && self.world.is_written();
        activity.turns.fetch_add(u64::from(!idle), Ordering::Relaxed);
        activity.idle.store(idle, Ordering::Release);
    }

    /// Takes back that the thread had come to rest: one that spins may work on without sleeping in between.
    #[cold]
    fn tell_work(&mut self) {
        let activity = &self.world.shared.activity[usize::from(self.engine.seat().thread)];
        activity.idle.store(false, Ordering::Release);
        activity.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Looks for work for the chosen time.
    fn spin_for_work(&mut self, start: Time) -> Spun {
        self.engine.load.enter(ThreadState::Spinning, start);
        let spin = self.spinner.spin();
        let call = self.spinner.call().min(spin);
        let (mut looked, mut polled) = (start, false);
        loop {
            let now = loop {
                if self.engine.has_mail() || self.world.has_news() {
                    return Spun::Work { polled };
                }
                std::hint::spin_loop();
                let now = self.clock.now();
                if now.since(looked) >= call {
                    break now;
                }
            };
            looked = now;
            self.world.poll(Duration::ZERO);
            polled = true;
            if self.world.has_output() || self.world.has_input() {
                return Spun::Work { polled };
            }
            if self.engine.next_timer().is_some_and(|due| due <= now) {
                return Spun::Timer;
            }
            if now.since(start) >= spin || self.world.shared.halt.load(Ordering::Relaxed) {
                return Spun::Nothing;
            }
        }
    }
}
