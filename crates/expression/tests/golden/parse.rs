//! A parser for the subset of SQL expressions in the golden cases, bound to the columns of one table.

use junctor_expression::{ArithmeticOperator, BitOperator, CastTarget, CompareOperator, Expression, IsTest};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::ColumnDefinition;
use junctor_model::value::{Decimal, Value};

const COLLATION: CollationId = CollationId::UTF8MB4_GENERAL_CI;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Number(String),
    Text(Vec<u8>),
    Symbol(&'static str),
}

/// Parses an expression. Errors come from the constructors; text outside the subset panics.
pub fn parse(sql: &str, columns: &[ColumnDefinition]) -> Result<Expression> {
    let mut parser = Parser { tokens: tokens(sql), position: 0, columns };
    let expression = parser.expression(0)?;
    assert_eq!(parser.position, parser.tokens.len(), "unparsed rest of {sql}: {:?}", &parser.tokens[parser.position..]);
    Ok(expression)
}

struct Parser<'c> {
    tokens: Vec<Token>,
    position: usize,
    columns: &'c [ColumnDefinition],
}

const SYMBOLS: [&str; 24] = [
    "<=>", "<<", ">>", "<=", ">=", "<>", "!=", "||", "&&", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "(", ")", ",",
];

/// The precedence of an infix operator: a higher one binds tighter. 0 if the token is not an infix operator.
fn binding(token: &Token) -> u8 {
    match token {
        Token::Word(word) => match word.as_str() {
            "OR" => 1,
            "XOR" => 2,
            "AND" => 3,
            "BETWEEN" | "NOT" => 5,
            "IS" | "LIKE" | "IN" => 6,
            "DIV" | "MOD" => 11,
            "COLLATE" => 14,
            _ => 0,
        },
        Token::Symbol(symbol) => match *symbol {
            "||" => 1,
            "&&" => 3,
            "<=>" | "<=" | ">=" | "<>" | "!=" | "<" | ">" | "=" => 6,
            "|" => 7,
            "&" => 8,
            "<<" | ">>" => 9,
            "+" | "-" => 10,
            "*" | "/" | "%" => 11,
            "^" => 12,
            _ => 0,
        },
        _ => 0,
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position)
    }

    fn take(&mut self) -> Token {
        self.position += 1;
        self.tokens[self.position - 1].clone()
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = match self.peek() {
            Some(Token::Word(found)) => found == word,
            Some(Token::Symbol(found)) => *found == word,
            _ => false,
        };
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) {
        assert!(self.accept(word), "expected {word} at {:?}", &self.tokens[self.position..]);
    }

    fn expression(&mut self, outer_precedence: u8) -> Result<Expression> {
        let mut left = if self.accept("NOT") { Expression::logical_not(self.expression(4)?) } else { self.operand()? };
        while let Some(token) = self.peek().cloned() {
            let power = binding(&token);
            if power == 0 || power <= outer_precedence {
                break;
            }
            self.position += 1;
            left = self.infix(left, token, power)?;
        }
        Ok(left)
    }

    fn infix(&mut self, left: Expression, token: Token, power: u8) -> Result<Expression> {
        let name = match &token {
            Token::Word(word) => word.as_str(),
            Token::Symbol(symbol) => symbol,
            _ => unreachable!(),
        };
        let compare = match name {
            "=" => Some(CompareOperator::Equal),
            "<=>" => Some(CompareOperator::NullSafeEqual),
            "<>" | "!=" => Some(CompareOperator::NotEqual),
            "<" => Some(CompareOperator::Less),
            "<=" => Some(CompareOperator::LessOrEqual),
            ">" => Some(CompareOperator::Greater),
            ">=" => Some(CompareOperator::GreaterOrEqual),
            _ => None,
        };
        let arithmetic = match name {
            "+" => Some(ArithmeticOperator::Add),
            "-" => Some(ArithmeticOperator::Subtract),
            "*" => Some(ArithmeticOperator::Multiply),
            "/" => Some(ArithmeticOperator::Divide),
            "DIV" => Some(ArithmeticOperator::DivideInteger),
            "%" | "MOD" => Some(ArithmeticOperator::Remainder),
            _ => None,
        };
        let bits = match name {
            "&" => Some(BitOperator::And),
            "|" => Some(BitOperator::Or),
            "^" => Some(BitOperator::Xor),
            "<<" => Some(BitOperator::ShiftLeft),
            ">>" => Some(BitOperator::ShiftRight),
            _ => None,
        };
        if let Some(operator) = compare {
            return Expression::comparison(operator, left, self.expression(power)?);
        }
        if let Some(operator) = arithmetic {
            return Ok(Expression::arithmetic(operator, left, self.expression(power)?));
        }
        if let Some(operator) = bits {
            return Ok(Expression::bits(operator, left, self.expression(power)?));
        }
        match name {
            "OR" | "||" => Ok(Expression::or(vec![left, self.expression(power)?])),
            "AND" | "&&" => Ok(Expression::and(vec![left, self.expression(power)?])),
            "XOR" => Ok(Expression::xor(left, self.expression(power)?)),
            "COLLATE" => {
                let Token::Word(name) = self.take() else { panic!("expected a collation") };
                Expression::collate(left, CollationId::from_name(&name).unwrap())
            }
            "IS" => {
                let negated = self.accept("NOT");
                let test = match self.take() {
                    Token::Word(word) if word == "TRUE" => IsTest::True,
                    Token::Word(word) if word == "FALSE" => IsTest::False,
                    _ => IsTest::Null,
                };
                Ok(Expression::is(test, negated, left))
            }
            "NOT" => self.predicate(left, true),
            _ => {
                self.position -= 1;
                self.predicate(left, false)
            }
        }
    }

    fn predicate(&mut self, left: Expression, negated: bool) -> Result<Expression> {
        if self.accept("BETWEEN") {
            let low = self.expression(6)?;
            self.expect("AND");
            return Expression::between(negated, left, low, self.expression(6)?);
        }
        if self.accept("LIKE") {
            let pattern = self.expression(6)?;
            let mut escape = Some('\\');
            if self.accept("ESCAPE") {
                let Token::Text(text) = self.take() else { panic!("expected an escape character") };
                escape = String::from_utf8(text).unwrap().chars().next();
            }
            return Expression::like(negated, left, pattern, escape);
        }
        self.expect("IN");
        self.expect("(");
        let list = self.list()?;
        Expression::in_list(negated, left, list)
    }

    /// A comma-separated list up to the closing parenthesis.
    fn list(&mut self) -> Result<Vec<Expression>> {
        let mut list = Vec::new();
        while !self.accept(")") {
            if !list.is_empty() {
                self.expect(",");
            }
            list.push(self.expression(0)?);
        }
        Ok(list)
    }

    fn operand(&mut self) -> Result<Expression> {
        let constant = |value| Ok(Expression::constant(value, COLLATION));
        match self.take() {
            Token::Number(text) => constant(number(&text)),
            Token::Text(text) => constant(Value::Bytes(text)),
            Token::Symbol("-") => Ok(Expression::negate(self.expression(13)?)),
            Token::Symbol("+") => self.expression(13),
            Token::Symbol("~") => Ok(Expression::bit_not(self.expression(13)?)),
            Token::Symbol("(") => {
                let inner = self.expression(0)?;
                self.expect(")");
                Ok(inner)
            }
            Token::Symbol(symbol) => panic!("{symbol} is not an operand"),
            Token::Word(word) => match word.as_str() {
                "NULL" => Ok(Expression::null()),
                "TRUE" => constant(Value::Int(1)),
                "FALSE" => constant(Value::Int(0)),
                "CASE" => self.case(),
                "CAST" => self.cast(),
                "TRIM" => self.trim(),
                name if self.accept("(") => {
                    let arguments = self.list()?;
                    Expression::call(name, arguments)
                }
                name => {
                    let found = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
                    let index = found.unwrap_or_else(|| panic!("unknown column {name}"));
                    Ok(Expression::column(ColumnNumber(index as u16), &self.columns[index], &format!("`t`.`{name}`")))
                }
            },
        }
    }

    fn case(&mut self) -> Result<Expression> {
        let operand = if self.peek() == Some(&Token::Word("WHEN".into())) { None } else { Some(self.expression(0)?) };
        let mut branches = Vec::new();
        while self.accept("WHEN") {
            let when = self.expression(0)?;
            let condition = match &operand {
                Some(operand) => Expression::comparison(CompareOperator::Equal, operand.clone(), when)?,
                None => when,
            };
            self.expect("THEN");
            branches.push((condition, self.expression(0)?));
        }
        let otherwise = if self.accept("ELSE") { Some(self.expression(0)?) } else { None };
        self.expect("END");
        Expression::case(branches, otherwise)
    }

    fn cast(&mut self) -> Result<Expression> {
        self.expect("(");
        let operand = self.expression(0)?;
        self.expect("AS");
        let Token::Word(name) = self.take() else { panic!("expected a type") };
        let mut sizes = Vec::new();
        if self.accept("(") {
            while !self.accept(")") {
                match self.take() {
                    Token::Number(size) => sizes.push(size.parse::<u32>().unwrap()),
                    _ => continue,
                }
            }
        }
        self.expect(")");
        let length = sizes.first().copied();
        let target = match name.as_str() {
            "FLOAT" => return Expression::call("CAST FLOAT", vec![operand]),
            "SIGNED" => CastTarget::Signed,
            "UNSIGNED" => CastTarget::Unsigned,
            "DOUBLE" => CastTarget::Double,
            "CHAR" => CastTarget::Char { length, collation: COLLATION },
            "BINARY" => CastTarget::Binary { length },
            _ => CastTarget::Decimal {
                precision: length.unwrap_or(10) as u8,
                scale: sizes.get(1).copied().unwrap_or(0) as u8,
            },
        };
        Ok(Expression::cast(target, operand))
    }

    fn trim(&mut self) -> Result<Expression> {
        self.expect("(");
        let name = if self.accept("LEADING") {
            "TRIM_LEADING"
        } else if self.accept("TRAILING") {
            "TRIM_TRAILING"
        } else {
            self.accept("BOTH");
            "TRIM"
        };
        let first = self.expression(0)?;
        let arguments = if self.accept("FROM") { vec![self.expression(0)?, first] } else { vec![first] };
        self.expect(")");
        Expression::call(name, arguments)
    }
}

