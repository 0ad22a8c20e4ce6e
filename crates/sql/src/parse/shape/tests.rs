//! Tests of what the scanner lifts, and of its agreement with the parser.

use super::*;
use crate::parse::Dialect;
use crate::parse::expression::{Case, CaseBranch, Expression, FunctionCall, InList, Literal, StringLiteral};
use crate::parse::statement::{InsertSource, Limit, LimitValue, Select, Statement};
use crate::parse::{Parameterised, parse, parse_with_parameters};
use proptest::prelude::*;

fn shape_of(text: &str) -> Option<Shape> {
    let mut shape = Shape::new(1);
    (scan(text.as_bytes(), &mut shape) == ShapeOutcome::Cacheable).then_some(shape)
}

fn cacheable(text: &str) -> Shape {
    shape_of(text).unwrap_or_else(|| panic!("not cacheable: {text}"))
}

/// The normalised text with readable marks. The mark of a decimal shows its scale.
fn shown(text: &str) -> String {
    let marks = ["", "<i>", "<d>", "<e>", "<s>", "<i*>", "<d*>", "<e*>", "<s*>"];
    let normalised = cacheable(text).normalised().to_vec();
    let mut shown = String::new();
    let mut bytes = normalised.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.next_if(|next| byte == 2 && *next < b' ') {
            Some(scale) => shown.push_str(&format!("<d{scale}>")),
            None => match marks.get(usize::from(byte)) {
                Some(mark) => shown.push_str(mark),
                None => shown.push(char::from(byte)),
            },
        }
    }
    shown
}

