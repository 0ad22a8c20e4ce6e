//! Questions to main of other nodes, for statements about the whole cluster: rows of status tables, stops of
//! nodes, KILL, and steps of backups. A node that does not answer in time is left out. Nodes without data
//! have no links to each other, so a data or management node passes their questions on. It asks the node
//! itself, and no third one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_kernel::{Address, Context, Duration, NodeId, Outbox, Time, WorldRequest};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ConnectionId, Incarnation};
use junctor_model::value::Value;
use junctor_signals::ask_node::{AskNode, AskNodeReply, ControlNode, ControlNodeReply, NodeQuestion};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::interrupt_session::{
    InterruptSession, InterruptSessionReply, KillOutcome, KillReach, no_such_thread,
};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};
use junctor_signals::{MainSignal, Module, Signal, SqlSignal};

use super::backup_part::BackupDesk;
use super::block::MainBlock;
use crate::member::{EventKind, RemovalRefusal};

/// Identifies the work in [`ContinueWork`].
pub(super) const ASK_WORK: u32 = 7;
/// The token of the timer after which the node stops.
pub(super) const STOP_TIMER: u64 = 7;
/// Maximum number of questions under way. Further ones are answered by this node alone.
const QUESTIONS_MAX: usize = 64;
/// Maximum number of questions that one signal sends. The rest follows in the next turn.
const SENT_MAX: usize = 32;
/// Time after which a node that has not answered is left out.
const ANSWER_WAIT_MAX: Duration = Duration::from_millis(1000);
/// Time until the node stops, for the answer to the statement that stops it.
const STOP_AFTER: Duration = Duration::from_millis(20);

/// How the process of the node and main tell each other about stops and backups.
#[derive(Clone, Debug, Default)]
pub struct Supervision {
    /// Whether the node belongs to a cluster.
    pub is_member: bool,
    /// Whether a supervisor starts it again when it ends with the status for a restart.
    pub is_supervised: bool,
    /// Set before the node stops to be started again.
    pub wants_restart: Arc<AtomicBool>,
    /// Set by the process when it is to stop in order. Main of a node of a cluster looks at it with each
    /// tick.
    pub wants_stop: Arc<AtomicBool>,
    /// The part of the node in a backup of its cluster.
    pub backup: BackupDesk,
}

/// The questions that wait for answers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    list: Vec<Question>,
    /// Answers of this node that its sql blocks give.
    gatherings: Vec<Gathering>,
    last_id: u64,
}

/// An answer to another node, to which every sql block of this one contributes.
#[derive(Debug)]
struct Gathering {
    operation: OperationId,
    /// The node that asks, and its number of the question.
    asker: (NodeId, u64),
    /// Sql blocks that have not answered.
    outstanding: usize,
    rows: Vec<Vec<Value>>,
    /// The session to stop, and what became of it.
    killed: Option<(ConnectionId, KillOutcome)>,
}

#[derive(Debug)]
struct Question {
    id: u64,
    asker: Asker,
    question: NodeQuestion,
    /// The nodes that are still to be asked.
    unsent: VecDeque<NodeId>,
    awaited: Vec<Awaited>,
    rows: Vec<Vec<Value>>,
    error: Option<Box<Error>>,
    deadline: Time,
}

/// A node that has not answered.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    node: NodeId,
    /// The linked node that was asked, and its life.
    via: (NodeId, Incarnation),
}

/// Where the answer goes.
#[derive(Clone, Copy, Debug)]
enum Asker {
    /// To a session that reads a status table.
    Reader { operation: OperationId, reply_to: Address },
    /// To a session that wants a node to do something.
    Controller { operation: OperationId, reply_to: Address },
    /// To main of another node, about this node.
    Node { id: u64, to: NodeId, about: NodeId },
}

impl Questions {
    pub fn new(first_number: u64) -> Questions {
        Questions { list: Vec::new(), gatherings: Vec::new(), last_id: first_number }
    }

    fn is_full(&self) -> bool {
        self.list.len() >= QUESTIONS_MAX
    }
}

impl Question {
    fn is_answered(&self) -> bool {
        self.unsent.is_empty() && self.awaited.is_empty()
    }
}

impl MainBlock {
    /// A session reads a table about the whole cluster.
    pub(super) fn ask_all(&mut self, request: &ReadStatus, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
        let rows = self.rows_of_node(request.table, context);
        let unsent = match &self.member {
            Some(cluster) if !self.questions.is_full() => match request.table {
                // This node knows the others, except those that it has no links to.
                StatusTable::Nodes => cluster.relay().filter(|_| has_unknown(&rows)).into_iter().collect(),
                _ => cluster.others().collect(),
            },
            _ => VecDeque::new(),
        };
        let asker = Asker::Reader { operation: request.operation, reply_to: request.reply_to };
        self.ask((asker, NodeQuestion::Status { table: request.table }), unsent, rows, (context.turn_start, outbox));
    }

