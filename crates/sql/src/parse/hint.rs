//! Optimizer hints: the comment `/*+ ... */` after SELECT.

use std::fmt;

use super::dialect::Dialect;
use super::lexer::{Lexer, Token, TokenKind, is_blank_byte};
use super::literal::decode_integer;
use super::statement::IndexHintKind;

/// Maximum number of hints of a query block. More than any client sends; the rest is a syntax error.
const HINTS_MAX: usize = 256;

/// The hints of a query block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// The hints before the first syntax error.
    pub list: Vec<Hint>,
    /// The text at the first syntax error, and its line in the statement, counted from 1.
    pub error: Option<(Box<str>, u32)>,
}

/// A hint.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// Its name in upper case.
    pub name: &'static str,
    /// The query block for which it is meant, if not the one where it is written.
    pub block: Option<String>,
    /// Its effect.
    pub kind: HintKind,
}

/// The effect of a hint, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum HintKind {
    /// QB_NAME: the name of the query block.
    BlockName(String),
    /// MAX_EXECUTION_TIME, in milliseconds.
    ExecutionTime(u32),
    /// SET_VAR.
    SetVariable {
        /// The system variable.
        name: String,
        /// Its value.
        value: HintValue,
    },
    /// JOIN_FIXED_ORDER: tables are joined in the order of FROM.
    FixedOrder,
    /// JOIN_ORDER, JOIN_PREFIX and JOIN_SUFFIX.
    JoinOrder(JoinOrderKind, Vec<HintTable>),
    /// The indexes that a table may or may not use; `None` for a hint that changes nothing here.
    Index(Option<IndexHintKind>, HintTable, Vec<String>),
    /// A hint for tables that changes nothing here.
    Tables(Vec<HintTable>),
    /// A hint that changes nothing here.
    Nothing,
}

/// The value of a variable in SET_VAR.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HintValue {
    Number(u64),
    /// A string without its quotes, or a word.
    Text(String),
}

impl HintValue {
    /// The value, if it is a number.
    pub fn number(&self) -> Option<u64> {
        match self {
            HintValue::Number(number) => Some(*number),
            HintValue::Text(_) => None,
        }
    }
}

impl fmt::Display for HintValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HintValue::Number(number) => write!(formatter, "{number}"),
            HintValue::Text(text) => write!(formatter, "'{text}'"),
        }
    }
}

/// The hints about the order of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOrderKind {
    /// The tables are joined in this order, with others between them.
    Order,
    /// The tables are joined first, in this order.
    Prefix,
    /// The tables are joined last, in this order.
    Suffix,
}

/// A table in a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintTable {
    /// Its alias, or its name.
    pub name: String,
    /// Its query block, if not that of the hint.
    pub block: Option<String>,
}

/// The arguments of a hint.
#[derive(Clone, Copy)]
enum Form {
    BlockName,
    Number,
    Setting,
    Block,
    JoinOrder(JoinOrderKind),
    /// Tables, or none.
    Tables,
    /// A table and indexes of it.
    Indexes(Option<IndexHintKind>),
    /// Strategies of semijoins.
    Strategies,
    Name,
}

/// The hints of MySQL 8.0.
const FORMS: [(&str, Form); 37] = [
    ("BKA", Form::Tables),
    ("BNL", Form::Tables),
    ("DERIVED_CONDITION_PUSHDOWN", Form::Tables),
    ("GROUP_INDEX", Form::Indexes(None)),
    ("HASH_JOIN", Form::Tables),
    ("INDEX", Form::Indexes(Some(IndexHintKind::Use))),
    ("INDEX_MERGE", Form::Indexes(None)),
    ("JOIN_FIXED_ORDER", Form::Block),
    ("JOIN_INDEX", Form::Indexes(Some(IndexHintKind::Use))),
    ("JOIN_ORDER", Form::JoinOrder(JoinOrderKind::Order)),
    ("JOIN_PREFIX", Form::JoinOrder(JoinOrderKind::Prefix)),
    ("JOIN_SUFFIX", Form::JoinOrder(JoinOrderKind::Suffix)),
    ("MAX_EXECUTION_TIME", Form::Number),
    ("MERGE", Form::Tables),
    ("MRR", Form::Indexes(None)),
    ("NO_BKA", Form::Tables),
    ("NO_BNL", Form::Tables),
    ("NO_DERIVED_CONDITION_PUSHDOWN", Form::Tables),
    ("NO_GROUP_INDEX", Form::Indexes(None)),
    ("NO_HASH_JOIN", Form::Tables),
    ("NO_ICP", Form::Indexes(None)),
    ("NO_INDEX", Form::Indexes(Some(IndexHintKind::Ignore))),
    ("NO_INDEX_MERGE", Form::Indexes(None)),
    ("NO_JOIN_INDEX", Form::Indexes(Some(IndexHintKind::Ignore))),
    ("NO_MERGE", Form::Tables),
    ("NO_MRR", Form::Indexes(None)),
    ("NO_ORDER_INDEX", Form::Indexes(None)),
    ("NO_RANGE_OPTIMIZATION", Form::Indexes(None)),
    ("NO_SEMIJOIN", Form::Strategies),
    ("NO_SKIP_SCAN", Form::Indexes(None)),
    ("ORDER_INDEX", Form::Indexes(None)),
    ("QB_NAME", Form::BlockName),
    ("RESOURCE_GROUP", Form::Name),
    ("SEMIJOIN", Form::Strategies),
    ("SET_VAR", Form::Setting),
    ("SKIP_SCAN", Form::Indexes(None)),
    ("SUBQUERY", Form::Strategies),
];

