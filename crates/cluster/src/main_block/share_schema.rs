//! The schema of a cluster. Main of the node with the sequencer runs all schema changes and hands out
//! AUTO_INCREMENT numbers; mains of other nodes pass requests on to it. It knows the blocks of every node
//! that serves clients, because each of these nodes introduces itself before it serves. Its records go to the
//! logs of all data nodes under one commit number, so that each disk has the whole schema, and every data
//! node can go on when the node with the sequencer ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_kernel::{Address, Context, NodeId, Outbox, Time};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation, TableId};
use junctor_model::schema::TableKind;
use junctor_model::stored_mark::CounterMark;
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::ask_snapshot::{AskSnapshot, AskSnapshotReply, LeaveSessions, UseHost};
use junctor_signals::block_tables::UnblockTables;
use junctor_signals::change_schema::{Catalog, PublishCatalog, SchemaChange};
use junctor_signals::read_rows::OperationId;
use junctor_signals::reserve_auto_increment::{ReserveAutoIncrement, ReserveAutoIncrementReply};
use junctor_signals::share_schema::{HandOverSchema, IntroduceNode, ShareRecords, ShareRecordsReply, WelcomeNode};
use junctor_signals::start_epoch::{BeginEpoch, LateNodes, SequencerLost};
use junctor_signals::{LdmSignal, MainSignal, Module, QuerySignal, Signal, SqlSignal, TcSignal, crash_point};

use super::block::MainBlock;
use super::records::Draft;
use super::reserve_auto_increment::Counter;
use super::state::Requester;
use crate::membership::{Membership, NodeRecord, NodeSet};

/// Maximum number of requests for snapshots that one signal answers. The others follow with the next grant
/// of a lease.
const ANSWERS_PER_SIGNAL_MAX: usize = 32;

/// A node, and one life of it.
type Life = (NodeId, Incarnation);

/// What main of a node in a cluster knows about the schema of the others.
#[derive(Debug, Default)]
pub(super) struct SchemaShare {
    /// The nodes whose blocks get every catalog from here.
    nodes: BTreeMap<NodeId, Incarnation>,
    introductions: VecDeque<(Life, IntroduceNode)>,
    /// The node whose blocks get the catalog now.
    publishing: Option<Publishing>,
    /// The life of the node with the sequencer that has welcomed this one.
    welcomed_by: Option<Life>,
    /// Records without a number.
    prepared: Option<ShareRecords>,
    /// Records that are not on every disk yet.
    undurable: VecDeque<(CommitNumber, ShareRecords)>,
    /// Records that wait for other nodes to keep them, or for their number.
    shared: Option<SharedRecords>,
    ids: u64,
    /// The joining nodes that have introduced themselves, and whether they have the schema.
    joining: BTreeMap<NodeId, (Incarnation, bool)>,
    /// The snapshots of sql blocks of nodes without data, with the lives of the nodes.
    pins: BTreeMap<Address, (Incarnation, CommitNumber)>,
    /// Requests for snapshots that wait for a lease, one of each sql block.
    asked_snapshots: Vec<AskSnapshot>,
    /// On a node without data: where its statements run, and how many tcs a data node has.
    host: Option<NodeId>,
    tcs: u16,
    /// On a node without data: the data nodes that its statements cannot use, and the life of the node with
    /// the sequencer.
    unusable: NodeSet,
    asked: Option<Life>,
    /// On a node without data: the last epoch that its sql blocks know.
    told_epoch: Epoch,
    /// The last tables of sessions of this node that another one was to drop.
    pub(super) dropped_elsewhere: VecDeque<TableId>,
}

#[derive(Debug)]
struct Publishing {
    life: Life,
    introduction: IntroduceNode,
    stage: u64,
    outstanding: usize,
}

#[derive(Debug)]
struct SharedRecords {
    id: u64,
    draft: Draft,
    /// The nodes that keep them.
    kept_by: NodeSet,
}

impl SchemaShare {
    pub fn new(first_number: u64) -> SchemaShare {
        SchemaShare { ids: first_number, ..SchemaShare::default() }
    }

    /// The number of the first records from another node that are not on every disk yet.
    pub fn first_undurable(&self) -> Option<CommitNumber> {
        self.undurable.front().map(|(number, _)| *number)
    }

    #[cfg(test)]
    pub fn keep_undurable(&mut self, number: CommitNumber, records: ShareRecords) {
        self.undurable.push_back((number, records));
    }

    #[cfg(test)]
    pub fn asked_snapshots(&self) -> usize {
        self.asked_snapshots.len()
    }