    fn ask(
        &mut self,
        (asker, question): (Asker, NodeQuestion),
        unsent: VecDeque<NodeId>,
        rows: Vec<Vec<Value>>,
        (now, outbox): (Time, &mut Outbox<Signal>),
    ) {
        self.questions.last_id += 1;
        let id = self.questions.last_id;
        let (awaited, deadline) = (Vec::new(), now.plus(ANSWER_WAIT_MAX));
        self.questions.list.push(Question { id, asker, question, unsent, awaited, rows, error: None, deadline });
        self.advance_questions(now, outbox);
    }

    /// Sends the next questions, gives up nodes that have ended or do not answer, and passes answers on.
    pub(super) fn advance_questions(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let mut left = SENT_MAX;
        let MainBlock { questions, member, own, .. } = self;
        for question in &mut questions.list {
            let is_late = now >= question.deadline;
            if is_late {
                question.unsent.clear();
                if let Some(awaited) = question.awaited.first().filter(|_| is_request(&question.question)) {
                    question.error = Some(does_not_answer(awaited.node));
                }
                question.awaited.clear();
            }
            let Some(cluster) = member.as_ref() else { continue };
            let is_request = is_request(&question.question);
            let is_linked = |it: &Awaited| cluster.linked_life(it.via.0) == Some(it.via.1);
            // The end of a relay tells nothing.
            let mut lost = question.awaited.iter().filter(|it| is_request && !is_linked(it));
            if let Some(lost) = lost.next() {
                let has_ended = lost.via.0 == lost.node;
                question.error =
                    if has_ended { end_of(&question.question, lost.node) } else { Some(does_not_answer(lost.node)) };
            }
            question.awaited.retain(is_linked);
            let passes_on = matches!(question.asker, Asker::Node { .. });
            while left > 0
                && let Some(node) = question.unsent.pop_front()
            {
                let relay = cluster.relay().filter(|_| !passes_on && !cluster.is_linked_with(node));
                let way = [Some(node), relay].into_iter().flatten();
                let mut way = way.filter_map(|via| Some((via, cluster.linked_life(via)?)));
                let Some(via) = way.next() else {
                    question.error = is_request.then(|| does_not_answer(node));
                    continue;
                };
                left -= 1;
                question.awaited.push(Awaited { node, via });
                let ask = AskNode { id: question.id, node, question: question.question.clone() };
                outbox.send(Address::new(via.0, Module::Main, 0), Signal::Main(MainSignal::AskNode(ask)));
            }
        }
        let mut index = 0;
        while index < questions.list.len() && left > 0 {
            if questions.list[index].is_answered() {
                left -= 1;
                answer(questions.list.remove(index), outbox);
            } else {
                index += 1;
            }
        }
        let is_unsent = |question: &Question| !question.unsent.is_empty() || question.is_answered();
        if questions.list.iter().any(is_unsent) {
            outbox.send(*own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: ASK_WORK })));
        }
    }

    /// Makes [`MainBlock::advance_questions`] look in a turn of its own whether nodes have ended.
    pub(super) fn schedule_questions(&self, outbox: &mut Outbox<Signal>) {
        if !self.questions.list.is_empty() {
            outbox.send(self.own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: ASK_WORK })));
        }
    }

    /// Another node asks this one, or wants to ask a third one.
    pub(super) fn on_ask_node(
        &mut self,
        from: NodeId,
        signal: AskNode,
        context: &Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let AskNode { id, node, question } = signal;
        let asker = Asker::Node { id, to: from, about: node };
        if node != self.own.node && !self.questions.is_full() {
            return self.ask((asker, question), [node].into(), Vec::new(), (context.turn_start, outbox));
        }
        let (rows, error) = match question {
            _ if node != self.own.node => (Vec::new(), Some(does_not_answer(node))),
            NodeQuestion::Status { table: StatusTable::Processes } | NodeQuestion::Kill { .. } => {
                return self.gather((from, id), &question, outbox);
            }
            NodeQuestion::Status { table } => (self.rows_of_node(table, context), None),
            NodeQuestion::Stop { restarts, is_forced } => (Vec::new(), self.stop_by(restarts, is_forced, outbox).err()),
            NodeQuestion::Backup { step } => (Vec::new(), self.on_backup_step(step, context.turn_start, outbox).err()),
            question @ (NodeQuestion::LeaveGroup { .. } | NodeQuestion::LeaveReplica { .. }) => {
                (Vec::new(), self.change_leaving(&question, context.turn_start, outbox).err())
            }
        };
        send_reply(AskNodeReply { id, node, rows, error }, from, outbox);
    }

    /// A node has answered.
    pub(super) fn on_ask_node_reply(
        &mut self,
        from: NodeId,
        reply: AskNodeReply,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(question) = self.questions.list.iter_mut().find(|question| question.id == reply.id) else { return };
        let is_answer = |it: &Awaited| (it.node, it.via.0) == (reply.node, from);
        let Some(index) = question.awaited.iter().position(is_answer) else { return };
        question.awaited.swap_remove(index);
        match question.question {
            NodeQuestion::Status { table: StatusTable::Nodes } => complete_nodes(&mut question.rows, reply.rows),
            _ => {
                let left = STATUS_ROWS_MAX.saturating_sub(question.rows.len());
                let width = question.rows.first().map(Vec::len);
                question.rows.extend(reply.rows.into_iter().take(left).map(|row| fit_columns(row, width)));
            }
        }
        question.error = reply.error.or(question.error.take());
        self.advance_questions(now, outbox);
    }

    /// A session wants a node to do something.
    pub(super) fn on_control_node(&mut self, signal: ControlNode, now: Time, outbox: &mut Outbox<Signal>) {
        let ControlNode { operation, reply_to, mut node, question } = signal;
        if matches!(*question, NodeQuestion::LeaveGroup { .. } | NodeQuestion::LeaveReplica { .. }) {
            // Without a leader this node itself refuses.
            node = self.member.as_ref().map(|cluster| cluster.leader()).filter(|leader| leader.0 > 0);
        }
        let other = node.filter(|node| *node != self.own.node);
        let is_known = |node: NodeId| self.member.as_ref().is_some_and(|it| it.others().any(|other| other == node));
        let error = match (other, *question) {
            (None, NodeQuestion::Stop { restarts, is_forced }) => {
                self.stop_by(restarts, is_forced || node.is_none(), outbox).err()
            }
            (None, NodeQuestion::Backup { step }) => self.on_backup_step(step, now, outbox).err(),
            (None, question @ (NodeQuestion::LeaveGroup { .. } | NodeQuestion::LeaveReplica { .. })) => {
                self.change_leaving(&question, now, outbox).err()
            }
            // The sql block has asked the blocks of its own node itself.
            (None, question) => Some(unknown(&question)),
            (Some(node), question) if !is_known(node) => Some(unknown(&question)),
            (Some(node), _) if self.questions.is_full() => Some(does_not_answer(node)),
            (Some(node), question) => {
                if let NodeQuestion::Stop { restarts, .. } = question {
                    let what = if restarts { "restart" } else { "stop" };
                    self.note_event(EventKind::Stopping, format!("node {}: is asked to {what} by a statement", node.0));
                }
                let asked = (Asker::Controller { operation, reply_to }, question);
                return self.ask(asked, [node].into(), Vec::new(), (now, outbox));
            }
        };
        reply_to_controller(operation, reply_to, error, outbox);
    }

    /// Marks a node group or a replica as leaving, or takes the mark back, as the leader.
    fn change_leaving(
        &mut self,
        question: &NodeQuestion,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) -> Result<(), Box<Error>> {
        let Some(cluster) = &mut self.member else { return Err(unknown(question)) };
        let (result, statement) = match *question {
            NodeQuestion::LeaveGroup { group, leaves } => (cluster.change_group(group, leaves), "ALTER NODEGROUP"),
            NodeQuestion::LeaveReplica { node, leaves } => (cluster.change_replica(NodeId(node), leaves), "ALTER NODE"),
            _ => return Err(unknown(question)),
        };
        let result = result.map_err(|refusal| match refusal {
            RemovalRefusal::Passing(text) => {
                Error::new(ErrorCode::TemporaryFailure, format!("Got temporary error: {text}"))
            }
            RemovalRefusal::Lasting(text) => Error::new(ErrorCode::WrongArguments, format!("{statement}: {text}")),
        });
        self.perform(now, outbox);
        result
    }

    /// Asks the sql blocks of this node, for another one.
    fn gather(&mut self, (from, id): (NodeId, u64), question: &NodeQuestion, outbox: &mut Outbox<Signal>) {
        if self.questions.gatherings.len() >= QUESTIONS_MAX || self.sql_blocks.is_empty() {
            let error = unknown(question);
            let error = matches!(question, NodeQuestion::Kill { .. }).then_some(error);
            return send_reply(AskNodeReply { id, node: self.own.node, rows: Vec::new(), error }, from, outbox);
        }
        self.questions.last_id += 1;
        let operation = OperationId(self.questions.last_id);
        let reply_to = self.own;
        let mut killed = None;
        for to in &self.sql_blocks {
            let signal = match question {
                NodeQuestion::Kill { connection, closes_connection, reach } => {
                    killed = Some((*connection, KillOutcome::Unknown));
                    let (connection, closes_connection) = (*connection, *closes_connection);
                    let reach: KillReach = reach.clone();
                    SqlSignal::InterruptSession(InterruptSession {
                        operation,
                        reply_to,
                        connection,
                        closes_connection,
                        reach,
                    })
                }
                _ => {
                    let (table, only) = (StatusTable::Processes, Box::default());
                    SqlSignal::ReadStatus(ReadStatus { operation, reply_to, table, only })
                }
            };
            outbox.send(*to, Signal::Sql(signal));
        }
        let outstanding = self.sql_blocks.len();
        let gathering = Gathering { operation, asker: (from, id), outstanding, rows: Vec::new(), killed };
        self.questions.gatherings.push(gathering);
    }

    /// A sql block has answered with the rows of its sessions.
    pub(super) fn on_read_status_reply(&mut self, reply: ReadStatusReply, outbox: &mut Outbox<Signal>) {
        self.on_gathered(reply.operation, outbox, |gathering| {
            let left = STATUS_ROWS_MAX.saturating_sub(gathering.rows.len());
            gathering.rows.extend(reply.rows.into_iter().take(left));
        });
    }

    /// A sql block has answered whether it has stopped a session.
    pub(super) fn on_interrupt_session_reply(&mut self, reply: &InterruptSessionReply, outbox: &mut Outbox<Signal>) {
        self.on_gathered(reply.operation, outbox, |gathering| {
            if let Some((_, outcome)) = &mut gathering.killed {
                *outcome = reply.outcome.max(*outcome);
            }
        });
    }

    fn on_gathered(&mut self, operation: OperationId, outbox: &mut Outbox<Signal>, take: impl FnOnce(&mut Gathering)) {
        let gatherings = &mut self.questions.gatherings;
        let Some(index) = gatherings.iter().position(|it| it.operation == operation) else { return };
        take(&mut gatherings[index]);
        gatherings[index].outstanding -= 1;
        if gatherings[index].outstanding > 0 {
            return;
        }
        let Gathering { asker: (to, id), rows, killed, .. } = gatherings.swap_remove(index);
        let error = killed.and_then(|(connection, outcome)| outcome.error(connection));
        send_reply(AskNodeReply { id, node: self.own.node, rows, error }, to, outbox);
    }

    /// Begins to stop this node. Errors: 3707 if nothing would start it again, 1296 if the cluster would lose
    /// the rows of its group or the majority of the voters.
    fn stop_by(&mut self, restarts: bool, is_forced: bool, outbox: &mut Outbox<Signal>) -> Result<(), Box<Error>> {
        let node = self.own.node;
        let supervision = &self.configuration.supervision;
        if restarts && !supervision.is_supervised {
            let message = "Restart server failed (mysqld is not managed by supervisor process).";
            return Err(Error::new(ErrorCode::RestartServerFailed, message));
        }
        let loss = self.member.as_ref().filter(|_| !is_forced).and_then(|cluster| match cluster.group_without(node) {
            Some(group) => Some(format!("is the last one of node group {group} that serves and has its rows on disk")),
            None => cluster.takes_majority(node).then(|| "leaves no majority of the voters".to_owned()),
        });
        if let Some(loss) = loss {
            let message = format!("Got temporary error: node {} {loss}; only FORCE stops it", node.0);
            return Err(Error::new(ErrorCode::TemporaryFailure, message));
        }
        supervision.wants_restart.store(restarts, Ordering::Relaxed);
        let what = if restarts { "restarts" } else { "stops" };
        self.note_event(EventKind::Stopping, format!("node {}: {what} by a statement", node.0));
        outbox.request(WorldRequest::StartTimer { after: STOP_AFTER, token: STOP_TIMER });
        Ok(())
    }

    /// The rows that this node itself has of a table about the whole cluster.
    fn rows_of_node(&mut self, table: StatusTable, context: &Context<'_>) -> Vec<Vec<Value>> {
        let now = context.turn_start;
        match table {
            StatusTable::Nodes => Some(self.member_rows()),
            StatusTable::Links => self.member.as_ref().map(|it| it.link_rows(&self.configuration.links, now)),
            StatusTable::Arbitration => self.member.as_ref().map(|it| it.arbitration_row(now)).map(|row| vec![row]),
            StatusTable::Events => self.member.as_ref().map(|it| it.event_rows(now, context.wall_clock_us)),
            StatusTable::ReplicationLag => self.epochs.as_ref().map(|epochs| epochs.lag_rows()),
            StatusTable::Restarts => {
                self.restart_info.set_now(now);
                Some(self.restart_info.rows_of(self.own.node))
            }
            StatusTable::Backups => Some(self.backup_rows()),
            _ => None,
        }
        .unwrap_or_default()
    }
}

