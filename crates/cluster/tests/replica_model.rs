//! A model of the versions that replicas keep: purges up to the horizon, reads of a snapshot at any replica,
//! the promotion of a backup, and a copy to a joining replica while commits go on. Every commit writes the
//! same row, so the version that a snapshot sees has the snapshot's number. Each deliberately broken variant
//! shows that the model would detect that error.
//!
//! Run with `cargo test -p junctor-cluster --test replica_model -- --nocapture` to see the state counts.

mod checking;

use stateright::{Model, Property};

const NODES: usize = 3;
const JOINER: usize = 2;
const VERSIONS: usize = 5;
const COMMITS: u8 = 3;
const COMMITS_LONG: u8 = 4;

type Number = u8;

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Designed,
    /// Backups purge whatever a newer version covers, and raise no floor.
    BackupPurgesAlone,
    /// A promoted backup forgets its floor.
    PromotedWithoutFloor,
    /// A joined replica serves without a floor.
    JoinedWithoutFloor,
    /// The horizon leaves out the snapshots that nodes hold.
    HorizonWithoutSnapshots,
    /// The donor copies at a number from before the epoch in which the replica joins.
    CopyBeforeStart,
    /// The copy replaces the versions above its number too.
    CopyReplacesAll,
    /// Images up to the number of the copy are applied again.
    ImageAppliedAgain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Serving,
    /// Outside the membership.
    Away,
    /// Receives images and decisions, and has no copy yet.
    Joining,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    role: Role,
    applied: Number,
    /// Whether the image of the commit after `applied` is there.
    has_image: bool,
    /// Numbers of the versions plus one, the oldest first.
    versions: [u8; VERSIONS],
    floor: Number,
    /// The number of the copy, plus one.
    copied: u8,
}

impl Node {
    fn versions(&self) -> impl DoubleEndedIterator<Item = Number> {
        self.versions.into_iter().filter(|it| *it != 0).map(|it| it - 1)
    }

    fn set_versions(&mut self, versions: impl Iterator<Item = Number>) {
        let mut kept = [0; VERSIONS];
        kept.iter_mut().zip(versions).for_each(|(to, version)| *to = version + 1);
        self.versions = kept;
    }

    fn push(&mut self, version: Number) {
        let versions: Vec<Number> = self.versions().chain([version]).collect();
        self.set_versions(versions.into_iter());
    }

    /// The topmost version that a snapshot sees.
    fn visible(&self, snapshot: Number) -> Option<Number> {
        self.versions().rev().find(|it| *it <= snapshot)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    /// The last number taken.
    taken: Number,
    /// A snapshot that a client holds, and the node that chose it.
    snapshot: Option<(Number, usize)>,
    /// The content of the copy on its way: its number and the version.
    copy: Option<(Number, Number)>,
    crashes_left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Prepare,
    Replicate { to: usize },
    TakeNumber,
    Apply { node: usize },
    Choose { node: usize },
    Forget,
    Purge { node: usize },
    Crash { node: usize },
    Join,
    SendCopy,
    ReceiveCopy,
    Serve,
}

#[derive(Clone, Debug)]
struct ReplicaModel {
    commits: u8,
    rule: Rule,
}

impl State {
    fn serving(&self) -> impl Iterator<Item = usize> + Clone {
        (0..NODES).filter(|node| self.nodes[*node].role == Role::Serving)
    }

    fn members(&self) -> impl Iterator<Item = usize> + Clone {
        (0..NODES).filter(|node| matches!(self.nodes[*node].role, Role::Serving | Role::Joining))
    }

    fn primary(&self) -> usize {
        self.serving().next().unwrap_or_default()
    }

    fn stable(&self) -> Number {
        self.serving().map(|node| self.nodes[node].applied).min().unwrap_or_default()
    }

    fn holds_snapshot(&self) -> bool {
        self.snapshot.is_some_and(|(_, node)| self.nodes[node].role == Role::Serving)
    }
}

impl ReplicaModel {
    fn horizon(&self, state: &State) -> Number {
        let stable = state.stable();
        match state.snapshot {
            Some((snapshot, _)) if state.holds_snapshot() && self.rule != Rule::HorizonWithoutSnapshots => {
                snapshot.min(stable)
            }
            _ => stable,
        }
    }

    fn purge_limit(&self, state: &State, node: usize) -> Number {
        let is_backup = node != state.primary();
        match self.rule {
            Rule::BackupPurgesAlone if is_backup => state.nodes[node].applied,
            _ => self.horizon(state),
        }
    }

