//! The columns of the tables of `information_schema`, with the names and order of MySQL 8.0.

use super::layout::{Field, database_name, double, int, long, name, number, table_name, text, unsigned};

pub(super) const SCHEMATA: &[Field] = &[
    name("CATALOG_NAME"),
    database_name("SCHEMA_NAME"),
    text("DEFAULT_CHARACTER_SET_NAME", 64),
    text("DEFAULT_COLLATION_NAME", 64),
    text("SQL_PATH", 1).or_null(),
    text("DEFAULT_ENCRYPTION", 3),
];

pub(super) const TABLES: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("TABLE_TYPE", 11),
    text("ENGINE", 64).or_null(),
    int("VERSION").or_null(),
    text("ROW_FORMAT", 10).or_null(),
    unsigned("TABLE_ROWS").or_null(),
    unsigned("AVG_ROW_LENGTH").or_null(),
    unsigned("DATA_LENGTH").or_null(),
    unsigned("MAX_DATA_LENGTH").or_null(),
    unsigned("INDEX_LENGTH").or_null(),
    unsigned("DATA_FREE").or_null(),
    unsigned("AUTO_INCREMENT").or_null(),
    text("CREATE_TIME", 19).or_null(),
    text("UPDATE_TIME", 19).or_null(),
    text("CHECK_TIME", 19).or_null(),
    text("TABLE_COLLATION", 64).or_null(),
    number("CHECKSUM").or_null(),
    text("CREATE_OPTIONS", 256).or_null(),
    long("TABLE_COMMENT").or_null(),
];

pub(super) const COLUMN_STATISTICS: &[Field] =
    &[database_name("SCHEMA_NAME"), table_name("TABLE_NAME"), name("COLUMN_NAME"), long("HISTOGRAM")];

pub(super) const COLUMNS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("COLUMN_NAME", 64).or_null(),
    unsigned("ORDINAL_POSITION"),
    long("COLUMN_DEFAULT").or_null(),
    text("IS_NULLABLE", 3),
    long("DATA_TYPE").or_null(),
    number("CHARACTER_MAXIMUM_LENGTH").or_null(),
    number("CHARACTER_OCTET_LENGTH").or_null(),
    unsigned("NUMERIC_PRECISION").or_null(),
    unsigned("NUMERIC_SCALE").or_null(),
    unsigned("DATETIME_PRECISION").or_null(),
    text("CHARACTER_SET_NAME", 64).or_null(),
    text("COLLATION_NAME", 64).or_null(),
    long("COLUMN_TYPE"),
    text("COLUMN_KEY", 3),
    text("EXTRA", 256).or_null(),
    text("PRIVILEGES", 154).or_null(),
    long("COLUMN_COMMENT"),
    long("GENERATION_EXPRESSION"),
    unsigned("SRS_ID").or_null(),
];

pub(super) const STATISTICS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    int("NON_UNIQUE"),
    database_name("INDEX_SCHEMA"),
    text("INDEX_NAME", 64).or_null(),
    unsigned("SEQ_IN_INDEX"),
    text("COLUMN_NAME", 64).or_null(),
    text("COLLATION", 1).or_null(),
    number("CARDINALITY").or_null(),
    number("SUB_PART").or_null(),
    text("PACKED", 1).or_null(),
    text("NULLABLE", 3),
    text("INDEX_TYPE", 11),
    text("COMMENT", 8),
    text("INDEX_COMMENT", 2048),
    text("IS_VISIBLE", 3),
    long("EXPRESSION").or_null(),
];

pub(super) const KEYWORDS: &[Field] = &[text("WORD", 128).or_null(), int("RESERVED").or_null()];

pub(super) const KEY_COLUMN_USAGE: &[Field] = &[
    name("CONSTRAINT_CATALOG"),
    database_name("CONSTRAINT_SCHEMA"),
    text("CONSTRAINT_NAME", 64).or_null(),
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("COLUMN_NAME", 64).or_null(),
    unsigned("ORDINAL_POSITION"),
    unsigned("POSITION_IN_UNIQUE_CONSTRAINT").or_null(),
    name("REFERENCED_TABLE_SCHEMA").or_null(),
    name("REFERENCED_TABLE_NAME").or_null(),
    text("REFERENCED_COLUMN_NAME", 64).or_null(),
];

