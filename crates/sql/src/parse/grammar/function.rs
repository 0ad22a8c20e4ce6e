//! Function calls, mainly those with a special syntax.

use super::operator::Level;
use super::parser::{Parse, Parser};
use crate::parse::deprecation::Deprecation;
use crate::parse::expression::is_aggregate;
use crate::parse::expression::{
    BinaryOperator, CastTarget, Expression, FunctionCall, Literal, StringLiteral, TrimSide,
};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::literal::decode_integer;
use junctor_expression::function::is_unit;

impl Parser<'_> {
    /// A function whose name is a keyword. Returns `None` if the keyword is used as an identifier here, or
    /// begins no function.
    pub(super) fn function_by_word(&mut self, keyword: Keyword) -> Parse<Option<Expression>> {
        let is_before_parenthesis = self.next.kind == TokenKind::Open;
        let expression = match keyword {
            Keyword::CurrentDate
            | Keyword::CurrentTime
            | Keyword::CurrentTimestamp
            | Keyword::CurrentUser
            | Keyword::Localtime
            | Keyword::Localtimestamp
            | Keyword::UtcDate
            | Keyword::UtcTime
            | Keyword::UtcTimestamp => self.call_with_optional_brackets()?,
            // Every other keyword is a function only directly before an opening parenthesis.
            _ if !is_before_parenthesis => return Ok(None),
            Keyword::Cast => self.cast()?,
            Keyword::Convert => self.convert()?,
            Keyword::Trim => self.trim()?,
            Keyword::Substring | Keyword::Substr => self.substring()?,
            Keyword::Position => self.position()?,
            Keyword::Extract => self.extract()?,
            Keyword::GroupConcat => self.group_concat()?,
            Keyword::Timestampadd | Keyword::Timestampdiff => self.timestamp_function(keyword)?,
            Keyword::CumeDist
            | Keyword::DenseRank
            | Keyword::FirstValue
            | Keyword::Lag
            | Keyword::LastValue
            | Keyword::Lead
            | Keyword::NthValue
            | Keyword::Ntile
            | Keyword::PercentRank
            | Keyword::Rank
            | Keyword::RowNumber => self.window_function(keyword)?,
            Keyword::If
            | Keyword::Left
            | Keyword::Right
            | Keyword::Replace
            | Keyword::Insert
            | Keyword::Mod
            | Keyword::Char
            | Keyword::Database
            | Keyword::Schema
            | Keyword::Repeat
            | Keyword::Grouping => {
                let name = self.any_word()?;
                self.call_arguments(FunctionCall { name, ..FunctionCall::default() })?
            }
            _ => return Ok(None),
        };
        Ok(Some(expression))
    }

    fn call_with_optional_brackets(&mut self) -> Parse<Expression> {
        let call = FunctionCall { name: self.any_word()?, ..FunctionCall::default() };
        if self.current.kind == TokenKind::Open {
            return self.call_arguments(call);
        }
        Ok(Expression::Function(Box::new(call)))
    }

    /// The arguments of a call, with their parentheses.
    pub(super) fn call_arguments(&mut self, mut call: FunctionCall) -> Parse<Expression> {
        self.expect(TokenKind::Open)?;
        if call.name.eq_ignore_ascii_case("JSON_VALUE") {
            return self.json_value(call);
        }
        if call.name.eq_ignore_ascii_case("MID") && call.database.is_none() {
            call.name = "SUBSTRING".to_owned();
            return self.substring_arguments(call);
        }
        let is_count = call.name.eq_ignore_ascii_case("COUNT");
        if is_count && self.accept(TokenKind::Star) {
            call.star = true;
        } else if self.current.kind != TokenKind::Close {
            if is_aggregate(&call.name) && !self.accept_word(Keyword::All) {
                let takes_distinct = !call.name.to_ascii_uppercase().starts_with("JSON_");
                call.distinct = takes_distinct && self.accept_word(Keyword::Distinct);
            }
            if call.name.eq_ignore_ascii_case("GET_FORMAT") {
                let kind = self.any_word()?;
                call.arguments.push(unit_literal(&kind.to_ascii_uppercase()));
                self.expect(TokenKind::Comma)?;
            }
            call.arguments.extend(self.comma_list(Self::expression)?);
            if call.name.eq_ignore_ascii_case("CHAR") && self.accept_word(Keyword::Using) {
                let character_set = self.character_set_name()?;
                self.expect(TokenKind::Close)?;
                self.grow()?;
                let operand = Box::new(Expression::Function(Box::new(call)));
                return Ok(Expression::ConvertUsing { operand, character_set });
            }
            if call.name.eq_ignore_ascii_case("WEIGHT_STRING") && self.accept_word(Keyword::As) {
                self.weighed_as(&mut call)?;
            }
        }
        if call.database.is_none() && !has_arity(&call.name, call.arguments.len()) {
            return self.syntax();
        }
        self.expect(TokenKind::Close)?;
        if call.database.is_none() {
            self.note_if(Deprecation::of_function(&call.name));
        }
        if self.at_word(Keyword::Over) {
            return match call.is_aggregate() {
                true if call.distinct => self.unsupported("<window function>(DISTINCT ..)"),
                true => self.over(call),
                false => self.syntax(),
            };
        }
        self.with_interval(call)
    }

    /// `GROUP_CONCAT([DISTINCT] values [ORDER BY ...] [SEPARATOR text])`
    fn group_concat(&mut self) -> Parse<Expression> {
        let mut call = FunctionCall { name: self.any_word()?, ..FunctionCall::default() };
        self.expect(TokenKind::Open)?;
        call.distinct = self.accept_word(Keyword::Distinct);
        call.arguments = self.comma_list(Self::expression)?;
        call.order = self.order_by()?;
        if self.accept_word(Keyword::Separator) {
            call.separator = Some(self.string()?);
        }
        self.expect(TokenKind::Close)?;
        if self.at_word(Keyword::Over) {
            return self.unsupported("group_concat as window function");
        }
        self.grow()?;
        Ok(Expression::Function(Box::new(call)))
    }

    /// `CHAR(n)` or `BINARY(n)` after AS in WEIGHT_STRING: a cast of the argument.
    fn weighed_as(&mut self, call: &mut FunctionCall) -> Parse<()> {
        let target = self.cast_target()?;
        let is_sized =
            matches!(target, CastTarget::Binary(Some(_)) | CastTarget::Char { length: Some(_), character_set: None });
        let (Some(operand), true) = (call.arguments.pop(), is_sized) else { return self.syntax() };
        self.grow()?;
        call.arguments.push(Expression::Cast { operand: Box::new(operand), target });
        Ok(())
    }

    /// `INTERVAL(number, limit, ...)`, which is a function; `INTERVAL (number) unit` is not.
    pub(super) fn interval_function(&mut self) -> Parse<Expression> {
        let call = FunctionCall { name: self.any_word()?, ..FunctionCall::default() };
        let call = self.call_arguments(call)?;
        match &call {
            Expression::Function(function) if function.arguments.len() < 2 => {
                let number = function.arguments.first().cloned();
                let Some(number) = number else { return self.syntax() };
                Ok(Expression::call(INTERVAL, vec![number, self.unit()?]))
            }
            _ => Ok(call),
        }
    }

    /// A call whose second argument may be an interval: DATE_ADD and its kin. ADDDATE and SUBDATE also take a
    /// number of days.
    fn with_interval(&mut self, mut call: FunctionCall) -> Parse<Expression> {
        let name = match call.name.to_ascii_uppercase().as_str() {
            "DATE_ADD" | "ADDDATE" => "DATE_ADD",
            "DATE_SUB" | "SUBDATE" => "DATE_SUB",
            _ => return Ok(Expression::Function(Box::new(call))),
        };
        let takes_days = !call.name.to_ascii_uppercase().starts_with("DATE_");
        let arguments = std::mem::take(&mut call.arguments);
        let [day, interval] = match <[Expression; 2]>::try_from(arguments) {
            Ok(arguments) => arguments,
            Err(_) => return self.syntax(),
        };
        match interval_of(interval) {
            Ok([number, unit]) => Ok(Expression::call(name, vec![day, number, unit])),
            Err(days) if takes_days => Ok(Expression::call(name, vec![day, days, unit_literal("DAY")])),
            Err(_) => self.syntax(),
        }
    }

    /// `EXTRACT(unit FROM value)`
    fn extract(&mut self) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        let unit = self.unit()?;
        self.expect_word(Keyword::From)?;
        let value = self.expression()?;
        self.expect(TokenKind::Close)?;
        Ok(Expression::call("EXTRACT", vec![value, unit]))
    }

    /// `TIMESTAMPADD(unit, number, day)` and `TIMESTAMPDIFF(unit, from, to)`
    fn timestamp_function(&mut self, keyword: Keyword) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        let unit = self.unit()?;
        self.expect(TokenKind::Comma)?;
        let first = self.expression()?;
        self.expect(TokenKind::Comma)?;
        let second = self.expression()?;
        self.expect(TokenKind::Close)?;
        Ok(match keyword {
            Keyword::Timestampadd => Expression::call("DATE_ADD", vec![second, first, unit]),
            _ => Expression::call("TIMESTAMPDIFF", vec![unit, first, second]),
        })
    }

    /// The unit of an interval, as a literal.
    fn unit(&mut self) -> Parse<Expression> {
        let token = self.current;
        let name = self.any_word()?;
        if !is_unit(&name) { self.syntax_at(token) } else { Ok(unit_literal(&name.to_ascii_uppercase())) }
    }

    /// `INTERVAL number unit`, an operand of + and -, and an argument of DATE_ADD.
    pub(super) fn interval(&mut self) -> Parse<Expression> {
        self.expect_word(Keyword::Interval)?;
        let number = self.expression()?;
        Ok(Expression::call(INTERVAL, vec![number, self.unit()?]))
    }

    fn cast(&mut self) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        let operand = Box::new(self.expression()?);
        if self.current.kind == TokenKind::Name && self.bytes(self.current).eq_ignore_ascii_case(b"AT") {
            return self.cast_at_time_zone(*operand);
        }
        self.expect_word(Keyword::As)?;
        let target = self.cast_target()?;
        let target = match self.accept_word(Keyword::Array) {
            true => CastTarget::Array(Box::new(target)),
            false => target,
        };
        self.expect(TokenKind::Close)?;
        Ok(Expression::Cast { operand, target })
    }

    /// `AT TIME ZONE [INTERVAL] 'zone' AS DATETIME[(digits)])`, the rest of a CAST.
    fn cast_at_time_zone(&mut self, operand: Expression) -> Parse<Expression> {
        self.advance();
        if self.accept_word(Keyword::Local) {
            return self.unsupported("AT LOCAL");
        }
        self.expect_word(Keyword::Time)?;
        if !self.bytes(self.current).eq_ignore_ascii_case(b"ZONE") {
            return self.syntax();
        }
        self.advance();
        let is_interval = self.accept_word(Keyword::Interval);
        let zone = StringLiteral { bytes: self.string()?, ..StringLiteral::default() };
        self.expect_word(Keyword::As)?;
        self.expect_word(Keyword::Datetime)?;
        let target = CastTarget::DateTime(self.bracketed_number()?);
        self.expect(TokenKind::Close)?;
        self.grow()?;
        let arguments = vec![
            operand,
            Expression::Literal(Literal::String(zone)),
            Expression::Literal(Literal::Boolean(is_interval)),
        ];
        Ok(Expression::Cast { operand: Box::new(Expression::call(AT_TIME_ZONE, arguments)), target })
    }

    fn convert(&mut self) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        let operand = Box::new(self.expression()?);
        let expression = if self.accept_word(Keyword::Using) {
            Expression::ConvertUsing { operand, character_set: self.character_set_name()? }
        } else {
            self.expect(TokenKind::Comma)?;
            Expression::Cast { operand, target: self.cast_target()? }
        };
        self.expect(TokenKind::Close)?;
        Ok(expression)
    }

    pub(super) fn cast_target(&mut self) -> Parse<CastTarget> {
        let Some(keyword) = self.word() else { return self.syntax() };
        self.advance();
        let target = match keyword {
            Keyword::Signed | Keyword::Unsigned => {
                let _ = self.accept_any(&[Keyword::Int, Keyword::Integer]);
                if keyword == Keyword::Signed { CastTarget::Signed } else { CastTarget::Unsigned }
            }
            Keyword::Binary => CastTarget::Binary(self.bracketed_number()?),
            Keyword::Char | Keyword::Character => {
                let length = self.bracketed_number()?;
                CastTarget::Char { length, character_set: self.character_set_clause()? }
            }
            Keyword::Nchar => {
                self.note(Deprecation::National);
                CastTarget::Char { length: self.bracketed_number()?, character_set: Some("utf8mb3".to_owned()) }
            }
            Keyword::Decimal | Keyword::Dec | Keyword::Numeric => {
                let (precision, scale) = self.bracketed_precision()?;
                CastTarget::Decimal { precision, scale }
            }
            Keyword::Double => {
                self.accept_word(Keyword::Precision);
                CastTarget::Double
            }
            Keyword::Real if self.dialect.real_as_float => CastTarget::Float(None),
            Keyword::Real => CastTarget::Double,
            Keyword::Float => CastTarget::Float(self.bracketed_number()?),
            Keyword::Date => CastTarget::Date,
            Keyword::Time => CastTarget::Time(self.bracketed_number()?),
            Keyword::Datetime => CastTarget::DateTime(self.bracketed_number()?),
            Keyword::Year => CastTarget::Year,
            Keyword::Json => CastTarget::Json,
            _ => return self.syntax(),
        };
        Ok(target)
    }

    /// `(number)`, if present.
    pub(super) fn bracketed_number(&mut self) -> Parse<Option<u32>> {
        if !self.accept(TokenKind::Open) {
            return Ok(None);
        }
        let number = self.number()?;
        self.expect(TokenKind::Close)?;
        Ok(Some(number))
    }

    /// `(precision)` or `(precision, scale)`, if present.
    pub(super) fn bracketed_precision(&mut self) -> Parse<(Option<u32>, Option<u32>)> {
        if !self.accept(TokenKind::Open) {
            return Ok((None, None));
        }
        let precision = self.number()?;
        let scale = if self.accept(TokenKind::Comma) { Some(self.number()?) } else { None };
        self.expect(TokenKind::Close)?;
        Ok((Some(precision), scale))
    }

    /// An unsigned integer where the grammar allows no expression, such as a length. A number beyond 32 bits
    /// becomes `u32::MAX`, which exceeds every limit.
    pub(super) fn number(&mut self) -> Parse<u32> {
        Ok(u32::try_from(self.long_number()?).unwrap_or(u32::MAX))
    }

    /// An unsigned integer of up to 64 bits, where the grammar allows no expression.
    pub(super) fn long_number(&mut self) -> Parse<u64> {
        if self.current.kind != TokenKind::Integer {
            return self.syntax();
        }
        match decode_integer(self.bytes(self.current)) {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => self.syntax(),
        }
    }

    /// `CHARACTER SET name` or a synonym, if present.
    pub(super) fn character_set_clause(&mut self) -> Parse<Option<String>> {
        if self.accept_character_set() { Ok(Some(self.character_set_name()?)) } else { Ok(None) }
    }

    /// Consumes `CHARACTER SET`, `CHAR SET` or `CHARSET`. Returns whether one of them is here.
    pub(super) fn accept_character_set(&mut self) -> bool {
        self.accept_word(Keyword::Charset)
            || self.accept_words(Keyword::Character, Keyword::Set)
            || self.accept_words(Keyword::Char, Keyword::Set)
    }

    fn trim(&mut self) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        let side = self.accept_any(&[Keyword::Both, Keyword::Leading, Keyword::Trailing]);
        let mut removed = None;
        let operand;
        if side.is_some() && self.accept_word(Keyword::From) {
            operand = self.expression()?;
        } else {
            let first = self.expression()?;
            if side.is_some() && self.current.kind != TokenKind::Close || self.at_word(Keyword::From) {
                self.expect_word(Keyword::From)?;
                removed = Some(Box::new(first));
                operand = self.expression()?;
            } else if side.is_some() {
                return self.syntax();
            } else {
                operand = first;
            }
        }
        self.expect(TokenKind::Close)?;
        let side = match side {
            Some(Keyword::Leading) => TrimSide::Leading,
            Some(Keyword::Trailing) => TrimSide::Trailing,
            _ => TrimSide::Both,
        };
        Ok(Expression::Trim { side, removed, operand: Box::new(operand) })
    }

    fn substring(&mut self) -> Parse<Expression> {
        let call = FunctionCall { name: self.any_word()?, ..FunctionCall::default() };
        self.expect(TokenKind::Open)?;
        self.substring_arguments(call)
    }

    /// `text, start[, length])` or `text FROM start [FOR length])`
    fn substring_arguments(&mut self, mut call: FunctionCall) -> Parse<Expression> {
        call.arguments.push(self.expression()?);
        let last = match self.accept_word(Keyword::From) {
            true => TokenKind::Keyword(Keyword::For),
            false => {
                self.expect(TokenKind::Comma)?;
                TokenKind::Comma
            }
        };
        call.arguments.push(self.expression()?);
        if self.accept(last) {
            call.arguments.push(self.expression()?);
        }
        self.expect(TokenKind::Close)?;
        Ok(Expression::Function(Box::new(call)))
    }

    fn position(&mut self) -> Parse<Expression> {
        self.advance();
        self.expect(TokenKind::Open)?;
        // The first operand must end before IN. Otherwise IN would be parsed as a predicate of that operand.
        let wanted = self.expression_at(Level::BitOr)?;
        self.expect_word(Keyword::In)?;
        let text = self.expression()?;
        self.expect(TokenKind::Close)?;
        let call = FunctionCall { name: "LOCATE".to_owned(), arguments: vec![wanted, text], ..FunctionCall::default() };
        Ok(Expression::Function(Box::new(call)))
    }
}

