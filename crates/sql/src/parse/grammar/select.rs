//! The clauses of queries, also those that UPDATE and DELETE share with them.

use super::parser::{Parse, Parser, Stop};
use crate::parse::deprecation::Deprecation;
use crate::parse::error::ParseErrorKind;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::literal::decode_integer;
use crate::parse::statement::{
    IndexHint, IndexHintKind, IntoFile, IntoTarget, Limit, LimitValue, LockingClause, ObjectName, OrderItem, Select,
    SelectItem, TableLocks, TableReference, WhenLocked,
};

impl Parser<'_> {
    /// INTO, which may be in several places, but only once.
    pub(super) fn parse_into(&mut self, select: &mut Select) -> Parse<()> {
        if !self.at_word(Keyword::Into) {
            return Ok(());
        }
        if !select.into.is_none() || !self.may_select_into {
            return self.syntax();
        }
        self.advance();
        let is_text = self.accept_word(Keyword::Outfile);
        select.into = match is_text || self.accept_text("DUMPFILE") {
            true => IntoTarget::File(Box::new(self.output_file(is_text)?)),
            false => IntoTarget::Variables(self.comma_list(Self::target_variable)?),
        };
        Ok(())
    }

    /// A user variable. A plain name is a variable of a stored program, of which there are none.
    fn target_variable(&mut self) -> Parse<String> {
        match Self::is_name(self.current) {
            true => Err(Stop::Error(ParseErrorKind::UndeclaredVariable, self.current.start)),
            false => self.user_variable_name(),
        }
    }

    /// The file of INTO OUTFILE, or with `is_text` false of INTO DUMPFILE, and its options.
    fn output_file(&mut self, is_text: bool) -> Parse<IntoFile> {
        if self.is_lifting() {
            return Err(Stop::LiteralsMatter);
        }
        let file = self.string()?;
        let has_character_set = is_text && self.accept_character_set();
        let character_set = if has_character_set { Some(self.character_set_name()?) } else { None };
        let format = if is_text { Some(self.file_format()?) } else { None };
        Ok(IntoFile { file, character_set, format })
    }

    pub(super) fn select_options(&mut self, select: &mut Select) {
        while let Some(keyword) = self.word() {
            match keyword {
                Keyword::Distinct | Keyword::Distinctrow => select.distinct = true,
                Keyword::SqlCalcFoundRows => {
                    select.calc_found_rows = true;
                    self.note(Deprecation::CalcFoundRows);
                }
                Keyword::StraightJoin => select.keeps_order = true,
                Keyword::All
                | Keyword::HighPriority
                | Keyword::SqlSmallResult
                | Keyword::SqlBigResult
                | Keyword::SqlBufferResult
                | Keyword::SqlNoCache
                | Keyword::SqlCache => {}
                _ => return,
            }
            self.advance();
        }
    }

    /// A select list, also of RETURNING.
    pub(super) fn select_list(&mut self) -> Parse<Vec<SelectItem>> {
        let first = self.current.start;
        self.comma_list(|parser: &mut Self| match parser.current.kind == TokenKind::Star {
            // As in MySQL, a star without a table is only the first member.
            true if parser.current.start != first => parser.syntax(),
            _ => parser.select_item(),
        })
    }

    /// A member of a select list.
    fn select_item(&mut self) -> Parse<SelectItem> {
        if self.accept(TokenKind::Star) {
            return Ok(SelectItem::All(None));
        }
        // `t.*` and `d.t.*` begin like a column, so check for the star before the expression rule consumes
        // the name.
        if Self::is_name(self.current) && self.next.kind == TokenKind::Dot {
            let table = match self.peek_three() {
                [TokenKind::Star, ..] => Some(ObjectName { database: None, name: self.name()? }),
                [_, TokenKind::Dot, TokenKind::Star] => Some(self.object_name()?),
                _ => None,
            };
            if table.is_some() {
                self.expect(TokenKind::Dot)?;
                self.expect(TokenKind::Star)?;
                return Ok(SelectItem::All(table));
            }
        }
        let start = self.current.start;
        let expression = self.expression()?;
        let text = self.text_since(start);
        let alias = match self.accept_word(Keyword::As) {
            true => Some(self.alias()?),
            false if self.current.kind == TokenKind::String || self.at_bare_alias() => Some(self.alias()?),
            false => None,
        };
        Ok(SelectItem::Expression { expression, alias, text })
    }

    /// A table with its alias and index hints.
    pub(super) fn table_reference(&mut self) -> Parse<TableReference> {
        let name = self.object_name()?;
        self.table_reference_of(name)
    }

    /// The alias and index hints after the name of a table.
    pub(super) fn table_reference_of(&mut self, name: ObjectName) -> Parse<TableReference> {
        if self.at_word(Keyword::Partition) {
            return self.unsupported("PARTITION selection");
        }
        let alias = self.table_alias()?;
        let mut index_hints = Vec::new();
        loop {
            let kind = match self.word() {
                Some(Keyword::Use) => IndexHintKind::Use,
                Some(Keyword::Force) => IndexHintKind::Force,
                Some(Keyword::Ignore) => IndexHintKind::Ignore,
                _ => return Ok(TableReference { name, alias, index_hints }),
            };
            self.advance();
            index_hints.push(self.index_hint(kind)?);
        }
    }

    /// Whether the current word is an alias without AS. RETURNING is not, where it may begin a clause.
    fn at_bare_alias(&self) -> bool {
        Self::is_name(self.current) && !(self.may_return && self.at_word(Keyword::Returning))
    }

    pub(super) fn table_alias(&mut self) -> Parse<Option<String>> {
        if self.accept_word(Keyword::As) || self.at_bare_alias() { Ok(Some(self.alias()?)) } else { Ok(None) }
    }

    fn index_hint(&mut self, kind: IndexHintKind) -> Parse<IndexHint> {
        if self.accept_any(&[Keyword::Index, Keyword::Key]).is_none() {
            return self.syntax();
        }
        if self.accept_word(Keyword::For)
            && !self.accept_word(Keyword::Join)
            && !self.accept_words(Keyword::Order, Keyword::By)
            && !self.accept_words(Keyword::Group, Keyword::By)
        {
            return self.syntax();
        }
        self.expect(TokenKind::Open)?;
        let indexes = if kind == IndexHintKind::Use && self.current.kind == TokenKind::Close {
            Vec::new()
        } else {
            self.comma_list(|parser| if parser.at_word(Keyword::Primary) { parser.any_word() } else { parser.name() })?
        };
        self.expect(TokenKind::Close)?;
        Ok(IndexHint { kind, indexes, is_comment: false })
    }

    pub(super) fn grouping(&mut self, select: &mut Select) -> Parse<()> {
        if self.accept_words(Keyword::Group, Keyword::By) {
            select.group_by = self.comma_list(|parser| {
                let expression = parser.expression()?;
                let _ = parser.accept_any(&[Keyword::Asc, Keyword::Desc]);
                Ok(expression)
            })?;
            select.with_rollup = self.accept_words(Keyword::With, Keyword::Rollup);
        }
        select.having = self.condition_after(Keyword::Having)?;
        select.windows = self.windows()?;
        Ok(())
    }

    /// ORDER BY, if present.
    pub(super) fn order_by(&mut self) -> Parse<Vec<OrderItem>> {
        if !self.accept_words(Keyword::Order, Keyword::By) {
            return Ok(Vec::new());
        }
        self.comma_list(|parser| {
            let expression = parser.expression()?;
            let descending = parser.accept_any(&[Keyword::Asc, Keyword::Desc]) == Some(Keyword::Desc);
            Ok(OrderItem { expression, descending })
        })
    }

    /// LIMIT with an optional offset, if present.
    pub(super) fn limit(&mut self) -> Parse<Option<Limit>> {
        if !self.accept_word(Keyword::Limit) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.accept(TokenKind::Comma) {
            return Ok(Some(Limit { count: self.limit_value()?, offset: Some(first) }));
        }
        let offset = if self.accept_word(Keyword::Offset) { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { count: first, offset }))
    }

    /// LIMIT of UPDATE and DELETE, if present. It has no offset.
    pub(super) fn limit_count(&mut self) -> Parse<Option<LimitValue>> {
        if self.accept_word(Keyword::Limit) { Ok(Some(self.limit_value()?)) } else { Ok(None) }
    }

    fn limit_value(&mut self) -> Parse<LimitValue> {
        match self.current.kind {
            TokenKind::Parameter => Ok(LimitValue::Parameter(self.parameter()?)),
            // An integer beyond 64 bits is a syntax error here, whether or not it becomes a parameter.
            TokenKind::Integer if decode_integer(self.bytes(self.current)).is_some() => match self.lifted_literal() {
                Some(ordinal) => Ok(LimitValue::Parameter(ordinal)),
                None => Ok(LimitValue::Rows(self.long_number()?)),
            },
            _ => self.syntax(),
        }
    }

    /// FOR UPDATE, FOR SHARE or LOCK IN SHARE MODE; `None` if none follows.
    pub(super) fn locking_clause(&mut self) -> Parse<Option<TableLocks>> {
        if self.accept_words(Keyword::Lock, Keyword::In) {
            self.expect_word(Keyword::Share)?;
            self.expect_word(Keyword::Mode)?;
            let clause = LockingClause { exclusive: false, when_locked: WhenLocked::Wait };
            return Ok(Some(TableLocks { clause, names: Vec::new() }));
        }
        if !self.accept_word(Keyword::For) {
            return Ok(None);
        }
        let exclusive = match self.accept_any(&[Keyword::Update, Keyword::Share]) {
            Some(keyword) => keyword == Keyword::Update,
            None => return self.syntax(),
        };
        let names = if self.accept_word(Keyword::Of) { self.comma_list(Self::object_name)? } else { Vec::new() };
        let when_locked = if self.accept_word(Keyword::Nowait) {
            WhenLocked::Fail
        } else if self.accept_words(Keyword::Skip, Keyword::Locked) {
            WhenLocked::Skip
        } else {
            WhenLocked::Wait
        };
        Ok(Some(TableLocks { clause: LockingClause { exclusive, when_locked }, names }))
    }
}
