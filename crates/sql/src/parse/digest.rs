//! The normalised text of a statement, as STATEMENT_DIGEST_TEXT returns it: literals are `?`, lists of them
//! are shortened, names are in backticks, keywords in upper case, and a space is between tokens.

use sha2::{Digest, Sha256};

use super::dialect::Dialect;
use super::keyword::Keyword;
use super::lexer::{Lexer, TokenKind};

/// A token of the normalised text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// `?`
    Value,
    /// `?, ...`
    Values,
    /// `(?)`
    Row,
    /// `(...)`
    LongRow,
    /// Several of the rows before.
    Rows,
    LongRows,
    /// `IN (...)`
    InList,
    Name(String),
    /// A keyword or symbol, and whether an expression may begin behind it.
    Word(String, bool),
}

/// The normalised text, at most `bytes_max` long; a longer one ends with three points.
pub fn digest_text(text: &[u8], dialect: Dialect, bytes_max: usize) -> String {
    let mut pieces = Pieces::default();
    let mut lexer = Lexer::new(text, 0, dialect);
    let mut token = lexer.next_token();
    // Each piece prints a byte at least, so further pieces would be cut off.
    while token.kind != TokenKind::End && token.kind != TokenKind::Bad && pieces.pieces.len() <= bytes_max {
        let next = lexer.next_token();
        let bytes = text.get(token.start as usize..token.end as usize).unwrap_or_default();
        pieces.add(token.kind, bytes, next.kind);
        token = next;
    }
    pieces.print(bytes_max)
}

/// The digest of a normalised text: its SHA-256 in hexadecimal digits.
pub fn digest_hash(text: &str) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
    Sha256::digest(text.as_bytes()).iter().flat_map(digits).collect()
}

#[derive(Default)]
struct Pieces {
    pieces: Vec<Piece>,
    /// Whether the statement defines something, so that NULL is a literal only after DEFAULT.
    defines: bool,
}

impl Pieces {
    fn add(&mut self, kind: TokenKind, bytes: &[u8], next: TokenKind) {
        let word = String::from_utf8_lossy(bytes);
        match kind {
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Double | TokenKind::Hexadecimal | TokenKind::Bits => {
                while self.ends_with_sign() {
                    self.pieces.pop();
                }
                self.add_value();
            }
            TokenKind::String | TokenKind::NationalString | TokenKind::Parameter => self.add_value(),
            TokenKind::Keyword(Keyword::Null) if self.takes_null() => self.add_value(),
            TokenKind::Keyword(keyword) => {
                self.defines |= self.pieces.is_empty() && matches!(keyword, Keyword::Create | Keyword::Alter);
                let begins = is_before_expression(keyword);
                self.pieces.push(Piece::Word(canonical(keyword.text()).to_owned(), begins));
            }
            TokenKind::Name if next == TokenKind::String && word.starts_with('_') => {
                self.pieces.push(Piece::Word("(_charset)".to_owned(), true));
            }
            TokenKind::Name if !self.ends_with(".") && is_word(&word, next) => {
                let upper = word.to_ascii_uppercase();
                self.pieces.push(Piece::Word(canonical(&upper).to_owned(), false));
            }
            TokenKind::Name => self.pieces.push(Piece::Name(word.into_owned())),
            TokenKind::QuotedName => {
                let quote = bytes.first().copied().unwrap_or(b'`');
                let twice = [char::from(quote); 2].iter().collect::<String>();
                let inside = word.get(1..word.len() - 1).unwrap_or_default();
                self.pieces.push(Piece::Name(inside.replace(&twice, &char::from(quote).to_string())));
            }
            TokenKind::UserVariable => {
                self.pieces.push(Piece::Word("@".to_owned(), false));
                let name = word.trim_start_matches('@').trim_matches(['`', '\'', '"']);
                self.pieces.push(Piece::Name(name.to_owned()));
            }
            TokenKind::AtAt => self.pieces.push(Piece::Word("@@".to_owned(), false)),
            TokenKind::Close => self.close(),
            TokenKind::NotEqual => self.pieces.push(Piece::Word("!=".to_owned(), true)),
            _ => self.pieces.push(Piece::Word(word.into_owned(), kind != TokenKind::Dot)),
        }
    }