    #[cfg(test)]
    pub fn introduce(&mut self, life: Life, introduction: IntroduceNode) {
        self.introductions.push_back((life, introduction));
    }
}

impl MainBlock {
    pub(super) fn membership(&self) -> Option<&Arc<Membership>> {
        self.member.as_ref()?.membership().filter(|membership| membership.epoch.0 > 0)
    }

    /// The node with the sequencer, which runs the schema changes of the cluster.
    fn schema_life(&self) -> Option<Life> {
        let membership = self.membership()?;
        membership.record(membership.sequencer).map(|record| (record.node, record.incarnation))
    }

    /// The life of this node.
    fn own_life(&self) -> Life {
        (self.own.node, self.gateway.incarnation())
    }

    /// Whether schema changes run here: on a node alone, and on the node with the sequencer. A membership may
    /// still name an earlier life of this node.
    pub(super) fn runs_schema_changes(&self) -> bool {
        self.member.is_none() || self.schema_life() == Some(self.own_life())
    }

    /// Whether this life of the node is a member.
    pub(super) fn own_record(&self) -> Option<&NodeRecord> {
        let (node, life) = self.own_life();
        self.membership()?.record(node).filter(|record| record.is_member() && record.incarnation == life)
    }

    /// Whether every change of the schema that this node knows is on every disk that counts.
    pub(super) fn are_records_durable(&self, membership: &Membership) -> bool {
        let is_under_way = self.share.shared.is_some() || self.records.has_work();
        self.has_started(membership) && self.is_welcome_now() && self.share.undurable.is_empty() && !is_under_way
    }

    /// Whether this node has started the epoch of the membership.
    fn has_started(&self, membership: &Membership) -> bool {
        self.epochs.as_ref().is_some_and(|epochs| epochs.progress().started == membership.epoch)
    }

    /// The life of another node: a data node's as the membership has it, the linked one of others.
    pub(super) fn life_of(&self, node: NodeId) -> Option<Incarnation> {
        match self.membership()?.record(node) {
            Some(record) => record.is_member().then_some(record.incarnation),
            None => self.member.as_ref()?.linked_life(node),
        }
    }

    /// Whether another node is a member, or linked if it has no data.
    pub(super) fn has_life(&self, node: NodeId) -> bool {
        self.life_of(node).is_some()
    }

    /// The other data nodes that serve.
    fn other_serving(&self) -> NodeSet {
        let own = self.own.node;
        let membership = self.membership().map(|membership| &**membership);
        let serving = membership.into_iter().flat_map(Membership::serving).map(|record| record.node);
        serving.filter(|node| *node != own).collect()
    }

    /// The other data nodes that write main's records: those that serve, and those that join and have the
    /// schema. `None` until all that join have introduced themselves.
    fn keepers(&self) -> Option<NodeSet> {
        let membership = self.membership()?;
        let mut keepers = self.other_serving();
        for record in membership.members().filter(|record| !record.is_serving() && record.node != self.own.node) {
            match self.share.joining.get(&record.node) {
                Some((life, has_schema)) if *life == record.incarnation => {
                    if *has_schema {
                        keepers.insert(record.node);
                    }
                }
                _ => return None,
            }
        }
        Some(keepers)
    }

    /// Whether the next schema change may begin: in a cluster, every data node has introduced itself to this
    /// one, none copies rows, and no node gets the catalog at the moment.
    pub(super) fn may_begin_changes(&self) -> bool {
        if self.member.is_none() {
            return true;
        }
        let Some(membership) = self.membership() else { return false };
        membership.members().all(|record| record.is_serving())
            && self.share.publishing.is_none()
            && self.share.undurable.is_empty()
            && self.knows_all_nodes()
    }

    /// On the node with the sequencer: whether every node that serves clients or data has introduced itself.
    pub(super) fn knows_all_nodes(&self) -> bool {
        let Some(membership) = self.membership() else { return false };
        let is_known = |node: NodeId| {
            let life = self.life_of(node);
            life.is_some() && self.share.nodes.get(&node).copied() == life
        };
        let mut clients = self.member.as_ref().into_iter().flat_map(|member| member.clients());
        self.runs_schema_changes()
            && self.has_started(membership)
            && self.other_serving().iter().all(is_known)
            && clients.all(is_known)
    }

    /// Whether the node with the sequencer has welcomed this one, and has not been lost since.
    pub(super) fn is_welcome_now(&self) -> bool {
        self.share.welcomed_by.is_some() && self.share.welcomed_by == self.reachable_schema_life()
    }

    /// Whether the node has the schema, and every change of it will reach the node.
    pub(super) fn is_welcome(&self) -> bool {
        self.share.welcomed_by.is_some()
    }

