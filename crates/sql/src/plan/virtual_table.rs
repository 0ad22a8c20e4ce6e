//! Virtual tables in queries: how a query names them, and which of their rows it needs.
//!
//! A provider computes the rows while the statement is planned. It is told what the query requires of them:
//! the columns that it reads, and the texts that a column must equal. A query about one table then costs what
//! one table costs. The rows are tested again, so a provider may return others too.

use junctor_expression::{CastTarget, CompareDomain, CompareOperator, Expression, Node};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{SYSTEM_DATABASES, is_open_table};
use junctor_model::value::Value;

use super::compute::ComputeSource;
use super::shown_query::ShownQuery;
use crate::access::TableAccess;
use crate::bind::{Environment, message};
use crate::parse::Statement;
use crate::parse::statement::ObjectName;

/// A virtual table at the time when a statement is planned.
#[derive(Clone, Debug)]
pub struct VirtualSource {
    /// The database, as the server writes it.
    pub database: &'static str,
    /// The name, as the statement writes it.
    pub name: Box<str>,
    /// The columns of the table.
    pub columns: Vec<ResultColumn>,
}

/// The read of a virtual table.
#[derive(Clone, Debug)]
pub struct VirtualRead {
    /// The table.
    pub source: VirtualSource,
    /// The positions of the columns whose values are read.
    pub columns: Vec<u16>,
    /// Equalities that all rows of the answer satisfy.
    pub equalities: Vec<VirtualEquality>,
    /// Whether temporary tables of the session hide other tables of their names.
    pub sees_own_tables: bool,
}

/// A column that must equal one of these values, compared as names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualEquality {
    /// The position of the column.
    pub column: u16,
    /// The values. Without values, no row is needed.
    pub values: Vec<NameValue>,
}

/// The value of a name that a query looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameValue {
    /// A text in UTF-8.
    Text(Box<[u8]>),
    /// The parameter of the statement with this number.
    Parameter(u16),
}

/// Provides the virtual tables: those whose rows the server computes.
pub trait VirtualTables {
    /// The columns of a table by database and name; `None` if there is no such table.
    fn columns(&self, database: &str, name: &str) -> Option<Vec<ResultColumn>>;

    /// The rows of a table, at least those that satisfy the equalities. Values of columns that are not read
    /// may be wrong.
    fn rows(&self, read: &VirtualRead) -> ComputeSource;

    /// The query of these tables that answers SHOW or DESCRIBE; `None` for statements that no query answers.
    ///
    /// # Errors
    /// 1046, 1049, 1109 and 1146 for a missing database or table, 1044 and 1142 if the session lacks the
    /// right.
    fn shown_query(&self, _: &Statement) -> Result<Option<ShownQuery>> {
        Ok(None)
    }
}

/// The virtual tables of statements that read none.
pub struct NoVirtualTables;

impl VirtualTables for NoVirtualTables {
    fn columns(&self, _: &str, _: &str) -> Option<Vec<ResultColumn>> {
        None
    }

    fn rows(&self, _: &VirtualRead) -> ComputeSource {
        ComputeSource::Rows(Vec::new())
    }
}

/// The provider of the virtual tables of a statement.
pub type FindVirtual<'a> = dyn VirtualTables + 'a;

/// A virtual table by name; `None` for a name in an ordinary database. Errors: 1109 and 1146 for an unknown
/// virtual table.
pub(super) fn virtual_source(
    environment: &Environment<'_>,
    name: &ObjectName,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<VirtualSource>> {
    let database = environment.database_of(name)?;
    let Some(database) = SYSTEM_DATABASES.iter().find(|known| known.eq_ignore_ascii_case(database)) else {
        return Ok(None);
    };
    if !is_open_table(database, &name.name)
        && let Some(access) = environment.access
    {
        access.use_table(database, &name.name, TableAccess::ReadWhole)?;
    }
    match find_virtual.columns(database, &name.name) {
        Some(columns) => Ok(Some(VirtualSource { database, name: (*name.name).into(), columns })),
        None => Err(match *database {
            "information_schema" => message::unknown_information_table(&name.name),
            _ => message::no_such_table(database, &name.name),
        }),
    }
}

/// The columns of a virtual table in the expressions of a query, and the parameters of the statement.
pub(super) struct VirtualColumns<'c> {
    /// The position of the column that an expression is.
    pub position: &'c dyn Fn(&Expression) -> Option<u16>,
    /// Number of the statement's parameters.
    pub parameters: u16,
}

