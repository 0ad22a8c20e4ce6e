//! Expressions as text for messages, close to MySQL's own format.

use std::fmt::Write;

use junctor_model::value::{Value, ValueRef};

use crate::function::{MOMENT_DECIMAL, MOMENT_NUMBER, REFUSED_BYTES, VIRTUAL_COLUMN};
use crate::parameter::Parameters;
use crate::program::{CastTarget, Expression, IsTest, Node};

/// Maximum number of characters of an expression in a message.
const TEXT_CHARACTERS_MAX: usize = 1024;

impl Expression {
    /// The expression as SQL text with the values of its parameters, truncated to 1,024 characters.
    pub fn describe(&self, parameters: Parameters<'_>) -> String {
        let mut out = String::new();
        write_expression(self, parameters, &mut out);
        if let Some((at, _)) = out.char_indices().nth(TEXT_CHARACTERS_MAX) {
            out.truncate(at);
        }
        out
    }
}

fn write_expression(expression: &Expression, parameters: Parameters<'_>, out: &mut String) {
    // Stop early in a long list, because `describe` truncates the text. A character has up to 4 bytes.
    if out.len() > TEXT_CHARACTERS_MAX * 4 {
        return;
    }
    match &expression.node {
        Node::Column { name, .. } => out.push_str(name),
        Node::Parameter(ordinal) => write_value(parameters.get(*ordinal), out),
        Node::Constant(value) => write_value(value.as_ref(), out),
        Node::MissingDefault { .. } => out.push_str("default"),
        Node::Convert(operand) => write_expression(operand, parameters, out),
        Node::Cast(target, operand) => {
            out.push_str("cast(");
            write_expression(operand, parameters, out);
            let _ = write!(out, " as {})", target_name(*target));
        }
        Node::Collate(operand) => {
            write_expression(operand, parameters, out);
            let _ = write!(out, " collate {}", expression.result.collation.name());
        }
        Node::Compare(operator, _, operands) => infix(operator.symbol(), &**operands, parameters, out),
        Node::And(operands) => infix("and", operands, parameters, out),
        Node::Or(operands) => infix("or", operands, parameters, out),
        Node::Xor(operands) => infix("xor", &**operands, parameters, out),
        Node::Arithmetic(operator, operands) => infix(operator.symbol(), &**operands, parameters, out),
        Node::Bits(operator, operands) => infix(operator.symbol(), &**operands, parameters, out),
        Node::Not(operand) => prefixed("(not ", operand, ")", parameters, out),
        // A literal that became a parameter is shown with its sign, like a constant.
        Node::Negate(operand) if matches!(operand.node, Node::Parameter(_)) => {
            prefixed("-", operand, "", parameters, out);
        }
        Node::Negate(operand) => prefixed("-(", operand, ")", parameters, out),
        Node::BitNot(operand) => prefixed("~", operand, "", parameters, out),
        Node::Like { negated, operands, .. } => {
            infix(if *negated { "not like" } else { "like" }, &**operands, parameters, out);
        }
        Node::Case { branches, otherwise } => {
            out.push_str("(case");
            for (condition, result) in branches {
                prefixed(" when ", condition, " then ", parameters, out);
                write_expression(result, parameters, out);
            }
            if let Some(otherwise) = otherwise {
                prefixed(" else ", otherwise, "", parameters, out);
            }
            out.push_str(" end)");
        }
        Node::Coalesce(operands) => call("coalesce", operands, parameters, out),
        Node::NullIf(_, operands) => call("nullif", &**operands, parameters, out),
        Node::Call(function, operands) if function.name == VIRTUAL_COLUMN && operands.len() == 2 => {
            write_expression(&operands[1], parameters, out);
        }
        Node::Call(function, operands) if function.name.starts_with("USER VARIABLE") => {
            write_variable(operands, function.name.ends_with(":="), parameters, out);
        }
        Node::Call(function, operands)
            if matches!(function.name, MOMENT_NUMBER | MOMENT_DECIMAL | "JSON TRUTH" | REFUSED_BYTES)
                && operands.len() == 1 =>
        {
            write_expression(&operands[0], parameters, out);
        }
        Node::Call(function, operands)
            if matches!(function.name, "CAST DATE" | "CAST TIME" | "CAST DATETIME" | "CAST YEAR" | "CAST JSON") =>
        {
            let target = function.name["CAST ".len()..].to_ascii_lowercase();
            let digits = match operands.get(1).and_then(Expression::as_constant) {
                Some(Value::Int(digits @ 1..)) => format!("({digits})"),
                _ => String::new(),
            };
            prefixed("cast(", &operands[0], &format!(" as {target}{digits})"), parameters, out);
        }
        Node::Call(function, operands) if function.name == "EXTRACT" && operands.len() == 2 => {
            let unit = match operands[1].as_constant() {
                Some(Value::Bytes(unit)) => String::from_utf8_lossy(unit).to_ascii_lowercase(),
                _ => String::new(),
            };
            prefixed(&format!("extract({unit} from "), &operands[0], ")", parameters, out);
        }
        Node::Call(function, operands) => call(&function.name.to_ascii_lowercase(), operands, parameters, out),
        _ => write_predicate(expression, parameters, out),
    }
}