    /// Why a change is not possible in a cluster.
    pub(super) fn cluster_refusal(&self, change: &SchemaChange) -> Option<Box<Error>> {
        let membership = self.membership()?;
        // They make nothing that a node which returns would have to copy.
        if matches!(change, SchemaChange::DropOwnTables { .. } | SchemaChange::LockTables { .. }) {
            return None;
        }
        let is_incomplete = membership.nodes.iter().any(|record| prevents_changes(membership, record));
        let message = "Got temporary error: a data node does not serve";
        is_incomplete.then(|| Error::new(ErrorCode::TemporaryFailure, message))
    }

    /// Passes a request of a session of this node to the node that runs schema changes. Returns the signals
    /// that this main handles. What another node asks here means an earlier life of this node, or comes
    /// before this node knows that it runs the changes: it is refused. Passed on, it might be done after its
    /// session has got an error and gone on.
    pub(super) fn pass_on(
        &mut self,
        signal: MainSignal,
        from: NodeId,
        outbox: &mut Outbox<Signal>,
    ) -> Option<MainSignal> {
        let is_of_schema = matches!(
            signal,
            MainSignal::ChangeSchema(_)
                | MainSignal::ReserveAutoIncrement(_)
                | MainSignal::ReturnAutoIncrement(_)
                | MainSignal::UnlockTables(_)
                | MainSignal::BlockTablesReply(_)
                | MainSignal::RecallTables(_)
                | MainSignal::CancelSchemaChange(_)
        );
        if !is_of_schema || self.runs_schema_changes() {
            return Some(signal);
        }
        self.note_dropped_elsewhere(&signal);
        // The question may have come before the welcome, which takes another way.
        let is_answer = matches!(signal, MainSignal::BlockTablesReply(_));
        let may_pass = from == self.own.node && (self.epochs.is_some() || self.is_welcome() || is_answer);
        let life = self.reachable_schema_life().filter(|(node, _)| may_pass && *node != self.own.node);
        let refusal = || Error::new(ErrorCode::TemporaryFailure, "Got temporary error: no data node serves");
        match (life, signal) {
            (Some((node, _)), signal) => outbox.send(Address::new(node, Module::Main, 0), Signal::Main(signal)),
            (_, MainSignal::ChangeSchema(request)) => {
                super::change_schema::reply(&Requester::of(&request), Err(refusal()), outbox);
            }
            (_, MainSignal::ReserveAutoIncrement(ReserveAutoIncrement { operation, reply_to, .. })) => {
                let reply = ReserveAutoIncrementReply { operation, first: 0, count: 0, error: Some(refusal()) };
                outbox.send(reply_to, Signal::Sql(SqlSignal::ReserveAutoIncrementReply(reply)));
            }
            _ => {}
        }
        None
    }

    /// As `schema_life`, on a node without data only if this node is linked with it.
    pub(super) fn reachable_schema_life(&self) -> Option<Life> {
        if self.epochs.is_some() { self.schema_life() } else { self.linked_schema_life() }
    }

    /// As `schema_life`, if the node is linked with this life.
    fn linked_schema_life(&self) -> Option<Life> {
        let member = self.member.as_ref()?;
        self.schema_life().filter(|(node, life)| member.linked_life(*node) == Some(*life))
    }

    /// Whether this main has begun no schema change.
    fn has_changed_nothing(&self) -> bool {
        self.next_change == self.first_number + 1
    }

    pub(super) fn own_count(&self, module: Module) -> u16 {
        self.own_blocks.iter().filter(|at| at.module == module).count() as u16
    }