pub(super) const TABLE_CONSTRAINTS: &[Field] = &[
    name("CONSTRAINT_CATALOG"),
    database_name("CONSTRAINT_SCHEMA"),
    text("CONSTRAINT_NAME", 64).or_null(),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("CONSTRAINT_TYPE", 11),
    text("ENFORCED", 3),
];

pub(super) const REFERENTIAL_CONSTRAINTS: &[Field] = &[
    name("CONSTRAINT_CATALOG"),
    database_name("CONSTRAINT_SCHEMA"),
    text("CONSTRAINT_NAME", 64).or_null(),
    name("UNIQUE_CONSTRAINT_CATALOG"),
    name("UNIQUE_CONSTRAINT_SCHEMA"),
    text("UNIQUE_CONSTRAINT_NAME", 64).or_null(),
    text("MATCH_OPTION", 7),
    text("UPDATE_RULE", 11),
    text("DELETE_RULE", 11),
    table_name("TABLE_NAME"),
    name("REFERENCED_TABLE_NAME"),
];

pub(super) const CHECK_CONSTRAINTS: &[Field] = &[
    name("CONSTRAINT_CATALOG"),
    database_name("CONSTRAINT_SCHEMA"),
    text("CONSTRAINT_NAME", 64),
    long("CHECK_CLAUSE"),
];

pub(super) const PARTITIONS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("PARTITION_NAME", 64).or_null(),
    text("SUBPARTITION_NAME", 64).or_null(),
    unsigned("PARTITION_ORDINAL_POSITION").or_null(),
    unsigned("SUBPARTITION_ORDINAL_POSITION").or_null(),
    text("PARTITION_METHOD", 13).or_null(),
    text("SUBPARTITION_METHOD", 13).or_null(),
    text("PARTITION_EXPRESSION", 2048).or_null(),
    text("SUBPARTITION_EXPRESSION", 2048).or_null(),
    long("PARTITION_DESCRIPTION").or_null(),
    unsigned("TABLE_ROWS").or_null(),
    unsigned("AVG_ROW_LENGTH").or_null(),
    unsigned("DATA_LENGTH").or_null(),
    unsigned("MAX_DATA_LENGTH").or_null(),
    unsigned("INDEX_LENGTH").or_null(),
    unsigned("DATA_FREE").or_null(),
    text("CREATE_TIME", 19).or_null(),
    text("UPDATE_TIME", 19).or_null(),
    text("CHECK_TIME", 19).or_null(),
    number("CHECKSUM").or_null(),
    long("PARTITION_COMMENT"),
    text("NODEGROUP", 256).or_null(),
    text("TABLESPACE_NAME", 268).or_null(),
];

pub(super) const ENGINES: &[Field] = &[
    text("ENGINE", 64),
    text("SUPPORT", 8),
    text("COMMENT", 80),
    text("TRANSACTIONS", 3).or_null(),
    text("XA", 3).or_null(),
    text("SAVEPOINTS", 3).or_null(),
];

pub(super) const CHARACTER_SETS: &[Field] =
    &[text("CHARACTER_SET_NAME", 64), text("DEFAULT_COLLATE_NAME", 64), text("DESCRIPTION", 2048), unsigned("MAXLEN")];

pub(super) const COLLATIONS: &[Field] = &[
    text("COLLATION_NAME", 64),
    text("CHARACTER_SET_NAME", 64),
    unsigned("ID"),
    text("IS_DEFAULT", 3),
    text("IS_COMPILED", 3),
    unsigned("SORTLEN"),
    text("PAD_ATTRIBUTE", 9),
];

pub(super) const COLLATION_CHARACTER_SET_APPLICABILITY: &[Field] =
    &[text("COLLATION_NAME", 64), text("CHARACTER_SET_NAME", 64)];

