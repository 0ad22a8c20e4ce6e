//! Columns that are dropped without touching the rows (`docs/decisions/0072-dropped-columns.md`).

use junctor_model::alteration::altered;
use junctor_model::limit::DROPPED_COLUMNS_MAX;
use junctor_model::row::{RowView, check_image};
use junctor_model::schema::{ColumnDefinition, TableLayout};
use junctor_model::types::Form;
use junctor_model::value::ValueRef;
use proptest::prelude::*;

use super::*;

/// Type and attributes of columns that are added, nullable ones with a default and without.
const COLUMNS: [&str; 9] = [
    "INT",
    "VARCHAR(9) DEFAULT 'd'",
    "BIGINT NOT NULL DEFAULT 7",
    "DATETIME",
    "TEXT",
    "CHAR(3) NOT NULL",
    "BINARY(40) NOT NULL",
    "JSON",
    "DECIMAL(30, 2) NOT NULL DEFAULT 1.5",
];

/// A table and the images of its rows, as an alteration leaves them.
struct Rows {
    dictionary: Dictionary,
    images: Vec<Vec<u8>>,
    /// Whether every statement asks for a copy.
    copies: bool,
}

impl Rows {
    fn new(copies: bool) -> Rows {
        let columns: Vec<String> =
            COLUMNS.iter().enumerate().map(|(number, column)| format!("o{number} {column}")).collect();
        let text = format!("CREATE TABLE a (id INT PRIMARY KEY, {}, k INT NOT NULL, KEY k (k))", columns.join(", "));
        Rows { dictionary: with_table(&text), images: Vec::new(), copies }
    }

    fn layout(&self) -> Arc<TableLayout> {
        Arc::clone(self.dictionary.table_named("t", "a").expect("the table exists"))
    }

    /// The visible columns in order.
    fn visible(&self) -> Vec<(ColumnNumber, ColumnDefinition)> {
        let columns = self.layout().definition.columns.clone().into_iter().zip(0..);
        columns.filter(|(column, _)| !column.hidden).map(|(column, number)| (ColumnNumber(number), column)).collect()
    }

    fn alter(&mut self, changes: &str) {
        let algorithm = if self.copies { ", ALGORITHM=COPY" } else { "" };
        let text = format!("ALTER TABLE a {changes}{algorithm}");
        let change = define(&text, &self.dictionary).unwrap_or_else(|error| panic!("{text}: {error}")).change;
        let SchemaChange::AlterTable { alteration, .. } = change else { panic!("{change:?}") };
        let old = self.layout();
        let mut new = altered(&self.dictionary, &old.definition, &alteration).expect("it was checked");
        new.version.0 += 1;
        let new = TableLayout::new(new);
        if let Some((_, sources)) = alteration.copy() {
            assert!(new.definition.columns.iter().all(|column| !column.is_dropped()), "{text}");
            for image in &mut self.images {
                let view = RowView::new(&old.row_format, image);
                let value = |source: &ColumnSource| match source {
                    ColumnSource::Column(column) => view.column(*column).to_value(),
                    ColumnSource::Value(value) => value.clone(),
                    other => panic!("{other:?}"),
                };
                *image = encoded(&new, &sources.iter().map(value).collect::<Vec<_>>());
            }
        }
        self.dictionary.put_table(new.definition);
    }

    fn insert(&mut self, row: usize) {
        let layout = self.layout();
        let columns = layout.definition.columns.iter().enumerate();
        let value = |(_, column): (usize, &ColumnDefinition)| match column.hidden {
            true => column.value_before_assignment(),
            false => value_of(column, row),
        };
        self.images.push(encoded(&layout, &columns.map(value).collect::<Vec<_>>()));
    }

    /// As block ldm does it. Returns whether the row has changed.
    fn update(&mut self, row: usize, number: ColumnNumber, by: usize) -> bool {
        let layout = self.layout();
        let image = &mut self.images[row];
        let view = RowView::new(&layout.row_format, image);
        let all = (0..layout.definition.columns.len() as u16).map(ColumnNumber);
        let mut values: Vec<Value> = all.map(|column| view.column(column).to_value()).collect();
        let column = &layout.definition.columns[usize::from(number.0)];
        values[usize::from(number.0)] = value_of(column, by);
        let changed = encoded(&layout, &values);
        if changed == *image {
            return false;
        }
        let mut without = Vec::new();
        *image = if layout.row_format.append_without_dropped(&changed, &mut without) { without } else { changed };
        assert!(!layout.row_format.append_without_dropped(image, &mut Vec::new()), "nothing is left");
        true
    }