    fn purged(&self, state: &State, node: usize) -> Node {
        let limit = self.purge_limit(state, node);
        let mut own = state.nodes[node];
        let oldest = own.visible(limit).unwrap_or_default();
        let kept: Vec<Number> = own.versions().filter(|it| *it >= oldest).collect();
        own.set_versions(kept.into_iter());
        let raises = self.rule != Rule::BackupPurgesAlone || node == state.primary();
        if raises {
            own.floor = own.floor.max(limit);
        }
        own
    }

    fn commit_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let primary = state.primary();
        let is_prepared = state.members().all(|node| state.nodes[node].has_image);
        for node in state.members() {
            let own = &state.nodes[node];
            if own.applied < state.taken && own.has_image {
                actions.push(Action::Apply { node });
            }
            // The image waits until the version before it is applied.
            let sender = &state.nodes[primary];
            let is_sent = sender.has_image && sender.applied == state.taken && own.applied == state.taken;
            if node != primary && is_sent && !own.has_image {
                actions.push(Action::Replicate { to: node });
            }
        }
        let own = &state.nodes[primary];
        if !own.has_image && own.applied == state.taken && state.taken < self.commits {
            actions.push(Action::Prepare);
        }
        let has_applied = state.members().all(|node| state.nodes[node].applied == state.taken);
        if is_prepared && has_applied {
            actions.push(Action::TakeNumber);
        }
    }

    fn membership_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.crashes_left > 0 && state.serving().count() > 1 {
            actions.extend(state.serving().map(|node| Action::Crash { node }));
        }
        let is_needed = state.copy.is_none() && state.nodes[JOINER].copied == 0;
        match state.nodes[JOINER].role {
            Role::Away => {
                actions.push(Action::Join);
                if is_needed && self.rule == Rule::CopyBeforeStart {
                    actions.push(Action::SendCopy);
                }
            }
            Role::Joining => {
                if is_needed {
                    actions.push(Action::SendCopy);
                }
                if state.copy.is_some() {
                    actions.push(Action::ReceiveCopy);
                }
                if state.nodes[JOINER].copied != 0 {
                    actions.push(Action::Serve);
                }
            }
            _ => {}
        }
    }

    fn on_apply(&self, state: &mut State, node: usize) {
        let own = &mut state.nodes[node];
        own.applied += 1;
        own.has_image = false;
        let number = own.applied;
        let is_copied = own.copied != 0 && number < own.copied;
        if !is_copied || self.rule == Rule::ImageAppliedAgain {
            own.push(number);
        }
    }

    /// At the start of an epoch all members apply what one of them has applied, and drop undecided images.
    fn start_epoch(&self, state: &mut State) {
        let prefix = state.members().map(|it| state.nodes[it].applied).max().unwrap_or_default();
        let members: Vec<usize> = state.members().collect();
        for member in members {
            while state.nodes[member].applied < prefix {
                self.on_apply(state, member);
            }
            state.nodes[member].has_image = false;
        }
        state.taken = prefix;
    }

    fn on_crash(&self, state: &mut State, node: usize) {
        state.crashes_left -= 1;
        state.nodes[node].role = Role::Dead;
        self.start_epoch(state);
        // The next donor copies again.
        state.copy = None;
        if self.rule == Rule::PromotedWithoutFloor {
            let primary = state.primary();
            state.nodes[primary].floor = 0;
        }
    }

    /// The joining replica gets images and decisions from the start of its epoch. Nothing older is undecided.
    fn on_join(&self, state: &mut State) {
        self.start_epoch(state);
        state.nodes[JOINER].role = Role::Joining;
        state.nodes[JOINER].applied = state.taken;
    }

    fn on_receive_copy(&self, state: &mut State) {
        let Some((number, version)) = state.copy.take() else { return };
        let own = &mut state.nodes[JOINER];
        let above: Vec<Number> = own.versions().filter(|it| *it > number).collect();
        let above = if self.rule == Rule::CopyReplacesAll { Vec::new() } else { above };
        own.set_versions([version].into_iter().chain(above));
        own.copied = number + 1;
        own.floor = if self.rule == Rule::JoinedWithoutFloor { 0 } else { number };
    }

    /// Whether each serving replica shows the right version to every snapshot that its floor admits.
    fn shows_right_versions(&self, state: &State) -> bool {
        let shows = |node: usize| {
            let own = &state.nodes[node];
            let last = own.applied.min(state.stable());
            (own.floor..=last).all(|snapshot| own.visible(snapshot) == Some(snapshot))
        };
        state.serving().all(shows)
    }

    /// Whether the replicas that served when a snapshot was chosen still have its versions.
    fn keeps_held_snapshot(&self, state: &State) -> bool {
        let Some((snapshot, _)) = state.snapshot else { return true };
        let has_versions = |node: usize| state.nodes[node].floor <= snapshot;
        !state.holds_snapshot() || state.serving().filter(|node| *node != JOINER).all(has_versions)
    }
}