/// Functions whose numbers of arguments are a matter of MySQL's grammar, so that another number is a syntax
/// error: the name, the least and the greatest number.
const ARITIES: &[(&str, usize, usize)] = &[
    ("ASCII", 1, 1),
    ("CHARSET", 1, 1),
    ("COLLATION", 1, 1),
    ("DATABASE", 0, 0),
    ("DATE", 1, 1),
    ("DAY", 1, 1),
    ("FORMAT", 2, 3),
    ("HOUR", 1, 1),
    ("IF", 3, 3),
    ("INSERT", 4, 4),
    ("LEFT", 2, 2),
    ("MICROSECOND", 1, 1),
    ("MINUTE", 1, 1),
    ("MOD", 2, 2),
    ("MONTH", 1, 1),
    ("QUARTER", 1, 1),
    ("REPEAT", 2, 2),
    ("REPLACE", 3, 3),
    ("REVERSE", 1, 1),
    ("RIGHT", 2, 2),
    ("ROW_COUNT", 0, 0),
    ("SCHEMA", 0, 0),
    ("SECOND", 1, 1),
    ("TIME", 1, 1),
    ("TIMESTAMP", 1, 2),
    ("TRUNCATE", 2, 2),
    ("USER", 0, 0),
    ("WEEK", 1, 2),
    ("YEAR", 1, 1),
];