pub(super) const PROCESSLIST: &[Field] = &[
    unsigned("ID"),
    text("USER", 32),
    text("HOST", 261),
    name("DB").or_null(),
    text("COMMAND", 16),
    int("TIME"),
    text("STATE", 64).or_null(),
    long("INFO").or_null(),
];

pub(super) const PLUGINS: &[Field] = &[
    text("PLUGIN_NAME", 64),
    text("PLUGIN_VERSION", 20),
    text("PLUGIN_STATUS", 10),
    text("PLUGIN_TYPE", 80),
    text("PLUGIN_TYPE_VERSION", 20),
    text("PLUGIN_LIBRARY", 64).or_null(),
    text("PLUGIN_LIBRARY_VERSION", 20).or_null(),
    text("PLUGIN_AUTHOR", 64).or_null(),
    long("PLUGIN_DESCRIPTION").or_null(),
    text("PLUGIN_LICENSE", 80).or_null(),
    text("LOAD_OPTION", 64),
];

pub(super) const NAME_AND_VALUE: &[Field] = &[text("VARIABLE_NAME", 64), text("VARIABLE_VALUE", 1024).or_null()];

pub(super) const APPLICABLE_ROLES: &[Field] = &[
    text("USER", 97),
    text("HOST", 256),
    text("GRANTEE", 97),
    text("GRANTEE_HOST", 256),
    text("ROLE_NAME", 255),
    text("ROLE_HOST", 256),
    text("IS_GRANTABLE", 3),
    text("IS_DEFAULT", 3),
    text("IS_MANDATORY", 3),
];

pub(super) const ENABLED_ROLES: &[Field] =
    &[text("ROLE_NAME", 255), text("ROLE_HOST", 255), text("IS_DEFAULT", 3), text("IS_MANDATORY", 3)];

pub(super) const FAILED_LOGIN_ATTEMPTS: &[Field] = &[text("USERHOST", 292), unsigned("FAILED_ATTEMPTS")];

pub(super) const USER_ATTRIBUTES: &[Field] = &[text("USER", 32), text("HOST", 255), long("ATTRIBUTE").or_null()];

pub(super) const USER_PRIVILEGES: &[Field] =
    &[text("GRANTEE", 292), name("TABLE_CATALOG"), text("PRIVILEGE_TYPE", 64), text("IS_GRANTABLE", 3)];

pub(super) const SCHEMA_PRIVILEGES: &[Field] = &[
    text("GRANTEE", 292),
    name("TABLE_CATALOG"),
    name("TABLE_SCHEMA"),
    text("PRIVILEGE_TYPE", 64),
    text("IS_GRANTABLE", 3),
];

pub(super) const TABLE_PRIVILEGES: &[Field] = &[
    text("GRANTEE", 292),
    name("TABLE_CATALOG"),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
    text("PRIVILEGE_TYPE", 64),
    text("IS_GRANTABLE", 3),
];

pub(super) const COLUMN_PRIVILEGES: &[Field] = &[
    text("GRANTEE", 292),
    name("TABLE_CATALOG"),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
    text("COLUMN_NAME", 64),
    text("PRIVILEGE_TYPE", 64),
    text("IS_GRANTABLE", 3),
];

pub(super) const ROLE_TABLE_GRANTS: &[Field] = &[
    text("GRANTOR", 97).or_null(),
    text("GRANTOR_HOST", 256).or_null(),
    text("GRANTEE", 32),
    text("GRANTEE_HOST", 255),
    text("TABLE_CATALOG", 3),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
    text("PRIVILEGE_TYPE", 98),
    text("IS_GRANTABLE", 3),
];

pub(super) const ROLE_COLUMN_GRANTS: &[Field] = &[
    text("GRANTOR", 97).or_null(),
    text("GRANTOR_HOST", 256).or_null(),
    text("GRANTEE", 32),
    text("GRANTEE_HOST", 255),
    text("TABLE_CATALOG", 3),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
    text("COLUMN_NAME", 64),
    text("PRIVILEGE_TYPE", 31),
    text("IS_GRANTABLE", 3),
];

