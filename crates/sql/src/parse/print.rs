//! Expressions as MySQL 8.0 prints them in SHOW CREATE TABLE. The table's definition keeps this text, and
//! reads it in the default dialect, whatever the session's `sql_mode` is.

use junctor_model::quoted_name::quoted_name;

use super::expression::{
    BinaryOperator, Case, CastTarget, ColumnReference, Expression, FunctionCall, InList, IsTest, Literal,
    StringLiteral, TemporalKind, TrimSide, UnaryOperator,
};
use super::json_table::VALUE_CHARACTERS_MAX;

/// The expression as text. Columns have no qualifiers. `None` if the expression has a part that no definition
/// may contain.
pub fn expression_text(expression: &Expression) -> Option<String> {
    let mut printer = Printer { out: String::new(), is_query: false, database: None };
    printer.expression(expression)?;
    Some(printer.out)
}

/// Prints expressions and queries.
pub(super) struct Printer<'p> {
    pub(super) out: String,
    /// Whether a query is printed: columns have qualifiers, and strings the character set of the session.
    pub(super) is_query: bool,
    /// The database of tables without one, if it is printed.
    pub(super) database: Option<&'p str>,
}

impl Printer<'_> {
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Expressions, with texts before, between and after them.
    pub(super) fn all<'e>(
        &mut self,
        (before, between, after): (&str, &str, &str),
        expressions: impl IntoIterator<Item = &'e Expression>,
    ) -> Option<()> {
        self.text(before);
        for (position, expression) in expressions.into_iter().enumerate() {
            if position > 0 {
                self.text(between);
            }
            self.expression(expression)?;
        }
        self.text(after);
        Some(())
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Option<()> {
        match expression {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Column(reference) => {
                self.column(reference);
                Some(())
            }
            Expression::Unary { operator, operand } => {
                let before = match operator {
                    UnaryOperator::Minus => "-(",
                    UnaryOperator::BitNot => "~(",
                    UnaryOperator::Not => return self.all(("(not(", "", "))"), [&**operand]),
                };
                self.all((before, "", ")"), [&**operand])
            }
            Expression::Binary { operator, left, right } => {
                let between = format!(" {} ", symbol(*operator));
                self.all(("(", &between, ")"), [&**left, &**right])
            }
            Expression::And(operands) => self.all(("(", " and ", ")"), operands),
            Expression::Or(operands) => self.all(("(", " or ", ")"), operands),
            Expression::Between { negated, operand, low, high } => {
                let is_between = if *negated { " not between " } else { " between " };
                self.all(("(", "", is_between), [&**operand])?;
                self.all(("", " and ", ")"), [&**low, &**high])
            }
            Expression::InList { negated, operand, list: InList::Expressions(list) } => {
                self.all(("(", "", if *negated { " not in " } else { " in " }), [&**operand])?;
                self.all(("(", ",", "))"), list)
            }
            Expression::Is { negated, operand, test } => {
                let test = match test {
                    IsTest::Null | IsTest::Unknown => "null)",
                    IsTest::True => "true)",
                    IsTest::False => "false)",
                };
                self.all(("(", "", if *negated { " is not " } else { " is " }), [&**operand])?;
                self.text(test);
                Some(())
            }
            Expression::Like { negated, operand, pattern, escape } => {
                self.all(("(", "", if *negated { " not like " } else { " like " }), [&**operand])?;
                self.expression(pattern)?;
                if let Some(escape) = escape {
                    self.all((" escape ", "", ""), [&**escape])?;
                }
                self.text(")");
                Some(())
            }
            Expression::Case(case) => self.case(case),
            Expression::Cast { operand, target } => {
                self.all(("cast(", "", " as "), [&**operand])?;
                let target = cast_target(target);
                self.text(&target);
                self.text(")");
                Some(())
            }
            Expression::ConvertUsing { operand, character_set } => {
                self.all(("convert(", "", " using "), [&**operand])?;
                self.text(character_set);
                self.text(")");
                Some(())
            }
            Expression::Collate { operand, collation } => {
                self.all(("(", "", " collate "), [&**operand])?;
                self.text(collation);
                self.text(")");
                Some(())
            }
            Expression::Function(call) => self.call(call),
            Expression::Trim { side, removed, operand } => self.trim(*side, removed.as_deref(), operand),
            Expression::Row(members) if self.is_query => self.all(("(", ",", ")"), members),
            Expression::Row(members) => self.all(("row(", ",", ")"), members),
            Expression::Subquery(_) | Expression::Exists(_) | Expression::Quantified { .. } if self.is_query => {
                self.subquery(expression)
            }
            Expression::Parameter(_)
            | Expression::UserVariable(_)
            | Expression::AssignUserVariable { .. }
            | Expression::SystemVariable(_)
            | Expression::Subquery(_)
            | Expression::Exists(_)
            | Expression::Quantified { .. }
            | Expression::InList { .. }
            | Expression::Default(_)
            | Expression::InsertedValue(_) => None,
        }
    }

    fn column(&mut self, reference: &ColumnReference) {
        if self.is_query {
            for qualifier in reference.database.iter().chain(&reference.table) {
                self.text(&quoted_name(qualifier));
                self.text(".");
            }
        }
        self.text(&quoted_name(&reference.name));
    }

    fn subquery(&mut self, expression: &Expression) -> Option<()> {
        match expression {
            Expression::Subquery(query) => self.bracketed(query),
            Expression::Exists(query) => {
                self.text("exists");
                self.bracketed(query)
            }
            Expression::Quantified { operator, all, operand, query } => {
                let quantifier = match (operator, all) {
                    (BinaryOperator::Equal, false) => " in ".to_owned(),
                    (BinaryOperator::NotEqual, true) => " not in ".to_owned(),
                    (operator, true) => format!(" {} all ", symbol(*operator)),
                    (operator, false) => format!(" {} any ", symbol(*operator)),
                };
                self.all(("(", "", &quantifier), [&**operand])?;
                self.bracketed(query)?;
                self.text(")");
                Some(())
            }
            _ => None,
        }
    }

    fn case(&mut self, case: &Case) -> Option<()> {
        self.text("(case ");
        if let Some(operand) = &case.operand {
            self.all(("", "", " "), [operand])?;
        }
        for branch in &case.branches {
            self.all(("when ", " then ", " "), [&branch.when, &branch.value])?;
        }
        if let Some(otherwise) = &case.otherwise {
            self.all(("else ", "", " "), [otherwise])?;
        }
        self.text("end)");
        Some(())
    }

    fn trim(&mut self, side: TrimSide, removed: Option<&Expression>, operand: &Expression) -> Option<()> {
        let side = match side {
            TrimSide::Both if removed.is_none() => "",
            TrimSide::Both => "both ",
            TrimSide::Leading => "leading ",
            TrimSide::Trailing => "trailing ",
        };
        self.text("trim(");
        self.text(side);
        match removed {
            Some(removed) => self.all(("", " from ", ")"), [removed, operand]),
            None if side.is_empty() => self.all(("", "", ")"), [operand]),
            None => self.all(("from ", "", ")"), [operand]),
        }
    }

    fn literal(&mut self, literal: &Literal) -> Option<()> {
        match literal {
            Literal::Null => self.text("NULL"),
            Literal::Boolean(value) => self.text(if *value { "true" } else { "false" }),
            Literal::Integer(value) => self.text(&value.to_string()),
            Literal::Decimal(digits) => self.text(digits),
            Literal::Double(value) => self.text(&format!("{value:e}")),
            Literal::String(string) => return self.string(string),
            Literal::Hexadecimal(bytes) | Literal::Bits(bytes) => self.hexadecimal(bytes),
            Literal::Temporal { kind, text } => {
                self.text(match kind {
                    TemporalKind::Date => "DATE",
                    TemporalKind::Time => "TIME",
                    TemporalKind::Timestamp => "TIMESTAMP",
                });
                self.quoted(std::str::from_utf8(text).ok()?);
            }
        }
        Some(())
    }

    fn hexadecimal(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.text("x''");
        }
        self.text("0x");
        for byte in bytes {
            self.text(&format!("{byte:02x}"));
        }
    }

    /// A string with the introducer of its character set.
    fn string(&mut self, string: &StringLiteral) -> Option<()> {
        match (&string.character_set, std::str::from_utf8(&string.bytes)) {
            (Some(set), Ok(text)) => {
                self.text(&format!("_{}", set.to_ascii_lowercase()));
                self.quoted(text);
            }
            (None, Ok(text)) => {
                if !self.is_query {
                    self.text("_utf8mb4");
                }
                self.quoted(text);
            }
            (_, Err(_)) => return None,
        }
        Some(())
    }

    pub(super) fn quoted(&mut self, text: &str) {
        self.out.push('\'');
        for character in text.chars() {
            match character {
                '\'' => self.text("\\'"),
                '\\' => self.text("\\\\"),
                '\0' => self.text("\\0"),
                '\n' => self.text("\\n"),
                '\r' => self.text("\\r"),
                '\u{1a}' => self.text("\\Z"),
                other => self.out.push(other),
            }
        }
        self.out.push('\'');
    }

    fn call(&mut self, call: &FunctionCall) -> Option<()> {
        if call.database.is_some() {
            return None;
        }
        if self.is_query && call.is_aggregate() {
            return self.aggregate(call);
        }
        if self.is_query && call.over.is_some() {
            return self.window_function(call);
        }
        if call.distinct || call.star || call.over.is_some() {
            return None;
        }
        let arguments = &call.arguments;
        match (call.name.to_ascii_uppercase().as_str(), arguments.as_slice()) {
            (name @ ("DATE_ADD" | "DATE_SUB"), [day, number, unit]) => {
                let sign = if name == "DATE_ADD" { " + interval " } else { " - interval " };
                self.all(("(", sign, " "), [day, number])?;
                self.unit(unit)?;
                self.text(")");
                Some(())
            }
            ("EXTRACT", [value, unit]) => {
                self.text("extract(");
                self.unit(unit)?;
                self.all((" from ", "", ")"), [value])
            }
            ("TIMESTAMPDIFF", [unit, from, to]) => {
                self.text("timestampdiff(");
                self.unit(unit)?;
                self.all((",", ",", ")"), [from, to])
            }
            ("GET_FORMAT", [kind, standard]) => {
                self.text("get_format(");
                self.unit(kind)?;
                self.all((", ", "", ")"), [standard])
            }
            ("JSON_VALUE", [document, path, clauses @ ..]) => {
                self.all(("json_value(", ", ", ""), [document, path])?;
                self.json_value_clauses(clauses)
            }
            ("MEMBER OF", [value, array]) => self.all(("", " member of (", ")"), [value, array]),
            ("CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP", _) => self.all(("now(", ",", ")"), arguments),
            ("CURRENT_DATE", _) => self.all(("curdate(", ",", ")"), arguments),
            ("CURRENT_TIME", _) => self.all(("curtime(", ",", ")"), arguments),
            ("AT TIME ZONE", [moment, ..]) => self.all(("", "", " at time zone '+00:00'"), [moment]),
            // The other names with spaces belong to no syntax.
            (name, _) if name.contains(' ') => None,
            (name, _) => {
                self.text(&name.to_ascii_lowercase());
                self.all(("(", ",", ")"), arguments)
            }
        }
    }

    /// The clauses of JSON_VALUE, from its arguments behind the path.
    fn json_value_clauses(&mut self, clauses: &[Expression]) -> Option<()> {
        let returning = match clauses.first() {
            None => "char(512)".to_owned(),
            Some(Expression::Collate { operand, .. }) => match &**operand {
                Expression::Cast { target: CastTarget::Char { length, .. }, .. } => without_maximum("char", *length),
                _ => return None,
            },
            Some(Expression::Cast { target: CastTarget::Char { length, character_set }, .. }) => {
                let set = character_set.as_deref().unwrap_or("utf8mb4");
                format!("{} charset {}", without_maximum("char", *length), set.to_ascii_lowercase())
            }
            Some(Expression::Cast { target: CastTarget::Binary(length), .. }) => without_maximum("binary", *length),
            Some(Expression::Cast { target, .. }) => cast_target(target),
            Some(_) => return None,
        };
        self.text(" returning ");
        self.text(&returning);
        let actions = clauses.get(1..).unwrap_or_default().chunks_exact(2);
        let is_default = |action: &[Expression]| action[0] == Expression::Literal(Literal::Integer(0));
        if !actions.clone().all(is_default) {
            for (action, place) in actions.zip([" on empty", " on error"]) {
                match &action[0] {
                    Expression::Literal(Literal::Integer(1)) => self.all((" default ", "", ""), [&action[1]])?,
                    Expression::Literal(Literal::Integer(2)) => self.text(" error"),
                    _ => self.text(" null"),
                }
                self.text(place);
            }
        }
        self.text(")");
        Some(())
    }

    /// The unit of an interval, which is a literal among the arguments.
    fn unit(&mut self, unit: &Expression) -> Option<()> {
        let Expression::Literal(Literal::String(unit)) = unit else { return None };
        let unit = std::str::from_utf8(&unit.bytes).ok()?;
        self.text(&unit.to_ascii_lowercase());
        Some(())
    }
}

