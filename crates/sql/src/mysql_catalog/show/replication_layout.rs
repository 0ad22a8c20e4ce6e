//! The columns of the tables of `performance_schema` about replication, with the names and the order of MySQL
//! 8.0. They have no rows, because no node is the replica of a source or a member of a group.

use super::layout::{Field, FieldKind, double, field, int, long, text, unsigned};
use super::virtual_schema::{SchemaTable, nothing};

const CONNECTION_CONFIGURATION: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("HOST", 255),
    int("PORT"),
    text("USER", 32),
    text("NETWORK_INTERFACE", 60),
    text("AUTO_POSITION", 1),
    text("SSL_ALLOWED", 7),
    text("SSL_CA_FILE", 512),
    text("SSL_CA_PATH", 512),
    text("SSL_CERTIFICATE", 512),
    text("SSL_CIPHER", 512),
    text("SSL_KEY", 512),
    text("SSL_VERIFY_SERVER_CERTIFICATE", 3),
    text("SSL_CRL_FILE", 255),
    text("SSL_CRL_PATH", 255),
    int("CONNECTION_RETRY_INTERVAL"),
    unsigned("CONNECTION_RETRY_COUNT"),
    double("HEARTBEAT_INTERVAL"),
    text("TLS_VERSION", 255),
    text("PUBLIC_KEY_PATH", 512),
    text("GET_PUBLIC_KEY", 3),
    text("NETWORK_NAMESPACE", 64),
    text("COMPRESSION_ALGORITHM", 64),
    int("ZSTD_COMPRESSION_LEVEL"),
    long("TLS_CIPHERSUITES").or_null(),
    text("SOURCE_CONNECTION_AUTO_FAILOVER", 1),
    text("GTID_ONLY", 1),
];

const CONNECTION_STATUS: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("GROUP_NAME", 36),
    text("SOURCE_UUID", 36),
    unsigned("THREAD_ID").or_null(),
    text("SERVICE_STATE", 10),
    unsigned("COUNT_RECEIVED_HEARTBEATS"),
    field("LAST_HEARTBEAT_TIMESTAMP", FieldKind::Timestamp),
    long("RECEIVED_TRANSACTION_SET"),
    int("LAST_ERROR_NUMBER"),
    text("LAST_ERROR_MESSAGE", 1024),
    field("LAST_ERROR_TIMESTAMP", FieldKind::Timestamp),
    text("LAST_QUEUED_TRANSACTION", 57).or_null(),
    field("LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_QUEUED_TRANSACTION_START_QUEUE_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP", FieldKind::Timestamp),
    text("QUEUEING_TRANSACTION", 57).or_null(),
    field("QUEUEING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("QUEUEING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP", FieldKind::Timestamp),
];

const APPLIER_CONFIGURATION: &[Field] = &[
    text("CHANNEL_NAME", 64),
    int("DESIRED_DELAY"),
    long("PRIVILEGE_CHECKS_USER").or_null(),
    text("REQUIRE_ROW_FORMAT", 3),
    text("REQUIRE_TABLE_PRIMARY_KEY_CHECK", 8),
    text("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE", 5),
    long("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_VALUE").or_null(),
];

const APPLIER_STATUS: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("SERVICE_STATE", 3),
    field("REMAINING_DELAY", FieldKind::UnsignedInt).or_null(),
    unsigned("COUNT_TRANSACTIONS_RETRIES"),
];

