//! Stores the password of root that the first start of a server was given.

use junctor_kernel::{Context, Outbox};
use junctor_model::access::AccessChange;
use junctor_model::id::ConnectionId;
use junctor_signals::Signal;
use junctor_signals::change_schema::{ChangeSchema, SchemaChange};
use junctor_signals::read_rows::OperationId;

use super::block::MainBlock;

/// The operation of the request, whose answer no session awaits.
pub(super) const NO_OPERATION: OperationId = OperationId(u64::MAX);

impl MainBlock {
    /// Stores the accounts of a new server if they have a password. They are valid before, so nobody can log
    /// in without it.
    pub(super) fn store_first_accounts(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let access = &self.catalog.dictionary.access;
        if !self.configuration.stores_access || access.version != 0 || self.configuration.log.is_none() {
            return;
        }
        let all = access.to_change();
        let change = SchemaChange::ChangeAccess { change: AccessChange { version: 0, ..all } };
        let request = ChangeSchema {
            operation: NO_OPERATION,
            reply_to: self.own,
            connection: ConnectionId(0),
            wait_ms: u64::from(u32::MAX),
            lock_wait_ms: 0,
            foreign_key_checks: false,
            change: Box::new(change),
        };
        self.on_change_schema(request, context, outbox);
    }
}
