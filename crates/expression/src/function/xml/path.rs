//! Reads XPath expressions.

use junctor_model::error::{Error, ErrorCode, Result};

/// Maximum depth of an expression.
const DEPTH_MAX: usize = 64;
/// Bytes of the rest that the message of a syntax error shows.
const SHOWN_BYTES: usize = 32;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Number(f64),
    Text(Vec<u8>),
    Binary(Operator, Box<[Step; 2]>),
    Negate(Box<Step>),
    Call(Name, Vec<Step>),
    /// The nodes that parts of a path lead to, from those of an expression; from the root for `None`, from
    /// the current node for a path in a predicate.
    Path(Start, Vec<Part>),
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Start {
    Root,
    Current,
    Of(Box<Step>),
}

/// A part of a path: the nodes of an axis with a name that meet the predicates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub axis: Axis,
    pub test: Test,
    pub predicates: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Child,
    Parent,
    Itself,
    Descendant,
    DescendantOrSelf,
    Ancestor,
    AncestorOrSelf,
    Attribute,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// Every node.
    Node,
    /// Texts.
    Text,
    /// Elements, or attributes, with any name.
    Any,
    Named(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Union,
}

/// The functions, with the least and the greatest number of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

const FUNCTIONS: [(&str, Name, usize, usize); 16] = [
    ("boolean", Name::Boolean, 1, 1),
    ("ceiling", Name::Ceiling, 1, 1),
    ("concat", Name::Concat, 1, 255),
    ("contains", Name::Contains, 2, 2),
    ("count", Name::Count, 1, 1),
    ("false", Name::False, 0, 0),
    ("floor", Name::Floor, 1, 1),
    ("last", Name::Last, 0, 0),
    ("not", Name::Not, 1, 1),
    ("number", Name::Number, 1, 1),
    ("position", Name::Position, 0, 0),
    ("round", Name::Round, 1, 1),
    ("string-length", Name::StringLength, 1, 1),
    ("substring", Name::Substring, 2, 3),
    ("sum", Name::Sum, 1, 1),
    ("true", Name::True, 0, 0),
];

const AXES: [(&str, Axis); 8] = [
    ("ancestor-or-self::", Axis::AncestorOrSelf),
    ("ancestor::", Axis::Ancestor),
    ("attribute::", Axis::Attribute),
    ("child::", Axis::Child),
    ("descendant-or-self::", Axis::DescendantOrSelf),
    ("descendant::", Axis::Descendant),
    ("parent::", Axis::Parent),
    ("self::", Axis::Itself),
];

/// The operators by their precedence, the weakest first. Words need a boundary behind them.
const OPERATORS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[("<=", Operator::LessOrEqual), ("<", Operator::Less), (">=", Operator::GreaterOrEqual), (">", Operator::Greater)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("div", Operator::Divide), ("mod", Operator::Remainder)],
];

/// Reads an expression. Error: 1105.
pub(super) fn parse(text: &[u8]) -> Result<Step> {
    let mut reader = Reader { text, at: 0, depth: 0, in_predicate: false };
    let step = reader.binary(0).filter(|_| reader.rest().is_empty());
    step.ok_or_else(|| {
        let rest = reader.rest();
        let shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN_BYTES)]);
        Error::new(ErrorCode::UnknownError, format!("XPATH syntax error: '{shown}'"))
    })
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    in_predicate: bool,
}

impl<'t> Reader<'t> {
    /// The text from the next token on.
    fn rest(&mut self) -> &'t [u8] {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        &self.text[self.at..]
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest();
        let is_word = token.ends_with(|last: char| last.is_ascii_alphanumeric());
        let ends = !is_word || rest.get(token.len()).is_none_or(|byte| !is_name_byte(*byte));
        let found = rest.starts_with(token.as_bytes()) && ends;
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// `None` at any other token.
    fn expect(&mut self, token: &str) -> Option<()> {
        self.accept(token).then_some(())
    }

