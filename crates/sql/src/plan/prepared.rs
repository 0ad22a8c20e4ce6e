//! Prepared statements: the immutable record that sessions share, and the list of one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_model::schema::Dictionary;

use super::{Plan, PreparedDigest};
use crate::bind::ParameterKind;
use crate::parse::session_value::SessionValue;
use crate::parse::{Deprecation, Statement};

/// A prepared statement, shared by any number of sessions. It never changes, except for `dictionary_version`.
/// A session that needs another plan for the same text gets another record.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    /// The syntax tree as it was parsed.
    pub source: Arc<Statement>,
    /// The syntax tree, with session values replaced by parameters, and completed for the tables as they are.
    pub statement: Arc<Statement>,
    /// The values that only the session knows. They are parameters, numbered after those of the client.
    pub session_values: Arc<[SessionValue]>,
    /// The text as written, for SHOW PROCESSLIST. A long text is truncated; the text of a shared statement is
    /// always complete.
    pub text: Box<[u8]>,
    /// Number of parameters that the client supplies.
    pub parameter_count: u16,
    /// Estimated bytes of its syntax tree and plan.
    pub bytes: usize,
    /// The plan; `None` if no plan is valid for more than one execution.
    pub plan: Option<Plan>,
    /// The kinds of parameters for which the plan was made, those of session values last.
    pub kinds: Vec<ParameterKind>,
    pub settings: u64,
    /// The settings with which the text was parsed. Only statements with these settings are shared.
    pub parsed_with: u64,
    pub digest: PreparedDigest,
    /// Version of the dictionary that the plan was last checked against.
    pub dictionary_version: AtomicU64,
    /// The session's database when the statement was prepared.
    pub database: Option<Box<str>>,
    /// The deprecated syntax in its text. As in MySQL, preparing warns of it, and executing does not.
    pub deprecations: Arc<[Deprecation]>,
}

impl PreparedStatement {
    /// The kinds for which the plan was made: of the client's parameters, and of the session's values.
    pub fn split_kinds(&self) -> (&[ParameterKind], &[ParameterKind]) {
        self.kinds.split_at(self.kinds.len() - self.session_values.len())
    }

    fn without_plan(&self) -> Arc<PreparedStatement> {
        Arc::new(PreparedStatement {
            source: Arc::clone(&self.source),
            statement: Arc::clone(&self.statement),
            session_values: Arc::clone(&self.session_values),
            text: self.text.clone(),
            plan: None,
            kinds: self.kinds.clone(),
            digest: self.digest.clone(),
            dictionary_version: AtomicU64::new(self.dictionary_version.load(Ordering::Relaxed)),
            database: self.database.clone(),
            deprecations: Arc::clone(&self.deprecations),
            ..*self
        })
    }

    /// Whether it has optimizer hints. A plan of another kind means that it has none.
    #[inline]
    pub fn has_hints(&self) -> bool {
        matches!(&self.plan, None | Some(Plan::Hinted(_))) && self.statement.has_hints()
    }

    /// Whether it has a plan and the table still has the schema for which the plan was made.
    #[inline]
    pub fn is_current(&self, dictionary: &Dictionary) -> bool {
        let Some(plan) = &self.plan else { return false };
        // Relaxed: an outdated version only repeats the comparison of the table.
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

/// The prepared statements of a session, in ascending order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements(Vec<(u32, Arc<PreparedStatement>)>);

impl PreparedStatements {
    #[inline]
    fn position(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// Estimated bytes of all statements. A statement that several sessions share counts in each.
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

    /// Removes a statement. Returns whether it existed.
    pub fn remove(&mut self, id: u32) -> bool {
        let found = self.position(id);
        if let Ok(position) = found {
            self.0.remove(position);
        }
        found.is_ok()
    }

    /// Takes the plans that were made for other numbers of rows away from their statements.
    pub fn forget_outdated(&mut self) {
        self.forget(|plan| matches!(plan.unhinted(), Plan::Tree(plan) if plan.is_outdated.load(Ordering::Relaxed)));
    }

    /// Takes the plans of one table that statistics have decided away from their statements.
    pub fn forget_by_statistics(&mut self) {
        self.forget(Plan::is_by_statistics);
    }

    /// Takes the plan of a statement away, so that its next execution looks for another one.
    pub fn forget_plan(&mut self, id: u32) {
        if let Ok(position) = self.position(id)
            && self.0[position].1.plan.is_some()
        {
            let statement = &mut self.0[position].1;
            *statement = statement.without_plan();
        }
    }

    fn forget(&mut self, is_old: impl Fn(&Plan) -> bool) {
        for (_, statement) in &mut self.0 {
            if statement.plan.as_ref().is_some_and(&is_old) {
                *statement = statement.without_plan();
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes all statements and releases the list's memory.
    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