fn symbol(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Xor => "xor",
        BinaryOperator::Equal => "=",
        BinaryOperator::NullSafeEqual => "<=>",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        BinaryOperator::BitOr => "|",
        BinaryOperator::BitAnd => "&",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::IntegerDivide => "DIV",
        BinaryOperator::Modulo => "%",
        BinaryOperator::BitXor => "^",
    }
}

fn cast_target(target: &CastTarget) -> String {
    let sized = |name: &str, size: &Option<u32>| match size {
        Some(size) => format!("{name}({size})"),
        None => name.to_owned(),
    };
    match target {
        CastTarget::Signed => "signed".to_owned(),
        CastTarget::Unsigned => "unsigned".to_owned(),
        CastTarget::Binary(length) => sized("binary", length),
        CastTarget::Char { length, character_set } => {
            let set = character_set.as_deref().unwrap_or("utf8mb4");
            format!("{} charset {}", sized("char", length), set.to_ascii_lowercase())
        }
        CastTarget::Decimal { precision, scale } => match scale {
            None => sized("decimal", precision),
            Some(scale) => format!("decimal({},{scale})", precision.unwrap_or(10)),
        },
        CastTarget::Array(element) => match &**element {
            CastTarget::Char { length, .. } => format!("{} array", sized("char", length)),
            CastTarget::Decimal { precision, scale } => {
                format!("decimal({}, {}) array", precision.unwrap_or(10), scale.unwrap_or(0))
            }
            element => format!("{} array", cast_target(element)),
        },
        CastTarget::Double => "double".to_owned(),
        CastTarget::Float(precision) => sized("float", precision),
        CastTarget::Date => "date".to_owned(),
        CastTarget::Time(digits) => sized("time", digits),
        CastTarget::DateTime(digits) => sized("datetime", digits),
        CastTarget::Year => "year".to_owned(),
        CastTarget::Json => "json".to_owned(),
    }
}

