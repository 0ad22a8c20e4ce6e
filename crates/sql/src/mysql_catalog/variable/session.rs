//! The variables of one session: fields for those that statements read often, a sparse list for all others.

use std::hash::{DefaultHasher, Hash, Hasher};

use junctor_gateway::transaction::Isolation;
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::Result;
use junctor_model::locale::Locale;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::temporal::{ValueRules, Zone};
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;
use junctor_signals::end_transaction::CommitDurability;

use super::HighPriorityMode;

use super::check::{default_value, text_of, unsigned_of};
use super::declare::{Slot, VariableId};
use super::global::GlobalVariables;
use super::sql_mode::SqlMode;
use super::table::TABLE;
use super::user::UserVariables;
use crate::parse::Dialect;

/// An isolation level that a session may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsolationChoice {
    /// Executed as READ COMMITTED.
    ReadUncommitted,
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

/// Characteristics of a transaction, as SET TRANSACTION defines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCharacteristics {
    /// Isolation level.
    pub isolation: IsolationChoice,
    /// Whether writes fail with error 1792.
    pub read_only: bool,
}

/// The settings on which plans depend. Any setting that binding or planning reads must be here; otherwise a
/// session could reuse a plan that is wrong for it. Settings that each execution reads again need not be
/// here.
#[derive(Hash)]
struct PlanSettings {
    sql_mode: u64,
    collation: u16,
    client: CharacterSet,
    foreign_key_checks: bool,
    time_zone: Zone,
    locale: Locale,
    nulls_are_now: bool,
    division_increment: u8,
    concat_bytes_max: u64,
    numbers: (u16, u16),
    sorts_with_files: bool,
}

/// The variables of one session.
#[derive(Clone, Debug)]
pub struct SessionVariables {
    /// Whether a statement outside an explicit transaction commits by itself.
    pub autocommit: bool,
    /// Active SQL modes.
    pub sql_mode: SqlMode,
    /// Maximum wait for a row lock, in seconds (`innodb_lock_wait_timeout`).
    pub lock_wait_seconds: u32,
    /// Idle time after which the server closes the connection, in seconds.
    pub wait_timeout_s: u32,
    /// Maximum age of an open transaction, in seconds; 0 is unlimited.
    pub transaction_timeout_s: u32,
    /// Which statements have high priority in the thread pool (`thread_pool_high_prio_mode`).
    pub high_priority_mode: HighPriorityMode,
    /// How many statements of a transaction have high priority (`thread_pool_high_prio_tickets`).
    pub high_priority_tickets: u32,
    /// Whether locking a row that changed after the transaction's snapshot is error 1020
    /// (`innodb_snapshot_isolation`).
    pub keeps_to_snapshot: bool,
    /// When commits are acknowledged. The value at COMMIT, or at an autocommit statement, counts.
    pub commit_durability: CommitDurability,
    /// Whether writes check foreign keys and run their actions.
    pub foreign_key_checks: bool,
    /// Maximum rows of a SELECT without LIMIT; `u64::MAX` is unlimited (`sql_select_limit`).
    pub select_limit: u64,
    /// Maximum number of a statement's diagnostics that SHOW WARNINGS lists; further ones are only counted
    /// (`max_error_count`).
    pub warnings_max: u16,
    /// Whether diagnostics of level Note are recorded and counted (`sql_notes`).
    pub takes_notes: bool,
    /// Maximum duration of a query in milliseconds; 0 is unlimited (`max_execution_time`).
    pub execution_time_max_ms: u32,
    /// Character set of the client's statements.
    pub character_set_client: CharacterSet,
    /// Character set of results; `None` sends them without conversion.
    pub character_set_results: Option<CollationId>,
    /// Collation of literals.
    pub collation_connection: CollationId,
    /// Fixed time of NOW(), in microseconds since 1970-01-01 UTC; `None` uses the clock.
    pub timestamp_us: Option<u64>,
    pub(super) characteristics: TransactionCharacteristics,
    pub(super) next_isolation: Option<IsolationChoice>,
    pub(super) next_read_only: Option<bool>,
    /// See [`Self::plan_key`]. Each method that changes a variable of [`PlanSettings`] must update it.
    plan_key: u64,
    narrows_literals: bool,
    nulls_are_now: bool,
    sorts_with_files: bool,
    /// See [`Self::value_rules`]; updated with the plan key.
    rules: ValueRules,
    stored: Vec<(VariableId, Value)>,
    user: Option<Box<UserVariables>>,
}