    /// The names and values that statements see.
    fn seen(&self) -> (Vec<u8>, Vec<Vec<Value>>) {
        let layout = self.layout();
        let row = |image: &Vec<u8>| {
            assert!(check_image(&layout.row_format, image), "{image:?}");
            let view = RowView::new(&layout.row_format, image);
            self.visible().iter().map(|(number, _)| view.column(*number).to_value()).collect()
        };
        (create_table_text(&layout.definition, None), self.images.iter().map(row).collect())
    }
}

fn encoded(layout: &TableLayout, values: &[Value]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut image = Vec::new();
    layout.row_format.encode(&values, &mut image).expect("the values fit");
    image
}

fn value_of(column: &ColumnDefinition, row: usize) -> Value {
    match column.column_type.form() {
        _ if column.nullable && row.is_multiple_of(3) => Value::Null,
        _ if row.is_multiple_of(4) => column.value_before_assignment(),
        Form::Int => Value::Int(row as i64),
        Form::Bytes => Value::Bytes(vec![b'a' + (row % 26) as u8; row % 4]),
        _ => column.column_type.implicit_default(),
    }
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Change {
    Add(usize, usize),
    Drop(usize),
    /// Drops a column and adds one with its name.
    Replace(usize, usize),
    Rename(usize),
    SetDefault(usize),
    Insert,
    Update(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (any::<usize>(), any::<usize>()).prop_map(|(column, place)| Change::Add(column, place)),
        4 => any::<usize>().prop_map(Change::Drop),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(column, by)| Change::Replace(column, by)),
        1 => any::<usize>().prop_map(Change::Rename),
        1 => any::<usize>().prop_map(Change::SetDefault),
        4 => Just(Change::Insert),
        4 => (any::<usize>(), any::<usize>()).prop_map(|(row, column)| Change::Update(row, column)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Two tables have the same history. Each change copies the rows of the second one.
    #[test]
    fn any_history_of_columns_equals_that_of_a_copied_table(changes in prop::collection::vec(change(), 1..40)) {
        let (mut instant, mut copied) = (Rows::new(false), Rows::new(true));
        for (step, change) in changes.into_iter().enumerate() {
            let columns: Vec<_> = copied.visible();
            // Neither the primary key nor the indexed column.
            let free: Vec<_> = columns.iter().filter(|(_, column)| !matches!(&*column.name, "id" | "k")).collect();
            let of = |number: usize| free.get(number % free.len().max(1)).map(|(_, column)| &*column.name);
            let text = match change {
                Change::Add(column, place) => {
                    let place = match columns.get(place % (columns.len() + 1)) {
                        Some((_, after)) => format!("AFTER {}", after.name),
                        None => "FIRST".to_owned(),
                    };
                    Some(format!("ADD COLUMN n{step} {} {place}", COLUMNS[column % COLUMNS.len()]))
                }
                Change::Drop(column) => of(column).map(|name| format!("DROP COLUMN {name}")),
                Change::Replace(column, by) => {
                    let added = COLUMNS[by % COLUMNS.len()];
                    of(column).map(|name| format!("DROP COLUMN {name}, ADD COLUMN {name} {added}"))
                }
                Change::Rename(column) => of(column).map(|name| format!("RENAME COLUMN {name} TO r{step}")),
                Change::SetDefault(column) => {
                    let chosen = free.get(column % free.len().max(1));
                    let chosen = chosen.filter(|(_, column)| column.column_type.form() == Form::Int);
                    chosen.map(|(_, column)| format!("ALTER COLUMN {} SET DEFAULT {step}", column.name))
                }
                Change::Insert => {
                    instant.insert(step);
                    copied.insert(step);
                    None
                }
                Change::Update(row, column) if !copied.images.is_empty() => {
                    let (row, place) = (row % copied.images.len(), column % columns.len());
                    let number = |rows: &Rows| rows.visible()[place].0;
                    let (here, there) = (number(&instant), number(&copied));
                    prop_assert_eq!(instant.update(row, here, step), copied.update(row, there, step));
                    None
                }
                Change::Update(..) => None,
            };
            if let Some(text) = text {
                instant.alter(&text);
                copied.alter(&text);
            }
            prop_assert_eq!(instant.seen(), copied.seen());
        }
        let mut empty = instant.layout().definition.clone();
        empty.forget_old_rows();
        let copy = &copied.layout().definition;
        prop_assert_eq!(&empty.columns, &copy.columns);
        prop_assert_eq!(&empty.indexes, &copy.indexes);
        prop_assert_eq!(&empty.partition_columns, &copy.partition_columns);
    }
}

fn shape(table: &TableDefinition) -> Vec<(&str, bool)> {
    table.columns.iter().map(|column| (&*column.name, column.is_dropped())).collect()
}

#[test]
fn a_dropped_column_keeps_its_place_in_rows_and_loses_everything_else() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT, v VARCHAR(9) DEFAULT 'x' COMMENT 'c', w DATETIME NOT NULL DEFAULT NOW() ON UPDATE \
         NOW(), g INT AS (id + 1), KEY k (id))",
    );
    let text = "ALTER TABLE a DROP v, DROP w, DROP g, ADD v INT FIRST, RENAME COLUMN id TO key_of";
    let Redefinition { copy, new, renamed_columns, .. } = redefined(text, &dictionary);
    assert_eq!(copy, None);
    let expected = [
        ("v", false),
        ("key_of", false),
        ("!dropped 1", true),
        ("!dropped 2", true),
        ("!dropped 3", true),
        (create_table::HIDDEN_KEY_NAME, false),
    ];
    assert_eq!(shape(&new), expected);
    assert_eq!(renamed_columns, [("id".into(), "key_of".into())]);
    assert_eq!((new.primary().columns[0], new.indexes[1].columns[0]), (ColumnNumber(5), ColumnNumber(1)));
    for column in &new.columns[2..5] {
        assert!(!column.is_hidden_key() && !column.is_generated() && column.default.is_some(), "{column:?}");
        assert!(!column.default_now && !column.on_update_now && column.comment.is_empty(), "{column:?}");
    }
    assert_eq!(new.column("!dropped 1"), None);
    // A user may have a column of this name.
    let mut dictionary = databases();
    dictionary.put_table(new);
    let text = "ALTER TABLE a ADD COLUMN `!dropped 1` INT, DROP COLUMN v";
    let again = redefined(text, &dictionary);
    assert_eq!(again.copy, None);
    assert!(again.new.column("!dropped 1").is_some());
}