/// The strategies for semijoins and subqueries.
const STRATEGIES: [&str; 5] = ["DUPSWEEDOUT", "FIRSTMATCH", "INTOEXISTS", "LOOSESCAN", "MATERIALIZATION"];

/// Reads the hints of a query block: `gap` is the text between SELECT and the token after it, `line` the
/// number of its line. `None` without a comment of hints.
pub(super) fn read_hints(gap: &[u8], line: u32, dialect: Dialect) -> Option<Box<Hints>> {
    let start = gap.iter().position(|byte| !is_blank_byte(*byte))?;
    let body = gap[start..].strip_prefix(b"/*+")?;
    let length = body.windows(2).position(|pair| pair == b"*/")?;
    let mut reader = Reader::new(&body[..length], dialect);
    let mut hints = Hints::default();
    while reader.current.kind != TokenKind::End {
        match reader.hint().filter(|_| hints.list.len() < HINTS_MAX) {
            Some(hint) => hints.list.push(hint),
            None => {
                let at = (reader.current.start as usize).min(length);
                let rest = String::from_utf8_lossy(&body[at..length + 2]);
                let lines = gap[..start].iter().chain(&body[..at]).filter(|byte| **byte == b'\n').count();
                hints.error = Some((rest.chars().take(80).collect(), line + lines as u32));
                break;
            }
        }
    }
    Some(Box::new(hints))
}

struct Reader<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    current: Token,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8], dialect: Dialect) -> Reader<'a> {
        let mut lexer = Lexer::new(text, 0, dialect);
        let current = lexer.next_token();
        Reader { text, lexer, current }
    }

    fn advance(&mut self) {
        self.current = self.lexer.next_token();
    }

    fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.current.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    /// `None` at any other token, which stays.
    fn expect(&mut self, kind: TokenKind) -> Option<()> {
        self.accept(kind).then_some(())
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text[self.current.start as usize..self.current.end as usize]
    }

    /// A word or a quoted name.
    fn name(&mut self) -> Option<String> {
        let bytes = match self.current.kind {
            TokenKind::Name | TokenKind::Keyword(_) => self.bytes().to_vec(),
            TokenKind::QuotedName => unquoted(self.bytes()),
            _ => return None,
        };
        let name = String::from_utf8(bytes).ok()?;
        self.advance();
        Some(name)
    }

    /// `@block`; the outer `None` is a syntax error.
    fn block(&mut self) -> Option<Option<String>> {
        if self.current.kind != TokenKind::UserVariable {
            return Some(None);
        }
        let written = self.bytes().get(1..)?;
        let is_quoted = written.first().is_some_and(|byte| matches!(byte, b'`' | b'"' | b'\''));
        let bytes = if is_quoted { unquoted(written) } else { written.to_vec() };
        let name = String::from_utf8(bytes).ok().filter(|name| !name.is_empty())?;
        self.advance();
        Some(Some(name))
    }

    fn table(&mut self) -> Option<HintTable> {
        Some(HintTable { name: self.name()?, block: self.block()? })
    }

    /// Members with commas between them, up to the closing bracket.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut members = Vec::new();
        if self.current.kind == TokenKind::Close {
            return Some(members);
        }
        loop {
            members.push(read(self)?);
            if !self.accept(TokenKind::Comma) {
                return Some(members);
            }
        }
    }

    /// A hint; `None` at a syntax error.
    fn hint(&mut self) -> Option<Hint> {
        let word = self.bytes();
        let (name, form) = *FORMS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word))?;
        self.advance();
        self.expect(TokenKind::Open)?;
        let has_block = !matches!(form, Form::BlockName | Form::Number | Form::Setting | Form::Name);
        let block = if has_block { self.block()? } else { None };
        let kind = match form {
            Form::BlockName => HintKind::BlockName(self.name()?),
            Form::Number => HintKind::ExecutionTime(u32::try_from(self.number()?).ok()?),
            Form::Setting => self.setting()?,
            Form::Block => HintKind::FixedOrder,
            Form::JoinOrder(kind) => {
                HintKind::JoinOrder(kind, self.list(Self::table).filter(|tables| !tables.is_empty())?)
            }
            Form::Tables => HintKind::Tables(self.list(Self::table)?),
            Form::Indexes(kind) => {
                let table = self.table()?;
                HintKind::Index(kind, table, self.list(Self::name)?)
            }
            Form::Strategies => {
                self.list(Self::strategy)?;
                HintKind::Nothing
            }
            Form::Name => {
                self.name()?;
                HintKind::Nothing
            }
        };
        self.expect(TokenKind::Close)?;
        Some(Hint { name, block, kind })
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.bytes();
        self.expect(TokenKind::Integer)?;
        decode_integer(bytes)
    }

    /// `variable = value`
    fn setting(&mut self) -> Option<HintKind> {
        let name = self.name()?;
        self.expect(TokenKind::Equal)?;
        let bytes = match self.current.kind {
            TokenKind::Integer => {
                let value = HintValue::Number(self.number()?);
                return Some(HintKind::SetVariable { name, value });
            }
            TokenKind::String => unquoted(self.bytes()),
            TokenKind::Decimal | TokenKind::Name | TokenKind::Keyword(_) => self.bytes().to_vec(),
            _ => return None,
        };
        let value = HintValue::Text(String::from_utf8(bytes).ok()?);
        self.advance();
        Some(HintKind::SetVariable { name, value })
    }

    fn strategy(&mut self) -> Option<()> {
        let word = self.bytes();
        let is_known = STRATEGIES.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word));
        is_known.then(|| self.advance())
    }
}