impl IsolationChoice {
    /// The level as `transaction_isolation` prints it.
    pub fn name(self) -> &'static str {
        match self {
            IsolationChoice::ReadUncommitted => "READ-UNCOMMITTED",
            IsolationChoice::ReadCommitted => "READ-COMMITTED",
            IsolationChoice::RepeatableRead => "REPEATABLE-READ",
            IsolationChoice::Serializable => "SERIALIZABLE",
        }
    }

    /// All levels, at the position of MySQL's number for the level.
    pub const ALL: [IsolationChoice; 4] = [
        IsolationChoice::ReadUncommitted,
        IsolationChoice::ReadCommitted,
        IsolationChoice::RepeatableRead,
        IsolationChoice::Serializable,
    ];

    /// The level with this name, ignoring case; `None` if unknown.
    pub fn from_name(name: &str) -> Option<IsolationChoice> {
        IsolationChoice::ALL.into_iter().find(|choice| choice.name().eq_ignore_ascii_case(name))
    }

    /// The isolation level that the data plane executes.
    pub fn isolation(self) -> Isolation {
        match self {
            IsolationChoice::ReadUncommitted | IsolationChoice::ReadCommitted => Isolation::ReadCommitted,
            IsolationChoice::RepeatableRead => Isolation::RepeatableRead,
            IsolationChoice::Serializable => Isolation::Serializable,
        }
    }
}

impl SessionVariables {
    /// The variables of a new session: the server's values. An interactive session takes `wait_timeout` from
    /// the server's `interactive_timeout`.
    pub fn new(globals: &GlobalVariables, is_interactive: bool) -> SessionVariables {
        let mut session = SessionVariables {
            autocommit: true,
            sql_mode: SqlMode::DEFAULT,
            lock_wait_seconds: 50,
            wait_timeout_s: 28_800,
            transaction_timeout_s: 0,
            high_priority_mode: HighPriorityMode::Transactions,
            high_priority_tickets: u32::MAX,
            keeps_to_snapshot: false,
            commit_durability: CommitDurability::Disk,
            foreign_key_checks: true,
            select_limit: u64::MAX,
            warnings_max: 1024,
            takes_notes: true,
            execution_time_max_ms: 0,
            character_set_client: CharacterSet::Utf8mb4,
            character_set_results: Some(CollationId::DEFAULT),
            collation_connection: CollationId::DEFAULT,
            timestamp_us: None,
            characteristics: TransactionCharacteristics::default(),
            next_isolation: None,
            next_read_only: None,
            plan_key: 0,
            narrows_literals: false,
            nulls_are_now: false,
            sorts_with_files: false,
            rules: ValueRules::DEFAULT,
            stored: Vec::new(),
            user: None,
        };
        // The fields above have the defaults of `TABLE`, so only global values that differ from them must be
        // copied.
        for (id, value) in globals.deviations() {
            if id.variable().has_session_value() {
                session.put(id, value.clone());
            }
        }
        if is_interactive {
            session.wait_timeout_s = seconds_of(&globals.value_named("interactive_timeout"));
        }
        session.update_plan_key();
        session
    }

    /// The same variables with the isolation level READ COMMITTED.
    #[must_use]
    pub(crate) fn reading_committed(mut self) -> SessionVariables {
        self.characteristics.isolation = IsolationChoice::ReadCommitted;
        self
    }

    /// Characteristics of the session's transactions, not including a SET TRANSACTION for the next one alone.
    pub fn characteristics(&self) -> TransactionCharacteristics {
        self.characteristics
    }

    /// Characteristics of the next transaction, including a SET TRANSACTION for the next one alone.
    #[inline]
    pub fn next_transaction(&self) -> TransactionCharacteristics {
        TransactionCharacteristics {
            isolation: self.next_isolation.unwrap_or(self.characteristics.isolation),
            read_only: self.next_read_only.unwrap_or(self.characteristics.read_only),
        }
    }

    /// The characteristics that SET TRANSACTION has chosen for the next transaction alone.
    pub fn next_choices(&self) -> (Option<IsolationChoice>, Option<bool>) {
        (self.next_isolation, self.next_read_only)
    }

    /// Returns the characteristics for a transaction that begins now, and discards a SET TRANSACTION that
    /// applies to this transaction only.
    #[inline]
    pub fn begin_transaction(&mut self) -> TransactionCharacteristics {
        let next = self.next_transaction();
        self.forget_next_transaction();
        next
    }

    /// Removes a SET TRANSACTION for the next transaction alone. A COMMIT or ROLLBACK outside a transaction
    /// does this too.
    #[inline]
    pub fn forget_next_transaction(&mut self) {
        self.next_isolation = None;
        self.next_read_only = None;
    }