impl VirtualColumns<'_> {
    /// The equalities among conditions that all rows must satisfy.
    pub fn equalities_of(&self, conditions: &[Expression]) -> Vec<VirtualEquality> {
        conditions.iter().flat_map(Expression::conjuncts).filter_map(|condition| self.equality_of(condition)).collect()
    }

    fn equality_of(&self, condition: &Expression) -> Option<VirtualEquality> {
        match &condition.node {
            Node::Compare(CompareOperator::Equal, domain, operands) if is_of_names(*domain) => {
                let [left, right] = &**operands;
                let (column, value) = match (self.column_of(left), self.column_of(right)) {
                    (Some(column), None) => (column, right),
                    (None, Some(column)) => (column, left),
                    _ => return None,
                };
                let mut values = Vec::new();
                self.push_value(value, &mut values)?;
                Some(VirtualEquality { column, values })
            }
            Node::InList { negated: false, operand, list } => {
                let column = self.column_of(operand)?;
                let mut values = Vec::with_capacity(list.len());
                for (domain, value) in list {
                    is_of_names(*domain).then(|| self.push_value(value, &mut values))??;
                }
                Some(VirtualEquality { column, values })
            }
            Node::Like { negated: false, collation: CollationId::UTF8MB4_BIN, escape, operands } => {
                let [text, pattern] = &**operands;
                let Node::Constant(Value::Bytes(pattern)) = &pattern.node else { return None };
                let name = name_of_pattern(std::str::from_utf8(pattern).ok()?, *escape)?;
                let values = vec![NameValue::Text(name.into_bytes().into())];
                Some(VirtualEquality { column: self.column_of(text)?, values })
            }
            _ => None,
        }
    }

    /// The position of the column that is compared. BINARY of a name equals less than the name.
    fn column_of(&self, expression: &Expression) -> Option<u16> {
        match &expression.node {
            Node::Cast(CastTarget::Binary { length: None }, operand) => (self.position)(operand),
            _ => (self.position)(expression),
        }
    }

    /// Adds a value; NULL equals nothing. Returns `None` for other values than texts and parameters.
    fn push_value(&self, value: &Expression, values: &mut Vec<NameValue>) -> Option<()> {
        let set = value.result.collation.character_set();
        // The bytes of a binary string are compared with those of a name.
        let is_utf8 = matches!(set, CharacterSet::Utf8mb4 | CharacterSet::Utf8mb3 | CharacterSet::Binary);
        match &value.node {
            Node::Constant(Value::Null) => {}
            Node::Constant(Value::Bytes(text)) if is_utf8 => values.push(NameValue::Text(text.as_slice().into())),
            Node::Parameter(number) if is_utf8 && *number < self.parameters => {
                values.push(NameValue::Parameter(*number));
            }
            _ => return None,
        }
        Some(())
    }
}

/// The column that a condition compares, as a name, with values that do not depend on the row; with its
/// domain.
pub(super) fn tested_name(condition: &Expression) -> Option<(CompareDomain, ColumnNumber)> {
    let domain = CompareDomain::String(CollationId::UTF8MB4_BIN);
    let is_of_domain = match &condition.node {
        Node::Compare(_, of, _) => *of == domain,
        Node::InList { list, .. } => list.iter().all(|(of, _)| *of == domain),
        _ => false,
    };
    let names = VirtualColumns { position: &|column| Some(column.as_column()?.0), parameters: u16::MAX };
    let equality = names.equality_of(condition).filter(|_| is_of_domain)?;
    Some((domain, ColumnNumber(equality.column)))
}

/// Whether values are compared as names of databases and tables are: byte by byte, perhaps without spaces at
/// the end.
fn is_of_names(domain: CompareDomain) -> bool {
    [CollationId::UTF8MB4_BIN, CollationId::BINARY].into_iter().any(|known| domain == CompareDomain::String(known))
}

/// The only text that a pattern of LIKE matches; `None` if there are several.
fn name_of_pattern(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut name = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            letter if Some(letter) == escape => name.push(letters.next().unwrap_or(letter)),
            '%' | '_' => return None,
            letter => name.push(letter),
        }
    }
    Some(name)
}
