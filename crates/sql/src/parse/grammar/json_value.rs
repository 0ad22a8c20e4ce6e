//! JSON_VALUE.

use super::parser::{Parse, Parser};
use crate::parse::expression::{CastTarget, Expression, FunctionCall, Literal, UnaryOperator};
use crate::parse::json_table::VALUE_CHARACTERS_MAX;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use junctor_expression::function::JsonOtherwise;

/// Characters of the type without RETURNING.
const CHARACTERS_DEFAULT: u32 = 512;
/// The collation of a type without a character set.
const COLLATION: &str = "utf8mb4_0900_bin";

/// What ON EMPTY or ON ERROR does, and the value of DEFAULT.
type Action = (JsonOtherwise, Expression);

impl Parser<'_> {
    /// `document, path [RETURNING type] [action ON EMPTY] [action ON ERROR])`. Clauses become arguments: NULL
    /// of the type, and the two actions, each with the value of its DEFAULT. Without them the call has two
    /// arguments.
    pub(super) fn json_value(&mut self, mut call: FunctionCall) -> Parse<Expression> {
        call.arguments.push(self.expression()?);
        self.expect(TokenKind::Comma)?;
        let token = self.current;
        let path = self.expression()?;
        if !self.is_literal(&path) || matches!(&path, Expression::Literal(literal) if !is_string(literal)) {
            return self.syntax_at(token);
        }
        call.arguments.push(path);
        let default = CastTarget::Char { length: Some(CHARACTERS_DEFAULT), character_set: None };
        let target = if self.accept_word(Keyword::Returning) { self.cast_target()? } else { default.clone() };
        let (mut on_empty, mut on_error) = (null_action(), null_action());
        if let Some(action) = self.value_action()? {
            match self.on_empty_or_error()? {
                Keyword::Empty => {
                    on_empty = action;
                    if let Some(action) = self.value_action()? {
                        if self.on_empty_or_error()? == Keyword::Empty {
                            return self.syntax();
                        }
                        on_error = action;
                    }
                }
                _ => on_error = action,
            }
        }
        self.expect(TokenKind::Close)?;
        let nothing = null_action();
        if target != default || on_empty != nothing || on_error != nothing {
            let actions = [on_empty, on_error].into_iter().flat_map(|(otherwise, value)| {
                let number = Expression::Literal(Literal::Integer(otherwise as i128));
                [number, value]
            });
            call.arguments.push(typed_null(target));
            call.arguments.extend(actions);
        }
        self.grow()?;
        Ok(Expression::Function(Box::new(call)))
    }

    fn value_action(&mut self) -> Parse<Option<Action>> {
        let null = Expression::Literal(Literal::Null);
        if self.accept_word(Keyword::Null) {
            return Ok(Some((JsonOtherwise::Null, null)));
        }
        if self.accept_plain(b"ERROR") {
            return Ok(Some((JsonOtherwise::Error, null)));
        }
        if !self.accept_word(Keyword::Default) {
            return Ok(None);
        }
        let token = self.current;
        let value = self.expression()?;
        let is_number = matches!(&value, Expression::Unary { operator: UnaryOperator::Minus, operand }
            if self.is_literal(operand));
        if !self.is_literal(&value) && !is_number || value == null {
            return self.syntax_at(token);
        }
        Ok(Some((JsonOtherwise::Default, value)))
    }

    /// `ON EMPTY` or `ON ERROR`. Returns EMPTY or ON.
    fn on_empty_or_error(&mut self) -> Parse<Keyword> {
        self.expect_word(Keyword::On)?;
        if self.accept_plain(b"ERROR") {
            return Ok(Keyword::On);
        }
        self.expect_word(Keyword::Empty)?;
        Ok(Keyword::Empty)
    }

    /// Whether this is a literal, or a parameter in the place of one.
    fn is_literal(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Literal(_) => true,
            Expression::Parameter(_) => self.is_lifting(),
            _ => false,
        }
    }
}

fn null_action() -> Action {
    (JsonOtherwise::Null, Expression::Literal(Literal::Null))
}

fn is_string(literal: &Literal) -> bool {
    matches!(literal, Literal::String(_))
}

/// NULL of the type.
fn typed_null(target: CastTarget) -> Expression {
    let cast = |target| Expression::Cast { operand: Box::new(Expression::Literal(Literal::Null)), target };
    match target {
        CastTarget::Char { length, character_set: None } => {
            let length = Some(length.unwrap_or(VALUE_CHARACTERS_MAX));
            let operand = cast(CastTarget::Char { length, character_set: Some("utf8mb4".to_owned()) });
            Expression::Collate { operand: Box::new(operand), collation: COLLATION.to_owned() }
        }
        CastTarget::Char { length: None, character_set } => {
            cast(CastTarget::Char { length: Some(VALUE_CHARACTERS_MAX), character_set })
        }
        CastTarget::Binary(None) => cast(CastTarget::Binary(Some(VALUE_CHARACTERS_MAX))),
        other => cast(other),
    }
}