/// There are no stored routines.
pub(super) const ROLE_ROUTINE_GRANTS: &[Field] = &[
    text("GRANTOR", 97).or_null(),
    text("GRANTOR_HOST", 256).or_null(),
    text("GRANTEE", 32),
    text("GRANTEE_HOST", 255),
    text("SPECIFIC_CATALOG", 3),
    name("SPECIFIC_SCHEMA"),
    name("SPECIFIC_NAME"),
    text("ROUTINE_CATALOG", 3),
    name("ROUTINE_SCHEMA"),
    name("ROUTINE_NAME"),
    text("PRIVILEGE_TYPE", 27),
    text("IS_GRANTABLE", 3),
];

pub(super) const VIEWS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    long("VIEW_DEFINITION").or_null(),
    text("CHECK_OPTION", 8).or_null(),
    text("IS_UPDATABLE", 3).or_null(),
    text("DEFINER", 288).or_null(),
    text("SECURITY_TYPE", 7).or_null(),
    text("CHARACTER_SET_CLIENT", 64),
    text("COLLATION_CONNECTION", 64),
];

pub(super) const TRIGGERS: &[Field] = &[
    name("TRIGGER_CATALOG"),
    name("TRIGGER_SCHEMA"),
    text("TRIGGER_NAME", 64),
    text("EVENT_MANIPULATION", 6),
    name("EVENT_OBJECT_CATALOG"),
    name("EVENT_OBJECT_SCHEMA"),
    name("EVENT_OBJECT_TABLE"),
    unsigned("ACTION_ORDER"),
    long("ACTION_CONDITION").or_null(),
    long("ACTION_STATEMENT"),
    text("ACTION_ORIENTATION", 3),
    text("ACTION_TIMING", 6),
    text("ACTION_REFERENCE_OLD_TABLE", 64).or_null(),
    text("ACTION_REFERENCE_NEW_TABLE", 64).or_null(),
    text("ACTION_REFERENCE_OLD_ROW", 3),
    text("ACTION_REFERENCE_NEW_ROW", 3),
    text("CREATED", 22),
    text("SQL_MODE", 512),
    text("DEFINER", 288),
    text("CHARACTER_SET_CLIENT", 64),
    text("COLLATION_CONNECTION", 64),
    text("DATABASE_COLLATION", 64),
];

pub(super) const ROUTINES: &[Field] = &[
    text("SPECIFIC_NAME", 64),
    name("ROUTINE_CATALOG"),
    name("ROUTINE_SCHEMA"),
    text("ROUTINE_NAME", 64),
    text("ROUTINE_TYPE", 9),
    long("DATA_TYPE").or_null(),
    number("CHARACTER_MAXIMUM_LENGTH").or_null(),
    number("CHARACTER_OCTET_LENGTH").or_null(),
    unsigned("NUMERIC_PRECISION").or_null(),
    int("NUMERIC_SCALE").or_null(),
    unsigned("DATETIME_PRECISION").or_null(),
    text("CHARACTER_SET_NAME", 64).or_null(),
    text("COLLATION_NAME", 64).or_null(),
    long("DTD_IDENTIFIER").or_null(),
    text("ROUTINE_BODY", 3),
    long("ROUTINE_DEFINITION").or_null(),
    text("EXTERNAL_NAME", 64).or_null(),
    text("EXTERNAL_LANGUAGE", 64),
    text("PARAMETER_STYLE", 3),
    text("IS_DETERMINISTIC", 3),
    text("SQL_DATA_ACCESS", 17),
    text("SQL_PATH", 1).or_null(),
    text("SECURITY_TYPE", 7),
    text("CREATED", 19),
    text("LAST_ALTERED", 19),
    text("SQL_MODE", 512),
    long("ROUTINE_COMMENT"),
    text("DEFINER", 288),
    text("CHARACTER_SET_CLIENT", 64),
    text("COLLATION_CONNECTION", 64),
    text("DATABASE_COLLATION", 64),
];