/// A user variable, or its assignment.
fn write_variable(operands: &[Expression], is_assigned: bool, parameters: Parameters<'_>, out: &mut String) {
    let [name, value] = operands else { return };
    let name = match &name.node {
        Node::Constant(Value::Bytes(name)) => String::from_utf8_lossy(name).into_owned(),
        Node::Parameter(ordinal) => match parameters.get(*ordinal) {
            ValueRef::Bytes(name) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    match is_assigned {
        true => prefixed(&format!("(@{name}:="), value, ")", parameters, out),
        false => _ = write!(out, "(@`{name}`)"),
    }
}

/// IS, BETWEEN and IN.
fn write_predicate(expression: &Expression, parameters: Parameters<'_>, out: &mut String) {
    match &expression.node {
        Node::Is { test, negated, operand } => {
            let test = match test {
                IsTest::Null => "null",
                IsTest::True => "true",
                IsTest::False => "false",
            };
            prefixed("(", operand, if *negated { " is not " } else { " is " }, parameters, out);
            out.push_str(test);
            out.push(')');
        }
        Node::Between { negated, operands, .. } => {
            let [value, low, high] = &**operands;
            prefixed("(", value, if *negated { " not between " } else { " between " }, parameters, out);
            prefixed("", low, " and ", parameters, out);
            prefixed("", high, ")", parameters, out);
        }
        Node::InList { negated, operand, list } => {
            prefixed("(", operand, if *negated { " not in (" } else { " in (" }, parameters, out);
            separated(list.iter().map(|(_, item)| item), ",", parameters, out);
            out.push_str("))");
        }
        Node::InParameters { negated, operand, parameter, .. } => {
            prefixed("(", operand, if *negated { " not in (" } else { " in (" }, parameters, out);
            for (position, value) in parameters.list(*parameter).take(TEXT_CHARACTERS_MAX).enumerate() {
                out.push_str(if position == 0 { "" } else { "," });
                write_value(value, out);
            }
            out.push_str("))");
        }
        _ => {}
    }
}

fn infix(symbol: &str, operands: &[Expression], parameters: Parameters<'_>, out: &mut String) {
    out.push('(');
    separated(operands.iter(), &format!(" {symbol} "), parameters, out);
    out.push(')');
}

fn prefixed(before: &str, operand: &Expression, after: &str, parameters: Parameters<'_>, out: &mut String) {
    out.push_str(before);
    write_expression(operand, parameters, out);
    out.push_str(after);
}

fn call(name: &str, operands: &[Expression], parameters: Parameters<'_>, out: &mut String) {
    out.push_str(name);
    out.push('(');
    separated(operands.iter(), ",", parameters, out);
    out.push(')');
}

fn separated<'e>(
    operands: impl Iterator<Item = &'e Expression>,
    separator: &str,
    parameters: Parameters<'_>,
    out: &mut String,
) {
    for (position, operand) in operands.enumerate() {
        out.push_str(if position == 0 { "" } else { separator });
        write_expression(operand, parameters, out);
    }
}

fn write_value(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Null => out.push_str("NULL"),
        ValueRef::Bytes(text) => {
            let _ = write!(out, "'{}'", String::from_utf8_lossy(text));
        }
        number => {
            let mut text = Vec::new();
            junctor_model::row_encoding::append_text(number, &mut text);
            out.push_str(&String::from_utf8_lossy(&text));
        }
    }
}

fn target_name(target: CastTarget) -> String {
    match target {
        CastTarget::Signed => "signed".into(),
        CastTarget::Unsigned => "unsigned".into(),
        CastTarget::Double => "double".into(),
        CastTarget::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        CastTarget::Char { length: Some(length), .. } => format!("char({length})"),
        CastTarget::Char { .. } => "char".into(),
        CastTarget::Binary { length: Some(length) } => format!("binary({length})"),
        CastTarget::Binary { .. } => "binary".into(),
    }
}