#[test]
fn literals_become_marks_of_their_class() {
    for (text, expected) in [
        ("SELECT c FROM sbtest1 WHERE id=5017", "SELECT c FROM sbtest1 WHERE id=<i>"),
        ("SELECT c FROM t WHERE a BETWEEN 1 AND 2.5", "SELECT c FROM t WHERE a BETWEEN <i> AND <d1>"),
        ("SELECT c FROM t WHERE a = 'x\\'y' OR b = 1e5", "SELECT c FROM t WHERE a = <s> OR b = <e>"),
        ("SELECT c FROM t WHERE a = -5 LIMIT 3, 4", "SELECT c FROM t WHERE a = -<i> LIMIT <i>, <i>"),
        ("SELECT c FROM t WHERE a = 99999999999999999999", "SELECT c FROM t WHERE a = <d0>"),
        ("UPDATE t SET k=k+1, c = \"z\" WHERE `id 1` = 7;", "UPDATE t SET k=k+<i>, c = <s> WHERE `id 1` = <i>"),
        ("  SELECT 1, 'a'  FROM t\n\tWHERE a1=1 ; ; ", "SELECT 1, 'a'  FROM t WHERE a1=<i>"),
        ("SELECT @@version_comment limit 1", "SELECT @@version_comment limit 1"),
        ("/* c */ DELETE FROM t -- x\nWHERE a IS NULL", "DELETE FROM t WHERE a IS NULL"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (-5 + 1, -2)", "INSERT INTO t VALUES(-<i> + <i>, <i>)"),
        (
            "SELECT TRIM(LEADING 'x' FROM a), 5 FROM t WHERE b = 1",
            "SELECT TRIM(LEADING 'x' FROM a), 5 FROM t WHERE b = <i>",
        ),
        ("SELECT a FROM t WHERE f( 5 ,\n b )=(7)", "SELECT a FROM t WHERE f( <i> , b )=(<i>)"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
        assert!(agrees(text), "{text}");
    }
}

#[test]
fn lists_of_one_class_have_one_shape_whatever_their_length() {
    assert_eq!(shown("SELECT a FROM t WHERE id IN (1, -2,3 )"), "SELECT a FROM t WHERE id IN(<i*>)");
    assert_eq!(shown("SELECT a FROM t WHERE id IN ('a')"), "SELECT a FROM t WHERE id IN(<s*>)");
    assert_eq!(shown("SELECT a FROM t WHERE id IN (1,'a')"), "SELECT a FROM t WHERE id IN (<i>,<s>)");
    assert_eq!(shown("SELECT a FROM t WHERE id IN (1,b)"), "SELECT a FROM t WHERE id IN (<i>,b)");
    let shape = cacheable("SELECT a FROM t WHERE x = 'q' AND id NOT IN (10, 20, -30) AND y = 4");
    assert_eq!(shape.slot_count(), 3);
    assert_eq!(shape.list(ParameterNumber(1)).iter().map(ScannedLiteral::integer).collect::<Vec<_>>(), [10, 20, -30]);
    assert_eq!(shape.literal(ParameterNumber(2), 0).map(ScannedLiteral::integer), Some(4));
    assert_eq!(shape.literal(ParameterNumber(1), 0), None);
    let longer = cacheable("SELECT a FROM t WHERE x = '' AND id NOT IN (1) AND y = 5");
    assert_eq!((longer.hash(), longer.normalised()), (shape.hash(), shape.normalised()));
}

#[test]
fn rows_of_one_form_have_one_shape_whatever_their_number() {
    let shape =
        cacheable("INSERT INTO t (a,b) VALUES (1, 'x') , (-2, 'y'),(3, 'z') ON DUPLICATE KEY UPDATE a=VALUES(a)+9");
    let rows = shape.rows().expect("rows");
    assert_eq!((rows.first, rows.width, rows.count), (ParameterNumber(0), 2, 3));
    assert_eq!(shape.slot_count(), 3);
    assert_eq!(shape.literal(ParameterNumber(0), 1).map(ScannedLiteral::integer), Some(-2));
    assert_eq!(shape.literal(ParameterNumber(0), 3), None);
    assert_eq!(shape.literal(ParameterNumber(2), 0).map(ScannedLiteral::integer), Some(9));
    let single = cacheable("INSERT INTO t (a,b) VALUES(5, 'q')ON DUPLICATE KEY UPDATE a=VALUES(a)+0");
    assert_eq!((single.hash(), single.normalised()), (shape.hash(), shape.normalised()));
    assert!(shape_of("INSERT INTO t VALUES (1,2),(1,'x')").is_none());
    assert!(shape_of("INSERT INTO t VALUES (1,2),(1,NULL)").is_none());
    assert_eq!(shown("INSERT INTO t VALUES (1,DEFAULT),(2,DEFAULT)"), "INSERT INTO t VALUES(<i>,DEFAULT)");
}

#[test]
fn statements_whose_literal_text_matters_are_not_cacheable() {
    for text in [
        "SET a = 1",
        "SHOW TABLES",
        "CREATE TABLE t (a INT)",
        "SELECT /*+ hint */ a FROM t",
        "SELECT a FROM t /*!50000 WHERE a = 1 */",
        "SELECT a FROM t WHERE a = ?",
        "SELECT a FROM t; SELECT 2",
        "SELECT a FROM t WHERE a = 'x' 'y'",
        "SELECT a FROM t WHERE a = x'41'",
        "SELECT a FROM t WHERE a = _utf8mb4 'a'",
        "SELECT a FROM t WHERE a = 0x41",
        "SELECT a FROM t WHERE a = 1a",
        "SELECT a FROM t WHERE a = 'open",
        "SELECT a FROM t WHERE t.5 = 1",
        "SELECT a FROM t WHERE @5 = 1",
        "SELECT a FROM t WHERE (a = 1))",
        "SELECT a FROM t WHERE a = \x01",
        "",
        ";",
        "\u{e9}",
    ] {
        assert!(shape_of(text).is_none(), "{text}");
    }
    let long = format!("SELECT a FROM t WHERE a = {}", "b + ".repeat(10_000));
    assert!(shape_of(&long).is_none());
}

#[test]
fn a_literal_is_lifted_only_where_the_plan_needs_no_more_than_its_class() {
    let cases: &[(&str, &[&str])] = &[
        ("SELECT a FROM t ORDER BY 1", &["1"]),
        ("SELECT a FROM t ORDER BY a + 1 LIMIT 5", &["1"]),
        ("SELECT a FROM t GROUP BY 1", &["1"]),
        ("SELECT a FROM t GROUP BY a HAVING a > 3", &["3"]),
        ("SELECT a FROM t WHERE d = DATE '2020-01-01'", &["'2020-01-01'"]),
        ("SELECT a FROM t WHERE CAST(a AS CHAR(5)) = b", &["5"]),
        ("SELECT a FROM t WHERE a COLLATE 'utf8mb4_bin' = b", &["'utf8mb4_bin'"]),
        ("SELECT a FROM t WHERE a = 'x' COLLATE utf8mb4_bin", &["'x'"]),
        ("SELECT a FROM t WHERE CONCAT(ROUND(a/3,1))='3.3'", &["3", "1"]),
        ("SELECT a FROM t WHERE a = 5 AND 1", &["1"]),
        ("SELECT a FROM t WHERE a & 4 = 4", &["4"]),
        ("SELECT a FROM t WHERE a LIKE 5 OR a LIKE 'x%' ESCAPE '!'", &["5", "'!'"]),
        ("SELECT a FROM t WHERE a = -5 AND b > c + 1.5 AND s = 'x' AND b BETWEEN 1 AND 2", &[]),
        ("SELECT a FROM t WHERE a IN (1, 2) AND b NOT IN ('x', 1) AND a IS NULL", &[]),
        ("SELECT a FROM t WHERE (a, b) = (1, 2) AND (a, b) IN ((1, 2), (3, 4)) LIMIT 5, 6", &[]),
        ("SELECT a FROM t WHERE a = '1' + 1", &["'1'"]),
        ("SELECT a FROM t WHERE IF(a IN (1, 2), 1, 0) = 1", &["1, 2", "1", "0"]),
        ("INSERT INTO t SELECT 1, a FROM u WHERE b = 2", &["1"]),
        ("INSERT INTO t VALUES (1, 'x', -2.5, UPPER('y'))", &["'y'"]),
        ("INSERT INTO t VALUES (1, 2 + 3) ON DUPLICATE KEY UPDATE a = a + 1, s = 'x'", &[]),
        ("UPDATE t SET a = NOW(6)", &["6"]),
        ("UPDATE t SET s = IF(a > 5, 1, 2.50) WHERE id = 1", &["5", "1", "2.50"]),
        ("UPDATE t SET a = a + 1, s = 'x' WHERE id = 1 ORDER BY b * 2 LIMIT 3", &["2"]),
        ("DELETE FROM t WHERE a = CASE WHEN b = 1 THEN 2 END LIMIT 1", &["1", "2"]),
    ];
    for (text, expected) in cases {
        let shape = cacheable(text);
        let Ok(Parameterised::Statement { kept, .. }) =
            parse_with_parameters(text.as_bytes(), &shape, Dialect::default())
        else {
            panic!("{text} has parameters");
        };
        let kept: Vec<&str> = kept
            .iter()
            .map(|ordinal| std::str::from_utf8(shape.text_of(*ordinal, text.as_bytes())).expect("it is ASCII"))
            .collect();
        assert_eq!(kept, *expected, "{text}");
    }
}

#[test]
fn rows_that_keep_literals_are_parsed_each_time_unless_there_is_one() {
    for text in ["INSERT INTO t VALUES (UPPER('x')), (UPPER('y'))", "DELETE FROM t WHERE a = 1 RETURNING a"] {
        let shape = cacheable(text);
        assert_eq!(
            parse_with_parameters(text.as_bytes(), &shape, Dialect::default()),
            Ok(Parameterised::LiteralsMatter),
            "{text}"
        );
    }
}

#[test]
fn decimals_of_different_scale_have_different_shapes_except_in_rows() {
    let normalised = |text: &str| cacheable(text).normalised().to_vec();
    let same = [
        ("SELECT a FROM t WHERE b > 1.5", "SELECT a FROM t WHERE b > 22.5"),
        ("SELECT a FROM t WHERE b IN (1.5, 2.25)", "SELECT a FROM t WHERE b IN (1.125)"),
        ("INSERT INTO t VALUES (1, 1.5)", "INSERT INTO t VALUES (2, -1.25), (3, 0.125)"),
    ];
    for (left, right) in same {
        assert_eq!(normalised(left), normalised(right), "{left}");
    }
    let different = [
        ("SELECT a FROM t WHERE b > 1.5", "SELECT a FROM t WHERE b > 1.50"),
        ("INSERT INTO t VALUES (1, 1.5 + 1)", "INSERT INTO t VALUES (1, 1.50 + 1)"),
        ("INSERT INTO t VALUES (1, (1.5) + 1)", "INSERT INTO t VALUES (1, (1.50) + 1)"),
        ("UPDATE t SET a = 1.5", "UPDATE t SET a = 1.55"),
    ];
    for (left, right) in different {
        assert_ne!(normalised(left), normalised(right), "{left}");
    }
}

#[test]
fn different_statements_have_different_shapes() {
    let texts = [
        "SELECT a FROM t WHERE b=1",
        "SELECT a FROM t WHERE b='1'",
        "SELECT a FROM t WHERE b=1.0",
        "SELECT a FROM t WHERE b=-1",
        "SELECT a FROM t WHERE b=NULL",
        "SELECT a FROM t WHERE c=1",
        "SELECT A FROM t WHERE b=1",
        "SELECT a FROM t WHERE b IN (1)",
        "SELECT a FROM t WHERE b IN ('1')",
        "SELECT a FROM t WHERE b=1 LIMIT 1",
        "SELECT 1 FROM t WHERE b=1",
        "SELECT 2 FROM t WHERE b=1",
        "SELECT a FROM t WHERE b<=1",
        "SELECT a FROM t WHERE b< =1",
    ];
    for (index, first) in texts.iter().enumerate() {
        for second in &texts[index + 1..] {
            let (left, right) = (cacheable(first), cacheable(second));
            assert_ne!(left.normalised(), right.normalised(), "{first} / {second}");
            assert_ne!(left.hash()[0], right.hash()[0], "{first} / {second}");
            assert_ne!(left.hash()[1], right.hash()[1], "{first} / {second}");
        }
    }
    let mut seeded = Shape::new(2);
    scan(texts[0].as_bytes(), &mut seeded);
    assert_ne!(seeded.hash(), cacheable(texts[0]).hash());
}

#[test]
fn a_reused_shape_keeps_nothing_of_the_previous_statement() {
    let mut shape = Shape::new(1);
    scan(b"INSERT INTO t VALUES (1,2),(3,4)", &mut shape);
    scan(b"SELECT a FROM t WHERE b IN (1,2)", &mut shape);
    let fresh = cacheable("SELECT a FROM t WHERE b IN (1,2)");
    assert_eq!(shape.rows(), None);
    assert_eq!(
        (shape.normalised(), shape.literals(), shape.hash()),
        (fresh.normalised(), fresh.literals(), fresh.hash())
    );
}

/// Replaces parameters by the values of the lifted literals.
struct Substitution<'a> {
    text: &'a [u8],
    shape: &'a Shape,
    row: u32,
}

impl Substitution<'_> {
    fn value(&self, literal: &ScannedLiteral) -> Expression {
        let digits = || {
            let bytes = &self.text[literal.start as usize + usize::from(literal.negative)..literal.end as usize];
            std::str::from_utf8(bytes).expect("digits").to_owned()
        };
        let sign = if literal.negative { "-" } else { "" };
        Expression::Literal(match literal.class {
            LiteralClass::Integer => Literal::Integer(literal.integer()),
            LiteralClass::Decimal => Literal::Decimal(format!("{sign}{}", digits())),
            LiteralClass::Double => Literal::Double(format!("{sign}{}", digits()).parse().expect("a number")),
            LiteralClass::String => {
                let mut bytes = Vec::new();
                literal.decode(self.text, &mut bytes);
                Literal::String(StringLiteral { bytes, character_set: None, is_raw: false })
            }
        })
    }

    fn all(&self, expressions: &[Expression]) -> Vec<Expression> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    fn boxed(&self, expression: &Expression) -> Box<Expression> {
        Box::new(self.expression(expression))
    }

    fn expression(&self, expression: &Expression) -> Expression {
        match expression {
            Expression::Parameter(ordinal) => self.value(self.shape.literal(*ordinal, self.row).expect("a literal")),
            Expression::Unary { operator, operand } => match operator {
                crate::parse::expression::UnaryOperator::Minus => self.expression(operand).negate(),
                _ => Expression::Unary { operator: *operator, operand: self.boxed(operand) },
            },
            Expression::Binary { operator, left, right } => {
                Expression::Binary { operator: *operator, left: self.boxed(left), right: self.boxed(right) }
            }
            Expression::And(operands) => Expression::And(self.all(operands)),
            Expression::Or(operands) => Expression::Or(self.all(operands)),
            Expression::Between { negated, operand, low, high } => Expression::Between {
                negated: *negated,
                operand: self.boxed(operand),
                low: self.boxed(low),
                high: self.boxed(high),
            },
            Expression::InList { negated, operand, list } => Expression::InList {
                negated: *negated,
                operand: self.boxed(operand),
                list: InList::Expressions(match list {
                    InList::Expressions(members) => self.all(members),
                    InList::Parameters(list) => {
                        self.shape.list(*list).iter().map(|literal| self.value(literal)).collect()
                    }
                }),
            },
            Expression::Is { negated, operand, test } => {
                Expression::Is { negated: *negated, operand: self.boxed(operand), test: *test }
            }
            Expression::Like { negated, operand, pattern, escape } => Expression::Like {
                negated: *negated,
                operand: self.boxed(operand),
                pattern: self.boxed(pattern),
                escape: escape.as_ref().map(|escape| self.boxed(escape)),
            },
            Expression::Case(case) => Expression::Case(Box::new(Case {
                operand: case.operand.as_ref().map(|operand| self.expression(operand)),
                branches: case
                    .branches
                    .iter()
                    .map(|branch| CaseBranch {
                        when: self.expression(&branch.when),
                        value: self.expression(&branch.value),
                    })
                    .collect(),
                otherwise: case.otherwise.as_ref().map(|otherwise| self.expression(otherwise)),
            })),
            Expression::Function(call) => Expression::Function(Box::new(FunctionCall {
                arguments: self.all(&call.arguments),
                ..FunctionCall::clone(call)
            })),
            Expression::Cast { operand, target } => {
                Expression::Cast { operand: self.boxed(operand), target: target.clone() }
            }
            Expression::Row(members) => Expression::Row(self.all(members)),
            other => other.clone(),
        }
    }

    fn limit_value(&self, value: LimitValue) -> LimitValue {
        let LimitValue::Parameter(ordinal) = value else { return value };
        LimitValue::Rows(self.shape.literal(ordinal, 0).expect("a literal").magnitude())
    }

    fn select(&self, select: &Select) -> Select {
        let limit = select.limit.map(|limit| Limit {
            count: self.limit_value(limit.count),
            offset: limit.offset.map(|offset| self.limit_value(offset)),
        });
        let mut select = Select { limit, ..select.clone() };
        select.filter = select.filter.as_ref().map(|filter| self.expression(filter));
        select.having = select.having.as_ref().map(|having| self.expression(having));
        for item in &mut select.order_by {
            item.expression = self.expression(&item.expression);
        }
        select
    }

    fn statement(&mut self, statement: Statement) -> Statement {
        match statement {
            Statement::Select(select) => Statement::Select(Box::new(self.select(&select))),
            Statement::Insert(mut insert) => {
                insert.source = match insert.source {
                    InsertSource::Rows(rows) => InsertSource::Rows(rows.iter().map(|row| self.all(row)).collect()),
                    InsertSource::UniformRows { row, .. } => {
                        let count = self.shape.rows().expect("rows").count;
                        let rows = (0..count).map(|number| {
                            self.row = number;
                            self.all(&row)
                        });
                        InsertSource::Rows(rows.collect())
                    }
                    InsertSource::Select(select) => InsertSource::Select(Box::new(self.select(&select))),
                    InsertSource::Load(load) => InsertSource::Load(load),
                };
                self.row = 0;
                for assignment in &mut insert.on_duplicate {
                    assignment.value = self.expression(&assignment.value);
                }
                Statement::Insert(insert)
            }
            Statement::Update(mut update) => {
                for assignment in &mut update.assignments {
                    assignment.value = self.expression(&assignment.value);
                }
                update.filter = update.filter.as_ref().map(|filter| self.expression(filter));
                update.limit = update.limit.map(|limit| self.limit_value(limit));
                Statement::Update(update)
            }
            Statement::Delete(mut delete) => {
                delete.filter = delete.filter.as_ref().map(|filter| self.expression(filter));
                delete.limit = delete.limit.map(|limit| self.limit_value(limit));
                Statement::Delete(delete)
            }
            other => other,
        }
    }
}