    fn binary(&mut self, level: usize) -> Option<Step> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        if level == 0 {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return None;
            }
        }
        let mut left = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(token, _)| self.accept(token)) {
            left = Step::Binary(*operator, Box::new([left, self.binary(level + 1)?]));
        }
        self.depth -= usize::from(level == 0);
        Some(left)
    }

    fn unary(&mut self) -> Option<Step> {
        if self.accept("-") {
            self.depth += 1;
            let operand = if self.depth > DEPTH_MAX { None } else { self.unary() };
            self.depth -= 1;
            return Some(Step::Negate(Box::new(operand?)));
        }
        let mut left = self.path()?;
        while self.accept("|") {
            left = Step::Binary(Operator::Union, Box::new([left, self.path()?]));
        }
        Some(left)
    }

    fn path(&mut self) -> Option<Step> {
        let first = *self.rest().first()?;
        let primary = match first {
            b'(' => {
                self.at += 1;
                let inner = self.binary(0)?;
                self.expect(")")?;
                Some(inner)
            }
            b'\'' | b'"' => Some(self.text(first)?),
            b'0'..=b'9' => Some(self.number()?),
            b'.' if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => Some(self.number()?),
            _ => self.call()?,
        };
        let Some(primary) = primary else { return self.location() };
        let mut parts = Vec::new();
        if self.rest().starts_with(b"[") {
            parts.push(Part { axis: Axis::Itself, test: Test::Node, predicates: self.predicates()? });
        }
        if self.rest().starts_with(b"/") {
            self.parts(&mut parts)?;
        }
        Some(if parts.is_empty() { primary } else { Step::Path(Start::Of(Box::new(primary)), parts) })
    }

    fn text(&mut self, quote: u8) -> Option<Step> {
        let inside = &self.text[self.at + 1..];
        let length = inside.iter().position(|byte| *byte == quote)?;
        self.at += length + 2;
        Some(Step::Text(inside[..length].to_vec()))
    }

    fn number(&mut self) -> Option<Step> {
        let rest = self.rest();
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        self.at += length;
        std::str::from_utf8(&rest[..length]).ok()?.parse().ok().map(Step::Number)
    }

    /// A call of a function. The inner `None` is anything else.
    fn call(&mut self) -> Option<Option<Step>> {
        let start = self.at;
        let name = self.name();
        let is_node_test = matches!(name, b"text" | b"node");
        if name.is_empty() || is_node_test || !self.accept("(") {
            self.at = start;
            return Some(None);
        }
        let known = FUNCTIONS.iter().find(|(known, ..)| known.as_bytes() == name);
        let Some((_, name, least, greatest)) = known else {
            self.at = start;
            return None;
        };
        let mut arguments = Vec::new();
        if !self.accept(")") {
            loop {
                arguments.push(self.binary(0)?);
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        (*least..=*greatest).contains(&arguments.len()).then_some(Some(Step::Call(*name, arguments)))
    }

    fn name(&mut self) -> &'t [u8] {
        let rest = self.rest();
        let begins = rest.first().is_some_and(|byte| is_name_byte(*byte) && !byte.is_ascii_digit() && *byte != b'-');
        let mut length = 0;
        while begins && length < rest.len() {
            // A colon is a part of the name, unless it is one of two.
            let is_prefix = rest[length] == b':' && rest.get(length + 1).is_some_and(|next| *next != b':');
            let is_axis = rest[length] == b':' && !is_prefix;
            if is_axis || !is_name_byte(rest[length]) && !is_prefix {
                break;
            }
            length += 1;
        }
        self.at += length;
        &rest[..length]
    }

    /// A path from the root or the current node.
    fn location(&mut self) -> Option<Step> {
        let mut parts = Vec::new();
        if self.rest().starts_with(b"/") {
            if !self.rest().starts_with(b"//") && !self.begins_part(1) {
                self.at += 1;
                return Some(Step::Path(Start::Root, parts));
            }
            self.parts(&mut parts)?;
            return Some(Step::Path(Start::Root, parts));
        }
        self.part(&mut parts)?;
        self.parts(&mut parts)?;
        Some(Step::Path(if self.in_predicate { Start::Current } else { Start::Root }, parts))
    }

    /// Whether a part of a path begins some bytes behind the current one.
    fn begins_part(&self, ahead: usize) -> bool {
        let next = self.text[self.at + ahead..].iter().find(|byte| !byte.is_ascii_whitespace());
        next.is_some_and(|byte| is_name_byte(*byte) || matches!(byte, b'@' | b'*' | b'.'))
    }

    /// Parts, each with a slash before it.
    fn parts(&mut self, parts: &mut Vec<Part>) -> Option<()> {
        while self.rest().starts_with(b"/") {
            if self.accept("//") {
                parts.push(Part { axis: Axis::DescendantOrSelf, test: Test::Node, predicates: Vec::new() });
            } else {
                self.at += 1;
            }
            self.part(parts)?;
        }
        Some(())
    }

    fn part(&mut self, parts: &mut Vec<Part>) -> Option<()> {
        let plain = |axis| Part { axis, test: Test::Node, predicates: Vec::new() };
        if self.accept("..") {
            parts.push(plain(Axis::Parent));
            return Some(());
        }
        if self.accept(".") {
            parts.push(plain(Axis::Itself));
            return Some(());
        }
        let mut axis = if self.accept("@") { Axis::Attribute } else { Axis::Child };
        if axis == Axis::Child {
            let rest = self.rest();
            let named = AXES.iter().find(|(name, _)| rest.starts_with(name.as_bytes()));
            if let Some((name, known)) = named {
                (axis, self.at) = (*known, self.at + name.len());
            }
        }
        let test = if self.accept("*") {
            Test::Any
        } else {
            let name = self.name();
            match name {
                b"" => return None,
                b"text" | b"node" if self.accept("(") => {
                    self.expect(")")?;
                    if name == b"text" { Test::Text } else { Test::Node }
                }
                name => Test::Named(name.to_vec()),
            }
        };
        let predicates = self.predicates()?;
        parts.push(Part { axis, test, predicates });
        Some(())
    }

    fn predicates(&mut self) -> Option<Vec<Step>> {
        let mut predicates = Vec::new();
        while self.accept("[") {
            let outer = std::mem::replace(&mut self.in_predicate, true);
            predicates.push(self.binary(0)?);
            self.in_predicate = outer;
            self.expect("]")?;
        }
        Some(predicates)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || byte >= 0x80
}