    fn ends_with(&self, word: &str) -> bool {
        matches!(self.pieces.last(), Some(Piece::Word(last, _)) if last == word)
    }

    /// Whether the last piece is the sign of a number, not an operator between two operands.
    fn ends_with_sign(&self) -> bool {
        let before = self.pieces.len().checked_sub(2).map(|place| &self.pieces[place]);
        (self.ends_with("-") || self.ends_with("+")) && matches!(before, Some(Piece::Word(_, true)))
    }

    /// Whether NULL is a literal here, not a part of IS NULL or of a column's definition.
    fn takes_null(&self) -> bool {
        match self.defines {
            true => self.ends_with("DEFAULT"),
            false => !self.ends_with("IS") && !self.ends_with("NOT"),
        }
    }

    fn add_value(&mut self) {
        if let [.., Piece::Value | Piece::Values, Piece::Word(comma, _)] = &self.pieces[..]
            && comma == ","
        {
            self.pieces.truncate(self.pieces.len() - 2);
            return self.pieces.push(Piece::Values);
        }
        self.pieces.push(Piece::Value);
    }

    /// A closing parenthesis makes a row of a value or list, and rows of a row behind another.
    fn close(&mut self) {
        let is_word = |piece: &Piece, text: &str| matches!(piece, Piece::Word(word, _) if word == text);
        let row = match &self.pieces[..] {
            [.., before, open, Piece::Value | Piece::Values] if is_word(open, "(") && is_word(before, "IN") => {
                self.pieces.truncate(self.pieces.len() - 3);
                return self.pieces.push(Piece::InList);
            }
            [.., open, Piece::Value] if is_word(open, "(") => Piece::Row,
            [.., open, Piece::Values] if is_word(open, "(") => Piece::LongRow,
            _ => return self.pieces.push(Piece::Word(")".to_owned(), false)),
        };
        self.pieces.truncate(self.pieces.len() - 2);
        let rows = match (&self.pieces[..], &row) {
            ([.., Piece::Row | Piece::Rows, comma], Piece::Row) if is_word(comma, ",") => Some(Piece::Rows),
            ([.., Piece::LongRow | Piece::LongRows, comma], Piece::LongRow) if is_word(comma, ",") => {
                Some(Piece::LongRows)
            }
            _ => None,
        };
        if rows.is_some() {
            self.pieces.truncate(self.pieces.len() - 2);
        }
        self.pieces.push(rows.unwrap_or(row));
    }

    fn print(mut self, bytes_max: usize) -> String {
        while self.ends_with(";") {
            self.pieces.pop();
        }
        let mut out = String::new();
        let mut is_glued = true;
        for piece in &self.pieces {
            if !is_glued {
                out.push(' ');
            }
            let quoted;
            let text = match piece {
                Piece::Value => "?",
                Piece::Values => "?, ...",
                Piece::Row => "(?)",
                Piece::LongRow => "(...)",
                Piece::Rows => "(?) /* , ... */",
                Piece::LongRows => "(...) /* , ... */",
                Piece::InList => "IN (...)",
                Piece::Name(name) => {
                    quoted = junctor_model::quoted_name::quoted_name(name);
                    &quoted
                }
                Piece::Word(word, _) => word,
            };
            out.push_str(text);
            is_glued = text.starts_with('@');
            if out.len() > bytes_max {
                let end = (0..=bytes_max).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
                out.truncate(end);
                out.push_str("...");
                return out;
            }
        }
        out
    }
}

/// Whether a sign behind the keyword belongs to a number.
fn is_before_expression(keyword: Keyword) -> bool {
    use Keyword::{
        All, And, Between, By, Case, Default, Distinct, Div, Else, Escape, Having, If, In, Interval, Like, Limit, Mod,
        Not, On, Or, Regexp, Return, Rlike, Select, Set, Then, Value, Values, When, Where, Xor,
    };
    [
        All, And, Between, By, Case, Default, Distinct, Div, Else, Escape, Having, If, In, Interval, Like, Limit, Mod,
        Not, On, Or, Regexp, Return, Rlike, Select, Set, Then, Value, Values, When, Where, Xor,
    ]
    .contains(&keyword)
}