/// Whether the grammar has a call of this function with this number of arguments.
fn has_arity(name: &str, count: usize) -> bool {
    let known = ARITIES.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name));
    known.is_none_or(|(_, least, most)| (*least..=*most).contains(&count))
}

/// The name of the call that stands for an interval until the operator or function that takes it is known. No
/// function has this name.
const INTERVAL: &str = "INTERVAL UNIT";

/// The name of the call that stands for AT TIME ZONE. Its arguments are the value, the zone, and whether the
/// zone was written as an interval.
pub(crate) const AT_TIME_ZONE: &str = "AT TIME ZONE";

/// The number and the unit of an interval; any other expression is returned unchanged.
pub(super) fn interval_of(expression: Expression) -> Result<[Expression; 2], Expression> {
    match expression {
        Expression::Function(call) if call.name == INTERVAL => {
            let arguments = call.arguments.clone();
            <[Expression; 2]>::try_from(arguments).map_err(|_| Expression::Function(call))
        }
        other => Err(other),
    }
}

/// `left operator right`, where one of both may be an interval.
pub(super) fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    let name = match operator {
        BinaryOperator::Add => "DATE_ADD",
        BinaryOperator::Subtract => "DATE_SUB",
        _ => return Expression::Binary { operator, left: Box::new(left), right: Box::new(right) },
    };
    let right = match interval_of(right) {
        Ok([number, unit]) => return Expression::call(name, vec![left, number, unit]),
        Err(right) => right,
    };
    match interval_of(left) {
        Ok([number, unit]) if operator == BinaryOperator::Add => Expression::call(name, vec![right, number, unit]),
        Ok([number, unit]) => {
            let left = Expression::call(INTERVAL, vec![number, unit]);
            Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
        }
        Err(left) => Expression::Binary { operator, left: Box::new(left), right: Box::new(right) },
    }
}

fn unit_literal(name: &str) -> Expression {
    let bytes = name.as_bytes().to_vec();
    Expression::Literal(Literal::String(StringLiteral { bytes, character_set: None, is_raw: false }))
}
