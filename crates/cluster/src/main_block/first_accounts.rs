//! Stores the password of root that the first start of a server was given.

use junctor_kernel::{Context, Outbox};
use junctor_model::access::AccessChange;
use junctor_signals::Signal;
use junctor_signals::change_schema::SchemaChange;

use super::block::MainBlock;
use super::state::{FIRST_ACCOUNTS, Requester};

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
        let requester = Requester { operation: FIRST_ACCOUNTS, ..Requester::main(self.own) };
        let request = requester.request(change);
        self.on_change_schema(request, context, outbox);
    }
}