    /// Takes the values of another copy, except those that a query may change: user variables, the
    /// characteristics of the next transaction, and how the query sorts when it starts again.
    pub fn restore(&mut self, before: SessionVariables) {
        let (user, next, sorts_with_files) = (self.user.take(), self.next_choices(), self.sorts_with_files);
        *self = SessionVariables { user, next_isolation: next.0, next_read_only: next.1, ..before };
        self.sort_with_files(sorts_with_files);
    }

    /// The value of a user variable; NULL if it is not set.
    pub fn user_variable(&self, name: &str) -> Value {
        self.user_value(name).map_or(Value::Null, |found| found.value.clone())
    }

    /// A user variable with the collation of its text; `None` if it is not set.
    pub fn user_value(&self, name: &str) -> Option<&UserValue> {
        self.user.as_ref()?.get(name)
    }

    /// Sets a user variable.
    ///
    /// # Errors
    /// The errors of [`UserVariables::put`].
    pub fn put_user_variable(&mut self, name: &str, value: UserValue) -> Result<()> {
        self.user.get_or_insert_default().put(name, value)
    }

    /// Applies the collation that a login or COM_CHANGE_USER names by MySQL's number, and its character set.
    /// An unknown number changes nothing.
    pub fn choose_collation(&mut self, number: u16) {
        if let Ok(found) = CollationId::from_number(number) {
            self.collation_connection = found;
            self.character_set_client = found.character_set();
            self.character_set_results = Some(found);
        }
        self.update_plan_key();
    }

    /// Hash of the session settings that plans depend on. Sessions with equal keys may share the plan of a
    /// statement with the same text, tables and database.
    #[inline]
    pub fn plan_key(&self) -> u64 {
        self.plan_key
    }

    pub(super) fn update_plan_key(&mut self) {
        let settings = PlanSettings {
            sql_mode: self.sql_mode.0,
            collation: self.collation_connection.number(),
            client: self.character_set_client,
            foreign_key_checks: self.foreign_key_checks,
            time_zone: self.zone_of_variable(),
            locale: self.locale_of_variable(),
            nulls_are_now: !self.flag("explicit_defaults_for_timestamp"),
            division_increment: self.division_increment(),
            concat_bytes_max: self.concat_bytes_max(),
            numbers: self.auto_increment_step(),
            sorts_with_files: self.sorts_with_files,
        };
        self.nulls_are_now = settings.nulls_are_now;
        self.narrows_literals = !self.character_set_client.is_within(self.collation_connection.character_set());
        let mut hasher = DefaultHasher::new();
        settings.hash(&mut hasher);
        self.plan_key = hasher.finish();
        self.rules = ValueRules::new(self.sql_mode.date_rules(), settings.time_zone)
            .in_locale(settings.locale)
            .truncating(self.sql_mode.truncates_fractions());
    }

    /// Bytes of memory beyond which a query writes rows to a temporary file (`tmp_table_size`).
    pub(crate) fn temporary_table_bytes(&self) -> u64 {
        super::find("tmp_table_size").map_or(u64::MAX, |id| unsigned_of(&self.value(id)))
    }

    /// Whether queries of one table sort by operators, which can use temporary files.
    pub(crate) fn sorts_with_files(&self) -> bool {
        self.sorts_with_files
    }

    /// Decides how the query sorts that is planned next.
    pub(crate) fn sort_with_files(&mut self, sorts_with_files: bool) {
        if self.sorts_with_files != sorts_with_files {
            self.sorts_with_files = sorts_with_files;
            self.update_plan_key();
        }
    }

    /// The rules for days and times: those of `sql_mode`, and `time_zone`.
    #[inline]
    pub fn value_rules(&self) -> ValueRules {
        self.rules
    }

    /// How the session's texts are read.
    #[inline]
    pub fn dialect(&self) -> Dialect {
        let (narrows_literals, nulls_are_now) = (self.narrows_literals, self.nulls_are_now);
        Dialect { narrows_literals, nulls_are_now, ..self.sql_mode.dialect() }
    }

    /// Whether the shape scanner understands every text of the session. Otherwise
    /// [`Dialect::is_scannable`] decides.
    #[inline]
    pub fn may_scan_texts(&self) -> bool {
        self.sql_mode.has_usual_quotes() && !self.narrows_literals && !self.nulls_are_now
    }

