//! The columns of `INNODB_*` tables of `information_schema`, with the names and the order of MySQL 8.0. They
//! have no rows, because no file, buffer or counter is of InnoDB; monitors read them without looking at the
//! list of engines. Tables about transactions, tables, columns and keys are absent: these exist.

use super::layout::{Field, double, int, number, text, unsigned};
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

const DATAFILES: &[Field] = &[text("SPACE", 256).or_null(), text("PATH", 512)];

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

/// The tables, sorted by name.
pub(super) const TABLES: &[SchemaTable] = &[
    ("INNODB_BUFFER_POOL_STATS", BUFFER_POOL_STATS, nothing),
    ("INNODB_CMP", CMP, nothing),
    ("INNODB_CMPMEM", CMPMEM, nothing),
    ("INNODB_CMPMEM_RESET", CMPMEM, nothing),
    ("INNODB_CMP_RESET", CMP, nothing),
    ("INNODB_DATAFILES", DATAFILES, nothing),
    ("INNODB_METRICS", METRICS, nothing),
    ("INNODB_TABLESPACES", TABLESPACES, nothing),
    ("INNODB_TABLESPACES_BRIEF", TABLESPACES_BRIEF, nothing),
];