    /// On a node without data: chooses the data node where the statements of this node run, if the one before
    /// does not serve any more.
    pub(super) fn choose_host(&mut self, outbox: &mut Outbox<Signal>) {
        if self.epochs.is_some() || !self.is_welcome() {
            return;
        }
        let Some((member, membership)) = self.member.as_ref().zip(self.membership()) else { return };
        let is_usable = |it: &NodeRecord| it.is_serving() && member.linked_life(it.node) == Some(it.incarnation);
        let (usable, unusable): (Vec<&NodeRecord>, Vec<&NodeRecord>) =
            membership.nodes.iter().partition(|it| is_usable(it));
        let nodes: Vec<(NodeId, Incarnation)> = usable.iter().map(|it| (it.node, it.incarnation)).collect();
        let (epoch, unusable): (_, NodeSet) = (membership.epoch, unusable.iter().map(|it| it.node).collect());
        let unusable = unusable.union(&membership.removed_nodes());
        // If a whole group is lost, the membership goes on naming the life that has ended.
        let asked = self.linked_schema_life();
        let lost_sequencer = self.share.asked.filter(|before| asked != Some(*before));
        // An answer of the host may name the epoch already.
        let has_news = unusable != self.share.unusable || epoch > self.share.told_epoch;
        let (gone, late) = (unusable.to_words(), LateNodes::new(&membership.late(), &membership.added_replicas()));
        (self.share.unusable, self.share.asked, self.share.told_epoch) = (unusable, asked, epoch);
        for to in &self.sql_blocks {
            if has_news {
                let (late, admitted) = (late.clone(), Epoch(0));
                let begin = BeginEpoch { epoch, gone, late, copies_at: None, admitted, reply_to: None };
                outbox.send(*to, Signal::Sql(SqlSignal::BeginEpoch(begin)));
            }
            if let Some((node, _)) = lost_sequencer {
                outbox.send(*to, Signal::Sql(SqlSignal::SequencerLost(SequencerLost { node })));
            }
        }
        if self.share.host.is_some_and(|host| nodes.iter().any(|(node, _)| *node == host)) {
            return;
        }
        // The nodes without data spread over those with data.
        let host = nodes.get(usize::from(self.own.node.0) % nodes.len().max(1)).copied();
        self.share.host = host.map(|(node, _)| node);
        let (node, incarnation) = host.unwrap_or_default();
        let signal = UseHost { node, incarnation, tc: self.share.tcs };
        for to in &self.sql_blocks {
            outbox.send(*to, Signal::Sql(SqlSignal::UseHost(signal)));
        }
    }

    /// Answers a sql block of a node without data with the newest snapshot, whose versions this node keeps
    /// until the next request. A sql block of this node asks if the node has no lease.
    pub(super) fn on_ask_snapshot(&mut self, ask: AskSnapshot, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        // A request may come behind the news that its node is lost. Nobody would end its pin.
        let (node, life) = (ask.reply_to.node, Incarnation::of_number(ask.request));
        if self.member.as_ref().is_some_and(|cluster| cluster.is_lost(node, life)) {
            return;
        }
        // One request of each block counts.
        self.share.asked_snapshots.retain(|earlier| earlier.reply_to != ask.reply_to);
        self.share.asked_snapshots.push(ask);
        self.answer_snapshots(context, outbox);
    }

    /// Answers the requests for snapshots, if this node may choose one.
    pub(super) fn answer_snapshots(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if self.share.asked_snapshots.is_empty() {
            return;
        }
        let Some(epochs) = self.epochs.as_ref().filter(|epochs| epochs.has_lease(context.clock_now())) else { return };
        let Some((number, reported)) = epochs.snapshot() else { return };
        let count = self.share.asked_snapshots.len().min(ANSWERS_PER_SIGNAL_MAX);
        for ask in self.share.asked_snapshots.drain(..count) {
            // The versions that an earlier host of the block kept may be gone.
            if ask.reply_to.node != self.own.node {
                let oldest = ask.oldest.clamp(reported.min(number), number);
                self.share.pins.insert(ask.reply_to, (Incarnation::of_number(ask.request), oldest));
            }
            let reply = AskSnapshotReply { request: ask.request, number };
            outbox.send(ask.reply_to, Signal::Sql(SqlSignal::AskSnapshotReply(reply)));
        }
    }

    /// The oldest snapshot of nodes without data whose versions this node keeps.
    pub(super) fn oldest_pin(&self) -> CommitNumber {
        let copied = self.epochs.as_ref().and_then(|epochs| epochs.oldest_copied());
        self.share.pins.values().map(|(_, oldest)| *oldest).chain(copied).min().unwrap_or(CommitNumber(u64::MAX))
    }

    /// A node without data is gone, and its sessions with it. Its next life may have asked for a snapshot.
    pub(super) fn leave_client(&mut self, (node, lost): (NodeId, Incarnation), now: Time, outbox: &mut Outbox<Signal>) {
        if self.member.as_ref().is_none_or(|member| member.has_data(node)) {
            return self.choose_host(outbox);
        }
        self.share.pins.retain(|at, (life, _)| at.node != node || *life > lost);
        let stays = |ask: &AskSnapshot| ask.reply_to.node != node || Incarnation::of_number(ask.request) > lost;
        self.share.asked_snapshots.retain(stays);
        self.outcomes.others.retain(|(from, _)| *from != node);
        for at in self.own_blocks.iter().filter(|at| at.module == Module::Tc && self.epochs.is_some()) {
            outbox.send(*at, Signal::Tc(TcSignal::LeaveSessions(LeaveSessions { node })));
        }
        self.leave_nodes(std::iter::once(node).collect(), now, outbox);
    }