fn number(text: &str) -> Value {
    if text.contains(['e', 'E']) {
        return Value::Double(text.parse().unwrap());
    }
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(value), _) => Value::Int(value),
        (_, Ok(value)) => Value::UInt(value),
        _ => {
            let digits: String = text.chars().filter(|character| *character != '.').collect();
            let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            Value::Decimal(Decimal::Narrow { mantissa: digits.parse().unwrap(), scale: scale as u8 })
        }
    }
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            let (text, after) = text_token(&rest[1..]);
            tokens.push(Token::Text(text));
            rest = after;
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit()))
        {
            let length = number_length(rest);
            tokens.push(Token::Number(rest[..length].into()));
            rest = &rest[length..];
        } else if first == '`' {
            let (name, after) = rest[1..].split_once('`').unwrap_or_else(|| panic!("not SQL: {rest}"));
            tokens.push(Token::Word(name.into()));
            rest = after;
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|other: char| !other.is_alphanumeric() && other != '_').unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_ascii_uppercase()));
            rest = &rest[length..];
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.unwrap_or_else(|| panic!("not SQL: {rest}"));
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        }
        rest = rest.trim_start();
    }
    tokens
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        end = digits(end + 1 + sign);
    }
    end
}

fn text_token(after_quote: &str) -> (Vec<u8>, &str) {
    let mut text = String::new();
    let mut characters = after_quote.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
                text.push('\'');
            }
            '\'' => return (text.into_bytes(), &after_quote[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, '0')) => text.push('\0'),
                // A backslash before a wildcard stays, for LIKE.
                Some((_, wildcard @ ('%' | '_'))) => text.extend(['\\', wildcard]),
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    panic!("unterminated string")
}