/// A name without its quotes, which are doubled inside it.
fn unquoted(written: &[u8]) -> Vec<u8> {
    let Some(quote) = written.first().copied() else { return Vec::new() };
    let inner = written.get(1..written.len().saturating_sub(1)).unwrap_or(&[]);
    let mut name = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == quote && bytes.peek() == Some(&quote) {
            bytes.next();
        }
        name.push(byte);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(gap: &str) -> Hints {
        *read_hints(gap.as_bytes(), 1, Dialect::default()).expect("a comment of hints")
    }

    fn table(name: &str, block: Option<&str>) -> HintTable {
        HintTable { name: name.to_owned(), block: block.map(str::to_owned) }
    }

    #[test]
    fn hints_have_names_blocks_tables_and_indexes() {
        let text = " /*+ qb_name(`a b`) JOIN_ORDER(t1, t2@`x`) No_Index(@sub t i, `PRIMARY`) MAX_EXECUTION_TIME(7)\n\
                    SET_VAR(sort_buffer_size = 16M) SEMIJOIN(@s FIRSTMATCH, LOOSESCAN) BKA() */ ";
        let found = read(text);
        assert_eq!(found.error, None);
        let kinds: Vec<_> = found.list.iter().map(|hint| (hint.name, hint.block.as_deref(), &hint.kind)).collect();
        let order = HintKind::JoinOrder(JoinOrderKind::Order, vec![table("t1", None), table("t2", Some("x"))]);
        let indexes = vec!["i".to_owned(), "PRIMARY".to_owned()];
        let index = HintKind::Index(Some(IndexHintKind::Ignore), table("t", None), indexes);
        let setting =
            HintKind::SetVariable { name: "sort_buffer_size".to_owned(), value: HintValue::Text("16M".to_owned()) };
        assert_eq!(
            kinds,
            [
                ("QB_NAME", None, &HintKind::BlockName("a b".to_owned())),
                ("JOIN_ORDER", None, &order),
                ("NO_INDEX", Some("sub"), &index),
                ("MAX_EXECUTION_TIME", None, &HintKind::ExecutionTime(7)),
                ("SET_VAR", None, &setting),
                ("SEMIJOIN", Some("s"), &HintKind::Nothing),
                ("BKA", None, &HintKind::Tables(Vec::new())),
            ]
        );
    }

    #[test]
    fn the_hints_before_a_syntax_error_are_kept() {
        let found = read("/*+ JOIN_FIXED_ORDER()\n INVALID(t) BKA() */");
        assert_eq!(found.list.len(), 1);
        assert_eq!(found.error, Some(("INVALID(t) BKA() */".into(), 2)));
        for wrong in ["/*+ JOIN_ORDER() */", "/*+ FIRSTMATCH() */", "/*+ MAX_EXECUTION_TIME(-1) */", "/*+ BKA(t */"] {
            assert!(read(wrong).error.is_some(), "{wrong}");
        }
    }

    #[test]
    fn other_comments_are_no_hints() {
        for text in ["", " ", "/* + BKA() */", "/*! BKA() */", "/**/ /*+ BKA() */"] {
            assert!(read_hints(text.as_bytes(), 1, Dialect::default()).is_none(), "{text}");
        }
    }
}