/// The word that MySQL prints for all words with the same meaning.
fn canonical(word: &str) -> &str {
    match word {
        "INT" | "INT4" => "INTEGER",
        "BIGINT" => "INT8",
        "INT2" => "SMALLINT",
        "INT1" => "TINYINT",
        "INT3" | "MEDIUMINT" => "MIDDLEINT",
        "CHAR" => "CHARACTER",
        "VARCHAR" => "VARCHARACTER",
        "DEC" => "DECIMAL",
        "DOUBLE" => "FLOAT8",
        "FLOAT" => "FLOAT4",
        "DATABASE" => "SCHEMA",
        "DATABASES" => "SCHEMAS",
        "DISTINCT" => "DISTINCTROW",
        "COLUMNS" => "FIELDS",
        "INDEXES" => "KEYS",
        "REGEXP" => "RLIKE",
        "ANY" => "SOME",
        "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" => "NOW",
        "CURRENT_DATE" => "CURDATE",
        "CURRENT_TIME" => "CURTIME",
        "SUBSTR" | "MID" => "SUBSTRING",
        word => word,
    }
}

/// The words of MySQL 8.0, sorted, and whether they are reserved. Names of functions do not count.
pub fn mysql_words() -> Vec<(&'static str, bool)> {
    let mut words: Vec<_> = Keyword::all().map(|keyword| (keyword.text(), keyword.is_reserved())).collect();
    words.extend(WORDS.iter().map(|word| (*word, false)));
    words.sort_unstable();
    words
}

/// Whether a word that is no keyword of the parser is one of MySQL; some only before a parenthesis.
fn is_word(word: &str, next: TokenKind) -> bool {
    let upper = word.to_ascii_uppercase();
    WORDS.binary_search(&&*upper).is_ok() || next == TokenKind::Open && CALLED.binary_search(&&*upper).is_ok()
}