impl Model for ReplicaModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let versions = [1, 0, 0, 0, 0];
        let node = Node { role: Role::Serving, applied: 0, has_image: false, versions, floor: 0, copied: 0 };
        let joiner = Node { role: Role::Away, versions: [0; VERSIONS], ..node };
        let nodes = [node, node, joiner];
        vec![State { nodes, taken: 0, snapshot: None, copy: None, crashes_left: 1 }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.commit_actions(state, actions);
        self.membership_actions(state, actions);
        match state.snapshot {
            None => actions.extend(state.serving().map(|node| Action::Choose { node })),
            Some(_) => actions.push(Action::Forget),
        }
        for node in state.serving() {
            if self.purged(state, node) != state.nodes[node] {
                actions.push(Action::Purge { node });
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Prepare => state.nodes[before.primary()].has_image = true,
            Action::Replicate { to } => state.nodes[to].has_image = true,
            Action::TakeNumber => state.taken += 1,
            Action::Apply { node } => self.on_apply(&mut state, node),
            Action::Choose { node } => state.snapshot = Some((before.stable(), node)),
            Action::Forget => state.snapshot = None,
            Action::Purge { node } => state.nodes[node] = self.purged(before, node),
            Action::Crash { node } => self.on_crash(&mut state, node),
            Action::Join => self.on_join(&mut state),
            Action::SendCopy => {
                let donor = &before.nodes[before.primary()];
                let number = before.stable();
                state.copy = Some((number, donor.visible(number).unwrap_or_default()));
            }
            Action::ReceiveCopy => self.on_receive_copy(&mut state),
            Action::Serve => {
                self.start_epoch(&mut state);
                state.nodes[JOINER].role = Role::Serving;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |model: &Self, state| model.shows_right_versions(state)),
            Property::always(ONCE, |_, state: &State| {
                state.nodes.iter().all(|node| node.versions().is_sorted_by(|older, newer| older < newer))
            }),
            Property::always(KEPT, |model: &Self, state| model.keeps_held_snapshot(state)),
            Property::sometimes(JOINED, |model: &Self, state: &State| {
                state.nodes[JOINER].role == Role::Serving && state.taken == model.commits
            }),
            Property::sometimes(PURGED, |_, state: &State| state.nodes[1].floor > 1 && state.primary() == 1),
        ]
    }
}

const RIGHT: &str = "a serving replica shows each snapshot its version";
const ONCE: &str = "versions lie in the order of their numbers, each once";
const KEPT: &str = "a snapshot that a live node holds stays readable";
const JOINED: &str = "a joined replica serves after the last commit";
const PURGED: &str = "a promoted backup has purged";

fn check_caught(rule: Rule, property: &'static str) {
    let name = format!("{rule:?}");
    checking::assert_caught(&name, ReplicaModel { commits: COMMITS, rule }, property);
}

#[test]
fn replicas_show_every_snapshot_its_versions() {
    let commits = if checking::is_long() { COMMITS_LONG } else { COMMITS };
    let name = format!("replicas, {commits} commits");
    checking::assert_holds(&name, ReplicaModel { commits, rule: Rule::Designed });
}

#[test]
fn the_model_catches_wrong_purges() {
    check_caught(Rule::BackupPurgesAlone, RIGHT);
    check_caught(Rule::HorizonWithoutSnapshots, KEPT);
}

#[test]
fn the_model_catches_missing_floors() {
    check_caught(Rule::PromotedWithoutFloor, RIGHT);
    check_caught(Rule::JoinedWithoutFloor, RIGHT);
}

#[test]
fn the_model_catches_wrong_copies() {
    check_caught(Rule::CopyBeforeStart, RIGHT);
    check_caught(Rule::CopyReplacesAll, RIGHT);
    check_caught(Rule::ImageAppliedAgain, ONCE);
}