    /// Whether NULL for a TIMESTAMP that is NOT NULL is the present time, because
    /// `explicit_defaults_for_timestamp` is off.
    pub(crate) fn nulls_are_now(&self) -> bool {
        self.nulls_are_now
    }

    /// Whether the client wants other bytes for one of the columns than those of UTF-8.
    #[inline]
    pub fn recodes(&self, columns: &[ResultColumn]) -> bool {
        let results = self.character_set_results;
        results.is_none_or(|results| results.character_set() != CharacterSet::Utf8mb4)
            && columns.iter().any(|column| column.recoded_for(results).is_some())
    }

    /// Decimal digits that a division adds to its result, at most 30 (`div_precision_increment`).
    pub fn division_increment(&self) -> u8 {
        super::find("div_precision_increment").map_or(0, |id| unsigned_of(&self.value(id)).min(30) as u8)
    }

    /// Maximum length of the text of GROUP_CONCAT, in bytes (`group_concat_max_len`).
    pub fn concat_bytes_max(&self) -> u64 {
        super::find("group_concat_max_len").map_or(0, |id| unsigned_of(&self.value(id)))
    }

    /// `auto_increment_increment` and `auto_increment_offset`.
    pub fn auto_increment_step(&self) -> (u16, u16) {
        let value = |name| super::find(name).map_or(1, |id| unsigned_of(&self.value(id)).clamp(1, 65_535) as u16);
        (value("auto_increment_increment"), value("auto_increment_offset"))
    }

    /// Maximum wait for a table's metadata lock, in seconds (`lock_wait_timeout`).
    pub fn table_wait_seconds(&self) -> u64 {
        super::find("lock_wait_timeout").map_or(u64::MAX, |id| unsigned_of(&self.value(id)))
    }

    /// A flag by name; false if no flag has this name.
    pub fn flag(&self, name: &str) -> bool {
        super::find(name).is_some_and(|id| self.value(id) == Value::Int(1))
    }

    /// The zone that `time_zone` names; SYSTEM is UTC.
    fn zone_of_variable(&self) -> Zone {
        let text = super::find("time_zone").map_or(Value::Null, |id| self.value(id));
        Zone::find(&text_of(&text)).unwrap_or(Zone::UTC)
    }

    /// The locale that `lc_time_names` names.
    fn locale_of_variable(&self) -> Locale {
        let text = super::find("lc_time_names").map_or(Value::Null, |id| self.value(id));
        Locale::find(&text_of(&text)).unwrap_or(Locale::ENGLISH)
    }

    /// `long_query_time` in microseconds.
    pub fn long_query_us(&self) -> u64 {
        match super::find("long_query_time").map(|id| self.value(id)) {
            Some(Value::Double(seconds)) => (seconds * 1e6) as u64,
            _ => u64::MAX,
        }
    }

    /// The session's value; the default for a variable whose value is not stored here.
    pub(crate) fn value(&self, id: VariableId) -> Value {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        match id.variable().slot {
            Slot::Autocommit => Value::Int(i64::from(self.autocommit)),
            Slot::Isolation => text(self.characteristics.isolation.name()),
            Slot::ReadOnly => Value::Int(i64::from(self.characteristics.read_only)),
            Slot::KeepsToSnapshot => Value::Int(i64::from(self.keeps_to_snapshot)),
            Slot::CommitDurability => text(self.commit_durability.name()),
            Slot::SqlMode => text(&self.sql_mode.text()),
            Slot::ForeignKeyChecks => Value::Int(i64::from(self.foreign_key_checks)),
            Slot::LockWait => Value::UInt(u64::from(self.lock_wait_seconds)),
            Slot::WaitTimeout => Value::UInt(u64::from(self.wait_timeout_s)),
            Slot::TransactionTimeout => Value::UInt(u64::from(self.transaction_timeout_s)),
            Slot::HighPriorityMode => text(self.high_priority_mode.name()),
            Slot::HighPriorityTickets => Value::UInt(u64::from(self.high_priority_tickets)),
            Slot::SelectLimit => Value::UInt(self.select_limit),
            Slot::MaxErrorCount => Value::UInt(u64::from(self.warnings_max)),
            Slot::SqlNotes => Value::Int(i64::from(self.takes_notes)),
            Slot::ExecutionTime => Value::UInt(u64::from(self.execution_time_max_ms)),
            Slot::CharacterSetClient => text(self.character_set_client.name()),
            Slot::CharacterSetResults => {
                self.character_set_results.map_or(Value::Null, |collation| text(collation.character_set().name()))
            }
            Slot::CharacterSetConnection => text(self.collation_connection.character_set().name()),
            Slot::CollationConnection => text(self.collation_connection.name()),
            _ => match self.stored.binary_search_by_key(&id, |(id, _)| *id) {
                Ok(position) => self.stored[position].1.clone(),
                Err(_) => default_value(id.variable()),
            },
        }
    }