pub(super) const PARAMETERS: &[Field] = &[
    name("SPECIFIC_CATALOG"),
    name("SPECIFIC_SCHEMA"),
    text("SPECIFIC_NAME", 64),
    unsigned("ORDINAL_POSITION"),
    text("PARAMETER_MODE", 5).or_null(),
    text("PARAMETER_NAME", 64).or_null(),
    long("DATA_TYPE").or_null(),
    number("CHARACTER_MAXIMUM_LENGTH").or_null(),
    number("CHARACTER_OCTET_LENGTH").or_null(),
    unsigned("NUMERIC_PRECISION").or_null(),
    number("NUMERIC_SCALE").or_null(),
    unsigned("DATETIME_PRECISION").or_null(),
    text("CHARACTER_SET_NAME", 64).or_null(),
    text("COLLATION_NAME", 64).or_null(),
    long("DTD_IDENTIFIER"),
    text("ROUTINE_TYPE", 9),
];

pub(super) const EVENTS: &[Field] = &[
    name("EVENT_CATALOG"),
    name("EVENT_SCHEMA"),
    text("EVENT_NAME", 64),
    text("DEFINER", 288),
    text("TIME_ZONE", 64),
    text("EVENT_BODY", 3),
    long("EVENT_DEFINITION"),
    text("EVENT_TYPE", 9),
    text("EXECUTE_AT", 19).or_null(),
    text("INTERVAL_VALUE", 256).or_null(),
    text("INTERVAL_FIELD", 18).or_null(),
    text("SQL_MODE", 512),
    text("STARTS", 19).or_null(),
    text("ENDS", 19).or_null(),
    text("STATUS", 21),
    text("ON_COMPLETION", 12),
    text("CREATED", 19),
    text("LAST_ALTERED", 19),
    text("LAST_EXECUTED", 19).or_null(),
    text("EVENT_COMMENT", 2048),
    unsigned("ORIGINATOR"),
    text("CHARACTER_SET_CLIENT", 64),
    text("COLLATION_CONNECTION", 64),
    text("DATABASE_COLLATION", 64),
];

pub(super) const FILES: &[Field] = &[
    number("FILE_ID").or_null(),
    long("FILE_NAME").or_null(),
    text("FILE_TYPE", 256).or_null(),
    text("TABLESPACE_NAME", 268),
    text("TABLE_CATALOG", 64),
    text("TABLE_SCHEMA", 64).or_null(),
    text("TABLE_NAME", 64).or_null(),
    text("LOGFILE_GROUP_NAME", 256).or_null(),
    number("LOGFILE_GROUP_NUMBER").or_null(),
    text("ENGINE", 64),
    text("FULLTEXT_KEYS", 64).or_null(),
    number("DELETED_ROWS").or_null(),
    number("UPDATE_COUNT").or_null(),
    number("FREE_EXTENTS").or_null(),
    number("TOTAL_EXTENTS").or_null(),
    number("EXTENT_SIZE").or_null(),
    number("INITIAL_SIZE").or_null(),
    number("MAXIMUM_SIZE").or_null(),
    number("AUTOEXTEND_SIZE").or_null(),
    text("CREATION_TIME", 19).or_null(),
    text("LAST_UPDATE_TIME", 19).or_null(),
    text("LAST_ACCESS_TIME", 19).or_null(),
    number("RECOVER_TIME").or_null(),
    number("TRANSACTION_COUNTER").or_null(),
    number("VERSION").or_null(),
    text("ROW_FORMAT", 256).or_null(),
    number("TABLE_ROWS").or_null(),
    number("AVG_ROW_LENGTH").or_null(),
    number("DATA_LENGTH").or_null(),
    number("MAX_DATA_LENGTH").or_null(),
    number("INDEX_LENGTH").or_null(),
    number("DATA_FREE").or_null(),
    text("CREATE_TIME", 19).or_null(),
    text("UPDATE_TIME", 19).or_null(),
    text("CHECK_TIME", 19).or_null(),
    number("CHECKSUM").or_null(),
    text("STATUS", 256).or_null(),
    text("EXTRA", 256).or_null(),
];

