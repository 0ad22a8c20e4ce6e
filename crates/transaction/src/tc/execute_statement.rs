//! Hot path: at most 300 instructions per statement with one part.
//!
//! Sends all parts of a statement to their owners, collects the replies, runs follow-ups, and then replies,
//! commits or undoes the statement.

use junctor_kernel::{Address, Buffer, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{Epoch, PartitionId, StatementNumber, TransactionId};
use junctor_model::limit::STATEMENTS_MAX;
use junctor_signals::diagnostics;
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply, Parts, Reading};
use junctor_signals::program::{WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::start_epoch::lost_with_node;
use junctor_signals::write_rows::{WriteRows, WriteRowsReply};
use junctor_signals::{LdmSignal, Signal, SqlSignal};

use std::sync::Arc;

use super::block::{TcBlock, record_of};
use super::state::{Part, Phase, RoundPart, TransactionHandle};
use super::undo_transaction::ends_transaction;
use junctor_storage::commit_sequence::Numbering;

impl TcBlock {
    pub(super) fn on_execute_statement(
        &mut self,
        request: ExecuteStatement,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.statements += 1;
        if request.reply_to.node != self.own.node && self.is_for_earlier_life(request.epoch) {
            return refuse(request, TransactionId::default(), lost_with_node(), context, outbox);
        }
        if self.is_log_full() && !matches!(request.program.action, WriteAction::LockRead { .. }) {
            let id = request.transaction;
            return refuse(request, id, Error::disk_full(), context, outbox);
        }
        if matches!(request.program.action, WriteAction::LockRead { .. }) {
            return self.begin_statement(request, context, outbox);
        }
        if let Some(request) = self.hold_statement(request, context.turn_start, outbox) {
            self.begin_statement(request, context, outbox);
        }
    }

    /// Whether a node without data means an earlier life of this node, which its sql block did not know to be
    /// lost. Before its first epoch this life serves nobody.
    fn is_for_earlier_life(&self, epoch: Epoch) -> bool {
        epoch > Epoch(0) && (self.epoch == Epoch(0) || epoch < self.admitted)
    }

    /// Begins a statement that the log has room for.
    pub(super) fn begin_statement(
        &mut self,
        request: ExecuteStatement,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let handle = if request.transaction.is_some() {
            match self.find(request.transaction) {
                Some(handle) => handle,
                None => return refuse(request, TransactionId::default(), has_ended(), context, outbox),
            }
        } else {
            match self.begin() {
                Some(handle) => handle,
                None => return refuse(request, TransactionId::default(), too_many_transactions(), context, outbox),
            }
        };
        let record = self.record(handle);
        if record.phase != Phase::Idle {
            let id = record.id;
            return refuse(request, id, is_busy(), context, outbox);
        }
        if record.statement.0 >= STATEMENTS_MAX {
            let id = record.id;
            return refuse(request, id, too_many_statements(), context, outbox);
        }
        let (single, partition) = match &request.parts {
            Parts::One(partition, _) => (true, *partition),
            Parts::Many(_) => (false, 0),
        };
        record.begin_statement(&request);
        let is_first = record.participants.is_empty();
        if record.is_lost || self.is_stale(&request.program) {
            let record = self.record(handle);
            record.running.error =
                Some(if record.is_lost { lost_with_node() } else { Error::table_definition_changed() });
            return_parts(request.parts, context);
            return self.advance_statement(handle, context, outbox);
        }
        let table = request.program.table.definition.id;
        let has_backups = self.has_backups(PartitionId { table, index: partition });
        let has_more = !request.program.unique_entries.is_empty() || request.program.foreign_keys.is_some();
        let is_alone = self.numbering == Numbering::Local;
        let one_phase = request.autocommit && is_first && single && !has_more && !has_backups && is_alone;
        self.record(handle).running.one_phase = one_phase && self.take_one_phase_space(handle, outbox);
        match request.parts {
            Parts::One(index, input) => {
                let partition = PartitionId { table, index };
                let part = RoundPart { partition, program: request.program, input, part: Part::Base };
                self.send_part(handle, part, context, outbox);
            }
            Parts::Many(parts) => {
                for (index, input) in parts {
                    let partition = PartitionId { table, index };
                    let part = RoundPart { partition, program: Arc::clone(&request.program), input, part: Part::Base };
                    self.send_part(handle, part, context, outbox);
                }
            }
        }
        if self.record(handle).outstanding == 0 {
            self.advance_statement(handle, context, outbox);
        }
    }

    /// Whether the plan was made for another version of its tables than the published one.
    fn is_stale(&self, program: &WriteProgram) -> bool {
        let published = |id| self.catalog.dictionary.table(id).map(|layout| layout.definition.version);
        let own = &program.table.definition;
        let has_entries = |(_, layout): &(_, Arc<junctor_model::schema::TableLayout>)| {
            published(layout.definition.id) == Some(layout.definition.version)
        };
        published(own.id) != Some(own.version) || !program.unique_entries.iter().all(has_entries)
    }

    pub(super) fn has_backups(&self, partition: PartitionId) -> bool {
        self.catalog.distribution.chain(partition).is_some_and(|chain| chain.len() > 1)
    }

    /// Sends one part to the owner of its partition. If the partition has no owner, the statement fails.
    pub(super) fn send_part(
        &mut self,
        handle: TransactionHandle,
        part: RoundPart,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let RoundPart { partition, program, input, part } = part;
        let (own, epoch) = (self.own, self.epoch);
        let TcBlock { catalog, transactions, gone, late, .. } = self;
        let record = record_of(transactions, handle);
        let chain = catalog.distribution.chain(partition);
        let found = chain.and_then(|chain| match epoch.0 {
            0 => chain.first().map(|owner| (*owner, chain)),
            _ => late.primary(chain, gone).map(|owner| (owner, chain)),
        });
        let Some((owner, chain)) = found else {
            record.running.error.get_or_insert_with(Error::table_definition_changed);
            return context.buffers.give(input);
        };
        record.touch(owner, partition, late.whole(chain));
        record.outstanding += 1;
        require!(record.phase == Phase::Executing, "parts belong to a statement that executes");
        let number = record.running.parts.len() as u64;
        require!(number <= u64::from(u32::MAX), "the number of a part has 32 bits");
        // The isolation level applies to the rows that the client asked for, not to follow-ups.
        let reading = if matches!(part, Part::Base) { record.running.reading } else { Reading::default() };
        record.running.parts.push(part);
        if owner.node != own.node {
            record.remote_parts.push((number as u32, owner.node));
        }
        let request = WriteRows {
            operation: OperationId(u64::from(record.statement.0) << 32 | number),
            reply_to: own,
            epoch,
            transaction: record.id,
            statement: record.statement,
            first: record.running.first,
            savepoint: record.running.savepoint,
            partition,
            protocol: record.running.protocol,
            reading,
            one_phase: record.running.one_phase,
            program,
            input,
            output: Buffer::new(),
        };
        outbox.send(owner, Signal::Ldm(LdmSignal::WriteRows(request)));
    }

    pub(super) fn on_write_rows_reply(
        &mut self,
        mut reply: WriteRowsReply,
        from: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        context.buffers.give(reply.input);
        let handle = self.awaiting(reply.transaction);
        let own = self.own.node;
        let record = self.record(handle);
        let number = reply.operation.0 as u32 as usize;
        let is_current = reply.operation.0 >> 32 == u64::from(record.statement.0) && record.phase == Phase::Executing;
        require!(
            is_current && number < record.running.parts.len(),
            "a part answers the statement that sent it: {} in transaction {}",
            reply.operation.0,
            reply.transaction
        );
        if reply.is_part {
            return self.take_follow_ups(handle, number, reply.follow_ups, context.buffers);
        }
        record.take_reply();
        if from.node != own {
            record.remote_parts.retain(|(part, _)| *part as usize != number);
        }
        record.running.planned.free_some();
        if reply.changed > 0 {
            let participant = record.note_written(from, reply.partition);
            participant.is_long |= reply.is_long;
            participant.log_blocks = reply.log_blocks;
        }
        if record.running.one_phase {
            record.running.one_phase = reply.is_committed;
            self.settle_one_phase_space(handle, if reply.is_committed { reply.log_blocks } else { 0 });
        } else if reply.is_long && self.exceeds_log(handle) {
            reply.error.get_or_insert_with(Error::transaction_exceeds_log);
        }
        let running = &mut self.record(handle).running;
        if reply.diagnostics.is_some() {
            diagnostics::join(&mut running.diagnostics, reply.diagnostics, running.reading.warnings_max);
        }
        if let Part::Base = running.parts[number] {
            running.matched += u64::from(reply.matched);
            running.changed += u64::from(reply.changed);
        }
        match reply.output.is_empty() {
            true => context.buffers.give(reply.output),
            false => running.outputs.push(reply.output),
        }
        running.newest = running.newest.max(reply.newest);
        if let Some(check) = &mut running.check {
            check.matched += u64::from(reply.matched);
        }
        match reply.error {
            None => self.take_follow_ups(handle, number, reply.follow_ups, context.buffers),
            Some(error) => {
                let error = running.name_entry(number, reply.matched, error);
                let is_first = running.error.is_none();
                // An error that ends the transaction takes precedence over all others.
                if is_first || ends_transaction(&error) {
                    running.error = Some(error);
                }
                if is_first {
                    self.stop_parts(handle, outbox);
                }
            }
        }
        if self.record(handle).outstanding == 0 {
            self.advance_statement(handle, context, outbox);
        }
    }

    /// Decides the next step, once all parts in flight have answered.
    pub(super) fn advance_statement(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let record = self.record(handle);
        require!(record.outstanding == 0, "a statement advances when all parts under way have answered");
        if let Some(check) = record.running.check.take() {
            record.running.check_found(&check);
        }
        record.fail_if_interrupted();
        if record.running.error.is_some() {
            let newest = record.running.newest;
            if self.wait_until_stable(handle, newest, Phase::WaitingSeen, outbox) {
                return;
            }
            return self.fail_statement(handle, context, outbox);
        }
        if (!record.running.planned.is_empty() || !record.running.rounds.is_empty())
            && self.run_follow_ups(handle, context, outbox)
        {
            return;
        }
        if !self.record(handle).running.cascades.is_empty() && self.run_foreign_keys(handle, context, outbox) {
            return;
        }
        self.finish_statement(handle, outbox);
    }

    /// Ends a successful statement. The client must not see commits that are not yet stable. If the
    /// transaction has yet to take its own commit number, that number is above them all, so waiting for it is
    /// enough.
    fn finish_statement(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        let running = &record.running;
        require!(running.error.is_none() && running.check.is_none(), "a statement that fails is undone");
        require!(running.rounds.is_empty() && running.cascades.is_empty(), "a statement ends after its follow-ups");
        require!(record.waits.is_empty(), "a statement that ends waits for no lock");
        let newest = record.running.newest;
        if record.running.one_phase {
            // The partition has committed by itself, or had nothing to commit and has released its locks.
            record.number = newest;
            if !self.wait_until_stable(handle, newest, Phase::WaitingStable, outbox) {
                self.finish_commit(handle, outbox);
            }
            return;
        }
        let takes_number = record.running.autocommit && record.participants.iter().any(|one| one.has_written);
        if !takes_number && self.wait_until_stable(handle, newest, Phase::WaitingSeen, outbox) {
            return;
        }
        let record = self.record(handle);
        if record.running.autocommit {
            self.commit(handle, outbox);
        } else {
            record.phase = Phase::Idle;
            record.changed += record.running.changed;
            self.reply_statement(handle, true, outbox);
            self.begin_ending(handle, outbox);
        }
    }

    /// Replies to the statement. The reply names the transaction if it stays open.
    pub(super) fn reply_statement(&mut self, handle: TransactionHandle, stays_open: bool, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        require!(record.owes_statement, "a statement is answered once");
        record.owes_statement = false;
        let transaction = if stays_open { record.id } else { TransactionId::default() };
        let statement = record.statement;
        let running = &mut record.running;
        running.program = None;
        let failed = running.error.is_some();
        let reply = ExecuteStatementReply {
            operation: running.operation,
            transaction,
            statement,
            matched: if failed { 0 } else { running.matched },
            changed: if failed { 0 } else { running.changed },
            diagnostics: running.diagnostics.take(),
            outputs: if failed { Vec::new() } else { std::mem::take(&mut running.outputs) },
            written: if stays_open && !failed { running.written.clone() } else { Vec::new() },
            error: running.error.take(),
        };
        outbox.send(running.reply_to, Signal::Sql(SqlSignal::ExecuteStatementReply(reply)));
    }
}

pub(super) fn refuse(
    request: ExecuteStatement,
    transaction: TransactionId,
    error: Box<Error>,
    context: &mut Context<'_>,
    outbox: &mut Outbox<Signal>,
) {
    let reply = ExecuteStatementReply {
        operation: request.operation,
        transaction,
        statement: StatementNumber(0),
        matched: 0,
        changed: 0,
        diagnostics: None,
        outputs: Vec::new(),
        written: Vec::new(),
        error: Some(error),
    };
    outbox.send(request.reply_to, Signal::Sql(SqlSignal::ExecuteStatementReply(reply)));
    return_parts(request.parts, context);
}

fn return_parts(parts: Parts, context: &mut Context<'_>) {
    match parts {
        Parts::One(_, input) => context.buffers.give(input),
        Parts::Many(parts) => parts.into_iter().for_each(|(_, input)| context.buffers.give(input)),
    }
}

#[cold]
fn too_many_transactions() -> Box<Error> {
    Error::new(ErrorCode::TemporaryOverload, "Got temporary error: too many transactions at once")
}

#[cold]
fn too_many_statements() -> Box<Error> {
    let message = format!("Out of resources; a transaction has more than {STATEMENTS_MAX} statements");
    Error::new(ErrorCode::OutOfResources, message)
}

#[cold]
fn has_ended() -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, "The transaction has ended")
}

#[cold]
fn is_busy() -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, "A statement of the transaction is still under way")
}
