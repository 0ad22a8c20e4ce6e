//! SET GLOBAL: forwards new values to every sql block, in the same order for all. The main block stores none
//! of them.

use std::sync::Arc;

use junctor_kernel::Outbox;
use junctor_signals::Module;
use junctor_signals::set_globals::{ApplyGlobals, SetGlobals};
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;

impl MainBlock {
    pub(super) fn on_set_globals(&mut self, request: SetGlobals, outbox: &mut Outbox<Signal>) {
        let SetGlobals { operation, reply_to, values } = request;
        for to in self.subscribers.iter().filter(|to| to.module == Module::Sql) {
            let signal = ApplyGlobals { operation, reply_to, values: Arc::clone(&values) };
            outbox.send(*to, Signal::Sql(SqlSignal::ApplyGlobals(signal)));
        }
    }
}