/// Asserts that the parameterised statement with its literals put back equals the statement parsed directly.
/// Returns whether it was parameterised.
fn agrees(text: &str) -> bool {
    let Some(shape) = shape_of(text) else { return false };
    let plain = parse(text.as_bytes()).map(|parsed| parsed.statement);
    match (parse_with_parameters(text.as_bytes(), &shape, Dialect::default()), plain) {
        (Ok(Parameterised::Statement { statement, .. }), Ok(plain)) => {
            let put_back = Substitution { text: text.as_bytes(), shape: &shape, row: 0 }.statement(statement);
            assert_eq!(put_back, plain, "{text}");
            true
        }
        (Ok(Parameterised::LiteralsMatter), _) => false,
        (Err(error), Err(plain)) => {
            assert_eq!(error, plain, "{text}");
            false
        }
        (parameterised, plain) => panic!("{text}: {parameterised:?} but {plain:?}"),
    }
}

#[test]
fn the_corpus_means_the_same_with_lifted_literals() {
    let statements = crate::parse::tests::corpus_statements();
    let agreed = statements.iter().filter(|text| agrees(text)).count();
    assert!(agreed > 150, "only {agreed} of {} were parameterised", statements.len());
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..1000).prop_map(|value| value.to_string()),
        any::<u64>().prop_map(|value| value.to_string()),
        (0u32..100, 0u32..100).prop_map(|(whole, part)| format!("{whole}.{part}")),
        (0u32..100, -9i32..9).prop_map(|(whole, exponent)| format!("{whole}e{exponent}")),
        "[a-z\\\\'%]{0,6}".prop_map(|text| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))),
        "[a-z']{0,20}".prop_map(|text| format!("\"{text}\"")),
    ]
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(" "), 1 => Just("  "), 1 => Just("\n\t"), 1 => Just(" /* c */ "), 1 => Just(" -- c\n"), 1 => Just(" # c\n")]
}