    /// Introduces this node until it is welcome, and begins what has become possible.
    pub(super) fn advance_schema(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let (Some(life), Some(epoch)) = (self.schema_life(), self.membership().map(|it| it.epoch)) else { return };
        let has_started = match &self.epochs {
            Some(epochs) => epochs.progress().started == epoch,
            None => self.member.as_ref().is_some_and(|member| member.serves_clients()),
        };
        if !has_started {
            return;
        }
        self.choose_host(outbox);
        if self.reachable_schema_life() != Some(life) {
            return;
        }
        let has_told = self.tell_own_locks(life, outbox);
        if life.0 == self.own.node {
            if self.share.welcomed_by != Some(life) && self.share.undurable.is_empty() {
                // The introductions to the node before are not known here, and that node may have died before
                // all blocks had the catalog of its last change. A change without a number is lost with it.
                let was_welcome = self.share.welcomed_by.replace(life).is_some();
                // Its changes may have come to the blocks before its welcome.
                if was_welcome || self.epochs.as_ref().is_some_and(|epochs| epochs.has_lost_sequencer) {
                    self.share.prepared = None;
                    self.share.introductions.push_back((life, self.introduction(epoch)));
                    self.publish_to_next(outbox);
                    self.undo_lost_jobs(now, outbox);
                    self.leave_lost_sessions(now, outbox);
                    self.queue_drops_again(now);
                }
                self.write_records(outbox);
            }
            if !self.waiting.is_empty() {
                self.begin_changes(now, outbox);
            }
            return;
        }
        if self.share.welcomed_by == Some(life) || !self.share.undurable.is_empty() || !has_told {
            return;
        }
        let introduction = self.introduction(epoch);
        outbox.send(Address::new(life.0, Module::Main, 0), Signal::Main(MainSignal::IntroduceNode(introduction)));
    }

    fn introduction(&self, epoch: Epoch) -> IntroduceNode {
        IntroduceNode {
            epoch,
            incarnation: self.gateway.incarnation(),
            sql: self.own_count(Module::Sql),
            tc: self.own_count(Module::Tc),
            ldm: self.ldm_instances,
            query: self.own_count(Module::Query),
            version: self.catalog.dictionary.version,
            needs_schema: self.needs_schema(),
        }
    }

    pub(super) fn on_introduce_node(&mut self, from: NodeId, introduction: IntroduceNode, outbox: &mut Outbox<Signal>) {
        let Some(membership) = self.membership() else { return };
        let record = membership.record(from).copied();
        let incarnation = introduction.incarnation;
        // A node without data has no epoch of its own: the introduction may be of the life before.
        if introduction.epoch != membership.epoch || self.life_of(from) != Some(incarnation) {
            return;
        }
        // Before its epoch, this node may know a membership of its life before.
        if !self.runs_schema_changes() || !self.has_started(membership) {
            return;
        }
        let life = (from, incarnation);
        let version = self.catalog.dictionary.version;
        let mut refusal = None;
        let own = (self.ldm_instances, self.own_count(Module::Tc));
        let its = (introduction.ldm, introduction.tc);
        let Some(record) = record else { return self.take_introduction(life, introduction, outbox) };
        if own != its {
            refusal = Some(format!("it has {its:?} instances of ldm and tc, and the others have {own:?}"));
        } else if record.is_serving() && self.has_changed_nothing() && introduction.version != version {
            let its = introduction.version;
            // After a start of all nodes, one of the two disks has lost what was on it. Its node ends. As a
            // later life, it is evicted and copies all rows, if another node of its group has them.
            if its > version {
                let message = format!(
                    "this node's disk lacks changes of the schema: it has version {version}, and node {} has {its}; it \
                     copies all rows when it starts again",
                    from.0
                );
                return outbox.request(junctor_kernel::WorldRequest::Halt { message: message.into() });
            }
            refusal = Some(format!(
                "its disk lacks changes of the schema: it has version {its}, and the others have {version}; it copies \
                 all rows when it starts again"
            ));
        }
        if let Some(refusal) = refusal {
            return self.welcome(life.0, introduction, Some(refusal.into()), outbox);
        }
        if !record.is_serving() {
            self.share.joining.insert(from, (incarnation, !introduction.needs_schema));
            if introduction.needs_schema {
                return self.hand_over_schema(from, incarnation, introduction.epoch, outbox);
            }
            self.share_records(outbox);
        }
        self.take_introduction(life, introduction, outbox);
    }