#[test]
fn rows_are_copied_if_more_than_the_rows_has_the_dropped_column() {
    let mut dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, u INT, i INT, p TEXT, f INT, x INT, g INT AS (x) STORED, c INT, l INT, \
         UNIQUE (u), KEY i (i, u), KEY p (p(3)), KEY e ((l + 1)), FOREIGN KEY (f) REFERENCES a (id), CHECK (c > l))",
    );
    for text in [
        "ALTER TABLE a DROP u",
        "ALTER TABLE a DROP i",
        "ALTER TABLE a DROP p",
        "ALTER TABLE a DROP KEY i, DROP i",
        "ALTER TABLE a DROP g, ADD KEY (x)",
        "ALTER TABLE a DROP g, ADD h INT DEFAULT (1 + 1)",
        "ALTER TABLE a DROP g, MODIFY c BIGINT",
        "ALTER TABLE a DROP g, MODIFY c INT FIRST",
        "ALTER TABLE a DROP g, ALGORITHM=INPLACE",
        "ALTER TABLE a DROP g, ALGORITHM=COPY",
    ] {
        assert!(redefined(text, &dictionary).copy.is_some(), "{text}");
        if !text.contains("ALGORITHM") {
            let refused = error(&format!("{text}, ALGORITHM=INSTANT"), &dictionary);
            assert!(
                refused.starts_with("ERROR 1845 (0A000)") || refused.starts_with("ERROR 1846 (0A000)"),
                "{refused}"
            );
        }
    }
    for (text, message) in [
        ("ALTER TABLE a DROP x", "ERROR 3108 (HY000): Column 'x' has a generated column dependency."),
        (
            "ALTER TABLE a DROP c",
            "ERROR 3959 (HY000): Check constraint 'a_chk_1' uses column 'c', hence column cannot be dropped or \
             renamed.",
        ),
        (
            "ALTER TABLE a DROP f",
            "ERROR 1828 (HY000): Cannot drop column 'f': needed in a foreign key constraint 'a_ibfk_1'",
        ),
    ] {
        assert_eq!(error(text, &dictionary), message);
        assert_eq!(error(&format!("{text}, ALGORITHM=INSTANT"), &dictionary), message);
    }
    // A child that was made without a check may refer to a column without an index.
    let child = "CREATE TABLE b (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES a (id))";
    let SchemaChange::CreateTable { definition, .. } = define(child, &dictionary).expect(child).change else {
        panic!("{child}")
    };
    let mut child = TableDefinition { id: TableId(9), ..*definition };
    child.foreign_keys[0].parent_columns = vec!["G".into()];
    dictionary.put_table(child);
    assert!(error("ALTER TABLE a DROP g", &dictionary).starts_with("ERROR 1829 (HY000)"));
}

