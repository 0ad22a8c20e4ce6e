//! The keywords of MySQL 8.0 that this parser knows, and which of them are reserved.

/// Declares the enum and its table from one sorted list, so that their orders cannot differ.
macro_rules! keywords {
    (@reserved reserved) => { true };
    (@reserved plain) => { false };
    ($($variant:ident $class:ident $text:literal,)*) => {
        /// A keyword of MySQL's grammar, reserved or not.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Keyword {
            $($variant,)*
        }

        /// All keywords sorted by their text: (text, keyword, whether it is reserved).
        const TABLE: &[(&str, Keyword, bool)] = &[$(($text, Keyword::$variant, keywords!(@reserved $class)),)*];
    };
}

keywords! {
    Accessible reserved "ACCESSIBLE", Add reserved "ADD", Against plain "AGAINST", Algorithm plain "ALGORITHM",
    All reserved "ALL", Alter reserved "ALTER", Always plain "ALWAYS", Analyze reserved "ANALYZE", And reserved "AND",
    Any plain "ANY", Array plain "ARRAY", As reserved "AS", Asc reserved "ASC", Ascii plain "ASCII", Asensitive reserved "ASENSITIVE",
    AutoIncrement plain "AUTO_INCREMENT", Backup plain "BACKUP", Before reserved "BEFORE", Begin plain "BEGIN", Between reserved "BETWEEN",
    Bigint reserved "BIGINT", Binary reserved "BINARY", Binlog plain "BINLOG", Bit plain "BIT", Blob reserved "BLOB",
    Bool plain "BOOL", Boolean plain "BOOLEAN", Both reserved "BOTH", Btree plain "BTREE", By reserved "BY",
    Byte plain "BYTE", Call reserved "CALL", Cascade reserved "CASCADE", Case reserved "CASE", Cast plain "CAST",
    Chain plain "CHAIN", Change reserved "CHANGE", Char reserved "CHAR", Character reserved "CHARACTER",
    Charset plain "CHARSET", Check reserved "CHECK", Checksum plain "CHECKSUM", Collate reserved "COLLATE",
    Collation plain "COLLATION", Column reserved "COLUMN", Columns plain "COLUMNS",
    ColumnFormat plain "COLUMN_FORMAT", Comment plain "COMMENT", Commit plain "COMMIT", Committed plain "COMMITTED",
    Condition reserved "CONDITION", Connection plain "CONNECTION", Consistent plain "CONSISTENT",
    Constraint reserved "CONSTRAINT", Continue reserved "CONTINUE", Convert reserved "CONVERT",
    Create reserved "CREATE", Cross reserved "CROSS", Cube reserved "CUBE", CumeDist reserved "CUME_DIST",
    CurrentDate reserved "CURRENT_DATE", CurrentTime reserved "CURRENT_TIME",
    CurrentTimestamp reserved "CURRENT_TIMESTAMP", CurrentUser reserved "CURRENT_USER", Cursor reserved "CURSOR",
    Database reserved "DATABASE", Databases reserved "DATABASES", Date plain "DATE", Datetime plain "DATETIME",
    DayHour reserved "DAY_HOUR", DayMicrosecond reserved "DAY_MICROSECOND", DayMinute reserved "DAY_MINUTE",
    DaySecond reserved "DAY_SECOND", Deallocate plain "DEALLOCATE", Dec reserved "DEC", Decimal reserved "DECIMAL",
    Declare reserved "DECLARE", Default reserved "DEFAULT", Definer plain "DEFINER", Delayed reserved "DELAYED",
    Delete reserved "DELETE", DenseRank reserved "DENSE_RANK", Desc reserved "DESC", Describe reserved "DESCRIBE",
    Deterministic reserved "DETERMINISTIC", Distinct reserved "DISTINCT", Distinctrow reserved "DISTINCTROW",
    Div reserved "DIV", Do plain "DO", Double reserved "DOUBLE", Drop reserved "DROP", Dual reserved "DUAL",
    Duplicate plain "DUPLICATE", Each reserved "EACH", Else reserved "ELSE", Elseif reserved "ELSEIF",
    Empty reserved "EMPTY", Enclosed reserved "ENCLOSED", End plain "END", Enforced plain "ENFORCED",
    Engine plain "ENGINE", Engines plain "ENGINES", Enum plain "ENUM", Errors plain "ERRORS", Escape plain "ESCAPE",
    Escaped reserved "ESCAPED", Event plain "EVENT", Events plain "EVENTS", Except reserved "EXCEPT",
    Execute plain "EXECUTE", Exists reserved "EXISTS", Exit reserved "EXIT", Explain reserved "EXPLAIN",
    Extended plain "EXTENDED", Extract plain "EXTRACT", False reserved "FALSE", Fetch reserved "FETCH",
    Fields plain "FIELDS", FirstValue reserved "FIRST_VALUE", Fixed plain "FIXED",
    Float reserved "FLOAT", Float4 reserved "FLOAT4",
    Float8 reserved "FLOAT8", Flush plain "FLUSH", For reserved "FOR", Force reserved "FORCE",
    Foreign reserved "FOREIGN", Format plain "FORMAT", From reserved "FROM", Full plain "FULL",
    Fulltext reserved "FULLTEXT", Function reserved "FUNCTION", Generated reserved "GENERATED",
    Geomcollection plain "GEOMCOLLECTION", Geometry plain "GEOMETRY", Geometrycollection plain "GEOMETRYCOLLECTION", Get reserved "GET",
    Global plain "GLOBAL", Grant reserved "GRANT", Grants plain "GRANTS", Group reserved "GROUP",
    Grouping reserved "GROUPING", Groups reserved "GROUPS", GroupConcat plain "GROUP_CONCAT", Handler plain "HANDLER",
    Hash plain "HASH", Having reserved "HAVING", Help plain "HELP", HighPriority reserved "HIGH_PRIORITY",
    HourMicrosecond reserved "HOUR_MICROSECOND", HourMinute reserved "HOUR_MINUTE", HourSecond reserved "HOUR_SECOND",
    If reserved "IF", Ignore reserved "IGNORE", Import plain "IMPORT", In reserved "IN", Index reserved "INDEX",
    Indexes plain "INDEXES", Infile reserved "INFILE", Inner reserved "INNER", Inout reserved "INOUT",
    Insensitive reserved "INSENSITIVE", Insert reserved "INSERT", Install plain "INSTALL", Instance plain "INSTANCE",
    Int reserved "INT", Int1 reserved "INT1", Int2 reserved "INT2", Int3 reserved "INT3", Int4 reserved "INT4",
    Int8 reserved "INT8", Integer reserved "INTEGER", Intersect reserved "INTERSECT", Interval reserved "INTERVAL",
    Into reserved "INTO", Invisible plain "INVISIBLE", IoAfterGtids reserved "IO_AFTER_GTIDS",
    IoBeforeGtids reserved "IO_BEFORE_GTIDS", Is reserved "IS", Isolation plain "ISOLATION",
    Iterate reserved "ITERATE", Join reserved "JOIN", Json plain "JSON", JsonTable reserved "JSON_TABLE",
    Key reserved "KEY", Keys reserved "KEYS", KeyBlockSize plain "KEY_BLOCK_SIZE", Kill reserved "KILL",
    Lag reserved "LAG", LastValue reserved "LAST_VALUE", Lateral reserved "LATERAL", Lead reserved "LEAD",
    Leading reserved "LEADING", Leave reserved "LEAVE", Left reserved "LEFT", Less plain "LESS", Level plain "LEVEL",
    Like reserved "LIKE", Limit reserved "LIMIT", Linear reserved "LINEAR", Lines reserved "LINES",
    Linestring plain "LINESTRING", Load reserved "LOAD", Local plain "LOCAL", Localtime reserved "LOCALTIME",
    Localtimestamp reserved "LOCALTIMESTAMP", Lock reserved "LOCK", Locked plain "LOCKED", Logfile plain "LOGFILE",
    Logs plain "LOGS", Long reserved "LONG", Longblob reserved "LONGBLOB", Longtext reserved "LONGTEXT",
    Loop reserved "LOOP", LowPriority reserved "LOW_PRIORITY", Master plain "MASTER",
    MasterBind reserved "MASTER_BIND", MasterSslVerifyServerCert reserved "MASTER_SSL_VERIFY_SERVER_CERT",
    Match reserved "MATCH", Maxvalue reserved "MAXVALUE", Mediumblob reserved "MEDIUMBLOB",
    Mediumint reserved "MEDIUMINT", Mediumtext reserved "MEDIUMTEXT", Member plain "MEMBER",
    Middleint reserved "MIDDLEINT", MinuteMicrosecond reserved "MINUTE_MICROSECOND",
    MinuteSecond reserved "MINUTE_SECOND", Mod reserved "MOD", Mode plain "MODE", Modifies reserved "MODIFIES",
    Multilinestring plain "MULTILINESTRING", Multipoint plain "MULTIPOINT", Multipolygon plain "MULTIPOLYGON",
    Names plain "NAMES", National plain "NATIONAL", Natural reserved "NATURAL", Nchar plain "NCHAR",
    Next plain "NEXT", No plain "NO", Not reserved "NOT", Nowait plain "NOWAIT",
    NoWriteToBinlog reserved "NO_WRITE_TO_BINLOG", NthValue reserved "NTH_VALUE", Ntile reserved "NTILE",
    Null reserved "NULL", Numeric reserved "NUMERIC", Nvarchar plain "NVARCHAR", Of reserved "OF",
    Offset plain "OFFSET", On reserved "ON", Only plain "ONLY", Open plain "OPEN", Optimize reserved "OPTIMIZE",
    OptimizerCosts reserved "OPTIMIZER_COSTS", Option reserved "OPTION", Optionally reserved "OPTIONALLY",
    Or reserved "OR", Order reserved "ORDER", Out reserved "OUT", Outer reserved "OUTER", Outfile reserved "OUTFILE",
    Over reserved "OVER", Parser plain "PARSER", Partition reserved "PARTITION", Partitions plain "PARTITIONS",
    Password plain "PASSWORD", PercentRank reserved "PERCENT_RANK", Persist plain "PERSIST",
    PersistOnly plain "PERSIST_ONLY", Plugins plain "PLUGINS", Point plain "POINT", Polygon plain "POLYGON",
    Position plain "POSITION", Precision reserved "PRECISION", Prepare plain "PREPARE", Primary reserved "PRIMARY",
    Privileges plain "PRIVILEGES", Procedure reserved "PROCEDURE", Processlist plain "PROCESSLIST",
    Profile plain "PROFILE", Profiles plain "PROFILES", Purge reserved "PURGE", Query plain "QUERY",
    Quick plain "QUICK", Range reserved "RANGE", Rank reserved "RANK", Read reserved "READ", Reads reserved "READS",
    ReadWrite reserved "READ_WRITE", Real reserved "REAL", Recursive reserved "RECURSIVE",
    References reserved "REFERENCES", Regexp reserved "REGEXP", Release reserved "RELEASE", Rename reserved "RENAME",
    Repair plain "REPAIR", Repeat reserved "REPEAT", Repeatable plain "REPEATABLE", Replace reserved "REPLACE",
    Replica plain "REPLICA", Require reserved "REQUIRE", Reset plain "RESET", Resignal reserved "RESIGNAL",
    Restart plain "RESTART", Restrict reserved "RESTRICT", Return reserved "RETURN", Returning plain "RETURNING",
    Revoke reserved "REVOKE", Right reserved "RIGHT", Rlike reserved "RLIKE", Role plain "ROLE",
    Rollback plain "ROLLBACK", Rollup plain "ROLLUP", Row reserved "ROW", Rows reserved "ROWS",
    RowFormat plain "ROW_FORMAT", RowNumber reserved "ROW_NUMBER", Savepoint plain "SAVEPOINT",
    Schema reserved "SCHEMA", Schemas reserved "SCHEMAS", SecondMicrosecond reserved "SECOND_MICROSECOND",
    Security plain "SECURITY", Select reserved "SELECT", Sensitive reserved "SENSITIVE",
    Separator reserved "SEPARATOR", Serial plain "SERIAL", Serializable plain "SERIALIZABLE", Server plain "SERVER",
    Session plain "SESSION", Set reserved "SET", Share plain "SHARE", Show reserved "SHOW", Shutdown plain "SHUTDOWN",
    Signal reserved "SIGNAL", Signed plain "SIGNED", Skip plain "SKIP", Slave plain "SLAVE",
    Smallint reserved "SMALLINT", Snapshot plain "SNAPSHOT", Some plain "SOME", Sounds plain "SOUNDS",
    Spatial reserved "SPATIAL", Specific reserved "SPECIFIC", Sql reserved "SQL",
    Sqlexception reserved "SQLEXCEPTION", Sqlstate reserved "SQLSTATE", Sqlwarning reserved "SQLWARNING",
    SqlBigResult reserved "SQL_BIG_RESULT", SqlBufferResult plain "SQL_BUFFER_RESULT", SqlCache plain "SQL_CACHE",
    SqlCalcFoundRows reserved "SQL_CALC_FOUND_ROWS", SqlNoCache plain "SQL_NO_CACHE",
    SqlSmallResult reserved "SQL_SMALL_RESULT", Srid plain "SRID", Ssl reserved "SSL", Start plain "START", Starting reserved "STARTING",
    Status plain "STATUS", Stop plain "STOP", Storage plain "STORAGE", Stored reserved "STORED",
    StraightJoin reserved "STRAIGHT_JOIN", Substr plain "SUBSTR", Substring plain "SUBSTRING",
    System reserved "SYSTEM", Table reserved "TABLE", Tables plain "TABLES", Tablespace plain "TABLESPACE",
    Temporary plain "TEMPORARY", Terminated reserved "TERMINATED", Text plain "TEXT", Then reserved "THEN",
    Time plain "TIME", Timestamp plain "TIMESTAMP", Timestampadd plain "TIMESTAMPADD",
    Timestampdiff plain "TIMESTAMPDIFF", Tinyblob reserved "TINYBLOB", Tinyint reserved "TINYINT",
    Tinytext reserved "TINYTEXT", To reserved "TO", Trailing reserved "TRAILING", Transaction plain "TRANSACTION",
    Trigger reserved "TRIGGER", Triggers plain "TRIGGERS", Trim plain "TRIM", True reserved "TRUE",
    Truncate plain "TRUNCATE", Type plain "TYPE", Uncommitted plain "UNCOMMITTED", Undo reserved "UNDO",
    Unicode plain "UNICODE", Uninstall plain "UNINSTALL", Union reserved "UNION", Unique reserved "UNIQUE",
    Unknown plain "UNKNOWN", Unlock reserved "UNLOCK", Unsigned reserved "UNSIGNED", Update reserved "UPDATE",
    Usage reserved "USAGE", Use reserved "USE", User plain "USER", Using reserved "USING",
    UtcDate reserved "UTC_DATE", UtcTime reserved "UTC_TIME", UtcTimestamp reserved "UTC_TIMESTAMP",
    Value plain "VALUE", Values reserved "VALUES", Varbinary reserved "VARBINARY", Varchar reserved "VARCHAR",
    Varcharacter reserved "VARCHARACTER", Variables plain "VARIABLES", Varying reserved "VARYING", Vector plain "VECTOR",
    View plain "VIEW",
    Virtual reserved "VIRTUAL", Visible plain "VISIBLE", Warnings plain "WARNINGS", When reserved "WHEN",
    Where reserved "WHERE", While reserved "WHILE", Window reserved "WINDOW", With reserved "WITH", Work plain "WORK",
    Write reserved "WRITE", Xa plain "XA", Xor reserved "XOR", Year plain "YEAR", YearMonth reserved "YEAR_MONTH",
    Zerofill reserved "ZEROFILL",
}

