//! The description of a result column that a client gets.

use crate::collation::{CharacterSet, CollationId};
use crate::id::ColumnNumber;
use crate::schema::{ColumnDefinition, IndexKind, TableDefinition};

/// The type codes of the MySQL protocol that results can have.
pub mod wire_type {
    /// TINYINT, 1 byte.
    pub const TINY: u8 = 1;
    /// SMALLINT, 2 bytes.
    pub const SHORT: u8 = 2;
    /// INT, 4 bytes.
    pub const LONG: u8 = 3;
    /// FLOAT, 4 bytes.
    pub const FLOAT: u8 = 4;
    /// DOUBLE, 8 bytes.
    pub const DOUBLE: u8 = 5;
    /// The type of a bare NULL.
    pub const NULL: u8 = 6;
    /// TIMESTAMP, in binary rows as a DATETIME.
    pub const TIMESTAMP: u8 = 7;
    /// BIGINT, 8 bytes.
    pub const LONGLONG: u8 = 8;
    /// MEDIUMINT, 4 bytes in binary rows.
    pub const INT24: u8 = 9;
    /// DATE.
    pub const DATE: u8 = 10;
    /// TIME.
    pub const TIME: u8 = 11;
    /// DATETIME.
    pub const DATETIME: u8 = 12;
    /// YEAR, 2 bytes.
    pub const YEAR: u8 = 13;
    /// BIT, as bytes.
    pub const BIT: u8 = 16;
    /// VECTOR, as bytes.
    pub const VECTOR: u8 = 242;
    /// JSON, as text.
    pub const JSON: u8 = 245;
    /// DECIMAL, as text.
    pub const NEWDECIMAL: u8 = 246;
    /// TEXT and BLOB of every length.
    pub const BLOB: u8 = 252;
    /// VARCHAR and VARBINARY.
    pub const VAR_STRING: u8 = 253;
    /// CHAR and BINARY.
    pub const STRING: u8 = 254;
    /// POINT and the other spatial types, as bytes.
    pub const GEOMETRY: u8 = 255;
}

/// The column flags of the MySQL protocol. Clients derive "is a number" (32768) from the type themselves.
pub mod column_flag {
    /// Never NULL.
    pub const NOT_NULL: u16 = 1;
    /// Part of the primary key.
    pub const PRIMARY_KEY: u16 = 2;
    /// The only column of a unique index.
    pub const UNIQUE_KEY: u16 = 4;
    /// The first column of another index.
    pub const MULTIPLE_KEY: u16 = 8;
    /// TEXT or BLOB.
    pub const BLOB: u16 = 16;
    /// UNSIGNED.
    pub const UNSIGNED: u16 = 32;
    /// ZEROFILL.
    pub const ZEROFILL: u16 = 64;
    /// A binary collation; set for numeric literals too.
    pub const BINARY: u16 = 128;
    /// ENUM.
    pub const ENUM: u16 = 256;
    /// AUTO_INCREMENT.
    pub const AUTO_INCREMENT: u16 = 512;
    /// TIMESTAMP.
    pub const TIMESTAMP: u16 = 1024;
    /// SET.
    pub const SET: u16 = 2048;
    /// NOT NULL and no default.
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub const ON_UPDATE_NOW: u16 = 8192;
    /// Part of some index.
    pub const PART_KEY: u16 = 16384;
}

/// The number of decimals of a number without a fixed number of them.
pub const DECIMALS_NOT_FIXED: u8 = 31;

/// One column of a result, as in its definition packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The name or alias in the result.
    pub name: Box<str>,
    /// The column's own name; empty for an expression.
    pub org_name: Box<str>,
    /// The table or its alias; empty for an expression.
    pub table: Box<str>,
    /// The table's own name; empty for an expression.
    pub org_table: Box<str>,
    /// The database; empty for an expression.
    pub database: Box<str>,
    /// One of the codes in [`wire_type`].
    pub wire_type: u8,
    /// Bits of [`column_flag`].
    pub flags: u16,
    /// The number of the collation: 63 for numbers and binary strings.
    pub charset: u16,
    /// Maximum number of bytes of the value as text; 4 per character of utf8mb4.
    pub length: u32,
    /// Digits after the point; 31 if not fixed.
    pub decimals: u8,
}

