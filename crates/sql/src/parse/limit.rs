//! The bounds of the parser. Reaching one is an error to the user, never a crash.

/// Deepest nesting of an expression or statement, and the greatest height of an expression tree. Everything that
/// walks a tree by recursion may rely on it. AND and OR are not nested: a run of them is one node. A descent to this depth
/// takes at most 384 KiB of stack, and 1.25 MiB in builds without optimisation.
pub const NESTING_MAX: u32 = 128;

/// Most parameters (`?`) of a statement: their number has 16 bits in the protocol.
pub const PARAMETERS_MAX: u32 = 65_535;

/// Most characters of a name, as in MySQL.
pub const NAME_CHARACTERS_MAX: usize = 64;

/// Most characters of an alias, as in MySQL.
pub const ALIAS_CHARACTERS_MAX: usize = 256;

/// Longest statement in bytes: the greatest `max_allowed_packet`. Positions in it fit in 32 bits.
pub const STATEMENT_BYTES_MAX: usize = 1 << 30;

/// The version that executable comments are compared with: `/*!80036 ... */` runs, `/*!80037 ... */` does not.
pub const COMMENT_VERSION: u32 = 80_036;

/// Longest normalised text of a statement shape, in bytes. Longer statements are parsed each time.
pub const SHAPE_BYTES_MAX: usize = 16 * 1024;

/// Most literals that a statement shape lifts. Statements with more are parsed each time.
pub const SHAPE_LITERALS_MAX: usize = 1 << 18;
