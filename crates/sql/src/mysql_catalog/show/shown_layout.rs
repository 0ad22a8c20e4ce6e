//! The columns of the SHOW statements that are queries, and the columns of virtual tables that they show.

use super::layout::{Field, int, long, name, number, text, unsigned};

/// A SHOW statement as a query.
pub(super) struct ShownLayout {
    /// The virtual table.
    pub from: &'static str,
    /// The columns for clients, each with the expression that is its value.
    pub columns: &'static [(Field, &'static str)],
    /// The column that LIKE tests.
    pub like: &'static str,
    /// The column by which MySQL sorts the rows. Without one, they have the order of the virtual table.
    pub order_by: Option<&'static str>,
    /// Whether clients get the columns of the query, and only the names of these.
    pub has_columns_of_query: bool,
}

pub(super) const DATABASES: ShownLayout = ShownLayout {
    from: "information_schema.SCHEMATA",
    columns: &[(name("Database"), "SCHEMA_NAME")],
    like: "SCHEMA_NAME",
    order_by: Some("SCHEMA_NAME"),
    has_columns_of_query: false,
};

pub(super) const TABLES: ShownLayout = ShownLayout {
    from: "information_schema.TABLES",
    columns: &[(name("Tables"), "TABLE_NAME"), (text("Table_type", 11), "TABLE_TYPE")],
    like: "TABLE_NAME",
    order_by: Some("TABLE_NAME"),
    has_columns_of_query: false,
};

pub(super) const TABLE_STATUS: ShownLayout = ShownLayout {
    from: "information_schema.TABLES",
    columns: &[
        (name("Name"), "TABLE_NAME"),
        (text("Engine", 64).or_null(), "ENGINE"),
        (int("Version").or_null(), "VERSION"),
        (text("Row_format", 10).or_null(), "ROW_FORMAT"),
        (unsigned("Rows").or_null(), "TABLE_ROWS"),
        (unsigned("Avg_row_length").or_null(), "AVG_ROW_LENGTH"),
        (unsigned("Data_length").or_null(), "DATA_LENGTH"),
        (unsigned("Max_data_length").or_null(), "MAX_DATA_LENGTH"),
        (unsigned("Index_length").or_null(), "INDEX_LENGTH"),
        (unsigned("Data_free").or_null(), "DATA_FREE"),
        (unsigned("Auto_increment").or_null(), "AUTO_INCREMENT"),
        (text("Create_time", 19).or_null(), "CREATE_TIME"),
        (text("Update_time", 19).or_null(), "UPDATE_TIME"),
        (text("Check_time", 19).or_null(), "CHECK_TIME"),
        (text("Collation", 64).or_null(), "TABLE_COLLATION"),
        (unsigned("Checksum").or_null(), "CHECKSUM"),
        (text("Create_options", 256).or_null(), "CREATE_OPTIONS"),
        (long("Comment"), "TABLE_COMMENT"),
    ],
    like: "TABLE_NAME",
    order_by: Some("TABLE_NAME"),
    has_columns_of_query: false,
};

pub(super) const COLUMNS: ShownLayout = ShownLayout {
    from: "information_schema.COLUMNS",
    columns: &[
        (text("Field", 64), "COLUMN_NAME"),
        (long("Type"), "COLUMN_TYPE"),
        (text("Null", 3), "IS_NULLABLE"),
        (text("Key", 3), "COLUMN_KEY"),
        (long("Default").or_null(), "COLUMN_DEFAULT"),
        (text("Extra", 256), "EXTRA"),
    ],
    like: "COLUMN_NAME",
    order_by: Some("ORDINAL_POSITION"),
    has_columns_of_query: false,
};

pub(super) const FULL_COLUMNS: ShownLayout = ShownLayout {
    from: "information_schema.COLUMNS",
    columns: &[
        (text("Field", 64), "COLUMN_NAME"),
        (long("Type"), "COLUMN_TYPE"),
        (text("Collation", 64).or_null(), "COLLATION_NAME"),
        (text("Null", 3), "IS_NULLABLE"),
        (text("Key", 3), "COLUMN_KEY"),
        (long("Default").or_null(), "COLUMN_DEFAULT"),
        (text("Extra", 256), "EXTRA"),
        (text("Privileges", 154), "PRIVILEGES"),
        (text("Comment", 1024), "COLUMN_COMMENT"),
    ],
    like: "COLUMN_NAME",
    order_by: Some("ORDINAL_POSITION"),
    has_columns_of_query: false,
};

