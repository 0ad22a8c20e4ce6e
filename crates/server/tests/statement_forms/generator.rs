//! Generates random statements on one table, as pieces of text and literals.

/// A literal of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub class: Class,
    /// The text of the literal in SQL, without a sign.
    pub text: String,
    /// Whether a literal at this position becomes a parameter of the plan, so that `?` is also allowed here.
    pub is_liftable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Integer,
    Decimal,
    Double,
    Text,
}

#[derive(Clone, Debug)]
pub enum Piece {
    Text(String),
    Literal(Literal),
    /// A value that only the session knows, as SQL writes it.
    Session(&'static str),
}

/// A generated statement.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    pub pieces: Vec<Piece>,
    /// Whether it changes rows.
    pub is_change: bool,
    /// Whether ORDER BY determines the order of the rows completely.
    pub is_ordered: bool,
    /// Whether it changes rows that it reads in no defined order, so that "at row N" may name any row.
    pub reads_in_any_order: bool,
    /// Whether the result may contain any one of several texts that the collation considers equal, so that
    /// two correct results can differ.
    pub shows_any_of_equal: bool,
    /// Whether a session value determines the type of a result. With a constant in its place, the result
    /// would have another type.
    pub has_computed_type: bool,
}

/// The values that only the session knows. `@i` is an integer, `@s` a text and `@m` a decimal; `@n` and `@p`
/// can have another type in each execution.
pub const SESSION_VALUES: [&str; 16] = [
    "@i",
    "@s",
    "@m",
    "@n",
    "@n",
    "@p",
    "NOW()",
    "NOW(3)",
    "CURRENT_TIMESTAMP(6)",
    "CURDATE()",
    "LAST_INSERT_ID()",
    "CONNECTION_ID()",
    "DATABASE()",
    "CURRENT_USER()",
    "@@div_precision_increment",
    "@@sql_mode",
];
/// The values that are mostly numbers.
const SESSION_NUMBERS: [&str; 6] =
    ["@i", "@m", "@n", "LAST_INSERT_ID()", "CONNECTION_ID()", "@@div_precision_increment"];
/// The values that are mostly patterns of LIKE.
const SESSION_PATTERNS: [&str; 3] = ["@p", "@s", "@n"];

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A random literal of a class.
pub fn literal_text(random: &mut Random, class: Class) -> String {
    match class {
        Class::Integer => match random.below(20) {
            0 => "2147483648".to_owned(),
            1 => "9223372036854775807".to_owned(),
            2 => "18446744073709551615".to_owned(),
            _ => random.below(13).to_string(),
        },
        Class::Decimal => random
            .pick(&["0.5", "1.5", "2.50", "3.0", "0.333", "10.25", "7.000", "99999999999999999999", "4."])
            .to_owned(),
        Class::Double => random.pick(&["1e0", "2.5e0", "3e1", "1.5e-3", "1e20"]).to_owned(),
        Class::Text => {
            let text = random.pick(&[
                "abc", "ABC", "a%", "%b%", "ab_", "5", "5.0", "2.50", " 7", "5abc", "", "b", "x''y", "\\\\", "3e0",
                "zz",
            ]);
            format!("'{text}'")
        }
    }
}

/// Generates a statement piece by piece.
pub struct Generator<'r> {
    random: &'r mut Random,
    statement: Statement,
}

const NUMBERS: [&str; 4] = ["a", "b", "d", "id"];
const TEXTS: [&str; 3] = ["s", "c", "k"];

