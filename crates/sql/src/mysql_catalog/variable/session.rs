//! The variables of one session: plain fields for what statements look at, deviations from the defaults for the rest.

use std::hash::{DefaultHasher, Hash, Hasher};

use junctor_gateway::transaction::Isolation;
use junctor_model::error::Result;
use junctor_model::value::Value;

use super::character_set::{ConnectionCharacterSet, NamedCollation, find_collation};
use super::check::{default_value, text_of, unsigned_of};
use super::declare::{Slot, VariableId};
use super::global::GlobalVariables;
use super::sql_mode::SqlMode;
use super::table::TABLE;
use super::user::UserVariables;

/// The last second of the year 3000, after which MySQL has no clock.
const TIMESTAMP_SECONDS_MAX: f64 = 32_536_771_199.0;

/// The isolation levels that a session may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsolationChoice {
    /// Served as READ COMMITTED.
    ReadUncommitted,
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

/// How one transaction behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCharacteristics {
    /// Which snapshots it reads.
    pub isolation: IsolationChoice,
    /// Whether writes are refused with error 1792.
    pub read_only: bool,
}

/// The settings that plans depend on. Whatever binding or planning reads of a session belongs here, or is read anew at
/// each execution.
#[derive(Hash)]
struct PlanSettings {
    sql_mode: u64,
    collation: u16,
    foreign_key_checks: bool,
    time_zone_seconds: i64,
    division_increment: u8,
}

/// The variables of one session.
#[derive(Clone, Debug)]
pub struct SessionVariables {
    /// Whether statements outside BEGIN commit by themselves.
    pub autocommit: bool,
    /// The SQL modes.
    pub sql_mode: SqlMode,
    /// Seconds that a lock is waited for.
    pub lock_wait_seconds: u32,
    /// Seconds without a command after which the connection ends.
    pub wait_timeout_s: u32,
    /// Seconds after which a transaction is ended; 0 is never.
    pub transaction_timeout_s: u32,
    /// Whether a row to be locked that has changed since the transaction's snapshot is an error (`innodb_snapshot_isolation`).
    pub keeps_to_snapshot: bool,
    /// Whether writes look after foreign keys.
    pub foreign_key_checks: bool,
    /// Most rows that a SELECT without LIMIT returns; `u64::MAX` is no limit.
    pub select_limit: u64,
    /// Warnings and errors of a statement that SHOW WARNINGS tells; further ones are counted only.
    pub warnings_max: u16,
    /// Whether notes are noted at all (`sql_notes`).
    pub takes_notes: bool,
    /// What the client's statements are written in.
    pub character_set_client: ConnectionCharacterSet,
    /// What results are to be sent in; `None` is "as they are".
    pub character_set_results: Option<ConnectionCharacterSet>,
    /// The collation of literals.
    pub collation_connection: &'static NamedCollation,
    /// What NOW() is taken from, in microseconds since 1970-01-01 UTC, if the session has set it.
    pub timestamp_us: Option<u64>,
    pub(super) characteristics: TransactionCharacteristics,
    pub(super) next_isolation: Option<IsolationChoice>,
    pub(super) next_read_only: Option<bool>,
    /// See [`Self::plan_key`]; kept up to date by whoever changes a variable.
    plan_key: u64,
    stored: Vec<(VariableId, Value)>,
    user: Option<Box<UserVariables>>,
}

impl IsolationChoice {
    /// MySQL's name of the value.
    pub fn name(self) -> &'static str {
        match self {
            IsolationChoice::ReadUncommitted => "READ-UNCOMMITTED",
            IsolationChoice::ReadCommitted => "READ-COMMITTED",
            IsolationChoice::RepeatableRead => "REPEATABLE-READ",
            IsolationChoice::Serializable => "SERIALIZABLE",
        }
    }

    /// Every level, by its number in MySQL.
    pub const ALL: [IsolationChoice; 4] = [
        IsolationChoice::ReadUncommitted,
        IsolationChoice::ReadCommitted,
        IsolationChoice::RepeatableRead,
        IsolationChoice::Serializable,
    ];

    /// The level of that name; `None` for unknown names.
    pub fn from_name(name: &str) -> Option<IsolationChoice> {
        IsolationChoice::ALL.into_iter().find(|choice| choice.name().eq_ignore_ascii_case(name))
    }

    /// How the data plane serves it.
    pub fn isolation(self) -> Isolation {
        match self {
            IsolationChoice::ReadUncommitted | IsolationChoice::ReadCommitted => Isolation::ReadCommitted,
            IsolationChoice::RepeatableRead => Isolation::RepeatableRead,
            IsolationChoice::Serializable => Isolation::Serializable,
        }
    }
}

