//! A model of leases with clocks that drift, explored over every order of messages, syncs and ticks, and
//! every pause: nothing has to happen before the next tick. One data node asks three voters for leases. A
//! leader evicts the node, and acknowledges commits of the next epoch when the leases are over. From then on
//! the evicted node must not choose a snapshot for a request that was sent after the acknowledgement. Each
//! deliberately broken variant shows that the model would detect that error.
//!
//! Clocks are slow or fast for the whole run: three or five units a tick, so the rate of a clock is within a
//! quarter of the true one.
//!
//! Run with `cargo test -p junctor-cluster --test lease_model -- --nocapture` to see the state counts.

mod checking;

use stateright::{Model, Property};

const VOTERS: usize = 3;
const MAJORITY: usize = 2;
const REQUESTS: usize = 2;
/// The time of a request whose lease would be over.
const PAST: u8 = u8::MAX - LEASE;
const SLOW: u8 = 3;
const FAST: u8 = 5;
/// The length of a lease by the clock of the node that holds it: d of the specification.
const LEASE: u8 = 12;
/// How long a voter counts a lease by its own clock: d * FAST / SLOW.
const HOLD: u8 = 20;
/// Within these ticks the second lease of a slow node can end.
const TICKS: u8 = 7;
const TICKS_LONG: u8 = 8;
/// Within these ticks every broken variant fails.
const TICKS_BROKEN: u8 = 5;

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Designed,
    /// Voters count d * (1 + r), as cluster-protocol.md has it. This is enough only if r bounds the rate of
    /// one clock by the other.
    MarginOfOneClock,
    /// Voters count d.
    NoMargin,
    /// The lease begins when the grants arrive.
    LeaseFromReceipt,
    /// Grants of two requests add up.
    GrantsOfTwoRequests,
    /// One grant is enough.
    OneGrant,
    /// A voter with the eviction in its log grants.
    GrantAfterEviction,
    /// A voter reports an eviction that it has not synced.
    ReportBeforeSync,
    /// A report counts after the eviction has left the voter's log.
    ReportOfTruncated,
    /// A voter that restarts takes its grants for over.
    RestartForgets,
    /// Commits are acknowledged when the eviction is committed.
    LeasesIgnored,
    /// The node reads its clock before it takes the request from its socket: in the worst case when it
    /// starts.
    ClockBeforeInput,
    /// The clock of the node stops while the node is paused.
    ClockStops,
}

/// Whether the log of a voter holds the eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Entry {
    Absent,
    Appended,
    Synced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Voter {
    entry: Entry,
    /// Its clock when it granted last or started.
    granted: u8,
    /// Whether it has granted each request. A grant arrives at once: one that arrives late gives the node
    /// less.
    has_granted: [bool; REQUESTS],
    /// Whether it reported its grants as over.
    has_reported: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    ticks: u8,
    node_rate: u8,
    voter_rate: u8,
    node_clock: u8,
    lease_end: u8,
    /// The node's clock when it sent each request.
    requests: [Option<u8>; REQUESTS],
    /// In ascending order, because voters do not differ otherwise.
    voters: [Voter; VOTERS],
    /// Restarts of voters and truncations of their logs that may still happen.
    faults_left: u8,
    /// Whether a commit of the next epoch was acknowledged.
    is_acknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick { clock_stops: bool },
    Ask { request: usize },
    Grant { request: usize, voter: usize },
    Append { voter: usize },
    Sync { voter: usize },
    Truncate { voter: usize },
    Restart { voter: usize },
}

#[derive(Clone, Debug)]
struct LeaseModel {
    ticks: u8,
    faults: u8,
    rule: Rule,
}

impl LeaseModel {
    fn hold(&self) -> u8 {
        match self.rule {
            Rule::MarginOfOneClock => LEASE * FAST / 4,
            Rule::NoMargin => LEASE,
            _ => HOLD,
        }
    }

