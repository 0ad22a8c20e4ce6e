//! Window functions and WINDOW.

use super::parser::{Parse, Parser};
use crate::parse::expression::{Expression, FunctionCall, Literal};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::window::{Frame, FrameBound, NamedWindow, Over, WindowDefinition};

impl Parser<'_> {
    /// A call of a function that is always a window function.
    pub(super) fn window_function(&mut self, keyword: Keyword) -> Parse<Expression> {
        let mut call = FunctionCall { name: self.any_word()?, ..FunctionCall::default() };
        self.expect(TokenKind::Open)?;
        match keyword {
            Keyword::FirstValue | Keyword::LastValue => call.arguments.push(self.expression()?),
            Keyword::Ntile => call.arguments.push(self.window_number()?),
            Keyword::NthValue => {
                call.arguments.push(self.expression()?);
                self.expect(TokenKind::Comma)?;
                call.arguments.push(self.window_number()?);
            }
            Keyword::Lag | Keyword::Lead => {
                call.arguments.push(self.expression()?);
                if self.accept(TokenKind::Comma) {
                    call.arguments.push(self.window_number()?);
                    if self.accept(TokenKind::Comma) {
                        call.arguments.push(self.expression()?);
                    }
                }
            }
            _ => {}
        }
        self.expect(TokenKind::Close)?;
        if keyword == Keyword::NthValue && self.accept_word(Keyword::From) && !self.accept_plain(b"FIRST") {
            return if self.at_plain(b"LAST") { self.unsupported("FROM LAST") } else { self.syntax() };
        }
        let takes_nulls = matches!(
            keyword,
            Keyword::FirstValue | Keyword::LastValue | Keyword::NthValue | Keyword::Lag | Keyword::Lead
        );
        if takes_nulls && self.at_word(Keyword::Ignore) {
            return self.unsupported("IGNORE NULLS");
        }
        if takes_nulls && self.accept_plain(b"RESPECT") && !self.accept_plain(b"NULLS") {
            return self.syntax();
        }
        if !self.at_word(Keyword::Over) {
            return self.syntax();
        }
        self.over(call)
    }

    /// A call, with OVER if it is here.
    pub(super) fn over(&mut self, mut call: FunctionCall) -> Parse<Expression> {
        if self.accept_word(Keyword::Over) {
            self.grow()?;
            let over = match self.current.kind {
                TokenKind::Open => Over::Window(Box::new(self.window_definition()?)),
                _ => Over::Named(self.name()?),
            };
            call.over = Some(Box::new(over));
        }
        Ok(Expression::Function(Box::new(call)))
    }

    /// `WINDOW name AS (...), ...`
    pub(super) fn windows(&mut self) -> Parse<Vec<NamedWindow>> {
        if !self.accept_word(Keyword::Window) {
            return Ok(Vec::new());
        }
        self.comma_list(|parser| {
            let name = parser.name()?;
            parser.expect_word(Keyword::As)?;
            Ok(NamedWindow { name, definition: parser.window_definition()? })
        })
    }

    fn window_definition(&mut self) -> Parse<WindowDefinition> {
        self.expect(TokenKind::Open)?;
        let mut definition = WindowDefinition::default();
        if Self::is_name(self.current) {
            definition.base = Some(self.name()?);
        }
        if self.accept_words(Keyword::Partition, Keyword::By) {
            definition.partition = self.comma_list(|parser| {
                let expression = parser.expression()?;
                let _ = parser.accept_any(&[Keyword::Asc, Keyword::Desc]);
                Ok(expression)
            })?;
        }
        definition.order = self.order_by()?;
        definition.frame = self.frame()?;
        self.expect(TokenKind::Close)?;
        Ok(definition)
    }

    fn frame(&mut self) -> Parse<Option<Frame>> {
        let is_range = match self.word() {
            Some(Keyword::Rows) => false,
            Some(Keyword::Range) => true,
            Some(Keyword::Groups) => return self.unsupported("GROUPS"),
            _ => return Ok(None),
        };
        self.advance();
        let (start, end) = match self.accept_word(Keyword::Between) {
            true => {
                let start = self.frame_bound()?;
                self.expect_word(Keyword::And)?;
                (start, self.frame_bound()?)
            }
            false => {
                let token = self.current;
                match self.frame_bound()? {
                    FrameBound::Following(_) | FrameBound::UnboundedFollowing => return self.syntax_at(token),
                    start => (start, FrameBound::CurrentRow),
                }
            }
        };
        if self.at_plain(b"EXCLUDE") {
            return self.unsupported("EXCLUDE");
        }
        Ok(Some(Frame { is_range, start, end }))
    }

    fn frame_bound(&mut self) -> Parse<FrameBound> {
        if self.accept_plain(b"CURRENT") {
            self.expect_word(Keyword::Row)?;
            return Ok(FrameBound::CurrentRow);
        }
        if self.accept_plain(b"UNBOUNDED") {
            return match self.is_preceding()? {
                true => Ok(FrameBound::UnboundedPreceding),
                false => Ok(FrameBound::UnboundedFollowing),
            };
        }
        let distance = match self.at_word(Keyword::Interval) {
            true => self.interval()?,
            false => self.window_number()?,
        };
        Ok(if self.is_preceding()? { FrameBound::Preceding(distance) } else { FrameBound::Following(distance) })
    }

    pub(super) fn at_plain(&self, word: &[u8]) -> bool {
        self.current.kind == TokenKind::Name && self.bytes(self.current).eq_ignore_ascii_case(word)
    }

    /// Consumes the current token if it is this word, which is no keyword. Returns whether it is.
    pub(super) fn accept_plain(&mut self, word: &[u8]) -> bool {
        let found = self.at_plain(word);
        if found {
            self.advance();
        }
        found
    }

    /// PRECEDING or FOLLOWING.
    fn is_preceding(&mut self) -> Parse<bool> {
        if self.accept_plain(b"PRECEDING") {
            return Ok(true);
        }
        if self.accept_plain(b"FOLLOWING") { Ok(false) } else { self.syntax() }
    }

    /// A number without a sign, or a value that the execution supplies.
    fn window_number(&mut self) -> Parse<Expression> {
        let token = self.current;
        let number = self.expression()?;
        let is_number = match &number {
            Expression::Literal(Literal::Integer(number)) => *number >= 0,
            Expression::Literal(Literal::Decimal(digits)) => !digits.starts_with('-'),
            Expression::Literal(Literal::Double(number)) => number.is_sign_positive(),
            Expression::Parameter(_) | Expression::UserVariable(_) => true,
            _ => false,
        };
        if is_number { Ok(number) } else { self.syntax_at(token) }
    }
}