    /// Gives a joining node the schema, unless the schema changes at the moment. No change begins until the
    /// node serves.
    fn hand_over_schema(&mut self, node: NodeId, life: Incarnation, epoch: Epoch, outbox: &mut Outbox<Signal>) {
        let is_changing = self.running.is_some() || self.share.shared.is_some() || !self.share.undurable.is_empty();
        if is_changing || self.records.under_way().is_some() {
            return self.share_records(outbox);
        }
        self.share.joining.insert(node, (life, true));
        let marks = self.counters.iter().map(|(table, counter)| {
            let mark = CounterMark { table: *table, mark: counter.requested.max(counter.next), is_exact: false };
            Box::from(&mark.encode()[..])
        });
        let signal = HandOverSchema {
            epoch,
            catalog: Arc::clone(&self.catalog),
            next_table: self.next_table,
            next_place: self.next_place as u64,
            marks: marks.collect(),
        };
        outbox.send(Address::new(node, Module::Main, 0), Signal::Main(MainSignal::HandOverSchema(signal)));
    }

    /// Takes the schema over from the node with the sequencer.
    pub(super) fn on_hand_over_schema(&mut self, from: NodeId, signal: HandOverSchema, outbox: &mut Outbox<Signal>) {
        let is_for_this_life = self.own_record().is_some_and(|record| signal.epoch >= record.admitted);
        if !is_for_this_life || !self.needs_schema() || self.schema_life().is_none_or(|(node, _)| node != from) {
            return;
        }
        outbox.crash_point(crash_point::COPY_SCHEMA.before());
        self.next_table = signal.next_table;
        self.next_place = signal.next_place as usize;
        self.install_catalog(signal.catalog);
        self.install_marks(&signal.marks);
        self.begin_copy(outbox);
    }

    fn install_marks(&mut self, marks: &[Box<[u8]>]) {
        for mark in decode_marks(marks) {
            if let Some(layout) = self.catalog.dictionary.table(mark.table) {
                self.counters.insert(mark.table, Counter::restored(&layout.definition, mark.mark));
            }
        }
    }

    fn take_introduction(&mut self, life: Life, introduction: IntroduceNode, outbox: &mut Outbox<Signal>) {
        if self.share.nodes.get(&life.0) == Some(&life.1) {
            return self.welcome(life.0, introduction, None, outbox);
        }
        let is_known = self.share.introductions.iter().any(|(known, _)| *known == life)
            || self.share.publishing.as_ref().is_some_and(|publishing| publishing.life == life);
        if !is_known {
            self.share.introductions.push_back((life, introduction));
        }
        self.publish_to_next(outbox);
    }

    fn welcome(
        &self,
        node: NodeId,
        introduction: IntroduceNode,
        refusal: Option<Box<str>>,
        outbox: &mut Outbox<Signal>,
    ) {
        let IntroduceNode { epoch, incarnation, .. } = introduction;
        let welcome = WelcomeNode { epoch, incarnation, tc: self.own_count(Module::Tc), refusal };
        outbox.send(Address::new(node, Module::Main, 0), Signal::Main(MainSignal::WelcomeNode(welcome)));
    }

    /// Gives the catalog to the blocks of the next node, unless a change runs.
    pub(super) fn publish_to_next(&mut self, outbox: &mut Outbox<Signal>) {
        if self.share.publishing.is_some() || self.running.is_some() || !self.runs_schema_changes() {
            return;
        }
        let Some((life, introduction)) = self.share.introductions.pop_front() else { return };
        self.stage += 1;
        let blocks = blocks_of(life.0, &introduction);
        if life.0 != self.own.node {
            // The sessions of the node must leave the tables of waiting changes and the locked ones, too.
            // Each block gets both before the catalog, so its answer, and thus the welcome, follows them.
            for to in blocks.iter().filter(|at| at.module == Module::Sql) {
                outbox.send(*to, Signal::Sql(SqlSignal::UnblockTables(UnblockTables { operation: None })));
                self.session_blocks.push(*to);
            }
            self.withdraw_all(outbox);
            self.block_at(life.0, outbox);
        }
        for to in &blocks {
            self.publish_to(*to, OperationId(self.stage), outbox);
        }
        let (stage, outstanding) = (self.stage, blocks.len());
        self.share.publishing = Some(Publishing { life, introduction, stage, outstanding });
    }

    /// The epoch that changes of the schema name, by which blocks of other nodes know whether they mean this
    /// life of their node.
    pub(super) fn published_epoch(&self) -> Epoch {
        let epochs = self.epochs.as_ref().filter(|_| self.member.is_some());
        epochs.and_then(|epochs| epochs.started()).unwrap_or_default()
    }

