//! The errors that users see, in one long file because a number that is used twice is seen only where all of
//! them are. Each has a stable code with its MySQL number and SQLSTATE.

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $errno:literal, $state:literal;)*) => {
        /// The cause of an error, as a stable code. Two causes have different codes only if a caller may
        /// react to them in different ways.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(clippy::enum_variant_names)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The MySQL error number.
            pub fn errno(self) -> u16 {
                match self { $(ErrorCode::$name => $errno,)* }
            }

            /// The SQLSTATE, five characters.
            pub fn sqlstate(self) -> &'static str {
                match self { $(ErrorCode::$name => $state,)* }
            }

            /// The code's own name, which the status tables and the error page use.
            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => stringify!($name),)* }
            }
        }
    };
}

errors! {
    /// A file of the server that cannot be created.
    CreateFileFailed = 1, "HY000";
    /// A file of the server that cannot be read.
    ReadFileFailed = 2, "HY000";
    /// A file of the server that cannot be written.
    WriteFileFailed = 3, "HY000";
    /// A file of the server that does not exist.
    FileStatusFailed = 13, "HY000";
    /// A file of the server that cannot be opened.
    OpenFileFailed = 29, "HY000";
    /// CREATE DATABASE for an existing database.
    DatabaseExists = 1007, "HY000";
    /// DROP DATABASE for a database that does not exist.
    DatabaseDropMissing = 1008, "HY000";
    /// A write while the device of the log is full. Reads go on; writes resume by themselves.
    DiskFull = 1021, "HY000";
    /// More connections than max_connections.
    TooManyConnections = 1040, "08004";
    /// A file other than the log cannot be written.
    WriteFailed = 1026, "HY000";
    /// Memory other than the data memory is exhausted.
    OutOfResources = 1041, "HY000";
    /// The user has no access to the database.
    DatabaseAccessDenied = 1044, "42000";
    /// Wrong user or password.
    AccessDenied = 1045, "28000";
    /// SET PASSWORD for an account that does not exist.
    PasswordNoMatch = 1133, "42000";
    /// KILL of another user's connection.
    KillDenied = 1095, "HY000";
    /// A statement that the user has no right to on a table.
    TableAccessDenied = 1142, "42000";
    /// A column that the user has no right to.
    ColumnAccessDenied = 1143, "42000";
    /// SHOW GRANTS or REVOKE of what is not granted.
    NonexistingGrant = 1141, "42000";
    /// A privilege that does not exist for the kind of object.
    IllegalGrantForTable = 1144, "42000";
    /// REVOKE of what is not granted on a table.
    NonexistingTableGrant = 1147, "42000";
    /// More connections of one user than `max_user_connections`.
    TooManyUserConnections = 1203, "42000";
    /// A statement that needs a privilege of the server.
    SpecificAccessDenied = 1227, "42000";
    /// A limit of the account's resources is reached.
    UserLimitReached = 1226, "42000";
    /// A routine that the user has no right to.
    RoutineAccessDenied = 1370, "42000";
    /// A password that is no hash of the method.
    PasswordFormat = 1827, "HY000";
    /// CREATE USER, DROP USER and their kin for accounts that exist or are missing.
    CannotUser = 1396, "HY000";
    /// GRANT to an account that does not exist.
    CannotCreateUserWithGrant = 1410, "42000";
    /// A name that is too long for what it names.
    WrongStringLength = 1470, "HY000";
    /// An authentication method that the server does not have.
    PluginNotLoaded = 1524, "HY000";
    /// A password that `validate_password` does not allow.
    NotValidPassword = 1819, "HY000";
    /// A statement of a session whose password has expired.
    MustChangePassword = 1820, "HY000";
    /// A login with an expired password by a client that cannot change it.
    MustChangePasswordLogin = 1862, "HY000";
    /// A login to a locked account.
    AccountLocked = 3118, "HY000";
    /// An account that does not exist, as a note.
    UserDoesNotExist = 3162, "HY000";
    /// An account that exists, as a note.
    UserAlreadyExists = 3163, "HY000";
    /// A role or account that does not exist.
    UnknownAuthorizationId = 3523, "HY000";
    /// REVOKE ALL PRIVILEGES, GRANT OPTION from an account that does not exist.
    RevokeGrants = 1269, "HY000";
    /// A dynamic privilege that the server does not have.
    UnknownPrivilege = 3929, "HY000";
    /// A role that would contain itself.
    RoleGrantedToItself = 4027, "HY000";
    /// A role that is not granted to the user.
    RoleNotGranted = 3530, "HY000";
    /// A dynamic privilege on something else than the server.
    IllegalPrivilegeLevel = 3619, "HY000";
    /// A role of `mandatory_roles` that is to be revoked or dropped.
    MandatoryRole = 3628, "HY000";
    /// A password that the account has had before.
    CredentialsContradictHistory = 3638, "HY000";
    /// RETAIN CURRENT PASSWORD with an account that has none.
    SecondPasswordEmpty = 3878, "HY000";
    /// ATTRIBUTE with something else than a JSON object.
    InvalidUserAttribute = 3982, "HY000";
    /// A change of the password with a wrong current one.
    IncorrectCurrentPassword = 3891, "HY000";
    /// A change of the password without the current one.
    MissingCurrentPassword = 3892, "HY000";
    /// REPLACE with the password of another account.
    CurrentPasswordNotRequired = 3893, "HY000";
    /// RETAIN CURRENT PASSWORD together with another method.
    PasswordRetainedWithPlugin = 3894, "HY000";
    /// RETAIN CURRENT PASSWORD together with an empty password.
    PasswordRetainedEmpty = 3895, "HY000";
    /// A role with SYSTEM_USER in `mandatory_roles`.
    SystemUserInMandatoryRoles = 3880, "HY000";
    /// SET GLOBAL partial_revokes = OFF while accounts have some.
    PartialRevokesExist = 3896, "HY000";
    /// SYSTEM_USER for a role of `mandatory_roles`.
    SystemUserForMandatoryRole = 3897, "HY000";
    /// A login to an account that too many failed logins have locked.
    AccountBlocked = 3955, "HY000";
    /// INTO of a query other than the last one.
    MisplacedInto = 3954, "HY000";
    /// A statement needs a database and none is selected.
    NoDatabaseSelected = 1046, "3D000";
    /// A command byte that the server does not know.
    UnknownCommand = 1047, "08S01";
    /// NULL for a NOT NULL column.
    ColumnNotNull = 1048, "23000";
    /// The database does not exist.
    UnknownDatabase = 1049, "42000";
    /// CREATE TABLE for an existing table.
    TableExists = 1050, "42S01";
    /// DROP TABLE for a table that does not exist.
    UnknownTable = 1051, "42S02";
    /// A column name that several tables of the query have.
    AmbiguousColumn = 1052, "23000";
    /// The server is stopping.
    ServerShutdown = 1053, "08S01";
    /// The column does not exist.
    UnknownColumn = 1054, "42S22";
    /// A subquery reads the table that the statement changes.
    TargetInSubquery = 1093, "HY000";
    /// A table that the statement names and `information_schema` or the statement's FROM does not have.
    UnknownTableInStatement = 1109, "42S02";
    /// A storage engine that no server has, with NO_ENGINE_SUBSTITUTION.
    UnknownStorageEngine = 1286, "42000";
    /// A column that is neither aggregated nor grouped, together with aggregates and without GROUP BY.
    MixOfGroupFunctions = 1140, "42000";
    /// An identifier of more than 64 characters.
    IdentifierTooLong = 1059, "42000";
    /// A column named twice.
    DuplicateColumn = 1060, "42S21";
    /// An index named twice.
    DuplicateKeyName = 1061, "42000";
    /// A second row with the same primary or unique key.
    DuplicateEntry = 1062, "23000";
    /// A statement that does not match the grammar.
    SyntaxError = 1064, "42000";
    /// An empty statement.
    EmptyQuery = 1065, "42000";
    /// A table or alias named twice.
    NonUniqueTable = 1066, "42000";
    /// A default value that does not fit its column.
    InvalidDefault = 1067, "42000";
    /// Two primary keys.
    MultiplePrimaryKey = 1068, "42000";
    /// More than 64 indexes.
    TooManyKeys = 1069, "42000";
    /// An index of more than 16 columns.
    TooManyKeyParts = 1070, "42000";
    /// An index key of more than 3,072 bytes.
    KeyTooLong = 1071, "42000";
    /// An index on a column that does not exist.
    KeyColumnMissing = 1072, "42000";
    /// An index on TEXT or BLOB without a length.
    BlobKeyWithoutLength = 1170, "42000";
    /// A text that is no JSON document.
    InvalidJsonText = 3140, "22032";
    /// A binary string in place of a JSON text.
    InvalidJsonCharacterSet = 3144, "22032";
    /// A JSON document that is nested too deeply.
    JsonTooDeep = 3157, "22032";
    /// A JSON column in an index.
    JsonAsKey = 3152, "42000";
    /// A table whose columns are all invisible.
    NoVisibleColumn = 4028, "HY000";
    /// More digits than a type can have.
    TooBigPrecision = 1426, "42000";
    /// More digits after the point than a type can have.
    TooBigScale = 1425, "42000";
    /// More digits after the point than digits.
    ScaleAbovePrecision = 1427, "42000";
    /// YEAR with another number of digits than four.
    YearDigits = 1818, "HY000";
    /// A size that the type cannot have.
    InvalidFieldSize = 3013, "42000";
    /// A display width that the type cannot have.
    DisplayWidth = 1439, "42000";
    /// More members than an ENUM or SET can have.
    TooManyMembers = 1097, "HY000";
    /// A member that an ENUM or SET has twice.
    RepeatedMember = 1291, "HY000";
    /// A length that the column type does not allow.
    ColumnTooBig = 1074, "42000";
    /// More than one AUTO_INCREMENT column, or one without a key.
    WrongAutoKey = 1075, "42000";
    /// A prefix length on a column that cannot have one.
    WrongSubKey = 1089, "HY000";
    /// A change of partitions of a table without PARTITION BY.
    NotPartitioned = 1505, "HY000";
    /// ADD PARTITION of no partition.
    NoPartitionAdded = 1514, "HY000";
    /// A table without partitions.
    DropLastPartition = 1508, "HY000";
    /// NULL for a column that becomes NOT NULL.
    InvalidUseOfNull = 1138, "22004";
    /// DROP of every column of a table.
    CannotDropAllColumns = 1090, "42000";
    /// DROP of an index or foreign key that does not exist.
    CannotDropKey = 1091, "42000";
    /// KILL of a connection that does not exist.
    NoSuchThread = 1094, "HY000";
    /// A write to a table that LOCK TABLES has locked for reading.
    TableNotLockedForWrite = 1099, "HY000";
    /// A table that the session's LOCK TABLES did not name.
    TableNotLocked = 1100, "HY000";
    /// A statement that is not allowed while LOCK TABLES holds tables.
    LockOrActiveTransaction = 1192, "HY000";
    /// BLOB or TEXT with a default value.
    BlobDefault = 1101, "42000";
    /// An illegal database name.
    WrongDatabaseName = 1102, "42000";
    /// An illegal table name.
    WrongTableName = 1103, "42000";
    /// `*` in a SELECT without a table.
    NoTablesUsed = 1096, "HY000";
    /// An error that has no number of its own.
    UnknownError = 1105, "HY000";
    /// A column that is assigned two values.
    ColumnSpecifiedTwice = 1110, "42000";
    /// An aggregate in a place where none is allowed.
    InvalidUseOfGroup = 1111, "HY000";
    /// A table without columns.
    TableWithoutColumns = 1113, "42000";
    /// The data memory is exhausted.
    TableFull = 1114, "HY000";
    /// An unknown character set.
    UnknownCharacterSet = 1115, "42000";
    /// More than 61 tables in a query.
    TooManyTables = 1116, "HY000";
    /// More than 1,017 columns.
    TooManyColumns = 1117, "HY000";
    /// A row longer than the maximum, or a definition of such rows.
    RowTooLarge = 1118, "42000";
    /// A VALUES list whose length differs from the column list.
    ColumnCountMismatch = 1136, "21S01";
    /// The table does not exist.
    NoSuchTable = 1146, "42S02";
    /// Network packets out of order.
    PacketsOutOfOrder = 1156, "08S01";
    /// A packet bigger than max_allowed_packet.
    PacketTooLarge = 1153, "08S01";
    /// The client has begun a packet, and was silent for longer than net_read_timeout.
    NetReadInterrupted = 1159, "08S01";
    /// The client has not read its answer for longer than net_write_timeout.
    NetWriteInterrupted = 1161, "08S01";
    /// A column type that does not allow AUTO_INCREMENT or another attribute.
    WrongFieldSpecification = 1063, "42000";
    /// A name that no column can have.
    WrongColumnName = 1166, "42000";
    /// ON UPDATE CURRENT_TIMESTAMP of a column of another type, or with other digits.
    InvalidOnUpdate = 1294, "HY000";
    /// A nullable column in a primary key.
    PrimaryCannotHaveNull = 1171, "42000";
    /// The key does not exist in the table.
    KeyDoesNotExist = 1176, "42000";
    /// A system variable that does not exist.
    UnknownSystemVariable = 1193, "HY000";
    /// A lock was not granted in time. The statement is rolled back.
    LockWaitTimeout = 1205, "HY000";
    /// The transaction was chosen as the victim of a deadlock and is rolled back.
    Deadlock = 1213, "40001";
    /// The node that ran the commit is lost. Nobody has told whether the transaction was committed.
    CommitOutcomeUnknown = 1180, "08007";
    /// Wrong arguments to a function or statement.
    WrongArguments = 1210, "HY000";
    /// SET GLOBAL of a variable that has session scope only.
    SessionOnlyVariable = 1228, "HY000";
    /// SET without GLOBAL of a variable that has global scope only.
    GlobalOnlyVariable = 1229, "HY000";
    /// A value that the variable cannot have.
    WrongValueForVariable = 1231, "42000";
    /// A value of the wrong type for the variable.
    WrongTypeForVariable = 1232, "42000";
    /// A statement that an option of the server excludes, such as SET PERSIST with --in-memory.
    OptionPreventsStatement = 1290, "HY000";
    /// The certificates of TLS cannot be used.
    TlsSetupFailed = 3888, "HY000";
    /// RESET PERSIST of a variable without a persisted value.
    NotPersisted = 3615, "HY000";
    /// The variable is read-only.
    ReadOnlyVariable = 1238, "HY000";
    /// A feature that the grammar knows but that is not supported yet.
    NotSupportedYet = 1235, "42000";
    /// A row constructor with a wrong number of columns.
    OperandColumns = 1241, "21000";
    /// A subquery that is a value returns more than one row.
    SubqueryRows = 1242, "21000";
    /// A query in FROM without a name.
    DerivedWithoutAlias = 1248, "42000";
    /// A column or alias that a clause cannot refer to.
    IllegalReference = 1247, "42S22";
    /// A column that GROUP BY does not determine, under ONLY_FULL_GROUP_BY.
    ColumnNotInGroupBy = 1055, "42000";
    /// GROUP BY of an aggregate.
    WrongGroupField = 1056, "42000";
    /// A text of GROUP_CONCAT was cut at group_concat_max_len.
    CutGroupConcat = 1260, "HY000";
    /// The argument of GROUPING is not in GROUP BY.
    WrongGrouping = 3148, "HY000";
    /// A recursive common table expression without a query that does not refer to it.
    RecursionWithoutSeed = 3573, "HY000";
    /// A recursive common table expression whose queries are in the wrong order.
    RecursionWithoutOrder = 3574, "HY000";
    /// A recursive common table expression with aggregates or windows in a recursive query.
    RecursionWithAggregates = 3575, "HY000";
    /// A recursive common table expression that is the inner table of an outer join.
    RecursionInOuterJoin = 3576, "HY000";
    /// A recursive common table expression with several references in a recursive query, or in a subquery.
    RecursionWithReferences = 3577, "HY000";
    /// A recursive common table expression ran too often.
    RecursionTooDeep = 3636, "HY000";
    /// A value that a column of JSON_TABLE needs.
    MissingJsonTableValue = 3665, "22035";
    /// An array or object in a scalar column of JSON_TABLE.
    WrongJsonTableValue = 3666, "2203F";
    /// A table function without an alias.
    TableFunctionWithoutAlias = 3667, "42000";
    /// A LATERAL reference across another join than INNER and LEFT.
    ForbiddenLateralJoin = 3668, "42000";
    /// A value beyond the range of a column of JSON_TABLE.
    JsonTableValueOutOfRange = 3669, "22003";
    /// Too many NESTED PATH in one another.
    JsonTableNesting = 3670, "42000";
    /// A window that is not defined.
    NoSuchWindow = 3579, "HY000";
    /// Windows that depend on each other in a circle.
    WindowCircle = 3580, "HY000";
    /// PARTITION BY in a window that depends on another.
    WindowChildPartition = 3581, "HY000";
    /// A window that depends on one with a frame.
    WindowInheritsFrame = 3582, "HY000";
    /// ORDER BY in a window that depends on one with ORDER BY.
    WindowInheritsOrder = 3583, "HY000";
    /// A frame that starts at UNBOUNDED FOLLOWING.
    WindowFrameStart = 3584, "HY000";
    /// A frame that ends at UNBOUNDED PRECEDING.
    WindowFrameEnd = 3585, "HY000";
    /// A bound of a frame that is negative, NULL or no integer.
    WindowFrameBound = 3586, "HY000";
    /// RANGE with a distance without exactly one order key that has distances.
    WindowRangeOrder = 3587, "HY000";
    /// RANGE of days or times without INTERVAL.
    WindowRangeTemporal = 3588, "HY000";
    /// RANGE of numbers with INTERVAL.
    WindowRangeNumeric = 3589, "HY000";
    /// A bound of a frame that is no constant.
    WindowBoundNotConstant = 3590, "HY000";
    /// Two windows of one name.
    WindowTwice = 3591, "HY000";
    /// A number instead of an expression in ORDER BY or PARTITION BY of a window.
    WindowPosition = 3592, "HY000";
    /// A window function where none is allowed.
    WindowFunctionMisplaced = 3593, "HY000";
    /// An alias of a window function where none is allowed.
    WindowAliasMisplaced = 3594, "HY000";
    /// A window function in the definition of a window.
    WindowNested = 3595, "HY000";
    /// ROWS with INTERVAL.
    WindowRowsInterval = 3596, "HY000";
    /// A prepared statement that does not exist.
    UnknownPreparedStatement = 1243, "HY000";
    /// TEXT and BLOB columns in rows of a fixed size without an end.
    FixedSizeWithBlobs = 1084, "42000";
    /// A variable among the fields of rows of a fixed size.
    FixedSizeIntoVariable = 1409, "HY000";
    /// A line of LOAD DATA with too few fields.
    TooFewFields = 1261, "01000";
    /// A line of LOAD DATA with too many fields.
    TooManyFields = 1262, "01000";
    /// NULL in a file of LOAD DATA for a NOT NULL column.
    LoadedNull = 1263, "22004";
    /// LOAD DATA LOCAL that the server or the client does not allow.
    LocalFilesDisabled = 3948, "42000";
    /// COM_STMT_FETCH for a statement without a cursor.
    NoOpenCursor = 1421, "HY000";
    /// SELECT ... INTO with a second row.
    TooManyRows = 1172, "42000";
    /// SELECT ... INTO a name that is no user variable.
    UndeclaredVariable = 1327, "42000";
    /// SELECT ... INTO without a row (a warning).
    NoData = 1329, "02000";
    /// SELECT ... INTO with another number of variables than of columns.
    SelectColumnCount = 1222, "21000";
    /// A file of LOAD DATA that is no regular file.
    FileNotReadable = 1085, "HY000";
    /// INTO OUTFILE of a file that exists.
    FileExists = 1086, "HY000";
    /// Fields that end with a byte which may also be a part of them (a warning).
    AmbiguousFieldTerminator = 1475, "HY000";
    /// FIELDS or LINES that no file can have.
    WrongFieldTerminators = 1083, "42000";
    /// A value outside the range of its column.
    OutOfRange = 1264, "22003";
    /// A value of `time_zone` that names no zone.
    UnknownTimeZone = 1298, "HY000";
    /// A TIMESTAMP that the clocks of the time zone skip (a warning).
    InvalidTimestamp = 1299, "HY000";
    /// A value that lost digits or characters (a warning).
    DataTruncated = 1265, "01000";
    /// Digits or spaces that the column cannot keep (always a note).
    TruncationNote = 1265, "01000";
    /// Two collations that cannot be compared.
    CannotAggregateCollations = 1267, "HY000";
    /// Three collations that cannot be compared.
    CannotAggregateThreeCollations = 1270, "HY000";
    /// More than three collations that cannot be compared.
    CannotAggregateManyCollations = 1271, "HY000";
    /// Clauses that exclude each other.
    WrongUsage = 1221, "HY000";
    /// A table where a view is needed, or the reverse.
    WrongObject = 1347, "HY000";
    /// A column of a view that is computed.
    NonUpdatableColumn = 1348, "HY000";
    /// A view with a clause that no view can have.
    ViewClause = 1350, "HY000";
    /// A view with a variable or parameter.
    ViewVariable = 1351, "HY000";
    /// A view of a temporary table.
    ViewTemporaryTable = 1352, "HY000";
    /// EXPLAIN of a view whose tables the session may not read.
    ViewNoExplain = 1345, "HY000";
    /// The definer of a view that is no account.
    NoSuchUser = 1449, "HY000";
    /// A view whose tables or columns are missing.
    ViewInvalid = 1356, "HY000";
    /// WITH CHECK OPTION of a view whose rows cannot be changed.
    ViewCheckUseless = 1368, "HY000";
    /// A row that the condition of a view with CHECK OPTION excludes.
    ViewCheckFailed = 1369, "HY000";
    /// INSERT into a view of several tables without a list of columns.
    ViewWithoutColumns = 1394, "HY000";
    /// DELETE from a view of several tables.
    ViewDeleteOfJoin = 1395, "HY000";
    /// RENAME TABLE of a view to another database.
    ViewToOtherDatabase = 1450, "HY000";
    /// A view that contains itself.
    ViewRecursion = 1462, "HY000";
    /// INSERT into a view that has computed columns.
    NonInsertableTable = 1471, "HY000";
    /// UPDATE or DELETE of a table whose rows the statement or a view computes.
    NonUpdatableTable = 1288, "HY000";
    /// An unknown collation.
    UnknownCollation = 1273, "HY000";
    /// An invalid name of an index.
    WrongKeyName = 1280, "42000";
    /// A collation that does not belong to the character set.
    CollationCharacterSetMismatch = 1253, "42000";
    /// A value that was truncated in a conversion (a warning).
    TruncatedWrongValue = 1292, "22007";
    /// Too many transactions at one time, or a log that is close to its limit: the same may succeed later.
    TemporaryOverload = 1297, "HY000";
    /// The result of a function exceeds max_allowed_packet (a warning).
    ResultTooLong = 1301, "HY000";
    /// A function, procedure or savepoint that does not exist.
    ObjectDoesNotExist = 1305, "42000";
    /// The query was interrupted.
    QueryInterrupted = 1317, "70100";
    /// The query has taken longer than max_execution_time.
    QueryTimedOut = 3024, "HY000";
    /// The hint MAX_EXECUTION_TIME of a query that is not a statement's own (a warning).
    UnsupportedExecutionTime = 3125, "HY000";
    /// A hint that contradicts or repeats another one (a warning).
    ConflictingHint = 3126, "HY000";
    /// A hint for a query block that does not exist (a warning).
    UnknownQueryBlock = 3127, "HY000";
    /// A hint for a table or index that does not exist (a warning).
    UnresolvedHintName = 3128, "HY000";
    /// A system variable that the hint SET_VAR cannot set (a warning).
    NotHintUpdatable = 3637, "HY000";
    /// A list of column names whose length differs from the number of columns.
    ColumnListMismatch = 1353, "HY000";
    /// No value and no default for a NOT NULL column.
    NoDefault = 1364, "HY000";
    /// Division by zero in strict mode.
    DivisionByZero = 1365, "22012";
    /// A string that is not a number, or that is invalid in the character set.
    WrongValueForType = 1366, "HY000";
    /// A number outside the range of its type.
    IllegalValue = 1367, "22007";
    /// A string longer than its column.
    DataTooLong = 1406, "22001";
    /// A function called with the wrong number of arguments.
    WrongParameterCount = 1582, "42000";
    /// The table definition changed under the transaction.
    TableDefinitionChanged = 1412, "HY000";
    /// More parameters than a prepared statement may have.
    TooManyParameters = 1390, "HY000";
    /// More prepared statements than a server may hold.
    TooManyPreparedStatements = 1461, "42000";
    /// AUTO_INCREMENT has no number left.
    AutoIncrementExhausted = 1467, "HY000";
    /// A table option that the engine does not accept.
    IllegalCreateOption = 1478, "HY000";
    /// Wrong partition options.
    WrongPartition = 1503, "HY000";
    /// More partitions than a table may have.
    TooManyPartitions = 1499, "HY000";
    /// A path of JSON_ARRAY_INSERT that does not end with an element of an array.
    JsonPathNotCell = 3165, "42000";
    /// A functional index whose values are JSON.
    FunctionalIndexOnJson = 3753, "HY000";
    /// A functional index on an AUTO_INCREMENT column.
    FunctionalIndexOfAutoIncrement = 3754, "HY000";
    /// A column that a functional index reads is dropped or renamed.
    ColumnNeededByFunctionalIndex = 3755, "HY000";
    /// An expression in the primary key.
    FunctionalPrimaryKey = 3756, "HY000";
    /// A functional index whose values are TEXT or BLOB.
    FunctionalIndexOnLob = 3757, "HY000";
    /// A functional index with a function that may give another value.
    FunctionalIndexFunction = 3758, "HY000";
    /// A value that a multi-valued index would cut.
    FunctionalIndexTruncated = 3751, "01000";
    /// A number outside the range of the elements of a multi-valued index.
    FunctionalIndexOutOfRange = 3752, "22003";
    /// A value that is none of the type of the elements of a multi-valued index.
    MultiValuedInvalid = 3903, "22018";
    /// A number without a value in the type of the elements of a multi-valued index.
    MultiValuedOutOfRange = 3904, "22003";
    /// Too many elements in one row of a multi-valued index.
    MultiValuedKeys = 3905, "HY000";
    /// Elements of too many bytes in one row of a multi-valued index.
    MultiValuedBytes = 3906, "HY000";
    /// A text that is too long for the elements of a multi-valued index.
    FunctionalIndexTooLong = 3907, "22001";
    /// An array or object among the elements of a multi-valued index.
    MultiValuedNested = 3908, "HY000";
    /// A functional index that is no expression.
    FunctionalIndexOnColumn = 3762, "HY000";
    /// PARTITION BY of a temporary table.
    PartitionedTemporaryTable = 1562, "HY000";
    /// A foreign key that is not allowed.
    CannotAddForeignKey = 1215, "HY000";
    /// A foreign key whose column lists differ in length.
    WrongForeignKey = 1239, "42000";
    /// A parent row that child rows reference.
    RowIsReferenced = 1451, "23000";
    /// A child row whose parent does not exist.
    NoReferencedRow = 1452, "23000";
    /// DROP of an index that a foreign key needs.
    IndexNeededByForeignKey = 1553, "HY000";
    /// DROP of a column of a foreign key.
    ColumnNeededByForeignKey = 1828, "HY000";
    /// DROP of a column that a foreign key of another table references.
    ColumnNeededByChild = 1829, "HY000";
    /// Another type for a column of a foreign key.
    ColumnUsedByForeignKey = 1832, "HY000";
    /// Another type for a column that a foreign key of another table references.
    ColumnUsedByChild = 1833, "HY000";
    /// TRUNCATE of a table that a foreign key references.
    TruncateReferenced = 1701, "42000";
    /// The parent has no index for a foreign key.
    ForeignKeyWithoutParentIndex = 1822, "HY000";
    /// The parent of a foreign key does not exist.
    ForeignKeyWithoutParent = 1824, "HY000";
    /// Two foreign keys with the same name in one database.
    DuplicateForeignKeyName = 1826, "HY000";
    /// CREATE TABLE ... SELECT with a foreign key.
    ForeignKeyWithSelect = 3978, "HY000";
    /// SET NULL for a NOT NULL column.
    ForeignKeyColumnNotNull = 1830, "HY000";
    /// Cascades nested too deeply.
    ForeignKeyTooDeep = 3008, "HY000";
    /// DROP of a table that a foreign key references.
    DropReferenced = 3730, "HY000";
    /// DROP of a constraint whose name is ambiguous.
    AmbiguousConstraint = 3939, "HY000";
    /// DROP of a constraint that does not exist.
    NoSuchConstraint = 3940, "HY000";
    /// A foreign key references a column that its parent does not have.
    ForeignKeyWithoutParentColumn = 3734, "HY000";
    /// Columns of a foreign key with incompatible types.
    ForeignKeyColumnsIncompatible = 3780, "HY000";
    /// A prepared statement whose columns have changed.
    NeedsReprepare = 1615, "HY000";
    /// A number outside the range of its type in an expression.
    NumericOutOfRange = 1690, "22003";
    /// ST_TRANSFORM of a geometry without a reference system.
    TransformSource = 3741, "22S00";
    /// ST_TRANSFORM to no reference system.
    TransformTarget = 3742, "22S00";
    /// A unit of length for a geometry without a reference system.
    UnknownLengthUnit = 3882, "SU001";
    /// A wait for global transaction identifiers, of which there are none.
    GtidModeOff = 3062, "HY000";
    /// A text that is no set of global transaction identifiers.
    MalformedTransactionSet = 1772, "HY000";
    /// A malformed packet.
    MalformedPacket = 1835, "HY000";
    /// An unknown name after FORMAT of EXPLAIN.
    UnknownExplainFormat = 1791, "HY000";
    /// An unknown word after ALGORITHM of ALTER TABLE, CREATE INDEX and DROP INDEX.
    UnknownAlterAlgorithm = 1800, "HY000";
    /// An unknown word after LOCK of ALTER TABLE, CREATE INDEX and DROP INDEX.
    UnknownAlterLock = 1801, "HY000";
    /// A change that cannot be made with the ALGORITHM or the LOCK of the statement.
    AlterNotSupported = 1845, "0A000";
    /// A change that cannot be made with the ALGORITHM or the LOCK of the statement, with a reason.
    AlterNotSupportedReason = 1846, "0A000";
    /// ALGORITHM=INSTANT for a table with too many columns that were added or dropped.
    TooManyRowForms = 4092, "HY000";
    /// The transaction is read-only.
    ReadOnlyTransaction = 1792, "25006";
    /// ORDER BY or select list that violates DISTINCT or only_full_group_by.
    NotInDistinctList = 3065, "HY000";
    /// An invalid byte string for the character set.
    InvalidCharacterString = 1300, "HY000";
    /// An argument of a type that the function does not take.
    IncorrectArgumentType = 3064, "HY000";
    /// A number that has no logarithm (a warning).
    InvalidLogarithm = 3020, "2201E";
    /// A statement too deep or too large for the server's limits.
    StatementTooComplex = 1436, "HY000";
    /// A row to be locked has changed since the snapshot. The transaction is rolled back
    /// (`innodb_snapshot_isolation`).
    RecordChanged = 1020, "HY000";
    /// The versions that the snapshot needs were purged because too many had been kept.
    SnapshotTooOld = 1412, "HY000";
    /// The lock table is full.
    LockTableFull = 1206, "HY000";
    /// FOR UPDATE OF names a table that the query does not have.
    UnresolvedTableLock = 3568, "HY000";
    /// FOR UPDATE OF names a table twice.
    DuplicateTableLock = 3569, "HY000";
    /// NOWAIT for a lock that another transaction holds.
    LockNotAvailable = 3572, "HY000";
    /// RESTART of a server that nothing starts again.
    RestartServerFailed = 3707, "HY000";
    /// The node cannot accept the request in its present state.
    TemporaryFailure = 1296, "HY000";
    /// A statement that cannot be prepared.
    UnpreparableStatement = 1295, "HY000";
    /// A result that is no day or time, because it is beyond the range.
    DateTimeOverflow = 1441, "22008";
    /// A DATE, TIME or TIMESTAMP literal that is none.
    WrongLiteral = 1525, "HY000";
    /// A text that is no JSON document, as the argument of a function.
    InvalidJsonArgument = 3141, "22032";
    /// A JSON document of another type than the function needs.
    InvalidJsonType = 3853, "22032";
    /// A path of JSON_VALUE with ERROR ON EMPTY that finds nothing.
    MissingJsonValue = 3966, "22035";
    /// A path of JSON_VALUE with ERROR ON ERROR that finds several values.
    MultipleJsonValues = 3967, "22034";
    /// The argument of STATEMENT_DIGEST is no statement.
    DigestOfNoStatement = 3676, "HY000";
    /// A JSON path that cannot be read.
    JsonPath = 3143, "42000";
    /// An argument that is no JSON document and no text.
    WrongJsonArgument = 3146, "22032";
    /// A number of a document beyond the range of the type that it is converted to.
    JsonNumberOutOfRange = 3155, "22003";
    /// A value of a document that is no number, day or time, where one is wanted.
    WrongJsonCast = 3156, "22018";
    /// A JSON path with a wildcard where one value is meant.
    JsonPathWildcard = 3149, "42000";
    /// The path of a whole document where a part is meant.
    JsonPathRoot = 3153, "42000";
    /// An argument other than one and all.
    JsonOneOrAll = 3154, "42000";
    /// NULL as the key of a member.
    JsonNullKey = 3158, "22032";
    /// A locale that does not exist.
    UnknownLocale = 1649, "HY000";
    /// A value that a VECTOR column cannot store.
    IncompatibleWithVector = 6136, "HY000";
    /// Data that are no vector.
    NoVector = 6138, "HY000";
    /// A value that a spatial column cannot store.
    NoGeometry = 1416, "22003";
    /// A value with another reference system than its column.
    WrongReferenceSystem = 3643, "HY000";
    /// Bytes or a text that is no geometry.
    InvalidGeometry = 3037, "22023";
    /// Two geometries with different reference systems.
    DifferentReferenceSystems = 3033, "HY000";
    /// A geometry of a class that the function does not take.
    UnexpectedGeometryType = 3516, "22S01";
    /// A spatial reference system that does not exist.
    NoReferenceSystem = 3548, "SR001";
    /// A longitude outside its range.
    LongitudeOutOfRange = 3616, "22S02";
    /// A latitude outside its range.
    LatitudeOutOfRange = 3617, "22S03";
    /// A geometry with a longitude outside its range.
    GeometryLongitudeOutOfRange = 3731, "22S02";
    /// A geometry with a latitude outside its range.
    GeometryLatitudeOutOfRange = 3732, "22S03";
    /// A function that has no result for a geographic reference system.
    NotForGeographicSystem = 3618, "22S00";
    /// A function that has no result for a plane.
    NotForCartesianSystem = 3704, "22S00";
    /// A function that has no result for a map.
    NotForProjectedSystem = 3705, "22S00";
    /// A radius that is not positive.
    NonPositiveRadius = 3706, "22003";
    /// A function of geographic reference systems alone.
    NotGeographic = 3726, "22S00";
    /// A primary or unique key of a spatial column.
    SpatialUniqueKey = 3728, "HY000";
    /// A member that GeoJSON lacks.
    GeoJsonMissingMember = 3060, "22023";
    /// A member of GeoJSON of the wrong type.
    GeoJsonWrongType = 3061, "22023";
    /// GeoJSON that is no geometry.
    InvalidGeoJson = 3062, "22023";
    /// GeoJSON with more than two coordinates.
    UnsupportedDimension = 3063, "22023";
    /// A value that a function cannot read.
    WrongValueForFunction = 1411, "HY000";
    /// Arguments that a function does not accept.
    WrongFunctionParameters = 1583, "42000";
    /// An argument without effect.
    OptionIgnored = 1618, "HY000";
    /// An initialization vector that is too short.
    ShortInitializationVector = 1882, "HY000";
    /// Compressed data whose text would be too long.
    UncompressedTooLong = 1256, "HY000";
    /// Compressed data that is damaged.
    CompressedDataDamaged = 1259, "HY000";
    /// Binary strings of different lengths as operands of a bit operator.
    BitOperandsDiffer = 3513, "HY000";
    /// An empty regular expression.
    RegexpIllegalArgument = 3685, "HY000";
    /// A position outside the text, or a group that the pattern does not have.
    RegexpOutOfBounds = 3686, "HY000";
    /// A regular expression that cannot be read.
    RegexpSyntax = 3688, "HY000";
    /// An unknown escape in a regular expression.
    RegexpEscape = 3689, "HY000";
    /// Parentheses of a regular expression that do not match.
    RegexpParenthesis = 3691, "HY000";
    /// A wrong number of repetitions in a regular expression.
    RegexpInterval = 3692, "HY000";
    /// A maximum of repetitions below the minimum.
    RegexpMinMax = 3693, "HY000";
    /// A reference to a group that a regular expression does not have.
    RegexpBackReference = 3694, "HY000";
    /// A look-behind without a length in a regular expression.
    RegexpLookBehind = 3695, "HY000";
    /// An open bracket in a regular expression.
    RegexpBracket = 3696, "HY000";
    /// A range of characters in the wrong order.
    RegexpRange = 3697, "HY000";
    /// A regular expression that takes too long.
    RegexpTooMuch = 3699, "HY000";
    /// A regular expression that is too long or too complex.
    RegexpTooBig = 3700, "HY000";
    /// Binary text together with text of a character set.
    CharacterSetMismatch = 3995, "HY000";
    /// Warning: deprecated syntax with a replacement.
    DeprecatedSyntax = 1287, "HY000";
    /// Warning: deprecated syntax without a replacement.
    DeprecatedWithoutReplacement = 1681, "HY000";
    /// Warning: INSERT DELAYED, which is an INSERT.
    LegacySyntaxConverted = 3005, "HY000";
    /// Warning: the character set utf8.
    DeprecatedUtf8Alias = 3719, "HY000";
    /// Warning: NATIONAL, NCHAR or NVARCHAR.
    DeprecatedNational = 3720, "HY000";
    /// Warning: a collation of utf8mb3.
    DeprecatedCollation = 3778, "HY000";
    /// AT TIME ZONE of a value that is no TIMESTAMP.
    InvalidCast = 3998, "HY000";
    /// A user-level lock with no name, or one of more than 64 characters.
    WrongUserLockName = 3057, "42000";
    /// Sessions wait for each other's user-level locks.
    UserLockDeadlock = 3058, "HY000";
    /// No command arrived for longer than wait_timeout.
    ClientInteractionTimeout = 4031, "HY000";
    /// An expression of a CHECK constraint that is no truth value.
    NonBooleanCheck = 3812, "HY000";
    /// A CHECK of a column that refers to another one.
    ColumnCheckOfOtherColumn = 3813, "HY000";
    /// A subquery in a CHECK.
    CheckSubquery = 3815, "HY000";
    /// A function that CHECK does not allow.
    CheckFunction = 3814, "HY000";
    /// A variable in a CHECK.
    CheckVariables = 3816, "HY000";
    /// An AUTO_INCREMENT column in a CHECK.
    CheckOfAutoIncrement = 3818, "HY000";
    /// A row that violates a CHECK constraint.
    CheckViolated = 3819, "HY000";
    /// An unknown column in a CHECK.
    CheckOfUnknownColumn = 3820, "HY000";
    /// A CHECK constraint that does not exist.
    CheckNotFound = 3821, "HY000";
    /// Two CHECK constraints with the same name in one database.
    DuplicateCheckName = 3822, "HY000";
    /// A CHECK of a column that a foreign key may change.
    CheckOfReferentialAction = 3823, "HY000";
    /// ALTER CONSTRAINT of a constraint that is no CHECK.
    NotAlterableConstraint = 3941, "HY000";
    /// DROP or RENAME of a column that a CHECK needs.
    ColumnNeededByCheck = 3959, "HY000";
    /// SET NULL or CASCADE for a generated column.
    ActionOnGeneratedColumn = 3104, "HY000";
    /// A value for a generated column.
    ValueForGeneratedColumn = 3105, "HY000";
    /// An attribute that a generated column cannot have, or a change of its storage.
    UnsupportedOnGeneratedColumn = 3106, "HY000";
    /// A generated column that refers to a later one.
    GeneratedColumnNotPrior = 3107, "HY000";
    /// DROP or RENAME of a column that a generated column needs.
    ColumnNeededByGenerated = 3108, "HY000";
    /// An AUTO_INCREMENT column in the expression of a generated one.
    GeneratedOfAutoIncrement = 3109, "HY000";
    /// A subquery in the expression of a generated column.
    GeneratedColumnSubquery = 3102, "HY000";
    /// A function that a generated column does not allow.
    GeneratedColumnFunction = 3763, "HY000";
    /// A row of values in the expression of a generated column.
    GeneratedColumnRow = 3764, "HY000";
    /// A variable in the expression of a generated column.
    GeneratedColumnVariables = 3765, "HY000";
    /// DROP or RENAME of a column that a default needs.
    ColumnNeededByDefault = 3766, "HY000";
    /// A default that refers to a later column with an expression.
    DefaultNotPrior = 3767, "HY000";
    /// An AUTO_INCREMENT column in a default.
    DefaultOfAutoIncrement = 3768, "HY000";
    /// A subquery in a default.
    DefaultSubquery = 3769, "HY000";
    /// A function that a default does not allow.
    DefaultFunction = 3770, "HY000";
    /// A row of values in a default.
    DefaultRow = 3771, "HY000";
    /// A variable in a default.
    DefaultVariables = 3772, "HY000";
    /// DEFAULT(column) of a default that is an expression.
    DefaultOfExpression = 3773, "HY000";
    /// INVISIBLE for the primary key.
    InvisiblePrimaryKey = 3522, "HY000";
    /// SET TRANSACTION inside a transaction.
    CannotChangeTransaction = 1568, "25001";
}