/// Words of MySQL 8.0 that the parser does not need, sorted.
const WORDS: &[&str] = &[
    "ACCOUNT",
    "ACTION",
    "ACTIVE",
    "ADMIN",
    "AFTER",
    "AGGREGATE",
    "AT",
    "ATTRIBUTE",
    "AUTHENTICATION",
    "AUTOEXTEND_SIZE",
    "AVG",
    "AVG_ROW_LENGTH",
    "BLOCK",
    "BUCKETS",
    "BULK",
    "CACHE",
    "CASCADED",
    "CATALOG_NAME",
    "CHANGED",
    "CHANNEL",
    "CIPHER",
    "CLASS_ORIGIN",
    "CLIENT",
    "CLONE",
    "CLOSE",
    "COALESCE",
    "CODE",
    "COLUMN_NAME",
    "COMPACT",
    "COMPLETION",
    "COMPONENT",
    "COMPRESSED",
    "COMPRESSION",
    "CONCURRENT",
    "CONSTRAINT_CATALOG",
    "CONSTRAINT_NAME",
    "CONSTRAINT_SCHEMA",
    "CONTAINS",
    "CONTEXT",
    "CPU",
    "CURRENT",
    "CURSOR_NAME",
    "DATA",
    "DATAFILE",
    "DAY",
    "DEFAULT_AUTH",
    "DEFINITION",
    "DELAY_KEY_WRITE",
    "DESCRIPTION",
    "DIAGNOSTICS",
    "DIRECTORY",
    "DISABLE",
    "DISCARD",
    "DISK",
    "DUMPFILE",
    "DYNAMIC",
    "ENABLE",
    "ENCRYPTION",
    "ENDS",
    "ENGINE_ATTRIBUTE",
    "ERROR",
    "EVERY",
    "EXCHANGE",
    "EXCLUDE",
    "EXPANSION",
    "EXPIRE",
    "EXPORT",
    "EXTENT_SIZE",
    "FAILED_LOGIN_ATTEMPTS",
    "FAST",
    "FAULTS",
    "FILE",
    "FILE_BLOCK_SIZE",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FOLLOWS",
    "FOUND",
    "GENERAL",
    "GET_FORMAT",
    "GROUP_REPLICATION",
    "HISTOGRAM",
    "HISTORY",
    "HOST",
    "HOSTS",
    "HOUR",
    "IDENTIFIED",
    "INACTIVE",
    "INITIAL_SIZE",
    "INSERT_METHOD",
    "INVOKER",
    "IO",
    "IO_THREAD",
    "IPC",
    "ISSUER",
    "JSON_VALUE",
    "LANGUAGE",
    "LAST",
    "LEAVES",
    "LIST",
    "LOCKS",
    "LOG",
    "MAX_CONNECTIONS_PER_HOUR",
    "MAX_QUERIES_PER_HOUR",
    "MAX_ROWS",
    "MAX_SIZE",
    "MAX_UPDATES_PER_HOUR",
    "MAX_USER_CONNECTIONS",
    "MEDIUM",
    "MEMORY",
    "MERGE",
    "MESSAGE_TEXT",
    "MICROSECOND",
    "MIGRATE",
    "MINUTE",
    "MIN_ROWS",
    "MODIFY",
    "MONTH",
    "MUTEX",
    "MYSQL_ERRNO",
    "NAME",
    "NDBCLUSTER",
    "NESTED",
    "NETWORK_NAMESPACE",
    "NEVER",
    "NEW",
    "NODEGROUP",
    "NONE",
    "NO_WAIT",
    "NULLS",
    "NUMBER",
    "OFF",
    "OJ",
    "OLD",
    "ONE",
    "OPTIONAL",
    "OPTIONS",
    "ORDINALITY",
    "ORGANIZATION",
    "OTHERS",
    "OWNER",
    "PACK_KEYS",
    "PAGE",
    "PARTIAL",
    "PARTITIONING",
    "PASSWORD_LOCK_TIME",
    "PATH",
    "PHASE",
    "PLUGIN",
    "PLUGIN_DIR",
    "PORT",
    "PRECEDES",
    "PRECEDING",
    "PRESERVE",
    "PREV",
    "PROCESS",
    "PROXY",
    "QUARTER",
    "RANDOM",
    "READ_ONLY",
    "REBUILD",
    "RECOVER",
    "REDUNDANT",
    "REFERENCE",
    "RELAY",
    "RELAYLOG",
    "RELAY_LOG_FILE",
    "RELAY_LOG_POS",
    "RELAY_THREAD",
    "RELOAD",
    "REMOVE",
    "REORGANIZE",
    "REPLICATION",
    "RESOURCE",
    "RESPECT",
    "RESTORE",
    "RESUME",
    "RETAIN",
    "RETURNED_SQLSTATE",
    "RETURNS",
    "REUSE",
    "REVERSE",
    "ROTATE",
    "ROUTINE",
    "ROW_COUNT",
    "RTREE",
    "SCHEDULE",
    "SCHEMA_NAME",
    "SECOND",
    "SECONDARY",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "SECONDARY_LOAD",
    "SECONDARY_UNLOAD",
    "SIMPLE",
    "SLOW",
    "SOCKET",
    "SONAME",
    "SOURCE",
    "SQL_AFTER_GTIDS",
    "SQL_AFTER_MTS_GAPS",
    "SQL_BEFORE_GTIDS",
    "SQL_THREAD",
    "SQL_TSI_DAY",
    "SQL_TSI_HOUR",
    "SQL_TSI_MINUTE",
    "SQL_TSI_MONTH",
    "SQL_TSI_QUARTER",
    "SQL_TSI_SECOND",
    "SQL_TSI_WEEK",
    "SQL_TSI_YEAR",
    "STACKED",
    "STARTS",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "STREAM",
    "STRING",
    "SUBCLASS_ORIGIN",
    "SUBJECT",
    "SUBPARTITION",
    "SUBPARTITIONS",
    "SUPER",
    "SUSPEND",
    "SWAPS",
    "SWITCHES",
    "TABLE_CHECKSUM",
    "TABLE_NAME",
    "TEMPTABLE",
    "THAN",
    "THREAD_PRIORITY",
    "TIES",
    "TLS",
    "TYPES",
    "UNBOUNDED",
    "UNDEFINED",
    "UNDOFILE",
    "UNDO_BUFFER_SIZE",
    "UNTIL",
    "UPGRADE",
    "URL",
    "USER_RESOURCES",
    "USE_FRM",
    "VALIDATION",
    "VCPU",
    "WAIT",
    "WEEK",
    "WEIGHT_STRING",
    "WITHOUT",
    "WRAPPER",
    "X509",
    "XID",
    "XML",
    "ZONE",
];