    /// Sends the newest catalog to a block.
    pub(super) fn publish_to(&self, to: Address, operation: OperationId, outbox: &mut Outbox<Signal>) {
        let (reply_to, epoch, catalog) = (self.own, self.published_epoch(), Arc::clone(&self.catalog));
        let signal = PublishCatalog { operation, reply_to, epoch, catalog };
        let signal = match Module::of(to.module) {
            Module::Tc => Signal::Tc(TcSignal::PublishCatalog(signal)),
            Module::Ldm => Signal::Ldm(LdmSignal::PublishCatalog(signal)),
            Module::Query => Signal::Query(QuerySignal::PublishCatalog(signal)),
            _ => Signal::Sql(SqlSignal::PublishCatalog(signal)),
        };
        outbox.send(to, signal);
    }

    /// Counts the answer of a block of a node that introduces itself. Returns whether the answer was one.
    pub(super) fn takes_introduction_reply(
        &mut self,
        operation: OperationId,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let Some(publishing) = self.share.publishing.as_mut().filter(|it| it.stage == operation.0) else {
            return false;
        };
        publishing.outstanding -= 1;
        if publishing.outstanding > 0 {
            return true;
        }
        let Some(Publishing { life, introduction, .. }) = self.share.publishing.take() else { return true };
        if life.0 == self.own.node {
            // Its blocks get every catalog anyway.
            self.publish_to_next(outbox);
            self.begin_changes(now, outbox);
            return true;
        }
        self.share.nodes.insert(life.0, life.1);
        self.subscribers.extend(blocks_of(life.0, &introduction));
        self.welcome(life.0, introduction, None, outbox);
        self.publish_to_next(outbox);
        self.begin_changes(now, outbox);
        true
    }

    pub(super) fn on_welcome_node(&mut self, from: NodeId, signal: WelcomeNode, outbox: &mut Outbox<Signal>) {
        let life = self.schema_life().filter(|(node, _)| *node == from);
        let is_current = self.membership().is_some_and(|membership| membership.epoch == signal.epoch);
        if life.is_none() || !is_current || signal.incarnation != self.gateway.incarnation() {
            return;
        }
        match signal.refusal {
            None => {
                if self.share.welcomed_by != life {
                    self.send_drops_again(from, outbox);
                }
                self.share.welcomed_by = life;
                self.share.tcs = signal.tc;
                self.choose_host(outbox);
            }
            Some(refusal) => {
                let message = format!("this node cannot serve in the cluster: {refusal}");
                outbox.request(junctor_kernel::WorldRequest::Halt { message: message.into() });
            }
        }
    }

    /// These nodes are gone, and their blocks with them.
    pub(super) fn forget_blocks(&mut self, gone: &NodeSet, outbox: &mut Outbox<Signal>) {
        let is_left = |node: NodeId| !gone.contains(node);
        let before = self.session_blocks.len();
        self.subscribers.retain(|at| is_left(at.node));
        self.session_blocks.retain(|at| is_left(at.node));
        self.share.nodes.retain(|node, _| is_left(*node));
        self.share.introductions.retain(|((node, _), _)| is_left(*node));
        self.share.joining.retain(|node, _| is_left(*node));
        self.share.publishing.take_if(|publishing| !is_left(publishing.life.0));
        if self.session_blocks.len() < before {
            self.withdraw_all(outbox);
        }
    }

    /// Lets the other data nodes keep the next records, and asks for their number once all do.
    pub(super) fn share_records(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.runs_schema_changes() {
            return;
        }
        let Some(others) = self.keepers() else { return };
        if self.share.shared.is_none() {
            let Some((draft, catalog)) = self.records.take_draft() else { return };
            self.share.ids += 1;
            let records = ShareRecords {
                id: self.share.ids,
                dictionary: draft.dictionary.as_ref().map(|body| body.clone().into_boxed_slice()),
                catalog,
                marks: draft.marks.values().map(|mark| Box::from(&mark.encode()[..])).collect(),
                next_place: self.next_place as u64,
            };
            for node in others.iter() {
                let signal = MainSignal::ShareRecords(records.clone());
                outbox.send(Address::new(node, Module::Main, 0), Signal::Main(signal));
            }
            self.share.shared = Some(SharedRecords { id: records.id, draft, kept_by: NodeSet::EMPTY });
        }
        let Some(shared) = &self.share.shared else { return };
        if others.without(&shared.kept_by).is_empty() {
            let nodes: Vec<NodeId> = std::iter::once(self.own.node).chain(others.iter()).collect();
            let id = shared.id;
            self.request_records_number(id, &nodes, outbox);
        }
    }

