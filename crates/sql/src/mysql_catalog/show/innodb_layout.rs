//! The columns of the `INNODB_*` tables of `information_schema`, with the names and the order of MySQL 8.0.
//! They have no rows, because no table is of InnoDB; monitors read them without looking at the list of
//! engines.

use super::layout::{Field, double, int, long, number, text, unsigned};
use super::virtual_schema::{SchemaTable, nothing};

const BUFFER_POOL_STATS: &[Field] = &[
    unsigned("POOL_ID"),
    unsigned("POOL_SIZE"),
    unsigned("FREE_BUFFERS"),
    unsigned("DATABASE_PAGES"),
    unsigned("OLD_DATABASE_PAGES"),
    unsigned("MODIFIED_DATABASE_PAGES"),
    unsigned("PENDING_DECOMPRESS"),
    unsigned("PENDING_READS"),
    unsigned("PENDING_FLUSH_LRU"),
    unsigned("PENDING_FLUSH_LIST"),
    unsigned("PAGES_MADE_YOUNG"),
    unsigned("PAGES_NOT_MADE_YOUNG"),
    double("PAGES_MADE_YOUNG_RATE"),
    double("PAGES_MADE_NOT_YOUNG_RATE"),
    unsigned("NUMBER_PAGES_READ"),
    unsigned("NUMBER_PAGES_CREATED"),
    unsigned("NUMBER_PAGES_WRITTEN"),
    double("PAGES_READ_RATE"),
    double("PAGES_CREATE_RATE"),
    double("PAGES_WRITTEN_RATE"),
    unsigned("NUMBER_PAGES_GET"),
    unsigned("HIT_RATE"),
    unsigned("YOUNG_MAKE_PER_THOUSAND_GETS"),
    unsigned("NOT_YOUNG_MAKE_PER_THOUSAND_GETS"),
    unsigned("NUMBER_PAGES_READ_AHEAD"),
    unsigned("NUMBER_READ_AHEAD_EVICTED"),
    double("READ_AHEAD_RATE"),
    double("READ_AHEAD_EVICTED_RATE"),
    unsigned("LRU_IO_TOTAL"),
    unsigned("LRU_IO_CURRENT"),
    unsigned("UNCOMPRESS_TOTAL"),
    unsigned("UNCOMPRESS_CURRENT"),
];

const CMP: &[Field] = &[
    int("page_size"),
    int("compress_ops"),
    int("compress_ops_ok"),
    int("compress_time"),
    int("uncompress_ops"),
    int("uncompress_time"),
];

const CMPMEM: &[Field] = &[
    int("page_size"),
    int("buffer_pool_instance"),
    int("pages_used"),
    int("pages_free"),
    number("relocation_ops"),
    int("relocation_time"),
];

const COLUMNS: &[Field] = &[
    unsigned("TABLE_ID"),
    text("NAME", 193),
    unsigned("POS"),
    int("MTYPE"),
    int("PRTYPE"),
    int("LEN"),
    int("HAS_DEFAULT"),
    long("DEFAULT_VALUE").or_null(),
];

const DATAFILES: &[Field] = &[text("SPACE", 256).or_null(), text("PATH", 512)];

const FIELDS: &[Field] = &[text("INDEX_ID", 256).or_null(), text("NAME", 64), unsigned("POS")];

const FOREIGN: &[Field] = &[
    text("ID", 129).or_null(),
    text("FOR_NAME", 129).or_null(),
    text("REF_NAME", 129).or_null(),
    number("N_COLS"),
    unsigned("TYPE"),
];

const FOREIGN_COLS: &[Field] =
    &[text("ID", 129).or_null(), text("FOR_COL_NAME", 64), text("REF_COL_NAME", 64), unsigned("POS")];

const INDEXES: &[Field] = &[
    unsigned("INDEX_ID"),
    text("NAME", 193),
    unsigned("TABLE_ID"),
    int("TYPE"),
    int("N_FIELDS"),
    int("PAGE_NO"),
    int("SPACE"),
    int("MERGE_THRESHOLD"),
];

const METRICS: &[Field] = &[
    text("NAME", 193),
    text("SUBSYSTEM", 193),
    number("COUNT"),
    number("MAX_COUNT").or_null(),
    number("MIN_COUNT").or_null(),
    double("AVG_COUNT").or_null(),
    number("COUNT_RESET"),
    number("MAX_COUNT_RESET").or_null(),
    number("MIN_COUNT_RESET").or_null(),
    double("AVG_COUNT_RESET").or_null(),
    text("TIME_ENABLED", 19).or_null(),
    text("TIME_DISABLED", 19).or_null(),
    number("TIME_ELAPSED").or_null(),
    text("TIME_RESET", 19).or_null(),
    text("STATUS", 193),
    text("TYPE", 193),
    text("COMMENT", 193),
];