/// A type of JSON_VALUE; without its length if none was written.
fn without_maximum(name: &str, length: Option<u32>) -> String {
    match length {
        Some(length) if length < VALUE_CHARACTERS_MAX => format!("{name}({length})"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expression;

    /// The printed text reads back as the same expression, which prints the same text.
    fn printed(text: &str) -> String {
        let expression = parse_expression(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = expression_text(&expression).unwrap_or_else(|| panic!("{text} is printable"));
        let again = parse_expression(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
        assert_eq!(expression_text(&again).as_ref(), Some(&printed), "{text}");
        printed
    }

    #[test]
    fn expressions_print_in_mysqls_form() {
        for (text, expected) in [
            ("a+1", "(`a` + 1)"),
            ("a > 0 and b<5 AND c", "((`a` > 0) and (`b` < 5) and `c`)"),
            ("concat(a, 'x''y\\n')", "concat(`a`,_utf8mb4'x\\'y\\n')"),
            ("UUID()", "uuid()"),
            ("t.j->'$.a'", "json_extract(`j`,_utf8mb4'$.a')"),
            ("j->>'$.a'", "json_unquote(json_extract(`j`,_utf8mb4'$.a'))"),
            ("NOT a", "(not(`a`))"),
            ("-a * ~b", "(-(`a`) * ~(`b`))"),
            ("a BETWEEN 1 AND 2 OR b NOT IN (1, 'x')", "((`a` between 1 and 2) or (`b` not in (1,_utf8mb4'x')))"),
            ("a IS NOT NULL", "(`a` is not null)"),
            ("a LIKE 'x|%' ESCAPE '|'", "(`a` like _utf8mb4'x|%' escape _utf8mb4'|')"),
            ("CASE a WHEN 1 THEN 'x' ELSE 'y' END", "(case `a` when 1 then _utf8mb4'x' else _utf8mb4'y' end)"),
            ("CAST(a AS DECIMAL(10,2))", "cast(`a` as decimal(10,2))"),
            ("CAST(a AS CHAR(3))", "cast(`a` as char(3) charset utf8mb4)"),
            ("a COLLATE utf8mb4_bin", "(`a` collate utf8mb4_bin)"),
            ("CURRENT_DATE + INTERVAL 1 DAY", "(curdate() + interval 1 day)"),
            ("EXTRACT(YEAR FROM d)", "extract(year from `d`)"),
            ("TRIM(LEADING 'x' FROM a)", "trim(leading _utf8mb4'x' from `a`)"),
            ("TIMESTAMPDIFF(MONTH, a, b)", "timestampdiff(month,`a`,`b`)"),
            ("x'41' = DATE '2020-01-02'", "(0x41 = DATE'2020-01-02')"),
            ("1.50 + 1e3 + -2", "((1.50 + 1e3) + -2)"),
            ("a MOD 2 XOR TRUE", "((`a` % 2) xor true)"),
            ("JSON_VALUE(a, '$.b')", "json_value(`a`, _utf8mb4'$.b' returning char(512))"),
            (
                "JSON_VALUE(a, '$' RETURNING CHAR ERROR ON EMPTY)",
                "json_value(`a`, _utf8mb4'$' returning char error on empty null on error)",
            ),
            (
                "JSON_VALUE(a, '$' RETURNING DECIMAL(4,2) DEFAULT -1 ON EMPTY DEFAULT '2' ON ERROR)",
                "json_value(`a`, _utf8mb4'$' returning decimal(4,2) default -1 on empty default _utf8mb4'2' on error)",
            ),
            (
                "JSON_VALUE(a, '$' RETURNING CHAR(3) CHARSET ascii NULL ON ERROR)",
                "json_value(`a`, _utf8mb4'$' returning char(3) charset ascii)",
            ),
            ("POSITION('x' IN a)", "locate(_utf8mb4'x',`a`)"),
            ("IF(a, b, NULL)", "if(`a`,`b`,NULL)"),
        ] {
            assert_eq!(printed(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_and_parameters_do_not_print() {
        for text in ["@a", "@@sql_mode", "DEFAULT(a)", "VALUES(a)"] {
            let expression = parse_expression(text).expect("it is an expression");
            assert_eq!(expression_text(&expression), None, "{text}");
        }
    }
}