#[test]
fn a_table_has_a_limited_number_of_dropped_columns() {
    let columns: Vec<String> = (0..DROPPED_COLUMNS_MAX + 2).map(|number| format!("c{number} INT")).collect();
    let mut dictionary = with_table(&format!("CREATE TABLE a (id INT PRIMARY KEY, {})", columns.join(", ")));
    for number in 0..DROPPED_COLUMNS_MAX {
        let dropped = redefined(&format!("ALTER TABLE a DROP c{number}, ALGORITHM=INSTANT"), &dictionary);
        assert_eq!(dropped.copy, None);
        dictionary.put_table(dropped.new);
    }
    let text = format!("ALTER TABLE a DROP c{DROPPED_COLUMNS_MAX}");
    assert_eq!(
        error(&format!("{text}, ALGORITHM=INSTANT"), &dictionary),
        "ERROR 4092 (HY000): Maximum row versions reached for table t/a. No more columns can be added or dropped \
         instantly. Please use COPY/INPLACE."
    );
    // Other changes are instant, and a copy makes room.
    assert_eq!(redefined("ALTER TABLE a RENAME COLUMN id TO i, ALGORITHM=INSTANT", &dictionary).copy, None);
    assert_eq!(redefined("ALTER TABLE a ADD n INT, ALGORITHM=INSTANT", &dictionary).copy, None);
    for text in [&*text, "ALTER TABLE a FORCE", "ALTER TABLE a ENGINE=InnoDB"] {
        let copied = redefined(text, &dictionary);
        assert!(copied.copy.is_some() && copied.new.columns.iter().all(|column| !column.hidden), "{text}");
    }
    let refused = error("ALTER TABLE a FORCE, ALGORITHM=INSTANT", &dictionary);
    assert!(refused.starts_with("ERROR 1845 (0A000)"), "{refused}");
}