pub(super) const INDEX: ShownLayout = ShownLayout {
    from: "information_schema.STATISTICS",
    columns: &[
        (name("Table"), "TABLE_NAME"),
        (int("Non_unique"), "NON_UNIQUE"),
        (text("Key_name", 64).or_null(), "INDEX_NAME"),
        (unsigned("Seq_in_index"), "SEQ_IN_INDEX"),
        (text("Column_name", 64).or_null(), "COLUMN_NAME"),
        (text("Collation", 1).or_null(), "COLLATION"),
        (number("Cardinality").or_null(), "CARDINALITY"),
        (number("Sub_part").or_null(), "SUB_PART"),
        (text("Packed", 1).or_null(), "PACKED"),
        (text("Null", 3), "NULLABLE"),
        (text("Index_type", 11), "INDEX_TYPE"),
        (text("Comment", 8), "COMMENT"),
        (text("Index_comment", 2048), "INDEX_COMMENT"),
        (text("Visible", 3), "IS_VISIBLE"),
        (long("Expression").or_null(), "EXPRESSION"),
    ],
    like: "TABLE_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const VARIABLES: ShownLayout = ShownLayout {
    from: "performance_schema.session_variables",
    columns: &[(text("Variable_name", 64), "VARIABLE_NAME"), (text("Value", 1024).or_null(), "VARIABLE_VALUE")],
    like: "VARIABLE_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const GLOBAL_VARIABLES: ShownLayout = ShownLayout {
    from: "performance_schema.global_variables",
    columns: &[(text("Variable_name", 64), "VARIABLE_NAME"), (text("Value", 1024).or_null(), "VARIABLE_VALUE")],
    like: "VARIABLE_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const STATUS: ShownLayout = ShownLayout {
    from: "performance_schema.session_status",
    columns: &[(text("Variable_name", 64), "VARIABLE_NAME"), (text("Value", 1024).or_null(), "VARIABLE_VALUE")],
    like: "VARIABLE_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const GLOBAL_STATUS: ShownLayout = ShownLayout {
    from: "performance_schema.global_status",
    columns: &[(text("Variable_name", 64), "VARIABLE_NAME"), (text("Value", 1024).or_null(), "VARIABLE_VALUE")],
    like: "VARIABLE_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const CHARACTER_SET: ShownLayout = ShownLayout {
    from: "information_schema.CHARACTER_SETS",
    columns: &[
        (text("Charset", 64), "CHARACTER_SET_NAME"),
        (text("Description", 2048), "DESCRIPTION"),
        (text("Default collation", 64), "DEFAULT_COLLATE_NAME"),
        (int("Maxlen"), "MAXLEN"),
    ],
    like: "CHARACTER_SET_NAME",
    order_by: Some("CHARACTER_SET_NAME"),
    has_columns_of_query: false,
};

pub(super) const COLLATION: ShownLayout = ShownLayout {
    from: "information_schema.COLLATIONS",
    columns: &[
        (text("Collation", 64), "COLLATION_NAME"),
        (text("Charset", 64), "CHARACTER_SET_NAME"),
        (unsigned("Id"), "ID"),
        (text("Default", 3), "IS_DEFAULT"),
        (text("Compiled", 3), "IS_COMPILED"),
        (unsigned("Sortlen"), "SORTLEN"),
        (text("Pad_attribute", 9), "PAD_ATTRIBUTE"),
    ],
    like: "COLLATION_NAME",
    order_by: Some("COLLATION_NAME"),
    has_columns_of_query: false,
};

