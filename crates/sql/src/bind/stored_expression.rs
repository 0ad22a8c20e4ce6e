//! Binds the expressions of a table's definition: defaults, generated columns and CHECK constraints. A
//! statement that writes rows binds them when it is planned.

use std::sync::Arc;

use junctor_expression::{Expression, Node};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{ColumnDefinition, TableDefinition, TableLayout};
use junctor_model::value::Value;
use junctor_signals::row_expressions::ComputedColumn;

use super::{Binder, Environment, Modes, Scope, as_stored, message};
use crate::parse::{expression as ast, parse_expression};

/// The expressions of a table that a statement needs for the rows that it writes.
pub(crate) struct StoredExpressions<'a> {
    /// The session's settings. Literals have the character set and modes of the definition.
    environment: Environment<'a>,
    layout: &'a Arc<TableLayout>,
    /// Whether a value was bound that may differ in another execution.
    pub is_volatile: bool,
}

/// The array of a multi-valued index.
pub(crate) struct BoundArray {
    pub document: Expression,
    /// NULL of the type of the elements.
    pub of_elements: Expression,
}

impl<'a> StoredExpressions<'a> {
    pub fn new(environment: &Environment<'a>, layout: &'a Arc<TableLayout>) -> StoredExpressions<'a> {
        let modes = Modes { no_backslash_escapes: false, pads_char: false, ..environment.modes };
        let environment =
            Environment { collation: CollationId::DEFAULT, parameters: &[], modes, access: None, ..*environment };
        StoredExpressions { environment, layout, is_volatile: false }
    }

    /// The expression of this text over the rows of the table. Errors: those of binding.
    pub fn bind(&mut self, text: &str) -> Result<Expression> {
        self.bind_written(&written(text)?)
    }

    /// As [`StoredExpressions::bind`], for a parsed text.
    pub fn bind_written(&mut self, written: &ast::Expression) -> Result<Expression> {
        if let ast::Expression::Cast { operand, target: ast::CastTarget::Array(element) } = written {
            let BoundArray { document, of_elements } = self.bind_array(operand, element)?;
            let name = Value::Bytes(self.index_of(written).as_bytes().to_vec());
            let name = Expression::constant(name, CollationId::DEFAULT);
            return Expression::call("CAST ARRAY", vec![document, of_elements, name]);
        }
        let mut binder = Binder::new(&self.environment, Scope::of_table(self.layout, None));
        let bound = binder.bind(written)?;
        self.is_volatile |= binder.is_volatile;
        Ok(bound)
    }

    /// The array of a multi-valued index, whose text is that of [`junctor_model::schema::KeyList`]. Errors:
    /// those of binding.
    pub fn array(&mut self, text: &str) -> Result<BoundArray> {
        match written(text)? {
            ast::Expression::Cast { operand, target: ast::CastTarget::Array(element) } => {
                self.bind_array(&operand, &element)
            }
            _ => Err(message::array_outside_index()),
        }
    }

    fn bind_array(&mut self, operand: &ast::Expression, element: &ast::CastTarget) -> Result<BoundArray> {
        let document = self.bind_written(operand)?;
        let null = ast::Expression::Cast {
            operand: Box::new(ast::Expression::Literal(ast::Literal::Null)),
            target: element.clone(),
        };
        let of_elements = self.bind_written(&null)?.result;
        Ok(BoundArray { document, of_elements: Expression::constant_of_type(Value::Null, of_elements) })
    }

    /// The name of the first index with the elements of an array, for errors.
    fn index_of(&self, array: &ast::Expression) -> &str {
        let TableDefinition { columns, indexes, .. } = &self.layout.definition;
        let is_it = |part: &ColumnNumber| {
            let list = columns[usize::from(part.0)].key_list();
            list.is_some_and(|list| written(list.text).is_ok_and(|written| written == *array))
        };
        indexes.iter().find(|index| index.columns.iter().any(is_it)).map_or("functional_index", |index| &index.name)
    }

    /// The value of a column's default or of a generated column, to be stored. Errors: those of binding.
    pub fn value_of(&mut self, column: &ColumnDefinition) -> Result<Option<Expression>> {
        let Some(expression) = &column.expression else { return Ok(None) };
        let written = written(&expression.text)?;
        let bound = self.bind_written(&written)?;
        Ok(Some(as_stored(column, &written, bound)))
    }

    /// All columns with an expression, in an order in which they can be computed.
    pub fn computed(&mut self) -> Result<Vec<ComputedColumn>> {
        let mut waiting = Vec::new();
        for (position, column) in self.layout.definition.columns.iter().enumerate() {
            if let Some(value) = self.value_of(column)? {
                waiting.push(ComputedColumn { column: ColumnNumber(position as u16), value });
            }
        }
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let left: Vec<ColumnNumber> = waiting.iter().map(|computed| computed.column).collect();
            // A default that reads a generated column which reads the default again is computed in the order
            // of the table.
            let next = waiting.iter().position(|computed| !reads(&computed.value, &left)).unwrap_or(0);
            ordered.push(waiting.remove(next));
        }
        Ok(ordered)
    }

    /// The generated columns whose values depend on changed columns, in the order of the table.
    pub fn generated(&mut self, changed: &[ColumnNumber]) -> Result<Vec<ComputedColumn>> {
        let mut known = changed.to_vec();
        let mut found = Vec::new();
        for (position, column) in self.layout.definition.columns.iter().enumerate() {
            if !column.is_generated() {
                continue;
            }
            let Some(value) = self.value_of(column)? else { continue };
            // A generated column refers only to generated columns before it.
            if reads(&value, &known) {
                let column = ColumnNumber(position as u16);
                known.push(column);
                found.push(ComputedColumn { column, value });
            }
        }
        Ok(found)
    }

    /// The enforced CHECK constraints of the table. Each fails for a row that violates it.
    pub fn checks(&mut self) -> Result<Vec<Expression>> {
        let layout = self.layout;
        let enforced = layout.definition.checks.iter().filter(|check| check.enforced);
        enforced
            .map(|check| {
                let name = Value::Bytes(check.name.as_bytes().to_vec());
                let name = Expression::constant(name, CollationId::DEFAULT);
                Expression::call("CHECK CONSTRAINT", vec![self.bind(&check.expression)?, name])
            })
            .collect()
    }
}

fn written(text: &str) -> Result<ast::Expression> {
    parse_expression(text)
        .map_err(|error| Error::new(ErrorCode::UnknownError, format!("Expression of a table: {error}")))
}

fn reads(expression: &Expression, columns: &[ColumnNumber]) -> bool {
    let mut reads = false;
    expression.visit(&mut |inner| {
        reads |= matches!(&inner.node, Node::Column { index, .. } if columns.contains(index));
    });
    reads
}