    /// Stores a value that [`super::check::check`] returned.
    pub(super) fn put(&mut self, id: VariableId, value: Value) {
        match id.variable().slot {
            Slot::Autocommit => self.autocommit = value == Value::Int(1),
            Slot::Isolation => {
                self.characteristics.isolation = IsolationChoice::from_name(&text_of(&value)).unwrap_or_default();
            }
            Slot::ReadOnly => self.characteristics.read_only = value == Value::Int(1),
            Slot::KeepsToSnapshot => self.keeps_to_snapshot = value == Value::Int(1),
            Slot::CommitDurability => {
                self.commit_durability = CommitDurability::named(&text_of(&value)).unwrap_or_default();
            }
            Slot::SqlMode => self.sql_mode = SqlMode::parse(&text_of(&value)).unwrap_or_default(),
            Slot::ForeignKeyChecks => self.foreign_key_checks = value == Value::Int(1),
            Slot::LockWait => self.lock_wait_seconds = seconds_of(&value),
            Slot::WaitTimeout => self.wait_timeout_s = seconds_of(&value),
            Slot::TransactionTimeout => self.transaction_timeout_s = seconds_of(&value),
            Slot::HighPriorityMode => {
                self.high_priority_mode = HighPriorityMode::named(&text_of(&value)).unwrap_or_default();
            }
            Slot::HighPriorityTickets => {
                self.high_priority_tickets = u32::try_from(unsigned_of(&value)).unwrap_or(u32::MAX);
            }
            Slot::SelectLimit => self.select_limit = unsigned_of(&value),
            Slot::MaxErrorCount => self.warnings_max = u16::try_from(unsigned_of(&value)).unwrap_or(u16::MAX),
            Slot::SqlNotes => self.takes_notes = value != Value::Int(0),
            Slot::ExecutionTime => self.execution_time_max_ms = seconds_of(&value),
            Slot::CharacterSetClient => {
                self.character_set_client = character_set_of(&value).unwrap_or(CharacterSet::Utf8mb4)
            }
            Slot::CharacterSetResults => {
                self.character_set_results = character_set_of(&value).map(CharacterSet::default_collation);
            }
            Slot::CharacterSetConnection => {
                let set = character_set_of(&value).unwrap_or(CharacterSet::Utf8mb4);
                if self.collation_connection.character_set() != set {
                    self.collation_connection = set.default_collation();
                }
            }
            Slot::CollationConnection => {
                let default = CollationId::DEFAULT;
                self.collation_connection = CollationId::named(&text_of(&value)).unwrap_or(default);
            }
            Slot::Timestamp => {
                let seconds = if let Value::Double(seconds) = value { seconds } else { 0.0 };
                self.timestamp_us = (seconds > 0.0).then_some((seconds * 1e6) as u64);
            }
            // Computed when they are read. `SetEffects` reports an assignment of LAST_INSERT_ID.
            Slot::CharacterSetDatabase | Slot::CollationDatabase | Slot::LastInsertId | Slot::InsertId => {}
            Slot::WarningCount | Slot::ErrorCount => {}
            Slot::Stored => put_deviation(&mut self.stored, id, value),
        }
        self.update_plan_key();
    }

    /// Number of values in the sparse list: those that differ from the default and have no field.
    pub fn deviation_count(&self) -> usize {
        self.stored.len()
    }
}

/// Seconds, or another number of 32 bits.
fn seconds_of(value: &Value) -> u32 {
    unsigned_of(value).min(u64::from(u32::MAX)) as u32
}

fn character_set_of(value: &Value) -> Option<CharacterSet> {
    if value.is_null() { None } else { CharacterSet::named(&text_of(value)).ok() }
}

/// Stores a value in the list, which is sorted by id, or removes the entry if the value is the default.
/// Removal keeps the memory of an idle session small.
pub(super) fn put_deviation(stored: &mut Vec<(VariableId, Value)>, id: VariableId, value: Value) {
    let is_default = value == default_value(id.variable());
    match stored.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(position) if is_default => {
            stored.remove(position);
        }
        Ok(position) => stored[position].1 = value,
        Err(_) if is_default => {}
        Err(position) => stored.insert(position, (id, value)),
    }
    debug_assert!(stored.len() <= TABLE.len());
}