/// Whether some node is known to others only.
fn has_unknown(rows: &[Vec<Value>]) -> bool {
    rows.iter().any(|row| is_unknown(row))
}

fn is_unknown(row: &[Value]) -> bool {
    matches!(row.get(2), Some(Value::Bytes(state)) if &**state == b"UNKNOWN")
}

/// Takes the rows of unknown nodes from another node, which has links to them.
fn complete_nodes(rows: &mut [Vec<Value>], mut others: Vec<Vec<Value>>) {
    for row in rows.iter_mut().filter(|row| is_unknown(row)) {
        let Some(other) = others.iter_mut().find(|other| other.first() == row.first()) else { continue };
        std::mem::swap(row, other);
        // The version of the links is that of the other node.
        if let Some(version) = row.last_mut() {
            *version = Value::Null;
        }
    }
}

fn answer(question: Question, outbox: &mut Outbox<Signal>) {
    let Question { asker, rows, error, .. } = question;
    match asker {
        Asker::Reader { operation, reply_to } => {
            let reply = ReadStatusReply { operation, rows };
            outbox.send(reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
        }
        Asker::Controller { operation, reply_to } => reply_to_controller(operation, reply_to, error, outbox),
        Asker::Node { id, to, about } => send_reply(AskNodeReply { id, node: about, rows, error }, to, outbox),
    }
}

fn reply_to_controller(operation: OperationId, to: Address, error: Option<Box<Error>>, outbox: &mut Outbox<Signal>) {
    outbox.send(to, Signal::Sql(SqlSignal::ControlNodeReply(ControlNodeReply { operation, error })));
}

/// The columns of this release: another one may have fewer or more of them, the new ones at the end.
fn fit_columns(mut row: Vec<Value>, width: Option<usize>) -> Vec<Value> {
    width.into_iter().for_each(|width| row.resize(width, Value::Null));
    row
}

/// Whether one node is to do something. The others are asked for rows.
fn is_request(question: &NodeQuestion) -> bool {
    !matches!(question, NodeQuestion::Status { .. })
}

/// The error of a request that names no node, or no session of one.
fn unknown(question: &NodeQuestion) -> Box<Error> {
    let statement = match question {
        NodeQuestion::Kill { connection, .. } => return no_such_thread(&connection.0),
        NodeQuestion::Stop { restarts: true, .. } => "RESTART NODE",
        NodeQuestion::Backup { .. } => "BACKUP NODE",
        NodeQuestion::LeaveGroup { .. } => "ALTER NODEGROUP",
        NodeQuestion::LeaveReplica { .. } => "ALTER NODE",
        _ => "SHUTDOWN NODE",
    };
    Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {statement}"))
}

/// The error of a request to a node that has ended before its answer; `None` if that fulfils the request.
fn end_of(question: &NodeQuestion, node: NodeId) -> Option<Box<Error>> {
    match question {
        NodeQuestion::Stop { .. } => None,
        // Its sessions have ended with it.
        NodeQuestion::Kill { .. } => Some(unknown(question)),
        _ => Some(does_not_answer(node)),
    }
}

fn send_reply(reply: AskNodeReply, to: NodeId, outbox: &mut Outbox<Signal>) {
    outbox.send(Address::new(to, Module::Main, 0), Signal::Main(MainSignal::AskNodeReply(reply)));
}

fn does_not_answer(node: NodeId) -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, format!("Got temporary error: node {} does not answer", node.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_another_release_get_the_columns_of_this_one() {
        let row = || vec![Value::UInt(1), Value::UInt(2)];
        assert_eq!(fit_columns(row(), None), row(), "this node has no rows of the table");
        assert_eq!(fit_columns(row(), Some(3)), [Value::UInt(1), Value::UInt(2), Value::Null]);
        assert_eq!(fit_columns(row(), Some(1)), [Value::UInt(1)]);
    }
}
