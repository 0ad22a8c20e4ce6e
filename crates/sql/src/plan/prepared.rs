//! Prepared statements: the record that sessions share, and the list of one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_model::schema::Dictionary;

use super::Plan;
use crate::bind::ParameterKind;
use crate::parse::Statement;

/// A statement that was prepared, by any number of sessions. It never changes; a session gets another for
/// the same text when it needs another plan.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    pub statement: Arc<Statement>,
    /// As written, the beginning of it.
    pub text: Box<[u8]>,
    pub parameter_count: u16,
    /// Estimated bytes of its tree and plan.
    pub bytes: usize,
    /// The plan, when it has one that is good for more than one execution.
    pub plan: Option<Plan>,
    /// What the plan was made for.
    pub kinds: Vec<ParameterKind>,
    pub settings: u64,
    /// The dictionary that the plan was last compared with.
    pub dictionary_version: AtomicU64,
    /// The database that names without one mean.
    pub database: Option<Box<str>>,
}

impl PreparedStatement {
    /// Whether it has a plan, and the schema is still what that was made for.
    #[inline]
    pub fn is_current(&self, dictionary: &Dictionary) -> bool {
        let Some(plan) = &self.plan else { return false };
        if self.dictionary_version.load(Ordering::Relaxed) == dictionary.version {
            return true;
        }
        let is_current = plan.is_current(dictionary);
        if is_current {
            self.dictionary_version.store(dictionary.version, Ordering::Relaxed);
        }
        is_current
    }
}

/// The prepared statements of a session by number, ascending.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements(Vec<(u32, Arc<PreparedStatement>)>);

impl PreparedStatements {
    #[inline]
    fn position(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// Estimated bytes of all statements.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, statement)| statement.bytes).sum()
    }

    #[inline]
    pub fn get(&self, id: u32) -> Option<&Arc<PreparedStatement>> {
        self.position(id).ok().map(|position| &self.0[position].1)
    }

    pub fn insert(&mut self, id: u32, statement: Arc<PreparedStatement>) {
        match self.position(id) {
            Ok(position) => self.0[position].1 = statement,
            Err(position) => self.0.insert(position, (id, statement)),
        }
    }

    /// Whether there was one.
    pub fn remove(&mut self, id: u32) -> bool {
        let found = self.position(id);
        if let Ok(position) = found {
            self.0.remove(position);
        }
        found.is_ok()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