    pub(super) fn on_share_records(&mut self, from: NodeId, signal: ShareRecords, outbox: &mut Outbox<Signal>) {
        let reply = ShareRecordsReply { id: signal.id };
        self.share.prepared = Some(signal);
        outbox.send(Address::new(from, Module::Main, 0), Signal::Main(MainSignal::ShareRecordsReply(reply)));
    }

    pub(super) fn on_share_records_reply(&mut self, from: NodeId, id: u64, outbox: &mut Outbox<Signal>) {
        if let Some(shared) = self.share.shared.as_mut().filter(|shared| shared.id == id) {
            shared.kept_by.insert(from);
            self.share_records(outbox);
        }
    }

    /// Writes the records that have got a number.
    pub(super) fn write_shared(
        &mut self,
        number: CommitNumber,
        transaction: GlobalTransactionId,
        outbox: &mut Outbox<Signal>,
    ) {
        if self.member.is_none() {
            let draft = self.records.take_draft().map(|(draft, _)| draft).unwrap_or_default();
            return self.write_numbered(number, draft, true, outbox);
        }
        if transaction.node == self.own.node.0 {
            if let Some(SharedRecords { draft, .. }) = self.share.shared.take_if(|it| it.id == transaction.counter) {
                self.write_numbered(number, draft, true, outbox);
            }
            return;
        }
        let prepared = self.share.prepared.take_if(|it| it.id == transaction.counter);
        let Some(records) = prepared else {
            junctor_kernel::invariant::fail("main keeps records before their number", format_args!("{transaction:?}"))
        };
        let mut draft = Draft { dictionary: records.dictionary.as_ref().map(|body| body.to_vec()), ..Draft::default() };
        draft.marks = decode_marks(&records.marks).map(|mark| (mark.table, mark)).collect();
        self.write_numbered(number, draft, false, outbox);
        self.share.undurable.push_back((number, records));
    }

    /// Takes over the schema of records that are on every disk.
    pub(super) fn install_shared(&mut self, durable: CommitNumber) {
        while let Some((_, records)) = self.share.undurable.pop_front_if(|(number, _)| *number <= durable) {
            if let (Some(catalog), Some(body)) = (records.catalog, &records.dictionary) {
                let Ok(change) = DictionaryChange::decode(body) else {
                    junctor_kernel::invariant::fail("main sends a change of the schema", format_args!("{durable:?}"))
                };
                self.next_table = change.next_table;
                self.install_catalog(catalog);
            }
            self.next_place = records.next_place as usize;
            self.install_marks(&records.marks);
        }
    }

    fn install_catalog(&mut self, mut catalog: Arc<Catalog>) {
        self.add_placements(&mut catalog);
        self.counters.retain(|table, _| catalog.dictionary.table(*table).is_some());
        let base = catalog.dictionary.tables().filter(|layout| layout.definition.kind == TableKind::Base);
        for layout in base {
            let table: TableId = layout.definition.id;
            self.counters.entry(table).or_insert_with(|| Counter::restored(&layout.definition, 1));
        }
        self.catalog = catalog;
    }
}

/// Whether no schema change is possible while this node does not serve. Nothing waits for a node that is
/// away and has no mark, if its group is closed or is to be removed, or if it was added as one more replica:
/// it takes over the whole schema when it joins, and new tables are at other nodes.
pub(super) fn prevents_changes(membership: &Membership, record: &NodeRecord) -> bool {
    let group = Some(record.group);
    let has_awaited_group = membership.closed_group() != group && membership.leaving_group() != group;
    let is_awaited = has_awaited_group && !membership.added.contains(record.node);
    !record.is_serving() && (record.is_member() || record.is_durable || is_awaited)
}

fn decode_marks(marks: &[Box<[u8]>]) -> impl Iterator<Item = CounterMark> {
    marks.iter().map(|bytes| match CounterMark::decode(bytes) {
        Ok(mark) => mark,
        Err(error) => junctor_kernel::invariant::fail("main sends marks", format_args!("{error}")),
    })
}

/// The blocks of a node that get every catalog.
fn blocks_of(node: NodeId, introduction: &IntroduceNode) -> Vec<Address> {
    let IntroduceNode { sql, tc, ldm, query, .. } = *introduction;
    let modules = [(Module::Tc, tc), (Module::Ldm, ldm), (Module::Query, query), (Module::Sql, sql)];
    let of = |(module, count): (Module, u16)| (0..count).map(move |instance| Address::new(node, module, instance));
    modules.into_iter().flat_map(of).collect()
}