const TABLES_OF_ENGINE: &[Field] = &[
    unsigned("TABLE_ID"),
    text("NAME", 655),
    int("FLAG"),
    int("N_COLS"),
    number("SPACE"),
    text("ROW_FORMAT", 12).or_null(),
    int("ZIP_PAGE_SIZE"),
    text("SPACE_TYPE", 10).or_null(),
    int("INSTANT_COLS"),
    int("TOTAL_ROW_VERSIONS"),
];

const TABLESPACES: &[Field] = &[
    unsigned("SPACE"),
    text("NAME", 655),
    unsigned("FLAG"),
    text("ROW_FORMAT", 22).or_null(),
    unsigned("PAGE_SIZE"),
    unsigned("ZIP_PAGE_SIZE"),
    text("SPACE_TYPE", 10).or_null(),
    unsigned("FS_BLOCK_SIZE"),
    unsigned("FILE_SIZE"),
    unsigned("ALLOCATED_SIZE"),
    unsigned("AUTOEXTEND_SIZE"),
    text("SERVER_VERSION", 10).or_null(),
    unsigned("SPACE_VERSION"),
    text("ENCRYPTION", 1).or_null(),
    text("STATE", 10).or_null(),
];

const TABLESPACES_BRIEF: &[Field] = &[
    text("SPACE", 256).or_null(),
    text("NAME", 268),
    text("PATH", 512),
    text("FLAG", 256).or_null(),
    text("SPACE_TYPE", 7),
];

const TABLESTATS: &[Field] = &[
    unsigned("TABLE_ID"),
    text("NAME", 193),
    text("STATS_INITIALIZED", 193),
    unsigned("NUM_ROWS"),
    unsigned("CLUST_INDEX_SIZE"),
    unsigned("OTHER_INDEX_SIZE"),
    unsigned("MODIFIED_COUNTER"),
    number("AUTOINC"),
    int("REF_COUNT"),
];

const TEMP_TABLE_INFO: &[Field] =
    &[unsigned("TABLE_ID"), text("NAME", 64).or_null(), unsigned("N_COLS"), unsigned("SPACE")];

const TRX: &[Field] = &[
    unsigned("trx_id"),
    text("trx_state", 13),
    text("trx_started", 19),
    text("trx_requested_lock_id", 126).or_null(),
    text("trx_wait_started", 19).or_null(),
    unsigned("trx_weight"),
    unsigned("trx_mysql_thread_id"),
    text("trx_query", 1024).or_null(),
    text("trx_operation_state", 64).or_null(),
    unsigned("trx_tables_in_use"),
    unsigned("trx_tables_locked"),
    unsigned("trx_lock_structs"),
    unsigned("trx_lock_memory_bytes"),
    unsigned("trx_rows_locked"),
    unsigned("trx_rows_modified"),
    unsigned("trx_concurrency_tickets"),
    text("trx_isolation_level", 16),
    int("trx_unique_checks"),
    int("trx_foreign_key_checks"),
    text("trx_last_foreign_key_error", 256).or_null(),
    int("trx_adaptive_hash_latched"),
    unsigned("trx_adaptive_hash_timeout"),
    int("trx_is_read_only"),
    int("trx_autocommit_non_locking"),
    unsigned("trx_schedule_weight").or_null(),
];

const VIRTUAL: &[Field] = &[unsigned("TABLE_ID"), unsigned("POS"), unsigned("BASE_POS")];

/// The tables, sorted by name.
pub(super) const TABLES: &[SchemaTable] = &[
    ("INNODB_BUFFER_POOL_STATS", BUFFER_POOL_STATS, nothing),
    ("INNODB_CMP", CMP, nothing),
    ("INNODB_CMPMEM", CMPMEM, nothing),
    ("INNODB_CMPMEM_RESET", CMPMEM, nothing),
    ("INNODB_CMP_RESET", CMP, nothing),
    ("INNODB_COLUMNS", COLUMNS, nothing),
    ("INNODB_DATAFILES", DATAFILES, nothing),
    ("INNODB_FIELDS", FIELDS, nothing),
    ("INNODB_FOREIGN", FOREIGN, nothing),
    ("INNODB_FOREIGN_COLS", FOREIGN_COLS, nothing),
    ("INNODB_INDEXES", INDEXES, nothing),
    ("INNODB_METRICS", METRICS, nothing),
    ("INNODB_TABLES", TABLES_OF_ENGINE, nothing),
    ("INNODB_TABLESPACES", TABLESPACES, nothing),
    ("INNODB_TABLESPACES_BRIEF", TABLESPACES_BRIEF, nothing),
    ("INNODB_TABLESTATS", TABLESTATS, nothing),
    ("INNODB_TEMP_TABLE_INFO", TEMP_TABLE_INFO, nothing),
    ("INNODB_TRX", TRX, nothing),
    ("INNODB_VIRTUAL", VIRTUAL, nothing),
];