/// The operations that MySQL 8.0's manual lists as INSTANT.
#[test]
fn changes_that_mysql_makes_instantly_are_instant() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x', e ENUM('p', 'q'), s SET('p', 'q'), d DATETIME, \
         g INT AS (id + 1), h INT AS (id + 2) STORED, c INT, y INT, KEY k (v, id), UNIQUE u (c), KEY p (v(3), d DESC), CHECK \
         (d > '2000-01-01'), CONSTRAINT yy CHECK (y > 0))",
    );
    for changes in [
        "ADD x INT FIRST, ADD t TEXT AFTER v, ADD z DATETIME NOT NULL DEFAULT NOW()",
        "ADD x TIME NOT NULL, ADD t YEAR NOT NULL, ADD z JSON NOT NULL",
        "ADD x INT AS (c + id) VIRTUAL FIRST, ADD z INT AS (x + h), DROP e, WITHOUT VALIDATION",
        "DROP e, DROP s",
        "DROP g",
        "DROP h",
        "DROP e, ADD e BIGINT, RENAME COLUMN s TO ss, ALTER c SET DEFAULT 3, COMMENT = 'all of it'",
        "RENAME COLUMN v TO w",
        "CHANGE v w VARCHAR(9) DEFAULT 'y' COMMENT 'c'",
        "ALTER v SET DEFAULT 'y', ALTER c DROP DEFAULT",
        "ALTER c SET DEFAULT (1 + 1)",
        "MODIFY d DATETIME DEFAULT NOW() ON UPDATE NOW()",
        "MODIFY e ENUM('p', 'q', 'r'), MODIFY s SET('p', 'q', 'r')",
        "MODIFY g INT AS (id + 1) COMMENT 'c'",
        "ALTER COLUMN c SET INVISIBLE",
        "ALTER COLUMN c SET VISIBLE, MODIFY e ENUM('p', 'q') INVISIBLE",
        "ALTER INDEX k INVISIBLE",
        "RENAME KEY k TO kk",
        "RENAME TO b",
        "DROP KEY k, ADD KEY k (v, id) USING BTREE",
        "DROP KEY u, DROP KEY p, ADD UNIQUE u (c) USING BTREE, ADD KEY p (v(3), d DESC) USING BTREE",
        "DROP CHECK a_chk_1",
        "ALTER CHECK a_chk_1 NOT ENFORCED, ADD CHECK (id > 0) NOT ENFORCED",
        "DROP y, DROP CHECK yy",
        "DROP CONSTRAINT yy, DROP y, ADD y INT AFTER id, DROP e, MODIFY v VARCHAR(12)",
    ] {
        let text = format!("ALTER TABLE a {changes}, ALGORITHM=INSTANT");
        assert!(define(&text, &dictionary).is_ok(), "{text}: {}", error(&text, &dictionary));
    }
    let unchanged = define("ALTER TABLE a DROP KEY k, ADD KEY k (v, id) USING BTREE", &dictionary);
    let SchemaChange::AlterTable { alteration, .. } = unchanged.expect("it is possible").change else {
        panic!("ALTER TABLE")
    };
    assert_eq!(alteration.drop_indexes.len() + alteration.add_indexes.len(), 0);
    for changes in [
        // These are other indexes.
        "DROP KEY k, ADD KEY k (id, v)",
        "DROP KEY k, ADD KEY k (v, id) COMMENT 'c'",
        "DROP KEY k, ADD KEY kk (v, id)",
        "DROP KEY k, ADD UNIQUE k (v, id)",
        "DROP KEY u, ADD UNIQUE u (c) USING HASH",
        "DROP KEY p, ADD KEY p (v(3), d)",
        // These are no instant changes in MySQL, either.
        "MODIFY e ENUM('q', 'p')",
        "MODIFY e ENUM('p', 'q') FIRST",
        "MODIFY c BIGINT",
        "MODIFY v VARCHAR(9) NOT NULL",
        "ADD x INT AS (id) STORED",
        "CONVERT TO CHARACTER SET latin1",
        "ADD CHECK (id > 0)",
        "MODIFY g INT AS (id + 1) FIRST",
        "MODIFY g INT AS (id + 2)",
        "ADD x INT AS (id), ADD KEY (x)",
        "ADD x INT AS (id) UNIQUE",
        "ADD x INT AS (id), WITH VALIDATION",
        "ADD x INT AS (id) NOT NULL",
    ] {
        let refused = error(&format!("ALTER TABLE a {changes}, ALGORITHM=INSTANT"), &dictionary);
        assert!(
            refused.starts_with("ERROR 1845 (0A000)") || refused.starts_with("ERROR 1846 (0A000)"),
            "{changes}: {refused}"
        );
    }
}