pub(super) const PROFILING: &[Field] = &[
    int("QUERY_ID"),
    int("SEQ"),
    text("STATE", 30),
    double("DURATION"),
    double("CPU_USER").or_null(),
    double("CPU_SYSTEM").or_null(),
];

pub(super) const ST_GEOMETRY_COLUMNS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("COLUMN_NAME", 64).or_null(),
    text("SRS_NAME", 80).or_null(),
    unsigned("SRS_ID").or_null(),
    long("GEOMETRY_TYPE_NAME").or_null(),
];

pub(super) const ST_SPATIAL_REFERENCE_SYSTEMS: &[Field] = &[
    text("SRS_NAME", 80),
    unsigned("SRS_ID"),
    text("ORGANIZATION", 256).or_null(),
    unsigned("ORGANIZATION_COORDSYS_ID").or_null(),
    text("DEFINITION", 4096),
    text("DESCRIPTION", 2048).or_null(),
];

pub(super) const COLUMNS_EXTENSIONS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    text("COLUMN_NAME", 64).or_null(),
    long("ENGINE_ATTRIBUTE").or_null(),
    long("SECONDARY_ENGINE_ATTRIBUTE").or_null(),
];

pub(super) const TABLES_EXTENSIONS: &[Field] = &[
    name("TABLE_CATALOG"),
    database_name("TABLE_SCHEMA"),
    table_name("TABLE_NAME"),
    long("ENGINE_ATTRIBUTE").or_null(),
    long("SECONDARY_ENGINE_ATTRIBUTE").or_null(),
];

pub(super) const TABLE_CONSTRAINTS_EXTENSIONS: &[Field] = &[
    name("CONSTRAINT_CATALOG"),
    database_name("CONSTRAINT_SCHEMA"),
    text("CONSTRAINT_NAME", 64).or_null(),
    table_name("TABLE_NAME"),
    long("ENGINE_ATTRIBUTE").or_null(),
    long("SECONDARY_ENGINE_ATTRIBUTE").or_null(),
];

pub(super) const SCHEMATA_EXTENSIONS: &[Field] =
    &[name("CATALOG_NAME"), database_name("SCHEMA_NAME"), text("OPTIONS", 256).or_null()];

pub(super) const TABLESPACES: &[Field] = &[
    text("TABLESPACE_NAME", 64),
    text("ENGINE", 64),
    text("TABLESPACE_TYPE", 64).or_null(),
    text("LOGFILE_GROUP_NAME", 64).or_null(),
    unsigned("EXTENT_SIZE").or_null(),
    unsigned("AUTOEXTEND_SIZE").or_null(),
    unsigned("MAXIMUM_SIZE").or_null(),
    unsigned("NODEGROUP_ID").or_null(),
    text("TABLESPACE_COMMENT", 2048).or_null(),
];

pub(super) const TABLESPACES_EXTENSIONS: &[Field] = &[text("TABLESPACE_NAME", 268), long("ENGINE_ATTRIBUTE").or_null()];

pub(super) const OPTIMIZER_TRACE: &[Field] =
    &[long("QUERY"), long("TRACE"), int("MISSING_BYTES_BEYOND_MAX_MEM_SIZE"), int("INSUFFICIENT_PRIVILEGES")];

/// A view cannot call stored routines.
pub(super) const VIEW_ROUTINE_USAGE: &[Field] = &[
    name("TABLE_CATALOG"),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
    name("SPECIFIC_CATALOG"),
    name("SPECIFIC_SCHEMA"),
    text("SPECIFIC_NAME", 64),
];

pub(super) const VIEW_TABLE_USAGE: &[Field] = &[
    name("VIEW_CATALOG"),
    database_name("VIEW_SCHEMA"),
    table_name("VIEW_NAME"),
    name("TABLE_CATALOG"),
    name("TABLE_SCHEMA"),
    name("TABLE_NAME"),
];