/// An error with the text that the user sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The cause.
    pub code: ErrorCode,
    /// The whole message, in MySQL's words where MySQL has them.
    pub message: Box<str>,
}

/// The result of an operation that can fail with a message for the user.
pub type Result<T> = std::result::Result<T, Box<Error>>;

impl Error {
    /// Error 3144: a binary string in place of the text of a document.
    #[cold]
    pub fn binary_document() -> Box<Error> {
        let message = "Cannot create a JSON value from a string with CHARACTER SET 'binary'.";
        Error::new(ErrorCode::InvalidJsonCharacterSet, message)
    }

    /// A boxed error, so that results on the data path stay small.
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<Box<str>>) -> Box<Error> {
        Box::new(Error { code, message: message.into() })
    }

    /// Error 1235, "This version of Junctor doesn't yet support '...'", with the name of the missing feature.
    #[cold]
    pub fn not_supported(what: &str) -> Box<Error> {
        Error::new(ErrorCode::NotSupportedYet, format!("This version of Junctor doesn't yet support '{what}'"))
    }

    /// Error 1021: the log cannot be written, because its device is full.
    #[cold]
    pub fn disk_full() -> Box<Error> {
        let text = "Disk full (log); waiting for someone to free some space... (errno: 28 - No space left on device)";
        Error::new(ErrorCode::DiskFull, text)
    }

    /// Error 1297: the log has no space until a checkpoint has freed a part of it.
    #[cold]
    pub fn log_overloaded() -> Box<Error> {
        let text = "Got temporary error 410 'REDO log files overloaded (decrease TimeBetweenLocalCheckpoints or \
                    increase NoOfFragmentLogFiles)'";
        Error::new(ErrorCode::TemporaryOverload, text)
    }

    /// Error 1297: a transaction needs more of the log than one transaction may.
    #[cold]
    pub fn transaction_exceeds_log() -> Box<Error> {
        let text = "Got temporary error 1220 'REDO log files overloaded (increase FragmentLogFileSize)'; the \
                    transaction needs more than half of the log";
        Error::new(ErrorCode::TemporaryOverload, text)
    }

    /// Error 1412: the plan was made for another version of a table. The statement may be planned again.
    #[cold]
    pub fn table_definition_changed() -> Box<Error> {
        Error::new(ErrorCode::TableDefinitionChanged, "Table definition has changed, please retry transaction")
    }

    /// Error 1317: the statement was stopped by KILL, by a time limit or because the client has disconnected.
    #[cold]
    pub fn query_interrupted() -> Box<Error> {
        Error::new(ErrorCode::QueryInterrupted, "Query execution was interrupted")
    }

    /// Error 3024: the query has taken longer than max_execution_time.
    #[cold]
    pub fn query_timed_out() -> Box<Error> {
        let message = "Query execution was interrupted, maximum statement execution time exceeded";
        Error::new(ErrorCode::QueryTimedOut, message)
    }

    /// Error 1053: the node stops before the statement has ended.
    #[cold]
    pub fn server_shutdown() -> Box<Error> {
        Error::new(ErrorCode::ServerShutdown, "Server shutdown in progress")
    }

    /// Error 1205: a wait for a row, a table or a range took longer than its limit.
    #[cold]
    pub fn lock_wait_timeout() -> Box<Error> {
        Error::new(ErrorCode::LockWaitTimeout, "Lock wait timeout exceeded; try restarting transaction")
    }

    /// Error 1213: the transaction is the victim of a deadlock.
    #[cold]
    pub fn deadlock() -> Box<Error> {
        Error::new(ErrorCode::Deadlock, "Deadlock found when trying to get lock; try restarting transaction")
    }

    /// A reply that cannot be decoded. Such replies come from blocks of this node, so they indicate a fault
    /// of the node.
    #[cold]
    pub fn broken_reply() -> Box<Error> {
        Error::new(ErrorCode::UnknownError, "A reply of the data plane is broken")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ERROR {} ({}): {}", self.code.errno(), self.code.sqlstate(), self.message)
    }
}

impl std::error::Error for Error {}