fn list() -> impl Strategy<Value = String> {
    let signed = (prop_oneof![3 => Just(""), 1 => Just("-")], 0u32..100, prop_oneof![Just(""), Just(" ")])
        .prop_map(|(sign, value, after)| format!("{sign}{value}{after}"));
    prop_oneof![
        prop::collection::vec(signed, 1..6).prop_map(|members| members.join(",")),
        prop::collection::vec("[a-z]{0,4}".prop_map(|text| format!("'{text}'")), 1..6)
            .prop_map(|members| members.join(" , ")),
        prop::collection::vec(literal(), 1..4).prop_map(|members| members.join(", ")),
    ]
}

fn operand() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => literal(),
        3 => "[a-d]".prop_map(|name| name),
        1 => Just("t.a".to_owned()),
        1 => Just("`x y`".to_owned()),
        1 => Just("NULL".to_owned()),
        1 => Just("@v".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (
                inner.clone(),
                prop::sample::select(vec![
                    "+", "-", "*", "/", "=", "<", "<=>", " AND ", " OR ", " XOR ", "||", " DIV "
                ]),
                inner.clone(),
                blank()
            )
                .prop_map(|(left, operator, right, blank)| format!("({left}{blank}{operator}{blank}{right})")),
            (inner.clone(), list()).prop_map(|(operand, list)| format!("({operand} IN ({list}))")),
            (inner.clone(), list(), blank())
                .prop_map(|(operand, list, blank)| format!("({operand} NOT IN{blank}( {list} ))")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} BETWEEN {b} AND {c})")),
            inner.clone().prop_map(|operand| format!("(-{operand})")),
            inner.clone().prop_map(|operand| format!("(- {operand} ^ 2)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("COALESCE( {a} ,{b})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} LIKE {b} ESCAPE '!')")),
            inner.prop_map(|operand| format!("({operand} IS NOT NULL)")),
        ]
    })
}

