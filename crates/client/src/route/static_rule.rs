//! The rules that do not learn: they are the defaults, and the controls of experiments.

use junctor_kernel::{Address, Directory, Module};

/// A static rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadRule {
    /// The query block of the own thread where there is one, else by turns the owner and the query blocks.
    #[default]
    LocalFirst,
    /// Always the owner ldm.
    OwnerOnly,
}

/// The choice for one sql block.
#[derive(Debug)]
pub struct Route {
    rule: ReadRule,
    local: Option<Address>,
    queries: Vec<Address>,
    turn: usize,
}

/// How many reads in a row go to the same query block: so many share a wake-up and warm caches.
const READS_PER_TURN: usize = 4;

impl Route {
    /// The choice for the block `own`: `directory` tells the query blocks and which of them shares its thread.
    pub fn new(rule: ReadRule, own: Address, directory: &Directory) -> Route {
        let queries: Vec<Address> = (0..directory.instances(Module::Query))
            .map(|instance| directory.address(Module::Query, instance))
            .collect();
        let beside =
            |query: &Address| directory.share_thread((own.module, own.instance), (Module::Query, query.instance));
        let local = queries.iter().copied().find(beside);
        Route { rule, local, queries, turn: 0 }
    }

    /// Where to read a partition whose owner is `owner`.
    #[inline]
    pub fn choose(&mut self, owner: Address) -> Address {
        if self.rule == ReadRule::OwnerOnly {
            return owner;
        }
        if let Some(local) = self.local {
            return local;
        }
        let choices = self.queries.len() + 1;
        self.turn = (self.turn + 1) % (choices * READS_PER_TURN);
        self.queries.get(self.turn / READS_PER_TURN).copied().unwrap_or(owner)
    }
}