pub(super) const ENGINES: ShownLayout = ShownLayout {
    from: "information_schema.ENGINES",
    columns: &[
        (text("Engine", 64), "ENGINE"),
        (text("Support", 8), "SUPPORT"),
        (text("Comment", 80), "COMMENT"),
        (text("Transactions", 3).or_null(), "TRANSACTIONS"),
        (text("XA", 3).or_null(), "XA"),
        (text("Savepoints", 3).or_null(), "SAVEPOINTS"),
    ],
    like: "ENGINE",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const PLUGINS: ShownLayout = ShownLayout {
    from: "information_schema.PLUGINS",
    columns: &[
        (text("Name", 64), "PLUGIN_NAME"),
        (text("Status", 10), "PLUGIN_STATUS"),
        (text("Type", 80), "PLUGIN_TYPE"),
        (text("Library", 64).or_null(), "PLUGIN_LIBRARY"),
        (text("License", 80).or_null(), "PLUGIN_LICENSE"),
    ],
    like: "PLUGIN_NAME",
    order_by: None,
    has_columns_of_query: false,
};

pub(super) const FULL_PROCESS_LIST: ShownLayout = ShownLayout {
    from: "information_schema.PROCESSLIST",
    columns: &[
        (text("Id", 64), "ID"),
        (text("User", 64), "USER"),
        (text("Host", 64), "HOST"),
        (text("db", 64), "DB"),
        (text("Command", 64), "COMMAND"),
        (text("Time", 64), "TIME"),
        (text("State", 64), "STATE"),
        (text("Info", 64), "INFO"),
    ],
    like: "ID",
    order_by: Some("ID"),
    has_columns_of_query: true,
};

/// The first 100 characters of each statement.
pub(super) const PROCESS_LIST: ShownLayout = ShownLayout {
    from: "information_schema.PROCESSLIST",
    columns: &[
        (text("Id", 64), "ID"),
        (text("User", 64), "USER"),
        (text("Host", 64), "HOST"),
        (text("db", 64), "DB"),
        (text("Command", 64), "COMMAND"),
        (text("Time", 64), "TIME"),
        (text("State", 64), "STATE"),
        (text("Info", 64), "LEFT(INFO, 100)"),
    ],
    like: "ID",
    order_by: Some("ID"),
    has_columns_of_query: true,
};

pub(super) const TRIGGERS: ShownLayout = ShownLayout {
    from: "information_schema.TRIGGERS",
    columns: &[
        (text("Trigger", 64), "TRIGGER_NAME"),
        (text("Event", 6), "EVENT_MANIPULATION"),
        (text("Table", 64), "EVENT_OBJECT_TABLE"),
        (long("Statement"), "ACTION_STATEMENT"),
        (text("Timing", 6), "ACTION_TIMING"),
        (text("Created", 22), "CREATED"),
        (text("sql_mode", 512), "SQL_MODE"),
        (text("Definer", 288), "DEFINER"),
        (text("character_set_client", 64), "CHARACTER_SET_CLIENT"),
        (text("collation_connection", 64), "COLLATION_CONNECTION"),
        (text("Database Collation", 64), "DATABASE_COLLATION"),
    ],
    like: "EVENT_OBJECT_TABLE",
    order_by: Some("EVENT_OBJECT_TABLE"),
    has_columns_of_query: false,
};

pub(super) const EVENTS: ShownLayout = ShownLayout {
    from: "information_schema.EVENTS",
    columns: &[
        (text("Db", 64), "EVENT_SCHEMA"),
        (text("Name", 64), "EVENT_NAME"),
        (text("Definer", 288), "DEFINER"),
        (text("Time zone", 64), "TIME_ZONE"),
        (text("Type", 9), "EVENT_TYPE"),
        (text("Execute at", 19).or_null(), "EXECUTE_AT"),
        (text("Interval value", 256).or_null(), "INTERVAL_VALUE"),
        (text("Interval field", 18).or_null(), "INTERVAL_FIELD"),
        (text("Starts", 19).or_null(), "STARTS"),
        (text("Ends", 19).or_null(), "ENDS"),
        (text("Status", 21), "STATUS"),
        (unsigned("Originator"), "ORIGINATOR"),
        (text("character_set_client", 64), "CHARACTER_SET_CLIENT"),
        (text("collation_connection", 64), "COLLATION_CONNECTION"),
        (text("Database Collation", 64), "DATABASE_COLLATION"),
    ],
    like: "EVENT_NAME",
    order_by: Some("EVENT_NAME"),
    has_columns_of_query: false,
};

pub(super) const ROUTINES: ShownLayout = ShownLayout {
    from: "information_schema.ROUTINES",
    columns: &[
        (text("Db", 64), "ROUTINE_SCHEMA"),
        (text("Name", 64), "ROUTINE_NAME"),
        (text("Type", 9), "ROUTINE_TYPE"),
        (text("Definer", 288), "DEFINER"),
        (text("Modified", 19), "LAST_ALTERED"),
        (text("Created", 19), "CREATED"),
        (text("Security_type", 7), "SECURITY_TYPE"),
        (text("Comment", 1024), "ROUTINE_COMMENT"),
        (text("character_set_client", 64), "CHARACTER_SET_CLIENT"),
        (text("collation_connection", 64), "COLLATION_CONNECTION"),
        (text("Database Collation", 64), "DATABASE_COLLATION"),
    ],
    like: "ROUTINE_NAME",
    order_by: Some("ROUTINE_NAME"),
    has_columns_of_query: false,
};

/// MySQL lists the tables of its cache. There is none here.
pub(super) const OPEN_TABLES: ShownLayout = ShownLayout {
    from: "(SELECT 1 LIMIT 0) AS `none`",
    columns: &[
        (text("Database", 64), "_utf8mb4''"),
        (text("Table", 64), "_utf8mb4''"),
        (number("In_use"), "0"),
        (number("Name_locked"), "0"),
    ],
    like: "_utf8mb4''",
    order_by: None,
    has_columns_of_query: false,
};