fn generated() -> impl Strategy<Value = String> {
    let member = prop_oneof![
        4 => literal(),
        1 => literal().prop_map(|literal| format!("-{literal}")),
        1 => Just("DEFAULT".to_owned()),
        1 => operand(),
    ];
    let same_rows = (prop::collection::vec((0u32..1000, "[a-z\\\\']{0,5}", any::<bool>()), 1..6), any::<bool>())
        .prop_map(|(rows, spaced)| {
            let rows = rows.into_iter().map(|(number, text, negative)| {
                let (sign, text) = (if negative { "-" } else { "" }, text.replace('\\', "\\\\").replace('\'', "\\'"));
                if spaced {
                    format!("( {sign}{number} , '{text}',DEFAULT)")
                } else {
                    format!("({sign}{number},'{text}',DEFAULT)")
                }
            });
            rows.collect::<Vec<_>>().join(if spaced { " , " } else { "," })
        });
    prop_oneof![
        (operand(), blank(), 0u32..50).prop_map(|(filter, blank, limit)| format!(
            "SELECT a, b + 1 FROM t{blank}WHERE{blank}{filter} LIMIT {limit}"
        )),
        operand().prop_map(|filter| format!("select distinct t.* from t where {filter} order by a desc for update")),
        (operand(), operand()).prop_map(|(value, filter)| format!("UPDATE t SET a = {value} WHERE {filter} LIMIT 3")),
        operand().prop_map(|filter| format!("DELETE FROM t WHERE {filter}")),
        prop::collection::vec(member, 1..4).prop_map(|row| format!("INSERT INTO t VALUES ({})", row.join(", "))),
        same_rows
            .prop_map(|rows| format!("INSERT INTO t (a,b,c) VALUES {rows} ON DUPLICATE KEY UPDATE a = VALUES(a) + 1")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn generated_statements_mean_the_same_with_lifted_literals(text in generated()) {
        agrees(&text);
    }

    #[test]
    fn statements_that_differ_in_values_share_a_shape(ids in prop::collection::vec(any::<u32>(), 1..20), text in "[a-z0-9 ]{0,30}") {
        let list = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let one = cacheable(&format!("SELECT c FROM t WHERE id IN ({list}) AND v = '{text}' LIMIT {}", ids[0]));
        let other = cacheable("SELECT c FROM t WHERE id IN (1) AND v = '' LIMIT 1");
        prop_assert_eq!(one.normalised(), other.normalised());
        prop_assert_eq!(one.hash(), other.hash());
        prop_assert_eq!(one.list(ParameterNumber(0)).len(), ids.len());
        let mut value = Vec::new();
        one.literal(ParameterNumber(1), 0).expect("the string").decode(format!("SELECT c FROM t WHERE id IN ({list}) AND v = '{text}'").as_bytes(), &mut value);
        prop_assert_eq!(value, text.as_bytes());
    }
}

#[test]
fn most_generated_statements_are_parameterised() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let agreed = (0..300)
        .filter(|_| {
            agrees(&proptest::strategy::ValueTree::current(&generated().new_tree(&mut runner).expect("a statement")))
        })
        .count();
    assert!(agreed > 150, "only {agreed} of 300");
}

/// All contents of a shape, for comparison.
type ShapeContents = (Vec<u8>, [u64; 2], Vec<ScannedLiteral>, Vec<Option<Slot>>, Option<UniformRows>);

fn said(shape: &Shape) -> ShapeContents {
    let slots = (0..shape.slot_count() as u32).map(|ordinal| shape.slot(ParameterNumber(ordinal))).collect();
    (shape.normalised().to_vec(), shape.hash(), shape.literals().to_vec(), slots, shape.rows())
}

#[test]
fn a_recalled_statement_has_the_shape_that_a_scan_gives() {
    let values = [
        "7",
        "0012",
        "9999999999999999999",
        "99999999999999999999",
        "1.5",
        "2e3",
        "-4",
        "'x'",
        "'it''s'",
        "\"y\"",
        "'\\''",
        "b",
        "''",
        "1,2",
        "5 -- c",
        "0x1F",
        "@v",
    ];
    let forms = [
        "SELECT c FROM sbtest1 WHERE id=@",
        "SELECT c FROM sbtest1 WHERE id=@ ;",
        "SELECT c FROM sbtest1 WHERE id BETWEEN @ AND 100 ORDER BY c",
        "SELECT c FROM sbtest1 WHERE id IN (@) AND k = 'z'",
        "SELECT c FROM sbtest1 WHERE name = _utf8mb4@ OR name = x@",
        "UPDATE sbtest1 SET k=k+1, c=@ WHERE id=@",
        "INSERT INTO sbtest1 (id, c) VALUES (@, 'a'), (2, 'b')",
        "DELETE FROM sbtest1 WHERE id=1@",
    ];
    let mut shape = Shape::new(1);
    for _ in 0..2 {
        for form in forms {
            for value in values {
                let text = form.replace('@', value);
                let outcome = scan(text.as_bytes(), &mut shape);
                let fresh = shape_of(&text);
                assert_eq!(outcome == ShapeOutcome::Cacheable, fresh.is_some(), "{text}");
                if let Some(fresh) = fresh {
                    assert_eq!(said(&shape), said(&fresh), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_statement_is_recalled_by_the_text_between_its_literals() {
    let mut shape = Shape::new(1);
    let first = "UPDATE sbtest1 SET c='abc' WHERE id=5";
    assert!(!shape.recall(first.as_bytes()));
    assert_eq!(scan(first.as_bytes(), &mut shape), ShapeOutcome::Cacheable);
    for (text, is_known) in [
        ("UPDATE sbtest1 SET c='d''e' WHERE id=123456789", true),
        ("UPDATE sbtest1 SET c='abc' WHERE id=5 ", false),
        ("UPDATE sbtest1 SET c=\"abc\" WHERE id=5", false),
        ("UPDATE sbtest1 SET c='abc' WHERE id=x", false),
        ("UPDATE sbtest1 SET c='abc WHERE id=5", false),
    ] {
        shape.clear();
        assert_eq!(shape.recall(text.as_bytes()), is_known, "{text}");
    }
}