    fn lease_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let unused = state.requests.iter().position(Option::is_none);
        let is_repeated = state.requests.contains(&Some(state.node_clock));
        let unused = unused.filter(|_| !is_repeated);
        actions.extend(unused.map(|request| Action::Ask { request }));
        for (voter, own) in state.voters.iter().enumerate() {
            let may_grant = own.entry == Entry::Absent || self.rule == Rule::GrantAfterEviction;
            let is_open = |request: &usize| state.requests[*request].is_some() && !own.has_granted[*request];
            let open = (0..REQUESTS).filter(|it| may_grant && is_open(it));
            actions.extend(open.map(|request| Action::Grant { request, voter }));
        }
    }

    fn voter_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let holders = state.voters.iter().filter(|it| it.entry != Entry::Absent).count();
        for (voter, own) in state.voters.iter().enumerate() {
            let is_alone = holders == 1 && own.entry != Entry::Absent;
            match own.entry {
                Entry::Absent => actions.push(Action::Append { voter }),
                Entry::Appended => actions.push(Action::Sync { voter }),
                Entry::Synced => {}
            }
            // Another leader without the entry replaces it. A majority that has synced it prevents that.
            if is_alone && state.faults_left > 0 {
                actions.push(Action::Truncate { voter });
            }
            if state.faults_left > 0 {
                actions.push(Action::Restart { voter });
            }
        }
    }

    /// Whether the voter may report that its grants are over.
    fn may_report(&self, state: &State, voter: &Voter) -> bool {
        let knows = match self.rule {
            Rule::ReportBeforeSync => voter.entry != Entry::Absent,
            _ => voter.entry == Entry::Synced,
        };
        knows && state.ticks * state.voter_rate >= voter.granted + self.hold()
    }

    fn may_acknowledge(&self, state: &State) -> bool {
        let synced = state.voters.iter().filter(|it| it.entry == Entry::Synced).count();
        let reports = state.voters.iter().filter(|it| it.has_reported).count();
        synced >= MAJORITY && (reports >= MAJORITY || self.rule == Rule::LeasesIgnored)
    }

    /// Reports and acknowledgements come as early as they can, because later ones are harmless.
    fn report(&self, state: &mut State) {
        for voter in 0..VOTERS {
            state.voters[voter].has_reported |= self.may_report(state, &state.voters[voter]);
        }
        state.is_acknowledged |= self.may_acknowledge(state);
    }

    /// Whether a request that a client sends now would find a valid lease.
    fn has_lease(&self, state: &State) -> bool {
        match self.rule {
            Rule::ClockBeforeInput => state.lease_end > 0,
            _ => state.node_clock < state.lease_end,
        }
    }

    /// Drops facts that have no effect any more, so that states that behave alike are one.
    fn forget_past(&self, state: &mut State) {
        for request in 0..REQUESTS {
            let is_past = state.requests[request].is_some_and(|sent| sent + LEASE <= state.node_clock);
            if is_past && !matches!(self.rule, Rule::LeaseFromReceipt | Rule::GrantsOfTwoRequests) {
                state.requests[request] = Some(PAST);
                state.voters.iter_mut().for_each(|voter| voter.has_granted[request] = true);
            }
        }
        let now = state.ticks * state.voter_rate;
        for voter in &mut state.voters {
            if voter.granted + self.hold() <= now {
                voter.granted = 0;
            }
        }
        state.voters.sort_unstable();
    }

    fn on_grant(&self, state: &mut State, request: usize, voter: usize) {
        let Some(sent) = state.requests[request] else { return };
        state.voters[voter].has_granted[request] = true;
        state.voters[voter].granted = state.ticks * state.voter_rate;
        let counts = |voter: &&Voter| match self.rule {
            Rule::GrantsOfTwoRequests => voter.has_granted.contains(&true),
            _ => voter.has_granted[request],
        };
        let needed = if self.rule == Rule::OneGrant { 1 } else { MAJORITY };
        if state.voters.iter().filter(counts).count() >= needed {
            let start = if self.rule == Rule::LeaseFromReceipt { state.node_clock } else { sent };
            state.lease_end = state.lease_end.max(start + LEASE);
        }
    }
}