impl SessionVariables {
    /// What a session begins with: the server's values; of an interactive one `wait_timeout` is `interactive_timeout`.
    pub fn new(globals: &GlobalVariables, is_interactive: bool) -> SessionVariables {
        let mut session = SessionVariables {
            autocommit: true,
            sql_mode: SqlMode::DEFAULT,
            lock_wait_seconds: 50,
            wait_timeout_s: 28_800,
            transaction_timeout_s: 0,
            keeps_to_snapshot: false,
            foreign_key_checks: true,
            select_limit: u64::MAX,
            warnings_max: 1024,
            takes_notes: true,
            character_set_client: ConnectionCharacterSet::Utf8mb4,
            character_set_results: Some(ConnectionCharacterSet::Utf8mb4),
            collation_connection: ConnectionCharacterSet::Utf8mb4.default_collation(),
            timestamp_us: None,
            characteristics: TransactionCharacteristics::default(),
            next_isolation: None,
            next_read_only: None,
            plan_key: 0,
            stored: Vec::new(),
            user: None,
        };
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

    /// The level and access of transactions to come, the very next one apart.
    pub fn characteristics(&self) -> TransactionCharacteristics {
        self.characteristics
    }

    /// How the next transaction is to behave.
    #[inline]
    pub fn next_transaction(&self) -> TransactionCharacteristics {
        TransactionCharacteristics {
            isolation: self.next_isolation.unwrap_or(self.characteristics.isolation),
            read_only: self.next_read_only.unwrap_or(self.characteristics.read_only),
        }
    }

    /// A transaction begins: how it behaves. What was said of the next transaction alone is used up.
    #[inline]
    pub fn begin_transaction(&mut self) -> TransactionCharacteristics {
        let next = self.next_transaction();
        self.forget_next_transaction();
        next
    }

    /// What was said of the next transaction alone is used up: by a transaction, or by a COMMIT or ROLLBACK of none.
    #[inline]
    pub fn forget_next_transaction(&mut self) {
        self.next_isolation = None;
        self.next_read_only = None;
    }

    /// The value of a user variable; NULL if it was never set.
    pub fn user_variable(&self, name: &str) -> Value {
        self.user.as_ref().map_or(Value::Null, |user| user.get(name))
    }

    /// Gives a user variable a value.
    ///
    /// # Errors
    /// 1059 for a long name, 1041 when the session has too many.
    pub fn put_user_variable(&mut self, name: &str, value: Value) -> Result<()> {
        self.user.get_or_insert_default().put(name, value)
    }

    /// The collation and character set that a login or COM_CHANGE_USER chose, by MySQL's number; an unknown one leaves
    /// the server's.
    pub fn choose_collation(&mut self, number: u16) {
        if let Some(found) = super::COLLATIONS.iter().find(|collation| collation.number == number) {
            self.collation_connection = found;
            self.character_set_client = found.character_set;
            self.character_set_results = Some(found.character_set);
        }
        self.update_plan_key();
    }

    /// What a plan depends on besides its text, tables and database: equal numbers allow the same plan.
    #[inline]
    pub fn plan_key(&self) -> u64 {
        self.plan_key
    }

    pub(super) fn update_plan_key(&mut self) {
        let settings = PlanSettings {
            sql_mode: self.sql_mode.0,
            collation: self.collation_connection.number,
            foreign_key_checks: self.foreign_key_checks,
            time_zone_seconds: self.time_zone_seconds(),
            division_increment: self.division_increment(),
        };
        let mut hasher = DefaultHasher::new();
        settings.hash(&mut hasher);
        self.plan_key = hasher.finish();
    }

    /// Digits that a division adds after the point: `div_precision_increment`.
    pub fn division_increment(&self) -> u8 {
        super::find("div_precision_increment").map_or(0, |id| unsigned_of(&self.value(id)).min(30) as u8)
    }

    /// Seconds that a table is waited for which others change or, for a change, use: `lock_wait_timeout`.
    pub fn table_wait_seconds(&self) -> u64 {
        super::find("lock_wait_timeout").map_or(u64::MAX, |id| unsigned_of(&self.value(id)))
    }

    /// A flag by its name in the table; false for what is no flag.
    pub fn flag(&self, name: &str) -> bool {
        super::find(name).is_some_and(|id| self.value(id) == Value::Int(1))
    }

    /// Seconds east of UTC of `time_zone`; SYSTEM is UTC.
    pub fn time_zone_seconds(&self) -> i64 {
        let text = super::find("time_zone").map_or(Value::Null, |id| self.value(id));
        super::clock::zone_seconds(&text_of(&text)).unwrap_or(0)
    }

    /// The session's value; of what is not a matter of its variables, the default.
    pub(super) fn value(&self, id: VariableId) -> Value {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        match id.variable().slot {
            Slot::Autocommit => Value::Int(i64::from(self.autocommit)),
            Slot::Isolation => text(self.characteristics.isolation.name()),
            Slot::ReadOnly => Value::Int(i64::from(self.characteristics.read_only)),
            Slot::KeepsToSnapshot => Value::Int(i64::from(self.keeps_to_snapshot)),
            Slot::SqlMode => text(&self.sql_mode.text()),
            Slot::ForeignKeyChecks => Value::Int(i64::from(self.foreign_key_checks)),
            Slot::LockWait => Value::UInt(u64::from(self.lock_wait_seconds)),
            Slot::WaitTimeout => Value::UInt(u64::from(self.wait_timeout_s)),
            Slot::TransactionTimeout => Value::UInt(u64::from(self.transaction_timeout_s)),
            Slot::SelectLimit => Value::UInt(self.select_limit),
            Slot::MaxErrorCount => Value::UInt(u64::from(self.warnings_max)),
            Slot::SqlNotes => Value::Int(i64::from(self.takes_notes)),
            Slot::CharacterSetClient => text(self.character_set_client.name()),
            Slot::CharacterSetResults => self.character_set_results.map_or(Value::Null, |set| text(set.name())),
            Slot::CharacterSetConnection => text(self.collation_connection.character_set.name()),
            Slot::CollationConnection => text(self.collation_connection.name),
            _ => match self.stored.binary_search_by_key(&id, |(id, _)| *id) {
                Ok(position) => self.stored[position].1.clone(),
                Err(_) => default_value(id.variable()),
            },
        }
    }

    /// Takes a value that [`super::check::check`] has passed.
    pub(super) fn put(&mut self, id: VariableId, value: Value) {
        match id.variable().slot {
            Slot::Autocommit => self.autocommit = value == Value::Int(1),
            Slot::Isolation => {
                self.characteristics.isolation = IsolationChoice::from_name(&text_of(&value)).unwrap_or_default();
            }
            Slot::ReadOnly => self.characteristics.read_only = value == Value::Int(1),
            Slot::KeepsToSnapshot => self.keeps_to_snapshot = value == Value::Int(1),
            Slot::SqlMode => self.sql_mode = SqlMode::parse(&text_of(&value)).unwrap_or_default(),
            Slot::ForeignKeyChecks => self.foreign_key_checks = value == Value::Int(1),
            Slot::LockWait => self.lock_wait_seconds = seconds_of(&value),
            Slot::WaitTimeout => self.wait_timeout_s = seconds_of(&value),
            Slot::TransactionTimeout => self.transaction_timeout_s = seconds_of(&value),
            Slot::SelectLimit => self.select_limit = unsigned_of(&value),
            Slot::MaxErrorCount => self.warnings_max = u16::try_from(unsigned_of(&value)).unwrap_or(u16::MAX),
            Slot::SqlNotes => self.takes_notes = value != Value::Int(0),
            Slot::CharacterSetClient => self.character_set_client = character_set_of(&value).unwrap_or_default(),
            Slot::CharacterSetResults => self.character_set_results = character_set_of(&value),
            Slot::CharacterSetConnection => {
                let set = character_set_of(&value).unwrap_or_default();
                if self.collation_connection.character_set != set {
                    self.collation_connection = set.default_collation();
                }
            }
            Slot::CollationConnection => {
                let default = ConnectionCharacterSet::Utf8mb4.default_collation();
                self.collation_connection = find_collation(&text_of(&value)).unwrap_or(default);
            }
            Slot::Timestamp => {
                let seconds = if let Value::Double(seconds) = value { seconds } else { 0.0 };
                let seconds = seconds.min(TIMESTAMP_SECONDS_MAX);
                self.timestamp_us = (seconds > 0.0).then_some((seconds * 1e6) as u64);
            }
            Slot::CharacterSetDatabase | Slot::CollationDatabase | Slot::LastInsertId => {}
            Slot::WarningCount | Slot::ErrorCount => {}
            Slot::Stored => put_deviation(&mut self.stored, id, value),
        }
        self.update_plan_key();
    }

    /// How many variables differ from the defaults among those that are no plain fields.
    pub fn deviation_count(&self) -> usize {
        self.stored.len()
    }
}

fn seconds_of(value: &Value) -> u32 {
    unsigned_of(value).min(u64::from(u32::MAX)) as u32
}

fn character_set_of(value: &Value) -> Option<ConnectionCharacterSet> {
    if value.is_null() { None } else { ConnectionCharacterSet::from_name(&text_of(value)).ok() }
}

/// Keeps a value if it is not the default; the list stays sorted.
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