const APPLIER_BY_COORDINATOR: &[Field] = &[
    text("CHANNEL_NAME", 64),
    unsigned("THREAD_ID").or_null(),
    text("SERVICE_STATE", 3),
    int("LAST_ERROR_NUMBER"),
    text("LAST_ERROR_MESSAGE", 1024),
    field("LAST_ERROR_TIMESTAMP", FieldKind::Timestamp),
    text("LAST_PROCESSED_TRANSACTION", 57).or_null(),
    field("LAST_PROCESSED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_PROCESSED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_PROCESSED_TRANSACTION_START_BUFFER_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_PROCESSED_TRANSACTION_END_BUFFER_TIMESTAMP", FieldKind::Timestamp),
    text("PROCESSING_TRANSACTION", 57).or_null(),
    field("PROCESSING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("PROCESSING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("PROCESSING_TRANSACTION_START_BUFFER_TIMESTAMP", FieldKind::Timestamp),
];

const APPLIER_BY_WORKER: &[Field] = &[
    text("CHANNEL_NAME", 64),
    unsigned("WORKER_ID"),
    unsigned("THREAD_ID").or_null(),
    text("SERVICE_STATE", 3),
    int("LAST_ERROR_NUMBER"),
    text("LAST_ERROR_MESSAGE", 1024),
    field("LAST_ERROR_TIMESTAMP", FieldKind::Timestamp),
    text("LAST_APPLIED_TRANSACTION", 57).or_null(),
    field("LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP", FieldKind::Timestamp),
    field("LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP", FieldKind::Timestamp),
    text("APPLYING_TRANSACTION", 57).or_null(),
    field("APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", FieldKind::Timestamp),
    field("APPLYING_TRANSACTION_START_APPLY_TIMESTAMP", FieldKind::Timestamp),
    unsigned("LAST_APPLIED_TRANSACTION_RETRIES_COUNT"),
    int("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER"),
    text("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", 1024).or_null(),
    field("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", FieldKind::Timestamp),
    unsigned("APPLYING_TRANSACTION_RETRIES_COUNT"),
    int("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER"),
    text("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", 1024).or_null(),
    field("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", FieldKind::Timestamp),
];

const APPLIER_FILTERS: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("FILTER_NAME", 64),
    long("FILTER_RULE"),
    text("CONFIGURED_BY", 45),
    field("ACTIVE_SINCE", FieldKind::Timestamp),
    unsigned("COUNTER"),
];

const APPLIER_GLOBAL_FILTERS: &[Field] = &[
    text("FILTER_NAME", 64),
    long("FILTER_RULE"),
    text("CONFIGURED_BY", 45),
    field("ACTIVE_SINCE", FieldKind::Timestamp),
];

const GROUP_MEMBERS: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("MEMBER_ID", 36),
    text("MEMBER_HOST", 255),
    int("MEMBER_PORT").or_null(),
    text("MEMBER_STATE", 64),
    text("MEMBER_ROLE", 64),
    text("MEMBER_VERSION", 64),
    text("MEMBER_COMMUNICATION_STACK", 64),
];

const GROUP_MEMBER_STATISTICS: &[Field] = &[
    text("CHANNEL_NAME", 64),
    text("VIEW_ID", 60),
    text("MEMBER_ID", 36),
    unsigned("COUNT_TRANSACTIONS_IN_QUEUE"),
    unsigned("COUNT_TRANSACTIONS_CHECKED"),
    unsigned("COUNT_CONFLICTS_DETECTED"),
    unsigned("COUNT_TRANSACTIONS_ROWS_VALIDATING"),
    long("TRANSACTIONS_COMMITTED_ALL_MEMBERS"),
    long("LAST_CONFLICT_FREE_TRANSACTION"),
    unsigned("COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"),
    unsigned("COUNT_TRANSACTIONS_REMOTE_APPLIED"),
    unsigned("COUNT_TRANSACTIONS_LOCAL_PROPOSED"),
    unsigned("COUNT_TRANSACTIONS_LOCAL_ROLLBACK"),
];

/// The tables, sorted by name.
pub(super) const TABLES: &[SchemaTable] = &[
    ("replication_applier_configuration", APPLIER_CONFIGURATION, nothing),
    ("replication_applier_filters", APPLIER_FILTERS, nothing),
    ("replication_applier_global_filters", APPLIER_GLOBAL_FILTERS, nothing),
    ("replication_applier_status", APPLIER_STATUS, nothing),
    ("replication_applier_status_by_coordinator", APPLIER_BY_COORDINATOR, nothing),
    ("replication_applier_status_by_worker", APPLIER_BY_WORKER, nothing),
    ("replication_connection_configuration", CONNECTION_CONFIGURATION, nothing),
    ("replication_connection_status", CONNECTION_STATUS, nothing),
    ("replication_group_member_stats", GROUP_MEMBER_STATISTICS, nothing),
    ("replication_group_members", GROUP_MEMBERS, nothing),
];
