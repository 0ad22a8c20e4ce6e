//! Operators and their precedence.
//!
//! The levels follow MySQL's grammar, not the table in its manual. The operands of a comparison are
//! predicates. The operands of a predicate (IN, BETWEEN, LIKE, REGEXP) are bit expressions, so a predicate
//! cannot be an operand of another predicate. As in MySQL, the upper bound of BETWEEN is an exception.

use super::function::binary;
use super::parser::{Parse, Parser};
use crate::parse::deprecation::Deprecation;
use crate::parse::expression::{BinaryOperator, Expression, InList, IsTest, UnaryOperator};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;

/// Precedence of an operator, from loosest to tightest. Each grammar rule accepts a range of levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    Xor,
    And,
    Not,
    Comparison,
    Predicate,
    BitOr,
    BitAnd,
    Shift,
    Add,
    Multiply,
    BitXor,
    Concat,
    Simple,
}

/// An operator after its left operand.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Is,
    Predicate,
    /// `||` with PIPES_AS_CONCAT.
    Concat,
    Binary(BinaryOperator),
}

impl Parser<'_> {
    /// An expression of any level.
    pub(super) fn expression(&mut self) -> Parse<Expression> {
        self.expression_at(Level::Or)
    }

    /// The condition after `keyword`; `None` if the current token is not that keyword.
    pub(super) fn condition_after(&mut self, keyword: Keyword) -> Parse<Option<Expression>> {
        if self.accept_word(keyword) { Ok(Some(self.expression()?)) } else { Ok(None) }
    }

    /// An expression whose operators bind at least as tightly as `lowest`. Refuses nesting beyond the limit.
    pub(super) fn expression_at(&mut self, lowest: Level) -> Parse<Expression> {
        self.enter()?;
        let outer_height = std::mem::take(&mut self.height);
        let expression = self.operators(lowest)?;
        self.height = self.height.max(outer_height);
        self.leave();
        Ok(expression)
    }

    fn operators(&mut self, lowest: Level) -> Parse<Expression> {
        let (mut left, mut highest) = self.prefix(lowest)?;
        self.grow()?;
        while let Some((level, infix)) = self.infix() {
            // The left side is complete, and an operator that binds more tightly cannot have it as operand:
            // `a IN (b) + 1` is an error.
            if level < lowest || level > highest {
                break;
            }
            highest = level;
            left = match infix {
                Infix::Or | Infix::And => self.logical(left, level)?,
                Infix::Is => self.is_test(left)?,
                Infix::Predicate => {
                    highest = Level::Comparison;
                    self.predicate(left)?
                }
                Infix::Concat => {
                    self.advance();
                    let right = self.expression_at(Level::Simple)?;
                    self.grow()?;
                    Expression::call("CONCAT", vec![left, right])
                }
                Infix::Binary(operator) => {
                    self.advance();
                    if level == Level::Comparison
                        && let Some(all) = self.quantifier()
                    {
                        let query = Box::new(self.subquery()?);
                        self.grow()?;
                        left = Expression::Quantified { operator, all, operand: Box::new(left), query };
                        continue;
                    }
                    let right = self.expression_at(above(level))?;
                    self.grow()?;
                    binary(operator, left, right)
                }
            };
        }
        Ok(left)
    }

    /// An operand with its prefix operators, and the level of the tightest infix operator that may follow it.
    fn prefix(&mut self, lowest: Level) -> Parse<(Expression, Level)> {
        let simple = match self.current.kind {
            TokenKind::Keyword(Keyword::Not) if self.dialect.high_not_precedence => self.unary(UnaryOperator::Not)?,
            TokenKind::Keyword(Keyword::Not) => {
                if lowest > Level::Not {
                    return self.syntax();
                }
                self.advance();
                let operand = Box::new(self.expression_at(Level::Not)?);
                return Ok((Expression::Unary { operator: UnaryOperator::Not, operand }, Level::Not));
            }
            TokenKind::Minus => match self.lifted_literal() {
                Some(ordinal) => Expression::Parameter(ordinal),
                None => {
                    self.advance();
                    self.expression_at(Level::Simple)?.negate()
                }
            },
            TokenKind::Plus => {
                self.advance();
                self.expression_at(Level::Simple)?
            }
            TokenKind::Tilde => self.unary(UnaryOperator::BitNot)?,
            TokenKind::Exclamation => {
                self.note(Deprecation::NotSign);
                self.unary(UnaryOperator::Not)?
            }
            _ => self.primary()?,
        };
        Ok((simple, Level::Concat))
    }

    fn unary(&mut self, operator: UnaryOperator) -> Parse<Expression> {
        self.advance();
        let operand = Box::new(self.expression_at(Level::Simple)?);
        Ok(Expression::Unary { operator, operand })
    }

    /// AND or OR. A run of the same operator becomes one node, so that a long run does not make a high tree.
    fn logical(&mut self, left: Expression, level: Level) -> Parse<Expression> {
        match self.current.kind {
            TokenKind::BarBar => self.note(Deprecation::OrSign),
            TokenKind::AmpersandAmpersand => self.note(Deprecation::AndSign),
            _ => {}
        }
        self.advance();
        let left_height = std::mem::take(&mut self.height);
        let right = self.expression_at(above(level))?;
        self.grow()?;
        let (mut operands, left_height) = match (left, level) {
            (Expression::Or(operands), Level::Or) => (operands, left_height),
            (Expression::And(operands), Level::And) => (operands, left_height),
            (left, _) => (vec![left], left_height + 1),
        };
        match (right, level) {
            (Expression::Or(right), Level::Or) | (Expression::And(right), Level::And) => operands.extend(right),
            (right, _) => operands.push(right),
        }
        self.height = self.height.max(left_height);
        self.check_height()?;
        Ok(if level == Level::Or { Expression::Or(operands) } else { Expression::And(operands) })
    }

    fn is_test(&mut self, operand: Expression) -> Parse<Expression> {
        self.advance();
        let negated = self.accept_word(Keyword::Not);
        let test = match self.word() {
            Some(Keyword::Null) => IsTest::Null,
            Some(Keyword::True) => IsTest::True,
            Some(Keyword::False) => IsTest::False,
            Some(Keyword::Unknown) => IsTest::Unknown,
            _ => return self.syntax(),
        };
        self.advance();
        self.grow()?;
        Ok(Expression::Is { negated, operand: Box::new(operand), test })
    }

    fn predicate(&mut self, operand: Expression) -> Parse<Expression> {
        let negated = self.accept_word(Keyword::Not);
        let operand = Box::new(operand);
        let keyword = self.word();
        self.advance();
        let expression = match keyword {
            Some(Keyword::Between) => {
                let low = Box::new(self.expression_at(Level::BitOr)?);
                self.expect_word(Keyword::And)?;
                let high = Box::new(self.expression_at(Level::Predicate)?);
                Expression::Between { negated, operand, low, high }
            }
            Some(Keyword::In) if self.is_query_next() || self.opens_query() => {
                Expression::in_query(negated, operand, self.subquery()?)
            }
            Some(Keyword::In) => Expression::InList { negated, operand, list: self.in_list()? },
            Some(Keyword::Like) => {
                let pattern = Box::new(self.expression_at(Level::Simple)?);
                let escape = match self.accept_word(Keyword::Escape) {
                    true => Some(Box::new(self.escape()?)),
                    false => None,
                };
                Expression::Like { negated, operand, pattern, escape }
            }
            Some(Keyword::Sounds) => {
                self.expect_word(Keyword::Like)?;
                let right = self.expression_at(Level::BitOr)?;
                let [left, right] = [*operand, right].map(|operand| Expression::call("SOUNDEX", vec![operand]));
                // The call of SOUNDEX is a further level.
                self.grow()?;
                Expression::Binary { operator: BinaryOperator::Equal, left: Box::new(left), right: Box::new(right) }
            }
            Some(Keyword::Member) => {
                self.expect_word(Keyword::Of)?;
                self.expect(TokenKind::Open)?;
                let array = self.expression()?;
                self.expect(TokenKind::Close)?;
                Expression::call("MEMBER OF", vec![*operand, array])
            }
            _ => {
                let pattern = self.expression_at(Level::BitOr)?;
                self.grow()?;
                Expression::call("REGEXP_LIKE", vec![*operand, pattern]).negated_if(negated)
            }
        };
        self.grow()?;
        Ok(expression)
    }

    /// The operand of ESCAPE. It is a simple expression, so no operator may follow.
    fn escape(&mut self) -> Parse<Expression> {
        self.expression_at(Level::Simple)
    }

    fn in_list(&mut self) -> Parse<InList> {
        self.expect(TokenKind::Open)?;
        let list = match self.lifted_list() {
            Some(ordinal) => InList::Parameters(ordinal),
            None => InList::Expressions(self.comma_list(Self::expression)?),
        };
        self.expect(TokenKind::Close)?;
        Ok(list)
    }

    /// The infix operator at the current token.
    fn infix(&self) -> Option<(Level, Infix)> {
        let binary = |level, operator| Some((level, Infix::Binary(operator)));
        match self.current.kind {
            TokenKind::Keyword(keyword) => self.word_infix(keyword),
            TokenKind::BarBar if self.dialect.pipes_as_concat => Some((Level::Concat, Infix::Concat)),
            TokenKind::BarBar => Some((Level::Or, Infix::Or)),
            TokenKind::AmpersandAmpersand => Some((Level::And, Infix::And)),
            TokenKind::Equal => binary(Level::Comparison, BinaryOperator::Equal),
            TokenKind::NullSafeEqual => binary(Level::Comparison, BinaryOperator::NullSafeEqual),
            TokenKind::NotEqual => binary(Level::Comparison, BinaryOperator::NotEqual),
            TokenKind::Less => binary(Level::Comparison, BinaryOperator::Less),
            TokenKind::LessOrEqual => binary(Level::Comparison, BinaryOperator::LessOrEqual),
            TokenKind::Greater => binary(Level::Comparison, BinaryOperator::Greater),
            TokenKind::GreaterOrEqual => binary(Level::Comparison, BinaryOperator::GreaterOrEqual),
            TokenKind::Bar => binary(Level::BitOr, BinaryOperator::BitOr),
            TokenKind::Ampersand => binary(Level::BitAnd, BinaryOperator::BitAnd),
            TokenKind::ShiftLeft => binary(Level::Shift, BinaryOperator::ShiftLeft),
            TokenKind::ShiftRight => binary(Level::Shift, BinaryOperator::ShiftRight),
            TokenKind::Plus => binary(Level::Add, BinaryOperator::Add),
            TokenKind::Minus => binary(Level::Add, BinaryOperator::Subtract),
            TokenKind::Star => binary(Level::Multiply, BinaryOperator::Multiply),
            TokenKind::Slash => binary(Level::Multiply, BinaryOperator::Divide),
            TokenKind::Percent => binary(Level::Multiply, BinaryOperator::Modulo),
            TokenKind::Caret => binary(Level::BitXor, BinaryOperator::BitXor),
            _ => None,
        }
    }

    fn word_infix(&self, keyword: Keyword) -> Option<(Level, Infix)> {
        let is_predicate = |keyword| {
            matches!(keyword, Keyword::In | Keyword::Between | Keyword::Like | Keyword::Regexp | Keyword::Rlike)
        };
        match keyword {
            Keyword::Or => Some((Level::Or, Infix::Or)),
            Keyword::Xor => Some((Level::Xor, Infix::Binary(BinaryOperator::Xor))),
            Keyword::And => Some((Level::And, Infix::And)),
            Keyword::Is => Some((Level::Comparison, Infix::Is)),
            Keyword::Div => Some((Level::Multiply, Infix::Binary(BinaryOperator::IntegerDivide))),
            Keyword::Mod => Some((Level::Multiply, Infix::Binary(BinaryOperator::Modulo))),
            Keyword::Sounds if self.next_is_word(Keyword::Like) => Some((Level::Predicate, Infix::Predicate)),
            Keyword::Member if self.next_is_word(Keyword::Of) => Some((Level::Predicate, Infix::Predicate)),
            Keyword::Not => match self.next.kind {
                TokenKind::Keyword(next) if is_predicate(next) => Some((Level::Predicate, Infix::Predicate)),
                _ => None,
            },
            keyword if is_predicate(keyword) => Some((Level::Predicate, Infix::Predicate)),
            _ => None,
        }
    }
}

/// The next level, which binds tighter. An operator's right operand is parsed at this level, which makes
/// operators left-associative.
fn above(level: Level) -> Level {
    match level {
        Level::Or => Level::Xor,
        Level::Xor => Level::And,
        Level::And => Level::Not,
        Level::Not => Level::Comparison,
        Level::Comparison => Level::Predicate,
        Level::Predicate => Level::BitOr,
        Level::BitOr => Level::BitAnd,
        Level::BitAnd => Level::Shift,
        Level::Shift => Level::Add,
        Level::Add => Level::Multiply,
        Level::Multiply => Level::BitXor,
        Level::BitXor => Level::Concat,
        Level::Concat | Level::Simple => Level::Simple,
    }
}