#[test]
fn a_key_of_an_unstored_column_stores_its_values() {
    let mut dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w INT, t TIME, KEY (w))");
    let added = redefined(
        "ALTER TABLE a ADD x INT AS (id + w), ADD y INT AS (x + 1), ADD z VARCHAR(9) AS (v) FIRST, ADD d DATETIME AS \
         (ADDTIME('2020-01-01', t))",
        &dictionary,
    );
    assert_eq!(added.copy, None);
    assert!(["x", "y", "z", "d"].iter().all(|name| {
        let column = added.new.column(name).expect("it was added");
        added.new.columns[usize::from(column.0)].is_unstored()
    }));
    dictionary.put_table(added.new);
    let is_unstored = |column: &ColumnDefinition| column.is_unstored();
    for changes in [
        "ADD KEY (x)",
        "ADD UNIQUE (w, y)",
        "ADD KEY (z(3))",
        "ADD KEY ((y + 1))",
        "ADD KEY (x), ADD n INT",
        "ADD FOREIGN KEY (x) REFERENCES a (id)",
        "COMMENT = 'NDB_TABLE=TTL=10@d'",
        "FORCE",
        "ADD CHECK (y > 0)",
        "MODIFY y INT AS (x + 2)",
        "MODIFY x INT AS (id + w) FIRST",
        "ADD n INT, ALGORITHM=INPLACE",
    ] {
        let copied = redefined(&format!("ALTER TABLE a {changes}"), &dictionary);
        let sources = copied.copy.unwrap_or_else(|| panic!("{changes} copies"));
        assert!(!copied.new.columns.iter().any(is_unstored), "{changes}");
        let generated = copied.new.columns.iter().zip(&sources).filter(|(column, _)| column.is_generated());
        assert!(generated.clone().count() >= 4, "{changes}");
        generated.for_each(|(column, source)| assert_eq!(*source, ColumnSource::Computed, "{changes}: {column:?}"));
    }
    for changes in ["ADD n INT", "DROP y, DROP x", "RENAME COLUMN y TO n", "MODIFY z VARCHAR(11) AS (v) COMMENT 'c'"] {
        let instant = redefined(&format!("ALTER TABLE a {changes}, ALGORITHM=INSTANT"), &dictionary);
        assert!(instant.copy.is_none() && instant.new.columns.iter().any(is_unstored), "{changes}");
    }
    assert!(define("ALTER TABLE a ADD KEY (v), ALGORITHM=INPLACE", &dictionary).is_ok());
}

#[test]
fn large_expressions_of_virtual_columns_are_stored() {
    let mut dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY, v INT)");
    let greatest = |count: usize| format!("GREATEST(v{})", ", v".repeat(count));
    let is_copied = |changes: &str, dictionary: &Dictionary| {
        redefined(&format!("ALTER TABLE a {changes}"), dictionary).copy.is_some()
    };
    assert!(is_copied(&format!("ADD x INT AS ({})", greatest(300)), &dictionary));
    assert!(!is_copied(&format!("ADD x INT AS ({})", greatest(200)), &dictionary));
    assert!(is_copied(&format!("ADD x INT AS ({}v{})", "ABS(".repeat(70), ")".repeat(70)), &dictionary));
    assert!(!is_copied(&format!("ADD x INT AS ({}v{})", "ABS(".repeat(20), ")".repeat(20)), &dictionary));
    // A copy has no dropped column, also if it is made for the size of an expression only.
    let mut with_dropped = with_table("CREATE TABLE a (id INT PRIMARY KEY, v INT, w INT)");
    let dropped = redefined("ALTER TABLE a DROP COLUMN w", &with_dropped);
    assert!(dropped.copy.is_none() && dropped.new.columns.iter().any(|column| column.is_dropped()));
    with_dropped.put_table(dropped.new);
    let copied = redefined(&format!("ALTER TABLE a ADD x INT AS ({})", greatest(300)), &with_dropped);
    assert!(copied.copy.is_some() && copied.new.columns.iter().all(|column| !column.is_dropped()));
    // The nodes of a column count in each column that reads it.
    let first = redefined(&format!("ALTER TABLE a ADD x INT AS ({})", greatest(100)), &dictionary);
    dictionary.put_table(first.new);
    assert!(!is_copied("ADD y INT AS (x + x)", &dictionary));
    assert!(is_copied("ADD y INT AS (x + x), ADD z INT AS (y + y)", &dictionary));
}
