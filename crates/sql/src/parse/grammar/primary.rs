//! Operands: constants, variables, columns and expressions in parentheses.

use junctor_model::temporal::Zone;

use super::operator::Level;
use super::parser::{Parse, Parser};
use crate::parse::deprecation::Deprecation;
use crate::parse::expression::{
    Case, CaseBranch, CastTarget, ColumnReference, Expression, FunctionCall, Literal, StringLiteral, SystemVariable,
    TemporalKind, VariableScope,
};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::literal::{decode_bits, decode_hexadecimal, decode_integer, read_temporal};

impl Parser<'_> {
    /// An operand with any number of COLLATE clauses.
    pub(super) fn primary(&mut self) -> Parse<Expression> {
        let mut expression = self.operand()?;
        while self.accept_word(Keyword::Collate) {
            let collation = self.collation_name()?;
            self.grow()?;
            expression = Expression::Collate { operand: Box::new(expression), collation };
        }
        Ok(expression)
    }

    /// An operand without operators or COLLATE.
    pub(super) fn operand(&mut self) -> Parse<Expression> {
        match self.current.kind {
            TokenKind::Parameter => Ok(Expression::Parameter(self.parameter()?)),
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Double | TokenKind::String => {
                match self.lifted_literal() {
                    Some(ordinal) => Ok(Expression::Parameter(ordinal)),
                    None => self.literal(),
                }
            }
            TokenKind::NationalString | TokenKind::Hexadecimal | TokenKind::Bits => self.literal(),
            TokenKind::UserVariable => self.user_variable(),
            TokenKind::AtAt => Ok(Expression::SystemVariable(self.system_variable()?)),
            TokenKind::Open => self.brackets(),
            TokenKind::OpenBrace => self.braces(),
            TokenKind::Name if self.at_introducer() => self.introduced_string(),
            TokenKind::Keyword(keyword) => self.word_operand(keyword),
            _ => self.name_operand(),
        }
    }

    fn word_operand(&mut self, keyword: Keyword) -> Parse<Expression> {
        match keyword {
            Keyword::Null => self.constant(Literal::Null),
            Keyword::True => self.constant(Literal::Boolean(true)),
            Keyword::False => self.constant(Literal::Boolean(false)),
            Keyword::Case => self.case(),
            Keyword::Binary => {
                self.advance();
                self.note(Deprecation::BinaryOperator);
                let operand = Box::new(self.expression_at(Level::Simple)?);
                Ok(Expression::Cast { operand, target: CastTarget::Binary(None) })
            }
            Keyword::Exists => {
                self.advance();
                Ok(Expression::Exists(Box::new(self.subquery()?)))
            }
            Keyword::Interval if self.next.kind == TokenKind::Open => self.interval_function(),
            Keyword::Interval => self.interval(),
            Keyword::Match => self.unsupported("full-text search"),
            Keyword::Date | Keyword::Time | Keyword::Timestamp if self.next.kind == TokenKind::String => {
                self.temporal(keyword)
            }
            Keyword::Row if self.next.kind == TokenKind::Open => {
                self.advance();
                self.brackets()
            }
            Keyword::Default if self.next.kind == TokenKind::Open => {
                self.advance();
                Ok(Expression::Default(Some(Box::new(self.bracketed_column()?))))
            }
            Keyword::Values if self.next.kind == TokenKind::Open => {
                self.advance();
                self.note(if self.is_upsert { Deprecation::InsertedValue } else { Deprecation::NoInsertedValue });
                Ok(Expression::InsertedValue(Box::new(self.bracketed_column()?)))
            }
            _ => match self.function_by_word(keyword)? {
                Some(expression) => Ok(expression),
                None => self.name_operand(),
            },
        }
    }

    fn constant(&mut self, literal: Literal) -> Parse<Expression> {
        self.advance();
        Ok(Expression::Literal(literal))
    }

    /// A column, or a call of a function with the ordinary syntax.
    fn name_operand(&mut self) -> Parse<Expression> {
        let mut parts = [Some(self.name()?), None, None];
        let mut count = 1;
        while self.current.kind == TokenKind::Dot && count < parts.len() {
            self.advance();
            parts[count] = Some(self.any_word()?);
            count += 1;
        }
        if self.current.kind == TokenKind::Open && count <= 2 {
            let [first, second, _] = parts;
            let (database, name) = if count == 2 { (first, second) } else { (None, first) };
            let name = name.unwrap_or_default();
            // Functions that only planning calls have names with a space. Functions of databases are unknown.
            let database = database.or_else(|| name.contains(' ').then(String::new));
            let call = FunctionCall { database, name, ..FunctionCall::default() };
            return self.call_arguments(call);
        }
        if matches!(self.current.kind, TokenKind::Arrow | TokenKind::LongArrow) {
            return self.json_path(Expression::Column(Box::new(column_of(parts))));
        }
        Ok(Expression::Column(Box::new(column_of(parts))))
    }

    /// `column -> path` and `column ->> path`.
    fn json_path(&mut self, column: Expression) -> Parse<Expression> {
        let unquotes = self.current.kind == TokenKind::LongArrow;
        self.advance();
        if self.current.kind != TokenKind::String {
            return self.syntax();
        }
        let path = self.literal()?;
        self.grow()?;
        let value = Expression::call("JSON_EXTRACT", vec![column, path]);
        Ok(if unquotes { Expression::call("JSON_UNQUOTE", vec![value]) } else { value })
    }

    /// A column's name with up to two qualifiers.
    pub(super) fn column_reference(&mut self) -> Parse<ColumnReference> {
        let mut parts = [Some(self.name()?), None, None];
        let mut count = 1;
        while count < parts.len() && self.accept(TokenKind::Dot) {
            parts[count] = Some(self.any_word()?);
            count += 1;
        }
        Ok(column_of(parts))
    }

    fn bracketed_column(&mut self) -> Parse<ColumnReference> {
        self.expect(TokenKind::Open)?;
        let column = self.column_reference()?;
        self.expect(TokenKind::Close)?;
        Ok(column)
    }

    fn brackets(&mut self) -> Parse<Expression> {
        if self.is_query_next() || self.opens_query() {
            return Ok(Expression::Subquery(Box::new(self.subquery()?)));
        }
        self.expect(TokenKind::Open)?;
        let mut members = self.comma_list(Self::expression)?;
        self.expect(TokenKind::Close)?;
        match (members.pop(), members.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                members.extend(last);
                Ok(Expression::Row(members))
            }
        }
    }

    /// Whether a query begins at the current token. In parentheses, it is a subquery.
    pub(super) fn at_query(&self) -> bool {
        matches!(self.word(), Some(Keyword::Select | Keyword::With | Keyword::Table))
            || self.at_word(Keyword::Values) && self.next_is_word(Keyword::Row)
    }

    /// The literal at the current token.
    pub(super) fn literal(&mut self) -> Parse<Expression> {
        let token = self.current;
        let bytes = self.bytes(token);
        let literal = match token.kind {
            TokenKind::String => {
                Literal::String(StringLiteral { bytes: self.string()?, character_set: None, is_raw: false })
            }
            TokenKind::NationalString => {
                self.advance();
                self.note(Deprecation::National);
                let mut value = Vec::new();
                self.decode(&bytes[2..bytes.len() - 1], bytes[1], &mut value);
                while self.current.kind == TokenKind::String {
                    value.extend(self.string()?);
                }
                Literal::String(StringLiteral { bytes: value, character_set: Some("utf8mb3".to_owned()), is_raw: true })
            }
            _ => {
                self.advance();
                match number_or_bytes(token, bytes) {
                    Some(literal) => literal,
                    None => return self.syntax(),
                }
            }
        };
        Ok(Expression::Literal(literal))
    }

    /// Whether the current token is a character set introducer, `_charset` before a literal.
    fn at_introducer(&self) -> bool {
        self.bytes(self.current).starts_with(b"_")
            && matches!(self.next.kind, TokenKind::String | TokenKind::Hexadecimal | TokenKind::Bits)
    }

    fn introduced_string(&mut self) -> Parse<Expression> {
        let name = self.any_word()?;
        self.note_if(Deprecation::of_character_set(&name[1..]));
        let (bytes, is_raw) = match self.literal()? {
            Expression::Literal(Literal::String(string)) => (string.bytes, false),
            Expression::Literal(Literal::Hexadecimal(bytes) | Literal::Bits(bytes)) => (bytes, true),
            _ => return self.syntax(),
        };
        let character_set = Some(name[1..].to_owned());
        Ok(Expression::Literal(Literal::String(StringLiteral { bytes, character_set, is_raw })))
    }

    fn temporal(&mut self, keyword: Keyword) -> Parse<Expression> {
        let kind = match keyword {
            Keyword::Date => TemporalKind::Date,
            Keyword::Time => TemporalKind::Time,
            _ => TemporalKind::Timestamp,
        };
        self.advance();
        Ok(Expression::Literal(Literal::Temporal { kind, text: self.string()? }))
    }

    /// ODBC's escapes `{d '...'}`, `{t '...'}`, `{ts '...'}` for days and times, and `{name expression}`,
    /// which is the expression. A text that is no such day or time is a string.
    fn braces(&mut self) -> Parse<Expression> {
        self.advance();
        let name = self.name()?;
        let kind = match name.to_ascii_lowercase().as_str() {
            "d" => Some(TemporalKind::Date),
            "t" => Some(TemporalKind::Time),
            "ts" => Some(TemporalKind::Timestamp),
            _ => None,
        };
        let inner = match kind.filter(|_| self.current.kind == TokenKind::String) {
            Some(kind) => {
                let text = self.string()?;
                Expression::Literal(match read_temporal(kind, &text, Zone::UTC) {
                    Some(_) => Literal::Temporal { kind, text },
                    None => Literal::String(StringLiteral { bytes: text, ..StringLiteral::default() }),
                })
            }
            None => self.expression()?,
        };
        self.expect(TokenKind::CloseBrace)?;
        Ok(inner)
    }

    fn user_variable(&mut self) -> Parse<Expression> {
        let name = self.user_variable_name()?;
        if self.accept(TokenKind::Assign) {
            self.note(Deprecation::AssignedVariable);
            let value = Box::new(self.expression()?);
            return Ok(Expression::AssignUserVariable { name, value });
        }
        Ok(Expression::UserVariable(name))
    }

    /// The name of the user variable `@name`, without the sign and quotes.
    pub(super) fn user_variable_name(&mut self) -> Parse<String> {
        let token = self.current;
        if token.kind != TokenKind::UserVariable {
            return self.syntax();
        }
        let bytes = &self.bytes(token)[1..];
        let mut name = Vec::new();
        match bytes.first() {
            Some(quote @ (b'\'' | b'"' | b'`')) => self.decode(&bytes[1..bytes.len() - 1], *quote, &mut name),
            _ => name.extend_from_slice(bytes),
        }
        self.advance();
        self.utf8(name, token.start)
    }

    /// `@@[scope.]name[.name]`
    pub(super) fn system_variable(&mut self) -> Parse<SystemVariable> {
        self.expect(TokenKind::AtAt)?;
        let mut scope = None;
        if self.next.kind == TokenKind::Dot
            && let Some(found) = self.word().and_then(scope_of)
        {
            scope = Some(found);
            self.advance();
            self.advance();
        }
        let name = self.dotted_variable_name()?;
        Ok(SystemVariable { scope, name })
    }

    /// A system variable's name, which contains a dot if the variable belongs to a component.
    pub(super) fn dotted_variable_name(&mut self) -> Parse<String> {
        let mut name = self.any_word()?;
        if self.accept(TokenKind::Dot) {
            name.push('.');
            name.push_str(&self.any_word()?);
        }
        Ok(name)
    }

    fn case(&mut self) -> Parse<Expression> {
        self.advance();
        let operand = if self.at_word(Keyword::When) { None } else { Some(self.expression()?) };
        let mut branches = Vec::new();
        while self.accept_word(Keyword::When) {
            let when = self.expression()?;
            self.expect_word(Keyword::Then)?;
            branches.push(CaseBranch { when, value: self.expression()? });
        }
        if branches.is_empty() {
            return self.syntax();
        }
        let otherwise = self.condition_after(Keyword::Else)?;
        self.expect_word(Keyword::End)?;
        Ok(Expression::Case(Box::new(Case { operand, branches, otherwise })))
    }

    /// The name of a character set, which may be quoted or the keyword BINARY.
    pub(super) fn character_set_name(&mut self) -> Parse<String> {
        let name = self.name_or_binary()?;
        self.note_if(Deprecation::of_character_set(&name));
        Ok(name)
    }

    /// The name of a collation, which may be quoted or the keyword BINARY.
    pub(super) fn collation_name(&mut self) -> Parse<String> {
        let name = self.name_or_binary()?;
        self.note_if(Deprecation::of_collation(&name));
        Ok(name)
    }

    fn name_or_binary(&mut self) -> Parse<String> {
        if self.at_word(Keyword::Binary) { self.any_word() } else { self.name_or_string() }
    }
}

