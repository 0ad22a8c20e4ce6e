//! The conversion between text and bytes. Text is UTF-8 in every character set, so it differs from its bytes
//! only in a set such as latin1.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::value::Value;

use crate::function::find;
use crate::program::{Expression, Node};
use crate::result_type::{Kind, ResultType};

/// The hidden function whose result is the bytes of a text in its character set.
pub(crate) const ENCODE: &str = "ENCODE TEXT";
/// The hidden function whose result is the text of these bytes.
pub(crate) const DECODE: &str = "DECODE TEXT";

impl Expression {
    /// The same value in an operation in `collation`: the bytes of a text where bytes are wanted, and the
    /// text of bytes where text is wanted.
    pub fn in_collation(self, collation: CollationId) -> Expression {
        let own = self.result.collation.character_set();
        let wanted = collation.character_set();
        if own == wanted || !self.result.is_text() {
            return self;
        }
        match (own, wanted) {
            (own, CharacterSet::Binary) if own.is_recoded() => self.encoded(),
            (CharacterSet::Binary, wanted) if wanted.is_recoded() => self.decoded(collation),
            _ => self,
        }
    }

    /// As [`Self::in_collation`], for a comparison: bytes beyond ASCII equal no text of ascii.
    pub(super) fn compared_in(self, collation: CollationId) -> Expression {
        match collation.character_set() == CharacterSet::Ascii && self.result.is_bytes() {
            true => self.decoded(collation),
            false => self.in_collation(collation),
        }
    }

    fn encoded(self) -> Expression {
        let own = self.result.collation.character_set();
        let length = self.result.bytes_max();
        let result = ResultType { kind: Kind::String, collation: CollationId::BINARY, length, ..self.result };
        self.recoded(ENCODE, result, |text, out| {
            own.encode(text, out);
        })
    }

    fn decoded(self, collation: CollationId) -> Expression {
        let result = ResultType { kind: Kind::String, collation, ..self.result };
        self.recoded(DECODE, result, |bytes, out| collation.character_set().decode_comparable(bytes, out))
    }

    /// A call of the hidden function, or its result for a constant.
    fn recoded(self, name: &str, result: ResultType, convert: impl Fn(&[u8], &mut Vec<u8>)) -> Expression {
        let node = match (self.node, find(name)) {
            (Node::Constant(Value::Bytes(bytes)), _) => {
                let mut converted = Vec::with_capacity(bytes.len());
                convert(&bytes, &mut converted);
                Node::Constant(Value::Bytes(converted))
            }
            (node, Some(function)) => Node::Call(function, [Expression { node, result: self.result }].into()),
            (node, None) => node,
        };
        Expression { node, result }
    }
}

/// The arguments of a function with this result: bytes where it makes bytes, and otherwise all in one
/// character set.
pub(crate) fn in_one_encoding(arguments: Vec<Expression>, result: &ResultType) -> Vec<Expression> {
    let is_recoded =
        |argument: &Expression| argument.result.is_text() && argument.result.collation.character_set().is_recoded();
    let result_is_text = result.kind == Kind::String;
    let result_is_recoded = result_is_text && result.collation.character_set().is_recoded();
    if !result_is_recoded && !arguments.iter().any(is_recoded) {
        return arguments;
    }
    let collation = match result_is_text {
        true => Some(result.collation),
        false if arguments.iter().any(|argument| argument.result.is_bytes()) => {
            super::aggregate_collations("", &arguments).ok().map(|derived| derived.collation)
        }
        false => None,
    };
    match collation {
        Some(collation) => arguments.into_iter().map(|argument| argument.in_collation(collation)).collect(),
        None => arguments,
    }
}
