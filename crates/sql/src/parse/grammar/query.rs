//! Query expressions: set operations, WITH, queries in brackets, and FROM.

use super::parser::{Parse, Parser, Stop};
use crate::parse::error::ParseErrorKind;
use crate::parse::expression::{Expression, SystemVariable};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::limit::{JOINED_TABLES_MAX, QUERIES_MAX, QUERY_NESTING_MAX};
use crate::parse::query::{
    DerivedSource, DerivedTable, FromItem, Join, JoinCondition, JoinKind, SetOperand, SetOperator,
};
use crate::parse::statement::{CommonTable, IntoTarget, Select, SelectItem};

impl Parser<'_> {
    /// A query with its set operations and the clauses after them.
    pub(super) fn query(&mut self) -> Parse<Select> {
        if self.query_depth >= QUERY_NESTING_MAX {
            return Err(Stop::Error(ParseErrorKind::NestingTooDeep, self.current.start));
        }
        self.query_depth += 1;
        let with = self.with_clause()?;
        let select = self.query_after(with)?;
        self.query_depth -= 1;
        Ok(select)
    }

    /// A query whose WITH has been read.
    pub(super) fn query_after(&mut self, with: Vec<CommonTable>) -> Parse<Select> {
        let tables = std::mem::take(&mut self.joined_tables);
        let first = self.intersected()?;
        let mut rest = Vec::new();
        while let Some(keyword) = self.accept_any(&[Keyword::Union, Keyword::Except]) {
            let operator = if keyword == Keyword::Union { SetOperator::Union } else { SetOperator::Except };
            let all = self.set_quantifier();
            rest.push(SetOperand { operator, all, query: self.intersected()? });
        }
        let mut select = self.with_last_clauses(combined(first, rest))?;
        if !with.is_empty() {
            if !select.with.is_empty() {
                return self.unsupported("WITH before a query that has WITH");
            }
            select.with = with;
        }
        self.joined_tables = tables;
        select.has_hints = self.has_hints;
        Ok(select)
    }

    /// A query in brackets.
    pub(super) fn subquery(&mut self) -> Parse<Select> {
        let may_select_into = std::mem::replace(&mut self.may_select_into, false);
        let may_return = std::mem::replace(&mut self.may_return, false);
        let height = std::mem::take(&mut self.height);
        self.enter()?;
        self.expect(TokenKind::Open)?;
        let select = self.query()?;
        self.expect(TokenKind::Close)?;
        self.leave();
        self.height = height;
        (self.may_select_into, self.may_return) = (may_select_into, may_return);
        Ok(select)
    }

    /// Consumes ANY, SOME or ALL before a query in brackets. Returns whether it is ALL.
    pub(super) fn quantifier(&mut self) -> Option<bool> {
        let is_before_query = self.next.kind == TokenKind::Open
            && matches!(
                self.peek_three(),
                [TokenKind::Open | TokenKind::Keyword(Keyword::Select | Keyword::With | Keyword::Table), ..]
                    | [TokenKind::Keyword(Keyword::Values), TokenKind::Keyword(Keyword::Row), _]
            );
        match is_before_query {
            true => {
                let keyword = self.accept_any(&[Keyword::Any, Keyword::Some, Keyword::All])?;
                Some(keyword == Keyword::All)
            }
            false => None,
        }
    }

    /// Whether the bracket at the current token begins a query.
    pub(super) fn is_query_next(&self) -> bool {
        self.current.kind == TokenKind::Open
            && match self.next.kind {
                TokenKind::Keyword(Keyword::Select | Keyword::With | Keyword::Table) => true,
                TokenKind::Keyword(Keyword::Values) => self.peek_three()[0] == TokenKind::Keyword(Keyword::Row),
                _ => false,
            }
    }

    /// ALL or DISTINCT after a set operator. Returns whether it is ALL.
    fn set_quantifier(&mut self) -> bool {
        let all = self.accept_word(Keyword::All);
        if !all {
            self.accept_word(Keyword::Distinct);
        }
        all
    }

    /// Queries joined by INTERSECT, which binds more tightly than the other set operators.
    fn intersected(&mut self) -> Parse<Select> {
        let first = self.simple_query()?;
        let mut rest = Vec::new();
        while self.accept_word(Keyword::Intersect) {
            let all = self.set_quantifier();
            rest.push(SetOperand { operator: SetOperator::Intersect, all, query: self.simple_query()? });
        }
        Ok(combined(first, rest))
    }

    /// A query without set operators outside brackets, and without ORDER BY, LIMIT and FOR UPDATE.
    fn simple_query(&mut self) -> Parse<Select> {
        // A query in brackets counts inside them.
        self.query_count += u32::from(self.current.kind != TokenKind::Open);
        if self.query_count > QUERIES_MAX {
            return self.unsupported("so many queries in a statement");
        }
        match self.word() {
            Some(Keyword::Select) => self.select(),
            Some(Keyword::Values) => self.values(),
            Some(Keyword::Table) => {
                self.advance();
                let from = Some(FromItem::Table(self.table_reference()?));
                Ok(Select { projection: vec![SelectItem::All(None)], from, ..Select::default() })
            }
            _ if self.current.kind == TokenKind::Open => {
                self.enter()?;
                self.advance();
                let select = self.query()?;
                self.expect(TokenKind::Close)?;
                self.leave();
                Ok(Select { is_bracketed: true, ..select })
            }
            _ => self.syntax(),
        }
    }

    /// A query that begins with SELECT, up to its groups.
    fn select(&mut self) -> Parse<Select> {
        self.expect_word(Keyword::Select)?;
        let mut select = Select { hints: self.hints(), ..Select::default() };
        self.select_options(&mut select);
        select.projection = self.select_list()?;
        self.parse_into(&mut select)?;
        if self.accept_word(Keyword::From) && !self.accept_word(Keyword::Dual) {
            select.from = Some(self.from()?);
        }
        select.filter = self.condition_after(Keyword::Where)?;
        self.grouping(&mut select)?;
        Ok(select)
    }

    /// `VALUES ROW(...), ...`
    fn values(&mut self) -> Parse<Select> {
        self.expect_word(Keyword::Values)?;
        let rows = self.comma_list(|parser| {
            parser.expect_word(Keyword::Row)?;
            parser.expect(TokenKind::Open)?;
            let row = parser.comma_list(Self::expression)?;
            parser.expect(TokenKind::Close)?;
            Ok(row)
        })?;
        Ok(all_of(DerivedSource::Values(rows)))
    }

    /// ORDER BY, LIMIT, INTO and locks after a query. A query in brackets that has some of its own becomes a
    /// derived table.
    fn with_last_clauses(&mut self, mut select: Select) -> Parse<Select> {
        if select.is_bracketed {
            match self.word() {
                // They are the locks of the query in the brackets, before its own.
                Some(Keyword::For | Keyword::Lock) => {
                    select.is_bracketed = false;
                    let own = std::mem::take(&mut select.locks);
                    self.locking_clauses(&mut select)?;
                    select.locks.extend(own);
                    return Ok(select);
                }
                Some(Keyword::Order | Keyword::Limit | Keyword::Into) => {}
                _ => return Ok(select),
            }
            select.is_bracketed = false;
            let is_plain = select.order_by.is_empty() && select.limit.is_none() && select.into.is_none();
            if !is_plain {
                select = all_of(DerivedSource::Select(Box::new(select)));
            }
        }
        select.order_by = self.order_by()?;
        select.limit = self.limit()?;
        self.parse_into(&mut select)?;
        self.locking_clauses(&mut select)?;
        Ok(select)
    }

    fn locking_clauses(&mut self, select: &mut Select) -> Parse<()> {
        while let Some(locks) = self.locking_clause()? {
            select.locks.push(locks);
        }
        self.parse_into(select)
    }

    /// `WITH [RECURSIVE] name [(columns)] AS (query), ...`
    pub(super) fn with_clause(&mut self) -> Parse<Vec<CommonTable>> {
        if !self.accept_word(Keyword::With) {
            return Ok(Vec::new());
        }
        let recursive = self.accept_word(Keyword::Recursive);
        self.comma_list(|parser| {
            let name = parser.name()?;
            let columns = parser.bracketed_names()?;
            parser.expect_word(Keyword::As)?;
            let depth = SystemVariable { scope: None, name: "cte_max_recursion_depth".to_owned() };
            let depth = recursive.then_some(Expression::SystemVariable(depth));
            Ok(CommonTable { name, columns, query: parser.subquery()?, recursive, depth })
        })
    }

    /// Names in brackets, if there are any.
    pub(super) fn bracketed_names(&mut self) -> Parse<Vec<String>> {
        if !self.accept(TokenKind::Open) {
            return Ok(Vec::new());
        }
        let names = self.comma_list(Self::name)?;
        self.expect(TokenKind::Close)?;
        Ok(names)
    }

    /// The members of FROM.
    pub(super) fn from(&mut self) -> Parse<FromItem> {
        let mut left = self.joined()?;
        while self.accept(TokenKind::Comma) {
            left = join((JoinKind::Inner, JoinCondition::Always), left, self.joined()?);
        }
        Ok(left)
    }

    /// Members joined by keywords.
    pub(super) fn joined(&mut self) -> Parse<FromItem> {
        let left = self.table_or_query()?;
        self.joins_of(left)
    }

    fn joins_of(&mut self, mut left: FromItem) -> Parse<FromItem> {
        while let Some((kind, is_natural)) = self.join_operator()? {
            let mut right = self.table_or_query()?;
            let needs_condition = matches!(kind, JoinKind::Left | JoinKind::Right) && !is_natural;
            if needs_condition && !self.at_join_condition() {
                // `a LEFT JOIN b LEFT JOIN c ON ... ON ...` joins b and c first.
                self.enter()?;
                right = match self.join_operator()? {
                    Some((inner, false)) => {
                        let third = self.table_or_query()?;
                        let condition = self.join_condition()?;
                        self.joins_until_condition(join((inner, condition), right, third))?
                    }
                    _ => return self.syntax(),
                };
                self.leave();
            }
            let condition = match is_natural {
                true => JoinCondition::Natural,
                false => self.join_condition()?,
            };
            if needs_condition && condition == JoinCondition::Always {
                return self.syntax();
            }
            left = join((kind, condition), left, right);
        }
        Ok(left)
    }

    /// Joins further members until the condition of an enclosing join.
    fn joins_until_condition(&mut self, mut left: FromItem) -> Parse<FromItem> {
        while !self.at_join_condition() {
            let Some((kind, is_natural)) = self.join_operator()? else { return self.syntax() };
            let right = self.table_or_query()?;
            let condition = if is_natural { JoinCondition::Natural } else { self.join_condition()? };
            left = join((kind, condition), left, right);
        }
        Ok(left)
    }

    /// The join operator at the current token, and whether it is NATURAL.
    fn join_operator(&mut self) -> Parse<Option<(JoinKind, bool)>> {
        let is_natural = self.accept_word(Keyword::Natural);
        let kind = match self.word() {
            Some(Keyword::Join) => JoinKind::Inner,
            Some(Keyword::Inner) => {
                self.advance();
                JoinKind::Inner
            }
            Some(Keyword::Cross) if !is_natural => {
                self.advance();
                JoinKind::Inner
            }
            Some(Keyword::StraightJoin) if !is_natural => {
                self.advance();
                return Ok(Some((JoinKind::Straight, false)));
            }
            Some(keyword @ (Keyword::Left | Keyword::Right)) => {
                self.advance();
                self.accept_word(Keyword::Outer);
                if keyword == Keyword::Left { JoinKind::Left } else { JoinKind::Right }
            }
            _ if is_natural => return self.syntax(),
            _ => return Ok(None),
        };
        self.expect_word(Keyword::Join)?;
        Ok(Some((kind, is_natural)))
    }

    fn at_join_condition(&self) -> bool {
        self.at_word(Keyword::Using) || self.at_word(Keyword::On) && !self.next_is_word(Keyword::Duplicate)
    }

    fn join_condition(&mut self) -> Parse<JoinCondition> {
        if !self.at_join_condition() {
            return Ok(JoinCondition::Always);
        }
        if self.accept_word(Keyword::On) {
            return Ok(JoinCondition::On(self.expression()?));
        }
        self.advance();
        self.expect(TokenKind::Open)?;
        let names = self.comma_list(Self::name)?;
        self.expect(TokenKind::Close)?;
        Ok(JoinCondition::Using(names))
    }

    /// A table, a query in brackets, or joins in brackets.
    fn table_or_query(&mut self) -> Parse<FromItem> {
        self.joined_tables += 1;
        if self.joined_tables > JOINED_TABLES_MAX {
            return Err(Stop::Error(ParseErrorKind::TooManyTables, self.current.start));
        }
        if self.at_word(Keyword::JsonTable) {
            return self.json_table();
        }
        let lateral = self.accept_word(Keyword::Lateral);
        if lateral && !self.is_query_next() && !self.opens_query() {
            return self.syntax();
        }
        if self.current.kind == TokenKind::OpenBrace {
            return self.joins_in_braces();
        }
        if self.current.kind != TokenKind::Open {
            return Ok(FromItem::Table(self.table_reference()?));
        }
        if self.is_query_next() || self.opens_query() {
            let query = self.subquery()?;
            let Some(alias) = self.table_alias()? else {
                return Err(Stop::Error(ParseErrorKind::DerivedWithoutAlias, self.current.start));
            };
            let columns = self.bracketed_names()?;
            let source = DerivedSource::Select(Box::new(query));
            return Ok(FromItem::Derived(Box::new(DerivedTable { source, alias: Some(alias), columns, lateral })));
        }
        self.enter()?;
        self.advance();
        let inner = self.from()?;
        self.expect(TokenKind::Close)?;
        self.leave();
        Ok(inner)
    }

    /// ODBC's escape `{OJ joins}`. As in MySQL, any name may precede the joins.
    fn joins_in_braces(&mut self) -> Parse<FromItem> {
        self.enter()?;
        self.advance();
        self.name()?;
        let inner = self.from()?;
        self.expect(TokenKind::CloseBrace)?;
        self.leave();
        Ok(inner)
    }

    /// Whether several brackets at the current token begin a query. If a name follows one of the inner ones,
    /// they are a member of a join in brackets.
    pub(super) fn opens_query(&self) -> bool {
        self.current.kind == TokenKind::Open
            && self.next.kind == TokenKind::Open
            && self.inner_brackets_hold(
                |first, second| match first {
                    TokenKind::Keyword(Keyword::Select | Keyword::With | Keyword::Table) => true,
                    TokenKind::Keyword(Keyword::Values) => second == TokenKind::Keyword(Keyword::Row),
                    _ => false,
                },
                |after| {
                    matches!(
                        after,
                        TokenKind::Close
                            | TokenKind::Keyword(
                                Keyword::Union
                                    | Keyword::Except
                                    | Keyword::Intersect
                                    | Keyword::Order
                                    | Keyword::Limit
                                    | Keyword::For
                                    | Keyword::Lock
                            )
                    )
                },
            )
    }
}

fn join((kind, condition): (JoinKind, JoinCondition), left: FromItem, right: FromItem) -> FromItem {
    FromItem::Join(Box::new(Join { kind, left, right, condition }))
}

/// All rows and columns of a source.
fn all_of(source: DerivedSource) -> Select {
    let derived = DerivedTable { source, alias: None, columns: Vec::new(), lateral: false };
    let from = Some(FromItem::Derived(Box::new(derived)));
    Select { projection: vec![SelectItem::All(None)], from, ..Select::default() }
}

/// A query and those that set operators combine with it.
fn combined(first: Select, mut rest: Vec<SetOperand>) -> Select {
    // INTO of the last query is that of the whole.
    let into = match rest.last_mut() {
        None => return first,
        Some(last) if last.query.is_bracketed => IntoTarget::None,
        Some(last) => std::mem::take(&mut last.query.into),
    };
    let first = Box::new(Select { is_bracketed: false, ..first });
    let rest = rest
        .into_iter()
        .map(|operand| SetOperand { query: Select { is_bracketed: false, ..operand.query }, ..operand });
    Select { into, ..all_of(DerivedSource::Set { first, rest: rest.collect() }) }
}