/// The variable scope that a keyword denotes.
pub(super) fn scope_of(keyword: Keyword) -> Option<VariableScope> {
    match keyword {
        Keyword::Session | Keyword::Local => Some(VariableScope::Session),
        Keyword::Global => Some(VariableScope::Global),
        Keyword::Persist => Some(VariableScope::Persist),
        Keyword::PersistOnly => Some(VariableScope::PersistOnly),
        _ => None,
    }
}

fn column_of(parts: [Option<String>; 3]) -> ColumnReference {
    match parts {
        [database, table, Some(name)] => ColumnReference { database, table, name },
        [table, Some(name), None] => ColumnReference { database: None, table, name },
        [name, None, None] => ColumnReference { database: None, table: None, name: name.unwrap_or_default() },
    }
}

/// The value of a number, or of hexadecimal or binary digits; `None` if the digits are invalid.
fn number_or_bytes(token: Token, bytes: &[u8]) -> Option<Literal> {
    let text = || std::str::from_utf8(bytes).ok();
    match token.kind {
        TokenKind::Integer => match decode_integer(bytes) {
            Some(value) => Some(Literal::Integer(i128::from(value))),
            None => Some(Literal::Decimal(text()?.to_owned())),
        },
        TokenKind::Decimal => Some(Literal::Decimal(text()?.to_owned())),
        TokenKind::Double => Some(Literal::Double(text()?.parse().ok()?)),
        TokenKind::Hexadecimal => Some(Literal::Hexadecimal(decode_hexadecimal(digits_of(bytes))?)),
        TokenKind::Bits => Some(Literal::Bits(decode_bits(digits_of(bytes))?)),
        _ => None,
    }
}

/// The digits between the quotes of `x'...'` or after `0x`.
fn digits_of(bytes: &[u8]) -> &[u8] {
    bytes[2..].strip_suffix(b"'").unwrap_or(&bytes[2..])
}
