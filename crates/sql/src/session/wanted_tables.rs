//! The stored tables that a query of `information_schema` is about, as far as equalities in its WHERE tell.
//! Statistics of other tables are not read.

use junctor_expression::Parameters;
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;

use crate::parse::Statement;
use crate::parse::expression::{BinaryOperator, Expression, Literal};

/// The columns of a virtual table with the database and the name of a stored table.
const DATABASE_COLUMN: &str = "TABLE_SCHEMA";
const NAME_COLUMN: &str = "TABLE_NAME";

/// The database and the name that a stored table must have.
#[derive(Debug, Default)]
pub(super) struct WantedTables {
    database: Option<Box<str>>,
    name: Option<Box<str>>,
}

impl WantedTables {
    /// The tables of a query of one virtual table; all tables for other statements.
    pub fn of(statement: &Statement, parameters: Parameters<'_>) -> WantedTables {
        let mut wanted = WantedTables::default();
        let Statement::Select(select) = statement else { return wanted };
        if select.needs_tree() || select.table().is_none() {
            return wanted;
        }
        let conjuncts = match &select.filter {
            Some(Expression::And(conjuncts)) => conjuncts.as_slice(),
            Some(filter) => std::slice::from_ref(filter),
            None => &[],
        };
        for conjunct in conjuncts {
            let Expression::Binary { operator: BinaryOperator::Equal, left, right } = conjunct else { continue };
            let (column, value) = match (&**left, &**right) {
                (Expression::Column(column), value) | (value, Expression::Column(column)) => (column, value),
                _ => continue,
            };
            let Some(text) = text_of(value, parameters) else { continue };
            if column.name.eq_ignore_ascii_case(DATABASE_COLUMN) {
                wanted.database = Some(text);
            } else if column.name.eq_ignore_ascii_case(NAME_COLUMN) {
                wanted.name = Some(text);
            }
        }
        wanted
    }

    /// Whether WHERE may be true for the row of a stored table.
    pub fn may_include(&self, table: &TableDefinition) -> bool {
        // Other letters may be equal to letters of ASCII in the collation.
        let may_be = |wanted: &Option<Box<str>>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| !name.is_ascii() || name.eq_ignore_ascii_case(wanted))
        };
        may_be(&self.database, &table.database) && may_be(&self.name, &table.name)
    }
}

/// The text of a constant, if it has letters of ASCII only; without spaces at its end, which do not count.
fn text_of(value: &Expression, parameters: Parameters<'_>) -> Option<Box<str>> {
    let bytes = match value {
        Expression::Literal(Literal::String(literal)) => &literal.bytes[..],
        Expression::Parameter(number) if (number.0 as usize) < parameters.count() => {
            match parameters.get(number.0 as u16) {
                ValueRef::Bytes(bytes) => bytes,
                _ => return None,
            }
        }
        _ => return None,
    };
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii())?;
    Some(text.trim_end_matches(' ').into())
}

#[cfg(test)]
mod tests {
    use junctor_expression::ParametersBuilder;
    use junctor_model::id::{IndexId, TableId};
    use junctor_model::schema::{IndexDefinition, IndexKind};

    use super::*;
    use crate::parse::{Dialect, parse_in};

    /// Which of the tables `a.t`, `a.x`, `b.t` and `a.ä` a query is about.
    fn wanted(condition: &str, parameters: &[ValueRef<'_>]) -> [bool; 4] {
        let text = format!("SELECT TABLE_ROWS FROM information_schema.TABLES {condition}");
        let parsed = parse_in(text.as_bytes(), Dialect::default()).expect("a query");
        let mut builder = ParametersBuilder::default();
        parameters.iter().for_each(|value| builder.push(*value));
        let mut bytes = Vec::new();
        builder.append_to(&mut bytes).expect("few parameters");
        let wanted = WantedTables::of(&parsed.statement, Parameters::from_bytes(&bytes));
        let primary = IndexDefinition::new(IndexId(0), "PRIMARY", IndexKind::Primary { ordered: true }, Vec::new());
        let table = |name| TableDefinition::new(TableId(1), name, Vec::new(), vec![primary.clone()]);
        [("a", "t"), ("a", "x"), ("b", "t"), ("a", "ä")].map(|name| wanted.may_include(&table(name)))
    }

    #[test]
    fn equalities_that_all_rows_must_satisfy_choose_the_tables() {
        assert_eq!(wanted("WHERE TABLE_SCHEMA = 'a' AND TABLE_NAME = 't'", &[]), [true, false, false, true]);
        assert_eq!(wanted("AS o WHERE o.table_name = 'T ' AND 1", &[]), [true, false, true, true]);
        assert_eq!(wanted("WHERE 'b' = TABLE_SCHEMA", &[]), [false, false, true, false]);
        let parameters = [ValueRef::Bytes(b"a"), ValueRef::Bytes(b"x")];
        assert_eq!(wanted("WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", &parameters), [false, true, false, true]);
    }

    #[test]
    fn other_conditions_choose_all_tables() {
        for condition in [
            "",
            "WHERE TABLE_SCHEMA = 'a' OR TABLE_NAME = 't'",
            "WHERE NOT TABLE_SCHEMA = 'b'",
            "WHERE TABLE_NAME LIKE 'x'",
            "WHERE TABLE_NAME = TABLE_SCHEMA",
            "WHERE TABLE_NAME = 'é'",
            "WHERE TABLE_NAME = ?",
            "WHERE TABLE_NAME = 'x' AND EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_ROWS > 1)",
            "AS p JOIN information_schema.TABLES AS o ON o.TABLE_ROWS = p.TABLE_ROWS WHERE o.TABLE_NAME = 'x'",
        ] {
            assert_eq!(wanted(condition, &[]), [true; 4], "{condition}");
        }
    }
}