impl ResultColumn {
    /// The description of a table's column, under its own name and its table's.
    pub fn of_table(table: &TableDefinition, column: ColumnNumber) -> ResultColumn {
        let definition = &table.columns[usize::from(column.0)];
        let mut result = ResultColumn::of_definition(definition);
        result.table = table.name.clone();
        result.org_table = table.name.clone();
        result.database = table.database.clone();
        for (position, index) in table.indexes.iter().enumerate() {
            let Some(part) = index.columns.iter().position(|part| *part == column) else { continue };
            result.flags |= column_flag::PART_KEY;
            if position == 0 && matches!(index.kind, IndexKind::Primary { .. }) {
                result.flags |= column_flag::PRIMARY_KEY;
            } else if part == 0 && index.is_unique() && index.columns.len() == 1 {
                result.flags |= column_flag::UNIQUE_KEY;
            } else if part == 0 {
                result.flags |= column_flag::MULTIPLE_KEY;
            }
        }
        result
    }

    /// The character set into which a client that wants `results` gets the values, if their bytes are not
    /// those of UTF-8 or some characters may be missing. `None` in `results` is NULL: each column in its own
    /// set.
    pub fn recoded_for(&self, results: Option<CollationId>) -> Option<CharacterSet> {
        let own = CollationId::from_number(self.charset).ok()?.character_set();
        let wanted = match results.map(CollationId::character_set) {
            None | Some(CharacterSet::Binary) => own,
            Some(wanted) => wanted,
        };
        (own != CharacterSet::Binary && (wanted.is_recoded() || !own.is_within(wanted))).then_some(wanted)
    }

    /// The number of the collation and the maximum length for a client that wants `results`.
    pub fn described_for(&self, results: Option<CollationId>) -> (u16, u32) {
        let own = CollationId::from_number(self.charset).unwrap_or(CollationId::BINARY);
        match results {
            Some(wanted) if !wanted.is_binary() && !own.is_binary() => {
                let bytes = [own, wanted].map(|collation| collation.max_bytes_per_character() as u32);
                let length = match bytes[0] == bytes[1] {
                    true => self.length,
                    false => (self.length / bytes[0]).saturating_mul(bytes[1]),
                };
                (wanted.number(), length)
            }
            _ => (self.charset, self.length),
        }
    }

    /// The part of the description that follows from the column's definition alone: without table, database
    /// and key flags.
    pub fn of_definition(definition: &ColumnDefinition) -> ResultColumn {
        let wire = definition.column_type.wire();
        let collation = definition.column_type.collation();
        let mut flags = wire.flags;
        let mut set = |condition: bool, flag: u16| flags |= if condition { flag } else { 0 };
        set(!definition.nullable, column_flag::NOT_NULL);
        set(definition.auto_increment, column_flag::AUTO_INCREMENT);
        set(definition.on_update_now, column_flag::ON_UPDATE_NOW);
        // MySQL marks only a TIMESTAMP that it sets by itself.
        let is_set = definition.default_now || definition.on_update_now;
        set(is_set && wire.code == wire_type::TIMESTAMP, column_flag::TIMESTAMP);
        let has_default = definition.default.is_some() || definition.auto_increment || definition.default_now;
        set(!definition.nullable && !has_default, column_flag::NO_DEFAULT_VALUE);
        set(collation.is_some_and(CollationId::is_code_point_order), column_flag::BINARY);
        ResultColumn {
            name: definition.name.clone(),
            org_name: definition.name.clone(),
            table: "".into(),
            org_table: "".into(),
            database: "".into(),
            wire_type: wire.code,
            flags,
            charset: collation.unwrap_or(CollationId::BINARY).number(),
            length: definition.display_width.map_or(wire.length, u32::from),
            decimals: wire.decimals,
        }
    }
}
