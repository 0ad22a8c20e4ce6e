//! Session tracking: the changes of a session's state that OK packets report to clients that want them
//! (CLIENT_SESSION_TRACK).

use junctor_model::value::Value;

use super::facts::StatementFacts;
use crate::execute::StatementContext;
use crate::mysql_catalog::variable::{find, shown_value};
use crate::parse::expression::VariableScope;
use crate::parse::statement::SetItem;
use crate::result::StateChange;

/// The variables that SET NAMES and SET CHARACTER SET change.
const NAMES: [&str; 3] = ["character_set_client", "character_set_connection", "character_set_results"];

/// The variable whose change begins and ends the tracking of transactions.
const TRANSACTION: &str = "session_track_transaction_info";

impl StatementContext<'_, '_> {
    /// Notes that the session has another database.
    pub(super) fn track_database(&mut self) {
        if !self.session.tracks_state {
            return;
        }
        if self.is_on("session_track_schema") {
            let name = self.session.database.clone().unwrap_or_default();
            self.session.state_changes.push(StateChange::Database(name));
        }
        self.track_change();
    }

    /// Notes the system variables that a successful SET has assigned, also those that keep their value.
    pub(super) fn track_set(&mut self, items: &[SetItem]) {
        if !self.session.tracks_state {
            return;
        }
        let wanted = self.text_of("session_track_system_variables");
        let is_wanted =
            |name: &str| wanted.split(',').map(str::trim).any(|known| known == "*" || known.eq_ignore_ascii_case(name));
        let mut names: Vec<&'static str> = Vec::new();
        for item in items {
            match item {
                SetItem::SystemVariable { scope: None | Some(VariableScope::Session), name, .. } => {
                    names.extend(find(name).map(|id| id.variable().name));
                }
                SetItem::Names { .. } | SetItem::CharacterSet(_) => names.extend(NAMES),
                _ => {}
            }
        }
        if items
            .iter()
            .any(|item| matches!(item, SetItem::SystemVariable { name, .. } if name.eq_ignore_ascii_case(TRANSACTION)))
        {
            self.session.track_transaction();
        }
        names.retain(|name| is_wanted(name));
        names.sort_unstable();
        names.dedup();
        for name in names {
            let value = self.text_of(name);
            self.session.state_changes.push(StateChange::Variable(name, value.into()));
        }
        self.track_change();
    }

    /// Notes that something of the session has changed.
    pub(super) fn track_change(&mut self) {
        if self.session.tracks_state && self.is_on("session_track_state_change") {
            self.session.state_changes.push(StateChange::Any);
        }
    }

    fn is_on(&self, name: &str) -> bool {
        self.value_of(name) == Value::Int(1)
    }

    fn value_of(&self, name: &str) -> Value {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        find(name).map_or(Value::Null, |id| shown_value(id, &facts.session_context()).0)
    }

    fn text_of(&self, name: &str) -> String {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        find(name).map_or_else(String::new, |id| shown_value(id, &facts.session_context()).1)
    }
}