/// Functions whose names are words of MySQL only before a parenthesis, sorted.
const CALLED: &[&str] = &[
    "ADDDATE",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "COUNT",
    "CURDATE",
    "CURTIME",
    "DATE_ADD",
    "DATE_SUB",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MID",
    "MIN",
    "NOW",
    "SESSION_USER",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "ST_COLLECT",
    "SUBDATE",
    "SUM",
    "SYSDATE",
    "SYSTEM_USER",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> String {
        digest_text(text.as_bytes(), Dialect::default(), 1024)
    }

    #[test]
    fn statements_are_normalised_as_in_mysql() {
        for (text, expected) in [
            (
                "SELECT * FROM mytable WHERE cola = 10 AND colb = 20",
                "SELECT * FROM `mytable` WHERE `cola` = ? AND `colb` = ?",
            ),
            ("select  1 -- comment\n ;", "SELECT ?"),
            ("SELECT a.b, count(*) FROM t", "SELECT `a` . `b` , COUNT ( * ) FROM `t`"),
            ("INSERT INTO t VALUES (1)", "INSERT INTO `t` VALUES (?)"),
            ("INSERT INTO t VALUES (1), (2), (3)", "INSERT INTO `t` VALUES (?) /* , ... */"),
            ("INSERT INTO t VALUES (1, 'a'), (NULL, -2)", "INSERT INTO `t` VALUES (...) /* , ... */"),
            ("SELECT a FROM t WHERE b IN (1)", "SELECT `a` FROM `t` WHERE `b` IN (...)"),
            ("SELECT a FROM t WHERE b IN (1, 2, ?)", "SELECT `a` FROM `t` WHERE `b` IN (...)"),
            ("SELECT 1, 2, 3", "SELECT ?, ..."),
            ("SELECT a - 1, -1, b = -1", "SELECT `a` - ?, ... , `b` = ?"),
            (
                "SELECT a FROM t WHERE b IS NOT NULL AND c = NULL",
                "SELECT `a` FROM `t` WHERE `b` IS NOT NULL AND `c` = ?",
            ),
            ("SELECT @@version_comment LIMIT 1", "SELECT @@`version_comment` LIMIT ?"),
            ("SET @x = 1", "SET @`x` = ?"),
            ("SELECT _utf8mb4'x'", "SELECT (_charset) ?"),
            ("CREATE TABLE t (a INT NULL DEFAULT NULL)", "CREATE TABLE `t` ( `a` INTEGER NULL DEFAULT ? )"),
            ("SELECT `a``b`, f(x) FROM d.`select`", "SELECT `a``b` , `f` ( `x` ) FROM `d` . `select`"),
            ("SELECT count FROM t WHERE a <> 1", "SELECT `count` FROM `t` WHERE `a` != ?"),
        ] {
            assert_eq!(digest(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(digest_text("SELECT `äöü`".as_bytes(), Dialect::default(), 9), "SELECT `...");
    }

    #[test]
    fn words_are_sorted() {
        for words in [WORDS, CALLED] {
            assert!(words.is_sorted());
            for word in words {
                assert_eq!(Keyword::find(word.as_bytes()), None, "{word}");
            }
        }
    }
}
