//! The parser's limits. A statement that exceeds one gets an error or is parsed at each execution; it never
//! crashes.

/// Maximum nesting of a statement or expression, and maximum height of an expression tree. Recursive
/// functions over trees rely on this limit. AND and OR do not nest: a run of them is one node. Parsing at
/// this depth takes at most 384 KiB of stack, or 1.25 MiB in builds without optimisation.
pub const NESTING_MAX: u32 = 128;

/// Maximum number of parameters (`?`) of a statement; the protocol counts them in 16 bits.
pub const PARAMETERS_MAX: u32 = 65_535;

/// Maximum number of characters of a name, as in MySQL.
pub const NAME_CHARACTERS_MAX: usize = 64;

/// Maximum number of characters of an alias, as in MySQL.
pub const ALIAS_CHARACTERS_MAX: usize = 256;

/// Maximum length of a statement in bytes, which is the maximum of `max_allowed_packet`. Token offsets
/// therefore fit in 32 bits.
pub const STATEMENT_BYTES_MAX: usize = 1 << 30;

/// The server version that decides which executable comments run: `/*!80036 ... */` does, `/*!80037 ... */`
/// does not.
pub const COMMENT_VERSION: u32 = 80_036;

/// Maximum length of the normalised text of a statement shape, in bytes. A longer statement is parsed at each
/// execution.
pub const SHAPE_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of lifted literals in a statement shape. A statement with more literals is parsed at each
/// execution.
pub const SHAPE_LITERALS_MAX: usize = 1 << 18;

/// Maximum number of queries inside each other.
pub const QUERY_NESTING_MAX: u32 = 24;

/// Maximum number of tables and joins in brackets in FROM, as in MySQL.
pub const JOINED_TABLES_MAX: u32 = 61;

/// Maximum number of queries in a statement. Each is at least one operator on top of others.
pub const QUERIES_MAX: u32 = 128;