impl<'r> Generator<'r> {
    pub fn new(random: &'r mut Random) -> Generator<'r> {
        Generator { random, statement: Statement::default() }
    }

    /// Generates the statement.
    pub fn statement(mut self) -> Statement {
        match self.random.below(10) {
            0..=4 => self.select(),
            5 => self.aggregate(),
            6 | 7 => self.update(),
            8 => self.insert(),
            _ => self.delete(),
        }
        self.statement
    }

    fn text(&mut self, text: &str) {
        match self.statement.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.statement.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn literal(&mut self, class: Class, is_liftable: bool) {
        let text = literal_text(self.random, class);
        self.statement.pieces.push(Piece::Literal(Literal { class, text, is_liftable }));
    }

    fn session(&mut self, from: &[&'static str]) {
        let value = from[self.random.below(from.len())];
        self.statement.pieces.push(Piece::Session(value));
    }

    fn select(&mut self) {
        self.text("SELECT ");
        let is_distinct = self.random.one_in(6);
        if is_distinct {
            self.text("DISTINCT ");
            self.statement.shows_any_of_equal = true;
        }
        let count = 1 + self.random.below(3);
        for position in 0..count {
            if position > 0 {
                self.text(", ");
            }
            self.value(2, false);
            if self.random.one_in(2) {
                self.text(&format!(" AS v{position}"));
            }
        }
        if !is_distinct {
            self.text(", id");
        }
        self.text(" FROM t");
        self.filter();
        if is_distinct {
            return;
        }
        if self.random.one_in(2) {
            self.text(" ORDER BY ");
            match self.random.below(6) {
                5 => self.session(&SESSION_VALUES),
                0 => {
                    let position = 1 + self.random.below(count);
                    self.text(&position.to_string());
                }
                1 => {
                    self.text("-");
                    self.number(1, false);
                }
                2 => {
                    self.value(1, false);
                    self.text(" IS NULL");
                }
                _ => self.value(2, false),
            }
            let direction = self.random.pick(&["", " DESC"]);
            self.text(direction);
            self.text(", id");
            self.statement.is_ordered = true;
            self.limit();
        }
    }

    fn limit(&mut self) {
        if self.random.one_in(2) {
            self.text(" LIMIT ");
            let text = self.random.below(9).to_string();
            self.statement.pieces.push(Piece::Literal(Literal { class: Class::Integer, text, is_liftable: true }));
        }
    }

    fn aggregate(&mut self) {
        self.text("SELECT COUNT(*), ");
        self.statement.shows_any_of_equal = true;
        let name = self.random.pick(&["SUM", "AVG", "MIN", "MAX", "COUNT"]);
        self.text(&format!("{name}("));
        self.number(2, false);
        self.text("), MIN(");
        self.value(1, false);
        self.text(") FROM t");
        self.filter();
    }

    fn update(&mut self) {
        self.statement.is_change = true;
        let ignore = if self.random.one_in(3) { "IGNORE " } else { "" };
        self.text(&format!("UPDATE {ignore}t SET "));
        for position in 0..1 + self.random.below(2) {
            if position > 0 {
                self.text(", ");
            }
            self.assignment();
        }
        self.filter();
        if self.random.one_in(3) {
            self.text(" ORDER BY ");
            self.number(1, false);
            self.text(", id");
            self.limit();
        } else {
            self.statement.reads_in_any_order = true;
        }
    }

    fn assignment(&mut self) {
        let column = self.random.pick(&["a", "b", "d", "s", "k"]);
        self.text(&format!("{column} = "));
        self.value(2, true);
    }

    fn delete(&mut self) {
        self.statement.is_change = true;
        self.text("DELETE FROM t");
        self.filter();
    }

    fn insert(&mut self) {
        self.statement.is_change = true;
        let verb = self.random.pick(&["INSERT", "INSERT IGNORE", "REPLACE"]);
        if self.random.one_in(4) {
            self.text(&format!("{verb} INTO t (id, a, s, d) SELECT id + 1000, "));
            self.number(1, false);
            self.text(", ");
            self.value(1, false);
            self.text(", d FROM t");
            self.filter();
            self.statement.reads_in_any_order = true;
            return;
        }
        self.text(&format!("{verb} INTO t (id, a, b, d, s, k) VALUES "));
        let forms = self.statement.pieces.len();
        let first_id = 100 + self.random.below(5);
        let rows = 1 + self.random.below(3);
        if self.random.one_in(2) {
            // All rows have the same form.
            self.statement.pieces.push(Piece::Text(format!("({first_id}, ")));
            for position in 0..5 {
                if position > 0 {
                    self.text(", ");
                }
                self.value(1, true);
            }
            self.text(")");
            let form: Vec<Piece> = self.statement.pieces[forms..].to_vec();
            for row in 1..rows {
                self.text(", ");
                for piece in &form {
                    match piece {
                        Piece::Text(text) => {
                            self.text(&text.replacen(&format!("({first_id}, "), &format!("({}, ", first_id + row), 1));
                        }
                        Piece::Literal(literal) => self.literal(literal.class, literal.is_liftable),
                        Piece::Session(value) => self.session(&[value]),
                    }
                }
            }
        } else {
            for row in 0..rows {
                if row > 0 {
                    self.text(", ");
                }
                self.text(&format!("({}, ", first_id + row));
                for position in 0..5 {
                    if position > 0 {
                        self.text(", ");
                    }
                    self.value(1, true);
                }
                self.text(")");
            }
        }
        if verb == "INSERT" && self.random.one_in(3) {
            self.text(" ON DUPLICATE KEY UPDATE ");
            self.assignment();
        }
    }

    fn filter(&mut self) {
        if self.random.one_in(8) {
            return;
        }
        self.text(" WHERE ");
        self.condition(2, true);
    }

    fn condition(&mut self, depth: usize, lifts: bool) {
        let choice = self.random.below(if depth == 0 { 9 } else { 13 });
        match choice {
            0..=2 => {
                self.operand(depth, lifts);
                let operator = self.random.pick(&[" = ", " < ", " >= ", " <> ", " <=> ", "=", ">"]);
                self.text(operator);
                self.operand(depth, lifts);
            }
            3 => {
                let column = self.random.pick(&["a", "id", "s", "k", "b"]);
                self.text(&format!("{column} = "));
                self.any_literal(lifts);
            }
            4 => {
                self.operand(depth.min(1), lifts);
                let negated = self.random.pick(&["", " NOT"]);
                self.text(&format!("{negated} IN ("));
                let class = self.class();
                for position in 0..1 + self.random.below(4) {
                    if position > 0 {
                        self.text(", ");
                    }
                    if self.random.one_in(10) {
                        self.session(&SESSION_VALUES);
                        continue;
                    }
                    // Sometimes the list mixes several classes.
                    let class = if self.random.one_in(8) { self.class() } else { class };
                    self.literal(class, lifts);
                }
                self.text(")");
            }
            5 => {
                self.operand(depth.min(1), lifts);
                self.text(" BETWEEN ");
                self.operand(0, lifts);
                self.text(" AND ");
                self.operand(0, lifts);
            }
            6 => {
                let column = self.random.pick(&TEXTS);
                let negated = self.random.pick(&["", " NOT"]);
                self.text(&format!("{column}{negated} LIKE "));
                match self.random.below(3) {
                    0 => self.session(&SESSION_PATTERNS),
                    _ => self.literal(Class::Text, lifts),
                }
            }
            7 => {
                self.value(depth, false);
                self.text(" IS NULL");
            }
            8 => {
                self.session(&SESSION_VALUES);
                let test = self.random.pick(&["", " IS NULL", " IS TRUE", " IS NOT FALSE"]);
                self.text(test);
            }
            9 | 10 => {
                self.text("(");
                self.condition(depth - 1, lifts);
                let word = self.random.pick(&[" AND ", " OR ", " XOR "]);
                self.text(word);
                self.condition(depth - 1, lifts);
                self.text(")");
            }
            11 => {
                self.text("NOT (");
                self.condition(depth - 1, lifts);
                self.text(")");
            }
            _ => {
                self.text("(a, s) = (");
                match self.random.below(3) {
                    0 => self.session(&SESSION_NUMBERS),
                    _ => self.literal(Class::Integer, lifts),
                }
                self.text(", ");
                match self.random.below(3) {
                    0 => self.session(&SESSION_VALUES),
                    _ => self.literal(Class::Text, lifts),
                }
                self.text(")");
            }
        }
    }

    fn class(&mut self) -> Class {
        match self.random.below(8) {
            0..=3 => Class::Integer,
            4 => Class::Decimal,
            5 => Class::Double,
            _ => Class::Text,
        }
    }

    fn any_literal(&mut self, lifts: bool) {
        let class = self.class();
        self.literal(class, lifts);
    }

    /// An operand of a comparison, or a value to assign.
    fn operand(&mut self, depth: usize, lifts: bool) {
        self.value(depth, lifts);
    }

    fn value(&mut self, depth: usize, lifts: bool) {
        match self.random.below(if depth == 0 { 6 } else { 10 }) {
            0 | 1 => {
                let column = self.random.pick(&NUMBERS);
                self.text(column);
            }
            2 => {
                let column = self.random.pick(&TEXTS);
                self.text(column);
            }
            3 | 4 => self.any_literal(lifts),
            5 => match self.random.below(6) {
                0 => self.text("NULL"),
                1 => self.text("TRUE"),
                _ => self.session(&SESSION_VALUES),
            },
            6 | 7 => self.number(depth, lifts),
            _ => self.function(depth - 1),
        }
    }

    fn number(&mut self, depth: usize, lifts: bool) {
        if depth == 0 || self.random.one_in(4) {
            match self.random.below(5) {
                0 => {
                    let column = self.random.pick(&NUMBERS);
                    self.text(column);
                }
                4 => self.session(&SESSION_NUMBERS),
                1 => self.literal(Class::Decimal, lifts),
                2 => self.literal(Class::Double, lifts),
                _ => self.literal(Class::Integer, lifts),
            }
            return;
        }
        match self.random.below(7) {
            0..=4 => {
                self.text("(");
                self.number(depth - 1, lifts);
                let operator = self.random.pick(&[" + ", " - ", " * ", " / ", "+", "/"]);
                self.text(operator);
                self.number(depth - 1, lifts);
                self.text(")");
            }
            5 => {
                self.text("(");
                self.number(depth - 1, false);
                let operator = self.random.pick(&[" % ", " DIV ", " & "]);
                self.text(operator);
                self.number(depth - 1, false);
                self.text(")");
            }
            _ => {
                self.text("(-");
                self.number(depth - 1, lifts);
                self.text(")");
            }
        }
    }

    /// A function call, whose literals do not become parameters.
    fn function(&mut self, depth: usize) {
        let forms: [(&str, &[&str]); 19] = [
            ("ABS", &["n"]),
            ("ROUND", &["n", "i"]),
            ("ROUND", &["n"]),
            ("TRUNCATE", &["n", "i"]),
            ("FLOOR", &["n"]),
            ("CONCAT", &["v", "v"]),
            ("UPPER", &["v"]),
            ("LENGTH", &["v"]),
            ("LEFT", &["v", "i"]),
            ("SUBSTRING", &["v", "i"]),
            ("REPEAT", &["v", "i"]),
            ("IF", &["p", "v", "v"]),
            ("IFNULL", &["v", "v"]),
            ("COALESCE", &["v", "v", "v"]),
            ("NULLIF", &["v", "v"]),
            ("GREATEST", &["v", "v"]),
            ("LEAST", &["n", "n"]),
            ("CASE", &[]),
            ("CAST", &[]),
        ];
        let (name, arguments) = forms[self.random.below(forms.len())];
        match name {
            "CASE" => {
                self.text("CASE WHEN ");
                self.condition(0, false);
                self.text(" THEN ");
                self.value(depth, false);
                self.text(" ELSE ");
                self.value(depth, false);
                self.text(" END");
                return;
            }
            "CAST" => {
                self.text("CAST(");
                self.value(depth, false);
                let target = self.random.pick(&["SIGNED", "DECIMAL(10,2)", "CHAR", "CHAR(3)", "DOUBLE"]);
                self.text(&format!(" AS {target})"));
                return;
            }
            _ => {}
        }
        self.text(&format!("{name}("));
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 {
                self.text(", ");
            }
            match *argument {
                "n" => self.number(depth, false),
                "p" => self.condition(0, false),
                "i" if self.random.one_in(4) => {
                    self.session(&SESSION_NUMBERS);
                    self.statement.has_computed_type |= name == "ROUND" || name == "TRUNCATE";
                }
                "i" => {
                    let digits = self.random.below(5).to_string();
                    self.text(&digits);
                }
                _ => self.value(depth, false),
            }
        }
        self.text(")");
    }
}