/// Upper bound of a keyword's length in bytes. A longer word cannot be a keyword and is not searched.
const KEYWORD_BYTES_MAX: usize = 32;

impl Keyword {
    /// The keyword that `word` spells, in any letter case.
    pub fn find(word: &[u8]) -> Option<Keyword> {
        let mut upper = [0u8; KEYWORD_BYTES_MAX];
        let upper = upper.get_mut(..word.len())?;
        upper.copy_from_slice(word);
        upper.make_ascii_uppercase();
        // For a word that does not begin with a letter, the subtraction wraps to a position beyond the
        // buckets.
        let first = (*upper.first()?).wrapping_sub(b'A');
        let bucket = usize::from(first);
        if bucket >= BUCKET_COUNT {
            return None;
        }
        let bucket = &TABLE[usize::from(BUCKETS[bucket])..usize::from(BUCKETS[bucket + 1])];
        let index = bucket.binary_search_by(|entry| entry.0.as_bytes().cmp(upper)).ok()?;
        Some(bucket[index].1)
    }

    /// All keywords, sorted by their text.
    pub fn all() -> impl Iterator<Item = Keyword> {
        TABLE.iter().map(|(_, keyword, _)| *keyword)
    }

    /// Whether the word must be quoted to be a name.
    pub fn is_reserved(self) -> bool {
        TABLE[self as usize].2
    }

    /// The keyword in upper case.
    pub fn text(self) -> &'static str {
        TABLE[self as usize].0
    }
}

/// The table has one bucket for each first letter, which shortens the binary search.
const BUCKET_COUNT: usize = 26;

/// The position in the table of each letter's first keyword. The last entry is the table's length.
const BUCKETS: [u16; BUCKET_COUNT + 1] = bucket_starts();

const fn bucket_starts() -> [u16; BUCKET_COUNT + 1] {
    let mut starts = [0u16; BUCKET_COUNT + 1];
    let mut letter = 0;
    let mut entry = 0;
    while letter < BUCKET_COUNT {
        while entry < TABLE.len() && TABLE[entry].0.as_bytes()[0] < b'A' + letter as u8 {
            entry += 1;
        }
        starts[letter] = entry as u16;
        letter += 1;
    }
    starts[BUCKET_COUNT] = TABLE.len() as u16;
    starts
}