impl Model for LeaseModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let rates = [(SLOW, FAST), (FAST, SLOW)];
        let has_granted = [false; REQUESTS];
        let voter = Voter { entry: Entry::Absent, granted: 0, has_granted, has_reported: false };
        let state = |(node_rate, voter_rate)| State {
            ticks: 0,
            node_rate,
            voter_rate,
            node_clock: 0,
            lease_end: 0,
            requests: [None; REQUESTS],
            voters: [voter; VOTERS],
            faults_left: self.faults,
            is_acknowledged: false,
        };
        rates.into_iter().map(state).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.ticks < self.ticks {
            actions.push(Action::Tick { clock_stops: false });
            if self.rule == Rule::ClockStops {
                actions.push(Action::Tick { clock_stops: true });
            }
        }
        self.lease_actions(state, actions);
        self.voter_actions(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Tick { clock_stops } => {
                state.ticks += 1;
                state.node_clock += if clock_stops { 0 } else { state.node_rate };
            }
            Action::Ask { request } => state.requests[request] = Some(state.node_clock),
            Action::Grant { request, voter } => self.on_grant(&mut state, request, voter),
            // Only a restart can tell an entry that is not synced from one that is.
            Action::Append { voter } if self.faults == 0 => state.voters[voter].entry = Entry::Synced,
            Action::Append { voter } => state.voters[voter].entry = Entry::Appended,
            Action::Sync { voter } => state.voters[voter].entry = Entry::Synced,
            Action::Truncate { voter } => {
                state.faults_left -= 1;
                state.voters[voter].entry = Entry::Absent;
                if self.rule != Rule::ReportOfTruncated {
                    state.voters[voter].has_reported = false;
                }
            }
            Action::Restart { voter } => {
                state.faults_left -= 1;
                let own = &mut state.voters[voter];
                if own.entry == Entry::Appended {
                    own.entry = Entry::Absent;
                }
                if self.rule == Rule::RestartForgets {
                    own.granted = 0;
                } else {
                    own.granted = state.ticks * state.voter_rate;
                }
            }
        }
        self.report(&mut state);
        self.forget_past(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FRESH, |model: &Self, state: &State| !state.is_acknowledged || !model.has_lease(state)),
            Property::sometimes(LEASED, |_, state: &State| state.lease_end > state.node_clock),
            Property::sometimes(ACKNOWLEDGED, |_, state: &State| state.is_acknowledged),
            Property::sometimes(RENEWED, |_, state: &State| state.is_acknowledged && state.lease_end > LEASE),
        ]
    }
}

const FRESH: &str = "a request that was sent after an acknowledgement gets no older snapshot";
const LEASED: &str = "the node holds a lease";
const ACKNOWLEDGED: &str = "a commit of the next epoch is acknowledged";
const RENEWED: &str = "a commit is acknowledged after a lease was renewed";

fn check_caught(rule: Rule, faults: u8) {
    let name = format!("{rule:?}");
    checking::assert_caught(&name, LeaseModel { ticks: TICKS_BROKEN, faults, rule }, FRESH);
}

#[test]
fn evicted_nodes_serve_nothing_stale() {
    let (ticks, faults) = if checking::is_long() { (TICKS_LONG, 1) } else { (TICKS, 0) };
    let name = format!("leases, {ticks} ticks, {faults} faults");
    checking::assert_holds(&name, LeaseModel { ticks, faults, rule: Rule::Designed });
}

#[test]
fn the_model_catches_voters_that_count_the_drift_of_one_clock_only() {
    check_caught(Rule::MarginOfOneClock, 0);
}

#[test]
fn the_model_catches_voters_that_count_no_drift() {
    check_caught(Rule::NoMargin, 0);
}

#[test]
fn the_model_catches_leases_that_begin_when_the_grants_arrive() {
    check_caught(Rule::LeaseFromReceipt, 0);
}

#[test]
fn the_model_catches_grants_of_two_requests_that_add_up() {
    check_caught(Rule::GrantsOfTwoRequests, 0);
}

#[test]
fn the_model_catches_leases_by_one_grant() {
    check_caught(Rule::OneGrant, 0);
}

#[test]
fn the_model_catches_voters_that_grant_after_the_eviction() {
    check_caught(Rule::GrantAfterEviction, 0);
}

#[test]
fn the_model_catches_reports_of_an_eviction_that_is_not_synced() {
    check_caught(Rule::ReportBeforeSync, 1);
}

#[test]
fn the_model_catches_reports_of_an_eviction_that_left_the_log() {
    check_caught(Rule::ReportOfTruncated, 1);
}

#[test]
fn the_model_catches_voters_that_forget_their_grants() {
    check_caught(Rule::RestartForgets, 1);
}

#[test]
fn the_model_catches_acknowledgements_that_ignore_leases() {
    check_caught(Rule::LeasesIgnored, 0);
}

#[test]
fn the_model_catches_clocks_read_before_the_request() {
    check_caught(Rule::ClockBeforeInput, 0);
}

#[test]
fn the_model_catches_clocks_that_stop_in_a_pause() {
    check_caught(Rule::ClockStops, 0);
}
